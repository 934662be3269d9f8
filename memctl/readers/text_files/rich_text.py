"""Rich text (RTF): its words, without what says how they look."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from memctl.files import read_regular
from memctl.readers.document_properties import (
    plausible_authors,
    plausible_date,
    plausible_title,
    with_stated_day,
)
from memctl.readers.pieces import assemble, named_document
from memctl.readers.reader_errors import check_size, damage_as_unreadable
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.records import SourceText

MAX_BYTES = 30 * 1024 * 1024
_PROPERTY = r"\{{\\{}\s([^{{}}]{{0,1000}})\}}"
_CREATED = re.compile(r"\{\\creatim\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the text of an RTF file.

    Raises:
        UnreadableSource: It is too big, or damaged.
    """
    from striprtf.striprtf import rtf_to_text

    words: Callable[..., str] = rtf_to_text
    check_size(path, name, MAX_BYTES)
    written = read_regular(path).decode("latin-1")
    with damage_as_unreadable(name, "an RTF document"):
        text = words(written, errors="replace")
        title, author = (
            words(f"{{\\rtf1\\ansi {found[1]}}}", errors="replace").strip() if found else ""
            for found in (re.search(_PROPERTY.format(key), written) for key in ("title", "author"))
        )
    head = named_document(
        name,
        title=plausible_title(title),
        authors=plausible_authors(author),
        created_at=plausible_date(_created_at(written)),
    )
    pieces = list(prose_pieces(text.strip() + "\n"))
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def _created_at(text: str) -> datetime | None:
    found = _CREATED.search(text)
    try:
        return datetime(*map(int, found.groups()), tzinfo=UTC) if found else None  # type: ignore[misc,arg-type]
    except ValueError:
        return None
