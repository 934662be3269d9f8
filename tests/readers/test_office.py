"""Word, PowerPoint and Excel files: structure, tables, properties, bombs and damage."""

from __future__ import annotations

import io
import random
import sys
import warnings
import zipfile
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from timeless import timeless

from memctl.errors import EmptySource, EncryptedSource, MissingReader, UnreadableSource
from memctl.readers import read
from memctl.readers.data_files.table_rows import grid_pieces
from memctl.readers.file_kinds import ReadFunction, kind_by_extension
from memctl.readers.office import office_files
from memctl.readers.office.office_files import MAX_BYTES, MAX_RATIO, check_archive
from memctl.readers.office.spreadsheets import ROW_MEMBERS
from memctl.records import SourceText

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
ORDERS = [["Date", "Who", "Kilos"], ["2026-03-01", "Café Nord", "12"], ["2026-03-02", "Ann", "3"]]


def reader_of(path: Path) -> ReadFunction:
    kind = kind_by_extension(path.name)
    assert kind is not None
    return kind.load()


def fill(table: Any, rows: list[list[str]]) -> None:
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text


def word_file(path: Path) -> Path:
    document = docx.Document()
    document.core_properties.author = "Mara Lind"
    document.core_properties.created = datetime(2026, 4, 20, 9, 0, tzinfo=UTC)
    document.core_properties.keywords = "lease, workshop"
    document.add_heading("The lease", 0)
    document.add_heading("Terms", 1)
    document.add_paragraph("The lease starts on 1 June 2026.")
    document.add_paragraph("Pay the deposit", style="List Bullet")
    document.add_paragraph("Sign", style="List Bullet")
    document.add_heading("Orders", 2)
    fill(document.add_table(3, 3), ORDERS)
    document.save(str(path))
    return path


def slide_file(path: Path) -> Path:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Moving plan"
    slide.placeholders[1].text = "Pack\nMove"
    slide.notes_slide.notes_text_frame.text = "Thank everybody"
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Orders"
    fill(slide.shapes.add_table(3, 3, 0, 0, 3_000_000, 900_000).table, ORDERS)
    data = CategoryChartData()
    data.categories = ["April", "May"]
    data.add_series("Sales", (1.5, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 900_000, 900_000, data)
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 900_000, 900_000).text_frame.text = "Inside a group"
    deck.save(str(path))
    return path


def sheet_file(path: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in (sheets or {"Orders": ORDERS}).items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def read_one(path: Path) -> SourceText:
    (source,) = read(path)
    return source


def parts_of(source: SourceText, kind: str) -> list[str]:
    return [source.text[s.start : s.end] for s in source.segments if s.kind == kind]


# --- Word ----------------------------------------------------------------------------------------


def test_word_paragraphs_stand_under_their_headings(tmp_path: Path) -> None:
    source = read_one(word_file(tmp_path / "a.docx"))
    lease = next(s for s in source.segments if "1 June" in source.text[s.start : s.end])
    assert lease.heading == "The lease > Terms"
    assert parts_of(source, "heading") == ["The lease", "Terms", "Orders"]
    assert "- Pay the deposit\n- Sign\n\n" in source.text


def test_word_properties_become_those_of_the_document(tmp_path: Path) -> None:
    source = read_one(word_file(tmp_path / "a.docx"))
    assert source.title == "The lease"
    assert source.authors == ("Mara Lind",)
    assert source.created_at == datetime(2026, 4, 20, 9, tzinfo=UTC)
    assert source.tags == ("lease", "workshop")


def test_the_day_that_the_text_states_goes_before_that_of_the_file(tmp_path: Path) -> None:
    document = docx.Document()
    document.core_properties.created = datetime(2026, 11, 30, tzinfo=UTC)
    document.add_heading("Supply agreement", 1)
    document.add_paragraph("Dated 2 February 2026")
    document.save(str(tmp_path / "a.docx"))
    assert read_one(tmp_path / "a.docx").created_at == datetime(2026, 2, 2, tzinfo=UTC)
    above: list[list[object]] = [["Price list"], ["Last updated: 2 February 2026"], []]
    source = read_one(sheet_file(tmp_path / "a.xlsx", Prices=[*above, *ORDERS]))
    assert source.created_at == datetime(2026, 2, 2, tzinfo=UTC)


def test_the_day_of_a_row_is_not_that_of_its_sheet(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Date", "Kilos"], ["2026-03-01", 12], ["2026-03-01", 3]]
    source = read_one(sheet_file(tmp_path / "a.xlsx", Orders=rows))
    assert source.created_at != datetime(2026, 3, 1, tzinfo=UTC)


def test_properties_of_the_template_are_not_the_documents(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("Words")
    document.save(str(tmp_path / "2026-05-02 minutes.docx"))
    source = read_one(tmp_path / "2026-05-02 minutes.docx")
    assert (source.title, source.authors) == ("2026-05-02 minutes", ())
    assert source.created_at == datetime(2026, 5, 2, tzinfo=UTC)
    assert source.metadata == {}


def test_word_tables_become_rows_with_their_header(tmp_path: Path) -> None:
    source = read_one(word_file(tmp_path / "a.docx"))
    (table,) = parts_of(source, "table")
    assert "Date: 2026-03-01; Who: Café Nord; Kilos: 12" in table
    assert source.segments[-1].heading == "The lease > Terms > Orders"


def test_merged_cells_are_said_in_each_row(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    fill(table, [["Who", "Item", "Kilos"], ["Café Nord", "Kenya", "12"], ["", "Peru", "9"]])
    table.cell(1, 0).merge(table.cell(2, 0))
    document.save(str(tmp_path / "a.docx"))
    assert "Who: Café Nord; Item: Peru; Kilos: 9" in read_one(tmp_path / "a.docx").text


def test_text_in_controls_boxes_and_insertions_is_read_and_deletions_are_not(
    tmp_path: Path,
) -> None:
    document = docx.Document()
    body = document.element.body
    for inner in (
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        "<w:p><w:ins><w:r><w:t>Just inserted</w:t></w:r></w:ins></w:p>",
        "<w:p><w:del><w:r><w:delText>Thrown out</w:delText></w:r></w:del>"
        "<w:r><w:t>kept</w:t></w:r></w:p>",
    ):
        element = parse_xml(f"<w:body {_W}>{inner}</w:body>")[0]
        body.insert(0, element)
    document.save(str(tmp_path / "a.docx"))
    text = read_one(tmp_path / "a.docx").text
    assert "In a control" in text
    assert "Just inserted" in text
    assert "Thrown out" not in text


def test_comments_are_read_with_their_author(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The deposit is 4,200 euros.")
    document.add_comment(paragraph.runs, text="Is that with tax?", author="Jon", initials="J")
    document.save(str(tmp_path / "a.docx"))
    assert "Comment by Jon: Is that with tax?" in read_one(tmp_path / "a.docx").text


# --- PowerPoint ----------------------------------------------------------------------------------


def test_slides_are_pages_with_title_text_and_notes(tmp_path: Path) -> None:
    source = read_one(slide_file(tmp_path / "a.pptx"))
    assert source.title == "Moving plan"
    assert {s.page for s in source.segments} == {1, 2}
    first = "".join(source.text[s.start : s.end] + "|" for s in source.segments if s.page == 1)
    assert first == "Moving plan|Pack\nMove|Notes: Thank everybody|"


def test_tables_charts_and_groups_on_slides_are_read(tmp_path: Path) -> None:
    source = read_one(slide_file(tmp_path / "a.pptx"))
    assert "Who: Café Nord; Kilos: 12" in source.text
    assert "category: May; Sales: 2" in source.text
    assert "Inside a group" in source.text
    assert all(s.heading == "Orders" for s in source.segments if s.kind == "table")


# --- Excel ---------------------------------------------------------------------------------------


def test_sheets_become_rows_with_header_sheet_and_row_number(tmp_path: Path) -> None:
    path = sheet_file(tmp_path / "a.xlsx", Orders=[*ORDERS], Plan=[["Pack", "Move"], [1, 2]])
    source = read_one(path)
    tables = [s for s in source.segments if s.kind == "table"]
    assert [(s.heading, s.page, s.row) for s in tables] == [("Orders", 1, 1), ("Plan", 2, 1)]
    assert "Date: 2026-03-02; Who: Ann; Kilos: 3" in source.text
    assert source.metadata["sheets"] == ["Orders", "Plan"]


def test_cells_read_as_a_person_would_write_them(tmp_path: Path) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)  # Excel knows no zones
    moment = day.replace(hour=9, minute=30)
    cells = [day, moment, date(2026, 3, 2), time(8, 15), 0.1 + 0.2, 12.0, True]
    path = sheet_file(tmp_path / "a.xlsx", Kinds=[[f"c{n}" for n in range(7)], cells])
    expected = "2026-03-01", "2026-03-01 09:30:00", "2026-03-02", "08:15:00", "0.3", "12", "yes"
    assert read_one(path).text.strip() == "; ".join(f"c{n}: {x}" for n, x in enumerate(expected))


def test_lines_above_a_table_and_blank_rows_are_not_taken_for_rows(tmp_path: Path) -> None:
    rows = [["Orders of spring 2026"], [], ["", *ORDERS[0]], ["", *ORDERS[1]], [], ["", *ORDERS[2]]]
    source = read_one(sheet_file(tmp_path / "a.xlsx", Orders=rows))
    assert parts_of(source, "prose") == ["Orders of spring 2026"]
    (table,) = parts_of(source, "table")
    assert table.splitlines()[1] == "Date: 2026-03-02; Who: Ann; Kilos: 3"


def test_a_long_sheet_comes_in_parts_and_rows_are_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.readers.office import spreadsheets
    from memctl.readers.pieces import assemble

    monkeypatch.setattr(
        spreadsheets, "assemble", lambda head, pieces: assemble(head, pieces, 2_000)
    )
    rows: list[list[object]] = [["Number", "Word"], *([n, f"word{n}"] for n in range(1, 501))]
    parts = list(spreadsheets.read(sheet_file(tmp_path / "a.xlsx", Long=rows), "a.xlsx"))
    assert len(parts) > 5
    for part in parts:
        segment = part.segments[-1]
        first_line = part.text[segment.start : segment.end].splitlines()[0]
        assert first_line == f"Number: {segment.row}; Word: word{segment.row}"


def test_a_workbook_that_makes_the_library_warn_is_read_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = sheet_file(tmp_path / "a.xlsx", Dates=[["When", "What"], [date(2026, 1, 1), "x"]])
    rewrite(path, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b">46023<", b">9e15<"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "What: x" in read_one(path).text
    assert capfd.readouterr().err == ""


def rewrite(path: Path, member: str, change: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    assert members[member] != change(members[member])
    members[member] = change(members[member])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


# --- grids ---------------------------------------------------------------------------------------


def kinds(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(piece.kind, piece.text.strip()) for piece in grid_pieces(rows)]


def test_labels_with_colons_are_read_across() -> None:
    rows = [["Landlord:", "Jon Oak"], ["Agent:", "Eva"]]
    assert kinds(rows) == [("table", "Landlord: Jon Oak\nAgent: Eva")]


def test_a_table_of_one_column_or_one_row_is_prose() -> None:
    assert {kind for kind, _ in kinds([["One"], ["Two"], ["Three"]])} == {"prose"}
    assert kinds([["Left", "Right"]]) == [("prose", "Left\nRight")]


def test_an_empty_table_gives_nothing() -> None:
    assert kinds([]) == []
    assert kinds([["", " "], []]) == []


# --- what cannot be read -------------------------------------------------------------------------

FILES = {"a.docx": word_file, "a.pptx": slide_file, "a.xlsx": sheet_file}
LIBRARIES = {"a.docx": "docx", "a.pptx": "pptx", "a.xlsx": "openpyxl"}


@pytest.mark.parametrize("name", FILES)
def test_without_the_extra_the_hint_says_how_to_get_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FILES[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, LIBRARIES[name], None)
    with pytest.raises(MissingReader) as caught:
        list(read(path))
    assert caught.value.hint == "pip install python-docx python-pptx openpyxl"


def test_a_file_without_words_is_empty(tmp_path: Path) -> None:
    docx.Document().save(str(tmp_path / "a.docx"))
    with pytest.raises(EmptySource):
        list(read(tmp_path / "a.docx"))


def test_a_file_under_a_password_says_so(tmp_path: Path) -> None:
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    container += "EncryptedPackage".encode("utf-16-le") + bytes(600)
    (tmp_path / "a.docx").write_bytes(container)
    with pytest.raises(EncryptedSource, match="password"):
        list(read(tmp_path / "a.docx"))


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = word_file(tmp_path / "a.docx")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/x.bin", bytes(100 * 1024 * 1024))
    with pytest.raises(UnreadableSource, match="would unpack"):
        list(read(path))


def test_a_file_that_would_unpack_to_more_than_a_gigabyte_is_refused_however_it_is_packed(
    tmp_path: Path,
) -> None:
    path = word_file(tmp_path / "a.docx")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("word/media/x.bin", bytes(MAX_BYTES // MAX_RATIO * 2))
        archive.infolist()[-1].file_size = MAX_BYTES  # as its list of members states it
    with pytest.raises(UnreadableSource, match="would unpack"):
        list(read(path))


def test_a_file_that_packs_well_for_good_reason_is_not_taken_for_a_bomb(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        rows = b"".join(b"<row><c>%d</c></row>" % (n % 1000) for n in range(1_000_000))
        archive.writestr("xl/worksheets/sheet1.xml", rows)
    check_archive(tmp_path / "a.xlsx", "a.xlsx", office_files.EXCEL, ROW_MEMBERS)


@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_read_or_refused_in_one_line(
    tmp_path: Path, survives: Any, name: str
) -> None:
    path = FILES[name](tmp_path / name)
    content = timeless(path.read_bytes())
    survives(reader_of(path), path, content, 60)


@pytest.mark.parametrize("name", FILES)
def test_mutated_members_are_read_or_refused(tmp_path: Path, name: str, damaged: Any) -> None:
    path, rng = FILES[name](tmp_path / name), random.Random(7)
    with zipfile.ZipFile(io.BytesIO(timeless(path.read_bytes()))) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    outcomes = set()
    for _ in range(50):
        hit = rng.choice([key for key, content in members.items() if content])
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for key, content in members.items():
                archive.writestr(key, damaged(content, rng) if key == hit else content)
        path.write_bytes(out.getvalue())
        try:
            list(reader_of(path)(path, name))
            outcomes.add("read")
        except UnreadableSource:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
