"""The caller as a model: what it is asked waits until the caller gives a reply.

It stands where a configured model stands, so that a caller's replies go the way of a model's, and
are checked as those are.  Knows nothing of what is asked, nor of how a caller learns of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from memctl.errors import ModelUnavailable
from memctl.literals import Purpose, Task
from memctl.models.call_accounting import ModelAccount
from memctl.models.chat_model import ChatModel
from memctl.models.providers import Providers

if TYPE_CHECKING:
    from pydantic import BaseModel

    from memctl.config import Config

    Shape = TypeVar("Shape", bound=BaseModel)

CALLER = "caller"
"""What the model is called in the settings and in the methods of what it made."""
ID_LENGTH = 16


class CallerRequest(Struct, frozen=True):
    """What is asked of the caller."""

    id: str
    """The same for the same question about the same text."""
    task: Purpose
    prompt: str
    """Name and version."""
    instructions: str
    data: str
    """In fences that say it is data."""
    schema: dict[str, Any]
    """JSON schema of the reply."""


class ReplyPending(ModelUnavailable):
    """The caller has not replied yet."""


class CallerExchange(Struct):
    """What is asked of a caller, and what it has replied."""

    given: dict[str, bytes] = field(default_factory=dict)
    """Replies in their shape, by id."""
    wanted: dict[str, CallerRequest] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Ids of the replies that were asked for."""


class CallerModel(ChatModel):
    """Asks the caller.

    Args:
        exchange: Holds questions and replies.
        task: What it is asked for.
        account: Keeps replies, so that a document of several parts can be gone through.
    """

    def __init__(self, exchange: CallerExchange, task: Purpose, account: ModelAccount) -> None:
        # Nothing of an endpoint: there is none.
        self.name = CALLER
        self._exchange = exchange
        self._task = task
        self._account = account

    @property
    def id(self) -> str:
        """What it is called."""
        return CALLER

    def of(self, document_id: str) -> CallerModel:
        """Return it with an account of what it is asked about one document."""
        return CallerModel(self._exchange, self._task, self._account.of(document_id))

    def ask(
        self,
        instructions: str,
        data: str,
        shape: type[Shape],
        *,
        version: str,
        images: Sequence[tuple[str, bytes]] = (),
    ) -> Shape:
        """Return the caller's reply; see ``ChatModel.ask``.

        Raises:
            ReplyPending: There is none yet; what is asked is in the exchange.
        """
        key = self._key(version, instructions, data, shape, images)
        id_ = key[:ID_LENGTH]
        if (given := self._exchange.given.get(id_)) is not None:
            self._exchange.used.add(id_)
            self._account.keep(key, self._task, self.name, given)
            return shape.model_validate_json(given)
        if (known := self._account.kept_reply(key, self._task, self.name)) is not None:
            return shape.model_validate_json(known)
        self._exchange.wanted[id_] = CallerRequest(
            id_, self._task, version, instructions, data, shape.model_json_schema()
        )
        raise ReplyPending("it waits for a reply", "memctl work next")

    def stream(self, instructions: str, data: str) -> Iterator[str]:  # noqa: ARG002 - as models
        """Give nothing: a caller replies later, to work that waits.

        Raises:
            ReplyPending: Always.
        """
        raise ReplyPending("a caller answers for itself")


class CallerProviders(Providers):
    """The models that the settings name, with the caller as the model that chats.

    Args:
        config: The settings.
        account: Keeps replies and costs.
        exchange: Holds questions and replies.
    """

    def __init__(self, config: Config, account: ModelAccount, exchange: CallerExchange) -> None:
        super().__init__(config, account)
        self._exchange = exchange

    def chat(self, task: Task, purpose: Purpose | None = None) -> ChatModel | None:
        """Return the caller for a task; None where it is done the built-in way."""
        if not self.model_name(task):
            return None
        return CallerModel(self._exchange, purpose or task, self.account)
