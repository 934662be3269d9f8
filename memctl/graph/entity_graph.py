"""The graph of names: which occur together, link to each other or are related.

Built from an index in memory; networkx, loaded when it is first needed, has the algorithms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import log2, sqrt
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import NotFoundError
from memctl.graph.derivation import OTHER, PAGE
from memctl.graph.entity_names import name_key
from memctl.graph.name_index import NameIndex, Node
from memctl.ids import entity_id
from memctl.language.sentence_splitting import split_sentences

if TYPE_CHECKING:
    import networkx as nx

TOGETHER = "named together"
MAX_TOGETHER = 16
"""Of a passage with more names, only this many of the rarest count as named together."""
MAX_EVIDENCE = 5
"""An edge names at most this many memories as its evidence."""
FACT_WEIGHT = 1.0
"""Of a wikilink or a stated relation, as much as of two that are only named together."""
MIN_MEMBERS = 2
_SEED = 0
_SUGGESTIONS = 3
_CLOSE = 0.7
_Pair = tuple[int, int]


class Edge(Struct, frozen=True):
    """How two nodes hang together."""

    weight: float
    relations: tuple[str, ...]
    """The strongest kind first."""
    memory_ids: tuple[str, ...]
    count: int
    """In how many passages they stand together."""


class Neighbour(Struct, frozen=True):
    """A node that is reached from another one."""

    node: int
    hops: int
    weight: float
    """The product of the edges' weights on the strongest of the shortest ways."""
    way: tuple[int, ...]
    """From the first node to this one, both among them."""


class Part(Struct, frozen=True):
    """The part that was read, all by number."""

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

    def __init__(self, index: NameIndex, part: Part | None = None) -> None:
        self.index = index
        self._part = part or Part(range(len(index.named)), range(len(index.nodes)))

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes that a passage names."""
        return self.index.nodes

    @cached_property
    def edges(self) -> dict[_Pair, Edge]:
        """All edges, by the numbers of their ends, the smaller one first."""
        together = _cooccurrences(self.index, self._part)
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

        Nodes with exactly that name come first, then those that are mentioned most.

        Raises:
            NotFoundError: There is none; the hint has the nearest names.
        """
        found = self.index.by_key.get(name_key(name), ())
        if not found and name.startswith("e_") and len(name) >= 8:
            found = tuple(at for at, node in enumerate(self.nodes) if node.id.startswith(name))
            found = found or tuple(self._with_row(name))
        if not found:
            raise NotFoundError(f"nothing in the graph is called {name!r}", self._hint(name))
        exact = name.strip().casefold()
        return tuple(sorted(found, key=lambda at: self.nodes[at].name.casefold() != exact))

    def meant_by(self, name: str) -> tuple[int, ...]:
        """Return the nodes that a name may mean, or else the only node whose name contains it.

        Raises:
            NotFoundError: There is none, or it is a part of several names.
        """
        try:
            return self.find(name)
        except NotFoundError:
            whole = self.named_with(name)
            if len(whole) != 1:
                raise
            return whole

    def named_with(self, part: str) -> tuple[int, ...]:
        """Return the nodes in one of whose names some whole words stand."""
        words, keys = f" {name_key(part)} ", self.index.by_key
        found = {at for key in keys if words.strip() and words in f" {key} " for at in keys[key]}
        return tuple(sorted(found))

    def _with_row(self, id_: str) -> Iterator[int]:
        """Yield the nodes that have an entity of that id, or had before their type was known.

        There may be several of one name: a page and a person, or one whose type a text leaves open.
        """
        types = {node.type for node in self.nodes} | {PAGE, OTHER}
        for at, node in enumerate(self.nodes):
            names = dict.fromkeys((node.key, node.name, *node.aliases))
            ids = (entity_id(name, type_) for name in names for type_ in types)
            if any(each.startswith(id_) for each in ids):
                yield at

    def _hint(self, name: str) -> str:
        from difflib import get_close_matches

        wanted, keys = name_key(name), self.index.by_key
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

    def neighbours(
        self, node: int, hops: int, follows: Callable[[int, int], bool] | None = None
    ) -> list[Neighbour]:
        """Return what is reached from a node in at most this many steps, nearest, strongest first.

        Args:
            node: Where to begin.
            hops: At most this many steps.
            follows: Tells whether to go from one node to another; by default always.
        """
        best = {node: Neighbour(node, 0, 1.0, (node,))}
        edge = [best[node]]
        for hop in range(1, hops + 1):
            found: dict[int, Neighbour] = {}
            for each in edge:
                for other, link in self.adjacent.get(each.node, {}).items():
                    if other in best or (follows is not None and not follows(each.node, other)):
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
        if len(members) >= MIN_MEMBERS
    ]
    return sorted(groups, key=lambda members: (-len(members), members[0]))


def _cooccurrences(index: NameIndex, part: Part) -> dict[_Pair, list[int]]:
    """The passages in which two nodes stand together."""
    found: dict[_Pair, list[int]] = defaultdict(list)
    for at in part.passages:
        nodes = [node for node in index.named[at] if node in part.nodes]
        for pair in combinations(sorted(_rarest(index, nodes)), 2):
            found[pair].append(at)
    return found


def _rarest(index: NameIndex, nodes: Sequence[int]) -> Sequence[int]:
    if len(nodes) <= MAX_TOGETHER:
        return nodes
    return sorted(nodes, key=lambda node: (len(index.holders[node]), node))[:MAX_TOGETHER]


def _facts(index: NameIndex, part: Part) -> dict[_Pair, list[tuple[str, tuple[str, ...]]]]:
    """The relations that were stated between two nodes, with their evidence."""
    found: dict[_Pair, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for fact in index.facts:
        if fact.source not in part.nodes or fact.target not in part.nodes:
            continue
        pair = (min(fact.source, fact.target), max(fact.source, fact.target))
        found[pair].append((fact.relation, fact.memory_ids))
    return found


def _edge(
    index: NameIndex,
    pair: _Pair,
    passages: Sequence[int],
    facts: Sequence[tuple[str, tuple[str, ...]]],
) -> Edge:
    """Weigh an edge by how often two names occur together, and how seldom elsewhere."""
    relation_counts = Counter(relation for relation, _ in facts)
    relations = [
        *(relation for relation, _ in relation_counts.most_common()),
        *[TOGETHER] * bool(passages),
    ]
    # A statement is best shown by a sentence with few other names.
    clearest = sorted(passages, key=lambda at: (len(index.named[at]), at))
    stated = (id_ for _, ids in facts for id_ in ids)
    evidence = [*stated, *(index.ids[at] for at in clearest)]
    return Edge(
        weight=_weight(index, pair, len(passages)) + FACT_WEIGHT * len(relation_counts),
        relations=tuple(relations),
        memory_ids=tuple(dict.fromkeys(evidence))[:MAX_EVIDENCE],
        count=len(passages),
    )


def _weight(index: NameIndex, pair: _Pair, count: int) -> float:
    if not count:
        return 0.0
    sizes = [len(index.holders[node]) for node in pair]
    return (count / sqrt(sizes[0] * sizes[1])) * log2(1 + count)


LONGEST_SENTENCE = 300

Spellings = Sequence[Sequence[str]]
"""Every name as it may be written."""


def spellings_of(index: NameIndex, nodes: Iterable[int]) -> list[tuple[str, ...]]:
    """Return how the names of some nodes are written."""
    return [(index.nodes[at].name, *index.nodes[at].aliases) for at in nodes]


def most_telling_sentence(text: str, spellings: Spellings) -> str:
    """Return the sentence of a text that has most of some names, the first where several have.

    A heading is taken only where there is nothing else.
    """
    found = [text[start:end] for start, end in split_sentences(text)]
    candidates = [sentence for sentence in found if not is_heading(sentence)] or found or [text]
    return max(candidates, key=lambda sentence: count_names(sentence, spellings))[:LONGEST_SENTENCE]


def nodes_by_sentence(
    text: str, index: NameIndex, nodes: Sequence[int]
) -> Iterator[list[tuple[int, int, str]]]:
    """Yield what each sentence of a text says of some nodes: their order, they, and the words.

    The words are those of the sentence without the names.
    """
    spellings = dict(zip(nodes, spellings_of(index, nodes), strict=True))
    for start, end in split_sentences(text):
        sentence = text[start:end][:LONGEST_SENTENCE]
        places = {
            at: min(sentence.find(name) for name in names if name in sentence)
            for at, names in spellings.items()
            if any(name in sentence for name in names)
        }
        rest = sentence
        for name in sorted((name for at in places for name in spellings[at]), key=len)[::-1]:
            rest = rest.replace(name, " ")
        yield [(place, at, rest) for place, at in enumerate(sorted(places, key=places.__getitem__))]


def is_heading(sentence: str) -> bool:
    """Return whether a line is a heading, of Markdown."""
    return sentence.startswith("#")


def count_names(sentence: str, spellings: Spellings) -> int:
    """How many of some names a sentence has."""
    return sum(any(name in sentence for name in names) for names in spellings)


def central_passages(
    index: NameIndex, weights: Mapping[int, float], passages: Iterable[int], limit: int
) -> list[int]:
    """Return the passages that name most of some nodes, by what each weighs, and little else."""

    def centrality(at: int) -> float:
        """How much of the nodes stands in a passage, as far as it names nothing else."""
        named = index.named[at]
        return sum(weights.get(node, 0.0) for node in named) / sqrt(len(named))

    return sorted(passages, key=lambda at: (-centrality(at), at))[:limit]


MAX_PASSAGES = 100
"""At most this many passages that name the seeds are examined."""
MIN_NEARBY = 3
"""Two names are a relation, and not yet something that has a theme."""
_MIN_SHARE = 0.25
"""Of the weight that the best community has of the seeds."""


class NearbyCommunity(Struct, frozen=True):
    """A community that has some of the seeds."""

    members: tuple[int, ...]
    """Its nodes, the best connected first."""
    weight: float
    """Of the seeds among them."""


class Neighbourhood(Struct, frozen=True):
    """What stands near some names."""

    graph: Graph
    """Of the passages that name them."""
    passages: tuple[int, ...]
    communities: tuple[NearbyCommunity, ...]
    """Those that have seeds, what weighs most first."""


def neighbourhood(index: NameIndex, seeds: Mapping[int, float]) -> Neighbourhood:
    """Return what stands near some nodes.

    Args:
        index: Of all names.
        seeds: Nodes, with what each weighs.
    """
    naming = {at for seed in seeds for at in index.holders[seed]}
    passages = central_passages(index, seeds, naming, MAX_PASSAGES)
    named = Counter(node for at in passages for node in index.named[at])
    # A name that one passage alone has hangs on it, and on nothing else.
    recurring = {node for node, count in named.items() if count > 1}
    graph = Graph(index, Part(sorted(passages), recurring | seeds.keys()))
    weights: defaultdict[int, float] = defaultdict(float, seeds)
    found = [
        NearbyCommunity(members, sum(weights[member] for member in members))
        for members in graph.communities
        if len(members) >= MIN_NEARBY
    ]
    ranked = sorted(found, key=lambda each: (-each.weight, each.members))
    best = ranked[0].weight if ranked else 0.0
    near = [each for each in ranked if each.weight and each.weight >= _MIN_SHARE * best]
    return Neighbourhood(graph, tuple(passages), tuple(near))
