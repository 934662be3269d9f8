"""What one MCP client is given: sets of tools, resources that change, prompts, progress."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import memctl
from memctl.config import load_config
from memctl.home import Home
from memctl.operations.operation_context import OperationContext
from memctl.operations.tool_calls import MAX_CHARACTERS, bounded
from memctl.server.mcp_session import McpSession
from memctl.server.mcp_tools import choose_tools, tool_sets
from memctl.sessions.conversations import Message

NAMED_IN_MCP = {
    "query_knowledge_base", "search_documents", "add_document", "process_document",
    "create_memory_pool", "read_shared_memory", "write_shared_memory", "delete_memory_pool",
    "list_memory_pools", "memory_pool_stats", "search_memory", "consolidate_memory", "memory_stats",
    "search_knowledge_graph", "get_graph_neighbors", "search_knowledge",
}  # fmt: skip


@dataclass
class Client:
    """A client of a session that is called directly."""

    session: McpSession
    notifications: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; return the result, or the error."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.session.answer(request)
        found: dict[str, Any] = answer["result"] if "result" in answer else answer["error"]
        return found

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        return self.ask("tools/call", name=name, arguments=arguments)


def connected(context: OperationContext, *tools: str) -> Client:
    notifications: list[dict[str, Any]] = []
    session = McpSession(
        context, choose_tools(tools or ("core", "all"), context), notifications.append
    )
    return Client(session, notifications)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("session")
    with memctl.open("notes", home=folder, create=True) as notes:
        notes.ingest(text="# Harbour lease\n\nThe lease of Eva Brandt starts on 1 June 2026.")
        session = notes.sessions.start("monday")
        notes.sessions.say(session, Message(sender="user", content="The lease is signed."))
    with memctl.open("diary", home=folder, create=True) as diary:
        diary.ingest(text="Dear diary, the safe opens with 4711.")
    Home(load_config({"home": str(folder)})).change("diary", private=True)
    return Home(load_config({"home": str(folder)}))


@pytest.fixture
def client(home: Home) -> Iterator[Client]:
    with OperationContext.of(home) as context:
        yield connected(context)


def test_every_tool_of_every_set_can_be_asked_for_and_core_stays_small(home: Home) -> None:
    sets = tool_sets()
    assert {"core", "connector", "documents", "pools", "graph", "upkeep", "work"} <= sets.keys()
    assert len(sets["core"]) <= 10
    with OperationContext.of(home) as context:
        assert choose_tools(["all"], context).keys() >= NAMED_IN_MCP
        for name, tools in sets.items():
            assert choose_tools([name], context).keys() == {tool.name for tool in tools}


def test_a_private_base_is_out_of_reach_unless_the_server_was_given_it(
    client: Client, home: Home
) -> None:
    found = client.call("query_knowledge_base", question="safe?", knowledge_base="diary")
    assert found["isError"]
    assert "4711" not in json.dumps(client.call("recall", question="What opens the safe?"))
    for uri in ("memctl://kb/diary/insights", "memctl://kb/diary/document/x"):
        assert client.ask("resources/read", uri=uri)["code"] == -32602
    with OperationContext.of(home, ["diary"]) as context:
        named = connected(context)
        assert "4711" in json.dumps(named.call("recall", question="What opens the safe?"))
        other = named.call("query_knowledge_base", question="lease?", knowledge_base="notes")
        assert other["isError"]


def test_an_agent_without_a_knowledge_base_reads_no_document_as_a_resource(home: Home) -> None:
    with OperationContext.of(home) as context:
        listed = connected(context).ask("resources/list")["resources"]
    uri = next(each["uri"] for each in listed if "/document/" in each["uri"])
    with OperationContext(home, resources=("memory",)) as context:
        client = connected(context)
        assert client.ask("resources/read", uri=uri)["code"] == -32602
        assert "/document/" not in json.dumps(client.ask("resources/list"))


def test_search_and_fetch_give_what_connectors_parse(home: Home) -> None:
    with OperationContext.of(home) as context:
        client = connected(context, "connector")
        tools = client.ask("tools/list")["tools"]
        assert [tool["name"] for tool in tools] == ["search", "fetch"]
        found = json.loads(client.call("search", query="lease")["content"][0]["text"])
        first = found["results"][0]
        assert first.keys() >= {"id", "title", "url"}
        document = json.loads(client.call("fetch", id=first["id"])["content"][0]["text"])
        assert document.keys() >= {"id", "title", "text", "url"}
        assert "The lease of Eva Brandt starts on 1 June 2026." in document["text"]


def test_a_document_is_added_and_files_only_of_allowed_folders(home: Home, tmp_path: Path) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret.md"
    allowed.mkdir()
    (allowed / "boat.md").write_text("# Boat\n\nThe boat is called Meltemi.")
    (allowed / "link.md").symlink_to(secret)
    secret.write_text("The key is under the mat.")
    with OperationContext.of(home, allow_paths=[allowed]) as context:
        client = connected(context, "documents")
        done = client.call("add_document", path=str(allowed / "boat.md"))
        found = done["structuredContent"]
        assert (found["outcome"], found["passages"]) == ("ingested", 1)
        again = client.call("process_document", document_id=found["document_id"])
        assert again["structuredContent"]["document_id"] == found["document_id"]
        for path in (secret, allowed / ".." / "secret.md", allowed / "link.md"):
            assert client.call("add_document", path=str(path))["isError"]
        added = client.call("add_document", content="The mast is of ash.", title="Mast")
        assert added["structuredContent"]["kb"] == "default"
        again = client.call("process_document", document_id="mast")
        assert (
            again["structuredContent"]["document_id"] == added["structuredContent"]["document_id"]
        )
        client.call("add_document", content="The other mast is of pine.", title="Mast")
        several = client.call("process_document", document_id="Mast")
        assert "several documents are called 'Mast'" in several["content"][0]["text"]


def test_a_call_tells_its_progress_to_who_wants_to_know(client: Client) -> None:
    client.ask(
        "tools/call",
        name="add_document",
        arguments={"content": "The rudder is of oak.", "knowledge_base": "notes"},
        _meta={"progressToken": "p1"},
    )
    notified = [each["params"] for each in client.notifications]
    assert notified
    assert {each["progressToken"] for each in notified} == {"p1"}
    amounts = [each["progress"] for each in notified]
    assert amounts == sorted(set(amounts))
    client.notifications.clear()
    client.call("browse")
    assert not client.notifications


def test_a_subscriber_of_a_pool_is_notified_of_a_change_once(home: Home) -> None:
    with OperationContext.of(home, ["notes"]) as context:
        client = connected(context)
        uri = "memctl://pool/default"
        client.call("write_shared_memory", pool_id="default", key="status", value="calm")
        assert client.ask("resources/subscribe", uri=uri) == {}
        client.session.tell_changes()
        assert not client.notifications
        client.call("write_shared_memory", pool_id="default", key="status", value="busy")
        client.session.tell_changes()
        client.session.tell_changes()
        assert [each["method"] for each in client.notifications] == [
            "notifications/resources/updated"
        ]
        assert client.notifications[0]["params"] == {"uri": uri}
        read = client.ask("resources/read", uri=uri)["contents"][0]["text"]
        assert json.loads(read) == {"status": "busy"}
        client.ask("resources/unsubscribe", uri=uri)
        assert not client.session.is_watching
        for wrong in ("memctl://kb/notes/document/x", "memctl://pool/nothing", "file:///x", None):
            assert client.ask("resources/subscribe", uri=wrong)["code"] == -32602


def test_arguments_of_templates_and_prompts_are_completed(client: Client) -> None:
    def values(ref: dict[str, str], argument: str, value: str, **chosen: str) -> list[str]:
        found = client.ask(
            "completion/complete",
            ref=ref,
            argument={"name": argument, "value": value},
            context={"arguments": chosen},
        )
        completed: list[str] = found["completion"]["values"]
        return completed

    document = {"type": "ref/resource", "uri": "memctl://kb/{name}/document/{id}"}
    assert values(document, "name", "no") == ["notes"]
    assert values(document, "name", "dia") == []
    assert len(values(document, "id", "d_", name="notes")) >= 1
    prompt = {"type": "ref/prompt", "name": "session_prompt"}
    assert values(prompt, "session_id", "mon") == ["monday"]


def test_prompts_put_what_is_known_above_what_is_said(client: Client) -> None:
    standing = client.ask("prompts/get", name="standing_context", arguments={"budget": "200"})
    assert standing["messages"]
    arguments = {"session_id": "monday", "message": "And when does it start?"}
    messages = client.ask("prompts/get", name="session_prompt", arguments=arguments)["messages"]
    assert messages[-1]["content"]["text"] == "And when does it start?"
    assert "The lease is signed." in json.dumps(messages)
    for wrong in ({}, {"budget": "much"}, {"budget": 3}, {"other": "x"}):
        name = "standing_context" if wrong else "recall"
        assert client.ask("prompts/get", name=name, arguments=wrong)["code"] == -32602


def test_a_result_that_is_cut_says_where_the_rest_begins(home: Home) -> None:
    rows = [{"id": str(number), "text": "x" * 150} for number in range(400)]
    value = {"documents": rows, "total": 1_000, "next_offset": 500}
    cut = bounded(value)
    assert len(json.dumps(cut)) <= MAX_CHARACTERS + 200
    assert cut["next_offset"] == 100 + len(cut["documents"])
    last = bounded({**value, "total": 500, "next_offset": None})
    assert last["next_offset"] == 100 + len(last["documents"])
