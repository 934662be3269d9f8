"""Documents that lack memories which the built-in understanding draws from their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from memctl.doctor.citations import READ_BYTES
from memctl.doctor.ids import Ids
from memctl.ids import memory_id
from memctl.ingest.stored import PASSAGE_COLUMNS, stored
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

Rows = Sequence[Mapping[str, Any]]


def documents_lacking(snapshot: Snapshot, memories: Ids, deleted: Set[str]) -> Iterator[str]:
    """Yield the ids of live documents of which a statement is not there that nobody deleted.

    Of what a model understood nothing can be told without it.

    Args:
        snapshot: Where they are.
        memories: The ids of all memories.
        deleted: Those of memories that somebody deleted.
    """
    import pyarrow as pa

    from memctl.store.schema import document_rows
    from memctl.understand import BuiltinUnderstander

    understander = BuiltinUnderstander()
    live = (col("status") == "indexed") & (col("method") == understander.method)
    for batch in snapshot.batches("documents", live, batch_bytes=READ_BYTES):
        documents = document_rows(pa.Table.from_batches([batch]))
        passages = _passages(snapshot, [each.id for each in documents])
        texts = [stored(each, passages.get(each.id, ())).text for each in documents]
        for document, understood in zip(documents, understander.understand(texts), strict=True):
            made = {
                memory_id(document.id, each.type, each.start, each.end)
                for each in understood.distilled
            }
            if any(not memories.has(id_) for id_ in made - deleted):
                yield document.id


def _passages(snapshot: Snapshot, ids: Sequence[str]) -> Mapping[str, Rows]:
    where = col("document_id").is_in(ids) & (col("level") == "evidence")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in snapshot.scan("memories", where, list(PASSAGE_COLUMNS)).to_pylist():
        if row["start"] is not None:
            found.setdefault(row["document_id"], []).append(row)
    return found
