"""Office files of some kilobytes made to take minutes or gigabytes: each is refused, or read."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from memctl.config import LimitSettings
from memctl.errors import UnreadableSource
from memctl.readers import Readers

Change = Callable[[str, str], str]
"""What to put in the place of a member, by its name and what is in it."""

BODY, ROWS, SLIDE = "word/document.xml", "xl/worksheets/sheet1.xml", "ppt/slides/slide1.xml"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
FEW_ROWS = "<row><c><v>1</v></c></row>" * 100
MAX_MB, MAX_SECONDS = 400, 20
"""Memory and processor time of the process that reads; none here needs a third of it."""


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    limits = LimitSettings(memory_mb=MAX_MB, processor_seconds=MAX_SECONDS, seconds=300)
    readers = Readers(limits)
    yield readers
    readers.close()


def deck() -> Any:
    made = pptx.Presentation()
    shapes = made.slides.add_slide(made.slide_layouts[5]).shapes
    data = CategoryChartData()
    data.categories = ["April", "May"]
    data.add_series("sold", (1.5, 2))
    shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, 0, 900_000, 900_000, data)
    shapes.add_table(1, 1, 0, 0, 900_000, 900_000).table.cell(0, 0).text = "boat"
    return made


def changed(made: Any, change: Change) -> bytes:
    """The file that a library makes, with some of its members changed."""
    whole, out = io.BytesIO(), io.BytesIO()
    made.save(whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name).decode("latin-1")  # which any bytes are, and come back from
            new.writestr(name, change(name, content).encode("latin-1"))
    return out.getvalue()


def within(member: str, tag: str, content: str) -> Change:
    """Put something else within the first element of that name of a member."""

    def change(name: str, old: str) -> str:
        if name != member:
            return old
        whole = re.compile(rf"(<{tag}[^>/]*)(?:/>|>.*</{tag}>)", re.S)
        return whole.sub(lambda found: f"{found[1]}>{content}</{tag}>", old)

    return change


def many_names_of_one(member: str, part: str, element: str, count: int) -> Change:
    """Name a part often where a file names it once."""

    def change(name: str, old: str) -> str:
        if name != member and not name.endswith(f"{Path(member).name}.rels"):
            return old
        pattern = rf"<{element} [^>]*>" if name == member else rf"<Relationship [^>]*{part}[^>]*>"
        (found,) = re.findall(pattern, old)
        return old.replace(found, "".join(_numbered(found, number) for number in range(count)))

    return change


def _numbered(element: str, number: int) -> str:
    """The element with a name, an id and a relation of its own."""
    for attribute, start in (
        ("name", "s"),
        ("sheetId", ""),
        (" id", ""),
        ("Id", "x"),
        ("r:id", "x"),
    ):
        element = re.sub(
            rf'(?<![\w:]){attribute}="[^"]*"', f'{attribute}="{start}{number + 256}"', element
        )
    return element


def word(body: str) -> bytes:
    return changed(docx.Document(), within(BODY, "w:body", body))


def sheet(rows: str) -> bytes:
    return changed(openpyxl.Workbook(), within(ROWS, "sheetData", rows))


def of_one_text(cells: int) -> bytes:
    """A workbook with a text of 100,000 characters that is kept once and stands in every cell."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/>'

    def change(name: str, old: str) -> str:
        row = '<row><c t="s"><v>0</v></c></row>'
        rows = within(ROWS, "sheetData", row * cells)(name, old)
        return rows.replace("</Types>", f"{part}</Types>") if name.startswith("[Content") else rows

    out = io.BytesIO(changed(openpyxl.Workbook(), change))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        text = f"<si><t>{'every cell ' * 9_000}</t></si>"
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{SHEETS}">{text}</sst>')
    return out.getvalue()


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "tags.docx": (lambda: word("<w:p/>" * 2_600_000), "far more parts"),
    "attributes.docx": (lambda: word('<w:p w:a="" w:b=""/>' * 860_000), "far more parts"),
    "merged.docx": (lambda: word(
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>" + "x" * 200_000 + "</w:t></w:r></w:p></w:tc></w:tr>"
        + "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc></w:tr>" * 50_000 + "</w:tbl>"),
        "far more text"),
    "tags.pptx": (lambda: changed(deck(), within(SLIDE, "p:spTree", "<p:sp/>" * 2_300_000)),
                  "far more parts"),
    "rows.xlsx": (lambda: sheet("<row/>" * 3_000_000), "far more parts"),
    "far cells.xlsx": (lambda: sheet("".join(
        f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 1_400))),
        "more in its cells"),
    "far row.xlsx": (lambda: sheet('<row r="999999999"/>'), "more in its cells"),
    "one text.xlsx": (lambda: of_one_text(1_000), "far more text"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_office_file_that_asks_for_much_is_refused(
    name: str, tmp_path: Path, readers: Readers
) -> None:
    made, reason = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(made())
    assert path.stat().st_size < 300_000
    with pytest.raises(UnreadableSource, match=reason) as refused:
        list(readers.read(path))
    assert name in refused.value.message
    assert refused.value.hint


def test_a_part_that_is_named_often_is_read_once(tmp_path: Path, readers: Readers) -> None:
    sheet = within(ROWS, "sheetData", FEW_ROWS)
    names = many_names_of_one("xl/workbook.xml", "sheet1.xml", "sheet", 300)
    slides = many_names_of_one("ppt/presentation.xml", "slide1.xml", "p:sldId", 300)
    (tmp_path / "a.xlsx").write_bytes(
        changed(openpyxl.Workbook(), lambda n, old: names(n, sheet(n, old)))
    )
    (tmp_path / "a.pptx").write_bytes(changed(deck(), slides))
    (text,) = readers.read(tmp_path / "a.xlsx")
    assert text.text.count("column 1: 1") <= 100
    (text,) = readers.read(tmp_path / "a.pptx")
    assert text.text.count("boat") == 1


def test_a_chart_has_the_points_that_are_written_down(tmp_path: Path, readers: Readers) -> None:
    """Not as many as it says that it has."""

    def change(name: str, old: str) -> str:
        return old.replace('ptCount val="2"', 'ptCount val="4000000000"')

    (tmp_path / "a.pptx").write_bytes(changed(deck(), change))
    (text,) = readers.read(tmp_path / "a.pptx")
    assert "category: April; sold: 1.5" in text.text


def test_a_table_of_many_rows_on_a_slide_is_read_in_one_pass(
    tmp_path: Path, readers: Readers
) -> None:
    def change(name: str, old: str) -> str:
        row = re.findall(r"<a:tr .*?</a:tr>", old, re.S) if name == SLIDE else []
        return old.replace(row[0], row[0] * 20_000) if row else old

    (tmp_path / "a.pptx").write_bytes(changed(deck(), change))
    (text,) = readers.read(tmp_path / "a.pptx")
    assert text.text.count("boat") == 20_000
