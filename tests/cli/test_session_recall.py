"""memctl session say, record, recall and prompt: what is kept, and what comes from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trigger_sentences import FACTS, MEMORIES, TRAPS

from .conftest import Run


def test_session_say_reports_what_is_kept_of_the_message(memctl: Run) -> None:
    memctl("session", "start", "--id", "one", "--user", "user123")
    said = "important: always use Python 3.10+ for this project #beto_coding"
    reply = memctl("session", "say", "one", said, "-o", "json").json
    assert reply["success"] is True
    assert reply["memory_type"] == "important_fact"
    assert reply["text"] == "always use Python 3.10+ for this project"
    assert reply["tags"] == ["coding"]
    assert reply["content"] == said
    plain = memctl("session", "say", "one", "The artifact: a bowl", "-o", "json").json
    assert plain["success"] is False
    assert plain["stored"] is True
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
    rows = memctl("session", "record", "one", "-", stdin="\n".join(map(json.dumps, lines))).rows
    assert [row["success"] for row in rows] == [True, False]
    assert rows[0]["memory_type"] == "important_fact"


def test_a_line_of_a_day_to_come_is_named_and_not_recorded(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    lines = [
        {"sender": "user", "content": "remember: the safe code is 8822", "at": "2099-01-05"},
        {"sender": "user", "content": "remember: the safe code is 1111"},
    ]
    done = memctl("session", "record", "one", "-", stdin="\n".join(map(json.dumps, lines)))
    assert done.code == 3
    assert ["yet to come" in row.get("error", "") for row in done.rows] == [True, False]
    assert "1111" in memctl("query", "What is the safe code?", "-o", "json").json["answer"]["text"]


def test_every_phrase_keeps_one_memory_and_what_looks_like_one_keeps_none(memctl: Run) -> None:
    asked = {**MEMORIES, **FACTS}
    said = [("agent", text) for text in asked.values()]
    for number, text in enumerate((*asked.values(), *TRAPS)):
        said += [("agent", f"The bed number {number} of the garden is dug."), ("user", text)]
    lines = [json.dumps({"sender": sender, "content": content}) for sender, content in said]
    memctl("session", "start", "--id", "one")
    recorded = memctl("session", "record", "one", "-", stdin="\n".join(lines)).rows
    kept = [row.get("memory_type") for row in recorded if row["success"]]
    assert kept == ["memories"] * len(MEMORIES) + ["important_fact"] * len(FACTS)
    of_user = {
        row["turn"] for row, (sender, _) in zip(recorded, said, strict=True) if sender == "user"
    }
    assert {row["turn"] for row in recorded if row["success"]} <= of_user
    for type_, sentences in (("memories", MEMORIES), ("important_fact", FACTS)):
        rows = memctl("memory", "list", "--type", type_, "-n", "0", "-o", "ndjson").rows
        assert len(rows) == len(sentences)


def test_a_tag_belongs_to_what_is_kept_of_its_message_however_it_is_written(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    for text in (
        "important: indent with four spaces #beto_coding",
        "remember: lines end at column 100 @beto_coding",
        "remember: the dentist moved to Mill Street",
    ):
        memctl("session", "say", "one", text)
    rows = memctl("memory", "list", "--tag", "coding", "-o", "ndjson").rows
    assert sorted((row["text"], row["type"], tuple(row["tags"])) for row in rows) == [
        ("indent with four spaces", "important_fact", ("coding",)),
        ("lines end at column 100", "important_fact", ("coding",)),
    ]
    assert memctl("memory", "list", "--tag", "beto_coding", "-o", "ndjson").rows == rows


def test_what_is_said_to_be_kept_is_all_that_is_an_important_fact(memctl: Run) -> None:
    session = memctl("session", "start").out.strip()
    said = {
        "1. important: oil the hinge of the gate #beto_steel": True,
        "> important: somebody else wrote that": False,
        "`important: the code of it all`": False,
        "Is this important: yes or no for us all?": False,
    }
    for text, is_kept in said.items():
        assert memctl("session", "say", session, text, "-o", "json").json["success"] is is_kept
    rows = memctl("memory", "list", "--type", "important_fact", "-o", "ndjson").rows
    assert [row["text"] for row in rows] == ["oil the hinge of the gate"]


def test_tags_of_one_message_are_no_words_of_its_conversation(memctl: Run, tmp_path: Path) -> None:
    session = memctl("session", "start").out.strip()
    memctl("session", "say", session, "The music room has a piano from Vienna #beto_music")
    memctl("session", "say", session, "important: oil the hinge #beto_steel")
    chat = tmp_path / "ch.txt"
    chat.write_text(
        "user: hello there, how is it going?\nagent: fine\n"
        "user: important: the key is under the mat #beto_brass\nagent: noted\n"
    )
    memctl("ingest", str(chat))
    rows = memctl("memory", "list", "-n", "0", "-o", "ndjson").rows
    kept = {row["text"]: row["tags"] for row in rows if row["type"] == "important_fact"}
    assert kept == {"oil the hinge": ["steel"], "the key is under the mat": ["brass"]}
    gists = [row["text"] for row in rows if row["type"] == "gist"]
    documents = memctl("document", "list", "-o", "ndjson").rows
    for each in documents:
        assert each["tags"] == []
        said = [*each["topics"], *each["keywords"], *gists]
        assert not [word for word in said if "beto" in word]


def test_fifty_messages_are_archived_but_for_the_last_ten(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_COMPRESSION_THRESHOLD_TOKENS", "50")
    memctl("session", "start", "--id", "fifty", "--user", "test_user")
    lines = [{"sender": "user", "content": f"Message {number}"} for number in range(50)]
    memctl("session", "record", "fifty", "-", stdin="\n".join(map(json.dumps, lines)))
    memctl("session", "compress", "fifty")
    archived = memctl("document", "list", "--source", "session:fifty", "-o", "ndjson").rows
    archived = [row for row in archived if "message_count" in row["metadata"]]
    assert archived
    assert {row["namespace"] for row in archived} == {"user:test_user:conversations"}
    assert {row["metadata"]["session_id"] for row in archived} == {"fifty"}
    assert sum(row["metadata"]["message_count"] for row in archived) == 40
    found = memctl("query", "Message", "--user", "test_user", "-n", "100", "-o", "json").json
    assert {row["id"] for row in archived}.intersection(h["document_id"] for h in found["hits"])
    prompt = memctl("session", "prompt", "fifty", "and now?").json
    window = [each["content"] for each in prompt if each["role"] == "user"]
    assert window == [*(f"Message {number}" for number in range(40, 50)), "and now?"]


def test_a_few_long_messages_are_left_as_they_are(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_COMPRESSION_THRESHOLD_TOKENS", "50")
    memctl("session", "start", "--id", "long")
    for number in range(10):
        said = memctl("session", "say", "long", f"Report {number}. " + "All is well here. " * 20)
        assert "summarised" not in said.err
    assert "summarised 1 message of it" in memctl("session", "say", "long", "One more.").err


def test_long_messages_are_archived_several_at_once(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_COMPRESSION_THRESHOLD_TOKENS", "400")
    memctl("session", "start", "--id", "long")
    lines = [
        json.dumps({"sender": "user", "content": f"Report {number}. " + "All is well here. " * 10})
        for number in range(30)
    ]
    for start in range(0, 30, 3):
        memctl("session", "record", "long", "-", stdin="\n".join(lines[start : start + 3]))
        through = memctl("session", "summary", "long", "-o", "json").json["summarized_through"]
        prompt = "\n".join(m["content"] for m in memctl("session", "prompt", "long", "and?").json)
        for number in range(0 if through is None else through + 1, start + 3):
            assert f"Report {number}. " in prompt, "what no summary stands for is in the prompt"
    rows = memctl("document", "list", "--source", "session:long", "-o", "ndjson").rows
    counts = [
        row["metadata"]["message_count"] for row in rows if "message_count" in row["metadata"]
    ]
    assert min(counts) >= 5
    assert sum(counts) <= 20


def test_what_is_archived_is_not_stated_once_more(memctl: Run) -> None:
    memctl("session", "start", "--id", "one", "--user", "ann")
    for text in (
        "important: always use Python 3.10+ for this project #beto_coding",
        "We decided to rotate the keys every month.",
    ):
        memctl("session", "say", "one", text)
    memctl("session", "end", "one")
    before = memctl("memory", "list", "--level", "memory", "-n", "0", "-o", "ndjson").rows
    memctl("session", "archive", "one")
    rows = memctl("memory", "list", "--level", "memory", "-n", "0", "-o", "ndjson").rows
    known = {row["id"] for row in before}
    assert {row["type"] for row in rows if row["id"] not in known} <= {"gist"}
    assert len(memctl("memory", "list", "--tag", "coding", "-o", "ndjson").rows) == 1
    (archive,) = memctl("memory", "list", "--type", "conversation", "-o", "ndjson").rows
    assert "## Important facts" in archive["text"]
    assert "## Summary" not in archive["text"], "all of it stands among the statements"
    profile = memctl("profile", "show", "--user", "ann", "-o", "json").json
    goal, _, day = profile["recent_goal_and_status"].rpartition(" ")
    assert goal == "We decided to rotate the keys every month."
    assert day == f"({profile['at'][:10]})"


def test_nothing_of_other_conversations_says_why_where_somebody_reads_it(memctl: Run) -> None:
    memctl("session", "start", "--id", "one")
    recalled = memctl("session", "recall", "one", "hello", "-o", "json").json
    assert (recalled["text"], recalled["why"]) == ("", "does not refer to what was before")


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


def test_a_prompt_has_every_message_that_no_summary_stands_for(memctl: Run) -> None:
    memctl("session", "start", "--id", "open")
    lines = [{"sender": "user", "content": f"Tile number {i} is blue."} for i in range(25)]
    memctl("session", "record", "open", "-", stdin="\n".join(map(json.dumps, lines)))
    messages = memctl("session", "prompt", "open", "and now?").json
    assert [each["content"] for each in messages[:-1]] == [each["content"] for each in lines]


def test_a_prompt_has_as_many_messages_as_a_summary_would_be_made_from(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("session", "start", "--id", "open")
    lines = [{"sender": "user", "content": f"Tile number {i} is blue."} for i in range(25)]
    memctl("session", "record", "open", "-", stdin="\n".join(map(json.dumps, lines)))
    monkeypatch.setenv("MEMCTL_COMPRESSION_THRESHOLD_TOKENS", "100")
    said = [each["content"] for each in memctl("session", "prompt", "open", "and now?").json]
    assert 10 < len(said) < 20
    assert said[-2] == "Tile number 24 is blue."


def test_later_summaries_keep_what_earlier_ones_say(memctl: Run) -> None:
    memctl("session", "start", "--id", "home")
    for day, said in enumerate(("We decided to tile the bath.", "We decided to sell the car.")):
        memctl("session", "say", "home", said)
        memctl("session", "say", "home", f"The number of the tiler is 55512{day}, as Ann says.")
        memctl("session", "compress", "home", "--keep", "0")
    memctl("session", "say", "home", "We decided that Nuno does the pipes.")
    for summary in (
        memctl("session", "archive", "home", "-o", "json").json["summary"],
        memctl("session", "summary", "home", "-o", "json").json["summary"],
    ):
        decided = summary.split("Decisions:\n", 1)[1].split("\n\n")[0].splitlines()
        assert decided == [
            "- We decided to tile the bath.",
            "- We decided to sell the car.",
            "- We decided that Nuno does the pipes.",
        ]
        assert "555120" in summary
        assert "555121" in summary


def test_a_summary_has_no_line_that_says_nothing(memctl: Run) -> None:
    said = [f"Day {day}. Nothing new here today, the weather was mild." for day in range(30)]
    said[8] = "The move of the archive to the new server is postponed to March, Tom is ill."
    said[12] = "Priya takes over the archive server from Tom."
    lines = (
        json.dumps({"sender": "agent" if day % 2 else "user", "content": text})
        for day, text in enumerate(said)
    )
    session = memctl("session", "start").out.strip()
    memctl("session", "record", session, "-", stdin="\n".join(lines))
    summary = memctl("session", "archive", session, "-o", "json").json["summary"]
    assert "postponed to March" in summary
    assert "Day 13. (" not in summary


def test_a_conversation_of_short_messages_has_a_summary(memctl: Run) -> None:
    memctl("session", "start", "--id", "short")
    lines = [{"sender": "user", "content": f"Message {number}"} for number in range(30)]
    memctl("session", "record", "short", "-", stdin="\n".join(map(json.dumps, lines)))
    assert "Message" in memctl("session", "compress", "short", "-o", "json").json["summary"]
    first = memctl("session", "prompt", "short", "and now?").json[0]
    assert first["content"].startswith("Current conversation summary:\n")


def test_code_in_a_message_asks_for_nothing(memctl: Run) -> None:
    memctl("session", "start", "--id", "code", "--user", "ann")
    said = "Look:\n```\nimportant: x = 1 is the default here\n```\nWe decided to move in May."
    reply = memctl("session", "say", "code", said, "-o", "json").json
    assert not reply["success"]
    memctl("session", "say", "code", "All is well.")
    memctl("session", "end", "code")
    rows = memctl("memory", "list", "--level", "memory", "-n", "0", "-o", "ndjson").rows
    assert "important_fact" not in {row["type"] for row in rows}
    assert "decision" in {row["type"] for row in rows}
