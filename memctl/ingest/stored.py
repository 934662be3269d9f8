"""Documents as they are remembered, to be understood again where there is no file to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.ingest.batch import Stored
from memctl.ingest.chunking import Passage
from memctl.ingest.rows import as_given
from memctl.records import Document, Segment, SourceText
from memctl.understand.protocol import BY_MODEL

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

PASSAGE_COLUMNS = (
    "document_id", "start", "end", "heading", "page", "row", "time_start", "time_end", "speaker",
    "created_at", "turn",
)  # fmt: skip


REDACTED = "redacted"
"""In the metadata of a document of which something was forgotten: its file has it still."""


def stored_parts(snapshot: Snapshot, document: Document) -> tuple[Stored, ...]:
    """Return the parts of a document, in order, with the passages that they were cut into."""
    from memctl.store.filters import col
    from memctl.store.schema import document_rows

    rows = snapshot.scan("documents", col("root_id") == document.root_id)
    parts = sorted(document_rows(rows), key=lambda part: part.part)
    ids = [part.id for part in parts]
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    found = snapshot.scan("memories", where, list(PASSAGE_COLUMNS)).to_pylist()
    return tuple(stored(part, [r for r in found if r["document_id"] == part.id]) for part in parts)


def stored(document: Document, rows: Sequence[Mapping[str, Any]]) -> Stored:
    """Return one part of a document as it was understood, by the ``PASSAGE_COLUMNS`` of it."""
    ordered = sorted(rows, key=lambda row: (row["start"], row["end"]))
    passages = tuple(_passage(row, document.created_at) for row in ordered)
    return Stored(_text(document, passages), passages)


def _text(document: Document, passages: Sequence[Passage]) -> SourceText:
    return SourceText(
        text=document.text,
        media_type=document.media_type,
        reader=document.reader,
        segments=tuple(_segments(passages)),
        title=document.title,
        authors=document.authors,
        created_at=document.created_at,
        tags=document.tags,
        links=document.links,
        metadata=as_given(document.metadata),
        missing=tuple(what for what in document.missing if what not in BY_MODEL),
        part=document.part,
    )


def _passage(row: Mapping[str, Any], written: datetime) -> Passage:
    return Passage(
        row["start"],
        row["end"],
        "prose" if row["turn"] is None else "turn",
        row["heading"],
        row["page"],
        row["row"],
        row["time_start"],
        row["time_end"],
        row["speaker"],
        None if row["created_at"] == written else row["created_at"],
    )


def _segments(passages: Sequence[Passage]) -> list[Segment]:
    """The passages without what each repeats of the one before it."""
    found: list[Segment] = []
    reached = 0
    for p in passages:
        start, reached = max(p.start, reached), max(p.end, reached)
        found.append(
            Segment(
                start, reached, p.kind, p.heading, p.page, p.row, p.time_start, p.time_end,
                p.speaker, p.said_at,
            )
        )  # fmt: skip
    return found
