"""memctl profile: what is known of a user in short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import KnowledgeBaseOption, Output, command, flag, group
from memctl.cli.rendering.output_formats import Column, emit, emit_one, print_text
from memctl.errors import NothingFound

if TYPE_CHECKING:
    from memctl.store.ledger.session_repositories import Profile

app = group("profile", "What is known of a user in short.")

_COLUMNS = (
    Column("version", "#", right=True),
    Column("at", "SINCE"),
    Column("by", "BY"),
    Column("session_id", "SESSION"),
    Column("last_conversation_summary", "LAST CONVERSATION"),
)


@command(
    app,
    "show",
    """
    memctl profile show --user ann
    memctl profile show --versions -o json
    """,
    identity=True,
)
def show(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    versions: bool = flag("--versions", "List the former versions, too."),
    output: Output = None,
) -> None:
    """Show what is known of a user in short.

    It is rewritten when a conversation ends; earlier versions are kept.
    """
    with context.reading(kb) as bases:
        config = context.config
        sessions = bases[0].sessions
        found = list(sessions.profile_versions(config.user, config.agent))
        if not found and (other := sessions.profile(config.user, config.agent)):
            found = list(sessions.profile_versions(config.user, other.agent_id))
    if versions:
        emit(found, _COLUMNS, output)
        return
    if not found:
        whose = f" of {config.user}" if config.user else ""
        hint = (
            "it is written when a conversation ends (memctl session end), or by memctl profile set"
        )
        if not whose:
            hint += "; --user says whose to show"
        raise NothingFound(f"there is no profile{whose} yet", hint)
    emit_one(found[0], output, lambda: _print(found[0]))


@command(
    app,
    "set",
    """
    memctl profile set --user ann --user-info "Lives in Turin; prefers short answers."
    memctl profile set --goal "Sell the boat by June."
    """,
    identity=True,
)
def set_(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    user_info: str | None = typer.Option(
        None, "--user-info", metavar="TEXT", help="Who the user is, and what they prefer."
    ),
    summary: str | None = typer.Option(
        None, "--summary", metavar="TEXT", help="What the last conversation was about."
    ),
    goal: str | None = typer.Option(
        None, "--goal", metavar="TEXT", help="What the user works towards, and how far it is."
    ),
    important: str | None = typer.Option(
        None, "--important", metavar="TEXT", help="What must not be forgotten."
    ),
    beliefs: str | None = typer.Option(
        None, "--beliefs", metavar="TEXT", help="What the agent believes."
    ),
    agent_info: str | None = typer.Option(
        None, "--agent-info", metavar="TEXT", help="What the agent is to this user."
    ),
    output: Output = None,
) -> None:
    """Write fields of a profile; the others stay as they are.

    What is written into --user-info, --important, --beliefs and --agent-info stays when the
    profile is written anew; what conversations bring is added.
    """
    texts = {
        "user_info": user_info,
        "last_conversation_summary": summary,
        "recent_goal_and_status": goal,
        "important_context": important,
        "agent_beliefs": beliefs,
        "agent_info": agent_info,
    }
    fields = {name: text for name, text in texts.items() if text is not None}
    with context.writing(kb) as base:
        config = context.config
        written = base.sessions.set_profile(fields, user=config.user, agent=config.agent)
    emit_one(written, output, lambda: _print(written))


def _print(profile: Profile) -> None:
    from memctl.queries.standing_context import profile_text

    print_text(profile_text(profile))
