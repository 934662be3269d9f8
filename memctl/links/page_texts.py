"""What the texts of documents say: names that stand there unlinked, sentences, headings, blocks.

Knows texts and names; which document a name means is ``link_map``'s to know.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.graph.page_names import Page, slug_of
from memctl.language.inline_tags import code_spans, page_links, without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.links.link_records import Place
from memctl.readers.markup.markdown_files import MarkdownReader, split_front_matter
from memctl.store.tables.filter_expressions import Expr

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.tables.snapshot import Snapshot

MAX_HELD_BYTES = 128 << 20
"""Texts of more bytes than these are read from the table for each search."""
_READ_BYTES = 8 << 20
_MAX_BYTES = 4
"""Of one character."""
_SHORTEST_NAME = 4
_MIN_WORDS = 2
_LONGEST_EXCERPT = 300
_AROUND = 400
"""Within this many characters of a place its sentence is looked for."""
_BLOCK = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]+)[^\S\n]*$", re.MULTILINE)
_MARKS = re.compile(r"^(?:[-*+>\s]+|#{1,6}\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+(?=\S)")
_NAMES_OF_REST = re.compile(r"(?<=[.!?…。！？]) \([^()]+(?<![.!?…。！？])\)$")
"""Names that a gist has for what its sentences leave out."""
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts in which nothing stands between words."""


def names_to_find(page: Page) -> tuple[str, ...]:
    """Return title and aliases of a document, without those too short to tell anything."""
    names = (" ".join(name.split()) for name in (page.title, *page.aliases))
    return tuple(dict.fromkeys(name for name in names if _is_distinctive(name)))


def _is_distinctive(name: str) -> bool:
    length = sum(2 if _is_written_without_spaces(letter) else 1 for letter in name)
    return length >= _SHORTEST_NAME or len(name.split()) >= _MIN_WORDS


def _is_written_without_spaces(letter: str) -> bool:
    return ord(letter) > 0x0DFF and unicodedata.name(letter, "").startswith(_WITHOUT_SPACES)


# --- all texts -----------------------------------------------------------------------------------


class PageTexts:
    """The texts of some documents, to be searched for names.

    Args:
        snapshot: The tables.
        where: The condition on the documents.
    """

    def __init__(self, snapshot: Snapshot, where: Expr | None) -> None:
        self._where = where
        self._held = self._hold(snapshot)

    def _hold(self, snapshot: Snapshot) -> list[_LoweredTexts] | None:
        """Return all texts; None where they are too many to be held."""
        held, size = [], 0
        for texts in self._read(snapshot):
            held.append(texts)
            size += len(texts.content)
            if size > MAX_HELD_BYTES:
                return None
        return held

    def _read(self, snapshot: Snapshot) -> Iterator[_LoweredTexts]:
        columns = ["id", "text"]
        for batch in snapshot.batches("documents", self._where, columns, batch_bytes=_READ_BYTES):
            yield _LoweredTexts.of(batch)

    def containing(self, snapshot: Snapshot, names: Sequence[str]) -> set[str]:
        """Return the ids of the documents, or parts, in which a name stands as whole words.

        Args:
            snapshot: The tables, as they were when this was made.
            names: The names.
        """
        lowered = [" ".join(name.lower().split()) for name in names]
        texts = self._read(snapshot) if self._held is None else self._held
        return {id_ for some in texts for name in lowered for id_ in some.containing(name)}


class _LoweredTexts(Struct, frozen=True):
    """Texts in lower case, one after the other, each without line breaks."""

    ids: Sequence[str]
    ends: Sequence[int]
    """Where each text ends."""
    content: bytes

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _LoweredTexts:
        """Return the texts of some rows."""
        texts = [text.lower().replace("\n", " ") for text in batch["text"].to_pylist()]
        encoded = [text.encode("utf-8", "replace") for text in texts]
        ends = list(accumulate(map(len, encoded)))
        return cls(batch["id"].to_pylist(), ends, b"".join(encoded))

    def containing(self, name: str) -> Iterator[str]:
        """Yield the ids of the texts that have a name in lower case as whole words."""
        sought, position = name.encode("utf-8", "replace"), 0
        while (start := self.content.find(sought, position)) >= 0:
            at = bisect_right(self.ends, start)
            first, last = self.ends[at - 1] if at else 0, self.ends[at]
            end = start + len(sought)
            if end <= last and self._is_whole_word(name, start, end, first, last):
                yield self.ids[at]
                position = last
            else:
                position = start + 1

    def _is_whole_word(self, name: str, start: int, end: int, first: int, last: int) -> bool:
        """Return whether neither letter nor digit of the same word stands beside a name."""
        before = self.content[max(first, start - _MAX_BYTES) : start].decode("utf-8", "ignore")
        after = self.content[end : min(last, end + _MAX_BYTES)].decode("utf-8", "ignore")
        return not (
            (_needs_a_border(name[0]) and _is_word_character(before[-1:]))
            or (_needs_a_border(name[-1]) and _is_word_character(after[:1]))
        )


def _whole_words(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(_shorten, longest_first)), re.IGNORECASE)


def _shorten(name: str) -> str:
    words = r"\s+".join(map(re.escape, name.split()))
    before = r"(?<!\w)" if _needs_a_border(name[0]) else ""
    after = r"(?!\w)" if _needs_a_border(name[-1]) else ""
    return f"{before}{words}{after}"


def _needs_a_border(letter: str) -> bool:
    return _is_word_character(letter) and not _is_written_without_spaces(letter)


def _is_word_character(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


# --- one text ------------------------------------------------------------------------------------


def find_mentions(document_id: str, text: str, names: Sequence[str]) -> list[Place]:
    """Return where names stand in a text as whole words, outside links, code, comments and front
    matter.
    """
    hidden = [(link.start, link.end) for link in page_links(text)]
    hidden += [*code_spans(text), (0, len(split_front_matter(text)[0]))]
    return [
        place_in(document_id, text, match.start(), match.end())
        for match in _whole_words(names).finditer(text)
        if not any(start < match.end() and match.start() < end for start, end in hidden)
    ]


def place_in(document_id: str, text: str, start: int, end: int) -> Place:
    """Return a place of a text with the sentence around it."""
    return Place(document_id, start, end, _sentence(text, start, end))


def _sentence(text: str, start: int, end: int) -> str:
    """Return the sentence around a place as a reader sees it."""
    first = max(text.rfind("\n\n", 0, start) + 2 if "\n\n" in text[:start] else 0, start - _AROUND)
    last = text.find("\n\n", end)
    last = min(len(text) if last < 0 else last, end + _AROUND)
    around = text[first:last]
    for one, other in split_sentences(around):
        if one <= start - first < other:
            around = around[one:other]
            break
    return excerpt(around)


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line, as a reader sees it."""
    line = " ".join(_MARKS.sub("", without_wikilinks(text).strip()).split())
    return line if len(line) <= _LONGEST_EXCERPT else f"{line[: _LONGEST_EXCERPT - 1].rstrip()}…"


def summary_excerpt(summary: str) -> str:
    """Return the beginning of a gist, without the names in brackets that end it."""
    return excerpt(_NAMES_OF_REST.sub("", summary))


def parts_of(text: str) -> frozenset[str]:
    """Return what links can lead to in a text: slugs of headings, and ``^`` with ids of blocks."""
    headings = (
        piece.heading.rpartition(" > ")[2]
        for piece in MarkdownReader().pieces(text)
        if piece.kind == "heading"
    )
    blocks = (f"^{match[1].lower()}" for match in _BLOCK.finditer(text))
    return frozenset((*map(slug_of, headings), *blocks))


def part_key(anchor: str) -> str:
    """Return what an anchor is called among ``parts_of``; of headings below others the last."""
    last = anchor.rpartition("#")[2].strip()
    return last.lower() if last.startswith("^") else slug_of(last)
