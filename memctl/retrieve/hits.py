"""Ranked candidates become hits: their rows are read in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from memctl.records import Copy, Hit
from memctl.retrieve.candidates import Candidate, Key, Sources
from memctl.retrieve.collapse import Collapsed, Folded

_FROM_ELSEWHERE = {"rank", "score", "kb", "memory_id", "legs", "ended"}
_FROM_ELSEWHERE |= {"also_in", "more_in_document"}
_COLUMNS = [item.name for item in fields(Hit) if item.name not in _FROM_ELSEWHERE]
_OF_COPY = [item.name for item in fields(Copy) if item.name in _COLUMNS]


def hits_of(sources: Sources, ranked: Sequence[Collapsed]) -> tuple[Hit, ...]:
    """Return a hit for each item, in order, ranked from 1."""
    rows = _rows(sources, [item.candidate for item in ranked], _COLUMNS)
    copies = [copy.candidate for item in ranked for copy in item.copies]
    places = _rows(sources, copies, _OF_COPY)
    return tuple(
        _hit(rank, item, rows[item.candidate.key], places)
        for rank, item in enumerate(ranked, start=1)
    )


def _rows(
    sources: Sources, candidates: Sequence[Candidate], columns: Sequence[str]
) -> dict[Key, dict[str, Any]]:
    rows: dict[Key, dict[str, Any]] = {}
    for kb in dict.fromkeys(each.key[0] for each in candidates):
        own = [each for each in candidates if each.key[0] == kb]
        table = sources[kb].rows("memories", [each.number for each in own], columns)
        rows |= zip((each.key for each in own), table.to_pylist(), strict=True)
    return rows


def _hit(rank: int, item: Collapsed, row: dict[str, Any], places: dict[Key, dict[str, Any]]) -> Hit:
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


def _copy(copy: Folded, place: dict[str, Any]) -> Copy:
    kb, id = copy.candidate.key
    return Copy(kb=kb, memory_id=id, likeness=copy.likeness, **place)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def hits_by_id(sources: Sources, kb: str, ids: Sequence[str]) -> dict[str, Hit]:
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
