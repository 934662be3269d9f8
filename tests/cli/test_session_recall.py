"""memctl session say, record, recall and prompt: what is kept, and what comes from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def test_what_is_said_tells_what_is_kept_of_it(memctl: Run) -> None:
    memctl("session", "start", "--id", "one", "--user", "user123")
    said = "important: always use Python 3.10+ for this project #beto_coding"
    told = memctl("session", "say", "one", said, "-o", "json").json
    assert told["success"] is True
    assert told["memory_type"] == "important_fact"
    assert told["text"] == "always use Python 3.10+ for this project"
    assert told["tags"] == ["coding"]
    assert told["content"] == said
    plain = memctl("session", "say", "one", "The artifact: a bowl", "-o", "json").json
    assert plain["success"] is False
    assert plain["message"] == "No memory triggers detected"
    assert (
        "kept as important_fact"
        in memctl("session", "say", "one", "note this: the gate closes at eight", "-o", "table").out
    )
    (row,) = memctl("memory", "list", "--tag", "beto_coding", "-o", "ndjson").rows
    assert row["text"] == "always use Python 3.10+ for this project"


def test_a_pipe_of_messages_tells_it_for_each(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    lines = [
        {"sender": "user", "content": "remember: the pump is under the stairs"},
        {"sender": "agent", "content": "remember: I am an agent"},
    ]
    told = memctl("session", "record", "one", "-", stdin="\n".join(map(json.dumps, lines))).rows
    assert [row["success"] for row in told] == [True, False]
    assert told[0]["memory_type"] == "important_fact"


def test_a_prompt_has_what_another_conversation_says(memctl: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        memctl("session", "start", "--id", name, "--user", "ann")
    memctl("session", "say", "one", "I'm building an authentication system with JWT tokens")
    memctl("session", "say", "two", "Good morning")
    (tmp_path / "system.md").write_text("Be kind.\n")
    asked = "What did we discuss about authentication?"
    messages = memctl("session", "prompt", "two", asked, "--system", "system.md").json
    assert [each["role"] for each in messages] == ["system", "system", "user", "user"]
    assert messages[0]["content"] == "Be kind."
    assert "JWT" in messages[1]["content"]
    assert messages[2:] == [
        {"role": "user", "content": "Good morning"},
        {"role": "user", "content": asked},
    ]
    assert "JWT" in memctl("session", "recall", "two", asked).out
    found = memctl("session", "recall", "two", asked, "-o", "json").json
    assert found["conversations"][0]["session_id"] == "one"
    silent = memctl("session", "recall", "two", "write a haiku", "--exit-code")
    assert (silent.code, silent.out) == (4, "")


def test_the_summary_stands_before_the_last_messages(memctl: Run) -> None:
    memctl("session", "start", "--id", "long")
    lines = [
        {"sender": "user", "content": f"The rehearsal number {i} is in the hall on Mill Street."}
        for i in range(14)
    ]
    memctl("session", "record", "long", "-", stdin="\n".join(map(json.dumps, lines)))
    memctl("session", "compress", "long")
    messages = memctl("session", "prompt", "long", "and now?").json
    assert messages[0]["role"] == "system"
    assert messages[0]["content"].startswith("Current conversation summary:\n")
    assert len(messages) == 12
    assert "number 4" in messages[1]["content"]
