"""Which names occur in which passages of one snapshot.

Knows the columns that names come from; what they mean is decided by ``name_resolution``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.graph.derivation import LINKS_TO, PAGE
from memctl.graph.entity_names import EXACT_TYPES, has_words, is_everyday, name_key, parse_person
from memctl.graph.page_names import PageNames, read_pages
from memctl.language.word_lists import word_set
from memctl.rows.supersession import LIVE_STATUSES
from memctl.store.tables.filter_expressions import Expr, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot


_LIVE = col("status").is_in(LIVE_STATUSES)
_COLUMNS = ("id", "document_id", "session_id", "speaker", "entities", "title", "source", "text")
_Titles = tuple[str, str, str]
"""A document, its title, and the name of its file."""
_ROLES = word_set("user assistant system human ai bot tool you me")
_IN_BRACKETS = re.compile(r"\s*\([^)]*\)")


class Passage(Struct, frozen=True):
    """A passage, or another memory, and the names in it."""

    id: str
    document: str
    context: str
    """The conversation that it is of, else its document."""
    names: tuple[str, ...]
    title: str
    """What it is called, where that is a name that stands elsewhere too."""
    text: str
    speaker: str


class Link(Struct, frozen=True):
    """A wikilink: from what a document is called to what it names."""

    context: str
    source: str
    target: str
    memory_ids: tuple[str, ...]


class Mentions(Struct, frozen=True):
    """All passages that were read, and what is known of the names in them."""

    passages: tuple[Passage, ...]
    types: Mapping[str, str]
    links: tuple[Link, ...]

    def by_context(self) -> dict[str, list[str]]:
        """Return the names that stand in each context."""
        found: dict[str, list[str]] = defaultdict(list)
        for passage in self.passages:
            found[passage.context] += passage.names
            if passage.title:
                found[passage.context].append(passage.title)
        for link in self.links:
            found[link.context] += (link.source, link.target)
        return found

    def ambiguous_speakers(self) -> frozenset[tuple[str, str]]:
        """Return speakers known by one name who mention another person with that name."""
        return frozenset(
            (passage.context, passage.speaker)
            for passage in self.passages
            if passage.speaker and " " not in passage.speaker and _speaks_of_another(passage)
        )


def read_mentions(snapshot: Snapshot, where: Expr | None) -> Mentions:
    """Read the names in the memories for which a condition holds.

    Raises:
        DamagedError: A table cannot be read.
    """
    rows = snapshot.scan("memories", where, _COLUMNS).to_pylist()
    links = _with_titles(snapshot, list(_link_rows(snapshot)), rows)
    types = _types(snapshot)
    linked = _linked_pages(links, rows)
    titles = list(_titles(rows))
    document_names = _names_in_texts(rows, types, titles)
    called = _document_names(rows, links, document_names, titles)
    passages = tuple(_passage(row, types, linked, document_names, called) for row in rows)
    standing = {passage.id for passage in passages}
    return Mentions(passages, types, tuple(_links(links, rows, called, standing)))


def _passage(
    row: Mapping[str, Any],
    types: dict[str, str],
    linked: Mapping[str, list[str]],
    document_names: Mapping[str, tuple[str, ...]],
    called: Mapping[str, str],
) -> Passage:
    speaker = (row["speaker"] or "").strip()
    if speaker.casefold() in _ROLES:
        speaker = ""
    names = dict.fromkeys(row["entities"] or ())
    names |= dict.fromkeys(document_names[row["id"]])
    names |= dict.fromkeys(linked.get(row["id"], ()))
    if speaker:
        names[speaker] = None
        types[speaker] = "person"
    return Passage(
        id=row["id"],
        document=row["document_id"] or row["id"],
        context=context_of(row),
        names=tuple(name for name in names if has_words(name)),
        title=called.get(row["document_id"] or "", ""),
        text=row["text"] or "",
        speaker=speaker,
    )


def context_of(row: Mapping[str, Any]) -> str:
    """Return the conversation that a memory is of, else its document."""
    return str(row["session_id"] or (row["document_id"] or row["id"]).partition(".")[0])


def _speaks_of_another(passage: Passage) -> bool:
    own = name_key(passage.speaker, "person")
    full_names = (parse_person(name_key(name), "person") for name in passage.names)
    return any(
        person is not None and person.is_full and own in (person.given, person.family)
        for person in full_names
    )


# --- types ---------------------------------------------------------------------------------------


def _types(snapshot: Snapshot) -> dict[str, str]:
    """The type of each name and alias: the one that most mentions have, "other" at last."""
    table = snapshot.scan("entities", None, ["name", "aliases", "type", "mention_count"])
    best: dict[str, tuple[bool, bool, int]] = {}
    types: dict[str, str] = {}
    columns = (table[name].to_pylist() for name in table.column_names)
    for name, aliases, type_, count in zip(*columns, strict=True):
        rank = (type_ != "other", type_ != PAGE, count or 0)
        for each in (name, *(aliases or ())):
            if rank > best.get(each, (False, False, -1)):
                best[each], types[each] = rank, type_ or "other"
    return types


# --- names without a noted mention --------------------------------------------------------------


def _names_in_texts(
    rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], titles: Iterable[_Titles]
) -> Mapping[str, tuple[str, ...]]:
    """The names and titles of any memory that stand in the text of each."""
    noted = (name for row in rows for name in row["entities"] or ())
    names = (name for name in noted if types.get(name) not in EXACT_TYPES)
    spotter = NameSpotter(dict.fromkeys(chain(names, (title for _, title, _ in titles))))
    return {row["id"]: tuple(spotter.names_in(row["text"] or "")) for row in rows}


# --- wikilinks and titles ------------------------------------------------------------------------


def _link_rows(snapshot: Snapshot) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each wikilink: document, what it names, passages that it stands in."""
    columns = ["source_id", "text", "memory_ids"]
    table = snapshot.scan("relations", col("relation_type") == LINKS_TO, columns)
    values = (table[name].to_pylist() for name in columns)
    for source, text, memory_ids in zip(*values, strict=True):
        if text:
            yield source, text, tuple(memory_ids or ())


def _with_titles(
    snapshot: Snapshot,
    links: Sequence[tuple[str, str, tuple[str, ...]]],
    rows: Iterable[Mapping[str, Any]],
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return links with the title of the document that each means, however it is spelled."""
    if not links:
        return []
    read = {(row["document_id"] or "").partition(".")[0] for row in rows}
    pages = [page for page in read_pages("", snapshot, _LIVE) if page.id in read]
    names, by_id = PageNames(pages), {page.id: page for page in pages}

    def title(source: str, target: str) -> str:
        """What the document that a link means is called; the link's own words where none is."""
        meant = names.resolve(target, by_id.get(source.partition(".")[0]))
        name = pages[meant.page].title if meant else ""
        return name if has_words(name) else target

    return [(source, title(source, target), ids) for source, target, ids in links]


def _linked_pages(
    links: Iterable[tuple[str, str, tuple[str, ...]]], rows: Sequence[Mapping[str, Any]]
) -> Mapping[str, list[str]]:
    """The pages that each passage links to."""
    standing = {row["id"] for row in rows}
    found: dict[str, list[str]] = defaultdict(list)
    for _, target, memory_ids in links:
        for id_ in memory_ids:
            if id_ in standing:
                found[id_].append(target)
    return found


def _document_names(
    rows: Sequence[Mapping[str, Any]],
    links: Sequence[tuple[str, str, tuple[str, ...]]],
    document_names: Mapping[str, tuple[str, ...]],
    titles: Iterable[_Titles],
) -> dict[str, str]:
    """What each document is called: the title or file name that is a name elsewhere.

    A document that links to others has its title where neither is.
    """
    linking = {source for source, _, _ in links}
    keys = {name_key(target) for _, target, _ in links}
    naming = _documents_naming(rows, document_names)
    called: dict[str, str] = {}
    for document, title, stem in titles:
        for name in filter(None, (title, stem)):
            key = name_key(name)
            if key in keys or naming.get(key, set()) - {document}:
                called.setdefault(document, name)
        if document in linking and (title or stem):
            called.setdefault(document, title or stem)
    return called


def _documents_naming(
    rows: Iterable[Mapping[str, Any]], document_names: Mapping[str, tuple[str, ...]]
) -> Mapping[str, set[str]]:
    """The documents in which each name stands, by its key."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name in (*(row["entities"] or ()), *document_names[row["id"]]):
            found[name_key(name)].add(row["document_id"] or row["id"])
    return found


def _titles(rows: Iterable[Mapping[str, Any]]) -> Iterator[_Titles]:
    """Yield the titles of each document."""
    seen: set[str] = set()
    for row in rows:
        document = row["document_id"]
        if document and document not in seen:
            seen.add(document)
            title = _IN_BRACKETS.sub("", row["title"] or "").strip()
            title = title if has_words(title) else ""
            yield document, title, PurePosixPath(row["source"] or "").stem.strip()


def _links(
    links: Iterable[tuple[str, str, tuple[str, ...]]],
    rows: Iterable[Mapping[str, Any]],
    called: Mapping[str, str],
    standing: set[str],
) -> Iterator[Link]:
    contexts = {row["document_id"]: context_of(row) for row in rows if row["document_id"]}
    for document, target, memory_ids in links:
        if document in contexts and document in called:
            there = tuple(id_ for id_ in memory_ids if id_ in standing)
            yield Link(contexts[document], called[document], target, there)


_TOKENS = re.compile(r"\w+(?:[-&]\w+)*")
_SPACE_ALONE = re.compile(r"[ \t]+")
_LONGEST = 8
_SHORTEST = 3


class NameSpotter:
    """Finds names in texts; where one name contains another, the longer one.

    Args:
        names: The names; of those that differ in case or marks alone the first counts.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._by_words: dict[str, str] = {}
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in names:
            words = [word.casefold() for word in _TOKENS.findall(name)]
            if _may_be_spotted(words) and name[:1].isalnum():
                self._by_words.setdefault(" ".join(words), name)
                lengths[words[0]].add(len(words))
        self._lengths = {
            first: tuple(sorted(each, reverse=True)) for first, each in lengths.items()
        }

    def names_in(self, text: str) -> Iterator[str]:
        """Yield the names that stand in a text, each at every place."""
        said = _TokenizedText(text)
        after = 0
        for at, token in enumerate(said.tokens):
            if at >= after and not token[0].islower() and (length := self._length_at(at, said)):
                yield self._by_words[said.words(at, length)]
                after = at + length

    def _length_at(self, at: int, said: _TokenizedText) -> int:
        """How many words the name has that begins at one; 0 where none does."""
        for length in self._lengths.get(said.words(at, 1), ()):
            if said.words(at, length) in self._by_words and (
                length > 1 or not said.is_part_of_a_name(at)
            ):
                return length
        return 0


class _TokenizedText:
    """A text taken apart; what few of its words are asked for is worked out for these alone."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens: list[str] = _TOKENS.findall(text)

    def words(self, at: int, length: int) -> str:
        """Return some tokens as names are compared."""
        return " ".join(self.tokens[at : at + length]).casefold()

    def is_part_of_a_name(self, at: int) -> bool:
        """Return whether a capitalised, uncommon word beside one makes it part of a longer name."""
        return any(
            0 <= other < len(self.tokens)
            and self.tokens[other][0].isupper()
            and not is_everyday(self.tokens[other].casefold())
            and self._is_beside(min(at, other), max(at, other))
            for other in (at - 1, at + 1)
        )

    def _is_beside(self, one: int, other: int) -> bool:
        between = self._places[one].end(), self._places[other].start()
        return _SPACE_ALONE.fullmatch(self._text, *between) is not None

    @cached_property
    def _places(self) -> Sequence[re.Match[str]]:
        return list(_TOKENS.finditer(self._text))


def _may_be_spotted(words: Sequence[str]) -> bool:
    if len(words) == 1:
        return len(words[0]) >= _SHORTEST and not (words[0].isdigit() or is_everyday(words[0]))
    return 1 < len(words) <= _LONGEST
