"""Which form of answer a question asks for, and which texts lack it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial

from msgspec import Struct

from memctl.language.date_mentions import date_spans
from memctl.language.sentence_values import values
from memctl.language.term_analysis import query_terms
from memctl.language.word_lists import (
    all_languages,
    any_of,
    known_names,
    load_language,
    month_numbers,
    stop_words,
)
from memctl.patterns import lazy_regex
from memctl.records import Hit
from memctl.search.answering.evidence_parts import (
    ABSOLUTE_DATE,
    CLOSING,
    DATE,
    DIGIT,
    MONTHS,
    TURN_LABEL,
    WEEKDAYS,
    Span,
    has_date,
    has_relative_time,
    is_of_stated_day,
    is_question,
    is_said,
    is_time_word,
    stated_values,
)

_WORD = lazy_regex(r"[^\W_]+")
_ROLL_WORD = (
    r"(?:present|absent|attend(?:ees|ance|ing)|participants|apologies|excused|regrets"
    r"|anwesend|abwesend|entschuldigt|teilnehmer(?:innen)?|présents?|absents?|excusés?"
    r"|presentes|ausentes|asistentes|presenti|assenti|aanwezig|afwezig):\s"
)
_ROLL = lazy_regex(rf"(?:[-*+•]\s+)?{_ROLL_WORD}", re.IGNORECASE)
_ROLL_LABEL = lazy_regex(rf"\b(?={_ROLL_WORD})", re.IGNORECASE)
"""Before the names of those who are at a meeting, or aren't."""
_INVERTED = lazy_regex(
    r"(?:\W*\b(?:also|and|so|but|ps|btw|hey|hi|ok|oh)\b)*\W*"
    r"(?:(?:is|are|was|were|can|could|would|will) (?:there|you|we|i|he|she|they|it)"
    r"|(?:do|does|did|have|has) (?:you|we|i|he|she|they)"
    r"|(?:(?:do|does|did|have|has|is|can|could|would|will) )?any(?:one|body) (?:\w+ )?"
    r"(?:know|got|seen|have|has|had)|any (?:idea|news))\b",
    re.IGNORECASE,
)
_BARE_QUESTION = lazy_regex(
    r"(?:what|which|who|whose|whom|where|when|why|how|welche[rs]?|wer|wann|wieso|warum|wieviel"
    r"|combien|pourquoi|quand|cuándo|cuánto|dónde|quién)(?: [^\W\d_]+){0,3}\W*",
    re.IGNORECASE,
)
"""A question of few words, as people type it in chats: "what colour"."""
_TITLE_OF_WORK = lazy_regex(r"[^\W\d_]+(?: (?=[A-ZÀ-Þ])[^\W\d_]+){2,}\W*")
"""The title of a book or a film: "Where Eagles Dare"."""


def asks_something(sentence: str) -> bool:
    """Return whether a sentence asks something, though it may end without a question mark.

    One that begins like a question but ends with a full stop, or has a date or a number, may tell
    something: "Can you collect Ann at 5".
    """
    if is_question(sentence):
        return True
    bare = sentence.rstrip(CLOSING)
    is_stopped = bare.endswith((".", "!")) and not bare.endswith("..")
    label = TURN_LABEL.match(bare)
    start = label.end() if label else 0
    if _BARE_QUESTION.fullmatch(bare, start) and not _TITLE_OF_WORK.fullmatch(bare, start):
        return True
    has_value = DIGIT.search(sentence) is not None or bool(stated_values(sentence))
    return _INVERTED.match(sentence) is not None and not (is_stopped or has_value)


_ASKS_WHEN = lazy_regex(
    r"\b(?:when|since when|(?:what|which) (?:\w+ )?(?:date|day|time|year|month|week)|wann|quand"
    r"|cu[aá]ndo|quando)\b",
    re.IGNORECASE,
)
_ASKS_WHAT_HAPPENED = lazy_regex(
    r"\b(?:what (?:else )?(?:happened|went on|took place)"
    r"|what (?:did|was|were) (?:\w+ ){1,2}(?:do|doing|up to)"
    r"|which things happened|anything (?:happen|going on)"
    r"|what(?:['’]s| is| was)(?: there)? (?:on|happening|going on)"
    r"|was (?:ist|war) (?:\S+ ){0,4}(?:passiert|geschehen|los)"
    r"|was (?:habe|hat|haben) (?:\S+ ){1,5}gemacht"
    r"|qu['’]est-ce qui s['’]est passé|qué pasó|che cosa è successo|wat is er gebeurd)\b",
    re.IGNORECASE,
)


def asks_what_happened(question: str) -> bool:
    """Return whether a question asks for what happened, usually at some time."""
    return _ASKS_WHAT_HAPPENED.search(question) is not None


_ASKS_HOW = lazy_regex(
    r"\W*(?:how (?:do|does|can|could|should|would|must|to)\b|what (?:does|do) .* do\b"
    r"|what(?:['’]s| is) the (?:\w+ )?way to\b|wie (?:kann|muss|soll|macht?|funktioniert)\b"
    r"|was macht\b|comment\b(?! s['’]appelle)|c[oó]mo (?:se|puedo|hago|funciona)\b)",
    re.IGNORECASE,
)


def asks_how(question: str) -> bool:
    """Return whether a question asks how something is done or works, or what it does."""
    return _ASKS_HOW.match(question) is not None


_ASKS_FOR_OLDEST = lazy_regex(
    r"\b(?:at first|original(?:ly)?|initial(?:ly)?|in the beginning|to begin with|anfangs|zuerst"
    r"|ursprünglich\w*|au début|à l['’]origine|initialement|al principio|originalmente"
    r"|inizialmente|all['’]inizio|aanvankelijk)\b",
    re.IGNORECASE,
)
_OF_EARLIER = (
    r"\b(?:previous(?:ly)?|former(?:ly)?|used to|before that"
    r"|vorher\w*|bisher\w*|früher\w*|auparavant|précédent\w*"
    r"|antes|anterior\w*|prima|precedente)\b"
)
_BEFORE_A_CHANGE = (
    r"(?<=\bbefore )(?:(?:the|its|our|my|that|this) (?:\w+ )?"
    r"(?:increase|rise|raise|hike|reduction|change|changeover|handover|takeover)|"
    r"(?:it|they|this|that) (?:was |were )?(?:changed|rose|increased|raised|went (?:up|down)))\b"
)
_OLD_VALUE = (
    r"\bold (?=(?:e-?mail |phone |postal |street )?(?:address|prices?|rates?|rent|fees?|number"
    r"|password|code|pin|deadline|date|day|hours|name|supplier|provider|insurer|landlord|tenant"
    r"|owner|manager|contact|doctor|dentist|limit|tariff|salary|wages?)\b)"
)
_ASKS_FOR_EARLIER = lazy_regex(rf"{_ASKS_FOR_OLDEST.pattern}|{_OF_EARLIER}", re.IGNORECASE)
"""In a question for how something was before it changed."""
_OLD_OR_BEFORE_A_CHANGE = lazy_regex(rf"{_OLD_VALUE}|{_BEFORE_A_CHANGE}", re.IGNORECASE)
"""The same after a verb in the past tense."""
_WAS = lazy_regex(r"\b(?:was|were|did|had)\b", re.IGNORECASE)
_LOOKING_BACK = lazy_regex(
    rf"{_OF_EARLIER}|\bbefore {_BEFORE_A_CHANGE}|{_OLD_VALUE}", re.IGNORECASE
)
_ASKS_WHO_BEFORE = lazy_regex(
    r"\b(?:who|(?:what|which) (?:company|firm|supplier|provider|insurer|bank)) "
    r"(?:was|were|had|did)\b[^?]*\b(?P<before>before"
    r" (?P<title>(?:dr|mrs?|ms|miss|prof)\.? )?(?P<name>[^\W\d_][\w'’-]*)"
    r"(?: (?-i:[A-ZÀ-Þ])[\w'’-]*)*(?: (?:took over|took on|came|started|joined))?)",
    re.IGNORECASE,
)
_ENDS_WITH_BEFORE = lazy_regex(
    r"(?<!\bday )(?<!night )(?<!week )(?<!month )(?<!year )(?<!evening )(?<!time )(?<!from )"
    r"\b(?P<before>before)\W*$",
    re.IGNORECASE,
)
_ASKS_WHAT = lazy_regex(r"\b(?:who|what|which|where|how (?:much|many))\b", re.IGNORECASE)
_STATES_EARLIER = lazy_regex(
    rf"{_OF_EARLIER}|\b(?:until|till|before|earlier|originally|initially|old|ex|was|were|had"
    r"|went from|no longer|once|replac\w+|succeed\w*|instead of|rather than|took over|takes over"
    r"|(?:up|down) from|bis|war|waren|hatte|statt|avant|était|jusqu['’]\w*|era|fino|hasta|tot)\b"
    r"|\bfrom\b.*\bto\b|->|→",
    re.IGNORECASE,
)
"""What says how something was, besides a verb of its own in the past tense."""
_OBJECT_PRONOUNS = frozenset({"him", "her", "them"})


def asks_for_oldest(question: str) -> bool:
    """Return whether a question asks how something was at first."""
    return _ASKS_FOR_OLDEST.search(question) is not None


@lru_cache(maxsize=64)
def asks_for_earlier(question: str) -> bool:
    """Return whether a question asks how something was before it changed.

    "Who was it before?" and "before Ida?" do, "before the party?" asks for an event.
    """
    if _ASKS_FOR_EARLIER.search(question) or _what_before(question):
        return True
    *_, last = [None, *_OLD_OR_BEFORE_A_CHANGE.finditer(question)]
    is_of_change = last is not None and _WAS.search(question, 0, last.start()) is not None
    return is_of_change or _before_whom(question) is not None


def _what_before(question: str) -> re.Match[str] | None:
    """Return the "before" at the end of a question for what or who something was."""
    ends = _ENDS_WITH_BEFORE.search(question)
    if ends is None:
        return None
    start = question.rfind("?", 0, ends.start()) + 1
    asks = _ASKS_WHAT.search(question, start, ends.start())
    return ends if asks and _WAS.search(question, asks.end(), ends.start()) else None


def looking_back(question: str) -> list[Span]:
    """Return what in a question only says that it asks how something was before it changed.

    Without it, the question asks for the same of today.
    """
    if not asks_for_earlier(question):
        return []
    found = [match.span() for match in _LOOKING_BACK.finditer(question)]
    asked = _before_whom(question) or _what_before(question)
    return found or ([asked.span("before")] if asked else [])


def named_successor(question: str) -> str:
    """Return before whom somebody was what is asked about; "" where nobody is named."""
    asked = _before_whom(question)
    return "" if asked is None or asked["name"].lower() in _OBJECT_PRONOUNS else asked["name"]


def states_earlier(sentence: str) -> bool:
    """Return whether a sentence says how something was, and not only how it is."""
    return _STATES_EARLIER.search(sentence) is not None


def _before_whom(question: str) -> re.Match[str] | None:
    """Return what matches a question for who it was before somebody."""
    asked = _ASKS_WHO_BEFORE.search(question)
    return asked if asked and _is_who(question, asked) else None


def _is_who(question: str, asked: re.Match[str]) -> bool:
    """Return whether what stands after ``before`` is somebody."""
    name, rest = asked["name"], question[asked.end() :].strip(" ?!.")
    if name.lower() in _OBJECT_PRONOUNS:
        return not rest
    known = known_names()
    is_small_name = name.capitalize() in known.given - known.given_also_words
    if asked["title"] or name in known.given or is_small_name:
        return True
    is_time = is_time_word(name) or _TIME_HEADING.search(name) is not None
    return name[0].isupper() and not (rest or is_time)


class AskedDays(Struct, frozen=True):
    """The words with which a question asks for several days: ``question[start:end]``."""

    start: int
    end: int
    count: int | None
    """How many days there are, if the question says so."""


COUNTED_TIMES = r"(?:times|days|dates|occasions|nights|evenings|weekends)"
"""Words for several times at which something happened."""
_ASKS_FOR_DAYS = lazy_regex(
    r"\b(?:on |at )?(?:which|what)(?: were)?(?: the)?"
    r" (?:(?P<count>two|three|four|five|six|seven|eight|nine|ten|\d\d?) )?"
    rf"{COUNTED_TIMES}(?! (?:of|for|on|in)\b)\b"
    r"(?=.*\b(?:did|was|were|has|had|have|will)\b)",
    re.IGNORECASE,
)
_SMALL_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def asks_for_days(question: str) -> AskedDays | None:
    """Return the words that ask for several days: "on which days did", "which three times has"."""
    asked = _ASKS_FOR_DAYS.search(question)
    if asked is None or (asked[0].lower().endswith("times") and not asked["count"]):
        return None  # "what times" are those of a timetable
    return AskedDays(*asked.span(), number_of(asked["count"]) if asked["count"] else None)


def number_of(word: str) -> int:
    """Return the number that is meant by digits, or by a word from two to ten."""
    return int(word) if word.isdigit() else _SMALL_NUMBERS.index(word.lower()) + 2


_ASKS_WHY = lazy_regex(
    r"\b(?:why|how come|warum|wieso|weshalb|pourquoi|por qué|perché|waarom)\b", re.IGNORECASE
)
_REASON = lazy_regex(
    r"\b(?:because|['’]?cause|cos|coz|cuz|bc|since|so|due to|owing to|thanks to|on account of"
    r"|on (?:the )?grounds|reasons?|caus(?:es?|ed|ing)|why|therefore|thus|hence|in order|otherwise"
    r"|in case|means?|meant|too"
    r"|as (?:he|she|it|they|we|i|you|the|there|this|that|a|my|our|his|her|its|their)"
    r"|weil|da|denn|wegen|damit|daher|deshalb|parce|car|puisque|pour|porque|ya que|para|perché"
    r"|siccome|per|omdat|want|vanwege"
    r"|to (?!the\b|an?\b|my\b|our\b|his\b|her\b|their\b|its\b|this\b|that\b|me\b|us\b|him\b"
    r"|them\b|you\b|it\b)(?-i:(?P<purpose>[a-z]{2,})))\b",
    re.IGNORECASE,
)
"""A word for a reason, or one that may begin a purpose: raised to pay for the roof."""


def asks_why(question: str) -> bool:
    """Return whether a question asks for a reason."""
    return _ASKS_WHY.search(question) is not None


def has_reason(sentence: str, question: str) -> bool:
    """Return whether a sentence has a word for a reason, or a purpose that its question has not."""
    asked = question.lower()
    return any(
        not (purpose := match["purpose"]) or purpose not in asked
        for match in _REASON.finditer(sentence)
    )


_ASKS_AMOUNT = lazy_regex(
    r"\b(?:how (?:many|much|deep|tall|large)|what percent(?:age)?"
    r"|what (?:is|was) the (?:number|amount) of|what (?:is|was) the (?:max|min|total|average)\w* "
    r"(?:length|size|number|depth|width|height|weight|speed|age|capacity|distance|duration))"
    r"\b(?! (?:do|does|did) (?:i|you|we|they|he|she) (?:like|love|enjoy|care|trust|hate|want)\b)",
    re.IGNORECASE,
)
_ASKS_VALUE = lazy_regex(
    r"\b(?:prices?|costs?|fees?|rent|rates?|wages?|salary|fares?|deposit|charges?|budget|balance"
    r"|total|amount|sum|codes?|pin|password|passphrase|number|dose|size|weight|height|width|length)\b",
    re.IGNORECASE,
)
_AMOUNTS = (
    r"no|none|one(?! (?:can|could|may|might|must|should|would|has|needs|wants)\b)|half|halves"
    r"|thirds?|quarters?|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:dozen|hundred|thousand|million|billion)s?"
    r"|couple|several|few|many|most|handful|once|twice|single|double|triple|zero|both|pair|free"
    r"|nobody|nothing|everybody|everyone|everything|only|all of|hardly|unlimited|infinite"
)
_NUMBER_WORDS = any_of(
    word for each in all_languages() for words in each.numbers[1:] for word in words
)
_AMOUNT = lazy_regex(rf"(?<![^\W\d])\d|[¼-¾⅐-⅞]|\b(?:{_AMOUNTS}|{_NUMBER_WORDS})\b", re.IGNORECASE)
_COMPARATIVE = (
    r"(?:long|short|high|low|cheap|dear|bigg|larg|small|fast|slow|heavi|light|old|young|lat|earli"
    r"|wid|narrow|deep|tall|warm|cold|strong|weak)er"
)
_ASKS_DIFFERENCE = lazy_regex(
    r"\bby how (?:much|many|far)\b|\bum wie\s?viele?\b(?! uhr)|(?<!de )\bde combien\b(?! de\b)"
    rf"|\bhow (?:much|many|far) (?:{_COMPARATIVE}\b|(?:more|less|fewer)\b.*\bthan\b)"
    r"|\bhow (?:much|far) (?:over|under|above|below)\b.*\b(?:budget|plan|limit|target|estimate)",
    re.IGNORECASE,
)
_AMOUNT_OF_DIFFERENCE = (
    r"(?<![\w.,])(?:[€£$]?\d|(?:an?|half|one|two|three|four|five|six|eight|ten)\b)"
)
_DIFFERS = (
    rf"\b(?:{_COMPARATIVE}|more|less|fewer|over|under|above|below|by|extra|up|down|late|early|too"
    r"|difference|rose|fell|dropped|increased|decreased|mehr|weniger|über|unter|um|unterschied"
    r"|plus|moins|più|meno)\b"
)
_STATES_DIFFERENCE = lazy_regex(
    rf"{_DIFFERS}\s+(?:\w+\s+)?{_AMOUNT_OF_DIFFERENCE}"
    rf"|{_AMOUNT_OF_DIFFERENCE}[\w.,]*(?<!,)\s+(?:\w+\s+)?{_DIFFERS}|->|→|(?<!\w)[-+]\d|\d\s?%",
    re.IGNORECASE,
)


def asks_for_amount(question: str) -> bool:
    """Return whether a question in English asks for a number of things or for a size."""
    return _ASKS_AMOUNT.search(question) is not None


def has_amount(sentence: str) -> bool:
    """Return whether a sentence has a number, in digits or words, or a word for an amount."""
    return _AMOUNT.search(sentence) is not None


def states_asked_value(sentence: str, question: str) -> bool:
    """Return whether a question asks for a date or a number, and a sentence has one itself."""
    if asks_when(question):
        return has_date(sentence)
    if not (asks_for_amount(question) or _ASKS_VALUE.search(question)):
        return False
    return DIGIT.search(_DURATION.sub(" ", ABSOLUTE_DATE.sub(" ", sentence))) is not None


def lacks_difference(sentence: str, question: str) -> bool:
    """Return whether a question asks by how much two things differ, and a sentence tells of none.

    "By how much were we over budget?" is not answered by the budget.
    """
    return (
        _ASKS_DIFFERENCE.search(question) is not None
        and _STATES_DIFFERENCE.search(sentence) is None
    )


_UNITS = {
    "mg": "milligrams?", "g": "gram(?:me)?s?", "kg": "kilos?|kilogram(?:me)?s?",
    "ml": "millilit(?:re|er)s?", "cl": "centilit(?:re|er)s?", "l": "lit(?:re|er)s?",
    "mm": "millimet(?:re|er)s?", "cm": "centimet(?:re|er)s?", "m": "met(?:re|er)s?",
    "km": "kilomet(?:re|er)s?", "kw": "kilowatts?", "kwh": "kilowatt.hours?", "v": "volts?",
    "a": "amp(?:ere)?s?", "hz": "hertz", "mb": "megabytes?", "gb": "gigabytes?",
    "pound": "pounds?|gbp|quid|lbs?", "euro": "euros?|eur", "dollar": "dollars?|usd|bucks?",
}  # fmt: skip
_SIGNS = {"pound": "£", "euro": "€", "dollar": r"\$"}
_ASKED_UNIT = lazy_regex(r"\bin (\w+)\W*\Z", re.IGNORECASE)
_ASKED_RATE = lazy_regex(
    r"(?:\b(?:what|how|which|cost|price|charge|rate|pay)\b.*"
    r"(?<!\bas) per (?!(?:cent|se|the|our|my)\b)"
    r"|\b(?:how much|what) (?:an?|each|every) )(?P<thing>(?-i:[a-z]+))\b"
    r"|\b(?P<rate>hourly|daily) (?:rate|price|cost|fee|charge|pay|wage|hire)\b",
    re.IGNORECASE,
)
_CURRENCY = r"(?:[€$£¥]|eur(?:os?)?|pounds?|gbp|dollars?|usd|chf)"
_RATE = rf"\b(?:per|each|apiece|every|rates?)\b|\d\s?(?:{_CURRENCY}\s?)?/\s?[a-z]"
_ADVERBS = {"day": "daily", "year": "yearly|annual(?:ly)?"}
_RATE_OF = {"hourly": "hour", "daily": "day"}


def _asked_unit(question: str) -> str:
    """Return the unit that a question ends with, "in kilos?", by its sign; "" if none."""
    asked = _ASKED_UNIT.search(question)
    word = asked[1].lower() if asked else ""
    forms = ((unit, rf"{unit}s?|{names}") for unit, names in _UNITS.items())
    return next((unit for unit, form in forms if word and re.fullmatch(form, word)), "")


@lru_cache(maxsize=8)
def _asked_measure(question: str) -> re.Pattern[str] | None:
    """Return what matches values in the unit, or per thing, that a question asks for."""
    if unit := _asked_unit(question):
        value = rf"\d\s*-?{unit}\b|\b(?:{_UNITS[unit]})\b"
        value += f"|{_SIGNS[unit]}" if unit in _SIGNS else ""
    elif asked := _ASKED_RATE.search(question):
        thing = _RATE_OF[asked["rate"].lower()] if asked["rate"] else asked["thing"].lower()
        value = rf"{_RATE}|\b(?:an?|by the) {thing}\b|\b(?:{_ADVERBS.get(thing, f'{thing}ly')})\b"
    else:
        return None
    return re.compile(value, re.IGNORECASE)


_ASKS_DURATION = lazy_regex(
    r"\bhow long (?:does|did|do|is|was|will|would|has|have|can|should)\b", re.IGNORECASE
)
_EVERY = lazy_regex(
    r"\W*(?:\d[\d.]*\s+)?(?:every|each|once an?|twice an?)\s+"
    r"(?:[\w-]+\s+)?(?:minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_UNIT_OF_TIME = lazy_regex(
    r"(?:\b|\d)(?:seconds?|mins?|minutes?|hours?|hrs?|h|days?|weeks?|months?|years?|overnight|until"
    r"|till|since|as long|for (?:good|ever))\b",
    re.IGNORECASE,
)


def lacks_measure(text: str, question: str) -> bool:
    """Return whether a question in English asks for a value in a unit, or per thing, and a text
    has none.

    "Per lime" is not answered by what all of them cost.
    """
    if _ASKS_DURATION.search(question):
        every = _EVERY.match(text)
        return every is not None and _UNIT_OF_TIME.search(text, every.end()) is None
    measure = _asked_measure(question)
    return measure is not None and measure.search(text) is None


_PERSONAL = tuple(
    lazy_regex(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in (
        "birthday|birth|born|old|age|dob",
        "earns?|salary|wages?|pay|pays|paid|rate",
        "owns?|owner|owners|owned|proprietor",
        "landlord|landlady|lessor|lets?|owner",
        "allergic|allergy|allergies",
        "married|husband|wife|spouse",
    )
)
"""What is asked of a person or a place: a row answers that has a word for it."""


def lacks_attribute(row: str, question: str) -> bool:
    """Return whether a question asks for something personal, and a row of a table is of others.

    A row of a person's holidays has dates, but not the birthday.
    """
    asked = [each for each in _PERSONAL if each.search(question)]
    return bool(asked) and not any(each.search(row) for each in asked)


_COUNTED = lazy_regex(r"\bhow many (?!times\b|percent)([^\W\d_]+)", re.IGNORECASE)
_TIME_UNITS = (
    r"(?:seconds?|secs?|min(?:ute)?s?|hours?|hrs?|days?|weeks?|wks?|months?|years?|yrs?)\b"
)
_DURATION = lazy_regex(rf"(?<![\d.,])\d[\d.,]*+\s?{_TIME_UNITS}", re.IGNORECASE)
_NOT_COUNTED = lazy_regex(
    r"(?<!\w)v?\d+(?:\.\d+){2,}|[€$£¥]\s?\d[\d.,]*k?"
    r"|(?<![\d.,])\d[\d.,]*+\s?(?:%|percent\b|°|[€$£¥]|(?:bytes?|[kmg]b"
    r"|k?g|mg|[kcm]m|m|ml|l|litres?|volts?|amps?|watts?|k?wh?|hz|euros?|pounds?"
    rf"|dollars?|quid|[ap]\.?m)\b|{_TIME_UNITS})|\b\d\d?[:.]\d\d\b|\b\d{{4}}-\d\d-\d\d\b",
    re.IGNORECASE,
)
"""Versions, money, measures and times, which count no things."""
_ASKS_TIMES = lazy_regex(r"\bhow many times\b(?P<rate> (?:an?|per|each|every)\b)?", re.IGNORECASE)
_TIMES = lazy_regex(
    rf"\b(?:once|twice|thrice|never|(?:\d+|{_NUMBER_WORDS}|{_AMOUNTS}) (?:\w+ )?"
    rf"(?:time|{COUNTED_TIMES})|\d+\s?x"
    r"|(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|only|\d+(?:st|nd|rd|th))"
    r" time)\b",
    re.IGNORECASE,
)
_WEEKDAY = lazy_regex(rf"\b(?:{WEEKDAYS})\b", re.IGNORECASE)
_RATES = lazy_regex(r"\b(?:every|each|daily|weekly|monthly|yearly|annual\w*)\b", re.IGNORECASE)
_COUNT = lazy_regex(
    rf"(?<![\w.,])(?:\d[\d.,]*+|{_NUMBER_WORDS})\s+(?P<what>(?:[a-z-]+\s+){{0,2}}[a-z-]+)",
    re.IGNORECASE,
)
"""A number with up to three words after it, of which one is what it counts."""
_COUNTED_BEFORE = r"\b{noun}\w*\W*(?:(?:are|is|were|was|now|to|at|of|=|total\w*)\s*){{0,3}}\W?\d"
_PLURAL = lazy_regex(r"[a-z]{3,}(?<!s)s", re.IGNORECASE)
_NO_PLURALS = frozenset(("was", "has", "does", "this", "its", "his", "hers", "yes", "thus", "plus"))


def lacks_count(sentence: str, question: str) -> bool:
    """Return whether a question asks how many there are, and a sentence counts something else.

    "How many units failed?" is not answered by "2.2.0 is over 262,140 bytes", nor by "the units
    have 4 screws".
    """
    if times := _ASKS_TIMES.search(question):
        is_rate = times["rate"] and _RATES.search(sentence)
        days = [value for value in values(sentence) if value.kind == "date"]
        are_several = max(len(days), len(_WEEKDAY.findall(sentence))) > 1
        return not (is_rate or are_several or _TIMES.search(sentence))
    counted = _COUNTED.search(question)
    if counted is None or _NOT_COUNTED.search(f"1 {counted[1]}"):
        return False
    if re.search(rf"\d [^\W\d_]+ {counted[1]}\b", sentence, re.IGNORECASE):
        return False  # "5 day trips" are five
    others = _NOT_COUNTED.sub(" ", sentence)
    return (others != sentence and not has_amount(others)) or _counts_other(others, counted[1])


def _counts_other(sentence: str, noun: str) -> bool:
    """Return whether a sentence has a noun, but each of its numbers counts other things."""
    stem = re.escape(_stem(noun))
    if not re.search(rf"\b{stem}", sentence, re.IGNORECASE):
        return False  # it may call them something else
    if re.search(_COUNTED_BEFORE.format(noun=stem), sentence, re.IGNORECASE):
        return False
    bare = ABSOLUTE_DATE.sub(" ", sentence)
    counts = [found["what"].lower().split() for found in _COUNT.finditer(bare)]
    numbers = len(_AMOUNT.findall(bare))
    return len(counts) == numbers > 0 and all(map(partial(_is_of_other, noun), counts))


def _is_of_other(noun: str, words: Sequence[str]) -> bool:
    """Return whether words after a number begin with what it counts, and that is no such noun."""
    for word in words:
        if word.startswith(_stem(noun)):
            return False
        if _PLURAL.fullmatch(word) and word not in _NO_PLURALS:
            return True
    return False


def _stem(noun: str) -> str:
    return noun.lower().removesuffix("s").removesuffix("ie").removesuffix("e")


_LONG_WORD = lazy_regex(r"[^\W\d_][\w'’-]+")
_ASKS_NAME = lazy_regex(
    r"(?:^\W*|\bwhat(?:['’]s| is| was| are| were) )(?:the )?names? of"
    r" (?:the|our|my|his|her|their)\b.*\b(?:who|man|woman|person|lady|guy)\b",
    re.IGNORECASE,
)
_SAYS_NAME = lazy_regex(r"\b(?:called|named?|known as)\b", re.IGNORECASE)
_SMALL_NUMBER = rf"(?:[2-9]|1\d|20|{'|'.join(_SMALL_NUMBERS)})"
_ASKS_WHICH_OF_MANY = lazy_regex(
    rf"\b(?:what|which) (?:(?:are|were|is|was) )?(?:the |our |my |her |his |their )?"
    rf"(?P<number>{_SMALL_NUMBER}) (?:[\w'’-]+ )?(?P<noun>[a-z]{{3,}}s)\b",
    re.IGNORECASE,
)
_LISTS = lazy_regex(r"[,;/+]|\b(?:and|plus|or)\b", re.IGNORECASE)
_ASKS_FOR_NOW = lazy_regex(
    r"\b(?:now|nowadays|currently|at (?:the moment|present))\b", re.IGNORECASE
)
_WAS_UNTIL = lazy_regex(
    r"\b(?:was|were|used to be|had been)\b[^.;,]{0,120}?\b(?:until|till) (?!now\b|today\b)"
    r"[^.;,:]{1,40}\W*$",
    re.IGNORECASE,
)


def lacks_name(text: str, question: str) -> bool:
    """Return whether a question asks for somebody's name, and a text in English has no new one."""
    return (
        _ASKS_NAME.search(question) is not None
        and _SAYS_NAME.search(text) is None
        and not has_new_name(text, question)
    )


def has_new_name(text: str, question: str) -> bool:
    """Return whether a text in English has a capitalised word that a question lacks."""
    return any(
        word[0].isupper() and not is_time_word(word) and word.lower() not in stop_words("en")
        for word in set(_LONG_WORD.findall(text)).difference(_LONG_WORD.findall(question))
    )


def only_counts(text: str, question: str) -> bool:
    """Return whether a question asks which some things are, and a text only says how many.

    "What are the four changes?" is not answered by "four changes, all of them sensible".
    """
    asked = _ASKS_WHICH_OF_MANY.search(question)
    if asked is None:
        return False
    said = rf"\b{asked['number']} (?:[\w'’-]+ )?{re.escape(_stem(asked['noun']))}\w*"
    found = re.search(said, text, re.IGNORECASE)
    if found is None or re.match(r"\W*[:(–—-]", text[found.end() :]):
        return False
    around = text[: found.start()], text[found.end() :]
    return all(len(_LISTS.findall(each)) < number_of(asked["number"]) - 1 for each in around)


def only_tells_earlier(text: str, question: str) -> bool:
    """Return whether a question asks for what is now, and a text only says what was until then."""
    return _ASKS_FOR_NOW.search(question) is not None and _WAS_UNTIL.search(text) is not None


_DENIES = lazy_regex(
    r"\b(?:not|never|\w+n['’]t)\b[^.;:,]*\bany ?(?:more|longer)\b|\bno longer\b", re.IGNORECASE
)
_SAYS_INSTEAD = lazy_regex(
    r"\b(?:now|but|instead|rather|since|because|as|so|from|until|it['’]?s|they['’]?re)\b|[;:–—]"
    r"|, (?:it|they|we|he|she|this|that|(?:i|you)(?! (?:think|know|believe|guess|suppose)))\b"
    r"|\w+ \w+ [^,]*\w, (?:and )?(?:not\b[^.;:,]*\bany ?(?:more|longer)|no longer)\b",
    re.IGNORECASE,
)
_ASKS_WHETHER = lazy_regex(
    r"\W*(?:did|do|does|was|were|is|are|has|have|had|can|could|will|would|why)\b", re.IGNORECASE
)


def only_denies(sentence: str, question: str) -> bool:
    """Return whether a sentence says what is no longer so, and not what is instead."""
    return (
        _DENIES.search(sentence) is not None
        and _SAYS_INSTEAD.search(sentence) is None
        and _ASKS_WHETHER.match(question) is None
        and _DENIES.search(question) is None
    )


_CLAUSE = r"(?P<denied>(?:[^.;:!?,()\n]|\.(?=\w)){1,60}?)"
_CLAUSE_END = (
    r"(?=[.;:!?,()\n]|\s(?:but|instead|since|because|and|as|so|it|they|we|he|she|i|you"
    r"|sondern|weil|da|und|mais|car|et|sino|porque|y|ma|perché|e|maar|want|en)\b|\s*$)"
)
_NEW_VALUE = r"[^.;:!?,()\n]{1,40}[.!]?$"
_RETRACTIONS = tuple(
    lazy_regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno longer\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\b(?:not|never|\w+n['’]t)\s+{_CLAUSE}\s+any ?(?:more|longer)\b",
        rf"\b(?:instead of|in place of|rather than|in lieu of)\s+{_CLAUSE}{_CLAUSE_END}",
        r"\b(?:mov|switch|chang|migrat|renam|convert|shift)(?:e[sd]?|ed|es|ing)\s+(?:[\w'’-]+\s+){0,4}?"
        rf"from\s+{_CLAUSE}\s+(?:in|over )?to\b",
        rf"\breplac(?:e[sd]?|ing)\s+(?!by\b|with\b){_CLAUSE}(?:\s+(?:by|with)\b|{_CLAUSE_END})",
        rf"{_CLAUSE}\s+(?:is|are|was|were|has been|have been|got|gets)\s+replaced\s+(?:by|with)\b",
        rf"(?:^|:\s+){_CLAUSE}\s*(?:->|→|=>)\s*{_NEW_VALUE}",
        rf"\b(?:used to|formerly|previously)\s+{_CLAUSE}{_CLAUSE_END}",
        rf"[(#]\s*(?:was|were|formerly|previously|before|ex)\b:?\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\b(?:stopped|quit|gave up|given up)\s+(?=\w+ing\b){_CLAUSE}{_CLAUSE_END}",
        rf"\b(?:got rid of|did away with)\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bnicht mehr\s+{_CLAUSE}{_CLAUSE_END}",
        rf"{_CLAUSE}\s+nicht mehr\b",
        rf"\bkeine?[rnms]?\s+{_CLAUSE}\s+mehr\b",
        rf"\b(?:statt|anstelle von|anstelle de[rs])\s+{_CLAUSE}{_CLAUSE_END}",
        rf"{_CLAUSE}\s+(?:ist|sind|wird|werden|wurden?)\s+durch\b.*\bersetzt\b",
        rf"\b(?:früher|vormals|ehemals)\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bn(?:e\s+|['’])[\w'’]+\s+plus\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bau lieu d(?:e\s+|u\s+|es\s+|['’]){_CLAUSE}{_CLAUSE_END}",
        rf"{_CLAUSE}\s+(?:est|sont|a été|ont été)\s+remplacée?s?\s+par\b",
        rf"\bya no\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\ben (?:vez|lugar) de(?:l?)\s+{_CLAUSE}{_CLAUSE_END}",
        rf"{_CLAUSE}\s+(?:fue|ha sido|está|es)\s+(?:reemplazad|sustituid)[oa]s?\s+por\b",
        rf"\bnon\s+[\w'’]+\s+più\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\binvece (?:di|del\w*)\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bniet meer\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bin plaats van\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bjá não\s+{_CLAUSE}{_CLAUSE_END}",
        rf"\bem vez d[eoa]\s+{_CLAUSE}{_CLAUSE_END}",
    )
)
"""Say of something that it is so no longer."""
_HINT_OF_RETRACTION = lazy_regex(
    r"\b(?:longer|any ?more|instead|place|rather|lieu|from|replac\w+|used to|formerly|previously"
    r"|stopped|quit|gave|given|rid|away|mehr|statt|anstelle|ersetzt|früher|vormals|ehemals|plus"
    r"|remplacée?s?|ya no|vez|lugar|por|più|invece|meer|plaats|já)\b|->|→|=>|[(#]",
    re.IGNORECASE,
)
_ONLY_CONSIDERS = lazy_regex(
    r"\b(?:whether|consider(?:s|ed|ing)?|propos\w+|suggest\w*|idea|maybe"
    r"|perhaps|reject(?:s|ed)?|(?:decided|voted|advised) (?:against|not to)|not (?:yet|to)"
    r"|won['’]t|vielleicht|falls|peut-être|quizás?|tal vez)\b"
    r"|\?\W*$",
    re.IGNORECASE,
)
"""What says that a change is only thought of, or was decided against."""
_WOULD = lazy_regex(r"\b(?:could|might|would|könnten?|pourrait|podría)\b", re.IGNORECASE)
_AFTER_DENIAL = lazy_regex(
    rf"(?:{_DENIES.pattern})[^.;:,()]*?(?:[.;:,()]|\s(?:because|since|as)\s)", re.IGNORECASE
)
"""What says that something is so no longer; what might be may follow: "would you believe it"."""


class Retraction(Struct, frozen=True):
    """What a sentence says is so no longer."""

    subject: str
    """What stands before it."""
    denied: str


def only_considers(text: str) -> bool:
    """Return whether a text says of a change that it may come, or was decided against."""
    if _ONLY_CONSIDERS.search(text):
        return True
    return _WOULD.search(text, 0, _end_of_denial(text)) is not None


def _end_of_denial(text: str) -> int:
    """Return where the words end that say what is no longer so; the end of a text without them."""
    denial = _AFTER_DENIAL.search(text)
    return denial.end() if denial else len(text)


@lru_cache(maxsize=256)
def retractions(sentence: str) -> tuple[Retraction, ...]:
    """Return what a sentence says is so no longer: "called Clamp, not Vise any more"."""
    if _HINT_OF_RETRACTION.search(sentence) is None or only_considers(sentence):
        return ()
    return tuple(
        Retraction(sentence[: found.start()], found["denied"])
        for pattern in _RETRACTIONS
        for found in pattern.finditer(sentence)
    )


_ASKS_WHERE_SOMEBODY_LIVES = lazy_regex(
    r"\bwhere\b.*\b(?:live|lives|lived|living|resides?)\b|\b(?:home|postal|street) address\b",
    re.IGNORECASE,
)
_EMAIL_ADDRESS = lazy_regex(r"@|\bat\b\W{0,2} ?\w+\.\w+", re.IGNORECASE)
_ASKS_FOR_EMAIL = lazy_regex(r"\be-?mail address(?:es)?\b|['’]s e-?mail\W*$", re.IGNORECASE)
_CONTACT_FIELD = lazy_regex(r"\b(?:Phone number|E-mail address|Nickname|Job title|Birthday) of \S")


def is_contact_without_address(text: str, question: str) -> bool:
    """Return whether a question asks for somebody's address, and a text doesn't tell it.

    Where somebody lives, a contact without an address doesn't tell.
    """
    if _ASKS_FOR_EMAIL.search(question):
        return _EMAIL_ADDRESS.search(text) is None
    return (
        _CONTACT_FIELD.search(text) is not None
        and _ASKS_WHERE_SOMEBODY_LIVES.search(question) is not None
        and "Address of " not in text
    )


_ASKS_WHERE = lazy_regex(
    r"(?:^\W*|[,:;-]\s*|\b(?:and|so|or|from|to)\s+)where(?:['’]?s)?\b", re.IGNORECASE
)
_NO_PLACE = lazy_regex(
    r"[€$£¥]\s?\d[\d.,]*|(?<![\d.,])\d[\d.,]*+\s?(?:[€$£¥]|(?:euros?|pounds?|dollars?|quid)\b)"
    rf"|\b(?:{DATE}|{MONTHS}|{WEEKDAYS}|\d\d?[:.]\d\d|today|tomorrow|yesterday|tonight)\b",
    re.IGNORECASE,
)
"""Money and times, which say nowhere where something is."""
_ADVERB_OF_PLACE = lazy_regex(
    r"\bhere\b|\b(?:off|out|up|down|above|below|under)\W*$", re.IGNORECASE
)
"""Words that name a place and are no terms; most of them only at the end."""


def lacks_place(text: str, question: str) -> bool:
    """Return whether a question in English asks where something is, and a text names no place.

    Any word besides those of the question, times and prices may name one: "underneath the mat".
    """
    if _ASKS_WHERE.search(question) is None or _ADVERB_OF_PLACE.search(text):
        return False
    said = query_terms(_NO_PLACE.sub(" ", text), ("en",))
    return frozenset(query_terms(question, ("en",))).issuperset(said)


_SUPPOSES = lazy_regex(r"\b(?:would|might)\b(?! (?:like|love|rather|prefer)\b)", re.IGNORECASE)
_ASKS_WHAT_IS_SUPPOSED = lazy_regex(
    r"\b(?:would|might|could|may|should|if|why|reasons?|plan\w*|idea|offer\w*|estimat\w*|expect\w*)"
    r"\b|['’]d\b",
    re.IGNORECASE,
)


def only_supposes(text: str, question: str) -> bool:
    """Return whether a text in English says what would be, and a question asks for what is."""
    supposed = _SUPPOSES.search(text, 0, _end_of_denial(text))
    return supposed is not None and _ASKS_WHAT_IS_SUPPOSED.search(question) is None


_ASKS_WHEN_IT_WAS = lazy_regex(
    r"\W*(?:and |so )?(?:since |until |by |at |in |on |from )?"
    r"(?:when|(?:what|which) (?:\w+ )?(?:date|day|time|hour|year|month|week|season|decade|century)"
    r"(?: of the \w+)?)(?: (?:\w+ly|else|first|last))? (?:did|was|were|had|has|have)(?:n['’]t)?\b",
    re.IGNORECASE,
)
_ENGLISH = load_language("en")


def _words(*kinds: Iterable[Iterable[str]], but: Sequence[str] = ()) -> str:
    """Return a pattern for any word of some lists of lists."""
    return any_of(word for kind in kinds for words in kind for word in words if word not in but)


_NAMED_TIME = (
    rf"{_words([month_numbers()], _ENGLISH.seasons, but=('may', 'mar', 'fall'))}|{WEEKDAYS}"
    r"|(?:in|by|since|until|of|from|during|this|that|next|last|every|each|early|mid|late)[ -]may"
    r"|(?:in the|by|since|until|this|that|next|last|every|each|early|late) fall|(?:may|fall)(?= \d)"
    rf"|{_words(_ENGLISH.holidays.values())}|pentecost|whitsun\w*|midsummer|midwinter"
    r"|(?:1\d|20)\d\ds?|q[1-4]|(?:twen|thir|for|fif|six|seven|eigh|nine)ties"
)
_HOUR = rf"(?:{_words(_ENGLISH.numbers, but=('a', 'an', 'a few', 'a couple of'))})"
_TIME_OF_DAY = (
    rf"(?:half|quarter|twenty|{_HOUR})(?: past| to) {_HOUR}"
    rf"|(?:at|by|around|about|towards?|until|till|since|from) (?!one \w){_HOUR}(?! \w+s\b)"
    r"|o['’]clock|noon|dawn|dusk|daybreak|nightfall|sunrise|sunset|breakfast|lunch|dinner|supper"
    r"|(?:morning|afternoon|evening|night|hour|minute)s?|mid(?:day|night)"
)
"""An hour is not followed by what is counted: "at two stalls", "at one end"."""
_WORDS_FOR_TIME = (
    rf"\b(?:{_NAMED_TIME}|{_TIME_OF_DAY}"
    rf"|{_words(_ENGLISH.units.values(), _ENGLISH.days.values())}"
    rf"|{_words(_ENGLISH.bounds.values(), but=('by', 'up to'))}"
    rf"|{any_of(_ENGLISH.ago)}"
    r"|once|when(?:ever)?|while|during|daily|weekly|monthly|yearly|annual\w*|midweek|fortnights?"
    r"|decades?|century|centuries|\w*times?|birthday|aged?|childhood|war|reign|term|semester"
    r"|holidays?|never|always|soon|immediately|already|then|recently|lately|earlier|later"
    r"|as (?:soon|long|he|she|it|they|we|i|you|the))\b"
)
_TIME_WORD = lazy_regex(_WORDS_FOR_TIME, re.IGNORECASE)
_DIGIT_OR_TIME_WORD = lazy_regex(rf"\d|{_WORDS_FOR_TIME}", re.IGNORECASE)
_TIME_HEADING = lazy_regex(rf"\b(?:{_NAMED_TIME})\b", re.IGNORECASE)


def asks_when(question: str) -> bool:
    """Return whether a question asks for a time."""
    return _ASKS_WHEN.search(question) is not None


_ASKS_DAY = lazy_regex(r"\b(?:what|which) (?:exact )?(?:day|date)\b", re.IGNORECASE)
_PART_OF_TIME = lazy_regex(
    r"\b(?:by|at|in|before|after|around|towards) the (?:end|beginning|middle|start) of\b",
    re.IGNORECASE,
)
_LENGTH_OF_DAY = 10
"""Of a day in ISO 8601."""


def lacks_time(text: str, hit: Hit, question: str) -> bool:
    """Return whether a question in English asks when something was, and a quote tells no time.

    Nor does its hit: what was said on a day, or stands under one or under a time with a name, was
    then.
    """
    asked = _ASKS_WHEN_IT_WAS.match(question)
    names_day = any(len(span.iso) == _LENGTH_OF_DAY for span in date_spans(text, hit.created_at))
    is_vague = _PART_OF_TIME.search(text) and not (names_day or _WEEKDAY.search(text))
    if asked and is_vague and _ASKS_DAY.search(asked[0]):
        return not (is_said(hit) or is_of_stated_day(hit) or _TIME_HEADING.search(hit.heading))
    return (
        asked is not None
        and not (has_relative_time(text) or _DIGIT_OR_TIME_WORD.search(text))
        and not (is_said(hit) or is_of_stated_day(hit) or _TIME_HEADING.search(hit.heading))
    )


_PLANS = lazy_regex(
    r"\b(?:(?:is|are|['’]s|['’]re|now)(?: now| still)?"
    r" (?:due|planned|scheduled|expected|(?:going|meant) to)|to be [\w-]+|(?-i:will)|shall"
    r"|should be|plans? to|hop(?:es?|ing) to|wants? (?:it|them|us|to)|['’]ll)\b"
    r"(?P<when>[^.;]{0,80})",
    re.IGNORECASE,
)
_TELLS_PAST = lazy_regex(r"\b(?:was|were|had|did|has|have|[a-z]{2,}ed)\b")
_ASKS_OF_PLAN = lazy_regex(r"\b(?:due|plan(?:ned)?|scheduled|expected|supposed)\b", re.IGNORECASE)
_ASKS_WHAT_WAS_PAID = lazy_regex(
    r"\b(?:how much|what)\b.*\b(?:did|have|has|had|was)\b.*\b(?:spen[dt]|pay|paid|costs?)\b",
    re.IGNORECASE,
)
_ESTIMATES = lazy_regex(r"\b(?:budget|estimate|quote|forecast)", re.IGNORECASE)
_LABEL_OF_ESTIMATE = lazy_regex(r"\W*(?:budget|estimate|forecast)\b[^.;:]{0,40}:\s", re.IGNORECASE)


def only_plans(text: str, question: str) -> bool:
    """Return whether a question asks when something was, or what it cost, and a text tells a plan.

    For texts in English.
    """
    if _ASKS_WHAT_WAS_PAID.search(question) and not _ESTIMATES.search(question):
        return _LABEL_OF_ESTIMATE.match(text) is not None
    if _ASKS_WHEN_IT_WAS.match(question) is None or _ASKS_OF_PLAN.search(question):
        return False
    plan = _PLANS.search(text)
    if plan is None or has_date(text[: plan.start()]) or has_date(text[plan.end() :]):
        return False
    return may_tell_time(plan["when"]) and _TELLS_PAST.search(plan["when"]) is None


def may_tell_time(text: str) -> bool:
    """Return whether a text has a date, an hour or any other word in English for a time."""
    if has_date(text) or has_relative_time(text) or _TIME_WORD.search(text):
        return True
    return any(value.kind in ("date", "time") for value in values(text))


_ASKS_FOR_PRESENT = lazy_regex(
    r"\W*(?:what|which|how much|where)\b.*\bpresents?\b(?! (?:at|on|in)\b)", re.IGNORECASE
)


def is_roll_of_others(text: str, question: str) -> bool:
    """Return whether a text lists who is there, and a question asks for something else.

    That is a present to give, or a day where the list has days of others alone.
    """
    if not _ROLL.match(text):
        return False
    if not asks_when(question):
        return _ASKS_FOR_PRESENT.match(question) is not None
    asked = set(_WORD.findall(question.casefold()))
    dated = (each for each in _ROLL_LABEL.split(text) if has_date(each))
    names = {word.casefold() for each in dated for word in _WORD.findall(each) if word.istitle()}
    return asked.isdisjoint(names)
