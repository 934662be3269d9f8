"""Extractive answers: sentences of the hits, each cited, or that nothing is known.

A sentence is given as the answer where the reading model is sure that it answers the question.
Where it isn't, the best is shown as what is closest.  Nothing is generated: every sentence is
quoted from a memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans, leading_day
from memctl.language.sentence_values import CHANGE_WORDS, values
from memctl.language.term_analysis import query_terms
from memctl.patterns import lazy_regex
from memctl.records import Answer, Hit
from memctl.search.answering.evidence_parts import (
    LIST_MARK,
    PATH_SEPARATOR,
    TURN_LABEL,
    asks_for_earlier,
    asks_for_oldest,
    asks_how,
    asks_what_happened,
    asks_when,
    asks_why,
    has_date,
    has_reason,
    has_relative_time,
    is_dated_by_file,
    is_first_person,
    is_of_stated_day,
    is_said,
    is_table_row,
    is_time_word,
    lacks_count,
    only_considers,
    only_supposes,
    retractions,
    speaker_of_himself,
    speech_start,
    stated_values,
    turn_speech_start,
    words_of_turn_start,
)
from memctl.search.answering.evidence_sentences import (
    EvidenceSentence,
    log_odds,
    rank_sentences,
    topics_of,
)
from memctl.search.answering.excerpts import UNSURE, HitExcerpt, cite, plain_quote
from memctl.search.answering.list_answer import list_answer
from memctl.search.answering.relevance import sigmoid
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.answering.table_totals import extreme_answer, total_answer, unpaid_answer
from memctl.search.query.question import Question, TimeExpression, version_at
from memctl.understanding.relation_extraction import PostHolder, post_holders
from memctl.understanding.triggers import asking_length

METHOD = "extractive/2"
NOT_FOUND = "Not in memory."

MIN_CONFIDENCE = 0.65
"""Probability from which a sentence is given as the answer."""
MIN_CONFIDENCE_OF_HOW = 0.8
"""The same for questions that ask how something is done or works: in manuals, most sentences with
the words of such a question are about something related."""
MIN_CONFIDENCE_WITHOUT_REASON = 0.9
"""The same for questions that ask why, for a sentence without a word for a reason: most of these
only restate what the question asks about."""
MIN_CLOSE = 0.15
"""Confidence from which an unsure answer is shown as the closest match."""
CONFIDENCE_WEIGHTS = {"best": 1.27, "margin": 0.58, "bias": -1.02}
"""Weights of a logistic model (``tests/training/fit_answers.py``).  ``best`` weighs the log odds of
the best sentence, ``margin`` its lead over the best sentence that is left out and says something
else."""
MAX_MARGIN = 1.5
"""Largest lead that counts, in log odds; also the lead of a sentence without competitors."""
MAX_SENTENCES, _MAX_LIST_SENTENCES = 3, 5
MIN_SCORE_SHARE = 0.85
"""Least probability of a further sentence, as a share of the best one's."""
_MIN_STEP_SHARE = 0.5
"""The same for lists and multi-part questions, which no single sentence answers completely."""
_MIN_CHANGE_SHARE, _MAX_CHANGE_LENGTH = 0.65, 140
"""The same for a sentence that states a change, and its maximum length in characters: in a longer
sentence, something else may have changed."""
_MULTI_PART_QUESTION = lazy_regex(
    r"\b(?:who|when|where|what|which|why|how)\b.*\b(?:who|when|where|what|which|why|how)\b"
    r"|\b(?:or|oder|ou)\b|(?:\bof\b|['’]s\b).*(?:\bof\b|['’]s\b)",
    re.IGNORECASE,
)
_LIST_QUESTION = lazy_regex(
    r"\b(?:list|all the|every\w*|(?:what|who) (?:are|were|all|else)"
    r"|(?:what|which) \w+s (?:are|were|do|did|have|had|can|will)"
    r"|what (?:happened|went on|did \w+ do)"
    r"|welche \w+en|alle[ns]?|was (?:ist|war) (?:passiert|geschehen|los)|quel(?:le)?s|tous les"
    r"|qu['’]est-ce qui s['’]est passé|cuáles|qué pasó|quali|che cosa è successo|welke)\b",
    re.IGNORECASE,
)
"""Matches questions whose answer is a list, or what happened at some time."""
_ITEM = rf"[^\S\n]*{LIST_MARK}[^\S\n]+"
_ITEMS = lazy_regex(rf"[^\S\n]*\n(?:{_ITEM}[^\n]+(?:\n|\Z)){{2,12}}")
"""The items of a list, after the line that says what they are."""
_MAX_LIST_LENGTH = 700
_ASKS_FOR_PLAN = lazy_regex(
    r"\b(?:will|does|do|going to|plan(?:s|ned)?|still|(?:when|what) (?:is|are)"
    r"|(?:am|is|are) \w+ \w+ing|wird|werden|noch|wann)\b",
    re.IGNORECASE,
)
_OF_PAST = lazy_regex(r"\b(?:did|was|were|wurden?|war(?:en)?)\b", re.IGNORECASE)
_ASKS_COUNT = lazy_regex(r"\b(?:how many|wie viele|combien de|cuánt[oa]s)\b", re.IGNORECASE)
_SETS_VALUE = lazy_regex(
    r"^(?:[^\W\d_][\w.'’-]*: )?(?:ok(?:ay)?,? |please |let['’]?s |and )*"
    r"(?:make|set|change|put|raise|lower|increase|reduce|bump)\b",
    re.IGNORECASE,
)
"""What asks in a conversation for something to be otherwise."""
_CALLED_OFF = lazy_regex(
    r"\b(?:is|are|was|were|has been|have been)(?: now)?"
    r" (?:off|cancell?ed|called off|dropped|scrapped|abandoned|shelved)\b(?! (?:on|at|by|to)\b)"
    r"|\b(?:fällt|fallen) aus\b|\b(?:ist|sind|wurden?) (?:abgesagt|gestrichen|verworfen)\b"
    r"|\b(?:est|sont) annulée?s?\b",
    re.IGNORECASE,
)
"""What says that a plan is one no longer."""
_SUBJECT_QUESTION = lazy_regex(
    r"\W*(?:who(?:['’]s| is| was)|(?:please )?tell me (?:more |all |everything )?about"
    r"|what (?:do|can) (?:i|we|you) (?:know|tell me) (?:about|of)|what is known (?:about|of)"
    r"|wer (?:ist|war)|was (?:wissen wir|weiß ich) über|erzähl mir (?:von|über)"
    r"|qui est|parle-moi de|quién es|chi è|wie is) (?P<subject>[^,;:.?!]{2,60})[?!.\s]*",
    re.IGNORECASE,
)
"""Matches questions that ask for everything known about a person or thing."""
_MIN_SUBJECT_SENTENCES, _MAX_SUBJECT_SENTENCES, _MAX_SUBJECT_WORDS = 2, 6, 4
"""Number of sentences about a subject, and of words in its name."""
_WORD_WITHIN = lazy_regex(r"(?<=[\w,;:)] )[^\W\d_]{3,}")
_DUPLICATE_OVERLAP = 0.7
"""Jaccard similarity from which two sentences say the same."""
_SAME_SUBJECT_OVERLAP = 0.45
"""Jaccard similarity, without numbers and dates, from which two sentences share a subject."""
_AT_PRESENT = lazy_regex(
    r"\b(?:now(?:adays)?|currently|presently|today|these days|at the moment|still)\b", re.IGNORECASE
)
"""Asks for the newest state, and is no part of what it is a state of."""
CHANGE_PHRASE = "went from"
"""The words with which an insight introduces the values that changed, in their order."""


def extract_answer(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence] | None = None
) -> Answer:
    """Return an answer of the best sentences, what is closest, or that it is not in memory.

    Args:
        outcome: What was found.
        sentences: Its sentences, best first, where they have been judged already, as no table,
            list or period answers the question.
    """
    if sentences is None:
        if special := special_answer(outcome):
            return special
        sentences = rank_sentences(outcome)
    if subject := _subject(outcome):
        sentences = [
            item
            for item in sentences
            if not _is_only_speaker(item, subject, sentences, outcome.languages)
        ]
    is_list = _LIST_QUESTION.search(outcome.asked.text) is not None
    is_open = is_list or _MULTI_PART_QUESTION.search(outcome.asked.text) is not None
    likely = _likely_sentences(sentences, _MIN_STEP_SHARE if is_open else MIN_SCORE_SHARE)
    given = _drop_duplicates(likely)[:MAX_SENTENCES]
    confidence = round(answer_confidence(sentences, given), 3) if sentences else 0.0
    if not sentences or (confidence < MIN_CLOSE and not outcome.relevance.is_relevant):
        return Answer(NOT_FOUND, found=False, method=METHOD, confidence=confidence)
    if known := _sentences_on_subject(subject, sentences):
        return _answer(
            known, _render_sentences(known, ""), max(confidence, MIN_CONFIDENCE), unsure=False
        )
    unsure = confidence < _min_confidence(outcome.asked.text, sentences[0])
    likely = _likely_sentences(sentences, _MIN_STEP_SHARE) if unsure else likely
    likely = _without_other_holders(outcome, likely)
    states = [] if is_list else _current_and_former(outcome, likely, sentences, unsure=unsure)
    ordered = states
    if not states:
        most = _MAX_LIST_SENTENCES if is_list else MAX_SENTENCES
        ordered = _drop_duplicates(likely)[:most]
        if not unsure:  # what is done step by step and lists are as they were written
            is_in_order = is_list or asks_how(outcome.asked.text)
            first = [] if is_in_order else ordered[:1]
            ordered = [*first, *_reading_order(ordered[len(first) :])]
    ordered = [_with_speaker(_without_lead(item), outcome) for item in ordered]
    if is_list and not states and (whole := _with_items(ordered[0])) is not ordered[0]:
        ordered = [whole]
    text = (
        _render_states(outcome, ordered)
        if states
        else _render_sentences(ordered, outcome.asked.text)
    )
    text = _with_asked_names(text, outcome.asked)
    return _answer(ordered, text, confidence, unsure=unsure)


def _with_asked_names(text: str, asked: Question) -> str:
    """Return an answer that says of speakers by which name they are asked for."""
    for each in asked.other_names:
        speaker = rf"(?:^|(?<=\] )){re.escape(each.name)}(?=: )"
        both = f"{each.name} ({each.asked})"
        text = re.sub(speaker, both.replace("\\", r"\\"), text)
    return text


def special_answer(outcome: SearchOutcome) -> Answer | None:
    """Answer a question for a total, the day of a release, the events of a period or a list.

    Returns None for other questions, which sentences answer.
    """
    for each in (outcome, *_by_other_names(outcome)):
        if found := total_answer(each) or unpaid_answer(each) or extreme_answer(each):
            return found
    return release_answer(outcome) or period_answer(outcome) or list_answer(outcome)


def _by_other_names(outcome: SearchOutcome) -> Iterator[SearchOutcome]:
    """Yield the same hits asked by the other names of whom the question names."""
    for name in outcome.asked.other_names:
        asked = replace(outcome.asked, text=name.instead(outcome.asked.text))
        yield replace(outcome, asked=asked)


def _min_confidence(question: str, best: EvidenceSentence) -> float:
    """Return the least confidence with which an answer is given as fact."""
    if asks_why(question) and not has_reason(best.quoted_text, question):
        return MIN_CONFIDENCE_WITHOUT_REASON
    if asks_why(question):
        return MIN_CONFIDENCE
    return MIN_CONFIDENCE_OF_HOW if asks_how(question) else MIN_CONFIDENCE


def _likely_sentences(
    sentences: Sequence[EvidenceSentence], share: float
) -> list[EvidenceSentence]:
    """Return the sentences with at least a share of the best one's probability.

    Sentences of ended facts are left out, unless there are no others.
    """
    likely = [item for item in sentences if item.score >= share * sentences[0].score]
    return [item for item in likely if not item.has_ended] or likely


def answer_confidence(
    sentences: Sequence[EvidenceSentence],
    given: Sequence[EvidenceSentence],
) -> float:
    """Return the probability that the given sentences answer, by their lead over the rest.

    Args:
        sentences: Best first, at least one.
        given: The sentences that make up the answer.
    """
    best = sentences[0]
    rest = (item for item in sentences[1:] if item not in given)
    other = next((item for item in rest if not _agrees(best, item)), None)
    ahead = log_odds(best.score) - log_odds(other.score) if other else MAX_MARGIN
    weights = CONFIDENCE_WEIGHTS
    value = weights["best"] * log_odds(best.score) + weights["margin"] * min(ahead, MAX_MARGIN)
    return sigmoid(value + weights["bias"])


def _agrees(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether two sentences are quoted together, or say the same or the same value."""
    return bool(stated_values(one.text) & stated_values(other.text)) or _is_duplicate(one, other)


def _answer(
    ordered: Sequence[EvidenceSentence], text: str, confidence: float, *, unsure: bool
) -> Answer:
    return Answer(
        f"{UNSURE} {text}" if unsure else text,
        found=not unsure,
        method=METHOD,
        confidence=confidence,
        citations=tuple(
            cite(number, HitExcerpt(item.hit, *item.quote))
            for number, item in enumerate(ordered, start=1)
        ),
        unsure=unsure,
    )


def _subject(outcome: SearchOutcome) -> frozenset[str]:
    """Return the terms of the name that a question like "who is Ada?" asks about; else none."""
    asked = _SUBJECT_QUESTION.fullmatch(outcome.asked.text.strip())
    words = asked["subject"].split() if asked else []
    if asked is None or len(words) > _MAX_SUBJECT_WORDS or not any(w[0].isupper() for w in words):
        return frozenset()
    return frozenset(query_terms(asked["subject"], outcome.languages))


def _sentences_on_subject(
    subject: frozenset[str], sentences: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return the sentences that name a subject, oldest first; none if fewer than two do."""
    naming = [item for item in sentences if subject and subject <= item.terms]
    known = _drop_duplicates(naming)[:_MAX_SUBJECT_SENTENCES]
    if len(known) < _MIN_SUBJECT_SENTENCES:
        return []
    known.sort(key=lambda item: (item.hit.created_at, item.hit.start or 0, item.start))
    return [_without_lead(item) for item in known]


def _is_only_speaker(
    item: EvidenceSentence,
    subject: frozenset[str],
    others: Iterable[EvidenceSentence],
    languages: Sequence[str],
) -> bool:
    """Return whether a turn, or a line of minutes, names a subject only as who says it.

    In minutes, who says something says more than that.
    """
    label = TURN_LABEL.match(item.text)
    if label is None or subject.isdisjoint(query_terms(label.group(), languages)):
        return False
    if subject <= frozenset(query_terms(item.text[label.end() :], languages)):
        return False
    own = (other.text for other in others if other.hit.document == item.hit.document)
    return item.hit.type == "turn" or sum(text.startswith(label.group()) for text in own) > 1


def _with_items(item: EvidenceSentence) -> EvidenceSentence:
    """Return a sentence with the list that stands directly below it, if one does."""
    start, end = item.quote
    text = item.hit.text
    items = _ITEMS.match(text, end)
    if items is None or items.end() - start > _MAX_LIST_LENGTH:
        return item
    return replace(item, quote=(start, start + len(text[start : items.end()].rstrip())))


def _without_lead(item: EvidenceSentence) -> EvidenceSentence:
    """Return a sentence without who says it, and without what only asks for it to be kept."""
    start, end = item.quote
    begins_turn = start == words_of_turn_start(item.hit) > 0
    start += (turn_speech_start if begins_turn else speech_start)(item.quoted_text)
    if item.hit.type == "turn":
        start += asking_length(item.hit.text[start:end])
    return replace(item, quote=(start, end))


def _with_speaker(item: EvidenceSentence, outcome: SearchOutcome) -> EvidenceSentence:
    """Return a sentence with who says it, where "I" or "my" would be nobody's."""
    words = plain_quote(item.quoted_text)
    speaker = ""
    if item.hit.type == "turn":
        speaker = speaker_of_himself(item.hit.text, words)
    elif item.hit.doc_type == "email" and is_first_person(words):
        author = outcome.load_author(item.hit)
        speaker = "" if author in words else author
    return replace(item, speaker=speaker) if speaker else item


def _differ(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether two sentences give different values for the same thing."""
    same_document = one.hit.document == other.hit.document
    if one.hit.memory_id == other.hit.memory_id:
        return False
    if same_document and is_table_row(one.text) and is_table_row(other.text):
        return False  # a table lists many things in the same words
    left, right = stated_values(one.text), stated_values(other.text)
    if left <= right or right <= left:
        return False
    is_of_same = (
        _jaccard(_terms_without_values(one), _terms_without_values(other)) >= _SAME_SUBJECT_OVERLAP
    )
    return is_of_same and not _values_agree(one.text, other.text)


def _values_agree(one: str, other: str) -> bool:
    """Return whether two sentences write the same values in two forms: ``14:00``, ``2 pm``."""
    left, right = values(one), values(other)
    kinds = {value.kind for value in left} & {value.kind for value in right}
    return bool(kinds) and all(
        any(a.agrees_with(b) for a in left for b in right if a.kind == b.kind == kind)
        for kind in kinds
    )


def newest_first(question: str, hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in their order, except that of two conflicting hits the newer one comes first.

    If the older one has more words of the question, it is what was asked for and stays first.
    """
    asked = frozenset(query_terms(question))
    ordered: list[EvidenceSentence] = []
    for hit in hits:
        whole, terms = (0, len(hit.text)), frozenset(query_terms(hit.text))
        item = EvidenceSentence(hit, *whole, whole, "", hit.relevance, terms)
        older = (
            place
            for place, other in enumerate(ordered)
            if _age(other) < _age(item) and asked & other.terms <= terms and _differ(other, item)
        )
        ordered.insert(next(older, len(ordered)), item)
    return [item.hit for item in ordered]


def _current_and_former(
    outcome: SearchOutcome,
    likely: Sequence[EvidenceSentence],
    sentences: Sequence[EvidenceSentence],
    *,
    unsure: bool,
) -> list[EvidenceSentence]:
    """Return two sentences that give the current and a former state, if the sentences conflict.

    The newest state is first, or the oldest where the question asks for that.  The second one is
    the best sentence or, if that comes first, the sentence next to it in time.
    """
    best, question = likely[0], outcome.asked.text
    wants_oldest = asks_for_oldest(question)
    looks_back = asks_for_earlier(question)
    last_day = max((period.last for period in outcome.asked.periods), default=None)

    def may_count(item: EvidenceSentence) -> bool:
        """Return whether a sentence may tell another state than the best one."""
        made, made_best = item.hit.created_at.date(), best.hit.created_at.date()
        is_later = _is_of_later_day(item, best)
        if last_day is not None and made > last_day >= made_best:
            return False  # it did not hold yet at the time asked for
        if only_supposes(item.text, question) or lacks_count(item.text, question):
            return False
        if _only_measures(item.text, question):
            return False
        if only_considers(max(best, item, key=_age).text):
            return False  # nothing has changed
        if item in likely or (not item.has_ended and is_later) or looks_back:
            return True
        return _is_succession(outcome, item, best) or _retracts(outcome, item, best)

    others = [
        item
        for item in sentences
        if item is not best
        and may_count(item)
        and (looks_back or not _is_of_another_thing(outcome, best, item))
        and (
            _has_different_value(outcome, best, item)
            or ((looks_back or not unsure) and _has_different_state(outcome, best, item))
            or _retracts(outcome, item, best)
            or _retracts(outcome, best, item)
            or _calls_off(outcome, best, item)
            or _is_succession(outcome, *sorted((best, item), key=_age))
        )
    ]
    if not others:
        return []

    def order_of(item: EvidenceSentence) -> tuple[bool, datetime, int, bool]:
        is_dated, written, turn = _age(item)
        is_retraction = _retracts(outcome, item, best)
        return is_dated or is_retraction, written, turn, is_retraction

    order = sorted((best, *others), key=order_of, reverse=not wants_oldest)
    return [order[0], order[1] if order[0] is best else best]


def _age(item: EvidenceSentence) -> tuple[bool, datetime, int]:
    """Return what sorts sentences by age, the oldest first.

    The time at which a file was written is the latest that its text may be from: it may be older
    than any that says of which day it is.
    """
    return not is_dated_by_file(item.hit), item.hit.created_at, item.hit.turn or 0


def _is_of_later_day(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether a sentence is of a later day than another one."""
    return _age(one) > _age(other) and _day(one) != _day(other)


def _is_told_later(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether a sentence is known to be the later one though both are of one day.

    It is if it was said later in a conversation, or the other one's file may be older than it
    looks.
    """
    if one.hit.session_id is not None and one.hit.session_id == other.hit.session_id:
        return (one.hit.turn or 0) > (other.hit.turn or 0)
    return is_dated_by_file(other.hit) and not is_dated_by_file(one.hit)


def _is_of_another_thing(
    outcome: SearchOutcome, best: EvidenceSentence, item: EvidenceSentence
) -> bool:
    """Return whether a sentence lacks a name of the question that the best one has.

    Its own text then has another name, or the best one's document is about the thing of that name
    and the other document isn't.
    """
    languages = outcome.languages
    of_best, of_item = (
        frozenset(query_terms(f"{each.hit.title}\n{each.hit.heading}", languages))
        for each in (best, item)
    )
    named, named_in_item, named_in_title = (
        frozenset(query_terms(_names_within(text), languages))
        for text in (best.text, item.text, f"{best.hit.title} {best.hit.heading}")
    )
    is_elsewhere = best.hit.document != item.hit.document
    for slot in outcome.question.slots:
        if not (item.terms.isdisjoint(slot) and of_item.isdisjoint(slot)):
            continue
        if not named.isdisjoint(slot):
            return not named_in_item <= best.terms | of_best
        is_name = slot in outcome.question.names or not named_in_title.isdisjoint(slot)
        if is_elsewhere and is_name and not of_best.isdisjoint(slot):
            return True
    return False


def _names_within(text: str) -> str:
    """Return the capitalised words of a text but the first of sentences, months and days."""
    words = _WORD_WITHIN.findall(text)
    return " ".join(w for w in words if w[0].isupper() and not is_time_word(w))


def _has_different_value(
    outcome: SearchOutcome, best: EvidenceSentence, item: EvidenceSentence
) -> bool:
    """Return whether a sentence gives another value for the subject of the best one.

    They share a subject if an insight quotes both, or if their words overlap.
    """
    if stated_values(item.text) - stated_values(best.text) and _are_quoted(outcome, best, item):
        return True
    return item.score >= _MIN_STEP_SHARE * best.score and _differ(best, item)


def _has_different_state(
    outcome: SearchOutcome, best: EvidenceSentence, item: EvidenceSentence
) -> bool:
    """Return whether a sentence of another day contradicts the best one.

    Either both cover the same words of the question with different values, or the later one is
    short, nearly as likely an answer, and states a change.
    """
    if item.score < _MIN_STEP_SHARE * best.score:
        return False
    question = outcome.asked.text
    earlier, later = sorted((best, item), key=_age)
    if is_table_row(best.text) or is_table_row(item.text):
        return False
    if _day(earlier) == _day(later) and not (
        _is_told_later(later, earlier)
        and (_states_a_change(later.text, question) or _SETS_VALUE.search(later.text))
    ):
        return False
    if _have_one_post(earlier, later):
        return _is_succession(outcome, earlier, later)
    at_present = query_terms(" ".join(_AT_PRESENT.findall(question)), outcome.languages)
    slots = [slot for slot in outcome.question.slots if set(slot).isdisjoint(at_present)]
    of_best, of_item = (
        {slot for slot in slots if not each.terms.isdisjoint(slot)} for each in (best, item)
    )
    left, right = stated_values(best.text), stated_values(item.text)
    if left and right and (left <= right or right <= left):
        # one has all values of the other; "from 85 to 110" has the earlier one, too
        is_change = stated_values(earlier.text) < stated_values(later.text)
        if not (is_change and _states_a_change(later.text, question)):
            return False
    if not _are_of_one_kind(best.text, item.text):
        return False
    have_values = left and right and left.isdisjoint(right)
    is_same = len(of_best) > 1 or _count_what_is_asked(question, best.text, item.text)
    if have_values and is_same and of_best == of_item:
        return not _values_agree(best.text, item.text)
    of_earlier, of_later = (of_best, of_item) if earlier is best else (of_item, of_best)
    return (
        not of_best.isdisjoint(of_item)
        and of_earlier <= of_later
        and max(len(best.text), len(item.text)) <= _MAX_CHANGE_LENGTH
        and item.score >= _MIN_CHANGE_SHARE * best.score
        and _states_a_change(later.text, outcome.asked.text)
    )


def _retracts(outcome: SearchOutcome, later: EvidenceSentence, earlier: EvidenceSentence) -> bool:
    """Return whether a sentence says that what an earlier one states is so no longer.

    It is about the same if it has all words of the question that the earlier one has, or no words
    before what it denies that the earlier one lacks: "The blue van no longer stands in lot 4" says
    nothing of the red one.
    """
    is_older = later.hit.created_at < earlier.hit.created_at and _age(later) < _age(earlier)
    if is_older or later.score < MIN_CLOSE or is_table_row(later.text):
        return False
    denied = retractions(later.text)
    if not denied:
        return False
    languages = outcome.languages
    asked = frozenset(query_terms(outcome.asked.text, languages))
    known = earlier.terms | asked
    told = later.terms.union(query_terms(f"{later.hit.title}\n{later.hit.heading}", languages))
    shared = [slot for slot in outcome.question.slots if not earlier.terms.isdisjoint(slot)]
    is_covered = bool(shared) and all(not told.isdisjoint(slot) for slot in shared)
    for each in denied:
        value = frozenset(query_terms(each.denied, languages))
        if 2 * len((value & earlier.terms) - asked) < max(1, len(value - asked)):
            continue
        if _says_no_longer(earlier, value & earlier.terms - asked, languages):
            continue
        subject = frozenset(query_terms(each.subject, languages))
        if is_covered or (subject <= known and (subject or value <= known)):
            return True
    return False


def _says_no_longer(
    item: EvidenceSentence, value: frozenset[str], languages: Sequence[str]
) -> bool:
    """Return whether a sentence itself says that something is so no longer."""
    return any(
        value <= frozenset(query_terms(each.denied, languages)) for each in retractions(item.text)
    )


def _calls_off(outcome: SearchOutcome, best: EvidenceSentence, item: EvidenceSentence) -> bool:
    """Return whether a later sentence says that what is asked about does not happen."""
    asks_for_plan = _ASKS_FOR_PLAN.search(outcome.asked.text) and not _OF_PAST.search(
        outcome.asked.text
    )
    called_off = _CALLED_OFF.search(item.text)
    if not asks_for_plan or called_off is None or len(item.text) > _MAX_CHANGE_LENGTH:
        return False
    if not _is_of_later_day(item, best):
        return False
    what = frozenset(query_terms(item.text[: called_off.start()], outcome.languages))
    titles = f"{best.hit.title}\n{best.hit.heading}"
    told_of = best.terms.union(query_terms(titles, outcome.languages))
    return any(
        not what.isdisjoint(slot) and not told_of.isdisjoint(slot)
        for slot in outcome.question.slots
    )


def _is_succession(
    outcome: SearchOutcome, earlier: EvidenceSentence, later: EvidenceSentence
) -> bool:
    """Return whether a later sentence gives the post that is asked about to somebody else."""
    asked = {term for slot in outcome.question.slots for term in slot}
    return _is_of_later_day(later, earlier) and any(
        new.succeeds(old) and not new.post.isdisjoint(asked)
        for new in _post_holders(later)
        for old in _post_holders(earlier)
    )


def _have_one_post(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether two sentences say who has a post of one name, perhaps of two groups."""
    left, right = ({holder.post for holder in _post_holders(item)} for item in (one, other))
    return not left.isdisjoint(right)


def _without_other_holders(
    outcome: SearchOutcome, likely: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return sentences without who has a post of another group than that of the question.

    So are those of who had it long ago, unless the question asks for that.
    """
    question = outcome.asked.text
    asked = frozenset(query_terms(question, outcome.languages))
    looks_back = _OF_PAST.search(question) is not None or asks_for_earlier(question)

    def fit(holder: PostHolder) -> tuple[bool, bool]:
        return looks_back or not holder.is_past, not holder.about.isdisjoint(asked)

    best: dict[frozenset[str], tuple[bool, bool]] = {}
    for holder in (each for item in likely for each in _post_holders(item)):
        best[holder.post] = max(best.get(holder.post, (False, False)), fit(holder))
    fitting = [
        item
        for item in likely
        if all(fit(holder) == best[holder.post] for holder in _post_holders(item))
    ]
    return fitting or list(likely)


def _post_holders(item: EvidenceSentence) -> tuple[PostHolder, ...]:
    hit = item.hit
    titles = "" if hit.session_id else f"{hit.title}\n{hit.heading}"
    return post_holders(item.text, hit.created_at.year, titles)


def _are_of_one_kind(one: str, other: str) -> bool:
    """Return whether two sentences give values that could replace each other: both a price, say."""
    left, right = _kinds(one), _kinds(other)
    return not left or not right or not left.isdisjoint(right)


def _only_measures(text: str, question: str) -> bool:
    """Return whether a question asks for a number of things, and a text has only other values."""
    kinds = {kind for kind, _ in _kinds(text)} if _ASKS_COUNT.search(question) else set()
    return bool(kinds) and kinds.isdisjoint({"quantity", "number"})


def _count_what_is_asked(question: str, *sentences: str) -> bool:
    """Return whether all sentences say how many there are of something that a question names."""
    units = {unit for _, unit in set.intersection(*map(_kinds, sentences)) if unit}
    return any(re.search(rf"\b{re.escape(unit)}", question, re.IGNORECASE) for unit in units)


def _kinds(text: str) -> set[tuple[str, str]]:
    return {(value.kind, value.unit) for value in values(text)}


def _states_a_change(text: str, question: str) -> bool:
    """Return whether a text has a word for change that the question doesn't have."""
    said, asked = (
        {found[0].lower() for found in CHANGE_WORDS.finditer(each)} for each in (text, question)
    )
    return not said <= asked


def _are_quoted(outcome: SearchOutcome, one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether an insight on a change quotes both sentences."""
    quotes = [plain_quote(item.text).rstrip(".") for item in (one, other)]
    return any(
        f": {CHANGE_PHRASE} " in insight.text and all(quote in insight.text for quote in quotes)
        for insight in outcome.insights
    )


def _terms_without_values(item: EvidenceSentence) -> frozenset[str]:
    return item.terms.difference(query_terms(" ".join(stated_values(item.text))))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def _drop_duplicates(items: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    kept: list[EvidenceSentence] = []
    for item in items:
        if not any(_is_duplicate(item, other) for other in kept):
            kept.append(item)
    return kept


def _is_duplicate(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    if _jaccard(one.terms, other.terms) >= _DUPLICATE_OVERLAP:
        return True
    if one.hit.document != other.hit.document or one.hit.start is None or other.hit.start is None:
        return one.text == other.text
    (first, last), (start, end) = one.quote, other.quote
    return (
        one.hit.start + first < other.hit.start + end
        and other.hit.start + start < one.hit.start + last
    )


def _reading_order(chosen: Sequence[EvidenceSentence]) -> list[EvidenceSentence]:
    """Return the best sentence's document first, and each document in its own order."""
    ranks = {item.hit.document: place for place, item in reversed(list(enumerate(chosen)))}
    return sorted(
        chosen, key=lambda item: (ranks[item.hit.document], (item.hit.start or 0) + item.start)
    )


# --- wording -------------------------------------------------------------------------------------


def _render_states(outcome: SearchOutcome, ordered: Sequence[EvidenceSentence]) -> str:
    one, other = ordered
    first = _numbered_sentence(one, 1)
    second = _numbered_sentence(replace(other, is_superseded=False), 2)  # "Earlier" says it
    is_same_day = _day(one) == _day(other)
    one_is_undated, other_is_undated = is_dated_by_file(one.hit), is_dated_by_file(other.hit)
    if _retracts(outcome, one, other):
        now = "" if one_is_undated else f"As of {_day(one)}: "
        then = "" if other_is_undated or is_same_day else f", on {_day(other)}"
        return f"{now}{first} Earlier{then}: {second}"
    if is_same_day and _is_told_later(one, other):
        return f"As of {_day(one)}: {first} Earlier: {second}"
    if is_same_day:
        return f"{first} But also: {second}"
    if one_is_undated != other_is_undated:
        return " ".join(
            f"{'Of an unknown day' if is_undated else f'On {_day(item)}'}: {text}"
            for item, text, is_undated in (
                (one, first, one_is_undated),
                (other, second, other_is_undated),
            )
        )
    if _day(one) < _day(other):
        return f"On {_day(one)}: {first} Later, on {_day(other)}: {second}"
    return f"As of {_day(one)}: {first} Earlier, on {_day(other)}: {second}"


def _render_sentences(ordered: Sequence[EvidenceSentence], question: str) -> str:
    is_dated = asks_when(question)
    parts = []
    for number, item in enumerate(ordered, start=1):
        day = f" ({_day(item)})" if is_dated and _needs_date(item) else ""
        parts.append(_numbered_sentence(item, number) + day)
    return " ".join(parts)


def _needs_date(item: EvidenceSentence) -> bool:
    """Return whether a sentence answers nothing without the day on which it was said."""
    text, hit = item.quoted_text, item.hit
    is_relative = has_relative_time(text) and not item.path
    return (is_said(hit) or is_relative or is_of_stated_day(hit)) and not has_date(text)


def _numbered_sentence(item: EvidenceSentence, number: int) -> str:
    words = plain_quote(item.quoted_text)
    if item.has_ended:
        words = f"No longer so{_status(item)}: {words}"
    path = f"{item.path}{PATH_SEPARATOR}" if item.path else ""
    path = f"{item.speaker}: " if item.speaker else path
    return f"{path}{words} [{number}]"


def _status(item: EvidenceSentence) -> str:
    """Return what a document no longer in force says of that: " (superseded by rule 9)"."""
    status = item.hit.metadata.get("status") if item.is_superseded else None
    return f" ({status})" if isinstance(status, str) and " " in status else ""


def _day(item: EvidenceSentence) -> str:
    return item.hit.created_at.date().isoformat()


# --- when a version was released ------------------------------------------------------------------

_RELEASE_CONFIDENCE = 0.85
_ASKS_FOR_RELEASE = lazy_regex(
    r"\b(?:releas\w+|publish\w*|ship\w*|tagged|out|veröffentlicht\w*|erschien\w*|publiée?s?"
    r"|sortie?s?|publicad[ao]|lanzad[ao])\b",
    re.IGNORECASE,
)
_RELEASE_HEADING = lazy_regex(
    r"(?:version |release )?\[?v?(?P<version>\d+(?:\.\d+)+)\]?(?:\([^)\s]*\))?"
    r"\W{1,5}(?P<day>\d[^()\[\]]{5,20}?|[^\W\d_]{3,9} [^()\[\]]{5,16}?)\W*",
    re.IGNORECASE,
)
"""A heading of a change log: "[1.8.0] - 2026-03-19", "v1.7.0 (30 September 2025)"."""


def release_answer(outcome: SearchOutcome) -> Answer | None:
    """Return the heading of a change log that says when the asked version was released.

    None for other questions, and if no heading, or headings of several days, say so.
    """
    question = outcome.asked
    asked = [
        version for at in range(len(question.words)) if (version := version_at(question.words, at))
    ]
    is_asked = asks_when(question.text) and _ASKS_FOR_RELEASE.search(question.text)
    if len(asked) != 1 or not is_asked:
        return None
    found = list(_release_headings(outcome, asked[0]))
    if len({day for day, _ in found}) != 1:
        return None
    excerpt = found[0][1]
    title = f"{excerpt.hit.title}{PATH_SEPARATOR}" if excerpt.hit.title else ""
    return Answer(
        f"{title}{plain_quote(excerpt.text)} [1]",
        found=True,
        method=METHOD,
        confidence=_RELEASE_CONFIDENCE,
        citations=(cite(1, excerpt),),
    )


def _release_headings(outcome: SearchOutcome, asked: str) -> Iterator[tuple[date, HitExcerpt]]:
    """Yield the headings of a version, each with its day; "1.8" is 1.8.0, too."""
    names = [slot for slot in outcome.asked.names if f"v{asked}" not in slot]
    for hit in outcome.hits:
        about = outcome.terms_in(f"{hit.title}\n{hit.source}\n{hit.heading}\n{hit.text}")
        if any(about.isdisjoint(name) for name in names):
            continue
        for heading in hit.heading.split(PATH_SEPARATOR):
            said, at = _RELEASE_HEADING.fullmatch(heading), hit.text.find(heading)
            if said is None or at < 0 or said["version"] not in (asked, f"{asked}.0"):
                continue
            days = [span.day for span in date_spans(said["day"]) if span.day is not None]
            if len(days) == 1:
                yield days[0], HitExcerpt(hit, at, at + len(heading))


# --- what happened in a period --------------------------------------------------------------------

PERIOD_METHOD = "period/1"
_MAX_EVENTS, _MAX_PER_DOCUMENT = 7, 2
_MIN_EVENTS = 2
_PERIOD_CONFIDENCE = 0.75


class _Event(Struct, frozen=True):
    """A statement, quoted from its passage."""

    made_at: datetime
    importance: float
    excerpt: HitExcerpt


def period_answer(outcome: SearchOutcome) -> Answer | None:
    """Return what is known of the time that a question asks about; None for other questions.

    None too where fewer than two statements were made then.
    """
    period = _asked_period(outcome)
    if period is None:
        return None
    shown = _weightiest_events(list(_events(outcome.load_statements_of(period))), period)
    if len(shown) < _MIN_EVENTS:
        return None
    is_day = period.first == period.last
    lines = [
        f"{_origin(item, with_day=not is_day)}{plain_quote(item.excerpt.text)} [{number}]"
        for number, item in enumerate(shown, start=1)
    ]
    return Answer(
        "\n".join(lines),
        found=True,
        method=PERIOD_METHOD,
        confidence=_PERIOD_CONFIDENCE,
        citations=tuple(cite(number, item.excerpt) for number, item in enumerate(shown, start=1)),
    )


def _origin(item: _Event, *, with_day: bool) -> str:
    """Return what stands before a statement: its day, and what its document is called.

    The title often names what a statement is about; that of a diary's page only names the day.
    """
    title = item.excerpt.hit.title
    parts = [item.made_at.date().isoformat()] if with_day else []
    if title and leading_day(title) is None:
        parts.append(title)
    return f"{', '.join(parts)}: " if parts else ""


def _asked_period(outcome: SearchOutcome) -> TimeExpression | None:
    """Return the one period that a question for what happened names, if it names nothing else."""
    question = outcome.asked
    if not asks_what_happened(question.text) or len(question.times) != 1:
        return None
    period = question.times[0]
    return None if topics_of(question) or period.is_open else period


def _events(statements: Sequence[tuple[Hit, Hit]]) -> Iterator[_Event]:
    for statement, passage in statements:
        if statement.start is None or statement.end is None or passage.start is None:
            continue
        start = max(statement.start - passage.start, 0)
        end = min(statement.end - passage.start, len(passage.text))
        if start < end:
            start += speech_start(passage.text[start:end])
            yield _Event(
                statement.created_at, statement.importance, HitExcerpt(passage, start, end)
            )


def _weightiest_events(found: Sequence[_Event], period: TimeExpression) -> list[_Event]:
    """Return the weightiest in the order of time; many of a document only where there is no other.

    A single day is mostly described by one document: the page of a diary, or a conversation.
    """
    per_document = _MAX_EVENTS if period.first == period.last else _MAX_PER_DOCUMENT
    of_document: Counter[tuple[str, str]] = Counter()
    chosen: list[_Event] = []
    for item in sorted(found, key=lambda item: -item.importance):
        document = item.excerpt.hit.document
        if of_document[document] < per_document and not _is_within(item, chosen):
            of_document[document] += 1
            chosen.append(item)
        if len(chosen) == _MAX_EVENTS:
            break
    return sorted(chosen, key=lambda item: (item.made_at, item.excerpt.group, item.excerpt.offset,
                                            item.excerpt.start))  # fmt: skip


def _is_within(item: _Event, others: Sequence[_Event]) -> bool:
    """Tell whether a statement repeats another one, as copies of a document do."""
    return any(item.excerpt.text in other.excerpt.text for other in others)
