"""What was forgotten since a snapshot was made does not come back with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memctl.forget.erasure_plan import drop_names
from memctl.language.term_analysis import embedding_text
from memctl.rows.references import in_portions
from memctl.rows.row_lifecycle import erase_rows, replace_rows
from memctl.rows.supersession import reinstate_without
from memctl.schema.arrow_tables import VECTOR, vector_array
from memctl.schema.table_names import TABLES, TableName
from memctl.store.snapshots import LeftOut
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.protocols import Embedder
    from memctl.store.ledger.decision_repositories import ForgottenRepository
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction


def erase_forgotten(
    transaction: Transaction,
    now: Snapshot,
    book: ForgottenRepository,
    embedder: Callable[[], Embedder] | None,
) -> LeftOut:
    """Take out of a snapshot that is being restored what was forgotten since.

    Documents that have lost some of their words stay as they are now, or away.

    Args:
        transaction: In which it is being restored.
        now: The state before.
        book: Says what was forgotten.
        embedder: Gives what the snapshot's vectors are from; None where those of now are, too.

    Raises:
        ModelError: Vectors of what stays as it is cannot be made.
    """
    documents = memories = 0
    for ids in in_portions(sorted(book.gone())):
        first = col("id").is_in(ids) & (col("part") == 0)
        documents += transaction.snapshot().count("documents", first)
        for table in TABLES:
            there = transaction.snapshot().get(table, ids, ["id"])["id"].to_pylist()
            erased = erase_rows(transaction, table, there, drop_orphans=False)
            memories += erased.counts.get("memories", 0)
    redacted: list[str] = []
    for ids in in_portions(sorted(book.blocked())):
        first = col("id").is_in(ids) & (col("part") == 0)
        roots = sorted(transaction.snapshot().scan("documents", first, ["id"])["id"].to_pylist())
        _keep(transaction, now, roots, embedder)
        redacted += roots
    if documents or memories or redacted:
        drop_names(transaction)
    return LeftOut(documents, memories, tuple(redacted))


def _keep(
    transaction: Transaction,
    now: Snapshot,
    roots: Sequence[str],
    embedder: Callable[[], Embedder] | None,
) -> None:
    """Have documents, and what was made of them, be what they are now."""
    then = transaction.snapshot()
    of_documents = col("root_id").is_in(roots)
    documents, had = now.scan("documents", of_documents), _ids(then, "documents", of_documents)
    of_them = col("document_id").is_in(sorted({*documents["id"].to_pylist(), *had}))
    memories, had_memories = now.scan("memories", of_them), _ids(then, "memories", of_them)
    replace_rows(transaction, "documents", had, documents)
    if embedder is not None:
        memories = _again(memories, embedder())
    replace_rows(transaction, "memories", had_memories, memories)
    successors = {id_ for id_ in memories["superseded_by"].to_pylist() if id_ is not None}
    there = transaction.snapshot().get("memories", sorted(successors), ["id"])["id"].to_pylist()
    reinstate_without(transaction, sorted(successors.difference(there)))


def _ids(snapshot: Snapshot, table: TableName, where: Expr) -> list[str]:
    ids: list[str] = snapshot.scan(table, where, ["id"])["id"].to_pylist()
    return ids


def _again(memories: pa.Table, embedder: Embedder) -> pa.Table:
    """Return memories with vectors of another embedder."""
    texts = [
        embedding_text(row["title"] or "", row["heading"] or "", row["text"])
        for row in memories.select(["title", "heading", "text"]).to_pylist()
    ]
    at = memories.schema.get_field_index(VECTOR)
    return memories.set_column(at, VECTOR, vector_array(embedder.embed(texts)))
