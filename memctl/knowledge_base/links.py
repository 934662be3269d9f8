"""Links between the documents of one or several knowledge bases, kept in memory while they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.knowledge_base.resources import Resources
    from memctl.links.link_map import LinkMap
    from memctl.links.link_views import LinkedTables, PageLinks

K = TypeVar("K")
V = TypeVar("V")
_NO_FILTERS = Filters()
_MOST_LIMITS = 8
"""What is made is kept for this many limits, such as those of different users."""


class Links:
    """What links documents.

    Args:
        resources: The knowledge bases whose documents are looked at; links lead to no others.
    """

    def __init__(self, resources: Callable[[], Sequence[Resources]]) -> None:
        self._resources = resources
        self._tables: dict[tuple[str, Filters], LinkedTables] = {}
        self._maps: dict[Filters, tuple[tuple[LinkedTables, ...], LinkMap]] = {}

    def view(self, filters: Filters = _NO_FILTERS) -> PageLinks:
        """Return the links between documents as they are now.

        Args:
            filters: What the documents are limited to.
        """
        from memctl.links.link_map import LinkMap
        from memctl.links.link_views import PageLinks

        tables = tuple(self._current(base, filters) for base in self._resources())
        known = self._maps.get(filters)
        if known is None or known[0] != tables:
            pages = [page for each in tables for page in each.pages]
            known = _keep(self._maps, filters, (tables, LinkMap(pages)))
        return PageLinks(known[1], {each.kb: each for each in tables})

    def _current(self, base: Resources, filters: Filters) -> LinkedTables:
        from memctl.links.link_views import LinkedTables

        snapshot, readable = base.snapshot(), base.readable(filters)
        key = base.name, readable
        known = self._tables.get(key)
        if known is None or known.snapshot.versions != snapshot.versions:
            made = LinkedTables(base.name, snapshot, readable, base.clock)
            known = _keep(self._tables, key, made)
        known.snapshot = snapshot  # which is held while it is read from
        known.vectors_are = base.settings.embedder, base.settings.dimension
        return known


def _keep(kept: dict[K, V], key: K, value: V) -> V:
    """Keep the latest values, of at most this many keys."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _MOST_LIMITS:
        kept.pop(next(iter(kept)))
    return value
