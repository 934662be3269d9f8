"""Agentic search: what a first search leaves open is asked for in up to two more.

Each round is judged against the question itself.  A single hit's relevance is the probability that
the question can be answered from it alone (see ``relevance``); three relevant hits, whose mean is
one half or more, are sufficient.  Where they are not there, the next query is what the best hits
lead to, their names, and what of the question none of them has; a model may write a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memctl.errors import MemctlError
from memctl.models.protocols import estimate_tokens
from memctl.prompts import fenced
from memctl.records import Hit
from memctl.search.answering.evidence_context import numbered_excerpts
from memctl.search.answering.relevance import judge_relevance
from memctl.search.query.question import Slot, slot_weight
from memctl.search.ranking.multi_hop import name_phrases
from memctl.search.ranking.scored_candidates import ScoredCandidate
from memctl.search.retrieval.candidates import Candidate, Key, KeywordScorer, cosines
from memctl.search.retrieval.term_statistics import TermStatistics

if TYPE_CHECKING:
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.search.answering.search_outcome import SearchOutcome

MAX_ROUNDS = 3
SUFFICIENT_HITS = 3
"""Relevant ones; fewer are not sufficient."""
SUFFICIENT_MEAN = 0.5
"""Mean relevance of the best three; less is not sufficient."""
LOOKED_AT = 5
"""Hits that are judged, and whose names are followed."""
_MOST_NAMES = 3
_KEPT = 5
"""Hits of the first round above which none of a later one stands that speaks of something in the
question that none of these does."""
_KEPT_BEFORE_REST = 10
"""Those above which none stands that adds nothing of the kind."""
_STEP = 2
"""Among those below, a hit of a later round counts as if it stood so many times lower there."""

Reformulate = Callable[[str, Sequence[Hit], Sequence[str]], str]
"""Returns another query for a question, from the best hits and the words that none of them has."""


@dataclass(frozen=True, slots=True)
class Round:
    """One search and what came of it."""

    query: str
    by: str
    """Who worded it: ``question``, ``built-in`` or ``model``."""
    found: int
    new: int
    relevant: int
    mean: float
    """Mean relevance of the best three of all rounds so far; those that are missing count 0."""
    missing: tuple[str, ...]
    """Words of the question that none of the best hits has."""
    then: str
    """Why it went on, or stopped."""

    def plain(self) -> dict[str, Any]:
        """Return it for ``--explain``."""
        return {
            "query": self.query,
            "by": self.by,
            "found": self.found,
            "new": self.new,
            "relevant": self.relevant,
            "mean": round(self.mean, 3),
            "missing": list(self.missing),
            "then": self.then,
        }


def search_in_rounds(
    question: str,
    search: Callable[[str | None], SearchOutcome],
    limit: int,
    reformulate: Reformulate | None = None,
) -> SearchOutcome:
    """Search until what was found is sufficient, or nothing is left to ask, or three times.

    Args:
        question: In words.
        search: Searches for a query; for None by the question itself.
        limit: The most hits.
        reformulate: A model's way to word the next query; the built-in one where it fails.
    """
    first = search(None)
    merged, rounds, notes = first, list[Round](), list(first.notes)
    query, by, new = question, "question", len(first.hits)
    found = len(first.hits)
    while True:
        judged = _Judged(merged)
        following, worded = "", "built-in"
        if not judged.is_sufficient and len(rounds) + 1 < MAX_ROUNDS:
            spent = frozenset(query.split()) if rounds else frozenset()
            following, worded, note = _next_query(question, merged, judged, spent, reformulate)
            notes += [note] if note else []
            reformulate = None if note else reformulate
        asked = {query, *(each.query for each in rounds)}
        then = _decide_next(judged, len(rounds) + 1, following, asked)
        rounds.append(
            Round(query, by, found, new, judged.relevant, judged.mean, judged.missing, then)
        )
        if not then.startswith("went on"):
            break
        query, by = following, worded
        more = search(query)
        known = {candidate.key for candidate in merged.candidates}
        found = len(more.hits)
        new = sum(candidate.key not in known for candidate in more.candidates)
        merged = _merged(first, merged, more, limit)
    explain = {**first.explain, "mode": "agentic", "rounds": [each.plain() for each in rounds]}
    return replace(merged, mode="agentic", explain=explain, notes=tuple(dict.fromkeys(notes)))


def _decide_next(judged: _Judged, number: int, following: str, asked: set[str]) -> str:
    if judged.is_sufficient:
        return "stopped: sufficient"
    if number == MAX_ROUNDS:
        return f"stopped: {MAX_ROUNDS} rounds"
    if not following or following in asked:
        return "stopped: nothing else to ask"
    few = judged.relevant < SUFFICIENT_HITS
    return f"went on: {'too few hits are' if few else 'the hits are not'} relevant"


# --- sufficiency ---------------------------------------------------------------------------------


class _Judged:
    """How well what was found answers the question, and what of it is not spoken of."""

    def __init__(self, outcome: SearchOutcome) -> None:
        self.best = outcome.candidates[:LOOKED_AT]
        question, statistics = outcome.asked, outcome.statistics
        scores = [judge_relevance(question, [each], statistics) for each in self.best]
        self.relevant = sum(each.is_relevant for each in scores)
        top = sorted((each.score for each in scores), reverse=True)[:SUFFICIENT_HITS]
        self.mean = sum(top) / SUFFICIENT_HITS
        there = _told_by(self.best)
        self.missing = tuple(
            word.strip("\"'([{“„«»”)]},;:.!?¿¡")
            for word, slots in zip(question.words, question.word_slots, strict=True)
            if any(there.isdisjoint(slot) for slot in slots)
        )

    @property
    def is_sufficient(self) -> bool:
        """Whether there is no need to search again."""
        return self.relevant >= SUFFICIENT_HITS and self.mean >= SUFFICIENT_MEAN


def _told_by(candidates: Sequence[Candidate]) -> frozenset[str]:
    """Return the terms of the question that some of them have."""
    return frozenset[str]().union(*(each.terms for each in candidates))


# --- the next query ------------------------------------------------------------------------------


def _next_query(
    question: str,
    outcome: SearchOutcome,
    judged: _Judged,
    spent: frozenset[str],
    reformulate: Reformulate | None,
) -> tuple[str, str, str]:
    """Return the next query, empty for none, who worded it, and a note where the model failed."""
    note = ""
    if reformulate is not None and outcome.hits:
        try:
            hits = outcome.hits[:LOOKED_AT]
            return reformulate(question, hits, judged.missing).strip(), "model", ""
        except MemctlError as error:  # a question is searched for, whatever is wrong with the model
            note = f"searched again without the model: {error.message}"
    return _built_in(outcome, judged, spent), "built-in", note


def _built_in(outcome: SearchOutcome, judged: _Judged, spent: frozenset[str]) -> str:
    """Return names that lead on from the best hits, with the words that are still unmatched.

    Names that were ``spent`` in the query before led to what is there already.
    """
    asked = spent.union(outcome.asked.terms)
    weight = _rarity(outcome)
    names: dict[tuple[str, ...], None] = {}
    for candidate in judged.best:
        own = [
            phrase
            for phrase in name_phrases(candidate, outcome.languages)
            if not asked.issuperset(phrase) and _leads_on(phrase, outcome.statistics)
        ]
        names |= dict.fromkeys(sorted(own, key=weight, reverse=True)[:1])
    words = [" ".join(phrase) for phrase in list(names)[:_MOST_NAMES]]
    kin = outcome.question  # with the words that the hits have for those that are nowhere
    lost = [term for slot in _lost(kin.slots, judged) for term in slot[len(outcome.languages) :]]
    return " ".join(dict.fromkeys([*words, *judged.missing, *lost]))


def _leads_on(name: Sequence[str], statistics: TermStatistics) -> bool:
    """Tell whether other memories may have a name, too; a file's, for one, is only its own."""
    is_sample = statistics.sampled < statistics.memories
    return is_sample or all(statistics.frequencies.get(term, 0) > 1 for term in name)


def _lost(slots: Sequence[Slot], judged: _Judged) -> list[Slot]:
    there = _told_by(judged.best)
    return [slot for slot in slots if there.isdisjoint(slot)]


def _rarity(outcome: SearchOutcome) -> Callable[[tuple[str, ...]], float]:
    return lambda phrase: max(slot_weight((term,), outcome.statistics) for term in phrase)


# --- merging -------------------------------------------------------------------------------------


def _merged(
    first: SearchOutcome, so_far: SearchOutcome, more: SearchOutcome, limit: int
) -> SearchOutcome:
    """Return the hits of all rounds, each once, where it stands best."""
    scorer = KeywordScorer(first.asked, first.statistics)
    there = _told_by(first.candidates[:LOOKED_AT])
    best = {item.candidate.key: item for item in so_far.best}
    places: dict[Key, float] = {key: at for at, key in enumerate(best)}
    for at, item in enumerate(more.best):
        key = item.candidate.key
        if key not in best:
            best[key] = replace(item, candidate=_judged_by(first, scorer, item.candidate))
        adds = not best[key].candidate.terms <= there
        place = (_KEPT if adds else _KEPT_BEFORE_REST) - 0.5 + _STEP * at
        places[key] = min(place, places.get(key, place))
    order = sorted(best, key=lambda key: (places[key], key))
    below = [item for item in so_far.ranked if item.candidate.key not in best]
    ranked = tuple(_falling([*(best[key] for key in order), *below]))
    hits = {(hit.kb, hit.memory_id): hit for hit in (*more.hits, *so_far.hits)}
    return replace(
        so_far,
        ranked=ranked,
        hits=tuple(
            replace(hits[item.candidate.key], rank=rank, score=item.score)
            for rank, item in enumerate(ranked[:limit], start=1)
        ),
    )


def _falling(items: Iterable[ScoredCandidate]) -> Iterator[ScoredCandidate]:
    """Yield the items, none with a higher score than those before it."""
    least = float("inf")
    for item in items:
        least = min(least, item.score)
        yield replace(item, score=least)


def _judged_by(first: SearchOutcome, scorer: KeywordScorer, candidate: Candidate) -> Candidate:
    """Return what another query brought up with its likeness to the question itself."""
    keyword, found = scorer.score(candidate.row["search_text"])
    judged = replace(candidate, keyword=keyword, terms=found)
    if candidate.direction is None or not first.has_cosines:
        return judged
    [cosine] = cosines(first.meaning.vector, candidate.direction[None, :]).tolist()
    return replace(judged, vector=cosine)


_LONGEST = 300
"""Characters of a query; more is no query."""
_BUDGET = 1_500
"""Tokens of memories that the model is given."""


class ModelReformulator:
    """Lets a model word a query.

    Args:
        chat: The model.
        prompt: What it is told.
    """

    def __init__(self, chat: ChatModel, prompt: Prompt) -> None:
        self._chat = chat
        self._prompt = prompt

    def query(self, question: str, hits: Sequence[Hit], missing: Sequence[str]) -> str:
        """Return the next query; empty where the model sees nothing more to look for.

        Args:
            question: In words.
            hits: The best of what was found.
            missing: Words of the question that none of them has.

        Raises:
            ModelError: There is none.
        """
        from memctl.search.answering.reply_schemas import QueryReply

        given = numbered_excerpts(hits, _BUDGET, estimate_tokens)
        asked = f"The question: {' '.join(question.split())}"
        lost = f"Words that no memory has: {' '.join(missing) or 'none'}"
        data = f"{fenced([item.text for item in given])}\n\n{asked}\n{lost}"
        reply = self._chat.ask(self._prompt.text, data, QueryReply, version=self._prompt.id)
        return " ".join(reply.query.split())[:_LONGEST]
