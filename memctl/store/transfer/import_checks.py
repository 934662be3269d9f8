"""Rows that somebody else has made, checked before they become part of a knowledge base."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import UsageError
from memctl.records import LEVELS, DocumentStatus
from memctl.schema.arrow_tables import VECTOR, TableName, vector_rows

_NEVER_MISSING: Mapping[TableName, tuple[str, ...]] = {
    "documents": ("id", "root_id", "namespace", "source", "status", "text", "created_at"),
    "memories": ("id", "level", "type", "text", "namespace", "created_at", "valid_from", "source"),
    "entities": ("id", "name", "type"),
    "relations": ("id", "source_id", "target_id", "relation_type"),
}
_IDS = frozenset(
    ("id", "root_id", "document_id", "source_id", "target_id", "superseded_by", "source_ids",
     "memory_ids")
)  # fmt: skip
_OBJECTS = ("metadata", "signals")
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = (
    (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
    (datetime(9999, 12, 30, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
)
"""The first and last that can be shown in any time zone."""
_BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("importance", "confidence"), (0, 1)),
    **dict.fromkeys(("start", "end", "part", "size", "version"), (0, math.inf)),
    **dict.fromkeys(("access_count", "mention_count"), (0, math.inf)),
}
_LONGEST_ID = 200
"""Characters; those that are made here have some thirty."""
_STATUSES = frozenset(get_args(DocumentStatus))
_HINT = "it was damaged, or made to do harm: ask whoever made it for another one"


class ImportedRows:
    """The rows of one table of an export, part by part."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._ids: list[pa.Array] = []
        self._is_any_found = False
        """Whether a vector has a direction, as that of any text with a word has."""

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse rows that the tables here could not have.

        Raises:
            UsageError: Something is missing, or is not of its kind.
        """
        for column in _NEVER_MISSING[self._table]:
            if batch[column].null_count:
                raise self._refused(f"rows without {column}")
        for column in _OBJECTS:
            if column in batch.schema.names and not all(map(_is_object, _distinct(batch[column]))):
                raise self._refused(f"rows whose {column} is no JSON object")
        if "level" in batch.schema.names and not set(_distinct(batch["level"])) <= set(LEVELS):
            raise self._refused("rows of a level that there is not")
        for name in batch.schema.names:
            if what := _wrong_in(name, batch[name]):
                raise self._refused(f"rows with {what} as {name}")
        if "status" in batch.schema.names and not set(_distinct(batch["status"])) <= _STATUSES:
            raise self._refused("rows of a status that there is not")
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
        if self._table == "memories" and any(map(len, self._ids)) and not self._is_any_found:
            raise self._refused("vectors of nothing but zeros")
        ids = pa.chunked_array(self._ids, pa.string())
        if pc.count_distinct(ids).as_py() != len(ids):
            raise self._refused("several rows of one id")

    def _refused(self, what: str) -> UsageError:
        return UsageError(f"the export cannot be imported: {self._table} has {what}", _HINT)


def _wrong_in(name: str, column: pa.Array) -> str:
    """Say what a column has that none of its kind could have; "" where all is well."""
    kind = column.type
    if pa.types.is_list(kind):
        column = column.flatten()
        if column.null_count:
            return "nothing"
    if pa.types.is_string(column.type) and _is_any(pc.match_substring(column, "\0")):
        return "a text with a zero byte"
    if name in _IDS and _is_any(pc.greater(pc.utf8_length(column), _LONGEST_ID)):
        return "something far too long"
    if pa.types.is_floating(kind) and _is_any(pc.invert(pc.is_finite(column))):
        return "something else than a number"
    if pa.types.is_timestamp(kind) and not _lies_in(column.cast(pa.int64()), _DATES):
        return "a date that there is not"
    if name in _BOUNDS and not _lies_in(column, _BOUNDS[name]):
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
