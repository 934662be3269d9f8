"""What is kept of calls to models: replies by what was asked, and what they cost.

The tables themselves are the store's; here is only what is required of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from memctl.config import BudgetSettings
from memctl.errors import ModelUnavailable
from memctl.literals import Purpose
from memctl.records import Usage
from memctl.redaction import redact_secrets

Clock = Callable[[], datetime]
_MEDIA_TASKS: tuple[Purpose, ...] = ("image", "transcribe")
"""Tasks whose input is a picture or a recording, which secrets cannot be removed from."""
Keeping = Literal["all", "redacted", "nothing"]
"""Which replies are kept: all, all without what looks like a secret, or none."""
_MILLION = 1_000_000
_MINUTE = 60.0


class ReplyCache(Protocol):
    """Replies by key."""

    def lock_key(self, key: str, /) -> AbstractContextManager[object]:
        """Keep others from asking for the same key meanwhile."""
        ...

    def get(self, key: str, /) -> bytes | None:
        """Return the reply that was kept under a key."""
        ...

    def put(self, key: str, task: str, model: str, reply: bytes, now: datetime, /) -> None:
        """Keep a reply."""
        ...

    def write_together(self) -> AbstractContextManager[object]:
        """Keep what is kept inside in one step."""
        ...


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_without_secrets, value))
    return redact_secrets(value) if isinstance(value, str) else value


class UsageLog(Protocol):
    """What was used, by day."""

    def add(self, day: str, usage: Usage) -> None:
        """Add a call to a day."""
        ...

    def of_day(self, day: str) -> list[Usage]:
        """Return what was used on a day."""
        ...

    def of(self, document_id: str, /) -> UsageLog:
        """Return what keeps an account of one document as well, by its id."""
        ...


class CallUsage(Struct, frozen=True):
    """What one call used."""

    input_tokens: int = 0
    output_tokens: int = 0
    audio_seconds: float = 0.0
    """Length of a recording that was transcribed."""


class ModelCall(Struct):
    """A call that is being made; who makes it says what it used."""

    spent: CallUsage = CallUsage()


class BudgetExceeded(ModelUnavailable):
    """The day's budget is spent; a new day (UTC) brings a new one."""


class ModelAccount:
    """Keeps one knowledge base's replies and costs, and refuses what is beyond the budget.

    Args:
        replies: Where replies are kept.
        usage: Where usage is recorded.
        budget: Bounds and prices.
        clock: What tells the time.
        keeping: Which replies are kept; those of private text are not.
    """

    def __init__(
        self,
        replies: ReplyCache | None,
        usage: UsageLog,
        budget: BudgetSettings,
        clock: Clock,
        keeping: Keeping = "all",
    ) -> None:
        self._replies = replies
        self._keeping = keeping
        self._cache = None if keeping == "nothing" else replies
        self._usage = usage
        self._budget = budget
        self._clock = clock

    def of(self, document_id: str) -> ModelAccount:
        """Return this account for what is asked about one document, which has one of its own."""
        usage = self._usage.of(document_id) if document_id else self._usage
        return ModelAccount(self._replies, usage, self._budget, self._clock, self._keeping)

    def once(self, key: str, task: Purpose, model: str, ask: Callable[[], bytes]) -> bytes:
        """Return a reply that is kept, else what ``ask`` gives, which is kept then.

        Of several that ask the same at once, in this process or in others, one does and the rest
        wait for its reply.
        """
        known = self.kept_reply(key, task, model)
        if known is not None:
            return known
        with self.lock_key(key):
            known = self.kept_reply(key, task, model)
            if known is None:
                known = ask()
                self.keep(key, task, model, known)
        return known

    def lock_key(self, key: str) -> AbstractContextManager[object]:
        """Keep others from asking for the same key meanwhile."""
        return self._cache.lock_key(key) if self._cache else nullcontext()

    def kept_reply(self, key: str, task: Purpose, model: str) -> bytes | None:
        """Return the reply to what was asked before, which costs nothing."""
        reply = self._cache.get(key) if self._cache else None
        if reply is not None:
            self._add(Usage(task, model, cached=1))
        return reply

    def keep(self, key: str, task: Purpose, model: str, reply: bytes) -> None:
        """Keep a reply that turned out to be of use."""
        if self._cache is None:
            return
        if self._keeping == "redacted" and task in _MEDIA_TASKS:  # those replies are JSON
            reply = json.dumps(_without_secrets(json.loads(reply))).encode()
        self._cache.put(key, task, model, reply, self._clock())

    def write_together(self) -> AbstractContextManager[object]:
        """Record and keep what is inside in one step: for many small replies."""
        return self._replies.write_together() if self._replies else nullcontext()

    @contextmanager
    def calling(
        self,
        task: Purpose,
        model: str,
        *,
        is_no_call: Callable[[BaseException], bool] | None = None,
    ) -> Iterator[ModelCall]:
        """Record what is used by a call that is made inside, or that it came to nothing.

        Args:
            task: What is asked for.
            model: Who is asked.
            is_no_call: Says of an error that the same is only to be asked otherwise; that is not
                noted.

        Raises:
            BudgetExceeded: The day's budget is spent, so no call may be made.
        """
        self._require_budget()
        began, call = time.monotonic(), ModelCall()
        try:
            yield call
        except BaseException as error:
            if is_no_call is None or not is_no_call(error):
                seconds = time.monotonic() - began
                self._add(Usage(task, model, failed=1, seconds=seconds))
            raise
        self._note(task, model, call.spent, time.monotonic() - began)

    # --- inside ---

    def _require_budget(self) -> None:
        """Refuse a call when the day's budget is spent.

        Raises:
            BudgetExceeded: It is.
        """
        budget = self._budget
        if not budget.daily_tokens and not budget.daily_cost:
            return
        today = self._usage.of_day(self._day())
        tokens = sum(usage.input_tokens + usage.output_tokens for usage in today)
        cost = sum(usage.cost for usage in today)
        hint = "it goes on tomorrow (UTC); or raise it in [budget] of the config file"
        if budget.daily_tokens and tokens >= budget.daily_tokens:
            raise BudgetExceeded(f"today's budget of {budget.daily_tokens:,} tokens is spent", hint)
        if budget.daily_cost and cost >= budget.daily_cost:
            raise BudgetExceeded(f"today's budget of {budget.daily_cost:g} is spent", hint)

    def _note(self, task: Purpose, model: str, usage: CallUsage, seconds: float) -> None:
        """Record a call that was answered."""
        self._add(
            Usage(
                task,
                model,
                calls=1,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=call_cost(task, usage, self._budget),
                seconds=seconds,
            )
        )

    def _add(self, usage: Usage) -> None:
        self._usage.add(self._day(), usage)

    def _day(self) -> str:
        return self._clock().astimezone(UTC).date().isoformat()


def call_cost(task: Purpose, usage: CallUsage, budget: BudgetSettings) -> float:
    """Return what a call costs by the configured prices."""
    if task in ("embed", "rerank"):
        return usage.input_tokens * budget.embed_price / _MILLION
    chat = usage.input_tokens * budget.input_price + usage.output_tokens * budget.output_price
    return chat / _MILLION + usage.audio_seconds / _MINUTE * budget.transcribe_price
