"""The sentences of a group of memories, and which of them are worth quoting in an insight."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memctl.consolidation.insight_wording import quotable
from memctl.consolidation.sentence_claims import Claim, Conflict, claims, conflict, speech
from memctl.consolidation.sentence_values import values
from memctl.language.sentence_splitting import split_sentences
from memctl.language.term_analysis import terms
from memctl.records import Memory
from memctl.understanding.sentence_reading import bare_statement

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
    text = bare_statement(memory.text, memory.title) if memory.level == "memory" else memory.text
    lines = [text[start:end] for start, end in split_sentences(text)[:_LOOKED_AT]]
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
