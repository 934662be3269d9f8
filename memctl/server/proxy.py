"""An OpenAI-compatible server with memory in front: requests pass through, and are remembered.

What memory has to say of the latest message of the user is appended to it, where that takes no
longer than a blink; afterwards both sides are added to a conversation.  Memory never stands in the
way: what cannot be had in time, or not at all, is left out, and the header ``X-Memctl-Memory`` of
the reply says which.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Literal

import httpx
from msgspec import Struct, field
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from memctl.errors import MemctlError, UsageError
from memctl.operations.agent_hooks import capture_turns, memory_for_prompt
from memctl.readers.transcripts import TranscriptTurn, without_injected_text
from memctl.server.http_access import TOKEN_HEADER
from memctl.server.http_calls import calls_of, run

if TYPE_CHECKING:
    from memctl.operations.operation_context import OperationContext

Outcome = Literal["ok", "skipped", "failed"]
MEMORY_HEADER = "x-memctl-memory"
_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings")
_WAIT_SECONDS = 0.15
"""A request waits for memory at most this long."""
_MAX_REPLY_BYTES = 4 << 20
"""Of a reply that is remembered; a longer one passes through, and is not."""
_TIMEOUT = httpx.Timeout(600.0, connect=10.0)
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length")
)  # fmt: skip
"""Headers of one connection alone; the length is that of what is sent on."""
_OWN = frozenset((TOKEN_HEADER, "x-memctl-user", "x-memctl-agent", "x-memctl-session", "cookie"))
_DROPPED_HEADERS = frozenset(("set-cookie", "content-security-policy", "x-content-type-options"))
"""Headers of replies that would mean something to a browser that is logged in here."""
_SANDBOX_HEADERS = (
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
_GZIP = 31
"""What zlib calls the format."""
_log = logging.getLogger(__name__)


class ProxySettings(Struct, frozen=True):
    """The endpoint behind the proxy."""

    upstream: str
    """Its URL up to ``/v1``, or without that."""
    key: str = ""
    """Sent to it where the client's own key is that of this server."""
    wait_seconds: float = _WAIT_SECONDS

    @classmethod
    def of(cls, url: str) -> ProxySettings:
        """Return the settings for a URL as it is given.

        Raises:
            UsageError: It is no URL of HTTP.
        """
        found = url.strip().rstrip("/").removesuffix("/v1")
        if not found.startswith(("http://", "https://")) or len(found) < len("http://x"):
            raise UsageError(
                f"cannot pass requests on to {url!r}",
                "give a URL such as http://127.0.0.1:11434/v1",
            )
        return cls(found)


def warm_up(context: OperationContext) -> None:
    """Load what the first question needs, which takes longer than a request waits."""
    from memctl.search.answering import memory_need  # noqa: F401

    with suppress(MemctlError):
        context.reading().query("What is there?", answer=False, log=False)


def proxy_routes(settings: ProxySettings) -> Sequence[BaseRoute]:
    """Return the routes of the proxy; they come before those of other servers with these paths."""
    proxy = Proxy(settings)
    return (
        *(Route(path, proxy.forward, methods=["POST"]) for path in _PATHS),
        Route("/v1/models", proxy.forward, methods=["GET"]),
    )


class _Exchange(Struct):
    """One request that is passed on, and what is to be remembered of it."""

    body: bytes
    user_turn: TranscriptTurn | None = None
    """What the user says in it; None where a tool or the model goes on."""
    session: str = ""
    reply: bytearray = field(default_factory=bytearray)
    is_whole: bool = True


class Proxy:
    """Passes requests on to another server.

    Args:
        settings: The server, and how long to wait for it.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self._client = httpx.AsyncClient(
            timeout=_TIMEOUT, follow_redirects=False, cookies=no_cookies
        )
        self._has_warned = False

    async def forward(self, request: Request) -> Response:
        """Send a request on, and its reply back as it comes."""
        exchange = _Exchange(await request.body())
        outcome: Outcome = "skipped"
        if request.url.path == "/v1/chat/completions":
            _read(exchange, request)
            outcome = await self._remind(request, exchange)
        try:
            sent = self._client.build_request(
                request.method,
                self._settings.upstream + request.url.path,
                params=request.url.query,
                headers=self._headers(request),
                content=exchange.body,
            )
            reply = await self._client.send(sent, stream=True)
        except httpx.HTTPError as error:
            return _unreachable(self._settings.upstream, error, outcome)
        headers = [
            (name, value)
            for name, value in reply.headers.raw
            if name.lower().decode("latin-1") not in _HOP_BY_HOP | _DROPPED_HEADERS
        ]
        response = StreamingResponse(
            self._pass_on(reply, exchange),
            reply.status_code,
            background=BackgroundTask(_remember, request, exchange, reply),
        )
        response.raw_headers = [
            *headers,
            *_SANDBOX_HEADERS,
            (MEMORY_HEADER.encode("latin-1"), outcome.encode("latin-1")),
        ]
        return response

    def _headers(self, request: Request) -> list[tuple[str, str]]:
        """Return the headers to send: without this server's token, with the key of the other."""
        token = request.headers.get(TOKEN_HEADER)
        credentials = request.headers.get("authorization", "")
        has_own_key = token is not None and credentials != f"Bearer {token}"
        kept = [
            (name, value)
            for name, value in request.headers.items()
            if name not in _HOP_BY_HOP | _OWN and (has_own_key or name != "authorization")
        ]
        if not has_own_key and self._settings.key:
            kept.append(("authorization", f"Bearer {self._settings.key}"))
        return kept

    async def _pass_on(self, reply: httpx.Response, exchange: _Exchange) -> AsyncIterator[bytes]:
        """Yield a reply as it comes, byte for byte, and keep what is to be remembered of it."""
        async with aclosing(reply):
            async for piece in reply.aiter_raw():
                if exchange.user_turn is not None and exchange.is_whole:
                    exchange.reply += piece
                    exchange.is_whole = len(exchange.reply) <= _MAX_REPLY_BYTES
                yield piece

    # --- memory -----------------------------------------------------------------------------------

    async def _remind(self, request: Request, exchange: _Exchange) -> Outcome:
        """Append what memory has to say to the latest message of the user."""
        if exchange.user_turn is None:
            return "skipped"
        message = exchange.user_turn.content

        def ask(context: OperationContext) -> str:
            """Ask memory."""
            return memory_for_prompt(context, message, exchange.session)

        try:
            text = await asyncio.wait_for(run(request, ask), self._settings.wait_seconds)
        except TimeoutError:
            level = logging.INFO if self._has_warned else logging.WARNING
            _log.log(level, "without memory, which took too long; --proxy-wait gives it more time")
            self._has_warned = True
            return "failed"
        except MemctlError as error:
            _log.info("without memory: %s", error)
            return "failed"
        except Exception:  # noqa: BLE001 - memory is never in the way
            _log.exception("without memory")
            return "failed"
        if not text:
            return "skipped"
        exchange.body = _with_memory(exchange.body, text)
        return "ok"


def _unreachable(upstream: str, error: httpx.HTTPError, outcome: Outcome) -> Response:
    body = {
        "error": {
            "message": f"{upstream} cannot be reached: {error or type(error).__name__}",
            "type": "upstream_error",
            "code": "upstream_unreachable",
        }
    }
    return JSONResponse(body, 502, {MEMORY_HEADER: outcome})


# --- requests -------------------------------------------------------------------------------------


def _read(exchange: _Exchange, request: Request) -> None:
    """Record the messages of a chat request; any other request is passed on unchanged."""
    try:
        parameters = json.loads(exchange.body)
    except (ValueError, RecursionError):
        return
    messages = parameters.get("messages") if isinstance(parameters, dict) else None
    if not isinstance(messages, list) or not messages:
        return
    latest = messages[-1]
    if not isinstance(latest, dict) or latest.get("role") != "user":
        return  # a tool has answered, or the model is to go on
    text = without_injected_text(_text_of(latest.get("content")))
    if not text:
        return
    exchange.session = request.headers.get("x-memctl-session") or _name_of(messages)
    number = sum(1 for each in messages if isinstance(each, dict) and each.get("role") == "user")
    exchange.user_turn = TranscriptTurn(_id(number, "user", text), "user", text, None)


def _text_of(content: object) -> str:
    """Return the text of a message: as it stands, or of those of its parts that are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(each for each in found if isinstance(each, str))


def _name_of(messages: Sequence[Any]) -> str:
    """Return a name for an unnamed conversation, made from its first message."""
    first = next(
        (each for each in messages if isinstance(each, dict) and each.get("role") == "user"), {}
    )
    return f"proxy-{_digest(_text_of(first.get('content')))}"


def _id(number: int, sender: str, text: str) -> str:
    return f"{number}-{sender}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _with_memory(body: bytes, text: str) -> bytes:
    """Return a request with a text after the latest message of the user."""
    parameters: dict[str, Any] = json.loads(body)
    latest = parameters["messages"][-1]
    content = latest["content"]
    if isinstance(content, str):
        latest["content"] = f"{content}\n\n{text}"
    else:
        latest["content"] = [*content, {"type": "text", "text": text}]
    return json.dumps(parameters, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )


# --- replies --------------------------------------------------------------------------------------


async def _remember(request: Request, exchange: _Exchange, reply: httpx.Response) -> None:
    """Add both sides to the conversation; what goes wrong is logged, and the client is served."""
    if (
        exchange.user_turn is None
        or calls_of(request).read_only
        or reply.status_code != httpx.codes.OK
    ):
        return
    message = exchange.user_turn
    turns = [message]
    answer = _reply_text(exchange, reply.headers) if exchange.is_whole else ""
    if answer:
        number = int(message.id.partition("-")[0])
        turns.append(TranscriptTurn(_id(number, "assistant", answer), "assistant", answer, None))
    try:
        await run(
            request,
            lambda context: capture_turns(context, exchange.session, turns),
            effect="write",
        )
    except Exception:  # noqa: BLE001 - the client has its reply
        _log.exception("what was said could not be remembered")


def _reply_text(exchange: _Exchange, headers: Mapping[str, str]) -> str:
    """Return what the model said; "" where it called tools, or the reply cannot be read."""
    data = bytes(exchange.reply)
    encoding = headers.get("content-encoding", "identity")
    if encoding not in ("identity", "gzip"):
        return ""
    if encoding == "gzip":
        try:
            data = zlib.decompressobj(_GZIP).decompress(data, _MAX_REPLY_BYTES)
        except zlib.error:
            return ""
    if "event-stream" in headers.get("content-type", ""):
        return "".join(_deltas(data)).strip()
    try:
        choices = json.loads(data)["choices"]
        return str(choices[0]["message"]["content"] or "").strip()
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _deltas(data: bytes) -> list[str]:
    """Return the pieces of a reply that came as a stream of events."""
    found = []
    for line in data.splitlines():
        payload = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or payload == b"[DONE]":
            continue
        try:
            choices = json.loads(payload).get("choices") or [{}]
            piece = choices[0].get("delta", {}).get("content")
        except (ValueError, AttributeError, LookupError, RecursionError):
            continue
        if isinstance(piece, str):
            found.append(piece)
    return found
