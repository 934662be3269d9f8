"""What one MCP client asks for, carried out: requests become responses, whatever carries them.

Knows nothing of streams or sockets: ``mcp_server`` has it on two streams, and an HTTP endpoint can
hold one for each client.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memctl.errors import MemctlError, UsageError
from memctl.operations.agent_skills import served_skill_list, served_skill_text
from memctl.operations.tool_calls import ToolResult, error_result, run_operation
from memctl.server.mcp_prompts import get_prompt, list_prompts
from memctl.server.mcp_protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    ProtocolError,
    check_version,
    error_of,
    greeting,
    meta_of,
    notification,
    problem_of,
    result_of,
)
from memctl.server.mcp_resources import (
    complete_argument,
    is_watchable,
    list_resources,
    list_templates,
    read_resource,
    skill_named,
)

if TYPE_CHECKING:
    from memctl.operations.operation_context import OperationContext
    from memctl.records import Progress
    from memctl.server.mcp_tools import McpTool

Send = Callable[[Message], None]
_MAX_SUBSCRIPTIONS = 100
_log = logging.getLogger(__name__)


def _drop(_: Message) -> None:
    """Drop messages that cannot be sent between request and response."""


def _is_never_cancelled() -> bool:
    return False


class Cancelled(MemctlError):
    """The client does not want the result any more; nothing further is written for it."""


class McpSession:
    """One client of the server.

    Args:
        context: For whom, and what they may see; calls are made in one thread at a time.
        tools: What is offered, by name.
        send: Takes notifications of progress and of changes; by default they are dropped.
        subscribes: Whether the client may subscribe to resources.
    """

    def __init__(
        self,
        context: OperationContext,
        tools: Mapping[str, McpTool],
        send: Send = _drop,
        *,
        subscribes: bool = True,
    ) -> None:
        self._context = context
        self._subscribes = subscribes
        self._tools = tools
        self._send = send
        self._watched: dict[str, str] = {}
        self._is_cancelled = _is_never_cancelled
        self._methods: dict[str, Callable[[Mapping[str, Any]], Message]] = {
            "tools/list": lambda _: {"tools": [tool.definition() for tool in tools.values()]},
            "tools/call": self._call,
            "resources/list": lambda params: list_resources(context, params),
            "resources/templates/list": lambda _: list_templates(),
            "resources/read": lambda params: read_resource(context, params),
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": lambda _: list_prompts(),
            "prompts/get": lambda params: get_prompt(context, params),
            "skills/list": lambda _: served_skill_list(context),
            "skills/get": lambda params: served_skill_text(context, skill_named(params)),
            "completion/complete": lambda params: complete_argument(context, params),
            "logging/setLevel": lambda _: {},
        }

    def answer(
        self, request: Message, is_cancelled: Callable[[], bool] = _is_never_cancelled
    ) -> Message:
        """Carry out a request, and return the response to it.

        Args:
            request: The request.
            is_cancelled: Whether the client does not want it any more; a call that tells its
                progress ends then.
        """
        self._is_cancelled = is_cancelled
        try:
            check_version(request)
            found = greeting(request, subscribes=self._subscribes)
            if found is None:
                found = self._method(request)
            return result_of(request, found)
        except ProtocolError as error:
            return error_of(request.get("id"), error.code, error.message, error.data)
        except MemctlError as error:
            return error_of(request.get("id"), INVALID_PARAMS, problem_of(error))
        except Exception as error:  # noqa: BLE001 - one request fails, and not the server
            _log.exception("a request failed")
            return error_of(request.get("id"), INTERNAL_ERROR, f"{type(error).__name__}: {error}")

    @property
    def is_watching(self) -> bool:
        """Whether the client wants to hear of changes."""
        return bool(self._watched)

    def tell_changes(self) -> None:
        """Notify the client of changes to resources that it has subscribed to."""
        for uri, before in list(self._watched.items()):
            now = self._state(uri)
            if now != before:
                self._watched[uri] = now
                self._send(notification("notifications/resources/updated", uri=uri))

    # --- inside -----------------------------------------------------------------------------------

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
        token = meta_of(params).get("progressToken")
        context = self._context
        context.progress = self._progress(token)
        try:
            result = run_operation(
                tool.operation, {} if arguments is None else arguments, self._context
            )
        except UsageError as error:  # for the model to correct
            result = error_result(error)
        finally:
            context.progress = None
        return tool_result(result, plain=tool.is_plain)

    def _progress(self, token: object) -> Callable[[Progress], None]:
        """Return a listener that sends progress to a client with a token; the numbers only grow.

        It ends a call that was cancelled, before the next of what the call writes.
        """
        last = -1

        def tell(progress: Progress) -> None:
            """Send one notification, if it says something new."""
            nonlocal last
            if self._is_cancelled():
                raise Cancelled("the client has cancelled the call")
            if token is None or progress.done <= last:
                return
            last = progress.done
            params: Message = {"progressToken": token, "progress": progress.done}
            if progress.total:
                params["total"] = progress.total
            if progress.note:
                params["message"] = progress.note
            self._send(notification("notifications/progress", **params))

        return tell

    def _subscribe(self, params: Mapping[str, Any]) -> Message:
        uri = params.get("uri")
        if not isinstance(uri, str) or not is_watchable(uri):
            raise ProtocolError(INVALID_PARAMS, f"There are no updates of {uri}", {"uri": uri})
        if len(self._watched) >= _MAX_SUBSCRIPTIONS and uri not in self._watched:
            raise ProtocolError(INVALID_PARAMS, f"at most {_MAX_SUBSCRIPTIONS} subscriptions")
        read_resource(self._context, params)  # refuses what this caller may not see
        self._watched[uri] = self._state(uri)
        return {}

    def _unsubscribe(self, params: Mapping[str, Any]) -> Message:
        self._watched.pop(str(params.get("uri")), None)
        return {}

    def _state(self, uri: str) -> str:
        """Return a digest of a resource; "" if it cannot be read."""
        try:
            found = read_resource(self._context, {"uri": uri})
        except (MemctlError, ProtocolError):
            return ""
        return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def tool_result(result: ToolResult, *, plain: bool) -> Message:
    """Return the result of a call as MCP has it.

    Args:
        result: What the operation gave.
        plain: Whether the text is the JSON of the result alone, without a fence.
    """
    text = json.dumps(result.value, ensure_ascii=False) if plain else result.fenced_text
    if result.is_error and not plain and (hint := result.value.get("hint")):
        text = f"{text}\nhint: {hint}"
    content: Sequence[Message] = [{"type": "text", "text": text}]
    if result.is_error:
        return {"content": content, "isError": True}
    return {"content": content, "structuredContent": result.value, "isError": False}
