"""Skills, links, upkeep and feedback, the same from the command line, over MCP and over HTTP.

Each test is told once and run on each surface that offers the operations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, runner
from feedback.test_prompts_compared import judge, thirty_each
from serving import serving
from set_clock import Clock, home_at, utc_as_local_time
from upkeep.conftest import distil

from memctl.home import Home
from memctl.operations.operation_context import OperationContext
from memctl.server.mcp_session import McpSession
from memctl.server.mcp_tools import choose_tools

Call = Callable[..., Any]
PAINT = "The harbour office orders green paint for the winter."
PLAN = "# Release Plan\n\nWe ship the first release in May, when the tests have passed.\n"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """What tells the time on every surface; local time is UTC."""
    made = Clock()
    monkeypatch.setattr("memctl.instants.utc_now", made)
    with utc_as_local_time(monkeypatch):
        yield made


@pytest.fixture
def home(tmp_path: Path, clock: Clock) -> Home:
    return home_at(tmp_path / "home", clock)


@pytest.fixture
def memctl(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Run a command, for what no agent may do."""
    return runner(home.config.home, monkeypatch, capsysbinary)


@pytest.fixture(params=["command", "mcp", "http"])
def call(request: pytest.FixtureRequest, home: Home, clock: Clock, memctl: Run) -> Iterator[Call]:
    """Carry out an operation by its name, and return its result."""
    match request.param:
        case "command":
            yield lambda name, /, **given: _commanded(memctl, name, given)
        case "mcp":
            with OperationContext.of(home) as context:
                session = McpSession(context, choose_tools(["all"], context))
                yield lambda name, /, **given: _called(session, name, given)
        case _:
            with serving(home.config.home, clock) as serve:
                client = serve()
                yield lambda name, /, **given: _posted(client, name, given)


def _commanded(memctl: Run, name: str, given: dict[str, Any]) -> Any:
    done = memctl("tool", "call", name, json.dumps(given))
    assert done.code == 0, done.err
    return done.json


def _called(session: McpSession, name: str, given: dict[str, Any]) -> Any:
    params = {"name": name, "arguments": given}
    answer = session.answer({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert not answer["result"]["isError"], answer
    return answer["result"]["structuredContent"]


def _posted(client: Any, name: str, given: dict[str, Any]) -> Any:
    reply = client.post(f"/v1/operations/{name}", json=given)
    assert reply.status_code == 200, reply.text
    return reply.json()


# --- links ----------------------------------------------------------------------------------------


@pytest.fixture
def write(memctl: Run, tmp_path: Path) -> Callable[..., None]:
    """Write notes into a vault, as ``name=text``, and have them read again."""

    def notes(**texts: str | None) -> None:
        vault = tmp_path / "vault"
        vault.mkdir(exist_ok=True)
        for name, text in texts.items():
            note = vault / f"{name}.md"
            note.unlink() if text is None else note.write_text(text)
        assert memctl("ingest", str(vault), "--sync").code == 0

    return notes


def test_links_follow_what_becomes_of_the_notes(call: Call, write: Callable[..., None]) -> None:
    def titles(name: str, key: str, page: str) -> list[str]:
        return [row["title"] for row in call(name, document_id=page)[key]]

    write(
        n1="# Alpha\n\nSee [[Release Plan]], again [[release plan|the plan]], [[release-plan]].\n",
        n2=PLAN,
        n3="# Gamma\n\nAs the release plan says, the harbour comes first.\n",
        n4="# Delta\n\nWe ship when the harbour is open.\n",
        n5="# Epsilon\n\nNothing but a dream, as [[Nowhere]] tells.\n",
    )
    assert titles("backlinks", "backlinks", "Release Plan") == ["Alpha"]
    assert titles("page_links", "links", "Alpha") == ["Release Plan"]
    assert titles("unlinked_mentions", "unlinked_mentions", "Release Plan") == ["Gamma"]
    near, back = (
        {row["title"]: row["similarity"] for row in call("related_pages", document_id=page)[
            "related_pages"
        ]}
        for page in ("Release Plan", "Delta")
    )  # fmt: skip
    assert near["Delta"] == pytest.approx(back["Release Plan"], abs=1e-3)
    assert [row["name"] for row in call("missing_links")["missing"]] == ["Nowhere"]
    assert call("extract_links", document_id="Alpha")["changed"] == 0
    assert call("embed_document", document_id="Alpha")["memories"] == 1

    write(n3="# Gamma\n\nAs the [[Release Plan]] says, the release plan comes first.\n")
    assert titles("unlinked_mentions", "unlinked_mentions", "Release Plan") == []
    write(n1="# Alpha\n\nSee [[Delta]] alone.\n", n3="# Gamma\n\nThe harbour comes first.\n")
    assert titles("backlinks", "backlinks", "Release Plan") == []
    write(n2=PLAN.replace("Release Plan", "Launch Plan"), n3="# Gamma\n\n[[Release Plan]] first.\n")
    assert titles("backlinks", "backlinks", "Launch Plan") == []
    named = call("search_knowledge_graph", query="launch plan")["names"]
    assert "Launch Plan" in [each["name"] for each in named]
    assert {row["name"] for row in call("missing_links")["missing"]} == {"Nowhere", "Release Plan"}
    write(n1=None, n6="# Nowhere\n\nA place after all.\n")
    assert [row["name"] for row in call("missing_links")["missing"]] == ["Release Plan"]
    for name, key in (
        ("backlinks", "backlinks"), ("unlinked_mentions", "unlinked_mentions"),
        ("related_pages", "related_pages"),
    ):  # fmt: skip
        assert "Alpha" not in titles(name, key, "Delta"), "what is deleted links no more"
    kinds = {row["problem"] for row in call("check_links")["problems"]}
    assert kinds == {"missing", "orphan"}


def test_pages_of_private_namespaces_are_no_neighbours(call: Call, memctl: Run) -> None:
    memctl("kb", "set", "default", "--private-namespace", "me")
    memctl("ingest", "--text", PLAN, "--title", "Release Plan")
    text = "I dread the release plan, see [[Release Plan]]: the first release is in May."
    for name, namespace in (("Mine", "me"), ("Ours", "default")):
        memctl("ingest", "--text", text, "--title", name, "--namespace", namespace)
    memctl("ingest", "--text", text.replace("[[Release Plan]]", "it"), "--namespace", "me")
    for name, key in (("backlinks", "backlinks"), ("related_pages", "related_pages")):
        rows = call(name, document_id="Release Plan")[key]
        assert [row["title"] for row in rows] == ["Ours"], name
    assert call("unlinked_mentions", document_id="Release Plan")["unlinked_mentions"] == []


# --- skills ---------------------------------------------------------------------------------------


def test_values_are_kept_by_key_until_their_time_is_over(call: Call, clock: Clock) -> None:
    of_s1 = {"session_id": "s1"}
    tried = call("write_memory_tier", key="plan", value={"steps": 2}, dry_run=True, **of_s1)
    assert (tried["tier"], tried["dry_run"]) == ("short_term", True)
    call("write_memory_tier", key="plan", value={"steps": 2}, tier="working", ttl=60, **of_s1)
    call(
        "write_memory_tier",
        key="boiler",
        value="Call the plumber about the boiler.",
        memory_type="reflection",
        ttl=600,
        **of_s1,
    )
    assert call("read_memory_tier", key="plan", **of_s1)["value"] == {"steps": 2}
    assert not call("read_memory_tier", key="plan", session_id="s2")["found"]
    read = [call("read_memory_tier", key="boiler", **of_s1) for _ in range(3)]
    assert [each["access_count"] for each in read] == [1, 2, 3]
    found_in_tiers = call("search_memory_tiers", query="Who repairs the boiler?")
    (near,) = found_in_tiers["results"]
    assert found_in_tiers["kb"] == "default"
    assert (near["tier"], near["key"]) == ("short_term", "boiler")
    counted = call("memory_tier_stats")
    assert (counted["working_memory"]["count"], counted["short_term"]["count"]) == (1, 1)
    clock.forward(hours=1)
    assert not call("read_memory_tier", key="plan", **of_s1)["found"]
    (promoted,) = call("consolidate_memory_tiers", **of_s1)["promoted"]
    found = call("read_memory_tier", key="boiler", **of_s1)
    assert (found["tier"], found["memory_id"]) == ("long_term", promoted["memory_id"])
    assert found["memory_type"] == "reflection"


def test_skills_are_found_read_used_and_proposed(
    call: Call, memctl: Run, home: Home, tmp_path: Path
) -> None:
    for name, description, more in (
        ("ship", "Deploy a service to kubernetes.", "\nmetadata:\n  requires: build"),
        ("build", "Build the image of a container.", ""),
        ("review", "Review a pull request.", ""),
    ):
        path = tmp_path / "skills" / name
        path.mkdir(parents=True)
        front = f"---\nname: {name}\ndescription: {description}{more}\n---\n"
        (path / "SKILL.md").write_text(f"{front}Do it with care.\n")
    (tmp_path / "skills/ship/check.sh").write_text("echo checked\n")
    assert memctl("skill", "add", str(tmp_path / "skills")).code == 0
    memctl("skill", "version", "add", "ship", "-", stdin="Do it with more care.")
    assert memctl("skill", "version", "split", "ship", "1=90", "2=10").code == 0

    found = call("discover_skills", description="deploy to kubernetes")["skills"]
    assert found[0]["slug"] == "ship"
    assert len(call("list_skills", status="active")["skills"]) == 3
    tasks = [f"task {number}" for number in range(20)]
    given = [call("get_skill_context", skill_id="ship", task=task)["version"] for task in tasks]
    again = [call("get_skill_context", skill_id="ship", task=task)["version"] for task in tasks[:5]]
    assert again == given[:5], "a task keeps its version"
    with home.open("default") as base:
        skills = base.skills.acting_as()
        ship = skills.find("ship")
        assert given == [skills.version_for(ship, task).number for task in tasks]
    assert call("get_skill_context", skill_id="ship")["requires"] == ["build"]
    file = call("read_skill_file", skill_id="ship", path="check.sh")
    assert file["content"] == "echo checked\n"
    noted = call("record_skill_outcome", skill_id="ship", success=True, task=tasks[0])
    assert noted["version"] == given[0]
    wanted = ["ship", "backups", "locks"]
    made = call("propose_skill", topic="database migrations", requires=wanted)
    assert made["status"] == "submitted"
    assert memctl("skill", "approve", made["proposal_id"]).code == 0
    proposed = memctl("skill", "proposals", "--status", "submitted").rows
    assert {row["name"] for row in proposed} == {"backups", "locks"}
    assert memctl("skill", "create", made["proposal_id"]).rows[0]["version"] == 1
    near = call("get_graph_neighbors", name="database migrations")["neighbors"]
    assert {(each["name"], each["relation"], each["type"]) for each in near} == {
        ("ship", "requires", "skill"),
        ("backups", "requires", "missing_skill"),
        ("locks", "requires", "missing_skill"),
    }


# --- upkeep ---------------------------------------------------------------------------------------


def test_what_nobody_uses_fades_is_archived_and_comes_back(
    call: Call, home: Home, clock: Clock
) -> None:
    with home.open("default") as base:
        (gist,) = distil(base, PAINT)
    stated = call("remember", text="The spare key of the boat is with Ida.")["id"]
    lesson = call("add_learning", text="Retry an upload with a longer pause each time.")["id"]

    def known(query: str) -> set[str]:
        return {hit["memory_id"] for hit in call("search_memory", query=query)["results"]}

    before = call("query_learnings")["learnings"][0]["importance"]
    clock.forward(days=90)
    (faded,) = call("query_learnings")["learnings"]
    assert faded["importance"] == pytest.approx(0.05 + (before - 0.05) / 2, abs=1e-3)
    clock.forward(days=208)
    assert call("run_upkeep_job", job="rot")["counts"] == {"archived": 0, "withheld": 0}
    clock.forward(days=1)
    assert call("run_upkeep_job", job="rot", dry_run=True)["counts"]["archived"] == 1
    assert call("run_upkeep_job", job="rot")["counts"]["archived"] == 1
    assert gist not in known("green paint of the harbour office")
    assert stated in known("spare key of the boat")
    assert call("restore_memory", id=gist)["id"] == gist
    assert gist in known("green paint of the harbour office")
    assert call("confirm_learning", id=lesson)["confirmations"] == 1
    jobs = {job["job"]: job for job in call("list_upkeep_jobs")["jobs"]}
    assert jobs["rot"]["state"] == "done"
    assert call("daily_summary")["text"].startswith("# 2027-")
    assert {"job rot", "memory restore"} <= {
        change["action"] for change in call("audit_trail")["changes"]
    }
    assert call("upkeep_report")["entries"] is not None


def test_a_job_is_taken_back_over_http(home: Home, clock: Clock) -> None:
    with home.open("default") as base:
        (gist,) = distil(base, PAINT)
    clock.forward(days=299)
    with serving(home.config.home, clock) as serve:
        client = serve()
        assert _posted(client, "run_upkeep_job", {"job": "rot"})["counts"]["archived"] == 1
        (job,) = client.get("/v1/kbs/default/jobs").json()["items"]
        undo, memory = (
            f"/v1/kbs/default/{each}" for each in (f"jobs/{job['id']}/undo", "memories")
        )
        assert client.post(undo, json={"dry_run": True}).status_code == 200
        assert client.get(memory).json()["items"] == []
        assert client.post(undo, json={}).status_code == 200
        assert [each["id"] for each in client.get(memory).json()["items"]] == [gist]
        again = client.post(undo, json={})
        assert (again.status_code, "it has been already" in again.text) == (400, True)
        assert client.post("/v1/kbs/default/jobs/99/undo", json={}).status_code == 404


# --- feedback -------------------------------------------------------------------------------------


def test_a_conversation_is_judged_looked_back_on_and_forgotten(call: Call, memctl: Run) -> None:
    memctl("session", "start", "--id", "ship")
    memctl("session", "say", "ship", "When does Aurora ship?", "--by", "user")
    memctl("session", "say", "ship", "Aurora ships on Monday.", "--by", "agent")
    call(
        "give_feedback", target="ship", score=0.2, text="the marmalade date was wrong",
        example="Aurora ships on 3 July.",
    )  # fmt: skip
    (record,) = memctl("feedback", "show", "ship").rows
    for name in (
        "conversation_id", "prompt", "feedback_text", "example", "improvement_suggestion",
        "reward_score", "conversation_summary", "timestamp",
    ):  # fmt: skip
        assert record[name], name
    assert "prompt_version" in record
    (listed,) = call("list_feedback", session_id="ship")["feedback"]
    assert listed["text"] == "the marmalade date was wrong"
    topics = [each["topic"] for each in call("reflect", since="7d")["findings"]]
    assert any("Aurora" in topic for topic in topics)
    forgotten = memctl("session", "forget", "ship", "--yes")
    assert forgotten.code in (0, 3), "a server that is open reads the earlier versions until then"
    assert call("list_feedback", session_id="ship")["feedback"] == []
    assert not any("Aurora" in str(each) for each in call("reflect", since="7d")["findings"])


def test_the_better_of_two_prompts_is_named(call: Call, memctl: Run, home: Home) -> None:
    for task, better, winner in (("apart", 0.8, ["v2"]), ("near", 0.42, [])):
        for text in ("Be short.", "Be kind."):
            memctl("prompt", "add", task, "-", stdin=text)
        assert memctl("prompt", "split", task, "v1=50", "v2=50").code == 0
        sessions = thirty_each(task)
        for version, names in sessions.items():
            got = call("get_prompt", task=task, session_id=names[0])
            assert got["version"] == version
        with home.open("default") as base:
            for version, names in sessions.items():
                for number, name in enumerate(names):
                    mean = better if version == "v2" else 0.4
                    judge(base, task, name, mean + (number % 5 - 2) * 0.05)
        rows = call("list_prompts", task=task)["prompts"]
        assert [row["version"] for row in rows if row["is_winner"]] == winner


# --- who read what --------------------------------------------------------------------------------


def test_accesses_and_changes_are_counted(call: Call, memctl: Run) -> None:
    id_ = call("remember", text="The ferry leaves at nine from pier four.")["id"]
    for _ in range(3):
        assert call("search_memory", query="ferry at nine")["results"]
    kinds = [row["kind"] for row in memctl("memory", "show", id_, "--accesses").rows]
    assert kinds == ["tool"] * 3
    assert call("run_upkeep_job", job="accesses")["counts"] == {"memories": 1}
    assert memctl("memory", "list").rows[0]["access_count"] == 3
    assert "memory add" in [each["action"] for each in call("audit_trail")["changes"]]
    gone = call("forget_memory", id=id_, confirm=True)
    assert gone["forgotten"]
    for table in ("accesses", "confirmations"):
        assert memctl("sql", f"from {table} where memory_id = '{id_}'").rows == [], table
    assert not any(id_ in str(each) for each in call("audit_trail")["changes"])


def test_questions_are_noted_with_how_they_were_answered(call: Call, memctl: Run) -> None:
    call("remember", text="The door code of the workshop is 4711.")
    assert call("answer", question="what is the door code of the workshop?")["found"]
    assert not call("answer", question="who won the chess tournament?")["found"]
    good, nothing = memctl("sql", "select * from queries order by id").rows[-2:]
    assert (good["status"], nothing["status"]) == ("answered", "nothing")
    assert 0 <= nothing["quality"] < good["quality"] <= 1


# --- what is known without being asked ------------------------------------------------------------


def test_a_statement_connects_the_names_in_it(call: Call) -> None:
    call("remember", text="Ann Lee works at Acme")
    near = call("get_graph_neighbors", name="Ann Lee")["neighbors"]
    assert "Acme" in [each["name"] for each in near]
