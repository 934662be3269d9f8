"""Bridges: a passage that names what another one is about, or somebody who is named there too.

A question over two hops ("the father of the painter of ...") shares words with the first passage
alone; what leads on to the second is a name in the first.  A name that few passages share and the
question itself lacks is followed from the best hits, and what it leads to counts the more, the
more it tells of what the first passage leaves open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import log2

from memctl.retrieve.candidates import Candidate, Key
from memctl.retrieve.collapse import Collapsed, ordered, raised
from memctl.retrieve.names import Phrase, phrases_of, title_phrases
from memctl.retrieve.question import Question, Slot, slot_weight
from memctl.retrieve.surroundings import Surroundings

FOLLOWED = 5
"""So many of the best hits are followed, each less than the one before it."""
FADING = 0.8
WEIGHT = 4.0
"""In standard deviations of the candidates' scores, for a name of two passages."""
OF_TITLE = 2.5
"""A name that is what one of the passages is about counts so many times."""
OPEN_SHARE = 0.7
"""Share of the weight that depends on what the passage adds to what is told of the question."""
MUCH_ADDED = 0.25
"""Share of the question's content that counts as much added."""
MOST_SHARING = 12
"""A name in more documents leads nowhere."""
_MOST_TERMS = 48
_FETCHED = 200
_IN_ITEMS = 120


def with_bridges(
    items: Sequence[Collapsed], question: Question, around: Surroundings
) -> list[Collapsed]:
    """Return the items with what the names in the best of them lead to."""
    seeds = [item for item in ordered(items) if item.candidate.level == "evidence"][:FOLLOWED]
    names = _new_names(seeds, around)
    if not names:
        return list(items)
    known = {item.candidate.key: item for item in items}
    fetched = around.with_terms(_rarest_terms(names, around), _FETCHED)
    near = [item.candidate for item in ordered(items)[:_IN_ITEMS]]
    pool = {candidate.key: candidate for candidate in near if candidate.level == "evidence"}
    pool = fetched | pool
    gains = _gains(seeds, names, pool, question, around)
    new = around.scored({key: pool[key] for key in gains if key not in known})
    return [
        raised(item, "bridge", gains.get(item.candidate.key, 0.0) * around.spread)
        for item in (known | new).values()
    ]


def _new_names(seeds: Sequence[Collapsed], around: Surroundings) -> Mapping[Key, Sequence[Phrase]]:
    """The names in each seed that the question lacks."""
    asked = around.question_terms
    found = {
        seed.candidate.key: [
            phrase
            for phrase in phrases_of(seed.candidate, around.languages)
            if not asked.issuperset(phrase)
        ]
        for seed in seeds
    }
    return {key: phrases for key, phrases in found.items() if phrases}


def _rarest_terms(names: Mapping[Key, Sequence[Phrase]], around: Surroundings) -> list[str]:
    terms = {term for phrases in names.values() for phrase in phrases for term in phrase}
    return sorted(terms, key=lambda term: (-around.statistics.idf(term), term))[:_MOST_TERMS]


def _gains(
    seeds: Sequence[Collapsed],
    names: Mapping[Key, Sequence[Phrase]],
    pool: Mapping[Key, Candidate],
    question: Question,
    around: Surroundings,
) -> dict[Key, float]:
    """The best that any seed gives to each passage that it leads to."""
    candidates = list(pool.values())
    holders = _holders({phrase for each in names.values() for phrase in each}, candidates)
    titles = [frozenset(title_phrases(each, around.languages)) for each in candidates]
    weights = {slot: slot_weight(slot, around.statistics) for slot in question.slots}
    gains: dict[Key, float] = {}
    for rank, seed in enumerate(seeds):
        links = _links(seed.candidate, names, candidates, holders, titles, around)
        for at, link in links.items():
            added = _added(seed.candidate, candidates[at], weights)
            share = (1 - OPEN_SHARE) + 2 * OPEN_SHARE * min(added / MUCH_ADDED, 1.0)
            gain = WEIGHT * link * FADING**rank * share
            key = candidates[at].key
            gains[key] = max(gain, gains.get(key, 0.0))
    return gains


def _links(
    seed: Candidate,
    names: Mapping[Key, Sequence[Phrase]],
    candidates: Sequence[Candidate],
    holders: Mapping[Phrase, Sequence[int]],
    titles: Sequence[frozenset[Phrase]],
    around: Surroundings,
) -> dict[int, float]:
    """How strongly a seed is linked with others of the candidates, by their number."""
    documents = [each.row["document_id"] or each.key[1] for each in candidates]
    about = frozenset(title_phrases(seed, around.languages))
    links: dict[int, float] = {}
    for phrase in names.get(seed.key, ()):
        sharing = {documents[at] for at in holders[phrase]}
        if not 2 <= len(sharing) <= MOST_SHARING:
            continue
        rarity = 1 / log2(1 + len(sharing))
        for at in holders[phrase]:
            if documents[at] != seed.row["document_id"]:
                is_title = phrase in about or phrase in titles[at]
                links[at] = max(links.get(at, 0.0), rarity * (OF_TITLE if is_title else 1.0))
    return links


def _added(seed: Candidate, other: Candidate, weights: Mapping[Slot, float]) -> float:
    """Which share of the question's content the other has and the seed has not."""
    total = sum(weights.values())
    added = sum(
        weight
        for slot, weight in weights.items()
        if seed.terms.isdisjoint(slot) and not other.terms.isdisjoint(slot)
    )
    return added / total if total else 0.0


def _holders(phrases: Iterable[Phrase], candidates: Sequence[Candidate]) -> dict[Phrase, list[int]]:
    """The numbers of the candidates in which each phrase stands, found in one long text."""
    texts = [f" {candidate.row['search_text']} \n" for candidate in candidates]
    ends = list(accumulate(map(len, texts)))
    whole = "".join(texts)
    holders: dict[Phrase, list[int]] = {}
    for phrase in phrases:
        needle = f" {' '.join(phrase)} "
        found = holders[phrase] = []
        at = whole.find(needle)
        while at >= 0:
            number = bisect_right(ends, at)
            found.append(number)
            at = whole.find(needle, ends[number])
    return holders
