"""Content lines, which calendars and contacts are made of: ``NAME;PARAMETER=...:value``.

See RFC 5545 and RFC 6350; vCard 2.1 adds values in quoted-printable.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from memctl.files import read_regular
from memctl.readers.pieces import storable_text
from memctl.readers.reader_errors import check_size
from memctl.readers.text_files.decoding import decode

MAX_BYTES = 200 << 20

_LINE = re.compile(r"(?:([\w-]+)\.)?([A-Za-z][\w-]*)((?:;(?:[^:;\"]|\"[^\"]*\")*)*):(.*)", re.S)
_PARAMETER = re.compile(r";((?:[^:;\"]|\"[^\"]*\")*)")
_ESCAPE = re.compile(r"\\(.)", re.S)


class Property(Struct, frozen=True):
    """One line: its name in capitals, its parameters and its value as it stands there."""

    name: str
    value: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    """Properties of one group belong together."""

    @property
    def text(self) -> str:
        """The value without escapes."""
        return unescape(self.value).strip()

    @property
    def fields(self) -> list[str]:
        """The parts of a structured value, without escapes."""
        return [unescape(part).strip() for part in re.split(r"(?<!\\);", self.value)]

    @property
    def items(self) -> list[str]:
        """The items of a list, without escapes and empty ones."""
        found = (unescape(part).strip() for part in re.split(r"(?<!\\),", self.value))
        return [item for item in found if item]

    @property
    def types(self) -> list[str]:
        """What kinds of the thing it is, in lower case."""
        return [
            word for word in re.split(r"[,\s]+", self.parameters.get("TYPE", "").lower()) if word
        ]


class Component(Struct, dict=True):
    """What stands between ``BEGIN:NAME`` and its ``END``, without the components in it."""

    name: str
    line: int
    lines: list[str] = field(default_factory=list)
    is_complete: bool = False
    """Whether its end was there."""

    @cached_property
    def properties(self) -> list[Property]:
        """What its lines say, in their order."""
        return list(_properties(self.lines))

    @property
    def raw(self) -> str:
        """Its lines as they stand there."""
        return "".join(f"{line}\n" for line in self.lines)

    def first(self, *names: str) -> Property | None:
        """The first property of one of some names, in the order of the names."""
        return next((p for name in names for p in self.properties if p.name == name), None)

    def text(self, name: str) -> str:
        """The value of the first property of a name; empty where there is none."""
        found = self.first(name)
        return found.text if found else ""

    def all(self, name: str) -> list[Property]:
        """The properties of a name."""
        return [each for each in self.properties if each.name == name]


def unescape(value: str) -> str:
    """A value without backslashes."""
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def components(path: Path, name: str, names: tuple[str, ...]) -> Iterator[Component]:
    """Yield the components of some names in a file; one that is cut off is not complete.

    Raises:
        UnreadableSource: The file is too big.
    """
    check_size(path, name, MAX_BYTES)
    current: Component | None = None
    within: list[str] = []
    """Components in the current one that are open, such as alarms."""
    for number, line in _unfold(storable_text(decode(read_regular(path)))):
        keyword, _, value = line.partition(":")
        keyword, value = keyword.strip().upper(), value.strip().upper()
        if keyword == "BEGIN" and value in names:
            if current is not None:
                yield current
            current, within = Component(value, number), []
        elif current is None:
            continue
        elif keyword == "BEGIN":
            within.append(value)
        elif keyword == "END" and value == current.name:
            current.is_complete = True
            yield current
            current = None
        elif keyword == "END" and within:
            within.pop()
        elif keyword == "END":
            yield current  # what it stands in ends before it does
            current = None
        elif not within:
            current.lines.append(line)
    if current is not None:
        yield current


def _unfold(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines, each with the number of its first line in the file."""
    parts: list[str] = []
    begin = 0
    is_quoted = False
    for number, line in enumerate(text.split("\n"), start=1):
        if is_quoted and parts[-1].endswith("="):
            parts[-1:] = filter(None, (parts[-1][:-1], line))
        elif parts and line[:1] in (" ", "\t"):
            parts += filter(None, [line[1:]])
        else:
            if parts:
                yield begin, "".join(parts)
            parts, begin = [line] if line else [], number
            is_quoted = "QUOTED-PRINTABLE" in line.partition(":")[0].upper()
    if parts:
        yield begin, "".join(parts)


def _properties(lines: Iterable[str]) -> Iterator[Property]:
    """Yield the properties of lines; a line that is none goes on with the value before it."""
    found: re.Match[str] | None = None
    further: list[str] = []
    for line in lines:
        if match := _LINE.fullmatch(line):
            if found:
                yield _property(found, further)
            found, further = match, []
        elif line.strip():
            further.append(line)
    if found:
        yield _property(found, further)


def _property(match: re.Match[str], further: list[str]) -> Property:
    parameters = _parameters(match[3])
    value = match[4]
    if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
        raw = quopri.decodestring(value.encode("utf-8", "replace"))
        value = decode(raw, declared=parameters.get("CHARSET", "")).replace("\n", "\\n")
    value = "\\n".join([value, *further])
    return Property(match[2].upper(), value, parameters, match[1] or "")


def _parameters(text: str) -> dict[str, str]:
    """Parameters by name; vCard 2.1 writes types and encodings without one."""
    found: dict[str, str] = {}
    for part in _PARAMETER.findall(text):
        name, sign, value = part.partition("=")
        name, value = name.strip().upper(), value.strip().strip('"')
        if not sign:
            name, value = ("ENCODING" if name in ("QUOTED-PRINTABLE", "BASE64") else "TYPE"), name
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
