"""What a sentence claims about what, and when two claims cannot both hold.

High precision is the aim: two sentences are compared only when both assert something that lasts
(no questions, no maybes, no "tomorrow"), speak of the same thing in the same words, name nothing
that the other doesn't, and differ in exactly one value, in being denied, or in who it is.
Knows nothing of memories: a claim carries its sentence alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memctl.consolidation.sentence_values import Value, values
from memctl.language.term_analysis import terms
from memctl.language.word_lists import calendar_words, stop_words, word_set

Difference = Literal["date", "time", "money", "percent", "quantity", "negation", "name"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What one clause of a sentence asserts."""

    sentence: str
    speaker: str
    """Whose "I" it is; empty when nobody speaks of themselves."""
    content: frozenset[str]
    """Stems of what it speaks about, without values, names of times and words of change."""
    names: frozenset[str]
    """Proper names in it, case-folded."""
    values: tuple[Value, ...]
    heads: tuple[str, ...]
    """For each value the stem that it is a value of."""
    stated: tuple[bool, ...]
    """For each value: whether the sentence says that something is so, not that it happened."""
    subject: str
    """``the supplier`` in "The supplier is Rossi"; empty when it isn't such a sentence."""
    complement: str
    negated: bool
    changes: bool
    """The sentence says itself that something changed."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two claims about the same thing that differ; ``first`` is the one said earlier."""

    difference: Difference
    first: str
    """What the earlier claim says: ``1 June 2026``."""
    second: str
    about: tuple[str, ...]
    """Stems that both share."""
    is_change: bool
    """The later sentence says itself that it replaces the earlier."""
    confidence: float


# --- reading a sentence --------------------------------------------------------------------------

_UNSURE = re.compile(
    r"\?|\b(?:if|maybe|perhaps|might|could|would|should|possibly|probably|hopefully|suppose|"
    r"what about|how about|let's|let us|e\.g\.|for example|about|around|roughly|approximately|"
    r"almost|nearly|at least|at most|(?<!goes )(?<!went )(?<!go )(?<!moved )up to|"
    r"more than|less than|over|under|or so|option|"
    r"vielleicht|etwa|ungefähr|wenn|falls)\b",
    re.IGNORECASE,
)
_DEICTIC = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|(?:this|next|last) (?:morning|afternoon|evening|"
    r"week|weekend|month|year|time|\w+day)|(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"later|soon|right now|at the moment|currently|just|again|so far|heute|morgen|gestern)\b",
    re.IGNORECASE,
)
_SOMEBODY_ELSE = re.compile(r"^(?:he|she|it|they|his|her|its|their|this|these|those)\b", re.I)
"""A sentence that begins so says of whom in the sentence before."""
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'll|i'd|me|my|mine|myself|ich|mein\w*)\b", re.I)
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|without|neither|nor|none|nicht|kein\w*)\b|n['’]t\b", re.IGNORECASE
)
_CHANGE = re.compile(
    r"\b(?:now|new|newly|moved|changed|postponed|instead|updated?|raised|increased|reduced|"
    r"lowered|dropped|no longer|rescheduled|corrected|correction|delayed|brought forward|"
    r"went (?:up|down)|goes (?:up|down)|rises|rose|as of|from now on|since then|replaced)\b",
    re.IGNORECASE,
)
_STATIVE = re.compile(
    r"\b(?:is|are|was|were|be|costs?|has|have|takes?|needs?|pays?|holds?|seats?|weighs?|"
    r"measures?|lasts?|contains?|includes?|requires?|charges?|totals?|equals?|stands?|runs?|"
    r"starts?|begins?|ends?|opens?|closes?|expires?|due|per|every|each|ist|sind|kostet)\b|[:=]",
    re.IGNORECASE,
)
_SCHEDULED = re.compile(
    r"\b(?:starts?|started|begins?|beginning|ends?|ending|opens?|opening|closes?|closing|"
    r"launch(?:es)?|expires?|due|deadline|delivery|delivered|arrives?|scheduled|planned|set|"
    r"moved|postponed|rescheduled|is|are|will be|takes place|valid|until|by|beginnt|endet)\b|:",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?:meeting|standup|stand-up|call|session|class|lesson|dinner|lunch|breakfast|party|game|"
    r"match|appointment|visit|trip|workout|concert|practice|rehearsal|interview)s?\b",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:bought|sold|ran|went|came|met|saw|made|did|got|gave|ate|drank|spent|paid|ordered|"
    r"finished|completed|received|shipped|visited|tried|tasted|roasted|delivered|walked)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^\s*(?:\[[^\]]{1,40}\]\s*)?(?P<name>[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}):\s+"
)
_LABEL_WORDS = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+|#+\s+)")
_COPULA = re.compile(
    r"^(?:[-*•]\s+)?(?P<subject>(?:(?i:the|our|my|his|her|its|their|[\w.’']+['’]s)\s+)"
    r"[\w -]{3,60}?)\s+(?:is(?:\s+now)?|are|will be|ist)\s+"
    r"(?P<complement>(?:the\s+)?[A-ZÄÖÜ][\w.&'’-]*(?:\s+(?:[A-ZÄÖÜ&][\w.&'’-]*|of|and|de|von))*)"
    r"\s*(?:[.,;!(]|$)"
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][\w&'’-]*(?:\s+[A-ZÄÖÜ][\w&'’-]*)*")
_NAME_FIRST = re.compile(r"([A-ZÄÖÜ][\w'’-]*)\s+(?:is|are|was|were|has|had)\b")
_CALENDAR = calendar_words("en") | word_set("am pm i ok okay eur usd gbp chf")
_CHANGE_STEMS = frozenset(
    terms(
        "now new newly moved changed postponed instead update updated raised increased reduced "
        "lowered dropped longer rescheduled corrected correction delayed goes went rises rose "
        "replaced confirmed says said note remember important month months week year day date "
        "place takes planned scheduled set will"
    )
)
_SAME_MEANING = {
    stem: group[0]
    for group in (
        terms("start begin commence"),
        terms("end expire finish"),
        terms("cost price"),
        terms("deadline due"),
    )
    for stem in group
}
_NEGATED_BEFORE = re.compile(r"(?:\bnot|\bno longer|\binstead of|n['’]t)\s+(?:on\s+|at\s+)?$", re.I)
_FROM_TO = re.compile(r"\bfrom\s+$", re.IGNORECASE)
_BOUNDARY = re.compile(r"[;()—–|]|,\s+(?:and|but|which|while|though|so)\b|\s(?:but|while|which)\s")
_ASIDE = re.compile(
    r"\b(?:for|of|at|in|on|with|für|von)\s+(?:(?:the|our|my|a|an|this)\s+)?"
    r"(?:[A-ZÄÖÜ][\w'’-]*(?:\s+[A-ZÄÖÜ][\w'’-]*)*|[^\W\d]\w*)"
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_CLAUSE = re.compile(
    r";\s+|,?\s+(?:and|but|while|und|aber)\s+(?=(?:the|our|my|his|her|their|its|a|an|we|it|they|he|she|"
    r"die|der|das|wir|es)\s)",
    re.IGNORECASE,
)
_SHORTEST_SPEECH = 25
_LONGEST_CLAIM = 320


def speech(sentence: str) -> tuple[str, str]:
    """Split "Ann Lee: we moved" into who says it, if anybody is named, and what is said."""
    said = _SPEAKER.match(sentence)
    if said and len(sentence) - said.end() > _SHORTEST_SPEECH:
        return said["name"], sentence[said.end() :]
    return "", sentence


def claims(sentence: str, speaker: str | None = None) -> list[Claim]:
    """Return what a sentence claims, clause by clause; nothing when it claims nothing lasting."""
    if len(sentence) > _LONGEST_CLAIM or _UNSURE.search(sentence) or _DEICTIC.search(sentence):
        return []
    if _SOMEBODY_ELSE.match(sentence):
        return []
    return [_claim(clause, speaker) for clause in _CLAUSE.split(sentence) if clause.strip()]


def _claim(sentence: str, speaker: str | None) -> Claim:
    text = _LABEL_WORDS.sub("", sentence.strip())
    found = _asserted(text)
    copula = _COPULA.match(text)
    return Claim(
        sentence=text,
        speaker=(speaker or "?") if _FIRST_PERSON.search(text) else "",
        content=_content(text, found),
        names=_names(text),
        values=tuple(found),
        heads=tuple(_head(text, value) for value in found),
        stated=tuple(_is_stated(text, value) for value in found),
        subject=copula["subject"] if copula else "",
        complement=copula["complement"].rstrip(".") if copula else "",
        negated=len(_NEGATION.findall(_without_denied_values(text))) % 2 == 1,
        changes=bool(_CHANGE.search(text)),
    )


def denials(text: str) -> int:
    """How often a text denies something."""
    return len(_NEGATION.findall(text))


def _asserted(text: str) -> list[Value]:
    """The values without those that the sentence denies or leaves: "not 1 June", "from 1 June"."""
    kept = []
    for value in values(text):
        before = text[: value.start]
        if not _NEGATED_BEFORE.search(before) and not _FROM_TO.search(before):
            kept.append(value)
    return kept


def _without_denied_values(text: str) -> str:
    for value in reversed(values(text)):
        denied = _NEGATED_BEFORE.search(text[: value.start])
        if denied:
            text = text[: denied.start()] + text[value.end :]
    return text


def _content(text: str, found: Sequence[Value]) -> frozenset[str]:
    masked = text
    for value in reversed(found):
        masked = masked[: value.start] + " " * (value.end - value.start) + masked[value.end :]
    return frozenset(_stems(_NEGATION.sub(" ", masked)))


def _stems(text: str) -> Iterator[str]:
    for stem in terms(text):
        if stem not in _CHANGE_STEMS and stem not in _CALENDAR and not stem[0].isdigit():
            yield _SAME_MEANING.get(stem, stem)


def _names(text: str) -> frozenset[str]:
    found = [match.group().casefold().rstrip(".") for match in _NAME.finditer(text)]
    first = _NAME_FIRST.match(text)
    if first and first[1].casefold() not in stop_words("en"):
        found.append(first[1].casefold())
    return frozenset(name for name in found if name.split()[0] not in _CALENDAR)


def _clause(text: str, value: Value) -> tuple[str, str]:
    """What stands before and after the value in its clause."""
    start = max((m.end() for m in _BOUNDARY.finditer(text, 0, value.start)), default=0)
    after = _BOUNDARY.search(text, value.end)
    return text[start : value.start], text[value.end : after.start() if after else len(text)]


def _head(text: str, value: Value) -> str:
    """The nearest word before the value that carries content, else the nearest after it.

    Asides do not count: the value in "the rent for the workshop is 900" is one of the rent.
    """
    before, after = _clause(text, value)
    for word in reversed(_WORD.findall(_ASIDE.sub(" ", before))):
        for stem in _stems(word):
            return stem
    for word in _WORD.findall(after):
        for stem in _stems(word):
            return stem
    return ""


def _is_stated(text: str, value: Value) -> bool:
    before, after = _clause(text, value)
    if value.kind in ("date", "time"):
        near = " ".join(before.split(" ")[-7:])
        return bool(_SCHEDULED.search(near)) and not _EVENT.search(text)
    clause = f"{before} {after}"
    says_so = _STATIVE.search(clause) or _CHANGE.search(clause)
    return bool(says_so) and not _HAPPENED.search(clause)


# --- comparing two -------------------------------------------------------------------------------


def conflict(earlier: Claim, later: Claim) -> Conflict | None:
    """Return how two claims disagree; None when they don't, or when it isn't certain enough."""
    if earlier.speaker != later.speaker or earlier.speaker == "?":
        return None
    shared = earlier.content & later.content
    if not shared or _names_apart(earlier, later):
        return None
    return (
        _by_value(earlier, later, shared)
        or _by_negation(earlier, later, shared)
        or _by_name(earlier, later, shared)
    )


def _names_apart(first: Claim, second: Claim) -> bool:
    """Each names somebody or something that the other doesn't, so they speak of two things."""
    mine = {n for n in first.names if n not in second.sentence.casefold()}
    theirs = {n for n in second.names if n not in first.sentence.casefold()}
    if first.complement and second.complement:
        mine.discard(first.complement.casefold())
        theirs.discard(second.complement.casefold())
    return bool(mine and theirs)


def _by_value(earlier: Claim, later: Claim, shared: frozenset[str]) -> Conflict | None:
    if earlier.negated != later.negated or not _same_topic(earlier, later, shared):
        return None
    slots = list(_slots(earlier, later))
    differing = [(a, b, head) for a, b, head in slots if not a.agrees_with(b)]
    if len(differing) != 1:
        return None
    a, b, comparable = differing[0]
    if not comparable:
        return None
    confidence = min(0.95, 0.55 + 0.1 * len(shared) + 0.1 * (len(slots) > 1))
    return Conflict(a.kind, a.text, b.text, tuple(sorted(shared)), later.changes, confidence)


def _slots(earlier: Claim, later: Claim) -> Iterator[tuple[Value, Value, bool]]:
    """Pairs of values that stand for the same thing, and whether they may be set against."""
    for kind in ("date", "time", "money", "percent", "quantity"):
        mine = [n for n, value in enumerate(earlier.values) if value.kind == kind]
        theirs = [n for n, value in enumerate(later.values) if value.kind == kind]
        if kind in ("money", "quantity"):
            units = {earlier.values[n].unit for n in mine} & {later.values[n].unit for n in theirs}
            mine = [n for n in mine if earlier.values[n].unit in units]
            theirs = [n for n in theirs if later.values[n].unit in units]
        if len(mine) == 1 and len(theirs) == 1:
            m, t = mine[0], theirs[0]
            fits = _heads_fit(earlier, later, earlier.heads[m], later.heads[t])
            stated = earlier.stated[m] and later.stated[t]
            yield earlier.values[m], later.values[t], fits and stated


def _heads_fit(earlier: Claim, later: Claim, first: str, second: str) -> bool:
    """What the values are values of is the same thing in both sentences.

    "The lease has moved to 15 June" may leave unsaid that its start did.
    """
    shared = earlier.content & later.content
    if {first, second} <= shared:
        return True
    return later.changes and second in shared and later.content <= earlier.content


def _same_topic(earlier: Claim, later: Claim, shared: frozenset[str]) -> bool:
    smaller, larger = sorted((len(earlier.content), len(later.content)))
    if len(shared) >= 2:
        return len(shared) >= 0.5 * smaller and len(shared) >= 0.3 * larger
    return smaller == 1 and (larger <= 3 or later.changes)


def _by_negation(earlier: Claim, later: Claim, shared: frozenset[str]) -> Conflict | None:
    if earlier.negated == later.negated or len(shared) < 3:
        return None
    if len(shared) < 0.8 * max(len(earlier.content), len(later.content)):
        return None
    if any(not a.agrees_with(b) for a, b, _ in _slots(earlier, later)):
        return None
    if _HAPPENED.search(earlier.sentence) or _HAPPENED.search(later.sentence):
        return None
    said = ("no", "yes") if earlier.negated else ("yes", "no")
    return Conflict("negation", *said, tuple(sorted(shared)), later.changes, 0.7)


def _by_name(earlier: Claim, later: Claim, shared: frozenset[str]) -> Conflict | None:
    """ "The supplier is Rossi" against "Our supplier is Bianchi": one place, two who hold it."""
    if not (earlier.subject and later.subject) or earlier.negated or later.negated:
        return None
    subject = set(_stems(earlier.subject))
    if not subject or subject != set(_stems(later.subject)):
        return None
    first, second = set(_stems(earlier.complement)), set(_stems(later.complement))
    if not first or not second or first & second:
        return None
    return Conflict(
        "name",
        earlier.complement,
        later.complement,
        tuple(sorted(shared & subject)),
        later.changes,
        0.75,
    )
