"""What goes when something is forgotten, and taking it out of the tables.

Whole documents go with all their versions, memories with all of theirs, and with them whatever
rests on them alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import NotFoundError
from memctl.forget.search_patterns import SearchPattern
from memctl.forget.text_blocking import (
    KEPT_COLUMNS,
    block_out,
    block_text,
    mark_redacted,
    row_matches,
)
from memctl.graph.entity_names import name_key
from memctl.ids import root_id
from memctl.ingest.file_units import files_of_units, units_of
from memctl.literals import SUMMARY_HEADINGS
from memctl.memories.memory_views import get_memory, resolve, versions_of
from memctl.models.protocols import MODEL
from memctl.rows.references import in_portions
from memctl.rows.row_lifecycle import (
    dependent_rows,
    drop_orphan_entities,
    erase_rows,
    mark_without_memories,
)
from memctl.schema.arrow_tables import schemas
from memctl.store.tables.filter_expressions import Expr, col
from memctl.store.tables.snapshot import ScopedSnapshot

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

MAX_TEXTS = 64
SHORTEST_TEXT = 12
LONGEST_TEXT = 60
"""Letters of the pieces of text that are looked for afterwards, and how many of them."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_HEADINGS = (*SUMMARY_HEADINGS.values(), "Summary", "Topics", "People and things", "Turns")
_HEADING = re.compile(rf"(?:## )?(?:{'|'.join(_HEADINGS)}):?|# Session [\d -]+")
"""What stands in every summary of a conversation, whatever was said in it."""


class Selection(Struct, frozen=True):
    """What is to be forgotten; of one kind, but for a date that narrows a namespace or a
    conversation."""

    documents: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """Names; documents that have them stay, without them."""
    namespace: str | None = None
    session: str | None = None
    """A conversation, with what was stated in it."""
    before: datetime | None = None
    """What is of before that, or came before it."""
    whole: bool = False
    """Whether documents go that have the memories or names, instead of these alone."""


class ErasurePlan(Struct):
    """What is to be removed."""

    roots: list[str] = field(default_factory=list)
    """Documents that go whole, by the id of their first part."""
    parts: list[str] = field(default_factory=list)
    """All parts of those."""
    memories: set[str] = field(default_factory=set)
    insights: int = 0
    """How many of those are insights."""
    redacted: list[str] = field(default_factory=list)
    """Documents that stay and lose some of their text, by the id of their first part."""
    files: list[str] = field(default_factory=list)
    """Documents of files of many units that lose one of these; nothing is read from them again."""
    patterns: tuple[re.Pattern[str], ...] = ()
    """What they lose."""
    texts: tuple[str, ...] = ()
    """Some of what goes, letter by letter, to be looked for afterwards."""
    is_names: bool = False
    """Whether those are names, which are looked for as people write them."""
    hidden: frozenset[str] = frozenset()
    """Namespaces whose rows stay as they are."""

    def without(self, text: str) -> str:
        """Return a text with blocks in place of what is removed."""
        return block_text(text, self.patterns)


class ErasedRows(Struct, frozen=True):
    """What was removed besides what was planned."""

    names: frozenset[str]
    """Of entities that nothing names any more."""
    answers: frozenset[str]
    """Memories that do not say any more what they may have answered with."""


# --- finding out ---------------------------------------------------------------------------------


def plan_erasure(snapshot: Snapshot, selection: Selection) -> ErasurePlan:
    """Return what a selection removes.

    Raises:
        NotFoundError: There is no such document or memory.
    """
    plan = ErasurePlan()
    if isinstance(snapshot, ScopedSnapshot):
        plan.hidden = snapshot.hidden
    removed: list[str] = []
    if selection.documents:
        given = {root_id(resolve(snapshot, "documents", id_)) for id_ in selection.documents}
        roots = _with_versions(snapshot, given)
        units = _with_versions(snapshot, units_of(snapshot, roots))
        _take_documents(snapshot, plan, sorted({*roots, *units}))
    if (selection.namespace, selection.session, selection.before) != (None, None, None):
        _take_where(snapshot, plan, selection)
    if selection.memories:
        removed += _take_memories(snapshot, plan, selection)
    if selection.entities:
        _take_names(snapshot, plan, selection)
    plan.memories = _with_what_rests(snapshot, plan.memories)
    insights = _scan_ids(snapshot, "memories", plan.memories, ["level"])
    plan.insights = sum(row["level"] == "insight" for row in insights)
    plan.is_names = bool(selection.entities)
    roots_of_files = files_of_units(snapshot, {*plan.roots, *plan.redacted})
    plan.files = sorted(set(roots_of_files) - {*plan.roots, *plan.redacted})
    plan.texts = selection.entities or tuple(search_pieces([*removed, *_texts(snapshot, plan)]))
    return plan


def resolve_selection(
    states: Sequence[Snapshot], selection: Selection, deleted: Sequence[str]
) -> Selection:
    """Return a selection with the whole ids, which the first of some states that has one tells.

    Args:
        states: Of the tables, the present one first.
        selection: With beginnings of ids.
        deleted: Documents that none may have any more, and that are known nevertheless.

    Raises:
        NotFoundError: None has a document or memory.
    """

    def found(table: TableName, given: str) -> str:
        """Look for one."""
        for state in states:
            with suppress(NotFoundError):
                return resolve(state, table, given)
        known = [id_ for id_ in deleted if id_ == given] if table == "documents" else []
        return known[0] if known else resolve(states[0], table, given)

    return replace(
        selection,
        documents=tuple(found("documents", given) for given in selection.documents),
        memories=tuple(found("memories", given) for given in selection.memories),
    )


def known_selection(snapshot: Snapshot, selection: Selection) -> Selection:
    """Return the part of a selection that one state has."""

    def known(table: TableName, ids: Sequence[str]) -> tuple[str, ...]:
        """Leave out the others."""
        return tuple(snapshot.get(table, ids, ["id"])["id"].to_pylist()) if ids else ()

    documents = known("documents", selection.documents)
    return replace(selection, documents=documents, memories=known("memories", selection.memories))


def _limits(selection: Selection, came: str) -> Expr:
    """Return what is in the namespace or conversation, and is older or came earlier than a date."""
    limits: list[Expr] = []
    if selection.session is not None:
        limits.append(col("session_id") == selection.session)
    if selection.namespace is not None:
        limits.append(col("namespace") == selection.namespace)
    if selection.before is not None:
        limits.append((col("created_at") < selection.before) | (col(came) < selection.before))
    return reduce(and_, limits)


def _with_versions(snapshot: Snapshot, roots: Iterable[str]) -> list[str]:
    """Return the roots of documents with those of their earlier and later versions."""
    found = fresh = set(roots)
    while fresh:
        both: set[str] = set()
        for ids in in_portions(sorted(fresh)):
            near = col("root_id").is_in(ids) | col("superseded_by").is_in(ids)
            rows = snapshot.scan("documents", near, ["root_id", "superseded_by"]).to_pylist()
            both |= {row["root_id"] for row in rows}
            both |= {root_id(row["superseded_by"]) for row in rows if row["superseded_by"]}
        fresh = both - found
        found = found | both
    return sorted(found)


def _take_documents(snapshot: Snapshot, plan: ErasurePlan, roots: Sequence[str]) -> None:
    """Plan to remove whole documents, with every memory made from them."""
    plan.roots = sorted({*plan.roots, *roots})
    for some in in_portions(plan.roots):
        parts = snapshot.scan("documents", col("root_id").is_in(some), ["id"])["id"].to_pylist()
        plan.parts += parts
        for ids in in_portions(parts):
            rows = snapshot.scan("memories", col("document_id").is_in(ids), ["id"])
            plan.memories.update(rows["id"].to_pylist())


def _take_where(snapshot: Snapshot, plan: ErasurePlan, selection: Selection) -> None:
    """Plan to remove documents, and memories that belong to none."""
    documents = _limits(selection, "ingested_at")
    roots = snapshot.scan("documents", documents, ["root_id"])["root_id"].to_pylist()
    _take_documents(snapshot, plan, roots)
    stated = _limits(selection, "valid_from") & col("document_id").is_null()
    plan.memories.update(snapshot.scan("memories", stated, ["id"])["id"].to_pylist())


def _take_memories(snapshot: Snapshot, plan: ErasurePlan, selection: Selection) -> list[str]:
    """Plan to remove memories with all versions, and their words from their documents.

    Returns:
        The words.
    """
    found = [get_memory(snapshot, given) for given in selection.memories]
    versions = [each for memory in found for each in versions_of(snapshot, memory)]
    roots = sorted({root_id(each.document_id) for each in versions if each.document_id})
    if selection.whole:
        _take_documents(snapshot, plan, roots)
    elif roots:
        plan.redacted = roots
        plan.patterns = tuple(
            re.compile(re.escape(text)) for text in _words_of(snapshot, versions) if text.strip()
        )
        plan.memories |= _statements(snapshot, roots, plan.patterns)
    plan.memories.update(each.id for each in versions)
    return [each.text for each in versions]


def _words_of(snapshot: Snapshot, versions: Iterable[Any]) -> list[str]:
    """Return what memories say, and what stands in their documents where they are from."""
    words: list[str] = []
    for memory in versions:
        words.append(memory.text)
        if memory.document_id is not None and memory.start is not None:
            rows = snapshot.get("documents", [memory.document_id], ["text"]).to_pylist()
            words += [row["text"][memory.start : memory.end] for row in rows]
    sentences = [s for text in words for s in _SENTENCE_END.split(text) if len(s) >= SHORTEST_TEXT]
    return sorted(dict.fromkeys([*words, *sentences]), key=len, reverse=True)


def _take_names(snapshot: Snapshot, plan: ErasurePlan, selection: Selection) -> None:
    """Plan to remove a name: statements and insights that have it, and its letters elsewhere."""
    plan.patterns = tuple(SearchPattern(name, is_name=True).pattern for name in selection.entities)
    kept = KEPT_COLUMNS - {"external_id"} if selection.whole else KEPT_COLUMNS
    parts, statements = _naming(snapshot, plan.patterns, kept)
    roots = sorted({root_id(id_) for id_ in parts})
    if selection.whole:
        _take_documents(snapshot, plan, roots)
    else:
        plan.redacted = roots
    plan.memories |= statements


def _naming(
    snapshot: Snapshot, patterns: Sequence[re.Pattern[str]], kept: frozenset[str]
) -> tuple[set[str], set[str]]:
    """Return the documents, and the memories that are statements or stand alone, with a name."""
    documents = snapshot.each_row("documents", None, _text_columns("documents"))
    parts = {row["id"] for row in documents if row_matches(row, patterns, kept)}
    statements: set[str] = set()
    for row in snapshot.each_row("memories", None, _text_columns("memories")):
        if row_matches(row, patterns):
            if row["level"] != "evidence" or row["document_id"] is None:
                statements.add(row["id"])
            else:
                parts.add(row["document_id"])
    return parts, statements


def _statements(
    snapshot: Snapshot, roots: Sequence[str], patterns: Sequence[re.Pattern[str]]
) -> set[str]:
    """Return what was distilled from documents and says some of what goes.

    The gist of a model does, in its own words.
    """
    parts = snapshot.scan("documents", col("root_id").is_in(roots), ["id"])["id"].to_pylist()
    distilled = col("document_id").is_in(parts) & (col("level") == "memory")
    rows = snapshot.scan("memories", distilled, ["id", "text", "type", "method"]).to_pylist()
    return {
        row["id"]
        for row in rows
        if row_matches(row, patterns) or (row["type"] == "gist" and row["method"].startswith(MODEL))
    }


def _text_columns(table: TableName) -> list[str]:
    """Return the columns that hold text, ids among them."""
    import pyarrow as pa

    kinds = (pa.string(), pa.list_(pa.string()))
    return [item.name for item in schemas(1)[table] if item.type in kinds]


def _with_what_rests(snapshot: Snapshot, ids: set[str]) -> set[str]:
    """Return memories with the insights that rest on one of them, and what rests on them alone."""
    to_erase = _with_dependents(snapshot, ids)
    while True:
        resting: set[str] = set()
        for some in in_portions(sorted(to_erase)):
            where = col("source_ids").has_any(some) & ~(col("level") == "insight")
            rows = snapshot.scan("memories", where, ["id", "source_ids"]).to_pylist()
            resting |= {row["id"] for row in rows if to_erase.issuperset(row["source_ids"])}
        if resting <= to_erase:
            return to_erase
        to_erase = _with_dependents(snapshot, to_erase | resting)


def _with_dependents(snapshot: Snapshot, ids: set[str]) -> set[str]:
    return dependent_rows(snapshot, "memories", ids)["memories"]


def _texts(snapshot: Snapshot, plan: ErasurePlan) -> Iterator[str]:
    """Yield the texts that are removed."""
    for row in _scan_ids(snapshot, "documents", plan.parts, ["text", "summary"]):
        yield from (row["text"] or "", row["summary"] or "")
    for row in _scan_ids(snapshot, "memories", plan.memories, ["text"]):
        yield row["text"] or ""


def _scan_ids(
    snapshot: Snapshot, table: TableName, ids: Iterable[str], columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for some in in_portions(sorted(ids)):
        yield from snapshot.scan(table, col("id").is_in(some), columns).to_pylist()


def search_pieces(texts: Iterable[str]) -> list[str]:
    """Return pieces of texts that can be looked for, taken evenly from all of them."""
    lines = dict.fromkeys(
        piece
        for text in texts
        for line in _SENTENCE_END.split(text)
        if (piece := line.strip()) and not _HEADING.fullmatch(piece)
    )
    long = [line for line in lines if len(line) >= SHORTEST_TEXT] or list(lines)
    step = max(1, -(-len(long) // MAX_TEXTS))
    return [line[:LONGEST_TEXT].strip() for line in long[::step]]


def search_sentences(texts: Iterable[str]) -> list[str]:
    """Return pieces of what users and agents have stored that can be looked for elsewhere.

    Of more than one word: a tag, a state or a name in one row may stand in any other.
    """
    lines = (line.strip() for text in texts for line in _SENTENCE_END.split(text))
    said = [line for line in lines if len(line) >= SHORTEST_TEXT and len(line.split()) > 1]
    return search_pieces(said)


# --- doing it ------------------------------------------------------------------------------------


def carry_out_erasure(
    transaction: Transaction, plan: ErasurePlan, embedder: Callable[[], Embedder]
) -> ErasedRows:
    """Remove from the tables what was planned."""
    documents = _keep_deleted(transaction, sorted(plan.memories))
    erase_rows(transaction, "memories", plan.memories, drop_orphans=False)
    mark_without_memories(transaction, documents)
    transaction.deletions.remove_documents(plan.parts)
    erase_rows(transaction, "documents", plan.parts, drop_orphans=False)
    mark_redacted(transaction, plan.files)
    changed: set[str] = set()
    if plan.redacted:
        changed = block_out(
            transaction,
            plan.redacted,
            plan.patterns,
            embedder,
            drops_summaries=not plan.is_names,
            hidden=plan.hidden,
        )
    return ErasedRows(drop_names(transaction), frozenset(() if plan.is_names else changed))


def _keep_deleted(transaction: Transaction, ids: Sequence[str]) -> set[str]:
    """Keep what is removed from coming back with its document; return the documents."""
    rows = transaction.snapshot().get("memories", ids, ["id", "document_id"]).to_pylist()
    kept = {row["id"]: row["document_id"] for row in rows if row["document_id"] is not None}
    transaction.deletions.keep(kept)
    return set(kept.values())


def drop_names(transaction: Transaction) -> frozenset[str]:
    """Remove entities that nothing names any more; return their names, as names are compared."""
    gone = drop_orphan_entities(transaction)
    if not gone:
        return frozenset()
    left = transaction.snapshot().scan("entities", None, ["name", "type", "aliases"]).to_pylist()
    return frozenset(_keys(gone).difference(_keys(left)))


def _keys(entities: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return what the names of entities are compared by."""
    return {
        name_key(name, each["type"])
        for each in entities
        for name in (each["name"], *(each["aliases"] or ()))
    }
