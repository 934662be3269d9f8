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
from memctl.consolidation.totals import tables
from memctl.language.date_mentions import date_spans, is_day_before_month
from memctl.language.table_amounts import (
    Cells,
    amount_column,
    column_names,
    is_number,
    number,
    written,
)
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
_STATUS = re.compile(r"status|stato|estado", re.IGNORECASE)
_NOT_PAID = re.compile(
    r"\W*|no|not (?:yet )?paid|open|unpaid|outstanding|overdue|sent|nein|offen|unbezahlt|überfällig"
    r"|non|impayée?|no pagad[oa]|pendiente|apert[oa]",
    re.IGNORECASE,
)
_UNPAID = re.compile(
    r"not (?:yet )?paid|unpaid|overdue|outstanding|nicht bezahlt|unbezahlt|überfällig|impayée?"
    r"|no pagad[oa]|non pagat[oa]|onbetaald",
    re.IGNORECASE,
)
"""What is open may be an order."""
_OF_PAYMENT = re.compile(
    r"\b(?:(?:un)?paid|payments?|payable|invoices?|bills?|balance|owed|amount due|rechnung\w*"
    r"|zahlung\w*|(?:un)?bezahlt|betrag|(?:im)?payée?|paiement|factures?|montant|pagad[oa]|pago|facturas?"
    r"|importe|pagat[oa]|pagamento|fattur[ae]|importo|(?:on)?betaald|betaling|factuur|bedrag)\b",
    re.IGNORECASE,
)
"""Tells a payment from what else is overdue or outstanding, such as a book of a library."""
_DEBTOR = re.compile(r"customer|client|debtor|kundin|kunde|cliente|klant", re.IGNORECASE)
_CREDITOR = re.compile(
    r"supplier|vendor|payee|creditor|lieferant|fournisseur|proveedor|fornitore|leverancier",
    re.IGNORECASE,
)
_FEWEST_LATE = 2
_LONG_OPEN = timedelta(days=30)
"""Since when something has been open that has no day by which it is due."""
_MOST_NAMED = 4
_OPEN_STRENGTH, _MAX_LATE_STRENGTH, _STRENGTH_PER_LATE_PAYMENT = 1.5, 2.0, 0.4
"""Strengths: a table says it; the more often somebody was late."""


class _Columns(Struct, frozen=True):
    """The columns of a table of invoices; "" for one that it lacks."""

    first: str
    party: str
    due: str
    paid: str
    status: str
    amount: str
    party_pays: bool
    is_day_first: bool | None
    """In which order its days with slashes are written, if they tell."""

    def name(self, row: Statement) -> str:
        """Return what tells a row from others: its number, whom it is with, its amount."""
        columns = dict.fromkeys((self.first, self.party))
        said = [row.cells.get(each, "") for each in columns if each != self.amount]
        said = [each for each in said if not _is_day(each)]
        return ", ".join(filter(None, (*said, self.amount_text(row))))

    def amount_text(self, row: Statement) -> str:
        """Return the amount of a row; "" where it has none, or nothing is to be paid."""
        amount = number(row.cells.get(self.amount, ""))
        return written(amount) if amount > 0 else ""

    def day(self, row: Statement, column: str) -> date | None:
        """Return the day in a column of a row."""
        spans = date_spans(row.cells.get(column, ""), is_day_first=self.is_day_first)
        return spans[0].day if len(spans) == 1 else None

    def is_open(self, row: Statement) -> bool:
        """Return whether a row says nothing of having been paid, or plainly that it was not."""
        if not self.paid:
            return _UNPAID.fullmatch(row.cells.get(self.status, "")) is not None
        has_status = _NOT_PAID.fullmatch(row.cells.get(self.status, "")) is not None
        return has_status and _NOT_PAID.fullmatch(row.cells.get(self.paid, "")) is not None

    def days_late(self, row: Statement) -> int:
        """Return how many days after it was due a row was paid; 0 or less if in time."""
        due, paid = self.day(row, self.due), self.day(row, self.paid)
        return (paid - due).days if due and paid else 0


def find_payments(found: Sequence[Statement], _: StemWeights, today: date) -> list[Finding]:
    """Return which invoices of tables are open past their day, and who was late several times."""
    findings: list[Finding] = []
    for rows in tables(found):
        if columns := _columns(rows):
            findings += _open_ones(rows, columns, today)
            findings += _late_ones(rows, columns)
    return findings


def _columns(rows: Sequence[Statement]) -> _Columns | None:
    """Return the columns that tell what was paid; None for another table."""
    cells = [row.cells for row in rows]
    names = column_names(cells)

    def called(pattern: re.Pattern[str]) -> list[str]:
        """Return the columns whose names are what a pattern says."""
        return [name for name in names if pattern.fullmatch(_plain(name))]

    paid = next((each for each in called(_PAID) if _has_days(cells, each)), "")
    due, status = called(_DUE), called(_STATUS)
    debtor, creditor = called(_DEBTOR), called(_CREDITOR)
    amount = amount_column(cells)
    if not paid:
        has_parties = bool(due and (debtor or creditor))
        return _columns_of_status(cells, names, amount, status, is_of_payment=has_parties)
    if not (due or status) or not (debtor or creditor):
        return None
    days = "\n".join(row.get(each, "") for row in cells for each in (*due[:1], paid))
    return _Columns(
        names[0],
        (debtor or creditor)[0],
        due[0] if due else "",
        paid,
        status[0] if status else "",
        amount,
        party_pays=bool(debtor),
        is_day_first=is_day_before_month(days),
    )


def _columns_of_status(
    cells: Sequence[Cells],
    names: Sequence[str],
    amount: str,
    status: Sequence[str],
    *,
    is_of_payment: bool,
) -> _Columns | None:
    """Return the columns of a table that only says plainly which amounts are not paid.

    Unless it is known to be of payments, a state or the name of a column says so.
    """
    states = [row.get(status[0], "") for row in cells] if status else []
    words = " | ".join((*map(_plain, names), *states))
    parties = [
        name
        for name in names
        if name not in (amount, *status)
        and not any(is_number(row.get(name, "")) or _is_day(row.get(name, "")) for row in cells)
    ]
    if not (amount and parties and any(map(_UNPAID.fullmatch, states))):
        return None
    if not is_of_payment and _OF_PAYMENT.search(words) is None:
        return None
    return _Columns(names[0], parties[0], "", "", status[0], amount, True, None)


def _is_day(cell: str) -> bool:
    return any(span.end - span.start == len(cell.strip()) for span in date_spans(cell))


def _has_days(cells: Sequence[Cells], column: str) -> bool:
    return any(date_spans(row.get(column, "")) for row in cells)


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split())


def _open_ones(rows: Sequence[Statement], columns: _Columns, today: date) -> Iterator[Finding]:
    """Yield the invoices that are past their day, or long open."""
    late: list[tuple[Statement, str]] = []
    for row in rows:
        if not columns.is_open(row) or (columns.amount and not columns.amount_text(row)):
            continue
        due = columns.day(row, columns.due)
        if due and due < today:
            late.append((row, f"due on {insight_wording.day(due)}"))
        elif not due and row.is_dated and row.day < today - _LONG_OPEN:
            late.append((row, f"open since {insight_wording.day(row.day)}"))
    if not late:
        return
    memory = late[0][0].memory
    title = memory.title or insight_wording.source(memory)
    named = "; ".join(f"{columns.name(row)} ({since})" for row, since in late[:_MOST_NAMED])
    more = f" and {len(late) - _MOST_NAMED} more" if len(late) > _MOST_NAMED else ""
    yield Finding(
        kind="overdue",
        title=f"{title}, not paid",
        headline=f"{title}: not paid as of {insight_wording.day(today)}: {named}{more}.",
        evidence=tuple(row for row, _ in late[:_MOST_NAMED]),
        about=" ".join(["unpaid", *sorted(terms(title))]),
        strength=_OPEN_STRENGTH,
    )


def _late_ones(rows: Sequence[Statement], columns: _Columns) -> Iterator[Finding]:
    """Yield who was late several times, or was paid late."""
    by_party: dict[str, list[Statement]] = defaultdict(list)
    for row in rows:
        if party := row.cells.get(columns.party, ""):
            by_party[party].append(row)
    for party, own in by_party.items():
        late = [row for row in own if columns.days_late(row) > 0]
        if len(late) < _FEWEST_LATE:
            continue
        days = [columns.days_late(row) for row in late]
        by = insight_wording.join_items(list(map(str, days)))
        if len(days) > _MOST_NAMED:
            by = f"{min(days)} to {max(days)}"
        count = f"{len(late)} of {len(own)} invoices"
        said = f"paid {count} late" if columns.party_pays else f"was paid late for {count}"
        yield Finding(
            kind="recurring",
            title=f"{party}, late payments",
            headline=f"{party} {said}, by {by} days.",
            evidence=tuple(late[:_MOST_NAMED]),
            about=" ".join(["late", *sorted(terms(party))]),
            strength=min(_STRENGTH_PER_LATE_PAYMENT * len(late), _MAX_LATE_STRENGTH),
        )
