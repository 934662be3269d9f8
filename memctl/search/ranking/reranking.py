"""Reranking: a model that reads question and memory together reorders the best candidates."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError
from memctl.language.term_analysis import embedding_text
from memctl.models.protocols import Reranker
from memctl.search.ranking.scored_candidates import ScoredCandidate, load_hits
from memctl.search.term_statistics import Sources

RERANK = "rerank"
"""The name under which a hit's legs have the model's score."""
_RERANK_HITS = 50


class Reranking(Struct, frozen=True):
    """By which model the best candidates are reordered."""

    model: Reranker | None = None
    """None keeps the order."""
    hits: int = _RERANK_HITS
    """Number of the best candidates that it scores; those below keep their order."""


NO_RERANKING = Reranking()


def rerank(
    reranking: Reranking, sources: Sources, question: str, ranked: Sequence[ScoredCandidate]
) -> tuple[list[ScoredCandidate], MemctlError | None]:
    """Return the items in the order of the model, and how the model failed where it did.

    In their legs, ``rerank`` is the score of the model, ``fused`` the one from before.

    Args:
        reranking: The model, and how many it scores.
        sources: Where the texts are read.
        question: The question, in words.
        ranked: The items, best first.
    """
    if reranking.model is None or not ranked:
        return list(ranked), None
    best, rest = ranked[: reranking.hits], ranked[reranking.hits :]
    texts = [embedding_text(hit.title, "", hit.text) for hit in load_hits(sources, best)]
    try:
        scores = reranking.model.score(question, texts)
    except MemctlError as error:  # a question is answered, whatever is wrong with the model
        return list(ranked), error
    ordered = sorted(map(_with_model_score, best, scores), key=lambda item: -item.score)
    return [*ordered, *_shift_below(ordered[-1].score, rest)], None


def failure_note(error: MemctlError) -> str:
    """Return the note that hits are in the order of the search because the model failed."""
    why = f"{error.message}; {error.hint}" if error.hint else error.message
    return f"not reranked: {why}"


def _with_model_score(item: ScoredCandidate, score: float) -> ScoredCandidate:
    return replace(item, score=score, legs=item.legs | {"fused": item.score, RERANK: score})


def _shift_below(least: float, rest: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the items with scores that continue below the model's lowest."""
    return [replace(item, score=least - (rest[0].score - item.score)) for item in rest]
