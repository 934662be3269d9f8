"""What a model wrote, without what it thought before and what it wrapped its JSON in.

Local servers show the thoughts of Qwen, DeepSeek and their like between ``<think>`` and
``</think>`` in front of the reply; some templates leave the first of the two out.
"""

from __future__ import annotations

import re

_OPEN, _CLOSE = "<think>", "</think>"
_FENCED = re.compile(r"^[ \t]*```\w*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def without_thoughts(text: str) -> str:
    """Return a reply from where the model has done thinking; "" where it never was."""
    _, closed, after = text.rpartition(_CLOSE)
    if closed:
        return after.lstrip()
    return "" if text.lstrip().startswith(_OPEN) else text


def json_in(text: str) -> str:
    """Return the JSON object in a reply, which some models wrap in words or in a fence."""
    plain = text.strip()
    fenced = None if plain.startswith("{") else _FENCED.search(plain)
    inner = fenced[1] if fenced and "{" in fenced[1] else plain
    start, end = inner.find("{"), inner.rfind("}")
    return inner[start : end + 1] if 0 <= start < end else inner


class Spoken:
    """The pieces of a reply as they arrive, without the thoughts in front of it."""

    def __init__(self) -> None:
        self._held = ""
        self._speaks = False

    def add(self, piece: str) -> str:
        """Return what can be shown now that a piece has arrived."""
        if self._speaks:
            return piece
        begun = (self._held + piece).lstrip()
        if begun.startswith(_OPEN):
            thoughts, closed, begun = begun.partition(_CLOSE)
            if not closed:
                self._held = thoughts
                return ""
            begun = begun.lstrip()
        if _OPEN.startswith(begun):  # nothing yet, or perhaps the beginning of a thought
            self._held = begun
            return ""
        self._held, self._speaks = "", True
        return begun

    def rest(self) -> str:
        """Return what was held back to the end and is no thought."""
        return "" if self._held.startswith(_OPEN) else self._held
