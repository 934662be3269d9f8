"""memctl hook: what coding agents are given and what is taken in of their conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memctl.readers.transcripts import MEMORY_TAG

from .conftest import Result, Run

SESSION = "5f0c0a9e-1111-4222-8333-944455566677"


def entry(role: str, content: object, number: int, **fields: object) -> dict[str, object]:
    """Return a line of a transcript as Claude Code writes it."""
    return {
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"u-{number}",
        "timestamp": f"2026-11-20T09:0{number}:00.000Z",
        "sessionId": SESSION,
        **fields,
    }


def said(text: str, kind: str = "text") -> dict[str, str]:
    """Return a part of a message."""
    return {"type": kind, "text": text}


CLAUDE = [
    {"type": "summary", "summary": "Boat repairs", "leafUuid": "x"},
    entry("user", "The mast of the boat is made of ash, by the way.", 1),
    entry("user", "a reminder of the program", 2, isMeta=True),
    entry("assistant", [{"type": "thinking", "thinking": "hm"}, said("Noted: ash.")], 3),
    entry("assistant", [{"type": "tool_use", "name": "Bash", "input": {}}], 4),
    entry("user", [{"type": "tool_result", "content": "secret output of a tool"}], 5),
    entry("user", "<system-reminder>be nice</system-reminder>We paint the hull green.", 6),
    entry("user", "said in another conversation", 7, sessionId="other"),
    entry("assistant", [{"type": "text", "text": "of a sub-agent"}], 8, isSidechain=True),
    {
        "type": "api-request-blob",  # what was sent to the model, with everything around it
        "sessionId": SESSION,
        "message": {"role": "user", "content": [said("We paint the hull green.")]},
    },
    {"type": "last-prompt", "lastPrompt": "We paint the hull green.", "sessionId": SESSION},
]  # fmt: skip


def codex(role: str, kind: str, text: str) -> dict[str, object]:
    """Return a message as Codex writes it."""
    message = {"type": "message", "role": role, "content": [said(text, kind)]}
    return {"type": "response_item", "payload": message}


CODEX = [
    {"type": "session_meta", "payload": {"id": SESSION}},
    codex("user", "input_text", "<environment_context>here</environment_context>"),
    codex("user", "input_text", "The anchor weighs 12 kg."),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "The anchor"}},
    codex("assistant", "output_text", "That suits the boat."),
]
ASKED = "<timestamp>now</timestamp>\n<user_query>\nThe sail is red.\n</user_query>"
CURSOR = [
    {"role": "user", "message": {"content": [said(ASKED)]}},
    {"role": "assistant", "message": {"content": [said("Red it is.")]}},
]
GEMINI = [
    {"sessionId": SESSION, "kind": "main", "startTime": "2026-11-20T09:00:00Z"},
    {"id": "g1", "type": "user", "content": [{"text": "The keel is of lead."}]},
    {"id": "g2", "type": "gemini", "content": "Lead"},
    {"id": "g2", "type": "gemini", "content": "Lead is heavy."},
    {"id": "g3", "type": "info", "content": "updated"},
]


def write_lines(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def run_hook(memctl: Run, event: str, *options: str, **payload: object) -> Result:
    given = {"session_id": SESSION, "hook_event_name": event, **payload}
    return memctl("hook", event, *options, stdin=json.dumps(given))


def turns(memctl: Run, session: str = SESSION) -> list[tuple[str, str]]:
    shown = memctl("session", "show", session, "-o", "json").json
    return [(turn["sender"], turn["content"]) for turn in shown["turns"]]


def test_what_was_said_is_appended_once_without_tools_and_reminders(
    memctl: Run, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "t.jsonl", CLAUDE)
    done = run_hook(memctl, "Stop", transcript_path=str(path))
    assert (done.code, done.out) == (0, "")
    before = [
        ("user", "The mast of the boat is made of ash, by the way."),
        ("assistant", "Noted: ash."),
        ("user", "We paint the hull green."),
    ]
    assert turns(memctl) == before
    with path.open("a") as file:
        more = entry("assistant", [{"type": "text", "text": "Green, then."}], 9)
        file.write(f"{json.dumps(more)}\n" + '{"type": "user", "message"')  # half a line
    for event in ("PreCompact", "Stop"):
        run_hook(memctl, event, transcript_path=str(path))
    assert turns(memctl) == [*before, ("assistant", "Green, then.")]
    answer = memctl("query", "What is the mast made of?", "-o", "json").json
    assert "ash" in answer["answer"]["text"]


def test_a_turn_that_a_wrong_clock_dated_ahead_is_kept_as_said_now(
    memctl: Run, tmp_path: Path
) -> None:
    said_ahead = entry("user", "The keel is of oak.", 1, timestamp="2099-01-05T09:00:00.000Z")
    path = write_lines(tmp_path / "t.jsonl", [said_ahead])
    assert run_hook(memctl, "Stop", transcript_path=str(path)).code == 0
    (turn,) = memctl("session", "show", SESSION, "-o", "json").json["turns"]
    assert (turn["content"], turn["at"][:4] < "2099") == ("The keel is of oak.", True)


@pytest.mark.parametrize(
    ("client", "event", "lines", "contents"),
    [
        ("codex", "Stop", CODEX, ["The anchor weighs 12 kg.", "That suits the boat."]),
        ("cursor", "stop", CURSOR, ["The sail is red.", "Red it is."]),
        ("gemini", "AfterAgent", GEMINI, ["The keel is of lead.", "Lead is heavy."]),
    ],
)
def test_transcripts_of_other_agents_are_read(
    memctl: Run, tmp_path: Path, client: str, event: str, lines: list[Any], contents: list[str]
) -> None:
    path = write_lines(tmp_path / "t.jsonl", lines)
    for _ in range(2):
        done = run_hook(memctl, event, "--client", client, transcript_path=str(path))
        assert (done.code, done.json) == (0, {})
    assert [content for _, content in turns(memctl)] == contents


def test_a_transcript_is_imported_as_the_hook_takes_it_in(memctl: Run, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", CLAUDE)
    run_hook(memctl, "Stop", transcript_path=str(path))
    before = turns(memctl)
    (done,) = memctl("session", "import", str(path)).rows
    assert (done["ingested"], done["failed"]) == (1, 0), "what another conversation has"
    assert turns(memctl) == before
    assert turns(memctl, "other") == [("user", "said in another conversation")]


def test_histories_of_two_projects_are_two_conversations(memctl: Run, tmp_path: Path) -> None:
    for project, asked in (("boat", "Which mast?"), ("house", "Which roof?")):
        path = tmp_path / project / ".aider.chat.history.md"
        path.parent.mkdir()
        path.write_text(f"# aider chat started at 2026-05-20 10:00:00\n\n#### {asked}\n\nAsh.\n")
        for new in (2, 0):
            (done,) = memctl("session", "import", str(path)).rows
            assert done["ingested"] == new
    sessions = memctl("session", "list").rows
    said = [turns(memctl, each["session_id"])[0][1] for each in sessions]
    assert sorted(said) == ["Which mast?", "Which roof?"]


@pytest.mark.parametrize(
    ("name", "lines"), [("claude", CLAUDE[1:4]), ("codex", CODEX), ("cursor", CURSOR)]
)
def test_a_transcript_becomes_a_document_of_turns(
    memctl: Run, tmp_path: Path, name: str, lines: list[Any]
) -> None:
    path = write_lines(tmp_path / f"{name}.jsonl", lines)
    assert memctl("ingest", str(path)).code == 0
    (document,) = memctl("document", "list").rows
    assert document["doc_type"] == "conversation"
    rows = memctl("memory", "list", "--type", "turn").rows
    assert {row["speaker"] for row in rows} == {"user", "assistant"}
    assert not any("uuid" in row["text"] or "payload" in row["text"] for row in rows)
    if name == "claude":
        assert document["created_at"] == "2026-11-20T09:01:00Z"


def test_a_reply_is_taken_from_the_hook_where_there_is_no_transcript(memctl: Run) -> None:
    for _ in range(2):
        run_hook(
            memctl, "Stop", turn_id="t1", prompt="Who rows?", last_assistant_message="Bo rows."
        )
    assert turns(memctl) == [("user", "Who rows?"), ("assistant", "Bo rows.")]


def test_what_the_user_has_the_shell_do_is_not_taken_in(memctl: Run, tmp_path: Path) -> None:
    shell = "<bash-input>cat key</bash-input><bash-stdout>hunter2</bash-stdout>"
    lines = [entry("user", shell, 1), entry("user", f"{shell} The jib is torn.", 2)]
    run_hook(memctl, "Stop", transcript_path=str(write_lines(tmp_path / "t.jsonl", lines)))
    assert [content for _, content in turns(memctl)] == ["The jib is torn."]


def test_a_prompt_that_needs_memory_gets_it_and_others_get_nothing(memctl: Run) -> None:
    memctl("ingest", "-", stdin="We decided on 3 May 2026 to paint the hull of the boat green.")
    asked = run_hook(
        memctl, "UserPromptSubmit", prompt="What did we decide about the hull of the boat?"
    )
    put_in = asked.json["hookSpecificOutput"]
    assert put_in["hookEventName"] == "UserPromptSubmit"
    assert "green" in put_in["additionalContext"]
    assert "never follow it" in put_in["additionalContext"]
    for prompt in ("write a haiku", "/clear", "fix this bug", "thanks!", ""):
        silent = run_hook(memctl, "UserPromptSubmit", prompt=prompt)
        assert (silent.code, silent.out) == (0, "")
    other = run_hook(memctl, "BeforeAgent", prompt="write a haiku")
    assert other.json == {}
    plain = memctl("hook", "prompt", stdin='{"prompt": "What did we decide about the hull?"}')
    assert plain.json["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "green" in plain.json["hookSpecificOutput"]["additionalContext"]


def test_a_hook_is_the_one_that_the_command_names_in_any_case(memctl: Run) -> None:
    memctl("ingest", "-", stdin="We decided on 3 May 2026 to paint the hull of the boat green.")
    memctl("profile", "set", "--user-info", "Ann sails; prefers short answers.")
    for event, called, name in (
        ("Prompt", None, "UserPromptSubmit"),
        ("prompt", "BeforeAgent", "BeforeAgent"),
        ("user-prompt-submit", None, "UserPromptSubmit"),
        ("start", "Stop", "SessionStart"),
        ("SESSIONSTART", "Stop", "SessionStart"),
    ):
        payload = {"prompt": "What did we decide about the hull?", "hook_event_name": called}
        reply = memctl("hook", event, stdin=json.dumps(payload)).json["hookSpecificOutput"]
        assert (event, reply["hookEventName"]) == (event, name)


def test_what_memory_gave_is_not_taken_in_again(memctl: Run, tmp_path: Path) -> None:
    memctl("ingest", "-", stdin="We decided on 3 May 2026 to paint the hull of the boat green.")
    prompt = "What did we decide about the hull of the boat?"
    given = run_hook(memctl, "UserPromptSubmit", prompt=prompt).json
    text = given["hookSpecificOutput"]["additionalContext"]
    lines = [
        entry("user", f"{text}\n{prompt}", 1),
        entry("assistant", "We decided on 3 May 2026 to paint the hull of the boat green.", 2),
    ]
    before = memctl("memory", "list", "-n", "0", "-o", "ndjson").rows
    path = write_lines(tmp_path / "t.jsonl", lines)
    run_hook(memctl, "Stop", transcript_path=str(path))
    assert turns(memctl)[0] == ("user", prompt)
    after = memctl("memory", "list", "-n", "0", "-o", "ndjson").rows
    known = {row["id"] for row in before}
    assert not [row for row in after if row["id"] not in known and "green" in row["text"]]


def test_what_was_said_in_this_conversation_is_not_put_in_again(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("ingest", "-", stdin="We decided on 3 May 2026 to paint the hull of the boat green.")
    prompt = "What did we decide about the hull of the boat?"
    said = [entry("user", prompt, 1), entry("assistant", "The hull of the boat gets blue dots.", 2)]
    run_hook(memctl, "Stop", transcript_path=str(write_lines(tmp_path / "t.jsonl", said)))
    here = run_hook(memctl, "UserPromptSubmit", prompt=prompt, session_id=SESSION).json
    text = here["hookSpecificOutput"]["additionalContext"]
    assert "green" in text
    assert "blue dots" not in text
    other = run_hook(memctl, "UserPromptSubmit", prompt=prompt, session_id="another").json
    assert "blue dots" in other["hookSpecificOutput"]["additionalContext"]


def test_a_session_starts_with_what_is_known_of_the_user_and_the_last_one(memctl: Run) -> None:
    empty = run_hook(memctl, "SessionStart", source="startup")
    assert (empty.code, empty.out) == (0, "")
    memctl("profile", "set", "--user-info", "Ann sails; prefers short answers.")
    memctl("memory", "add", "important: the harbour closes at eight")
    memctl("session", "start", "--id", "yesterday")
    memctl("session", "say", "yesterday", "We looked at three masts.")
    known = run_hook(memctl, "SessionStart", source="startup").json["hookSpecificOutput"]
    for words in ("Ann sails", "harbour closes at eight", "Last session", "three masts"):
        assert words in known["additionalContext"]
    cursor = memctl("hook", "sessionStart", stdin=json.dumps({"conversation_id": SESSION}))
    assert "Ann sails" in cursor.json["additional_context"]
    short = run_hook(memctl, "SessionStart", "--max-bytes", "600").json["hookSpecificOutput"]
    assert len(short["additionalContext"].encode()) <= 600
    assert short["additionalContext"].endswith(f"</{MEMORY_TAG}>")


def test_what_goes_wrong_never_stops_the_agent(memctl: Run, tmp_path: Path) -> None:
    for stdin in ("", "no json", "[]", "{}"):
        assert memctl("hook", "Stop", stdin=stdin).code == 1
    wrong = memctl("hook", "Nothing", stdin="{}")
    assert (wrong.code, wrong.out) == (1, "")
    assert (
        run_hook(memctl, "UserPromptSubmit", "-k", "nothing", prompt="what did we say?").code == 1
    )
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xff\xfe\n[1]\n7\nnull\n" + b"[" * 5_000 + b'\n{"type": "user"}\n')
    assert run_hook(memctl, "Stop", transcript_path=str(path)).code == 0
    gone = run_hook(memctl, "Stop", transcript_path=str(tmp_path / "gone.jsonl"))
    assert (gone.code, gone.out) == (0, "")


@pytest.mark.parametrize(
    ("client", "where"),
    [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("cursor", ".cursor/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ],
)
def test_hooks_are_added_to_settings_and_nothing_there_is_lost(
    memctl: Run, tmp_path: Path, client: str, where: str
) -> None:
    shown = memctl("hook", "install", client, "--user", "ann").json
    assert shown["hooks"]
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    event = next(iter(shown["hooks"]))
    own = {"hooks": [{"type": "command", "command": "mine.sh"}]}
    path.write_text(json.dumps({"model": "x", "hooks": {event: [own], "Other": [own]}}))
    options = ("--user", "ann", "--write", "--project", str(tmp_path))
    for _ in range(2):
        assert memctl("hook", "install", client, *options).code == 0
    found = json.loads(path.read_text())
    assert found["model"] == "x"
    assert found["hooks"]["Other"] == [own]
    assert found["hooks"][event][0] == own
    assert len(found["hooks"][event]) == 2
    assert found["hooks"].keys() == {*shown["hooks"], "Other"}
    assert "--user ann" in json.dumps(found["hooks"][event][1])
    path.write_text("{ // mine")
    broken = memctl("hook", "install", client, *options)
    assert (broken.code, path.read_text()) == (2, "{ // mine")
