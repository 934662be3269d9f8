"""Who may do what in a pool, below every surface."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memctl.errors import AccessRefused, NotFoundError, UsageError
from memctl.identity import DEFAULT_USER
from memctl.pools import DEFAULT_POOL, Access, Pools

Acting = Callable[..., Pools]


def test_an_agent_without_a_grant_is_told_nothing_of_the_content(ann: Pools, bob: Pools) -> None:
    ann.create("ops", name="Secret plan")
    ann.write("ops", "codeword", "heron")
    attempts: list[Callable[[], object]] = [
        lambda: bob.read("ops"),
        lambda: bob.read("ops", "codeword"),
        lambda: bob.read("ops", "no_such_key"),
        lambda: bob.read_version("ops", 1),
        lambda: bob.read_version("ops", 99),
        lambda: bob.get("ops"),
        lambda: bob.statistics("ops"),
        lambda: bob.history("ops"),
        lambda: bob.events("ops", after=0),
        lambda: bob.write("ops", "codeword.x", 1),
        lambda: bob.write("ops", "codeword", 1, if_version=77),
        lambda: bob.merge("ops", {"a": 1}),
        lambda: bob.replace("ops", {}),
        lambda: bob.remove("ops", "codeword"),
        lambda: bob.restore("ops", 1),
        lambda: bob.grant("ops", "bob", "write"),
        lambda: bob.revoke("ops", "ann"),
        lambda: bob.delete("ops"),
    ]
    for attempt in attempts:
        with pytest.raises(AccessRefused) as denied:
            attempt()
        said = f"{denied.value.message} {denied.value.hint}"
        assert denied.value.exit_code == 1
        assert "owner 'ann'" in denied.value.hint
        assert not any(word in said for word in ("heron", "codeword", "Secret", "version 1"))
    assert [pool.pool_id for pool in bob.list()] == []
    assert ann.read("ops").value == {"codeword": "heron"}
    assert ann.get("ops").read_count == 1, "what was refused is no reading"


def test_a_reader_reads_and_a_writer_does_both(ann: Pools, bob: Pools) -> None:
    ann.create("ops")
    ann.grant("ops", "bob")
    assert bob.read("ops").value == {}
    assert ann.accessible_by("ops", "bob")
    assert not ann.writable_by("ops", "bob")
    with pytest.raises(AccessRefused, match="'bob' may not write to pool 'ops'"):
        bob.write("ops", "a", 1)
    ann.grant("ops", "bob", "write")
    bob.write("ops", "a", 1)
    assert bob.read("ops", "a").value == 1
    with pytest.raises(AccessRefused, match="may not delete"):
        bob.delete("ops")
    ann.grant("ops", "bob", "read")
    assert not ann.writable_by("ops", "bob"), "a later grant replaces the earlier"
    ann.revoke("ops", "bob")
    assert not ann.accessible_by("ops", "bob")
    with pytest.raises(UsageError, match="'ann' owns pool"):
        ann.revoke("ops", "ann")


@pytest.mark.parametrize(
    ("kind", "access", "reads", "writes"),
    [
        ("shared", {}, False, False),
        ("agent_private", {}, False, False),
        ("team_shared", {}, False, False),
        ("task_scoped", {}, False, False),
        ("global", {}, True, False),
        ("shared", {"public": True}, True, True),
        ("team_shared", {"public": True}, True, False),
        ("team_shared", {"agents": ["bob"]}, True, False),
        ("team_shared", {"write": ["bob"]}, True, True),
        ("shared", {"read": ["bob"]}, True, False),
        ("shared", {"public_read": True}, True, False),
        ("agent_private", {"public_write": True}, True, True),
    ],
)
def test_type_and_rights_say_who_may(
    ann: Pools, kind: str, access: dict[str, object], reads: bool, writes: bool
) -> None:
    ann.create("ops", pool_type=kind, access=access)
    assert (ann.accessible_by("ops", "bob"), ann.writable_by("ops", "bob")) == (reads, writes)
    assert ann.accessible_by("ops", "ann")
    assert ann.writable_by("ops", "ann")


@pytest.mark.parametrize(
    "access",
    [
        {"reed": ["bob"]},
        {"read": "bob"},
        {"read": [1]},
        {"public": "yes"},
        {"public": True, "read": ["bob"]},
        {"agents": ["a:b"]},
    ],
)
def test_rights_that_cannot_be_meant_are_refused(ann: Pools, access: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        ann.create("ops", access=access)


def test_a_writer_is_not_also_listed_as_a_reader() -> None:
    access = Access.parse({"read": ["a", "b"], "write": ["b"]}, "shared")
    assert (access.read, access.write) == (("a",), ("b",))


def test_the_default_pool_is_there_for_everybody_and_stays(ann: Pools, bob: Pools) -> None:
    ann.write(DEFAULT_POOL, "greeting", "hello")
    assert bob.read(DEFAULT_POOL, "greeting").value == "hello"
    bob.merge(DEFAULT_POOL, {"answer": 42})
    pool = ann.get(DEFAULT_POOL)
    assert (pool.owner, pool.pool_type) == (DEFAULT_USER, "shared")
    assert pool.access_control["public_read"]
    with pytest.raises(AccessRefused, match="the default pool cannot be deleted"):
        bob.delete(DEFAULT_POOL)
    with pytest.raises(UsageError, match="is there already"):
        ann.create(DEFAULT_POOL)


def test_the_default_pool_is_no_longer_made_anew_once_it_is_there(acting_as: Acting) -> None:
    user = acting_as(DEFAULT_USER)
    user.revoke(DEFAULT_POOL, None)
    user.write(DEFAULT_POOL, "a", 1)
    with pytest.raises(AccessRefused):
        acting_as("ann").read(DEFAULT_POOL)


def test_an_unknown_pool_is_answered_with_those_that_the_caller_may_read(
    ann: Pools, bob: Pools
) -> None:
    ann.create("trading_ops")
    ann.create("weather", access={"public": True})
    with pytest.raises(NotFoundError) as missing:
        ann.read("trading_op")
    assert "did you mean 'trading_ops'?" in missing.value.hint
    assert "weather" in missing.value.hint
    with pytest.raises(NotFoundError) as missing:
        bob.read("trading_op")
    assert "trading_ops" not in missing.value.hint


@pytest.mark.parametrize("pool_id", ["", "A", "a b", "../x", "a" * 65, "con", "-x", "ä"])
def test_an_id_that_cannot_be_one_is_refused(ann: Pools, pool_id: str) -> None:
    with pytest.raises(UsageError, match=r"a pool|Windows"):
        ann.create(pool_id)


def test_an_id_is_taken_whoever_has_it(ann: Pools, bob: Pools) -> None:
    ann.create("ops")
    with pytest.raises(UsageError, match="is there already"):
        bob.create("ops")
