"""Tags and wikilinks that an author wrote into a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter

from memctl.ids import tag_name

_TAG = re.compile(r"(?<![\w#/&.:?=\[@-])(?<!\]\()#(?P<tag>[^\W\d_](?:[\w/-]{0,48}\w)?)(?![\w#])")
_SIGNED = re.compile(r"(?<![\w#/&.:?=\[@-])@(?P<tag>beto_[^\W_](?:[\w/-]{0,48}\w)?)(?![\w@])", re.I)
"""A tag with the other sign, which is a tag only with the prefix."""
_NEEDED_AFTER = re.compile(
    r"(?:^|\W)(?:the|an?|of|in|on|at|for|to|from|with|by|about|into|over|our|my|your|his|her|their"
    r"|its|this|that|is|are|was|and|or|use|uses|called|named)\s+$",
    re.IGNORECASE,
)
"""Before a tag that is a word of its sentence."""
_LINK = re.compile(
    r"(?<!\\)\[\[(?P<target>[^\[\]|#^\n]{1,200})(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]"
)
_COLOUR = re.compile(r"(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_COLOUR_BEFORE = re.compile(r"(?:colou?r|background|fill|stroke|border)\W{0,3}$", re.IGNORECASE)

Span = tuple[int, int]


def find_hashtags(text: str, code: Sequence[Span] = ()) -> tuple[str, ...]:
    """Return the tags of a text outside code, each once in order: ``#name``, ``@beto_name``.

    They come without the sign and without the prefix ``beto_``.  Not tags: headings (``# Plan``),
    numbers (``#12``), colours (``#fff``), parts of a URL.
    """
    return _once(tag_name(match["tag"]) for match in _tags(text, code))


def without_inline_tags(text: str) -> str:
    """Return a message without its tags; one that is a word of its sentence loses its sign."""
    parts: list[str] = []
    position = 0
    for match in _tags(text):
        parts.append(text[position : match.start()])
        position = match.end()
        follows = text[position:].lstrip()[:1]
        if follows and follows not in "#@" and _NEEDED_AFTER.search(text[: match.start()]):
            parts.append(tag_name(match["tag"]))
    kept = "".join([*parts, text[position:]])
    if position:
        kept = re.sub(r"[ \t]{2,}", " ", re.sub(r"[ \t]+(?=[.,;:!?\n]|$)", "", kept))
    return kept.strip()


def _tags(text: str, code: Sequence[Span] = ()) -> list[re.Match[str]]:
    if "#" not in text and "@" not in text:
        return []
    hidden = _hidden(text, code)
    found = [*_TAG.finditer(text), *_SIGNED.finditer(text)]
    return sorted(
        (
            match
            for match in found
            if not _is_hidden(match.start(), hidden) and not _is_colour(text, match)
        ),
        key=lambda match: match.start(),
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
