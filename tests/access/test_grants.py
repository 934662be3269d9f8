"""Knowledge bases that are granted to agents and teams, and the files of agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from access.conftest import done
from cli.conftest import Run
from fake_endpoint import FakeEndpoint

SEED: dict[str, Any] = {
    "agent_id": "knowledge_enabled_agent",
    "provider": "azure_openai_cc",
    "model": "gpt-4o-mini",
    "resources": ["memory", "knowledge_base"],
    "allowed_regular_tools": ["get_current_datetime", "search_knowledge_base"],
    "memory": {"compression": {"enabled": True, "threshold_tokens": 8000}},
    "knowledge_base": {
        "vector_provider": "lancedb",
        "chunk_size": 800,
        "auto_context": {"enabled": True, "search_triggers": ["previous", "remind"]},
        "namespaces": {"shared": "organization:shared"},
    },
}


def test_a_base_is_read_and_written_by_those_agents_alone_to_whom_it_is_granted(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(memctl("memory", "add", "The door code is 4711."))
    done(memctl("query", "door code", "--agent", "anybody"))
    done(memctl("kb", "grant", "default", "--agent", "reader", "read"))
    done(memctl("team", "add", "writers", "drafter"))
    done(memctl("kb", "grant", "default", "--team", "writers", "write"))
    shown = done(memctl("kb", "show", "default")).json
    assert [(each["to"], each["level"]) for each in shown["grants"]] == [
        ("reader", "read"),
        ("writers", "write"),
    ]

    def code(*words: str, agent: str) -> int:
        """Run a command for an agent that the environment names."""
        monkeypatch.setenv("MEMCTL_AGENT", agent)
        result = memctl(*words)
        monkeypatch.delenv("MEMCTL_AGENT")
        assert result.code == 0 or f"agent {agent!r} may not" in result.err, result.err
        assert result.code == 0 or "hint: grant it: memctl kb grant default" in result.err
        assert "4711" not in result.out or result.code == 0
        return result.code

    reads = (("query", "door code"), ("sql", "from memories"), ("memory", "list"), ("stats",))
    for words in reads:
        named = (*words, "-k", "default")
        assert [code(*named, agent=agent) for agent in ("reader", "drafter", "other")] == [0, 0, 1]
    for words in (
        ("memory", "add", "The door is green."),
        ("ingest", "--text", "The door is red."),
        ("consolidate", "-k", "default"),
        ("kb", "set", "default", "--half-life", "30"),
        ("snapshot", "create", "s"),
        ("kb", "grant", "default", "--agent", "other", "write"),
    ):
        assert [code(*words, agent=agent) for agent in ("reader", "other")] == [1, 1], words
    assert code("memory", "add", "The door is green.", agent="drafter") == 0
    assert memctl("kb", "delete", "default", "--yes").code == 0, "a person may"


def test_without_grants_everybody_may_again_and_what_was_refused_is_noted(memctl: Run) -> None:
    done(memctl("memory", "add", "The door code is 4711."))
    done(memctl("kb", "grant", "default", "--agent", "reader", "read"))
    assert memctl("query", "door code", "--agent", "other", "-k", "default").code == 1
    noted = memctl("sql", "select message from events where kind = 'access'").rows
    assert noted == [{"message": "agent other was refused to read"}]
    assert json.loads(memctl("status", "-o", "json").out)
    unnamed = memctl("query", "door code", "--agent", "other")
    assert unnamed.code == 1
    assert "hint: grant it one: memctl kb grant NAME --agent other read" in unnamed.err
    assert memctl("kb", "revoke", "default", "--agent", "writer").code == 1
    revoked = done(memctl("kb", "revoke", "default", "--agent", "reader"))
    assert "every agent may use it" in revoked.err
    done(memctl("query", "door code", "--agent", "other"))
    assert memctl("kb", "grant", "default", "read").code == 2


def test_an_agent_is_made_from_the_file_of_another_program_or_from_defaults(
    memctl: Run, tmp_path: Path
) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps(SEED))
    name = "knowledge_enabled_agent"
    done(memctl("agent", "add", name, "--file", str(seed)))
    done(memctl("agent", "add", "small"))
    done(memctl("team", "add", "writers", "small"))
    shown = done(memctl("agent", "show", name)).json
    assert shown["memory"]["compression"]["recent_messages_to_keep"] == 10
    assert shown["knowledge_base"]["auto_context"]["search_triggers"] == ["previous", "remind"]
    assert done(memctl("agent", "show", "small")).json["teams"] == ["writers"]
    assert [row["agent_id"] for row in memctl("agent", "list").rows] == [name, "small"]
    assert [row["agents"] for row in memctl("team", "list").rows] == [["small"]]
    assert memctl("agent", "add", "small").code == 2


def test_agents_leave_a_team_and_what_it_is_granted(memctl: Run) -> None:
    done(memctl("memory", "add", "The door code is 4711."))
    done(memctl("team", "add", "writers", "drafter", "editor", "helper"))
    done(memctl("kb", "grant", "default", "--team", "writers", "write"))
    read = ("query", "door code", "-k", "default", "--agent")
    done(memctl(*read, "drafter"))

    unknown = memctl("team", "remove", "writers", "drafter", "stranger")
    assert "error: 'stranger' is not in team 'writers'" in unknown.err
    assert "hint: in it are drafter, editor, helper" in unknown.err
    done(memctl("team", "remove", "writers", "drafter"))
    assert "agent 'drafter' may not read" in memctl(*read, "drafter").err
    done(memctl(*read, "editor"))

    removed = done(memctl("team", "remove", "writers"))
    assert "default is still granted to it" in removed.err
    assert memctl("team", "list").rows == []
    assert "agent 'editor' may not read" in memctl(*read, "editor").err
    assert "there is no team 'writers'" in memctl("team", "remove", "writers").err


def test_an_agent_is_removed_with_its_file_and_keeps_what_it_stored(
    memctl: Run, tmp_path: Path
) -> None:
    file = tmp_path / "small.json"
    file.write_text(json.dumps({"agent_id": "small", "resources": ["memory"]}))
    done(memctl("agent", "add", "small", "--file", str(file)))
    done(memctl("memory", "add", "The door code is 4711.", "--agent", "small"))
    assert "would delete" in done(memctl("agent", "remove", "small", "--dry-run")).err
    assert memctl("agent", "show", "small").json["resources"] == ["memory"]
    assert memctl("agent", "remove", "small").code == 2  # nobody is there to confirm it
    done(memctl("agent", "remove", "small", "--yes"))
    assert memctl("agent", "list").rows == []
    assert "there is no agent 'small'" in memctl("agent", "remove", "small", "--yes").err
    assert [row["agent_id"] for row in memctl("memory", "list").rows] == ["small"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "x"}, "unknown setting 'modle'"),
        ({"compression": {}}, "unknown setting 'compression'\nhint: it is 'memory.compression'"),
        ({"auto_context": {}}, "hint: it is 'knowledge_base.auto_context'"),
        ({"memory": {"compression": {"treshold_tokens": 1}}}, "memory.compression.treshold_tokens"),
        ({"knowledge_base": {"vector_provider": "pgvector"}}, "vector_provider cannot be 'pgvec"),
        ({"resources": ["disk"]}, "there is no resource 'disk'"),
        ({"agent_id": "other"}, "its agent_id is 'other'"),
        (
            {"allowed_regular_tools": ["get_document", "list_documnts"]},
            "a.json: allowed_regular_tools: there is no tool 'list_documnts'\nhint: did you mean",
        ),
        (
            {"knowledge_base": {"namespaces": {"conversations": "bot:{user_id}:talk"}}},
            "the namespace 'bot:{user_id}:talk' does not begin like those of a user\n"
            "hint: begin it with 'user:{user_id}:'",
        ),
        ({"memory": 5}, "a.json: memory must be a table"),
    ],
)
def test_a_mistake_in_an_agents_file_is_named_and_nothing_is_written(
    memctl: Run, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"agent_id": "a", **change}))
    refused = memctl("agent", "add", "a", "--file", str(file))
    assert refused.code == 2
    assert message in refused.err
    assert "/.a" not in refused.err
    assert memctl("agent", "list").rows == []
    assert not [*(tmp_path / "home/agents").glob("*")]


def test_a_base_and_an_agent_can_have_models_of_their_own(
    memctl: Run, tmp_path: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(memctl("memory", "add", "The door code is 4711."))
    endpoint.on("AnswerReply", {"not_in_memory": True, "sentences": []})
    for name, value in endpoint.settings(answer="for-all").items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "a.toml"
    file.write_text('agent_id = "a"\n[models]\nanswer = "of-agent"\n')
    done(memctl("agent", "add", "a", "--file", str(file)))

    def method(*words: str) -> str:
        """Ask, and return what answered."""
        return str(done(memctl("query", "door code?", *words)).json["answer"]["method"])

    assert method().startswith("model/for-all/")
    done(memctl("kb", "set", "default", "--model", "answer=of-base"))
    assert memctl("kb", "show", "default").json["models"] == {"answer": "of-base"}
    assert method().startswith("model/of-base/")
    assert method("--agent", "a").startswith("model/of-agent/")
    assert method("--agent", "b").startswith("model/of-base/")
    done(memctl("kb", "set", "default", "--model", "answer="))
    assert method().startswith("extractive/")
    done(memctl("kb", "set", "default", "--model", "answer=default"))
    assert method().startswith("model/for-all/")
    assert memctl("kb", "set", "default", "--model", "answer").code == 2
    unknown = memctl("kb", "set", "default", "--model", "embed=m")
    assert unknown.code == 2
    assert "unknown setting 'models.embed'" in unknown.err


def _add_agent(memctl: Run, name: str, **said: Any) -> None:
    """Add an agent whose file says some things."""
    file = Path("agent.json")
    file.write_text(json.dumps({"agent_id": name, **said}))
    done(memctl("agent", "add", name, "--file", str(file)))


def test_the_file_of_an_agent_says_when_its_conversations_are_summarised(memctl: Run) -> None:
    says = {"threshold_tokens": 100, "recent_messages_to_keep": 3}
    _add_agent(memctl, "brief", memory={"compression": says})
    lines = "".join(
        json.dumps({"sender": "user", "content": f"Message {n} is about the greenhouse roof."})
        + "\n"
        for n in range(12)
    )
    done(memctl("session", "start", "--id", "long"))
    done(memctl("session", "record", "long", "-", stdin=lines))
    assert done(memctl("session", "show", "long")).json["status"] == "open"
    done(memctl("session", "start", "--id", "own", "--agent", "brief"))
    done(memctl("session", "record", "own", "-", stdin=lines))  # with that agent, who isn't named
    assert done(memctl("session", "show", "own")).json["status"] == "compressed"
    made = done(memctl("session", "compress", "long", "--agent", "brief")).json
    assert (made["messages"], made["kept"]) == (9, 3)


def test_the_file_of_an_agent_says_where_its_conversations_go_and_they_are_still_the_users(
    memctl: Run,
) -> None:
    named = {"conversations": "user:{user_id}:conv"}
    _add_agent(memctl, "ag", knowledge_base={"namespaces": named})
    as_ann = ("--user", "ann", "--agent", "ag")
    done(memctl("session", "start", "--id", "s", *as_ann))
    assert done(memctl("session", "show", "s")).json["namespace"] == "user:ann:conv"
    done(memctl("memory", "add", "The safe is behind the clock.", *as_ann))
    done(memctl("memory", "add", "The bicycle is blue.", "--user", "bob"))
    assert "clock" in done(memctl("query", "where is the safe", *as_ann)).out
    for user in ("bob", "ann"):  # who names no agent reads what is usual
        assert "clock" not in memctl("query", "where is the safe", "--user", user).out
    assert "clock" not in done(memctl("sql", "from memories", "--user", "bob")).out
    shown = done(memctl("user", "show", "ann")).json
    assert "user:ann:conv" in shown["namespaces"]
    done(memctl("user", "clear", "ann", "--yes"))
    assert "clock" not in done(memctl("memory", "list", "-o", "json")).out


def test_the_file_of_an_agent_says_how_long_its_passages_are(memctl: Run) -> None:
    _add_agent(memctl, "ac", knowledge_base={"chunk_size": 200, "chunk_overlap": 0})
    text = "\n\n".join(f"Section {n} says that the pump is checked each week." for n in range(12))
    Path("long.md").write_text(text)
    Path("other.md").write_text(text.replace("pump", "fan"))
    usual = done(memctl("ingest", "long.md", "-o", "json")).json["memories"]
    short = done(memctl("ingest", "other.md", "--agent", "ac", "-o", "json")).json["memories"]
    assert short >= usual + 2
    assert done(memctl("kb", "show", "default")).json["chunk_size"] == 1200


def test_the_file_of_an_agent_says_whether_other_conversations_are_recalled(memctl: Run) -> None:
    _add_agent(memctl, "ac", knowledge_base={"auto_context": {"enabled": False}})
    done(memctl("session", "start", "--id", "one"))
    done(memctl("session", "say", "one", "The ferry leaves from pier 7 at noon.", "--by", "user"))
    done(memctl("session", "start", "--id", "two"))
    asked = ("session", "recall", "two", "What did we discuss about the ferry?")
    assert "pier 7" in done(memctl(*asked)).out
    assert "pier 7" not in done(memctl(*asked, "--agent", "ac")).out


def test_an_empty_list_of_search_triggers_means_none(memctl: Run) -> None:
    _add_agent(memctl, "ac", knowledge_base={"auto_context": {"search_triggers": []}})
    done(memctl("session", "start", "--id", "one"))
    done(memctl("session", "say", "one", "The ferry leaves from pier 7 at noon.", "--by", "user"))
    done(memctl("session", "start", "--id", "two"))
    asked = ("session", "recall", "two", "Was a ferry mentioned?")
    assert "pier 7" in done(memctl(*asked)).out
    assert "pier 7" not in done(memctl(*asked, "--agent", "ac")).out
    shown = done(memctl("agent", "show", "ac")).json
    assert shown["knowledge_base"]["auto_context"]["search_triggers"] == []


def test_an_agent_is_shown_with_the_settings_that_count_for_it(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_COMPRESSION_THRESHOLD_TOKENS", "5000")
    _add_agent(memctl, "ac", memory={"compression": {"recent_messages_to_keep": 4}})
    shown = done(memctl("agent", "show", "ac")).json
    assert shown["memory"]["compression"]["threshold_tokens"] == 5000
    assert shown["memory"]["compression"]["recent_messages_to_keep"] == 4
    assert shown["knowledge_base"]["chunk_size"] == 1200
    assert shown["stated"] == ["agent_id", "memory.compression.recent_messages_to_keep"]


def test_namespaces_of_an_agent_that_hide_whose_they_are_are_refused(memctl: Run) -> None:
    _add_agent(memctl, "ag")
    file = Path("home/agents/ag.toml")
    file.write_text('agent_id = "ag"\n[knowledge_base.namespaces]\ndocuments = "talk:{user_id}"\n')
    refused = memctl("session", "start", "--user", "ann", "--agent", "ag")
    assert refused.code == 2
    assert "'talk:{user_id}'" in refused.err


def test_conversations_of_an_agent_without_a_knowledge_base_are_not_archived(memctl: Run) -> None:
    _add_agent(memctl, "light", resources=["memory"])
    done(memctl("session", "start", "--id", "s", "--agent", "light"))
    for n in range(3):
        done(memctl("session", "say", "s", f"Message {n} is about the roof.", "--by", "user"))
    made = done(memctl("session", "compress", "s", "--keep", "1")).json
    assert (made["messages"], made["document_id"]) == (2, None)
    assert "archive" not in {row["type"] for row in memctl("memory", "list").rows}


def test_the_file_of_an_agent_is_json_or_toml_whatever_its_name(memctl: Run) -> None:
    Path("one").write_text('{"agent_id": "one", "model": "small"}')
    Path("two.json").write_text('agent_id = "two"\n')
    for name, file in (("one", "one"), ("two", "two.json")):
        done(memctl("agent", "add", name, "--file", file))
        assert done(memctl("agent", "show", name)).json["agent_id"] == name
    Path("three").write_text("agent_id: three")
    assert "three: not valid TOML" in memctl("agent", "add", "three", "--file", "three").err


def test_what_an_agent_stores_in_namespaces_of_its_own_no_other_agent_finds(memctl: Run) -> None:
    named = {"conversations": "user:{user_id}:alpha"}
    _add_agent(memctl, "alpha", knowledge_base={"namespaces": named})
    who = ("--user", "ann", "--agent")
    done(memctl("memory", "add", "Ann means to resign in May.", *who, "alpha"))
    assert "resign" in done(memctl("query", "what does Ann mean to do?", *who, "alpha")).out
    assert "resign" not in memctl("query", "what does Ann mean to do?", *who, "beta").out
