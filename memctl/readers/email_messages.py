"""E-mail messages: headers as properties, the best body as text, attachments named or read.

A mail box holds many messages in one file; each becomes a document.  A message begins with a line
``From sender date`` after a blank one; see RFC 4155.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import getaddresses
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.files import open_regular
from memctl.formatting import format_count
from memctl.readers.data_files.nested_values import value_pieces
from memctl.readers.data_files.structured_data import parse_json
from memctl.readers.data_files.table_rows import separated_pieces
from memctl.readers.document_properties import parse_date
from memctl.readers.file_kinds import extension_of, kind_by_extension
from memctl.readers.file_names import clean_title, display_name, shorten, title_from_name
from memctl.readers.markup.html_parser import parse_page
from memctl.readers.markup.markdown_files import MarkdownReader
from memctl.readers.markup.web_pages import (
    block_pieces,
    content_blocks,
    page_pieces,
    page_text,
)
from memctl.readers.pieces import Piece, assemble, new_document
from memctl.readers.reader_errors import check_size
from memctl.readers.text_files.decoding import decode
from memctl.readers.text_files.headed_text import PARAGRAPH, prose_pieces
from memctl.readers.text_files.plain_text import code_pieces
from memctl.readers.units import UnitKeys, broken
from memctl.records import SourceText, Unit

MAX_BYTES = 100 * 1024 * 1024
MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024
"""Text attachments up to this size are read."""

MAX_ATTACHMENTS = 500
"""Fewer than this many of one message are looked into: each becomes memories of its own."""

_HEADER_CHARS = 10_000
_MAX_DEPTH = 5
"""Messages forwarded as attachments are read this many levels deep."""

_SIGNATURES = ("pgp-signature", "pkcs7-signature", "x-pkcs7-signature")
"""Parts that say nothing but who has sent the others."""

_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_PARSER_ERRORS = (ValueError, TypeError, AttributeError, ArithmeticError, LookupError, MessageError)
"""What the standard library's header parser is known to raise for malformed headers."""


class _Reading(Struct):
    """What is left to be read of a message, and what of it could not be read."""

    budget: Iterator[int] = field(default_factory=lambda: iter(range(MAX_ATTACHMENTS)))
    """One for each attachment that is looked into."""
    unread: int = 0

    def missing(self) -> Iterator[str]:
        """Yield what is missing of the message."""
        if next(self.budget, -1) < 0:
            yield f"attachments beyond the first {MAX_ATTACHMENTS - 1:,}"
        if self.unread:
            yield f"text of {format_count(self.unread, 'attachment')}"


class _BoundedHeaders(EmailPolicy):
    """The usual reading of messages, with very long headers cut.

    Python 3.11 parses a header in quadratic time: 300 kB of subject take six seconds.  Bytes of a
    legacy encoding, which a header may not have, would all become the same character.
    """

    charset: str
    """What the message says that its text is written in, once that is known."""

    def __init__(self, charset: str = "") -> None:
        super().__init__(message_factory=EmailMessage)
        object.__setattr__(self, "charset", charset)  # a policy lets nothing be set

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Return the beginning of a header's value, parsed."""
        return super().header_fetch_parse(name, self.decoded(value)[:_HEADER_CHARS])

    def decoded(self, value: str) -> str:
        """Return a header's value with what the parser keeps as surrogates, raw bytes, as text."""
        if value.isascii():
            return value
        return decode(value.encode("utf-8", "surrogateescape"), declared=self.charset)


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Read a message.

    Raises:
        UnreadableSource: It is no message, or its parts are nested too deeply.
    """
    check_size(path, name, MAX_BYTES)
    with open_regular(path) as file:
        return iter(read_message(file.read(), name))


def read_message(content: bytes, name: str) -> list[SourceText]:
    """Return the text of a message, mostly in one part.

    Raises:
        UnreadableSource: As :func:`read`.
    """
    try:
        message = BytesParser(policy=_BoundedHeaders()).parsebytes(content)
        assert isinstance(message, EmailMessage)
        _set_charset(message)
        reading = _Reading()
        pieces = list(_pieces(message, reading))
        return list(assemble(_head(message, name, tuple(reading.missing())), pieces))
    except RecursionError:
        raise UnreadableSource(
            f"{display_name(name)} has parts nested too deeply", "save what it holds by itself"
        ) from None
    except _PARSER_ERRORS as error:
        raise UnreadableSource(
            f"{display_name(name)} is not a message that can be read: {error}",
            "save it anew from the mail program",
        ) from error


def _set_charset(message: EmailMessage) -> None:
    """Have raw bytes in the headers of a message read as its first text says it is written."""
    policy = _BoundedHeaders(charset=next(filter(None, map(_charset, message.walk())), ""))
    for part in message.walk():
        part.policy = policy


def _charset(part: Message) -> str:
    """Return what a part that is text says that it is written in; ``""`` for any other."""
    try:
        is_text = part.get_content_maintype() == "text"
        return str(part.get_content_charset() or "") if is_text else ""
    except _PARSER_ERRORS:
        return ""


def _head(message: EmailMessage, name: str, missing: tuple[str, ...]) -> SourceText:
    attached = _attachments(message)[:MAX_ATTACHMENTS]
    metadata: dict[str, Any] = {
        "to": _addresses(message, "To"),
        "cc": _addresses(message, "Cc"),
        "message_id": header(message, "Message-ID"),
        "in_reply_to": header(message, "In-Reply-To"),
        "attachments": [_attachment_entry(part) for part in attached],
    }
    return new_document(
        missing=missing,
        title=clean_title(header(message, "Subject")) or title_from_name(name),
        authors=tuple(_addresses(message, "From")),
        created_at=parse_date(header(message, "Date")),
        metadata={key: value for key, value in metadata.items() if value},
    )


def header(message: EmailMessage, key: str) -> str:
    """A header in one decoded line; ``""`` where it is missing or broken beyond reading."""
    try:
        value = message.get(key)
    except _PARSER_ERRORS:
        raw = next((raw for k, raw in message.raw_items() if k.lower() == key.lower()), "")
        assert isinstance(message.policy, _BoundedHeaders)
        value = message.policy.decoded(raw)
    return shorten(str(value), 2000) if value else ""


def _addresses(message: EmailMessage, key: str) -> list[str]:
    """The people in a header, by name where one is given, else by address."""
    pairs = getaddresses([header(message, key)])
    return list(dict.fromkeys(filter(None, (name or address for name, address in pairs))))


def _pieces(
    message: EmailMessage, reading: _Reading, depth: int = 0, heading: str = ""
) -> Iterator[Piece]:
    """Pieces of a message and of as many attachments, its own and inner ones, as there are left."""
    lines = [f"{key}: {value}\n" for key in _SHOWN_HEADERS if (value := header(message, key))]
    yield Piece("".join(lines) + "\n", "properties", heading)
    yield from _body_pieces(message, heading)
    attached = _attachments(message)
    reading.unread += _count_embedded(message, attached)
    for part, _ in zip(attached, reading.budget, strict=False):
        yield from _attachment_pieces(part, reading, depth)


def _body_pieces(message: EmailMessage, heading: str) -> Iterator[Piece]:
    for body in _bodies(message):
        content = _bytes_of(body)
        if body.get_content_type() == "text/html":
            yield from _page_pieces(page_text(content))
        else:
            yield from reply_pieces(_text_of(body, content).rstrip() + "\n\n", heading)


def _bodies(message: EmailMessage) -> list[EmailMessage]:
    """What a message says: one text, or a page and the text below it, as a mailing list adds."""
    body = message.get_body(preferencelist=("plain", "html"))
    if not isinstance(body, EmailMessage):
        return []
    if message.get_content_type() != "multipart/mixed":
        return [body]
    texts: dict[str, EmailMessage] = {}  # the first of each kind; others count as attachments
    for part in message.iter_parts():
        kind = part.get_content_type()
        is_text = kind in ("text/plain", "text/html") and not part.is_attachment()
        if is_text and isinstance(part, EmailMessage):
            texts.setdefault(kind, part)
    return list(texts.values()) if body in texts.values() else [body]


def _page_pieces(page: str) -> Iterator[Piece]:
    """The text of a message as a page, without its signature and the message that it answers.

    They are its text if there is nothing else, as in a message that is only forwarded.
    """
    blocks = content_blocks(parse_page(page).blocks)
    is_reply = any(not (block.quoted or block.signature) for block in blocks)
    for (quoted, signs), run in groupby(
        blocks, key=lambda block: (block.quoted and is_reply, block.signature and is_reply)
    ):
        for piece in block_pieces(run):
            yield replace(piece, kind=None, quotation=int(quoted)) if quoted or signs else piece


_SIGNATURE = re.compile(r"^--[^\S\n]?\n|^_{20,}\n(?:[^\n]+\n){1,4}\s*\Z", re.M)
"""What a writer, or below a line a mailing list, puts under every message."""
_SENT_FROM = re.compile(
    r"(?:Sent from|Get Outlook for|Von mein|Gesendet von|Envoyé de|Enviado)\b.{0,80}\s*\Z"
)
_INTRODUCTION = re.compile(r"(?=[^\n]*(?:\d|@|<))(?:[^\n]+\n){0,2}[^\n]*:\s*\Z")
"""``On Monday, 4 May, Ann Lee wrote:`` in any language: it ends so, with a date or an address."""
_HEADERS = re.compile(r"\n*(?:\*?[^\W\d_][^\W\d_ -]{1,14}:\*?[^\S\n][^\n]*(?:\n|\Z)){3}")
_ORIGINAL = re.compile(r"\s*(?:-{3,}[^\n-]{3,60}-{3,}|_{10,})\s*\n")
_ORIGINAL_HEAD = re.compile(
    r"\s*(?:-{3,}[^\n]*\n|(?:_{10,}\s*\n\s*)?\*?(?:From|Von|De|Da|Van|Från|Fra|Od|От|Feladó|Lähettäjä|"
    r"Kimden|Expéditeur|Gönderen):)",
    re.I,
)
"""How a quoted message begins, unlike a signature of ``Phone: ...`` lines."""
_FORWARDED = re.compile(
    r"\s*-{3,}[^\S\n]*(?:Forwarded|Weitergeleitete|Message transféré|Mensaje reenviado)", re.I
)


def reply_pieces(text: str, heading: str = "") -> Iterator[Piece]:
    """A message's text by paragraph; quotes, what introduces them and a signature say nothing.

    They stay in the text.  Where there is nothing else, they are what the message says.
    """
    pieces = list(_reply_pieces(text, heading))
    is_reply = any(piece.kind is not None and piece.text.strip() for piece in pieces)
    yield from pieces if is_reply else prose_pieces(text, heading)


def _reply_pieces(text: str, heading: str) -> Iterator[Piece]:
    end = _own_text_end(text)
    for run in _runs(text[:end]):
        yield from _quotations(run) if _is_quoted(run) else prose_pieces(run, heading)
    yield from _pieces_below(text[end:])


def _quotations(run: str) -> Iterator[Piece]:
    """Yield what each message says that is quoted in a run, as the marks before its lines tell."""
    for depth, lines in groupby(run.splitlines(keepends=True), key=_depth):
        yield Piece("".join(lines), None, quotation=depth)


def _depth(line: str) -> int:
    """Return how deep a line of a quotation is quoted; what introduces it counts as one."""
    return max(1, line[: len(line) - len(line.lstrip("> "))].count(">"))


def _pieces_below(text: str) -> Iterator[Piece]:
    """Yield what stands below the message: signatures, and messages that are quoted."""
    place = 0
    for paragraph in PARAGRAPH.finditer(text):
        if _is_original(text, paragraph) and _ORIGINAL_HEAD.match(paragraph[0]):
            place = paragraph.start()
            break
    else:
        place = len(text)
    for run in _runs(text[:place]):
        yield from _quotations(run) if _is_quoted(run) else [Piece(run, None)]
    if place < len(text):
        yield Piece(text[place:], None, quotation=1)


def _own_text_end(text: str) -> int:
    """Where the writer's signature, or a message that is quoted without marks, begins."""
    found = _SIGNATURE.search(text)
    end = found.start() if found else len(text)
    place = 0
    for match in PARAGRAPH.finditer(text, 0, end):
        if _is_original(text, match) or (_SENT_FROM.match(match[0]) and match.end() >= end):
            return match.start()
        place = match.end()
    return min(place, end)


def _is_original(text: str, paragraph: re.Match[str]) -> bool:
    """Return whether a paragraph opens the answered message with its headers, as Outlook does."""
    if _FORWARDED.match(paragraph[0]):
        return False
    marked = _ORIGINAL.match(text, paragraph.start())
    headers = _HEADERS.match(text, marked.end() if marked else paragraph.start())
    return headers is not None and ("@" in headers[0] or marked is not None)


def _runs(text: str) -> Iterator[str]:
    """Lines that are quoted, with what introduces them, apart from those that are not."""
    own = ""
    for quoted, lines in groupby(text.splitlines(keepends=True), key=lambda x: x.startswith(">")):
        run = "".join(lines)
        if not quoted:
            if own:
                yield own
            own = run
            continue
        introduced = _introduction_start(own)
        if own[:introduced]:
            yield own[:introduced]
        yield f"{own[introduced:]}{run}" if introduced < len(own) else run
        own = ""
    if own:
        yield own


def _introduction_start(own: str) -> int:
    """Where the paragraph begins that says who is quoted; the end where there is none."""
    place = own.rstrip().rfind("\n\n")
    start = place + 2 if place >= 0 else 0
    return start if _INTRODUCTION.match(own, start) else len(own)


def _is_quoted(run: str) -> bool:
    return any(line.startswith(">") for line in run.split("\n"))


def _bytes_of(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text_of(part: EmailMessage, content: bytes) -> str:
    return decode(content, declared=str(part.get_content_charset() or ""))


def _attachments(message: EmailMessage) -> list[EmailMessage]:
    return [part for part in message.iter_attachments() if isinstance(part, EmailMessage)]


def _count_embedded(message: EmailMessage, attached: Sequence[EmailMessage]) -> int:
    """Count the parts within others that are neither attachments nor ways to write the text."""
    own = set(map(id, attached))
    return sum(
        id(part) not in own
        and part.get_content_subtype() not in _SIGNATURES
        and (part.get_content_maintype() != "text" or part.is_attachment())
        for part in _leaves(message)
    )


def _leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the parts of a message that are no groups of others; not those of inner messages."""
    if not part.is_multipart() or part.get_content_maintype() == "message":
        yield part
        return
    for each in part.iter_parts():
        if isinstance(each, EmailMessage):
            yield from _leaves(each)


def _attachment_name(part: EmailMessage) -> str:
    try:
        name = part.get_filename()
    except _PARSER_ERRORS:
        return ""
    return display_name(name) if name else ""


def _attachment_entry(part: EmailMessage) -> dict[str, Any]:
    return {
        "name": _attachment_name(part),
        "media_type": part.get_content_type(),
        "size": len(_bytes_of(part)),
    }


def _attachment_pieces(part: EmailMessage, reading: _Reading, depth: int) -> Iterator[Piece]:
    name = _attachment_name(part)
    heading = f"Attachment: {name or part.get_content_type()}"
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload(0) if part.is_multipart() else None
        if isinstance(inner, EmailMessage) and depth < _MAX_DEPTH:
            _set_charset(inner)
            yield Piece("\nForwarded message\n\n", "heading", "Forwarded message")
            yield from _pieces(inner, reading, depth + 1, "Forwarded message")
        else:
            reading.unread += 1
        return
    content = _bytes_of(part)
    pieces = _content_pieces(part, name, content) if len(content) <= MAX_ATTACHMENT_BYTES else None
    reading.unread += pieces is None and _is_worth_reading(part, content)
    yield Piece(f"\n{heading}\n\n", "heading", heading)
    for piece in pieces or ():
        yield _with_heading(piece, heading)


def _is_worth_reading(part: EmailMessage, content: bytes) -> bool:
    """Return whether there is anything in an attachment that is not counted as parts of it are."""
    if part.get_content_subtype() in _SIGNATURES:
        return False
    return bool(content) or part.get_content_maintype() == "message"


def _with_heading(piece: Piece, heading: str) -> Piece:
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


# --- mail boxes -----------------------------------------------------------------------------------

_SEPARATOR = re.compile(rb"From \S.*\d{4}\b|From \S+ *\r?$|From -\s")
_QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.M)
_HEADER_LINE = re.compile(rb"[!-9;-~]+:")
_MESSAGE_ID = re.compile(rb"^message-id:\s*<?([^>\s]{1,300})", re.I | re.M)
_LINE_BYTES = 1 << 20


def read_box(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the messages of a mail box; one that cannot be read says why."""
    keys = UnitKeys()
    for number, line, content in _messages(path):
        key = keys.new(_message_id(content), content)
        where = f"message {number}, from line {line:,} on"
        if content is None:
            yield broken(key, f"{where}: it has more than {MAX_BYTES >> 20} MB", "")
            continue
        if not _HEADER_LINE.match(content):
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
