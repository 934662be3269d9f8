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
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans, leading_day
from memctl.language.sentence_values import values
from memctl.language.table_amounts import drawn_cells, is_number, row_cells
from memctl.language.table_amounts import number as number_in
from memctl.language.term_analysis import query_terms
from memctl.language.time_periods import days_of_iso
from memctl.language.word_lists import known_names, stop_words
from memctl.patterns import lazy_regex
from memctl.records import Answer, Citation, Hit
from memctl.search.answering.answer_forms import (
    COUNTED_TIMES,
    AskedDays,
    asks_for_days,
    asks_for_earlier,
    asks_for_oldest,
    asks_how,
    asks_what_happened,
    asks_when,
    asks_why,
    has_new_name,
    has_reason,
    lacks_measure,
    looking_back,
    may_tell_time,
    number_of,
)
from memctl.search.answering.evidence_parts import (
    LIST_MARK,
    PATH_SEPARATOR,
    TURN_LABEL,
    has_date,
    has_relative_time,
    has_unknown_age,
    is_first_person,
    is_of_stated_day,
    is_said,
    is_table_row,
    speaker_of_himself,
    speech_start,
    stated_values,
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
from memctl.search.answering.states_over_time import (
    MIN_CLOSE,
    MIN_SCORE_SHARE,
    MIN_STEP_SHARE,
    SAME_SUBJECT_OVERLAP,
    are_of_one_kind,
    are_of_one_thread,
    current_and_former,
    day_of,
    earlier_and_later,
    ended_at,
    follows,
    is_told_later,
    jaccard,
    names_within,
    retracts,
    revised_by_former_value,
    revised_in_thread,
    slots_in,
    tells_earlier,
    terms_without_values,
    with_withdrawals,
    with_withdrawn_best,
    without_lead,
    without_other_holders,
    without_turn_label,
)
from memctl.search.answering.table_totals import (
    extreme_answer,
    total_answer,
    unpaid_answer,
    values_answer,
)
from memctl.search.query.question import Question, TimeExpression, version_at
from memctl.search.query.subject_questions import without_dates
from memctl.search.query.time_expressions import asks_for_coming, asks_for_overdue

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
CONFIDENCE_WEIGHTS = {"best": 1.27, "margin": 0.58, "bias": -1.02}
"""Weights of a logistic model (``tests/training/fit_answers.py``).  ``best`` weighs the log odds of
the best sentence, ``margin`` its lead over the best sentence that is left out and says something
else."""
MAX_MARGIN = 1.5
"""Largest lead that counts, in log odds; also the lead of a sentence without competitors."""
MAX_SENTENCES, _MAX_LIST_SENTENCES = 3, 5
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
_CONFIDENCE_IN_DOUBT, _MIN_CLOSE_OF_PART = 0.5, 0.25
"""Most confidence in what is taken for an answer and isn't sure to be one, and the least from which
what is closest to a part of a question is shown."""
_MIN_CONFIDENCE_OF_PARTS = 0.75
"""Confidence from which the answers of all parts of a question are given as fact, though that of
the whole would be unsure."""
_DUPLICATE_OVERLAP = 0.7
"""Jaccard similarity from which two sentences say the same."""
_ASKS_PRICE = lazy_regex(
    r"\W*(?:how much (?:is|are|does|do|will)\b|what(?:['’]s| is| are) the (?:[\w'’-]+ ){0,3}"
    r"(?:prices?|costs?|rent|fees?|charges?|rate|fare)\b|what (?:does|do|will) .*\bcosts?\b"
    r"|(?:was|wie ?viel) kostet\b|combien coûte)",
    re.IGNORECASE,
)
_WORD = lazy_regex(r"[^\W\d_][\w'’-]+")
_LINE = lazy_regex(r"\S[^\n]*")


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
    inside = _of_asked_time(outcome, sentences)
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
    earlier = earlier_and_later(outcome, sentences) if looks_back else []
    sentences = sentences if earlier else _with_words_for_earlier(outcome, sentences)
    likely = _likely_sentences(sentences, MIN_STEP_SHARE if is_open else MIN_SCORE_SHARE)
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
    unsure = unsure or (looks_back and not earlier and not tells_earlier(outcome, sentences[0]))
    likely = _likely_sentences(sentences, MIN_STEP_SHARE) if unsure else likely
    likely = with_withdrawn_best(outcome, sentences[0], likely)
    likely = without_other_holders(outcome, likely)
    states = earlier
    if not (is_list or looks_back):
        best = likely[0]
        states = revised_in_thread(outcome, best) or revised_by_former_value(outcome, best)
    if not (is_list or states):
        states = current_and_former(outcome, likely, sentences, unsure=unsure)
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
    ordered = [_as_shown(item, outcome) for item in ordered]
    unsure = unsure or _are_too_few(ordered, outcome.asked.text)
    if is_list and not states and (whole := _with_items(ordered[0])) is not ordered[0]:
        ordered = [whole]
    if not states:
        ordered = with_withdrawals(ordered, sentences)
    if earlier and (ordered[0].has_ended or not asks_for_oldest(outcome.asked.text)):
        text = _render_earlier(outcome, ordered)
    elif states:
        text = _render_states(outcome, ordered)
    else:
        text = _render_sentences(ordered, outcome.asked.text)
    return _answer(ordered, _with_asked_names(text, outcome.asked), confidence, unsure=unsure)


def _of_asked_time(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence]
) -> Sequence[EvidenceSentence]:
    """Return the sentences that lie within the times to which a question limits its answer."""
    limits = _time_limits(outcome)
    of_state = _ASKS_OF_STATE.match(outcome.asked.text) is not None
    return [
        item
        for item in sentences
        if all(_lies_within(item, limit, asks_of_state=of_state) for limit in limits)
        and _fits_day_of_asking(item, outcome)
    ]


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
        answers = (total_answer, unpaid_answer, extreme_answer, values_answer)
        if found := next(filter(None, (answer(each) for answer in answers)), None):
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
    return [without_lead(item) for item in known]


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


_ASKS_WHO_OF_ALL = lazy_regex(
    r"\W*(?:who|whose|which (?:person|man|woman|candidate|applicant|customer|client|supplier|member"
    r"|\w+(?:or|ist|er)))\b",
    re.IGNORECASE,
)
_ASKS_SO_MANY = lazy_regex(
    r"\ball (?P<number>two|three|four|five|six|seven|eight|nine|ten|[2-9]|10)\b",
    re.IGNORECASE,
)
_ASKS_FOR_THINGS = lazy_regex(
    r"\W*(?:(?:in|at|on|from|for|to|with) )?(?:what|which|who|where|when|list|name)\b",
    re.IGNORECASE,
)
_LIST_SIGN = lazy_regex(r"[,;/\n+]|\band\b", re.IGNORECASE)


def _with_items(item: EvidenceSentence) -> EvidenceSentence:
    """Return a sentence with the list that stands directly below it, if one does."""
    start, end = item.quote
    text = item.hit.text
    items = _ITEMS.match(text, end)
    if items is None or items.end() - start > _MAX_LIST_LENGTH:
        return item
    return replace(item, quote=(start, start + len(text[start : items.end()].rstrip())))


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


def _as_shown(item: EvidenceSentence, outcome: SearchOutcome) -> EvidenceSentence:
    """Return a sentence without what leads to it, and with whom it is of."""
    return _with_name_above(_with_speaker(without_lead(item), outcome), outcome.asked.text)


def _with_name_above(item: EvidenceSentence, question: str) -> EvidenceSentence:
    """Return a sentence without a subject with the person in the heading above it, if asked who.

    "Brought a barometer" stands under "Ann Lee, 2 April".
    """
    name = item.hit.heading.rpartition(PATH_SEPARATOR)[2].partition(",")[0]
    first, *others = name.split() or [""]
    is_name = first in known_names().given and all(word.istitle() for word in others)
    verb = _WORD.match(item.text.lstrip("-*• "))
    if item.path or not is_name or verb is None or not _ASKS_WHO_OF_ALL.match(question):
        return item
    has_subject = verb[0] in known_names().given or verb[0].lower() in stop_words("en")
    return item if has_subject or names_within(item.text) else replace(item, path=name)


def _are_too_few(given: Sequence[EvidenceSentence], question: str) -> bool:
    """Return whether a question asks for so many things, and what is given is not as many."""
    asked = _ASKS_SO_MANY.search(question) if _ASKS_FOR_THINGS.match(question) else None
    most = number_of(asked["number"]) if asked else 0
    listed = (
        1 + len(_LIST_SIGN.findall(item.quoted_text))
        for item in given
        if not is_table_row(item.text)  # of one thing
    )
    return most > len(given) and most > max(listed, default=0)


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
            and are_of_one_kind(best.text, item.text)
            and jaccard(terms_without_values(best), terms_without_values(item))
            >= SAME_SUBJECT_OVERLAP
        ]
    asked = slots_in(outcome, best)
    shown = list(ordered)
    for item in others:
        is_of_same = asked <= slots_in(outcome, item) and not lacks_measure(item.text, question)
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


def _prices(text: str) -> frozenset[Hashable]:
    """Return the sums of money in a sentence, or the numbers of a row."""
    if _is_row(text):
        cells = [*row_cells(text).values()] if ": " in text else drawn_cells(text)
        return frozenset(number_in(cell) for cell in cells if is_number(cell))
    return frozenset(
        reading for value in values(text) if value.kind == "money" for reading in value.readings
    )


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
        if item.score >= MIN_STEP_SHARE * sentences[0].score
        and any(re.search(rf"\b{re.escape(word)}", item.text, re.IGNORECASE) for word in words)
    ]
    return found or sentences


def _drop_duplicates(items: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    kept: list[EvidenceSentence] = []
    for item in items:
        if not any(_is_duplicate(item, other) for other in kept):
            kept.append(item)
    return kept


def _is_duplicate(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    if jaccard(one.terms, other.terms) >= _DUPLICATE_OVERLAP:
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


_BEGINS = lazy_regex(
    r"\b(?:from|since|as (?:of|from)|starting|beginning|effective|ab|seit|dès|depuis|desde|dal?)"
    r"\s*$",
    re.IGNORECASE,
)
_ENDS = lazy_regex(r"\b(?:until|till|up to|bis|jusqu['’]\w+|hasta|fino a[dl]?)\s*$", re.IGNORECASE)
"""What stands before a time from which, or up to which, something is so."""


_ASKS_OF_STATE = lazy_regex(
    r"\W*(?:(?:what|who|where|which)(?:\W+\w+){0,3}? (?:was|were)|how \w+ (?:was|were))"
    r"(?! \w+ed\b)\b(?!.*\b(?:decid|agree|announc|sign|promis|discuss|said|done)\w*)",
    re.IGNORECASE,
)
"""Asks what something was, and not for what was done or said."""


def _lies_within(item: EvidenceSentence, limit: TimeExpression, *, asks_of_state: bool) -> bool:
    """Return whether a sentence was said in a period, or tells of a day in it.

    So does one with the words of the question for that: "before the party".  One that tells of
    earlier days alone is not of the day on which it was said.  Where a state is asked for, what is
    so "from May on" was not so before May.
    """
    if limit.text.casefold() in item.text.casefold():
        return True
    said, name = item.hit.created_at, limit.text.partition(" ")[2]
    named = re.search(rf"\b{re.escape(name)}\b", item.text, re.IGNORECASE) if name else None
    is_outside = bool(
        named and limit.first == date.min and _BEGINS.search(item.text, 0, named.start())
    )
    told = list[tuple[date, date]]()
    for span in date_spans(item.text, said):
        first, last = days_of_iso(span.iso)
        if (first > limit.last and _BEGINS.search(item.text, 0, span.start)) or (
            last < limit.first and _ENDS.search(item.text, 0, span.start)
        ):
            is_outside = True
        else:
            told.append((first, last))
    if any(first <= limit.last and last >= limit.first for first, last in told):
        return True
    if is_outside and asks_of_state:
        return False
    is_report = bool(told) and all(last < said.date() for _, last in told)
    return not is_report and limit.contains(said.date())


# --- wording -------------------------------------------------------------------------------------


def _render_states(outcome: SearchOutcome, ordered: Sequence[EvidenceSentence]) -> str:
    one, other = ordered
    first = _numbered_sentence(one, 1)
    second = _numbered_sentence(replace(other, is_superseded=False), 2)  # "Earlier" says it
    if are_of_one_thread(one.hit, other.hit) and follows(one.hit, other.hit):
        return f"As of {day_of(one)}: {first} Before that: {second}"
    is_same_day = day_of(one) == day_of(other)
    one_is_undated, other_is_undated = map(has_unknown_age, (one.hit, other.hit))
    if retracts(outcome, one, other):
        now = "" if one_is_undated else f"As of {day_of(one)}: "
        then = "" if other_is_undated or is_same_day else f", on {day_of(other)}"
        return f"{now}{first} Earlier{then}: {second}"
    if is_same_day and is_told_later(one, other):
        return f"As of {day_of(one)}: {first} Earlier: {second}"
    if is_same_day:
        return f"{first} But also: {second}"
    if one_is_undated != other_is_undated:
        return " ".join(
            f"{'Of an unknown day' if is_undated else f'On {day_of(item)}'}: {text}"
            for item, text, is_undated in (
                (one, first, one_is_undated),
                (other, second, other_is_undated),
            )
        )
    if day_of(one) < day_of(other):
        return f"On {day_of(one)}: {first} Later, on {day_of(other)}: {second}"
    return f"As of {day_of(one)}: {first} Earlier, on {day_of(other)}: {second}"


def _render_earlier(outcome: SearchOutcome, ordered: Sequence[EvidenceSentence]) -> str:
    """Return a former state with the day on which it was known to hold no longer."""
    one, *others = ordered
    until = (
        ended_at(one).date().isoformat() if one.hit.ended and one.has_ended else day_of(others[0])
    )
    former = f"Until {until}: {_numbered_sentence(one, 1, is_marked=False)}"
    then = "Later" if asks_for_oldest(outcome.asked.text) else "Since then"  # others lay between
    later = [f"{then}: {_numbered_sentence(other, 2)}" for other in others]
    return " ".join([former, *later])


def _render_sentences(ordered: Sequence[EvidenceSentence], question: str) -> str:
    is_dated = asks_when(question) or asks_for_days(question) is not None
    parts = []
    for number, item in enumerate(ordered, start=1):
        day = f" ({day_of(item)})" if is_dated and _needs_date(item) else ""
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
    said = " ".join(without_turn_label(cited.quote) for cited in answer.citations)
    if asks_when(part.said):
        return may_tell_time(answer.text)
    if _ASKS_MONEY.search(part.said):
        return any(value.kind not in ("date", "time") for value in values(said))
    if _ASKS_WHO.match(part.said):
        asked = query_terms(part.alone or part.said, ("en",))
        is_new = not set(query_terms(without_dates(said), ("en",))) <= set(asked)
        return has_new_name(said, part.alone) or (None if is_new else False)
    return None


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
        f"{_origin(item, with_day=not is_day)}{_without_day(item)} [{number}]"
        for number, item in enumerate(shown, start=1)
    ]
    return Answer(
        "\n".join(lines),
        found=True,
        method=PERIOD_METHOD,
        confidence=_PERIOD_CONFIDENCE,
        citations=tuple(cite(number, item.excerpt) for number, item in enumerate(shown, start=1)),
    )


def _without_day(item: _Event) -> str:
    """Return what is quoted of a statement without the day that stands before it already."""
    quote = plain_quote(item.excerpt.text)
    day = re.match(rf"{item.made_at.date().isoformat()}(?:\s*[:,–-]\s*|\s+)(?=\S)", quote)
    return quote[day.end() :] if day else quote


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
