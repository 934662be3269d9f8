"""What Word, PowerPoint and Excel files have in common: archives and core properties."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

from memctl.errors import MissingReader, UnreadableSource
from memctl.readers.document_properties import plausible_authors, plausible_date, plausible_title
from memctl.readers.file_names import (
    clean_title,
    date_from_name,
    date_from_title,
    display_name,
    title_from_name,
)
from memctl.readers.pieces import new_document
from memctl.readers.reader_errors import damage_as_unreadable
from memctl.readers.zip_directory import MAX_DIRECTORY_BYTES, directory_bytes
from memctl.records import SourceText

WORD, POWERPOINT, EXCEL = "a Word document", "a PowerPoint file", "an Excel file"


def import_library(module: str, name: str, kind: str) -> ModuleType:
    """Import the library that reads a kind of file.

    Raises:
        MissingReader: It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingReader(
            f"{display_name(name)} is {kind}, which needs {module}",
            "pip install python-docx python-pptx openpyxl",
        ) from error


# --- core properties -----------------------------------------------------------------------------

_GENERATED = re.compile(r"generated (?:by|using) python-")


def head_of(properties: Any, name: str, heading: str = "", **metadata: object) -> SourceText:
    """The facts of a document, from its core properties as far as they are plausible.

    ``heading`` is what stands above its text, for a title where the properties have none.
    """
    title = plausible_title(_property(properties, "title"))
    values = {key: _property(properties, key) for key in ("subject", "category", "description")}
    comments = _property(properties, "comments")
    if not _GENERATED.match(comments):
        values["description"] = values["description"] or comments
    return new_document(
        title=title or heading or title_from_name(name),
        authors=plausible_authors(
            _property(properties, "author") or _property(properties, "creator")
        ),
        created_at=date_from_name(name)
        or plausible_date(getattr(properties, "created", None))
        or date_from_title(title or heading),
        tags=_keywords(_property(properties, "keywords")),
        metadata={key: value for key, value in (values | metadata).items() if value},
    )


def _property(properties: Any, key: str) -> str:
    value = getattr(properties, key, None)
    return clean_title(value) if isinstance(value, str) else ""


def _keywords(text: str) -> tuple[str, ...]:
    words = (clean_title(word) for word in re.split(r"[;,]", text))
    return tuple(dict.fromkeys(filter(None, words)))


MAX_BYTES = 1024 * 1024 * 1024
"""More unpacked bytes than this are refused outright."""

SUSPICIOUS = 64 * 1024 * 1024
"""From here on the packing itself is looked at."""

MAX_RATIO = 200
"""Tables pack to a hundredth; what packs better than this is made of nothing."""

MAX_MEMBERS = 20_000

MARKS_OF_ANY, MARKS_PER_BYTE, ROW_MARKS_PER_BYTE = 2_000_000, 2, 10
"""Tags and attributes that any archive may have, and that it may have for each byte besides.

In a tree each takes up to 240 bytes of memory; those of rows take five microseconds of time.
"""

_BYTES_PER_MARK = 80
_BLOCK = 1 << 20


def check_archive(path: Path, name: str, kind: str, streamed: tuple[str, ...] = ()) -> None:
    """Refuse an archive that would unpack to an absurd size, or to more parts than it can need.

    The sizes are those that the archive states, and :mod:`zipfile` never unpacks more than that.

    Args:
        path: The archive.
        name: What the source is called.
        kind: What it should be, with its article: ``a Word document``.
        streamed: How the names of members begin that never are in memory as a whole.

    Raises:
        UnreadableSource: It is no zip file, is damaged, or unpacks to too much.
    """
    if directory_bytes(path) > MAX_DIRECTORY_BYTES:
        raise UnreadableSource(
            f"{display_name(name)} lists more members than any {kind.partition(' ')[2]} has",
            "check where it comes from",
        )
    with damage_as_unreadable(name, kind), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check_sizes(path, name, kind, members)
        rows = [member for member in members if member.filename.startswith(streamed)]
        trees = [member for member in members if not member.filename.startswith(streamed)]
        size = path.stat().st_size
        if not (
            _has_few_marks(archive, trees, MARKS_OF_ANY + MARKS_PER_BYTE * size)
            and _has_few_marks(archive, rows, MARKS_OF_ANY + ROW_MARKS_PER_BYTE * size)
        ):
            raise UnreadableSource(
                f"{display_name(name)} has far more parts than {kind} of {size:,} bytes needs",
                "check where it comes from; if it is genuine, save it in smaller parts",
            )


def _check_sizes(path: Path, name: str, kind: str, members: Sequence[zipfile.ZipInfo]) -> None:
    unpacked = sum(member.file_size for member in members)
    packed = max(1, path.stat().st_size)
    absurd = unpacked > SUSPICIOUS and unpacked > MAX_RATIO * packed
    if absurd or unpacked > MAX_BYTES or len(members) > MAX_MEMBERS:
        raise UnreadableSource(
            f"{display_name(name)} would unpack from {packed:,} to {unpacked:,} bytes in "
            f"{len(members):,} members, which no {kind.partition(' ')[2]} needs",
            "check where it comes from; if it is genuine, save it in smaller parts",
        )


def _has_few_marks(archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo], most: int) -> bool:
    counts = accumulate(_marks(archive, member) for member in members)
    return all(count <= most for count in counts)


def _marks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """How many tags and attributes a member may have; none where it is no XML, as its bytes tell.

    Any bytes at all have one such mark in 128, as pictures do.
    """
    marks = 0
    with archive.open(member) as file:
        while block := file.read(_BLOCK):
            marks += block.count(b"<") + block.count(b"=")
    return marks if marks * _BYTES_PER_MARK > member.file_size else 0
