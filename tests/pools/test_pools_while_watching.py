"""What the watcher of a knowledge base does about its pools."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from waiting import wait_for
from watched import Daemon, new_place

from memctl.pools import Retention


def test_the_watcher_tells_of_bulletins_that_it_may_read(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    with place.open() as base:
        base.pools.acting_as("bob").write("default", "agent_bulletin.before", 1)
        with Daemon(place):
            wait_for(lambda: any(event.kind == "serving" for event in place.events))
            bob = base.pools.acting_as("bob")
            bob.create("private")
            bob.write("private", "agent_bulletin.secret", 2)
            bob.write("default", "other", 3)
            bob.write("default", "agent_bulletin.mood", {"is": "good"})
            wait_for(lambda: any(event.kind == "bulletin" for event in place.events))
    (bulletin,) = (event for event in place.events if event.kind == "bulletin")
    assert bulletin.message == 'bob: default agent_bulletin.mood: {"is":"good"}'
    assert bulletin.detail["value"] == {"is": "good"}
    assert (bulletin.detail["writer"], bulletin.detail["version"]) == ("bob", 3)


def test_upkeep_of_the_watcher_deletes_what_has_expired(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    with place.open() as base:
        ann, ledger = base.pools.acting_as("ann"), base.store.ledger
        ann.create("brief", expires_at=base.clock() + timedelta(milliseconds=50))
        ann.create("short", retention=Retention(ttl_seconds=1))
        ann.write("short", "a", 1)
        with Daemon(place, upkeep_seconds=0.2):
            wait_for(lambda: ledger.pools.find("brief") is None and not ledger.pools.keys.all())
        assert ledger.pools.find("short") is not None
