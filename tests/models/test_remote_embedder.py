"""An embedding model behind an endpoint."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fake_endpoint import DIMENSION, FakeEndpoint, vector

from memctl.config import BudgetSettings
from memctl.errors import BadReply, ModelUnavailable
from memctl.models.call_accounting import ModelAccount
from memctl.models.endpoint import Connection, Endpoint
from memctl.models.remote_models import RemoteEmbedder, RemoteReranker, probe_dimension
from memctl.store.ledger.ledger import Ledger


@pytest.fixture
def account(tmp_path: Path) -> ModelAccount:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    now = datetime(2026, 5, 12, tzinfo=UTC)
    return ModelAccount(ledger.replies, ledger.usage, BudgetSettings(), lambda: now)


def where(endpoint: FakeEndpoint) -> Endpoint:
    return Endpoint(Connection(endpoint.url, retries=0))


def embedder_of(endpoint: FakeEndpoint, account: ModelAccount) -> RemoteEmbedder:
    return RemoteEmbedder(where(endpoint), "e", DIMENSION, account)


def test_vectors_are_those_of_the_endpoint_in_order(
    endpoint: FakeEndpoint, account: ModelAccount
) -> None:
    texts = [f"text number {n}" for n in range(150)]
    found = embedder_of(endpoint, account).embed(["", *texts])
    assert not found[0].any()
    np.testing.assert_allclose(found[1:], [vector(text) for text in texts], atol=1e-3)
    assert endpoint.count("/embeddings") == 3


def test_a_text_is_embedded_once_and_never_paid_for_again(
    endpoint: FakeEndpoint, account: ModelAccount
) -> None:
    first = embedder_of(endpoint, account).embed(["one", "two", "one"])
    again = embedder_of(endpoint, account).embed(["two", "one", "three"])
    assert [asked.body["input"] for asked in endpoint.asked] == [["one", "two"], ["three"]]
    np.testing.assert_allclose(first[0], again[1], atol=1e-3)


def test_of_several_that_embed_the_same_at_once_one_pays(
    endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    Ledger.create(tmp_path / "ledger.sqlite").close()
    texts = [f"text number {n}" for n in range(100)]
    start = threading.Barrier(3)

    def embedded(_: int) -> list[list[float]]:
        ledger = Ledger.open(tmp_path / "ledger.sqlite")  # as processes have
        now = datetime(2026, 5, 12, tzinfo=UTC)
        account = ModelAccount(ledger.replies, ledger.usage, BudgetSettings(), lambda: now)
        start.wait()
        return embedder_of(endpoint, account).embed(texts).tolist()

    with ThreadPoolExecutor(3) as pool:
        one, *others = pool.map(embedded, range(3))
    assert all(other == one for other in others)
    assert endpoint.count("/embeddings") == 2


def test_vectors_of_another_length_are_refused(
    endpoint: FakeEndpoint, account: ModelAccount
) -> None:
    endpoint.dimension = 16
    assert probe_dimension(where(endpoint), "e") == 16
    with pytest.raises(BadReply, match=r"length \[16\], not 32"):
        embedder_of(endpoint, account).embed(["one"])


def test_an_embedder_that_is_down_says_so(endpoint: FakeEndpoint, account: ModelAccount) -> None:
    endpoint.fail(503)
    with pytest.raises(ModelUnavailable, match="answered 503"):
        embedder_of(endpoint, account).embed(["one"])


def test_a_reranker_scores_texts_in_their_order(
    endpoint: FakeEndpoint, account: ModelAccount
) -> None:
    reranker = RemoteReranker(where(endpoint), "r", account)
    texts = ["nothing here", "the red boat", "a red car"]
    for _ in range(2):
        assert reranker.score("the red boat", texts) == [0.0, 3.0, 1.0]
    assert endpoint.count("/rerank") == 1


@pytest.mark.parametrize("reply", ['{"results": 3}', '{"results": [{"index": 9, "score": 1}]}'])
def test_a_reply_that_is_no_ranking_is_refused(
    endpoint: FakeEndpoint, account: ModelAccount, reply: str
) -> None:
    endpoint.fail(200, body=reply)
    with pytest.raises(BadReply, match=r"ranking|ranked"):
        RemoteReranker(where(endpoint), "r", account).score("boat", ["a", "b"])
