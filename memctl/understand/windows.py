"""A long document in windows that a model can take in at once, cut where a paragraph ends."""

from __future__ import annotations

WINDOW = 12_000
"""Characters."""
_BORDERS = ("\n\n", "\n", ". ", " ")


def windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
    """Return where the windows of a text stand: in order, disjoint, and together all of it.

    Each ends, in its second half, after the last border of the best kind that there is:
    paragraph, line, sentence, word.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > size:
        end = _border(text, start + size // 2, start + size)
        found.append((start, end))
        start = end
    return [*found, (start, len(text))]


def _border(text: str, low: int, high: int) -> int:
    for border in _BORDERS:
        at = text.rfind(border, low, high)
        if at >= 0:
            return at + len(border)
    return high
