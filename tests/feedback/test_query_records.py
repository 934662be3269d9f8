"""How questions were asked and answered is noted: status, quality, vectors, and what failed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint

CODE = "The door code of the workshop is 4711."


def noted(memctl: Any, *options: str) -> list[Any]:
    where = options or ("-k", "default")
    return list(memctl("sql", "select * from queries order by id", *where).rows)


def vectors(folder: Path, kb: str = "default") -> int:
    path = folder / "home" / "kb" / kb / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as ledger:
        return int(ledger.execute("SELECT count(*) FROM query_vectors").fetchone()[0])


def test_a_good_answer_has_a_higher_quality_than_none(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "what is the door code?")
    memctl("query", "who won the chess tournament?")
    good, nothing = noted(memctl)[-2:]
    assert (good["status"], good["top_k"], good["fusion"]) == ("answered", 10, "zscore")
    assert nothing["status"] in ("nothing", "unsure")
    assert 0 <= nothing["quality"] < good["quality"] <= 1
    memctl("query", "--feedback", good["query_id"], "good")
    assert noted(memctl)[-2]["quality"] > good["quality"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("door code", "--where", "nope > 1"), "UsageError"),
        (("door code", "--threshold", "0.5", "--where", "level ="), "UsageError"),
    ],
)
def test_a_question_that_fails_is_noted_with_its_class(
    memctl: Any, words: tuple[str, ...], error: str
) -> None:
    memctl("ingest", "--text", CODE)
    assert memctl("query", *words).code == 2
    row = noted(memctl)[-1]
    assert (row["status"], row["error"], row["found"]) == ("failed", error, False)
    (numbers,) = memctl("stats", "--queries", "-k", "default", "-o", "json").json
    assert numbers["failed"] >= 1
    (reflection,) = memctl("reflect", "-k", "default").rows
    assert error in [each["topic"] for each in reflection["findings"] if each["kind"] == "failed"]


def test_a_model_that_is_down_is_noted_where_nothing_else_can_search(
    memctl: Any, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    memctl("kb", "create", "remote", "--embedder", "endpoint/e")
    memctl("ingest", "--text", CODE, "-k", "remote")
    endpoint.fail(500, times=-1)
    assert memctl("query", "an odd new question", "--mode", "vector", "-k", "remote").code == 1
    row = noted(memctl, "-k", "remote")[-1]
    assert (row["status"], row["error"]) == ("failed", "ModelUnavailable")
    endpoint.mend()


def test_user_and_conversation_of_a_question_are_recorded(
    memctl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", CODE)
    monkeypatch.setenv("MEMCTL_SESSION", "standup")
    memctl("query", "what is the door code?", "--user", "ann", "--agent", "helper")
    row = noted(memctl)[-1]
    assert (row["user_id"], row["agent_id"], row["session_id"]) == ("ann", "helper", "standup")


def test_numbers_are_split_as_asked_for(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    for fusion in ("rrf", "zscore"):
        memctl("query", "door code", "--fusion", fusion)
    (numbers,) = memctl("stats", "--queries", "--by", "fusion", "-k", "default", "-o", "json").json
    assert {"rrf", "zscore"} <= {row["label"] for row in numbers["by"]}
    assert all(row["mean_seconds"] > 0 for row in numbers["by"])
    assert memctl("stats", "--by", "user", "-o", "json").json[0]["by"]


def test_numbers_are_split_by_the_model_that_reranked(
    memctl: Any, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "door code")
    for name, value in endpoint.settings(rerank="r").items():
        monkeypatch.setenv(name, value)
    memctl("query", "door code")
    memctl("query", "door code", "--mode", "keyword")
    (numbers,) = memctl("stats", "--queries", "--by", "reranker", "-k", "default").rows
    split = {row["label"]: row["queries"] for row in numbers["by"]}
    assert split.keys() == {"none", "r"}
    assert split["r"] == 1


def test_earlier_questions_that_mean_the_same_are_found(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "what is the door code?")
    memctl("query", "who won the chess tournament?")
    rows = memctl("stats", "--similar", "the code of the door", "-k", "default").rows
    words = ("--queries", "--similar", "the code of the door", "-k", "default")
    assert memctl("stats", *words).rows == rows
    assert "door code" in rows[0]["question"]
    assert rows[0]["similarity"] > rows[-1]["similarity"]
    places = [row["question"] for row in rows]
    assert places.index("what is the door code?") < places.index("who won the chess tournament?")


def test_vectors_are_kept_small_go_with_their_text_and_are_never_private(
    memctl: Any, folder: Path
) -> None:
    memctl("kb", "create", "diary", "--private")
    memctl("ingest", "--text", CODE, "-k", "diary")
    memctl("query", "what is the door code?", "-k", "diary")
    assert vectors(folder, "diary") == 0
    memctl("kb", "create", "own")
    memctl("ingest", "--text", "The boat is called Marmalade.", "-k", "own")
    memctl("query", "what is the boat called?", "-k", "own")
    assert vectors(folder, "own") == 1
    (memory,) = memctl("memory", "list", "-k", "own", "--level", "evidence").rows
    memctl("forget", "--memory", memory["id"], "-k", "own", "--yes")
    assert vectors(folder, "own") == 0


def test_forgetting_a_conversation_forgets_what_was_asked_in_it(
    memctl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("session", "start", "--id", "asked")
    memctl("session", "say", "asked", "The tide is at nine.")
    monkeypatch.setenv("MEMCTL_SESSION", "asked")
    memctl("query", "when is the marmalade tide?")
    monkeypatch.delenv("MEMCTL_SESSION")
    assert any(row["session_id"] == "asked" for row in noted(memctl))
    memctl("session", "forget", "asked", "--yes")
    assert not any(row["session_id"] == "asked" for row in noted(memctl))
    assert not any("marmalade tide" in (row["question"] or "") for row in noted(memctl))


def test_a_strict_result_has_its_shape_even_where_the_question_fails(memctl: Any) -> None:
    memctl("ingest", "--text", CODE)
    (found,) = memctl("query", "--strict", "what is the door code?").rows
    assert found.keys() == {"answer", "confidence", "results", "error"}
    assert "4711" in found["answer"]
    assert found["error"] is None
    assert {*found["results"][0]} == {"content", "source", "kb", "confidence"}
    failed = memctl("query", "--strict", "door", "--where", "nope = 1")
    assert failed.code == 2
    assert json.loads(failed.out)["results"] == []
    assert "nope" in json.loads(failed.out)["error"]
    assert memctl("query", "--strict", "door", "-o", "csv").code == 2
    assert memctl("query", "--strict", "door", "--with", "wiki").code == 2
