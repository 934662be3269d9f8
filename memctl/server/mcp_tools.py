"""The tools of the MCP server: a small set by default, every operation where asked for.

A client sends the manifest with every request to its model, so it has what a model needs and no
more: rare parameters are taken, but not listed.  The manifest of the default tools is shipped, for
answers before anything is imported; ``python -m memctl.server.mcp_tools >
memctl/server/mcp_manifest.json`` brings it up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.operations.finding import (
    FoundPassage,
    SearchParameters,
    recall,
    recall_text,
    search_knowledge_base,
)
from memctl.operations.lookup import MAX_CHARACTERS, OpenParameters, look_at_sessions, open_item
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import JsonObject, parameter_schema, result_schema
from memctl.operations.registry import OPERATIONS, Operation, find_operation
from memctl.operations.remembering import ForgetParameters, ForgetReply, forget_memory
from memctl.operations.tool_calls import refusal
from memctl.validation import Rule

CORE, CONNECTOR, ALL = "core", "connector", "all"
_SETS = {
    "adding_documents": "documents",
    "page_links": "links",
    "finding": "search",
    "judging_answers": "feedback",
    "knowledge": "search",
    "lookup": "search",
}
"""What the set of a module is called, where that is not the module's name."""
_SELF_EXPLAINING = frozenset(
    ("question", "text", "tags", "id", "name", "limit", "offset", "hops", "query_id", "verdict")
)
"""Names of parameters that need no words."""


class McpTool(Struct, frozen=True):
    """An operation as MCP offers it."""

    operation: Operation
    parameters: tuple[str, ...] | None = None
    """Those in the manifest; None for all."""
    results: tuple[str, ...] | None = None
    """What of the result is in the manifest; None for all."""
    is_plain: bool = False
    """Whether its text is JSON that a client parses."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.operation.name

    def definition(self) -> JsonObject:
        """Return its entry in the manifest."""
        schema = parameter_schema(self.operation.parameters)
        properties = _select_properties(schema["properties"], self.parameters)
        arguments: JsonObject = {
            "type": "object",
            "properties": {key: _shorten_schema(key, each) for key, each in properties.items()},
        }
        if schema["required"]:
            arguments["required"] = schema["required"]
        results = _select_properties(
            result_schema(self.operation.result)["properties"], self.results
        )
        return {
            "name": self.name,
            "description": self.operation.description,
            "inputSchema": arguments,
            "outputSchema": {
                "type": "object",
                "properties": {key: _outline(each) for key, each in results.items()},
            },
            "annotations": self._hints(),
        }

    def _hints(self) -> JsonObject:
        if self.operation.effect == "read":
            return {"readOnlyHint": True}
        return {
            "readOnlyHint": False,
            "destructiveHint": self.operation.effect == "destructive",
            "idempotentHint": self.operation.is_idempotent,
        }


def _select_properties(properties: JsonObject, names: tuple[str, ...] | None) -> JsonObject:
    return properties if names is None else {name: properties[name] for name in names}


def _shorten_schema(key: str, schema: JsonObject) -> JsonObject:
    """Return the schema of a parameter without its bounds, and where its name says all, no more."""
    left_out = {"minimum", "maximum", *(["description"] if key in _SELF_EXPLAINING else [])}
    return {name: value for name, value in schema.items() if name not in left_out}


def _outline(schema: JsonObject) -> JsonObject:
    """Return the schema of a value without what is nested in it."""
    return {"type": schema["type"]} if "type" in schema else {}


def _form(
    operation: str,
    name: str,
    description: str,
    parameters: tuple[str, ...],
    results: tuple[str, ...],
) -> McpTool:
    """Return an operation under another name, with less of it in the manifest."""
    known = find_operation(operation)
    made = replace(known, name=name, description=description, alias_of=operation)
    return McpTool(made, parameters, results)


class TriedForgetParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``forget``."""

    id: Annotated[str, Rule("Id of the memory.")]
    dry_run: Annotated[bool, Rule("Only say what would go.")] = True


def _forget(context: OperationContext, parameters: TriedForgetParameters) -> ForgetReply:
    reply = forget_memory(
        context, ForgetParameters(id=parameters.id, confirm=not parameters.dry_run)
    )
    if not parameters.dry_run:
        return reply
    message = f"{reply.id} would go; with dry_run set to false it is forgotten for good."
    return replace(reply, message=message)


CORE_TOOLS: tuple[McpTool, ...] = (
    McpTool(
        Operation(
            "recall",
            "Find what memory has on a question: passages to answer from and to cite as [n].",
            recall,
            resource="knowledge_base",
            text=recall_text,
            alias_of="search_knowledge_base",
        ),
        ("question", "since", "until", "tags"),
        ("found", "citations", "query_id"),
    ),
    _form(
        "context",
        "context",
        "Get what is known about a topic or message.",
        ("question", "budget"),
        ("text", "citations"),
    ),
    _form(
        "remember",
        "remember",
        "Remember one fact, decision, preference or plan.",
        ("text", "type", "tags", "importance", "session_id", "dry_run"),
        ("id", "text", "type"),
    ),
    McpTool(
        Operation(
            "open",
            "Read a document or memory; page on with start.",
            open_item,
            resource="knowledge_base",
            alias_of="get_document",
        ),
        ("id", "start"),
        ("title", "text", "end", "has_more"),
    ),
    _form(
        "update_memory",
        "revise",
        "Correct a memory; the old version stays in its history.",
        ("id", "text", "tags", "dry_run"),
        ("id", "text", "version"),
    ),
    McpTool(
        Operation(
            "forget",
            "Forget a memory for good. Try first; then call with dry_run false.",
            _forget,
            effect="destructive",
            resource="memory",
            alias_of="forget_memory",
        ),
        results=("forgotten", "message"),
    ),
    _form(
        "list_documents",
        "browse",
        "List documents, the latest first.",
        ("search", "limit", "offset"),
        ("documents", "next_offset"),
    ),
    _form(
        "get_graph_neighbors",
        "related",
        "List what is connected with a name.",
        ("name", "hops"),
        ("neighbors",),
    ),
    McpTool(
        Operation(
            "session",
            "List earlier conversations, or show one.",
            look_at_sessions,
            resource="memory",
            alias_of="list_sessions",
        ),
    ),
    _form(
        "feedback",
        "feedback",
        "Judge what recall found.",
        ("query_id", "verdict"),
        ("query_id", "verdict"),
    ),
)


# --- for clients that want a search and a fetch ---------------------------------------------------


class PlainSearchParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``search``."""

    query: Annotated[str, Rule("What to look for, in words.")]


class PlainResult(Struct, frozen=True):
    """One result of ``search``."""

    id: str
    title: str
    url: str
    text: str


class PlainResults(Struct, frozen=True):
    """What ``search`` found, best first."""

    results: tuple[PlainResult, ...]


def _search(context: OperationContext, parameters: PlainSearchParameters) -> PlainResults:
    found = search_knowledge_base(
        context, SearchParameters(query=parameters.query, limit=10)
    ).results
    return PlainResults(
        tuple(
            PlainResult(each.memory_id, each.title or each.source, _url(each), each.text)
            for each in found
        )
    )


def _url(passage: FoundPassage) -> str:
    if passage.document_id is None:
        return f"memctl://kb/{quote(passage.kb, '')}/memory/{quote(passage.memory_id, '')}"
    return f"memctl://kb/{quote(passage.kb, '')}/document/{quote(passage.document_id, '')}"


class FetchParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``fetch``."""

    id: Annotated[str, Rule("An id that search gave.")]


class FetchedDocument(Struct, frozen=True):
    """What ``fetch`` returns."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


def _fetch(context: OperationContext, parameters: FetchParameters) -> FetchedDocument:
    """Return the document that a passage is from; a memory without one stands for itself."""
    item = open_item(context, OpenParameters(id=parameters.id, max_chars=MAX_CHARACTERS))
    of = item.metadata.get("document_id")
    if of is not None:
        item = open_item(context, OpenParameters(id=of, max_chars=MAX_CHARACTERS))
    kind = "memory" if item.id.startswith(("m_", "i_")) else "document"
    url = f"memctl://kb/{quote(item.kb, '')}/{kind}/{quote(item.id, '')}"
    return FetchedDocument(item.id, item.title, item.text, url, item.metadata)


CONNECTOR_TOOLS = (
    McpTool(
        Operation(
            "search",
            "Search memory and documents.",
            _search,
            resource="knowledge_base",
            alias_of="search_knowledge_base",
        ),
        is_plain=True,
    ),
    McpTool(
        Operation(
            "fetch",
            "Read what search found, in full.",
            _fetch,
            resource="knowledge_base",
            alias_of="get_document",
        ),
        is_plain=True,
    ),
)


# --- sets -----------------------------------------------------------------------------------------


def tool_sets() -> dict[str, tuple[McpTool, ...]]:
    """Return what can be asked for together, by name; operations say which set they belong to."""
    own = {tool.name for tool in CORE_TOOLS}
    sets = {CORE: CORE_TOOLS, CONNECTOR: CONNECTOR_TOOLS}
    for operation in OPERATIONS:
        if operation.name not in own:
            name = _SETS.get(operation.toolset, operation.toolset)
            sets[name] = (*sets.get(name, ()), McpTool(operation))
    return sets


def choose_tools(names: Sequence[str], context: OperationContext) -> dict[str, McpTool]:
    """Return the tools to offer, by name.

    Args:
        names: ``core``, ``all``, or names of sets, tools and operations; by default ``core``.
        context: For whom; what it may not use is left out.

    Raises:
        UsageError: There is no such tool.
    """
    sets = tool_sets()
    named = {tool.name: tool for tools in reversed(sets.values()) for tool in tools}
    chosen: dict[str, McpTool] = {}
    for name in names or (CORE,):
        if name == ALL:
            found = [tool for key, tools in sets.items() if key != CONNECTOR for tool in tools]
        elif name in sets:
            found = list(sets[name])
        else:
            found = [named[name] if name in named else McpTool(_operation(name, sets))]
        chosen |= {tool.name: tool for tool in found if tool.name not in chosen}
    return {name: tool for name, tool in chosen.items() if not refusal(tool.operation, context)}


def _operation(name: str, sets: Collection[str]) -> Operation:
    try:
        return find_operation(name)
    except UsageError as error:
        there = ", ".join(sorted({*sets, ALL}))
        raise UsageError(
            error.message, f"there are the sets {there}, and names in memctl tool list"
        ) from None


def manifest() -> str:
    """Return the definitions of the default tools as JSON, one a line."""
    tools = (json.dumps(tool.definition(), ensure_ascii=False) for tool in CORE_TOOLS)
    return "[\n" + ",\n".join(tools) + "\n]\n"


if __name__ == "__main__":
    sys.stdout.write(manifest())
