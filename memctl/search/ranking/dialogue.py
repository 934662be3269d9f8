"""Conversations: a turn is known by who says it, and by the turns beside it.

A turn is short and rests on what was said before; a question tells who said it.  Long turns stand
on their own, and neither they nor their neighbours take part.  Where people talk in short turns,
one that says more is likelier to tell something than "Yes, I love it!".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log

from memctl.language.word_lists import stop_words
from memctl.search.query.question import Question
from memctl.search.query.synonyms import similar_spellings
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.retrieval.candidates import Candidate, Key

SPEAKER_WEIGHT = 2.0
"""In standard deviations of the candidates' scores."""
BESIDE = {-2: 0.2, -1: 0.4, 1: 0.4, 2: 0.2}
"""Share of the score of the turns before and after it that a turn is given."""
SHORT = 60
"""Terms of a turn that needs others to be understood."""
TELLING_WEIGHT = 1.0
"""In standard deviations, for a turn e times as long as an average one."""
AVERAGE = 10
ENOUGH = 30
"""Terms of a turn; more of them tell no more."""
_SHARE_OF_SHORT = 0.9
_LOOKED_AT = 8
_WORD = re.compile(r"[^\W\d_][\w-]*")
_SHORTEST_NAME = 3

Place = tuple[str, str, str, int]
"""Knowledge base, namespace, session and turn."""


def boost_turns(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items and the turns beside them, raised by who speaks and by their neighbours."""
    turns = [item for item in items if _is_turn(item.candidate)]
    if not turns:
        return list(items)
    found = {item.candidate.key: item for item in items}
    found |= around.scored(_beside(sort_by_score(turns)[:_LOOKED_AT], turns, around))
    named = _named(question, [item.candidate.row["speaker"] for item in found.values()])
    places = {key: _place(item.candidate) for key, item in found.items()}
    scores = _by_place(found, places)
    telling = TELLING_WEIGHT * around.spread if _is_small_talk(turns) else 0.0
    told = {
        key: _with_telling(_with_speaker(item, named, around), telling)
        for key, item in found.items()
    }
    return [_with_neighbours(item, places[key], scores) for key, item in told.items()]


def _is_turn(candidate: Candidate) -> bool:
    return candidate.type == "turn" and candidate.level == "evidence"


# --- telling ------------------------------------------------------------------------------------


def _is_small_talk(turns: Sequence[ScoredCandidate]) -> bool:
    """Whether people talk with each other; the replies of an assistant are long."""
    short = sum(_terms(item.candidate) <= SHORT for item in turns)
    return short >= _SHARE_OF_SHORT * len(turns)


def _with_telling(item: ScoredCandidate, weight: float) -> ScoredCandidate:
    if not weight or not _is_turn(item.candidate):
        return item
    said = min(_terms(item.candidate), ENOUGH)
    return boost_score(item, "telling", weight * log((1 + said) / (1 + AVERAGE)))


def _terms(candidate: Candidate) -> int:
    text = candidate.row["search_text"]
    return text.count(" ") + 1 if text else 0


# --- beside -------------------------------------------------------------------------------------


def _beside(
    best: Sequence[ScoredCandidate], known: Sequence[ScoredCandidate], around: ScoringContext
) -> dict[Key, Candidate]:
    """The turns next to the best ones that are not known yet."""
    there = {_place(item.candidate) for item in known}
    wanted = {
        beside
        for item in best
        if (place := _place(item.candidate)) is not None
        for beside in _places_beside(place)
    }
    wanted -= there
    found: dict[Key, Candidate] = {}
    for kb in sorted({place[0] for place in wanted}):
        found |= around.turns(kb, {place[2:] for place in wanted if place[0] == kb})
    return {key: each for key, each in found.items() if _place(each) in wanted}


def _by_place(
    items: Mapping[Key, ScoredCandidate], places: Mapping[Key, Place | None]
) -> dict[Place, float]:
    """The best score at each place of a conversation."""
    scores: dict[Place, float] = {}
    for key, item in items.items():
        place = places[key]
        if place is not None:
            scores[place] = max(item.score, scores.get(place, 0.0))
    return scores


def _place(candidate: Candidate) -> Place | None:
    """Where a short turn stands; None for anything else."""
    row = candidate.row
    if not _is_turn(candidate) or row["session_id"] is None or row["turn"] is None:
        return None
    if _terms(candidate) > SHORT:
        return None
    return candidate.key[0], row["namespace"], row["session_id"], row["turn"]


def _places_beside(place: Place) -> dict[Place, float]:
    kb, namespace, session, turn = place
    return {(kb, namespace, session, turn + step): share for step, share in BESIDE.items()}


def _with_neighbours(
    item: ScoredCandidate, place: Place | None, scores: Mapping[Place, float]
) -> ScoredCandidate:
    if place is None:
        return item
    beside = _places_beside(place).items()
    return boost_score(item, "neighbours", sum(share * scores.get(at, 0.0) for at, share in beside))


# --- speakers -----------------------------------------------------------------------------------


def _with_speaker(
    item: ScoredCandidate, named: frozenset[str], around: ScoringContext
) -> ScoredCandidate:
    speaks = item.candidate.row["speaker"] in named
    return boost_score(item, "speaker", SPEAKER_WEIGHT * around.spread if speaks else 0.0)


def _named(question: Question, speakers: Sequence[str | None]) -> frozenset[str]:
    """Those of several speakers whom the question names; none if it names all of them."""
    names: dict[str, set[str]] = {}
    for speaker in filter(None, set(speakers)):
        for word in _WORD.findall(speaker.lower()):
            if len(word) >= _SHORTEST_NAME:
                names.setdefault(word, set()).add(speaker)
    found = {speaker for word in _said(question) for speaker in names.get(word, ())}
    found |= {speaker for word in _misspelt(question, names) for speaker in names[word]}
    return frozenset(found) if len(found) < len(set(filter(None, speakers))) else frozenset()


def _said(question: Question) -> list[str]:
    """The words of the question that may be names, in lower case."""
    common = stop_words("en")
    return [
        word
        for match in _WORD.findall(question.text)
        if (word := match.lower()) not in common or match[0].isupper()
    ]


def _misspelt(question: Question, names: Collection[str]) -> Iterable[str]:
    """The names that capitalised words of the question are nearly the same as."""
    for match in _WORD.findall(question.text):
        word = match.lower()
        if match[0].isupper() and word not in names:
            yield from similar_spellings(word, names)
