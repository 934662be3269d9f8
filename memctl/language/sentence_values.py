"""The values a sentence states: dates, times of day, amounts of money, percentages, quantities.

Values are found by form alone and compared by what they may mean, so that ``1,200``, ``1200`` and
``1.200`` never look like a disagreement.  Knows nothing of memories.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from memctl.language.word_lists import month_numbers, numerals
from memctl.patterns import lazy_regex

ValueKind = Literal["date", "time", "money", "percent", "quantity", "number"]

Reading = tuple[float | None, ...]
"""One meaning of a value: (year, month, day), (minutes,) or (number,); None is "not said"."""


class Value(Struct, frozen=True):
    """A value as a sentence states it, at ``sentence[start:end]``."""

    kind: ValueKind
    readings: tuple[Reading, ...]
    unit: str
    """Currency or the stem of what is counted; empty for the other kinds."""
    start: int
    end: int
    text: str

    def agrees_with(self, other: Value) -> bool:
        """Return whether some reading of both says the same; what one leaves open agrees."""
        return any(_agree(a, b) for a in self.readings for b in other.readings)


def _agree(first: Reading, second: Reading) -> bool:
    if len(first) != len(second):  # a day and a number
        return False
    pairs = zip(first, second, strict=True)
    return all(a is None or b is None or abs(a - b) < 1e-9 for a, b in pairs)


CHANGE_WORDS = lazy_regex(
    r"\b(?:now|new|newly|moved?|moves|changed?|changes|postponed|instead|updated?|raised|increas\w+|"
    r"reduced|lowered|dropped|drop|no longer|any ?more|rescheduled|corrected|correction|delayed|"
    r"brought forward|(?:goes|went|came|is|come|put) (?:up|down)|rises|rose|as of|from now on|"
    r"(?:goes|went|gone) from \W?\d+|since then|replaced|"
    r"slips?|slipped|pushed|cancelled|called off|in the end|after all|finally|final|back|stopped?|"
    r"rather than|revised|extended|shifted|upped|taken over|takes over|"
    r"statt|jetzt|nun|nicht mehr|neu|verschoben|doch|erst|ab sofort|steigt|"
    r"maintenant|finalement|désormais|au lieu|repoussé|plus de|décal\w+|"
    r"ahora|ya no|en vez|al final|nuevo|pasa a|invece|ora|adesso|alla fine|non più)\b|->|→",
    re.IGNORECASE,
)
"""What says that something is not as it was."""
_MONTH = "|".join(sorted(month_numbers(), key=len, reverse=True))
_DAY = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"
_AMOUNT = r"\d+(?:[.,\u00a0'’]\d+)*"
_SPACED_AMOUNT = r"\d{1,3}(?:[\u0020\u00a0\u202f]\d{3})+(?:,\d\d?)?(?!\d)"
"""With spaces between the thousands, as in French: ``12 500,00``."""
_MONEY = rf"(?:{_SPACED_AMOUNT}|{_AMOUNT})"
_COUNT_WORDS = {word: number for word, number in numerals("en").items() if number > 1}
_CURRENCIES = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD",
    "£": "GBP", "gbp": "GBP", "pounds": "GBP", "quid": "GBP",
    "chf": "CHF", "¥": "JPY", "jpy": "JPY",
}  # fmt: skip
_CURRENCY = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=len, reverse=True))

_ONES = (
    *numerals("en"), "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMERALS = {
    **{word: number for number, word in enumerate(_ONES, 1)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "a": 1,
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "grand": 1e3, "million": 1e6, "billion": 1e9}
_GRAND = r"grand(?=\W*$|[,.;:!?)]|\s(?:a|at|by|for|from|in|on|to)\b)"
"""No piano."""
_NUMERAL = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_ONES[:9])}))?|{'|'.join(_ONES)})"
_SCALE = "|".join(_GRAND if name == "grand" else name for name in _SCALES)
_SPELLED = rf"(?:a|{_NUMERAL})(?:\s(?:{_SCALE})(?:(?:\sand)?\s{_NUMERAL}\b)?)+"
_PART_OF = lazy_regex(
    rf"(?:\b(?:half|(?:quarter|third|fifth|tenth)s?)(?:\sof)?|\bpoint(?:\s{_NUMERAL})*)\s+$",
    re.IGNORECASE,
)
"""Stands before an amount in words that is only part of what is said: "half a million"."""
_AND_A_PART = lazy_regex(r"\s+(?:and\s+a\s+(?:half|quarter|third)|point)\b", re.IGNORECASE)

_VALUE = lazy_regex(
    rf"""(?<![\w.,/-])(?:
      (?P<iso_year>(?:19|20)\d\d)-(?P<iso_month>[01]\d)-(?P<iso_day>[0-3]\d)(?![\w-])
    | (?P<slashed>[0-3]?\d[./][0-3]?\d[./](?:19|20)\d\d)(?![\w])
    | {_DAY.format("d1")}\s+(?:of\s+)?(?P<m1>{_MONTH})\b\.?(?:,?\s+{_YEAR.format("y1")}\b)?
    | (?P<m2>{_MONTH})\.?\s+{_DAY.format("d2")}(?!\d|[:.]\d)(?:,?\s+{_YEAR.format("y2")}\b)?
    | (?P<m3>{_MONTH})\.?,?\s+{_YEAR.format("y3")}\b
    | (?P<clock24>[0-2]?\d(?:[hH][0-5]\d|(?:[.:][0-5]\d)?(?=\s?Uhr\b)))(?!\w)
    | (?P<clock>[0-2]?\d:[0-5]\d)\s*(?P<half1>[ap]\.?m\b\.?)?
    | (?P<hour>1?\d)\s*(?P<half2>[ap]\.?m\b\.?)
    | (?P<cur1>[€$£¥])\s?(?P<money1>{_MONEY})(?P<kilo1>k\b)?
    | (?P<money2>{_MONEY})(?P<kilo2>k)?\s?(?P<cur2>{_CURRENCY})(?!\w)
    | (?P<percent>{_AMOUNT})\s?(?:%|percent\b|per\s+cent\b)
    | {_YEAR.format("y4")}(?![\w.,:/-]\d|-\w)
    | (?P<number>{_AMOUNT})(?![\w/:-])(?:\s+|\s*(?=kg\b|km\b|g\b|m\b|l\b))(?P<unit>[^\W\d_]{{1,20}})
    | (?P<spelled>{_SPELLED})\b(?:\s(?P<cur3>pounds|quid|euros?|dollars)\b)?
    | (?P<word>{"|".join(_COUNT_WORDS)})\s+(?P<counted>[^\W\d_]{{3,20}})
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_HINT_OF_NUMBER = lazy_regex(rf"\d|{'|'.join(_COUNT_WORDS)}|{'|'.join(_SCALES)}", re.IGNORECASE)
_THOUSANDS = lazy_regex(r"\d{1,3}([.,'’ \u00a0\u202f]\d{3})+$")
_DECIMAL = lazy_regex(r"\d+(?:[.,]\d+)?$|\d{1,3}(?:,\d{3})+\.\d+$|\d{1,3}(?:\.\d{3})+,\d+$")
_NO_UNITS = """such other more different further new old per times each apiece flat net gross extra
    a an and are as at but by for from if in is of on or so the to was when while with
    now then today tonight tomorrow instead again already still yet since until till before after"""
_NO_UNIT = frozenset(_NO_UNITS.split())


def values(sentence: str) -> list[Value]:
    """Return the values that a sentence states, in order."""
    return list(_values(sentence)) if _HINT_OF_NUMBER.search(sentence) else []


def _values(sentence: str) -> Iterator[Value]:
    for match in _VALUE.finditer(sentence):
        found = _value(match)
        if found is not None:
            yield found


def _value(match: re.Match[str]) -> Value | None:
    part = match.groupdict()
    if part["clock24"]:
        clock = re.sub(r"[hH.]", ":", part["clock24"])
        return _make_value(match, "time", _times(clock, part))
    if part["clock"] or part["hour"]:
        return _make_value(match, "time", _times(part["clock"] or part["hour"], part))
    if part["money1"] or part["money2"]:
        return _money(match, part)
    if part["percent"]:
        return _make_value(match, "percent", _numbers(part["percent"]))
    if part["number"]:
        return _quantity(match, part["number"], part["unit"])
    if part["spelled"]:
        return _spelled(match, part["spelled"], part["cur3"])
    if part["word"]:
        count = float(_COUNT_WORDS[part["word"].lower()])
        return _make_value(match, "quantity", [(count,)], _singular(part["counted"]))
    return _make_value(match, "date", list(_dates(part)))


def _make_value(
    match: re.Match[str], kind: ValueKind, readings: list[Reading], unit: str = ""
) -> Value | None:
    if not readings:
        return None
    text = match.group().strip().rstrip(".,") if kind == "date" else match.group().strip()
    return Value(kind, tuple(readings), unit, match.start(), match.start() + len(text), text)


def _dates(part: dict[str, str | None]) -> Iterator[Reading]:
    if part["iso_year"]:
        yield _date(part["iso_year"], int(part["iso_month"] or 0), part["iso_day"])
    elif part["slashed"]:
        first, second, year = re.split(r"[./]", part["slashed"])
        if int(second) <= 12:
            yield _date(year, int(second), first)
        if int(first) <= 12 and "/" in part["slashed"]:
            yield _date(year, int(first), second)
    else:
        month = part["m1"] or part["m2"] or part["m3"]
        year = part["y1"] or part["y2"] or part["y3"] or part["y4"] or ""
        number = month_numbers()[month.lower()] if month else None
        yield _date(year, number, part["d1"] or part["d2"])


def _date(year: str, month: int | None, day: str | None) -> Reading:
    return (float(year) if year else None, month, float(day) if day else None)


def _times(clock: str, part: dict[str, str | None]) -> list[Reading]:
    hour, _, minute = clock.partition(":")
    minutes = int(hour) * 60 + int(minute or 0)
    half = (part["half1"] or part["half2"] or "").lower()[:1]
    if half:
        return [(minutes % 720 + (720.0 if half == "p" else 0.0),)]
    if minutes < 720:
        return [(float(minutes),), (minutes + 720.0,)]
    return [(float(minutes),)]


def _money(match: re.Match[str], part: dict[str, str | None]) -> Value | None:
    written = part["money1"] or part["money2"] or ""
    factor = 1000.0 if part["kilo1"] or part["kilo2"] else 1.0
    currency = _CURRENCIES[(part["cur1"] or part["cur2"] or "").lower()]
    amounts: list[Reading] = [(number * factor,) for number in _readings(written)]
    return _make_value(match, "money", amounts, currency)


def _quantity(match: re.Match[str], written: str, unit: str) -> Value | None:
    if unit.lower() in _NO_UNIT or not unit[0].islower():
        return None
    return _make_value(match, "quantity", _numbers(written), _singular(unit))


def _spelled(match: re.Match[str], words: str, currency: str | None) -> Value | None:
    """Return an amount in words; one without a currency is a mere count below a thousand."""
    number = _spelled_number(words)
    if not number or _PART_OF.search(match.string[: match.start()]):
        return None
    if _AND_A_PART.match(match.string, match.end("spelled")):
        return None
    amount: list[Reading] = [(number,)]
    if currency:
        return _make_value(match, "money", amount, _CURRENCIES[currency.lower()])
    is_count = words.lower().startswith("a ") or number < _SCALES["thousand"]
    return None if is_count else _make_value(match, "number", amount)


def _spelled_number(words: str) -> float:
    """Return the number that "fifty-two thousand and ten" says; 0 for "five thousand million"."""
    total = below = 0.0
    smallest = math.inf
    for word in re.findall(r"[a-z]+", words.lower()):
        if word == "hundred":
            below *= _SCALES[word]
        elif word in _SCALES:
            if not below or _SCALES[word] >= smallest:
                return 0.0
            smallest = _SCALES[word]
            total, below = total + below * _SCALES[word], 0.0
        else:
            below += _NUMERALS.get(word, 0)
    return total + below


def _numbers(written: str) -> list[Reading]:
    return [(number,) for number in _readings(written)]


def _readings(written: str) -> list[float]:
    """``1,200`` and ``1.200`` may be thousands or decimals; both meanings are kept."""
    plain = re.sub(r"[ \u00a0\u202f'’]", "", written)
    candidates = set()
    if _THOUSANDS.match(written):
        candidates.add(re.sub(r"[.,]", "", plain))
    whole, _, fraction = plain.replace(",", ".").rpartition(".")
    if _DECIMAL.match(plain):
        candidates.add(f"{whole.replace('.', '')}.{fraction}" if whole else plain)
    return sorted(float(candidate) for candidate in candidates)


def _singular(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") else lower
