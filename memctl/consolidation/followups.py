"""What is open: plans and promises whose day has passed, and what is said to be still missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, words_of
from memctl.consolidation.statements import Statement, StemWeights, at_noon
from memctl.language.date_mentions import date_spans

_DUE = re.compile(
    r"\b(?:by|due|until|till|deadline|expires?|runs? out|valid|renew\w*|promised?|"
    r"closes|closing|must|"
    r"latest|remind\w*|bis|fällig|spätestens|läuft ab|avant|échéance|antes|vence|entro|scade)\b",
    re.IGNORECASE,
)
"""Before or around the day of a plan, a promise or a deadline."""
_PROMISED = re.compile(
    r"\b(?:will|promised?|by|due|shall|going to|gonna|asked?|ordered|applied|booked|"
    r"expect\w*|to do|"
    r"todo|should|waiting|agreed|deadline|next week|soon|wants?|needs?|must|"
    r"wird|soll|bis|versprochen|bestellt|doit|commandé|debe|pedido|deve|ordinato)\b|\[ \]|['’]ll\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:still (?:no|not|nothing|open|waiting|missing|outstanding|hasn|haven|hadn|isn|unpaid|to)|"
    r"not yet|yet to|never (?:came|arrived|answered|sent|paid|happened|did|heard)|"
    r"no (?:reply|answer|sign|word|news)|"
    r"(?:hasn|haven)['’]?t .{0,40}\byet|overdue|outstanding|unpaid|chas(?:e|ed|ing)|reminder|"
    r"(?:nobody|not|nothing|never) (?:has |have |been )?heard|any (?:sign|news|word)|"
    r"immer noch (?:nicht|kein\w*)|noch (?:nicht|kein\w*|offen)|ausstehend|überfällig|Mahnung|"
    r"toujours pas|pas encore|en attente|aún no|todavía no|sigue sin|ancora non|non ancora)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:done|sent|paid|arrived|received|finished|delivered|signed|sorted|settled|came|went|got|"
    r"renewed|moved|cancelled|closed|erledigt|bezahlt|geschickt|fait|payé|hecho|pagado|"
    r"fatto)\b|\[x\]",
    re.IGNORECASE,
)
_OF_ONE_THING = 1.9
"""Weight that two statements share which are about one thing."""
_FEWEST_STEMS = 2
_TITLE = 4
_AHEAD = timedelta(days=30)
_LASTING = timedelta(days=400)
"""A day that lies farther from when it was named is no plan."""


def find_open(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what is open, as of the newest day that a source says."""
    days = [each.day for each in found if each.is_dated] or [each.day for each in found]
    if not days:
        return []
    today = max(days)
    lasting = [each for each in found if not each.is_row and not each.topic]
    return [*_missing(lasting, weights), *_due(lasting, weights, today)]


def _missing(found: Sequence[Statement], weights: StemWeights) -> Iterator[Finding]:
    """Yield what was promised and is said to be missing later, if nothing later says otherwise."""
    for each in found:
        if not each.is_dated or not _OPEN.search(each.text) or _DONE.search(each.text):
            continue
        about = _about(each, found, weights)
        promises = [p for p in about if p.precedes(each) and _PROMISED.search(p.text)]
        later = [f for f in about if f.day > each.day]
        if not promises or any(not _OPEN.search(f.text) for f in later):
            continue
        evidence = [*promises[-2:], each]
        shared = each.stems & promises[-1].stems
        title = " ".join(words_of(each, shared, weights))
        yield Finding(
            kind="overdue",
            title=title,
            headline=f"{title}: spoken of on {insight_wording.day(promises[-1].day)} and still "
            f"open on {insight_wording.day(each.day)}.",
            evidence=tuple(evidence),
            about=" ".join(sorted(shared)),
            strength=0.4 * (weights.sum(shared) - _OF_ONE_THING) + 0.3 * len(promises),
        )


def _due(found: Sequence[Statement], weights: StemWeights, today: date) -> Iterator[Finding]:
    """Yield deadlines that have passed without a word, and those that are near."""
    for each in found:
        if (
            not each.is_dated
            or not each.is_kept
            or not _DUE.search(each.text)
            or _OPEN.search(each.text)
        ):
            continue
        for day in _days_ahead(each):
            if day > today + _AHEAD:
                continue
            later = [f for f in _about(each, found, weights) if f.day > each.day]
            if later:
                continue
            has_passed = day < today
            title = " ".join(words_of(each, each.stems, weights)[:_TITLE])
            when = insight_wording.day(day)
            said = "has passed with no later word on it" if has_passed else "is coming up"
            yield Finding(
                kind="overdue" if has_passed else "deadline",
                title=title,
                headline=f"{title}: {when} {said} (as of {insight_wording.day(today)}).",
                evidence=(each,),
                about=" ".join(["due", *sorted(each.stems)]),
                strength=each.memory.importance - 1.4,
            )


def _days_ahead(statement: Statement) -> Iterator[date]:
    """Yield the first day in a statement that lay ahead when it was said."""
    for span in date_spans(statement.text, at_noon(statement.day)):
        if len(span.iso) == len("2026-01-01"):
            day = date.fromisoformat(span.iso)
            if statement.day < day < statement.day + _LASTING:
                yield day
                return


def _about(
    statement: Statement, found: Sequence[Statement], weights: StemWeights
) -> list[Statement]:
    """Return the other statements on the same thing, oldest first."""
    about = []
    for other in found:
        shared = statement.stems & other.stems
        is_near = len(shared) >= _FEWEST_STEMS and weights.sum(shared) >= _OF_ONE_THING
        same_namespace = other.memory.namespace == statement.memory.namespace
        if other is not statement and is_near and same_namespace and other.text != statement.text:
            about.append(other)
    return sorted(about, key=lambda each: each.day)
