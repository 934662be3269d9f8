"""Where words that are said to stand in a text do stand in it, whatever white space is between."""

from __future__ import annotations

import re

SHORTEST_QUOTE = 6
"""Characters; shorter ones stand in too many places to be evidence of anything."""


def find_quote(text: str, quote: str, near: int = 0) -> tuple[int, int] | None:
    """Return where a quote stands in a text, the first place from ``near`` on if there is one.

    Every character but white space must be the same.
    """
    words = quote.split()
    if len("".join(words)) < SHORTEST_QUOTE:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    found = pattern.search(text, near) or pattern.search(text)
    return found.span() if found else None


def find_name(text: str, name: str) -> tuple[str, int] | None:
    """Return a name as the text spells it first and how often it stands there, in any case."""
    words = name.split()
    if not words:
        return None
    pattern = r"\s+".join(map(re.escape, words))
    ends = (words[0][0], words[-1][-1])
    # Scripts without spaces between words have no borders that could be looked for.
    before, after = (r"\b" if end.isascii() and end.isalnum() else "" for end in ends)
    found = re.findall(f"{before}{pattern}{after}", text, re.IGNORECASE)
    return (" ".join(found[0].split()), len(found)) if found else None
