"""Pools at the command line: the walk of the manual, and what is refused with which code."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

Run = Callable[..., Any]
REGIME = '{"regime":"risk_off","confidence":0.82}'


def test_a_value_that_one_agent_wrote_is_read_exactly_by_another_that_may(memctl: Run) -> None:
    made = memctl(
        "pool", "create", "trading_ops", "--name", "Trading", "--type", "shared",
        "--ttl", "7d", "--max-size", "5MB", "--as", "agent1", "-o", "json",
    )  # fmt: skip
    assert made.code == 0
    assert made.json["retention_policy"] == {
        "ttl_seconds": 604_800, "max_size_bytes": 5_000_000, "eviction": "oldest",
    }  # fmt: skip
    assert (made.json["visibility"], made.json["lifetime"]) == ("account", "persistent")
    key = ("trading_ops", "agent_bulletin.market_regime")
    assert memctl("pool", "write", *key, REGIME, "--as", "agent1").code == 0
    denied = memctl("pool", "read", *key, "-o", "json", "--as", "agent2")
    assert (denied.code, denied.out) == (1, "")
    assert "'agent2' may not read pool 'trading_ops'" in denied.err
    assert "hint: its owner 'agent1' can grant the level" in denied.err
    assert memctl("pool", "grant", "trading_ops", "agent2", "--as", "agent1").code == 0
    read = memctl("pool", "read", *key, "-o", "json", "--as", "agent2")
    assert read.json == json.loads(REGIME)
    whole = memctl("pool", "read", *key, "--with-version", "-o", "json", "--as", "agent2").json
    assert whole == {
        "success": True, "pool_id": "trading_ops", "key": key[1], "value": read.json, "version": 1,
    }  # fmt: skip
    assert memctl("pool", "revoke", "trading_ops", "agent2", "--as", "agent1").code == 0
    assert memctl("pool", "read", *key, "--as", "agent2").code == 1


def test_the_caller_is_the_agent_else_the_user_else_the_default_user(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def owner(pool: str, *options: str) -> str:
        found: str = memctl("pool", "create", pool, *options, "-o", "json").json["owner"]
        return found

    assert owner("own1") == "default_user"
    monkeypatch.setenv("MEMCTL_USER", "ann")
    assert owner("own2") == "ann"
    monkeypatch.setenv("MEMCTL_AGENT", "helper")
    assert owner("own3") == "helper"
    assert owner("own4", "--as", "other") == "other"
    assert owner("own5", "--agent", "other") == "other"


@pytest.mark.parametrize("format_", ["table", "json", "ndjson", "csv", "arrow"])
def test_every_listing_and_value_comes_in_every_format(memctl: Run, format_: str) -> None:
    memctl("pool", "create", "formats")
    memctl("pool", "write", "formats", "a.b", '{"c": [1, null, "Zürich"]}')
    for words in (
        ("list",), ("show", "formats"), ("read", "formats", "a"), ("history", "formats"),
        ("stats", "formats"),
    ):  # fmt: skip
        done = memctl("pool", *words, "-o", format_)
        assert done.code == 0, done.err
        assert "Zürich" in done.out or words[0] != "read"
        assert "formats" in done.out or words[0] in ("read", "history")


def test_a_value_comes_alone_on_one_line_in_a_pipe(memctl: Run) -> None:
    memctl("pool", "create", "plain")
    memctl("pool", "merge", "plain", '{"a": {"b": "Zürich"}, "n": 5}')
    assert memctl("pool", "read", "plain", "a").out == '{"b": "Zürich"}\n'
    assert memctl("pool", "read", "plain", "n").out == "5\n"
    assert memctl("pool", "read", "plain", "a", "-o", "csv").out.startswith("key,value\na,")


def test_data_goes_through_pipes(memctl: Run) -> None:
    memctl("pool", "create", "pipe")
    assert memctl("pool", "merge", "pipe", "-", stdin='{"a": {"x": 1}}').code == 0
    assert memctl("pool", "merge", "pipe", "-", stdin='{"a": {"y": 2}}').code == 0
    assert memctl("pool", "write", "pipe", "log", "--text", "-", stdin="two\nlines").code == 0
    assert memctl("pool", "read", "pipe", "-o", "json").json == {
        "a": {"x": 1, "y": 2}, "log": "two\nlines",
    }  # fmt: skip
    assert memctl("pool", "write", "pipe", "--all", "-", stdin='{"b": -1}').code == 0
    assert memctl("pool", "write", "pipe", "c", "--", "-5").code == 0
    assert memctl("pool", "write", "pipe", "b", "--remove").code == 0
    assert memctl("pool", "read", "pipe", "-o", "json").json == {"c": -5}


def test_earlier_versions_are_listed_read_and_brought_back(memctl: Run) -> None:
    memctl("pool", "create", "past")
    memctl("pool", "write", "past", "a", "1")
    memctl("pool", "write", "past", "a", "2")
    rows = memctl("pool", "history", "past", "-o", "json").json
    assert [(row["version"], row["keys"]) for row in rows] == [(2, ["a"]), (1, ["a"])]
    assert memctl("pool", "read", "past", "a", "--version", "1").out == "1\n"
    assert memctl("pool", "restore", "past", "1", "--if-version", "1").code == 1
    assert memctl("pool", "restore", "past", "1", "--if-version", "2").code == 0
    assert memctl("pool", "read", "past").out == '{"a": 1}\n'


def test_keys_removed_to_make_room_are_named(memctl: Run) -> None:
    memctl("pool", "create", "tiny", "--max-size", "35")
    memctl("pool", "write", "tiny", "old", '"0123456789"')
    done = memctl("pool", "write", "tiny", "new", '"0123456789"', "-o", "json")
    assert "note: removed to make room: old" in done.err
    assert done.json["evicted"] == ["old"]
    memctl("pool", "create", "strict", "--max-size", "35", "--eviction", "refuse")
    memctl("pool", "write", "strict", "old", '"0123456789"')
    refused = memctl("pool", "write", "strict", "new", '"0123456789"')
    assert refused.code == 1
    assert "hint: remove keys first" in refused.err


def test_the_default_pool_stays(memctl: Run) -> None:
    assert memctl("pool", "write", "default", "a", "1", "--as", "agent1").code == 0
    assert memctl("pool", "read", "default", "a", "--as", "agent2").out == "1\n"
    refused = memctl("pool", "delete", "default", "--yes")
    assert refused.code == 1
    assert "the default pool cannot be deleted" in refused.err
    assert memctl("pool", "show", "default").code == 0


def test_an_expired_pool_is_neither_listed_nor_read(memctl: Run) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    assert memctl("pool", "create", "brief", "--expires", soon).code == 0
    memctl("pool", "write", "brief", "code", '"Quokka-4711"')
    wait_for(lambda: "brief" not in memctl("pool", "list", "-o", "json").out)
    for words in (("read", "brief"), ("show", "brief"), ("history", "brief")):
        refused = memctl("pool", *words)
        assert (refused.code, refused.out) == (1, "")
        assert "'brief' expired at" in refused.err
        assert "Quokka" not in refused.err


def test_deleting_asks_first_and_says_what_goes(memctl: Run) -> None:
    memctl("pool", "create", "gone")
    assert memctl("pool", "delete", "gone").code == 2
    assert "would delete pool gone" in memctl("pool", "delete", "gone", "--dry-run").out
    assert memctl("pool", "delete", "gone", "--yes", "--as", "stranger").code == 1
    assert memctl("pool", "delete", "gone", "--yes").code == 0
    missing = memctl("pool", "read", "gone")
    assert missing.code == 1
    assert "there is no pool 'gone'" in missing.err


def test_everybody_can_be_granted_a_right_at_once(memctl: Run) -> None:
    memctl("pool", "create", "open", "--type", "team_shared")
    memctl("pool", "grant", "open", "--public", "--level", "write")
    assert memctl("pool", "write", "open", "a", "1", "--as", "anybody").code == 0
    memctl("pool", "grant", "open", "bob")
    assert "bob may still do what everybody may" in memctl("pool", "revoke", "open", "bob").err
    memctl("pool", "revoke", "open", "--public")
    assert memctl("pool", "read", "open", "--as", "anybody").code == 1
    assert memctl("pool", "grant", "open").code == 2
    assert memctl("pool", "grant", "open", "bob", "--public").code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create", "Bad Name"), "cannot be the name of a pool"),
        (("create", "p1", "--ttl", "0"), "a time to live of 0 seconds"),
        (("create", "p1", "--ttl", "0d"), "a time to live of 0 seconds"),
        (("create", "p1", "--ttl", "101y"), "cannot be kept to"),
        (("create", "p1", "--ttl", "99999999999y"), "cannot be kept to"),
        (("create", "p1", "--ttl", "-1d"), "'-1d' is no duration"),
        (("create", "p1", "--ttl", ""), "--ttl is empty"),
        (("create", "p1", "--max-size", "lots"), "'lots' is no size"),
        (("create", "p1", "--max-size", "1GB"), "a pool cannot have at most"),
        (("create", "p1", "--expires", "yesterday"), "expired before it is made"),
        (("create", "p1", "--expires", "99999999999d"), "is too long"),
        (("create", "p1", "--scope", "nowhere"), "cannot be the scope"),
        (("create", "p1", "--access", "[]"), "--access is a JSON object"),
        (("create", "p1", "--access", '{"who": []}'), "rights of a pool have no key 'who'"),
        (("create", "p1", "--public", "--access", "{}"), "do not go together"),
        (("create", "p1", "--type", "secret"), "secret"),
        (("write", "default", "a..b", "1"), "has an empty part"),
        (("write", "default", "", "1"), "has an empty part"),
        (("write", "default", "a", "{"), "the value is no JSON"),
        (("write", "default", "a", "hello"), "add --text"),
        (("write", "default", "a", "NaN"), "cannot be stored as JSON"),
        (("write", "default", "a", "1e999"), "cannot be stored as JSON"),
        (("write", "default", "a"), "write a key and a value, not 1 word"),
        (("write", "default", "a", "--remove", "--all"), "do not go together"),
        (("write", "default", "--all", "[1]"), "is a JSON object, not a list"),
        (("merge", "default", '{"a.b": 1}'), "has a dot"),
        (("write", "default", "a", "[" * 100_000), "at most 64 levels"),
        (("end",), "end what?"),
        (("end", "--run", ""), "--run is empty"),
        (("watch", "default", "--as", "a:b"), "cannot be the name of an agent"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    memctl: Run, words: tuple[str, ...], says: str
) -> None:
    memctl("pool", "write", "default", "here", "true")
    done = memctl("pool", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_value_of_ten_megabytes_is_refused_and_costs_nothing_else(memctl: Run) -> None:
    memctl("pool", "create", "wide")
    memctl("pool", "write", "wide", "stays", "1")
    done = memctl("pool", "write", "wide", "huge", "--text", "-", stdin="x" * 10_000_000)
    assert done.code == 1
    assert "has room for 5,000,000" in done.err
    assert len(done.err) < 500
    assert memctl("pool", "read", "wide").out == '{"stays": 1}\n'
    latin = memctl("pool", "write", "wide", "a", "--text", "-", stdin=b"caf\xe9")
    assert (latin.code, "standard input is no UTF-8" in latin.err) == (2, True)


def test_a_path_through_a_number_is_refused(memctl: Run) -> None:
    memctl("pool", "write", "default", "count", "5")
    done = memctl("pool", "write", "default", "count.of.what", "1")
    assert done.code == 2
    assert "'count' is a number, so it can have no key 'of.what'" in done.err


def test_a_context_carries_data_between_steps_and_ends_as_a_document(memctl: Run) -> None:
    memctl("pool", "create", "steps", "--run", "run-7", "--name", "Nightly build")
    memctl("pool", "create", "cache", "--run", "run-7", "--persist")
    memctl("pool", "create", "empty", "--run", "run-7")
    memctl("pool", "write", "steps", "compile", '{"seconds": 41, "by": "the build machine"}')
    memctl("pool", "write", "steps", "verdict", "--text", "Zanzibar is ready for the release.")
    listed = memctl("pool", "list", "--run", "run-7", "-o", "json").json
    assert [row["pool_id"] for row in listed] == ["cache", "empty", "steps"]
    would = memctl("pool", "end", "--run", "run-7", "--archive", "--dry-run")
    assert "would archive and delete empty, steps" in would.out
    ended = memctl("pool", "end", "--run", "run-7", "--archive", "--yes", "-o", "json")
    assert ended.code == 0, ended.err
    assert (ended.json["deleted"], ended.json["kept"]) == (["empty", "steps"], ["cache"])
    (document,) = ended.json["documents"]
    shown = memctl("document", "show", document, "-o", "json").json
    assert shown["document"]["source"] == "pool:steps"
    assert "Zanzibar is ready for the release." in shown["document"]["text"]
    assert "seconds: 41" in shown["document"]["text"]
    assert memctl("pool", "read", "steps").code == 1
    bound = memctl("pool", "create", "cache", "--run", "run-8", "-o", "json")
    assert (bound.code, bound.json["run_id"]) == (0, "run-8")
    missing = memctl("pool", "end", "--run", "run-7", "--yes")
    assert missing.code == 1
    assert "no pool belongs to run 'run-7'" in missing.err


def test_pools_of_a_conversation_end_with_it(memctl: Run) -> None:
    made = memctl("pool", "create", "talk", "--scope", "session", "--session", "s1", "-o", "json")
    assert (made.json["lifetime"], made.json["session_id"]) == ("session", "s1")
    assert memctl("pool", "end", "--session", "s1", "--yes").code == 0
    assert memctl("pool", "show", "talk").code == 1


def test_pools_of_one_knowledge_base_are_not_in_another(memctl: Run) -> None:
    memctl("kb", "create", "apart")
    memctl("pool", "create", "here", "-k", "apart")
    assert memctl("pool", "read", "here", "-k", "apart").code == 0
    assert memctl("pool", "read", "here").code == 1
    assert memctl("pool", "list", "-k", "nowhere").code == 10
    memctl("kb", "archive", "apart")
    assert memctl("pool", "read", "here", "-k", "apart").code == 0
    assert memctl("pool", "show", "here", "-k", "apart", "-o", "json").json["read_count"] == 1
    refused = memctl("pool", "write", "here", "a", "1", "-k", "apart")
    assert (refused.code, "is archived" in refused.err) == (1, True)


def test_looking_at_pools_makes_no_knowledge_base(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / "fresh"))
    assert memctl("pool", "list").code == 10
    assert not (tmp_path / "fresh").exists()


def test_values_are_found_by_a_query_that_asks_for_them_and_by_those_who_may_read_them(
    memctl: Run,
) -> None:
    memctl("ingest", "-", stdin="The garden is dry.")
    memctl("pool", "create", "ops", "--name", "Trading", "--as", "agent1")
    memctl("pool", "write", "ops", "regime", '"markets avoid risk"', "--as", "agent1")
    memctl("pool", "write", "ops", "lunch", '"soup at noon"', "--as", "agent1")
    asked = ("query", "risk in markets", "-o", "json", "--as")
    assert "avoid risk" not in memctl(*asked, "agent1").out
    found = memctl(*asked, "agent1", "--tier", "shared").json
    best = found["hits"][0]
    assert (best["source"], best["text"]) == ("pool ops, key regime", "markets avoid risk")
    assert (best["title"], best["rank"], found["answer"]) == ("Trading", 1, None)
    later = memctl(*asked, "agent1", "--tier", "shared", "--offset", "1").json["hits"]
    assert later == found["hits"][1:]
    others = memctl(*asked, "agent2", "--tier", "shared").json["hits"]
    assert not any(hit["source"].startswith("pool ops,") for hit in others)
    assert memctl(*asked, "agent1", "--tier", "shared", "--tag", "x").code == 2
