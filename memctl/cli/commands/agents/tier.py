"""memctl tier: values by key, for minutes, for hours, or for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memctl.cli.arguments import parse_seconds, read_question, read_stdin, refuse_empty
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    Output,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.paging import Limit, Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    format_instant,
    print_facts,
    print_json,
    to_plain,
)
from memctl.cli.rendering.terminal_text import format_moment, one_line, short_id
from memctl.errors import NothingFound, UsageError
from memctl.formatting import format_count, format_size
from memctl.literals import ShortTermType, Tier, WorkingPlace

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.tiers import PromotionReport, Router, TierValue

app = group("tier", "Keep values by key for minutes, hours, or for good.")

SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="The session; by default MEMCTL_SESSION."),
]
TierOption = Annotated[
    str | None,
    typer.Option("--tier", metavar="TIER", help="working, short (short_term), long or shared."),
]
PlaceOption = Annotated[
    WorkingPlace | None,
    typer.Option("--place", help="A place of working memory; some have no KEY."),
]
TtlOption = Annotated[
    str | None,
    typer.Option(
        "--ttl", metavar="TIME", help="How long it lasts: 300, 45min, 24h; 0 in working memory"
        " for as long as the session.",
    ),
]  # fmt: skip
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key; see memctl tier list.")]
_TIERS: dict[str, Tier] = {
    "working": "working",
    "short": "short_term",
    "short_term": "short_term",
    "long": "long_term",
    "long_term": "long_term",
    "shared": "shared",
}
_LIST = (
    Column("tier", "TIER"),
    Column("place", "PLACE"),
    Column("key", "KEY"),
    Column("value", "VALUE", lambda value: one_line(_as_text(value), 60)),
    Column("access_count", "READ", right=True),
    Column("expires_at", "UNTIL", format_instant),
)
_FOUND = (
    Column("tier", "TIER"),
    Column("score", "SCORE", lambda score: f"{score:.2f}", right=True),
    Column("key", "KEY"),
    Column("text", "TEXT", lambda text: one_line(text, 100)),
)
_STATISTICS = (
    Column("tier", "TIER"),
    Column("count", "COUNT", right=True),
    Column("bytes", "SIZE", format_size, right=True),
    Column("oldest", "OLDEST", format_instant),
    Column("expiring_within_hour", "OVER IN 1 H", right=True),
)


@command(
    app,
    "set",
    """
    memctl tier set next_step "call the plumber" --session s1 --ttl 2h
    memctl tier set plan '{"steps": ["a", "b"]}' --tier working --agent planner
    memctl tier set --place scratch_pad "ask for the price first" --append
    memctl tier set report - --tier long < report.txt
    """,
    identity=True,
)
def set_(
    context: CommandContext,
    arguments: list[str] = typer.Argument(
        ..., metavar="[KEY] VALUE", help="The key, and JSON or text; - is standard input."
    ),
    tier: TierOption = None,
    place: PlaceOption = None,
    append: bool = flag("--append", "Add to the conversation or the scratch pad."),
    text: bool = flag("--text", "Take the value as text, even if it is JSON."),
    ttl: TtlOption = None,
    type_: Annotated[
        ShortTermType | None,
        typer.Option("--type", help="What a short-term entry is; observation by default."),
    ] = None,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Keep a value under a key.

    Where no tier is named, it is a short-term entry where a session is, else a memory.
    """
    from memctl.tiers.tier_values import parse_value

    chosen = _tier(tier)
    if append and place is None:
        raise UsageError("--append goes with --place", "--place conversation or scratch_pad")
    if place is not None and chosen not in (None, "working"):
        raise UsageError("--place is of the tier working", "leave --tier out")
    if type_ is not None and (place is not None or chosen in ("working", "long_term", "shared")):
        raise UsageError("--type is of short-term entries", "leave it out, or --tier short")
    key, words = _key_and_value(arguments, place)
    value = parse_value(_stdin() if words == "-" else words, as_text=text or place == "scratch_pad")
    seconds = None if ttl is None else _seconds(ttl)
    with _routing(context, session, context.writing, kb) as router:
        if place is None:
            made = router.write(key, value, chosen, ttl=seconds, type_=type_)
        else:
            stored = (
                router.working.append(place, value, seconds)
                if append
                else router.working.put(place, key, value, seconds)
            )
            made = _shown_value(stored)
    _report_value(context, made, output)


@command(
    app,
    "get",
    """
    memctl tier get next_step --session s1
    memctl tier get --place scratch_pad --agent planner
    memctl tier get plan --agent worker --from planner
    """,
    identity=True,
)
def get(
    context: CommandContext,
    key: str | None = typer.Argument(None, metavar="[KEY]", help="See memctl tier list."),
    tier: TierOption = None,
    place: PlaceOption = None,
    source: str | None = typer.Option(
        None, "--from", metavar="AGENT", help="What this agent shares with the one that asks."
    ),
    keep: bool = flag("--keep", "Also put what another tier has into working memory."),
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Print the value of a key from the first tier that has it.

    Working memory is asked first, then short-term entries, the default pool and memories; the exit
    code is 4 if none has it.
    """
    chosen = _tier(tier)
    if source is not None and (chosen or place or keep):
        raise UsageError("--from goes with a key alone", "leave out --tier, --place and --keep")
    name, _ = _key_and_value([*([] if key is None else [key]), ""], place)
    with _routing(context, session, context.reading_existing, kb) as router:
        if source is not None:
            found: TierValue | None = _share_value(router, name, source)
        elif place is not None:
            stored = router.working.find(place, name)
            found = None if stored is None else _shown_value(stored)
        else:
            found = router.read(name, tier=chosen, keep=keep)
    if found is None:
        raise NothingFound(f"no tier has {name!r}", "memctl tier list shows what there is")
    if output is None and not sys.stdout.isatty():
        print_json(found.value)
        return
    emit_one(found, output, lambda: _show(context, found))


@command(
    app,
    "list",
    "memctl tier list --session s1\nmemctl tier list --tier working --agent planner -o json",
    identity=True,
)
def list_(
    context: CommandContext,
    tier: TierOption = None,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
    page: Page = Page(),
    output: Output = None,
) -> None:
    """List what working memory and short-term entries hold now.

    With --tier shared, the keys of the default pool; memories are listed by memctl memory list.
    """
    chosen = _tier(tier)
    if chosen == "long_term":
        raise UsageError("memories are listed by memctl memory list", "memctl memory list")
    rows: list[dict[str, Any]] = []
    with _routing(context, session, context.reading_existing, kb) as router:
        if chosen in (None, "working"):
            rows += [
                {**to_plain(_shown_value(each)), "place": each.place}
                for each in router.working.list()
            ]
        if chosen in (None, "short_term"):
            from memctl.tiers.router import of_entry

            rows += [{**to_plain(of_entry(each)), "place": ""} for each in router.short_term.list()]
        if chosen == "shared":
            rows += [{**to_plain(each), "place": ""} for each in router.shared_values()]
    emit(context.page(rows, page), _LIST, output)


@command(
    app,
    "find",
    'memctl tier find "who fixes the boiler" --session s1\nmemctl tier find "budget" -n 5 -o json',
    identity=True,
)
def find(
    context: CommandContext,
    query: list[str] = typer.Argument(..., metavar="QUERY", help="Words; - is standard input."),
    limit: Limit = 10,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Search short-term entries, pools and memories by meaning."""
    words = read_question(query)
    with _routing(context, session, context.reading_existing, kb) as router:
        hits = router.semantic_search(words, limit or 10_000)
    emit(hits, _FOUND, output)


@command(app, "remove", "memctl tier remove next_step --session s1", identity=True)
def remove(
    context: CommandContext,
    key: Key,
    tier: TierOption = None,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Remove a key from working memory and short-term entries."""
    with _routing(context, session, context.writing_existing, kb) as router:
        chosen = _tier(tier)
        if not router.remove(key, chosen):
            where = chosen or "working memory and short-term entries"
            hint = "memctl tier list shows what there is; memctl memory delete ID removes a memory"
            raise NothingFound(f"there is no {key!r} in {where}", hint)
    context.say(f"removed {key}")


@command(
    app,
    "clear",
    "memctl tier clear --session s1 --yes\nmemctl tier clear --tier working --dry-run",
    identity=True,
)
def clear(
    context: CommandContext,
    tier: TierOption = None,
    session: SessionOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Remove all that an agent keeps in a session.

    Working memory and short-term entries go; memories and pools stay.
    """
    chosen = _tier(tier)
    if chosen in ("long_term", "shared"):
        raise UsageError(f"{chosen} is not cleared", "memctl forget and memctl pool delete do it")
    with _routing(context, session, context.writing_existing, kb) as router:
        parts = [
            part
            for name, part in (("working", router.working), ("short_term", router.short_term))
            if chosen in (None, name)
        ]
        count = sum(len(part.list()) for part in parts)
        owner = router.working.owner
        what = f"remove {format_count(count, 'value')} of {owner.agent} in {owner.session}"
        if not context.confirm_or_preview(what, yes=yes, dry_run=dry_run):
            return
        gone = sum(part.clear() for part in parts)
    context.say(f"removed {format_count(gone, 'value')}")


@command(app, "refresh", "memctl tier refresh next_step --session s1 --ttl 2h", identity=True)
def refresh(
    context: CommandContext,
    key: Key,
    ttl: TtlOption = None,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Restart the time to live of a short-term entry."""
    seconds = None if ttl is None else _seconds(ttl)
    with _routing(context, session, context.writing_existing, kb) as router:
        from memctl.tiers.router import of_entry

        made = of_entry(router.short_term.refresh_ttl(key, seconds))
    _report_value(context, made, output)


@command(
    app,
    "share",
    """
    memctl tier share plan --agent planner --to worker
    memctl tier share plan '{"steps": 3}' --agent planner --to worker --ttl 1h
    """,
    identity=True,
)
def share(
    context: CommandContext,
    key: Key,
    value: str | None = typer.Argument(
        None, metavar="[VALUE]", help="JSON or text; by default what working memory has."
    ),
    target: str = typer.Option(
        ..., "--to", metavar="AGENT", help="The one agent that may read it."
    ),
    text: bool = flag("--text", "Take the value as text, even if it is JSON."),
    ttl: TtlOption = None,
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Let one other agent read a value.

    That agent reads it with memctl tier get KEY --from AGENT; no other agent can.
    """
    from memctl.tiers.tier_values import parse_value

    refuse_empty({"--to": target})
    seconds = None if ttl is None else _seconds(ttl)
    with _routing(context, session, context.writing, kb) as router:
        working = router.working
        if value is None:
            stored = working.find("value", key)
            if stored is None:
                raise NothingFound(
                    f"working memory has no {key!r}", "give the value: memctl tier share KEY VALUE"
                )
            shared = stored.value
        else:
            shared = parse_value(_stdin() if value == "-" else value, as_text=text)
        made = working.share_with_agent(target, key, shared, seconds)
    context.say(f"{made.target} reads it: memctl tier get {key} --agent {made.target}"
                f" --from {made.agent}")  # fmt: skip


@command(app, "save", "memctl tier save before-lunch --session s1 --agent planner", identity=True)
def save(
    context: CommandContext,
    name: str = typer.Argument(..., metavar="NAME", help="What the copy is called."),
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Keep a copy of a session's working memory under a name."""
    with _routing(context, session, context.writing_existing, kb) as router:
        count = router.working.save(name)
    context.say(f"saved {format_count(count, 'value')} as {name}")


@command(app, "load", "memctl tier load before-lunch --session s2 --agent planner", identity=True)
def load(
    context: CommandContext,
    name: str = typer.Argument(..., metavar="NAME", help="What the copy is called."),
    session: SessionOption = None,
    kb: KnowledgeBaseOption = None,
) -> None:
    """Put a saved copy in place of a session's working memory.

    Times to live start again.
    """
    with _routing(context, session, context.writing_existing, kb) as router:
        count = router.working.load(name)
    context.say(f"loaded {format_count(count, 'value')}")


@command(app, "stats", "memctl tier stats\nmemctl tier stats -k notes -o json", identity=True)
def stats(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Show how much each tier holds, and how much is soon over."""
    with _routing(context, None, context.reading_existing, kb) as router:
        emit(router.stats(), _STATISTICS, output)


@command(
    app,
    "promote",
    """
    memctl tier promote --dry-run
    memctl tier promote --session s1
    """,
    identity=True,
)
def promote(
    context: CommandContext,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="ID",
            help="Only of this one; what was read often enough is promoted before it is over.",
        ),
    ] = None,
    dry_run: DryRun = False,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Make memories of short-term entries that were read often.

    An entry that is over becomes a memory if it was read at least tiers.promote_reads times, or a
    named user wrote it; else it goes.  memctl watch does it daily, and memctl job undo takes the
    memories back.
    """
    refuse_empty({"--session": session})
    with context.reading_existing(kb) as base:
        report = base.tiers.promote(session, at_once=session is not None, dry_run=dry_run)
    emit_one(report, output, lambda: _show_promotion(context, report))


def _show_promotion(context: CommandContext, report: PromotionReport) -> None:
    out = context.console
    did = "would promote" if report.dry_run else "promoted"
    entries = format_count(len(report.promoted), "entry", "entries")
    out.print(f"{report.kb}: {did} {entries}, {report.removed:,} over and read too seldom")
    if report.withheld:
        out.print(f"  {report.withheld:,} of private sessions are no memories of an open base")
    for each in report.promoted:
        id_ = short_id(each.memory_id) if each.memory_id else ""
        line = f"  {each.key}  {id_}  read {each.reads:,} times: {one_line(each.text, 80)}"
        out.print(line, soft_wrap=True)


# --- inside --------------------------------------------------------------------------------------


@contextmanager
def _routing(
    context: CommandContext,
    session: str | None,
    open_: Callable[[Sequence[str] | None], KnowledgeBase],
    kb: Sequence[str] | None,
) -> Iterator[Router]:
    """Open a knowledge base, and give its tiers as the agent sees them in a session."""
    from memctl.identity import Identity

    refuse_empty({"--session": session})
    identity = Identity.of(context.config, session=session)  # before anything is opened
    with open_(kb) as base:
        yield base.router(identity.agent, identity.session, identity.user)


def _tier(name: str | None) -> Tier | None:
    if name is None:
        return None
    if name not in _TIERS:
        raise UsageError(f"there is no tier {name!r}", "use working, short, long or shared")
    return _TIERS[name]


def _key_and_value(arguments: Sequence[str], place: WorkingPlace | None) -> tuple[str, str]:
    """Return the key and the value among the words; a place with a single value has no key.

    Raises:
        UsageError: There are too many or too few words.
    """
    from memctl.tiers.working_memory import SINGLE

    single = SINGLE.get(place) if place else None
    if len(arguments) != (1 if single else 2):
        raise UsageError(
            f"{place} has no key" if single else "a key and a value are needed",
            "see memctl tier set --help",
        )
    return (single, arguments[0]) if single else (arguments[0], arguments[1])


def _seconds(ttl: str) -> int:
    return 0 if ttl.strip() == "0" else parse_seconds(ttl)


def _stdin() -> str:
    from memctl.tiers.tier_values import LARGEST_VALUE

    too_long = UsageError(
        f"a tier keeps at most {format_size(LARGEST_VALUE)} in one value",
        "keep it in a file, have memctl ingest take that in, and store its id",
    )
    return read_stdin(2 * LARGEST_VALUE, too_long)


def _shown_value(value: Any) -> TierValue:
    from memctl.tiers.router import from_working

    return from_working(value)


def _share_value(router: Router, key: str, source: str) -> TierValue:
    from memctl.tiers import TierValue

    return TierValue("working", key, router.working.retrieve_shared(source, key), agent=source)


def _report_value(context: CommandContext, value: TierValue, output: Output) -> None:
    until = f" until {format_moment(value.expires_at)}" if value.expires_at else ""
    where = f", as {value.memory_id}" if value.memory_id else ""
    context.say(f"{value.key} is in {value.tier}{until}{where}")
    if output is not None:
        emit_one(value, output, lambda: print_json(to_plain(value)))


def _as_text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _show(context: CommandContext, value: TierValue) -> None:
    context.console.print(_as_text(value.value), soft_wrap=True)
    print_facts(
        context.console,
        {
            "tier": value.tier,
            "until": format_moment(value.expires_at) if value.expires_at else "",
            "read": format_count(value.access_count, "time") if value.access_count else "",
            "memory": value.memory_id or "",
        },
    )
