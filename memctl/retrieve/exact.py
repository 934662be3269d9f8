"""Kinds of things that are written in ways of their own, such as phone numbers and prices.

How each is asked for and how it looks, so that a sentence without one can be told from an answer.
In the languages with the most speakers among users; what is asked in another is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memctl.retrieve.expectation import has_number, is_date

ExactKind = Literal["phone", "e-mail", "link", "percentage", "price", "age", "address", "number"]

UNMISTAKABLE: frozenset[ExactKind] = frozenset(("phone", "e-mail", "link", "percentage", "address"))
"""Where none is seen, there is none; the others are also told in words or by bare figures."""


@dataclass(frozen=True, slots=True)
class Exact:
    """What a question asks for."""

    kind: ExactKind
    name: str
    """The words of the question that name it: "phone number", "cost"."""


# --- how they are asked for ----------------------------------------------------------------------

_NOT_THE_HEAD = (
    r"(?:(?!\b(?:do|does|did|has|have|had|can|could|will|would|should|must|about|with|when|where"
    r"|who|whom|whose|why|how|of|for|from|to|in|on|at|by|after|before|that|wann|wer|wo|von|für"
    r"|mit|über|de|du|des|del|para|por|pour)\b)[^?,;:])*?"
)
"""What may stand before the thing asked for, as in "what is Eva's new phone number"."""
_OF_SOMETHING = (
    r"(?=\W*$|\s+(?:of|for|from|per|a|at|in|on|to|is|was|are|were|von|für|vom|pro|der|des|dem"
    r"|de|du|del|para|pour|par|d['’])\b)"
)


def _asks_for(thing: str, in_short: str) -> re.Pattern[str]:
    """Return what matches a question for a thing, also by a name that has other meanings."""
    names = rf"(?P<name>(?:{thing})\b|(?:{in_short})\b{_OF_SOMETHING})"
    return re.compile(rf"^{_NOT_THE_HEAD}\b{names}", re.IGNORECASE)


_QUESTIONS: Mapping[ExactKind, Sequence[re.Pattern[str]]] = {
    "phone": (
        _asks_for(
            r"(?:tele)?(?:phone|fax) (?:number|no)s?|(?:mobile|cell|contact) numbers?"
            r"|(?:telefon|handy|mobil|fax)nummern?|num[eé]ros? de t[eé]l[eé](?:phone|fono)",
            r"(?:tele)?phone|t[eé]l[eé]phone|tel[eé]fono|telefon",
        ),
    ),
    "e-mail": (
        _asks_for(
            r"e-?mail address(?:es)?|mail address(?:es)?|e-?mail-?adressen?|correo electr[oó]nico",
            r"e-?mails?|courriel|correo",
        ),
    ),
    "link": (_asks_for(r"web ?(?:site )?address|url", "web ?site|homepage|web ?page"),),
    "percentage": (
        _asks_for("percentages?|per ?cents?", "prozentsatz|pourcentage|porcentaje"),
        re.compile(r"^\W*(?:how many|wie ?viel) (?P<name>per ?cent|prozent)\b", re.IGNORECASE),
    ),
    "price": (
        _asks_for(
            "(?:selling|purchase) price",
            "prices?|costs?|amount|preise?|kosten|betrag|prix|montant|co[uû]t|precio|coste|importe",
        ),
        re.compile(
            r"^\W*how much (?:do|does|did|is|was|are|were|will|would|has|have|had|should|must|can)"
            r"\b.*\b(?P<name>costs?|pays?|paid|charged?|charges|spend|spent|earns?|earned)\b",
            re.IGNORECASE,
        ),
        re.compile(
            r"^\W*what (?:do|does|did|will|would|has|have)\b.*\b(?<!the )(?P<name>cost)"
            r"(?=\W*$| (?:us|me|him|her|them|a|per|for|in|to)\b)",
            re.IGNORECASE,
        ),
        re.compile(
            r"^\W*(?:was|wie ?viel|combien|cu[aá]nto)\b.*"
            r"\b(?P<name>kosten|kostete?|co[uû]te(?:nt)?|cuestan?|cost[oó])\b",
            re.IGNORECASE,
        ),
    ),
    "age": (
        re.compile(r"^\W*(?:how|wie) (?P<name>old|alt)\b", re.IGNORECASE),
        _asks_for("date of birth", "age|alter|edad"),
    ),
    "address": (
        _asks_for(
            "(?:street|postal|home) address", r"(?<!\bip )(?<!\bmac )address|anschrift|adresse"
        ),
    ),
    "number": (
        re.compile(r"^\W*(?P<name>how many|wie viele|combien|cu[aá]nt[oa]s)\b", re.IGNORECASE),
    ),
}

# --- how they look -------------------------------------------------------------------------------

_PHONE = re.compile(r"(?<![\w.,:/€$£-])\+?\(?\d[\d ()/.-]*\d(?![\w%]|\s?[€$£])")
_PHONE_WORD = re.compile(
    r"phone|\btel\b|\b(?:call|dial|ring|mobile|fax|number|line|nummer|anrufen)\b|telefon|handy"
    r"|t[eé]l[eé](?:phone|fono)",
    re.IGNORECASE,
)
_FEWEST_DIGITS, _MOST_DIGITS = 5, 15
_CURRENCY = (
    r"(?:[€$£¥₹]|kr\b|(?:eur|usd|gbp|chf|sek|nok|dkk|pln|czk|jpy|inr|cad|aud)\b|euros?\b"
    r"|dollars?\b|pounds?\b|francs?\b|franken\b|kron(?:er|or|en)\b|yen\b|yuan\b|cents?\b|pence\b"
    r"|bucks\b|quid\b|rupees?\b|pesos?\b)"
)
_LOOKS: Mapping[ExactKind, re.Pattern[str]] = {
    "e-mail": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "link": re.compile(
        r"https?://|\bwww\.|(?<![@\w.-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}(?![\w@.])"
    ),
    "percentage": re.compile(
        r"\d ?[%‰]|(?<![^\W_])(?:per ?cent|prozent|pour ?cent|por ?ciento|percentage)"
        r"|\b(?:half|thirds?|quarters?)\b",
        re.IGNORECASE,
    ),
    "price": re.compile(
        rf"[€$£¥₹] ?\d|\d(?: ?(?:k|thousand|million|billion))? ?{_CURRENCY}"
        r"|\b(?:for free|free of charge|in free|gratis|kostenlos|for nothing|gratuit)\b"
        r"|(?:price|cost|fee|amount|total|eur|usd|gbp|chf|preis|kosten|betrag|prix|montant|precio)"
        r"[^;:\d]{0,40}: ?\d"
        r"|\b(?:costs?|priced?|pays?|paid|worth|charged?|charges)\b[^.;:]{0,30}\b\d",
        re.IGNORECASE,
    ),
    "age": re.compile(
        r"\b(?:years?|months?) old\b|\byear-old\b|\baged?\b[^.;]{0,12}\d|\d (?:jahre|ans|años)\b"
        r"|\bturn(?:s|ed|ing)? \d|\b(?:born|birth\w*|geboren|geburt\w*|nacid[oa]|née?)\b[^;]*\d"
        r"|\b(?:from|since|built|made|founded|established|bought)\b[^.;]*\b(?:1[5-9]|20)\d\d\b",
        re.IGNORECASE,
    ),
    "address": re.compile(
        r"\b[A-Z][\w'’-]+ (?:[Ss]treet|St\b|[Rr]oad|Rd\b|[Ll]ane|[Aa]venue|Ave\b|[Ss]quare"
        r"|[Dd]rive|[Ww]ay|[Cc]ourt|[Pp]lace|[Qq]uay|[Rr]ow|[Cc]lose|[Tt]errace|[Bb]oulevard)\b"
        r"|\w(?:straße|strasse|str\.|gasse|weg|platz|allee|gatan|vej|laan|straat)\b"
        r"|\b(?:rue|avenue|calle|via|piazza|plaza|P\.? ?O\.? ?[Bb]ox)\b|\b\d{4,5} [A-Z][a-z]+"
        r"|\b(?:address|anschrift|adresse): ?\S"
    ),
}


def exact_of(question: str) -> Exact | None:
    """Return what a question asks for where that is written in a way of its own."""
    for kind, patterns in _QUESTIONS.items():
        for pattern in patterns:
            if found := pattern.search(question):
                return Exact(kind, found["name"])
    return None


def has_exact(kind: ExactKind, text: str) -> bool:
    """Tell whether a text has something of that kind."""
    if kind == "phone":
        return any(_is_phone(found.group(), text) for found in _PHONE.finditer(text))
    if kind == "number":
        return has_number(text)
    return _LOOKS[kind].search(text) is not None


def _is_phone(written: str, text: str) -> bool:
    """Figures without a plus or a nought before them may well be something else."""
    digits = sum(map(str.isdigit, written))
    if not _FEWEST_DIGITS <= digits <= _MOST_DIGITS or is_date(written):
        return False
    return written.startswith(("+", "0", "(0")) or _PHONE_WORD.search(text) is not None
