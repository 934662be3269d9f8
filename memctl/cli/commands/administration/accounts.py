"""memctl user, agent and team: who stores and asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from memctl.cli.arguments import input_file
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import DryRun, Output, Yes, command, flag, group
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import Column, emit, emit_one, format_instant, print_facts
from memctl.cli.rendering.terminal_text import format_moment, one_line
from memctl.errors import ConfigError, NotFoundError, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.paths import display_path

if TYPE_CHECKING:
    from memctl.user_contents import UserReport

user_app = group("user", "The people whose memory is kept apart.")
agent_app = group("agent", "The agents that use memory, with their files.")
team_app = group("team", "Agents that are granted something together.")

UserName = Annotated[str, typer.Argument(metavar="USER", help="Up to 200 characters, no colon.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="1 to 64 of a-z, 0-9, - and _.")]

_USERS = (
    Column("name", "USER"),
    Column("title", "TITLE"),
    Column("created_at", "ADDED", lambda at: format_instant(at) if at else ""),
    Column("memories", "MEMORIES", right=True),
)
_AGENTS = (
    Column("agent_id", "AGENT"),
    Column("model", "MODEL"),
    Column("resources", "RESOURCES", ", ".join),
)
_TEAMS = (
    Column("name", "TEAM"),
    Column("agents", "AGENTS", lambda names: one_line(", ".join(names), 100)),
)


# --- users ---------------------------------------------------------------------------------------


@command(user_app, "add", 'memctl user add ann\nmemctl user add bob --title "Bob Lee, accounts"')
def add_user(
    context: CommandContext,
    name: UserName,
    title: str = typer.Option("", "--title", metavar="TEXT", help="Who that is, in words."),
) -> None:
    """Add a user.

    A user need not be added to store and ask: --user NAME is enough.
    """
    from memctl.instants import utc_now

    user = context.home.accounts.add_user(name, title, utc_now())
    context.say(f"added user {user.name}")


@command(user_app, "list", "memctl user list\nmemctl user list -o json")
def list_users(context: CommandContext, page: Page = Page(), output: Output = None) -> None:
    """List users: those who were added, or have stored something."""
    from memctl.user_contents import user_names, user_report

    home = context.home
    rows = [_user_row(user_report(home, name)) for name in user_names(home)]
    emit(context.page(rows, page), _USERS, output)


def _user_row(report: UserReport) -> dict[str, Any]:
    totals = [counts.get("memories", 0) for counts in report.stored.values()]
    return {
        "name": report.name,
        "title": report.title,
        "created_at": report.created_at,
        "namespaces": report.namespaces,
        "memories": sum(totals),
    }


@command(user_app, "show", "memctl user show ann\nmemctl user show ann -o json")
def show_user(context: CommandContext, name: UserName, output: Output = None) -> None:
    """Show what a user has stored, and where."""
    from memctl.user_contents import user_names, user_report

    report = user_report(context.home, name)
    if report.created_at is None and not report.stored:
        there = ", ".join(user_names(context.home))
        hint = f"there are {there}" if there else f"add one: memctl user add {name}"
        raise NotFoundError(f"there is no user {name!r}", hint)
    emit_one(report, output, lambda: _show_user(context, report))


def _show_user(context: CommandContext, report: UserReport) -> None:
    facts: dict[str, Any] = {
        "name": report.name,
        "title": report.title,
        "added": format_moment(report.created_at) if report.created_at else "",
        "namespaces": ", ".join(report.namespaces),
    }
    facts |= {kb: _amount(counts) for kb, counts in report.stored.items()}
    print_facts(context.console, facts, indent=0)


def _amount(counts: Any) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


@command(user_app, "remove", "memctl user remove ann")
def remove_user(context: CommandContext, name: UserName) -> None:
    """Remove the entry of a user; what they stored stays.

    memctl user clear deletes what they have stored.
    """
    context.home.accounts.remove_user(name)
    context.say(f"removed user {name}")


@command(
    user_app,
    "clear",
    """
    memctl user clear ann --dry-run
    memctl user clear ann
    memctl user clear ann --forget
    """,
)
def clear_user(
    context: CommandContext,
    name: UserName,
    forget: bool = flag("--forget", "Remove it from the disk too, and search what is left."),
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = None,
) -> None:
    """Delete all that a user has stored, in every knowledge base.

    That is what is in their namespaces: documents, memories, conversations, short-term entries and
    profile; the questions that they asked; and the pools that they own.  Snapshots keep what they
    have of it; with --forget it is removed as memctl forget does, and the exit code is 3 if some
    of it is left.
    """
    from memctl.user_contents import clear_user as delete_contents
    from memctl.user_contents import user_report

    report = user_report(context.home, name)
    if not report.stored:
        raise NotFoundError(f"nothing is stored of user {name!r}", "memctl user list shows them")
    what = "; ".join(f"{kb}: {_amount(counts)}" for kb, counts in report.stored.items())
    if dry_run:
        emit_one(report, output, lambda: context.console.print(f"would delete {what}"))
        return
    context.confirm(f"delete all of user {name} for good ({one_line(what, 200)})?", yes=yes)
    done = delete_contents(context.home, name, forget=forget)
    emit_one(done, output, lambda: context.console.print(f"deleted {what}", soft_wrap=True))
    if done.left:
        hint = "memctl forget --snapshots deletes snapshots, which may hold it"
        raise PartialFailure(f"some of it is left in {one_line(', '.join(done.left), 200)}", hint)


# --- agents --------------------------------------------------------------------------------------


@command(agent_app, "add", "memctl agent add helper\nmemctl agent add helper --file helper.json")
def add_agent(
    context: CommandContext,
    name: AgentName,
    file: str | None = typer.Option(
        None, "--file", metavar="FILE", help="Its settings, TOML or JSON."
    ),
) -> None:
    """Add an agent, with a file of its settings.

    The file goes to the folder agents of the home, where it can be edited.  Without --file it
    has the defaults, which memctl agent show lists.
    """
    content, place = None, ""
    if file is not None:
        path = input_file(file, "--file takes the settings of an agent")
        content, place = path.read_bytes(), display_path(path)
        _refuse_unknown_tools(content, place)
    made = context.home.accounts.add_agent(name, content, place)
    context.say(f"added agent {name}: {made}")


def _refuse_unknown_tools(content: bytes, place: str) -> None:
    from memctl.agent_settings import parse_agent
    from memctl.operations.registry import find_operation

    for tool in parse_agent(content, place).allowed_regular_tools:
        try:
            find_operation(tool)
        except UsageError as error:
            message = f"{place}: allowed_regular_tools: {error.message}"
            raise ConfigError(message, error.hint) from None


@command(agent_app, "list", "memctl agent list\nmemctl agent list -o json")
def list_agents(context: CommandContext, page: Page = Page(), output: Output = None) -> None:
    """List the agents that have a file."""
    from memctl.agent_settings import effective_settings

    agents = context.home.accounts.agents()
    rows = [asdict(effective_settings(context.config, agent)) for agent in agents]
    emit(context.page(rows, page), _AGENTS, output)


@command(agent_app, "show", "memctl agent show helper\nmemctl agent show helper -o json")
def show_agent(context: CommandContext, name: AgentName, output: Output = None) -> None:
    """Show the settings of an agent, its teams and grants.

    What its file leaves out is as the settings of the program say.
    """
    from memctl.agent_settings import effective_settings

    accounts = context.home.accounts
    value = asdict(effective_settings(context.config, accounts.agent(name))) | {
        "teams": sorted(accounts.teams_of(name)),
        "grants": context.home.grants_of(name),
    }

    def table() -> None:
        """Print one setting a line."""
        print_facts(context.console, _flat(value), indent=0)

    emit_one(value, output, table)


@command(agent_app, "remove", "memctl agent remove helper --dry-run\nmemctl agent remove helper")
def remove_agent(
    context: CommandContext, name: AgentName, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Delete the file of an agent; what it stored stays.

    From then on the settings of the program count where it is named, and it may use every tool and
    resource.  Its teams and grants stay.
    """
    accounts = context.home.accounts
    accounts.agent(name)
    path = accounts.agent_path(name)
    if dry_run:
        context.say(f"would delete {path}")
        return
    context.confirm(f"delete {path}?", yes=yes)
    accounts.remove_agent(name)
    context.say(f"removed agent {name}")


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found |= _flat(item, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = ", ".join(item) if isinstance(item, (list, tuple)) else item
    return found


# --- teams ---------------------------------------------------------------------------------------


@command(team_app, "add", "memctl team add writers helper drafter")
def add_team(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="TEAM", help="What it is called.")],
    agents: Annotated[list[str], typer.Argument(metavar="AGENT", help="Who is in it.")],
) -> None:
    """Make a team of agents, or add agents to it."""
    team = context.home.accounts.set_team(name, agents)
    context.say(f"team {team.name} has {format_count(len(team.agents), 'agent')}")


@command(team_app, "remove", "memctl team remove writers drafter\nmemctl team remove writers")
def remove_team(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="TEAM", help="What it is called.")],
    agents: Annotated[
        list[str] | None, typer.Argument(metavar="AGENT", help="Who leaves it; by default all.")
    ] = None,
) -> None:
    """Take agents out of a team, or remove the team.

    What is granted to the team stays granted to its name: memctl kb revoke takes that back.
    """
    team = context.home.accounts.remove_team(name, agents or ())
    if team is not None:
        context.say(f"team {team.name} has {format_count(len(team.agents), 'agent')}")
        return
    context.say(f"removed team {name}")
    for entry in context.home.entries():
        grants = entry.settings.grants if entry.settings else ()
        if any(grant.is_team and grant.to == name for grant in grants):
            context.say(
                f"{entry.name} is still granted to it: memctl kb revoke {entry.name} --team {name}"
            )


@command(team_app, "list", "memctl team list\nmemctl team list -o json")
def list_teams(context: CommandContext, page: Page = Page(), output: Output = None) -> None:
    """List teams, with the agents in them."""
    rows = [asdict(team) for team in context.home.accounts.teams()]
    emit(context.page(rows, page), _TEAMS, output)
