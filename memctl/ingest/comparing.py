"""New facts of a model are compared with what is known: each adds, updates, contradicts or repeats.

It happens after a document's own commit, so that no document waits for it.  What is still to be
compared stands in the ledger, written in the very step that made the document known; a fact is
struck from there in the step that writes what came of it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from memctl.errors import (
    BadReply,
    LockedError,
    MemctlError,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)
from memctl.ids import root_id
from memctl.ingest.nearest import Fact, Nearest, current_facts, told
from memctl.ingest.settling import Came, Judged, Settling
from memctl.prompts import Prompt, fenced
from memctl.records import Compared
from memctl.store.names import COMPARISON
from memctl.store.noted import Noted, noted

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.chat import ChatModel, Chats
    from memctl.store.store import Store
    from memctl.understand.comparison import ComparisonReply

Clock = Callable[[], datetime]

_MODEL = "model/"
_MOST_TRIES = 5
"""A document whose ground somebody else keeps changing waits for the next run after so many."""
_MOST_TOGETHER = 12
"""With what they are compared with, so many facts are about as long as a window of a document."""
_LONGEST_TEXT = 500
_LONGEST_WHY = 300
_COMPARING = "comparing"
"""What only one process does at a time: two would ask about the same facts, not quite alike."""

_log = logging.getLogger(__name__)


def is_by_model(method: str) -> bool:
    """Tell whether a model has made what says so."""
    return method.startswith(_MODEL)


def facts_of_model(memories: pa.Table) -> list[str]:
    """Return the ids of those rows of ``memories`` that are a model's facts, and no gists."""
    import pyarrow.compute as pc

    stated = pc.and_(pc.equal(memories["level"], "memory"), pc.not_equal(memories["type"], "gist"))
    found: list[str] = (
        memories["id"]
        .filter(pc.and_(stated, pc.starts_with(memories["method"], _MODEL)))
        .to_pylist()
    )
    return found


class Comparer:
    """Compares the facts that wait in the ledger.

    Args:
        store: Where they are.
        models: What compares them.
        prompt: What it is told.
        concurrency: How many documents are compared at the same time.
        clock: What tells the time.
    """

    def __init__(
        self, store: Store, models: Chats, prompt: Prompt, concurrency: int, clock: Clock
    ) -> None:
        self._store = store
        self._models = models
        self._prompt = prompt
        self._concurrency = concurrency
        self._clock = clock

    @property
    def method(self) -> str:
        """The model and the prompt, stored with every relation that they made."""
        return f"model/{self._models.usual.name}/{self._prompt.id}"

    def run(self, beat: Callable[[], None] = lambda: None) -> Compared:
        """Compare all that waits, oldest first; what cannot be compared now goes on waiting.

        Args:
            beat: Called now and then, for it may take long.
        """
        book = self._store.ledger.comparisons
        waiting = book.pending()
        if not waiting:
            return Compared()
        problem: MemctlError | None = None
        with ExitStack() as stack:
            job = noted(self._store.ledger, COMPARISON, self._clock)
            run = _Run(self._concurrency, lambda: stack.enter_context(job))
            try:
                run.begin(self._facts(waiting))
                book.remove(set(waiting) - run.waiting.keys())  # there are no such facts any more
                while problem is None and (wave := run.next_wave()):
                    beat()
                    with self._store.ledger.replies.asking(_COMPARING):
                        run.settled(run.waiting.keys() - set(book.pending()))  # by another process
                        problem = self._compare(run, run.left_of(wave))
            except LockedError as error:
                problem = error
            return run.report(book.count(), problem)

    # --- inside ---

    def _facts(self, ids: Sequence[str]) -> Iterator[Fact]:
        """Read facts, a bounded number at a time."""
        snapshot, now = self._store.snapshot(), self._clock()
        remaining = iter(ids)
        while some := list(islice(remaining, 1_000)):
            yield from current_facts(snapshot, some, now).values()

    def _compare(self, run: _Run, wave: Sequence[str]) -> MemctlError | None:
        """Compare the facts of some documents; return what keeps it from going on."""
        cases = self._cases(run, wave)
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
        run.learn(wave)
        return problem

    def _cases(self, run: _Run, wave: Sequence[str]) -> list[_Case]:
        snapshot, now = self._store.snapshot(), self._clock()
        ids = [id_ for document in wave for id_ in run.of(document)]
        facts = current_facts(snapshot, ids, now)
        nearest = Nearest(snapshot, run.waiting, now)
        cases: list[_Case] = []
        for document in wave:
            new = [facts[id_] for id_ in run.of(document) if id_ in facts]
            for at in range(0, len(new), _MOST_TOGETHER):
                some = new[at : at + _MOST_TOGETHER]
                cases.append(_Case(some, [nearest.to(fact) for fact in some]))
        self._strike(run, [id_ for id_ in ids if id_ not in facts])
        return cases

    def _ask(self, case: _Case, model: ChatModel) -> ComparisonReply:
        from memctl.understand.comparison import ComparisonReply

        data = fenced(case.told())
        asked = model.of(case.document_id)
        return asked.ask(self._prompt.text, data, ComparisonReply, version=self._prompt.id)

    def _settle(self, run: _Run, cases: Sequence[_Case]) -> None:
        """Write what came of it, as far as it still stands on the ground it was judged on."""
        if not any(case.judged for case in cases):
            settled = [fact.id for case in cases for fact in case.new]
            run.count("added", len(settled))
            self._strike(run, settled)
            return
        from memctl.store.changes import note_changes
        from memctl.store.coverage import require_found

        job, now = run.job, self._clock()
        with self._store.write() as transaction:
            ids = [id_ for case in cases for id_ in case.ids]
            current = set(current_facts(transaction.snapshot(), ids, now))
            settling = Settling(current, now, self.method)
            came = {
                fact.id: settling.of(fact, case.judged.get(fact.id, ()))
                for case in cases
                for fact in case.new
            }
            before = transaction.snapshot()
            settling.write(transaction)
            after, ended = transaction.snapshot(), settling.ended
            require_found(before, after, ended, "comparing facts", ended)
            changes = self._store.ledger.changes
            note_changes(transaction, changes, job.id, before, after, settling.written)
            settled = [id_ for id_, what in came.items() if what is not None]
            book = self._store.ledger.comparisons
            transaction.ledger(lambda _: book.remove(settled))
        run.settled(settled)
        for what in came.values():
            if what is not None:
                run.count(what)

    def _strike(self, run: _Run, ids: Sequence[str]) -> None:
        if ids:
            self._store.ledger.comparisons.remove(ids)
            run.settled(ids)


def _reply(future: Future[ComparisonReply]) -> ComparisonReply | None:
    """Return the reply, None where the model makes nothing of it, or will not take it."""
    try:
        return future.result()
    except (BadReply, RequestRefused) as error:
        _log.warning("facts were not compared: %s", error.message)
        return None


@dataclass(slots=True)
class _Run:
    """What is still to be compared, and what has come of the rest."""

    at_once: int
    """So many documents may be compared together."""
    begin_job: Callable[[], Noted]
    """Notes in the ledger that something is about to be changed."""
    waiting: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    """The order of each fact that waits."""
    dropped: int = 0
    _documents: dict[str, list[str]] = field(default_factory=dict)
    """Facts that wait, by document, both in order."""
    _document_of: dict[str, str] = field(default_factory=dict)
    _tries: Counter[str] = field(default_factory=Counter)
    _together: int = 1
    _came: Counter[Came] = field(default_factory=Counter)
    _job: Noted | None = None

    @property
    def job(self) -> Noted:
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

    def next_wave(self) -> list[str]:
        """Return the documents to look at next, the oldest first."""
        ready = (name for name in self._documents if self._tries[name] < _MOST_TRIES)
        return list(islice(ready, self._together))

    def left_of(self, wave: Sequence[str]) -> list[str]:
        """The documents of a wave that still have facts that wait."""
        return [document for document in wave if document in self._documents]

    def learn(self, wave: Sequence[str]) -> None:
        """Take fewer documents together where they change the ground of one another.

        The first one of a wave is compared with what is really there, unless somebody else writes.
        """
        left = self.left_of(wave)
        self._together = 1 if left else min(2 * self._together, self.at_once)
        self._tries.update(left[:1] if left[:1] == list(wave[:1]) else [])

    def of(self, document: str) -> list[str]:
        """The facts of a document that wait."""
        return list(self._documents[document])

    def settled(self, ids: Iterable[str]) -> None:
        """Note that facts wait no longer."""
        for id_ in ids:
            del self.waiting[id_]
            facts = self._documents[self._document_of[id_]]
            facts.remove(id_)
            if not facts:
                del self._documents[self._document_of[id_]]

    def count(self, what: Came, times: int = 1) -> None:
        """Note what came of a fact, or of several."""
        self._came[what] += times

    def report(self, waiting: int, problem: MemctlError | None) -> Compared:
        """What it all came to."""
        if self._job is not None:
            self._job.detail = {str(what): times for what, times in self._came.items()}
        return Compared(
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
        self.judged: dict[str, list[Judged]] = {}
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
        """That of its document, "" where somebody stated it."""
        return root_id(self.new[0].memory.document_id or "")

    @property
    def ids(self) -> list[str]:
        """Of all the facts that it is about, those known as far as there is a verdict on them."""
        judged = [item.known.id for items in self.judged.values() for item in items]
        return [*(fact.id for fact in self.new), *judged]

    def told(self) -> list[str]:
        """What the model is given: what is known, then what is new, each with its number."""
        known = [_told({"known": n}, fact, {}) for n, fact in enumerate(self.known, start=1)]
        new = [
            _told({"new": n}, fact, {"compare_with": near})
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
                judged = Judged(self.known[verdict.known - 1], verdict.verdict, why)
                self.judged.setdefault(self.new[verdict.new - 1].id, []).append(judged)
        return dropped

    def _is_asked(self, new: int, known: int) -> bool:
        return 1 <= new <= len(self.new) and known in self._near[new - 1]


def _told(number: dict[str, int], fact: Fact, more: dict[str, list[int]]) -> str:
    memory = fact.memory
    parts = {
        "date": memory.created_at.date().isoformat(),
        "title": memory.title,
        "by": memory.speaker or "",
        "subject": told(memory, "subject"),
        "relation": told(memory, "relation"),
        "object": told(memory, "object"),
        "text": memory.text[:_LONGEST_TEXT],
    }
    said = {key: value for key, value in parts.items() if value}
    return json.dumps({**number, **said, **more}, ensure_ascii=False)
