"""Long-term memory by key: memories that a program wrote, each under a name of its own.

A key is the ``external_id`` of a memory.  What is written under the same key of the same session
becomes its next version, so that nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.ids import stated_memory_id
from memctl.memories.memory_editing import PreparedMemory, write_memories
from memctl.memories.memory_views import visible_columns
from memctl.models.vector_math import dot_products, normalize_rows
from memctl.records import Filters, Memory
from memctl.schema.arrow_tables import VECTOR, memory_rows, vector_rows
from memctl.schema.table_names import TableName
from memctl.store.tables.filter_expressions import col, memory_filter
from memctl.store.tables.transaction import record_changes
from memctl.tiers.tier_values import text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memctl.memories.memory_editing import Editor
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

VALUE = "value"
"""The key of a memory's metadata that has its value as JSON, where it is no text."""


def value_of(memory: Memory) -> Any:
    """Return the value that a memory was written as; its text where it has been edited since."""
    stored = memory.metadata.get(VALUE)
    if isinstance(stored, str):
        value = json.loads(stored)
        if text_of(value) == memory.text:
            return value
    return memory.text


def value_metadata(value: Any) -> dict[str, Any]:
    """Return what of a value its text does not tell."""
    return {} if isinstance(value, str) else {VALUE: json.dumps(value)}


class WriteOutcome(Struct):
    """The outcome of writing some memories."""

    added: list[Memory] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    """Ids of earlier versions, each with that of the next one."""
    answers: list[Memory] = field(default_factory=list)
    """For each that was wanted, the memory that says it now."""


class LongTermMemory(Struct, frozen=True):
    """The memories of one knowledge base by key.

    Args:
        store: Where they are.
        editor: Gives what understands and embeds texts.
        clock: Returns the current time.
    """

    store: Store
    editor: Callable[[], Editor]
    clock: Callable[[], datetime]

    def find(self, key: str, namespace: str, session: str | None) -> Memory | None:
        """Return the memory of a key that holds now: of the session, else the newest one.

        What is of a document has the ``external_id`` of that document, which is no key.
        """
        snapshot = self.store.snapshot()
        condition = memory_filter(Filters(namespaces=(namespace,)), self.clock())
        condition &= (col("external_id") == key) & col("document_id").is_null()
        found = memory_rows(
            snapshot.scan("memories", condition, visible_columns(snapshot, "memories"))
        )
        return max(
            found,
            key=lambda each: (
                each.session_id == session, each.level == "memory", each.valid_from, each.id
            ),
            default=None,
        )  # fmt: skip

    def write(
        self,
        drafts: Sequence[Memory],
        *,
        near: float | None = None,
        wanted: Callable[[], Collection[int]] | None = None,
        finish: Callable[[Collection[int]], None] | None = None,
        job: int | None = None,
    ) -> WriteOutcome:
        """Write memories in one commit, the oldest first.

        One that has the key of another one of its session, or nearly says the same, becomes its
        next version; one that says just the same is known.

        Args:
            drafts: Memories without ids.
            near: The cosine from which two memories of a session say nearly the same.
            wanted: Tells at the last moment which of the drafts are still to be written.
            finish: Changes the ledger in the very step that makes the memories count.
            job: The number of the job under which the changes are noted, to be taken back.
        """
        editor, now = self.editor(), self.clock()
        prepared = [editor.prepare(draft) for draft in drafts]
        with self.store.write() as transaction:
            keeping = range(len(drafts)) if wanted is None else sorted(wanted())
            before = transaction.snapshot()
            plan = _Plan(self._of_sessions(before, drafts), near)
            for place in keeping:
                plan.add(prepared[place], before)
            write_memories(transaction, plan.prepared, plan.written.replaced, now)
            if job is not None:
                self._note(transaction, before, job, plan)
            if finish is not None:
                transaction.ledger(lambda _: finish(keeping))
        return plan.written

    def _note(self, transaction: Transaction, before: Snapshot, job: int, plan: _Plan) -> None:
        added = [each.id for each in plan.written.added]
        earlier = [id_ for id_ in plan.written.replaced if id_ not in added]
        ids: dict[TableName, list[str]] = {"memories": [*added, *earlier]}
        after = transaction.snapshot()
        record_changes(transaction, self.store.ledger.changes, job, before, after, ids)

    def _of_sessions(self, snapshot: Snapshot, drafts: Iterable[Memory]) -> list[_Current]:
        """Return the memories by key that hold now, of the sessions of some drafts."""
        sessions = sorted({each.session_id for each in drafts if each.session_id is not None})
        keyless = [each.external_id for each in drafts if each.session_id is None]
        condition = col("external_id").is_in([key for key in keyless if key is not None])
        condition &= col("session_id").is_null()
        condition |= col("session_id").is_in(sessions)
        condition &= col("valid_to").is_null() & col("document_id").is_null()
        condition &= ~col("external_id").is_null()
        columns = visible_columns(snapshot, "memories")
        rows = snapshot.scan("memories", condition, [*columns, VECTOR])
        vectors = normalize_rows(vector_rows(rows[VECTOR].combine_chunks()).astype("float32"))
        return [
            _Current(memory, vector)
            for memory, vector in zip(memory_rows(rows.select(columns)), vectors, strict=True)
        ]


class _Current(Struct, frozen=True):
    memory: Memory
    vector: NDArray[np.float32]


class _Plan:
    """Which memories are written, and which older ones they replace."""

    def __init__(self, current: Sequence[_Current], near: float | None) -> None:
        self._current = {each.memory.id: each for each in current}
        self._near = near
        self.written = WriteOutcome()
        self.prepared: list[PreparedMemory] = []

    def add(self, draft: PreparedMemory, snapshot: Snapshot) -> None:
        """Plan what becomes of one memory."""
        memory = draft.memory
        previous = self._former(draft)
        content = (memory.text, memory.expires_at)
        if previous is not None and (previous.text, previous.expires_at) == content:
            self.written.answers.append(previous)
            return
        version = 1 if previous is None else previous.version + 1
        memory = replace(memory, id=self._new_id(memory, previous, snapshot), version=version)
        if previous is not None:
            self.written.replaced[previous.id] = memory.id
            del self._current[previous.id]
        self._current[memory.id] = _Current(memory, draft.vector)
        self.prepared.append(replace(draft, memory=memory))
        self.written.added.append(memory)
        self.written.answers.append(memory)

    def _new_id(self, memory: Memory, previous: Memory | None, snapshot: Snapshot) -> str:
        salt = f"{memory.source}/{memory.external_id}" if previous is None else previous.id
        while True:
            id_ = stated_memory_id(memory.namespace, memory.type, memory.text, salt=salt)
            if id_ not in self._current and not snapshot.get("memories", [id_], ["id"]).num_rows:
                return id_
            salt = id_  # it was said before, and something else since

    def _former(self, draft: PreparedMemory) -> Memory | None:
        """Return the memory that a draft takes the place of: of its key, else the most similar."""
        memory = draft.memory
        beside = [each for each in self._current.values() if _is_beside(each.memory, memory)]
        for each in beside:
            if each.memory.external_id == memory.external_id:
                return each.memory
        if self._near is None or not beside or memory.session_id is None:
            return None
        import numpy as np

        cosines = dot_products(np.stack([each.vector for each in beside]), draft.vector)
        best = int(cosines.argmax())
        return beside[best].memory if cosines[best] >= self._near else None


def _is_beside(one: Memory, other: Memory) -> bool:
    return (one.namespace, one.session_id, one.agent_id) == (
        other.namespace, other.session_id, other.agent_id
    )  # fmt: skip
