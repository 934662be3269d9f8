"""Jupyter notebooks: the cells in their order, with what they printed and without its pictures.

See https://nbformat.readthedocs.io/.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memctl.files import read_regular
from memctl.readers.data_files.structured_data import parse_json
from memctl.readers.document_properties import document_properties
from memctl.readers.markup.markdown_files import MarkdownReader
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.reader_errors import check_size
from memctl.readers.text_files.decoding import decode
from memctl.readers.text_files.headed_text import prose_pieces
from memctl.readers.text_files.plain_text import code_pieces
from memctl.records import SourceText

MAX_BYTES = 100 * 1024 * 1024
MAX_OUTPUT = 2_000
"""Characters of what one cell printed."""


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the text of a notebook.

    Raises:
        UnreadableSource: It is too big, or no JSON.
    """
    check_size(path, name, MAX_BYTES)
    book = parse_json(decode(read_regular(path)))
    book = book if isinstance(book, dict) else {}
    pieces = [piece for cell in _cells(book) for piece in _cell_pieces(cell)]
    facts = document_properties(_dictionary(book.get("metadata")))
    first = next((piece.heading for piece in pieces if piece.kind == "heading"), "")
    head = named_document(
        name, title=facts.title or first, authors=facts.authors, created_at=facts.created_at
    )
    yield from assemble(head, pieces)


def _dictionary(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cells; the format of before 2014 has them in worksheets."""
    sheets = notebook.get("worksheets")
    for holder in [notebook, *(sheets if isinstance(sheets, list) else ())]:
        cells = _dictionary(holder).get("cells")
        yield from map(_dictionary, cells if isinstance(cells, list) else ())


def _cell_pieces(cell: dict[str, Any]) -> Iterator[Piece]:
    source = _join(cell.get("source", cell.get("input"))).strip()
    if cell.get("cell_type") == "code":
        if source:
            yield from code_pieces(source + "\n\n")
        outputs = cell.get("outputs")
        printed = "".join(map(_output_text, outputs if isinstance(outputs, list) else ())).strip()
        if printed:
            yield Piece(f"Output: {printed[:MAX_OUTPUT]}\n\n", "code")
    elif source and cell.get("cell_type") == "markdown":
        yield from MarkdownReader().pieces(source + "\n\n")
    elif source:
        yield from prose_pieces(source + "\n\n")


def _output_text(output: object) -> str:
    """What an output says as text, whatever else it shows."""
    said = _dictionary(output)
    if said.get("output_type") == "error":
        return f"{said.get('ename', '')}: {said.get('evalue', '')}\n"
    shown = _dictionary(said.get("data")).get("text/plain", said.get("text"))
    return _join(shown).rstrip()[:MAX_OUTPUT] + "\n"


def _join(text: object) -> str:
    parts = text if isinstance(text, list) else [text]
    return "".join(part for part in parts if isinstance(part, str))
