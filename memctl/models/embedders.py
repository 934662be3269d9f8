"""Which embedder a knowledge base gets: the one asked for, else the one in the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memctl.config import Config
from memctl.errors import ConfigError, UsageError
from memctl.models import (
    BUILTIN_DIMENSION,
    BUILTIN_EMBEDDER,
    EMBEDDER_KINDS,
    ENDPOINT,
    ONNX,
    load_embedder,
)
from memctl.models.endpoint import Endpoint
from memctl.models.providers import connection, endpoint_url, model_folder
from memctl.models.remote_embedder import probe_dimension


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """An embedder as the settings of a knowledge base name it."""

    id: str
    dimension: int


def resolve_embedder(config: Config, wanted: str = "") -> EmbedderChoice:
    """Return the embedder with the length of its vectors, which takes trying it.

    Args:
        config: Names the endpoint and, in ``models.embed``, its embedder.
        wanted: ``builtin``, ``endpoint/MODEL`` (``endpoint`` for that of the settings) or
            ``onnx/FOLDER``; by default what the settings say.

    Raises:
        UsageError: There is no such embedder.
        ConfigError: No endpoint is configured for it.
        ModelError: The endpoint cannot or will not do it.
    """
    kind, _, name = (wanted or _configured(config)).partition("/")
    if kind == "endpoint":
        return _remote(config, name or config.models.embed)
    if folder := model_folder(wanted):
        identifier = f"{ONNX}{folder}"
        return EmbedderChoice(identifier, load_embedder(identifier).dimension)
    if wanted in ("", "builtin", BUILTIN_EMBEDDER):
        return EmbedderChoice(BUILTIN_EMBEDDER, BUILTIN_DIMENSION)
    *others, last = (kind.usage for kind in EMBEDDER_KINDS)
    raise UsageError(f"unknown embedder {wanted!r}", f"use {', '.join(others)} or {last}")


def _configured(config: Config) -> str:
    return f"{ENDPOINT}{config.models.embed}" if config.models.embed else "builtin"


def _remote(config: Config, model: str) -> EmbedderChoice:
    url = endpoint_url(config, "embed")
    if not model:
        raise ConfigError("no embedding model is named", "say endpoint/MODEL, or set models.embed")
    if not url:
        raise ConfigError(
            f"there is no endpoint to have {model} from",
            "set base_url of [endpoint] in the config file",
        )
    endpoint = Endpoint(connection(config, "embed", url))
    return EmbedderChoice(f"{ENDPOINT}{model}", probe_dimension(endpoint, model))


@dataclass(frozen=True, slots=True)
class AbsentEmbedder:
    """Stands for an embedder that is not available; fails only when it is used."""

    id: str
    dimension: int
    error: ConfigError

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ARG002
        """Fail.

        Raises:
            ConfigError: Why it is not available.
        """
        raise self.error
