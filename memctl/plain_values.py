"""Records and rows as JSON knows them: what every surface that speaks JSON gives alike.

Knows how a value is written, never what it means.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict

from memctl.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
MOST_LEVELS = 64
"""Given values may be nested this deep; JSON parsers give up at about 1,000."""
_WHOLE_ROW = frozenset(("document_id", "root_id"))
"""Columns that a document or memory has, unlike what SQL selects of it."""


def is_deep(value: object) -> bool:
    """Return whether objects and lists are nested deeper than is taken."""
    level, depth = [value], 0
    while level and depth <= MOST_LEVELS:
        depth += 1
        below = (each.values() if isinstance(each, Mapping) else each for each in level)
        level = [
            item
            for some in below
            if not isinstance(some, (str, bytes)) and isinstance(some, Iterable)
            for item in some
            if isinstance(item, (Mapping, list, tuple))
        ]
    return depth > MOST_LEVELS


def require_shallow(metadata: Mapping[str, Any] | None) -> None:
    """Refuse metadata that is nested too deep to be read again, or has what no JSON has.

    Raises:
        UsageError: It is, or has NaN or Infinity.
    """
    if metadata and is_deep(metadata):
        raise UsageError(f"the metadata is nested deeper than {MOST_LEVELS} levels")
    if metadata and _has_no_number(metadata):
        raise UsageError("the metadata has NaN or Infinity", "write null, or a number")


def _has_no_number(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_has_no_number, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_no_number, value))


class NoJsonNumber(ValueError):
    """It is JSON but for NaN or Infinity."""


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says; unlike ``json.loads`` it takes no NaN and Infinity, as JSON has none.

    Raises:
        NoJsonNumber: It has one of those.
        ValueError: It is no JSON.
    """

    def refuse(name: str) -> None:
        raise NoJsonNumber(f"{name} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def plain_rows(source: object) -> Iterator[dict[str, Any]]:
    """Yield every row as a dict of plain values, ready for JSON."""
    if hasattr(source, "__arrow_c_stream__"):
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_stream(source)
        short = _single_precision(reader.schema)
        for batch in reader:
            for row in batch.to_pylist():
                yield _decode(row, short)
    elif isinstance(source, Iterable):
        yield from (to_plain(row) for row in source)


def arrow_batches(
    source: object,
    as_text: Callable[[Any], str] = json.dumps,
    record: type[Struct] | None = None,
    leading: Iterable[str] = (),
) -> pa.RecordBatchReader:
    """Return rows as a stream of Arrow batches.

    Args:
        source: Records or mappings, or anything with the Arrow stream protocol.
        as_text: Writes nested values as JSON, which every tool can hold in a column.
        record: What each row is, which tells the columns where there is no row, and their types.
        leading: Columns of texts that stand before its fields.
    """
    import pyarrow as pa

    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source)
    types = dict.fromkeys(leading, pa.string()) | _types_of(record) if record else {}
    rows = [
        {
            key: as_text(value) if _is_nested(value) or _is_text(value, types.get(key)) else value
            for key, value in row.items()
        }
        for row in plain_rows(source)
    ]
    keys = dict.fromkeys(key for row in rows for key in row) if rows else types
    columns = {key: _column([row.get(key) for row in rows]) for key in keys}
    return pa.table(
        {key: pa.array(values, types.get(key)) for key, values in columns.items()}
    ).to_reader()


def _types_of(record: type[Struct]) -> dict[str, pa.DataType]:
    """Return the types of the columns that records become."""
    hints = get_type_hints(record)
    return {name: _type_of(hints[name]) for name in record.__struct_fields__}


def _type_of(hint: object) -> pa.DataType:
    """Return the type of a column: numbers, truth, lists of one of these, or else texts.

    Mappings and lists of records are texts, too, which are JSON.
    """
    import pyarrow as pa

    kinds = [each for each in get_args(hint) if each is not NoneType]
    if get_origin(hint) in (Union, UnionType):
        return _type_of(kinds[0]) if len(kinds) == 1 else pa.string()
    if get_origin(hint) in (tuple, list, frozenset):
        return pa.string() if _is_nesting(kinds[0]) else pa.list_(_type_of(kinds[0]))
    known = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return next((known[each] for each in known if each is hint), pa.string())


def _is_nesting(hint: object) -> bool:
    kind = get_origin(hint) or hint
    return isinstance(kind, type) and issubclass(kind, (Struct, Mapping, tuple, list))


def _is_text(value: object, type_: pa.DataType | None) -> bool:
    """Return whether a list is JSON in its column, as it is in rows where it is not empty."""
    return isinstance(value, list) and type_ is not None and str(type_) == "string"


def _column(values: list[Any]) -> list[Any]:
    """Return the values of a column, all as text where they are of several types."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return values
    return [value if isinstance(value, str | None) else json.dumps(value) for value in values]


def _is_nested(value: object) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, (dict, list)) for item in value)
    return isinstance(value, dict)


def _single_precision(schema: pa.Schema) -> frozenset[str]:
    return frozenset(item.name for item in schema if str(item.type) == "float")


def _decode(row: Row, short: frozenset[str]) -> dict[str, Any]:
    """Turn columns that hold JSON text into what the text says; vectors are left out.

    Numbers of single precision get the digits that they have: 0.7, not 0.699999988079071.
    """
    from memctl.schema.declarations import JSON_COLUMNS

    decoded = {}
    for key, value in row.items():
        if key in JSON_COLUMNS and isinstance(value, str) and value:
            decoded[key] = to_plain(json.loads(value))
        elif key in short and value is not None:
            decoded[key] = to_plain(float(f"{value:.7g}"))
        elif key != "vector":
            decoded[key] = to_plain(value)
    return _with_unit(decoded) if _WHOLE_ROW & decoded.keys() else decoded


def to_plain(value: Any) -> Any:
    """Return ``value`` as JSON knows it: records are objects, instants ISO 8601 in UTC."""
    if value is None or isinstance(value, (str, int)):  # most are: what follows takes its time
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Struct):
        return _with_unit({name: to_plain(item) for name, item in asdict(value).items()})
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if hasattr(value, "months"):
        return _interval(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime):
        return _instant(value)
    return _plain_of_engine(value)


def _with_unit(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the file as its source, and the unit in it that it is from, if any."""
    from memctl.records import split_unit

    source = record.get("source")
    file, unit = split_unit(source) if isinstance(source, str) else ("", "")
    return {**record, "source": file, "unit": unit} if unit else record


def _plain_of_engine(value: Any) -> Any:
    """Return a value of a type that JSON lacks: whole decimals are integers, bytes base64."""
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _instant(value: datetime) -> str:
    """Return ISO 8601; an instant without a zone, which only SQL gives, stays without."""
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _interval(value: Any) -> str:
    """Return months, days and nanoseconds as an ISO 8601 duration: ``P1M2DT30S``."""
    seconds = f"{Decimal(value.nanoseconds).scaleb(-9).normalize():f}"
    return f"P{value.months}M{value.days}DT{seconds}S"


def _number(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    return int(value) if value == value.to_integral_value() else float(value)
