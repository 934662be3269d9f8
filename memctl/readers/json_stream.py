"""The elements of a huge JSON array, one by one: it is never in memory as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memctl.errors import UnreadableSource
from memctl.readers.flatten import too_deep

_BLANK = re.compile(r"[ \t\n\r]*")

LONGEST_ELEMENT = 50_000_000
"""An element longer than this many characters is refused."""


def array_elements(blocks: Iterator[str]) -> Iterator[Any]:
    """Yield the elements of the array that the blocks of text make up; numbers as written.

    Raises:
        UnreadableSource: It is no JSON array (line and column are named), an element is too long
            or nested too deeply.
    """
    text = _Window(blocks)
    text.expect("[")
    if text.peek() == "]":
        return
    while True:
        yield text.value()
        if text.peek() == "]":
            break
        text.expect(",")
    text.expect("]")
    if text.peek():
        text.fail("Extra data")


class _Window:
    """The part of the text that is being read."""

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self._text = ""
        self._place = 0
        self._line = 1
        self._column = 1
        self._decoder = json.JSONDecoder(parse_int=str, parse_float=str)

    def peek(self) -> str:
        """The next character that is not blank, which is not consumed; ``""`` at the end."""
        while True:
            blank = _BLANK.match(self._text, self._place)
            self._place = blank.end() if blank else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def expect(self, mark: str) -> None:
        """Consume the mark."""
        if self.peek() != mark:
            self.fail(f"Expecting '{mark}'")
        self._place += 1

    def value(self) -> Any:
        """Consume the next value, reading on until it is whole."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                if not self._more():
                    self.fail(error.msg, error.pos)
                continue
            except RecursionError:
                raise too_deep() from None
            if end == len(self._text) and not isinstance(value, dict | list) and self._more():
                continue
            self._place = end
            return value

    def _more(self) -> bool:
        """Drop what is consumed and read on, at least as much again as is at hand."""
        consumed = self._text[: self._place]
        lines = consumed.count("\n")
        self._column = (self._column if not lines else 1) + len(consumed) - consumed.rfind("\n") - 1
        self._line += lines
        rest = [self._text[self._place :]]
        length = wanted = len(rest[0])
        if length > LONGEST_ELEMENT:
            raise UnreadableSource(
                f"its element at line {self._line} is too long", "split it into smaller files"
            )
        grown = False
        while (not grown or length < 2 * wanted) and (block := next(self._blocks, "")):
            rest.append(block)
            length += len(block)
            grown = True
        self._text, self._place = "".join(rest), 0
        return grown

    def fail(self, problem: str, place: int | None = None) -> None:
        """Refuse the text because of what stands at ``place``."""
        before = self._text[: self._place if place is None else place]
        lines = before.count("\n")
        column = len(before) - before.rfind("\n") + (0 if lines else self._column - 1)
        raise UnreadableSource(
            f"it is not JSON: {problem} at line {self._line + lines} column {column}",
            "correct that place, or give the file the extension of what it is",
        )
