"""Versions in a question: "v2.13.5", "2.13.5" and "version 2.13" are names, not heaps of numbers.

A version is one slot, found with the "v" or without and, where it leaves out the last numbers, by
each that begins so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memctl.retrieve.question import Question, Slot, version_at
from memctl.retrieve.statistics import TermStatistics

_MOST = 32
"""Versions that one which leaves out the last numbers may stand for."""


def versioned(question: Question, statistics: TermStatistics) -> Question:
    """Return the question with each of its versions as one slot."""
    found = {
        place: version
        for place in range(len(question.words))
        if (version := version_at(question.words, place))
    }
    if not found:
        return question
    slots = list(question.word_slots)
    for place, version in found.items():
        slots[place] = (_slot(version, statistics),)
    named = replace(question, word_slots=tuple(slots))
    there = set(named.terms)
    return replace(named, pairs=tuple(pair for pair in question.pairs if there.issuperset(pair)))


def _slot(version: str, statistics: TermStatistics) -> Slot:
    return tuple(dict.fromkeys([version, f"v{version}", *_longer(version, statistics)]))


def _longer(version: str, statistics: TermStatistics) -> Iterator[str]:
    longer = re.compile(rf"v?{re.escape(version)}\.\d")
    yield from sorted(filter(longer.match, statistics.frequencies))[:_MOST]
