"""The Model Context Protocol over HTTP, as its clients speak it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving import Serve
from starlette.testclient import TestClient

VERSION = "io.modelcontextprotocol/protocolVersion"
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A client that has the token."""
    made = serve()
    made.headers.update(ACCEPT)
    return made


def ask(client: TestClient, method: str, query: str = "", **params: Any) -> Any:
    """The result of a request, or its error."""
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    reply = client.post(f"/mcp{query}", json=message)
    assert reply.status_code == 200, reply.text
    assert reply.json()["id"] == 7
    return reply.json().get("result") or reply.json()["error"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_shakes_hands_and_calls_a_tool(client: TestClient, version: str) -> None:
    begun = ask(client, "initialize", protocolVersion=version, capabilities={}, clientInfo={})
    assert begun["protocolVersion"] == version
    assert begun["capabilities"]["resources"] == {}, "there is no connection for subscriptions"
    client.headers["MCP-Protocol-Version"] = version
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert client.post("/mcp", json=noted).status_code == 202
    names = [tool["name"] for tool in ask(client, "tools/list")["tools"]]
    assert "recall" in names
    asked = {"question": "what is the door code?"}
    called = ask(client, "tools/call", name="recall", arguments=asked)
    assert "4711" in called["structuredContent"]["citations"][0]["quote"]
    assert called["isError"] is False


def test_a_client_without_a_handshake_is_served(client: TestClient) -> None:
    meta = {VERSION: "2026-07-28"}
    found = ask(client, "server/discover", _meta=meta)
    assert "2026-07-28" in found["supportedVersions"]
    asked = {"question": "what is the door code?"}
    called = ask(client, "tools/call", name="recall", arguments=asked, _meta=meta)
    assert called["resultType"] == "complete"
    other = ask(client, "tools/list", _meta={VERSION: "1999-01-01"})
    assert other["code"] == -32022


def test_progress_comes_as_events_before_the_response(client: TestClient) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "recall",
            "arguments": {"question": "what is the door code?"},
            "_meta": {"progressToken": "p"},
        },
    }
    reply = client.post("/mcp", json=message)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(part.split("data: ")[1]) for part in reply.text.strip().split("\n\n")]
    assert events[-1]["id"] == 1
    assert "4711" in events[-1]["result"]["structuredContent"]["citations"][0]["quote"]


def test_a_body_that_is_no_json_rpc_message_is_refused_with_a_json_rpc_error(
    client: TestClient,
) -> None:
    headers = {"Content-Type": "application/json"}
    broken = client.post("/mcp", content="{", headers=headers)
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)
    for wrong in ([], {}, {"jsonrpc": "2.0"}, {"jsonrpc": "1.0", "method": "ping", "id": 1}, "x"):
        refused = client.post("/mcp", json=wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    for id_ in ("1e400", "NaN", "true", "[1]"):
        line = f'{{"jsonrpc": "2.0", "id": {id_}, "method": "ping"}}'
        refused = client.post("/mcp", content=line, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
        assert refused.json()["id"] is None
    old = client.post(
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "ping"},
        headers={"MCP-Protocol-Version": "1999-01-01"},
    )
    assert old.status_code == 400
    assert ask(client, "nothing")["code"] == -32601
    assert ask(client, "resources/subscribe", uri="memctl://kb/default/insights")["code"] == -32601
    assert client.get("/mcp").status_code == 405
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(2)]
    assert [each["id"] for each in client.post("/mcp", json=batch).json()] == [0, 1]


def test_a_private_knowledge_base_is_not_there_and_a_reading_server_changes_nothing(
    serve: Serve, client: TestClient
) -> None:
    guessed = ask(client, "tools/list", "?kb=diary")
    assert "no knowledge base" in guessed["message"]
    reader = serve(read_only=True)
    names = [tool["name"] for tool in ask(reader, "tools/list")["tools"]]
    assert "recall" in names
    assert "remember" not in names
    refused = ask(reader, "tools/call", name="remember", arguments={"text": "x"})
    assert refused["code"] == -32602
    more = ask(client, "tools/list", "?tools=all")["tools"]
    assert len(more) > len(names)
