"""memctl resident: a process in the background that makes commands that read start at once."""

from __future__ import annotations

from memctl import __version__
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import Output, command, group
from memctl.cli.rendering.output_formats import emit_facts

app = group("resident", "The background process that answers commands that read.")


@command(
    app,
    "start",
    """
    memctl resident start
    MEMCTL_RESIDENT_IDLE_MINUTES=0 memctl resident start
    """,
)
def start(context: CommandContext) -> None:
    """Start the background process, unless it is running.

    query, context, status, sql, the lists of memories, documents and insights, and tool calls that
    read are carried out by it then, at once and with the same output.  It opens no port: a socket
    in the home that only you can connect to.  It ends after resident.idle_minutes of rest.
    memctl watch and memctl serve have one of their own for as long as they run.
    """
    from memctl.resident.processes import start as start_process

    was_started = start_process(context.config)
    context.say("the resident process is running" if was_started else "it is running already")


@command(
    app,
    "stop",
    """
    memctl resident stop
    """,
)
def stop(context: CommandContext) -> None:
    """Stop the background process.

    It first ends what it has begun.  That of memctl watch or serve stops too, and is
    there again when the next one starts.
    """
    from memctl.resident.processes import stop as stop_process

    was_there = stop_process(context.config.home)
    context.say("stopped" if was_there else "there is no resident process")


@command(
    app,
    "status",
    """
    memctl resident status
    memctl resident status -o json | jq .running
    """,
)
def status(context: CommandContext, output: Output = None) -> None:
    """Show whether the background process runs and what it takes."""
    from memctl.resident.processes import resident_status

    emit_facts(resident_status(context.config.home, __version__), output)
