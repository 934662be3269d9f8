"""What the packages above may ask of a model, whichever implementation stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from memctl.patterns import lazy_regex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.records import SourceText, Understanding

MODEL = "model/"
"""How the method of a model begins; the model's name and its prompt follow."""
NOT_BY_MODEL = "model understanding"
"""What is missing from a document that a model should have understood and did not."""

NOT_ALL_BY_MODEL = "model understanding of all parts"
"""What is missing from a document that is too long for a model to have read all of it."""

BY_MODEL = frozenset((NOT_BY_MODEL, NOT_ALL_BY_MODEL))


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def id(self) -> str:
        """Name and version of the model, as in the settings: ``builtin/wordllama-256``."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of length 1 (0 for an empty text), shape ``(len(texts), dimension)``."""
        ...


@runtime_checkable
class WordEmbedder(Embedder, Protocol):
    """An embedder that can also weigh the words of a text, as the mean of word vectors can."""

    def embed_words(self, words: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """Return one vector of length 1 for a text given word by word, each with its weight."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """A model that can tell how many tokens a text has."""

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the whole text has."""
        ...


class Reranker(Protocol):
    """Tells how well texts answer a question."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, in their order; higher is better, the scale is its own."""
        ...


BYTES_A_TOKEN = 4
_ACCENTED = lazy_regex("[\u00c0-\u024f\u1e00-\u1eff]")
_ACCENT = 0.5
"""Tokens that a Latin letter with an accent takes besides: it breaks a word into more of them."""
_CYRILLIC = lazy_regex("[\u0400-\u052f]")
_CYRILLIC_DISCOUNT = 0.1
"""Tokens that a Cyrillic letter takes less: common words of that script are known whole."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, rounded up: a quarter of its bytes, corrected.

    As many for English as four characters a token.  Of what five tokenizers (cl100k, o200k, and
    those of Qwen, DeepSeek and Mistral) count on average in one handbook in 30 languages: 0.9 to
    1.3 times for most, Chinese, Japanese and Korean among them; a fifth less for Finnish, Croatian
    and Greek, a third less for Gujarati, Telugu and Kannada.
    """
    tokens = len(text.encode("utf-8", "replace")) / BYTES_A_TOKEN
    if not text.isascii():
        tokens += _ACCENT * len(_ACCENTED.findall(text)) - _CYRILLIC_DISCOUNT * len(
            _CYRILLIC.findall(text)
        )
    return -int(-tokens // 1)


class Understander(Protocol):
    """Turns the text of a document into structure."""

    @property
    def method(self) -> str:
        """Name and version, stored with every record it makes: ``builtin/1``.

        What could not be made this way says so with another method, and is redone later.
        """
        ...

    def understand(self, sources: Sequence[SourceText]) -> list[Understanding]:
        """Return one understanding for each source, in order; never raises for odd text.

        Raises:
            ModelUnavailable: What understands cannot be had now, and they are to wait for it.
            ModelRefused: It will not do it as it is configured.
        """
        ...
