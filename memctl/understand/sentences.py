"""Where sentences stand in a text: spans without surrounding white space, in order, disjoint.

A sentence ends at its punctuation, at an empty line, and at a line end that is more than the
wrapping of a paragraph: before a list item or a heading, or between the lines of a chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memctl.understand.stopwords import words
from memctl.understand.wrapping import wrapped

Span = tuple[int, int]

_ENDS = re.compile(
    r"(?P<mark>[.!?…]++)(?P<closing>[\"'”’»)\]*_]*+)(?=\s)"
    r"|[。！？｡]++[」』）”’]*+"
)
_MARK = re.compile(r"[.!?…。！？｡]")
_RUN = re.compile(r"[.!?…]*")
_LAST_WORD = re.compile(r"[^\s(\[\"“‘']*$")
_LONGEST_WORD = 40
_NEXT_WORD = re.compile(r"\s*[\"'“‘«(\[*_]*(\w*)")
_ALWAYS_SHORT = words(
    """mr mrs ms mx dr prof st vs e.g i.e cf viz approx ca no nos fig figs eq sec ch vol pp p ed
    eds rev gen col sgt capt lt cmdr adm hon pres gov sen rep dept est min max avg tel ext al
    op jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri z.b d.h
    u.a bzw bspw ggf inkl evtl nr str hr fr sog usw p.ex m mme mlle sr sra srta dott sig incl
    resp messrs mt ft"""
)
_SHORT_BEFORE_LOWER_CASE = words(
    "etc inc ltd co corp jr sr bros llc plc esq phd ph.d m.d a.m p.m u.s u.k u.s.a b.c a.d"
)
_LONGEST_SHORT = max(map(len, _ALWAYS_SHORT | _SHORT_BEFORE_LOWER_CASE))
_MONTHS_AFTER_ORDINALS = words(
    """januar februar märz april mai juni juli august september oktober november dezember januari
    februari maart mei augustus oktober"""
)


def sentences(text: str) -> list[Span]:
    """Return the half-open span of each sentence of a text."""
    return [span for start, end in _blocks(text) for span in _within(text, start, end)]


def _blocks(text: str) -> Iterator[Span]:
    """Yield runs of lines within which only punctuation can end a sentence."""
    if "\n" not in text:
        yield 0, len(text)
        return
    paragraph: list[Span] = []
    position = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            paragraph.append((position, position + len(line)))
        else:
            yield from _unwrapped(text, paragraph)
            paragraph = []
        position += len(line)
    yield from _unwrapped(text, paragraph)


def _unwrapped(text: str, lines: list[Span]) -> Iterator[Span]:
    """Join the lines of a paragraph that were only wrapped."""
    if not lines:
        return
    start = lines[0][0]
    goes_on = wrapped([text[first:last].rstrip() for first, last in lines])
    for (_, end), (following, _), joined in zip(lines, lines[1:], goes_on, strict=False):
        if not joined:
            yield start, end
            start = following
    yield start, lines[-1][1]


def _within(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of one block."""
    first, last = _trimmed(text, start, end)
    begin = first
    for match in _ends(text, first, last):
        if _ends_here(text, match, begin):
            yield begin, match.end()
            begin = _skip_space(text, match.end(), last)
    if begin < last:
        yield begin, last


def _ends(text: str, first: int, last: int) -> Iterator[re.Match[str]]:
    """Where sentences may end; looking for single marks first is fast, as most text has none."""
    position = first
    for mark in _MARK.finditer(text, first, last):
        if mark.start() >= position:
            match = _ENDS.match(text, mark.start(), last)
            if match:
                yield match
            position = (match or _RUN.match(text, mark.start(), last) or mark).end()


def _ends_here(text: str, match: re.Match[str], begin: int) -> bool:
    mark = match.group("mark")
    if mark is None:
        return True
    if mark != ".":
        word = _word_after(text, match.end())
        return not word[:1].islower() or (
            "…" not in mark and "." not in mark and not match["closing"]
        )
    before = _word_before(text, match.start(), begin)
    if len(before) > _LONGEST_SHORT and "." not in before:
        return True
    starts_block = match.start() - len(before) == begin
    return not _is_abbreviated(before, _word_after(text, match.end()), alone=starts_block)


def _word_before(text: str, dot: int, begin: int) -> str:
    before = text[max(begin, dot - _LONGEST_WORD) : dot]
    word = before.rpartition(" ")[2]
    if word.isalnum():
        return word
    found = _LAST_WORD.search(before)
    return found.group() if found else ""


def _word_after(text: str, position: int) -> str:
    following = _NEXT_WORD.match(text, position)
    return following.group(1) if following else ""


def _is_abbreviated(word: str, following: str, *, alone: bool) -> bool:
    """Tell whether the dot after a word belongs to it; ``alone`` when nothing stands before."""
    lower = word.lower()
    if len(word) == 1 and word.isalpha():
        return word != "I" and (word.isupper() or following[:1].islower())
    if word.isdigit() and len(word) <= 3:
        return alone or following.lower() in _MONTHS_AFTER_ORDINALS
    if lower in _SHORT_BEFORE_LOWER_CASE or ("." in word and word.replace(".", "").isupper()):
        return not following[:1].isupper()
    return lower in _ALWAYS_SHORT and not (lower == "no" and following[:1].isupper())


def _trimmed(text: str, start: int, end: int) -> Span:
    block = text[start:end]
    return start + len(block) - len(block.lstrip()), start + len(block.rstrip())


def _skip_space(text: str, position: int, end: int) -> int:
    while position < end and text[position].isspace():
        position += 1
    return position
