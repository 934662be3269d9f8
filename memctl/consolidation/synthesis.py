"""From a group of memories to what they say together.

`Synthesizer` is the seam: whatever stands behind it gets the members of a group and how they hang
together and returns drafts of insights.  The one built in quotes the members' own sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from memctl.consolidation import insight_wording
from memctl.consolidation.group_statements import (
    Disagreement,
    Statement,
    best_statements,
    disagreements,
    statements,
)
from memctl.consolidation.known_insights import COMMON
from memctl.consolidation.memory_pool import DULL_NAMES
from memctl.consolidation.sentence_claims import denials, speech
from memctl.consolidation.sentence_values import values
from memctl.language.term_analysis import terms
from memctl.language.word_lists import ENGLISH_MONTHS, ENGLISH_WEEKDAYS, stop_words
from memctl.literals import CONTRADICTS
from memctl.records import Connection, Memory

METHOD = "builtin/1"

_MOST_STATEMENTS = 6
_SENTENCE_ANCHORS = 2
_MOST_WORDS = 4
_MOST_A_DOCUMENT = 2
_FEWEST_BEGINNING = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """How two members of a group, by their place in it, hang together."""

    first: int
    second: int
    weight: float
    cosine: float
    shares_name: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Memories that belong together, oldest first, and the links between them."""

    members: tuple[Memory, ...]
    pairs: tuple[Pair, ...]
    anchors: frozenset[str]
    """Stems of the rare names and words that two members share at least."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An insight before it has an id."""

    kind: str
    """``common``, ``change`` or ``contradiction``."""
    about: str
    """What it is about, in a form to compare drafts of one kind by."""
    title: str
    text: str
    source_ids: tuple[str, ...]
    entities: tuple[str, ...]
    connections: tuple[Connection, ...]
    importance: float
    confidence: float
    method: str
    """Name and version of what made it: ``builtin/1``."""
    is_whole: bool
    """Whether it tells of the whole group, not of one thing that changed or is disagreed on."""

    @property
    def family(self) -> str:
        """What it can be brought up to date by: another of the same family about the same."""
        return COMMON if self.is_whole else self.kind


@dataclass(frozen=True, slots=True)
class Synthesis:
    """What a group gives: insights, and links that hold whether or not there is an insight."""

    drafts: tuple[Draft, ...]
    connections: tuple[Connection, ...]


class Synthesizer(Protocol):
    """Says what the memories of a group have in common, how it changed, where they disagree."""

    def synthesize(self, group: Group) -> Synthesis:
        """Return what a group says together; nothing where it says nothing worth knowing."""
        ...


class BuiltinSynthesizer:
    """Quotes and arranges the members' own sentences, without a model."""

    def __init__(self, near_duplicate: float = 0.92) -> None:
        self._near_duplicate = near_duplicate

    def synthesize(self, group: Group) -> Synthesis:
        """See `Synthesizer.synthesize`."""
        found = statements(group.members)
        disagreeing = disagreements(group.members, found)
        connections = _connections(group, disagreeing, self._near_duplicate)
        phrases = _phrases(group, found)
        if not phrases:
            return Synthesis((), connections)
        drafts = [_of_disagreement(group, item, phrases, connections) for item in disagreeing]
        common = _of_common(group, found, phrases, connections)
        return Synthesis((*([common] if common else []), *drafts), connections)


# --- what is shared ------------------------------------------------------------------------------


def _phrases(group: Group, found: Sequence[Statement]) -> list[Phrase]:
    """What the documents of the group call what they share; who is speaking is no topic."""
    texts: dict[str, list[str]] = {}
    for item in found:
        memory = group.members[item.member]
        texts.setdefault(memory.document_id or memory.id, []).append(speech(item.text)[1])
    speakers = {item.speaker.casefold() for item in found if item.speaker}
    speakers |= {memory.speaker.casefold() for memory in group.members if memory.speaker}
    return shared_phrases(["\n".join(lines) for lines in texts.values()], group.anchors, speakers)


def _connections(
    group: Group, disagreeing: Sequence[Disagreement], duplicate: float
) -> tuple[Connection, ...]:
    relations = {
        (pair.first, pair.second): _relation(group, pair, duplicate) for pair in group.pairs
    }
    for item in disagreeing:
        for first, second, known in item.conflicts:
            name = "follows" if item.is_change else CONTRADICTS
            text = f"{known.first} / {known.second}"
            relations[first, second] = (name, known.confidence, text)
    ids = [memory.id for memory in group.members]
    return tuple(
        Connection(ids[a], ids[b], name, round(min(weight, 1.0), 3), text)
        for (a, b), (name, weight, text) in sorted(relations.items(), key=lambda item: item[0])
    )


def _relation(group: Group, pair: Pair, duplicate: float) -> tuple[str, float, str]:
    first, second = group.members[pair.first], group.members[pair.second]
    alike = pair.cosine >= duplicate or first.text.split() == second.text.split()
    if alike and same_facts(first.text, second.text):
        return ("near_duplicate", pair.cosine, "")
    return ("same_entity" if pair.shares_name else "similar", pair.weight, "")


def same_facts(first: str, second: str) -> bool:
    """Tell whether two texts state the same values and deny as much."""
    if denials(first) != denials(second):
        return False
    mine, theirs = values(first), values(second)
    return all(
        any(a.kind == b.kind and a.unit == b.unit and a.agrees_with(b) for b in others)
        for some, others in ((mine, theirs), (theirs, mine))
        for a in some
    )


# --- what they have in common --------------------------------------------------------------------


def _of_common(
    group: Group,
    found: Sequence[Statement],
    phrases: Sequence[Phrase],
    connections: tuple[Connection, ...],
) -> Draft | None:
    title = _title(phrases)
    lead = frozenset(stem for phrase in title for stem in phrase.stems)
    about = _about(title[0], found, group.anchors)
    chosen = _spread(best_statements(about, group.anchors, lead), group.members)
    members = [group.members[item.member] for item in chosen]
    documents = {memory.document_id or memory.id for memory in members}
    confidence = cohesion(group, [item.member for item in chosen])
    if len(documents) < 2 or not confidence:
        return None
    name = insight_wording.capitalised(insight_wording.listed([phrase.text for phrase in title]))
    return Draft(
        kind="common",
        about=" ".join(sorted(lead)),
        title=name,
        text=_common_text(name, chosen, members),
        source_ids=tuple(memory.id for memory in members),
        entities=shared_entities(members),
        connections=connections_within(connections, members),
        importance=importance_of(members, 0.05),
        confidence=confidence,
        method=METHOD,
        is_whole=True,
    )


def _about(topic: Phrase, found: Sequence[Statement], anchors: frozenset[str]) -> list[Statement]:
    """Statements about a topic: they name it, or state a value in a memory that names it."""
    naming = {item.member for item in found if topic.stems <= item.stems}
    return [
        item
        for item in found
        if topic.stems <= item.stems
        or (
            topic.is_name
            and item.member in naming
            and item.has_value
            and len(item.stems & anchors) >= _SENTENCE_ANCHORS
        )
    ]


def _spread(chosen: Sequence[Statement], members: Sequence[Memory]) -> list[Statement]:
    """The first statements of each document, so that none speaks for all."""
    counts: Counter[str] = Counter()
    kept = []
    for item in chosen:
        document = members[item.member].document_id or members[item.member].id
        counts[document] += 1
        if counts[document] <= _MOST_A_DOCUMENT:
            kept.append(item)
    return kept


def _title(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The best phrase, and a second one where it adds a word and stands in as many texts."""
    first = phrases[0]
    for second in phrases[1:4]:
        if not second.stems & first.stems and second.texts >= first.texts:
            return [first, second]
    return [first]


def _common_text(name: str, chosen: Sequence[Statement], members: Sequence[Memory]) -> str:
    sources = len({memory.document_id or memory.id for memory in members})
    when = insight_wording.period([memory.created_at for memory in members])
    head = (
        f"{name}: {insight_wording.counted(len(members), 'statement')} "
        f"from {insight_wording.counted(sources, 'source')} ({when})."
    )
    shown = list(zip(chosen, members, strict=True))[-_MOST_STATEMENTS:]
    lines = [_cited(item.text, memory) for item, memory in shown]
    left = len(chosen) - len(shown)
    more = f" Earlier: {insight_wording.counted(left, 'more statement')}." if left else ""
    return f"{head}{more} {' '.join(lines)}"


def _cited(text: str, memory: Memory) -> str:
    """The sentence with where it stands, before its full stop."""
    mark = text[-1] if text[-1] in ".!" else "."
    return f"{text.rstrip('.!')} ({insight_wording.attribution(memory)}){mark}"


# --- where they disagree -------------------------------------------------------------------------

_QUESTIONS = {
    "date": "on the date", "time": "on the time", "money": "on the amount",
    "percent": "on the percentage", "quantity": "on the number", "negation": "on whether it is so",
    "name": "on who or what it is",
}  # fmt: skip


def _of_disagreement(
    group: Group,
    item: Disagreement,
    phrases: Sequence[Phrase],
    connections: tuple[Connection, ...],
) -> Draft:
    members = [group.members[statement.member] for statement in item.statements]
    about = item.conflicts[0][2].about
    name = _subject(item, phrases)
    return Draft(
        kind="change" if item.is_change else "contradiction",
        about=f"{item.conflicts[0][2].difference} {' '.join(about)}",
        title=name,
        text=_disagreement_text(name, item, members),
        source_ids=tuple(memory.id for memory in members),
        entities=shared_entities(members),
        connections=connections_within(connections, members),
        importance=importance_of(members, 0.15 if item.is_change else 0.3),
        confidence=max(known.confidence for _, _, known in item.conflicts),
        method=METHOD,
        is_whole=False,
    )


def _subject(item: Disagreement, phrases: Sequence[Phrase]) -> str:
    """What the disagreement is about: the group's name, then the words that both sides share."""
    beginning = _common_beginning([statement.text for statement in item.statements])
    if len(beginning) >= _FEWEST_BEGINNING:
        return insight_wording.capitalised(" ".join(beginning))
    about = {stem for _, _, known in item.conflicts for stem in known.about}
    named = next((phrase for phrase in phrases if phrase.is_name), None)
    words = words_with(item.statements[0].text, about - (named.stems if named else frozenset()))
    parts = [named.text] if named else []
    if words:
        parts.append(" ".join(words[:_MOST_WORDS]))
    return insight_wording.capitalised(", ".join(parts) or phrases[0].text)


def _common_beginning(texts: Sequence[str]) -> list[str]:
    """Words that all begin with: "The lease for the workshop starts", without "on"."""
    words = [text.split() for text in texts]
    common: list[str] = []
    for together in zip(*words, strict=False):
        if len(set(together)) > 1:
            break
        common.append(together[0])
    while common and common[-1].lower() in stop_words("en"):
        common.pop()
    return common


def _disagreement_text(name: str, item: Disagreement, members: Sequence[Memory]) -> str:
    known = item.conflicts[-1][2]
    quotes = [
        f"{insight_wording.day(memory.created_at)}: {insight_wording.quoted(statement.text)} "
        f"({insight_wording.source(memory)})."
        for statement, memory in zip(item.statements, members, strict=True)
    ]
    said = _values_said(item)
    if item.is_change:
        head = f"{name}: changed over time, {' → '.join(said)}."
    elif known.difference == "negation":
        head = f"{name}: sources disagree on whether it is so."
    else:
        head = f"{name}: sources disagree {_QUESTIONS[known.difference]}, {' or '.join(said)}."
    return f"{head} {' '.join(dict.fromkeys(quotes))}"  # a gist repeats facts of its document


def _values_said(item: Disagreement) -> list[str]:
    """The values in the order in which they were said, each once."""
    said: dict[int, str] = {}
    for first, second, known in item.conflicts:
        said.setdefault(first, known.first)
        said.setdefault(second, known.second)
    return list(dict.fromkeys(said[member] for member in sorted(said)))


# --- what an insight carries ---------------------------------------------------------------------


def shared_entities(members: Sequence[Memory]) -> tuple[str, ...]:
    """Entities that two members name, in most members first."""
    counts: dict[str, int] = {}
    for memory in members:
        for name in memory.entities:
            if name.casefold() in DULL_NAMES:
                continue
            counts[name] = counts.get(name, 0) + 1
    shared = [name for name in counts if counts[name] > 1]
    return tuple(sorted(shared, key=lambda name: (-counts[name], name))[:12])


def connections_within(
    connections: tuple[Connection, ...], members: Sequence[Memory]
) -> tuple[Connection, ...]:
    """Those of the connections whose both ends are among the members."""
    ids = {memory.id for memory in members}
    return tuple(item for item in connections if {item.source_id, item.target_id} <= ids)


def importance_of(members: Sequence[Memory], more: float) -> float:
    """That of the most important member and ``more``, at most 1, in three digits."""
    return round(min(1.0, max(memory.importance for memory in members) + more), 3)


def cohesion(group: Group, members: Sequence[int]) -> float:
    """How strongly the members hang together; 0 when no two of them are linked."""
    inside = set(members)
    weights = [p.weight for p in group.pairs if {p.first, p.second} <= inside] or [0.0]
    return round(min(0.95, sum(weights) / len(weights)), 3)


_RUN = re.compile(r"[^\W_][\w'’&.-]*(?<![.'’&-])")
_BREAK = re.compile(
    r"[.!?;:,()\[\]\"“”|\n/]|\b\d[\w.,:%-]*(?:\s+(?:kg|km|g|m|l|ml|h|min|eur)\b)?", re.I
)
_LONGEST = 4
_WEAK = """new now first last next please remember note notes said says today good great along
    across around near behind beside since until via per within without toward towards many much
    lot lots thing things really very also even still yet get got make made go went come
    came"""
_WEAK_EDGES = frozenset((*_WEAK.split(), *map(str.lower, (*ENGLISH_MONTHS, *ENGLISH_WEEKDAYS))))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that several texts share."""

    text: str
    """As most of them write it."""
    stems: frozenset[str]
    texts: int
    """How many of them."""
    is_name: bool


def shared_phrases(
    texts: Sequence[str], anchors: frozenset[str], unfit: Collection[str] = ()
) -> list[Phrase]:
    """Return what two texts or more have in common that can stand as a title, best first.

    That is a name, or several words in a row that carry content; every word that carries content
    is an anchor.  The best is in most texts; among those it is a name, then the longer.

    Args:
        texts: One for each document.
        anchors: Stems that say something: what many other documents share too says nothing.
        unfit: Case-folded names that are no topic, such as who is speaking.
    """
    forms: dict[str, Counter[str]] = {}
    holders: dict[str, set[int]] = {}
    for number, text in enumerate(texts):
        for phrase, key in _candidates(text, anchors):
            if phrase.casefold() not in unfit:
                forms.setdefault(key, Counter())[phrase] += 1
                holders.setdefault(key, set()).add(number)
    shared = (key for key, numbers in holders.items() if len(numbers) > 1)
    found = [_phrase(key, forms[key], len(holders[key])) for key in shared]
    return sorted((item for item in found if _is_title(item)), key=_rank, reverse=True)


def _rank(phrase: Phrase) -> tuple[float, str]:
    length = 0.6 + 0.4 * min(len(phrase.stems), 3)
    return (phrase.texts * length * (1.5 if phrase.is_name else 1.0), phrase.text)


def _is_title(phrase: Phrase) -> bool:
    words = phrase.text.split()
    if phrase.is_name:
        return len(phrase.text) > 2
    return (
        len(words) > 1
        and len(phrase.stems) > 1
        and not any(word.lower() in stop_words("en") for word in words)
    )


def _phrase(key: str, forms: Counter[str], texts: int) -> Phrase:
    written, _ = max(forms.items(), key=lambda item: (item[1], item[0]))
    words = written.split()
    small = [word for word in words if not word[:1].isupper()]
    is_name = len(small) < len(words) and all(word in stop_words("en") for word in small)
    return Phrase(written, frozenset(key.split()), texts, is_name)


def _candidates(text: str, anchors: frozenset[str]) -> set[tuple[str, str]]:
    """Runs of words whose content is all anchors, each with its stems."""
    found = set()
    for run in _BREAK.split(text):
        words = _RUN.findall(run)
        stems = [terms(word) for word in words]
        fits = [anchors.issuperset(own) for own in stems]
        edges = [bool(own) and _can_stand_at_edge(w) for w, own in zip(words, stems, strict=True)]
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
                if not (edges[start] and fits[end - 1]):
                    break
                if edges[end - 1]:
                    phrase = _joined(words[start:end], begins=start == 0)
                    found.add((phrase, " ".join(chain.from_iterable(stems[start:end]))))
    return found


def _joined(words: Sequence[str], *, begins: bool) -> str:
    """A capital at the beginning of a sentence makes no name, unless the next word has one too."""
    first = words[0]
    named = len(words) > 1 and words[1][:1].isupper()
    if begins and not named and first[1:].islower():
        return " ".join((first.lower(), *words[1:]))
    return " ".join(words)


def _can_stand_at_edge(word: str) -> bool:
    lower = word.lower()
    return (
        lower not in stop_words("en")
        and lower not in _WEAK_EDGES
        and len(word) > 1
        and not word[0].isdigit()
    )


def words_with(text: str, stems: Collection[str]) -> list[str]:
    """Return the words of a text that have one of these stems, in its order, each once."""
    found: dict[str, str] = {}
    for word in _RUN.findall(text):
        for stem in terms(word):
            if stem in stems:
                found.setdefault(stem, word)
    return list(found.values())
