"""What lies in an inbox, and which of it may be taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited import permissions_that_hold

from memctl.ingest.discovery.inbox_scan import InboxFile, scan_inbox
from memctl.ingest.discovery.skip_rules import may_be_taken
from memctl.watch.inbox_scanner import StabilityTracker


def write(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def found(inbox: Path) -> list[str]:
    return sorted(file.relative.as_posix() for file in scan_inbox(inbox).files)


@pytest.mark.parametrize(
    "name",
    [
        *(".hidden", "movie.mkv.part", "setup.exe.crdownload", "a.download", "report.tmp"),
        *("~$report.docx", "notes.txt~", ".notes.txt.swp", "notes.swp", "x.PARTIAL", "a.aria2"),
        *("Thumbs.db", "desktop.ini", ".DS_Store", "file.filepart", "._resource"),
        *("film.mkv.!qB", "film.mkv.!ut", "film.mkv.bc!", "#notes.txt#"),
    ],
)
def test_half_downloaded_temporary_and_hidden_names_are_left(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    write(tmp_path / "part.txt")
    assert found(tmp_path) == ["part.txt"]


@given(st.text(min_size=1))
def test_any_name_can_be_judged(name: str) -> None:
    assert may_be_taken(name) in (True, False)


def test_links_and_pipes_are_never_taken(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    secret = write(tmp_path / "secret.txt")
    write(inbox / "a.txt")
    (inbox / "link.txt").symlink_to(secret)
    (inbox / "folder").symlink_to(tmp_path)
    (inbox / "own.txt").symlink_to(inbox / "a.txt")
    os.mkfifo(inbox / "pipe.txt")
    assert found(inbox) == ["a.txt"]


def test_subfolders_become_tags(tmp_path: Path) -> None:
    write(tmp_path / "work" / "2024" / "a.txt")
    (file,) = scan_inbox(tmp_path).files
    assert file.tags == ("work", "2024")


def test_hidden_and_excluded_folders_are_not_looked_into(tmp_path: Path) -> None:
    for name in (".obsidian/a.json", "kb/notes/lance/x.txt", "page.download/a.html", "b.txt"):
        write(tmp_path / name)
    files = scan_inbox(tmp_path, [tmp_path / "kb"]).files
    assert [file.relative.as_posix() for file in files] == ["b.txt"]


def test_ignored_files_are_left(tmp_path: Path) -> None:
    write(tmp_path / ".memctlignore", "templates/\n")
    write(tmp_path / "templates" / "daily.md")
    write(tmp_path / "a.md")
    assert found(tmp_path) == ["a.md"]


def test_subtitles_travel_with_the_recording_of_their_name(tmp_path: Path) -> None:
    for name in ("talk.mp4", "talk.srt", "talk.en.vtt", "talk2.srt", "other.mp3"):
        write(tmp_path / name)
    files = {file.path.name: file for file in scan_inbox(tmp_path).files}
    assert sorted(files) == ["other.mp3", "talk.mp4", "talk2.srt"]
    assert [path.name for path in files["talk.mp4"].sidecars] == ["talk.en.vtt", "talk.srt"]
    assert files["talk.mp4"].size == 3


def test_subtitles_with_a_name_of_their_own_are_files_of_their_own(tmp_path: Path) -> None:
    names = ("talk.mp4", "talk.en-GB.vtt", "talk.mp4.srt", "talk.part two.srt", "talk.en.old.srt")
    for name in names:
        write(tmp_path / name)
    files = {file.path.name: file for file in scan_inbox(tmp_path).files}
    assert sorted(files) == ["talk.en.old.srt", "talk.mp4", "talk.part two.srt"]
    assert [path.name for path in files["talk.mp4"].sidecars] == ["talk.en-GB.vtt", "talk.mp4.srt"]


def test_subtitles_go_with_the_recording_whose_name_they_share_the_most_of(tmp_path: Path) -> None:
    for name in ("talk.mp4", "talk.en.mp4", "talk.en.srt", "talk.de.srt"):
        write(tmp_path / name)
    sidecars = {
        file.path.name: [path.name for path in file.sidecars] for file in scan_inbox(tmp_path).files
    }
    assert sidecars == {"talk.mp4": ["talk.de.srt"], "talk.en.mp4": ["talk.en.srt"]}


def test_two_recordings_of_one_name_do_not_both_claim_the_subtitles(tmp_path: Path) -> None:
    for name in ("talk.mp3", "talk.mp4", "talk.srt"):
        write(tmp_path / name)
    sidecars = [path for file in scan_inbox(tmp_path).files for path in file.sidecars]
    assert [path.name for path in sidecars] == ["talk.srt"]


def test_a_folder_that_cannot_be_listed_is_a_problem_and_no_more(tmp_path: Path) -> None:
    write(tmp_path / "closed" / "a.txt")
    write(tmp_path / "b.txt")
    (tmp_path / "closed").chmod(0)
    with permissions_that_hold():
        result = scan_inbox(tmp_path)
    (tmp_path / "closed").chmod(0o700)
    assert [file.path.name for file in result.files] == ["b.txt"]
    assert "closed" in result.problems[0]


# --- standing still ------------------------------------------------------------------------------


class Time:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def at() -> Time:
    return Time()


def settling(at: Time, seconds: float = 2.0) -> StabilityTracker:
    return StabilityTracker(seconds, wall=at, monotonic=at)


def places(files: list[InboxFile]) -> list[Path]:
    return [each.path for each in files]


def seen(size: int = 1, mtime: float = 1_000.0, changed: float = 1_000.0) -> InboxFile:
    path = Path("/inbox/a.txt")
    return InboxFile(path, path.parent, size, int(mtime * 1e9), int(changed * 1e9))


def test_a_file_is_ready_once_it_has_stood_still(at: Time) -> None:
    files = settling(at)
    assert files.ready([seen()]) == ([], 2.0)
    at.now += 1.5
    assert files.ready([seen()])[0] == []
    at.now += 0.6
    assert places(files.ready([seen()])[0]) == [seen().path]


def test_a_file_that_grows_starts_anew(at: Time) -> None:
    files = settling(at)
    for size in range(1, 6):
        at.now += 1.5
        assert files.ready([seen(size, at.now, at.now)])[0] == []
    at.now += 2
    assert len(files.ready([seen(5, at.now - 2, at.now - 2)])[0]) == 1


def test_a_file_that_the_system_saw_change_long_ago_is_ready_at_once(at: Time) -> None:
    assert places(settling(at).ready([seen(changed=900.0)])[0]) == [seen().path]


def test_an_old_time_stamp_alone_does_not_make_a_file_ready(at: Time) -> None:
    assert settling(at).ready([seen(mtime=10.0, changed=999.9)])[0] == []


def test_a_time_in_the_future_only_means_to_look_twice(at: Time) -> None:
    files = settling(at)
    future = seen(mtime=9e8, changed=9e8)
    assert files.ready([future]) == ([], 2.0)
    at.now += 2
    assert places(files.ready([future])[0]) == [future.path]


def test_a_file_being_written_is_not_ready_until_the_writer_is_done(
    tmp_path: Path, at: Time
) -> None:
    files = settling(at)
    path = tmp_path / "a.txt"
    with path.open("w") as writer:
        for _ in range(6):
            writer.write("more and more")
            writer.flush()
            at.now += 1.5
            assert files.ready(scan_inbox(tmp_path).files)[0] == []
    at.now += 2.1
    assert len(files.ready(scan_inbox(tmp_path).files)[0]) == 1
