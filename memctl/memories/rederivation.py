"""Links and vectors of documents made anew from stored texts; no file is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memctl.graph.derivation import LINKS_TO, derive_links, pages_of
from memctl.ingest.document_records import MOST_LINKS
from memctl.language.inline_tags import find_wikilinks
from memctl.links.link_records import LinkExtraction, VectorRenewal
from memctl.memories.reembedding import EMBEDDED_COLUMNS, embedded_texts
from memctl.rows.derived_rows import add_missing
from memctl.rows.row_changes import amend_rows, set_columns
from memctl.rows.row_lifecycle import drop_orphan_entities, erase_rows
from memctl.rows.supersession import LIVE_STATUSES
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.protocols import Embedder
    from memctl.records import Document
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

_DOCUMENTS_A_STEP = 256
_TEXTS_A_STEP = 256
_CODE = "code"


def extract_links(
    store: Store, ids: Sequence[str] = (), *, dry_run: bool = False
) -> LinkExtraction:
    """Extract the links of live documents from their texts again and replace the stored ones.

    Args:
        store: Where they are.
        ids: Ids of documents; all of them where none is given.
        dry_run: Write nothing; report what would come of it.

    Raises:
        LockedError: Another process is writing and does not stop.
    """
    if dry_run:
        return _extract(store.snapshot(), ids, None)
    with store.write() as transaction:
        return _extract(transaction.snapshot(), ids, transaction)


def _extract(
    snapshot: Snapshot, ids: Sequence[str], transaction: Transaction | None
) -> LinkExtraction:
    """Find the links of documents; write them where there is a transaction."""
    looked = edges = changed = 0
    gone: set[str] = set()
    for documents in _documents(snapshot, ids):
        current = [replace(each, links=_links(each)) for each in documents]
        pairs = zip(current, documents, strict=True)
        other = [(new, old) for new, old in pairs if new.links != old.links]
        looked += sum(not each.part for each in documents)
        changed += len(other)
        edges += sum(len(pages_of(each.links)) for each in current)
        gone.update(page for new, old in other for page in pages_of(old.links))
        if transaction is not None:
            _write(transaction, current, [new for new, _ in other])
    if transaction is not None and gone:
        drop_orphan_entities(transaction, gone)
    return LinkExtraction(looked, edges, changed)


def _links(document: Document) -> tuple[str, ...]:
    if document.doc_type == _CODE:  # in which brackets are no links
        return document.links
    return find_wikilinks(document.text)[:MOST_LINKS]


def _write(
    transaction: Transaction, documents: Sequence[Document], changed: Sequence[Document]
) -> None:
    """Replace the links of documents with those given."""
    set_columns(
        transaction,
        "documents",
        [each.id for each in changed],
        links=[list(each.links) for each in changed],
    )
    entities, relations = derive_links(transaction.snapshot(), documents)
    own = col("source_id").is_in([each.id for each in documents])
    stored = transaction.snapshot().scan(
        "relations", own & (col("relation_type") == LINKS_TO), ["id"]
    )
    erase_rows(transaction, "relations", set(stored["id"].to_pylist()) - relations.keys())
    add_missing(transaction, entities, relations)


def _documents(snapshot: Snapshot, ids: Sequence[str]) -> Iterator[list[Document]]:
    from memctl.schema.arrow_tables import document_rows

    found = snapshot.scan("documents", _live(ids), ["id"])["id"].to_pylist()
    for at in range(0, len(found), _DOCUMENTS_A_STEP):
        yield document_rows(snapshot.get("documents", found[at : at + _DOCUMENTS_A_STEP]))


def _live(ids: Sequence[str]) -> Expr:
    live = col("status").is_in(LIVE_STATUSES)
    return live & col("root_id").is_in(list(ids)) if ids else live


def renew_vectors(
    store: Store,
    embedder: Callable[[], Embedder],
    ids: Sequence[str] = (),
    *,
    dry_run: bool = False,
) -> VectorRenewal:
    """Make the vectors of the memories of live documents anew.

    Args:
        store: Where they are.
        embedder: Gives the embedder; called only when there is something to embed.
        ids: Ids of documents; all of them where none is given.
        dry_run: Embed and write nothing; report of how many memories it would be.

    Raises:
        LockedError: Another process is writing and does not stop.
        ModelError: The embedder cannot do it; what was done is kept.
    """
    import pyarrow as pa

    from memctl.schema.arrow_tables import VECTOR, vector_array

    snapshot = store.snapshot()
    parts = snapshot.scan("documents", _live(ids), ["id", "part"]).to_pylist()
    owners = [part["id"] for part in parts]
    memories: list[str] = []
    for at in range(0, len(owners), _DOCUMENTS_A_STEP):
        own = col("document_id").is_in(owners[at : at + _DOCUMENTS_A_STEP])
        memories += snapshot.scan("memories", own, ["id"])["id"].to_pylist()
    for at in range(0, 0 if dry_run else len(memories), _TEXTS_A_STEP):
        rows = snapshot.get("memories", memories[at : at + _TEXTS_A_STEP], EMBEDDED_COLUMNS)
        vectors = vector_array(embedder().embed(embedded_texts(rows)))
        with store.write() as transaction:
            there = transaction.snapshot().get("memories", rows["id"].to_pylist(), ["id"])
            made = pa.table({"id": rows["id"], VECTOR: vectors})
            amend_rows(transaction, "memories", _those(made, there))
    return VectorRenewal(sum(not part["part"] for part in parts), len(memories))


def _those(rows: pa.Table, present: pa.Table) -> pa.Table:
    """Return the rows that have not gone meanwhile."""
    import pyarrow.compute as pc

    return rows.filter(pc.is_in(rows["id"], value_set=present["id"].combine_chunks()))
