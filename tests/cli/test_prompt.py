"""At the prompt: help, completion, what is mistyped, and lines that fit a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_tree import commands

from .conftest import Run


def complete(tmp_path: Path, words: str) -> list[str]:
    """Return what the shell offers for the last word; "" stands at the end after a space."""
    environment = os.environ | {
        "MEMCTL_HOME": str(tmp_path / "home"),
        "_MEMCTL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from memctl.__main__ import main; main()"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("words", ["", "kb", *commands()])
def test_a_short_flag_shows_the_help_of_every_command(memctl: Run, words: str) -> None:
    short, long = (memctl(*words.split(), flag) for flag in ("-h", "--help"))
    assert short.code == 0
    assert short.out == long.out != ""


def test_the_shell_completes_knowledge_bases_and_ids(memctl: Run, tmp_path: Path) -> None:
    memctl("kb", "create", "notes")
    memctl("kb", "create", "novel")
    memctl("memory", "add", "Ann drinks tea.", "-k", "notes")
    memctl("ingest", "--text", "Bob sails to Lisbon.", "-k", "notes")
    memctl("snapshot", "create", "before", "-k", "notes")
    assert complete(tmp_path, "memctl query -k no") == ["notes", "novel"]
    assert complete(tmp_path, "memctl kb show nov") == ["novel"]
    (document,) = memctl("document", "list").rows
    assert complete(tmp_path, f"memctl document show {document['id'][:6]}") == [document["id"]]
    assert complete(tmp_path, "memctl document show -k novel d_") == []
    memories = {row["id"] for row in memctl("memory", "list").rows}
    assert set(complete(tmp_path, "memctl memory show m_")) == memories
    assert complete(tmp_path, "memctl snapshot restore -k notes b") == ["before"]
    assert complete(tmp_path, "memctl memory show m%") == []


def test_completion_in_an_empty_home_offers_nothing_and_makes_nothing(tmp_path: Path) -> None:
    assert complete(tmp_path, "memctl query -k n") == []
    assert complete(tmp_path, "memctl memory show m") == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [["ingest", "--text", "tea"], ["memory", "add", "tea"]])
def test_a_mistyped_name_makes_no_knowledge_base(
    memctl: Run, tmp_path: Path, words: list[str]
) -> None:
    first = memctl(*words, "-k", "nmae")
    assert first.code == 10
    assert first.err == (
        "error: no knowledge base 'nmae'\nhint: create it: memctl kb create nmae\n"
    )
    assert not (tmp_path / "home/kb").exists()
    memctl("kb", "create", "name")
    near = memctl(*words, "-k", "nmae")
    assert "did you mean 'name'? Or create it: memctl kb create nmae" in near.err
    assert [row["name"] for row in memctl("kb", "list").rows] == ["name"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("add tea", "memctl memory add"),
        ("search tea", "memctl query"),
        ("ask tea", "memctl query"),
        ("serach tea", "memctl query"),
        ("neighbors Ann", "memctl graph neighbors"),
        ("memory search tea", "memctl query"),
    ],
)
def test_an_unknown_command_names_the_one_that_is_meant(
    memctl: Run, words: str, meant: str
) -> None:
    done = memctl(*words.split())
    assert done.code == 2
    assert f"hint: did you mean {meant}?\n" in done.err


def test_in_a_pipe_the_summary_of_an_ingest_is_short(memctl: Run, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(f"Tea number {number} is green.")
    files = [str(path) for path in sorted(tmp_path.glob("*.txt"))]
    (row,) = (short := memctl("ingest", *files)).rows
    assert len(short.out) < 120
    assert (row["ingested"], "outcomes" in row) == (30, False)
    for more in (["-v"], ["-o", "ndjson"]):
        assert len(memctl("ingest", *files, *more).rows[0]["outcomes"]) == 30


@pytest.mark.skipif(os.name == "nt", reason="there are no terminals of this kind")
@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_an_event_is_a_line(memctl: Run, tmp_path: Path, columns: int) -> None:
    memctl("kb", "create", "notes")
    inbox = tmp_path / "home/kb/notes/inbox"
    (inbox / "plan.txt").write_text("We decided to launch Aurora in Berlin. " * 20)
    (inbox / f"{'damaged ' * 8}.pdf").write_bytes(b"%PDF-1.4 but no more than that")
    shown = on_terminal(tmp_path, columns, "watch", "--once", "-k", "notes")
    lines = [line for line in shown.splitlines() if line.strip()]
    assert len(lines) >= 3
    assert all(line[2] == ":" and len(line) <= columns for line in lines), shown
    assert "\n" in shown


@pytest.mark.skipif(os.name == "nt", reason="there are no terminals of this kind")
def test_a_bar_shows_how_many_there_are_and_which_file_is_at_hand(
    memctl: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(8):
        text = "\n\n".join(f"# Part {n}\n\nAnn wrote {n * number} lines." for n in range(300))
        (folder / f"book{number}.md").write_text(text)
    shown = on_terminal(tmp_path, 100, "ingest", str(folder))
    assert "/8 documents" in shown
    assert "read book" in shown or "reading book" in shown


def on_terminal(tmp_path: Path, columns: int, *arguments: str) -> str:
    """Return what a command shows on a terminal of so many columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = os.environ | {"MEMCTL_HOME": str(tmp_path / "home"), "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        [sys.executable, "-m", "memctl", *arguments],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment,
    ):  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # nobody writes to it any more
            pass
    os.close(ours)
    return shown.decode("utf-8", "replace").replace("\r\n", "\n")
