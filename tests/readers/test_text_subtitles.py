"""Subtitles keep their times and speakers."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memctl.readers import read
from memctl.readers.media.subtitles import subtitle_pieces
from memctl.readers.pieces import assemble, new_document
from memctl.records import Segment

SRT = """1
00:00:01,000 --> 00:00:02,500
Ann: We buy the <i>crane</i>.

2
00:00:03,000 --> 00:01:04,250
- in May,
{\\an8}when it is cheap

3
01:00:00,000 --> 01:00:01,000
2026
"""

VTT = """WEBVTT - a title

NOTE a comment

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start
<v Ann Lee>Hello &amp; <c.loud>welcome</c></v>

00:02.000 --> 00:03.000
rolling line one

00:03.000 --> 00:04.000
rolling line one
rolling line two
"""


def read_subtitles(text: str) -> tuple[str, tuple[Segment, ...]]:
    """Return the words of a SubRip or WebVTT text and their segments, as one text."""
    parts = list(assemble(new_document(), subtitle_pieces(text), limit=len(text) + 1))
    return (parts[0].text, parts[0].segments) if parts else ("", ())


def test_srt_cues_become_segments_with_times() -> None:
    text, segments = read_subtitles(SRT)
    assert text == "Ann: We buy the crane.\n- in May, when it is cheap\n2026\n"
    assert [(s.time_start, s.time_end) for s in segments] == [
        (1.0, 2.5), (3.0, 64.25), (3600.0, 3601.0),
    ]  # fmt: skip
    assert [s.speaker for s in segments] == ["Ann", None, None]
    assert [s.kind for s in segments] == ["turn", "caption", "caption"]


def test_vtt_voices_notes_and_rolling_lines_are_understood() -> None:
    text, segments = read_subtitles(VTT)
    assert text == "Ann Lee: Hello & welcome\nrolling line one\nrolling line two\n"
    assert segments[2].time_start == 3.0


def test_a_subtitle_file_is_a_document_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "2026-05-01-call.srt"
    path.write_bytes(SRT.replace("\n", "\r\n").encode("utf-8-sig"))
    [source] = read(path)
    assert source.media_type == "application/x-subrip"
    assert source.segments[1].time_end == 64.25


@given(st.text("0123456789:,.-> \nabc<>/v{}\\", max_size=300))
def test_damaged_subtitles_raise_nothing_and_offsets_hold(text: str) -> None:
    words, segments = read_subtitles(text)
    end = 0
    for segment in segments:
        assert end <= segment.start < segment.end <= len(words)
        assert segment.time_start is not None
        assert segment.time_end is not None
        assert segment.time_start <= segment.time_end
        end = segment.end
