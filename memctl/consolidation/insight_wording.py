"""How insights are phrased: dates, periods, sources, sentences made fit to be quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from memctl.language.word_lists import ENGLISH_MONTHS
from memctl.records import Memory, shown_source_name

_MARKUP = re.compile(r"^(?:\s*(?:[-*+•]|\d{1,3}[.)]|>+|\[[ xX]\])\s+)+|\*\*|__|`")
_WIKILINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|\[([^\]]*)\]\([^)]*\)")
_REPLY = re.compile(r"^(?:(?:re|aw|antw|sv|fwd?|wg|tr|rv)\s*:\s*)+", re.IGNORECASE)
_LONGEST_QUOTE, _LONGEST_TITLE = 240, 90


def day(instant: date) -> str:
    """``3 March 2026``."""
    return f"{instant.day} {ENGLISH_MONTHS[instant.month - 1]} {instant.year}"


def day_after_day(days: Sequence[date]) -> str:
    """``3 March -> 9 April 2026``; the year stands with each day where it is not the same."""
    if len({each.year for each in days}) > 1:
        return " → ".join(map(day, days))
    short = [f"{each.day} {ENGLISH_MONTHS[each.month - 1]}" for each in days]
    return f"{' → '.join(short)} {days[-1].year}"


def source(memory: Memory) -> str:
    """The name a person knows the source of a memory by.

    A record with an id of its own is one of many in a file, so the file says too little.
    """
    if memory.external_id:
        return memory.title or memory.external_id
    name = shown_source_name(memory.source)
    if name and name not in ("stdin", "text", "-"):
        return name
    return memory.title or "stated"


def attribution(memory: Memory) -> str:
    """``notes.md, 3 March 2026``."""
    return f"{source(memory)}, {day(memory.created_at)}"


def quotable(sentence: str) -> str:
    """A sentence in one line, without list marks and markup, cut at a word when very long."""
    plain = _WIKILINK.sub(lambda match: match[1] or match[2] or "", sentence)
    line = " ".join(_MARKUP.sub("", plain).split())
    return _cut(line, _LONGEST_QUOTE)


def shorten_title(sentence: str) -> str:
    """A sentence as a title: without its full stop, and cut at a word when long."""
    return _cut(sentence, _LONGEST_TITLE).rstrip(".!")


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    return line[:most].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def subject(title: str) -> str:
    """The subject of a mail without "Re:"; any other title as it is."""
    return _REPLY.sub("", title)


def quote(sentence: str) -> str:
    """The sentence between quotation marks, without its full stop."""
    return f"“{sentence.rstrip('.')}”"


def join_items(items: Sequence[str]) -> str:
    """``a``, ``a and b`` or ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def capitalise(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]
