"""Why some of what was forgotten is still somewhere, and what to do about it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from memctl.files import QUARANTINE_MARK
from memctl.formatting import format_count
from memctl.ids import root_id
from memctl.ingest.discovery.sources import printable
from memctl.kb_settings import reason_path
from memctl.store.ledger.session_repositories import TURNS
from memctl.store.store import LEDGER_FILE
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.storage import TABLES_FOLDER

if TYPE_CHECKING:
    from memctl.forget.leftover_scan import Leftover
    from memctl.forget.search_patterns import SearchPattern
    from memctl.kb_settings import Layout
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.work_repositories import FileEntry
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot


STILL_READ = "another process may be reading an earlier state"
RUN_AGAIN = "when that has ended, memctl forget completes it, and so does whatever writes next"
_MAX_NAMED = 5
_OF_SNAPSHOTS = ("heads", "snapshot")
"""How the names of the ledger's tables begin that belong to snapshots."""


class Leftovers(Struct, dict=True):
    """Tells what traces mean.

    Args:
        layout: Where the knowledge base stands.
        store: Its tables and ledger.
        snapshot: The tables as far as they may be shown.
        search_patterns: What was looked for.
        sees: Whether a namespace may be shown; None where all may.
    """

    layout: Layout
    store: Store
    snapshot: Snapshot
    search_patterns: Sequence[SearchPattern]
    sees: Callable[[str], bool] | None = None

    def is_of_snapshot(self, trace: Leftover) -> bool:
        """Return whether a trace is in a snapshot, not in what holds now."""
        table = trace.place.removeprefix(f"{LEDGER_FILE}: ")
        return bool(trace.snapshots) or table.startswith("snapshot")

    def of(self, trace: Leftover) -> RemainingPlace:
        """Return why a text is still somewhere, and what to do about it."""
        if trace.snapshots:
            return self._in_snapshots(trace.place, trace.snapshots)
        if trace.ids and trace.is_present:
            why = f"others say it too: {', '.join(trace.ids)}"
            return RemainingPlace(trace.place, why, self._of_rows(trace))
        if trace.path is not None:
            return self._of_file(trace.place, trace.path)
        if trace.place.startswith(LEDGER_FILE):
            return self._of_ledger_table(trace.place)
        return RemainingPlace(trace.place, STILL_READ, RUN_AGAIN)

    # --- inside ---

    @cached_property
    def _entries(self) -> Mapping[Path, FileEntry]:
        return {Path(entry.path): entry for entry in self.store.ledger.files.entries()}

    def _conversations(self) -> list[str]:
        """Return some conversations that say it."""
        turns = [
            turn
            for turn in self.store.ledger.turns.all()
            if self.sees is None or self.sees(turn.namespace)
        ]
        said = (turn for turn in turns if any(s.is_in(turn.content) for s in self.search_patterns))
        return list(dict.fromkeys(turn.session_id for turn in said))[:_MAX_NAMED]

    def _command(self, *words: str) -> str:
        return shlex.join(["memctl", "forget", *words, "-k", self.layout.name])

    def _in_snapshots(self, place: str, names: Sequence[str] = ()) -> RemainingPlace:
        what = "a snapshot has it"
        if names:
            are = "snapshot {} has" if len(names) == 1 else "snapshots {} have"
            what = f"the {are.format(', '.join(names))} it"
        hint = f"{self._command('--snapshots')} deletes all snapshots"
        return RemainingPlace(place, what, hint)

    def _of_rows(self, trace: Leftover) -> str:
        """Return how rows can be forgotten, or what they are made of."""
        if trace.place not in ("documents", "memories"):
            return f"memctl doctor --rebuild -k {self.layout.name} makes them anew"
        table: TableName = "documents" if trace.place == "documents" else "memories"
        own = "id" if table == "documents" else "document_id"
        columns = list(dict.fromkeys(["id", own, "namespace"]))
        rows = self.snapshot.get(table, trace.ids, columns).to_pylist()
        namespaces = {row["namespace"] for row in rows}
        if named := sorted(n for n in namespaces if any(s.is_in(n) for s in self.search_patterns)):
            return f"it is a namespace: {self._command('--namespace', named[0])}"
        documents = sorted({root_id(row[own]) for row in rows if row[own]})
        ids = documents or sorted(row["id"] for row in rows)
        option = "--document" if documents else "--memory"
        return self._command(*(word for id_ in ids for word in (option, id_)))

    def _of_ledger_table(self, place: str) -> RemainingPlace:
        table = place.removeprefix(f"{LEDGER_FILE}: ")
        if table.startswith(_OF_SNAPSHOTS):
            return self._in_snapshots(place)
        if table == TURNS.name and (others := self._conversations()):
            kb = ("-k", self.layout.name)
            words = [("memctl", "session", "forget", id_, *kb) for id_ in others]
            hint = " && ".join(map(shlex.join, words))
            return RemainingPlace(place, f"others say it too: {', '.join(others)}", hint)
        if table == "meta":
            return RemainingPlace(
                place, "a setting has it", f"memctl kb set {self.layout.name} changes it"
            )
        there = [
            printable(path)
            for path in self._entries
            if path.exists() and any(each.is_in(str(path)) for each in self.search_patterns)
        ]
        if table == "files" and there:
            what = f"a file that is yours is called so: {', '.join(there[:_MAX_NAMED])}"
            return RemainingPlace(
                place, what, "give it another name, or delete it, and let memctl watch see"
            )
        return RemainingPlace(place, "it has been written meanwhile", "run it again")

    def _is_open(self, document: str) -> bool:
        """Return whether a document may be shown."""
        return self.sees is None or self.snapshot.count("documents", col("id") == document) > 0

    def _of_file(self, place: str, path: Path) -> RemainingPlace:
        layout = self.layout
        first = Path(place).parts[0]
        entry = self._entries.get(path)
        if first in (layout.processed.name, layout.failed.name):
            if entry is not None and entry.document_id and self._is_open(entry.document_id):
                what = f"it is the file of {entry.document_id}"
                return RemainingPlace(place, what, self._command("--document", entry.document_id))
            if self.sees is not None:
                return RemainingPlace(place, "it says the same")
            return RemainingPlace(place, "it says the same", f"delete it: {_removing(path)}")
        if first == layout.processing.name:
            return RemainingPlace(place, "it is being taken in", "run it again when that has ended")
        if layout.inbox in path.parents:
            return RemainingPlace(
                place, "it is yours, and lies in an inbox", f"delete it: {_removing(path)}"
            )
        if first in (layout.settings.name, layout.prompts.name):
            return RemainingPlace(
                place, "it is a setting of yours", f"change it: {printable(path)}"
            )
        if first.startswith(LEDGER_FILE) or first in (TABLES_FOLDER, "derived", "vectors"):
            return RemainingPlace(place, STILL_READ, RUN_AGAIN)
        return RemainingPlace(
            place, "it is a file of yours", f"delete it, if need be: {_removing(path)}"
        )


def kept_damaged_ledgers(layout: Layout) -> Iterator[RemainingPlace]:
    """Yield the damaged ledgers that a repair has kept: what is packed in them cannot be seen."""
    for path in sorted(layout.folder.glob(f"{LEDGER_FILE}*{QUARANTINE_MARK}*")):
        why = "a repair has kept it, and it may have it: it cannot be looked into"
        yield RemainingPlace(path.name, why, f"delete it: {_removing(path)}")


def _removing(path: Path) -> str:
    options = ["-r"] if path.is_dir() else []
    reason = [printable(each) for each in (reason_path(path),) if each.exists()]
    return shlex.join(["rm", *options, printable(path), *reason])


class RemainingPlace(Struct, frozen=True):
    """A place where some of what was to be forgotten still is."""

    place: str
    why: str
    hint: str = ""
    """What to do about it."""


class ForgetReport(Struct, frozen=True):
    """What was forgotten, or would be."""

    kb: str
    documents: int = 0
    memories: int = 0
    """Insights among them."""
    insights: int = 0
    redacted: tuple[str, ...] = ()
    """Documents that stay and have lost some of their text."""
    files: tuple[str, ...] = ()
    """Files below the knowledge base's folder that are gone."""
    yours: tuple[str, ...] = ()
    """Files elsewhere, or in an inbox that keeps its files, that are left alone."""
    pools: tuple[str, ...] = ()
    """Pools that were deleted, or have lost keys or words."""
    pool_keys: tuple[str, ...] = ()
    """Which keys of those, as ``memctl pool read`` takes them: ``POOL KEY``."""
    skills: tuple[str, ...] = ()
    """Skills that were deleted, or have lost versions, files, uses or words."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """How many rows of the ledger's tables of what users and agents have said or stored were
    deleted or changed, by table: ``pool_keys``, ``pool_versions``, ``skill_versions``, ...."""
    snapshots: tuple[str, ...] = ()
    """Snapshots that were deleted; in a dry run, those that would have to be."""
    bytes_freed: int = 0
    left: tuple[RemainingPlace, ...] = ()
    elsewhere: int = 0
    """How many of its sentences others say too, and keep."""
    too_short: int = 0
    """How many texts were searched in tables and the ledger alone: other bytes have something
    so short by chance."""
    completed: int = 0
    """Interrupted runs before this one that were completed by it."""
    dry_run: bool = False
    seconds: float = 0.0
    joined: tuple[str, ...] = ()
    """Other names and addresses that the graph takes for those that were forgotten, and short forms
    of them, that are still known."""
    joined_documents: tuple[str, ...] = ()
    """Documents that stay and have one of those; in a dry run, also those that have it as a part
    of what is forgotten."""

    @property
    def summary(self) -> str:
        """What was completed, in a few words."""
        text = f"completed {format_count(self.completed, 'forget')} that had been cut off"
        places = len({left.place for left in self.left})
        return f"{text}; some of it is left in {places} places" if places else text
