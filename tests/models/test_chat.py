"""A chat model behind an endpoint, and all that can go wrong with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, Said
from pydantic import BaseModel, ConfigDict
from waiting import PATIENCE

from memctl.config import BudgetSettings
from memctl.errors import (
    BadReply,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
    RequestTooLong,
)
from memctl.models import endpoint as model_endpoint
from memctl.models.call_accounting import BudgetExceeded, ModelAccount
from memctl.models.chat_model import ChatModel
from memctl.models.endpoint import Connection, Endpoint
from memctl.store.ledger.ledger import Ledger

NOW = datetime(2026, 5, 12, 9, tzinfo=UTC)
DAY = "2026-05-12"


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
    account = ModelAccount(ledger.replies, ledger.usage, budget or BudgetSettings(), clock)
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


def test_of_several_that_ask_the_same_at_once_one_does(
    endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.on("Colour", BLUE)
    endpoint.delay = 0.5  # in which the others come
    Ledger.create(tmp_path / "ledger.sqlite").close()
    ledgers = [Ledger.open(tmp_path / "ledger.sqlite") for _ in range(4)]  # as processes have
    start = threading.Barrier(len(ledgers))

    def asked(ledger: Ledger) -> Colour:
        start.wait()
        return ask(model_of(endpoint, ledger))

    with ThreadPoolExecutor(len(ledgers)) as pool:
        replies = list(pool.map(asked, ledgers))
    assert replies == [Colour(name="blue", hue=240)] * 4
    assert endpoint.count() == 1
    [usage] = ledgers[0].usage.of_day(DAY)
    assert (usage.calls, usage.cached) == (1, 3)
    assert list((tmp_path / "asking").iterdir()) == []


def test_a_request_that_failed_is_sent_again_by_the_next_model(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    endpoint.fail(500, times=1)
    with pytest.raises(ModelUnavailable):
        ask(model_of(endpoint, ledger))
    assert ask(model_of(endpoint, ledger)).hue == 240


def test_where_nobody_can_be_kept_out_it_is_asked_all_the_same(
    endpoint: FakeEndpoint, ledger: Ledger, tmp_path: Path
) -> None:
    endpoint.on("Colour", BLUE)
    (tmp_path / "asking").write_text("no folder")
    assert ask(model_of(endpoint, ledger)).hue == 240


def test_the_same_question_is_asked_once_and_costs_nothing_again(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    for _ in range(3):
        ask(model_of(endpoint, ledger))
    assert endpoint.count() == 1
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.cached) == (1, 2)
    assert usage.input_tokens > 0
    model_of(endpoint, ledger).ask("Say it.", "the sky", Colour, version="colour/2")
    assert endpoint.count() == 2


def test_tokens_cost_what_the_settings_say(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("Colour", BLUE)
    ask(model_of(endpoint, ledger, BudgetSettings(input_price=1e6, output_price=2e6)), "x" * 400)
    [usage] = ledger.usage.of_day(DAY)
    assert usage.cost == usage.input_tokens + 2 * usage.output_tokens
    assert usage.input_tokens >= 100


def test_a_spent_budget_stops_calls_until_the_next_day(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    budget, now = BudgetSettings(daily_tokens=1), [NOW]
    model = model_of(endpoint, ledger, budget, lambda: now[0])
    ask(model, "one")
    with pytest.raises(BudgetExceeded, match="budget of 1 tokens"):
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
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.failed) == (0, 1)


def test_a_key_that_the_endpoint_repeats_is_not_shown(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    said = json.dumps({"error": {"message": "Incorrect API key provided: secret."}})
    endpoint.fail(401, body=said)
    with pytest.raises(ModelRefused, match=r"key provided: \[key\]\."):
        ask(model_of(endpoint, ledger))
    event = json.dumps({"error": {"message": "no credit left on secret", "code": 402}})
    endpoint.fail(200, body=f"data: {event}\n\n")
    with pytest.raises(ModelUnavailable, match=r"no credit left on \[key\]"):
        list(model_of(endpoint, ledger).stream("Count.", ""))


@pytest.mark.parametrize("status", [301, 307, 308])
def test_nothing_is_sent_on_to_where_an_endpoint_redirects(
    endpoint: FakeEndpoint, ledger: Ledger, status: int
) -> None:
    elsewhere = f"{endpoint.url}/elsewhere"
    endpoint.fail(status, headers={"Location": elsewhere})
    with pytest.raises(ModelRefused, match=f"moved to {elsewhere}") as caught:
        ask(model_of(endpoint, ledger, retries=2))
    assert "base_url" in caught.value.hint
    assert endpoint.count() == 1


def test_what_is_sent_to_this_machine_goes_through_no_proxy(
    endpoint: FakeEndpoint, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    endpoint.on("Colour", BLUE)
    assert ask(model_of(endpoint, ledger)).name == "blue"


def test_a_request_is_repeated_after_a_temporary_failure(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", BLUE)
    endpoint.fail(429, headers={"Retry-After": "0"})
    endpoint.fail(503)
    assert ask(model_of(endpoint, ledger, retries=2)).name == "blue"
    assert endpoint.count() == 3


def test_an_endpoint_that_hangs_is_given_up(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.fail(200, hang=0.5)
    with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.1 s") as caught:
        ask(model_of(endpoint, ledger, timeout_seconds=0.1))
    assert "timeout_seconds" in caught.value.hint


def test_an_endpoint_that_is_down_is_left_alone(
    endpoint: FakeEndpoint, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_endpoint, "FIRST_PAUSE_SECONDS", 3600.0)
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
    two = threading.Barrier(2)

    def waits_for_another(_: object) -> dict[str, object]:
        two.wait(PATIENCE)
        return BLUE

    endpoint.on("Colour", waits_for_another)
    endpoint.delay = 0.05  # in which a third one would come
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
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.output_tokens) == (1, 4)


def test_a_stream_that_breaks_off_says_so(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.on("", "one two three four")
    endpoint.fail(200, cut=True)
    pieces: list[str] = []
    with pytest.raises(ModelUnavailable, match="peer closed connection"):
        pieces += model_of(endpoint, ledger).stream("Count.", "")
    assert "".join(pieces) == "one two "
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.failed) == (0, 1)


def test_a_stream_that_just_ends_is_not_taken_for_a_whole_reply(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "It is not "}}]}
    endpoint.fail(200, body=f"data: {json.dumps(piece)}\n\n")
    pieces: list[str] = []
    with pytest.raises(ModelUnavailable, match="broke off in the middle"):
        pieces += model_of(endpoint, ledger).stream("Say it.", "")
    assert pieces == ["It is not "]
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.failed) == (0, 1)


def test_a_stream_that_ends_in_an_error_of_the_server_says_which(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    event = json.dumps({"error": {"message": "out of memory", "code": 500}})
    endpoint.fail(200, body=f"data: {event}\n\n")
    with pytest.raises(ModelUnavailable, match=r"broke off: .*out of memory"):
        list(model_of(endpoint, ledger).stream("Count.", ""))
    assert ledger.usage.of_day(DAY)[0].failed == 1


# --- what a server takes -------------------------------------------------------------------------


def unsupported(param: str, code: str, message: str) -> dict[str, str]:
    return {"message": message, "type": "invalid_request_error", "param": param, "code": code}


def reasoning_model(body: dict[str, Any]) -> dict[str, str] | None:
    """What newer models of OpenAI refuse, in their words."""
    if "max_tokens" in body:
        return unsupported(
            "max_tokens",
            "unsupported_parameter",
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead.",
        )
    if "temperature" in body:
        return unsupported(
            "temperature",
            "unsupported_value",
            "Unsupported value: 'temperature' does not support 0 with this model."
            " Only the default (1) value is supported.",
        )
    return None


def test_what_a_model_takes_is_found_out_once_and_costs_no_failed_calls(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.judge = reasoning_model
    endpoint.on("Colour", BLUE)
    model = model_of(endpoint, ledger)
    assert ask(model).name == "blue"
    assert endpoint.count() == 3
    ask(model, "the sea")
    assert endpoint.count() == 4
    body = endpoint.asked[-1].body
    assert body["max_completion_tokens"] > 4096, "its thoughts count"
    assert body["response_format"]["type"] == "json_schema"
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.failed) == (2, 0)


def test_a_stream_is_asked_for_in_the_way_that_the_model_takes(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    def judge(body: dict[str, Any]) -> Any:
        if "stream_options" in body:
            return "Unrecognized request argument supplied: stream_options"
        return reasoning_model(body)

    endpoint.judge = judge
    endpoint.on("", "It is blue.")
    assert "".join(model_of(endpoint, ledger).stream("Say it.", "the sky")) == "It is blue."


def test_a_limit_that_no_name_fits_is_left_out(endpoint: FakeEndpoint, ledger: Ledger) -> None:
    endpoint.judge = lambda body: (
        "max_tokens must be at most 2048" if any("max_" in key for key in body) else None
    )
    endpoint.on("Colour", BLUE)
    assert ask(model_of(endpoint, ledger)).name == "blue"


@pytest.mark.parametrize(
    "words",
    [
        "'response_format.type' must be 'json_schema' or 'text'",
        "This response_format type is unavailable now",
        {"message": "Invalid schema for response_format 'Colour'", "param": "response_format"},
        {"message": "The provided JSON schema contains features not supported by xgrammar."},
    ],
)
def test_a_format_is_known_to_be_refused_by_the_words_for_it(
    endpoint: FakeEndpoint, ledger: Ledger, words: Any
) -> None:
    endpoint.judge = lambda body: words if "response_format" in body else None
    endpoint.on("Colour", BLUE)
    assert ask(model_of(endpoint, ledger)).name == "blue"
    assert endpoint.count() == 3


TOO_LONG = [
    {"message": "This model's maximum context length is 8192 tokens.", "param": "messages"},
    {"message": "the request exceeds the available context size", "code": 400},
    {"message": "too much", "type": "exceed_context_size_error"},
    {"message": "see the code", "code": "context_length_exceeded"},
]


@pytest.mark.parametrize("words", TOO_LONG)
def test_a_request_that_is_too_long_is_no_unknown_format(
    endpoint: FakeEndpoint, ledger: Ledger, words: dict[str, Any]
) -> None:
    endpoint.judge = lambda _: words
    with pytest.raises(RequestTooLong, match=words["message"][:12]) as caught:
        ask(model_of(endpoint, ledger))
    assert "longer context" in caught.value.hint
    assert endpoint.count() == 1


def test_a_server_whose_context_is_no_longer_than_a_reply_is_asked_without_a_limit(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    words = (
        "This model's maximum context length is 4096 tokens. However, you requested 5096 tokens"
        " (1000 in the messages, 4096 in the completion)."
    )
    endpoint.judge = lambda body: words if "max_tokens" in body else None
    endpoint.on("Colour", BLUE)
    assert ask(model_of(endpoint, ledger)).name == "blue"
    assert endpoint.count() == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("Your input violates our content policy", "another model may"),
        ("Invalid image data", "sees no pictures"),
        ("Something else is amiss", "memctl models test"),
    ],
)
def test_a_request_that_is_refused_is_no_unknown_format(
    endpoint: FakeEndpoint, ledger: Ledger, words: str, hint: str
) -> None:
    endpoint.judge = lambda _: {"message": words}
    with pytest.raises(RequestRefused, match=f"answered 400: {words}") as caught:
        ask(model_of(endpoint, ledger))
    assert hint in caught.value.hint
    assert endpoint.count() == 1
    [usage] = ledger.usage.of_day(DAY)
    assert usage.failed == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "The model `gpt-9` does not exist", "code": "model_not_found"},
        {"message": "API key not valid. Please pass a valid API key."},
        {"message": "no", "param": "model"},
    ],
)
def test_a_wrong_setting_is_one_whatever_the_status(
    endpoint: FakeEndpoint, ledger: Ledger, error: dict[str, str]
) -> None:
    endpoint.judge = lambda _: error
    with pytest.raises(ModelRefused):
        ask(model_of(endpoint, ledger))


# --- what a model says ---------------------------------------------------------------------------

JSON = '{"name": "blue", "hue": 240}'


@pytest.mark.parametrize(
    "said",
    [
        Said(f"<think>\nIs {{sky}} blue? I think so.\n</think>\n\n{JSON}"),
        Said(f"It is {{surely}} blue.\n</think>\n{JSON}"),
        Said(JSON, thoughts="Is {sky} blue?"),
        Said("", thoughts=JSON),
        Said(f"It is {{surely}} this:\n```json\n{JSON}\n```\nIs it {{not}}?"),
        Said(f"Here you are: {JSON} Anything else?"),
        Said(JSON, finish="length"),
    ],
)
def test_json_is_found_behind_thoughts_and_in_fences(
    endpoint: FakeEndpoint, ledger: Ledger, said: Said
) -> None:
    endpoint.on("Colour", said)
    assert ask(model_of(endpoint, ledger)).name == "blue"
    assert endpoint.count() == 1


def test_a_reply_that_is_cut_is_not_asked_for_in_the_same_way(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", Said('{"name": "bl', finish="length"))
    with pytest.raises(RequestTooLong, match="cut off"):
        ask(model_of(endpoint, ledger))
    assert endpoint.count() == 1
    [usage] = ledger.usage.of_day(DAY)
    assert (usage.calls, usage.failed) == (1, 0), "it was paid for"


@pytest.mark.parametrize("thought", [Said("<think>Hmm"), Said("", thoughts="Hmm")])
def test_a_model_that_is_cut_while_it_thinks_gets_more_room(
    endpoint: FakeEndpoint, ledger: Ledger, thought: Said
) -> None:
    cut = Said(thought.text, "length", thoughts=thought.thoughts)
    endpoint.judge = lambda body: endpoint.on("Colour", BLUE if body["max_tokens"] > 4096 else cut)
    model = model_of(endpoint, ledger)
    assert ask(model).name == "blue"
    ask(model, "the sea")
    assert endpoint.count() == 3
    endpoint.judge = lambda _: endpoint.on("Colour", cut)
    with pytest.raises(RequestTooLong, match="thought until"):
        ask(model, "the moon")


@pytest.mark.parametrize(
    "said", [Said(refusal="I cannot help with that."), Said("{", finish="content_filter")]
)
def test_a_model_that_will_not_is_not_asked_again(
    endpoint: FakeEndpoint, ledger: Ledger, said: Said
) -> None:
    endpoint.on("Colour", said)
    with pytest.raises(RequestRefused, match=said.refusal or "filter"):
        ask(model_of(endpoint, ledger))
    assert endpoint.count() == 1


def test_an_empty_reply_is_asked_for_once_more_without_an_empty_message(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("Colour", Said(""))
    with pytest.raises(BadReply, match="it was empty"):
        ask(model_of(endpoint, ledger))
    assert [len(asked.body["messages"]) for asked in endpoint.asked] == [2, 2]


def test_thoughts_are_not_among_the_pieces_of_a_reply(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    endpoint.on("", "<think> Is it? It is. </think> It is <b>blue</b> today.")
    pieces = list(model_of(endpoint, ledger).stream("Say it.", "the sky"))
    assert "".join(pieces) == "It is <b>blue</b> today."
    assert len(pieces) > 2


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (Said(""), BadReply, "replied with nothing"),
        (Said("It is", finish="length"), BadReply, "cut off"),
        (Said("", refusal="I will not."), RequestRefused, "I will not."),
        (Said("<think> Hmm", finish="length"), RequestTooLong, "thought until"),
    ],
)
def test_a_stream_without_a_whole_reply_says_so(
    endpoint: FakeEndpoint, ledger: Ledger, said: Said, error: type[Exception], words: str
) -> None:
    endpoint.on("", said)
    with pytest.raises(error, match=words):
        list(model_of(endpoint, ledger).stream("Say it.", "the sky"))
    assert ledger.usage.of_day(DAY)[0].calls == endpoint.count()


def test_a_server_that_is_told_a_context_is_too_long_is_not_down(
    endpoint: FakeEndpoint, ledger: Ledger
) -> None:
    """llama.cpp once said so with 500."""
    said = {"error": {"code": 500, "message": "the request exceeds the available context size"}}
    endpoint.fail(500, times=-1, body=json.dumps(said))
    model = model_of(endpoint, ledger)
    for _ in range(4):
        with pytest.raises(RequestTooLong):
            ask(model)
