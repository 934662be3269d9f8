"""Who read what and who changed what: counted, chained, and no word of what was forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase

from .conftest import Clock, Run, distil

FERRY = "The ferry leaves at nine from pier four."
SECRET = "Zoltan Weiss keeps the spare key."


def trail(memctl: Run, *options: str) -> list[dict[str, Any]]:
    done = memctl("audit", "-n", "0", *options)
    assert done.code == 0, done.err
    return list(reversed(done.rows))


def actions(memctl: Run, *options: str) -> list[str]:
    return [row["action"] for row in trail(memctl, *options)]


def ledger_of(home: Home, name: str = "default") -> Path:
    return home.layout(name).folder / "ledger.sqlite"


def change_ledger(home: Home, statement: str) -> None:
    with closing(sqlite3.connect(ledger_of(home))) as connection, connection:
        connection.execute(statement)


def audit_findings(memctl: Run) -> list[dict[str, Any]]:
    return [row for row in memctl("doctor").rows if row["check"] == "audit"]


# --- who read what -------------------------------------------------------------------------------


def test_accesses_equal_the_number_of_times_that_a_memory_was_shown(
    memctl: Run, home: Home, clock: Clock
) -> None:
    id_ = memctl("memory", "add", FERRY).rows[0]["id"]
    for agent in ("scout", "clerk"):
        shown = memctl("query", "when does the ferry leave?", "--agent", agent, "-o", "json").json
        assert [hit["memory_id"] for hit in shown["hits"]] == [id_]
    assert memctl("context", "when does the ferry leave?").code == 0
    assert memctl("memory", "show", id_).code == 0
    assert memctl("tool", "call", "search_knowledge_base", '{"query": "ferry"}').code == 0
    accesses = memctl("memory", "show", id_, "--accesses").rows
    assert [each["kind"] for each in accesses] == ["tool", "show", "context", "query", "query"]
    assert [each["agent"] for each in accesses][-2:] == ["clerk", "scout"]
    assert accesses[-1]["query_id"].startswith("q_")
    assert memctl("upkeep", "run", "accesses").rows[0]["counts"] == {"memories": 1}
    assert memctl("memory", "list").rows[0]["access_count"] == len(accesses)
    numbers = memctl("stats", "--memories").rows[0]
    assert (numbers["accesses"], numbers["used"], numbers["never_used"]) == (5, 1, 0)
    assert numbers["most_used"][0]["id"] == id_


def test_nobody_is_told_who_read_what_is_private_unless_it_is_asked_for(
    memctl: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("kb", "create", "diary", "--private")
    id_ = memctl("memory", "add", SECRET, "-k", "diary").rows[0]["id"]
    memctl("query", "who keeps the key?", "-k", "diary")
    assert memctl("memory", "show", id_, "--accesses", "-k", "diary").rows == []
    monkeypatch.setenv("MEMCTL_ACCESS_LOG_PRIVATE", "true")
    memctl("query", "who keeps the key?", "-k", "diary")
    assert len(memctl("memory", "show", id_, "--accesses", "-k", "diary").rows) == 1


def test_only_the_newest_accesses_are_kept(memctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_ACCESS_LOG_KEEP", "2")
    id_ = memctl("memory", "add", FERRY).rows[0]["id"]
    for _ in range(5):
        memctl("memory", "show", id_)
    assert len(memctl("memory", "show", id_, "--accesses").rows) == 2


def test_forgetting_a_memory_leaves_nothing_of_it_in_either_log(
    memctl: Run, home: Home, clock: Clock
) -> None:
    id_ = memctl("memory", "add", SECRET, "--type", "learning").rows[0]["id"]
    memctl("memory", "confirm", id_, "--agent", "scout")
    memctl("query", "who keeps the spare key?")
    memctl("memory", "add", FERRY)
    assert any(id_ in row["objects"] for row in trail(memctl))
    assert memctl("forget", "--memory", id_, "--yes").code == 0
    entries = trail(memctl)
    assert "forget" in [row["action"] for row in entries]
    assert not any(row["objects"] for row in entries if row["action"] == "forget")
    assert not any(id_ in row["objects"] for row in entries)
    assert [finding["verdict"] for finding in audit_findings(memctl)] == ["ok"]
    with closing(sqlite3.connect(ledger_of(home))) as connection:
        for table in ("accesses", "confirmations", "access_log"):
            columns = f"SELECT count(*) FROM {table} WHERE memory_id = ?"
            assert connection.execute(columns, (id_,)).fetchone() == (0,), table


# --- who changed what ----------------------------------------------------------------------------


CHANGES: dict[str, Callable[[Run, str], object]] = {
    "memory add": lambda run, _: run("memory", "add", SECRET),
    "memory edit": lambda run, id_: run("memory", "edit", id_, "--text", "The ferry is late."),
    "memory delete": lambda run, id_: run("memory", "delete", id_, "--yes"),
    "ingest": lambda run, _: run("ingest", "--text", SECRET),
    "forget": lambda run, id_: run("forget", "--memory", id_, "--yes"),
    "settings": lambda run, _: run("kb", "set", "default", "--half-life", "30"),
    "grants": lambda run, _: run("kb", "grant", "default", "--agent", "scout", "write"),
    "snapshot create": lambda run, _: run("snapshot", "create", "one"),
    "pool create": lambda run, _: run("pool", "create", "board"),
    "prompt activate": lambda run, _: run("prompt", "activate", "answer", "1"),
    "upkeep set": lambda run, _: run("upkeep", "set", "rot", "--off"),
    "job accesses": lambda run, _: run("upkeep", "run", "accesses"),
}


@pytest.mark.parametrize("action", CHANGES)
def test_every_change_has_its_entry_without_words(memctl: Run, action: str) -> None:
    id_ = memctl("memory", "add", FERRY).rows[0]["id"]
    memctl("query", "when does the ferry leave?")
    before = len(trail(memctl))
    CHANGES[action](memctl, id_)
    entries = trail(memctl)[before:]
    assert action in [row["action"] for row in entries], entries
    assert {row["actor"] for row in entries} == {"owner"}
    assert not any("ferry" in str(row) or "Zoltan" in str(row) for row in entries)
    tables = next(row for row in entries if row["action"] == action)
    if tables["counts"]:
        assert set(tables["after"]) >= set(tables["counts"])


def test_every_change_of_what_agents_are_given_has_its_entry(memctl: Run, tmp_path: Path) -> None:
    skill = tmp_path / "ferry-times" / "SKILL.md"
    skill.parent.mkdir()
    for text in ("Read the board.", "Ask at the counter."):
        skill.write_text(f"---\nname: ferry-times\ndescription: Look up ferries.\n---\n{text}\n")
        assert memctl("skill", "add", str(skill)).code == 0
    for words in (
        ("version", "split", "ferry-times", "1=50", "2=50"),
        ("version", "activate", "ferry-times", "1"),
        ("assign", "ferry-times", "--agent", "scout"),
        ("assign", "ferry-times", "--agent", "scout", "--remove"),
        ("deprecate", "ferry-times"),
        ("delete", "ferry-times", "--yes"),
    ):
        done = memctl("skill", *words)
        assert done.code == 0, done.err
    proposal = memctl("skill", "propose", "Ferry tickets", "--submit", "-o", "json").json
    memctl("skill", "approve", proposal["proposal_id"])
    entries = trail(memctl)
    assert [row["action"] for row in entries] == [
        "skill add", "skill activate", "skill split", "skill activate", "skill assign",
        "skill unassign", "skill set deprecated", "skill delete", "skill propose",
        "skill proposal approved",
    ]  # fmt: skip
    assert "agent scout" in entries[4]["objects"]
    assert not any("erry" in str(row) for row in entries)
    assert [finding["verdict"] for finding in audit_findings(memctl)] == ["ok"]


def test_grants_pools_and_settings_are_noted_as_they_were_and_are(memctl: Run) -> None:
    for words in (
        ("kb", "grant", "default", "--agent", "scout", "read"),
        ("kb", "grant", "default", "--agent", "scout", "write"),
        ("kb", "revoke", "default", "--agent", "scout"),
        ("kb", "set", "default", "--half-life", "30", "--description", FERRY, "--private"),
        ("pool", "create", "board"),
        ("pool", "write", "board", "piers.four", '"shut"'),
        ("pool", "merge", "board", '{"mood": "calm"}'),
        ("pool", "grant", "board", "clerk", "--level", "write"),
    ):
        done = memctl(*words)
        assert done.code == 0, (words, done.err)
    entries = trail(memctl, "-k", "default")
    columns = ("action", "objects", "before", "after")
    assert [tuple(row[key] for key in columns) for row in entries] == [
        ("grants", ["grants", "agent scout"], {}, {"level": "read"}),
        ("grants", ["grants", "agent scout"], {"level": "read"}, {"level": "write"}),
        ("grants", ["grants", "agent scout"], {"level": "write"}, {}),
        (
            "settings", ["private", "half_life", "description"],
            {"private": False, "half_life": 90}, {"private": True, "half_life": 30},
        ),
        ("pool create", ["board"], {}, {}),
        ("pool write", ["board", "piers.four"], {"version": 0}, {"version": 1}),
        ("pool merge", ["board", "mood"], {"version": 1}, {"version": 2}),
        ("pool rights", ["board", "agent clerk"], {}, {"level": "write"}),
    ]  # fmt: skip
    assert [finding["verdict"] for finding in audit_findings(memctl)] == ["ok"]


def test_entries_are_found_by_who_when_and_about_what(memctl: Run, clock: Clock) -> None:
    id_ = memctl("memory", "add", FERRY, "--agent", "scout").rows[0]["id"]
    clock.forward(days=3)
    memctl("memory", "edit", id_, "--importance", "0.2", "--user", "mara")
    assert actions(memctl, "--actor", "scout") == ["memory add"]
    assert actions(memctl, "--since", "2d") == ["memory edit"]
    assert actions(memctl, "--object", id_[:10]) == ["memory add", "memory edit"]
    assert actions(memctl, "--object", "m_ffffffff") == []
    assert memctl("audit", "stable").code == 2


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM audit WHERE id = 2", "entry 2 of the audit trail is gone"),
        ("DELETE FROM audit WHERE id IN (1, 2)", "entries 1 to 2 of the audit trail are gone"),
        ("DELETE FROM audit WHERE id = 4", "entry 4 of the audit trail is gone"),
        ("UPDATE audit SET actor = 'agent x' WHERE id = 2", "entry 2 of the audit trail is not"),
        ("UPDATE audit SET objects = '[\"m_1\"]' WHERE id = 3", "names other objects"),
    ],
)
def test_doctor_tells_what_was_removed_or_altered(
    memctl: Run, home: Home, harm: str, said: str
) -> None:
    for number in range(4):
        memctl("memory", "add", f"Crate {number} holds rope.")
    assert [finding["message"] for finding in audit_findings(memctl)] == ["4 entries"]
    change_ledger(home, harm)
    findings = audit_findings(memctl)
    assert [finding["verdict"] for finding in findings][:1] == ["warning"]
    assert any(said in finding["message"] for finding in findings), findings


def test_a_watcher_acts_under_its_own_name_and_jobs_say_which_they_are(
    memctl: Run, home: Home, clock: Clock
) -> None:
    from .test_schedules import watch

    with home.open("default") as base:
        distil(base, "The harbour office orders green paint.")
    clock.forward(days=400)
    watch(home, clock)
    rot = [row for row in trail(memctl) if row["action"] == "job rot"]
    assert [row["actor"] for row in rot] == ["watch"]
    assert rot[0]["objects"][0].startswith("job ")


def test_what_is_taken_in_is_not_said_to_change_what_was_read_before(memctl: Run) -> None:
    id_ = memctl("memory", "add", FERRY).rows[0]["id"]
    assert memctl("query", "when does the ferry leave?").code == 0
    assert (
        memctl("ingest", "--text", "The harbour office opens at nine.", "--agent", "scout").code
        == 0
    )
    assert memctl("memory", "list", "--where", f"id = '{id_}'").rows[0]["access_count"] == 1
    assert actions(memctl, "--object", id_) == ["memory add", "access counts"]


def test_a_user_sees_their_own_changes_alone(
    memctl: Run, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("memory", "add", FERRY, "--user", "mara")
    memctl("memory", "add", SECRET, "--user", "jonas")
    monkeypatch.setenv("MEMCTL_USER", "mara")
    assert {row["actor"] for row in trail(memctl)} == {"user mara"}
    assert memctl("audit", "--actor", "jonas").code != 0
