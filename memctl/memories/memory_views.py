"""Memories and documents as they stand: lists, and single ones with evidence and history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import NotFoundError, UsageError
from memctl.ids import root_id
from memctl.literals import LISTING_READER, SESSION_READER, Sort
from memctl.memories.importance_decay import COLUMNS, Decay
from memctl.records import Document, Filters, Memory, Relation
from memctl.rows.references import BETWEEN_ENTITIES
from memctl.rows.supersession import LIVE_STATUSES, Lineage, is_next_version
from memctl.schema.arrow_tables import VECTOR, document_rows, memory_rows, relation_rows
from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import col, document_filter, memory_filter, where
from memctl.store.tables.metadata_filters import metadata_condition

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.ledger.work_repositories import Access
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Order, Snapshot

_HIDDEN = {"memories": (VECTOR, "search_text"), "documents": ("text",)}
_OF_LISTINGS = ("id", "source", "namespace", "metadata", "status")
_SHORTEST_PREFIX = 6
_MAX_NAMED = 10
_SECONDS_A_DAY = 86_400


# --- looking -------------------------------------------------------------------------------------


class Evidence(Struct, frozen=True):
    """What a memory rests on: a run of a document's text, or another memory.

    Where ``start`` is not None, ``text`` is exactly ``document.text[start:end]``.
    """

    memory_id: str
    document_id: str | None
    source: str
    title: str
    text: str
    start: int | None
    end: int | None
    page: int | None
    row: int | None
    time_start: float | None
    created_at: datetime


class MemoryView(Struct, frozen=True):
    """One memory with all that hangs on it."""

    memory: Memory
    evidence: tuple[Evidence, ...]
    history: tuple[Memory, ...]
    """Every version of it, oldest first, itself among them."""
    insights: tuple[Memory, ...]
    """Insights that rest on it."""
    relations: tuple[Relation, ...]
    """How it hangs together with other memories."""
    relevance: float = 0.0
    """Its importance times its confidence, less with age: from 0 to 1, whatever is asked."""
    current_importance: float = 0.0
    """Its importance, less what it has lost while it was not used."""
    confirmations: int = 0
    """How often a learning was confirmed."""


class DocumentView(Struct, frozen=True):
    """One document with its parts' texts and the memories made from it."""

    document: Document
    parts: int
    memories: tuple[Memory, ...]


def visible_columns(snapshot: Snapshot, table: TableName) -> list[str]:
    """Return the columns that a listing shows: all but vectors and whole texts."""
    return [name for name in snapshot.schema(table).names if name not in _HIDDEN.get(table, ())]


class Page(Struct, frozen=True):
    """Which rows of a listing are wanted, and in which order."""

    sort: Sort | None = None
    """None for the newest first."""
    descending: bool = False
    limit: int | None = None
    offset: int | None = None

    def order(self, newest: str) -> Order:
        """Return the order of rows; where none is wanted, by the column with the date."""
        if self.sort is None:
            return ((newest, "desc"), ("id", "asc"))
        return ((_SORT_COLUMNS[self.sort], "desc" if self.descending else "asc"), ("id", "asc"))


_SORT_COLUMNS = {
    "created": "created_at",
    "known": "valid_from",
    "importance": "importance",
}
_OF_WEIGHTS = (*COLUMNS, "confidence", "created_at", "access_count")
_WEIGHED = ("relevance", "importance", "accessed")
"""What cannot be sorted by a column as it is stored."""


def list_memories(
    snapshot: Snapshot,
    filters: Filters,
    now: datetime,
    decay: Decay,
    page: Page,
    accesses: Sequence[Access] = (),
) -> pa.Table:
    """Return memories, the newest first unless the page says otherwise.

    Args:
        snapshot: Where they are.
        filters: What they are limited to.
        now: Decides what holds, and how old a memory is.
        decay: How importance fades, and after how many days a memory is half as relevant.
        page: Which of them.
        accesses: Those that upkeep has yet to add to their rows.
    """
    columns = visible_columns(snapshot, "memories")
    condition = _memories_of(snapshot, filters, now)
    if page.sort in _WEIGHED:
        ids = _by_weight(snapshot, condition, now, decay, page, accesses)
        return with_accesses(snapshot.get("memories", ids, columns), accesses)
    order = page.order("created_at")
    found = snapshot.scan("memories", condition, columns, order, page.limit, page.offset)
    return with_accesses(found, accesses)


def with_accesses(memories: pa.Table, accesses: Sequence[Access]) -> pa.Table:
    """Return memories with the accesses that upkeep has yet to add to their rows."""
    if not accesses:
        return memories
    import pyarrow as pa

    pending = {each.memory_id: each for each in accesses}
    columns = ["id", "access_count", "last_accessed_at"]
    rows = [_with_access(row, pending) for row in memories.select(columns).to_pylist()]
    for name in columns[1:]:
        place = memories.schema.get_field_index(name)
        field = memories.schema.field(place)
        values = pa.array([row[name] for row in rows], field.type)
        memories = memories.set_column(place, field, values)
    return memories


def _with_access(row: dict[str, Any], pending: Mapping[str, Access]) -> dict[str, Any]:
    access = pending.get(row["id"])
    if access is None:
        return row
    last = max(row["last_accessed_at"] or access.last_at, access.last_at)
    return row | {"access_count": row["access_count"] + access.count, "last_accessed_at": last}


def count_memories(snapshot: Snapshot, filters: Filters, now: datetime) -> int:
    """Return how many memories a listing without a limit has; see ``list_memories``."""
    return snapshot.count("memories", _memories_of(snapshot, filters, now))


def count_by_day(
    snapshot: Snapshot, filters: Filters, now: datetime, column: str
) -> Mapping[date, int]:
    """Return how many memories there are of each day (UTC); see ``list_memories``.

    Args:
        snapshot: Where they are.
        filters: What they are limited to.
        now: Decides what holds.
        column: The date that is looked at.
    """
    import pyarrow.compute as pc

    found = snapshot.scan("memories", _memories_of(snapshot, filters, now), [column])
    counts = pc.value_counts(found[column].cast("date32"))
    return {each["values"].as_py(): each["counts"].as_py() for each in counts}


def _memories_of(snapshot: Snapshot, filters: Filters, now: datetime) -> Expr:
    condition = memory_filter(filters, now)
    return condition & metadata_condition(filters, "memories", [snapshot])


def _by_weight(
    snapshot: Snapshot,
    condition: Expr,
    now: datetime,
    decay: Decay,
    page: Page,
    accesses: Sequence[Access],
) -> list[str]:
    """Return ids by what cannot be read off a column; see ``_weight``."""
    found = snapshot.scan("memories", condition, list(_OF_WEIGHTS), (("id", "asc"),))
    rows = with_accesses(found, accesses).to_pylist()
    rows.sort(key=lambda row: _weight(row, page.sort, now, decay), reverse=page.descending)
    first = page.offset or 0
    last = None if page.limit is None else first + page.limit
    return [row["id"] for row in rows[first:last]]


def _weight(row: Mapping[str, Any], sort: Sort | None, now: datetime, decay: Decay) -> float:
    """Return the importance of a memory as it is now, its relevance, or when it was shown."""
    if sort == "accessed":
        shown: datetime | None = row["last_accessed_at"]
        return shown.timestamp() if shown else 0.0
    if sort == "importance":
        return decay.importance(row, now)
    base, age = row["importance"], row["created_at"]
    return relevance(base, row["confidence"], age, now, int(decay.half_life))


def memory_order_values(
    rows: pa.Table, sort: Sort | None, now: datetime, decay: Decay
) -> pa.ChunkedArray:
    """Return what rows of :func:`list_memories` are sorted by."""
    import pyarrow as pa

    if sort in _WEIGHED:
        of_weights = rows.select(list(_OF_WEIGHTS)).to_pylist()
        weights = [_weight(row, sort, now, decay) for row in of_weights]
        return pa.chunked_array([pa.array(weights, pa.float64())])
    return rows[Page(sort).order("created_at")[0][0]]


def list_documents(
    snapshot: Snapshot,
    filters: Filters,
    *,
    incomplete: bool,
    page: Page,
) -> pa.Table:
    """Return documents without their texts, those ingested last first unless it is said.

    A file of many units has the names that its units have.
    """
    columns = visible_columns(snapshot, "documents")
    condition = _documents_of(snapshot, filters, incomplete=incomplete)
    order = page.order("ingested_at")
    found = snapshot.scan("documents", condition, columns, order, page.limit, page.offset)
    return _with_names_of_units(snapshot, found)


def _with_names_of_units(snapshot: Snapshot, documents: pa.Table) -> pa.Table:
    """Return documents, those that say what a file holds with the names in its units."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(pc.equal(documents["reader"], LISTING_READER)).as_py():
        return documents
    from memctl.ingest.file_units import names_in_units

    place = documents.schema.get_field_index("entities")
    rows = documents.select(["reader", *_OF_LISTINGS, "entities"]).to_pylist()
    found = names_in_units(snapshot, [row for row in rows if _is_live_listing(row)])
    names = [found.get(row["id"], row["entities"]) for row in rows]
    column = pa.array(names, documents.schema.field(place).type)
    return documents.set_column(place, documents.schema.field(place), column)


def _is_live_listing(row: Mapping[str, Any]) -> bool:
    return row["reader"] == LISTING_READER and row["status"] in LIVE_STATUSES


def count_documents(snapshot: Snapshot, filters: Filters, *, incomplete: bool) -> int:
    """Return how many documents a listing without a limit has; see ``list_documents``."""
    return snapshot.count("documents", _documents_of(snapshot, filters, incomplete=incomplete))


def _documents_of(snapshot: Snapshot, filters: Filters, *, incomplete: bool) -> Expr:
    condition = document_filter(filters)
    condition &= metadata_condition(replace(filters, entities=()), "documents", [snapshot])
    if filters.entities:
        condition &= _naming(snapshot, filters)
    if incomplete:
        condition &= where("array_length(missing) > 0")
    return condition & ~((col("reader") == SESSION_READER) & (col("part") > 0))  # one row each


def _naming(snapshot: Snapshot, filters: Filters) -> Expr:
    """Return the condition that a document names an entity, or that one of its units does."""
    from memctl.ingest.file_units import listings_with_units

    named = metadata_condition(Filters(entities=filters.entities), "documents", [snapshot])
    files = listings_with_units(snapshot, named)
    return named | col("id").is_in(files) if files else named


def resolve(snapshot: Snapshot, table: TableName, reference: str) -> str:
    """Return the id that starts with what was given.

    Raises:
        NotFoundError: None does.
        UsageError: Several do.
    """
    if len(reference) < _SHORTEST_PREFIX or not reference.isascii() or not reference.isprintable():
        raise _missing(table, reference)
    starts = (col("id") >= reference) & (col("id") < f"{reference}~")
    found = snapshot.scan(table, starts, ["id"], (("id", "asc"),), limit=_MAX_NAMED)[
        "id"
    ].to_pylist()
    if reference in found:
        return reference
    roots = list(dict.fromkeys(root_id(id_) for id_ in found))
    if not roots:
        raise _missing(table, reference)
    if len(roots) > 1:
        raise UsageError(f"several ids start with {reference!r}", f"such as {', '.join(roots)}")
    return roots[0]


def _missing(table: TableName, reference: str) -> NotFoundError:
    noun = {"documents": "document", "memories": "memory"}.get(table, table)
    if table == "memories" and reference.startswith("i_"):
        noun = "insight"
    hint = f"find its id with memctl {noun} list or memctl query"
    if reference[1:2] == "_" and len(reference) < _SHORTEST_PREFIX:
        hint = f"give at least {_SHORTEST_PREFIX} characters of its id"
    return NotFoundError(f"there is no {noun} {reference!r}", hint)


def memories_by_id(snapshot: Snapshot, ids: Sequence[str]) -> list[Memory]:
    """Return the memories with these ids, in their order; those that do not exist are skipped."""
    return memory_rows(snapshot.get("memories", ids, visible_columns(snapshot, "memories")))


def get_memory(snapshot: Snapshot, reference: str) -> Memory:
    """Return a memory by its id or a beginning of it.

    Raises:
        NotFoundError: There is none.
    """
    return memories_by_id(snapshot, [resolve(snapshot, "memories", reference)])[0]


def view_memory(snapshot: Snapshot, reference: str) -> MemoryView:
    """Return a memory with its evidence, its versions and the insights that rest on it.

    Raises:
        NotFoundError: There is none.
    """
    memory = get_memory(snapshot, reference)
    columns = visible_columns(snapshot, "memories")
    resting = snapshot.scan("memories", col("source_ids").has(memory.id), columns)
    touching = (col("source_id") == memory.id) | (col("target_id") == memory.id)
    touching = touching & ~BETWEEN_ENTITIES
    return MemoryView(
        memory=memory,
        evidence=tuple(_evidence(snapshot, memory)),
        history=tuple(history(snapshot, memory)),
        insights=tuple(m for m in memory_rows(resting) if m.level == "insight"),
        relations=tuple(relation_rows(snapshot.scan("relations", touching))),
    )


def relevance(
    importance: float, confidence: float, created_at: datetime, now: datetime, half_life: int
) -> float:
    """Return how relevant a memory is whatever is asked, from 0 to 1.

    Args:
        importance: Its importance.
        confidence: How certain it is.
        created_at: When it happened.
        now: The time.
        half_life: Days after which a memory is half as relevant.
    """
    age = max(0.0, (now - created_at).total_seconds() / _SECONDS_A_DAY)
    return float(importance * confidence * 0.5 ** (age / half_life))


def _evidence(snapshot: Snapshot, memory: Memory) -> Iterable[Evidence]:
    standing = [memory] if memory.start is not None else []
    sources = memories_by_id(snapshot, memory.source_ids) if memory.source_ids else []
    found = [*standing, *sources]
    ids = [m.document_id for m in found if m.document_id is not None]
    texts = dict(_texts(snapshot, ids)) if ids else {}
    for m in found:
        text = m.text
        if m.start is not None and m.document_id in texts:
            text = texts[m.document_id][m.start : m.end]
        yield Evidence(
            m.id, m.document_id, m.source, m.title, text, m.start, m.end, m.page, m.row,
            m.time_start, m.created_at,
        )  # fmt: skip


def _texts(snapshot: Snapshot, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
    found = snapshot.get("documents", list(dict.fromkeys(ids)), ["id", "text"])
    return zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True)


def history(snapshot: Snapshot, memory: Memory) -> list[Memory]:
    """Return every version of a memory and what took its place, oldest first.

    Facts that ended in favour of it, of whatever documents, are among them.
    """
    columns = visible_columns(snapshot, "memories")
    versions = {memory.id: memory}
    frontier = [memory]
    while frontier:
        ids = [m.id for m in frontier]
        later = [m.superseded_by for m in frontier if m.superseded_by]
        near = col("superseded_by").is_in(ids) | col("id").is_in(later)
        found = memory_rows(snapshot.scan("memories", near, columns))
        frontier = [m for m in found if m.id not in versions]
        versions |= {m.id: m for m in frontier}
    return sorted(versions.values(), key=_place_in_history)


def versions_of(snapshot: Snapshot, memory: Memory) -> list[Memory]:
    """Return a memory with its own earlier and later versions alone."""
    rows = {m.id: m for m in history(snapshot, memory)}
    found, frontier = {memory.id}, {memory.id}
    while frontier:
        pairs = [(m.id, m.superseded_by) for m in rows.values() if _has_next_version(m, rows)]
        beside = {b for a, b in pairs if a in frontier} | {a for a, b in pairs if b in frontier}
        frontier = {id_ for id_ in beside if id_ is not None} - found
        found |= frontier
    return [m for id_, m in rows.items() if id_ in found]


def _has_next_version(memory: Memory, rows: Mapping[str, Memory]) -> bool:
    later = rows.get(memory.superseded_by or "")
    return later is not None and is_next_version(_lineage(memory), _lineage(later))


def _lineage(memory: Memory) -> Lineage:
    return Lineage(memory.document_id, memory.created_at, memory.version)


def _place_in_history(memory: Memory) -> tuple[int, datetime, int, datetime, str]:
    version = memory.version if memory.level == "insight" else 0
    return version, memory.created_at, memory.version, memory.valid_from, memory.id


def _place(memory: Memory) -> tuple[bool, int, int, str]:
    """Return by what the memories of a document are listed: what is distilled first."""
    start = -1 if memory.start is None else memory.start
    return (memory.level != "memory", memory.turn or 0, start, memory.id)


def whole_text(snapshot: Snapshot, document: Document) -> str:
    """Return the text of a document in all of its parts; of a later part its own one alone."""
    if document.part:
        return document.text
    rows = snapshot.scan("documents", col("root_id") == document.root_id, ["part", "text"])
    return "".join(row["text"] for row in sorted(rows.to_pylist(), key=lambda row: row["part"]))


def view_document(snapshot: Snapshot, reference: str) -> DocumentView:
    """Return a document with the memories made from it.

    Raises:
        NotFoundError: There is none.
    """
    found = resolve(snapshot, "documents", reference)
    rows = _with_names_of_units(snapshot, snapshot.get("documents", [found]))
    document = document_rows(rows)[0]
    parts = snapshot.count("documents", col("root_id") == document.root_id)
    columns, own = visible_columns(snapshot, "memories"), col("document_id") == document.id
    if document.reader == SESSION_READER and found == document.root_id and parts > 1:
        whole = document_rows(snapshot.scan("documents", col("root_id") == document.root_id))
        whole.sort(key=lambda each: each.part)
        document = replace(document, text="".join(each.text for each in whole))
        own = col("document_id").is_in([each.id for each in whole])
    made = memory_rows(snapshot.scan("memories", own, columns))
    made.sort(key=_place)
    return DocumentView(document, parts, tuple(made))
