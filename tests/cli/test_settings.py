"""memctl config: settings and where each came from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memctl.config import example_config, load_config, settings_of, unknown_variables, variable_name

from .conftest import Run


def test_every_setting_is_shown_with_its_origin(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text("[query]\nlimit = 3\n")
    rows = {row["key"]: row for row in memctl("config", "show", "--origin").rows}
    assert rows["query.limit"]["value"] == 3
    assert rows["query.limit"]["origin"].startswith("file ")
    assert rows["home"]["origin"] == "environment MEMCTL_HOME"
    assert rows["sql.timeout_seconds"]["origin"] == "default"
    table = memctl("config", "show", "--origin", "-o", "table").out
    assert "FROM" in table
    assert "FROM" not in memctl("config", "show", "-o", "table").out


def test_a_flag_wins(memctl: Run, tmp_path: Path) -> None:
    rows = {row["key"]: row for row in memctl("--home", "other", "config", "show").rows}
    assert rows["home"]["value"] == str(tmp_path / "other")
    assert rows["home"]["origin"] == "flag --home"


def test_a_typo_in_the_file_is_one_line_with_the_nearest_key(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home/config.toml"
    file.write_text("[query]\nlimti = 3\n")
    result = memctl("kb", "list")
    assert result.code == 2
    assert result.err == (
        f"error: {file}: unknown setting 'query.limti'\nhint: did you mean 'query.limit'?\n"
    )


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("MEMCTL_HOEM", "did you mean 'MEMCTL_HOME'?"),
        ("MEMCTL_WATCH_SETLE_SECONDS", "did you mean 'MEMCTL_WATCH_SETTLE_SECONDS'?"),
        ("MEMCTL_ZZZ", "memctl config show -o json names those there are"),
    ],
)
def test_a_variable_that_is_no_setting_is_reported_once_with_the_nearest(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, variable: str, hint: str
) -> None:
    monkeypatch.setenv(variable, "1")
    result = memctl("ingest", "--text", "the door code is 4711", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 1)
    assert result.err == (
        f"warning: unknown environment variable {variable} is ignored\nhint: {hint}\n"
    )
    assert memctl("memory", "list", "--quiet").err == ""


def test_every_variable_that_means_something_is_known() -> None:
    config = load_config({}, {"MEMCTL_ENDPOINT_API_KEY_ENV": "MEMCTL_SECRET"})
    known = [
        "MEMCTL_HOME",
        "MEMCTL_CONFIG",
        "MEMCTL_KB",
        "MEMCTL_USER",
        "MEMCTL_AGENT",
        "MEMCTL_SESSION",
        "MEMCTL_DEBUG",
        "MEMCTL_SECRET",
    ]
    known += [variable_name(key) for key in settings_of(config)]
    others = ["_MEMCTL_COMPLETE", "PATH"]
    assert unknown_variables(config, dict.fromkeys([*known, *others], "")) == {}


def test_completion_is_answered_whatever_the_variables(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memctl"],
        capture_output=True, text=True, check=False,
        env={
            **os.environ, "MEMCTL_HOME": str(tmp_path), "MEMCTL_HOEM": "x",
            "_MEMCTL_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "memctl inge",
        },
    )  # fmt: skip
    assert "ingest" in done.stdout
    assert done.stderr == ""


def test_init_writes_the_example_once(memctl: Run, tmp_path: Path) -> None:
    assert memctl("config", "init").code == 0
    written = tmp_path / "home/config.toml"
    assert written.read_text() == example_config()
    assert memctl("config", "path").out == f"{written}\n"
    again = memctl("config", "init")
    assert again.code == 2
    assert "is there already" in again.err
    assert memctl("config", "init", "--stdout").out == example_config()


def test_a_named_file_is_used(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[query]\nlimit = 4\n")
    rows = {
        row["key"]: row["value"] for row in memctl("--config", "mine.toml", "config", "show").rows
    }
    assert rows["query.limit"] == 4


def test_a_named_file_that_is_not_there_is_an_error(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = f"error: no settings file {tmp_path / 'mine.toml'}\nhint: check the path for a typo"
    assert memctl("--config", "mine.toml", "kb", "list").err.startswith(expected)
    monkeypatch.setenv("MEMCTL_CONFIG", "mine.toml")
    result = memctl("ingest", "--text", "the door code is 4711")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(expected)
    assert memctl("config", "path").out == f"{tmp_path / 'mine.toml'}\n"
    assert memctl("config", "init").code == 0
    assert memctl("kb", "list").code == 0


def test_a_file_that_cannot_be_read_can_still_be_found(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text("[query\n")
    assert memctl("kb", "list").code == 2
    assert memctl("config", "path").out == f"{tmp_path / 'home/config.toml'}\n"


def test_memctl_kb_is_where_a_command_looks(memctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    memctl("kb", "create", "notes")
    monkeypatch.setenv("MEMCTL_KB", "notes")
    memctl("memory", "add", "the door code is 4711")
    monkeypatch.delenv("MEMCTL_KB")
    assert [row["kb"] for row in memctl("memory", "list", "-k", "notes").rows] == ["notes"]
    assert [row["name"] for row in memctl("kb", "list").rows] == ["notes"]


@pytest.mark.parametrize("address", ["http://me:hunter2@host/v1", "ftp://me:hunt/er2@host"])
def test_a_password_in_an_address_is_shown_to_nobody(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER", "m")
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER_URL", address)
    for words in (
        ["config", "show"],
        ["config", "show", "--origin", "-o", "table"],
        ["models", "list"],
    ):
        result = memctl(*words)
        assert "er2" not in result.out + result.err
    assert "://***@host" in memctl("config", "show").out
