"""The MCP server on two streams: requests are read at once, and carried out one after the other.

Reading goes on while a request is carried out, so that it can be cancelled and pings are answered.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from memctl.errors import MemctlError
from memctl.operations.operation_context import OperationContext
from memctl.server.mcp_protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    error_of,
    has_sound_id,
    problem_of,
    result_of,
    write_message,
)
from memctl.server.mcp_session import McpSession, Send

_LONGEST_LINE = 16 << 20
_WATCH_SECONDS = 2.0
"""How often it is looked whether something has changed that a client has subscribed to."""


def refuse_requests(error: MemctlError, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every request with why there is no server, until the client closes its end.

    The first may have been answered before that was known; a server that just ends says nothing.
    """
    while line := source.readline(_LONGEST_LINE):
        with suppress(ValueError, RecursionError):
            request = json.loads(line)
            if isinstance(request, dict) and "id" in request and has_sound_id(request):
                write_message(sink, error_of(request["id"], INTERNAL_ERROR, problem_of(error)))


class McpServer:
    """Serves one client until it has gone.

    Args:
        context: For whom; it is used and closed by the thread that carries out requests.
        session: Makes what carries them out, given where notifications go.
        source: Where requests come from.
        sink: Where responses go.
    """

    def __init__(
        self,
        context: OperationContext,
        session: Callable[[Send], McpSession],
        source: BinaryIO,
        sink: BinaryIO,
    ) -> None:
        self._context = context
        self._session = session(self._send)
        self._source = source
        self._sink = sink
        self._waiting: queue.Queue[Message | list[Any] | None] = queue.Queue()
        self._cancelled: set[str | int] = set()
        self._open: set[str | int] = set()
        self._mutex = threading.Lock()
        self._has_gone = threading.Event()

    def run(self) -> None:
        """Serve until the client closes its end; what it has asked for by then is answered."""
        worker = threading.Thread(target=self._work, name="mcp-requests", daemon=True)
        worker.start()
        while not self._has_gone.is_set() and (line := self._source.readline(_LONGEST_LINE)):
            if line.strip():
                self._receive(line)
        self._waiting.put(None)
        worker.join()

    # --- reading ----------------------------------------------------------------------------------

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send(error_of(None, PARSE_ERROR, "Parse error: each line is one JSON message"))
            return
        if isinstance(message, list) and message:
            self._waiting.put(message)  # of the revision 2025-03-26
            return
        kind = _kind(message)
        if kind == "invalid":
            self._send(_invalid(message))
        elif kind == "notification":
            self._notice(message)
        elif kind == "request" and message["method"] == "ping":
            self._send(result_of(message, {}))
        elif kind == "request":
            with self._mutex:
                self._open.add(_key(message))
            self._waiting.put(message)

    def _notice(self, message: Message) -> None:
        """Record that a request that waits or is carried out is not wanted any more."""
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            key = _key({"id": params.get("requestId")})
            with self._mutex:
                if key in self._open:
                    self._cancelled.add(key)

    # --- carrying out -----------------------------------------------------------------------------

    def _work(self) -> None:
        with self._context:
            while not self._has_gone.is_set():
                try:
                    message = self._waiting.get(
                        timeout=_WATCH_SECONDS if self._session.is_watching else None
                    )
                except queue.Empty:
                    self._session.tell_changes()
                    continue
                if message is None:
                    return
                self._carry_out(message)
                if self._waiting.empty():
                    self._context.flush()
                    self._session.tell_changes()

    def _carry_out(self, message: Message | list[Any]) -> None:
        if isinstance(message, list):
            replies = [
                self._session.answer(each) if _kind(each) == "request" else _invalid(each)
                for each in message
                if _kind(each) in ("request", "invalid")
            ]
            if replies:
                self._send(replies)
            return
        key = _key(message)
        if not self._is_cancelled(key):
            reply = self._session.answer(message, lambda: self._is_cancelled(key))
            if not self._is_cancelled(key):
                self._send(reply)
        with self._mutex:
            self._open.discard(key)
            self._cancelled.discard(key)

    def _is_cancelled(self, key: str | int) -> bool:
        with self._mutex:
            return key in self._cancelled

    def _send(self, message: object) -> None:
        with self._mutex:
            try:
                write_message(self._sink, message)
            except (BrokenPipeError, ValueError):  # the client has gone
                self._has_gone.set()


def _key(message: Message) -> str | int:
    """Return the id of a request as a hashable key."""
    id_ = message.get("id")
    return id_ if isinstance(id_, (str, int)) else repr(id_)


def _invalid(message: object) -> Message:
    """Return the response to what is no request."""
    id_ = message.get("id") if isinstance(message, dict) and has_sound_id(message) else None
    return error_of(id_, INVALID_REQUEST, "Invalid request")


def _kind(message: object) -> Literal["request", "notification", "response", "invalid"]:
    if not isinstance(message, dict):
        return "invalid"
    if not isinstance(message.get("method"), str):
        return "response" if "result" in message or "error" in message else "invalid"
    if not has_sound_id(message):
        return "invalid"
    return "request" if "id" in message else "notification"
