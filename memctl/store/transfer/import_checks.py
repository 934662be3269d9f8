"""Checks of imported rows before they become part of a knowledge base."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import UsageError
from memctl.schema.arrow_tables import VECTOR, vector_rows
from memctl.schema.declarations import DECLARATIONS, Table
from memctl.schema.table_names import TableName

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = (
    (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
    (datetime(9999, 12, 30, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
)
"""The first and last that can be shown in any time zone."""
_LONGEST_ID = 200
"""Characters; those that are made here have some thirty."""
_HINT = "it was damaged, or made to do harm: ask whoever made it for another one"


class ImportedRows:
    """The rows of one table of an export, part by part."""

    def __init__(self, table: TableName) -> None:
        self._declared = DECLARATIONS[table]
        self._ids: list[pa.Array] = []
        self._is_any_found = False
        """Whether a vector has a direction; that of any text with a word has one."""

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse rows that the tables could not hold.

        Raises:
            UsageError: Something is missing, or is not of its kind.
        """
        declared = self._declared
        for column in declared.required:
            if batch[column].null_count:
                raise self._refused(f"rows without {column}")
        for column in declared.json_columns:
            if not all(map(_is_object, _distinct(batch[column]))):
                raise self._refused(f"rows whose {column} is no JSON object")
        for column, choices in declared.choices.items():
            if not set(_distinct(batch[column])) <= set(choices):
                raise self._refused(f"rows of a {column} that there is not")
        for name in batch.schema.names:
            if what := _wrong_in(declared, name, batch[name]):
                raise self._refused(f"rows with {what} as {name}")
        if VECTOR in batch.schema.names:
            self._check_vectors(batch[VECTOR])
        self._ids.append(batch["id"])

    def _check_vectors(self, column: pa.FixedSizeListArray) -> None:
        if column.null_count:
            raise self._refused("rows without a vector")
        rows = vector_rows(column)
        if not np.isfinite(rows).all():
            raise self._refused("vectors with something else than numbers")
        self._is_any_found = self._is_any_found or bool(rows.any())

    def check_whole(self) -> None:
        """Refuse rows of the same id, and vectors of nothing but zeros.

        Raises:
            UsageError: There are some.
        """
        if self._declared.has_vector and any(map(len, self._ids)) and not self._is_any_found:
            raise self._refused("vectors of nothing but zeros")
        ids = pa.chunked_array(self._ids, pa.string())
        if pc.count_distinct(ids).as_py() != len(ids):
            raise self._refused("several rows of one id")

    def _refused(self, what: str) -> UsageError:
        return UsageError(f"the export cannot be imported: {self._declared.name} has {what}", _HINT)


def _wrong_in(declared: Table, name: str, column: pa.Array) -> str:
    """Return what is wrong with a column; "" where nothing is."""
    kind = column.type
    if pa.types.is_list(kind):
        column = column.flatten()
        if column.null_count:
            return "nothing"
    if pa.types.is_string(column.type) and _is_any(pc.match_substring(column, "\0")):
        return "a text with a zero byte"
    if name in declared.id_columns and _is_any(pc.greater(pc.utf8_length(column), _LONGEST_ID)):
        return "something far too long"
    if pa.types.is_floating(kind) and _is_any(pc.invert(pc.is_finite(column))):
        return "something else than a number"
    if pa.types.is_timestamp(kind) and not _lies_in(column.cast(pa.int64()), _DATES):
        return "a date that there is not"
    if name in declared.bounds and not _lies_in(column, declared.bounds[name]):
        return "a number that it cannot be"
    return ""


def _lies_in(column: pa.Array, bounds: tuple[float, float]) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is None or bool(bounds[0] <= ends["min"] and ends["max"] <= bounds[1])


def _is_any(found: pa.BooleanArray) -> bool:
    return bool(pc.any(found).as_py())


def _distinct(column: pa.Array) -> list[str]:
    found: list[str] = column.unique().drop_null().to_pylist()
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
