"""PDF: what is read of good, odd and damaged files."""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfWriter
from pypdf.annotations import Text
from pypdf.generic import NameObject, TextStringObject

from memctl.errors import EncryptedSource, OverLimit, UnreadableSource
from memctl.readers import read
from memctl.readers.pdf import page_text
from memctl.readers.pdf import pdf_documents as pdf_reader
from memctl.readers.pdf.page_paragraphs import clean_pages
from memctl.readers.pdf.page_text import Segment
from memctl.records import SourceText


def pdf_of(pages: Sequence[Sequence[str]], **info: str) -> bytes:
    """A PDF with these lines on its pages and these entries in its information dictionary."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -16 Td " for line in lines)
        stream = f"BT /F1 11 Tf 50 800 Td {shown}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 "
            b"/BaseFont /Helvetica >> >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    entries = " ".join(f"/{key} ({value})" for key, value in info.items())
    objects.append(f"<< {entries} >>".encode("latin-1"))
    return _file_of(objects)


def _file_of(objects: Sequence[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<< /Size %d /Root 1 0 R /Info %d 0 R >>" % (len(objects) + 1, len(objects))
    return bytes(out + b"trailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (trailer, xref))


LEASE = [
    ["Lease agreement", "The lease of the workshop at Harbour Street starts on 1 June 2026 and"],
    ["Deposit", "The deposit is 4,200 euros, to be paid by the fifteenth of May."],
]


def read_one(path: Path, content: bytes) -> SourceText:
    path.write_bytes(content)
    (source,) = read(path)
    return source


def picture_of(text: str) -> Image.Image:
    image = Image.new("RGB", (1100, 300), "white")
    font = ImageFont.load_default(size=44)
    ImageDraw.Draw(image).text((40, 100), text, fill="black", font=font)
    return image


def test_every_page_is_a_segment_with_its_number(tmp_path: Path) -> None:
    source = read_one(tmp_path / "lease.pdf", pdf_of(LEASE))
    assert [segment.page for segment in source.segments] == [1, 2]
    first, second = (source.text[s.start : s.end] for s in source.segments)
    assert first.startswith("Lease agreement")
    assert "1 June 2026" in first
    assert second.endswith("fifteenth of May.")


def test_title_author_and_date_come_from_the_properties(tmp_path: Path) -> None:
    content = pdf_of(
        LEASE,
        Title="The lease",
        Author="Mara Lind; Jon Oak",
        CreationDate="D:20260420101500+02'00'",
    )
    source = read_one(tmp_path / "scan0001.pdf", content)
    assert source.title == "The lease"
    assert source.authors == ("Mara Lind", "Jon Oak")
    assert source.created_at == datetime(2026, 4, 20, 8, 15, tzinfo=UTC)
    assert source.metadata["pages"] == 2


def test_the_day_that_the_text_states_goes_before_that_of_the_file(tmp_path: Path) -> None:
    pages = [["Supply agreement", "between Ann, Rome, and Bob, Oslo. Dated 2 February 2026. It"]]
    source = read_one(tmp_path / "a.pdf", pdf_of(pages, CreationDate="D:20261130034157Z"))
    assert source.created_at == datetime(2026, 2, 2, tzinfo=UTC)
    pages = [
        ["Opinion on the rope", "Dr. Ann Lee, York, 2 February 2026", "1. Subject", "It holds."]
    ]
    source = read_one(tmp_path / "c.pdf", pdf_of(pages, CreationDate="D:20261130034157Z"))
    assert source.created_at == datetime(2026, 2, 2, tzinfo=UTC)
    pages = [["This replaces the lease of the yard, dated 2 February 2026."]]
    source = read_one(tmp_path / "b.pdf", pdf_of(pages, CreationDate="D:20261130034157Z"))
    assert source.created_at == datetime(2026, 11, 30, 3, 41, 57, tzinfo=UTC)


@pytest.mark.parametrize("title", ["Microsoft Word - lease.docx", "untitled", "", "1234", "a.indd"])
def test_a_title_that_a_program_made_up_gives_way_to_the_name(tmp_path: Path, title: str) -> None:
    content = pdf_of(LEASE, Title=title, Author="Administrator", CreationDate="D:19700101")
    source = read_one(tmp_path / "2026-04-20 workshop_lease.pdf", content)
    assert source.title == "2026-04-20 workshop_lease"
    assert source.authors == ()
    assert source.created_at == datetime(2026, 4, 20, tzinfo=UTC)


def test_a_file_locked_with_an_empty_password_is_opened(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(LEASE)))
    writer.encrypt("", owner_password="owner", algorithm="AES-256")
    writer.write(str(tmp_path / "a.pdf"))
    (source,) = read(tmp_path / "a.pdf")
    assert "Harbour Street" in source.text


def test_a_file_locked_with_a_password_says_so(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(LEASE)))
    writer.encrypt("secret", algorithm="AES-256")
    writer.write(str(tmp_path / "a.pdf"))
    with pytest.raises(EncryptedSource, match=r"a\.pdf is protected by a password"):
        list(read(tmp_path / "a.pdf"))


def test_a_truncated_file_is_unreadable_with_one_line_of_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(LEASE)[:400])
    with pytest.raises(UnreadableSource, match=r"^a\.pdf is ") as caught:
        list(read(tmp_path / "a.pdf"))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert capfd.readouterr() == ("", "")


def test_a_big_file_that_is_none_is_not_looked_through(tmp_path: Path) -> None:
    with (tmp_path / "a.pdf").open("wb") as file:
        file.truncate(10 << 30)  # of zeros, which take no room
    with pytest.raises(UnreadableSource, match="not a PDF: it does not begin like one"):
        list(read(tmp_path / "a.pdf"))


def test_remarks_of_the_library_stay_off_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        source = read_one(
            tmp_path / "a.pdf", pdf_of(LEASE).replace(b"startxref\n", b"startxref\n1")
        )
    assert "Harbour Street" in source.text
    assert not caplog.records


def test_one_damaged_page_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    content = pdf_of(LEASE).replace(b"/Contents 5 0 R", b"/Contents /// R")
    source = read_one(tmp_path / "a.pdf", content)
    assert "Harbour Street" in source.text
    assert "Deposit" not in source.text


def test_a_page_that_stands_in_several_places_is_read_once(tmp_path: Path) -> None:
    content = pdf_of([["The ferry leaves at nine."], ["Ann grows tomatoes."]])
    kids, *others = re.findall(rb"/Kids \[[^]]*\]", content)
    assert not others
    first, second = re.findall(rb"\d+ 0 R", kids)
    many = b"/Kids [" + b" ".join([first] * 500 + [second]) + b"]"
    text = read_one(
        tmp_path / "a.pdf", content.replace(kids, many).replace(b"/Count 2", b"/Count 501")
    )
    assert text.text.count("ferry") == 1
    assert [segment.page for segment in text.segments] == [1, 501]


def test_bookmarks_become_the_headings_of_their_pages(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of([["One"], ["Two"], ["Three"]])))
    above = writer.add_outline_item(title="Terms", page_number=0)
    writer.add_outline_item(title="Deposit", page_number=1, parent=above)
    writer.write(str(tmp_path / "a.pdf"))
    (source,) = read(tmp_path / "a.pdf")
    assert [s.heading for s in source.segments] == ["Terms", "Terms > Deposit", "Terms > Deposit"]


def test_notes_on_a_page_are_read(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(LEASE)))
    writer.add_annotation(1, Text(rect=(50, 550, 200, 650), text="Ask Jon about this."))
    writer.write(str(tmp_path / "a.pdf"))
    (source,) = read(tmp_path / "a.pdf")
    note = source.segments[-1]
    assert (source.text[note.start : note.end], note.page) == ("Note: Ask Jon about this.", 2)


@pytest.mark.usefixtures("with_tesseract")
def test_a_scanned_page_is_read_by_ocr(tmp_path: Path) -> None:
    picture_of("Invoice 2026-118 from Oak").save(tmp_path / "scan.pdf")
    (source,) = read(tmp_path / "scan.pdf")
    assert "Invoice 2026-118 from Oak" in source.text
    assert source.segments[0].page == 1
    assert source.missing == ()


@pytest.mark.usefixtures("without_ocr")
def test_a_scanned_page_without_ocr_is_kept_and_says_what_is_missing(tmp_path: Path) -> None:
    picture_of("Invoice 2026-118").save(tmp_path / "oak_invoice.pdf")
    (source,) = read(tmp_path / "oak_invoice.pdf")
    assert source.missing == ("page text",)
    assert "oak invoice" in source.text


def test_a_long_file_comes_in_parts_of_whole_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_reader, "PART_CHARS", 250)
    pages = [[f"Page about topic number {n}, which is told at some length."] for n in range(12)]
    (tmp_path / "a.pdf").write_bytes(pdf_of(pages))
    parts = list(read(tmp_path / "a.pdf"))
    assert [part.part for part in parts] == list(range(len(parts)))
    assert len(parts) >= 3
    assert [s.page for part in parts for s in part.segments] == list(range(1, 13))


def test_mutated_files_are_read_or_refused_in_one_line(tmp_path: Path, survives) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(LEASE, Title="The lease")))
    writer.add_outline_item(title="Terms", page_number=0)
    writer.pages[0][NameObject("/Extra")] = TextStringObject("x" * 200)
    out = io.BytesIO()
    writer.write(out)
    survives(pdf_reader.read, tmp_path / "a.pdf", out.getvalue(), 150)
    writer.encrypt("", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    survives(pdf_reader.read, tmp_path / "a.pdf", out.getvalue(), 60)


def test_cells_of_a_row_are_read_as_one_line(tmp_path: Path) -> None:
    content = pdf_of([["Rent) Tj 12 TL T* ET BT /F1 11 Tf 300 800 Td (1,400", "Heating"]])
    assert read_one(tmp_path / "a.pdf", content).text.startswith("Rent | 1,400\n")


def composite_pdf_of(shown: bytes) -> bytes:
    """A PDF whose font has letters by number and no space, as TeX writes them.

    32 is the number of a broad letter, and not of the space.
    """
    letters = b"".join(b"<%04x> <%04x>\n" % (40 + n, ord("a") + n) for n in range(26))
    unicode = b"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
    unicode += b"26 beginbfchar\n" + letters + b"endbfchar"
    stream = b"BT /F1 10 Tf 50 800 Td [%s] TJ ET" % shown
    return _file_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
            b"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Serif /Encoding /Identity-H"
            b" /DescendantFonts [6 0 R] /ToUnicode 7 0 R >>",
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Serif /DW 500"
            b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
            b" /W [32 [722]] /FontDescriptor << /Type /FontDescriptor /Flags 4"
            b" /FontName /ABCDEF+Serif >> >>",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(unicode), unicode),
            b"<< >>",
        ]
    )


@pytest.mark.parametrize("gap", [-250, -200.5, -160])
def test_words_are_told_apart_by_gaps_where_a_font_has_no_space(tmp_path: Path, gap: float) -> None:
    def coded(word: str) -> bytes:
        return b"<%s>" % "".join(f"{ord(letter) - ord('a') + 40:04x}" for letter in word).encode()

    kerned = coded("lea") + b" 30 " + coded("s") + b" -40 " + coded("e")
    shown = (b" %s " % str(gap).encode()).join([coded("the"), kerned, coded("ends")])
    text = read_one(tmp_path / "a.pdf", composite_pdf_of(shown)).text
    assert text.split() == ["the", "lease", "ends"]


def drawn_pdf(*pages: str) -> bytes:
    """A PDF whose pages draw text with these operators, in Helvetica and in Helvetica-Bold."""
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} >>"
    fonts = f"<< /F1 {font.format('Helvetica')} /F2 {font.format('Helvetica-Bold')} >>"
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    for drawn in pages:
        stream = drawn.encode("latin-1")
        objects += [
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects) + 1} 0 R"
            f" /Resources << /Font {fonts} >> >>".encode(),
        ]
    kids = " ".join(f"{2 * n + 4} 0 R" for n in range(len(pages)))
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    return _file_of([*objects, b"<< >>"])


def at(x: float, y: float, text: str, size: float = 10, font: str = "F1") -> str:
    """Operators that draw text at a place."""
    return f"BT /{font} {size} Tf {x} {y} Td ({text}) Tj ET "


def test_words_in_another_font_are_told_from_their_neighbours_by_the_gap(tmp_path: Path) -> None:
    # "cause" is 26.7 points wide, "linti" in bold 17.8: the first gap is a space as TeX sets it,
    # the second is none.
    moves = "(cause) Tj /F2 10 Tf 28.9 0 Td (linti) Tj /F1 10 Tf 17.8 0 Td (an to) Tj"
    content = drawn_pdf(f"BT /F1 10 Tf 50 800 Td {moves} ET")
    assert read_one(tmp_path / "a.pdf", content).text.split() == ["cause", "lintian", "to"]


def test_letters_that_are_kerned_one_by_one_stay_a_word(tmp_path: Path) -> None:
    content = drawn_pdf("BT /F1 10 Tf 50 800 Td [(a) 20 (v) 35 (ailable) -250 (now)] TJ ET")
    assert read_one(tmp_path / "a.pdf", content).text.strip() == "available now"


LEFT = [
    "The roastery moves to its new",
    "workshop in the first week of",
    "June and everybody helps with",
    "the packing since the lease of",
    "the old place ends that month.",
]
RIGHT = [
    "Ann grows tomatoes behind the",
    "house and sells them at the old",
    "market on Saturdays where Jon",
    "has his cheese and the ferries",
    "bring guests from the islands.",
]


def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other(tmp_path: Path) -> None:
    rows = zip(LEFT, RIGHT, strict=True)
    drawn = at(50, 820, "News of the harbour and of the market", 18)
    drawn += "".join(
        at(50, 790 - 12 * n, one) + at(300, 790 - 12 * n, two) for n, (one, two) in enumerate(rows)
    )
    text = read_one(tmp_path / "a.pdf", drawn_pdf(drawn)).text
    assert " ".join(text.split()).endswith(" ".join([*LEFT, *RIGHT]))


def test_rows_of_a_table_are_not_taken_for_columns(tmp_path: Path) -> None:
    items = ["Rent of the workshop", "Heating", "Coffee from Lima, in sacks", "Repairs", "Water"]
    drawn = "".join(
        at(50, 790 - 12 * n, item) + at(300, 790 - 12 * n, f"{n}00 euros a month and more")
        for n, item in enumerate(items)
    )
    text = read_one(tmp_path / "a.pdf", drawn_pdf(drawn)).text
    assert "Heating | 100 euros a month and more\n" in text


def test_text_that_is_drawn_twice_to_look_bold_is_read_once(tmp_path: Path) -> None:
    content = drawn_pdf(at(50, 800, "Deposit") + at(50.3, 800, "Deposit"))
    assert read_one(tmp_path / "a.pdf", content).text.strip() == "Deposit"


def test_lines_that_run_from_right_to_left_are_read_so() -> None:
    shown = "".join(reversed("שלום לכולם 2026"))
    segments = page_text._readable([Segment(shown.replace("6202", "2026"), 0, 100)])
    assert segments[0].text == "שלום לכולם 2026"


def test_company_and_fiscal_year_of_the_title_page_stand_above_every_page(tmp_path: Path) -> None:
    title = at(50, 700, "Annual Report", 28) + at(50, 650, "Northwind Traders, Inc.")
    title += at(50, 620, "for the fiscal year ended September 30, 2023")
    page = "".join(at(50, 800 - 12 * n, line) for n, line in enumerate(LEFT))
    source = read_one(tmp_path / "10k.pdf", drawn_pdf(title, page))
    above = "Annual Report – Northwind Traders, Inc. – FY2023"
    assert [segment.heading for segment in source.segments] == [above, above]


def test_a_page_of_many_moves_takes_no_longer_for_each_of_them(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        moves = "".join(f"1 0 0 1 {n % 500} {n % 800} Tm (a) Tj\n" for n in range(count))
        (tmp_path / "a.pdf").write_bytes(drawn_pdf(f"BT /F1 10 Tf {moves} ET"))
        began = time.process_time()
        assert "a" in "".join(source.text for source in read(tmp_path / "a.pdf"))
        return time.process_time() - began

    seconds(100)
    # 16 times where each move costs the same, 256 where it grows with their number.
    assert seconds(40_000) < 80 * max(seconds(2_500), 0.05)


def test_a_file_that_draws_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_reader, "STEPS_OF_ANY", 100)
    monkeypatch.setattr(pdf_reader, "STEPS_PER_BYTE", 0)
    (tmp_path / "a.pdf").write_bytes(pdf_of(LEASE * 5))
    with pytest.raises(OverLimit, match=r"a\.pdf draws far more than a PDF of its size needs"):
        list(read(tmp_path / "a.pdf"))


# --- the text of pages ---------------------------------------------------------------------------

BODY = [
    "The roastery moves to its new workshop in the first week of June",
    "and everybody helps with the packing, since the lease of the old",
    "place ends on the last day of the month and cannot be extended.",
]


def _pages(count: int) -> list[str]:
    return [
        "\n".join(
            ["Harbour Roastery", f"Item {page * 7} was discussed at great length by all of us."]
            + BODY * 4
            + [f"Page {page} of {count}"]
        )
        for page in range(1, count + 1)
    ]


def test_a_running_title_stays_where_it_first_stands() -> None:
    cleaned = clean_pages(_pages(5))
    assert [text.count("Harbour Roastery") for text in cleaned] == [1, 0, 0, 0, 0]


def test_page_numbers_go_and_other_numbers_stay() -> None:
    cleaned = clean_pages(_pages(5))
    assert not any("Page " in text for text in cleaned)
    assert all(f"Item {page * 7} was" in text for page, text in enumerate(cleaned, 1))


def test_a_line_on_only_two_pages_is_no_running_title() -> None:
    cleaned = clean_pages(_pages(2))
    assert all("Harbour Roastery" in text for text in cleaned)


def test_a_page_that_is_about_its_number_keeps_it() -> None:
    pages = [f"Week {n}\n" + "\n".join(BODY * 4) for n in range(1, 7)]
    assert all(f"Week {n}" in text for n, text in enumerate(clean_pages(pages), 1))


def test_lines_that_were_broken_for_want_of_room_are_joined() -> None:
    (text,) = clean_pages(["\n".join([*BODY, "A new paragraph.", "Second"])])
    assert " ".join(BODY) in text
    assert text.splitlines()[0].endswith("extended. A new paragraph.")


def test_rows_of_figures_and_lists_keep_their_lines() -> None:
    rows = ["Rent for the workshop 1,400 1,400 1,400", "Heating and power in 2026 310 295 280"]
    items = ["- Pack the roaster and the grinders well", "- Tell every customer about the address"]
    (text,) = clean_pages(["\n".join([*rows, *items])])
    assert text.split("\n")[:4] == [*rows, *items]


def test_titles_between_paragraphs_stand_alone() -> None:
    (text,) = clean_pages(["\n".join([*BODY, "What we pay", *BODY])])
    assert "extended.\n\nWhat we pay\n\nThe roastery" in text


def test_the_label_of_a_page_goes_even_from_a_single_page() -> None:
    (text,) = clean_pages(["Harbour Roastery | Page 2 of 9\nTurn to page 3 of 9"])
    assert text == "Harbour Roastery\nTurn to page 3 of 9\n\n"


def test_rows_of_a_table_end_before_the_next_paragraph() -> None:
    (text,) = clean_pages(["Rent | 1,400\nHeating | 310\nRisks\n" + "\n".join(BODY)])
    assert text.startswith("Rent | 1,400\nHeating | 310\n\nRisks\n\nThe roastery")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("The sup-\nplier came", "The supplier came"),
        ("The sup\u00adplier", "The supplier"),
        ("The well-known one is\na well-\nknown one", "a well-known one"),
        ("A Franco-\nGerman firm", "A Franco-German firm"),
        ("The of\ufb01ce and the \ufb02oor", "The office and the floor"),
    ],
)
def test_words_cut_at_a_line_end_are_whole_again(before: str, after: str) -> None:
    assert after in clean_pages([before])[0]
