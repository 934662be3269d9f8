"""Extractive answers: sentences of the hits, each cited, or that nothing is known.

A sentence is given as the answer where the reading model is sure that it answers the question.
Where it isn't, the best is shown as what is closest.  Nothing is generated: every sentence is
quoted from a memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import pairwise
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans, leading_day
from memctl.language.sentence_values import CHANGE_WORDS, values
from memctl.language.table_amounts import drawn_cells, is_number, row_cells
from memctl.language.table_amounts import number as number_in
from memctl.language.term_analysis import query_terms
from memctl.language.time_periods import days_of_iso
from memctl.language.word_lists import known_names, stop_words
from memctl.patterns import lazy_regex
from memctl.records import Answer, Citation, Hit, Metadata
from memctl.search.answering.evidence_parts import (
    COUNTED_TIMES,
    LIST_MARK,
    PATH_SEPARATOR,
    TURN_LABEL,
    AskedDays,
    asks_for_days,
    asks_for_earlier,
    asks_for_oldest,
    asks_how,
    asks_something,
    asks_what_happened,
    asks_when,
    asks_why,
    has_date,
    has_reason,
    has_relative_time,
    is_dated_by_file,
    is_first_person,
    is_of_stated_day,
    is_quoted_reply,
    is_said,
    is_table_row,
    is_time_word,
    lacks_count,
    lacks_measure,
    looking_back,
    may_tell_time,
    named_successor,
    number_of,
    only_considers,
    only_supposes,
    outside_values,
    retractions,
    speaker_of_himself,
    speech_start,
    split_parts,
    stated_values,
    states_earlier,
    turn_speech_start,
    words_of_turn_start,
    written_at,
)
from memctl.search.answering.evidence_sentences import (
    EvidenceSentence,
    event_limit,
    log_odds,
    mark_withdrawn,
    rank_sentences,
    topics_of,
)
from memctl.search.answering.excerpts import UNSURE, HitExcerpt, cite, plain_quote
from memctl.search.answering.list_answer import list_answer
from memctl.search.answering.memory_need import QuestionPart
from memctl.search.answering.relevance import sigmoid
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.answering.table_totals import extreme_answer, total_answer, unpaid_answer
from memctl.search.query.question import Question, Slot, TimeExpression, version_at
from memctl.search.query.subject_questions import without_dates
from memctl.search.query.time_expressions import asks_for_coming, asks_for_overdue
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
_CONFIDENCE_IN_DOUBT, _MIN_CLOSE_OF_PART = 0.5, 0.25
"""Most confidence in what is taken for an answer and isn't sure to be one, and the least from which
what is closest to a part of a question is shown."""
_MIN_CONFIDENCE_OF_PARTS = 0.75
"""Confidence from which the answers of all parts of a question are given as fact, though that of
the whole would be unsure."""
_DUPLICATE_OVERLAP = 0.7
"""Jaccard similarity from which two sentences say the same."""
_SAME_SUBJECT_OVERLAP = 0.45
"""Jaccard similarity, without numbers and dates, from which two sentences share a subject."""
_ASKS_PRICE = lazy_regex(
    r"\W*(?:how much (?:is|are|does|do|will)\b|what(?:['’]s| is| are) the (?:[\w'’-]+ ){0,3}"
    r"(?:prices?|costs?|rent|fees?|charges?|rate|fare)\b|what (?:does|do|will) .*\bcosts?\b"
    r"|(?:was|wie ?viel) kostet\b|combien coûte)",
    re.IGNORECASE,
)
_WORD = lazy_regex(r"[^\W_]+")
_LINE = lazy_regex(r"\S[^\n]*")
_AT_PRESENT = lazy_regex(
    r"\b(?:now(?:adays)?|currently|presently|today|these days|at the moment|still)\b", re.IGNORECASE
)
"""Asks for the newest state, and is no part of what it is a state of."""
_STATE_OF = lazy_regex(
    r"\b(?:old|new|former|previous|current|present|original|latest|neue?[rsmn]?|alte?[rsmn]?"
    r"|nouve(?:au|lle)|ancienne?|nuev[oa]|antigu[oa])\b",
    re.IGNORECASE,
)
"""Which state of a thing it is, and not which thing."""
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
    limits = _time_limits(outcome)
    inside = [
        item
        for item in sentences
        if all(_lies_within(item, limit) for limit in limits) and _fits_day_of_asking(item, outcome)
    ]
    is_of_other_time = len(inside) < len(sentences) and all(x.score < MIN_CLOSE for x in inside)
    sentences = sentences if is_of_other_time else inside
    if subject := _subject(outcome):
        sentences = [
            item
            for item in sentences
            if not _is_only_speaker(item, subject, sentences, outcome.languages)
        ]
    sentences = mark_withdrawn(outcome, sentences)
    wants_days = asks_for_days(outcome.asked.text)
    is_list = wants_days is not None or _LIST_QUESTION.search(outcome.asked.text) is not None
    is_open = is_list or _MULTI_PART_QUESTION.search(outcome.asked.text) is not None
    looks_back = asks_for_earlier(outcome.asked.text)
    earlier = _earlier_and_later(outcome, sentences) if looks_back else []
    sentences = sentences if earlier else _with_words_for_earlier(outcome, sentences)
    likely = _likely_sentences(sentences, _MIN_STEP_SHARE if is_open else MIN_SCORE_SHARE)
    given = earlier or _drop_duplicates(likely)[:MAX_SENTENCES]
    complete = [item for item in likely if wants_days and _says_how_many(item, wants_days)][:1]
    if complete:
        wants_days, given, likely, sentences = None, complete, complete, complete
    elif wants_days and not (of_days := _one_for_each_day(likely)):
        wants_days = None
    elif wants_days:
        given = of_days
    confidence = _confidence(sentences, given, earlier)
    if not sentences or (confidence < MIN_CLOSE and not outcome.relevance.is_relevant):
        return Answer(NOT_FOUND, found=False, method=METHOD, confidence=confidence)
    known = [] if is_of_other_time else _sentences_on_subject(subject, sentences)
    if known:
        return _answer(
            known, _render_sentences(known, ""), max(confidence, MIN_CONFIDENCE), unsure=False
        )
    unsure = confidence < _min_confidence(outcome.asked.text, sentences[0])
    unsure = unsure or is_of_other_time or bool(wants_days and not _are_so_many(given, wants_days))
    unsure = unsure or (looks_back and not earlier and not _tells_earlier(outcome, sentences[0]))
    likely = _likely_sentences(sentences, _MIN_STEP_SHARE) if unsure else likely
    likely = _with_withdrawn_best(outcome, sentences[0], likely)
    likely = _without_other_holders(outcome, likely)
    states = earlier if is_list or looks_back else _revised_in_thread(outcome, likely[0])
    if not (is_list or states):
        states = _current_and_former(outcome, likely, sentences, unsure=unsure)
    ordered = states
    if not states:
        most = _MAX_LIST_SENTENCES if is_list else MAX_SENTENCES
        ordered = (wants_days and given) or _drop_duplicates(likely)[:most]
        if not unsure:  # what is done step by step and lists are as they were written
            is_in_order = is_list or asks_how(outcome.asked.text)
            first = [] if is_in_order else ordered[:1]
            ordered = [*first, *_reading_order(ordered[len(first) :])]
    if not (unsure or states or is_list):
        variants = _with_variants(outcome, ordered, sentences)
        unsure = len(variants) > _MAX_LIST_SENTENCES
        ordered = variants[:MAX_SENTENCES] if unsure else variants
        confidence = min(confidence, _CONFIDENCE_IN_DOUBT) if unsure else confidence
    ordered = [_with_speaker(_without_lead(item), outcome) for item in ordered]
    if is_list and not states and (whole := _with_items(ordered[0])) is not ordered[0]:
        ordered = [whole]
    if not states:
        ordered = _with_withdrawals(ordered, sentences)
    if earlier and (ordered[0].has_ended or not asks_for_oldest(outcome.asked.text)):
        text = _render_earlier(outcome, ordered)
    elif states:
        text = _render_states(outcome, ordered)
    else:
        text = _render_sentences(ordered, outcome.asked.text)
    return _answer(ordered, _with_asked_names(text, outcome.asked), confidence, unsure=unsure)


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


def _confidence(
    sentences: Sequence[EvidenceSentence],
    given: Sequence[EvidenceSentence],
    earlier: Sequence[EvidenceSentence],
) -> float:
    """Return the confidence in what is given; other states that have ended don't speak against it.

    ``earlier`` is the state that a question looks back to, if it does and that is known.
    """
    between = [item for item in sentences if item.has_ended] if earlier else []
    return round(answer_confidence(sentences, [*given, *between]), 3) if sentences else 0.0


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
    if asks_for_earlier(outcome.asked.text):
        return frozenset()
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


def _with_variants(
    outcome: SearchOutcome,
    ordered: Sequence[EvidenceSentence],
    sentences: Sequence[EvidenceSentence],
) -> list[EvidenceSentence]:
    """Return sentences with those that give another price of the same thing, if one is asked for.

    That is per person and per group, or from one year and from the next: which of them is meant, a
    plain question doesn't tell.
    """
    best, question = ordered[0], outcome.asked.text
    if not _ASKS_PRICE.search(question) or not _prices(best.text):
        return list(ordered)
    others: Iterable[EvidenceSentence]
    if _is_row(best.text):
        others = _rows_beside(outcome, best)
    else:
        others = [
            item
            for item in sentences
            if item.hit.document == best.hit.document
            and not (item.has_ended or _is_row(item.text))
            and _are_of_one_kind(best.text, item.text)
            and _jaccard(_terms_without_values(best), _terms_without_values(item))
            >= _SAME_SUBJECT_OVERLAP
        ]
    asked = _slots_in(outcome, best)
    shown = list(ordered)
    for item in others:
        is_of_same = asked <= _slots_in(outcome, item) and not lacks_measure(item.text, question)
        is_other_price = _prices(item.text) and not _prices(item.text) <= _prices(best.text)
        if is_of_same and is_other_price and not any(item.text in each.text for each in shown):
            shown.append(item)
    return shown


def _rows_beside(outcome: SearchOutcome, best: EvidenceSentence) -> Iterator[EvidenceSentence]:
    """Yield the rows of the same passage of a table."""
    for found in _LINE.finditer(best.hit.text):
        if _is_row(found.group()):
            start, end = found.span()
            yield replace(
                best,
                start=start,
                end=end,
                quote=(start, end),
                terms=outcome.terms_in(found.group()),
            )


def _is_row(text: str) -> bool:
    """Return whether a text is a row of a table, also of one that is drawn with outer bars."""
    return is_table_row(text) or text.startswith("|")


def _slots_in(outcome: SearchOutcome, item: EvidenceSentence) -> frozenset[Slot]:
    """Return what of a question stands in a sentence."""
    return frozenset(slot for slot in outcome.question.slots if not item.terms.isdisjoint(slot))


def _prices(text: str) -> frozenset[Hashable]:
    """Return the sums of money in a sentence, or the numbers of a row."""
    if _is_row(text):
        cells = [*row_cells(text).values()] if ": " in text else drawn_cells(text)
        return frozenset(number_in(cell) for cell in cells if is_number(cell))
    return frozenset(
        reading for value in values(text) if value.kind == "money" for reading in value.readings
    )


def _with_withdrawn_best(
    outcome: SearchOutcome, best: EvidenceSentence, likely: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return the best sentence alone if it was withdrawn and no other one is about the same."""
    if best.withdrawn_by is None:
        return list(likely)
    asked = _slots_in(outcome, best)
    same = [item for item in likely if asked <= _slots_in(outcome, item)]
    return same or [best]


def _with_withdrawals(
    ordered: Sequence[EvidenceSentence], sentences: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return sentences, quoted without what is withdrawn later, or else with what says that."""
    withdrawn = [each for each in sentences if each.withdrawn_by is not None]
    shown: list[EvidenceSentence] = []
    for item in ordered:
        has_withdrawn = item.withdrawn_by is None and any(
            each.hit.document == item.hit.document and each.text in item.quoted_text
            for each in withdrawn
        )
        shown.append(replace(item, quote=(item.start, item.end)) if has_withdrawn else item)
    for each in [item.withdrawn_by for item in shown if item.withdrawn_by is not None]:
        span = (each.start, each.end)
        said = EvidenceSentence(each.hit, *span, span, "", 0.0, frozenset())
        if not any(each.text in item.quoted_text for item in shown):
            shown.append(_without_lead(said))
    return shown


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
        and not _has_another_modifier(outcome, best, item)
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
    if looks_back and not wants_oldest:
        return _before_the_last(question, (best, *others))

    def order_of(item: EvidenceSentence) -> tuple[bool, datetime, int, bool]:
        is_dated, written, turn = _age(item)
        is_retraction = _retracts(outcome, item, best)
        return is_dated or is_retraction, written, turn, is_retraction

    order = sorted((best, *others), key=order_of, reverse=not wants_oldest)
    return [order[0], order[1] if order[0] is best else best]


def _before_the_last(question: str, states: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    """Return the state before the newest, or before the one that a question names, and that one."""
    order = sorted(states, key=_age)
    name = named_successor(question).casefold()
    places = [at for at, item in enumerate(order) if name and name in item.text.casefold()]
    at = places[0] if places else len(order) - 1
    if at == 0 or (name and not places) or _day(order[at - 1]) == _day(order[at]):
        return []
    return [order[at - 1], order[at]]


def _earlier_and_later(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return the sentences with the state that a question looks back to, and the one after it.

    That is the oldest where the question asks for it, the one before whom the question names, or
    the one before the newest; none where only one state is known.
    """
    if not sentences:
        return []
    wants_oldest = asks_for_oldest(outcome.asked.text)
    ended = _ended_and_later(sentences, wants_oldest=wants_oldest)
    if ended and not wants_oldest:
        return ended
    states = _current_and_former(outcome, sentences[:1], sentences, unsure=False)
    is_older = states and not states[0].has_ended and (not ended or _is_older(states[0], ended[0]))
    return states if is_older else ended or states


def _is_older(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    return _day(one) < _day(other) and _age(one) < _age(other)


def _ended_and_later(
    sentences: Sequence[EvidenceSentence], *, wants_oldest: bool
) -> list[EvidenceSentence]:
    """Return the best sentence that has ended, and what replaced it, if that is among them.

    Of several states of the same thing that have ended, it is the last, or the oldest.
    """
    least = MIN_SCORE_SHARE * sentences[0].score
    likely = [item for item in sentences if item.has_ended and item.score >= least]
    if not likely:
        return []
    same = [item for item in likely if item is likely[0] or _differ(likely[0], item)]
    former = (min if wants_oldest else max)(same, key=_end)
    ids = {fact.by for fact in former.hit.ended}
    later = (
        item
        for item in sentences
        if not (item.has_ended or ids.isdisjoint((item.hit.document_id, item.hit.memory_id)))
        and item.score >= _MIN_STEP_SHARE * former.score
    )
    return [former, *list(later)[:1]]


def _with_words_for_earlier(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence]
) -> Sequence[EvidenceSentence]:
    """Return the likely sentences with the words by which a question looks back: "previous".

    All are returned where it doesn't, or none has them.
    """
    question = outcome.asked.text
    words = {question[start:end].strip().casefold() for start, end in looking_back(question)}
    found = [
        item
        for item in sentences
        if item.score >= _MIN_STEP_SHARE * sentences[0].score
        and any(re.search(rf"\b{re.escape(word)}", item.text, re.IGNORECASE) for word in words)
    ]
    return found or sentences


def _end(item: EvidenceSentence) -> datetime:
    """Return when a state that has ended did, or was said if that isn't known."""
    return max((fact.at for fact in item.hit.ended), default=item.hit.created_at)


def _tells_earlier(outcome: SearchOutcome, item: EvidenceSentence) -> bool:
    """Return whether a sentence tells how something was before it changed.

    That somebody followed Ruth does not tell who it was before Ruth.
    """
    name = named_successor(outcome.asked.text)
    if name and re.search(rf"\bfrom (?:\w+\.? )?{re.escape(name)}\b", item.text, re.IGNORECASE):
        return False
    if name and any(name in holder.former for holder in _post_holders(item)):
        return False
    return item.has_ended or states_earlier(item.text)


def _age(item: EvidenceSentence) -> tuple[bool, datetime, int]:
    """Return what sorts sentences by age, the oldest first.

    The time at which a file was written is the latest that its text may be from: it may be older
    than any that says of which day it is.
    """
    return not is_dated_by_file(item.hit), written_at(item.hit), item.hit.turn or 0


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


def _has_another_modifier(
    outcome: SearchOutcome, one: EvidenceSentence, other: EvidenceSentence
) -> bool:
    """Return whether only one of two sentences has a modifier of the question, as asked there.

    The other has another word in its place: "the guest alarm code", asked for that of the staff.
    """
    question, languages = outcome.question, outcome.languages
    asked = frozenset(query_terms(question.text, languages))
    known = [
        each.terms.union(query_terms(f"{each.hit.title}\n{each.hit.heading}", languages))
        for each in (one, other)
    ]
    for modifiers, heads in pairwise(question.word_slots):
        modifier, head = ({term for slot in slots for term in slot} for slots in (modifiers, heads))
        has_it = [not terms.isdisjoint(modifier) for terms in known]
        if not (modifier and head) or all(has_it) or not any(has_it):
            continue
        having, lacking = (one, other) if has_it[0] else (other, one)
        if modifier.isdisjoint(_terms_before(having.text, head, languages)):
            continue
        if _terms_before(lacking.text, head, languages) - having.terms - asked:
            return True
    return False


def _terms_before(text: str, head: set[str], languages: Sequence[str]) -> frozenset[str]:
    """Return the terms of the words just before a word, but for those that tell of a state."""
    words = _STATE_OF.sub(" ", text).split()
    return frozenset(
        term
        for left, right in pairwise(words)
        if left[-1] not in ".,;:!?" and not head.isdisjoint(query_terms(right, languages))
        for term in query_terms(left, languages)
    )


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
        return _is_succession(outcome, earlier, later, of_any=asks_for_earlier(question))
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
    nothing of the red one.  Where what it denies is what the question asks about, the earlier one
    has to state that of the same subject: "Omar is no longer the caretaker".
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
        subject = frozenset(query_terms(each.subject, languages))
        if value <= asked:
            if _states_of(earlier, subject - asked, value, asked, languages):
                return True
            continue
        if 2 * len((value & earlier.terms) - asked) < max(1, len(value - asked)):
            continue
        if _says_no_longer(earlier, value & earlier.terms - asked, languages):
            continue
        if is_covered or (subject <= known and (subject or value <= known)):
            return True
    return False


def _states_of(
    item: EvidenceSentence,
    subject: frozenset[str],
    value: frozenset[str],
    asked: frozenset[str],
    languages: Sequence[str],
) -> bool:
    """Return whether a sentence states that a subject, and nobody else, is what is asked about."""
    names = " ".join(word for word in _WORD.findall(item.text) if word[0].isupper())
    return (
        bool(subject and value)
        and subject | value <= item.terms
        and subject | asked >= frozenset(query_terms(names, languages))
        and not _says_no_longer(item, value, languages)
    )


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
    outcome: SearchOutcome,
    earlier: EvidenceSentence,
    later: EvidenceSentence,
    *,
    of_any: bool = False,
) -> bool:
    """Return whether a later sentence gives the post that is asked about to somebody else.

    With ``of_any``, a firm or a thing may have it, too.
    """
    asked = {term for slot in outcome.question.slots for term in slot}
    return _is_of_later_day(later, earlier) and any(
        new.succeeds(old, of_any=of_any) and not new.post.isdisjoint(asked)
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


# --- several days ---------------------------------------------------------------------------------

_MAX_DAYS = 12
_TIMES_IN_NUMBERS = lazy_regex(
    r"\b(?P<count>two|three|four|five|six|seven|eight|nine|ten|\d\d?) (?:\w+ )?"
    rf"{COUNTED_TIMES}\b",
    re.IGNORECASE,
)


def _one_for_each_day(items: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    """Return the best sentence for each day that is told, in the order of these days."""
    chosen: list[tuple[date, EvidenceSentence]] = []
    known: set[date] = set()
    for item in items:
        days = _days_told(item)
        if not days <= known and len(chosen) < _MAX_DAYS:
            chosen.append((min(days), item))
            known |= days
    places = Counter((item.hit.document, item.quoted_text) for _, item in chosen)
    return [
        replace(item, quote=(item.start, item.end))  # else the same text would stand for each
        if places[item.hit.document, item.quoted_text] > 1
        else item
        for _, item in sorted(chosen, key=lambda each: each[0])
    ]


def _days_told(item: EvidenceSentence) -> set[date]:
    """Return the days that a sentence names; otherwise the one of its turn, mail or heading."""
    said = item.hit.created_at
    named = {days_of_iso(span.iso)[0] for span in date_spans(item.text, said)}
    is_of_day = is_said(item.hit) or is_of_stated_day(item.hit)
    return named or ({said.date()} if is_of_day else set())


def _says_how_many(item: EvidenceSentence, wanted: AskedDays) -> bool:
    """Return whether a sentence says itself that it was so many times: then it tells all."""
    said = _TIMES_IN_NUMBERS.search(item.quoted_text)
    return said is not None and wanted.count == number_of(said["count"])


def _are_so_many(items: Sequence[EvidenceSentence], wanted: AskedDays) -> bool:
    """Return whether sentences tell as many days as a question says that there are, if it does."""
    days = set[date]().union(*map(_days_told, items))
    return bool(days) and wanted.count in (None, len(days))


# --- what is changed within a conversation -------------------------------------------------------

_MAX_TURNS_AHEAD = 5
"""Turns after a sentence in which it may be revised."""
_REVISES_IT = lazy_regex(
    r"\b(?:(?P<makes>make)|moved?|changed?|push(?:ed)?|put|shift(?:ed)?|switch(?:ed)?|set)"
    r" (?:(?:it|that|them)\b|(?=to\b))",
    re.IGNORECASE,
)
"""Gives another value to what was said before, if the value stands right after it."""
_IN_TIME = lazy_regex(
    r"\b(?:i|you|he|she|they|can(?:not|['’]t)?|(?<!we )could(?:n['’]t)?)\b(?:(?! we )[^,.;:!?])*$",
    re.IGNORECASE,
)
"""Before "make it": somebody comes then."""
_REVISES = lazy_regex(
    r"\b(?:instead|no,? wait|wait,? no|scrap that|actually|rather|sorry|correction|i meant"
    r"|on second thoughts?|better|doch|lieber|stattdessen|plutôt|mejor|meglio|liever"
    r"|(?:ok(?:ay)?|fine|right|alright|so)(?=\b.*\bthen\b))\b",
    re.IGNORECASE,
)
"""Does so where nothing else is said."""
_OF_PEOPLE = lazy_regex(
    r"\b(?:i|you|we|he|she|my|your|our|his|her|ich|du|er|wir|je|tu|nous|yo|tú|io|noi|ik|jij|wij)\b",
    re.IGNORECASE,
)
_REFERS_BACK = lazy_regex(r"\b(?:it|that|this|them|they)\b", re.IGNORECASE)
_AGREES = lazy_regex(
    r"\W*(?:yes|yep|yeah|ok(?:ay)?|sure|fine|works|good|great|perfect|agreed|deal|done|will do"
    r"|ja|passt|gut|oui|d['’]accord|sí|vale|va bene|goed)\b|\W*👍",
    re.IGNORECASE,
)
_REPLY_MARK = lazy_regex(r"^(?:(?:re|aw|fwd?|wg)\s*:\s*)+", re.IGNORECASE)
_BARE_NUMBER = lazy_regex(r"(?<![\w.,:])\d+(?:[.,:]\d+)?(?![\w:])")


def _revised_in_thread(outcome: SearchOutcome, best: EvidenceSentence) -> list[EvidenceSentence]:
    """Return what a sentence was changed to later in its conversation, and the sentence.

    "Ok, make it Friday then" says nothing of what, so that it is no answer by itself.
    """
    if not (stated_values(best.text) and is_said(best.hit)):
        return []
    told = outcome.terms_in(_without_turn_label(best.text)).union(*outcome.question.slots)
    newest, proposed = best, None
    for hit in _later_in_thread(outcome, best.hit):
        said = _last_value_like(outcome, hit, best)
        words = _without_turn_label(said.text if said else hit.text)
        if said is None and _AGREES.match(words):
            newest, proposed = proposed or newest, None
        elif said is None or not _revises(outcome, words, told):
            if _is_about_something_else(outcome, words, told):
                break  # what follows may be about that
            proposed = proposed if said else None
        elif _has_same_values(said.text, newest.text):
            continue
        elif asks_something(said.text):
            proposed = said
        else:
            newest, proposed = said, None
    return [] if newest is best else [newest, best]


def _revises(outcome: SearchOutcome, words: str, told: frozenset[str]) -> bool:
    """Return whether a turn only gives another value to what was told before.

    "Make it 20:00" does, and "Sorry, 20:00"; "Sorry, I'm at the gym until 20:00" is about
    something else.
    """
    found = _REVISES_IT.search(words)
    if found and not (found["makes"] and _IN_TIME.search(words[: found.start()])):
        before_value, *others = outside_values(words[found.end() :])
        return bool(others) and outcome.terms_in(before_value) <= told
    rest = _REVISES.sub(" ", " ".join(outside_values(words)))
    is_of_people = _OF_PEOPLE.search(rest) is not None
    return (
        _REVISES.search(words) is not None and not is_of_people and outcome.terms_in(rest) <= told
    )


def _is_about_something_else(outcome: SearchOutcome, words: str, told: frozenset[str]) -> bool:
    """Return whether a turn brings up what was not spoken of before."""
    own = outcome.terms_in(_REVISES.sub(" ", " ".join(outside_values(words))))
    refers_back = _AGREES.match(words) or _REFERS_BACK.search(words)
    return len(words.split()) > 1 and bool(own) and own.isdisjoint(told) and not refers_back


def _later_in_thread(outcome: SearchOutcome, hit: Hit) -> Iterator[Hit]:
    """Yield what was said directly after a turn, or the later mails of the same subject."""
    if hit.type != "turn":
        same = [each for each in outcome.hits if _are_of_one_thread(each, hit)]
        later = sorted((x for x in same if _follows(x, hit)), key=lambda each: each.created_at)
        yield from (each for each in later if _replies(outcome, each, hit))
        return
    for _ in range(_MAX_TURNS_AHEAD):
        around = outcome.load_turns_around([hit])
        following = [each for each in around if each.turn == (hit.turn or 0) + 1]
        if not following:
            return
        hit = following[0]
        yield hit


def _are_of_one_thread(one: Hit, other: Hit) -> bool:
    """Return whether two hits are turns of one conversation, or mails of one subject."""
    if one.type == other.type == "turn":
        return (one.kb, one.session_id) == (other.kb, other.session_id)
    subjects = {_REPLY_MARK.sub("", each.title).casefold() for each in (one, other)}
    return one.doc_type == other.doc_type == "email" and len(subjects) == 1 and "" not in subjects


def _replies(outcome: SearchOutcome, later: Hit, mail: Hit) -> bool:
    """Return whether a later mail of the same subject goes on with an earlier one.

    It names it, or is marked as a reply and one of both writers has written both or to the other.
    """
    told, replied = (each.metadata for each in outcome.with_known_days([mail, later]))
    if mail.document == later.document or (
        told.get("message_id") and told.get("message_id") == replied.get("in_reply_to")
    ):
        return True
    writer, other = outcome.load_author(mail), outcome.load_author(later)
    are_parties = writer == other or writer in _receivers(replied) or other in _receivers(told)
    return bool(writer and other) and are_parties and _REPLY_MARK.match(later.title) is not None


def _receivers(metadata: Metadata) -> list[object]:
    return [
        name for key in ("to", "cc") if isinstance(of := metadata.get(key), list) for name in of
    ]


def _follows(one: Hit, other: Hit) -> bool:
    return (one.created_at, one.turn or 0) > (other.created_at, other.turn or 0)


def _last_value_like(
    outcome: SearchOutcome, hit: Hit, best: EvidenceSentence
) -> EvidenceSentence | None:
    """Return the last sentence of a hit that has a value which one of the best may change to."""
    parts = [
        part
        for part in split_parts(hit)
        if not (part.is_title or is_quoted_reply(hit, part.start))
        and _may_replace_value(part.text, best.text)
    ]
    if not parts:
        return None
    place, terms = (parts[-1].start, parts[-1].end), outcome.terms_in(parts[-1].text)
    return EvidenceSentence(hit, *place, place, "", best.score, terms)


def _may_replace_value(new: str, old: str) -> bool:
    """Return whether a text has a value of a kind of another one's, or a number and no kind."""
    kinds = _kinds_of_values(new)
    if kinds:
        return not kinds.isdisjoint(_kinds_of_values(old))
    return all(map(_BARE_NUMBER.search, (new, old)))


def _kinds_of_values(text: str) -> set[tuple[str, str]]:
    """Return the kinds and units of the values in a text, and that of days by their name."""
    is_day = any(map(is_time_word, stated_values(text)))
    return _kinds(text) | ({("day", "")} if is_day else set())


def _has_same_values(one: str, other: str) -> bool:
    return stated_values(one) == stated_values(other)


# --- the time that is asked for ------------------------------------------------------------------

_TELLS_OF_PAST = lazy_regex(
    r"\b(?:did|was|were|had|happened|ha(?:s|ve) (?:been|i|you|we|they|he|she|it)\b(?! to\b)"
    r"|wurden?|war(?:en)?|hatten?|haben|hat)\b",
    re.IGNORECASE,
)
_YEAR = lazy_regex(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


def _time_limits(outcome: SearchOutcome) -> list[TimeExpression]:
    """Return the times that a question limits its answer to.

    People misremember in which month something was, so "in May" excludes nothing; "since May" and
    "between March and May" do.
    """
    question = outcome.asked
    is_of_past = _TELLS_OF_PAST.search(question.text) is not None
    limits = [
        each
        for each in question.periods
        if each.is_limit
        and (is_of_past or each.first != date.min or _YEAR.search(each.text))  # else a deadline
        and not _may_be_by_somebody(each.text)
    ]
    event = event_limit(outcome)
    return [*limits, event] if event else limits


def _may_be_by_somebody(limit: str) -> bool:
    """Return whether a limit in English may name who did something: "by May", "by April"."""
    by, _, name = limit.casefold().partition(" ")
    return by == "by" and name in known_names().given


_RECURS = lazy_regex(
    r"\b(?:every|each|annual\w*|yearly|monthly|weekly|daily|twice a|once a|times a|jede\w*|jährlich"
    r"|chaque|tous les|cada|ogni|elke?)\b",
    re.IGNORECASE,
)


def _fits_day_of_asking(item: EvidenceSentence, outcome: SearchOutcome) -> bool:
    """Return whether a day that a sentence tells is to come, or past where it is overdue.

    A sentence without a day fits, and one of what happens again and again.  Where "next" asks for
    no time, a day may be that on which something was agreed.
    """
    question = outcome.asked.text
    days = [days_of_iso(span.iso) for span in date_spans(item.text, item.hit.created_at)]
    if not days or _TELLS_OF_PAST.search(question) is not None:
        return True
    is_for_coming = asks_for_coming(question) and asks_when(question)
    if is_for_coming and _RECURS.search(item.quoted_text) is None:
        return max(last for _, last in days) >= outcome.asked_on
    return not asks_for_overdue(question) or min(first for first, _ in days) < outcome.asked_on


def _lies_within(item: EvidenceSentence, limit: TimeExpression) -> bool:
    """Return whether a sentence was said in a period, or tells of a day in it.

    So does one with the words of the question for that: "before the party".  One that tells of
    earlier days alone is not of the day on which it was said.
    """
    if limit.text.casefold() in item.text.casefold():
        return True
    said = item.hit.created_at
    told = [days_of_iso(span.iso) for span in date_spans(item.text, said)]
    if any(first <= limit.last and last >= limit.first for first, last in told):
        return True
    is_report = bool(told) and all(last < said.date() for _, last in told)
    return not is_report and limit.contains(said.date())


# --- wording -------------------------------------------------------------------------------------


def _render_states(outcome: SearchOutcome, ordered: Sequence[EvidenceSentence]) -> str:
    one, other = ordered
    first = _numbered_sentence(one, 1)
    second = _numbered_sentence(replace(other, is_superseded=False), 2)  # "Earlier" says it
    if _are_of_one_thread(one.hit, other.hit) and _follows(one.hit, other.hit):
        return f"As of {_day(one)}: {first} Before that: {second}"
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


def _render_earlier(outcome: SearchOutcome, ordered: Sequence[EvidenceSentence]) -> str:
    """Return a former state with the day on which it was known to hold no longer."""
    one, *others = ordered
    until = _end(one).date().isoformat() if one.hit.ended and one.has_ended else _day(others[0])
    former = f"Until {until}: {_numbered_sentence(one, 1, is_marked=False)}"
    then = "Later" if asks_for_oldest(outcome.asked.text) else "Since then"  # others lay between
    later = [f"{then}: {_numbered_sentence(other, 2)}" for other in others]
    return " ".join([former, *later])


def _render_sentences(ordered: Sequence[EvidenceSentence], question: str) -> str:
    is_dated = asks_when(question) or asks_for_days(question) is not None
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


def _numbered_sentence(item: EvidenceSentence, number: int, *, is_marked: bool = True) -> str:
    is_code = item.hit.doc_type == "code" and "\n" in item.quoted_text
    words = dedent(item.quoted_text) if is_code else plain_quote(item.quoted_text)
    if item.has_ended and is_marked:
        words = f"No longer so{_status(item)}: {words}"
    path = f"{item.path}{PATH_SEPARATOR}" if item.path else ""
    path = f"{item.speaker}: " if item.speaker else path
    return f"{path}{words} [{number}]"


def _status(item: EvidenceSentence) -> str:
    """Return what a document no longer in force says of that: " (superseded by rule 9)"."""
    status = item.hit.metadata.get("status") if item.is_superseded else None
    return f" ({status})" if isinstance(status, str) and " " in status else ""


def _day(item: EvidenceSentence) -> str:
    return written_at(item.hit).date().isoformat()


# --- questions that ask several things ------------------------------------------------------------

_WORD = lazy_regex(r"[^\W\d_][\w'’-]+")
_ASKS_WHO = lazy_regex(r"\W*(?:\w+ )?who(?:m|se)?\b", re.IGNORECASE)
_ASKS_MONEY = lazy_regex(
    r"\bhow much (?:is|are|was|were|did|does|do|will)\b|\b(?:price|cost|costs|fee|rent|bill)\b",
    re.IGNORECASE,
)


def may_lack(part: QuestionPart, answer: Answer) -> bool:
    """Return whether an answer is in doubt or lacks what a part of its question asks for."""
    if not answer.found:
        return True
    gives = _gives(part, answer)
    return gives is not True if _ASKS_WHO.match(part.said) else gives is False


def _gives(part: QuestionPart, answer: Answer) -> bool | None:
    """Return whether an answer has a time, a sum of money or a name, if a part asks for one.

    These are known by their form; None for all else that may be asked, and for somebody who may be
    called by a word such as "plumber".
    """
    said = " ".join(_without_turn_label(cited.quote) for cited in answer.citations)
    if asks_when(part.said):
        return may_tell_time(answer.text)
    if _ASKS_MONEY.search(part.said):
        return any(value.kind not in ("date", "time") for value in values(said))
    if _ASKS_WHO.match(part.said):
        asked = query_terms(part.alone or part.said, ("en",))
        is_new = not set(query_terms(without_dates(said), ("en",))) <= set(asked)
        return _has_new_name(said, part.alone) or (None if is_new else False)
    return None


def _has_new_name(said: str, question: str) -> bool:
    """Return whether a text in English has a capitalised word that a question lacks."""
    return any(
        word[0].isupper() and not is_time_word(word) and word.lower() not in stop_words("en")
        for word in set(_WORD.findall(said)).difference(_WORD.findall(question))
    )


def _without_turn_label(quote: str) -> str:
    label = TURN_LABEL.match(quote)
    return quote[label.end() :] if label else quote


def join_parts(
    whole: Answer, parts: Sequence[QuestionPart], found: Sequence[Answer | None]
) -> Answer:
    """Return the answers of a question's parts as one, which is unsure if one of them is.

    An answer of the whole question that was found stays as it is, unless all parts are known or it
    surely lacks what one of them asks for.

    Args:
        whole: The answer of the whole question, which is all there is if no part has one.
        parts: The parts.
        found: The answer of each; None where it isn't clear what the part is about.
    """
    known = [
        answer is not None and answer.found and _gives(part, answer) is not False
        for part, answer in zip(parts, found, strict=True)
    ]
    if whole.found and not all(known) and all(_gives(p, whole) is not False for p in parts):
        return whole
    if not any(known):
        return _in_doubt(whole)
    shown = [
        cited
        for answer, is_known in zip(found, known, strict=True)
        if answer is not None and is_known
        for cited in answer.citations
    ]
    texts: list[str] = []
    citations: list[Citation] = []
    for part, answer, is_known in zip(parts, found, known, strict=True):
        new = [each for each in answer.citations if not _place(citations, each)] if answer else []
        is_close = answer is not None and answer.confidence >= _MIN_CLOSE_OF_PART
        if answer is None or not (is_known or is_close):
            texts.append(f"Not in memory: {part.said}")
            continue
        if not is_known and all(_place(shown, each) for each in answer.citations):
            texts.append(f"Unsure: {part.said}")
            continue
        if is_known and texts and not new:
            continue  # what it quotes is there already
        citations += (replace(each, number=len(citations) + at) for at, each in enumerate(new, 1))
        text = answer.text if is_known else f"Unsure: {part.said} {_closest(answer)}"
        text = _renumbered(text, [_place(citations, each) for each in answer.citations])
        if text not in texts:
            texts.append(text)
    confidence = min(each.confidence if each else 0.0 for each in found)
    is_known = all(known) and (whole.found or confidence >= _MIN_CONFIDENCE_OF_PARTS)
    answer = Answer(
        " ".join(texts),
        found=True,
        method=METHOD,
        confidence=confidence,
        citations=tuple(citations),
    )
    if all(known):
        return answer if is_known else _in_doubt(answer)
    confidence = min(confidence, _CONFIDENCE_IN_DOUBT)
    return replace(answer, found=False, unsure=True, confidence=confidence)


def _closest(answer: Answer) -> str:
    closest = UNSURE.partition(" ")[2]
    text = answer.text.removeprefix(UNSURE).strip()
    return f"{closest} {text}"


def _renumbered(text: str, numbers: Sequence[int]) -> str:
    """Return a text with other numbers of its citations, in their order."""
    return re.sub(
        r"\[(\d+)\]",
        lambda found: (
            f"[{numbers[int(found[1]) - 1]}]" if 0 < int(found[1]) <= len(numbers) else found[0]
        ),
        text,
    )


def _place(citations: Sequence[Citation], wanted: Citation) -> int:
    """Return which of some citations quotes the same as another one; 0 if none does."""
    places = [(each.kb, each.memory_id, each.quote) for each in citations]
    place = (wanted.kb, wanted.memory_id, wanted.quote)
    return places.index(place) + 1 if place in places else 0


def _in_doubt(answer: Answer) -> Answer:
    """Return an answer as what is only closest."""
    if not answer.found:
        return answer
    text, confidence = f"{UNSURE} {answer.text}", min(answer.confidence, _CONFIDENCE_IN_DOUBT)
    return replace(answer, text=text, found=False, unsure=True, confidence=confidence)


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
