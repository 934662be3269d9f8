"""Operations on the graph of names: search it, and look at what is near a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from memctl.errors import NotFoundError
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter
from memctl.operations.recall import opened

if TYPE_CHECKING:
    from memctl.graph.graph_views import NeighbourView

Direction = Literal["in", "out", "both"]
_RELATION = "Only relations of this type, such as links_to."
_MOST_HOPS = 6


@dataclass(frozen=True, slots=True)
class NearName:
    """A name that is connected with another one."""

    name: str
    type: str
    hops: int
    relation: str
    direction: Direction
    weight: float
    via: tuple[str, ...]
    memory_ids: tuple[str, ...]
    """What shows it."""


@dataclass(frozen=True, slots=True)
class GraphName:
    """A name that was found, and what it is connected with."""

    kb: str
    id: str
    name: str
    type: str
    aliases: tuple[str, ...]
    mentions: int
    relations: tuple[NearName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSearchParameters:
    """Parameters of ``search_knowledge_graph``."""

    query: str = parameter("A question, or names to look for.")
    relation_type: str | None = parameter(_RELATION, default=None)
    limit: int = parameter("At most this many names.", default=10, low=1, high=100)


@dataclass(frozen=True, slots=True)
class GraphSearchReply:
    """Names that were found."""

    query: str
    names: tuple[GraphName, ...]


def search_knowledge_graph(
    context: OperationContext, asked: GraphSearchParameters
) -> GraphSearchReply:
    """Find names as ``memctl graph search`` does, in every knowledge base that is read."""
    names = [
        GraphName(
            kb=base.name,
            id=found.id,
            name=found.name,
            type=found.type,
            aliases=found.aliases,
            mentions=found.mentions,
            relations=tuple(map(_near, found.relations)),
        )
        for base in opened(context)
        for found in base.graph.view(context.filters()).search(
            asked.query, asked.limit, relation=asked.relation_type
        )
    ]
    return GraphSearchReply(asked.query, tuple(names[: asked.limit]))


def _near(view: NeighbourView) -> NearName:
    return NearName(
        name=view.name,
        type=view.type,
        hops=view.hops,
        relation=view.relation,
        direction=view.direction,
        weight=view.weight,
        via=view.via,
        memory_ids=view.memory_ids,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborsParameters:
    """Parameters of ``get_graph_neighbors``."""

    name: str = parameter("A name, an alias or the id of one.")
    hops: int = parameter("At most this many steps.", default=1, low=1, high=_MOST_HOPS)
    relation_type: str | None = parameter(_RELATION, default=None)
    direction: Direction = parameter(
        "Only relations that lead away from the name, or to it.", default="both"
    )
    limit: int = parameter("At most this many names.", default=20, low=1, high=200)


@dataclass(frozen=True, slots=True)
class NeighborsReply:
    """What is near a name."""

    kb: str
    name: str
    neighbors: tuple[NearName, ...]


def get_graph_neighbors(context: OperationContext, asked: NeighborsParameters) -> NeighborsReply:
    """List what is near a name as ``memctl graph neighbors`` does, where that name is first found.

    Raises:
        NotFoundError: Nothing is called that.
    """
    missing: NotFoundError | None = None
    for base in opened(context):
        view = base.graph.view(context.filters())
        try:
            found = view.neighbours(
                asked.name,
                asked.hops,
                asked.limit,
                relation=asked.relation_type,
                direction=asked.direction,
            )
        except NotFoundError as error:
            missing = error
        else:
            name = view.find(asked.name)[0].name
            return NeighborsReply(base.name, name, tuple(map(_near, found)))
    raise missing or NotFoundError(f"nothing in the graph is called {asked.name!r}")
