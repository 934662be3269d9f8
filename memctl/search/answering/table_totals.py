"""Totals: what the rows of a table come to, where a question asks for that.

A table answers if each word of the question stands in its title, its columns or its rows; words of
rows and a date choose which rows are added up.  The answer says what was added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memctl.language.date_mentions import date_spans
from memctl.language.table_amounts import (
    Cells,
    amount_column,
    currencies,
    is_sum,
    number,
    row_cells,
    written,
)
from memctl.language.term_analysis import query_terms
from memctl.records import Answer, Hit
from memctl.search.answering.evidence_parts import is_table_row
from memctl.search.answering.excerpts import UNSURE, HitExcerpt, cite
from memctl.search.answering.search_outcome import SearchOutcome

METHOD = "total/1"
_ASKS_TOTAL = re.compile(
    r"\b(?:total|totals|altogether|in all|all in all|sum (?:of|up)|add(?:ed)? up|in sum"
    r"|how much (?:money )?(?:have|has|had|did|do|does) .*\b(?:spen[dt]|pay|paid|cost|billed?)"
    r"|what (?:have|has|did) .*\b(?:spen[dt]|paid|pay|cost)"
    r"|insgesamt|zusammen|summe|au total|en tout|in totale|en total)\b",
    re.IGNORECASE,
)
_GENERAL = frozenset(
    query_terms(
        "total totals altogether all sum add added up how much money have has had did do does we i "
        "you they spend spent pay paid pays cost costs invoice invoiced bill billed out so far now "
        "until today for on to from the our my what is are was were in of it amount everything "
        "insgesamt zusammen summe wie viel haben wir ich für ausgegeben bezahlt gekostet bisher "
        "combien avons nous dépensé payé coûté quanto abbiamo speso cuánto hemos gastado"
    )
)
"""Terms that every question for a total may have."""
_HITS_LOOKED_AT = 10
_MOST_CITED = 5
_CONFIDENCE, _CONFIDENCE_OF_TWO = 0.8, 0.5
"""Where one table fits, and where others that do come to something else."""


@dataclass(frozen=True, slots=True)
class _Row:
    hit: Hit
    start: int
    end: int
    cells: Cells


@dataclass(frozen=True, slots=True)
class _Total:
    """Rows of a table that are asked for."""

    rows: tuple[_Row, ...]
    column: str
    chosen_by: str

    @property
    def amount(self) -> float:
        """What they come to."""
        return round(sum(number(row.cells.get(self.column, "")) for row in self.rows), 2)


def total_answer(outcome: SearchOutcome) -> Answer | None:
    """Return what the rows come to that a question asks for; None where no table tells."""
    if _ASKS_TOTAL.search(outcome.asked.text) is None or outcome.load_document is None:
        return None
    found = list(_totals(outcome))
    if not found:
        return None
    best = found[0]
    unsure = any(each.amount != best.amount for each in found)
    excerpts = _excerpts(best.rows)[:_MOST_CITED]
    count = len(best.rows)
    numbers = "".join(f" [{place}]" for place in range(1, len(excerpts) + 1))
    rows = f"{count} row{'s' if count > 1 else ''} of {best.rows[0].hit.title}{best.chosen_by}"
    said = f"{written(best.amount)} in total: the sum of {best.column} over {rows}.{numbers}"
    return Answer(
        f"{UNSURE} {said}" if unsure else said,
        found=not unsure,
        method=METHOD,
        confidence=_CONFIDENCE_OF_TWO if unsure else _CONFIDENCE,
        citations=tuple(cite(place, each) for place, each in enumerate(excerpts, start=1)),
        unsure=unsure,
    )


def _totals(outcome: SearchOutcome) -> Iterator[_Total]:
    """Yield the totals that fit, those of the best hits first."""
    seen: set[tuple[str, str]] = set()
    for hit in outcome.hits[:_HITS_LOOKED_AT]:
        if hit.document in seen or not is_table_row(hit.text.partition("\n")[0]):
            continue
        seen.add(hit.document)
        if outcome.load_document is not None and (
            total := _total(outcome, _rows(outcome.load_document(hit)))
        ):
            yield total


def _total(outcome: SearchOutcome, rows: Sequence[_Row]) -> _Total | None:
    column = amount_column([row.cells for row in rows])
    if not column:
        return None
    question = outcome.asked.text
    spans = date_spans(question, rows[0].hit.created_at)
    if len(spans) > 1:
        return None  # a period, which rows may be in or not
    rest = "".join([question[: spans[0].start], question[spans[0].end :]]) if spans else question
    wanted = frozenset(query_terms(rest, outcome.languages)) - _GENERAL
    head = rows[0].hit
    about = " ".join([head.title, head.heading, *rows[0].cells])
    of_table = frozenset(query_terms(re.sub(r"[_\W]+", " ", about), outcome.languages))
    by_row = wanted - of_table
    said = [frozenset(query_terms(" ".join(row.cells.values()), outcome.languages)) for row in rows]
    fitting = [
        row
        for row, terms in zip(rows, said, strict=True)
        if by_row <= terms and (not spans or _is_of(row, spans[0].iso))
    ]
    if not fitting or not (wanted or spans) or column not in fitting[0].cells:
        return None
    if len(currencies([row.cells for row in fitting], column)) > 1:
        return None
    words = [word for word in re.findall(r"\w+", rest) if set(query_terms(word)) & by_row]
    chosen = [f"with {' '.join(words)}"] if words else []
    chosen += [f"of {spans[0].iso}"] if spans else []
    return _Total(tuple(fitting), column, f" {' '.join(chosen)}" if chosen else "")


def _is_of(row: _Row, day: str) -> bool:
    """Return whether a row has a date of a day, a month or a year in ISO 8601."""
    text = row.hit.text[row.start : row.end]
    return any(span.iso.startswith(day) for span in date_spans(text, row.hit.created_at))


def _rows(passages: Sequence[Hit]) -> list[_Row]:
    """Return the rows of a document, each once, without those that add up others."""
    found: dict[int, _Row] = {}
    for hit in passages:
        for match in re.finditer(r"[^\n]+", hit.text):
            cells = row_cells(match.group()) if is_table_row(match.group()) else {}
            if cells and not is_sum(cells):
                found.setdefault((hit.start or 0) + match.start(), _Row(hit, *match.span(), cells))
    return [found[place] for place in sorted(found)]


def _excerpts(rows: Sequence[_Row]) -> list[HitExcerpt]:
    """Return where the rows stand, from the first to the last of each passage."""
    by_passage: dict[str, HitExcerpt] = {}
    for row in rows:
        before = by_passage.get(row.hit.memory_id)
        excerpt = HitExcerpt(row.hit, row.start, row.end)
        by_passage[row.hit.memory_id] = replace(before, end=row.end) if before else excerpt
    return list(by_passage.values())
