"""Finding what a pattern finds without trying it at every letter of a text.

What a pattern may find has one of a few words in it or before it, and most texts have none of them:
they are all looked for at once, and a pattern is tried where a match of it may begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from memctl.patterns import lazy_regex

Span = tuple[int, int]
_LAST_WORD = lazy_regex(r"(?<![\w-])(?:[\w-]*-)?(\w+)\Z")
"""Such as two-factor, of which the last part may be one of its own."""
_LONGEST_WORD = 16
Starts = Callable[[str, str], Iterable[int]]
"""Gets a text, and the same in lower case; tells in order where a match may begin."""


def lower_same_length(text: str) -> str:
    """Return a text in lower case, each letter where it was."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def at(*words: str) -> Starts:
    """Return a function that yields where words in lower case stand."""
    pattern = lazy_regex("|".join(map(re.escape, words)))

    def starts(_: str, low: str) -> Iterator[int]:
        """Look for them."""
        return (match.start() for match in pattern.finditer(low))

    return starts


def at_word_before(*words: str) -> Starts:
    """Return a function that yields where the words before others, with a space, begin."""
    found = at(*words)

    def starts(text: str, low: str) -> Iterator[int]:
        """Look for them."""
        for place in found(text, low):
            if before := _LAST_WORD.search(low, max(0, place - _LONGEST_WORD), place):
                yield from sorted({before.start(), before.start(1)})

    return starts


def secret_part(match: re.Match[str]) -> Iterable[Span]:
    """Return the span of the secret, without what marks it as one."""
    return (((match.end(1) if match.re.groups else match.start()), match.end()),)


def secret_text(match: re.Match[str]) -> str:
    """Return the secret itself, of a pattern whose first group is what marks it as one."""
    return match.string[match.end(1) : match.end()]


def has_digit(match: re.Match[str]) -> bool:
    """Return whether what was found is more than words."""
    return bool(re.search(r"\d", secret_text(match)))


def always(_: re.Match[str]) -> bool:
    """Take whatever is found for a secret."""
    return True


class Rule(Struct, frozen=True):
    """One way to tell a secret."""

    triggers: tuple[str, ...]
    """What has none of these, in lower case, has no such secret."""
    pattern: re.Pattern[str]
    starts: Starts
    is_sure: Callable[[re.Match[str]], bool] = always
    """Whether what was found is no ordinary word or piece of code."""
    spans: Callable[[re.Match[str]], Iterable[Span]] = secret_part

    def matches(self, text: str, low: str) -> Iterator[re.Match[str]]:
        """Yield what the pattern finds in a text, as its ``finditer`` does.

        Args:
            text: Where to look.
            low: The same in lower case.
        """
        end = 0
        for start in self.starts(text, low):
            if start >= end and (match := self.pattern.match(text, start)):
                end = match.end()
                yield match
