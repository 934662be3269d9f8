"""memctl kb: knowledge bases from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Run


def test_what_is_created_is_listed_and_shown(memctl: Run) -> None:
    made = memctl("kb", "create", "notes", "--chunk-size", "800", "--on-demand")
    assert (made.code, made.out) == (0, "")
    (row,) = memctl("kb", "list").rows
    assert (row["name"], row["chunk_size"], row["always_on"]) == ("notes", 800, False)
    shown = memctl("kb", "show", "notes", "-o", "json").json
    assert shown["embedder"] == "builtin/wordllama-256"
    assert shown["inboxes"][0]["after"] == "move"
    assert "chunk_size            800" in memctl("kb", "show", "notes", "-o", "table").out


def test_a_bad_name_is_a_usage_error_and_creates_nothing(memctl: Run, tmp_path: Path) -> None:
    for name in ("../x", "Notes", "nul", "x" * 300, "a\x1b[31m", ""):
        result = memctl("kb", "create", name)
        assert result.code == 2
        assert result.err.startswith("error: ")
        assert "\nhint: " in result.err
        assert "\x1b" not in result.err
    assert not (tmp_path / "home").exists()


def test_a_bad_setting_names_its_range(memctl: Run) -> None:
    result = memctl("kb", "create", "notes", "--chunk-size", "7")
    assert result.code == 2
    assert "chunk_size must be from 100 to 20000, not 7" in result.err


def test_an_unknown_one_is_exit_code_10_with_the_nearest_name(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    for words in (["kb", "show", "note"], ["query", "x", "-k", "note"], ["kb", "pause", "note"]):
        result = memctl(*words)
        assert result.code == 10
        assert result.err == "error: no knowledge base 'note'\nhint: did you mean 'notes'?\n"


def test_settings_are_changed_one_by_one(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    memctl("kb", "create", "notes")
    memctl("kb", "set", "notes", "--consolidate-interval", "5", "--inbox", "vault=delete")
    memctl("kb", "set", "notes", "--after", "keep")
    shown = memctl("kb", "show", "notes", "-o", "json").json
    assert shown["consolidate_interval"] == 5
    assert [inbox["after"] for inbox in shown["inboxes"]] == ["keep", "delete"]
    memctl("kb", "set", "notes", "--remove-inbox", "vault")
    assert len(memctl("kb", "show", "notes", "-o", "json").json["inboxes"]) == 1


def test_nothing_to_set_and_a_folder_that_is_not_there_are_usage_errors(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    assert memctl("kb", "set", "notes").code == 2
    result = memctl("kb", "set", "notes", "--inbox", "nowhere")
    assert result.code == 2
    assert "nowhere" in result.err


def test_pause_archive_and_resume_change_the_status(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    for verb, status in (("pause", "paused"), ("archive", "archived"), ("resume", "active")):
        assert memctl("kb", verb, "notes").code == 0
        assert memctl("kb", "list").rows[0]["status"] == status


def test_an_archived_one_refuses_writing_and_says_how_to_go_on(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    memctl("kb", "archive", "notes")
    result = memctl("ingest", "--text", "hello", "-k", "notes")
    assert result.code == 1
    assert "hint: memctl kb resume notes" in result.err


def test_showing_one_tells_settings_as_people_read_them(memctl: Run) -> None:
    memctl("kb", "create", "notes", "--private")
    shown = memctl("kb", "show", "notes", "-o", "table").out
    assert re.search(r"^private +yes$", shown, re.MULTILINE)
    assert re.search(r"^redact +no$", shown, re.MULTILINE)
    assert re.search(r"^created_at +\d{4}-\d\d-\d\d \d\d:\d\d$", shown, re.MULTILINE)


def test_renaming_and_deleting(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    assert memctl("kb", "rename", "notes", "diary").code == 0
    dry = memctl("kb", "delete", "diary", "--dry-run")
    assert "would remove" in dry.out
    unasked = memctl("kb", "delete", "diary")
    assert unasked.code == 2
    assert "--yes" in unasked.err
    assert [row["name"] for row in memctl("kb", "list").rows] == ["diary"]
    assert memctl("kb", "delete", "diary", "--yes").code == 0
    assert memctl("kb", "list").rows == []


def test_one_of_a_newer_version_is_listed_but_not_opened(memctl: Run, tmp_path: Path) -> None:
    memctl("kb", "create", "notes")
    settings = tmp_path / "home/kb/notes/kb.toml"
    settings.write_text(settings.read_text().replace("format_version = 1", "format_version = 9"))
    (row,) = memctl("kb", "list").rows
    assert row["status"] == "error"
    result = memctl("memory", "list", "-k", "notes")
    assert result.code == 1
    assert "format 9" in result.err
    assert "hint: upgrade memctl" in result.err


def test_commands_for_one_knowledge_base_refuse_a_second_and_do_nothing(
    memctl: Run, tmp_path: Path
) -> None:
    for name in ("notes", "diary"):
        memctl("kb", "create", name)
    (tmp_path / "a.txt").write_text("The door code is 4711.")
    for words in (
        "ingest a.txt", "memory add x", "export memories", "import a.txt", "document reprocess d_1"
    ):  # fmt: skip
        result = memctl(*words.split(), "-k", "notes", "-k", "diary")
        assert (result.code, result.out) == (2, "")
        assert result.err == (
            "error: one knowledge base at a time, not notes, diary\nhint: give -k once\n"
        )
    assert memctl("memory", "list", "-k", "notes", "-k", "diary").out == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("chunk_size = \n", "not valid TOML"),
        ("", "missing or empty"),
        (None, "missing or empty"),
    ],
    ids=["garbage", "empty", "missing"],
)
def test_one_whose_settings_are_broken_is_reported_wherever_it_is_left_out(
    memctl: Run, tmp_path: Path, content: str | None, why: str
) -> None:
    memctl("kb", "create", "broken")
    settings = tmp_path / "home/kb/broken/kb.toml"
    settings.unlink()
    if content is not None:
        settings.write_text(content)
    alone = memctl("query", "the door code")
    assert alone.code == 10
    assert "hint: broken cannot be opened: see memctl doctor" in alone.err

    memctl("ingest", "--text", "The door code is 4711.")
    for words in (["query", "the door code"], ["memory", "list"], ["stats"]):
        result = memctl(*words)
        assert result.code == 0
        assert result.rows
        assert result.err.startswith(f"warning: broken is left out: {settings}: {why}")
        assert memctl(*words, "-k", "default").err == ""
        named = memctl(*words, "-k", "broken")
        assert named.code == 12
        assert "hint: memctl doctor -k broken --repair makes it anew" in named.err
    assert [row["name"] for row in memctl("kb", "list").rows] == ["broken", "default"]
    assert "broken is there already" in memctl("kb", "create", "broken").err.replace("'", "")

    found = memctl("doctor")
    assert found.code == 12
    wrong = [row for row in found.rows if row["verdict"] == "damaged"]
    assert [(row["kb"], row["subject"]) for row in wrong] == [("broken", "settings")]
    assert "hint: put it right: memctl doctor --repair" in found.err
    assert memctl("doctor", "-k", "broken", "--repair", "--yes").code == 0
    assert memctl("memory", "list", "-k", "broken").code == 0


def test_there_being_none_yet_says_what_to_do(memctl: Run) -> None:
    result = memctl("query", "anything")
    assert result.code == 10
    assert "hint: put something in first: memctl ingest FILE" in result.err


CHANGES = [
    ("snapshot", "create", "monday"),
    ("forget", "--entity", "Zorba Petrov", "--yes"),
    ("graph", "merge", "Zorba Petrov", "Ida Keller"),
    ("document", "reprocess", "--incomplete"),
]


@pytest.mark.parametrize("command", CHANGES, ids=lambda command: command[0])
def test_a_change_goes_to_the_only_knowledge_base_and_creates_none(
    memctl: Run, command: tuple[str, ...]
) -> None:
    nowhere = memctl(*command)
    assert (nowhere.code, "put something in first" in nowhere.err) == (10, True)
    memctl("kb", "create", "diary", "--private")
    private = memctl(*command)
    assert (private.code, "-k diary" in private.err) == (10, True)
    memctl("kb", "create", "work")
    text = "Zorba Petrov has the code of Ida Keller."
    assert memctl("ingest", "--text", text, "-k", "work").code == 0
    assert memctl(*command).code == 0
    memctl("kb", "create", "notes")
    either = memctl(*command)
    assert (either.code, "which knowledge base: notes, work?" in either.err) == (2, True)
    assert [row["name"] for row in memctl("kb", "list").rows] == ["diary", "notes", "work"]
