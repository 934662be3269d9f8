"""What ``pars*`` and ``aurroa~`` stand for: words that the memories have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from memctl.retrieve.candidates import Sources
from memctl.retrieve.question import Question
from memctl.retrieve.statistics import TermStatistics
from memctl.retrieve.syntax import Pattern
from memctl.store.filters import Expr, both, col
from memctl.store.snapshot import Snapshot
from memctl.understand.terms import plain_form, terms

MOST = 32
"""Terms that one pattern may stand for."""
_LEAST_STEM = 4
"""Shorter stems are other words: "par" of "pars*"."""
_ROWS = 400
"""Memories looked at for the words of a table too large to be known."""
_NEWEST = 5_000
"""Memories that may not be in the index yet."""

Expansions = Mapping[Pattern, tuple[str, ...]]


def expansions(
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
    return tuple(sorted(near, key=lambda term: (near[term], -known[term], term))[:MOST])


def with_expansions(
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
    distance = list(_rows(one, other))[-1][-1]
    return distance if distance <= most else None


def _rows(one: str, other: str) -> Iterator[list[int]]:
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
