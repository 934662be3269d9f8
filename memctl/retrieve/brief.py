"""What is looked for of a very long message, such as a prompt with a log or a document pasted in.

Every word costs time for each memory that is compared, and common words say nothing beside
hundreds of rare ones.
"""

from __future__ import annotations

from dataclasses import replace

from memctl.retrieve.question import Question, Slot, slot_weight
from memctl.retrieve.statistics import TermStatistics

MOST = 128
"""Different words that are looked for; questions have fewer."""
_ENDS = 24
"""Words at the beginning and at the end, where it is written what is wanted of the rest."""
_LONGEST_WORD = 200
"""Characters of a word: whole pages are one where no spaces are written."""


def briefly(question: Question, statistics: TermStatistics) -> Question:
    """Return a question with no more words than can be looked for.

    Those at both ends, and of the others the rarest that memories have.
    """
    if len(question.slots) <= MOST:
        return question
    left = _chosen(question, statistics)
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


def left_out(question: Question, brief: Question) -> tuple[str, ...]:
    """Return a note on what is not looked for; none where all is."""
    every, looked_for = len(question.slots), len(brief.slots)
    if every == looked_for:
        return ()
    return (f"of {every:,} different words the {looked_for} that tell most were looked for",)


def _chosen(question: Question, statistics: TermStatistics) -> set[Slot]:
    first = {
        slot
        for place, slots in enumerate(question.word_slots)
        if _is_at_an_end(place, question)
        for slot in slots
    }

    def order(slot: Slot) -> tuple[bool, bool, float]:
        known = any(map(statistics.frequencies.get, slot))
        return slot not in first, not known, -slot_weight(slot, statistics)

    return set(sorted(question.slots, key=order)[:MOST])


def _is_at_an_end(place: int, question: Question) -> bool:
    return place < _ENDS or place >= len(question.words) - _ENDS
