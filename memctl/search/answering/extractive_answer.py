"""Extractive answers: sentences of the hits, each cited, or that nothing is known.

In between, where the words can't tell whether the sentences answer the question, they are given as
what is closest.  Nothing is generated: every sentence is quoted from a memory.
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
    judge_certainty,
    rank_sentences,
    select_answering,
)
from memctl.search.answering.excerpts import HitExcerpt, cite
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.question import Question, Slot
from memctl.search.retrieval.candidates import coverage

METHOD = "extractive/1"
NOT_FOUND = "Not in memory."
UNSURE = "Unsure. Closest in memory:"
_MAX_SENTENCES = 3

_MIN_SCORE_SHARE = 0.72
"""A further sentence must have this share of the best one's score."""
_MIN_COVERED = 0.3
"""And itself cover this share of the question's content."""
_MIN_STEP_SCORE_SHARE, _MIN_STEP_COVERED = 0.5, 0.15
"""The same for another step of a multi-step question; it must cover its share anew."""
_SAME_TEXT = 0.7
"""Sentences whose terms overlap to this degree say the same."""
_SAME_SUBJECT = 0.45
"""Sentences that overlap to this degree, numbers and dates aside, are about the same thing."""
_UNMET_FACTOR = 0.3
"""Factor of the confidence where memories are about the subject, but none has what is asked."""
_MARKERS = re.compile(r"^(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+")


def extract_answer(outcome: SearchOutcome) -> Answer:
    """Return an answer of the best sentences, what is closest, or that it is not in memory."""
    sentences = rank_sentences(outcome)
    answering = select_answering(sentences, outcome)
    certainty = judge_certainty(outcome, sentences)
    confidence = round(certainty.score if answering else _UNMET_FACTOR * certainty.score, 3)
    is_possible = answering or outcome.constraints.may_be_met_unseen
    if not sentences or not is_possible or certainty.is_against:
        return Answer(NOT_FOUND, found=False, method=METHOD, confidence=confidence)
    unsure = not answering or not certainty.is_sure
    return _quote(answering or sentences, outcome, confidence, unsure=unsure)


def _quote(
    candidates: Sequence[EvidenceSentence],
    outcome: SearchOutcome,
    confidence: float,
    *,
    unsure: bool,
) -> Answer:
    best = candidates[0]
    other = _find_contradiction(best, candidates[1:])
    chosen = [best] if other else _choose(candidates, outcome)
    ordered = _newest_first([best, other]) if other else _reading_order(chosen)
    ordered = [replace(item, start=item.start + speech_start(item.text)) for item in ordered]
    citations = tuple(
        cite(number, HitExcerpt(item.hit, item.start, item.end))
        for number, item in enumerate(ordered, start=1)
    )
    text = _contradiction(ordered) if other else _plain_answer(ordered, outcome.question.text)
    return Answer(
        f"{UNSURE} {text}" if unsure else text,
        found=not unsure,
        method=METHOD,
        confidence=confidence,
        citations=citations,
        unsure=unsure,
    )


# --- choosing sentences --------------------------------------------------------------------------


def _choose(
    candidates: Sequence[EvidenceSentence], outcome: SearchOutcome
) -> list[EvidenceSentence]:
    """Return the best sentence, and those that are nearly as good and add something.

    In a multi-step question, "the head of the firm that Ann works for", each step has a sentence of
    its own, which is less similar to the question than one with several of its words.
    """
    best, *others = candidates
    chosen, covered = [best], set(best.covered | _speaker_slots(best, outcome))
    multi_step = is_multi_step(outcome.question.text)
    for item in others:
        if len(chosen) == _MAX_SENTENCES:
            break
        adds = _is_as_good(item, best, covered, outcome.question)
        adds = adds or (multi_step and _is_step(item, best, covered, outcome))
        if adds and not _repeats(item, chosen):
            chosen.append(item)
            covered |= item.covered
    return chosen


def _speaker_slots(item: EvidenceSentence, outcome: SearchOutcome) -> frozenset[Slot]:
    """Return the slots of a question that name the sentence's speaker: other turns of the same
    speaker that cover nothing else, such as a greeting, add nothing."""
    speaker = speaker_label(item.hit.text) if item.hit.type == "turn" else ""
    names = query_terms(speaker, outcome.languages)
    return frozenset(slot for slot in outcome.question.slots if not set(names).isdisjoint(slot))


def _is_as_good(
    item: EvidenceSentence, best: EvidenceSentence, covered: Set[Slot], question: Question
) -> bool:
    """Tell whether a sentence is nearly as good as the best and adds to what is covered."""
    if item.score < _MIN_SCORE_SHARE * best.score:
        return False
    adds = not item.covered <= covered and item.share >= _MIN_COVERED
    adds |= bool(question.dates) and item.covered.issuperset(question.dates)
    return adds or not question.slots


def _is_step(
    item: EvidenceSentence, best: EvidenceSentence, covered: Set[Slot], outcome: SearchOutcome
) -> bool:
    """Tell whether a sentence covers a step of the question that isn't covered yet."""
    if item.score < _MIN_STEP_SCORE_SHARE * best.score:
        return False
    added = frozenset(term for slot in item.covered - covered for term in slot)
    return coverage(outcome.question, added, outcome.statistics) >= _MIN_STEP_COVERED


def _repeats(item: EvidenceSentence, chosen: Sequence[EvidenceSentence]) -> bool:
    return any(
        _overlap(item, other) or _jaccard(item.terms, other.terms) >= _SAME_TEXT for other in chosen
    )


def _overlap(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Tell whether two share characters: the passages of a document overlap a little."""
    if not _same_document(one, other) or one.hit.start is None or other.hit.start is None:
        return one.text == other.text
    left, right = one.hit.start + one.start, other.hit.start + other.start
    return left < right + len(other.text) and right < left + len(one.text)


def _same_document(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    return one.hit.document == other.hit.document


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def _reading_order(chosen: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    """Return the best sentence's document first, and each document in its own order."""
    ranks = {item.hit.document: place for place, item in reversed(list(enumerate(chosen)))}
    return sorted(
        chosen, key=lambda item: (ranks[item.hit.document], (item.hit.start or 0) + item.start)
    )


# --- contradictions ------------------------------------------------------------------------------


def _find_contradiction(
    best: EvidenceSentence, others: Sequence[EvidenceSentence]
) -> EvidenceSentence | None:
    """Return a sentence of another memory that gives other values for the same thing."""
    for other in others:
        if other.score < _MIN_SCORE_SHARE * best.score:
            break
        if other.hit.memory_id != best.hit.memory_id and _contradict(best, other):
            return other
    return None


def _contradict(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    if is_table_row(one.text) and is_table_row(other.text) and _same_document(one, other):
        return False  # a table lists many things in the same words
    left, right = stated_values(one.text), stated_values(other.text)
    if left <= right or right <= left or one.covered != other.covered:
        return False
    return _jaccard(_subject(one), _subject(other)) >= _SAME_SUBJECT


def _subject(item: EvidenceSentence) -> frozenset[str]:
    return item.terms.difference(query_terms(" ".join(stated_values(item.text))))


def _newest_first(items: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    return sorted(items, key=lambda item: (item.hit.created_at, -item.hit.rank), reverse=True)


def _contradiction(ordered: Sequence[EvidenceSentence]) -> str:
    newer, older = ordered
    first, second = _numbered_sentence(newer, 1), _numbered_sentence(older, 2)
    if _day(newer) == _day(older):
        return f"{first} But also: {second}"
    return f"As of {_day(newer)}: {first} Earlier, on {_day(older)}: {second}"


# --- wording -------------------------------------------------------------------------------------


def _plain_answer(ordered: Sequence[EvidenceSentence], question: str) -> str:
    asks_when = classify_question(question) == "time"
    parts = []
    for number, item in enumerate(ordered, start=1):
        dated = f" ({_day(item)})" if asks_when and _needs_date(item) else ""
        parts.append(_numbered_sentence(item, number) + dated)
    return " ".join(parts)


def _needs_date(item: EvidenceSentence) -> bool:
    """Tell whether a sentence answers nothing without the day on which it was said."""
    said = item.hit.session_id is not None or (has_relative_time(item.text) and not item.path)
    return said and not has_date(item.text)


def _numbered_sentence(item: EvidenceSentence, number: int) -> str:
    words = " ".join(_MARKERS.sub("", item.text).split())
    words = f"No longer so: {words}" if item.has_ended else words
    path = f"{item.path}{PATH_SEPARATOR}" if item.path else ""
    return f"{path}{words} [{number}]"


def _day(item: EvidenceSentence) -> str:
    return item.hit.created_at.date().isoformat()
