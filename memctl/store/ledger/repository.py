"""One generic repository: the rows of a ledger table as frozen records.

A table is declared by its name, its record and its key; how a field is stored follows from its
type.  Instants are ISO 8601 text in UTC with microseconds, which sorts; mappings and tuples are
JSON; paths of files are bytes, because they need not be UTF-8.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from memctl.ids import storable

R = TypeVar("R")
LedgerConnection = sqlite3.Connection
"""What a step of a transaction gets of the ledger."""


class Connections(Protocol):
    """What a repository needs of the ledger it belongs to."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        """Write; a power cut may take back what is not durable."""
        ...

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Read."""
        ...


def to_text(instant: datetime) -> str:
    """Return an instant as text that sorts."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds")


def from_text(text: str) -> datetime:
    """Return the instant that :func:`to_text` wrote."""
    return datetime.fromisoformat(text)


class Codec(Struct, frozen=True):
    """How the values of a field are stored; None is stored as NULL."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


PathText = Annotated[str, Codec(os.fsencode, os.fsdecode)]
"""A path, stored as the bytes that the system knows it by."""
Compressed = Annotated[bytes, Codec(zlib.compress, zlib.decompress)]

_JSON_MAPPING = Codec(lambda value: json.dumps(dict(value)), json.loads)
_JSON_LIST = Codec(json.dumps, lambda text: tuple(json.loads(text)))
_CODECS: Mapping[Any, Codec] = {
    str: Codec(storable, str),
    datetime: Codec(to_text, from_text),
    bool: Codec(bool, bool),
    Mapping: _JSON_MAPPING,
    tuple: _JSON_LIST,
}


def _codec(annotation: Any) -> Codec | None:
    """Return the codec of a type; None if its values are stored unchanged."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return next(each for each in annotation.__metadata__ if isinstance(each, Codec))
    if origin in (Union, UnionType):
        options = [each for each in get_args(annotation) if each is not type(None)]
        return _codec(options[0]) if len(options) == 1 else None
    kind = Mapping if isinstance(origin, type) and issubclass(origin, Mapping) else origin
    return _CODECS.get(kind or annotation)


class LedgerTable(Generic[R]):
    """The declaration of one table of the ledger.

    Args:
        name: Of the table.
        record: A frozen record; each of its fields is a column.
        key: The columns that tell rows apart.
        order: The columns by which rows are listed; by default the key.
    """

    def __init__(
        self, name: str, record: Callable[..., R], key: tuple[str, ...] = (), order: str = ""
    ) -> None:
        self.name = name
        self.record = record
        self.key = key
        self.order = order or ", ".join(key) or "rowid"

    @cached_property
    def _codecs(self) -> dict[str, Codec | None]:
        hints = get_type_hints(self.record, include_extras=True)
        return {name: _codec(hint) for name, hint in hints.items()}

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The columns, in the order of the record's fields."""
        return tuple(self._codecs)

    @cached_property
    def columns(self) -> str:
        """The columns as SQL lists them."""
        return ", ".join(self.fields)

    @cached_property
    def marks(self) -> str:
        """A placeholder for each column."""
        return ", ".join("?" * len(self.fields))

    @cached_property
    def by_key(self) -> str:
        """The SQL condition that finds the row with a key."""
        return " AND ".join(f"{column} IS ?" for column in self.key)

    @cached_property
    def select(self) -> str:
        """The SQL that reads all rows."""
        return f"SELECT {self.columns} FROM {self.name}"

    def insert(self, verb: str = "INSERT OR REPLACE") -> str:
        """Return the SQL that writes a row; by default in place of one with the same key."""
        return f"{verb} INTO {self.name} ({self.columns}) VALUES ({self.marks})"

    def stored_rows(self, connection: sqlite3.Connection) -> list[dict[str, Any]]:
        """Return all rows as SQLite stores them, by column."""
        rows = connection.execute(self.select).fetchall()
        return [dict(zip(self.fields, row, strict=True)) for row in rows]

    def encode(self, record: R) -> tuple[Any, ...]:
        """Return a record as a row."""
        return tuple(self.encode_value(name, getattr(record, name)) for name in self._codecs)

    def encode_value(self, column: str, value: Any) -> Any:
        """Return a value as it is stored in a column."""
        codec = self._codecs[column]
        return value if value is None or codec is None else codec.encode(value)

    def decode(self, row: Iterable[Any]) -> R:
        """Return a row as a record."""
        pairs = zip(row, self._codecs.values(), strict=True)
        return self.record(*(v if v is None or c is None else c.decode(v) for v, c in pairs))


def _storable(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return values as they are stored: text without what no encoding has."""
    return tuple(storable(each) if isinstance(each, str) else each for each in values)


class Repository(Generic[R]):
    """The rows of one table; a subclass adds what only its table can be asked."""

    table: ClassVar[LedgerTable[Any]]

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def save(self, *records: R) -> None:
        """Write records, in place of earlier ones with the same keys."""
        self.write(records)

    def write(self, records: Iterable[R], conflict: str = "", *, durable: bool = True) -> None:
        """Write records.

        Args:
            records: The records.
            conflict: The SQL that says what to do where the key is taken, such as ``DO NOTHING``;
                by default the earlier row is replaced.
            durable: False for what a power cut may take back.
        """
        table = self.table
        verb = "INSERT" if conflict else "INSERT OR REPLACE"
        otherwise = f" ON CONFLICT {conflict}" if conflict else ""
        self.execute_each(
            f"{table.insert(verb)}{otherwise}",
            map(table.encode, records),
            durable=durable,
        )

    def find(self, *key: Any) -> R | None:
        """Return the record with a key."""
        found = self.select(self.table.by_key, *self._encode_key(key))
        return found[0] if found else None

    def remove(self, *key: Any) -> None:
        """Delete the record with a key."""
        self.delete(self.table.by_key, *self._encode_key(key))

    def all(self) -> list[R]:
        """Return every record, in the table's order."""
        return self.select("TRUE")

    def select(self, where: str, *values: Any, order: str = "", limit: int = -1) -> list[R]:
        """Return the records for which an SQL condition holds; all of them for a limit of -1."""
        table = self.table
        rows = self.rows(
            f"{table.select} WHERE {where} ORDER BY {order or table.order} LIMIT {limit}",
            *values,
        )
        return [table.decode(row) for row in rows]

    def count(self, where: str = "TRUE", *values: Any) -> int:
        """Return for how many records a condition holds."""
        rows = self.rows(f"SELECT count(*) FROM {self.table.name} WHERE {where}", *values)
        return int(rows[0][0])

    def delete(self, where: str, *values: Any) -> None:
        """Delete the records for which a condition holds."""
        self.execute(f"DELETE FROM {self.table.name} WHERE {where}", *values)

    def delete_each(self, column: str, values: Iterable[Any]) -> None:
        """Delete the records that have one of some values in a column."""
        statement = f"DELETE FROM {self.table.name} WHERE {column} = ?"
        self.execute_each(statement, ((value,) for value in values))

    def trim(self, limit: int) -> None:
        """Delete all but the newest records; of tables with an ``id`` that counts up."""
        name = self.table.name
        self.delete(f"id <= (SELECT max(id) FROM {name}) - ?", limit)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what a query gives."""
        with self._ledger.reading() as connection:
            return connection.execute(statement, _storable(values)).fetchall()

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Change something."""
        with self._ledger.transaction() as connection:
            return connection.execute(statement, _storable(values))

    def execute_each(
        self, statement: str, rows: Iterable[tuple[Any, ...]], *, durable: bool = True
    ) -> None:
        """Change something for each of some rows of values."""
        with self._ledger.transaction(durable=durable) as connection:
            connection.executemany(statement, rows)

    @contextmanager
    def wiping_transaction(self) -> Iterator[sqlite3.Connection]:
        """Change something, and have nothing of what was there before left in the file."""
        with self._ledger.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            yield connection
        with self._ledger.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _encode_key(self, key: tuple[Any, ...]) -> Iterator[Any]:
        return map(self.table.encode_value, self.table.key, key)


class OwnedRepository(Repository[R]):
    """Rows that belong to something else, which the first columns of their key name."""

    def of(self, *owner: Any) -> list[R]:
        """Return the rows of an owner, in the table's order."""
        columns = self.table.key[: len(owner)]
        where = " AND ".join(f"{column} = ?" for column in columns)
        return self.select(where, *self._encode_key(owner))
