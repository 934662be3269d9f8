"""Files that are odd, or that somebody touches meanwhile: none keeps a watcher from the others."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from watched import Place

from memctl.ingest.batch_writing import OutcomeListener
from memctl.ingest.discovery.inbox_scan import InboxFile
from memctl.ingest.discovery.skip_rules import DEEPEST_FOLDER
from memctl.ingest.discovery.sources import Source
from memctl.kb_settings import Inbox, reason_path
from memctl.records import FileOutcome
from memctl.watch.claims import ClaimedFile, Claims, claim_name
from memctl.watch.hand_in import failed_files
from memctl.watch.intake import Intake


def kinds(place: Place) -> dict[str, str]:
    """What is said of each file while the inbox is emptied."""
    said = [event for event in place.drain() if event.source and event.kind != "serving"]
    return {Path(event.source).name: event.kind for event in said}


@pytest.mark.parametrize("seconds", [2**37, 4_000_000_000, 0, -(20 * 365 * 86_400)])
def test_a_file_of_any_time_is_taken(place: Place, seconds: int) -> None:
    os.utime(place.drop("odd.txt", "Ann keeps bees."), (seconds, seconds))
    place.drop("other.txt", "Bob keeps goats.")
    assert kinds(place) == {"odd.txt": "ingested", "other.txt": "ingested"}
    assert place.tree(place.layout.processed) == ["odd.txt", "other.txt"]


def test_a_kept_file_of_any_time_is_read_once(place: Place, tmp_path: Path) -> None:
    (vault := tmp_path / "vault").mkdir()
    place.keep(vault)
    (vault / "odd.txt").write_text("Ann keeps bees.")
    os.utime(vault / "odd.txt", (2**37, 2**37))
    assert kinds(place) == {"odd.txt": "ingested"}
    assert kinds(place) == {}


@pytest.mark.parametrize(
    ("ends", "content"), [("processed", "Ann keeps bees."), ("failed", "%PDF-1.7 cut")]
)
def test_a_folder_that_is_called_as_a_file_was_finds_its_place(
    place: Place, ends: str, content: str
) -> None:
    place.drop("plan", content)
    kinds(place)
    place.drop("plan/a", f"{content} And more.")
    place.drop("other.txt", "Tom keeps geese.")
    assert kinds(place)["other.txt"] == "ingested"
    moved = place.tree(place.layout.folder / ends)
    assert {"plan", "plan-2/a"} <= set(moved)


def test_a_path_that_is_too_long_beside_the_inbox_loses_its_folders(place: Place) -> None:
    most = os.pathconf(place.layout.inbox, "PC_PATH_MAX")
    folder = place.layout.inbox
    while len(os.fsencode(folder)) + 202 < most - 60:
        folder /= "d" * 200
    folder.mkdir(parents=True)
    name = "f" * (most - 6 - len(os.fsencode(folder))) + ".txt"
    (folder / name).write_text("Ann keeps bees.")
    place.drop("other.txt", "Bob keeps goats.")
    assert kinds(place) == {name: "ingested", "other.txt": "ingested"}
    assert place.tree(place.layout.processed) == sorted([name, "other.txt"])


def test_folders_that_are_too_deep_are_reported_and_the_rest_is_taken(place: Place) -> None:
    deep = place.drop("/".join(["d"] * (DEEPEST_FOLDER + 1)) + "/deep.txt", "Ann keeps bees.")
    place.drop("/".join(["e"] * 300) + "/less.txt", "Tom keeps geese.")
    place.drop("other.txt", "Bob keeps goats.")
    events = place.drain()
    assert {Path(e.source).name for e in events if e.kind == "ingested"} == {
        "less.txt", "other.txt",
    }  # fmt: skip
    [waiting] = [event for event in events if event.kind == "waiting"]
    assert f"more than {DEEPEST_FOLDER} folders deep" in waiting.message
    assert deep.exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_that_is_taken_away_while_it_is_read_keeps_none_of_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    original = Intake.ingest

    def touched(
        self: Intake, sources: list[Source], commit: Any, done: OutcomeListener, *rest: Any
    ) -> Sequence[FileOutcome]:
        gone = [each.path for each in sources if each.source == "gone.txt" and each.path]
        early, late = (gone, []) if when == "before" else ([], gone)
        for path in early:
            path.unlink()

        def after(outcomes: Sequence[FileOutcome]) -> None:
            while late:
                late.pop().unlink()
            done(outcomes)

        return original(self, sources, commit, after, *rest)

    monkeypatch.setattr(Intake, "ingest", touched)
    for name in ("a.txt", "gone.txt", "z.txt"):
        place.drop(name, f"{name} has bees.")
    gone = "failed" if when == "before" else "ingested"
    assert kinds(place) == {"a.txt": "ingested", "gone.txt": gone, "z.txt": "ingested"}
    assert place.tree(place.layout.processed) == ["a.txt", "z.txt"]
    assert place.tree(place.layout.failed) == place.tree(place.layout.processing) == []
    assert place.damage() == []
    assert kinds(place) == {}


def test_subtitles_whose_recording_is_taken_away_go_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Intake.ingest

    def touched(
        self: Intake, sources: list[Source], commit: Any, done: OutcomeListener, *rest: Any
    ) -> Sequence[FileOutcome]:
        def after(outcomes: Sequence[FileOutcome]) -> None:
            for each in sources:
                if each.path and each.path.suffix == ".mp4":
                    each.path.unlink(missing_ok=True)
            done(outcomes)

        return original(self, sources, commit, after, *rest)

    monkeypatch.setattr(Intake, "ingest", touched)
    place.drop("talk.mp4", b"\0\0\0\x18ftypmp42 no film")
    place.drop("talk.srt", "1\n00:00:01,000 --> 00:00:02,000\nAnn keeps bees.\n")
    kinds(place)
    assert place.tree(place.layout.processed) == ["talk.srt"]
    assert place.tree(place.layout.processing) == []
    assert any("bees" in row["text"] for row in place.rows("memories", "text"))


REASON = "pdf.reason.json"


@pytest.mark.parametrize("apart", [True, False])
def test_the_reason_of_a_failure_replaces_no_file_that_is_called_like_it(
    place: Place, apart: bool
) -> None:
    place.drop(f"a.{REASON}", b"\0" * 99)
    if apart:
        kinds(place)
    place.drop("a.pdf", "%PDF-1.7 cut")
    kinds(place)
    failed = {place.layout.failed / each.name: each for each in failed_files(place.layout)}
    assert sorted(path.read_bytes() for path in failed) == [b"%PDF-1.7 cut", b"\0" * 99][::-1]
    assert all(each.reason for each in failed.values())
    assert place.tree(place.layout.processing) == place.tree(place.layout.inbox) == []


@pytest.mark.parametrize("apart", [True, False])
def test_a_folder_that_is_called_like_a_reason_keeps_no_file_waiting(
    place: Place, apart: bool
) -> None:
    place.drop(f"a.{REASON}/b.pdf", "%PDF-1.7 cut")
    if apart:
        kinds(place)
    place.drop("a.pdf", "%PDF-1.7 broken")
    place.drop("other.txt", "Bob keeps goats.")
    assert kinds(place)["other.txt"] == "ingested"
    assert len(failed_files(place.layout)) == 2
    assert all(each.reason for each in failed_files(place.layout))
    assert kinds(place) == {}


def test_a_file_that_becomes_a_folder_goes_back_and_what_is_in_it_is_taken(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.drop("plan.txt", "Ann keeps bees.")
    original = Claims.claim

    def swapped(self: Claims, files: Sequence[InboxFile], *rest: Any) -> Sequence[ClaimedFile]:
        monkeypatch.setattr(Claims, "claim", original)
        files[0].path.unlink()
        place.drop("plan.txt/a.txt", "Bob keeps goats.")
        return original(self, files, *rest)

    monkeypatch.setattr(Claims, "claim", swapped)
    assert kinds(place) == {}
    assert kinds(place) == {"a.txt": "ingested"}
    assert place.tree(place.layout.processed) == ["plan.txt/a.txt"]
    assert place.tree(place.layout.failed) == place.tree(place.layout.processing) == []


def test_nothing_odd_in_processing_keeps_files_waiting(place: Place) -> None:
    claim = place.layout.processing / claim_name(place.layout.inbox / "odd.txt")
    (claim / "odd.txt").mkdir(parents=True)
    (claim / "odd.txt" / "in.txt").write_text("Ann keeps bees.")
    (place.layout.processing / "0").mkdir()
    (place.layout.processing / "0" / "link.txt").symlink_to("nowhere")
    place.drop("other.txt", "Bob keeps goats.")
    assert kinds(place) == {"in.txt": "ingested", "other.txt": "ingested", "link.txt": "failed"}
    assert list(place.layout.processing.iterdir()) == []


def test_of_a_file_with_many_broken_parts_a_few_are_named_and_the_rest_is_counted(
    place: Place,
) -> None:
    place.drop("many.ics", "BEGIN:VCALENDAR\n" + "BEGIN:VEVENT\n" * 500 + "END:VCALENDAR\n")
    failed = [event.message for event in place.drain() if event.kind == "failed"]
    assert len(failed) == 22  # 20 of them, how many more there are, and the file itself
    assert "480 more parts could not be read" in failed


def test_an_archive_of_which_nothing_can_be_read_fails_with_what_to_do(place: Place) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "Ann keeps bees.")
    content = bytearray(file.getvalue())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # encrypted
    place.drop("secret.zip", bytes(content))
    assert kinds(place)["secret.zip"] == "failed"
    reason = json.loads(reason_path(place.layout.failed / "secret.zip").read_text())
    assert reason["message"] == "secret.zip: none of its files can be read: it is encrypted"
    assert reason["hint"].startswith("unpack it")


def test_a_file_in_the_way_of_processed_is_named_and_waited_for(place: Place) -> None:
    place.layout.processed.rmdir()
    place.layout.processed.write_text("in the way")
    place.drop("a.txt", "Ann keeps bees.")
    (waiting,) = (event for event in place.drain() if event.kind == "waiting")
    assert str(place.layout.processed) in waiting.message
    assert "move it away" in waiting.hint
    place.layout.processed.unlink()
    place.drain()
    assert place.tree(place.layout.processed) == ["a.txt"]
    assert len(place.rows("documents", "id")) == 1


def test_an_archive_of_which_hidden_files_are_left_out_is_not_deleted(place: Place) -> None:
    place.set(inboxes=(Inbox(place.layout.inbox, "delete"),))
    for name, members in [
        ("all.zip", {"a.txt": "Ann keeps bees.", "__MACOSX/._a.txt": "x", ".DS_Store": "x"}),
        ("some.zip", {"b.txt": "Bob keeps goats.", ".notes/c.txt": "Tom keeps geese."}),
    ]:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        place.drop(name, file.getvalue())
    said = {event.source: event.message for event in place.drain() if event.source}
    assert said["all.zip"] == "all.zip holds 1 file."
    assert said["some.zip"] == "some.zip holds 1 file. Left out: 1 hidden file."
    assert place.tree(place.layout.processed) == ["some.zip"]


def test_an_archive_of_nothing_but_hidden_files_fails_and_says_so(place: Place) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(".notes/a.txt", "Ann keeps bees.")
    place.drop("a.zip", file.getvalue())
    (failed,) = (event for event in place.drain() if event.kind == "failed")
    assert failed.message == "a.zip: none of its files can be read: they are hidden"
