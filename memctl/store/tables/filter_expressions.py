"""Filters as expressions, and the one place where they become text for the engine.

Lance takes pyarrow expressions too, but those cannot ask whether a list holds a value, so the
expressions here are rendered to Lance's SQL dialect.  Everything that decides about quoting is in
the section "rendering"; a value never reaches the text in any other way.

In that dialect (lance 13) text stands in single quotes, a quote inside is doubled, a backslash
means itself and double quotes also make text, not names; names stand in backticks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memctl.errors import UsageError
from memctl.ids import storable, tag_name
from memctl.literals import OWN_SOURCES
from memctl.patterns import lazy_regex
from memctl.records import Filters

if TYPE_CHECKING:
    import pyarrow.compute as pc


Value = str | int | float | bool | datetime
Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_COLUMN = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LARGEST_INT = 2**63 - 1
_LONGEST_GLOB = 1_000


class Expr(Struct, frozen=True):
    """A condition on a row; combine with ``&``, ``|`` and ``~``.

    As in SQL a comparison with a missing value is neither true nor false, so neither ``x == 1``
    nor ``~(x == 1)`` finds rows where ``x`` is missing.
    """

    def __and__(self, other: Expr) -> Expr:
        return Every(_flatten(Every, (self, other)))

    def __or__(self, other: Expr) -> Expr:
        return Some(_flatten(Some, (self, other)))

    def __invert__(self) -> Expr:
        return Negation(self)

    def __bool__(self) -> bool:
        raise TypeError("combine filters with & | ~ instead of and, or, not")


class Comparison(Expr, frozen=True):
    """A column compared with a value."""

    column: str
    operator: Operator
    value: Value


class Membership(Expr, frozen=True):
    """A column whose value is one of several."""

    column: str
    values: tuple[Value, ...]


class Missing(Expr, frozen=True):
    """A column without a value."""

    column: str


class Holds(Expr, frozen=True):
    """A list column that holds at least one of several values."""

    column: str
    values: tuple[str, ...]


class Glob(Expr, frozen=True):
    """A text column that matches a shell pattern."""

    column: str
    pattern: str


class Every(Expr, frozen=True):
    """All parts hold; true without parts."""

    parts: tuple[Expr, ...]


class Some(Expr, frozen=True):
    """At least one part holds; false without parts."""

    parts: tuple[Expr, ...]


class Negation(Expr, frozen=True):
    """The part does not hold."""

    part: Expr


class Where(Expr, frozen=True):
    """A condition that a user wrote, checked to be complete on its own; made by :func:`where`."""

    text: str


class Constant(Struct, frozen=True):
    """The value that every row has in a column that its table has not got yet."""

    type: str
    """As Lance's dialect writes it; of a list, that of its items."""
    value: Value | None
    is_list: bool = False
    """Whether the column holds lists, all of them empty; a list of null serves as one."""
    is_null: bool = False

    @property
    def sql(self) -> str:
        """Return it in Lance's dialect."""
        one = f"CAST({'NULL' if self.value is None else _literal(self.value)} AS {self.type})"
        return f"[{one}]" if self.is_list else one


Constants = Mapping[str, Constant]
_NO_CONSTANTS: Constants = {}


class Column:
    """A column by name, from which conditions are made."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, value: Value) -> Expr:  # type: ignore[override]
        return Comparison(self.name, "=", value)

    def __ne__(self, value: Value) -> Expr:  # type: ignore[override]
        return Comparison(self.name, "!=", value)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, value: Value) -> Expr:
        return Comparison(self.name, "<", value)

    def __le__(self, value: Value) -> Expr:
        return Comparison(self.name, "<=", value)

    def __gt__(self, value: Value) -> Expr:
        return Comparison(self.name, ">", value)

    def __ge__(self, value: Value) -> Expr:
        return Comparison(self.name, ">=", value)

    def is_in(self, values: Iterable[Value]) -> Expr:
        """One of the values; nothing is in an empty list."""
        return Membership(self.name, tuple(values))

    def is_null(self) -> Expr:
        """No value."""
        return Missing(self.name)

    def has(self, value: str) -> Expr:
        """A list column that holds the value."""
        return Holds(self.name, (value,))

    def has_any(self, values: Iterable[str]) -> Expr:
        """A list column that holds at least one of the values."""
        return Holds(self.name, tuple(values))

    def like_glob(self, pattern: str) -> Expr:
        """A text column that matches a shell pattern, as a whole or in its last path part."""
        return Glob(self.name, pattern)


def col(name: str) -> Column:
    """Return the column of that name, to make conditions from."""
    return Column(name)


EVERYTHING: Expr = Every(())
NOTHING: Expr = Some(())


def _flatten(kind: type[Every] | type[Some], parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Merge nested parts of one kind: the engine's parser gives up some fifty levels deep."""
    flat: list[Expr] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return tuple(flat)


# --- rendering: the only place where values become text ------------------------------------------


def render(expression: Expr, constants: Constants = _NO_CONSTANTS) -> str:
    """Return the expression in Lance's dialect, wrapped so that it stands as one operand.

    Args:
        expression: The condition.
        constants: Columns that the table has not got yet, which have one value in every row.
    """

    def name(column: str) -> str:
        """Return what stands for a column."""
        return constants[column].sql if column in constants else _name(column)

    match expression:
        case Comparison(column, operator, value):
            return f"({name(column)} {operator} {_literal(value)})"
        case Membership(column, values):
            return _any_of(values, f"({name(column)} IN (%s))")
        case Holds(column, values):
            return _any_of(values, f"(array_has_any({name(column)}, [%s]))")
        case Missing(column):
            if column in constants:
                return "(true)" if constants[column].is_null else "(false)"
            return f"({_name(column)} IS NULL)"
        case Glob(column, pattern):
            return f"(regexp_like({name(column)}, {_literal(glob_regex(pattern))}))"
        case Every(parts):
            return _join_parts(parts, constants, " AND ", "true")
        case Some(parts):
            return _join_parts(parts, constants, " OR ", "false")
        case Negation(part):
            return f"(NOT {render(part, constants)})"
        case Where(text):
            return f"({with_constants(text, constants)}\n)"
    raise TypeError(f"not a filter: {expression!r}")


def _join_parts(parts: tuple[Expr, ...], constants: Constants, operator: str, empty: str) -> str:
    return f"({operator.join(render(part, constants) for part in parts) or empty})"


def _any_of(values: tuple[Value, ...], template: str) -> str:
    head, _, tail = template.partition("%s")
    return f"{head}{', '.join(map(_literal, values))}{tail}" if values else "(false)"


def _name(column: str) -> str:
    if not _COLUMN.match(column):
        raise UsageError(f"{column!r} is not a column name")
    return f"`{column}`"


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _instant(value)
    return _number(value)


def _text(value: str) -> str:
    return "'" + storable(value).replace("'", "''") + "'"


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    return f"timestamp '{value.astimezone(UTC).isoformat()}'"


def _number(value: float) -> str:
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST_INT):
        raise UsageError(f"{value} is out of range for a filter")
    return repr(value)


def glob_regex(pattern: str) -> str:
    """Return a shell pattern as a regular expression that matches the whole or the last part.

    ``*`` and ``?`` also match slashes; ``[abc]``, ``[a-z]`` and ``[!a]`` are character sets.
    """
    return rf"^(?s:(?:.*[/\\])?{''.join(_glob_parts(pattern))})$"


def _glob_parts(pattern: str) -> Iterable[str]:
    if len(pattern) > _LONGEST_GLOB:
        raise UsageError(f"the pattern is longer than {_LONGEST_GLOB} characters")
    at = 0
    while at < len(pattern):
        character = pattern[at]
        close = pattern.find("]", at + 2) if character == "[" else -1
        if close > 0:
            yield _character_set(pattern[at + 1 : close])
            at = close + 1
            continue
        yield {"*": ".*", "?": "."}.get(character) or _escape(character)
        at += 1


def _character_set(inside: str) -> str:
    negated = inside[:1] in ("!", "^") and len(inside) > 1
    members = inside[1:] if negated else inside
    safe = "".join(item if item == "-" else _escape(item) for item in members)
    return f"[{'^' if negated else ''}{safe}]"


def _escape(character: str) -> str:
    """Escape one character for Rust's regular expressions: by code point, unless it is a word's."""
    return character if character.isalnum() else f"\\x{{{ord(character):X}}}"


# --- what people ask for -------------------------------------------------------------------------


def both(one: Expr | None, other: Expr | None) -> Expr | None:
    """Return the condition that both hold, None being the one that always does."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def where(text: str) -> Expr:
    """Return a user's SQL condition as an expression.

    Unlike in SQL, ``COLUMN <> VALUE`` also holds where the column has no value.

    Raises:
        UsageError: It is not one complete condition.
    """
    return Where(_keep_missing(checked_condition(text)))


def as_arrow(expression: Expr) -> pc.Expression:
    """Return a condition on texts' membership as pyarrow's own, for an engine that adds to it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match expression:
        case Membership(column, values):
            clean = [storable(str(value)) for value in values]
            return pc.field(column).isin(pa.array(clean, pa.string()))
        case Negation(part):
            return ~as_arrow(part)
    raise TypeError(f"not a condition on membership: {expression!r}")


def is_user_written(expression: Expr) -> bool:
    """Return whether a part of the expression was written by a user, so that errors are theirs."""
    match expression:
        case Every(parts) | Some(parts):
            return any(map(is_user_written, parts))
        case Negation(part):
            return is_user_written(part)
        case _:
            return isinstance(expression, Where | Glob)


def not_self_written() -> Expr:
    """A condition for memories that memctl has not written by itself, such as about a day."""
    return ~reduce(or_, (col("source").like_glob(f"{own}*") for own in OWN_SOURCES))


def memory_filter(filters: Filters, now: datetime, *, has_ended: bool = False) -> Expr:
    """Return the condition on ``memories``: valid at ``as_of`` or now, and within the limits.

    With ``has_ended``, they were valid before that and are no longer.  What is archived is left out
    unless it is asked for.
    """
    at = filters.as_of or now
    valid = _not_ended(filters.as_of)
    parts = [~valid if has_ended else valid]
    parts += [ends_after("expires_at", at), *_shared_conditions(filters)]
    if filters.as_of is not None:
        parts.append(col("valid_from") <= filters.as_of)
    if not filters.archived:
        parts.append(_not_ended(filters.as_of, "archived_at"))
    if filters.types:
        parts.append(col("type").is_in(filters.types))
    if filters.levels:
        parts.append(col("level").is_in(filters.levels))
    return Every(_flatten(Every, tuple(parts)))


def _not_ended(at: datetime | None, column: str = "valid_to") -> Expr:
    """Not ended at a time; now, what ever ended has: the clock may have been ahead when it did."""
    return col(column).is_null() if at is None else ends_after(column, at)


def document_filter(filters: Filters) -> Expr:
    """Return the condition on ``documents``; types and levels are a memory's and are not looked at.

    Superseded and gone documents are shown only with ``as_of``, which shows all known by then.
    """
    parts = list(_shared_conditions(filters))
    if filters.as_of is None:
        parts.append(~col("status").is_in(("superseded", "gone")))
    else:
        parts.append(col("ingested_at") <= filters.as_of)
    return Every(_flatten(Every, tuple(parts)))


def namespace_filter(filters: Filters) -> Expr | None:
    """Return the condition on the namespace; None where there is none."""
    if filters.namespaces:
        return col("namespace").is_in(filters.namespaces)
    return ~col("namespace").is_in(filters.private) if filters.private else None


def ends_after(column: str, instant: datetime) -> Expr:
    """Return the condition that what a column gives as an end has not come by an instant."""
    return col(column).is_null() | (col(column) > instant)


def _shared_conditions(filters: Filters) -> Iterable[Expr]:
    if (within := namespace_filter(filters)) is not None:
        yield within
    if filters.tags:
        names = dict.fromkeys((*filters.tags, *map(tag_name, filters.tags)))
        yield col("tags").has_any(tuple(names))
    if filters.topics:
        words = (*filters.topics, *(topic.lower() for topic in filters.topics))
        yield col("topics").has_any(dict.fromkeys(words))
    if filters.since is not None:
        yield col("created_at") >= filters.since
    if filters.until is not None:
        yield col("created_at") < filters.until
    if filters.session is not None:
        same = col("session_id") == filters.session
        yield (~same | col("session_id").is_null()) if filters.other_sessions else same
    if filters.source is not None:
        yield col("source").like_glob(filters.source)
    if filters.least_importance is not None:
        yield col("importance") >= filters.least_importance
    if filters.where is not None:
        yield where(filters.where)


LONGEST = 10_000
"""Characters; tens of thousands of operators would overflow the engine's stack."""

_CONDITION_HINT = "write one SQL condition, such as: importance > 0.7 AND type = 'decision'"
# Text may not touch a word: E'..', X'..' and such have other rules for what ends them.
_TOKEN = lazy_regex(
    r"""
      (?P<text>(?<![A-Za-z0-9_])'(?:[^']|'')*'(?![A-Za-z0-9_]))
    | (?P<name>`[A-Za-z_][A-Za-z0-9_]*`)
    | (?P<bad>--|/\*|\*/)
    | (?P<open>[(\[])
    | (?P<close>[)\]])
    | (?P<plain>[A-Za-z0-9_\s.,<>=!+\-*/%|:]) """,
    re.VERBOSE | re.ASCII,
)
_PAIRS = {")": "(", "]": "["}


def checked_condition(text: str) -> str:
    """Return ``text`` when it is a complete condition on its own.

    Raises:
        UsageError: It is empty, too long, unbalanced, or has comments, several statements or
            characters that a condition does not need.
    """
    if not text.strip():
        raise UsageError("the condition is empty", _CONDITION_HINT)
    if len(text) > LONGEST:
        raise UsageError(f"the condition is longer than {LONGEST} characters", _CONDITION_HINT)
    _check_brackets(text, _tokens(text))
    return text


_UNEQUAL = lazy_regex(
    r"""
      '(?:[^']|'')*'
    | (?P<before>^\s* | \(\s* | \b(?:AND|OR|NOT)\s+)
      (?P<unequal>
        (?P<column>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z_][A-Za-z0-9_]*`) \s* (?:<>|!=)
        \s* (?:(?:(?:timestamp|date)\s*)?'(?:[^']|'')*' | -?[0-9]+(?:\.[0-9]+)? | true | false)
      )
      (?=\s*(?:$|\)|(?:AND|OR)\b)) """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""A text, or a whole comparison of a column with one value."""


def _keep_missing(text: str) -> str:
    """Return a condition in which ``COLUMN <> VALUE`` holds for rows without a value, too.

    Lance's dialect has no ``IS DISTINCT FROM`` (lance 13: "not supported SQL").
    """

    def widen(found: re.Match[str]) -> str:
        """Return a text as it is, a comparison with what it leaves out."""
        if found["unequal"] is None:
            return found[0]
        return f"{found['before']}({found['unequal']} OR {found['column']} IS NULL)"

    return _UNEQUAL.sub(widen, text)


def with_constants(text: str, constants: Constants) -> str:
    """Return a user's condition with values in place of columns that the table has not got yet."""
    if not constants:
        return text
    names = "|".join(map(re.escape, constants))
    pattern = re.compile(rf"('(?:[^']|'')*')|`({names})`|(?<![\w.`'])({names})(?![\w`'])")
    return pattern.sub(lambda found: found[1] or constants[found[2] or found[3]].sql, text)


def _tokens(text: str) -> list[re.Match[str]]:
    tokens, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup == "bad":
            raise UsageError(_complaint(text, at), _CONDITION_HINT)
        tokens.append(token)
        at = token.end()
    return tokens


def _complaint(text: str, at: int) -> str:
    if text[at] == '"':
        return "double quotes in a condition: text stands in single quotes, names in backticks"
    if text[at] == "'":
        return f"a quote that is not closed, or touches a word, at character {at + 1}"
    return f"{text[at : at + 2].strip() or text[at]!r} is not allowed at character {at + 1}"


def _check_brackets(text: str, tokens: list[re.Match[str]]) -> None:
    opened: list[str] = []
    for token in tokens:
        if token.lastgroup == "open":
            opened.append(token.group())
        elif token.lastgroup == "close" and (not opened or opened.pop() != _PAIRS[token.group()]):
            raise UsageError(
                f"a bracket closes nothing at character {token.start() + 1}", _CONDITION_HINT
            )
    if opened:
        raise UsageError(f"a bracket is not closed in {text!r}", _CONDITION_HINT)
