"""The communities that some names belong to, looked for around those names alone.

The whole graph of a large knowledge base takes seconds to make; what stands near a few names
takes milliseconds, and its communities are no wider than what they are asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from memctl.graph.graph import Graph, Part
from memctl.graph.index import Index
from memctl.graph.telling import central_passages

MOST_PASSAGES = 100
"""So many passages that name the seeds are looked at."""
FEWEST_NEARBY = 3
"""Two names are a relation, and not yet something that has a theme."""
_LEAST_SHARE = 0.25
"""Of the weight that the best community has of the seeds."""


@dataclass(frozen=True, slots=True)
class Nearby:
    """A community that has some of the seeds."""

    members: tuple[int, ...]
    """Its nodes, the best connected first."""
    weight: float
    """Of the seeds among them."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What stands near some names."""

    graph: Graph
    """Of the passages that name them."""
    passages: tuple[int, ...]
    communities: tuple[Nearby, ...]
    """Those that have seeds, what weighs most first."""


def neighbourhood(index: Index, seeds: Mapping[int, float]) -> Neighbourhood:
    """Return what stands near some nodes.

    Args:
        index: Of all names.
        seeds: Nodes, with what each weighs.
    """
    naming = {at for seed in seeds for at in index.holders[seed]}
    passages = central_passages(index, seeds, naming, MOST_PASSAGES)
    named = Counter(node for at in passages for node in index.named[at])
    # A name that one passage alone has hangs on it, and on nothing else.
    recurring = {node for node, count in named.items() if count > 1}
    graph = Graph(index, Part(sorted(passages), recurring | seeds.keys()))
    weights: defaultdict[int, float] = defaultdict(float, seeds)
    found = [
        Nearby(members, sum(weights[member] for member in members))
        for members in graph.communities
        if len(members) >= FEWEST_NEARBY
    ]
    ranked = sorted(found, key=lambda each: (-each.weight, each.members))
    best = ranked[0].weight if ranked else 0.0
    near = [each for each in ranked if each.weight and each.weight >= _LEAST_SHARE * best]
    return Neighbourhood(graph, tuple(passages), tuple(near))
