"""Rows of one or several knowledge bases as one listing, each with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memctl.cli.output import Column
from memctl.cli.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.knowledge_base import KnowledgeBase
    from memctl.knowledge_bases import KnowledgeBases

Fetch = Callable[["KnowledgeBase", int | None], "pa.Table"]


def listed(session: Session, bases: KnowledgeBases, fetch: Fetch, limit: int) -> pa.Table:
    """Return rows of every knowledge base, with its name in a column ``kb``.

    Args:
        session: Where to say that there is more.
        bases: Whose rows.
        fetch: Gives at most so many rows of one knowledge base, or all for None.
        limit: At most so many rows of each; 0 for all.
    """
    import pyarrow as pa

    tables = []
    for base in bases:
        rows = fetch(base, limit + 1 if limit else None)
        if limit and rows.num_rows > limit:
            session.say(f"note: only the first {limit} of {base.name} are shown; -n 0 shows all")
            rows = rows.slice(0, limit)
        tables.append(rows.add_column(0, "kb", pa.array([base.name] * rows.num_rows, pa.string())))
    return pa.concat_tables(tables)


def columns_for(bases: KnowledgeBases, columns: Sequence[Column]) -> list[Column]:
    """Return the columns of the table view, the knowledge base in front where there are several."""
    return [Column("kb", "KB"), *columns] if len(bases) > 1 else list(columns)
