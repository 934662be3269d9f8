"""The standing context: what is known without a question, to stand before every conversation.

It is the same, byte for byte, while nothing known changes, so that prompt caches work: its order
depends on what is stored alone, and "recent" is counted from the newest memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.literals import Headings
from memctl.memories.importance_decay import COLUMNS
from memctl.records import Context, Filters, Hit
from memctl.search.answering.evidence_context import Excerpt, numbered_excerpts
from memctl.search.ranking.scored_candidates import load_hits_by_id
from memctl.store.ledger.profile_repositories import PROFILE_FIELDS
from memctl.store.tables.filter_expressions import memory_filter
from memctl.store.tables.metadata_filters import metadata_condition
from memctl.understanding.sentence_reading import bare_turn

if TYPE_CHECKING:
    from memctl.memories.importance_decay import Decay
    from memctl.store.ledger.profile_repositories import Profile
    from memctl.store.tables.snapshot import Snapshot

_HEADINGS: Mapping[Headings, tuple[str, str, str]] = {
    "seed": ("Profile", "Memory Context", "Insights"),
    "plain": ("Who is asking", "What is known", "What follows from it"),
}
"""Above the profile, the memories and the insights."""
_TYPES = ("important_fact", "memories", "decision", "preference", "plan")
_INSIGHT_SHARE = 0.3
_PROFILE_SHARE = 0.5
_RECENT_DAYS = 30.0
_RECENCY_WEIGHT = 0.3
"""What is new counts beside what is important; importance is 0 to 1."""
_MOST_READ = 200
_CITED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


def standing_context(
    snapshots: dict[str, Snapshot],
    decays: Mapping[str, Decay],
    filters: Filters,
    profile: Profile | None,
    budget: int,
    count: Callable[[str], int],
    now: datetime,
    headings: Headings = "seed",
) -> Context:
    """Return the profile, then what is important and holds, then the newest insights.

    Args:
        snapshots: Of each knowledge base, by its name.
        decays: How importance fades in each of them.
        filters: What it is limited to, private namespaces left out.
        profile: The user's, if there is one.
        budget: Most tokens; after the profile 70 of 100 are for memories and 30 for insights.
        count: Counts tokens.
        now: What has expired by then is left out.
        headings: What the parts are called.
    """
    of_profile, of_memories, of_insights = _HEADINGS[headings]
    parts: list[str] = []
    known = profile_text(profile) if profile else ""
    above = f"{of_profile}\n{known}" if known else ""
    while above and count(above) > budget * _PROFILE_SHARE:
        above = above.rpartition("\n")[0]
    if above and above != of_profile:
        parts.append(above)
    room = budget - (count(f"{above}\n\n") if parts else 0)
    insights = _newest_insights(snapshots, filters, now)
    memories = _most_important(snapshots, decays, filters, now)
    for_insights = int(room * _INSIGHT_SHARE) if insights else 0
    room_for_memories = room - for_insights - count(f"\n\n{of_memories}\n\n")
    shown = _excerpts(memories, room_for_memories, count)
    more = _excerpts(insights, for_insights - count(f"\n\n{of_insights}\n\n"), count)
    for heading, excerpts, first in ((of_memories, shown, 1), (of_insights, more, len(shown) + 1)):
        if excerpts:
            blocks = (_renumbered(each, number) for number, each in enumerate(excerpts, first))
            parts.append("\n".join((heading, *blocks)))
    text = "\n\n".join(parts)
    citations = tuple(
        replace(each.citation, number=number)
        for number, each in enumerate([*shown, *more], start=1)
    )
    return Context("", text, count(text) if text else 0, budget, citations, why="standing")


def joined_contexts(first: Context, second: Context, count: Callable[[str], int]) -> Context:
    """Return a context before another one, whose citations are numbered on."""
    shown = {each.memory_id for each in first.citations}
    if not second.text or shown.issuperset(each.memory_id for each in second.citations):
        return replace(first, question=second.question, budget=first.budget + second.budget)
    by = len(first.citations)
    text = _CITED.sub(lambda match: f"[{int(match[1]) + by}]", second.text)
    text = f"{first.text}\n\n{text}" if first.text else text
    more = tuple(replace(each, number=each.number + by) for each in second.citations)
    return replace(
        second,
        text=text,
        tokens=count(text),
        budget=first.budget + second.budget,
        citations=(*first.citations, *more),
    )


def profile_text(profile: Profile) -> str:
    """Return a profile as it stands above a prompt; the same for the same profile."""
    known = ((name, getattr(profile, name).strip()) for name in PROFILE_FIELDS)
    return "\n\n".join(f"{_TITLES[name]}:\n{text}" for name, text in known if text)


_TITLES = {
    "user_info": "About the user",
    "last_conversation_summary": "Last conversation",
    "recent_goal_and_status": "Goals and status",
    "important_context": "Important",
    "agent_beliefs": "What the agent believes",
    "agent_info": "About the agent",
}


def _excerpts(hits: Sequence[Hit], room: int, count: Callable[[str], int]) -> Sequence[Excerpt]:
    return numbered_excerpts(hits, room, count) if hits and room > 0 else ()


def _renumbered(excerpt: Excerpt, number: int) -> str:
    return f"[{number}]{excerpt.text.removeprefix(f'[{excerpt.number}]')}"


def _most_important(
    snapshots: dict[str, Snapshot], decays: Mapping[str, Decay], filters: Filters, now: datetime
) -> list[Hit]:
    """Return what is important and still holds, by importance and how new it is.

    What fades has faded up to the newest memory, too, so that the order depends on no clock.
    """
    wanted = replace(filters, types=_TYPES, levels=("memory",))
    rows = _rows(snapshots, wanted, now, ["created_at", *COLUMNS])
    if not rows:
        return []
    newest = max(row["created_at"] for _, row in rows)

    def weight(name: str, row: Mapping[str, Any]) -> float:
        """Return how much a memory counts."""
        days = (newest - row["created_at"]).total_seconds() / 86_400
        importance = decays[name].importance(row, newest)
        return importance + _RECENCY_WEIGHT * math.exp(-days / _RECENT_DAYS)

    weighed = [(-round(weight(name, row), 6), name, row["id"]) for name, row in rows]
    hits = _hits(snapshots, [(name, id_) for _, name, id_ in sorted(weighed)[:_MOST_READ]])
    plain = [replace(hit, text=bare_turn(hit.text)) if hit.session_id else hit for hit in hits]
    return list({hit.text.casefold(): hit for hit in reversed(plain)}.values())[::-1]


def _newest_insights(snapshots: dict[str, Snapshot], filters: Filters, now: datetime) -> list[Hit]:
    wanted = replace(filters, types=(), levels=("insight",))
    rows = _rows(snapshots, wanted, now, ["id", "created_at", "importance"])
    rows.sort(
        key=lambda each: (-each[1]["created_at"].timestamp(), -each[1]["importance"], each[1]["id"])
    )
    return _hits(snapshots, [(name, row["id"]) for name, row in rows[:_MOST_READ]])


def _rows(
    snapshots: dict[str, Snapshot], filters: Filters, now: datetime, columns: Sequence[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Return columns of memories, each with the knowledge base that it is of."""
    return [
        (name, row)
        for name, snapshot in snapshots.items()
        for row in snapshot.scan(
            "memories",
            memory_filter(filters, now) & metadata_condition(filters, "memories", [snapshot]),
            columns,
        ).to_pylist()
    ]


def _hits(snapshots: dict[str, Snapshot], rows: Sequence[tuple[str, str]]) -> list[Hit]:
    known = {
        name: load_hits_by_id(snapshots, name, [row[1] for row in rows if row[0] == name])
        for name in snapshots
    }
    return [known[row[0]][row[1]] for row in rows]
