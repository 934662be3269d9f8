"""What an insight is before it has an id, and the groups that a model draws one from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from memctl.consolidation.known_insights import COMMON
from memctl.consolidation.memory_pool import GENERIC_NAMES
from memctl.language.sentence_values import values
from memctl.literals import InsightKind
from memctl.records import Connection, Memory

_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nicht|kein\w*)\b|n['’]t\b", re.IGNORECASE
)


class Draft(Struct, frozen=True):
    """An insight before it has an id."""

    kind: InsightKind
    about: str
    """What it is about, in a form to compare drafts of one kind by."""
    title: str
    text: str
    sources: tuple[Memory, ...]
    """The memories that it rests on."""
    connections: tuple[Connection, ...]
    importance: float
    confidence: float
    method: str
    """Name and version of what made it: ``builtin/2``."""
    is_whole: bool
    """Whether it tells of a whole group, not of one thing."""

    @property
    def source_ids(self) -> tuple[str, ...]:
        """The ids of what it rests on."""
        return tuple(memory.id for memory in self.sources)

    @property
    def entities(self) -> tuple[str, ...]:
        """Names that two of its sources have, or its only one; in most sources first."""
        counts: dict[str, int] = {}
        for memory in self.sources:
            for name in memory.entities:
                if name.casefold() not in GENERIC_NAMES:
                    counts[name] = counts.get(name, 0) + 1
        fewest = min(2, len(self.sources))
        shared = [name for name in counts if counts[name] >= fewest]
        return tuple(sorted(shared, key=lambda name: (-counts[name], name))[:12])

    @property
    def family(self) -> str:
        """What it can be brought up to date by: another of the same family about the same."""
        return COMMON if self.is_whole else self.kind


class Tie(Struct, frozen=True):
    """How two members of a group, by their place in it, hang together."""

    first: int
    second: int
    weight: float
    cosine: float
    shares_name: bool


class Group(Struct, frozen=True):
    """Memories that belong together, oldest first, and the links between them."""

    members: tuple[Memory, ...]
    ties: tuple[Tie, ...]

    def connections(self, near_duplicate: float) -> tuple[Connection, ...]:
        """How the members hang together; alike from the cosine ``near_duplicate`` on."""
        return tuple(self._connection(tie, near_duplicate) for tie in self.ties)

    def _connection(self, tie: Tie, near_duplicate: float) -> Connection:
        first, second = self.members[tie.first], self.members[tie.second]
        name = "same_entity" if tie.shares_name else "similar"
        if says_the_same(first.text, second.text, tie.cosine, near_duplicate):
            name = "near_duplicate"
        return Connection(first.id, second.id, name, round(min(tie.weight, 1.0), 3), "")

    def cohesion(self, members: Sequence[Memory]) -> float:
        """How strongly some members hang together; 0 when no two of them are linked."""
        inside = {place for place, memory in enumerate(self.members) if memory in members}
        weights = [t.weight for t in self.ties if {t.first, t.second} <= inside] or [0.0]
        return round(min(0.95, sum(weights) / len(weights)), 3)


def says_the_same(first: str, second: str, cosine: float, near_duplicate: float) -> bool:
    """Return whether two texts are alike, state the same values and deny as much."""
    if cosine < near_duplicate and first.split() != second.split():
        return False
    if len(_NEGATION.findall(first)) != len(_NEGATION.findall(second)):
        return False
    mine, theirs = values(first), values(second)
    return all(
        any(a.kind == b.kind and a.unit == b.unit and a.agrees_with(b) for b in others)
        for some, others in ((mine, theirs), (theirs, mine))
        for a in some
    )


def connections_within(
    connections: Sequence[Connection], members: Sequence[Memory]
) -> tuple[Connection, ...]:
    """Those of the connections whose both ends are among the members."""
    ids = {memory.id for memory in members}
    return tuple(item for item in connections if {item.source_id, item.target_id} <= ids)


def importance_of(members: Sequence[Memory], more: float) -> float:
    """That of the most important member and ``more``, at most 1, in three digits."""
    return round(min(1.0, max(memory.importance for memory in members) + more), 3)
