"""Where sentences stand in a text: spans without surrounding white space, in order, disjoint.

A sentence ends at its punctuation, at an empty line, and at a line end that is more than the
wrapping of a paragraph: before a list item or a heading, or between the lines of a chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memctl.language.word_lists import all_languages, words_of_all
from memctl.patterns import lazy_regex

Span = tuple[int, int]

QUESTION_MARKS = ("?", "？", "؟")
SENTENCE_MARKS = (*QUESTION_MARKS, ".", "!", "…", "۔", "。", "！", "｡")
"""What a sentence ends with."""
_ENDS = lazy_regex(
    r"(?P<mark>[.!?…؟۔]++)(?P<closing>[\"'”’»)\]*_]*+)(?=\s)"
    r"|[。！？｡]++[」』）”’]*+"
)
_EMPTY_LINE = lazy_regex(r"\n[^\S\n]*\n")
_MARK = lazy_regex(rf"[{''.join(SENTENCE_MARKS)}]")
_RUN = lazy_regex(r"[.!?…؟۔]*")
_LAST_WORD = lazy_regex(r"[^\s(\[\"“‘']*$")
_MAX_WORD_LENGTH = 40
_WIKILINK = lazy_regex(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")
_NEXT_WORD = lazy_regex(r"\s*[\"'“‘«(\[*_]*(\w*)")
_ABBREVIATIONS = words_of_all("abbreviations")
_SHORT_FORMS = words_of_all("abbreviations_before_lower_case")
_BEFORE_NUMBERS = words_of_all("abbreviations_before_numbers")
_NUMBERED_ENDS = tuple(word[1:] for word in _BEFORE_NUMBERS if word.startswith("-"))
_MAX_ABBREVIATION_LENGTH = max(map(len, _ABBREVIATIONS | _SHORT_FORMS))
_AFTER_ORDINALS = words_of_all("words_after_ordinals") | frozenset(
    name
    for language in all_languages()
    if language.code != "en"
    for names in language.months
    for name in names
)


def split_sentences(text: str) -> list[Span]:
    """Return the half-open span of each sentence of a text."""
    return [span for start, end in _blocks(text) for span in _within(text, start, end)]


def without_link_marks(text: str) -> str:
    """Return a text with its wikilinks as they are shown: ``[[shop|the shop]]`` as "the shop"."""
    return _WIKILINK.sub(r"\1", text) if "[[" in text else text


def has_empty_line(text: str) -> bool:
    """Return whether a line of a text is empty but for white space: a paragraph ends there."""
    return _EMPTY_LINE.search(text) is not None


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
            yield from _unwrap(text, paragraph)
            paragraph = []
        position += len(line)
    yield from _unwrap(text, paragraph)


def _unwrap(text: str, lines: list[Span]) -> Iterator[Span]:
    """Join the lines of a paragraph that were only wrapped."""
    if not lines:
        return
    start = lines[0][0]
    goes_on = wrapped_lines([text[first:last].rstrip() for first, last in lines])
    for (_, end), (following, _), joined in zip(lines, lines[1:], goes_on, strict=False):
        if not joined:
            yield start, end
            start = following
    yield start, lines[-1][1]


def _within(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of one block."""
    first, last = _trim(text, start, end)
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
    following = _word_after(text, match.end())
    if following[:1].isdigit() and _is_before_number(before.lower()):
        return False
    if len(before) > _MAX_ABBREVIATION_LENGTH and "." not in before:
        return True
    starts_block = match.start() - len(before) == begin
    if _is_abbreviated(before, following, alone=starts_block):
        return False
    return len(before) > 2 or not _is_spaced(text, match.start(), begin, before, following)


def _word_before(text: str, dot: int, begin: int) -> str:
    before = text[max(begin, dot - _MAX_WORD_LENGTH) : dot]
    word = before.rpartition(" ")[2]
    if word.isalnum():
        return word
    found = _LAST_WORD.search(before)
    return found.group() if found else ""


def _word_after(text: str, position: int) -> str:
    following = _NEXT_WORD.match(text, position)
    return following.group(1) if following else ""


def _is_before_number(word: str) -> bool:
    return word in _BEFORE_NUMBERS or word.endswith(_NUMBERED_ENDS)


def _is_spaced(text: str, dot: int, begin: int, word: str, following: str) -> bool:
    """Return whether a dot belongs to an abbreviation of two words: ``z. B.``, ``p. ex.``."""
    if f"{word}.{following}".lower() in _ABBREVIATIONS:
        return True
    start = dot - len(word)
    if start - begin < len("z. ") or text[start - 2 : start] != ". ":
        return False
    before = _word_before(text, start - 2, begin)
    return f"{before}.{word}".lower() in _ABBREVIATIONS


def _is_abbreviated(word: str, following: str, *, alone: bool) -> bool:
    """Return whether the dot after a word belongs to it; ``alone`` when nothing stands before."""
    lower = word.lower()
    if len(word) == 1 and word.isalpha():
        return word != "I" and (word.isupper() or following[:1].islower())
    if word.isdigit() and len(word) <= 3:
        return alone or following.lower() in _AFTER_ORDINALS
    if lower in _SHORT_FORMS and lower in _ABBREVIATIONS:  # "Sr." after a name, or before one
        return following.lower() not in words_of_all("stop_words")
    if lower in _SHORT_FORMS or ("." in word and word.replace(".", "").isupper()):
        return not following[:1].isupper()
    return lower in _ABBREVIATIONS and not (lower == "no" and following[:1].isupper())


def _trim(text: str, start: int, end: int) -> Span:
    block = text[start:end]
    return start + len(block) - len(block.lstrip()), start + len(block.rstrip())


def _skip_space(text: str, position: int, end: int) -> int:
    while position < end and text[position].isspace():
        position += 1
    return position


_MIN_WIDTH = 40
_MAX_WIDTH = 110
_MIN_WORDS = 3
_NARROWEST_IDEOGRAPHS = 10

_STARTS_ANEW = lazy_regex(
    r"\s*(?:[-*+•‣◦–—]\s|\d{1,3}[.)]\s|\(?[a-zA-Z0-9]\)\s|#{1,6}\s|>|\||```|~~~|\[[ xX]\]"
    r"|[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}:\s|[-=*_~^]{3,}\s*$)"
)
_HEADING = lazy_regex(r"\s*#{1,6}\s|\s*[-=*_~^]{3,}\s*$")
_FIRST_WORD = lazy_regex(r"\s*(\S*)")
_TAG_LAST = lazy_regex(r"(?:^|\s)#[^\W\d_][\w/-]*$")

_LINE_START = lazy_regex(
    r"\s*(?:[\w.'’-]{1,20}[:>]\s|[<@\[]|\(?(?:\d\d?:\d\d|\d{4}-\d\d-\d\d|\d\d?([./])\d\d?\1\d))"
)
_NO_PROSE = lazy_regex(r"\t|[^\s.!?] {2,}\S|[{}=|]|\w\(|:$")
_ENDED = lazy_regex(r"[.!?…。！？｡][\"'”’»)\]」』）*_]*$")
_ENDS_INSIDE = lazy_regex(r"\w{2}[.!?…][\"'”’»)]* \S")
_MARGIN = lazy_regex(r"\s*(?:[-*+•‣◦–—]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)*")
_IDEOGRAPH = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff]")
_UNIT = lazy_regex(r"\d\s?[A-Z]$")
"""As in ``1.8 A``, which is no article."""
_UNFINISHED = words_of_all("unfinished_words")
_LINKING = words_of_all("linking_words")


def wrapped_lines(lines: Sequence[str]) -> list[bool]:
    """Return for each line of a paragraph but the last whether its sentence goes on in the next."""
    width = max(map(len, lines))
    if width > _MAX_WIDTH:
        return [False] * (len(lines) - 1)
    if width < _MIN_WIDTH:
        return _narrow(lines, width)
    pairs = list(pairwise(lines))
    is_filled = 2 * sum(_did_not_fit(*pair, width) for pair in pairs) > len(pairs)
    is_filled = is_filled and _reads_on(lines)
    goes_on: list[bool] = []
    begun = _has_capital(lines[0])
    for line, following in pairs:
        goes_on.append(_is_wrapped(line, following, width, begun=begun, is_filled=is_filled))
        begun = begun if goes_on[-1] else _has_capital(following)
    return goes_on


def _is_wrapped(line: str, following: str, width: int, *, begun: bool, is_filled: bool) -> bool:
    """Return whether a sentence goes on in the next line.

    A small letter there tells so only where sentences begin with a capital: who writes notes
    without capitals begins each line so.  Of such lines, only full ones that read on were wrapped.
    """
    if _starts_new_block(line, following):
        return False
    is_small = _first_word(following)[:1].islower()
    if not begun and not is_filled:
        return is_small and line.split()[-1] in _UNFINISHED
    if is_small and begun and len(line) >= _MIN_WIDTH:
        return True
    return _did_not_fit(line, following, width)


def _reads_on(lines: Sequence[str]) -> bool:
    """Return whether the words at any line end, or the only full stop, tell of a longer sentence.

    Full lines alone don't: notes may happen to be of one length.
    """
    *others, last = lines
    if _ENDED.search(last) and not any(_ENDED.search(line) for line in others):
        return True
    return any(
        line.endswith(",")
        or (line.split()[-1].lower() in words_of_all("stop_words") and not _UNIT.search(line))
        or _first_word(following) in _LINKING
        for line, following in pairwise(lines)
    )


def _has_capital(line: str) -> bool:
    """Return whether a line begins as a sentence does, where its script has capitals at all."""
    first = next(filter(str.isalnum, line[_margin(line) :]), "")
    return not (first.islower() or first.isdigit())


def _starts_new_block(line: str, following: str) -> bool:
    if _STARTS_ANEW.match(following) or _HEADING.match(line):
        return True
    return bool(_TAG_LAST.search(line)) and not _first_word(following)[:1].islower()


def _did_not_fit(line: str, following: str, width: int) -> bool:
    return len(line) + 1 + len(_first_word(following)) > width


def _first_word(line: str) -> str:
    found = _FIRST_WORD.match(line)
    return found.group(1) if found else ""


# --- narrow lines --------------------------------------------------------------------------------


def _narrow(lines: Sequence[str], width: int) -> list[bool]:
    """Return the same for each run of lines that nothing separates."""
    goes_on: list[bool] = []
    run = [lines[0]]
    for line in lines[1:]:
        if _starts_new_block(run[-1], line) or _is_no_prose(run[-1], line):
            goes_on += [*_run(run, width), False]
            run = []
        run.append(line)
    return goes_on + _run(run, width)


def _run(lines: Sequence[str], width: int) -> list[bool]:
    """First the lines whose words tell by themselves, then those that others speak for."""
    pairs = list(pairwise(lines))
    ended = _ENDED.search(lines[-1]) is not None
    if ended and all(_is_line_filled(*pair, width) for pair in pairs):
        return [True] * len(pairs)
    if sum(len(line.split()) for line in lines[:-1]) < _MIN_WORDS * len(pairs):
        return [False] * len(pairs)
    begun = lines[0][_margin(lines[0]) :][:1].isupper()
    goes_on = [_goes_on(*pair, width, begun=begun, ended=ended) for pair in pairs]
    if not ended:
        return goes_on
    flows = any(goes_on)
    return [
        known or _goes_on_in_a_name(*pair, width, flows=flows)
        for known, pair in zip(goes_on, pairs, strict=True)
    ]


def _is_no_prose(line: str, following: str) -> bool:
    """Code, columns, fields and the lines of a chat; what is further in than the line above."""
    if _NO_PROSE.search(line) or _NO_PROSE.search(following.rstrip(":")):
        return True
    if _LINE_START.match(following):
        return True
    return len(following) - len(following.lstrip()) > _margin(line)


def _margin(line: str) -> int:
    """Where the words of a line begin, behind the marker of a list item."""
    found = _MARGIN.match(line)
    return found.end() if found else 0


def _goes_on(line: str, following: str, width: int, *, begun: bool, ended: bool) -> bool:
    """Return whether the words around the line end tell that it ends no sentence."""
    word = _first_word(following)
    if line.split()[-1] in _UNFINISHED:
        return True
    if not word[:1].isalpha() or word[:1].isupper():
        return False
    had_no_room = _did_not_fit(line, following, width)
    if ended:
        return had_no_room or (begun and word[:1].islower() and 2 * len(line) >= width)
    return had_no_room and begun and word in _LINKING


def _goes_on_in_a_name(line: str, following: str, width: int, *, flows: bool) -> bool:
    """Return whether a capital or a number begins a line inside a sentence.

    It may where the line above is no title and no item: where it ends a sentence on its way, or
    had no room in a paragraph whose lines go on.
    """
    if _first_word(following).lower() in words_of_all("stop_words"):
        return False
    if _ENDS_INSIDE.search(line):
        return True
    return _did_not_fit(line, following, width) and (flows or line[_margin(line) :][:1].islower())


def _is_line_filled(line: str, following: str, width: int) -> bool:
    """Return whether a script without spaces was wrapped: all its lines are full then."""
    if not _IDEOGRAPH.match(line[-1]) or not _IDEOGRAPH.match(following.lstrip()):
        return False
    return width >= _NARROWEST_IDEOGRAPHS and len(line) >= width - 2


# --- windows: a long text in parts that a model can take in at once -------------------------------

WINDOW = 12_000
"""Characters."""
_WINDOW_ENDS = ("\n\n", "\n", ". ", " ")


def text_windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
    """Return where the windows of a text stand: in order, disjoint, and together all of it.

    Each ends, in its second half, after the last border of the best kind that there is:
    paragraph, line, sentence, word.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > size:
        end = _window_end(text, start + size // 2, start + size)
        found.append((start, end))
        start = end
    return [*found, (start, len(text))]


def spread_evenly(spans: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Return the numbers of the spans to look at: all, or the first, the last and some between.

    Args:
        spans: In order.
        most: So many at most, at least one.
    """
    if len(spans) <= most:
        return list(range(len(spans)))
    step = (len(spans) - 1) / (most - 1) if most > 1 else 0.0
    return [round(number * step) for number in range(most)]


def window_budget(share: float, most: int, size: int = WINDOW) -> int:
    """Return how many windows of a part of a document may be read.

    Args:
        share: How much of the document the part is.
        most: Windows of the usual size that may be read of the whole.
        size: Of a window.
    """
    return max(1, round(share * most)) * (WINDOW // size)


def _window_end(text: str, low: int, high: int) -> int:
    for border in _WINDOW_ENDS:
        at = text.rfind(border, low, high)
        if at >= 0:
            return at + len(border)
    return high
