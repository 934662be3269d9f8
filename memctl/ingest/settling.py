"""What comes of a new fact once it has been compared: rows that one transaction writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from memctl.choices import CONTRADICTS
from memctl.ids import relation_id
from memctl.ingest.nearest import Fact
from memctl.ingest.succession import end
from memctl.records import Relation

if TYPE_CHECKING:
    from memctl.store.names import TableName
    from memctl.store.transaction import Transaction
    from memctl.understand.comparison import Word

Came = Literal["added", "updated", "contradicted", "restated"]

STATED = "stated"
"""The method of what a person has stated or edited by hand; a model's word does not end it."""
RESTATES = "restates"
UPDATES = "updates"
_CONFIDENCE = 0.85


@dataclass(frozen=True, slots=True)
class Judged:
    """What the model says of a new fact and something known."""

    known: Fact
    word: Word
    why: str


class Settling:
    """What one transaction is going to write.

    Args:
        current: Ids of the facts in question that hold.
        now: When it is written.
        method: What judged them; noted with every relation.
    """

    def __init__(self, current: set[str], now: datetime, method: str) -> None:
        self._current = current
        self._now = now
        self._method = method
        self._ended: dict[str, str] = {}
        self._relations: dict[str, Relation] = {}

    def of(self, fact: Fact, judged: Sequence[Judged]) -> Came | None:
        """Return what comes of a new fact; None where it has to be compared anew."""
        if fact.id in self._ended:
            self._end_older(fact, judged)
            return "updated"
        if fact.id not in self._current:  # somebody has edited or deleted it meanwhile
            return "added"
        if any(item.known.id not in self._current for item in judged):
            return None
        updates = [item for item in judged if item.word == "update" and not _is_stated(item.known)]
        self._end_older(fact, judged)
        later = [i for i in updates if i.known.memory.created_at > fact.memory.created_at]
        if later:
            first = min(later, key=lambda item: item.known.order)
            self._end(fact, first.known, first.why)
        if updates:
            return "updated"
        return self._both_stay(fact, judged)

    @property
    def ended(self) -> list[str]:
        """The facts that end."""
        return list(self._ended)

    @property
    def written(self) -> dict[TableName, list[str]]:
        """The rows that are changed or added."""
        return {"memories": self.ended, "relations": list(self._relations)}

    def write(self, transaction: Transaction) -> None:
        """End what has ended, and note how the rest hangs together."""
        from memctl.store.schema import relations_table

        end(transaction, self._ended, self._now)
        if self._relations:
            rows = relations_table(list(self._relations.values()))
            transaction.upsert("relations", rows)

    # --- inside ---

    def _end_older(self, fact: Fact, judged: Sequence[Judged]) -> None:
        """End what a fact brings up to date, even if it has been overtaken itself."""
        for item in judged:
            known = item.known
            if item.word != "update" or _is_stated(known) or known.id not in self._current:
                continue
            if known.memory.created_at <= fact.memory.created_at:
                self._end(known, fact, item.why)

    def _both_stay(self, fact: Fact, judged: Sequence[Judged]) -> Came:
        came: Came = "added"
        for item in judged:
            if item.word == "restatement":
                self._relate(fact, RESTATES, item.known, item.why)
                came = "restated" if came == "added" else came
            else:  # what a person has said stays, whatever a model makes of it
                older, newer = sorted((fact, item.known), key=lambda each: each.order)
                self._relate(older, CONTRADICTS, newer, item.why)
                came = "contradicted"
        return came

    def _end(self, old: Fact, new: Fact, why: str) -> None:
        self._current.discard(old.id)
        self._ended[old.id] = new.id
        self._relate(new, UPDATES, old, why)

    def _relate(self, source: Fact, kind: str, target: Fact, why: str) -> None:
        id_ = relation_id(source.id, kind, target.id)
        self._relations[id_] = Relation(
            id=id_,
            source_id=source.id,
            target_id=target.id,
            relation_type=kind,
            text=why,
            weight=_CONFIDENCE,
            confidence=_CONFIDENCE,
            memory_ids=(source.id, target.id),
            valid_from=self._now,
            metadata={"method": self._method},
        )


def _is_stated(fact: Fact) -> bool:
    return fact.memory.method == STATED
