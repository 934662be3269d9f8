"""Hits in the order of a reranking model."""

from __future__ import annotations

import pytest
from fake_endpoint import FakeEndpoint

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
    monkeypatch.delenv("MEMCTL_MODELS_RERANK")
    assert texts(memctl("query", QUESTION, "-o", "json")) == texts(without)


def test_a_model_without_an_endpoint_is_told_of(
    memctl: Run, reranked: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMCTL_ENDPOINT_BASE_URL")
    failed = memctl("query", QUESTION)
    assert failed.code == 2
    assert "models.rerank names a model, but there is no endpoint" in failed.err
