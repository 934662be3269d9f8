"""Earlier versions of the files that an ingest reads: they end in favour of the newer ones.

A document stands for the file that it has as its source, or that was noted when it was read.  While
another file still has its content it is no earlier version, and goes by that file's name.  Nothing
is written here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.ids import document_id
from memctl.ingest.batches import EarlierVersion, WantedSource
from memctl.ingest.discovery.sources import STDIN_NAME, Source, absolute, path_of, printable
from memctl.ingest.file_units import is_unit
from memctl.ingest.source_reading import is_revision
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.literals import LISTING_READER, RECORD_READER
from memctl.records import FileOutcome
from memctl.redaction import redact_secrets
from memctl.rows.references import in_portions
from memctl.rows.supersession import LIVE_STATUSES
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

_COLUMNS = (
    "id",
    "source",
    "sha256",
    "title",
    "namespace",
    "status",
    "part",
    "external_id",
    "reader",
)


_LONGEST_COMPARED = 4_000_000
"""Of a longer document it is not found what a newer version has changed."""


class VersionChanges(Struct, frozen=True):
    """What becomes of documents whose files say something else now, or are gone."""

    ended: Mapping[str, str] = field(default_factory=dict)
    """Those that end in favour of another one, each with its id."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Those that another file still has the content of, each with the path of that file."""
    newer: frozenset[str] = frozenset()
    """The files in whose favour documents end, by path."""
    keys: frozenset[str] = frozenset()
    """Ids that the first versions of the ended ones would have."""
    gone: tuple[FileOutcome, ...] = ()
    """The files that are gone, each with its document."""

    def __bool__(self) -> bool:
        return bool(self.ended or self.renamed or self.gone)

    def mark_superseded(self, outcomes: Iterable[FileOutcome]) -> list[FileOutcome]:
        """Return outcomes; those of files whose earlier versions end become "superseded"."""
        return [
            replace(item, outcome="superseded") if item.path in self.newer else item
            for item in outcomes
        ]


class FileVersions:
    """Finds the documents of one namespace that files were before.

    Args:
        store: What is remembered.
        settings: Of its knowledge base.  A file that is taken out of an inbox is not followed:
            another one may be dropped under its name; see :class:`InboxVersions`.
        namespace: Whose documents.
        clock: Says when they end.
    """

    is_certain = True
    """Whether what was under the name of a file before is an earlier version of it."""

    def __init__(
        self,
        store: Store,
        settings: KnowledgeBaseSettings,
        namespace: str,
        clock: Callable[[], datetime],
    ) -> None:
        self.clock = clock
        self._readings = store.ledger.provenance
        self._emptied = [
            f"{printable(inbox.path)}{os.sep}"
            for inbox in settings.inboxes
            if inbox.after != "keep"
        ]
        self._redacts = settings.redact
        self._namespace = namespace
        self._copies: dict[str, str] = {}
        """Files of this ingest that have the content of a document of another name, by path."""

    def after(self, snapshot: Snapshot, outcomes: Iterable[FileOutcome]) -> VersionChanges:
        """Return what becomes of what some files were before, by what became of them now."""
        now = {item.path: item.document_id for item in outcomes if item.path and item.document_id}
        return self._turnover(snapshot, {p: d for p, d in now.items() if self._is_followed(p)})

    def earlier(self, snapshot: Snapshot, sources: Iterable[Source]) -> dict[str, str]:
        """Return the live documents that files are before they are read again, by their paths."""
        paths = [place for each in sources if (place := each.place) and self._is_followed(place)]
        found = self._before(snapshot, paths) if snapshot.count("documents") else {}
        return {path: rows[0]["id"] for path, rows in found.items()}

    def gone(self, snapshot: Snapshot, folders: Sequence[Path]) -> VersionChanges:
        """Return what becomes of the documents of files that are no longer in some folders."""
        paths: set[str] = set()
        for folder in folders:
            top = printable(absolute(folder)).rstrip(os.sep)
            first, after = f"{top}{os.sep}", f"{top}{chr(ord(os.sep) + 1)}"
            within = (col("source") >= first) & (col("source") < after)
            rows = list(self._live(snapshot, within))
            many = {row["source"] for row in rows if row["reader"] == LISTING_READER}
            paths |= {row["source"] for row in rows if not is_unit(row["source"], many)}
            paths.update(self._readings.paths_between(first, after))
        return self._turnover(
            snapshot, {p: None for p in sorted(paths) if self._is_followed(p) and _is_gone(p)}
        )

    def _is_followed(self, path: str) -> bool:
        return not path.startswith(tuple(self._emptied))

    def _turnover(self, snapshot: Snapshot, now: Mapping[str, str | None]) -> VersionChanges:
        """Return what becomes of what files were before.

        Args:
            snapshot: What is remembered.
            now: Paths of files, each with the document that stands for it now.
        """
        before = self._before(snapshot, now)
        rows = {row["id"]: row for found in before.values() for row in found}
        known = {path: id_ for path, id_ in now.items() if id_}
        self._copies |= {
            path: id_
            for path, id_ in known.items()
            if id_ not in (row["id"] for row in before.get(path, ()))
        }
        earlier = [(p, row) for p, found in before.items() for row in found if row["id"] != now[p]]
        others = self._others(now, {row["id"]: row for _, row in earlier})
        ended: dict[str, str] = {}
        renamed: dict[str, str] = {}
        newer: set[str] = set()
        gone: dict[str, FileOutcome] = {}
        for path, row in earlier:
            if other := others.get(row["id"]):
                if row["source"] == path:
                    renamed[row["id"]] = redact_secrets(min(other)) if self._redacts else min(other)
            elif id_ := now[path]:
                ended[row["id"]] = id_
                newer.add(path)
            else:
                gone[row["id"]] = FileOutcome(path, "gone", row["id"], title=row["title"])
        keys = frozenset(document_id(self._namespace, rows[id_]["sha256"]) for id_ in ended)
        return VersionChanges(ended, renamed, frozenset(newer), keys, tuple(gone.values()))

    def _before(self, snapshot: Snapshot, paths: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the live documents that stand for files, as their sources say or as was noted."""
        found: dict[str, list[dict[str, Any]]] = {}
        for some in in_portions(list(paths)):
            for row in self._live(snapshot, col("source").is_in(some)):
                found.setdefault(row["source"], []).append(row)
            noted = self._readings.documents_of(some)
            ids = {id_ for each in noted.values() for id_ in each}
            live = {row["id"]: row for row in self._live(snapshot, col("id").is_in(sorted(ids)))}
            for path, each in noted.items():
                newest = next((live[id_] for id_ in each if id_ in live), None)
                if newest is not None and newest not in found.get(path, ()):
                    found.setdefault(path, []).append(newest)
        return found

    def _live(self, snapshot: Snapshot, where: Expr) -> Iterator[dict[str, Any]]:
        """Yield the live documents that are files of this namespace."""
        is_file = (col("namespace") == self._namespace) & col("external_id").is_null()
        is_file &= (col("part") == 0) & (col("reader") != RECORD_READER)
        is_file &= col("source") != STDIN_NAME
        live = col("status").is_in(LIVE_STATUSES)
        yield from snapshot.scan("documents", where & is_file & live, _COLUMNS).to_pylist()

    def _others(
        self, now: Mapping[str, str | None], documents: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, set[str]]:
        """Return the files that still have the content of documents, by id."""
        if not documents:
            return {}
        pairs = {(row["source"], id_) for id_, row in documents.items()}
        pairs |= set(self._readings.files_of(documents))
        standing = [*self._copies.items(), *now.items()]
        pairs |= {(path, id_) for path, id_ in standing if id_ and id_ in documents}
        found: dict[str, set[str]] = {}
        for path, id_ in pairs:
            if now.get(path, id_) == id_ and self._may_be_there(path):
                found.setdefault(id_, set()).add(path)
        return found

    def _may_be_there(self, path: str) -> bool:
        """Return whether a source is a file that is still there, or that an inbox has taken in."""
        return Path(path).is_absolute() and not (self._is_followed(path) and _is_gone(path))


class InboxVersions(FileVersions):
    """Finds what was dropped into an inbox before under the names of files that it takes in now.

    Another file may have the same name ("scan.pdf", "statement.csv"), so that only one with most
    of the words of the earlier one supersedes it.

    Args:
        store: What is remembered.
        settings: Of its knowledge base.
        namespace: Whose documents.
        clock: Says when they end.
        originals: The paths in the inbox of the files that are read, by the paths they have now.
    """

    is_certain = False

    def __init__(
        self,
        store: Store,
        settings: KnowledgeBaseSettings,
        namespace: str,
        clock: Callable[[], datetime],
        originals: Mapping[str, str],
    ) -> None:
        super().__init__(store, settings, namespace, clock)
        self._originals = originals

    def earlier(self, snapshot: Snapshot, sources: Iterable[Source]) -> dict[str, str]:
        """Return the live documents that were dropped under the names of files, by their paths."""
        places = {each.place: each for each in sources if each.place in self._originals}
        noted = self._readings.documents_of(self._originals[place] for place in places if place)
        ids = sorted({id_ for each in noted.values() for id_ in each})
        live = {row["id"]: row for row in self._live(snapshot, col("id").is_in(ids))} if ids else {}
        return {
            place: found
            for place, source in places.items()
            if place
            and (
                found := next(
                    (
                        id_
                        for id_ in noted.get(self._originals[place], ())
                        if id_ in live and live[id_]["source"] == source.source
                    ),
                    None,
                )
            )
        }

    def after(self, snapshot: Snapshot, outcomes: Iterable[FileOutcome]) -> VersionChanges:
        """Return what becomes of earlier files of the names of some, by what became of these."""
        now = {
            self._originals[item.path]: item
            for item in outcomes
            if item.outcome == "ingested"
            and item.document_id
            and item.path is not None
            and item.path in self._originals
        }
        ended: dict[str, str] = {}
        keys: set[str] = set()
        newer: set[str] = set()
        for path, ids in self._readings.documents_of(now).items():
            item = now[path]
            assert item.document_id is not None
            earlier = [id_ for id_ in ids if id_ != item.document_id]
            for row in self._live(snapshot, col("id").is_in(earlier)):
                if row["source"] != item.source or row["reader"] == LISTING_READER:
                    continue
                if self._is_elsewhere(row["id"], path):
                    continue
                if self._is_revised(snapshot, row["id"], item.document_id):
                    ended[row["id"]] = item.document_id
                    keys.add(document_id(self._namespace, row["sha256"]))
                    newer.add(item.path or "")
        return VersionChanges(ended, newer=frozenset(newer), keys=frozenset(keys))

    def _is_elsewhere(self, id_: str, path: str) -> bool:
        """Return whether another file was last found to be a document."""
        return any(other != path for other, _ in self._readings.files_of([id_]))

    @staticmethod
    def _is_revised(snapshot: Snapshot, earlier: str, later: str) -> bool:
        """Return whether a document has most of the words of another one."""
        rows = snapshot.get("documents", [earlier, later], ["id", "text"]).to_pylist()
        texts = {row["id"]: row["text"] or "" for row in rows}
        return is_revision(texts.get(earlier, ""), texts.get(later, ""))


def with_earlier(
    snapshot: Snapshot, wanted: Sequence[WantedSource], versions: FileVersions | None
) -> list[WantedSource]:
    """Return sources that have files, with what these said before, as far as that is known.

    Args:
        snapshot: What is remembered.
        wanted: Sources that are about to be read.
        versions: Finds the earlier versions of files; None where there are none.
    """
    files = [each for each in wanted if each.item.source.path is not None]
    ids = {
        each.document_id: each.document_id if each.redo else each.replaces
        for each in files
        if each.redo or each.replaces
    }
    if versions is not None:
        new = [each for each in files if each.document_id not in ids]
        before = versions.earlier(snapshot, [each.item.source for each in new])
        named = ((each, before.get(each.item.source.place or "")) for each in new)
        ids |= {each.document_id: id_ for each, id_ in named if id_}
    if not ids:
        return list(wanted)
    found = _earlier_texts(snapshot, sorted({id_ for id_ in ids.values() if id_}))
    certain = versions is None or versions.is_certain
    return [
        replace(each, earlier=replace(text, is_certain=certain or each.redo))
        if (text := found.get(ids.get(each.document_id) or ""))
        else each
        for each in wanted
    ]


def _earlier_texts(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, EarlierVersion]:
    """Return what documents say, and of which days, by their ids; of those of one part."""
    within = col("root_id").is_in(ids)
    documents = snapshot.scan("documents", within, ("id", "part", "text", "created_at")).to_pylist()
    days = {row["id"]: row["created_at"] for row in documents}
    passages: dict[str, list[tuple[str, datetime]]] = {}
    of_them = col("document_id").is_in(ids) & (col("level") == "evidence")
    for row in snapshot.scan(
        "memories", of_them, ("document_id", "text", "created_at")
    ).to_pylist():
        if row["created_at"] != days.get(row["document_id"]):
            passage = row["text"], row["created_at"]
            passages.setdefault(row["document_id"], []).append(passage)
    return {
        row["id"]: EarlierVersion(row["text"], tuple(passages.get(row["id"], ())))
        for row in documents
        if row["part"] == 0 and row["text"] and len(row["text"]) <= _LONGEST_COMPARED
    }


def _is_gone(path: str) -> bool:
    """Return whether there is no such file; one that cannot be looked at may be there."""
    try:
        path_of(path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
