"""One page of a PDF after the other: its text, its notes, and the text in its pictures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memctl.readers.damage import DAMAGE, without_warnings
from memctl.readers.names import clean_title
from memctl.readers.ocr import Ocr, find_ocr

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdf import PageObject, PdfReader

OCR_PAGES = 200
"""So many pages of one file are read by OCR at most; each takes a second or so."""

CELL_BAR = " | "
"""Stands between what is far apart on one line."""

_SAME_LINE = 0.3
_CELL_GAP = 1.5
_LETTER_WIDTH = 0.5
"""Of the font size, as most letters have it."""
_EM = 1000
"""The font size, in the unit of moves within a line."""
_WORD_GAP = 140
"""In that unit; letters of a word stand closer, words that were squeezed into a line farther."""
_LITTLE_TEXT = 20
"""A page with fewer characters than this may be a picture of a page."""
_PAGE_IMAGES = 30
_SMALLEST_IMAGE = 100
_MOST_DRAWING = 500
_MOST_HEADINGS = 5_000
_NOTES = {"/Text", "/FreeText", "/Highlight", "/Underline", "/StrikeOut", "/Squiggly", "/Caret"}


@dataclass(frozen=True, slots=True)
class PageText:
    """What was read of one page; ``incomplete`` when there is more that could not be."""

    number: int
    text: str = ""
    notes: tuple[str, ...] = ()
    incomplete: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """Text in one piece and where it begins on the page, in points."""

    text: str
    x: float
    y: float
    size: float


def pdf_errors() -> tuple[type[Exception], ...]:
    """What pypdf raises, its own exceptions and those that it lets through."""
    from pypdf.errors import DependencyError, PyPdfError

    return (*DAMAGE, PyPdfError, DependencyError)


def page_texts(reader: PdfReader, count: int) -> Iterator[PageText]:
    """Read page by page; one damaged page is no reason to lose the others.

    A page that stands in several places, as none does that a program wrote, is read in the first.
    """
    ocr, left, errors = find_ocr(), OCR_PAGES, pdf_errors()
    read: set[int] = set()
    for index in range(count):
        try:
            with without_warnings():
                place = reader.pages[index].indirect_reference
                is_read = place is not None and place.idnum in read
                page = PageText(index + 1) if is_read else _layer(reader, index)
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


def _layer(reader: PdfReader, index: int) -> PageText:
    """The text layer of a page and the notes that people wrote on it."""
    page = reader.pages[index]
    return PageText(index + 1, _laid_out(page), tuple(_notes(page)))


def _laid_out(page: PageObject) -> str:
    """The page's text with what stands on one line in one line.

    pypdf (7.1) begins a new line for every cell of a table.  Only neighbours in the page's own
    order are joined, so columns of running text stay apart.
    """
    from pypdf import mult

    runs: list[_Run] = []

    def keep(text: str, cm: Any, tm: Any, _font: Any, size: float) -> None:
        """Note a run of text with its place on the page and its height, both in points."""
        if text:
            place = mult(tm, cm)
            runs.append(_Run(text, place[4], place[5], abs(size * place[3]) or size))

    whole = page.extract_text(visitor_operand_before=_tell_words_apart, visitor_text=keep)
    joined = "".join(run.text for run in runs)
    return "".join(_joined(runs)) if joined == whole else whole


def _tell_words_apart(operator: bytes, operands: list[Any], _cm: Any, _tm: Any) -> None:
    """Have pypdf see every gap between words that a line of text is moved by.

    TeX writes no spaces, only gaps, in fonts that may have no space.  pypdf (7.1, issue 3978) then
    takes the width of some other letter for that of a space, and a gap has to be half as wide.  Of
    a gap in two moves, which end where the one did, the first is as wide as any letter.
    """
    if operator != b"TJ" or not operands or not isinstance(operands[0], list):
        return
    shown: list[Any] = []
    for each in operands[0]:
        is_gap = isinstance(each, int | float) and -each >= _WORD_GAP
        shown += [-_EM, each + _EM] if is_gap else [each]
    operands[0][:] = shown


def _joined(runs: Sequence[_Run]) -> Iterator[str]:
    last: _Run | None = None
    for run in runs:
        if not run.text.strip():
            yield run.text if last is None or not last.text.endswith("\n") else ""
            continue
        if last is not None:
            yield _between(last, run)
        yield run.text.rstrip("\n")
        last = run
    yield "\n"


def _between(last: _Run, run: _Run) -> str:
    """What stands between two runs: their line end, or a bar or a space where they share a line."""
    ends = last.text[len(last.text.rstrip("\n")) :]
    is_same_line = abs(run.y - last.y) < _SAME_LINE * run.size
    gap = run.x - last.x - _LETTER_WIDTH * last.size * len(last.text.strip())
    if not ends or not is_same_line or gap < -run.size:
        return ends
    return CELL_BAR if gap > _CELL_GAP * run.size else " "


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
        if min(image.size) < _SMALLEST_IMAGE:
            return ""
        return ocr.read(_turned(image, page.rotation))
    except pdf_errors():
        return None


def _turned(image: Image, clockwise: int) -> Image:
    return image.rotate(-clockwise, expand=True) if clockwise % 360 else image


def _is_drawn(page: PageObject) -> bool:
    """Whether a page without letters still shows something: text can be drawn as shapes."""
    contents = page.get_contents()
    return contents is not None and len(contents.get_data()) > _MOST_DRAWING


# --- what stands above and beside the pages ------------------------------------------------------


class Headings:
    """The path of bookmarks that a page lies under."""

    def __init__(self, reader: PdfReader) -> None:
        starts: dict[int, str] = {}
        with suppress(*pdf_errors()), without_warnings():
            for page, path in _bookmarks(reader, reader.outline, ()):
                starts.setdefault(page, " > ".join(path))
                if len(starts) >= _MOST_HEADINGS:
                    break
        self._starts = starts
        self._pages = sorted(starts)

    def above(self, number: int) -> str:
        """The heading that begins on the page, or else the last one before it."""
        place = bisect_right(self._pages, number)
        return self._starts[self._pages[place - 1]] if place else ""


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
