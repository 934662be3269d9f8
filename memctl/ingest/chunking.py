"""Documents are cut into passages that a person would quote, at exact offsets.

Segments that belong together are joined into blocks; a block that is too long is cut at
paragraphs, else at sentences, else at words, each passage starting a little before the end of
the one before it.  Every passage is ``text[start:end]``, no longer than ``size`` characters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.sentence_splitting import split_sentences
from memctl.models.protocols import Embedder
from memctl.records import Segment, SourceText

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Span = tuple[int, int]
Cut = Callable[[str, int, int], list[Span]]
"""Cuts ``text[start:end]`` into spans that follow each other without gaps."""

CAPTION_SHARE = 0.5
"""Captions are joined up to this share of the size: the time of a passage is its locator."""

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_LINE_END = re.compile(r"\n")
_WORD_END = re.compile(r"\s+")
_SENTENCE_ENDS = re.compile(r"(?:[.!?:;。！？…][\"'”’)\]]{0,3}\s*|\n\s*)\Z")


Passage = Segment
"""``text[start:end]`` of a document, with the locators of the segment it begins in."""


class ChunkSizes(Struct, frozen=True):
    """How long a passage may be and how much of the one before it may repeat, in characters."""

    size: int = 1200
    overlap: int = 150


def chunk(source: SourceText, sizes: ChunkSizes, cut: Cut | None = None) -> list[Passage]:
    """Cut a document into passages, in order; ``cut`` finds the places in long prose.

    A ``cut`` of its own ends a passage where it says; the default one also lets each passage
    repeat the end of the one before it.
    """
    text = source.text
    segments = source.segments or (Segment(0, len(text)),)
    return [
        replace(block, start=start, end=end, kept=None)
        for block in _blocks(text, segments, sizes.size)
        for start, end in _spans(text, block, sizes, cut)
    ]


def recursive_cut(size: int) -> Cut:
    """Cuts at paragraphs; one that is too long at sentences, then lines, words and characters."""
    return _cut_at((_paragraphs, sentence_spans, _lines, _words), size)


def line_cut(size: int) -> Cut:
    """Cuts tables and code: at lines, one that is too long at words."""
    return _cut_at((_lines, _words), size)


def _cut_at(levels: Sequence[Cut], size: int) -> Cut:
    def cut(text: str, start: int, end: int) -> list[Span]:
        """See ``Cut``."""
        return list(_refine(text, (start, end), size, levels))

    return cut


def pack(atoms: Sequence[Span], size: int) -> Iterator[Span]:
    """Join neighbouring spans while the whole stays within ``size``."""
    start, end = atoms[0]
    for next_start, next_end in atoms[1:]:
        if next_end - start > size:
            yield start, end
            start = next_start
        end = next_end
    yield start, end


# --- blocks: segments that make one passage, or are cut together ---------------------------------


def _blocks(text: str, segments: Sequence[Segment], size: int) -> Iterator[Segment]:
    """Join segments that belong together into one, unless text without a segment is between."""
    block: Segment | None = None
    for segment in segments:
        if block is None:
            block = segment
        elif _belong_together(block, segment, size) and not text[block.end : segment.start].strip():
            block = _join(block, segment)
        else:
            yield block
            block = segment
    if block is not None:
        yield block


def _belong_together(block: Segment, segment: Segment, size: int) -> bool:
    if block.page != segment.page:
        return False
    length = segment.end - block.start
    match (block.kind, segment.kind):
        case ("heading", "heading" | "prose" | "code"):
            return True
        case ("heading", "table"):
            return length <= size
        case ("prose" | "code", "prose" | "code"):
            return (block.heading, block.said_at) == (segment.heading, segment.said_at)
        case ("caption", "caption"):
            return block.speaker == segment.speaker and length <= size * CAPTION_SHARE
    return False


def _join(block: Segment, segment: Segment) -> Segment:
    """One segment over both; a heading takes on the kind and locators of what it stands above."""
    kept = segment if block.kind == "heading" else block
    return replace(
        kept,
        start=block.start,
        end=segment.end,
        heading=segment.heading or block.heading,
        time_end=segment.time_end if segment.time_end is not None else block.time_end,
    )


# --- passages of one block -----------------------------------------------------------------------


def _spans(text: str, block: Segment, sizes: ChunkSizes, cut: Cut | None) -> Iterable[Span]:
    start, end = _strip(text, block.start, block.end)
    if end - start <= sizes.size:
        return [(start, end)] if start < end else []
    if block.kind in ("table", "code", "properties"):
        return _overlapping(text, line_cut(sizes.size)(text, start, end), replace(sizes, overlap=0))
    if cut is None:
        return _overlapping(text, recursive_cut(sizes.size)(text, start, end), sizes)
    return filter(None, (_stripped_or_none(text, *span) for span in cut(text, start, end)))


def _overlapping(text: str, atoms: Sequence[Span], sizes: ChunkSizes) -> Iterator[Span]:
    """Join atoms into passages, each but the first reaching back into the one before it."""
    overlap = min(sizes.overlap, sizes.size // 2)
    floor = 0
    for start, end in pack(atoms, sizes.size - overlap):
        reach = min(overlap, sizes.size - (end - start)) if floor else 0
        span = _stripped_or_none(text, _overlap_start(text, floor, start, reach), end)
        if span:
            yield span
            floor = span[0] + 1


def _overlap_start(text: str, floor: int, start: int, reach: int) -> int:
    """Where a passage begins that repeats up to ``reach`` characters before ``start``.

    At a sentence where one begins there; at a word where a sentence is cut; never before ``floor``.
    """
    earliest = max(floor, start - reach)
    if earliest >= start:
        return start
    begins = [earliest + a for a, _ in split_sentences(text[earliest:start])[1:]]
    if begins:
        return begins[0]
    if _SENTENCE_ENDS.search(text, earliest, start):
        return start  # the end of a long sentence says nothing
    word = _WORD_END.search(text, earliest, start)
    return word.end() if word and word.end() < start else start


def _stripped_or_none(text: str, start: int, end: int) -> Span | None:
    start, end = _strip(text, start, end)
    return (start, end) if start < end else None


def _strip(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


# --- places to cut at ----------------------------------------------------------------------------


def _refine(text: str, span: Span, size: int, levels: Sequence[Cut]) -> Iterator[Span]:
    start, end = span
    if end - start <= size:
        yield span
    elif not levels:
        for place in range(start, end, size):
            yield place, min(place + size, end)
    else:
        for part in levels[0](text, start, end):
            yield from _refine(text, part, size, levels[1:])


def _cut_after(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[Span]:
    places = [match.end() for match in pattern.finditer(text, start, end)]
    bounds = [start, *(place for place in places if start < place < end), end]
    return list(itertools.pairwise(bounds))


def _paragraphs(text: str, start: int, end: int) -> list[Span]:
    return _cut_after(_PARAGRAPH_END, text, start, end)


def _lines(text: str, start: int, end: int) -> list[Span]:
    return _cut_after(_LINE_END, text, start, end)


def _words(text: str, start: int, end: int) -> list[Span]:
    return _cut_after(_WORD_END, text, start, end)


def sentence_spans(text: str, start: int, end: int) -> list[Span]:
    """Sentences with the space after them, so that they follow each other without gaps."""
    begins = [start + first for first, _ in split_sentences(text[start:end])]
    bounds = [start, *(place for place in begins if start < place < end), end]
    return list(itertools.pairwise(bounds))


TOPIC_WINDOW = 2
"""Sentences on either side of a gap that are compared."""
TOPIC_DEPTH = 0.5
"""A gap is a boundary when it lies this many standard deviations below the mean."""
SMALLEST_TOPIC_SHARE = 0.2
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
    if len(spans) <= 2 * TOPIC_WINDOW:
        return [(spans[0][0], spans[-1][1])]
    alike = _similarities(embedder.embed([text[start:end] for start, end in spans]))
    threshold = float(alike.mean() - TOPIC_DEPTH * alike.std())
    topics: list[Span] = []
    begin = spans[0][0]
    for gap, (_, end) in enumerate(spans[:-1]):
        if alike[gap] < threshold and end - begin >= size * SMALLEST_TOPIC_SHARE:
            topics.append((begin, end))
            begin = end
    return [*topics, (begin, spans[-1][1])]


def _similarities(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of the mean vectors before and after each gap between sentences."""
    import numpy as np

    count = len(vectors)
    before = np.stack(
        [vectors[max(0, gap - TOPIC_WINDOW) : gap].sum(axis=0) for gap in range(1, count)]
    )
    after = np.stack([vectors[gap : gap + TOPIC_WINDOW].sum(axis=0) for gap in range(1, count)])
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    products: NDArray[np.float32] = (before * after).sum(axis=1)
    alike: NDArray[np.float32] = products / np.maximum(lengths, 1e-9)
    return alike
