"""What other conversations of a user say of a message, and the messages a model is prepared with.

Knows how a message is searched for only through the queries it is given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import MemctlError
from memctl.language.sentence_splitting import QUESTION_MARKS, split_sentences
from memctl.literals import RESTATING_TYPES
from memctl.models.protocols import estimate_tokens
from memctl.patterns import lazy_regex
from memctl.records import Filters, Hit
from memctl.search.answering.memory_need import (
    is_only_reference,
    refers_back,
    refers_explicitly,
    without_reference,
)
from memctl.sessions.conversations import is_worth_archiving
from memctl.store.ledger.session_repositories import Session, Turn
from memctl.understanding.triggers import plain_words

if TYPE_CHECKING:
    from memctl.config import AutoContextSettings
    from memctl.queries import QueryService
    from memctl.sessions.conversations import Conversations

HEADING = "## Relevant past conversations"
SUMMARY = "Current conversation summary:"
_SEARCHED, _SHOWN = 10, 3
_EXPLICIT_SHARE = 0.8
"""Of the least relevance, where a message asks for what was said before: more of what is there is
then found, and hardly more of what is about something else."""
_LAST_TURNS = 6
_SUMMARY_CHARS = 1_200
_LONGEST_REPLY = 600
_ROLES: Mapping[str, str] = {
    "user": "user", "human": "user", "agent": "assistant", "assistant": "assistant",
    "system": "system", "tool": "system",
}  # fmt: skip
_NUMBER = lazy_regex(r"\w*\d\w*")
_SUMMARIES = (*RESTATING_TYPES, "summary")
_log = logging.getLogger(__name__)


class RecalledSession(Struct, frozen=True):
    """What another conversation says of a message."""

    session_id: str
    started_at: datetime
    passages: tuple[str, ...]
    relevance: float
    """That of the best of them."""
    memory_ids: tuple[str, ...] = ()


class Recall(Struct, frozen=True):
    """What other conversations say of a message, ready to stand before it."""

    session_id: str
    message: str
    text: str
    """"" for nothing."""
    tokens: int
    why: str
    """What decided."""
    conversations: tuple[RecalledSession, ...] = ()


class ConversationRecall(Struct, frozen=True):
    """Finds what other conversations say.

    Args:
        conversations: Those of the knowledge base.
        queries: Searches it.
        settings: When and how much.
        recent: How many of the last messages a prompt has at least.
        most_tokens: How many tokens of messages that no summary stands for a prompt has at most.
    """

    conversations: Conversations
    queries: Callable[[], QueryService]
    settings: AutoContextSettings
    recent: int
    most_tokens: int

    def recall(self, session: Session, message: str) -> Recall:
        """Return what other conversations of the same user say of a message.

        Nothing where the message does not refer back, where nothing is relevant enough, and where
        the search fails.
        """
        settings = self.settings
        if not settings.enabled or settings.mode == "off" or not settings.cross_session_search:
            return _empty_recall(session, message, "auto_context is off")
        referring = refers_back(message, settings)
        if settings.mode == "selective" and not referring:
            return _empty_recall(session, message, "does not refer to what was before")
        why = f"refers to what was before: {referring!r}" if referring else "auto_context is always"
        try:
            about = without_reference(message, settings)
            found = self._find(session, about, self._least_relevance(message))
        except MemctlError as error:
            _log.warning("nothing of other conversations: %s", error.message)
            return _empty_recall(session, message, error.message)
        if not found and referring and is_only_reference(message, settings):
            found = self._latest(session)
        if not found:
            return _empty_recall(session, message, f"{why}; nothing relevant enough is known")
        text = _block(found, settings.max_tokens)
        if not text:
            return _empty_recall(session, message, f"{why}; what is known doesn't fit")
        return Recall(session.session_id, message, text, estimate_tokens(text), why, tuple(found))

    def prompt(self, session: Session, message: str, system: str = "") -> list[dict[str, str]]:
        """Return the messages that prepare a model for a new message of the user."""
        messages = [{"role": "system", "content": system}] if system.strip() else []
        if session.summary.strip():
            messages.append({"role": "system", "content": f"{SUMMARY}\n{session.summary}"})
        if recalled := self.recall(session, message).text:
            messages.append({"role": "system", "content": recalled})
        said = map(_as_message, self._last_turns(session))
        return [*messages, *said, {"role": "user", "content": message}]

    # --- inside ---

    def _last_turns(self, session: Session) -> Sequence[Turn]:
        """Return the messages that no summary stands for, as far as they fit, or the last ones."""
        turns = self.conversations.window(session)
        if len(turns) < self.recent:
            return self.conversations.turns(session, last=self.recent)
        tokens, first = 0, len(turns)
        while first:
            tokens += estimate_tokens(turns[first - 1].content)
            if tokens > self.most_tokens and len(turns) - first >= self.recent:
                break
            first -= 1
        if not is_worth_archiving(turns[:first], self.most_tokens, self.recent):
            return turns  # no summary is made of the others yet
        return turns[first:]

    def _least_relevance(self, message: str) -> float:
        """Return how relevant a passage must be; who says that there is one needs less proof."""
        settings = self.settings
        is_explicit = refers_explicitly(message, settings)
        return settings.relevance_threshold * (_EXPLICIT_SHARE if is_explicit else 1.0)

    def _find(self, session: Session, message: str, threshold: float) -> list[RecalledSession]:
        result = self.queries().query(
            message,
            filters=Filters(
                namespaces=(session.namespace,), session=session.session_id, other_sessions=True
            ),
            limit=_SEARCHED,
            threshold=threshold,
            answer=False,
            log=False,
        )
        best = _without_repetitions(sorted(result.hits, key=lambda hit: -hit.relevance))[:_SHOWN]
        order = {hit.session_id or hit.source: place for place, hit in reversed([*enumerate(best)])}
        best.sort(key=lambda hit: (order[hit.session_id or hit.source], hit.turn or 0))
        grouped: dict[str, list[Hit]] = {}
        for hit in best:
            grouped.setdefault(hit.session_id or hit.source, []).append(hit)
        return [
            self._recall_session(session.namespace, name, hits) for name, hits in grouped.items()
        ]

    def _recall_session(self, namespace: str, name: str, hits: Sequence[Hit]) -> RecalledSession:
        known = self.conversations.ledger.sessions.find(namespace, name)
        return RecalledSession(
            name,
            known.started_at if known else min(hit.created_at for hit in hits),
            _without_contained(self._passage(namespace, hit) for hit in hits),
            max(hit.relevance for hit in hits),
            tuple(hit.memory_id for hit in hits),
        )

    def _passage(self, namespace: str, hit: Hit) -> str:
        """Return the text of a hit, with who says it.

        A question has the reply to it behind it, a number or a date the other one that its speaker
        gives next: "sorry, typo: it's 0151 2345679".
        """
        said = hit.text.strip()
        if hit.type != "turn" or hit.session_id is None or hit.turn is None:
            return said
        turns = self.conversations.ledger.turns
        turn = turns.find(namespace, hit.session_id, hit.turn)
        if turn is None:
            return said
        said = f"{turn.sender}: {said}"
        reply = turns.find(namespace, hit.session_id, hit.turn + 1)
        if said.endswith(QUESTION_MARKS) and reply is not None and reply.sender != turn.sender:
            return f"{said}\n{reply.sender}: {_beginning(reply.content)}"
        numbers = set(_NUMBER.findall(turn.content))
        following = (turns.find(namespace, hit.session_id, hit.turn + step) for step in (1, 2))
        own = next((each for each in following if each and each.sender == turn.sender), None)
        if numbers and own is not None and not numbers.issuperset(_NUMBER.findall(own.content)):
            return f"{said}\n{own.sender}: {_beginning(own.content)}"
        return said

    def _latest(self, session: Session) -> list[RecalledSession]:
        """Return the conversation before, for a message that says nothing but to go back to it."""
        sessions = self.conversations.ledger.sessions
        for other in sessions.search(namespaces=(session.namespace,), limit=2):
            if other.session_id != session.session_id and other.message_count:
                return [self._summarize_session(other)]
        return []

    def _summarize_session(self, session: Session) -> RecalledSession:
        summary = session.summary.strip()
        if summary:
            said: tuple[str, ...] = (summary[:_SUMMARY_CHARS],)
        else:
            turns = self.conversations.turns(session, last=_LAST_TURNS)
            said = tuple(f"{turn.sender}: {turn.content}" for turn in turns if turn.content)
        return RecalledSession(session.session_id, session.started_at, said, 1.0)


def _without_contained(passages: Iterable[str]) -> tuple[str, ...]:
    """Leave out passages that an earlier one contains, such as a reply with its question."""
    kept: list[str] = []
    for passage in passages:
        if not any(passage in earlier for earlier in kept):
            kept.append(passage)
    return tuple(kept)


def _beginning(text: str) -> str:
    """Return a reply, or the sentences that a long one begins with."""
    text = text.strip()
    if len(text) <= _LONGEST_REPLY:
        return text
    ends = [end for _, end in split_sentences(text) if end <= _LONGEST_REPLY]
    return text[: ends[-1]] if ends else f"{text[:_LONGEST_REPLY].rsplit(maxsplit=1)[0]} …"


def _without_repetitions(hits: Sequence[Hit]) -> list[Hit]:
    """Leave out hits that repeat better ones, and summaries where turns are found."""
    quoted = {hit.session_id for hit in hits if hit.type not in _SUMMARIES}
    kept: list[Hit] = []
    said = ""
    for hit in hits:
        words = f" {plain_words(hit.text)} "
        if words in said or (hit.type in _SUMMARIES and hit.session_id in quoted):
            continue
        kept.append(hit)
        said += words
    return kept


def _empty_recall(session: Session, message: str, reason: str) -> Recall:
    return Recall(session.session_id, message, "", 0, reason)


def _block(sessions: Sequence[RecalledSession], budget: int) -> str:
    """Return the passages under the date of their conversation, as many as fit."""
    text = ""
    for each in sessions:
        heading = f"### {each.started_at:%Y-%m-%d}, session {each.session_id}"
        for passage in each.passages:
            longer = (
                f"{text}\n\n{passage}" if heading in text else f"{text}\n\n{heading}\n{passage}"
            )
            if estimate_tokens(f"{HEADING}{longer}") <= budget:
                text = longer
            elif not text and (cut := _first_sentences(passage, heading, budget)):
                text = f"\n\n{heading}\n{cut}"
    return f"{HEADING}{text}" if text else ""


def _first_sentences(passage: str, heading: str, budget: int) -> str:
    fitting = ""
    for _, end in split_sentences(passage):
        if estimate_tokens(f"{HEADING}\n\n{heading}\n{passage[:end]}") > budget:
            break
        fitting = passage[:end]
    return fitting


def _as_message(turn: Turn) -> dict[str, str]:
    sender = turn.sender.lower()
    content = turn.content or f"[{turn.message_type}: {turn.media}]"
    if sender not in _ROLES:
        return {"role": "user", "content": f"{turn.sender}: {content}"}
    prefix = "tool: " if sender == "tool" else ""
    return {"role": _ROLES[sender], "content": f"{prefix}{content}"}
