"""What agents call does what the commands do."""

from __future__ import annotations

import json
from typing import Any

CODE = "The door code of the workshop is 4711."


def call(memctl: Any, name: str, **arguments: Any) -> Any:
    done = memctl("tool", "call", name, json.dumps(arguments))
    assert done.code == 0, done.err
    return done.json


def test_an_agent_judges_looks_back_and_gets_its_prompt(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    asked = memctl("query", "what is the door code?", "-o", "json").json
    words = {"score": 0.1, "text": "it has changed", "example": "It is 4712."}
    tried = call(memctl, "give_feedback", target="last", dry_run=True, **words)
    assert tried["dry_run"]
    assert call(memctl, "list_feedback")["total"] == 0
    given = call(memctl, "give_feedback", target="last", **words)
    assert (given["target"], given["changed"]) == (asked["query_id"], 1)
    assert given["example_id"]
    (listed,) = call(memctl, "list_feedback", limit=5)["feedback"]
    assert listed["text"] == "it has changed"
    (finding,) = [
        each
        for each in call(memctl, "reflect", since="7d")["findings"]
        if each["kind"] == "judged_bad"
    ]
    assert finding["evidence"] == [asked["query_id"]]
    assert call(memctl, "reflect", write=True)["memory_ids"]

    memctl("prompt", "add", "support", "-", stdin="You help.")
    got = call(memctl, "get_prompt", task="support", session_id="s1")
    assert (got["version"], got["text"]) == ("v1", "You help.")
    (row,) = call(memctl, "list_prompts", task="support")["prompts"]
    assert row["uses"] == 1


def test_a_score_out_of_range_is_refused(memctl: Any) -> None:
    done = memctl("tool", "call", "give_feedback", '{"target": "last", "score": 2}')
    assert done.code != 0
    assert "score" in done.out + done.err


def test_clearing_a_user_takes_along_what_they_asked_and_judged(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    memctl("user", "add", "ann")
    memctl("query", "what is the door code?", "--user", "ann")
    assert memctl("feedback", "add", "last", "good", "--user", "ann").code == 0
    where = "user_id = 'ann'"
    assert memctl("sql", f"select * from queries where {where}").rows
    assert memctl("user", "clear", "ann", "--yes").code == 0
    assert memctl("sql", f"select * from queries where {where}").rows == []
    assert memctl("sql", f"select * from feedback where {where}").rows == []
