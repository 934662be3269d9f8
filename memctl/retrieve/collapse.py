"""What says the same becomes one: a distilled memory and the passage it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memctl.retrieve.candidates import Candidate, Key

LIFT = 0.25
"""Of the difference, when a distilled memory scores higher than its passage.  Being short, it
often does; giving the passage all of it pushed better passages down.  It gets all where the
distilled memory has words of the question that the passage lacks."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A candidate that says the same as a hit, and is told of with it."""

    candidate: Candidate
    likeness: float
    """1 for the same text."""


@dataclass(frozen=True, slots=True)
class Collapsed:
    """A candidate that will be a hit, with its score and what that is made of."""

    candidate: Candidate
    score: float
    legs: dict[str, float]
    copies: tuple[Folded, ...] = ()
    more: tuple[Candidate, ...] = ()
    """What else of the document would have been a hit, had it not enough of them."""


def collapsed(items: Sequence[Collapsed], collapses: bool) -> list[Collapsed]:
    """Return the items best first; equal scores by knowledge base and id.

    With ``collapses`` a distilled memory is left out, but raises the best of the passages that it
    rests on; ``via_<type>`` tells the score that it had.
    """
    return ordered(_without_distilled(items) if collapses else items)


def ordered(items: Iterable[Collapsed]) -> list[Collapsed]:
    """Return the items best first; equal scores by knowledge base and id."""
    return sorted(items, key=lambda item: (-item.score, item.candidate.key))


def raised(item: Collapsed, clue: str, by: float) -> Collapsed:
    """Return the item with a higher score, and ``clue`` telling by how much; as it is by 0."""
    if not by:
        return item
    return replace(item, score=item.score + by, legs=item.legs | {clue: by})


def _without_distilled(items: Sequence[Collapsed]) -> list[Collapsed]:
    kept = {item.candidate.key: item for item in items}
    own = {item.candidate.key: item.score for item in items}
    for item in items:
        passage = _passage_of(item, kept)
        if passage is not None:
            del kept[item.candidate.key]
            kept[passage.candidate.key] = _joined(passage, item, own[passage.candidate.key])
    return list(kept.values())


def _passage_of(item: Collapsed, kept: dict[Key, Collapsed]) -> Collapsed | None:
    if item.candidate.level != "memory":
        return None
    keys = ((item.candidate.key[0], id) for id in item.candidate.source_ids)
    passages = [
        kept[key] for key in keys if key in kept and kept[key].candidate.level == "evidence"
    ]
    return max(passages, key=lambda passage: passage.score, default=None)


def _joined(passage: Collapsed, distilled: Collapsed, own: float) -> Collapsed:
    """Return the passage, raised from its own score by what was distilled from it."""
    via = f"via_{distilled.candidate.type}"
    raised = own + _lift(passage.candidate, distilled.candidate) * (distilled.score - own)
    return replace(
        passage,
        score=max(passage.score, raised),
        legs=passage.legs | {via: max(distilled.score, passage.legs.get(via, distilled.score))},
    )


def _lift(passage: Candidate, distilled: Candidate) -> float:
    whole_document = distilled.type == "gist" or len(distilled.source_ids) > 1
    return LIFT if whole_document or distilled.terms <= passage.terms else 1.0
