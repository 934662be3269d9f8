"""Whether a message needs memory at all, so that context can precede every prompt.

A message that refers back ("what did we decide about ...") needs it.  Any other gets it only where
the hits are clearly relevant; small talk and instructions ("write a haiku", "fix this bug") never
do, because what they mention is found by chance.

Also what questions a message asks: its last one, and the parts of one that asks two things.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.config import AutoContextSettings
from memctl.language.sentence_splitting import QUESTION_MARKS, split_sentences
from memctl.patterns import lazy_regex
from memctl.search.query.question import Question, analyze_question

if TYPE_CHECKING:
    from memctl.search.answering.relevance import Relevance

_MIN_CONTENT_WORDS = 2
"""Of a question that is looked for without the message around it."""

_BACK_REFERENCES = (
    r"remember|recall|remind me",
    r"last (?:time|week|month|year|spring|summer|autumn|fall|winter|session|meeting|conversation)",
    r"previous(?:ly)?|earlier|the other day|yesterday",
    r"(?:you|we|i|he|she|they)(?: all| both)?(?: had)? (?:discussed|talked|spoke|decided|agreed|"
    r"said|told|mentioned|promised|planned|chose|settled|noted|wrote down)",
    r"(?:did|have|had|were|was) (?:we|i|you|he|she|they) (?:\w+ )?(?:discuss|talk|decide|agree|say|"
    r"said|tell|told|mention|promise|plan|choose|settle|note|write down)\w*",
    r"what (?:was|has been) (?:said|told|discussed|mentioned|noted|decided|agreed|planned)",
    r"(?:what|which|when|where|who|whom|why|how)(?: \w+){0,3} (?:did|have|had|was|were) "
    r"(?:we|i|my|our)",
    r"(?:when|where|who|whom)(?: \w+)? (?:do|does|is|are) (?:we|i|my|our)",
    r"(?:what|when|where|who)(?:['’]s| is| are| was| were) (?:my|our)",
    r"(?:any|do (?:we|i|you) have(?: any)?) notes? (?:on|about)|what do (?:we|you|i) know",
    r"erinner\w*|letzte[ns]? (?:mal|woche|jahr|monat)|neulich|gestern|haben wir|hatten wir",
    r"wie besprochen|was wei(?:ß|ss)t du",
    r"(?:was|wann|wo|wohin|wen|wem|wie|welche\w*)(?: \w+){0,2} (?:habe?|hatte) ich",
    r"rappel\w*|souviens|souvenez|la dernière fois",
    r"(?:d['’]|avant[- ])hier|hier (?:soir|matin)",  # "hier" alone is "here" in German
    r"ai[- ]je|avons[- ]nous|on (?:a|avait) (?:dit|décidé|parlé)",
    r"recuerd\w*|recordar|acuerdas|la última vez|ayer|hablamos|decidimos|acordamos|quedamos",
    r"(?:qué|cuándo|dónde|quién) (?:dije|dijo|dijimos|puse|pusimos|hice|hicimos)",
    r"ricord[aio]\w*|l['’]ultima volta|ieri",
    r"(?:abbiamo|avevamo) (?:deciso|detto|parlato|concordato)",
    r"(?:che cosa|cosa|quando|dove|chi) (?:ho|avevo|abbiamo|avevamo)",
    r"lembr\w*|ontem|falamos|combinamos|(?:o que|quando|onde) (?:eu|nós)",
    r"herinner\w*|vorige (?:keer|week|maand)|gisteren|hebben we|hadden we|(?:heb|had) ik",
)
_ASKING = r"please|now|ok(?:ay)?|and|then|just|bitte|por favor"
_ORDERS = (
    r"write|rewrite|draft|compose|translate|summari[sz]e|explain|fix|debug|refactor|rename",
    r"implement|add|remove|delete|create|make|generate|convert|calculate|compute|solve|sort|format",
    r"check|review|proofread|edit|run|rerun|execute|open|read|use|try|continue|go ahead|give me",
    r"suggest|recommend",
    r"compare|describe|define|list the|tell me (?:a|an|about)|let['’]s|leave|keep|stop",
    r"how (?:do|can|should|would) (?:i|you|we|one)|how to",
    r"thanks|thank you|sounds good|that['’]s (?:wrong|right|it|fine|great)|hello|hi|hey",
    r"good (?:morning|evening)|danke|merci|gracias",
    r"schreib\w*|übersetz\w*|erklär\w*|écris|traduis|explique|escribe|traduce|explica",
)
_BACKWARD = (
    r"it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|ones?",
    r"same|others?|another|else|former|latter|^(?:and|or|what about|how about)",
    r"er|sie|ihn|ihm|ihr|ihre[nmrs]?|ihnen|sein|seine[nmrs]?|diese[nmrs]?|dort|da(?:von|mit|für)",
    r"(?<=[-'’])ils?|elles?|lui|leurs?|celui|celles?|ceux|cela|ça|ce|cette|ces|^et",
    r"él|ellas?|ellos|eso|esas?|ese|esos|est[eao]s?|allí|^y",
    r"lui|lei|loro|esso|essa|quest[oaie]|quell[oaie]|^e",
    r"el[ea]s?|isso|ess[ea]s?|hij|zij|ze|hem|haar|hun|dat|daar|^en",
)
"""Words that stand for something said before, or go on from it."""
_MIN_OWN_WORDS = 2
_MOST_REFERENCES = 3
_SAYING = r"(?:said|told (?:me|you|us)|mentioned|discussed|talked about|spoke (?:about|of)|noted)"
_SAY = r"(?:say|tell (?:me|you|us)|mention|discuss|talk about|speak (?:about|of)|note)"
_SAID = r"(?:said|mentioned|discussed|talked about|spoken (?:about|of)|noted)"
_WHO = r"(?:you|we|i)"
_BEFORE = r"(?:earlier|previously|before|already|once|last time|the other day|in the past)"
_CONVERSATION = r"(?:conversation|session|chat|meeting|discussion|call|talk)s?"
_REFERENCES = (
    rf"(?:in|during|from|at|since) (?:our|the|my|your) (?:previous|earlier|last|past|prior) "
    rf"{_CONVERSATION}(?! with\b)",
    rf"(?:as )?(?:{_BEFORE},? )?(?:as )?{_WHO}(?:['’]ve| have| had| both| all| also| already)* "
    rf"{_SAYING}(?: {_BEFORE})*(?: that\b)?",
    rf"what (?:did|had|have) {_WHO} {_SAY}(?: {_BEFORE})*(?: about| on| regarding| of)?",
    rf"what (?:had|have) {_WHO} {_SAYING}(?: {_BEFORE})*(?: about| on| regarding| of)?",
    rf"what (?:was|has been) {_SAID}(?: {_BEFORE})* (?:about|on|regarding|of)",
    rf"have {_WHO}(?: ever| already)? (?:talked|spoken|discussed|mentioned|said)"
    r"(?: about| of| that)?",
    rf"did {_WHO}(?: ever| already)? {_SAY}(?: that| about| of)?",
    r"(?:(?:can|could|would|will) you )?(?:please )?remind (?:me|us)(?: again)?"
    r"(?: of| about| that)?",
    r"(?:do you |can you |you )?(?:remember|recall)(?: that| when| about)?",
    r"(?:the )?last time(?: we (?:talked|spoke|met|chatted))?(?= we| i| you|,)",
    rf"(?:in the past|{_BEFORE}|previously)(?=,|[ ]+{_WHO}\b)",
    rf"{_BEFORE}(?=\W*$)",
)
"""What a message refers back by, and says nothing of what it is about."""
_REFERENCE_BEGINS = lazy_regex(
    rf"(?:^|(?<=[.!?] ))\W*(?:(?:so|and|but|hey|hi|ok(?:ay)?|well|please),? )*"
    rf"(?:{'|'.join(_REFERENCES)})\b[,:]?\s*",
    re.IGNORECASE,
)
_PAST_CONVERSATION = (
    r"(?:previous|earlier|past|prior) (?:conversation|session|chat|discussion|talk|message)s?\b"
)
_WHOSE = r"(?:(?:our|the|my|your|an?|any) )?"
_REFERENCE_WITHIN = lazy_regex(
    r"(?:(?:(?:that |which |as )?(?:was|were|is|are|been) )?(?:discussed|mentioned|said|noted) )?"
    rf"\b(?:(?:as )?(?:in|during|from|at|since) {_WHOSE}|which ){_PAST_CONVERSATION}"
    r"(?! (?:of|with)\b)[,:]?",
    re.IGNORECASE,
)
"""Not a conversation that the message itself is about: "cancel my earlier talk with Bob"."""
_REFERENCE_ENDS = lazy_regex(
    rf"[,;]?\s*\b(?:as {_WHO} {_SAYING}|{_BEFORE}|in the past|right|correct|remember"
    rf"|(?:was|were|(?:has|have) been) {_SAID}"
    rf"|(?:did {_WHO}(?: ever| already)? {_SAY}|(?:have|had) {_WHO}(?: ever| already)? {_SAID})"
    rf"|isn['’]?t it|is(?:n['’]?t)? that right|(?:did|have|had)n['’]?t {_WHO})"
    r"\s*(?P<mark>[?!.]*)\s*$",
    re.IGNORECASE,
)
_LEFT_OVER = lazy_regex(r"^[,;:.!?–-]+(?:\s+|$)|\s+(?=[?!.,]+(?:\s|$))")
"""Punctuation, and the space before it, that belonged to what was taken off."""
_CLOSING = "\"'”’)]»* "
_REFERS = lazy_regex(rf"\b(?:{'|'.join(_BACK_REFERENCES)})\b", re.IGNORECASE)
_REFERS_BACKWARD = lazy_regex(rf"\b(?:{'|'.join(_BACKWARD)})\b|[他她它这這那其]", re.IGNORECASE)
_NAME = lazy_regex(r"(?<=\s)(?!I\b)[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]\w")
_ORDER = lazy_regex(
    rf"\W*(?:(?:{_ASKING})[, ]+|(?:can|could|would|will) you (?:please )?|"
    rf"(?:i(?:['’]d| would) like|i want|i need) you to )*(?:{'|'.join(_ORDERS)})\b",
    re.IGNORECASE,
)

_ASKS = r"(?:who(?:se|m)?|what|which|when|where|why|how(?: (?:much|many|long|often|far|old|big))?)"
_PREPOSITION = r"(?:(?:at|by|for|from|in|on|to|until|since|with|under) )?"
_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|must"
    r"|(?<=\w)['’]s)"
)
_ASKING_PHRASE = (
    rf"{_PREPOSITION}{_ASKS}(?: (?!{_AUXILIARY}\b)[\w'’-]+){{0,3}}?(?= {_AUXILIARY}\b|['’]s\b)"
)
_ONLY_ASKS = lazy_regex(rf"(?:{_PREPOSITION}{_ASKS}(?: [^\W\d_]+)?)", re.IGNORECASE)
"""The words of a question that say only what kind of thing is asked for: "on which day"."""
_AND_ASKS = lazy_regex(rf"\s*(?:,\s*|\s)and (?=(?:{_PREPOSITION}{_ASKS})\b)", re.IGNORECASE)
_ASKS_AFTER_COMMA = lazy_regex(rf",\s+(?={_PREPOSITION}{_ASKS}\b)", re.IGNORECASE)
"""Before a further thing that is asked, or words on somebody: "Ann, who lives in Bonn"."""
_ASKING_START = lazy_regex(rf"{_ASKING_PHRASE}|{_PREPOSITION}{_ASKS}", re.IGNORECASE)
_TOPIC_BEFORE = lazy_regex(
    rf"\W*(?!{_PREPOSITION}{_ASKS}\b)(?P<topic>[^,:?]{{3,60}})[,:]\s+(?={_PREPOSITION}{_ASKS}\b)",
    re.IGNORECASE,
)
_STOPS_NAME = (
    r"(?:due|done|made|called|last|next|now|today|again|this|that|so|and|or|but|if|then"
    rf"|{_AUXILIARY}|in|on|at|by|for|from|to|of|with|until|since|under|over|about|as|into"
    r"|\w+(?:ed|ing|ly))\b"
)
_THING = lazy_regex(
    r"\b(?:the|my|our|your|their|this|an?) "
    rf"(?!{_STOPS_NAME})[\w'’-]+(?: (?!{_STOPS_NAME})[\w'’-]+){{0,2}}",
    re.IGNORECASE,
)
_CAPITALISED = lazy_regex(r"(?<=\s)(?!I\b)[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_OWNING = lazy_regex(r"\b(?:its|his|her(?= [a-z])|their)\b", re.IGNORECASE)
_STANDS_FOR_THING = lazy_regex(r"\b(?:it|they|them|this|that|one|its|their)\b", re.IGNORECASE)
_STANDS_FOR_SOMEBODY = lazy_regex(r"\b(?:he|him|she|her|his)\b", re.IGNORECASE)
_ASKS_WHO_DID = lazy_regex(rf"\W*who (?!{_AUXILIARY}\b)", re.IGNORECASE)
_COMPARES = lazy_regex(r"\b(?:between|both|compared?|either)\b", re.IGNORECASE)
_MOST_PARTS = 3


class QuestionPart(Struct, frozen=True):
    """One of several things that a question asks."""

    said: str
    """As it stands in the question."""
    alone: str
    """As it is asked alone; "" where it isn't clear what it is about."""


def question_parts(question: str) -> list[QuestionPart]:
    """Return the parts of a question in English that asks two or three things; [] for others.

    "Who fixed the roof and what did it cost?" asks "Who fixed the roof?", and "what did the roof
    cost?".
    """
    text = question.strip().strip("¿?!. ")
    topic = _TOPIC_BEFORE.match(text)
    about = topic["topic"] if topic else ""
    said = _AND_ASKS.split(text[topic.end() :] if topic else text)
    if not 1 < len(said) <= _MOST_PARTS or _ASKING_START.match(said[0]) is None:
        return []
    if _COMPARES.search(said[0]) or _ASKS_AFTER_COMMA.search(said[0]):
        return []
    whole = next((each for each in said if not _ONLY_ASKS.fullmatch(each)), "")
    if not whole:
        return []
    rest = whole[found.end() :] if (found := _ASKING_START.match(whole)) else ""
    before = f"{about}, " if about else ""
    parts = []
    for each in said:
        is_short = _ONLY_ASKS.fullmatch(each) is not None
        alone = f"{each}{rest}" if is_short else _with_subject(each, whole, about)
        parts.append(QuestionPart(f"{each}?", f"{before}{alone}?" if alone else ""))
    return parts


def _with_subject(part: str, whole: str, about: str) -> str:
    """Return a part with what its pronouns stand for; "" if that isn't clear.

    Args:
        part: The part.
        whole: The first part, which may name it.
        about: What stands before the question.
    """
    if part is whole or about:
        return part
    is_somebody = _STANDS_FOR_SOMEBODY.search(part) is not None
    thing, name = _THING.search(whole), _CAPITALISED.search(whole)
    if thing and (owner := _THING.match(whole, thing.end() + len(" of "))):
        thing = owner if whole.startswith(" of ", thing.end()) else thing
    found = (name or thing) if is_somebody else (thing or name)
    if is_somebody or _STANDS_FOR_THING.search(part):
        if found is None or (is_somebody and _ASKS_WHO_DID.match(whole)):
            return ""
        owned = _OWNING.sub(f"{found[0]}'s", part)
        either = _STANDS_FOR_SOMEBODY if is_somebody else _STANDS_FOR_THING
        return either.sub(found[0], owned)
    if _own_words(part) < _MIN_OWN_WORDS and found and " of " not in part:
        return f"{part} of {found[0]}"
    return part


def refers_back(message: str, settings: AutoContextSettings) -> str:
    """Return the words by which a message refers back; "" where there are none."""
    found = _REFERS.search(message) or _any_of(settings.search_triggers).search(message)
    if found is None and any(mark in message for mark in QUESTION_MARKS):
        found = _any_of(settings.search_words).search(message)
    return found.group() if found else ""


def without_reference(message: str, settings: AutoContextSettings) -> str:
    """Return a message without the words by which it refers back, and a closing "right?".

    What is left is what it is about.  Where that is nothing, the whole message is returned.
    """
    about = " ".join(message.split())
    for _ in range(_MOST_REFERENCES):
        shorter = _REFERENCE_BEGINS.sub("", about, count=1)
        shorter = _REFERENCE_ENDS.sub(lambda match: match["mark"], shorter, count=1)
        shorter = _any_of(settings.search_triggers).sub(" ", _REFERENCE_WITHIN.sub(" ", shorter))
        shorter = " ".join(shorter.split())
        if shorter == about:
            break
        about = _LEFT_OVER.sub("", shorter)
    return about if _says_something(about) else message


def refers_explicitly(message: str, settings: AutoContextSettings) -> bool:
    """Return whether a message says that something was said before, and not only implies it.

    "When is my dentist's appointment?" only implies it.
    """
    return _any_of((*settings.search_triggers, *settings.search_words)).search(
        message
    ) is not None or without_reference(message, settings) != " ".join(message.split())


def is_only_reference(message: str, settings: AutoContextSettings) -> bool:
    """Return whether a message that refers back says nothing of what it is about."""
    return not _own_words(without_reference(message, settings))


def _own_words(text: str) -> int:
    """Return how many words of a text say what it is about."""
    from memctl.search.answering.relevance import generic_terms  # which needs numpy

    return sum(map(generic_terms().isdisjoint, analyze_question(text).slots))


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text)) and bool(analyze_question(text).slots)


@cache
def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds any of some phrases, whole words, in any case."""
    said = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
    return re.compile(rf"\b(?:{said})\b" if said else r"(?!)", re.IGNORECASE)


def is_instruction(message: str) -> bool:
    """Return whether a message is small talk, or an instruction rather than a question."""
    return _ORDER.match(message) is not None


def is_memory_needed(message: Question, relevance: Relevance, least: float) -> bool:
    """Return whether hits are worth showing to a message that doesn't refer back."""
    return len(message.slots) >= _MIN_CONTENT_WORDS and relevance.score >= least


def extract_question(message: str) -> str:
    """Return the last question in a message that says more; "" where there is none."""
    parts = [message[start:end].strip() for start, end in split_sentences(message)]
    questions = [each for each in parts if each.rstrip(_CLOSING).endswith(QUESTION_MARKS)]
    return questions[-1] if questions and len(parts) > 1 else ""


def has_own_subject(question: str) -> bool:
    """Return whether a question says what it is about, without the sentences before it.

    A pronoun may stand for a name before it in the question itself.
    """
    if not question:
        return False
    name = _NAME.search(question)
    if _REFERS_BACKWARD.search(question, 0, name.start() if name else len(question)):
        return False
    return _own_words(question) >= _MIN_OWN_WORDS
