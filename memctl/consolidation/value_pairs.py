"""Pairs of statements that give two values of one thing, or one statement that gives both.

A sentence may say itself that a value was another one ("1,264, last year 1,102").  Otherwise two
statements on one thing are judged by what both say alike and where they differ; the weights are
those of a logistic regression on the labelled worlds of ``tests/training`` (``fit_changes.py``).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import groupby, pairwise

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.statements import (
    Slot,
    Statement,
    StemWeights,
    calendar_stems,
    slots_of,
)
from memctl.language.date_mentions import date_spans
from memctl.language.sentence_values import CHANGE_WORDS, Value
from memctl.language.table_amounts import Cells, amount_column, is_number
from memctl.language.term_analysis import terms
from memctl.language.word_lists import (
    VERBS,
    WEAK_WORDS,
    load_language,
)
from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.records import Memory, source_name

_CUES = (
    "now new moved changed updated raised increased reduced lowered dropped corrected replaced "
    "revised extended shifted"
)
_POSTPONED = r"postponed|rescheduled|brought forward|verschoben|repouss\w+|aplazad\w+|rinviat\w+"
"""Says by itself that a day is another one now."""
MOVED = re.compile(
    rf"\b(?:{_POSTPONED}|moved?|moves|moving|put .{{0,40}}?(?:off|back)|pushed|shift\w*|slip\w*|"
    r"delay\w*|instead|not .{1,30} either|can['’]?t|cannot|won['’]?t|now|earlier|later|"
    r"verlegt|statt|jetzt|décal\w+)\b|->|→",
    re.IGNORECASE,
)
"""Says that a day was moved."""
_CALLED_OFF = re.compile(r"\b(?:cancel\w*|called off|abgesagt|annul\w*|cancelad\w*)\b", re.I)
_FROM = re.compile(r"\b(?:from|von|vom|de|du|desde|da)\s+(?:\w+\s+){0,2}\W?$", re.IGNORECASE)
_TO = re.compile(r"\s*(?:[\w'’-]+\s+){0,4}?(?:to|till|auf|bis|à|au|a|al)\s+\W?$", re.IGNORECASE)
_REFUSED = re.compile(
    r"\b(?:(?:was|were|is|are|be|been|being|got)\s+(?:\w+\s+){0,2}?(?:lost|rejected|refused|declined"
    r"|defeated|withdrawn|voted down|turned down|not carried)"
    r"|abgelehnt|rejetée?|rechazad[ao]|respint[ao]|verworpen)\b",
    re.IGNORECASE,
)
"""Says, after a value, that what was proposed will not be."""
_REFUSES = re.compile(r"\b(?:rejected|refused|voted down|turned down|withdrew)\b", re.IGNORECASE)
"""The same before a value."""
_OBJECTION = re.compile(
    r"\b(?:objections?|objected|appeals?|appealed|complaints?|protests?|opposition|einspr[uü]che?|"
    r"widerspr[uü]che?|recours|recurso|ricorso|bezwaar)\b",
    re.IGNORECASE,
)
"""What is refused so that the value stays."""
_FROM_BARE_DAY = re.compile(
    r"\b(?:from|von|vom|de|du|dal) (?:the )?(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.)? "
    r"(?:to|till|auf|bis|à|au|a|al) (?:the )?\W?$",
    re.IGNORECASE,
)
_ARROW = re.compile(r"\s*(?:->|→|=>)\s*$")
_FORMERLY = re.compile(
    r"\b(?:was|were|been(?: on| at)?|before that|previously|last (?:year|time|month|week)|"
    r"until (?:now|then)|formerly|used to (?:be|cost|pay)|instead of|rather than|"
    r"(?:up|down) from|compared (?:to|with)|war|waren|vorher|bisher|zuvor|statt|früher|"
    r"avant|au lieu de|antes|prima)\b[^.;:]{0,16}$|\bnot(?: (?:at|on|in|for|the|till?))?\s\W?$|"
    r"\b(?:before|previously|formerly|until now|vorher|bisher|zuvor|avant|antes|prima)\s?:\s*\W?$",
    re.IGNORECASE,
)
"""Stands before a former value."""
_RESCHEDULED = re.compile(
    rf"\b(?:{_POSTPONED}|mov(?:ed?|es|ing)|push\w*|put|postpon\w*|br(?:ing|ought)|shift\w*|slip\w*"
    r"|delay\w*|reschedul\w*|chang\w*|extend\w*|verlegt|verlängert|décal\w+"
    r"|spostat\w+|verzet\w*|verplaatst)\b[^.;:]{0,40}$",
    re.IGNORECASE,
)
"""Stands before the first of two days that are an old and a new one, not a span of time."""
CONDITION = re.compile(r"\b(?:if|unless|wenn|falls|sofern)\b[^.;:!?]*$", re.IGNORECASE)
"""Stands before what only holds on a condition."""
FROM_DAY = re.compile(
    r"\b(?:from|as of|since|effective|starting|ab|seit|à partir du|dès le|desde el|a partir del|"
    r"dal)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
"""Stands before the day from which something else that a sentence says holds."""
_WILL_BE = re.compile(
    r"\b(?:will (?:be|cost|come to|rise to|go up to)|is going to be|wird|beträgt|sera|será|sarà)\s+"
    r"(?:\w+\s+){0,2}\W?$",
    re.IGNORECASE,
)
"""Stands before an amount that holds from some day on."""
_LEAST_OF_ANNOUNCED = 0.8
"""Weight that two statements share, one of which announces an amount, where a rare word has 1."""
_IS_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_BEFORE = re.compile(
    r"\W{0,2}(?:before|previously|until now|so far|vorher|bisher|avant|antes|prima)\b"
    r"(?!\W{0,3}\d)",
    re.IGNORECASE,
)
"""Stands after a former value, and before no other one."""
_NOW = re.compile(
    r"\b(?:now|but|then|jetzt|nun|dann|maintenant|ahora|adesso|ora|is|are)\b", re.IGNORECASE
)
MAX_STATEMENTS_PER_STEM = 40
"""A stem that more statements than this have is too common to pair two of them."""
_MIN_SHARED_WORDS = 0.6
"""Least share of common words of two statements whose order isn't known."""
_TRACKED_VALUE_BONUS = 1.0
"""Log odds for a value that statements of at least three days give: it is tracked over time."""
_SAME_WORDING_BONUS, _MIN_SAME_WORDING = 2.5, 0.8
"""Log odds for statements with the same wording and another value, and the share of common words
that counts as the same wording."""
_ANNOUNCED_LOG_ODDS = -0.4
"""Log odds, at least, for an amount that is announced: "the fee will be 80 from May on"."""
_MOVED_DAY_BONUS = 0.3
"""The same for days next to a common word ("ends on the 31st", "now ends on the 30th")."""
_STILL_VALID_PENALTY = 3.0
"""Log odds against a pair whose earlier value is stated again after the later one."""
_TWO_NAMES_PENALTY = 2.0
"""Log odds against statements of which each has a name that the other lacks."""
_MAX_DATED_STATEMENTS = 300
"""The newest statements that name a day; every two of them are compared."""
_ENTRY_LABEL = re.compile(r"(?P<label>[^:.;,!?]{2,40}):\s")
_FEWEST_ENTRIES = 2
"""Labels of one document that make a list of it."""
_OF_MONEY = re.compile(
    r"price|cost|fee|rent|wage|salary|(?<![^\W_])(?:rate|pay|eur|gbp|usd|chf)(?![^\W_])|[€£$]|"
    r"preis|kosten|miete|lohn|prix|co[uû]t|loyer|precio|prezzo|prijs",
    re.IGNORECASE,
)
"""In the name of a column: its values are set by somebody, and not counted."""
_FEWEST_READINGS = 3
"""Numbers in a row of a log of measured values."""
_MIN_SHARED_WEIGHT = 0.8
"""Least weight of the stems that two statements share (natural log of document counts)."""
_MIN_SHARED_WEIGHT_OF_DAYS = 0.5
"""The same for statements that name days, as a share of a rare word's weight."""
_VERSION = re.compile(
    r"\b(?:19|20)\d\d\b|(?<![^\W_])(?:v|ver|version|rev|revision)[. ]?\d+\b", re.IGNORECASE
)
"""In the title of a list: its year or version."""
_EXTENSION = re.compile(r"\.\w{1,5}$")
_COPY = re.compile(
    r"^(?:copy of|kopie von|copie de|copia de|copia di)\s+|\s*\(\d+\)$|"
    r"[\s_-]+(?:copy|kopie|final|draft|new|old|neu|alt)$",
    re.IGNORECASE,
)
"""In the name of a file that is a copy or another state of one."""
NUMERIC = ("money", "percent", "quantity", "number")
_MIN_BARE_NUMBER = 10.0
"""A smaller whole number without a unit is mostly a count or a position in a list."""
_LEAST_TELLING_AMOUNT = 20.0
_MAX_RATIO = 2.5
"""Largest ratio of two values of one thing."""
_PLANNED, _PLANNED_WITHOUT_YEAR = timedelta(days=400), timedelta(days=270)
"""A day farther ahead than this is no plan; a day without a year rather lies in the past."""


@cache
def stems_of_cues() -> frozenset[str]:
    """Return the stems of words that say that something changes, and not of what it is one."""
    return frozenset(terms(_CUES))


class Difference(Struct, frozen=True):
    """Two values of one thing."""

    earlier: Slot
    later: Slot
    head: frozenset[str]
    """Stems near both."""


class Pair(Struct, frozen=True):
    """Two statements on one thing that differ, or one that says both values.

    ``earlier`` is the one said first, if known.
    """

    earlier: Statement
    later: Statement
    difference: Difference
    """Where they differ in a value."""
    score: float
    """Log odds that the later replaces or contradicts the earlier."""

    @property
    def is_stated(self) -> bool:
        """Whether one statement says itself that the value was another one."""
        return self.earlier is self.later

    @property
    def is_ordered(self) -> bool:
        """Whether it is known which value came first."""
        return self.is_stated or self.earlier.precedes(self.later)

    @property
    def shared_stems(self) -> frozenset[str]:
        """The stems that both have."""
        if self.is_stated:
            return self.difference.head or self.later.stems
        return self.earlier.context & self.later.context


# --- one statement that says both ----------------------------------------------------------------

_STATED_CHANGE_LOG_ODDS = {
    "money": 1.2,
    "date": 1.2,
    "percent": 0.8,
    "quantity": 0.6,
    "number": 0.6,
}
"""Log odds, by kind, that a change stated in one sentence is worth knowing."""


def stated_pairs(found: Sequence[Statement]) -> Iterator[Pair]:
    """Yield the changes that a single statement gives, with the old and the new value."""
    for each in found:
        if each.is_row or each.topic or each.is_question or not each.slots:
            continue
        text = each.quote or each.text
        start = max(text.find(each.text), 0)
        end = start + len(each.text)
        slots = slots_of(text)
        for kind in ("money", "percent", "date", "quantity", "number"):
            alike = [
                slot
                for slot in slots
                if slot.value.kind == kind or (kind == "money" and slot.value.kind == "number")
            ]
            for one, other in pairwise(alike):
                if not start <= one.value.start < end or not _comparable(one, other, bare=0.0):
                    continue
                if one.value.agrees_with(other.value):
                    continue
                if former := stated_former(text, one.value, other.value, each.text):
                    before, after = (one, other) if former is one.value else (other, one)
                    head = one.near if one is after else one.near | other.near
                    score = _STATED_CHANGE_LOG_ODDS[kind] + 0.4 * each.is_kept
                    yield Pair(each, each, Difference(before, after, head), score)
        for slot in slots:
            if start <= slot.value.start < end and (old := _bare_former_day(text, slot)):
                score = _STATED_CHANGE_LOG_ODDS["date"] + 0.4 * each.is_kept
                yield Pair(each, each, Difference(old, slot, old.near), score)


def _bare_former_day(text: str, new: Slot) -> Slot | None:
    """Return the day without its month that stands before the one that it is moved to.

    "The fair moves from 12 to 19 May" names two days of May.
    """
    found = _FROM_BARE_DAY.search(text, 0, new.value.start) if new.value.kind == "date" else None
    if found is None or not _RESCHEDULED.search(text[max(found.start() - 40, 0) : found.start()]):
        return None
    day = int(found["day"])
    readings = tuple(
        (year, month, float(day))
        for year, month, number in new.value.readings
        if None not in (month, number) and number != day
    )
    if not readings:
        return None
    value = Value("date", readings, "", *found.span("day"), found["day"])
    return Slot(value, new.near)


def stated_former(text: str, one: Value, other: Value, sentence: str) -> Value | None:
    """Return which of two values in a text is the former one; None if the text doesn't say.

    Args:
        text: Text that has both.
        one: The value that comes first in the text.
        other: The value that comes second.
        sentence: The sentence of the first value.
    """
    before, between = text[max(one.start - 40, 0) : one.start], text[one.end : other.start]
    after = text[other.end : other.end + 20]
    if len(between) > 60:
        return None
    is_span = one.kind == "date" or all(_IS_YEAR.fullmatch(each.text) for each in (one, other))
    changes = _RESCHEDULED.search(before) if is_span else CHANGE_WORDS.search(sentence)
    if _ARROW.fullmatch(between) or (
        _FROM.search(before) and _TO.fullmatch(between) and changes is not None
    ):
        return one
    if _FORMERLY.search(before) and _NOW.search(between):
        return one
    if _FORMERLY.search(between) or _BEFORE.match(after):
        return other
    return None


# --- two statements ------------------------------------------------------------------------------

WEIGHTS = {
    "cosine": 1.15, "weightiest": 0.2, "of_shorter": 1.4, "context": 0.9, "money": 0.8,
    "date": -0.2, "unit": -0.6, "head": 0.5, "cue": 1.3, "names_old": 0.6, "length": 1.2,
    "bias": -3.8,
}  # fmt: skip


def differing_pairs(statements: Sequence[Statement], weights: StemWeights) -> list[Pair]:
    """Return pairs of statements of different documents or days, the likeliest change first."""
    labels = _Labels(statements)
    candidates = [
        (first, second, difference)
        for first, second in _candidates(statements, weights)
        if (difference := _difference(first, second, weights, labels))
    ]
    texts = {
        each.text: n
        for n, each in enumerate(
            {s.text: s for one, two, _ in candidates for s in (one, two)}.values()
        )
    }
    vectors = load_embedder(BUILTIN_EMBEDDER).embed(list(texts))
    days: dict[tuple[str, str], set[date]] = defaultdict(set)
    for first, second, difference in candidates:
        for each, slot in ((first, difference.earlier), (second, difference.later)):
            for key in _value_keys(slot, difference.head):
                days[key].add(each.day)
    holders = _value_holders(statements)
    pairs = []
    for first, second, difference in candidates:
        cosine = float(vectors[texts[first.text]] @ vectors[texts[second.text]])
        seen = features(first, second, difference, cosine, weights)
        share = len(first.stems & second.stems) / len(first.stems | second.stems)
        if not first.precedes(second) and share < _MIN_SHARED_WORDS:
            continue
        score = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in seen.items())
        if first.precedes(second) and _is_moved(
            first, difference.earlier, second, difference.later
        ):
            score = max(score, _moved_day_log_odds(first, second, weights) + seen["names_old"])
        if (
            first.precedes(second)
            and seen["head"]
            and seen["money"]
            and is_announced(second, difference.later)
        ):
            score = max(score, _ANNOUNCED_LOG_ODDS)
        score += _SAME_WORDING_BONUS * (share > _MIN_SAME_WORDING)
        score += _MOVED_DAY_BONUS * bool(
            seen["date"] and difference.head and MOVED.search(second.text)
        )
        score -= _TWO_NAMES_PENALTY * _have_own_names(first, second, weights)
        score += _TRACKED_VALUE_BONUS * any(
            len(days[key]) > 2 for key in _value_keys(difference.later)
        )
        if score > -_STILL_VALID_PENALTY and _is_still_valid(
            first, second, difference, holders, weights
        ):
            score -= _STILL_VALID_PENALTY
        if _is_refused(first, second, difference.later, holders, weights):
            continue
        pairs.append(Pair(first, second, difference, score))
    return sorted(pairs, key=lambda p: (-p.score, p.earlier.text, p.later.text))


def features(
    first: Statement,
    second: Statement,
    difference: Difference,
    cosine: float,
    weights: StemWeights,
) -> dict[str, float]:
    """Return the features of a pair by their names in ``WEIGHTS``."""
    shared = first.stems & second.stems
    both, one, other = map(weights.sum, (shared, first.stems, second.stems))
    value = difference.later.value
    return {
        "cosine": cosine,
        "weightiest": min(weights.most(shared), 3.0),
        "of_shorter": both / (min(one, other) + 1),
        "context": min(
            0.5 * weights.around(first, second, besides_titles=value.kind == "date"), 3.0
        ),
        "money": float(value.kind in ("money", "percent")),
        "date": float(value.kind == "date"),
        "unit": float(value.kind == "quantity"),
        "head": min(weights.sum(difference.head), 3.0),
        "cue": float(bool(CHANGE_WORDS.search(second.text))),
        "names_old": float(_names(second, difference.earlier.value)),
        "length": -abs(math.log(len(first.text) / len(second.text))),
    }


def _are_of_own_days(first: Statement, mine: Slot, second: Statement, theirs: Slot) -> bool:
    """Return whether two statements each name their own day, as notes on two visits do."""
    is_of_own = all(
        _day_of(slot.value, each) == each.day for each, slot in ((first, mine), (second, theirs))
    )
    return is_of_own and _CALLED_OFF.search(first.quote or first.text) is None


def _have_own_names(first: Statement, second: Statement, weights: StemWeights) -> bool:
    """Return whether each of two statements has a name of its own, and what is around the earlier
    one has none of the later's."""
    own, others = (frozenset(filter(weights.is_name, each.stems)) for each in (first, second))
    writer = frozenset(terms(second.speaker))
    return bool(others - first.context and own - second.stems - writer)


ValueHolders = Mapping[tuple[str, str], Sequence[tuple[Statement, Slot]]]
"""Values with their statements, by the kind of the value and a stem near it."""


def _value_holders(found: Sequence[Statement]) -> ValueHolders:
    holders: dict[tuple[str, str], list[tuple[Statement, Slot]]] = defaultdict(list)
    for each in found:
        for slot in each.slots:
            for stem in slot.near:
                holders[slot.value.kind, stem].append((each, slot))
    return holders


def _is_still_valid(
    first: Statement,
    second: Statement,
    difference: Difference,
    holders: ValueHolders,
    weights: StemWeights,
) -> bool:
    """Return whether the earlier value is given again later, of the same subject.

    A document that has the later value may say beside it what has stayed as it was.
    """
    earlier, later = difference.earlier, difference.later
    return any(
        agree(slot.value, earlier.value)
        and not any(agree(other.value, later.value) for other in each.slots)
        and weights.shared_weight(each, first) >= weights.shared_weight(each, second)
        for stem in earlier.near
        for each, slot in holders.get((earlier.value.kind, stem), ())
        if second.precedes(each) or _is_beside(each, second)
    )


def _is_refused(
    first: Statement, second: Statement, slot: Slot, holders: ValueHolders, weights: StemWeights
) -> bool:
    """Return whether the later value of a pair is said to have been turned down, then or later.

    Another document says so only of the same subject.
    """
    least = weights.shared_weight(first, second)
    return any(
        not each.precedes(second)
        and agree(other.value, slot.value)
        and _says_refused(each.text, other.value)
        and (each.document == second.document or weights.shared_weight(each, second) >= least)
        for stem in second.stems - stems_of_cues()
        for each, other in holders.get((slot.value.kind, stem), ())
    )


def _says_refused(text: str, value: Value) -> bool:
    """Return whether the clause that has a value says that it was turned down."""
    ends = [0, *(end for found in _CLAUSE_BREAK.finditer(text) for end in found.span()), len(text)]
    start = max(end for end in ends if end <= value.start)
    stop = min(end for end in ends if end >= value.end)
    return _OBJECTION.search(text, start, stop) is None and bool(
        _REFUSED.search(text, value.end, stop) or _REFUSES.search(text, start, value.start)
    )


def _is_beside(one: Statement, other: Statement) -> bool:
    return one is not other and (one.document, one.day) == (other.document, other.day)


def agree(one: Value, other: Value) -> bool:
    """Return whether two values are of one kind and say the same."""
    return one.kind == other.kind and one.agrees_with(other)


def may_be_one_amount(one: Value, other: Value) -> bool:
    """Return whether two values agree, of which one may leave its currency out."""
    is_bare = {one.kind, other.kind} == {"money", "number"}
    return one.agrees_with(other) if is_bare else agree(one, other)


def _names(statement: Statement, value: Value) -> bool:
    """Return whether a statement or its context names a value."""
    slots = slots_of(statement.quote or statement.text)
    return any(agree(slot.value, value) for slot in slots)


def _candidates(
    statements: Sequence[Statement], weights: StemWeights
) -> Iterator[tuple[Statement, Statement]]:
    """Yield pairs of statements with values that share enough words, the earlier one first."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(statements):
        if each.slots and not each.is_question:
            for stem in each.stems:
                holders[stem].append(at)
    pairs = {
        (a, b)
        for places in holders.values()
        if 1 < len(places) <= MAX_STATEMENTS_PER_STEM
        for n, b in enumerate(places)
        for a in places[:n]
    }
    dated = [at for at, each in enumerate(statements) if _is_planned(each)][-_MAX_DATED_STATEMENTS:]
    pairs |= {(a, b) for n, b in enumerate(dated) for a in dated[:n]}
    for a, b in sorted(pairs):
        first, second = statements[a], statements[b]
        if first.memory.namespace != second.memory.namespace:
            continue
        if first.document == second.document and first.day == second.day:
            continue
        if first.text.casefold() == second.text.casefold():
            continue
        if first.topic and second.topic and first.topic != second.topic:
            continue
        if first.is_row != second.is_row or (first.is_row and not _is_listed(first, second)):
            continue
        if weights.shared_weight(first, second) < _MIN_SHARED_WEIGHT:
            continue
        if weights.are_of_two_things(first, second):
            continue
        yield (second, first) if second.precedes(first) else (first, second)


def _is_listed(first: Statement, second: Statement) -> bool:
    """Return whether two table rows give a value of one thing that is no amount to be summed.

    They are of one table, or of two versions of one list.
    """
    if first.document != second.document and not _are_versions(first.memory, second.memory):
        return False
    if len(first.stems & second.stems) < _MIN_SHARED_WORDS * len(first.stems | second.stems):
        return False
    both = [first.cells, second.cells]
    names = [name for name, value in first.cells.items() if second.cells.get(name) == value]
    if not any(_is_name_in_table(first.cells[name]) for name in names):
        return False
    return not (amount_column(both) or all(map(_is_of_readings, both)))


def _is_name_in_table(cell: str) -> bool:
    return not (is_number(cell) or date_spans(cell))


def _is_of_readings(cells: Cells) -> bool:
    """Return whether a row has several measured values, as one of a log of temperatures has."""
    return sum(map(is_number, cells.values())) >= _FEWEST_READINGS


def _are_versions(one: Memory, other: Memory) -> bool:
    """Return whether two memories are of versions of one list: recipes and trips have none."""
    return any(
        bool(mine[0]) and mine[0] == theirs[0] and mine != theirs
        for mine, theirs in zip(names_and_versions(one), names_and_versions(other), strict=True)
    )


def names_and_versions(memory: Memory) -> tuple[tuple[str, str], ...]:
    """Return the title and the name of the file of a list, each apart from what tells its version.

    That is a date, a year or a number.
    """
    file_name = _EXTENSION.sub("", source_name(memory.source))
    return _name_and_version(memory.title), _name_and_version(file_name)


@lru_cache(maxsize=10_000)
def _name_and_version(title: str) -> tuple[str, str]:
    """Return the title of a list without its date, year or version, and these."""
    spans = date_spans(title)
    found = [(each.start, each.end) for each in spans] or [
        match.span() for match in _VERSION.finditer(title)
    ]
    found = sorted({*found, *(match.span() for match in _COPY.finditer(title))})
    name, said, at = "", "", 0
    for start, end in found:
        name, said, at = name + title[at:start], f"{said} {title[start:end]}", end
    iso = " ".join(each.iso for each in spans)
    return " ".join(re.findall(r"\w+", (name + title[at:]).casefold())), iso or said.strip()


def _difference(
    first: Statement, second: Statement, weights: StemWeights, labels: _Labels
) -> Difference | None:
    """Return the two values that most likely are of the same thing, unless they agree."""
    best: tuple[float, Difference] | None = None
    shared = weights.shared_weight(first, second)
    has_cue = CHANGE_WORDS.search(second.text) is not None
    changing = _stems_of_change(first.text) | _stems_of_change(second.text)
    former = _former_starts(second)
    for mine in first.slots:
        if not has_cue and any(_restates_value(mine, each) for each in second.slots):
            continue
        for theirs in second.slots:
            if theirs.value.start in former:
                continue
            if not _comparable(mine, theirs) or _are_of_own_days(first, mine, second, theirs):
                continue
            is_of_entry = "other" in (first.memory.doc_type, second.memory.doc_type)
            kinds = {mine.value.kind, theirs.value.kind}
            if kinds == {"money", "number"} and (is_of_entry or not has_cue):
                continue
            if _is_supposed(first, mine) or _is_supposed(second, theirs):
                continue
            if mine.value.kind == "money" and _are_of_two_parties(first, second):
                continue
            if labels.tell_apart(first, mine, second) or labels.tell_apart(second, theirs, first):
                continue
            if first.is_row and _is_reading(first, mine, second):
                continue
            if _has_value_from(first, mine) and _has_value_from(second, theirs):
                continue
            if first.is_row and column_of(first, mine) != column_of(second, theirs):
                continue
            head = (mine.near & theirs.near) - changing
            if head <= stems_of_cues():
                head = frozenset()
            is_date = mine.value.kind == "date"
            if is_date and not (_is_day(mine.value) and _is_day(theirs.value)):
                continue
            is_moved = (
                is_date
                and shared >= _MIN_SHARED_WEIGHT_OF_DAYS * weights.rare
                and _is_moved(first, mine, second, theirs)
            )
            is_price = (
                has_cue
                and mine.value.kind == "money"
                and mine.value.unit == theirs.value.unit
                and weights.sum(first.stems & second.stems) >= weights.rare
            )
            if (
                not head
                and mine.value.kind == theirs.value.kind == "money"
                and mine.value.unit == theirs.value.unit
                and shared >= _LEAST_OF_ANNOUNCED * weights.rare
                and is_announced(second, theirs)
            ):
                head = mine.near & second.stems
            if not (head or is_moved or is_price):
                continue
            worth = weights.sum(head) + (mine.value.unit == theirs.value.unit)
            if best is None or worth > best[0]:
                best = (worth, Difference(mine, theirs, head))
    if best is None or best[1].earlier.value.agrees_with(best[1].later.value):
        return None
    return best[1]


def _former_starts(statement: Statement) -> set[int]:
    """Return where the values begin that a sentence says are former ones."""
    text = statement.text
    said = (
        stated_former(text, one.value, other.value, text)
        for one, other in pairwise(statement.slots)
    )
    return {value.start for value in said if value is not None}


def is_announced(statement: Statement, slot: Slot) -> bool:
    """Return whether a statement says what an amount will be from some day on."""
    before = statement.text[max(slot.value.start - 40, 0) : slot.value.start]
    return _WILL_BE.search(before) is not None and any(
        FROM_DAY.search(statement.text, 0, other.value.start)
        for other in statement.slots
        if other.value.kind == "date"
    )


@lru_cache(maxsize=10_000)
def _stems_of_change(text: str) -> frozenset[str]:
    """Return the stems of what says how a value changes ("goes up"), and not of what it is one."""
    said = (match.group() for match in CHANGE_WORDS.finditer(text))
    return frozenset(stem for words in said if " " in words for stem in terms(words))


def _is_supposed(statement: Statement, slot: Slot) -> bool:
    """Return whether a value only holds on a condition: "if you bill 200 days it's 248"."""
    return CONDITION.search(statement.text, 0, slot.value.start) is not None


def _has_value_from(statement: Statement, slot: Slot) -> bool:
    """Return whether a day is only the one from which an amount of money holds."""
    return (
        slot.value.kind == "date"
        and FROM_DAY.search(statement.text, 0, slot.value.start) is not None
        and any(other.value.kind in ("money", "percent") for other in statement.slots)
    )


class _Labels:
    """What stands before the values of lists: "Small: 12 a month", "Large: 20 a month"."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._of_lists: dict[str, set[str]] = defaultdict(set)
        for each in statements:
            if label := self._label(each):
                self._of_lists[each.document].add(label)

    def tell_apart(self, statement: Statement, slot: Slot, other: Statement) -> bool:
        """Return whether a value is that of an entry which another statement doesn't name."""
        label = self._label(statement)
        if not label or slot.value.start < len(label) or slot.value.kind not in NUMERIC:
            return False
        if len(self._of_lists[statement.document]) < _FEWEST_ENTRIES:
            return False
        own = naming_stems(label, statement.language)
        return bool(own) and own.isdisjoint(other.stems | other.titles)

    def _label(self, statement: Statement) -> str:
        found = None if statement.is_row else _ENTRY_LABEL.match(statement.text)
        if found is None or not any(slot.value.start >= found.end() for slot in statement.slots):
            return ""
        return "" if CHANGE_WORDS.search(found["label"]) else found["label"]


def _are_of_two_parties(first: Statement, second: Statement) -> bool:
    """Return whether two mails give the prices of two firms that the same people wrote with.

    Neither was sent to the other's sender, and the later one doesn't speak of the earlier firm.
    """
    mine, theirs = first.sent_from, second.sent_from
    if not (mine and theirs) or mine.partition("@")[2] == theirs.partition("@")[2]:
        return False
    if mine in second.thread or theirs in first.thread:
        return False
    return frozenset(terms(first.speaker)).isdisjoint(second.stems | second.around)


def _is_reading(first: Statement, slot: Slot, second: Statement) -> bool:
    """Return whether two rows of a table count something on two days, as a log of hours does."""
    column = column_of(first, slot)
    return (
        first.document == second.document
        and slot.value.kind in ("number", "quantity")
        and not _OF_MONEY.search(column)
    )


def column_of(row: Statement, slot: Slot) -> str:
    """Return the name of the column that a value of a row stands in."""
    return row.text[: slot.value.start].rpartition("; ")[2].partition(": ")[0]


def _restates_value(slot: Slot, later: Slot) -> bool:
    """Return whether a later statement gives the same value of the same thing."""
    kinds = {slot.value.kind, later.value.kind}
    is_like = len(kinds) == 1 or kinds <= set(NUMERIC)
    return is_like and bool(slot.near & later.near) and later.value.agrees_with(slot.value)


def is_telling_amount(slot: Slot) -> bool:
    """Return whether two sentences on one thing hardly give an amount by chance."""
    return slot.value.kind in ("money", "number") and slot.amount >= _LEAST_TELLING_AMOUNT


def _value_keys(slot: Slot, head: frozenset[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield keys under which values of one thing meet: each stem near an amount."""
    if slot.value.kind != "date":
        for stem in slot.near if head is None else head:
            yield "amount", stem


def _moved_day_log_odds(first: Statement, second: Statement, weights: StemWeights) -> float:
    """Return the log odds that two statements name the old and the new day of one plan.

    "Put off to the 15th" says so itself, though it may share no words with the first statement.
    """
    own = weights.sum(first.stems & second.stems)
    around = weights.around(first, second, besides_titles=True)
    says_so = 0.5 * bool(MOVED.search(second.text))
    return 0.3 * own + 0.15 * around + says_so - 1.8


def _is_moved(first: Statement, mine: Slot, second: Statement, theirs: Slot) -> bool:
    """Return whether a later statement moves a planned day to another one."""
    if not all(_day_of(slot.value, each) for each, slot in ((first, mine), (second, theirs))):
        return False
    return bool(MOVED.search(second.quote or second.text))


def _is_planned(statement: Statement) -> bool:
    is_prose = not (statement.is_row or statement.is_question)
    return is_prose and any(_day_of(each.value, statement) for each in statement.slots)


def _day_of(value: Value, statement: Statement) -> date | None:
    """Return the day that a value names if it may have been in the future when it was stated."""
    if value.kind != "date":
        return None
    for year, month, day in value.readings:
        if month is None or day is None:
            continue
        reach = _PLANNED if year else _PLANNED_WITHOUT_YEAR
        for candidate in (year,) if year else (statement.day.year, statement.day.year + 1):
            try:
                found = date(int(candidate), int(month), int(day))
            except ValueError:
                continue
            if not statement.is_dated or statement.day <= found < statement.day + reach:
                return found
    return None


def _is_day(value: Value) -> bool:
    """Return whether a date is a day, not a month or a year."""
    return any(None not in (month, day) for _, month, day in value.readings)


def _comparable(first: Slot, second: Slot, bare: float = _MIN_BARE_NUMBER) -> bool:
    a, b = first.value, second.value
    if "time" in (a.kind, b.kind) or "uhr" in (a.unit, b.unit):
        return False
    if a.kind not in NUMERIC or b.kind not in NUMERIC:
        return a.kind == b.kind
    if a.kind != b.kind and {a.kind, b.kind} != {"money", "number"}:
        return False
    if a.unit and b.unit and a.unit != b.unit:
        return False
    x, y = first.amount, second.amount
    if a.kind == b.kind == "number" and x < bare and x.is_integer():
        return False
    return min(x, y) > 0 and max(x, y) / min(x, y) <= _MAX_RATIO


# --- two statements of one conversation ----------------------------------------------------------

_NEW_DAY = re.compile(
    rf"\b(?:{_POSTPONED}|new (?:date|day|slot|appointment)|put (?:\w+ )?(?:off|back)|"
    r"(?:moved|pushed|slip\w*|shifted) (?:\w+ )?(?:back )?to|delay(?:s|ed)?|"
    r"neuer termin|nouvelle date|nueva fecha|nuova data)\b",
    re.IGNORECASE,
)
"""Says that a day is another one now."""
_REGRET = re.compile(
    r"\b(?:unfortunately|sorry|afraid|apologi\w+|regret\w*|leider|malheureusement|désolée?|"
    r"lamentablemente|purtroppo|helaas)\b",
    re.IGNORECASE,
)
"""Says that something has become of a plan, but not of which."""
_CLAUSE_END = re.compile(
    r"[,.;:!?()](?=\s|$)|\s[-–—]\s|\b(?:so|because|since|due to|but|weil|denn)\b", re.IGNORECASE
)
_CLAUSE_BREAK = re.compile(
    rf"{_CLAUSE_END.pattern}|\b(?:and|or|as|after|although|when|while|who|which|until)\b",
    re.IGNORECASE,
)
"""The same, and what begins a clause on something else."""
ANY_PLAN = re.compile(
    r"\b(?:dates?|days?|slots?|appointments?|termine?|rendez-vous|citas?|appuntament[oi])\b",
    re.IGNORECASE,
)
"""What everything that has a day may be called."""
_DAY_OF_MONTH = re.compile(
    r"\bthe (?P<day>[0-3]?\d)(?:st|nd|rd|th)"
    r"(?=\s*(?:[.,;:!?)]|$|(?:and|at|from|in|instead|now)\b))",
    re.IGNORECASE,
)
_RESCHEDULED_LOG_ODDS = 0.3
_REPLACED_LOG_ODDS = 0.6


def rescheduled_pairs(found: Sequence[Statement]) -> Iterator[Pair]:
    """Yield the days that a chat or an exchange of mails moved.

    "New date is the 27th" moves the day that was spoken of before in the same conversation, if it
    is the only one that was still ahead.  "The piano is put off to the 27th" only moves that of a
    piano.
    """
    threads: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for each in found:
        if each.thread and each.is_dated and not each.is_question:
            threads[each.memory.namespace, each.thread].append(each)
    for said in threads.values():
        ahead: dict[date, tuple[Statement, Slot]] = {}
        for day, told in groupby(sorted(said, key=lambda each: each.day), lambda each: each.day):
            ahead = {planned: item for planned, item in ahead.items() if day <= planned}
            today = list(told)
            if len(ahead) == 1:
                ((planned, (earlier, own)),) = ahead.items()
                for later in today:
                    slot = _new_slot(later, earlier)
                    if slot is not None and _day_of(slot.value, later) != planned:
                        difference = Difference(own, slot, frozenset())
                        yield Pair(earlier, later, difference, _RESCHEDULED_LOG_ODDS)
            for each in today:
                if not _CALLED_OFF.search(each.text):
                    days = ((slot, _day_of(slot.value, each)) for slot in each.slots)
                    ahead |= {planned: (each, slot) for slot, planned in days if planned}


def _new_slot(later: Statement, earlier: Statement) -> Slot | None:
    """Return the new day that a statement gives what an earlier one is about; None if none."""
    says_so = _NEW_DAY.search(later.quote) is not None
    is_regret = later.memory.turn is None and _REGRET.search(later.quote) is not None
    slot = _planned_slot(later) if says_so or is_regret else None
    if slot is None:
        return None
    subject = _moved_stems(later, slot.value)
    return slot if _is_about(earlier, subject) or (says_so and not subject) else None


def _moved_stems(statement: Statement, new: Value) -> frozenset[str]:
    """Return the stems of what a sentence says has a new day; none if it only refers to it.

    They stand in the clause of the new day, or in that of the words that say that it was moved.
    """
    clauses = _CLAUSE_END.split(statement.quote)
    near = [each for each in clauses if new.text in each or _NEW_DAY.search(each)]
    plain = ANY_PLAN.sub(" ", _REGRET.sub(" ", _NEW_DAY.sub(" ", " ".join(near))))
    return naming_stems(plain, statement.language)


def naming_stems(text: str, language: str) -> frozenset[str]:
    """Return the stems of the words of a text that may name something, but for days."""
    weak = weak_words(language)
    words = (word for word in re.findall(r"\b[^\W\d_][\w'’-]*", text) if word.lower() not in weak)
    return frozenset(terms(" ".join(words), language)) - calendar_stems()


@cache
def weak_words(language: str) -> frozenset[str]:
    """Return the words that name nothing: greetings, auxiliary and usual verbs."""
    return WEAK_WORDS | VERBS | load_language(language or "en").weak_words


def _is_about(earlier: Statement, subject: frozenset[str]) -> bool:
    """Return whether at least half of the stems that name something are those of a statement."""
    shared = subject & earlier.context
    return bool(shared) and 2 * len(shared) >= len(subject)


def _planned_slot(statement: Statement) -> Slot | None:
    """Return the only day ahead that a statement names, be it without its month."""
    planned = [slot for slot in statement.slots if _day_of(slot.value, statement)]
    if planned:
        return planned[0] if len(planned) == 1 else None
    named = list(_DAY_OF_MONTH.finditer(statement.text))
    if len(named) != 1:
        return None
    number = int(named[0]["day"])
    month = (statement.day.month - (number >= statement.day.day)) % 12 + 1
    reading = (None, month, number)
    value = Value("date", (reading,), "", *named[0].span(), named[0].group())
    return Slot(value, frozenset())


# --- two entries of a calendar -------------------------------------------------------------------


def replaced_entry_pairs(found: Sequence[Statement]) -> Iterator[Pair]:
    """Yield an entry of a calendar that is called off with the only other one of its title.

    Of several others none is known to take its place: a weekly lesson isn't moved to the next one.
    """
    entries = [
        (each, title, slot)
        for each in found
        if each.memory.doc_type == "other"
        and (title := _title_of_entry(each))
        and (slot := next((slot for slot in each.slots if is_own_day(slot, each)), None))
    ]
    for earlier, title, own in entries:
        if _CALLED_OFF.search(earlier.quote) is None:
            continue
        others = [
            (each, slot)
            for each, other, slot in entries
            if each.document != earlier.document
            and each.memory.namespace == earlier.memory.namespace
            and other[: len(title)] == title
        ]
        if len(others) == 1 and earlier.precedes(others[0][0]):
            [(later, slot)] = others
            if _CALLED_OFF.search(later.quote) is None:
                difference = Difference(own, slot, frozenset())
                yield Pair(earlier, later, difference, _REPLACED_LOG_ODDS)


def _title_of_entry(statement: Statement) -> tuple[str, ...]:
    """Return the words of an entry's title, up to one that calls it off."""
    title = statement.memory.title
    if not title or not statement.text.startswith(insight_wording.quotable(title)):
        return ()
    words = re.findall(r"\w+", _CALLED_OFF.split(title)[0].casefold())
    return tuple(words)


def is_own_day(slot: Slot, statement: Statement) -> bool:
    return slot.value.kind == "date" and _day_of(slot.value, statement) == statement.day
