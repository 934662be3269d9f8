"""Where something stands, in words: document, page, row or time, characters, date."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from memctl.cli.text import clock, moment, shortened

_LONGEST_NAME = 60


class Place(Protocol):
    """What a citation and a piece of evidence have in common."""

    @property
    def source(self) -> str:
        """Where the document came from."""
        ...

    @property
    def title(self) -> str:
        """The document's title."""
        ...

    @property
    def start(self) -> int | None:
        """First character."""
        ...

    @property
    def end(self) -> int | None:
        """The character after the last one."""
        ...

    @property
    def page(self) -> int | None:
        """Page, from 1."""
        ...

    @property
    def row(self) -> int | None:
        """Row, from 1."""
        ...

    @property
    def time_start(self) -> float | None:
        """Seconds into a recording."""
        ...

    @property
    def created_at(self) -> datetime:
        """The source's date."""
        ...


def place(where: Place) -> str:
    """Return where something stands: document, file, page, row or time, characters, date."""
    file_name = where.source.rsplit("/", 1)[-1]
    called = where.title or file_name
    parts = [shortened(called, _LONGEST_NAME)]
    if file_name.rpartition(".")[0] == called:
        parts = []
    if file_name and file_name != called:
        parts.append(shortened(file_name, _LONGEST_NAME))
    if where.page is not None:
        parts.append(f"page {where.page}")
    if where.row is not None:
        parts.append(f"row {where.row}")
    if where.time_start is not None:
        parts.append(f"at {clock(where.time_start)}")
    if where.start is not None:
        parts.append(f"characters {where.start}-{where.end}")
    parts.append(moment(where.created_at))
    return ", ".join(part for part in parts if part)
