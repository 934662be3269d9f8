"""Text made safe for a terminal, and what is stored described on one line."""

from __future__ import annotations

import inspect
import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.formatting import escape_hidden, format_clock, is_hidden

if TYPE_CHECKING:
    from memctl.graph.graph_views import Step
    from memctl.memories.memory_views import Evidence
    from memctl.records import Citation, DuplicateHit, Hit

_NON_ASCII = re.compile("[^\x00-\x7e]")


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that is safe on a terminal: what could steer it is ``\\u`` escaped.

    Letters of every language stay as they are, and a JSON parser gets the same value.
    """
    return json_safe(json.dumps(value, ensure_ascii=False, indent=indent))


def json_safe(text: str) -> str:
    """Return JSON with the characters escaped, as JSON does it, that escape_hidden escapes."""
    return _NON_ASCII.sub(
        lambda found: json.dumps(found[0])[1:-1] if is_hidden(found[0]) else found[0], text
    )


def one_line(text: str, width: int = 0) -> str:
    """Return ``text`` safe and on one line, cut to ``width`` characters where that is above 0."""
    line = escape_hidden(" ".join(text.split()))
    return line if width <= 0 or len(line) <= width else f"{line[: width - 1].rstrip()}…"


def shortened(text: str, width: int) -> str:
    """Return a name safe and on one line, cut in its middle to ``width`` characters.

    Names of documents that belong together begin alike and end in a number, a date or a kind.
    """
    line, tail = one_line(text), width // 3
    if len(line) <= width:
        return line
    return f"{line[: width - tail - 1].rstrip()}…{line[-tail:].lstrip()}"


def format_moment(instant: datetime | None) -> str:
    """Return an instant in local time to the minute, a midnight as its day; empty for None."""
    if instant is None:
        return ""
    if instant.hour == instant.minute == instant.second == 0:
        return f"{instant:%Y-%m-%d}"
    return f"{instant.astimezone():%Y-%m-%d %H:%M}"


def short_id(id_: str) -> str:
    """Return the beginning of an id, enough to name it by; a part's id has to be whole."""
    return id_ if "." in id_ else id_[:10]


def format_score(score: float | None) -> str:
    """Return a score, to two digits; empty for None."""
    return "" if score is None else f"{score:.2f}"


_LONGEST_NAME = 60


def describe_location(where: Citation | DuplicateHit | Evidence | Hit | Step) -> str:
    """Return where something is: document, file, page, row or time, characters, date."""
    from memctl.records import shown_source_name

    file_name = shown_source_name(where.source)
    called = where.title or file_name
    parts = [shortened(called, _LONGEST_NAME)]
    if file_name.rpartition(".")[0] == called:
        parts = []
    if file_name and file_name != called:
        parts.append(shortened(file_name, _LONGEST_NAME))
    if where.page is not None:
        parts.append(f"page {where.page}")
    if where.row is not None:
        parts.append(f"row {where.row}")
    if where.time_start is not None:
        parts.append(f"at {format_clock(where.time_start)}")
    if where.start is not None:
        parts.append(f"characters {where.start}-{where.end}")
    parts.append(format_moment(where.created_at))
    return ", ".join(part for part in parts if part)


def verbatim(examples: str) -> str:
    """Return examples as a paragraph that help output does not wrap."""
    lines = inspect.cleandoc(examples).splitlines()
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
