"""Arguments of the command line, checked before anything is done.

An empty one is refused: it is usually an unset variable of the shell, and treating it as not given
would mean the whole folder, or everything that is known.
"""

from __future__ import annotations

import difflib
import json
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from memctl.errors import UsageError
from memctl.instants import last_instant, utc_now
from memctl.instants import parse_end as parse_end
from memctl.instants import parse_expiry as parse_expiry
from memctl.instants import parse_instant as parse_instant
from memctl.instants import parse_seconds as parse_seconds
from memctl.literals import DocType
from memctl.paths import display_path, expand_path, os_error_hint, os_error_reason
from memctl.patterns import lazy_regex
from memctl.plain_values import parse_json

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Filters, Level

_ASK = 'ask something: memctl query "when is ...?"'
_UNSET = "give one, or leave the option out; a variable of the shell may not be set"


def refuse_empty(options: Mapping[str, str | Sequence[str] | None]) -> None:
    """Refuse options whose value, or one of whose values, is blank.

    Args:
        options: What was given for each option, by the option's name.

    Raises:
        UsageError: Names the first such option.
    """
    for option, argument in options.items():
        values = [argument] if isinstance(argument, str) else argument or ()
        if not all(value.strip() for value in values):
            raise UsageError(f"{option} is empty", _UNSET)


def parse_path(name: str) -> Path:
    """Return the path that the user wrote.

    Raises:
        UsageError: It is empty, or has a NUL in it.
    """
    if not name:
        raise UsageError("a path is empty", "give one; a variable of the shell may not be set")
    if "\0" in name:
        raise UsageError(f"no path has a NUL in it: {display_path(name)}")
    return expand_path(name)


def replacing(path: Path) -> str:
    """Return what to add to the line on a file that is about to be written, where there is one."""
    return ", in place of the file that was there" if path.is_file() else ""


def input_file(name: str, hint: str) -> Path:
    """Return the path of a file to read; a pipe will do.

    Args:
        name: What the user wrote.
        hint: What to write instead where it is no file.

    Raises:
        UsageError: It is not there, is a folder, or cannot be looked at.
    """
    path = parse_path(name)
    mode = _mode(path)
    if mode is None:
        raise UsageError(f"no such file: {display_path(name)}", hint)
    if stat.S_ISDIR(mode):
        raise UsageError(f"{display_path(name)} is a folder", hint)
    return path


def input_folder(name: str, hint: str) -> Path:
    """Return the whole path of a folder.

    Args:
        name: What the user wrote.
        hint: What to do where it is none.

    Raises:
        UsageError: It is not there, is a file, or cannot be looked at.
    """
    path = parse_path(name).absolute()
    mode = _mode(path)
    if mode is None or not stat.S_ISDIR(mode):
        problem = "no such folder" if mode is None else "not a folder"
        raise UsageError(f"{problem}: {display_path(name)}", hint)
    return path


def input_path(name: str, hint: str) -> Path:
    """Return the path of a file or a folder to read.

    Args:
        name: What the user wrote.
        hint: What to do where there is nothing.

    Raises:
        UsageError: Nothing is there, or it cannot be looked at.
    """
    path = parse_path(name)
    if _mode(path) is None:
        raise UsageError(f"no such file or folder: {display_path(name)}", hint)
    return path


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{display_path(path)}: {os_error_reason(error)}", os_error_hint(error)
        ) from error


def read_question(words: Sequence[str], hint: str = _ASK) -> str:
    """Return a question from the words of the command line; ``-`` is standard input.

    Args:
        words: The words.
        hint: How the command is used.

    Raises:
        UsageError: There are no words in it.
    """
    text = sys.stdin.read() if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        raise UsageError("the question is empty", hint)
    if not any(map(str.isalnum, text)):
        raise UsageError("the question has no words", hint)
    return text.strip()


def read_stdin(most_bytes: int, too_long: UsageError) -> str:
    """Return the text on standard input.

    Raises:
        UsageError: It is longer, which raises ``too_long``, or no UTF-8.
    """
    content = sys.stdin.buffer.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise too_long
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("standard input is no UTF-8", "convert it first") from None


_TYPES = (
    "passage", "turn", "query", "gist", "fact", "important_fact", "decision", "preference", "plan",
    "event", "observation", "reflection", "learning", "memories", "important_information",
    "summary", "conversation", "conversation_turn", "conversation_summary", "tool_output",
    "quoted", "insight",
)  # fmt: skip
_META = lazy_regex(r"(?P<key>[^=!<>]+)(?P<operator>!=|>=|<=|=|>|<)(?P<value>.*)", re.DOTALL)
_META_OPERATORS = {
    "=": "$eq", "!=": "$ne", ">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte",
}  # fmt: skip


def parse_filters(
    *,
    namespaces: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    levels: Sequence[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
    session: str | None = None,
    source: str | None = None,
    where: str | None = None,
    doc_types: Sequence[str] | None = None,
    meta: Sequence[str] | None = None,
    metadata: str | None = None,
    entities: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    archived: bool | None = None,
) -> Filters:
    """Return what a query or listing is limited to.

    Raises:
        UsageError: A date or a level is not one, a word is empty, or no instant is between since
            and until.
    """
    from memctl.records import Filters

    words = tuple(tag.removeprefix("#") for tag in tags or ())
    named = {"--namespace": namespaces, "--tag": words, "--type": types, "--level": levels}
    named |= {"--entity": entities, "--topic": topics}
    refuse_empty({**named, "--session": session, "--source": source})
    now = utc_now()
    start = None if since is None else parse_instant(since, now)
    end = None if until is None else parse_instant(until, now)
    if start and end and end <= start:
        raise _empty_range_error(since, until, start)
    return Filters(
        namespaces=tuple(namespaces or ()),
        tags=words,
        types=tuple(types or ()),
        levels=tuple(_level(level) for level in levels or ()),
        since=start,
        until=end,
        as_of=None if as_of is None else last_instant(as_of, now),
        session=session,
        source=None if source is None else _stored_name(source),
        where=where,
        doc_types=tuple(map(_doc_type, doc_types or ())),
        metadata=_metadata_filter(meta or (), metadata),
        entities=tuple(entities or ()),
        topics=tuple(topics or ()),
        archived=bool(archived),
    )


def _metadata_filter(pairs: Sequence[str], text: str | None) -> dict[str, Any] | None:
    """Return one filter of conditions like ``year>=2024`` and a filter in JSON.

    Raises:
        UsageError: One of them cannot be read.
    """
    conditions: list[Any] = []
    for pair in pairs:
        match = _META.fullmatch(pair)
        if match is None:
            raise UsageError(f"{pair!r} is no condition", "write --meta year=2024 or 'year>=2024'")
        value: object = match["value"].strip()
        with suppress(ValueError):
            number = json.loads(match["value"])
            value = number if isinstance(number, (int, float)) else value
        conditions.append({match["key"].strip(): {_META_OPERATORS[match["operator"]]: value}})
    if text is not None:
        try:
            conditions.append(json.loads(text))
        except ValueError:
            raise UsageError("--filter is no JSON", 'write \'{"year": {"$gte": 2024}}\'') from None
    return {"$and": conditions} if conditions else None


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return what is given as ``key=value``; numbers, true, false and null as JSON has them.

    Raises:
        UsageError: One is no such pair.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not key.strip() or not equals:
            raise UsageError(f"{pair!r} is no pair", f"write {option} year=2024")
        value: object = text.strip()
        with suppress(ValueError):
            scalar = parse_json(text)
            value = scalar if scalar is None or isinstance(scalar, (int, float)) else value
        found[key.strip()] = value
    return found


def parse_metadata(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Return what is given as ``key=value``, or as a JSON object.

    Raises:
        UsageError: Something is neither.
    """
    found: dict[str, Any] = {}
    for each in pairs:
        if not each.lstrip().startswith("{"):
            found |= parse_pairs([each], option)
            continue
        try:
            found |= parse_json(each)
        except ValueError as error:
            hint = f"""write {option} '{{"year": 2024}}', or {option} year=2024"""
            raise UsageError(f"{option} is no JSON object: {error}", hint) from None
    return found


def _stored_name(source: str) -> str:
    """Return the name of a source whose bytes are not UTF-8 as it is stored."""
    if source.isprintable():
        return source
    from memctl.ingest.discovery.sources import printable

    return printable(source)


def _empty_range_error(since: str | None, until: str | None, start: datetime) -> UsageError:
    next_day = start.date() + timedelta(days=1)
    return UsageError(
        f"nothing is from {since!r} on and before {until!r}",
        f"--until is exclusive: for that one day write --until {next_day}",
    )


def _level(text: str) -> Level:
    from memctl.records import LEVELS

    if text not in LEVELS:
        raise UsageError(f"there is no level {text!r}", f"use {', '.join(LEVELS)}")
    return text


def _doc_type(text: str) -> str:
    known = get_args(DocType)
    if text not in known:
        raise UsageError(f"there is no document type {text!r}", f"use {', '.join(known)}")
    return text


_SIZE = lazy_regex(r"(\d{1,12})(?:\.(\d{1,3}))?\s*(b|kb?|mb?|gb?)?", re.ASCII)
_BYTES = {"b": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def parse_bytes(text: str) -> int:
    """Return a size like ``5MB`` in bytes; a number alone is in bytes.

    Raises:
        UsageError: It is none.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is no size", "write 5000, 200kB, 5MB or 1.5MB")
    unit = _BYTES[(match[3] or "b")[0]]
    return int(match[1]) * unit + int((match[2] or "0").ljust(3, "0")) * unit // 1_000


def check_types(bases: Iterable[KnowledgeBase], filters: Filters) -> None:
    """Check the types that memories are limited to: those that memctl gives, or any that is there.

    A memory that was added by hand may have any type.

    Raises:
        UsageError: One of them is neither.
    """
    from memctl.records import Filters

    for word in filters.types:
        alike = Filters(
            types=(word,), namespaces=filters.namespaces, as_of=filters.as_of, archived=True
        )
        if word in _TYPES or any(base.memories.count(alike) for base in bases):
            continue
        raise UsageError(f"no memory is of the type {word!r}", _types_hint(word))


def own_type_hint(word: str | None) -> str:
    """Return a warning about a type that memctl does not know; "" if it does."""
    return "" if word is None or word in _TYPES else _types_hint(word)


def _types_hint(word: str) -> str:
    near = difflib.get_close_matches(word.lower(), _TYPES, n=1)
    suggestion = f"did you mean --type {near[0]}? " if near else ""
    return f"{suggestion}types are {', '.join(_TYPES)}"
