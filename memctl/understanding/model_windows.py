"""A long document in windows that a model can take in at once, cut where a paragraph ends."""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 12_000
"""Characters."""
_BORDERS = ("\n\n", "\n", ". ", " ")


def text_windows(text: str, size: int = WINDOW) -> list[tuple[int, int]]:
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


def _border(text: str, low: int, high: int) -> int:
    for border in _BORDERS:
        at = text.rfind(border, low, high)
        if at >= 0:
            return at + len(border)
    return high
