"""Graph retrieval: from what resembles the question, along names, to what they lead on to.

A walk starts at the few passages that are most like the question, and at who or what it names.
Each step goes from a passage by a name in it, or by a connection that consolidation found, to
passages of other documents; the rarer the name, the more the step counts.  A passage is raised by
the best way that leads to it, the more, the more it tells of what the start leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from memctl.graph.entity_names import is_everyday, name_key
from memctl.graph.name_index import NameIndex
from memctl.literals import DEFAULT_HOPS
from memctl.search.query.question import Question, slot_weight
from memctl.search.ranking.multi_hop import (
    LINK_WEIGHT,
    MAX_SEEDS,
    RANK_DECAY,
    TITLE_LINK_FACTOR,
    added_share,
    name_rarity,
    novelty_factor,
)
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.ranking.signals import GRAPH_SIGNAL
from memctl.search.retrieval.candidates import Candidate, Key

FARTHEST = 0.8
"""A passage whose vector is at a larger cosine distance from the question's starts no walk."""
STEP = 0.5
"""Of a step's strength, a step that follows it has so much."""
BY_NAME = 0.25
"""What a name in the question counts for, next to a passage that is most like it."""
_REACHED = 60
_GONE_ON_FROM = 10
_LONGEST_NAME = 6

WalkPath = tuple[str, ...]
"""Memory ids with the names between that lead from each to the next."""


@dataclass(frozen=True, slots=True)
class WalkResult:
    """What a walk came to."""

    items: list[ScoredCandidate]
    ways: Mapping[Key, WalkPath]


@dataclass(frozen=True, slots=True)
class _Reached:
    """A passage that a walk has come to, or starts from."""

    gain: float
    way: WalkPath


def walk_graph(
    items: Sequence[ScoredCandidate],
    question: Question,
    around: ScoringContext,
    graphs: Mapping[str, NameIndex],
    hops: int = DEFAULT_HOPS,
) -> WalkResult:
    """Return the items with those that walks lead to, best first, and the way to each.

    Args:
        items: What resembles the question.
        question: The question.
        around: Fetches passages, and scores them on the scale of the items.
        graphs: The names of each knowledge base.
        hops: So many steps at most.
    """
    found = {item.candidate.key: item for item in items}
    ways: dict[Key, WalkPath] = {}
    seeds = _seeds(items)
    for kb, index in graphs.items():
        walk = _Walk(kb, index, question, around)
        reached = walk.go([seed for seed in seeds if seed.key[0] == kb], hops)
        found |= around.scored({key: each for key, each in walk.known.items() if key not in found})
        for key, each in reached.items():
            found[key] = boost_score(
                found[key], GRAPH_SIGNAL, LINK_WEIGHT * each.gain * around.spread
            )
            ways[key] = each.way
    return WalkResult(sort_by_score(found.values()), ways)


def _seeds(items: Sequence[ScoredCandidate]) -> list[Candidate]:
    """The passages most like the question, none too far from it by its vector."""
    near = (
        item.candidate
        for item in sort_by_score(items)
        if item.candidate.direction is None or 1 - item.candidate.vector <= FARTHEST
    )
    return list(islice(near, MAX_SEEDS))


class _Walk:
    """A walk through the names of one knowledge base."""

    def __init__(
        self, kb: str, index: NameIndex, question: Question, around: ScoringContext
    ) -> None:
        self._kb = kb
        self._index = index
        self._around = around
        self._weights = {slot: slot_weight(slot, around.statistics) for slot in question.slots}
        self._asked = named_nodes(question.text, index)
        self._at = index.at
        self.known: dict[Key, Candidate] = {}

    def go(self, seeds: Sequence[Candidate], hops: int) -> dict[Key, _Reached]:
        """Return what is reached by at most so many steps; a walk goes on from no seed twice."""
        starts = {
            self._at[seed.key[1]]: _Reached(RANK_DECAY**rank, (seed.key[1],))
            for rank, seed in enumerate(seeds)
            if seed.key[1] in self._at
        }
        self.known = {seed.key: seed for seed in seeds}
        reached: dict[int, _Reached] = {}
        edge = starts
        for hop in range(hops):
            found = self._step(edge)
            if not hop:
                found = _merge_better(found, self._by_question())
            found = self._weighed(found)
            reached = _merge_better(reached, found)
            new = {at: each for at, each in found.items() if at not in starts}
            best = sorted(new, key=lambda at: (-new[at].gain, at))[:_GONE_ON_FROM]
            edge = {at: _Reached(STEP * new[at].gain, new[at].way) for at in best}
        return {(self._kb, self._index.ids[at]): each for at, each in reached.items()}

    def _by_question(self) -> dict[int, _Reached]:
        """The passages that have a name of the question, however it is spelled there."""
        found: dict[int, _Reached] = {}
        for node in self._asked:
            holders = self._index.holders[node]
            gain = BY_NAME * self._rarity(node)
            if gain:
                way = (self._index.nodes[node].name,)
                new = {at: _Reached(gain, (*way, self._index.ids[at])) for at in holders}
                found = _merge_better(found, new)
        return found

    def _step(self, edge: Mapping[int, _Reached]) -> dict[int, _Reached]:
        found: dict[int, _Reached] = {}
        for at, start in edge.items():
            for other, strength, by in self._onward(at):
                gain = start.gain * strength
                if other not in found or gain > found[other].gain:
                    way = (*start.way, by, self._index.ids[other])
                    found[other] = _Reached(gain, way)
        return found

    def _onward(self, at: int) -> Iterable[tuple[int, float, str]]:
        """Yield where a passage leads, how strongly, and by what."""
        index = self._index
        for node in index.named[at]:
            rare = 0.0 if node in self._asked else self._rarity(node)
            if not rare:
                continue
            for other in index.holders[node]:
                if index.documents[other] != index.documents[at]:
                    is_title = node in (index.about[at], index.about[other])
                    yield (
                        other,
                        rare * (TITLE_LINK_FACTOR if is_title else 1.0),
                        index.nodes[node].name,
                    )
        for tie in index.ties.get(at, ()):
            yield tie.target, tie.weight, tie.relation

    def _rarity(self, node: int) -> float:
        """How much a name leads on."""
        return name_rarity(self._index.sharing[node])

    def _weighed(self, found: Mapping[int, _Reached]) -> dict[int, _Reached]:
        """Those best reached that may be hits, by what they add to what their way began with."""
        ranked = sorted(found, key=lambda at: (-found[at].gain, at))[:_REACHED]
        ids = [self._index.ids[at] for at in ranked]
        missing = [id_ for id_ in ids if (self._kb, id_) not in self.known]
        self.known |= self._around.fetch(self._kb, missing)
        return {
            at: _Reached(found[at].gain * self._share(found[at].way), found[at].way)
            for at in ranked
            if (self._kb, self._index.ids[at]) in self.known
        }

    def _share(self, way: WalkPath) -> float:
        first, last = (self.known.get((self._kb, id_)) for id_ in (way[0], way[-1]))
        if first is None or last is None:  # it began with a name
            return 1.0
        return novelty_factor(added_share(first.terms, last, self._weights))


def _merge_better(
    one: Mapping[int, _Reached], other: Mapping[int, _Reached]
) -> dict[int, _Reached]:
    """The better way to each."""
    best = dict(one)
    for at, each in other.items():
        if at not in best or each.gain > best[at].gain:
            best[at] = each
    return best


def named_nodes(text: str, index: NameIndex) -> frozenset[int]:
    """Return the nodes that a question names; an everyday word names nothing without a capital."""
    words = text.split()
    found: set[int] = set()
    for start in range(len(words)):
        for end in range(min(start + _LONGEST_NAME, len(words)), start, -1):
            written = " ".join(words[start:end])
            key = name_key(written)
            is_name = end - start > 1 or written[0].isupper() or not is_everyday(key)
            if is_name and key in index.by_key:
                found.update(index.by_key[key])
                break
    return frozenset(found)
