"""Versions in a question: "v2.13.5", "2.13.5" and "version 2.13" are names, not heaps of numbers.

A version is one slot, found with the "v" or without and, where it leaves out the last numbers, by
each that begins so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from memctl.language.term_analysis import plain_form, terms
from memctl.search.query.question import Question, Slot, slot_weight, version_at
from memctl.search.query.search_syntax import Pattern
from memctl.search.retrieval.candidates import Sources
from memctl.search.retrieval.term_statistics import TermStatistics
from memctl.store.tables.filter_expressions import Expr, both, col
from memctl.store.tables.snapshot import Snapshot

_MAX_VERSIONS = 32
"""Versions that one which leaves out the last numbers may stand for."""


def recognize_versions(question: Question, statistics: TermStatistics) -> Question:
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
        slots[place] = (_version_slot(version, statistics),)
    named = replace(question, word_slots=tuple(slots))
    there = set(named.terms)
    return replace(named, pairs=tuple(pair for pair in question.pairs if there.issuperset(pair)))


def _version_slot(version: str, statistics: TermStatistics) -> Slot:
    return tuple(dict.fromkeys([version, f"v{version}", *_longer_versions(version, statistics)]))


def _longer_versions(version: str, statistics: TermStatistics) -> Iterator[str]:
    longer = re.compile(rf"v?{re.escape(version)}\.\d")
    yield from sorted(filter(longer.match, statistics.frequencies))[:_MAX_VERSIONS]


MAX_WORDS = 128
"""Different words that are looked for; questions have fewer."""
_ENDS = 24
"""Words at the beginning and at the end, where it is written what is wanted of the rest."""
_LONGEST_WORD = 200
"""Characters of a word: whole pages are one where no spaces are written."""


def shorten_question(question: Question, statistics: TermStatistics) -> Question:
    """Return a question with no more words than can be looked for.

    Those at both ends, and of the others the rarest that memories have.
    """
    if len(question.slots) <= MAX_WORDS:
        return question
    left = _most_telling_slots(question, statistics)
    words: list[str] = []
    word_slots: list[tuple[Slot, ...]] = []
    for place, (word, slots) in enumerate(zip(question.words, question.word_slots, strict=True)):
        kept = tuple(slot for slot in slots if slot in left)
        left.difference_update(kept)
        if kept or _is_at_an_end(place, question):
            words.append(word[:_LONGEST_WORD])
            word_slots.append(kept)
    brief = replace(
        question, text=" ".join(words), words=tuple(words), word_slots=tuple(word_slots)
    )
    there = set(brief.terms)
    return replace(brief, pairs=tuple(pair for pair in question.pairs if there.issuperset(pair)))


def shortening_note(question: Question, brief: Question) -> tuple[str, ...]:
    """Return a note on what is not looked for; none where all is."""
    every, looked_for = len(question.slots), len(brief.slots)
    if every == looked_for:
        return ()
    return (f"of {every:,} different words the {looked_for} that tell most were looked for",)


def _most_telling_slots(question: Question, statistics: TermStatistics) -> set[Slot]:
    first = {
        slot
        for place, slots in enumerate(question.word_slots)
        if _is_at_an_end(place, question)
        for slot in slots
    }

    def order(slot: Slot) -> tuple[bool, bool, float]:
        known = any(map(statistics.frequencies.get, slot))
        return slot not in first, not known, -slot_weight(slot, statistics)

    return set(sorted(question.slots, key=order)[:MAX_WORDS])


def _is_at_an_end(place: int, question: Question) -> bool:
    return place < _ENDS or place >= len(question.words) - _ENDS


MAX_EXPANSIONS = 32
"""Terms that one pattern may stand for."""
_LEAST_STEM = 4
"""Shorter stems are other words: "par" of "pars*"."""
_ROWS = 400
"""Memories looked at for the words of a table too large to be known."""
_NEWEST = 5_000
"""Memories that may not be in the index yet."""

Expansions = Mapping[Pattern, tuple[str, ...]]


def expand_pattern(
    pattern: Pattern,
    sources: Sources,
    where: Expr | None,
    statistics: TermStatistics,
    languages: Sequence[str],
) -> tuple[str, ...]:
    """Return the terms that a pattern stands for, the nearest and then the most frequent first.

    Args:
        pattern: A prefix, or a word that may be misspelt.
        sources: Have the words.
        where: What holds of the memories that are asked.
        statistics: The words of these memories, or of a sample.
        languages: Those of the memories.
    """
    begins = _beginning_of(pattern.word)
    wholes = (found[-1] for language in languages if (found := terms(pattern.word, language)))
    forms = {begins, *(stem for stem in wholes if len(stem) >= _LEAST_STEM)}
    known = Counter(statistics.frequencies)
    if statistics.sampled < statistics.memories:
        known += _more_terms(pattern, sources, where, forms)
    judged = ((term, _distance(pattern, begins, forms, term)) for term in known)
    near = {term: away for term, away in judged if away is not None}
    return tuple(sorted(near, key=lambda term: (near[term], -known[term], term))[:MAX_EXPANSIONS])


def apply_expansions(
    question: Question, patterns: Mapping[int, Pattern], found: Expansions
) -> Question:
    """Return the question with what its patterns stand for in their place."""
    slots = tuple(
        (found[patterns[at]],) if at in patterns and found[patterns[at]] else own
        for at, own in enumerate(question.word_slots)
    )
    widened = replace(question, word_slots=slots)
    there = set(widened.terms)
    return replace(widened, pairs=tuple(pair for pair in question.pairs if there.issuperset(pair)))


def _more_terms(
    pattern: Pattern, sources: Sources, where: Expr | None, forms: set[str]
) -> Counter[str]:
    """Return the terms of memories that the index says have some that may be meant."""
    found: Counter[str] = Counter()
    for source in sources.values():
        tables = _misspelt(source, where, forms, pattern.edits) if pattern.edits else ()
        for rows in tables or (_beginning(source, where, _beginning_of(pattern.word)),):
            for text in rows["search_text"].to_pylist():
                found.update(set(text.split()))
    return found


def _misspelt(
    source: Snapshot, where: Expr | None, forms: set[str], edits: int
) -> tuple[pa.Table, ...]:
    # lance 13 compares nearly equal words in its index alone, which the newest rows are not in yet.
    skipped = max(source.count("memories", where) - _NEWEST, 0)
    return (
        source.keyword(sorted(forms), where, _ROWS, ("search_text",), edits=edits),
        source.scan("memories", where, ("search_text",), limit=_NEWEST, offset=skipped),
    )


def _beginning_of(word: str) -> str:
    """Return what the terms begin with of words that begin so: "proj4711", but "2026-05-12"."""
    plain = plain_form(word)
    return plain.replace("-", "") if any(map(str.isalpha, plain)) else plain


def _beginning(source: Snapshot, where: Expr | None, word: str) -> pa.Table:
    text = col("search_text")
    begins = text.like_glob(f"{word}*") | text.like_glob(f"* {word}*")
    return source.scan("memories", both(where, begins), ("search_text",), limit=_ROWS)


def _distance(pattern: Pattern, begins: str, forms: set[str], term: str) -> int | None:
    """Return by how many letters a term differs; None where it is not meant."""
    if not pattern.edits:
        return 0 if term in forms or term.startswith(begins) else None
    away = [edits for form in forms if (edits := _edits(form, term, pattern.edits)) is not None]
    return min(away, default=None)


def _edits(one: str, other: str, most: int) -> int | None:
    """Return how many letters to change, add, drop or swap make one word of another.

    None where it takes more than ``most``; optimal string alignment (Damerau 1964).
    """
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return None
    distance = list(_distance_rows(one, other))[-1][-1]
    return distance if distance <= most else None


def _distance_rows(one: str, other: str) -> Iterator[list[int]]:
    """Yield the rows of the table of distances between the beginnings of two words."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    yield last
    for at, letter in enumerate(one, start=1):
        row = [at]
        for to, theirs in enumerate(other, start=1):
            cost = min(last[to] + 1, row[-1] + 1, last[to - 1] + (letter != theirs))
            swapped = at > 1 and to > 1 and letter == other[to - 2] and theirs == one[at - 2]
            row.append(min(cost, before[to - 2] + 1) if swapped else cost)
        before, last = last, row
        yield row
