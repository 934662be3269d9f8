"""Calendars: one document for each event or task, its recurrence in words and never expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from memctl.readers.content_lines import Component, Property, components
from memctl.readers.document_properties import parse_date
from memctl.readers.file_names import clean_title, title_from_name
from memctl.readers.pieces import Piece, assemble, new_document
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.readers.units import UnitKeys, broken
from memctl.records import SourceText, Unit

_WANTED = ("VEVENT", "VTODO", "VJOURNAL")
_KINDS = {"VEVENT": "event", "VTODO": "task", "VJOURNAL": "journal entry"}
_CANCELLED = "cancelled"
"""The status of what does not take place, which its text says first: it is quoted line by line."""
_MAX_DATES = 10
"""At most this many exceptions of a recurrence are named."""

Moment = date | datetime


class _NoDate(ValueError):
    """A value that is no date."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the events and tasks of a calendar; one that cannot be read says why."""
    keys = UnitKeys()
    for event in components(path, name, _WANTED):
        own = " ".join(filter(None, (event.text("UID"), event.text("RECURRENCE-ID"))))
        key = keys.new(own if event.text("UID") else "", event.raw)
        where = f"{_KINDS[event.name]} from line {event.line:,} on"
        if not event.is_complete:
            yield broken(key, f"{where}: its end is missing", "export the calendar again")
            continue
        try:
            head, pieces = _head(event, name), list(_pieces(event))
        except _NoDate as error:
            yield broken(key, f"{where}: {error}", "correct it in the calendar it comes from")
            continue
        for text in assemble(head, pieces):
            yield replace(text, unit=Unit(key))


def _head(event: Component, name: str) -> SourceText:
    start, end = _start(event), _end(event)
    organiser = event.first("ORGANIZER")
    metadata: dict[str, Any] = {
        "uid": event.text("UID"),
        "kind": _KINDS[event.name],
        "start": start.isoformat() if start else "",
        "end": end.isoformat() if end else "",
        "place": event.text("LOCATION"),
        "attendees": [_person(each) for each in event.all("ATTENDEE")],
        "status": event.text("STATUS").lower(),
        "recurrence": event.text("RRULE"),
        "written": written.isoformat() if (written := _written(event)) else "",
    }
    return new_document(
        title=clean_title(event.text("SUMMARY")) or title_from_name(name),
        authors=(_person(organiser),) if organiser else (),
        created_at=parse_date(start or _stamp(event)),
        tags=tuple(tag for each in event.all("CATEGORIES") for tag in each.items),
        metadata={key: value for key, value in metadata.items() if value},
    )


def _pieces(event: Component) -> Iterator[Piece]:
    """Lines that each say what they are of, for they are quoted one by one."""
    title = " ".join(event.text("SUMMARY").split()) or f"An {_KINDS[event.name]} without a title"
    place = " ".join(event.text("LOCATION").split())
    said = ", ".join(filter(None, (_when(event), f"at {place}" if place else "")))
    organiser, due = event.first("ORGANIZER"), _moment(event.first("DUE"))
    due_at = _moment_text(due, event.first("DUE")) if due else ""
    rule, status = _recurrence(event), event.text("STATUS").lower()
    people = [_attendee(each) for each in event.all("ATTENDEE")]
    what: tuple[str, ...]
    if is_cancelled := status == _CANCELLED:
        plans = (
            f"it was to be {said}" if said else "",
            f"it was due {due_at}" if due_at else "",
            f"it was to take place {rule}" if rule else "",
        )
        what = ("; ".join(filter(None, (f"{title} was cancelled", *plans))) + ".",)
    else:
        what = (
            f"{title} is {said}." if said else f"{title}.",
            f"{title} is due {due_at}." if due_at else "",
            f"{title} takes place {rule}." if rule else "",
        )
    lines = (
        *what,
        f"{title} is organised by {_person(organiser)}." if organiser else "",
        f"Attendees of {title}: {_list_items(people, len(people))}." if people else "",
        f"Status of {title}: {status}." if status and not is_cancelled else "",
        f"Link of {title}: {event.text('URL')}" if event.text("URL") else "",
    )
    yield Piece("".join(f"{line}\n" for line in lines if line) + "\n")
    comments = [each.text for each in event.all("COMMENT")]
    for text in filter(None, (event.text("DESCRIPTION"), *comments)):
        yield from prose_pieces(f"{text}\n\n")


# --- people ---------------------------------------------------------------------------------------


def _person(property_: Property) -> str:
    """A name where there is one, else the address."""
    address = re.sub(r"^mailto:", "", property_.text, flags=re.I)
    return property_.parameters.get("CN", "").strip() or address


def _attendee(property_: Property) -> str:
    answer = property_.parameters.get("PARTSTAT", "").lower().replace("-", " ")
    return f"{_person(property_)} ({answer})" if answer else _person(property_)


# --- times ----------------------------------------------------------------------------------------


def _start(event: Component) -> Moment | None:
    return _moment(event.first("DTSTART"))


def _end(event: Component) -> Moment | None:
    """When it ends; of whole days the last one."""
    start, end = _start(event), _moment(event.first("DTEND"))
    if end is None and start is not None and (length := event.text("DURATION")):
        end = start + _duration(length)
    if end is not None and not isinstance(end, datetime) and start is not None:
        return max(start, end - timedelta(days=1)) if event.text("DTEND") else end
    return end


def _written(event: Component) -> Moment | None:
    """When somebody wrote it or changed it last; many programs stamp it with the day of export."""
    return _moment(event.first("LAST-MODIFIED", "CREATED", "DTSTAMP"))


def _stamp(event: Component) -> Moment | None:
    return _moment(event.first("CREATED", "DTSTAMP", "LAST-MODIFIED"))


def _moment(property_: Property | None) -> Moment | None:
    if property_ is None:
        return None
    value = property_.value.strip()
    found = re.fullmatch(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(\d\d)?(Z)?)?", value)
    try:
        if found is None:
            raise ValueError
        numbers = [int(number) for number in found.groups(default="0")[:6]]
        if found[4] is None:
            return date(*numbers[:3])
        zone = UTC if found[7] else _zone(property_)
        return datetime(*numbers, tzinfo=zone)  # type: ignore[misc,arg-type]
    except ValueError:
        raise _NoDate(f"its {property_.name} {value[:40]!r} is no date") from None


def _zone(property_: Property) -> ZoneInfo | None:
    """The zone that is named; None for one that only the calendar's own program knows."""
    name = property_.parameters.get("TZID", "").strip().lstrip("/")
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, KeyError, OSError):  # no zone has such a name, or no such file is there
        return None


_DURATION = re.compile(
    r"\+?P(?:(\d{1,5})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,7})H)?(?:(\d{1,8})M)?(?:(\d{1,9})S)?)?"
)


def _duration(length: str) -> timedelta:
    found = _DURATION.fullmatch(length.strip())
    if found is None:
        raise _NoDate(f"its DURATION {length[:40]!r} is no length of time")
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
    return timedelta(days, seconds, 0, 0, minutes, hours, weeks)


def _when(event: Component) -> str:
    """When it is, as people say it."""
    start, end = _start(event), _end(event)
    if start is None:
        return ""
    property_ = event.first("DTSTART")
    first = _moment_text(start, property_)
    if end is None or end == start:
        return first
    if isinstance(start, datetime) and isinstance(end, datetime) and end.date() == start.date():
        return f"on {_day(start)}, from {start:%H:%M} to {end:%H:%M}{_zone_name(start, property_)}"
    last = _moment_text(end, event.first("DTEND") or property_)
    return f"from {first.removeprefix('on ')} to {last.removeprefix('on ')}"


def _moment_text(moment: Moment, property_: Property | None) -> str:
    if not isinstance(moment, datetime):
        return f"on {_day(moment)}"
    return f"on {_day(moment)}, at {moment:%H:%M}{_zone_name(moment, property_)}"


def _day(moment: Moment) -> str:
    return f"{moment:%A}, {moment.day} {moment:%B} {moment.year}"


def _zone_name(moment: datetime, property_: Property | None) -> str:
    name = property_.parameters.get("TZID", "") if property_ else ""
    return f" ({name})" if name else " (UTC)" if moment.tzinfo is UTC else ""


# --- recurrence -----------------------------------------------------------------------------------

_UNITS = {
    "SECONDLY": "second", "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day",
    "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year",
}  # fmt: skip
_DAYS = {
    "MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday",
    "SA": "Saturday", "SU": "Sunday",
}  # fmt: skip
_ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "-1": "last",
             "-2": "last but one"}  # fmt: skip
_RULE_PARTS = (
    "FREQ",
    "INTERVAL",
    "BYDAY",
    "BYMONTHDAY",
    "BYMONTH",
    "BYSETPOS",
    "COUNT",
    "UNTIL",
    "WKST",
)


def _recurrence(event: Component) -> str:
    """How an event recurs, in words; what has none here is quoted as it stands."""
    parts = [_rule(each.value) for each in event.all("RRULE")]
    also = [day for each in event.all("RDATE") for day in _days(each)]
    but = [day for each in event.all("EXDATE") for day in _days(each)]
    parts += [f"also on {_list_items(also)}"] if also else []
    parts += [f"not on {_list_items(but)}"] if but else []
    return "; ".join(filter(None, parts))


def _rule(rule: str) -> str:
    parts = {
        name.strip().upper(): value.strip().upper()
        for name, _, value in (part.partition("=") for part in rule.split(";"))
    }
    unit = _UNITS.get(parts.get("FREQ", ""))
    if unit is None:
        return rule.strip()
    interval = parts.get("INTERVAL", "1")
    text = f"every {unit}" if interval == "1" else f"every {interval} {unit}s"
    if days := [_day_of_rule(day, parts) for day in parts.get("BYDAY", "").split(",") if day]:
        text += f" on {_list_items(days)}"
    if numbers := [number for number in parts.get("BYMONTHDAY", "").split(",") if number]:
        last = ["the last day" if number == "-1" else f"day {number}" for number in numbers]
        text += f" on {_list_items(last)}"
    if months := [_month(number) for number in parts.get("BYMONTH", "").split(",") if number]:
        text += f" in {_list_items(months)}"
    if "COUNT" in parts:
        text += f", {parts['COUNT']} times"
    if "UNTIL" in parts:
        until = _moment(Property("UNTIL", parts["UNTIL"]))
        text += f", until {_day(until)}" if until else ""
    rest = [f"{name}={value}" for name, value in parts.items() if name and name not in _RULE_PARTS]
    return f"{text} ({'; '.join(rest)})" if rest else text


def _day_of_rule(day: str, parts: dict[str, str]) -> str:
    found = re.fullmatch(r"([+-]?\d+)?([A-Z]{2})", day)
    if found is None or found[2] not in _DAYS:
        return day
    number = (found[1] or parts.get("BYSETPOS", "")).lstrip("+")
    name = _DAYS[found[2]]
    return f"the {_ORDINALS.get(number, f'{number}.')} {name}" if number else name


def _month(number: str) -> str:
    is_month = number.isdecimal() and 1 <= int(number) <= 12
    return f"{date(2000, int(number), 1):%B}" if is_month else number


def _days(property_: Property) -> list[str]:
    found = [
        _moment(Property(property_.name, item, property_.parameters)) for item in property_.items
    ]
    return [_day(moment) for moment in found if moment]


def _list_items(items: list[str], most: int = _MAX_DATES) -> str:
    shown = items[:most]
    rest = len(items) - len(shown)
    shown += [f"{rest} more"] if rest else []
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
