"""Resources and prompts of the MCP server: documents, memories and insights by address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from memctl.errors import MemctlError
from memctl.operations.finding import (
    ContextParameters,
    InsightsParameters,
    context_block,
    context_text,
    recent_insights,
)
from memctl.operations.lookup import (
    MOST_CHARACTERS,
    ListDocumentsParameters,
    OpenParameters,
    list_documents,
    open_item,
)
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import cut_text
from memctl.prompts import fenced
from memctl.server.mcp_protocol import INVALID_PARAMS, Message, ProtocolError

_ADDRESS = re.compile(
    r"memctl://kb/(?P<kb>[^/]+)/(?P<kind>document|memory|insights)(?:/(?P<id>.+))?"
)
_LISTED = 50
_TEMPLATES = (
    ("memctl://kb/{name}/document/{id}", "document", "The text of a document"),
    ("memctl://kb/{name}/memory/{id}", "memory", "A memory, with its evidence"),
    ("memctl://kb/{name}/insights", "insights", "What memories say together"),
)


def list_resources(context: OperationContext) -> Message:
    """Return the latest documents; the tool ``browse`` pages through all of them."""
    try:
        found = list_documents(context, ListDocumentsParameters(limit=_LISTED)).documents
    except MemctlError:  # there is nothing yet
        found = ()
    return {
        "resources": [
            {
                "uri": f"memctl://kb/{quote(each.kb)}/document/{quote(each.id)}",
                "name": each.title or each.source,
                "mimeType": "text/plain",
            }
            for each in found
        ]
    }


def list_templates() -> Message:
    """Return how addresses are made."""
    return {
        "resourceTemplates": [
            {"uriTemplate": template, "name": name, "description": told, "mimeType": "text/plain"}
            for template, name, told in _TEMPLATES
        ]
    }


def read_resource(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return what stands at an address.

    Raises:
        ProtocolError: Nothing can.
        NotFoundError: Nothing does, for this caller.
    """
    uri = params.get("uri")
    match = _ADDRESS.fullmatch(uri) if isinstance(uri, str) else None
    if match is None:
        raise ProtocolError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
    if match["kind"] == "insights":
        found = recent_insights(context, InsightsParameters(limit=_LISTED)).insights
        text = "\n\n".join(f"{each.date[:10]}  {each.text}" for each in found)
    else:
        wanted = OpenParameters(id=unquote(match["id"] or ""), max_chars=MOST_CHARACTERS)
        item = open_item(context, wanted)
        text = f"{item.text}\n\n[{item.note}]" if item.note else item.text
    contents = [{"uri": uri, "mimeType": "text/plain", "text": cut_text(text)}]
    return {"contents": contents}


def list_prompts() -> Message:
    """Return the prompts that a person can pick."""
    question = {"name": "question", "description": "What it is about.", "required": True}
    return {
        "prompts": [
            {
                "name": "recall",
                "description": "What is known about a question, to answer it from.",
                "arguments": [question],
            }
        ]
    }


def get_prompt(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return a question with what is known about it.

    Raises:
        ProtocolError: There is no such prompt, or the question is missing.
    """
    arguments = params.get("arguments")
    question = arguments.get("question") if isinstance(arguments, dict) else None
    if params.get("name") != "recall" or not isinstance(question, str) or not question.strip():
        raise ProtocolError(INVALID_PARAMS, "the one prompt is recall, with a question")
    known = context_text(context_block(context, ContextParameters(question=question)))
    text = f"{fenced([known])}\n\nAnswer from that, and cite by [n]: {question}"
    return {
        "description": "What is known about a question",
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }
