"""Judgements of a knowledge base's answers and conversations, looking back, and its prompts."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import NotFoundError, UsageError
from memctl.identity import (
    DEFAULT_USER,
    conversations_of,
    documents_of,
    may_see,
)
from memctl.knowledge_base.documents import Documents
from memctl.knowledge_base.resources import Part
from memctl.knowledge_base.sessions import Sessions
from memctl.queries.query_log import unknown_question
from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.feedback.feedback_statistics import FeedbackStatistics
    from memctl.feedback.judging import Judge, Judgement
    from memctl.feedback.outside_sources import OutsideReply
    from memctl.feedback.prompt_variants import PromptVariants, VariantView
    from memctl.feedback.reflection import Reflection
    from memctl.prompts import Prompt
    from memctl.records import IngestReport
    from memctl.store.ledger.feedback_repositories import (
        ConversationSummary,
        Feedback,
        PromptVariant,
    )

OUTSIDE = "outside"
"""The tag, and the key of the metadata, of what a program of the user's has said."""


class JudgementResult(Struct, frozen=True):
    """A judgement as it was noted, and what became of the conversation that it is of."""

    kbs: tuple[str, ...]
    feedback: Feedback
    changed: int
    """How many memories gain or lose importance by it."""
    record: ConversationSummary | None = None
    """The record of the conversation; None where an answer is judged."""


class EnrichmentResult(Struct, frozen=True):
    """What the user's own programs returned for a question, and what was done with it."""

    kb: str
    source: str
    question: str
    texts: int
    bad_lines: tuple[int, ...]
    report: IngestReport


class Judgements(Part):
    """What is thought of one knowledge base's answers and conversations."""

    def has_session(self, session_id: str) -> bool:
        """Return whether there is a conversation of a name, of which the user may know."""
        found = self._kb.store.ledger.sessions.find_by_name(session_id)
        return any(may_see(self._kb.program_config, each.namespace) for each in found)

    def judge_session(self, session_id: str, judgement: Judgement) -> JudgementResult:
        """Record a judgement of a conversation, with a new record of its outcome.

        Raises:
            NotFoundError: There is none of that name.
            UsageError: The judgement says nothing, or the score is none.
        """
        kb, sessions = self._kb, Sessions(self._kb)
        session = sessions.get(session_id)
        kb.begin_change()
        made = self.judge.judge_session(session, judgement)
        summary = session.summary
        if not summary and session.message_count:
            summary = sessions.compress(session, keep=0, dry_run=True).summary
        record = kb.records.add(session, summary)
        return JudgementResult((kb.name,), made, self._apply(made), record)

    def judge_answer(
        self, query_id: str, judgement: Judgement, *, keeps_example: bool = True
    ) -> JudgementResult:
        """Record a judgement of the answer to a question that is logged here.

        Raises:
            NotFoundError: No such question is noted.
            UsageError: The judgement says nothing, or the score is none.
        """
        if judgement.example and keeps_example:
            self._kb.begin_change()
        made = self.judge.judge_answer(query_id, judgement, keeps_example=keeps_example)
        return JudgementResult((self._kb.name,), made, self._apply(made))

    def list(
        self, since: datetime | None = None, *, session: str | None = None, limit: int | None = None
    ) -> Sequence[Feedback]:
        """Return judgements, the latest first, without those of private namespaces."""
        found = self._kb.store.ledger.feedback.since(since)
        shown = [
            each
            for each in found
            if self._is_shown(each.namespace) and session in (None, each.session_id)
        ]
        return shown if limit is None else shown[:limit]

    def show(self, feedback_id: str) -> tuple[Feedback, Mapping[str, float]]:
        """Return a judgement, and how much it changed the importance of each memory.

        Raises:
            NotFoundError: There is none of that id.
        """
        found = self._kb.store.ledger.feedback.find(feedback_id)
        if found is None or not may_see(self._kb.program_config, found.namespace):
            raise NotFoundError(
                f"there is no judgement {feedback_id[:80]!r}", "memctl feedback list names them"
            )
        effects = self._kb.store.ledger.feedback_effects.of(feedback_id)
        return found, {each.memory_id: each.delta for each in effects}

    def undo(self, feedback_id: str, *, dry_run: bool = False) -> Feedback:
        """Take a judgement back, with what it changed and the example that was kept.

        Raises:
            NotFoundError: There is none of that id.
        """
        found, _ = self.show(feedback_id)
        if not dry_run:
            self._kb.begin_change()
            found, _ = self.show(feedback_id)  # it may have gone meanwhile
            self.judge.undo(found)
        return found

    def records(
        self, session: str | None = None, since: datetime | None = None
    ) -> Sequence[ConversationSummary]:
        """Return what became of conversations, the latest first."""
        ledger = self._kb.store.ledger
        where, values = ("TRUE", ()) if session is None else ("conversation_id = ?", (session,))
        found = ledger.summaries.select(where, *values)
        return [
            each
            for each in found
            if self._is_shown(each.namespace) and (since is None or each.timestamp >= since)
        ]

    def statistics(self, since: datetime | None = None) -> FeedbackStatistics:
        """Return rewards and judgements in numbers: by day, by prompt and by agent."""
        from memctl.feedback.feedback_statistics import feedback_statistics

        latest: dict[tuple[str, str], ConversationSummary] = {}
        for each in self.records(since=since):
            latest.setdefault((each.namespace, each.conversation_id), each)
        return feedback_statistics(self._kb.name, self.list(since), list(latest.values()))

    def reflect(
        self, since: datetime | None = None, *, write: bool = False, job: int | None = None
    ) -> Reflection:
        """Look back at what went badly, what memory lacks, and what could be done about it.

        Args:
            since: From when on; by default from the beginning.
            write: Whether what is found becomes a memory of type reflection.
            job: The job that it is part of, with which the memory is taken back.
        """
        from memctl.feedback.reflection import Reflector

        kb = self._kb
        kb.query_log.flush()
        reflector = Reflector(
            kb.name,
            kb.store.ledger,
            kb.snapshot,
            Prompts(kb).list,
            kb.clock,
            self._is_shown,
            kb.query_log.is_open,
            kb.readable(Filters()),
        )
        if write:
            kb.begin_change()
            self.judge.apply()
        found = reflector.reflect(since)
        if not write or not found.findings:
            return found
        user = kb.program_config.user
        place = conversations_of(kb.program_config.namespaces, user)
        stored = reflector.keep(found, kb.services.editor(asks_model=False), place, job)
        return replace(found, memory_id=stored.id)

    def enrich(self, name: str, question: str, *, namespace: str | None = None) -> EnrichmentResult:
        """Ask a program of the user's, and keep what it says as documents from outside.

        Args:
            name: What the settings call it.
            question: What it is asked.
            namespace: Where the documents go; by default where the user's do.

        Raises:
            UsageError: There is no such program, or what would be asked of is private.
            MemctlError: The program failed, took too long, or printed nothing of use.
        """
        from memctl.feedback.outside_sources import ask_source, find_source

        kb = self._kb
        config = kb.program_config
        source = find_source(config.sources, name)
        place = namespace or documents_of(config.namespaces, config.user)
        if kb.settings.private or place in kb.settings.private_namespaces:
            raise UsageError(
                f"{kb.name!r} is private: no question on it goes outside",
                "name another knowledge base with -k",
            )
        if not question.strip():
            raise UsageError("the question is empty", 'memctl enrich "what is ...?" --with NAME')
        kb.begin_change()
        reply = ask_source(name, source, question, kb.clock())
        report = self._keep_reply(reply, question, place)
        self._trust([each.document_id for each in report.outcomes], source.confidence)
        return EnrichmentResult(kb.name, name, question, len(reply.texts), reply.bad_lines, report)

    # --- inside ---

    @property
    def judge(self) -> Judge:
        """What notes judgements."""
        from memctl.feedback.judging import Judge

        kb = self._kb
        return Judge(
            kb.store,
            kb.query_log,
            kb.program_config,
            lambda: kb.services.editor(asks_model=False),
            kb.clock,
            kb.conversations.clean,
        )

    def _apply(self, feedback: Feedback) -> int:
        return len(self._kb.store.ledger.feedback_effects.of(feedback.feedback_id))

    def _is_shown(self, namespace: str) -> bool:
        is_private = namespace in self._kb.settings.private_namespaces
        return not is_private and may_see(self._kb.program_config, namespace)

    def _keep_reply(self, reply: OutsideReply, question: str, namespace: str) -> IngestReport:
        now = self._kb.clock().isoformat()
        lines: list[dict[str, Any]] = []
        for each in reply.texts:
            said = f"{reply.name}\0{each.url}\0{each.text}"
            metadata = {OUTSIDE: reply.name, "url": each.url, "asked": question, "asked_at": now}
            line = {
                "id": f"{OUTSIDE}:{hashlib.sha256(said.encode()).hexdigest()[:16]}",
                "text": each.text,
                "namespace": namespace,
                "source": f"{OUTSIDE}:{reply.name}: {each.url or each.source}",
                "tags": [OUTSIDE],
                "metadata": metadata,
            }
            lines.append(line | ({"created_at": each.date.isoformat()} if each.date else {}))
        content = "".join(f"{json.dumps(line)}\n" for line in lines)
        return Documents(self._kb).ingest(jsonl=io.BytesIO(content.encode()))

    def _trust(self, documents: Sequence[str | None], confidence: float) -> None:
        """Give the memories of documents from outside the confidence that they have at most."""
        from memctl.rows.row_changes import set_columns
        from memctl.store.tables.filter_expressions import col

        ids = [each for each in documents if each is not None]
        if not ids:
            return
        of_them = col("document_id").is_in(ids)
        too_sure = of_them & (col("confidence") > confidence)
        with self._kb.store.write() as transaction:
            rows = transaction.snapshot().scan("memories", too_sure, ["id"])["id"].to_pylist()
            set_columns(transaction, "memories", rows, confidence=confidence)


class Prompts(Part):
    """The variants of the prompts of one knowledge base."""

    @property
    def variants(self) -> PromptVariants:
        """What keeps and compares them."""
        from memctl.feedback.prompt_variants import PromptVariants

        kb = self._kb
        return PromptVariants(
            kb.store.ledger,
            kb.layout.prompts,
            kb.program_config.feedback,
            kb.clock,
            kb.conversations.clean,
        )

    def list(self, task: str | None = None) -> Sequence[VariantView]:
        """Return the variants of one prompt, or of all, with uses and rewards.

        Raises:
            NotFoundError: There is no such prompt.
        """
        self._kb.query_log.flush()
        return self.variants.views(task)

    def use(self, task: str, session: str, version: str | None = None) -> Prompt:
        """Return the variant for a conversation, and note that it is used there.

        Raises:
            NotFoundError: There is none.
        """
        self._kb.require_writable()
        return self.variants.use(task, session, self._namespace_of(session), version)

    def writable(self) -> PromptVariants:
        """Return the prompt variants, if they may be changed.

        Raises:
            KnowledgeBaseUnavailable: It is archived, or this process may only read.
        """
        self._kb.require_writable()
        return self.variants

    def improve(self, task: str) -> PromptVariant:
        """Have a model write a variant from what went badly; it is stored, and not in use.

        Raises:
            ConfigError: No model is configured that could.
            UsageError: Nothing went badly.
        """
        from memctl.feedback.prompt_variants import no_model

        kb = self._kb
        kb.require_writable()
        kb.query_log.flush()
        model = kb.services.feedback_model("improve")
        if model is None:
            raise no_model(task)
        return self.variants.improve(task, model, kb.settings.private_namespaces)

    def _namespace_of(self, session: str) -> str:
        kb = self._kb
        config = kb.program_config
        own = conversations_of(config.namespaces, config.user or DEFAULT_USER)
        found = kb.store.ledger.sessions.find_by_name(session)
        places = [each.namespace for each in found if may_see(config, each.namespace)]
        return own if own in places or not places else places[0]


def judge_in(
    parts: Sequence[Judgements], latest: str, target: str, judgement: Judgement
) -> JudgementResult:
    """Record a judgement of an answer or a conversation, in whichever knowledge base has it.

    Args:
        parts: Of each knowledge base that is meant.
        latest: The id of the question that was asked last.
        target: The id of a question, ``last`` for the latest one, or a conversation.
        judgement: What is said.

    Raises:
        UsageError: It says nothing, or the score is none.
        NotFoundError: There is no such question or conversation.
    """
    from memctl.feedback.judging import check_judgement

    check_judgement(judgement)
    query_id = latest if target == "last" else target
    askers = [part for part in parts if query_id and part.judge.has_question(query_id)]
    if askers:
        made = [
            part.judge_answer(query_id, judgement, keeps_example=part is askers[0])
            for part in askers
        ]
        return replace(
            made[0],
            kbs=tuple(each.kbs[0] for each in made),
            changed=sum(each.changed for each in made),
        )
    if target == "last" or target.startswith("q_"):
        raise unknown_question(target)
    for part in parts:
        if part.has_session(target):
            return part.judge_session(target, judgement)
    raise NotFoundError(
        f"there is neither a question nor a conversation {target[:80]!r}",
        "memctl session list names conversations, memctl query -o json the query_id of a question",
    )
