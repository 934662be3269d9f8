"""One page for each day: what came in, was decided, contradicts and stayed without an answer.

An entry links to the page that it is about, so that the day stands among its backlinks; by title,
or by file where several pages have that title.  What no link can name is not linked.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.graph.page_names import Page, PageNames, read_pages
from memctl.identity import DEFAULT_NAMESPACE, documents_of
from memctl.ids import document_id, root_id
from memctl.language.inline_tags import without_wikilinks
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
_NO_NAME = re.compile(r"[\[\]|#^\n]|\{\{")
"""What the name in a link cannot have."""


class DailySummary(Struct, frozen=True):
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
    """Return the id of the first page of a day that was written automatically."""
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


def _write(base: KnowledgeBase, summary: DailySummary) -> DailySummary:
    name = f"{DAILY_SUMMARY} {summary.day.isoformat()}"
    record = {"id": name, "text": summary.text, "title": summary.day.isoformat(), "source": name}
    report = base.documents.ingest(jsonl=io.BytesIO(json.dumps(record).encode()))
    found = [each.document_id for each in report.outcomes if each.document_id is not None]
    return replace(summary, document_id=found[0] if found else None)


class _LinkTargets(Struct, frozen=True):
    """What a page can link to."""

    names: PageNames
    numbers: Mapping[str, int]
    """Of documents, by id."""
    source: Page
    """The page, as far as links go by where they stand."""

    def to_document(self, id_: str) -> str:
        """Return a link to a document, or its title where no name leads to it alone.

        "" for one that the page is not to name.
        """
        number = self.numbers.get(id_)
        if number is None:
            return ""
        page = self.names.pages[number]
        shown = _plain(page.title or page.source)
        for name in _names_of(page):
            if self._leads_to(name) == number:
                return f"[[{name}]]" if name == shown else f"[[{name}|{shown}]]"
        return shown

    def to_name(self, name: str) -> str:
        """Return a link to the document that a name means; "" where it is none, or several."""
        plain = _plain(name)
        return "" if self._leads_to(plain) is None else f"[[{plain}]]"

    def _leads_to(self, name: str) -> int | None:
        if not name or _NO_NAME.search(name):
            return None
        target = self.names.resolve(name, self.source)
        return None if target is None or target.others else target.page


def _names_of(page: Page) -> Iterator[str]:
    """Yield what a document is linked by, the plainest first."""
    yield from (" ".join(page.title.split()), page.slug, *page.aliases)
    folders = page.path.split("/")
    yield from ("/".join(folders[at:]) for at in reversed(range(len(folders))))


def _links_in(base: KnowledgeBase, snapshot: Snapshot) -> _LinkTargets:
    config = base.resources.program_config
    where = document_filter(base.resources.readable(Filters()))
    pages = read_pages(base.name, snapshot, where)
    now = base.clock()
    page = Page(
        kb=base.name,
        id="",
        title="",
        namespace=documents_of(config.namespaces, config.user),
        source=DAILY_SUMMARY,
        type="",
        sha256="",
        summary="",
        aliases=(),
        links=(),
        parts=(),
        created_at=now,
        ingested_at=now,
    )
    return _LinkTargets(PageNames(pages), {each.id: at for at, each in enumerate(pages)}, page)


class _Sections(Struct, frozen=True, dict=True):
    """What stands on a page."""

    snapshot: Snapshot
    base: KnowledgeBase
    first: datetime
    after: datetime

    @cached_property
    def links(self) -> _LinkTargets:
        """What the page can link to; a day that brought nothing needs no links."""
        return _links_in(self.base, self.snapshot)

    def documents(self) -> list[str]:
        """Documents that were taken in, but for pages like this, and for conversations."""
        where = document_filter(self._open()) & (col("part") == 0) & col("session_id").is_null()
        where &= (col("ingested_at") >= self.first) & (col("ingested_at") < self.after)
        columns = ["id", "title", "source", "summary"]
        rows = self.snapshot.scan("documents", where, columns, (("ingested_at", "asc"),))
        return [
            self.links.to_document(row["id"]) + _after_colon(row["summary"], row["title"])
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
        columns = ["text", "entities", "title", "source", "document_id", "source_ids"]
        rows = self.snapshot.scan("memories", where, columns, (("valid_from", "asc"),)).to_pylist()
        sources = sorted({id_ for row in rows for id_ in row["source_ids"] or ()})
        rested_on = self.snapshot.get("memories", sources, ["id", "document_id"]).to_pylist()
        documents = {row["id"]: row["document_id"] for row in rested_on}
        return [
            f"{_short(row['text'])}{self._about(row, documents)}"
            for row in rows
            if not row["source"].startswith(DAILY_SUMMARY)
        ]

    def _about(self, row: dict[str, Any], documents: Mapping[str, str | None]) -> str:
        """Return links to what a memory is about: its document, those of its sources, names."""
        ids = (row["document_id"], *map(documents.get, row["source_ids"] or ()))
        own = [self.links.to_document(root_id(id_)) for id_ in ids if id_]
        names = (self.links.to_name(name) for name in (row["title"], *row["entities"]) if name)
        links = list(dict.fromkeys(link for link in (*own, *names) if link))
        return f" ({', '.join(links[:6])})" if links else ""

    def _open(self) -> Filters:
        return self.base.resources.readable(Filters())


def _section(title: str, entries: Sequence[str]) -> Iterable[str]:
    if entries:
        more = [f"- and {len(entries) - _MOST:,} more"] if len(entries) > _MOST else []
        lines = [f"- {entry}" for entry in dict.fromkeys(entries)]
        yield "\n".join([f"## {title}", "", *lines[:_MOST], *more])


def _plain(name: str) -> str:
    """Return a name in one line, without what would end the text of a link."""
    return " ".join(name.replace("[", "(").replace("]", ")").split())


def _after_colon(text: str, title: str) -> str:
    """Return what a gist says, without the title that it may begin with."""
    said = text.removeprefix(f"{title}: ") if title else text
    return f": {_short(said)}" if said else ""


def _short(text: str) -> str:
    words = " ".join(without_wikilinks(text).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1].rstrip()}…"
