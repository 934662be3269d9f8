"""Decisions by hand on who is the same: made, looked at before they are kept, and taken back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memctl.errors import UsageError
from memctl.graph.index import Node
from memctl.graph.names import key_of
from memctl.graph.resolution import Decisions, pair
from memctl.graph.views import GraphView

if TYPE_CHECKING:
    from memctl.store.graph_book import NameBook


def decisions_of(book: NameBook) -> Decisions:
    """Return what stands in the book."""
    decided = book.all()
    return Decisions(
        frozenset((each.one, each.other) for each in decided if each.same),
        frozenset((each.one, each.other) for each in decided if not each.same),
    )


def merge(view: GraphView, book: NameBook, now: datetime, one: str, other: str) -> Node:
    """Keep that two names mean the same, and return the node that they are now.

    Raises:
        NotFoundError: Nothing is called that.
        UsageError: They are one already.
    """
    first, second = view.find(one)[0], view.find(other)[0]
    if first == second:
        raise UsageError(f"{one!r} and {other!r} are one already: {first.name}")
    written = pair(key_of(one), key_of(other))
    same = {pair(first.key, second.key)} | ({written} & view.decisions.apart)
    after = view.deciding(Decisions(view.decisions.same | same, view.decisions.apart - same))
    together = set(after.find(one)) & set(after.find(other))
    if not together:
        raise UsageError(f"{one!r} and {other!r} cannot be one: both are said of several")
    book.put(sorted(same), now, same=True)
    return next(node for node in after.find(one) if node in together)


def unmerge(
    view: GraphView, book: NameBook, now: datetime, one: str, other: str
) -> tuple[Node, Node]:
    """Keep that two names do not mean the same, and return the nodes that they are now.

    Raises:
        NotFoundError: Nothing is called that.
        UsageError: They are two already, or nothing tells them apart.
    """
    found, others = view.find(one), view.find(other)
    if not set(found) & set(others):
        raise UsageError(f"{one!r} and {other!r} are two already")
    wanted = _pairs(key_of(one), key_of(other), found[0].key)
    decided = Decisions(view.decisions.same - wanted, view.decisions.apart | wanted)
    after = view.deciding(decided)
    now_one, now_other = after.find(one), after.find(other)
    if not wanted or set(now_one) & set(now_other):
        raise UsageError(
            f"nothing tells {one!r} and {other!r} apart",
            "names that differ in case or marks alone are one; a third name may hold them together",
        )
    book.put(sorted(wanted), now, same=False)
    return now_one[0], now_other[0]


def _pairs(one: str, other: str, node: str) -> frozenset[tuple[str, str]]:
    """The pairs that have to be apart for one name of a node to leave it, and the other to stay."""
    leaving, staying = (other, one) if one == node else (one, other)
    return frozenset(pair(leaving, key) for key in (staying, node) if key != leaving)
