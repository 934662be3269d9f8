"""What a question is part of: the communities of the names in it and in the best of its hits.

A hit says one thing; a community says who and what hangs together around it.  Its summary is made
of sentences that stand in memories, each cited, and no model is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

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
from memctl.language.sentence_splitting import split_sentences
from memctl.records import Citation, Community, Hit, Related
from memctl.search.answering.excerpts import HitExcerpt, cite
from memctl.search.ranking.graph_walk import named_nodes
from memctl.search.ranking.multi_hop import MAX_SEEDS, RANK_DECAY
from memctl.search.ranking.scored_candidates import load_hits_by_id
from memctl.search.retrieval.term_statistics import Sources

MOST_COMMUNITIES = 3
MOST_SENTENCES = 3
OF_HITS = 0.5
"""What a name in the best hit weighs, next to one in the question."""
_NAMED_MEMBERS = 12
_RELATIONS = 5
_READ = 12
_SHORTEST = 30
"""In characters; greetings and exclamations are shorter."""
_FEWEST_FIRST = 2
"""A sentence with one name says nothing of how names hang together."""


@dataclass(frozen=True, slots=True)
class CommunityFinder:
    """Finds communities in the graphs that a search has walked.

    Args:
        sources: Have the texts.
        graphs: The names of each knowledge base.
    """

    sources: Sources
    graphs: Mapping[str, NameIndex]

    def find(self, question: str, hits: Sequence[Hit]) -> tuple[Community, ...]:
        """Return the communities of what a question and the best of its hits name, best first."""
        found = [
            (each.weight, kb, near, each, seeds)
            for kb, index in self.graphs.items()
            for seeds in [_seeds(index, question, [hit for hit in hits if hit.kb == kb])]
            if seeds
            for near in [neighbourhood(index, seeds)]
            for each in near.communities
        ]
        best = sorted(found, key=lambda one: (-one[0], one[1]))[:MOST_COMMUNITIES]
        made = (self._community(kb, near, each, seeds) for _, kb, near, each, seeds in best)
        return tuple(community for community in made if community.citations)

    def _community(
        self, kb: str, near: Neighbourhood, found: NearbyCommunity, seeds: Mapping[int, float]
    ) -> Community:
        nodes = near.graph.nodes
        citations = tuple(self._told(kb, near, found))
        return Community(
            kb=kb,
            score=found.weight,
            size=len(found.members),
            members=tuple(nodes[at].name for at in found.members[:_NAMED_MEMBERS]),
            seeds=tuple(nodes[at].name for at in found.members if at in seeds),
            relations=_relations(near, found),
            summary=" ".join(citation.quote for citation in citations),
            citations=citations,
        )

    def _told(self, kb: str, near: Neighbourhood, found: NearbyCommunity) -> Iterator[Citation]:
        """Yield the sentences that have most of the community, each adding to those before it."""
        graph = near.graph
        weights = {at: graph.strength(at) for at in found.members}
        passages = central_passages(graph.index, weights, near.passages, _READ)
        ids = [graph.index.ids[at] for at in passages]
        hits = load_hits_by_id(self.sources, kb, ids)
        said = [each for id_ in ids if id_ in hits for each in _sentences(hits[id_])]
        spellings = list(zip(found.members, spellings_of(graph.index, found.members), strict=True))
        named = [
            frozenset(at for at, names in spellings if count_names(each.text, [names]))
            for each in said
        ]
        for number, at in enumerate(_covering(named, weights), start=1):
            yield cite(number, said[at].hit, said[at].start, said[at].end)


def _seeds(index: NameIndex, question: str, hits: Sequence[Hit]) -> dict[int, float]:
    """The names of the question, and those of the best hits; what is named everywhere is little."""
    seeds: defaultdict[int, float] = defaultdict(float)
    for rank, hit in enumerate(hits[:MAX_SEEDS]):
        at = index.at.get(hit.memory_id)
        for node in index.named[at] if at is not None else ():
            seeds[node] += OF_HITS * RANK_DECAY**rank / log2(1 + len(index.holders[node]))
    for node in named_nodes(question, index):
        seeds[node] += 1.0
    return dict(seeds)


def _relations(near: Neighbourhood, found: NearbyCommunity) -> tuple[Related, ...]:
    """The strongest between members, those first that somebody told."""
    own = set(found.members)
    edges = [(pair, edge) for pair, edge in near.graph.edges.items() if own.issuperset(pair)]
    edges.sort(key=lambda each: (each[1].relations[0] == TOGETHER, -each[1].weight, each[0]))
    nodes = near.graph.nodes
    return tuple(
        Related(nodes[one].name, edge.relations[0], nodes[other].name, edge.memory_ids)
        for (one, other), edge in edges[:_RELATIONS]
    )


def _covering(named: Sequence[frozenset[int]], weights: Mapping[int, float]) -> list[int]:
    """Choose the sentences with the names that weigh most, each adding to those before it.

    Args:
        named: The nodes that each sentence names.
        weights: What each node weighs.
    """
    chosen: list[int] = []
    left = frozenset(weights)
    while named and len(chosen) < MOST_SENTENCES:
        best = max(range(len(named)), key=lambda at: sum(weights[n] for n in named[at] & left))
        if len(named[best] & left) < (1 if chosen else _FEWEST_FIRST):
            break
        chosen.append(best)
        left -= named[best]
    return chosen


def _sentences(hit: Hit) -> Iterator[HitExcerpt]:
    for start, end in split_sentences(hit.text):
        said = HitExcerpt(hit, start, min(end, start + LONGEST_SENTENCE))
        if end - start >= _SHORTEST and not is_heading(said.text):
            yield said
