"""The Model Context Protocol over HTTP: one request, one reply, and no session in between.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
What carries requests out is what serves them on standard input and output.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from memctl.errors import MemctlError
from memctl.operations.operation_context import OperationContext
from memctl.operations.registry import Effect
from memctl.server.http_calls import calls_of, json_reply, run
from memctl.server.http_streams import event, start_in_pieces, stream_reply
from memctl.server.mcp_protocol import (
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STATELESS_VERSIONS,
    Message,
    error_of,
    has_sound_id,
    meta_of,
    problem_of,
)
from memctl.server.mcp_session import McpSession, Send
from memctl.server.mcp_tools import choose_tools, tool_sets

_VERSION_HEADER = "mcp-protocol-version"
_NEEDS_SESSION = frozenset(("resources/subscribe", "resources/unsubscribe"))
_MAX_MESSAGES = 50


def mcp_routes() -> Sequence[BaseRoute]:
    """Return the one route of the protocol; there is no stream to listen to with GET."""
    return (Route("/mcp", _receive, methods=["POST"]),)


async def _receive(request: Request) -> Response:
    """Answer a message, or several; ``?tools=`` and ``?kb=`` are as for ``memctl mcp``."""
    version = request.headers.get(_VERSION_HEADER)
    if version is not None and version not in (*HANDSHAKE_VERSIONS, *STATELESS_VERSIONS):
        return _refusal(INVALID_REQUEST, f"Unsupported protocol version: {version[:40]}")
    try:
        message = json.loads(await request.body())
    except (ValueError, RecursionError):
        return _refusal(PARSE_ERROR, "Parse error")
    if isinstance(message, list):
        return await _receive_many(request, message)
    if not _is_message(message):
        return _refusal(INVALID_REQUEST, "Invalid request")
    if not _is_request(message):
        return Response(status_code=202)
    if _wants_progress(request, message):
        return stream_reply(_answer_in_pieces(request, message))
    return json_reply(await _answer(request, message))


async def _receive_many(request: Request, messages: list[Any]) -> Response:
    """Answer a batch, which only the revision 2025-03-26 has."""
    if not 0 < len(messages) <= _MAX_MESSAGES or not all(map(_is_message, messages)):
        return _refusal(INVALID_REQUEST, "Invalid request")
    replies = [await _answer(request, each) for each in messages if _is_request(each)]
    return json_reply(replies) if replies else Response(status_code=202)


def _refusal(code: int, message: str) -> Response:
    return json_reply(error_of(None, code, message), 400)


def _is_message(message: object) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if not has_sound_id(message):
        return False
    return isinstance(message.get("method"), str) or "result" in message or "error" in message


def _is_request(message: Mapping[str, Any]) -> bool:
    return "method" in message and message.get("id") is not None


def _wants_progress(request: Request, message: Message) -> bool:
    params = message.get("params")
    takes_events = "text/event-stream" in request.headers.get("accept", "")
    return takes_events and isinstance(params, dict) and "progressToken" in meta_of(params)


async def _answer(request: Request, message: Message, send: Send | None = None) -> Message:
    """Carry out a request, and return the response to it."""
    method, query = message["method"], request.query_params
    if method in _NEEDS_SESSION:
        problem = f"Method not found: {method} is for memctl mcp, which keeps a connection"
        return error_of(message["id"], METHOD_NOT_FOUND, problem)
    wanted = [name.strip() for name in query.get("tools", "").split(",") if name.strip()]

    def answer(context: OperationContext) -> Message:
        """Answer it as on a pipe."""
        tools = choose_tools(wanted, context)
        options = {} if send is None else {"send": send}
        return McpSession(context, tools, **options, subscribes=False).answer(message)

    try:
        return await run(request, answer, *query.getlist("kb"), effect=_effect(request, message))
    except MemctlError as error:  # whom it is for, or of what, cannot be
        return error_of(message["id"], INVALID_PARAMS, problem_of(error))


def _effect(request: Request, message: Message) -> Effect:
    """Return what a request may do; a server that only reads leaves refusing to the tools."""
    is_call = message["method"] == "tools/call" and not calls_of(request).read_only
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return "write" if is_call and name in _writing_tools() else "read"


def _writing_tools() -> frozenset[str]:
    tools = (tool for tools in tool_sets().values() for tool in tools)
    return frozenset(tool.name for tool in tools if tool.operation.effect != "read")


async def _answer_in_pieces(request: Request, message: Message) -> AsyncIterator[str]:
    """Yield notifications of progress as they come, then the response."""

    def answer(send: Send) -> Awaitable[Message]:
        """Carry it out, and send its notifications."""
        return _answer(request, message, send)

    pieces, response = start_in_pieces(answer)
    async for piece in pieces:
        yield event("message", piece)
    yield event("message", await response)
