"""What tables of invoices tell: which are open past their day, and who pays late."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.statements import Statement, StemWeights
from memctl.consolidation.totals import TableRow, tables
from memctl.formatting import format_count
from memctl.language.date_mentions import date_spans
from memctl.language.table_amounts import amount_column, column_names, number, written
from memctl.language.term_analysis import terms

_DUE = re.compile(
    r"due(?: (?:date|on|by))?|payable by|fällig(?:keit| am)?|échéance|vence|vencimiento|scadenza"
    r"|vervaldatum",
    re.IGNORECASE,
)
_PAID = re.compile(
    r"paid(?: on| date)?|date paid|payment date|bezahlt(?: am)?|payée?(?: le)?|pagad[oa]|pagat[oa]"
    r"|betaald",
    re.IGNORECASE,
)
_STATUS = re.compile(r"status|state|stand|état|estado|stato", re.IGNORECASE)
_IS_OPEN = re.compile(
    r"open|unpaid|outstanding|overdue|offen|unbezahlt|überfällig|impayée?|pendiente|apert[oa]",
    re.IGNORECASE,
)
_PAYS = re.compile(r"customer|client|debtor|kundin|kunde|kunde/in|cliente|klant", re.IGNORECASE)
_IS_PAID = re.compile(
    r"supplier|vendor|payee|creditor|lieferant|fournisseur|proveedor|fornitore|leverancier",
    re.IGNORECASE,
)
_FEWEST_LATE = 2
_LONG_OPEN = timedelta(days=30)
"""Since when something has been open that has no day by which it is due."""
_MOST_NAMED = 4


class _Columns(Struct, frozen=True):
    """The columns of a table of invoices; "" for one that it lacks."""

    first: str
    party: str
    due: str
    paid: str
    status: str
    amount: str
    party_pays: bool

    def name(self, row: TableRow) -> str:
        """Return what tells a row from others: its number, whom it is with, its amount."""
        said = [row.cells.get(each, "") for each in dict.fromkeys((self.first, self.party))]
        return ", ".join(filter(None, (*said, self.amount_text(row))))

    def amount_text(self, row: TableRow) -> str:
        """Return the amount of a row; "" where it has none, or nothing is to be paid."""
        value = row.cells.get(self.amount, "")
        return written(amount) if (amount := number(value)) else ""

    def days_late(self, row: TableRow) -> int:
        """Return how many days after it was due a row was paid; 0 or less if in time."""
        due, paid = _day(row.cells.get(self.due, "")), _day(row.cells.get(self.paid, ""))
        return (paid - due).days if due and paid else 0


def find_payments(found: Sequence[Statement], _: StemWeights) -> list[Finding]:
    """Return which invoices of tables are open past their day, and who was late several times."""
    findings: list[Finding] = []
    for rows in tables(found):
        if columns := _columns(rows):
            findings += _open_ones(rows, columns)
            findings += _late_ones(rows, columns)
    return findings


def _columns(rows: Sequence[TableRow]) -> _Columns | None:
    """Return the columns that tell what was paid; None for another table."""
    cells = [row.cells for row in rows]
    names = column_names(cells)

    def called(pattern: re.Pattern[str]) -> str:
        """Return the column whose name is what a pattern says."""
        return next((name for name in names if pattern.fullmatch(_plain(name))), "")

    due, paid, status = called(_DUE), called(_PAID), called(_STATUS)
    pays, is_paid = called(_PAYS), called(_IS_PAID)
    has_days = any(_day(row.cells.get(paid, "")) for row in rows)
    if not has_days or not (due or status) or not (pays or is_paid):
        return None
    return _Columns(names[0], pays or is_paid, due, paid, status, amount_column(cells), bool(pays))


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


def _open_ones(rows: Sequence[TableRow], columns: _Columns) -> Iterator[Finding]:
    """Yield the invoices that are past their day, or long open, when the table was last changed."""
    today = max(row.statement.memory.created_at.date() for row in rows)
    late: list[tuple[TableRow, str]] = []
    for row in rows:
        due = _day(row.cells.get(columns.due, ""))
        status = row.cells.get(columns.status, "")
        is_paid = bool(row.cells.get(columns.paid, "").strip(" -–—"))
        if (
            is_paid
            or (columns.amount and not columns.amount_text(row))
            or (columns.status and not _IS_OPEN.fullmatch(status.strip()))
        ):
            continue
        if due and due < today:
            late.append((row, f"due on {insight_wording.day(due)}"))
        elif not due and row.statement.is_dated and row.statement.day < today - _LONG_OPEN:
            late.append((row, f"open since {insight_wording.day(row.statement.day)}"))
    if not late:
        return
    title = late[0][0].statement.memory.title
    named = "; ".join(f"{columns.name(row)} ({since})" for row, since in late[:_MOST_NAMED])
    more = f" and {len(late) - _MOST_NAMED} more" if len(late) > _MOST_NAMED else ""
    yield Finding(
        kind="overdue",
        title=f"{title}, not paid",
        headline=f"{title}: not paid as of {insight_wording.day(today)}: {named}{more}.",
        evidence=tuple(row.statement for row, _ in late[:_MOST_NAMED]),
        about=" ".join(["unpaid", *sorted(terms(title))]),
        strength=1.5,
    )


def _late_ones(rows: Sequence[TableRow], columns: _Columns) -> Iterator[Finding]:
    """Yield who was late several times, or was paid late."""
    by_party: dict[str, list[TableRow]] = defaultdict(list)
    for row in rows:
        if party := row.cells.get(columns.party, ""):
            by_party[party].append(row)
    for party, own in by_party.items():
        late = [row for row in own if columns.days_late(row) > 0]
        if len(late) < _FEWEST_LATE:
            continue
        days = insight_wording.listed([str(columns.days_late(row)) for row in late])
        said = "paid late" if columns.party_pays else "was paid late"
        times = f"{len(late)} times of {format_count(len(own), 'invoice', 'invoices')}"
        yield Finding(
            kind="recurring",
            title=f"{party}, late payments",
            headline=f"{party} {said} {times}, {days} days after the day it was due.",
            evidence=tuple(row.statement for row in late),
            about=" ".join(["late", *sorted(terms(party))]),
            strength=0.4 * len(late),
        )


def _day(value: str) -> date | None:
    spans = date_spans(value)
    return spans[0].day if len(spans) == 1 else None
