"""What every reader of a text format promises: exact offsets, bounded parts, one kind of error."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memctl.errors import UnreadableSource
from memctl.readers import read
from memctl.readers.markup.markdown_files import split_front_matter
from memctl.readers.pieces import PART_CHARS, Piece, assemble
from memctl.readers.text_files.decoding import text_blocks, text_lines
from memctl.records import SourceText

SAMPLES: dict[str, bytes] = {
    "a.txt": b"Hello there.\n\nAnn: hi\nBob: yo #tag\nAnn: [[Link|x]]\n",
    "a.log": b"2026-05-01 10:00:00 INFO x: y\n2026-05-01 10:00:01 WARN x: z\n  at line 3\n",
    "a.rst": b"Title\n=====\n\nText.\n\nSub\n---\n\n::\n\n  code\n",
    "a.py": b"import os\n\nclass A:\n    def f(self):\n        return 1\n",
    "a.md": b"---\ntitle: x\ndate: 2026-05-01\n---\n# H\n\n"
    b"| a | b |\n|--|--|\n| 1 | 2 |\n\n```\nx\n```\n",
    "a.json": b'{"title": "x", '
    b'"list": [{"a": 1, "b": [1, 2]}, {"a": null}], "c": {"d": "\\u00e9"}}',
    "a.jsonl": b'{"a": 1}\n{"b": [1, {"c": 2}]}\n\n{"role": "user", "text": "x"}\n',
    "a.csv": b'name,age,when\nAnn,3,2026-05-01\n"B, b",4,"x\ny"\n',
    "a.tsv": b"name\tage\nAnn\t3\nBob\t4\n",
    "a.yaml": b"a: &x [1, 2]\nb: *x\nlist:\n- n: 1\n  m: 'q'\n- n: 2\n---\nc: |\n  text\n",
    "a.xml": b'<?xml version="1.0"?><a x="1">'
    b"<t>T</t><r><n>1</n></r><r><n>2</n></r><p>x <b>y</b></p></a>",
    "a.html": b"<!doctype html><html><title>T</title><h1>A</h1><p>B &amp; c<ul><li>d</ul>"
    b"<table><tr><th>a<th>b<tr><td>1<td>2</table><pre>x\n y</pre></html>",
    "a.eml": b"From: Ann <a@b.c>\nTo: d@e.f\nSubject: =?utf-8?q?caf=C3=A9?=\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nHello\n'
    b"--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=x.csv\n\na,b\n1,2\n"
    b"--b--\n",
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nAnn: Hi\n\n2\n00:00:03,000 --> 00:00:04,000\nYo\n",
    "a.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Hi</v>\n",
}  # fmt: skip


def _check(sources: list[SourceText]) -> None:
    """Segments are in order, disjoint, within bounds, not blank; parts are numbered and bounded."""
    assert [source.part for source in sources] == list(range(len(sources)))
    for source in sources:
        assert len(source.text) <= PART_CHARS
        assert "\0" not in source.text
        assert "\r" not in source.text
        source.text.encode("utf-8")
        assert "\n" not in source.title
        end = 0
        for segment in source.segments:
            assert end <= segment.start < segment.end <= len(source.text)
            cut = source.text[segment.start : segment.end]
            assert cut == cut.strip()
            end = segment.end
        rest = list(source.text)
        for segment in source.segments:
            rest[segment.start : segment.end] = " " * (segment.end - segment.start)
        left_out = "".join(rest).strip()
        if source.media_type == "message/rfc822":  # a quote or a signature says nothing
            continue
        assert left_out in ("", split_front_matter(source.text)[0].strip())


def _check_or_refuse(path: Path) -> None:
    refusal = ""
    try:
        _check(list(read(path)))
    except UnreadableSource as error:
        refusal = error.message or "nothing"
    assert refusal != "nothing"
    assert "\n" not in refusal


@pytest.mark.parametrize("name", SAMPLES)
def test_segments_are_exact_and_leave_nothing_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(SAMPLES[name])
    sources = list(read(path))
    assert sources
    _check(sources)


def _mutated(content: bytes, dice: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(dice.randint(1, 6)):
        place = dice.randrange(len(data) + 1)
        match dice.randrange(6):
            case 0:
                data[place : place + 1] = bytes([dice.randrange(256)])
            case 1:
                del data[place : place + dice.randint(1, 20)]
            case 2:
                data[place:place] = dice.choice(
                    [b"<", b'"', b"{", b"[", b"\0", b"\r", b":", b"\xff", b"---\n", b"&x ", b"*x ",
                     b"\xed\xa0\x80", b"<!", b"]]>", b"=?", b"--b", b" -> ", b"\x1a", b"\v\x85"]
                )  # fmt: skip
            case 3:
                data[place:place] = data[dice.randrange(len(data) + 1) :][:40]
            case 4:
                data = data[:place] or data
            case 5:
                data[place:place] = data[place : place + 1] * dice.randint(1, 300)
    return bytes(data)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path: Path, name: str) -> None:
    dice = random.Random(name)
    path = tmp_path / name
    for _ in range(100):
        path.write_bytes(_mutated(SAMPLES[name], dice))
        _check_or_refuse(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.sampled_from([*SAMPLES, "noext"]))
def test_random_bytes_under_any_name_are_read_or_refused(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        _check_or_refuse(path)


@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
       st.sampled_from([*SAMPLES, "noext"]))  # fmt: skip
def test_any_text_under_any_name_is_read_or_refused(text: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, "utf-8", newline="")
        _check_or_refuse(path)


@settings(max_examples=150)
@given(st.text("ab \n\r#-=`|:[]().\u2028é", max_size=400), st.sampled_from(["a.txt", "a.md", "a.py",
       "a.rst", "a.log"]))  # fmt: skip
def test_the_text_of_prose_is_the_files_own(text: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(f"x\n{text}", "utf-8", newline="")
        got = "".join(source.text for source in read(path))
    assert got == f"x\n{text}".replace("\r\n", "\n").replace("\r", "\n")


@given(st.lists(st.text("ab\n ", max_size=12)), st.integers(1, 10))
def test_pieces_are_laid_out_without_loss_in_parts_of_any_size(
    texts: list[str], limit: int
) -> None:
    parts = list(assemble(SourceText("", "", ""), [Piece(text) for text in texts], limit))
    assert "".join(part.text for part in parts) == "".join(texts)
    assert all(0 < len(part.text) <= limit or not part.text for part in parts)
    assert [part.part for part in parts] == list(range(len(parts)))


@settings(max_examples=100)
@given(st.text("ab\n\0", min_size=1, max_size=200), st.integers(2, 30))
def test_a_stream_is_cut_at_line_ends_and_lines_that_are_too_long(text: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_text(text, "utf-8", newline="")
        blocks, lines = list(text_blocks(path, size)), list(text_lines(path, size))
    whole = text.replace("\0", "")
    if text.isascii() and "\0" not in text:
        assert "".join(blocks) == "".join(lines) == whole
        assert all(b.endswith("\n") or len(b) == size or b is blocks[-1] for b in blocks)
    assert all(len(block) <= size for block in blocks + lines)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.log", "a.csv", "a.jsonl"])
def test_a_big_file_comes_in_parts_that_lose_nothing(tmp_path: Path, name: str) -> None:
    rows = [f"word{n} " + "filler " * 20 for n in range(16_000)]
    if name == "a.jsonl":
        rows = [f'{{"text": "{row}"}}' for row in rows]
    if name == "a.csv":
        rows = ["text,n", *(f"{row},{n}" for n, row in enumerate(rows))]
    path = tmp_path / name
    path.write_text("\n".join(rows))
    sources = list(read(path))
    assert len(sources) >= 3
    _check(sources)
    words = set(" ".join(source.text for source in sources).split())
    assert words >= {f"word{n}" for n in range(16_000)}
    assert len({source.title for source in sources}) == 1


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py", "a.log", "a.csv", "a.jsonl"])
def test_one_endless_line_is_cut_into_parts(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(('{"a": 1}\n' if name == "a.jsonl" else "a,b\n") + "x" * 3_500_000)
    sources = list(read(path))
    _check(sources)
    assert sum(source.text.count("x") for source in sources) == 3_500_000


MEASURE = """
import re, sys
from pathlib import Path
from memctl.readers import read
def peak():
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss starts at what the parent process had
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(source.text.count("\\n") for source in read(Path(sys.argv[1])))
before = peak()
rows = sum(source.text.count("\\n") for source in read(Path(sys.argv[2])))
print(rows, peak(), peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory cannot be asked for there")
@pytest.mark.parametrize("name", ["big.csv", "big.jsonl", "big.txt"])
def test_a_big_file_streams_in_little_memory(tmp_path: Path, name: str) -> None:
    line = {
        "big.csv": "{n},person {n},a remark of some length about person {n} and more words\n",
        "big.jsonl": '{{"n": {n}, "who": "person {n}", "what": "a remark about {n}"}}\n',
        "big.txt": "Line {n} says something about person {n}, at some length, and ends.\n",
    }[name]
    block = "".join(line.format(n=n) for n in range(10_000, 20_000))
    header = "id,name,remark\n" if name == "big.csv" else ""
    count = (24_000_000 if name == "big.csv" else 10_000_000) // len(block) + 1
    small, big = tmp_path / f"small-{name}", tmp_path / name
    small.write_text(header + block)
    with big.open("w") as file:
        file.write(header)
        file.writelines(block for _ in range(count))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(big)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, peak, grown = map(int, done.stdout.split())
    assert rows == count * 10_000
    assert grown < 20_000_000
    assert peak < 60_000_000
