"""SQL over every table, in DuckDB, read only and with no way out to files or the network.

DuckDB is an engine here and never a store: a connection in memory lives for one query and reads
the tables through Arrow, so that only the columns and rows a query asks for leave the disk.

What keeps a query in its box, each alone enough for its purpose:

- exactly one statement, whose type the parser says is SELECT or EXPLAIN;
- a read-only transaction, so that ``EXPLAIN ANALYZE CREATE ...`` does nothing either;
- ``enable_external_access`` off (files, URLs, ATTACH, COPY, INSTALL, LOAD), no extensions, no
  spilling to disk, no look at Python's variables, and the settings locked;
- a memory limit, and a time limit kept by interrupting the query from another thread.

DuckDB's memory limit does not count what a single expression allocates (``repeat('a', 3e9)``);
a process of its own, such as the command line, calls `capped_process_memory` for that.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from memctl.errors import MemctlError, UsageError
from memctl.records import Filters
from memctl.schema.arrow_tables import with_all_columns
from memctl.schema.declarations import DECLARATIONS, OF_NAMESPACES
from memctl.schema.table_names import TABLES
from memctl.store.ledger.audit_repositories import actor_of
from memctl.store.ledger.content_tables import (
    CONTENT_TABLES,
    EXPIRES,
    MERGED_VALUES,
    ContentTable,
)
from memctl.store.ledger.repository import from_text, to_text
from memctl.store.tables.filter_expressions import Expr, as_arrow, col, namespace_filter
from memctl.store.transfer.export_formats import widen_vectors

if TYPE_CHECKING:
    import duckdb

    from memctl.schema.table_names import TableName
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.tables.snapshot import Snapshot


_ROWS_A_BATCH = 16_384
_BATCH_BYTES = 8 << 20
_NO_TABLE = "Catalog Error: Table with name"
_SUGGESTION = re.compile(r' Did you mean "([^"]+)"\?')
_SETTINGS = (
    "enable_external_access = false",
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "allow_community_extensions = false",
    "max_temp_directory_size = '0MB'",
    "TimeZone = 'UTC'",
    "lock_configuration = true",
)


def run_sql(
    snapshots: Mapping[str, Snapshot],
    sql: str,
    *,
    memory_limit: str = "1GB",
    timeout: float = 60.0,
    ledgers: Mapping[str, Ledger] | None = None,
    scope: NamespaceScope | None = None,
    now: datetime | None = None,
    pools: Mapping[str, Collection[str] | None] | None = None,
) -> pa.RecordBatchReader:
    """Run one SELECT or EXPLAIN over the tables of some knowledge bases and stream its rows.

    The tables are those that are declared; with several knowledge bases each is their union,
    with the knowledge base's name in a column ``kb``.
    Vectors appear as ``FLOAT[n]``, JSON columns as text that ``->>`` reads.

    Args:
        snapshots: What to read, by the knowledge base's name.
        sql: One statement.
        memory_limit: As DuckDB writes it, ``512MB``.
        timeout: Seconds that the engine may work, not counting what the caller does in between.
        ledgers: By the knowledge base's name; with them there are ``files``, ``jobs``,
            ``events``, ``queries``, ``accesses`` and ``audit`` too.
        scope: The namespaces of which there are rows; by default all.
        now: Entries of the ledger that have expired by then are left out.
        pools: By the knowledge base's name, the pools of which there are rows; None for all.

    Raises:
        UsageError: The statement is wrong, or isn't one that may run.
        MemctlError: It ran out of time or memory; reading the result can raise this too.
    """
    scope = scope or NamespaceScope(Filters())
    further = {
        kb: of_pools(
            scope.of_ledger(snapshots[kb], ledger_tables(ledger, sql.lower(), now)),
            (pools or {}).get(kb),
        )
        for kb, ledger in (ledgers or {}).items()
    }
    tables = [*TABLES, *(LEDGER_TABLES if ledgers else ())]
    connection = _connect()
    guard = _Guard(connection, timeout, tables)
    try:
        _register(connection, snapshots, further, scope)
        _lock(connection, memory_limit)
        with guard:
            reader = _start(connection, sql)
    except BaseException:
        connection.close()
        raise
    schema = _with_own_names(reader.schema)
    return pa.RecordBatchReader.from_batches(schema, _stream(connection, reader, guard, schema))


@contextmanager
def capped_process_memory(extra_bytes: int) -> Iterator[None]:
    """Let this whole process take at most this many bytes more than now; no effect off Linux.

    For a process that does nothing else at the same time. Afterwards its former limit holds again:
    the process may be one that goes on, and its children would inherit the limit.
    """
    try:
        import resource
        from pathlib import Path

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except (ImportError, OSError):
        yield
        return
    former = resource.getrlimit(resource.RLIMIT_DATA)
    limit = pages * resource.getpagesize() + extra_bytes
    if former[1] != resource.RLIM_INFINITY:
        limit = min(limit, former[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, former)


# --- what DuckDB sees ----------------------------------------------------------------------------


class _WidenedScanner:
    """The scanner that DuckDB reads: a stream of batches, float16 widened to float32."""

    def __init__(self, scanner: Any) -> None:
        self._scanner = scanner

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        reader = self._scanner.to_reader()
        schema = widen_vectors(reader.schema)
        return reader if schema == reader.schema else reader.cast(schema)


class _WidenedDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A Lance dataset whose float16 vectors look like float32: DuckDB 2.0 refuses float16.

    It must be a ``pyarrow.dataset.Dataset`` for DuckDB to hand projections and filters down.
    """

    def __init__(self, dataset: Any, within: Expr | None) -> None:
        # The base class holds a C++ dataset and refuses to be made; nothing of it is used.
        self._dataset = dataset
        self._within = None if within is None else as_arrow(within)

    @property
    def schema(self) -> pa.Schema:
        """The columns as DuckDB sees them."""
        return widen_vectors(self._dataset.schema)

    def scanner(
        self, columns: list[str] | None = None, filter: Any = None, **options: Any
    ) -> _WidenedScanner:
        """Return a scan of some columns of the rows for which a filter holds."""
        if self._within is not None:
            filter = self._within if filter is None else self._within & filter
        return _WidenedScanner(
            self._dataset.scanner(
                columns=columns, filter=filter, batch_size_bytes=_BATCH_BYTES, **options
            )
        )


# --- setting the box up --------------------------------------------------------------------------


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"python_enable_replacements": "false", "temp_directory": ""})


def _register(
    connection: duckdb.DuckDBPyConnection,
    snapshots: Mapping[str, Snapshot],
    ledgers: Mapping[str, Mapping[str, pa.Table]],
    scope: NamespaceScope,
) -> None:
    """Create a view of every table: plain for one knowledge base, a union for several."""
    sources: dict[str, dict[str, Any]] = {}
    for kb, snapshot in snapshots.items():
        for table in TABLES:
            sources.setdefault(table, {})[kb] = _WidenedDataset(
                snapshot.dataset(table), scope.of(snapshot, table)
            )
    for kb, extra in ledgers.items():
        for name, rows in extra.items():
            sources.setdefault(name, {})[kb] = rows
    for name, by_kb in sources.items():
        missing = {
            kb: rows for kb, snapshot in snapshots.items() if (rows := _default_row(snapshot, name))
        }
        _create_view(connection, name, by_kb, missing, name_kb=len(snapshots) > 1)


def _default_row(snapshot: Snapshot, table: str) -> pa.Table | None:
    """Return one row with the columns that a table has not got yet, at their defaults."""
    name = next((name for name in TABLES if name == table), None)
    columns = [*snapshot.missing_columns(name)] if name is not None else []
    return with_all_columns(pa.table({"": [0]}), name, columns) if name and columns else None


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    by_kb: Mapping[str, Any],
    missing: Mapping[str, pa.Table],
    *,
    name_kb: bool,
) -> None:
    same_vectors = len({str(source.schema) for source in by_kb.values()}) == 1
    parts = []
    for number, (kb, source) in enumerate(by_kb.items()):
        registered = f"{table}_{number}" if name_kb or missing else table
        connection.register(registered, source)
        columns, rows = _columns(source.schema, same_vectors), _quoted_name(registered)
        if kb in missing:
            connection.register(f"{registered}_defaults", missing[kb])
            rows += f", {_quoted_name(f'{registered}_defaults')}"
        own = f"{_quoted_text(kb)} AS kb, " if name_kb else ""
        parts.append(f"SELECT {own}{columns} FROM {rows}")
    if name_kb or missing:
        union = " UNION ALL BY NAME ".join(parts)
        connection.execute(f"CREATE VIEW {_quoted_name(table)} AS {union}")


def _columns(schema: pa.Schema, same_vectors: bool) -> str:
    """All columns; vectors as plain lists where the knowledge bases' dimensions differ."""
    lists = [field.name for field in schema if pa.types.is_fixed_size_list(field.type)]
    if same_vectors or not lists:
        return "*"
    replaced = ", ".join(f"{_quoted_name(name)}::FLOAT[] AS {_quoted_name(name)}" for name in lists)
    return f"* REPLACE ({replaced})"


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _lock(connection: duckdb.DuckDBPyConnection, memory_limit: str) -> None:
    import duckdb

    try:
        connection.execute(f"SET memory_limit = {_quoted_text(memory_limit)}")
    except duckdb.Error as error:
        raise UsageError(
            f"the memory limit {memory_limit!r} cannot be read", "write it like 512MB or 2GB"
        ) from error
    for setting in _SETTINGS:
        connection.execute(f"SET {setting}")
    connection.execute("BEGIN TRANSACTION READ ONLY")


# --- running -------------------------------------------------------------------------------------


def _start(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.RecordBatchReader:
    statement = _only_statement(connection, sql)
    relation = connection.sql(statement)
    if relation is None:
        raise UsageError("the statement gives no rows", "use a SELECT")
    return relation.to_arrow_reader(_ROWS_A_BATCH)


def _only_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    import duckdb

    statements: Sequence[Any] = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(
            f"expected one statement, got {len(statements)}", "give one SELECT, without others"
        )
    allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    if statements[0].type not in allowed:
        raise UsageError(
            f"{statements[0].type.name} statements cannot run here: memory is read-only to SQL",
            "use SELECT, WITH, DESCRIBE, SHOW TABLES, SUMMARIZE or EXPLAIN",
        )
    return str(statements[0].query)


class _Guard:
    """Interrupts the engine when its time is used up, and translates its errors."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, timeout: float, tables: Sequence[str]
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._seconds_left = timeout
        self._tables = tables

    def __enter__(self) -> None:
        self._timer = threading.Timer(max(self._seconds_left, 0.0), self._connection.interrupt)
        self._timer.daemon = True
        self._started = time.monotonic()
        self._timer.start()

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self._timer.cancel()
        self._seconds_left -= time.monotonic() - self._started
        if error is not None:
            self._raise(error)

    def _raise(self, error: BaseException) -> None:
        import duckdb

        if "INTERRUPT" in str(error) and self._seconds_left <= 0:
            raise MemctlError(
                f"the query was stopped after {self._timeout:g} seconds",
                "ask for less, or allow more time with MEMCTL_SQL_TIMEOUT_REAL",
            ) from error
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            raise MemctlError(
                f"the query needs more memory than it may have: {_one_line(error)}",
                "ask for fewer columns or rows, or raise the memory limit",
            ) from error
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError | RuntimeError):
            message = _one_line(error)
            hint = "DESCRIBE memories shows its columns, memctl sql --help the tables"
            if isinstance(error, duckdb.CatalogException) and message.startswith(_NO_TABLE):
                message = _SUGGESTION.sub(self._suggestion, message)
                hint = f"tables: {', '.join(self._tables)}"
            raise UsageError(message, hint) from error

    def _suggestion(self, match: re.Match[str]) -> str:
        """Return the table that DuckDB suggests, unless it is one of DuckDB's own."""
        return match[0] if match[1] in self._tables else ""


def _one_line(error: BaseException) -> str:
    """DuckDB's message without the picture of the statement and the advice below it."""
    message = str(error)
    for appendix in ("\n\nLINE ", "\nDatabase is launched", "\nPossible solutions"):
        message = message.partition(appendix)[0]
    return " ".join(message.split()).rstrip(".") or type(error).__name__


def _stream(
    connection: duckdb.DuckDBPyConnection,
    reader: pa.RecordBatchReader,
    guard: _Guard,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    with closing(connection):
        while True:
            with guard:
                batch = next(reader, None)
            if batch is None:
                return
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _with_own_names(schema: pa.Schema) -> pa.Schema:
    """Number the columns that share a name, ``a`` and ``a_2``: JSON needs distinct names."""
    taken = set(schema.names)
    seen: set[str] = set()
    fields = []
    for field in schema:
        name, number = field.name, 1
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{field.name}_{number}"
        seen.add(name)
        fields.append(field.with_name(name))
    return pa.schema(fields, schema.metadata)


class NamespaceScope:
    """The namespaces that rows are limited to.

    Args:
        filters: Of which only those on the namespace count.
        user: Who reads: questions that another user asked are left out; None for no user.
    """

    def __init__(self, filters: Filters, user: str | None = None) -> None:
        self._user = user
        self._within = namespace_filter(filters)
        self._names = filters.namespaces

    def of(self, snapshot: Snapshot, table: TableName) -> Expr | None:
        """Return the condition on the rows of a table; None where there is none.

        An entity is meant if a row that is meant names it, any other row that says no namespace,
        such as a relation, if nothing that it refers to is left out.
        """
        within = self._within
        if within is None or table in OF_NAMESPACES:
            return within
        if table == "entities":
            return ~col("id").is_in(sorted(_unnamed_entities(snapshot, within)))
        return ~col("id").is_in(sorted(_dependent_rows(snapshot, table, within)))

    def of_ledger(
        self, snapshot: Snapshot, tables: Mapping[str, pa.Table]
    ) -> Mapping[str, pa.Table]:
        """Return tables of the ledger, in which only a file's document tells its namespace.

        A file of no document, and what is noted of a file, may be of any, and are left out.  What
        users and agents have stored without a namespace is left out where namespaces are named, and
        of who changed what there is then what the user who reads has changed.
        """
        if self._within is None:
            return tables
        tables = {**tables, **dict(self._of_content(tables, self._within))}
        if tables["accesses"].num_rows:
            tables["accesses"] = self._accesses_within(snapshot, tables["accesses"])
        if self._names:
            tables["queries"] = self._scoped_questions(tables["queries"])
            tables["audit"] = self._own_audit_entries(tables["audit"])
        if not tables["files"].num_rows + tables["events"].num_rows:
            return tables
        ids = snapshot.scan("documents", self._within, ["id"])["id"].to_pylist()
        meant = pa.array(ids, pa.string())
        files, events = tables["files"], tables["events"]
        is_of_file = pc.match_substring(events["subject"], os.sep)
        return {
            **tables,
            "files": files.filter(pc.is_in(files["document_id"], meant)),
            "events": events.filter(pc.invert(is_of_file)),
        }

    def _scoped_questions(self, queries: pa.Table) -> pa.Table:
        """Return the questions that were limited to some of the namespaces, of no other user."""
        limits = [json.loads(text or "{}") for text in queries["filters"].to_pylist()]
        asked = [each.get("namespaces") for each in limits]
        within = [bool(each) and set(each) <= set(self._names) for each in asked]
        return self._without_other_users(queries.filter(pa.array(within, pa.bool_())))

    def _own_audit_entries(self, audit: pa.Table) -> pa.Table:
        """Return the entries of the user who reads, as ``memctl audit`` lists them."""
        if not self._user:
            return audit.slice(0, 0)
        return audit.filter(pc.equal(audit["actor"], actor_of(self._user, None)))

    def _accesses_within(self, snapshot: Snapshot, accesses: pa.Table) -> pa.Table:
        """Return the accesses to memories that are meant; by no other, where some are named."""
        ids = snapshot.scan("memories", self._within, ["id"])["id"]
        within = accesses.filter(pc.is_in(accesses["memory_id"], ids.combine_chunks()))
        return self._without_other_users(within) if self._names else within

    def _without_other_users(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are of no user but the one who reads."""
        asking = (self._user, None)
        own = [not self._user or user in asking for user in rows["user_id"].to_pylist()]
        return rows.filter(pa.array(own, pa.bool_()))

    def _of_content(
        self, tables: Mapping[str, pa.Table], within: Expr
    ) -> Iterator[tuple[str, pa.Table]]:
        for declared in CONTENT_TABLES:
            rows = tables[declared.name]
            if declared.namespace:
                yield declared.name, rows.filter(as_arrow(within))
            elif self._names:
                yield declared.name, rows.slice(0, 0)


def of_pools(
    tables: Mapping[str, pa.Table], pools: Collection[str] | None
) -> Mapping[str, pa.Table]:
    """Return tables of the ledger without rows of other pools than some; None for all.

    Who is held to some pools reads nothing of the audit trail, which names all of them.
    """
    if pools is None:
        return tables
    tables = {**tables, "audit": tables["audit"].slice(0, 0)}
    return {name: _of_pools(name, rows, pools) for name, rows in tables.items()}


def _of_pools(name: str, rows: pa.Table, pools: Collection[str]) -> pa.Table:
    if "pool_id" in rows.column_names:
        of = rows["pool_id"].to_pylist()
    elif name == MERGED_VALUES.name:
        of = [json.loads(value).get("pool_id") for value in rows["value"].to_pylist()]
    else:
        return rows
    return rows.filter(pa.array([pool is None or pool in pools for pool in of], pa.bool_()))


def _unnamed_entities(snapshot: Snapshot, within: Expr) -> Iterator[str]:
    """The entities that no row names for which a condition holds."""
    named = _names(snapshot, within)
    for row in snapshot.each_row("entities", None, ("id", "name", "aliases")):
        if named.isdisjoint((row["name"], *(row["aliases"] or ()))):
            yield row["id"]


def _names(snapshot: Snapshot, within: Expr) -> set[str]:
    names: set[str] = set()
    for table in OF_NAMESPACES:
        columns = DECLARATIONS[table].name_columns
        for row in snapshot.each_row(table, within, columns):
            names.update(name for column in columns for name in row[column] or ())
    return names


def _dependent_rows(snapshot: Snapshot, table: TableName, within: Expr) -> Iterator[str]:
    """The rows of a table that refer to a row for which a condition does not hold."""
    left_out = {
        row["id"] for other in OF_NAMESPACES for row in snapshot.each_row(other, ~within, ("id",))
    }
    declared = DECLARATIONS[table]
    for row in snapshot.each_row(table, None, tuple(declared.id_columns)):
        if not left_out.isdisjoint(declared.ids_referred_to(row)):
            yield row["id"]


_Column = tuple[pa.DataType, Callable[[Any], Any]]


def _identity(value: Any) -> Any:
    return value


def _path(value: bytes) -> str:
    return value.decode("utf-8", "replace")


_STRING: _Column = (pa.string(), _identity)
_NUMBER: _Column = (pa.int64(), _identity)
_REAL: _Column = (pa.float64(), _identity)
_FLAG: _Column = (pa.bool_(), bool)
_PATH: _Column = (pa.string(), _path)
_DAY: _Column = (pa.date32(), date.fromisoformat)
_INSTANT: _Column = (pa.timestamp("us", tz="UTC"), from_text)

# ``at`` is a keyword in DuckDB 2.0, so no column is called that.
_LEDGER_COLUMNS: Mapping[str, tuple[str, Mapping[str, _Column]]] = {
    "files": (
        "files",
        {
            "path": _PATH, "inbox": _PATH, "size": _NUMBER, "state": _STRING, "sha256": _STRING,
            "document_id": _STRING, "reason": _STRING, "hint": _STRING, "first_seen": _INSTANT,
            "updated_at": _INSTANT,
        },
    ),
    "jobs": (
        "jobs",
        {
            "id": _NUMBER, "kind": _STRING, "state": _STRING, "started_at": _INSTANT,
            "finished_at": _INSTANT, "detail": _STRING,
        },
    ),
    "events": (
        "events",
        {
            "id": _NUMBER, "at AS occurred_at": _INSTANT, "kind": _STRING, "message": _STRING,
            "hint": _STRING, "subject": _STRING,
        },
    ),
    "queries": (
        "query_log LEFT JOIN query_details USING (query_id)",
        {
            "id": _NUMBER, "at AS asked_at": _INSTANT,
            "nullif(question, '') AS question": _STRING, "mode": _STRING, "hits": _NUMBER,
            "seconds": _REAL, "nullif(query_id, '') AS query_id": _STRING, "kind": _STRING,
            "found": _FLAG, "mean_score": _REAL, "filters": _STRING, "hit_ids": _STRING,
            "feedback": _STRING, "status": _STRING, "top_k": _NUMBER, "threshold": _REAL,
            "confidence": _REAL, "relevance": _REAL, "quality": _REAL, "score": _REAL,
            "grounding": _REAL, "fusion": _STRING, "reranker": _STRING, "rounds": _NUMBER,
            "kbs": _NUMBER, "prompt": _STRING, "error": _STRING, "user_id": _STRING,
            "agent_id": _STRING, "session_id": _STRING, "tokens": _NUMBER,
        },
    ),
    "accesses": (
        "accesses",
        {
            "at AS accessed_at": _INSTANT, "memory_id": _STRING,
            "nullif(query_id, '') AS query_id": _STRING, "kind": _STRING,
            "nullif(user, '') AS user_id": _STRING, "nullif(agent, '') AS agent_id": _STRING,
        },
    ),
    "audit": (
        "audit",
        {
            "id": _NUMBER, "at AS occurred_at": _INSTANT, "actor": _STRING, "action": _STRING,
            "objects": _STRING, "counts": _STRING, "before": _STRING, "after": _STRING,
            "hash": _STRING,
        },
    ),
    "model_usage": (
        "model_usage",
        {
            "day": _DAY, "task": _STRING, "model": _STRING, "calls": _NUMBER, "cached": _NUMBER,
            "failed": _NUMBER, "input_tokens": _NUMBER, "output_tokens": _NUMBER, "cost": _REAL,
            "seconds": _REAL,
        },
    ),
}  # fmt: skip


_KINDS: Mapping[Any, _Column] = {
    str: _STRING, int: _NUMBER, float: _REAL, bool: _FLAG, datetime: _INSTANT,
}  # fmt: skip


def _content_columns(table: ContentTable) -> dict[str, _Column]:
    """Return the columns of a table of content; objects and lists are text in JSON."""
    columns: dict[str, _Column] = {}
    for name, hint in get_type_hints(table.table.record).items():
        kinds = [kind for kind in get_args(hint) if kind is not NoneType] or [hint]
        column = "at AS occurred_at" if name == "at" else name
        columns[column] = _KINDS.get(kinds[0], _STRING) if len(kinds) == 1 else _STRING
    return columns


_ALL_COLUMNS: Mapping[str, tuple[str, Mapping[str, _Column]]] = {
    **_LEDGER_COLUMNS,
    **{each.name: (each.name, _content_columns(each)) for each in CONTENT_TABLES},
}
LEDGER_TABLES = tuple(_ALL_COLUMNS)


def ledger_tables(
    ledger: Ledger, names: Container[str], now: datetime | None = None
) -> dict[str, pa.Table]:
    """Return the ledger's tables as Arrow tables, without rows that have expired.

    Args:
        ledger: The ledger.
        names: Names of the tables to read, or text that names them; the others come without rows.
        now: What has expired by then is left out; by default nothing is.

    Raises:
        DamagedError: The ledger cannot be read.
    """
    return {
        name: _ledger_table(
            _ledger_rows(ledger, table, columns, now) if name in names else [], columns
        )
        for name, (table, columns) in _ALL_COLUMNS.items()
    }


def _ledger_rows(
    ledger: Ledger, table: str, columns: Collection[str], now: datetime | None
) -> list[tuple[Any, ...]]:
    ask, values = f"SELECT {', '.join(columns)} FROM {table}", []
    if now is not None and EXPIRES in columns:
        ask += f" WHERE {EXPIRES} IS NULL OR {EXPIRES} > ?"
        values = [to_text(now)]
    with ledger.reading() as connection:
        return connection.execute(ask, values).fetchall()


def _ledger_table(rows: list[tuple[Any, ...]], columns: Mapping[str, _Column]) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table(
        {
            column.rpartition(" ")[2]: pa.array(
                [None if v is None else convert(v) for v in items], type_
            )
            for (column, (type_, convert)), items in zip(columns.items(), values, strict=True)
        }
    )
