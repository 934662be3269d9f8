"""The question's vectors: one for each knowledge base, made by the embedder of its passages.

Vectors of two embedders are never compared with each other.  Besides, words and sentences are
judged by the built-in word vectors, whichever model the passages' vectors are from: synonyms,
answer sentences and relevance were measured with them, and a remote model would have to be called
for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memctl.errors import (
    ConfigError,
    KnowledgeBaseUnavailable,
    MemctlError,
    ModelRefused,
    ModelUnavailable,
)
from memctl.language.term_analysis import embedding_text
from memctl.literals import Mode
from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.models.protocols import Embedder, WordEmbedder
from memctl.records import Hit
from memctl.search.query.question import Question, Slot
from memctl.search.retrieval.candidates import Candidate, cosines
from memctl.search.term_statistics import TermStatistics

EMBEDDER_UNAVAILABLE = (ModelUnavailable, KnowledgeBaseUnavailable)
"""The embedder can't be reached now, or its cost can't be recorded."""
_STOP_WORD_WEIGHT = 0.1
"""Weight of a stop word in the question's vector, where the rarest word has 1.  The built-in
vectors of English stop words are short (a third of those of other words), but those of other
languages are as long as any, and at 0.3 they outweighed the question."""
_WORD_WEIGHT_EXPONENT = 0.75
_MAX_RESCORED = 10
"""Number of the best hits whose cosines are computed anew by word vectors."""


class QuestionMeaning(Struct, frozen=True, dict=True):
    """The vector of a question by an embedder, which is loaded when it is first needed.

    Args:
        question: The question.
        statistics: Of the memories searched; rare words count more where the embedder can weigh.
        load: Returns the embedder.
    """

    question: Question
    statistics: TermStatistics
    load: Callable[[], Embedder]

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder that words and sentences are compared by."""
        return self.load()

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The question's vector."""
        return question_vector(self.question, self.embedder, self.statistics)

    def remainder(self, covered: frozenset[str]) -> NDArray[np.float32] | None:
        """Return the vector of the content words that some terms leave uncovered.

        None where no word is left, or where the embedder cannot weigh words.
        """
        weights: dict[int, float] = {}
        for at, slots in enumerate(self.question.word_slots):
            left = tuple(slot for slot in slots if covered.isdisjoint(slot))
            if left:
                weights[at] = _word_weight(left, self.statistics)
        if not weights or not isinstance(self.embedder, WordEmbedder):
            return None
        words = [self.question.words[at] for at in weights]
        return self.embedder.embed_words(words, list(weights.values()))


def question_vector(
    question: Question, embedder: Embedder, statistics: TermStatistics
) -> NDArray[np.float32]:
    """Return the question's vector; rare words count more where the embedder can weigh words."""
    if not isinstance(embedder, WordEmbedder) or not statistics.sampled:
        plain: NDArray[np.float32] = embedder.embed([question.text])[0]
        return plain
    weights = [_word_weight(slots, statistics) for slots in question.word_slots]
    return embedder.embed_words(question.words, weights)


def _word_weight(slots: Sequence[Slot], statistics: TermStatistics) -> float:
    if not slots:
        return _STOP_WORD_WEIGHT
    rarest = max(map(statistics.slot_weight, slots))
    return float((rarest / statistics.highest_idf) ** _WORD_WEIGHT_EXPONENT)


class QuestionVectors:
    """Embeds questions for several knowledge bases.

    Args:
        kbs: The names of the knowledge bases, in order.
        embedders: What made the vectors of each, one object where it is the same; none where
            only keywords are searched for.
    """

    def __init__(self, kbs: Iterable[str], embedders: Mapping[str, Embedder]) -> None:
        self._kbs = tuple(kbs)
        self._embedders = embedders

    def vectors(
        self, mode: Mode, meaning: QuestionMeaning
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, MemctlError]]:
        """Return the question's vector for each source that has one, and why the others have none.

        Raises:
            ModelError: No embedder is available, or, in the mode ``vector``, one of them is not.
        """
        if mode == "keyword":
            return {}, {}
        vectors: dict[str, NDArray[np.float32]] = {}
        failures: dict[str, MemctlError] = {}
        for kbs in self._same_embedder():
            embedder = self._embedders[kbs[0]]
            try:
                if embedder is meaning.embedder:
                    vector = meaning.vector
                else:
                    vector = embedder.embed([meaning.question.text])[0]
            except (*EMBEDDER_UNAVAILABLE, ModelRefused, ConfigError) as error:
                if mode == "vector":
                    raise
                failures |= dict.fromkeys(kbs, error)
            else:
                vectors |= dict.fromkeys(kbs, vector)
        if failures and not vectors:
            raise next(iter(failures.values()))
        return vectors, failures

    def spaces(self, compared: Collection[str]) -> Mapping[str, int]:
        """Return a number for the embedder of each source; empty where all have the same, or none.

        Args:
            compared: The sources whose vectors were compared with the question's.
        """
        spaces = {
            kb: n for n, kbs in enumerate(self._same_embedder()) for kb in kbs if kb in compared
        }
        is_one = len(spaces) == len(self._kbs) and len(set(spaces.values())) == 1
        return {} if is_one else spaces

    def explain(self, spaces: Mapping[str, int]) -> dict[str, Any]:
        """Return which embedder each source was searched by, unless it is one for all."""
        if not spaces:
            return {}
        named = {kb: self._embedders[kb].id if kb in spaces else None for kb in self._kbs}
        return {"embedders": named, "vectors_compared": "within each embedder"}

    def _same_embedder(self) -> list[list[str]]:
        """Return the sources grouped by their embedder."""
        groups: dict[int, list[str]] = {}
        for kb in self._kbs:
            if kb in self._embedders:
                groups.setdefault(id(self._embedders[kb]), []).append(kb)
        return list(groups.values())


def keyword_only_notes(failures: Mapping[str, MemctlError]) -> tuple[str, ...]:
    """Return one note for each reason, with the sources that it applies to."""
    kbs: dict[str, list[str]] = {}
    for kb, error in failures.items():
        kbs.setdefault(error.message, []).append(kb)
    return tuple(f"found by keyword alone in {', '.join(kbs[why])}: {why}" for why in kbs)


def word_embedder(embedders: Iterable[Embedder]) -> Embedder:
    """Return the first of the embedders that has word vectors, otherwise the built-in one."""
    for embedder in embedders:
        if isinstance(embedder, WordEmbedder):
            return embedder
    return load_embedder(BUILTIN_EMBEDDER)


def rescore_by_words(
    best: Sequence[Candidate],
    hits: Sequence[Hit],
    words: Embedder,
    vector: NDArray[np.float32],
    most: int = _MAX_RESCORED,
) -> list[Candidate]:
    """Return the candidates with their cosines by word vectors in place of their own.

    Args:
        best: Candidates, best first.
        hits: The same as hits.
        words: Has the word vectors.
        vector: The question's, by the same embedder.
        most: How many of the best are rescored.
    """
    texts = [embedding_text(hit.title, "", hit.text) for hit in hits[:most]]
    near = cosines(vector, words.embed(texts))
    rescored = [
        replace(candidate, vector=float(cosine))
        for candidate, cosine in zip(best[:most], near, strict=True)
    ]
    return [*rescored, *best[most:]]
