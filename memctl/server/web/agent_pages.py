"""What agents share and use: pools with what is in them, and skills with what is proposed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from memctl.literals import SkillStatus
from memctl.operations.finding import first_with
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.records import record_like
from memctl.server.web.listing import RowList, bases_of
from memctl.server.web.pages import PAGE_ROWS, Page, PageRequest

if TYPE_CHECKING:
    from memctl.pools.pool_values import PoolStatistics
    from memctl.skills.skill_views import SkillDetails
    from memctl.store.ledger.pool_repositories import Pool, PoolHistoryEntry
    from memctl.store.ledger.skill_repositories import SkillConflict

_LONGEST_VALUE = 4_000
"""Characters of a pool's value on the page; a program gets all of it."""
_MAX_KEYS = 200
_PROPOSED = ("draft", "submitted", "under_review", "approved")


def _page_of(rows: Sequence[dict[str, Any]], offset: int) -> RowList:
    end = offset + PAGE_ROWS
    return RowList(tuple(rows[offset:end]), len(rows), offset, end if end < len(rows) else None)


# --- pools ----------------------------------------------------------------------------------------


def pools(context: OperationContext, parameters: PageRequest) -> Page:
    """List pools as ``memctl pool list`` does."""
    rows = [
        {"kb": base.name, **to_plain(each)}
        for base in bases_of(context)
        for each in base.pools.acting_as().list()
    ]
    found = _page_of(rows, parameters.offset)
    return Page("pools.html", "Pools", found, {"previous_offset": found.previous_offset})


class PoolState(Struct, frozen=True):
    """A pool: who may use it and does, what is in it, and what was written last."""

    kb: str
    pool: Pool
    statistics: PoolStatistics
    data: Any
    history: Sequence[PoolHistoryEntry]
    """The latest write first."""


class ShownValue(Struct, frozen=True):
    """A value of a pool as the page shows it."""

    key: str
    text: str
    left_out: int
    """Characters that are not shown."""


def pool(context: OperationContext, parameters: PageRequest) -> Page:
    """Show a pool: its members, as rights and uses say, and what they share."""
    id_ = parameters.path["id"]
    base, found = first_with(
        bases_of(context),
        lambda base: base.pools.acting_as().get(id_),
        f"there is no pool {id_[:80]!r}",
    )
    own = base.pools.acting_as()
    data = own.read(id_).value
    history = sorted(own.history(id_), key=lambda each: each.version, reverse=True)
    state = PoolState(base.name, found, own.statistics(id_), data, history)
    values = list(map(_shown_value, list(data.items())[:_MAX_KEYS]))
    shown = {"values": values, "keys_left_out": len(data) - len(values)}
    return Page("pool.html", found.name or found.pool_id, state, shown)


def _shown_value(item: tuple[str, Any]) -> ShownValue:
    key, value = item
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return ShownValue(key, text[:_LONGEST_VALUE], max(0, len(text) - _LONGEST_VALUE))


# --- skills ---------------------------------------------------------------------------------------


class SkillsState(RowList, frozen=True):
    """One page of skills, and what is proposed."""

    proposals: tuple[dict[str, Any], ...] = ()


def skills(context: OperationContext, parameters: PageRequest) -> Page:
    """List skills as ``memctl skill list`` does, or find them as ``skill search`` does.

    Drafts come with the proposals that wait for a person.
    """
    status: SkillStatus | None = parameters.choice("status", SkillStatus, None)
    words = parameters.text("q")
    rows, proposed = [], []
    for base in bases_of(context):
        own = base.skills.acting_as()
        found: Sequence[Any] = (
            own.search(words, limit=PAGE_ROWS) if words else own.list(status=status)
        )
        rows += [{"kb": base.name, **to_plain(each)} for each in found]
        if status == "draft" and not words:
            waiting = base.skills.proposals().list()
            proposed += [{"kb": base.name, **to_plain(each)} for each in waiting]
    if words:
        rows.sort(key=lambda row: row["score"], reverse=True)
    listed = _page_of(rows, parameters.offset)
    proposals = tuple(each for each in proposed if each["status"] in _PROPOSED)
    data = record_like(SkillsState, listed, proposals=proposals)
    shown = {
        "fields": {"status": status or "", "q": words},
        "states": get_args(SkillStatus),
        "previous_offset": data.previous_offset,
    }
    return Page("skills.html", "Skills", data, shown)


class SkillState(Struct, frozen=True):
    """A skill with the text of one version, and what speaks against it."""

    kb: str
    details: SkillDetails
    version: int
    """Whose text it is."""
    text: str
    conflicts: Sequence[SkillConflict]


def skill(context: OperationContext, parameters: PageRequest) -> Page:
    """Show a skill as ``memctl skill show`` does, with its text."""
    word = parameters.path["id"]
    base, found = first_with(
        bases_of(context),
        lambda base: base.skills.acting_as().find(word),
        f"there is no skill {word[:80]!r}",
    )
    own = base.skills.acting_as()
    number = parameters.number("version", found.active_version, 1)
    state = SkillState(
        base.name,
        own.show(found.skill_id),
        number,
        own.version(found, number).content,
        base.skills.conflicts().list(skill=found.skill_id),
    )
    return Page("skill.html", found.name, state)
