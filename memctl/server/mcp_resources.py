"""Resources of the MCP server: documents, memories, insights and shared pools by address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from memctl.errors import MemctlError
from memctl.operations.agent_skills import served_skill_text
from memctl.operations.finding import InsightsParameters, opened, recent_insights
from memctl.operations.lookup import (
    MAX_CHARACTERS,
    ListDocumentsParameters,
    ListSessionsParameters,
    OpenParameters,
    list_documents,
    list_sessions,
    open_item,
)
from memctl.operations.operation_context import NO_KNOWLEDGE_BASE, OperationContext, Unavailable
from memctl.operations.shared_memory import (
    PoolListParameters,
    ReadPoolParameters,
    list_memory_pools,
    read_shared_memory,
)
from memctl.operations.tool_calls import cut_text
from memctl.server.mcp_protocol import INVALID_PARAMS, Message, ProtocolError

_OF_KB = re.compile(
    r"memctl://kb/(?P<kb>[^/]+)/(?P<kind>document|memory|insights)(?:/(?P<id>[^/]+))?"
)
_POOL = re.compile(r"memctl://pool/(?P<id>[^/]+)")
_SKILL = re.compile(r"skill://(?P<name>[^/]+)/(?P<path>.+)")
_PAGE = 50
_MAX_COMPLETIONS = 100
_TEXT, _JSON = "text/plain", "application/json"
_TEMPLATES = (
    ("memctl://kb/{name}/document/{id}", "document", "The text of a document", _TEXT),
    ("memctl://kb/{name}/memory/{id}", "memory", "A memory, with its evidence", _TEXT),
    ("memctl://kb/{name}/insights", "insights", "What memories say together", _TEXT),
    ("memctl://pool/{id}", "pool", "What agents share in a pool", _JSON),
    ("skill://{name}/{+path}", "skill", "A file of a skill", _TEXT),
)


def list_resources(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return a page of documents, the latest first; before the first page, insights and pools.

    Raises:
        ProtocolError: The cursor is none that was given.
    """
    cursor = params.get("cursor")
    if cursor is not None and not (isinstance(cursor, str) and cursor.isdecimal()):
        raise ProtocolError(INVALID_PARAMS, f"no such cursor: {cursor}")
    offset = int(cursor or 0)
    try:
        found = list_documents(context, ListDocumentsParameters(limit=_PAGE, offset=offset))
    except MemctlError:  # there is nothing yet
        return {"resources": []}
    listed = [] if offset else [*_insights(context), *_pools(context)]
    listed += [
        _entry(
            f"memctl://kb/{quote(each.kb, '')}/document/{quote(each.id, '')}",
            each.title or each.source,
        )
        for each in found.documents
    ]
    more = {} if found.next_offset is None else {"nextCursor": str(found.next_offset)}
    return {"resources": listed, **more}


def _entry(uri: str, name: str, media_type: str = _TEXT) -> Message:
    return {"uri": uri, "name": name, "mimeType": media_type}


def _insights(context: OperationContext) -> list[Message]:
    names = [base.name for base in opened(context)]
    return [_entry(f"memctl://kb/{quote(kb, '')}/insights", f"Insights of {kb}") for kb in names]


def _pools(context: OperationContext) -> list[Message]:
    try:
        pools = list_memory_pools(context, PoolListParameters()).pools
    except MemctlError:  # several knowledge bases could be meant
        return []
    return [
        _entry(f"memctl://pool/{quote(pool.pool_id, '')}", f"Pool {pool.name}", _JSON)
        for pool in pools
    ]


def list_templates() -> Message:
    """Return how addresses are made."""
    return {
        "resourceTemplates": [
            {
                "uriTemplate": template,
                "name": name,
                "description": description,
                "mimeType": media_type,
            }
            for template, name, description, media_type in _TEMPLATES
        ]
    }


def is_watchable(uri: str) -> bool:
    """Return whether clients hear when a resource changes: pools and insights."""
    match = _OF_KB.fullmatch(uri)
    return _POOL.fullmatch(uri) is not None or (match is not None and match["kind"] == "insights")


def read_resource(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return what stands at an address.

    Raises:
        ProtocolError: Nothing can.
        NotFoundError: Nothing does, for this caller.
    """
    uri = params.get("uri")
    named = uri if isinstance(uri, str) else ""
    if skill := _SKILL.fullmatch(named):
        return {"contents": [_file_of_skill(context, skill)]}
    if pool := _POOL.fullmatch(named):
        wanted = ReadPoolParameters(pool_id=unquote(pool["id"]))
        value = read_shared_memory(context, wanted).value
        text, media_type = json.dumps(value, ensure_ascii=False), _JSON
    elif (match := _OF_KB.fullmatch(named)) and (match["kind"] == "insights") == (not match["id"]):
        text, media_type = _text_of(context, match), _TEXT
    else:
        raise ProtocolError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": media_type, "text": cut_text(text)}]}


def skill_named(params: Mapping[str, Any]) -> object:
    """Return the name of the skill that ``skills/get`` asks for, by address or by name."""
    uri = params.get("uri")
    match = _SKILL.fullmatch(uri) if isinstance(uri, str) else None
    return unquote(match["name"]) if match else params.get("name", uri)


def _file_of_skill(context: OperationContext, match: re.Match[str]) -> Message:
    """Return a file of an active skill, whole, so that its digest holds."""
    path = unquote(match["path"])
    contents = served_skill_text(context, unquote(match["name"]))["skill"]["contents"]
    for each in contents:
        if each["path"] == path:
            kind = "text/markdown" if path.endswith(".md") else "text/plain"
            body = {key: each[key] for key in ("text", "blob") if key in each}
            kind = kind if "text" in body else "application/octet-stream"
            return {"uri": match[0], "mimeType": kind, **body}
    raise ProtocolError(INVALID_PARAMS, f"Resource not found: {match[0]}", {"uri": match[0]})


def _text_of(context: OperationContext, match: re.Match[str]) -> str:
    """Return a document, a memory or the insights of one knowledge base as text."""
    kb = unquote(match["kb"])
    with context.limited_to((kb,)) as limited:
        if match["kind"] == "insights":
            found = recent_insights(limited, InsightsParameters(limit=_PAGE)).insights
            return "\n\n".join(f"{each.date[:10]}  {each.text}" for each in found)
        if "knowledge_base" not in limited.resources:
            raise Unavailable(NO_KNOWLEDGE_BASE)
        wanted = OpenParameters(id=unquote(match["id"]), max_chars=MAX_CHARACTERS)
        item = open_item(limited, wanted)
    return f"{item.text}\n\n[{item.note}]" if item.note else item.text


# --- completion -----------------------------------------------------------------------------------


def complete_argument(context: OperationContext, params: Mapping[str, Any]) -> Message:
    """Return what the argument of a template or of a prompt may be, by how it begins.

    Raises:
        ProtocolError: The request names no argument.
    """
    of, argument = params.get("ref"), params.get("argument")
    if not isinstance(of, dict) or not isinstance(argument, dict):
        raise ProtocolError(INVALID_PARAMS, "a completion has a ref and an argument")
    known = params.get("context")
    chosen = known.get("arguments") if isinstance(known, dict) else None
    kb = chosen.get("name") if isinstance(chosen, dict) else None
    begun = str(argument.get("value", ""))
    try:
        words = _words(context, str(of.get("uri", of.get("name"))), argument.get("name"), kb)
        fitting = [word for word in words if word.casefold().startswith(begun.casefold())]
    except MemctlError:  # there is nothing yet
        fitting = []
    shown = fitting[:_MAX_COMPLETIONS]
    return {
        "completion": {"values": shown, "total": len(fitting), "hasMore": len(fitting) > len(shown)}
    }


def _words(context: OperationContext, of: str, argument: object, kb: object) -> Iterable[str]:
    if argument == "session_id":
        listed = list_sessions(context, ListSessionsParameters(limit=_MAX_COMPLETIONS))
        return [session.session_id for session in listed.sessions]
    if argument == "name":
        return [base.name for base in opened(context)]
    if argument != "id":
        return []
    if of.startswith("memctl://pool/"):
        pools = list_memory_pools(context, PoolListParameters()).pools
        return [pool.pool_id for pool in pools]
    if "/document/" not in of:
        return []
    documents = list_documents(context, ListDocumentsParameters(limit=200)).documents
    return [each.id for each in documents if kb in (None, each.kb)]
