"""Which memories belong together.

Two memories are linked when they come from different documents of one namespace, mention the same
rare names or rare words, and are about the same thing by their vectors; likeness alone links
nothing, so boilerplate stays apart.  Groups grow by average linkage up to a size, and only in the
neighbourhood of a batch: what lies two links away is the farthest that is looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memctl.consolidation.memory_pool import Pool


class Thresholds(Struct, frozen=True):
    """What counts as belonging together; the defaults were read off real notes and chats."""

    near_duplicate: float = 0.92
    """Cosine from which two memories with the same facts say the same."""
    cosine_with_name: float = 0.20
    """Least cosine of two memories that share a rare name."""
    cosine_with_words: float = 0.55
    """Least cosine of two memories that share rare words alone."""
    rare_words: int = 3
    """How many rare words they must share then."""
    link: float = 0.60
    """Least weight of a link; see `Links.of`."""
    merge: float = 0.35
    """Least average weight between two groups that become one."""
    attach: float = 0.80
    """Least weight of one link by which a memory left alone still joins a group."""
    group_size: int = 12
    neighbours: int = 8
    """How many links of a row are followed."""


_MOST_REMEMBERED = 20_000


class Link(Struct, frozen=True):
    """Two rows of the pool that belong together, ``first < second``."""

    first: int
    second: int
    weight: float
    cosine: float
    names: int
    words: int


class Links:
    """The links of each row of a pool, worked out when they are first asked for."""

    def __init__(self, pool: Pool, thresholds: Thresholds) -> None:
        self._pool = pool
        self.thresholds = thresholds
        self._links_by_row: dict[int, list[Link]] = {}

    def of(self, row: int) -> list[Link]:
        """Return the links of a row, strongest first.

        The weight is the cosine plus 0.25 for each shared rare name (two count) and 0.04 for
        each shared rare word (five count).
        """
        if row not in self._links_by_row:
            if len(self._links_by_row) >= _MOST_REMEMBERED:
                self._links_by_row.clear()
            self._links_by_row[row] = _links(self._pool, row, self.thresholds)
        return self._links_by_row[row]


def _links(pool: Pool, row: int, thresholds: Thresholds) -> list[Link]:
    others, names, words = _count_shared_keys(pool, row)
    apart = (
        (pool.documents[others] != pool.documents[row])
        & (pool.namespaces[others] == pool.namespaces[row])
        & ((names > 0) | (words >= thresholds.rare_words))
    )
    others, names, words = others[apart], names[apart], words[apart]
    cosines = _cosines(pool, row, others)
    weights = cosines + 0.25 * np.minimum(names, 2) + 0.04 * np.minimum(words, 5)
    least = np.where(
        (names > 0) & (words > 0), thresholds.cosine_with_name, thresholds.cosine_with_words
    )
    keep = (cosines >= least) & (weights >= thresholds.link)
    order = np.lexsort((others, -weights))
    return [
        Link(
            min(row, int(others[at])), max(row, int(others[at])), float(weights[at]),
            float(cosines[at]), int(names[at]), int(words[at]),
        )
        for at in order
        if keep[at]
    ]  # fmt: skip


def _count_shared_keys(
    pool: Pool, row: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    by_name, name_counts = pool.names.rows_sharing(row)
    by_word, word_counts = pool.words.rows_sharing(row)
    others = np.union1d(by_name, by_word)
    names = np.zeros(len(others), np.int64)
    words = np.zeros(len(others), np.int64)
    names[np.searchsorted(others, by_name)] = name_counts
    words[np.searchsorted(others, by_word)] = word_counts
    return others, names, words


def _cosines(pool: Pool, row: int, others: NDArray[np.int64]) -> NDArray[np.float32]:
    mine = pool.vectors[row].astype(np.float32)
    theirs = pool.vectors[others].astype(np.float32)
    lengths = np.linalg.norm(theirs, axis=1) * np.linalg.norm(mine)
    cosines: NDArray[np.float32] = theirs @ mine / np.maximum(lengths, 1e-9)
    return cosines


class Neighbourhood(Struct, frozen=True):
    """A batch, what is linked to it within two steps, and the links between all of them."""

    rows: tuple[int, ...]
    links: tuple[Link, ...]


def neighbourhood(links: Links, seeds: Sequence[int]) -> Neighbourhood:
    """Return what lies around a batch of rows."""
    reached = dict.fromkeys(seeds)
    frontier: Iterable[int] = seeds
    for _ in range(2):
        frontier = [other for row in frontier for other in _closest(links, row)]
        reached.update(dict.fromkeys(frontier))
    return Neighbourhood(tuple(sorted(reached)), links_within(links, reached))


def links_within(links: Links, rows: Collection[int]) -> tuple[Link, ...]:
    """Return the links between some rows, each once, in the order of the rows."""
    inside = {
        (link.first, link.second): link
        for row in rows
        for link in links.of(row)
        if link.first in rows and link.second in rows
    }
    return tuple(inside[pair] for pair in sorted(inside))


def _closest(links: Links, row: int) -> Iterator[int]:
    for link in links.of(row)[: links.thresholds.neighbours]:
        yield link.second if link.first == row else link.first


def groups(around: Neighbourhood, thresholds: Thresholds) -> list[tuple[int, ...]]:
    """Return the groups of two rows or more, each sorted, by average linkage.

    A pair without a link counts as 0 in the average, so that one bridge does not join two groups.
    """
    place = {row: at for at, row in enumerate(around.rows)}
    members: list[list[int]] = [[row] for row in around.rows]
    weights = np.zeros((len(members), len(members)))
    for link in around.links:
        a, b = place[link.first], place[link.second]
        weights[a, b] = weights[b, a] = link.weight
    _merge(members, weights, thresholds)
    _attach(members, around.links, thresholds)
    return sorted(tuple(sorted(rows)) for rows in members if len(rows) > 1)


def _merge(members: list[list[int]], weights: NDArray[np.float64], thresholds: Thresholds) -> None:
    """Join the closest two groups until none are close enough; emptied places stay."""
    while weights.size:
        a, b = divmod(int(weights.argmax()), len(members))
        if weights[a, b] < thresholds.merge:
            return
        if len(members[a]) + len(members[b]) > thresholds.group_size:
            weights[a, b] = weights[b, a] = 0.0
            continue
        joined = weights[a] * len(members[a]) + weights[b] * len(members[b])
        joined /= len(members[a]) + len(members[b])
        joined[a] = 0.0
        weights[a], weights[:, a] = joined, joined
        weights[b], weights[:, b] = 0.0, 0.0
        members[a] += members[b]
        members[b] = []


def _attach(members: list[list[int]], links: Iterable[Link], thresholds: Thresholds) -> None:
    """Let rows left alone join the group that they have a strong link into."""
    group_of = {row: group for group in members for row in group}
    alone = {group[0] for group in members if len(group) == 1}
    for link in sorted(links, key=lambda link: (-link.weight, link.first, link.second)):
        for row, other in ((link.first, link.second), (link.second, link.first)):
            room = len(group_of[other]) < thresholds.group_size
            if link.weight >= thresholds.attach and row in alone and other not in alone and room:
                group_of[row].remove(row)
                group_of[other].append(row)
                group_of[row] = group_of[other]
                alone.discard(row)
