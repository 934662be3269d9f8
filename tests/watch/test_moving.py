"""Files move without ever being lost or overwritten."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.pinned import LONGEST_NAME, reason_path
from memctl.watch.moving import free_place, move_file


@pytest.fixture
def other_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renaming between files called `*.here` and others fails as between two file systems."""
    rename = Path.rename

    def refuses(self: Path, target: Path) -> Path:
        if self.suffix == ".here":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuses)


def test_a_file_moves_to_another_file_system_with_its_time(
    tmp_path: Path, other_disk: None
) -> None:
    source, target = tmp_path / "a.here", tmp_path / "b.txt"
    source.write_bytes(b"x" * 3_000_000)
    os.utime(source, ns=(1, 1_000_000_000_000_000_000))
    move_file(source, target)
    assert not source.exists()
    assert target.read_bytes() == b"x" * 3_000_000
    assert target.stat().st_mtime_ns == 1_000_000_000_000_000_000
    assert list(tmp_path.iterdir()) == [target]


def test_a_copy_that_fails_leaves_the_file_where_it_was(
    tmp_path: Path, other_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.here"
    source.write_text("precious")

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("memctl.watch.moving.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space"):
        move_file(source, tmp_path / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.here"]


def test_a_file_that_changes_while_it_is_copied_stays(
    tmp_path: Path, other_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.here"
    source.write_text("one")
    copystat = __import__("shutil").copystat

    def meanwhile(one: Path, other: Path, **options: bool) -> None:
        copystat(one, other, **options)
        source.write_text("one and two")

    monkeypatch.setattr("memctl.watch.moving.shutil.copystat", meanwhile)
    with pytest.raises(OSError, match="changed while"):
        move_file(source, tmp_path / "b.txt")
    assert source.read_text() == "one and two"
    assert not (tmp_path / "b.txt").exists()


def test_a_name_in_use_gets_a_number_and_sidecars_get_the_same(tmp_path: Path) -> None:
    for name in ("talk.mp4", "talk-2.en.srt"):
        (tmp_path / name).touch()
    places = free_place(tmp_path, Path("talk.mp4"), [Path("talk.en.srt")])
    assert [path.name for path in places.values()] == ["talk-3.mp4", "talk-3.en.srt"]


names = st.binary(min_size=1, max_size=LONGEST_NAME).filter(
    lambda name: not set(name) & {0, ord("/")} and name not in (b".", b"..")
)


@given(names)
def test_every_name_has_a_free_place_beside_itself(tmp_path_factory: object, name: bytes) -> None:
    folder = tmp_path_factory.mktemp("place")  # type: ignore[attr-defined]
    relative = Path(os.fsdecode(name))
    for _ in range(3):
        place = free_place(folder, relative, [])[relative]
        place.touch(exist_ok=False)
        reason_path(place).touch(exist_ok=False)
    assert len(list(folder.iterdir())) == 6
