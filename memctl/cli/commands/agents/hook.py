"""memctl hook: what coding agents run at certain moments of a conversation."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memctl.cli.arguments import parse_path
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBasesOption, UserOption, command, flag
from memctl.cli.rendering.output_formats import print_json, print_text
from memctl.errors import MemctlError, UsageError

if TYPE_CHECKING:
    from memctl.operations.agent_hooks import HookReply

app = typer.Typer()

Client = Literal["claude-code", "codex", "cursor", "gemini"]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Who acts; by default MEMCTL_AGENT.")
]
_LONGEST = 16 << 20


@command(
    app,
    "hook",
    """
    memctl hook install claude-code --write
    memctl hook install codex
    memctl hook SessionStart < hook.json
    memctl hook UserPromptSubmit --client codex --user ann < hook.json
    """,
)
def hook(
    context: CommandContext,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT",
            help="SessionStart, UserPromptSubmit, Stop, ..., or start, prompt, stop; or install.",
        ),
    ],
    client: Annotated[
        str | None,
        typer.Argument(metavar="[CLIENT]", help="For install: claude-code, codex, cursor, gemini."),
    ] = None,
    reads_as: Client | None = typer.Option(
        None, "--client", help="Whose JSON is read and written; by default as it looks."
    ),
    most_bytes: int = typer.Option(
        8_000, "--max-bytes", min=500, max=100_000, help="Of the text that is put in."
    ),
    write: bool = flag("--write", "With install: write into the agent's settings."),
    project: str | None = typer.Option(
        None, "--project", metavar="FOLDER", help="With install: for this project alone."
    ),
    kb: KnowledgeBasesOption = None,
    user: UserOption = None,
    agent: Agent = None,
) -> None:
    """Give a coding agent memory, and take in what was said.

    A hook reads JSON on standard input, as the agent gives it.  At SessionStart it prints the
    profile, what is important, and what the last session came to; at UserPromptSubmit what bears
    on the prompt, and for most prompts nothing.  At Stop and PreCompact it appends the new turns
    of the transcript to a session of the same id.  No model is called.  What goes wrong never
    stops the agent: the exit code is 1.

    `install` prints the settings of an agent that run these; with --write it adds them to its
    file, and leaves everything else there as it is.
    """
    if event == "install":
        _install(context, client, kb, user, agent, project, write=write)
        return
    if client is not None or write or project is not None:
        raise UsageError("these options are for: memctl hook install CLIENT")
    try:
        payload = _payload()
        from memctl.operations.agent_hooks import event_name, handle_hook
        from memctl.operations.operation_context import OperationContext

        with OperationContext.of(context.home, kb or (), user=user, agent=agent) as caller:
            event = event_name(event, payload)
            reply = handle_hook(caller, event, payload, most_bytes=most_bytes)
    except MemctlError as error:  # 2 would stop the agent
        raise MemctlError(error.message, error.hint) from error
    _answer(reply, event, reads_as or _looks_like(event, payload))


def _payload() -> dict[str, Any]:
    """Return the JSON that the agent writes to standard input.

    Raises:
        MemctlError: It is no object.
    """
    if sys.stdin.isatty():
        raise MemctlError("a hook reads JSON from standard input", "memctl hook install CLIENT")
    text = sys.stdin.read(_LONGEST)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MemctlError(f"the hook's input is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise MemctlError("the hook's input is no object")
    return found


def _looks_like(event: str, payload: dict[str, Any]) -> Client:
    if "conversation_id" in payload or "cursor_version" in payload:
        return "cursor"
    return "gemini" if event in ("BeforeAgent", "AfterAgent", "PreCompress") else "claude-code"


def _answer(reply: HookReply, event: str, client: Client) -> None:
    """Write what the agent reads; Claude Code takes no output for none, others want an object."""
    if client == "cursor":
        if reply.moment == "prompt":
            print_json({"continue": True})
        else:
            print_json({"additional_context": reply.text} if reply.text else {})
    elif reply.text:
        print_json(
            {"hookSpecificOutput": {"hookEventName": event, "additionalContext": reply.text}}
        )
    elif client != "claude-code":
        print_json({})


def _install(
    context: CommandContext,
    client: str | None,
    kb: list[str] | None,
    user: str | None,
    agent: str | None,
    project: str | None,
    *,
    write: bool,
) -> None:
    """Print the settings of an agent, or write them."""
    from memctl.cli.hook_settings import (
        CLIENTS,
        hook_file,
        memctl_command,
        new_settings,
        write_settings,
    )

    if client not in CLIENTS:
        raise UsageError("install for whom?", f"one of {', '.join(CLIENTS)}")
    named = [("-k", each) for each in kb or ()]
    named += [(name, each) for name, each in (("--user", user), ("--agent", agent)) if each]
    file = hook_file(client)
    program = memctl_command(context.config.home)
    settings = new_settings(file, [word for pair in named for word in pair], program)
    path = (Path.home() if project is None else parse_path(project)) / file.path
    if not write:
        print_text(json.dumps(settings, indent=2))
        context.say(f"note: this belongs into {path}; --write adds it there")
    elif write_settings(path, settings):
        context.say(f"wrote the hooks into {path}")
    else:
        context.say(f"the hooks stand in {path} already")
    if file.note:
        context.say(f"note: {file.note}")
