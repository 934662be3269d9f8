"""How insights are phrased: dates, periods, sources, sentences made fit to be quoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from memctl.language.word_lists import ENGLISH_MONTHS
from memctl.records import Memory

_MARKUP = re.compile(r"^(?:\s*(?:[-*+•]|\d{1,3}[.)]|>+|\[[ xX]\])\s+)+|\*\*|__|`")
_WIKILINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|\[([^\]]*)\]\([^)]*\)")
_LONGEST_QUOTE = 240


def day(instant: datetime) -> str:
    """``3 March 2026``."""
    return f"{instant.day} {ENGLISH_MONTHS[instant.month - 1]} {instant.year}"


def period(instants: Sequence[datetime]) -> str:
    """``3 March 2026``, ``March 2026``, ``March–May 2026`` or ``December 2025–January 2026``."""
    first, last = min(instants), max(instants)
    if first.date() == last.date():
        return day(first)
    start, end = ENGLISH_MONTHS[first.month - 1], ENGLISH_MONTHS[last.month - 1]
    if first.year != last.year:
        return f"{start} {first.year}–{end} {last.year}"
    return f"{end} {last.year}" if start == end else f"{start}–{end} {last.year}"


def source(memory: Memory) -> str:
    """The name a person knows the source of a memory by.

    A record with an id of its own is one of many in a file, so the file says too little.
    """
    if memory.external_id:
        return memory.title or memory.external_id
    name = re.split(r"[/\\]", memory.source.rstrip("/\\"))[-1]
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
    if len(line) <= _LONGEST_QUOTE:
        return line
    return line[:_LONGEST_QUOTE].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def quoted(sentence: str) -> str:
    """The sentence between quotation marks, without its full stop."""
    return f"“{sentence.rstrip('.')}”"


def listed(items: Sequence[str]) -> str:
    """``a``, ``a and b`` or ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def counted(count: int, noun: str) -> str:
    """``1 note`` or ``3 notes``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]
