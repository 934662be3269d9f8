"""What holds for all that is kept holds for pools: forgetting, exports, snapshots, SQL, doctor."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from memctl.config import load_config
from memctl.home import Home

Run = Callable[..., Any]
SENTENCE = "The heron flies over Wittlesham at dawn."


@pytest.fixture
def kb(memctl: Run, request: pytest.FixtureRequest) -> str:
    """A knowledge base for one test."""
    name = f"kb{zlib.crc32(request.node.name.encode())}"
    memctl("kb", "create", name)
    return name


def test_sql_has_pools_and_their_keys(memctl: Run, kb: str) -> None:
    memctl("pool", "create", "ops", "-k", kb, "--ttl", "7d")
    memctl("pool", "write", "ops", "a", '{"b": "Zürich"}', "-k", kb)
    asked = "select pool_id, version, owner, retention_policy from pools"
    (row,) = memctl("sql", asked, "-k", kb, "-o", "json").json
    assert (row["pool_id"], row["version"], row["owner"]) == ("ops", 1, "default_user")
    assert "604800" in row["retention_policy"]
    (row,) = memctl("sql", "select key, value from pool_keys", "-k", kb, "-o", "json").json
    assert (row["key"], row["value"]) == ("a", '{"b":"Zürich"}')
    for table in ("pool_versions", "pool_events", "pool_agents"):
        (row,) = memctl("sql", f"select count(*) n from {table}", "-k", kb, "-o", "json").json
        assert row["n"] == 1


def test_pools_are_exported_as_a_table_of_their_own(memctl: Run, kb: str, tmp_path: Path) -> None:
    memctl("pool", "write", "default", "a", "[1]", "-k", kb)
    (row,) = map(json.loads, memctl("export", "pools", "-k", kb).out.splitlines())
    assert (row["pool_id"], row["version"]) == ("default", 1)
    (row,) = map(json.loads, memctl("export", "pool_keys", "-k", kb).out.splitlines())
    assert (row["key"], row["value"]) == ("a", "[1]")
    target = tmp_path / "pools.parquet"
    assert memctl("export", "pools", "--to", str(target), "-k", kb).code == 0
    assert pq.read_table(target)["owner"].to_pylist() == ["default_user"]
    refused = memctl("export", "puddles", "-k", kb)
    assert (refused.code, "use all, documents" in refused.err) == (2, True)


def test_an_agent_sees_in_tables_only_the_pools_that_it_may_read(
    memctl: Run, kb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pool in ("ops", "plans", "open"):
        memctl("pool", "create", pool, "-k", kb, "--as", "agent1")
        memctl("pool", "write", pool, "secret", f'"Kestrel {pool}"', "-k", kb, "--as", "agent1")
    memctl("pool", "grant", "plans", "agent3", "-k", kb, "--as", "agent1")
    memctl("pool", "grant", "open", "--public", "-k", kb, "--as", "agent1")
    assert memctl("pool", "read", "ops", "-k", kb, "--as", "agent3").code == 1
    tables = ("pools", "pool_keys", "pool_versions", "pool_events", "pool_agents")
    may_read = {"agent1": {"ops", "plans", "open"}, "agent3": {"plans", "open"}, "agent4": {"open"}}
    for agent, pools in may_read.items():
        monkeypatch.setenv("MEMCTL_AGENT", agent)
        for table in tables:
            rows = memctl("sql", f"from {table}", "-k", kb, "-o", "json").json
            assert {row["pool_id"] for row in rows} == pools, (agent, table)
            exported = memctl("export", table, "-k", kb).out
            assert {json.loads(line)["pool_id"] for line in exported.splitlines()} == pools
            for text in (json.dumps(rows), exported):
                assert "Kestrel open" in text or table in ("pools", "pool_agents")
                assert ("Kestrel ops" in text) <= ("ops" in pools)
        whole = memctl("export", "all", "--to", str(tmp_path / f"{agent}.memctl"), "-k", kb)
        assert whole.code == (0 if "ops" in pools else 1)
    monkeypatch.delenv("MEMCTL_AGENT")
    assert len(memctl("sql", "from pools", "-k", kb, "-o", "json").json) == 3


def test_an_export_of_all_brings_pools_back(memctl: Run, kb: str, tmp_path: Path) -> None:
    memctl("pool", "create", "ops", "-k", kb, "--as", "ann", "--type", "team_shared")
    memctl("pool", "grant", "ops", "bob", "-k", kb, "--as", "ann")
    memctl("pool", "write", "ops", "agent_bulletin.x", '{"y": null}', "-k", kb, "--as", "ann")
    memctl("pool", "write", "ops", "z", "[1, true]", "-k", kb, "--as", "ann")
    archive = str(tmp_path / "all.memctl")
    assert memctl("export", "all", "--to", archive, "-k", kb).code == 0
    done = memctl("import", archive, "-k", f"{kb}-again")
    assert done.code == 0, done.err
    for words in (("read", "ops"), ("show", "ops"), ("history", "ops")):
        before, after = (
            memctl("pool", *words, "-o", "json", "-k", name, "--as", "bob").json
            for name in (kb, f"{kb}-again")
        )
        for each in (before, after):
            for key in ("read_count", "last_read_at"):
                each.pop(key, None) if isinstance(each, dict) else None
        assert before == after
    change = memctl("pool", "write", "ops", "z", "2", "-k", f"{kb}-again", "--as", "ann")
    assert change.code == 0


def test_a_snapshot_takes_pools_along_and_brings_them_back(memctl: Run, kb: str) -> None:
    memctl("pool", "create", "ops", "-k", kb)
    memctl("pool", "write", "ops", "a", "1", "-k", kb)
    assert memctl("snapshot", "create", "before", "-k", kb).code == 0
    memctl("pool", "write", "ops", "a", "2", "-k", kb)
    memctl("pool", "create", "later", "-k", kb)
    assert memctl("snapshot", "restore", "before", "--yes", "-k", kb).code == 0
    assert memctl("pool", "read", "ops", "-k", kb).out == '{"a": 1}\n'
    assert memctl("pool", "read", "later", "-k", kb).code == 1
    watched = memctl("pool", "watch", "ops", "--after", "0", "-n", "1", "-k", kb)
    assert '"value": 1' in watched.out


def test_forgetting_a_text_takes_the_key_that_says_it_and_leaves_the_rest(
    memctl: Run, kb: str, home: Path
) -> None:
    memctl("pool", "create", "ops", "-k", kb)
    memctl("pool", "write", "ops", "quote", "--text", f"He said: {SENTENCE}", "-k", kb)
    memctl("pool", "write", "ops", "other", '"stays"', "-k", kb)
    memctl("snapshot", "create", "before", "-k", kb)
    added = memctl("memory", "add", SENTENCE, "-k", kb, "-o", "json")
    done = memctl("forget", "--memory", added.json["id"], "--yes", "-k", kb)
    assert done.code == 0, done.err
    assert memctl("pool", "read", "ops", "-k", kb).out == '{"other": "stays"}\n'
    assert memctl("pool", "history", "ops", "-k", kb, "-o", "json").json == []
    for path in (home / "kb" / kb).rglob("*"):
        if path.is_file():
            assert b"Wittlesham" not in path.read_bytes(), path
    memctl("snapshot", "restore", "before", "--yes", "-k", kb)
    assert memctl("pool", "read", "ops", "-k", kb).out == '{"other": "stays"}\n'


def test_forgetting_a_name_says_what_goes_of_pools_before_and_after(memctl: Run, kb: str) -> None:
    memctl("pool", "create", "keep", "-k", kb)
    memctl("pool", "write", "keep", "who", '"Zoltan Querk said so"', "-k", kb)
    memctl("pool", "write", "keep", "Zoltan", '{"a": 1}', "-k", kb)
    memctl("pool", "write", "keep", "other", "1", "-k", kb)
    asked = ("forget", "--entity", "Zoltan", "-k", kb)
    shown = memctl(*asked, "--dry-run", "-o", "table").out
    assert shown.startswith("would forget 2 keys and 3 versions of 1 pool\n")
    would = memctl(*asked, "--dry-run", "-o", "json").json
    done = memctl(*asked, "--yes", "-o", "json").json
    for report in (would, done):
        assert report["pools"] == ["keep"]
        assert report["pool_keys"] == ["keep Zoltan", "keep who"]
        assert report["entries"] == {"pool_keys": 2, "pool_versions": 3, "pool_events": 2}
        assert report["skills"] == []
    kept = memctl("pool", "read", "keep", "-o", "json", "-k", kb).json
    assert kept == {"who": "██████ Querk said so", "other": 1}


def test_a_dry_run_of_a_conversation_counts_what_the_run_takes(memctl: Run, kb: str) -> None:
    session = memctl("session", "start", "-k", kb, "-o", "json").json["session_id"]
    assert memctl("session", "say", session, SENTENCE, "-k", kb).code == 0
    memctl("pool", "create", "own", "--session", session, "-k", kb)
    memctl("pool", "write", "own", "a", "1", "-k", kb)
    memctl("pool", "create", "elsewhere", "-k", kb)
    memctl("pool", "write", "elsewhere", "quote", "--text", f"He said: {SENTENCE}", "-k", kb)
    asked = ("forget", "--session", session, "-k", kb)
    would = memctl(*asked, "--dry-run", "-o", "json").json
    done = memctl(*asked, "--yes", "-o", "json").json
    assert would["pools"] == ["elsewhere", "own"]
    assert would["entries"]["turns"] == 1
    for key in ("pools", "pool_keys", "entries"):
        assert would[key] == done[key]


def test_forgetting_a_conversation_takes_its_pools_whole(memctl: Run, kb: str, home: Path) -> None:
    for session in ("s1", "s2"):
        memctl("pool", "create", f"of-{session}", "--session", session, "-k", kb)
        memctl(
            "pool", "write", f"of-{session}", "agent_bulletin.status", '"in_progress_now"', "-k", kb
        )
        memctl("pool", "write", f"of-{session}", "word", f'"Wittlesham {session}"', "-k", kb)
    done = memctl("forget", "--session", "s1", "--yes", "-k", kb)
    assert done.code == 0, done.err
    rows = memctl("pool", "list", "-k", kb, "-o", "json").json
    assert [row["pool_id"] for row in rows] == ["of-s2"]
    with Home(load_config({"home": str(home)})).open(kb) as base:
        pools = base.store.ledger.pools
        for repository in (pools, pools.keys, pools.versions, pools.events, pools.agents):
            assert {row.pool_id for row in repository.all()} == {"of-s2"}


def test_clearing_a_user_takes_the_pools_made_for_them(memctl: Run, kb: str, home: Path) -> None:
    for user in ("ann", "ben"):
        memctl("pool", "create", f"of-{user}", "--user", user, "--as", "helper", "-k", kb)
        memctl("pool", "write", f"of-{user}", "a", "1", "--user", user, "--as", "helper", "-k", kb)
    memctl("pool", "write", "default", "a", "1", "--user", "ann", "-k", kb)
    assert memctl("user", "clear", "ann", "--yes").code == 0
    with Home(load_config({"home": str(home)})).open(kb) as base:
        pools = base.store.ledger.pools
        for repository in (pools, pools.keys, pools.versions, pools.events, pools.agents):
            assert {row.pool_id for row in repository.all()} == {"default", "of-ben"}


def test_doctor_finds_a_pool_that_cannot_be_read(memctl: Run, kb: str, home: Path) -> None:
    memctl("pool", "create", "ops", "-k", kb)
    assert memctl("doctor", "-k", kb).code == 0
    opened = Home(load_config({"home": str(home)})).open(kb)
    with opened as base, base.store.ledger.transaction() as connection:
        connection.execute("UPDATE pools SET retention_policy = '{'")
    found = memctl("doctor", "-k", kb)
    assert found.code != 0
    assert "pools" in found.out + found.err


def test_secrets_are_taken_out_of_pools_of_a_redacting_knowledge_base(memctl: Run) -> None:
    memctl("kb", "create", "careful", "--redact")
    memctl("pool", "write", "default", "db", '{"password": "Tr0ub4dor&3xyz"}', "-k", "careful")
    shown = memctl("pool", "read", "default", "-k", "careful").out
    assert "Tr0ub4dor" not in shown
    assert "[redacted]" in shown
