"""A record of each conversation's outcome: summary, reward, feedback and what to improve.

A record is added when a conversation ends and whenever it is judged; records never change. Without
a model the summary is that of the session, and the suggestion follows a few rules.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from memctl.errors import MemctlError, NotFoundError, UsageError
from memctl.memories.memory_editing import Edit, Editor, Statement
from memctl.prompts import fenced
from memctl.store.ledger.feedback_repositories import ConversationSummary

if TYPE_CHECKING:
    from memctl.config import FeedbackSettings
    from memctl.literals import QueryStatus
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.store.ledger.feedback_repositories import Feedback
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.log_repositories import QueryDetail
    from memctl.store.ledger.session_repositories import Session, Turn

SUMMARY = "summary"
_LONGEST_PROMPT = 2_000
_LAST_TURNS = 12
_LONGEST_TURN = 1_000
_POOR_SCORE = 0.5
_BUILTIN = "builtin"
_log = logging.getLogger(__name__)


class FeedbackReply(BaseModel):
    """What a model may write; every field is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid")

    summary: str
    suggestion: str


class ConversationRecords(Struct, frozen=True):
    """The records of the conversations of one knowledge base.

    Args:
        ledger: Where they are.
        settings: What a reward is made of, and whether summaries become memories.
        clock: What tells the time.
        editor: Gives what writes memories.
        model: Returns the model for a namespace with its instructions; None where there is none.
        clean: Takes out what looks like a secret, where that is wanted.
    """

    ledger: Ledger
    settings: FeedbackSettings
    clock: Callable[[], datetime]
    editor: Callable[[], Editor]
    model: Callable[[str], tuple[ChatModel, Prompt] | None]
    clean: Callable[[str], str]

    def add(
        self, session: Session, summary: str, evidence: Sequence[str] = ()
    ) -> ConversationSummary | None:
        """Record what became of a conversation; None where nothing is new since the last record.

        Args:
            session: The conversation.
            summary: What it was about, as the built-in way or a model has summarised it.
            evidence: Ids of the memories that say so.
        """
        key = (session.namespace, session.session_id)
        turns = self.ledger.turns.of(key)
        feedback = self.ledger.feedback.of_session(*key)
        earlier = self.ledger.summaries.of(*key)
        if not (turns or feedback) or (earlier and not _is_news(earlier[0], turns, feedback)):
            return None
        queries = self.ledger.query_details.of_session(session.session_id)
        said = [turn.content for turn in turns if turn.sender == "user"]
        reward = reward_of(self.settings, feedback, queries, said)
        texts = [each.text for each in reversed(feedback) if each.text]
        examples = [each for each in feedback if each.example]
        written = self._by_model(session, summary, turns, reward, feedback) if turns else None
        whole, suggestion, by = written or (
            summary, _rules(reward, feedback, is_unfound=self._has_unfound(queries)), _BUILTIN
        )  # fmt: skip
        made = ConversationSummary(
            summary_id=f"s_{secrets.token_hex(6)}",
            namespace=session.namespace,
            conversation_id=session.session_id,
            prompt=turns[0].content[:_LONGEST_PROMPT] if turns else session.title,
            feedback_text="\n".join(texts),
            example=examples[0].example if examples else "",
            improvement_suggestion=suggestion,
            prompt_version=self._prompt_version(session, queries),
            reward_score=reward.score,
            conversation_summary=whole,
            timestamp=self.clock(),
            satisfaction=reward.satisfaction,
            completion=reward.completion,
            grounding=reward.grounding,
            messages=len(turns),
            memory_id=self._keep_summary(session, whole, earlier, evidence),
            user_id=session.user_id,
            agent_id=session.agent_id,
            by=by,
        )
        self.ledger.summaries.save(made)
        return made

    def lacks_ending(self, session: Session) -> bool:
        """Return whether a conversation has ended, and nothing is recorded of what it came to."""
        key = (session.namespace, session.session_id)
        if session.ended_at is None or not self.ledger.turns.of(key):
            return False
        return all(each.timestamp < session.ended_at for each in self.ledger.summaries.of(*key))

    # --- inside ---

    def _has_unfound(self, queries: Sequence[QueryDetail]) -> bool:
        """Return whether nothing was found for a question, in whatever knowledge base."""
        entries = (
            self.ledger.queries.find_by_id(each.query_id)
            for each in queries
            if each.status == "nothing"
        )
        return any(entry is not None and not entry.found for entry in entries)

    def _prompt_version(self, session: Session, queries: Sequence[QueryDetail]) -> str:
        uses = self.ledger.prompt_uses.select(
            "namespace = ? AND session_id = ?",
            *(session.namespace, session.session_id),
            order="at DESC",
            limit=1,
        )
        if uses:
            return f"{uses[0].task}/{uses[0].version}"
        return next((each.prompt for each in reversed(queries) if each.prompt), "")

    def _keep_summary(
        self,
        session: Session,
        text: str,
        earlier: Sequence[ConversationSummary],
        evidence: Sequence[str],
    ) -> str | None:
        """Keep a summary as a memory, in place of that of an earlier record."""
        if not self.settings.keep_summaries or not text.strip():
            return None
        known = next((each for each in earlier if each.memory_id), None)
        if known is not None and known.memory_id is not None:
            if known.conversation_summary == text:
                return known.memory_id
            with suppress(NotFoundError, UsageError):  # it is forgotten, or has been edited
                return self.editor().edit(known.memory_id, Edit(text)).id
        statement = Statement(
            text=text,
            type=SUMMARY,
            namespace=session.namespace,
            session_id=session.session_id,
            agent_id=session.agent_id,
            created_at=session.last_at,
            source_type="system",
            method=SUMMARY,
            source=f"session:{session.session_id}",
            source_ids=tuple(evidence),
        )
        return self.editor().add(statement).id

    def _by_model(
        self,
        session: Session,
        summary: str,
        turns: Sequence[Turn],
        reward: Reward,
        feedback: Sequence[Feedback],
    ) -> tuple[str, str, str] | None:
        """Return summary and suggestion as a model writes them, and its name."""
        try:
            if (found := self.model(session.namespace)) is None:
                return None
            chat, prompt = found
            spoken = (f"{turn.sender}: {turn.content[:_LONGEST_TURN]}" for turn in turns)
            data = [
                f"Summary so far\n{summary}",
                "Last messages\n" + "\n".join([*spoken][-_LAST_TURNS:]),
                _verdict(reward, feedback),
            ]
            reply = chat.ask(prompt.text, fenced(data), FeedbackReply, version=prompt.id)
        except MemctlError as error:
            _log.warning("the conversation was summed up without the model: %s", error.message)
            return None
        text = self.clean(reply.summary.strip()) or summary
        return text, self.clean(reply.suggestion.strip()), f"model/{chat.name}/{prompt.id}"


def _is_news(
    last: ConversationSummary, turns: Sequence[Turn], feedback: Sequence[Feedback]
) -> bool:
    """Return whether something was said in a conversation, or of it, since a record."""
    return len(turns) != last.messages or any(each.at > last.timestamp for each in feedback)


def _verdict(reward: Reward, feedback: Sequence[Feedback]) -> str:
    lines = ["What was said of it"]
    if reward.score is not None:
        lines.append(f"reward: {reward.score:.2f}")
    for each in feedback:
        lines += [f"feedback: {each.text}"] if each.text else []
        lines += [f"it should have been: {each.example}"] if each.example else []
    return "\n".join(lines)


def _rules(reward: Reward, feedback: Sequence[Feedback], *, is_unfound: bool) -> str:
    """Return what to do better, as the parts of the reward tell; "" where nothing is wrong."""
    found: list[str] = []
    if any(each.example for each in feedback):
        found.append("Answer as in the example.")
    if reward.satisfaction is not None and reward.satisfaction < _POOR_SCORE:
        found.append(
            "Heed what the feedback says."
            if any(each.text for each in feedback)
            else "Ask the user what was wrong, and try another answer."
        )
    if is_unfound:
        found.append("Add to memory what was asked and not found there.")
    if reward.completion == 0 and any(each.task == "failed" for each in feedback):
        found.append("Say early what cannot be done, and what is needed to do it.")
    if reward.grounding is not None and reward.grounding < 1:
        found.append("Say only what memories support.")
    return " ".join(found)


# --- rewards --------------------------------------------------------------------------------------

PLEASED, DISPLEASED = 0.8, 0.2
"""What the words of a user say of their satisfaction, where no score was given."""
_COMPLETED: dict[QueryStatus, float] = {"answered": 1.0, "unsure": 0.5, "nothing": 0.0}
_APOSTROPHES = str.maketrans("’‘", "''")


class Reward(Struct, frozen=True):
    """How good a conversation was, from 0 to 1; None for what nothing tells.

    The score is the weighted mean of what is known of the other three.
    """

    score: float | None
    satisfaction: float | None
    completion: float | None
    grounding: float | None


def reward_of(
    settings: FeedbackSettings,
    feedback: Sequence[Feedback],
    queries: Sequence[QueryDetail],
    said: Sequence[str],
) -> Reward:
    """Return the reward of a conversation, or of a question that was asked outside of any.

    Args:
        settings: The weights, and the words of users who are content or not.
        feedback: What was said of it, the latest first.
        queries: The questions that were asked in it, the oldest first.
        said: What the user said in it, in order.
    """
    satisfaction = _satisfaction(settings, feedback, said)
    completion = _completion(feedback, queries)
    supported = [each.grounding for each in queries if each.grounding is not None]
    grounding = fmean(supported) if supported else None
    return Reward(
        weighted_mean(
            (settings.satisfaction_weight, satisfaction),
            (settings.completion_weight, completion),
            (settings.grounding_weight, grounding),
        ),
        satisfaction,
        completion,
        grounding,
    )


def weighted_mean(*parts: tuple[float, float | None]) -> float | None:
    """Return the weighted mean of the parts that are known; None where none is, or none counts."""
    known = [(weight, value) for weight, value in parts if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else None


def _satisfaction(
    settings: FeedbackSettings, feedback: Sequence[Feedback], said: Sequence[str]
) -> float | None:
    """Return what was said of the whole conversation, else of its answers, else by the user."""
    scored = [each for each in feedback if each.score is not None]
    whole = next((each.score for each in scored if not each.query_id), None)
    if whole is not None:
        return whole
    latest: dict[str, float] = {}
    for each in scored:
        if each.score is not None:
            latest.setdefault(each.query_id, each.score)
    if latest:
        return fmean(latest.values())
    for message in reversed(said):
        text = message.translate(_APOSTROPHES).casefold().strip()
        if _begins_with(text, settings.displeased):
            return DISPLEASED
        if any(_has(text, phrase) for phrase in settings.pleased):
            return PLEASED
    return None


def _begins_with(text: str, phrases: Iterable[str]) -> bool:
    return any(re.match(rf"{re.escape(each.casefold())}(?!\w)", text) for each in phrases if each)


def _has(text: str, phrase: str) -> bool:
    return bool(phrase) and bool(re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text))


def _completion(feedback: Sequence[Feedback], queries: Sequence[QueryDetail]) -> float | None:
    stated = next((each.task for each in feedback if each.task), "")
    if stated:
        return 1.0 if stated == "done" else 0.0
    return next(
        (_COMPLETED[each.status] for each in reversed(queries) if each.status in _COMPLETED), None
    )
