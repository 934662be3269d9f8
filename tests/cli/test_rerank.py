"""Hits in the order of a reranking model, behind an endpoint or in a folder on this machine."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from tiny_onnx import cross_encoder

from .conftest import Result, Run

QUESTION = "when does the boat leave?"
NEAR = "The boat is red, and the boat house by the boat yard is old."
MEANT = "Boats when the tide is high leave the pier, as does the pilot."


@pytest.fixture
def reranked(memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    for text in (NEAR, MEANT, "The garden is green."):
        memctl("ingest", "--text", text)
    for name, value in endpoint.settings(rerank="r").items():
        monkeypatch.setenv(name, value)
    return endpoint


def texts(result: Result) -> list[str]:
    return [hit["text"] for hit in result.json["hits"]]


def prefer(endpoint: FakeEndpoint, wanted: str) -> None:
    endpoint.rank = lambda _, text: 5.0 if wanted in text else 1.0


@pytest.mark.parametrize("wanted", [NEAR, MEANT])
def test_the_model_says_what_comes_first(memctl: Run, reranked: FakeEndpoint, wanted: str) -> None:
    prefer(reranked, wanted)
    found = memctl("query", QUESTION, "--explain", "-o", "json")
    assert texts(found)[0] == wanted
    first = found.json["hits"][0]
    assert first["legs"]["rerank"] == first["score"] == 5.0
    assert "fused" in first["legs"]
    assert "rerank 5" in memctl("query", QUESTION, "--explain", "-o", "table").out


def test_only_hybrid_questions_are_reranked_and_each_once(
    memctl: Run, reranked: FakeEndpoint
) -> None:
    memctl("query", "--mode", "keyword", QUESTION)
    assert reranked.count("/rerank") == 0
    memctl("query", QUESTION)
    memctl("query", QUESTION)
    assert reranked.count("/rerank") == 1
    (asked,) = reranked.asked
    assert len(asked.body["documents"]) <= 50


@pytest.mark.parametrize("limit", [0, 1])
def test_an_agent_that_reranks_fewer_than_two_hits_does_without_the_model(
    memctl: Run, reranked: FakeEndpoint, limit: int
) -> None:
    settings = {"agent_id": "plain", "knowledge_base": {"rerank_limit": limit}}
    Path("plain.json").write_text(json.dumps(settings))
    assert memctl("agent", "add", "plain", "--file", "plain.json").code == 0
    found = memctl("query", QUESTION, "--agent", "plain", "-o", "json")
    assert len(texts(found)) > 1
    assert reranked.count("/rerank") == 0


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("query_knowledge_base", "question"),
        ("search_documents", "query"),
        ("search_memory", "query"),
        ("search_knowledge", "query"),
    ],
)
def test_an_operation_can_do_without_the_model(
    memctl: Run, reranked: FakeEndpoint, name: str, asked: str
) -> None:
    def call(**options: bool) -> int:
        before = len(reranked.asked)
        done = memctl("tool", "call", name, json.dumps({asked: QUESTION, **options}))
        assert done.code == 0, done.err
        return len(reranked.asked) - before

    assert call(rerank=False) == 0
    assert call() == 1


def test_what_stands_below_the_best_fifty_keeps_its_order(
    memctl: Run, reranked: FakeEndpoint
) -> None:
    lines = "".join(f'{{"text": "A boat, number {n}, may leave."}}\n' for n in range(80))
    memctl("ingest", "--jsonl", "-", stdin=lines)
    found = memctl("query", QUESTION, "-n", "80", "-o", "json").json["hits"]
    assert len(found) > 60
    assert ["rerank" in hit["legs"] for hit in found] == [True] * 50 + [False] * (len(found) - 50)
    assert [hit["score"] for hit in found] == sorted((h["score"] for h in found), reverse=True)


@pytest.mark.parametrize("status", [503, 401])
def test_without_the_model_the_question_is_answered_and_it_is_said(
    memctl: Run, reranked: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    reranked.fail(status, times=-1)
    without = memctl("query", QUESTION, "-o", "json")
    assert without.code == 0
    assert "note: not reranked: http" in without.err
    assert without.json["notes"]
    noted = memctl("sql", "select status, error from queries").rows[-1]
    assert noted["error"] == ("ModelUnavailable" if status == 503 else "ModelRefused")
    assert noted["status"] != "failed"
    monkeypatch.delenv("MEMCTL_MODELS_RERANK")
    assert texts(memctl("query", QUESTION, "-o", "json")) == texts(without)


def test_a_model_without_an_endpoint_is_reported(
    memctl: Run, reranked: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMCTL_ENDPOINT_BASE_URL")
    failed = memctl("query", QUESTION)
    assert failed.code == 2
    assert "models.rerank names a model, but there is no endpoint" in failed.err


def test_how_many_are_reranked_can_be_set(
    memctl: Run, reranked: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_RERANK_HITS", "2")
    found = memctl("query", "boat or garden", "-o", "json").json["hits"]
    assert ["rerank" in hit["legs"] for hit in found] == [True, True, False]
    (asked,) = reranked.asked
    assert len(asked.body["documents"]) == 2


def test_builtin_is_the_order_of_the_search(
    memctl: Run, reranked: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer(reranked, MEANT)
    monkeypatch.setenv("MEMCTL_MODELS_RERANK", "builtin")
    found = memctl("query", QUESTION, "-o", "json")
    assert reranked.count() == 0
    assert all("rerank" not in hit["legs"] for hit in found.json["hits"])
    duty = next(row for row in memctl("models", "list").rows if row["task"] == "rerank")
    assert (duty["builtin"], duty["model"]) == (True, "")


# --- a cross-encoder in a folder -----------------------------------------------------------------


@pytest.fixture
def folder(reranked: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that likes tides, which no other word of the question leads to."""
    made = cross_encoder(tmp_path / "encoder", {"tide": 2.0, "red": -1.0})
    monkeypatch.setenv("MEMCTL_MODELS_RERANK", f"onnx/{made}")
    return made


def test_a_cross_encoder_on_this_machine_says_what_comes_first(
    memctl: Run, reranked: FakeEndpoint, folder: Path
) -> None:
    found = memctl("query", QUESTION, "-o", "json")
    assert texts(found)[:2] == [MEANT, "The garden is green."]
    scores = {hit["text"]: hit["legs"]["rerank"] for hit in found.json["hits"]}
    assert scores[MEANT] == pytest.approx(1 / (1 + math.exp(-2.0)))
    assert scores[NEAR] == pytest.approx(1 / (1 + math.exp(1.0)))
    assert "rerank 0.88" in memctl("query", QUESTION, "--explain", "-o", "table").out
    assert reranked.count() == 0


def test_without_its_folder_the_question_is_answered_and_it_is_said(
    memctl: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tokenizer.json").unlink()
    without = memctl("query", QUESTION, "-o", "json")
    assert without.code == 0
    assert "note: not reranked: reranker encoder: there is no tokenizer.json" in without.err
    assert "optimum-cli export onnx" in without.err
    (row,) = (row for row in memctl("models", "list").rows if row["task"] == "rerank")
    assert "there is no tokenizer.json" in row["problem"]
    monkeypatch.delenv("MEMCTL_MODELS_RERANK")
    assert texts(memctl("query", QUESTION, "-o", "json")) == texts(without)


def test_models_shows_where_it_is_and_tries_it(memctl: Run, folder: Path) -> None:
    shown = memctl("models", "list", "-o", "table").out
    assert "rerank: on this machine, in" in shown
    (row,) = (row for row in memctl("models", "list").rows if row["task"] == "rerank")
    assert (row["folder"], row["url"], row["problem"]) == (str(folder), "", "")
    tried = memctl("models", "test", "rerank")
    assert (tried.code, tried.rows[0]["ok"]) == (0, True)
    (folder / "model.onnx").write_bytes(b"no model")
    damaged = memctl("models", "test", "rerank", "-o", "table")
    assert damaged.code == 1
    assert "cannot load" in damaged.out
