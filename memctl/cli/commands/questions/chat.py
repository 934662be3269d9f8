"""memctl chat: a conversation in the terminal, with memory before it and capture behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBaseOption, SessionOption, command
from memctl.cli.rendering.output_formats import print_piece
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import MemctlError

if TYPE_CHECKING:
    from memctl.store.ledger.session_repositories import Session

app = typer.Typer()
_SHOWN = 60
"""Characters of the id of a session."""


@command(
    app,
    "chat",
    """
    memctl chat
    memctl chat --user ann --session monday
    echo "When does the lease end?" | memctl chat
    """,
    identity=True,
)
def chat(
    context: CommandContext,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Talk with the configured model, which has your memory.

    Each line is a message.  What memory has to say of it is put in, the reply is written by the
    model that answers, and both are added to a session.  Without a model, what memory has is the
    reply.  An empty line or Ctrl-D ends it; --session goes on with an earlier one.
    """
    with context.writing(kb) as base:
        conversation: Session | None = None
        context.say("an empty line ends it")
        for message in _messages():
            if conversation is None:  # nothing said leaves no session
                conversation = base.sessions.get_or_start(session)
            answer = ""
            try:
                for piece in base.sessions.replies(conversation, message):
                    print_piece(piece)
                    answer += piece
            except MemctlError as error:
                context.say(f"error: {error.message}")
                context.suggest(error.hint)
            print_piece("\n")
            base.sessions.note_exchange(conversation, message, answer)
        if conversation is not None:
            context.say(f"session {one_line(conversation.session_id, _SHOWN)}")


def _messages() -> Iterator[str]:
    """Yield what is typed, until an empty line or the end."""
    while True:
        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line.strip():
            return
        yield line.strip()
