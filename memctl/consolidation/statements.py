"""The sentences that insights are drawn from: each with its day, what it speaks of, its values.

A sentence that was distilled into a memory stands for that memory, any other one for its passage.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from email.utils import getaddresses
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise, zip_longest
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.consolidation import insight_wording
from memctl.language.date_mentions import MONTHS, WEEKDAYS, date_spans
from memctl.language.identification import identify_language
from memctl.language.sentence_splitting import has_empty_line, split_sentences
from memctl.language.sentence_values import Value, values
from memctl.language.table_amounts import (
    Cells,
    drawn_cells,
    drawn_names,
    is_rule,
    row_cells,
    row_line,
)
from memctl.language.term_analysis import terms
from memctl.language.word_lists import all_languages, any_of, numerals
from memctl.literals import QUOTED, RESTATING_TYPES
from memctl.models.task_encoder import load_task_encoder
from memctl.patterns import lazy_regex
from memctl.records import Memory, source_name
from memctl.schema.arrow_tables import memory_rows
from memctl.store.tables.filter_expressions import col, ends_after
from memctl.understanding.sentence_reading import bare_statement

if TYPE_CHECKING:
    from memctl.store.store import Snapshot

MOST_MEMORIES = 20_000
"""Insights are drawn from this many memories and passages, the newest ones."""
_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "source", "external_id", "start", "end", "heading", "speaker", "session_id", "turn", "row",
    "entities", "topics", "keywords", "tags", "importance", "method", "metadata", "doc_type",
)  # fmt: skip
_LENGTHS = (12, 320)
_SHORTEST_SPEECH = 8
_LONGEST_QUOTE = 220
"""Characters of a quote: a sentence with what stands around it in its paragraph."""
OF_PROSE = ("markdown", "web", "office")
"""Documents that may have a table among their paragraphs."""
_HEAD = 240
"""Characters at the beginning of a document in which it says its own day."""
_BESIDE_DAY = 20
"""Characters that may stand beside it in its line: "Date:", a weekday."""
_LONG = 60
"""Of a document with more sentences only those count that were distilled into memories; of a
conversation all do."""
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~|[-=*_]{3,}\s*$)")
_DRAWN_ROW = re.compile(r"^[^\S\n]*\|", re.MULTILINE)
_MAIL_HEAD = re.compile(r"From: \W*(?P<sender>[^<>\n\"]+?)\W*(?:<[^>\n]*>)?\n(?:[\w-]+: .*\n)+")
_PARTICIPANTS = re.compile(r"^(?:From|To|Cc): (.*)", re.MULTILINE)
_SALUTATION = re.compile(r"[^\n.]{1,40},\s*$")
"""Such as "Dear Ann,", a line that says nothing."""
_MOST_READ_FOR_LANGUAGE = 4
_BULK_MAIL = re.compile(r"unsubscribe", re.IGNORECASE)
_WEEK = re.compile(r"\b(?P<year>20\d\d)-?W(?P<week>0[1-9]|[1-4]\d|5[0-2])\b")
"""A week of ISO 8601 in the name of a file."""
_ENDED = re.compile(r"[.!?…:;,。！？｡][\"'”’»)\]*_]*$")
_QUOTED_REPLY = re.compile(r"\s*>")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦|]|\d{1,3}[.)]|\[[ xX]?\])\s")
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,:/]*")
_NUMBER = re.compile(
    r"(?<![\w.,:/-])(\d+(?:[.,'\u00a0]\d{3})*(?:[.,]\d+)?)(k\b)?"
    r"(?![^\W\d_]|[\w:/-]*\d)"
)
_LEADING_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SIZE = lazy_regex(
    r"(?<![\d.,])\d[\d.,]*+(?:\s?[cm]?m\b)?(?:\s?[x×]\s?\d[\d.,]*+(?:\s?[cm]?m\b)?)+"
)
"""The measures of one thing ("203 x 133"), of which none stands for it alone."""
_ROW = re.compile(r"\S[^\n]*")
_COLUMN = re.compile(r"(?:^|; )([^:;]{1,40}): ")
_COLUMN_NAMES = re.compile(r"(^|; )[\w -]{1,40}: ")
_ENTRY = lazy_regex(rf"[\s*\[(+-]*(?:\d|(?:{any_of((*MONTHS, *WEEKDAYS))})[.,]? \d)", re.IGNORECASE)
"""Begins a line with its day; "From 1 July" only says when something begins."""
_ENTRY_DATE = 16
"""Characters at the beginning of a line in which an entry of a log has its day."""
_MACHINE_OUTPUT = re.compile(
    r"https?://|[\w-]+/[\w-]+/|[{}<>\\=|`~^]|::|\(\)|\b\w+_\w+\b|--\w|^\s*\$ |\d\d:\d\d:\d\d|"
    r"\b\d+\.\d+\.\d+\b(?!\.?\d{2})|\b(?:version|release|section|chapter|RFC|bug) ?#?\d|#\d|"
    r"unsubscribe|copyright|all rights reserved|newsletter|cookies?\b",
    re.IGNORECASE,
)
"""Marks of code, logs, paths and markup, and of what is sent to everybody."""
_IS = re.compile(r"\b(?:is|was|are|were)\b")
_FEWEST_LETTERS = 0.55
_NEAR = 4
"""Words on each side of a value that say what it is a value of."""
_PART_END = re.compile(r"[,;()](?!\d)")
"""Ends the part of a sentence whose words say what the value before them is of."""


class Slot(Struct, frozen=True):
    """A value with the stems of the words around it."""

    value: Value
    near: frozenset[str]

    @property
    def amount(self) -> float:
        """The number that the value is, as it is most likely read; 0 where it is none."""
        return self.value.readings[-1][0] or 0.0


class Statement(Struct, frozen=True, dict=True):
    """One sentence."""

    memory: Memory
    """What it stands for in the sources of an insight."""
    text: str
    speaker: str
    day: date
    is_dated: bool
    """Whether the source says the day; it is the day of ingestion otherwise."""
    words: tuple[tuple[str, frozenset[str]], ...]
    """Its words with their stems, values and times left out."""
    stems: frozenset[str]
    slots: tuple[Slot, ...]
    topic: str
    """What its document defines, if it is an article: "Elm Road is a street in ..."."""
    quote: str = ""
    """The sentence with what stands around it in its paragraph."""
    around: frozenset[str] = frozenset()
    """Stems of its quote."""
    titles: frozenset[str] = frozenset()
    """Stems of its titles, and of who says it."""
    thread: str = ""
    """The chat that it is from, or the subject of its mail without "Re:" with the addresses that it
    is from and to; "" if neither."""
    language: str = ""
    """That of its document (ISO 639-1); "" if it isn't known."""
    sent_from: str = ""
    """The address that its mail is from; "" of what is no mail."""

    @cached_property
    def context(self) -> frozenset[str]:
        """The stems of the sentence and of all that says more of it."""
        return self.stems | self.around | self.titles

    @cached_property
    def cells(self) -> Cells:
        """The cells of a row of a table; none of what is no row."""
        return row_cells(self.text) if self.is_row else {}

    @property
    def document(self) -> str:
        """The id of its document, or of the memory that a user or an agent stated."""
        return self.memory.document_id or self.memory.id

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return self.memory.row is not None

    @property
    def is_question(self) -> bool:
        """Whether it asks something, and states nothing."""
        return self.text.endswith("?")

    @property
    def is_kept(self) -> bool:
        """Whether it is part of a distilled memory, not of a passage alone."""
        return self.memory.level == "memory"

    @property
    def citation(self) -> str:
        """The sentence with where it stands and its day."""
        where = insight_wording.source(self.memory)
        when = f", {insight_wording.day(self.day)}" if self.is_dated else ""
        quote = insight_wording.quote(insight_wording.quotable(self.quote or self.text))
        return f"{quote} ({where}{when})"

    def precedes(self, other: Statement) -> bool:
        """Return whether it is known to have been said on an earlier day."""
        return self.day < other.day and self.is_dated == other.is_dated


def read_statements(snapshot: Snapshot, now: datetime) -> list[Statement]:
    """Return the statements of a knowledge base that hold, those of a document in its order."""
    holds = ends_after("valid_to", now) & ends_after("expires_at", now)
    worth = holds & (col("level") != "insight") & ~col("type").is_in((*RESTATING_TYPES, QUOTED))
    rows = snapshot.scan(
        "memories", worth, _COLUMNS, order_by=[("created_at", "desc")], limit=MOST_MEMORIES
    )
    return statements(memory_rows(rows))


def statements(memories: Iterable[Memory]) -> list[Statement]:
    """Return the sentences of memories and passages, each once."""
    documents: dict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        documents[memory.document_id or memory.id].append(memory)
    ordered = sorted(
        documents.items(), key=lambda item: (min(m.created_at for m in item[1]), item[0])
    )
    return [found for _, of_one in ordered for found in _of_document(of_one)]


def _of_document(memories: Sequence[Memory]) -> Iterator[Statement]:
    passages = sorted(
        (m for m in memories if m.level == "evidence"), key=lambda m: (m.start or 0, m.id)
    )
    facts = [m for m in memories if m.level == "memory"]
    document = _Document.of(passages)
    if document.sender and any(_BULK_MAIL.search(each.text) for each in passages):
        return
    seen_texts: set[str] = set()
    statements: list[Statement] = []
    names: tuple[str, ...] = ()
    for memory in passages:
        if _MAIL_HEAD.match(memory.text + "\n"):
            continue
        spans = _sentences(memory)
        drawn, names = _drawn_rows(memory, spans, names)
        for place, (start, end) in enumerate(spans):
            at = (memory.start or 0) + start
            owner = next((m for m in facts if _covers(m, at, at + end - start)), memory)
            if row := drawn.get((start, end)):
                labelled, span = replace(memory, text=row), (0, len(row))
                statement = _statement(owner, labelled, span, span, document)
            else:
                quote = _quote_span(memory, spans, place)
                statement = _statement(owner, memory, (start, end), quote, document)
            if statement is not None and statement.text.casefold() not in seen_texts:
                seen_texts.add(statement.text.casefold())
                statements.append(statement)
    is_long = len(statements) > _LONG
    yield from (
        each
        for each in statements
        if each.is_kept or each.is_row or each.memory.turn is not None or not is_long
    )
    whole = " ".join(seen_texts)
    for memory in sorted((m for m in facts if m.row is None), key=lambda m: m.id):
        bare = replace(memory, text=bare_statement(memory.text, memory.title))
        spans = split_sentences(bare.text)
        for place, span in enumerate(spans):
            quote = _quote_span(bare, spans, place)
            statement = _statement(memory, bare, span, quote, document)
            if statement is not None and statement.text.casefold() not in whole:
                yield statement


class _Document(Struct, frozen=True):
    """What the beginning of a document says of the whole."""

    day: date | None
    topic: str
    sender: str
    participants: str
    """The addresses that a mail is from and to, in the same order for a reply."""
    language: str
    address: str
    """That which a mail is from; "" of what is no mail."""

    @classmethod
    def of(cls, passages: Sequence[Memory]) -> _Document:
        """Return what the first passages say of their document."""
        if not passages:
            return cls(None, "", "", "", "", "")
        first = passages[0]
        head = _MAIL_HEAD.match(first.text + "\n") if not first.start else None
        said = "\n".join(each.text for each in passages[bool(head) : _MOST_READ_FOR_LANGUAGE])
        return cls(
            None if first.start else _day_of_head(first),
            _defined_title(first),
            head["sender"] if head else "",
            _participants(head.group()) if head else "",
            identify_language(said),
            _sender_address(head.group()) if head else "",
        )


def _sender_address(head: str) -> str:
    sent_from = head.partition("\n")[0].removeprefix("From: ")
    return next((address.casefold() for _, address in getaddresses([sent_from])), "")


def _participants(head: str) -> str:
    addresses = getaddresses(_PARTICIPANTS.findall(head))
    return " ".join(sorted({address.casefold() for _, address in addresses if address}))


def _sentences(memory: Memory) -> list[tuple[int, int]]:
    """Return where the sentences of a passage are, or its rows, without time and speaker."""
    if memory.row is not None:
        return [row.span() for row in _ROW.finditer(memory.text)]
    said = 0
    if memory.turn is not None and memory.speaker:
        said = memory.text.find(f"{memory.speaker}:") + 1
        said += len(memory.speaker) if said else 0
    spans = ((max(start, said), end) for start, end in split_sentences(memory.text))
    return [
        (start, end)
        for start, end in spans
        if memory.text[start:end].strip() and not _QUOTED_REPLY.match(memory.text, start)
    ]


def _drawn_rows(
    memory: Memory, spans: Sequence[tuple[int, int]], names: tuple[str, ...]
) -> tuple[dict[tuple[int, int], str], tuple[str, ...]]:
    """Return the rows of a table that is drawn with bars, each as ``name: value; name: value``.

    A row that has not as many cells as the table has columns is left out, and so is one whose
    first cell is empty: it goes on with the row above.

    Args:
        memory: A passage.
        spans: Where its lines are.
        names: Those of the columns of the table that the passage before ends with.

    Returns:
        The rows by where they stand, and the names of the columns for the passage after it.
    """
    if memory.row is None or _DRAWN_ROW.search(memory.text) is None:
        return {}, ()
    rows: dict[tuple[int, int], str] = {}
    lines = [(span, memory.text[slice(*span)]) for span in spans]
    cells = [drawn_cells(line) if _DRAWN_ROW.match(line) else [] for _, line in lines]
    for place, (span, _) in enumerate(lines):
        if is_rule(cells[place]):
            names = drawn_names(cells[place - 1]) if place else ()
        elif not cells[place] or is_rule(cells[place + 1] if place + 1 < len(cells) else []):
            names = ()  # of a table that is over
        elif len(cells[place]) == len(names) and cells[place][0]:
            rows[span] = row_line(zip(names, cells[place], strict=True))
    return rows, names


def _quote_span(memory: Memory, spans: Sequence[tuple[int, int]], place: int) -> tuple[int, int]:
    """Return where a sentence stands with those after and before it in its paragraph."""
    start, end = spans[place]
    if memory.row is not None:
        return start, end

    def goes_on(one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Return whether two sentences stand in one paragraph."""
        between = memory.text[one[1] : other[0]]
        is_apart = has_empty_line(between) or _ITEM.match(memory.text, other[0])
        return not is_apart and _HEADING.match(memory.text[slice(*one)]) is None

    first = last = place
    while last + 1 < len(spans) and goes_on(spans[last], spans[last + 1]):
        if spans[last + 1][1] - start > _LONGEST_QUOTE:
            break
        last += 1
    while first and goes_on(spans[first - 1], spans[first]):
        if spans[last][1] - spans[first - 1][0] > _LONGEST_QUOTE:
            break
        first -= 1
    return spans[first][0], spans[last][1]


def _defined_title(memory: Memory) -> str:
    name = re.split(r"[,(:]", memory.title)[0].strip().casefold()
    opening = memory.text[:_HEAD].casefold().removeprefix(memory.title.casefold()).lstrip()
    return memory.title if name and opening.startswith(name) and _IS.search(opening) else ""


def _covers(memory: Memory, start: int, end: int) -> bool:
    if memory.start is None or memory.end is None:
        return False
    return memory.start < end and start < memory.end


def _statement(
    owner: Memory,
    memory: Memory,
    span: tuple[int, int],
    quote: tuple[int, int],
    document: _Document,
) -> Statement | None:
    text = memory.text[slice(*span)]
    prose = text if memory.row is None else _COLUMN_NAMES.sub(r"\1", text)
    if _HEADING.match(text) or memory.type == "code" or _MACHINE_OUTPUT.search(prose):
        return None
    plain = insight_wording.quotable(text)
    shortest = _LENGTHS[0] if memory.turn is None else _SHORTEST_SPEECH
    if not shortest <= len(plain) <= _LENGTHS[1] or plain.endswith("…"):
        return None
    if _SALUTATION.fullmatch(text):
        return None
    if memory.row is None and sum(map(str.isalpha, plain)) < _FEWEST_LETTERS * len(
        plain.replace(" ", "")
    ):
        return None
    found = values(plain)
    words, slots = _words(plain, found, document.language)
    if memory.row is not None:
        words, slots = _without_columns(plain, words, slots)
    day, is_dated = _day(memory, span, document.day)
    slots = tuple(slot for slot in slots if not _is_entry_day(slot.value, day))
    stems = frozenset(stem for _, own in words for stem in own)
    speaker = memory.speaker or document.sender
    whole = _quoted(memory.text[slice(*quote)])
    above = (memory.title, memory.heading, speaker) if memory.turn is None else ()
    titles = _stems(" ".join(above), document.language)
    thread = ""
    if memory.turn is not None:
        thread = memory.document_id or ""
    elif document.sender:
        thread = f"{insight_wording.subject(memory.title)}\n{document.participants}".casefold()
    return Statement(
        owner, plain, speaker, day, is_dated, words, stems, slots, document.topic,
        whole, _stems(whole, document.language) | stems, titles, thread, document.language,
        document.address,
    )  # fmt: skip


def _quoted(text: str) -> str:
    """Return sentences as they are quoted in one line, notes that end without a mark set apart."""
    if "\n" not in text:
        return insight_wording.quotable(text)
    spans = split_sentences(text)
    said = [insight_wording.quotable(text[start:end]) for start, end in spans]
    between = [
        " / " if "\n" in text[end:start] and not _ENDED.search(text, 0, end) else " "
        for (_, end), (start, _) in pairwise(spans)
    ]
    return "".join(chain.from_iterable(zip_longest(said, between, fillvalue="")))


def _is_entry_day(value: Value, day: date) -> bool:
    """Return whether a value is the day by which an entry of a diary begins."""
    if value.start:
        return False
    if value.unit.lower() in WEEKDAYS:
        return True
    return value.kind == "date" and any(
        (number, month or day.month) == (day.day, day.month) for _, month, number in value.readings
    )


@lru_cache(maxsize=1_000)
def _stems(text: str, language: str) -> frozenset[str]:
    """Return the stems of titles or of a quote, which neighbouring sentences share."""
    found = frozenset(terms(text, language)) - calendar_stems()
    return frozenset(stem for stem in found if not stem[0].isdigit())


def _words(
    text: str, found: Sequence[Value], language: str = ""
) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[Slot, ...]]:
    times = [(v.start, v.end) for v in found if v.kind in ("date", "time")]
    measured = [_without_unit(v) for v in found]
    sizes = [match.span() for match in _SIZE.finditer(text)]
    numbers = [
        value
        for value in (*measured, *_bare_numbers(text, found))
        if value.kind == "money" or not any(start <= value.start < end for start, end in sizes)
    ]
    stems: list[tuple[int, str, frozenset[str]]] = []
    for match in _WORD.finditer(text):
        if any(a <= match.start() < b for a, b in times):
            continue
        is_number = text[max(match.start() - 1, 0)].isdigit() or match.group()[0].isdigit()
        own = frozenset() if is_number else _stems_of_word(match.group(), language)
        stems.append((match.start(), match.group(), own))
    slots = []
    for value in sorted(numbers, key=lambda v: v.start):
        before = [own for start, _, own in stems if start < value.start][-_NEAR:]
        stop = _PART_END.search(text, value.end)
        end = stop.start() if stop else len(text)
        after = [own for start, _, own in stems if value.end <= start < end][:_NEAR]
        slots.append(Slot(value, frozenset().union(*before, *after)))
    return tuple((word, own) for _, word, own in stems if own), tuple(slots)


@lru_cache(maxsize=50_000)
def _stems_of_word(word: str, language: str) -> frozenset[str]:
    return frozenset(terms(word, language)) - calendar_stems()


@lru_cache(maxsize=10_000)
def slots_of(text: str) -> tuple[Slot, ...]:
    """Return the values that a text states, each with the stems around it."""
    return _words(text, values(text))[1]


def _without_unit(value: Value) -> Value:
    """Return a number before a word that is no unit ("940 since May") as one without any."""
    number = _LEADING_NUMBER.match(value.text)
    if value.kind != "quantity" or number is None:
        return value
    if terms(value.unit) and load_task_encoder().frequency_rank(value.unit) > _COMMON:
        return value
    end = value.start + number.end()
    return Value("number", value.readings, "", value.start, end, number.group())


def _without_columns(
    row: str, words: tuple[tuple[str, frozenset[str]], ...], slots: tuple[Slot, ...]
) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[Slot, ...]]:
    """What a row says without the names of its columns, which every row has, and its day."""
    names = frozenset(stem for name in _COLUMN.findall(row) for stem in terms(name))
    kept = tuple((word, own - names) for word, own in words if own - names)
    heads = [match.span() for match in _COLUMN.finditer(row)]
    return kept, tuple(
        slot
        for slot in slots
        if slot.value.kind not in ("date", "time")
        and not any(start <= slot.value.start < end for start, end in heads)
    )


def _bare_numbers(text: str, found: Sequence[Value]) -> Iterator[Value]:
    """Numbers without a unit: "385, maybe 390"."""
    for match in _NUMBER.finditer(text):
        if any(v.start < match.end() and match.start() < v.end for v in found):
            continue
        if re.match(r"0\d", match[1]):  # of a telephone
            continue
        plain = re.sub(r"[,.'\u00a0](?=\d{3}(?:\D|$))", "", match[1]).replace(",", ".")
        if plain.count(".") <= 1:
            number = float(plain) * (1000 if match[2] else 1)
            yield Value("number", ((number,),), "", match.start(), match.end(), match.group())


def _day(memory: Memory, span: tuple[int, int], head: date | None) -> tuple[date, bool]:
    """Return the day on which something was said, and whether the source says so.

    A row of a table, a line that begins with a date, and what stands under one has a day of its
    own; a day in the name of a file was put there by its author.  An instant with fractions of a
    second is when the file was written to this disk, or read.
    """
    line = memory.text[memory.text.rfind("\n", 0, span[0]) + 1 : span[1]]
    is_row_of_text = memory.row is not None and memory.doc_type in OF_PROSE
    if is_row_of_text:  # a day that is only spoken of in a cell is not that of the row
        line = next(filter(_is_day, row_cells(line).values()), "")
    elif memory.row is None:
        begins = memory.turn is None and _ENTRY.match(line)
        line = line[:_ENTRY_DATE] if begins else ""
    if day := _first_day(line) or _first_day(memory.heading):
        return day, True
    is_of_text = memory.row is None or is_row_of_text
    if memory.turn is None and is_of_text and memory.document_id is not None:
        name = source_name(memory.source)
        if day := _first_day(name):
            return day, True
        if week := _WEEK.search(name):
            return date.fromisocalendar(int(week["year"]), int(week["week"]), 1), True
    day = memory.created_at.date()
    if memory.document_id is None or not memory.created_at.microsecond:
        return day, True
    return (head, True) if head is not None and head <= day else (day, False)


def _is_day(cell: str) -> bool:
    """Return whether a cell says a day and nothing else."""
    return any(span.day and span.end - span.start == len(cell) for span in date_spans(cell))


@lru_cache(maxsize=1_000)
def _first_day(text: str) -> date | None:
    """Return the day that a text names first; headings and names of files come many times."""
    return next(filter(None, (span.day for span in date_spans(text))), None)


def _day_of_head(memory: Memory) -> date | None:
    """Return the day of a line that says little else; one in a sentence is what that is about."""
    for line in memory.text[:_HEAD].splitlines():
        for span in date_spans(line):
            if span.day and len(line) - (span.end - span.start) <= _BESIDE_DAY:
                return span.day
    return None


@cache
def calendar_stems() -> frozenset[str]:
    """Stems of the names of months, weekdays and lengths of time, and of numbers in words."""
    lists = [
        names
        for language in all_languages()
        for names in (*language.months, *language.weekdays, *language.units.values())
    ]
    lists.append(tuple(numerals("en")))
    stems_of = (terms(name) for names in lists for name in names)
    return frozenset(stems[0] for stems in stems_of if len(stems) == 1)


_FEWEST_DOCUMENTS = 8
"""With fewer than these, what is common cannot be distinguished from what is rare."""


_USUAL = 12_000
"""A word up to this rank doesn't tell two names apart: "Lanes" has 8,900, "Corner" 1,400."""
_COMMON, _RARE = 300, 5000
"""Ranks of words of usual English: one as frequent says little, one as rare all that it can."""
_LEAST_COMMON = 0.1
_NAMES = 0.6


class StemWeights:
    """How much a stem says: the fewer documents have it, the more (inverse document frequency).

    A word that is frequent everywhere says less, even where few of these documents have it.
    """

    def __init__(self, found: Iterable[Statement]) -> None:
        documents: dict[str, set[str]] = defaultdict(set)
        speakers: set[str] = set()
        entities: set[str] = set()
        self._words: dict[str, str] = {}
        capitals: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for each in found:
            for word, own in each.words[1:]:
                counts.update(own)
                capitals.update(own if word[:1].isupper() else ())
            documents[each.document] |= each.stems
            speakers.update(terms(each.speaker))
            entities.update(each.memory.entities)
            for word, own in each.words:
                for stem in own:
                    if len(word) < len(self._words.get(stem, word + " ")):
                        self._words[stem] = word
        self._count = max(len(documents), _FEWEST_DOCUMENTS)
        self._frequency = Counter(stem for stems in documents.values() for stem in stems)
        self._speakers = speakers
        self._names = {stem for stem, n in capitals.items() if n > _NAMES * counts[stem]}
        self._rank = load_task_encoder().frequency_rank
        self._rare_names = frozenset(
            stem
            for stem in self._names.intersection(stem for name in entities for stem in terms(name))
            if self._rank(self._words.get(stem, stem)) > _USUAL
        )
        self._weights: dict[str, float] = {}

    def of(self, stem: str) -> float:
        """The weight of a stem; the names of those who write everywhere weigh little."""
        if stem not in self._weights:
            weight = math.log((self._count + 1) / max(self._frequency[stem], 1))
            rank = max(self._rank(self._words.get(stem, stem)), 1)
            share = math.log(rank / _COMMON) / math.log(_RARE / _COMMON)
            weight *= min(max(share, _LEAST_COMMON), 1.0)
            self._weights[stem] = 0.3 * weight if stem in self._speakers else weight
        return self._weights[stem]

    @property
    def rare(self) -> float:
        """The weight of a word that one document has and hardly any other text."""
        return math.log(self._count + 1)

    def is_name(self, stem: str) -> bool:
        """Return whether a stem is mostly written with a capital letter inside sentences."""
        return stem in self._names

    def are_of_two_things(self, one: Statement, other: Statement) -> bool:
        """Return whether two statements are of different customers, places or persons.

        Each is of what its titles name, or itself where these name nothing, or else what stands
        around it, and neither side has a name of the other one anywhere around it, nor is either
        about who wrote the other.
        """
        for each, writer in ((one, other.speaker), (other, one.speaker)):
            if not each.stems.isdisjoint(_stems(writer, "") & self._rare_names):
                return False
        mine, theirs = self._subject(one), self._subject(other)
        return bool(mine and theirs) and not (mine & other.context or theirs & one.context)

    def _subject(self, statement: Statement) -> frozenset[str]:
        """Return the stems of the names that say what a statement is of."""
        of_titles = statement.titles - _stems(statement.speaker, "")
        named = (of_titles, statement.stems, statement.around)
        return next((names for each in named if (names := each & self._rare_names)), frozenset())

    def sum(self, stems: Iterable[str]) -> float:
        """That of several together, the same in whatever order they come."""
        return math.fsum(map(self.of, stems))

    def shared_weight(
        self, one: Statement, other: Statement, *, besides_titles: bool = False
    ) -> float:
        """What two statements share, that around them by half."""
        around = self.around(one, other, besides_titles=besides_titles)
        return self.sum(one.stems & other.stems) + 0.5 * around

    def around(self, one: Statement, other: Statement, *, besides_titles: bool = False) -> float:
        """What two statements share only around them.

        Without what both titles have: minutes of one committee have one title and many subjects.
        """
        shared = (one.context & other.context) - (one.stems & other.stems)
        return self.sum(shared - (one.titles & other.titles) if besides_titles else shared)

    def most(self, stems: Iterable[str]) -> float:
        """That of the weightiest."""
        return max(map(self.of, stems), default=0.0)


def at_noon(day: date) -> datetime:
    """The day as an instant."""
    return datetime.combine(day, time(12), UTC)


def relatedness(one: Statement, other: Statement) -> float:
    """Return how likely two statements are on one thing, in log odds of the reading model.

    It is asked whether each answers the other, with and without what stands around it.  That they
    have the same rare words says much less: texts of one person or firm all do.
    """
    model = load_task_encoder()
    odds = 0.0
    for asked, said in ((one, other), (other, one)):
        around = said.quote.replace(said.text, " ")
        context = " | ".join(filter(None, (said.memory.title, " ".join(around.split()))))
        alone, within = model.score_answers(asked.text, [("", said.text), (context, said.text)])
        odds += float(alone + within)
    return odds
