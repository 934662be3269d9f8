"""The links of documents as people and programs ask for them: pages with titles and excerpts.

Reads of the tables only what is shown; the map of all links is given to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memctl.graph.page_names import FormerTitles, Page, read_pages
from memctl.ids import root_id
from memctl.language.inline_tags import PageLink, page_links
from memctl.links.link_map import LinkMap, missing_key
from memctl.links.link_records import (
    Backlink,
    LinkCheck,
    LinkProblem,
    LinkStatus,
    Mention,
    MissingLink,
    OutgoingLink,
    PageReference,
    PageView,
    Place,
    Problem,
    RelatedPage,
)
from memctl.links.page_texts import (
    PageTexts,
    find_mentions,
    names_to_find,
    part_key,
    parts_of,
    place_in,
    summary_excerpt,
)
from memctl.records import Filters, record_like
from memctl.store.tables.filter_expressions import Expr, both, col, document_filter, memory_filter
from memctl.store.tables.metadata_filters import metadata_condition

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from memctl.store.tables.snapshot import Snapshot

_Standing = tuple[str, PageLink]
"""A link, and the part of a document that it stands in."""
MAX_MENTIONS = 20
_TEXTS_A_READ = 32
_MAX_PLACES = 20
"""An excerpt tells where a page is linked or mentioned at most this often."""
_NOTE = "markdown"


V = TypeVar("V", bound=PageView)


class LinkedTables:
    """The documents of one knowledge base at one moment, with what is made of them when needed.

    Args:
        kb: Its name.
        snapshot: Its tables; others with the same versions may take their place.
        filters: What the documents are limited to.
        clock: Returns the current time.
    """

    vectors_are: tuple[str, int] = ("", 0)
    """What its vectors are from; only those from the same can be compared."""

    def __init__(
        self, kb: str, snapshot: Snapshot, filters: Filters, clock: Callable[[], datetime]
    ) -> None:
        self.kb = kb
        self.snapshot = snapshot
        self._filters = filters
        self._clock = clock
        self.pages: list[Page] = read_pages(kb, snapshot, self._where())

    def _where(self) -> Expr:
        condition = metadata_condition(self._filters, "documents", [self.snapshot])
        return document_filter(self._filters) & condition

    @cached_property
    def texts(self) -> PageTexts:
        """Their texts."""
        return PageTexts(self.snapshot, self._where())

    @cached_property
    def vectors(self) -> PageVectors:
        """Their vectors."""
        condition = memory_filter(self._filters, self._clock())
        condition &= metadata_condition(self._filters, "memories", [self.snapshot])
        return read_vectors(self.snapshot, condition)

    @cached_property
    def former(self) -> FormerTitles:
        """Titles that documents had."""
        every = replace(self._filters, as_of=self._clock())
        ended = col("status").is_in(("superseded", "gone")) & (col("part") == 0)
        columns = ["id", "title", "superseded_by"]
        rows = self.snapshot.scan("documents", document_filter(every) & ended, columns)
        return FormerTitles(rows.to_pylist())

    def texts_of(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts of documents, or of parts of them, by id."""
        rows = self.snapshot.get("documents", list(ids), ["id", "text"])
        return dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))


class PageLinks:
    """What links the documents of some knowledge bases.

    Args:
        link_map: Their links.
        tables: Where the documents are, by knowledge base.
    """

    def __init__(self, link_map: LinkMap, tables: Mapping[str, LinkedTables]) -> None:
        self.map = link_map
        self._tables = tables

    @cached_property
    def _by_id(self) -> Mapping[tuple[str, str], int]:
        return {(page.kb, page.id): at for at, page in enumerate(self.map.pages)}

    # --- one document ---

    def outgoing(self, reference: str, limit: int | None = None) -> list[OutgoingLink]:
        """Return where a document links to, in the order of its links.

        Raises:
            NotFoundError: There is no such document.
        """
        at = self.map.find(reference).page
        page = self.map.pages[at]
        texts = self._texts(page)
        standing: dict[str, list[_Standing]] = defaultdict(list)
        for part, text in texts.items():
            for link in page_links(text):
                standing[link.target].append((part, link))
        found: dict[int | str, list[_Standing]] = defaultdict(list)
        names: dict[int | str, str] = {}
        for name, target in self.map.targets(at):
            if target is None or target.page != at:
                end = name if target is None else target.page
                names.setdefault(end, name)
                found[end] += standing[name]
        return [
            self._outgoing(at, names[end], links, texts) for end, links in [*found.items()][:limit]
        ]

    def _outgoing(
        self, source: int, name: str, links: Sequence[_Standing], texts: Mapping[str, str]
    ) -> OutgoingLink:
        target = self.map.resolve(name, source)
        page = self.map.pages[target.page] if target else None
        status: LinkStatus = "resolved"
        if target is None or target.others:
            status = "missing" if target is None else "ambiguous"
        return OutgoingLink(
            name=name,
            status=status,
            id=page.id if page else None,
            title=page.title if page else "",
            slug=page.slug if page else "",
            type=page.type if page else "",
            excerpt=summary_excerpt(page.summary) if page else "",
            kb=page.kb if page else "",
            written=tuple(dict.fromkeys(link.written for _, link in links)),
            anchors=tuple(dict.fromkeys(link.anchor for _, link in links if link.anchor)),
            others=tuple(self.map.pages[at].id for at in target.others) if target else (),
            places=_places(links, texts),
        )

    def links_in_piece(
        self, reference: str, text: str, first: int, last: int
    ) -> list[tuple[int, int, Page]]:
        """Return where links to other documents begin and end in a piece of a text, in their order.

        Args:
            reference: The document, or a part of one; a document that was replaced has no links.
            text: The whole text of it.
            first: Where the piece begins.
            last: Where it ends.
        """
        at = self.map.by_id.get(reference)
        if at is None:
            return []
        found = [
            (link, self.map.resolve(link.target, at))
            for link in page_links(text)
            if link.start < last and link.end > first
        ]
        return [
            (link.start, link.end, self.map.pages[target.page])
            for link, target in found
            if target is not None and target.page != at
        ]

    def backlinks(self, reference: str, limit: int | None = None) -> list[Backlink]:
        """Return the documents that link to one, those ingested last first.

        Raises:
            NotFoundError: There is no such document.
        """
        at = self.map.find(reference).page
        found = []
        for source, texts in self._read(self.map.backlinks.get(at, ())[:limit]):
            names = set(self.map.links_to(source, at))
            links = [
                (part, link)
                for part, text in texts.items()
                for link in page_links(text)
                if link.target in names
            ]
            places = _places(links, texts)
            found.append(self._view(Backlink, source, _first(places), places=places))
        return found

    def mentions(self, reference: str, limit: int | None = MAX_MENTIONS) -> list[Mention]:
        """Return the documents that name one without a link, those ingested last first.

        Raises:
            NotFoundError: There is no such document.
        """
        at = self.map.find(reference).page
        names = names_to_find(self.map.pages[at])
        if not names:
            return []
        left_out = {at, *self.map.backlinks.get(at, ())}
        wanted = [source for source in self._naming(names) if source not in left_out]
        return list(islice(self._mentions(wanted, names), limit))

    def _mentions(self, sources: Sequence[int], names: Sequence[str]) -> Iterator[Mention]:
        for source, texts in self._read(sources):
            places = [
                place for part, text in texts.items() for place in find_mentions(part, text, names)
            ][:_MAX_PLACES]
            if places:
                yield self._view(Mention, source, _first(places), places=tuple(places))

    def _naming(self, names: Sequence[str]) -> list[int]:
        """The documents in whose texts one of some names stands, those ingested last first."""
        found = {
            self._by_id.get((kb, root_id(id_)))
            for kb, tables in self._tables.items()
            for id_ in tables.texts.containing(tables.snapshot, names)
        }
        return sorted(at for at in found if at is not None)

    def related(self, reference: str, limit: int | None = None) -> list[RelatedPage]:
        """Return the documents that are most about the same, best first.

        Those with the same content are left out, and so are those that nothing has in common.

        Raises:
            NotFoundError: There is no such document.
        """
        at = self.map.find(reference).page
        page = self.map.pages[at]
        own = self._tables[page.kb]
        vector = own.vectors.of(page.id)
        if vector is None:
            return []
        ranked = [
            (-similarity, other)
            for kb, tables in self._tables.items()
            if tables.vectors_are == own.vectors_are
            for id_, similarity in islice(tables.vectors.similar(vector), self._most(limit))
            if similarity > 0 and (other := self._by_id.get((kb, id_))) is not None
        ]
        others = [
            (similarity, other)
            for similarity, other in sorted(ranked)
            if other != at and self.map.pages[other].sha256 != page.sha256
        ]
        return [
            self._view(
                RelatedPage,
                other,
                summary_excerpt(self.map.pages[other].summary),
                similarity=round(-similarity, 6),
            )
            for similarity, other in others[:limit]
        ]

    def _most(self, limit: int | None) -> int | None:
        """How many of the nearest to look at: the same content may stand in some of them."""
        return None if limit is None else 2 * limit + 50

    # --- all documents ---

    def missing(self, limit: int | None = None) -> list[MissingLink]:
        """Return the names that no document has, those linked to by most documents first."""
        return [
            MissingLink(
                name=each.name,
                count=len(each.sources),
                spellings=each.spellings,
                documents=tuple(map(self._reference, each.sources)),
            )
            for each in self.map.missing[:limit]
        ]

    def check(self) -> LinkCheck:
        """Look for links that lead nowhere or to several documents, and for notes without links."""
        problems = [*self._broken(), *self._lost_anchors(), *self._orphans()]
        counts = dict.fromkeys(("missing", "ambiguous", "anchor", "orphan"), 0)
        for each in problems:
            counts[each.problem] += 1
        return LinkCheck(
            documents=len(self.map.pages),
            links=sum(self._degree(at) for at in range(len(self.map.pages))),
            missing=len(self.map.missing),
            ambiguous=counts["ambiguous"],
            anchors=counts["anchor"],
            orphans=counts["orphan"],
            problems=tuple(problems),
        )

    def _degree(self, source: int) -> int:
        """To how many documents and names a document links."""
        ends = {
            target.page if target else missing_key(name)
            for name, target in self.map.targets(source)
        }
        return len(ends - {source})

    def _broken(self) -> Iterator[LinkProblem]:
        for source in range(len(self.map.pages)):
            known: set[str] = set()
            for name, target in self.map.targets(source):
                if target is None:
                    if missing_key(name) in known:
                        continue
                    known.add(missing_key(name))
                    yield self._problem("missing", source, name, self._why_missing(source, name))
                elif target.others:
                    ends = (target.page, *target.others)
                    ids = ", ".join(self.map.pages[at].id for at in ends[:5])
                    message = f"{len(ends)} documents are called that: {ids}"
                    yield self._problem("ambiguous", source, name, message)

    def _why_missing(self, source: int, name: str) -> str:
        titles = self._tables[self.map.pages[source].kb].former
        became = titles.current_document(name)
        if became is None:
            return "no document is called that"
        at = self.map.by_id.get(became)
        now = "is gone" if at is None else f"is called {self.map.pages[at].title!r} now"
        return f"the document that was called that {now}"

    def _lost_anchors(self) -> Iterator[LinkProblem]:
        wanted: dict[int, list[tuple[int, PageLink]]] = defaultdict(list)
        linking = [at for at, page in enumerate(self.map.pages) if page.links]
        for source, texts in self._read(linking):
            for link in (link for text in texts.values() for link in page_links(text)):
                if link.anchor:
                    end = self.map.resolve(link.target, source)
                    if end is not None:
                        wanted[end.page].append((source, link))
        for target, texts in self._read(sorted(wanted)):
            there = frozenset[str]().union(*map(parts_of, texts.values()))
            for source, link in wanted[target]:
                if part_key(link.anchor) not in there:
                    what = "block" if "^" in link.anchor else "heading"
                    message = f"{self.map.pages[target].title!r} has no {what} {link.anchor!r}"
                    yield self._problem("anchor", source, link.target, message)

    def _orphans(self) -> Iterator[LinkProblem]:
        """Yield the notes without links where other notes of their knowledge base have some."""
        linked = {page.kb for at, page in enumerate(self.map.pages) if self._degree(at)}
        for at, page in enumerate(self.map.pages):
            is_note = page.type == _NOTE and page.kb in linked
            if is_note and at not in self.map.backlinks and not self._degree(at):
                yield self._problem("orphan", at, "", "no link leads to it or from it")

    # --- inside ---

    def _problem(self, problem: Problem, at: int, name: str, detail: str) -> LinkProblem:
        page = self.map.pages[at]
        return LinkProblem(problem, page.id, page.title, page.kb, name, detail)

    def _reference(self, at: int) -> PageReference:
        return record_like(PageReference, self.map.pages[at])

    def _view(self, kind: type[V], at: int, text: str, **more: Any) -> V:
        page = self.map.pages[at]
        return record_like(kind, page, excerpt=text or summary_excerpt(page.summary), **more)

    def _texts(self, page: Page) -> dict[str, str]:
        return self._tables[page.kb].texts_of(page.parts)

    def _read(self, pages: Iterable[int]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield documents with their texts by part, some of them read at a time."""
        waiting = iter(pages)
        while some := list(islice(waiting, _TEXTS_A_READ)):
            texts: dict[tuple[str, str], str] = {}
            for kb, tables in self._tables.items():
                own = [self.map.pages[at] for at in some if self.map.pages[at].kb == kb]
                ids = [part for page in own for part in page.parts]
                texts |= {(kb, id_): text for id_, text in tables.texts_of(ids).items()}
            for at in some:
                page = self.map.pages[at]
                yield at, {part: texts[page.kb, part] for part in page.parts}


def _places(links: Sequence[_Standing], texts: Mapping[str, str]) -> tuple[Place, ...]:
    return tuple(
        place_in(part, texts[part], link.start, link.end) for part, link in links[:_MAX_PLACES]
    )


def _first(places: Sequence[Place]) -> str:
    return places[0].sentence if places else ""


_READ_BYTES = 16 << 20
_COLUMNS = ("document_id", "text", "vector")


class PageVectors(Struct, frozen=True, dict=True):
    """A vector of length one for each document that has any, in the order of ``ids``.

    It is the mean of those of its passages and its gist, weighted by how long each is.
    """

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {id_: at for at, id_ in enumerate(self.ids)}

    def of(self, id_: str) -> NDArray[np.float32] | None:
        """Return the vector of a document; None where it has none."""
        at = self._numbers.get(id_)
        return None if at is None else self.matrix[at]

    def similar(self, vector: NDArray[np.float32]) -> Iterator[tuple[str, float]]:
        """Yield every document with its cosine, from 0 to 1, best first."""
        if not self.ids:
            return
        # Not by a BLAS, whose threads wait for each other on a machine that is busy.
        cosines = np.einsum("ij,j->i", self.matrix, vector)
        for at in np.argsort(-cosines, kind="stable").tolist():
            yield self.ids[at], float(min(max(cosines[at], 0.0), 1.0))


def read_vectors(snapshot: Snapshot, where: Expr | None) -> PageVectors:
    """Return the vectors of documents, of the memories for which a condition holds.

    Raises:
        DamagedError: The table cannot be read.
    """
    counted = (col("level") == "evidence") | (col("type") == "gist")
    condition = both(where, counted & ~col("document_id").is_null())
    numbers: dict[str, int] = {}
    sums = np.zeros((0, 0), dtype=np.float32)
    for batch in snapshot.batches("memories", condition, _COLUMNS, batch_bytes=_READ_BYTES):
        owners, weighted = _weigh(batch, numbers)
        if len(numbers) > len(sums):
            grown = np.zeros((max(2 * len(sums), len(numbers)), weighted.shape[1]), np.float32)
            grown[: len(sums), : sums.shape[1]] = sums
            sums = grown
        np.add.at(sums, owners, weighted)
    return _normalise(numbers, sums[: len(numbers)])


def _weigh(
    batch: pa.RecordBatch, numbers: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the number of the document of each vector, and the vectors times their lengths."""
    import pyarrow.compute as pc

    from memctl.schema.arrow_tables import vector_rows

    owners = [
        numbers.setdefault(root_id(id_), len(numbers)) for id_ in batch["document_id"].to_pylist()
    ]
    lengths = np.asarray(pc.utf8_length(batch["text"]).fill_null(0), dtype=np.float32)
    vectors = vector_rows(batch["vector"]).astype(np.float32)
    return np.asarray(owners, dtype=np.int64), vectors * np.maximum(lengths, 1.0)[:, None]


def _normalise(numbers: Mapping[str, int], sums: NDArray[np.float32]) -> PageVectors:
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums)) if len(sums) else np.zeros(0, np.float32)
    known = np.flatnonzero(lengths > 0)
    ids = [*numbers]
    return PageVectors(tuple(ids[at] for at in known), sums[known] / lengths[known, None])
