"""Keep mode: files stay, and what is remembered follows them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from watched import Place

Said = Callable[[list], list[str]]


@pytest.fixture
def vault(place: Place, tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    place.keep(folder)
    return folder


def live(place: Place) -> dict[str, str]:
    """The live documents: text by the name of the file."""
    rows = place.rows("documents", "source", "text", "status")
    return {Path(r["source"]).name: r["text"] for r in rows if r["status"] == "indexed"}


def current(place: Place) -> list[str]:
    rows = place.rows("memories", "text", "valid_to", "level")
    return sorted(r["text"] for r in rows if r["valid_to"] is None and r["level"] == "evidence")


def test_files_stay_where_they_are_and_are_read_once(place: Place, vault: Path, said: Said) -> None:
    (vault / "daily").mkdir()
    (vault / "daily" / "a.md").write_text("Tea with Ann.")
    assert said(place.drain()) == ["ingested"]
    assert said(place.drain()) == []
    assert place.tree(vault) == ["daily/a.md"]
    (row,) = place.rows("documents", "source", "tags")
    assert row["source"] == str(vault / "daily" / "a.md")
    assert "daily" in row["tags"]


def test_a_changed_file_supersedes_its_earlier_version(
    place: Place, vault: Path, said: Said
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    place.drain()
    (vault / "a.md").write_text("Coffee with Ann.")
    assert said(place.drain()) == ["superseded"]
    assert live(place) == {"a.md": "Coffee with Ann."}
    assert current(place) == ["Coffee with Ann."]
    statuses = sorted(row["status"] for row in place.rows("documents", "status"))
    assert statuses == ["indexed", "superseded"]


def test_what_an_edit_did_not_change_stays_of_the_day_that_the_note_states(
    place: Place, vault: Path
) -> None:
    for phone in (1, 2):
        (vault / "a.md").write_text(
            f"---\ndate: 2025-01-10\n---\nTea with Ann.\nRing her at {phone}."
        )
        place.drain()
    rows = place.rows("memories", "text", "created_at", "level", "valid_to")
    days = {
        row["text"]: row["created_at"].date() == date(2025, 1, 10)
        for row in rows
        if row["level"] == "evidence" and row["valid_to"] is None
    }
    assert days == {"Tea with Ann.": True, "Ring her at 2.": False}


def test_a_file_that_changes_back_is_current_again(place: Place, vault: Path) -> None:
    for text in ("one", "two", "one"):
        (vault / "a.md").write_text(f"Version {text}.")
        place.drain()
    assert current(place) == ["Version one."]
    assert len(place.rows("documents", "id")) == 3


def test_a_removed_file_is_gone_and_its_memories_are_history(
    place: Place, vault: Path, said: Said
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    (vault / "b.md").write_text("Rain.")
    place.drain()
    (vault / "a.md").unlink()
    assert said(place.drain()) == ["gone"]
    assert current(place) == ["Rain."]
    statuses = {row["text"]: row["status"] for row in place.rows("documents", "text", "status")}
    assert statuses == {"Tea with Ann.": "gone", "Rain.": "indexed"}
    (vault / "a.md").write_text("Tea with Ann.")
    assert said(place.drain()) == ["ingested"]
    assert current(place) == ["Rain.", "Tea with Ann."]


def test_a_renamed_file_keeps_its_document(place: Place, vault: Path, said: Said) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    place.drain()
    (before,) = place.rows("documents", "id")
    (vault / "sub").mkdir()
    (vault / "a.md").rename(vault / "sub" / "b.md")
    assert said(place.drain()) == ["known", "renamed"]
    (after,) = place.rows("documents", "id", "source", "status")
    assert after == {**before, "source": str(vault / "sub" / "b.md"), "status": "indexed"}
    (memory,) = place.rows("memories", "source")
    assert memory["source"] == after["source"]
    (vault / "sub" / "b.md").write_text("Tea with Bob.")
    assert said(place.drain()) == ["superseded"]
    assert current(place) == ["Tea with Bob."]


def test_two_files_that_change_places_are_each_cited_by_the_name_they_have_now(
    place: Place, vault: Path
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    (vault / "b.md").write_text("Rain, all day.")
    place.drain()
    (vault / "a.md").rename(vault / "c.md")
    (vault / "b.md").rename(vault / "a.md")
    (vault / "c.md").rename(vault / "b.md")
    place.drain()
    assert live(place) == {"a.md": "Rain, all day.", "b.md": "Tea with Ann."}
    memories = place.rows("memories", "source", "text")
    assert {Path(row["source"]).name: row["text"] for row in memories} == live(place)


def test_two_files_of_one_content_outlive_each_other(place: Place, vault: Path, said: Said) -> None:
    for name in ("a.md", "b.md"):
        (vault / name).write_text("The same words.")
    assert sorted(said(place.drain())) == ["ingested", "known"]
    (vault / "a.md").write_text("Other words.")
    place.drain()
    assert current(place) == ["Other words.", "The same words."]
    assert live(place) == {"a.md": "Other words.", "b.md": "The same words."}
    (vault / "b.md").unlink()
    place.drain()
    assert current(place) == ["Other words."]


def test_two_twins_that_change_together_leave_nothing_behind(place: Place, vault: Path) -> None:
    for name in ("a.md", "b.md"):
        (vault / name).write_text("The same words.")
    place.drain()
    (vault / "a.md").write_text("First words.")
    (vault / "b.md").write_text("Second words.")
    place.drain()
    assert current(place) == ["First words.", "Second words."]


def test_a_file_that_becomes_like_another_one_leaves_its_own_past(
    place: Place, vault: Path
) -> None:
    (vault / "a.md").write_text("Words of a.")
    (vault / "b.md").write_text("Words of b.")
    place.drain()
    (vault / "a.md").write_text("Words of b.")
    place.drain()
    assert current(place) == ["Words of b."]


def test_a_file_takes_over_what_another_one_was_until_then(place: Place, vault: Path) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    (vault / "b.md").write_text("Coffee with Bo.")
    place.drain()
    (vault / "a.md").write_text("Coffee with Bo.")
    (vault / "b.md").write_text("Water.")
    place.drain()
    assert live(place) == {"a.md": "Coffee with Bo.", "b.md": "Water."}
    assert current(place) == ["Coffee with Bo.", "Water."]


def test_a_file_that_fails_keeps_its_earlier_version_and_is_not_tried_again(
    place: Place, vault: Path, said: Said
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    place.drain()
    (vault / "a.md").write_text("\0")
    assert said(place.drain()) == ["failed"]
    assert said(place.drain()) == []
    assert (vault / "a.md").exists()
    assert current(place) == ["Tea with Ann."]
    (vault / "a.md").write_text("Tea with Bob.")
    assert said(place.drain()) == ["superseded"]
    assert current(place) == ["Tea with Bob."]


def test_a_file_that_is_empty_now_keeps_its_earlier_version_and_is_not_tried_again(
    place: Place, vault: Path, said: Said
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    place.drain()
    (vault / "a.md").write_text("")
    assert said(place.drain()) == ["empty"]
    assert said(place.drain()) == []
    assert current(place) == ["Tea with Ann."]


def test_a_vault_that_is_not_mounted_does_not_make_everything_gone(
    place: Place, vault: Path, said: Said
) -> None:
    (vault / "a.md").write_text("Tea with Ann.")
    place.drain()
    shutil.move(vault, vault.with_name("unplugged"))
    assert said(place.drain()) == ["waiting"]
    assert current(place) == ["Tea with Ann."]
    shutil.move(vault.with_name("unplugged"), vault)
    assert said(place.drain()) == []


def test_subtitles_that_come_later_complete_their_recording(place: Place, vault: Path) -> None:
    import wave

    with wave.open(str(vault / "talk.wav"), "wb") as writer:
        writer.setparams((1, 1, 8000, 0, "NONE", ""))
        writer.writeframes(b"\0" * 8000)
    place.drain()
    (vault / "talk.srt").write_text("1\n00:00:00,000 --> 00:00:02,000\nThe tide is out.\n")
    place.drain()
    assert "The tide is out." in live(place)["talk.wav"]


def test_hidden_folders_of_a_vault_are_left_alone(place: Place, vault: Path, said: Said) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.json").write_text("{}")
    (vault / "a.md").write_text("Tea.")
    assert said(place.drain()) == ["ingested"]
