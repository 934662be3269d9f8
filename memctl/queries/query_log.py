"""What one knowledge base notes of the questions it is asked.

Queries do not wait for it: what cannot be written at once is written with the next
question, or when the knowledge base is closed; what cannot be written at all is not.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memctl.errors import DamagedError, KnowledgeBaseUnavailable, LockedError, NotFoundError
from memctl.identity import DEFAULT_USER, conversations_of, readable_by
from memctl.records import Answer, Filters, Hit, QueryResult
from memctl.store.ledger.audit_repositories import AccessEntry, access_kind
from memctl.store.ledger.feedback_repositories import PromptUse
from memctl.store.ledger.log_repositories import QueryDetail, QueryEntry, QueryVector

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.literals import AccessKind, QueryKind, QueryStatus, Verdict
    from memctl.store.ledger.ledger import Ledger

LONGEST_TEXT = 1000
"""Characters of a question that are kept."""
MAX_IDS = 100
"""Hits of a question whose ids are kept."""

_WRITE_TIMEOUT = 0.001
"""Seconds to wait for another process that is writing to the ledger."""
_CLOSE_TIMEOUT = 0.1
_MAX_WAITING = 1000
_MAX_SCANNED = 2 * LONGEST_TEXT

_log = logging.getLogger(__name__)


def unknown_question(query_id: str) -> NotFoundError:
    """Return the error that a question is not in the query log; ``last`` is the latest."""
    if query_id == "last":
        return NotFoundError(
            "no question is in the query log yet", "ask one first: memctl query, or memctl context"
        )
    return NotFoundError(
        f"no question {query_id[:80]!r} in the query log",
        "memctl query -o json tells a question's query_id; last is the latest",
    )


_QUALITY_WEIGHTS = {"confidence": 0.4, "hits": 0.2, "score": 0.2, "relevance": 0.2}


def quality(detail: QueryDetail, hits: int, score: float | None) -> float:
    """Return how good what a question gave was, from 0 to 1.

    The weighted mean of what is known of: the confidence of the answer, how many of the hits that
    were asked for there are, how good it was judged to be, and the relevance of the best hit.
    """
    parts = {
        "confidence": detail.confidence,
        "hits": min(1.0, hits / detail.top_k) if detail.top_k else None,
        "score": score,
        "relevance": detail.relevance,
    }
    known = {name: value for name, value in parts.items() if value is not None}
    total = sum(_QUALITY_WEIGHTS[name] for name in known)
    is_answered = sum(_QUALITY_WEIGHTS[name] * value for name, value in known.items())
    return is_answered / total if total else 0.0


class LoggedQuestion(Struct, frozen=True):
    """One question with what came of it, as every knowledge base that was asked notes it."""

    at: datetime
    question: str
    """Without text, only the names are noted of what it was limited to."""
    mode: str
    kind: QueryKind
    filters: Filters
    found: bool
    seconds: float
    detail: QueryDetail
    """Without an id; it cites memories of all knowledge bases."""
    vector: tuple[str, bytes] | None = None
    """The embedder and the vector of the question, as float16; None where it is not kept."""
    id: str = field(default_factory=lambda: f"q_{secrets.token_hex(6)}")


def _without_secrets(text: str) -> str:
    from memctl.redaction import redact_query

    return redact_query(text)


def shown_text(question: str, *, redact: bool) -> str:
    """Return the text of a question, no longer than what is kept, without secrets."""
    text = question[:_MAX_SCANNED]
    return (_without_secrets(text) if redact else text)[:LONGEST_TEXT]


class _PendingEntry(Struct, frozen=True):
    """What is to be written of one question."""

    at: datetime
    shown: tuple[AccessEntry, ...]
    is_private: bool
    entry: QueryEntry | None = None
    detail: QueryDetail | None = None
    vector: QueryVector | None = None


class QueryLog:
    """The query log of one knowledge base; usable from several threads.

    Args:
        ledger: Where it stands.
        config: What is noted, and who asks.
        name: The knowledge base's.
    """

    def __init__(self, ledger: Ledger, config: Config, name: str) -> None:
        self._namespaces = config.namespaces
        self._readable = (
            readable_by(config.namespaces, config.user, config.agent) if config.user else ()
        )
        self._ledger = ledger
        self._settings = config.query_log
        self._trail = config.access_log
        self._user, self._agent = config.user or "", config.agent or ""
        self._name = name
        self._waiting: list[_PendingEntry] = []
        self._mutex = threading.Lock()
        self._has_logged_failure = False

    def note(
        self,
        question: LoggedQuestion,
        shown: Sequence[tuple[str, float]],
        *,
        is_private: bool = False,
    ) -> bool:
        """Record a question, and which memories it showed with which score.

        Args:
            question: The question.
            shown: Ids of memories, each with its score.
            is_private: Whether it is about what is, or may be, private.

        Returns:
            Whether it stands in the log, or will.
        """
        enabled = self._settings.enabled
        ids = tuple(memory_id for memory_id, _ in shown)
        accesses = self._accesses(ids, question.kind, question.at, question.id)
        noted = _PendingEntry(question.at, accesses, is_private)
        if enabled:
            noted = replace(
                noted,
                entry=self._entry(question, shown),
                detail=_detail(question, ids),
                vector=QueryVector(question.id, *question.vector) if question.vector else None,
            )
        with self._mutex:
            self._waiting.append(noted)
            return self._write(_WRITE_TIMEOUT) and enabled

    def note_shown(self, memory_id: str, at: datetime, *, is_private: bool) -> None:
        """Record that a memory was read by its id."""
        with self._mutex:
            self._waiting.append(
                _PendingEntry(at, self._accesses([memory_id], "show", at), is_private)
            )
            self._write(_WRITE_TIMEOUT)

    def _accesses(
        self, ids: Sequence[str], kind: AccessKind, at: datetime, query_id: str = ""
    ) -> tuple[AccessEntry, ...]:
        kind = access_kind(kind)
        return tuple(AccessEntry(at, id_, query_id, kind, self._user, self._agent) for id_ in ids)

    def judge(self, query_id: str, verdict: Verdict | None, score: float | None = None) -> bool:
        """Record how good what a question gave was; say whether there is such a question.

        Args:
            query_id: Which.
            verdict: In a word; None for neither good nor bad, which has a score.
            score: From 0 to 1; by default 1 for ``good`` and 0 for ``bad``.

        Raises:
            KnowledgeBaseUnavailable: This process may only read, or the disk is full.
        """
        self.flush()
        given = (1.0 if verdict == "good" else 0.0) if score is None else score
        return self._judge(query_id, verdict, given)

    def take_back(self, query_id: str) -> bool:
        """Take back the judgement of a question; return whether there is such a question."""
        self.flush()
        return self._judge(query_id, None, None)

    def _judge(self, query_id: str, verdict: Verdict | None, score: float | None) -> bool:
        known = self._ledger.queries.find_by_id(query_id)
        if known is None or not self.is_open(known):
            return False
        if not self._ledger.queries.judge(query_id, verdict):
            return False
        details = self._ledger.query_details
        if detail := details.find(query_id):
            is_answered = quality(detail, known.hits, score)
            details.save(replace(detail, score=score, quality=is_answered))
        return True

    def is_open(self, entry: QueryEntry) -> bool:
        """Return whether a user may see a logged question, that is, asked it.

        One that is noted without a user counts by the namespaces that it was limited to.
        """
        if not self._user:
            return True
        detail = self._ledger.query_details.find(entry.query_id)
        if detail is not None and detail.user_id is not None:
            return detail.user_id == self._user
        namespaces = entry.filters.get("namespaces")
        return bool(namespaces) and set(namespaces or ()) <= set(self._readable)

    def flush(self) -> None:
        """Write what waits."""
        with self._mutex:
            if self._waiting and self._write(_CLOSE_TIMEOUT) and self._waiting:
                _log.debug("%s is being written to: its query log waits", self._name)

    def _entry(self, question: LoggedQuestion, shown: Sequence[tuple[str, float]]) -> QueryEntry:
        scores = [score for _, score in shown]
        return QueryEntry(
            at=question.at,
            question=question.question,
            mode=question.mode,
            hits=len(shown),
            seconds=question.seconds,
            query_id=question.id,
            kind=question.kind,
            found=question.found,
            mean_score=sum(scores) / len(scores) if scores else None,
            filters=_limits(
                question.filters, keep_values=bool(question.question), redact=self._settings.redact
            ),
            hit_ids=tuple(memory_id for memory_id, _ in shown[:MAX_IDS]),
        )

    def _write_one(self, entry: _PendingEntry) -> None:
        ledger = self._ledger
        if entry.entry is not None:
            ledger.queries.add(entry.entry, self._settings.keep)
        if entry.detail is not None:
            ledger.query_details.save(entry.detail)
            if entry.detail.prompt:
                task, _, version = entry.detail.prompt.partition("/")
                ledger.prompt_uses.note(self._use(entry.detail, task, version, entry.at))
        if entry.vector is not None:
            ledger.query_vectors.save(entry.vector)
        ledger.accesses.add([each.memory_id for each in entry.shown], entry.at)
        if self._trail.enabled and (self._trail.private or not entry.is_private):
            ledger.access_trail.add(entry.shown, self._trail.keep)

    def _use(self, detail: QueryDetail, task: str, version: str, at: datetime) -> PromptUse:
        return PromptUse(
            task,
            version,
            subject=detail.session_id or detail.query_id,
            namespace=conversations_of(self._namespaces, detail.user_id or DEFAULT_USER),
            at=at,
            session_id=detail.session_id,
        )

    def _write(self, wait: float) -> bool:
        """Write what waits; say whether it is written, or waits for the next time."""
        try:
            with self._ledger.transaction(wait, durable=False):
                for noted in self._waiting:
                    self._write_one(noted)
        except LockedError:  # another process is writing, for a moment
            del self._waiting[:-_MAX_WAITING]
            return True
        except (KnowledgeBaseUnavailable, DamagedError) as error:
            self._waiting.clear()
            if not self._has_logged_failure:
                _log.debug("questions are not logged in %s: %s", self._name, error)
            self._has_logged_failure = True
            return False
        self._waiting.clear()
        return True


def _detail(question: LoggedQuestion, shown: tuple[str, ...]) -> QueryDetail:
    return replace(
        question.detail,
        query_id=question.id,
        quality=quality(question.detail, len(shown), None),
        cited=tuple(id_ for id_ in shown[:MAX_IDS] if id_ in question.detail.cited),
    )


def _limits(filters: Filters, *, keep_values: bool, redact: bool) -> dict[str, Any]:
    """Return what a question was limited to: by name, with the values where they may be kept."""
    given = {name: value for name, value in asdict(filters).items() if value and name != "agent"}
    if not keep_values:
        return dict.fromkeys(given, True)
    return {name: _plain(value, redact=redact) for name, value in given.items()}


def _plain(value: object, *, redact: bool) -> Any:
    if isinstance(value, tuple):
        return [_plain(item, redact=redact) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)[:LONGEST_TEXT]
    return _without_secrets(text) if redact else text


def details_of_one(
    kb: str, hits: Sequence[Hit], detail: QueryDetail, answer: Answer | None
) -> QueryDetail:
    """Return how a question was asked and what one of the knowledge bases gave, which has hits."""
    if detail.kbs < 2 or detail.status == "failed":
        return detail
    is_cited = answer is not None and any(each.kb == kb for each in answer.citations)
    if not hits and not is_cited:
        return replace(detail, status="nothing", confidence=None, relevance=None)
    return replace(detail, relevance=max((hit.relevance for hit in hits), default=None))


def result_details(
    search: QueryDetail,
    result: QueryResult,
    threshold: float | None,
    failures: Sequence[str],
    *,
    is_answered: bool,
) -> QueryDetail:
    """Return how a question was asked and answered.

    Args:
        search: How it was searched for.
        result: What it was given.
        threshold: The least relevance that was asked for, if any.
        failures: The classes of what failed meanwhile.
        is_answered: Whether that answers it.
    """
    answer = result.answer
    return replace(
        search,
        error=joined_classes(failures),
        status=_status(answer, is_answered=is_answered),
        threshold=threshold or 0.0,
        confidence=answer.confidence if answer else None,
        grounding=_grounding(answer),
        prompt=_prompt_of(answer),
        cited=tuple(each.memory_id for each in answer.citations) if answer else (),
        tokens=_tokens_of(result),
    )


def joined_classes(classes: Sequence[str]) -> str:
    """Return the names of classes of errors, each once, as the log has them."""
    return ", ".join(dict.fromkeys(classes))


def _status(answer: Answer | None, *, is_answered: bool) -> QueryStatus:
    if is_answered:
        return "answered"
    return "unsure" if answer is not None and answer.unsure else "nothing"


def _grounding(answer: Answer | None) -> float | None:
    """Return the share of an answer's sentences that are supported; the built-in way quotes."""
    if answer is None or not answer.found:
        return None
    if not answer.sentences:
        return 1.0
    return sum(not each.unsupported for each in answer.sentences) / len(answer.sentences)


def _tokens_of(result: QueryResult) -> int:
    """Return about how many tokens the hits and the answer have."""
    from memctl.models.protocols import estimate_tokens

    texts = [hit.text for hit in result.hits]
    return estimate_tokens("\n".join([*texts, result.answer.text if result.answer else ""]))


def _prompt_of(answer: Answer | None) -> str:
    """Return the version of the prompt by which a model answered, such as ``answer/1``."""
    if answer is None or not answer.method.startswith("model/"):
        return ""
    return "/".join(answer.method.rsplit("/", 2)[1:])
