"""A chat model whose replies are JSON in a given shape, or plain text.

The model has no tools and its output is only ever parsed: what a document says, it cannot make
happen.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from memctl.choices import Purpose
from memctl.errors import BadReply, ModelRefused
from memctl.models.accounts import Account, Spent
from memctl.models.endpoint import Endpoint

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from pydantic import BaseModel, ValidationError

    Shape = TypeVar("Shape", bound=BaseModel)

_FORMATS = ("json_schema", "json_object", "text")
"""From the strictest to none at all; servers differ in which they know."""
_TRIES = 2
_MOST_OUTPUT_TOKENS = 4096
_AGAIN = "That was not valid: {why}. Reply again with nothing but the JSON."


class ChatModel:
    """A model of an endpoint, for one task.

    Args:
        endpoint: Where it is.
        model: Its name there.
        task: What it is asked for.
        account: Keeps its replies and costs.
    """

    def __init__(self, endpoint: Endpoint, model: str, task: Purpose, account: Account) -> None:
        self._endpoint = endpoint
        self._model = model
        self._task: Purpose = task
        self._account = account
        self._format = 0

    @property
    def id(self) -> str:
        """The model's name and where it is."""
        return f"{self._model}@{self._endpoint.base_url}"

    @property
    def name(self) -> str:
        """The model's name alone."""
        return self._model

    def ask(
        self,
        instructions: str,
        data: str,
        shape: type[Shape],
        *,
        version: str,
        images: Sequence[tuple[str, bytes]] = (),
    ) -> Shape:
        """Return what the model makes of some data, in the shape that was asked for.

        Args:
            instructions: What to do; ours.
            data: What to do it with; somebody else's, and never instructions.
            shape: The reply's shape.
            version: Name and version of the prompt, such as ``understand/1``.
            images: Media type and bytes of each picture that belongs to the data.

        Raises:
            ModelUnavailable: Not now; see ``Endpoint.call``, or the budget is spent.
            ModelRefused: Not as it is configured.
            BadReply: Twice not in that shape.
        """
        key = self._key(version, instructions, data, shape, images)
        known = self._account.known(key, self._task, self.name)
        if known is not None:
            return shape.model_validate_json(known)
        messages = _messages(instructions, data, images)
        made = self._shaped(messages, shape)
        self._account.keep(key, self._task, self.name, made.model_dump_json().encode())
        return made

    def stream(self, instructions: str, data: str) -> Iterator[str]:
        """Yield the pieces of a plain reply as they arrive; such a reply is not kept.

        Raises:
            ModelUnavailable: As :meth:`ask`; also when it breaks off in the middle.
            ModelRefused: As :meth:`ask`.
        """
        self._account.require_budget()
        began = time.monotonic()
        spent = Spent()
        with self._endpoint.calling() as client:
            pieces = client.chat.completions.create(
                model=self._model,
                messages=_messages(instructions, data, ()),
                max_tokens=_MOST_OUTPUT_TOKENS,
                stream=True,
                stream_options={"include_usage": True},
            )
            for piece in pieces:
                spent = _spent(piece) if piece.usage else spent
                text = piece.choices[0].delta.content if piece.choices else None
                if text:
                    yield text
        self._account.spent(self._task, self.name, spent, time.monotonic() - began)

    # --- inside ---

    def _key(
        self,
        version: str,
        instructions: str,
        data: str,
        shape: type[BaseModel],
        images: Sequence[tuple[str, bytes]],
    ) -> str:
        schema = json.dumps(shape.model_json_schema(), sort_keys=True)
        digest = hashlib.sha256()
        for part in (self._model, version, instructions, schema, data):
            digest.update(part.encode("utf-8", "replace") + b"\0")
        for kind, content in images:
            digest.update(kind.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def _shaped(self, messages: list[Any], shape: type[Shape]) -> Shape:
        from pydantic import ValidationError

        why = ""
        for _ in range(_TRIES):
            text = self._reply(messages, shape)
            try:
                return shape.model_validate_json(_json_in(text))
            except ValidationError as error:
                why = _first_complaint(error)
                again = {"role": "user", "content": _AGAIN.format(why=why)}
                messages = [*messages, {"role": "assistant", "content": text}, again]
        raise BadReply(
            f"{self._model} twice replied with something else than was asked for: {why}",
            "a larger model may do better; memctl models test tries it",
        )

    def _reply(self, messages: list[Any], shape: type[BaseModel]) -> str:
        """One reply; a format that the server does not know is not asked for again."""
        while True:
            try:
                return self._send(messages, _response_format(_FORMATS[self._format], shape))
            except ModelRefused as error:
                is_last = self._format == len(_FORMATS) - 1
                if is_last or "answered 400" not in error.message:
                    raise
                self._format += 1

    def _send(self, messages: list[Any], response_format: dict[str, Any]) -> str:
        self._account.require_budget()
        began = time.monotonic()
        try:
            reply: ChatCompletion = self._endpoint.call(
                lambda client: client.chat.completions.create(
                    model=self._model,
                    messages=messages,
                    max_tokens=_MOST_OUTPUT_TOKENS,
                    temperature=0,
                    **response_format,
                )
            )
        except Exception:
            self._account.failed(self._task, self.name, time.monotonic() - began)
            raise
        self._account.spent(self._task, self.name, _spent(reply), time.monotonic() - began)
        choices = reply.choices or []
        return (choices[0].message.content or "") if choices else ""


def _messages(instructions: str, data: str, images: Sequence[tuple[str, bytes]]) -> list[Any]:
    from base64 import b64encode

    content: Any = data
    if images:
        pictures = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:{kind};base64,{b64encode(found).decode()}"},
            }
            for kind, found in images
        ]
        content = [{"type": "text", "text": data}, *pictures]
    return [
        {"role": "system", "content": instructions},
        {"role": "user", "content": content},
    ]


def _response_format(kind: str, shape: type[BaseModel]) -> dict[str, Any]:
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": shape.__name__, "strict": True, "schema": shape.model_json_schema()}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _spent(reply: Any) -> Spent:
    usage = getattr(reply, "usage", None)
    if usage is None:
        return Spent()
    return Spent(usage.prompt_tokens or 0, usage.completion_tokens or 0)


def _json_in(text: str) -> str:
    """The JSON object in a reply, which some models wrap in words or in a fence."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def _first_complaint(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}" if place else str(found["msg"])
