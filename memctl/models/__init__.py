"""Models behind small protocols, built in or behind an endpoint.

The only room that knows model files.
"""

from __future__ import annotations

from pathlib import Path

from memctl.errors import ConfigError
from memctl.models.protocols import Embedder, TokenCounter, WordEmbedder

__all__ = [
    "BUILTIN_DIMENSION",
    "BUILTIN_EMBEDDER",
    "BUILTIN_EMBEDDERS",
    "ONNX",
    "Embedder",
    "TokenCounter",
    "WordEmbedder",
    "load_embedder",
]

BUILTIN_EMBEDDER = "builtin/wordllama-256"
BUILTIN_DIMENSION = 256
BUILTIN_EMBEDDERS: tuple[str, ...] = (BUILTIN_EMBEDDER,)
ONNX = "onnx/"
"""What the id of a model in a folder begins with; the folder's absolute path follows."""


def load_embedder(identifier: str) -> Embedder:
    """Return the local embedder of that id; loading takes a few dozen milliseconds, so keep it.

    Raises:
        ConfigError: There is no embedder of that id.
        MemctlError: Its files are missing or damaged.
    """
    if identifier == BUILTIN_EMBEDDER:
        from memctl.models.static_embedder import load_wordllama

        return load_wordllama(identifier)
    if identifier.startswith(ONNX):
        from memctl.models.onnx_models import load_onnx

        return load_onnx(identifier, Path(identifier.removeprefix(ONNX)))
    raise ConfigError(
        f"unknown embedder {identifier!r}", f"use one of: {', '.join(BUILTIN_EMBEDDERS)}"
    )
