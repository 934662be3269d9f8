"""What a PDF says about itself, where it is worth believing.

Most PDFs carry a title that a word processor made of a file name, and an author that is a login.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memctl.readers.damage import DAMAGE
from memctl.readers.dates import in_utc
from memctl.readers.names import clean_title
from memctl.readers.pieces import storable

if TYPE_CHECKING:
    from pypdf import PdfReader

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""PDF was new in 1993; an earlier date is a clock that was never set."""

_PROGRAM_PREFIX = re.compile(r"^(microsoft )?(word|powerpoint|excel|publisher|visio) - ", re.I)
_FILE_NAME = re.compile(
    r"\.(docx?|pptx?|xlsx?|odt|pdf|tex|dvi|indd|qxd|pages|rtf|html?|p65|fm)$", re.I
)
_NO_TITLE = re.compile(
    r"(untitled|unknown|title|document|no title|slide \d+|powerpoint presentation|"
    r"print|layout \d+|about:blank|data:.*|https?:.*)[\s\d.()-]*",
    re.I,
)
_NO_AUTHOR = re.compile(
    r"(unknown|anonymous|author|user|admin(istrator)?|root|owner|unspecified|home|pc|default|"
    r"microsoft( office)? user|microsoft corporation|windows user|\(?c\)?)",
    re.I,
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BETWEEN_AUTHORS = re.compile(r"\s*(?:;|&|\band\b)\s*")
_LONGEST = 1_000


@dataclass(frozen=True, slots=True)
class Facts:
    """Title, authors, date and what else is told; empty where nothing can be believed."""

    title: str = ""
    authors: tuple[str, ...] = ()
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def facts_of(reader: PdfReader) -> Facts:
    """Read the information dictionary, and XMP for what that lacks."""
    from pypdf.errors import PyPdfError

    info: Mapping[str, Any] = {}
    with suppress(*DAMAGE, PyPdfError):
        info = _information(reader)
    if not (info.get("title") and info.get("author") and info.get("created")):
        with suppress(*DAMAGE, PyPdfError):
            info = _xmp(reader) | {key: value for key, value in info.items() if value}
    return Facts(
        plausible_title(_text(info.get("title"))),
        plausible_authors(_text(info.get("author"))),
        _plausible_date(info.get("created")),
        {key: text for key in ("subject", "keywords") if (text := _told(info.get(key)))},
    )


def _information(reader: PdfReader) -> dict[str, Any]:
    info = reader.metadata
    if info is None:
        return {}
    found = {
        "title": info.title,
        "author": info.author,
        "subject": info.subject,
        "keywords": info.get("/Keywords"),
    }
    with suppress(*DAMAGE):
        found["created"] = info.creation_date
    return found


def _xmp(reader: PdfReader) -> dict[str, Any]:
    xmp = reader.xmp_metadata
    if xmp is None:
        return {}
    titles, creators = xmp.dc_title or {}, xmp.dc_creator or []
    return {
        "title": titles.get("x-default") or next(iter(titles.values()), ""),
        "author": ";".join(filter(None, creators)),
        "created": xmp.xmp_create_date,
    }


def plausible_title(title: str) -> str:
    """The title as one line; ``""`` for one that a program made up."""
    title = clean_title(_PROGRAM_PREFIX.sub("", title.strip()))
    made_up = _NO_TITLE.fullmatch(title) or _FILE_NAME.search(title) or not _LETTERS.search(title)
    return "" if made_up else title


def plausible_authors(authors: str) -> tuple[str, ...]:
    """The names, without logins and place holders."""
    names = (clean_title(name) for name in _BETWEEN_AUTHORS.split(authors))
    return tuple(n for n in names if _LETTERS.search(n) and not _NO_AUTHOR.fullmatch(n))


def _plausible_date(moment: object) -> datetime | None:
    moment = in_utc(moment) if isinstance(moment, datetime) else None
    return moment if moment and moment >= EARLIEST else None


def _text(value: object) -> str:
    return storable(value)[:_LONGEST] if isinstance(value, str) else ""


def _told(value: object) -> str:
    text = clean_title(_text(value))
    return "" if text.lower() in ("unspecified", "none") else text
