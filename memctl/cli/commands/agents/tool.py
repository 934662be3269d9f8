"""memctl tool and mcp: what agents can call: definitions, single calls, and servers on pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memctl.cli.arguments import parse_path
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBasesOption,
    Output,
    SessionOption,
    UserOption,
    command,
    flag,
    group,
)
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    print_facts,
    print_json,
    print_line,
    print_paragraph,
    print_text,
)
from memctl.errors import MemctlError, UsageError
from memctl.literals import ToolFormat

if TYPE_CHECKING:
    from memctl.operations.registry import Operation

app = group("tool", "Tools for agents: their definitions, and calls.")
mcp_app = typer.Typer()

As = Literal["json", "text"]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The tool; see memctl tool list.")]
CallingAgent = Annotated[  # whose --as is taken here
    str | None, typer.Option("--agent", metavar="NAME", help="Who acts; by default MEMCTL_AGENT.")
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Refuse tools that change something.")]

_LIST = (
    Column("name", "NAME"),
    Column("effect", "EFFECT"),
    Column("description", "DESCRIPTION", wrap=True),
)


@command(
    app,
    "list",
    """
    memctl tool list
    memctl tool list --format openai --strict > tools.json
    """,
)
def list_(
    context: CommandContext,
    format_: ToolFormat | None = typer.Option(
        None, "--format", help="Definitions for a request to a model, as JSON."
    ),
    agent: CallingAgent = None,
    strict: bool = flag("--strict", "Schemas for strict modes; with --format."),
    output: Output = None,
) -> None:
    """List what agents can call; with --agent, what that one may."""
    from memctl.operations.operation_context import OperationContext
    from memctl.operations.registry import OPERATIONS
    from memctl.operations.tool_calls import allowed_operations

    found: Sequence[Operation] = OPERATIONS
    if agent is not None:
        found = allowed_operations(OperationContext.of(context.home, agent=agent))
    if format_ is not None:
        from memctl.operations.tool_calls import definitions

        if output not in (None, "json"):
            raise UsageError(f"--format cannot write {output}", "leave out one of them")
        print_json(definitions(format_, found, strict=strict))
    elif strict:
        raise UsageError("--strict is for definitions", "add --format openai")
    else:
        emit([_row(operation) for operation in found], _LIST, output)


def _row(operation: Operation) -> dict[str, Any]:
    from memctl.operations.parameters import parameter_schema

    return {
        "name": operation.name,
        "description": operation.description,
        "effect": operation.effect,
        "resource": operation.resource,
        "parameters": parameter_schema(operation.parameters),
    }


@command(app, "show", "memctl tool show answer\nmemctl tool show answer -o json")
def show(context: CommandContext, name: Name, output: Output = None) -> None:
    """Show what a tool takes, and what it gives."""
    from memctl.operations.parameters import result_schema
    from memctl.operations.registry import find_operation

    operation = find_operation(name)
    row = {**_row(operation), "result": result_schema(operation.result)}
    emit_one(row, output, lambda: _show(context, row))


def _show(context: CommandContext, row: Mapping[str, Any]) -> None:
    out, schema = context.console, row["parameters"]
    out.print(row["name"], style="bold")
    print_paragraph(out, row["description"], indent=2)
    print_facts(out, {"effect": row["effect"], "needs": row["resource"] or ""})
    for title, properties in (
        ("parameters", schema["properties"]),
        ("result", row["result"]["properties"]),
    ):
        out.print(f"\n{title}", style="dim")
        for key, property_schema in properties.items():
            needed = ", required" if title == "parameters" and key in schema["required"] else ""
            print_paragraph(out, f"{key}: {_describe(property_schema)}{needed}", indent=2)


def _describe(schema: Mapping[str, Any]) -> str:
    kinds = schema.get("type", "anything")
    words = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if "enum" in schema:
        words = ", ".join(map(str, schema["enum"]))
    default = f" (default {json.dumps(schema['default'])})" if "default" in schema else ""
    help_text = f"  {schema['description']}" if "description" in schema else ""
    return f"{words}{default}{help_text}"


@command(
    app,
    "call",
    """
    memctl tool call search_knowledge_base '{"query": "the lease"}' --user ann
    memctl tool call remember '{"text": "the lease ends in May", "dry_run": true}'
    memctl tool call answer --as text '{"question": "when does the lease end?"}'
    echo '{"id": "c1", "function": {"name": "answer", "arguments": "{...}"}}' | memctl tool call -
    """,
)
def call(
    context: CommandContext,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The tool, or - for a call on standard input as a model sends it."
        ),
    ],
    arguments: Annotated[
        str | None, typer.Argument(metavar="JSON", help="Its arguments; - is standard input.")
    ] = None,
    as_: As = typer.Option("json", "--as", help="The result as JSON, or as a model reads it."),
    kb: KnowledgeBasesOption = None,
    user: UserOption = None,
    agent: CallingAgent = None,
    session: SessionOption = None,
    read_only: ReadOnly = False,
) -> None:
    """Call a tool, as an agent does.

    What goes wrong in a call is its result: an object with "error", and exit code 0.  A tool that
    does not exist, or an argument that is wrong, gives exit code 2.

    A call as a model sends it, {"id", "function": {"name", "arguments"}}, may replace the name or
    the arguments; it is answered with the message to send back.
    """
    from memctl.operations.operation_context import OperationContext
    from memctl.operations.registry import OPERATIONS
    from memctl.operations.tool_calls import answer_call, run_tool

    reading = {each.name for each in OPERATIONS if each.effect == "read"}
    context.leave_to_caller_unless(reads=name in reading)
    parsed = _parse_arguments(name, arguments)
    with OperationContext.of(
        context.home, kb or (), user=user, agent=agent, session=session, read_only=read_only
    ) as caller:
        if isinstance(parsed, Mapping) and ("function" in parsed or name == "-"):
            print_line(answer_call(parsed, caller))
            return
        result = run_tool(name, parsed, caller)
        if as_ == "text":
            print_text(result.fenced_text)
        else:
            print_json(result.value)


def _parse_arguments(name: str, arguments: str | None) -> Any:
    """Return what was given as JSON.

    Raises:
        UsageError: It is no JSON.
    """
    text = sys.stdin.read() if "-" in (name, arguments) else arguments or ""
    if name.lstrip().startswith("{"):
        text = name
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as error:
        hint = """write '{"question": "..."}', in single quotes"""
        raise UsageError(f"the arguments are no JSON: {error}", hint) from None
    return found


@command(
    app,
    "serve",
    """
    memctl tool serve - --user ann < calls.jsonl > replies.jsonl
    """,
)
def serve(
    context: CommandContext,
    source: Annotated[str, typer.Argument(metavar="-", help="Standard input.")],
    kb: KnowledgeBasesOption = None,
    user: UserOption = None,
    agent: CallingAgent = None,
    session: SessionOption = None,
    read_only: ReadOnly = False,
) -> None:
    """Answer calls from a pipe, one a line.

    Every line in gives one line out.  A call is {"name", "arguments"}, with an "id" if the reply is
    to have it, or as a model sends it.  A line that is no call is answered with an object with
    "error"; the others go on.
    """
    from memctl.operations.operation_context import OperationContext
    from memctl.operations.tool_calls import answer_call

    if source != "-":
        raise UsageError(f"calls come from standard input, not {source!r}", "memctl tool serve -")
    with OperationContext.of(
        context.home, kb or (), user=user, agent=agent, session=session, read_only=read_only
    ) as caller:
        for line in sys.stdin:
            if line.strip():
                print_line(_reply(line, lambda request: answer_call(request, caller)))
                sys.stdout.flush()
                caller.flush()


def _reply(line: str, answer: Any) -> Any:
    try:
        request = json.loads(line)
    except ValueError as error:
        return {"error": f"no JSON: {error}"}
    if not isinstance(request, dict):
        return {"error": "a call is an object", "hint": '{"name": "...", "arguments": {}}'}
    return answer(request)


# --- MCP ------------------------------------------------------------------------------------------


@command(
    mcp_app,
    "mcp",
    """
    memctl mcp
    memctl mcp --user ann -k notes --read-only
    memctl mcp --tools core,documents,pools --allow-path ~/notes
    """,
)
def mcp(
    context: CommandContext,
    tools: str = typer.Option(
        "core",
        "--tools",
        metavar="LIST",
        help="Sets (core, documents, pools, graph, connector, ..., all) or names of tools.",
    ),
    allow_path: list[str] | None = typer.Option(
        None,
        "--allow-path",
        metavar="FOLDER",
        help="A folder whose files add_document may read; repeatable.",
    ),
    kb: KnowledgeBasesOption = None,
    user: UserOption = None,
    agent: CallingAgent = None,
    session: SessionOption = None,
    read_only: ReadOnly = False,
) -> None:
    """Serve memory to an MCP client over stdin and stdout.

    Standard output carries the protocol alone.  It opens no port, and ends when the client closes
    its end.  Every revision of the protocol from 2024-11-05 to 2026-07-28 is spoken.
    """
    from memctl.operations.operation_context import OperationContext
    from memctl.server.mcp_server import McpServer, refuse_requests
    from memctl.server.mcp_session import McpSession
    from memctl.server.mcp_tools import choose_tools

    sink = sys.stdout.buffer
    try:
        folders = [parse_path(each) for each in allow_path or ()]
        for folder in folders:
            if not folder.is_dir():
                raise UsageError(
                    f"--allow-path names no folder: {folder}", "name one that is there"
                )
        caller = OperationContext.of(
            context.home,
            kb or (),
            user=user,
            agent=agent,
            session=session,
            read_only=read_only,
            allow_paths=folders,
        )
        wanted = [name.strip() for name in tools.split(",") if name.strip()]
        chosen = choose_tools(wanted, caller)
    except MemctlError as error:
        if not sys.stdin.isatty():
            refuse_requests(error, sys.stdin.buffer, sink)
        raise
    with redirect_stdout(sys.stderr):  # what prints must not end up in the protocol
        McpServer(
            caller, lambda send: McpSession(caller, chosen, send), sys.stdin.buffer, sink
        ).run()
