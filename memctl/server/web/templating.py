"""Templates: how values are written on a page, so that nothing in them can act or mislead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from memctl.formatting import (
    escape_hidden,
    format_clock,
    format_count,
    format_duration,
    format_money,
    format_size,
)
from memctl.language.inline_tags import without_wikilinks
from memctl.records import shown_source_name
from memctl.understanding.sentence_reading import bare_statement


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("memctl.server.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    made.filters |= {
        "day": day,
        "moment": moment,
        "size": format_size,
        "count": format_count,
        "seconds": seconds,
        "money": format_money,
        "percent": percent,
        "clock": format_clock,
        "as_typed": as_typed,
        "file_name": file_name,
        "words": words,
        "statement": statement,
        "gist": gist,
        "unlinked": without_wikilinks,
        "segment": lambda value: quote(str(value), safe=""),
    }
    made.globals |= {"address": address}
    return made


def render(template: str, **values: Any) -> str:
    """Return a template with its values."""
    return _environment().get_template(template).render(values)


def address(path: str, **fields: Any) -> str:
    """Return an address with a query of the fields that are not empty."""
    given = {name: value for name, value in fields.items() if value not in (None, "", (), [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


# --- texts ----------------------------------------------------------------------------------------


def visible(value: Any) -> Any:
    """Return a text with control characters and overrides of its direction shown, not acted on."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return escape_hidden(value)


def as_typed(text: str) -> Markup:
    """Return a text for a field that is sent back: as it is, but for what HTML cannot hold."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else visible(c) for c in text))


def words(name: str) -> str:
    """Return an identifier as words: ``important_fact`` is ``important fact``."""
    return name.replace("_", " ")


def statement(row: Mapping[str, Any]) -> str:
    """Return the text of a memory beside a link to its document: without title, day and brackets.

    Args:
        row: The memory, with the title of its document.
    """
    text = str(row["text"])
    if row["level"] == "memory" and row["document_id"]:
        text = bare_statement(text, row["title"] or "")
    return without_wikilinks(text)


def gist(document: Mapping[str, Any]) -> str:
    """Return what a document comes to, without the title that stands above it."""
    return str(document["summary"]).removeprefix(f"{document['title']}: ")


def file_name(path: str) -> str:
    """Return the last part of a path; of a message in a mail box, the box's."""
    return shown_source_name(path) or path


# --- dates and numbers ----------------------------------------------------------------------------


def _instant(value: str) -> datetime:
    return datetime.fromisoformat(value)


def day(value: str | None) -> Markup:
    """Return the day of an instant: 3 April 2026."""
    return Markup("") if not value else _time(value, _day(_instant(value)))


def moment(value: str | None) -> Markup:
    """Return an instant to the minute, in local time; a midnight in UTC is a day."""
    if not value:
        return Markup("")
    at = _instant(value)
    if at.astimezone(UTC).strftime("%H%M%S") == "000000":
        return _time(value, _day(at.astimezone(UTC)))
    local = at.astimezone()
    return _time(value, f"{_day(local)}, {local:%H:%M}")


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _time(value: str, text: str) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(value, value, text)


def seconds(value: float | None) -> str:
    """Return a duration: 40 ms, 3.2 s, 4 min."""
    return "–" if value is None else format_duration(value)


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{share:.0%}"
