"""Totals, means, counts and extremes: what a table's rows come to, where a question asks for that.

A table answers if each word of the question stands in its title, its columns or its rows; words of
rows and a date choose which rows are added up, and the name of a column which numbers.  What is
counted must be what the table is of, by its title, or one of its columns of numbers.  A table of
what customers pay doesn't answer what was spent.  The answer says what was added up or counted, and
gives parts where they are asked for or where two people share the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.date_mentions import date_spans, is_day_before_month
from memctl.language.table_amounts import (
    IS_COSTS,
    IS_INCOME,
    IS_PAY,
    NO,
    OF_DATE,
    OF_QUANTITY,
    OF_TIMES,
    SAYS_PAID,
    YES,
    Cells,
    amount_column,
    amount_columns,
    are_namesakes,
    are_of_one_currency,
    category_columns,
    choosing_columns,
    column_names,
    columns_before_numbers,
    currencies,
    has_longer_names,
    has_more,
    has_other_states,
    has_price_of_many,
    has_unread_number,
    in_and_out,
    is_cancelled,
    is_date,
    is_identifier,
    is_missing,
    is_number,
    is_of_name,
    is_of_payments,
    is_per_time,
    is_quantity,
    is_same_number,
    is_sum,
    is_summable,
    is_unpaid,
    number,
    of_creditor,
    of_debtor,
    paid_column,
    reductions,
    row_cells,
    state_paid,
    times_in_column,
    with_plain_decimals,
    written,
)
from memctl.language.term_analysis import WORD_PUNCTUATION, query_terms
from memctl.language.time_periods import days_of_iso, lacks_year
from memctl.patterns import lazy_regex
from memctl.records import Answer
from memctl.search.answering.evidence_parts import is_table_row
from memctl.search.answering.excerpts import UNSURE, HitExcerpt, cite, joined_by_passage
from memctl.search.answering.search_outcome import SearchOutcome, TableRow, table_rows
from memctl.search.query.question import TimeExpression
from memctl.search.query.time_expressions import years_meant

METHOD = "total/1"
_SAYS_TOTAL = (
    r"\b(?:totals?|altogether|in all|sum (?:of|up)|add(?:ed)? up|in sum|insgesamt|gesamtsumme|summe"
    r"|au total|en tout|in totale|en total)\b"
)
_ASKS_PLAINLY = lazy_regex(_SAYS_TOTAL, re.IGNORECASE)
"""What only a total answers."""
_ASKS_TOTAL = lazy_regex(
    rf"{_SAYS_TOTAL}"
    r"|\b(?:how much (?:money )?(?:have|has|had|did) "
    r".{0,200}\b(?:spen[dt]|pay|paid|cost|billed?|invoiced?|earn(?:ed)?|received?|ma[dk]e)"
    r"|what (?:have|has|did) .{0,200}\b(?:spen[dt]|paid|pay|cost)"
    r"|^\W*(?!(?:who|what|which|whose)\b)\w+"
    r" (?:costs?|spending|expenses?|sales|turnover|income|usage|consumption)"
    r"|zusammen)\b",
    re.IGNORECASE,
)
_NAMES_COSTS = lazy_regex(
    r"\W*(?:what (?:are|were) )?"
    r"(?:(?!(?:what|who|whose|why|when|where|which|how|is|are|was|were|do|does|did|has|have|had)\b)"
    r"[\w&'’.-]+ ){0,5}?(?:costs|spending|expenses|sales|turnover|income|usage|consumption"
    r"|\w*kosten|\w*ausgaben)\b",
    re.IGNORECASE,
)
"""Asks for a total where a time is named."""
_ASKS_MEAN = lazy_regex(
    r"\b(?P<mean>average|mean|avg|durchschnitt\w*|im schnitt|mittelwert|moyenne?s?)\b"
    r"(?:\s+(?P<thing>\w+))?",
    re.IGNORECASE,
)
_ASKS_PARTS = lazy_regex(
    r"\s(?:(?P<per>per|je|pro|par|por)|by|(?:for|in|of) (?:each|every)|nach)\s(?P<by>\w+)"
    r"(?P<more>,|\s(?:and|und|et|y)\b)?",
    re.IGNORECASE,
)
_LENGTHS = {"year": 4, "jahr": 4, "month": 7, "monat": 7, "mois": 7, "day": 10, "tag": 10}
"""Of a time in ISO 8601."""
_TIMES = {
    "jahr": "year", "monat": "month", "mois": "month", "tag": "day", "woche": "week",
    **{word: word for word in ("year", "quarter", "month", "week", "day")},
}  # fmt: skip
"""Words for a time, with what it is called."""
_ASKS_SPENT = lazy_regex(
    r"\b(?:spen[dt]|spending|costs?|(?:we|i) (?:have |had )?(?:pay|paid)|ausgegeben|gekostet"
    r"|dépensé|coûté|speso|gastado)\b(?! (?:us|me) (?:by|from))",
    re.IGNORECASE,
)
_ASKS_EARNED = lazy_regex(
    r"\b(?:earn(?:ed|ings)?|sales|sell|sold|income|revenue|turn(?:ed)? ?over|takings|received?"
    r"|(?:we|i) (?:have |had )?(?:invoiced?|billed?|ma[dk]e)"
    r"|how much (?:money )?(?:has|have|did) (?!(?:we|i|you)\b).{0,200}\bspen[dt]"
    r"|(?:pay|paid)(?: to)? (?:us|me)|(?:get|got|been|were|was) paid"
    r"|verdient|eingenommen|einnahmen|umsatz)\b",
    re.IGNORECASE,
)
_SOMEBODY = r"(?!(?:we|i|you|it|they|the|our|my)\b)(?:[\w'’.-]+ ){1,4}?"
_ASKS_PAY_OF = lazy_regex(
    rf"\b(?:how much\b.{{0,200}}?|what) (?:did|does|do|has|have|had|will) {_SOMEBODY}"
    r"(?:earn(?:s|ed)?|(?:get|got|been) paid)\b(?! (?:for )?(?:us|me)\b)"
    rf"|\bhow much\b.{{0,200}}? (?:did|has|have|had) {_SOMEBODY}received?\b"
    rf"|\b(?:how much\b.{{0,200}}?|what) (?:is|was|are|were) {_SOMEBODY}paid\b",
    re.IGNORECASE,
)
"""What somebody is paid, who is not the one who asks."""
_ASKS_COUNT = lazy_regex(
    r"\W*(?:how (?:many|often)"
    r"|(?:what(?:['’]s| is| was) )?(?:the )?(?:total )?number of"
    r"|wie\s?(?:viele|oft|viel(?=\s(?:kg|km|ha|[hlmt]|kilo\w*|tonnen|liter|meter|stunden)\b))"
    r"|combien de (?:fois)?|quanti|quante|cu[aá]nt[oa]s)\b\s*(?P<counted>.*?)"
    r"(?=\s(?:did|do|does|have|has|had|are|is|were|was|can|will|of|in|on|at|from|with|by|for|since"
    r"|to|haben|hat|sind|waren|wurden|von|in[ms]?|am|bei|avons|ont|sont|abbiamo|sono|hemos|hay)\b"
    r"|\W*$)",
    re.IGNORECASE,
)
_QUALIFIES = lazy_regex(
    r"n['’]t\b|\b(?:not|no|none|never|without|except|but|besides|more|less|fewer|over|under|above"
    r"|other than|outside|excluding|apart from|below|before|after|since|between|till"
    r"|to be|to pay|still|yet|until(?! (?:now|today))|least|most|per|each|every|average|monthly"
    r"|weekly|yearly|nicht"
    r"|kein\w*|ohne|pro|je|jede[nrsm]?|durchschnittlich|außer|mehr|weniger|seit|vor|nach|bis|zwischen|pas"
    r"|sans|sauf|plus|moins|depuis|avant|après|non|senza|tranne|più|meno|da|dopo|prima|sin|excepto"
    r"|más|menos|desde|antes|después)\b",
    re.IGNORECASE,
)
"""What rows with a word are not those asked for because of, though only words choose them."""
_BOUND = lazy_regex(
    r"\b(?:by|up to|as of|through|bis(?: zu[mr]?)?|jusqu['’]\w+)\s*$", re.IGNORECASE
)
"""Before a time, of which rows before it count too."""
_PAID_ONES = lazy_regex(r"\b(?:of|the|all|total|many|any|our) paid\b", re.IGNORECASE)
_STATES = "paid invoiced billed issued sent done used received bezahlt payé pagato pagado"
"""Words of every question that are also what something is."""
_LISTS = lazy_regex(r",|\b(?:and|or|und|oder|et|ou|y|o|e)\b", re.IGNORECASE)
_PARTICIPLE = lazy_regex(r"[^\W\d_]{2,}ed", re.IGNORECASE)
_ASKS_UNPAID = lazy_regex(
    r"\W*(?:(?:which|what) (?P<things>\w+) (?:(?:are|is)(?: still)? (?:unpaid|outstanding)"
    r"|(?:are|is|have|has)(?: still)? not(?: yet)?(?: been)? paid(?: yet)?"
    r"|ha(?:ven|sn)['’]t(?: been)? paid(?: yet)?)"
    r"|(?:how much(?: money)?|what) do(?:es)? (?P<debtor>(?!(?:we|i)\b).{1,60}?)(?: still)? owe"
    r"(?: (?:me|us))?"
    r"|(?:how much(?: money)?|what) do (?:we|i)(?: still)? owe(?: to)? (?P<creditor>.{1,60}?)"
    r"|how much(?: money)? (?:is|are)(?: still)? (?:unpaid|outstanding|owed)"
    r"(?: (?:by|from) (?P<payer>.{1,60}?)| to (?:me|us))?)(?: now| yet)?\W*",
    re.IGNORECASE,
)
_OF_OTHERS = lazy_regex(
    r"\b(?:from|to|by) (?:us|me)\b"
    r"|\b(?:did|does|has|have|had|will) (?!(?:we|i|it|the|our|my|this|that)\b)",
    re.IGNORECASE,
)
"""Asks what somebody else got or gave."""
_ASKS_VALUES = lazy_regex(
    r"\W*(?:in |at |from |for |to |on |by )?(?:which|what) (?P<column>[^\W\d_]{3,}s)\b(?P<rest>.+)",
    re.IGNORECASE,
)
_ASIDE = lazy_regex(r"\([^()]*\)")
_JOINS = lazy_regex(
    r"\b(?:both|only|and|or|all|every|each|also|since|most|least|more|less|first|last|never|no)\b",
    re.IGNORECASE,
)
"""What asks for more than the rows with a value."""
_OWED_TO_US = lazy_regex(r"\bowed\b|\bto (?:us|me)\b", re.IGNORECASE)
_PARTLY = lazy_regex(r"part(?:ly|ial\w*)?\b|teilweise|en partie", re.IGNORECASE)
_SUMS = "total totals altogether all sum sums add added up how much many amount insgesamt summe"
"""Words that ask for a sum and name no column."""
_ASKS_UNIT_PRICE = lazy_regex(
    r"\b(?:price|cost|rate|pay|paid|charge|fee)s?\b.{0,200}"
    r"\b(?:per|each|apiece|a piece|an hour|a mile)\b"
    r"|\b(?:did|does|do|would|will) (?:an?|one|each) .{0,200}\b(?:cost|sell for)\b"
    r"|\b(?:price|cost) (?:of|for) (?:an?|one|each)\b"
    r"|\bhow much (?:is|was|are|were) (?:an?|one|each)\b",
    re.IGNORECASE,
)
_LARGEST = "largest|biggest|highest|greatest|most expensive|costliest|priciest"
_SMALLEST = "smallest|lowest|cheapest|least expensive"
_FIRST, _LAST = "first|earliest", "last|latest|most recent"
_EXTREMES = {
    word: words for words in (_LARGEST, _SMALLEST, _FIRST, _LAST) for word in words.split("|")
}
"""Superlatives, with all that mean the same; the first of these is what it is called."""
_PLACES = {"second": 2, "2nd": 2, "third": 3, "3rd": 3}
_ASKS_EXTREME = lazy_regex(
    r"(?P<before>\W*(?:(?:(?:what|who|when)\b"
    r"|which\b(?P<which>.*?)\b(?:is|was|had|has|did)\b).*?\b(?:the|our|my) |(?:the|our|my) )?)"
    rf"(?:(?P<place>{'|'.join(_PLACES)})[ -])?(?P<extreme>{'|'.join(_EXTREMES)})\b"
    r"(?P<after>(?P<thing>.*?)(?: (?:of|in|on|at|from|for|with|by|since|between|to|that|we|i|ever"
    r"|so|is|was|did|had|has|done)\b.*|\s\d{4}\b.*|\W*))$",
    re.IGNORECASE,
)
_GENERAL = (
    "total totals altogether all sum add added up how much money have has had did do does we i "
    "you they spend spent pay paid pays cost costs invoice invoiced bill billed out so far now "
    "until today for on to from the our my what is are was were in of it amount everything "
    "earn earned receive received make made ever done according everyone everybody overall "
    "many often times time there number with by at can will be been us me use used "
    "insgesamt zusammen summe wie viel haben wir ich für im am vom der ausgegeben bezahlt gekostet "
    "bisher combien avons nous dépensé payé coûté quanto abbiamo speso cuánto hemos gastado"
)
"""Words that every question for a total may have."""
_OF_COUNTED = (
    "drive drove driven travel travelled work worked send sent issue issued "
    "gefahren gearbeitet geschickt"
)
"""Words that a question for a number may have besides: what is done with what is counted."""
_MOST_CITED = 5
_MOST_LISTED = 20
_CONFIDENCE, _CONFIDENCE_OF_TWO = 0.8, 0.5
"""Where one table fits, and where others that do come to something else."""

_Values = Mapping[str, Sequence[tuple[float, TableRow]]]
"""What rows have in some columns, by the names of these."""


class _Extreme(Struct, frozen=True):
    """The rows of a table with the largest or smallest amount, or the first or last day."""

    rows: tuple[TableRow, ...]
    text: str
    is_ambiguous: bool
    """Whether another column of amounts may be meant, or other rows."""


class _Choice(Struct, frozen=True):
    """What of a question chooses rows of a table, besides a time."""

    values: Mapping[str, Sequence[str]]
    """Those of categories, in small letters, by their columns."""
    numbers: Mapping[str, str]
    """The columns that have a number, by that number."""
    filled: Mapping[str, str]
    """The columns with a yes, or a day on which something was done, and how the answer says so."""
    terms: frozenset[str]
    """Those of the other words, which must stand in a row."""
    named: frozenset[str]
    """Those of the values."""
    conditions: Sequence[str]
    """All of this, in words."""
    is_ambiguous: bool
    """Whether a value is also a word of the title."""

    @property
    def asked(self) -> frozenset[str]:
        """The terms of what the rows have."""
        return self.terms | self.named

    def takes(self, outcome: SearchOutcome, cells: Cells, columns: Sequence[str]) -> bool:
        """Return whether it chooses a row with some cells, by words in some columns."""
        return (
            all(
                any(is_of_name(cells.get(name, ""), value) for value in values)
                for name, values in self.values.items()
            )
            and all(is_same_number(cells.get(name, ""), n) for n, name in self.numbers.items())
            and not any(is_missing(cells.get(name, "")) for name in self.filled)
            and self.terms <= _terms(outcome, " ".join(cells.get(name, "") for name in columns))
        )


class _Total(Struct, frozen=True):
    """Rows of a table that are asked for."""

    rows: tuple[TableRow, ...]
    column: str
    """Which is added up; "" where the rows are counted."""
    chosen_by: str
    sheet: str = ""
    """Its heading, where the document has other tables."""
    is_named: bool = False
    """Whether the question has a word of the table's title."""
    is_ambiguous: bool = False
    """Whether some rows may be of something else of a longer name."""
    parts: Mapping[str, Sequence[TableRow]] = {}
    """The rows apart, by what they are of: by month, or by people who share a name."""
    is_mean: bool = False
    per: str = ""
    """The time that each part is of if the mean of their sums is asked for: "day"."""

    @property
    def amount(self) -> float:
        """What they come to."""
        if self.per:
            sums = [sum(self._values(part)) for part in self._valued_parts.values()]
            return round(sum(sums) / len(sums), 2)
        return self._amount_of(self.rows)

    @property
    def _valued_parts(self) -> Mapping[str, Sequence[TableRow]]:
        return {
            of: part for of, part in self.parts.items() if not self.column or self._values(part)
        }

    def _values(self, rows: Sequence[TableRow]) -> list[float]:
        return [number(cells[self.column]) for cells in _cells(rows) if self._has_value(cells)]

    def _amount_of(self, rows: Sequence[TableRow]) -> float:
        if not self.column:
            return len(rows)
        values = self._values(rows)
        return round(sum(values) / (len(values) or 1 if self.is_mean else 1), 2)

    def _has_value(self, cells: Cells) -> bool:
        return not self.column or is_number(cells.get(self.column, ""))

    @property
    def title(self) -> str:
        """What the rows are of, and what they were chosen by."""
        return f"{self.rows[0].hit.title}{self.sheet}{self.chosen_by}"

    @property
    def text(self) -> str:
        """The amount, with what was added up."""
        title = self.title
        valued = [cells for cells in _cells(self.rows) if self._has_value(cells)]
        missing = len(self.rows) - len(valued)
        said, plural = written(self.amount), ""
        if self.parts and not self.per:
            each = [
                f"{written(self._amount_of(part))} for {of}"
                for of, part in self._valued_parts.items()
            ]
            said, plural = ", ".join(each), "s"
        if not self.column:
            return f"{said}: the number{plural} of rows of {title}."
        over = f"over {len(valued)} row{'s' if len(valued) > 1 else ''} of {title}"
        over += f"; {missing} without one." if missing else "."
        if self.per:
            times = len(self._valued_parts)
            of_times = f"of {times} {self.per}{'s' if times > 1 else ''}"
            return f"{said} on average: the mean of the sums of {self.column} {of_times} {over}"
        if self.is_mean:
            return (
                f"{said}{'' if plural else ' on average'}: the mean{plural} of {self.column} {over}"
            )
        below = [cells for cells in valued if number(cells[self.column]) < 0]
        if not plural:
            said += " in total"
            said += (
                f", of which {reductions(below, self.column)}" if below and below != valued else ""
            )
        return f"{said}: the sum{plural} of {self.column} {over}"


def total_answer(outcome: SearchOutcome) -> Answer | None:
    """Return what the rows come to that a question asks for; None where no table tells."""
    asked = outcome.asked.text
    if not (_asks_total(outcome) or _ASKS_PARTS.search(asked)):
        return None
    if _ASKS_UNIT_PRICE.search(asked) and not _ASKS_PLAINLY.search(asked):
        return None
    fitting = list(_totals(outcome))
    found = [each for each in fitting if each.is_named] or fitting
    if not found:
        return None
    best = found[0]
    unsure = best.is_ambiguous or any(each.amount != best.amount for each in found)
    return _answer_of_rows(best.text, best.rows, unsure=unsure)


def _asks_total(outcome: SearchOutcome) -> bool:
    asked = outcome.asked.text
    if any(each.search(asked) for each in (_ASKS_TOTAL, _ASKS_MEAN)) or _ASKS_COUNT.match(asked):
        return True
    has_time = outcome.asked.periods or date_spans(asked)
    return bool(has_time and _NAMES_COSTS.match(asked))


def extreme_answer(outcome: SearchOutcome) -> Answer | None:
    """Return the row that a question asks for as the largest, smallest, first or last of a table.

    It may ask for the second or third largest.  None where the question names no table of such
    things, or many rows are alike.
    """
    asked = _ASKS_EXTREME.match(outcome.asked.text)
    if asked is None:
        return None
    rest = replace(outcome.asked, text=f"{asked['before']}{asked['after'].lstrip()}")
    plain = replace(outcome, asked=rest)
    found = [each for rows in plain.tables if (each := _extreme(plain, rows, asked))]
    if not found or len(found[0].rows) > _MOST_CITED:
        return None
    rows = [row.text for row in found[0].rows]
    unsure = found[0].is_ambiguous or any(
        [row.text for row in each.rows] != rows for each in found[1:]
    )
    return _answer_of_rows(found[0].text, found[0].rows, unsure=unsure)


def values_answer(outcome: SearchOutcome) -> Answer | None:
    """Return what a column has in the rows that a question names: "in which towns did it leak?".

    None where no table has such a column and such rows, or several have.
    """
    asked = _ASKS_VALUES.match(outcome.asked.text)
    said = _ASIDE.sub("", asked["rest"]) if asked else ""
    if asked is None or _ASKS_UNPAID.fullmatch(outcome.asked.text) or _JOINS.search(said):
        return None
    plain = replace(outcome, asked=replace(outcome.asked, text=said))
    thing = _terms(outcome, asked["column"])
    found = list[tuple[str, _Total]]()
    for rows in outcome.tables:
        columns = [
            name
            for name in choosing_columns(_cells(rows))
            if thing == _terms_of(outcome, name) and asked["column"].lower() != name.lower()
        ]
        period = _asked_period(plain, rows)
        if len(columns) == 1 and period and (total := _total_of(plain, rows, period, "")):
            wanted = _wanted(plain, period[1])
            is_clear = _are_told_by_one_column(plain, rows, total, columns[0], wanted)
            total = replace(total, sheet=_sheet(outcome, rows), is_ambiguous=not is_clear)
            found.append((columns[0], total))
    if len(found) != 1:
        return None
    column, total = found[0]
    values = dict.fromkeys(row.cells[column] for row in total.rows if column in row.cells)
    if not values or len(values) > _MOST_LISTED:
        return None
    counted = f"{len(total.rows)} row{'s' if len(total.rows) > 1 else ''}"
    text = f"{', '.join(values)}: {column} of {counted} of {total.title}."
    return _answer_of_rows(text, total.rows, unsure=total.is_ambiguous)


def _are_told_by_one_column(
    outcome: SearchOutcome,
    rows: Sequence[TableRow],
    total: _Total,
    column: str,
    wanted: frozenset[str],
) -> bool:
    """Return whether rows are chosen by one other column, of whose values no other column has any.

    "Which teams is Ann in?" is not clear where Ann is a member in one row and a leader in another;
    nor is any question of a table that says yes or no of its rows.
    """
    wanted -= _terms_of(outcome, *_titles(rows))
    says_yes_or_no = any(
        {value.lower() for row in rows if (value := row.cells.get(name))} <= YES | NO
        for name in column_names(_cells(rows))
    )
    if total.is_ambiguous or says_yes_or_no:
        return False
    of_column = {
        name: [_terms(outcome, row.cells.get(name, "")) for row in rows]
        for name in column_names(_cells(rows))
    }
    chosen = {id(row) for row in total.rows}
    telling = [
        name for name, terms in of_column.items() if any(wanted <= of_row for of_row in terms)
    ]
    return not wanted or (
        len(telling) == 1
        and telling[0] != column
        and all(
            (wanted <= of_row) or id(row) not in chosen
            for row, of_row in zip(rows, of_column[telling[0]], strict=True)
        )
    )


def _answer_of_rows(text: str, rows: Sequence[TableRow], *, unsure: bool) -> Answer:
    quoted = (HitExcerpt(row.hit, row.start, row.end) for row in rows)
    excerpts = joined_by_passage(quoted)[:_MOST_CITED]
    numbers = "".join(f" [{place}]" for place in range(1, len(excerpts) + 1))
    said = f"{text}{numbers}"
    return Answer(
        f"{UNSURE} {said}" if unsure else said,
        found=not unsure,
        method=METHOD,
        confidence=_CONFIDENCE_OF_TWO if unsure else _CONFIDENCE,
        citations=tuple(cite(place, each) for place, each in enumerate(excerpts, start=1)),
        unsure=unsure,
    )


def unpaid_answer(outcome: SearchOutcome) -> Answer | None:
    """Return the rows without a day of payment, for "which invoices are unpaid?"; else None.

    Of "how much does Haas owe us?" it is those of Haas, with what they come to.  None too where no
    table has such rows, several have, or two columns of one say different.  What was cancelled is
    not unpaid.
    """
    asked = _ASKS_UNPAID.fullmatch(outcome.asked.text)
    if asked is None:
        return None
    things = _terms(outcome, asked["things"] or "")
    of_whom = _terms(outcome, asked["debtor"] or asked["creditor"] or asked["payer"] or "")
    found: list[tuple[str, list[str], tuple[TableRow, ...]]] = []
    for rows in outcome.tables:
        cells = _cells(rows)
        state = next(iter(state_paid(cells)), "")
        paid = paid_column(cells) or state
        if not paid or not things <= _terms_of(outcome, *_titles(rows), *rows[0].cells):
            continue
        if any(_PARTLY.match(row.cells.get(paid, "")) for row in rows):
            return None
        parties = [name for name in column_names(cells) if of_debtor(name) or of_creditor(name)]
        if not things and len(parties) > 1:
            continue  # it isn't known who owes whom
        if _OWED_TO_US.search(outcome.asked.text) and not any(map(of_debtor, parties)):
            continue
        of_name = of_creditor if asked["creditor"] else of_debtor
        names = [*filter(of_name, parties)] if of_whom else []
        if of_whom and len(names) != 1:
            continue
        due = [
            row
            for row in rows
            if not (is_cancelled(row.cells) or is_sum(row.cells))
            and (not of_whom or of_whom <= _terms_of(outcome, row.cells.get(names[0], "")))
        ]
        unpaid = tuple(row for row in due if is_unpaid(row.cells.get(paid, "")))
        if state and any((row in unpaid) != is_unpaid(row.cells.get(state, "")) for row in due):
            return None  # it isn't known which of two columns is right
        if unpaid:
            found.append(("" if things else amount_column(cells), names, unpaid))
    if len(found) != 1 or len(found[0][2]) > _MOST_LISTED:
        return None
    amount, names, unpaid = found[0]
    if not things and (
        not all(is_number(row.cells.get(amount, "")) for row in unpaid)
        or not are_of_one_currency(_cells(unpaid), amount)
    ):
        return None
    lines = [row.text for row in unpaid]
    if not things:
        plain = with_plain_decimals(_cells(unpaid))
        lines[0] = f"{written(sum(number(row[amount]) for row in plain))} unpaid: {lines[0]}"
    excerpts = joined_by_passage(HitExcerpt(row.hit, row.start, row.end) for row in unpaid)
    numbers = {each.hit.memory_id: place for place, each in enumerate(excerpts, start=1)}
    answer = Answer(
        "\n".join(
            f"{line} [{numbers[row.hit.memory_id]}]"
            for line, row in zip(lines, unpaid, strict=True)
        ),
        found=True,
        method=METHOD,
        confidence=_CONFIDENCE,
        citations=tuple(cite(place, each) for place, each in enumerate(excerpts, start=1)),
    )
    are_several = len({row.cells[name] for name in names for row in unpaid}) > 1
    return _as_unsure(answer) if are_several else answer


def unsure_of_rows(outcome: SearchOutcome, answer: Answer) -> Answer:
    """Return an answer as unsure if it gives rows where only something else would answer.

    That is their total or their count, which of them is the largest or unpaid, what somebody is
    paid, or the price of one where the rows have only that of many.
    """
    question = outcome.asked.text
    counts = _ASKS_COUNT.match(question)
    asks_unit_price = _ASKS_UNIT_PRICE.search(question) is not None
    extreme = _ASKS_EXTREME.match(question)
    asks_pay = _ASKS_PAY_OF.search(question)
    mean = _ASKS_MEAN.search(question)
    asks_count = counts and counts["counted"]  # not how often
    asks_unpaid = _ASKS_UNPAID.fullmatch(question)
    asks_other = asks_count or asks_unit_price or extreme or mean or asks_pay or asks_unpaid
    if not (answer.found and answer.citations) or answer.method == METHOD:
        return answer
    lines = [line for cited in answer.citations for line in cited.quote.splitlines() if line]
    says_sum = any(is_sum(row_cells(line)) for line in lines)
    rows = [line for line in lines if is_table_row(line)]
    if not says_sum and any(_is_of_other_time(outcome, row) for row in rows):
        return _as_unsure(answer)
    if rows != lines or not (asks_other or _ASKS_PLAINLY.search(question)):
        return answer
    if asks_unit_price and not all(has_price_of_many(row_cells(line)) for line in lines):
        return answer
    names = [cited.title for cited in answer.citations] + column_names([*map(row_cells, lines)])
    if asks_pay and IS_PAY.search(re.sub(r"[_\W]+", " ", " ".join(names))):
        return answer
    said = extreme["extreme"] if extreme else mean["mean"] if mean else ""
    if said and all(said.lower() in line.lower() for line in lines):
        return answer
    if not asks_unit_price and says_sum:
        return answer  # the table says itself what it comes to
    if counts and len(lines) == 1 and _says_how_many(outcome, row_cells(lines[0]), counts):
        return answer
    return _as_unsure(answer)


def _is_of_other_time(outcome: SearchOutcome, line: str) -> bool:
    """Return whether a row has dates, and none of the one period that a question names."""
    if len(outcome.asked.periods) != 1 or lacks_year(outcome.asked.periods[0].text):
        return False
    days = [span.iso for value in row_cells(line).values() for span in date_spans(value)]
    return bool(days) and not any(outcome.asked.periods[0].covers(iso) is not False for iso in days)


def _as_unsure(answer: Answer) -> Answer:
    return replace(
        answer,
        text=f"{UNSURE} {answer.text}",
        found=False,
        unsure=True,
        confidence=min(answer.confidence, _CONFIDENCE_OF_TWO),
    )


def _says_how_many(outcome: SearchOutcome, cells: Cells, counts: re.Match[str]) -> bool:
    """Return whether a row has a number of what is counted: "rooms: 5" for how many rooms.

    The row of a day says nothing of a longer time.
    """
    counted = _terms(outcome, counts["counted"])
    is_long = any(period.first < period.last for period in outcome.asked.periods)
    is_of_day = any(len(span.iso) == 10 for cell in cells.values() for span in date_spans(cell))
    return not (is_long and is_of_day) and any(
        re.search(r"\d", value)
        and not (is_identifier([cells], name) or is_date(value))
        and not counted.isdisjoint(_terms_of(outcome, name, value))
        for name, value in cells.items()
    )


def _totals(outcome: SearchOutcome) -> Iterator[_Total]:
    """Yield the totals that fit, those of the best hits first."""
    for own in outcome.tables:
        total = _total(outcome, own) if _answers_direction(outcome.asked.text, own) else None
        if total:
            yield replace(total, sheet=_sheet(outcome, own))


def _sheet(outcome: SearchOutcome, own: Sequence[TableRow]) -> str:
    """Return the heading of a table's rows in brackets if its document has others, else ""."""
    hit = own[0].hit
    is_one_of_several = hit.heading and len(own) < len(table_rows(outcome.load_source(hit)))
    return f" ({hit.heading})" if is_one_of_several else ""


def _answers_direction(question: str, rows: Sequence[TableRow]) -> bool:
    """Return whether a table may be of the money asked for: what is spent, or what comes in."""
    names = [*_titles(rows), *column_names(_cells(rows))]
    said = re.sub(r"[_\W]+", " ", " ".join(names))
    is_income, is_costs = bool(IS_INCOME.search(said)), bool(IS_COSTS.search(said))
    if _ASKS_PAY_OF.search(question) and not IS_PAY.search(said):
        return is_costs and not is_income  # what a customer pays is not the mechanic's wage
    if is_income == is_costs:
        return True
    own, other = (_ASKS_EARNED, _ASKS_SPENT) if is_income else (_ASKS_SPENT, _ASKS_EARNED)
    return not other.search(question) or bool(own.search(question))


def _total(outcome: SearchOutcome, rows: Sequence[TableRow]) -> _Total | None:
    """Return what the rows of a table that a question chooses come to, as it asks for it."""
    question = outcome.asked.text
    parts = _ASKS_PARTS.search(question)
    of_rows = _parts_of_rows(outcome, rows, parts["by"]) if parts else []
    if not (of_rows or _asks_total(outcome)) or (parts and of_rows and parts["more"]):
        return None
    question = question.replace(parts[0], "") if parts and of_rows else question
    mean = _ASKS_MEAN.search(question)
    question = question.replace(mean["mean"], "") if mean else question
    plain = replace(outcome, asked=replace(outcome.asked, text=question))
    asked = _asked_period(plain, rows)
    column = _column(plain, rows, asked[1], mean) if asked else None
    total = None if asked is None or column is None else _total_of(plain, rows, asked, column)
    if total is None or not (of_rows or mean):
        return total
    part_of = {id(row): part for row, part in zip(rows, of_rows, strict=False)}
    by_part = _by_part(total.rows, [part_of.get(id(row), "") for row in total.rows])
    if of_rows and "" in by_part:
        return None
    per = _TIMES.get(parts["by"].lower(), "") if parts and of_rows and parts["per"] else ""
    if per and mean:
        if total.parts:
            return None  # people of one name have a mean each
        is_clear = len(by_part) == len(total.rows) or is_per_time(column or "")
        is_ambiguous = total.is_ambiguous or not is_clear
        return replace(total, parts=by_part, is_mean=True, per=per, is_ambiguous=is_ambiguous)
    if of_rows and len(by_part) > _MOST_LISTED:
        return None
    return replace(total, parts=by_part if of_rows else total.parts, is_mean=bool(mean))


def _column(
    outcome: SearchOutcome, rows: Sequence[TableRow], asked: str, mean: re.Match[str] | None
) -> str | None:
    """Return the column that a question without its time asks for; see ``_counted_column``."""
    question = outcome.asked.text
    if counts := _ASKS_COUNT.match(question):
        counted = _counted_column(outcome, rows, counts["counted"])
        return counted if counted or not mean else None
    column = _added_column(outcome, rows, asked)
    if column is None:
        return None
    terms, words = _terms_of(outcome, column), _terms(outcome, question)
    if mean:
        is_of_mean = _is_of(outcome, rows, mean["thing"] or "", question)
        return column if is_of_mean or not terms.isdisjoint(words) else None
    asks_money = any(each.search(question) for each in (_ASKS_SPENT, _ASKS_EARNED, SAYS_PAID))
    is_named = not asks_money and terms <= words
    is_fitting = is_named or is_of_payments(_cells(rows), column, " ".join(_titles(rows)))
    return column if is_fitting else None


def _by_part(rows: Sequence[TableRow], parts: Sequence[str]) -> dict[str, list[TableRow]]:
    found: dict[str, list[TableRow]] = {}
    for row, part in zip(rows, parts, strict=True):
        found.setdefault(part, []).append(row)
    return found


def _parts_of_rows(outcome: SearchOutcome, rows: Sequence[TableRow], by: str) -> list[str]:
    """Return the month, or what another column says, of each row; [] if it has no such column."""
    if length := _LENGTHS.get(by.lower()):
        times = _row_times(outcome, rows)
        days = times.of_rows if times else ()
        return [iso[:length] if len(iso) >= length else "" for iso in days]
    terms = _terms(outcome, by)
    named = [each for each in choosing_columns(_cells(rows)) if terms == _terms_of(outcome, each)]
    return [row.cells.get(named[0], "") for row in rows] if terms and named else []


def _total_of(
    outcome: SearchOutcome,
    rows: Sequence[TableRow],
    asked: tuple[TimeExpression | None, str],
    column: str,
) -> _Total | None:
    """Return the rows that a question chooses, with a column of them; None if it isn't clear which.

    Args:
        outcome: Of the question.
        rows: All of the table's.
        asked: The time that the question names, and the question without it.
        column: The one to add up; "" for the rows as they are.
    """
    question, languages = outcome.asked.text, outcome.languages
    period, rest = asked
    times = _row_times(outcome, rows) if period else None
    if period is not None and times is None:
        return None  # it isn't known which rows are of that time
    years = years_meant(question, period, times.of_rows) if period and times else []
    period = years[-1] if years else period
    in_time = [period.covers(iso) for iso in times.of_rows] if times and period else None
    if in_time and None in in_time:
        return None
    choice = _choice(outcome, rows, rest, (column, times.column if times else ""))
    is_named = _names_table(outcome, rest, rows)
    if choice is None or not (period or is_named or choice.named or _wanted(outcome, rest)):
        return None
    choosing = choosing_columns(_cells(rows))
    fitting = [
        row
        for row, is_in_time in zip(rows, in_time or [True] * len(rows), strict=True)
        if is_in_time and choice.takes(outcome, row.cells, choosing)
    ]
    amounts = [row.cells.get(column, "") for row in fitting]
    if not fitting or (column and not any(map(is_number, amounts))):
        return None
    if column and len(currencies(_cells(fitting), column)) > 1:
        return None
    if column and len(fitting) == 1 and not _ASKS_PLAINLY.search(question):
        values = [fitting[0].cells.get(name, "") for name in choosing]
        if any(has_more(value, choice.asked, languages) for value in values):
            return None
    said = {name: [row.cells.get(name, "") for row in fitting] for name in choosing}
    names = [name for name in choosing if are_namesakes(said[name], choice.asked, languages)]
    conditions = [*choice.conditions, *([period.in_words] if period else [])]
    conditions += [f"by {times.column}"] if times and times.is_one_of_several else []
    if gaps := period.gaps(times.of_rows) if times and period else []:
        conditions.append(f"(the table {' and '.join(gaps)})")
    return _Total(
        tuple(fitting),
        column,
        f" {' '.join(conditions)}" if conditions else "",
        is_named=is_named,
        is_ambiguous=len(years) > 1
        or choice.is_ambiguous
        or any(map(has_unread_number, amounts))
        or any(has_other_states(said[name], choice.values[name]) for name in choice.values)
        or any(has_longer_names(said[name], choice.asked, languages) for name in choosing),
        parts=_by_part(fitting, said[names[0]]) if names else {},
    )


def _extreme(
    outcome: SearchOutcome, rows: Sequence[TableRow], superlative: re.Match[str]
) -> _Extreme | None:
    """Return the rows of a table that a superlative means; ``outcome`` is of the rest.

    The table is of what it is said of by the plural in its title ("jobs"), or has it as a column.
    """
    asked = _asked_period(outcome, rows)
    thing = (superlative["thing"].strip() or superlative["which"] or "").split()[-1:]
    if asked is None or not thing or not _is_of(outcome, rows, thing[0], asked[1]):
        return None
    name = _EXTREMES[superlative["extreme"].lower()]
    place = (superlative["place"] or "").lower()
    is_of_time = name in (_FIRST, _LAST)
    column = "" if is_of_time else _added_column(outcome, rows, asked[1])
    chosen = None if column is None else _total_of(outcome, rows, asked, column)
    if chosen is None:
        return None
    columns = _days(outcome, rows, chosen) if is_of_time else _amounts(outcome, chosen, asked[1])
    best = [
        _with_extreme(values, is_last=name in (_LARGEST, _LAST), place=_PLACES.get(place, 1))
        for values in columns.values()
    ]
    if not best or not best[0]:
        return None
    called, count = next((each, len(values)) for each, values in columns.items())
    said = "\n".join(row.text for row in best[0])
    of_rows = f"{rows[0].hit.title}{_sheet(outcome, rows)}{chosen.chosen_by}"
    counted = f"{count} row{'s' if count > 1 else ''}"
    called_extreme = f"{place} {name.partition('|')[0]}".lstrip()
    return _Extreme(
        best[0],
        f"{said}: the {called_extreme} {called} of {counted} of {of_rows}.",
        chosen.is_ambiguous or any(each != best[0] for each in best),
    )


def _days(outcome: SearchOutcome, rows: Sequence[TableRow], chosen: _Total) -> _Values:
    """Return the first day of each row that is chosen, by the column that says when it was."""
    times = _row_times(outcome, rows)
    if times is None:
        return {}
    are_chosen = {id(row) for row in chosen.rows}
    return {
        times.column: [
            (days_of_iso(iso)[0].toordinal(), row)
            for row, iso in zip(rows, times.of_rows, strict=True)
            if iso and id(row) in are_chosen
        ]
    }


def _amounts(outcome: SearchOutcome, chosen: _Total, asked: str) -> _Values:
    """Return the amounts in each column that may be meant: the one named, otherwise all."""
    cells = _cells(chosen.rows)
    is_named = _terms_of(outcome, chosen.column) <= _terms(outcome, asked)
    columns = dict.fromkeys([chosen.column, *(() if is_named else amount_columns(cells))])
    return {
        name: [
            (number(row.cells[name]), row)
            for row in chosen.rows
            if is_number(row.cells.get(name, ""))
        ]
        for name in columns
    }


def _is_of(outcome: SearchOutcome, rows: Sequence[TableRow], thing: str, rest: str) -> bool:
    """Return whether a table is of things by its title, or is named and has such a column."""
    thing = thing.strip(WORD_PUNCTUATION).lower()
    terms = _terms(outcome, thing)
    if not terms:
        return False
    if any(terms <= _terms_of(outcome, name) for name in column_names(_cells(rows))):
        return _names_table(outcome, rest, rows)
    is_in_title = thing in re.split(r"[_\W]+", " ".join(_titles(rows)).lower())
    return terms <= _terms_of(outcome, *_titles(rows)) and not is_in_title


def _with_extreme(
    values: Sequence[tuple[float, TableRow]], *, is_last: bool, place: int
) -> tuple[TableRow, ...]:
    """Return the rows with the largest value, or the smallest, or the row of a further place.

    No row has a further place if several share it or one before it.
    """
    ordered = sorted((value for value, _ in values), reverse=is_last)
    first = ordered[: place + 1]
    if len(ordered) < place or (place > 1 and len(set(first)) < len(first)):
        return ()
    return tuple(row for value, row in values if value == ordered[place - 1])


# --- the time that is asked for ------------------------------------------------------------------


def _asked_period(
    outcome: SearchOutcome, rows: Sequence[TableRow]
) -> tuple[TimeExpression | None, str] | None:
    """Return the time that a question names, None for none, and the question without it.

    None for both where words qualify what is asked for, so that it selects no rows.
    """
    asked, written_at = outcome.asked.text, rows[0].hit.created_at
    found = outcome.asked.periods or tuple(
        TimeExpression(asked[span.start : span.end], *days_of_iso(span.iso))
        for span in date_spans(asked, written_at)
    )
    found = tuple(each for each in found if not _is_in_value(outcome, rows, each.text))
    if not found:
        return None if _QUALIFIES.search(asked) else (None, asked)
    before, _, after = asked.partition(found[0].text)
    rest = f"{before} {after}"
    is_qualified = _QUALIFIES.search(rest) or _BOUND.search(before) or date_spans(rest, written_at)
    return None if is_qualified or len(found) > 1 else (found[0], rest)


def _is_in_value(outcome: SearchOutcome, rows: Sequence[TableRow], time: str) -> bool:
    """Return whether a time that a question names is part of a value that it names: Easter fair."""
    question, cells = outcome.asked.text.casefold(), _cells(rows)
    start = question.find(time.casefold())
    values = {row[name] for name in category_columns(cells) for row in cells if name in row}
    places = [(question.find(value.casefold()), value) for value in values if " " in value]
    return any(
        0 <= place < start + len(time) <= place + len(value)
        and question.count(value.casefold()) == 1
        for place, value in places
    )


class _Times(Struct, frozen=True):
    """When each row was, by the column that says so."""

    column: str
    is_one_of_several: bool
    of_rows: tuple[str, ...]
    """In ISO 8601, a day, a month or a year; "" where the row has none."""


def _row_times(outcome: SearchOutcome, rows: Sequence[TableRow]) -> _Times | None:
    """Return when each row was; None if it isn't known by which column, or not of each row.

    Of several columns of dates it is the one that the question names, or the one that is called
    nothing but the date.
    """
    is_day_first = is_day_before_month("\n".join(row.text for row in rows))
    cells = _cells(rows)
    of_column: dict[str, tuple[str, ...]] = {}
    for name in column_names(cells):
        if times := times_in_column(cells, name, rows[0].hit.created_at, is_day_first):
            of_column[name] = times
    asked = _terms(outcome, outcome.asked.text)
    named = [name for name in of_column if not asked.isdisjoint(_terms_of(outcome, name))]
    if SAYS_PAID.search(outcome.asked.text) and (paid := paid_column(cells)):
        named = [name for name in of_column if name == paid]
    plain = [name for name in of_column if OF_DATE.fullmatch(name)]
    for names in (named, [*of_column], plain):
        if len(names) == 1:
            found = _Times(names[0], len(of_column) > 1, of_column[names[0]])
            return found if all(found.of_rows) or names is named else None
    return None


# --- the rows that are asked for -----------------------------------------------------------------


def _counted_column(outcome: SearchOutcome, rows: Sequence[TableRow], counted: str) -> str | None:
    """Return the column that says how many, "" if rows are to be counted; None if neither does.

    A column that is called what is counted, but in the singular, says which ("tank: 9").  The rows
    are these things if each is another one, and the table is of them by its title.
    """
    words = counted.split()
    things = [word for word in words if not _PARTICIPLE.fullmatch(word)] or words
    thing = things[-1] if things else ""
    terms = _terms(outcome, thing)
    is_of_things = terms <= _terms_of(outcome, *_titles(rows))
    cells = _cells(rows)
    for name in column_names(cells):
        if not terms or terms != _terms_of(outcome, name):
            continue
        values = [row[name] for row in cells if name in row]
        if is_identifier(cells, name) or thing.lower() != name.lower():
            return "" if is_of_things and len(set(values)) == len(rows) else None
        if is_summable(name):
            return name if all(map(is_number, values)) else None
    if is_of_things:
        return ""
    in_rows = _terms(outcome, " ".join(value for row in cells for value in row.values()))
    columns = [name for name in column_names(cells) if is_quantity(cells, name)]
    units = {word.lower() for word in things}
    in_unit = [name for name in columns if re.split(r"[\W_]+", name.lower())[-1] in units]
    of_thing = [name for name in columns if terms <= in_rows and OF_QUANTITY.fullmatch(name)]
    quantities = in_unit or of_thing
    return quantities[0] if terms and len(quantities) == 1 and is_summable(quantities[0]) else None


def _added_column(outcome: SearchOutcome, rows: Sequence[TableRow], asked: str) -> str | None:
    """Return the column of numbers that a question names, else that of amounts.

    None if it names two, or what cannot be added up.
    """
    cells = _cells(rows)
    words = _terms(outcome, asked) - _terms(outcome, _SUMS)
    both = in_and_out(cells, " ".join(_titles(rows)))
    if both and not any((terms := _terms_of(outcome, name)) and terms <= words for name in both):
        came, went = (each.search(asked) is not None for each in (_ASKS_EARNED, _ASKS_SPENT))
        return None if came == went or _OF_OTHERS.search(asked) else both[went]
    in_rows = _terms(outcome, " ".join(value for row in cells for value in row.values()))
    beside = in_rows | _terms_of(outcome, *_titles(rows))
    named = []
    for name in column_names(cells):
        values = [row[name] for row in cells if name in row]
        terms = _terms_of(outcome, name) - _terms(outcome, _SUMS)
        if sum(map(is_number, values)) < 0.8 * len(values) or OF_TIMES.fullmatch(name):
            continue
        if is_identifier(cells, name):
            continue
        if (terms and terms <= words) or not (terms & words) <= beside:
            named.append(name)
    summable = [name for name in named if is_summable(name)]
    if not summable and not any(_terms_of(outcome, name) <= words for name in named):
        return amount_column(cells) or None
    return summable[0] if len(summable) == 1 else None


def _choice(
    outcome: SearchOutcome, rows: Sequence[TableRow], rest: str, used: tuple[str, str]
) -> _Choice | None:
    """Return what a question says of rows besides their time; None if that tells no rows apart.

    A word that is a value of a column of categories chooses by that column alone.  Others must
    stand in the row, the title or the names of columns.

    Args:
        outcome: Of the question.
        rows: All of the table's.
        rest: The question without the time.
        used: The columns that are added up and that say when.
    """
    cells = _cells(rows)
    values, unused = _values_named(outcome, cells, rest, used)
    if any(len(each) > 1 for each in values.values()) and not _LISTS.search(rest):
        return None
    wanted = _wanted(outcome, unused)
    title = _terms_of(outcome, *_titles(rows))
    by_row = wanted - title - _terms_of(outcome, *rows[0].cells)
    words = re.findall(r"\w+", rest)
    in_rows = {word for row in cells for word in re.findall(r"\w+", " ".join(row.values()).lower())}
    unlike = [w for w in words if _PARTICIPLE.fullmatch(w) and w.lower() not in in_rows]
    if not by_row.isdisjoint(_terms(outcome, " ".join(unlike))):
        return None  # what was opened need not be open
    others = [name for name in column_names(cells) if name not in used and name not in values]
    filled = _filled_columns(outcome, cells, unused, wanted - title, others)
    if _ASKS_COUNT.match(outcome.asked.text):
        for name in [each for each in others if each not in filled]:
            said = _terms(outcome, " ".join(row.get(name, "") for row in cells))
            if _terms_of(outcome, name) & (wanted - title) and by_row.isdisjoint(said):
                return None
    if SAYS_PAID.search(outcome.asked.text):
        paid = paid_column(cells)
        if paid and used[1] not in ("", paid):
            return None  # it isn't known when it was paid
        if paid:
            filled[paid] = f"that have {paid}"
        elif (state := state_paid(cells)) and state[0] not in values:
            values[state[0]], filled[state[0]] = [state[1]], f"that are {state[1]}"
        elif not state and _PAID_ONES.search(rest):
            return None
    named = _terms(outcome, " ".join(value for each in values.values() for value in each))
    numbers = columns_before_numbers(cells, rest, outcome.languages)
    shown = [
        f"{numbers[word]} {word}" if word in numbers else word
        for word in words
        if _terms(outcome, word) & (by_row | named)
    ]
    return _Choice(
        values,
        numbers,
        filled,
        by_row.difference(*(_terms(outcome, value) for value in numbers)),
        named,
        ([f"with {' '.join(shown)}"] if shown else []) + [*filled.values()],
        is_ambiguous=bool(named) and named <= title,
    )


def _wanted(outcome: SearchOutcome, text: str) -> frozenset[str]:
    """Return the terms of a question besides those that every question of its kind may have."""
    counts = _ASKS_COUNT.match(outcome.asked.text)
    general = f"{_GENERAL} {_OF_COUNTED}" if counts else _GENERAL
    return _terms(outcome, text) - _terms(outcome, general)


def _filled_columns(
    outcome: SearchOutcome,
    cells: Sequence[Cells],
    question: str,
    wanted: frozenset[str],
    columns: Sequence[str],
) -> dict[str, str]:
    """Return the columns that chosen rows have a yes or a day in, with how the answer says so."""
    found = {}
    for name in columns:
        terms = _terms_of(outcome, name)
        said = [row[name] for row in cells if name in row]
        if {value.lower() for value in said} <= YES | NO:
            if not terms.isdisjoint(wanted) or name.lower() in question.lower().split():
                found[name] = f"where {name} is yes"
        elif terms and terms <= wanted and len(said) < len(cells) and all(map(is_date, said)):
            found[name] = f"that have {name}"
    return found


def _values_named(
    outcome: SearchOutcome, cells: Sequence[Cells], rest: str, used: tuple[str, str]
) -> tuple[dict[str, list[str]], str]:
    """Return the values of categories that a question names, by column, and the rest of it.

    A word that names the column that says when is none, nor is a value of several columns.
    """
    columns: dict[str, list[str]] = {}
    for name in category_columns(cells):
        for value in {row[name].lower() for row in cells if name in row}:
            columns.setdefault(value, []).append(name)
    general = _terms(outcome, f"{_GENERAL} {_OF_COUNTED}") - _terms(outcome, _STATES)
    others = _terms_of(outcome, *used)
    named: dict[str, list[str]] = {}
    for value in sorted(columns, key=len, reverse=True):
        terms = _terms(outcome, value)
        whole = re.compile(rf"(?<![\w-]){re.escape(value)}(?![\w-])", re.IGNORECASE)
        is_name = len(columns[value]) == 1 and not terms <= general and terms.isdisjoint(others)
        if is_name and whole.search(rest):
            named.setdefault(columns[value][0], []).append(value)
            rest = whole.sub(" ", rest)
    return named, rest


def _names_table(outcome: SearchOutcome, question: str, rows: Sequence[TableRow]) -> bool:
    """Return whether a question has a word of a table's title; "cost" names no table of costs."""
    title = " ".join(_titles(rows)).lower()
    general = _terms(outcome, _GENERAL)
    if _terms_of(outcome, title) & _terms(outcome, question) - general:
        return True
    return any(
        _terms(outcome, word) and word in re.split(r"[_\W]+", title)
        for word in re.findall(r"\w+", question.lower())
    )


def _cells(rows: Sequence[TableRow]) -> list[Cells]:
    return [row.cells for row in rows]


def _titles(rows: Sequence[TableRow]) -> tuple[str, str]:
    head = rows[0].hit
    return head.title, head.heading


def _terms_of(outcome: SearchOutcome, *names: str) -> frozenset[str]:
    """Return the terms of names of tables and columns, in which ``_`` stands for a space."""
    return _terms(outcome, re.sub(r"[_\W]+", " ", " ".join(names)))


def _terms(outcome: SearchOutcome, text: str) -> frozenset[str]:
    return frozenset(query_terms(text, outcome.languages))
