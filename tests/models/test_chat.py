"""A chat model behind an endpoint, and all that can go wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint
from pydantic import BaseModel, ConfigDict

from memctl.config import BudgetSettings
from memctl.errors import BadReply, ModelRefused, ModelUnavailable
from memctl.models.accounts import Account, BudgetSpent
from memctl.models.chat import ChatModel
from memctl.models.endpoint import Connection, Endpoint
from memctl.store.ledger import Ledger

NOW = datetime(2026, 5, 12, 9, tzinfo=UTC)


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    hue: int


BLUE = {"name": "blue", "hue": 240}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


def model_of(
    endpoint: FakeEndpoint,
    ledger: Ledger,
    budget: BudgetSettings | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
    **connection: float,
) -> ChatModel:
    where = Connection(endpoint.url, "secret", **{"retries": 0, **connection})  # type: ignore[arg-type]
    account = Account(ledger.replies, ledger.usage, budget or BudgetSettings(), clock)
    return ChatModel(Endpoint(where), "m", "understand", account)


def ask(model: ChatModel, data: str = "the sky") -> Colour:
    return model.ask("Say what colour it is.", data, Colour, version="colour/1")


def test_a_reply_has_the_shape_that_was_asked_for(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("Colour", BLUE)
    assert ask(model_of(endpoint, ledger)) == Colour(name="blue", hue=240)
    [asked] = endpoint.asked
    assert asked.headers["Authorization"] == "Bearer secret"
    assert asked.body["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("known", [{"json_object", "text"}, {"text"}])
def test_a_server_that_knows_fewer_formats_is_asked_for_one_it_knows(
    endpoint: FakeEndpoint, ledger: Ledger, known: set[str]
) -> None:
    endpoint.formats = known
    endpoint.on("Colour", 'Here you are:\n```json\n{"name": "blue", "hue": 240}\n```')
    model = model_of(endpoint, ledger)
    assert ask(model).name == "blue"
    before = endpoint.count()
    ask(model, "the sea")
    assert endpoint.count() == before + 1


@pytest.mark.parametrize("wrong", ["not JSON at all", {"name": "blue"}, {**BLUE, "more": 1}])
def test_a_reply_of_the_wrong_shape_is_asked_for_once_more(
    endpoint: FakeEndpoint, ledger: Ledger, wrong: dict[str, object] | str
) -> None:
    endpoint.on("Colour", lambda asked: wrong if len(asked.body["messages"]) == 2 else BLUE)
    assert ask(model_of(endpoint, ledger)).hue == 240
    assert "not valid" in endpoint.asked[1].body["messages"][-1]["content"]


def test_a_model_that_keeps_replying_nonsense_is_named(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", {"name": "blue", "hue": "very"})
    with pytest.raises(BadReply, match=r"m twice replied .* hue"):
        ask(model_of(endpoint, ledger))
    assert endpoint.count() == 2


def test_the_same_question_is_asked_once_and_costs_nothing_again(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    for _ in range(3):
        ask(model_of(endpoint, ledger))
    assert endpoint.count() == 1
    [usage] = ledger.usage.all()
    assert (usage.calls, usage.cached, usage.day) == (1, 2, "2026-05-12")
    assert usage.input_tokens > 0
    model_of(endpoint, ledger).ask("Say it.", "the sky", Colour, version="colour/2")
    assert endpoint.count() == 2


def test_tokens_cost_what_the_settings_say(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("Colour", BLUE)
    ask(model_of(endpoint, ledger, BudgetSettings(input_price=1e6, output_price=2e6)), "x" * 400)
    [usage] = ledger.usage.all()
    assert usage.cost == usage.input_tokens + 2 * usage.output_tokens
    assert usage.input_tokens >= 100


def test_a_spent_budget_stops_calls_until_the_next_day(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    budget, now = BudgetSettings(daily_tokens=1), [NOW]
    model = model_of(endpoint, ledger, budget, lambda: now[0])
    ask(model, "one")
    with pytest.raises(BudgetSpent, match="budget of 1 tokens"):
        ask(model, "two")
    assert ask(model, "one").name == "blue"
    now[0] = datetime(2026, 5, 13, tzinfo=UTC)
    ask(model, "two")
    assert endpoint.count() == 2


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, ModelRefused, "api_key"),
        (404, ModelRefused, "base_url"),
        (429, ModelUnavailable, "concurrency"),
        (500, ModelUnavailable, "later"),
    ],
)
def test_a_refusal_says_what_to_do(
    endpoint: FakeEndpoint, ledger: Ledger, status: int, error: type[Exception], said: str
) -> None:
    endpoint.fail(status)
    with pytest.raises(error, match=f"answered {status}: told to fail") as caught:
        ask(model_of(endpoint, ledger))
    assert said in caught.value.hint  # type: ignore[attr-defined]
    assert "secret" not in f"{caught.value} {caught.value.__cause__}"
    [usage] = ledger.usage.all()
    assert (usage.calls, usage.failed) == (0, 1)


def test_what_passes_is_tried_again(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("Colour", BLUE)
    endpoint.fail(429, headers={"Retry-After": "0"})
    endpoint.fail(503)
    assert ask(model_of(endpoint, ledger, retries=2)).name == "blue"
    assert endpoint.count() == 3


def test_an_endpoint_that_hangs_is_given_up(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.fail(200, hang=0.5)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        ask(model_of(endpoint, ledger, timeout_seconds=0.1))


def test_an_endpoint_that_is_down_is_left_alone(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    model = model_of(endpoint, ledger)
    endpoint.fail(500, times=-1)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="answered 500"):
            ask(model)
    with pytest.raises(ModelUnavailable, match="left alone for"):
        ask(model)
    assert endpoint.count() == 3


def test_no_more_calls_at_the_same_time_than_configured(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    endpoint.delay = 0.05
    model = model_of(endpoint, ledger, concurrency=2)
    threads = [threading.Thread(target=ask, args=(model, f"thing {n}")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (endpoint.count(), endpoint.most_at_once) == (6, 2)


def test_pictures_travel_as_data_urls(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("Colour", BLUE)
    model = model_of(endpoint, ledger)
    picture = ("image/png", b"\x89PNG")
    model.ask("Say it.", "a picture", Colour, version="c/1", images=[picture])
    assert endpoint.asked[0].images == ["data:image/png;base64,iVBORw=="]


def test_a_plain_reply_arrives_piece_by_piece_and_is_paid_for(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("", "It is blue today.")
    pieces = list(model_of(endpoint, ledger).stream("Say it.", "the sky"))
    assert (len(pieces), "".join(pieces)) == (4, "It is blue today.")
    [usage] = ledger.usage.all()
    assert (usage.calls, usage.output_tokens) == (1, 4)


def test_a_stream_that_breaks_off_says_so(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("", "one two three four")
    endpoint.fail(200, cut=True)
    pieces: list[str] = []
    with pytest.raises(ModelUnavailable, match="peer closed connection"):
        pieces += model_of(endpoint, ledger).stream("Count.", "")
