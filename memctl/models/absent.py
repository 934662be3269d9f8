"""An embedder that cannot be had as things are configured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memctl.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AbsentEmbedder:
    """Stands for an embedder among others that can be had; fails only when it is asked."""

    id: str
    dimension: int
    error: ConfigError

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ARG002
        """Fail.

        Raises:
            ConfigError: Why it cannot be had.
        """
        raise self.error
