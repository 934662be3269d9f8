"""E-mail messages: headers as properties, the best body as text, attachments named or read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import getaddresses
from pathlib import Path
from typing import Any

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.readers.data_files.nested_values import value_pieces
from memctl.readers.data_files.structured_data import parse_json
from memctl.readers.data_files.table_rows import separated_pieces
from memctl.readers.document_properties import parse_date
from memctl.readers.file_kinds import extension_of, kind_by_extension
from memctl.readers.file_names import clean_title, display_name, shorten, title_from_name
from memctl.readers.markup.html_parser import parse_page
from memctl.readers.markup.markdown_files import MarkdownReader
from memctl.readers.markup.web_pages import page_pieces, page_text
from memctl.readers.pieces import Piece, assemble, new_document
from memctl.readers.reader_errors import check_size
from memctl.readers.text_files.decoding import decode
from memctl.readers.text_files.plain_text import code_pieces, prose_pieces
from memctl.records import SourceText

MAX_BYTES = 100 * 1024 * 1024
MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024
"""Text attachments up to this size are read."""

MOST_ATTACHMENTS = 500
"""Fewer than so many of one message are looked into: each becomes memories of its own."""

_HEADER_CHARS = 10_000
_MAX_DEPTH = 5
"""Messages forwarded as attachments are read so many levels deep."""

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_BROKEN = (ValueError, TypeError, AttributeError, ArithmeticError, LookupError, MessageError)
"""What the standard library's header parser is known to raise for malformed headers."""


class _BoundedHeaders(EmailPolicy):
    """The usual reading of messages, with very long headers cut.

    Python 3.11 parses a header in quadratic time: 300 kB of subject take six seconds.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return a header's name and the beginning of its value."""
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_HEADER_CHARS]


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read a message.

    Raises:
        UnreadableSource: It is no message, or its parts are nested too deeply.
    """
    check_size(path, name, MAX_BYTES)
    try:
        with open_regular(path) as file:
            message = BytesParser(policy=_BoundedHeaders()).parse(file)
        assert isinstance(message, EmailMessage)
        left = iter(range(MOST_ATTACHMENTS))
        pieces = list(_pieces(message, left))
        return iter(list(assemble(_head(message, name, is_whole=next(left, -1) >= 0), pieces)))
    except RecursionError:
        raise UnreadableSource(
            f"{display_name(name)} has parts nested too deeply", "save what it holds by itself"
        ) from None
    except _BROKEN as error:
        raise UnreadableSource(
            f"{display_name(name)} is not a message that can be read: {error}",
            "save it anew from the mail program",
        ) from error


def _head(message: EmailMessage, name: str, *, is_whole: bool) -> SourceText:
    attached = _attachments(message)[:MOST_ATTACHMENTS]
    metadata: dict[str, Any] = {
        "to": _addresses(message, "To"),
        "cc": _addresses(message, "Cc"),
        "message_id": header(message, "Message-ID"),
        "in_reply_to": header(message, "In-Reply-To"),
        "attachments": [_attachment_entry(part) for part in attached],
    }
    return new_document(
        missing=() if is_whole else (f"attachments beyond the first {MOST_ATTACHMENTS - 1:,}",),
        title=clean_title(header(message, "Subject")) or title_from_name(name),
        authors=tuple(_addresses(message, "From")),
        created_at=parse_date(header(message, "Date")),
        metadata={key: value for key, value in metadata.items() if value},
    )


def header(message: EmailMessage, key: str) -> str:
    """A header in one decoded line; ``""`` where it is missing or broken beyond reading."""
    try:
        value = message.get(key)
    except _BROKEN:
        value = next((raw for k, raw in message.raw_items() if k.lower() == key.lower()), "")
    return shorten(str(value), 2000) if value else ""


def _addresses(message: EmailMessage, key: str) -> list[str]:
    """The people in a header, by name where one is given, else by address."""
    pairs = getaddresses([header(message, key)])
    return list(dict.fromkeys(filter(None, (name or address for name, address in pairs))))


def _pieces(
    message: EmailMessage, left: Iterator[int], depth: int = 0, heading: str = ""
) -> Iterator[Piece]:
    """Pieces of a message and of as many attachments, its own and inner ones, as there are left."""
    lines = [f"{key}: {value}\n" for key in _SHOWN if (value := header(message, key))]
    yield Piece("".join(lines) + "\n", "properties", heading)
    yield from _body_pieces(message, heading)
    for part, _ in zip(_attachments(message), left, strict=False):
        yield from _attachment_pieces(part, left, depth)


def _body_pieces(message: EmailMessage, heading: str) -> Iterator[Piece]:
    body = message.get_body(preferencelist=("plain", "html"))
    if not isinstance(body, EmailMessage):
        return
    content = _bytes_of(body)
    if body.get_content_type() == "text/html":
        pieces: Iterable[Piece] = page_pieces(parse_page(page_text(content)))
    else:
        pieces = prose_pieces(_text_of(body, content).rstrip() + "\n\n", heading)
    yield from pieces


def _bytes_of(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text_of(part: EmailMessage, content: bytes) -> str:
    return decode(content, declared=str(part.get_content_charset() or ""))


def _attachments(message: EmailMessage) -> list[EmailMessage]:
    return [part for part in message.iter_attachments() if isinstance(part, EmailMessage)]


def _attachment_name(part: EmailMessage) -> str:
    try:
        return display_name(part.get_filename() or "") if part.get_filename() else ""
    except _BROKEN:
        return ""


def _attachment_entry(part: EmailMessage) -> dict[str, Any]:
    return {
        "name": _attachment_name(part),
        "media_type": part.get_content_type(),
        "size": len(_bytes_of(part)),
    }


def _attachment_pieces(part: EmailMessage, left: Iterator[int], depth: int) -> Iterator[Piece]:
    name = _attachment_name(part)
    heading = f"Attachment: {name or part.get_content_type()}"
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload(0) if part.is_multipart() else None
        if isinstance(inner, EmailMessage) and depth < _MAX_DEPTH:
            yield Piece("\nForwarded message\n\n", "heading", "Forwarded message")
            yield from _pieces(inner, left, depth + 1, "Forwarded message")
        return
    content = _bytes_of(part)
    pieces = _content_pieces(part, name, content) if len(content) <= MAX_ATTACHMENT_BYTES else None
    yield Piece(f"\n{heading}\n\n", "heading", heading)
    for piece in pieces or ():
        yield _under(piece, heading)


def _under(piece: Piece, heading: str) -> Piece:
    return replace(piece, heading=f"{heading} > {piece.heading}" if piece.heading else heading)


def _content_pieces(part: EmailMessage, name: str, content: bytes) -> Iterator[Piece] | None:
    """Pieces of an attachment that is text; None for any other."""
    reader = kind_by_extension(name)
    kind = part.get_content_type()
    if kind == "application/octet-stream" and reader:
        kind = reader.media_type
    if kind == "application/json" or extension_of(name) == ".json":
        return _json_pieces(content)
    if kind == "text/html":
        return page_pieces(parse_page(page_text(content)))
    if kind in ("text/csv", "text/tab-separated-values") or extension_of(name) in (".csv", ".tsv"):
        return separated_pieces(decode(content))
    if kind == "text/markdown" or extension_of(name) == ".md":
        return MarkdownReader().pieces(_text_of(part, content))
    if kind == "text/x-source":
        return code_pieces(_text_of(part, content))
    return prose_pieces(_text_of(part, content)) if kind.startswith("text/") else None


def _json_pieces(content: bytes) -> Iterator[Piece]:
    text = decode(content)
    try:
        yield from value_pieces(parse_json(text))
    except UnreadableSource:
        yield from prose_pieces(text)
