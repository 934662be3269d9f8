"""Which passages and sentences tell best how some names hang together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from memctl.graph.index import Index
from memctl.understand.sentences import sentences

LONGEST_SENTENCE = 300

Spellings = Sequence[Sequence[str]]
"""Every name as it may be written."""


def spellings_of(index: Index, nodes: Iterable[int]) -> list[tuple[str, ...]]:
    """Return how the names of some nodes are written."""
    return [(index.nodes[at].name, *index.nodes[at].aliases) for at in nodes]


def telling(text: str, spellings: Spellings) -> str:
    """Return the sentence of a text that has most of some names, the first where several have.

    A heading is taken only where there is nothing else.
    """
    found = [text[start:end] for start, end in sentences(text)]
    told = [sentence for sentence in found if not is_heading(sentence)] or found or [text]
    return max(told, key=lambda sentence: how_many(sentence, spellings))[:LONGEST_SENTENCE]


def is_heading(sentence: str) -> bool:
    """Say whether a line is a heading, of Markdown."""
    return sentence.startswith("#")


def how_many(sentence: str, spellings: Spellings) -> int:
    """How many of some names a sentence has."""
    return sum(any(name in sentence for name in names) for names in spellings)


def central_passages(
    index: Index, weights: Mapping[int, float], passages: Iterable[int], most: int
) -> list[int]:
    """Return the passages that name most of some nodes, by what each weighs, and little else."""

    def centrality(at: int) -> float:
        """How much of the nodes stands in a passage, as far as it names nothing else."""
        named = index.named[at]
        return sum(weights.get(node, 0.0) for node in named) / sqrt(len(named))

    return sorted(passages, key=lambda at: (-centrality(at), at))[:most]
