"""Operations as tools of language models: definitions in each vendor's format, calls and replies.

What comes out of memory is data: in a reply to a model it stands in a fence that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memctl.errors import AccessRefused, MemctlError, UsageError
from memctl.literals import ToolFormat
from memctl.operations.operation_context import (
    NO_KNOWLEDGE_BASE,
    NO_MEMORY,
    OperationContext,
    Unavailable,
)
from memctl.operations.parameters import (
    JsonObject,
    parameter_schema,
    parse_arguments,
    result_schema,
)
from memctl.operations.registry import OPERATIONS, Operation, find_operation
from memctl.plain_values import to_plain
from memctl.prompts import fenced
from memctl.store.ledger.audit_repositories import reading_as

MAX_CHARACTERS = 25_000
"""Of a result; what is more is cut, with a note."""
_SHORTEST_TEXT = 200
_CUT = f"cut to {MAX_CHARACTERS:,} characters; ask for fewer, or page with offset or start"
_UNKNOWN_TO_GEMINI = frozenset(("additionalProperties", "default"))


# --- definitions ----------------------------------------------------------------------------------


def allowed_operations(context: OperationContext | None = None) -> list[Operation]:
    """Return the operations that a caller may use, in order; without a caller, all."""
    return [each for each in OPERATIONS if context is None or not refusal(each, context)]


def definitions(
    format_: ToolFormat, operations: Sequence[Operation] = OPERATIONS, *, strict: bool = False
) -> list[JsonObject]:
    """Return the definitions of operations as a request to a model has them.

    Args:
        format_: The API whose requests they are for.
        operations: The operations to define.
        strict: Whether their schemas are for strict modes.
    """
    made = [_FORMATS[format_](each, strict) for each in operations]
    return [{"functionDeclarations": made}] if format_ == "gemini" else made


def _openai(operation: Operation, strict: bool) -> JsonObject:
    function = {
        "name": operation.name,
        "description": operation.description,
        "parameters": parameter_schema(operation.parameters, strict=strict),
    }
    return {"type": "function", "function": function | ({"strict": True} if strict else {})}


def _anthropic(operation: Operation, strict: bool) -> JsonObject:
    return {
        "name": operation.name,
        "description": operation.description,
        "input_schema": parameter_schema(operation.parameters, strict=strict),
    } | ({"strict": True} if strict else {})


def _gemini(operation: Operation, strict: bool) -> JsonObject:
    schema = parameter_schema(operation.parameters, strict=strict)
    key = "parametersJsonSchema" if strict else "parameters"
    return {
        "name": operation.name,
        "description": operation.description,
        key: schema if strict else _without(schema, _UNKNOWN_TO_GEMINI),
    }


def _without(schema: JsonObject, keys: frozenset[str]) -> JsonObject:
    """Return a schema without some keywords; what a property is called is no keyword."""
    found = {"type": "string"} | {key: value for key, value in schema.items() if key not in keys}
    properties = found.get("properties", {})
    return found | (
        {"properties": {name: _without(each, keys) for name, each in properties.items()}}
        if properties
        else {}
    )


def _mcp(operation: Operation, strict: bool) -> JsonObject:
    is_read = operation.effect == "read"
    return {
        "name": operation.name,
        "description": operation.description,
        "inputSchema": parameter_schema(operation.parameters, strict=strict),
        "outputSchema": result_schema(operation.result),
        "annotations": {
            "readOnlyHint": is_read,
            "destructiveHint": operation.effect == "destructive",
            "idempotentHint": is_read or operation.is_idempotent,
            "openWorldHint": False,
        },
    }


_FORMATS: Mapping[ToolFormat, Callable[[Operation, bool], JsonObject]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
}


# --- calls ----------------------------------------------------------------------------------------


class ToolResult(Struct, frozen=True):
    """What one call gave: the result as JSON has it, and as text."""

    value: JsonObject
    text: str
    is_error: bool = False
    is_recall: bool = False
    """Whether it has words from memory."""

    @property
    def fenced_text(self) -> str:
        """The text for a model; what comes out of memory stands in a fence."""
        return fenced([self.text]) if self.is_recall else self.text


def run_tool(name: str, arguments: object, context: OperationContext) -> ToolResult:
    """Carry out one call; what goes wrong in it is its result.

    Args:
        name: Of the operation.
        arguments: An object, or its JSON.
        context: For whom.

    Raises:
        UsageError: There is no such operation, its caller may not use it, or an argument is wrong.
    """
    return run_operation(find_operation(name), arguments, context)


def run_operation(operation: Operation, arguments: object, context: OperationContext) -> ToolResult:
    """Carry out an operation; see ``run_tool``.

    Raises:
        UsageError: Its caller may not use it, or an argument is wrong.
    """
    name = operation.name
    if refused := refusal(operation, context):
        raise UsageError(refused, "memctl tool list names the others")
    parameters = parse_arguments(operation.parameters, _decode(arguments, name), name)
    if refused := refusal(operation, context, parameters):
        raise UsageError(refused, "with other arguments it only reads")
    try:
        result = carry_out(operation, parameters, context)
    except UsageError:
        raise
    except MemctlError as error:
        return error_result(error, operation.failure)
    value = bounded(to_plain(result))
    text = operation.text(result) if operation.text is not None else _json(value)
    return ToolResult(value, cut_text(text), is_recall=operation.is_recall)


def carry_out(operation: Operation, parameters: Any, context: OperationContext) -> Any:
    """Carry out an operation with parameters that were checked, and return its record.

    Raises:
        AccessRefused: Its caller may not use it.
        MemctlError: It failed.
    """
    if refused := refusal(operation, context, parameters):
        raise AccessRefused(refused, "memctl tool list names the others")
    _check_resource(operation, context)
    with reading_as("tool"):
        return operation.run(context, parameters)


def refusal(operation: Operation, context: OperationContext, parameters: object = None) -> str:
    """Return why a caller may not use an operation; "" if it may.

    Args:
        operation: The operation.
        context: The caller.
        parameters: Those of the call; by default any.
    """
    allowed = context.allowed_tools
    if allowed is not None and (operation.alias_of or operation.name) not in allowed:
        agent = context.identity.agent
        return f"{operation.name} is not allowed {f'to {agent}' if agent else 'here'}"
    may_read = operation.only_reads is not None and parameters is None
    if context.read_only and not may_read and operation.effect_of(parameters) != "read":
        return f"{operation.name} changes memory, which may only be read here"
    return ""


def _check_resource(operation: Operation, context: OperationContext) -> None:
    if operation.resource is not None and operation.resource not in context.resources:
        raise Unavailable(NO_MEMORY if operation.resource == "memory" else NO_KNOWLEDGE_BASE)


def error_result(error: MemctlError, failure: str = "") -> ToolResult:
    """Return what a call gives that failed: an object with ``error``."""
    is_answer = isinstance(error, Unavailable) or not failure
    message = error.message if is_answer else f"{failure}: {error.message}"
    value = {"error": message} | ({"hint": error.hint} if error.hint else {})
    return ToolResult(value, message, is_error=True)


def _decode(arguments: object, name: str) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise UsageError(f"the arguments of {name} are no JSON: {error}") from None


# --- what models send, and get back ---------------------------------------------------------------


def answer_call(call: Mapping[str, Any], context: OperationContext) -> JsonObject:
    """Carry out a call as a model sends it, and return the message to send back.

    It is ``{"id", "function": {"name", "arguments"}}`` as OpenAI has it, the same with
    ``{"type": "tool_use", "id", "name", "input"}`` as Anthropic has it, or ``{"name",
    "arguments"}``, which is answered with the plain result.  A wrong argument is reported to
    the model.
    """
    function = call.get("function")
    name, arguments = call.get("name"), call.get("arguments", call.get("input", {}))
    if isinstance(function, Mapping):
        name, arguments = function.get("name"), function.get("arguments", {})
    try:
        if not isinstance(name, str):
            raise UsageError("a call names its tool", _CALL)
        result = run_tool(name, arguments, context)
    except UsageError as error:
        result = error_result(error)
    if isinstance(function, Mapping):
        return {"role": "tool", "tool_call_id": call.get("id"), "content": result.fenced_text}
    if call.get("type") == "tool_use":
        return {
            "type": "tool_result",
            "tool_use_id": call.get("id"),
            "content": result.fenced_text,
            "is_error": result.is_error,
        }
    return result.value if "id" not in call else {"id": call["id"], "result": result.value}


_CALL = 'write {"name": "answer", "arguments": {"question": "..."}}, or what a model sent'


# --- bounds ---------------------------------------------------------------------------------------


def bounded(value: JsonObject) -> JsonObject:
    """Return a result that is not too many characters of JSON, with a note where it was cut.

    Long texts are cut first, then rows are left out at the end of the longest list.
    """
    if len(_json(value)) <= MAX_CHARACTERS:
        return value
    found, longest = value, min(MAX_CHARACTERS, _longest_text(value)) // 2
    while longest >= _SHORTEST_TEXT and len(_json(found)) > MAX_CHARACTERS:
        found = _with_texts_cut(value, longest)
        longest //= 2
    while (size := len(_json(found))) > MAX_CHARACTERS:
        key = max(found, key=lambda name: len(_json(found[name])))
        rows = found[key]
        if not isinstance(rows, list) or not rows:
            break
        shown = rows[: min(len(rows) * MAX_CHARACTERS // size + 1, len(rows) - 1)]
        found = _cut_list({**found, key: shown}, len(rows) - len(shown))
    return {**found, "note": _CUT}


def _cut_list(value: JsonObject, left_out: int) -> JsonObject:
    """Return a page of a list from which rows were left out, with where the next one begins."""
    end = value.get("next_offset") or value.get("total")
    return {**value, "next_offset": end - left_out} if "next_offset" in value and end else value


def _longest_text(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = list(value.values())
    return max(map(_longest_text, value), default=0) if isinstance(value, list) else 0


def _with_texts_cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}…"
    if isinstance(value, list):
        return [_with_texts_cut(item, longest) for item in value]
    if isinstance(value, dict):
        return {key: _with_texts_cut(item, longest) for key, item in value.items()}
    return value


def cut_text(text: str) -> str:
    """Return a text that is not too long, with a note where it was cut."""
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}\n[{_CUT}]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
