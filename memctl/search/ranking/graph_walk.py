"""Graph retrieval: from what resembles the question, along names, to what they lead to.

A walk starts at the few passages that are most like the question, and at what the question names.
Each step goes from a passage by a name in it, or by a relation that consolidation found, to
passages of other documents; the rarer the name, the more the step counts.  A passage is raised by
the best path that leads to it, in proportion to what it adds to the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from memctl.graph.entity_names import is_everyday, name_key
from memctl.graph.name_index import NameIndex
from memctl.search.ranking.multi_hop import (
    LINK_WEIGHT,
    RANK_DECAY,
    TITLE_LINK_FACTOR,
    added_share,
    name_rarity,
    novelty_factor,
)
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.retrieval.candidates import Candidate, Key, slot_weights
from memctl.search.search_plan import SearchDepth

_STEP_DECAY = 0.5
"""Each step counts this much of the one before it."""
_QUESTION_NAME_WEIGHT = 0.25
"""What a name in the question counts, next to the passage most like it."""
_MAX_REACHED = 60
_MAX_CONTINUED = 10
_LONGEST_NAME = 6
"""Words."""

_Path = tuple[str, ...]
"""Memory ids, with the names between them that lead from each to the next."""


class _Reached(Struct, frozen=True):
    """A passage that a walk has reached, or starts from."""

    gain: float
    path: _Path


def walk_graph(items: Sequence[ScoredCandidate], context: ScoringContext) -> list[ScoredCandidate]:
    """Return the items and those that walks lead to, with their paths, best first."""
    found = {item.candidate.key: item for item in items}
    seeds = _seeds(items, context.plan.depth)
    for kb, index in context.load_graphs().items():
        walk = _Walk(kb, index, context)
        reached = walk.run([seed for seed in seeds if seed.key[0] == kb])
        more = {key: each for key, each in walk.candidates.items() if key not in found}
        found |= context.score_more(more)
        for key, each in reached.items():
            item = boost_score(found[key], "graph", LINK_WEIGHT * each.gain * context.spread)
            found[key] = replace(item, path=each.path)
    return sort_by_score(found.values())


def _seeds(items: Sequence[ScoredCandidate], depth: SearchDepth) -> list[Candidate]:
    """Return the passages most like the question, none too far from it by its vector."""
    near = (
        item.candidate
        for item in sort_by_score(items)
        if item.candidate.direction is None or 1 - item.candidate.vector <= depth.seed_distance
    )
    return list(islice(near, depth.graph_seeds))


class _Walk:
    """A walk through the names of one knowledge base."""

    def __init__(self, kb: str, index: NameIndex, context: ScoringContext) -> None:
        self._kb = kb
        self._index = index
        self._context = context
        self._weights = slot_weights(context.question, context.statistics)
        self._question_nodes = named_nodes(context.question.text, index)
        self.candidates: dict[Key, Candidate] = {}
        """The passages read so far."""

    def run(self, seeds: Sequence[Candidate]) -> dict[Key, _Reached]:
        """Return what is reached within the plan's hops; no walk continues from a seed again."""
        starts = {
            self._index.at[seed.key[1]]: _Reached(RANK_DECAY**rank, (seed.key[1],))
            for rank, seed in enumerate(seeds)
            if seed.key[1] in self._index.at
        }
        self.candidates = {seed.key: seed for seed in seeds}
        reached: dict[int, _Reached] = {}
        edge = starts
        for hop in range(self._context.plan.hops):
            steps = self._steps(edge)
            found = _best_of(steps if hop else chain(steps, self._named_in_question()))
            found = self._read_best(found)
            reached = _best_of(chain(reached.items(), found.items()))
            new = {at: each for at, each in found.items() if at not in starts}
            best = sorted(new, key=lambda at: (-new[at].gain, at))[:_MAX_CONTINUED]
            edge = {at: _Reached(_STEP_DECAY * new[at].gain, new[at].path) for at in best}
        return {(self._kb, self._index.ids[at]): each for at, each in reached.items()}

    def _named_in_question(self) -> Iterator[tuple[int, _Reached]]:
        """Yield the passages that have a name of the question, however it is spelled there."""
        for node in self._question_nodes:
            if gain := _QUESTION_NAME_WEIGHT * self._rarity(node):
                name = self._index.nodes[node].name
                for at in self._index.holders[node]:
                    yield at, _Reached(gain, (name, self._index.ids[at]))

    def _steps(self, edge: Mapping[int, _Reached]) -> Iterator[tuple[int, _Reached]]:
        for at, start in edge.items():
            for other, strength, by in self._links(at):
                path = (*start.path, by, self._index.ids[other])
                yield other, _Reached(start.gain * strength, path)

    def _links(self, at: int) -> Iterable[tuple[int, float, str]]:
        """Yield where a passage leads, how strongly, and by which name or relation."""
        index = self._index
        for node in index.named[at]:
            rarity = 0.0 if node in self._question_nodes else self._rarity(node)
            if not rarity:
                continue
            for other in index.holders[node]:
                if index.documents[other] != index.documents[at]:
                    is_title = node in (index.about[at], index.about[other])
                    factor = TITLE_LINK_FACTOR if is_title else 1.0
                    yield other, rarity * factor, index.nodes[node].name
        for tie in index.ties.get(at, ()):
            yield tie.target, tie.weight, tie.relation

    def _rarity(self, node: int) -> float:
        return name_rarity(self._index.sharing[node])

    def _read_best(self, found: Mapping[int, _Reached]) -> dict[int, _Reached]:
        """Return the best reached that are in scope, by what they add to where they began."""
        ranked = sorted(found, key=lambda at: (-found[at].gain, at))[:_MAX_REACHED]
        ids = [self._index.ids[at] for at in ranked]
        missing = [id_ for id_ in ids if (self._kb, id_) not in self.candidates]
        self.candidates |= self._context.fetch(self._kb, missing)
        return {
            at: _Reached(found[at].gain * self._novelty(found[at].path), found[at].path)
            for at in ranked
            if (self._kb, self._index.ids[at]) in self.candidates
        }

    def _novelty(self, path: _Path) -> float:
        first, last = (self.candidates.get((self._kb, id_)) for id_ in (path[0], path[-1]))
        if first is None or last is None:  # it began with a name
            return 1.0
        return novelty_factor(added_share(first.terms, last, self._weights))


def _best_of(reached: Iterable[tuple[int, _Reached]]) -> dict[int, _Reached]:
    """Return the best path to each, the first of those as good."""
    best: dict[int, _Reached] = {}
    for at, each in reached:
        if at not in best or each.gain > best[at].gain:
            best[at] = each
    return best


def named_nodes(text: str, index: NameIndex) -> frozenset[int]:
    """Return the nodes named in a question; an everyday word is no name unless capitalised."""
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
