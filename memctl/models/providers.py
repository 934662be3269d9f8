"""Which model does which task, by the settings: one behind an endpoint or in a folder, or none.

This includes which embedder a knowledge base gets: the one asked for, else that of the settings.

The calls of all tasks that go to one endpoint share its places and its circuit breaker.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memctl.config import Config, check_base_url, endpoint_key
from memctl.errors import ConfigError, UsageError
from memctl.literals import Purpose, Task
from memctl.models import (
    BUILTIN_DIMENSION,
    BUILTIN_EMBEDDER,
    EMBEDDER_KINDS,
    ENDPOINT,
    ONNX,
    load_embedder,
)
from memctl.models.call_accounting import ModelAccount
from memctl.models.chat_model import ChatModel
from memctl.models.endpoint import Connection, Endpoint, is_loopback
from memctl.models.protocols import Embedder
from memctl.models.remote_models import RemoteEmbedder, RemoteReranker, probe_dimension
from memctl.paths import expand_path

if TYPE_CHECKING:
    from memctl.models.onnx_models import CrossEncoder
    from memctl.models.remote_models import ImageReader, RemoteTranscriber

TASKS: tuple[Task, ...] = get_args(Task)
BUILTIN = "builtin"
"""What reranking by the scores of the search can be called in the settings; so can nothing."""


class Providers:
    """The models that the settings name.

    Args:
        config: The settings.
        account: Keeps replies and costs.

    Raises:
        ConfigError: On first use: a model without an endpoint, or a key that cannot be read.
    """

    def __init__(self, config: Config, account: ModelAccount) -> None:
        self._config = config
        self.account = account
        self._mutex = threading.Lock()
        self._endpoints: dict[Connection, Endpoint] = {}

    def model_name(self, task: Task) -> str:
        """Return the name of the model for a task, "" where it is done the built-in way."""
        name: str = getattr(self._config.models, task)
        return "" if task == "rerank" and name == BUILTIN else name

    def endpoint(self, task: Task) -> Endpoint:
        """Return where the model for a task is.

        Raises:
            ConfigError: No base_url is configured for it, or its key cannot be read.
        """
        url = endpoint_url(self._config, task)
        if not url:
            raise ConfigError(
                f"models.{task} names a model, but there is no endpoint",
                "set base_url of [endpoint] in the config file",
            )
        wanted = connection(self._config, task, url)
        with self._mutex:
            if wanted not in self._endpoints:
                self._endpoints[wanted] = Endpoint(wanted)
            return self._endpoints[wanted]

    def chat(self, task: Task, purpose: Purpose | None = None) -> ChatModel | None:
        """Return the chat model for a task; None where it is done the built-in way.

        Args:
            task: What the settings name it for.
            purpose: What it is asked for, where that is something else.
        """
        name = self.model_name(task)
        if not name:
            return None
        return ChatModel(self.endpoint(task), name, purpose or task, self.account)

    def reranker(self) -> RemoteReranker | CrossEncoder | None:
        """Return what puts the best hits first; None where the scores of the search do."""
        name = self.model_name("rerank")
        if not name:
            return None
        local = self.cross_encoder()
        return local or RemoteReranker(self.endpoint("rerank"), name, self.account)

    def cross_encoder(self) -> CrossEncoder | None:
        """Return the reranker that is in a folder; None where none is, or one elsewhere."""
        folder = model_folder(self.model_name("rerank"))
        if folder is None:
            return None
        from memctl.models.onnx_models import CrossEncoder

        return CrossEncoder(folder)

    def embedder(self, identifier: str, dimension: int, kb: str) -> Embedder:
        """Return the embedder of an id, whatever model the settings name for new vectors.

        Args:
            identifier: The id.
            dimension: Length of its vectors.
            kb: The knowledge base that has them, for messages.

        Raises:
            ConfigError: There is no such embedder, or no endpoint is configured for it.
            MemctlError: Its files are missing or damaged.
        """
        if not identifier.startswith(ENDPOINT):
            return load_embedder(identifier)
        if not endpoint_url(self._config, "embed"):
            raise ConfigError(
                f"the vectors are from {identifier}, but there is no endpoint",
                "set base_url of [endpoint] in the config file, or ask by --mode keyword",
            )
        model = identifier.removeprefix(ENDPOINT)
        return RemoteEmbedder(self.endpoint("embed"), model, dimension, self.account, kb)

    def transcriber(self) -> RemoteTranscriber | None:
        """Return the model that transcribes speech; None if none is configured."""
        from memctl.models.remote_models import RemoteTranscriber

        task: Task = "transcribe"
        name = self.model_name(task)
        return RemoteTranscriber(self.endpoint(task), name, self.account) if name else None

    def image_reader(self, instructions: str, version: str) -> ImageReader | None:
        """Return the model that looks at pictures; None where none is configured.

        Args:
            instructions: What it is to do.
            version: Name and version of those.
        """
        from memctl.models.remote_models import ImageReader

        model = self.chat("image")
        return ImageReader(model, instructions, version) if model else None


def model_folder(name: str) -> Path | None:
    """Return the folder of a model that is named ``onnx/FOLDER``, None for any other."""
    folder = name.removeprefix(ONNX)
    return expand_path(folder).absolute() if name.startswith(ONNX) and folder else None


def endpoint_url(config: Config, task: Task) -> str:
    """Return where the model for a task is, "" where no endpoint is configured.

    Raises:
        ConfigError: What is configured is no address.
    """
    own: str = getattr(config.models, f"{task}_url")
    if own:
        return check_base_url(own, f"models.{task}_url")
    url = config.endpoint.base_url
    return check_base_url(url, "endpoint.base_url") if url else ""


def connection(config: Config, task: Task, url: str) -> Connection:
    """Return how the settings say the endpoint of a task is to be called.

    Raises:
        ConfigError: Its key cannot be read.
    """
    settings = config.endpoint
    return Connection(
        url,
        endpoint_key(config, task, url),
        settings.timeout_seconds,
        settings.retries,
        settings.concurrency,
    )


def without_remote_models(config: Config) -> Config:
    """Return the settings without the models that are behind an endpoint on another machine.

    What those would do is then done the built-in way; vectors of such a model cannot be had.

    Raises:
        ConfigError: An endpoint that is configured has no address.
    """
    models: dict[str, Any] = {}
    for task in TASKS:
        url, name = endpoint_url(config, task), getattr(config.models, task)
        if url and not is_loopback(url):
            models |= {f"{task}_url": ""} | ({} if model_folder(name) else {task: ""})
    base_url = config.endpoint.base_url
    kept = base_url if base_url and is_loopback(base_url) else ""
    return replace(
        config,
        models=replace(config.models, **models),
        endpoint=replace(config.endpoint, base_url=kept),
    )


def withheld_url(config: Config, left: Config, task: Task) -> str:
    """Return the address of the model for a task that is left out for being on another machine.

    Args:
        config: The settings of the program.
        left: Those of what is private.
        task: Which.

    Returns:
        The address; "" where there is no such model, or it is not left out.

    Raises:
        ConfigError: An endpoint that is configured has no address.
    """
    url = endpoint_url(config, task)
    return url if url and not endpoint_url(left, task) else ""


# --- which embedder a knowledge base gets ---------------------------------------------------------


class EmbedderChoice(Struct, frozen=True):
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


class AbsentEmbedder(Struct, frozen=True):
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
