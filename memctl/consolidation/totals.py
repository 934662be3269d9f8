"""What tables say: sums over limits that are named anywhere, sums of years, new prices."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.statements import OF_PROSE, Slot, Statement, StemWeights, slots_of
from memctl.consolidation.value_pairs import CONDITION, names_and_versions, naming_stems
from memctl.formatting import format_count
from memctl.language.date_mentions import date_spans
from memctl.language.sentence_values import CHANGE_WORDS, values
from memctl.language.table_amounts import (
    Cells,
    amount_column,
    column_names,
    currencies,
    is_number,
    is_sum,
    number,
    text_columns,
    written,
)
from memctl.language.term_analysis import terms
from memctl.search.answering.states_over_time import CHANGE_PHRASE

_LIMIT_WORDS = (
    r"budget|cap(?:ped)?|limit|maximum|max|at most|under|more than|not a cent|"
    r"have .{1,20} for (?:it|this|that|them)|set aside|put aside|ceiling|"
    r"allowance|up to|quoted?|quotation|estimated?|höchstens|obergrenze|"
    r"plan(?:s|ned)? (?:said|says|was|were)|"
    r"kostenrahmen|plafond|presupuesto|máximo|preventivo|massimo"
)
_LIMIT = re.compile(rf"\b(?P<word>{_LIMIT_WORDS})\b", re.IGNORECASE)
_WORDING = {
    "cap": "cap", "limit": "limit", "maximum": "limit", "max": "limit", "quot": "quote",
    "estim": "estimate", "ceiling": "ceiling", "plan": "plan", "allowance": "allowance",
}  # fmt: skip
_YEARLY = r"(?:annual(?:ly)?|yearly|jährlich\w*|annuel\w*|anual|annuale)"
_OF_A_YEAR = re.compile(
    r"\b(?:(?:(?:for|in|of|per|a|this|each) (?:the )?year|(?:this|next|per) annum|"
    r"im jahr|pro jahr|par an|al año|all'anno)\b|"
    rf"{_YEARLY} (?:\w+ )?(?:{_LIMIT_WORDS})\b|(?:{_LIMIT_WORDS}) {_YEARLY}\b)|"
    rf"\d (?:\w+ )?{_YEARLY}\b",
    re.IGNORECASE,
)
"""Says that a limit is one for a year."""
_BREAK = re.compile(r"[,;.()](?=\s|$)|\s[-–—]\s")
"""Ends a part of a sentence."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_PARTY = re.compile(
    r"who(?:m)?|what|payee|paid[ _]to|vendor|supplier|shop|store|merchant|seller|customer|client|"
    r"item|purpose|description|details|wer|was|wofür|händler|lieferant|kund(?:e|in)|zweck|"
    r"fournisseur|bénéficiaire|proveedor|concepto|fornitore|descrizione",
    re.IGNORECASE,
)
"""A column that says for what or to whom the amount of a row is paid."""
_STATE = re.compile(
    r"value|worth|price|balance|portfolio|wert|preis|saldo|valeur|prix|valor|precio|valore|prezzo",
    re.IGNORECASE,
)
"""In the name of a column or a table of states of something, which can't be added up."""
_MARK = re.compile(r"[€£$]|(?<![^\W_])(?:eur|gbp|usd|chf)(?![^\W_])", re.IGNORECASE)
"""The currency in the name of a column."""
_FEWEST_ROWS = 2
_MOST_GROUPS = 0.5
"""Values of a column that groups rows, as a share of its rows."""
_LEAST_TITLE, _SHARE_OF_TITLE = 1.2, 0.25
"""Weight of what the title of a table and a limit share, and its share of the title's weight."""
_REGULAR_MONTHS = 3
"""Months in a row with the same payment, after which it is taken to be paid each month."""
_STILL_PAID = timedelta(days=62)
"""A monthly payment that is older than two months may have stopped."""
_LEAST_OF_YEAR = 5
"""Rows of a year whose sum is compared with that of the next one, which also span a part of it."""
_LEAST_SPAN = timedelta(days=150)
_COST = re.compile(
    r"(?<![^\W_])(?:price|fee|tariff|rent|preis|tarif|miete|prix|loyer|precio|tarifa|"
    r"alquiler|prezzo|tariffa|affitto|prijs|tarief|huur)(?![^\W_])",
    re.IGNORECASE,
)
"""In the name of a column of what one of something costs."""
_RATE = re.compile(
    r"(?:(?:hourly|daily|weekly|monthly|yearly|annual|hour|day|week|night|room|pay|our|old|new)"
    r"[ _-])?rate(?:[ _-](?:per|an?|/)[ _-]\w+)?|satz",
    re.IGNORECASE,
)
"""The name of a column of a rate of money."""
_ANY_RATE = re.compile(r"(?<![^\W_])(?:rate|satz|per)(?![^\W_])", re.IGNORECASE)
"""In the name of a column of a rate, which is one of money only beside a currency: "beats per
minute", "hours per week"."""
_PRICE = re.compile(r"(?<![^\W_])(?:price|preis|prix|precio|prezzo|prijs)(?![^\W_])", re.IGNORECASE)
"""In the name of a column of what an item costs, and not the work for somebody."""
_NO_THING = re.compile(
    r"(?<![^\W_])(?:status|state|paid|notes?|comments?|remarks?|stato|estado|bezahlt|payée?|"
    r"pagad[oa]|pagat[oa]|betaald)(?![^\W_])",
    re.IGNORECASE,
)
"""In the name of a column of what became of a row, or is said of it."""
_FEWEST_RATES = 2
"""Rows for each rate that somebody had, on average; with fewer they are of different things."""
_FEWEST_ALIKE, _FEWEST_OF_LISTS = 4, 2
"""Entries that two lists of prices have in common, and any two versions of one list."""
_HELD = re.compile(
    r"(?:task |project )?(?:owner|lead|responsible|(?:person )?responsible|in charge|assigne[de]|"
    r"assigned to|contact|holder|status|state|supplier|provider|insurer|vendor|day|weekday|place|"
    r"location|venue|room|verantwortlich\w*|zuständig\w*|status|ort|raum|tag|lieferant|"
    r"responsable|statut|lieu|jour|fournisseur|estado|lugar|proveedor|luogo|stato|fornitore)",
    re.IGNORECASE,
)
"""The name of a column of who or what has a thing now, where it is or how it stands."""
_BEFORE_NEW = re.compile(
    r"(?:\b(?:it|that|he|she|they)['’](?:s|re)|\b(?:is|are|costs?|now|to|at)|[→:=>]|"
    r"\b(?:jetzt|nun|auf|kostet|à|est|es|cuesta|costa))"
    r"\s+(?:(?:now|just|only|about|jetzt|nur)\s+)?[€£$]?$",
    re.IGNORECASE,
)
"""Stands before the value that something has."""
_PER_UNIT = re.compile(r" ?(?:an?|per|pro|le|la|/) ?(?P<unit>[^\W\d_]+)", re.IGNORECASE)
"""After a price: what it is the price of, which the row of a list may say, too."""
_UNITS = {
    "kilo": "kg", "kilos": "kg", "kilogram": "kg", "metre": "m", "meter": "m", "litre": "l",
    "liter": "l", "gram": "g", "tonne": "t", "ton": "t", "pound": "lb",
}  # fmt: skip
_INTRODUCTION = re.compile(
    r"\b(?:(?:i am|i['’]m|we are|we['’]re) (?:very |so )?(?:sorry|afraid|glad|happy) to "
    r"(?:say|tell you|announce|inform you)|(?:please )?note|we (?:must|have to) tell you)"
    r"(?: that)?\b|^dear [^,]+,",
    re.IGNORECASE,
)
"""Says nothing of what follows."""
_HALVED = re.compile(r"\b(?:halv(?:ed|es|ing)|halbiert|dimezzat[oa])\b", re.IGNORECASE)
_DOUBLED = re.compile(
    r"\b(?:doubl(?:ed|es|ing)|verdoppelt|doublée?|raddoppiat[oa])\b", re.IGNORECASE
)
_STEP = re.compile(r"\W*(?:more|less|fewer|off|extra|mehr|weniger)\b", re.IGNORECASE)
"""Stands after a value by which another one has changed."""
_LEAST_NAME = 0.5
"""Weight of what an entry is called, where a rare word has 1: a note that has it is of it."""
_LARGEST_STEP = 2.5
"""Largest ratio of two values of one entry."""
_OF_ENTRY_STRENGTH = 0.8
_LONGEST_CELL = 40
"""Characters of a value; a longer cell is a remark."""
_MOST_NAMED = 4
_OF_TABLE_STRENGTH, _OF_YEARS_STRENGTH = 1.5, 0.4
"""Strengths of new prices, which a table says, and of sums of years, which are seldom news."""
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


def find_totals(found: Sequence[Statement], weights: StemWeights, today: date) -> list[Finding]:
    """Return the sums that are over a limit, or will be this year if a payment goes on."""
    limits = [
        each for each in found if not (each.is_row or each.is_question) and _LIMIT.search(each.text)
    ]
    findings = []
    for rows in tables(found):
        for total in _sums(rows):
            title = frozenset(terms(_YEAR.sub(" ", rows[0].memory.title)))
            over = [
                (
                    _fits(total, title, each, weights),
                    each.day,
                    _nearness(slot, each),
                    slot,
                    each,
                    expected,
                )
                for each in limits
                for slot in each.slots
                if slot.value.kind in ("money", "number")
                and (expected := _expected_total(total, each, slot, today)) > slot.amount
                and expected <= _LARGEST * slot.amount
            ]
            fit, _, _, slot, limit, expected = max(
                over, key=lambda item: item[:3], default=_NO_LIMIT
            )
            if fit and slot and limit:
                findings.append(_total_finding(total, limit, slot, expected))
    return findings


_NO_LIMIT = (0.0, None, 0, None, None, 0.0)


def _nearness(slot: Slot, limit: Statement) -> int:
    """Return how near a value stands to the word that says of what kind it is."""
    said = _LIMIT.search(limit.text)
    return -min(abs(slot.value.start - at) for at in said.span()) if said else 0


def _expected_total(total: _Sum, limit: Statement, slot: Slot, today: date) -> float:
    """Return a sum, or what it will be if a monthly payment goes on to the end of this year."""
    last = total.rows[-1].day
    is_running = last.year == limit.day.year == today.year and today - last <= _STILL_PAID
    if total.amount > slot.amount or not (is_running and _is_of_a_year(limit, slot)):
        return total.amount
    months, amount = _regular(total)
    return total.amount + months * amount


def _is_of_a_year(limit: Statement, slot: Slot) -> bool:
    """Return whether the part of a sentence that has a limit says that it is one for a year."""
    text, value = limit.text, slot.value
    start = max((match.end() for match in _BREAK.finditer(text, 0, value.start)), default=0)
    stop = _BREAK.search(text, value.end)
    return _OF_A_YEAR.search(text, start, stop.start() if stop else len(text)) is not None


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


def _total_finding(total: _Sum, limit: Statement, slot: Slot, expected: float) -> Finding:
    most = slot.amount
    word = _LIMIT.search(limit.text)
    said = word["word"].lower() if word else ""
    what = next((name for key, name in _WORDING.items() if said.startswith(key)), "budget")
    days = sorted({row.day for row in total.rows if row.is_dated})
    when = f" ({insight_wording.day_after_day([days[0], days[-1]])})" if len(days) > 1 else ""
    ahead = ""
    if expected > total.amount:
        ahead = f"; if it goes on at {written(_regular(total)[1])} a month, it will be "
        ahead += f"{written(expected)} at the end of {days[-1].year}"
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
    """Yield the rows of each table, without those that add up others.

    The sheets of a workbook are one table; tables in a text are told apart by what is above them.
    """
    by_table: dict[tuple[str, ...], list[Statement]] = defaultdict(list)
    for each in found:
        if each.cells and not is_sum(each.cells):
            is_of_text = each.memory.doc_type in OF_PROSE
            place = (each.memory.heading, next(iter(each.cells))) if is_of_text else ()
            by_table[each.document, *place].append(each)
    yield from (rows for rows in by_table.values() if len(rows) >= _FEWEST_ROWS)


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


# --- years ---------------------------------------------------------------------------------------


def find_years(found: Sequence[Statement], _: StemWeights) -> list[Finding]:
    """Return what tables of payments come to in each of several years."""
    findings: list[Finding | None] = []
    for rows in tables(found):
        column = _paid_column(rows)
        parts: dict[str, list[Statement]] = defaultdict(list)
        for row in rows if column else ():
            if number(row.cells.get(column, "")) and any(map(date_spans, row.cells.values())):
                parts[_YEAR.sub("", row.memory.heading)].append(row)
        findings += [_years_finding(part, column) for part in parts.values()]
    return [finding for finding in findings if finding]


def _paid_column(rows: Sequence[Statement]) -> str:
    """Return the column of what was paid; "" where rows are readings, prices or balances."""
    cells = [row.cells for row in rows]
    column = amount_column(cells)
    is_paid = any(_PARTY.fullmatch(name) for name in column_names(cells))
    return "" if not is_paid or _STATE.search(f"{column} {rows[0].memory.title}") else column


def _years_finding(rows: Sequence[Statement], column: str) -> Finding | None:
    """Return the finding of sums of years; None if they can't be compared or added up."""

    def amount(row: Statement) -> float:
        return number(row.cells[column])

    marks = currencies([row.cells for row in rows], column) or set(_MARK.findall(column)[:1])
    if len(marks) > 1 or min(map(amount, rows)) < 0:
        return None
    years: dict[int, list[Statement]] = defaultdict(list)
    for row in sorted(rows, key=lambda each: each.day):
        years[row.day.year].append(row)
    whole = {
        year: own
        for year, own in years.items()
        if len(own) >= _LEAST_OF_YEAR and own[-1].day - own[0].day >= _LEAST_SPAN
    }
    if len(whole) < 2 or len(whole) < len(years):
        return None
    mark = "".join(marks)
    before, after = ("", f" {mark.upper()}") if mark.isalpha() else (mark, "")
    said = [
        f"{len(own)} entries of {year} come to {before}{written(sum(map(amount, own)))}{after} "
        f"(the last on {insight_wording.day(own[-1].day)})"
        for year, own in whole.items()
    ]
    title = rows[0].memory.title
    return Finding(
        kind="total",
        title=f"{title}, by year",
        headline=f"{title}: {insight_wording.join_items(said)}.",
        evidence=tuple(
            max(own, key=lambda row: number(row.cells[column])) for own in whole.values()
        ),
        about=" ".join(["years", *sorted(terms(title))]),
        strength=_OF_YEARS_STRENGTH,
    )


# --- rates ---------------------------------------------------------------------------------------


def find_rates(found: Sequence[Statement], _: StemWeights) -> list[Finding]:
    """Return the rates and prices of a table that went up, or down, for one party or thing."""
    findings: dict[tuple[int, ...], Finding] = {}
    for rows in tables(found):
        for column in column_names([row.cells for row in rows]):
            if not _is_of_money(rows, column):
                continue
            for name, own in _rows_of_one_thing(rows, column):
                if finding := _rate_finding(name, own, column):
                    findings.setdefault(tuple(map(id, finding.evidence)), finding)
    return list(findings.values())


def _is_of_money(rows: Sequence[Statement], column: str) -> bool:
    """Return whether a column is one of rates or prices."""
    if _COST.search(column) or _RATE.fullmatch(column):
        return True
    marked = any(_MARK.search(row.cells.get(column, "")) for row in rows)
    return _ANY_RATE.search(column) is not None and bool(marked or _MARK.search(column))


def _rows_of_one_thing(
    rows: Sequence[Statement], column: str
) -> Iterator[tuple[str, list[Statement]]]:
    """Yield the rows with a rate or price of one thing for one party, with their names."""
    names = text_columns([row.cells for row in rows])
    dated = [row for row in rows if row.is_dated and number(row.cells.get(column, "")) > 0]
    dated.sort(key=lambda each: each.day)
    for party in filter(_PARTY.fullmatch, names):
        for (value,), own in _grouped(dated, [party]):
            others = [name for name in names if name != party and _divides(own, name, column)]
            for said, part in _grouped(own, others) if value else ():
                yield ", ".join(filter(None, (value, *said))), part


def _grouped(
    rows: Sequence[Statement], columns: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], list[Statement]]]:
    """Yield the values of some columns with the rows that have them."""
    groups: dict[tuple[str, ...], list[Statement]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.cells.get(column, "") for column in columns)].append(row)
    yield from groups.items()


def _divides(rows: Sequence[Statement], other: str, column: str) -> bool:
    """Return whether a column says of which of several things the rates or prices of rows are.

    It does if it differs from rate to rate.  What comes only once each may be jobs at one rate,
    but each item has a price of its own.
    """
    said = [row.cells.get(other, "") for row in rows]
    if _NO_THING.search(other) or any(map(date_spans, said)):
        return False
    at: dict[float, set[str]] = defaultdict(set)
    for row, value in zip(rows, said, strict=True):
        at[number(row.cells[column])].add(value)
    if len(set(map(frozenset, at.values()))) < 2:
        return False
    of_items = _PRICE.search(column) is not None and _PARTY.fullmatch(other) is not None
    return of_items or len(set(said)) < len(said)


def _rate_finding(name: str, rows: Sequence[Statement], column: str) -> Finding | None:
    """Return the finding of a rate that moved in one direction, each step of it held."""
    steps = [rows[0]]
    for row in rows[1:]:
        if number(row.cells[column]) != number(steps[-1].cells[column]):
            steps.append(row)
    amounts = [number(row.cells[column]) for row in steps]
    is_one_way = amounts in (sorted(amounts), sorted(amounts, reverse=True))
    is_held = len(rows) >= _FEWEST_RATES * len(steps)
    if not (1 < len(steps) <= _MOST_NAMED and is_one_way and is_held):
        return None
    said = " to ".join(row.cells[column] for row in steps)
    days = insight_wording.day_after_day([row.day for row in steps])
    title = rows[0].memory.title
    return Finding(
        kind="change",
        title=f"{name}, {column}",
        headline=f"{title}: {column} of {name} went from {said} ({days}).",
        evidence=tuple(steps),
        about=" ".join(["rate", *sorted(terms(f"{name} {column}"))]),
        strength=_OF_TABLE_STRENGTH,
        values=tuple(row.cells[column] for row in steps),
    )


# --- new prices ----------------------------------------------------------------------------------

Entries = Mapping[tuple[str, ...], Statement]
"""The rows of a list by what they are called."""


def find_new_prices(found: Sequence[Statement], _: StemWeights) -> list[Finding]:
    """Return what differs between two lists of the same things, such as the prices of two years.

    They have the same title but for its date, year or version, or their files have the same name
    but for it.
    """
    alike: dict[tuple[object, ...], list[Sequence[Statement]]] = defaultdict(list)
    for rows in tables(found):
        alike[rows[0].memory.namespace, _label_column(rows)].append(rows)
    findings = [
        _list_finding(older, later)
        for lists in alike.values()
        for older, later in _versions(sorted(lists, key=_age))
    ]
    return [finding for finding in findings if finding]


def _versions(
    ordered: Sequence[Sequence[Statement]],
) -> Iterator[tuple[Sequence[Statement], Sequence[Statement]]]:
    """Yield each list that has an earlier version, after the newest one that it has."""
    places: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)  # by version, newest last
    for place, later in enumerate(ordered):
        older = []
        for which, (name, version) in enumerate(names_and_versions(later[0].memory)):
            if not name:
                continue
            of_name = places[which, name]
            older += [next((of_name[each] for each in reversed(of_name) if each != version), -1)]
            of_name.pop(version, None)
            of_name[version] = place
        newest = max(older, default=-1)
        if newest >= 0:
            yield ordered[newest], later


def _columns(rows: Sequence[Statement]) -> frozenset[str]:
    return frozenset(column_names([row.cells for row in rows]))


def _label_column(rows: Sequence[Statement]) -> str:
    return column_names([row.cells for row in rows])[0].casefold()


def _age(rows: Sequence[Statement]) -> tuple[str, int, str]:
    """Return by what lists of the same things are in order: year, version, day."""
    version = next((said for _, said in names_and_versions(rows[0].memory) if said), "")
    year = _YEAR.search(version)
    number = re.search(r"\d+", version)
    is_version = number is not None and year is None
    return (
        version if year else "",
        int(number.group()) if number and is_version else 0,
        rows[0].day.isoformat(),
    )


def _list_finding(earlier: Sequence[Statement], later: Sequence[Statement]) -> Finding | None:
    """Return the finding of two lists; None if they have too little in common, or all of it."""
    old, new = _entries(earlier), _entries(later)
    common = [name for name in new if name in old]
    is_of_prices = len(common) >= _FEWEST_ALIKE and _columns(earlier) == _columns(later)
    if len(common) < max(_FEWEST_OF_LISTS, min(len(old), len(new)) / 2):
        return None
    is_ordered = _age(earlier) < _age(later)
    flow = "" if is_of_prices else amount_column([row.cells for row in (*earlier, *later)])
    changes = [
        (name, change)
        for name in common
        if (change := _changed_values(old[name].cells, new[name].cells, flow, is_of_prices))
    ]
    if not changes:
        return None
    named = "; ".join(f"{', '.join(name)} {change}" for name, change in changes[:_MOST_NAMED])
    named = named if is_ordered else named.replace(" → ", " or ")
    more = f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
    one, other = (insight_wording.source(rows[0].memory) for rows in (earlier, later))
    in_what = " in numbers" if is_of_prices else ""
    title = later[0].memory.title
    only = [
        f"; {word}: {_named(names)}"
        for word, names in (
            ("new" if is_ordered else f"only in {other}", [n for n in new if n not in old]),
            ("gone" if is_ordered else f"only in {one}", [n for n in old if n not in new]),
        )
        if names
    ]
    return Finding(
        kind="change" if is_ordered else "contradiction",
        title=f"{title}, what {'is new' if is_ordered else 'differs'}",
        headline=f"{len(changes)} of {len(common)} entries that both have differ{in_what} "
        f"between {one} and {other}: {named}{more}{''.join(only)}.",
        evidence=tuple(each[changes[0][0]] for each in (old, new)),
        about=" ".join(["prices", *sorted(terms(title))]),
        strength=_OF_TABLE_STRENGTH,
    )


def find_outdated_entries(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return the values of lists that a newer note says are others now.

    A note is one on an entry if it names it, and no other one of the list, and says that a value
    of the same kind is new: "they have halved the bisoprolol, so it's 1.25 now".  Either this has
    the unit of the old value, or the note names the column or says how many times the old value
    it is; and the note names nothing else that it may be of.
    """
    notes: dict[str, list[tuple[Statement, Slot]]] = defaultdict(list)
    for each in found:
        if each.is_dated and not (each.is_row or each.topic or each.is_question):
            for slot in filter(None, (_new_value(each),)):
                for stem in each.stems:
                    notes[stem].append((each, slot))
    newest: dict[tuple[str, ...], list[tuple[Statement, Statement, Slot, str]]] = defaultdict(list)
    for rows in tables(found):
        entries = [(row, terms(name[0])) for name, row in _entries(rows).items() if len(name) == 1]
        for row, name in entries:
            if not name or weights.sum(name) < _LEAST_NAME * weights.rare or not row.is_dated:
                continue
            for note, slot in notes.get(max(name, key=weights.of), ()):
                column = _outdated_column(row.cells, note, slot) if row.precedes(note) else ""
                if not column or _may_be_of_another(
                    note, slot, {*name, *terms(column)}, _units_of(row)
                ):
                    continue
                if sum(note.stems.issuperset(stems) for _, stems in entries) == 1:
                    key = (row.memory.namespace, *sorted(name), column.casefold())
                    newest[key].append((row, note, slot, column))
    return [
        _outdated_finding(*max(said, key=lambda item: (item[1].day, item[0].day)))
        for said in newest.values()
    ]


def _new_value(note: Statement) -> Slot | None:
    """Return the only value that a note says is new; None if there is none."""
    new = [
        slot
        for slot in note.slots
        if slot.value.kind in ("money", "quantity", "number", "percent")
        and _BEFORE_NEW.search(note.text, 0, slot.value.start)
        and not CONDITION.search(note.text, 0, slot.value.start)
    ]
    return new[0] if len(new) == 1 and CHANGE_WORDS.search(note.text) else None


def _outdated_column(cells: Cells, note: Statement, new: Slot) -> str:
    """Return the only column of a row that may have had a new value before; "" if none has."""
    old = {name: slots_of(cell) for name, cell in list(cells.items())[1:]}
    if any(slot.value.agrees_with(new.value) for slots in old.values() for slot in slots):
        return ""
    fitting = [
        name
        for name, slots in old.items()
        if len(cells[name]) <= _LONGEST_CELL and len(slots) == 1 and _may_become(slots[0], new)
    ]
    if len(fitting) != 1 or not _is_tied(note, new, old[fitting[0]][0], fitting[0]):
        return ""
    return fitting[0]


def _is_tied(note: Statement, new: Slot, old: Slot, column: str) -> bool:
    """Return whether a note says that a new value is one of the kind that a column has."""
    one, other = old.value, new.value
    if one.kind == other.kind and one.unit == other.unit != "":
        return True
    if not note.stems.isdisjoint(terms(column)):
        return True
    times, said = (0.5, _HALVED) if new.amount < old.amount else (2.0, _DOUBLED)
    return new.amount == times * old.amount and said.search(note.text) is not None


def _may_be_of_another(
    note: Statement, new: Slot, own: Collection[str], units: Collection[str]
) -> bool:
    """Return whether a note names something besides an entry and its column, near both.

    "The flour went up, a bag costs 8 now" names a bag between the entry and the value, "the price
    of the flour went up" a price beside the entry.
    """
    text, value = note.text, new.value
    verb = _BEFORE_NEW.search(text, 0, value.start)
    stop = _BREAK.search(text, value.end)
    before = _BREAK.split(text[: verb.start() if verb else value.start])
    while before and frozenset(terms(before[0])).isdisjoint(own):
        del before[0]
    if not before or _STEP.match(text, value.end):
        return True
    after = text[value.end : stop.start() if stop else len(text)]
    unit = _PER_UNIT.match(after)
    if unit and _UNITS.get(unit["unit"].lower(), unit["unit"].lower()) in units:
        after = after[unit.end() :]
    said = " ".join((*before, after))
    said = _INTRODUCTION.sub(" ", said)
    for pattern in (CHANGE_WORDS, _HALVED, _DOUBLED):
        said = pattern.sub(" ", said)
    return not naming_stems(said, note.language) <= {*own}


def _units_of(row: Statement) -> set[str]:
    """Return the words of a row of which one may be the unit of its price."""
    words = re.findall(r"[^\W\d_]+", " ".join(row.cells.values()).lower())
    return {_UNITS.get(word, word) for word in words}


def _may_become(old: Slot, new: Slot) -> bool:
    """Return whether a value may have changed to another one, which may leave its unit out."""
    one, other = old.value, new.value
    if "date" in (one.kind, other.kind) or "time" in (one.kind, other.kind):
        return False
    if one.kind != other.kind and "number" not in (one.kind, other.kind):
        return False
    if one.unit and other.unit and one.unit != other.unit:
        return False
    low, high = sorted((old.amount, new.amount))
    return 0 < low < high <= _LARGEST_STEP * low


def _outdated_finding(row: Statement, note: Statement, new: Slot, column: str) -> Finding:
    name = next(iter(row.cells.values()))
    days = insight_wording.day_after_day([row.day, note.day])
    return Finding(
        kind="change",
        title=f"{name}, {column}",
        headline=f"“{name}, {column}”: {CHANGE_PHRASE} {row.cells[column]} to {new.value.text} "
        f"({days}); the list in {insight_wording.source(row.memory)} has the old value.",
        evidence=(row, note),
        about=" ".join(["entry", *sorted(terms(f"{name} {column}"))]),
        strength=_OF_ENTRY_STRENGTH,
        values=(row.cells[column], new.value.text),
    )


def _named(names: Sequence[tuple[str, ...]]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    shown = [" ".join(name) for name in names[:_MOST_NAMED]]
    return insight_wording.join_items([*shown, *more])


def _entries(rows: Sequence[Statement]) -> Entries:
    """Return the rows by their first cell, with the second where several have the same first."""
    cells = [list(row.cells.values()) for row in rows]
    count = Counter(values[0] for values in cells)
    return {
        tuple(values[: 1 if count[values[0]] == 1 else 2]): row
        for values, row in zip(cells, rows, strict=True)
        if not is_number(values[0]) and not date_spans(values[0])
    }


def _changed_values(old: Cells, new: Cells, flow: str, every_number: bool) -> str:
    """Return the values that differ, "3.90 → 4.20, 2 → 3"; "" if none does.

    Args:
        old: The cells of the earlier row.
        new: Those of the later one.
        flow: The column of amounts that are added up, of which each list has its own.
        every_number: Whether any number counts, not only an amount, a measured value or a price.
    """
    return ", ".join(
        f"{old[name]} → {new[name]}"
        for name in new
        if name in old
        and (name != flow or _COST.search(name))
        and _is_changed(name, old[name], new[name], every_number)
    )


def _is_changed(column: str, one: str, other: str, every_number: bool) -> bool:
    """Return whether two cells of a column give different values of one thing."""
    if is_number(one) and is_number(other):
        is_told = every_number or _COST.search(column) or _MARK.search(f"{one}{other}")
        return bool(is_told) and number(one) != number(other)
    if every_number or max(len(one), len(other)) > _LONGEST_CELL:
        return False
    if _HELD.fullmatch(column):
        words = [re.sub(r"\W+", " ", cell).strip().casefold() for cell in (one, other)]
        return all(words) and words[0] not in words[1] and words[1] not in words[0]
    mine, theirs = values(one), values(other)
    if not (len(mine) == len(theirs) == 1 and mine[0].kind == theirs[0].kind != "time"):
        return False
    is_whole = all(not found[0].start for found in (mine, theirs))
    return is_whole and mine[0].unit == theirs[0].unit and not mine[0].agrees_with(theirs[0])
