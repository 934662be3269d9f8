"""Where a piece of a hit stands, for whoever wants to follow it down."""

from __future__ import annotations

from memctl.records import Citation, Hit


def has_offsets(hit: Hit) -> bool:
    """Say whether a hit's text is that of its document between its offsets."""
    return hit.start is not None and hit.end is not None and hit.end - hit.start == len(hit.text)


def citation_of(number: int, hit: Hit, start: int, end: int) -> Citation:
    """Return the citation of ``hit.text[start:end]``.

    It has no offsets where a memory's text is not that of a document.
    """
    begins = hit.start if has_offsets(hit) else None
    return Citation(
        number=number,
        kb=hit.kb,
        memory_id=hit.memory_id,
        document_id=hit.document_id,
        source=hit.source,
        title=hit.title,
        quote=hit.text[start:end],
        start=None if begins is None else begins + start,
        end=None if begins is None else begins + end,
        page=hit.page,
        row=hit.row,
        time_start=hit.time_start,
        created_at=hit.created_at,
    )
