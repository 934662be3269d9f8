"""New facts of a model are compared with what is known: each adds, updates, contradicts or repeats.

It happens after a document's own commit, so that no document waits for it.  What is still to be
compared stands in the ledger, written in the very step that made the document known; a fact is
struck from there in the step that writes what came of it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from memctl.errors import (
    BadReply,
    LockedError,
    MemctlError,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)
from memctl.ids import relation_id, root_id
from memctl.language.term_analysis import passage_terms, terms
from memctl.literals import CONTRADICTS, RESTATING_TYPES, STATED
from memctl.models.protocols import MODEL
from memctl.prompts import Prompt, fenced
from memctl.records import FactComparison, Filters, Memory, Relation
from memctl.rows.row_changes import put_rows, supersede_memories
from memctl.schema.table_names import COMPARISON
from memctl.store.ledger.ledger import JobContext, job_context

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.chat_model import ChatModel, ChatModels
    from memctl.schema.table_names import TableName
    from memctl.store.store import Store
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction
    from memctl.understanding.model_replies import ComparisonReply, VerdictName


FactOutcome = Literal["added", "updated", "contradicted", "restated"]

RESTATES = "restates"
UPDATES = "updates"
_CONFIDENCE = 0.85


class JudgedFact(Struct, frozen=True):
    """What the model says of a new fact and something known."""

    known: Fact
    word: VerdictName
    why: str


class FactMerge:
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

    def of(self, fact: Fact, judged: Sequence[JudgedFact]) -> FactOutcome | None:
        """Return what comes of a new fact; None where it has to be compared anew."""
        if fact.id in self._ended:
            self._end_older(fact, judged)
            return "updated"
        if fact.id not in self._current:  # it was edited or deleted meanwhile
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
        from memctl.schema.arrow_tables import relations_table

        supersede_memories(transaction, self._ended, self._now)
        if self._relations:
            rows = relations_table(list(self._relations.values()))
            put_rows(transaction, "relations", rows)

    # --- inside ---

    def _end_older(self, fact: Fact, judged: Sequence[JudgedFact]) -> None:
        """End what a fact brings up to date, even if it has been overtaken itself."""
        for item in judged:
            known = item.known
            if item.word != "update" or _is_stated(known) or known.id not in self._current:
                continue
            if known.memory.created_at <= fact.memory.created_at:
                self._end(known, fact, item.why)

    def _both_stay(self, fact: Fact, judged: Sequence[JudgedFact]) -> FactOutcome:
        came: FactOutcome = "added"
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


Clock = Callable[[], datetime]

_MOST_TRIES = 5
"""After this many tries, a document whose facts other processes change waits for the next run."""
_MOST_TOGETHER = 12
"""With what they are compared with, this many facts are about as long as a window of a document."""
_LONGEST_TEXT = 500
_LONGEST_WHY = 300
_COMPARING = "comparing"
"""What only one process does at a time: two would ask about the same facts, not quite alike."""

_log = logging.getLogger(__name__)


def is_by_model(method: str) -> bool:
    """Return whether a model has made what says so."""
    return method.startswith(MODEL)


def facts_of_model(memories: pa.Table) -> list[str]:
    """Return the ids of those rows of ``memories`` that are a model's facts, and no gists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    restating = pc.is_in(memories["type"], value_set=pa.array(RESTATING_TYPES))
    stated = pc.and_(pc.equal(memories["level"], "memory"), pc.invert(restating))
    found: list[str] = (
        memories["id"]
        .filter(pc.and_(stated, pc.starts_with(memories["method"], MODEL)))
        .to_pylist()
    )
    return found


class FactComparer:
    """Compares the facts that wait in the ledger.

    Args:
        store: Where they are.
        models: What compares them.
        prompt: Its instructions.
        concurrency: How many documents are compared at the same time.
        clock: What tells the time.
    """

    def __init__(
        self, store: Store, models: ChatModels, prompt: Prompt, concurrency: int, clock: Clock
    ) -> None:
        self._store = store
        self._models = models
        self._prompt = prompt
        self._concurrency = concurrency
        self._clock = clock

    @property
    def method(self) -> str:
        """The model and the prompt, stored with every relation that they made."""
        return f"{MODEL}{self._models.usual.name}/{self._prompt.id}"

    def run(self, beat: Callable[[], None] = lambda: None) -> FactComparison:
        """Compare all that waits, oldest first; what cannot be compared now goes on waiting.

        Args:
            beat: Called now and then, for it may take long.
        """
        comparisons = self._store.ledger.comparisons
        waiting = comparisons.pending()
        if not waiting:
            return FactComparison()
        problem: MemctlError | None = None
        with ExitStack() as stack:
            job = job_context(self._store.ledger, COMPARISON, self._clock)
            run = _Run(self._concurrency, lambda: stack.enter_context(job))
            try:
                run.begin(self._facts(waiting))
                comparisons.discard(set(waiting) - run.waiting.keys())  # these facts are gone
                while problem is None and (batch := run.next_batch()):
                    beat()
                    with self._store.ledger.replies.lock_key(_COMPARING):
                        compared_elsewhere = run.waiting.keys() - set(comparisons.pending())
                        run.stop_waiting(compared_elsewhere)
                        problem = self._compare(run, run.left_of(batch))
            except LockedError as error:
                problem = error
            return run.report(comparisons.count(), problem)

    # --- inside ---

    def _facts(self, ids: Sequence[str]) -> Iterator[Fact]:
        """Read facts, a bounded number at a time."""
        snapshot, now = self._store.snapshot(), self._clock()
        remaining = iter(ids)
        while some := list(islice(remaining, 1_000)):
            yield from current_facts(snapshot, some, now).values()

    def _compare(self, run: _Run, batch: Sequence[str]) -> MemctlError | None:
        """Compare the facts of some documents; return what keeps it from going on."""
        cases = self._cases(run, batch)
        models = {case: self._models.of(case.namespace) for case in cases if case.known}
        with ThreadPoolExecutor(self._concurrency) as pool:
            replies = [
                (case, pool.submit(self._ask, case, model))
                for case, model in models.items()
                if model is not None
            ]
        problem: MemctlError | None = None
        done = [case for case in cases if models.get(case) is None]
        for case, reply in replies:
            try:
                run.dropped += case.judge(_reply(reply))
                done.append(case)
            except (ModelUnavailable, ModelRefused) as error:
                problem = error
        self._settle(run, sorted(done, key=lambda case: case.order))
        run.learn(batch)
        return problem

    def _cases(self, run: _Run, batch: Sequence[str]) -> list[_Case]:
        snapshot, now = self._store.snapshot(), self._clock()
        ids = [id_ for document in batch for id_ in run.of(document)]
        facts = current_facts(snapshot, ids, now)
        nearest = NearestFacts(snapshot, run.waiting, now)
        cases: list[_Case] = []
        for document in batch:
            new = [facts[id_] for id_ in run.of(document) if id_ in facts]
            for at in range(0, len(new), _MOST_TOGETHER):
                some = new[at : at + _MOST_TOGETHER]
                cases.append(_Case(some, [nearest.to(fact) for fact in some]))
        self._strike(run, [id_ for id_ in ids if id_ not in facts])
        return cases

    def _ask(self, case: _Case, model: ChatModel) -> ComparisonReply:
        from memctl.understanding.model_replies import ComparisonReply

        data = fenced(case.as_lines())
        asked = model.of(case.document_id)
        return asked.ask(self._prompt.text, data, ComparisonReply, version=self._prompt.id)

    def _settle(self, run: _Run, cases: Sequence[_Case]) -> None:
        """Write what came of it, as far as it still stands on the ground it was judged on."""
        if not any(case.judged for case in cases):
            settled = [fact.id for case in cases for fact in case.new]
            run.count("added", len(settled))
            self._strike(run, settled)
            return
        from memctl.store.tables.coverage import require_found
        from memctl.store.tables.transaction import record_changes

        job, now = run.job, self._clock()
        with self._store.write() as transaction:
            ids = [id_ for case in cases for id_ in case.ids]
            current = set(current_facts(transaction.snapshot(), ids, now))
            merge = FactMerge(current, now, self.method)
            came = {
                fact.id: merge.of(fact, case.judged.get(fact.id, ()))
                for case in cases
                for fact in case.new
            }
            before = transaction.snapshot()
            merge.write(transaction)
            after, ended = transaction.snapshot(), merge.ended
            require_found(before, after, ended, "comparing facts", ended)
            changes = self._store.ledger.changes
            record_changes(transaction, changes, job.id, before, after, merge.written)
            settled = [id_ for id_, what in came.items() if what is not None]
            comparisons = self._store.ledger.comparisons
            transaction.ledger(lambda _: comparisons.discard(settled))
        run.stop_waiting(settled)
        for what in came.values():
            if what is not None:
                run.count(what)

    def _strike(self, run: _Run, ids: Sequence[str]) -> None:
        if ids:
            self._store.ledger.comparisons.discard(ids)
            run.stop_waiting(ids)


def _reply(future: Future[ComparisonReply]) -> ComparisonReply | None:
    """Return the reply, None where the model makes nothing of it, or will not take it."""
    try:
        return future.result()
    except (BadReply, RequestRefused) as error:
        _log.warning("facts were not compared: %s", error.message)
        return None


class _Run(Struct):
    """What is still to be compared, and what has come of the rest."""

    at_once: int
    """At most this many documents are compared together."""
    begin_job: Callable[[], JobContext]
    """Notes in the ledger that something is about to be changed."""
    waiting: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    """The order of each fact that waits."""
    dropped: int = 0
    _documents: dict[str, list[str]] = field(default_factory=dict)
    """Facts that wait, by document, both in order."""
    _document_of: dict[str, str] = field(default_factory=dict)
    _tries: Counter[str] = field(default_factory=Counter)
    _together: int = 1
    _came: Counter[FactOutcome] = field(default_factory=Counter)
    _job: JobContext | None = None

    @property
    def job(self) -> JobContext:
        """The job under which what it changes is noted, from the first change on."""
        self._job = self._job or self.begin_job()
        return self._job

    def begin(self, facts: Iterable[Fact]) -> None:
        """Take in what is to be compared."""
        for fact in facts:
            self.waiting[fact.id] = fact.order
            self._document_of[fact.id] = fact.memory.document_id or fact.id
        for id_ in sorted(self.waiting, key=lambda id_: self.waiting[id_]):
            self._documents.setdefault(self._document_of[id_], []).append(id_)

    def next_batch(self) -> list[str]:
        """Return the documents to look at next, the oldest first."""
        ready = (name for name in self._documents if self._tries[name] < _MOST_TRIES)
        return list(islice(ready, self._together))

    def left_of(self, batch: Sequence[str]) -> list[str]:
        """The documents of a batch that still have facts that wait."""
        return [document for document in batch if document in self._documents]

    def learn(self, batch: Sequence[str]) -> None:
        """Take fewer documents together where they change the ground of one another.

        The first one of a batch is compared with the current facts, unless another process writes.
        """
        left = self.left_of(batch)
        self._together = 1 if left else min(2 * self._together, self.at_once)
        self._tries.update(left[:1] if left[:1] == list(batch[:1]) else [])

    def of(self, document: str) -> list[str]:
        """The facts of a document that wait."""
        return list(self._documents[document])

    def stop_waiting(self, ids: Iterable[str]) -> None:
        """Record that facts no longer wait."""
        for id_ in ids:
            del self.waiting[id_]
            facts = self._documents[self._document_of[id_]]
            facts.remove(id_)
            if not facts:
                del self._documents[self._document_of[id_]]

    def count(self, what: FactOutcome, times: int = 1) -> None:
        """Record what came of a fact, or of several."""
        self._came[what] += times

    def report(self, waiting: int, problem: MemctlError | None) -> FactComparison:
        """What it all came to."""
        if self._job is not None:
            self._job.detail = {str(what): times for what, times in self._came.items()}
        return FactComparison(
            added=self._came["added"],
            updated=self._came["updated"],
            contradicted=self._came["contradicted"],
            restated=self._came["restated"],
            dropped=self.dropped,
            waiting=waiting,
            note=problem.message if problem else "",
            hint=problem.hint if problem else "",
        )


# --- judging -------------------------------------------------------------------------------------


class _Case:
    """New facts of one document, each with what it is compared with."""

    def __init__(self, new: Sequence[Fact], near: Sequence[Sequence[Fact]]) -> None:
        self.new = new
        known = {fact.id: fact for found in near for fact in found}
        self.known = list(known.values())
        numbers = {id_: number for number, id_ in enumerate(known, start=1)}
        self._near = [[numbers[fact.id] for fact in found] for found in near]
        self.judged: dict[str, list[JudgedFact]] = {}
        """By the id of the new fact."""

    @property
    def order(self) -> tuple[datetime, str]:
        """That of its oldest fact."""
        return self.new[0].order

    @property
    def namespace(self) -> str:
        """That of its document."""
        return self.new[0].memory.namespace

    @property
    def document_id(self) -> str:
        """The id of its document; "" if it was stated."""
        return root_id(self.new[0].memory.document_id or "")

    @property
    def ids(self) -> list[str]:
        """Of all the facts that it is about, those known as far as there is a verdict on them."""
        judged = [item.known.id for items in self.judged.values() for item in items]
        return [*(fact.id for fact in self.new), *judged]

    def as_lines(self) -> list[str]:
        """Return the data for the model: known facts, then new ones, each with its number."""
        known = [_fact_line({"known": n}, fact, {}) for n, fact in enumerate(self.known, start=1)]
        new = [
            _fact_line({"new": n}, fact, {"compare_with": near})
            for n, (fact, near) in enumerate(zip(self.new, self._near, strict=True), start=1)
            if near
        ]
        return [*known, *new]

    def judge(self, reply: ComparisonReply | None) -> int:
        """Take in what the model says; return how many of its verdicts it was not asked for."""
        dropped = 0
        seen: set[tuple[int, int]] = set()
        for verdict in reply.verdicts if reply is not None else ():
            pair = verdict.new, verdict.known
            if not self._is_asked(*pair) or pair in seen:
                dropped += 1
                continue
            seen.add(pair)
            if verdict.verdict != "unrelated":
                why = " ".join(verdict.why.split())[:_LONGEST_WHY]
                judged = JudgedFact(self.known[verdict.known - 1], verdict.verdict, why)
                self.judged.setdefault(self.new[verdict.new - 1].id, []).append(judged)
        return dropped

    def _is_asked(self, new: int, known: int) -> bool:
        return 1 <= new <= len(self.new) and known in self._near[new - 1]


def _fact_line(number: dict[str, int], fact: Fact, more: dict[str, list[int]]) -> str:
    memory = fact.memory
    parts = {
        "date": memory.created_at.date().isoformat(),
        "title": memory.title,
        "by": memory.speaker or "",
        "subject": stated_part(memory, "subject"),
        "relation": stated_part(memory, "relation"),
        "object": stated_part(memory, "object"),
        "text": memory.text[:_LONGEST_TEXT],
    }
    said = {key: value for key, value in parts.items() if value}
    return json.dumps({**number, **said, **more}, ensure_ascii=False)


MOST_CANDIDATES = 5
_LOOKED_AT = 50
"""At most this many candidates of each retriever; those to be compared later drop out."""
_COLUMNS = (
    "id", "document_id", "level", "type", "text", "namespace", "created_at", "valid_from", "title",
    "speaker", "entities", "method", "version", "metadata",
)  # fmt: skip


class Fact(Struct, frozen=True):
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
        return stated_part(self.memory, "subject")


def stated_part(memory: Memory, part: str) -> str:
    """Return the ``subject``, ``relation`` or ``object`` of a statement, "" where it has none."""
    return str(memory.metadata.get(part) or "")


def current_facts(snapshot: Snapshot, ids: list[str], now: datetime) -> dict[str, Fact]:
    """Return those of the memories that hold now, by id."""
    from memctl.store.tables.filter_expressions import col

    where = _holding(now) & col("id").is_in(ids)
    return {fact.id: fact for fact in _facts(snapshot.scan("memories", where, _columns()))}


class NearestFacts:
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
        from memctl.store.tables.filter_expressions import col

        scope = _holding(self._now, fact.memory.namespace) & (col("id") != fact.id)
        found, is_all = self._look(fact, scope)
        if len(found) < MOST_CANDIDATES and not is_all:
            before = scope & (col("created_at") <= fact.memory.created_at)
            found |= self._look(fact, before)[0]
        ranked = sorted(found.values(), key=lambda known: (-_cosine(fact, known), known.id))
        return ranked[:MOST_CANDIDATES]

    def _look(self, fact: Fact, scope: Expr) -> tuple[dict[str, Fact], bool]:
        """Return what may be compared of the nearest, and whether there are no more."""
        retrieved = [self._of_same_names(fact, scope), self._of_same_words(fact, scope)]
        rows = [known for table in retrieved for known in _facts(table)]
        found = {known.id: known for known in rows if self._is_comparable(fact, known)}
        return found, all(table.num_rows < _LOOKED_AT for table in retrieved)

    def _of_same_names(self, fact: Fact, scope: Expr) -> pa.Table:
        from memctl.store.tables.filter_expressions import NOTHING, col

        names = [*fact.memory.entities, *filter(None, [fact.subject])]
        named = col("entities").has_any(names) if names else NOTHING
        return self._snapshot.nearest(fact.vector, scope & named, _LOOKED_AT, _columns())

    def _of_same_words(self, fact: Fact, scope: Expr) -> pa.Table:
        words = passage_terms("", "", _words_of(fact.memory)) if fact.subject else []
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
    """Return whether what is known speaks of the subject of a fact."""
    subject = frozenset(terms(fact.subject))
    return bool(subject) and subject.issubset(terms(_words_of(known.memory)))


def _document(memory: Memory) -> str:
    return memory.id if memory.document_id is None else root_id(memory.document_id)


def _words_of(memory: Memory) -> str:
    parts = (stated_part(memory, part) for part in ("subject", "relation", "object"))
    return " ".join([memory.text, *parts])


def _holding(now: datetime, namespace: str | None = None) -> Expr:
    """Statements that hold now, of one namespace or all."""
    from memctl.store.tables.filter_expressions import col, memory_filter

    namespaces = () if namespace is None else (namespace,)
    limits = Filters(namespaces=namespaces, levels=("memory",))
    return memory_filter(limits, now) & ~col("type").is_in(RESTATING_TYPES)


def _columns() -> list[str]:
    from memctl.schema.arrow_tables import VECTOR

    return [*_COLUMNS, VECTOR]


def _facts(rows: pa.Table) -> list[Fact]:
    from memctl.schema.arrow_tables import VECTOR, memory_rows

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
