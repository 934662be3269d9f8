"""What is judged by the vectors of words, whichever model the passages' vectors are from.

Kin words, the sentences of an answer and whether there is one at all were measured with the
built-in word vectors; a model behind an endpoint would have to be asked for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memctl.language.term_analysis import embedding_text
from memctl.models import BUILTIN_EMBEDDER, Embedder, WordEmbedder, load_embedder
from memctl.records import Hit
from memctl.search.retrieval.candidates import Candidate, cosines

MAX_RESCORED = 10
"""So many of the best hits are judged."""


def word_embedder(embedders: Iterable[Embedder]) -> Embedder:
    """Return the first of the embedders that knows the vectors of words, else the built-in one."""
    for embedder in embedders:
        if isinstance(embedder, WordEmbedder):
            return embedder
    return load_embedder(BUILTIN_EMBEDDER)


def rescore_by_words(
    best: Sequence[Candidate], hits: Sequence[Hit], words: Embedder, vector: NDArray[np.float32]
) -> list[Candidate]:
    """Return the candidates with their cosines by word vectors in place of those they have.

    Args:
        best: Candidates, best first.
        hits: The same as hits.
        words: Embeds by words.
        vector: The question's by the same embedder.
    """
    texts = [embedding_text(hit.title, "", hit.text) for hit in hits[:MAX_RESCORED]]
    near = cosines(vector, words.embed(texts))
    judged = [
        replace(candidate, vector=float(cosine))
        for candidate, cosine in zip(best[:MAX_RESCORED], near, strict=True)
    ]
    return [*judged, *best[MAX_RESCORED:]]
