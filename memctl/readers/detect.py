"""What kind of file this is: by its content first, by its extension where that leaves it open."""

from __future__ import annotations

import os
from pathlib import Path

from memctl.errors import EmptySource, EncryptedSource, UnreadableSource
from memctl.files import open_regular
from memctl.readers.decoding import SAMPLE_BYTES, encoding_of_bytes, marked_encoding, normalised
from memctl.readers.magic import (
    is_encrypted_office,
    media_type_by_magic,
    office_type,
    unread_kind,
)
from memctl.readers.names import shown_name
from memctl.readers.registry import MediaType, by_extension, supported_hint
from memctl.readers.sniff import text_type

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b")) + b"\x7f"
_TEXT_CONTROLS = 0.02
"""Random bytes are one tenth control characters; text has next to none."""

_FEW_CONTROLS = 2


def detect(path: Path, name: str | None = None) -> MediaType:
    """The media type of the file at ``path``, whose name is ``name`` if not the path's own.

    Raises:
        EmptySource: It has no bytes, or nothing but blanks.
        EncryptedSource: It is an Office file under a password.
        UnreadableSource: It cannot be opened, or is of a kind that nobody here reads.
    """
    shown = shown_name(name or path.name)
    head, complete = _head(path, shown)
    if complete and not head.strip(b" \t\r\n\v\f\0\xef\xbb\xbf\xff\xfe"):
        raise _empty(shown, head)
    if media_type := _binary_type(path, name or path.name, head):
        return media_type
    return text_type(_text_of(head, complete), name or path.name, complete)


def _empty(shown: str, head: bytes) -> EmptySource:
    if b"\0" in head:  # as a power cut, or a copy that broke off, leaves it
        hint = "it is damaged; get it again from where it comes"
        return EmptySource(f"{shown} holds nothing but zero bytes", hint)
    return EmptySource(f"{shown} is empty", "put something into it and try again")


def _head(path: Path, shown: str) -> tuple[bytes, bool]:
    """The first bytes of the file, and whether they are all of it."""
    if path.is_dir():
        raise UnreadableSource(f"{shown} is a folder", "name a file, or ingest the folder's files")
    try:
        if not path.is_file():
            raise UnreadableSource(f"there is no file {shown}", "check the path")
        with open_regular(path) as file:
            head = file.read(SAMPLE_BYTES)
            return head, os.fstat(file.fileno()).st_size <= len(head)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableSource(f"cannot open {shown}: {reason}", "check its permissions") from error


def _binary_type(path: Path, name: str, head: bytes) -> MediaType:
    """The type of a binary file; ``""`` for text.

    Raises:
        UnreadableSource: It is neither text nor of a type that is known.
    """
    extension = by_extension(name)
    claimed = extension.media_type if extension else ""
    if found := media_type_by_magic(head):
        return _refined(found, claimed)
    if head.startswith(b"PK\x03\x04") and (found := office_type(path)):
        return found
    if is_text(head):
        return ""
    if is_encrypted_office(head):
        raise EncryptedSource(
            f"{shown_name(name)} is protected by a password", "save it without one and try again"
        )
    kind = unread_kind(head)
    if extension and not _is_textual(claimed) and (not kind or head.startswith(b"PK")):
        return claimed
    raise UnreadableSource(
        f"{shown_name(name)} cannot be read: it is "
        f"{kind or 'neither text nor of a binary format that is known'}",
        supported_hint(),
    )


def _refined(found: MediaType, claimed: MediaType) -> MediaType:
    """The extension's type where the signature alone cannot tell two types apart."""
    alike = (
        ("video/mp4", "audio/mp4", "video/quicktime"),
        ("video/x-matroska", "video/webm"),
        ("audio/mpeg", "audio/flac"),
    )
    same_family = any(found == group[0] and claimed in group for group in alike)
    return claimed if same_family else found


def _is_textual(media_type: MediaType) -> bool:
    return not media_type.startswith(("image/", "audio/", "video/", "application/vnd.")) and (
        media_type != "application/pdf"
    )


def is_text(head: bytes) -> bool:
    """Whether the bytes look like text in some encoding."""
    if head.startswith((b"{\\rtf", b"SQLite format 3\0")):
        return False
    if encoding := marked_encoding(head):
        return _is_printable(head, encoding)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls <= max(_FEW_CONTROLS, _TEXT_CONTROLS * len(head)) or (
        controls == head.count(0) <= 0.1 * len(head) and head.isascii()
    )


def _is_printable(head: bytes, encoding: str) -> bool:
    text = head.decode(encoding, "replace")[:4096]
    bad = sum(1 for c in text if c == "\ufffd" or (c < " " and c not in "\t\n\v\f\r\b\x1b"))
    return bad <= 2 + _TEXT_CONTROLS * len(text)


def _text_of(head: bytes, complete: bool) -> str:
    encoding = encoding_of_bytes(head if complete else head[:-8])
    return normalised(head.decode(encoding, "replace").removeprefix("\ufeff"))
