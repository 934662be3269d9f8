"""Links between the documents of one or several knowledge bases, kept in memory while they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.graph.page_names import FormerTitles, Page
    from memctl.knowledge_base.resources import Resources
    from memctl.links.link_map import LinkMap
    from memctl.links.link_views import LinkedTables, PageLinks
    from memctl.links.page_texts import PageTexts
    from memctl.links.related_pages import PageVectors
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Snapshot

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
        self._documents: dict[tuple[str, Filters], _Documents] = {}
        self._maps: dict[Filters, tuple[tuple[_Documents, ...], LinkMap]] = {}

    def view(self, filters: Filters = _NO_FILTERS) -> PageLinks:
        """Return the links between documents as they are now.

        Args:
            filters: What the documents are limited to.
        """
        from memctl.links.link_map import LinkMap
        from memctl.links.link_views import PageLinks

        found = [self._current(base, filters) for base in self._resources()]
        documents = tuple(kept for kept, _ in found)
        known = self._maps.get(filters)
        if known is None or known[0] != documents:
            pages = [page for kept in documents for page in kept.pages]
            known = _keep(self._maps, filters, (documents, LinkMap(pages)))
        tables = [kept.tables(snapshot) for kept, snapshot in found]
        return PageLinks(known[1], {each.kb: each for each in tables})

    def _current(self, base: Resources, filters: Filters) -> tuple[_Documents, Snapshot]:
        snapshot, readable = base.snapshot(), base.readable(filters)
        key = base.name, readable
        known = self._documents.get(key)
        if known is None or known.versions != snapshot.versions:
            known = _keep(self._documents, key, _Documents(base, snapshot, readable))
        return known, snapshot


def _keep(kept: dict[K, V], key: K, value: V) -> V:
    """Keep the latest values, of at most this many keys."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _MOST_LIMITS:
        kept.pop(next(iter(kept)))
    return value


class _Documents:
    """The documents of one knowledge base at one moment, with what is made of them when needed."""

    def __init__(self, base: Resources, snapshot: Snapshot, filters: Filters) -> None:
        from memctl.graph.page_names import read_pages

        self.versions = snapshot.versions
        self._base = base
        self._filters = filters
        self._snapshot = snapshot
        self.pages: list[Page] = read_pages(base.name, snapshot, self._where(snapshot))

    def _where(self, snapshot: Snapshot) -> Expr:
        from memctl.store.tables.filter_expressions import document_filter
        from memctl.store.tables.metadata_filters import metadata_condition

        condition = metadata_condition(self._filters, "documents", [snapshot])
        return document_filter(self._filters) & condition

    @cached_property
    def texts(self) -> PageTexts:
        """Their texts."""
        from memctl.links.page_texts import PageTexts

        return PageTexts(self._snapshot, self._where(self._snapshot))

    @cached_property
    def vectors(self) -> PageVectors:
        """Their vectors."""
        from memctl.links.related_pages import read_vectors
        from memctl.store.tables.filter_expressions import memory_filter
        from memctl.store.tables.metadata_filters import metadata_condition

        condition = memory_filter(self._filters, self._base.clock())
        condition &= metadata_condition(self._filters, "memories", [self._snapshot])
        return read_vectors(self._snapshot, condition)

    @cached_property
    def former(self) -> FormerTitles:
        """Titles that documents had."""
        from memctl.graph.page_names import FormerTitles
        from memctl.store.tables.filter_expressions import col, document_filter

        every = replace(self._filters, as_of=self._base.clock())
        ended = col("status").is_in(("superseded", "gone")) & (col("part") == 0)
        columns = ["id", "title", "superseded_by"]
        rows = self._snapshot.scan("documents", document_filter(every) & ended, columns)
        return FormerTitles(rows.to_pylist())

    def tables(self, snapshot: Snapshot) -> LinkedTables:
        """Return how they are read.

        Args:
            snapshot: The tables as they are, with the same versions as when this was made.
        """
        from memctl.links.link_views import LinkedTables

        self._snapshot = snapshot  # which is held while it is read from
        settings = self._base.settings
        return LinkedTables(
            kb=self._base.name,
            snapshot=snapshot,
            load_texts=lambda: self.texts,
            load_vectors=lambda: self.vectors,
            vectors_are=(settings.embedder, settings.dimension),
            load_former=lambda: self.former,
        )
