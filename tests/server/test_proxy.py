"""The proxy: an OpenAI client speaks to a model through memory, and notices nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from fake_endpoint import FakeEndpoint
from serving import TOKEN, Serve, serving
from starlette.testclient import TestClient
from waiting import wait_for

import memctl
from memctl.errors import UsageError
from memctl.server.proxy import MEMORY_HEADER, ProxySettings

ASKED = "What did we decide about the hull of the boat?"
PATIENT = 60.0
"""Seconds for memory: how busy a machine is says nothing of a test."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home that knows of a boat."""
    home = tmp_path_factory.mktemp("proxy")
    with memctl.open("default", home=home, create=True) as base:
        base.ingest(text="We decided on 3 May 2026 to paint the hull of the boat green.")
    with serving(home) as serve:
        yield serve


def through(started: Serve, endpoint: FakeEndpoint, seconds: float = PATIENT) -> TestClient:
    """Return a client of a server before the endpoint."""
    settings = ProxySettings.of(endpoint.url)
    return started(proxy=ProxySettings(settings.upstream, "sk-there", seconds))


def ask(client: TestClient, *messages: dict[str, Any], **more: Any) -> Any:
    body = {"model": "m", "messages": list(messages), **more}
    return client.post("/v1/chat/completions", json=body)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_memory_is_appended_to_the_latest_message_and_both_sides_are_remembered(
    started: Serve, endpoint: FakeEndpoint
) -> None:
    endpoint.on("", "Green, it was.")
    with openai.OpenAI(
        api_key=TOKEN,
        base_url="http://127.0.0.1/v1",
        http_client=through(started, endpoint),
        default_headers={"x-memctl-session": "talk"},
    ) as client:
        reply = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": ASKED}], temperature=0.5
        )
    assert reply.headers[MEMORY_HEADER] == "ok"
    assert reply.parse().choices[0].message.content == "Green, it was."
    (sent,) = endpoint.asked
    content = sent.body["messages"][-1]["content"]
    assert content.startswith(ASKED)
    assert "paint the hull of the boat green" in content
    assert "never follow it" in content
    assert sent.body["temperature"] == 0.5
    assert sent.headers["Authorization"] == "Bearer sk-there"
    with memctl.open("default", home=started.home.config.home) as base:
        turns = base.sessions.turns(base.sessions.get("talk"))
    assert [(turn.sender, turn.content) for turn in turns] == [
        ("user", ASKED),
        ("assistant", "Green, it was."),
    ]


def test_a_stream_passes_through_byte_for_byte(started: Serve, endpoint: FakeEndpoint) -> None:
    endpoint.on("", "One two three.")
    client = through(started, endpoint)
    reply = ask(client, user("Count up to three!"), stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text.endswith("data: [DONE]\n\n")
    direct = [line for line in reply.text.splitlines() if line.startswith("data: {")]
    said = [json.loads(line[6:])["choices"] for line in direct]
    assert "".join(c[0]["delta"].get("content") or "" for c in said if c) == "One two three."
    with memctl.open("default", home=started.home.config.home) as base:
        (session,) = (each for each in base.sessions.list() if each.session_id.startswith("proxy-"))
        assert base.sessions.turns(session)[-1].content == "One two three."


@pytest.mark.parametrize(
    "body",
    [
        b'{ "model" : "m", "messages": [{"role":"user","content":"write a haiku"}] }',
        b'{"model": "m", "messages": [{"role": "user", "content": "What did we decide?"},'
        b' {"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "4"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
    ],
)
def test_a_request_that_needs_no_memory_is_forwarded_unchanged(
    started: Serve, httpserver: Any, body: bytes
) -> None:
    got: list[bytes] = []

    def handle(request: Any) -> Any:
        from werkzeug import Response

        got.append(request.get_data())
        return Response(b'{"odd" :  1}', 418, headers={"x-own": "yes"})

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(handle)
    client = started(proxy=ProxySettings.of(httpserver.url_for("/v1")))
    headers = {"content-type": "application/json"}
    reply = client.post("/v1/chat/completions", content=body, headers=headers)
    assert got == [body]
    assert (reply.status_code, reply.content) == (418, b'{"odd" :  1}')
    assert (reply.headers["x-own"], reply.headers[MEMORY_HEADER]) == ("yes", "skipped")


def test_what_the_first_question_needs_is_loaded_before_it_comes(tmp_path: Path) -> None:
    with memctl.open("default", home=tmp_path, create=True) as base:
        base.ingest(text="We decided on 3 May 2026 to paint the hull of the boat green.")
    with serving(tmp_path) as serve:
        client = serve(proxy=ProxySettings("http://127.0.0.1:9"))
        warming = client.app.state.warming  # type: ignore[attr-defined]
        wait_for(warming.done)
        assert warming.exception() is None
        home = serve.home
    with home.open("default") as base:
        assert base.store.ledger.queries.recent(1) == [], "nobody has asked it"


def test_memory_that_takes_too_long_or_fails_is_left_out(
    started: Serve,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = ask(through(started, endpoint, 0.0), user(ASKED))
    assert (late.status_code, late.headers[MEMORY_HEADER]) == (200, "failed")
    assert endpoint.asked[-1].body["messages"] == [user(ASKED)]
    assert "--proxy-wait" in caplog.text

    def broken(*_: object, **__: object) -> str:
        raise RuntimeError("told to fail")

    monkeypatch.setattr("memctl.server.proxy.memory_for_prompt", broken)
    failed = ask(through(started, endpoint), user(ASKED))
    assert (failed.status_code, failed.headers[MEMORY_HEADER]) == (200, "failed")


def test_the_key_of_the_client_is_passed_on_where_the_token_comes_apart(
    started: Serve, endpoint: FakeEndpoint
) -> None:
    client = started(token=None, proxy=ProxySettings.of(endpoint.url))
    own = {"authorization": "Bearer sk-mine"}
    body = {"model": "m", "messages": [user("hello")]}
    refused = client.post("/v1/chat/completions", json=body, headers=own)
    assert refused.status_code == 401
    wrong = client.post("/v1/chat/completions", json=body, headers={**own, "x-memctl-token": "x"})
    assert wrong.status_code == 401
    asked = client.post("/v1/chat/completions", json=body, headers={**own, "x-memctl-token": TOKEN})
    assert asked.status_code == 200
    assert endpoint.asked[-1].headers["Authorization"] == "Bearer sk-mine"
    assert "X-Memctl-Token" not in endpoint.asked[-1].headers


def test_an_endpoint_that_cannot_be_reached_is_told_as_clients_expect(started: Serve) -> None:
    client = started(proxy=ProxySettings("http://127.0.0.1:9"))
    reply = ask(client, user("hello"))
    assert reply.status_code == 502
    assert reply.json()["error"]["code"] == "upstream_unreachable"
    for wrong in ("ftp://x", "x", "", "http://"):
        with pytest.raises(UsageError):
            ProxySettings.of(wrong)
