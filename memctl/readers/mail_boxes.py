"""Mail boxes: many messages in one file, read one after the other, each a document of its own.

A message begins with a line ``From sender date`` after a blank one; see RFC 4155.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.email_messages import MAX_BYTES, read_message
from memctl.readers.file_names import title_from_name
from memctl.readers.units import UnitKeys, broken
from memctl.records import SourceText, Unit

_SEPARATOR = re.compile(rb"From \S.*\d{4}\b|From \S+ *\r?$|From -\s")
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.M)
_HEADER = re.compile(rb"[!-9;-~]+:")
_MESSAGE_ID = re.compile(rb"^message-id:\s*<?([^>\s]{1,300})", re.I | re.M)
_LINE_BYTES = 1 << 20


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the messages of a mail box; one that cannot be read says why."""
    keys = UnitKeys()
    for number, line, content in _messages(path):
        key = keys.new(_message_id(content), content)
        where = f"message {number}, from line {line:,} on"
        if content is None:
            yield broken(key, f"{where}: it has more than {MAX_BYTES >> 20} MB", "")
            continue
        if not _HEADER.match(content):
            hint = "nothing else of the mail box is affected"
            yield broken(key, f"{where}: it does not begin with the headers of a message", hint)
            continue
        try:
            raw = _QUOTED_SEPARATOR.sub(rb"\1", content)
            for text in read_message(raw, f"{title_from_name(name)} {number}"):
                yield replace(text, unit=Unit(key), media_type="message/rfc822")
        except UnreadableSource as error:
            yield broken(key, f"{where}: {error.message}", error.hint)


def _message_id(content: bytes | None) -> str:
    head = re.split(rb"\r?\n\r?\n", content or b"", maxsplit=1)[0]
    found = _MESSAGE_ID.search(head)
    return found[1].decode("ascii", "replace") if found else ""


def _messages(path: Path) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield each message with its number and line; None for one too long to be held."""
    number, begin, size = 0, 1, 0
    lines: list[bytes] = []
    is_blank = True
    with open_regular(path) as file:
        for place, line in enumerate(iter(lambda: file.readline(_LINE_BYTES), b""), start=1):
            if is_blank and _SEPARATOR.match(line):
                if number:
                    yield number, begin, b"".join(lines) if size <= MAX_BYTES else None
                number, begin, size, lines = number + 1, place, 0, []
            elif number:
                size += len(line)
                if size <= MAX_BYTES:
                    lines.append(line)
            is_blank = not line.strip()
    if number:
        yield number, begin, b"".join(lines) if size <= MAX_BYTES else None
