"""Names that are known from anywhere, spotted in texts where nobody had noted them.

What is recognised as a name in one document often stands in another as mere words; a document's
title does, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from memctl.graph.names import is_everyday

_TOKENS = re.compile(r"\w+(?:[-&]\w+)*")
_SPACE_ALONE = re.compile(r"[ \t]+")
_LONGEST = 8
_SHORTEST = 3


class Spotter:
    """Finds names in texts, the longest where one stands in another.

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
        said = _Said(text)
        after = 0
        for at, token in enumerate(said.tokens):
            if at >= after and not token[0].islower() and (length := self._length_at(at, said)):
                yield self._by_words[said.words(at, length)]
                after = at + length

    def _length_at(self, at: int, said: _Said) -> int:
        """How many words the name has that begins at one; 0 where none does."""
        for length in self._lengths.get(said.words(at, 1), ()):
            if said.words(at, length) in self._by_words and (
                length > 1 or not said.is_part_of_a_name(at)
            ):
                return length
        return 0


class _Said:
    """A text taken apart; what few of its words are asked for is worked out for these alone."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens: list[str] = _TOKENS.findall(text)

    def words(self, at: int, length: int) -> str:
        """Return some tokens as names are compared."""
        return " ".join(self.tokens[at : at + length]).casefold()

    def is_part_of_a_name(self, at: int) -> bool:
        """Whether a capitalised word beside one, no everyday one, makes it a part of more."""
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
