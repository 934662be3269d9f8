"""A knowledge base's tables as they were at one commit, to read from.

A snapshot never changes and needs no lock; whatever is written meanwhile is not in it.  Files that
are gone because the whole knowledge base has been renamed or deleted are no damage.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import DamagedError, UsageError
from memctl.schema.arrow_tables import VECTOR, defaults, schemas, vector_rows, with_all_columns
from memctl.schema.declarations import OF_NAMESPACES
from memctl.schema.table_names import TableName
from memctl.store.tables.engine import (
    bounded_scan,
    damaged_error,
    is_about_files,
    lance,
    reason,
    without_panics,
)
from memctl.store.tables.filter_expressions import (
    Constant,
    Constants,
    Expr,
    both,
    col,
    is_user_written,
    render,
)
from memctl.store.tables.indexes import REFINEMENT, probes

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment, LanceScanner
    from numpy.typing import NDArray

    from memctl.store.file_caches import DerivedCache
    from memctl.store.tables.engine import Datasets

Order = Sequence[tuple[str, Literal["asc", "desc"]]]

IDS_A_LOOKUP = 10_000
SCORE = "_score"
DISTANCE = "_distance"
ROW = "_rowoffset"
"""The number of a row, which holds for this one version of its table; may be read as a column."""
ROW_ID = "_rowid"
"""What the engine itself tells a row by, as a column."""
_SQL_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.timestamp("us", tz="UTC"): "timestamp",
}
"""Of columns in the engine's dialect; any other one holds text."""


class Snapshot:
    """The tables at one set of versions.

    They may be of an earlier schema: a table that isn't there yet reads as empty, a column that
    isn't there yet as its default.
    """

    def __init__(
        self,
        datasets: Datasets,
        versions: Mapping[TableName, int],
        dimension: int,
        require_in_place: Callable[[], None] = lambda: None,
        derived: DerivedCache | None = None,
    ) -> None:
        self.derived = derived
        """What is kept of it on disk; None of what is not committed."""
        self.versions: Mapping[TableName, int] = dict(versions)
        self._datasets = datasets
        self._require_in_place = require_in_place
        self.dimension = dimension
        self._schemas = schemas(dimension)
        self._opened: dict[TableName, LanceDataset] = {}
        self._missing: dict[TableName, Constants] = {}

    @property
    def state(self) -> str:
        """Tells these tables from any others: their versions, and the files that they are in.

        A table that was put back from a backup may get the number of a version again.

        Raises:
            DamagedError: A table cannot be read.
        """
        return self.state_of(*self.versions)

    def state_of(self, *tables: TableName) -> str:
        """Tells some tables from any others, as ``state`` does."""
        files = {
            table: [part.metadata.to_json() for part in self.dataset(table).get_fragments()]
            for table in tables
        }
        versions = {table: self.versions.get(table) for table in tables}
        return json.dumps([versions, files], sort_keys=True)

    def schema(self, table: TableName) -> pa.Schema:
        """Return the schema of a table."""
        return self._schemas[table]

    def dataset(self, table: TableName) -> LanceDataset:
        """Return the engine's own handle on a table, for reading; opened on first use.

        Raises:
            DamagedError: The table cannot be read.
            KnowledgeBaseNotFound: The knowledge base has been renamed or deleted meanwhile.
        """
        if table not in self._opened:
            try:
                self._opened[table] = (
                    self._datasets.at(table, self.versions[table])
                    if table in self.versions
                    else self._datasets.empty(table, self._schemas[table])
                )
            except DamagedError:
                self._require_in_place()
                raise
        return self._opened[table]

    def missing_columns(self, table: TableName) -> Constants:
        """Return the columns that a table has not got yet, with the value that all rows have."""
        if table not in self._missing:
            there = {*self.dataset(table).schema.names, VECTOR}
            self._missing[table] = {
                item.name: _constant(item.type, defaults(table)[item.name])
                for item in self._schemas[table]
                if item.name not in there and item.name in defaults(table)
            }
        return self._missing[table]

    def scan(
        self,
        table: TableName,
        where: Expr | None = None,
        columns: Sequence[str] | None = None,
        order_by: Order = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> pa.Table:
        """Return rows of a table; without ``columns`` all of them, vectors included.

        Raises:
            UsageError: A column does not exist, or a user's condition cannot be used.
            DamagedError: The table cannot be read.
        """
        names = list(columns) if columns is not None else self._schemas[table].names
        # lance 13 fails to order by a column that it does not read ("TakeExec requires ...").
        read = list(dict.fromkeys([*names, *(name for name, _ in order_by)]))
        with self._translate_errors(table, where):
            ordering = _ordering(
                [by for by in order_by if by[0] not in self.missing_columns(table)]
            )
            # lance 13 panics on a limit of 0 beside an order ("assertion failed: k > 0").
            most = 1 if limit == 0 else limit
            rows = self._read(table, where, read, limit=most, offset=offset, order_by=ordering)
        return rows.select(names).slice(0, limit)

    def batches(
        self,
        table: TableName,
        where: Expr | None = None,
        columns: Sequence[str] | None = None,
        *,
        batch_bytes: int | None = None,
    ) -> pa.RecordBatchReader:
        """Return rows of a table as a stream of bounded size.

        Args:
            table: Which one.
            where: A condition; by default none.
            columns: By default all.
            batch_bytes: So many bytes at most in a batch; by default 8,192 rows, however long.

        Raises:
            UsageError, DamagedError: As :meth:`scan`; reading the stream can raise them too.
        """
        options = {} if batch_bytes is None else bounded_scan(batch_bytes)
        with self._translate_errors(table, where):
            reader = self._scanner(table, where, columns, **options).to_reader()
            schema = reader.schema
            if self.missing_columns(table):
                names = list(columns) if columns is not None else self._schemas[table].names
                schema = with_all_columns(schema.empty_table(), table, names).schema
        return pa.RecordBatchReader.from_batches(schema, self._stream(table, where, reader, schema))

    def each_row(
        self, table: TableName, where: Expr | None, columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield rows of a table one by one, read as :meth:`batches` does."""
        for batch in self.batches(table, where, columns):
            yield from batch.to_pylist()

    def get(
        self, table: TableName, ids: Sequence[str], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the rows with these ids in their order; ids that do not exist are skipped."""
        wanted = list(columns) if columns is not None else self._schemas[table].names
        asked = wanted if "id" in wanted else ["id", *wanted]
        distinct = list(dict.fromkeys(ids))
        parts = [
            self.scan(table, col("id").is_in(distinct[at : at + IDS_A_LOOKUP]), asked)
            for at in range(0, max(len(distinct), 1), IDS_A_LOOKUP)
        ]
        found = pa.concat_tables(parts)
        places = pc.index_in(pa.array(ids, pa.string()), value_set=found["id"])
        return found.take(places.drop_null()).select(wanted)

    def rows(self, table: TableName, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return the rows of these numbers (``ROW``) in their order; faster than by their ids."""
        self._check_columns(table, columns)
        with self._translate_errors(table, None):
            there = self._present_columns(table, columns)
            rows = self.dataset(table).take(pa.array(numbers, pa.uint64()), columns=there)
        return with_all_columns(rows, table, columns)

    def spread_rows(self, table: TableName, count: int, columns: Sequence[str]) -> pa.Table:
        """Return some rows from all over a table, the first and the last among them."""
        return self.rows(table, spread_positions(self.count(table), count), columns)

    def rows_unlike(
        self, other: Snapshot, table: TableName, where: Expr | None, columns: Sequence[str]
    ) -> pa.Table:
        """Return the rows in files that the table has not got, or has changed, in another snapshot.

        All that the two differ in is among them.  Raises as :meth:`scan` does.
        """
        theirs = {_fragment_key(part) for part in other.dataset(table).get_fragments()}
        own = [
            part
            for part in self.dataset(table).get_fragments()
            if _fragment_key(part) not in theirs
        ]
        if not own:
            return pa.schema([self._schemas[table].field(name) for name in columns]).empty_table()
        with self._translate_errors(table, where):
            return self._read(table, where, columns, fragments=own)

    def count(self, table: TableName, where: Expr | None = None) -> int:
        """Return how many rows there are.  Raises as :meth:`scan` does."""
        with self._translate_errors(table, where):
            return int(self.dataset(table).count_rows(filter=self._text(table, where)))

    def keyword(
        self,
        terms: Sequence[str],
        where: Expr | None = None,
        limit: int = 100,
        columns: Sequence[str] | None = None,
        require_all: bool = False,
        edits: int = 0,
    ) -> pa.Table:
        """Return memories that contain terms, best first, with their BM25 as ``_score``.

        Args:
            terms: Terms as the analyser made them for ``search_text``; compared as they are.
            where: Looked at before the search, so ``limit`` rows come back if there are as many.
            limit: The most rows to return.
            columns: All but the vector by default.
            require_all: Whether a memory must contain every term rather than any.
            edits: How many letters of a memory's terms may differ from these, up to 2.
        """
        query = " ".join(" ".join(terms).split())
        names = self._columns_or_all_but_vector(columns)
        if not query or limit < 1:
            return self._empty_table(names, SCORE)
        operator = "AND" if require_all else "OR"
        with self._translate_errors("memories", where):
            match = lance().query.MatchQuery(
                query,
                "search_text",
                operator=lance().query.FullTextOperator(operator),
                fuzziness=edits,
            )
            found = self._read(
                "memories", where, [*names, SCORE], full_text_query=match, limit=limit
            )
        return _sort_rows(found, SCORE, "descending")

    def nearest(
        self,
        vector: NDArray[np.floating[Any]],
        where: Expr | None = None,
        limit: int = 100,
        columns: Sequence[str] | None = None,
        refined: bool = True,
    ) -> pa.Table:
        """Return the memories nearest to a vector, with their cosine distance as ``_distance``.

        Memories whose vector is zero have no direction and are never found, and nothing is near
        a zero ``vector``.  Other arguments are as for :meth:`keyword`.

        Args:
            vector: The vector.
            where: Looked at before the search.
            limit: The most rows to return.
            columns: All but the vector by default.
            refined: Whether distances are those of the vectors themselves, which are read for it,
                where there is an index of them; it has the numbers rounded.
        """
        names = self._columns_or_all_but_vector(columns)
        query = np.ascontiguousarray(vector, dtype=np.float32)
        if limit < 1 or not query.any():
            return self._empty_table(names, DISTANCE)
        with self._translate_errors("memories", where):
            thorough = probes(self._count, filtered=where is not None, refined=refined)
            # Made without `pa.array`, which imports all masked arrays of numpy, as lance does.
            buffers = [None, pa.py_buffer(query)]
            sought = pa.FloatArray.from_buffers(pa.float32(), len(query), buffers)
            nearest = {"column": VECTOR, "q": sought, "k": limit, "metric": "cosine", **thorough}
            found = self._read("memories", where, [*names, DISTANCE], nearest=nearest)
        return _sort_rows(found, DISTANCE, "ascending")

    def keyword_rows(
        self,
        terms: Sequence[str],
        where: Expr | None = None,
        limit: int = 100,
        require_all: bool = False,
    ) -> list[int]:
        """Return the numbers of what :meth:`keyword` finds."""
        return self._numbers(self.keyword(terms, where, limit, (self._numbered_by,), require_all))

    def nearest_rows(
        self, vector: NDArray[np.floating[Any]], where: Expr | None = None, limit: int = 100
    ) -> list[int]:
        """Return the numbers of what :meth:`nearest` finds."""
        return self._numbers(self.nearest(vector, where, limit, (self._numbered_by,)))

    def rows_with_ids(self, ids: Sequence[str], where: Expr | None = None) -> list[int]:
        """Return the numbers of the memories with these ids, in ascending order."""
        found = self.scan("memories", both(where, col("id").is_in(ids)), (ROW,))
        numbers: list[int] = found[ROW].to_pylist()
        return numbers

    def rows_of_turns(
        self, places: Collection[tuple[str, int]], where: Expr | None = None
    ) -> list[int]:
        """Return the numbers of turns, given as session and number, in ascending order."""
        sessions, turns = (sorted(set(each)) for each in zip(*places, strict=True))
        where = both(where, col("session_id").is_in(sessions) & col("turn").is_in(turns))
        found = self.scan("memories", where, (ROW, "session_id", "turn"))
        columns = (found[name].to_pylist() for name in found.column_names)
        return [row for row, *place in zip(*columns, strict=True) if tuple(place) in places]

    # --- inside ---

    @cached_property
    def _count(self) -> int:
        """How many memories there are; counting a million takes 2 ms."""
        return self.count("memories")

    @property
    def _numbered_by(self) -> str:
        """The column that tells the numbers of rows."""
        return ROW

    def _numbers(self, found: pa.Table) -> list[int]:
        """Return the numbers of rows that were read with such a column."""
        numbers: list[int] = found[ROW].to_pylist()
        return numbers

    def _scanner(
        self,
        table: TableName,
        where: Expr | None,
        columns: Sequence[str] | None,
        **options: Any,
    ) -> LanceScanner:
        names = list(columns) if columns is not None else self._schemas[table].names
        self._check_columns(table, names)
        return self.dataset(table).scanner(
            columns=self._present_columns(table, names),
            filter=self._text(table, where),
            prefilter=True,
            **options,
        )

    def _read(
        self, table: TableName, where: Expr | None, columns: Sequence[str], **options: Any
    ) -> pa.Table:
        rows = self._scanner(table, where, columns, **options).to_table()
        return with_all_columns(rows, table, columns) if self.missing_columns(table) else rows

    def _present_columns(self, table: TableName, names: Sequence[str]) -> list[str]:
        """Return those of some columns that a table has; at least one, to count its rows by."""
        return [name for name in names if name not in self.missing_columns(table)] or ["id"]

    def _text(self, table: TableName, where: Expr | None) -> str | None:
        return None if where is None else render(where, self.missing_columns(table))

    def _check_columns(self, table: TableName, names: Sequence[str]) -> None:
        known = {*self._schemas[table].names, SCORE, DISTANCE, ROW, ROW_ID}
        for name in names:
            if name not in known:
                raise UsageError(
                    f"{table} has no column {name!r}", _columns_hint(self._schemas[table].names)
                )

    def _columns_or_all_but_vector(self, columns: Sequence[str] | None) -> list[str]:
        if columns is not None:
            return [name for name in columns if name not in (SCORE, DISTANCE)]
        return [name for name in self._schemas["memories"].names if name != VECTOR]

    def _empty_table(self, names: Sequence[str], measure: str) -> pa.Table:
        numbers = [pa.field(name, pa.uint64()) for name in (ROW, ROW_ID)]
        schema = pa.schema([*self._schemas["memories"], *numbers])
        items = [schema.field(name) for name in names]
        return pa.schema([*items, (measure, pa.float32())]).empty_table()

    def _stream(
        self,
        table: TableName,
        where: Expr | None,
        reader: pa.RecordBatchReader,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        with self._translate_errors(table, where):
            if schema.names == reader.schema.names:
                yield from reader
                return
            for batch in reader:
                rows = with_all_columns(pa.Table.from_batches([batch]), table, schema.names)
                yield from rows.to_batches()

    @contextmanager
    def _translate_errors(self, table: TableName, where: Expr | None) -> Iterator[None]:
        """Raise UsageError for a condition that cannot be used, else DamagedError."""
        try:
            with without_panics():
                yield
        except (OSError, ValueError, RuntimeError) as error:
            if is_about_files(error):
                self._require_in_place()
                raise damaged_error(self._datasets.uri(table), error) from error
            if where is None or not is_user_written(where):
                raise
            hint = _columns_hint(self._schemas[table].names)
            if "metadata" in (self._text(table, where) or ""):
                hint = _METADATA_HINT
            raise UsageError(
                f"the condition cannot be used on {table}: {reason(error)}", hint
            ) from error


def spread_positions(count: int, most: int) -> list[int]:
    """Return numbers below a count, evenly spread, the first and the last among them."""
    numbers: list[int] = np.linspace(0, count - 1, min(most, count)).astype(int).tolist()
    return numbers


def _by_id(rows: pa.Table | pa.RecordBatch) -> dict[str, str]:
    """Return the second column of rows by the first one."""
    return dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _fragment_key(part: LanceFragment) -> str:
    """What tells the rows of a file, as far as they are not deleted, from those of any other."""
    return repr(part.metadata)


def _constant(type_: pa.DataType, value: pa.Scalar) -> Constant:
    if pa.types.is_list(type_):  # an empty one
        return Constant("string", None, is_list=True, is_null=not value.is_valid)
    return Constant(_SQL_TYPES.get(type_, "string"), value.as_py(), is_null=not value.is_valid)


def _ordering(order_by: Order) -> list[Any] | None:
    lance()
    from lance.dataset import ColumnOrdering  # not `lance.dataset`, which is a function

    return [ColumnOrdering(name, ascending=way == "asc") for name, way in order_by] or None


def _columns_hint(names: Sequence[str]) -> str:
    return f"columns: {', '.join(names)}; text stands in single quotes, timestamp '2025-01-31'"


_METADATA_HINT = (
    'metadata are filtered by --meta KEY=VALUE, or --filter \'{"KEY": {"$gte": 2024}}\''
)


def _sort_rows(table: pa.Table, measure: str, way: str) -> pa.Table:
    keys = [(measure, way)]
    if "id" in table.column_names:
        keys.append(("id", "ascending"))
    return table.sort_by(keys)


MAX_CACHED_BYTES = 200_000_000
"""Of the columns of memories that are kept: all of 250,000 memories, with texts and vectors of 256
numbers, and all but those two of 1,300,000."""
MAX_CACHED_ROWS = 150_000
"""Memories of which what is found by an id or a place is kept, and documents with metadata."""
MAX_METADATA_BYTES = 16 << 20
"""Metadata of documents are not kept if they are more than that: 80 bytes of each of 200,000."""
A_LOOKUP, A_ROW = 3_000, 75
"""What looking rows up costs, and each of them, next to a row when all are read one after another:
of 100,000 memories lance 13 finds 200 in 17 ms, and reads all in 120."""
A_DOCUMENT_LOOKUP = 25_000
"""What looking documents up by their ids costs, in the same measure: of 100,000 documents, 10 take
4 ms, and those that have metadata 3 where none has, 20 where all have."""
_ONE_QUESTION = 60_000
"""What the rows of one question cost at most: reading all pays once single rows have cost as much,
and more than that."""


class ScopedSnapshot(Snapshot):
    """The same tables as another snapshot has, without what is in some namespaces.

    Tables whose rows say of no namespace are whole, and so are ``dataset`` and ``rows``.

    Args:
        of: The other snapshot.
        hidden: The namespaces.
    """

    def __init__(self, of: Snapshot, hidden: Collection[str]) -> None:
        super().__init__(of._datasets, of.versions, of.dimension, of._require_in_place, of.derived)
        self._of = of  # which keeps its files from being pruned
        self.hidden = frozenset(hidden)

    def _text(self, table: TableName, where: Expr | None) -> str | None:
        if self.hidden and table in OF_NAMESPACES:
            where = both(where, ~col("namespace").is_in(sorted(self.hidden)))
        return super()._text(table, where)


def namespaces_of(snapshot: Snapshot) -> set[str]:
    """Return every namespace that a document or a memory is in."""
    return {
        namespace
        for table in OF_NAMESPACES
        for batch in snapshot.batches(table, None, ["namespace"])
        for namespace in pc.unique(batch["namespace"]).to_pylist()
    }


class CachedSnapshot(Snapshot):
    """The same tables as another snapshot has, kept for as long as the process likes.

    It keeps nothing from being pruned: readers must hold the other snapshot meanwhile.
    """

    def __init__(self, of: Snapshot) -> None:
        super().__init__(of._datasets, of.versions, of.dimension, of._require_in_place, of.derived)
        self._paid: Counter[str] = Counter()
        self._rows_seen: Counter[str] = Counter()
        self._bytes_seen: Counter[str] = Counter()
        self._too_big: set[str] = set()
        self._cached_columns: dict[str, pa.ChunkedArray] = {}
        self._metadata: Mapping[str, str] | None = None
        self._is_metadata_too_big = False
        self._document_lookups = 0
        self._metadata_seen = self._metadata_bytes = 0

    def rows(self, table: TableName, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return the rows of these numbers in their order, as far as possible from memory."""
        if table != "memories":
            return super().rows(table, numbers, columns)
        self._hold(columns)
        missing = [name for name in columns if name not in self._cached_columns]
        found: dict[str, pa.ChunkedArray] = {}
        if missing:
            found |= zip(missing, super().rows(table, numbers, missing).columns, strict=True)
            self._note_column_lookup({name: found[name] for name in missing})
        places = pa.array(numbers, pa.int64())
        found |= {
            name: self._cached_columns[name].take(places)
            for name in columns
            if name in self._cached_columns
        }
        return pa.table({name: found[name] for name in columns})

    def document_metadata(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the metadata of documents by their ids, as JSON; those without may be left out.

        As with ``rows``, all are read once single ones have cost more.
        """
        if self._metadata is None and self._is_metadata_worth_caching():
            self._metadata = self._read_metadata()
            self._is_metadata_too_big = self._metadata is None
        if self._metadata is None:
            found = _by_id(self.get("documents", ids, ["id", "metadata"]))
            self._note_lookup(found)
            return found
        return self._metadata

    def _note_lookup(self, found: Mapping[str, str]) -> None:
        self._document_lookups += A_DOCUMENT_LOOKUP
        self._metadata_seen += len(found)
        self._metadata_bytes += sum(map(len, found.values()))

    def _is_metadata_worth_caching(self) -> bool:
        if self._is_metadata_too_big or not self._is_small:
            return False
        count = self.count("documents")
        expected = count * self._metadata_bytes / max(1, self._metadata_seen)
        is_paid = self._document_lookups > max(count, _ONE_QUESTION)
        return is_paid and expected <= MAX_METADATA_BYTES

    def _read_metadata(self) -> Mapping[str, str] | None:
        """Return the metadata of all documents that have any; None if they are too big to keep."""
        found: dict[str, str] = {}
        size = 0
        where = ~col("metadata").is_in(["{}"])
        for batch in self.batches(
            "documents", where, ["id", "metadata"], batch_bytes=MAX_METADATA_BYTES // 4
        ):
            size += pc.sum(pc.binary_length(batch["metadata"])).as_py() or 0
            if size > MAX_METADATA_BYTES:
                return None
            found |= _by_id(batch)
        return found

    def _hold(self, columns: Sequence[str]) -> None:
        """Read those columns whole that have cost as much by now, small ones first."""
        paid = [
            name
            for name in columns
            if name not in self._cached_columns
            and name not in self._too_big
            and self._paid[name] > max(self._count, _ONE_QUESTION)
        ]
        room = MAX_CACHED_BYTES - sum(each.nbytes for each in self._cached_columns.values())
        for name in sorted(paid, key=self._expected_bytes):
            if self._expected_bytes(name) > room:
                break
            column = self.scan("memories", None, (name,)).combine_chunks()[name]
            if column.nbytes <= room:
                self._cached_columns[name] = column
                room -= column.nbytes
            else:
                self._too_big.add(name)

    def _note_column_lookup(self, found: Mapping[str, pa.ChunkedArray]) -> None:
        for name, column in found.items():
            self._rows_seen[name] += len(column)
            self._bytes_seen[name] += column.nbytes
            self._paid[name] += A_LOOKUP + A_ROW * len(column)

    def _expected_bytes(self, column: str) -> float:
        return self._count * self._bytes_seen[column] / max(1, self._rows_seen[column])

    @property
    def _is_small(self) -> bool:
        return self._count <= MAX_CACHED_ROWS

    def nearest_rows(
        self, vector: NDArray[np.floating[Any]], where: Expr | None = None, limit: int = 100
    ) -> list[int]:
        """Return the numbers of what :meth:`nearest` finds.

        With vectors in memory, picking the nearest among the near takes half the time.
        """
        if VECTOR not in self._cached_columns:
            return super().nearest_rows(vector, where, limit)
        by, several = self._numbered_by, limit * REFINEMENT
        fairly_near = self._numbers(self.nearest(vector, where, several, (by,), refined=False))
        if len(fairly_near) <= limit:
            return fairly_near
        found = (
            self._cached_columns[VECTOR].take(pa.array(fairly_near, pa.int64())).combine_chunks()
        )
        vectors = vector_rows(found).astype(np.float32)
        # Not by a BLAS, whose threads wait for each other on a machine that is busy.
        cosines = np.einsum("ij,j->i", vectors, vector) / np.linalg.norm(vectors, axis=1)
        best = np.argsort(-cosines, kind="stable")[:limit]
        return [fairly_near[at] for at in best.tolist()]

    def rows_with_ids(self, ids: Sequence[str], where: Expr | None = None) -> list[int]:
        """Return the numbers of the memories with these ids, if possible from memory."""
        if where is not None or not self._is_small or "id" not in self._cached_columns:
            return super().rows_with_ids(ids, where)
        return sorted(self._rows_by_id[id] for id in {*ids} if id in self._rows_by_id)

    @cached_property
    def _rows_by_id(self) -> Mapping[str, int]:
        return {id: row for row, id in enumerate(self._cached_columns["id"].to_pylist())}

    def rows_of_turns(
        self, places: Collection[tuple[str, int]], where: Expr | None = None
    ) -> list[int]:
        """Return the numbers of turns, given as session and number, if possible from memory."""
        is_cached = self._is_small and self._cached_columns.keys() >= {"session_id", "turn"}
        if where is not None or not is_cached:
            return super().rows_of_turns(places, where)
        sessions, turns = self._cached_columns["session_id"], self._cached_columns["turn"]
        is_in_session = pc.is_in(sessions, value_set=pa.array({place[0] for place in places}))
        rows = pc.indices_nonzero(is_in_session)
        columns = (each.to_pylist() for each in (rows, sessions.take(rows), turns.take(rows)))
        return [row for row, *place in zip(*columns, strict=True) if tuple(place) in places]

    # --- numbers of rows -------------------------------------------------------------------------

    @property
    def _numbered_by(self) -> str:
        # With lance 13 a search that gives the numbers themselves takes half as long again.
        return ROW_ID if self._is_small or self._cached_columns else ROW

    def _numbers(self, found: pa.Table) -> list[int]:
        if ROW_ID not in found.column_names:
            return super()._numbers(found)
        ids, numbers = self._row_ids
        places = np.searchsorted(ids, np.asarray(found[ROW_ID], dtype=np.uint64))
        result: list[int] = numbers[places].tolist()
        return result

    @cached_property
    def _row_ids(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The ids of all rows in ascending order, and the number of each."""
        read = self.scan("memories", None, (ROW_ID, ROW))
        ids = np.asarray(read[ROW_ID], dtype=np.uint64)
        order = np.argsort(ids)
        return ids[order], np.asarray(read[ROW], dtype=np.int64)[order]
