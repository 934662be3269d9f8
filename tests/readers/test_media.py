"""Sound and video: tags, subtitles beside and inside, text on the screen, and damage."""

from __future__ import annotations

import io
import math
import struct
import sys
import wave
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image, ImageDraw, ImageFont
from timeless import BITEXACT

from memctl.errors import UnreadableSource
from memctl.readers import read
from memctl.readers.media import recordings as media_reader
from memctl.readers.media.recordings import duration_text
from memctl.readers.media.subtitles import find_sidecar
from memctl.records import SourceText

RATE = 16_000
SRT = """1
00:00:00,500 --> 00:00:02,000
Mara: Welcome to the <i>roastery</i>.

2
00:00:02,500 --> 00:00:04,250
We open on 20 June
at Harbour Street.
"""


def wav_file(path: Path, seconds: float = 2.0) -> Path:
    tone = (int(9000 * math.sin(n / 7)) for n in range(int(seconds * RATE)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(b"".join(struct.pack("<h", value) for value in tone))
    return path


def sound_file(path: Path, codec: str, **tags: str) -> Path:
    """A sound in any container, made from the same tone, with tags of these names."""
    with av.open(str(path), "w", options=BITEXACT) as target:
        target.metadata.update(tags)
        mux_tone(target, target.add_stream(codec, rate=RATE), path)
    return path


def mp3_with(path: Path, **frames: bytes) -> Path:
    """An mp3 that begins with these frames of ID3."""
    sound_file(path, "mp3")
    body = b"".join(
        struct.pack(">4sI2x", name[:4].encode(), len(frame)) + frame
        for name, frame in frames.items()
    )
    size = bytes(len(body) >> shift & 127 for shift in (21, 14, 7, 0))
    path.write_bytes(b"ID3\x03\0\0" + size + body + path.read_bytes())
    return path


def mux_tone(target: Any, stream: Any, path: Path) -> None:
    wav = wav_file(path.with_name("tone-of-a-test.wav"))
    with av.open(str(wav)) as source:
        for frame in source.decode(audio=0):
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    wav.unlink()


def video_file(path: Path, *screens: str, srt: str = "", sound: bool = False) -> Path:
    """A video that shows each screen for five seconds, with a track of subtitles and a tone."""
    with av.open(str(path), "w", options=BITEXACT) as target:
        video = target.add_stream("mpeg4", rate=1, options={"g": "5"})
        video.width, video.height, video.pix_fmt = 640, 360, "yuv420p"
        audio = target.add_stream("aac", rate=RATE) if sound else None
        subtitles = _subtitle_stream(target, path) if srt else None
        for screen in screens:
            frame = av.VideoFrame.from_image(picture_of(screen))
            for _ in range(5):
                target.mux(video.encode(frame.reformat(format="yuv420p")))
        target.mux(video.encode(None))
        if audio is not None:
            mux_tone(target, audio, path)
        if subtitles is not None:
            _mux_subtitles(target, subtitles, srt)
    return path


def _subtitle_stream(target: Any, path: Path) -> Any:
    source = av.open(io.BytesIO(SRT.encode()), format="srt")
    return target.add_stream_from_template(source.streams.subtitles[0])


def _mux_subtitles(target: Any, stream: Any, srt: str) -> None:
    with av.open(io.BytesIO(srt.encode()), format="srt") as source:
        for packet in source.demux(source.streams.subtitles[0]):
            if packet.size:
                packet.stream = stream
                target.mux(packet)


def picture_of(text: str) -> Image.Image:
    image = Image.new("RGB", (640, 360), "white")
    ImageDraw.Draw(image).text((40, 140), text, fill="black", font=ImageFont.load_default(size=40))
    return image


def read_one(path: Path) -> SourceText:
    (source,) = read(path)
    return source


def said(source: SourceText) -> list[tuple[float | None, str]]:
    timed = [s for s in source.segments if s.time_start is not None]
    return [(s.time_start, source.text[s.start : s.end]) for s in timed]


# --- without words -------------------------------------------------------------------------------


def test_a_recording_without_words_is_kept_under_its_name(tmp_path: Path) -> None:
    source = read_one(wav_file(tmp_path / "2026-05-04_site-visit_harbour.wav", 2.0))
    assert source.missing == ("transcript",)
    assert source.text == "Sound recording “2026-05-04 site visit harbour”, 2 s.\n"
    assert source.created_at == datetime(2026, 5, 4, tzinfo=UTC)
    assert source.metadata["duration"] == 2.0
    assert source.segments[0].kind == "properties"


def test_tags_of_an_mp3_are_told(tmp_path: Path) -> None:
    path = mp3_with(
        tmp_path / "memo7.mp3",
        TIT2=b"\0Site visit",
        TPE1=b"\x03Mara Lind\0Jo\xc3\xa3o",
        TDRC=b"\x002026-05-04",
        COMM=b"\0eng\0The quay is noisy",
        COMM_by_itunes=b"\0engiTunNORM\x000000 0000",
        APIC=b"\0image/png\0\x03\0" + bytes(500),
    )
    source = read_one(path)
    assert (source.title, source.authors) == ("Site visit", ("Mara Lind; João",))
    assert source.created_at == datetime(2026, 5, 4, tzinfo=UTC)
    assert "Comment: The quay is noisy\n" in source.text
    assert "0000" not in source.text
    assert "memo7" in source.text


def test_tags_of_other_formats_are_told_alike(tmp_path: Path) -> None:
    tags = {"title": "Site visit", "artist": "Mara Lind", "comment": "The quay is noisy"}
    paths = [
        sound_file(tmp_path / "a.flac", "flac", **tags),
        sound_file(tmp_path / "a.ogg", "libopus", **tags),
        sound_file(tmp_path / "a.m4a", "aac", **tags),
        sound_file(tmp_path / "a.mp4", "aac", **tags),
        sound_file(tmp_path / "a.mp3", "mp3", **tags),
        sound_file(tmp_path / "a.wav", "pcm_s16le", **tags),
    ]
    for path in paths:
        source = read_one(path)
        assert (source.title, source.authors) == ("Site visit", ("Mara Lind",))
        assert source.metadata["comment"] == "The quay is noisy"
        assert 1.8 < source.metadata["duration"] < 2.3


def test_a_year_alone_is_no_date(tmp_path: Path) -> None:
    source = read_one(mp3_with(tmp_path / "a.mp3", TDRC=b"\x001999"))
    assert source.created_at is None
    assert "Date: 1999" in source.text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.6, "1 min 0 s"), (151, "2 min 31 s"), (3720, "1 h 2 min")],
)
def test_a_length_of_time_is_told_as_one_says_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


# --- words beside the file -----------------------------------------------------------------------


def test_a_subtitle_file_beside_it_gives_the_words_with_their_times(tmp_path: Path) -> None:
    path = wav_file(tmp_path / "talk.wav")
    (tmp_path / "talk.srt").write_text(SRT)
    source = read_one(path)
    assert said(source) == [
        (0.5, "Mara: Welcome to the roastery."),
        (2.5, "We open on 20 June at Harbour Street."),
    ]
    turn = next(s for s in source.segments if s.speaker)
    assert (turn.kind, turn.speaker, turn.time_end) == ("turn", "Mara", 2.0)
    assert source.missing == ()
    assert source.metadata["subtitles"] == "talk.srt"


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["talk.de.srt", "talk.en.vtt", "talk.srt"], "talk.srt"),
        (["talk.de.srt", "talk.en.vtt"], "talk.en.vtt"),
        (["talk.de.srt", "talk.fr.srt"], "talk.de.srt"),
        (["talk.wav.srt"], "talk.wav.srt"),
        (["TALK.EN-us.SRT", "talk.pt-BR.srt"], "talk.pt-BR.srt"),
        (["talk2.srt", "talk.part two.srt", "other.srt"], None),
        (["talk.wav.de.srt", "talk.zh-Hant-TW.vtt"], "talk.wav.de.srt"),
        (["talk.de.srt", "talk.en.sdh.srt"], "talk.en.sdh.srt"),
        (["talk.de.srt", "talk.forced.srt", "talk.en.forced.srt"], "talk.de.srt"),
        (["talk.en.forced.srt"], "talk.en.forced.srt"),
        (["talk..srt", ".en.srt", "talk.english version.srt", "talk.en.de.srt"], None),
    ],
)
def test_the_best_subtitle_file_is_chosen(
    tmp_path: Path, files: list[str], chosen: str | None
) -> None:
    for name in files:
        (tmp_path / name).write_text(SRT)
    found = find_sidecar(tmp_path / "talk.wav", "talk.wav")
    assert (found.name if found else None) == chosen


def test_the_subtitle_file_of_a_claimed_recording_is_found_by_either_name(tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(SRT)
    assert find_sidecar(tmp_path / "f3a9.wav", "talk.wav") == tmp_path / "talk.srt"


def test_an_empty_subtitle_file_is_no_transcript(tmp_path: Path) -> None:
    path = wav_file(tmp_path / "talk.wav")
    (tmp_path / "talk.srt").write_bytes(b"\x00\xff not subtitles")
    assert read_one(path).missing == ("transcript",)


# --- words inside the file -----------------------------------------------------------------------


def test_lyrics_are_words(tmp_path: Path) -> None:
    frame = b"\0eng\0First verse\n\nSecond verse"
    source = read_one(mp3_with(tmp_path / "a.mp3", USLT=frame))
    assert "First verse\n\nSecond verse" in source.text
    assert source.missing == ()


def test_lyrics_with_times_keep_them(tmp_path: Path) -> None:
    lines = b"Hello\0" + struct.pack(">I", 500) + b"Again\0" + struct.pack(">I", 61_500)
    path = mp3_with(tmp_path / "a.mp3", SYLT=b"\0eng\x02\x01\0" + lines)
    assert said(read_one(path)) == [(0.5, "Hello"), (61.5, "Again")]


def test_lyrics_that_a_program_wrote_with_times_keep_them(tmp_path: Path) -> None:
    lyrics = "[00:00.50]Hello\n[01:01.5]Again\n"
    source = read_one(sound_file(tmp_path / "a.flac", "flac", lyrics=lyrics))
    assert said(source) == [(0.5, "Hello"), (61.5, "Again")]


@pytest.mark.usefixtures("without_ocr")
def test_subtitles_inside_a_video_are_read(tmp_path: Path) -> None:
    source = read_one(video_file(tmp_path / "a.mkv", "Hello", srt=SRT, sound=True))
    assert [text for _, text in said(source)] == [
        "Mara: Welcome to the roastery.",
        "We open on 20 June at Harbour Street.",
    ]
    assert said(source)[1][0] == pytest.approx(2.5, abs=0.05)
    assert source.missing == ()
    assert (source.metadata["width"], source.metadata["height"]) == (640, 360)


@pytest.mark.usefixtures("with_tesseract")
@pytest.mark.parametrize("name", ["a.mkv", "a.mp4", "a.mov"])
def test_text_on_the_screen_is_read_where_it_comes_up(tmp_path: Path, name: str) -> None:
    path = video_file(tmp_path / name, "Opening plan 2026", "Opening plan 2026", "Budget 48,500")
    seen = [text for text in said(read_one(path)) if text[1].startswith("On screen:")]
    assert [text for _, text in seen] == [
        "On screen: Opening plan 2026",
        "On screen: Budget 48,500",
    ]
    assert 10 <= (seen[1][0] or 0) < 15


@pytest.mark.usefixtures("without_ocr")
def test_a_video_with_sound_and_no_words_lacks_a_transcript_and_a_silent_one_doesnt(
    tmp_path: Path,
) -> None:
    assert read_one(video_file(tmp_path / "a.mp4", "Hello", sound=True)).missing == ("transcript",)
    assert read_one(video_file(tmp_path / "b.mp4", "Hello")).missing == ()


def test_a_video_is_kept_where_the_media_extra_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = video_file(tmp_path / "site-visit.mkv", "Hello", sound=True)
    monkeypatch.setitem(sys.modules, "av", None)
    source = read_one(path)
    assert source.missing == ("transcript",)
    assert source.text == "Video “site visit”.\n"


# --- damage --------------------------------------------------------------------------------------


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp3").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(UnreadableSource, match=r"a\.mp3"):
        list(media_reader.read(tmp_path / "a.mp3", "a.mp3"))


def test_tags_without_any_sound_after_them_are_refused(tmp_path: Path) -> None:
    path = mp3_with(tmp_path / "a.mp3", TIT2=b"\0Site visit")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UnreadableSource, match=r"a\.mp3 is damaged"):
        list(media_reader.read(path, "a.mp3"))


def test_a_video_cut_short_is_refused(tmp_path: Path) -> None:
    path = video_file(tmp_path / "a.mp4", "Hello")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(UnreadableSource, match=r"a\.mp4 is damaged"):
        list(read(path))


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp3", "mp3"), ("a.flac", "flac"), ("a.m4a", "aac"), ("a.ogg", "libopus")],
)
def test_mutated_sounds_are_read_or_refused_in_one_line(
    tmp_path: Path, survives: Any, name: str, codec: str
) -> None:
    path = sound_file(tmp_path / name, codec, title="Site visit", comment="Noisy")
    survives(media_reader.read, path, _without_most_sound(path.read_bytes()), 150)


def _without_most_sound(content: bytes) -> bytes:
    """The ends of the file, where all that is read of it stands."""
    return content[:600] + content[-1200:]


@pytest.mark.parametrize("name", ["a.mkv", "a.mp4"])
def test_mutated_videos_are_read_or_refused_in_one_line(
    tmp_path: Path, survives: Any, name: str
) -> None:
    path = video_file(tmp_path / name, "Hello", srt=SRT if name == "a.mkv" else "", sound=True)
    survives(media_reader.read, path, path.read_bytes(), 150)
