"""Values of a pool: JSON objects, paths with dots that lead into them, reads and changes of them.

A change gives a new object and leaves the former as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.redaction import redact_secrets
from memctl.store.ledger.pool_repositories import encode_json

Data = Mapping[str, Any]
BULLETIN = "agent_bulletin"
"""The top-level key whose values are bulletins."""
DEEPEST = 64
"""Levels of objects and lists in one another."""
LONGEST_KEY = 1_000
"""Characters of a path."""
_NAMED_KEYS = 8
_KINDS = {
    bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list",
    type(None): "null",
}  # fmt: skip


def parse_path(key: str) -> tuple[str, ...]:
    """Return the parts of a path like ``agent_bulletin.market_regime``.

    Raises:
        UsageError: It is too long, a part is empty, or it has characters that cannot be shown.
    """
    if len(key) > LONGEST_KEY:
        raise UsageError(f"a key has at most {LONGEST_KEY:,} characters, not {len(key):,}")
    parts = tuple(key.split("."))
    if not all(part.strip() for part in parts):
        raise UsageError(f"the key {key!r} has an empty part", "write it like a or a.b.c")
    if not key.isprintable():
        raise UsageError(f"the key {key!r} has characters that cannot be shown")
    if len(parts) > DEEPEST:
        raise UsageError(f"a key has at most {DEEPEST} parts, not {len(parts):,}")
    return parts


def is_bulletin(key: str) -> bool:
    """Return whether subscribers get a key as a bulletin."""
    return key == BULLETIN or key.startswith(f"{BULLETIN}.")


def parse_json(text: str) -> Any:
    """Return the value that JSON stands for.

    Raises:
        UsageError: It is no JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise UsageError(f"a value has at most {DEEPEST} levels") from None
    except ValueError as error:
        raise UsageError(
            f"the value is no JSON: {error}", "put texts in quotes, '\"like this\"', or add --text"
        ) from None


def checked_value(value: object) -> Any:
    """Return a value as JSON has it.

    Raises:
        UsageError: JSON has no such value, or it is nested too deep.
    """
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except RecursionError:
        raise UsageError(f"a value has at most {DEEPEST} levels") from None
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the value cannot be stored as JSON: {error}",
            "JSON has texts, finite numbers, true, false, null, lists and objects",
        ) from None
    if _depth(plain) > DEEPEST:
        raise UsageError(f"a value has at most {DEEPEST} levels")
    return plain


def checked_data(value: object) -> Data:
    """Return what can be the data of a pool, or a part of it: an object whose keys are no paths.

    Raises:
        UsageError: It is something else.
    """
    data = checked_value(value)
    if not isinstance(data, dict):
        raise UsageError(
            f"the data of a pool is a JSON object, not {kind_of(data)}", 'write {"key": value}'
        )
    for key in data:
        if len(parse_path(key)) > 1:
            raise UsageError(
                f"the key {key!r} has a dot, which separates the parts of a path",
                "nest objects instead: {" + '"a": {"b": ...}}',
            )
    return data


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= DEEPEST:
        depth += 1
        level = [inner for item in level for inner in _items(item)]
    return depth


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def kind_of(value: object) -> str:
    """Return what a value of JSON is, for a message."""
    return _KINDS.get(type(value), "an object")


def same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON; to Python, 1, 1.0 and true are equal."""
    return encode_json(one) == encode_json(other)


def value_at(data: Data, path: tuple[str, ...]) -> Any:
    """Return the value that a path leads to.

    Raises:
        NotFoundError: There is none.
    """
    found: Any = data
    for number, part in enumerate(path):
        if not isinstance(found, dict):
            before = ".".join(path[:number])
            raise NotFoundError(f"{before!r} is {kind_of(found)}, so it has no key {part!r}")
        if part not in found:
            raise NotFoundError(
                f"there is no key {'.'.join(path[: number + 1])!r}", _known_keys(found)
            )
        found = found[part]
    return found


def _known_keys(data: Data) -> str:
    names = sorted(data)[:_NAMED_KEYS]
    more = len(data) - len(names)
    listed = ", ".join(names) + (f" and {more:,} more" if more else "")
    return f"there are {listed}" if names else "nothing has been written there yet"


def with_value(data: Data, path: tuple[str, ...], value: Any) -> Data:
    """Return data with a value where a path leads; objects on the way are made.

    Raises:
        UsageError: The path leads through a value that is no object.
    """
    return _with(data, path, 0, value)


def _with(data: Data, path: tuple[str, ...], number: int, value: Any) -> Data:
    part = path[number]
    if number == len(path) - 1:
        return {**data, part: value}
    inner = data.get(part, {})
    if not isinstance(inner, dict):
        before, rest = ".".join(path[: number + 1]), ".".join(path[number + 1 :])
        raise UsageError(
            f"{before!r} is {kind_of(inner)}, so it can have no key {rest!r}",
            f"write an object to {before!r} first, or choose another key",
        )
    return {**data, part: _with(inner, path, number + 1, value)}


def without_value(data: Data, path: tuple[str, ...]) -> Data:
    """Return data without the value that a path leads to.

    Raises:
        NotFoundError: There is none.
    """
    value_at(data, path)
    part, rest = path[0], path[1:]
    if rest:
        return {**data, part: without_value(data[part], rest)}
    return {key: value for key, value in data.items() if key != part}


def merge_objects(data: Data, partial: Data) -> Data:
    """Return data with another object merged in: objects deeply, all else replaced."""
    result = dict(data)
    for key, value in partial.items():
        present = result.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        result[key] = merge_objects(present, value) if both else value  # type: ignore[arg-type]
    return result


def changed_paths(before: Data, after: Data) -> tuple[str, ...]:
    """Return the keys whose values differ: top-level ones, and each bulletin separately."""
    found: list[str] = []
    for key in changed_keys(before, after):
        old, new = before.get(key) or {}, after.get(key) or {}
        if key == BULLETIN and isinstance(old, dict) and isinstance(new, dict):
            found += [f"{key}.{name}" for name in changed_keys(old, new)] or [key]
        else:
            found.append(key)
    return tuple(found)


def changed_keys(before: Data, after: Data) -> tuple[str, ...]:
    """Return the keys of two objects whose values differ, or that only one has."""
    return tuple(
        key
        for key in dict.fromkeys((*before, *after))
        if not (key in before and key in after and same(before[key], after[key]))
    )


def count_entries(data: Data) -> int:
    """Return how many values an object has that are no objects with keys themselves."""
    return sum(
        count_entries(value) if isinstance(value, dict) and value else 1 for value in data.values()
    )


def leaf_values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of an object that is no object with keys itself, with its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaf_values(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def without_secrets(value: Any, key: str = "") -> Any:
    """Return a value with ``[redacted]`` in place of secrets in its texts.

    Args:
        value: Of JSON.
        key: What it stands under, for ``password`` says what a word after it is.
    """
    if isinstance(value, dict):
        return {name: without_secrets(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner, key) for inner in value]
    if not isinstance(value, str):
        return value
    prefix = f"{key}: "
    clean = redact_secrets(f"{prefix}{value}")
    return clean.removeprefix(prefix) if clean.startswith(prefix) else redact_secrets(value)


# --- what is read of pools, and what writes come to ----------------------------------------------


class PoolValue(Struct, frozen=True):
    """What was read from a pool."""

    pool_id: str
    key: str | None
    """The path; None for all data."""
    value: Any
    version: int
    """Of the pool; a write with ``if_version`` fails if the pool has changed since."""


class PoolChange(Struct, frozen=True):
    """What a write came to."""

    pool_id: str
    version: int
    keys: tuple[str, ...]
    """The paths that were written or removed."""
    evicted: tuple[str, ...]
    """Keys that had to go to make room."""
    data_size_bytes: int


class PoolKeyUse(Struct, frozen=True):
    """One top-level key of a pool in numbers."""

    key: str
    bytes: int
    reads: int
    version: int
    written_at: datetime
    written_by: str
    expires_at: datetime | None


class PoolAgentUse(Struct, frozen=True):
    """How much one agent has used a pool."""

    agent: str
    reads: int
    writes: int
    last_read_at: datetime | None
    last_written_at: datetime | None


class PoolStatistics(Struct, frozen=True):
    """A pool in numbers."""

    pool_id: str
    entries: int
    """Values that are no objects with keys themselves."""
    data_size_bytes: int
    max_size_bytes: int
    version: int
    read_count: int
    write_count: int
    last_read_at: datetime | None
    last_written_at: datetime | None
    versions_kept: int
    by_agent: tuple[PoolAgentUse, ...]
    """The most active first."""
    by_key: tuple[PoolKeyUse, ...]
