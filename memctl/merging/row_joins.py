"""Two versions of one row, joined: the same row comes out whichever of them is ours.

Rows that have one id and are not versions of one another get other ids.  A row is a mapping of
columns to values as Arrow gives them, without its vector.  Pure: nothing is read or written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from memctl.ids import memory_id, other_version_id, relation_id, root_id
from memctl.schema.arrow_tables import with_column
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.table_names import TableName
from memctl.sessions.folding import session_document, source_of
from memctl.store.ledger.content_merge import SessionSplit
from memctl.store.ledger.feedback_repositories import FeedbackEffect

Rows = Mapping[TableName, pa.Table]
Row = Mapping[str, Any]
_SAME_CONTENT = "indexed", "processing", "pending", "gone", "failed"
"""Statuses of a document that nothing has replaced, the best first."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def join_rows(table: TableName, one: Row, other: Row) -> dict[str, Any]:
    """Return what a row is that two knowledge bases have, each in its own version.

    What either says of it counts: tags and evidence of both, the earlier date on which it became
    known, the higher count.  What can be of one only is of the version that a newer program made,
    or that became known first.  A row that nothing has replaced holds if it does in either.

    A row that comes out joined with either of the two is itself.
    """
    first, second = sorted((one, other), key=lambda row: _rank(table, row))
    is_tie = _rank(table, first) == _rank(table, second)
    joined = {**first, **second}
    for column, join in _JOINS[table].items():
        joined[column] = join(first[column], second[column])
    for column in DECLARATIONS[table].json_columns:
        joined[column] = _merged_json(first[column], second[column], is_tie=is_tie)
    if table == "documents":
        joined["status"] = _status(first, second)
    elif table == "memories":
        joined["valid_to"] = _end(first, second)
    return joined


class JudgedImportance(Struct):
    """The importance of a memory in one knowledge base, and what judgements changed of it."""

    importance: float | None = None
    """None where it has no such memory."""
    effects: dict[str, FeedbackEffect] = field(default_factory=dict)
    """By the id of the judgement."""

    @property
    def base(self) -> float | None:
        """What it would be without judgements."""
        if self.importance is None:
            return None
        return _as_stored(self.importance - sum(each.delta for each in self.effects.values()))


def join_importance(one: JudgedImportance, other: JudgedImportance) -> JudgedImportance:
    """Return the higher importance before judgements, plus the effects of both sides' judgements.

    The effects come in the order of the judgements, each as far as it stays within 0 to 1, so that
    each can be taken back.  One that is being taken back in one of the two still counts.
    """
    bases = [side.base for side in (one, other) if side.base is not None]
    if not bases:
        return JudgedImportance()
    value = max(bases)
    joined = JudgedImportance()
    both = [*one.effects.values(), *other.effects.values()]
    for each in sorted(both, key=lambda e: (e.at, e.feedback_id, abs(e.wanted), e.wanted)):
        joined.effects[each.feedback_id] = each
    for id_, each in joined.effects.items():
        after = _as_stored(min(1.0, max(0.0, value + each.wanted)))
        joined.effects[id_] = replace(each, delta=after - value, is_applied=True)
        value = after
    joined.importance = value
    return joined


def _as_stored(importance: float) -> float:
    """Return an importance as the tables have it, so that what is joined again is the same."""
    return float(np.float32(importance))


def _rank(table: TableName, row: Row) -> tuple[Any, ...]:
    """Return what versions are ordered by; the last one says what only one can.

    It depends on nothing that joining changes in another way than to that of the last one.
    """
    known = row.get("ingested_at") or row.get("valid_from") or _EPOCH
    joined = {*_JOINS[table], *DECLARATIONS[table].json_columns, "status", "valid_to"}
    values = {key: str(value) for key, value in row.items() if key not in joined}
    own = json.dumps(values, sort_keys=True)
    return (row.get("pipeline_version") or 0, row.get("version") or 0, _EPOCH - known, own)


def _choose_given(choose: Callable[[Iterable[Any]], Any]) -> Callable[[Any, Any], Any]:
    def join(one: Any, other: Any) -> Any:
        given = [value for value in (one, other) if value is not None]
        return choose(given) if given else None

    return join


def _unless_open(left: Any, other: Any) -> Any:
    """Return the later of two ends; none where one is open."""
    return None if left is None or other is None else max(left, other)


def _union(one: Any, other: Any) -> Any:
    if one == other:
        return one
    return sorted({*(one or ()), *(other or ())})


def _merged_json(first: str | None, second: str | None, *, is_tie: bool) -> str:
    if first == second:
        return first or "{}"
    one, other = json.loads(first or "{}"), json.loads(second or "{}")
    if is_tie:
        both = one.keys() & other.keys()
        other |= {key: max(one[key], other[key], key=json.dumps) for key in both}
    return json.dumps({**one, **other}, sort_keys=True)


def _both(one: Any, other: Any) -> bool:
    return bool(one and other)


_earliest, _latest = _choose_given(min), _choose_given(max)
_JOINS: Mapping[TableName, Mapping[str, Callable[[Any, Any], Any]]] = {
    "documents": {
        "tags": _union,
        "importance": _latest,
        "created_at": _earliest,
        "ingested_at": _earliest,
        "superseded_by": _latest,
    },
    "memories": {
        "tags": _union,
        "importance": _latest,
        "valid_from": _earliest,
        "superseded_by": _latest,
        "version": _latest,
        "access_count": _latest,
        "last_accessed_at": _latest,
        "expires_at": _unless_open,
        "archived_at": _unless_open,
        "is_consolidated": _both,
    },
    "relations": {
        "memory_ids": _union,
        "weight": _latest,
        "confidence": _latest,
        "valid_from": _earliest,
        "valid_to": _unless_open,
    },
    "entities": {},
}


def _status(one: Row, other: Row) -> str:
    """Return what a document is: history where either knows a newer version of it."""
    found = {one["status"], other["status"]}
    if "superseded" in found:
        return "superseded"
    return next(status for status in _SAME_CONTENT if status in found)


def _end(one: Row, other: Row) -> datetime | None:
    """Return when a memory stopped to hold; where nothing has replaced it, when both had ended."""
    ends = [row["valid_to"] for row in (one, other)]
    if one["superseded_by"] or other["superseded_by"]:
        replaced = [row["valid_to"] for row in (one, other) if row["superseded_by"]]
        return min((end for end in replaced if end is not None), default=None)
    return _unless_open(*ends)  # type: ignore[no-any-return]


# --- other ids: of a version of a document, of a whole conversation ------------------------------


def ids_of_versions(rows: Rows, versions: Mapping[str, str]) -> dict[str, str]:
    """Return the ids that documents, their parts and what was made from them are to have.

    Args:
        rows: Documents and memories.
        versions: Root ids of those documents, each with what tells its version.
    """
    documents = [(id_, root_id(id_)) for id_ in rows["documents"]["id"].to_pylist()]
    memories = rows["memories"].select(["id", "document_id"]).to_pylist()
    made = [(row["id"], root_id(row["document_id"] or "")) for row in memories]
    return {
        id_: other_version_id(id_, versions[root])
        for id_, root in (*documents, *made)
        if root in versions
    }


def ids_of_conversations(rows: Rows, splits: Iterable[SessionSplit]) -> dict[str, str]:
    """Return the ids that conversations and what was made from them are to have.

    They are those that would be made of the turns under the new name, as turns that are not in the
    tables yet will be.
    """
    names = {session_document(*each.key): each for each in splits}
    found: dict[str, str] = {}
    lengths: dict[str, int] = {}
    for row in rows["documents"].select(["id", "root_id", "text"]).to_pylist():
        if (split := names.get(row["root_id"])) is not None:
            new = session_document(split.key[0], split.name)
            found[row["id"]] = row["id"].replace(row["root_id"], new)
            lengths[row["id"]] = len(row["text"])
    columns = ["id", "document_id", "type", "start", "end"]
    for row in rows["memories"].select(columns).to_pylist():
        id_, old, type_ = row["id"], row["document_id"], row["type"]
        if old in lengths:
            spans = ((row["start"] or 0, row["end"] or 0), (0, lengths[old]))
            made = {memory_id(old, type_, *each): each for each in spans}
            found[id_] = (
                memory_id(found[old], type_, *made[id_])
                if id_ in made
                else other_version_id(id_, names[root_id(old)].name)
            )
    return found


def renamed_rows(table: TableName, rows: pa.Table, mapping: Mapping[str, str]) -> pa.Table:
    """Return rows with other ids wherever an id stands."""
    for column in DECLARATIONS[table].id_columns:
        field = rows.schema.field(column)
        values = rows[column].to_pylist()
        if pa.types.is_list(field.type):
            new = [v and [mapping.get(each, each) for each in v] for v in values]
        else:
            new = [mapping.get(value, value) for value in values]
        rows = with_column(rows, column, new)
    if table != "relations":
        return rows
    ends = rows.select(["id", "source_id", "relation_type", "target_id"]).to_pylist()
    changed = set(mapping.values())
    ids = [
        relation_id(row["source_id"], row["relation_type"], row["target_id"])
        if changed & {row["source_id"], row["target_id"]}
        else row["id"]
        for row in ends
    ]
    return with_column(rows, "id", ids)


def moved_rows(
    table: TableName, rows: pa.Table, splits: Iterable[SessionSplit], known: Collection[str]
) -> pa.Table:
    """Return rows with the names that their conversations have now.

    Args:
        table: Which one.
        rows: Of one side, with the ids that they are to have.
        splits: The conversations of that side that get another name.
        known: Ids that the other side has, too: what both have noted of a conversation, outside
            of its document, stays.
    """
    if table == "relations":
        return rows
    splits = list(splits)
    roots = {session_document(each.key[0], each.name) for each in splits}
    names = {each.key: each.name for each in splits}
    columns = ["id", "namespace", "session_id", "source"]
    of = rows["id" if table == "documents" else "document_id"].to_pylist()
    sessions: list[str | None] = []
    sources: list[str] = []
    for row, document in zip(rows.select(columns).to_pylist(), of, strict=True):
        session, source = row["session_id"], row["source"]
        is_moving = root_id(document or "") in roots or row["id"] not in known
        name = names.get((row["namespace"], session)) if is_moving else None
        sessions.append(name or session)
        sources.append(source_of(name) if name and source == source_of(session) else source)
    return with_column(with_column(rows, "session_id", sessions), "source", sources)
