"""Web pages and messages: what a person would read of them, and what they say of themselves."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.errors import UnreadableSource
from memctl.readers import read
from memctl.readers.markup import html_parser
from memctl.readers.markup.html_parser import parse_page
from memctl.records import SourceText

from .conftest import headings_of

PAGE = """<!DOCTYPE html><html lang="en"><head>
<title>Crane bought | Harbour News</title>
<meta property="article:published_time" content="2026-05-01T10:00:00+02:00">
<meta name="author" content="Ann Lee"><meta name="keywords" content="crane, harbour">
<script type="application/ld+json">{"headline": "Crane bought", "author": [{"name": "No"}]}</script>
<style>p { color: red }</style></head>
<body><header><a href="/">Harbour News</a></header>
<nav><ul><li><a href=a>Home</a><li><a href=b>Boats</a></ul></nav>
<div class="cookie-banner">We use cookies. Accept them all now please.</div>
<article><h1>Crane bought</h1>
<p>The harbour bought a <b>big</b>&nbsp;crane for 2&nbsp;million &euro;.<br>It lifts 90 tons.
<h2>Why</h2><p>The old one broke.<script>alert("p")</script>
<ul><li>Too old<li>Too small<ol><li>by far</ol></ul>
<table><tr><th>Part<th>Cost<tr><td>Hook<td>5<tr><td>Cable<td>6</table>
<pre>x = 1
  y = 2</pre><img src=a.png alt="A crane lifts a boat"><div hidden>secret words</div></article>
<aside>Related: <a href=x>ships</a></aside><footer>Copyright</footer></body></html>"""


def _read(folder: Path, content: str | bytes, name: str = "x.html") -> SourceText:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    [source] = read(path)
    return source


def test_a_page_gives_its_main_text_and_nothing_around_it(tmp_path: Path) -> None:
    assert _read(tmp_path, PAGE).text == (
        "Crane bought\n\n"
        "The harbour bought a big crane for 2 million €.\nIt lifts 90 tons.\n\n"
        "Why\n\nThe old one broke.\n\n- Too old\n- Too small\n  1. by far\n"
        "Part: Hook; Cost: 5\nPart: Cable; Cost: 6\n\n"
        "x = 1\n  y = 2\n\nImage: A crane lifts a boat\n\n"
    )


def test_a_page_says_what_it_is(tmp_path: Path) -> None:
    source = _read(tmp_path, PAGE)
    assert source.title == "Crane bought"
    assert source.authors == ("Ann Lee",)
    assert source.created_at == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert source.tags == ("crane", "harbour")


def test_segments_of_a_page_carry_headings_kinds_and_rows(tmp_path: Path) -> None:
    source = _read(tmp_path, PAGE)
    kinds = {s.kind: s for s in source.segments}
    assert kinds["table"].row == 1
    assert kinds["table"].heading == "Crane bought > Why"
    assert source.text[kinds["code"].start : kinds["code"].end] == "x = 1\n  y = 2"


MANUAL = """<html><title>8. Winch</title><body>
<table class="nav" summary="Navigation header"><tr><th>Harbour Manual<td>Next</table>
<dl class="toc"><dt><a href=#a>8.1. Options</a></dt><dt><a href=#b>8.2. Words</a></dt></dl>
<h1>8. Winch<a class="headerlink" href="#w">¶</a></h1><p>To use it, say winch.</p>
<h2>8.1. Options</h2>
<dl><dt><code>-s &lt;n&gt;</code></dt><dt><code>--speed=&lt;n&gt;</code></dt>
<dd><p>Sets how fast the rope is taken in.</p><p>Too fast breaks it.</p>
<dl><dt>slow</dt><dd>1 metre a minute</dd><dt>fast</dt></dl><p>After that it holds.</p></dd>
<dt>--quiet</dt><dd>Says nothing.</dl>
<p>These are all.</p>
<div><table class="nav"><tr><td>Back: Crane<td>Home</table></div></body></html>"""


def test_a_manual_is_read_without_its_way_to_other_pages(tmp_path: Path) -> None:
    assert _read(tmp_path, MANUAL).text == (
        "8. Winch\n\nTo use it, say winch.\n\n8.1. Options\n\n"
        "-s <n>, --speed=<n>\n\nSets how fast the rope is taken in.\n\nToo fast breaks it.\n\n"
        "slow: 1 metre a minute\nfast\n\nAfter that it holds.\n\n"
        "--quiet: Says nothing.\nThese are all.\n\n"
    )


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<dl><dt>Crane", "Crane\n\n"),
        ("<dl><dt>Crane<dt>Winch</dl>", "Crane\n\nWinch\n\n"),
        (
            "<dl><dt>Crane<p>It lifts.<dt>Winch<p>It pulls.</dl>",
            "Crane\n\nIt lifts.\n\nWinch\n\nIt pulls.\n\n",
        ),
        (
            "<dl><dt>Cranes</dt><ul><li>Big</ul><dt>Winches</dt></dl>",
            "Cranes\n\n- Big\nWinches\n\n",
        ),
        ("<dl><dt>Facts<h2>Next</h2><p>Rest.", "Facts\n\nNext\n\nRest.\n\n"),
        (
            "<dl><dt>Crane<table><tr><td>a<td>b<tr><td>1<td>2</table>more<dd>end</dl>",
            "Crane\n\na: 1; b: 2\n\nmore\n\nend\n\n",
        ),
        ("<dl><dt>Author:</dt><dd>Jana</dl>", "Author: Jana\n"),
        ("<dl><dt>Why?</dt><dd>So.</dl>", "Why? So.\n"),
        ("<dl><dd>It lifts.</dl>", "It lifts.\n\n"),
        ("<dl><dt>¶</dt><dd>It lifts.</dl>", "¶: It lifts.\n"),
        ("<dl><dt><h3>Crane</h3></dt><dd>It lifts.</dl>", "Crane\n\nIt lifts.\n\n"),
        (
            "<ol><li><dl><dt>Open</dt><dd>the lid</dl><li>Close</ol>",
            "1. Open\nthe lid\n\n2. Close\n",
        ),
        (
            "<p>Menu of the day.</p><table class=menu><tr><td>Soup<td>7<tr><td>Fish<td>9</table>",
            "Menu of the day.\n\ncolumn 1: Soup; column 2: 7\ncolumn 1: Fish; column 2: 9\n\n",
        ),
        ("<table class=social><tr><td>a<td>b<tr><td>1<td>2</table>", "a: 1; b: 2\n\n"),
    ],
)
def test_no_list_of_definitions_loses_anything(tmp_path: Path, page: str, text: str) -> None:
    assert _read(tmp_path, f"<html>{page}").text == text


def test_bookmarks_keep_their_folders(tmp_path: Path) -> None:
    page = """<H1>Bookmarks</H1><DL><p><DT><H3>Recipes</H3><DL><p>
    <DT><A HREF=1>Apple pie of my aunt</A><DT><A HREF=2>Bread</A><DD>Heavy pot</DL><p>
    <DT><H3>Work</H3><DL><p><DT><A HREF=3>Time sheet</A><DT><A HREF=4>Canteen</A></DL><p></DL>"""
    source = _read(tmp_path, page)
    headings = headings_of(source)
    assert headings["Apple pie of my aunt"] == "Bookmarks > Recipes"
    assert headings["Bread: Heavy pot"] == "Bookmarks > Recipes"
    assert headings["Canteen"] == "Bookmarks > Work"


def test_headings_in_a_definition_stand_under_its_term(tmp_path: Path) -> None:
    long = "What is said of it here is longer than what a label holds, by a word or two or three."
    source = _read(
        tmp_path,
        f"<dl><dt>Crane</dt><dd><h3>Use</h3><p>{long}</p></dd><dt>Winch</dt><dd>{long}!</dd></dl>"
        "<p>The end.</p><section id='file-menu'><h2>File menu</h2><p>Opens files.</p></section>",
    )
    headings = headings_of(source)
    assert headings[long] == "Crane > Use"
    assert headings[f"{long}!"] == "Winch"
    assert headings["The end."] == ""
    assert headings["Opens files."] == "File menu"


def test_what_defines_a_term_stands_under_it(tmp_path: Path) -> None:
    source = _read(tmp_path, MANUAL)
    headings = headings_of(source)
    term = "8. Winch > 8.1. Options > -s <n>, --speed=<n>"
    assert headings["Too fast breaks it."] == term
    assert headings["After that it holds."] == term
    assert headings["These are all."] == "8. Winch > 8.1. Options"


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("<pre>Dear all,\n\nthe crane is {} again, and we wait.</pre>", "prose"),
        ("<pre>NOTES\n=====\n\nThe crane of the harbour is {} again.\n</pre>", "prose"),
        ("<pre>crane:\n  test:\n    - run: make\n\n    - run: crane\n</pre>", "code"),
        ("<pre>crane = {}; if (crane) { lift(crane); }</pre>", "code"),
        ("<p>So it goes:</p><pre>the crane</pre><p>is what stands in the file.", "code"),
    ],
)
def test_a_page_that_only_shows_a_text_is_read_as_one(tmp_path: Path, page: str, kind: str) -> None:
    source = _read(tmp_path, f"<html>{page.replace('{}', 'broken')}</html>")
    assert [s.kind for s in source.segments if "crane" in source.text[s.start : s.end]][-1] == kind


def test_empty_lines_and_underlined_titles_divide_what_is_broken_by_hand(tmp_path: Path) -> None:
    source = _read(tmp_path, "<p>Rope<br>----<br>It is <b>long</b>.<br><br>It holds.</p>")
    assert source.text == "Rope\n----\nIt is long.\n\nIt holds.\n\n"
    assert [(s.kind, s.heading) for s in source.segments] == [
        ("heading", "Rope"),
        ("prose", "Rope"),
        ("prose", "Rope"),
    ]


def test_a_line_in_bold_above_others_is_a_heading(tmp_path: Path) -> None:
    source = _read(
        tmp_path,
        "<h2>Limits</h2><ol><li><p><b>Longest text</b></p><p>A billion bytes.</p></li></ol>"
        "<p><b>(2) How wide may it be?</b></p><blockquote>As wide as a door.</blockquote>"
        "<p><b>Note:</b> It bends.</p><p><b>It costs 9 euros.</b></p><p>Each.</p>"
        "<ul><li><b>Red</b></li><li><b>Blue</b></li></ul><p>These are all.</p>",
    )
    headings = headings_of(source)
    assert headings["A billion bytes."] == "Limits > 1. Longest text"
    asked = "Limits > (2) How wide may it be?"
    assert headings["As wide as a door."] == headings["Note: It bends."] == asked
    assert headings["It costs 9 euros."] == headings["These are all."] == asked


def test_a_page_of_nothing_but_links_keeps_them(tmp_path: Path) -> None:
    links = "".join(f'<li><a href="{n}">Article number {n}</a>' for n in range(9))
    assert "Article number 8" in _read(tmp_path, f"<html><nav><ul>{links}</ul></nav>").text


def test_a_layout_table_is_read_as_text_and_loses_nothing(tmp_path: Path) -> None:
    page = (
        "<html><table><tr><td>Left words<td><table><tr><th>a<th>b<tr><td>1<td>2</table>"
        "after<tr><td>last</table>"
    )
    text = _read(tmp_path, page).text
    assert "a: 1; b: 2\n" in text
    assert all(words in text for words in ("Left words", "after", "last"))


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            "<tr><th>Model<td>AquaChill 300<tr><th>Warranty until<td>9 March 2029",
            "Model: AquaChill 300\nWarranty until: 9 March 2029\n\n",
        ),
        (
            "<tr><th>Model:<td>AquaChill<td>300<tr><th>Serial<td><tr><th><td>new",
            "Model: AquaChill 300\ncolumn 1: Serial\ncolumn 1: new\n\n",
        ),
        (
            "<tr><td>Model<td>AquaChill 300<tr><td>Serial<td>AC3<tr><td>Bought<td>2026-03-09",
            "Model: AquaChill 300\nSerial: AC3\nBought: 2026-03-09\n\n",
        ),
        (
            "<tr><td>Model:<td>AquaChill<tr><td>Serial:<td>AC3",
            "Model: AquaChill\nSerial: AC3\n\n",
        ),
        (
            "<tr><td>Name<td>Town<tr><td>Ann<td>Rome<tr><td>Bob<td>Oslo",
            "Name: Ann; Town: Rome\nName: Bob; Town: Oslo\n\n",
        ),
        (
            "<tr><th>Year<th>Sales<tr><th>2025<td>7<tr><th>2026<td>9",
            "Year: 2025; Sales: 7\nYear: 2026; Sales: 9\n\n",
        ),
    ],
)
def test_a_table_of_labels_and_values_is_read_across(tmp_path: Path, rows: str, text: str) -> None:
    assert _read(tmp_path, f"<html><table>{rows}</table>").text == text


@pytest.mark.parametrize("encoding", ["iso-8859-2", "windows-1251", "shift_jis"])
def test_the_encoding_that_a_page_names_is_used(tmp_path: Path, encoding: str) -> None:
    words = {"iso-8859-2": "Zażółć gęślą", "windows-1251": "Кран", "shift_jis": "港"}[encoding]
    page = f'<html><meta charset="{encoding}"><p>{words}</p>'.encode(encoding)
    assert _read(tmp_path, page).text == f"{words}\n\n"


def test_a_page_without_head_is_named_after_its_first_heading(tmp_path: Path) -> None:
    assert _read(tmp_path, "<html><h1>Ropes &amp; tar</h1><p>x</p>").title == "Ropes & tar"


@pytest.mark.parametrize(
    "unit",
    ["<!--", "<?", "<![", "<!x", "</a", "<a ", "<a b=", '<a b="', "<script>", "<title>", "<div>",
     "<table><tr><td>x", "<dl><dt>x<dd>y", "<ul><li>x", "<a>x", "&amp", "<", "<svg>", "<p>x</div>"],
)  # fmt: skip
def test_the_work_grows_no_faster_than_a_hostile_page(unit: str) -> None:
    assert _work("<html>" + unit * 2_400) < 8 * _work("<html>" + unit * 600)


class _Watched(str):
    """A page that counts how many of its characters are looked at."""

    seen = 0

    def find(self, mark: str, start: int = 0) -> int:  # type: ignore[override]
        place = super().find(mark, start)
        self.seen += (len(self) if place < 0 else place) - start
        return place

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        self.seen += len(part)
        return part


def _work(text: str) -> int:
    """What reading a page costs: calls, characters looked at, lengths of what is returned."""
    page, work = _Watched(text), 0

    def count(frame: FrameType, event: str, value: Any) -> None:
        nonlocal work
        work += 1
        if event == "return" and isinstance(value, str | list | tuple):
            work += len(value)
        elif (
            event == "c_call"
            and value.__name__ == "search"
            and frame.f_globals is vars(html_parser)
        ):
            work += len(text)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse_page(page)
    finally:
        sys.setprofile(before)
    return work + page.seen


@settings(max_examples=120)
@given(st.lists(st.sampled_from(
    ["<div>", "</div>", "<p>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<li>", "<ul>",
     "</ul>", "<pre>", "</pre>", "<h1>", "</h1>", "<a href='x'>", "</a>", "<script>", "</script>",
     "<nav>", "</nav>", "<br/>", "<title>", "</title>", "<!--", "-->", "<img alt='a b c'>", "word ",
     "&amp;", "<", ">", '"', "\n", "<ol>", "<figcaption>", "<caption>", "<th>", "<article>"]
)))  # fmt: skip
def test_no_order_of_tags_breaks_a_page(parts: list[str]) -> None:
    for block in parse_page("".join(parts)).blocks:
        assert block.characters


# --- messages -------------------------------------------------------------------------------------


def _message() -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ann Lée <ann@x.org>"
    message["To"] = "Bob <bob@x.org>, cy@x.org"
    message["Subject"] = "Crane – what we decided"
    message["Date"] = "Fri, 01 May 2026 10:00:00 +0200"
    message["Message-ID"] = "<1@x.org>"
    message.set_content("Hello Bob,\n\nwe decided to buy the crane.\n")
    return message


def test_a_message_gives_its_headers_and_body(tmp_path: Path) -> None:
    source = _read(tmp_path, bytes(_message()), "x.eml")
    assert source.title == "Crane – what we decided"
    assert source.authors == ("Ann Lée",)
    assert source.created_at == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert source.metadata["to"] == ["Bob", "cy@x.org"]
    assert source.metadata["message_id"] == "<1@x.org>"
    assert "Subject: Crane – what we decided" in source.text
    assert "\n\nwe decided to buy the crane.\n" in source.text
    assert source.segments[0].kind == "properties"


def test_the_plain_body_is_preferred_and_a_web_body_is_read_as_a_page(tmp_path: Path) -> None:
    both = _message()
    both.add_alternative("<html><p>web words</p></html>", subtype="html")
    assert "web words" not in _read(tmp_path, bytes(both), "x.eml").text
    web = _message()
    web.set_content("<html><p>web <b>words</b></p></html>", subtype="html")
    assert "web words\n" in _read(tmp_path, bytes(web), "y.eml").text


def test_a_message_of_many_parts_is_read_up_to_a_number_of_them(tmp_path: Path) -> None:
    parts = "".join(f"--b\n\nNote {number} here.\n" for number in range(3_000))
    head = "From: Ann <a@b.org>\nTo: c@d.org\nSubject: Many\nMIME-Version: 1.0\n"
    many = f"{head}Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n"
    source = _read(tmp_path, many.encode(), "x.eml")
    assert source.missing == ("attachments beyond the first 499",)
    assert len(source.segments) < 1_010
    assert len(source.metadata["attachments"]) <= 500
    inner = "".join(f"--o\nContent-Type: message/rfc822\n\n{many}\n" for _ in range(3))
    nested = f"{head}Content-Type: multipart/mixed; boundary=o\n\n{inner}--o--\n"
    assert len(_read(tmp_path, nested.encode(), "y.eml").segments) < 1_020


def test_attachments_are_named_and_text_in_them_is_read(tmp_path: Path) -> None:
    message = _message()
    message.add_attachment("a,b\n1,2\n3,4\n", subtype="csv", filename="costs.csv")
    message.add_attachment(b'{"load": 90}', maintype="application", subtype="json",
                           filename="spec.json")  # fmt: skip
    message.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="crane.png")
    message.add_attachment(_message())
    source = _read(tmp_path, bytes(message), "x.eml")
    assert [a["name"] for a in source.metadata["attachments"]] == [
        "costs.csv", "spec.json", "crane.png", "",
    ]  # fmt: skip
    assert "a: 1; b: 2\na: 3; b: 4\n" in source.text
    assert "load: 90" in source.text
    assert source.text.count("we decided to buy") == 2
    headings = {s.heading for s in source.segments}
    assert {"Attachment: costs.csv", "Attachment: crane.png", "Forwarded message"} <= headings
    assert source.missing == ("text of 1 attachment",)


def test_a_page_is_read_above_the_text_that_a_mailing_list_adds(tmp_path: Path) -> None:
    mail = (
        "From: Ann <ann@firm.example>\nSubject: Crane\nMIME-Version: 1.0\n"
        "Content-Type: multipart/mixed; boundary=b\n\n"
        "--b\nContent-Type: text/html\n\n<p>The crane comes on Monday.</p>\n"
        "--b\nContent-Type: text/plain\n\n{}\n--b--\n"
    )
    listed = mail.format("____________________\nBuilders mailing list\nbuilders@list.example")
    text = _read(tmp_path, listed.encode(), "listed.eml").text
    assert text.count("The crane comes on Monday.") == 1
    assert "Builders mailing list" in text
    alone = mail.format("Bring the straps.")
    assert "Bring the straps." in _read(tmp_path, alone.encode(), "alone.eml").text


def test_what_is_not_read_of_a_message_is_reported_as_missing(tmp_path: Path) -> None:
    message = _message()
    message.add_attachment("a" * 6_000_000, filename="long.txt")
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="x.pdf")
    message.add_attachment(b"", maintype="application", subtype="octet-stream", filename="none")
    message.add_attachment(b"x", maintype="application", subtype="pgp-signature")
    assert _read(tmp_path, bytes(message), "x.eml").missing == ("text of 2 attachments",)
    page = _message()
    page.set_content("<p>Look at this.</p>", subtype="html")
    page.add_related(b"\x89PNG", maintype="image", subtype="png", cid="<1>")
    page.add_attachment("Some notes.", filename="notes.txt")
    assert _read(tmp_path, bytes(page), "y.eml").missing == ("text of 1 attachment",)
    deep = _message()
    for _ in range(7):
        outer = _message()
        outer.add_attachment(deep)
        deep = outer
    assert _read(tmp_path, bytes(deep), "z.eml").missing == ("text of 1 attachment",)
    scan = b"From: a@b\nContent-Type: application/pdf\n\n%PDF-1.7\n"
    assert _read(tmp_path, scan, "scan.eml").missing == ("text of 1 attachment",)


def test_a_message_that_is_all_read_lacks_nothing(tmp_path: Path) -> None:
    both = _message()
    both.add_alternative("<p>we decided to buy the crane.</p>", subtype="html")
    both.add_attachment("a,b\n1,2\n", subtype="csv", filename="costs.csv")
    both.add_attachment(_message())
    assert _read(tmp_path, bytes(both), "x.eml").missing == ()


@pytest.mark.parametrize(
    "head",
    [
        "From: =?utf-8?q?" + "=?" * 500 + "\nSubject: " + "=?utf-8?b?" * 500 + "\nDate: nonsense\n",
        "From: <<<@@\nTo: ,,,;:\nSubject: =?nonsense?q?x?=\nDate: Fri, 99 Foo 2026\n",
        "From: a@b\nTo: c\nSubject: x\nContent-Type: text/plain; charset=nonsense\n",
        "From: a@b\nTo: c\nSubject: x\nContent-Type: multipart/mixed\n",
        "From: a@b\nTo: c\nSubject: x\nContent-Transfer-Encoding: base64\n",
        "From: a@b\nTo: c\nSubject: x\nContent-Type: ;;;=\nContent-Disposition: attachment; x\n",
    ],
)
def test_broken_headers_do_not_hide_the_body(tmp_path: Path, head: str) -> None:
    source = _read(tmp_path, f"{head}\nhello there\n", "x.eml")
    assert source.title


def test_a_message_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    parts = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(1200)
    )
    with pytest.raises(UnreadableSource, match="nested too deeply"):
        _read(tmp_path, f"From: a@b\nTo: c\nSubject: x\n{parts}\nhello", "x.eml")
