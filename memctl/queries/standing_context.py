"""The standing context: what is known without a question, to stand before every conversation.

It is the same, byte for byte, while nothing known changes, so that prompt caches work: its order
depends on what is stored alone, and how new a memory is is counted from the newest one.  Only what
changed lately, and a plan once its day has passed, leave it with the days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.language.date_mentions import has_passed
from memctl.literals import Headings
from memctl.memories.importance_decay import COLUMNS
from memctl.records import Context, Filters, Hit
from memctl.search.answering.evidence_context import Excerpt, numbered_excerpts
from memctl.search.ranking.scored_candidates import load_hits_by_id
from memctl.store.ledger.session_repositories import PROFILE_FIELDS
from memctl.store.tables.filter_expressions import (
    Expr,
    col,
    memory_filter,
    namespace_filter,
    not_self_written,
)
from memctl.store.tables.metadata_filters import metadata_condition
from memctl.understanding.sentence_reading import bare_turn
from memctl.understanding.triggers import plain_words

if TYPE_CHECKING:
    from memctl.memories.importance_decay import Decay
    from memctl.store.ledger.session_repositories import Profile
    from memctl.store.tables.snapshot import Snapshot

_HEADINGS: Mapping[Headings, tuple[str, str, str, str]] = {
    "seed": ("Profile", "Memory Context", "Recent Changes", "Insights"),
    "plain": ("Who is asking", "What is known", "What has changed", "What follows from it"),
}
"""Above the profile, the memories, the changes and the insights."""
_TYPES = ("important_fact", "memories", "decision", "preference", "plan")
_STATEMENTS = ("fact", "observation", "event")
_IMPORTANT = 0.8
"""Least importance of other statements: above that of what is added without one, 0.7, and of nearly
all that is read in files."""
_INSIGHT_SHARE = 0.3
_CHANGE_SHARE = 0.15
_CHANGE_DAYS, _MAX_CHANGES = 7, 5
_PROFILE_SHARE = 0.5
_RECENT_DAYS = 30.0
_RECENCY_WEIGHT = 0.3
"""What is new counts beside what is important; importance is 0 to 1."""
_MAX_READ = 200
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
    """Return the profile, what is important and holds, what changed lately, the newest insights.

    Args:
        snapshots: Of each knowledge base, by its name.
        decays: How importance fades in each of them.
        filters: What it is limited to, private namespaces left out.
        profile: The user's, if there is one.
        budget: Most tokens; after the profile 30 of 100 are for insights, and up to 15 for what
            changed; memories have the rest.
        count: Counts tokens.
        now: What has expired by then is left out, and what changed in the days before is shown.
        headings: What the parts are called.
    """
    of_profile, of_memories, of_changes, of_insights = _HEADINGS[headings]
    parts: list[str] = []
    shown: list[Excerpt] = []
    known = profile_text(profile) if profile else ""
    above = f"{of_profile}\n{known}" if known else ""
    while above and count(above) > budget * _PROFILE_SHARE:
        above = above.rpartition("\n")[0]
    if above and above != of_profile:
        parts.append(above)
    room = budget - (count(f"{above}\n\n") if parts else 0)
    changes = _latest_changes(snapshots, filters, now)
    insights = _newest_insights(snapshots, filters, now)
    for_insights = int(room * _INSIGHT_SHARE) if insights else 0
    of_changed = _below(of_changes, changes, int(room * _CHANGE_SHARE), count)
    already_shown = {each.citation.memory_id for each in of_changed}
    blocks = [f"\n\n{of_changes}", *(each.text for each in of_changed)]
    for_memories = room - for_insights - (count("\n".join(blocks)) if of_changed else 0)
    memories = _most_important(snapshots, decays, filters, now)
    memories = [hit for hit in memories if hit.memory_id not in already_shown]
    number = 1
    for heading, excerpts in (
        (of_memories, _below(of_memories, memories, for_memories, count)),
        (of_changes, of_changed),
        (of_insights, _below(of_insights, insights, for_insights, count)),
    ):
        if excerpts:
            renumbered = (_renumber(each, at) for at, each in enumerate(excerpts, number))
            parts.append("\n".join((heading, *renumbered)))
            number += len(excerpts)
            shown += excerpts
    text = "\n\n".join(parts)
    citations = tuple(
        replace(each.citation, number=number) for number, each in enumerate(shown, start=1)
    )
    return Context("", text, count(text) if text else 0, budget, citations, why="standing")


def joined_contexts(first: Context, second: Context, count: Callable[[str], int]) -> Context:
    """Return a context before another one, whose citations are numbered on."""
    if not second.text:
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


def _below(
    heading: str, hits: Sequence[Hit], tokens_left: int, count: Callable[[str], int]
) -> Sequence[Excerpt]:
    tokens_left -= count(f"\n\n{heading}\n\n")
    return numbered_excerpts(hits, tokens_left, count) if hits and tokens_left > 0 else ()


def _renumber(excerpt: Excerpt, number: int) -> str:
    return f"[{number}]{excerpt.text.removeprefix(f'[{excerpt.number}]')}"


def _most_important(
    snapshots: dict[str, Snapshot], decays: Mapping[str, Decay], filters: Filters, now: datetime
) -> list[Hit]:
    """Return what is important and still holds, by importance and how new it is.

    What fades has faded up to the newest memory, too, so that the order depends on no clock.
    """
    wanted = replace(filters, types=(*_TYPES, *_STATEMENTS), levels=("memory",))
    where = _condition(snapshots, wanted, now)
    where &= col("type").is_in(_TYPES) | (col("importance") >= _IMPORTANT)
    rows = _rows(snapshots, where, ["created_at", *COLUMNS])
    if not rows:
        return []
    newest = max(row["created_at"] for _, row in rows)

    def weight(name: str, row: Mapping[str, Any]) -> float:
        """Return how much a memory counts."""
        days = (newest - row["created_at"]).total_seconds() / 86_400
        importance = decays[name].importance(row, newest)
        return importance + _RECENCY_WEIGHT * math.exp(-days / _RECENT_DAYS)

    weighed = [(-round(weight(name, row), 6), name, row["id"]) for name, row in rows]
    hits = _hits(snapshots, [(name, id_) for _, name, id_ in sorted(weighed)[:_MAX_READ]])
    plain = [replace(hit, text=bare_turn(hit.text)) if hit.session_id else hit for hit in hits]
    today = now.date()
    holds = (
        hit
        for hit in reversed(plain)
        if hit.type != "plan" or not has_passed(hit.text, hit.created_at, today)
    )
    return list({hit.text.casefold(): hit for hit in holds}.values())[::-1]


def _latest_changes(snapshots: dict[str, Snapshot], filters: Filters, now: datetime) -> list[Hit]:
    """Return memories that took the place of others in the last days, with what those said."""
    begin = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=_CHANGE_DAYS)
    where = (
        ~col("superseded_by").is_null() & (col("valid_to") >= begin) & (col("level") == "memory")
    )
    if (within := namespace_filter(filters)) is not None:
        where &= within
    rows = _rows(snapshots, where, ["id", "text", "valid_to", "superseded_by"])
    rows.sort(key=lambda each: (each[1]["valid_to"], each[1]["id"]), reverse=True)
    later = {(name, row["id"]): row["superseded_by"] for name, row in rows}
    former: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, row in rows[:_MAX_READ]:
        newest = row["superseded_by"]
        seen = {row["id"]}
        while (name, newest) in later and newest not in seen:
            seen.add(newest)
            newest = later[name, newest]
        former.setdefault((name, newest), []).append(row)
    if not former:
        return []
    holds = _condition(snapshots, replace(filters, types=(), levels=("memory",)), now)
    there = _rows(snapshots, holds & col("id").is_in(sorted(id_ for _, id_ in former)), ["id"])
    holding = {(name, row["id"]) for name, row in there}
    pairs = {each: said for each, said in former.items() if each in holding}
    changes: list[Hit] = []
    for hit, said in zip(_hits(snapshots, [*pairs]), pairs.values(), strict=True):
        new = bare_turn(hit.text)
        for row in said:
            old = bare_turn(row["text"])
            if plain_words(old) != plain_words(new):
                text = f"{new} (until {row['valid_to']:%Y-%m-%d}: {old})"
                changes.append(replace(hit, text=text))
                break
    return changes[:_MAX_CHANGES]


def _newest_insights(snapshots: dict[str, Snapshot], filters: Filters, now: datetime) -> list[Hit]:
    where = _condition(snapshots, replace(filters, types=(), levels=("insight",)), now)
    rows = _rows(snapshots, where, ["id", "created_at", "importance"])
    rows.sort(
        key=lambda each: (-each[1]["created_at"].timestamp(), -each[1]["importance"], each[1]["id"])
    )
    return _hits(snapshots, [(name, row["id"]) for name, row in rows[:_MAX_READ]])


def _condition(snapshots: Mapping[str, Snapshot], filters: Filters, now: datetime) -> Expr:
    asked = metadata_condition(filters, "memories", snapshots.values())
    return memory_filter(filters, now) & asked & not_self_written()


def _rows(
    snapshots: dict[str, Snapshot], where: Expr, columns: Sequence[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Return columns of memories, each with the knowledge base that it is of."""
    return [
        (name, row)
        for name, snapshot in snapshots.items()
        for row in snapshot.scan("memories", where, columns).to_pylist()
    ]


def _hits(snapshots: dict[str, Snapshot], rows: Sequence[tuple[str, str]]) -> list[Hit]:
    known = {
        name: load_hits_by_id(snapshots, name, [row[1] for row in rows if row[0] == name])
        for name in snapshots
    }
    return [known[row[0]][row[1]] for row in rows]
