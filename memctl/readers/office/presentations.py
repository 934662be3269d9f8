"""PowerPoint slides become pages: title, text, tables, chart data and the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from memctl.files import open_regular
from memctl.readers.data_files.table_rows import grid_pieces
from memctl.readers.document_properties import with_stated_day
from memctl.readers.file_names import clean_title
from memctl.readers.office.office_files import POWERPOINT, check_archive, head_of, import_library
from memctl.readers.office.spreadsheets import cell_text
from memctl.readers.pieces import Piece, assemble
from memctl.readers.reader_errors import damage_as_unreadable, limit_expansion, without_warnings
from memctl.records import SourceText

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_ROW, _CELL = f"{_A}tr", f"{_A}tc"
_MAX_GROUP_DEPTH = 20


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield slides as pages, with their tables and the speaker's notes; raises as for Word."""
    pptx = import_library("pptx", name, POWERPOINT)
    check_archive(path, name, POWERPOINT)
    own = pptx.exc.PythonPptxError
    with (
        open_regular(path) as file,
        without_warnings(),
        damage_as_unreadable(name, POWERPOINT, own),
    ):
        deck = pptx.Presentation(file)
        found = _pieces(deck.slides)
        pieces = list(limit_expansion(found, path, name))
        title = next((piece.heading for piece in pieces if piece.page == 1), "")
        head = head_of(deck.core_properties, name, title, slides=len(deck.slides))
    yield from assemble(with_stated_day(head, pieces, path), pieces)


def _pieces(slides: Iterable[Any]) -> Iterator[Piece]:
    read = set()
    for number, slide in enumerate(slides, 1):
        if slide.part.partname in read:  # the very same slide is never shown twice
            continue
        read.add(slide.part.partname)
        title = slide.shapes.title
        heading = clean_title(title.text_frame.text) if title is not None else ""
        if heading:
            yield Piece(heading + "\n\n", "heading", heading, number)
        skipped = title.shape_id if title is not None else None
        for shape in _leaves(slide.shapes):
            if shape.shape_id != skipped:
                yield from _shape_pieces(shape, heading, number)
        if slide.has_notes_slide and (notes := _frame_text(slide.notes_slide.notes_text_frame)):
            yield Piece(f"Notes: {notes}\n\n", "prose", heading, number)


def _leaves(shapes: Iterable[Any], depth: int = 0) -> Iterator[Any]:
    """The shapes, those in groups included."""
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _MAX_GROUP_DEPTH:
            yield from _leaves(shape.shapes, depth + 1)
        else:
            yield shape


def _shape_pieces(shape: Any, heading: str, page: int) -> Iterator[Piece]:
    if shape.has_text_frame and (text := _frame_text(shape.text_frame)):
        yield Piece(text + "\n\n", "prose", heading, page)
    elif getattr(shape, "has_table", False):
        yield from grid_pieces(_table_rows(shape), heading=heading, page=page)
        yield Piece("\n")
    elif getattr(shape, "has_chart", False):
        yield from _chart_pieces(shape.chart, heading, page)


def _table_rows(shape: Any) -> Iterator[list[str]]:
    """Rows of cells; python-pptx (1.0) looks through the whole table for each row."""
    cells = shape.table.iter_cells()
    for row in shape.element.iter(_ROW):
        yield [cell.text for cell in islice(cells, len(row.findall(_CELL)))]


def _frame_text(frame: Any) -> str:
    if frame is None:
        return ""
    lines = (" ".join(paragraph.text.split()) for paragraph in frame.paragraphs)
    return "\n".join(line for line in lines if line)


def _chart_pieces(chart: Any, heading: str, page: int) -> Iterator[Piece]:
    """The numbers behind a chart as a table of a row for each category."""
    if chart.has_title and (title := _frame_text(chart.chart_title.text_frame)):
        yield Piece(title + "\n\n", "caption", heading, page)
    series = list(chart.element.iter(f"{_C}ser"))
    categories = _points(series[0], "cat") if series else {}
    if not categories:
        return
    names = [next(iter(_points(one, "tx").values()), "") for one in series]
    columns = [_points(one, "val") for one in series]
    rows = (
        [category, *(_number(column.get(place, "")) for column in columns)]
        for place, category in categories.items()
    )
    yield from grid_pieces(chain([["category", *names]], rows), heading=heading, page=page)
    yield Piece("\n")


def _points(series: Any, kind: str) -> dict[str, str]:
    """The names or numbers of a series that are written down, by their place.

    A chart says how many points it has, and python-pptx (1.0) looks for each of so many.
    """
    data = series.find(f"{_C}{kind}")
    if data is None:
        return {}
    level = next(data.iter(f"{_C}lvl"), data)
    return {point.get("idx"): point.findtext(f"{_C}v", "") for point in level.iter(f"{_C}pt")}


def _number(text: str) -> str:
    try:
        return cell_text(float(text))
    except ValueError:
        return text
