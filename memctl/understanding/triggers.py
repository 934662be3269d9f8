"""Triggers: phrases with which a user says that a message is to be kept, and tags in it.

Pure: it reads one message of a user, whom the caller knows to be one, and stores nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memctl.config import TriggerSettings
from memctl.language.inline_tags import find_hashtags, without_inline_tags
from memctl.language.sentence_splitting import QUESTION_MARKS, split_sentences
from memctl.language.word_lists import any_phrase, phrases_of_all
from memctl.patterns import lazy_regex
from memctl.records import Distilled, KeptStatement, SourceText, Understanding

TriggerType = Literal["memories", "important_fact"]

DEFAULT_TRIGGERS = TriggerSettings()
KEPT_IMPORTANCE = {"important_fact": 0.85, "memories": 0.75}
KEPT_CONFIDENCE = 0.95
_MOST_STEPS_BACK = 10
"""Messages before one that points back; each is a query of its own."""


class Trigger(Struct, frozen=True):
    """What a message asks to be kept."""

    detected: bool
    memory_type: TriggerType | None = None
    text: str = ""
    """What to keep, without its tags."""
    tags: tuple[str, ...] = ()
    reference_previous: bool = False
    """Whether the message before it is meant."""
    phrase: str = ""
    """What it was detected by, as it is configured."""
    start: int = 0
    """Where what is to be kept stands in the message, tags included."""
    end: int = 0


NO_TRIGGER = Trigger(detected=False)

_TAGS = r"(?:#[^\W\d_][\w/-]*|@beto_\w[\w/-]*)"
_LEAD = (
    r"(?:(?:[-*+•>]|\d{1,3}[.)]|\[[ xX]?\])\s+)*\W{0,3}?"
    rf"(?>(?:{_TAGS}|ok(?:ay)?|so|and|but|oh|hey|hi|yes|yeah|no|well|also|now|then|right|please|just"
    r"|btw|by the way|one more thing|(?:can|could|would|will) you|i (?:want|need) you to"
    r"|i(?:['’]d| would) like you to|you (?:must|should)|(?-i:[A-Z]\w{1,20})(?=,))"
    r"[,!.:;]?\s+)*"
    r"(?:(?:this is|that is|that['’]s|it is|it['’]s|here is|here['’]s|here are)\s+)?"
    r"(?:(?:an?|one|another|the|my|our|most|very|really|super)\s+)*"
)
"""What may stand between the beginning of a sentence and a label.

A word is taken in one way only: "No," is no name, too, or a row of them could be read in 2ⁿ ways.
"""
_LEADS = lazy_regex(_LEAD, re.IGNORECASE)
_ASKS = lazy_regex(
    r"\W*(?:(?:ok(?:ay)?|so|and|but|oh|hey|well|also|now|then|please|just)[,!]?\s+)*"
    r"(?:(?:what|which|who|whom|whose|when|where|why|how)(?:['’]s|\s+(?:\w+\s+){0,2}?(?:did|do|does"
    r"|is|are|was|were|have|has|had|can|could|should|would|will|shall|might|about))\b"
    r"|(?:did|does|is|are|was|were|have|has|had|can|could|should|would|will|shall|may|might|isn['’]t"
    r"|aren['’]t|didn['’]t|don['’]t you|do (?:you|we|i|they))\b"
    r"|(?:tell|remind|show|ask|give) (?:me|us)\b|i wonder|i['’]m wondering|wondering"
    r"|(?:look up|look for|search|find|list|explain|describe|summari[sz]e|compare|check|review"
    r"|delete|forget|ignore)\b)",
    re.IGNORECASE,
)
"""Begins a sentence that asks, whether or not it ends with a question mark."""
_PLEASE = lazy_regex(
    r"\W*(?:\w+,\s+)?(?:can|could|would|will) you\b(?=.*\bplease\b)", re.IGNORECASE
)
"""Asks in form only."""
_POLITE = lazy_regex(
    rf"{_LEAD}(?:can|could|would) you\s+(?:(?:just|kindly|also|please)\s+)?", re.IGNORECASE
)
"""Asks in form only, where the phrase follows at once."""
_NOTHING_ELSE = lazy_regex(r"(?:\s+(?:for|please|too|as well)\b[^?]*)?[\s.!?]*", re.IGNORECASE)
"""After "could you remember ...", which else may ask whether somebody remembers."""
_DENIED = lazy_regex(
    r"\b(?:not|\w+n['’]t|dont|didnt|never|no|none|nobody|nothing|without|cannot|neither|nor|hardly"
    r"|stop|if|unless|whether|wish(?:ed)?|suppose|imagine|pretend|instead of|rather than)\b",
    re.IGNORECASE,
)
"""Before a phrase, in the same clause: what is said isn't so."""
_NO_OBJECT = lazy_regex(r"\s+(?:no|none|nobody|nothing(?!\s+(?:but|except)))\b", re.IGNORECASE)
"""After a phrase: what is said isn't so."""
_REPORTED = lazy_regex(
    r"(?P<by>(?:\w+\s+)?\w+)\s+(?:says?|said|tells?|told|thinks?|thought|claims?|claimed|asks?|asked)"
    r"(?:\s+(?:me|us|him|her|them|you))?(?:\s+that)?[\s,:]*$",
    re.IGNORECASE,
)
"""Before a phrase: another person says it."""
_LOOK_BACK = 300
"""Characters before a phrase in which a clause may deny or report it."""
_OWN = frozenset(("i", "we"))
_CLAUSE = lazy_regex(r"[,;:.!?–—]|\b(?:but|and|because|so|then)\b", re.IGNORECASE)
_QUOTED = lazy_regex(
    r"\"[^\"\n]*\"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|(?<!\w)['‘][^'‘’\n]*['’](?!\w)"
    r"|```.*?(?:```|\Z)|`[^`\n]+`|^\s*>[^\n]*",
    re.MULTILINE | re.DOTALL,
)
"""What another person said, and code."""
_POINTS_BACK = lazy_regex(
    r"\b(?:save|store|keep|remember|memori[sz]e|note|document|record|write|log|hold on to)\s+"
    r"(?:(?:this|that|it)\b(?!\s*:)|our work)|\bthis conversation\b",
    re.IGNORECASE,
)
_ONLY_POINTS_BACK = lazy_regex(
    rf"{_LEAD}(?:let['’]?s\s+|i want you to\s+)?"
    r"(?P<verb>save|store|keep|remember|memori[sz]e|note|record)\s+(?:this|that|it)"
    r"(?:\s+(?:one|down|in mind|please|too|as well|for (?:later|me|us|next time|the future)))*"
    r"[\s.!,]*",
    re.IGNORECASE,
)
"""All of a message that has no phrase and means the one before it."""
_CLOSES = lazy_regex(r"(?:[.!,;…]+|\s[-–—]{1,2})\s+|\n\s*|\s+(?=so\s)", re.IGNORECASE)
"""Between a statement and the words at the end that ask for it to be kept."""
_MOST_CLOSING = 100
"""Characters of these words."""
_KEEPS_A_FACT = ("remember", "memorize", "memorise", "note")
_TELLS = lazy_regex(
    r"\s+(?:(?:about|that|of|on|how|why)\b(?:\W+\w+){3}"
    r"|(?<!conversation\s)(?:with|where|which|whose)\b(?:\W+\w+){2})",
    re.IGNORECASE,
)
"""After a phrase that would point back: the sentence says itself what is to be kept."""
_TO_KEEP = (
    r"(?:\s+(?:this|that|it|the following|down|please|in mind|(?:for|with) (?:me|us|later)))*"
)
"""Between the verb of a label and what is to be kept: "remember this for me: ..."."""
_CLAUSE_VERBS = {
    "remember": "remember",
    "never forget": r"(?:never|don['’]?t|do\s+not)\s+forget",
    "note this": r"(?:note\s+this|make\s+a\s+note)",
}
"""Labels that have what is to be kept as a clause, too: "remember that ..."."""
_TOLD = (
    r"\s+(?:that\s+(?!(?:for|in|to|too|as|on|with|and|or|when|please|time|day|night|evening|morning"
    r"|afternoon|week|weekend|summer|winter|year|one|thing|song|film|movie|book|story"
    r"|conversation|discussion|meeting|talk)\b)(?=(?:\S+\s+){2}\S|(?:i|we)\b)"
    r"|(?=(?:i|we)(?:['’](?:m|re|ve)|\s+(?:am|are|have|need|want|like|love|hate|prefer|use|live|work"
    r"|can|never|always|only|don['’]t))\s+\S"
    r"|(?:my|our)\s+(?:[\w'’-]+\s+){1,5}?(?:is|are|was|were|has|have|had|will|can|live[sd]?"
    r"|works?|likes?|hates?|needs?|prefers?|wants?|uses?|starts?|ends?|moved)\s+\S))"
)
"""After such a verb: a clause that says something, and no name of what both know of."""
_NEXT_LINE = lazy_regex(r"[ \t]*\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S|\w)")
"""After a label that ends its line: what it stands above, which is neither code nor data."""
_OWN_TEXT = lazy_regex(r"\s*(?::|--?|–|—)\s+(?=\S)|\s*:(?=\w)")
"""After a phrase: what is to be kept follows."""
_ORDER = lazy_regex(
    r"(?:let['’]?s\s+)?(?:save|store|keep|remember|memori[sz]e|note|document|record|write|log)\b",
    re.IGNORECASE,
)
"""A phrase that says nothing itself of what is to be kept."""
_STANDS_FOR = lazy_regex(r"\b(?:this|that|it)\b", re.IGNORECASE)
_EMPTY_LINE = lazy_regex(r"\n\s*\n")
_LETTER = lazy_regex(r"\w")
_LETTERS = lazy_regex(r"\w+")


class _Phrase(Struct, frozen=True):
    """A phrase as it is looked for."""

    text: str
    type: TriggerType
    pattern: re.Pattern[str]
    is_label: bool
    """Whether it ends in a colon, and what is to be kept follows it."""
    is_clause: bool = False
    """Whether that is a clause of the same sentence instead of what follows a colon."""


class _Place(Struct, frozen=True):
    """Where a phrase stands in a message."""

    phrase: _Phrase
    start: int
    end: int
    sentence: tuple[int, int]


def detect_trigger(message: str, settings: TriggerSettings = DEFAULT_TRIGGERS) -> Trigger:
    """Return what a message of a user asks to be kept.

    The phrase that stands first decides; of two at one place the longer one; of the same in both
    lists that of ``memory``.  A label, with a colon, counts at the beginning of a sentence or line
    alone.  Other phrases count anywhere, but not in questions, negations or quotations.
    """
    quoted = quotations(message)
    places = sorted(
        _places(message, (*_phrases(settings), _SAVE_THIS), quoted),
        key=lambda place: (place.start, -len(place.phrase.text)),
    )
    for place in places:
        trigger = _trigger(message, place)
        if trigger.text or trigger.reference_previous:
            return trigger
    bare = without_inline_tags(message)
    alone = _ONLY_POINTS_BACK.fullmatch(bare.rstrip("?") if _POLITE.match(bare) else bare)
    if alone is None:
        return _closing_trigger(message, quoted)
    is_fact = alone["verb"].lower() in _KEEPS_A_FACT
    return Trigger(
        detected=True,
        memory_type="important_fact" if is_fact else "memories",
        tags=find_hashtags(message),
        reference_previous=True,
        phrase=f"{alone['verb'].lower()} this",
        end=len(message),
    )


def _closing_trigger(message: str, quoted: Sequence[tuple[int, int]]) -> Trigger:
    """Return what a message asks to be kept with its last words: "I'm vegan, remember that".

    It is the paragraph before these words, or the message before where that only replies to it.
    "Remember that?" asks whether somebody does.
    """
    stop = len(message.rstrip())
    first = max(0, stop - _MOST_CLOSING)
    places = [close.span() for close in _CLOSES.finditer(message, first, stop)][::-1]
    for end, begin in places if first else [(0, 0), *places]:
        asks = _closing_words().fullmatch(message, begin, stop)
        if asks is None or any(a <= asks.start("said") < b for a, b in quoted):
            continue
        is_question = "?" in message[asks.end("said") : stop]
        if is_question and not (_POLITE.match(message, begin) or _PLEASE.match(message, begin)):
            continue
        start = max((gap.end() for gap in _EMPTY_LINE.finditer(message[:end].rstrip())), default=0)
        text = without_inline_tags(message[start:end])
        if text.endswith(QUESTION_MARKS) or _ASKS.match(text) or _REPORTED.search(text):
            return NO_TRIGGER
        is_reply = _only_replies().fullmatch(text) is not None
        return Trigger(
            detected=True,
            memory_type="important_fact",
            text="" if is_reply else text,
            tags=find_hashtags(message),
            reference_previous=is_reply,
            phrase="remember this",
            start=start,
            end=end,
        )
    return NO_TRIGGER


def kept_statement(
    message: str, previous: Iterable[str], settings: TriggerSettings = DEFAULT_TRIGGERS
) -> KeptStatement | None:
    """Return what is to be kept because of a message of a user; None for nothing.

    Args:
        message: What the user says.
        previous: What was said before it, by whomever, the latest first; what only points back
            itself is passed over, up to ten messages.
        settings: The phrases.
    """
    found = detect_trigger(message, settings)
    if not found.detected or found.memory_type is None:
        return None
    if found.reference_previous:
        for steps, said in enumerate(islice(previous, _MOST_STEPS_BACK), start=1):
            earlier = detect_trigger(said, settings)
            text = "" if earlier.reference_previous else earlier.text or without_inline_tags(said)
            if _LETTER.search(text):
                type_, tags = found.memory_type, found.tags
                return KeptStatement(text, type_, found.phrase, tags, True, steps=steps)
    if not found.text:
        return None
    return KeptStatement(found.text, found.memory_type, found.phrase, found.tags)


class StatedText(Struct, frozen=True):
    """A text that is kept on purpose, without the words that ask for it."""

    text: str
    type: TriggerType | None
    tags: tuple[str, ...]


def stated_text(text: str, settings: TriggerSettings = DEFAULT_TRIGGERS) -> StatedText:
    """Return a text that is kept on purpose without its tags, and the label that it begins with.

    The type is what its trigger asks for, if it has one that says what to keep.
    """
    found = detect_trigger(text, settings)
    start = _asking_length(text, found, settings)
    type_ = found.memory_type if found.text and not found.reference_previous else None
    bare = without_inline_tags(text[start:])
    return StatedText(bare if _LETTER.search(bare) else text, type_, find_hashtags(text))


def asking_length(text: str, settings: TriggerSettings = DEFAULT_TRIGGERS) -> int:
    """Return how many characters of a sentence only ask for the rest of it to be kept."""
    return _asking_length(text, detect_trigger(text, settings), settings)


def _asking_length(text: str, found: Trigger, settings: TriggerSettings) -> int:
    return found.start if found.text and _only_asks(text, found, settings) else 0


def _only_asks(text: str, found: Trigger, settings: TriggerSettings) -> bool:
    """Return whether nothing but a phrase, with what may lead to it, stands before a statement."""
    asking = text[: found.start].casefold().rstrip(" \t\n:-–—")
    said = found.phrase.casefold().removesuffix(":")
    if asking.endswith(said) and _LEADS.fullmatch(asking.removesuffix(said)):
        return True
    phrases = (*_phrases(settings), _SAVE_THIS)
    labels = (each for each in phrases if each.is_label and each.text == found.phrase)
    matches = (label.pattern.match(text) for label in labels)
    return any(match and not text[match.end() : found.start].strip() for match in matches)


def kept_distilled(source: SourceText) -> tuple[Distilled, ...]:
    """Return what speakers of a text ask to be kept, with where it stands."""
    found: list[Distilled] = []
    for place, turn in enumerate(source.segments):
        if (kept := turn.kept) is None:
            continue
        first = max(0, place - kept.steps) if kept.from_previous else place
        start = source.segments[first].start
        found.append(
            Distilled(
                kept.text,
                kept.type,
                start,
                turn.end,
                KEPT_IMPORTANCE[kept.type],
                KEPT_CONFIDENCE,
                f"trigger: {kept.phrase}",
                tags=kept.tags,
                evidence=kept.evidence,
            )
        )
    return tuple({each.text.casefold(): each for each in reversed(found)}.values())[::-1]


def with_kept(source: SourceText, understood: Understanding) -> Understanding:
    """Return an understanding with what speakers ask to be kept, and nothing else of these turns.

    What they ask for is one memory, whatever else could be made of its words.
    """
    kept = kept_distilled(source)
    if not kept:
        return understood
    turns = [(turn.start, turn.end) for turn in source.segments if turn.kept is not None]
    texts = {plain_words(each.text) for each in kept}
    others = (
        each
        for each in understood.distilled
        if not any(start < each.end and each.start < end for start, end in turns)
        and plain_words(source.text[each.start : each.end]) not in texts
    )
    return replace(understood, distilled=(*others, *kept))


def plain_words(text: str) -> str:
    """Return the words of a text alone, in lower case, between single spaces."""
    return " ".join(_LETTERS.findall(text.casefold()))


def label_type(sentence: str, settings: TriggerSettings = DEFAULT_TRIGGERS) -> TriggerType | None:
    """Return the type of memory that the label at the beginning of a sentence asks for, if any."""
    for phrase in _phrases(settings):
        is_plain = phrase.is_label and not phrase.is_clause
        if is_plain and (match := phrase.pattern.match(sentence)) is not None:
            if any(start < match.end() <= end for start, end in quotations(sentence)):
                return None
            return phrase.type if len(sentence[match.end() :].split()) > 2 else None
    return None


@cache
def _phrases(settings: TriggerSettings) -> tuple[_Phrase, ...]:
    given: list[tuple[TriggerType, Sequence[str]]] = [
        ("memories", settings.memory),
        ("important_fact", settings.fact),
    ]
    return tuple(
        each for type_, texts in given for text in texts for each in _ways_to_say(text, type_)
    )


def _ways_to_say(text: str, type_: TriggerType) -> Iterator[_Phrase]:
    """Yield a phrase as it stands in a message; of a label also what people write instead."""
    label = text.lower().removesuffix(":")
    words = label.split()
    said = r"\s+".join(re.escape(word).replace("'", "['’]?") for word in words)
    if not text.endswith(":"):
        pattern = rf"(?<![\w-])(?P<said>{said})(?![\w-])"
        yield _Phrase(text, type_, re.compile(pattern, re.IGNORECASE), is_label=False)
        return
    verb = _CLAUSE_VERBS.get(label)
    asks = verb is not None or _ORDER.match(label) is not None
    dash = _DASH if asks or len(words) > 1 else ""
    pattern = rf"{_LEAD}(?P<said>{verb or said}){_TO_KEEP if asks else ''}{_followed(dash)}"
    yield _Phrase(text, type_, re.compile(pattern, re.IGNORECASE), is_label=True)
    if label == "important":
        pattern = rf"{_LEAD}(?P<said>{_keeping('labels')}){_followed()}"
        yield _Phrase(text, type_, re.compile(pattern, re.IGNORECASE), is_label=True)
    if label == "remember":
        yield from _requests(text, type_)
    if verb is not None:
        clause = re.compile(rf"{_LEAD}(?P<said>{verb}){_TOLD}", re.IGNORECASE)
        yield _Phrase(text, type_, clause, is_label=True, is_clause=True)


def _requests(text: str, type_: TriggerType) -> Iterator[_Phrase]:
    """Yield what asks in other languages than English as ``text`` does: "merk dir, dass ..."."""
    please = _keeping("please")
    asks = (
        rf"{_LEAD}(?:(?:{please}),?\s+)?"
        rf"(?P<said>{_keeping('requests')})(?:,?\s+(?:{please})(?!\w))?"
    )
    that = rf",?\s+(?:{_keeping('that')})(?:\s+|(?<=['’]))(?=\S+\s+\S)"
    label = re.compile(rf"{asks}{_followed(_DASH)}", re.IGNORECASE)
    yield _Phrase(text, type_, label, is_label=True)
    clause = re.compile(rf"{asks}{that}", re.IGNORECASE)
    yield _Phrase(text, type_, clause, is_label=True, is_clause=True)


def _keeping(key: str) -> str:
    return any_phrase(phrases_of_all("keeping", key))


@cache
def _only_replies() -> re.Pattern[str]:
    """Return what matches a reply that says nothing of its own: "thanks!", "that is a good one".

    What may say something is none, however short: "Soy vegano", "It's cancelled".
    """
    good = (
        r"(?:so\s+|very\s+|really\s+|too\s+|an?\s+)*"
        r"(?:good|great|nice|funny|cool|lovely|fine|perfect|awesome|amazing|interesting|true|right)"
        r"(?:\s+(?:one|idea|point))?"
    )
    english = (
        rf"thank(?:s| you)(?:\s+(?:so|very|much|a lot|again))*|(?:sounds|looks|seems)\s+{good}"
        rf"|(?:(?:this|that|it)(?:['’]s|\s+(?:is|was))\s+)?{good}"
        r"|ok(?:ay)?|yes|yeah|yep|no|nope|oh|wow|well|sure|exactly|correct|agreed|indeed|got it"
        r"|i see|lo+l|lmao|rofl|(?:ha|he|hi|ja|je){2,}h?"
    )
    return re.compile(rf"\W*(?>(?:{english}|{_keeping('replies')})(?!\w)\W*)*", re.IGNORECASE)


@cache
def _closing_words() -> re.Pattern[str]:
    """Return what matches the last words of a message that ask for it to be kept."""
    please = _keeping("please")
    english = (
        r"(?:(?:remember|memori[sz]e|note)\s+(?:this|that)(?:\s+(?:one|down))?"
        r"|keep\s+(?:this|that)\s+in\s+mind|(?:make\s+a|take)\s+note\s+of\s+(?:this|that))"
        r"(?:,?\s+(?:please|too|as well|for (?:later|me|us|next time|the future)"
        r"|when(?:ever)? you\b[^.?!\n]*))*"
    )
    others = (
        rf"(?:(?:{please}),?\s+)?(?:{_keeping('requests')})\s+(?:{_keeping('this')})"
        rf"(?:,?\s+(?:{please}))?"
    )
    pattern = rf"{_LEAD}(?P<said>{english}|{others})[\s.!?]*(?:{_TAGS}\s*)*"
    return re.compile(pattern, re.IGNORECASE)


_DASH = r"|\s[-–—]{1,2}(?=\s)"


def _followed(dash: str = "") -> str:
    """Return what ends a label: its colon, or what may stand instead of one."""
    return rf"(?:[*]{{0,3}}\s*:(?![:/])[*]{{0,3}}{dash})(?=\s*(?:\S|\Z))"


_MANNER = r"\s*:(?:\s*[^\W\d_]+){1,3}\W*\Z"
"""How something is to be kept: "keep it: short and simple"."""
_SAVE_THIS = _Phrase(
    "save this",
    "memories",
    lazy_regex(
        rf"{_LEAD}(?P<said>(?:save|store|record)\s+(?:this|that|it)"
        rf"|keep\s+(?:this|that|it(?!{_MANNER}))){_TO_KEEP}{_followed()}",
        re.IGNORECASE,
    ),
    is_label=True,
)
"""What alone would point back, with what is to be kept behind it."""


def quotations(text: str) -> list[tuple[int, int]]:
    """Return where a text has what another person said, and code."""
    return [match.span() for match in _QUOTED.finditer(text)]


def _places(
    message: str, phrases: Iterable[_Phrase], quoted: Sequence[tuple[int, int]]
) -> Iterator[_Place]:
    sentences = list(_sentences(message))
    for phrase in phrases:
        for start, end in sentences:
            found = (
                filter(None, [phrase.pattern.match(message, start, end)])
                if phrase.is_label
                else phrase.pattern.finditer(message, start, end)
            )
            for match in found:
                place = _Place(phrase, match.start("said"), match.end(), (start, end))
                is_bare = phrase.is_label and not message[place.end : end].strip()
                if is_bare and _NEXT_LINE.match(message, place.end) is None:
                    continue
                if not any(first <= place.start < last for first, last in quoted) and _is_stated(
                    message, place
                ):
                    yield place


def _sentences(message: str) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a message; a line begins one, too, as people write in chats."""
    for start, end in split_sentences(message):
        position = start
        for line in message[start:end].splitlines(keepends=True):
            if line.strip():
                yield position, position + len(line.rstrip())
            position += len(line)


def _is_stated(message: str, place: _Place) -> bool:
    """Return whether a phrase says something, and neither asks nor denies it."""
    start, end = place.sentence
    sentence = without_inline_tags(message[start:end])
    asks = sentence.rstrip("\"'”’)]» ").endswith(QUESTION_MARKS)
    if asks or _ASKS.match(sentence):
        is_clause = place.phrase.is_clause or not place.phrase.is_label
        return _is_request(message, place) and (is_clause or not asks)
    if place.phrase.is_label:
        return True
    before = message[max(start, place.start - _LOOK_BACK) : place.start]
    clause = before[max((match.end() for match in _CLAUSE.finditer(before)), default=0) :]
    if _DENIED.search(clause) or _NO_OBJECT.match(message, place.end, end):
        return False
    reported = _REPORTED.search(before)
    return reported is None or not _OWN.isdisjoint(reported["by"].lower().split())


def _is_request(message: str, place: _Place) -> bool:
    """Return whether a sentence that asks in form asks for something to be kept."""
    start, end = place.sentence
    is_plain = place.phrase.is_label and not place.phrase.is_clause
    if not is_plain and _PLEASE.match(without_inline_tags(message[start:end])):
        return True
    polite = _POLITE.fullmatch(message, start, place.start)
    if polite is None or not _is_order(place.phrase):
        return False
    is_memory = place.phrase.text.lower().startswith("remember") and not is_plain
    return not is_memory or _NOTHING_ELSE.fullmatch(message, place.end, end) is not None


def _trigger(message: str, place: _Place) -> Trigger:
    start, end = _span(message, place)
    text = without_inline_tags(message[start:end])
    has_own = start >= place.end
    return Trigger(
        detected=True,
        memory_type=place.phrase.type,
        text=text if _LETTER.search(text) else "",
        tags=find_hashtags(message),
        reference_previous=not has_own and _points_back(message, place),
        phrase=place.phrase.text,
        start=start,
        end=end,
    )


def _points_back(message: str, place: _Place) -> bool:
    """Return whether the message before it is meant by a phrase that no colon follows."""
    end = place.sentence[1]
    if _TELLS.match(message, place.end, end):
        return False
    if _is_order(place.phrase) and _POINTS_BACK.search(message, place.start, end):
        return True
    says_nothing = _is_order(place.phrase) or _STANDS_FOR.search(place.phrase.text)
    follows = without_inline_tags(message[place.end : end])
    return bool(says_nothing) and _LETTER.search(follows) is None


def _span(message: str, place: _Place) -> tuple[int, int]:
    """Return where what is to be kept stands.

    It is what follows a label, up to an empty line or a question; of another phrase its sentence,
    with the lines that it stands above, or what follows its colon.
    """
    own = _OWN_TEXT.match(message, place.end)
    begin = place.end if place.phrase.is_label else own.end() if own else None
    if place.phrase.is_clause:
        said = message[place.end : place.sentence[1]]
        return place.end, place.end + len(said.rstrip("".join(QUESTION_MARKS)))
    if begin is None or not _is_order(place.phrase):
        start, end = place.sentence
        is_above = message[start:end].endswith(":") and _NEXT_LINE.match(message, end)
        return (start, _end_of_statement(message, end)) if is_above else (start, end)
    begin += len(message[begin:]) - len(message[begin:].lstrip())
    return begin, _end_of_statement(message, begin)


def _end_of_statement(message: str, begin: int) -> int:
    """Return where what begins somewhere ends: at an empty line, or before a question."""
    paragraph = _EMPTY_LINE.search(message, begin)
    last = paragraph.start() if paragraph else len(message)
    end = begin
    for _, sentence_end in split_sentences(message[begin:last]):
        if message.endswith(QUESTION_MARKS, begin, begin + sentence_end):
            break
        end = begin + sentence_end
    return end


def _is_order(phrase: _Phrase) -> bool:
    """Return whether a phrase says nothing itself of what is to be kept."""
    return phrase.is_label or _ORDER.match(phrase.text) is not None
