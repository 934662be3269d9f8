"""Contacts: one document for each vCard of a file, of version 2.1, 3 or 4."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memctl.readers.content_lines import Component, Property, components
from memctl.readers.document_properties import parse_date
from memctl.readers.file_names import clean_title
from memctl.readers.pieces import Piece, assemble, new_document
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.readers.units import UnitKeys, broken
from memctl.records import SourceText, Unit

_LINES = {
    "NICKNAME": "Nickname", "TITLE": "Job title", "ROLE": "Role", "EMAIL": "E-mail address",
    "TEL": "Phone number",
    "ADR": "Address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "RELATED": "Related",
    "IMPP": "Messages", "URL": "Website", "LANG": "Language", "GENDER": "Gender", "TZ": "Time zone",
}  # fmt: skip
_NO_TYPES = frozenset(("pref", "internet", "voice", "x400", "uri", "text", "other"))
_LABEL = re.compile(r"_\$!<(.*)>!\$_")


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the contacts of a file; one that cannot be read says why."""
    keys = UnitKeys()
    for card in components(path, name, ("VCARD",)):
        who = _name(card)
        key = keys.new(card.text("UID") or who, card.raw)
        where = f"contact from line {card.line:,} on"
        if not card.is_complete:
            yield broken(key, f"{where}: its end is missing", "export the contacts again")
        elif not who:
            yield broken(key, f"{where}: it has no name", "give it a name where it comes from")
        else:
            for text in assemble(_head(card, who), _pieces(card, who)):
                yield replace(text, unit=Unit(key))


def _name(card: Component) -> str:
    """Whom it is of, by the best that it has."""
    if full := " ".join(card.text("FN").split()):
        return full
    if structured := card.first("N"):
        family, given, middle, prefix, suffix = (*structured.fields, "", "", "", "", "")[:5]
        if name := " ".join(filter(None, (prefix, given, middle, family, suffix))):
            return name
    found = card.first("ORG", "NICKNAME", "EMAIL", "TEL")
    return ", ".join(filter(None, found.fields)) if found else ""


def _head(card: Component, name: str) -> SourceText:
    metadata: dict[str, Any] = {
        "uid": card.text("UID"),
        "aliases": [item for each in card.all("NICKNAME") for item in each.items],
        "emails": [each.text for each in card.all("EMAIL")],
        "phones": [_without_scheme(each.text) for each in card.all("TEL")],
        "organisation": _organisation(card),
    }
    return new_document(
        title=clean_title(name),
        created_at=parse_date(card.text("REV")),
        tags=tuple(tag for each in card.all("CATEGORIES") for tag in each.items),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _pieces(card: Component, name: str) -> Iterator[Piece]:
    """Lines that each say whom they are of, for they are quoted one by one."""
    labels = {each.group: each.text for each in card.all("X-ABLABEL") if each.group}
    lines = [f"{name}\n"]
    if organisation := _organisation(card):
        lines.append(f"{name} is with {organisation}.\n")
    for each in card.properties:
        if (what := _LINES.get(each.name)) and (value := _value(each)):
            types = _types(each, labels)
            lines.append(f"{what} of {name}{f' ({types})' if types else ''}: {value}\n")
    yield Piece("".join(lines) + "\n")
    for note in card.all("NOTE"):
        yield from prose_pieces(f"{note.text}\n\n")


def _organisation(card: Component) -> str:
    found = card.first("ORG")
    return ", ".join(filter(None, found.fields)) if found else ""


def _value(property_: Property) -> str:
    if property_.name == "ADR":
        return ", ".join(" ".join(part.split()) for part in property_.fields if part.strip())
    if property_.name in ("BDAY", "ANNIVERSARY"):
        return _date(property_.text)
    return _without_scheme(" ".join(property_.text.split()))


def _date(value: str) -> str:
    """A date as ISO 8601 has it, a year that is not known left out."""
    found = re.match(r"(\d{4}|--)-?(\d\d)-?(\d\d)", value)
    if found is None:
        return value
    year = "" if found[1] == "--" else f"{found[1]}-"
    return f"{year}{found[2]}-{found[3]}"


def _without_scheme(value: str) -> str:
    return re.sub(r"^(?:tel|mailto|xmpp|sip):", "", value, flags=re.I)


def _types(property_: Property, labels: dict[str, str]) -> str:
    if label := labels.get(property_.group):
        found = _LABEL.fullmatch(label)
        return (found[1] if found else label).lower()
    words = [word for word in property_.types if word not in _NO_TYPES]
    return ", ".join("mobile" if word == "cell" else word for word in words)
