"""Working memory: values by key for minutes, places with names, sharing with one agent, copies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from memctl.errors import NothingFound, UsageError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase

from .conftest import Clock


def test_a_value_is_there_until_its_time_is_over(kb: KnowledgeBase, clock: Clock) -> None:
    working = kb.router(agent="a", session="s").working
    working.store("step", {"n": 1}, ttl=300)
    assert working.retrieve("step") == {"n": 1}
    assert working.exists("step")
    assert working.keys() == ["step"]
    asked = "select key from working_values"
    clock.forward(seconds=299)
    assert working.exists("step")
    assert kb.sql(asked).read_all().num_rows == 1
    clock.forward(seconds=1)
    assert not working.exists("step")
    assert working.retrieve("step", "none") == "none"
    assert working.keys() == []
    assert kb.sql(asked).read_all().num_rows == 0
    assert kb.store.ledger.working.count() == 1, "nothing has swept it, and still it is not shown"


def test_a_value_lasts_as_long_as_the_settings_say(kb: KnowledgeBase, clock: Clock) -> None:
    working = kb.router(agent="a", session="s").working
    assert working.store("a", None).expires_at == clock.now + timedelta(minutes=30)
    assert working.exists("a")
    assert working.retrieve("a", "default") is None
    assert working.store("b", 1, ttl=0).expires_at is None


def test_a_value_without_a_time_goes_with_its_session(kb: KnowledgeBase, clock: Clock) -> None:
    session = kb.sessions.start("talk", user="ann")
    working = kb.router(session="talk", user="ann").working
    working.store("stays", 1, ttl=0)
    working.store("timed", 2, ttl=600)
    nobody = kb.sessions.start("other")
    mine = kb.router(session="other").working
    mine.store("stays", 1, ttl=0)
    clock.forward(days=300)
    assert working.keys() == ["stays"]
    working.store("timed", 2, ttl=600)
    kb.sessions.end(session)
    assert working.keys() == ["timed"]
    kb.sessions.end(nobody)
    assert mine.keys() == []


def test_agents_sessions_and_users_have_values_of_their_own(kb: KnowledgeBase) -> None:
    kb.router(agent="a", session="s").working.store("k", "of a in s")
    for other in (
        kb.router(agent="b", session="s"),
        kb.router(agent="a", session="t"),
        kb.router(agent="a", session="s", user="ann"),
        kb.router(agent="a"),
    ):
        assert not other.working.exists("k")
        assert other.working.list() == []
        assert other.read("k", tier="working") is None


def test_values_are_removed_one_by_one_or_all_together(kb: KnowledgeBase) -> None:
    working = kb.router(agent="a", session="s").working
    for key in "xyz":
        working.store(key, key)
    assert working.remove("x")
    assert not working.remove("x")
    assert working.clear() == 2
    assert working.list() == []


def test_the_places_of_working_memory_hold_what_they_are_named_for(kb: KnowledgeBase) -> None:
    working = kb.router(agent="a", session="s").working
    working.set_task_state({"goal": "boiler", "done": 1})
    working.set_step_result("look", ["x"])
    working.set_step_result("ask", 3)
    working.set_conversation([{"role": "user", "content": "hi"}])
    working.add_message({"role": "assistant", "content": "hello"})
    working.set_tool_state("browser", {"page": 2})
    working.add_to_scratch_pad("one")
    working.add_to_scratch_pad("two")
    assert working.task_state() == {"goal": "boiler", "done": 1}
    assert working.step_results() == {"look": ["x"], "ask": 3}
    assert working.step_result("ask") == 3
    assert [each["role"] for each in working.conversation()] == ["user", "assistant"]
    assert working.tool_state("browser") == {"page": 2}
    assert working.tool_state("shell") is None
    assert working.scratch_pad() == "one\ntwo"
    working.set_scratch_pad("new")
    assert working.scratch_pad() == "new"
    assert working.keys() == [], "places are no keys"


@pytest.mark.parametrize(
    ("place", "value"), [("task_state", []), ("conversation", "hi"), ("scratch_pad", 3)]
)
def test_a_place_refuses_what_it_does_not_hold(
    kb: KnowledgeBase, place: str, value: object
) -> None:
    with pytest.raises(UsageError, match=f"{place} holds"):
        kb.router(agent="a").working.put(place, "k", value)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing can be appended"):
        kb.router(agent="a").working.append("tool_state", value)


def test_only_the_agent_that_a_value_is_shared_with_reads_it(
    kb: KnowledgeBase, clock: Clock
) -> None:
    kb.router(agent="a", session="s").working.share_with_agent("b", "plan", "the secret plan", 60)
    assert kb.router(agent="b").working.retrieve_shared("a", "plan") == "the secret plan"
    assert [each.key for each in kb.router(agent="b").working.shared_with_me()] == ["plan"]
    messages = []
    for agent, key in (("c", "plan"), ("c", "other"), ("a", "plan")):
        with pytest.raises(NothingFound) as caught:
            kb.router(agent=agent).working.retrieve_shared("a", key)
        messages.append(caught.value.message + caught.value.hint)
        assert "secret" not in messages[-1]
    assert messages[0].replace("plan", "other") == messages[1], "nothing tells that it is there"
    assert kb.router(agent="c").working.shared_with_me() == []
    clock.forward(seconds=60)
    with pytest.raises(NothingFound):
        kb.router(agent="b").working.retrieve_shared("a", "plan")


def test_a_copy_under_a_name_brings_back_all_places_in_another_session(
    kb: KnowledgeBase, clock: Clock
) -> None:
    working = kb.router(agent="a", session="s").working
    with pytest.raises(UsageError, match="no working memory to save"):
        working.save("lunch")
    working.store("k", [1], ttl=60)
    working.set_scratch_pad("pad", ttl=0)
    assert working.save("lunch") == 2
    clock.forward(days=400)
    later = kb.router(agent="a", session="t").working
    later.store("other", 1)
    assert later.load("lunch") == 2
    assert (later.retrieve("k"), later.scratch_pad(), later.keys()) == ([1], "pad", ["k"])
    found = later.find("value", "k")
    assert found is not None
    assert found.expires_at == clock.now + timedelta(seconds=60)
    assert later.saved() == ["lunch"]
    with pytest.raises(NothingFound, match="no copy 'dinner'"):
        later.load("dinner")
    with pytest.raises(NothingFound):
        kb.router(agent="b", session="t").working.load("lunch")


def test_ten_thousand_writes_take_seconds_and_leave_the_tables_alone(kb: KnowledgeBase) -> None:
    before = kb.store.ledger.head()
    files = sorted(path for path in kb.layout.folder.rglob("*.lance/**/*"))
    working = kb.router(agent="a", session="s").working
    with kb.store.write():  # somebody else writes to the tables
        began = time.monotonic()
        for number in range(10_000):
            working.store(f"k{number}", {"n": number})
        seconds = time.monotonic() - began
    assert working.retrieve("k9999") == {"n": 9999}
    assert kb.store.ledger.head() == before
    assert sorted(path for path in kb.layout.folder.rglob("*.lance/**/*")) == files
    assert seconds < 60, "an fsync for each would take minutes"


APPENDS = """
import sys
from memctl.config import load_config
from memctl.home import Home

with Home(load_config({"home": sys.argv[1]}, {})).open("notes") as base:
    working = base.router(agent="a", session="s").working
    for number in range(40):
        working.add_message(f"{sys.argv[2]}{number}")
        working.store(f"{sys.argv[2]}{number}", number)
"""


def test_two_processes_that_write_at_once_lose_nothing(
    home: Home, kb: KnowledgeBase, clock: Clock
) -> None:
    folder = str(home.config.home)
    running = [subprocess.Popen([sys.executable, "-c", APPENDS, folder, name]) for name in "xy"]
    assert [each.wait(120) for each in running] == [0, 0]
    from memctl.instants import utc_now

    clock.now, before = utc_now(), clock.now
    try:
        working = kb.router(agent="a", session="s").working
        assert len(working.conversation()) == 80
        assert len(working.keys()) == 80
    finally:
        clock.now = before


@pytest.mark.parametrize("ttl", [-1, 1e-3, 3_155_760_000, float("nan"), float("inf")])
def test_a_time_to_live_that_cannot_be_kept_to_is_refused(kb: KnowledgeBase, ttl: float) -> None:
    router = kb.router(agent="a", session="s")
    with pytest.raises(UsageError):
        router.short_term.write("k", 1, ttl=ttl)
    if ttl < 0 or ttl > 1:
        with pytest.raises(UsageError):
            router.working.store("k", 1, ttl=ttl)
    with pytest.raises(UsageError):
        router.short_term.write("k", 1, ttl=0)
    assert router.read("k") is None


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("k", "x" * (1 << 20), "at most 1,048,576"),
        ("k", {1, 2}, "cannot be stored as JSON"),
        ("k", float("nan"), "cannot be stored as JSON"),
        ("k", b"bytes", "cannot be stored as JSON"),
        ("", 1, "key is empty"),
        (" ", 1, "key is empty"),
        ("k" * 501, 1, "at most 500"),
        ("a\nb", 1, "cannot be shown"),
    ],
)
def test_what_cannot_be_a_value_or_a_key_is_refused_with_a_hint(
    kb: KnowledgeBase, key: str, value: object, says: str
) -> None:
    router = kb.router(agent="a", session="s")
    for tier in ("working", "short_term", "shared", "long_term"):
        with pytest.raises(UsageError, match=says):
            router.write(key, value, tier)  # type: ignore[arg-type]
    assert kb.store.ledger.working.count() + kb.store.ledger.short_term.count() == 0


def test_a_value_of_a_megabyte_is_kept(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="s")
    value = "x" * ((1 << 20) - 2)
    router.working.store("big", value)
    assert router.working.retrieve("big") == value


def test_a_value_nested_without_end_is_refused(kb: KnowledgeBase) -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UsageError, match="levels"):
        kb.router(agent="a").working.store("k", deep)


def test_texts_that_are_no_unicode_come_back_as_they_can_be_stored(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="s")
    router.working.store("k", {"word": "a\udcffb"})
    assert json.dumps(router.working.retrieve("k"))
    router.write("odd", "the lone surrogate \udcff of the boiler", "long_term")
    found = router.read("odd")
    assert found is not None
    assert found.value == "the lone surrogate ? of the boiler"


def test_a_clock_that_was_ahead_does_not_keep_values_for_years(
    kb: KnowledgeBase, clock: Clock
) -> None:
    clock.forward(days=3_650)
    router = kb.router(agent="a", session="s")
    router.working.store("k", 1, ttl=60)
    router.short_term.write("e", 1, ttl=60)
    router.short_term.refresh_ttl("e", 120)
    clock.forward(days=-3_650)
    assert router.working.exists("k")
    assert router.short_term.find("e") is not None
    clock.forward(seconds=121)
    assert not router.working.exists("k")
    assert router.short_term.find("e") is None


def test_secrets_are_taken_out_where_the_knowledge_base_redacts(home: Home) -> None:
    if not home.exists("careful"):
        home.create("careful", redact=True)
    with home.open("careful") as base:
        router = base.router(agent="a", session="s")
        router.working.store("login", {"password": "hunter2-swordfish", "user": "ann"})
        router.short_term.write("note", "the key is sk-proj-abcdefghijklmnopqrstuvwx12345678")
        assert router.working.retrieve("login")["user"] == "ann"
        assert "hunter2" not in json.dumps(router.working.retrieve("login"))
        entry = router.short_term.read("note")
        assert entry is not None
        assert "abcdefghij" not in entry.memory_value


def test_nothing_is_written_to_an_archived_knowledge_base_and_all_is_read(home: Home) -> None:
    from memctl.errors import KnowledgeBaseUnavailable

    home.create("old")
    with home.open("old") as base:
        base.router(session="s").write("k", "v")
    home.set_status("old", "archived")
    with home.open("old") as base:
        router = base.router(session="s")
        found = router.read("k")
        assert found is not None
        assert (found.value, found.access_count) == ("v", 0)
        for tier in ("working", "short_term", "long_term", "shared"):
            with pytest.raises(KnowledgeBaseUnavailable):
                router.write("k", "other", tier)  # type: ignore[arg-type]
        with pytest.raises(KnowledgeBaseUnavailable):
            router.working.clear()
        with pytest.raises(KnowledgeBaseUnavailable):
            base.tiers.promote()
