"""An answer out of the hits' own sentences, each cited, or the plain word that nothing is known.

In between, where nobody can tell from the words whether the sentences answer the question, they are
given as what is closest.

Nothing is generated here: every sentence of an answer stands in a memory as it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace

from memctl.language.term_analysis import query_terms
from memctl.records import Answer
from memctl.search.answering.answer_constraints import is_multi_step
from memctl.search.answering.answer_type import (
    classify_question,
    has_date,
    has_relative_time,
    stated_values,
)
from memctl.search.answering.evidence_parts import (
    PATH_SEPARATOR,
    is_table_row,
    speaker_label,
    speech_start,
)
from memctl.search.answering.evidence_sentences import (
    EvidenceSentence,
    answering_sentences,
    jaccard,
    same_document,
)
from memctl.search.answering.excerpts import cite
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.question import Question, Slot
from memctl.search.retrieval.candidates import coverage

METHOD = "extractive/1"
NOT_FOUND = "Not in memory."
UNSURE = "Unsure. Closest in memory:"
MOST_SENTENCES = 3

_ENOUGH = 0.72
"""A further sentence must score this share of the best one's."""
_LEAST_SHARE = 0.3
"""And speak of this share of the question's content itself."""
_ENOUGH_FOR_A_STEP, _LEAST_STEP = 0.5, 0.15
"""The same for a sentence that speaks of what no other one does, where a question asks in steps;
of this share of its content it must speak anew."""
_SAME = 0.7
"""Sentences whose terms are alike to this degree say the same."""
_SAME_SUBJECT = 0.45
"""Sentences alike to this degree, numbers and dates aside, are about the same thing."""
_NOT_WHAT_WAS_ASKED = 0.3
"""What remains of the confidence where memories are about the things asked about, but none has
what is asked of them."""
_MARKERS = re.compile(r"^(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+")


def extract_answer(outcome: SearchOutcome) -> Answer:
    """Return the best sentences of the hits as an answer, or as the closest there is where they may
    be none, or say that it is not in memory."""
    certainty = outcome.certainty
    met = answering_sentences(outcome)
    may_be = met or outcome.demand.may_be_told_otherwise
    confidence = certainty.score if met else _NOT_WHAT_WAS_ASKED * certainty.score
    confidence = round(confidence, 3)
    if not outcome.statements or not may_be or certainty.is_against:
        return Answer(NOT_FOUND, found=False, method=METHOD, confidence=confidence)
    unsure = not met or not certainty.is_sure
    return _quoting(met or outcome.statements, outcome, confidence, unsure=unsure)


def _quoting(
    candidates: Sequence[EvidenceSentence],
    outcome: SearchOutcome,
    confidence: float,
    *,
    unsure: bool,
) -> Answer:
    best = candidates[0]
    other = _disagreeing(best, candidates[1:])
    chosen = [best] if other else _chosen(candidates, outcome)
    ordered = _newest_first([best, other]) if other else _reading_order(chosen)
    ordered = [replace(item, start=item.start + speech_start(item.text)) for item in ordered]
    citations = tuple(
        cite(number, item.hit, item.start, item.end) for number, item in enumerate(ordered, start=1)
    )
    text = _disagreement(ordered) if other else _plain(ordered, outcome.question.text)
    return Answer(
        f"{UNSURE} {text}" if unsure else text,
        found=not unsure,
        method=METHOD,
        confidence=confidence,
        citations=citations,
        unsure=unsure,
    )


def _chosen(
    candidates: Sequence[EvidenceSentence], outcome: SearchOutcome
) -> list[EvidenceSentence]:
    """Take the best sentence, then those that are nearly as good and add something.

    Of a question in steps, "the head of the firm that Ann works for", every step is told by a
    sentence of its own, which is less like the question than one that has several of its words.
    """
    best, *others = candidates
    chosen, covered = [best], set(best.covered | _who_speaks(best, outcome))
    in_steps = is_multi_step(outcome.question.text)
    for item in others:
        if len(chosen) == MOST_SENTENCES:
            break
        adds = _is_as_good(item, best, covered, outcome.question)
        adds = adds or (in_steps and _is_a_step(item, best, covered, outcome))
        if adds and not _repeats(item, chosen):
            chosen.append(item)
            covered |= item.covered
    return chosen


def _who_speaks(item: EvidenceSentence, outcome: SearchOutcome) -> frozenset[Slot]:
    """Return the slots of a question that are whoever says a sentence: all of a turn is theirs, and
    what tells no more of the question, such as a greeting, adds nothing."""
    speaker = speaker_label(item.hit.text) if item.hit.type == "turn" else ""
    names = query_terms(speaker, outcome.languages)
    return frozenset(slot for slot in outcome.question.slots if not set(names).isdisjoint(slot))


def _is_as_good(
    item: EvidenceSentence, best: EvidenceSentence, covered: Set[Slot], question: Question
) -> bool:
    """Tell whether a sentence stands beside the best one and adds to what is covered."""
    if item.score < _ENOUGH * best.score:
        return False
    adds = not item.covered <= covered and item.share >= _LEAST_SHARE
    adds |= bool(question.dates) and item.covered.issuperset(question.dates)
    return adds or not question.slots


def _is_a_step(
    item: EvidenceSentence, best: EvidenceSentence, covered: Set[Slot], outcome: SearchOutcome
) -> bool:
    """Tell whether a sentence speaks of a step of the question that is not covered yet."""
    if item.score < _ENOUGH_FOR_A_STEP * best.score:
        return False
    added = frozenset(term for slot in item.covered - covered for term in slot)
    return coverage(outcome.question, added, outcome.statistics) >= _LEAST_STEP


def _repeats(item: EvidenceSentence, chosen: Sequence[EvidenceSentence]) -> bool:
    return any(
        _overlap(item, other) or jaccard(item.terms, other.terms) >= _SAME for other in chosen
    )


def _overlap(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Tell whether two are the same characters: passages of a document overlap a little."""
    if not same_document(one, other) or one.hit.start is None or other.hit.start is None:
        return one.text == other.text
    left, right = one.hit.start + one.start, other.hit.start + other.start
    return left < right + len(other.text) and right < left + len(one.text)


def _reading_order(chosen: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    """The best sentence's document first, and within a document as it reads."""
    ranks = {item.hit.document: place for place, item in reversed(list(enumerate(chosen)))}
    return sorted(
        chosen, key=lambda item: (ranks[item.hit.document], (item.hit.start or 0) + item.start)
    )


# --- two that differ -----------------------------------------------------------------------------


def _disagreeing(
    best: EvidenceSentence, others: Sequence[EvidenceSentence]
) -> EvidenceSentence | None:
    """Return a sentence of another memory that gives other values for the same thing."""
    for other in others:
        if other.score < _ENOUGH * best.score:
            break
        if other.hit.memory_id != best.hit.memory_id and _disagree(best, other):
            return other
    return None


def _are_rows_of_one(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Tell whether a table has both, which lists many things in the same words."""
    return is_table_row(one.text) and is_table_row(other.text) and same_document(one, other)


def _disagree(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    if _are_rows_of_one(one, other):
        return False
    left, right = stated_values(one.text), stated_values(other.text)
    if left <= right or right <= left or one.covered != other.covered:
        return False
    return jaccard(_subject(one), _subject(other)) >= _SAME_SUBJECT


def _subject(item: EvidenceSentence) -> frozenset[str]:
    stated = frozenset(query_terms(" ".join(stated_values(item.text))))
    return item.terms - stated


def _newest_first(items: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    return sorted(items, key=lambda item: (item.hit.created_at, -item.hit.rank), reverse=True)


def _disagreement(ordered: Sequence[EvidenceSentence]) -> str:
    newer, older = ordered
    if newer.hit.created_at.date() == older.hit.created_at.date():
        return f"{_sentence(newer, 1)} But also: {_sentence(older, 2)}"
    return (
        f"As of {_day(newer)}: {_sentence(newer, 1)} Earlier, on {_day(older)}: "
        f"{_sentence(older, 2)}"
    )


# --- wording -------------------------------------------------------------------------------------


def _plain(ordered: Sequence[EvidenceSentence], question: str) -> str:
    asks_when = classify_question(question) == "time"
    parts = []
    for number, item in enumerate(ordered, start=1):
        dated = f" ({_day(item)})" if asks_when and _needs_date(item) else ""
        parts.append(_sentence(item, number) + dated)
    return " ".join(parts)


def _needs_date(item: EvidenceSentence) -> bool:
    """Tell whether a sentence means nothing without the day on which it was said."""
    told = item.hit.session_id is not None or (has_relative_time(item.text) and not item.path)
    return told and not has_date(item.text)


def _sentence(item: EvidenceSentence, number: int) -> str:
    words = " ".join(_MARKERS.sub("", item.text).split())
    words = f"No longer so: {words}" if item.has_ended else words
    return f"{item.path}{PATH_SEPARATOR}{words} [{number}]" if item.path else f"{words} [{number}]"


def _day(item: EvidenceSentence) -> str:
    return item.hit.created_at.date().isoformat()
