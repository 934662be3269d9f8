"""What sentences tell of one thing over time: the current state, former ones, and what changed it.

Knows nothing of how an answer is worded or how sure it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from msgspec.structs import replace

from memctl.language.sentence_values import CHANGE_WORDS, Value, values
from memctl.language.term_analysis import query_terms
from memctl.patterns import lazy_regex
from memctl.records import Hit, Metadata
from memctl.search.answering.answer_forms import (
    asks_for_earlier,
    asks_for_oldest,
    asks_something,
    asks_when,
    lacks_count,
    named_successor,
    only_considers,
    only_supposes,
    retractions,
    states_earlier,
)
from memctl.search.answering.evidence_parts import (
    TURN_LABEL,
    has_unknown_age,
    is_quoted_reply,
    is_said,
    is_table_row,
    is_time_word,
    outside_values,
    speech_start,
    split_parts,
    stated_values,
    turn_speech_start,
    words_of_turn_start,
    written_at,
)
from memctl.search.answering.evidence_sentences import EvidenceSentence
from memctl.search.answering.excerpts import plain_quote
from memctl.search.answering.search_outcome import SearchOutcome
from memctl.search.query.question import Slot
from memctl.understanding.relation_extraction import PostHolder, post_holders
from memctl.understanding.triggers import asking_length

MIN_CLOSE = 0.15
"""Confidence from which an unsure answer is shown as the closest match."""
_WORD = lazy_regex(r"[^\W_]+")
MIN_SCORE_SHARE = 0.85
"""Least probability of a further sentence, as a share of the best one's."""
MIN_STEP_SHARE = 0.5
"""The same for lists and multi-part questions, which no single sentence answers completely."""
_MIN_CHANGE_SHARE, _MAX_CHANGE_LENGTH = 0.65, 140
"""The same for a sentence that states a change, and its maximum length in characters: in a longer
sentence, something else may have changed."""
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
_WORD_WITHIN = lazy_regex(r"(?<=[\w,;:)] )[^\W\d_]{3,}")
SAME_SUBJECT_OVERLAP = 0.45
"""Jaccard similarity, without numbers and dates, from which two sentences share a subject."""
_BEGINS_WITH_KNOWN = lazy_regex(
    r"\W*(?:it|they|this|that|the \w+)\s+(?!(?:of|for|at|in|on|with|from|by|to)\b)", re.IGNORECASE
)
"""A sentence about what was named before: "it moves", "the concert moves"."""
_MAX_BEFORE_CHANGE = 120
"""Characters before a change that say of what: "Summer fair. The hall is taken. It moves to May."
"""
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


def without_lead(item: EvidenceSentence) -> EvidenceSentence:
    """Return a sentence without who says it, and without what only asks for it to be kept."""
    start, end = item.quote
    begins_turn = start == words_of_turn_start(item.hit) > 0
    start += (turn_speech_start if begins_turn else speech_start)(item.quoted_text)
    if item.hit.type == "turn":
        start += asking_length(item.hit.text[start:end])
    return replace(item, quote=(start, end))


def slots_in(outcome: SearchOutcome, item: EvidenceSentence) -> frozenset[Slot]:
    """Return what of a question stands in a sentence."""
    return frozenset(slot for slot in outcome.question.slots if not item.terms.isdisjoint(slot))


def with_withdrawn_best(
    outcome: SearchOutcome, best: EvidenceSentence, likely: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return the best sentence alone if it was withdrawn and no other one is about the same."""
    if best.withdrawn_by is None:
        return list(likely)
    asked = slots_in(outcome, best)
    same = [item for item in likely if asked <= slots_in(outcome, item)]
    return same or [best]


def with_withdrawals(
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
            shown.append(without_lead(said))
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
        jaccard(terms_without_values(one), terms_without_values(other)) >= SAME_SUBJECT_OVERLAP
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


def current_and_former(
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
        return _is_succession(outcome, item, best) or retracts(outcome, item, best)

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
            or retracts(outcome, item, best)
            or retracts(outcome, best, item)
            or _calls_off(outcome, best, item)
            or _is_succession(outcome, *sorted((best, item), key=_age))
        )
    ]
    if not others:
        return []
    if looks_back and not wants_oldest:
        return _before_the_last(question, (best, *others))

    def order_of(item: EvidenceSentence) -> tuple[bool, datetime, int, bool]:
        """Return what sorts states by age; what says that another is over is the newer one."""
        is_dated, written, turn = _age(item)
        is_retraction = retracts(outcome, item, best)
        return is_dated or is_retraction, written, turn, is_retraction

    order = sorted((best, *others), key=order_of, reverse=not wants_oldest)
    return [order[0], order[1] if order[0] is best else best]


def _before_the_last(question: str, states: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    """Return the state before the newest, or before the one that a question names, and that one."""
    order = sorted(states, key=_age)
    name = named_successor(question).casefold()
    places = [at for at, item in enumerate(order) if name and name in item.text.casefold()]
    at = places[0] if places else len(order) - 1
    if at == 0 or (name and not places) or day_of(order[at - 1]) == day_of(order[at]):
        return []
    return [order[at - 1], order[at]]


def earlier_and_later(
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
    states = current_and_former(outcome, sentences[:1], sentences, unsure=False)
    is_older = states and not states[0].has_ended and (not ended or _is_older(states[0], ended[0]))
    return states if is_older else ended or states


def _is_older(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    return day_of(one) < day_of(other) and _age(one) < _age(other)


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
    former = (min if wants_oldest else max)(same, key=ended_at)
    ids = {fact.by for fact in former.hit.ended}
    later = (
        item
        for item in sentences
        if not (item.has_ended or ids.isdisjoint((item.hit.document_id, item.hit.memory_id)))
        and item.score >= MIN_STEP_SHARE * former.score
    )
    return [former, *list(later)[:1]]


def ended_at(item: EvidenceSentence) -> datetime:
    """Return when a state that has ended did, or was said if that isn't known."""
    return max((fact.at for fact in item.hit.ended), default=item.hit.created_at)


def tells_earlier(outcome: SearchOutcome, item: EvidenceSentence) -> bool:
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
    return not has_unknown_age(item.hit), written_at(item.hit), item.hit.turn or 0


def _is_of_later_day(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether a sentence is of a later day than another one."""
    return _age(one) > _age(other) and day_of(one) != day_of(other)


def is_told_later(one: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether a sentence is known to be the later one though both are of one day.

    It is if it was said later in a conversation, or the other one's file may be older than it
    looks.
    """
    if one.hit.session_id is not None and one.hit.session_id == other.hit.session_id:
        return (one.hit.turn or 0) > (other.hit.turn or 0)
    return has_unknown_age(other.hit) and not has_unknown_age(one.hit)


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
        frozenset(query_terms(names_within(text), languages))
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


def names_within(text: str) -> str:
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
    return item.score >= MIN_STEP_SHARE * best.score and _differ(best, item)


def _has_different_state(
    outcome: SearchOutcome, best: EvidenceSentence, item: EvidenceSentence
) -> bool:
    """Return whether a sentence of another day contradicts the best one.

    Either both cover the same words of the question with different values, or the later one is
    short, nearly as likely an answer, and states a change.
    """
    if item.score < MIN_STEP_SHARE * best.score:
        return False
    question = outcome.asked.text
    earlier, later = sorted((best, item), key=_age)
    if is_table_row(best.text) or is_table_row(item.text):
        return False
    if day_of(earlier) == day_of(later) and not (
        is_told_later(later, earlier)
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
    if (
        item is later
        and _BEGINS_WITH_KNOWN.match(item.text)
        and _states_a_change(item.text, question)
    ):
        said_before = outcome.terms_in(item.hit.text[: item.start][-_MAX_BEFORE_CHANGE:])
        of_item |= {slot for slot in of_best if not said_before.isdisjoint(slot)}
    left, right = stated_values(best.text), stated_values(item.text)
    if left and right and (left <= right or right <= left):
        # one has all values of the other; "from 85 to 110" has the earlier one, too
        is_change = stated_values(earlier.text) < stated_values(later.text)
        if not (is_change and _states_a_change(later.text, question)):
            return False
    if not are_of_one_kind(best.text, item.text):
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


def retracts(outcome: SearchOutcome, later: EvidenceSentence, earlier: EvidenceSentence) -> bool:
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


def without_other_holders(
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


def are_of_one_kind(one: str, other: str) -> bool:
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


def terms_without_values(item: EvidenceSentence) -> frozenset[str]:
    return item.terms.difference(query_terms(" ".join(stated_values(item.text))))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


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
    r"\b(?:instead|no,? wait|wait,? no|scrap that|actually|rather|sorry|correction|i meant|oops"
    r"|typo|mistyped|my (?:mistake|bad)"
    r"|on second thoughts?|better|doch|lieber|stattdessen|plutôt|mejor|meglio|liever"
    r"|(?:ok(?:ay)?|fine|right|alright|so)(?=\b.*\bthen\b))\b",
    re.IGNORECASE,
)
"""Does so where nothing else is said."""
_OF_PEOPLE = lazy_regex(
    r"\b(?:i|you|we|he|she|my|your|our|his|her|ich|du|er|wir|je|tu|nous|yo|tú|io|noi|ik|jij|wij)\b",
    re.IGNORECASE,
)
_REFERS_BACK = lazy_regex(r"\b(?:it|that|this|them|they)\b(?:['’]s\b)?", re.IGNORECASE)
_AGREES = lazy_regex(
    r"\W*(?:yes|yep|yeah|ok(?:ay)?|sure|fine|works|good|great|perfect|agreed|deal|done|will do"
    r"|ja|passt|gut|oui|d['’]accord|sí|vale|va bene|goed)\b|\W*👍",
    re.IGNORECASE,
)
_REPLY_MARK = lazy_regex(r"^(?:(?:re|aw|fwd?|wg)\s*:\s*)+", re.IGNORECASE)
_MIN_DIGITS = 3
_MIN_TELLING = 20
"""Numbers from which one is not taken for another of the same value."""
_BARE_NUMBER = lazy_regex(r"(?<![\w.,:])\d+(?:[.,:]\d+)?(?![\w:])")


def revised_in_thread(outcome: SearchOutcome, best: EvidenceSentence) -> list[EvidenceSentence]:
    """Return what a sentence was changed to later in its conversation, and the sentence.

    "Ok, make it Friday then" says nothing of what, so that it is no answer by itself.
    """
    if not (stated_values(best.text) and is_said(best.hit)):
        return []
    told = outcome.terms_in(without_turn_label(best.text)).union(*outcome.question.slots)
    newest, proposed = best, None
    for hit in _later_in_thread(outcome, best.hit):
        said = _last_value_like(outcome, hit, best)
        words = without_turn_label(said.text if said else hit.text)
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


_BEFORE_FORMER_VALUE = lazy_regex(
    r"\b(?:previously|formerly|was|were|used to be|until now|so far|up from|down from|instead of"
    r"|rather than|no longer|not|bisher|vorher|vormals|statt|war|avant|au lieu de|antes|prima)"
    r"[\s:]*(?:at |about |the |only )?$",
    re.IGNORECASE,
)


def revised_by_former_value(
    outcome: SearchOutcome, best: EvidenceSentence
) -> list[EvidenceSentence]:
    """Return a later sentence of what was found that calls the best one's value a former one.

    "The revised price is 6,240 (previously 5,980)" says so of the coach for 5,980.  The value is of
    the kind that the question asks for.  Of one that many things may have, such as 800 or a day,
    the sentence itself has to be about what the best one has of the question.
    """
    if is_table_row(best.text):
        return []
    old = [each for each in values(best.text) if _is_asked_for(each, outcome.asked.text)]
    names = query_terms(names_within(best.text), outcome.languages)
    about = frozenset(names).union(*outcome.question.slots)
    slots = [slot for slot in outcome.question.slots if not best.terms.isdisjoint(slot)]
    later = [
        hit
        for hit in outcome.hits
        if hit.created_at > best.hit.created_at
        and not has_unknown_age(hit)
        and not about.isdisjoint(outcome.terms_in(f"{hit.title}\n{hit.text}"))
    ]
    found = [
        EvidenceSentence(
            hit, part.start, part.end, (part.start, part.end), part.path, best.score,
            outcome.terms_in(part.text),
        )
        for hit in later
        for part in split_parts(hit)
        if not (part.is_title or is_quoted_reply(hit, part.start))
        and any(
            _replaces_value(part.text, each)
            and (_is_telling(each) or _covers(outcome.terms_in(part.text), slots))
            for each in old
        )
    ]  # fmt: skip
    return [max(found, key=_age), best] if found else []


def _is_asked_for(value: Value, question: str) -> bool:
    """Return whether a value is of the kind that a question asks for, and tells something."""
    if asks_when(question):
        return value.kind == "date" and value.readings[-1][-1] is not None
    is_large = any((reading[0] or 0) >= _MIN_TELLING for reading in value.readings)
    return value.kind in ("money", "quantity", "number") and is_large


def _is_telling(value: Value) -> bool:
    """Return whether a number has three digits or more besides its last zeros."""
    numbers = (int(reading[0] or 0) for reading in value.readings if len(reading) == 1)
    return value.kind != "time" and any(
        len(str(each).rstrip("0")) >= _MIN_DIGITS for each in numbers
    )


def _covers(terms: frozenset[str], slots: Sequence[Slot]) -> bool:
    """Return whether a sentence has a term of each slot, and there is one."""
    return bool(slots) and all(not terms.isdisjoint(slot) for slot in slots)


def _replaces_value(text: str, old: Value) -> bool:
    """Return whether a text calls a value a former one, and has another of its kind."""
    found = [each for each in values(text) if (each.kind, each.unit) == (old.kind, old.unit)]
    former = [
        each
        for each in found
        if each.agrees_with(old) and _BEFORE_FORMER_VALUE.search(text, 0, each.start)
    ]
    return bool(former) and any(not each.agrees_with(old) for each in found)


def _revises(outcome: SearchOutcome, words: str, told: frozenset[str]) -> bool:
    """Return whether a turn only gives another value to what was told before.

    "Make it 20:00" does, and "Sorry, 20:00"; "Sorry, I'm at the gym until 20:00" is about
    something else.
    """
    found = _REVISES_IT.search(words)
    if found and not (found["makes"] and _IN_TIME.search(words[: found.start()])):
        before_value, *others = outside_values(words[found.end() :])
        return bool(others) and outcome.terms_in(before_value) <= told
    rest = _REFERS_BACK.sub(" ", _REVISES.sub(" ", " ".join(outside_values(words))))
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
        same = [each for each in outcome.hits if are_of_one_thread(each, hit)]
        later = sorted((x for x in same if follows(x, hit)), key=lambda each: each.created_at)
        yield from (each for each in later if _replies(outcome, each, hit))
        return
    for _ in range(_MAX_TURNS_AHEAD):
        around = outcome.load_turns_around([hit])
        following = [each for each in around if each.turn == (hit.turn or 0) + 1]
        if not following:
            return
        hit = following[0]
        yield hit


def are_of_one_thread(one: Hit, other: Hit) -> bool:
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


def follows(one: Hit, other: Hit) -> bool:
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


def day_of(item: EvidenceSentence) -> str:
    return written_at(item.hit).date().isoformat()


def without_turn_label(quote: str) -> str:
    label = TURN_LABEL.match(quote)
    return quote[label.end() :] if label else quote
