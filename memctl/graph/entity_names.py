"""What a name says of itself: how it is compared, and whether it may be a person's."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from memctl.ids import folded_name
from memctl.language.word_lists import (
    COMMON_WORDS,
    ORGANISATION_ENDS,
    PLACE_ENDS,
    known_names,
    stop_words,
    word_set,
)

EXACT_TYPES = frozenset({"identifier", "url", "email", "handle"})
"""Types of names in which every character counts."""

_LONGEST = 200
_DOTS = re.compile(r"(?<!\d)\.|\.(?!\d)")
_MARKS = re.compile(r"[\"'`´‘’“”«»,;:!?()\[\]{}]")
_WORD_JOINERS = re.compile(r"[-‐‑‒–—_/\s]+")
_OWNED = re.compile(r"['’]s?$")
_LAST_FIRST = re.compile(r"([^\W\d_][\w'’-]+), ([^\W\d_][\w'’.-]*(?: [^\W\d_]\.?)?)")
_HONORIFICS = word_set(
    """mr mrs ms miss mx dr prof professor doctor herr herrn frau sir dame captain capt colonel col
    sergeant sgt reverend rev revd judge senator sen governor gov mayor cllr councillor lieutenant
    lt mme mlle madame monsieur signor signora mw dhr"""
)
_HERS = word_set("mrs ms miss frau mme mlle madame signora mw")
_HIS = word_set("mr herr herrn monsieur signor dhr")
_GENERATIONS = word_set("jr sr junior senior ii iii iv")
_PARTICLES = word_set("de da di van von der den del la le du bin al of the and for")
_FORMS = {
    "incorporated": "inc", "corporation": "corp", "limited": "ltd", "company": "co",
}  # fmt: skip
_COMPANIES = word_set("inc corp ltd co llc gmbh ag plc sa se bv nv kg oy ab srl spa pty")
_NO_PERSONS = ORGANISATION_ENDS | PLACE_ENDS
_MIN_ACRONYM_WORDS = 3
_FEWEST_LETTERS = 3
"""Of the beginning of a first name by which somebody is called."""


_WORD_OF_NAME = r"[A-ZÀ-ÖØ-Þ](?:[\w'’-]{0,40}\w)?"
_FULL_NAME = rf"(?<![\w-])(?P<full>{_WORD_OF_NAME}(?: {_WORD_OF_NAME}){{1,3}})"
_ALSO = rf"[\"“'‘*_]*(?P<also>{_WORD_OF_NAME}(?: {_WORD_OF_NAME}){{0,2}})[\"”'’*_]*(?=[.,;:!?)]|$)"
_STATED = (
    r"^Nickname of (?P<full>[^\n:(]+?)(?: \([^)\n]*\))?: (?P<also>[^\n]+)$",
    rf"{_FULL_NAME}['’]s nickname is {_ALSO}",
    rf"{_FULL_NAME}[*_]*(?: is|,)? \(?(?:aka|a\.k\.a\.|also known as|nicknamed) {_ALSO}",
    rf"^[^\w\n]*{_FULL_NAME}[*_]* [-–—] (?:(?!\b(?i:I|my|our|his|her|their|whose)\b)[^\n])*"
    r"\b(?i:everyone|everybody|they|we|people|friends|mates|the [a-z]+)(?: all)?"
    rf" calls? (?:him|her|them) {_ALSO}",
)
"""How texts state what else somebody is called.

After a name and a colon somebody speaks, who may be speaking of anybody.
"""
_QUOTED = re.compile(
    rf"(?<![\w-])(?P<first>{_WORD_OF_NAME}) \(?[\"“„'‘«]"
    rf"(?P<also>{_WORD_OF_NAME}(?: {_WORD_OF_NAME})?)[\"”“'’»]\)? (?P<last>{_WORD_OF_NAME})"
)
"""What somebody is called between the parts of a name."""
_DECLARED = re.compile(
    rf"^[^\w\n]*(?P<full>{_WORD_OF_NAME}"
    rf"(?: (?:(?:de|van|von|der|den|di|da|la|le) ){{0,2}}{_WORD_OF_NAME}){{1,3}})[*_]*"
    r" \((?P<others>[^)\n]{2,60})\)",
    re.MULTILINE,
)
"""What somebody is called, in brackets after a name that begins a line."""
_OTHER_NAME = re.compile(
    rf"[\"“„'‘«](?P<quoted>{_WORD_OF_NAME}(?: {_WORD_OF_NAME})?)[\"”“'’»]|(?P<handle>@\w[\w.-]*)|"
    rf"(?:^|[,;/] ?)(?P<bare>{_WORD_OF_NAME})(?=$|[,;/])"
)
_WITH_INITIAL = re.compile(r"[A-ZÀ-ÖØ-Þ][^\W\d_A-Z]+ ?[A-ZÀ-ÖØ-Þ]")
_SAYS_MORE = re.compile(
    r"^[^\w\n]*[^\W\d_][^\n(]{3,60} \([\"“„'‘«@]?[^\W\d_]|"
    r"nickname|\baka\b|a\.k\.a\.|also known as| calls? (?:him|her|them) |\w \(?[\"“„'‘«][^\W\d_]",
    re.I | re.MULTILINE,
)
_NICKNAMES = re.compile(r"\s*[,;]\s*")


class Person(Struct, frozen=True):
    """The parts of a name that may be a person's, compared without case and marks."""

    given: str
    """A first name, its initial, or ""."""
    middle: tuple[str, ...]
    family: str
    """A family name, or ""."""
    honorific: str = ""
    generation: str = ""
    """``jr``, ``iii``, or ""."""

    @property
    def is_full(self) -> bool:
        """Whether a first name is written out, and a family name or its first letter follows."""
        return len(self.given) > 1 and bool(self.family)

    @property
    def has_initial(self) -> bool:
        """Whether of the family name only the first letter is written."""
        return self.is_full and len(self.family) == 1

    @property
    def gender(self) -> str:
        """What the honorific tells of it; "" where it tells nothing."""
        if self.honorific in _HERS:
            return "f"
        return "m" if self.honorific in _HIS else ""


@lru_cache(maxsize=100_000)
def has_words(name: str) -> bool:
    """Return whether there is a letter or a digit in a name; what was blocked out has none."""
    return any(map(str.isalnum, name))


def name_key(name: str, type_: str = "") -> str:
    """Return what a name is compared by: without case, accents, marks and what joins words.

    Codes, addresses and handles are compared as they are written.
    """
    if type_ in EXACT_TYPES:
        return name if type_ == "identifier" else name.casefold().removeprefix("@")
    text = unicodedata.normalize("NFKC", name[:_LONGEST]).strip()
    turned = _LAST_FIRST.fullmatch(text) if type_ == "person" else None
    if turned and turned[2].strip(".").casefold() not in _GENERATIONS:
        text = f"{turned[2]} {turned[1]}"
    plain = _MARKS.sub("", _DOTS.sub("", _OWNED.sub("", text)))
    parts = _WORD_JOINERS.sub(" ", plain).casefold().split()
    folded = _without_accents(" ".join(parts)) if len(parts) > 1 else " ".join(parts)
    return folded or folded_name(name)


def without_article(key: str) -> str:
    """Return the key without "the" in front, where a name remains."""
    rest = key.removeprefix("the ")
    return key if len(rest) < 3 or rest in stop_words("en") else rest


def parse_company(key: str) -> tuple[str, str]:
    """Return the key without what a company's kind is called by, and that kind; "" where none."""
    *rest, last = key.split(" ")
    kind = _FORMS.get(last, last)
    return (" ".join(rest), kind) if rest and kind in _COMPANIES else (key, "")


def parse_person(key: str, type_: str) -> Person | None:
    """Return the parts of a name that may be a person's; None where it is none.

    Of a single word it says nothing but that it may be short for a whole name.
    """
    if type_ not in ("person", "other", "page"):
        return None
    parts = key.split(" ")
    honorific = parts.pop(0) if len(parts) > 1 and parts[0] in _HONORIFICS else ""
    generation = parts.pop() if len(parts) > 1 and parts[-1] in _GENERATIONS else ""
    if not parts or not all(map(_may_be_of_a_name, parts)):
        return None
    if len(parts) > 1 and type_ != "person" and not (honorific or _is_named_like_one(parts)):
        return None
    if len(parts) == 1:
        given, family = ("", parts[0]) if honorific else (parts[0], "")
        return Person(given, (), family, honorific, generation)
    return Person(parts[0], tuple(parts[1:-1]), parts[-1], honorific, generation)


def short_forms(name: str, type_: str) -> tuple[str, ...]:
    """Return what else a person is called by a full name: Lee, Ann L and A Lee for Ann Lee.

    A surname that is an everyday word is none of these.
    """
    person = parse_person(name_key(name), type_)
    if person is None or not person.is_full:
        return ()
    given, family = person.given.capitalize(), person.family.capitalize()
    alone = () if is_everyday(person.family) else (family,)
    return (*alone, f"{given} {family[0]}", f"{given[0]} {family}")


def _may_be_of_a_name(word: str) -> bool:
    return not any(map(str.isdigit, word)) and len(word) < 30


def _is_named_like_one(parts: list[str]) -> bool:
    """Return whether otherwise unknown words look like a person's name."""
    if not is_given_name(parts[0]):
        return False
    return parts[-1].capitalize() not in _NO_PERSONS and not is_place(" ".join(parts))


def is_given_name(word: str) -> bool:
    """Return whether it is a common first name."""
    return word.capitalize() in known_names().given


def is_place(key: str) -> bool:
    """Return whether it is a well-known place."""
    written = " ".join(word.capitalize() for word in key.split(" "))
    return written in known_names().places


def is_everyday(word: str) -> bool:
    """Return whether it is a word that is also used without naming anybody: will, mark, may."""
    return word in COMMON_WORDS or word in stop_words("en")


def initials_of(key: str) -> frozenset[str]:
    """Return the acronyms that a name of several words is known by."""
    parts = without_article(parse_company(key)[0]).split(" ")
    content = [word for word in parts if word not in _PARTICLES]
    if len(content) < _MIN_ACRONYM_WORDS:
        return frozenset()
    return frozenset("".join(word[0] for word in each) for each in (parts, content))


def is_acronym(name: str) -> bool:
    """Return whether a name is written like an acronym of at least three letters."""
    bare = name.replace(".", "")
    return 3 <= len(bare) <= 6 and bare.isalpha() and bare.isupper()


def _without_accents(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


def stated_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield the full names that a text has with what each is called too."""
    if not _SAYS_MORE.search(text):
        return
    for match in _QUOTED.finditer(text):
        if is_given_name(match["first"]) and not is_everyday(match["also"].casefold()):
            yield f"{match['first']} {match['last']}", match["also"]
    yield from _declared_names(text)
    for form in _STATED:
        for match in re.finditer(form, text, re.MULTILINE):
            full = match["full"]
            for also in _NICKNAMES.split(match["also"].strip()):
                if is_written_as_name(full) and is_written_as_name(also):
                    yield full, also


def _declared_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield what people are called by what stands in brackets after their names.

    Without quotation marks that may be anything, unless it is short for the name.
    """
    for match in _DECLARED.finditer(text):
        full = match["full"]
        for other in _OTHER_NAME.finditer(match["others"]):
            also = other["quoted"] or other["handle"] or ""
            if other["bare"] and is_short_for(other["bare"], full):
                also = other["bare"]
            if also and also != full:
                yield from ((full, spelt) for spelt in _spellings(also))


def _spellings(name: str) -> Iterator[str]:
    """Yield a name, and one with an initial both with and without a space: Tom L, TomL."""
    yield name
    if _WITH_INITIAL.fullmatch(name):
        yield name.replace(" ", "") if " " in name else f"{name[:-1]} {name[-1]}"


def is_short_for(short: str, full: str) -> bool:
    """Return whether a word is the beginning of a first name, or the first letters of all names."""
    words = full.split()
    is_start = len(short) >= _FEWEST_LETTERS and words[0].startswith(short)
    return is_start or short.casefold() == "".join(word[0] for word in words).casefold()


def is_written_as_name(name: str) -> bool:
    """Return whether each word of a name has a capital."""
    return bool(name) and all(word[:1].isupper() for word in name.split())
