"""Prompts that a person can pick in an MCP client: what is known, put above what they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from memctl.operations.finding import (
    ContextParameters,
    context_block,
    context_text,
    opened,
    readable_session,
)
from memctl.operations.operation_context import OperationContext
from memctl.prompts import fenced
from memctl.server.mcp_protocol import INVALID_PARAMS, Message, ProtocolError

Arguments = Mapping[str, str]
_STANDING_TOKENS = 1_000
_NOTHING = "Nothing is known yet."


class McpPrompt(Struct, frozen=True):
    """One prompt: its arguments with what they are, and the messages that it makes."""

    name: str
    description: str
    arguments: Mapping[str, str]
    required: frozenset[str]
    messages: Callable[[OperationContext, Arguments], list[tuple[str, str]]]
    """Returns roles and texts; a client knows the roles user and assistant alone."""


def list_prompts() -> Message:
    """Return the prompts that a person can pick."""
    return {
        "prompts": [
            {
                "name": prompt.name,
                "description": prompt.description,
                "arguments": [
                    {"name": name, "description": description, "required": name in prompt.required}
                    for name, description in prompt.arguments.items()
                ],
            }
            for prompt in PROMPTS
        ]
    }


def get_prompt(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return the messages of a prompt.

    Raises:
        ProtocolError: There is no such prompt, or an argument is missing or none of its.
    """
    prompts = {prompt.name: prompt for prompt in PROMPTS}
    prompt = prompts.get(str(params.get("name")))
    if prompt is None:
        raise ProtocolError(INVALID_PARAMS, f"there are the prompts {', '.join(prompts)}")
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict) or not all(
        isinstance(each, str) for each in arguments.values()
    ):
        raise ProtocolError(INVALID_PARAMS, "the arguments of a prompt are texts")
    missing = [name for name in sorted(prompt.required) if not arguments.get(name, "").strip()]
    if missing or not arguments.keys() <= prompt.arguments.keys():
        raise ProtocolError(
            INVALID_PARAMS,
            f"{prompt.name} takes {', '.join(prompt.arguments)}"
            + (f" and needs {', '.join(missing)}" if missing else ""),
        )
    return {
        "description": prompt.description,
        "messages": [
            {"role": role, "content": {"type": "text", "text": text}}
            for role, text in prompt.messages(context, arguments)
        ],
    }


def _recall(context: OperationContext, arguments: Arguments) -> list[tuple[str, str]]:
    question = arguments["question"]
    known = context_text(context_block(context, ContextParameters(question=question)))
    return [("user", f"{fenced([known])}\n\nAnswer from that, and cite by [n]: {question}")]


def _standing_context(context: OperationContext, arguments: Arguments) -> list[tuple[str, str]]:
    budget = arguments.get("budget", "").strip()
    if budget and not (budget.isdecimal() and 16 <= int(budget) <= 20_000):
        raise ProtocolError(INVALID_PARAMS, "budget is a number of tokens from 16 to 20000")
    found = opened(context).queries.standing_context(
        budget=int(budget or _STANDING_TOKENS),
        user=context.identity.user,
        agent=context.identity.agent,
        filters=context.filters(),
    )
    return [("user", fenced([found.text]) if found.text else _NOTHING)]


def _session(context: OperationContext, arguments: Arguments) -> list[tuple[str, str]]:
    """Return what prepares a model for a new message, as ``memctl session prompt`` does."""
    wanted, message = arguments["session_id"], arguments["message"]
    base, session = readable_session(context, opened(context), wanted)
    turns = base.sessions.prompt(session, message)
    before = [
        ("user", fenced([each["content"]]))
        if each["role"] == "system"
        else (each["role"], each["content"])
        for each in turns[:-1]
    ]
    return [*before, ("user", message)]


PROMPTS = (
    McpPrompt(
        "recall",
        "What is known about a question, to answer it from.",
        {"question": "What it is about."},
        frozenset(("question",)),
        _recall,
    ),
    McpPrompt(
        "standing_context",
        "What to know without a question: profile, what is important, what changed.",
        {"budget": "At most this many tokens; 1000 by default."},
        frozenset(),
        _standing_context,
    ),
    McpPrompt(
        "session_prompt",
        "A conversation as it stands, with what others say of a new message.",
        {"session_id": "Which conversation.", "message": "What is said next."},
        frozenset(("session_id", "message")),
        _session,
    ),
)
