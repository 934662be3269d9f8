"""memctl kb: the knowledge bases on this disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memctl.cli.arguments import input_folder, parse_path, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import DryRun, Output, Yes, command, flag, group
from memctl.cli.completion import complete_kb
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_if_asked,
    emit_one,
    format_instant,
    print_facts,
)
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import NotFoundError, PartialFailure, UsageError
from memctl.formatting import format_count
from memctl.ids import storable
from memctl.literals import AccessLevel, OwnTask

if TYPE_CHECKING:
    from pathlib import Path

    from memctl.kb_settings import Grant, Inbox, KnowledgeBaseSettings
    from memctl.knowledge_base import KnowledgeBase
    from memctl.memories.reembedding import ReembedReport

app = group("kb", "Create, list, change, archive and delete knowledge bases.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="1 to 64 of a-z, 0-9, - and _.")]
ExistingName = Annotated[
    str, typer.Argument(metavar="NAME", help="See memctl kb list.", autocompletion=complete_kb)
]
Inboxes = Annotated[
    list[str] | None,
    typer.Option(
        "--inbox",
        metavar="FOLDER",
        help="Watch this folder too; repeatable. Its files are kept; FOLDER=move or =delete"
        " says otherwise.",
    ),
]
EmbedderOption = Annotated[
    str,
    typer.Option(
        "--embedder",
        metavar="ID",
        help="The model of its vectors: builtin, endpoint/MODEL or onnx/FOLDER.",
    ),
]
PrivateNamespaces = Annotated[
    list[str] | None,
    typer.Option(
        "--private-namespace",
        metavar="NAME",
        help="Make this namespace private; repeatable.",
    ),
]
_COLUMNS = (
    Column("name", "NAME"),
    Column("status", "STATUS"),
    Column("always_on", "ALWAYS ON"),
    Column("privacy", "PRIVATE", wrap=True),
    Column("consolidate_interval", "CONSOLIDATES", lambda m: f"every {m} min" if m else "never"),
    Column("created_at", "CREATED", format_instant),
    Column("kind", "KIND"),
    Column("scope", "SCOPE"),
    Column("description", "DESCRIPTION", lambda text: one_line(text, 40)),
    Column("inbox", "INBOX"),
    Column("problem", "PROBLEM", wrap=True),
)


@command(
    app,
    "create",
    """
    memctl kb create notes
    memctl kb create work --chunk-size 800 --consolidate-interval 15
    memctl kb create vault --inbox ~/Obsidian --on-demand
    memctl kb create papers --embedder endpoint/nomic-embed-text
    """,
)
def create(
    context: CommandContext,
    name: Name,
    kb_settings: dict[str, Any],
    inbox: Inboxes = None,
    private_namespace: PrivateNamespaces = None,
    embedder: EmbedderOption = "",
    output: Output = None,
) -> None:
    """Create a knowledge base.

    Its settings are kept in its kb.toml; kb set changes them.
    """
    if private_namespace:
        kb_settings["private_namespaces"] = _namespaces((), private_namespace, ())
    folders = [_inbox(text) for text in inbox or ()]
    context.home.create(name, inboxes=folders, embedder=embedder, **kb_settings)
    context.say(f"created {name}")
    context.hint(f"drop files into {context.home.layout(name).inbox} and run memctl watch")
    if output is not None:
        _show(context, name, output)


def _inbox(text: str) -> Inbox:
    """Read FOLDER or FOLDER=move|keep|delete.

    Raises:
        UsageError: There is no such folder.
    """
    from memctl.kb_settings import Inbox

    path, equals, after = text.rpartition("=")
    if not equals or after not in ("move", "keep", "delete"):
        path, after = text, "keep"
    folder = input_folder(path, "--inbox takes a folder that is there")
    return Inbox(folder, after)  # type: ignore[arg-type]  # one of the three


@command(app, "list", "memctl kb list\nmemctl kb list -o json | jq '.[].name'")
def list_(context: CommandContext, page: Page = Page(), output: Output = None) -> None:
    """List every knowledge base."""
    entries = context.home.entries()
    if not entries:
        context.home.check_creatable()
    emit(context.page([entry.row() for entry in entries], page), _COLUMNS, output)
    if not entries:
        context.hint("there is none yet: memctl kb create NAME, or just memctl ingest FILE")


@command(app, "show", "memctl kb show notes\nmemctl kb show notes -o json")
def show(context: CommandContext, name: ExistingName, output: Output = None) -> None:
    """Show the settings of one knowledge base, and where it is."""
    _show(context, name, output)


def _show(context: CommandContext, name: str, output: Output) -> None:
    home = context.home
    settings, value = home.settings(name), home.described(name)

    def table() -> None:
        """Print each setting on a line, inboxes with what happens to their files."""
        inboxes = [f"{inbox.path} ({inbox.after})" for inbox in settings.inboxes]
        namespaces = ", ".join(map(one_line, settings.private_namespaces)) or None
        texts = {"inboxes": ", ".join(inboxes), "private_namespaces": namespaces}
        for name in ("endpoint", "budget"):
            own = [f"{key}: {number}" for key, number in getattr(settings, name)]
            texts[name] = ", ".join(own) or None
        models = [f"{task}: {name or 'none'}" for task, name in settings.models]
        texts["models"] = ", ".join(models) or None
        texts["grants"] = ", ".join(map(_grant_text, settings.grants)) or "all agents may write"
        print_facts(context.console, value | texts, indent=0)

    emit_one(value, output, table)


@command(
    app,
    "set",
    """
    memctl kb set notes --consolidate-interval 30
    memctl kb set vault --on-demand --inbox ~/Obsidian
    memctl kb set diary --private
    memctl kb set work --private-namespace user:ann
    memctl kb set work --model answer=llama3.1 --model consolidate=
    memctl kb set work --budget daily_tokens=50000
    """,
)
def set_(
    context: CommandContext,
    name: ExistingName,
    kb_settings: dict[str, Any],
    inbox: Inboxes = None,
    remove_inbox: list[str] | None = typer.Option(
        None, "--remove-inbox", metavar="FOLDER", help="Stop watching it; repeatable."
    ),
    private_namespace: PrivateNamespaces = None,
    open_namespace: list[str] | None = typer.Option(
        None, "--open-namespace", metavar="NAME", help="Make it not private; repeatable."
    ),
    model: list[str] | None = typer.Option(
        None, "--model", metavar="TASK=NAME", help="A model of its own for a task; repeatable."
    ),
    endpoint: str | None = typer.Option(
        None, "--endpoint", metavar="URL", help="An endpoint of its own, or default."
    ),
    budget: list[str] | None = typer.Option(
        None, "--budget", metavar="KEY=NUMBER", help="daily_tokens, ... of its own; repeatable."
    ),
) -> None:
    """Change settings of a knowledge base.

    How text is cut, and what is redacted, applies to what is ingested from then on.

    A private knowledge base is read only if it is named.  Nothing of it is sent to a model on
    another machine, unless --may-send: such a model's task is done without it.  A question asked
    of it, even together with others, is logged nowhere with its text, and no reply of a model is
    stored; what was stored before goes when it becomes private.

    --model answer=NAME has a task done by another model of the endpoint than the config file names;
    answer= has it done without one, and answer=default as the config file says.

    --endpoint URL is where its models are, if [endpoint] of the config file names that address as
    base_url or among allowed; --endpoint default is that of the config file.  --budget
    daily_tokens=50000 is what they may use, and daily_tokens=default what the config file says.
    memctl config show --origin -k NAME shows what holds.

    The same holds for a private namespace: only a command with --namespace NAME reads it.
    """
    changes = kb_settings
    if inbox or remove_inbox:
        own = context.home.layout(name).inbox
        changes["inboxes"] = lambda now: _inboxes(own, now, inbox or [], remove_inbox or [])
    if private_namespace or open_namespace:
        changes["private_namespaces"] = lambda now: _namespaces(
            now.private_namespaces, private_namespace or (), open_namespace or ()
        )
    if model:
        changes["models"] = lambda now: _models(now, model)
    if endpoint is not None:
        changes["endpoint"] = _endpoint(context, endpoint)
    if budget:
        changes["budget"] = lambda now: _budget(now, budget)
    if not changes:
        raise UsageError("nothing to set", "see memctl kb set --help for what can be")
    context.home.change(name, **changes)
    context.say(f"set {', '.join(changes)} of {name}")


def _endpoint(context: CommandContext, url: str) -> tuple[tuple[str, Any], ...]:
    """Return the endpoint of a knowledge base as its kb.toml has it.

    Raises:
        UsageError: The settings of the program do not know it.
        ConfigError: It is no address.
    """
    from memctl.config import check_base_url, is_known_endpoint, without_password

    if url == "default":
        return ()
    url = check_base_url(url, "--endpoint")
    if not is_known_endpoint(context.config, url):
        raise UsageError(
            f"{without_password(url)} is not among the endpoints of the settings",
            f'add it first: allowed = ["{without_password(url)}"] of [endpoint] in the config file',
        )
    return (("base_url", url),)


def _budget(settings: KnowledgeBaseSettings, options: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Return the budget of a knowledge base with the given numbers changed.

    Raises:
        UsageError: One is not written as KEY=NUMBER.
        ConfigError: There is no such key.
    """
    from memctl.config import BudgetSettings
    from memctl.kb_settings import BUDGET_KEYS, own_values
    from memctl.validation import parse_text

    if not all("=" in each for each in options):
        raise UsageError("--budget takes a key and a number", "write --budget daily_tokens=50000")
    pairs = {key.strip(): text.strip() for key, _, text in (g.partition("=") for g in options)}
    own_values(pairs, BUDGET_KEYS, "budget", "--budget")
    found = dict(settings.budget)
    for key, text in pairs.items():
        if text == "default":
            found.pop(key, None)
        else:
            found[key] = parse_text(
                BudgetSettings, key, text, name=f"budget.{key}", place="--budget"
            )
    return tuple(found.items())


def _models(
    settings: KnowledgeBaseSettings, options: Sequence[str]
) -> tuple[tuple[OwnTask, str], ...]:
    """Return the models of a knowledge base with the given ones changed.

    Raises:
        UsageError: One is not written as TASK=NAME.
        ConfigError: There is no such task.
    """
    from memctl.kb_settings import own_models

    if not all("=" in each for each in options):
        raise UsageError("--model takes a task and a model", "write --model answer=llama3.1")
    pairs = [each.partition("=")[::2] for each in options]
    added = own_models({task.strip(): name.strip() for task, name in pairs}, "--model")
    found = dict(settings.models) | dict(added)
    return tuple((task, name) for task, name in found.items() if name != "default")


def _namespaces(
    before: Sequence[str], added: Sequence[str], removed: Sequence[str]
) -> tuple[str, ...]:
    """Return the private namespaces after the change.

    Raises:
        UsageError: One that is to be so no more is not, or a name is empty.
    """
    refuse_empty({"--private-namespace": added, "--open-namespace": removed})
    if unknown := [name for name in removed if name not in before]:
        private = ", ".join(map(repr, before)) or "none"
        raise UsageError(f"{unknown[0]!r} is no private namespace", f"private are: {private}")
    # Stored text never has lone surrogates, so neither can the name of a namespace.
    names = {storable(name) for name in added}
    return tuple(sorted({*before, *names}.difference(removed)))


def _inboxes(
    own: Path, settings: KnowledgeBaseSettings, added: Sequence[str], removed: Sequence[str]
) -> tuple[Inbox, ...]:
    inboxes = {inbox.path: inbox for inbox in settings.inboxes}
    for text in removed:
        path = parse_path(text).absolute()
        if path not in inboxes or path == own:
            further = ", ".join(str(other) for other in inboxes if other != own) or "none"
            raise UsageError(
                f"{str(path)!r} is not a further inbox of {settings.name!r}", f"it has {further}"
            )
        del inboxes[path]
    inboxes |= {inbox.path: inbox for inbox in map(_inbox, added)}
    return tuple(inboxes.values())


AgentGrantee = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="The agent that it is granted to.")
]
TeamGrantee = Annotated[
    str | None, typer.Option("--team", metavar="TEAM", help="The team that it is granted to.")
]


def _grant_text(grant: Grant) -> str:
    return f"{'team ' if grant.is_team else ''}{grant.to} ({grant.level})"


@command(
    app,
    "grant",
    """
    memctl kb grant notes --agent helper read
    memctl kb grant notes --team writers write
    """,
)
def grant(
    context: CommandContext,
    name: ExistingName,
    level: Annotated[AccessLevel, typer.Argument(metavar="LEVEL", help="read, or write as well.")],
    agent: AgentGrantee = None,
    team: TeamGrantee = None,
) -> None:
    """Let an agent or a team use a knowledge base.

    Without any grant every agent may read and write; with one, only those that are named.  People
    are not limited, nor is a command for which no agent is named.  It keeps order between agents
    that say who they are; it is no protection against a program that reads the files.
    """
    to, is_team = _grantee(agent, team)

    def granted(now: KnowledgeBaseSettings) -> tuple[Grant, ...]:
        """Return the grants with this one in place of an earlier one."""
        from memctl.kb_settings import Grant

        return (*_without_grant(now.grants, to, is_team), Grant(to, level, is_team))

    context.home.change(name, grants=granted)
    context.say(f"{'team' if is_team else 'agent'} {to} may {level} {name}")


@command(
    app,
    "revoke",
    """
    memctl kb revoke notes --agent helper
    memctl kb revoke notes --team writers
    """,
)
def revoke(
    context: CommandContext,
    name: ExistingName,
    agent: AgentGrantee = None,
    team: TeamGrantee = None,
) -> None:
    """Take a grant back.

    When the last one is taken back, every agent may use the knowledge base again.
    """
    to, is_team = _grantee(agent, team)
    before = context.home.settings(name).grants
    if len(_without_grant(before, to, is_team)) == len(before):
        known = ", ".join(map(_grant_text, before)) or "none"
        raise NotFoundError(f"{name!r} is not granted to {to!r}", f"grants are: {known}")
    context.home.change(name, grants=lambda now: _without_grant(now.grants, to, is_team))
    left = context.home.settings(name).grants
    context.say(f"revoked the grant of {to} to {name}")
    if not left:
        context.say(f"note: {name} has no grants any more, so every agent may use it")


def _grantee(agent: str | None, team: str | None) -> tuple[str, bool]:
    """Return to whom something is granted, and whether that is a team.

    Raises:
        UsageError: Neither an agent nor a team is named, or both are.
    """
    from memctl.identity import checked_name

    if (agent is None) == (team is None):
        raise UsageError("to whom?", "say --agent NAME or --team NAME")
    to = checked_name(agent or team, "a team" if agent is None else "an agent")
    return to or "", agent is None


def _without_grant(grants: Sequence[Grant], to: str, is_team: bool) -> tuple[Grant, ...]:
    return tuple(each for each in grants if (each.to, each.is_team) != (to, is_team))


@command(
    app,
    "use",
    """
    memctl kb use notes
    memctl kb use notes --interval 30 --inbox ~/Notes
    """,
)
def use(
    context: CommandContext,
    name: Name,
    interval: Annotated[
        int | None,
        typer.Option(
            "--interval", metavar="MINUTES", min=0, help="Minutes between consolidations."
        ),
    ] = None,
    inbox: Inboxes = None,
    output: Output = None,
) -> None:
    """Have a knowledge base that is always on, in one step.

    It is created if it does not exist, made active if it was paused or archived, and asked by
    every query that names no other.  Run again, it changes nothing.
    """
    folders = [_inbox(text) for text in inbox or ()]
    done = context.home.use(name, interval=interval, inboxes=folders)
    for line in done or (f"{name} is always on already",):
        context.say(line)
    if output is not None:
        _show(context, name, output)


@command(
    app,
    "clear",
    """
    memctl kb clear notes --dry-run
    memctl kb clear notes --keep-files
    memctl kb clear notes --forget --yes
    """,
)
def clear(
    context: CommandContext,
    name: ExistingName,
    keep_files: bool = flag("--keep-files", "Keep the files in processed/ and failed/."),
    forget: bool = flag("--forget", "Remove it from the disk too; no snapshot is made."),
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = None,
) -> None:
    """Delete all memories of a knowledge base, but not itself.

    Its settings, inboxes and prompts stay.  A snapshot is made first, from which memctl snapshot
    restore brings back everything but the files in processed/ and failed/.  With --forget, there
    is no way back: snapshots go too.
    """
    found = context.home.count_rows(name)
    amount = ", ".join(f"{number:,} {what}" for what, number in found.items()) or "nothing"
    question = f"delete everything in {name} ({amount})?"
    if not context.confirm_or_preview(
        f"delete {amount} of {name}", question, yes=yes, dry_run=dry_run
    ):
        return
    report = context.home.clear(name, keep_files=keep_files, forget=forget)
    context.say(f"cleared {name}: {amount}")
    if report.snapshot:
        context.say(f"memctl snapshot restore {report.snapshot} -k {name} brings it back")
    if output is not None:
        emit_one(report, output, lambda: None)
    if report.left:
        places = one_line(", ".join(report.left), 200)
        raise PartialFailure(f"some of it is left in {places}: {report.why}", report.hint)


@command(app, "pause", "memctl kb pause notes")
def pause(context: CommandContext, name: ExistingName) -> None:
    """Stop watching and consolidating a knowledge base.

    It can still be queried and written to.
    """
    context.home.set_status(name, "paused")
    context.say(f"paused {name}")


@command(app, "resume", "memctl kb resume notes")
def resume(context: CommandContext, name: ExistingName) -> None:
    """Make a paused or archived knowledge base active again."""
    context.home.set_status(name, "active")
    context.say(f"{name} is active")


@command(app, "archive", "memctl kb archive notes-2024")
def archive(context: CommandContext, name: ExistingName) -> None:
    """Make a knowledge base read-only, queried only if named."""
    context.home.set_status(name, "archived")
    context.say(f"archived {name}")


@command(app, "rename", "memctl kb rename notes diary")
def rename(
    context: CommandContext,
    name: ExistingName,
    new_name: str = typer.Argument(..., metavar="NEW_NAME", help="1 to 64 of a-z, 0-9, - and _."),
) -> None:
    """Give a knowledge base another name."""
    context.home.rename(name, new_name)
    context.say(f"renamed {name} to {new_name}")


@command(
    app,
    "reembed",
    """
    memctl kb reembed notes --embedder endpoint/nomic-embed-text
    memctl kb reembed notes --back
    memctl kb reembed notes --drop-old
    """,
)
def reembed(
    context: CommandContext,
    name: ExistingName,
    embedder: EmbedderOption = "",
    back: bool = flag("--back", "Go back to the previous vectors."),
    drop_old: bool = flag("--drop-old", "Remove the vectors of other embedders."),
    output: Output = None,
) -> None:
    """Give a knowledge base the vectors of another embedder.

    Meanwhile it can be queried and written to as before; the change is one step at the end.  If
    interrupted, the same command continues where it was.  The old vectors are kept until
    --drop-old.
    """
    if bool(embedder) + back + drop_old == 0 or (embedder and back):
        raise UsageError("to which embedder?", "say --embedder ID or --back, or --drop-old alone")
    with context.home.open(name) as base:
        if embedder or back:
            with context.progress("embedding") as listener:
                if back:
                    report = base.vectors.restore_former(progress=listener)
                else:
                    report = base.vectors.reembed(embedder, progress=listener)
            _report(context, base, report)
            if report is not None:
                emit_if_asked(report, output)
        if drop_old:
            freed = base.vectors.drop_former()
            context.say(f"removed {freed:,} bytes of former vectors")


def _report(context: CommandContext, base: KnowledgeBase, report: ReembedReport | None) -> None:
    if report is None:
        context.say(f"the vectors of {base.name} are from {base.settings.embedder} already")
        return
    made = (
        f"{format_count(report.memories, 'memory', 'memories')}, {report.embedded:,} embedded now"
    )
    context.say(f"the vectors of {base.name} are from {report.embedder}: {made}")
    context.hint(f"not better? memctl kb reembed {base.name} --back")


@command(app, "delete", "memctl kb delete scratch\nmemctl kb delete scratch --dry-run")
def delete(
    context: CommandContext,
    name: ExistingName,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a knowledge base with all its files.

    Memories, settings, inbox and processed files go for good.  Folders elsewhere that it watches
    are left alone.
    """
    folder = context.home.layout(name).folder
    files = sum(path.is_file() for path in folder.rglob("*"))
    would = f"remove {folder} ({format_count(files, 'file')})"
    question = f"remove {folder} with {format_count(files, 'file')} for good?"
    if not context.confirm_or_preview(would, question, yes=yes, dry_run=dry_run):
        return
    context.home.delete(name)
    context.say(f"deleted {name}")
