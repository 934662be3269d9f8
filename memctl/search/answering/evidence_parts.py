"""The parts of a hit that may be quoted: its sentences, rows and entries of structured data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.language.sentence_splitting import split_sentences
from memctl.language.term_analysis import query_terms
from memctl.records import Hit
from memctl.search.query.question import Question
from memctl.understanding.text_outline import speaker_of

LONGEST = 400
"""Characters of a quote; a longer sentence is cut between words."""
PATH_SEPARATOR = " > "
"""Between the keys above a value of structured data and the value."""
_SHORTEST = 12
_MOST_A_HIT = 60
_LINE = re.compile(r"\S[^\n]*")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """``hit.text[start:end]``."""

    start: int
    end: int
    text: str
    path: str
    """The keys above a value of structured data, which by itself does not say of what it is."""
    is_title: bool
    """Whether it is a line that stands above others."""
    is_fragment: bool
    """Whether it is too short to say anything."""

    @property
    def told(self) -> str:
        """The text below its keys."""
        return f"{self.path}{PATH_SEPARATOR}{self.text}" if self.path else self.text

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return is_table_row(self.text)


def split_parts(hit: Hit) -> list[Part]:
    """Return the parts of a hit as they read."""
    is_data = are_entries(hit.text)
    return [_part(hit, span, is_data=is_data) for span in _spans(hit.text)]


def quotable(parts: Sequence[Part]) -> list[int]:
    """Return the places of those that may be quoted: fragments only where there is nothing else."""
    whole = [place for place, part in enumerate(parts) if not part.is_fragment]
    return whole or list(range(len(parts)))


def _part(hit: Hit, span: Span, *, is_data: bool) -> Part:
    start, end = span
    text = hit.text[start:end]
    return Part(
        start,
        end,
        text,
        path=hit.heading if is_data and not is_table_row(text) else "",
        is_title=not is_data and _is_title(hit, start, end),
        is_fragment=not is_data and end - start < _SHORTEST,
    )


def _is_title(hit: Hit, start: int, end: int) -> bool:
    line = hit.text[start:end]
    alone = hit.text[end : end + 1] == "\n" and hit.text[start - 1 : start] in ("", "\n")
    return hit.type == "passage" and alone and line[:1].isalnum() and line[-1:].isalnum()


def _spans(text: str) -> list[Span]:
    whole = [
        part
        for sentence in split_sentences(text)
        if not text.startswith("#", sentence[0])
        for start, end in _entries(text, sentence)
        for part in _cut(text, start, end)
    ]
    return whole[:_MOST_A_HIT]


def _entries(text: str, sentence: Span) -> list[Span]:
    """Return the lines of rows and entries, which together look like one wrapped sentence."""
    lines = [line.span() for line in _LINE.finditer(text, *sentence)]
    return lines if all(is_entry(text[start:end]) for start, end in lines) else [sentence]


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut what has no sentences, such as a row of a table, at lines or else between words."""
    while end - start > LONGEST:
        at = max(text.rfind("\n", start, start + LONGEST), start)
        if at == start:
            at = max(text.rfind(" ", start, start + LONGEST), start)
        at = at if at > start else start + LONGEST
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end


_ASKS_WHAT_IS = re.compile(
    r"^\W*what(?:'s| is| was| are| were)\s+(?:the |our |my |your |their |its )?(.+)", re.IGNORECASE
)
_OF = re.compile(r"\s(?:of|for|in|at|on|from|with|to|by)\s", re.IGNORECASE)
_SAYS_IT = re.compile(r"\s(?:is|was|are|were|costs?|amounts? to)\s|:\s|\s=\s", re.IGNORECASE)
_ROW = re.compile(r"^[^;:.]{1,60}: [^;]*; [^;:]{1,60}: ")
_ENTRY = re.compile(r"[^\s:;][^:;\n]{0,60}:[ \t]+\S")
_ITEM = re.compile(r"-[ \t]+\S")
_LABEL = re.compile(r"[^\s:;][^:;\n]{0,60}:$")
_SAID_AT = re.compile(
    r"^\[(?=[^\]\n]*\d)[^\]\n]{4,40}\]\s+(?:(?P<speaker>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}:)\s+)?"
)
_OF_ONESELF = re.compile(r"\b(?:I|I'm|I've|I'll|my|me|mine|ich|mein|je|mon|yo|mi)\b")


def states_value(question: Question, sentence: str, languages: Sequence[str]) -> bool:
    """Tell whether it has the form "THING ... is VALUE" for the thing that is asked for."""
    asked = _ASKS_WHAT_IS.match(question.text)
    said = _SAYS_IT.search(sentence)
    if asked is None or said is None:
        return False
    thing = query_terms(_OF.split(asked.group(1), maxsplit=1)[0], languages)
    if is_table_row(sentence):
        return _has_run(thing, [query_terms(part, languages) for part in _labels(sentence)])
    before = query_terms(sentence[: said.start()], languages)
    return bool(sentence[said.end() :].strip()) and _has_run(thing, [before])


def is_table_row(sentence: str) -> bool:
    """Tell whether it is a row of a table, written as "label: value; label: value"."""
    return _ROW.match(sentence) is not None


def is_entry(line: str) -> bool:
    """Tell whether it is one value of structured data, written as "label: value"."""
    return _ENTRY.match(line) is not None


def are_entries(text: str) -> bool:
    """Tell whether a text is nothing but values with their labels, as data under a key is."""
    lines = text.splitlines()
    return bool(lines) and all(
        is_entry(line) or _ITEM.match(line) or _LABEL.match(line) for line in lines if line.strip()
    )


def speech_start(sentence: str) -> int:
    """Return where the words of a chat line begin, after the time and who says them.

    Who says them is kept where they speak of themselves: without the name that means nothing.
    """
    label = _SAID_AT.match(sentence)
    if label is None or label.end() == len(sentence):
        return 0
    speaks_of_oneself = _OF_ONESELF.search(sentence, label.end()) is not None
    return label.start("speaker") if label["speaker"] and speaks_of_oneself else label.end()


def speaker_label(turn: str) -> str:
    """Return who says a turn of a conversation, as it stands before the words; "" if nobody is
    named."""
    label = _SAID_AT.match(turn)
    return (label["speaker"] if label else speaker_of(turn)) or ""


def _labels(row: str) -> list[str]:
    return [part.partition(":")[0] for part in row.split(";")]


def _has_run(thing: Sequence[str], texts: Sequence[Sequence[str]]) -> bool:
    """Tell whether the terms stand next to each other, in order, in one of the texts."""
    size = len(thing)
    return size > 0 and any(
        list(text[at : at + size]) == list(thing)
        for text in texts
        for at in range(len(text) - size + 1)
    )
