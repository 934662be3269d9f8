"""Rows get other ids, wherever these stand: of a version of a document, of a whole conversation.

Pure: nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from memctl.ids import memory_id, other_version_id, relation_id, root_id
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.table_names import TableName
from memctl.sessions.folding import session_document, source_of
from memctl.store.ledger.content_merge import SessionSplit

Rows = Mapping[TableName, pa.Table]


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
        rows = _with_column(rows, column, new)
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
    return _with_column(rows, "id", ids)


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
    return _with_column(_with_column(rows, "session_id", sessions), "source", sources)


def _with_column(rows: pa.Table, column: str, values: list[Any]) -> pa.Table:
    field = rows.schema.field(column)
    place = rows.column_names.index(column)
    return rows.set_column(place, field, pa.array(values, field.type))
