"""A transcription model behind an endpoint, and odd things that it says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint

from memctl.config import BudgetSettings
from memctl.errors import ModelRefused, ModelUnavailable
from memctl.models.call_accounting import BudgetExceeded, ModelAccount
from memctl.models.endpoint import Connection, Endpoint
from memctl.models.remote_models import RemoteTranscriber, TranscribedSegment
from memctl.store.ledger.ledger import Ledger

NOW = datetime(2026, 5, 12, tzinfo=UTC)


def transcriber(
    endpoint: FakeEndpoint, folder: Path, budget: BudgetSettings | None = None
) -> RemoteTranscriber:
    ledger = Ledger.create(folder / "ledger.sqlite")
    account = ModelAccount(ledger.replies, ledger.usage, budget or BudgetSettings(), lambda: NOW)
    return RemoteTranscriber(Endpoint(Connection(endpoint.url, retries=0)), "w", account)


def test_odd_times_are_mended_and_empty_words_left_out(
    endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.transcript = [
        (float("nan"), 1.0, "one"),
        (-2.0, float("inf"), "two"),
        (5.0, 3.0, "three"),
        (6.0, 7.0, " "),
    ]
    assert transcriber(endpoint, tmp_path).transcribe(b"sound", "a.wav", 9.0) == [
        TranscribedSegment(0.0, 1.0, "one"),
        TranscribedSegment(0.0, 0.0, "two"),
        TranscribedSegment(5.0, 5.0, "three"),
    ]


def test_a_recording_without_speech_has_no_words(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    endpoint.transcript = []
    assert transcriber(endpoint, tmp_path).transcribe(b"sound", "a.wav", 9.0) == []


@pytest.mark.parametrize(
    ("status", "error"), [(503, ModelUnavailable), (429, ModelUnavailable), (401, ModelRefused)]
)
def test_a_refusal_of_the_endpoint_is_reported_as_for_other_models(
    endpoint: FakeEndpoint, tmp_path: Path, status: int, error: type[Exception]
) -> None:
    endpoint.fail(status)
    with pytest.raises(error, match=f"answered {status}"):
        transcriber(endpoint, tmp_path).transcribe(b"sound", "a.wav", 9.0)


def test_minutes_are_paid_for_until_the_budget_is_spent(
    endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    model = transcriber(endpoint, tmp_path, BudgetSettings(daily_cost=1.0, transcribe_price=1.0))
    for content in (b"one", b"one", b"two"):
        model.transcribe(content, "a.wav", 30.0)
    with pytest.raises(BudgetExceeded, match="today's budget of 1 is spent"):
        model.transcribe(b"three", "a.wav", 30.0)
    assert endpoint.count() == 2
