"""What is looked for in texts, tables and bytes: a text as it stands, or a name as people write it.

A name is found in any case, with spaces, a hyphen, an underscore or a full stop between its words,
as in the address ``ann.lee@example.org``, or with its surname first: ``Lee, Ann``, ``LEE Ann``,
``de Vries, Jan``; and only where words begin and end.  With a comma it has capitals, and follows
no other word that has: ``Rose Lee, Ann and Bob`` are three people.  Of both, bytes may be UTF-8,
UTF-16 or escaped as in JSON.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from memctl.language.word_lists import word_set

MIN_PATTERN_BYTES = 5
"""What is shorter is not looked for byte by byte: vectors and packed tables have it by chance."""
LIST_SEPARATOR = "\0"
"""Stands between items of a list that are searched as one text: no name spans two of them."""
_GAP = r"(?:\.?(?:\s|%20)+|[._+-])"
_GAP_IN_TABLES = r"(?:\.?(?:[\s\pZ]|%20)+|[._+-])"
_GAP_IN_BYTES = rb"(?:\.?(?:\s|%20|\xc2\xa0)+|[._+-])"
_GAPS_IN_WIDE = {
    "utf-16-le": rb"(?:(?:\.\x00)?(?:\s\x00)+|[._+-]\x00)",
    "utf-16-be": rb"(?:(?:\x00\.)?(?:\x00\s)+|\x00[._+-])",
}
_COMMA = r"(?:\s|%20)*,(?:\s|%20)*"
_COMMA_IN_TABLES = r"(?:[\s\pZ]|%20)*,(?:[\s\pZ]|%20)*"
_COMMA_IN_BYTES = rb"(?:\s|%20|\xc2\xa0)*,(?:\s|%20|\xc2\xa0)*"
_COMMAS_IN_WIDE = {
    "utf-16-le": rb"(?:\s\x00)*,\x00(?:\s\x00)*",
    "utf-16-be": rb"(?:\x00\s)*\x00,(?:\x00\s)*",
}
_PARTICLES = word_set(
    "af al av bin da dal das de degli dei del della den der di do dos du la le ten ter van von zu"
)
"""Words before the last one of a name that belong to the surname."""
_LONGEST_FIRST_NAME, _LONGEST_HONORIFIC = 15, 3
_CAPITALS = "A-ZÀ-ÖØ-ÞĆČĐĞİŁŃŐŘŚŞŠŰŹŻŽΑ-ΩА-Я"
_AFTER_NAME = "".join(
    [rf"(?<!(?-i:[{_CAPITALS}])\w{{{n}}}[ \xa0-])" for n in range(_LONGEST_FIRST_NAME)]
    + [rf"(?<!(?-i:[{_CAPITALS}])\w{{{n}}}\.[ \xa0])" for n in range(_LONGEST_HONORIFIC)]
)
"""What fails after a word in capitals: the ``Rose`` of ``Rose Lee, Ann``."""
_AFTER_NO_NAME_IN_TABLES = (
    r"(?:^|[^\pL\pN\x{20}\x{a0}-]|(?:^|[^\pL\pN.])[\x{20}\x{a0}-]"
    r"|(?:^|[^\pL\pN])(?-i:[\p{Ll}\p{Lo}\pM\pN_]+)(?:[\x{a0}-]|\.?\x{20})|[\pL\pN]{4}\.\x{20})"
)
"""The same for the engine, which cannot look back: what stands before the name instead."""
_LETTER = rb"[A-Za-z\x80-\xff]"
_CAPITALS_IN_BYTES = (rb"(?-i:[A-Z])", rb"(?-i:\xc3[\x80-\x9e]|\xd0[\x90-\xaf])")
_AFTER_NAME_IN_BYTES = b"".join(
    b"(?<!%b%b{%d}%b)" % (capital, _LETTER, n, end)
    for capital in _CAPITALS_IN_BYTES
    for longest, end in ((_LONGEST_FIRST_NAME, rb"[ -]"), (_LONGEST_HONORIFIC, rb"\. "))
    for n in range(longest)
)
_WIDE_FORMS = {"utf-16-le": rb"%b\x00", "utf-16-be": rb"\x00%b"}
_AFTER_NAME_IN_WIDE = {
    kind: b"".join(
        b"(?<!%b(?:%b){%d}%b)"
        % (form % rb"(?-i:[A-Z\xc0-\xde])", form % _LETTER, n, b"".join(form % e for e in end))
        for longest, end in (
            (_LONGEST_FIRST_NAME, (rb"[ -]",)),
            (_LONGEST_HONORIFIC, (rb"\.", b" ")),
        )
        for n in range(longest)
    )
    for kind, form in _WIDE_FORMS.items()
}
_Encode = Callable[[Iterator[str]], list[bytes]]
_LONGEST_GAP = 64
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


class SearchPattern:
    """A text or a name that is looked for.

    Args:
        text: What.
        is_name: Whether it is a name.
    """

    def __init__(self, text: str, *, is_name: bool) -> None:
        self.is_name = is_name
        self._text = text
        self._words = text.split() if is_name else [text]
        self._forms = list(_forms(text))
        self._folded = list(dict.fromkeys(form.casefold() for form in self._forms))
        self.pattern = self._pattern()
        """Finds it in text; a name with its ends."""
        self._raw = self._raw_pattern() if is_name else None
        self._raw_forms = list(dict.fromkeys(_encode(self._forms)))
        self._raw_words = [
            [form.lower() for form in dict.fromkeys(_encode(_cases([word])))]
            for word in self._words
        ]
        self._written = list(dict.fromkeys(_encode(self._as_written()))) if is_name else []
        self._last_word = _encode(_with_capital(self._words[-1])) if is_name else []
        self._written_with_comma = self._written_pattern() if self._is_reversible else None

    @property
    def is_too_short(self) -> bool:
        """Whether it is not looked for byte by byte."""
        return len(self._text.encode("utf-8", "surrogatepass")) < MIN_PATTERN_BYTES

    @property
    def unmarked(self) -> SearchPattern:
        """The same without the mark of an item in a list, as summaries have their sentences."""
        bare = self._text.removeprefix("- ")
        return self if bare == self._text else SearchPattern(bare, is_name=self.is_name)

    @property
    def reach(self) -> int:
        """More bytes than it can take."""
        return 6 * len(self._text) + _LONGEST_GAP

    @property
    def in_tables(self) -> str:
        """What finds it in a column, as the engine's regular expressions are written."""
        if not self.is_name:
            return f"(?i){'|'.join(map(re.escape, self._forms))}"
        name = rf"(?:^|[^\pL\pN])(?:{'|'.join(self._orders(_GAP_IN_TABLES))})"
        if self._is_reversible:
            name += (
                f"|{_AFTER_NO_NAME_IN_TABLES}{self._with_comma(_GAP_IN_TABLES, _COMMA_IN_TABLES)}"
            )
        return rf"(?i)(?:{name})(?:$|[^\pL\pN])"

    def is_in(self, text: str) -> bool:
        """Return whether a text has it; one that is JSON may have it escaped."""
        read = _unescape(text)
        if self.is_name:
            return self.pattern.search(read) is not None
        folded = read.casefold()
        return any(form in folded for form in self._folded)

    def holds_any(self, others: Iterable[SearchPattern]) -> bool:
        """Return whether another one is a part of this."""
        return any(each is not self and each.is_in(self._text) for each in others)

    def is_in_bytes(self, content: bytes) -> bool:
        """Return whether bytes have it."""
        if self._raw is None:
            return any(form in content for form in self._raw_forms)
        lowered = content.lower()  # far faster than the pattern, which few pieces need then
        if not all(any(form in lowered for form in forms) for forms in self._raw_words):
            return False
        return self._raw.search(content) is not None

    def is_written_in(self, packed: bytes) -> bool:
        """Return whether the bytes of a table have it; other words may have the same stem."""
        if not self.is_name:
            return self.is_in_bytes(packed)
        if any(form in packed for form in self._written):
            return True
        pattern = self._written_with_comma
        if pattern is None or not any(form in packed for form in self._last_word):
            return False
        return pattern.search(packed) is not None

    # --- inside ---

    def _pattern(self) -> re.Pattern[str]:
        ends = (r"(?<![^\W_])", r"(?![^\W_])") if self.is_name else ("", "")
        orders = self._orders(_GAP)
        if self._is_reversible:
            with_comma = self._with_comma(_GAP, _COMMA)
            orders.append(f"(?={with_comma}){_AFTER_NAME}{with_comma}")
        return re.compile(f"{ends[0]}(?:{'|'.join(orders)}){ends[1]}", re.IGNORECASE)

    def _orders(self, gap: str) -> list[str]:
        """Return the expressions for the words as they are, and for a surname in capitals first."""
        orders = [gap.join(_any_of(_spellings(word)) for word in self._words)]
        if self._is_reversible:
            given, particles, last = self._parts
            capitals = [_any_of(_spellings(word)) for word in particles]
            capitals.append(f"(?-i:{_any_of(_forms(last.upper()))})")
            written = f"(?-i:{gap.join(_any_of(_forms(word)) for word in given)})"
            orders.append(gap.join((*capitals, written)))
        return orders

    def _with_comma(self, gap: str, comma: str) -> str:
        """Return the expression for the surname, a comma and the rest, each with a capital."""
        given, particles, last = self._parts
        first, small = (
            list(map(_capitalised, given)),
            [_any_of(_spellings(word)) for word in particles],
        )
        orders = [f"{gap.join((*small, _capitalised(last)))}{comma}{gap.join(first)}"]
        if small:
            orders.append(f"{_capitalised(last)}{comma}{gap.join((*first, *small))}")
        return f"(?:{'|'.join(orders)})"

    @property
    def _parts(self) -> tuple[list[str], list[str], str]:
        """The first names, the particles of the surname, and the last word."""
        *given, last = self._words
        start = len(given)
        while start > 1 and given[start - 1].casefold() in _PARTICLES:
            start -= 1
        return given[:start], given[start:], last

    @property
    def _is_reversible(self) -> bool:
        """Whether its last word may stand first."""
        return self.is_name and len(self._words) > 1

    def _as_written(self) -> Iterator[str]:
        """Yield the name as tables have it, as it is and with its surname first in capitals."""
        yield from _as_written(self._text)
        if self._is_reversible:
            given, particles, last = self._parts
            for small in dict.fromkeys((" ".join(particles), " ".join(particles).upper())):
                yield from _forms(f"{small} {last.upper()} {' '.join(given)}".lstrip())

    def _raw_pattern(self) -> re.Pattern[bytes]:
        return self._bytes_pattern(self._bytes_in_any_order)

    def _written_pattern(self) -> re.Pattern[bytes]:
        """Finds it with a comma in bytes of tables."""
        return self._bytes_pattern(self._bytes_with_comma)

    def _bytes_pattern(
        self, expression: Callable[[_Encode, bytes, bytes, bytes], bytes]
    ) -> re.Pattern[bytes]:
        """Return what finds an expression in bytes of every encoding."""
        narrow = expression(_as_utf8, _GAP_IN_BYTES, _COMMA_IN_BYTES, _AFTER_NAME_IN_BYTES)
        wide = (
            expression(
                partial(_as_wide_characters, kinds=(kind,)),
                gap,
                _COMMAS_IN_WIDE[kind],
                _AFTER_NAME_IN_WIDE[kind],
            )
            for kind, gap in _GAPS_IN_WIDE.items()
        )
        narrow = rb"(?<![A-Za-z0-9])" + narrow + rb"(?![A-Za-z0-9])"
        return re.compile(b"|".join((narrow, *wide)), re.IGNORECASE)

    def _bytes_in_any_order(
        self, encode: _Encode, gap: bytes, comma: bytes, after_name: bytes
    ) -> bytes:
        words = [_any_bytes(encode(_cases([word]))) for word in self._words]
        if not self._is_reversible:
            return gap.join(words)
        given, particles, last = self._parts
        capitals = [_any_bytes(encode(_cases([word]))) for word in particles]
        capitals.append(b"(?-i:" + _any_bytes(encode(_forms(last.upper()))) + b")")
        written = gap.join(_any_bytes(encode(_forms(word))) for word in given)
        orders = (
            gap.join(words),
            gap.join((*capitals, b"(?-i:" + written + b")")),
            self._bytes_with_comma(encode, gap, comma, after_name),
        )
        return b"(?:" + b"|".join(orders) + b")"

    def _bytes_with_comma(
        self, encode: _Encode, gap: bytes, comma: bytes, after_name: bytes
    ) -> bytes:
        given, particles, last = self._parts
        first = [b"(?-i:" + _any_bytes(encode(_with_capital(word))) + b")" for word in given]
        own = b"(?-i:" + _any_bytes(encode(_with_capital(last))) + b")"
        small = [_any_bytes(encode(_cases([word]))) for word in particles]
        orders = [gap.join((*small, own)) + comma + gap.join(first)]
        if small:
            orders.append(own + comma + gap.join((*first, *small)))
        with_comma = b"(?:" + b"|".join(orders) + b")"
        return b"(?=" + with_comma + b")" + after_name + with_comma


def _any_of(forms: Iterator[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, forms))})"


def _any_bytes(forms: list[bytes]) -> bytes:
    return b"(?:" + b"|".join(map(re.escape, forms)) + b")"


def _forms(text: str) -> Iterator[str]:
    """Yield a text with its accents in one letter and apart, as names of files on a Mac are."""
    yield from dict.fromkeys(
        (text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD")))
    )


def _spellings(word: str) -> Iterator[str]:
    """Yield a word of a name as it is, and as it is in capitals, where an ß is two letters."""
    yield from dict.fromkeys((*_forms(word), *_forms(word.upper())))


def _cases(words: list[str]) -> Iterator[str]:
    """Yield words in the cases that they are written in, with one space between them."""
    text = " ".join(words)
    titled = " ".join(word[:1].upper() + word[1:].lower() for word in words)
    for cased in dict.fromkeys((text, text.lower(), text.upper(), titled)):
        yield from _forms(cased)


def _capitalised(word: str) -> str:
    """Return the expression for a word that begins with a capital, or as it is: d'Artagnan."""
    if word != word.lower() and word[0] == word[0].lower():
        return _any_of(_spellings(word))
    begun = (
        f"(?-i:{re.escape(form[0].upper())}){_any_of(_spellings(form[1:]))}"
        for form in _forms(word)
    )
    return f"(?:{'|'.join(begun)})"


def _with_capital(word: str) -> Iterator[str]:
    """Yield the ways to write a word that is a name."""
    titled = word[:1].upper() + word[1:].lower()
    begun = word if word != word.lower() else titled
    for cased in dict.fromkeys((begun, titled, word.upper())):
        yield from _forms(cased)


def _as_written(text: str) -> Iterator[str]:
    """Yield a name in capitals or with them, as stems of words are not."""
    forms = list(_cases(text.split()))
    yield from [form for form in forms if form != form.lower()] or forms


def _as_utf8(forms: Iterator[str]) -> list[bytes]:
    found: dict[bytes, None] = {}
    for form in forms:
        plain = form.encode("utf-8", "surrogatepass")
        found |= dict.fromkeys((plain, json.dumps(form)[1:-1].encode()))
    return list(found)


def _as_wide_characters(
    forms: Iterator[str], kinds: Iterable[str] = tuple(_GAPS_IN_WIDE)
) -> list[bytes]:
    pairs = itertools.product(forms, kinds)
    return list(dict.fromkeys(form.encode(kind, "surrogatepass") for form, kind in pairs))


def _encode(forms: Iterator[str] | list[str]) -> list[bytes]:
    known = list(forms)
    return [*_as_utf8(iter(known)), *_as_wide_characters(iter(known))]


def _unescape(text: str) -> str:
    """Return a text with what JSON escapes as it is read."""
    return _ESCAPED.sub(lambda found: _read(found[0]), text) if "\\u" in text else text


def _read(escaped: str) -> str:
    units = [int(digits, 16) for digits in escaped.split("\\u")[1:]]
    raw = b"".join(unit.to_bytes(2, "little") for unit in units)
    return raw.decode("utf-16-le", "replace")
