"""Every link between documents, resolved: where it leads, what leads here, and what leads nowhere.

Knows names and links as documents have them; what a text says is ``page_texts``' to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.graph.page_names import LinkTarget, Page, PageNames, link_key, slug_of

_SHORTEST_ID = 6
_NEAR = 3


class MissingPage(Struct, frozen=True):
    """A name that links use and no document has."""

    name: str
    """As it is written most often."""
    spellings: tuple[str, ...]
    sources: tuple[int, ...]
    """The documents that link to it."""


class LinkMap:
    """The links between some documents, which may be of several knowledge bases.

    Args:
        pages: The documents; links lead to no others.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = sorted(pages, key=lambda page: page.ingested_at, reverse=True)
        self._names = PageNames(self.pages)

    def resolve(self, name: str, source: int) -> LinkTarget | None:
        """Return which document the name in a link of another one means."""
        return self._names.resolve(name, self.pages[source])

    def find(self, reference: str) -> LinkTarget:
        """Return the document with an id, the beginning of one, a title, a slug or an alias.

        Raises:
            NotFoundError: There is none.
            UsageError: Several ids begin so.
        """
        at = self.by_id.get(reference)
        if at is None and len(reference) >= _SHORTEST_ID and reference.startswith("d_"):
            starting = [n for n, page in enumerate(self.pages) if page.id.startswith(reference)]
            if len(starting) > 1:
                such = ", ".join(self.pages[n].id for n in starting[:_NEAR])
                raise UsageError(f"several ids start with {reference!r}", f"such as {such}")
            at = starting[0] if starting else None
        target = LinkTarget(at) if at is not None else self._names.resolve(reference)
        if target is None:
            near = ", ".join(self._names.near(reference, _NEAR))
            hint = f"near titles: {near}" if near else "memctl document list lists them"
            raise NotFoundError(f"there is no document {reference!r}", hint)
        return target

    @cached_property
    def by_id(self) -> Mapping[str, int]:
        """The number of each document by its id, and by those of its parts."""
        return {id_: at for at, page in enumerate(self.pages) for id_ in page.parts}

    def targets(self, source: int) -> Iterator[tuple[str, LinkTarget | None]]:
        """Yield each name that a document links to, with the document that it means."""
        for name in self.pages[source].links:
            yield name, self.resolve(name, source)

    @cached_property
    def backlinks(self) -> Mapping[int, Sequence[int]]:
        """The documents that link to each document, the last ingested first; none to itself."""
        found: dict[int, dict[int, None]] = defaultdict(dict)
        for source in range(len(self.pages)):
            for _, target in self.targets(source):
                if target is not None and target.page != source:
                    found[target.page][source] = None
        return {target: tuple(sources) for target, sources in found.items()}

    def links_to(self, source: int, target: int) -> list[str]:
        """Return the names by which a document links to another one."""
        return [name for name, end in self.targets(source) if end and end.page == target]

    @cached_property
    def missing(self) -> Sequence[MissingPage]:
        """The names that no document has, those linked to by most documents first."""
        found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for source in range(len(self.pages)):
            for name, target in self.targets(source):
                if target is None:
                    found[missing_key(name)][name].append(source)
        missing = [_missing(spellings) for spellings in found.values()]
        return sorted(missing, key=lambda each: (-len(each.sources), each.name))


def missing_key(name: str) -> str:
    """Return what the spellings of a name that no document has are known as one by."""
    return slug_of(name) or link_key(name)


def _missing(spellings: Mapping[str, Sequence[int]]) -> MissingPage:
    ranked = sorted(spellings, key=lambda name: (-len(spellings[name]), name))
    sources = dict.fromkeys(at for name in ranked for at in spellings[name])
    return MissingPage(ranked[0], tuple(ranked), tuple(sorted(sources)))
