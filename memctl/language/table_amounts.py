"""Rows of tables as they stand in text, ``name: value; name: value``, and the amounts in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

from memctl.language.date_mentions import date_spans
from memctl.language.term_analysis import query_terms
from memctl.patterns import lazy_regex

Cells = dict[str, str]
"""The values of a row by the names of their columns."""

_AMOUNT = lazy_regex(
    r"amount|total|paid|cost|price|gross|net|sum|spent|invoiced?|fee|value|"
    r"betrag|summe|brutto|netto|kosten|preis|montant|prix|importe|importo|prezzo|[€£$]|eur|gbp|usd",
    re.IGNORECASE,
)
_NO_AMOUNT = lazy_regex(
    r"unit|per(?:\b|_)|each|rate|budget|quote|limit|\bid\b|no\b|nr\b|balance|saldo|"
    r"paid[ _](?:by|on)",
    re.IGNORECASE,
)
_NO_SUM = lazy_regex(
    r"(?:^|[\W_])(?:unit|per|each|rates?|id|no|nr|balance|saldo|percent)(?:[\W_]|$)|%",
    re.IGNORECASE,
)
_IDENTIFIER = lazy_regex(
    r"(?:.*[\W_])?(?:invoice|bill|receipt|order|ticket|booking|room|tank|hive|house|flat|plot|bed|cage"
    r"|pen|box|table|seat|page|chapter|line|row|year|month|week|day|floor|batch|lot|account|customer"
    r"|client|supplier|no|nr|num|number|id|code|ref|reference|sku|isbn|zip|postcode|phone|version"
    r"|rechnung|auftrag|zimmer|raum|seite|jahr|monat|woche|tag|nummer|konto|kunde"
    r"|facture|commande|chambre|factura|pedido|fattura|ordine)\.?#?|#",
    re.IGNORECASE,
)
"""The name of a column whose whole numbers tell things apart: the thing's own, in the singular."""
_WHOLE_NUMBER = lazy_regex(r"\d+")
_MIN_IN_SEQUENCE = 4
"""Rows from which numbers that follow each other are taken to be a numbering."""
_WHOLE = lazy_regex(r"total|gross|amount|betrag|summe|montant|importe|importo", re.IGNORECASE)
_SUMS = r"(?:sub|grand )?(?:total|sum|summe|gesamt)"
_IS_SUM = lazy_regex(rf"{_SUMS}[\W\d]*|budget", re.IGNORECASE)
_MAY_BE_SUM = lazy_regex(rf"{_SUMS}\b.*", re.IGNORECASE)
"""Of a row with a date it is a name ("Total Energies")."""
_OF_AMOUNT = lazy_regex(
    r"(?:.*[\W_])?(?:amount|total|paid|cost|costs|gross|net|spent|betrag|summe|kosten|montant"
    r"|importe|importo|hours|minutes|stunden|minuten|heures|horas|ore|miles|km|kwh)(?:[\W_].*)?",
    re.IGNORECASE,
)
"""The name of a column of which several numbers of a day add up to that of the day."""
_BALANCE = lazy_regex(r"balance|saldo", re.IGNORECASE)
"""What is the rest of a price where the row also says whose ("Lowther; balance; 300")."""
_CURRENCY = lazy_regex(r"currency|cur|währung|devise|moneda|valuta", re.IGNORECASE)
_IS_PAID = lazy_regex(
    r"(?:date[ _])?(?:paid|bezahlt|payé|pagato|pagado)(?:[ _](?:on|am|le))?"
    r"(?:[ _]date)?|payment[ _]date",
    re.IGNORECASE,
)
"""The name of a column that says when, or whether, something was paid."""
OF_TIMES = lazy_regex(
    r"(?:the )?(?:years?|month|week|day|dates?|quarters?|jahr|monat|woche|tag|année|mois"
    r"|jour)",
    re.IGNORECASE,
)
"""The name of a column of numbers that say when."""
OF_DATE = lazy_regex(r"(?:date|day|when|datum|tag|fecha|data|jour)", re.IGNORECASE)
"""The name of a column of dates that does not say of what."""
SAYS_PAID = lazy_regex(r"\b(?:pays?|paid|bezahlt|payé|pagato|pagado)\b", re.IGNORECASE)
_UNPAID = frozenset(("unpaid", "not paid", "overdue", "outstanding", "open", "unbezahlt", "offen"))
_CANCELLED = lazy_regex(
    r"cancell?ed|void(?:ed)?|withdrawn|written[ -]off|credited|refunded|storniert|annulée?"
    r"|annullat[ao]|anulad[ao]|cancelad[ao]",
    re.IGNORECASE,
)
_STATE = lazy_regex(
    rf"{'|'.join(_UNPAID)}|paid|closed|done|sent|bezahlt|payé|pagato|pagado|erledigt", re.IGNORECASE
)
"""A value that says how far something is, and is no name."""
_MOST_NAMED = 3
YES, NO = (
    frozenset({"yes", "y", "true", "x", "ja", "oui", "sì", "sí"}),
    frozenset({"no", "n", "false", "nein", "non", "-"}),
)
IS_PAY = lazy_regex(
    r"\b(?:wages?|salary|salaries|pay|payroll|earn(?:s|ed|ings)?|takings|commissions?|löhne|lohn"
    r"|gehalt|gehälter|salaire|salario|stipendio)\b",
    re.IGNORECASE,
)
IS_INCOME = lazy_regex(
    r"\b(?:customers?|clients?|buyer|sales|sold(?: to)?|income|revenue|turnover|takings|earnings"
    r"|orders? from customers|(?:invoices?|bills?) (?:sent|issued|out)|kunden?|umsatz|einnahmen"
    r"|ventes|recettes|ventas|ingresos|vendite)\b",
    re.IGNORECASE,
)
IS_COSTS = lazy_regex(
    r"\b(?:costs?|expenses?|spen[dt]|spendings?|outgoings|suppliers?|vendors?|payees?|purchases?"
    r"|bought|kosten|ausgaben|lieferanten?|dépenses|fournisseurs?|gastos|proveedor|spese|fornitore)\b",
    re.IGNORECASE,
)
"""What a title or the name of a column says of a table: what comes in or what goes out."""
_MONEY_IN = lazy_regex(
    r"(?:(?:money|cash|paid|amount)[ _])?in|income|credits?|receipts?|received|takings"
    r"|einnahmen?|eingang|gutschrift|recettes?|entrées?|crédit|ingresos?|entrate",
    re.IGNORECASE,
)
_MONEY_OUT = lazy_regex(
    r"(?:(?:money|cash|paid|amount)[ _])?out|expenses?|debits?|payments?|spent|outgoings?"
    r"|ausgaben?|ausgang|lastschrift|dépenses?|sorties?|débit|gastos?|uscite",
    re.IGNORECASE,
)
"""The names of two columns of one table: what came in and what went out."""
_OF_MONEY = lazy_regex(
    r"\b(?:accounts?|bank|cash|money|budget|ledger|income|expenses?|credits?|debits?|spent|spending"
    r"|konto|kasse|einnahmen?|ausgaben?|recettes?|dépenses?|ingresos|gastos|entrate|uscite)\b",
    re.IGNORECASE,
)
_IN_CENTS = lazy_regex(r"\d[.,]\d\d\b|[€£$]")
_OF_DEBTOR = lazy_regex(
    r"(?:customers?|clients?|debtors?|payers?|tenants?|members?|buyers?|borrowers?|kunden?|mieter"
    r"|client[es]?|cliente)(?:[ _]name)?",
    re.IGNORECASE,
)
_OF_CREDITOR = lazy_regex(
    r"(?:suppliers?|vendors?|creditors?|payees?|contractors?|lenders?|lieferanten?|fournisseurs?"
    r"|proveedor|fornitore)(?:[ _]name)?",
    re.IGNORECASE,
)
"""The names of columns of who owes money and of whom it is owed to."""
_BESIDE_DATE = lazy_regex(r"[\sT]*(?:\d\d?:\d\d(?::\d\d(?:\.\d+)?)?\s*Z?)?[\s.,]*")
_LIST_PRICE = lazy_regex(
    r"(?:.*[\W_])?(?:prices?|rates?|tariff|preis|tarif|prix|prezzo|precio)(?:[\W_].*)?",
    re.IGNORECASE,
)
"""The name of a column of what things are sold for, unless it says of a total."""
_OF_TOTAL = lazy_regex(r"total|gross|net|sum|paid|spent", re.IGNORECASE)
OF_QUANTITY = lazy_regex(
    r"(?:qty|quantity|pieces|pcs|count|number|units|(?:in[ _])?stock|anzahl|bestand|menge|stück"
    r"|quantité|cantidad|quantità)",
    re.IGNORECASE,
)
_OF_PERSON = lazy_regex(
    r"(?:paid[\W_]by|by|who|whom|name|person|member|wer|von|an|qui|nom|nombre|nome)", re.IGNORECASE
)
"""The name of a column that says who paid, or who was paid, besides those of costs and income."""
_UNIT_PRICE = lazy_regex(
    r"price|cost|rate|fee|charge|unit|per|each|preis|prix|prezzo|precio", re.IGNORECASE
)
"""The name of a column of what one of something costs."""
_NAME = lazy_regex(r"(?!.*\d)[^\W_a-z]\S*(?:(?: \S+){0,3} [^\W_a-z]\S*)?")
"""One that begins and ends with a capital letter."""
_ASIDE = lazy_regex(r" ?\(.*?\)")
_NO_MARK = lazy_regex(r"[-\d.,'\s\u00a0]")
_BAR = lazy_regex(r"(?<!\\)\|")
_BARE_CELL = lazy_regex(r"\*\*|__|`")
"""Marks of emphasis and code in a cell."""
_RULE_CELL = lazy_regex(r"\s*:?-+:?\s*")
_PROVES_DECIMALS = lazy_regex(r"(?:(?<!\d)0([.,])\d+|\d([.,])(?:\d\d?|\d{4,}))(?!\d|[.,]\d)")
_PROVES_THOUSANDS = lazy_regex(r"\d([.,])\d{3}[.,]\d")
_THOUSANDTHS = lazy_regex(r"(?<=[.,])\d{3}(?!\d|[.,]\d)")
_NUMBER = lazy_regex(
    r"[€£$]?\s?(-?(?:\d{1,3}(?:[ \u202f]\d{3})+|\d+(?:[.,'\u00a0]\d{3})*)(?:[.,]\d+)?)"
    r"\s?(?:[€£$]|[A-Za-z]{3})?"
)


def row_cells(line: str) -> Cells:
    """Return the cells of a row; those without a value are left out."""
    parts = (part.partition(": ") for part in line.split("; "))
    return {name.strip(): value.strip() for name, _, value in parts if value.strip()}


def row_line(cells: Iterable[tuple[str, str]]) -> str:
    """Return a row as ``name: value; name: value``; the cells without a value are left out."""
    return "; ".join(f"{name}: {value.replace('; ', ', ')}" for name, value in cells if value)


def with_plain_decimals(rows: Sequence[Cells]) -> list[Cells]:
    """Return rows with a 0 behind numbers of three decimals, which otherwise are read as thousands.

    A column proves that its mark is that of decimals by another number of them, or by 0.125.
    """
    marks = {name: mark for name in column_names(rows) if (mark := _decimal_mark(rows, name))}
    if not marks:
        return [*rows]
    return [
        {
            name: _THOUSANDTHS.sub(r"\g<0>0", value)
            if name in marks and value.count(marks[name]) == 1
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _decimal_mark(rows: Sequence[Cells], name: str) -> str:
    """Return the mark that only decimals of a column stand behind; "" if it isn't known."""
    values = [row[name] for row in rows if is_number(row.get(name, ""))]
    proven = {match[1] or match[2] for value in values if (match := _PROVES_DECIMALS.search(value))}
    refuted = {match[1] for value in values if (match := _PROVES_THOUSANDS.search(value))}
    marks = proven - refuted
    return marks.pop() if len(marks) == 1 else ""


def drawn_cells(line: str) -> list[str]:
    """Return the cells of a line of a table that is drawn with bars: ``| Ann | Rome |``."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [_BARE_CELL.sub("", cell).replace("\\|", "|").strip() for cell in _BAR.split(inner)]


def drawn_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of a drawn table; none if two have the same."""
    plain = [cell.replace(":", " ").replace(";", " ").strip() for cell in cells]
    names = [cell or f"column {place}" for place, cell in enumerate(plain, 1)]
    return tuple(names) if len(set(names)) == len(names) > 1 else ()


def is_rule(cells: Sequence[str]) -> bool:
    """Return whether a line of a drawn table is the one below the names of its columns."""
    return bool(cells) and all(map(_RULE_CELL.fullmatch, cells))


def is_sum(cells: Cells) -> bool:
    """Return whether a row adds up others, or says what may be spent."""
    if any(_IS_SUM.fullmatch(value) for value in cells.values()):
        return True
    if any(_MAY_BE_SUM.fullmatch(value) for value in cells.values()):
        return not any(map(date_spans, cells.values()))
    if not any(_BALANCE.fullmatch(value) for value in cells.values()):
        return False
    said = [
        value
        for name, value in cells.items()
        if not (_CURRENCY.fullmatch(name) or is_number(value) or date_spans(value))
    ]
    return len(said) == 1


def amount_column(rows: Sequence[Cells]) -> str:
    """Return the name of the column of amounts that can be added up; "" if there is none."""
    return max(amount_columns(rows), key=lambda name: bool(_WHOLE.search(name)), default="")


def amount_columns(rows: Sequence[Cells]) -> list[str]:
    """Return the names of the columns of amounts that can be added up."""
    return [name for name in column_names(rows) if _is_amount(rows, name)]


def in_and_out(rows: Sequence[Cells], title: str) -> tuple[str, str] | None:
    """Return the columns of money that came in and that went out, where a table has one of each."""
    names = column_names(rows)
    came, went = (
        [name for name in names if each.fullmatch(name)] for each in (_MONEY_IN, _MONEY_OUT)
    )
    if len(came) != 1 or len(went) != 1:
        return None
    amounts = [row[name] for row in rows for name in (*came, *went) if name in row]
    is_money = _OF_MONEY.search(" ".join([title, *came, *went]).replace("_", " ")) is not None
    is_money = is_money or all(map(_IN_CENTS.search, amounts))
    return (came[0], went[0]) if is_money and all(map(is_number, amounts)) else None


def is_summable(name: str) -> bool:
    """Return whether the numbers of a column may be added up: no rates, prices of one or ids."""
    return not _NO_SUM.search(name)


def is_per_time(name: str) -> bool:
    """Return whether the numbers of a column make a sum of each day: hours, but no temperatures."""
    return bool(_OF_AMOUNT.fullmatch(name) or OF_QUANTITY.fullmatch(name))


def is_identifier(rows: Sequence[Cells], name: str) -> bool:
    """Return whether the numbers of a column tell things apart, and so are not added up.

    They are whole, and either the name says so or each is the one after that of the row before.
    """
    values = [row[name] for row in rows if name in row]
    if not all(map(_WHOLE_NUMBER.fullmatch, values)):
        return False
    if _IDENTIFIER.fullmatch(name):
        return True
    numbers = [int(value) for value in values]
    return len(numbers) >= _MIN_IN_SEQUENCE and all(
        second == first + 1 for first, second in pairwise(numbers)
    )


def currencies(rows: Sequence[Cells], column: str) -> set[str]:
    """Return the currencies that rows name, beside their amounts or in a column of their own."""
    amounts = [row[column] for row in rows if is_number(row.get(column, ""))]
    beside = {_NO_MARK.sub("", amount) for amount in amounts}
    return {
        mark.upper()
        for mark in beside.union(
            value for row in rows for name, value in row.items() if _CURRENCY.fullmatch(name)
        )
        if mark
    }


def are_of_one_currency(rows: Sequence[Cells], column: str) -> bool:
    """Return whether the amounts of a column have one currency, and all say so or none does."""
    beside = {_NO_MARK.sub("", row.get(column, "")) for row in rows}
    return len(beside) == 1 and len(currencies(rows, column)) <= 1


def text_columns(rows: Sequence[Cells]) -> list[str]:
    """Return the names of the columns whose values are not numbers."""
    return [
        name
        for name in column_names(rows)
        if not _is_amount(rows, name) and not any(is_number(row.get(name, "")) for row in rows)
    ]


def choosing_columns(rows: Sequence[Cells]) -> list[str]:
    """Return the columns whose values choose rows: all but those of quantities and dates."""
    return [
        name
        for name in column_names(rows)
        if is_identifier(rows, name)
        or not all(is_number(row[name]) or is_date(row[name]) for row in rows if name in row)
    ]


def category_columns(rows: Sequence[Cells]) -> list[str]:
    """Return the columns of which rows share values, other than yes and no."""
    found = []
    for name in choosing_columns(rows):
        values = [row[name].lower() for row in rows if name in row]
        if len(set(values)) < len(values) and not set(values) <= YES | NO:
            found.append(name)
    return found


def is_of_name(cell: str, value: str) -> bool:
    """Return whether a cell is a value in small letters, or a longer name: "Ashdown North".

    "Not paid" and "partly paid" are not "paid".
    """
    said = cell.lower()
    return said == value or (cell[:1].isupper() and said.startswith(f"{value} "))


def has_other_states(cells: Iterable[str], values: Iterable[str]) -> bool:
    """Return whether cells that were chosen by a state say more: "Open (disputed)" for open."""
    longer = tuple(f"{value} " for value in values if _STATE.fullmatch(value))
    return any(cell.lower().startswith(longer) for cell in cells)


def is_of_payments(rows: Sequence[Cells], column: str, title: str) -> bool:
    """Return whether what a column comes to may be asked for: not where it is a list of prices.

    Money that was spent or earned is that of a table with a day, a person or a quantity; prices
    add up only with a day, and with no quantity that they are to be multiplied by.
    """
    names = column_names(rows)
    has_days = any(any(times_in_column(rows, name) or ()) for name in names)
    if _LIST_PRICE.fullmatch(column) and not _OF_TOTAL.search(column):
        return has_days and not any(map(OF_QUANTITY.fullmatch, names))
    said = re.sub(r"[_\W]+", " ", " ".join([title, *names]))
    return (
        has_days
        or bool(IS_COSTS.search(said) or IS_INCOME.search(said))
        or any(map(_OF_PERSON.fullmatch, names))
        or any(name != column and is_quantity(rows, name) for name in names)
    )


def has_price_of_many(cells: Cells) -> bool:
    """Return whether a row has an amount and a quantity, but no price of one."""
    amount = amount_column([cells])
    return (
        bool(amount)
        and not any(map(_UNIT_PRICE.search, cells))
        and any(name != amount and is_quantity([cells], name) for name in cells)
    )


def state_paid(cells: Sequence[Cells]) -> tuple[str, ...]:
    """Return the column of categories of which one is paid, with how it is written there."""
    for name in category_columns(cells):
        if paid := [row[name] for row in cells if SAYS_PAID.fullmatch(row.get(name, ""))]:
            return name, paid[0].lower()
    return ()


def reductions(rows: Sequence[Cells], column: str) -> str:
    """Return what rows with amounts below 0 come to, and for what they are if they are few."""
    names = [next((row[name] for name in choosing_columns([row])), "") for row in rows]
    amount = written(round(sum(number(row[column]) for row in rows), 2))
    if len(rows) > _MOST_NAMED or not all(names):
        return f"{amount} in {len(rows)} row{'s' if len(rows) > 1 else ''} below 0"
    return f"{amount} for {', '.join(dict.fromkeys(names))}"


def columns_before_numbers(
    rows: Sequence[Cells], question: str, languages: Sequence[str]
) -> dict[str, str]:
    """Return the columns that a question names before a number ("tank 9"), by that number."""
    columns = {
        terms: name
        for name in column_names(rows)
        if (terms := frozenset(query_terms(re.sub(r"[_\W]+", " ", name), languages)))
    }
    return {
        value: columns[terms]
        for name, value in pairwise(re.findall(r"\w+", question))
        if value.isdecimal() and (terms := frozenset(query_terms(name, languages))) in columns
    }


def has_more(value: str, asked: frozenset[str], languages: Sequence[str]) -> bool:
    """Return whether a value is of more than the terms asked for: a "compressor chiller 1".

    A name of which a part is asked for is not: "Kestrel Build" is Kestrel.
    """
    terms = frozenset(query_terms(value, languages))
    words = re.findall(r"[^\W\d_]{4,}", value)
    return not asked.isdisjoint(terms) and not terms <= asked and any(map(str.islower, words))


def has_longer_names(
    values: Iterable[str], asked: frozenset[str], languages: Sequence[str]
) -> bool:
    """Return whether values are what is asked for and longer names: Ashdown and Ashdown North."""
    terms = {frozenset(query_terms(_ASIDE.sub("", value), languages)) for value in values}
    return len({each <= asked for each in terms if not asked.isdisjoint(each)}) > 1


def are_namesakes(values: Iterable[str], asked: frozenset[str], languages: Sequence[str]) -> bool:
    """Return whether values are several names, of which only what they share is asked for.

    "Garden chair" and "Garden table" are no names.
    """
    names = {_ASIDE.sub("", value) for value in values}
    first = {name.partition(" ")[0] for name in names}
    shared = frozenset(query_terms(first.pop(), languages)) if len(first) == 1 else frozenset()
    return (
        len(names) > 1
        and bool(shared)
        and all(
            _NAME.fullmatch(name) and asked.intersection(query_terms(name, languages)) == shared
            for name in names
        )
    )


def times_in_column(
    rows: Sequence[Cells],
    name: str,
    written_at: datetime | None = None,
    is_day_first: bool | None = None,
) -> tuple[str, ...] | None:
    """Return the dates in a column, "" for a missing one; None once a cell is something else.

    They are in ISO 8601: days, months or years.
    """
    times = []
    for row in rows:
        cell = row.get(name, "")
        time = _time_of_cell(cell, written_at, is_day_first) if cell else ""
        if cell and not time:
            return None
        times.append(time)
    return tuple(times)


def of_debtor(name: str) -> bool:
    """Return whether a column says who has to pay."""
    return _OF_DEBTOR.fullmatch(name) is not None


def of_creditor(name: str) -> bool:
    """Return whether a column says who is to be paid."""
    return _OF_CREDITOR.fullmatch(name) is not None


def paid_column(rows: Sequence[Cells]) -> str:
    """Return the column of dates, or of yes and no, that says what is paid; "" if there is none."""
    for name in column_names(rows):
        values = [row[name] for row in rows if name in row]
        if _IS_PAID.fullmatch(name) and all(
            is_date(value) or value.lower() in YES | NO for value in values
        ):
            return name
    return ""


def is_quantity(rows: Sequence[Cells], name: str) -> bool:
    """Return whether all values of a column are numbers, which don't just tell things apart."""
    values = [row[name] for row in rows if name in row]
    return all(map(is_number, values)) and not is_identifier(rows, name)


def is_date(value: str) -> bool:
    """Return whether a value is a date and nothing else."""
    spans = date_spans(value)
    return len(spans) == 1 and spans[0].end - spans[0].start == len(value)


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty or says no."""
    return cell.lower() in {"", *NO}


def is_unpaid(cell: str) -> bool:
    """Return whether a cell in a column that says what is paid says that it is not."""
    return is_missing(cell) or cell.lower() in _UNPAID


def is_cancelled(cells: Cells) -> bool:
    """Return whether a cell of a row says that nothing is to be paid any more."""
    return any(map(_CANCELLED.fullmatch, cells.values()))


def is_same_number(cell: str, value: str) -> bool:
    """Return whether a cell is the same number as a value, however both are written."""
    return is_number(cell) and number(cell) == number(value)


def is_number(value: str) -> bool:
    """Return whether a value is a number or an amount of money."""
    return _NUMBER.fullmatch(value) is not None


def has_unread_number(value: str) -> bool:
    """Return whether a value is no number but has one: "(4.00)", "about 30"."""
    return not is_number(value) and any(map(str.isdigit, value))


def number(value: str) -> float:
    """Return the number that a value is; 0 if it is none."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return 0.0
    return float(re.sub(r"[,.' \u00a0\u202f](?=\d{3}(?:\D|$))", "", match[1]).replace(",", "."))


def written(amount: float) -> str:
    """Return ``1,234.50``, or ``1,234`` where there are no cents."""
    return f"{amount:,.2f}".removesuffix(".00")


def column_names(rows: Sequence[Cells]) -> list[str]:
    """Return the names of the columns of rows, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _is_amount(rows: Sequence[Cells], name: str) -> bool:
    said = [row[name] for row in rows if name in row]
    if not _AMOUNT.search(name) or _NO_AMOUNT.search(name) or is_identifier(rows, name):
        return False
    return sum(map(is_number, said)) >= 0.8 * len(said)


def _time_of_cell(cell: str, written_at: datetime | None, is_day_first: bool | None) -> str:
    """Return the date that a cell is, in ISO 8601; "" if it is something else."""
    spans = date_spans(cell, written_at, is_day_first=is_day_first)
    if len(spans) != 1:
        return ""
    beside = cell[: spans[0].start] + cell[spans[0].end :]
    return spans[0].iso if _BESIDE_DATE.fullmatch(beside) else ""
