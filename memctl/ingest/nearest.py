"""What is known that a new fact may update, contradict or say again: a handful of memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memctl.ids import root_id
from memctl.records import Filters, Memory
from memctl.understand.passage import passage_terms
from memctl.understand.terms import terms

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.filters import Expr
    from memctl.store.snapshot import Snapshot

MOST_CANDIDATES = 5
_LOOKED_AT = 50
"""So many are looked at in each leg; those that are themselves to be compared later drop out."""
_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "speaker", "entities", "method", "version", "metadata",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory with its vector."""

    memory: Memory
    vector: NDArray[np.float32]

    @property
    def id(self) -> str:
        """That of the memory."""
        return self.memory.id

    @property
    def order(self) -> tuple[datetime, str]:
        """Facts are compared in this order, the oldest first."""
        return self.memory.created_at, self.memory.id

    @property
    def subject(self) -> str:
        """Whom or what it is about, as far as that is known."""
        return told(self.memory, "subject")


def told(memory: Memory, part: str) -> str:
    """Return the ``subject``, ``relation`` or ``object`` of a statement, "" where it has none."""
    return str(memory.metadata.get(part) or "")


def current_facts(snapshot: Snapshot, ids: list[str], now: datetime) -> dict[str, Fact]:
    """Return those of the memories that hold now, by id."""
    from memctl.store.filters import col

    where = _holding(now) & col("id").is_in(ids)
    return {fact.id: fact for fact in _facts(snapshot.scan("memories", where, _columns()))}


class Nearest:
    """Finds what is known in a snapshot.

    Args:
        snapshot: Where to look.
        waiting: Facts that are to be compared themselves, with their order: those that come
            after a fact are not compared with it, for it will be compared with them.
        now: Memories must hold at this time.
    """

    def __init__(
        self, snapshot: Snapshot, waiting: Mapping[str, tuple[datetime, str]], now: datetime
    ) -> None:
        self._snapshot = snapshot
        self._waiting = waiting
        self._now = now

    def to(self, fact: Fact) -> list[Fact]:
        """Return the memories nearest to a fact that share its subject or a name, nearest first.

        Those of the same document are left out unless they were said at another time.
        """
        from memctl.store.filters import col

        scope = _holding(self._now, fact.memory.namespace) & (col("id") != fact.id)
        found, is_all = self._look(fact, scope)
        if len(found) < MOST_CANDIDATES and not is_all:
            before = scope & (col("created_at") <= fact.memory.created_at)
            found |= self._look(fact, before)[0]
        ranked = sorted(found.values(), key=lambda known: (-_cosine(fact, known), known.id))
        return ranked[:MOST_CANDIDATES]

    def _look(self, fact: Fact, scope: Expr) -> tuple[dict[str, Fact], bool]:
        """Return what may be compared of the nearest, and whether there are no more."""
        legs = [self._of_same_names(fact, scope), self._of_same_words(fact, scope)]
        rows = [known for leg in legs for known in _facts(leg)]
        found = {known.id: known for known in rows if self._is_comparable(fact, known)}
        return found, all(leg.num_rows < _LOOKED_AT for leg in legs)

    def _of_same_names(self, fact: Fact, scope: Expr) -> pa.Table:
        from memctl.store.filters import NOTHING, col

        names = [*fact.memory.entities, *filter(None, [fact.subject])]
        named = col("entities").has_any(names) if names else NOTHING
        return self._snapshot.nearest(fact.vector, scope & named, _LOOKED_AT, _columns())

    def _of_same_words(self, fact: Fact, scope: Expr) -> pa.Table:
        words = passage_terms("", "", _said(fact.memory)) if fact.subject else []
        return self._snapshot.keyword(words, scope, _LOOKED_AT, _columns())

    def _is_comparable(self, fact: Fact, known: Fact) -> bool:
        memory, other = fact.memory, known.memory
        order = self._waiting.get(known.id)
        if order is not None and order > fact.order:
            return False
        if _document(memory) == _document(other) and memory.created_at == other.created_at:
            return False
        return not set(memory.entities).isdisjoint(other.entities) or _is_about(fact, known)


def _is_about(fact: Fact, known: Fact) -> bool:
    """Tell whether what is known speaks of the subject of a fact."""
    subject = frozenset(terms(fact.subject))
    return bool(subject) and subject.issubset(terms(_said(known.memory)))


def _document(memory: Memory) -> str:
    return memory.id if memory.document_id is None else root_id(memory.document_id)


def _said(memory: Memory) -> str:
    parts = (told(memory, part) for part in ("subject", "relation", "object"))
    return " ".join([memory.text, *parts])


def _holding(now: datetime, namespace: str | None = None) -> Expr:
    """Statements that hold now, of one namespace or all."""
    from memctl.store.filters import col, memory_filter

    namespaces = () if namespace is None else (namespace,)
    limits = Filters(namespaces=namespaces, levels=("memory",))
    return memory_filter(limits, now) & (col("type") != "gist")


def _columns() -> list[str]:
    from memctl.store.schema import VECTOR

    return [*_COLUMNS, VECTOR]


def _facts(rows: pa.Table) -> list[Fact]:
    from memctl.store.schema import VECTOR, memory_rows

    vectors: list[Any] = rows[VECTOR].to_pylist()
    memories = memory_rows(rows.drop_columns([VECTOR]))
    return [
        Fact(memory, np.asarray(vector or (), dtype=np.float32))
        for memory, vector in zip(memories, vectors, strict=True)
    ]


def _cosine(one: Fact, other: Fact) -> float:
    if one.vector.size != other.vector.size:
        return 0.0
    lengths = float(np.linalg.norm(one.vector) * np.linalg.norm(other.vector))
    return float(one.vector @ other.vector) / lengths if lengths else 0.0
