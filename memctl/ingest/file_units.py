"""Files of many units: each unit becomes a document, and the file one that says what it holds.

The file's own document is committed last, so that a file that was cut off in the middle is read
again; what it holds is then known by its content.  A unit's source is the file's, ``!/`` and the
key of the unit.  Files may share units: the document of the second one names those of the first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.formatting import format_count
from memctl.ids import document_id
from memctl.ingest.batches import (
    IdentifiedSource,
    ReadFailure,
    WantedSource,
    failed_outcome,
)
from memctl.ingest.discovery.sources import Source
from memctl.ingest.source_reading import read_parts
from memctl.literals import LISTING_READER
from memctl.paths import display_path
from memctl.readers import Readers, kind_of_units
from memctl.readers.file_kinds import FILE_KINDS, FileKind
from memctl.readers.media.images import is_summary_alone
from memctl.readers.transcripts import LEFT_OUT
from memctl.records import UNIT_MARK, FileOutcome, Segment, SourceText
from memctl.rows.references import in_portions
from memctl.rows.supersession import LIVE_STATUSES
from memctl.store.tables.filter_expressions import Expr, Some, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Order, Snapshot

SHARED = "shared"
"""In the metadata of that document: the documents of units that other files have, too."""
UNREAD = "unread"
"""In the metadata of that document: how many units could not be read."""
BYTES_TOGETHER = 4 << 20
UNITS_TOGETHER = 1024
"""At most this many units, or this much text, are judged together."""
_BROKEN = "could not be read"
"""What the document of a file says of units that are not there."""
_MOST_NAMED = 20
_FILES_TOGETHER = 100
"""The units of so many files are looked for at once."""
_MOST_NAMES = 200
"""What is shown of the names in a file of many units."""


def kind_of(wanted: WantedSource) -> FileKind | None:
    """Return the kind of a source that is a file of many units and has to be read as such."""
    source = wanted.item.source
    if source.path is None or source.texts or wanted.stored:
        return None
    return kind_of_units(source.path, source.name or source.path.name)


class Unpacking(Struct):
    """Reads the units of one file, and then says what it holds."""

    wanted: WantedSource
    kind: FileKind
    readers: Readers
    count: int = 0
    hidden: int = 0
    """How many are left out because they are hidden."""
    unread: int = 0
    """How many units cannot be read."""
    broken: dict[str, None] = field(default_factory=dict)
    """Why, each reason once."""
    hints: set[str] = field(default_factory=set)
    """What to do about the broken ones."""
    names: set[str] = field(default_factory=set)
    """The sources of the units, the broken ones too."""

    def groups(self) -> Iterator[tuple[list[IdentifiedSource], list[FileOutcome]]]:
        """Yield units in groups, those that can be read apart from those that cannot.

        Raises:
            Unreadable: The rest of the file cannot be read, or it changed meanwhile.
        """
        items: list[IdentifiedSource] = []
        failures: list[FileOutcome] = []
        size = 0
        for texts in self._units():
            found = self._judge_unit(texts)
            if isinstance(found, FileOutcome):
                failures.append(found)
                continue
            items.append(found)
            size += found.size
            if len(items) >= UNITS_TOGETHER or size >= BYTES_TOGETHER:
                yield items, failures
                items, failures, size = [], [], 0
        yield items, failures

    def listing(self, shared: Sequence[str], ended: Sequence[str]) -> WantedSource:
        """Return the file as a document that says what it holds.

        Args:
            shared: Ids of documents of units that other files have, too.
            ended: Ids of documents of units that it has no more.
        """
        source = self.wanted.item.source
        name = display_path(source.name or source.source)
        units = self.kind.units.removesuffix("s") if self.count == 1 else self.kind.units
        said = f"{name} holds {self.count:,} {units}."
        if self.unread:
            said += f" {self.unread:,} {_BROKEN}: {'; '.join(self.broken)}."
        metadata: dict[str, Any] = {self.kind.units: self.count}
        if self.unread:
            metadata[UNREAD] = self.unread
        if self.hidden:
            said += f" Left out: {format_count(self.hidden, 'hidden file')}."
            metadata[LEFT_OUT] = self.hidden
        if shared:
            metadata[SHARED] = list(shared)
        whole = Segment(0, len(said), "properties")  # not said in the text, so no memory
        text = SourceText(
            said,
            self.kind.media_type,
            LISTING_READER,
            title=name,
            metadata=metadata,
            segments=(whole,),
        )
        item = replace(self.wanted.item, source=replace(source, texts=(text,)))
        return replace(self.wanted, item=item, ends=tuple(ended))

    @property
    def failure(self) -> ReadFailure:
        """Why nothing of the file is taken in, where none of its units can be read."""
        name = display_path(self.wanted.item.source.source)
        none = "they are hidden" if self.hidden else "there are none"
        why = "; ".join(self.broken) or none
        reason = f"{name}: none of its {self.kind.units} can be read: {why}"
        hint = next(iter(self.hints)) if len(self.hints) == 1 else "check where it comes from"
        return ReadFailure(reason, hint, UnreadableSource.__name__)

    @property
    def prefix(self) -> str:
        """What the sources of the units begin with."""
        return f"{self.wanted.item.source.source}{UNIT_MARK}"

    @property
    def is_followed(self) -> bool:
        """Whether the file is where its source says, so that it is the same one as before."""
        source = self.wanted.item.source
        return source.place == source.source

    def ended(self, snapshot: Snapshot) -> list[str]:
        """Return the documents of units that the file had and has no more."""
        item = self.wanted.item
        had = live_units(snapshot, item.source.source, item.source.namespace)
        lost = [id_ for id_, source in had.items() if source not in self.names]
        kept = shared_by_others(snapshot, {self.wanted.document_id}) if lost else set()
        return [id_ for id_ in lost if id_ not in kept]

    # --- inside ---

    def _units(self) -> Iterator[list[SourceText]]:
        """Yield the parts of one unit after the other."""
        parts: list[SourceText] = []
        for text in read_parts(self.wanted.item, self.readers):
            assert text.unit is not None
            if text.unit.is_hidden:
                self.hidden += 1
                continue
            if parts and parts[0].unit is not None and parts[0].unit.key != text.unit.key:
                yield parts
                parts = []
            parts.append(text)
        if parts:
            yield parts

    def _judge_unit(self, texts: list[SourceText]) -> IdentifiedSource | FileOutcome:
        unit = texts[0].unit
        assert unit is not None
        whole = self.wanted.item.source
        source = Source(
            source=f"{self.prefix}{unit.key}",
            name=whole.name,
            namespace=whole.namespace,
            session_id=whole.session_id,
            tags=whole.tags,
            doc_type=whole.doc_type,
            agent_id=whole.agent_id,
            metadata=whole.metadata,
            texts=tuple(_with_shares(texts)),
            part_of=whole.source,
            ends_namesake=self.is_followed or not unit.sha256,
        )
        self.names.add(source.source)
        if unit.problem:
            self.unread += 1
            if len(self.broken) < _MOST_NAMED:
                self.broken[unit.problem] = None
            self.hints.update({unit.hint} - {""})
            reason = f"{display_path(source.source)}: {unit.problem}"
            return failed_outcome(source, ReadFailure(reason, unit.hint, UnreadableSource.__name__))
        self.count += 1
        digest = unit.sha256 or _digest(texts)
        size = unit.size or sum(len(text.text.encode("utf-8", "replace")) for text in texts)
        key = document_id(source.namespace, digest)
        return IdentifiedSource(source, digest, size, key, self.wanted.item.mtime_ns)


def _with_shares(texts: list[SourceText]) -> Iterator[SourceText]:
    whole = sum(len(text.text) for text in texts) or 1
    for text in texts:
        yield replace(text, share=len(text.text) / whole if len(texts) > 1 else 1.0)


def _digest(texts: Iterable[SourceText]) -> str:
    """Return the hash of what a unit says; how its file writes it down does not matter."""
    said = [
        [text.title, text.text, text.authors, text.created_at and text.created_at.isoformat()]
        for text in texts
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


# --- units as they are remembered -----------------------------------------------------------------


def _below(prefix: str) -> Expr:
    """What has a source that begins so."""
    end = f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}"
    return (col("source") >= prefix) & (col("source") < end)


def live_units(snapshot: Snapshot, source: str, namespace: str) -> dict[str, str]:
    """Return the live documents of the units of a file: the source of each by its id."""
    where = _below(f"{source}{UNIT_MARK}") & (col("namespace") == namespace) & (col("part") == 0)
    where &= col("status").is_in(LIVE_STATUSES) & col("external_id").is_null()
    rows = snapshot.scan("documents", where, ["id", "source"]).to_pylist()
    return {row["id"]: row["source"] for row in rows}


def of_other_files(snapshot: Snapshot, ids: Collection[str], prefix: str) -> list[str]:
    """Return those documents that go by the name of another file than the one at hand."""
    return [
        row["id"]
        for some in in_portions(sorted(ids))
        for row in snapshot.get("documents", some, ["id", "source"]).to_pylist()
        if not row["source"].startswith(prefix)
    ]


def renamed_units(snapshot: Snapshot, document_id: str, source: str) -> dict[str, str]:
    """Return the units of a file that is found elsewhere now, each with its new source."""
    return {
        id_: f"{source}{name.removeprefix(row['source'])}"
        for row in _listings(snapshot, [document_id])
        for id_, name in live_units(snapshot, row["source"], row["namespace"]).items()
    }


def is_unit(source: str, files: Collection[str] = ()) -> bool:
    """Return whether a source is that of a unit: of one of these files, or of one that is there."""
    return any(file in files or Path(file).is_file() for file in _files_of(source))


def _files_of(source: str) -> list[str]:
    """Return the sources of the files that may have the unit of a source."""
    return [source[: found.start()] for found in re.finditer(re.escape(UNIT_MARK), source)]


def files_of_units(snapshot: Snapshot, ids: Iterable[str]) -> list[str]:
    """Return the documents of the files that some documents are units of, in all versions."""
    sources = {
        row["source"]
        for some in in_portions(sorted(ids))
        for row in snapshot.get("documents", some, ["source"]).to_pylist()
    }
    files = {file for source in sources for file in _files_of(source)}
    is_listing = col("reader") == LISTING_READER
    return [
        row["id"]
        for some in in_portions(sorted(files))
        for row in snapshot.scan(
            "documents", is_listing & col("source").is_in(some), ["id"]
        ).to_pylist()
    ]


def names_in_units(
    snapshot: Snapshot, listings: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Return what the units of files name, those first that most units name; no addresses.

    A file's own document has none of it: what is forgotten of a unit is gone with the unit.

    Args:
        snapshot: Where they are.
        listings: The rows of the documents that say what the files hold.

    Returns:
        The names by the id of such a document.
    """
    files: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    shares: defaultdict[str, list[str]] = defaultdict(list)
    for row in listings:
        files[row["namespace"], row["source"]].append(row["id"])
        for unit in _shared_units(row):
            shares[unit].append(row["id"])
    named: dict[str, dict[str, Sequence[str]]] = {row["id"]: {} for row in listings}
    for condition in (*_in_files([source for _, source in files]), *_with_roots(list(shares))):
        condition &= col("status").is_in(LIVE_STATUSES)
        columns = ["id", "root_id", "source", "namespace", "entities"]
        order: Order = (("source", "asc"), ("id", "asc"))
        for unit in snapshot.scan("documents", condition, columns, order).to_pylist():
            places = [(unit["namespace"], file) for file in _files_of(unit["source"])]
            owners = [id_ for place in places for id_ in files.get(place, ())]
            for id_ in (*owners, *shares.get(unit["root_id"], ())):
                named[id_][unit["id"]] = unit["entities"] or ()
    return {id_: _most_named(units.values()) for id_, units in named.items()}


def _in_files(sources: Sequence[str]) -> Iterator[Expr]:
    """Yield conditions that units of files meet, each for some of the files."""
    for some in in_portions(sources, _FILES_TOGETHER):
        within = Some(tuple(_below(f"{source}{UNIT_MARK}") for source in some))
        yield within & col("external_id").is_null()


def _with_roots(ids: Sequence[str]) -> Iterator[Expr]:
    for some in in_portions(ids):
        yield col("root_id").is_in(some)


def _most_named(units: Iterable[Sequence[str]]) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for names in units:
        counts.update(name for name in names if "@" not in name and "://" not in name)
    return tuple(name for name, _ in counts.most_common(_MOST_NAMES))


def listings_with_units(snapshot: Snapshot, condition: Expr) -> list[str]:
    """Return the documents of files that have a live unit which meets a condition."""
    condition &= col("status").is_in(LIVE_STATUSES) & col("source").like_glob(f"*{UNIT_MARK}*")
    units = snapshot.scan("documents", condition, ["root_id", "source", "namespace"]).to_pylist()
    if not units:
        return []
    ids = {row["root_id"] for row in units}
    files = {(row["namespace"], file) for row in units for file in _files_of(row["source"])}
    live = (col("reader") == LISTING_READER) & col("status").is_in(LIVE_STATUSES)
    columns = ["id", "source", "namespace", "metadata"]
    return [
        row["id"]
        for row in snapshot.scan("documents", live, columns).to_pylist()
        if (row["namespace"], row["source"]) in files or not ids.isdisjoint(_shared_units(row))
    ]


def units_of(snapshot: Snapshot, ids: Iterable[str]) -> list[str]:
    """Return the units that go when the documents of their files do, for no other file has them."""
    found: dict[str, None] = {}
    listings = _listings(snapshot, ids)
    for row in listings:
        found |= dict.fromkeys(live_units(snapshot, row["source"], row["namespace"]))
    kept = shared_by_others(snapshot, {row["id"] for row in listings}) if found else set()
    return [id_ for id_ in found if id_ not in kept]


def wholly_remembered(snapshot: Snapshot, ids: Collection[str]) -> set[str]:
    """Return those documents that have all that there is in their files, as far as is known.

    A picture or a silent film of which only the size is remembered is not among them, nor is a file
    that has a unit which is not, or a transcript of which more than tool calls was left out.
    """
    columns = ["root_id", "source", "namespace", "media_type", "reader", "metadata", "missing"]
    whole: set[str] = set()
    for some in in_portions(sorted(ids)):
        rows = snapshot.scan("documents", col("root_id").is_in(some), columns).to_pylist()
        lacking = {
            row["root_id"]
            for row in rows
            if row["missing"] or LEFT_OUT in json.loads(row["metadata"] or "{}")
        }
        lacking |= _without_words(snapshot, rows)
        lacking |= {
            row["root_id"]
            for row in rows
            if row["reader"] == LISTING_READER and not _has_all_units(snapshot, row)
        }
        whole |= {row["root_id"] for row in rows} - lacking
    return whole


def _without_words(snapshot: Snapshot, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the pictures and films of which nothing was made out that can be seen or heard."""
    kinds = {row["root_id"]: row["media_type"].partition("/")[0] for row in rows}
    pictures = [id_ for id_, kind in kinds.items() if kind == "image"]
    films = [id_ for id_, kind in kinds.items() if kind == "video"]
    found: set[str] = set()
    if pictures:
        texts = snapshot.get("documents", pictures, ["id", "text"]).to_pylist()
        found |= {row["id"] for row in texts if is_summary_alone(row["text"])}
    if films:
        is_timed = col("document_id").is_in(films) & ~col("time_start").is_null()
        timed = snapshot.scan("memories", is_timed, ["document_id"])["document_id"].to_pylist()
        found |= set(films).difference(timed)
    return found


def _has_all_units(snapshot: Snapshot, listing: Mapping[str, Any]) -> bool:
    """Return whether all units of a file are remembered, and all there is in them."""
    (text,) = snapshot.get("documents", [listing["root_id"]], ["text"])["text"].to_pylist()
    metadata = json.loads(listing["metadata"] or "{}")
    own = live_units(snapshot, listing["source"], listing["namespace"])
    units = {*own, *metadata.get(SHARED, ())}
    count = metadata.get(FILE_KINDS[listing["media_type"]].units, 0)
    return (
        _BROKEN not in text
        and len(units) >= count
        and len(wholly_remembered(snapshot, units)) == len(units)
    )


def _listings(snapshot: Snapshot, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Return the live documents, among some, that say what a file holds."""
    columns = ["id", "source", "namespace", "reader", "status"]
    return [
        row
        for some in in_portions(list(ids))
        for row in snapshot.get("documents", some, columns).to_pylist()
        if row["reader"] == LISTING_READER and row["status"] in LIVE_STATUSES
    ]


def shared_by_others(snapshot: Snapshot, own: Collection[str]) -> set[str]:
    """Return the documents that live files, but for some, share with the file they go by."""
    where = (col("reader") == LISTING_READER) & col("status").is_in(LIVE_STATUSES)
    rows = snapshot.scan("documents", where, ["id", "metadata"]).to_pylist()
    return {id_ for row in rows if row["id"] not in own for id_ in _shared_units(row)}


def _shared_units(listing: Mapping[str, Any]) -> Sequence[str]:
    """Return the documents of units that other files have, too."""
    shared: Sequence[str] = json.loads(listing["metadata"] or "{}").get(SHARED, ())
    return shared
