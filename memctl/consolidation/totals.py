"""Sums of tables, as a whole and by what a column says, against limits that are named anywhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.statements import Slot, Statement, StemWeights
from memctl.formatting import format_count
from memctl.language.table_amounts import (
    amount_column,
    is_sum,
    number,
    text_columns,
    written,
)
from memctl.language.term_analysis import terms

_LIMIT = re.compile(
    r"\b(?P<word>budget|cap(?:ped)?|limit|maximum|max|at most|under|more than|not a cent|"
    r"have .{1,20} for (?:it|this|that|them)|set aside|put aside|ceiling|"
    r"allowance|up to|quoted?|quotation|estimated?|höchstens|obergrenze|"
    r"plan(?:s|ned)? (?:said|says|was|were)|"
    r"kostenrahmen|plafond|presupuesto|máximo|preventivo|massimo)\b",
    re.IGNORECASE,
)
_WORDING = {
    "cap": "cap", "limit": "limit", "maximum": "limit", "max": "limit", "quot": "quote",
    "estim": "estimate", "ceiling": "ceiling", "plan": "plan", "allowance": "allowance",
}  # fmt: skip
_OF_A_YEAR = re.compile(
    r"\b(?:(?:for|in|of|per|a|this|each) (?:the )?year|(?:this|next|per) annum|annual\w*|yearly|"
    r"im jahr|pro jahr|jährlich|par an|annuel\w*|al año|anual|all'anno|annuale)\b",
    re.IGNORECASE,
)
"""Says that a limit is one for a year."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_FEWEST_ROWS = 2
_MOST_GROUPS = 0.5
"""Values of a column that groups rows, as a share of its rows."""
_LEAST_TITLE, _SHARE_OF_TITLE = 1.2, 0.25
"""Weight of what the title of a table and a limit share, and its share of the title's weight."""
_REGULAR_MONTHS = 3
"""Months in a row with the same payment, after which it is taken to be paid each month."""
_LARGEST = 3.0
"""A sum is more than this many times a limit only where it is of something else."""


class _Sum(Struct, frozen=True):
    """Rows of one table that belong together."""

    name: str
    stems: frozenset[str]
    rows: tuple[Statement, ...]
    amount: float
    column: str
    """The name of the column of its amounts."""
    is_whole: bool


def find_totals(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return the sums that are over a limit, the farthest first."""
    limits = [
        each for each in found if not (each.is_row or each.is_question) and _LIMIT.search(each.text)
    ]
    findings = []
    for rows in tables(found):
        for total in _sums(rows):
            title = frozenset(terms(_YEAR.sub(" ", rows[0].memory.title)))
            over = [
                (_fits(total, title, each, weights), each.day, _nearness(slot, each), slot, each)
                for each in limits
                for slot in each.slots
                if slot.value.kind in ("money", "number")
                and slot.amount < _expected(total, each) <= _LARGEST * slot.amount
            ]
            fit, _, _, slot, limit = max(over, key=lambda item: item[:3], default=_NO_LIMIT)
            if fit and slot and limit:
                findings.append(_total_finding(total, limit, slot))
    return findings


_NO_LIMIT = (0.0, None, 0, None, None)


def _nearness(slot: Slot, limit: Statement) -> int:
    """Return how near a value stands to the word that says of what kind it is."""
    said = _LIMIT.search(limit.text)
    return -min(abs(slot.value.start - at) for at in said.span()) if said else 0


def _expected(total: _Sum, limit: Statement) -> float:
    """Return what a sum will be at the end of the period of a limit."""
    is_of_year = total.rows[-1].day.year == limit.day.year and _OF_A_YEAR.search(limit.text)
    return total.amount + _to_come(total) if is_of_year else total.amount


def _to_come(total: _Sum) -> float:
    """Return what will be added by the end of the year if a monthly payment goes on."""
    months, amount = _regular(total)
    return months * amount


def _regular(total: _Sum) -> tuple[int, float]:
    """Return how many months of the year are left after the last row, and what is paid in each."""
    by_month: dict[int, list[float]] = defaultdict(list)
    for row in total.rows:
        if not row.is_dated or row.day.year != total.rows[-1].day.year:
            return 0, 0.0
        by_month[row.day.month].append(number(row.cells.get(total.column, "")))
    last = max(by_month)
    amount = by_month[last][-1]
    newest = range(last, last - _REGULAR_MONTHS, -1)
    return (12 - last, amount) if all(by_month[each] == [amount] for each in newest) else (0, 0.0)


def _fits(total: _Sum, title: frozenset[str], limit: Statement, weights: StemWeights) -> float:
    """How well a limit fits a sum; 0 where it is one of something else."""
    said = limit.stems | limit.titles | frozenset(terms(f"{limit.text} {limit.memory.title}"))
    shared = title & said
    if total.is_whole:
        worth = weights.sum(shared) + 0.5 * weights.sum((title & limit.around) - said)
        return worth if worth >= max(_LEAST_TITLE, _SHARE_OF_TITLE * weights.sum(title)) else 0.0
    if not total.stems or not total.stems <= limit.stems:
        return 0.0
    return weights.sum(total.stems) + weights.sum(shared)


def _amount_text(slot: Slot) -> str:
    is_plain = slot.value.kind == "number" or not any(map(str.isdigit, slot.value.text))
    return written(slot.amount) if is_plain else slot.value.text


def _total_finding(total: _Sum, limit: Statement, slot: Slot) -> Finding:
    most = slot.amount
    word = _LIMIT.search(limit.text)
    said = word["word"].lower() if word else ""
    what = next((name for key, name in _WORDING.items() if said.startswith(key)), "budget")
    days = sorted({row.day for row in total.rows if row.is_dated})
    when = f" ({insight_wording.day_after_day([days[0], days[-1]])})" if len(days) > 1 else ""
    expected = _expected(total, limit)
    ahead = ""
    if expected > total.amount:
        ahead = f"; at {written(_regular(total)[1])} a month they will be {written(expected)}"
        ahead += f" at the end of {days[-1].year}"
    headline = (
        f"{total.name}: {format_count(len(total.rows), 'entry', 'entries')} come to "
        f"{written(total.amount)}{when}{ahead}, over the {what} of {_amount_text(slot)} "
        f"by {written(expected - most)}."
    )
    return Finding(
        kind="total",
        title=total.name,
        headline=headline,
        evidence=(limit, *(row for row in total.rows)),
        about=" ".join(sorted(total.stems) or ["total"]),
        strength=1.0 + min(expected / most - 1, 1.0),
    )


def tables(found: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Yield the rows of each table, without those that add up others."""
    by_document: dict[str, list[Statement]] = defaultdict(list)
    for each in found:
        if each.cells and not is_sum(each.cells):
            by_document[each.document].append(each)
    yield from (rows for rows in by_document.values() if len(rows) >= _FEWEST_ROWS)


def _sums(rows: Sequence[Statement]) -> Iterator[_Sum]:
    cells = [row.cells for row in rows]
    amount = amount_column(cells)
    if not amount:
        return
    title = rows[0].memory.title
    yield _sum(title, frozenset(terms(title)), rows, amount, is_whole=True)
    for name in text_columns(cells):
        groups: dict[str, list[Statement]] = defaultdict(list)
        for row in rows:
            groups[row.cells.get(name, "")].append(row)
        if len(groups) > max(2, 1 + _MOST_GROUPS * len(rows)):
            continue
        for value, some in groups.items():
            if value and len(some) >= _FEWEST_ROWS:
                yield _sum(f"{title}, {value}", frozenset(terms(value)), some, amount)


def _sum(
    name: str,
    stems: frozenset[str],
    rows: Sequence[Statement],
    amount: str,
    *,
    is_whole: bool = False,
) -> _Sum:
    total = sum(number(row.cells.get(amount, "")) for row in rows)
    return _Sum(name, stems, tuple(rows), total, amount, is_whole)
