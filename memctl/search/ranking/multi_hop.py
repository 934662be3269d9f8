"""Bridges: a passage that names what another one is about, or somebody who is named there too.

A question over two hops ("the father of the painter of ...") shares words with the first passage
alone; what leads on to the second is a name in the first.  A name that few passages share and the
question itself lacks is followed from the best hits, and what it leads to counts the more, the
more it tells of what the first passage leaves open: in the same words, or in others like them
("her sister" where the "sibling" is asked for).  That each hop has a vector of its own to look by
is from dense retrieval over several hops (Xiong et al. 2021).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log2

import numpy as np

from memctl.language.term_analysis import terms
from memctl.search.query.question import Question, Slot, slot_weight
from memctl.search.ranking.fusion import zscore
from memctl.search.ranking.scored_candidates import ScoredCandidate, boost_score, sort_by_score
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.retrieval.candidates import Candidate, Key

MAX_SEEDS = 5
"""So many of the best hits are followed, each less than the one before it."""
RANK_DECAY = 0.8
LINK_WEIGHT = 4.0
"""In standard deviations of the candidates' scores, for a name of two passages."""
TITLE_LINK_FACTOR = 4.0
"""A name that is what one of the passages is about counts so many times."""
NOVELTY_SHARE = 0.7
"""Share of the weight that depends on what the passage adds to what is told of the question."""
MUCH_ADDED = 0.25
"""Share of the question's content that counts as much added."""
BEARING = 0.75
"""Of that, for every standard deviation that a passage is nearer to what is left of the question
than what the names lead to is on average."""
_FAIRLY_NEAR = 0.5
"""So many standard deviations say nothing."""
SINGLE = 0.8
"""A name of one word counts less: it is often only the first name of several people."""
MOST_SHARING = 12
"""A name in more documents leads nowhere."""
_MOST_TERMS = 32
_FETCHED = 60
_IN_ITEMS = 120


def boost_multi_hop(
    items: Sequence[ScoredCandidate], question: Question, around: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items with what the names in the best of them lead to.

    Nothing is followed for a question that has no content but a time: there is nothing to add.
    """
    if len(question.times) == len(question.slots):
        return list(items)
    seeds = [item for item in sort_by_score(items) if item.candidate.level == "evidence"][
        :MAX_SEEDS
    ]
    names = _new_names(seeds, around)
    if not names:
        return list(items)
    known = {item.candidate.key: item for item in items}
    fetched = around.with_terms(_rarest_terms(names, around), _FETCHED)
    near = [item.candidate for item in sort_by_score(items)[:_IN_ITEMS]]
    passages = {each.key: each for each in near if each.level == "evidence"}
    passages = fetched | passages
    gains = _gains(seeds, names, _Pool(passages.values(), around), question, around)
    new = around.scored({key: passages[key] for key in gains if key not in known})
    return [
        boost_score(item, "bridge", gains.get(item.candidate.key, 0.0) * around.spread)
        for item in (known | new).values()
    ]


def _new_names(
    seeds: Sequence[ScoredCandidate], around: ScoringContext
) -> Mapping[Key, Sequence[Phrase]]:
    """The names in each seed that the question lacks."""
    asked = around.question_terms
    found = {
        seed.candidate.key: [
            phrase
            for phrase in name_phrases(seed.candidate, around.languages)
            if not asked.issuperset(phrase)
        ]
        for seed in seeds
    }
    return {key: phrases for key, phrases in found.items() if phrases}


def _rarest_terms(names: Mapping[Key, Sequence[Phrase]], around: ScoringContext) -> list[str]:
    """The rarest term of each name, the rarest of all first: it finds whatever has the name."""
    idf = around.statistics.idf
    terms = {max(phrase, key=idf) for phrases in names.values() for phrase in phrases}
    return sorted(terms, key=lambda term: (-idf(term), term))[:_MOST_TERMS]


class _Pool:
    """The passages that may be linked, with the names that they have."""

    def __init__(self, candidates: Iterable[Candidate], around: ScoringContext) -> None:
        self.candidates = list(candidates)
        self._languages = around.languages
        self._documents = [each.row["document_id"] or each.key[1] for each in self.candidates]
        self._titles = [title_phrases(each, around.languages) for each in self.candidates]
        texts = [f" {each.row['search_text']} \n" for each in self.candidates]
        self._ends = list(accumulate(map(len, texts)))
        self._text = "".join(texts)
        self._holders: dict[Phrase, list[int]] = {}

    def linked(self, seed: Candidate, phrases: Iterable[Phrase]) -> dict[int, float]:
        """Return the numbers of those that share some names with a seed, and how strongly."""
        own = seed.row["document_id"] or seed.key[1]
        about = title_phrases(seed, self._languages)
        links: dict[int, float] = {}
        for phrase in phrases:
            holders = self._with(phrase)
            sharing = {own, *(self._documents[at] for at in holders)}
            rare = name_rarity(len(sharing)) * (1.0 if len(phrase) > 1 else SINGLE)
            if not rare:
                continue
            for at in holders:
                if self._documents[at] != own:
                    is_title = phrase in about or phrase in self._titles[at]
                    links[at] = max(
                        links.get(at, 0.0), rare * (TITLE_LINK_FACTOR if is_title else 1.0)
                    )
        return links

    def _with(self, phrase: Phrase) -> list[int]:
        """The numbers of the passages that a phrase stands in, found in all of them at once."""
        known = self._holders.get(phrase)
        if known is not None:
            return known
        needle = spaced_terms(phrase)
        found = self._holders[phrase] = []
        at = self._text.find(needle)
        while at >= 0:
            number = bisect_right(self._ends, at)
            found.append(number)
            at = self._text.find(needle, self._ends[number])
        return found


@dataclass(frozen=True, slots=True)
class _Hop:
    """A way from one of the best hits to another passage."""

    rank: int
    """Of the hit, from 0."""
    to: Candidate
    link: float
    added: float
    cosine: float
    """Of the passage with what the hit leaves open of the question; 0 where there is none."""


def _gains(
    seeds: Sequence[ScoredCandidate],
    names: Mapping[Key, Sequence[Phrase]],
    pool: _Pool,
    question: Question,
    around: ScoringContext,
) -> dict[Key, float]:
    """The best that any seed gives to each passage that it leads to.

    Where one passage has all of the question, nothing of it is open any more after that one.
    """
    weights = {slot: slot_weight(slot, around.statistics) for slot in question.slots}
    ways: list[_Hop] = []
    told: frozenset[str] = frozenset()
    for rank, seed in enumerate(seeds):
        own = seed.candidate.terms
        told = own if _has_all(own, question) else told
        phrases = names.get(seed.candidate.key, ())
        ways += _hops_from(rank, seed.candidate, phrases, told | own, pool, weights, around)
    bearing = zscore(np.array([way.cosine for way in ways]))
    gains: dict[Key, float] = {}
    for way, nearer in zip(ways, bearing.tolist(), strict=True):
        gain = LINK_WEIGHT * way.link * RANK_DECAY**way.rank * novelty_factor(way.added, nearer)
        gains[way.to.key] = max(gain, gains.get(way.to.key, 0.0))
    return gains


def _has_all(terms: Set[str], question: Question) -> bool:
    """Tell whether a passage has everything that the question speaks of."""
    return bool(question.slots) and not any(map(terms.isdisjoint, question.slots))


def _hops_from(
    rank: int,
    seed: Candidate,
    phrases: Iterable[Phrase],
    told: frozenset[str],
    pool: _Pool,
    weights: Mapping[Slot, float],
    around: ScoringContext,
) -> Iterator[_Hop]:
    links = pool.linked(seed, phrases)
    others = [pool.candidates[at] for at in links]
    near = around.near_what_is_left(told, others)
    for other, link, cosine in zip(others, links.values(), near, strict=True):
        yield _Hop(rank, other, link, added_share(told, other, weights), cosine)


def name_rarity(documents: int) -> float:
    """Return how much a name leads on that so many documents have: nothing for one or for many."""
    return 1 / log2(1 + documents) if 2 <= documents <= MOST_SHARING else 0.0


def novelty_factor(share: float, nearer: float = 0.0) -> float:
    """Return what a link counts for that leads to what the question still leaves open.

    Args:
        share: Of the question's content that is new there.
        nearer: By how many standard deviations it is nearer to what was left of the question
            than others are.
    """
    told = share / MUCH_ADDED + BEARING * max(nearer - _FAIRLY_NEAR, 0.0)
    return (1 - NOVELTY_SHARE) + 2 * NOVELTY_SHARE * min(told, 1.0)


def added_share(told: frozenset[str], other: Candidate, weights: Mapping[Slot, float]) -> float:
    """Return which share of the question's content the other has that is not told yet."""
    total = sum(weights.values())
    added = sum(
        weight
        for slot, weight in weights.items()
        if told.isdisjoint(slot) and not other.terms.isdisjoint(slot)
    )
    return added / total if total else 0.0


_LONGEST = 6
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")

Phrase = tuple[str, ...]


def name_phrases(candidate: Candidate, languages: Sequence[str]) -> dict[Phrase, None]:
    """Return the names in a passage and its title, each as terms that stand side by side."""
    named = dict.fromkeys(title_phrases(candidate, languages))
    for name in candidate.row["entities"] or ():
        named |= dict.fromkeys(_phrases(name, tuple(languages)))
    return named


def title_phrases(candidate: Candidate, languages: Sequence[str]) -> tuple[Phrase, ...]:
    """Return a passage's title, without what stands in brackets, as a name in each language."""
    return _title_phrases(candidate.row["title"] or "", tuple(languages))


def spaced_terms(phrase: Iterable[str]) -> str:
    """Return terms as they are looked for in others that stand side by side, spaces around."""
    return f" {' '.join(phrase)} "


@lru_cache(maxsize=20_000)
def _title_phrases(title: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    return _phrases(_IN_BRACKETS.sub("", title), languages)


@lru_cache(maxsize=20_000)
def _phrases(name: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    found = dict.fromkeys(tuple(terms(name, language)) for language in languages)
    return tuple(phrase for phrase in found if 0 < len(phrase) <= _LONGEST)
