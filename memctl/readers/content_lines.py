"""Content lines, which calendars and contacts are made of: ``NAME;PARAMETER=...:value``.

See RFC 5545 and RFC 6350; vCard 2.1 adds values in quoted-printable.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Mapping
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


class Component(Struct):
    """What stands between ``BEGIN:NAME`` and its ``END``, without the components in it."""

    name: str
    line: int
    properties: list[Property] = field(default_factory=list)
    is_complete: bool = False
    """Whether its end was there."""
    raw: str = ""

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


def components(path: Path, name: str, wanted: tuple[str, ...]) -> Iterator[Component]:
    """Yield the components of some names in a file; one that is cut off is not complete.

    Raises:
        UnreadableSource: The file is too big.
    """
    check_size(path, name, MAX_BYTES)
    current: Component | None = None
    within: list[str] = []
    """Components in the current one that are open, such as alarms."""
    for number, line in _unfolded(storable_text(decode(read_regular(path)))):
        keyword, _, value = line.partition(":")
        keyword, value = keyword.strip().upper(), value.strip().upper()
        if keyword == "BEGIN" and value in wanted:
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
            current.raw += f"{line}\n"
            _add(current.properties, line)
    if current is not None:
        yield current


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines, each with the number of its first line in the file."""
    held, begin = "", 0
    is_quoted = False
    for number, line in enumerate(text.split("\n"), start=1):
        if is_quoted and held.endswith("="):
            held = held[:-1] + line
        elif held and line[:1] in (" ", "\t"):
            held += line[1:]
        else:
            if held:
                yield begin, held
            held, begin = line, number
            is_quoted = "QUOTED-PRINTABLE" in line.partition(":")[0].upper()
    if held:
        yield begin, held


def _add(properties: list[Property], line: str) -> None:
    """Add the property of a line; one that is none goes on with the value before it."""
    found = _LINE.fullmatch(line)
    if found is None:
        if properties and line.strip():
            last = properties.pop()
            value = f"{last.value}\\n{line}"
            properties.append(Property(last.name, value, last.parameters, last.group))
        return
    parameters = _parameters(found[3])
    value = found[4]
    if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
        raw = quopri.decodestring(value.encode("utf-8", "replace"))
        value = decode(raw, declared=parameters.get("CHARSET", "")).replace("\n", "\\n")
    properties.append(Property(found[2].upper(), value, parameters, found[1] or ""))


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
