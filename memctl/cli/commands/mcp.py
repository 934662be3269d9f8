"""memctl mcp: memory as an MCP server on standard input and output."""

from __future__ import annotations

import sys

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBasesOption,
    SessionOption,
    UserOption,
    command,
)
from memctl.cli.commands.tool import CallingAgent, ReadOnly, calling

app = typer.Typer()


@command(
    app,
    "mcp",
    """
    memctl mcp
    memctl mcp --user ann -k notes --read-only
    memctl mcp --tools core,search_knowledge_graph
    """,
)
def mcp(
    context: CommandContext,
    tools: str = typer.Option(
        "core", "--tools", metavar="LIST", help="core, all, or names from memctl tool list."
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
    from memctl.server.mcp_server import McpServer
    from memctl.server.mcp_tools import choose_tools

    caller = calling(context, kb, user, agent, session, read_only)
    wanted = [name.strip() for name in tools.split(",") if name.strip()]
    chosen = choose_tools(wanted, caller)
    sink, sys.stdout = sys.stdout.buffer, sys.stderr  # what prints must not end up in the protocol
    try:
        McpServer(caller, chosen, sys.stdin.buffer, sink).run()
    finally:
        sys.stdout = sys.__stdout__
