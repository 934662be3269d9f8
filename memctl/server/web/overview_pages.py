"""What memories say together: insights, contradictions to settle, the timeline and the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from memctl.literals import InsightKind
from memctl.operations.finding import find_in_graphs, opened
from memctl.operations.operation_context import OperationContext
from memctl.records import Filters, Memory
from memctl.server.web.listing import Row, bases_of, collect_rows, filter_fields, filters_of
from memctl.server.web.pages import Page, PageRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.graph.graph_views import FoundName, GraphView, NeighbourView, Overview
    from memctl.graph.name_index import Node
    from memctl.knowledge_base import KnowledgeBase

_MAX_NODES = 200
_MAX_EDGES = 3 * _MAX_NODES
_MAX_HOPS = 3
_NAMES = 30
_INSIGHT_ROWS = 20
_TIMELINE_ROWS = 100
_BARS = 60
By = Literal["known", "happened"]


# --- insights -------------------------------------------------------------------------------------


def insights(context: OperationContext, parameters: PageRequest) -> Page:
    """List insights, the newest first, with the memories they rest on side by side."""
    filters, chosen = filters_of(context, parameters), parameters.text("kind")
    kind = next((each for each in get_args(InsightKind) if each == chosen), None)

    def fetch(base: KnowledgeBase, limit: int, offset: int) -> pa.Table:
        """Return insights of the kind that is asked for."""
        return base.insights.list(filters, limit=limit, offset=offset, kind=kind)

    found = collect_rows(
        context, fetch, lambda row: str(row["created_at"]), parameters.offset, limit=_INSIGHT_ROWS
    )
    shown = {
        "sources": _sources(context, found.rows),
        "fields": {**filter_fields(parameters), "kind": kind or ""},
        "previous_offset": max(0, found.offset - _INSIGHT_ROWS),
    }
    return Page("insights.html", "Insights", found, shown)


def _sources(context: OperationContext, rows: Sequence[Row]) -> Mapping[str, Sequence[Memory]]:
    """Return the memories that each insight rests on."""
    from memctl.memories.memory_views import memories_by_id

    found: dict[str, Sequence[Memory]] = {}
    for base in bases_of(context):
        own = [row for row in rows if row["kb"] == base.name]
        ids = list(dict.fromkeys(id_ for row in own for id_ in row["source_ids"]))
        known = {each.id: each for each in memories_by_id(base.store.snapshot(), ids)}
        for row in own:
            found[row["id"]] = [known[id_] for id_ in row["source_ids"] if id_ in known]
    return found


# --- timeline -------------------------------------------------------------------------------------


class Day(Struct, frozen=True):
    """What became known, or happened, on one day."""

    day: str
    rows: Sequence[Row]


class Bar(Struct, frozen=True):
    """How much there is of a day, a week or a month."""

    start: str
    last: str
    count: int


def timeline(context: OperationContext, parameters: PageRequest) -> Page:
    """List what was distilled, by the day on which it became known or happened."""
    by: By = parameters.choice("by", By, "happened")
    column = "valid_from" if by == "known" else "created_at"
    filters = replace(filters_of(context, parameters), levels=("memory",))
    limits = _limit_dates(filters, column)
    found = collect_rows(
        context,
        lambda base, limit, offset: base.memories.list(
            limits,
            limit=limit,
            offset=offset,
            sort="known" if by == "known" else "created",
            descending=True,
        ),
        lambda row: (str(row[column]), row["id"]),
        parameters.offset,
        limit=_TIMELINE_ROWS,
    )
    days = [
        Day(day, list(rows))
        for day, rows in groupby(found.rows, key=lambda row: str(row[column])[:10])
    ]
    shown = {
        "fields": {**filter_fields(parameters), "by": by},
        "days": days,
        "bars": _bars(context, limits, column),
        "previous_offset": max(0, found.offset - _TIMELINE_ROWS),
    }
    return Page("timeline.html", "Timeline", found, shown)


def _limit_dates(filters: Filters, column: str) -> Filters:
    """Return filters whose dates limit the column that is shown."""
    if column == "created_at":
        return filters
    parts = []
    if filters.since is not None:
        parts.append(f"valid_from >= timestamp '{filters.since:%Y-%m-%d %H:%M:%S}'")
    if filters.until is not None:
        parts.append(f"valid_from < timestamp '{filters.until:%Y-%m-%d %H:%M:%S}'")
    return replace(filters, since=None, until=None, where=" and ".join(parts) or filters.where)


def _bars(context: OperationContext, filters: Filters, column: str) -> Sequence[Bar]:
    """Return how much there is of each day, week or month, whichever gives few bars."""
    days: Counter[date] = Counter()
    for base in bases_of(context):
        days.update(base.memories.count_by_day(filters, known=column == "valid_from"))
    if not days:
        return []
    first, last = min(days), max(days)
    span = (last - first).days + 1
    step = 1 if span <= _BARS else 7 if span <= 7 * _BARS else -(-span // _BARS)
    counts: Counter[int] = Counter()
    for day, number in days.items():
        counts[(day - first).days // step] += number
    return [
        Bar(
            (first + timedelta(days=step * n)).isoformat(),
            min(last, first + timedelta(days=step * (n + 1) - 1)).isoformat(),
            counts[n],
        )
        for n in range((span - 1) // step + 1)
    ]


# --- the graph of names ---------------------------------------------------------------------------


class GraphNode(Struct, frozen=True):
    """A name in a picture."""

    id: str
    name: str
    type: str
    hops: int
    """How many steps from the name that was asked for."""
    community: int = 0
    """The number of the community that it is in among the others; 0 for none."""


class GraphEdge(Struct, frozen=True):
    """A connection in a picture."""

    source: str
    target: str
    relation: str
    weight: float
    memory_ids: tuple[str, ...]


class Neighbourhood(Struct, frozen=True):
    """A name with what is near it."""

    kb: str
    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    neighbours: tuple[NeighbourView, ...]
    relations: tuple[str, ...] = ()
    """The types of its connections, whichever are shown."""


class NameMatch(Struct, frozen=True):
    """A name that was found, and where."""

    kb: str
    name: FoundName


class GraphPage(Struct, frozen=True):
    """Names that were searched for, and on request what there is in each graph."""

    query: str
    names: tuple[NameMatch, ...]
    overviews: tuple[Overview, ...]


def graph(context: OperationContext, parameters: PageRequest) -> Page:
    """Show names and how they are connected, or what is near one of them."""
    name, words = parameters.text("name"), parameters.text("q")
    hops = parameters.number("hops", 1, 1, _MAX_HOPS)
    shown: dict[str, Any] = {
        "fields": {"name": name, "q": words, "hops": hops, "relation": parameters.text("relation")},
        "has_overview": parameters.has("overview"),
    }
    if name:
        found = _neighbourhood(context, name, hops, parameters.text("relation") or None)
        shown["memories"] = _shown_by(context, found)
        shown["communities"] = {each.id: each.community for each in found.nodes if each.community}
        return Page("graph_name.html", found.name, found, shown)
    views = [(base.name, base.graph.view(context.filters())) for base in bases_of(context)]
    data = GraphPage(
        query=words,
        names=tuple(
            NameMatch(kb, found)
            for kb, view in views
            if words
            for found in view.search(words, _NAMES)
        ),
        overviews=tuple(view.overview() for _, view in views if parameters.has("overview")),
    )
    return Page("graph.html", "Graph", data, shown)


def _neighbourhood(
    context: OperationContext, name: str, hops: int, relation: str | None
) -> Neighbourhood:
    base, view, node = find_in_graphs(context, bases_of(context), name)
    near = view.neighbours(node.id, hops, _MAX_NODES - 1, relation=relation)
    edges = _edges(view, [node.id, *(each.id for each in near)])
    community = _communities(node.id, edges)
    return Neighbourhood(
        kb=base.name,
        id=node.id,
        name=node.name,
        type=node.type,
        aliases=node.aliases,
        mentions=node.mentions,
        nodes=(
            GraphNode(node.id, node.name, node.type, 0),
            *(
                GraphNode(each.id, each.name, each.type, each.hops, community.get(each.id, 0))
                for each in near
            ),
        ),
        edges=tuple(edges[:_MAX_EDGES]),
        neighbours=tuple(near),
        relations=_relation_types(view, node),
    )


def _relation_types(view: GraphView, node: Node) -> tuple[str, ...]:
    edges = view.graph.adjacent.get(view.graph.nodes.index(node), {}).values()
    return tuple(sorted(set(chain.from_iterable(edge.relations for edge in edges))))


def _edges(view: GraphView, ids: Sequence[str]) -> Sequence[GraphEdge]:
    """Return the connections among some names, the strongest first."""
    graph = view.graph
    wanted, names = set(ids), graph.nodes
    found = [
        GraphEdge(
            names[one].id,
            names[other].id,
            edge.relations[0],
            round(edge.weight, 4),
            edge.memory_ids,
        )
        for (one, other), edge in graph.edges.items()
        if names[one].id in wanted and names[other].id in wanted
    ]
    found.sort(key=lambda each: -each.weight)
    return found


def _communities(middle: str, edges: Sequence[GraphEdge]) -> Mapping[str, int]:
    """Return which community each name in a picture is in; none where all are in one.

    The name in the middle is connected with all others, and left out: it would hold them together.
    """
    import networkx as nx

    from memctl.graph.entity_graph import communities_of

    graph: nx.Graph[int] = nx.Graph()
    number: dict[str, int] = {}
    for edge in edges:
        if middle not in (edge.source, edge.target):
            one, other = (number.setdefault(id_, len(number)) for id_ in (edge.source, edge.target))
            graph.add_edge(one, other, weight=edge.weight)
    groups = communities_of(graph)
    ids = list(number)
    if len(groups) < 2:
        return {}
    return {ids[at]: n for n, members in enumerate(groups, start=1) for at in members}


def _shown_by(context: OperationContext, neighbourhood: Neighbourhood) -> Mapping[str, Memory]:
    """Return the first memory that shows each connection of the list."""
    from memctl.memories.memory_views import memories_by_id

    ids = [each.memory_ids[0] for each in neighbourhood.neighbours if each.memory_ids]
    base = next(each for each in opened(context) if each.name == neighbourhood.kb)
    rows = memories_by_id(base.store.snapshot(), list(dict.fromkeys(ids)))
    return {row.id: row for row in rows}
