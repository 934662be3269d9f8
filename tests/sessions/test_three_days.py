"""A user's conversations on three days, the process killed in between, beside another user's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Result, Run, memctl
from waiting import PATIENCE

__all__ = ["memctl"]

USERS = {
    "ann": {
        "2026-03-02": [
            ("user", "Where should the shop run? Falkenstein would be near our customers."),
            ("agent", "Falkenstein has two sites, and both take our backups."),
            ("user", "We decided to host the shop in Falkenstein, from the ninth of April on."),
        ],
        "2026-03-05": [
            ("user", "The move of the shop needs one night without orders."),
            ("agent", "Then Sunday is best: there are three orders on an average Sunday night."),
        ],
    },
    "bob": {
        "2026-03-02": [
            ("user", "We decided to host the shop in Ballycoolin, from the third of May on."),
            ("agent", "Ballycoolin it is. I have told the people at the site."),
        ],
    },
}
QUESTION = "Where did we decide to host the shop?"


def killed_recording(home: Path, user: str, session: str, day: str) -> None:
    """Record a day's messages, and kill the process once each is acknowledged."""
    env = {**os.environ, "MEMCTL_HOME": str(home), "MEMCTL_USER": user}
    command = [sys.executable, "-m", "memctl", "session"]
    subprocess.run([*command, "start", "--id", session], env=env, check=True, capture_output=True)
    with subprocess.Popen(
        [*command, "record", session, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (sender, content) in enumerate(USERS[user][day]):
            message = {"sender": sender, "content": content, "at": f"{day}T09:0{number}:00Z"}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            assert process.stdout.readline(), "it is acknowledged"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which both have talked, and every process was killed."""
    home = tmp_path_factory.mktemp("days") / "home"
    for user, days in USERS.items():
        for day in days:
            killed_recording(home, user, f"{user}-{day}", day)
    return home


@pytest.fixture
def ann(talked: Path, memctl: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command as that user, who must not see what the other said, nor what of it is known."""
    monkeypatch.setenv("MEMCTL_HOME", str(talked))
    monkeypatch.setenv("MEMCTL_USER", "ann")

    def command(*words: str) -> Result:
        result = memctl(*words)
        assert result.code in (0, 4), result.err
        for secret in ("Ballycoolin", "third of May", "bob"):
            assert secret not in result.out + result.err
        return result

    return command


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector", "graph", "agentic"])
def test_every_mode_finds_what_the_first_day_decided(ann: Run, mode: str) -> None:
    reply = ann("query", QUESTION, "--mode", mode, "-o", "json").json
    assert "Falkenstein" in reply["hits"][0]["text"]
    assert {hit["namespace"] for hit in reply["hits"]} == {"user:ann:conversations"}


def test_the_answer_cites_the_turn_of_the_first_day(ann: Run) -> None:
    reply = ann("query", QUESTION, "-o", "json").json
    assert "Falkenstein" in reply["answer"]["text"]
    cited = reply["answer"]["citations"][0]
    assert cited["created_at"].startswith("2026-03-02")
    assert "We decided to host the shop in Falkenstein" in cited["quote"]


def test_the_third_conversation_brings_up_what_the_first_decided(ann: Run) -> None:
    session = ann("session", "start", "--id", "today", "--title", "Next steps").out.strip()
    message = "What did we decide about hosting the shop?"
    recalled = ann("session", "recall", session, message, "-o", "json").json
    assert recalled["conversations"][0]["session_id"] == "ann-2026-03-02"
    assert "Falkenstein" in recalled["text"]
    assert "Falkenstein" in ann("session", "prompt", session, message).out
    assert "Falkenstein" in ann("context", message, "--session", session, "--other-sessions").out


def test_listings_and_exports_have_that_user_only(ann: Run) -> None:
    stored = ("memories", "documents", "entities", "relations")
    for table in (*stored, "sessions", "turns", "queries", "profiles"):
        ann("sql", f"select * from {table}", "-o", "ndjson")
    said = ann("sql", "select text from memories where text like '%Falkenstein%'").rows
    assert said
    for words in (
        ("session", "list"),
        ("session", "show", "ann-2026-03-02"),
        ("memory", "list"),
        ("document", "list"),
        ("graph", "search", "shop"),
        ("profile", "show"),
        ("stats",),
        ("context", "--standing"),
        ("export", "memories", "--format", "jsonl"),
    ):
        ann(*words)
    assert len(ann("session", "list").rows) >= 2


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_knowledge_base", {"query": QUESTION}),
        ("search_past_conversations", {"query": QUESTION}),
        ("list_sessions", {}),
        ("list_documents", {}),
    ],
)
def test_tools_have_that_user_only(ann: Run, tool: str, arguments: dict[str, str]) -> None:
    reply = ann("tool", "call", tool, json.dumps(arguments)).out
    assert "Falkenstein" in reply or "ann-2026-03-02" in reply
