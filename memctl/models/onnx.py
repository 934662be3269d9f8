"""An embedding model in a folder, as sentence-transformers exports it to ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memctl.errors import ConfigError
from memctl.models.onnx_folder import FolderModel, load_folder, read_settings, runs
from memctl.models.unit import unit_rows
from memctl.paths import shown

Pooling = Literal["mean", "cls"]
_POOLINGS: Mapping[str, Pooling] = {
    "mean": "mean",
    "mean_tokens": "mean",
    "cls": "cls",
    "cls_token": "cls",
}
"""By what a folder calls them, in newer and older files."""
_POOLED = "sentence_embedding"


class OnnxEmbedder:
    """Embeds texts with a transformer on this machine.

    Args:
        identifier: Its id.
        model: The transformer.
        pooling: How one vector is made of those of the tokens.
    """

    def __init__(self, identifier: str, model: FolderModel, pooling: Pooling) -> None:
        self._id = identifier
        self._model = model
        self._pooling = pooling
        self._dimension = int(self._run(["dimension"]).shape[1])

    @property
    def id(self) -> str:
        """``onnx/`` and the folder."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of length 1 (0 for an empty text), shape ``(len(texts), dimension)``.

        A text counts up to the length that the model takes.
        """
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for places in runs(texts):
            vectors[places] = self._run([texts[n] for n in places])
        return vectors

    def _run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found, mask = self._model.run(texts)
        return unit_rows(found if found.ndim == 2 else pooled(found, mask, self._pooling))


def pooled(
    states: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling
) -> NDArray[np.float32]:
    """Return one vector for each text from those of its tokens.

    Args:
        states: Of shape (texts, tokens, dimension).
        mask: 1 for a token of the text, 0 for padding.
        pooling: ``mean`` of the text's tokens, or that of the first, ``cls``.
    """
    if pooling == "cls":
        return states[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    sums: NDArray[np.float32] = (states * weights).sum(axis=1)
    means: NDArray[np.float32] = sums / np.maximum(weights.sum(axis=1), 1)
    return means


def load_onnx(identifier: str, folder: Path) -> OnnxEmbedder:
    """Load the model in a folder.

    Raises:
        ConfigError: The folder holds no such model.
        MemctlError: The runtime is not installed, or a file is damaged.
    """
    model = load_folder(f"embedder {identifier}", folder, _POOLED)
    return OnnxEmbedder(identifier, model, _pooling(folder))


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    found = read_settings(path)
    older = [key.removeprefix("pooling_mode_") for key, is_so in found.items() if is_so is True]
    named = found.get("pooling_mode") or "+".join(key for key in older if key != "include_prompt")
    pooling = _POOLINGS.get(str(named or "mean"))
    if pooling is None:
        raise ConfigError(
            f"{shown(path)} wants the pooling {named}", "use a model that pools by mean or cls"
        )
    return pooling
