"""Agentic search: what the first search leaves open is searched for in further rounds.

Each round is judged by the question itself.  The relevance of a single hit is the probability that
it alone answers the question; three relevant hits with a mean of one half or more are sufficient,
unless the search's depth says otherwise.
Otherwise the next query consists of the names in the best hits and the words of the question that
none of them has; a model may word a better one, which is only ever searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memctl.errors import MemctlError
from memctl.formatting import format_count
from memctl.models.protocols import estimate_tokens
from memctl.prompts import fenced
from memctl.records import Hit
from memctl.search.answering.evidence_context import numbered_excerpts
from memctl.search.answering.relevance import judge_relevance
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.ranking.multi_hop import name_phrases
from memctl.search.retrieval.candidates import Candidate, Key, KeywordScorer, cosines
from memctl.search.search_plan import SearchDepth
from memctl.search.term_statistics import TermStatistics

if TYPE_CHECKING:
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt

_JUDGED_HITS = 5
"""Number of the best hits that are judged, and whose names are followed."""
_MAX_NAMES = 3
_PROTECTED = 5
"""Hits of the first round that stay above all hits of later rounds."""
_PROTECTED_FROM_REST = 10
"""Those that stay above hits that have no words of the question beyond the best five's."""
_RANK_STEP = 2
"""Below these, a hit of a later round counts as if it stood twice as far down there."""
_LONGEST_QUERY = 300
"""Characters; a longer reply is no query."""
_MODEL_TOKENS = 1_500
"""Tokens of memories that the model is given."""

Reformulate = Callable[[str, Sequence[Hit], Sequence[str]], str]
"""Returns another query for a question, given the best hits and the words that none of them has."""


class Round(Struct, frozen=True):
    """One search and its result."""

    query: str
    by: str
    """Who worded it: ``question``, ``built-in`` or ``model``."""
    found: int
    new: int
    relevant: int
    mean: float
    """Mean relevance of the best of all rounds so far, of as many as are wanted; missing ones
    count 0."""
    missing: tuple[str, ...]
    """Words of the question that none of the best hits has."""
    then: str
    """Why the search went on, or stopped."""

    def explain(self) -> dict[str, Any]:
        """Return it for ``--explain``."""
        return {**asdict(self), "mean": round(self.mean, 3), "missing": list(self.missing)}


def search_in_rounds(
    question: str,
    search: Callable[[str | None], SearchOutcome],
    limit: int,
    depth: SearchDepth,
    reformulate: Reformulate | None = None,
) -> SearchOutcome:
    """Search until the hits are sufficient, nothing is left to ask for, or all rounds are done.

    Args:
        question: The question, in words.
        search: Searches for a query; for None by the question itself.
        limit: Most hits.
        depth: How many rounds there are at most, and what is sufficient.
        reformulate: Lets a model word the next query; where it fails, rules do.
    """
    first = search(None)
    merged, rounds, notes = first, list[Round](), list(first.notes)
    failures = list(first.failures)
    query, by, new = question, "question", len(first.hits)
    found = len(first.hits)
    while True:
        judgement = _Judgement(merged, depth)
        following, worded_by = "", "built-in"
        if not judgement.is_sufficient and len(rounds) + 1 < depth.rounds:
            spent = frozenset(query.split()) if rounds else frozenset()
            following, worded_by, failure = _next_query(
                question, merged, judgement, spent, reformulate
            )
            if failure is not None:
                reformulate = None
                notes.append(f"searched again without the model: {failure.message}")
                failures.append(type(failure).__name__)
        asked = {query, *(each.query for each in rounds)}
        then = _decide_next(judgement, len(rounds) + 1, following, asked)
        relevant, mean = judgement.relevant, judgement.mean
        rounds.append(Round(query, by, found, new, relevant, mean, judgement.missing, then))
        if not then.startswith("went on"):
            break
        query, by = following, worded_by
        more = search(query)
        notes += more.notes
        failures += more.failures
        known = {candidate.key for candidate in merged.candidates}
        found = len(more.hits)
        new = sum(candidate.key not in known for candidate in more.candidates)
        merged = _merge(first, merged, more, limit)
    explain = {**first.explain, "mode": "agentic", "rounds": [each.explain() for each in rounds]}
    return replace(
        merged,
        mode="agentic",
        explain=explain,
        notes=tuple(dict.fromkeys(notes)),
        failures=tuple(dict.fromkeys(failures)),
    )


def _decide_next(judgement: _Judgement, number: int, following: str, asked: set[str]) -> str:
    if judgement.is_sufficient:
        return "stopped: sufficient"
    if number == judgement.depth.rounds:
        return f"stopped: {format_count(number, 'round')}"
    if not following or following in asked:
        return "stopped: nothing else to ask"
    few = judgement.relevant < judgement.depth.relevant_hits
    return f"went on: {'too few hits are' if few else 'the hits are not'} relevant"


class _Judgement:
    """How well the hits answer the question, and which of its words they lack."""

    def __init__(self, outcome: SearchOutcome, depth: SearchDepth) -> None:
        self.depth = depth
        self.best = outcome.candidates[:_JUDGED_HITS]
        question, statistics = outcome.asked, outcome.statistics
        scores = [judge_relevance(question, [each], statistics) for each in self.best]
        self.relevant = sum(each.is_relevant for each in scores)
        top = sorted((each.score for each in scores), reverse=True)[: depth.relevant_hits]
        self.mean = sum(top) / depth.relevant_hits
        self.terms = _all_terms(self.best)
        self.missing = tuple(
            word.strip("\"'([{“„«»”)]},;:.!?¿¡")
            for word, slots in zip(question.words, question.word_slots, strict=True)
            if any(self.terms.isdisjoint(slot) for slot in slots)
        )

    @property
    def is_sufficient(self) -> bool:
        """Whether there is no need to search again."""
        wanted = self.depth
        return self.relevant >= wanted.relevant_hits and self.mean >= wanted.mean_relevance


def _all_terms(candidates: Sequence[Candidate]) -> frozenset[str]:
    """Return the question's terms that at least one of the candidates has."""
    return frozenset[str]().union(*(each.terms for each in candidates))


# --- the next query ------------------------------------------------------------------------------


def _next_query(
    question: str,
    outcome: SearchOutcome,
    judgement: _Judgement,
    spent: frozenset[str],
    reformulate: Reformulate | None,
) -> tuple[str, str, MemctlError | None]:
    """Return the next query, "" for none, who worded it, and how the model failed, if it did."""
    failure: MemctlError | None = None
    if reformulate is not None and outcome.hits:
        try:
            hits = outcome.hits[:_JUDGED_HITS]
            return reformulate(question, hits, judgement.missing).strip(), "model", None
        except MemctlError as error:  # the search goes on, whatever is wrong with the model
            failure = error
    return _query_by_rules(outcome, judgement, spent), "built-in", failure


def _query_by_rules(outcome: SearchOutcome, judgement: _Judgement, spent: frozenset[str]) -> str:
    """Return names that lead on from the best hits, and the words that are still unmatched.

    Names that were ``spent`` in the query before led to what has been found already.
    """
    statistics = outcome.statistics
    asked = spent.union(outcome.asked.terms)
    names: dict[tuple[str, ...], None] = {}
    for candidate in judgement.best:
        own = [
            phrase
            for phrase in name_phrases(candidate, outcome.languages)
            if not asked.issuperset(phrase) and _may_lead_on(phrase, statistics)
        ]
        if own:
            names[max(own, key=lambda name: max(map(statistics.idf, name)))] = None
    words = [" ".join(phrase) for phrase in list(names)[:_MAX_NAMES]]
    synonyms = [
        term
        for slot in outcome.question.slots
        if judgement.terms.isdisjoint(slot)
        for term in slot[len(outcome.languages) :]
    ]
    return " ".join(dict.fromkeys([*words, *judgement.missing, *synonyms]))


def _may_lead_on(name: Sequence[str], statistics: TermStatistics) -> bool:
    """Return whether other memories may have a name too; the name of a file is only its own."""
    is_sample = statistics.sampled < statistics.memories
    return is_sample or all(statistics.frequencies.get(term, 0) > 1 for term in name)


def reformulate_by_model(
    chat: ChatModel, prompt: Prompt, question: str, hits: Sequence[Hit], missing: Sequence[str]
) -> str:
    """Return the next query in a model's words; "" where it sees nothing more to search for.

    Args:
        chat: The model.
        prompt: Its instructions.
        question: The question, in words.
        hits: The best of what was found.
        missing: Words of the question that none of them has.

    Raises:
        ModelError: The model gave no query.
    """
    from memctl.search.answering.reply_schemas import QueryReply

    given = numbered_excerpts(hits, _MODEL_TOKENS, estimate_tokens)
    asked = f"The question: {' '.join(question.split())}"
    lost = f"Words that no memory has: {' '.join(missing) or 'none'}"
    data = f"{fenced([item.text for item in given])}\n\n{asked}\n{lost}"
    reply = chat.ask(prompt.text, data, QueryReply, version=prompt.id)
    return " ".join(reply.query.split())[:_LONGEST_QUERY]


# --- merging rounds ------------------------------------------------------------------------------


def _merge(
    first: SearchOutcome, so_far: SearchOutcome, more: SearchOutcome, limit: int
) -> SearchOutcome:
    """Return the hits of all rounds, each once, at its best position."""
    scorer = KeywordScorer(first.asked, first.statistics)
    best_terms = _all_terms(first.candidates[:_JUDGED_HITS])
    best = {item.candidate.key: item for item in so_far.best}
    places: dict[Key, float] = {key: at for at, key in enumerate(best)}
    for at, item in enumerate(more.best):
        key = item.candidate.key
        if key not in best:
            best[key] = replace(item, candidate=_rescore(first, scorer, item.candidate))
        adds = not best[key].candidate.terms <= best_terms
        place = (_PROTECTED if adds else _PROTECTED_FROM_REST) - 0.5 + _RANK_STEP * at
        places[key] = min(place, places.get(key, place))
    order = sorted(best, key=lambda key: (places[key], key))
    below = [item for item in so_far.ranked if item.candidate.key not in best]
    items = [*(best[key] for key in order), *below]
    falling = accumulate((item.score for item in items), min)  # none above one before it
    ranked = tuple(map(lambda item, score: replace(item, score=score), items, falling))
    hits = {(hit.kb, hit.memory_id): hit for hit in (*more.hits, *so_far.hits)}
    return replace(
        so_far,
        ranked=ranked,
        hits=tuple(
            replace(hits[item.candidate.key], rank=rank, score=item.score)
            for rank, item in enumerate(ranked[:limit], start=1)
        ),
    )


def _rescore(first: SearchOutcome, scorer: KeywordScorer, candidate: Candidate) -> Candidate:
    """Return what another query found with its scores for the question itself."""
    keyword, found = scorer.score(candidate.row["search_text"], candidate.key[0])
    rescored = replace(candidate, keyword=keyword, terms=found)
    if candidate.direction is None or not first.has_cosines:
        return rescored
    [cosine] = cosines(first.meaning.vector, candidate.direction[None, :]).tolist()
    return replace(rescored, vector=cosine)
