"""Books, OpenDocument, rich text, notebooks and databases: what is read of good and bad files."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memctl.errors import EncryptedSource, UnreadableSource
from memctl.readers import read
from memctl.readers.data_files import sqlite_files
from memctl.records import SourceText

ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
META = (
    f"<office:document-meta {ODF}><office:meta><dc:title>The lease</dc:title>"
    "<meta:initial-creator>Mara Lind</meta:initial-creator><dc:creator>Jon Oak</dc:creator>"
    "<meta:creation-date>2026-04-20T08:15:00</meta:creation-date>"
    "</office:meta></office:document-meta>"
)


def packed(path: Path, kind: str, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", f"application/{kind}", zipfile.ZIP_STORED)
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def document(path: Path, kind: str, body: str, **members: str) -> SourceText:
    inner = f"<office:body>{body}</office:body>"
    content = f"<office:document-content {ODF}>{inner}</office:document-content>"
    kind = f"vnd.oasis.opendocument.{kind}"
    (source,) = read(packed(path, kind, {"content.xml": content, "meta.xml": META, **members}))
    return source


def test_an_opendocument_text_is_read_under_its_headings(tmp_path: Path) -> None:
    source = document(
        tmp_path / "a.odt",
        "text",
        "<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Rent</text:h>'
        "<text:p>Harbour<text:s/>Street costs<text:tab/>4,200 "
        "<text:span>euros</text:span>.</text:p>"
        "<text:list><text:list-item><text:p>heating</text:p></text:list-item></text:list>"
        "</office:text>",
    )
    assert (source.title, source.authors) == ("The lease", ("Mara Lind",))
    assert source.created_at == datetime(2026, 4, 20, 8, 15, tzinfo=UTC)
    assert source.text == "Rent\n\nHarbour Street costs\t4,200 euros.\n\n- heating\n\n"
    assert {segment.heading for segment in source.segments} == {"Rent"}


def test_an_opendocument_sheet_is_read_row_by_row(tmp_path: Path) -> None:
    def cells(*texts: str) -> str:
        inner = "".join(f"<table:table-cell><text:p>{t}</text:p></table:table-cell>" for t in texts)
        blank = '<table:table-cell table:number-columns-repeated="16000"/>'
        return f"<table:table-row>{inner}{blank}</table:table-row>"

    rows = cells("City", "Rent") + cells("Rome", "900") + cells("Oslo", "1,400")
    many = 'table:number-rows-repeated="1048000"'
    rows += f"<table:table-row {many}><table:table-cell/></table:table-row>"
    table = f'<table:table table:name="Costs">{rows}</table:table>'
    source = document(
        tmp_path / "a.ods",
        "spreadsheet",
        f"<office:spreadsheet>{table}</office:spreadsheet>",
    )
    assert "City: Oslo; Rent: 1,400\n" in source.text
    assert source.segments[0].heading == "Costs"
    assert len(source.text) < 200


def test_an_encrypted_opendocument_file_says_so(tmp_path: Path) -> None:
    manifest = {"META-INF/manifest.xml": "<m><encryption-data/></m>"}
    with pytest.raises(EncryptedSource, match=r"a\.odt is protected"):
        document(tmp_path / "a.odt", "text", "<office:text/>", **manifest)


def test_entities_in_xml_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    kind = "vnd.oasis.opendocument.text"
    with pytest.raises(UnreadableSource, match=r"a\.odt is damaged or not an OpenDocument text"):
        list(read(packed(tmp_path / "a.odt", kind, {"content.xml": bomb})))


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    container = '<container xmlns="c"><rootfile full-path="OPS/book.opf"/></container>'
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>Harbours</dc:title><dc:creator>Mara Lind</dc:creator>"
        "<dc:creator>Jon Oak</dc:creator><dc:date>2019-05-01</dc:date></metadata><manifest>"
        '<item id="two" href="text/b%20b.xhtml"/><item id="one" href="text/a.xhtml"/></manifest>'
        '<spine><itemref idref="one"/><itemref idref="two"/>'
        '<itemref idref="gone"/></spine></package>'
    )
    page = "<html><body><h1>{}</h1><p>{}</p></body></html>"
    members = {
        "META-INF/container.xml": container,
        "OPS/book.opf": book,
        "OPS/text/b b.xhtml": page.format("Night", "The ferry leaves at nine in the evening."),
        "OPS/text/a.xhtml": page.format("Day", "Ann grows tomatoes behind the lighthouse."),
    }
    (source,) = read(packed(tmp_path / "a.epub", "epub+zip", members))
    assert (source.title, source.authors) == ("Harbours", ("Mara Lind", "Jon Oak"))
    assert source.created_at == datetime(2019, 5, 1, tzinfo=UTC)
    assert source.text.index("tomatoes") < source.text.index("ferry")
    assert {segment.heading for segment in source.segments} == {"Day", "Night"}
    packed(tmp_path / "b.epub", "epub+zip", {**members, "META-INF/rights.xml": "<r/>"})
    with pytest.raises(EncryptedSource, match=r"b\.epub is protected"):
        list(read(tmp_path / "b.epub"))
    (tmp_path / "c.epub").write_bytes((tmp_path / "a.epub").read_bytes()[:300])
    with pytest.raises(UnreadableSource):
        list(read(tmp_path / "c.epub"))


def test_rich_text_is_read_with_its_properties(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(
        r"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\info{\title The lease}{\author Mara Lind}"
        r"{\creatim\yr2026\mo4\dy20\hr8\min15}}"
        r"\f0 Harbour {\b Street}\par Caf\'e9 \u8364?4,200.\par}"
    )
    (source,) = read(tmp_path / "a.rtf")
    assert (source.title, source.authors) == ("The lease", ("Mara Lind",))
    assert source.created_at == datetime(2026, 4, 20, tzinfo=UTC)
    assert source.text.split() == ["Harbour", "Street", "Café", "€4,200."]


def test_a_notebook_is_its_cells_and_what_they_printed_without_pictures(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Rent\n", "What we pay."]},
        {
            "cell_type": "code",
            "source": "print(rent)",
            "outputs": [
                {"output_type": "stream", "text": ["4200\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
                {"output_type": "execute_result", "data": {"text/plain": "x" * 50_000}},
                {"output_type": "error", "ename": "KeyError", "evalue": "'May'"},
            ],
        },
        {"cell_type": "code", "source": [], "outputs": 7},
        "no cell",
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (source,) = read(tmp_path / "a.ipynb")
    assert source.title == "Rent"
    assert "What we pay." in source.text
    assert "print(rent)" in source.text
    assert "Output: 4200\n" in source.text
    assert "iVBOR" not in source.text
    assert len(source.text) < 2_200
    assert [s.kind for s in source.segments if "print" in source.text[s.start : s.end]] == ["code"]


def database(path: Path, rows: int = 2) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE rents (city TEXT, rent INTEGER, photo BLOB)")
        db.executemany(
            "INSERT INTO rents VALUES (?, ?, x'00')", ((f"Rome {n}", n) for n in range(rows))
        )
        db.execute("CREATE VIEW secret AS SELECT city FROM rents")
    return path


def test_a_database_is_read_table_by_table_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path / "a#1?.db")
    before = path.read_bytes()
    (source,) = read(path)
    assert "city: Rome 1; rent: 1\n" in source.text
    assert {segment.heading for segment in source.segments} == {"rents"}
    assert source.metadata["tables"] == ["rents"]
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    monkeypatch.setattr(sqlite_files, "MAX_ROWS", 1)
    (source,) = read(path)
    assert source.missing == ("rows of rents beyond the first 1",)
    assert "Rome 1" not in source.text


def test_rows_that_stand_only_in_the_log_of_a_database_are_read(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db", 500)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("INSERT INTO rents VALUES ('Oslo', 3, NULL)")
        db.commit()
        before = {each: each.read_bytes() for each in tmp_path.iterdir()}
        (source,) = read(path)
        assert "city: Oslo; rent: 3\n" in source.text
        assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_half_of_a_change_to_a_database_is_not_read(tmp_path: Path) -> None:
    path = database(tmp_path / "a.db")
    (tmp_path / "copy").mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.executemany("INSERT INTO rents VALUES ('Oslo', ?, NULL)", ((n,) for n in range(2_000)))
        for each in (path, tmp_path / "a.db-journal"):
            shutil.copy(each, tmp_path / "copy")
        db.execute("ROLLBACK")
    (source,) = read(tmp_path / "copy/a.db")
    assert "Rome 1" in source.text
    assert "Oslo" not in source.text


def test_a_database_in_use_or_damaged_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path / "a.db", 500)
    log = tmp_path / "a.db-wal"
    log.write_bytes(b"x")
    monkeypatch.setattr(sqlite_files, "MAX_COPIED", 100)
    with pytest.raises(UnreadableSource, match=r"a\.db has changes .* a\.db-wal, and is too big"):
        list(read(path))
    monkeypatch.undo()

    def grow(*files: object) -> None:
        log.write_bytes(b"xy")

    monkeypatch.setattr(sqlite_files.shutil, "copyfileobj", grow)
    with pytest.raises(UnreadableSource, match=r"a\.db is in use: it changed"):
        list(read(path))
    log.unlink()
    damaged = path.read_bytes()
    (tmp_path / "b.db").write_bytes(damaged[:4096] + b"\xff" * (len(damaged) - 4096))
    with pytest.raises(UnreadableSource, match=r"b\.db is damaged or not an SQLite database"):
        list(read(tmp_path / "b.db"))
