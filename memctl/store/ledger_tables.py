"""The ledger's books as Arrow tables, for SQL.

They are ``files``, ``jobs``, ``events``, ``queries`` and ``model_usage``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from memctl.store.books import from_text

if TYPE_CHECKING:
    from memctl.store.ledger import Ledger

_Column = tuple[pa.DataType, Callable[[Any], Any]]


def _same(value: Any) -> Any:
    return value


def _path(value: bytes) -> str:
    return value.decode("utf-8", "replace")


_TEXT: _Column = (pa.string(), _same)
_NUMBER: _Column = (pa.int64(), _same)
_SECONDS: _Column = (pa.float64(), _same)
_COST: _Column = (pa.float64(), _same)
_SCORE: _Column = (pa.float64(), _same)
_FLAG: _Column = (pa.bool_(), bool)
_PATH: _Column = (pa.string(), _path)
_DAY: _Column = (pa.date32(), date.fromisoformat)
_INSTANT: _Column = (pa.timestamp("us", tz="UTC"), from_text)

# ``at`` is a keyword in DuckDB 2.0, so no column is called that.
_TABLES: Mapping[str, tuple[str, Mapping[str, _Column]]] = {
    "files": (
        "files",
        {
            "path": _PATH, "inbox": _PATH, "size": _NUMBER, "state": _TEXT, "sha256": _TEXT,
            "document_id": _TEXT, "reason": _TEXT, "hint": _TEXT, "first_seen": _INSTANT,
            "updated_at": _INSTANT,
        },
    ),
    "jobs": (
        "jobs",
        {
            "id": _NUMBER, "kind": _TEXT, "state": _TEXT, "started_at": _INSTANT,
            "finished_at": _INSTANT, "detail": _TEXT,
        },
    ),
    "events": (
        "events",
        {
            "id": _NUMBER, "at AS occurred_at": _INSTANT, "kind": _TEXT, "message": _TEXT,
            "hint": _TEXT, "subject": _TEXT,
        },
    ),
    "queries": (
        "query_log",
        {
            "id": _NUMBER, "at AS asked_at": _INSTANT,
            "nullif(question, '') AS question": _TEXT, "mode": _TEXT, "hits": _NUMBER,
            "seconds": _SECONDS, "nullif(query_id, '') AS query_id": _TEXT, "kind": _TEXT,
            "found": _FLAG, "mean_score": _SCORE, "filters": _TEXT, "hit_ids": _TEXT,
            "feedback": _TEXT,
        },
    ),
    "model_usage": (
        "model_usage",
        {
            "day": _DAY, "task": _TEXT, "model": _TEXT, "calls": _NUMBER, "cached": _NUMBER,
            "failed": _NUMBER, "input_tokens": _NUMBER, "output_tokens": _NUMBER, "cost": _COST,
            "seconds": _SECONDS,
        },
    ),
}  # fmt: skip


LEDGER_TABLES = tuple(_TABLES)


def ledger_tables(ledger: Ledger, wanted: Container[str]) -> dict[str, pa.Table]:
    """Return the ledger's books as tables, as they are now.

    Args:
        ledger: The ledger.
        wanted: Names of the books to read, or text that names them; the others come without rows.

    Raises:
        DamagedError: The ledger cannot be read.
    """
    return {
        name: _table(_rows(ledger, book, columns) if name in wanted else [], columns)
        for name, (book, columns) in _TABLES.items()
    }


def _rows(ledger: Ledger, book: str, columns: Iterable[str]) -> list[tuple[Any, ...]]:
    with ledger.reading() as connection:
        return connection.execute(f"SELECT {', '.join(columns)} FROM {book}").fetchall()


def _table(rows: list[tuple[Any, ...]], columns: Mapping[str, _Column]) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table(
        {
            column.rpartition(" ")[2]: pa.array(
                [None if v is None else convert(v) for v in items], type_
            )
            for (column, (type_, convert)), items in zip(columns.items(), values, strict=True)
        }
    )
