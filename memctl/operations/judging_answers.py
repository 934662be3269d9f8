"""Operations by which agents judge, look back and get their prompts.

They do what ``memctl feedback``, ``reflect``, ``prompt`` and ``enrich`` do, for their caller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from memctl.errors import UsageError
from memctl.instants import parse_instant
from memctl.operations.finding import opened
from memctl.operations.operation_context import OperationContext
from memctl.records import record_like
from memctl.validation import Rule

TaskResult = Literal["done", "failed"]
_SINCE = "Only from that date on, such as 7d."


class GiveFeedbackParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``give_feedback``."""

    target: Annotated[str, Rule("The query_id of an answer, a session, or last.")]
    score: Annotated[float | None, Rule("From 0 (bad) to 1 (good).", low=0, high=1)] = None
    text: Annotated[str, Rule("What was good or bad.")] = ""
    example: Annotated[str, Rule("What the answer should have been.")] = ""
    task: Annotated[TaskResult | None, Rule("Whether the task was done.")] = None
    dry_run: Annotated[bool, Rule("Note nothing.")] = False


class GivenFeedback(Struct, frozen=True):
    """What was noted."""

    feedback_id: str
    target: str
    score: float | None
    changed: int
    """How many memories gain or lose importance by it."""
    example_id: str | None
    reward: float | None
    """Of the conversation, where one is judged."""
    dry_run: bool


def give_feedback(context: OperationContext, parameters: GiveFeedbackParameters) -> GivenFeedback:
    """Judge an answer or a conversation, as ``memctl feedback add`` does."""
    from memctl.feedback.judging import Judgement, check_judgement

    judgement = Judgement(
        score=parameters.score,
        text=parameters.text,
        example=parameters.example,
        task=parameters.task or "",
    )
    check_judgement(judgement)
    bases = opened(context)
    if parameters.dry_run:
        return GivenFeedback("", parameters.target, parameters.score, 0, None, None, True)
    judged = bases.judge(parameters.target, judgement)
    made, record = judged.feedback, judged.record
    return GivenFeedback(
        feedback_id=made.feedback_id,
        target=made.query_id or made.session_id or "",
        score=made.score,
        changed=judged.changed,
        example_id=made.example_id,
        reward=record.reward_score if record else None,
        dry_run=False,
    )


class ListFeedbackParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_feedback``."""

    since: Annotated[str | None, Rule(_SINCE)] = None
    session_id: Annotated[str | None, Rule("Only of this conversation.")] = None
    limit: Annotated[int, Rule("At most this many.", low=1, high=200)] = 20


class ListedFeedback(Struct, frozen=True):
    """One judgement."""

    kb: str
    feedback_id: str
    at: datetime
    target: str
    score: float | None
    text: str
    example: str
    task: str


class FeedbackList(Struct, frozen=True):
    """Judgements, the latest first."""

    feedback: tuple[ListedFeedback, ...]
    total: int


def list_feedback(context: OperationContext, parameters: ListFeedbackParameters) -> FeedbackList:
    """List judgements as ``memctl feedback list`` does."""
    since = _since(context, parameters.since)
    found = [
        record_like(
            ListedFeedback, each, kb=base.name, target=each.query_id or each.session_id or ""
        )
        for base in opened(context)
        for each in base.judgements.list(since, session=parameters.session_id)
    ]
    found.sort(key=lambda each: each.at, reverse=True)
    return FeedbackList(tuple(found[: parameters.limit]), len(found))


def _since(context: OperationContext, since: str | None) -> datetime | None:
    return None if since is None else parse_instant(since, context.home.now())


# --- looking back ---------------------------------------------------------------------------------


class ReflectParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``reflect``."""

    since: Annotated[str | None, Rule(_SINCE)] = None
    write: Annotated[bool, Rule("Keep what is found as a memory.")] = False
    dry_run: Annotated[bool, Rule("Keep nothing, even with write.")] = False


class ReflectedFinding(Struct, frozen=True):
    """One thing that was found on looking back."""

    kb: str
    kind: str
    topic: str
    text: str
    suggestion: str
    count: int
    evidence: tuple[str, ...]


class ReflectReply(Struct, frozen=True):
    """What went badly, and what could be done about it."""

    findings: tuple[ReflectedFinding, ...]
    memory_ids: tuple[str, ...]
    dry_run: bool


def reflect(context: OperationContext, parameters: ReflectParameters) -> ReflectReply:
    """Look back as ``memctl reflect`` does."""
    since = _since(context, parameters.since)
    write = parameters.write and not parameters.dry_run
    found = [base.judgements.reflect(since, write=write) for base in opened(context)]
    return ReflectReply(
        findings=tuple(
            record_like(ReflectedFinding, one, kb=each.kb)
            for each in found
            for one in each.findings
        ),
        memory_ids=tuple(each.memory_id for each in found if each.memory_id),
        dry_run=parameters.dry_run,
    )


# --- prompts --------------------------------------------------------------------------------------


class GetPromptParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``get_prompt``."""

    task: Annotated[str, Rule("Which prompt, such as answer, or that of an agent.")]
    version: Annotated[str | None, Rule("By default the one that the session uses.")] = None
    session_id: Annotated[
        str | None, Rule("The conversation; what it uses is noted, and always the same.")
    ] = None
    dry_run: Annotated[bool, Rule("Note no use.")] = False


class PromptReply(Struct, frozen=True):
    """A version of a prompt."""

    task: str
    version: str
    text: str
    dry_run: bool


def get_prompt(context: OperationContext, parameters: GetPromptParameters) -> PromptReply:
    """Return the version of a prompt for a conversation, as ``memctl prompt show`` does."""
    base = context.reading_existing()
    session = parameters.session_id or context.identity.session
    if session is None or parameters.dry_run:
        found = base.prompts.variants.show(parameters.task, parameters.version, session)
    else:
        found = base.prompts.use(parameters.task, session, parameters.version)
    return PromptReply(found.name, found.version, found.text, parameters.dry_run)


class ListPromptsParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``list_prompts``."""

    task: Annotated[str | None, Rule("Only this prompt.")] = None


class ListedPrompt(Struct, frozen=True):
    """One version of a prompt, with how it does."""

    task: str
    version: str
    origin: str
    share: float
    uses: int
    judged: int
    mean_reward: float | None
    low: float | None
    high: float | None
    is_winner: bool


class PromptList(Struct, frozen=True):
    """Versions of prompts that are not retired."""

    prompts: tuple[ListedPrompt, ...]


def list_prompts(context: OperationContext, parameters: ListPromptsParameters) -> PromptList:
    """List versions of prompts as ``memctl prompt list`` does."""
    found = context.reading_existing().prompts.list(parameters.task)
    return PromptList(
        tuple(record_like(ListedPrompt, each) for each in found if not each.is_retired)
    )


# --- outside knowledge ----------------------------------------------------------------------------


class EnrichParameters(Struct, frozen=True, kw_only=True):
    """Parameters of ``enrich``."""

    question: Annotated[str, Rule("What to ask.")]
    source: Annotated[str, Rule("Which program of the user's, as the settings call it.")]
    dry_run: Annotated[bool, Rule("Do not ask a model.")] = False


class EnrichReply(Struct, frozen=True):
    """What a program of the user's said."""

    source: str
    texts: int
    new: int
    bad_lines: tuple[int, ...]
    kb: str
    dry_run: bool


def enrich(context: OperationContext, parameters: EnrichParameters) -> EnrichReply:
    """Ask a program of the user's and keep what it says, as ``memctl enrich`` does."""
    from memctl.feedback.outside_sources import find_source

    find_source(context.home.config.sources, parameters.source)
    if not parameters.question.strip():
        raise UsageError("the question is empty", "ask something")
    if parameters.dry_run:
        return EnrichReply(parameters.source, 0, 0, (), context.kb_to_write, True)
    done = context.writing().judgements.enrich(parameters.source, parameters.question)
    return EnrichReply(
        parameters.source, done.texts, done.report.ingested, done.bad_lines, done.kb, False
    )
