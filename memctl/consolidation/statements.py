"""The sentences that insights are drawn from: each with its day, what it speaks of, its values.

A sentence that was distilled into a memory stands for that memory, any other one for its passage.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from typing import TYPE_CHECKING

from memctl.consolidation import insight_wording
from memctl.language.date_mentions import date_spans
from memctl.language.sentence_splitting import split_sentences
from memctl.language.sentence_values import Value, values
from memctl.language.term_analysis import terms
from memctl.language.word_lists import all_languages
from memctl.records import Memory
from memctl.schema.arrow_tables import memory_rows
from memctl.store.tables.filter_expressions import col
from memctl.understanding.sentence_reading import bare_statement

if TYPE_CHECKING:
    from memctl.store.store import Snapshot

MOST_MEMORIES = 20_000
"""Insights are drawn from so many memories and passages, the newest ones."""
_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "source", "external_id", "start", "end", "heading", "speaker", "session_id", "turn", "row",
    "entities", "topics", "keywords", "tags", "importance", "method", "metadata",
)  # fmt: skip
_LENGTHS = (12, 320)
_HEAD = 240
"""Characters at the beginning of a document in which it says its own day."""
_BESIDE_DAY = 20
"""Characters that may stand beside it in its line: "Date:", a weekday."""
_LONG = 150
"""Of a document with more sentences only those count that were distilled into memories."""
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~|[-=*_]{3,}\s*$)")
_SPEAKER = re.compile(
    r"\s*(?:\[[^\]]{1,40}\]\s*)?(?P<name>[^\W\d][\w.'’-]*(?: [\w.'’-]+){0,2}):\s+"
)
_SHORTEST_SPEECH = 10
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,:/]*")
_NUMBER = re.compile(
    r"(?<![\w.,:/-])(\d+(?:[.,'\u00a0]\d{3})*(?:[.,]\d+)?)(k\b)?"
    r"(?!(?:st|nd|rd|th)\b|[\w:/-]*\d)"
)
_ROW = re.compile(r"\S[^\n]*")
_COLUMN = re.compile(r"(?:^|; )([^:;]{1,40}): ")
_MACHINE = re.compile(
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


@dataclass(frozen=True, slots=True)
class Slot:
    """A value with the stems of the words around it."""

    value: Value
    near: frozenset[str]


@dataclass(frozen=True, slots=True)
class Statement:
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

    @property
    def document(self) -> str:
        """The id of its document, or of the memory that somebody stated."""
        return self.memory.document_id or self.memory.id

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return self.memory.row is not None

    @property
    def is_kept(self) -> bool:
        """Whether it is part of a distilled memory, not of a passage alone."""
        return self.memory.level == "memory"

    @property
    def cited(self) -> str:
        """The sentence with where it stands and its day."""
        where = insight_wording.source(self.memory)
        when = f", {insight_wording.day(self.day)}" if self.is_dated else ""
        return f"{insight_wording.quoted(insight_wording.quotable(self.text))} ({where}{when})"

    def precedes(self, other: Statement) -> bool:
        """Tell whether it is known to have been said on an earlier day."""
        return self.day < other.day and self.is_dated == other.is_dated


def read_statements(snapshot: Snapshot, now: datetime) -> list[Statement]:
    """Return the statements of a knowledge base that hold, those of a document in its order."""
    holds = (col("valid_to").is_null() | (col("valid_to") > now)) & (
        col("expires_at").is_null() | (col("expires_at") > now)
    )
    worth = holds & (col("level") != "insight") & (col("type") != "gist")
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
    kept = [m for m in memories if m.level == "memory"]
    head = _day_of_head(passages[0]) if passages and not passages[0].start else None
    topic = _defined(passages[0]) if passages else ""
    seen: set[str] = set()
    read: list[Statement] = []
    for memory in passages:
        for start, end in _sentences(memory):
            text = memory.text[start:end]
            at = (memory.start or 0) + start
            owner = next((m for m in kept if _covers(m, at, at + len(text))), memory)
            found = _statement(owner, memory, text, head, topic)
            if found is not None and found.text.casefold() not in seen:
                seen.add(found.text.casefold())
                read.append(found)
    is_long = len(read) > _LONG
    yield from (each for each in read if each.is_kept or each.is_row or not is_long)
    whole = " ".join(seen)
    for memory in sorted(kept, key=lambda m: m.id):
        bare = bare_statement(memory.text, memory.title)
        for start, end in split_sentences(bare):
            found = _statement(memory, memory, bare[start:end], head, topic)
            if found is not None and found.text.casefold() not in whole:
                yield found


def _sentences(memory: Memory) -> list[tuple[int, int]]:
    """Return where the sentences of a passage are, or its rows."""
    if memory.row is None:
        return split_sentences(memory.text)
    return [row.span() for row in _ROW.finditer(memory.text)]


def _defined(memory: Memory) -> str:
    name = re.split(r"[,(:]", memory.title)[0].strip().casefold()
    opening = memory.text[:_HEAD].casefold().removeprefix(memory.title.casefold()).lstrip()
    return memory.title if name and opening.startswith(name) and _IS.search(opening) else ""


def _covers(memory: Memory, start: int, end: int) -> bool:
    if memory.start is None or memory.end is None:
        return False
    return memory.start < end and start < memory.end


def _statement(
    owner: Memory, said: Memory, text: str, head: date | None, topic: str
) -> Statement | None:
    if _HEADING.match(text) or said.type == "code" or _MACHINE.search(text):
        return None
    plain = insight_wording.quotable(text)
    if not _LENGTHS[0] <= len(plain) <= _LENGTHS[1] or plain.endswith(("?", "…")):
        return None
    if said.row is None and sum(map(str.isalpha, plain)) < _FEWEST_LETTERS * len(
        plain.replace(" ", "")
    ):
        return None
    speaker, body = _speech(plain, said)
    found = values(body)
    words, slots = _words(body, found)
    if said.row is not None:
        words, slots = _without_columns(body, words, slots)
    day, is_dated = _day(said, text, head)
    stems = frozenset(stem for _, own in words for stem in own)
    return Statement(owner, body, speaker, day, is_dated, words, stems, slots, topic)


def _speech(text: str, memory: Memory) -> tuple[str, str]:
    """Split "Ann: we moved" into who says it and what is said."""
    said = _SPEAKER.match(text)
    spoken = memory.speaker is not None or memory.turn is not None
    if said and spoken and len(text) - said.end() >= _SHORTEST_SPEECH:
        return said["name"], text[said.end() :]
    return memory.speaker or "", text


def _words(
    text: str, found: Sequence[Value]
) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[Slot, ...]]:
    times = [(v.start, v.end) for v in found if v.kind in ("date", "time")]
    numbers = [*found, *_bare_numbers(text, found)]
    stems: list[tuple[int, str, frozenset[str]]] = []
    for match in _WORD.finditer(text):
        skip = match.group()[0].isdigit() or any(a <= match.start() < b for a, b in times)
        own = frozenset() if skip else frozenset(terms(match.group())) - calendar_stems()
        stems.append((match.start(), match.group(), own))
    slots = []
    for value in sorted(numbers, key=lambda v: v.start):
        at = sum(start < value.start for start, _, _ in stems)
        around = stems[max(at - _NEAR, 0) : at + _NEAR + 1]
        slots.append(Slot(value, frozenset(stem for _, _, own in around for stem in own)))
    return tuple((word, own) for _, word, own in stems if own), tuple(slots)


def _without_columns(
    row: str, words: tuple[tuple[str, frozenset[str]], ...], slots: tuple[Slot, ...]
) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[Slot, ...]]:
    """What a row says without the names of its columns, which every row has, and its day."""
    names = frozenset(stem for name in _COLUMN.findall(row) for stem in terms(name))
    kept = tuple((word, own - names) for word, own in words if own - names)
    return kept, tuple(slot for slot in slots if slot.value.kind not in ("date", "time"))


def _bare_numbers(text: str, found: Sequence[Value]) -> Iterator[Value]:
    """Numbers without a unit: "385, maybe 390"."""
    for match in _NUMBER.finditer(text):
        if any(v.start < match.end() and match.start() < v.end for v in found):
            continue
        plain = re.sub(r"[,.'\u00a0](?=\d{3}(?:\D|$))", "", match[1]).replace(",", ".")
        if plain.count(".") <= 1:
            number = float(plain) * (1000 if match[2] else 1)
            yield Value("number", ((number,),), "", match.start(), match.end(), match.group())


def _day(memory: Memory, text: str, head: date | None) -> tuple[date, bool]:
    """Return the day on which something was said, and whether the source says so.

    A row of a table, and what stands under a date, has a day of its own.
    """
    for span in date_spans(memory.heading if memory.row is None else text):
        if len(span.iso) == 10:
            return date.fromisoformat(span.iso), True
    day = memory.created_at.date()
    if memory.document_id is None or day != memory.valid_from.date():
        return day, True
    return (head, True) if head is not None and head <= day else (day, False)


def _day_of_head(memory: Memory) -> date | None:
    """Return the day of a line that says little else; one in a sentence is what that is about."""
    for line in memory.text[:_HEAD].splitlines():
        for span in date_spans(line):
            if len(span.iso) == 10 and len(line) - (span.end - span.start) <= _BESIDE_DAY:
                return date.fromisoformat(span.iso)
    return None


@cache
def calendar_stems() -> frozenset[str]:
    """Stems of the names of months, weekdays and lengths of time."""
    lists = [
        names
        for language in all_languages()
        for names in (*language.months, *language.weekdays, *language.units.values())
    ]
    return frozenset(stem for names in lists for name in names for stem in terms(name))


_FEWEST_DOCUMENTS = 8
"""With fewer than these, what is common cannot be told from what is rare."""


class StemWeights:
    """How much a stem says: the fewer documents have it, the more (inverse document frequency)."""

    def __init__(self, found: Iterable[Statement]) -> None:
        documents: dict[str, set[str]] = defaultdict(set)
        speakers: set[str] = set()
        for each in found:
            documents[each.document] |= each.stems
            speakers.update(terms(each.speaker))
        self._count = max(len(documents), _FEWEST_DOCUMENTS)
        self._frequency = Counter(stem for stems in documents.values() for stem in stems)
        self._speakers = speakers

    def of(self, stem: str) -> float:
        """The weight of a stem; the names of those who write everywhere weigh little."""
        weight = math.log((self._count + 1) / max(self._frequency[stem], 1))
        return 0.3 * weight if stem in self._speakers else weight

    def sum(self, stems: Iterable[str]) -> float:
        """That of several together."""
        return sum(map(self.of, stems))

    def most(self, stems: Iterable[str]) -> float:
        """That of the weightiest."""
        return max(map(self.of, stems), default=0.0)


def at_noon(day: date) -> datetime:
    """The day as an instant."""
    return datetime.combine(day, time(12), UTC)
