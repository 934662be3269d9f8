"""PDF becomes text page by page; pages that are only pictures are read by OCR where it is there."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING

from memctl.errors import EncryptedSource, MissingReader, UnreadableSource
from memctl.files import open_regular
from memctl.readers.damage import told_as_damage, without_warnings
from memctl.readers.names import date_from_name, shown_name, title_from_name
from memctl.readers.page_text import clean_pages
from memctl.readers.pdf_facts import facts_of
from memctl.readers.pdf_pages import Headings, PageText, form_fields, page_texts, pdf_errors
from memctl.readers.pieces import PART_CHARS, Piece, assemble
from memctl.records import SourceText

if TYPE_CHECKING:
    from pypdf import PdfReader

READER = "pdf/2"
MEDIA_TYPE = "application/pdf"
PAGE_TEXT = "page text"
_BEGINS_WITHIN = 1 << 16
"""Bytes; pypdf would look through all of a file that is none, for minutes."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the text of a PDF, in parts of about a million characters.

    Raises:
        EncryptedSource: It cannot be opened without a password.
        UnreadableSource: It is damaged beyond what can be repaired.
    """
    # pypdf logs what it finds odd; without a handler Python prints that on stderr.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with open_regular(path) as file:
        reader = _open(file, name)
        with told_as_damage(name, "a PDF", *pdf_errors()), without_warnings():
            count = len(reader.pages)
            head = _head(reader, name, count)
        yield from _parts(reader, head, count, name)


def _open(file: IO[bytes], name: str) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    with told_as_damage(name, "a PDF", *pdf_errors()), without_warnings():
        if b"%PDF-" not in file.read(_BEGINS_WITHIN):
            raise ValueError("it does not begin like one")
        try:
            reader = PdfReader(file)
            locked = reader.is_encrypted and not reader.decrypt("")
        except DependencyError as error:
            raise MissingReader(
                f"{shown_name(name)} is encrypted in a way that needs the cryptography package",
                "pip install 'pypdf[crypto]'",
            ) from error
    if locked:
        raise EncryptedSource(
            f"{shown_name(name)} is protected by a password", "save it without one and try again"
        )
    return reader


def _head(reader: PdfReader, name: str, pages: int) -> SourceText:
    facts = facts_of(reader)
    title = "" if facts.title == PurePath(name).stem else facts.title
    return SourceText(
        text="",
        media_type=MEDIA_TYPE,
        reader=READER,
        title=title or title_from_name(name),
        authors=facts.authors,
        created_at=facts.created_at or date_from_name(name),
        metadata={"pages": pages, **facts.metadata},
    )


def _parts(reader: PdfReader, head: SourceText, count: int, name: str) -> Iterator[SourceText]:
    headings, part = Headings(reader), 0
    for pages in _batches(page_texts(reader, count)):
        if part == 0 and all(page.damaged for page in pages):
            raise UnreadableSource(
                f"{shown_name(name)} is a damaged PDF: no page of it can be read",
                "open it in the program it comes from, save it again and retry",
            )
        pieces = list(_page_pieces(pages, headings))
        if pages[-1].number == count:
            pieces.extend(_form_pieces(reader))
        missing = (PAGE_TEXT,) if any(page.incomplete for page in pages) else ()
        if missing and not pieces:
            pieces = [_nothing_read(head, pages)]
        for source in assemble(replace(head, missing=missing), pieces):
            yield replace(source, part=part)
            part += 1


def _batches(pages: Iterable[PageText]) -> Iterator[list[PageText]]:
    """Pages in groups whose text makes up one part."""
    batch: list[PageText] = []
    length = 0
    for page in pages:
        if batch and length + len(page.text) > PART_CHARS:
            yield batch
            batch, length = [], 0
        batch.append(page)
        length += len(page.text)
    if batch:
        yield batch


def _page_pieces(pages: Sequence[PageText], headings: Headings) -> Iterator[Piece]:
    texts = clean_pages([page.text for page in pages])
    for page, text in zip(pages, texts, strict=True):
        heading = headings.above(page.number)
        if text.strip():
            yield Piece(text.rstrip() + "\n\n", heading=heading, page=page.number)
        for note in page.notes:
            yield Piece(f"Note: {note}\n\n", "caption", heading, page.number)


def _form_pieces(reader: PdfReader) -> Iterator[Piece]:
    lines = [f"{key}: {value}\n" for key, value in form_fields(reader).items()]
    if lines:
        yield Piece("".join(lines), "properties")


def _nothing_read(head: SourceText, pages: Sequence[PageText]) -> Piece:
    """What stands for pages of which nothing could be read, so that they can be found by name."""
    first, last = pages[0].number, pages[-1].number
    span = f"page {first}" if first == last else f"pages {first} to {last}"
    return Piece(f"PDF document “{head.title}”, {span}, without readable text.\n", "properties")
