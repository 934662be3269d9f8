"""What is open: promises that are missing later, days that have passed or are near, and two
entries of a calendar that are ahead at one time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import combinations

from msgspec import Struct

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, part_around, phrase
from memctl.consolidation.statements import Statement, StemWeights, at_noon, relatedness
from memctl.consolidation.value_pairs import CONDITION, FROM_DAY, stated_pairs, weak_words
from memctl.language.date_mentions import DateSpan, date_spans
from memctl.language.term_analysis import terms
from memctl.understanding.relation_extraction import post_holders

_DUE = re.compile(
    r"\b(?:by|due|until|till|deadline|expires?|runs? out|valid|renew\w*|promised?|"
    r"closes|closing|must|before|"
    r"latest|remind\w*|bis|fällig|spätestens|läuft ab|avant|échéance|antes|vence|entro|scade)\b",
    re.IGNORECASE,
)
"""Before or around the day of a plan, a promise or a deadline."""
_PROMISED = re.compile(
    r"\b(?:will|promised?|by|due|shall|going to|gonna|asked?|ordered|applied|booked|"
    r"expect\w*|to do|"
    r"todo|should|waiting|agreed|deadline|next (?:week|month|year)|tomorrow|soon|wants?|needs?|"
    r"(?:was|were) (?:supposed |meant )?to|must|says? (?:he|she|they)|"
    r"wird|soll|bis|versprochen|bestellt|doit|commandé|debe|pedido|deve|ordinato)\b|"
    r"\[ \]|['’]ll\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:still (?:no|not|nothing|open|waiting|missing|outstanding|hasn|haven|hadn|isn|unpaid|"
    r"to|on)|"
    r"not yet|yet to|never (?:came|arrived|answered|sent|paid|happened|did|heard)|"
    r"no (?:reply|answer|sign|word|news)|not done|undone|"
    r"(?:hasn|haven|didn)['’]?t .{0,50}\b(?:yet|called|come|sent|had|seen|done|been|"
    r"show|turn(?:ed)? up|arrive|appear|answer|reply|pay|finish)|"
    r"overdue|outstanding|unpaid|chas(?:e|ed|ing)|reminder|forgot\w*|"
    r"(?:nobody|not|nothing|never) (?:has |have |been )?(?:heard|called|so far|from|received)|"
    r"any (?:sign|news|word)|half done|"
    r"immer noch (?:nicht|kein\w*)|noch (?:nicht|kein\w*|offen)|ausstehend|überfällig|Mahnung|"
    r"toujours pas|pas encore|en attente|aún no|todavía no|sigue sin|ancora non|non ancora)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:(?:has|have|had|did|is|was)n['’]?t|not|never|no|nicht|kein\w*|nie|pas|jamais|nunca|non)\b"
    r"|!!",
    re.IGNORECASE,
)
"""What did not happen, where it was promised."""
_DONE = re.compile(
    r"\b(?:done|sent|paid|arrived|received|finished|delivered|signed|sorted|settled|came|"
    r"got|has its|passed|renewed|fixed|cancelled|closed|erledigt|bezahlt|geschickt|fait|payé|"
    r"hecho|pagado|fatto)\b|\[x\]",
    re.IGNORECASE,
)
_STAFF = re.compile(
    r"\b(?:(?:his|her|their|whose) (?:place|post|job|work|desk)|takes? (?:it |this )?over|"
    r"successor|replacement|stands? in for|joins?|starts? (?:work|as)|leaves? (?:us|the \w+)|"
    r"last day|nachfolge\w*|übernimmt|remplace\w*|sustituye|sostituisce)\b",
    re.IGNORECASE,
)
"""Says that somebody comes, goes or takes somebody's place."""
_TELLING = 0.7
"""Weight of a word that is no name and yet tells what is meant, where a rare word has 1."""
_ASKS_FOR_ANSWER = re.compile(
    r"\b(?:answer|repl(?:y|ies)|respond|response|let (?:me|us) know|get back to|tell (?:me|us)|"
    r"confirm|rsvp|antwort\w*|rückmeldung|bescheid|répon\w+|respon[dt]\w*|rispo\w+|antwoord\w*)\b",
    re.IGNORECASE,
)
_OF_ONE_THING = 0.55
"""Weight that two statements share which are about one thing, where a rare word has 1; what is
around them counts half."""
_LEAST_OWN = 0.45
"""That of what is in both themselves."""
_LEAST_RELATED, _LEAST_RELATED_OF_NAMES = 2.0, 1.5
"""Of a promise and what is missing: pairs that only share their words are less related.  The
second holds where they share who it is about and what."""
_MOST_ASKED = 100
"""Pairs of which the reading model is asked."""
_MIN_RELATIVE_NEARNESS = 0.8
"""Share of what ties a promise to what is missing that must tie what is done to it."""
_WOULD_HAVE = re.compile(
    r"\b(?:would|could|should|might)(?:n['’]t| not)? have\b|\b(?:hätten?|wären?)\b", re.IGNORECASE
)
"""Says of a day that it is not the one any more."""
_BY_WHOM = re.compile(r"\b(?:by|bis|entro) (?:\w+ )*?(?:from|on|at|in|since|ab)\b", re.IGNORECASE)
"""Says who does something, and when."""
_CLAUSE_END = re.compile(r"[.;](?=\s)")
_MOST_BEFORE = 60
"""Characters between a word such as "by" and the day."""
_MAX_DAYS_AHEAD = timedelta(days=30)
_MAX_OVERDUE = timedelta(days=60)
"""What was due longer ago is not waited for any more."""
_PLAN_REACH = timedelta(days=400)
"""A day that lies farther from when it was named is no plan."""
_MOST_PROMISES = 4
_MOST_HOLDERS = 60
"""What more statements have is a subject of its own, by which two are not on one thing."""


def find_open(found: Sequence[Statement], weights: StemWeights, today: date) -> list[Finding]:
    """Return what is open today."""
    candidates = [each for each in found if not each.is_row and not each.topic]
    holders = _holders(candidates)
    missing = _missing_promises(candidates, holders, weights)
    return [*missing, *_due(candidates, found, holders, weights, today)]


Holders = Mapping[str, Sequence[Statement]]
"""The statements that have a stem."""


def _holders(found: Sequence[Statement]) -> Holders:
    holders: dict[str, list[Statement]] = defaultdict(list)
    for each in found:
        for stem in each.stems:
            holders[stem].append(each)
    return {stem: held for stem, held in holders.items() if len(held) <= _MOST_HOLDERS}


def _missing_promises(
    found: Sequence[Statement], holders: Holders, weights: StemWeights
) -> Iterator[Finding]:
    """Yield what was promised and is said to be missing later, if nothing later says otherwise."""
    asked = 0
    for each in found:
        if not each.is_dated or not _is_said_to_be_open(each.text):
            continue
        about = _statements_about(each, holders, weights)
        promises = [
            p for p in about if p.precedes(each) and (_PROMISED.search(p.quote) or _is_open(p))
        ]
        later = [f for f in about if f.day > each.day]
        if not promises:
            continue
        near = max(promises, key=lambda p: weights.shared_weight(p, each))
        shared = each.stems & near.stems
        core = max(shared, key=lambda stem: (not weights.is_name(stem), weights.of(stem), stem))
        reminders = _first_and_latest([p for p in promises if core in p.stems])
        later = [f for f in later if core in f.stems]
        alike = _MIN_RELATIVE_NEARNESS * weights.shared_weight(each, near)
        if any(_is_done(f) and weights.shared_weight(each, f) >= alike for f in later):
            continue
        if not any(_is_promise(p) for p in reminders):
            continue
        asked += 1
        names_who = any(map(weights.is_name, shared)) and not all(map(weights.is_name, shared))
        least = _LEAST_RELATED_OF_NAMES if names_who else _LEAST_RELATED
        if asked > _MOST_ASKED or relatedness(near, each) < least:
            continue
        again = [f for f in later if f.is_dated and _OPEN.search(f.text)]
        last = (again or [each])[-1]
        title = phrase((last, near), shared, weights, whole=True)
        evidence = {id(p): p for p in (*reminders, each, *again[-1:])}.values()
        days = {p.day for p in evidence}
        is_missed = any(p.is_question or _OPEN.search(p.text) for p in (*reminders[1:], each, last))
        names_two = len(each.stems & near.stems) > 1
        yield Finding(
            kind="overdue",
            title=title,
            headline=f"“{title}” was spoken of on {insight_wording.day(reminders[0].day)}"
            f" and is still open on {insight_wording.day(last.day)}.",
            evidence=tuple(evidence),
            about=" ".join(sorted(shared)),
            strength=0.25
            * (
                weights.shared_weight(near, each, besides_titles=True)
                - _OF_ONE_THING * weights.rare
            )
            + 0.4 * (len(days) - 2)
            + 0.4 * (len({p.document for p in evidence}) - 2)
            + 0.3 * sum(p.is_kept for p in (each, near))
            + (0.4 if is_missed else -0.8)
            - (0.4 if names_two or len(days) > 2 else 1.4),
        )


def _is_said_to_be_open(text: str) -> bool:
    """Return whether a sentence says that something is open; "if yours is still open" does not."""
    said = _OPEN.search(text)
    return said is not None and CONDITION.search(text, 0, said.start()) is None


def _is_open(statement: Statement) -> bool:
    """Return whether something is missing, or asked for, or did not happen."""
    return bool(
        statement.is_question or _OPEN.search(statement.text) or _NOT.search(statement.text)
    )


def _is_promise(statement: Statement) -> bool:
    return bool(_PROMISED.search(statement.quote)) and not statement.is_question


def _first_and_latest(promises: Sequence[Statement]) -> list[Statement]:
    """Return the newest promises, one a day, and the first."""
    days = {p.day: p for p in promises}
    daily = [days[day] for day in sorted(days)]
    return daily[:1] + daily[1:][-(_MOST_PROMISES - 1) :]


def _is_done(statement: Statement) -> bool:
    return bool(_DONE.search(statement.text)) and not _is_open(statement)


def _due(
    statements: Sequence[Statement],
    everything: Sequence[Statement],
    holders: Holders,
    weights: StemWeights,
    today: date,
) -> Iterator[Finding]:
    """Yield deadlines that have passed without a word, and those that are near."""
    for each in statements:
        if (
            not each.is_dated
            or each.is_question
            or not each.is_kept
            or not _DUE.search(each.text)
            or _OPEN.search(each.text)
            or _WOULD_HAVE.search(each.text)
        ):
            continue
        span = _day_ahead(each)
        day = span.day if span else None
        if (
            span is None
            or day is None
            or not today - _MAX_OVERDUE <= day <= today + _MAX_DAYS_AHEAD
        ):
            continue
        has_passed = day < today
        if has_passed and not _is_limit(each.text[: span.start]):
            continue
        if not _says_what_is_due(each):
            continue
        if has_passed and (_is_announced(each) or _is_mentioned_since(each, day, holders, weights)):
            continue
        later = [f for f in _statements_about(each, holders, weights) if f.day > each.day]
        if later or _is_named_later(day, each, everything) or _is_put_off(day, each, statements):
            continue
        if has_passed and _is_answered(each, statements):
            continue
        title = part_around(each.text, each.text[span.start : span.end]).rstrip(".")
        when = insight_wording.day(day)
        said = "is coming up" if day > today else "is today"
        said = "has passed with no later word on it" if has_passed else said
        yield Finding(
            kind="overdue" if has_passed else "deadline",
            title=title,
            headline=f"“{title}”: {when} {said} (as of {insight_wording.day(today)}).",
            evidence=(each,),
            about=" ".join(["due", *sorted(each.stems)]),
            strength=each.memory.importance - (0.5 if has_passed else 0.4),
        )


def _is_announced(statement: Statement) -> bool:
    """Return whether a sentence only tells who gets a post or a task, which needs no later word."""
    return bool(_STAFF.search(statement.text) or post_holders(statement.text, statement.day.year))


def _is_mentioned_since(
    promise: Statement, day: date, holders: Holders, weights: StemWeights
) -> bool:
    """Return whether whom or what a promise is about is spoken of on the day it is due, or later.

    That may be a word on it, whatever it says.
    """
    telling = [s for s in promise.stems if weights.of(s) >= _LEAST_OWN * weights.rare]
    return any(
        other.day >= day and other.document != promise.document
        for stem in telling
        if weights.is_name(stem) or weights.of(stem) >= _TELLING * weights.rare
        for other in holders.get(stem, ())
    )


def _says_what_is_due(statement: Statement) -> bool:
    """Return whether a deadline has a word of its own; "due 28 September" is one of nothing."""
    due = frozenset(terms(" ".join(_DUE.findall(statement.text)), statement.language))
    weak = weak_words(statement.language)
    return any(word.lower() not in weak and own - due for word, own in statement.words)


def _is_put_off(day: date, promise: Statement, found: Sequence[Statement]) -> bool:
    """Return whether the document of a promise says that the day it is due was another one."""
    own = [each for each in found if each.document == promise.document]
    return any(
        (month, number) == (day.month, day.day)
        for pair in stated_pairs(own)
        if pair.difference.earlier.value.kind == "date"
        for _, month, number in pair.difference.earlier.value.readings
    )


def _is_answered(request: Statement, found: Sequence[Statement]) -> bool:
    """Return whether somebody else wrote back to a mail that asks for an answer.

    A mail that asks for anything else is open until what it asks for is said to be done.
    """
    return _ASKS_FOR_ANSWER.search(request.text) is not None and any(
        each.thread == request.thread
        and each.memory.namespace == request.memory.namespace
        and each.speaker != request.speaker
        and request.precedes(each)
        for each in found
        if request.thread
    )


def _is_named_later(day: date, promise: Statement, found: Sequence[Statement]) -> bool:
    """Return whether something said later than a promise names the day that it is due."""
    return any(
        year in (None, day.year) and (month, number) == (day.month, day.day)
        for each in found
        if promise.precedes(each)
        for slot in each.slots
        if slot.value.kind == "date"
        for year, month, number in slot.value.readings
    )


def _is_limit(before: str) -> bool:
    """Return whether what stands before a day says that something is due by it.

    "By" says so of the day alone: "taken over by Ann from 3 May" says who does it, and since when.
    """
    clause = _CLAUSE_END.split(before)[-1][-_MOST_BEFORE:]
    said = list(_DUE.finditer(clause))
    if not said or FROM_DAY.search(clause):
        return False
    return _BY_WHOM.search(clause, said[-1].start()) is None


def _day_ahead(statement: Statement) -> DateSpan | None:
    """Return the first day in a statement that lay ahead when it was said."""
    for span in date_spans(statement.text, at_noon(statement.day)):
        if span.day and statement.day < span.day < statement.day + _PLAN_REACH:
            return span
    return None


def _statements_about(
    statement: Statement, holders: Holders, weights: StemWeights
) -> list[Statement]:
    """Return the other statements on the same thing, oldest first."""
    about = []
    near = {id(each): each for stem in sorted(statement.stems) for each in holders.get(stem, ())}
    for other in near.values():
        if other is statement or other.memory.namespace != statement.memory.namespace:
            continue
        if other.text == statement.text:
            continue
        shared = statement.stems & other.stems
        names = set(filter(weights.is_name, shared))
        own = weights.sum(shared - names) + (0.5 * weights.sum(names) if shared - names else 0.0)
        if own >= _LEAST_OWN * weights.rare and (
            weights.shared_weight(statement, other) >= _OF_ONE_THING * weights.rare
        ):
            about.append(other)
    return sorted(about, key=lambda each: each.day)


# --- calendars -----------------------------------------------------------------------------------

_ENTRY = re.compile(
    r" is (?:on|from) (?P<when>[^\n]*?\d{4}(?:, (?:at|from) [\d:]+(?: to [\d:]+)?)?)"
    r"(?: \((?P<zone>[\w/+-]+)\))?(?:, at (?P<place>[^\n]*))?\.$"
)
"""When and where an entry is, as the reader of calendars says it."""
_HOURS = re.compile(r"(?P<start>\d\d:\d\d)(?: to (?P<end>\d\d:\d\d))?$")
_RECURS = re.compile(r" takes place [^\n]*")
_CANCELLED = re.compile(r"\bcancel", re.IGNORECASE)
_CLASH_STRENGTH = 0.8


class _Entry(Struct, frozen=True):
    """An entry of a calendar that comes once."""

    statement: Statement
    title: str
    when: str
    place: str
    first: date
    last: date
    start: str
    """The hour, such as ``14:00``; "" of whole days."""
    end: str
    zone: str


def find_clashes(found: Sequence[Statement], _: StemWeights, today: date) -> list[Finding]:
    """Return the entries of a calendar that are ahead at the same hours, or in a stay elsewhere.

    A stay is an entry of several days with a place.
    """
    entries = [entry for each in found if (entry := _entry(each)) and entry.first > today]
    return [
        _clash_finding(one, other)
        for one, other in combinations(sorted(entries, key=lambda each: each.first), 2)
        if one.statement.memory.namespace == other.statement.memory.namespace
        and one.title.casefold() != other.title.casefold()
        and (_is_same_hour(one, other) or _is_within(one, other) or _is_within(other, one))
    ]


def _entry(statement: Statement) -> _Entry | None:
    title = statement.memory.title
    if statement.memory.doc_type != "other" or not statement.text.startswith(f"{title} is "):
        return None
    said = _ENTRY.match(statement.text, len(title))
    if said is None or _CANCELLED.search(statement.quote) or _RECURS.search(statement.quote):
        return None
    days = [span.day for span in date_spans(said["when"]) if span.day]
    hours = _HOURS.search(said["when"])
    if not days:
        return None
    return _Entry(
        statement,
        title,
        said["when"],
        said["place"] or "",
        days[0],
        days[-1],
        hours["start"] if hours else "",
        (hours["end"] if hours else "") or "",
        said["zone"] or "",
    )


def _is_same_hour(one: _Entry, other: _Entry) -> bool:
    """Return whether one of two entries of a day begins while the other lasts."""
    if one.zone != other.zone or not (one.start and other.start):
        return False
    if {one.last, other.first, other.last} != {one.first}:
        return False
    early, late = sorted((one, other), key=lambda each: each.start)
    return early.start == late.start or late.start < early.end


def _is_within(one: _Entry, stay: _Entry) -> bool:
    """Return whether an entry with an hour is on a day of a stay, and not at its place."""
    is_stay = stay.first < stay.last and not stay.start and bool(stay.place)
    is_there = one.place and (one.place in stay.place or stay.place in one.place)
    return is_stay and bool(one.start) and stay.first <= one.first <= stay.last and not is_there


def _clash_finding(one: _Entry, other: _Entry) -> Finding:
    titles = sorted((one.title, other.title))
    said = " and ".join(
        f"“{each.title}” ({each.when}{', at ' * bool(each.place)}{each.place})"
        for each in (one, other)
    )
    return Finding(
        kind="connection",
        title=" and ".join(titles),
        headline=f"Two entries of the calendar are at one time: {said}.",
        evidence=(one.statement, other.statement),
        about=" ".join(["clash", *sorted(one.statement.stems | other.statement.stems)]),
        strength=_CLASH_STRENGTH,
    )
