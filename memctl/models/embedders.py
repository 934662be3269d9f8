"""Which embedder a knowledge base gets: what is asked for, else what the settings name."""

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
    BUILTIN_EMBEDDERS,
    ONNX,
    load_embedder,
)
from memctl.models.endpoint import Endpoint
from memctl.models.providers import connection, endpoint_url, model_folder
from memctl.models.remote_embedder import ENDPOINT_PREFIX, probe_dimension

EMBEDDER_KINDS = "builtin, endpoint/MODEL or onnx/FOLDER"


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """An embedder as it is pinned in a knowledge base."""

    id: str
    dimension: int


def resolve_embedder(config: Config, wanted: str = "") -> EmbedderChoice:
    """Return the embedder that is meant, with the length of its vectors, for which it is tried.

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
    if wanted in ("", "builtin", *BUILTIN_EMBEDDERS):
        return EmbedderChoice(BUILTIN_EMBEDDER, BUILTIN_DIMENSION)
    raise UsageError(f"unknown embedder {wanted!r}", f"use {EMBEDDER_KINDS}")


def _configured(config: Config) -> str:
    return f"{ENDPOINT_PREFIX}{config.models.embed}" if config.models.embed else "builtin"


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
    return EmbedderChoice(f"{ENDPOINT_PREFIX}{model}", probe_dimension(endpoint, model))


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
