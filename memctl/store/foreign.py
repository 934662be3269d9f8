"""Rows that somebody else has made, checked before they become part of a knowledge base."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import UsageError
from memctl.records import LEVELS
from memctl.store.schema import VECTOR, TableName, vector_rows

_NEVER_MISSING: Mapping[TableName, tuple[str, ...]] = {
    "documents": ("id", "root_id", "namespace", "source", "status", "text", "created_at"),
    "memories": ("id", "level", "type", "text", "namespace", "created_at", "valid_from", "source"),
    "entities": ("id", "name", "type"),
    "relations": ("id", "source_id", "target_id", "relation_type"),
}
_OBJECTS = ("metadata", "signals")
_HINT = "it was damaged, or made to do harm: ask whoever made it for another one"


class ForeignRows:
    """The rows of one table of an export, part by part."""

    def __init__(self, table: TableName) -> None:
        self._table = table
        self._ids: list[pa.Array] = []

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
        if VECTOR in batch.schema.names and not np.isfinite(vector_rows(batch[VECTOR])).all():
            raise self._refused("vectors with something else than numbers")
        self._ids.append(batch["id"])

    def check_ids(self) -> None:
        """Refuse rows of the same id.

        Raises:
            UsageError: There are some.
        """
        ids = pa.chunked_array(self._ids, pa.string())
        if pc.count_distinct(ids).as_py() != len(ids):
            raise self._refused("several rows of one id")

    def _refused(self, what: str) -> UsageError:
        return UsageError(f"the export cannot be imported: {self._table} has {what}", _HINT)


def _distinct(column: pa.Array) -> list[str]:
    found: list[str] = column.unique().drop_null().to_pylist()
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
