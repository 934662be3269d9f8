"""The names that documents are linked by: title, slug, alias, file; and which one a link means.

Knows the columns of documents that names come from, never what a text says.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.graph.entity_names import has_words
from memctl.ids import root_id
from memctl.records import split_unit
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

_COLUMNS = ("id", "root_id", "part", "title", "namespace", "source", "doc_type", "sha256",
            "summary", "links", "metadata", "created_at", "ingested_at")  # fmt: skip
_NOT_IN_SLUG = re.compile(r"[^a-z0-9\s-]")
_NON_WORD = re.compile(r"[^\w\s-]|_")
_SPACE = re.compile(r"\s+")
_ALIAS_KEYS = ("aliases", "alias")
_MAX_ALIASES = 100
_MAX_FOLDERS = 8
"""How many folders above a file a link may name."""
_TITLE, _SLUG, _ALIAS, _FILE = range(4)
"""How a link names a document, the surest way first."""


def slug_of(title: str) -> str:
    """Return the slug of a title: lower case, letters of any script, hyphens for white space."""
    text = unicodedata.normalize("NFC", title).lower()
    return _SPACE.sub("-", _NON_WORD.sub("", text).strip())


def ascii_slug(title: str) -> str:
    """Return the slug that leaves out every character but a-z, digits, white space and hyphens.

    Of a title in another script nothing is left.
    """
    return _SPACE.sub("-", _NOT_IN_SLUG.sub("", title.lower()).strip())


def link_key(name: str) -> str:
    """Return what the name in a link and a title are compared by: neither case nor spacing."""
    return _SPACE.sub(" ", unicodedata.normalize("NFC", name).casefold()).strip()


class Page(Struct, frozen=True):
    """A document as links see it."""

    kb: str
    id: str
    title: str
    namespace: str
    source: str
    type: str
    sha256: str
    summary: str
    aliases: tuple[str, ...]
    links: tuple[str, ...]
    """The names that it links to, as written."""
    parts: tuple[str, ...]
    """The ids of its parts; its own for a document of one part."""
    created_at: datetime
    ingested_at: datetime

    @property
    def slug(self) -> str:
        """The slug of its title."""
        return slug_of(self.title)

    @property
    def path(self) -> str:
        """Its file, without the ending; "" where it is of none."""
        file = split_unit(self.source)[0]
        is_file = "/" in file and "://" not in file
        return str(PurePosixPath(file).with_suffix("")) if is_file else ""


def read_pages(kb: str, snapshot: Snapshot, where: Expr | None) -> list[Page]:
    """Return the documents for which a condition holds, the last ingested first.

    Raises:
        DamagedError: The table cannot be read.
    """
    rows = snapshot.scan("documents", where, _COLUMNS).to_pylist()
    later: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["part"]:
            later[row["root_id"]].append(row)
    pages = [_page(kb, row, later.get(row["id"], ())) for row in rows if not row["part"]]
    pages.sort(key=lambda page: page.id)
    pages.sort(key=lambda page: page.ingested_at, reverse=True)
    return pages


def read_aliases(snapshot: Snapshot, where: Expr | None) -> dict[str, tuple[str, ...]]:
    """Return the other names that front matter gives documents, by their titles.

    Args:
        snapshot: Where the documents are.
        where: A condition that holds for those that count.

    Raises:
        DamagedError: The table cannot be read.
    """
    found: dict[str, tuple[str, ...]] = {}
    for _, title, names in read_other_titles(snapshot, where):
        found[title] = (*found.get(title, ()), *names)
    return found


def read_other_titles(
    snapshot: Snapshot, where: Expr | None = None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the documents whose front matter has other names: id, title, and these.

    Raises:
        DamagedError: The table cannot be read.
    """
    has_some = both(where, col("metadata").like_glob('*"[aA][lL][iI][aA][sS]*'))
    for row in snapshot.scan("documents", has_some, ["id", "title", "metadata"]).to_pylist():
        if has_words(row["title"] or "") and (names := _aliases(row["metadata"])):
            yield row["id"], row["title"], names


def read_addresses(snapshot: Snapshot, where: Expr | None) -> dict[str, tuple[str, ...]]:
    """Return the e-mail addresses on contact cards, by whom they are of.

    Raises:
        DamagedError: The table cannot be read.
    """
    has_some = both(where, col("metadata").like_glob('*"emails"*'))
    rows = snapshot.scan("documents", has_some, ["title", "metadata"]).to_pylist()
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        addresses = json.loads(row["metadata"]).get("emails")
        if has_words(row["title"] or "") and isinstance(addresses, list):
            texts = (each for each in addresses if isinstance(each, str))
            found[row["title"]] = (*found.get(row["title"], ()), *texts)
    return found


class FormerTitles:
    """The titles of documents that are history, and what became of each.

    Args:
        rows: ``id``, ``title`` and ``superseded_by`` of these documents.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        rows = list(rows)
        self._next = {row["id"]: row["superseded_by"] for row in rows}
        self._ids = {
            key: row["id"]
            for row in rows
            for key in (link_key(row["title"] or ""), slug_of(row["title"] or ""))
            if key
        }

    def current_document(self, name: str) -> str | None:
        """Return the id of the document that has a title now.

        It is in none of the tables where the document is gone; None where no document had that
        title.
        """
        id_ = self._ids.get(link_key(name)) or self._ids.get(name)
        seen: set[str] = set()
        while id_ is not None and id_ not in seen and (following := self._next.get(id_)):
            seen.add(id_)
            id_ = root_id(following)
        return id_


def _page(kb: str, row: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> Page:
    parts = [row, *sorted(later, key=lambda each: int(each["part"]))]
    return Page(
        kb=kb,
        id=row["id"],
        title=row["title"] or "",
        namespace=row["namespace"],
        source=row["source"],
        type=row["doc_type"] or "document",
        sha256=row["sha256"],
        summary=row["summary"] or "",
        aliases=_aliases(row["metadata"] or ""),
        links=tuple(dict.fromkeys(link for part in parts for link in part["links"] or ())),
        parts=tuple(part["id"] for part in parts),
        created_at=row["created_at"],
        ingested_at=row["ingested_at"],
    )


def _aliases(metadata: str) -> tuple[str, ...]:
    """Return the other names that front matter gives a document."""
    if '"alias' not in metadata.lower():
        return ()
    values = {key.lower(): value for key, value in json.loads(metadata).items()}
    found: list[str] = []
    for key in _ALIAS_KEYS:
        value = values.get(key)
        if isinstance(value, str):
            found += value.split(",")
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, str)]
    names = (name.strip() for name in found)
    return tuple(dict.fromkeys(name for name in names if name))[:_MAX_ALIASES]


class LinkTarget(Struct, frozen=True):
    """Which document a link means."""

    page: int
    others: tuple[int, ...] = ()
    """Those that it could mean just as well."""


class PageNames:
    """Finds the documents that links mean.

    Args:
        pages: All documents, those ingested last first.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self._known: dict[tuple[str, str, str, str], LinkTarget | None] = {}

    @cached_property
    def _names(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Every name, with the ways in which it names documents."""
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for number, page in enumerate(self.pages):
            for key, way in _keys(page):
                found[key].setdefault(number, way)
        return {key: [(way, at) for at, way in by.items()] for key, by in found.items()}

    @cached_property
    def _slugs(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for number, page in enumerate(self.pages):
            for slug in {slug_of(page.title), ascii_slug(page.title)} - {""}:
                found[slug].append(number)
        return found

    def resolve(self, name: str, source: Page | None = None) -> LinkTarget | None:
        """Return which document the name in a link means; None where there is none.

        A document of the same namespace goes before others of the same knowledge base, and these
        before those of other ones; then a title before a slug, an alias and the name of a file,
        then a file of the same folder, then the document that was ingested last.

        Args:
            name: The name.
            source: The document that has the link.
        """
        folder = source.path.rpartition("/")[0] if source else ""
        key = (name, source.kb, source.namespace, folder) if source else (name, "", "", "")
        if key not in self._known:
            self._known[key] = self._find(name, source, folder)
        return self._known[key]

    def _find(self, name: str, source: Page | None, folder: str) -> LinkTarget | None:
        wanted = link_key(name)
        found = {at: way for way, at in self._names.get(wanted, ())}
        for at in self._slugs.get(name.strip(), ()):
            found[at] = min(found.get(at, _SLUG), _SLUG)
        if not found:
            return None
        if len(found) == 1:
            return LinkTarget(next(iter(found)))

        def rank(at: int) -> tuple[int, int, bool]:
            """How far a document is from what the link most likely means."""
            page, own = self.pages[at], f"{folder}/{wanted}"
            return _distance(page, source), found[at], link_key(page.path) != own.casefold()

        ranked = sorted(found, key=lambda at: (rank(at), at))
        best = rank(ranked[0])
        return LinkTarget(ranked[0], tuple(at for at in ranked[1:] if rank(at) == best))

    def near(self, name: str, limit: int) -> list[str]:
        """Return a few titles that are like a name which no document has."""
        from difflib import get_close_matches

        titles = {link_key(page.title): page.title for page in reversed(self.pages)}
        return [titles[key] for key in get_close_matches(link_key(name), titles, limit, 0.5)]


def _distance(page: Page, source: Page | None) -> int:
    if source is None:
        return 0
    return (page.kb != source.kb) + ((page.kb, page.namespace) != (source.kb, source.namespace))


def _keys(page: Page) -> Iterator[tuple[str, int]]:
    yield from _spellings((page.title, page.title.lstrip("/")), _TITLE)
    yield from _spellings(page.aliases, _ALIAS)
    yield from _spellings((slug_of(alias) for alias in page.aliases), _ALIAS)
    if page.path:
        parts = page.path.split("/")[-_MAX_FOLDERS:]
        yield from _spellings(("/".join(parts[at:]) for at in range(len(parts))), _FILE)
        yield from _spellings((split_unit(page.source)[0].rpartition("/")[2],), _FILE)


def _spellings(names: Iterable[str], way: int) -> Iterator[tuple[str, int]]:
    yield from ((key, way) for name in names if (key := link_key(name)))
