"""PDF becomes text page by page; pages that are only pictures are read by OCR where it is there."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import EncryptedSource, MissingReader, UnreadableSource
from memctl.files import open_regular
from memctl.readers.document_properties import (
    DocumentProperties,
    plausible_authors,
    plausible_date,
    plausible_title,
    with_stated_day,
)
from memctl.readers.file_names import (
    clean_title,
    date_from_name,
    date_from_title,
    display_name,
    title_from_name,
)
from memctl.readers.media.image_ocr import Ocr, find_ocr
from memctl.readers.pdf.page_paragraphs import clean_pages
from memctl.readers.pdf.page_text import (
    STEPS_OF_ANY,
    STEPS_PER_BYTE,
    Fonts,
    Line,
    StepBudget,
    page_lines,
    text_of,
    title_page_subject,
)
from memctl.readers.pieces import PART_CHARS, Piece, assemble, new_document, storable_text
from memctl.readers.reader_errors import PARSER_ERRORS, damage_as_unreadable, without_warnings
from memctl.records import SourceText

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdf import PageObject, PdfReader


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
        with damage_as_unreadable(name, "a PDF", *pdf_errors()), without_warnings():
            count = len(reader.pages)
            head = _head(reader, name, count)
        work = StepBudget(display_name(name), STEPS_OF_ANY + STEPS_PER_BYTE * path.stat().st_size)
        yield from _parts(reader, head, page_texts(reader, count, work), count, path, name)


def _open(file: IO[bytes], name: str) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    with damage_as_unreadable(name, "a PDF", *pdf_errors()), without_warnings():
        if b"%PDF-" not in file.read(_BEGINS_WITHIN):
            raise ValueError("it does not begin like one")
        try:
            reader = PdfReader(file)
            locked = reader.is_encrypted and not reader.decrypt("")
        except DependencyError as error:
            raise MissingReader(
                f"{display_name(name)} is encrypted in a way that needs the cryptography package",
                "pip install 'pypdf[crypto]'",
            ) from error
    if locked:
        raise EncryptedSource(
            f"{display_name(name)} is protected by a password", "save it without one and try again"
        )
    return reader


def _head(reader: PdfReader, name: str, pages: int) -> SourceText:
    facts = pdf_properties(reader)
    title = "" if facts.title == PurePath(name).stem else facts.title
    return new_document(
        title=title or title_from_name(name),
        authors=facts.authors,
        created_at=date_from_name(name) or facts.created_at or date_from_title(title),
        metadata={"pages": pages, **facts.metadata},
    )


def _parts(
    reader: PdfReader,
    head: SourceText,
    texts: Iterable[PageText],
    count: int,
    path: Path,
    name: str,
) -> Iterator[SourceText]:
    headings, part = Headings(reader), 0
    for pages in _batches(texts):
        if part == 0 and count > 1:
            headings.subject = title_page_subject(head.title, [page.lines for page in pages])
        if part == 0 and all(page.damaged for page in pages):
            raise UnreadableSource(
                f"{display_name(name)} is a damaged PDF: no page of it can be read",
                "open it in the program it comes from, save it again and retry",
            )
        pieces = list(_page_pieces(pages, headings))
        head = with_stated_day(head, pieces, path) if part == 0 else head
        if pages[-1].number == count:
            pieces.extend(_form_pieces(reader))
        missing = (PAGE_TEXT,) if any(page.incomplete for page in pages) else ()
        if missing and not pieces:
            pieces = [_placeholder(head, pages)]
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


def _placeholder(head: SourceText, pages: Sequence[PageText]) -> Piece:
    """What stands for pages of which nothing could be read, so that they can be found by name."""
    first, last = pages[0].number, pages[-1].number
    span = f"page {first}" if first == last else f"pages {first} to {last}"
    return Piece(f"PDF document “{head.title}”, {span}, without readable text.\n", "properties")


OCR_PAGES = 200
"""At most this many pages of one file are read by OCR; each takes about a second."""

_LITTLE_TEXT = 20
"""A page with fewer characters than this may be a picture of a page."""
_PAGE_IMAGES = 30
_MIN_IMAGE_SIZE = 100
_MAX_DRAWING = 500
_MAX_HEADINGS = 5_000
_NOTES = {"/Text", "/FreeText", "/Highlight", "/Underline", "/StrikeOut", "/Squiggly", "/Caret"}


class PageText(Struct, frozen=True):
    """What was read of one page; ``incomplete`` when there is more that could not be."""

    number: int
    text: str = ""
    notes: tuple[str, ...] = ()
    incomplete: bool = False
    damaged: bool = False
    lines: tuple[Line, ...] = ()


def pdf_errors() -> tuple[type[Exception], ...]:
    """What pypdf raises, its own exceptions and those that it lets through."""
    from pypdf.errors import DependencyError, PyPdfError

    return (*PARSER_ERRORS, PyPdfError, DependencyError)


def page_texts(reader: PdfReader, count: int, work: StepBudget) -> Iterator[PageText]:
    """Read page by page; one damaged page is no reason to lose the others.

    A page listed several times, which only damaged files have, is read once.
    """
    ocr, left, errors, fonts = find_ocr(), OCR_PAGES, pdf_errors(), Fonts()
    read: set[int] = set()
    for index in range(count):
        try:
            with without_warnings():
                source = reader.pages[index]
                place, page = source.indirect_reference, PageText(index + 1)
                is_read = place is not None and place.idnum in read
                if not is_read:
                    page = _layer(source, index + 1, fonts, work)
        except errors:
            yield PageText(index + 1, incomplete=True, damaged=True)
            continue
        if place is not None:
            read.add(place.idnum)
        if not is_read and len(page.text.strip()) < _LITTLE_TEXT:
            try:
                with without_warnings():
                    page, tried = _with_seen_text(reader, page, ocr if left else None)
                left -= tried
            except errors:
                page = replace(page, incomplete=True)
        yield page


def _layer(page: PageObject, number: int, fonts: Fonts, work: StepBudget) -> PageText:
    """The text layer of a page and the notes that people wrote on it."""
    lines = page_lines(page, fonts, work)
    return PageText(number, text_of(lines), tuple(_notes(page)), lines=tuple(lines))


def _notes(page: PageObject) -> Iterator[str]:
    for reference in page.annotations or ():
        note: Any = reference.get_object()
        contents = note.get("/Contents") if isinstance(note, dict) else None
        if isinstance(contents, str) and note.get("/Subtype") in _NOTES and contents.strip():
            yield contents.strip()


# --- pages that are pictures ---------------------------------------------------------------------


def _with_seen_text(reader: PdfReader, page: PageText, ocr: Ocr | None) -> tuple[PageText, bool]:
    """The page with the text in its pictures, and whether OCR was at work."""
    source = reader.pages[page.number - 1]
    names = source.images.keys()[:_PAGE_IMAGES]
    if not names:
        return replace(page, incomplete=not page.text.strip() and _is_drawn(source)), False
    if ocr is None:
        return replace(page, incomplete=not page.text.strip()), False
    seen = [_seen_text(source, name, ocr) for name in names]
    text = "\n\n".join(filter(None, [page.text.strip(), *seen]))
    return replace(page, text=text, incomplete=None in seen), True


def _seen_text(page: PageObject, name: Any, ocr: Ocr) -> str | None:
    """The text in one picture; None when it could not be decoded or read."""
    try:
        image = page.images[name].image
        if image is None:
            return None
        if min(image.size) < _MIN_IMAGE_SIZE:
            return ""
        return ocr.read(_rotate(image, page.rotation))
    except pdf_errors():
        return None


def _rotate(image: Image, clockwise: int) -> Image:
    return image.rotate(-clockwise, expand=True) if clockwise % 360 else image


def _is_drawn(page: PageObject) -> bool:
    """Return whether a page without letters still shows something: text can be drawn as shapes."""
    contents = page.get_contents()
    return contents is not None and len(contents.get_data()) > _MAX_DRAWING


# --- what stands above and beside the pages ------------------------------------------------------


class Headings:
    """The path of bookmarks that a page lies under."""

    def __init__(self, reader: PdfReader) -> None:
        starts: dict[int, str] = {}
        with suppress(*pdf_errors()), without_warnings():
            for page, path in _bookmarks(reader, reader.outline, ()):
                starts.setdefault(page, " > ".join(path))
                if len(starts) >= _MAX_HEADINGS:
                    break
        self._starts = starts
        self._pages = sorted(starts)
        self.subject = ""
        """Stands above all other headings."""

    def above(self, number: int) -> str:
        """The heading that begins on the page, or else the last one before it."""
        place = bisect_right(self._pages, number)
        path = self._starts[self._pages[place - 1]] if place else ""
        return " > ".join(filter(None, (self.subject, path)))


def _bookmarks(
    reader: PdfReader, entries: Any, above: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Page number and path of every bookmark; a list holds the children of the entry before it."""
    path = above
    for entry in entries:
        if isinstance(entry, list):
            yield from _bookmarks(reader, entry, path)
            continue
        path = (*above, clean_title(str(entry.title)))
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0:
            yield page + 1, path


def form_fields(reader: PdfReader) -> Mapping[str, str]:
    """What has been filled into the form's text fields."""
    with suppress(*pdf_errors()), without_warnings():
        fields = reader.get_form_text_fields() or {}
        return {str(key): str(value).strip() for key, value in fields.items() if value}
    return {}


_MAX_LENGTH = 1_000


def pdf_properties(reader: PdfReader) -> DocumentProperties:
    """Read the information dictionary, and XMP for what that lacks."""
    from pypdf.errors import PyPdfError

    info: Mapping[str, Any] = {}
    with suppress(*PARSER_ERRORS, PyPdfError):
        info = _information(reader)
    if not (info.get("title") and info.get("author") and info.get("created")):
        with suppress(*PARSER_ERRORS, PyPdfError):
            info = _xmp(reader) | {key: value for key, value in info.items() if value}
    return DocumentProperties(
        title=plausible_title(_text(info.get("title"))),
        authors=plausible_authors(_text(info.get("author"))),
        created_at=plausible_date(info.get("created")),
        metadata={
            key: text for key in ("subject", "keywords") if (text := _stated_text(info.get(key)))
        },
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
    with suppress(*PARSER_ERRORS):
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
    return storable_text(value)[:_MAX_LENGTH] if isinstance(value, str) else ""


def _stated_text(value: object) -> str:
    text = clean_title(_text(value))
    return "" if text.lower().strip("()") in ("unspecified", "none") else text
