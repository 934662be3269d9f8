"""The sentences of a group of memories, and which of them are worth quoting in an insight."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memctl.consolidate.claims import Claim, claim
from memctl.consolidate.values import values
from memctl.consolidate.wording import quotable
from memctl.records import Memory
from memctl.understand.sentences import sentences
from memctl.understand.terms import terms

_SHORTEST, _LONGEST = 20, 240
_FEWEST_STEMS = 3
_LOOKED_AT = 60
"""Sentences of one memory; a memory is a passage at most, so this is a guard, not a choice."""
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~|[-=*_]{3,}\s*$)")
_UNFIT = re.compile(
    r"\?|\b(?:thanks?|thank you|hello|hi|hey|cheers|welcome|sounds (?:good|great|like)|"
    r"looking forward|see you|can['’]t wait|let me know|take care|awesome|lol|haha|absolutely|"
    r"definitely|exactly|good (?:luck|idea|point)|best (?:regards|wishes)|you['’]re|"
    r"remind me|let['’]s|wow|cool)\b|https?://\S+$|[\U0001f300-\U0001faff]",
    re.IGNORECASE,
)
_SAME = 0.7


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of one member of a group."""

    member: int
    text: str
    stems: frozenset[str]
    claim: Claim | None
    has_value: bool
    is_fit: bool
    """Says something by itself: no question, no greeting, no heading, neither short nor long."""


def statements(members: Sequence[Memory]) -> list[Statement]:
    """Return the sentences of every member, headings and tables left out."""
    return [item for number, memory in enumerate(members) for item in _of(number, memory)]


def _of(number: int, memory: Memory) -> list[Statement]:
    found = []
    for start, end in sentences(memory.text)[:_LOOKED_AT]:
        sentence = memory.text[start:end]
        if _HEADING.match(sentence):
            continue
        text = quotable(sentence)
        stems = frozenset(terms(text))
        fit = (
            _SHORTEST <= len(text) <= _LONGEST
            and len(stems) >= _FEWEST_STEMS
            and not _UNFIT.search(text)
        )
        found.append(
            Statement(number, text, stems, claim(text, memory.speaker), bool(values(text)), fit)
        )
    return found


def same(first: frozenset[str], second: frozenset[str]) -> bool:
    """Two sentences say the same in nearly the same words."""
    union = len(first | second)
    return union > 0 and len(first & second) / union >= _SAME


def best_statements(
    candidates: Sequence[Statement], anchors: Collection[str], lead: frozenset[str]
) -> list[Statement]:
    """Return at most one statement for each member, none twice, in the members' order.

    Args:
        candidates: What can be chosen from.
        anchors: Stems of what the group shares; a statement must contain one.
        lead: Stems of the group's title.
    """
    chosen: dict[int, tuple[float, Statement]] = {}
    for item in candidates:
        if not item.is_fit or not item.stems.intersection(anchors):
            continue
        worth = _worth(item, anchors, lead)
        if item.member not in chosen or worth > chosen[item.member][0]:
            chosen[item.member] = (worth, item)
    distinct: list[Statement] = []
    for _, item in sorted(chosen.values(), key=lambda pair: (pair[1].member, -pair[0])):
        if not any(same(item.stems, other.stems) for other in distinct):
            distinct.append(item)
    return distinct


def _worth(item: Statement, anchors: Collection[str], lead: frozenset[str]) -> float:
    shared = len(item.stems.intersection(anchors))
    return (
        1.5 * (len(item.stems & lead) / max(len(lead), 1))
        + 0.4 * min(shared, 4)
        + 0.8 * item.has_value
        + 0.6 * (item.claim is not None)
        - 0.5 * item.text.endswith(("!", ":", "…"))
        - 0.002 * abs(len(item.text) - 90)
    )
