"""The parts of a hit that can be quoted, sentences, rows and entries of data, and their forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.language.sentence_splitting import split_sentences
from memctl.records import Hit

PATH_SEPARATOR = " > "
"""Between the keys above a value of structured data, and the value."""
_LONGEST_QUOTE = 400
"""Characters; a longer sentence is cut between words."""
_SHORTEST_QUOTE = 12
_MAX_PARTS = 60
_DIGIT = re.compile(r"\d")
_LINE = re.compile(r"\S[^\n]*")

_ROW = re.compile(r"^[^;:.]{1,60}: [^;]*; [^;:]{1,60}: ")
_ENTRY = re.compile(r"[^\s:;][^:;\n]{0,60}:[ \t]+\S")
_ITEM = re.compile(r"-[ \t]+\S")
_TITLE = re.compile(r"[^\W\d][^\d:;,.!?\n]{0,60}\w")
_LABEL = re.compile(r"[^\s:;][^:;\n]{0,60}:$")
_SAID_AT = re.compile(
    r"^\[(?=[^\]\n]*\d)[^\]\n]{4,40}\]\s+(?:(?P<speaker>[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}:)\s+)?"
)
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|I'll|my|me|mine|ich|mein|je|mon|yo|mi)\b")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """``hit.text[start:end]``."""

    start: int
    end: int
    text: str
    path: str
    """The keys above a value of structured data, which alone doesn't say what it is about."""
    is_title: bool
    """Whether it is a line above others."""
    is_fragment: bool
    """Whether it is too short to say anything."""

    @property
    def text_with_path(self) -> str:
        """The text below its keys."""
        return f"{self.path}{PATH_SEPARATOR}{self.text}" if self.path else self.text


def split_parts(hit: Hit) -> list[Part]:
    """Return the parts of a hit in reading order."""
    is_data = _are_entries(hit.text)
    return [_part(hit, span, is_data=is_data) for span in _spans(hit.text)]


def quotable_parts(parts: Sequence[Part]) -> list[int]:
    """Return the positions of the parts to quote: fragments only where there is nothing else."""
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
        is_fragment=not is_data and end - start < _SHORTEST_QUOTE and not _DIGIT.search(text),
    )


def _is_title(hit: Hit, start: int, end: int) -> bool:
    """Tell whether a line stands above others; notes are written without full stops, too."""
    line = hit.text[start:end]
    begins = start == 0 or hit.text[:start].endswith("\n\n")
    return (
        hit.type == "passage"
        and begins
        and hit.text[end : end + 1] == "\n"
        and _TITLE.fullmatch(line) is not None
    )


def _spans(text: str) -> list[Span]:
    parts = [
        part
        for sentence in split_sentences(text)
        if not text.startswith("#", sentence[0])
        for start, end in _entries(text, sentence)
        for part in _cut(text, start, end)
    ]
    return parts[:_MAX_PARTS]


def _entries(text: str, sentence: Span) -> list[Span]:
    """Return the lines of rows and entries, which together look like one wrapped sentence."""
    lines = [line.span() for line in _LINE.finditer(text, *sentence)]
    return lines if all(_ENTRY.match(text[start:end]) for start, end in lines) else [sentence]


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut what has no sentences, such as a table row, at line ends or else between words."""
    while end - start > _LONGEST_QUOTE:
        at = max(text.rfind("\n", start, start + _LONGEST_QUOTE), start)
        if at == start:
            at = max(text.rfind(" ", start, start + _LONGEST_QUOTE), start)
        at = at if at > start else start + _LONGEST_QUOTE
        yield start, at
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    if start < end:
        yield start, end


# --- forms ---------------------------------------------------------------------------------------


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks something."""
    return sentence.rstrip("\"'”’)*_").endswith(("?", "？", "؟"))


def is_table_row(sentence: str) -> bool:
    """Tell whether it is a table row, written as "label: value; label: value"."""
    return _ROW.match(sentence) is not None


def speech_start(sentence: str) -> int:
    """Return where the words of a chat line begin, after the time and the speaker.

    A speaker who speaks of himself is kept: without the name, the words would mean nothing.
    """
    label = _SAID_AT.match(sentence)
    if label is None or label.end() == len(sentence):
        return 0
    is_first_person = _FIRST_PERSON.search(sentence, label.end()) is not None
    return label.start("speaker") if label["speaker"] and is_first_person else label.end()


def _are_entries(text: str) -> bool:
    """Tell whether a text is nothing but values with labels, like data under a key."""
    lines = [line for line in text.splitlines() if line.strip()]
    forms = (_ENTRY, _ITEM, _LABEL)
    return bool(text) and all(any(form.match(line) for form in forms) for line in lines)
