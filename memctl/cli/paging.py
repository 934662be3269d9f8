"""Which rows of a listing are shown, and in which order: -n, --offset, --sort and --desc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import typer
from msgspec import Struct

from memctl.errors import UsageError
from memctl.literals import DocumentSort, Sort
from memctl.plain_values import to_plain
from memctl.validation import nearest

T = TypeVar("T")

Limit = Annotated[
    int, typer.Option("-n", "--limit", min=0, help="At most this many rows; 0 for all.")
]
_OFFSET = Annotated[int, typer.Option("--offset", min=0, help="How many rows to skip.")]
_DESCENDING = Annotated[bool, typer.Option("--desc", help="With --sort, the greatest first.")]
_KEY = Annotated[
    str | None, typer.Option("--sort", metavar="KEY", help="Sort by this key of the JSON rows.")
]


class Page(Struct, frozen=True):
    """Which rows of a listing to show; as a parameter's default, the defaults of its options."""

    sort_option: ClassVar[Any] = _KEY
    limit: int = 0
    """0 for all."""
    offset: int = 0
    sort: str | None = None
    """A key of the rows as JSON; None for the order of the listing itself."""
    desc: bool = False

    @classmethod
    def options(cls) -> dict[str, Any]:
        """Return the options that a command's parameter ``page`` stands for."""
        return {
            "limit": Limit, "offset": _OFFSET, "sort": cls.sort_option, "desc": _DESCENDING,
        }  # fmt: skip

    @property
    def needed(self) -> int | None:
        """How many rows to fetch: one more than are shown, to see whether more follow; or all."""
        return self.offset + self.limit + 1 if self.limit and self.sort is None else None

    def of(self, rows: Sequence[T]) -> Sequence[T]:
        """Return the requested rows.

        Raises:
            UsageError: No row has the key that they are to be sorted by.
        """
        return self.sort_rows(rows)[self.offset :][: self.limit or None]

    def sort_rows(self, rows: Sequence[T]) -> Sequence[T]:
        """Return all rows in the requested order; those without a value come last."""
        if self.sort is None or not rows:
            return rows
        values = [to_plain(row).get(self.sort) for row in rows]
        known = to_plain(rows[0])
        if self.sort not in known:
            hint = nearest(self.sort, known) or f"sort by one of {', '.join(known)}"
            raise UsageError(f"these rows have no key {self.sort[:40]!r}", hint)
        pairs = list(zip(values, rows, strict=True))
        filled = [pair for pair in pairs if pair[0] not in (None, "")]
        filled.sort(key=lambda pair: _sort_key(pair[0]), reverse=self.desc)
        return [row for _, row in filled] + [row for value, row in pairs if value in (None, "")]


class MemoryPage(Page, frozen=True):
    """Which memories to show; they are sorted where they are stored."""

    sort_option: ClassVar[Any] = Annotated[
        Sort | None, typer.Option("--sort", help="What to sort by; by default the newest first.")
    ]
    sort: Sort | None = None


class DocumentPage(Page, frozen=True):
    """Which documents to show; they are sorted where they are stored."""

    sort_option: ClassVar[Any] = Annotated[
        DocumentSort | None,
        typer.Option("--sort", help="What to sort by; by default the latest ingested first."),
    ]
    sort: DocumentSort | None = None


def _sort_key(value: Any) -> tuple[float, str]:
    """Return a key that sorts numbers by size, words ignoring case, and lists by length."""
    if isinstance(value, int | float):
        return float(value), ""
    if isinstance(value, list | dict):
        return float(len(value)), ""
    return 0.0, str(value).casefold()
