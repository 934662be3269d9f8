"""The graph of what is named: who and what stand together, link to each other or were related.

Built from an index in memory; networkx, loaded when it is first needed, has the algorithms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import log2, sqrt
from typing import TYPE_CHECKING

from memctl.errors import NotFoundError
from memctl.graph.index import Index, Node
from memctl.graph.names import key_of

if TYPE_CHECKING:
    import networkx as nx

TOGETHER = "named together"
MOST_TOGETHER = 16
"""Of a passage with more names, the rarest so many count as named together."""
MOST_EVIDENCE = 5
"""An edge names at most so many memories as its evidence."""
FACT_WEIGHT = 1.0
"""Of a wikilink or a stated relation, as much as of two that are only named together."""
FEWEST_MEMBERS = 2
_SEED = 0
_SUGGESTIONS = 3
_CLOSE = 0.7
_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """How two nodes hang together."""

    weight: float
    relations: tuple[str, ...]
    """The strongest kind first."""
    memory_ids: tuple[str, ...]
    count: int
    """In how many passages they stand together."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node that is reached from another one."""

    node: int
    hops: int
    weight: float
    """The product of the edges' weights on the strongest of the shortest ways."""
    way: tuple[int, ...]
    """From the first node to this one, both among them."""


@dataclass(frozen=True, slots=True)
class Part:
    """So much of what was read, all by number."""

    passages: Collection[int]
    """Those that make nodes hang together."""
    nodes: Collection[int]
    """Those that may have edges; looking one up is cheap."""


class Graph:
    """Nodes with their edges.

    Args:
        index: The nodes, and what names them.
        part: What of it counts; by default all.
    """

    def __init__(self, index: Index, part: Part | None = None) -> None:
        self.index = index
        self._part = part or Part(range(len(index.named)), range(len(index.nodes)))

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes; those that no passage names any more are not there."""
        return self.index.nodes

    @cached_property
    def edges(self) -> dict[_Pair, Edge]:
        """All edges, by the numbers of their ends, the smaller one first."""
        together = _together(self.index, self._part)
        facts = _facts(self.index, self._part)
        return {
            pair: _edge(self.index, pair, together.get(pair, ()), facts.get(pair, ()))
            for pair in sorted(together.keys() | facts.keys())
        }

    @cached_property
    def adjacent(self) -> dict[int, dict[int, Edge]]:
        """The edges of each node, by the node at their other end."""
        found: dict[int, dict[int, Edge]] = defaultdict(dict)
        for (one, other), edge in self.edges.items():
            found[one][other] = edge
            found[other][one] = edge
        return found

    def strength(self, node: int) -> float:
        """Return how well connected a node is: the weights of its edges added up."""
        return sum(edge.weight for edge in self.adjacent.get(node, {}).values())

    def edge(self, one: int, other: int) -> Edge:
        """Return the edge between two nodes that have one."""
        return self.edges[min(one, other), max(one, other)]

    # --- names ---

    def find(self, name: str) -> tuple[int, ...]:
        """Return the nodes that a name, or an id or enough of its beginning, may mean.

        Those that are mentioned most come first.

        Raises:
            NotFoundError: There is none; the hint has the nearest names.
        """
        found = self.index.by_key.get(key_of(name), ())
        if not found and name.startswith("e_") and len(name) >= 8:
            found = tuple(at for at, node in enumerate(self.nodes) if node.id.startswith(name))
        if not found:
            raise NotFoundError(f"nothing in the graph is called {name!r}", self._hint(name))
        return found

    def _hint(self, name: str) -> str:
        from difflib import get_close_matches

        wanted, keys = key_of(name), self.index.by_key
        by_word: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            for word in {key, *key.split(" ")}:
                by_word[word].append(key)
        words = get_close_matches(wanted, by_word, _SUGGESTIONS, _CLOSE)
        parts = [key for key in keys if wanted and wanted in key]
        alike = [key for word in words for key in by_word[word]]
        near = sorted(parts, key=lambda key: (-self.nodes[keys[key][0]].mentions, len(key), key))
        near += sorted(alike, key=lambda key: (-self.nodes[keys[key][0]].mentions, len(key), key))
        names = dict.fromkeys(self.nodes[keys[key][0]].name for key in near)
        if not names:
            return "memctl graph show lists the best connected names"
        return f"nearest names: {', '.join(list(names)[:_SUGGESTIONS])}"

    # --- ways ---

    def neighbours(self, node: int, hops: int) -> list[Neighbour]:
        """Return what is reached from a node in at most so many steps, nearest, strongest first."""
        best = {node: Neighbour(node, 0, 1.0, (node,))}
        edge = [best[node]]
        for hop in range(1, hops + 1):
            found: dict[int, Neighbour] = {}
            for each in edge:
                for other, link in self.adjacent.get(each.node, {}).items():
                    if other in best:
                        continue
                    weight = each.weight * link.weight
                    if other not in found or weight > found[other].weight:
                        found[other] = Neighbour(other, hop, weight, (*each.way, other))
            best |= found
            edge = list(found.values())
        reached = (each for each in best.values() if each.hops)
        return sorted(reached, key=lambda each: (each.hops, -each.weight, each.node))

    def path(self, one: int, other: int) -> list[int]:
        """Return the nodes on the way from one to another: of the shortest, the strongest.

        Raises:
            NotFoundError: No way leads there.
        """
        import networkx as nx

        try:
            found: list[int] = nx.dijkstra_path(self.networkx, one, other, weight="cost")
        except nx.NetworkXNoPath as error:
            names = f"{self.nodes[one].name!r} and {self.nodes[other].name!r}"
            raise NotFoundError(
                f"nothing connects {names}", "memctl graph neighbors NAME shows what is near"
            ) from error
        return found

    # --- communities ---

    @cached_property
    def communities(self) -> list[tuple[int, ...]]:
        """Groups of nodes that hang together closely, largest first, best connected first.

        Found by the Louvain method (Blondel et al., 2008) from a fixed seed.
        """
        return communities_of(self.networkx)

    @cached_property
    def networkx(self) -> nx.Graph[int]:
        """The graph as networkx has it; ``cost`` is for shortest ways: fewer steps win."""
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(self._part.nodes)
        graph.add_weighted_edges_from((*pair, edge.weight) for pair, edge in self.edges.items())
        for pair, edge in self.edges.items():
            graph.edges[pair]["cost"] = 1 + 1 / (1_000 * (1 + edge.weight))
        return graph


def communities_of(graph: nx.Graph[int]) -> list[tuple[int, ...]]:
    """Return the communities of at least two nodes, largest first, best connected node first."""
    from networkx.algorithms.community import louvain_communities

    found = louvain_communities(graph, weight="weight", seed=_SEED) if len(graph) else []
    degrees = dict(graph.degree(weight="weight"))
    groups = [
        tuple(sorted(members, key=lambda node: (-degrees[node], node)))
        for members in found
        if len(members) >= FEWEST_MEMBERS
    ]
    return sorted(groups, key=lambda members: (-len(members), members[0]))


def _together(index: Index, part: Part) -> dict[_Pair, list[int]]:
    """The passages in which two nodes stand together."""
    found: dict[_Pair, list[int]] = defaultdict(list)
    for at in part.passages:
        nodes = [node for node in index.named[at] if node in part.nodes]
        for pair in combinations(sorted(_rarest(index, nodes)), 2):
            found[pair].append(at)
    return found


def _rarest(index: Index, nodes: Sequence[int]) -> Sequence[int]:
    if len(nodes) <= MOST_TOGETHER:
        return nodes
    return sorted(nodes, key=lambda node: (len(index.holders[node]), node))[:MOST_TOGETHER]


def _facts(index: Index, part: Part) -> dict[_Pair, list[tuple[str, tuple[str, ...]]]]:
    """The relations that were stated between two nodes, with their evidence."""
    found: dict[_Pair, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for fact in index.facts:
        if fact.source not in part.nodes or fact.target not in part.nodes:
            continue
        pair = (min(fact.source, fact.target), max(fact.source, fact.target))
        found[pair].append((fact.relation, fact.memory_ids))
    return found


def _edge(
    index: Index,
    pair: _Pair,
    passages: Sequence[int],
    facts: Sequence[tuple[str, tuple[str, ...]]],
) -> Edge:
    """An edge weighs by how often two stand together, and how seldom each stands elsewhere."""
    told = Counter(relation for relation, _ in facts)
    relations = [*(relation for relation, _ in told.most_common()), *[TOGETHER] * bool(passages)]
    # What is told stands best where few other names do.
    clearest = sorted(passages, key=lambda at: (len(index.named[at]), at))
    evidence = [*_all(ids for _, ids in facts), *(index.ids[at] for at in clearest)]
    return Edge(
        weight=_weight(index, pair, len(passages)) + FACT_WEIGHT * len(told),
        relations=tuple(relations),
        memory_ids=tuple(dict.fromkeys(evidence))[:MOST_EVIDENCE],
        count=len(passages),
    )


def _all(groups: Iterable[Iterable[str]]) -> Iterator[str]:
    for group in groups:
        yield from group


def _weight(index: Index, pair: _Pair, count: int) -> float:
    if not count:
        return 0.0
    sizes = [len(index.holders[node]) for node in pair]
    return (count / sqrt(sizes[0] * sizes[1])) * log2(1 + count)
