"""What the rooms above may ask of a model, whichever implementation stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def id(self) -> str:
        """Name and version of the model, pinned in a knowledge base: ``builtin/wordllama-256``."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of length 1 (0 for an empty text), shape ``(len(texts), dimension)``."""
        ...
