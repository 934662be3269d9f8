"""Models behind small protocols, built in or behind an endpoint.

The only room that knows model files.
"""

from __future__ import annotations

from memctl.errors import ConfigError
from memctl.models.protocols import Embedder, TokenCounter, WordEmbedder

__all__ = [
    "BUILTIN_EMBEDDER",
    "BUILTIN_EMBEDDERS",
    "Embedder",
    "TokenCounter",
    "WordEmbedder",
    "load_embedder",
]

BUILTIN_EMBEDDER = "builtin/wordllama-256"
BUILTIN_EMBEDDERS: tuple[str, ...] = (BUILTIN_EMBEDDER,)


def load_embedder(identifier: str) -> Embedder:
    """Return the embedder of that id; loading takes a few dozen milliseconds, so keep it.

    Raises:
        ConfigError: There is no embedder of that id.
        MemctlError: Its files are missing or damaged.
    """
    if identifier == BUILTIN_EMBEDDER:
        from memctl.models.static import load_wordllama

        return load_wordllama(identifier)
    raise ConfigError(
        f"unknown embedder {identifier!r}", f"use one of: {', '.join(BUILTIN_EMBEDDERS)}"
    )
