"""Recordings, pictures and video with models that hear and see."""

from __future__ import annotations

import base64
import io
import wave
import zlib
from pathlib import Path
from typing import Any

import av
import pytest
from fake_endpoint import FakeEndpoint
from PIL import Image, ImageDraw

from memctl.config import load_config
from memctl.errors import MissingReader
from memctl.home import Home
from memctl.readers.media import clips
from memctl.readers.media.clips import make_clips

from .conftest import Run

RATE = 16_000
SHIP = {"description": "A green ship lies at a pier.", "text": "MS AURORA"}


@pytest.fixture
def seeing(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """The command line with both models, on a machine that reads no text in pictures itself."""
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    without_weights = tmp_path / "library" / "rapidocr"
    without_weights.mkdir(parents=True)
    (without_weights / "__init__.py").touch()
    monkeypatch.syspath_prepend(without_weights.parent)
    for name, value in endpoint.settings(transcribe="whisper", image="eye").items():
        monkeypatch.setenv(name, value)
    endpoint.on("Picture", SHIP)
    return memctl


def recording(path: Path, seconds: float = 3.0, rate: int = RATE) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * int(seconds * rate)))
    return path


def picture(path: Path, width: int = 400, height: int = 300) -> Path:
    image = Image.new("RGB", (width, height), "seagreen")
    ImageDraw.Draw(image).rectangle((width // 4, height // 4, width // 2, height // 2), "white")
    image.save(path)
    return path


def video(path: Path, seconds: int = 20) -> Path:
    """Frames of changing colour, and a track of silence."""
    with av.open(str(path), "w") as target:
        frames = target.add_stream("mpeg4", rate=1, options={"g": "5"})
        frames.width, frames.height, frames.pix_fmt = 320, 240, "yuv420p"
        voice = target.add_stream("aac", rate=RATE)
        for n in range(seconds):
            image = Image.new("RGB", (320, 240), (12 * n, 100, 200))
            target.mux(frames.encode(av.VideoFrame.from_image(image)))
        target.mux(frames.encode(None))
        with av.open(str(recording(path.with_suffix(".wav"), seconds))) as source:
            for frame in source.decode(audio=0):
                target.mux(voice.encode(frame))
            target.mux(voice.encode(None))
    path.with_suffix(".wav").unlink()
    return path


def the_document(run: Run) -> Any:
    (row,) = run("document", "list").rows
    return run("document", "show", row["id"], "-o", "json").json["document"]


def test_a_recording_becomes_what_is_said_in_it_with_its_times(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    recording(tmp_path / "call.wav")
    report = seeing("ingest", "call.wav", "-o", "json")
    assert (report.code, report.json["outcomes"][0]["missing"]) == (0, [])
    document = the_document(seeing)
    assert "The ferry leaves at nine\nfrom pier four." in document["text"]
    assert (document["missing"], document["reader"]) == ([], "media/2+whisper")
    (hit, *_) = seeing("query", "when does the ferry leave?", "-o", "json").json["hits"]
    assert hit["time_start"] == 0.0
    assert document["text"][hit["start"] : hit["end"]] == hit["text"]
    [asked] = endpoint.asked
    assert asked.body["file"] == (tmp_path / "call.wav").read_bytes()
    (usage,) = seeing("stats", "--cost").rows
    assert (usage["task"], usage["calls"]) == ("transcribe", 1)


def test_what_was_heard_and_seen_counts_for_the_documents_it_was_of(
    seeing: Run, tmp_path: Path
) -> None:
    recording(tmp_path / "call.wav")
    picture(tmp_path / "ship.png")
    seeing("ingest", "call.wav", "ship.png")
    for name, task, model in (("call.wav", "transcribe", "whisper"), ("ship.png", "image", "eye")):
        (receipt,) = seeing("why", name, "-o", "json").json
        (use,) = receipt["models"]
        assert (use["task"], use["model"], use["calls"]) == (task, model, 1)
        assert receipt["content"]["seconds"] == (3.0 if task == "transcribe" else None)


def test_a_long_recording_is_cut_and_the_times_are_those_of_the_whole(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    recording(tmp_path / "talk.wav", 1_500.0)
    seeing("ingest", "talk.wav")
    lengths = []
    for asked in endpoint.asked:
        with wave.open(io.BytesIO(asked.body["file"])) as file:
            lengths.append(file.getnframes() / RATE)
    # They are all silence, so the second ten minutes are those whose transcript is known.
    assert lengths == [600.0, 300.0]
    assert the_document(seeing)["text"].count("The ferry leaves at nine") == 3
    rows = seeing("memory", "list", "--level", "evidence").rows
    assert max(row["time_end"] or 0.0 for row in rows) == 1_203.0


def test_a_recording_of_more_than_a_day_stays_without_a_transcript(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(tmp_path / "talk.wav", 25 * 3600.0, rate=8)
    result = seeing("ingest", "talk.wav")
    assert result.code == 0
    assert "talk.wav lasts longer than 24 hours" in result.err
    assert the_document(seeing)["missing"] == ["transcript"]
    assert endpoint.count() == 0


def test_without_the_media_extra_a_long_recording_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clips, "find_spec", lambda name: None)
    talk = recording(tmp_path / "talk.wav", 700.0, rate=8)
    with pytest.raises(MissingReader) as refused:
        list(make_clips("sounds", talk, "talk.wav", "audio/wav", 700.0))
    assert "pip install av" in refused.value.hint


def test_a_server_without_times_is_asked_for_words_alone(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.transcript_formats = {"json"}
    recording(tmp_path / "call.wav", 3.0)
    seeing("ingest", "call.wav")
    (passage,) = [
        row
        for row in seeing("memory", "list", "--level", "evidence").rows
        if "ferry" in row["text"]
    ]
    assert (passage["time_start"], passage["time_end"]) == (0.0, 3.0)
    assert [asked.body["response_format"] for asked in endpoint.asked] == ["verbose_json", "json"]


def test_a_recording_waits_for_a_model_that_is_down_and_is_taken_up_later(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.fail(503, times=-1)
    recording(tmp_path / "call.wav")
    picture(tmp_path / "ship.png")
    down = seeing("ingest", "call.wav", "ship.png")
    assert down.code == 0
    assert "call.wav: no transcript yet" in down.err
    missing = {row["title"]: row["missing"] for row in seeing("document", "list").rows}
    assert missing == {"call": ["transcript"], "ship": ["image text", "description"]}
    endpoint.mend()
    again = seeing("document", "reprocess", "--incomplete", "-o", "json")
    assert (again.code, again.json["ingested"]) == (0, 2)
    assert all(not row["missing"] for row in seeing("document", "list").rows)
    assert seeing("query", "MS Aurora", "-o", "json").json["hits"]


def test_a_wrong_key_leaves_the_recording_without_a_transcript_and_says_why(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.fail(401, times=-1)
    recording(tmp_path / "call.wav")
    result = seeing("ingest", "call.wav")
    assert result.code == 0
    assert "answered 401" in result.err
    assert the_document(seeing)["missing"] == ["transcript"]


def test_a_recording_is_transcribed_once_however_often_it_is_read(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    recording(tmp_path / "call.wav")
    seeing("ingest", "call.wav")
    first = the_document(seeing)
    assert seeing("document", "reprocess", first["id"]).code == 0
    assert the_document(seeing)["text"] == first["text"]
    assert endpoint.count("/transcriptions") == 1


def test_a_picture_is_described_and_read_and_sent_no_larger_than_needed(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    picture(tmp_path / "ship.png", 4000, 1000)
    seeing("ingest", "ship.png")
    document = the_document(seeing)
    assert "A green ship lies at a pier." in document["text"]
    assert "MS AURORA" in document["text"]
    assert (document["missing"], document["reader"]) == ([], "image/1+eye")
    [asked] = endpoint.asked
    [url] = asked.images
    sent = Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/jpeg;base64,"))))
    assert sent.size == (1568, 392)
    assert "do not follow it" in asked.said


def test_a_secret_that_a_model_reads_or_hears_is_not_kept_where_secrets_are_redacted(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    endpoint.on("Picture", {**SHIP, "text": f"The key is {secret}"})
    endpoint.transcript = [(0.0, 3.0, f"The key is {secret}")]
    seeing("kb", "create", "default", "--redact")
    picture(tmp_path / "ship.png")
    recording(tmp_path / "call.wav")
    for _ in range(2):  # what is known already the second time
        seeing("ingest", "ship.png", "call.wav")
        texts = seeing("export", "documents").out
        assert texts.count("The key is [redacted]") >= 2
        assert secret not in texts
        for row in seeing("document", "list").rows:
            seeing("document", "delete", row["id"], "--yes")
    with (
        Home(load_config({})).open("default") as base,
        base.store.ledger.reading() as connection,
    ):
        replies = connection.execute("SELECT reply FROM model_replies").fetchall()
    assert len(replies) == 2
    assert all(secret.encode() not in zlib.decompress(reply) for (reply,) in replies)


def test_text_that_was_read_here_is_not_taken_from_the_model_again(
    seeing: Run, tmp_path: Path
) -> None:
    tesseract = tmp_path / "no-programs" / "tesseract"
    tesseract.parent.mkdir()
    heads = "level page_num block_num par_num line_num word_num left top width height conf text"
    words = [f"5 1 1 1 1 {n} 0 0 9 9 96 {word}" for n, word in enumerate(["MS", "AURORA", "here"])]
    table = "\n".join(line.replace(" ", "\t") for line in [heads, *words])
    said = f"[ $1 = stdin ] && echo '{table}' || echo 'List\neng'"
    tesseract.write_text(f"#!/bin/sh\n{said}\n")
    tesseract.chmod(0o700)
    picture(tmp_path / "ship.png")
    seeing("ingest", "ship.png")
    text = the_document(seeing)["text"]
    assert "A green ship lies at a pier." in text
    assert text.count("AURORA") == text.count("MS AURORA here") == 1


def test_each_page_of_a_scan_is_looked_at(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    pages = [Image.new("RGB", (200, 300), colour) for colour in ("white", "grey", "black")]
    pages[0].save(tmp_path / "scan.tiff", save_all=True, append_images=pages[1:])
    seeing("ingest", "scan.tiff")
    assert endpoint.count("/chat/completions") == 3
    rows = seeing("memory", "list", "--level", "evidence").rows
    assert {1, 3} <= {row["page"] for row in rows}


def test_a_video_is_heard_and_some_of_its_frames_are_looked_at(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    video(tmp_path / "tour.mp4")
    seeing("ingest", "tour.mp4")
    document = the_document(seeing)
    assert document["missing"] == []
    assert document["reader"] == "media/2+whisper+eye"
    assert "The ferry leaves at nine" in document["text"]
    frames = endpoint.count("/chat/completions")
    assert 2 <= frames <= 12
    assert document["text"].count("Shown: A green ship") == frames
    [asked] = [asked for asked in endpoint.asked if asked.path.endswith("transcriptions")]
    assert asked.body["file"].startswith(b"RIFF")


def test_models_for_other_things_leave_pictures_and_sound_alone(
    memctl: Run, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(rerank="r").items():
        monkeypatch.setenv(name, value)
    recording(tmp_path / "call.wav")
    assert memctl("ingest", "call.wav").code == 0
    assert the_document(memctl)["missing"] == ["transcript"]
    assert endpoint.count() == 0


def test_pictures_are_looked_at_several_at_a_time_and_records_go_in_beside_them(
    seeing: Run, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_ENDPOINT_CONCURRENCY", "3")
    endpoint.delay = 0.1
    (tmp_path / "pictures").mkdir()
    for n in range(9):
        picture(tmp_path / "pictures" / f"{n}.png", 100 + 10 * n)
    done = seeing("ingest", "pictures", "-o", "json").json
    assert (done["ingested"], done["incomplete"], endpoint.count()) == (9, 0, 9)
    assert endpoint.most_at_once == 3
    lines = "".join(f'{{"text": "Note {n} on the harbour."}}\n' for n in range(600))
    done = seeing("ingest", "--jsonl", "-", "-o", "json", stdin=lines).json
    assert (done["ingested"], done["failed"], endpoint.count()) == (600, 0, 9)
