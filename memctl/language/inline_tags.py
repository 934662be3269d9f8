"""Tags and wikilinks that an author wrote into a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter

_TAG = re.compile(r"(?<![\w#/&.:?=\[@-])(?<!\]\()#(?P<tag>[^\W\d_](?:[\w/-]{0,48}\w)?)(?![\w#])")
_LINK = re.compile(
    r"(?<!\\)\[\[(?P<target>[^\[\]|#^\n]{1,200})(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]"
)
_COLOUR = re.compile(r"(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_COLOUR_BEFORE = re.compile(r"(?:colou?r|background|fill|stroke|border)\W{0,3}$", re.IGNORECASE)

Span = tuple[int, int]


def find_hashtags(text: str, code: Sequence[Span] = ()) -> tuple[str, ...]:
    """Return the ``#tags`` of a text, without the sign, outside code, each once in order.

    Not tags: headings (``# Plan``), numbers (``#12``), colours (``#fff``), parts of a URL.
    """
    if "#" not in text:
        return ()
    hidden = _hidden(text, code)
    return _once(
        match["tag"]
        for match in _TAG.finditer(text)
        if not _is_hidden(match.start(), hidden) and not _is_colour(text, match)
    )


def find_wikilinks(text: str, code: Sequence[Span] = ()) -> tuple[str, ...]:
    """Return the targets of ``[[Target|alias]]`` and ``[[Target#part]]`` outside code, once."""
    if "[[" not in text:
        return ()
    hidden = _hidden(text, code)
    return _once(
        match["target"].strip()
        for match in _LINK.finditer(text)
        if not _is_hidden(match.start(), hidden)
    )


def _hidden(text: str, code: Sequence[Span]) -> list[Span]:
    """Where code stands, each span ending no earlier than those before it."""
    fenced = (match.span() for match in _FENCE.finditer(text))
    spans = sorted([*code, *(fenced if "`" in text or "~~~" in text else ())])
    ends = accumulate((end for _, end in spans), max)
    return [(start, end) for (start, _), end in zip(spans, ends, strict=True)]


def _is_hidden(position: int, hidden: Sequence[Span]) -> bool:
    place = bisect_right(hidden, position, key=itemgetter(0))
    return place > 0 and position < hidden[place - 1][1]


def _is_colour(text: str, match: re.Match[str]) -> bool:
    written = match["tag"]
    if not _COLOUR.fullmatch(written):
        return False
    has_digit = any(map(str.isdigit, written))
    before = text[max(0, match.start() - 14) : match.start()]
    return has_digit or written.lower() in ("fff", "ffffff") or bool(_COLOUR_BEFORE.search(before))


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in found if item))
