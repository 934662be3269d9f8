"""Dialogue signals: a turn of a conversation is known by who says it, and by the turns around it.

A turn is short and rests on what was said before; a question names who said it.  Long turns stand
on their own: they and their neighbours take no part.  Where people talk in short turns, one that
says more is likelier to answer something than "Yes, I love it!".  Where one talks with an
assistant, the evidence is what they said themselves rather than the replies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log

from memctl.language.word_lists import stop_words, word_set
from memctl.patterns import lazy_regex
from memctl.search.query.question import Question
from memctl.search.query.synonyms import similar_spellings
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.retrieval.candidates import Candidate, Key

SPEAKER_WEIGHT = 2.0
"""In standard deviations of the candidates' scores."""
_NEIGHBOUR_SHARES = {-2: 0.2, -1: 0.4, 1: 0.4, 2: 0.2}
"""Share of the scores of the turns before and after it that a turn gains."""
TURN_LENGTH_WEIGHT = 1.0
"""In standard deviations, for a turn e times as long as an average one."""
REPLY_WEIGHT = -0.5
"""In standard deviations, for what an assistant says."""
_ASSISTANTS = word_set("assistant ai bot chatgpt claude copilot gemini model tool system")
_TO_ASSISTANT = lazy_regex(rf"\b(?:you|your|{'|'.join(sorted(_ASSISTANTS))})\b", re.IGNORECASE)
"""Such a question may be about what the assistant said."""
_SHORT_TURN = 60
"""Terms; a longer turn is understood without others."""
_AVERAGE_TURN = 10
_LONGEST_COUNTED = 30
"""Terms; a longer turn gains no more."""
_SMALL_TALK_SHARE = 0.9
_MAX_EXTENDED = 8
"""Number of the best turns whose neighbours are fetched."""
_WORD = lazy_regex(r"[^\W\d_][\w-]*")
_SHORTEST_NAME = 3

Place = tuple[str, str, str, int]
"""Knowledge base, namespace, session and turn."""


def boost_turns(items: Sequence[ScoredCandidate], context: ScoringContext) -> list[ScoredCandidate]:
    """Return the items and the turns next to them, scored by who speaks, length and neighbours."""
    turns = [item for item in items if _is_turn(item.candidate)]
    if not turns:
        return list(items)
    places = {item.candidate.key: _place(item.candidate) for item in turns}
    found = {item.candidate.key: item for item in items}
    best = sort_by_score(turns)[:_MAX_EXTENDED]
    neighbours = context.score_more(_neighbours(best, places, context))
    found |= neighbours
    places |= {key: _place(item.candidate) for key, item in neighbours.items()}
    speakers = {key: item.candidate.row["speaker"] for key, item in found.items()}
    named = _named_speakers(context.question, list(speakers.values()))
    scores = _scores_by_place(found, places)
    is_small_talk = _is_small_talk(turns)
    is_about_replies = _TO_ASSISTANT.search(context.question.text) is not None
    boosted: list[ScoredCandidate] = []
    for key, item in found.items():
        speaker = speakers[key]
        if speaker in named:
            item = boost_score(item, "speaker", SPEAKER_WEIGHT * context.spread)
        if is_small_talk and key in places:
            length = min(_length(item.candidate), _LONGEST_COUNTED)
            gain = TURN_LENGTH_WEIGHT * context.spread * log((1 + length) / (1 + _AVERAGE_TURN))
            item = boost_score(item, "telling", gain)
        if speaker and not is_about_replies and speaker.lower() in _ASSISTANTS:
            item = boost_score(item, "reply", REPLY_WEIGHT * context.spread)
        if place := places.get(key):
            near = _places_around(place).items()
            gain = sum(share * scores.get(at, 0.0) for at, share in near)
            item = boost_score(item, "neighbours", gain)
        boosted.append(item)
    return boosted


def _is_turn(candidate: Candidate) -> bool:
    return candidate.type == "turn" and candidate.level == "evidence"


def _is_small_talk(turns: Sequence[ScoredCandidate]) -> bool:
    """Return whether people talk with each other; the replies of an assistant are long."""
    short = sum(_length(item.candidate) <= _SHORT_TURN for item in turns)
    return short >= _SMALL_TALK_SHARE * len(turns)


def _length(candidate: Candidate) -> int:
    text = candidate.row["search_text"]
    return text.count(" ") + 1 if text else 0


# --- neighbours ----------------------------------------------------------------------------------


def _neighbours(
    best: Sequence[ScoredCandidate], known: Mapping[Key, Place | None], context: ScoringContext
) -> dict[Key, Candidate]:
    """Return the turns next to the best ones, where no turn is known yet."""
    places = (known[item.candidate.key] for item in best)
    wanted = {near for place in places if place for near in _places_around(place)}
    wanted -= set(known.values())
    found: dict[Key, Candidate] = {}
    for kb in sorted({place[0] for place in wanted}):
        found |= context.turns(kb, {place[2:] for place in wanted if place[0] == kb})
    return {key: each for key, each in found.items() if _place(each) in wanted}


def _scores_by_place(
    items: Mapping[Key, ScoredCandidate], places: Mapping[Key, Place | None]
) -> dict[Place, float]:
    """Return the best score at each place of a conversation."""
    scores: dict[Place, float] = {}
    for key, place in places.items():
        if place is not None:
            scores[place] = max(items[key].score, scores.get(place, 0.0))
    return scores


def _place(candidate: Candidate) -> Place | None:
    """Return the place of a short turn; None for anything else."""
    row = candidate.row
    if not _is_turn(candidate) or row["session_id"] is None or row["turn"] is None:
        return None
    if _length(candidate) > _SHORT_TURN:
        return None
    return candidate.key[0], row["namespace"], row["session_id"], row["turn"]


def _places_around(place: Place) -> dict[Place, float]:
    kb, namespace, session, turn = place
    return {(kb, namespace, session, turn + at): share for at, share in _NEIGHBOUR_SHARES.items()}


# --- speakers ------------------------------------------------------------------------------------


def _named_speakers(question: Question, speakers: Sequence[str | None]) -> frozenset[str]:
    """Return the speakers that the question names; none where it names all of them."""
    everyone = set(filter(None, speakers))
    names: dict[str, set[str]] = {}
    for speaker in everyone:
        for word in _WORD.findall(speaker.lower()):
            if len(word) >= _SHORTEST_NAME:
                names.setdefault(word, set()).add(speaker)
    others = (each.lower() for name in question.other_names for each in name.written)
    words = [*_possible_names(question), *_misspelt_names(question, names), *others]
    found = {speaker for word in words for speaker in names.get(word, ())}
    return frozenset(found) if len(found) < len(everyone) else frozenset()


def _possible_names(question: Question) -> list[str]:
    """Return the words of the question that may be names, in lower case."""
    common = stop_words("en")
    return [
        word
        for match in _WORD.findall(question.text)
        if (word := match.lower()) not in common or match[0].isupper()
    ]


def _misspelt_names(question: Question, names: Collection[str]) -> Iterable[str]:
    """Yield the names that capitalised words of the question are nearly the same as."""
    for match in _WORD.findall(question.text):
        word = match.lower()
        if match[0].isupper() and word not in names:
            yield from similar_spellings(word, names)
