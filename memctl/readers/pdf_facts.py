"""What a PDF says about itself, where it is worth believing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memctl.readers.damage import DAMAGE
from memctl.readers.names import clean_title
from memctl.readers.pieces import storable
from memctl.readers.plausible import plausible_authors, plausible_date, plausible_title

if TYPE_CHECKING:
    from pypdf import PdfReader

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
        plausible_date(info.get("created")),
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


def _text(value: object) -> str:
    return storable(value)[:_LONGEST] if isinstance(value, str) else ""


def _told(value: object) -> str:
    text = clean_title(_text(value))
    return "" if text.lower().strip("()") in ("unspecified", "none") else text
