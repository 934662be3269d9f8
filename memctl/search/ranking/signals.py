"""What speaks for a hit besides its own words: who says it, and what resembles it or leads to it.

Each clue decides by the question and by what was found whether it has anything to say, raises the
scores of hits or brings up others, and leaves its share in ``legs`` for ``--explain``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memctl.language.term_analysis import terms
from memctl.models.vector_math import dot_products, normalize_rows
from memctl.records import Hit
from memctl.search.query.question import Question
from memctl.search.ranking.dialogue import boost_turns
from memctl.search.ranking.event_signal import EVENT_SIGNAL as TIME
from memctl.search.ranking.event_signal import boost_event_period
from memctl.search.ranking.multi_hop import (
    Phrase,
    boost_multi_hop,
    name_phrases,
    spaced_terms,
    title_phrases,
)
from memctl.search.ranking.reranking import RERANK
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext

GRAPH_SIGNAL = "graph"
"""The share of the mode ``graph``."""
SIGNAL_NAMES = (
    "importance",
    "confidence",
    "recency",
    "alike",
    "title",
    "speaker",
    "neighbours",
    "telling",
    TIME,
    "bridge",
    GRAPH_SIGNAL,
)


def text_score(hit: Hit) -> float:
    """Return what a hit's own words gave it, which a model that has read them says best."""
    if RERANK in hit.legs:
        return hit.score
    return hit.score - sum(hit.legs.get(clue, 0.0) for clue in SIGNAL_NAMES)


def apply_signals(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, and perhaps others, best first, with all clues counted in."""
    found = boost_similar(around.with_standing(items), question, around)
    found = boost_named_titles(found, question, around)
    found = boost_turns(found, question, around)
    found = boost_event_period(found, question, around)
    return sort_by_score(boost_multi_hop(found, question, around))


TITLE_WEIGHT = 2.0
"""In standard deviations of the candidates' scores."""


def boost_named_titles(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, raised where the question has the title of their document in it."""
    titles = [title_phrases(item.candidate, around.languages) for item in items]
    named = _titles_in_question(
        {phrase for phrases in titles for phrase in phrases}, question, around
    )
    return [
        boost_score(
            item, "title", 0.0 if named.isdisjoint(phrases) else TITLE_WEIGHT * around.spread
        )
        for item, phrases in zip(items, titles, strict=True)
    ]


def _titles_in_question(
    titles: Iterable[Phrase], question: Question, around: ScoringContext
) -> frozenset[Phrase]:
    """The titles in the question that are no mere part of a longer one there.

    A single word has to be written like a name: many a document is called "Notes".
    """
    asked = [spaced_terms(terms(question.text, language)) for language in around.languages]
    written = {term for slot in question.names for term in slot}
    found = [
        title
        for title in titles
        if (len(title) > 1 or title[0] in written)
        and any(spaced_terms(title) in text for text in asked)
    ]
    return frozenset(
        title
        for title in found
        if not any(title != other and spaced_terms(title) in spaced_terms(other) for other in found)
    )


SIMILARITY_WEIGHT = 1.0
"""Of the mean score of those alike, against a hit's own."""
SHARPNESS = 10
"""Power of the cosine: only the nearest count."""
LEAST_ALIKE = 0.1
"""Of that, summed over all others: less, as of one with a cosine below 0.8, raises a hit by so much
less.  Without it whatever is nearest would count in full, however far away it is."""
_MOST_OF_IT = 0.5
"""Share of what a hit is raised by, from which on it is raised by one other hit."""
_LOOKED_AT = 100
_NAMED_IN = 10


def boost_similar(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, raised by those that they resemble, where the question names nothing."""
    best, rest = list(items[:_LOOKED_AT]), list(items[_LOOKED_AT:])
    if len(best) < 2 or _is_about_turns(best) or _names_something(question, best, around):
        return list(items)
    directions = _directions(best)
    if directions is None:
        return list(items)
    alike = np.clip(dot_products(directions, directions), 0, None) ** SHARPNESS
    np.fill_diagonal(alike, 0)
    shares = alike / np.maximum(alike.sum(axis=1, keepdims=True), LEAST_ALIKE)
    scores = np.array([item.score for item in best])
    gains = _limit_gains(
        scores, SIMILARITY_WEIGHT * dot_products(shares, np.clip(scores, 0, None)), shares
    )
    return [
        *(boost_score(item, "alike", float(gain)) for item, gain in zip(best, gains, strict=True)),
        *rest,
    ]


def _limit_gains(
    scores: NDArray[np.float64], gains: NDArray[np.float64], shares: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the gains, where none is more than that of a better hit which most of it is from.

    Two that resemble only each other would each gain what the other has, and end equal: the line
    of bus 17 and that of bus 18.
    """
    limited = gains.copy()
    for at in np.argsort(-scores, kind="stable"):
        better = (shares[at] >= _MOST_OF_IT) & (scores > scores[at])
        limited[at] = min(gains[at], limited[better].min(initial=np.inf))
    return limited


def _is_about_turns(best: Sequence[ScoredCandidate]) -> bool:
    return 2 * sum(item.candidate.type == "turn" for item in best) > len(best)


def _names_something(
    question: Question, best: Sequence[ScoredCandidate], around: ScoringContext
) -> bool:
    """Whether it is written like a name, or is the name of something in the best hits."""
    if question.names:
        return True
    asked = around.question_terms
    return any(
        asked.issuperset(phrase)
        for item in best[:_NAMED_IN]
        for phrase in name_phrases(item.candidate, around.languages)
    )


def _directions(best: Sequence[ScoredCandidate]) -> NDArray[np.float32] | None:
    """The vectors, of length 1; None unless all are of one embedder."""
    rows = [item.candidate.direction for item in best]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({len(row) for row in known}) != 1:
        return None
    return normalize_rows(np.stack(known))
