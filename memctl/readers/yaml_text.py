"""YAML as plain values: nothing is constructed, and what blows up on reading is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memctl.errors import UnreadableSource
from memctl.readers.facts import Facts, facts_of
from memctl.readers.flatten import DEEPEST, too_deep

if TYPE_CHECKING:
    from yaml.events import Event

LARGEST_YAML = 20 * 1024 * 1024
FRONT_MATTER_CHARS = 64 * 1024
_MOST_VALUES = 2_000_000
_EXPANSION = 20
"""Aliases may make a document this many times as large as it is written."""


def load_documents(text: str) -> list[Any]:
    """The documents of a YAML text, every scalar as it is written: ``no``, ``10:30``, ``007``.

    Raises:
        UnreadableSource: It is no YAML (line and column are named), nested too deeply, refers to
            itself, or expands its aliases out of proportion.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_size(yaml.parse(text, Loader=loader))
        return list(yaml.load_all(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        raise UnreadableSource(f"it is not YAML: {_place(error)}", "correct that place") from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableSource(f"it is not YAML: {reason}", "correct that place") from error
    except RecursionError:
        raise too_deep() from None


def _place(error: Any) -> str:
    problem = error.problem or error.context or "cannot be parsed"
    mark = error.problem_mark or error.context_mark
    return f"{problem} at line {mark.line + 1} column {mark.column + 1}" if mark else problem


def _check_size(events: Iterator[Event]) -> None:
    """Add up how many values the text has once every alias is written out, and how deep it is."""
    from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    written = expanded = 0
    for event in events:
        if isinstance(event, CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor:
                sizes[anchor] = expanded - before
        elif isinstance(event, NodeEvent):
            written += 1
            expanded += _size(event, sizes) if isinstance(event, AliasEvent) else 1
            if isinstance(event, CollectionStartEvent):
                sizes.pop(event.anchor or "", None)
                open_.append((event.anchor, expanded - 1))
            elif event.anchor and not isinstance(event, AliasEvent):
                sizes[event.anchor] = 1
        if len(open_) > DEEPEST:
            raise too_deep()
        if expanded > min(_MOST_VALUES, _EXPANSION * written + 1000):
            raise UnreadableSource(
                "its aliases expand to too many values", "write the values out, or split the file"
            )


def _size(alias: Any, sizes: dict[str, int]) -> int:
    if alias.anchor not in sizes:
        raise UnreadableSource(
            f"its alias *{alias.anchor} refers to itself or to nothing", "correct that alias"
        )
    return sizes[alias.anchor]


def front_matter_facts(text: str) -> Facts | None:
    """What YAML front matter says of its document; None where it is no mapping."""
    if len(text) > FRONT_MATTER_CHARS:
        return None
    try:
        documents = load_documents(text)
    except UnreadableSource:
        return None
    values = documents[0] if documents else None
    return facts_of(values) if isinstance(values, dict) else None
