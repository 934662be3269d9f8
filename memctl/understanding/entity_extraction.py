"""Who and what a text names: people, organisations, places, products, addresses, identifiers.

Names are found by their capitals, so the first word of a sentence counts only where something
else speaks for it.  What is found is shown to people: a doubtful name is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from memctl.ids import tag_name
from memctl.language.word_lists import (
    BARE_TITLES,
    COMMON_WORDS,
    NOT_ALONE,
    NOT_ENTITIES,
    ORGANISATION_ENDS,
    PLACE_ENDS,
    PLACE_STARTS,
    TITLES,
    Language,
    is_common_word,
    known_names,
    load_language,
    stop_words,
    word_set,
)
from memctl.records import EntityMention, SourceText
from memctl.understanding.text_outline import Line

MAX_ENTITIES = 40
_SCANNED = 400_000

_CAPITAL = f"[{''.join(filter(str.isupper, map(chr, range(0x530))))}]"
"""Capital letters of the Latin, Greek, Cyrillic and Armenian scripts."""

_NAME_WORD = rf"(?:{_CAPITAL}[\w'’]*(?:-[\w'’]+)*|{_CAPITAL}\.(?:{_CAPITAL}\.)*)"
_NAMES = re.compile(
    rf"(?<![\w@#/.\-]){_NAME_WORD}\.?"
    rf"(?: (?:& |(?:(?:of|de|da|di|van|von|der|den|del|dei|la|le|du|bin|al|of the) ){{0,2}})"
    rf"(?:{_NAME_WORD}\.?|\d{{1,4}}\b(?![:.,/%]\d)))*"
)
_CAPITALISED = re.compile(rf"(?<![\w'’]){_CAPITAL}[\w'’]*")
_CAPITAL_AND_SMALL = re.compile(rf"(?<![\w'’]){_CAPITAL}[^\W\d_A-Z]")
_ASCII_CAPITALISED = re.compile(r"[A-Z][\w']*")
_SMALL_WORDS = re.compile(r"(?<![\w@#/.\-'’])[^\W\d_][\w'’]{3,}(?![\w@]|[-/.]\w)")
_HANDLES = re.compile(
    r"(?P<url>https?://[^\s<>\"'`)\]}]+|www\.[^\s<>\"'`)\]}]+)"
    r"|(?P<email>(?<![\w.+<-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<handle>(?<![\w@/.])@[A-Za-z_]\w{1,29}\b(?!\.\w|@))"
    r"|`(?P<code>[^`\n]{2,40})`"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*(?:\(\))?")
_INITIALS = re.compile(r"(?:[A-Z]\.)+$")
_LAST_INITIAL = re.compile(rf" {_CAPITAL}\.$")
_SAINTS = frozenset({"St", "Saint", "Sankt"})
_FIRM_ENDS = ORGANISATION_ENDS | word_set(
    "Associates Bros Brothers Cie Daughters Fils Gebrüder Partner Sohn Sons Söhne Zonen"
)
"""Words that end the name of a company after "&", which otherwise stands between two names."""
_ENDS_OF_PEOPLE = word_set("Castle Hill Hills Lake Lane Park")
"""Words that end names of places and are family names as well: Captain Hill, but Bishop Street."""
_STREETS = word_set("Via Viale Rue Calle Avenue Avenida Rua Corso Piazza Place Plaza")
_STREET_END = re.compile(r"(?<=\w{3})(?:stra(?:ss|ß)e|gasse|weg|platz|allee|straat|gatan)$")
"""Ends the name of a street in one word, and begins one of several."""
_FILE_NAME = re.compile(r"\S+\.\w{2,5}")
_POSSESSIVE = re.compile(r"['’]s$|['’]$")
_PLACE_BEFORE = re.compile(
    r"\b(?:live[sd]?|living|moved?|moving|born|grew up|travel(?:s|led|ling)?|fl(?:y|ies|ew|ying)|"
    r"trip|drive|drove|based|offices?|arrived?|stay(?:s|ed|ing)?|went|going|visit(?:s|ed|ing)?) "
    r"(?:back |over |down |up )?(?:(?:in|to|at|near|from) )?$",
    re.IGNORECASE,
)
_ORGANISATION_BEFORE = re.compile(
    r"\b(?:work(?:s|ed|ing)? (?:at|for)|job at|employed by|founded|CEO of|joined) (?:the )?$",
    re.IGNORECASE,
)
_ADJECTIVE = re.compile(r"(?:[^s]ian|[ai]ese|(?<=..)ish|can|ern)s?$")
"""Endings of single capitalised words that tell where something is from, such as Brazilian."""
_ZONE = re.compile(r"\b(?:Africa|America|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[A-Z]\w+\b")
_OFFICES = frozenset({"CEO", "CTO", "CFO", "COO"})
_NOTED = word_set(
    "asked borrowed bought called delivered emailed found gave got met paid phoned picked rang saw"
    " see sent showed sold spoke texted thanked told took visit visited went wrote"
)
"""What notes begin with instead of "I": Rang Dunmore."""
_NAMES_LIKE_STOP_WORDS = frozenset({"Will", "US", "WHO"})
_DIGIT = re.compile(r"\d")
_MIN_SHOUTED = 12
_CONTACT = "text/vcard"
_MARKS = " -*•"
"""What an item of a list begins with."""
_JOBS = re.compile(r"(?m)^(?:Job title|Role) of .*$")
_MAIL = ("message/rfc822", "application/mbox")
_MAX_LENGTH = 60


def extract_entities(
    source: SourceText, lines: Sequence[Line], language: str = "en"
) -> tuple[EntityMention, ...]:
    """Return what a document names, the most often named first.

    Args:
        source: The document.
        lines: Its sentences.
        language: ISO 639-1.
    """
    text = source.text[:_SCANNED]
    found = _Found()
    for line in lines:
        if line.speaker and not line.speaker.islower():
            found.add(line.speaker, "person")
    if "@" in text or "`" in text or "://" in text or "www." in text:
        _add_handles(_without_headers(source, text), found)
    for start, end, is_heading in _ranges(source, lines, len(text)):
        _add_names(text, (start, end), found, is_heading, language)
    return found.merged()


def with_small_names(
    entities: Sequence[EntityMention], text: str, lines: Sequence[Line]
) -> tuple[EntityMention, ...]:
    """Add the known names in lines of sentences that are written in small letters.

    Args:
        entities: What else the document names.
        text: The document, in English: other languages use too many names as words.
        lines: Its sentences.
    """
    found = _Found()
    for entity in entities:
        found.counts[entity.name], found.types[entity.name] = entity.count, entity.type
    written = (text[line.start : line.end] for line in lines)
    for part in (part for sentence in written for part in sentence.split("\n")):
        if _CAPITAL_AND_SMALL.search(part) is not None:
            continue
        for word in _SMALL_WORDS.findall(part):
            name = _POSSESSIVE.sub("", word).capitalize()
            if _is_known_in_small(name):
                found.add(name, "person" if name in known_names().given else "place")
    return found.merged()


def with_contact(
    entities: Sequence[EntityMention], source: SourceText
) -> tuple[EntityMention, ...]:
    """Add whom a contact is of, and whom they are with; leave out what only their job is called.

    Args:
        entities: What else the document names.
        source: The document.
    """
    if source.media_type != _CONTACT:
        return tuple(entities)
    rest = _JOBS.sub("", source.text)
    organisation = str(source.metadata.get("organisation", "")).partition(", ")[0]
    known = _known_name(source.title, is_first=False, language="") if source.title else None
    own = known[1] if known and known[1] != "other" else "person"
    stated = {source.title: own, organisation: "organization"}
    stated = {
        name: kind
        for name, kind in stated.items()
        if 0 < len(name) <= _MAX_LENGTH and not _FILE_NAME.fullmatch(name)
    }
    others = [
        each
        for each in entities
        if each.name in rest and not any(each.name in name for name in stated)
    ]
    counts = {name: source.text.count(name) for name in stated}
    added = [EntityMention(name, kind, counts[name] or 1) for name, kind in stated.items()]
    return (*added, *others)[:MAX_ENTITIES]


def without_zones(entities: Sequence[EntityMention], text: str) -> tuple[EntityMention, ...]:
    """Leave out what is named in time zones alone: nobody was in the Berlin of Europe/Berlin."""
    if not entities or "/" not in text:
        return tuple(entities)
    zones = {part for zone in _ZONE.findall(text) for part in zone.split("/")}
    if not zones:
        return tuple(entities)
    rest = _ZONE.sub(" ", text)
    return tuple(each for each in entities if each.name not in zones or each.name in rest)


def is_named(name: str, text: str) -> bool:
    """Return whether a text has a name as it is written or, if it is a known one, in small letters.

    Args:
        name: One of those that a document names.
        text: Some of the document.
    """
    if name.removesuffix(".") in text:
        return True
    small = name.lower()
    if small not in text or not _is_known_in_small(name):
        return False
    return any(_POSSESSIVE.sub("", word) == small for word in _SMALL_WORDS.findall(text))


def _is_known_in_small(name: str) -> bool:
    known = known_names()
    is_given = name in known.given and name not in known.given_also_words
    return is_given or name in known.places


class _Found:
    """Names with their types and counts, and those in doubt until something speaks for them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.doubtful: dict[str, int] = {}

    def add(self, name: str, type_: str, *, certain: bool = True) -> None:
        """Count a name; one in doubt counts only if it is also found without doubt."""
        if not certain:
            self.doubtful[name] = self.doubtful.get(name, 0) + 1
            return
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.types.get(name, "other") == "other":
            self.types[name] = type_

    def merged(self) -> tuple[EntityMention, ...]:
        """Return the names, most mentioned first; a first name counts for the whole one."""
        if not self.counts:
            return ()
        for name, count in self.doubtful.items():
            if name in self.counts:
                self.counts[name] += count
        for shorten in (_without_dot, _with_initial, _first_and_last):
            self._merge_short_forms(shorten)
        ranked = sorted(self.counts.items(), key=lambda pair: -pair[1])
        return tuple(
            EntityMention(name, self.types[name], count) for name, count in ranked[:MAX_ENTITIES]
        )

    def _merge_short_forms(self, shorten: Callable[[str], Iterable[str]]) -> None:
        """Count a short form for a person's name where that is the only one that it can mean."""
        fuller: dict[str, list[str]] = {}
        for name in self.counts:
            if self.types[name] == "person" and " " in name:
                for short in shorten(name):
                    fuller.setdefault(short, []).append(name)
        for short, names in fuller.items():
            if (
                len(names) == 1
                and short in self.counts
                and self.types[short] in ("person", "other")
            ):
                self.counts[names[0]] += self.counts.pop(short)


def _without_dot(name: str) -> Iterable[str]:
    """Ann L for Ann L."""
    return (name.removesuffix("."),) if _LAST_INITIAL.search(name) else ()


def _with_initial(name: str) -> Iterable[str]:
    """Ann L. for Ann Lee."""
    first, last = name.split()[0], name.split()[-1]
    return (f"{first} {last[0]}.", f"{first} {last[0]}") if len(last.rstrip(".")) > 1 else ()


def _first_and_last(name: str) -> Iterable[str]:
    """Ann and Lee for Ann Lee."""
    return name.split()[0], name.split()[-1]


def _ranges(
    source: SourceText, lines: Sequence[Line], limit: int
) -> Iterator[tuple[int, int, bool]]:
    for line in lines:
        if line.end <= limit:
            yield line.start, line.end, line.kind == "heading" or source.text[line.start] == "#"
    for segment in source.segments:
        if segment.kind in ("table", "properties") and segment.end <= limit:
            yield segment.start, segment.end, False


def _without_headers(source: SourceText, text: str) -> str:
    """Return what a mail says without the addresses that it is from and to."""
    if source.media_type not in _MAIL:
        return text
    spans = [(part.start, part.end) for part in source.segments if part.kind == "properties"]
    for start, end in reversed(spans):
        text = f"{text[:start]}\n{text[end:]}"
    return text


def _add_handles(text: str, found: _Found) -> None:
    for match in _HANDLES.finditer(text):
        kind = match.lastgroup or ""
        name = match[kind].rstrip(".,;:!?")
        if kind == "handle" and tag_name(name[1:]) != name[1:]:  # a tag, with the other sign
            continue
        if kind == "code" and not _IDENTIFIER.fullmatch(name):
            continue
        found.add(name.removesuffix("()"), "identifier" if kind == "code" else kind)


def _add_names(
    text: str, span: tuple[int, int], found: _Found, is_heading: bool, language: str
) -> None:
    start, end = span
    sentence = text[start:end]
    capitals = (_ASCII_CAPITALISED if sentence.isascii() else _CAPITALISED).findall(sentence)
    if all(map(_names_nothing, capitals)) or _is_shouted(text, start, end, capitals):
        return
    for position, written in _runs(text, start, end, capitals):
        is_first = position == start or _is_first_word(text, position, start)
        known = _known_name(written, is_first, language)
        if known is None:
            continue
        name, type_, certain = known
        if type_ == "other" and position > start:
            type_ = _by_what_stands_before(text, position, written, name)
        is_doubtful = is_heading and type_ == "other" and not _has_inner_capital(name)
        found.add(name, type_, certain=certain and not is_doubtful)


def _runs(text: str, start: int, end: int, capitals: Sequence[str]) -> Iterable[tuple[int, str]]:
    """Where runs of capitalised words stand; often it is the first word of a sentence alone."""
    is_first_alone = len(capitals) == 1 and text.startswith(f"{capitals[0]} ", start)
    if is_first_alone and _DIGIT.search(text, start, end) is None:
        return [(start, capitals[0])]
    return [
        (match.start() + at, name)
        for match in _NAMES.finditer(text, start, end)
        for at, name in _whose(match.group())
    ]


def _whose(written: str) -> Iterable[tuple[int, str]]:
    """Part two names, and a person with a family name from what they are of, unlike Joan of Arc."""
    one, mark, two = written.partition(" & ")
    if mark and written.rstrip(".").rpartition(" ")[2] not in _FIRM_ENDS:
        return [*_whose(one), *((len(one) + len(mark) + at, name) for at, name in _whose(two))]
    person, of, other = written.partition(" of ")
    if of and " " in person and person.split()[0] in known_names().given:
        return [(0, person), (len(person) + len(of), other)]
    return [(0, written)]


def _is_shouted(text: str, start: int, end: int, capitals: Sequence[str]) -> bool:
    if sum(map(len, capitals)) <= _MIN_SHOUTED:
        return False
    sample = text[start : min(end, start + 80)]
    upper = sum(map(str.isupper, sample))
    return upper > _MIN_SHOUTED and upper > 2 * sum(map(str.islower, sample))


def _is_first_word(text: str, position: int, start: int) -> bool:
    """Return whether any word is capitalised here: after a mark, a sign or at the start."""
    before = text[max(start, position - 3) : position].rstrip(" ")
    if not before or not text[start:position].strip(_MARKS):
        return True
    return not (before[-1].isalnum() or before[-1] in ",;&'’-)")


def _by_what_stands_before(text: str, position: int, written: str, name: str) -> str:
    if not written.startswith(name):
        return "other"
    before = text[max(0, position - 24) : position]
    if _PLACE_BEFORE.search(before):
        return "place"
    return "organization" if _ORGANISATION_BEFORE.search(before) else "other"


@lru_cache(maxsize=50_000)
def _known_name(written: str, is_first: bool, language: str) -> tuple[str, str, bool] | None:
    """Name, type and certainty of a run of capitalised words; None where it names nothing."""
    words = _trim(_without_office(_up_to_owner(written.rstrip(".").split(" "))))
    words = _without_weak_start(words, load_language(language), is_first=is_first)
    if load_language(language).capitalises_nouns:
        words = _from_marked(words)
    if is_first and len(words) > 1 and words[0].lower() in _NOTED:
        words, is_first = _trim(words[1:]), False
    if is_first:
        words = _without_sentence_start(words)
    if not words or len(" ".join(words)) > _MAX_LENGTH:
        return None
    words = _without_amount(words)
    type_ = _type(words)
    name = _display(words)
    if not _is_name(words, name, type_):
        return None
    if type_ == "person" and len(words) > 1 and written.endswith(f" {words[-1]}."):
        name = f"{name}." if _LAST_INITIAL.search(f"{name}.") else name
    is_doubtful = (
        type_ == "other"
        or name in known_names().given_also_words
        or name.lower() in load_language(language).stop_words
    )
    return name, type_, not (is_first and len(words) == 1 and is_doubtful)


def is_marked(name: str) -> bool:
    """Return whether more than a capital speaks for a name: known, titled, or written as one."""
    return bool(_from_marked(name.split(" ")))


def _from_marked(words: list[str]) -> list[str]:
    """Cut off what stands before the first word that is no mere noun."""
    for number, word in enumerate(words):
        bare = word.rstrip(".")
        if bare in TITLES or _is_known(bare) or _has_inner_capital(bare):
            return words[number:]
    is_company = bool(words) and (words[-1] in ORGANISATION_ENDS or "&" in words)
    return words if is_company else []


def _without_amount(words: list[str]) -> list[str]:
    """Cut off a number after a first name, as in a row of a table: people have none."""
    is_amount = len(words) == 2 and words[1].isdigit() and words[0] in known_names().given
    return words[:1] if is_amount else words


def _has_inner_capital(name: str) -> bool:
    return any(map(str.isupper, name.partition(" ")[0][1:]))


def _up_to_owner(words: list[str]) -> list[str]:
    """Stop after a person or place that owns what follows: "Priya's Laptop" names Priya."""
    for number, word in enumerate(words):
        owner = _POSSESSIVE.sub("", word)
        if owner != word and _is_known(owner) and not _is_saint(words[:number]):
            return [*words[:number], owner]
    return words


def _is_saint(before: Sequence[str]) -> bool:
    """Return whether the words before one make it a saint's name: "St Mary's" is a place."""
    return bool(before) and before[-1].rstrip(".") in _SAINTS


def _without_office(words: list[str]) -> list[str]:
    """Cut off an office: "CEO of Acme" and "Acme's CEO" name Acme."""
    if len(words) > 2 and words[0] in _OFFICES and words[1] == "of":
        return words[2:]
    is_owner = len(words) > 1 and words[-1] in _OFFICES and _POSSESSIVE.search(words[-2])
    return words[:-1] if is_owner else words


def _trim(words: list[str]) -> list[str]:
    """Cut what names nothing off both ends."""
    while words and (_names_nothing(words[0]) or words[0].isdigit() or words[0].islower()):
        words = words[1:]
    while words and (_names_nothing(words[-1]) or words[-1].islower() or _is_year(words[-1])):
        words = words[:-1]
    return words


def _without_weak_start(words: list[str], language: Language, *, is_first: bool) -> list[str]:
    """Cut off a greeting, and a stop word at the start of a sentence: "Bonjour", "Entre"."""
    dropped = language.weak_words | language.stop_words if is_first else language.weak_words
    start = next(
        (at for at, word in enumerate(words) if word in TITLES or word.lower() not in dropped),
        len(words),
    )
    return _trim(words[start:]) if 0 < start < len(words) else words


def _without_sentence_start(words: list[str]) -> list[str]:
    """Cut off the first word of a sentence where it may be any word."""
    first = words[0] if words else ""
    if len(words) < 2 or _is_known(first) or first.rstrip(".") in TITLES:
        return words
    if words[1].rstrip(".") in TITLES or words[1] in known_names().given:
        return words[1:] if is_common_word(first) or first.endswith("ly") else words
    if words[1][0].isdigit():
        return [] if first.lower() in COMMON_WORDS else words
    if first.isupper() or first in PLACE_STARTS:
        return words
    if words[1].islower() or first.endswith(("ing", "ed", "ly")):
        return _trim(words[1:])
    return words


def names_nothing(name: str) -> bool:
    """Return whether all words of a name are none wherever they stand: Sun, Dutch."""
    return all(map(_names_nothing, name.split(" ")))


@lru_cache(maxsize=50_000)
def _names_nothing(word: str) -> bool:
    """Return whether a capitalised word is no name, nor part of one, wherever it stands."""
    plain = word.rstrip(".").lower().replace("’", "'")
    first, hyphen, last = plain.partition("-")
    if hyphen and first in NOT_ENTITIES and last in NOT_ENTITIES:
        return True
    if plain in NOT_ENTITIES and word.rstrip(".") not in TITLES:
        return True
    if _POSSESSIVE.sub("", plain) in NOT_ENTITIES and plain not in ("mr", "mrs", "ms", "dr"):
        return word.rstrip(".") not in TITLES
    return word not in _NAMES_LIKE_STOP_WORDS and plain in stop_words("en")


def _is_known(word: str) -> bool:
    return word in known_names().given or word in known_names().places


def _type(words: list[str]) -> str:
    known = known_names()
    first, last = words[0].rstrip("."), words[-1].rstrip(".")
    if first in TITLES and len(words) > 1:
        if last in PLACE_ENDS - _ENDS_OF_PEOPLE and first not in BARE_TITLES:
            return "place"
        return "other" if "of" in words else "person"
    if len(words) > 1 and " ".join(words) in known.places:
        return "place"
    if "&" in words or (len(words) > 1 and last in ORGANISATION_ENDS | {"Estates"}):
        return "organization"
    if first in ("University", "Bank", "Ministry", "Department", "Institute") and "of" in words:
        return "organization"
    if (
        (len(words) > 1 and last in PLACE_ENDS)
        or words[-1] in known.places
        or first in known.places
    ):
        return "person" if first in known.given and len(words) > 1 else "place"
    if len(words) == 2 and first in PLACE_STARTS and not is_common_word(words[1]):
        return "place"
    if first in known.given or (len(words) > 1 and _INITIALS.match(words[0])):
        return "other" if last.isdigit() else "person"
    if len(words) > 1 and last.isdigit() and _is_street(words[:-1]):
        return "place"
    if len(words) > 1 and (last.isdigit() or _has_digit(last)):
        return "product"
    return "product" if _has_digit(first) and first[0].isupper() and len(first) > 2 else "other"


def _is_street(words: Sequence[str]) -> bool:
    """Return whether what stands before a number is the name of a street."""
    return words[0] in _STREETS or words[-1] in PLACE_ENDS or bool(_STREET_END.search(words[-1]))


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and word[:2] in ("18", "19", "20")


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _display(words: list[str]) -> str:
    if len(words) == 2 and _is_saint(words[:1]):
        return " ".join(words)
    return " ".join([*words[:-1], _POSSESSIVE.sub("", words[-1])]).rstrip(".")


def _is_name(words: list[str], name: str, type_: str) -> bool:
    if len(name) < 2 or name.rstrip(".") in TITLES:
        return False
    if words[0].lower() in NOT_ALONE and (len(words) == 1 or words[1][0].isdigit()):
        return False
    return len(words) > 1 or _is_single_name(name, type_)


def _is_single_name(name: str, type_: str) -> bool:
    if type_ != "other":
        return name not in BARE_TITLES
    if name.isupper():
        return 2 <= len(name) <= 5 and name.isalpha()
    is_word = is_common_word(name) or _ADJECTIVE.search(name.lower())
    return len(name) > 2 and name.isalpha() and not is_word
