"""Evidence sentences: those of the best hits, with how likely each of them answers the question.

Words choose which sentences are judged; the reading model judges them, each with its titles and the
sentence before it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans
from memctl.language.sentence_splitting import has_empty_line, split_sentences, without_link_marks
from memctl.language.term_analysis import query_terms
from memctl.language.time_periods import days_of_iso
from memctl.language.word_lists import with_english_labels
from memctl.literals import RESTATING_TYPES
from memctl.models.task_encoder import load_task_encoder
from memctl.patterns import lazy_regex
from memctl.records import Hit
from memctl.search.answering.answer_forms import (
    asks_for_amount,
    asks_for_days,
    asks_for_earlier,
    asks_something,
    asks_what_happened,
    asks_why,
    has_amount,
    has_reason,
    is_contact_without_address,
    is_roll_of_others,
    lacks_attribute,
    lacks_count,
    lacks_difference,
    lacks_measure,
    lacks_name,
    lacks_place,
    lacks_time,
    looking_back,
    only_counts,
    only_denies,
    only_plans,
    only_supposes,
    only_tells_earlier,
    states_asked_value,
)
from memctl.search.answering.evidence_parts import (
    LIST_MARK,
    TURN_LABEL,
    Part,
    Span,
    column_heads,
    entry_label,
    has_date,
    has_relative_time,
    is_draft,
    is_of_stated_day,
    is_question,
    is_quoted_reply,
    is_table_row,
    older_versions,
    quotable_parts,
    speaker_of_turn,
    split_parts,
    stated_values,
    superseded_documents,
)
from memctl.search.answering.excerpts import HitExcerpt
from memctl.search.answering.relevance import sigmoid
from memctl.search.answering.search_outcome import MAX_HITS_READ, SearchOutcome
from memctl.search.query.question import Question, Slot, TimeExpression, question_language
from memctl.search.query.subject_questions import (
    CONTINUES,
    lacks_full_name,
    names_another,
    names_opposite,
    numbered_things,
    option_of_value,
    subject_question,
    without_dates,
)
from memctl.search.query.time_expressions import date_terms, hit_dates, matching_times
from memctl.search.ranking.dialogue import Place
from memctl.search.ranking.scored_candidates import first_name
from memctl.search.retrieval.candidates import cosines, coverage

_MAX_JUDGED = 30
"""Sentences that the model judges, at about 10 ms each."""
_FIRST_HITS, _PASSAGES_OF_DOCUMENT = 5, 2
"""Among so many hits are at most so many passages of one document."""
_MAX_QUOTE_LENGTH = 260
"""Characters of a quote: a sentence with its neighbours."""
_SELF_CONTAINED_COVERAGE = 0.8
"""Share of the question from which a sentence is understood without its neighbours."""
_VALUE_COVERAGE = 0.4
"""The same for a sentence that gives the value asked for."""
_PERIOD_WEIGHT, _OTHER_DAY_WEIGHT = 4.2, -4.0
"""Log odds for questions that ask what happened at some time: for a sentence of that time, and of
another day than the one asked for."""
_NAMED_DAY_WEIGHT, _NEARBY_DAY_WEIGHT = 2.0, 0.6
"""The same for other questions with a date: the first for a sentence that names the day or month
itself, the second for one whose context does; both negative if another date is named."""
_YES_NO_QUESTION = lazy_regex(
    r"\W*(?:did|do|does|was|were|is|are|has|have|had|can|could|will|would)(?:n['’]t)?\b",
    re.IGNORECASE,
)
_CHOICE_WORD = lazy_regex(r"\b(?:or|oder|ou)\b", re.IGNORECASE)
"""Matches questions that offer two options, of which the answer names one."""
_DOUBTFUL_LOG_ODDS, _DOUBTFUL_SHARE = -0.3, 0.05
"""Where the log odds of a sentence that lacks part of the question or only repeats it end, but for
a small share of what is above, so that such sentences keep their order."""
_RESTATING_COVERAGE = 0.7
"""Share of a why-question from which a sentence without a word for a reason only restates it."""
_MIN_SAME_QUESTION_SHARE, _SAME_QUESTION_WEIGHT = 0.6, 2.5
"""Share of common words from which two questions are the same, and the log odds for the sentence
that follows such a question, as somebody wrote it as the answer."""
_DEFINITION_WEIGHT = 1.5
"""Log odds for a sentence that defines what the question asks about."""
_OLDER_VERSION_PENALTY = 2.0
"""Log odds against a sentence of a document that has a later version."""
_EXPANDED_ACRONYM_WEIGHT = 3.0
"""Log odds for a sentence that writes out the acronym that the question asks about."""
_MIN_SIMILAR_COSINE = 0.15
"""Cosine below which a sentence without words of the question is about something else."""
_DEFAULT_COSINE = 0.4
"""Usual cosine of an answer with its question; used where there are no vectors."""
_MAX_CONTEXT_LENGTH = 220
"""Characters before a sentence that the model reads."""
_ITEM = lazy_regex(rf"{LIST_MARK}\s")
_DIGIT = lazy_regex(r"\d")
_ENDS_SENTENCE = lazy_regex(r"[.!?…:;,。！？：][\"'”’»)\]*_]*$")
_TERSE_WORDS = 4
"""A line of fewer words is often a name or a label of the next one."""
_STATEMENT_IN_HEADING = lazy_regex(
    r"[:=]\s*\S|\b(?:is|are|was|were|has|have|will|must|may|can(?:not)?|ist|sind|war|hat|est|sont"
    r"|es|son|tiene|è|sono|ha)\b|n['’]t\b",
    re.IGNORECASE,
)
_YEAR = lazy_regex(r"\b(?:19|20)\d\d\b")
_GENERAL_TERMS = frozenset(
    query_terms(
        "thing things happen happens happened happening event events do did doing done go going "
        "went on place take took taken up we i you they else anything everything important main "
        "day passiert geschehen los gemacht passé pasó successo gebeurd"
    )
)
"""Terms that ask for whatever happened."""
_LABELLED = lazy_regex(r"(?:Birthday|Phone number|Address) of \S")
"""What readers of contacts write."""
_NUMBERS = lazy_regex(r"\d+(?:[.,:/]\d+)*")
_MEASUREMENT = lazy_regex(
    r"(?<![\d.,])\d[\d.,]*+ ?(?:(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|euros?"
    r"|pounds?|dollars?|grams?|kilos?|litres?|met(?:er|re)s?|miles?|percent|jahre?|monate?|wochen?"
    r"|tagen?|tage|stunden?|ans|mois|jours|años|anni)\b|%|€)",
    re.IGNORECASE,
)
"""Numbers that measure something and don't identify anything."""
_CONTEXT_WEIGHT, _COSINE_WEIGHT, _RANK_WEIGHT, _LENGTH_WEIGHT = 1.5, 2.0, 0.8, 0.8
"""Relative to the sentence's own share of the question, which has 1; fitted on training worlds."""
_FULL_WEIGHT_LENGTH = 200
"""Characters from which a sentence has the full weight of length."""
_INTRODUCTION_PENALTY = 1.4
"""Subtracted from a sentence that ends with a colon, as the answer follows it."""


class EvidenceSentence(Struct, frozen=True):
    """A sentence of a hit."""

    hit: Hit
    start: int
    """Offset in the hit's text."""
    end: int
    quote: Span
    """Offsets of what is quoted: the sentence with those of its paragraph around it."""
    path: str
    """The keys above a value of structured data."""
    score: float
    """The probability that it answers the question."""
    terms: frozenset[str]
    speaker: str = ""
    """Who says it, where it speaks of him and does not name him."""
    withdrawn_by: HitExcerpt | None = None
    """What says later that what it decides or plans is off."""
    is_superseded: bool = False
    """Whether its document is no longer in force."""

    @property
    def text(self) -> str:
        """The sentence, exactly as it is in the hit."""
        return self.hit.text[self.start : self.end]

    @property
    def quoted_text(self) -> str:
        """What is quoted, exactly as it is in the hit."""
        return self.hit.text[slice(*self.quote)]

    @property
    def has_ended(self) -> bool:
        """Whether more than half of it is a fact that has ended, or it or its document has."""
        if self.withdrawn_by is not None or self.is_superseded:
            return True
        return _has_ended(self.hit, self.start, self.end)


def _has_ended(hit: Hit, start: int, end: int) -> bool:
    """Return whether more than half of what stands at some place of a hit has ended."""
    if hit.start is None:
        return False
    first, last = hit.start + start, hit.start + end
    return any(
        min(last, fact.end) - max(first, fact.start) > (last - first) / 2 for fact in hit.ended
    )


def rank_sentences(outcome: SearchOutcome) -> list[EvidenceSentence]:
    """Return the sentences of the best hits, best first; ties in the order of the hits.

    Where a question ends with a time beside an event, each counts as it does with it or without.
    """
    event = event_limit(outcome)
    plain = plainly_asked(outcome, event)
    found = _rank(outcome.asked.text, plain)
    if plain is outcome or event is None:
        return found
    best: dict[tuple[str, str, int], EvidenceSentence] = {}
    for item in (*found, *_rank(outcome.asked.text, outcome)):
        place = (item.hit.kb, item.hit.memory_id, item.start)
        best[place] = max(best.get(place, item), item, key=lambda each: each.score)
    return _in_order(best.values())


def _rank(asked: str, outcome: SearchOutcome) -> list[EvidenceSentence]:
    """Return sentences as answers to a question, which what was found may put in another way."""
    candidates = candidate_sentences(outcome, with_past=asks_for_earlier(asked))
    drafts = candidates[:_MAX_JUDGED]
    if not drafts:
        return []
    superseded = superseded_documents(
        list({draft.hit.memory_id: draft.hit for draft in candidates}.values())
    )
    question = outcome.asked.text
    is_choice = _CHOICE_WORD.search(question) is not None
    wants_amount, wants_reason = asks_for_amount(question), asks_why(question)
    subject = subject_question(question)
    definition_weight = (
        _EXPANDED_ACRONYM_WEIGHT if subject and subject.asks_for_words else _DEFINITION_WEIGHT
    )
    may_repeat = (
        is_choice
        or _YES_NO_QUESTION.match(question) is not None
        or not is_question(question)  # what is asked for by a statement of it
    )
    candidate_terms = frozenset[str]().union(*(draft.near_terms for draft in drafts))
    misses_name = any(candidate_terms.isdisjoint(name) for name in outcome.question.names)
    of_another_option = _are_below_other_options(question, drafts)
    older = frozenset() if asks_for_earlier(asked) else older_versions(outcome.hits)
    texts = [
        (without_link_marks(draft.before), without_link_marks(draft.part.text_with_path))
        for draft in drafts
    ]
    ways_to_ask = [
        load_task_encoder().score_answers(each, texts) for each in dict.fromkeys((asked, question))
    ]
    in_english = _label_odds(question, drafts, outcome.languages)
    by_name = _other_name_odds(outcome.question, drafts)
    odds = [float(max(each)) for each in zip(*ways_to_ask, in_english, by_name, strict=True)]
    found = [
        EvidenceSentence(
            draft.hit,
            draft.part.start,
            draft.part.end,
            draft.quote,
            draft.part.path,
            _probability(
                odd,
                draft,
                may_repeat=may_repeat,
                lacks_what_is_asked=misses_name
                or is_of_another_option
                or (wants_amount and not has_amount(draft.part.text))
                or (
                    wants_reason
                    and draft.own >= _RESTATING_COVERAGE
                    and not has_reason(draft.part.text, question)
                )
                or _lacks_what_is_asked(draft, outcome),
                definition_weight=definition_weight,
                penalty=_OLDER_VERSION_PENALTY
                * (draft.hit.document_id in older or is_draft(draft.hit)),
            ),
            draft.terms,
            is_superseded=draft.hit.document_id in superseded,
        )
        for draft, odd, is_of_another_option in zip(drafts, odds, of_another_option, strict=True)
    ]
    return _in_order(found)


_LACKS_IN_SENTENCE = (
    is_roll_of_others, lacks_count, lacks_difference, only_counts, only_denies, only_plans,
    only_supposes, only_tells_earlier,
)  # fmt: skip
_LACKS_IN_QUOTE = (is_contact_without_address, lacks_name)
"""What tells of a text whether it lacks what a question asks for."""


def _lacks_what_is_asked(draft: CandidateSentence, outcome: SearchOutcome) -> bool:
    """Return whether a sentence lacks the form of an answer, or is about something else."""
    question = outcome.asked.text
    return (
        any(lacks(draft.part.text, question) for lacks in _LACKS_IN_SENTENCE)
        or any(lacks(draft.quoted_text, question) for lacks in _LACKS_IN_QUOTE)
        or lacks_measure(draft.text_with_heads, question)
        or (draft.is_prose and lacks_place(draft.quoted_words, question))
        or lacks_time(draft.quoted_text, draft.hit, question)
        or _lacks_full_name(outcome.question, draft.text_with_context)
        or (draft.is_row and lacks_attribute(draft.text_with_context, question))
        or _is_of_other_time(draft, outcome.question)
        or _is_somebody_elses(draft, outcome)
    )


def _in_order(found: Iterable[EvidenceSentence]) -> list[EvidenceSentence]:
    return sorted(found, key=lambda item: (-item.score, item.hit.rank, item.start))


_BESIDE_EVENT = lazy_regex(
    r"\b(?:did|was|were|had|has|have|happened)\b.*?"
    r"\b(?P<when>(?P<side>before|after|since|until) (?:the|our|my|his|her|their|that)"
    r" (?P<event>(?:(?!of\b|to\b|for\b)[^\W\d_][\w'’-]* ){0,2}[^\W\d_][\w'’-]*))\W*$",
    re.IGNORECASE,
)
_TOOK_PLACE = (
    r"\b(?:(?:there (?:was|were)|(?:we|they|i) had) (?:an?|the|our|another) (?:\w+ ){{0,2}}{event}"
    r"|(?:the|our|an?) (?:\w+ ){{0,2}}{event}(?: \w+){{0,4}}"
    r" (?:was on|was held|took place|happened|broke out|is on|started|began))\b"
)
"""Says that an event took place, as against mere talk of it."""


def event_limit(outcome: SearchOutcome) -> TimeExpression | None:
    """Return the time beside an event that a question ends with, such as "after the fire".

    None where no sentence of the hits tells the day on which it took place, or they tell several.
    """
    question = outcome.asked.text
    asked = _BESIDE_EVENT.search(question)
    if asked is None or asks_for_earlier(question):
        return None
    took_place = re.compile(_TOOK_PLACE.format(event=re.escape(asked["event"])), re.IGNORECASE)
    days = {
        span.day
        for hit in outcome.hits[:MAX_HITS_READ]
        for start, end in split_sentences(hit.text)
        if took_place.search(hit.text, start, end)
        for span in date_spans(hit.text[start:end], hit.created_at)
    }
    day = days.pop() if len(days) == 1 else None
    if day is None:
        return None
    if asked["side"].lower() in ("before", "until"):
        return TimeExpression(asked["when"], date.min, day - timedelta(days=1), is_limit=True)
    return TimeExpression(asked["when"], day, date.max, is_limit=True)


def plainly_asked(outcome: SearchOutcome, event: TimeExpression | None) -> SearchOutcome:
    """Return what was found for a question, asked without what sentences rarely say.

    That is what looks back, asks for days, or is the time beside an event that limits it.

    "Who was our tutor before Ines?" is answered by who was the tutor, "on which three days did it
    hail?" by when it did, and "what broke after the flood?" by what broke.
    """
    asked = outcome.asked
    spans = [(*span, "") for span in looking_back(asked.text)]
    if days := asks_for_days(asked.text):
        spans.append((days.start, days.end, "when" if days.start else "When"))
    if event is not None:
        start = asked.text.rindex(event.text)
        spans.append((start, start + len(event.text), ""))
    gone = {at for start, end, _ in spans for at in asked.words_between(start, end)}
    slots = tuple(() if at in gone else each for at, each in enumerate(asked.word_slots))
    if not gone or not any(slots):
        return outcome
    text = asked.text
    for start, end, instead in sorted(spans, reverse=True):
        text = " ".join(filter(None, (text[:start].rstrip(), instead, text[end:].lstrip())))
    text = re.sub(r"\s+(?=[?!.]|$)", "", text)
    return replace(outcome, asked=replace(asked, text=text, word_slots=slots))


def _label_odds(
    question: str, drafts: Sequence[CandidateSentence], languages: Sequence[str]
) -> list[float]:
    """Return the log odds of the sentences that readers of contacts wrote, asked for in English.

    The model takes "Birthday of Ann" for no answer to "Wann hat Ann Geburtstag?".  Those of other
    sentences are the lowest that there are.
    """
    labelled = with_english_labels(question, question_language(question.split(), languages) or "")
    places = [at for at, draft in enumerate(drafts) if _LABELLED.match(draft.part.text)]
    found = [-math.inf] * len(drafts)
    if labelled == question or not places:
        return found
    texts = [(drafts[at].before, drafts[at].part.text_with_path) for at in places]
    for at, odd in zip(places, load_task_encoder().score_answers(labelled, texts), strict=True):
        found[at] = float(odd)
    return found


def _other_name_odds(question: Question, drafts: Sequence[CandidateSentence]) -> list[float]:
    """Return the log odds of sentences that have another name of whom the question names.

    It is asked by that name then.  Those of other sentences are the lowest that there are.
    """
    found = [-math.inf] * len(drafts)
    for name in question.other_names:
        asked = name.instead(question.text)
        places = [at for at, draft in enumerate(drafts) if name.is_in(draft.quoted_text)]
        texts = [(drafts[at].before, drafts[at].part.text_with_path) for at in places]
        scores = load_task_encoder().score_answers(asked, texts) if texts else ()
        for at, odd in zip(places, scores, strict=True):
            found[at] = max(found[at], float(odd))
    return found


def _are_below_other_options(question: str, drafts: Sequence[CandidateSentence]) -> list[bool]:
    """Return for each sentence whether it is below another option than the one asked for.

    All are False if no sentence is below the option asked for.
    """
    option = option_of_value(question)
    if not option:
        return [False] * len(drafts)
    named = re.compile(rf"(?<![\w.-]){re.escape(option)}(?![\w-]|\.\w)")
    below = [named.search(draft.hit.heading.rpartition(" > ")[2]) is not None for draft in drafts]
    return [any(below) and not each for each in below]


def candidate_sentences(
    outcome: SearchOutcome, *, with_past: bool = False
) -> list[CandidateSentence]:
    """Return the sentences of the best hits, ordered by how much of the question they cover.

    With ``with_past``, so are those that documents have lost since: of their older versions.
    """
    # A gist repeats sentences of passages, or counts what a file holds.
    read = [hit for hit in outcome.hits[:MAX_HITS_READ] if hit.type not in RESTATING_TYPES]
    hits = outcome.with_known_days(read)
    around = outcome.load_turns_around(hits)
    said = {place: hit.text for hit in (*hits, *around) if (place := _place(hit))}
    drafts = [
        draft
        for hit in (*hits, *around)
        for draft in _drafts(hit, _previous_turn(hit, said), outcome)
    ]
    if with_past:
        drafts += _lost_sentences(outcome, hits)
    return _distinct(sorted(drafts, key=lambda draft: -draft.overlap))


def _lost_sentences(outcome: SearchOutcome, hits: Sequence[Hit]) -> Iterator[CandidateSentence]:
    """Yield the sentences of replaced versions that the newest ones no longer have, once each."""
    by_document = {hit.document_id: hit for hit in reversed(hits)}
    said_now: dict[str, str] = {}
    for past in outcome.load_past_versions(hits):
        newer = past.ended[0].by
        if newer not in said_now:
            said_now[newer] = "\n".join(
                hit.text for hit in outcome.load_document(by_document[newer])
            )
        for draft in _drafts(past, "", outcome):
            if draft.part.text not in said_now[newer]:
                said_now[newer] += f"\n{draft.part.text}"
                yield draft


def rank_hits(
    hits: Sequence[Hit], sentences: Sequence[EvidenceSentence], cited: Iterable[str] = ()
) -> tuple[Hit, ...]:
    """Return hits ordered by the probability of their best sentence; the rest keep their order.

    Among the first five are at most two passages of a document, unless more are cited, so that one
    text does not hide what others say.

    Args:
        hits: Best first.
        sentences: Of the hits, best first.
        cited: Ids of the memories that an answer cites, which come first.
    """
    cited = tuple(cited)
    best = dict.fromkeys((*cited, *(item.hit.memory_id for item in sentences)))
    places = {memory_id: place for place, memory_id in enumerate(best)}
    ordered = sorted(hits, key=lambda hit: places.get(hit.memory_id, len(places)))
    ordered = _spread_over_documents(ordered, frozenset(cited))
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(ordered, start=1))


def _spread_over_documents(hits: Sequence[Hit], cited: Container[str]) -> list[Hit]:
    """Return hits with the third passage of a document, and further ones, after the first five."""
    first: list[Hit] = []
    later: list[Hit] = []
    passages: Counter[tuple[str, str]] = Counter()
    for hit in hits:
        is_further = passages[hit.document] >= _PASSAGES_OF_DOCUMENT
        if is_further and len(first) < _FIRST_HITS and hit.memory_id not in cited:
            later.append(hit)
        else:
            first.append(hit)
            passages[hit.document] += 1
    return [*first[:_FIRST_HITS], *later, *first[_FIRST_HITS:]]


def sentence_context(hit: Hit, before: str) -> str:
    """Return the context that the model reads: date, titles and the text before a sentence."""
    date = f"{hit.created_at.day} {hit.created_at:%B %Y}"
    titles = " > ".join(dict.fromkeys(filter(None, (hit.title, hit.heading))))
    return " | ".join(filter(None, (date, titles, _last_words(before))))


def _last_words(text: str) -> str:
    """Return the end of a text, starting at a word."""
    return (
        text if len(text) <= _MAX_CONTEXT_LENGTH else text[-_MAX_CONTEXT_LENGTH:].partition(" ")[2]
    )


class CandidateSentence(Struct, frozen=True, dict=True):
    """A sentence that may be judged."""

    hit: Hit
    parts: Sequence[Part]
    """All of the hit."""
    place: int
    """Its index in ``parts``."""
    before: str
    terms: frozenset[str]
    own: float
    """Share of the question that the sentence alone covers."""
    near: float
    """Share that it covers together with its titles and the sentence before it."""
    time_weight: float
    """Log odds for or against it by the time that the question names."""
    is_of_another: bool
    """Whether it is about another thing of the same kind."""
    cosine: float
    near_terms: frozenset[str]
    """Its terms with those of its titles and of the sentence before it."""
    lacks_name: bool
    """Whether a name of the question is neither in it nor around it."""
    is_below_asked_key: bool
    """Whether it is a value below a key that the question names."""
    adds_no_words: bool
    """Whether all its words are in the question or the titles."""
    follows_same_question: bool
    """Whether it follows a question that asks the same."""
    answers_subject_question: bool | None
    """Whether it answers a question for what a named thing is or does; None if that is unclear."""
    states_asked_value: bool
    """Whether it has a date or a number itself that the question asks for."""

    @property
    def part(self) -> Part:
        """The sentence itself."""
        return self.parts[self.place]

    @cached_property
    def quote(self) -> Span:
        """The span to quote: with its neighbours, unless it covers most of the question.

        A sentence that gives the value asked for needs to cover less of it.
        """
        part = self.part
        least = _VALUE_COVERAGE if self.states_asked_value else _SELF_CONTAINED_COVERAGE
        if self.own >= least and not (_is_introduction(part) or CONTINUES.match(part.text)):
            return part.start, part.end
        return _quote_span(self.hit, self.parts, self.place)

    @property
    def quoted_text(self) -> str:
        """What is quoted."""
        return self.hit.text[slice(*self.quote)]

    @property
    def quoted_words(self) -> str:
        """What is quoted, without who says it."""
        label = TURN_LABEL.match(self.quoted_text) if self.hit.type == "turn" else None
        return self.quoted_text[label.end() :] if label else self.quoted_text

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return is_table_row(self.part.text)

    @property
    def is_prose(self) -> bool:
        """Whether it is neither a row nor a value of structured data."""
        return not (self.is_row or self.part.path)

    @property
    def text_with_heads(self) -> str:
        """The sentence below its keys; a row of a drawn table below the names of its columns."""
        heads = column_heads(self.parts, self.place) if self.is_row else ""
        return f"{heads}\n{self.part.text_with_path}"

    @cached_property
    def text_with_context(self) -> str:
        """What is quoted, below its titles and what stands before it."""
        titles = f"{self.hit.title}\n{self.hit.heading}"
        return f"{titles}\n{self.before}\n{self.text_with_heads}\n{self.quoted_text}"

    @property
    def overlap(self) -> float:
        """How much of the question it covers, by words and meaning, and its rank and length."""
        text = self.part.text
        return (
            self.own
            + _CONTEXT_WEIGHT * self.near
            + _COSINE_WEIGHT * self.cosine
            + _RANK_WEIGHT / self.hit.rank
            + _LENGTH_WEIGHT * min(len(text), _FULL_WEIGHT_LENGTH) / _FULL_WEIGHT_LENGTH
            + _DEFINITION_WEIGHT * (self.answers_subject_question is True)
            - _INTRODUCTION_PENALTY * _is_introduction(self.part)
        )


def _quote_span(hit: Hit, parts: Sequence[Part], place: int) -> Span:
    """Return the span to quote: a sentence with its neighbours in the same paragraph.

    Often one sentence answers, and the one before it names the subject.
    """
    start, end = parts[place].start, parts[place].end
    if hit.type == "turn" or parts[place].path or is_table_row(parts[place].text):
        return start, end
    label = entry_label(parts[place].text)
    for near in range(place + 1, len(parts)):
        continues = _continues(hit, parts[near - 1], parts[near])
        continues = continues or _is_introduced(parts[place : near + 1])
        if label and entry_label(parts[near].text) not in ("", label):
            break  # another value follows; the values before say what all are about
        if not continues or parts[near].end - start > _MAX_QUOTE_LENGTH:
            break
        end = parts[near].end
    for near in range(place - 1, -1, -1):
        if (
            not _continues(hit, parts[near], parts[near + 1])
            or end - parts[near].start > _MAX_QUOTE_LENGTH
        ):
            break
        start = parts[near].start
    return start, end


def _is_introduction(part: Part) -> bool:
    """Return whether a sentence introduces the list or the code after it."""
    return part.text.endswith(":")


def _is_introduced(parts: Sequence[Part]) -> bool:
    """Return whether the first part introduces the last: the next one, or an item of its list."""
    is_near = len(parts) == 2 or _ITEM.match(parts[-1].text) is not None
    return is_near and _is_introduction(parts[0]) and not parts[-1].is_title


def _continues(hit: Hit, one: Part, other: Part) -> bool:
    """Return whether a sentence follows another in its paragraph, not as another item of a list.

    Of two facts of which one has ended, neither goes with the other; nor do lines of code or of
    terse notes, which end without a full stop.
    """
    if _are_terse_lines(hit, one, other):
        return False
    if _has_ended(hit, one.start, one.end) != _has_ended(hit, other.start, other.end):
        return False
    if any(
        part.is_title or is_table_row(part.text) or _is_heading(part, hit) for part in (one, other)
    ):
        return False
    is_item = _ITEM.match(other.text) is not None
    return not is_item and not has_empty_line(hit.text[one.end : other.start])


def _are_terse_lines(hit: Hit, one: Part, other: Part) -> bool:
    """Return whether two parts are lines that say something each and end as no sentence does."""
    if "\n" not in hit.text[one.end : other.start]:
        return False
    if hit.doc_type == "code":
        return True
    return all(
        _ENDS_SENTENCE.search(part.text) is None and len(part.text.split()) >= _TERSE_WORDS
        for part in (one, other)
    )


def _place(hit: Hit, step: int = 0) -> Place | None:
    """Return the place in its conversation of a turn, or of one that many steps further on."""
    if hit.type != "turn" or hit.session_id is None or hit.turn is None:
        return None
    return hit.kb, hit.namespace, hit.session_id, hit.turn + step


def _previous_turn(hit: Hit, said: Mapping[Place, str]) -> str:
    """Return the text of the turn before a turn; "" if the hit is no turn."""
    place = _place(hit, -1)
    return said.get(place, "") if place else ""


def _drafts(hit: Hit, said_before: str, outcome: SearchOutcome) -> Iterable[CandidateSentence]:
    parts = split_parts(hit)
    asks_for_day = bool(outcome.question.dates)
    days_of = [
        date_terms(part.text, hit.created_at) if asks_for_day else frozenset[str]()
        for part in parts
    ]
    terms_of = [
        _terms(hit, part, outcome) | days for part, days in zip(parts, days_of, strict=True)
    ]
    dates = hit_dates(hit) if asks_for_day else frozenset[str]()
    above = outcome.terms_in(f"{hit.title}\n{hit.heading}")
    cosine = _cosines(parts, outcome)
    subject = subject_question(outcome.asked.text)
    for place in quotable_parts(parts):
        part = parts[place]
        is_heading = _is_heading(part, hit)
        is_bare_heading = is_heading and not _has_value(part.text)
        if part.is_title or asks_something(part.text) or is_bare_heading:
            continue
        if is_quoted_reply(hit, part.start):
            continue
        is_row = is_table_row(part.text)  # which the row before says nothing of
        heads = column_heads(parts, place) if is_row else ""
        before = heads or (parts[place - 1].text_with_path if place else said_before)
        further = parts[place - 2].text if place > 1 and not (is_row or part.path) else ""
        near_by = outcome.terms_in(heads if is_row else before)
        context = above | near_by if is_row else above | near_by | dates
        needs_before = not is_row and _DIGIT.search(part.text) is None
        near_terms = terms_of[place] | context
        own = _coverage(terms_of[place], outcome)
        titles = (hit.title, hit.heading)
        tells = subject.is_answered_by(part.text, titles, before) if subject else None
        said_above = _terms_above_heading(hit, outcome) if is_heading else above
        yield CandidateSentence(
            hit,
            parts,
            place,
            sentence_context(hit, f"{further} {before}" if further else before),
            terms_of[place],
            own,
            _coverage(near_terms, outcome),
            _time_weight(days_of[place], near_terms, outcome.question),
            _is_of_another(
                " | ".join((hit.title, hit.heading, before if needs_before else "", part.text)),
                near_terms,
                outcome.question,
                is_row=is_row,
            ),
            cosine[place],
            near_terms,
            any(near_terms.isdisjoint(name) for name in outcome.question.names),
            not frozenset(query_terms(part.path, outcome.languages)).isdisjoint(
                outcome.question.terms
            ),
            terms_of[place] <= said_above.union(outcome.question.terms),
            place > 0 and _asks_same(before, outcome),
            tells,
            states_asked_value(part.text_with_path, outcome.asked.text),
        )


def _is_heading(part: Part, hit: Hit) -> bool:
    return hit.heading.rpartition(" > ")[2] == " ".join(part.text.split())


def _has_value(heading: str) -> bool:
    """Return whether a heading states something itself, besides naming a topic."""
    return _STATEMENT_IN_HEADING.search(heading) is not None or bool(stated_values(heading))


def _terms_above_heading(hit: Hit, outcome: SearchOutcome) -> frozenset[str]:
    above = hit.heading.rpartition(" > ")[0]
    return frozenset(query_terms(f"{hit.title}\n{above}", outcome.languages))


def _asks_same(before: str, outcome: SearchOutcome) -> bool:
    """Return whether a text ends with a question that shares most words with the one asked."""
    if not is_question(before):
        return False
    last = before[split_sentences(before)[-1][0] :]
    asked, other = outcome.question.slots, frozenset(query_terms(last, outcome.languages))
    shared = sum(not other.isdisjoint(slot) for slot in asked)  # a name may have several terms
    return shared >= _MIN_SAME_QUESTION_SHARE * max(1, len(asked) + len(other.difference(*asked)))


def _time_weight(own: frozenset[str], near: frozenset[str], question: Question) -> float:
    """Return the log odds for or against a sentence by the time that the question names.

    Of a question why, the day is part of what is to be explained, and often of what says it again.

    Args:
        own: Days and months that it names.
        near: Terms of the sentence and its context.
        question: The question.
    """
    dates, periods = question.dates, {each.term for each in question.times}
    is_near = any(not near.isdisjoint(slot) for slot in dates) or not near.isdisjoint(periods)
    if asks_what_happened(question.text):
        topics = topics_of(question)
        is_on_topic = not topics or any(not near.isdisjoint(slot) for slot in topics)
        if is_near:
            return _PERIOD_WEIGHT if is_on_topic else _NEARBY_DAY_WEIGHT
        return _OTHER_DAY_WEIGHT if dates else 0.0
    names_it = any(not own.isdisjoint(slot) for slot in dates)
    tells = (names_it and not asks_why(question.text)) or (own and not is_near)
    weight = _NAMED_DAY_WEIGHT if tells else _NEARBY_DAY_WEIGHT
    return weight if is_near else -weight if dates else 0.0


def topics_of(question: Question) -> list[Slot]:
    """Return what a question for what happened names besides the time."""
    periods = {each.term for each in question.times}
    return [
        slot
        for slot in question.slots
        if periods.isdisjoint(slot)
        and slot not in question.dates
        and _GENERAL_TERMS.isdisjoint(slot)
    ]


def _is_of_another(text: str, found: frozenset[str], question: Question, *, is_row: bool) -> bool:
    """Return whether a sentence lacks what identifies the thing asked about among its kind.

    That is a number, such as that of a flat or a version, a full name, a word of two opposites,
    and in a table row also any other name.
    """
    measures = _MEASUREMENT.search(question.text) is not None
    things = () if measures else numbered_things(question.text)
    are_in = {thing: thing.is_in(text) for thing in things}
    if False in are_in.values() or _names_another(question, text):
        return True
    if names_opposite(question.text, text):
        return True
    years = [number for number in _NUMBERS.findall(text) if _YEAR.fullmatch(number)]
    if question.dates or question.times:
        numbers: set[str] = set()
    else:
        found_there = {
            number
            for thing, is_in in are_in.items()
            if is_in
            for number in _NUMBERS.findall(thing.number)
        }
        numbers = set(_NUMBERS.findall(question.text.lower())) - found_there
        text = without_dates(text)
    names = question.names if is_row else ()
    lacks_name = any(found.isdisjoint(slot) for slot in names)
    if lacks_name or not numbers:
        return lacks_name
    there = _NUMBERS.findall(text.lower() if measures else _MEASUREMENT.sub(" ", text.lower()))
    return not all(
        any(number == each or each.startswith(f"{number}.") for each in (*there, *years))
        for number in numbers
    )


def _lacks_full_name(question: Question, text: str) -> bool:
    """Return whether a text has no part of a full name of the question, nor another name."""
    return lacks_full_name(question.text, text) and not any(
        each.is_in(text) for each in question.other_names
    )


def _names_another(question: Question, text: str) -> bool:
    """Return whether a text names another one than the question does, by any name."""
    return names_another(question.text, text) and not any(
        each.is_in(text) for each in question.other_names
    )


def _is_of_other_time(draft: CandidateSentence, question: Question) -> bool:
    """Return whether a question names a year, and a sentence stands under a day of another one.

    One that names a day or year itself may be about another time than it was written at.
    """
    years = [each for each in question.times if _YEAR.search(each.text)]
    if not years or not is_of_stated_day(draft.hit):
        return False
    if has_date(draft.quoted_text) or has_relative_time(draft.quoted_text):
        return False
    return draft.near_terms.isdisjoint(each.term for each in years)


_MINE = lazy_regex(r"\b(?:my|mine|our|ours)\b(?P<thing>(?: [\w'’-]+){0,3})", re.IGNORECASE)
_MY = lazy_regex(r"\bmy\b(?P<thing>(?: [\w'’-]+){0,3})", re.IGNORECASE)


def _is_somebody_elses(draft: CandidateSentence, outcome: SearchOutcome) -> bool:
    """Return whether a question asks for something of mine, and another one says "my" of it.

    That is the sender of a mail who isn't known to be who asks, or a speaker who is known not to
    be.
    """
    asked = [outcome.terms_in(each["thing"]) for each in _MINE.finditer(outcome.asked.text)]
    said = [outcome.terms_in(each["thing"]) for each in _MY.finditer(draft.quoted_text)]
    if all(one.isdisjoint(other) for one in asked for other in said):
        return False
    if draft.hit.doc_type == "email":
        author = outcome.load_author(draft.hit)
        return bool(author) and first_name(author) != outcome.load_owner(draft.hit.kb)
    speaker = speaker_of_turn(draft.hit.text) if draft.hit.type == "turn" else ""
    owner = outcome.load_owner(draft.hit.kb) if speaker else ""
    return bool(owner) and first_name(speaker) != owner


def _distinct(drafts: Iterable[CandidateSentence]) -> list[CandidateSentence]:
    """Return each sentence of a document once; its passages overlap, and so do memories of it."""
    first: dict[tuple[tuple[str, str], str], CandidateSentence] = {}
    for draft in drafts:
        first.setdefault((draft.hit.document, draft.part.text), draft)
    return list(first.values())


def _cosines(parts: Sequence[Part], outcome: SearchOutcome) -> list[float]:
    vector = outcome.vector
    if vector is None or not parts:
        return [_DEFAULT_COSINE] * len(parts)
    embedded = outcome.embedder.embed([part.text_with_path for part in parts])
    return [float(each) for each in cosines(vector, embedded)]


def _terms(hit: Hit, part: Part, outcome: SearchOutcome) -> frozenset[str]:
    """Return the terms of a sentence and of the periods that it belongs to."""
    return outcome.terms_in(part.text_with_path) | matching_times(outcome.question, hit)


def _coverage(found: frozenset[str], outcome: SearchOutcome) -> float:
    return coverage(outcome.slot_weights, found)


def evidence_features(
    odds: float,
    *,
    own: float,
    near: float,
    cosine: float,
    lacks_name: bool,
    is_below_asked_key: bool,
    is_of_another: bool,
) -> dict[str, float]:
    """Return the features of a sentence by their names in ``WEIGHTS``.

    Args:
        odds: The reading model's log odds that it does.
        own: Share of the question that it covers itself.
        near: Share that it covers with what stands around it.
        cosine: Of its vector with the question's.
        lacks_name: Whether a name of the question is neither in it nor around it.
        is_below_asked_key: Whether it is a value below a key that the question names.
        is_of_another: Whether it is about another thing of the kind that is asked about.
    """
    return {
        "odds": odds,
        "near": near,
        "cosine": cosine,
        "unlike": float(own == 0 and cosine < _MIN_SIMILAR_COSINE),
        "lacks_name": float(lacks_name),
        "below_asked_key": float(is_below_asked_key),
        "of_another": float(is_of_another),
        "bias": 1.0,
    }


WEIGHTS = {
    "odds": 0.4, "near": 0.8, "cosine": 0.6, "unlike": -1.2, "lacks_name": -0.6,
    "below_asked_key": 1.0, "of_another": -3.0, "bias": -0.6,
}  # fmt: skip
"""Of a logistic model.  A fit on the worlds that the reading model was not trained on
(``tests/training/fit_answers.py``) does no better; too few questions there are about values below
keys and things that a number tells apart.  The place of a hit tells nothing more: with it, fewer
of the questions there are answered rightly."""


def _probability(
    odds: float,
    draft: CandidateSentence,
    *,
    may_repeat: bool,
    lacks_what_is_asked: bool,
    definition_weight: float,
    penalty: float,
) -> float:
    """Return the probability that a sentence answers.

    Args:
        odds: The reading model's log odds that it does.
        draft: The sentence.
        may_repeat: Whether a sentence that only repeats the question may answer it.
        lacks_what_is_asked: Whether a name of the question is in no sentence, or this one lacks
            the kind of value asked for, or is about another thing.
        definition_weight: Log odds to add for a sentence that says what a named thing is or does.
        penalty: Log odds to take away besides.
    """
    features = evidence_features(
        odds,
        own=draft.own,
        near=draft.near,
        cosine=draft.cosine,
        lacks_name=draft.lacks_name,
        is_below_asked_key=draft.is_below_asked_key,
        is_of_another=draft.is_of_another,
    )
    value = sum(WEIGHTS[name] * each for name, each in features.items()) + draft.time_weight
    only_repeats = draft.adds_no_words and not may_repeat
    is_doubtful = only_repeats or draft.answers_subject_question is False
    if is_doubtful or lacks_what_is_asked:
        value = min(value, _DOUBTFUL_LOG_ODDS + _DOUBTFUL_SHARE * (value - _DOUBTFUL_LOG_ODDS))
    return sigmoid(
        value
        + _SAME_QUESTION_WEIGHT * (draft.follows_same_question and not lacks_what_is_asked)
        + definition_weight * (draft.answers_subject_question is True)
        - penalty
    )


def log_odds(probability: float) -> float:
    """Return the log odds of a probability."""
    probability = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(probability / (1 - probability))


# --- what is withdrawn later ----------------------------------------------------------------------

_WITHDRAWS = lazy_regex(
    r"\b(?:scrap(?:ped|ping)?|ditch(?:ed|ing)?|abandon(?:ed|ing)?|revert(?:ed|ing)?|rescind(?:ed)?"
    r"|withdr(?:ew|awn?)|cancel(?:led|ed)?|forget (?:about )?(?:that|it|the|this)"
    r"|drop(?:ped|ping)? (?:that|it|the|this)"
    r"|(?:was|were|been|is|are) dropped(?! (?:off|to|by|from))"
    r"|called (?:it |that )?off|undone|overturned|reversed|verworfen|gestrichen|abgesagt)\b"
    r"|\b(?:not|never|no|\w+n['’]t)\b[^.;:]*\bafter all\b"
    r"|\bchanged (?:our|my|their) minds?\b|\bon second thoughts?\b|\bdoch (?:nicht|kein\w*)\b",
    re.IGNORECASE,
)
"""What says that something decided or planned before is off."""
_MAY_WITHDRAW = lazy_regex(
    r"\b(?:if|unless|whether|should|might|could|would|may|never|consider\w*|don['’]t|do not"
    r"|can['’]t|cannot|why)\b[^.;:]*$",
    re.IGNORECASE,
)
"""Before that: it is not."""
_DECIDES = lazy_regex(
    r"\b(?:deci(?:de[sd]?|sions?)|agree[ds]?|resolved|settled|plan(?:s|ned|ning)?|chosen?|opt(?:ed)?"
    r"|vot(?:e|ed)|will|shall|going to|let['’]s|(?:we|i)['’](?:ll|re)|(?:we|i) (?:are|am) \w+ing"
    r"|entschieden|beschlossen|vereinbart|geplant|werden)\b",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_regex(r"[,;:.!?–—]+\s*|\s-\s")
_NO = lazy_regex(r"\W*(?:no|not|kein\w*)\b", re.IGNORECASE)
_ASKS_OF_WITHDRAWN = lazy_regex(
    r"\b(?:withdr\w+|cancel\w*|scrap\w*|drop\w*|revert\w*|abandon\w*|change[ds]?|called off"
    r"|why)\b",
    re.IGNORECASE,
)
_GENERAL_OF_DECISIONS = (
    "decide decided decision decisions plan plans planned agree agreed update note idea thing "
    "scrap scrapped scrapping drop dropped dropping cancel cancelled forget revert reverted "
    "abandon abandoned withdraw withdrawn ditch ditched longer anymore mind minds change changed "
    "second thought thoughts after all one ones it that do doing going want off"
)


class _Withdrawal(Struct, frozen=True):
    excerpt: HitExcerpt
    about: frozenset[str]
    """The terms of what it names; empty where it means what stands before it."""

    def is_later_than(self, item: EvidenceSentence) -> bool:
        """Return whether it was said after a sentence."""
        own, other = self.excerpt.hit, item.hit
        if own.document == other.document and own.turn == other.turn:
            return self._start > (other.start or 0) + item.start
        is_summary = other.type != "turn" and own.session_id is not None
        if is_summary and own.session_id == other.session_id:
            return True
        if own.session_id is not None and own.session_id == other.session_id:
            return (own.turn or 0) > (other.turn or 0)
        return own.created_at > other.created_at

    @property
    def _start(self) -> int:
        return (self.excerpt.hit.start or 0) + self.excerpt.start

    def distance(self, item: EvidenceSentence) -> int | None:
        """Return how far above it a sentence of the same document ends; None for any other."""
        if self.excerpt.hit.document != item.hit.document:
            return None
        return self._start - (item.hit.start or 0) - item.end


def mark_withdrawn(
    outcome: SearchOutcome, sentences: Sequence[EvidenceSentence]
) -> list[EvidenceSentence]:
    """Return sentences, those that decide or plan what is withdrawn later with what says so."""
    question = outcome.asked.text
    if _ASKS_OF_WITHDRAWN.search(question) or asks_for_earlier(question):
        return list(sentences)
    decisions = [item for item in sentences if _DECIDES.search(item.quoted_text)]
    if not decisions:
        return list(sentences)
    withdrawals = list(_withdrawals(outcome))
    return [
        replace(item, withdrawn_by=found)
        if item in decisions and (found := _withdrawal_of(item, withdrawals, outcome))
        else item
        for item in sentences
    ]


def _withdrawals(outcome: SearchOutcome) -> Iterable[_Withdrawal]:
    """Yield what is withdrawn in the hits."""
    for hit in outcome.hits[:MAX_HITS_READ]:
        if hit.level == "evidence":
            for (start, end), about in _withdrawals_in(hit.text, outcome.languages):
                yield _Withdrawal(HitExcerpt(hit, start, end), about)


def _withdrawals_in(text: str, languages: Sequence[str]) -> Iterable[tuple[Span, frozenset[str]]]:
    """Yield the sentences of a text that withdraw something, with the terms of what they name."""
    if not _WITHDRAWS.search(text):
        return
    for start, end in split_sentences(text):
        sentence = text[start:end]
        found = _WITHDRAWS.search(sentence)
        if found is None or is_question(sentence) or is_table_row(sentence):
            continue
        if not _MAY_WITHDRAW.search(sentence[: found.start()]):
            yield (start, end), _named_by(sentence, languages)


def _named_by(sentence: str, languages: Sequence[str]) -> frozenset[str]:
    """Return the terms of the clause that withdraws something, or of the one after it: "no ..."."""
    general = frozenset(query_terms(_GENERAL_OF_DECISIONS, languages))
    withdraws = False
    for clause in filter(None, _CLAUSE_END.split(sentence)):
        if _WITHDRAWS.search(clause) or (withdraws and _NO.match(clause)):
            withdraws = True
            if named := frozenset(query_terms(clause, languages)) - general:
                return named
    return frozenset()


def is_withdrawn(statement: str, later: Iterable[str], languages: Sequence[str] = ("en",)) -> bool:
    """Return whether a text that was said later withdraws by name what a statement decides."""
    terms = frozenset(query_terms(statement, languages))
    return any(
        about and about <= terms for text in later for _, about in _withdrawals_in(text, languages)
    )


def _withdrawal_of(
    item: EvidenceSentence, withdrawals: Sequence[_Withdrawal], outcome: SearchOutcome
) -> HitExcerpt | None:
    """Return what withdraws a sentence, if something does."""
    heading = item.hit.heading
    for each in withdrawals:
        text = each.excerpt.text
        if not each.is_later_than(item) or text in item.text:
            continue
        if each.about:
            said = item.quoted_text.replace(text, "")
            terms = outcome.terms_in(f"{item.text}\n{said}\n{heading}")
            if each.about <= terms and not _are_of_other_times(item, each.excerpt):
                return each.excerpt
        elif (distance := each.distance(item)) is not None and distance <= 2:
            return each.excerpt
    return None


def _are_of_other_times(item: EvidenceSentence, withdrawal: HitExcerpt) -> bool:
    """Return whether a withdrawal and a sentence name days, and these are others."""
    told, withdrawn = (
        [days_of_iso(span.iso) for span in date_spans(text, hit.created_at)]
        for text, hit in ((item.text, item.hit), (withdrawal.text, withdrawal.hit))
    )
    return bool(told and withdrawn) and not any(
        first <= end and start <= last for first, last in withdrawn for start, end in told
    )
