"""Files move without ever being lost or overwritten."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.kb_settings import MAX_FILE_NAME_BYTES, reason_path
from memctl.watch import claims
from memctl.watch.claims import free_place, move_file


@pytest.fixture
def other_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renaming files called `*.here` fails as between two file systems."""
    rename = claims.rename_to_free

    def refuses(source: Path, target: Path) -> None:
        if source.suffix == ".here":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr(claims, "rename_to_free", refuses)


@pytest.fixture(params=["renaming", "renaming the old way", "copying"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way in which a file called `*.here` may be moved."""
    if request.param == "copying":
        request.getfixturevalue("other_disk")
    if request.param == "renaming the old way":
        monkeypatch.setattr(claims, "_rename_unless_taken", lambda *_: errno.EINVAL)


def test_a_file_never_moves_over_another_one(tmp_path: Path, way: None) -> None:
    mine, yours = tmp_path / "a.here", tmp_path / "b.txt"
    mine.write_text("mine")
    yours.write_text("yours")
    with pytest.raises(FileExistsError, match="another file by now"):
        move_file(mine, yours)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.here": "mine",
        "b.txt": "yours",
    }
    yours.unlink()
    move_file(mine, yours)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("b.txt", "mine")]


def test_only_one_of_several_files_moves_to_the_same_place_at_once(tmp_path: Path) -> None:
    (tmp_path / "known").touch()
    if claims._rename_unless_taken(tmp_path / "known", tmp_path / "new") in claims._UNKNOWN:
        pytest.skip("this file system cannot refuse by itself to replace a file")
    with ThreadPoolExecutor(4) as threads:
        for number in range(300):
            target = tmp_path / f"{number}.txt"
            files = [tmp_path / f"{number}-{letter}.txt" for letter in "abcd"]
            for file in files:
                file.write_text(file.name)
            start = Barrier(len(files))
            moved = list(threads.map(has_moved, files, repeat(target), repeat(start)))
            assert moved.count(True) == 1
            assert target.read_text() == files[moved.index(True)].name
            assert [file.exists() for file in files] == [not each for each in moved]


def has_moved(file: Path, target: Path, start: Barrier) -> bool:
    start.wait(60)
    try:
        move_file(file, target)
    except FileExistsError:
        return False
    return True


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

    monkeypatch.setattr("memctl.watch.claims.shutil.copyfileobj", full)
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

    monkeypatch.setattr("memctl.watch.claims.shutil.copystat", meanwhile)
    with pytest.raises(OSError, match="changed while"):
        move_file(source, tmp_path / "b.txt")
    assert source.read_text() == "one and two"
    assert not (tmp_path / "b.txt").exists()


def test_a_name_in_use_gets_a_number_and_sidecars_get_the_same(tmp_path: Path) -> None:
    for name in ("talk.mp4", "talk-2.en.srt"):
        (tmp_path / name).touch()
    places = free_place(tmp_path, Path("talk.mp4"), [Path("talk.en.srt")])
    assert [path.name for path in places.values()] == ["talk-3.mp4", "talk-3.en.srt"]


names = st.binary(min_size=1, max_size=MAX_FILE_NAME_BYTES).filter(
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
