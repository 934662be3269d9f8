"""Tables become rows that a person can search, with their numbers."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.errors import EmptySource
from memctl.readers import read
from memctl.readers.data_files.table_rows import GROUP_CHARS, row_pieces
from memctl.readers.pieces import assemble, new_document
from memctl.records import SourceText


def _read(folder: Path, content: str | bytes, name: str = "people.csv") -> list[SourceText]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read(path))


def _row_of(source: SourceText, words: str) -> int:
    """The row that a citation of these words would name."""
    place = source.text.index(words)
    segment = next(s for s in source.segments if s.start <= place < s.end)
    assert segment.row is not None
    return segment.row + source.text.count("\n", segment.start, place)


def test_a_row_is_written_with_its_header_and_not_as_a_wall_of_commas(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "Name,City,Age\nAnn,Rome,31\nBob,Oslo,\n")
    assert source.text == "Name: Ann; City: Rome; Age: 31\nName: Bob; City: Oslo\n"
    assert source.title == "people"
    assert source.metadata["columns"] == ["Name", "City", "Age"]
    assert [(s.kind, s.row) for s in source.segments] == [("table", 1)]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_found(tmp_path: Path, mark: str) -> None:
    rows = [["Item", "Price", "Note"], ["Crane, big", "1,5", "a"], ["Rope", "2,25", "b"]]
    text = io.StringIO()
    csv.writer(text, delimiter=mark).writerows(rows)
    [source] = _read(tmp_path, text.getvalue())
    assert "Item: Crane, big; Price: 1,5; Note: a\n" in source.text


def test_every_row_can_be_cited_by_its_number(tmp_path: Path) -> None:
    rows = "".join(f"person {n},{n * 7}\n" for n in range(1, 501))
    [source] = _read(tmp_path, f"name,score\n{rows}")
    assert len(source.segments) > 20
    assert all(s.end - s.start <= GROUP_CHARS for s in source.segments)
    for number in (1, 2, 77, 250, 500):
        assert _row_of(source, f"name: person {number};") == number


def test_blank_rows_are_not_counted_and_quoted_line_ends_stay_in_their_row(tmp_path: Path) -> None:
    [source] = _read(tmp_path, 'a,b\n1,"x\ny"\n\n,,\n2,z\n')
    assert source.text == "a: 1; b: x y\na: 2; b: z\n"
    assert _row_of(source, "b: z") == 2


def test_ragged_rows_lose_nothing(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "a,b,c\n1\n1,2\n1,2,3,extra\n")
    assert source.text == "a: 1\na: 1; b: 2\na: 1; b: 2; c: 3; column 4: extra\n"


def test_columns_without_or_with_the_same_name_are_told_apart(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "id,,note,note\n1,x,y,z\n1,x,y,z\n")
    assert source.text == "id: 1; column 2: x; note: y; note 2: z\n" * 2


def test_a_table_without_header_keeps_its_first_row(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "2026-05-01,100,Ann\n2026-05-02,200,Bob\n")
    assert source.text.startswith("column 1: 2026-05-01; column 2: 100; column 3: Ann\n")


@pytest.mark.parametrize("content", ["name,amount,date\n", "name\tdate"])
def test_a_table_of_column_names_alone_is_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptySource, match=r"people.csv has column names and no rows"):
        _read(tmp_path, content)


def test_a_single_row_of_data_is_kept(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "Ann,Rome,31\n")
    assert "Ann" in source.text


def test_lines_above_the_header_are_kept_as_text(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "Expenses of May\n\nItem,Cost\nRope,5\nTar,6\nNails,7\n")
    assert source.text == "Expenses of May\n\nItem: Rope; Cost: 5\nItem: Tar; Cost: 6\n" + (
        "Item: Nails; Cost: 7\n"
    )
    assert _row_of(source, "Nails") == 3


def test_a_separator_named_in_the_first_line_is_obeyed(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "sep=;\na;b\n1;2\n3;4\n")
    assert source.text == "a: 1; b: 2\na: 3; b: 4\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_marks_and_encodings_do_not_end_up_in_the_first_column(
    tmp_path: Path, encoding: str
) -> None:
    [source] = _read(tmp_path, "Straße,Ort\r\nHauptstraße 1,Köln\r\nX,Y\r\n".encode(encoding))
    assert source.text.startswith("Straße: Hauptstraße 1; Ort: Köln\n")


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(tmp_path: Path) -> None:
    rows = "".join(f"{n},value {n}\n" for n in range(2, 40_000))
    sources = _read(tmp_path, f'id,text\n1,"open\n{rows}')
    text = "".join(source.text for source in sources)
    assert "id: 1; text: open\n" in text
    assert "id: 39999; text: value 39999\n" in text
    [short] = _read(tmp_path, 'id,text\n1,"open\n2,b\n3,c\n')
    assert "id: 3; text: c\n" in short.text


def test_a_long_cell_keeps_its_line_breaks_and_stands_alone(tmp_path: Path) -> None:
    essay = "First paragraph. " * 30 + "\n" + "Second paragraph. " * 30
    [source] = _read(tmp_path, f'title,body\nshort,x\nlong,"{essay}"\nlast,y\n')
    assert "title: long\nbody: First paragraph." in source.text
    assert [s.row for s in source.segments] == [1, 2, 3]


def test_prose_under_a_csv_name_is_kept_as_prose(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "Just a sentence.\n\nAnd another one.\n")
    assert source.text == "Just a sentence.\n\nAnd another one.\n"
    assert [s.kind for s in source.segments] == ["prose", "prose"]


def test_tsv_is_read_with_its_tabs(tmp_path: Path) -> None:
    [source] = _read(tmp_path, "a\tb\n1, 2\t3\n", "x.tsv")
    assert source.text == "a: 1, 2; b: 3\n"
    assert source.media_type == "text/tab-separated-values"


cells = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from('\n\t,;"'),
    max_size=30,
)


@settings(max_examples=60)
@given(
    st.integers(2, 5).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=12
        )
    )
)
def test_every_value_written_to_a_csv_is_found_in_its_text(rows: list[list[str]]) -> None:
    header = [f"field {place}" for place in range(len(rows[0]))]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, *rows, ["end"] * len(header)])
    with tempfile.TemporaryDirectory() as folder:
        sources = _read(Path(folder), out.getvalue())
    text = " ".join("".join(source.text for source in sources).split())
    for row in rows:
        for name, value in zip(header, row, strict=True):
            words = " ".join(value.split())
            assert not words or f"{name}: {words}" in text


@given(st.lists(st.lists(cells, max_size=4), max_size=20))
def test_segments_of_rows_are_exact(rows: list[list[str]]) -> None:
    pieces = row_pieces(["a", "b", "c"], rows)
    for part in assemble(new_document(), pieces):
        end = 0
        for segment in part.segments:
            assert end <= segment.start < segment.end <= len(part.text)
            assert part.text[segment.start : segment.end].strip()
            assert segment.row is not None
            assert 1 <= segment.row <= len(rows)
            end = segment.end
