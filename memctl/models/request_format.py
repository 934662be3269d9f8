"""How one server wants to be asked for a chat reply, found out from what it refuses.

Newer models of OpenAI take ``max_completion_tokens`` in place of ``max_tokens`` and no temperature
but the default; other servers know fewer response formats, or no ``stream_options``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import RequestRefused, RequestTooLong
from memctl.patterns import lazy_regex

if TYPE_CHECKING:
    from pydantic import BaseModel

ReplyFormat = Literal["json_schema", "json_object", "text"]
TokenLimitParameter = Literal["max_tokens", "max_completion_tokens", ""]

MAX_REPLY_TOKENS = 4_096
MAX_THINKING_TOKENS = 16_384
"""Where the model thinks before it replies, and what it thinks counts."""

_NEXT_FORMAT: dict[ReplyFormat, ReplyFormat] = {"json_schema": "json_object", "json_object": "text"}
_NEXT_LIMIT: dict[TokenLimitParameter, TokenLimitParameter] = {
    "max_tokens": "max_completion_tokens"
}
_FORMAT_REFUSAL = lazy_regex(r"response_?format|json|schema|grammar|\bformat\b|guided|structured")
_ABOUT_LIMIT = lazy_regex(r"max_(completion_)?tokens|in the completion")


class ReasoningCutOff(RequestTooLong):
    """The model thought until it was cut off, and has said nothing."""


class RequestFormat(Struct, frozen=True):
    """What is sent besides model and messages."""

    format: ReplyFormat = "json_schema"
    limit: TokenLimitParameter = "max_tokens"
    thinks: bool = False
    """Whether the model was seen to think before it replies."""
    temperature: bool = True
    stream_options: bool = True

    def for_json(self, shape: type[BaseModel]) -> dict[str, Any]:
        """Return the parameters to have a reply in a shape with."""
        return self._common() | self._response_format(shape)

    def for_stream(self) -> dict[str, Any]:
        """Return the parameters to have a plain reply in pieces with."""
        options: dict[str, Any] = {"stream_options": {"include_usage": True}}
        return self._common() | (options if self.stream_options else {}) | {"stream": True}

    def after(self, refused: RequestRefused) -> RequestFormat | None:
        """Return how to ask instead; None where it is not the manner that was refused.

        A server that calls a request too long may mean the length of the reply that it asks for.
        """
        if isinstance(refused, ReasoningCutOff):
            return replace(self, thinks=True) if self._most < MAX_THINKING_TOKENS else None
        said = f"{refused.param} {refused.said}".lower()
        if self.limit and _ABOUT_LIMIT.search(said):
            return replace(
                self, limit="" if _is_length(refused) else _NEXT_LIMIT.get(self.limit, "")
            )
        if _is_length(refused):
            return None
        if self.temperature and "temperature" in said:
            return replace(self, temperature=False)
        if self.stream_options and "stream_options" in said:
            return replace(self, stream_options=False)
        if self.format != "text" and _FORMAT_REFUSAL.search(said):
            return replace(self, format=_NEXT_FORMAT[self.format])
        return None

    def _common(self) -> dict[str, Any]:
        found: dict[str, Any] = {"temperature": 0} if self.temperature else {}
        return found | ({self.limit: self._most} if self.limit else {})

    @property
    def _most(self) -> int:
        # That a server wants the newer name says that its model thinks.
        thinks = self.thinks or self.limit != "max_tokens"
        return MAX_THINKING_TOKENS if thinks else MAX_REPLY_TOKENS

    def _response_format(self, shape: type[BaseModel]) -> dict[str, Any]:
        if self.format == "text":
            return {}
        if self.format == "json_object":
            return {"response_format": {"type": "json_object"}}
        schema = {"name": shape.__name__, "strict": True, "schema": shape.model_json_schema()}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _is_length(refused: RequestRefused) -> bool:
    return isinstance(refused, RequestTooLong)


class NegotiatedFormat:
    """The dialect of one model of one endpoint, which several threads find out together."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.current = RequestFormat()
        """How to ask, by what is known so far."""

    def change(self, sent: RequestFormat, instead: RequestFormat) -> None:
        """Use another format from now on, unless another thread changed it meanwhile."""
        with self._mutex:
            if self.current == sent:
                self.current = instead
