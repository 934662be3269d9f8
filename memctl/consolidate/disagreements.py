"""Where the members of a group disagree, or say one after another how a thing changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memctl.consolidate.claims import Conflict, conflict
from memctl.consolidate.statements import Statement
from memctl.records import Memory

_MOST_CLAIMS = 200
_DAYS_OF_A_CHANGE = 3
_IS = re.compile(r"\b(?:is|was|are|were)\b")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Statements about one thing that cannot all hold, earliest first."""

    statements: tuple[Statement, ...]
    conflicts: tuple[tuple[int, int, Conflict], ...]
    """Pairs of members with how they differ, the earlier member first."""
    is_change: bool


def disagreements(members: Sequence[Memory], found: Sequence[Statement]) -> list[Disagreement]:
    """Return the disagreements between members, each thing once.

    One document does not contradict itself here, unless it was said at different times; nor do
    two documents that each define another thing.

    Args:
        members: The members of a group, oldest first.
        found: The statements of all of them.
    """
    topics = [_defined(memory) for memory in members]
    claiming = [item for item in found if item.claims][:_MOST_CLAIMS]
    edges: list[tuple[int, int, Conflict]] = []
    for later, item in enumerate(claiming):
        for earlier, other in enumerate(claiming[:later]):
            if not _comparable(members, topics, other.member, item.member):
                continue
            known = _compared(other, item)
            if known is not None:
                edges.append((earlier, later, known))
    dates = [memory.created_at for memory in members]
    return [_disagreement(claiming, part, dates) for part in _connected(edges)]


def _defined(memory: Memory) -> str:
    """What an article is about: "Elm Road is a street in ..." under the title Elm Road (London)."""
    name = re.split(r"[,(:]", memory.title)[0].strip().casefold()
    opening = memory.text[:200].casefold().removeprefix(memory.title.casefold()).lstrip()
    begins = memory.text.casefold().startswith(name) or opening.startswith(name)
    return memory.title.casefold() if name and begins and _IS.search(opening) else ""


def _comparable(members: Sequence[Memory], topics: Sequence[str], a: int, b: int) -> bool:
    first, second = members[a], members[b]
    if a == b or (topics[a] and topics[b] and topics[a] != topics[b]):
        return False
    same_document = (first.document_id or first.id) == (second.document_id or second.id)
    return not same_document or first.created_at != second.created_at


def _compared(first: Statement, second: Statement) -> Conflict | None:
    if first.stems.isdisjoint(second.stems):
        return None
    compared = (conflict(x, y) for x in first.claims for y in second.claims)
    return next((known for known in compared if known is not None), None)


def _connected(edges: Iterable[tuple[int, int, Conflict]]) -> list[list[tuple[int, int, Conflict]]]:
    """Put edges together that share a statement and differ in the same kind of thing."""
    parts: list[list[tuple[int, int, Conflict]]] = []
    for edge in edges:
        touching = [part for part in parts if any(_touch(edge, other) for other in part)]
        parts = [part for part in parts if part not in touching]
        parts.append([item for part in touching for item in part] + [edge])
    return parts


def _touch(first: tuple[int, int, Conflict], second: tuple[int, int, Conflict]) -> bool:
    same_kind = first[2].difference == second[2].difference
    return same_kind and bool({first[0], first[1]} & {second[0], second[1]})


def _disagreement(
    claiming: Sequence[Statement],
    edges: Sequence[tuple[int, int, Conflict]],
    dates: Sequence[datetime],
) -> Disagreement:
    by_member: dict[int, Statement] = {}
    for at in sorted({at for a, b, _ in edges for at in (a, b)}):
        by_member.setdefault(claiming[at].member, claiming[at])
    pairs = {(claiming[a].member, claiming[b].member): known for a, b, known in edges}
    days = {dates[member].date() for member in by_member}
    spread = max(days) - min(days) >= timedelta(days=1)
    is_change = spread and (
        all(known.is_change for known in pairs.values()) or len(days) >= _DAYS_OF_A_CHANGE
    )
    return Disagreement(
        tuple(by_member[member] for member in sorted(by_member)),
        tuple((a, b, known) for (a, b), known in sorted(pairs.items(), key=lambda item: item[0])),
        is_change,
    )
