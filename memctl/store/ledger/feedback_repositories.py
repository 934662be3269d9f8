"""What people and agents think of answers and conversations, and the prompts that gave them.

Judgements, what they changed, what became of conversations, and variants of prompts with their
shares and uses.  Must never know what the words mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from memctl.store.ledger.repository import LedgerTable, OwnedRepository, Repository, to_text

TaskOutcome = Literal["", "done", "failed"]
PromptOrigin = Literal["shipped", "own", "suggested"]


class Feedback(Struct, frozen=True):
    """A judgement of one answer or one conversation."""

    feedback_id: str
    namespace: str
    """That of the judge's conversations."""
    at: datetime
    query_id: str = ""
    """The question that is judged; "" where a whole conversation is."""
    session_id: str | None = None
    """The conversation that is judged, or in which the question was asked."""
    score: float | None = None
    """From 0 (bad) to 1 (good); None where only words are said."""
    text: str = ""
    example: str = ""
    """What the answer should have been."""
    task: TaskOutcome = ""
    """Whether the task was done; "" where that is unknown."""
    example_id: str | None = None
    """The memory that the example became."""
    user_id: str | None = None
    agent_id: str | None = None


class FeedbackEffect(Struct, frozen=True):
    """By how much a judgement changes the importance of a memory."""

    feedback_id: str
    memory_id: str
    namespace: str
    at: datetime
    wanted: float
    """What it is to change by."""
    session_id: str | None = None
    delta: float = 0.0
    """What it did change by: less where the importance would leave 0 to 1."""
    is_applied: bool = False
    """Whether the memory has it; it waits while another process is writing."""


class ConversationSummary(Struct, frozen=True):
    """What became of a conversation, as it was known at one moment."""

    summary_id: str
    namespace: str
    conversation_id: str
    prompt: str
    """What the conversation began with."""
    feedback_text: str
    example: str
    """What the agent should have done."""
    improvement_suggestion: str
    prompt_version: str
    """Which version of which prompt was used, such as ``answer/1``; "" for none."""
    reward_score: float | None
    """How good the conversation was as a whole, from 0 to 1; None where nothing tells."""
    conversation_summary: str
    timestamp: datetime
    satisfaction: float | None = None
    completion: float | None = None
    grounding: float | None = None
    messages: int = 0
    """How many messages the conversation had by then."""
    memory_id: str | None = None
    """The memory that has the summary, by which it is found."""
    user_id: str | None = None
    agent_id: str | None = None
    by: str = "builtin"
    """Who wrote summary and suggestion: ``builtin``, or the name of a model."""


class PromptVariant(Struct, frozen=True):
    """One version of the instructions for a task."""

    task: str
    version: str
    at: datetime
    origin: PromptOrigin
    parent: str = ""
    """The version that it was made from."""
    text: str = ""
    reason: str = ""
    """Why it was made."""
    is_retired: bool = False


class PromptShare(Struct, frozen=True):
    """Which part of the conversations uses a version of a prompt; a person decides that here."""

    task: str
    version: str
    share: float
    """From 0 to 1."""
    at: datetime


class PromptUse(Struct, frozen=True):
    """That a version of a prompt was used in a conversation, or for one question outside of any."""

    task: str
    version: str
    subject: str
    """The id of the conversation or of the question."""
    namespace: str
    at: datetime
    session_id: str | None = None


EFFECTS: LedgerTable[FeedbackEffect] = LedgerTable(
    "feedback_effects", FeedbackEffect, ("feedback_id", "memory_id")
)
SUMMARIES: LedgerTable[ConversationSummary] = LedgerTable(
    "conversation_summaries", ConversationSummary, ("summary_id",), "timestamp DESC, summary_id"
)
VARIANTS: LedgerTable[PromptVariant] = LedgerTable(
    "prompt_variants", PromptVariant, ("task", "version"), "task, at, version"
)
USES: LedgerTable[PromptUse] = LedgerTable("prompt_uses", PromptUse, ("task", "version", "subject"))


class FeedbackRepository(Repository[Feedback]):
    """Judgements, the latest first."""

    table = LedgerTable("feedback", Feedback, ("feedback_id",), "at DESC, feedback_id")

    def of_session(self, namespace: str, session_id: str) -> list[Feedback]:
        """Return the judgements on a conversation and on questions asked in it."""
        return self.select("namespace = ? AND session_id = ?", namespace, session_id)

    def since(self, at: datetime | None) -> list[Feedback]:
        """Return the judgements from an instant on."""
        return self.select("at >= ?", "" if at is None else to_text(at))


class EffectRepository(OwnedRepository[FeedbackEffect]):
    """What judgements changed, by judgement."""

    table = EFFECTS

    def pending(self) -> list[FeedbackEffect]:
        """Return what is still to be changed."""
        return self.select("NOT is_applied")

    def sums(self, memory_ids: Sequence[str]) -> dict[str, float]:
        """Return by how much judgements changed some memories, where they did."""
        marks = ", ".join("?" * len(memory_ids))
        found = self.rows(
            f"SELECT memory_id, sum(delta) FROM feedback_effects WHERE memory_id IN ({marks})"
            " GROUP BY memory_id HAVING sum(delta) <> 0",
            *memory_ids,
        )
        return dict(found)


class SummaryRepository(Repository[ConversationSummary]):
    """What became of conversations, the latest first."""

    table = SUMMARIES

    def of(self, namespace: str, session_id: str) -> list[ConversationSummary]:
        """Return the records of a conversation, the latest first."""
        return self.select("namespace = ? AND conversation_id = ?", namespace, session_id)

    def latest(self, since: datetime | None = None) -> list[ConversationSummary]:
        """Return the last record of each conversation, from an instant on."""
        found: dict[tuple[str, str], ConversationSummary] = {}
        for each in self.select("timestamp >= ?", "" if since is None else to_text(since)):
            found.setdefault((each.namespace, each.conversation_id), each)
        return list(found.values())


class VariantRepository(OwnedRepository[PromptVariant]):
    """Versions of prompts, by task, the oldest first."""

    table = VARIANTS


class ShareRepository(Repository[PromptShare]):
    """Which versions of prompts are in use; of this disk alone, so neither exported nor restored.

    What an import brings is never in use by itself.
    """

    table = LedgerTable("prompt_shares", PromptShare, ("task", "version"))

    def of(self, task: str) -> dict[str, float]:
        """Return the shares of the versions of one prompt."""
        return {each.version: each.share for each in self.select("task = ?", task)}

    def replace(self, task: str, shares: Iterable[PromptShare]) -> None:
        """Set the shares of one prompt."""
        with self._ledger.transaction():
            self.delete("task = ?", task)
            self.save(*shares)


class UseRepository(Repository[PromptUse]):
    """Which versions of prompts were used where."""

    table = USES

    def note(self, use: PromptUse) -> None:
        """Record a use; the same again is known."""
        self.write([use], "DO NOTHING", durable=False)

    def of(self, task: str) -> list[PromptUse]:
        """Return the uses of one prompt, the oldest first."""
        return self.select("task = ?", task, order="at, subject")
