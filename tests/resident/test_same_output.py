"""A command gives the same through the resident process as without it, whatever it is."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memctl import __version__
from memctl.cli.main import run
from memctl.resident.client import READING, is_reading
from memctl.resident.processes import resident_status

QUESTION = "When does the lease of the harbour office end?"
COMMAND = (
    sys.executable,
    "-c",
    "from memctl.resident import client; connect = client.connect;"
    "client.connect = lambda folder: connect(folder, 60.0);"
    "from memctl.__main__ import main; main()",
)
"""The command, which waits for the process for as long as a busy machine may need."""
UNSTEADY = re.compile(
    rb'"seconds": [0-9.e-]+|"query_id": "\w+"|"relevance": [0-9.]+|\b\d+ ms\b'
    rb"|(?s:nanobind: leaked.*)"
)
"""What is another each time: how long a query took, its id in the log, and what fades with time.

DuckDB 2.0 complains of its own objects now and then, when a process ends that has used it.
"""


@dataclass(frozen=True)
class Place:
    """A home with a resident process, and somebody in a folder beside it."""

    home: Path
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self, resident: bool) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith("MEMCTL_")}
        chosen = {"MEMCTL_HOME": str(self.home), "MEMCTL_RESIDENT_ENABLED": str(resident).lower()}
        return own | chosen | self.variables

    def served(self) -> int:
        """How many commands the process has carried out and not left to their callers."""
        status = resident_status(self.home, __version__)
        assert status.running
        return status.commands - status.refused

    def piped(self, words: Sequence[str], *, resident: bool) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [*COMMAND, *words],
            env=self.environment(resident),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return done.returncode, UNSTEADY.sub(b"", done.stdout), UNSTEADY.sub(b"", done.stderr)

    def on_terminal(
        self, words: Sequence[str], *, resident: bool, columns: int
    ) -> tuple[int, bytes]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        with subprocess.Popen(
            [*COMMAND, *words],
            env=self.environment(resident) | {"TERM": "xterm-256color"},
            cwd=self.folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            shown = b"".join(_read(ours))
        os.close(ours)
        return process.returncode, UNSTEADY.sub(b"", shown)


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # nobody has it open any more
            return
        if not piece:
            return
        yield piece


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    home = folder / "home"
    (folder / "lease.md").write_text(
        "# Lease\n\n3 March 2026: Ann Keller signed the lease. The lease of the harbour office ends"
        " on 31 May 2026.\n"
    )
    (folder / "visit.txt").write_text("Ann Keller and Bo Lind visited the harbour in April.\n")
    (folder / "questions.jsonl").write_text(
        json.dumps({"id": "1", "question": QUESTION}) + '\n{"id": "2", "question": "Who is Bo?"}\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMCTL_HOME", str(home))
        patch.delenv("MEMCTL_USER", raising=False)
        patch.chdir(folder)
        for words in (
            ["kb", "create", "notes", "--always-on"],
            ["kb", "create", "secret", "--private"],
            ["ingest", "lease.md", "visit.txt", "-k", "notes", "-q"],
            ["memory", "add", "The door code is 4711.", "-k", "secret", "-q"],
            ["memory", "add", "Ada likes tea.", "--user", "ada", "-k", "notes", "-q"],
            ["resident", "start", "-q"],
        ):
            assert run(words) == 0, words
        yield Place(home, folder)
        assert run(["resident", "stop", "-q"]) == 0


def same(place: Place, *words: str) -> tuple[int, bytes, bytes]:
    """Carry a command out in both ways, and return what it gave."""
    before = place.served()
    there = place.piped(words, resident=True)
    assert place.served() == before + 1, "it did not go through the process"
    assert there == place.piped(words, resident=False)
    return there


PIPED = (
    ("query", QUESTION),
    ("query", QUESTION, "-o", "table", "--explain"),
    ("query", "--batch", "questions.jsonl", "--no-answer"),
    ("query", "what is the door code?", "-k", "secret"),
    ("context", QUESTION),
    ("status", "-o", "json"),
    ("sql", "select kind, count(*) as n from memories group by kind order by 1", "-o", "csv"),
    ("sql", "select text from memories order by 1", "-o", "arrow"),
    ("memory", "list", "-o", "json"),
    ("document", "list", "-o", "csv"),
    ("insight", "list"),
    ("tool", "call", "list_documents", "{}"),
    ("-q", "memory", "list"),
    ("query", "--help"),
    ("query", QUESTION, "--mode", "nonsense"),
)


@pytest.mark.parametrize("words", PIPED, ids=" ".join)
def test_in_a_pipe_it_gives_the_same(place: Place, words: tuple[str, ...]) -> None:
    same(place, *words)


@pytest.mark.parametrize("noun", ["memory", "document"])
def test_one_is_shown_alike(place: Place, noun: str) -> None:
    _, listed, _ = place.piped((noun, "list"), resident=True)
    id_ = json.loads(listed.splitlines()[0])["id"]
    before = place.served()
    (code, there, err), here = (
        place.piped((noun, "show", id_), resident=is_resident) for is_resident in (True, False)
    )
    assert place.served() == before + 1
    assert id_.encode() in there
    assert (code, _without_accesses(there), err) == (here[0], _without_accesses(here[1]), here[2])


def _without_accesses(shown: bytes) -> bytes:
    """What is shown of a row without how often that was."""
    return re.sub(rb'"(?:access_count|last_accessed_at)": [^,}]*', b"", shown)


@pytest.mark.parametrize(
    ("words", "columns"),
    [(("query", QUESTION), 57), (("memory", "list"), 40), (("memory", "list"), 120)],
)
def test_on_a_terminal_it_has_the_same_colours_and_width(
    place: Place, words: tuple[str, ...], columns: int
) -> None:
    before = place.served()
    there = place.on_terminal(words, resident=True, columns=columns)
    assert place.served() == before + 1
    assert there == place.on_terminal(words, resident=False, columns=columns)


def test_settings_user_and_time_zone_are_those_of_the_caller(place: Place) -> None:
    ada = Place(place.home, place.folder, {"MEMCTL_USER": "ada", "TZ": "Asia/Tokyo"})
    assert b"Ada likes tea" in same(ada, "memory", "list", "-o", "json")[1]
    bob = Place(place.home, place.folder, {"MEMCTL_USER": "bob", "MEMCTL_QUERY_LIMIT": "1"})
    assert b"Ada likes tea" not in same(bob, "memory", "list", "-o", "json")[1]
    same(bob, "query", QUESTION)
    mistaken = Place(place.home, place.folder, {"MEMCTL_QUERY_LIMITS": "1"})
    assert b"MEMCTL_QUERY_LIMITS" in same(mistaken, "memory", "list")[2]


def test_only_what_asks_a_model_is_left_to_the_caller(place: Place) -> None:
    endpoint = {"MEMCTL_ENDPOINT_BASE_URL": "http://127.0.0.1:9/v1", "MEMCTL_ENDPOINT_RETRIES": "0"}
    answering = Place(place.home, place.folder, endpoint | {"MEMCTL_MODELS_ANSWER": "some-model"})
    same(answering, "memory", "list")
    same(answering, "query", QUESTION, "--no-answer")
    before = place.served()
    assert b"31 May 2026" in answering.piped(("query", QUESTION), resident=True)[1]
    assert place.served() == before


def test_a_private_knowledge_base_stays_out_unless_it_is_named(place: Place) -> None:
    assert b"4711" not in same(place, "memory", "list")[1]
    assert b"4711" in same(place, "memory", "list", "-k", "secret")[1]


def test_what_was_written_a_moment_ago_is_found(place: Place) -> None:
    same(place, "query", "Who paints the boat?", "--no-answer")
    place.piped(("memory", "add", "Cleo Marsh paints the boat."), resident=True)
    assert b"Cleo Marsh" in same(place, "query", "Who paints the boat?", "--no-answer")[1]


def test_a_command_that_fails_fails_alike(place: Place) -> None:
    for words in (
        ("memory", "list", "-k", "nowhere"),
        ("sql", "select nothing from memories"),
        ("memory", "show", "nothing-like-it"),
    ):
        there = place.piped(words, resident=True)
        assert there[0] != 0
        assert there == place.piped(words, resident=False)


def test_a_tool_that_changes_something_is_called_by_the_command_itself(place: Place) -> None:
    before = place.served()
    words = ("tool", "call", "remember", '{"text": "The kettle whistles."}')
    assert place.piped(words, resident=True)[0] == 0
    assert place.served() == before
    listed = same(place, "memory", "list", "-k", "default", "-o", "json")[1]
    assert listed.count(b"The kettle whistles.") == 1


def test_standard_input_is_read_by_the_command_itself(place: Place) -> None:
    done = subprocess.run(
        [*COMMAND, "query", "-", "--no-answer"],
        env=place.environment(True),
        input=QUESTION.encode(),
        capture_output=True,
    )
    assert json.loads(done.stdout)["question"] == QUESTION


def test_a_hook_that_reads_gets_what_the_agent_gives_in_both_ways(place: Place) -> None:
    given = json.dumps({"session_id": "s", "prompt": "what did we say about the lease?"})
    texts = []
    for is_resident in (True, False):
        before = place.served()
        done = subprocess.run(
            [*COMMAND, "hook", "UserPromptSubmit"],
            env=place.environment(is_resident),
            input=given.encode(),
            capture_output=True,
            check=True,
        )
        assert place.served() == before + is_resident
        context = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
        texts.append(re.sub("data-[0-9a-f]+", "data", context))
    assert "lease" in texts[0]
    assert texts[0] == texts[1]


def test_a_hook_that_the_process_fails_at_reads_its_input_again(place: Place) -> None:
    before = resident_status(place.home, __version__).refused
    done = subprocess.run(
        [*COMMAND, "hook", "UserPromptSubmit", "-k", "nothing"],
        env=place.environment(True),
        input=b"{broken",
        capture_output=True,
    )
    assert resident_status(place.home, __version__).refused == before + 1
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"property name" in done.stderr, "it is not taken for empty"


def test_a_reader_that_has_seen_enough_ends_it_quietly(place: Place) -> None:
    done = subprocess.run(
        shlex.join([*COMMAND, "query", QUESTION]) + " | head -c 1",
        shell=True,
        env=place.environment(True),
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_only_what_reads_goes_through_it() -> None:
    for noun, verbs in READING.items():
        assert all(is_reading([noun, verb]) for verb in verbs or ["x"])
    for words in ("memory add x", "tool serve -", "ingest x", "--odd query x", "tool", "kb list"):
        assert not is_reading(words.split())
    assert not is_reading([])
    assert is_reading(["--home", "x", "-q", "query", "x"])
