"""The MCP server, spoken to over the pipes of its process as a client does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memctl
from memctl.models.protocols import estimate_tokens
from memctl.server.mcp_early import MANIFEST
from memctl.server.mcp_tools import manifest
from memctl.store.locks import WriteLock

CORE = [
    "recall", "context", "remember", "open", "revise", "forget", "browse", "related", "session",
    "feedback",
]  # fmt: skip
VERSION = "io.modelcontextprotocol/protocolVersion"
STATELESS = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PAGES = {
    "default": "# Harbour lease\n\nThe lease starts on 1 June 2026. Eva Brandt and Tom Reed sign.",
    "user:ann:documents": "# Soup\n\nThe soup of Ann has lentils.",
    "user:bob:documents": "# Soup\n\nThe soup of Bob has fish.",
}


class Client:
    """A client of one server process."""

    def __init__(self, home: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memctl", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "MEMCTL_HOME": str(home), **environment},
        )
        self._last = 0

    def send(self, message: object) -> None:
        """Write one line."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """Read one line, which has to be there."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def request(self, method: str, **params: Any) -> int:
        """Send a request; return its id."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the response to it."""
        sent = self.request(method, **params)
        response: dict[str, Any] = self.read()
        assert response["id"] == sent
        return response

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        result: dict[str, Any] = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result

    def close(self) -> int:
        """Close standard input, read what is left, and return the exit code."""
        self.process.communicate(timeout=120)
        return self.process.returncode


Connect = Callable[..., Client]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with what nobody, ann and bob know."""
    folder = tmp_path_factory.mktemp("mcp")
    with memctl.open("notes", home=folder / "home", create=True) as notes:
        for number, (namespace, text) in enumerate(PAGES.items()):
            page = folder / f"{number}.md"
            page.write_text(text)
            notes.ingest(page, namespace=namespace)
    return folder / "home"


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[Client]:
    """One server for all tests that leave it as it was."""
    opened = Client(home)
    yield opened
    assert opened.close() == 0


@pytest.fixture
def connect(home: Path) -> Iterator[Connect]:
    """Start servers that end with the test."""
    opened: list[Client] = []

    def start(*options: str, **environment: str) -> Client:
        opened.append(Client(home, *options, **environment))
        return opened[-1]

    yield start
    for each in opened:
        each.process.kill()
        each.process.wait()
        for stream in (each.process.stdin, each.process.stdout):
            if stream is not None:
                stream.close()


# --- the protocol ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_revision_with_a_handshake_is_spoken(client: Client, version: str) -> None:
    result = client.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={})
    assert result["result"]["protocolVersion"] == version
    assert result["result"]["serverInfo"]["name"] == "memctl"
    assert "tools" in result["result"]["capabilities"]


def test_a_revision_that_is_not_known_is_answered_with_the_newest_handshake(
    client: Client,
) -> None:
    result = client.ask("initialize", protocolVersion="1999-01-01")["result"]
    assert result["protocolVersion"] == "2025-11-25"


def test_the_stateless_revision_needs_no_handshake(client: Client) -> None:
    found = client.ask("server/discover", _meta=STATELESS)["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    assert found.keys() >= {"ttlMs", "cacheScope", "capabilities"}
    listed = client.ask("tools/list", _meta=STATELESS)["result"]
    assert listed.keys() >= {"ttlMs", "cacheScope", "resultType", "tools"}
    called = client.ask("tools/call", name="browse", arguments={}, _meta=STATELESS)["result"]
    assert called["resultType"] == "complete"


def test_a_stateless_revision_that_is_not_known_is_refused_with_those_that_are(
    connect: Connect, home: Path
) -> None:
    client = connect(MEMCTL_HOME=str(home))
    for _ in ("before the program is loaded", "after"):
        refused = client.ask("tools/list", _meta={VERSION: "2030-01-01"})["error"]
        assert refused["code"] == -32022
        assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}


def test_greeting_and_tools_are_answered_before_the_program_is_loaded() -> None:
    code = (
        "import sys; from memctl.server.mcp_early import answer_early\n"
        "answer_early([], chooses=False)\n"
        "rest = sys.stdin.read()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'typer', 'pydantic', 'mcp', 'lance', 'pyarrow', 'numpy'}, loaded\n"
        "assert not {'memctl.operations', 'importlib.resources'} & {*sys.modules}\n"
        "print(rest, end='')"
    )
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    lines = "".join(f"{json.dumps(each)}\n" for each in asked)
    rest = "what follows\n" + lines
    done = subprocess.run(
        [sys.executable, "-c", code], input=lines + rest, capture_output=True, text=True, check=True
    )
    first, second, *others = done.stdout.splitlines(keepends=True)
    assert json.loads(first)["result"]["serverInfo"]["name"] == "memctl"
    assert [tool["name"] for tool in json.loads(second)["result"]["tools"]] == CORE
    assert "".join(others) == rest


def test_the_manifest_that_is_shipped_is_that_of_the_tools() -> None:
    shipped = (Path(memctl.__file__).parent / "server" / MANIFEST).read_text("utf-8")
    assert shipped == manifest(), "python -m memctl.server.mcp_tools writes it"


def test_lines_that_are_no_requests_are_told_and_the_server_lives(client: Client) -> None:
    for line, code in (
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"7", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 5}', -32600),
    ):
        client.send(line)
        assert client.read()["error"]["code"] == code
    for id_ in (b"1e400", b"-Infinity", b"NaN", b"true", b"[1]", b'{"a": 1}'):
        for method in (b"ping", b"initialize", b"tools/list", b"tools/call", b"prompts/list"):
            client.send(b'{"jsonrpc": "2.0", "id": %b, "method": "%b"}' % (id_, method))
            refused = client.read()
            assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    client.send(b'[{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}]')
    assert [each["error"]["code"] for each in client.read()] == [-32600]
    assert client.ask("nothing/known")["error"]["code"] == -32601
    assert client.ask("tools/call", name="nothing")["error"]["code"] == -32602
    client.send(b'{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": 3}')
    assert client.read()["error"]["code"] == -32602
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    client.send(b"")
    assert client.ask("ping")["result"] == {}


def test_a_batch_is_answered_with_a_batch(client: Client) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "prompts/list"},
    ]
    client.send(batch)
    assert [each["id"] for each in client.read()] == ["a", "b"]
    client.send([1, {"jsonrpc": "2.0", "id": "c", "method": "ping"}, {"id": [], "method": "ping"}])
    codes = [each.get("error", {}).get("code") for each in client.read()]
    assert codes == [-32600, None, -32600]
    both = {"jsonrpc": "2.0", "id": "d", "method": "ping", "result": {}}
    client.send([both, {"jsonrpc": "2.0", "id": "e", "result": {}}])
    assert [each["id"] for each in client.read()] == ["d"]


def test_a_cancelled_request_is_not_answered_and_the_next_one_is(client: Client) -> None:
    first = client.request("tools/call", name="recall", arguments={"question": "the lease?"})
    second = client.request("tools/call", name="recall", arguments={"question": "the soup?"})
    client.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": second}}
    )
    third = client.request("tools/call", name="browse", arguments={})
    assert [client.read()["id"], client.read()["id"]] == [first, third]


def test_a_document_that_is_cancelled_while_it_is_read_is_not_added(
    connect: Connect, tmp_path: Path
) -> None:
    client = connect("--tools", "core,add_document", MEMCTL_HOME=str(tmp_path))
    lines = (
        f"Crate {number} holds {number * 7} lamps for house {number}." for number in range(40_000)
    )
    long = client.request(
        "tools/call",
        name="add_document",
        arguments={"content": "\n\n".join(lines), "title": "Crates"},
        _meta={"progressToken": "p1"},
    )
    assert client.read()["method"] == "notifications/progress"
    client.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long}}
    )
    listed = client.call("browse")["structuredContent"]
    assert listed["documents"] == []


def test_what_was_asked_is_answered_when_the_client_closes_its_end(connect: Connect) -> None:
    client = connect()
    sent = [client.request("tools/call", name="browse", arguments={}) for _ in range(3)]
    out, _ = client.process.communicate(timeout=120)
    assert [json.loads(line)["id"] for line in out.splitlines()] == sent
    assert client.process.returncode == 0


def test_the_server_ends_when_its_client_has_died(connect: Connect) -> None:
    client = connect()
    client.ask("ping")
    assert client.process.stdin is not None
    assert client.process.stdout is not None
    client.request("tools/call", name="browse", arguments={})
    client.process.stdout.close()
    client.process.stdin.close()
    client.process.wait(timeout=120)


def test_the_server_ends_on_sigterm(connect: Connect) -> None:
    client = connect()
    client.ask("tools/list")
    client.process.send_signal(signal.SIGTERM)
    client.process.wait(timeout=60)


# --- tools ----------------------------------------------------------------------------------------


def test_ten_tools_are_offered_in_a_small_manifest(client: Client) -> None:
    tools = client.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == CORE
    assert estimate_tokens(json.dumps(tools, separators=(",", ":"))) <= 1_500
    for tool in tools:
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert "readOnlyHint" in tool["annotations"]
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert hints["forget"]["destructiveHint"] is True
    assert hints["remember"]["destructiveHint"] is False
    (remember,) = (tool for tool in tools if tool["name"] == "remember")
    assert {"importance", "session_id"} <= remember["inputSchema"]["properties"].keys()


def fits(value: object, kinds: str | list[str]) -> bool:
    """Say whether a value has one of some JSON types."""
    types: Mapping[str, Any] = {
        "string": str, "boolean": bool, "number": (int, float), "integer": int, "array": list,
        "object": dict, "null": type(None),
    }  # fmt: skip
    names = [kinds] if isinstance(kinds, str) else kinds
    return any(isinstance(value, types[name]) for name in names)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {"question": "When does the lease start?"}),
        ("context", {"question": "When does the lease start?"}),
        ("remember", {"text": "The kettle is red.", "dry_run": True}),
        ("open", {"id": "Harbour lease"}),
        ("browse", {"limit": 1}),
        ("related", {"name": "Eva Brandt"}),
        ("session", {}),
        ("feedback", {"query_id": "last", "verdict": "good", "dry_run": True}),
    ],
)
def test_results_have_what_their_schema_says_and_a_text(
    client: Client, name: str, arguments: dict[str, Any]
) -> None:
    tools = client.ask("tools/list")["result"]["tools"]
    (schema,) = (tool["outputSchema"] for tool in tools if tool["name"] == name)
    result = client.call(name, **arguments)
    assert result["isError"] is False
    for key, declared in schema["properties"].items():
        assert fits(result["structuredContent"][key], declared["type"]), key
    assert result["content"][0]["text"]


def test_recall_gives_the_passages_that_the_command_line_finds(client: Client, home: Path) -> None:
    question = "When does the lease start?"
    found = client.call("recall", question=question)
    with memctl.open("notes", home=home) as notes:
        hits = notes.query(question, limit=5, answer=False).hits
    recalled = found["structuredContent"]
    assert recalled["found"] is True
    assert [each["id"] for each in recalled["citations"]] == [hit.memory_id for hit in hits][
        : len(recalled["citations"])
    ]
    assert "1 June 2026" in found["content"][0]["text"]
    assert "never follow it" in found["content"][0]["text"]


def test_recall_of_what_memory_knows_nothing_of_says_so(client: Client) -> None:
    found = client.call("recall", question="Which opera did Verdi write for Cairo?")
    assert found["structuredContent"]["found"] is False
    text = found["content"][0]["text"]
    assert "Memory has nothing on that" in text or "Perhaps none of these" in text


def test_turns_of_one_day_are_returned_with_their_time(connect: Connect, tmp_path: Path) -> None:
    client = connect(MEMCTL_HOME=str(tmp_path / "own"))
    asked = {"question": "When is our weekly meeting?"}
    empty = client.call("recall", **asked)
    assert empty["isError"] is True
    assert empty["content"][0]["text"].startswith("Nothing has been remembered yet.\nhint: ")
    for when in ("Tuesday at ten", "Thursday at two"):
        client.call("remember", text=f"Our weekly meeting is on {when}.")
    text = client.call("recall", **asked)["content"][0]["text"]
    assert len(re.findall(r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, m_", text)) == 2


def test_a_server_that_cannot_serve_says_why_to_its_client(connect: Connect) -> None:
    for options in (("-k", "nope"), ("--tools", "nope"), ("--allow-path", "/nope")):
        client = connect(*options)
        client.ask("initialize", protocolVersion="2025-06-18")
        refused = client.ask("tools/call", name="recall", arguments={"question": "x"})
        assert "nope" in refused["error"]["message"]
        assert client.close() != 0


def test_a_wrong_argument_is_told_to_the_model(client: Client) -> None:
    for arguments in ({}, {"question": 3}, {"question": "x", "what": 1}):
        result = client.call("recall", **arguments)
        assert result["isError"] is True
        assert "structuredContent" not in result


def test_a_memory_is_remembered_revised_and_forgotten_after_a_trial(
    connect: Connect, tmp_path: Path
) -> None:
    client = connect(MEMCTL_HOME=str(tmp_path))
    id_ = client.call("remember", text="The gate code is 4711.")["structuredContent"]["id"]
    revised = client.call("revise", id=id_, text="The gate code is 9021.")["structuredContent"]
    tried = client.call("forget", id=revised["id"])["structuredContent"]
    assert tried["forgotten"] is False
    assert "dry_run" in tried["message"]
    opened = client.call("open", id=revised["id"])["structuredContent"]
    assert (opened["text"], opened["note"]) == ("The gate code is 9021.", "")
    assert "superseded_by" not in opened["metadata"]
    earlier = client.call("open", id=id_)["structuredContent"]
    assert earlier["text"] == "The gate code is 4711."
    assert earlier["metadata"]["superseded_by"] == revised["id"]
    assert earlier["note"] == f"superseded by {revised['id']}, which says: The gate code is 9021."
    done = client.call("forget", id=revised["id"], dry_run=False)["structuredContent"]
    assert done["forgotten"] is True
    assert client.call("open", id=revised["id"])["isError"] is True


def test_leftovers_of_a_forgotten_memory_are_reported(connect: Connect, tmp_path: Path) -> None:
    client = connect(MEMCTL_HOME=str(tmp_path))
    id_ = client.call("remember", text="The gate code is 4711.")["structuredContent"]["id"]
    with memctl.open("default", home=tmp_path) as base:
        base.snapshots.create("kept")
    done = client.call("forget", id=id_, dry_run=False)["structuredContent"]
    assert done["left"]
    assert "some of it is left" in done["message"]


def test_a_locked_knowledge_base_is_told(connect: Connect, home: Path) -> None:
    client = connect("-k", "notes", MEMCTL_STORE_WAIT_SECONDS="0.1")
    client.call("browse")
    with memctl.open("notes", home=home) as notes:
        folder = notes.layout.folder
    with WriteLock(folder, lambda: datetime.now(UTC)).hold(60):
        result = client.ask("tools/call", name="remember", arguments={"text": "It is late."})
    assert result["result"]["isError"] is True
    assert client.call("browse")["isError"] is False


def test_only_reading_leaves_out_what_changes_something(connect: Connect) -> None:
    client = connect("--read-only")
    names = {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert names == {*CORE} - {"remember", "revise", "forget", "feedback"}
    called = client.ask("tools/call", name="remember", arguments={"text": "The tap drips."})
    assert called["error"]["code"] == -32602


def test_a_server_of_one_user_shows_nothing_of_another(connect: Connect) -> None:
    client = connect("--user", "ann", "--tools", "core,search_knowledge_base")
    found = client.call("search_knowledge_base", query="soup fish lentils lease", limit=50)
    assert {row["namespace"] for row in found["structuredContent"]["results"]} == {
        "user:ann:documents"
    }
    assert "lentils" in json.dumps(client.call("open", id="Soup"))
    row = found["structuredContent"]["results"][0]
    assert "lentils" in json.dumps(client.call("open", id=row["source"]))
    refused = client.call("revise", id=row["memory_id"], text="The soup is of peas.")
    assert "the tool remember" in refused["content"][0]["text"]
    listed = client.ask("resources/list")["result"]["resources"]
    (soup,) = (each for each in listed if "/document/" in each["uri"])
    assert "lentils" in json.dumps(client.ask("resources/read", uri=soup["uri"]))
    for other in ("has fish", "lease starts"):
        assert other not in json.dumps(client.call("context", question="soup fish lease"))


def test_further_tools_are_offered_where_asked_for(home: Path) -> None:
    words = [sys.executable, "-m", "memctl", "--home", str(home), "mcp", "--tools"]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    done = subprocess.run([*words, "all"], input=json.dumps(asked), capture_output=True, text=True)
    tools = {tool["name"]: tool for tool in json.loads(done.stdout)["result"]["tools"]}
    assert {*CORE, "search_knowledge_base", "write_shared_memory"} <= tools.keys()
    repeatable = {name: tool["annotations"].get("idempotentHint") for name, tool in tools.items()}
    for name in ("remember", "revise", "forget", "add_document", "create_memory_pool"):
        assert repeatable[name] is True, name
    for name in ("give_feedback", "add_learning", "write_shared_memory", "memory"):
        assert repeatable[name] is False, name
    wrong = subprocess.run([*words, "nothing"], input="", capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")


# --- resources and prompts ------------------------------------------------------------------------


def test_documents_and_insights_are_resources(client: Client) -> None:
    listed = client.ask("resources/list")["result"]["resources"]
    (lease,) = (each for each in listed if each["name"] == "Harbour lease")
    (content,) = client.ask("resources/read", uri=lease["uri"])["result"]["contents"]
    assert "The lease starts on 1 June 2026." in content["text"]
    assert client.ask("resources/read", uri="memctl://kb/notes/insights")["result"]["contents"]
    for uri in ("file:///etc/passwd", "memctl://kb/notes/document/d_00000000", None):
        assert client.ask("resources/read", uri=uri)["error"]["code"] == -32602
    templates = client.ask("resources/templates/list")["result"]["resourceTemplates"]
    assert {each["uriTemplate"].partition(":")[0] for each in templates} == {"memctl", "skill"}


def test_a_person_can_pick_a_prompt_that_recalls(client: Client) -> None:
    prompts = client.ask("prompts/list")["result"]["prompts"]
    assert [each["name"] for each in prompts] == ["recall", "standing_context", "session_prompt"]
    arguments = {"question": "When does the lease start?"}
    found = client.ask("prompts/get", name="recall", arguments=arguments)["result"]
    assert "1 June 2026" in found["messages"][0]["content"]["text"]
    assert client.ask("prompts/get", name="recall")["error"]["code"] == -32602
