"""memctl memory and memctl insight: single memories, with the evidence they rest on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import (
    check_types,
    own_type_hint,
    parse_expiry,
    parse_instant,
    parse_metadata,
    refuse_empty,
)
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    DryRun,
    KnowledgeBaseOption,
    KnowledgeBasesOption,
    NamespaceOption,
    Output,
    SessionOption,
    TagsOption,
    Yes,
    command,
    flag,
    group,
)
from memctl.cli.completion import complete_memory
from memctl.cli.paging import MemoryPage, Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_one,
    format_instant,
    print_facts,
    print_paragraph,
    with_kb_column,
)
from memctl.cli.rendering.terminal_text import describe_location, format_moment, one_line, short_id
from memctl.errors import UsageError
from memctl.formatting import format_count
from memctl.language.inline_tags import without_wikilinks
from memctl.literals import LEARNING, InsightKind, LearningOutcome

if TYPE_CHECKING:
    from memctl.memories.memory_views import MemoryView
    from memctl.records import Filters, Memory

app = group("memory", "List, show, add, edit and delete single memories.")
insight_app = group("insight", "List and show what memories say together.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The id, or enough of its beginning: m_3fa2b1.",
        autocompletion=complete_memory,
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="fact, observation, reflection, decision, plan, tool_output, conversation_summary,"
        " preference, ..., or a word of your own.",
    ),
]
ImportanceOption = Annotated[
    float | None,
    typer.Option(
        "--importance",
        metavar="0-1",
        min=0,
        max=1,
        help="Importance, 0 to 1; by default as its type tells.",
    ),
]

_LIST = (
    Column("id", "ID", short_id),
    Column("type", "TYPE"),
    Column("created_at", "DATE", format_instant),
    Column("importance", "IMP.", right=True),
    Column("text", "TEXT", lambda text: one_line(without_wikilinks(text), 100)),
)
_ARCHIVED = Column("archived_at", "ARCHIVED", format_instant)
_INSIGHT_LIST = (
    Column("id", "ID", short_id),
    Column("metadata", "KIND", lambda metadata: metadata.get("kind", "")),
    Column("created_at", "DATE", format_instant),
    Column("importance", "IMP.", right=True),
    Column("source_ids", "FROM", lambda ids: str(len(ids)), right=True),
    Column("text", "TEXT", lambda text: _insight_text(text), wrap=True),
)
_HISTORY = (
    Column("version", "VERSION", right=True),
    Column("id", "ID", short_id),
    Column("valid_from", "FROM", format_instant),
    Column("valid_to", "TO", format_instant),
    Column("text", "TEXT", lambda text: one_line(without_wikilinks(text), 100)),
)


_ACCESSES = (
    Column("at", "AT", format_instant),
    Column("kind", "HOW"),
    Column("query_id", "QUESTION"),
    Column("user", "USER"),
    Column("agent", "AGENT"),
)
_LEARNINGS = (
    Column("id", "ID", short_id),
    Column("importance", "IMP.", lambda value: f"{value:.2f}", right=True),
    Column("confirmations", "CONFIRMED", right=True),
    Column("outcome", "OUTCOME"),
    Column("text", "TEXT", lambda text: one_line(text, 100)),
)

_QUOTE = 300
_IN_A_PIPE = 100
_VISIBLE = 0.005
"""Differences of importance below this are not shown."""


@command(
    app,
    "list",
    """
    memctl memory list --type decision --since 30d
    memctl memory list --level memory --where "importance > 0.8" -o json
    memctl memory list -n 0 -o arrow > memories.arrows
    """,
    identity=True,
)
def list_(
    context: CommandContext,
    filters: Filters,
    kb: KnowledgeBasesOption = None,
    page: MemoryPage = MemoryPage(50),
    output: Output = None,
) -> None:
    """List memories, the newest first.

    --sort importance goes by importance as it is now: that of distilled memories and learnings
    fades while they are not used.
    """
    with context.reading(kb) as bases:
        check_types(bases, filters)
        rows = context.collect_rows(
            bases,
            lambda base, n, skipped: base.memories.list(
                filters, limit=n, offset=skipped, sort=page.sort, descending=page.desc
            ),
            page,
            lambda base, rows: base.memories.order_values(rows, page.sort),
        )
        columns = (*_LIST[:-1], _ARCHIVED, _LIST[-1]) if filters.archived else _LIST
        emit(rows, with_kb_column(columns, len(bases)), output)


@command(
    app, "show", "memctl memory show m_3fa2b1\nmemctl memory show m_3fa2b1 -o json", identity=True
)
def show(
    context: CommandContext,
    id_: Id,
    accesses: bool = flag("--accesses", "Who read it and when, the latest first."),
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Show a memory with its evidence, versions and connections.

    This restores one that upkeep has archived.
    """
    with context.open_owner("memories", id_, kb) as base:
        if accesses:
            emit(base.memories.accesses(id_), _ACCESSES, output)
            return
        view = base.memories.get(id_)
    emit_one(view, output, lambda: _show_view(context, view))


def _show_view(context: CommandContext, view: MemoryView) -> None:
    out, m = context.console, view.memory
    print_paragraph(out, without_wikilinks(m.text), "bold")
    rows = {
        "id": m.id,
        "type": f"{m.type} ({m.level}, by {m.method or 'the reader'})",
        "date": format_moment(m.created_at),
        "known since": format_moment(m.valid_from)
        + (f", until {format_moment(m.valid_to)}" if m.valid_to else ""),
        "holds until": format_moment(m.expires_at) if m.expires_at else "",
        "shown": format_count(m.access_count, "time") if m.access_count else "",
        "importance": _importance(view),
        "confirmed": format_count(view.confirmations, "time") if view.confirmations else "",
        "archived": format_moment(m.archived_at) if m.archived_at else "",
        "relevance": f"{view.relevance:.2f}, importance × confidence, less with age",
        "namespace": m.namespace,
        "from": ", ".join(filter(None, (m.source_type, m.agent_id))),
        "edited by": m.edited_by,
        "session": m.session_id,
        "entities": ", ".join(m.entities),
        "topics": ", ".join(m.topics),
        "tags": ", ".join(m.tags),
    }
    print_facts(out, rows)
    if view.evidence:
        out.print("\nevidence", style="dim")
    for evidence in view.evidence:
        print_paragraph(out, describe_location(evidence), "cyan", 2)
        print_paragraph(out, f"“{one_line(without_wikilinks(evidence.text), _QUOTE)}”", indent=4)
    if len(view.history) > 1:
        _section(context, "versions", [_version(item) for item in view.history])
    _section(
        context,
        "insights",
        [f"{i.id}  {one_line(without_wikilinks(i.text), 200)}" for i in view.insights],
    )
    relations = [f"{r.relation_type}  {r.source_id} → {r.target_id}" for r in view.relations]
    _section(context, "connections", relations)


def _importance(view: MemoryView) -> str:
    base, now = view.memory.importance, view.current_importance
    changed = f", now {now:.2f}" if abs(now - base) >= _VISIBLE else ""
    return f"{base:.2f}{changed}, confidence {view.memory.confidence:.2f}"


def _section(context: CommandContext, title: str, lines: list[str]) -> None:
    if lines:
        context.console.print(f"\n{title}", style="dim")
        for line in lines:
            print_paragraph(context.console, line, indent=2)


def _version(m: Memory) -> str:
    text = one_line(without_wikilinks(m.text), 100)
    return f"{m.version}  {m.id}  {format_moment(m.valid_from)}  {text}"


@command(
    app,
    "add",
    """
    memctl memory add "the release is on 12 May" --type decision --tag launch
    memctl memory add "the lift is out of order" --ttl 7d --source chat --confidence 0.6
    echo "likes green tea" | memctl memory add - --type preference
    """,
    identity=True,
)
def add(
    context: CommandContext,
    text: str = typer.Argument(..., metavar="TEXT", help="What to remember; - is stdin."),
    type_: TypeOption = None,
    tag: TagsOption = None,
    importance: ImportanceOption = None,
    confidence: float = typer.Option(
        1.0, "--confidence", metavar="0-1", min=0, max=1, help="How sure it is, 0 to 1."
    ),
    source: str | None = typer.Option(
        None,
        "--source",
        metavar="NAME",
        help="Where it comes from: chat, api, ...; by default stated.",
    ),
    metadata: list[str] | None = typer.Option(
        None,
        "--metadata",
        metavar="KEY=VALUE",
        help="What else is known of it, also a JSON object; repeatable.",
    ),
    namespace: NamespaceOption = None,
    session_id: SessionOption = None,
    date: str | None = typer.Option(
        None, "--date", metavar="DATE", help="When it happened; by default now."
    ),
    ttl: str | None = typer.Option(
        None, "--ttl", metavar="TIME", help="How long it holds: 24h, 7d, 2w, 3m, 1y."
    ),
    expires: str | None = typer.Option(
        None, "--expires", metavar="DATE", help="Until when it holds."
    ),
    evidence: list[str] | None = typer.Option(
        None, "--evidence", metavar="ID", help="A memory that it rests on; repeatable."
    ),
    outcome: LearningOutcome | None = typer.Option(
        None, "--outcome", help="Of a learning: whether what was done worked."
    ),
    learnt_in: str | None = typer.Option(
        None,
        "--context",
        metavar="TEXT",
        help="For a learning: the context in which it was learnt.",
    ),
    share: bool = flag("--share", "Of a learning: have upkeep copy it where all users read."),
    private: bool = flag("--private", "Keep it for the agent alone that MEMCTL_AGENT names."),
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Remember one statement of your own.

    Names, topics and #tags are read from its text, and so is its type where none is given.  With
    --type learning it is a lesson: it gains by being confirmed, also by being added again, and
    fades while it is not used.
    """
    from memctl.memories.memory_editing import learning_metadata

    refuse_empty({"--namespace": namespace, "--session": session_id, "--source": source})
    of_learning = learning_metadata(outcome, learnt_in, share=share)
    if of_learning and type_ != LEARNING:
        raise UsageError(
            "--outcome, --context and --share are for learnings", "add --type learning"
        )
    now = context.home.now()
    created_at = None if date is None else parse_instant(date, now)
    expires_at = parse_expiry(ttl, expires, now)
    with context.writing(kb) as base:
        memory = base.memories.add(
            _text(text),
            type_=type_,
            namespace=namespace,
            tags=_tags(tag) or (),
            importance=importance,
            confidence=confidence,
            source=source,
            session=session_id or context.config.session,
            created_at=created_at,
            expires_at=expires_at,
            source_ids=evidence or (),
            metadata=parse_metadata(metadata or (), "--metadata") | of_learning,
            private=private,
        )
    _note_own_type(context, type_)
    emit_one(memory, output, lambda: context.console.print(memory.id))


def _note_own_type(context: CommandContext, type_: str | None) -> None:
    if type_ is not None and (hint := own_type_hint(type_)):
        context.say(f"note: {one_line(type_, 60)!r} is a type of your own")
        context.suggest(hint)


def _text(argument: str) -> str:
    text = sys.stdin.read() if argument == "-" else argument
    return text.strip()


def _tags(words: list[str] | None) -> tuple[str, ...] | None:
    if words is None:
        return None
    tags = tuple(word.removeprefix("#") for word in words)
    refuse_empty({"--tag": tags})
    return tags


@command(
    app,
    "edit",
    """
    memctl memory edit m_3fa2b1 --text "the release is on 19 May"
    memctl memory edit m_3fa2b1 --importance 0.9 --tag launch
    """,
    identity=True,
)
def edit(
    context: CommandContext,
    id_: Id,
    text: str | None = typer.Option(
        None, "--text", metavar="TEXT", help="The new text; - is stdin."
    ),
    type_: TypeOption = None,
    tag: TagsOption = None,
    importance: ImportanceOption = None,
    kb: KnowledgeBasesOption = None,
    output: Output = None,
) -> None:
    """Write a new version of a memory.

    The old one stays in its history. Evidence is verbatim and cannot be edited.
    """
    if text is None and type_ is None and tag is None and importance is None:
        raise UsageError("nothing to change", "give --text, --type, --tag or --importance")
    with context.open_owner("memories", id_, kb) as base:
        memory = base.memories.edit(
            id_,
            None if text is None else _text(text),
            type_=type_,
            tags=_tags(tag),
            importance=importance,
        )
    _note_own_type(context, type_)
    emit_one(memory, output, lambda: context.console.print(memory.id))


@command(
    app,
    "delete",
    "memctl memory delete m_3fa2b1\nmemctl memory delete m_3fa2b1 --yes",
    identity=True,
)
def delete(
    context: CommandContext,
    id_: Id,
    yes: Yes = False,
    dry_run: DryRun = False,
    kb: KnowledgeBasesOption = None,
) -> None:
    """Delete a memory with all its versions.

    Insights that rest on it go too.  `memctl forget` erases it from the disk as well.
    """
    with context.open_owner("memories", id_, kb) as base:
        view = base.memories.get(id_)
        drawn = format_count(len(view.insights), "insight")
        what = f"{view.memory.id} with {format_count(len(view.history), 'version')} and {drawn}"
        question = f"delete {what}: {one_line(view.memory.text, 80)!r}?"
        if not context.confirm_or_preview(f"delete {what}", question, yes=yes, dry_run=dry_run):
            return
        base.memories.delete(view.memory.id)
    context.say(f"deleted {what}")


@command(app, "history", "memctl memory history m_3fa2b1", identity=True)
def history(
    context: CommandContext, id_: Id, kb: KnowledgeBasesOption = None, output: Output = None
) -> None:
    """List every version of a memory, the oldest first."""
    with context.open_owner("memories", id_, kb) as base:
        view = base.memories.get(id_)
    emit(view.history, _HISTORY, output)


@command(
    app,
    "restore",
    "memctl memory restore m_3fa2b1",
    identity=True,
)
def restore(
    context: CommandContext, id_: Id, kb: KnowledgeBasesOption = None, output: Output = None
) -> None:
    """Bring back a memory that upkeep has archived."""
    with context.open_owner("memories", id_, kb) as base:
        memory = base.memories.restore(id_)
    emit_one(memory, output, lambda: context.console.print(memory.id))


@command(app, "confirm", "memctl memory confirm m_3fa2b1 --agent scout", identity=True)
def confirm(context: CommandContext, id_: Id, kb: KnowledgeBasesOption = None) -> None:
    """Say that a learning proved right again.

    That raises its importance; each user and agent counts once.
    """
    with context.open_owner("memories", id_, kb) as base:
        times = base.memories.confirm(id_)
    context.say(f"confirmed {format_count(times, 'time')}")


@command(
    app,
    "learnings",
    """
    memctl memory learnings
    memctl memory learnings "retries of uploads" -o json
    """,
    identity=True,
)
def learnings(
    context: CommandContext,
    query: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]", help="What they are about.")
    ] = None,
    kb: KnowledgeBasesOption = None,
    page: Page = Page(10),
    output: Output = None,
) -> None:
    """List lessons from experience, the most important first."""
    from memctl.upkeep.learnings import query_learnings

    words, now = " ".join(query or ()), context.home.now()
    with context.reading(kb) as bases:
        rows = query_learnings(bases, now, query=words, limit=page.needed or 10_000)
        emit(page.of(rows), with_kb_column(_LEARNINGS, len(bases)), output)


# --- insights ------------------------------------------------------------------------------------


def _insight_text(text: str) -> str:
    """Return an insight whole for a terminal, where it is wrapped; cut for a line in a pipe."""
    return one_line(text, 0 if sys.stdout.isatty() else _IN_A_PIPE)


@command(
    insight_app,
    "list",
    """
    memctl insight list
    memctl insight list --since 7d -o json
    memctl insight list --kind contradiction
    """,
    without=("types", "levels", "doc_types"),  # which all insights share
    identity=True,
)
def list_insights(
    context: CommandContext,
    filters: Filters,
    kind: InsightKind | None = typer.Option(
        None, "--kind", help="Only of this kind; its kind is in the metadata of an insight."
    ),
    kb: KnowledgeBasesOption = None,
    page: MemoryPage = MemoryPage(50),
    output: Output = None,
) -> None:
    """List insights, the newest first."""
    with context.reading(kb) as bases:
        rows = context.collect_rows(
            bases,
            lambda base, n, skipped: base.insights.list(
                filters,
                limit=n,
                offset=skipped,
                sort=page.sort,
                descending=page.desc,
                kind=kind,
            ),
            page,
            lambda base, rows: base.memories.order_values(rows, page.sort),
        )
        emit(rows, with_kb_column(_INSIGHT_LIST, len(bases)), output)
    if not rows.num_rows:
        context.hint("memctl consolidate draws them from what is known")


@command(
    insight_app,
    "show",
    "memctl insight show i_77c0de\nmemctl insight show i_77c0de -o json",
    identity=True,
)
def show_insight(
    context: CommandContext, id_: Id, kb: KnowledgeBasesOption = None, output: Output = None
) -> None:
    """Show an insight with the memories it was drawn from."""
    show(context, id_, accesses=False, kb=kb, output=output)
