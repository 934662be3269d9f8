"""How a command ends when something goes wrong: one line, a next step, an exit code."""

from __future__ import annotations

import errno
import json
import os
import py_compile
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from limited import needs_permissions, permissions_that_hold
from waiting import PATIENCE

from memctl import errors
from memctl.home import Home
from memctl.paths import os_error_hint

from .conftest import Run


def test_every_error_has_the_documented_exit_code() -> None:
    codes = {
        name: kind.exit_code for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.MemctlError)
    }  # fmt: skip
    assert codes == {
        "MemctlError": 1, "UsageError": 2, "ConfigError": 2, "NotFoundError": 1,
        "PartialFailure": 3, "NothingFound": 4, "KnowledgeBaseNotFound": 10,
        "KnowledgeBaseUnavailable": 1, "DiskRefused": 1, "LockedError": 11, "DamagedError": 12,
        "UnreadableSource": 1, "EmptySource": 1, "EncryptedSource": 1, "MissingReader": 1,
        "BadRecord": 1, "ChangedSource": 1, "OverLimit": 1, "CoverageLost": 1,
        "ModelError": 1, "ModelUnavailable": 1, "ModelRefused": 1, "RequestRefused": 1,
        "RequestTooLong": 1, "BadReply": 1, "AccessRefused": 1, "QuotaExceeded": 1,
        "VersionConflict": 1,
    }  # fmt: skip


def test_an_unknown_id_or_name_is_exit_code_1(memctl: Run) -> None:
    memctl("kb", "create", "default")
    for words in (
        "memory show m_000000", "insight show i_000000", "document show d_000000",
        "document links none", "session show none", "skill show none", "pool show none",
        "graph neighbors none", "job undo 9 --yes", "feedback show none", "prompt show none",
        "snapshot restore none --yes", "user show none", "agent show none",
    ):  # fmt: skip
        result = memctl(*words.split())
        assert result.code == 1, words
        assert result.err.count("\n") == 2, words  # what is not there, and a hint
    assert memctl("kb", "show", "none").code == 10


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a /proc")
@pytest.mark.parametrize("words", [["watch", "--once"], ["kb", "list"], ["doctor"]])
def test_a_home_that_cannot_be_made_is_said(memctl: Run, words: list[str]) -> None:
    result = memctl("--home", "/proc/none", *words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: the home /proc/none cannot be made: ")
    assert "hint: set MEMCTL_HOME" in result.err


def test_an_unknown_command_or_option_points_at_the_help(memctl: Run) -> None:
    result = memctl("qery", "x")
    assert result.code == 2
    assert "did you mean 'query'" in result.err.lower()
    result = memctl("query", "x", "--limt", "3")
    assert result.code == 2
    assert "hint: see memctl query --help" in result.err
    result = memctl("-k", "work", "memory", "list")
    assert result.code == 2
    assert "hint: options of a command stand after it: memctl memory list -k" in result.err


def test_an_unexpected_failure_is_one_line_unless_the_traceback_is_asked_for(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the sky\nfell \x1b[31mdown")

    monkeypatch.setattr(Home, "entries", broken)
    result = memctl("kb", "list")
    assert result.code == 1
    assert result.err == (
        "error: unexpected RuntimeError: the sky fell \\x1b[31mdown\n"
        "hint: run it again with MEMCTL_DEBUG=1 to see where\n"
    )
    assert "Traceback" in memctl("kb", "list", "--verbose").err
    monkeypatch.setenv("MEMCTL_DEBUG", "1")
    assert "Traceback" in memctl("kb", "list").err


@pytest.mark.parametrize("tail", [b"", bytes(20)], ids=["shorter", "zeros"])
def test_bytecode_that_a_full_disk_has_cut_short_is_removed(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: bytes
) -> None:
    name = f"cut_short_{len(tail)}"
    (tmp_path / f"{name}.py").write_text("ENTRIES = ()\n")
    bytecode = Path(py_compile.compile(str(tmp_path / f"{name}.py")) or "")
    bytecode.write_bytes(bytecode.read_bytes()[:-20] + tail)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Home, "entries", lambda *_: import_module(name).ENTRIES)
    result = memctl("kb", "list")
    assert result.code == 1
    assert result.err.lstrip() == (
        f"error: {bytecode} was cut short, as by a full disk, and has been removed\n"
        "hint: run it again: Python makes it anew\n"
    )
    assert memctl("kb", "list").code == 0


def test_a_failure_of_the_system_names_the_file(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/some/file")

    monkeypatch.setattr(Home, "entries", denied)
    result = memctl("kb", "list")
    expected = "error: /some/file: Permission denied\nhint: check its permissions\n"
    assert (result.code, result.err) == (1, expected)


def test_a_home_that_is_a_file_is_reported(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    result = memctl("kb", "create", "notes")
    assert result.code == 2
    assert str(tmp_path / "home") in result.err


def test_a_home_that_cannot_be_listed_is_reported(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/kb").write_text("a file where a folder should be")
    for words in (["kb", "list"], ["query", "x"], ["doctor"], ["ingest", "--text", "x"]):
        result = memctl(*words)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"error: cannot list {tmp_path}/home/kb: Not a directory\n")


def test_errors_go_to_standard_error_whatever_the_format(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    for output in ("json", "ndjson", "csv", "arrow", "table"):
        result = memctl("memory", "show", "m_000000", "-o", output)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("error: ")


def test_a_damaged_ledger_is_exit_code_12(memctl: Run, tmp_path: Path) -> None:
    memctl("kb", "create", "notes")
    (tmp_path / "home/kb/notes/ledger.sqlite").write_bytes(b"garbage" * 1000)
    result = memctl("memory", "list", "-k", "notes")
    assert result.code == 12
    assert "\nhint: " in result.err


def test_interrupting_is_exit_code_130_and_one_line(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "memctl", "-v", "ingest", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "MEMCTL_HOME": str(tmp_path)},
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write("Half of a letter. " * 50_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_interrupting_before_the_program_is_loaded_prints_no_traceback(tmp_path: Path) -> None:
    slow = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "typer.py").write_text(slow)
    done = subprocess.run(
        [sys.executable, "-m", "memctl", "kb", "list"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_what_is_logged_is_text_for_people_and_json_for_programs(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import logging

    memctl("kb", "list")
    log = logging.getLogger("memctl.somewhere")
    monkeypatch.setenv("MEMCTL_LOG_LEVEL", "info")
    monkeypatch.setenv("MEMCTL_LOG_FORMAT", "text")

    def chatty(_: object) -> list[str]:
        log.info("one\nline")
        log.debug("too much")
        return []

    monkeypatch.setattr(Home, "entries", chatty)
    assert memctl("kb", "list").err == "info: one line\n"
    monkeypatch.setenv("MEMCTL_LOG_FORMAT", "json")
    assert json.loads(memctl("kb", "list").err)["message"] == "one\nline"
    assert memctl("kb", "list", "--quiet").err == ""


def test_a_wrong_choice_is_said_without_words_of_the_parser(memctl: Run) -> None:
    result = memctl("query", "x", "--mode", "foo")
    assert result.code == 2
    assert "'--mode': 'foo' is not one of" in result.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("memory list -n", "'-n' / '--limit'"),
        ("audit --offset", "'--offset'"),
        ("session show standup --last", "'--last'"),
        ("context launch --budget", "'--budget'"),
        ("job undo --yes", "'JOB'"),
    ],
)
def test_a_number_beyond_all_counting_is_refused(memctl: Run, words: str, option: str) -> None:
    memctl("kb", "create", "default")
    result = memctl(*words.split(), "99999999999999999999")
    assert result.code == 2
    expected = f"invalid value for {option}: it must be less than or equal to 1000000000000\n"
    assert expected in result.err


@pytest.mark.parametrize(
    ("words", "message", "command"),
    [
        (
            "memory list -n abc",
            "invalid value for '-n' / '--limit': not a whole number",
            "memory list",
        ),
        ("memory list -n -1", "it must be greater than or equal to 0", "memory list"),
        ("memory add x --importance high", "'--importance': not a number", "memory add"),
        ("kb create x --chunk-size 1.5", "'--chunk-size': not a whole number", "kb create"),
        ("ingest --text", "option '--text' requires an argument", "ingest"),
        ("-q memory add x --type", "option '--type' requires an argument", "memory add"),
        ("kb list x y", "too many arguments: (x y)", "kb list"),
        ("--home", "option '--home' requires an argument", ""),
    ],
)
def test_a_wrong_use_is_said_in_plain_words_and_points_at_the_help_of_its_command(
    memctl: Run, words: str, message: str, command: str
) -> None:
    result = memctl(*words.split())
    assert result.code == 2
    assert message in result.err
    assert result.err.endswith(f"hint: see {' '.join(['memctl', *command.split()])} --help\n")


def test_a_variable_that_is_no_number_gets_a_hint(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_LIMIT", "abc")
    assert "hint: the default is 10" in memctl("query", "x").err


LONG = "first" + "a" * 300 + "last"
NOWHERE = [
    ("loop", "loop: Too many levels", "a link there leads back to itself"),
    (LONG, "aaaalast: File name too long", "give a shorter name"),
    ("file/x", "file/x: Not a directory", "a part of that path is a file"),
]


@pytest.fixture
def odd(memctl: Run, tmp_path: Path) -> Run:
    """A folder with a link that leads back to itself, and a file."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("Tomatoes want sun.\n")
    memctl("ingest", "-", stdin="Tomatoes want sun.\n")
    return memctl


@pytest.mark.parametrize(("name", "message", "hint"), NOWHERE)
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ingest"], 1), (["ingest", "--jsonl"], 2), (["import"], 2), (["demo"], 2),
        (["kb", "create", "vault", "--inbox"], 2),
    ],
)  # fmt: skip
def test_a_path_that_cannot_be_looked_at_is_named_once_with_what_to_do(
    odd: Run, words: list[str], code: int, name: str, message: str, hint: str
) -> None:
    result = odd(*words, name)
    error, advice = result.err.splitlines()
    assert result.code == code
    assert message in error
    assert "[Errno" not in error
    assert len(error) < 300
    assert error.count(name[:5]) == 1
    assert advice.startswith(f"hint: {hint}")


@pytest.mark.parametrize(("name", "message", "hint"), NOWHERE)
@pytest.mark.parametrize("words", [["kb", "list"], ["ingest", "--text", "x"], ["config", "init"]])
def test_a_home_that_cannot_be_looked_at_is_reported_by_its_flag_or_variable(
    odd: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str, message: str, hint: str
) -> None:
    by_flag = odd("--home", name, *words)
    monkeypatch.setenv("MEMCTL_HOME", name)
    by_variable = odd(*words)
    for result, place in ((by_flag, "--home"), (by_variable, "MEMCTL_HOME")):
        error, advice = result.err.splitlines()
        assert (result.code, result.out) == (2, "")
        assert error.startswith(f"error: {place}: /")
        assert message in error
        assert len(error) < 300
        assert advice.startswith(f"hint: {hint}")


@pytest.mark.parametrize("name", ["file", "dangling"])
def test_a_home_that_can_never_be_a_folder_is_refused_before_anything_is_made(
    odd: Run, tmp_path: Path, name: str
) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    result = odd("--home", name, "ingest", "--text", "x")
    assert result.code == 2
    assert result.err == (
        f"error: --home: {tmp_path / name} is not a folder\n"
        "hint: name a folder; it need not be there yet\n"
    )


@pytest.mark.parametrize("option", ["--home", "--config"])
def test_a_path_that_is_left_empty_is_no_way_to_name_the_usual_one(odd: Run, option: str) -> None:
    result = odd(option, "", "kb", "list")
    assert result.code == 2
    assert result.err.startswith(f"error: {option}: no f")


def test_a_home_that_is_blank_is_none_and_a_relative_one_is_told_by_doctor(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "user"))
    monkeypatch.setenv("MEMCTL_HOME", " ")
    assert memctl("ingest", "--text", "Tea.").code == 0
    assert not (tmp_path / " ").exists()
    monkeypatch.setenv("MEMCTL_HOME", "here")
    rows = memctl("doctor", "-o", "json").json
    (told,) = (row for row in rows if "MEMCTL_HOME" in row["message"])
    assert (told["verdict"], told["hint"]) == ("warning", f"export MEMCTL_HOME={tmp_path}/here")


def test_a_folder_in_place_of_a_settings_file_is_called_one(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home/config.toml").mkdir(parents=True)
    for words in (["kb", "list"], ["config", "init"]):
        result = memctl(*words)
        assert result.code == 2
        place = tmp_path / "home/config.toml"
        assert result.err.startswith(f"error: {place}: is a folder") or (
            result.err.startswith(f"error: {place} is a folder")
        )
        assert "hint: move it away" in result.err


def test_a_file_in_place_of_a_knowledge_base_is_called_one(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "home/kb").mkdir(parents=True)
    (tmp_path / "home/kb/default").write_text("no folder")
    result = memctl("ingest", "--text", "Tea.")
    assert result.code == 2
    assert f"{tmp_path}/home/kb/default is a file" in result.err
    assert "hint: move the file away" in result.err


@needs_permissions
def test_a_home_that_may_not_be_entered_made_or_written_to_is_named_with_what_to_do(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, bare = tmp_path / "home", tmp_path / "bare"
    memctl("ingest", "--text", "Tea.")
    bare.mkdir()
    base = home / "kb" / "default"
    with permissions_that_hold():
        base.chmod(0o500)
        read_only = memctl("ingest", "--text", "Coffee.")
        base.chmod(0o700)
        home.chmod(0o000)
        shut = memctl("kb", "list")
        home.chmod(0o700)
        bare.chmod(0o500)
        monkeypatch.setenv("MEMCTL_HOME", str(bare / "new"))
        not_made = memctl("ingest", "--text", "Coffee.")
        bare.chmod(0o700)
    assert (read_only.code, shut.code, not_made.code) == (1, 2, 1)
    check = "hint: check its permissions"
    assert read_only.err.startswith(f"error: cannot write to {base}: ")
    assert shut.err.splitlines() == [
        f"error: MEMCTL_HOME: {home}: Permission denied", check
    ]  # fmt: skip
    assert not_made.err.splitlines() == [
        f"error: cannot make {bare}/new/kb in {bare}: Permission denied", check
    ]  # fmt: skip


def test_what_belongs_to_another_user_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    monkeypatch.setattr(Path, "owner", lambda path: "bob")
    monkeypatch.setattr(Path, "stat", lambda path: os.stat_result((0o700,) + (17,) * 9))
    refused = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    expected = f"check its permissions; {tmp_path} belongs to the user bob"
    assert os_error_hint(refused) == expected


@pytest.mark.parametrize(("name", "message", "hint"), NOWHERE)
def test_a_settings_file_that_cannot_be_read_says_what_to_do(
    odd: Run, name: str, message: str, hint: str
) -> None:
    result = odd("--config", name, "kb", "list")
    error, advice = result.err.splitlines()
    assert result.code == 2
    assert message.partition(": ")[2] in error
    assert len(error) < 300
    assert advice.startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    "words",
    [
        "ingest @", "ingest file @", "ingest --jsonl @", "ingest --text @", "demo @", "import @",
        "ingest file -k @", "ingest file --namespace @", "ingest file --tag @",
        "ingest file --tag #", "ingest file --source @", "ingest file --session @",
        "export memories --to @", "export memories -k @", "import file -k @",
        "kb create vault --inbox @", "kb set default --inbox @", "kb set default --remove-inbox @",
        "memory add x -k @", "memory add x --namespace @", "memory add x --tag @",
        "memory add x --type @", "memory add x --date @", "memory add x --session @",
        "memory list -k @", "memory list --namespace @", "memory list --tag @",
        "memory list --type @", "memory list --level @", "memory list --since @",
        "memory list --until @", "memory list --as-of @", "memory list --session @",
        "memory list --source @", "memory list --where @", "query x --since @", "sql @",
    ],
)  # fmt: skip
def test_an_empty_word_names_nothing_and_is_refused(odd: Run, words: str) -> None:
    before = odd("memory", "list").out
    result = odd(*("" if word == "@" else word for word in words.split()))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert "\nhint: " in result.err
    assert odd("memory", "list").out == before
    assert [row["name"] for row in odd("kb", "list").rows] == ["default"]
    assert len(odd("kb", "show", "default", "-o", "json").json["inboxes"]) == 1


def test_a_tilde_of_nobody_is_a_name_like_any_other(odd: Run) -> None:
    for words, code in ((["ingest"], 1), (["import"], 2), (["--home", "~nobody-at-all", "x"], 2)):
        result = odd(*words, "~nobody-at-all/x")
        assert result.code == code
        assert "unexpected" not in result.err


def test_words_that_are_not_utf8_are_used_or_refused(odd: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("The café opens at nine.")
    assert odd("ingest", name).code == 0
    (row,) = odd("document", "list", "--source", name).rows
    assert row["source"].endswith("caf\\xe9.txt")
    result = odd("sql", os.fsdecode(b"select 'caf\xe9'"))
    assert (result.code, result.err.splitlines()[0]) == (2, "error: the statement is not UTF-8")


def test_a_bad_file_with_a_long_name_is_named_once(odd: Run, tmp_path: Path) -> None:
    (tmp_path / ("first" + "a" * 200 + ".txt")).write_text("\0")
    error = odd("ingest", "first" + "a" * 200 + ".txt").err.splitlines()[0]
    assert error.startswith("error: firstaaaa")
    assert error.endswith("aaaa.txt holds nothing but zero bytes")
    assert error.count("first") == 1


def test_a_file_of_no_kind_we_read_gets_a_short_list_of_kinds(memctl: Run, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(range(256)) * 10)
    result = memctl("ingest", "x.bin")
    hint = next(line for line in result.err.splitlines() if line.startswith("hint:"))
    assert "readable are" in hint
    assert len(hint) < 130
