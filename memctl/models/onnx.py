"""An embedding model in a folder, as sentence-transformers exports it to ONNX.

The extra ``onnx`` brings the runtime.  Nothing is downloaded and nothing is sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memctl.errors import ConfigError, MemctlError
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

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
MOST_TOKENS = 512
"""Where the folder does not say how long a text may be."""
TEXTS_A_RUN = 32
MOST_CHARACTERS = 32_768
"""So much of a text's beginning is looked at."""
_POOLED = "sentence_embedding"


class Session(Protocol):
    """What is used of an ``onnxruntime.InferenceSession``."""

    def get_inputs(self) -> Sequence[Any]:
        """Return the model's inputs, each with a name."""
        ...

    def get_outputs(self) -> Sequence[Any]:
        """Return the model's outputs, each with a name."""
        ...

    def run(self, wanted: Sequence[str], inputs: Mapping[str, Any]) -> Sequence[Any]:
        """Return the outputs that are wanted."""
        ...


class OnnxEmbedder:
    """Embeds texts with a transformer on this machine.

    Args:
        identifier: Its id.
        session: The model.
        tokenizer: Cuts texts to the length that the model takes.
        pooling: How one vector is made of those of the tokens.
    """

    def __init__(
        self, identifier: str, session: Session, tokenizer: Tokenizer, pooling: Pooling
    ) -> None:
        self._id = identifier
        self._session = session
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._inputs = {item.name for item in session.get_inputs()}
        outputs = [item.name for item in session.get_outputs()]
        self._output = _POOLED if _POOLED in outputs else outputs[0]
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
        # Texts of about a length go together, so that little is padded.
        order = sorted(
            (n for n, text in enumerate(texts) if text.strip()), key=lambda n: len(texts[n])
        )
        for at in range(0, len(order), TEXTS_A_RUN):
            part = order[at : at + TEXTS_A_RUN]
            vectors[part] = self._run([texts[n] for n in part])
        return vectors

    def _run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        ids, mask = _padded([self._tokens(text) for text in texts])
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        inputs = {name: value for name, value in given.items() if name in self._inputs}
        found = np.asarray(self._session.run([self._output], inputs)[0], dtype=np.float32)
        return unit_rows(found if found.ndim == 2 else pooled(found, mask, self._pooling))

    def _tokens(self, text: str) -> tuple[list[int], list[int]]:
        # One text at a time: batches start threads that do not outlive a fork (tokenizers 0.23).
        # A lone surrogate cannot cross into the tokenizer, which takes UTF-8.
        whole = text[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
        found = self._tokenizer.encode(whole)
        return found.ids, found.attention_mask


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


def _padded(
    tokens: Sequence[tuple[list[int], list[int]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    longest = max(len(ids) for ids, _ in tokens)
    ids = np.zeros((len(tokens), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, (own, attended) in enumerate(tokens):
        ids[row, : len(own)] = own
        mask[row, : len(own)] = attended
    return ids, mask


# --- loading -------------------------------------------------------------------------------------


def load_onnx(identifier: str, folder: Path) -> OnnxEmbedder:
    """Load the model in a folder.

    Raises:
        ConfigError: The folder holds no such model.
        MemctlError: The runtime is not installed, or a file is damaged.
    """
    model = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if model is None or not (folder / "tokenizer.json").is_file():
        missing = "tokenizer.json" if model else " or ".join(MODEL_FILES)
        raise ConfigError(
            f"embedder {identifier}: there is no {missing} in {shown(folder)}",
            "export the model with: optimum-cli export onnx --model MODEL FOLDER",
        )
    return OnnxEmbedder(identifier, _session(model), _tokenizer(folder), _pooling(folder))


def _session(model: Path) -> Session:
    # onnxruntime 1.31 writes an id of the device to the home folder when it is imported.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:
        raise MemctlError(
            "embedders in a folder need onnxruntime, which is not installed",
            "pip install 'memctl[onnx]'",
        ) from error
    try:
        made: Session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime 1.31 has a class for each way to fail, with no common base but Exception.
        raise MemctlError(
            f"cannot load {shown(model)}: {str(error).splitlines()[0]}", "export the model again"
        ) from error
    return made


def _tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:
        # tokenizers 0.23 raises bare Exception for a file that is not a tokenizer.
        raise MemctlError(f"{shown(path)} is damaged: {error}", "export the model again") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_most_tokens(folder))
    return tokenizer


def _most_tokens(folder: Path) -> int:
    """The least of the lengths that the folder's files name."""
    named = (
        _read(folder / "sentence_bert_config.json").get("max_seq_length"),
        _read(folder / "tokenizer_config.json").get("model_max_length"),
        _read(folder / "config.json").get("max_position_embeddings"),
    )
    return min((int(length) for length in named if length), default=MOST_TOKENS)


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    found = _read(path)
    older = [key.removeprefix("pooling_mode_") for key, is_so in found.items() if is_so is True]
    named = found.get("pooling_mode") or "+".join(key for key in older if key != "include_prompt")
    pooling = _POOLINGS.get(str(named or "mean"))
    if pooling is None:
        raise ConfigError(
            f"{shown(path)} wants the pooling {named}", "use a model that pools by mean or cls"
        )
    return pooling


def _read(path: Path) -> Mapping[str, Any]:
    """Return the settings in a file, none where there is no file."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise MemctlError(
            f"cannot read {shown(path)}: {error}", "export the model again"
        ) from error
    return found if isinstance(found, dict) else {}
