"""The built-in embedder: the mean of static token vectors, offline and without a model server.

The vectors and their tokenizer are two files inside the ``wordllama`` wheel.  They are read
straight from there: importing that package sets up logging, and its own loader pads batches and
looks for its files in the wrong folder when there is no network.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from memctl.errors import MemctlError
from memctl.models.unit import unit_rows

PACKAGE = "wordllama"
TOKENIZER_FILE = Path("tokenizers", "l2_supercat_tokenizer_config.json")
WEIGHTS_FILE = Path("weights", "l2_supercat_256.safetensors")
WEIGHTS_KEY = "embedding.weight"
DIMENSION = 256

MAX_CHARACTERS = 32_768
"""Only this much of a text's beginning is looked at, so that a huge text costs no more."""
MAX_TOKENS = 4_096
"""Only this many of its tokens count; a passage has a few hundred."""

_BATCH = 256
_HINT = f"reinstall it: python -m pip install --force-reinstall {PACKAGE}"


class StaticEmbedder:
    """Embeds a text as the mean of its tokens' vectors, scaled to length 1.

    Its files are read on first use, and nothing changes after that, so any number of threads may
    share one.

    Args:
        identifier: Name and version of the model.
        folder: The package that has the files.

    Raises:
        MemctlError: On first use: a file is missing or damaged.
    """

    def __init__(self, identifier: str, folder: Path) -> None:
        self._id = identifier
        self._folder = folder

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return _load_tokenizer(self._folder / TOKENIZER_FILE)

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        table = _load_table(self._folder / WEIGHTS_FILE)
        if table.shape[1:] != (DIMENSION,) or len(table) < self._tokenizer.get_vocab_size():
            raise MemctlError(
                f"built-in embedder: {WEIGHTS_FILE.name} has an unexpected shape", _HINT
            )
        return table

    @property
    def id(self) -> str:
        """Name and version of the model."""
        return self._id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return DIMENSION

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text (of length 0 where a text has no token).

        Only the first ``MAX_CHARACTERS`` characters and ``MAX_TOKENS`` tokens of a text count.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            part = slice(start, start + _BATCH)
            self._embed_into(vectors[part], texts[part])
        return vectors

    def embed_words(self, words: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """Return the weighted mean of the words' token vectors, scaled to length 1.

        A word of several tokens counts with its weight for each of them, as in :meth:`embed`.
        """
        total = np.zeros((1, self.dimension), dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            total += weight * self._table[self._tokens(word)].sum(axis=0)
        vector: NDArray[np.float32] = unit_rows(total)[0]
        return vector

    def count_tokens(self, text: str) -> int:
        """Return how many tokens this model's tokenizer makes of the whole text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def _embed_into(self, vectors: NDArray[np.float32], texts: Sequence[str]) -> None:
        tokens = [self._tokens(text) for text in texts]
        lengths = np.fromiter((len(ids) for ids in tokens), dtype=np.int64, count=len(tokens))
        if not lengths.any():
            return
        rows = self._table[np.concatenate([np.asarray(ids, dtype=np.int64) for ids in tokens])]
        filled = lengths > 0
        # reduceat would give the next segment's first row to an empty segment: leave those out.
        starts = (np.cumsum(lengths) - lengths)[filled]
        vectors[filled] = unit_rows(np.add.reduceat(rows, starts, axis=0))

    def _tokens(self, text: str) -> list[int]:
        # One text at a time: the tokenizer's batch calls start a thread pool of their own, and a
        # process that forks after that warns on stderr and may hang in the child (tokenizers 0.23).
        # A lone surrogate cannot cross into the tokenizer, which takes UTF-8.
        text = text[:MAX_CHARACTERS].strip().encode("utf-8", "replace").decode("utf-8")
        if not text:
            return []
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids[:MAX_TOKENS]


def load_wordllama(identifier: str) -> StaticEmbedder:
    """Return the embedder of the token vectors that the ``wordllama`` wheel carries.

    Raises:
        MemctlError: The wheel is not installed.
    """
    return _embedder_of(identifier, _package_folder())


@cache
def _embedder_of(identifier: str, folder: Path) -> StaticEmbedder:
    """One for the whole process: every knowledge base and every search asks for it."""
    return StaticEmbedder(identifier, folder)


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MemctlError(f"built-in embedder: the {PACKAGE} package is not installed", _HINT)
    return Path(spec.origin).parent


def _load_tokenizer(path: Path) -> Tokenizer:
    text = _read(path).decode("utf-8", "replace")
    try:
        return Tokenizer.from_str(text)
    except Exception as error:
        # tokenizers 0.23 raises bare Exception for a file that is not a tokenizer.
        raise MemctlError(f"built-in embedder: {path} is damaged: {error}", _HINT) from error


def _load_table(path: Path) -> NDArray[np.float32]:
    _read(path, limit=1)
    try:
        with safe_open(path, framework="numpy") as tensors:
            table: NDArray[np.float32] = tensors.get_tensor(WEIGHTS_KEY).astype(np.float32)
    except (SafetensorError, OSError) as error:
        raise MemctlError(f"built-in embedder: {path} is damaged: {error}", _HINT) from error
    return table


def _read(path: Path, limit: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise MemctlError(
            f"built-in embedder: cannot read {path}: {error.strerror}", _HINT
        ) from error
