"""Filters for which other rows have to be looked at become a condition on rows.

On the metadata of documents it is an object like ``{"year": {"$gte": 2024}}``.

A key is looked up in the metadata of the documents, and of memories that are of none: their ids
then make the condition.  Where it is a column of the table, too, such as ``source``, a row passes
if its column or the metadata do.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Literal

from memctl.errors import UsageError
from memctl.ids import folded_name
from memctl.schema.declarations import JSON_COLUMNS
from memctl.schema.document_types import doc_type_of
from memctl.store.tables.filter_expressions import EVERYTHING, NOTHING, Expr, col

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.records import Filters
    from memctl.store.tables.snapshot import Snapshot

_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_NEGATIONS = {"$ne": "$eq", "$nin": "$in"}
_OPERATORS = ("$eq", *_NEGATIONS, *_COMPARISONS, "$in", "$exists")
_HINT = 'write \'{"year": {"$gte": 2024}}\'; operators are ' + ", ".join(_OPERATORS)

Test = Callable[[Any], bool]


def metadata_condition(
    filters: Filters, table: Literal["documents", "memories"], snapshots: Iterable[Snapshot]
) -> Expr:
    """Return the condition on rows of a table for which other rows have to be looked at.

    Args:
        filters: Of which ``metadata``, ``doc_types`` and ``entities`` count.
        table: Of whose rows; memories have the metadata of their documents, if any.
        snapshots: Where documents and entities are.

    Raises:
        UsageError: The filter isn't one.
    """
    found = list(snapshots)
    condition = _type_condition(filters.doc_types, table, found)
    if filters.entities:
        condition &= col("entities").has_any(_spellings(filters.entities, found))
    if filters.metadata is None:
        return condition
    try:
        given = json.loads(str(filters.metadata))
    except ValueError:
        raise UsageError("the metadata filter is no JSON", _HINT) from None
    return condition & _Compiler(table, found).condition(given)


def _type_condition(
    types: Sequence[str], table: Literal["documents", "memories"], snapshots: Sequence[Snapshot]
) -> Expr:
    """Return the condition that documents are of some types.

    Rows that were written before there were types have none; the format tells what they are.
    """
    if not types:
        return EVERYTHING
    condition, untyped = col("doc_type").is_in(types), col("doc_type").is_null()
    for snapshot in snapshots:
        if not snapshot.count("documents", untyped):
            continue
        rows = snapshot.scan("documents", untyped, ["id", "media_type"]).to_pylist()
        ids = [row["id"] for row in rows if doc_type_of(row["media_type"]) in types]
        own = "id" if table == "documents" else "document_id"
        condition |= untyped & col(own).is_in(ids)
    return condition


def _spellings(names: Sequence[str], snapshots: Sequence[Snapshot]) -> set[str]:
    """Return names with all other spellings that are known of them, whatever their case."""
    wanted = set(map(folded_name, names))
    found = set(names)
    for snapshot in snapshots:
        for row in snapshot.each_row("entities", None, ["name", "aliases"]):
            spellings = (row["name"], *(row["aliases"] or ()))
            if not wanted.isdisjoint(map(folded_name, spellings)):
                found.update(spellings)
    return found


class _Compiler:
    """Compiles one filter for one table."""

    def __init__(self, table: Literal["documents", "memories"], snapshots: list[Snapshot]) -> None:
        self._snapshots = snapshots
        self._columns = snapshots[0].schema(table)
        self._id = "id" if table == "documents" else "document_id"

    def condition(self, given: object) -> Expr:
        """Return the condition of an object: all of its keys hold."""
        if not isinstance(given, dict) or not given:
            raise UsageError("a metadata filter is an object with keys", _HINT)
        return reduce(operator.and_, [self._entry(key, value) for key, value in given.items()])

    def _entry(self, key: str, value: object) -> Expr:
        if key in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise UsageError(f"{key} takes a list of objects", _HINT)
            combine = operator.and_ if key == "$and" else operator.or_
            return reduce(combine, [self.condition(each) for each in value])
        if key.startswith("$"):
            raise UsageError(f"there is no operator {key}", _HINT)
        tests = value if isinstance(value, dict) else {"$eq": value}
        if not tests:
            raise UsageError(f"nothing is asked of {key!r}", _HINT)
        if not any(name.startswith("$") or f"${name}" in _OPERATORS for name in tests):
            return self.condition({f"{key}.{name}": value for name, value in tests.items()})
        return reduce(operator.and_, [self._test(key, *each) for each in tests.items()])

    def _test(self, key: str, name: str, value: Any) -> Expr:
        if name not in _OPERATORS:
            hint = f"write ${name}" if f"${name}" in _OPERATORS else _HINT
            if not name.startswith("$") and hint == _HINT:
                hint = f"a key below {key!r} is written {json.dumps(f'{key}.{name}')}"
            raise UsageError(f"there is no operator {name}", hint)
        if name in ("$in", "$nin") and not isinstance(value, list):
            raise UsageError(f"{name} takes a list", _HINT)
        if name in _NEGATIONS:  # what has no value is not equal either
            return self._none_of(key, _NEGATIONS[name], value)
        if name == "$exists" and not value:
            return self._none_of(key, name, True)
        return reduce(operator.or_, self._conditions(key, name, value).values())

    def _none_of(self, key: str, name: str, value: Any) -> Expr:
        """Return the condition that neither the column nor the metadata pass a test."""
        conditions = self._conditions(key, name, value).items()
        return reduce(operator.and_, [~found | col(own).is_null() for own, found in conditions])

    def _conditions(self, key: str, name: str, value: Any) -> dict[str, Expr]:
        """Return where a value can be, each with the column that the condition is on.

        Raises:
            UsageError: The key is that of a column alone, which cannot have such a value.
        """
        found: dict[str, Expr] = {}
        is_column = key in self._columns.names and key not in JSON_COLUMNS
        path = key.removeprefix("metadata.")
        if is_column:
            try:
                found[key] = self._column_test(key, name, value)
            except UsageError:
                if not any(self._owners(path, _tester("$exists", True)).values()):
                    raise
        for own, ids in self._owners(path, _tester(name, value)).items():
            if ids or not found:
                condition = col(own).is_in(ids)
                found[own] = found[own] | condition if own in found else condition
        return found

    def _column_test(self, key: str, name: str, value: Any) -> Expr:
        import pyarrow as pa

        kind = self._columns.field(key).type
        column = col(key)
        if name == "$exists":
            return ~column.is_null()
        values = [_as_type(key, kind, each) for each in (value if name == "$in" else [value])]
        if pa.types.is_list(kind):
            if name in _COMPARISONS:
                raise UsageError(f"{key!r} is a list, which {name} cannot compare", _HINT)
            return column.has_any(map(str, values))
        if name in _COMPARISONS:
            compared: Expr = _COMPARISONS[name](column, values[0])  # type: ignore[assignment]
            return compared
        return column.is_in(values) if values else NOTHING

    def _owners(self, key: str, test: Test) -> dict[str, list[str]]:
        """Return the ids of rows whose metadata pass a test, by the id's column.

        Those are documents and, of memories, those that are of no document.
        """
        return {
            own: [id_ for id_, metadata in known if any(map(test, _values(metadata, key)))]
            for own, known in self._metadata.items()
        }

    @cached_property
    def _metadata(self) -> dict[str, list[tuple[str, Any]]]:
        """All metadata, each with the id of whose they are, by the column that has the id."""
        found = {self._id: self._read("documents", EVERYTHING)}
        if self._id == "document_id":
            found["id"] = self._read("memories", col("document_id").is_null())
        return found

    def _read(self, table: Literal["documents", "memories"], where: Expr) -> list[tuple[str, Any]]:
        condition = where & col("metadata").like_glob('*"*')
        return [
            (row["id"], json.loads(row["metadata"]))
            for snapshot in self._snapshots
            for row in snapshot.each_row(table, condition, ["id", "metadata"])
        ]


def _values(metadata: Any, key: str) -> Sequence[Any]:
    """Return the values at a key, which may be a path with dots; of a list each of its items."""
    if not isinstance(metadata, dict):
        return ()
    if key in metadata:
        value = metadata[key]
        return value if isinstance(value, list) else () if value is None else (value,)
    first, _, rest = key.partition(".")
    return _values(metadata.get(first), rest) if rest else ()


def _tester(name: str, value: Any) -> Test:
    if name == "$exists":
        return lambda _: True
    if name == "$in":
        return lambda found: any(_is_equal(found, each) for each in value)
    if name == "$eq":
        return lambda found: _is_equal(found, value)
    return lambda found: _compares(_COMPARISONS[name], found, value)


def _is_equal(found: object, value: object) -> bool:
    """Compare as a person writes them: 2024 is "2024"."""
    return found == value or _value_text(found) == _value_text(value)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _compares(compare: Callable[[Any, Any], bool], found: Any, value: Any) -> bool:
    """Compare numbers as numbers, texts (dates among them) as texts, and nothing else."""
    try:
        return compare(float(found), float(value))
    except (TypeError, ValueError):
        return isinstance(found, str) and isinstance(value, str) and compare(found, value)


def _as_type(key: str, kind: pa.DataType, value: Any) -> Any:
    """Return a value as a column has it.

    Raises:
        UsageError: The column cannot have such a value.
    """
    import pyarrow as pa

    try:
        if pa.types.is_timestamp(kind):
            instant = datetime.fromisoformat(str(value))
            return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        if pa.types.is_boolean(kind):
            return {"true": True, "false": False}[_value_text(value)]
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return float(value)
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{key!r} cannot be {value!r}", _HINT) from None
    return _value_text(value)
