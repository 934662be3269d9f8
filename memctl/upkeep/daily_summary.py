"""One page for each day: what came in, was decided, contradicts and stayed without an answer.

Every entry links to the page that it is about, so that the day stands among its backlinks.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from memctl.errors import UsageError
from memctl.identity import DEFAULT_NAMESPACE
from memctl.ids import document_id
from memctl.literals import CONTRADICTS, DAILY_SUMMARY
from memctl.records import Filters
from memctl.store.ledger.decision_repositories import RowChange
from memctl.store.tables.filter_expressions import Expr, col, document_filter, memory_filter
from memctl.upkeep.upkeep_job import Outcome, UpkeepContext

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.tables.snapshot import Snapshot

_MOST = 50
"""Entries of one section; of more, the page says how many there are."""
_LONGEST = 200
_LONGEST_GAP = timedelta(days=31)
"""So far back pages are written that were missed."""


@dataclass(frozen=True, slots=True)
class DailySummary:
    """What one day brought."""

    kb: str
    day: date
    text: str
    """The page as Markdown."""
    documents: int
    decisions: int
    contradictions: int
    insights: int
    unanswered: int
    document_id: str | None = None
    """The document that the page was written to; None if it was not."""

    @property
    def is_empty(self) -> bool:
        """Whether the day brought nothing."""
        found = (self.documents, self.decisions, self.contradictions, self.insights)
        return not any((*found, self.unanswered))


def parse_day(text: str | None, now: datetime) -> date:
    """Return a day; None is today, in local time.

    Raises:
        UsageError: It is none.
    """
    today = now.astimezone().date()
    if text is None or text == "today":
        return today
    if text == "yesterday":
        return today - timedelta(days=1)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text[:40]!r} is no day", "such as 2026-05-12, today or yesterday"
        ) from None


def summarise_day(base: KnowledgeBase, day: date, *, write: bool = False) -> DailySummary:
    """Return the page of a day, in local time; with ``write`` it becomes a document.

    Private namespaces are left out.  Written again, it supersedes the page of before.

    Raises:
        LockedError: Another process kept writing.
    """
    base.resources.query_log.flush()
    first, after = (_midnight(day + timedelta(days=days)) for days in (0, 1))
    snapshot = base.resources.snapshot()
    sections = _Sections(snapshot, base, first, after)
    documents = sections.documents()
    decisions, contradictions = sections.decisions(), sections.contradictions()
    insights, unanswered = sections.insights(), sections.unanswered()
    page = "\n\n".join(
        [
            f"# {day.isoformat()}",
            *_section("New documents", documents),
            *_section("Decisions", decisions),
            *_section("Contradictions", contradictions),
            *_section("Insights", insights),
            *_section("Questions without an answer", unanswered),
        ]
    )
    made = DailySummary(
        kb=base.name,
        day=day,
        text=f"{page}\n",
        documents=len(documents),
        decisions=len(decisions),
        contradictions=len(contradictions),
        insights=len(insights),
        unanswered=len(unanswered),
    )
    return _write(base, made) if write and not made.is_empty else made


def write_missing_pages(context: UpkeepContext) -> Outcome:
    """Write the page of the day that is ending, and those of days since the last page.

    Where the time of day was missed, the day that is ending is yesterday.  An earlier page that was
    taken back or deleted is not written again.
    """
    latest = (context.now - timedelta(hours=12)).astimezone().date()
    first = min(latest, max(_after_last_page(context.base, latest), latest - _LONGEST_GAP))
    days = [first + timedelta(days=number) for number in range((latest - first).days + 1)]
    base, write = context.base, not context.options.dry_run
    deleted = base.store.ledger.deletions.ids()
    is_page = col("source").like_glob(f"{DAILY_SUMMARY} *")
    known = set(base.resources.snapshot().scan("documents", is_page, ["id"])["id"].to_pylist())
    made = []
    for day in days:
        if day < latest and _page_id(day) in deleted:
            continue
        made.append(summarise_day(base, day, write=write))
        page = made[-1].document_id
        if context.job is not None and page is not None and page not in known:
            base.store.ledger.changes.add(
                context.job, [RowChange("documents", page, {}, {}, is_added=True)]
            )
    written = sum(each.document_id is not None for each in made)
    return Outcome({"documents": sum(each.documents for each in made), "written": written})


def _page_id(day: date) -> str:
    """Return the id of the first page of a day that was written by itself."""
    return document_id(DEFAULT_NAMESPACE, "", external_id=f"{DAILY_SUMMARY} {day.isoformat()}")


def _after_last_page(base: KnowledgeBase, latest: date) -> date:
    """Return the day after the last one that has a page; without pages, the latest."""
    where = document_filter(Filters()) & col("source").like_glob(f"{DAILY_SUMMARY} *")
    sources = base.resources.snapshot().scan("documents", where, ["source"])["source"].to_pylist()
    days = [date.fromisoformat(each.removeprefix(f"{DAILY_SUMMARY} ")) for each in sources]
    earlier = [day for day in days if day < latest]
    return max(earlier) + timedelta(days=1) if earlier else latest


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone(UTC)


def _write(base: KnowledgeBase, made: DailySummary) -> DailySummary:
    name = f"{DAILY_SUMMARY} {made.day.isoformat()}"
    record = {"id": name, "text": made.text, "title": made.day.isoformat(), "source": name}
    report = base.documents.ingest(jsonl=io.BytesIO(json.dumps(record).encode()))
    found = [each.document_id for each in report.outcomes if each.document_id is not None]
    return replace(made, document_id=found[0] if found else None)


@dataclass(frozen=True, slots=True)
class _Sections:
    """What stands on a page."""

    snapshot: Snapshot
    base: KnowledgeBase
    first: datetime
    after: datetime

    def documents(self) -> list[str]:
        """Documents that were taken in, but for pages like this, and for conversations."""
        where = document_filter(self._open()) & (col("part") == 0) & col("session_id").is_null()
        where &= (col("ingested_at") >= self.first) & (col("ingested_at") < self.after)
        columns = ["title", "source", "summary"]
        rows = self.snapshot.scan("documents", where, columns, (("ingested_at", "asc"),))
        return [
            f"{_link(row['title'] or row['source'])}{_after_colon(row['summary'], row['title'])}"
            for row in rows.to_pylist()
            if not row["source"].startswith(DAILY_SUMMARY)
        ]

    def decisions(self) -> list[str]:
        """Decisions that became known."""
        return self._memories(col("type") == "decision")

    def insights(self) -> list[str]:
        """Insights that were drawn, but for contradictions."""
        return self._memories((col("level") == "insight") & ~(col("type") == "contradiction"))

    def contradictions(self) -> list[str]:
        """What was found to contradict something known."""
        new = (col("valid_from") >= self.first) & (col("valid_from") < self.after)
        ties = self.snapshot.scan(
            "relations", (col("relation_type") == CONTRADICTS) & new, ["source_id", "target_id"]
        ).to_pylist()
        holds = memory_filter(self._open(), self.after)
        insights = self._memories((col("type") == "contradiction") & (col("level") == "insight"))
        named = sorted({tie[end] for tie in ties for end in ("source_id", "target_id")})
        rows = self.snapshot.scan("memories", holds & col("id").is_in(named), ["id", "text"])
        texts = {row["id"]: _short(row["text"]) for row in rows.to_pylist()}
        pairs = [(texts.get(tie["source_id"]), texts.get(tie["target_id"])) for tie in ties]
        return [*insights, *(f"“{one}” / “{other}”" for one, other in pairs if one and other)]

    def unanswered(self) -> list[str]:
        """Questions that found nothing; those of private things have no text."""
        resources = self.base.resources
        entries = resources.store.ledger.queries.all()
        asked = [
            each.question
            for each in entries
            if self.first <= each.at < self.after
            and not each.found
            and each.question
            and resources.query_log.is_open(each)
        ]
        return list(dict.fromkeys(map(_short, asked)))

    def _memories(self, which: Expr) -> list[str]:
        where = memory_filter(self._open(), self.after) & which
        where &= (col("valid_from") >= self.first) & (col("valid_from") < self.after)
        columns = ["text", "entities", "title", "source"]
        rows = self.snapshot.scan("memories", where, columns, (("valid_from", "asc"),))
        return [
            f"{_short(row['text'])}{_about(row)}"
            for row in rows.to_pylist()
            if not row["source"].startswith(DAILY_SUMMARY)
        ]

    def _open(self) -> Filters:
        return self.base.resources.readable(Filters())


def _section(title: str, entries: Sequence[str]) -> Iterable[str]:
    if entries:
        more = [f"- and {len(entries) - _MOST:,} more"] if len(entries) > _MOST else []
        lines = [f"- {entry}" for entry in dict.fromkeys(entries)]
        yield "\n".join([f"## {title}", "", *lines[:_MOST], *more])


def _link(name: str) -> str:
    plain = " ".join(name.replace("[", "(").replace("]", ")").replace("|", "/").split())
    return f"[[{plain}]]"


def _about(row: dict[str, Any]) -> str:
    """Return links to what a memory is about: its document, and the names in it."""
    names = [row["title"], *row["entities"]]
    links = list(dict.fromkeys(_link(name) for name in names if name))
    return f" ({', '.join(links[:6])})" if links else ""


def _after_colon(text: str, title: str) -> str:
    """Return what a gist says, without the title that it may begin with."""
    said = text.removeprefix(f"{title}: ") if title else text
    return f": {_short(said)}" if said else ""


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1].rstrip()}…"
