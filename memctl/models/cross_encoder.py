"""A cross-encoder in a folder: it reads a question and a passage together and scores the pair.

Such as ms-marco-MiniLM and bge-reranker are, exported to ONNX; see ``onnx_folder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memctl.errors import ConfigError, MemctlError
from memctl.models.onnx_folder import FolderModel, load_folder, model_file, runs

_SCORES = "logits"
_EXPORT = (
    "use a cross-encoder, exported with: optimum-cli export onnx --task text-classification"
    " --model MODEL FOLDER"
)


class CrossEncoder:
    """Scores how well texts answer a question, on this machine.

    Its model is loaded when it is first needed.

    Args:
        folder: Holds ``model.onnx`` and ``tokenizer.json``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._what = f"reranker {folder.name}"

    def check(self) -> None:
        """See that the folder has what a model needs, without loading it.

        Raises:
            ConfigError: It has not.
        """
        model_file(self._what, self.folder)

    def prepare(self) -> None:
        """Load the model, before a question is timed.

        Raises:
            ConfigError: The folder holds no such model.
            MemctlError: The runtime is not installed, or a file is damaged.
        """
        _ = self._model

    @cached_property
    def _model(self) -> FolderModel:
        return load_folder(self._what, self.folder, _SCORES)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return for each text, in their order, how likely it answers the question, 0 to 1.

        Question and text count together up to the length that the model takes; an empty text is 0.

        Raises:
            ConfigError: The folder holds no model, or none that scores pairs.
            MemctlError: The runtime is not installed, or a file is damaged.
        """
        scores = np.zeros(len(texts))
        for places in runs(texts):
            heads, _ = self._model.run([(question, texts[n]) for n in places])
            scores[places] = self._likely(heads.astype(np.float64), len(places))
        return [float(score) for score in scores]

    def _likely(self, heads: NDArray[np.float64], pairs: int) -> NDArray[np.float64]:
        """The sigmoid of one head; of two, the second's share in their softmax."""
        if heads.shape not in ((pairs,), (pairs, 1), (pairs, 2)):
            raise ConfigError(f"{self._what} does not give one or two numbers for a pair", _EXPORT)
        gap = heads[:, 1] - heads[:, 0] if heads.shape == (pairs, 2) else heads.reshape(pairs)
        if not np.isfinite(gap).all():
            raise MemctlError(f"{self._what} gives what is no number", _EXPORT)
        likely: NDArray[np.float64] = np.exp(-np.logaddexp(0, -gap))
        return likely
