"""HTML as a stream of tags and text, however broken, in time linear in its length.

The standard library's parser needs quadratic time for tags, comments and quotes that are never
closed (seen in Python 3.11): 200 kB of them take half a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]{0,99})")
_SPACE = re.compile(r"[\s/]*")
_NAME = re.compile(r"[^\s/>=]+|=")
_EQUALS = re.compile(r"\s*=\s*")
_BARE_VALUE = re.compile(r"[^\s>]*")

RAW_ELEMENTS = frozenset(("script", "style", "title", "textarea", "xmp"))
"""Elements whose content holds no tags."""


@dataclass(frozen=True, slots=True)
class StartTag:
    """An opening tag; names in lower case, character references in values resolved."""

    name: str
    attributes: dict[str, str]
    closed: bool = False
    """Whether it ends in ``/>``."""


@dataclass(frozen=True, slots=True)
class EndTag:
    """A closing tag, its name in lower case."""

    name: str


Token = StartTag | EndTag | str


def tokens(page: str) -> Iterator[Token]:
    """Yield tags and text in the order of the page; comments and declarations are left out."""
    return _Tokenizer(page).tokens()


class _Tokenizer:
    def __init__(self, page: str) -> None:
        self._page = page
        self._missing: set[str] = set()

    def _find(self, mark: str, start: int) -> int:
        """Where the mark is found next; -1 if nowhere, which need be looked for only once."""
        if mark in self._missing:
            return -1
        place = self._page.find(mark, start)
        if place < 0:
            self._missing.add(mark)
        return place

    def tokens(self) -> Iterator[Token]:
        """Yield tags, and the text between them with its references resolved, as they stand."""
        place = text_start = 0
        while (place := self._find("<", place)) >= 0:
            token, end = self._markup(place)
            if end == place:
                place += 1
                continue
            if text_start < place:
                yield unescape(self._page[text_start:place])
            if token is not None:
                yield token
            place = text_start = end
            if isinstance(token, StartTag) and token.name in RAW_ELEMENTS and not token.closed:
                end = self._raw_end(token.name, place)
                raw = self._page[place:end]
                yield raw if token.name in ("script", "style") else unescape(raw)
                place = text_start = end
        if text_start < len(self._page):
            yield unescape(self._page[text_start:])

    def _markup(self, start: int) -> tuple[Token | None, int]:
        """The token that begins at a ``<`` and where it ends; the same place where it is text."""
        match = _TAG.match(self._page, start)
        if match and match[1]:
            return EndTag(match[2].lower()), self._after(">", match.end(), match.end())
        if match:
            return self._start_tag(match[2].lower(), match.end())
        if self._page.startswith("<!--", start):
            return None, self._after("-->", start + 4, start + 4)
        if self._page.startswith(("<![CDATA[", "<![cdata["), start):
            return None, start + 9
        if self._page.startswith(("<!", "<?", "</"), start):
            return None, self._after(">", start + 2, start)
        return None, start

    def _after(self, mark: str, start: int, otherwise: int) -> int:
        place = self._find(mark, start)
        return place + len(mark) if place >= 0 else otherwise

    def _start_tag(self, name: str, place: int) -> tuple[StartTag, int]:
        attributes: dict[str, str] = {}
        while True:
            gap = _SPACE.match(self._page, place)
            place = gap.end() if gap else place
            if self._page.startswith(">", place):
                closed = self._page[place - 1] == "/"
                return StartTag(name, attributes, closed), place + 1
            attribute = _NAME.match(self._page, place)
            if attribute is None:
                return StartTag(name, attributes), place
            value, place = self._value(attribute.end())
            attributes.setdefault(attribute[0].lower(), value)

    def _value(self, place: int) -> tuple[str, int]:
        equals = _EQUALS.match(self._page, place)
        if equals is None:
            return "", place
        place = equals.end()
        quote = self._page[place : place + 1]
        if quote in ('"', "'") and (end := self._find(quote, place + 1)) >= 0:
            return unescape(self._page[place + 1 : end]), end + 1
        bare = _BARE_VALUE.match(self._page, place)
        end = bare.end() if bare else place
        return unescape(self._page[place:end]), end

    def _raw_end(self, name: str, start: int) -> int:
        """Where an element without tags in it ends; one never closed ends where it began."""
        key = f"</{name}"
        if key in self._missing:
            return start
        match = re.compile(re.escape(key), re.I).search(self._page, start)
        if match is None:
            self._missing.add(key)
            return start
        return match.start()
