"""Tools for agents: what they are called, what they take, and that they do as the commands do."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memctl as package
from memctl import tools
from memctl.errors import UsageError
from memctl.identity import Identity
from memctl.operations.operation_context import OperationContext
from memctl.operations.registry import OPERATIONS

from .conftest import Result, Run

LONG = "The harbour office keeps the register of moorings in the green cabinet. "
RECENT = (datetime.now(UTC) - timedelta(days=2)).isoformat()
TURNS = [
    {"text": "I park the red bicycle behind the bakery.", "created_at": "2020-05-01T10:00:00Z"},
    {"text": "My bicycle has a flat tyre, so I walk.", "created_at": RECENT},
]
IN_SESSION = {
    "session_id": "s1", "speaker": "ann", "type": "turn", "namespace": "user:ann:conversations",
}  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    {
        "title": "Favourite dish",
        "text": f"The favourite dish is {dish}.",
        "namespace": f"user:{user}:documents",
    }
    for user, dish in (("ann", "lentil soup"), ("bob", "fish pie"))
] + [
    {
        "title": "House rules",
        "text": "The front door is locked at ten.",
        "namespace": "organization:shared",
    },
    {"title": "Moorings", "text": LONG * 300},
    {"title": "Aurora", "text": "Eva Brandt leads Aurora with Tom Reed. See [[Moorings]]."},
    *({**turn, **IN_SESSION, "turn": number} for number, turn in enumerate(TURNS)),
]
Call = Callable[..., Result]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ann, bob and everybody know, and a long document that is nobody's."""
    folder = tmp_path_factory.mktemp("tools") / "home"
    every = package.open_home(folder)
    every.create("notes")
    every.create("diary", private=True)
    with every.open("diary") as diary:
        diary.ingest(text="The diary says that the attic leaks.")
    with every.open("notes") as notes:
        lines = "\n".join(map(json.dumps, RECORDS))
        notes.ingest(jsonl=io.BytesIO(lines.encode()))
    return folder


@pytest.fixture
def call(memctl: Run, home: Path) -> Call:
    """Call a tool by the command line, with arguments by name."""

    def command(name: str, /, *options: str, stdin: str = "", **arguments: Any) -> Result:
        given = [json.dumps(arguments)] if name != "-" else []
        words = ["--home", str(home), "tool", "call", name, *given, "-k", "notes", *options]
        return memctl(*words, stdin=stdin)

    return command


@pytest.fixture
def caller(home: Path) -> Iterator[OperationContext]:
    """A warm context without a user."""
    with tools.context(home=home, kb="notes") as context:
        yield context


# --- definitions ----------------------------------------------------------------------------------


def test_the_search_tool_is_defined_with_its_names_choices_and_defaults(memctl: Run) -> None:
    listed = memctl("tool", "list", "--format", "openai").json
    (found,) = (each for each in listed if each["function"]["name"] == "search_knowledge_base")
    assert found["type"] == "function"
    schema = found["function"]["parameters"]
    assert schema["required"] == ["query"]
    assert list(schema["properties"]) == ["query", "search_type", "limit"]
    search_type, limit = schema["properties"]["search_type"], schema["properties"]["limit"]
    assert search_type["enum"] == ["conversations", "documents", "all"]
    assert (search_type["default"], limit["type"], limit["default"]) == ("all", "integer", 5)


@pytest.mark.parametrize(
    ("name", "required", "defaults"),
    [
        ("list_documents", [], {"limit": 20, "offset": 0}),
        ("get_document", ["document_id"], {"max_chars": 8000, "start": 0}),
        ("get_current_datetime", [], {}),
        ("search_past_conversations", ["query"], {"max_results": 5}),
        ("store_important_information", ["information"], {"memory_type": "important_fact"}),
        ("get_graph_neighbors", ["name"], {"hops": 1, "limit": 20}),
        ("answer", ["question"], {"top_k": 10}),
    ],
)
def test_tools_take_what_is_promised(
    memctl: Run, name: str, required: list[str], defaults: dict[str, Any]
) -> None:
    schema = memctl("tool", "show", name, "-o", "json").json["parameters"]
    assert schema["required"] == required
    shown = {
        key: each["default"] for key, each in schema["properties"].items() if "default" in each
    }
    assert defaults.items() <= shown.items()


KEYWORDS_OF_STRICT_MODE = {
    "type", "properties", "required", "additionalProperties", "description", "enum", "anyOf",
    "items", "const", "pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "minItems", "maxItems",
}  # fmt: skip
"""As https://platform.openai.com/docs/guides/structured-outputs lists them."""


def refused_by_strict_mode(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yield what strict mode refuses of a schema."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    yield from (f"{where}: {key}" for key in schema.keys() - KEYWORDS_OF_STRICT_MODE)
    if not types and "anyOf" not in schema:
        yield f"{where}: has no type"
    if "object" in types:
        if schema.get("additionalProperties") is not False:
            yield f"{where}: takes more than it names"
        if set(schema.get("required", ())) != schema["properties"].keys():
            yield f"{where}: has properties that are not required"
    if "array" in types and "items" not in schema:
        yield f"{where}: says nothing of its items"
    if "null" in types and None not in schema.get("enum", [None]):
        yield f"{where}: null is a type and not a choice"
    parts = [*schema.get("properties", {}).items(), *enumerate(schema.get("anyOf", ()))]
    for name, part in [*parts, *([("items", schema["items"])] if "items" in schema else [])]:
        yield from refused_by_strict_mode(part, f"{where}.{name}")


def test_strict_definitions_have_nothing_that_strict_mode_refuses(memctl: Run) -> None:
    listed = memctl("tool", "list", "--format", "openai", "--strict").json
    assert len(listed) == len(OPERATIONS)
    refused = [
        said
        for each in listed
        for said in refused_by_strict_mode(each["function"]["parameters"], each["function"]["name"])
    ]
    assert refused == []
    for each in listed:
        function = each["function"]
        assert function["strict"] is True
        assert function["parameters"]["type"] == "object"
        assert re.fullmatch(r"[\w-]{1,64}", function["name"], re.ASCII)
        assert len(function["description"]) <= 1024
        depth = json.dumps(function["parameters"]).count('"properties"')
        assert depth == 1, "no value is an object"


@pytest.mark.parametrize("options", [(), ("--strict",)])
def test_definitions_are_what_the_official_client_sends(
    memctl: Run, options: tuple[str, ...]
) -> None:
    from openai.types.chat import ChatCompletionFunctionToolParam
    from pydantic import TypeAdapter

    listed = memctl("tool", "list", "--format", "openai", *options).json
    known = TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(listed)
    assert known == listed, "nothing is left out as unknown"


@pytest.mark.parametrize(
    ("format_", "key"), [("anthropic", "input_schema"), ("mcp", "inputSchema")]
)
def test_definitions_come_in_other_formats(memctl: Run, format_: str, key: str) -> None:
    listed = memctl("tool", "list", "--format", format_).json
    assert [each["name"] for each in listed] == [each.name for each in OPERATIONS]
    assert all(each[key]["type"] == "object" and each["description"] for each in listed)


def test_definitions_for_gemini_have_only_keywords_it_knows(memctl: Run) -> None:
    (listed,) = memctl("tool", "list", "--format", "gemini").json
    for each in listed["functionDeclarations"]:
        assert each["parameters"].keys() == {"type", "properties", "required"}
        for shown in each["parameters"]["properties"].values():
            assert shown.keys() <= {"type", "enum", "items", "description", "minimum", "maximum"}


def test_definitions_for_mcp_say_what_changes_something(memctl: Run) -> None:
    listed = {each["name"]: each for each in memctl("tool", "list", "--format", "mcp").json}
    assert listed["answer"]["annotations"]["readOnlyHint"] is True
    assert listed["remember"]["annotations"]["readOnlyHint"] is False
    assert listed["forget_memory"]["annotations"]["destructiveHint"] is True


def test_every_tool_that_changes_something_can_be_tried() -> None:
    for each in OPERATIONS:
        fields = each.parameters.__struct_fields__
        assert ("dry_run" in fields) is (each.effect != "read"), each.name


# --- the same as the commands ---------------------------------------------------------------------


def ids(rows: list[dict[str, Any]], key: str = "memory_id") -> list[str]:
    return [row[key] for row in rows]


def test_search_finds_what_the_query_command_finds(call: Call, memctl: Run, home: Path) -> None:
    words = ["--home", str(home), "query", "favourite dish", "-k", "notes", "-n", "2"]
    hits = memctl(*words, "--no-answer", "-o", "json").json["hits"]
    found = call("search_knowledge_base", query="favourite dish", limit=2).json
    assert ids(found["results"]) == ids(hits)
    shown = [hit["text"].replace("[[", "").replace("]]", "") for hit in hits]
    assert [row["text"] for row in found["results"]] == shown
    assert found["results_count"] == len(hits)


def test_an_answer_is_that_of_the_query_command(call: Call, memctl: Run, home: Path) -> None:
    question = "Who leads Aurora?"
    shown = memctl("--home", str(home), "query", question, "-k", "notes", "-o", "json").json
    found = call("answer", question=question).json
    assert found["answer"] == shown["answer"]["text"]
    assert found["citations"] == shown["answer"]["citations"]
    assert (found["found"], found["confidence"]) == (
        shown["answer"]["found"],
        shown["answer"]["confidence"],
    )


def test_context_is_that_of_the_command(call: Call, memctl: Run, home: Path) -> None:
    words = ["--home", str(home), "context", "Who leads Aurora?", "--budget", "200"]
    shown = memctl(*words, "-k", "notes", "-o", "json").json
    found = call("context", question="Who leads Aurora?", budget=200).json
    assert {**found, "query_id": 0} == {**shown, "query_id": 0}
    assert "Eva Brandt" in found["text"]


def test_documents_are_those_of_the_command(call: Call, memctl: Run, home: Path) -> None:
    words = ["--home", str(home), "document", "list", "-k", "notes", "-o", "json"]
    rows = memctl(*words).json
    found = call("list_documents", limit=200).json
    assert sorted(ids(found["documents"], "id")) == sorted(ids(rows, "id"))
    first = found["documents"][-1]
    assert first["passages"] >= 1
    assert found["total"] == len(rows)


def test_a_list_of_documents_is_paged_and_searched_by_title(call: Call) -> None:
    pages = [call("list_documents", limit=3, offset=offset).json for offset in (0, 3)]
    assert pages[0]["next_offset"] == 3
    assert not {*ids(pages[0]["documents"], "id")} & {*ids(pages[1]["documents"], "id")}
    found = call("list_documents", search="RULES house").json
    assert ids(found["documents"], "title") == ["House rules"]


def test_a_document_is_read_by_id_or_title_piece_by_piece(
    call: Call, memctl: Run, home: Path
) -> None:
    (listed,) = call("list_documents", search="moorings").json["documents"]
    shown = memctl("--home", str(home), "document", "show", listed["id"], "--text", "-k", "notes")
    text, start = "", 0
    for _ in range(20):
        piece = call("get_document", document_id="moorings", start=start, max_chars=20_000).json
        text, start = text + piece["text"], piece["end"]
        if not piece["has_more"]:
            break
        assert f"start={start}" in piece["note"]
    assert text == shown.out.removesuffix("\n")
    by_default = call("get_document", document_id=listed["id"]).json
    assert len(by_default["text"]) == 8000
    assert by_default["length"] == len(text)


def test_neighbours_are_those_of_the_command(call: Call, memctl: Run, home: Path) -> None:
    words = ["--home", str(home), "graph", "neighbors", "Eva Brandt", "-k", "notes"]
    rows = memctl(*words, "-o", "json").json
    found = call("get_graph_neighbors", name="Eva Brandt").json
    assert ids(found["neighbors"], "name") == ids(rows, "name")
    assert "Tom Reed" in ids(rows, "name")


def test_a_search_of_the_graph_is_that_of_the_command(call: Call, memctl: Run, home: Path) -> None:
    words = ["--home", str(home), "graph", "search", "who is Tom Reed?", "-k", "notes"]
    rows = memctl(*words, "-o", "json").json
    found = call("search_knowledge_graph", query="who is Tom Reed?").json
    assert ids(found["names"], "id") == ids(rows, "id")
    assert found["names"][0]["name"] == "Tom Reed"
    links = call("search_knowledge_graph", query="Aurora", relation_type="references").json
    for name in links["names"]:
        assert {each["relation"] for each in name["relations"]} == {"links_to"}


def test_insights_are_those_of_the_command(call: Call, memctl: Run, home: Path) -> None:
    rows = memctl("--home", str(home), "insight", "list", "-k", "notes", "-o", "json").json
    assert ids(call("recent_insights").json["insights"], "id") == ids(rows, "id")


def test_what_is_remembered_with_a_trigger_is_kept_without_it(memctl: Run) -> None:
    text = "important: always use Python 3.10 for this project #beto_coding"
    stored = memctl("tool", "call", "remember", json.dumps({"text": text})).json
    assert stored["text"] == "always use Python 3.10 for this project"
    assert (stored["type"], stored["tags"]) == ("important_fact", ["coding"])
    text = "we decided to sell the boat #beto_boat"
    stored = memctl("tool", "call", "remember", json.dumps({"text": text})).json
    assert (stored["text"], stored["tags"]) == ("we decided to sell the boat", ["boat"])
    asked = json.dumps({"text": "Was our plan for Friday the lake?", "type": "note"})
    assert memctl("tool", "call", "remember", asked).json["text"] == json.loads(asked)["text"]


def test_what_is_remembered_is_what_the_command_remembers(memctl: Run) -> None:
    text = "We decided to paint the boat blue. #boat"
    tried = memctl("tool", "call", "remember", json.dumps({"text": text, "dry_run": True})).json
    assert tried["dry_run"] is True
    assert memctl("kb", "list", "-o", "json").json == [], "a dry run makes no knowledge base"
    stored = memctl("tool", "call", "remember", json.dumps({"text": text})).json
    added = memctl("memory", "add", text, "-o", "json").json
    assert stored["id"] == added["id"] == tried["id"]
    assert (stored["type"], stored["tags"]) == (added["type"], added["tags"])


def test_a_memory_is_corrected_and_forgotten(memctl: Run) -> None:
    id_ = memctl("memory", "add", "The code of the shed is 4711.", "-o", "json").json["id"]
    change = {"id": id_, "text": "The code of the shed is 9021."}
    tried = memctl("tool", "call", "update_memory", json.dumps(change | {"dry_run": True})).json
    assert memctl("memory", "show", id_, "-o", "json").json["memory"]["superseded_by"] is None
    changed = memctl("tool", "call", "update_memory", json.dumps(change)).json
    assert changed["text"] == tried["text"] == "The code of the shed is 9021."
    assert changed["version"] == 2

    asked = {"id": changed["id"]}
    preview = memctl("tool", "call", "forget_memory", json.dumps(asked)).json
    assert (preview["forgotten"], preview["memories"]) == (False, 2)
    assert "9021" in preview["text"]
    sure = json.dumps(asked | {"confirm": True, "dry_run": True})
    assert memctl("tool", "call", "forget_memory", sure).json["forgotten"] is False
    sure = json.dumps(asked | {"confirm": True})
    assert memctl("tool", "call", "forget_memory", sure).json["forgotten"] is True
    assert memctl("memory", "list", "-o", "json").json == []


def test_agents_share_values_as_the_pool_command_does(memctl: Run) -> None:
    memctl("kb", "create", "default")
    memctl("pool", "create", "ops", "--as", "trader")
    value = {"regime": "risk_off", "confidence": 0.82}
    asked = {"pool_id": "ops", "key": "agent_bulletin.market_regime", "value": value}
    words = ["tool", "call", "write_shared_memory", "--agent"]
    tried = memctl(*words, "trader", json.dumps(asked | {"dry_run": True})).json
    assert (tried["success"], tried["version"]) == (True, None)
    assert memctl(*words, "trader", json.dumps(asked)).json["version"] == 1
    asked.pop("value")
    read = ["tool", "call", "read_shared_memory", json.dumps(asked), "--agent"]
    found = memctl(*read, "trader").json
    shown = memctl("pool", "read", "ops", asked["key"], "--as", "trader", "-o", "json").json
    assert found["value"] == value == shown
    count = ["tool", "call", "memory_pool_stats", '{"pool_id": "ops"}', "--agent"]
    numbers = memctl("pool", "stats", "ops", "--as", "trader", "-o", "json").json
    assert memctl(*count, "trader").json == numbers
    assert (numbers["entries"], numbers["by_agent"][0]["agent"]) == (2, "trader")
    for refused in (
        memctl(*read, "other"),
        memctl(*words, "other", json.dumps(asked | {"value": 1})),
        memctl(*count, "other"),
    ):
        assert refused.code == 0
        assert "other" in refused.json["error"]
    right = {"pool_id": "ops", "agent": "other"}
    grant = ["tool", "call", "grant_memory_pool", "--agent"]
    assert "error" in memctl(*grant, "other", json.dumps(right)).json
    assert "error" in memctl(*grant, "other", json.dumps(right | {"dry_run": True})).json
    assert memctl(*grant, "trader", json.dumps(right | {"dry_run": True})).json["success"]
    assert "error" in memctl(*read, "other").json
    rights = memctl(*grant, "trader", json.dumps(right)).json["access_control"]
    assert rights["read"] == ["other"]
    assert memctl(*read, "other").json["value"] == value
    memctl(*grant, "trader", json.dumps(right | {"level": "none"}))
    assert "error" in memctl(*read, "other").json


def test_a_reading_of_a_tier_is_not_counted_where_nothing_may_be_changed(memctl: Run) -> None:
    asked = {"key": "boiler", "session_id": "s1"}
    memctl("tool", "call", "write_memory_tier", json.dumps({**asked, "value": "broken"}))
    words = ["tool", "call", "read_memory_tier", json.dumps(asked)]
    read = [memctl(*words, "--read-only").json["access_count"] for _ in range(2)]
    assert read == [0, 0]
    assert memctl(*words).json["access_count"] == 1


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tier": "short_term", "ttl": 0.5}, "0.5 seconds"),
        ({"tier": "shared", "ttl": 5}, "no time to live"),
        ({"tier": "working", "memory_type": "reflection"}, "only a short-term entry"),
        ({"key": "a\tb"}, "cannot be shown"),
        ({"value": "", "tier": "long_term"}, "a memory needs a text"),
        ({"key": "a..b", "tier": "shared"}, "an empty part"),
        ({"session_id": " "}, "cannot be the name of a conversation"),
        ({"session_id": "a\nb"}, "cannot be the name of a conversation"),
    ],
)
def test_what_a_tier_cannot_keep_is_refused_on_a_dry_run_too(
    memctl: Run, given: dict[str, object], says: str, dry_run: bool
) -> None:
    memctl("kb", "create", "default")
    asked = {"key": "k", "value": 1, "dry_run": dry_run, **given}
    done = memctl("tool", "call", "write_memory_tier", json.dumps(asked))
    assert says in done.out + done.err


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_memory_tier", {"key": "k", "value": "v", "tier": "long_term"}),
        ("write_memory_tier", {"key": "k", "value": "v", "session_id": "s1"}),
        ("remember", {"text": "The tide turns at noon."}),
    ],
)
def test_a_write_of_an_agent_that_may_only_read_is_refused_on_a_dry_run_too(
    memctl: Run, name: str, arguments: dict[str, object], dry_run: bool
) -> None:
    memctl("kb", "create", "default")
    memctl("kb", "grant", "default", "read", "--agent", "guest")
    asked = json.dumps({**arguments, "dry_run": dry_run})
    refused = memctl("tool", "call", name, asked, "--agent", "guest")
    assert "may not write to" in refused.out + refused.err


@pytest.mark.parametrize(
    ("scope", "visibility", "lifetime"),
    [
        ("session", "account", "session"),
        ("team", "team", "persistent"),
        (["task", "execution"], "task", "execution"),
        (None, "account", "persistent"),
    ],
)
def test_a_pool_takes_one_word_for_its_scope_or_a_list(
    memctl: Run, scope: object, visibility: str, lifetime: str
) -> None:
    memctl("kb", "create", "default")
    asked = {"pool_id": "p2", "name": "P two", "pool_type": "team_shared", "scope": scope}
    made = memctl("tool", "call", "create_memory_pool", json.dumps(asked), "--agent", "agent1")
    assert made.json["success"] is True
    pool = memctl("pool", "show", "p2", "--as", "agent1", "-o", "json").json
    assert (pool["visibility"], pool["lifetime"]) == (visibility, lifetime)
    refused = memctl("tool", "call", "create_memory_pool", '{"pool_id": "p3", "scope": 3}')
    assert (refused.code, "scope must be a name or a list of names" in refused.err) == (2, True)


def test_conversations_are_those_of_the_command(memctl: Run) -> None:
    memctl("kb", "create", "default")
    for user in ("ann", "bob"):
        memctl("session", "start", "--id", f"of-{user}", "--user", user)
        memctl("session", "say", f"of-{user}", "Good morning.", "--by", "user", "--user", user)
    rows = memctl("session", "list", "--user", "bob", "-o", "json").json
    found = memctl("tool", "call", "list_sessions", "--user", "bob").json["sessions"]
    assert ids(found, "session_id") == ids(rows, "session_id") == ["of-bob"]
    assert found[0]["message_count"] == 1
    assert len(memctl("tool", "call", "list_sessions").json["sessions"]) == 2


# --- users ----------------------------------------------------------------------------------------


def test_a_user_finds_their_own_and_what_is_shared_and_never_what_is_anothers(call: Call) -> None:
    asked = "the favourite dish, the bicycle, the front door"
    found = call("search_knowledge_base", "--user", "ann", query=asked, limit=50).json
    assert {row["namespace"] for row in found["results"]} == {
        "user:ann:documents",
        "user:ann:conversations",
        "organization:shared",
    }
    everything = [
        call("search_knowledge_base", "--user", "ann", query="fish pie", limit=50),
        call("answer", "--user", "ann", question="What is the favourite dish?"),
        call("context", "--user", "ann", question="favourite dish fish pie"),
        call("list_documents", "--user", "ann"),
        call("get_document", "--user", "ann", document_id="Favourite dish"),
        call("search_knowledge_graph", "--user", "ann", query="fish pie Eva Brandt"),
    ]
    for each in everything:
        shown = json.loads(each.out)
        shown.pop("query", None), shown.pop("question", None), shown.pop("text", None)
        assert "fish pie" not in json.dumps(shown)
        assert "Eva Brandt" not in json.dumps(shown)
    assert "lentil" in everything[1].out


def test_a_user_cannot_reach_a_row_of_another_by_its_id(call: Call) -> None:
    listed = call("list_documents", "--user", "bob").json["documents"]
    bobs = next(row["id"] for row in listed if row["namespace"] == "user:bob:documents")
    assert "error" in call("get_document", "--user", "ann", document_id=bobs).json
    memory = call("remember", "--user", "bob", text="Bob hides the key in the shoe.").json["id"]
    for name, more in (("update_memory", {"text": "x y z"}), ("forget_memory", {"confirm": True})):
        refused = call(name, "--user", "ann", id=memory, **more)
        assert refused.code == 0
        assert "there is no memory" in refused.json["error"]
        assert refused.json["hint"] == "what a search finds has its whole id"
    assert call("forget_memory", "--user", "bob", id=memory).json["memories"] == 1


def test_a_user_may_not_name_the_namespace_of_another(call: Call) -> None:
    refused = call("list_documents", "--user", "ann", namespace="user:bob:documents")
    assert refused.code == 2
    assert "user:bob:documents" in refused.err


def test_search_types_are_namespaces_of_the_user(call: Call) -> None:
    def namespaces(search_type: str) -> set[str]:
        options = {"query": "bicycle, dish, door", "search_type": search_type, "limit": 50}
        found = call("search_knowledge_base", "--user", "ann", **options).json
        return {row["namespace"] for row in found["results"]}

    assert namespaces("conversations") == {"user:ann:conversations"}
    assert namespaces("documents") == {"user:ann:documents", "organization:shared"}


def test_without_a_user_search_types_tell_conversations_from_documents(call: Call) -> None:
    def sessions(search_type: str) -> set[str | None]:
        options = {"query": "bicycle, dish, door", "search_type": search_type, "limit": 50}
        found = call("search_knowledge_base", **options).json
        return {row["session_id"] for row in found["results"]}

    assert sessions("conversations") == {"s1"}
    assert sessions("documents") == {None}


def test_past_conversations_are_searched_in_a_window_of_time(call: Call) -> None:
    found = call("search_past_conversations", "--user", "ann", query="bicycle").json
    assert found["success"] is True
    assert found["results_count"] == len(found["results"]) == 2
    assert found["results"][0].keys() == {"text", "timestamp", "memory_type", "similarity"}
    late = call("search_past_conversations", "--user", "ann", query="bicycle", time_window_days=7)
    assert [row["text"] for row in late.json["results"]] == [TURNS[1]["text"]]


def test_important_information_is_stored_once_for_its_user(call: Call) -> None:
    asked = {"information": "Ann sings in the choir.", "metadata": {"from": "chat"}}
    tried = call("store_important_information", "--user", "ann", **asked, dry_run=True).json
    assert "Would" in tried["message"]
    first = call("store_important_information", "--user", "ann", **asked).json
    again = call(
        "store_important_information",
        "--user",
        "ann",
        **asked,
        memory_type="important_information",
    ).json
    assert first["success"] is True
    assert first["stored_text"] == "Ann sings in the choir."
    assert "important_fact" in first["message"]
    assert first["id"] == again["id"] == tried["id"]
    assert again["memory_type"] == "important_fact"
    found = call("search_past_conversations", "--user", "ann", query="choir").json["results"]
    assert [row["memory_type"] for row in found if "choir" in row["text"]] == ["important_fact"]


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["search_past_conversations", "store_important_information"])
def test_a_missing_user_is_told_as_the_answer(call: Call, name: str) -> None:
    key = "query" if name.startswith("search") else "information"
    shown = call(name, **{key: "tea"})
    assert shown.code == 0
    assert "user id" in shown.json["error"]


def test_no_knowledge_base_is_told_as_the_answer(memctl: Run) -> None:
    shown = memctl("tool", "call", "search_knowledge_base", '{"query": "tea"}', "--as", "text")
    assert (shown.code, shown.out) == (0, "This agent has no knowledge base available.\n")


@pytest.mark.parametrize(
    ("resources", "name", "shown"),
    [
        (["memory"], "search_knowledge_base", "no knowledge base available"),
        (["knowledge_base"], "search_past_conversations", "memory service"),
        (["knowledge_base"], "store_important_information", "memory service"),
    ],
)
def test_an_agent_without_a_resource_is_told_so(
    home: Path, resources: list[str], name: str, shown: str
) -> None:
    context = OperationContext(package.open_home(home), resources=resources)
    key = "information" if name.startswith("store") else "query"
    assert shown in tools.call(name, {key: "tea"}, context)["error"]


def test_a_tool_that_is_not_allowed_is_refused_and_not_listed(home: Path) -> None:
    allowed = ["get_current_datetime", "list_documents"]
    context = OperationContext(package.open_home(home), allowed_tools=allowed)
    names = [each["name"] for each in tools.definitions("anthropic", context)]
    assert sorted(names) == allowed
    with pytest.raises(UsageError, match="not allowed"):
        tools.call("answer", {"question": "what?"}, context)


def test_the_file_of_an_agent_says_what_it_may_use(memctl: Run, tmp_path: Path) -> None:
    memctl("memory", "add", "The tide turns at noon.")
    settings = {
        "agent_id": "clerk",
        "resources": ["memory"],
        "allowed_regular_tools": ["get_current_datetime", "search_knowledge_base"],
    }
    (tmp_path / "clerk.json").write_text(json.dumps(settings))
    assert memctl("agent", "add", "clerk", "--file", "clerk.json").code == 0
    listed = memctl("tool", "list", "--agent", "clerk", "-o", "json").json
    assert sorted(each["name"] for each in listed) == sorted(settings["allowed_regular_tools"])
    words = ["tool", "call", "--agent", "clerk"]
    shown = memctl(*words, "search_knowledge_base", '{"query": "tide"}')
    assert (shown.code, shown.json["error"]) == (0, "This agent has no knowledge base available.")
    refused = memctl(*words, "remember", '{"text": "The tide is out."}')
    assert refused.code == 2
    assert "not allowed to clerk" in refused.err


def test_an_agent_without_a_knowledge_base_reads_no_document_by_way_of_insights(
    memctl: Run, tmp_path: Path
) -> None:
    for number, salary in enumerate((4000, 5000)):
        text = f"The salary of Ann Miller is {salary} euros. She works at Nordwind."
        (tmp_path / f"{number}.md").write_text(text)
    memctl("ingest", "0.md", "1.md")
    memctl("memory", "add", "Ann Miller gets her salary on Fridays.")
    (tmp_path / "a.json").write_text('{"agent_id": "nodocs", "resources": ["memory"]}')
    memctl("agent", "add", "nodocs", "--file", "a.json")
    words = ["tool", "call", "consolidate_memory", "--agent", "nodocs"]
    assert "euros" not in memctl(*words).out
    assert memctl("insight", "list").rows
    for name, arguments in (
        ("recent_insights", {}),
        ("search_memory", {"query": "salary"}),
        ("search_memory_tiers", {"query": "salary"}),
        ("context", {"question": "What is the salary of Ann Miller?"}),
    ):
        words = ["tool", "call", name, json.dumps(arguments)]
        assert "4000 euros" in memctl(*words).out
        limited = memctl(*words, "--agent", "nodocs")
        assert limited.code == 0
        assert "euros" not in limited.out
        assert ("salary on Fridays" in limited.out) == bool(arguments)


def test_a_failing_search_is_an_object_that_says_so(call: Call, home: Path) -> None:
    every = package.open_home(home)
    with OperationContext(every, ["nowhere"], Identity(user="ann")) as context:
        shown = tools.call("search_past_conversations", {"query": "tea"}, context)
        stored = tools.call("store_important_information", {"information": "tea"}, context)
    assert "error" in shown
    assert stored["error"].startswith("Error storing information: ")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("answer", {}, "needs question"),
        ("answer", {"question": " "}, "is empty"),
        ("answer", {"question": "x", "quest": 1}, "no parameter 'quest'"),
        ("answer", {"question": 7}, "must be a text, not 7"),
        ("answer", {"question": "what?", "top_k": "five"}, "must be a whole number"),
        ("answer", {"question": "what?", "top_k": True}, "must be a whole number"),
        ("answer", {"question": "what?", "top_k": 0}, "from 1 to"),
        ("answer", {"question": "what?", "mode": "best"}, "must be hybrid"),
        ("answer", {"question": "what?", "tags": "a"}, "must be a list of texts"),
        ("answer", {"question": "what?", "since": "someday"}, "is no date"),
        ("remember", {"text": "x", "importance": 2}, "from 0 to 1"),
        ("answers", {"question": "what?"}, "there is no tool"),
    ],
)
def test_wrong_arguments_are_named_and_give_code_2(
    call: Call, name: str, arguments: dict[str, Any], said: str
) -> None:
    refused = call(name, **arguments)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_an_agent_given_with_as_is_said_to_stand_after_agent(memctl: Run) -> None:
    refused = memctl("tool", "call", "memory_stats", "{}", "--as", "agent1")
    assert refused.code == 2
    assert "'agent1' is not one of 'json', 'text'" in refused.err
    assert "hint: --agent names who acts" in refused.err


def test_only_a_name_that_is_near_is_suggested_for_an_unknown_tool(call: Call) -> None:
    assert "did you mean 'answer'?" in call("answers", question="what?").err
    assert "memctl tool list lists them" in call("nosuch").err


def test_arguments_that_are_no_json_give_code_2(memctl: Run) -> None:
    for given in ("{", "[1]", '"x"'):
        assert memctl("tool", "call", "answer", given).code == 2


def test_a_knowledge_base_that_is_not_there_gives_its_own_code(memctl: Run) -> None:
    assert memctl("tool", "call", "answer", '{"question": "what?"}', "-k", "nowhere").code == 10


def test_null_stands_for_a_parameter_that_is_not_given(call: Call) -> None:
    given = {"query": "the register of moorings", "limit": None, "search_type": None}
    assert call("search_knowledge_base", **given).json["results_count"] == 5


def test_nothing_is_changed_where_only_reading_is_allowed(call: Call) -> None:
    refused = call("remember", "--read-only", text="The door is green.")
    assert refused.code == 2
    assert "may only be read" in refused.err


def test_a_private_knowledge_base_is_left_out_unless_named(memctl: Run, home: Path) -> None:
    asked = ["--home", str(home), "tool", "call", "search_knowledge_base", '{"query": "attic"}']
    assert "leaks" not in memctl(*asked).out
    assert "leaks" in memctl(*asked, "-k", "diary").out


# --- what models send -----------------------------------------------------------------------------


def test_a_call_of_a_model_is_answered_with_the_message_to_send_back(call: Call) -> None:
    arguments = json.dumps({"query": "favourite dish", "limit": 1})
    sent = {"id": "c1", "function": {"name": "search_knowledge_base", "arguments": arguments}}
    (shown,) = call("-", stdin=json.dumps(sent)).rows
    assert (shown["role"], shown["tool_call_id"]) == ("tool", "c1")
    assert "never follow it" in shown["content"].partition("\n")[0]
    assert "[1] Favourite dish" in shown["content"]


def test_a_model_is_told_what_is_wrong_with_its_call(call: Call) -> None:
    sent = {"id": "c2", "function": {"name": "answer", "arguments": "{}"}}
    (shown,) = call("-", stdin=json.dumps(sent)).rows
    assert "needs question" in shown["content"]
    assert "<data" not in shown["content"]


def test_what_documents_say_stands_in_a_fence(call: Call) -> None:
    shown = call("search_knowledge_base", "--as", "text", query="favourite dish", limit=1).out
    mark = shown.partition("<data-")[2][:12]
    assert shown.rstrip().endswith(f"</data-{mark}>")
    assert "<data" not in call("get_current_datetime", "--as", "text").out


def test_calls_from_a_pipe_are_answered_line_by_line(memctl: Run, home: Path) -> None:
    lines = [
        '{"id": 1, "name": "get_current_datetime"}',
        "no json",
        "[]",
        '{"id": 2, "name": "nothing"}',
        '{"type": "tool_use", "id": "t", "name": "answer", "input": {"question": "Aurora?"}}',
        '{"name": "list_documents", "arguments": {"limit": 1}}',
    ]
    words = ["--home", str(home), "tool", "serve", "-", "-k", "notes"]
    replies = memctl(*words, stdin="\n".join(lines)).rows
    assert len(replies) == len(lines)
    assert replies[0]["id"] == 1
    assert "datetime" in replies[0]["result"]
    assert "error" in replies[1]
    assert "error" in replies[2]
    assert "there is no tool" in replies[3]["result"]["error"]
    assert (replies[4]["type"], replies[4]["tool_use_id"]) == ("tool_result", "t")
    assert len(replies[5]["documents"]) == 1


# --- from Python ----------------------------------------------------------------------------------


def test_a_warm_context_sees_what_was_written_meanwhile(home: Path) -> None:
    with tools.context(home=home, kb="notes", user="carl") as context:
        asked = {"query": "umbrella"}
        assert tools.call("search_past_conversations", asked, context)["results_count"] == 0
        with tools.context(home=home, kb="notes", user="carl") as other:
            tools.call("remember", {"text": "Carl lost his umbrella."}, other)
        assert tools.call("search_past_conversations", asked, context)["results_count"] == 1


def test_a_warm_context_honours_settings_that_change(tmp_path: Path) -> None:
    every = package.open_home(tmp_path)
    every.create("notes")
    with every.open("notes") as notes:
        notes.ingest(text="The safe is behind the picture.")
    with tools.context(home=tmp_path) as context:
        asked = {"query": "the safe"}
        assert tools.call("search_knowledge_base", asked, context)["results_count"] == 1
        every.change("notes", private=True)
        assert "error" in tools.call("search_knowledge_base", asked, context)


def test_the_time_has_a_zone(caller: OperationContext) -> None:
    shown = tools.call("get_current_datetime", {}, caller)["datetime"]
    assert datetime.fromisoformat(shown).tzinfo is not None


def test_tools_are_defined_from_python(caller: OperationContext) -> None:
    assert len(tools.definitions(format="openai")) == len(OPERATIONS)
    sent = {"id": "c", "function": {"name": "get_current_datetime", "arguments": ""}}
    assert tools.reply(sent, caller)["tool_call_id"] == "c"


def test_a_tool_takes_the_user_from_the_conversation(memctl: Run) -> None:
    memctl("session", "start", "--id", "su", "--user", "ann")
    memctl("session", "say", "su", "The ferry leaves from pier 7.", "--by", "user")
    memctl("memory", "add", "The ferry of bob is green.", "--user", "bob")
    words = ["tool", "call", "--session", "su"]
    found = memctl(*words, "search_past_conversations", '{"query": "ferry"}').json
    assert [row["text"] for row in found["results"]] == ["The ferry leaves from pier 7."]
    memctl(*words, "store_important_information", '{"information": "The ferry is full."}')
    (row,) = memctl("memory", "list", "--where", "text like '%full%'").rows
    assert row["namespace"] == "user:ann:conversations"
    for more in ([], ["--session", "nowhere"]):
        shown = memctl("tool", "call", *more, "search_past_conversations", '{"query": "ferry"}')
        assert "No user id was found" in shown.json["error"]


def test_an_agent_without_a_knowledge_base_gets_context_of_what_was_said_alone(
    memctl: Run, tmp_path: Path
) -> None:
    memctl("ingest", "--text", "The tide table says that the tide turns at noon.")
    memctl("memory", "add", "The tide turns at one from the pier.")
    memctl("session", "start", "--id", "s")
    memctl("session", "say", "s", "The tide turns late today.", "--by", "user")
    (tmp_path / "clerk.json").write_text('{"agent_id": "clerk", "resources": ["memory"]}')
    memctl("agent", "add", "clerk", "--file", "clerk.json")
    words = ["tool", "call", "context", '{"question": "when does the tide turn?"}']
    assert "table" in memctl(*words).json["text"]
    limited = memctl(*words, "--agent", "clerk").json["text"]
    assert "table" not in limited
    assert "from the pier" in limited
    assert "late today" in limited


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_search_keeps_what_is_nearest_in_another_language(memctl: Run, mode: str) -> None:
    for text in (
        "Wir feiern am Samstag den Geburtstag der Oma.",
        "Tom plays the cello.",
        "The door code is 4711.",
        "The lease ends in June.",
        "The garden gate is broken.",
    ):
        memctl("memory", "add", text)
    asked = json.dumps({"query": "birthday party", "mode": mode})
    found = memctl("tool", "call", "search_memory", asked).json["results"]
    assert [row["text"] for row in found] == ["Wir feiern am Samstag den Geburtstag der Oma."]
    asked = json.dumps({"query": "quantum chromodynamics", "mode": mode})
    assert memctl("tool", "call", "search_memory", asked).json["results_count"] == 0


def test_a_search_that_finds_nothing_related_says_so(memctl: Run) -> None:
    for text in ("I like cheese.", "The ferry leaves from pier 7.", "The lease ends in May."):
        memctl("memory", "add", text, "--user", "ann")
    words = ["tool", "call", "--user", "ann"]
    for query in ("zzqqy", "quantum chromodynamics"):
        asked = json.dumps({"query": query})
        shown = memctl(*words, "search_knowledge_base", asked, "--as", "text").out
        assert f"Nothing was found for {query!r}." in shown
        for tool in ("search_past_conversations", "search_memory"):
            assert memctl(*words, tool, asked).json["results_count"] == 0
    for query in ("cheese", "from where does the boat go?", "what food do I enjoy?"):
        asked = json.dumps({"query": query})
        assert memctl(*words, "search_past_conversations", asked).json["results_count"] > 0, query
