"""What says the same becomes one: a distilled memory and the passage it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from memctl.records import DuplicateHit, Hit
from memctl.search.retrieval.candidates import Candidate, Key, Sources

DISTILLED_LIFT = 0.25
"""Of the difference, when a distilled memory scores higher than its passage.  Being short, it
often does; giving the passage all of it pushed better passages down.  It gets all where the
distilled memory has words of the question that the passage lacks."""


@dataclass(frozen=True, slots=True)
class FoldedDuplicate:
    """A candidate that says the same as a hit, and is told of with it."""

    candidate: Candidate
    likeness: float
    """1 for the same text."""


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate that will be a hit, with its score and what that is made of."""

    candidate: Candidate
    score: float
    legs: dict[str, float]
    copies: tuple[FoldedDuplicate, ...] = ()
    more: tuple[Candidate, ...] = ()
    """What else of the document would have been a hit, had it not enough of them."""


def fold_distilled(items: Sequence[ScoredCandidate], collapses: bool) -> list[ScoredCandidate]:
    """Return the items best first; equal scores by knowledge base and id.

    With ``collapses`` a distilled memory is left out, but raises the best of the passages that it
    rests on; ``via_<type>`` tells the score that it had.
    """
    return sort_by_score(_without_distilled(items) if collapses else items)


def sort_by_score(items: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the items best first; equal scores by knowledge base and id."""
    return sorted(items, key=lambda item: (-item.score, item.candidate.key))


def boost_score(item: ScoredCandidate, clue: str, by: float) -> ScoredCandidate:
    """Return the item with a higher score, and ``clue`` telling by how much; as it is by 0."""
    if not by:
        return item
    return replace(item, score=item.score + by, legs=item.legs | {clue: by})


def _without_distilled(items: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    kept = {item.candidate.key: item for item in items}
    own = {item.candidate.key: item.score for item in items}
    for item in items:
        passage = _passage_of(item, kept)
        if passage is not None:
            del kept[item.candidate.key]
            kept[passage.candidate.key] = _joined(passage, item, own[passage.candidate.key])
    return list(kept.values())


def _passage_of(item: ScoredCandidate, kept: dict[Key, ScoredCandidate]) -> ScoredCandidate | None:
    if item.candidate.level != "memory":
        return None
    keys = ((item.candidate.key[0], id) for id in item.candidate.source_ids)
    passages = [
        kept[key] for key in keys if key in kept and kept[key].candidate.level == "evidence"
    ]
    return max(passages, key=lambda passage: passage.score, default=None)


def _joined(passage: ScoredCandidate, distilled: ScoredCandidate, own: float) -> ScoredCandidate:
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
    return DISTILLED_LIFT if whole_document or distilled.terms <= passage.terms else 1.0


_FROM_ELSEWHERE = {"rank", "score", "kb", "memory_id", "legs", "ended"}
_FROM_ELSEWHERE |= {"also_in", "more_in_document"}
_COLUMNS = [item.name for item in fields(Hit) if item.name not in _FROM_ELSEWHERE]
_OF_COPY = [item.name for item in fields(DuplicateHit) if item.name in _COLUMNS]


def load_hits(sources: Sources, ranked: Sequence[ScoredCandidate]) -> tuple[Hit, ...]:
    """Return a hit for each item, in order, ranked from 1."""
    rows = _read_rows(sources, [item.candidate for item in ranked], _COLUMNS)
    copies = [copy.candidate for item in ranked for copy in item.copies]
    places = _read_rows(sources, copies, _OF_COPY)
    return tuple(
        _hit(rank, item, rows[item.candidate.key], places)
        for rank, item in enumerate(ranked, start=1)
    )


def _read_rows(
    sources: Sources, candidates: Sequence[Candidate], columns: Sequence[str]
) -> dict[Key, dict[str, Any]]:
    rows: dict[Key, dict[str, Any]] = {}
    for kb in dict.fromkeys(each.key[0] for each in candidates):
        own = [each for each in candidates if each.key[0] == kb]
        table = sources[kb].rows("memories", [each.number for each in own], columns)
        rows |= zip((each.key for each in own), table.to_pylist(), strict=True)
    return rows


def _hit(
    rank: int, item: ScoredCandidate, row: dict[str, Any], places: dict[Key, dict[str, Any]]
) -> Hit:
    kb, id = item.candidate.key
    values: dict[str, Any] = {name: _value(value) for name, value in row.items()}
    return Hit(
        rank=rank,
        score=item.score,
        kb=kb,
        memory_id=id,
        legs=item.legs,
        also_in=tuple(_copy(copy, places[copy.candidate.key]) for copy in item.copies),
        more_in_document=tuple(each.key[1] for each in item.more),
        **values,
    )


def _copy(copy: FoldedDuplicate, place: dict[str, Any]) -> DuplicateHit:
    kb, id = copy.candidate.key
    return DuplicateHit(kb=kb, memory_id=id, likeness=copy.likeness, **place)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def load_hits_by_id(sources: Sources, kb: str, ids: Sequence[str]) -> dict[str, Hit]:
    """Return what stands under some ids in a knowledge base, as hits that nothing has ranked."""
    table = sources[kb].get("memories", ids, ["id", *_COLUMNS])
    return {
        row["id"]: Hit(
            rank=0,
            score=0.0,
            kb=kb,
            memory_id=row["id"],
            **{name: _value(row[name]) for name in _COLUMNS},
        )
        for row in table.to_pylist()
    }
