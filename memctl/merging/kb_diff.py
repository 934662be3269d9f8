"""What one knowledge base knows and another one doesn't, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.consolidation.changes import find_changes
from memctl.consolidation.consolidator import LEAST_STRENGTH
from memctl.consolidation.statements import StemWeights, read_statements
from memctl.errors import UsageError
from memctl.merging.kb_merge import name_beside, require_all_users
from memctl.store.ledger.content_merge import compare_content
from memctl.store.ledger.content_tables import CONTENT_TABLES, export_content
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.consolidation.statements import Statement
    from memctl.knowledge_base import KnowledgeBase
    from memctl.schema.table_names import TableName
    from memctl.store.tables.snapshot import Snapshot

_LEVELS = ("memory", "insight")


class UniqueItem(Struct, frozen=True):
    """Something that only one of them knows."""

    kb: str
    kind: str
    """``document``, ``memory`` or ``insight``."""
    id: str
    text: str
    """A document's title, what a memory says."""
    source: str
    created_at: datetime


class Disagreement(Struct, frozen=True):
    """Statements of the two that do not say the same of one thing."""

    headline: str
    kind: str
    """``change`` where it is known which was said later, else ``contradiction``."""
    ours: tuple[str, ...]
    """What this one says, each with its source."""
    theirs: tuple[str, ...]
    memory_ids: tuple[str, ...]


class StoredDifference(Struct, frozen=True):
    """How many rows differ in one table of what users and agents have stored."""

    table: str
    ours: int
    """That only this one has."""
    theirs: int
    """That only the other one has."""
    differing: int
    """That both have, with other values."""


class KnowledgeBaseDiff(Struct, frozen=True):
    """How two knowledge bases differ."""

    kb: str
    other: str
    same: Mapping[str, int]
    """How much both have, by kind."""
    only: tuple[UniqueItem, ...]
    """What one of them has: ours first, each the latest first."""
    disagreements: tuple[Disagreement, ...]
    stored: tuple[StoredDifference, ...] = ()
    """Conversations, pools, skills, prompts and the like, without tables that are alike."""


def diff(kb: KnowledgeBase, other: KnowledgeBase) -> KnowledgeBaseDiff:
    """Compare what holds in two knowledge bases.

    Memories distilled from a document are not listed beside it where only one has the document.

    Raises:
        UsageError: They are one, or a user is named, who reads only some rows.
        AccessRefused: An agent is named, and another one keeps something of them to itself.
    """
    if kb.layout.folder.resolve() == other.layout.folder.resolve():
        raise UsageError(f"{kb.name} is compared with itself", "name two knowledge bases")
    require_all_users(kb)
    for each in (kb, other):
        each.resources.require_nothing_hidden("compare them without --agent")
    ours, theirs = kb.resources.snapshot(), other.resources.snapshot()
    mine, others = _current_rows(ours), _current_rows(theirs)
    same = {
        kind: sum(1 for key in mine.keys() & others.keys() if key[0] == kind)
        for kind in ("document", *_LEVELS)
    }
    name = name_beside(kb, other)
    only = [*_only(kb.name, mine, others), *_only(name, others, mine)]
    found = tuple(_disagreements(kb, ours, theirs))
    stored = tuple(_stored_differences(kb, other))
    return KnowledgeBaseDiff(kb.name, name, same, tuple(only), found, stored)


def _stored_differences(kb: KnowledgeBase, other: KnowledgeBase) -> Iterator[StoredDifference]:
    ours, theirs = (list(export_content(each.store.ledger)) for each in (kb, other))
    coming, only_ours = compare_content(ours, theirs), compare_content(theirs, ours)
    for declared in CONTENT_TABLES:
        name = declared.name
        counts = [each.get(name, 0) for each in (only_ours.added, coming.added, coming.differing)]
        if any(counts):
            yield StoredDifference(name, *counts)


_Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def _current_rows(snapshot: Snapshot) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the documents, memories and insights that hold, by kind and id."""
    rows: dict[tuple[str, str], Mapping[str, Any]] = {}
    live = (col("status") == "indexed") & (col("part") == 0)
    for row in _scan(snapshot, "documents", live, ["title"]):
        rows["document", row["id"]] = row
    said = col("valid_to").is_null() & col("level").is_in(_LEVELS)
    for row in _scan(snapshot, "memories", said, ["text", "level", "document_id"]):
        rows[row["level"], row["id"]] = row
    return rows


def _scan(
    snapshot: Snapshot, table: TableName, where: Expr, columns: list[str]
) -> Iterator[Mapping[str, Any]]:
    names = ["id", "source", "created_at", *columns]
    yield from snapshot.scan(table, where, names, order_by=[("created_at", "desc")]).to_pylist()


def _only(kb: str, rows: _Rows, others: _Rows) -> Iterator[UniqueItem]:
    documents = {key[1] for key in rows.keys() - others.keys() if key[0] == "document"}
    for (kind, id_), row in rows.items():
        parent = (row.get("document_id") or "").partition(".")[0]
        if (kind, id_) not in others and (kind == "document" or parent not in documents):
            text = row["title"] or row["source"] if kind == "document" else row["text"]
            yield UniqueItem(kb, kind, id_, text, row["source"], row["created_at"])


def _disagreements(kb: KnowledgeBase, ours: Snapshot, theirs: Snapshot) -> Iterator[Disagreement]:
    now = kb.resources.clock()
    mine, others = read_statements(ours, now), read_statements(theirs, now)
    here, there = ({each.memory.id for each in said} for said in (mine, others))
    found: list[Statement] = [*mine, *(each for each in others if each.memory.id not in here)]
    for finding in find_changes(found, StemWeights(found)):
        ids = [each.memory.id for each in finding.evidence]
        is_between = any(id_ not in there for id_ in ids) and any(id_ not in here for id_ in ids)
        if is_between and finding.strength >= LEAST_STRENGTH:
            yield Disagreement(
                finding.headline,
                finding.kind,
                tuple(each.citation for each in finding.evidence if each.memory.id in here),
                tuple(each.citation for each in finding.evidence if each.memory.id not in here),
                tuple(dict.fromkeys(ids)),
            )
