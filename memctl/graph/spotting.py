"""Names that are known from anywhere, spotted in texts where nobody had noted them.

What is recognised as a name in one document often stands in another as mere words; a document's
title does, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
        tokens = list(_TOKENS.finditer(text))
        words = [token[0].casefold() for token in tokens]
        at = 0
        while at < len(words):
            length = self._length_at(at, words, tokens, text)
            if length:
                yield self._by_words[" ".join(words[at : at + length])]
            at += length or 1

    def _length_at(
        self, at: int, words: Sequence[str], tokens: Sequence[re.Match[str]], text: str
    ) -> int:
        """How many words the name has that begins at one; 0 where none does."""
        lengths = self._lengths.get(words[at])
        if lengths is None or tokens[at][0][0].islower():
            return 0
        for length in lengths:
            if " ".join(words[at : at + length]) in self._by_words and (
                length > 1 or not _is_part_of_a_name(at, tokens, text)
            ):
                return length
        return 0


def _may_be_spotted(words: Sequence[str]) -> bool:
    if len(words) == 1:
        return len(words[0]) >= _SHORTEST and not (words[0].isdigit() or is_everyday(words[0]))
    return 1 < len(words) <= _LONGEST


def _is_part_of_a_name(at: int, tokens: Sequence[re.Match[str]], text: str) -> bool:
    """Whether a capitalised word beside it, that is no everyday one, makes it a part of more."""
    return any(
        0 <= other < len(tokens)
        and tokens[other][0][0].isupper()
        and not is_everyday(tokens[other][0].casefold())
        and _SPACE_ALONE.fullmatch(
            text, tokens[min(at, other)].end(), tokens[max(at, other)].start()
        )
        for other in (at - 1, at + 1)
    )
