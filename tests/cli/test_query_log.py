"""What is asked is noted, summed up and judged; private text and secrets are not noted."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from command_line import Run
from msgspec import msgpack

from memctl.config import Config, load_config
from memctl.home import Home
from memctl.knowledge_base.kb_statistics import percentile
from memctl.records import QueryResult
from memctl.store.file_caches import DerivedCache

CODE = "The door code of the workshop is 4711."


@pytest.fixture
def logged(memctl) -> Any:
    """Return the rows of the query log of a knowledge base, the oldest first."""

    def rows(*options: str) -> list[Any]:
        return list(memctl("sql", "select * from queries order by id", *options).rows)

    return rows


def test_a_question_is_noted_with_what_it_found(memctl, logged) -> None:
    memctl("ingest", "--text", CODE, "--tag", "home")
    asked = memctl("query", "what is the door code?", "--tag", "home", "-o", "json").json
    [row] = logged()
    assert row["query_id"] == asked["query_id"]
    assert (row["question"], row["mode"], row["kind"]) == (
        "what is the door code?", "hybrid", "query",
    )  # fmt: skip
    assert json.loads(row["hit_ids"]) == [hit["memory_id"] for hit in asked["hits"]]
    assert row["hits"] == len(asked["hits"])
    scores = [hit["score"] for hit in asked["hits"]]
    assert row["mean_score"] == pytest.approx(sum(scores) / len(scores))
    assert json.loads(row["filters"]) == {"tags": ["home"]}
    assert row["seconds"] == pytest.approx(asked["seconds"])
    assert row["found"] is True
    assert row["feedback"] is None


def test_contexts_and_batches_are_noted_too(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    lines = "\n".join(json.dumps({"id": n, "question": f"door code {n}?"}) for n in range(2))
    batch = memctl("query", "--batch", "-", "--mode", "keyword", stdin=lines).rows
    context = memctl("context", "door code", "-o", "json").json
    rows = logged()
    assert [row["query_id"] for row in rows] == [
        *(result["query_id"] for result in batch), context["query_id"],
    ]  # fmt: skip
    assert [row["mode"] for row in rows] == ["keyword", "keyword", "hybrid"]
    assert [row["kind"] for row in rows] == ["query", "query", "context"]


def test_a_question_without_an_answer_is_told_apart(memctl) -> None:
    memctl("ingest", "--text", CODE)
    for question in ("Who won the chess?", "who won the  chess", "what is the door code?"):
        memctl("query", question)
    memctl("query", "--no-answer", "volcanoes")
    [numbers] = memctl("stats", "--queries", "-o", "json").json
    assert (numbers["queries"], numbers["nothing_found"]) == (4, 3)
    assert numbers["share_nothing_found"] == 0.75
    assert [(row["question"], row["times"]) for row in numbers["unanswered"]] == [
        ("who won the  chess", 2), ("volcanoes", 1),
    ]  # fmt: skip
    table = memctl("stats", "--queries", "-o", "table").out
    assert "4 questions, nothing found 75%" in table
    assert "who won the chess" in table


def test_modes_and_days_are_counted_apart(memctl) -> None:
    memctl("ingest", "--text", CODE)
    for mode in ("keyword", "vector", "keyword"):
        memctl("query", "door code", "--mode", mode)
    [numbers] = memctl("stats", "--queries", "-o", "json").json
    assert [(row["label"], row["queries"]) for row in numbers["by_mode"]] == [
        ("keyword", 2), ("vector", 1),
    ]  # fmt: skip
    assert [row["queries"] for row in numbers["by_day"]] == [3]
    assert numbers["p50_seconds"] <= numbers["p95_seconds"]


def test_a_percentile_is_a_value_that_occurred() -> None:
    assert percentile([0.4, 0.1, 0.3, 0.2], 50) == 0.2
    assert percentile(range(1, 101), 95) == 95
    assert percentile([3.0], 95) == 3.0
    assert percentile([], 50) == 0.0


def test_an_empty_log_says_so(memctl) -> None:
    memctl("kb", "create", "notes")
    assert "no question is logged" in memctl("stats", "--queries", "-o", "table").out
    [numbers] = memctl("stats", "--queries", "-o", "json").json
    assert (numbers["queries"], numbers["p50_seconds"]) == (0, None)


def test_a_judgement_is_kept_and_may_change(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    first = memctl("query", "door code?", "-o", "json").json["query_id"]
    memctl("query", "who won the chess?")
    assert memctl("query", "--feedback", first, "bad").code == 0
    done = memctl("query", "--feedback", first, "good")
    assert (done.code, done.out) == (0, "")
    assert first in done.err
    memctl("query", "--feedback", "last", "bad")
    assert [row["feedback"] for row in logged()] == ["good", "bad"]
    [numbers] = memctl("stats", "--queries", "-o", "json").json
    assert (numbers["good"], numbers["bad"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["q_nope", "good"], 1), (["last", "fine"], 2), (["last"], 2), (["", "good"], 1)],
)
def test_a_judgement_of_nothing_or_of_another_kind_is_refused(memctl, words, code) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "door code?")
    done = memctl("query", "--feedback", *words)
    assert done.code == code
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["error", "hint"]


def test_a_judgement_before_any_question_is_refused(memctl) -> None:
    memctl("ingest", "--text", CODE)
    assert memctl("query", "--feedback", "last", "good").code == 1


def test_one_question_of_several_is_judged_in_each(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    memctl("kb", "create", "other")
    asked = memctl("query", "door code?", "-o", "json").json["query_id"]
    memctl("query", "--feedback", asked, "good")
    rows = logged()
    assert {row["kb"]: row["feedback"] for row in rows} == {"default": "good", "other": "good"}
    assert {row["query_id"] for row in rows} == {asked}


def test_each_of_several_notes_what_it_gave(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    memctl("kb", "create", "other")
    memctl("query", "what is the door code?")
    rows = {row["kb"]: row for row in logged()}
    assert (rows["default"]["status"], rows["default"]["hits"]) == ("answered", 1)
    assert rows["default"]["relevance"] > 0.5
    assert (rows["other"]["status"], rows["other"]["hits"]) == ("nothing", 0)
    assert rows["other"]["quality"] == 0
    assert rows["other"]["found"] is True
    [_, other] = memctl("stats", "--queries", "-o", "json").json
    assert other["unanswered"] == []


def test_no_text_is_noted_where_a_knowledge_base_is_private(memctl, logged, tmp_path) -> None:
    memctl("kb", "create", "diary", "--private")
    memctl("kb", "create", "open")
    memctl("ingest", "--text", CODE, "-k", "diary", "--tag", "hush")
    memctl("query", "what is the DOORCODE?", "--tag", "hush", "-k", "diary", "-k", "open")
    memctl("context", "the DOORCODE", "-k", "diary")
    rows = logged("-k", "diary", "-k", "open")
    assert len(rows) == 3
    for row in rows:
        assert row["question"] is None
        assert row["hits"] is not None
        assert "hush" not in row["filters"]
    assert json.loads(logged("-k", "open")[0]["filters"]) == {"tags": True}
    for path in (tmp_path / "home").rglob("ledger.sqlite*"):
        assert b"DOORCODE" not in path.read_bytes()


def test_what_becomes_private_forgets_the_texts(memctl, logged, tmp_path) -> None:
    memctl("ingest", "--text", CODE)
    for number in range(40):
        memctl("query", f"what is the DOORCODE {number}?", "--no-answer")
    assert memctl("kb", "show", "default", "-o", "json").json["private"] is False
    memctl("kb", "set", "default", "--private")
    assert memctl("kb", "show", "default", "-o", "json").json["private"] is True
    assert [row["question"] for row in logged("-k", "default")] == [None] * 40
    for path in (tmp_path / "home").rglob("ledger.sqlite*"):
        assert b"DOORCODE" not in path.read_bytes()
    memctl("kb", "set", "default", "--not-private")
    memctl("query", "door code?")
    assert [row["question"] for row in logged()][40:] == ["door code?"]


def test_secrets_are_not_noted_unless_that_is_wanted(memctl, logged, monkeypatch) -> None:
    memctl("ingest", "--text", CODE)
    question = "what is password=hunter2 for?"
    memctl("query", question, "--session", "token=abcd1234")
    monkeypatch.setenv("MEMCTL_QUERY_LOG_REDACT", "false")
    memctl("query", question)
    redacted, plain = logged()
    assert redacted["question"] == "what is password=[redacted] for?"
    assert "abcd1234" not in redacted["filters"]
    assert plain["question"] == question


def test_the_log_can_be_turned_off(memctl, logged, monkeypatch) -> None:
    memctl("ingest", "--text", CODE)
    monkeypatch.setenv("MEMCTL_QUERY_LOG_ENABLED", "false")
    assert memctl("query", "door code?", "-o", "json").json["query_id"] is None
    assert memctl("context", "door code", "-o", "json").json["query_id"] is None
    assert logged() == []


def test_the_log_keeps_as_many_as_are_wanted(memctl, logged, monkeypatch) -> None:
    memctl("ingest", "--text", CODE)
    monkeypatch.setenv("MEMCTL_QUERY_LOG_KEEP", "2")
    for number in range(4):
        memctl("query", f"door code {number}?")
    assert [row["question"] for row in logged()] == ["door code 2?", "door code 3?"]


def test_of_a_long_question_the_beginning_is_kept(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "-", stdin="door code " * 500)
    assert logged()[0]["question"] == ("door code " * 500)[:1000]


def test_what_cannot_be_noted_at_once_is_noted_when_the_command_ends(
    memctl, logged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes to the ledger while the question is asked, and then no more."""
    from memctl.cli.commands.questions import query

    memctl("ingest", "--text", CODE)
    ledger = tmp_path / "home/kb/default/ledger.sqlite"
    shown = query._write_result
    with closing(sqlite3.connect(ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def show(*given: Any, **named: Any) -> None:
            shown(*given, **named)
            other.execute("ROLLBACK")

        monkeypatch.setattr(query, "_write_result", show)
        asked = memctl("query", "door code?", "-o", "json").json
    assert [row["query_id"] for row in logged()] == [asked["query_id"]]


def test_a_question_does_not_wait_for_the_writer_of_the_tables(memctl, logged, tmp_path) -> None:
    from filelock import FileLock

    memctl("ingest", "--text", CODE)
    with FileLock(tmp_path / "home/kb/default/lock"):
        assert memctl("query", "door code?").code == 0
        assert len(logged()) == 1


def test_a_judgement_needs_no_more_than_where_the_question_stands(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    memctl("kb", "create", "other")
    asked = memctl("query", "door code?", "-k", "default", "-o", "json").json["query_id"]
    memctl("query", "tomatoes?", "-k", "other")
    memctl("query", "--feedback", asked, "good")
    assert {row["kb"]: row["feedback"] for row in logged()} == {"default": "good", "other": None}


def test_the_log_goes_with_its_knowledge_base(memctl, logged) -> None:
    memctl("ingest", "--text", CODE)
    memctl("query", "door code?")
    memctl("kb", "delete", "default", "--yes")
    memctl("kb", "create", "default")
    assert logged() == []


def test_cost_and_queries_are_asked_for_apart(memctl) -> None:
    assert memctl("stats", "--cost", "--queries").code == 2


def test_the_same_question_gets_what_it_got_before_where_that_is_set(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("memory", "add", "The launch of Aurora is on 3 May 2026.")

    def asked(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = memctl(
            "query", "When is the launch of Aurora?", *words, "-o", "json"
        ).json
        return found

    assert [asked()["cached"], asked()["cached"]] == [False, False]
    monkeypatch.setenv("MEMCTL_QUERY_CACHE_MINUTES", "60")
    first, second = asked(), asked()
    assert [first["cached"], second["cached"]] == [False, True]
    again = {
        name: value
        for name, value in second.items()
        if name not in ("seconds", "query_id", "cached")
    }
    assert again == {name: first[name] for name in again}
    assert first["query_id"] != second["query_id"]
    assert not asked("-n", "2")["cached"]
    memctl("memory", "add", "The launch of Borealis is on 4 May 2026.")
    assert not asked()["cached"]
    rows = memctl("sql", "select status, tokens from queries").rows
    assert {row["status"] for row in rows} == {"answered"}
    assert all(row["tokens"] > 10 for row in rows)


def test_nothing_of_a_private_question_is_kept(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_CACHE_MINUTES", "60")
    memctl("kb", "create", "diary", "--private")
    memctl("memory", "add", "The launch of Aurora is on 3 May 2026.", "-k", "diary")
    for _ in range(2):
        found = memctl("query", "When is the launch of Aurora?", "-k", "diary", "-o", "json").json
        assert not found["cached"]


def test_nothing_of_several_knowledge_bases_is_kept_in_one_of_them(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_CACHE_MINUTES", "60")
    for name, said in (("a", "The rent is 900 euros."), ("b", "Quillfeather launches Aurora.")):
        memctl("kb", "create", name)
        memctl("memory", "add", said, "-k", name)
    for _ in range(2):
        asked = memctl("query", "Who launches Aurora?", "-k", "a", "-k", "b", "-o", "json").json
        assert "Quillfeather" in str(asked["hits"])
        assert not asked["cached"]
    memctl("forget", "-k", "b", "--entity", "Quillfeather", "--yes")
    for path in (tmp_path / "home/kb/a").rglob("*"):
        assert not path.is_file() or b"Quillfeather" not in path.read_bytes()


@pytest.fixture
def caching(tmp_path: Path) -> Config:
    """Settings with which results are kept for an hour, and no question is logged."""
    settings = {"MEMCTL_QUERY_CACHE_MINUTES": "60", "MEMCTL_QUERY_LOG_ENABLED": "false"}
    return load_config({}, {"MEMCTL_HOME": str(tmp_path / "home"), **settings})


def test_what_has_expired_is_given_no_more(caching: Config) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    with Home(caching, clock=lambda: now).open_for_writing() as base:
        base.memories.add("The rent is 900 euros.")
        base.memories.add("The gate code is 4711.", expires_at=now + timedelta(minutes=10))
        for minutes, cached, count in ((0, False, 1), (5, True, 1), (6, False, 0), (9, True, 0)):
            now += timedelta(minutes=minutes)
            found = base.query("What is the gate code?")
            assert found.cached == cached
            assert sum("4711" in hit.text for hit in found.hits) == count


def test_a_question_is_in_no_file_of_its_result(caching: Config, tmp_path: Path) -> None:
    secret = "password=correcthorsebattery"  # gitleaks:allow
    with Home(caching).open_for_writing() as base:
        base.memories.add("The launch of Aurora is on 3 May 2026.")
        for _ in range(2):
            asked = base.query("When does Zanzibar see Aurora?")
            rounds = base.query("When does Zanzibar see Aurora?", mode="agentic")
            assert not rounds.cached
            assert not base.query(f"Aurora {secret}").cached
        assert asked.cached
        assert asked.question == rounds.question
    kept = list((tmp_path / "home/kb/default/derived").iterdir())
    assert kept
    for path in kept:
        assert b"Zanzibar" not in path.read_bytes()
        assert b"correcthorse" not in path.read_bytes()


def test_what_another_version_has_kept_is_not_read(
    caching: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> QueryResult:
        return base.query("When is the launch of Aurora?")

    with Home(caching).open_for_writing() as base:
        base.memories.add("The launch of Aurora is on 3 May 2026.")
        assert [asked().cached, asked().cached] == [False, True]
        monkeypatch.setattr("memctl.queries.result_cache._ANSWERING_PACKAGES", ("memctl.cli",))
        assert [asked().cached, asked().cached] == [False, True]
        monkeypatch.setattr(DerivedCache, "read", lambda *_: msgpack.encode({"x": {"at": 1}}))
        assert not asked().cached
