"""Settings: which source wins, and how a wrong one is reported."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memctl.config import SECTIONS, example_config, load_config, settings_of, variable_name
from memctl.errors import ConfigError, KnowledgeBaseUnavailable, UsageError
from memctl.kb_settings import (
    Inbox,
    KnowledgeBaseSettings,
    Layout,
    check_name,
    load_settings,
    save_settings,
)
from memctl.validation import allowed_values, setting_rules

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
REPOSITORY = Path(__file__).parents[1]


def write(folder: Path, text: str) -> dict[str, str]:
    """Write a config file and return the environment that points at it."""
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return {"MEMCTL_HOME": str(folder)}


def new_settings(folder: Path, **changes: object) -> KnowledgeBaseSettings:
    made = KnowledgeBaseSettings(
        name=folder.name, created_at=NOW, inboxes=(Inbox(folder / "inbox"),)
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    environ = write(tmp_path, '[query]\nlimit = 7\n[log]\nlevel = "error"\n[watch]\n')
    environ |= {"MEMCTL_QUERY_LIMIT": "8", "MEMCTL_LOG_LEVEL": "info"}
    config = load_config({"query.limit": "9"}, environ)
    assert config.query.limit == 9
    assert config.log.level == "info"
    assert load_config({}, write(tmp_path, "[query]\nlimit = 7")).query.limit == 7
    assert config.watch.rescan_seconds == 30.0


def test_every_setting_names_its_origin(tmp_path: Path) -> None:
    environ = write(tmp_path, "[query]\nlimit = 7\n") | {"MEMCTL_LOG_LEVEL": "info"}
    config = load_config({"query.mode": "vector"}, environ)
    assert config.origins.keys() == settings_of(config).keys()
    assert str(config.origins["query.limit"]) == f"file {tmp_path / 'config.toml'}"
    assert str(config.origins["log.level"]) == "environment MEMCTL_LOG_LEVEL"
    assert str(config.origins["query.mode"]) == "flag --query.mode"
    assert str(config.origins["sql.timeout_seconds"]) == "default"
    assert str(config.origins["home"]) == "environment MEMCTL_HOME"


def test_an_unknown_key_names_the_file_and_the_nearest_valid_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({}, write(tmp_path, "[watch]\nsetle_seconds = 1\n"))
    assert caught.value.message == (
        f"{tmp_path / 'config.toml'}: unknown setting 'watch.setle_seconds'"
    )
    assert caught.value.hint == "did you mean 'watch.settle_seconds'?"
    assert caught.value.exit_code == 2


def test_an_unknown_section_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown setting 'wach'") as caught:
        load_config({}, write(tmp_path, "[wach]\nsettle_seconds = 1\n"))
    assert "'watch'" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[query]\nlimit = "ten"', "query.limit must be a whole number, not 'ten'"),
        ("[query]\nlimit = true", "query.limit must be a whole number, not True"),
        ("[query]\nlimit = 0", "query.limit must be from 1 to 10000, not 0"),
        ("[new_kb]\nalways_on = 1", "new_kb.always_on must be true or false, not 1"),
        ('[log]\nlevel = "inf"', "log.level cannot be 'inf'"),
        ("[watch]\nsettle_seconds = nan", "settle_seconds must be from 0 to 3600, not nan"),
        ("watch = 3", "watch must be a table"),
        ("home = 3", "home must be the path of a folder, not 3"),
        ('home = ""', "home must be the path of a folder, not ''"),
        ("[new_kb]\nchunk_size = 100", "chunk_overlap (150) must be smaller than chunk_size"),
        ('default_kb = "../x"', "'../x' cannot be the name of a knowledge base"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load_config({}, write(tmp_path, text))


def test_an_empty_environment_variable_says_nothing(tmp_path: Path) -> None:
    environ = write(tmp_path, "[query]\nlimit = 7\n")
    empty = dict.fromkeys(["MEMCTL_QUERY_LIMIT", "MEMCTL_DEFAULT_KB", "MEMCTL_LOG_LEVEL"], "")
    config = load_config({}, environ | empty)
    assert (config.query.limit, config.default_kb, config.log.level) == (7, "default", "warning")
    assert config.origins["query.limit"].kind == "file"


def test_a_setting_that_may_be_empty_can_be_emptied_by_its_variable(tmp_path: Path) -> None:
    environ = write(tmp_path, '[models]\nanswer = "some-model"\n')
    assert load_config({}, environ).models.answer == "some-model"
    assert load_config({}, environ | {"MEMCTL_MODELS_ANSWER": ""}).models.answer == ""


def test_a_wrong_environment_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"environment MEMCTL_QUERY_LIMIT: query\.limit must be"):
        load_config({}, {"MEMCTL_HOME": str(tmp_path), "MEMCTL_QUERY_LIMIT": "many"})


def test_broken_toml_names_line_and_column(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml: not valid TOML: .*line 2, column 9"):
        load_config({}, write(tmp_path, "[query]\nlimit = ,\n"))


def test_a_config_file_that_is_not_utf8_is_an_error_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'default_kb = "caf\xe9"')
    with pytest.raises(ConfigError, match="not UTF-8 at byte 17"):
        load_config({}, {"MEMCTL_HOME": str(tmp_path)})


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[query]\nlimit = 3\n")
    assert load_config({}, {"MEMCTL_HOME": str(tmp_path)}).query.limit == 3


def test_a_named_config_file_wins_over_the_one_in_the_home(tmp_path: Path) -> None:
    environ = write(tmp_path, "[query]\nlimit = 3\n")
    other = tmp_path / "other.toml"
    other.write_text('home = "elsewhere"\n[query]\nlimit = 4\n')
    config = load_config({}, environ | {"MEMCTL_CONFIG": str(other)})
    assert config.query.limit == 4
    assert config.home == tmp_path
    assert load_config({}, {"MEMCTL_CONFIG": str(other)}).home == tmp_path / "elsewhere"


def test_the_example_lists_every_setting_with_its_default() -> None:
    text = (REPOSITORY / "config.example.toml").read_text(encoding="utf-8")
    assert text == example_config(), (
        "write it again: memctl config init --stdout > config.example.toml"
    )
    active = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    del active["home"]
    defaults = settings_of(load_config({}, {"MEMCTL_HOME": "/nowhere"}))
    assert active.pop("default_kb") == defaults["default_kb"]
    found = {
        f"{name}.{key}": tuple(v) if isinstance(v, list) else v
        for name, table in active.items()
        for key, v in table.items()
    }
    assert found == {k: v for k, v in defaults.items() if "." in k}


def test_the_example_changes_nothing_when_used_as_it_is(tmp_path: Path) -> None:
    config = load_config({}, write(tmp_path, example_config()))
    assert {str(config.origins[key]) for key in config.origins if key != "home"} == {"default"}


WRONG = "~{user_id}~"
"""A text that may be the name of anything, and no number."""


def test_every_setting_has_an_environment_variable(tmp_path: Path) -> None:
    for name, section in SECTIONS.items():
        for key in setting_rules(section):
            environ = {"MEMCTL_HOME": str(tmp_path), variable_name(f"{name}.{key}"): WRONG}
            if isinstance(getattr(section(), key), str) and not allowed_values(section, key):
                assert settings_of(load_config({}, environ))[f"{name}.{key}"] == WRONG
                continue
            if isinstance(getattr(section(), key), tuple):
                found = settings_of(load_config({}, environ))[f"{name}.{key}"]
                assert found == (WRONG,)
                continue
            with pytest.raises(ConfigError, match=f"{name}.{key}"):
                load_config({}, environ)


@pytest.mark.parametrize(
    "name", ["", "Notes", "con", "lpt1", "-x", "a/b", "..", "a b", "ü", "a\n", "x" * 65, "a\0"]
)
def test_a_name_outside_the_allow_list_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)


@given(st.from_regex(r"[a-z0-9][a-z0-9_-]{4,63}", fullmatch=True))
def test_a_name_of_the_allow_list_is_taken_as_it_is(name: str) -> None:
    assert check_name(name) == name


def test_settings_of_a_knowledge_base_come_back_as_they_were_saved(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    inboxes = (Inbox(folder / "inbox"), Inbox(tmp_path / "vault", "keep"))
    settings = new_settings(folder, inboxes=inboxes, chunk_strategy="semantic", always_on=False)
    save_settings(Layout(folder).settings, settings)
    assert load_settings(Layout(folder).settings) == settings


def test_an_inbox_inside_the_folder_moves_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    save_settings(Layout(folder).settings, new_settings(folder))
    moved = folder.rename(tmp_path / "diary")
    loaded = load_settings(Layout(moved).settings)
    assert (loaded.name, loaded.inboxes) == ("diary", (Inbox(moved / "inbox"),))


def test_a_knowledge_base_of_a_newer_version_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "kb.toml").write_text("format_version = 2\nbrand_new = 1\n")
    with pytest.raises(KnowledgeBaseUnavailable, match="has format 2") as caught:
        load_settings(tmp_path / "kb.toml")
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("chunk_sise = 5", "unknown setting 'chunk_sise'"),
        ("chunk_size = 5", "chunk_size must be from 100"),
        ("inboxes = 5", "inboxes must be tables"),
        ("inboxes = [{path = 5}]", "inboxes.path must be the path"),
        ("inboxes = [{path = 'x', after = 'burn'}]", "inboxes.after cannot be 'burn'"),
        ("inboxes = [{path = 'x', afer = 'move'}]", "unknown setting 'inboxes.afer'"),
        ("created_at = 5", "created_at must be a date"),
    ],
)
def test_a_damaged_kb_toml_is_named(tmp_path: Path, line: str, message: str) -> None:
    created = "" if line.startswith("created_at") else "created_at = 2026-01-01T00:00:00Z\n"
    (tmp_path / "kb.toml").write_text(f"{created}{line}\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_settings(tmp_path / "kb.toml")


def test_settings_that_cannot_be_used_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chunk_size must be from 100"):
        save_settings(tmp_path / "kb.toml", new_settings(tmp_path, chunk_size=5))
    assert not (tmp_path / "kb.toml").exists()


def test_a_list_is_written_as_one_or_with_commas(tmp_path: Path) -> None:
    environ = {"MEMCTL_HOME": str(tmp_path), "MEMCTL_TRIGGERS_FACT": '["note, down", "log:"]'}
    assert load_config({}, environ).triggers.fact == ("note, down", "log:")
    environ["MEMCTL_TRIGGERS_FACT"] = "note down, log:"
    assert load_config({}, environ).triggers.fact == ("note down", "log:")
    config = load_config({}, write(tmp_path, '[triggers]\nmemory = ["document this"]\n'))
    assert config.triggers.memory == ("document this",)
    for wrong in ('"document this"', "[1, 2]"):
        with pytest.raises(ConfigError, match="list of texts"):
            load_config({}, write(tmp_path, f"[triggers]\nmemory = {wrong}\n"))
