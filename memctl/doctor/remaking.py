"""Documents made anew from the passages that are left of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memctl.ids import root_id
from memctl.records import Document
from memctl.store.filters import col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.snapshot import Snapshot

MISSING = "the file, of which passages alone are left"
READER = "passages/1"
_COLUMNS = (
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
    from memctl.store.schema import documents_table

    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    passages: dict[str, list[Row]] = {}
    for row in snapshot.scan("memories", where, list(_COLUMNS)).to_pylist():
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
