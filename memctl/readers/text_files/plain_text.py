"""Plain text, logs and source code, streamed; chat logs in them become turns.  Rich text (RTF)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from memctl.files import read_regular
from memctl.language.date_mentions import leading_day
from memctl.language.inline_tags import find_hashtags, find_wikilinks
from memctl.readers.document_properties import (
    parse_date,
    plausible_authors,
    plausible_date,
    plausible_title,
    signed_day,
    stated_day,
    with_stated_day,
)
from memctl.readers.file_kinds import CODE_LANGUAGES, extension_of
from memctl.readers.file_names import clean_title, title_from_name
from memctl.readers.pieces import (
    Piece,
    assemble,
    is_title_line,
    named_document,
    new_document,
)
from memctl.readers.reader_errors import check_size, damage_as_unreadable
from memctl.readers.text_files.chat_logs import ChatReader
from memctl.readers.text_files.decoding import text_blocks
from memctl.readers.text_files.headed_text import (
    HeadedText,
    PlainHeadings,
    day_above,
    prose_pieces,
)
from memctl.records import SourceText

LOG_GROUP_CHARS = 800
"""Log lines are grouped up to this many characters."""

_LOG_TIME = re.compile(
    r"^\W{0,2}(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)[.,]?\d*\s?(Z|[+-]\d\d:?\d\d)?",
    re.MULTILINE,
)
_END_OF_LOG = 64 << 10
"""Bytes in which its last line with a time stands."""
_DEFINITION = re.compile(
    r"(?:export\s+|pub(?:\(\w+\))?\s+|public\s+|private\s+|protected\s+|static\s+|async\s+|"
    r"abstract\s+|final\s+|default\s+)*"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|impl|type|module|namespace|"
    r"package|sub|create\s+(?:or\s+replace\s+)?(?:table|view|function))\s+"
    r"(?:\([^)\n]*\)\s*)?([A-Za-z_]\w*(?:(?:\.|::)\w+)*)",
    re.I,
)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read plain text: paragraphs, or turns where it is a chat."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    head = named_document(
        name,
        heading=_title_line(first),
        created_at=stated_day(first, path) or day_above(first) or signed_day(first, path),
        links=find_wikilinks(first),
    )
    chat = ChatReader.of(first, head.created_at)
    if chat is None:  # in a chat they are those of the messages that have them
        head = replace(head, tags=find_hashtags(first))
    reader = chat or HeadedText(PlainHeadings())
    return assemble(head, chain.from_iterable(map(reader.pieces, chain([first], blocks))))


def _title_line(text: str) -> str:
    """Return the first line if it stands alone and is not a dated entry; else ""."""
    line, _, below = text.lstrip().partition("\n")
    is_alone = bool(below.strip()) and not below.partition("\n")[0].strip("-=~ \r")
    return line if is_alone and is_title_line(line) and leading_day(line) is None else ""


def read_log(path: Path, name: str) -> Iterator[SourceText]:
    """Read a log: groups of lines with their line number and time; turns where it is a chat."""
    blocks = text_blocks(path)
    first = next(blocks, "")
    head = named_document(name)
    whole = chain([first], blocks)
    if reader := ChatReader.of(first, head.created_at):
        return assemble(head, chain.from_iterable(map(reader.pieces, whole)))
    return assemble(
        replace(head, created_at=_last_time(path) or head.created_at), log_pieces(whole)
    )


def _last_time(path: Path) -> datetime | None:
    """Return the time with which the last line of a log begins that has one."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END_OF_LOG))
        end = file.read().replace(b"\0", b"").decode("utf-8", "replace")
    found = [time for match in _LOG_TIME.finditer(end) if (time := _time(match))]
    return found[-1] if found else None


def log_pieces(blocks: Iterable[str]) -> Iterator[Piece]:
    """Groups of whole lines; ``row`` is the number of a group's first line, from 1."""
    group, begin, number = "", 1, 1
    for block in blocks:
        for line in block.splitlines(keepends=True):
            if group and len(group) + len(line) > LOG_GROUP_CHARS and not line[0].isspace():
                yield _log_piece(group, begin)
                group, begin = "", number
            group += line
            number += line.endswith("\n")
    if group:
        yield _log_piece(group, begin)


def _log_piece(group: str, row: int) -> Piece:
    match = _LOG_TIME.match(group)
    return Piece(group, "table", row=row, said_at=_time(match) if match else None)


def _time(stamp: re.Match[str]) -> datetime | None:
    return parse_date(stamp[1] + (stamp[2] or ""))


# --- source code ----------------------------------------------------------------------------------


def read_code(path: Path, name: str) -> Iterator[SourceText]:
    """Read source code: blocks between blank lines, under the name of their definition."""
    language = CODE_LANGUAGES.get(extension_of(name), "")
    head = new_document(
        title=clean_title(Path(name).name) or title_from_name(name),
        metadata={"programming_language": language} if language else {},
    )
    return assemble(head, chain.from_iterable(map(code_pieces, text_blocks(path))))


def code_pieces(text: str) -> Iterator[Piece]:
    """One piece for each block between blank lines, under the name of its definition."""
    heading = ""
    for block in (piece.text for piece in prose_pieces(text)):
        if block[0] not in " \t})]":
            heading = next(
                (d[1] for line in block.split("\n") if (d := _DEFINITION.match(line))), ""
            )
        yield Piece(block, "code", heading)


# --- rich text -----------------------------------------------------------------------------------

MAX_RICH_TEXT_BYTES = 30 * 1024 * 1024
_RTF_PROPERTY = r"\{{\\{}\s([^{{}}]{{0,1000}})\}}"
_RTF_CREATED = re.compile(r"\{\\creatim\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")


def read_rich_text(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the text of an RTF file, without what says how it looks.

    Raises:
        UnreadableSource: It is too big, or damaged.
    """
    from striprtf.striprtf import rtf_to_text

    words: Callable[..., str] = rtf_to_text
    check_size(path, name, MAX_RICH_TEXT_BYTES)
    written = read_regular(path).decode("latin-1")
    with damage_as_unreadable(name, "an RTF document"):
        text = words(written, errors="replace")
        title, author = (
            words(f"{{\\rtf1\\ansi {found[1]}}}", errors="replace").strip() if found else ""
            for found in (
                re.search(_RTF_PROPERTY.format(key), written) for key in ("title", "author")
            )
        )
    head = named_document(
        name,
        title=plausible_title(title),
        authors=plausible_authors(author),
        created_at=plausible_date(_rtf_created_at(written)),
    )
    pieces = list(prose_pieces(text.strip() + "\n"))
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def _rtf_created_at(text: str) -> datetime | None:
    found = _RTF_CREATED.search(text)
    try:
        return datetime(*map(int, found.groups()), tzinfo=UTC) if found else None  # type: ignore[misc,arg-type]
    except ValueError:
        return None
