"""What one knowledge base notes of the questions it is asked.

Whoever asks does not wait for it: what cannot be written at once is written with the next
question, or when the knowledge base is closed; what cannot be written at all is not.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.errors import DamagedError, KnowledgeBaseUnavailable, LockedError
from memctl.records import Filters
from memctl.redaction import redact_query
from memctl.store.ledger.log_repositories import QueryEntry

if TYPE_CHECKING:
    from memctl.config import QueryLogSettings
    from memctl.literals import QueryKind, Verdict
    from memctl.store.ledger.ledger import Ledger

LONGEST_TEXT = 1000
"""Characters of a question that are kept."""
MOST_IDS = 100
"""Hits of a question whose ids are kept."""

_PATIENCE = 0.001
"""Seconds to wait for another process that is writing to the ledger."""
_LAST_PATIENCE = 0.1
_MOST_WAITING = 1000
_LOOKED_AT = 2 * LONGEST_TEXT

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """One question with what came of it, as every knowledge base that was asked notes it."""

    at: datetime
    question: str
    mode: str
    kind: QueryKind
    filters: Filters
    found: bool
    seconds: float
    id: str = dataclasses.field(default_factory=lambda: f"q_{secrets.token_hex(6)}")


def without_text(asked: LoggedQuestion) -> LoggedQuestion:
    """Return a question without its text; of what it was limited to only the names are left."""
    return dataclasses.replace(asked, question="")


def shown_text(asked: LoggedQuestion, *, redact: bool) -> LoggedQuestion:
    """Return a question whose text is no longer than what is kept, without secrets."""
    text = asked.question[:_LOOKED_AT]
    return dataclasses.replace(
        asked, question=(redact_query(text) if redact else text)[:LONGEST_TEXT]
    )


class QueryLog:
    """The query log of one knowledge base; usable from several threads.

    Args:
        ledger: Where it stands.
        settings: What is noted.
        name: The knowledge base's.
    """

    def __init__(self, ledger: Ledger, settings: QueryLogSettings, name: str) -> None:
        self._ledger = ledger
        self._settings = settings
        self._name = name
        self._waiting: list[tuple[QueryEntry | None, tuple[str, ...], datetime]] = []
        self._mutex = threading.Lock()
        self._told = False

    def note(self, asked: LoggedQuestion, shown: Sequence[tuple[str, float]]) -> bool:
        """Note a question, and which memories it showed with which score.

        Returns:
            Whether it stands in the log, or will.
        """
        enabled = self._settings.enabled
        ids = tuple(memory_id for memory_id, _ in shown)
        entry = self._entry(asked, shown) if enabled else None
        with self._mutex:
            self._waiting.append((entry, ids, asked.at))
            return self._write(_PATIENCE) and enabled

    def judge(self, query_id: str, verdict: Verdict) -> bool:
        """Note how good what a question gave was; say whether there is such a question.

        Raises:
            KnowledgeBaseUnavailable: This process may only read, or the disk is full.
        """
        self.flush()
        return self._ledger.queries.judge(query_id, verdict)

    def flush(self) -> None:
        """Write what waits."""
        with self._mutex:
            if self._waiting and self._write(_LAST_PATIENCE) and self._waiting:
                _log.debug("%s is being written to: its query log waits", self._name)

    def _entry(self, asked: LoggedQuestion, shown: Sequence[tuple[str, float]]) -> QueryEntry:
        scores = [score for _, score in shown]
        return QueryEntry(
            at=asked.at,
            question=asked.question,
            mode=asked.mode,
            hits=len(shown),
            seconds=asked.seconds,
            query_id=asked.id,
            kind=asked.kind,
            found=asked.found,
            mean_score=sum(scores) / len(scores) if scores else None,
            filters=_limits(
                asked.filters, keep_values=bool(asked.question), redact=self._settings.redact
            ),
            hit_ids=tuple(memory_id for memory_id, _ in shown[:MOST_IDS]),
        )

    def _write(self, wait: float) -> bool:
        """Write what waits; say whether it is written, or waits for the next time."""
        try:
            with self._ledger.transaction(wait, durable=False):
                for entry, shown, at in self._waiting:
                    if entry is not None:
                        self._ledger.queries.add(entry, self._settings.keep)
                    self._ledger.accesses.add(shown, at)
        except LockedError:  # somebody else is writing, for a moment
            del self._waiting[:-_MOST_WAITING]
            return True
        except (KnowledgeBaseUnavailable, DamagedError) as error:
            self._waiting.clear()
            if not self._told:
                _log.debug("questions are not logged in %s: %s", self._name, error)
            self._told = True
            return False
        self._waiting.clear()
        return True


def _limits(filters: Filters, *, keep_values: bool, redact: bool) -> dict[str, Any]:
    """Return what a question was limited to: by name, with the values where they may be kept."""
    given = {
        item.name: getattr(filters, item.name)
        for item in dataclasses.fields(filters)
        if getattr(filters, item.name)
    }
    if not keep_values:
        return dict.fromkeys(given, True)
    return {name: _plain(value, redact=redact) for name, value in given.items()}


def _plain(value: object, *, redact: bool) -> Any:
    if isinstance(value, tuple):
        return [_plain(item, redact=redact) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)[:LONGEST_TEXT]
    return redact_query(text) if redact else text
