"""Work that waits for understanding, for the caller to do in place of a configured model.

A caller's reply goes the way of a model's: quotes must stand in the text, names must be named in
it, and what cites a memory that was not given is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import ModelUnavailable, NotFoundError, UsageError
from memctl.knowledge_base.resources import Part
from memctl.literals import WorkKind
from memctl.models.protocols import MODEL, NOT_BY_MODEL
from memctl.records import Filters

if TYPE_CHECKING:
    from pydantic import BaseModel

    from memctl.models.caller_model import CallerExchange, CallerRequest
    from memctl.service_factory import ServiceFactory

KINDS: tuple[WorkKind, ...] = ("document", "comparison", "insight", "answer")
_NO_FILTERS = Filters()
_RECENT_ANSWERS = 50
_COLUMNS = ("id", "title", "source", "namespace", "method", "missing", "size", "created_at")


class WaitingWork(Struct, frozen=True):
    """Something that waits, in one line."""

    kind: WorkKind
    about: str
    """A document, or what the others are about."""
    title: str
    statements: int
    """How many statements are known of a document so far."""


class WorkItem(Struct, frozen=True):
    """Something to do, with all that is needed for it."""

    id: str
    kind: WorkKind
    about: str
    prompt: str
    instructions: str
    data: str
    """In fences that say it is data."""
    schema: Mapping[str, Any]
    """JSON schema of the reply."""


class WorkDone(Struct, frozen=True):
    """What came of a reply."""

    id: str
    kind: WorkKind
    is_done: bool
    """False while a document has further parts; the next one is handed out next."""
    accepted: int
    """How many facts, verdicts, insights or quotes were taken."""
    dropped: int
    """How many were rejected, since what they quote or cite is not there."""
    message: str


class CallerWork(Part):
    """What waits for understanding in one knowledge base."""

    def list(
        self, filters: Filters = _NO_FILTERS, *, kinds: Iterable[WorkKind] = KINDS
    ) -> list[WaitingWork]:
        """Return what waits: documents of which least is known first, then the rest.

        Args:
            filters: What it is limited to.
            kinds: Only of these kinds.
        """
        wanted = self._open(kinds)
        found = list(self._documents(filters)) if "document" in wanted else []
        if "comparison" in wanted and (waiting := self._kb.store.ledger.comparisons.count()):
            found.append(WaitingWork("comparison", "facts", f"{waiting} facts to compare", 0))
        if "insight" in wanted:
            found += [
                WaitingWork("insight", each.id, "memories that belong together", 0)
                for each in self._wanted_insights()
            ]
        if "answer" in wanted:
            found += [
                WaitingWork("answer", query_id, question, 0)
                for query_id, question in self._questions()
            ]
        return found

    def next(
        self, filters: Filters = _NO_FILTERS, *, kinds: Sequence[WorkKind] = KINDS
    ) -> WorkItem | None:
        """Return what is to be done next; None where nothing waits.  Arguments are of ``list``."""
        for kind in self._open(kinds):
            if kind == "document":
                for waiting in self._documents(filters):
                    if item := self._of_document(waiting.about):
                        return item
            elif kind == "comparison":
                if wanted := self._wanted_comparisons():
                    return _item("comparison", "facts", wanted[0])
            elif kind == "insight":
                if wanted := self._wanted_insights():
                    return _item("insight", "memories", wanted[0])
            elif item := next(self._of_answers(), None):
                return item
        return None

    def submit(self, id_: str, reply: object, *, dry_run: bool = False) -> WorkDone:
        """Take in a reply to what was handed out.

        Args:
            id_: Of the item.
            reply: JSON of the shape that was asked for, as an object or as text.
            dry_run: Only check its shape.

        Raises:
            UsageError: The reply has another shape; says where.
            NotFoundError: Nothing of that id waits.
        """
        kind, about, key = _parse_id(id_)
        if kind not in self._open((kind,)) or (kind == "document" and not self._may_see(about)):
            raise _work_is_gone(id_)
        checked = _checked_reply(kind, reply)
        if dry_run:
            return WorkDone(id_, kind, False, 0, 0, "the shape is right; nothing was written")
        if kind == "document":
            return self._apply_document_reply(id_, about, key, checked)
        if kind == "comparison":
            return self._apply_comparison_reply(id_, key, checked)
        if kind == "insight":
            return self._apply_insight_reply(id_, key, checked)
        return self._apply_answer_reply(id_, about, checked)

    def _open(self, kinds: Iterable[WorkKind]) -> Sequence[WorkKind]:
        """Return those of some kinds that the user may have: facts and groups are of all users."""
        is_shared = self._kb.hides(self._kb.seen_snapshot())
        return [kind for kind in kinds if not is_shared or kind in ("document", "answer")]

    def _may_see(self, document: str) -> bool:
        """Return whether the user may know of a document."""
        return bool(self._kb.seen_snapshot().get("documents", [document], ["id"]).num_rows)

    # --- documents --------------------------------------------------------------------------------

    def _documents(self, filters: Filters) -> Iterator[WaitingWork]:
        """Yield the documents that no model has understood, those with least known first."""
        from collections import Counter

        from memctl.knowledge_base.documents import Documents
        from memctl.store.tables.filter_expressions import col

        table = Documents(self._kb).list(filters)
        private = frozenset(self._kb.settings.private_namespaces)
        rows = [
            row
            for row in table.select(list(_COLUMNS)).to_pylist()
            if row["namespace"] not in private
            and (not str(row["method"]).startswith(MODEL) or NOT_BY_MODEL in row["missing"])
        ]
        where = (col("level") == "memory") & col("superseded_by").is_null()
        known = self._kb.snapshot().scan("memories", where, ["document_id"])
        counts = Counter(known["document_id"].to_pylist())
        rows.sort(key=lambda row: (counts[row["id"]], str(row["created_at"]), row["id"]))
        for row in rows:
            title = row["title"] or row["source"]
            yield WaitingWork("document", row["id"], title, counts[row["id"]])

    def _of_document(self, document_id: str) -> WorkItem | None:
        """Return what is asked about a document; None where nothing is, or it cannot be read."""
        with self._caller_as_model({}) as (exchange, services), suppress(ModelUnavailable):
            services.ingestor_that("wait").asking(document_id)
        wanted = next(iter(exchange.wanted.values()), None)
        return _item("document", document_id, wanted) if wanted else None

    def _apply_document_reply(self, id_: str, document_id: str, key: str, reply: bytes) -> WorkDone:
        with self._with_reply(id_, key, reply) as services:
            try:
                report = services.ingestor_that("wait").understand(document_id)
            except ModelUnavailable:
                return WorkDone(id_, "document", False, 0, 0, "its next part waits")
        (outcome,) = report.outcomes[:1]
        if outcome.outcome == "failed":
            raise UsageError(outcome.reason, outcome.hint)
        message = "it is understood"
        return WorkDone(id_, "document", True, outcome.memories, outcome.dropped, message)

    # --- comparisons and insights -----------------------------------------------------------------

    def _wanted_comparisons(self) -> Sequence[CallerRequest]:
        if not self._kb.store.ledger.comparisons.count():
            return ()
        with self._caller_as_model({}) as (exchange, services):
            services.ingestor.compare()
        return tuple(exchange.wanted.values())

    def _apply_comparison_reply(self, id_: str, key: str, reply: bytes) -> WorkDone:
        with self._with_reply(id_, key, reply) as services:
            report = services.ingestor.compare()
        taken = report.updated + report.contradicted + report.restated
        return WorkDone(id_, "comparison", True, taken, report.dropped, "the facts are compared")

    def _wanted_insights(self) -> Sequence[CallerRequest]:
        with self._caller_as_model({}) as (exchange, services):
            size = services.config.consolidate.batch_size
            services.consolidator(asks_model=True).ask(size)
        return tuple(exchange.wanted.values())

    def _apply_insight_reply(self, id_: str, key: str, reply: bytes) -> WorkDone:
        with self._with_reply(id_, key, reply) as services:
            size = services.config.consolidate.batch_size
            report = services.consolidator(asks_model=True).run(batch_size=size)
        message = f"{report.waiting} groups wait" if report.waiting else "no group waits"
        return WorkDone(id_, "insight", True, report.by_model, report.dropped, message)

    # --- answers ----------------------------------------------------------------------------------

    def _questions(self) -> Sequence[tuple[str, str]]:
        """Return questions whose answers were not judged, the latest first."""
        self._kb.query_log.flush()
        found: dict[str, str] = {}
        for entry in self._kb.store.ledger.queries.recent(_RECENT_ANSWERS):
            is_open = self._kb.query_log.is_open(entry)
            is_judged = bool(entry.feedback) or not is_open
            if entry.kind == "query" and entry.question and not is_judged and entry.query_id:
                found.setdefault(entry.question, entry.query_id)
        return [(query_id, question) for question, query_id in found.items()]

    def _of_answers(self) -> Iterator[WorkItem]:
        from memctl.prompts import fenced, load_prompt

        prompt = load_prompt("check", self._kb.layout.prompts)
        for query_id, question in self._questions():
            answer, quotes = self._answer_now(question)
            if not quotes:
                continue
            evidence = [f"[{number}] {text}" for number, text in quotes.items()]
            yield WorkItem(
                f"answer:{query_id}:-",
                "answer",
                query_id,
                prompt.id,
                prompt.text,
                fenced([f"Question: {question}\nAnswer: {answer}", *evidence]),
                _reply_class("answer").model_json_schema(),
            )

    def _answer_now(self, question: str) -> tuple[str, dict[int, str]]:
        """Return the answer to a question as it is now, and the texts that it cites."""
        from memctl.knowledge_base.memories import Memories

        found = self._kb.queries.query(question, log=False).answer
        if found is None:
            return "", {}
        memories = Memories(self._kb)
        return found.text, {
            each.number: memories.get(each.memory_id).memory.text for each in found.citations
        }

    def _apply_answer_reply(self, id_: str, query_id: str, reply: bytes) -> WorkDone:
        from memctl.understanding.model_understander import find_quote

        checked = json.loads(reply)
        question = next((text for known, text in self._questions() if known == query_id), None)
        if question is None:
            raise _work_is_gone(id_)
        _, texts = self._answer_now(question)
        stands = [
            find_quote(texts.get(each["source"], ""), each["quote"]) is not None
            for each in checked["quotes"]
        ]
        if checked["verdict"] == "good" and not any(stands):
            raise UsageError(
                "no quote stands in the evidence", "copy the words that answer the question"
            )
        self._kb.queries.feedback(query_id, checked["verdict"])
        message = f"the answer is {checked['verdict']}"
        return WorkDone(id_, "answer", True, sum(stands), stands.count(False), message)

    # --- inside -----------------------------------------------------------------------------------

    @contextmanager
    def _caller_as_model(
        self, reply: dict[str, bytes]
    ) -> Iterator[tuple[CallerExchange, ServiceFactory]]:
        """Yield services whose model is the caller, and where its replies are kept."""
        from memctl.models.caller_model import CallerExchange

        exchange = CallerExchange(reply)
        services = self._kb.services.for_caller(exchange)
        try:
            yield exchange, services
        finally:
            services.close()

    @contextmanager
    def _with_reply(self, id_: str, key: str, reply: bytes) -> Iterator[ServiceFactory]:
        """Yield services for which a reply is ready; refuse a reply that none of them asks for."""
        self._kb.begin_change()
        with self._caller_as_model({key: reply}) as (exchange, services):
            yield services
        if key not in exchange.used:
            raise _work_is_gone(id_)


def _item(kind: WorkKind, about: str, reply: CallerRequest) -> WorkItem:
    return WorkItem(
        f"{kind}:{about}:{reply.id}",
        kind,
        about,
        reply.prompt,
        reply.instructions,
        reply.data,
        reply.schema,
    )


def _parse_id(id_: str) -> tuple[WorkKind, str, str]:
    """Return what an item is, what it is about, and which question about that.

    Raises:
        NotFoundError: It is no id of an item.
    """
    name, _, rest = id_.partition(":")
    about, _, key = rest.rpartition(":")
    for kind in KINDS:
        if kind == name and about and key:
            return kind, about, key
    raise NotFoundError(f"nothing waits as {id_[:80]!r}", "memctl work next hands out what waits")


def _work_is_gone(id_: str) -> NotFoundError:
    return NotFoundError(
        f"{id_} does not wait any more", "what is known has changed: memctl work next"
    )


def _reply_class(kind: WorkKind) -> type[BaseModel]:
    if kind == "insight":
        from memctl.consolidation.model_insights import InsightReply

        return InsightReply
    from memctl.understanding import model_replies

    shapes: Mapping[WorkKind, type[BaseModel]] = {
        "document": model_replies.DocumentReply,
        "comparison": model_replies.ComparisonReply,
        "answer": model_replies.AnswerCheck,
    }
    return shapes[kind]


def _checked_reply(kind: WorkKind, reply: object) -> bytes:
    """Return a reply as JSON, checked against its schema.

    Raises:
        UsageError: It does not match the schema; the message says where.
    """
    from pydantic import ValidationError

    try:
        data = json.loads(reply) if isinstance(reply, str) else reply
        return _reply_class(kind).model_validate(data).model_dump_json(by_alias=True).encode()
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the reply"
        raise UsageError(
            f"the reply to a {kind} is not as it should be: {place}: {first['msg']}",
            "its schema comes with the item",
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the reply is no JSON: {error}") from None
