"""Word, PowerPoint and Excel files: what they have in common, and the way to their own readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from memctl.errors import MissingReader
from memctl.readers.archives import check_archive
from memctl.readers.names import clean_title, date_from_name, shown_name, title_from_name
from memctl.readers.plausible import plausible_authors, plausible_date, plausible_title
from memctl.readers.registry import DOCX, PPTX, XLSX
from memctl.records import SourceText

WORD, POWERPOINT, EXCEL = "a Word document", "a PowerPoint file", "an Excel file"
ROW_MEMBERS = ("xl/worksheets/", "xl/sharedStrings.")
"""How the names begin of what an Excel file has row by row."""


def read_docx(path: Path, name: str) -> Iterator[SourceText]:
    """Yield paragraphs under their headings, tables by rows, notes and comments.

    Raises:
        UnreadableSource: It is damaged, or unpacks to an absurd size.
        MissingReader: The office extra is not installed.
    """
    library = _library("docx", name, WORD)
    check_archive(path, name, WORD)
    from memctl.readers.word import word_parts

    return word_parts(library, path, name)


def read_pptx(path: Path, name: str) -> Iterator[SourceText]:
    """Yield slides as pages, with their tables and the speaker's notes; raises as for Word."""
    library = _library("pptx", name, POWERPOINT)
    check_archive(path, name, POWERPOINT)
    from memctl.readers.slides import slide_parts

    return slide_parts(library, path, name)


def read_xlsx(path: Path, name: str) -> Iterator[SourceText]:
    """Yield sheets as tables, row by row, in parts; raises as for Word."""
    library = _library("openpyxl", name, EXCEL)
    check_archive(path, name, EXCEL, ROW_MEMBERS)
    from memctl.readers.sheets import sheet_parts

    return sheet_parts(library, path, name)


def _library(module: str, name: str, kind: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingReader(
            f"{shown_name(name)} is {kind}, which needs the office extra",
            "pip install 'memctl[office]'",
        ) from error


# --- core properties -----------------------------------------------------------------------------

_GENERATED = re.compile(r"generated (?:by|using) python-")
_MEDIA_TYPES = {WORD: (DOCX, "docx/1"), POWERPOINT: (PPTX, "pptx/1"), EXCEL: (XLSX, "xlsx/1")}


def head_of(
    properties: Any, name: str, kind: str, heading: str = "", **metadata: object
) -> SourceText:
    """The facts of a document, from its core properties as far as they can be believed.

    ``heading`` is what stands above its text, for a title where the properties have none.
    """
    media_type, reader = _MEDIA_TYPES[kind]
    title = plausible_title(_told(properties, "title"))
    told = {key: _told(properties, key) for key in ("subject", "category", "description")}
    comments = _told(properties, "comments")
    if not _GENERATED.match(comments):
        told["description"] = told["description"] or comments
    return SourceText(
        text="",
        media_type=media_type,
        reader=reader,
        title=title or heading or title_from_name(name),
        authors=plausible_authors(_told(properties, "author") or _told(properties, "creator")),
        created_at=plausible_date(getattr(properties, "created", None)) or date_from_name(name),
        tags=_keywords(_told(properties, "keywords")),
        metadata={key: value for key, value in (told | metadata).items() if value},
    )


def _told(properties: Any, key: str) -> str:
    value = getattr(properties, key, None)
    return clean_title(value) if isinstance(value, str) else ""


def _keywords(text: str) -> tuple[str, ...]:
    words = (clean_title(word) for word in re.split(r"[;,]", text))
    return tuple(dict.fromkeys(filter(None, words)))
