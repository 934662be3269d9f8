"""The book of the ledger on names: which were said by hand to mean the same, and which not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from memctl.store.books import Connections, from_text, to_text


class NameDecision(NamedTuple):
    """What somebody said of two names, each as names are compared."""

    one: str
    other: str
    same: bool
    at: datetime


class NameBook:
    """Decisions on names by hand; a later one on the same two takes the place of an earlier one."""

    def __init__(self, ledger: Connections) -> None:
        self._ledger = ledger

    def put(self, pairs: Iterable[tuple[str, str]], now: datetime, *, same: bool) -> None:
        """Note of pairs of names that they mean the same, or that they do not."""
        ordered = map(sorted, pairs)
        self.restore(NameDecision(one, other, same, now) for one, other in ordered)

    def restore(self, decisions: Iterable[NameDecision]) -> None:
        """Bring decisions back as they were."""
        rows = [(each.one, each.other, each.same, to_text(each.at)) for each in decisions]
        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO name_decisions VALUES (?, ?, ?, ?)", rows
            )

    def all(self) -> list[NameDecision]:
        """Return all decisions, the oldest first."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT one, other, same, at FROM name_decisions ORDER BY at, one, other"
            ).fetchall()
        return [
            NameDecision(one, other, bool(same), from_text(at)) for one, other, same, at in rows
        ]
