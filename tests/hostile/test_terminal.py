"""What a document says does nothing to a terminal, in whatever format it is shown there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from waiting import PATIENCE

if TYPE_CHECKING:
    from cli.conftest import Run

pty = pytest.importorskip("pty", reason="there are no terminals of this kind")

STEERING = "\x1b[2J\x07\x9b31m\u202egnp\u200f\x7f\U000e0041"
TEXT = f"Ann {STEERING} lives in Leeds, na\u00efve \u4e2d\u6587 \U0001f469\u200d\U0001f680."
SHOWN = [
    *(["memory", "list", "-o", name] for name in ("table", "json", "ndjson", "csv")),
    ["sql", f'select text as "{STEERING}" from documents', "-o", "csv"],
    ["export", "documents", "-f", "csv"],
    ["export", "documents", "-f", "jsonl"],
    ["query", "who lives in Leeds?", "-o", "json"],
    ["context", "who lives in Leeds?"],
    ["why", "text"],
]
PROGRAM = """
import json, sys
from memctl.cli.main import run
for words in json.loads(sys.argv[1]):
    assert run(words) == 0, words
"""


def on_a_terminal(*commands: list[str]) -> str:
    """What some commands write where standard output and error are a terminal."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def look() -> None:
        with suppress(OSError):
            while piece := os.read(ours, 65_536):
                seen.append(piece)

    eyes = threading.Thread(target=look)
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "200"}
    with subprocess.Popen(program, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        eyes.start()
        assert process.wait(PATIENCE) == 0
    eyes.join()
    os.close(ours)
    return b"".join(seen).decode()


def test_no_format_lets_a_text_steer_a_terminal(memctl: Run, tmp_path: Path) -> None:
    assert memctl("ingest", "--text", TEXT).code == 0
    seen = on_a_terminal(*SHOWN)
    assert seen.count("lives in Leeds") >= len(SHOWN)
    assert "na\u00efve \u4e2d\u6587 \U0001f469\u200d\U0001f680" in seen
    assert not set(seen) & set(STEERING.replace("[2J", "").replace("31m", "").replace("gnp", ""))


def test_a_program_gets_the_text_as_it_is(memctl: Run, tmp_path: Path) -> None:
    assert memctl("ingest", "--text", TEXT).code == 0
    for words in (["document", "list"], ["export", "documents", "-f", "jsonl"]):
        (row,) = memctl(*words).rows
        assert row.get("text", TEXT) == TEXT
    assert STEERING in memctl("export", "documents", "-f", "csv").out
    assert STEERING in memctl("sql", "select text from documents", "-o", "csv").out
    shown = memctl("query", "who lives in Leeds?", "-o", "json")
    assert shown.json["hits"][0]["text"] == TEXT
    assert "\x9b" not in shown.out
