"""Which model does which task, by the settings: one behind an endpoint, or none.

The calls of all tasks that go to one endpoint share its places and its circuit breaker.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, get_args

from memctl.choices import Task
from memctl.config import Config, endpoint_key
from memctl.errors import ConfigError
from memctl.models.accounts import Account
from memctl.models.chat import ChatModel
from memctl.models.endpoint import Connection, Endpoint

if TYPE_CHECKING:
    from memctl.models.image_reader import ImageReader
    from memctl.models.transcriber import RemoteTranscriber

TASKS: tuple[Task, ...] = get_args(Task)


class Providers:
    """The models that the settings name.

    Args:
        config: The settings.
        account: Keeps replies and costs.

    Raises:
        ConfigError: On first use: a model without an endpoint, or a key that cannot be read.
    """

    def __init__(self, config: Config, account: Account) -> None:
        self._config = config
        self.account = account
        self._mutex = threading.Lock()
        self._endpoints: dict[str, Endpoint] = {}

    def model_name(self, task: Task) -> str:
        """Return the name of the model for a task, "" where it is done the built-in way."""
        name: str = getattr(self._config.models, task)
        return name

    def endpoint(self, task: Task) -> Endpoint:
        """Return where the model for a task is.

        Raises:
            ConfigError: No base_url is configured for it, or its key cannot be read.
        """
        settings = self._config.endpoint
        url: str = getattr(self._config.models, f"{task}_url") or settings.base_url
        if not url:
            raise ConfigError(
                f"models.{task} names a model, but there is no endpoint",
                "set base_url of [endpoint] in the config file",
            )
        with self._mutex:
            if url not in self._endpoints:
                connection = Connection(
                    url,
                    endpoint_key(settings),
                    settings.timeout_seconds,
                    settings.retries,
                    settings.concurrency,
                )
                self._endpoints[url] = Endpoint(connection)
            return self._endpoints[url]

    def chat(self, task: Task) -> ChatModel | None:
        """Return the chat model for a task; None where it is done the built-in way."""
        name = self.model_name(task)
        return ChatModel(self.endpoint(task), name, task, self.account) if name else None

    def transcriber(self) -> RemoteTranscriber | None:
        """Return the model that writes down what is said; None where none is configured."""
        from memctl.models.transcriber import RemoteTranscriber

        task: Task = "transcribe"
        name = self.model_name(task)
        return RemoteTranscriber(self.endpoint(task), name, self.account) if name else None

    def image_reader(self, instructions: str, version: str) -> ImageReader | None:
        """Return the model that looks at pictures; None where none is configured.

        Args:
            instructions: What it is told to do.
            version: Name and version of those.
        """
        from memctl.models.image_reader import ImageReader

        model = self.chat("image")
        return ImageReader(model, instructions, version) if model else None
