"""memctl graph: names, how they are connected, and which mean the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memctl.cli.arguments import parse_filters, parse_path, replacing
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import (
    KnowledgeBaseOption,
    NamespacesOption,
    Output,
    TargetOption,
    command,
    group,
)
from memctl.cli.paging import Limit, Page
from memctl.cli.rendering.output_formats import (
    Column,
    emit,
    emit_each,
    emit_one,
    print_facts,
    print_paragraph,
)
from memctl.cli.rendering.terminal_text import describe_location, one_line, short_id
from memctl.errors import NotFoundError
from memctl.formatting import format_count
from memctl.literals import Direction, GraphFormat

if TYPE_CHECKING:
    from rich.console import Console

    from memctl.graph.graph_views import CommunityView, GraphView, Overview, Step
    from memctl.graph.name_index import Node

app = group("graph", "Who and what is named, and how the names are connected.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name, an alias, or an id.")]
Other = Annotated[str, typer.Argument(metavar="OTHER", help="Another name, alias or id.")]

RelationOption = Annotated[
    str | None,
    typer.Option("--relation", metavar="TYPE", help="Only relations of this type: links_to, ..."),
]

_NEIGHBOURS = (
    Column("name", "NAME"),
    Column("type", "TYPE"),
    Column("hops", "HOPS", right=True),
    Column("weight", "WEIGHT", right=True),
    Column("relation", "HOW"),
    Column("via", "VIA"),
)
_FOUND = (
    Column("name", "NAME"),
    Column("type", "TYPE"),
    Column("mentions", "MENTIONS", right=True),
    Column(
        "relations",
        "NEAR",
        lambda near: one_line(", ".join(each["name"] for each in near[:5]), 80),
        wrap=True,
    ),
)
_COMMUNITIES = (
    Column("number", "#", right=True),
    Column("size", "SIZE", right=True),
    Column("members", "MEMBERS", lambda names: one_line(", ".join(names[:6]), 60), wrap=True),
    Column("topics", "TOPICS", lambda topics: one_line(", ".join(topics), 40)),
    Column("summary", "SUMMARY", lambda summary: one_line(summary, 60), wrap=True),
)
_DOT_ENDINGS = frozenset((".dot", ".gv"))
_NOTHING = "memctl ingest FILE takes in what names something"


@command(app, "show", "memctl graph show\nmemctl graph show -k work -o json", identity=True)
def show(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
    limit: Limit = 10,
    output: Output = None,
) -> None:
    """Show how many names there are, and which matter most."""
    with context.reading_one(kb) as base:
        found = base.graph.view(parse_filters(namespaces=namespace)).overview(limit or None)
    emit_one(found, output, lambda: _show_overview(context, found))
    if not found.nodes:
        context.suggest(_NOTHING)


def _show_overview(context: CommandContext, overview: Overview) -> None:
    out = context.console
    print_facts(
        out,
        {
            "names": f"{overview.nodes:,}",
            "connections": f"{overview.edges:,}",
            "communities": f"{overview.communities:,}",
            "passages": f"{overview.passages:,} name a person or a thing",
            "types": ", ".join(f"{number:,} {type_}" for type_, number in overview.types.items()),
        },
        indent=0,
    )
    if overview.best_connected:
        out.print("\nbest connected", style="dim")
        for node in overview.best_connected:
            also = f", also {', '.join(node.aliases[:4])}" if node.aliases else ""
            near = format_count(node.neighbours, "neighbour")
            print_paragraph(out, f"{one_line(node.name, 60)} ({node.type}, {near}{also})", indent=2)
    if overview.largest_communities:
        out.print("\nlargest communities", style="dim")
        for community in overview.largest_communities:
            _show_community(context, community)
    _show_decisions(context, "said to be the same", overview.merged)
    _show_decisions(context, "said not to be the same", overview.kept_apart)


def _show_community(context: CommandContext, community: CommunityView) -> None:
    names = ", ".join(one_line(name, 40) for name in community.members[:6])
    print_paragraph(context.console, f"{community.number}. {names} ({community.size})", "cyan", 2)
    if community.summary:
        print_paragraph(context.console, one_line(community.summary, 200), "", 5)


def _show_decisions(
    context: CommandContext, title: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    if pairs:
        context.console.print(f"\n{title}", style="dim")
        for one, other in pairs:
            print_paragraph(context.console, f"{one}, {other}", indent=2)


@command(
    app,
    "neighbors",
    """
    memctl graph neighbors "Ann Lee"
    memctl graph neighbors Aurora --hops 2 -o json
    memctl graph neighbors Aurora --relation links_to --direction in
    """,
    identity=True,
)
def neighbors(
    context: CommandContext,
    name: Name,
    hops: int = typer.Option(1, "--hops", min=1, max=6, help="At most this many steps."),
    relation: RelationOption = None,
    direction: Direction = typer.Option(
        "both", "--direction", help="Only relations that lead away from the name, or to it."
    ),
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(50),
    output: Output = None,
) -> None:
    """List what is near a name, nearest and strongest first."""
    with context.reading_one(kb) as base:
        view = base.graph.view(parse_filters(namespaces=namespace))
        _note_others(context, view, name)
        rows = view.neighbours(name, hops, page.needed, relation=relation, direction=direction)
    emit(context.page(rows, page), _NEIGHBOURS, output)
    if not rows:
        context.say(f"note: nothing stands together with {name!r}")


def _note_others(context: CommandContext, view: GraphView, name: str) -> None:
    """Say which name is shown if several match, or if what is given is a part of it."""
    try:
        found = view.find(name)
    except NotFoundError:
        found = view.meant_by(name)
        context.say(f"note: {name!r} is taken for {_name_and_id(found[0])}")
    if len(found) > 1:
        others = ", ".join(_name_and_id(node) for node in found[1:4])
        context.say(f"note: {name!r} is taken for {_name_and_id(found[0])}; there is also {others}")


def _name_and_id(node: Node) -> str:
    return f"{node.name} ({short_id(node.id)})"


@command(
    app,
    "search",
    """
    memctl graph search "who works with Ann Lee?"
    memctl graph search lease --relation links_to -o json
    memctl graph search lee --type person
    """,
    identity=True,
)
def search(
    context: CommandContext,
    words: list[str] = typer.Argument(..., metavar="WORDS", help="A question, or some words."),
    type_: str | None = typer.Option(
        None, "--type", metavar="TYPE", help="Only names of this type: person, page, ..."
    ),
    relation: RelationOption = None,
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(10),
    output: Output = None,
) -> None:
    """Find names, and what they are connected with.

    Names that stand in the words come first, then names that share a word, or another form of one,
    with them, then names whose relations say such a word, as married is said in "Ann Lee married to
    Bob Carter", and finally a few with a similar meaning.  Aliases in a document's front matter
    count as its names.
    """
    with context.reading_one(kb) as base:
        view = base.graph.view(parse_filters(namespaces=namespace))
        rows = view.search(
            " ".join(words),
            page.needed,
            relation=relation,
            type_=type_,
            connections=page.limit or None,
        )
    emit(page.of(rows), _FOUND, output)
    if not rows:
        context.say(f"note: nothing in the graph has to do with {one_line(' '.join(words), 60)!r}")
    types = {node.type for node in view.graph.nodes}
    if type_ is not None and types and type_ not in types:
        context.suggest(f"no name is of the type {type_!r}; there are {', '.join(sorted(types))}")


@command(
    app,
    "path",
    'memctl graph path "Ann Lee" Berlin\nmemctl graph path Ann Aurora -o json',
    identity=True,
)
def path(
    context: CommandContext,
    name: Name,
    other: Other,
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
    output: Output = None,
) -> None:
    """Show how two names are connected, step by step.

    Each step names the memory that shows it.
    """
    with context.reading_one(kb) as base:
        view = base.graph.view(parse_filters(namespaces=namespace))
        for each in (name, other):
            _note_others(context, view, each)
        steps = view.path(name, other)
    emit_each(steps, output, lambda step: show_step(context.console, step))
    if not steps:
        context.say(f"note: {name!r} and {other!r} are one")


def show_step(console: Console, step: Step, indent: int = 0) -> None:
    """Print a step from one name to another, with the sentence that shows it."""
    way = f"{step.name} → {step.other} ({step.relation})"
    print_paragraph(console, f"{step.step}. {one_line(way)}", "bold", indent)
    if step.created_at is not None:
        print_paragraph(console, f"“{one_line(step.text, 300)}”", indent=indent + 3)
        where = f"{describe_location(step)}  {step.memory_id}"
        print_paragraph(console, where, "cyan", indent + 3)


@command(
    app,
    "communities",
    "memctl graph communities\nmemctl graph communities -n 5 -o json",
    identity=True,
)
def communities(
    context: CommandContext,
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
    page: Page = Page(20),
    output: Output = None,
) -> None:
    """List groups of names that belong together, and why."""
    with context.reading_one(kb) as base:
        rows = base.graph.view(parse_filters(namespaces=namespace)).communities(page.needed)
    emit(context.page(rows, page), _COMMUNITIES, output)
    if not rows:
        context.suggest(_NOTHING)


@command(
    app,
    "export",
    """
    memctl graph export --format graphml --to graph.graphml
    memctl graph export --format dot | dot -Tsvg > graph.svg
    """,
    identity=True,
)
def export(
    context: CommandContext,
    format_: GraphFormat | None = typer.Option(
        None,
        "--format",
        "-f",
        help="graphml (Gephi, yEd) or dot (Graphviz); by default as FILE ends, else graphml.",
    ),
    to: TargetOption = None,
    kb: KnowledgeBaseOption = None,
    namespace: NamespacesOption = None,
) -> None:
    """Write the graph as GraphML or DOT.

    Beside the names it has the memories that consolidation connected, with those connections.
    """
    from memctl.files import atomic_write
    from memctl.graph.graph_views import write_graph

    is_dot = to is not None and parse_path(to).suffix in _DOT_ENDINGS
    chosen: GraphFormat = format_ or ("dot" if is_dot else "graphml")
    with context.reading_one(kb) as base:
        view = base.graph.view(parse_filters(namespaces=namespace))
        graph, connections = view.graph, view.connections()
        if to is None or to == "-":
            write_graph(graph, chosen, sys.stdout.buffer, connections)
            sys.stdout.buffer.flush()
            return
        path = parse_path(to)
        replaced = replacing(path)
        with atomic_write(path) as sink:
            write_graph(graph, chosen, sink, connections)
    context.say(f"wrote {format_count(len(graph.nodes), 'name')} to {to}{replaced}")


@command(app, "merge", 'memctl graph merge "Bob" "Robert Lee"', identity=True)
def merge(
    context: CommandContext,
    name: Name,
    other: Other,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Say that two names mean the same; unmerge takes it back."""
    with context.writing_existing(kb) as base:
        node = base.graph.merge_names(name, other)
    emit_one(node, output, lambda: _show_node(context, node))


@command(app, "unmerge", 'memctl graph unmerge "Ann" "Ann Lee"', identity=True)
def unmerge(
    context: CommandContext,
    name: Name,
    other: Other,
    kb: KnowledgeBaseOption = None,
    output: Output = None,
) -> None:
    """Say that two names do not mean the same.

    It takes back what was merged by hand and what memctl decided itself.
    """
    with context.writing_existing(kb) as base:
        nodes = base.graph.unmerge_names(name, other)
    emit_each(nodes, output, lambda node: _show_node(context, node))


def _show_node(context: CommandContext, node: Node) -> None:
    also = f", also {', '.join(node.aliases)}" if node.aliases else ""
    print_paragraph(context.console, f"{node.name} ({node.type}{also})  {node.id}")
