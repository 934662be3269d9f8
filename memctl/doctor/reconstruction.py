"""Rows made anew from the rows that are left: documents, and what tells a version's next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memctl.ids import root_id, stated_memory_id
from memctl.records import Document
from memctl.rows.row_changes import set_columns
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


MISSING = "the file, of which passages alone are left"
READER = "passages/1"
_PASSAGE_COLUMNS = (
    "id", "document_id", "text", "start", "end", "namespace", "created_at", "title", "source",
    "external_id", "session_id", "entities", "topics", "keywords", "tags", "importance",
)  # fmt: skip

Row = Mapping[str, Any]


def documents_from_passages(
    snapshot: Snapshot, ids: Sequence[str], now: datetime
) -> tuple[pa.Table, list[str]]:
    """Return rows of documents that have what their passages have, where they have it.

    Args:
        snapshot: Where the passages are.
        ids: Of documents that are not there.
        now: When they become known.

    Returns:
        The rows, and the ids of documents of which no passage is left.
    """
    from memctl.schema.arrow_tables import documents_table

    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    passages: dict[str, list[Row]] = {}
    for row in snapshot.scan("memories", where, list(_PASSAGE_COLUMNS)).to_pylist():
        if row["start"] is not None:
            passages.setdefault(row["document_id"], []).append(row)
    made = [_document(id_, rows, now) for id_, rows in passages.items()]
    return documents_table(made), [id_ for id_ in ids if id_ not in passages]


def _document(id_: str, passages: Sequence[Row], now: datetime) -> Document:
    text, first = _text(passages), passages[0]
    content = text.encode("utf-8", "replace")
    part = id_.partition(".")[2]
    return Document(
        id=id_,
        root_id=root_id(id_),
        part=int(part or 0),
        external_id=first["external_id"],
        namespace=first["namespace"],
        source=first["source"],
        title=first["title"],
        media_type="text/plain",
        sha256=sha256(content).hexdigest(),
        size=len(content),
        status="indexed",
        text=text,
        summary="",
        entities=_all(passages, "entities"),
        topics=_all(passages, "topics"),
        keywords=_all(passages, "keywords"),
        importance=first["importance"],
        language="",
        tags=_all(passages, "tags"),
        links=(),
        authors=(),
        dates=(),
        missing=(MISSING,),
        reader=READER,
        method="",
        signals={},
        pipeline_version=1,
        created_at=first["created_at"],
        ingested_at=now,
        session_id=first["session_id"],
    )


def _text(passages: Sequence[Row]) -> str:
    """Return the passages at their offsets, with blanks where nothing is left."""
    text = ""
    for row in sorted(passages, key=lambda row: (row["start"], row["end"])):
        text = text[: row["start"]].ljust(row["start"]) + row["text"] + text[row["end"] :]
    return text


def _all(passages: Sequence[Row], column: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for row in passages for value in row[column] or ()))


_IDENTITY_COLUMNS = ("id", "document_id", "created_at", "version")
_VERSION_COLUMNS = (*_IDENTITY_COLUMNS, "namespace", "type", "text", "valid_from")

VersionRow = Mapping[str, Any]


def unended_predecessors(snapshot: Snapshot) -> dict[str, VersionRow]:
    """Return memories that hold beside their own next version, each with that version."""
    later: dict[tuple[str | None, datetime, int], list[VersionRow]] = {}
    for row in snapshot.scan("memories", col("version") > 1, list(_VERSION_COLUMNS)).to_pylist():
        if row["id"].startswith("m_"):
            place = (row["document_id"], row["created_at"], row["version"] - 1)
            later.setdefault(place, []).append(row)
    found: dict[str, VersionRow] = {}
    held = col("superseded_by").is_null() & (col("level") == "memory")
    for batch in snapshot.batches("memories", held, list(_IDENTITY_COLUMNS)) if later else ():
        for row in batch.to_pylist():
            for new in later.get((row["document_id"], row["created_at"], row["version"]), ()):
                if _is_next(row["id"], new):
                    found[row["id"]] = new
    return found


def _is_next(old: str, new: VersionRow) -> bool:
    salt = f"{old}/{new['version']}"
    made = stated_memory_id(new["namespace"], new["type"], new["text"], salt=salt)
    return bool(made == new["id"])


def end_predecessors(transaction: Transaction, pairs: Mapping[str, VersionRow]) -> None:
    """Let memories end where their next versions begin."""
    set_columns(
        transaction,
        "memories",
        pairs.keys(),
        valid_to=[row["valid_from"] for row in pairs.values()],
        superseded_by=[row["id"] for row in pairs.values()],
    )
