"""A chat model whose replies are JSON in a given shape, or plain text.

The model has no tools and its output is only ever parsed: what a document says, it cannot make
happen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from memctl.errors import BadReply, ModelUnavailable, RequestRefused, RequestTooLong
from memctl.literals import Purpose
from memctl.models.call_accounting import CallUsage, ModelAccount, ModelCall
from memctl.models.endpoint import Endpoint
from memctl.models.request_format import ReasoningCutOff, RequestFormat

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion
    from pydantic import BaseModel, ValidationError

    Shape = TypeVar("Shape", bound=BaseModel)


_MAX_TRIES = 2
_SHOWN = 200
_LARGER = "a larger model may do better; memctl models test tries it"
_FILTERED = "a filter of its provider stopped the reply"
_RETRY_PROMPT = "That was not valid: {why}. Reply again with nothing but the JSON."


class ChatModels(Struct, frozen=True):
    """Which model is asked about what is of a namespace."""

    usual: ChatModel
    private: ChatModel | None = None
    """That for private namespaces; None where none may be asked about them."""
    namespaces: frozenset[str] = frozenset()
    """The private ones."""

    def of(self, namespace: str) -> ChatModel | None:
        """Return the model for a namespace."""
        return self.private if namespace in self.namespaces else self.usual


class ChatModel:
    """A model of an endpoint, for one task.

    Args:
        endpoint: Where it is.
        model: Its name there.
        task: What it is asked for.
        account: Keeps its replies and costs.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, task: Purpose, account: ModelAccount
    ) -> None:
        self._endpoint = endpoint
        self.name = model
        self._task: Purpose = task
        self._account = account
        self._negotiated_formats = endpoint.negotiated_format(model)

    @property
    def id(self) -> str:
        """The model's name and where it is."""
        return f"{self.name}@{self._endpoint.base_url}"

    def of(self, document_id: str) -> ChatModel:
        """Return it with an account of what it uses for one document; "" for that of none."""
        account = self._account.of(document_id)
        return ChatModel(self._endpoint, self.name, self._task, account)

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
            data: What to do it with; foreign text, never instructions.
            shape: The reply's shape.
            version: Name and version of the prompt, such as ``understand/1``.
            images: Media type and bytes of each picture that belongs to the data.

        Raises:
            ModelUnavailable: Not now; see ``Endpoint.call``, or the budget is spent.
            ModelRefused: Not as it is configured.
            RequestRefused: Not this; or it is too long, or the reply to it.
            BadReply: Twice not in that shape.
        """
        key = self._key(version, instructions, data, shape, images)

        def fetch_reply() -> bytes:
            """Ask the model; return its reply as JSON."""
            messages = _messages(instructions, data, images)
            return self._request_shape(messages, shape).model_dump_json().encode()

        reply = self._account.once(key, self._task, self.name, fetch_reply)
        return shape.model_validate_json(reply)

    def stream(self, instructions: str, data: str) -> Iterator[str]:
        """Yield the pieces of a plain reply as they arrive; such a reply is not kept.

        Raises:
            ModelUnavailable: As :meth:`ask`; also when it breaks off in the middle.
            ModelRefused, RequestRefused: As :meth:`ask`.
            BadReply: It was empty, or cut off because it grew too long.
        """
        messages = _messages(instructions, data, ())
        while True:
            sent = self._negotiated_formats.current
            try:
                yield from self._stream(messages, sent)
                return
            except RequestRefused as error:
                self._ask_otherwise(sent, error)

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
        for part in (self.name, version, instructions, schema, data):
            digest.update(part.encode("utf-8", "replace") + b"\0")
        for kind, content in images:
            digest.update(kind.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def _request_shape(self, messages: list[Any], shape: type[Shape]) -> Shape:
        from pydantic import ValidationError

        why = ""
        for _ in range(_MAX_TRIES):
            reply = self._reply(messages, shape)
            try:
                return shape.model_validate_json(json_in(reply.text))
            except ValidationError as error:
                if reply.is_cut:
                    raise self._too_long() from error
                why = _first_complaint(error) if reply.text else "it was empty"
                messages = [*messages, *_again(reply.text, why)]
        raise BadReply(
            f"{self.name} twice replied with something else than was asked for: {why}",
            _LARGER,
        )

    def _reply(self, messages: list[Any], shape: type[BaseModel]) -> _Reply:
        """One reply; what the server or the model does not take is not asked for again."""
        while True:
            sent = self._negotiated_formats.current
            try:
                return self._parse_reply(self._send(messages, sent, shape))
            except RequestRefused as error:
                self._ask_otherwise(sent, error)

    def _ask_otherwise(self, sent: RequestFormat, error: RequestRefused) -> None:
        """Record how to ask instead.

        Raises:
            RequestRefused: There is no other way.
        """
        instead = sent.after(error)
        if instead is None:
            raise error
        self._negotiated_formats.change(sent, instead)

    def _send(
        self, messages: list[Any], sent: RequestFormat, shape: type[BaseModel]
    ) -> ChatCompletion:
        with self._account_for(sent) as call:
            reply: ChatCompletion = self._endpoint.call(
                lambda client: client.chat.completions.create(
                    model=self.name, messages=messages, **sent.for_json(shape)
                )
            )
            call.spent = _usage_of(reply)
        return reply

    def _account_for(self, sent: RequestFormat) -> AbstractContextManager[ModelCall]:
        """Record what a call costs; one that is only to be made otherwise is not noted."""

        def is_no_call(error: BaseException) -> bool:
            """Return whether the same is only to be asked in other terms."""
            return isinstance(error, RequestRefused) and sent.after(error) is not None

        return self._account.calling(self._task, self.name, is_no_call=is_no_call)

    def _parse_reply(self, reply: ChatCompletion) -> _Reply:
        choice = reply.choices[0] if reply.choices else None
        if choice is None:
            return _Reply("", is_cut=False)
        message, is_cut = choice.message, choice.finish_reason == "length"
        if choice.finish_reason == "content_filter" or message.refusal:
            raise self._will_not(message.refusal or _FILTERED)
        shown = _plain(message.content)
        text = without_thoughts(shown)
        thought = shown or _plain(getattr(message, "reasoning_content", None))
        if is_cut and not text:
            raise self._cut_off_error() if thought else self._too_long()
        # Some servers take a reply without thoughts for one.
        return _Reply(text or without_thoughts(thought), is_cut)

    def _stream(self, messages: list[Any], sent: RequestFormat) -> Iterator[str]:
        spoken, end, refused, is_empty = VisibleReply(), "", "", True
        with self._account_for(sent) as call, self._endpoint.calling() as client:
            for piece in client.chat.completions.create(
                model=self.name, messages=messages, **sent.for_stream()
            ):
                call.spent = _usage_of(piece) if piece.usage else call.spent
                if not piece.choices:
                    continue
                choice = piece.choices[0]
                end, refused = choice.finish_reason or end, refused + (choice.delta.refusal or "")
                if text := spoken.add(_plain(choice.delta.content)):
                    is_empty = False
                    yield text
            if not end and not refused:  # a closed connection looks like the end of what was said
                raise ModelUnavailable(
                    f"{self._endpoint.base_url} broke off in the middle of a reply",
                    "it may be back later",
                )
        if rest := spoken.rest():
            is_empty = False
            yield rest
        if refused or end == "content_filter":
            raise self._will_not(refused or _FILTERED)
        if is_empty and end == "length":
            raise self._cut_off_error()
        if is_empty:
            raise BadReply(f"{self.name} replied with nothing", _LARGER)
        if end == "length":
            raise BadReply(f"{self.name} was cut off in the middle of a long reply", _LARGER)

    def _will_not(self, reason: str) -> RequestRefused:
        words = " ".join(reason.split())[:_SHOWN]
        return RequestRefused(f"{self.name} will not: {words}", "another model may")

    def _too_long(self) -> RequestTooLong:
        return RequestTooLong(f"{self.name} was cut off in the middle of a long reply", _LARGER)

    def _cut_off_error(self) -> ReasoningCutOff:
        return ReasoningCutOff(
            f"{self.name} thought until it was cut off, and said nothing", _LARGER
        )


class _Reply(Struct, frozen=True):
    """What a model said."""

    text: str
    is_cut: bool
    """Whether it would have said more."""


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


def _again(text: str, reason: str) -> list[Any]:
    """What is said to a model whose reply was of no use; some servers take no empty message."""
    if not text:
        return []
    again = {"role": "user", "content": _RETRY_PROMPT.format(why=reason)}
    return [{"role": "assistant", "content": text}, again]


def _plain(content: Any) -> str:
    """The text of a message; of one in parts, those that are text."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage_of(reply: Any) -> CallUsage:
    usage = getattr(reply, "usage", None)
    if usage is None:
        return CallUsage()
    return CallUsage(usage.prompt_tokens or 0, usage.completion_tokens or 0)


def _first_complaint(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}" if place else str(found["msg"])


_OPEN, _CLOSE = "<think>", "</think>"
_FENCED = re.compile(r"^[ \t]*```\w*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def without_thoughts(text: str) -> str:
    """Return a reply from where the model has done thinking; "" where it never was."""
    _, closed, after = text.rpartition(_CLOSE)
    if closed:
        return after.lstrip()
    return "" if text.lstrip().startswith(_OPEN) else text


def json_in(text: str) -> str:
    """Return the JSON object in a reply, which some models wrap in words or in a fence."""
    plain = text.strip()
    fenced = None if plain.startswith("{") else _FENCED.search(plain)
    inner = fenced[1] if fenced and "{" in fenced[1] else plain
    start, end = inner.find("{"), inner.rfind("}")
    return inner[start : end + 1] if 0 <= start < end else inner


class VisibleReply:
    """The pieces of a reply as they arrive, without the thoughts in front of it."""

    def __init__(self) -> None:
        self._held = ""
        self._speaks = False

    def add(self, piece: str) -> str:
        """Return what can be shown now that a piece has arrived."""
        if self._speaks:
            return piece
        begun = (self._held + piece).lstrip()
        if begun.startswith(_OPEN):
            thoughts, closed, begun = begun.partition(_CLOSE)
            if not closed:
                self._held = thoughts
                return ""
            begun = begun.lstrip()
        if _OPEN.startswith(begun):  # nothing yet, or perhaps the beginning of a thought
            self._held = begun
            return ""
        self._held, self._speaks = "", True
        return begun

    def rest(self) -> str:
        """Return what was held back to the end and is no thought."""
        return "" if self._held.startswith(_OPEN) else self._held
