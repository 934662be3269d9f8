"""What pools hold: paths, merging, versions, sizes, times to live, and the events of writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.errors import (
    AccessRefused,
    NotFoundError,
    QuotaExceeded,
    UsageError,
    VersionConflict,
)
from memctl.pools import Pools, Retention, parse_scope, remove_expired
from memctl.pools.pool_values import changed_paths, merge_objects, with_value, without_secrets
from memctl.store.ledger.ledger import Ledger
from memctl.store.ledger.pool_repositories import MAX_POOL_EVENTS, MAX_POOL_VERSIONS, encode_json

REGIME = {"regime": "risk_off", "confidence": 0.82}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture
def ops(ann: Pools) -> Pools:
    """Ann's pools, with one called ops."""
    ann.create("ops")
    return ann


def test_a_value_written_under_a_path_is_read_under_it(ops: Pools) -> None:
    change = ops.write("ops", "agent_bulletin.market_regime", REGIME)
    assert (change.version, change.keys) == (1, ("agent_bulletin.market_regime",))
    assert ops.read("ops", "agent_bulletin.market_regime").value == REGIME
    assert ops.read("ops", "agent_bulletin.market_regime.confidence").value == 0.82
    assert ops.read("ops").value == {"agent_bulletin": {"market_regime": REGIME}}


@given(value=JSON)
def test_any_json_is_stored_as_it_is(value: object) -> None:
    assert json.loads(encode_json(value)) == value
    assert with_value({}, ("a", "b"), value) == {"a": {"b": value}}


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, 1.0, "\ud800", "a\0b", "Zürich"])
def test_odd_values_come_back_as_they_were(ops: Pools, value: object) -> None:
    ops.write("ops", "a", value)
    found = ops.read("ops", "a").value
    assert (found, type(found)) == (value, type(value))
    assert ops.read_version("ops", 1, "a").value == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"bytes"])
def test_a_value_that_json_cannot_express_is_refused(ops: Pools, value: object) -> None:
    with pytest.raises(UsageError, match="cannot be stored as JSON"):
        ops.write("ops", "a", value)


@pytest.mark.parametrize("levels", [65, 100_000])
def test_a_value_nested_too_deep_is_refused(ops: Pools, levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    with pytest.raises(UsageError, match="at most 64 levels"):
        ops.write("ops", "a", value)


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", " ", "a. .b", "a\nb", "x" * 1001])
def test_a_key_that_cannot_be_one_is_refused(ops: Pools, key: str) -> None:
    for use in (lambda: ops.write("ops", key, 1), lambda: ops.read("ops", key)):
        with pytest.raises(UsageError):
            use()


def test_a_path_through_what_is_no_object_is_refused_and_nothing_changes(ops: Pools) -> None:
    ops.write("ops", "a.b", 5)
    with pytest.raises(UsageError, match=r"'a\.b' is a number, so it can have no key 'c\.d'"):
        ops.write("ops", "a.b.c.d", 1)
    with pytest.raises(NotFoundError, match=r"'a\.b' is a number, so it has no key 'c'"):
        ops.read("ops", "a.b.c")
    assert ops.get("ops").version == 1


def test_a_key_that_is_not_there_is_answered_with_those_that_are(ops: Pools) -> None:
    ops.replace("ops", {"one": 1, "two": {"three": 3}})
    with pytest.raises(NotFoundError) as missing:
        ops.read("ops", "two.four")
    assert missing.value.hint == "there are three"


def test_merging_goes_into_objects_and_replaces_all_else(ops: Pools) -> None:
    ops.replace("ops", {"limits": {"eur": 1, "usd": {"a": 1}}, "list": [1, 2], "stays": True})
    ops.merge("ops", {"limits": {"usd": {"b": 2}, "chf": 3}, "list": [9]})
    assert ops.read("ops").value == {
        "limits": {"eur": 1, "usd": {"a": 1, "b": 2}, "chf": 3}, "list": [9], "stays": True,
    }  # fmt: skip


@settings(max_examples=30)
@given(
    one=st.dictionaries(st.text(max_size=3), JSON), other=st.dictionaries(st.text(max_size=3), JSON)
)
def test_merging_changes_neither_object_and_twice_is_once(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    before = encode_json(one), encode_json(other)
    both = merge_objects(one, other)
    assert merge_objects(both, other) == both
    assert (encode_json(one), encode_json(other)) == before


@pytest.mark.parametrize("data", [[], 1, "text", None, {"a.b": 1}, {"": 1}])
def test_data_that_no_path_could_reach_is_refused(ops: Pools, data: object) -> None:
    for use in (ops.replace, ops.merge):
        with pytest.raises(UsageError):
            use("ops", data)


def test_a_key_can_be_removed(ops: Pools) -> None:
    ops.replace("ops", {"a": {"b": 1, "c": 2}, "d": 3})
    ops.remove("ops", "a.b")
    ops.remove("ops", "d")
    assert ops.read("ops").value == {"a": {"c": 2}}
    with pytest.raises(NotFoundError, match="no key 'd'"):
        ops.remove("ops", "d")


# --- versions ------------------------------------------------------------------------------------


def test_a_write_for_an_earlier_version_is_refused(ops: Pools) -> None:
    seen = ops.read("ops").version
    ops.write("ops", "a", 1, if_version=seen)
    with pytest.raises(VersionConflict, match="pool 'ops' is at version 1, not 0"):
        ops.write("ops", "a", 2, if_version=seen)
    for use in (
        lambda: ops.merge("ops", {"a": 2}, if_version=0),
        lambda: ops.replace("ops", {}, if_version=0),
        lambda: ops.remove("ops", "a", if_version=0),
        lambda: ops.restore("ops", 1, if_version=0),
    ):
        with pytest.raises(VersionConflict):
            use()
    assert ops.read("ops").value == {"a": 1}


def test_an_earlier_version_can_be_read_and_brought_back(ops: Pools) -> None:
    ops.write("ops", "a", 1)
    ops.merge("ops", {"a": 2, "b": 3})
    assert ops.read_version("ops", 1).value == {"a": 1}
    assert ops.restore("ops", 1).version == 3
    assert ops.read("ops").value == {"a": 1}
    history = [(entry.version, entry.action, entry.keys) for entry in ops.history("ops")]
    assert history == [(3, "restore 1", ("a", "b")), (2, "merge", ("a", "b")), (1, "write", ("a",))]


def test_only_the_latest_20_versions_are_kept(ops: Pools) -> None:
    for number in range(MAX_POOL_VERSIONS + 5):
        ops.write("ops", "a", number)
    assert [entry.version for entry in ops.history("ops")] == list(range(25, 5, -1))
    with pytest.raises(NotFoundError) as missing:
        ops.restore("ops", 5)
    assert missing.value.message == "version 5 of pool 'ops' is not kept"


def test_big_earlier_versions_go_sooner(ops: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memctl.store.ledger.pool_repositories.MAX_VERSION_BYTES", 2_500)
    for number in range(5):
        ops.write("ops", "a", str(number) * 1_000)
    assert [entry.version for entry in ops.history("ops")] == [5, 4, 3]


# --- sizes ---------------------------------------------------------------------------------------


def test_the_size_is_that_of_the_shortest_json(ops: Pools) -> None:
    data = {"a": [1, 2.5, None], "b": {"c": "Zürich"}, "ключ": "\ud800"}
    change = ops.replace("ops", data)
    assert change.data_size_bytes == len(encode_json(data).encode()) - _escaped(data)
    assert ops.get("ops").data_size_bytes == change.data_size_bytes


def _escaped(data: dict[str, Any]) -> int:
    """How much longer the whole is because one surrogate escapes all letters of it."""
    apart = sum(
        len(encode_json(k).encode()) + len(encode_json(v).encode()) for k, v in data.items()
    )
    return len(encode_json(data).encode()) - (apart + 2 * len(data) + 1)


def test_the_oldest_keys_go_when_it_gets_too_big(ann: Pools) -> None:
    ann.create("small", retention=Retention(max_size_bytes=100))
    for name in ("first", "second", "third"):
        ann.write("small", name, "x" * 20)
    ann.write("small", "first", "y" * 20)  # no longer the oldest
    change = ann.write("small", "fourth", "x" * 20)
    assert change.evicted == ("second",)
    assert sorted(ann.read("small").value) == ["first", "fourth", "third"]
    assert change.data_size_bytes <= 100


def test_the_keys_read_least_go_where_that_is_wanted(ann: Pools) -> None:
    ann.create("small", retention=Retention(max_size_bytes=80, eviction="least_read"))
    ann.write("small", "first", "x" * 20)
    ann.write("small", "second", "x" * 20)
    ann.read("small", "first")
    assert ann.write("small", "third", "x" * 20).evicted == ("second",)


def test_a_write_is_refused_where_nothing_may_go(ann: Pools) -> None:
    ann.create("small", retention=Retention(max_size_bytes=50, eviction="refuse"))
    ann.write("small", "first", "x" * 20)
    with pytest.raises(QuotaExceeded, match="would have 64 bytes, and has room for 50"):
        ann.write("small", "second", "x" * 20)
    assert ann.read("small").value == {"first": "x" * 20}
    assert ann.get("small").version == 1


def test_a_value_that_is_too_big_by_itself_makes_nothing_else_go(ops: Pools) -> None:
    ops.write("ops", "stays", 1)
    with pytest.raises(QuotaExceeded, match="has room for 5,000,000"):
        ops.write("ops", "huge", "x" * 10_000_000)
    assert ops.read("ops").value == {"stays": 1}


@pytest.mark.parametrize("size", [-1, 0, 1, 50_000_001])
def test_a_size_that_no_pool_can_have_is_refused(ann: Pools, size: int) -> None:
    with pytest.raises(UsageError, match="a pool cannot have at most"):
        ann.create("ops", retention=Retention(max_size_bytes=size))


# --- times ---------------------------------------------------------------------------------------


def test_a_key_goes_when_its_time_is_over_and_a_write_renews_it(ann: Pools, clock: Any) -> None:
    ann.create("ops", retention=Retention(ttl_seconds=3600))
    ann.write("ops", "old", 1)
    ann.write("ops", "renewed", 1)
    clock.forward(minutes=40)
    ann.write("ops", "renewed", 2)
    clock.forward(minutes=40)
    assert ann.read("ops").value == {"renewed": 2}
    assert ann.get("ops").data_size_bytes == len('{"renewed":2}')
    with pytest.raises(NotFoundError, match="no key 'old'"):
        ann.read("ops", "old")
    ann.write("ops", "new", 3)
    assert ann.read("ops").value == {"renewed": 2, "new": 3}


def test_an_expired_pool_is_neither_listed_nor_read(ann: Pools, clock: Any) -> None:
    ann.create("brief", expires_at=clock.now + timedelta(days=1))
    ann.write("brief", "a", 1)
    clock.forward(days=1)
    assert ann.list() == []
    assert [pool.pool_id for pool in ann.list(include_expired=True)] == ["brief"]
    for use in (lambda: ann.read("brief"), lambda: ann.write("brief", "a", 2)):
        with pytest.raises(NotFoundError, match="'brief' expired at 2026-05-02 12:00 UTC"):
            use()
    ann.create("brief")
    assert ann.read("brief").value == {}, "made anew, it is empty"
    assert ann.history("brief") == []


def test_an_expired_pool_can_be_deleted_by_its_owner(ann: Pools, clock: Any) -> None:
    ann.create("brief", expires_at=clock.now + timedelta(days=1))
    clock.forward(days=2)
    ann.delete("brief")
    assert ann.list(include_expired=True) == []


@pytest.mark.parametrize("seconds", [0, -1, 36_525 * 86_400 + 1])
def test_a_time_to_live_of_nothing_or_over_a_century_is_refused(ann: Pools, seconds: int) -> None:
    with pytest.raises(UsageError, match="cannot be kept to"):
        ann.create("ops", retention=Retention(ttl_seconds=seconds))


def test_a_century_is_kept_to(ann: Pools, clock: Any) -> None:
    ann.create("ops", retention=Retention(ttl_seconds=36_525 * 86_400))
    ann.write("ops", "a", 1)
    clock.forward(days=36_524)
    assert ann.read("ops").value == {"a": 1}
    assert ann.statistics("ops").by_key[0].expires_at is not None


def test_a_pool_cannot_expire_before_it_is_made(ann: Pools, clock: Any) -> None:
    with pytest.raises(UsageError, match="expired before it is made"):
        ann.create("ops", expires_at=clock.now)


def test_a_clock_set_back_loses_nothing_and_keeps_the_order(ann: Pools, clock: Any) -> None:
    ann.create("ops", retention=Retention(ttl_seconds=3600, max_size_bytes=60))
    clock.forward(days=365)
    ann.write("ops", "first", "x" * 10)
    clock.forward(days=-365)
    ann.write("ops", "second", "x" * 10)
    assert ann.write("ops", "third", "x" * 10).evicted == ("first",), "the one written first"
    clock.forward(minutes=61)
    assert ann.read("ops").value == {}


def test_a_key_written_while_the_clock_was_ahead_expires_from_the_next_write_on(
    ann: Pools, clock: Any
) -> None:
    ann.create("ops", retention=Retention(ttl_seconds=3600))
    clock.forward(days=365)
    ann.write("ops", "ahead", 1)
    clock.forward(days=-365)
    assert ann.read("ops").value == {"ahead": 1}
    ann.write("ops", "other", 1)
    clock.forward(minutes=61)
    assert ann.read("ops").value == {}


def test_upkeep_deletes_what_has_expired(ann: Pools, clock: Any, ledger: Ledger) -> None:
    ann.create("brief", expires_at=clock.now + timedelta(hours=1))
    ann.create("ops", retention=Retention(ttl_seconds=3600))
    ann.create("stays")
    for pool in ("brief", "ops", "stays"):
        ann.write(pool, "a", 1)
    assert remove_expired(ledger, clock.now) == 0
    clock.forward(hours=1)
    assert remove_expired(ledger, clock.now) == 2
    assert [pool.pool_id for pool in ledger.pools.all()] == ["ops", "stays"]
    assert [key.pool_id for key in ledger.pools.keys.all()] == ["stays"]
    assert {each.pool_id for each in ledger.pools.versions.all()} == {"ops", "stays"}


# --- events and numbers --------------------------------------------------------------------------


def test_subscribers_are_told_what_was_written_and_by_whom(ops: Pools) -> None:
    before = ops.last_event()
    ops.write("ops", "agent_bulletin.market_regime", REGIME)
    ops.write("ops", "other", 1)
    one, other = ops.events("ops", after=before)
    assert (one.key, one.is_bulletin, one.value) == ("agent_bulletin.market_regime", True, REGIME)
    assert (one.writer, one.version, one.removed) == ("ann", 1, False)
    assert (other.key, other.is_bulletin) == ("other", False)
    assert ops.events("ops", after=before, bulletins_only=True) == [one]
    assert ops.events("ops", after=other.id or 0) == []


def test_a_merge_tells_of_each_bulletin_that_differs(ops: Pools) -> None:
    ops.merge("ops", {"agent_bulletin": {"a": 1, "b": 1}, "x": 1})
    before = ops.last_event()
    change = ops.merge("ops", {"agent_bulletin": {"a": True, "b": 1}, "x": 1})
    assert change.keys == ("agent_bulletin.a",), "1 and true are two values"
    assert [event.key for event in ops.events("ops", after=before)] == ["agent_bulletin.a"]


def test_subscribers_are_told_that_a_key_was_removed(ops: Pools) -> None:
    ops.write("ops", "a", 1)
    ops.remove("ops", "a")
    last = ops.events("ops", after=0)[-1]
    assert (last.key, last.removed, last.value) == ("a", True, None)


def test_of_a_long_value_subscribers_get_the_digest(ops: Pools) -> None:
    ops.write("ops", "agent_bulletin.long", "x" * 5_000)
    (event,) = ops.events("ops", after=0)
    assert event.value is None
    assert len(event.digest or "") == 64


def test_of_a_busy_pool_the_latest_events_are_kept_and_of_others_all(
    ops: Pools, ledger: Ledger
) -> None:
    ops.create("quiet")
    ops.write("quiet", "a", 1)
    with ledger.transaction():
        for _ in range(5):
            ops.replace("ops", {f"k{number}": 1 for number in range(300)})
            ops.replace("ops", {})
    assert len(ops.events("ops", after=0)) == MAX_POOL_EVENTS
    assert len(ops.events("quiet", after=0)) == 1


def test_paths_that_differ_are_told_once_each() -> None:
    before = {"a": 1, "b": {"c": 1}, "agent_bulletin": {"x": 1, "y": 1}}
    after = {"a": 1.0, "b": {"c": 2}, "agent_bulletin": {"y": 2, "z": 1}, "n": None}
    assert changed_paths(before, after) == (
        "a", "b", "agent_bulletin.x", "agent_bulletin.y", "agent_bulletin.z", "n",
    )  # fmt: skip


def test_statistics_count_entries_readings_and_writes_by_agent(
    ops: Pools, acting_as: Callable[..., Pools]
) -> None:
    ops.grant("ops", "bob", "write")
    bob = acting_as("bob")
    ops.replace("ops", {"a": {"b": 1, "c": [1, 2]}, "d": {}, "e": None})
    bob.write("ops", "a.b", 2)
    bob.read("ops", "a.b")
    bob.read("ops")
    ops.read("ops", "d")
    found = ops.statistics("ops")
    assert (found.entries, found.version, found.read_count, found.write_count) == (4, 2, 3, 2)
    assert [(use.agent, use.reads, use.writes) for use in found.by_agent] == [
        ("bob", 2, 1), ("ann", 1, 1),
    ]  # fmt: skip
    assert {use.key: use.reads for use in found.by_key} == {"a": 2, "d": 2, "e": 1}
    assert found.data_size_bytes == len('{"a":{"b":2,"c":[1,2]},"d":{},"e":null}')
    assert found.last_written_at is not None


def test_an_agent_can_see_what_it_wrote_when_the_ledger_takes_no_counts(
    ops: Pools, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    ops.write("ops", "a", 1)
    monkeypatch.setattr(ledger, "_obstacle", "read-only")
    assert ops.read("ops", "a").value == 1
    assert ops.get("ops").read_count == 0


# --- scopes, secrets and runs --------------------------------------------------------------------


def test_words_of_a_scope_are_sorted_into_visibility_and_lifetime() -> None:
    assert parse_scope(["team", "session"]) == ("team", "session")
    assert parse_scope(["execution"]) == (None, "execution")
    assert parse_scope([]) == (None, None)
    for words in (["team", "task"], ["somewhere"], ["session", "execution"]):
        with pytest.raises(UsageError, match="cannot be the scope"):
            parse_scope(words)


def test_secrets_are_taken_out_where_that_is_wanted(acting_as: Callable[..., Pools]) -> None:
    pools = acting_as("ann", redact=True)
    pools.create("ops")
    pools.merge("ops", {"db": {"password": "Tr0ub4dor&3xyz", "host": "db.example.com"}})
    assert pools.read("ops").value["db"]["host"] == "db.example.com"
    assert "Tr0ub4dor" not in encode_json(pools.read("ops").value)
    assert "Tr0ub4dor" not in encode_json(without_secrets({"a": ["password: Tr0ub4dor&3xyz"]}))


def test_a_pool_of_a_run_takes_the_type_and_the_life_of_one(ann: Pools) -> None:
    pool = ann.create("step_data", run_id="4711")
    assert (pool.pool_type, pool.lifetime, pool.run_id) == ("task_scoped", "execution", "4711")


def test_a_run_ends_with_its_pools_but_for_those_that_persist(ann: Pools, bob: Pools) -> None:
    ann.create("steps", run_id="4711")
    ann.create("cache", run_id="4711", persist=True)
    ann.create("other", run_id="4712")
    ending = ann.require_endable(run_id="4711")
    assert [pool.pool_id for pool in ending] == ["steps"]
    ann.release(ending)
    assert [pool.pool_id for pool in ann.list()] == ["cache", "other"]
    with pytest.raises(NotFoundError) as missing:
        ann.require_endable(run_id="4713")
    assert missing.value.hint == "there are the runs 4711, 4712"


def test_a_later_run_binds_a_pool_that_persists_with_what_it_holds(ann: Pools, bob: Pools) -> None:
    ann.create("cache", run_id="1", persist=True)
    ann.write("cache", "a", 1)
    bound = ann.create("cache", run_id="2")
    assert (bound.run_id, bound.version) == ("2", 1)
    assert ann.read("cache").value == {"a": 1}
    with pytest.raises(UsageError, match="is there already"):
        bob.create("cache", run_id="3")


def test_a_run_is_not_ended_by_who_owns_only_some_of_its_pools(ann: Pools, bob: Pools) -> None:
    ann.create("one", run_id="7")
    bob.create("two", run_id="7")
    with pytest.raises(AccessRefused, match="'ann' may not end pool 'two'"):
        ann.require_endable(run_id="7")


def test_a_pool_written_to_while_it_is_archived_stays(ann: Pools) -> None:
    ann.create("steps", run_id="7")
    ending = ann.require_endable(run_id="7")
    ann.write("steps", "late", 1)
    with pytest.raises(VersionConflict, match="while it was archived"):
        ann.release(ending, unchanged=True)
    assert ann.read("steps").value == {"late": 1}


def test_what_is_left_of_a_pool_does_not_come_back_with_a_new_one(
    ann: Pools, ledger: Ledger
) -> None:
    ann.create("ops")
    ann.write("ops", "a", 1)
    ledger.pools.remove("ops")  # as when a forget has struck the row for its name
    with pytest.raises(NotFoundError):
        ann.read("ops")
    ann.create("ops")
    assert ann.read("ops").value == {}
    assert ann.history("ops") == []
