"""Answer types: what kind of thing a question asks for, and whether a sentence has one.

Only question words are looked at, in the languages with the most speakers among users; where they
don't tell the type, any sentence fits.  Values are types that are written in ways of their own,
such as phone numbers and prices: a sentence without one is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memctl.language.word_lists import all_languages, month_numbers

AnswerType = Literal["time", "quantity", "person", "place", "reason", "decision", "other"]

_QUESTIONS: Mapping[AnswerType, re.Pattern[str]] = {
    "quantity": re.compile(
        r"\b(how (?:many|much|long|old|far|often|big|large|tall|high|fast|heavy|wide)"
        r"|what (?:(?:is|was|are|were) the )?"
        r"(?:number|price|cost|amount|percentage|share|age|budget|total)"
        r"|wie ?viele?|wie (?:lange|oft|alt|hoch|weit)|combien|cu[aá]nt[oa]s?|quant[oi]s?)\b",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\b(when|since when|(?:what|which) (?:\w+ )?(?:date|day|time|year|month|week|weekday"
        r"|season|decade|century|deadline)|wann|quand|cu[aá]ndo|quando)\b",
        re.IGNORECASE,
    ),
    "person": re.compile(
        r"\b(who|whom|whose|(?:what|which) (?:person|man|woman|author|actor|actress|singer|"
        r"director|player|colleague|friend)|wer|wem|wen|wessen|qui|qui[eé]n|chi)\b",
        re.IGNORECASE,
    ),
    "place": re.compile(
        r"\b(where|(?:what|which) (?:\w+ )?(?:place|city|town|country|state|county|street|address"
        r"|room|location|venue|region)|wo|wohin|woher|où|d[oó]nde|dove|onde)\b",
        re.IGNORECASE,
    ),
    "reason": re.compile(
        r"\b(why|how come|what (?:is|was) the reason|warum|wieso|weshalb|pourquoi|por qu[eé]"
        r"|perch[eé])\b",
        re.IGNORECASE,
    ),
    "decision": re.compile(
        r"\b(?:which|what|whom|did we|have we)\b.*\b(?:cho[ou]?se|chosen|decided?|pick(?:ed)?"
        r"|select(?:ed)?|settled?|agreed?)\b",
        re.IGNORECASE,
    ),
}

_ASKING_WORDS = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|why|how"
    r"|wer|wen|wem|wessen|wann|wo|wohin|woher|warum|wieso|weshalb|wie|wieviele?|welche[mnrs]?"
    r"|qui|quoi|quand|où|comment|pourquoi|combien|quel(?:le)?s?|qu['’]est-ce"
    r"|qué|qui[eé]n(?:es)?|cu[aá]ndo|d[oó]nde|cómo|cu[aá]l(?:es)?|cu[aá]nt[oa]s?"
    r"|chi|quando|perch[eé]|qual[ei]?|quant[oiae]|onde|quem|o que|wat|wanneer|waar|welke?|waarom"
    r"|hoeveel|vem|vad|när|hur|vilke[nt]|hvem|hvad|hvor|hvornår|kto|kiedy|gdzie|dlaczego|ile"
    r"|кто|что|где|когда|почему|как|какой|какая|какие|сколько|куда|откуда)\b"
    r"|^\W*(?:que|dove|che|come|como|co|hoe|var|was (?:ist|war|hat|habe|hatte|haben|kann|mag|macht"
    r"|kostet|kostete|soll|wird|wurde|für))\b"
    r"|[谁誰何哪几幾]|什么|什麼|怎|多少|どこ|いつ|どう|なぜ|누구|어디|언제|무엇|무슨|왜|몇",
    re.IGNORECASE,
)
"""Words with another meaning count only at the beginning, as German "was" before a German verb."""
_CHOICE = re.compile(r"\b(?:or|oder|ou|oppure|eller)\b", re.IGNORECASE)

_MONTHS = "|".join(sorted(month_numbers(), key=len, reverse=True))
_WEEKDAYS = "|".join(f"{names[0]}s?" for each in all_languages() for names in each.weekdays)
_DATE = (
    r"(?:1\d|20)\d\d-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    rf"|(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? (?:1\d|20)\d\d)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTHS})(?:,? (?:1\d|20)\d\d)?"
    r"|(?:1\d|20)\d\d(?:-\d\d)?"
)
_ABSOLUTE_DATE = re.compile(rf"\b(?:{_DATE})\b", re.IGNORECASE)
_VALUE = re.compile(rf"\b(?:{_DATE}|\d[\d.,:/]*\d|\d|{_MONTHS}|{_WEEKDAYS})\b", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"\b(?:{_WEEKDAYS}|today|tomorrow|yesterday|tonight|weekend|now"
    r"|(?:last|next|this) (?:week|month|year|night)|(?:days?|weeks?|months?|years?) ago"
    r"|heute|morgen|gestern|demain|aujourd'hui|hier|mañana|ayer|hoy)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    rf"\b(?:\d{{1,2}}:\d\d|\d{{1,2}} ?[ap]\.?m\b|{_MONTHS}|noon|midnight"
    r"|spring|summer|autumn|winter)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred"
    r"|thousand|million|billion|half|twice|once|eins?|zwei|drei|vier|deux|trois|dos|tres)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]+")
_SPEAKER = re.compile(r"^[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}:\s")
_PLACE = re.compile(
    r"\b(?:in|at|from|near|to|into|outside|inside|around|behind|under|on|aus|bei|nach|à|en|au)"
    r"(?: the| der| dem| la| el| le)? [A-Z]\w+"
    r"|\b(?:street|road|avenue|room|floor|building|hall|office|park|school|hotel|station|city|town"
    r"|country|kitchen|garage|shelf|drawer|north|south|east|west)\b",
)
_DECISION = re.compile(
    r"\b(?:decided|decision|chose|chosen|choose|choice|picked|selected|settled|agreed|opted"
    r"|went with|beschlossen|entschieden|décidé|choisi|decidido|decidimos|elegido)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|in order to|as a result|therefore|thanks to|reason|caused?"
    r"|to avoid|weil|wegen|denn|damit|parce que|car|porque|para que)\b",
    re.IGNORECASE,
)


def classify_question(question: str) -> AnswerType:
    """Return the type of answer that a question asks for."""
    found = [
        (match.start(), kind)
        for kind, pattern in _QUESTIONS.items()
        if (match := pattern.search(question))
    ]
    return min(found)[1] if found else "other"


def asks_whether(question: str) -> bool:
    """Tell whether what is asked for is in the question: "is it so", "this or that", a statement.

    A sentence that says just that is the answer.
    """
    return _ASKING_WORDS.search(question) is None or _CHOICE.search(question) is not None


def has_answer_type(kind: AnswerType, sentence: str, question: str) -> bool:
    """Tell whether a sentence has something of that type; always true for ``other``."""
    match kind:
        case "time":
            stated = has_date(sentence) or has_relative_time(sentence)
            return stated or _TIME.search(sentence) is not None
        case "quantity":
            return has_number(sentence)
        case "person":
            return _SPEAKER.search(sentence) is not None or _names_another(sentence, question)
        case "place":
            return _PLACE.search(sentence) is not None
        case "reason":
            return _REASON.search(sentence) is not None
        case "decision":
            return _DECISION.search(sentence) is not None
    return True


def has_date(sentence: str) -> bool:
    """Tell whether a sentence names an absolute date, unlike "last week"."""
    return _ABSOLUTE_DATE.search(sentence) is not None


def is_whole_date(text: str) -> bool:
    """Tell whether the whole text is a date."""
    return _ABSOLUTE_DATE.fullmatch(text) is not None


def has_number(sentence: str) -> bool:
    """Tell whether a sentence has a number that is not a date."""
    return _NUMBER.search(_ABSOLUTE_DATE.sub("", sentence)) is not None


def has_relative_time(sentence: str) -> bool:
    """Tell whether a sentence names a time relative to when it was said."""
    return _RELATIVE.search(sentence) is not None


def stated_values(sentence: str) -> frozenset[str]:
    """Return the dates, days and numbers in a sentence, which are what an update changes."""
    return frozenset(" ".join(found.lower().split()) for found in _VALUE.findall(sentence))


def _names_another(sentence: str, question: str) -> bool:
    known = question.lower()
    return any(name.lower() not in known for name in _NAME.findall(sentence))


ValueKind = Literal["phone", "e-mail", "link", "percentage", "price", "age", "address", "number"]

UNAMBIGUOUS_KINDS: frozenset[ValueKind] = frozenset(
    ("phone", "e-mail", "link", "percentage", "address")
)
"""Where no such value is seen, there is none; others are also given in words or bare figures."""


@dataclass(frozen=True, slots=True)
class RequestedValue:
    """The value that a question asks for."""

    kind: ValueKind
    name: str
    """The words of the question that name it: "phone number", "cost"."""


# --- questions for values ------------------------------------------------------------------------

_BEFORE_THE_NAME = (
    r"(?:(?!\b(?:do|does|did|has|have|had|can|could|will|would|should|must|about|with|when|where"
    r"|who|whom|whose|why|how|of|for|from|to|in|on|at|by|after|before|that|wann|wer|wo|von|für"
    r"|mit|über|de|du|des|del|para|por|pour)\b)[^?,;:])*?"
)
"""What may stand before the value's name, as in "what is Eva's new phone number"."""
_OF_SOMETHING = (
    r"(?=\W*$|\s+(?:of|for|from|per|a|at|in|on|to|is|was|are|were|von|für|vom|pro|der|des|dem"
    r"|de|du|del|para|pour|par|d['’])\b)"
)


def _question_for(names: str, ambiguous: str) -> re.Pattern[str]:
    """Return the pattern of questions for a value; ambiguous short names need a following "of"."""
    either = rf"(?P<name>(?:{names})\b|(?:{ambiguous})\b{_OF_SOMETHING})"
    return re.compile(rf"^{_BEFORE_THE_NAME}\b{either}", re.IGNORECASE)


_VALUE_QUESTIONS: Mapping[ValueKind, Sequence[re.Pattern[str]]] = {
    "phone": (
        _question_for(
            r"(?:tele)?(?:phone|fax) (?:number|no)s?|(?:mobile|cell|contact) numbers?"
            r"|(?:telefon|handy|mobil|fax)nummern?|num[eé]ros? de t[eé]l[eé](?:phone|fono)",
            r"(?:tele)?phone|t[eé]l[eé]phone|tel[eé]fono|telefon",
        ),
    ),
    "e-mail": (
        _question_for(
            r"e-?mail address(?:es)?|mail address(?:es)?|e-?mail-?adressen?|correo electr[oó]nico",
            r"e-?mails?|courriel|correo",
        ),
    ),
    "link": (_question_for(r"web ?(?:site )?address|url", "web ?site|homepage|web ?page"),),
    "percentage": (
        _question_for("percentages?|per ?cents?", "prozentsatz|pourcentage|porcentaje"),
        re.compile(r"^\W*(?:how many|wie ?viel) (?P<name>per ?cent|prozent)\b", re.IGNORECASE),
    ),
    "price": (
        _question_for(
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
        _question_for("date of birth", "age|alter|edad"),
    ),
    "address": (
        _question_for(
            "(?:street|postal|home) address", r"(?<!\bip )(?<!\bmac )address|anschrift|adresse"
        ),
    ),
    "number": (
        re.compile(r"^\W*(?P<name>how many|wie viele|combien|cu[aá]nt[oa]s)\b", re.IGNORECASE),
    ),
}

# --- patterns of values --------------------------------------------------------------------------

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
_VALUE_PATTERNS: Mapping[ValueKind, re.Pattern[str]] = {
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


def requested_value(question: str) -> RequestedValue | None:
    """Return the value that a question asks for; None where it asks for none."""
    for kind, patterns in _VALUE_QUESTIONS.items():
        for pattern in patterns:
            if found := pattern.search(question):
                return RequestedValue(kind, found["name"])
    return None


def has_value(kind: ValueKind, text: str) -> bool:
    """Tell whether a text has a value of that kind."""
    if kind == "phone":
        return any(_is_phone(found.group(), text) for found in _PHONE.finditer(text))
    if kind == "number":
        return has_number(text)
    return _VALUE_PATTERNS[kind].search(text) is not None


def _is_phone(written: str, text: str) -> bool:
    """Tell a phone number from other figures, by a leading plus or zero or by the words around."""
    digits = sum(map(str.isdigit, written))
    if not _FEWEST_DIGITS <= digits <= _MOST_DIGITS or is_whole_date(written):
        return False
    return written.startswith(("+", "0", "(0")) or _PHONE_WORD.search(text) is not None
