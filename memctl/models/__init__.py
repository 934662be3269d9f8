"""Models behind small protocols: built in, in a local folder, or behind an endpoint.

Only this package knows model files and the ``openai`` package.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from msgspec import Struct

from memctl.errors import ConfigError
from memctl.models.protocols import Embedder, TokenCounter, WordEmbedder

__all__ = [
    "BUILTIN_DIMENSION",
    "BUILTIN_EMBEDDER",
    "EMBEDDER_KINDS",
    "ENDPOINT",
    "ONNX",
    "Embedder",
    "EmbedderKind",
    "TokenCounter",
    "WordEmbedder",
    "load_embedder",
]

BUILTIN_EMBEDDER = "builtin/wordllama-256"
BUILTIN_DIMENSION = 256
ONNX = "onnx/"
"""What the id of a model in a folder begins with; the folder's absolute path follows."""
ENDPOINT = "endpoint/"
"""What the id of a model behind an endpoint begins with; its name there follows."""


class EmbedderKind(Struct, frozen=True):
    """A kind of embedder: how users name it, and how it is loaded."""

    usage: str
    """What stands after ``--embedder``."""
    prefix: str
    """What its ids begin with, up to a slash; without one, its only id."""
    loader: str = ""
    """``module:function`` that loads it from its id; empty for a model behind an endpoint."""

    def has(self, identifier: str) -> bool:
        """Return whether an id is of this kind."""
        if self.prefix.endswith("/"):
            return identifier.startswith(self.prefix)
        return identifier == self.prefix


EMBEDDER_KINDS: tuple[EmbedderKind, ...] = (
    EmbedderKind("builtin", BUILTIN_EMBEDDER, "memctl.models.static_embedder:load_wordllama"),
    EmbedderKind("endpoint/MODEL", ENDPOINT),
    EmbedderKind("onnx/FOLDER", ONNX, "memctl.models.onnx_models:load_onnx"),
)


def load_embedder(identifier: str) -> Embedder:
    """Return the local embedder of that id; loading takes a few dozen milliseconds, so keep it.

    Raises:
        ConfigError: There is no embedder of that id.
        MemctlError: Its files are missing or damaged.
    """
    for kind in EMBEDDER_KINDS:
        if kind.loader and kind.has(identifier):
            module, _, function = kind.loader.partition(":")
            return cast(Embedder, getattr(import_module(module), function)(identifier))
    raise ConfigError(f"unknown embedder {identifier!r}", f"use one of: {BUILTIN_EMBEDDER}")
