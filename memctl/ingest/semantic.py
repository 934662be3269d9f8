"""The semantic way to cut: where the topic changes, told by the similarity of what stands around.

After Hearst's TextTiling (1997), with sentence vectors in place of term counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memctl.ingest.chunking import Cut, Span, pack, recursive_cut, sentence_spans
from memctl.models.protocols import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW = 2
"""Sentences on either side of a gap that are compared."""
DEPTH = 0.5
"""A gap is a boundary when it lies this many standard deviations below the mean."""
SMALLEST_SHARE = 0.2
"""No topic is shorter than this share of the size."""


def semantic_cut(size: int, embedder: Embedder) -> Cut:
    """Cut where neighbouring groups of sentences are least alike; topics too long, recursively."""
    fine = recursive_cut(size)

    def cut(text: str, start: int, end: int) -> list[Span]:
        """See ``Cut``."""
        spans = sentence_spans(text, start, end)
        return [
            piece
            for topic in _topics(text, spans, size, embedder)
            for piece in _fitting(text, topic, size, fine)
        ]

    return cut


def _fitting(text: str, topic: Span, size: int, fine: Cut) -> list[Span]:
    start, end = topic
    return [topic] if end - start <= size else list(pack(fine(text, start, end), size))


def _topics(text: str, spans: list[Span], size: int, embedder: Embedder) -> list[Span]:
    if len(spans) <= 2 * WINDOW:
        return [(spans[0][0], spans[-1][1])]
    alike = _similarities(embedder.embed([text[start:end] for start, end in spans]))
    threshold = float(alike.mean() - DEPTH * alike.std())
    topics: list[Span] = []
    begin = spans[0][0]
    for gap, (_, end) in enumerate(spans[:-1]):
        if alike[gap] < threshold and end - begin >= size * SMALLEST_SHARE:
            topics.append((begin, end))
            begin = end
    return [*topics, (begin, spans[-1][1])]


def _similarities(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of the mean vectors before and after each gap between sentences."""
    import numpy as np

    count = len(vectors)
    before = np.stack([vectors[max(0, gap - WINDOW) : gap].sum(axis=0) for gap in range(1, count)])
    after = np.stack([vectors[gap : gap + WINDOW].sum(axis=0) for gap in range(1, count)])
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    products: NDArray[np.float32] = (before * after).sum(axis=1)
    alike: NDArray[np.float32] = products / np.maximum(lengths, 1e-9)
    return alike
