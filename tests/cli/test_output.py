"""Rows in the format asked for: data on standard output, everything else on standard error."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
import weakref
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_for

from memctl.cli.commands.upkeep.stats import bar
from memctl.cli.main import interrupt_again
from memctl.cli.rendering.terminal_text import one_line
from memctl.formatting import escape_hidden, format_clock, format_duration, format_size
from memctl.plain_values import to_plain

from .conftest import Run


@pytest.fixture
def two(memctl: Run) -> Run:
    """A home with two memories."""
    memctl("memory", "add", "the door code is 4711", "--tag", "home", "--tag", "#keys")
    memctl("memory", "add", "tea, not coffee", "--type", "preference", "--importance", "0.9")
    return memctl


def test_in_a_pipe_a_listing_is_one_json_object_a_line(two: Run) -> None:
    rows = two("memory", "list").rows
    assert [row["text"] for row in rows] == ["tea, not coffee", "the door code is 4711"]
    assert rows[0]["importance"] == 0.9
    assert rows[1]["tags"] == ["home", "keys"]
    assert rows[1]["metadata"] == {}
    assert rows[1]["created_at"].endswith("Z")
    assert "vector" not in rows[0]


def test_json_is_one_document(two: Run) -> None:
    assert len(two("memory", "list", "-o", "json").json) == 2


def test_csv_has_a_header_and_quotes_what_needs_it(two: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(two("memory", "list", "-o", "csv").out)))
    assert rows[0]["text"] == "tea, not coffee"
    assert json.loads(rows[1]["tags"]) == ["home", "keys"]


def test_rows_of_hits_say_where_the_answer_is(two: Run) -> None:
    asked = ("query", "what is the door code?", "-o", "csv")
    assert "-o json has the answer too" in two(*asked).err
    assert not two(*asked, "--no-answer").err


def test_arrow_is_the_stream_format(two: Run) -> None:
    table = pa.ipc.open_stream(two("memory", "list", "-o", "arrow").raw).read_all()
    assert table["text"].to_pylist() == ["tea, not coffee", "the door code is 4711"]
    assert table.schema.field("created_at").type == pa.timestamp("us", tz="UTC")


def test_hits_have_the_same_columns_whether_there_are_any_or_not(two: Run) -> None:
    asked = ("query", "What is the door code?", "-o", "arrow")
    some = pa.ipc.open_stream(two(*asked).raw).read_all()
    none = pa.ipc.open_stream(two(*asked, "--namespace", "nowhere").raw).read_all()
    assert some.num_rows
    assert not none.num_rows
    assert some.schema.equals(none.schema)
    assert none.schema.field("tags").type == pa.list_(pa.string())
    assert {none.schema.field(name).type for name in ("legs", "also_in")} == {pa.string()}
    sessions = pa.ipc.open_stream(two("session", "list", "-o", "arrow").raw).schema
    assert sessions.names[:3] == ["kb", "namespace", "session_id"]


def test_a_listing_of_settings_can_be_arrow_too(two: Run) -> None:
    table = pa.ipc.open_stream(two("kb", "list", "-o", "arrow").raw).read_all()
    assert table["name"].to_pylist() == ["default"]


def test_settings_of_several_types_can_be_arrow(memctl: Run) -> None:
    table = pa.ipc.open_stream(memctl("config", "show", "-o", "arrow").raw).read_all()
    values = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    assert values["default_kb"] == "default"
    assert values["query.limit"] == "10"
    assert values["new_kb.always_on"] == "true"


@pytest.mark.parametrize("output", ["csv", "arrow"])
def test_a_broken_knowledge_base_takes_no_columns_from_the_others(
    memctl: Run, tmp_path: Path, output: str
) -> None:
    for name in ("broken", "whole"):
        memctl("kb", "create", name)
    (tmp_path / "home/kb/broken/kb.toml").write_text("chunk_size = \n")
    result = memctl("kb", "list", "-o", output)
    rows = (
        list(csv.DictReader(io.StringIO(result.out)))
        if output == "csv"
        else pa.ipc.open_stream(result.raw).read_all().to_pylist()
    )
    assert [row["status"] for row in rows] == ["error", "active"]
    assert "not valid TOML" in rows[0]["problem"]
    assert str(rows[1]["chunk_size"]) == "1200"


@pytest.mark.parametrize(
    "words",
    [
        "memory list",
        "kb list -o csv",
        "stats -o table",
        "query door -o table",
        "config show -o json",
    ],
)
def test_a_pipe_that_is_closed_is_no_failure(two: Run, words: str) -> None:
    command = f"exec {sys.executable} -m memctl {words}"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        ["sh", "-c", command], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stream_that_was_closed_beforehand_is_an_empty_one(two: Run) -> None:
    def run(words: str) -> subprocess.CompletedProcess[str]:
        command = f"exec {sys.executable} -m memctl {words}"
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    unheard = run("memory list >&-")
    assert (unheard.returncode, unheard.stderr) == (0, "")
    assert "tea, not coffee" in run("memory list 2>&-").stdout
    assert "stdin is empty" in run("ingest - <&-").stderr
    assert run("kb delete default <&-").stderr.startswith("error: no terminal to ask on")
    assert len(run("memory list").stdout.splitlines()) == 2


def test_a_table_in_a_pipe_is_not_cut_to_a_width(two: Run) -> None:
    two("memory", "add", "x" * 90)
    out = two("memory", "list", "-o", "table").out
    assert "x" * 90 in out
    assert "\x1b" not in out


def test_an_empty_listing_is_empty_in_every_format(memctl: Run) -> None:
    memctl("kb", "create", "notes")
    assert memctl("memory", "list").out == ""
    assert memctl("memory", "list", "-o", "table").out == ""
    assert memctl("memory", "list", "-o", "json").json == []
    assert memctl("memory", "list", "-o", "csv").out.startswith("kb,id,")


def test_the_first_rows_are_shown_and_the_rest_is_reported(two: Run) -> None:
    result = two("memory", "list", "-n", "1")
    assert len(result.rows) == 1
    assert "-n 0 shows all" in result.err
    assert len(two("memory", "list", "-n", "0").rows) == 2


def test_an_unknown_format_is_a_usage_error(two: Run) -> None:
    result = two("memory", "list", "-o", "yaml")
    assert result.code == 2
    assert "yaml" in result.err


def test_control_characters_never_reach_the_table(memctl: Run) -> None:
    memctl("memory", "add", "red \x1b[31mtext\x07 and \u202eright to left")
    out = memctl("memory", "list", "-o", "table").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[31mtext" in out
    assert memctl("memory", "list").rows[0]["text"].startswith("red \x1b[31m")


def test_control_characters_never_reach_what_people_read(memctl: Run) -> None:
    memctl("kb", "create", "default")
    memctl("session", "start", "--id", "s1")
    memctl("session", "say", "s1", "-", stdin="red \x1b[31mtext")
    memctl("tier", "set", "colour", "-", stdin="red \x1b[31mtext")
    for words in ("session summary s1", "tier get colour"):
        out = memctl(*words.split(), "-o", "table").out
        assert "\x1b" not in out
        assert "red \\x1b[31mtext" in out


@given(st.text(st.characters(exclude_categories=[])))
def test_safe_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    kept = "\n\t\u200c\u200d\u00ad"  # the last three shape words of some scripts
    assert not any(
        unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in kept for c in escape_hidden(text)
    )


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_one_line_is_one_line_of_at_most_the_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_numbers_read_as_people_write_them() -> None:
    assert [format_size(n) for n in (0, 999, 1400, 2_500_000)] == [
        "0 B",
        "999 B",
        "1.4 kB",
        "2.5 MB",
    ]
    assert [format_duration(s) for s in (0.04, 3.21, 240, 7300)] == [
        "40 ms",
        "3.2 s",
        "4 min",
        "2 h",
    ]
    assert [format_clock(s) for s in (5, 125.4, 3723)] == ["0:05", "2:05", "1:02:03"]


def test_bars_are_proportional_to_an_eighth_of_a_character() -> None:
    assert bar(1, 4) == "████"
    assert bar(0.5, 4) == "██"
    assert bar(1 / 32, 4) == "▏"
    assert bar(0, 4) == ""


def test_json_has_no_nan_and_instants_in_utc() -> None:
    value = {"a": float("nan"), "b": datetime(2026, 1, 2, tzinfo=UTC), "c": ("x", Path("/y"))}
    assert to_plain(value) == {"a": None, "b": "2026-01-02T00:00:00Z", "c": ["x", "/y"]}


# --- on a terminal -------------------------------------------------------------------------------


def on_terminal(
    home: Path, *arguments: str, keys: bytes = b"", columns: int = 100
) -> tuple[int, str]:
    """Run a command with a terminal for all three streams; return exit code and screen, plain."""
    leader, follower = pty.openpty()
    environ = {**os.environ, "MEMCTL_HOME": str(home), "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(
        [sys.executable, "-m", "memctl", *arguments],
        stdin=follower, stdout=follower, stderr=follower, env=environ,
    )  # fmt: skip
    os.close(follower)
    os.write(leader, keys)
    screen = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        screen += piece
    os.close(leader)
    return process.wait(), re.sub(r"\x1b\[[0-9;]*m", "", screen.decode(errors="replace"))


def test_what_is_asked_before_forgetting_names_the_knowledge_base(two: Run, tmp_path: Path) -> None:
    command = ("forget", "--before", "2999-01-01", "-k", "default")
    code, screen = on_terminal(tmp_path / "home", *command, keys=b"n\n")
    assert code == 1
    assert "forget in default for good: " in screen


def test_on_a_terminal_a_listing_is_a_table(two: Run, tmp_path: Path) -> None:
    code, screen = on_terminal(tmp_path / "home", "memory", "list")
    assert code == 0
    assert "TYPE" in screen
    assert "{" not in screen


@pytest.mark.parametrize("columns", [100, 60, 40, 30])
def test_an_id_is_shown_whole_however_narrow_the_terminal_is(
    two: Run, tmp_path: Path, columns: int
) -> None:
    ids = [row["id"] for row in two("memory", "list").rows]
    code, screen = on_terminal(tmp_path / "home", "memory", "list", columns=columns)
    assert code == 0
    shown = re.findall(r"\bm_[0-9a-f]+", screen)
    assert len(shown) == 2
    assert all(any(whole.startswith(short) for whole in ids) for short in shown)
    assert two("memory", "show", shown[0]).code == 0


def test_a_table_that_fits_no_terminal_is_a_line_for_each_value(two: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The door code is 4711.")
    two("ingest", "a.txt")
    code, screen = on_terminal(tmp_path / "home", "document", "list", columns=40)
    assert code == 0
    assert "…" not in screen
    assert re.search(r"^SIZE +\d+ B", screen, re.MULTILINE)


def test_a_text_too_long_for_its_column_stands_below_its_row(two: Run, tmp_path: Path) -> None:
    name = "minutes of the meeting about the door of the harbour"
    (tmp_path / f"{name}.txt").write_text("The door code is 4711.")
    two("ingest", f"{name}.txt")
    code, screen = on_terminal(tmp_path / "home", "document", "list", columns=72)
    assert code == 0
    head, *lines = [line.rstrip() for line in screen.splitlines()]
    assert head.split()[:3] == ["ID", "STATUS", "DATE"]
    at = next(number for number, line in enumerate(lines) if line.startswith("d_"))
    assert lines[at + 1].startswith("  minutes of the meeting")
    assert not [line for line in lines if len(line) > 72]


def test_columns_without_values_go_before_texts_are_cut(two: Run, tmp_path: Path) -> None:
    (tmp_path / "minutes of the harbour meeting.txt").write_text("The door code is 4711.")
    two("ingest", "minutes of the harbour meeting.txt")
    code, screen = on_terminal(tmp_path / "home", "document", "list", columns=120)
    assert code == 0
    assert "MISSING" not in screen
    assert "minutes of the harbour meeting" in screen


def test_a_listing_of_jobs_fits_a_terminal_as_a_table(two: Run, tmp_path: Path) -> None:
    _, screen = on_terminal(tmp_path / "home", "job", "list")
    assert screen.startswith("hint: none has run yet: memctl watch runs them")
    two("consolidate")
    _, screen = on_terminal(tmp_path / "home", "job", "list", columns=80)
    heads = screen.splitlines()[0].split()
    assert heads[:3] == ["JOB", "KIND", "STATE"], "only of several knowledge bases are they named"


def test_arrow_is_refused_on_a_terminal(two: Run, tmp_path: Path) -> None:
    code, screen = on_terminal(tmp_path / "home", "memory", "list", "-o", "arrow")
    assert code == 2
    assert "a terminal cannot show" in screen


def test_arrow_is_refused_on_a_terminal_before_anything_is_done(two: Run, tmp_path: Path) -> None:
    code, screen = on_terminal(tmp_path / "home", "ingest", "--text", "the key", "-o", "arrow")
    assert code == 2
    assert "a terminal cannot show" in screen
    assert len(two("memory", "list").rows) == 2


def test_deleting_asks_and_takes_no_for_an_answer(two: Run, tmp_path: Path) -> None:
    code, screen = on_terminal(tmp_path / "home", "kb", "delete", "default", keys=b"n\n")
    assert code == 1
    assert "[y/N]" in screen
    assert "nothing was done" in screen
    code, _ = on_terminal(tmp_path / "home", "kb", "delete", "default", keys=b"y\n")
    assert code == 0
    assert two("kb", "list").out == ""


def test_an_interrupt_that_a_callback_swallows_ends_the_command_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Thing:
        """Something that is cleaned up after."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", interrupt_again)
    thing = Thing()
    noted = weakref.ref(thing, interrupted)
    del thing
    with pytest.raises(KeyboardInterrupt):
        wait_for(lambda: False)
    assert noted() is None
