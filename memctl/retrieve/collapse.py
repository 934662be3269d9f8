"""What says the same becomes one: a distilled memory and the passage it was taken from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memctl.retrieve.candidates import Candidate, Key


@dataclass(frozen=True, slots=True)
class Collapsed:
    """A candidate that will be a hit, with its score and what that is made of."""

    candidate: Candidate
    score: float
    legs: dict[str, float]


def collapsed(items: Sequence[Collapsed], collapses: bool) -> list[Collapsed]:
    """Return the items best first; equal scores by knowledge base and id.

    With ``collapses`` a distilled memory gives its score to the best of the passages it rests on,
    when that is higher than the passage's own, and is left out; ``via_<type>`` tells so.
    """
    kept = _without_distilled(items) if collapses else list(items)
    return sorted(kept, key=lambda item: (-item.score, item.candidate.key))


def _without_distilled(items: Sequence[Collapsed]) -> list[Collapsed]:
    kept = {item.candidate.key: item for item in items}
    for item in items:
        passage = _passage_of(item, kept)
        if passage is not None:
            del kept[item.candidate.key]
            kept[passage.candidate.key] = _joined(passage, item)
    return list(kept.values())


def _passage_of(item: Collapsed, kept: dict[Key, Collapsed]) -> Collapsed | None:
    if item.candidate.level != "memory":
        return None
    keys = ((item.candidate.key[0], id) for id in item.candidate.source_ids)
    passages = [
        kept[key] for key in keys if key in kept and kept[key].candidate.level == "evidence"
    ]
    return max(passages, key=lambda passage: passage.score, default=None)


def _joined(passage: Collapsed, distilled: Collapsed) -> Collapsed:
    via = f"via_{distilled.candidate.type}"
    score = max(distilled.score, passage.legs.get(via, distilled.score))
    return replace(
        passage, score=max(passage.score, distilled.score), legs=passage.legs | {via: score}
    )
