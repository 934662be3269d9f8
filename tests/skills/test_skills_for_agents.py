"""Skills as agents get them: operations, MCP, and what forgetting and exports make of them."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from memctl.errors import NotFoundError, UsageError
from memctl.forget import Selection
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.operations.registry import OPERATIONS
from memctl.server.mcp_server import McpServer
from memctl.server.mcp_session import McpSession

from .conftest import Run, Write

SKILLS = {
    "discover_skills", "get_skill_context", "read_skill_file", "list_skills", "propose_skill",
    "record_skill_outcome",
}  # fmt: skip


def _call(memctl: Run, name: str, **arguments: Any) -> Any:
    done = memctl("tool", "call", name, json.dumps(arguments))
    assert done.code == 0, done.err
    return done.json


@pytest.fixture
def ship(memctl: Run, write: Write) -> Path:
    """A skill with a file beside it."""
    folder = write("ship", "Deploy a service to kubernetes.", category="deployment")
    (folder / "check.sh").write_text("echo checked\n")
    memctl("skill", "add", str(folder))
    return folder


def test_agents_find_read_use_and_propose_skills(memctl: Run, ship: Path) -> None:
    found = _call(memctl, "discover_skills", description="deploy to kubernetes")
    assert [each["slug"] for each in found["skills"]] == ["ship"]
    listed = _call(memctl, "list_skills", category="deployment", status="active")
    assert [each["slug"] for each in listed["skills"]] == ["ship"]
    read = _call(memctl, "get_skill_context", skill_id="ship", task="release 1")
    assert "Do it with care." in read["text"]
    assert read["files"] == ["check.sh"]
    file = _call(memctl, "read_skill_file", skill_id="ship", path="check.sh")
    assert file["content"] == "echo checked\n"
    assert file["sha256"] == hashlib.sha256(b"echo checked\n").hexdigest()
    noted = _call(memctl, "record_skill_outcome", skill_id="ship", success=True, note="fine")
    assert (noted["version"], noted["effectiveness"]) == (1, 0.625)
    made = _call(memctl, "propose_skill", topic="database migrations", requires=["ship"])
    assert made["status"] == "submitted"
    assert memctl("skill", "proposals").rows[0]["proposal_id"] == made["proposal_id"]


def test_no_operation_changes_what_agents_get() -> None:
    named = {each.name: each.effect for each in OPERATIONS if "skill" in each.name}
    assert named.keys() == SKILLS
    assert {name for name, effect in named.items() if effect != "read"} == {
        "propose_skill",
        "record_skill_outcome",
    }


def test_mcp_gives_skills_with_the_hash_of_every_file(
    memctl: Run, home: Home, ship: Path, write: Write
) -> None:
    memctl("skill", "add", str(write("old", "No longer done.", status="deprecated")))
    requests = [("skills/list", {}), ("skills/get", {"name": "ship"}),
                ("skills/get", {"name": "old"}), ("skills/get", {}),
                ("skills/get", {"uri": "skill://ship/SKILL.md"}),
                ("resources/read", {"uri": "skill://ship/check.sh"}),
                ("resources/read", {"uri": "skill://ship/nothing"})]  # fmt: skip
    source = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode() + b"\n"
        for n, (method, params) in enumerate(requests)
    )
    sink = io.BytesIO()
    context = OperationContext(home)
    server = McpServer(
        context, lambda send: McpSession(context, {}, send), io.BytesIO(source), sink
    )
    server.run()
    listed, found, old, nothing, named, file, none = (
        json.loads(line) for line in sink.getvalue().splitlines()
    )
    (skill,) = listed["result"]["skills"]
    hashes = {
        name: hashlib.sha256((ship / name).read_bytes()).hexdigest()
        for name in ("SKILL.md", "check.sh")
    }
    assert {each["path"]: each["sha256"] for each in skill["files"]} == hashes
    contents = found["result"]["skill"]["contents"]
    assert {each["path"]: each["sha256"] for each in contents} == hashes
    assert contents[0]["text"].encode() == (ship / "SKILL.md").read_bytes()
    assert "is deprecated" in old["error"]["message"]
    assert "needs the name" in nothing["error"]["message"]
    assert named["result"] == found["result"]
    assert {each["uri"]: each["digest"] for each in skill["resources"]} == {
        f"skill://ship/{name}": f"sha256:{sha}" for name, sha in hashes.items()
    }
    assert file["result"]["contents"][0]["text"].encode() == (ship / "check.sh").read_bytes()
    assert "not found" in none["error"]["message"]


def test_whoever_may_not_read_skills_is_refused_them(home: Home, ship: Path) -> None:
    from memctl.operations.agent_skills import served_skill_list, served_skill_text

    with OperationContext(home, resources=("memory",)) as context, pytest.raises(Unavailable):
        served_skill_list(context)
    with OperationContext(home, allowed_tools=("list_skills",)) as context:
        assert served_skill_list(context)["skills"]
        with pytest.raises(Unavailable):
            served_skill_text(context, "ship")
    with OperationContext(home) as context:
        with pytest.raises(NotFoundError):
            served_skill_text(context, "nothing")
        with pytest.raises(UsageError):
            served_skill_text(context, 7)


# --- what covers everything that is stored -------------------------------------------------------


def test_forgetting_a_name_takes_it_out_of_every_part_of_a_skill(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    folder = write("greet", "Greet Quintessa Marlowe in the morning.", "Say hello to\nQuintessa"
                   " Marlowe.")  # fmt: skip
    (folder / "note.txt").write_text("Quintessa Marlowe likes tea.")
    memctl("skill", "add", str(folder))
    memctl("skill", "used", "greet", "--ok", "--note", "Quintessa Marlowe was away")
    memctl("skill", "propose", "letters to Quintessa Marlowe")
    assert kb.skills.acting_as().search("greet Quintessa")
    selection = Selection(entities=("Quintessa Marlowe",))
    would, report = kb.forget(selection, dry_run=True), kb.forget(selection)
    assert report.left == ()
    assert (would.skills, would.entries) == (report.skills, report.entries)
    assert report.skills == ("greet",)
    counts = {"skills": 1, "skill_versions": 1, "skill_files": 1, "skill_usage": 1}
    assert report.entries == counts | {"skill_proposals": 1}
    with kb.store.ledger.reading() as connection:
        for table in ("skills", "skill_versions", "skill_files", "skill_usage", "skill_proposals"):
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            assert rows
            assert "Quintessa" not in repr(rows), table
    assert memctl("skill", "show", "greet", "-o", "json").code == 0
    assert kb.skills.acting_as().search("greet in the morning")[0].slug == "greet"


def test_export_and_import_and_snapshots_bring_skills_back(
    memctl: Run, kb: KnowledgeBase, ship: Path, tmp_path: Path
) -> None:
    memctl("skill", "assign", "ship", "--agent", "coder")
    memctl("skill", "used", "ship", "--ok")
    before = memctl("skill", "show", "ship", "-o", "json").json
    assert memctl("snapshot", "create", "with-skills").code == 0
    out = tmp_path / "all.memctl"
    assert memctl("export", "all", "--to", str(out)).code == 0
    assert memctl("import", str(out), "-k", "copy").code == 0
    copy = memctl("skill", "show", "ship", "-o", "json", "-k", "copy").json
    for key in ("versions", "files", "execution"):
        assert copy[key] == before[key]
    assert copy["skill"]["agents"] == ["coder"]
    memctl("skill", "delete", "ship", "--yes")
    assert memctl("snapshot", "restore", "with-skills", "--yes").code == 0
    assert memctl("skill", "show", "ship", "-o", "json").json["files"] == before["files"]
    memctl("snapshot", "delete", "with-skills", "--yes")
    assert memctl("doctor").code == 0
    rows = memctl("sql", "SELECT slug, category FROM skills", "-k", "default").rows
    assert rows == [{"slug": "ship", "category": "deployment"}]


def test_secrets_are_taken_out_where_they_are_not_to_be_stored(
    memctl: Run, home: Home, write: Write
) -> None:
    memctl("kb", "create", "clean", "--redact")
    key = "sk-ant-api03-" + "a1B2c3D4" * 10
    folder = write("leaky", "Call a service.", f"Use the key {key}.")
    (folder / "env.txt").write_text(f"KEY={key}\n")
    memctl("skill", "add", str(folder), "-k", "clean")
    assert key not in memctl("skill", "show", "leaky", "--text", "-k", "clean").out
    with home.open("clean") as base:
        assert key not in repr(base.skills.acting_as().files(
            base.skills.acting_as().find("leaky").skill_id, 1
        ))  # fmt: skip
    again = memctl("skill", "add", str(folder), "-k", "clean")
    assert [each["outcome"] for each in again.rows] == ["unchanged"]
