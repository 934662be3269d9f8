"""What consolidation looks at: the memories worth connecting, with the rare things they mention.

Worth connecting are gists, distilled and stated memories, and the passage of a document or table
that is only one passage long.  Passages of longer ones are represented by the document's gist;
turns of a conversation by what was distilled from them, since "see you then" connects everything
with everything.  Insights are never consolidated again, nor is what memctl writes by itself.

All of it is held as columns, so that finding what a memory shares with a hundred thousand others
costs a few look-ups.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from memctl.language.word_lists import ENGLISH_MONTHS, ENGLISH_WEEKDAYS
from memctl.literals import EXCHANGE
from memctl.store.tables.filter_expressions import Expr, col, ends_after, not_self_written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memctl.store.store import Snapshot

_COLUMNS_WITHOUT_VECTORS = [
    "id", "document_id", "namespace", "type", "level", "start", "entities", "search_text",
    "created_at", "is_consolidated", "vector",
]  # fmt: skip
MOST_FRESH = 50_000
MOST_KNOWN = 100_000
"""How many memories one run looks at: the oldest that are new, the newest that are known."""

GENERIC_NAMES = (
    *map(str.lower, (*ENGLISH_MONTHS, *ENGLISH_WEEKDAYS)),
    "today", "tomorrow", "yesterday", "ok", "okay", "thanks", "hello", "hi", "hey", "yes", "no",
    "time", "note", "notes", "remember", "todo", "re", "fwd",
)  # fmt: skip


class Postings:
    """Which rows mention which rare keys, both ways round.

    A key is rare when at least two documents have it and no more than ``most`` do: what only one
    has connects nothing, what many have says nothing.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        keys: NDArray[np.int64],
        documents: NDArray[np.int64],
        most: int,
    ) -> None:
        width = int(keys.max(initial=-1)) + 1
        pairs = np.unique(rows * width + keys) if len(rows) else rows
        rows, keys = (pairs // width, pairs % width) if len(pairs) else (pairs, pairs)
        by_document = np.unique(documents[rows] * width + keys) if len(rows) else rows
        frequency = np.bincount(by_document % width if width else by_document, minlength=width)
        rare = (frequency[keys] >= 2) & (frequency[keys] <= most)
        self._keys = keys[rare]
        self._row_starts = np.searchsorted(rows[rare], np.arange(len(documents) + 1))
        order = np.argsort(self._keys, kind="stable")
        self._rows = rows[rare][order]
        self._key_starts = np.searchsorted(self._keys[order], np.arange(width + 1))

    def keys(self, row: int) -> NDArray[np.int64]:
        """The rare keys of a row."""
        return self._keys[self._row_starts[row] : self._row_starts[row + 1]]

    def rows_sharing(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that share a rare key with this one, itself included, and how many each."""
        parts = [
            self._rows[self._key_starts[key] : self._key_starts[key + 1]] for key in self.keys(row)
        ]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found, counts = np.unique(np.concatenate(parts), return_counts=True)
        return found, counts


class Pool(Struct, frozen=True):
    """The memories of one run, by row number."""

    ids: list[str]
    row_of: dict[str, int]
    documents: NDArray[np.int64]
    namespaces: NDArray[np.int64]
    created_at: NDArray[np.int64]
    """Microseconds, for ordering alone."""
    vectors: NDArray[np.float16]
    names: Postings
    words: Postings
    fresh: list[int]
    """Rows to look at, oldest first: those not yet consolidated, or all of them."""


def load_pool(snapshot: Snapshot, now: datetime, *, again: bool = False) -> Pool:
    """Read what one run looks at; ``again`` with what has been looked at before."""
    is_new = col("is_consolidated") == False  # noqa: E712
    worth = _is_candidate(now)
    fresh = snapshot.scan(
        "memories",
        worth & is_new,
        _COLUMNS_WITHOUT_VECTORS,
        order_by=[("created_at", "asc")],
        limit=MOST_FRESH,
    )
    known = snapshot.scan(
        "memories",
        worth & ~is_new,
        _COLUMNS_WITHOUT_VECTORS,
        order_by=[("created_at", "desc")],
        limit=MOST_KNOWN,
    )
    return make_pool(_without_split(snapshot, pa.concat_tables([fresh, known])), again=again)


def count_waiting(snapshot: Snapshot, now: datetime, within: Expr | None = None) -> int:
    """How many memories the next run would look at, all or those that a condition means."""
    is_new = col("is_consolidated") == False  # noqa: E712
    condition = _is_candidate(now) & is_new
    columns = ["document_id", "type", "level"]
    rows = snapshot.scan("memories", condition if within is None else condition & within, columns)
    return int(_without_split(snapshot, rows).num_rows)


def _is_candidate(now: datetime) -> Expr:
    is_valid = ends_after("valid_to", now) & ends_after("expires_at", now)
    whole = (
        (col("level") == "evidence")
        & (col("type") == "passage")
        & (col("start").is_null() | (col("start") == 0))
        & col("turn").is_null()
    )
    worth = ((col("level") == "memory") & (col("type") != EXCHANGE)) | whole
    return is_valid & worth & not_self_written()


def _without_split(snapshot: Snapshot, rows: pa.Table) -> pa.Table:
    """Leave out first passages of documents that have more passages or a gist."""
    is_passage = pc.equal(rows["level"], "evidence")
    gists = snapshot.scan("memories", col("type") == "gist", ["document_id"])["document_id"]
    later = (col("level") == "evidence") & (col("type") == "passage") & (col("start") > 0)
    if pc.any(is_passage).as_py():
        split = snapshot.scan("memories", later, ["document_id"])["document_id"]
        gists = pa.chunked_array([*gists.chunks, *split.chunks], pa.string())
    represented = pc.is_in(rows["document_id"], value_set=gists, skip_nulls=True)
    return rows.filter(pc.invert(pc.and_(is_passage, represented)))


def make_pool(rows: pa.Table, *, again: bool = False) -> Pool:
    """Index rows of the ``memories`` table; ``again`` where all of them count as fresh."""
    rows = rows.sort_by([("created_at", "ascending"), ("id", "ascending")])
    documents = _codes(pc.coalesce(rows["document_id"], rows["id"]))
    count = int(documents.max(initial=-1)) + 1
    ids = rows["id"].to_pylist()
    is_known = rows["is_consolidated"].to_numpy(zero_copy_only=False).astype(bool) & (not again)
    return Pool(
        ids=ids,
        row_of={id_: row for row, id_ in enumerate(ids)},
        documents=documents,
        namespaces=_codes(rows["namespace"]),
        created_at=rows["created_at"].cast(pa.int64()).to_numpy(),
        vectors=_matrix(rows["vector"]),
        names=_postings(_named_entities(rows["entities"]), documents, most_documents(count, 12)),
        words=_postings(_term_lists(rows["search_text"]), documents, most_documents(count, 8)),
        fresh=[int(row) for row in np.flatnonzero(~is_known)],
    )


def most_documents(count: int, always: int) -> int:
    """How many of ``count`` documents may mention a thing for it still to tell them apart."""
    return max(2, min(max(always, int(2 * np.log2(max(count, 1)))), 2 * count // 3))


def _named_entities(entities: pa.ChunkedArray) -> pa.ListArray:
    """Entities case-folded, those that name nothing in particular left out."""
    lists = _one(entities)
    names = pc.utf8_lower(pc.list_flatten(lists))
    dull = pc.is_in(names, value_set=pa.array(GENERIC_NAMES))
    return _filter_lists(lists, names, pc.and_(pc.invert(dull), _is_word(names)))


def _term_lists(search_text: pa.ChunkedArray) -> pa.ListArray:
    """The terms of the search text, without numbers and the shortest."""
    lists = _one(pc.utf8_split_whitespace(search_text))
    words = pc.list_flatten(lists)
    return _filter_lists(lists, words, _is_word(words))


def _is_word(values: pa.Array) -> pa.Array:
    return pc.and_(pc.greater(pc.utf8_length(values), 2), pc.match_substring_regex(values, r"\pL"))


def _filter_lists(lists: pa.ListArray, values: pa.Array, keep: pa.Array) -> pa.ListArray:
    parents = pc.list_parent_indices(lists).filter(keep)
    counts = np.bincount(np.asarray(parents), minlength=len(lists))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.filter(keep))


def _one(column: pa.ChunkedArray) -> Any:
    joined = column.combine_chunks()
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _postings(lists: pa.ListArray, documents: NDArray[np.int64], most: int) -> Postings:
    parents = np.asarray(pc.list_parent_indices(lists), dtype=np.int64)
    encoded = pc.list_flatten(lists).dictionary_encode()
    keys = np.asarray(encoded.indices, dtype=np.int64)
    return Postings(parents, keys, documents, most)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Number the distinct values."""
    return np.asarray(_one(column).dictionary_encode().indices, dtype=np.int64)


def _matrix(column: pa.ChunkedArray) -> NDArray[np.float16]:
    width = column.type.list_size
    flat = [np.asarray(chunk.flatten(), dtype=np.float16) for chunk in column.chunks]
    joined = np.concatenate(flat) if flat else np.empty(0, np.float16)
    return joined.reshape(-1, width)
