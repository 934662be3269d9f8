"""Answers and conversations are judged; memories gain or lose by it, and examples are kept.

What a judgement changes is bounded, noted beside it, and taken back with it.  Knows nothing of how
a question is answered.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import DiskRefused, LockedError, NotFoundError, UsageError
from memctl.identity import DEFAULT_USER, checked_name, conversations_of
from memctl.ids import storable
from memctl.memories.memory_editing import Editor, Statement
from memctl.queries.query_log import unknown_question
from memctl.rows.row_changes import set_columns
from memctl.schema.arrow_tables import plain_values
from memctl.store.ledger.feedback_repositories import Feedback, FeedbackEffect

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.literals import Verdict
    from memctl.queries.query_log import QueryLog
    from memctl.store.ledger.feedback_repositories import TaskOutcome
    from memctl.store.ledger.log_repositories import QueryDetail, QueryEntry
    from memctl.store.ledger.session_repositories import Session
    from memctl.store.store import Store

PREFERENCE = "preference"
TAG = "feedback"
_log = logging.getLogger(__name__)
_MAX_RELIED_ON = 3
"""Hits that count as what was relied on where no answer was asked for."""
_LONGEST_TEXT = 20_000
_LONGEST_QUESTION = 300
NEUTRAL = 0.5
"""The score that is neither good nor bad."""


class Judgement(Struct, frozen=True, kw_only=True):
    """A judgement of an answer or a conversation."""

    score: float | None = None
    """From 0 (bad) to 1 (good)."""
    text: str = ""
    example: str = ""
    """What the answer should have been."""
    task: TaskOutcome = ""


def check_judgement(judgement: Judgement) -> None:
    """Refuse a judgement that says nothing, or a score that is none.

    Raises:
        UsageError: It is one.
    """
    score = judgement.score
    if score is not None and not 0 <= score <= 1:
        raise UsageError(f"no such score: {score:g}", "from 0 (bad) to 1 (good)")
    says = (judgement.text.strip(), judgement.example.strip(), judgement.task)
    if score is None and not any(says):
        raise UsageError(
            "the judgement says nothing", "give a score, good or bad, --text or --example"
        )
    if max(len(judgement.text), len(judgement.example)) > _LONGEST_TEXT:
        raise UsageError(f"the text is longer than {_LONGEST_TEXT:,} characters", "say it shorter")


def verdict_of(score: float) -> Verdict | None:
    """Return a score as a word; None if it is neither good nor bad."""
    if score == NEUTRAL:
        return None
    return "good" if score > NEUTRAL else "bad"


def relied_on(entry: QueryEntry, detail: QueryDetail | None) -> Sequence[str]:
    """Return the memories that an answer cites, or the first hits where none was asked for.

    An answer that cites nothing, such as "Not in memory.", relied on nothing.
    """
    if detail is not None and (detail.cited or detail.confidence is not None):
        return detail.cited
    return entry.hit_ids[:_MAX_RELIED_ON]


class Judge(Struct, frozen=True):
    """Notes judgements in one knowledge base.

    Args:
        store: Its tables and ledger.
        log: Its query log.
        config: Settings of the program, and who judges.
        editor: Gives what writes memories.
        clock: What tells the time.
        clean: Takes out what looks like a secret, where that is wanted.
    """

    store: Store
    log: QueryLog
    config: Config
    editor: Callable[[], Editor]
    clock: Callable[[], datetime]
    clean: Callable[[str], str]

    def has_question(self, query_id: str) -> bool:
        """Return whether a question is noted here, of which who judges may know."""
        self.log.flush()
        found = self.store.ledger.queries.find_by_id(query_id)
        return found is not None and self.log.is_open(found)

    def judge_answer(
        self, query_id: str, judgement: Judgement, *, keeps_example: bool = True
    ) -> Feedback:
        """Record a judgement of the answer to a question; it replaces the one before.

        Args:
            query_id: The question's id.
            judgement: What is said.
            keeps_example: Whether the example becomes a memory here.

        Raises:
            NotFoundError: No such question is noted.
            UsageError: The judgement says nothing, or the score is none.
        """
        check_judgement(judgement)
        ledger = self.store.ledger
        if not self.has_question(query_id):
            raise unknown_question(query_id)
        entry, detail = ledger.queries.find_by_id(query_id), ledger.query_details.find(query_id)
        assert entry is not None
        session = detail.session_id if detail else None
        cited_ids = relied_on(entry, detail)
        feedback = self._make_feedback(judgement, query_id, session)
        if keeps_example:
            feedback = self._with_example(feedback, entry.question)
        with ledger.transaction():
            if judgement.score is not None:
                self.log.judge(query_id, verdict_of(judgement.score), judgement.score)
            self._note(feedback, cited_ids)
        self._apply_now()
        return feedback

    def judge_session(self, session: Session, judgement: Judgement) -> Feedback:
        """Record a judgement of a whole conversation.

        Raises:
            UsageError: The judgement says nothing, or the score is none.
        """
        check_judgement(judgement)
        ledger = self.store.ledger
        self.log.flush()
        feedback = self._make_feedback(judgement, "", session.session_id, session.namespace)
        queries = ledger.query_details.of_session(session.session_id)
        cited_ids = dict.fromkeys(id_ for each in queries for id_ in each.cited)
        said = ledger.turns.select(
            "namespace = ? AND session_id = ? AND sender = 'user'",
            *(session.namespace, session.session_id),
            order="turn",
            limit=1,
        )
        feedback = self._with_example(feedback, said[0].content if said else session.title)
        self._note(feedback, tuple(cited_ids))
        self._apply_now()
        return feedback

    def undo(self, feedback: Feedback) -> None:
        """Take a judgement back, with all that it changed."""
        self._retract([feedback])
        self.apply()
        if feedback.example_id is not None:
            with suppress(NotFoundError):  # it has been forgotten
                self.editor().delete_memory(feedback.example_id)
        if feedback.query_id and feedback.score is not None:
            self.log.take_back(feedback.query_id)
        self.store.ledger.feedback.remove(feedback.feedback_id)

    def apply(self, wait: float | None = None) -> int:
        """Change the importance of memories as judgements say; return of how many.

        Args:
            wait: Seconds to wait for another process that is writing; by default as configured.

        Raises:
            LockedError: Another process is writing.
        """
        ledger = self.store.ledger
        if not ledger.feedback_effects.pending():
            return 0
        writing = self.store.write() if wait is None else self.store.write(wait)
        with writing as transaction:
            pending = ledger.feedback_effects.pending()
            ids = sorted({each.memory_id for each in pending})
            rows = transaction.snapshot().get("memories", ids, ["id", "importance"])
            importances = plain_values(rows["importance"])
            now = dict(zip(rows["id"].to_pylist(), importances, strict=True))
            done: list[FeedbackEffect] = []
            for each in pending:
                if each.memory_id in now:
                    before = now[each.memory_id] - each.delta
                    after = min(1.0, max(0.0, before + each.wanted))
                    now[each.memory_id] = after
                    done.append(replace(each, delta=after - before, is_applied=True))
            set_columns(transaction, "memories", list(now), importance=list(now.values()))
            gone = [each for each in pending if each.memory_id not in now]

            def note(_: object) -> None:
                """Record it with the commit itself."""
                for each in (*gone, *(each for each in done if not each.wanted)):
                    ledger.feedback_effects.remove(each.feedback_id, each.memory_id)
                ledger.feedback_effects.save(*(each for each in done if each.wanted))

            transaction.ledger(note)
        return len(now)

    # --- inside ---

    def _make_feedback(
        self, judgement: Judgement, query_id: str, session: str | None, namespace: str = ""
    ) -> Feedback:
        config = self.config
        user = checked_name(config.user, "a user")
        place = namespace or conversations_of(config.namespaces, user or DEFAULT_USER)
        return Feedback(
            feedback_id=f"f_{secrets.token_hex(6)}",
            namespace=place,
            at=self.clock(),
            query_id=query_id,
            session_id=session,
            score=judgement.score,
            text=self._stored_text(judgement.text),
            example=self._stored_text(judgement.example),
            task=judgement.task,
            user_id=user,
            agent_id=checked_name(config.agent, "an agent"),
        )

    def _stored_text(self, text: str) -> str:
        return self.clean(storable(text).replace("\0", "\ufffd").strip())

    def _with_example(self, feedback: Feedback, question: str) -> Feedback:
        """Keep what the answer should have been as a memory, where that is wanted."""
        if not feedback.example or not self.config.feedback.keep_examples:
            return feedback
        asked = " ".join(question.split())[:_LONGEST_QUESTION]
        text = f"{asked}\n{feedback.example}" if asked else feedback.example
        memory = self.editor().add(
            Statement(
                text=text,
                type=PREFERENCE,
                namespace=feedback.namespace,
                tags=(TAG,),
                session_id=feedback.session_id,
                agent_id=feedback.agent_id,
                metadata={"feedback": feedback.feedback_id},
            )
        )
        return replace(feedback, example_id=memory.id)

    def _note(self, feedback: Feedback, cited_ids: Sequence[str]) -> None:
        """Write a judgement with what it changes, in place of one by the same person before."""
        ledger, settings = self.store.ledger, self.config.feedback
        with ledger.transaction():
            if feedback.score is not None:
                self._replace(self._earlier(feedback))
            ledger.feedback.save(feedback)
            if feedback.score is not None and settings.change_importance and settings.most_change:
                wanted = settings.most_change * (2 * feedback.score - 1)
                if wanted:
                    ledger.feedback_effects.save(*self._effects(feedback, cited_ids, wanted))

    def _apply_now(self) -> None:
        """Change the importance of memories; the next judgement or end of a conversation does it
        as well.
        """
        try:
            with suppress(LockedError):
                self.apply(0)
        except (DiskRefused, OSError) as error:  # the judgement is noted all the same
            _log.warning("what was judged waits to change what is important: %s", error)

    def _effects(
        self, feedback: Feedback, cited_ids: Sequence[str], wanted: float
    ) -> Sequence[FeedbackEffect]:
        return [
            FeedbackEffect(
                feedback.feedback_id,
                id_,
                feedback.namespace,
                feedback.at,
                wanted,
                feedback.session_id,
            )
            for id_ in dict.fromkeys(cited_ids)
        ]

    def _earlier(self, feedback: Feedback) -> Sequence[Feedback]:
        """Return the earlier judgements of the same thing by the same person."""
        return self.store.ledger.feedback.select(
            "query_id = ? AND session_id IS ? AND user_id IS ? AND agent_id IS ?",
            *(feedback.query_id, feedback.session_id, feedback.user_id, feedback.agent_id),
        )

    def _replace(self, judgements: Sequence[Feedback]) -> None:
        """Drop the scores of judgements with what they changed; what else was said stays."""
        self._retract(judgements)
        for each in judgements:
            if each.text or each.example or each.task:
                self.store.ledger.feedback.save(replace(each, score=None))
            else:
                self.store.ledger.feedback.remove(each.feedback_id)

    def _retract(self, judgements: Sequence[Feedback]) -> None:
        """Have what judgements changed be changed back."""
        effects = self.store.ledger.feedback_effects
        for each in judgements:
            effects.save(
                *(
                    replace(effect, wanted=0.0, is_applied=False)
                    for effect in effects.of(each.feedback_id)
                )
            )
