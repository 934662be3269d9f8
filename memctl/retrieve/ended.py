"""What a hit says that does not hold any more: facts of it that ended in favour of newer ones.

Evidence stays as its source has it, and is found; but it is no answer to what is so now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from memctl.records import Ended, Hit
from memctl.retrieve.candidates import Sources
from memctl.store.filters import col
from memctl.store.snapshot import Snapshot

_ENDED = (col("level") == "memory") & ~col("superseded_by").is_null()
_PLACE = ("id", "document_id", "start", "end")
_COLUMNS = (*_PLACE, "valid_to", "superseded_by")


class Endings:
    """Marks what of hits has ended; looks only where anything has.

    Args:
        sources: Snapshots by the name of their knowledge base.
    """

    def __init__(self, sources: Sources) -> None:
        self._all = sources

    @cached_property
    def _sources(self) -> Sources:
        return {kb: source for kb, source in self._all.items() if source.count("memories", _ENDED)}

    def marked(self, hits: Sequence[Hit], at: datetime) -> tuple[Hit, ...]:
        """Return the hits with what of them had ended by a time; what ended later held then."""
        documents: dict[str, set[str]] = {}
        for hit in hits:
            if hit.document_id is not None and hit.kb in self._sources:
                documents.setdefault(hit.kb, set()).add(hit.document_id)
        found = {kb: _by_document(self._sources[kb], ids, at) for kb, ids in documents.items()}
        return tuple(_marked(h, found.get(h.kb, {}).get(h.document_id or "", ())) for h in hits)


def has_ended(hit: Hit, start: int, end: int) -> bool:
    """Tell whether what stands there in the text of a hit does not hold any more."""
    if hit.start is None:
        return False
    first, last = hit.start + start, hit.start + end
    return any(
        min(last, span.end) - max(first, span.start) > (last - first) / 2 for span in hit.ended
    )


def _marked(hit: Hit, ended: Iterable[Ended]) -> Hit:
    """Mark a hit whose text is a run of its document's, and which says it."""
    if hit.start is None or hit.end is None or hit.end - hit.start != len(hit.text):
        return hit
    inside = tuple(span for span in ended if span.start < hit.end and hit.start < span.end)
    return replace(hit, ended=inside) if inside else hit


def _by_document(
    source: Snapshot, documents: Iterable[str], at: datetime
) -> Mapping[str, list[Ended]]:
    where = col("document_id").is_in(sorted(documents)) & _ENDED & (col("valid_to") <= at)
    rows = source.scan("memories", where, _COLUMNS).to_pylist()
    if not rows:
        return {}
    later = source.get("memories", [row["superseded_by"] for row in rows], _PLACE).to_pylist()
    places = {row["id"]: row for row in later}
    found: dict[str, list[Ended]] = {}
    for row in rows:
        if _says_it_elsewhere(row, places.get(row["superseded_by"])):
            span = Ended(row["start"], row["end"], row["valid_to"], row["superseded_by"])
            found.setdefault(row["document_id"], []).append(span)
    return found


def _says_it_elsewhere(row: Mapping[str, Any], later: Mapping[str, Any] | None) -> bool:
    """Tell a newer fact from a later version of the same one, which rests on the same words."""
    if row["start"] is None or later is None or later["start"] is None:
        return False
    return any(row[name] != later[name] for name in ("document_id", "start", "end"))
