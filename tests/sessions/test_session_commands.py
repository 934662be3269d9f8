"""The session commands, and conversations that are killed, forgotten or watched."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from killed import images_of
from msgspec.structs import replace
from waiting import PATIENCE

import memctl as python_memctl
from memctl.cli.main import accept_any_text, run
from memctl.records import Filters
from memctl.sessions.conversations import Message


@dataclass(frozen=True)
class Result:
    """What one command gave."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def memctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / "home"))
    for name in ("KB", "USER", "AGENT", "SESSION"):
        monkeypatch.delenv(f"MEMCTL_{name}", raising=False)

    def command(*arguments: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        for stream in (sys.stdout, sys.stderr):
            accept_any_text(stream)
        code = run(arguments)
        return Result(code, *capsys.readouterr())

    assert command("kb", "create", "default").code == 0
    return command


def test_a_conversation_is_found_by_a_beginning_that_only_it_has(memctl: Run) -> None:
    for name in ("standup-1", "standup-12", "review"):
        memctl("session", "start", "--id", name)
    assert json.loads(memctl("session", "show", "rev").out)["session_id"] == "review"
    assert memctl("session", "end", "rev").code == 0
    assert json.loads(memctl("session", "show", "standup-1").out)["session_id"] == "standup-1"
    result = memctl("session", "show", "stand")
    assert result.code == 2
    assert "standup-1" in result.err
    assert "standup-12" in result.err
    assert memctl("session", "say", "rev", "hello").code == 1  # it may be meant to be another one
    assert memctl("session", "forget", "rev", "--yes").code == 0
    assert memctl("session", "show", "review").code == 1


def test_a_conversation_from_its_start_to_its_end(memctl: Run) -> None:
    names = ("--id", "s1", "--user", "ann", "--agent", "helper")
    (begun,) = memctl("session", "start", *names, "-o", "ndjson").rows
    assert (begun["session_id"], begun["namespace"]) == ("s1", "user:ann:conversations")
    (turn,) = memctl("session", "say", "s1", "we decided to ship on Friday").rows
    assert (turn["turn"], turn["sender"], turn["document_id"]) == (0, "user", None)
    assert memctl("session", "say", "s1", "-", "--by", "agent", stdin="noted\n").code == 0

    (row,) = memctl("session", "list", "--user", "ann").rows
    assert (row["kb"], row["message_count"], row["status"]) == ("default", 2, "open")
    assert memctl("session", "list", "--user", "bob").rows == []
    (shown,) = memctl("session", "show", "s1", "--last", "1").rows
    assert [each["content"] for each in shown["turns"]] == ["noted"]
    found = memctl("query", "When do we ship?", "-o", "json")
    assert json.loads(found.out)["hits"][0]["text"] == "we decided to ship on Friday"
    (counts,) = memctl("sql", "select count(*) n, count(document_id) kept from turns").rows
    assert counts == {"n": 2, "kept": 2}

    assert "ship on Friday" in memctl("session", "summary", "s1").rows[0]["summary"]
    assert memctl("session", "end", "s1").rows[0]["status"] == "ended"
    again = memctl("session", "end", "s1")
    assert (again.code, "has ended" in again.err) == (2, True)


def test_an_unknown_session_is_said_with_those_there_are(memctl: Run) -> None:
    memctl("session", "start", "--id", "s1")
    done = memctl("session", "say", "s2", "hello")
    assert done.code == 1
    assert "there is no session 's2'" in done.err
    assert "memctl session start --id s2 begins it" in done.err
    assert "s1" in done.err
    assert memctl("session", "say", "s1", "hello", "--by", "stranger").code == 2


def test_a_conversation_is_begun_where_it_is_not_there(memctl: Run) -> None:
    line = '{"sender": "user", "content": "Where is the chart?"}'
    for turn in range(2):
        done = memctl("session", "record", "s1", "--start", "--user", "ann", stdin=line)
        assert (done.code, done.rows[0]["turn"]) == (0, turn)
    (said,) = memctl("session", "say", "s1", "On deck.", "--start", "--user", "ann").rows
    assert (said["turn"], said["namespace"]) == (2, "user:ann:conversations")
    (said,) = memctl("session", "say", "s2", "Hello.", "--start", "--namespace", "team:boat").rows
    assert (said["turn"], said["namespace"]) == (0, "team:boat")
    assert memctl("session", "say", "s3", "Hello.").code == 1


def test_messages_from_a_pipe_are_answered_line_by_line(memctl: Run) -> None:
    memctl("session", "start", "--id", "s1")
    lines = [
        '{"sender": "user", "content": "Where is the chart?", "id": "a"}',
        "this is no message",
        '{"sender": "stranger", "content": "boo"}',
        '{"sender": "agent", "content": "On deck.", "at": "2026-03-01T10:00:00Z"}',
        '{"sender": "user", "content": "Where is the chart?", "id": "a"}',
        '{"sender": "user", "content": "When?", "at": "yesterday"}',
    ]
    done = memctl("session", "record", "s1", "-", stdin="\n".join(lines))
    assert done.code == 3
    assert [row.get("turn") for row in done.rows] == [0, None, None, 1, 0, None]
    assert [row["line"] for row in done.rows if "error" in row] == [2, 3, 6]
    assert "error: line 2: no JSON at character 1" in done.err
    assert '"at" is no date' in done.rows[-1]["error"]
    assert "line 2" in done.err
    (shown,) = memctl("session", "show", "s1").rows
    assert [each["content"] for each in shown["turns"]] == ["Where is the chart?", "On deck."]


def test_two_processes_add_to_one_conversation_and_lose_nothing(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("session", "start", "--id", "s1")
    command = [sys.executable, "-m", "memctl", "session", "record", "s1", "-"]
    env = {**os.environ, "MEMCTL_HOME": str(tmp_path / "home")}
    both = {
        name: subprocess.Popen(
            command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in ("red", "blue")
    }
    for number in range(20):
        for name, process in both.items():
            assert process.stdin is not None
            line = {"sender": "user", "content": f"{name} {number}"}
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
    for process in both.values():
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    (shown,) = memctl("session", "show", "s1").rows
    assert [each["turn"] for each in shown["turns"]] == list(range(40))
    for name in both:
        own = [each["content"] for each in shown["turns"] if each["content"].startswith(name)]
        assert own == [f"{name} {number}" for number in range(20)]
    rows = memctl("memory", "list", "--session", "s1", "--type", "turn", "-n", "0").rows
    assert len(rows) == 40


def test_import_says_what_it_would_take(memctl: Run, tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("user: Where is the chart?\nassistant: On deck.\n")
    assert memctl("session", "import", str(chat), "--dry-run").rows[0]["ingested"] == 2
    assert memctl("session", "list").rows == []
    done = memctl("session", "import", str(chat), "--user", "ann")
    assert (done.rows[0]["ingested"], "session: chat" in done.err) == (2, True)
    assert memctl("session", "list").rows[0]["user_id"] == "ann"
    log = tmp_path / "log.jsonl"
    log.write_text('{"role": "user", "content": "hello"}\n{"role": "us\n')
    done = memctl("session", "import", str(log), "-o", "json")
    assert (done.code, "line 2" in done.err) == (3, True), "the rest went in"
    assert json.loads(done.out)["sessions"] == ["log"]
    story = tmp_path / "story.txt"
    story.write_text("Once upon a time there was a chart.")
    done = memctl("session", "import", str(story))
    assert (done.code, "holds no conversation" in done.err) == (1, True)
    piped = memctl("session", "import", "-")
    assert (piped.code, "memctl session record" in piped.err) == (2, True)


def test_imported_messages_have_their_times_and_no_results_of_tools(
    memctl: Run, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    said = [
        {"role": "user", "content": "Where is the chart?", "ts": "2026-07-21T12:00:00Z"},
        {"role": "assistant", "content": None, "tool_calls": [], "ts": "2026-07-21T12:00:01Z"},
        {"role": "tool", "content": "deck", "ts": "2026-07-21T12:00:02Z"},
        {"role": "assistant", "content": "On deck.", "ts": 1_784_635_209},
    ]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in said))
    assert memctl("session", "import", str(log)).code == 0
    (shown,) = memctl("session", "show", "log").rows
    assert shown["started_at"] == "2026-07-21T12:00:00Z"
    assert [(turn["content"], turn["at"]) for turn in shown["turns"]] == [
        ("Where is the chart?", "2026-07-21T12:00:00Z"),
        ("On deck.", "2026-07-21T12:00:09Z"),
    ]
    many = tmp_path / "many.jsonl"
    many.write_text("".join(f"{json.dumps({'messages': [said[0]] * n})}\n" for n in (1, 2)))
    done = json.loads(memctl("session", "import", str(many), "-o", "json").out)
    assert done["sessions"] == ["many-1", "many-2"]


def test_a_file_of_an_imported_conversation_goes_on_with_it_when_it_is_ingested(
    memctl: Run, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    lines = [
        {"role": "user", "content": "Where is the chart?", "ts": "2026-07-21T12:00:00Z"},
        {"role": "assistant", "content": "On deck.", "ts": "2026-07-21T12:00:09Z"},
        {"role": "user", "content": "And the compass?", "ts": "2026-07-21T12:01:00Z"},
    ]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines[:2]))
    memctl("session", "import", str(log), "--id", "boat")
    done = json.loads(memctl("ingest", str(log), "-o", "json").out)
    assert (done["ingested"], done["skipped"]) == (0, 2)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = json.loads(memctl("ingest", str(log), "-o", "json").out)
    assert (done["ingested"], done["skipped"]) == (1, 2)
    (shown,) = memctl("session", "show", "boat").rows
    assert [turn["content"] for turn in shown["turns"]] == [line["content"] for line in lines]
    assert len(memctl("memory", "list", "--type", "turn").rows) == 3


def test_a_document_of_an_imported_file_is_named_with_what_deletes_it(
    memctl: Run, tmp_path: Path
) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("user: Where is the chart?\nassistant: On deck.\n")
    memctl("ingest", str(chat))
    (document,) = memctl("document", "list").rows
    done = memctl("session", "import", str(chat))
    assert f"hint: a document holds the same: memctl document delete {document['id']}" in done.err
    memctl("document", "delete", document["id"], "--yes")
    assert "hint:" not in memctl("session", "import", str(chat)).err


def test_imported_messages_keep_the_numbers_that_they_have(memctl: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    said = [(2, "hello"), (3, "ahoy"), (7, "hello")]
    lines = [{"role": "user", "content": text, "turn": turn} for turn, text in said]
    log.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {**lines[0], "turn": -1}]))
    done = memctl("session", "import", str(log), "-o", "json")
    assert (done.code, json.loads(done.out)["ingested"]) == (3, 3)
    assert 'line 4: "turn" is not a whole number' in done.err
    assert json.loads(memctl("session", "import", str(log), "-o", "json").out)["ingested"] == 0
    (shown,) = memctl("session", "show", "log").rows
    assert [(each["turn"], each["content"]) for each in shown["turns"]] == said


# --- killed --------------------------------------------------------------------------------------


def test_killed_at_any_step_a_turn_is_in_the_tables_once(memctl: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    words = [f"Buoy {number} is lit." for number in range(5)]
    with python_memctl.open("default", home=home) as base:
        session = base.sessions.start("s1")
        for text in words:
            base.sessions.say(session, Message(sender="user", content=text))
    images = images_of(home, tmp_path / "images", "query", "Which buoy is lit?", "--no-answer")
    assert len(images) > 5
    for image in images:
        with python_memctl.open("default", home=image.home) as base:
            rows = base.memories.list(Filters(session="s1", types=("turn",))).to_pylist()
            assert sorted(row["text"] for row in rows) == words, image.step
            assert not base.store.ledger.turns.has_pending()


def test_killed_while_it_is_compressed_a_conversation_is_archived_once(
    memctl: Run, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with python_memctl.open("default", home=home) as base:
        session = base.sessions.start("s1")
        for number in range(14):
            base.sessions.say(session, Message(sender="user", content=f"Buoy {number} is lit."))
    images = images_of(home, tmp_path / "images", "session", "compress", "s1")
    states = set()
    for image in [*images[::3], images[-1]]:
        with python_memctl.open("default", home=image.home) as base:
            done = base.sessions.compress(base.sessions.get("s1"))
            states.add(done.messages)
            archived = base.memories.list(Filters(types=("conversation",))).to_pylist()
            assert len({row["document_id"] for row in archived}) == 1, image.step
            assert base.sessions.get("s1").summarized_through == 3
    assert states == {0, 4}, "some were killed before the commit, some after it"


# --- forgotten -----------------------------------------------------------------------------------


def files_with(folder: Path, words: str) -> list[str]:
    """Every file below a folder with some words, byte by byte."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if words.encode() in path.read_bytes()]


def rows_with(home: Path, words: str) -> list[str]:
    """Every row of any table, and of the ledger, with some words."""
    with python_memctl.open("default", home=home) as base:
        found = [
            str(row)
            for table in ("documents", "memories", "entities", "relations")
            for row in base.store.snapshot().scan(table).drop_columns([]).to_pylist()
            if words in str({key: value for key, value in row.items() if key != "vector"})
        ]
        for name, rows in base.store.ledger.contents():
            found += [f"{name}: {row}" for row in rows if words in str(row)]
    return found


def test_forgetting_a_conversation_leaves_no_byte_of_it(memctl: Run, tmp_path: Path) -> None:
    home, note = tmp_path / "home", tmp_path / "note.txt"
    note.write_text("The combination is Quokka-4711.")
    memctl("session", "start", "--id", "secret")
    memctl("session", "start", "--id", "other")
    memctl("session", "say", "other", "The weather is fine.")
    memctl("session", "say", "secret", "We decided that Zanzibar-Plan starts in May.")
    memctl("session", "say", "secret", "see", "--file", str(note))
    memctl("query", "When does it start?", "--no-answer")
    memctl("session", "archive", "secret")
    memctl("session", "say", "secret", "Zanzibar-Plan is not in the tables yet.")
    assert files_with(home, "Quokka-4711")

    assert memctl("session", "forget", "secret", "--dry-run").rows[0]["dry_run"] is True
    output = memctl("session", "forget", "secret", "--dry-run", "-o", "table").out
    assert output.startswith("would forget conversation secret, 2 documents")
    assert rows_with(home, "Zanzibar-Plan")
    done = memctl("session", "forget", "secret", "--yes")
    assert done.code == 0, done.err
    for words in ("Zanzibar-Plan", "Quokka-4711"):
        assert rows_with(home, words) == []
        assert files_with(home, words) == []
    assert [row["session_id"] for row in memctl("session", "list").rows] == ["other"]


def test_what_is_known_from_others_stays_when_a_conversation_is_forgotten(memctl: Run) -> None:
    said = {
        "one": "important: the boiler is behind the red door of the cellar",
        "two": "remember: the alarm of the office is switched on at nine",
        "three": "We decided to sell the old ferry in spring.",
    }
    memctl("profile", "set", "--user", "ann", "--user-info", "Lives in Turin.")
    for name, text in said.items():
        memctl("session", "start", "--id", name, "--user", "ann")
        memctl("session", "say", name, text)
        memctl("session", "end", name)
    done = memctl("session", "forget", "two", "--yes")
    assert (done.code, done.rows[0]["left"]) == (0, []), done.err
    rows = {row["session_id"]: row for row in memctl("session", "list").rows}
    assert rows.keys() == {"one", "three"}
    assert "red door" in rows["one"]["summary"]
    turns = memctl("sql", "select content from turns order by session_id").rows
    assert [row["content"] for row in turns] == [said["one"], said["three"]]
    versions = memctl("profile", "show", "--user", "ann", "--versions").rows
    assert [(row["session_id"], row["user_info"]) for row in versions] == [
        ("three", "Lives in Turin."),
        ("one", "Lives in Turin."),
        ("", "Lives in Turin."),
    ]
    assert versions[0]["important_context"] == "the boiler is behind the red door of the cellar"


def test_a_memory_that_is_forgotten_leaves_the_rest_of_a_summary(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    for text in ("important: the boiler is behind the red door", "We decided to sell the ferry."):
        memctl("session", "say", "one", text)
    memctl("session", "end", "one")
    (fact,) = memctl("memory", "list", "--type", "important_fact").rows
    memctl("forget", "--memory", fact["id"], "--yes")
    (session,) = memctl("session", "list").rows
    assert session["summary"] == "Decisions:\n- We decided to sell the ferry."
    (turn,) = memctl("sql", "select content from turns").rows
    assert turn["content"] == "We decided to sell the ferry."


def test_a_summary_leaves_out_what_was_decided_and_withdrawn_later(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    for text in (
        "We decided to paint the ferry green.",
        "We decided to sell the jetty.",
        "Scrap the green ferry, we are not doing that after all.",
    ):
        memctl("session", "say", "one", text)
    memctl("session", "end", "one")
    (session,) = memctl("session", "list").rows
    assert "We decided to sell the jetty." in session["summary"]
    assert "We decided to paint the ferry green." not in session["summary"]


def test_a_conversation_goes_with_its_document_to_the_last_message(
    memctl: Run, tmp_path: Path
) -> None:
    lines = [
        {"sender": "user", "content": f"The quay number {number} is closed on Sundays."}
        for number in range(80)
    ]
    memctl("session", "start", "--id", "long")
    memctl("session", "record", "long", "-", stdin="\n".join(map(json.dumps, lines)))
    (document,) = memctl("document", "list").rows
    assert memctl("forget", "--document", document["id"], "--yes").code == 0
    assert rows_with(tmp_path / "home", "is closed on Sundays") == []
    assert memctl("session", "list").rows == []


def test_what_another_conversation_says_too_is_its_own_and_no_leftover(
    memctl: Run, tmp_path: Path
) -> None:
    said, secret = "The harbour crane is serviced in October.", "Zanzibar-Plan starts in May."
    for name in ("one", "two"):
        memctl("session", "start", "--id", name)
        memctl("session", "say", name, f"important: {said}")
        memctl("session", "end", name)
    memctl("session", "say", "one", secret)
    (shown,) = memctl("session", "show", "two").rows
    done = memctl("session", "forget", "one", "--yes")
    (report,) = done.rows
    assert (done.code, report["left"], report["elsewhere"]) == (0, [], 1), done.err
    assert rows_with(tmp_path / "home", secret) == files_with(tmp_path / "home", secret) == []
    assert memctl("session", "show", "two").rows == [shown]
    assert memctl("query", "When is the harbour crane serviced?", "--no-answer").rows


def test_it_says_how_many_sentences_of_a_conversation_stand_elsewhere(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    memctl("session", "say", "one", "The harbour crane is serviced in October.")
    memctl("memory", "add", "The harbour crane is serviced in October.")
    done = memctl("session", "forget", "one", "--yes", "-o", "table")
    assert done.code == 0
    assert "1 sentence also stands elsewhere: others say the same" in done.out


def test_a_snapshot_that_has_a_conversation_is_told_though_others_say_the_same(
    memctl: Run,
) -> None:
    for name in ("one", "two"):
        memctl("session", "start", "--id", name)
        memctl("session", "say", name, "The harbour crane is serviced in October.")
    memctl("snapshot", "create", "before")
    done = memctl("session", "forget", "one", "--yes")
    assert done.code == 3
    assert all("snapshot" in left["why"] for left in done.rows[0]["left"])


def test_conversations_of_a_user_and_old_ones_are_forgotten(memctl: Run) -> None:
    for name, user in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        memctl("session", "start", "--id", name, "--user", user)
        memctl("session", "say", name, f"This is the harbour talk of {name}.")
        memctl("session", "end", name)
    assert memctl("session", "forget", "--before", "2001-01-01", "--yes").code == 1
    for words in (("archive", "a"), ("forget", "a", "--yes")):
        refused = memctl("session", *words, "--before", "2001-01-01")
        assert refused.code == 2
        assert "a conversation and --before do not go together" in refused.err
    assert memctl("session", "forget", "--user", "ann", "--yes").code == 0
    assert [row["session_id"] for row in memctl("session", "list").rows] == ["b"]
    assert memctl("session", "forget").code == 2


# --- private -------------------------------------------------------------------------------------


def test_a_private_namespace_of_conversations_is_read_where_it_is_named_alone(memctl: Run) -> None:
    memctl("kb", "set", "default", "--private-namespace", "user:ann:conversations")
    memctl("session", "start", "--id", "hers", "--user", "ann")
    memctl("session", "say", "hers", "remember: the Quokka safe opens at nine")
    memctl("session", "end", "hers")
    memctl("tier", "set", "k", "the Quokka safe", "--session", "hers", "--user", "ann")
    memctl("session", "start", "--id", "his", "--user", "bob")
    memctl("session", "say", "his", "The harbour crane is serviced in October.")
    for words in (
        ("session", "list"),
        ("session", "recall", "his", "what did we say about the Quokka safe?"),
        ("query", "When does the safe open?"),
        ("context", "When does the safe open?"),
        ("context", "--standing"),
        ("memory", "list"),
        ("tool", "call", "list_sessions"),
        ("tool", "call", "search_knowledge_base", '{"query": "safe"}'),
        *(
            ("sql", f"select * from {table}")
            for table in ("turns", "sessions", "profiles", "short_term_entries", "memories")
        ),
        *(("export", table) for table in ("turns", "sessions", "profiles", "memories")),
    ):
        done = memctl(*words)
        assert done.code == 0, done.err
        assert "Quokka" not in done.out, words
        assert '"hers"' not in done.out, words
    named = ("--namespace", "user:ann:conversations")
    assert [row["session_id"] for row in memctl("session", "list", *named).rows] == ["hers"]
    assert "Quokka" in memctl("query", "When does the safe open?", *named).out


def test_doctor_looks_at_conversations_too(memctl: Run, tmp_path: Path) -> None:
    memctl("session", "start", "--id", "s1")
    memctl("session", "say", "s1", "The tide is low at noon.")
    memctl("session", "end", "s1")
    assert memctl("doctor", "--deep").code == 0
    opened = python_memctl.open("default", home=tmp_path / "home")
    with opened as base, base.store.ledger.transaction() as connection:
        connection.execute("UPDATE turns SET tags = '{'")
    assert memctl("doctor").code == 12


# --- watched -------------------------------------------------------------------------------------


def test_of_a_chat_log_that_grows_only_new_lines_are_taken(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "chat.jsonl"
    assert memctl("kb", "create", "logs", "--inbox", str(logs)).code == 0
    log.write_text('{"role": "user", "content": "Where is the chart?"}\n')
    assert memctl("watch", "--once").code == 0
    with log.open("a") as file:
        file.write('{"role": "assistant", "content": "On deck."}\n{"role": "user", "cont')
    assert memctl("watch", "--once").code == 0
    (shown,) = memctl("session", "show", "chat").rows
    assert [each["content"] for each in shown["turns"]] == ["Where is the chart?", "On deck."]
    log.unlink()
    assert memctl("watch", "--once").code == 0
    assert memctl("session", "show", "chat").rows[0]["message_count"] == 2


def test_the_watcher_takes_over_what_was_said(memctl: Run, tmp_path: Path) -> None:
    memctl("session", "start", "--id", "s1")
    memctl("session", "say", "s1", "The tide is low at noon.")
    assert memctl("watch", "--once").code == 0
    with python_memctl.open("default", home=tmp_path / "home") as base:
        assert not base.store.ledger.turns.has_pending()


# --- exported and put back -----------------------------------------------------------------------


def test_conversations_with_their_files_go_along_with_an_export(
    memctl: Run, tmp_path: Path
) -> None:
    note, archive = tmp_path / "note.txt", tmp_path / "all.memctl"
    note.write_text("Berth 14 belongs to the ferry Heron.")
    memctl("session", "start", "--id", "s1", "--user", "ann")
    memctl("session", "say", "s1", "See this.", "--file", str(note))
    assert memctl("export", "all", "--to", str(archive)).code == 0
    assert memctl("import", str(archive), "-k", "copy").code == 0
    (shown,) = memctl("session", "show", "s1", "-k", "copy").rows
    (turn,) = shown["turns"]
    assert (tmp_path / "home/kb/copy" / turn["media"]).read_text() == note.read_text()
    found = memctl("query", "Whose is berth 14?", "-k", "copy", "-o", "json")
    assert json.loads(found.out)["hits"][0]["session_id"] == "s1"


def test_a_snapshot_brings_back_what_was_said(memctl: Run, tmp_path: Path) -> None:
    memctl("session", "start", "--id", "s1")
    memctl("session", "say", "s1", "The tide is low at noon.")
    memctl("snapshot", "create", "before")
    memctl("query", "tide", "--no-answer")
    memctl("session", "say", "s1", "The tide is high at six.")
    assert memctl("snapshot", "restore", "before", "--yes").code == 0
    (shown,) = memctl("session", "show", "s1").rows
    assert [each["content"] for each in shown["turns"]] == ["The tide is low at noon."]
    with python_memctl.open("default", home=tmp_path / "home") as base:
        rows = base.memories.list(Filters(session="s1", types=("turn",))).to_pylist()
    assert [row["text"] for row in rows] == ["The tide is low at noon."]


def test_a_file_that_an_import_names_is_not_read(memctl: Run, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.txt"
    stranger.write_text("The combination is Quokka-4711.")
    with python_memctl.open("default", home=tmp_path / "home") as base:
        session = base.sessions.start("s1")
        turn = base.sessions.say(session, Message(sender="user", content="hello"))[0]
        base.store.ledger.turns.save(replace(turn, media=str(stranger), media_sha256="0" * 64))
        base.sessions.fold()
        assert not [hit for hit in base.query("combination").hits if "Quokka" in hit.text]
        assert base.documents.list()["missing"].to_pylist() == [["text"]]


def test_conversations_of_a_user_or_before_a_date_are_archived_together(memctl: Run) -> None:
    for name, user in (("one", "ann"), ("two", "ann"), ("three", "bob")):
        memctl("session", "start", "--id", name, "--user", user)
        memctl("session", "say", name, "The boat needs a new sail.", "--by", "user")
    tried = memctl("session", "archive", "--user", "ann", "--dry-run")
    assert [(row["session_id"], row["dry_run"]) for row in tried.rows] == [
        ("two", True),
        ("one", True),
    ]
    assert memctl("session", "archive", "--before", "2020-01-01").code == 1
    done = memctl("session", "archive", "--user", "ann")
    assert {row["session_id"] for row in done.rows} == {"one", "two"}
    assert memctl("session", "archive", "--user", "ann").rows == [], "they are already"
    left = memctl("session", "list").rows
    assert {row["session_id"] for row in left if row["status"] == "open"} == {"three"}
    assert memctl("session", "archive").code == 2
    named = memctl("session", "forget", "--user", "ann", "--dry-run").rows
    assert {row["session_id"] for row in named} == {"one", "two"}


def test_archiving_a_conversation_in_which_nothing_was_said_says_so(memctl: Run) -> None:
    memctl("session", "start", "--id", "silent")
    memctl("session", "end", "silent")
    assert "nothing was said in silent" in memctl("session", "archive", "silent").err


def test_a_file_of_conversations_that_is_not_there_is_named_with_its_path(memctl: Run) -> None:
    assert "there is no file /nonexistent\n" in memctl("session", "import", "/nonexistent").err
