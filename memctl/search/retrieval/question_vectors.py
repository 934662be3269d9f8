"""The question's vectors: one for each knowledge base, by the embedder that its passages are from.

Vectors of two embedders are never compared with each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memctl.errors import (
    ConfigError,
    KnowledgeBaseUnavailable,
    MemctlError,
    ModelRefused,
    ModelUnavailable,
)
from memctl.literals import Mode
from memctl.models.protocols import Embedder
from memctl.search.query.question import Question, QuestionMeaning

EMBEDDER_UNAVAILABLE = (ModelUnavailable, KnowledgeBaseUnavailable)
"""An embedder cannot be had now, or what it costs cannot be noted."""


class QuestionVectors:
    """How questions are compared with the passages of several knowledge bases.

    Args:
        kbs: The knowledge bases, in order.
        embedders: What turned the passages of each into vectors, one object where it is the same;
            none where only keywords can be asked for.
    """

    def __init__(self, kbs: Iterable[str], embedders: Mapping[str, Embedder]) -> None:
        self._kbs = tuple(kbs)
        self._embedders = embedders

    def vectors(
        self, question: Question, mode: Mode, meaning: QuestionMeaning
    ) -> tuple[dict[str, NDArray[np.float32]], tuple[str, ...]]:
        """Return the question's vector for each source that has any, and what is done without.

        Raises:
            ModelError: It cannot be had by any embedder, or by one of them in the mode ``vector``.
        """
        if mode == "keyword":
            return {}, ()
        vectors: dict[str, NDArray[np.float32]] = {}
        failures: dict[str, MemctlError] = {}
        for kbs in self._alike():
            try:
                vector = _embed_question(question, self._embedders[kbs[0]], meaning)
            except (
                *EMBEDDER_UNAVAILABLE,
                ModelRefused,
                ConfigError,
            ) as error:  # raised below where it is all
                if mode == "vector":
                    raise
                failures |= dict.fromkeys(kbs, error)
            else:
                vectors |= dict.fromkeys(kbs, vector)
        if failures and not vectors:
            raise next(iter(failures.values()))
        return vectors, _keyword_only_notes(failures)

    def spaces(self, compared: Collection[str]) -> Mapping[str, int]:
        """Return a number for the embedder of each source; none where all have one, or none.

        Args:
            compared: The sources that were compared with the question.
        """
        spaces = {kb: n for n, kbs in enumerate(self._alike()) for kb in kbs if kb in compared}
        is_one = len(spaces) == len(self._kbs) and len(set(spaces.values())) == 1
        return {} if is_one else spaces

    def explained(self, spaces: Mapping[str, int]) -> dict[str, Any]:
        """Whose vectors each source was searched by, where they are not those of one embedder."""
        if not spaces:
            return {}
        named = {kb: self._embedders[kb].id if kb in spaces else None for kb in self._kbs}
        return {"embedders": named, "vectors_compared": "within each embedder"}

    def _alike(self) -> list[list[str]]:
        """The sources that have the same embedder, together."""
        alike: dict[int, list[str]] = {}
        for kb in self._kbs:
            if kb in self._embedders:
                alike.setdefault(id(self._embedders[kb]), []).append(kb)
        return list(alike.values())


def _embed_question(
    question: Question, embedder: Embedder, meaning: QuestionMeaning
) -> NDArray[np.float32]:
    """Return the question's vector to compare passages' by."""
    if embedder is meaning.embedder:
        return meaning.vector
    vector: NDArray[np.float32] = embedder.embed([question.text])[0]
    return vector


def _keyword_only_notes(failures: Mapping[str, MemctlError]) -> tuple[str, ...]:
    """One note for each reason, with the sources that it holds for."""
    kbs: dict[str, list[str]] = {}
    for kb, error in failures.items():
        kbs.setdefault(error.message, []).append(kb)
    return tuple(f"found by keyword alone in {', '.join(kbs[why])}: {why}" for why in kbs)
