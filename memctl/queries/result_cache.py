"""Results of questions, kept until the next commit and given again while they hold."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import MsgspecError, Struct, msgpack
from msgspec.structs import replace

from memctl.literals import Mode
from memctl.queries.query_log import shown_text
from memctl.queries.search_context import QueryOptions, SearchContext
from memctl.records import QueryResult, Question
from memctl.store.ledger.log_repositories import QueryDetail

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

_MAX_RESULTS = 50
"""Results that are kept, the latest ones."""
_ANSWERING_PACKAGES = ("memctl.queries", "memctl.search", "memctl.understanding", "memctl.language")
"""Whose code decides what a question is given."""


class CachedResult(Struct, frozen=True):
    """What a question was given, with what its log says."""

    at: datetime
    until: datetime | None
    """When something of what was searched ends; None where nothing does."""
    result: QueryResult
    """Without the question itself."""
    how: QueryDetail
    found: bool

    def holds_at(self, now: datetime, longest: timedelta) -> bool:
        """Return whether it is no older than it may be, and what it is from has not ended."""
        is_fresh = self.at <= now < self.at + longest
        return is_fresh and (self.until is None or now < self.until)


class ResultCache(Struct, frozen=True, dict=True):
    """The results of one mode of search, on disk with what else is derived from the tables."""

    search_context: SearchContext
    mode: Mode

    def find(self, question: Question, options: QueryOptions) -> CachedResult | None:
        """Return what the same question was given a short while ago; None where it was not."""
        known = self._results(options)
        return known.get(self._key_of(question, options)) if known else None

    def save(
        self,
        question: Question,
        options: QueryOptions,
        began: datetime,
        result: QueryResult,
        detail: QueryDetail,
        *,
        is_answered: bool,
    ) -> None:
        """Keep what a question was given, on disk until the next commit, with a few others.

        The question itself is not kept, so neither are rounds of searches, which repeat its words,
        nor what is given to a question with a secret in it.
        """
        has_secret = shown_text(question.text, redact=True) != question.text
        if has_secret or result.rounds or not self._may_cache(options):
            return
        snapshot, name = self._place
        if snapshot.derived is None:
            return
        known = self._results(options)
        known[self._key_of(question, options)] = CachedResult(
            began, _first_end(snapshot, began), replace(result, question=""), detail, is_answered
        )
        latest = sorted(known.items(), key=lambda item: item[1].at)[-_MAX_RESULTS:]
        snapshot.derived.write("results", name, msgpack.encode(dict(latest)))

    def _results(self, options: QueryOptions) -> dict[str, CachedResult]:
        """Return what may be given again, by question."""
        if not self._may_cache(options):
            return {}
        snapshot, name = self._place
        content = snapshot.derived.read("results", name) if snapshot.derived else None
        if not content:
            return {}
        try:
            kept = msgpack.decode(content, type=dict[str, CachedResult])
        except MsgspecError:  # other code wrote it
            return {}
        longest, now = timedelta(minutes=self.search_context.config.query.cache_minutes), self._now
        return {key: each for key, each in kept.items() if each.holds_at(now, longest)}

    def _may_cache(self, options: QueryOptions) -> bool:
        """Return whether what a question is given is kept: never if it is about what is private.

        Nor if several knowledge bases are asked: what one of them forgets would stay in another.
        """
        context = self.search_context
        is_plain = options.log and not options.explain and options.on_token is None
        is_open = not context.private and len(context.targets) == 1
        return is_plain and is_open and bool(context.config.query.cache_minutes)

    @property
    def _now(self) -> datetime:
        return self.search_context.clock()

    @cached_property
    def _place(self) -> tuple[Snapshot, str]:
        """The tables that results are kept of, and by what name."""
        from memctl.store.file_caches import code_digest

        (snapshot,) = self.search_context.snapshots().values()
        return snapshot, json.dumps([code_digest(*_ANSWERING_PACKAGES), snapshot.state])

    def _key_of(self, question: Question, options: QueryOptions) -> str:
        """Tell a question from any other one, and from itself where something is set otherwise."""
        context = self.search_context
        settings = context.targets[0].settings
        asked = (self.mode, self._now.date(), question.text, options, context.config, settings)
        return hashlib.sha256(repr(asked).encode()).hexdigest()


def _first_end(snapshot: Snapshot, now: datetime) -> datetime | None:
    """Return when the next of all memories expires or ends; None if none does."""
    import pyarrow.compute as pc

    from memctl.store.tables.filter_expressions import col

    ends = [
        pc.min(snapshot.scan("memories", col(name) > now, [name])[name]).as_py()
        for name in ("expires_at", "valid_to")
    ]
    return min((end for end in ends if end is not None), default=None)
