"""What changed over time, or does not agree: pairs of values, put together into series."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding, part_around, phrase
from memctl.consolidation.statements import (
    Slot,
    Statement,
    StemWeights,
    calendar_stems,
    relatedness,
    slots_of,
)
from memctl.consolidation.value_pairs import (
    ANY_PLAN,
    MAX_STATEMENTS_PER_STEM,
    MOVED,
    NUMERIC,
    Difference,
    Pair,
    agree,
    column_of,
    differing_pairs,
    is_own_day,
    is_telling_amount,
    may_be_one_amount,
    naming_stems,
    replaced_entry_pairs,
    rescheduled_pairs,
    stated_pairs,
    stems_of_cues,
    weak_words,
)
from memctl.language.sentence_values import CHANGE_WORDS
from memctl.language.term_analysis import terms
from memctl.language.word_lists import (
    ENGLISH_MONTHS,
    ENGLISH_WEEKDAYS,
    VERBS,
    known_names,
    stop_words,
    words_of_all,
)
from memctl.search.answering.states_over_time import CHANGE_PHRASE
from memctl.understanding.relation_extraction import PostHolder, post_holders

# --- series --------------------------------------------------------------------------------------

_MIN_SCORE = -0.9
"""From this score on, about a third of the pairs are labelled as changes."""
_MIN_UNORDERED_SCORE = 0.3
"""Two sources of the same day are mostly about two things."""
_SERIES_TOLERANCE = 0.6
"""How much lower a pair may score that continues the series of a value that has changed already."""
_MAX_SERIES_LENGTH = 6
_MIN_RELATEDNESS = 2.0
"""Of a value and what follows it: below this, two statements mostly share
words and not a subject."""
_SURE_RELATEDNESS, _SURE_RELATEDNESS_BONUS = 3.7, 1.0
"""Relatedness from which a price, a moved day or a changed quantity is surely of one thing, and
the log odds for it."""
_MAX_REVERSALS = 1
_WORDS_OF_ENTRY = 2
"""First words of the title of an entry by which a sentence names it."""
_MAX_SERIES = 60
"""Number of series that are kept, the likeliest ones."""


def find_changes(statements: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what changed over time, and what does not agree."""
    distilled = {each.document for each in statements if each.is_kept}
    pairs = [
        pair
        for pair in [
            *stated_pairs(statements),
            *rescheduled_pairs(statements),
            *replaced_entry_pairs(statements),
            *differing_pairs(statements, weights),
        ]
        if (
            pair.is_stated
            or pair.earlier.is_kept
            or pair.later.is_kept
            or not {pair.earlier.document, pair.later.document} & distilled
        )
        and pair.score >= _min_score(pair) - _SERIES_TOLERANCE * bool(pair.difference.head)
    ]
    pairs.sort(key=lambda p: (-p.score, p.earlier.text, p.later.text))
    findings = (
        _change_finding(series, statements, weights)
        for series in _series(pairs, weights)[:_MAX_SERIES]
    )
    return [finding for finding in findings if finding is not None]


def _min_score(pair: Pair) -> float:
    if not pair.is_ordered:
        is_fixed = pair.difference.later.value.kind in ("money", "date")
        return _MIN_UNORDERED_SCORE if is_fixed else math.inf
    return _MIN_SCORE


def _series(pairs: Sequence[Pair], weights: StemWeights) -> list[list[Pair]]:
    """Group the pairs on the same value into series; each mention belongs to one series."""
    used: set[tuple[int, int]] = set()
    series = []
    alike: dict[tuple[str, bool], list[Pair]] = defaultdict(list)
    for pair in pairs:
        alike[_kind(pair)].append(pair)
    for seed in pairs:
        if seed.score < _min_score(seed) or _mention_keys(seed) & used:
            continue
        chain, left = [seed], [pair for pair in alike[_kind(seed)] if pair is not seed]
        for one in chain:  # which grows
            same = [pair for pair in left if _is_same_value(pair, one, weights)]
            left = [pair for pair in left if not any(pair is other for other in same)]
            chain += same
        used |= {end for pair in chain for end in _mention_keys(pair)}
        series.append(chain)
    return series


def _kind(pair: Pair) -> tuple[str, bool]:
    return pair.difference.later.value.kind, pair.is_ordered


def _mention_keys(pair: Pair) -> set[tuple[int, int]]:
    """Return keys of both mentions of a pair: the statement and the offset of the value."""
    what = pair.difference
    return {(id(pair.earlier), what.earlier.value.start), (id(pair.later), what.later.value.start)}


def _is_same_value(pair: Pair, other: Pair, weights: StemWeights) -> bool:
    """Return whether two pairs name the same value of one thing."""
    mine, theirs = (
        ((p.earlier, p.difference.earlier), (p.later, p.difference.later)) for p in (pair, other)
    )
    head = (pair.difference.head & other.difference.head) - stems_of_cues()
    is_date = pair.difference.later.value.kind == "date"
    for one, slot in mine:
        for two, another in theirs:
            if not agree(slot.value, another.value):
                continue
            if one is two and (head or is_date):
                return True
            if (head or is_date) and weights.shared_weight(one, two) >= _SAME_SUBJECT_WEIGHT:
                return True
    return False


_SAME_SUBJECT_WEIGHT = 3.0
"""Shared weight from which two statements are about one thing."""
_SAME_SUBJECT_SHARE = 0.8
"""The same as a share of what one of them weighs, where nothing weighs much: of few documents."""


_PECULIAR_DIGITS = 3
_LEAST_OF_NAME = 0.3
"""Weight of the words beside an amount that name the same thing, where a rare word has 1."""


class _ValueMention(Struct, frozen=True):
    """A value as a statement names it."""

    statement: Statement
    slot: Slot
    is_former: bool
    """Whether the value was already past on the day of the statement."""


def _change_finding(
    series: Sequence[Pair], statements: Sequence[Statement], weights: StemWeights
) -> Finding | None:
    """Return the finding of a series; None if no two of its statements share a subject."""
    best = series[0]
    is_ordered = all(pair.is_ordered for pair in series)
    confirmed = list(_confirmed_pairs(series, statements, weights))
    sure = [
        pair.earlier
        for pair in confirmed
        if len(pair.difference.head) > 1 or _is_peculiar(pair.difference.earlier)
    ]
    mentions = _related_mentions(_mentions_in_order([*confirmed, *series]), best, sure)
    sources = {(each.statement.document, each.statement.day) for each in mentions}
    if len(mentions) < 2 or _fluctuates(mentions):
        return None
    shared = best.difference.head or best.shared_stems
    named = best
    if best.is_stated and confirmed:
        named = max(confirmed, key=lambda pair: weights.sum(pair.difference.head))
        shared = named.difference.head or shared
    texts = [each.slot.value.text for each in mentions]
    about = _without_values(_title(named, shared, weights), texts, best.later.language)
    entries = [each.statement.memory for each in mentions if each.statement.memory.title]
    if best.is_stated and (titles := [each.title for each in entries if each.doc_type == "other"]):
        about = titles[0]
    if best.later.is_row:
        about = f"{about}, {column_of(best.later, best.difference.later)}"
    if is_ordered:
        days = sorted({each.statement.day for each in mentions if not each.is_former})
        dated = [each for each in mentions if each.statement.is_dated]
        when = f" ({insight_wording.day_after_day(days)})" if dated and days else ""
        head = f"{CHANGE_PHRASE} {' to '.join(texts)}{when}"
    else:
        head = f"{' or '.join(texts)}, the sources do not agree"
    return Finding(
        kind="change" if is_ordered else "contradiction",
        title=about,
        headline=f"“{about}”: {head}.",
        evidence=tuple({id(each.statement): each.statement for each in mentions}.values()),
        about=" ".join([best.difference.later.value.kind, *sorted(shared)]),
        strength=best.score
        + _SURE_RELATEDNESS_BONUS * _is_surely_one_thing(best)
        + 0.3 * (len(mentions) - 2)
        + 0.4 * (len(sources) - 2),
        values=tuple(texts)
        if len({id(each.statement) for each in mentions}) == len(mentions)
        else (),
        is_said_already=len(sources) < 2,
    )


_LINKING = (
    "goes going gone went costs cost comes stands stood rises rose rising raised drops dropped "
    "dropping falls fell moves moved moving set setting paid pays charged charges reported reports "
    "about around roughly nearly almost only just still up down steht kostet beträgt liegt coûte "
    "est cuesta costa"
)
"""What may stand between the name of a thing and its value."""


def _title(pair: Pair, shared: frozenset[str], weights: StemWeights) -> str:
    """Return what a change is of, in words of one of its sentences; no greeting or speaker."""
    ends = (pair.later, pair.earlier)
    weak = {
        stem
        for each in ends
        for word, own in each.words
        if word.lower() in weak_words(each.language) or ANY_PLAN.fullmatch(word)
        for stem in own
    }
    speakers = {stem for each in ends for stem in terms(each.speaker, each.language)}
    if named := shared - weak - speakers:
        return phrase(ends, named, weights)
    return part_around(pair.earlier.text, pair.difference.earlier.value.text).rstrip(".")


def _without_values(title: str, values: Sequence[str], language: str) -> str:
    """Return what a title says before a value, without the verb and small words beside that.

    "The rent goes up to 71" is called "rent": the sentence that goes on tells the values.
    """
    places = [at for value in values if (at := _place_of(value, title)) is not None]
    small = stop_words(language or "en")
    words = title[: min(places, default=len(title))].split()
    while words and _says_nothing_last(words[-1], small):
        words.pop()
    while words and words[0].lower() in small:
        words.pop(0)
    return " ".join(words).strip(" ,;:–—-") or title


def _place_of(value: str, title: str) -> int | None:
    """Return where a value stands in a title, or the beginning of it that the title ends with."""
    words = value.split()
    for most in range(len(words), 0, -1):
        end = r"(?!\w)" if most == len(words) else r"\W*$"
        if found := re.search(rf"(?<!\w){re.escape(' '.join(words[:most]))}{end}", title):
            return found.start()
    return None


def _says_nothing_last(word: str, small: frozenset[str]) -> bool:
    bare = re.sub(r"^\W+|\W+$", "", word).lower()
    is_small = not bare or bare in small | VERBS or bare in _LINKING.split()
    return is_small or bool(CHANGE_WORDS.fullmatch(bare)) or calendar_stems() >= set(terms(bare))


def _is_surely_one_thing(pair: Pair) -> bool:
    """Return whether two sentences are closely related, and differ in what is known to change."""
    if pair.is_stated or pair.later.is_row or pair.earlier.is_row:
        return False
    kinds = {pair.difference.earlier.value.kind, pair.difference.later.value.kind}
    said = pair.later.quote or pair.later.text
    if kinds == {"date"} and not MOVED.search(said):
        return False
    if kinds == {"quantity"} and not CHANGE_WORDS.search(pair.later.text):
        return False
    if kinds not in ({"date"}, {"money"}, {"quantity"}) or _has_replaced_word(pair):
        return False
    return relatedness(pair.earlier, pair.later) >= _SURE_RELATEDNESS


def _has_replaced_word(pair: Pair) -> bool:
    """Return whether two statements have different words beside a word of what the value is of.

    "Front brake pads" and "rear brake pads" are two things; "new price" and "price" are one.
    """
    heads = pair.difference.head | pair.shared_stems
    one, other = pair.earlier, pair.later
    mine, theirs = _words_beside(one, heads), _words_beside(other, heads)
    return any(
        bool(mine[place] - other.context) and bool(theirs[place] - one.context)
        for place in mine.keys() & theirs.keys()
    )


def _words_beside(statement: Statement, heads: frozenset[str]) -> dict[tuple[str, int], set[str]]:
    """Return the stems of the content words before (-1) and after (1) each of some stems."""
    beside: dict[tuple[str, int], set[str]] = defaultdict(set)
    for pair in pairwise(statement.words):
        for (word, own), (_, heading), side in ((pair[0], pair[1], -1), (pair[1], pair[0], 1)):
            if word.lower() in words_of_all("stop_words") or CHANGE_WORDS.fullmatch(word):
                continue
            for stem in heading & heads:
                beside[stem, side] |= own - heads - calendar_stems()
    return beside


def _fluctuates(said: Sequence[_ValueMention]) -> bool:
    """Return whether amounts go up and down repeatedly, as readings do."""
    if said[0].slot.value.kind not in NUMERIC:
        return False
    amounts = [each.slot.amount for each in said]
    ups = [later > earlier for earlier, later in pairwise(amounts)]
    return sum(one != other for one, other in pairwise(ups)) > _MAX_REVERSALS


def _is_peculiar(slot: Slot) -> bool:
    """Return whether an amount has so many digits that no other thing is likely to have it."""
    digits = f"{slot.amount:.2f}".replace(".", "").strip("0")
    return is_telling_amount(slot) and len(digits) >= _PECULIAR_DIGITS


def _related_mentions(
    said: Sequence[_ValueMention], best: Pair, sure: Sequence[Statement]
) -> list[_ValueMention]:
    """Return the mentions whose statements share a subject with the best pair, and sure ones.

    Returns nothing if the two statements of that pair are unrelated themselves.
    """
    ends = (best.earlier, best.later)
    if not best.is_stated and relatedness(*ends) < _MIN_RELATEDNESS:
        return []
    return [
        each
        for each in said
        if any(each.statement is one for one in (*ends, *sure))
        or any(relatedness(end, each.statement) >= _MIN_RELATEDNESS for end in ends)
    ]


def _confirmed_pairs(
    series: Sequence[Pair], found: Sequence[Statement], weights: StemWeights
) -> Iterator[Pair]:
    """Yield pairs of a stated change and another statement, none later, of the former value."""
    for pair in series:
        if not pair.is_stated:
            continue
        former = pair.difference.earlier
        own = weights.shared_weight(pair.later, pair.later)
        least = min(_SAME_SUBJECT_WEIGHT, _SAME_SUBJECT_SHARE * own)
        for each in found:
            if each.document == pair.later.document:
                continue
            own_day = next((slot for slot in each.slots if _is_entry_of(each, slot, pair)), None)
            if own_day is not None:
                entry = replace(each, day=pair.later.day, is_dated=False)
                yield Pair(entry, pair.later, replace(pair.difference, earlier=own_day), 0.0)
            if pair.later.precedes(each):
                continue
            if weights.are_of_two_things(each, pair.later):
                continue
            for slot in each.slots:
                if may_be_one_amount(slot.value, former.value) and (
                    weights.shared_weight(each, pair.later) >= least
                    or _is_of_one_name(slot, pair, weights)
                ):
                    what = Difference(slot, pair.difference.later, slot.near & pair.later.stems)
                    yield Pair(each, pair.later, what, 0.0)


def _is_of_one_name(slot: Slot, pair: Pair, weights: StemWeights) -> bool:
    """Return whether an amount stands beside words that the later sentence has, too."""
    named = (slot.near & pair.later.stems) - stems_of_cues()
    return is_telling_amount(slot) and weights.sum(named) >= _LEAST_OF_NAME * weights.rare


def _is_entry_of(each: Statement, slot: Slot, pair: Pair) -> bool:
    """Return whether a statement is the entry in a calendar of what was moved from its day."""
    if each.memory.doc_type != "other":
        return False
    title = " ".join(re.findall(r"\w+", each.memory.title.casefold())[:_WORDS_OF_ENTRY])
    return (
        each.memory.namespace == pair.later.memory.namespace
        and each.text.startswith(each.memory.title)
        and " " in title
        and title in " ".join(re.findall(r"\w+", pair.later.text.casefold()))
        and is_own_day(slot, each)
        and slot.value.agrees_with(pair.difference.earlier.value)
    )


def _mentions_in_order(series: Sequence[Pair]) -> list[_ValueMention]:
    """Return each value once, oldest first; a former value precedes the one that replaced it."""
    found: list[_ValueMention] = []
    for pair in series:
        what = pair.difference
        is_former = pair.is_stated or not pair.earlier.day < pair.later.day
        found.append(_ValueMention(pair.earlier, what.earlier, is_former))
        found.append(_ValueMention(pair.later, what.later, False))
    found.sort(key=lambda each: (each.statement.day, not each.is_former, each.is_former))
    kept: list[_ValueMention] = []
    for each in found:
        if not any(each.slot.value.agrees_with(other.slot.value) for other in kept):
            kept.append(each)
    return kept[:1] + kept[1:][-(_MAX_SERIES_LENGTH - 1) :]


# --- posts ---------------------------------------------------------------------------------------

_SUCCESSION_STRENGTH = 1.0
_Held = tuple[Statement, PostHolder]


def find_successions(found: Sequence[Statement], _: StemWeights) -> list[Finding]:
    """Return the posts and tasks that somebody else has got, where it is sure that it is one."""
    by_post: dict[tuple[str, frozenset[str]], list[_Held]] = defaultdict(list)
    for each in found:
        if not (each.is_row or each.topic):
            for holder in _post_holders(each):
                if not holder.is_past and (each.is_dated or not holder.is_new):
                    by_post[each.memory.namespace, holder.post].append((each, holder))
    findings = []
    for held in by_post.values():
        held.sort(key=lambda item: (item[0].is_dated, item[0].day))
        for of_one_post in _by_what_they_are_about(held):
            series = _successors(of_one_post)
            if len(series) > 1:
                findings.append(_succession_finding(series))
    return findings


def _post_holders(statement: Statement) -> tuple[PostHolder, ...]:
    memory = statement.memory
    titles = "" if memory.session_id else f"{memory.title}\n{memory.heading}"
    return post_holders(statement.text, statement.day.year, titles)


def _by_what_they_are_about(held: Sequence[_Held]) -> Iterable[Sequence[_Held]]:
    """Return the holders of posts of one name by post, without those that may have either of two.

    Who is said to follow somebody has the post of that one, whatever the titles are about.
    """
    every = {holder.about for _, holder in held}
    posts: dict[frozenset[str], list[_Held]] = {
        about: [] for about in every if not any(about < other for other in every)
    }
    for each, holder in held:
        fitting = {about for about in posts if holder.about <= about}
        if holder.former:
            had = {
                about
                for about, kept in posts.items()
                if any(holder.succeeds(former) for _, former in kept)
            }
            fitting = fitting & had or had or fitting
        if len(fitting) == 1:
            posts[fitting.pop()].append((each, holder))
    return posts.values()


def _successors(held: Sequence[_Held]) -> list[_Held]:
    """Return who had a post, one after another; nobody where several have it at one time."""
    series: list[_Held] = []
    for each, holder in held:
        if not series or _is_successor((each, holder), series[-1]):
            series.append((each, holder))
        elif series[-1][1].name.split()[0] not in holder.name.split():
            return []
    return series


def _is_successor(later: _Held, earlier: _Held) -> bool:
    """Return whether a person surely has got the post of another one.

    What has no day of its own, as a list of who does what, tells how it was before somebody else
    gets the post.
    """
    is_earlier = earlier[0].precedes(later[0]) or not earlier[0].is_dated
    return is_earlier and later[0].is_dated and later[1].succeeds(earlier[1])


def _succession_finding(series: Sequence[_Held]) -> Finding:
    names = " to ".join(holder.name for _, holder in series)
    days = [each.day for each, _ in series if each.is_dated]
    when = insight_wording.day_after_day(days)
    last = series[-1][1]
    return Finding(
        kind="change",
        title=last.words,
        headline=f"“{insight_wording.capitalise(last.words)}”: {CHANGE_PHRASE} {names} ({when}).",
        evidence=tuple(each for each, _ in series),
        about=" ".join(["post", *sorted(last.post)]),
        strength=_SUCCESSION_STRENGTH,
        values=tuple(holder.name for _, holder in series),
    )


# --- values in words -----------------------------------------------------------------------------

_SETTLED_STRENGTH = 0.8
_LONGEST_SETTLED = 160
"""Characters of a sentence that says plainly what something has."""
_WEEKDAY = rf"(?:{'|'.join(ENGLISH_WEEKDAYS)})"
_HABIT = re.compile(
    rf"\b(?:(?:every|each) {_WEEKDAY}s?|{_WEEKDAY}s|"
    rf"(?:day|night|evening|morning) (?:is|to|on|now)(?: on| now)? {_WEEKDAY})\b",
    re.IGNORECASE,
)
"""A day on which something is always: "Mondays", "every Monday", "bin day is Monday"."""
_NO_LONGER = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer|not)(?: (?-i:[a-z]+)){0,2}? "
    r"(?:(?:on|at|in|with|from|through|via|over|the|every) )*$",
    re.IGNORECASE,
)
"""Stands before what something does not have any more."""
_PARTY = re.compile(
    r"\b(?P<relation>with|at|from|through|via|over|on|to|it['’]s|instead of|rather than|not|"
    r"no longer) "
    r"(?P<name>[A-ZÀ-ÖØ-Þ][\w'’.-]*\w(?: (?:& |and )?[A-ZÀ-ÖØ-Þ][\w'’-]*\w){0,2})"
)
_RUNS = re.compile(
    r"\b(?:is|are|we['’]re|it['’]s|buys?|gets?|orders?|comes?|runs?|goes|go|insured|hosted|"
    r"supplied|printed|moved|switched|changed|gone)\b",
    re.IGNORECASE,
)
"""A verb of a sentence that says by whom or on what something is done."""
_PLACED = re.compile(
    r"\b(?P<verb>meets?|rehearses?|trains?|(?:is|are) (?:held|kept|stored|parked)|takes? place)"
    r"(?: now)? (?:in|at) (?:the|our) (?P<name>[a-z]+(?: [a-z]+){0,2}?)"
    r"(?=(?: now| instead| from)\b|[.,;]|$)",
    re.IGNORECASE,
)
_SETTLED_ANEW = re.compile(
    r"\b(?:now|from now on|nowadays|these days|instead of|rather than|no longer|not|any ?more|"
    r"(?:moved|switched|changed|gone|swapped) )\b",
    re.IGNORECASE,
)
_UNSETTLED = re.compile(
    r"\b(?:if|unless|whether|could|would|might|should|can|may|maybe|perhaps|probably|wants?|hopes?|"
    r"thinks?|was|were|used to|until|till|(?:next|this) (?:week|month|time|year|term)|except|"
    r"sometimes)\b|\?|"
    r"n['’]t\b|\b(?:cannot|never|none|neither|nor|nobody|hardly|no (?!longer)|not (?:now|yet)|"
    r"(?:do|does|did|has|have|will) not|stop(?:s|ped)?|refuse[sd]?)\b|"
    r"\b(?:also|too|as well|besides|additional(?:ly)?|in addition|another|both|extra|second|plus|"
    r"add(?:s|ed)?|there(?: is| are|['’]s)|"
    r"(?:have|has)(?! (?:now |just )?(?:been|changed|moved|switched|gone|swapped|put)))\b",
    re.IGNORECASE,
)
"""In a sentence that doesn't say plainly how something is from now on, that denies it, or that adds
something to what was there before."""
_FIRST_PERSON = re.compile(r"\b(?:I|we|my|our|us|me)\b", re.IGNORECASE)


class _Settled(Struct, frozen=True):
    """What a sentence says plainly that something has: its weekday, its firm, its place."""

    statement: Statement
    attribute: str
    value: str
    relation: str
    """How a sentence ties a name to the thing, and whether it is that of a place."""
    former: str
    """What it had before, if the sentence says so."""
    subject: frozenset[str]
    is_new: bool

    @property
    def kind(self) -> tuple[str, str]:
        """What only is compared with its like: the namespace and what it is a value of."""
        return self.statement.memory.namespace, self.attribute

    def without_value(self) -> Statement:
        """Return the statement without the words of its value, which may be names."""
        said, own = self.statement, frozenset(terms(self.value))
        return replace(said, stems=said.stems - own, around=said.around - own)

    def replaces(self, other: _Settled) -> bool:
        """Return whether both are on the same thing, and this one says that it is new.

        It is named with no other words than before, and tied to its value in the same way, unless
        this one says what it had before.
        """
        if not (self.is_new and self.subject & other.subject):
            return False
        if self.attribute != other.attribute or _is_one_name(self.value, other.value):
            return False
        names_other = bool(self.former) and _is_one_name(self.former, other.value)
        if self.former and not names_other:
            return False
        is_alike = self.relation == other.relation and self.subject <= other.subject
        return names_other or is_alike


def _is_one_name(one: str, other: str) -> bool:
    return not frozenset(terms(one)).isdisjoint(terms(other))


def find_resettled(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return the weekdays, firms and places of things that a later sentence says are others now.

    Of a thing that has several of one kind it isn't known which is meant.
    """
    settled = [
        said
        for each in found
        if each.is_dated and not (each.is_row or each.topic) and len(each.text) <= _LONGEST_SETTLED
        for said in _settled(each)
    ]
    places: dict[tuple[str, str, str], list[int]] = defaultdict(list)  # of each stem of a subject
    newest: dict[tuple[str, str, str], date] = {}  # of each stem of a value
    for place, each in enumerate(settled):
        for stem in each.subject:
            places[*each.kind, stem].append(place)
        for stem in terms(each.value):
            day = each.statement.day
            newest[*each.kind, stem] = max(newest.get((*each.kind, stem), day), day)
    findings = []
    for later in filter(lambda each: each.is_new, settled):
        alike = [places[*later.kind, stem] for stem in later.subject]
        near = {n for each in alike if len(each) <= MAX_STATEMENTS_PER_STEM for n in each}
        before = [each for n in sorted(near) if _is_replaced(each := settled[n], later, weights)]
        if len({each.subject for each in before}) != 1:
            continue
        last = max(before, key=lambda each: each.statement.day)
        days = (newest[*last.kind, stem] for stem in terms(last.value))
        if all(day <= later.statement.day for day in days):
            findings.append(_resettled_finding(last, later))
    return findings


def _is_replaced(earlier: _Settled, later: _Settled, weights: StemWeights) -> bool:
    """Return whether what a sentence says of a thing surely is another one by a later sentence."""
    return (
        earlier.statement.precedes(later.statement)
        and later.replaces(earlier)
        and _are_of_one_speaker(earlier.statement, later.statement)
        and not any(map(weights.is_name, earlier.subject - later.subject))
        and not weights.are_of_two_things(earlier.without_value(), later.without_value())
    )


def _are_of_one_speaker(one: Statement, other: Statement) -> bool:
    """Return whether "our insurance" is that of the same people in two statements."""
    if not (_FIRST_PERSON.search(one.text) or _FIRST_PERSON.search(other.text)):
        return True
    return one.speaker == other.speaker


def _settled(statement: Statement) -> Iterator[_Settled]:
    text = statement.text
    if _UNSETTLED.search(text):
        return
    is_new = _SETTLED_ANEW.search(text) is not None
    days = [
        _Named(found.span(), found.group().split()[-1].removesuffix("s"))
        for found in _HABIT.finditer(text)
    ]
    parties = [
        _Named(found.span("name"), found["name"], _relation(found["relation"], found["name"]))
        for found in _PARTY.finditer(text)
        if ("&" in found["name"] or found["name"].split()[0] not in known_names().given)
        and not found["name"].startswith((*ENGLISH_WEEKDAYS, *ENGLISH_MONTHS))
    ]
    places = [_Named(found.span("name"), found["name"]) for found in _PLACED.finditer(text)]
    verb = _PLACED.search(text)
    yield from _settled_as("day", statement, days, is_new)
    if _RUNS.search(text):
        yield from _settled_as("party", statement, parties, is_new)
    if verb is not None:
        yield from _settled_as(f"place {verb['verb'].split()[-1][:4]}", statement, places, is_new)


class _Named(Struct, frozen=True):
    """A value in words where it stands in a sentence."""

    span: tuple[int, int]
    name: str
    relation: str = ""


def _relation(preposition: str, name: str) -> str:
    """Return in what way something has a name: a flight goes to a place, and is with a firm."""
    return f"{preposition.lower()} {'place' if name in known_names().places else 'name'}"


def _settled_as(
    attribute: str, statement: Statement, named: Sequence[_Named], is_new: bool
) -> Iterator[_Settled]:
    """Yield the only value of a kind that a sentence gives, with the former one if it has both."""
    text = statement.text
    old = [
        each
        for each in named
        if _NO_LONGER.search(text, 0, each.span[0])
        or (text[: each.span[0]].endswith("from ") and text[each.span[1] :].startswith(" to "))
    ]
    new = [each for each in named if each not in old]
    if len({each.name for each in new}) != 1 or len(old) > 1:
        return
    names = frozenset(stem for each in named for stem in terms(each.name))
    weak = stop_words(statement.language or "en") | VERBS
    subject = frozenset(
        stem
        for word, own in statement.words
        if word.lower() not in weak and not CHANGE_WORDS.fullmatch(word)
        for stem in own
    )
    subject -= names | calendar_stems()
    if subject:
        former = old[0].name if old else ""
        yield _Settled(
            statement, attribute, new[0].name, new[0].relation, former, subject,
            is_new or bool(former),
        )  # fmt: skip


def _resettled_finding(earlier: _Settled, later: _Settled) -> Finding:
    shared = earlier.subject & later.subject
    words = [word for word, own in earlier.statement.words if own & shared]
    title = insight_wording.capitalise(" ".join(dict.fromkeys(words)))
    when = insight_wording.day_after_day([earlier.statement.day, later.statement.day])
    return Finding(
        kind="change",
        title=title,
        headline=f"“{title}”: {CHANGE_PHRASE} {earlier.value} to {later.value} ({when}).",
        evidence=(earlier.statement, later.statement),
        about=" ".join([later.attribute, *sorted(shared)]),
        strength=_SETTLED_STRENGTH,
        values=(earlier.value, later.value),
    )


# --- what is given up, and what takes the place of something -------------------------------------

_GIVEN_UP_STRENGTH, _REPLACED_STRENGTH = 0.9, 0.9
_LEAST_OF_SUBJECT = 0.9
"""Weight of the words of what is given up, where a rare word has 1."""
_DOUBTED = re.compile(
    r"\b(?:if|unless|whether|could|would|should|might|may|maybe|perhaps|probably|wants?|hopes?|"
    r"thinks?|suggests?|proposes?|asks?|not|never|nobody|without|until|before)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_GIVEN_UP = re.compile(
    r"\b(?:(?:we|i|they|they['’]ve|we['’]ve|i['’]ve) (?:have |are |now |have now )?"
    r"|(?:decided|agreed|decision) to |decided: )"
    r"(?:drop(?:ped|ping)?|stop(?:ped|ping)?|cancel(?:l?ed|l?ing)?|abandon(?:ed|ing)?|"
    r"scrap(?:ped|ping)?|shelv(?:ed?|ing)|call(?:ed|ing)? off|g[ai]ve up(?: on)?|giving up) "
    r"(?:the|our|this|that) (?P<what>[^\s.,;:()]+(?: [^\s.,;:()]+){0,5})",
    re.IGNORECASE,
)
"""A plain sentence on what is not done any more: "we drop the trip to Ghent"."""
_AIMED_AT = re.compile(
    r"\b(?:plan(?:s|ned)?|will|want(?:s|ed)?|ideas?|pilots?|roadmap|budget|going to|"
    r"propos\w+|intend\w*|"
    r"next (?:year|spring|summer|autumn|winter|quarter|season)|Q[1-4]|start(?:s|ing)?|todo|"
    r"goals?)\b|\[ \]",
    re.IGNORECASE,
)
_THING = r"(?-i:[A-ZÀ-ÖØ-Þ][\w'’.+-]*\w(?: (?:(?:& |and |of )?[A-ZÀ-ÖØ-Þ][\w'’+-]*\w)){0,3})"
_REPLACED = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\breplac(?:e|es|ed|ing) (?P<old>{_THING}) (?:by|with) (?P<new>{_THING})",
        rf"(?P<new>{_THING}) (?:replaces|has replaced|is replacing|takes the place of) "
        rf"(?P<old>{_THING})",
        rf"(?P<new>{_THING}) (?:(?:has |have )?(?:bought|acquired|taken over)|(?:takes|took) over) "
        rf"(?P<what>[^.;:]{{3,60}}?) from (?P<old>{_THING})",
        rf"(?P<old>{_THING}) (?:(?:has |have )?sold|hands? over|handed over) "
        rf"(?P<what>[^.;:]{{3,60}}?) to (?P<new>{_THING})",
    )
)
_HOLDER = r"(?:owner|landlord|landlady|tenant|leaseholder|shareholder|manager)"
_HELD = (
    r"\b{former},?(?: (?:also|alone|still|now|jointly|currently))? "
    r"(?:owns?|owned|holds?|held|rents?|rented|lets?|leases?|leased|manages?|managed|runs?|ran"
    rf"|(?:is|was) (?:the |our )?{_HOLDER})\b"
    r"|\b(?:(?:owned|held|managed|run|let|leased|rented) (?:out )?(?:by|from)|belong(?:s|ed)? to)"
    r" (?:the )?{former}\b"
    rf"|\b{_HOLDER}\b[^.;:]{{{{0,40}}}}?(?: (?:is|was)|:) {{former}}\b"
)
"""Says that somebody has something that somebody else may get."""
_WHOSE = re.compile(r"^(?:his|her|their|its|our) ", re.IGNORECASE)


def find_given_up(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what was planned by an earlier document, and is given up by a later one."""
    findings: dict[frozenset[str], Finding] = {}
    for later in found:
        said = _plainly(later, _GIVEN_UP)
        what = said["what"] if said else ""
        stems = naming_stems(what, later.language)
        if weights.sum(stems) < _LEAST_OF_SUBJECT * weights.rare:
            continue
        plans = [
            each
            for each in found
            if _is_other_and_earlier(each, later)
            and stems <= each.context
            and not stems.isdisjoint(each.stems)
            and (each.memory.type == "plan" or _AIMED_AT.search(_with_titles(each)))
        ]
        if plans and not any(_revives(each, later, stems) for each in found):
            first = max(plans, key=lambda each: (len(stems & each.stems), each.is_kept, each.day))
            findings[stems] = _given_up_finding(first, later, _without_small_ends(what), stems)
    return list(findings.values())


def _plainly(statement: Statement, *forms: re.Pattern[str]) -> re.Match[str] | None:
    """Return what one of some forms finds in a dated sentence that nothing puts in doubt."""
    if not statement.is_dated or statement.is_row or statement.topic or statement.is_question:
        return None
    said = next(filter(None, (form.search(statement.text) for form in forms)), None)
    if said is None or _DOUBTED.search(statement.text[: said.end()]):
        return None
    return said


def _is_other_and_earlier(one: Statement, other: Statement) -> bool:
    is_other = one.document != other.document and one.memory.namespace == other.memory.namespace
    return is_other and one.precedes(other)


def _with_titles(statement: Statement) -> str:
    return " ".join((statement.memory.title, statement.memory.heading, statement.text))


def _revives(each: Statement, given_up: Statement, stems: frozenset[str]) -> bool:
    """Return whether a later statement plans again what was given up."""
    is_plan = each.memory.type == "plan" or _AIMED_AT.search(each.text) is not None
    return is_plan and stems <= each.stems and _is_other_and_earlier(given_up, each)


def _without_small_ends(words: str) -> str:
    """Return words up to the last one that says something."""
    kept = words.split()
    while kept and _says_nothing_last(kept[-1], stop_words("en")):
        kept.pop()
    return " ".join(kept) or words


def _given_up_finding(
    plan: Statement, later: Statement, what: str, stems: frozenset[str]
) -> Finding:
    since, until = insight_wording.day(plan.day), insight_wording.day(later.day)
    return Finding(
        kind="change",
        title=f"{what}, given up",
        headline=f"“{insight_wording.capitalise(what)}”: spoken of on {since}, "
        f"given up on {until}.",
        evidence=(plan, later),
        about=" ".join(["given up", *sorted(stems)]),
        strength=_GIVEN_UP_STRENGTH,
    )


def find_replaced(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return what another thing, firm or owner has taken the place of.

    An earlier document names the former one; where a sentence says what passes from one to the
    other, as what somebody has.
    """
    findings: dict[tuple[str, str], Finding] = {}
    for later in found:
        said = _plainly(later, *_REPLACED)
        if said is None:
            continue
        old, new = said["old"], said["new"]
        what = said.groupdict().get("what") or ""
        stems = frozenset(terms(old))
        if not stems or _is_one_name(old, new):
            continue
        before = [
            each
            for each in found
            if _is_other_and_earlier(each, later)
            and not each.is_row
            and stems <= each.context
            and _is_held_before(each, later, old, what, weights)
        ]
        if before:
            first = max(before, key=lambda each: weights.shared_weight(each, later))
            findings[old, new] = _replaced_finding(first, later, old, new, what)
    return list(findings.values())


def _is_held_before(
    earlier: Statement, later: Statement, old: str, what: str, weights: StemWeights
) -> bool:
    """Return whether a statement says that something is in use, or in somebody's hands."""
    if not what:
        return (
            frozenset(terms(old)) <= earlier.stems and weights.most(terms(old)) > 0.5 * weights.rare
        )
    held = _HELD.format(former=re.escape(old))
    if re.search(held, earlier.text, re.IGNORECASE) is None:
        return False
    own = naming_stems(what, later.language)
    values = [slot.value for slot in slots_of(what)]
    has_values = all(any(agree(slot.value, value) for slot in earlier.slots) for value in values)
    return bool(own or values) and own <= earlier.stems and has_values


def _replaced_finding(
    earlier: Statement, later: Statement, old: str, new: str, what: str
) -> Finding:
    when = insight_wording.day_after_day([earlier.day, later.day])
    title = _WHOSE.sub(f"{old}’s ", what) if what else f"{old} replaced"
    head = f"{CHANGE_PHRASE} {old} to {new}" if what else f"replaced by {new}"
    return Finding(
        kind="change",
        title=title,
        headline=f"“{insight_wording.capitalise((what and title) or old)}”: {head} ({when}).",
        evidence=(earlier, later),
        about=" ".join(["replaced", *sorted(terms(f"{old} {new}"))]),
        strength=_REPLACED_STRENGTH,
    )
