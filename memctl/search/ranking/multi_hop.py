"""Multi-hop links: passages that a name in a good hit leads to.

A question over two hops ("the father of the painter of ...") shares words with the first passage
alone; what leads on to the second is a name in the first.  Names that few documents share and the
question lacks are followed from the best hits.  What they lead to counts more, the more it adds to
what the first passage covers of the question: in the question's words, or in similar ones ("her
sister" for "sibling").  That each hop searches by a vector of its own is from multi-hop dense
retrieval (Xiong et al. 2021).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import log2

import numpy as np
from msgspec import Struct

from memctl.language.term_analysis import terms
from memctl.search.query.question import Slot
from memctl.search.ranking.scored_candidates import (
    ScoredCandidate,
    boost_score,
    sort_by_score,
    zscore,
)
from memctl.search.ranking.scoring_context import ScoringContext
from memctl.search.retrieval.candidates import Candidate, Key, slot_weights

MAX_SEEDS = 5
"""Number of the best hits that are followed."""
RANK_DECAY = 0.8
"""Each of them counts this much of the one before it."""
LINK_WEIGHT = 4.0
"""In standard deviations of the candidates' scores, for a name that two documents share."""
TITLE_LINK_FACTOR = 4.0
"""A name that is the title of one of the passages counts four times."""
_SINGLE_WORD_FACTOR = 0.8
"""A name of one word counts less: it is often the first name of several people."""
_MAX_SHARING = 12
"""A name in more documents leads nowhere."""
_NOVELTY_SHARE = 0.7
"""Share of the weight that depends on what a passage adds to what is covered of the question."""
_MUCH_ADDED = 0.25
"""Share of the question's content from which on more counts the same."""
_REMAINDER_WEIGHT = 0.75
"""Counts as added for every standard deviation that a passage is nearer to the remainder of the
question than the average of what the names lead to."""
_REMAINDER_FLOOR = 0.5
"""Half a standard deviation nearer counts nothing."""
_MAX_TERMS = 32
_MAX_FETCHED = 60
_MAX_NEAR = 120
_LONGEST_NAME = 6
"""Terms."""
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")

Phrase = tuple[str, ...]


def boost_multi_hop(
    items: Sequence[ScoredCandidate], context: ScoringContext
) -> list[ScoredCandidate]:
    """Return the items, and what the names in the best of them lead to, raised.

    Nothing is followed where the question has no content but a period: nothing can be added.
    """
    question = context.question
    if len(question.times) == len(question.slots):
        return list(items)
    ranked = sort_by_score(items)
    seeds = [item.candidate for item in ranked if item.candidate.level == "evidence"][:MAX_SEEDS]
    names = _new_names(seeds, context)
    if not names:
        return list(items)
    known = {item.candidate.key: item for item in items}
    passages = context.with_terms(_rarest_terms(names, context), _MAX_FETCHED)
    near = [item.candidate for item in ranked[:_MAX_NEAR]]
    passages |= {each.key: each for each in near if each.level == "evidence"}
    gains = _gains(seeds, names, _PassagePool(passages.values(), context), context)
    new = context.score_more({key: passages[key] for key in gains if key not in known})
    return [
        boost_score(item, "bridge", gains.get(item.candidate.key, 0.0) * context.spread)
        for item in (known | new).values()
    ]


def name_rarity(documents: int) -> float:
    """Return the weight of a name by how many documents have it: 0 for one, and for many."""
    return 1 / log2(1 + documents) if 2 <= documents <= _MAX_SHARING else 0.0


def novelty_factor(share: float, nearer: float = 0.0) -> float:
    """Return the factor for a link to a passage, by what the passage adds.

    Args:
        share: Share of the question's content that is new there.
        nearer: By how many standard deviations it is nearer to the remainder of the question than
            the others.
    """
    added = share / _MUCH_ADDED + _REMAINDER_WEIGHT * max(nearer - _REMAINDER_FLOOR, 0.0)
    return (1 - _NOVELTY_SHARE) + 2 * _NOVELTY_SHARE * min(added, 1.0)


def added_share(covered: frozenset[str], other: Candidate, weights: Mapping[Slot, float]) -> float:
    """Return the share of the question's content that a passage adds to what is covered."""
    total = sum(weights.values())
    added = sum(
        weight
        for slot, weight in weights.items()
        if covered.isdisjoint(slot) and not other.terms.isdisjoint(slot)
    )
    return added / total if total else 0.0


def _new_names(
    seeds: Sequence[Candidate], context: ScoringContext
) -> Mapping[Key, Sequence[Phrase]]:
    """Return the names in each seed that the question lacks."""
    asked = frozenset(context.question.terms)
    found = {
        seed.key: [
            phrase
            for phrase in name_phrases(seed, context.languages)
            if not asked.issuperset(phrase)
        ]
        for seed in seeds
    }
    return {key: phrases for key, phrases in found.items() if phrases}


def _rarest_terms(names: Mapping[Key, Sequence[Phrase]], context: ScoringContext) -> list[str]:
    """Return the rarest term of each name, the rarest of all first: it finds all that has it."""
    idf = context.statistics.idf
    rarest = {max(phrase, key=idf) for phrases in names.values() for phrase in phrases}
    return sorted(rarest, key=lambda term: (-idf(term), term))[:_MAX_TERMS]


class _PassagePool:
    """The passages that links may lead to, searched for names all at once."""

    def __init__(self, candidates: Iterable[Candidate], context: ScoringContext) -> None:
        self.candidates = list(candidates)
        self._languages = context.languages
        self._documents = [each.row["document_id"] or each.key[1] for each in self.candidates]
        self._titles = [title_phrases(each, context.languages) for each in self.candidates]
        texts = [f" {each.row['search_text']} \n" for each in self.candidates]
        self._ends = list(accumulate(map(len, texts)))
        self._text = "".join(texts)
        self._holders: dict[Phrase, list[int]] = {}

    def links(self, seed: Candidate, phrases: Iterable[Phrase]) -> dict[int, float]:
        """Return the numbers of the passages that share names with a seed, with the weights."""
        own = seed.row["document_id"] or seed.key[1]
        seed_titles = title_phrases(seed, self._languages)
        links: dict[int, float] = {}
        for phrase in phrases:
            holders = self._with(phrase)
            sharing = {own, *(self._documents[at] for at in holders)}
            weight = name_rarity(len(sharing)) * (1.0 if len(phrase) > 1 else _SINGLE_WORD_FACTOR)
            if not weight:
                continue
            for at in holders:
                if self._documents[at] != own:
                    is_title = phrase in seed_titles or phrase in self._titles[at]
                    link = weight * (TITLE_LINK_FACTOR if is_title else 1.0)
                    links[at] = max(links.get(at, 0.0), link)
        return links

    def _with(self, phrase: Phrase) -> list[int]:
        """Return the numbers of the passages that have a phrase."""
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


class _Hop(Struct, frozen=True):
    """A step from one of the best hits to another passage."""

    rank: int
    """Of the hit, from 0."""
    to: Candidate
    link: float
    added: float
    cosine: float
    """Of the passage with the remainder of the question; 0 where there is none."""


def _gains(
    seeds: Sequence[Candidate],
    names: Mapping[Key, Sequence[Phrase]],
    pool: _PassagePool,
    context: ScoringContext,
) -> dict[Key, float]:
    """Return the best gain that any seed gives to each passage it leads to.

    A seed that covers all of the question leaves nothing open for the seeds after it.
    """
    slots = context.question.slots
    weights = slot_weights(context.question, context.statistics)
    hops: list[_Hop] = []
    covered: frozenset[str] = frozenset()
    for rank, seed in enumerate(seeds):
        if slots and not any(map(seed.terms.isdisjoint, slots)):
            covered = seed.terms
        phrases = names.get(seed.key, ())
        hops += _hops_from(rank, seed, phrases, covered | seed.terms, pool, weights, context)
    nearness = zscore(np.array([hop.cosine for hop in hops]))
    gains: dict[Key, float] = {}
    for hop, nearer in zip(hops, nearness.tolist(), strict=True):
        gain = LINK_WEIGHT * hop.link * RANK_DECAY**hop.rank * novelty_factor(hop.added, nearer)
        gains[hop.to.key] = max(gain, gains.get(hop.to.key, 0.0))
    return gains


def _hops_from(
    rank: int,
    seed: Candidate,
    phrases: Iterable[Phrase],
    covered: frozenset[str],
    pool: _PassagePool,
    weights: Mapping[Slot, float],
    context: ScoringContext,
) -> Iterator[_Hop]:
    links = pool.links(seed, phrases)
    others = [pool.candidates[at] for at in links]
    near = context.cosines_with_remainder(covered, others)
    for other, link, cosine in zip(others, links.values(), near, strict=True):
        yield _Hop(rank, other, link, added_share(covered, other, weights), cosine)


# --- names in passages ---------------------------------------------------------------------------


def name_phrases(candidate: Candidate, languages: Sequence[str]) -> dict[Phrase, None]:
    """Return the names in a passage and its title, each as the terms that would find it."""
    named = dict.fromkeys(title_phrases(candidate, languages))
    for name in candidate.row["entities"] or ():
        named |= dict.fromkeys(_phrases(name, tuple(languages)))
    return named


def title_phrases(candidate: Candidate, languages: Sequence[str]) -> tuple[Phrase, ...]:
    """Return a passage's title, without what is in brackets, as a name in each language."""
    return _title_phrases(candidate.row["title"] or "", tuple(languages))


def spaced_terms(phrase: Iterable[str]) -> str:
    """Return terms as they are searched for in a text of terms, with spaces around them."""
    return f" {' '.join(phrase)} "


@lru_cache(maxsize=20_000)
def _title_phrases(title: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    return _phrases(_IN_BRACKETS.sub("", title), languages)


@lru_cache(maxsize=20_000)
def _phrases(name: str, languages: tuple[str, ...]) -> tuple[Phrase, ...]:
    found = dict.fromkeys(tuple(terms(name, language)) for language in languages)
    return tuple(phrase for phrase in found if 0 < len(phrase) <= _LONGEST_NAME)
