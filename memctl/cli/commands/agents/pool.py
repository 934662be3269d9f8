"""memctl pool: JSON documents with a name that several agents read and write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memctl.cli.arguments import parse_bytes, parse_end, parse_seconds, read_stdin, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    Output,
    SessionOption,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.completion import complete_pool
from memctl.cli.paging import Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_facts,
    emit_if_asked,
    emit_one,
    format_instant,
    print_json,
    print_line,
    resolve_format,
    to_plain,
)
from memctl.cli.rendering.terminal_text import json_text
from memctl.errors import UsageError
from memctl.formatting import format_count, format_size
from memctl.literals import AccessLevel, Eviction, PoolType

if TYPE_CHECKING:
    from memctl.pools import PoolChange, Pools
    from memctl.pools.pool_values import PoolStatistics
    from memctl.store.ledger.pool_repositories import Pool

app = group("pool", "Share JSON data by name between agents.")

PoolId = Annotated[
    str,
    typer.Argument(metavar="POOL", help="See memctl pool list.", autocompletion=complete_pool),
]
Key = Annotated[
    str | None, typer.Argument(metavar="KEY", help="A path with dots; by default all data.")
]
Value = Annotated[str, typer.Argument(metavar="VALUE", help="JSON; - is standard input.")]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", min=0, help="Only if it is still at this version."),
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="The run of a workflow it belongs to.")
]
Public = Annotated[bool, typer.Option("--public", help="Everybody.")]

_LIST = (
    Column("pool_id", "POOL"),
    Column("name", "NAME"),
    Column("pool_type", "TYPE"),
    Column("owner", "OWNER"),
    Column("version", "VERSION", right=True),
    Column("data_size_bytes", "SIZE", format_size, right=True),
    Column("updated_at", "WRITTEN", format_instant),
    Column("expires_at", "EXPIRES", format_instant),
    Column("run_id", "RUN"),
)
_HISTORY = (
    Column("version", "VERSION", right=True),
    Column("written_at", "WRITTEN", format_instant),
    Column("written_by", "BY"),
    Column("action", "ACTION"),
    Column("bytes", "SIZE", format_size, right=True),
    Column("keys", "KEYS", ", ".join, wrap=True),
)
_POLL_SECONDS = 0.2


# --- pools ---------------------------------------------------------------------------------------


@command(
    app,
    "create",
    """
    memctl pool create trading_ops --name "Trading" --ttl 7d --max-size 5MB --as agent1
    memctl pool create notes --public
    memctl pool create build --run 4711 --persist
    """,
    identity=True,
)
def create(
    context: CommandContext,
    pool: Annotated[str, typer.Argument(metavar="POOL", help="1 to 64 of a-z, 0-9, - and _.")],
    name: str = typer.Option("", "--name", metavar="TEXT", help="A name for people."),
    type_: PoolType | None = typer.Option(
        None, "--type", help="Whom it is for; by default shared, with --run task_scoped."
    ),
    scope: list[str] | None = typer.Option(
        None,
        "--scope",
        metavar="WORD",
        help="A visibility (account, team, ...) or a lifetime (session, ...); repeatable.",
    ),
    ttl: str | None = typer.Option(
        None, "--ttl", metavar="TIME", help="How long a key stays after its last write: 7d, 24h."
    ),
    max_size: str = typer.Option("5MB", "--max-size", metavar="SIZE", help="Of all its data."),
    eviction: Eviction = typer.Option(
        "oldest", "--eviction", help="Which keys go when a write does not fit, or refuse it."
    ),
    expires: str | None = typer.Option(
        None, "--expires", metavar="DATE", help="When it is no longer read: 2027-01-31, or 30d."
    ),
    public: bool = flag("--public", "Everybody may read it, and write if its type is shared."),
    access: str | None = typer.Option(
        None, "--access", metavar="JSON", help='Rights: \'{"read": ["b"], "write": ["c"]}\'.'
    ),
    run: RunOption = None,
    session: SessionOption = None,
    persist: bool = flag("--persist", "It outlives its run; a later --run binds it again."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Make a pool; the acting agent, or else you, owns it.

    Its owner may do everything with it, others what they are granted; everybody may read one of
    type global.  Rights keep agents out of each other's way; they are no protection against a
    program that reads the files.

    Visibilities are global, account, team, agent and task, and are labels; lifetimes are
    execution, session and persistent.
    """
    from memctl.pools import Retention, parse_scope

    refuse_empty({"--run": run, "--session": session, "--ttl": ttl, "--expires": expires})
    visibility, lifetime = parse_scope(scope or [])
    retention = Retention(
        None if ttl is None else parse_seconds(ttl), parse_bytes(max_size), eviction
    )
    if lifetime == "session":
        session = session or context.config.session
    with context.writing(kb) as base:
        made = base.pools.acting_as().create(
            pool,
            name=name,
            pool_type=type_,
            visibility=visibility,
            lifetime=lifetime,
            retention=retention,
            expires_at=None if expires is None else parse_end(expires, base.clock()),
            access=_access(access, public=public),
            run_id=run,
            session_id=session,
            persist=persist,
        )
        context.say(f"pool {made.pool_id} of {base.name} belongs to {made.owner}")
    emit_if_asked(made, output)


def _access(text: str | None, *, public: bool) -> dict[str, Any] | None:
    from memctl.pools.pool_values import parse_json

    if text is None:
        return {"public": True} if public else None
    if public:
        raise UsageError("--public and --access do not go together", "leave out one of them")
    rights = parse_json(text)
    if not isinstance(rights, dict):
        raise UsageError("--access is a JSON object", 'write \'{"read": ["agent2"]}\'')
    return rights


@command(app, "list", "memctl pool list\nmemctl pool list --run 4711 -o json", identity=True)
def list_(
    context: CommandContext,
    run: RunOption = None,
    expired: bool = flag("--expired", "Also those that have expired."),
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List the active pools that the caller may read."""
    with context.reading_existing(kb) as base:
        rows = base.pools.acting_as().list(include_expired=expired, run_id=run)
    emit(context.page(rows, page), _LIST, output)
    if not rows:
        context.hint("there is none yet: memctl pool create NAME")


@command(
    app, "show", "memctl pool show trading_ops\nmemctl pool show trading_ops -o json", identity=True
)
def show(
    context: CommandContext,
    pool: PoolId,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show the settings, rights and size of a pool."""
    with context.reading_existing(kb) as base:
        found = base.pools.acting_as().get(pool)
    emit_facts(found, output)


@command(
    app,
    "grant",
    """
    memctl pool grant trading_ops agent2 --as agent1
    memctl pool grant trading_ops agent3 --level write --as agent1
    memctl pool grant notes --public
    """,
    identity=True,
)
def grant(
    context: CommandContext,
    pool: PoolId,
    who: str | None = typer.Argument(None, metavar="AGENT", help="Whom to allow it."),
    level: AccessLevel = typer.Option("read", "--level", help="To write includes to read."),
    public: Public = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Allow an agent to read a pool, or to write to it.

    It replaces what the agent was granted before.
    """
    name = _parse_grantee(who, public=public)
    with context.reading_existing(kb) as base:
        changed = base.pools.acting_as().grant(pool, name, level)
    doing = "read" if level == "read" else "write to"
    context.say(f"{name or 'everybody'} may {doing} {pool}")
    emit_if_asked(changed, output)


@command(app, "revoke", "memctl pool revoke trading_ops agent2 --as agent1", identity=True)
def revoke(
    context: CommandContext,
    pool: PoolId,
    who: str | None = typer.Argument(None, metavar="AGENT", help="Whose right to take back."),
    public: Public = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Take back what an agent was granted in a pool."""
    name = _parse_grantee(who, public=public)
    with context.reading_existing(kb) as base:
        pools = base.pools.acting_as()
        changed = pools.revoke(pool, name)
        still = name is not None and pools.accessible_by(pool, name)
    context.say(f"took back what {name or 'everybody'} was granted in {pool}")
    if still:
        context.say(f"note: {name} may still do what everybody may")
    emit_if_asked(changed, output)


def _parse_grantee(agent: str | None, *, public: bool) -> str | None:
    """Return the agent that is named; None for everybody."""
    from memctl.identity import checked_name

    if (agent is None) != public:
        raise UsageError("whom?", "name an agent, or say --public for everybody")
    return checked_name(agent, "an agent")


@command(app, "delete", "memctl pool delete trading_ops --as agent1 --yes", identity=True)
def delete(
    context: CommandContext,
    pool: PoolId,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Delete a pool with its history; only its owner may.

    The pool called default stays.
    """
    with context.reading_existing(kb) as base:
        pools = base.pools.acting_as()
        found = pools.require_deletable(pool)
        what = f"pool {pool} of {base.name} ({_size_and_version(found)})"
        if context.confirm_or_preview(f"delete {what}", yes=yes, dry_run=dry_run):
            pools.delete(pool)
            context.say(f"deleted {what}")


def _size_and_version(pool: Pool) -> str:
    return f"{format_size(pool.data_size_bytes)}, version {pool.version}"


# --- data ----------------------------------------------------------------------------------------


@command(
    app,
    "read",
    """
    memctl pool read trading_ops agent_bulletin.market_regime -o json
    memctl pool read trading_ops
    memctl pool read trading_ops counter --with-version | jq .version
    """,
    identity=True,
)
def read(
    context: CommandContext,
    pool: PoolId,
    key: Key = None,
    with_version: bool = flag(
        "--with-version", "Also say the version, for a write with --if-version."
    ),
    version: int | None = typer.Option(
        None, "--version", metavar="N", min=0, help="As it was at a version of the history."
    ),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Print the data of a pool, or the value of one key, as JSON."""
    with context.reading_existing(kb) as base:
        pools = base.pools.acting_as()
        found = pools.read(pool, key) if version is None else pools.read_version(pool, version, key)
    if with_version:
        emit_one({"success": True, **to_plain(found)}, output, lambda: print_json(found))
        return
    format_ = resolve_format(output)
    if format_ in ("json", "table"):
        print_json(found.value)
    elif format_ == "ndjson":
        print_line(found.value)
    else:
        emit([{"key": key, "value": json_text(found.value)}], (), output)


@command(
    app,
    "write",
    """
    memctl pool write trading_ops agent_bulletin.market_regime '{"regime": "risk_off"}' --as agent1
    memctl pool write notes motd --text "back at noon"
    memctl pool write notes counter 8 --if-version 7
    memctl pool write notes motd --remove
    memctl pool write notes --all - < data.json
    """,
    identity=True,
)
def write(
    context: CommandContext,
    pool: PoolId,
    words: list[str] = typer.Argument(
        ..., metavar="[KEY] [VALUE]", help="A path with dots, and JSON; - is standard input."
    ),
    all_: bool = flag("--all", "Replace all data by an object; there is no KEY then."),
    text: bool = flag("--text", "Take the value as text, not as JSON."),
    remove: bool = flag("--remove", "Remove the key; there is no VALUE then."),
    if_version: IfVersion = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Write the value of a key; objects on its path are made.

    Subscribers are notified: see memctl pool watch.  What no longer fits goes as --eviction of
    the pool says.
    """
    if sum((all_, text, remove)) > 1:
        raise UsageError("--all, --text and --remove do not go together", "give one of them")
    wanted = 1 if all_ or remove else 2
    if len(words) != wanted:
        what = "the data alone" if all_ else "a key alone" if remove else "a key and a value"
        raise UsageError(
            f"write {what}, not {format_count(len(words), 'word')}", "see memctl pool write --help"
        )
    change: Callable[[Pools], PoolChange]
    if remove:
        change = lambda pools: pools.remove(pool, words[0], if_version=if_version)  # noqa: E731
    else:
        value = _value(words[-1], as_text=text)
        change = (
            (lambda pools: pools.replace(pool, value, if_version=if_version))
            if all_
            else (lambda pools: pools.write(pool, words[0], value, if_version=if_version))
        )
    _change(context, change, kb, output)


@command(
    app,
    "merge",
    """
    memctl pool merge trading_ops '{"limits": {"eur": 100}}' --as agent1
    echo '{"a": 1}' | memctl pool merge trading_ops -
    """,
    identity=True,
)
def merge(
    context: CommandContext,
    pool: PoolId,
    value: Value,
    if_version: IfVersion = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Merge an object into a pool's data; lists are replaced."""
    partial = _value(value)
    _change(context, lambda p: p.merge(pool, partial, if_version=if_version), kb, output)


@command(app, "restore", "memctl pool restore trading_ops 12 --as agent1", identity=True)
def restore(
    context: CommandContext,
    pool: PoolId,
    version: int = typer.Argument(..., metavar="VERSION", min=0, help="See memctl pool history."),
    if_version: IfVersion = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Write again what a pool held at an earlier version."""
    _change(context, lambda p: p.restore(pool, version, if_version=if_version), kb, output)


def _change(
    context: CommandContext,
    change: Callable[[Pools], PoolChange],
    kb: list[str] | None,
    output: Any,
) -> None:
    """Change a pool, and say what came of it."""
    with context.writing(kb) as base:
        made = change(base.pools.acting_as())
    keys = ", ".join(made.keys[:5]) + (" and more" if len(made.keys) > 5 else "")
    context.say(f"{made.pool_id} is at version {made.version}: {keys or 'nothing differs'}")
    if made.evicted:
        context.say(f"note: removed to make room: {', '.join(made.evicted)}")
    emit_if_asked(made, output)


def _value(text: str, *, as_text: bool = False) -> Any:
    """Return the value of an argument, or of standard input for ``-``.

    Raises:
        UsageError: It is no JSON, no UTF-8, or longer than any pool may get.
    """
    from memctl.pools.pool_rules import LARGEST_MAX_BYTES
    from memctl.pools.pool_values import parse_json

    if text == "-":
        most = format_size(LARGEST_MAX_BYTES)
        text = read_stdin(LARGEST_MAX_BYTES, UsageError(f"no pool has room for more than {most}"))
    return text if as_text else parse_json(text)


# --- what happened -------------------------------------------------------------------------------


@command(
    app,
    "history",
    "memctl pool history trading_ops\nmemctl pool history notes -o json",
    identity=True,
)
def history(
    context: CommandContext,
    pool: PoolId,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List the latest 20 writes to a pool, the newest first.

    memctl pool read --version shows what it held, and memctl pool restore brings it back.
    """
    with context.reading_existing(kb) as base:
        rows = base.pools.acting_as().history(pool)
    emit(context.page(rows, page), _HISTORY, output)


@command(
    app,
    "stats",
    "memctl pool stats trading_ops\nmemctl pool stats trading_ops -o json",
    identity=True,
)
def stats(
    context: CommandContext,
    pool: PoolId,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show how big a pool is, and who reads and writes it."""
    with context.reading_existing(kb) as base:
        found = base.pools.acting_as().statistics(pool)
    emit_one(found, output, lambda: _show_statistics(context, found))


_BY_AGENT = (
    Column("agent", "AGENT"),
    Column("reads", "READS", right=True),
    Column("writes", "WRITES", right=True),
    Column("last_read_at", "LAST READ", format_instant),
    Column("last_written_at", "LAST WRITE", format_instant),
)
_BY_KEY = (
    Column("key", "KEY"),
    Column("bytes", "SIZE", format_size, right=True),
    Column("reads", "READS", right=True),
    Column("written_by", "WRITTEN BY"),
    Column("written_at", "WRITTEN", format_instant),
    Column("expires_at", "EXPIRES", format_instant),
)


def _show_statistics(context: CommandContext, statistics: PoolStatistics) -> None:
    context.console.print(
        f"{statistics.pool_id}: {format_count(statistics.entries, 'value')},"
        f" {format_size(statistics.data_size_bytes)} of {format_size(statistics.max_size_bytes)},"
        f" version {statistics.version}, {format_count(statistics.read_count, 'read')},"
        f" {format_count(statistics.write_count, 'write')}",
        soft_wrap=True,
    )
    emit(statistics.by_key, _BY_KEY, "table")
    emit(statistics.by_agent, _BY_AGENT, "table")


@command(
    app,
    "watch",
    """
    memctl pool watch trading_ops --as agent2
    memctl pool watch trading_ops --bulletins | while read -r line; do echo "$line"; done
    memctl pool watch trading_ops --after 12 -n 1
    """,
    identity=True,
)
def watch(
    context: CommandContext,
    pool: PoolId,
    bulletins: bool = flag("--bulletins", "Only keys below agent_bulletin."),
    after: int | None = typer.Option(
        None, "--after", metavar="N", min=0, help="Begin with what came after this version."
    ),
    count: int = typer.Option(
        0, "-n", "--limit", min=0, help="End after this many lines; 0 for never."
    ),
    kb: KnowledgeBaseOption = None,
) -> None:
    """Print each write to a pool as a line of JSON, until stopped.

    A key below agent_bulletin is a bulletin: "is_bulletin" is true.  Of a value over 4 kB the line
    has only its SHA-256 digest.
    """
    from memctl.pools import event_row

    with context.reading_existing(kb) as base:
        pools = base.pools.acting_as()
        last = pools.last_event()
        pools.get(pool)
        earlier = [] if after is None else pools.events_since(pool, after)
        found = [event for event in earlier if event.id is None or event.id <= last]
        left = count or sys.maxsize
        while True:
            for event in found:
                last = max(last, event.id or 0)
                if event.is_bulletin or not bulletins:
                    print_line(event_row(base.name, event))
                    left -= 1
                if not left:
                    return
            sys.stdout.flush()
            if _reader_has_gone(_POLL_SECONDS):
                return
            base.store.ledger.require_in_place()
            found = list(pools.events(pool, after=last))


def _reader_has_gone(seconds: float) -> bool:
    """Wait a while, and return whether the reader of standard output is gone."""
    import select

    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(
        state & (select.POLLERR | select.POLLHUP) for _, state in output.poll(seconds * 1000)
    )


# --- contexts of a run ---------------------------------------------------------------------------


@command(
    app,
    "end",
    """
    memctl pool end --run 4711
    memctl pool end --run 4711 --archive --yes
    """,
    identity=True,
)
def end(
    context: CommandContext,
    run: RunOption = None,
    session: SessionOption = None,
    archive: bool = flag("--archive", "Keep what each pool holds as a document."),
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Delete the pools of a run, or of a conversation.

    Those made with --persist stay for a later run.
    """
    refuse_empty({"--run": run, "--session": session})
    with context.reading_existing(kb) as base:
        ending = base.pools.ending(run=run, session=session)
        names = ", ".join(pool.pool_id for pool in ending) or "no pool"
        verb = "archive and delete" if archive else "delete"
        if not context.confirm_or_preview(f"{verb} {names}", yes=yes, dry_run=dry_run):
            return
        ended = base.pools.end(run=run, session=session, archive=archive)
    context.say(f"deleted {', '.join(ended.deleted) or 'no pool'}")
    if ended.documents:
        context.say(f"archived as {', '.join(ended.documents)}")
    if ended.kept:
        context.say(f"kept {', '.join(ended.kept)}")
    emit_if_asked(ended, output)
