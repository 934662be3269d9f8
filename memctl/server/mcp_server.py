"""The MCP server on two streams: requests are read at once, and carried out one after the other.

Reading goes on while a request is carried out, so that it can be cancelled and pings are answered.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from memctl.errors import MemctlError, UsageError
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import ToolResult, error_result, run_operation
from memctl.server.mcp_protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Message,
    ProtocolError,
    check_version,
    error_of,
    greeting,
    result_of,
    write_message,
)
from memctl.server.mcp_resources import (
    get_prompt,
    list_prompts,
    list_resources,
    list_templates,
    read_resource,
)
from memctl.server.mcp_tools import McpTool

_LONGEST_LINE = 16 << 20
_log = logging.getLogger(__name__)


class McpServer:
    """Serves one client until it has gone.

    Args:
        context: For whom; it is used and closed by the thread that carries out requests.
        tools: What is offered, by name.
        source: Where requests come from.
        sink: Where responses go.
    """

    def __init__(
        self,
        context: OperationContext,
        tools: Mapping[str, McpTool],
        source: BinaryIO,
        sink: BinaryIO,
    ) -> None:
        self._context = context
        self._tools = tools
        self._source = source
        self._sink = sink
        self._waiting: queue.Queue[Message | list[Any] | None] = queue.Queue()
        self._cancelled: set[str | int] = set()
        self._open: set[str | int] = set()
        self._mutex = threading.Lock()
        self._has_gone = threading.Event()
        self._methods: dict[str, Callable[[Mapping[str, Any]], Message]] = {
            "tools/list": lambda _: {"tools": [tool.definition() for tool in tools.values()]},
            "tools/call": self._call,
            "resources/list": lambda _: list_resources(context),
            "resources/templates/list": lambda _: list_templates(),
            "resources/read": lambda params: read_resource(context, params),
            "prompts/list": lambda _: list_prompts(),
            "prompts/get": lambda params: get_prompt(context, params),
        }

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
        elif not isinstance(message, dict) or not isinstance(message.get("method"), str):
            is_response = isinstance(message, dict) and ("result" in message or "error" in message)
            if not is_response:
                id_ = message.get("id") if isinstance(message, dict) else None
                self._send(error_of(id_, INVALID_REQUEST, "Invalid request"))
        elif "id" not in message:
            self._notice(message)
        elif message["method"] == "ping":
            self._send(result_of(message, {}))
        else:
            with self._mutex:
                self._open.add(_key(message))
            self._waiting.put(message)

    def _notice(self, message: Message) -> None:
        """Note that a request that waits or is carried out is not wanted any more."""
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            key = _key({"id": params.get("requestId")})
            with self._mutex:
                if key in self._open:
                    self._cancelled.add(key)

    # --- carrying out -----------------------------------------------------------------------------

    def _work(self) -> None:
        with self._context:
            while (message := self._waiting.get()) is not None and not self._has_gone.is_set():
                if isinstance(message, list):
                    replies = [self._answer(each) for each in message if _is_request(each)]
                    if replies:
                        self._send(replies)
                    continue
                key = _key(message)
                if not self._is_cancelled(key):
                    reply = self._answer(message)
                    if not self._is_cancelled(key):
                        self._send(reply)
                with self._mutex:
                    self._open.discard(key)
                    self._cancelled.discard(key)
                if self._waiting.empty():
                    self._context.flush()

    def _is_cancelled(self, key: str | int) -> bool:
        with self._mutex:
            return key in self._cancelled

    def _answer(self, request: Message) -> Message:
        try:
            check_version(request)
            found = greeting(request)
            if found is None:
                found = self._method(request)
            return result_of(request, found)
        except ProtocolError as error:
            return error_of(request.get("id"), error.code, error.message, error.data)
        except MemctlError as error:
            told = f"{error.message} ({error.hint})" if error.hint else error.message
            return error_of(request.get("id"), INVALID_PARAMS, told)
        except Exception as error:  # noqa: BLE001 - one request fails, and not the server
            _log.exception("a request failed")
            return error_of(request.get("id"), INTERNAL_ERROR, f"{type(error).__name__}: {error}")

    def _method(self, request: Message) -> Message:
        method, params = request["method"], request.get("params", {})
        if method not in self._methods:
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method}")
        if not isinstance(params, dict):
            raise ProtocolError(INVALID_PARAMS, "params must be an object")
        return self._methods[method](params)

    def _call(self, params: Mapping[str, Any]) -> Message:
        name = params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}")
        arguments = params.get("arguments")
        try:
            result = run_operation(
                tool.operation, {} if arguments is None else arguments, self._context
            )
        except UsageError as error:  # for the model to correct
            result = error_result(error)
        return _tool_result(result)

    def _send(self, message: object) -> None:
        with self._mutex:
            try:
                write_message(self._sink, message)
            except (BrokenPipeError, ValueError):  # the client has gone
                self._has_gone.set()


def _tool_result(result: ToolResult) -> Message:
    content = [{"type": "text", "text": result.fenced_text}]
    if result.is_error:
        return {"content": content, "isError": True}
    return {"content": content, "structuredContent": result.value, "isError": False}


def _key(message: Message) -> str | int:
    """Return the id of a request as something that can be looked up."""
    id_ = message.get("id")
    return id_ if isinstance(id_, (str, int)) else repr(id_)


def _is_request(message: object) -> bool:
    return isinstance(message, dict) and isinstance(message.get("method"), str) and "id" in message
