"""Tools for agents, from Python: definitions to send to a model, and calls that it makes.

::

    from memctl import tools

    with tools.context(user="ann") as context:
        request["tools"] = tools.definitions(format="openai")
        reply = tools.call("search_knowledge_base", {"query": "the lease"}, context)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memctl.literals import ToolFormat
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import allowed_operations, answer_call, run_tool
from memctl.operations.tool_calls import definitions as _definitions

__all__ = ["call", "context", "definitions", "reply"]


def context(
    *,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    kb: str | Sequence[str] = (),
    home: Path | str | None = None,
    read_only: bool = False,
) -> OperationContext:
    """Return for whom tools are called; use it in a ``with`` statement, for as many calls as come.

    Args:
        user: The user; what is not named is as for the command line.
        agent: The agent, whose file says which tools and resources it has.
        session: The conversation.
        kb: The knowledge bases to read, the first of which is written to.
        home: The folder of all knowledge bases.
        read_only: Refuse tools that change something.

    Raises:
        UsageError: A name cannot be one.
        KnowledgeBaseNotFound: A knowledge base that is named is not there.
    """
    import memctl

    kbs = (kb,) if isinstance(kb, str) else tuple(kb)
    every = memctl.open_home(home)
    return OperationContext.of(
        every, kbs, user=user, agent=agent, session=session, read_only=read_only
    )


def definitions(
    format: ToolFormat = "openai",
    context: OperationContext | None = None,
    *,
    strict: bool = False,
) -> list[dict[str, Any]]:
    """Return the tools as a request to a model names them.

    Args:
        format: ``openai``, ``anthropic``, ``gemini`` or ``mcp``.
        context: Only what this caller may use; by default all.
        strict: With schemas for strict modes.
    """
    return _definitions(format, allowed_operations(context), strict=strict)


def call(
    name: str, arguments: Mapping[str, Any] | str, context: OperationContext
) -> dict[str, Any]:
    """Carry out one call, and return its result; an object with ``error`` says what went wrong.

    Raises:
        UsageError: There is no such tool, it may not be used, or an argument is wrong.
    """
    return run_tool(name, arguments, context).value


def reply(call: Mapping[str, Any], context: OperationContext) -> dict[str, Any]:
    """Carry out a call as a model sent it, and return the message to send back."""
    return answer_call(call, context)
