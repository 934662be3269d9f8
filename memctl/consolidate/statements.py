"""The sentences of a group of memories, and which of them are worth quoting in an insight."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memctl.consolidate.claims import Claim, claims, speech
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
_TO_SOMEBODY = re.compile(r"\b(?:you|your|yours|y'all|guys|everyone)\b", re.IGNORECASE)
_LISTING = re.compile(r"[^.!?]{1,300}\btalks? about\b|\d+ rows? of\b")
"""How the gist of a conversation or a table begins: it lists what is there and states nothing."""
_SAME = 0.7


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of one member of a group."""

    member: int
    text: str
    speaker: str
    """Who is named as saying it; the text is without that."""
    stems: frozenset[str]
    claims: tuple[Claim, ...]
    has_value: bool
    is_fit: bool
    """Says something by itself: no question, no greeting, no heading, neither short nor long."""


def statements(members: Sequence[Memory]) -> list[Statement]:
    """Return the sentences of every member, headings and tables left out."""
    return [item for number, memory in enumerate(members) for item in _of(number, memory)]


def _of(number: int, memory: Memory) -> list[Statement]:
    found = []
    spans = sentences(memory.text)[:_LOOKED_AT]
    lines = [memory.text[start:end] for start, end in spans]
    spoken = _is_conversation(memory, lines)
    for line in lines:
        if _HEADING.match(line) or (memory.type == "gist" and _LISTING.match(line)):
            continue
        speaker, text = speech(quotable(line)) if spoken else ("", quotable(line))
        stems = frozenset(terms(text))
        said = values(text)
        found.append(
            Statement(
                number,
                text,
                speaker,
                stems,
                tuple(claims(text, speaker or memory.speaker)),
                bool(said),
                _is_fit(text, stems, any(value.kind != "quantity" for value in said)),
            )
        )
    return found


def _is_conversation(memory: Memory, lines: Sequence[str]) -> bool:
    """Tell "Ann: we moved" from "Harbour Street: we moved": people speak more than once."""
    labels = [speaker for speaker, _ in map(speech, lines) if speaker]
    return bool(memory.speaker) or memory.session_id is not None or len(labels) > 1


def _is_fit(text: str, stems: frozenset[str], is_definite: bool) -> bool:
    if not _SHORTEST <= len(text) <= _LONGEST or len(stems) < _FEWEST_STEMS:
        return False
    if _UNFIT.search(text):
        return False
    return is_definite or not (text.endswith("!") or _TO_SOMEBODY.search(text))


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
        + 0.6 * (bool(item.claims))
        - 0.5 * item.text.endswith(("!", ":", "…"))
        - 0.002 * abs(len(item.text) - 90)
    )
