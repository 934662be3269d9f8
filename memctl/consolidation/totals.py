"""Sums of tables, as a whole and by what a column says, against limits that are named anywhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.statements import Slot, Statement, StemWeights
from memctl.language.term_analysis import terms

_AMOUNT = re.compile(
    r"amount|total|paid|cost|price|gross|net|sum|spent|invoiced?|fee|value|"
    r"betrag|summe|brutto|netto|kosten|preis|montant|prix|importe|importo|prezzo|[€£$]|eur|gbp|usd",
    re.IGNORECASE,
)
_NO_AMOUNT = re.compile(
    r"unit|per\b|each|rate|budget|quote|limit|\bid\b|no\b|nr\b|balance|saldo", re.I
)
_SUMS = re.compile(r"\s*(?:sub|grand )?(?:total|sum|summe|gesamt|balance|budget)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?P<word>budget|cap(?:ped)?|limit|maximum|max|at most|under|no more than|not more than|"
    r"ceiling|allowance|up to|quoted?|quotation|estimated?|höchstens|obergrenze|"
    r"kostenrahmen|plafond|presupuesto|máximo|preventivo|massimo)\b",
    re.IGNORECASE,
)
_WORDING = {"cap": "cap", "limit": "limit", "maximum": "limit", "max": "limit", "quot": "quote",
            "estim": "estimate", "ceiling": "ceiling", "allowance": "allowance"}  # fmt: skip
_DIGITS = re.compile(r"[€£$]?\s?(-?\d+(?:[.,'\u00a0]\d{3})*(?:[.,]\d+)?)\s?(?:[€£$]|[A-Za-z]{3})?")
_FEWEST_ROWS = 2
_MOST_GROUPS = 0.5
"""Values of a column that groups rows, as a share of its rows."""
_LARGEST = 3.0
"""A sum is more than so many times a limit only where it is of something else."""


@dataclass(frozen=True, slots=True)
class _Row:
    statement: Statement
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Sum:
    """Rows of one table that belong together."""

    name: str
    stems: frozenset[str]
    rows: tuple[_Row, ...]
    amount: float
    is_whole: bool


def find_totals(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return the sums that are over a limit, the farthest first."""
    limits = [each for each in found if not each.is_row and _LIMIT.search(each.text)]
    findings = []
    for rows in _tables(found):
        for total in _sums(rows):
            title = frozenset(terms(rows[0].statement.memory.title))
            over = [
                (_fits(total, title, each, weights), each.day, slot, each)
                for each in limits
                for slot in each.slots
                if slot.value.kind in ("money", "number")
                and _amount(slot) < total.amount <= _LARGEST * _amount(slot)
            ]
            fit, _, slot, limit = max(
                over, key=lambda item: item[:2], default=(0.0, None, None, None)
            )
            if fit and slot and limit:
                findings.append(_finding(total, limit, slot))
    return findings


def _fits(total: _Sum, title: frozenset[str], limit: Statement, weights: StemWeights) -> float:
    """How well a limit fits a sum; 0 where it is one of something else."""
    said = limit.stems | frozenset(terms(limit.memory.title))
    shared = title & said
    if total.is_whole:
        return weights.sum(shared) if len(shared) >= min(2, len(title)) and shared else 0.0
    if not total.stems or not total.stems <= limit.stems:
        return 0.0
    return weights.sum(total.stems) + weights.sum(shared)


def _amount(slot: Slot) -> float:
    return slot.value.readings[-1][0] or 0.0


def _finding(total: _Sum, limit: Statement, slot: Slot) -> Finding:
    most = _amount(slot)
    word = _LIMIT.search(limit.text)
    said = word["word"].lower() if word else ""
    what = next((name for key, name in _WORDING.items() if said.startswith(key)), "budget")
    days = sorted({row.statement.day for row in total.rows if row.statement.is_dated})
    when = f" ({insight_wording.day_after_day([days[0], days[-1]])})" if len(days) > 1 else ""
    headline = (
        f"{total.name}: {insight_wording.counted(len(total.rows), 'entry', 'entries')} come to "
        f"{_written(total.amount)}{when}, over the {what} of {slot.value.text} "
        f"by {_written(total.amount - most)}."
    )
    return Finding(
        kind="total",
        title=total.name,
        headline=headline,
        evidence=(limit, *(row.statement for row in total.rows)),
        about=" ".join(sorted(total.stems) or ["total"]),
        strength=1.0 + min(total.amount / most - 1, 1.0),
    )


def _written(amount: float) -> str:
    return f"{amount:,.2f}".removesuffix(".00")


def _tables(found: Sequence[Statement]) -> Iterator[list[_Row]]:
    tables: dict[str, list[_Row]] = defaultdict(list)
    for each in found:
        if each.is_row:
            parts = (part.partition(": ") for part in each.text.split("; "))
            cells = {name.strip(): value.strip() for name, _, value in parts if value.strip()}
            if not any(_SUMS.match(value) for value in cells.values()):
                tables[each.document].append(_Row(each, cells))
    yield from (rows for rows in tables.values() if len(rows) >= _FEWEST_ROWS)


def _sums(rows: Sequence[_Row]) -> Iterator[_Sum]:
    columns = list(dict.fromkeys(name for row in rows for name in row.cells))
    numeric = [name for name in columns if _is_amount(rows, name)]
    if not numeric:
        return
    amount = max(numeric, key=lambda name: bool(re.search("total|gross|amount", name, re.I)))
    title = rows[0].statement.memory.title
    yield _sum(title, frozenset(terms(title)), rows, amount, is_whole=True)
    for name in columns:
        groups: dict[str, list[_Row]] = defaultdict(list)
        for row in rows:
            groups[row.cells.get(name, "")].append(row)
        is_text = not any(_DIGITS.fullmatch(value) for value in groups if value)
        if name in numeric or not is_text or len(groups) > max(2, 1 + _MOST_GROUPS * len(rows)):
            continue
        for value, some in groups.items():
            if value and len(some) >= _FEWEST_ROWS:
                yield _sum(f"{title}, {value}", frozenset(terms(value)), some, amount)


def _sum(
    name: str, stems: frozenset[str], rows: Sequence[_Row], amount: str, *, is_whole: bool = False
) -> _Sum:
    return _Sum(
        name, stems, tuple(rows), sum(_number(row.cells.get(amount, "")) for row in rows), is_whole
    )


def _is_amount(rows: Sequence[_Row], name: str) -> bool:
    said = [row.cells[name] for row in rows if name in row.cells]
    if not _AMOUNT.search(name) or _NO_AMOUNT.search(name):
        return False
    return sum(bool(_DIGITS.fullmatch(value)) for value in said) >= 0.8 * len(said)


def _number(value: str) -> float:
    match = _DIGITS.fullmatch(value)
    if match is None:
        return 0.0
    plain = re.sub(r"[,.'\u00a0](?=\d{3}(?:\D|$))", "", match[1]).replace(",", ".")
    return float(plain)
