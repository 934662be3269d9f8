"""Statements and names by the built-in reading model: what of a document is worth remembering.

Each sentence is read with its titles and the sentence before it.  What is worth
remembering becomes a memory that stands alone: with its speaker, what it continues, and its titles.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import TriggerSettings
from memctl.language.date_mentions import (
    ENTRY_DAY,
    NUMERIC_ENTRY_DAY,
    date_spans,
    is_mere_day,
    month_and_day,
    numeric_day,
)
from memctl.language.sentence_splitting import has_empty_line, without_link_marks
from memctl.language.word_lists import (
    any_phrase,
    is_common_word,
    load_language,
    phrases_of_all,
    word_set,
)
from memctl.models.task_encoder import STATEMENT_LABELS, SentenceReading, TaskEncoder
from memctl.patterns import lazy_regex
from memctl.records import Distilled, EntityMention, SourceText
from memctl.understanding.entity_extraction import MAX_ENTITIES, is_marked, names_nothing
from memctl.understanding.text_outline import DATED_PREFIX, Line
from memctl.understanding.triggers import DEFAULT_TRIGGERS, detect_trigger, label_type, stated_text

MAX_STATEMENTS = 200
STATED_IMPORTANCE = {
    "important_fact": 0.85, "memories": 0.75, "decision": 0.75, "fact": 0.6, "plan": 0.55,
    "preference": 0.6, "event": 0.55, "observation": 0.5,
}  # fmt: skip
"""How much a statement of each type matters that a chat model made."""
MAX_READ = 400
"""Sentences read of one document, or of one part of it."""
MAX_ROWS_READ = 100
"""Of these, rows of tables; a longer table is data, of which single rows state little."""
KEPT = 0.55
"""Least probability that a sentence states something worth remembering."""
IMPORTANT = 0.6
"""Least importance of what is kept."""
_SHARE_WEIGHT, _BREVITY_WEIGHT, _LONG_SENTENCE = 0.25, 0.5, 30
"""Of a sentence for the gist; chosen on the worlds that the reading model was not trained on."""
_MOST_OF_ROOT = 1.2
"""At most this many memories of a document, times the root of its number of sentences: the longer
it is, the less of it is worth remembering."""
_JOINED = 0.2
"""The least probability for what stands beside it."""
_FEW = 3
"""All that so short a document states is kept."""
_LONGEST_MEMORY = 450
"""Characters of a memory of several sentences."""
_SURE_NAME = 0.8
_ACRONYM = lazy_regex(r"[A-Z]{2,5}")
_SHORTEST_NAME, _SHORTEST_SMALL_NAME = 3, 4
_BETWEEN_WORDS = r"(?: |[ \t]*\n[ \t>]*(?!\S+(?: {2,}|\t)))"
"""Of a name: a space, or the end of a line before one that doesn't begin with a label."""
_WORD = lazy_regex(r"\w+")
_TYPE_NAMES = {"organisation": "organization"}
_TYPES_WITH_A_FORM = ("url", "email", "handle", "identifier")
_TYPES_FOUND_BY_RULES = ("person", "organization", "place")
_LENGTHS = (8, 400)
_MARKER = lazy_regex(r"\s*(?:[-*+•‣◦>]\s+|\d{1,3}[.)]\s+|\[[ xX]?\]\s+|#{1,6}\s+|[*_]{1,2}(?=\w))+")
_EMPHASISED = lazy_regex(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
_LEADING_DAY = lazy_regex(
    rf"{ENTRY_DAY}(?:,?[ ]\d{{4}}\b)?[.,]?(?:[ ]?[-–—:](?=[ ]))?[ ](?=\S)",
    re.IGNORECASE | re.VERBOSE,
)
_LEADING_NUMBERS = lazy_regex(
    rf"{NUMERIC_ENTRY_DAY}[.,:]?(?:[ ]?[-–—:](?=[ ]))?[ ](?=\S)", re.VERBOSE
)
_ENDED = lazy_regex(r"[.!?…:;,。！？｡][\"'”’»)\]*_]*$")
_ITEM = lazy_regex(r"(?:[-*+•‣◦]|\d{1,3}[.)]|\[[ xX]?\])\s")
"""Begins an item of a list, which doesn't go on what stands before it."""
_ROW = lazy_regex(r"\S[^\n]*")
_TAIL = lazy_regex(r"[\s*_]+$")
_TYPE_OF_LABEL = {
    "don't forget": "important_fact", "note to self": "important_fact",
    "for the record": "important_fact", "decision": "decision", "decided": "decision",
    "agreed": "decision", "preference": "preference", "lesson learned": "learning",
    "lesson learnt": "learning", "lesson": "learning", "til": "learning",
    "observation": "observation", "plan": "plan",
    **dict.fromkeys(phrases_of_all("stating", "decision"), "decision"),
    **dict.fromkeys(phrases_of_all("stating", "preference"), "preference"),
}  # fmt: skip
_LABEL = lazy_regex(rf"(?P<label>{'|'.join(_TYPE_OF_LABEL)})\s*:\s+(?=\S+ \S+ \S)", re.IGNORECASE)
"""Before a statement that is kept whatever it says, besides the labels among the triggers."""
_EXPLICIT_TYPE = {
    "decision": lazy_regex(
        r"\b(?:we|i)(?:['’]ve| have)? (?:decided|agreed|chose) "
        rf"|\b(?:{any_phrase(phrases_of_all('stating_outright', 'decision'))})\b",
        re.IGNORECASE,
    ),
    "preference": lazy_regex(
        r"\bi (?:always )?prefer "
        rf"|\b(?:{any_phrase(phrases_of_all('stating_outright', 'preference'))})\b",
        re.IGNORECASE,
    ),
}
"""In a statement that says itself what it is."""
_DECIDES = lazy_regex(
    r"(?:we|i) (?:will |now )?(?:stop|drop|cancel|abandon|scrap|replace|adopt|discontinue|go with"
    r"|choose|switch to|migrate to) (?:the|our|this|all|(?-i:[A-Z]))"
    r"(?!.*\b(?:every|always|usually|often|sometimes|if|when)\b)",
    re.IGNORECASE,
)
"""A plain sentence on what is done from now on: "we replace Calendra by Openslot"."""
_OF_DECISIONS = lazy_regex(
    r"(?:the |final |our )?decisions?|decision outcome|entscheidung(?:en)?|beschl[uü]ss(?:e)?"
    r"|décisions?|decisi[oó]n(?:es)?|decision[ei]|besluit(?:en)?",
    re.IGNORECASE,
)
"""A heading of what was decided."""
_RECORD_OF_DECISION = lazy_regex(r"ADR\b|architecture decision", re.IGNORECASE)
_WE = lazy_regex(r"(?:we|wir|nous|on|noi) ", re.IGNORECASE)
_ACCEPTED = lazy_regex(
    r"\s{0,3}(?:accepted|approved|adopted|carried|agreed(?: by all)?|angenommen|beschlossen|adopté"
    r"|aprobado|approvato)\s*[.!]?\s*(?:$|\n)",
    re.IGNORECASE,
)
"""After what was proposed, where nothing else is said."""
_DUE = lazy_regex(
    r"\b(?:due|expires?|runs? out|lapses?|deadline|renewal|valid (?:un)?till?|no later than|fällig"
    r"|läuft ab|gültig bis|échéance|expire|vence|scade)\b",
    re.IGNORECASE,
)
_BY = lazy_regex(r"\b(?:by|bis|entro)\W+(?:the\s+)?$", re.IGNORECASE)
"""Before the day by which something is to be done."""
_TICKED = lazy_regex(r"(?:(?:[-*+•‣◦]|\d{1,3}[.)])\s+)?\[[xX]\]")
_FINISHED = lazy_regex(
    r"(?<!\bbe )\b(?:was|were|had|did|been|done|missed|paid|renewed|passed|met|sent|submitted"
    r"|handed in|lapsed|ran out|cancelled|lived|worked|finished|war|wurde|wohnte|erledigt)\b",
    re.IGNORECASE,
)
"""Says that something is over."""
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""From which days are counted where it only matters that one is named."""
_IS_YEAR = lazy_regex(r"\d{4}")
_LONGEST_DEADLINE = 14
"""Words of a note that only says what is due when."""
_CONTINUES = lazy_regex(
    r"(?:(?:and|but|so|then|also)\s+)?(?:he|she|it|they|this|that|these|those|his|her|its|their"
    r"|er|sie|es|dies|il|elle|ce|él|ella|eso)\b",
    re.IGNORECASE,
)
"""Begins a sentence that says nothing without the one before it."""
_PRONOUN = lazy_regex(
    r"(?:(?:and|but|so|then|also)\s+)?(?:he|she|it|they|his|her|its|their|er|sie|ihre?|il|elle|ils"
    r"|elles|él|ella|lui|lei)\b",
    re.IGNORECASE,
)
_FEWEST_OF_GENERAL, _SPECIFIC_SHARE = 10, 0.5
"""A text of so many sentences is a general one if fewer than this share of them are specific."""
_FEWEST_WORDS_OF_TURN = 6
"""A shorter turn says nothing without those before it: "115 from 1 June"."""
_DIGIT = lazy_regex(r"\d")
_OWN = lazy_regex(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
"""Means who writes."""
_PAST = lazy_regex(r"\b(?:was|were|had|did|could)\b", re.IGNORECASE)
"""Tells what was, not what always is."""
_NOTES = ("text/plain", "text/markdown")
"""What people write their own notes in, which are terse and not for anybody else."""
_PERSON_MEANT = lazy_regex(
    r"\b(?:he|she|him|her|his|hers|er|ihm|ihn|elle|él|ella|lui|lei)\b", re.IGNORECASE
)
"""Means a person who was named before."""
_PROBABLE_NAME = 0.5
_USERS = word_set("user human me")
"""Who talks to an assistant, and says with a trigger what it is to keep."""
_MACHINES = word_set("agent assistant ai bot system chatgpt claude copilot gemini tool model")


class ReadLine(Struct, frozen=True, dict=True):
    """A sentence with what the model makes of it."""

    line: Line
    text: str
    reading: SentenceReading
    written: str
    """As it stands in the document, with the sign of an item or a quotation."""
    triggers: TriggerSettings = DEFAULT_TRIGGERS
    day: date | None = None
    """When it was written or said, if that is known."""
    titles: str = ""
    """Those that it stands under, outermost first."""

    @cached_property
    def stated_type(self) -> str:
        """What its author says that it is, with a label or outright; "" if nothing."""
        said = self.bare_text
        if asked := self.asked_type:
            return asked
        if label := _LABEL.match(said):
            return _TYPE_OF_LABEL[label["label"].lower()]
        outright = (kind for kind, stated in _EXPLICIT_TYPE.items() if stated.search(said))
        return next(outright, "plan" if _is_deadline(self.written, said, self.day) else "")

    @cached_property
    def asked_type(self) -> str:
        """What a trigger asks it to be kept as; "" if nothing."""
        if not self.is_users:
            return label_type(self.bare_text, self.triggers) or ""
        asked = detect_trigger(self.written, self.triggers)
        return (asked.memory_type or "") if asked.text else ""

    @property
    def is_users(self) -> bool:
        """Whether it is said by who talks to an assistant."""
        return (self.line.speaker or "").lower() in _USERS

    @property
    def bare_text(self) -> str:
        """The sentence without the name of who says it."""
        return self.text.removeprefix(f"{self.line.speaker}: ")

    @property
    def type(self) -> str:
        """The type of what it states, if it states anything."""
        if self.stated_type:
            return self.stated_type
        if self.is_decided:
            return "decision"
        return STATEMENT_LABELS[1 + int(self.reading.labels[1:].argmax())]

    @property
    def is_decided(self) -> bool:
        """Whether its words or the heading above it say that it was decided.

        That alone makes nothing of it worth remembering.
        """
        titles = [title.strip(" :") for title in self.titles.split(" > ")]
        if _OF_DECISIONS.fullmatch(titles[-1]) or _DECIDES.match(self.bare_text):
            return True
        is_record = any(map(_RECORD_OF_DECISION.match, titles))
        return is_record and _WE.match(self.bare_text) is not None

    @property
    def confidence(self) -> float:
        """The probability that it states something worth remembering."""
        return 0.9 if self.stated_type else 1 - float(self.reading.labels[0])

    @property
    def importance(self) -> float:
        """How much it matters in its document, 0 to 1."""
        return max(self.reading.importance, 0.8 if self.stated_type else 0.0)

    @property
    def weight(self) -> float:
        """How much it deserves to be kept."""
        return self.confidence * self.importance


def _is_deadline(written: str, said: str, today: date | None) -> bool:
    """Return whether an item of a list says in few words what is still due on which day."""
    if _ITEM.match(written) is None or len(said.split()) > _LONGEST_DEADLINE:
        return False
    if _TICKED.match(written) or _FINISHED.search(said):
        return False
    days = [span.day for span in date_spans(said) if span.day]
    if today and days and max(days) < today:
        return False
    spans = [span for span in date_spans(said, _ANY_DAY) if not _IS_YEAR.fullmatch(span.iso)]
    return bool(spans) and (
        _DUE.search(said) is not None
        or any(_BY.search(said, 0, span.start) is not None for span in spans)
    )


def read_lines(
    source: SourceText,
    lines: Sequence[Line],
    encoder: TaskEncoder,
    triggers: TriggerSettings = DEFAULT_TRIGGERS,
) -> list[ReadLine]:
    """Return the first sentences of a document as the model reads them, headings left out."""
    date = _day_in_words(source.created_at)
    chosen: list[tuple[Line, str, str]] = []
    inputs: list[tuple[str, str]] = []
    before = heading = ""
    rows = islice(_rows(source), MAX_ROWS_READ)
    for line in sorted([*lines, *rows], key=lambda line: line.start):
        text = _text(source.text, line)
        if line.kind == "heading" or source.text[line.start] == "#":
            heading, before = text, ""
            continue
        if _LENGTHS[0] <= len(text) and len(chosen) < MAX_READ:
            title = " > ".join(dict.fromkeys(filter(None, (source.title, line.heading or heading))))
            chosen.append((line, text, title))
            inputs.append((" | ".join(filter(None, (date, title, before))), text))
        before = text
    readings = encoder.read_sentences(inputs)
    return [
        ReadLine(
            line,
            text,
            reading,
            source.text[line.start : line.end],
            triggers,
            said_at.date() if (said_at := line.said_at or source.created_at) else None,
            title,
        )
        for (line, text, title), reading in zip(chosen, readings, strict=True)
    ]


def statements(
    source: SourceText, read: Sequence[ReadLine], language: str
) -> tuple[Distilled, ...]:
    """Return what is worth remembering of a document, in the order of the text.

    An important statement is kept with what its neighbours in the same paragraph add to it.

    Args:
        source: The document.
        read: Its sentences as the model reads them.
        language: ISO 639-1.
    """
    may_be_general = language == "en" and source.media_type not in _NOTES
    is_general = may_be_general and _is_general(read)
    seeds = [
        place
        for place, item in enumerate(read)
        if item.confidence >= KEPT
        and (item.importance >= IMPORTANT or len(read) <= _FEW)
        and _may_be_kept(item)
        and (_is_specific(item) or not is_general)
    ]
    spans: list[tuple[int, int]] = []
    taken = _repeated(read)
    most = _most_kept(read)
    for seed in sorted(seeds, key=lambda place: -read[place].weight):
        if seed not in taken and len(spans) < most:
            first, last = _widen(source, read, seed, taken)
            if len(read) > _FEW and _says_too_little(read[first : last + 1]):
                continue
            spans.append((first, last))
            taken.update(range(first, last + 1))
    found = [_distil(source, read[first : last + 1]) for first, last in sorted(spans)]
    return tuple({each.text.casefold(): each for each in found}.values())


def _repeated(read: Sequence[ReadLine]) -> set[int]:
    """Return the places of what was said in the same words before, as at the end of each page.

    The same under other titles or of another day says something new, and so does what goes on
    from another sentence: "She pays 500 EUR."
    """
    seen: set[tuple[str, str, date | None]] = set()
    places = set()
    for place, item in enumerate(read):
        key = item.text.casefold(), item.titles, item.day
        if key in seen and not _leaves_open_who([item]):
            places.add(place)
        seen.add(key)
    return places


def _is_specific(item: ReadLine) -> bool:
    """Return whether a sentence names a value or somebody, says who writes it, or what was."""
    return bool(
        item.stated_type
        or item.line.speaker
        or item.reading.names
        or _DIGIT.search(item.text)
        or _OWN.search(item.text)
        or _PAST.search(item.text)
    )


def _is_general(read: Sequence[ReadLine]) -> bool:
    """Return whether most of a text says what holds for anybody, as rules and terms do."""
    specific = sum(map(_is_specific, read))
    return len(read) >= _FEWEST_OF_GENERAL and specific < _SPECIFIC_SHARE * len(read)


def _says_too_little(items: Sequence[ReadLine]) -> bool:
    """Return whether a turn is so short that it only goes on what was said before it."""
    words = sum(len(item.bare_text.split()) for item in items)
    is_stated = any(item.stated_type for item in items)
    return items[0].line.kind == "turn" and words < _FEWEST_WORDS_OF_TURN and not is_stated


def _most_kept(read: Sequence[ReadLine]) -> int:
    fewest = len(read) if len(read) <= _FEW else 1
    most = round(_MOST_OF_ROOT * math.sqrt(len(read)))
    return max(fewest, most) + sum(bool(item.stated_type) for item in read)


def _may_be_kept(item: ReadLine) -> bool:
    return (
        item.line.kind != "properties"
        and item.line.end - item.line.start <= _LENGTHS[1]
        and not item.text.endswith("?")
        and (item.line.speaker or "").lower() not in _MACHINES
    )


def _widen(
    source: SourceText, read: Sequence[ReadLine], seed: int, taken: set[int]
) -> tuple[int, int]:
    """Return the first and the last of the sentences that state something together with one."""
    first = last = seed

    def adds(place: int, beside: int, least: float) -> bool:
        """Return whether the sentence at a place belongs to the statement."""
        if not 0 <= place < len(read) or place in taken or read[seed].line.kind == "table":
            return False
        if read[seed].stated_type or read[place].stated_type:  # it stands alone
            return False
        one, other = sorted((read[place].line, read[beside].line), key=lambda line: line.start)
        length = max(read[last].line.end, one.end, other.end) - min(
            read[first].line.start, one.start
        )
        return (
            length <= _LONGEST_MEMORY
            and (read[place].confidence >= least or read[place].is_decided)
            and _may_be_kept(read[place])
            and _where(one) == _where(other)
            and not has_empty_line(source.text[one.end : other.start])
            and _ITEM.match(source.text, other.start) is None
        )

    while _leaves_open_who(read[first : last + 1]) and adds(first - 1, first, 0.0):
        first -= 1
    while adds(last + 1, last, _JOINED):
        last += 1
    while adds(first - 1, first, _JOINED):
        first -= 1
    return first, last


def _leaves_open_who(items: Sequence[ReadLine]) -> bool:
    """Return whether sentences mean somebody or something that is only named before them."""
    if _CONTINUES.match(items[0].bare_text):
        return True
    for item in items:
        meant = _PERSON_MEANT.search(item.bare_text)
        named = [
            name.start - (len(item.text) - len(item.bare_text))
            for name in item.reading.names
            if name.type == "person" and name.confidence >= _PROBABLE_NAME
        ]
        if meant is not None and not any(start < meant.start() for start in named):
            return True
        if named:
            return False
    return False


def _where(line: Line) -> tuple[str | None, str, date | None]:
    return line.speaker, line.heading, line.said_at.date() if line.said_at else None


def names(
    read: Sequence[ReadLine], by_rules: Sequence[EntityMention], language: str
) -> tuple[EntityMention, ...]:
    """Return what a document names, most often named first.

    These are the names by rules that the model takes for names, too, or of which a list or the
    words before them tell what they are, and those that the model is sure of.

    Args:
        read: The sentences as the model reads them.
        by_rules: Names that rules find by their capitals and their company.
        language: ISO 639-1.
    """
    is_any_noun_capitalised = load_language(language).capitalises_nouns
    seen: Counter[str] = Counter()
    sure: Counter[str] = Counter()
    types: dict[str, Counter[str]] = {}
    for item in read:
        for span in item.reading.names:
            name = item.text[span.start : span.end].strip(" .,;:'\"’&(-–—")
            seen.update(set(_WORD.findall(name.casefold())))
            if span.confidence < _SURE_NAME or len(name) < _SHORTEST_NAME:
                continue
            if names_nothing(name) or _is_in_columns(name, item.written):
                continue
            if name[:1].isupper() or _is_small_name(name, item.text):
                sure[name] += 1
                types.setdefault(name, Counter())[span.type] += 1
    kinds = {
        name: "other" if kind == "person" and _ACRONYM.fullmatch(name) else kind
        for name, kind in ((n, _TYPE_NAMES.get(k, k)) for n, k in _kinds(types).items())
    }
    found = {
        mention.name: replace(mention, type=kinds.get(mention.name, mention.type))
        if mention.type == "other"
        else mention
        for mention in by_rules
        if mention.type in _TYPES_WITH_A_FORM
        or (mention.type in _TYPES_FOUND_BY_RULES and not is_any_noun_capitalised)
        or any(word in seen for word in _WORD.findall(mention.name.casefold()))
    }
    for name, count in sure.items():
        if is_any_noun_capitalised and not (" " in name or is_marked(name)):
            continue
        if not any(name in other or other in name for other in found):
            found[name] = EntityMention(name, kinds[name], count)
    return tuple(sorted(found.values(), key=lambda each: -each.count)[:MAX_ENTITIES])


def _kinds(types: Mapping[str, Counter[str]]) -> Mapping[str, str]:
    """Return what each name is most often taken for."""
    return {name: counts.most_common(1)[0][0] for name, counts in types.items()}


def _is_small_name(name: str, sentence: str) -> bool:
    """Return whether a name is one word of a sentence that is written in small letters."""
    is_word = name.isalpha() and name.islower() and len(name) >= _SHORTEST_SMALL_NAME
    return is_word and sentence.islower() and not is_common_word(name)


def _is_in_columns(name: str, written: str) -> bool:
    """Return whether a label that has a column is taken for a name, or for its beginning."""
    words = list(map(re.escape, name.split(" ")))
    if len(words) > 1:
        return re.search(_BETWEEN_WORDS.join(words), written) is None
    return re.search(rf"(?m)^ *{words[0]}(?: {{2,}}|\t)\S", written) is not None


def _rows(source: SourceText) -> Iterator[Line]:
    """Yield the lines of tables and properties, which have no sentences."""
    for part in source.segments:
        if part.kind in ("table", "properties"):
            for row in _ROW.finditer(source.text, part.start, part.end):
                yield Line(*row.span(), part.kind, heading=part.heading)


def _text(text: str, line: Line) -> str:
    written = _EMPHASISED.sub(r"\1", without_link_marks(text[line.start : line.end]))
    marker = _MARKER.match(written)
    said = " ".join(written[marker.end() if marker else 0 :].split())
    return f"{line.speaker}: {said}" if line.speaker else said


def _distil(source: SourceText, items: Sequence[ReadLine]) -> Distilled:
    """Return sentences that follow each other as one statement."""
    weightiest = max(items, key=lambda item: item.weight)
    start, end = items[0].line.start, items[-1].line.end
    speaker = items[0].line.speaker
    first = _without_day(items[0].text, items[0].line.said_at)
    text = join_sentences([first, *(item.bare_text for item in items[1:])])
    asked = None
    if len(items) == 1 and items[0].asked_type:
        said = first.removeprefix(f"{speaker}: ")
        asked = stated_text(said, items[0].triggers)
        text = f"{speaker}: {asked.text}" if speaker else asked.text
    is_kept = asked is not None and items[0].is_users
    is_decided = any(item.is_decided for item in items) or _is_accepted(source.text, items)
    return Distilled(
        text=asked.text if asked and is_kept else _standing_alone(source, items[0].line, text),
        type=weightiest.stated_type
        or ("decision" if is_decided else "event" if _is_appointment(source, first) else "")
        or weightiest.type,
        start=start,
        end=start + len(_TAIL.sub("", source.text[start:end])),
        importance=round(weightiest.importance, 3),
        confidence=round(weightiest.confidence, 3),
        reason="reading model" + (f"; said by {speaker}" if speaker else ""),
        tags=asked.tags if asked and is_kept else (),
    )


def join_sentences(texts: Sequence[str]) -> str:
    """Return sentences in one line, each but the last with a mark at its end.

    A small letter after a line without a mark may go on with that, unless the sentence itself
    begins with one: who writes notes without capitals begins each line so.
    """
    ended = [
        text if _ENDED.search(text) or (after[:1].islower() and text[:1].isupper()) else f"{text}."
        for text, after in pairwise(texts)
    ]
    return " ".join([*ended, *texts[-1:]])


def _is_appointment(source: SourceText, text: str) -> bool:
    """Return whether a sentence says when an entry of a calendar is; a task is only due."""
    said = text.removeprefix(source.title) if source.media_type == "text/calendar" else ""
    return said != text and said.startswith((" is on ", " is from ", " takes place "))


def _is_accepted(text: str, items: Sequence[ReadLine]) -> bool:
    """Return whether the last of some sentences, or what follows it, is but "Accepted"."""
    last = items[-1].line
    return any(_ACCEPTED.match(text, at) is not None for at in (last.start, last.end))


def _without_day(text: str, said_at: datetime | None) -> str:
    """Return an entry of running notes without the day that it begins with and is of."""
    if said_at is None:
        return text
    if (numbers := _LEADING_NUMBERS.match(text)) and numeric_day(numbers) == said_at.date():
        return text[numbers.end() :]
    found = _LEADING_DAY.match(text)
    if found is None:
        return text
    is_own = month_and_day(found) == (said_at.month, said_at.day)
    return text[found.end() :] if is_own else text


def _standing_alone(source: SourceText, line: Line, text: str) -> str:
    """Return a statement after the titles that it stands under, and the day of its text."""
    moment = line.said_at or source.created_at
    where = " > ".join(
        each
        for each in _titles(source, line)
        if each.casefold() not in text.casefold() and not _is_but_the_day(each, moment)
    )
    when = _day_in_words(moment)
    when = "" if when in (where or text) else when
    prefix = f"{where} ({when})" if where and when else where or when
    return f"{prefix}: {text}" if prefix else text


def _is_but_the_day(title: str, moment: datetime | None) -> bool:
    """Return whether a title says nothing but the day of its text."""
    if moment is None or not is_mere_day(title):
        return False
    return [span.iso for span in date_spans(title, moment)] == [moment.date().isoformat()]


def _day_in_words(moment: datetime | None) -> str:
    return f"{moment.day} {moment:%B %Y}" if moment else ""


def bare_statement(text: str, title: str) -> str:
    """Return a statement without the titles and the day that it was given to stand alone."""
    dated = DATED_PREFIX.match(text)
    if dated is not None:
        return text[dated.end() :]
    at = text.find(": ", len(title)) if title and text.startswith(title) else -1
    return text[at + len(": ") :] if at >= 0 else text


def bare_turn(text: str) -> str:
    """Return a statement of a conversation without its day, and without "user" as its speaker."""
    return bare_statement(text, "").removeprefix("user: ")


def _titles(source: SourceText, line: Line) -> Iterator[str]:
    yield from filter(None, dict.fromkeys((source.title, line.heading.rpartition(" > ")[2])))


def most_telling(read: Sequence[ReadLine], length: int) -> list[ReadLine]:
    """Return the sentences that state something by how much they say of the gist, most first.

    Args:
        read: Of one document.
        length: Of its text, in characters: what stands early and is short is preferred.
    """
    said = [item for item in read if item.line.kind != "properties"] or read
    stating = [item for item in said if item.confidence >= KEPT / 2]
    return sorted(stating, key=lambda item: -_telling(item, length))


def begins_with_pronoun(item: ReadLine) -> bool:
    """Return whether a sentence begins with a word for what only one before it names."""
    return _PRONOUN.match(item.bare_text) is not None


def _telling(item: ReadLine, length: int) -> float:
    share = min(max(item.reading.gist_share, 0.001), 0.999)
    early, brief = item.line.start / max(1, length), len(item.text.split()) / _LONG_SENTENCE
    return _SHARE_WEIGHT * math.log(share / (1 - share)) - early - _BREVITY_WEIGHT * brief
