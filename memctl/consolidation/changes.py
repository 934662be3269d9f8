"""What changed over time, or does not agree: values of one thing, put together into series.

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
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, phrase
from memctl.consolidation.statements import (
    Slot,
    Statement,
    StemWeights,
    relatedness,
    slots_of,
)
from memctl.language.sentence_values import CHANGE_WORDS, Value
from memctl.language.table_amounts import amount_column
from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.search.answering.extractive_answer import WENT_FROM

_MOVE = re.compile(
    r"\b(?:moved?|moves|moving|postponed|put .{0,40}?(?:off|back)|pushed|shift\w*|slip\w*|delay\w*|"
    r"rescheduled|brought forward|instead|not .{1,30} either|can['’]?t|cannot|won['’]?t|"
    r"now|earlier|later|"
    r"verschoben|verlegt|statt|jetzt|repouss\w+|décal\w+|aplazad\w+|rinviat\w+)\b|->|→",
    re.IGNORECASE,
)
"""What says that a day is not the one it was."""
_CALLED_OFF = re.compile(r"\b(?:cancel\w*|called off|abgesagt|annul\w*|cancelad\w*)\b", re.I)
_FROM = re.compile(r"\b(?:from|von|vom|de|du|desde|da)\s+(?:\w+\s+){0,2}\W?$", re.IGNORECASE)
_TO = re.compile(r"\s*(?:[\w'’-]+\s+){0,4}?(?:to|till|auf|bis|à|au|a|al)\s+\W?$", re.IGNORECASE)
_ARROW = re.compile(r"\s*(?:->|→|=>)\s*$")
_FORMERLY = re.compile(
    r"\b(?:was|were|been(?: on| at)?|before that|previously|last (?:year|time|month|week)|"
    r"until (?:now|then)|formerly|used to (?:be|cost|pay)|instead of|rather than|"
    r"(?:up|down) from|compared (?:to|with)|war|waren|vorher|bisher|zuvor|statt|früher|"
    r"avant|au lieu de|antes|prima)\b[^.;:]{0,16}$|\bnot(?: (?:at|on|in|for|the|till?))?\s\W?$",
    re.IGNORECASE,
)
"""Before a value that was so."""
_PUT_OFF = re.compile(
    r"\b(?:mov(?:ed?|es|ing)|push\w*|put|postpon\w*|br(?:ing|ought)|shift\w*|slip\w*|delay\w*"
    r"|reschedul\w*|chang\w*|extend\w*|verschoben|verlegt|verlängert|repouss\w+|décal\w+|aplazad\w+"
    r"|rinviat\w+|spostat\w+|verzet\w*|verplaatst)\b[^.;:]{0,40}$",
    re.IGNORECASE,
)
"""Before the first of two days that are no span of time."""
_IS_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_BEFORE = re.compile(
    r"\W{0,2}(?:before|previously|until now|so far|vorher|bisher|avant|antes|prima)\b", re.I
)
"""After a value that was so."""
_NOW = re.compile(
    r"\b(?:now|but|then|jetzt|nun|dann|maintenant|ahora|adesso|ora|is|are)\b", re.IGNORECASE
)
_MOST_SHARING = 40
"""Statements that may share a stem for it still to bring two of them together."""
_SAME_WORDS = 0.6
"""Share of the words of two statements of which it isn't known which came first."""
_AGAIN_AND_AGAIN = 1.0
"""Log odds that a value is followed over time of which three days or more tell."""
_THE_SAME_BUT_FOR_IT, _NEARLY_ALL = 2.5, 0.8
"""Log odds for statements that share many of their words and differ in the value."""
_MOVED_BESIDE = 0.3
"""The same for days beside which both have a word ("ends on the 31st", "now ends on the 30th")."""
_STILL_SO = 3.0
"""Log odds less where what the earlier says of the thing is said again after the later."""
_OF_TWO_THINGS = 2.0
"""Log odds less for statements that name two things, each its own."""
_MOST_DATED = 300
"""Statements that name a day, the newest ones, of which every two are compared."""
_LEAST_SHARED = 0.8
"""Weight of what two statements share, in documents that one stem tells apart (natural log)."""
_LEAST_OF_DATES = 0.5
"""The same for two that name days, where a rare word has 1; what is around them counts half."""
_NUMERIC = ("money", "percent", "quantity", "number")
_LEAST_BARE = 10.0
"""A smaller whole number without a unit mostly counts something, or is a place in a list."""
_RATIO = 2.5
"""A value that changes becomes at most this many times as large or as small."""
_PLANNED, _PLANNED_WITHOUT_YEAR = timedelta(days=400), timedelta(days=270)
"""A day that lies farther from when it was named is no plan; one without a year rather was then."""


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
    def shared(self) -> frozenset[str]:
        """The stems that both have."""
        if self.is_stated:
            return self.difference.head or self.later.stems
        return self.earlier.context & self.later.context


# --- one statement that says both ----------------------------------------------------------------

_OF_STATED = {"money": 1.2, "date": 1.2, "percent": 0.8, "quantity": 0.6, "number": 0.6}
"""Log odds that a value and a former one that a sentence names are worth knowing."""


def stated_pairs(found: Sequence[Statement]) -> Iterator[Pair]:
    """Yield what statements say themselves to have changed."""
    for each in found:
        if each.is_row or each.topic or each.is_question:
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
                    score = _OF_STATED[kind] + 0.4 * each.is_kept
                    yield Pair(each, each, Difference(before, after, head), score)


def stated_former(text: str, one: Value, other: Value, sentence: str) -> Value | None:
    """Return which of two values, the first of which stands first, is said to be the former.

    Args:
        text: In which both stand.
        one: The first of them.
        other: The second one.
        sentence: The one that the first stands in.
    """
    before, between = text[max(one.start - 40, 0) : one.start], text[one.end : other.start]
    after = text[other.end : other.end + 20]
    if len(between) > 60:
        return None
    is_span = one.kind == "date" or all(_IS_YEAR.fullmatch(each.text) for each in (one, other))
    changes = _PUT_OFF.search(before) if is_span else CHANGE_WORDS.search(sentence)
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


def differing_pairs(found: Sequence[Statement], weights: StemWeights) -> list[Pair]:
    """Return pairs of statements of different documents or days, the likeliest change first."""
    candidates = [
        (first, second, difference)
        for first, second in _candidates(found, weights)
        if (difference := _difference(first, second, weights))
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
            for key in _keys(slot, difference.head):
                days[key].add(each.day)
    holders = _value_holders(found)
    pairs = []
    for first, second, difference in candidates:
        cosine = float(vectors[texts[first.text]] @ vectors[texts[second.text]])
        seen = features(first, second, difference, cosine, weights)
        share = len(first.stems & second.stems) / len(first.stems | second.stems)
        if not first.precedes(second) and share < _SAME_WORDS:
            continue
        score = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in seen.items())
        if first.precedes(second) and _is_moved(
            first, difference.earlier, second, difference.later
        ):
            score = max(score, _of_dates(first, second, weights) + seen["names_old"])
        score += _THE_SAME_BUT_FOR_IT * (share > _NEARLY_ALL)
        score += _MOVED_BESIDE * bool(
            seen["date"] and difference.head and _MOVE.search(second.text)
        )
        score -= _OF_TWO_THINGS * _names_two(first, second, weights)
        score += _AGAIN_AND_AGAIN * any(len(days[key]) > 2 for key in _keys(difference.later))
        if score > -_STILL_SO and _is_still_so(first, second, difference, holders, weights):
            score -= _STILL_SO
        pairs.append(Pair(first, second, difference, score))
    return sorted(pairs, key=lambda p: (-p.score, p.earlier.text, p.later.text))


def features(
    first: Statement,
    second: Statement,
    difference: Difference,
    cosine: float,
    weights: StemWeights,
) -> dict[str, float]:
    """Return what a pair is judged by."""
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
    """Return whether two statements each name the day that they are of, as two visits do."""
    is_of_own = all(
        _day_of(slot.value, each) == each.day for each, slot in ((first, mine), (second, theirs))
    )
    return is_of_own and _CALLED_OFF.search(first.quote or first.text) is None


def _names_two(first: Statement, second: Statement, weights: StemWeights) -> bool:
    """Return whether each of two statements has a name of its own, and what is around the earlier
    one has none of the later's."""
    own, others = (frozenset(filter(weights.is_name, each.stems)) for each in (first, second))
    return bool(others - first.context and own - second.stems)


ValueHolders = Mapping[tuple[str, str], Sequence[tuple[Statement, Slot]]]
"""The values of a kind near a stem, with the statements that give them."""


def _value_holders(found: Sequence[Statement]) -> ValueHolders:
    holders: dict[tuple[str, str], list[tuple[Statement, Slot]]] = defaultdict(list)
    for each in found:
        for slot in each.slots:
            for stem in slot.near:
                holders[slot.value.kind, stem].append((each, slot))
    return holders


def _is_still_so(
    first: Statement,
    second: Statement,
    difference: Difference,
    holders: ValueHolders,
    weights: StemWeights,
) -> bool:
    """Return whether a statement after both gives the earlier value, and is rather on its thing."""
    earlier, later = difference.earlier, difference.later
    return any(
        _agree(slot.value, earlier.value)
        and not any(_agree(other.value, later.value) for other in each.slots)
        and weights.shared(each, first) >= weights.shared(each, second)
        for stem in earlier.near
        for each, slot in holders.get((earlier.value.kind, stem), ())
        if second.precedes(each)
    )


def _agree(one: Value, other: Value) -> bool:
    """Return whether two values are of one kind and say the same."""
    return one.kind == other.kind and one.agrees_with(other)


def _names(statement: Statement, value: Value) -> bool:
    """Return whether a statement, or what stands around it, names a value."""
    slots = slots_of(statement.quote or statement.text)
    return any(_agree(slot.value, value) for slot in slots)


def _candidates(
    found: Sequence[Statement], weights: StemWeights
) -> Iterator[tuple[Statement, Statement]]:
    """Yield two statements with values that share what says enough, the earlier one first."""
    holders: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(found):
        if each.slots and not each.is_question:
            for stem in each.stems:
                holders[stem].append(at)
    pairs = {
        (a, b)
        for places in holders.values()
        if 1 < len(places) <= _MOST_SHARING
        for n, b in enumerate(places)
        for a in places[:n]
    }
    dated = [at for at, each in enumerate(found) if _is_planned(each)][-_MOST_DATED:]
    pairs |= {(a, b) for n, b in enumerate(dated) for a in dated[:n]}
    for a, b in sorted(pairs):
        first, second = found[a], found[b]
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
        if weights.shared(first, second) < _LEAST_SHARED:
            continue
        yield (second, first) if second.precedes(first) else (first, second)


def _is_listed(first: Statement, second: Statement) -> bool:
    """Return whether two rows of tables give a value of one thing, and none that adds up."""
    if len(first.stems & second.stems) < _SAME_WORDS * len(first.stems | second.stems):
        return False
    return not amount_column([first.cells, second.cells])


def _difference(first: Statement, second: Statement, weights: StemWeights) -> Difference | None:
    """Return the two values that most likely are of the same thing, unless they agree."""
    best: tuple[float, Difference] | None = None
    shared = weights.shared(first, second)
    has_cue = CHANGE_WORDS.search(second.text) is not None
    for mine in first.slots:
        if not has_cue and any(_says_again(mine, each) for each in second.slots):
            continue
        for theirs in second.slots:
            if not _comparable(mine, theirs) or _are_of_own_days(first, mine, second, theirs):
                continue
            head = mine.near & theirs.near
            is_date = mine.value.kind == "date"
            if is_date and not (_is_day(mine.value) and _is_day(theirs.value)):
                continue
            is_moved = (
                is_date
                and shared >= _LEAST_OF_DATES * weights.rare
                and _is_moved(first, mine, second, theirs)
            )
            if not (head or is_moved):
                continue
            worth = weights.sum(head) + (mine.value.unit == theirs.value.unit)
            if best is None or worth > best[0]:
                best = (worth, Difference(mine, theirs, head))
    if best is None or best[1].earlier.value.agrees_with(best[1].later.value):
        return None
    return best[1]


def _says_again(slot: Slot, later: Slot) -> bool:
    """Return whether a later statement gives the same value of the same thing."""
    kinds = {slot.value.kind, later.value.kind}
    is_like = len(kinds) == 1 or kinds <= set(_NUMERIC)
    return is_like and bool(slot.near & later.near) and later.value.agrees_with(slot.value)


def _keys(slot: Slot, head: frozenset[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield what a value is one of: its kind, with each stem near it."""
    if slot.value.kind != "date":
        for stem in slot.near if head is None else head:
            yield "amount", stem


def _of_dates(first: Statement, second: Statement, weights: StemWeights) -> float:
    """Return the log odds that a day that both name is one that was moved.

    "Put off to the 15th" says that itself, in words that may share nothing with the first ones.
    """
    own = weights.sum(first.stems & second.stems)
    around = weights.around(first, second, besides_titles=True)
    says_so = 0.5 * bool(_MOVE.search(second.text))
    return 0.3 * own + 0.15 * around + says_so - 1.8


def _is_moved(first: Statement, mine: Slot, second: Statement, theirs: Slot) -> bool:
    """Return whether a day that was planned is another one according to a later statement."""
    if not all(_day_of(slot.value, each) for each, slot in ((first, mine), (second, theirs))):
        return False
    return bool(_MOVE.search(second.quote or second.text))


def _is_planned(statement: Statement) -> bool:
    is_prose = not (statement.is_row or statement.is_question)
    return is_prose and any(_day_of(each.value, statement) for each in statement.slots)


def _day_of(value: Value, statement: Statement) -> date | None:
    """Return the day that a value names if that lay ahead when it was said, or may have."""
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


def _comparable(first: Slot, second: Slot, bare: float = _LEAST_BARE) -> bool:
    a, b = first.value, second.value
    if "time" in (a.kind, b.kind) or "uhr" in (a.unit, b.unit):
        return False
    if a.kind not in _NUMERIC or b.kind not in _NUMERIC:
        return a.kind == b.kind
    if a.kind != b.kind and {a.kind, b.kind} != {"money", "number"}:
        return False
    if a.unit and b.unit and a.unit != b.unit:
        return False
    x, y = first.amount, second.amount
    if a.kind == b.kind == "number" and x < bare and x.is_integer():
        return False
    return min(x, y) > 0 and max(x, y) / min(x, y) <= _RATIO


# --- series --------------------------------------------------------------------------------------

_LEAST_SCORE = -0.9
"""Of the pairs from here on about every third is labelled as one, and some others could be."""
_LEAST_UNORDERED = 0.3
"""Two sources that say something on one day mostly speak of two things."""
_LESS_IN_SERIES = 0.6
"""How much less likely a pair may be that goes on with a value that has changed already, and has
the same words beside it."""
_MOST_IN_SERIES = 6
_LEAST_RELATED = 2.0
"""Of a value and what follows it: of 17 changes from one statement to another in 74 labelled
worlds, 7 were real; all of these, and one other, are so related."""
_MOST_TURNS = 1
_MOST_VERIFIED = 60
"""Series, the likeliest ones, of which the reading model is asked."""


def find_changes(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what changed over time, and what does not agree."""
    distilled = {each.document for each in found if each.is_kept}
    pairs = [
        pair
        for pair in [*stated_pairs(found), *differing_pairs(found, weights)]
        if (
            pair.is_stated
            or pair.earlier.is_kept
            or pair.later.is_kept
            or not {pair.earlier.document, pair.later.document} & distilled
        )
        and pair.score >= _least_score(pair) - _LESS_IN_SERIES * bool(pair.difference.head)
    ]
    pairs.sort(key=lambda p: (-p.score, p.earlier.text, p.later.text))
    findings = (
        _change_finding(series, found, weights)
        for series in _series(pairs, weights)[:_MOST_VERIFIED]
    )
    return [finding for finding in findings if finding is not None]


def _least_score(pair: Pair) -> float:
    if not pair.is_ordered:
        is_fixed = pair.difference.later.value.kind in ("money", "date")
        return _LEAST_UNORDERED if is_fixed else math.inf
    return _LEAST_SCORE


def _series(pairs: Sequence[Pair], weights: StemWeights) -> list[list[Pair]]:
    """Put the pairs together that are on the same value, each statement in one series only."""
    used: set[tuple[int, int]] = set()
    series = []
    alike: dict[tuple[str, bool], list[Pair]] = defaultdict(list)
    for pair in pairs:
        alike[_kind(pair)].append(pair)
    for seed in pairs:
        if seed.score < _least_score(seed) or _ends(seed) & used:
            continue
        chain, left = [seed], [pair for pair in alike[_kind(seed)] if pair is not seed]
        for one in chain:  # which grows
            same = [pair for pair in left if _is_same_value(pair, one, weights)]
            left = [pair for pair in left if not any(pair is other for other in same)]
            chain += same
        used |= {end for pair in chain for end in _ends(pair)}
        series.append(chain)
    return series


def _kind(pair: Pair) -> tuple[str, bool]:
    return pair.difference.later.value.kind, pair.is_ordered


def _ends(pair: Pair) -> set[tuple[int, int]]:
    """Return the statements of a pair, each with where its value stands in it."""
    what = pair.difference
    return {(id(pair.earlier), what.earlier.value.start), (id(pair.later), what.later.value.start)}


def _is_same_value(pair: Pair, other: Pair, weights: StemWeights) -> bool:
    """Return whether two pairs are on one thing: they name one value, in one statement or alike."""
    mine, theirs = (
        ((p.earlier, p.difference.earlier), (p.later, p.difference.later)) for p in (pair, other)
    )
    head = pair.difference.head & other.difference.head
    is_date = pair.difference.later.value.kind == "date"
    for one, slot in mine:
        for two, another in theirs:
            if not _agree(slot.value, another.value):
                continue
            if one is two and (head or is_date):
                return True
            if (head or is_date) and weights.shared(one, two) >= _OF_ONE_THING:
                return True
    return False


_OF_ONE_THING = 3.0
"""Weight that two statements share which are about one thing."""


class _Said(Struct, frozen=True):
    """A value as a statement names it."""

    statement: Statement
    slot: Slot
    is_former: bool
    """Whether it was so before the day of the statement."""


def _change_finding(
    series: Sequence[Pair], found: Sequence[Statement], weights: StemWeights
) -> Finding | None:
    """Return what a series says; None if no two of its statements are on one thing."""
    best = series[0]
    is_ordered = all(pair.is_ordered for pair in series)
    said = _related(_in_order([*series, *_confirmed(series, found, weights)]), best)
    sources = {(each.statement.document, each.statement.day) for each in said}
    if len(said) < 2 or _goes_up_and_down(said):
        return None
    shared = best.difference.head or best.shared
    about = phrase((best.later, best.earlier), shared, weights)
    texts = [each.slot.value.text for each in said]
    if is_ordered:
        days = sorted({each.statement.day for each in said if not each.is_former})
        dated = [each for each in said if each.statement.is_dated]
        when = f" ({insight_wording.day_after_day(days)})" if dated and days else ""
        head = f"{WENT_FROM} {' to '.join(texts)}{when}"
    else:
        head = f"{' or '.join(texts)}, the sources do not agree"
    return Finding(
        kind="change" if is_ordered else "contradiction",
        title=about,
        headline=f"“{about}”: {head}.",
        evidence=tuple({id(each.statement): each.statement for each in said}.values()),
        about=" ".join([best.difference.later.value.kind, *sorted(shared)]),
        strength=best.score + 0.3 * (len(said) - 2) + 0.4 * (len(sources) - 2),
        values=tuple(texts) if len({id(each.statement) for each in said}) == len(said) else (),
        is_said_already=len(sources) < 2,
    )


def _goes_up_and_down(said: Sequence[_Said]) -> bool:
    """Return whether amounts turn back again and again, as readings do."""
    if said[0].slot.value.kind not in _NUMERIC:
        return False
    amounts = [each.slot.amount for each in said]
    ups = [later > earlier for earlier, later in pairwise(amounts)]
    return sum(one != other for one, other in pairwise(ups)) > _MOST_TURNS


def _related(said: Sequence[_Said], best: Pair) -> list[_Said]:
    """Return the values without those of statements on another thing than the best pair's.

    Nothing where the two of that are not on one thing themselves.
    """
    ends = (best.earlier, best.later)
    if not best.is_stated and relatedness(*ends) < _LEAST_RELATED:
        return []
    return [
        each
        for each in said
        if each.statement in ends
        or any(relatedness(end, each.statement) >= _LEAST_RELATED for end in ends)
    ]


def _confirmed(
    series: Sequence[Pair], found: Sequence[Statement], weights: StemWeights
) -> Iterator[Pair]:
    """Yield the stated changes with the earlier statements that name the former value."""
    for pair in series:
        if not pair.is_stated:
            continue
        former = pair.difference.earlier
        for each in found:
            if each.document == pair.later.document or not each.precedes(pair.later):
                continue
            for slot in each.slots:
                is_former = _agree(slot.value, former.value)
                if is_former and weights.shared(each, pair.later) >= _OF_ONE_THING:
                    yield Pair(each, pair.later, replace(pair.difference, earlier=slot), 0.0)


def _in_order(series: Sequence[Pair]) -> list[_Said]:
    """Return the values in the order of time, each once; a former one precedes what followed it."""
    found: list[_Said] = []
    for pair in series:
        what = pair.difference
        found.append(_Said(pair.earlier, what.earlier, pair.is_stated))
        found.append(_Said(pair.later, what.later, False))
    found.sort(key=lambda each: (each.statement.day, not each.is_former, each.is_former))
    kept: list[_Said] = []
    for each in found:
        if not any(each.slot.value.agrees_with(other.slot.value) for other in kept):
            kept.append(each)
    return kept[:1] + kept[1:][-(_MOST_IN_SERIES - 1) :]
