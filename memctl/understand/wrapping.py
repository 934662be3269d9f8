"""Whether the lines of a paragraph were only wrapped, so that a sentence goes on in the next.

Lines of a width that people wrap at are taken for wrapped where the next word had no room.  In
narrower ones that happens by chance, too: in lists, addresses, verse and talk.  There the words
must tell, and what they do not tell stays apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from memctl.understand.stopwords import stop_words, words

_NARROWEST = 40
_WIDEST = 110
_FEWEST_WORDS = 3
_NARROWEST_IDEOGRAPHS = 10

_STARTS_ANEW = re.compile(
    r"\s*(?:[-*+•‣◦–—]\s|\d{1,3}[.)]\s|\(?[a-zA-Z0-9]\)\s|#{1,6}\s|>|\||```|~~~|\[[ xX]\]"
    r"|[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}:\s|[-=*_~^]{3,}\s*$)"
)
_HEADING = re.compile(r"\s*#{1,6}\s|\s*[-=*_~^]{3,}\s*$")
_FIRST_WORD = re.compile(r"\s*(\S*)")
_TAG_LAST = re.compile(r"(?:^|\s)#[^\W\d_][\w/-]*$")

_NARROW_STARTS_ANEW = re.compile(
    r"\s*(?:[\w.'’-]{1,20}[:>]\s|[<@\[]|\(?(?:\d\d?:\d\d|\d{4}-\d\d-\d\d|\d\d?([./])\d\d?\1\d))"
)
_NO_PROSE = re.compile(r"\t|[^\s.!?] {2,}\S|[{}=|]|\w\(|:$")
_ENDED = re.compile(r"[.!?…。！？｡][\"'”’»)\]」』）*_]*$")
_ENDS_INSIDE = re.compile(r"\w{2}[.!?…][\"'”’»)]* \S")
_MARGIN = re.compile(r"\s*(?:[-*+•‣◦–—]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)*")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_UNFINISHED = words(
    """the of and or nor my your our their every than whose because der den das eine einen einem
    einer und oder von vom zum zur le la les une des et el los las del lo gli della di um uma
    het een en"""
)
_LINKING = words(
    """is are was were has had will would can could should must of that which who than ist sind war
    hat wird wurde es son era fue est sont était sono"""
)
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")


def wrapped(lines: Sequence[str]) -> list[bool]:
    """Tell of each line of a paragraph but the last whether its sentence goes on in the next."""
    width = max(map(len, lines))
    if width > _WIDEST:
        return [False] * (len(lines) - 1)
    if width < _NARROWEST:
        return _narrow(lines, width)
    return [_is_wrapped(*pair, width) for pair in pairwise(lines)]


def _is_wrapped(line: str, following: str, width: int) -> bool:
    if _stands_apart(line, following):
        return False
    if _first_word(following)[:1].islower() and len(line) >= _NARROWEST:
        return True
    return _had_no_room(line, following, width)


def _stands_apart(line: str, following: str) -> bool:
    if _STARTS_ANEW.match(following) or _HEADING.match(line):
        return True
    return bool(_TAG_LAST.search(line)) and not _first_word(following)[:1].islower()


def _had_no_room(line: str, following: str, width: int) -> bool:
    return len(line) + 1 + len(_first_word(following)) > width


def _first_word(line: str) -> str:
    found = _FIRST_WORD.match(line)
    return found.group(1) if found else ""


# --- narrow lines --------------------------------------------------------------------------------


def _narrow(lines: Sequence[str], width: int) -> list[bool]:
    """Tell it of each run of lines that nothing sets apart from each other."""
    goes_on: list[bool] = []
    run = [lines[0]]
    for line in lines[1:]:
        if _stands_apart(run[-1], line) or _is_no_prose(run[-1], line):
            goes_on += [*_run(run, width), False]
            run = []
        run.append(line)
    return goes_on + _run(run, width)


def _run(lines: Sequence[str], width: int) -> list[bool]:
    """First the lines whose words tell by themselves, then those that others speak for."""
    pairs = list(pairwise(lines))
    ended = _ENDED.search(lines[-1]) is not None
    if ended and all(_are_filled(*pair, width) for pair in pairs):
        return [True] * len(pairs)
    if sum(len(line.split()) for line in lines[:-1]) < _FEWEST_WORDS * len(pairs):
        return [False] * len(pairs)
    begun = lines[0][_margin(lines[0]) :][:1].isupper()
    told = [_goes_on(*pair, width, begun=begun, ended=ended) for pair in pairs]
    if not ended:
        return told
    flows = any(told)
    return [
        known or _goes_on_in_a_name(*pair, width, flows=flows)
        for known, pair in zip(told, pairs, strict=True)
    ]


def _is_no_prose(line: str, following: str) -> bool:
    """Code, columns, fields and the lines of a chat; what is further in than the line above."""
    if _NO_PROSE.search(line) or _NO_PROSE.search(following.rstrip(":")):
        return True
    if _NARROW_STARTS_ANEW.match(following):
        return True
    return len(following) - len(following.lstrip()) > _margin(line)


def _margin(line: str) -> int:
    """Where the words of a line begin, behind the marker of a list item."""
    found = _MARGIN.match(line)
    return found.end() if found else 0


def _goes_on(line: str, following: str, width: int, *, begun: bool, ended: bool) -> bool:
    """Whether the words around the line end tell that it ends no sentence."""
    word = _first_word(following)
    if line.split()[-1] in _UNFINISHED:
        return True
    if not word[:1].isalpha() or word[:1].isupper():
        return False
    had_no_room = _had_no_room(line, following, width)
    if ended:
        return had_no_room or (begun and word[:1].islower() and 2 * len(line) >= width)
    return had_no_room and begun and word in _LINKING


def _goes_on_in_a_name(line: str, following: str, width: int, *, flows: bool) -> bool:
    """Whether a capital or a number begins a line inside a sentence.

    It may where the line above is no title and no item: where it ends a sentence on its way, or
    had no room in a paragraph whose lines go on.
    """
    if _first_word(following).lower() in _function_words():
        return False
    if _ENDS_INSIDE.search(line):
        return True
    return _had_no_room(line, following, width) and (flows or line[_margin(line) :][:1].islower())


def _are_filled(line: str, following: str, width: int) -> bool:
    """Whether a script without spaces was wrapped: all its lines are full then."""
    if not _IDEOGRAPH.match(line[-1]) or not _IDEOGRAPH.match(following.lstrip()):
        return False
    return width >= _NARROWEST_IDEOGRAPHS and len(line) >= width - 2


@cache
def _function_words() -> frozenset[str]:
    return frozenset().union(*map(stop_words, _LANGUAGES))
