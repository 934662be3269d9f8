"""Communities of the names in a question and in the best of its hits.

A hit says one thing; a community shows who and what is connected to it.  Its summary consists of
sentences from memories, each cited; no model is involved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log2

from msgspec import Struct

from memctl.graph.entity_graph import (
    LONGEST_SENTENCE,
    TOGETHER,
    NearbyCommunity,
    Neighbourhood,
    central_passages,
    count_names,
    is_heading,
    neighbourhood,
    spellings_of,
)
from memctl.graph.name_index import NameIndex
from memctl.language.inline_tags import without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.records import Citation, Community, Hit, Related
from memctl.search.answering.excerpts import HitExcerpt, cite
from memctl.search.ranking.graph_walk import named_nodes
from memctl.search.ranking.multi_hop import MAX_SEEDS, RANK_DECAY
from memctl.search.ranking.scored_candidates import load_hits_by_id
from memctl.search.term_statistics import Sources

_MAX_SENTENCES = 3
_HIT_NAME_WEIGHT = 0.5
"""Of a name in the best hit, where one in the question has 1."""
_MAX_MEMBERS = 12
_MAX_RELATIONS = 5
_MAX_PASSAGES = 12
_SHORTEST_SENTENCE = 30
"""Characters; greetings and exclamations are shorter."""
_MIN_NAMES = 2
"""In the first sentence: one with a single name doesn't say how names are connected."""


class CommunityFinder(Struct, frozen=True):
    """Finds communities in the graphs that a search has walked.

    Args:
        sources: Where texts are read.
        graphs: The index of names of each knowledge base.
        most: Most communities.
    """

    sources: Sources
    graphs: Mapping[str, NameIndex]
    most: int

    def find(self, question: str, hits: Sequence[Hit]) -> tuple[Community, ...]:
        """Return the communities of the names in a question and its best hits, best first."""
        found = [
            (each.weight, kb, near, each, seeds)
            for kb, index in self.graphs.items()
            for seeds in [_seeds(index, question, [hit for hit in hits if hit.kb == kb])]
            if seeds
            for near in [neighbourhood(index, seeds)]
            for each in near.communities
        ]
        best = sorted(found, key=lambda one: (-one[0], one[1]))[: self.most]
        communities = (self._community(kb, near, each, seeds) for _, kb, near, each, seeds in best)
        return tuple(community for community in communities if community.citations)

    def _community(
        self, kb: str, near: Neighbourhood, found: NearbyCommunity, seeds: Mapping[int, float]
    ) -> Community:
        nodes = near.graph.nodes
        citations = tuple(self._summary(kb, near, found))
        return Community(
            kb=kb,
            score=found.weight,
            size=len(found.members),
            members=tuple(nodes[at].name for at in found.members[:_MAX_MEMBERS]),
            seeds=tuple(nodes[at].name for at in found.members if at in seeds),
            relations=_relations(near, found),
            summary=" ".join(without_wikilinks(citation.quote) for citation in citations),
            citations=citations,
        )

    def _summary(self, kb: str, near: Neighbourhood, found: NearbyCommunity) -> Iterator[Citation]:
        """Yield the sentences that name most of the community, each adding to those before it."""
        graph = near.graph
        weights = {at: graph.strength(at) for at in found.members}
        passages = central_passages(graph.index, weights, near.passages, _MAX_PASSAGES)
        ids = [graph.index.ids[at] for at in passages]
        hits = load_hits_by_id(self.sources, kb, ids)
        excerpts = [each for id_ in ids if id_ in hits for each in _sentences(hits[id_])]
        spellings = list(zip(found.members, spellings_of(graph.index, found.members), strict=True))
        named = [
            frozenset(at for at, names in spellings if count_names(each.text, [names]))
            for each in excerpts
        ]
        for number, at in enumerate(_covering_sentences(named, weights), start=1):
            yield cite(number, excerpts[at])


def _seeds(index: NameIndex, question: str, hits: Sequence[Hit]) -> dict[int, float]:
    """Return weights of the names in the question and its best hits; common names weigh less."""
    seeds: defaultdict[int, float] = defaultdict(float)
    for rank, hit in enumerate(hits[:MAX_SEEDS]):
        at = index.at.get(hit.memory_id)
        for node in index.named[at] if at is not None else ():
            seeds[node] += _HIT_NAME_WEIGHT * RANK_DECAY**rank / log2(1 + len(index.holders[node]))
    for node in named_nodes(question, index):
        seeds[node] += 1.0
    return dict(seeds)


def _relations(near: Neighbourhood, found: NearbyCommunity) -> tuple[Related, ...]:
    """Return the strongest relations between members, stated ones before mere co-occurrence."""
    own = set(found.members)
    edges = [(pair, edge) for pair, edge in near.graph.edges.items() if own.issuperset(pair)]
    edges.sort(key=lambda each: (each[1].relations[0] == TOGETHER, -each[1].weight, each[0]))
    nodes = near.graph.nodes
    return tuple(
        Related(nodes[one].name, edge.relations[0], nodes[other].name, edge.memory_ids)
        for (one, other), edge in edges[:_MAX_RELATIONS]
    )


def _covering_sentences(named: Sequence[frozenset[int]], weights: Mapping[int, float]) -> list[int]:
    """Return the sentences whose names weigh most, each adding to those before it.

    Args:
        named: The nodes that each sentence names.
        weights: The weight of each node.
    """
    chosen: list[int] = []
    left = frozenset(weights)
    while named and len(chosen) < _MAX_SENTENCES:
        best = max(range(len(named)), key=lambda at: sum(weights[n] for n in named[at] & left))
        if len(named[best] & left) < (1 if chosen else _MIN_NAMES):
            break
        chosen.append(best)
        left -= named[best]
    return chosen


def _sentences(hit: Hit) -> Iterator[HitExcerpt]:
    for start, end in split_sentences(hit.text):
        excerpt = HitExcerpt(hit, start, min(end, start + LONGEST_SENTENCE))
        if end - start >= _SHORTEST_SENTENCE and not is_heading(excerpt.text):
            yield excerpt
