"""Numbers, sizes and durations as people write them, and texts without hidden characters.

Knows what a number is of, never who reads it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from memctl.patterns import lazy_regex

_MAY_BE_HIDDEN = lazy_regex("[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\xad\u0600-\U000e0fff]")
_WORD_SHAPING = "\u200c\u200d\u00ad"
_UNITS = ("B", "kB", "MB", "GB", "TB")


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: ``1 file``, ``2 memories``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_counts(counts: Mapping[str, int]) -> str:
    """Return counts by name: ``archived 3, restored 1``."""
    return ", ".join(f"{name} {value:,}" for name, value in counts.items())


def format_size(count: float) -> str:
    """Return a number of bytes as people write it: ``1.4 MB``."""
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} {_UNITS[-1]}"


def format_duration(seconds: float) -> str:
    """Return a number of seconds as people say it: ``40 ms``, ``3.2 s``, ``4 min``, ``2 h``."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def format_clock(seconds: float) -> str:
    """Return a place in a recording: ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_money(amount: float) -> str:
    """Return an amount, of small ones enough digits to tell them from nothing: ``0.0021``."""
    return f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.2g}"


def escape_hidden(text: str) -> str:
    """Return ``text`` with every character escaped that could steer a terminal or mislead a reader.

    Control characters, escapes and text direction overrides become ``\\x1b`` and the like, and so
    do lone surrogates, which stand for bytes of a file name that are not UTF-8.
    """
    if text.isprintable():
        return text
    return _MAY_BE_HIDDEN.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    if not is_hidden(character):
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def is_hidden(character: str) -> bool:
    """Return whether a character is not seen, and does more than shape a word."""
    category = unicodedata.category(character)
    return category in ("Cc", "Cs") or (category == "Cf" and character not in _WORD_SHAPING)
