"""Signals: what speaks for a hit besides its own words, such as who says it or what it is called.

Each signal decides by the question and the candidates whether it applies, raises scores, and may
bring in more candidates.  A hit's ``legs`` show what each signal added, under the signal's name.
To add a signal, write its function and add an entry to ``SIGNALS``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memctl.language.term_analysis import query_terms, terms
from memctl.language.time_periods import periods
from memctl.literals import QUOTED, Mode
from memctl.models.vector_math import dot_products, normalize_rows
from memctl.patterns import lazy_regex
from memctl.records import Hit
from memctl.search.query.question import Question, TimeExpression
from memctl.search.query.subject_questions import subject_question
from memctl.search.ranking.dialogue import boost_turns
from memctl.search.ranking.multi_hop import (
    Phrase,
    boost_multi_hop,
    name_phrases,
    spaced_terms,
    title_phrases,
)
from memctl.search.ranking.reranking import RERANK
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext, apply_priors

_TITLE_WEIGHT = 2.0
_SIMILARITY_WEIGHT = 1.0
_DEFINITION_WEIGHT = 4.0
_EVENT_WEIGHT = 0.5
"""Half of what it is worth who speaks."""
_SHARPNESS = 10
"""Power of the cosine: only the nearest hits count."""
_MIN_SIMILARITY = 0.1
"""A hit whose powers of cosines with all others sum to less gains in proportion: with one neighbour
at a cosine below 0.8, say.  Otherwise the nearest would count in full, however far away it is."""
_MOST_OF_GAIN = 0.5
"""From this share on, a hit's gain is due to one other hit."""
_MAX_COMPARED = 100
_NAMED_IN = 10
_EVENT = lazy_regex(
    r"(?<!\w)(?P<side>(?i:before|after|since|bevor|nachdem|vor|nach|avant|après|antes de"
    r"|después de))\s(?P<what>(?:(?:the|our|my|your|his|her|their|we|I|you|he|she|they|der|dem|die"
    r"|das|wir|ich|er|sie|le|la|les|notre|mon|ma|el|los|las|nuestr[oa]|mi)\s|l['’]|[A-Z])"
    r"[^?,;.!]+)"
)
"""An event that happened once: what is done "before work" or "after a run" is done repeatedly."""
_BEFORE = frozenset(("before", "bevor", "vor", "avant", "antes de"))
_ORDER = r"(?:always|never|please|remember to|make sure|i (?:want|expect|need|prefer|would like))"
_ASKED = (
    r"(?:when(?:ever)?|if|(?:every|each|any) ?time) (?:i|we|you are|you're|someone|anyone|people)"
    r"(?: \w+)? (?:ask|request|inquire|mention|talk|want|need)\w*(?: you)?(?: (?:for|about|to|on))?"
)
_INSTRUCTION = lazy_regex(
    rf"\b{_ORDER}\b[^.?!\n]*\b{_ASKED}\b(?P<after>[^.,;?!\n]+)"
    rf"|\b{_ASKED}\b(?P<before>[^.;?!\n]+?),[^.?!\n]*\b{_ORDER}\b",
    re.IGNORECASE,
)
"""What to do whenever something is asked for, and what that is."""
_INSTRUCTION_TERMS = query_terms("always never whenever ask", ("en",))
_INSTRUCTION_WEIGHT = 6.0
"""At a cosine of 1 of the question with what the instruction is for; 0.4 is much between the two:
with it an instruction is about the tenth hit."""
_MIN_FIT = 0.15
"""Least such cosine; unrelated ones are mostly lower."""
_MAX_INSTRUCTIONS = 20
_YES_OR_NO = lazy_regex(
    r"(?:\w+:)?\W*(?:did|do|does|was|were|is|are|has|have|had|can|could|will|would)\b",
    re.IGNORECASE,
)
"""Begins a question such as which of two things was first."""


# --- titles --------------------------------------------------------------------------------------


def boost_named_titles(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Raise the passages of documents whose title stands in the question, word for word.

    Someone who names a document wants what it says, not what mentions it.
    """
    titles = [title_phrases(item.candidate, context.languages) for item in items]
    named = _titles_in_question({phrase for phrases in titles for phrase in phrases}, context)
    weight = _TITLE_WEIGHT * context.spread
    return [
        boost_score(item, "title", 0.0 if named.isdisjoint(phrases) else weight)
        for item, phrases in zip(items, titles, strict=True)
    ]


def _titles_in_question(titles: Iterable[Phrase], context: ScoringContext) -> frozenset[Phrase]:
    """Return the titles in the question that aren't part of a longer one there.

    A single word has to be written like a name: many documents are called "Notes".
    """
    question = context.question
    asked = [spaced_terms(terms(question.text, language)) for language in context.languages]
    names = {term for slot in question.names for term in slot}
    found = [
        title
        for title in titles
        if (len(title) > 1 or title[0] in names)
        and any(spaced_terms(title) in text for text in asked)
    ]
    return frozenset(
        title
        for title in found
        if not any(title != other and spaced_terms(title) in spaced_terms(other) for other in found)
    )


# --- similarity ----------------------------------------------------------------------------------


def boost_similar(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Raise the hits that resemble other good hits, where the question names nothing.

    After the cluster hypothesis (van Rijsbergen 1979) and score regularization (Diaz 2005).  It
    helps questions about a subject; where one is about a named person or thing it buries
    the one right hit, and in conversations similar turns say little, so it stays out of both.
    """
    best, rest = list(items[:_MAX_COMPARED]), list(items[_MAX_COMPARED:])
    if len(best) < 2 or _are_turns(best) or _names_something(best, context):
        return list(items)
    vectors = _unit_vectors(best)
    if vectors is None:
        return list(items)
    similar = np.clip(dot_products(vectors, vectors), 0, None) ** _SHARPNESS
    np.fill_diagonal(similar, 0)
    shares = similar / np.maximum(similar.sum(axis=1, keepdims=True), _MIN_SIMILARITY)
    scores = np.array([item.score for item in best])
    gains = _SIMILARITY_WEIGHT * dot_products(shares, np.clip(scores, 0, None))
    gains = _limit_gains(scores, gains, shares)
    boosted = (
        boost_score(item, "alike", float(gain)) for item, gain in zip(best, gains, strict=True)
    )
    return [*boosted, *rest]


def _limit_gains(
    scores: NDArray[np.float64], gains: NDArray[np.float64], shares: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Limit each gain to that of a better hit which most of it is due to.

    Two hits that resemble only each other would otherwise gain what the other has, and end equal.
    """
    limited = gains.copy()
    for at in np.argsort(-scores, kind="stable"):
        better = (shares[at] >= _MOST_OF_GAIN) & (scores > scores[at])
        limited[at] = min(gains[at], limited[better].min(initial=np.inf))
    return limited


def _are_turns(best: Sequence[ScoredCandidate]) -> bool:
    return 2 * sum(item.candidate.type == "turn" for item in best) > len(best)


def _names_something(best: Sequence[ScoredCandidate], context: ScoringContext) -> bool:
    """Return whether the question has a name, or all words of a name in the best hits."""
    if context.question.names:
        return True
    asked = frozenset(context.question.terms)
    return any(
        asked.issuperset(phrase)
        for item in best[:_NAMED_IN]
        for phrase in name_phrases(item.candidate, context.languages)
    )


def _unit_vectors(best: Sequence[ScoredCandidate]) -> NDArray[np.float32] | None:
    """Return the vectors, of length 1; None unless all are of one embedder."""
    rows = [item.candidate.direction for item in best]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({len(row) for row in known}) != 1:
        return None
    return normalize_rows(np.stack(known))


# --- events --------------------------------------------------------------------------------------


def boost_event_period(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Raise memories from before or after an event that the question names: "since the move".

    The event's time is that of the best memory that mentions it.
    """
    period = _event_period(context.question, items, context.now.date())
    if period is None:
        return list(items)
    weight = _EVENT_WEIGHT * (context.spread or 1.0)
    return sort_by_score(boost_score(item, "time", weight * _fit(period, item)) for item in items)


def _fit(period: TimeExpression, item: ScoredCandidate) -> float:
    created = item.candidate.row["created_at"]
    return 0.0 if created is None else period.fit(created.date())


def _event_period(
    question: Question, items: Sequence[ScoredCandidate], today: date
) -> TimeExpression | None:
    match = None if _YES_OR_NO.match(question.text) else _EVENT.search(question.text)
    if match is None or periods(match[0], today):
        return None
    places = question.words_between(*match.span("what"))
    slots = [slot for place in places for slot in question.word_slots[place]]
    days = [
        created.date()
        for item in sort_by_score(items)
        if all(not item.candidate.terms.isdisjoint(slot) for slot in slots)
        and (created := item.candidate.row["created_at"]) is not None
    ]
    if not slots or not days:
        return None
    is_before = match["side"].lower() in _BEFORE
    day = timedelta(days=1)
    first, last = (date.min, days[0] - day) if is_before else (days[0] + day, date.max)
    return TimeExpression(match[0].rstrip(), first, last)


# --- instructions --------------------------------------------------------------------------------


def boost_instructions(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Raise instructions for questions such as this: "always name the source when I ask about ...".

    They share no word with the question, so that what they are for is compared by meaning.
    """
    frequencies = context.statistics.frequencies
    written = [term for term in _INSTRUCTION_TERMS if term in frequencies]
    if not written:
        return list(items)
    found = list(context.with_terms(written, _MAX_INSTRUCTIONS).values())
    topics = {
        each.key: (match["before"] or match["after"])
        for each, text in zip(found, context.collector.texts(found), strict=True)
        if (match := _INSTRUCTION.search(text))
    }
    near = dict(zip(topics, context.cosines_with_texts(list(topics.values())), strict=True))
    known = {item.candidate.key: item for item in items}
    fitting = {each.key: each for each in found if near.get(each.key, 0.0) > _MIN_FIT}
    new = context.score_more({key: each for key, each in fitting.items() if key not in known})
    weight = _INSTRUCTION_WEIGHT * context.spread
    return [
        boost_score(item, "instruction", weight * near[key] if key in fitting else 0.0)
        for key, item in (known | new).items()
    ]


# --- definitions ---------------------------------------------------------------------------------


def boost_definitions(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Raise what says what a thing is, or does, where that is asked by its name.

    Its name alone stands in all that is about it.
    """
    asked = subject_question(context.question.text)
    if asked is None:
        return list(items)
    texts = context.collector.texts([item.candidate for item in items])
    weight = _DEFINITION_WEIGHT * context.spread
    return [
        boost_score(item, "definition", weight if asked.is_defined_in(text) else 0.0)
        for item, text in zip(items, texts, strict=True)
    ]


# --- quotations ---

_QUOTED_WEIGHT = 1.0


def lower_quoted(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Lower what a message quotes of the one that it answers."""
    weight = -_QUOTED_WEIGHT * context.spread
    return [
        boost_score(item, "quoted", weight if item.candidate.type == QUOTED else 0.0)
        for item in items
    ]


# --- the mode graph ------------------------------------------------------------------------------


def _walk_graph(items: Sequence[ScoredCandidate], context: ScoringContext) -> list[ScoredCandidate]:
    from memctl.search.ranking.graph_walk import walk_graph

    return walk_graph(items, context)


# --- the registry --------------------------------------------------------------------------------

SignalFunction = Callable[[Sequence[ScoredCandidate], ScoringContext], list[ScoredCandidate]]


class Signal(Struct, frozen=True):
    """One reason to raise a hit's score."""

    name: str
    explains: str
    apply: SignalFunction
    """Raises the scores; a function that several signals share runs once, at the first of them."""
    modes: frozenset[Mode] = frozenset(("hybrid",))


_BOTH = frozenset[Mode](("hybrid", "graph"))

SIGNALS: Sequence[Signal] = (
    Signal("importance", "the memory is important", apply_priors, _BOTH),
    Signal("confidence", "the memory is certain", apply_priors, _BOTH),
    Signal("recency", "the memory is recent", apply_priors, _BOTH),
    Signal("alike", "it resembles other good hits", boost_similar),
    Signal("title", "the question names its document", boost_named_titles),
    Signal("definition", "it says what that is", boost_definitions),
    Signal("speaker", "the question names who says it", boost_turns),
    Signal("telling", "it says more than a short turn", boost_turns),
    Signal("reply", "an assistant says it, not its user", boost_turns),
    Signal("neighbours", "the turns around it match the question", boost_turns),
    Signal("time", "it is from before or after the event named", boost_event_period),
    Signal("instruction", "it is for such questions", boost_instructions),
    Signal("quoted", "a message quotes it from another one", lower_quoted),
    Signal("bridge", "a name in a good hit leads to it", boost_multi_hop),
    Signal("graph", "names lead to it from a good hit", _walk_graph, frozenset(("graph",))),
)
"""In the order in which they apply."""


def apply_signals(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, and what signals bring in, best first."""
    found = list(items)
    functions = (each.apply for each in SIGNALS if context.plan.mode in each.modes)
    for apply in dict.fromkeys(functions):
        found = apply(found, context)
    return sort_by_score(found)


def explain_signals(items: Sequence[ScoredCandidate]) -> dict[str, Any]:
    """Return what the signals that raised some of the items mean, for ``--explain``."""
    meanings = {
        signal.name: signal.explains
        for signal in SIGNALS
        if any(signal.name in item.legs for item in items)
    }
    return {"signals": meanings} if meanings else {}


def text_score(hit: Hit) -> float:
    """Return the part of a hit's score that is due to its text; a reranker has read all of it."""
    if RERANK in hit.legs:
        return hit.score
    return hit.score - sum(hit.legs.get(signal.name, 0.0) for signal in SIGNALS)
