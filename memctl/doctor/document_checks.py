"""Whether what is cited stands where it is said to stand: ``document.text[start:end]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from memctl.doctor.findings import Examined, Finding, counted, damaged, ok, warning
from memctl.doctor.row_checks import Ids
from memctl.ids import memory_id
from memctl.ingest.reprocessing import PASSAGE_COLUMNS, stored_part
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

MANY_MEMORIES = 200_000
"""Above so many a sample is looked at; ids are hashes, so those that begin alike are one."""
READ_BYTES = 8 << 20
"""Of documents' texts, at once."""
_EVIDENCE = ["document_id", "start", "end", "text"]
_FRONT_MATTER = ("---", "+++")

Row = Mapping[str, Any]
Passages = Sequence[Row]


def check_citations(examined: Examined) -> Iterator[Finding]:
    """Compare verbatim memories with the documents that they are from."""
    if not examined.can_read("documents", "memories"):
        return
    rows = examined.states["memories"].rows
    prefix = "" if examined.deep else sample_prefix(rows)
    looked, wrong, gappy = 0, 0, 0
    for document, passages in documents_with_passages(examined.snapshot, prefix):
        text = document["text"]
        looked += len(passages)
        wrong += sum(not stands_there(text, passage) for passage in passages)
        gappy += bool(passages) and has_gap(text, passages)
    part = f"{looked:,} passages" + (f", a sample; --deep looks at all of {rows:,}" * bool(prefix))
    if wrong:
        yield damaged("citations", "memories", f"{wrong:,} of {part} do not stand where they say")
    if gappy:
        told = f"{counted(gappy, 'document')} of which passages are missing"
        yield warning("citations", "documents", told, "read them again: memctl document reprocess")
    if not wrong and not gappy:
        yield ok("citations", "memories", f"{part} stand where they say")


def sample_prefix(memories: int) -> str:
    """Return how the ids begin of a sample of the documents; empty where all can be looked at."""
    digits, share = 0, memories
    while share > MANY_MEMORIES:
        digits, share = digits + 1, share // 16
    return f"d_{'0' * digits}" if digits else ""


def documents_with_passages(snapshot: Snapshot, prefix: str = "") -> Iterator[tuple[Row, Passages]]:
    """Yield each document with its verbatim memories: id, part, status, text and summary."""
    where: Expr | None = col("id").like_glob(f"{prefix}*") if prefix else None
    columns = ["id", "part", "status", "text", "summary"]
    for batch in snapshot.batches("documents", where, columns, batch_bytes=READ_BYTES):
        rows = batch.to_pylist()
        passages = passages_of(snapshot, [row["id"] for row in rows])
        for row in rows:
            yield row, passages[row["id"]]


def passages_of(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Row]]:
    """Return the verbatim memories of documents, by document."""
    found: dict[str, list[Row]] = {id_: [] for id_ in ids}
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    for batch in snapshot.batches("memories", where, _EVIDENCE):
        for row in batch.to_pylist():
            found[row["document_id"]].append(row)
    return found


def stands_there(text: str, passage: Row) -> bool:
    """Tell whether a passage is what the text has between its offsets."""
    start, end = passage["start"], passage["end"]
    return start is None or end is None or text[start:end] == passage["text"]


def has_gap(text: str, passages: Passages) -> bool:
    """Tell whether passages leave out a part of the text; front matter is none of it."""
    spans = sorted((p["start"], p["end"]) for p in passages if p["start"] is not None)
    if not spans:
        return False
    reached = spans[0][0] if text.startswith(_FRONT_MATTER) else 0
    for start, end in (*spans, (len(text), len(text))):
        if start > reached and text[reached:start].strip():
            return True
        reached = max(reached, end)
    return False


Rows = Sequence[Mapping[str, Any]]


def documents_lacking_memories(
    snapshot: Snapshot, memories: Ids, deleted: Set[str]
) -> Iterator[str]:
    """Yield the ids of live documents of which a statement is not there that nobody deleted.

    Of what a model understood nothing can be told without it.

    Args:
        snapshot: Where they are.
        memories: The ids of all memories.
        deleted: Those of memories that somebody deleted.
    """
    import pyarrow as pa

    from memctl.schema.arrow_tables import document_rows
    from memctl.understanding import BuiltinUnderstander

    understander = BuiltinUnderstander()
    live = (col("status") == "indexed") & (col("method") == understander.method)
    for batch in snapshot.batches("documents", live, batch_bytes=READ_BYTES):
        documents = document_rows(pa.Table.from_batches([batch]))
        passages = _stored_passages(snapshot, [each.id for each in documents])
        texts = [stored_part(each, passages.get(each.id, ())).text for each in documents]
        for document, understood in zip(documents, understander.understand(texts), strict=True):
            made = {
                memory_id(document.id, each.type, each.start, each.end)
                for each in understood.distilled
            }
            if any(not memories.has(id_) for id_ in made - deleted):
                yield document.id


def _stored_passages(snapshot: Snapshot, ids: Sequence[str]) -> Mapping[str, Rows]:
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in snapshot.scan("memories", where, list(PASSAGE_COLUMNS)).to_pylist():
        if row["start"] is not None:
            found.setdefault(row["document_id"], []).append(row)
    return found
