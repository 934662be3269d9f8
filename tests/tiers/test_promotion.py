"""What becomes of short-term entries that are over: memories, or nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from killed import images_of

from memctl.config import load_config
from memctl.errors import NothingFound
from memctl.forget import Selection
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Filters
from memctl.schedules import OFF
from memctl.upkeep.runner import Upkeep

from .conftest import Clock, Run

ALL = Filters()


def _texts(kb: KnowledgeBase, **filters: Any) -> list[str]:
    found: Sequence[str] = kb.memories.list(Filters(**filters)).column("text").to_pylist()
    return sorted(found)


def _read(kb: KnowledgeBase, key: str, times: int, session: str, agent: str = "a") -> None:
    for _ in range(times):
        assert kb.router(agent=agent, session=session).short_term.read(key) is not None


def test_an_entry_read_three_times_becomes_a_memory_and_one_read_twice_goes(
    kb: KnowledgeBase, clock: Clock
) -> None:
    router = kb.router(agent="a", session="first")
    router.short_term.write("fixer", "The boiler is fixed by Ann Lee from Leeds.", ttl=1)
    router.short_term.write("lunch", "Soup of the day is leek.", ttl=1)
    _read(kb, "fixer", 3, "first")
    _read(kb, "lunch", 2, "first")
    clock.forward(seconds=1)
    assert router.read("fixer") is None
    trial = kb.tiers.promote(dry_run=True)
    assert [each.key for each in trial.promoted] == ["fixer"]
    assert trial.removed == 1
    report = kb.tiers.promote()
    assert [each.key for each in report.promoted] == ["fixer"]
    assert report.removed == 1
    assert _texts(kb, session="first") == ["The boiler is fixed by Ann Lee from Leeds."]
    assert kb.query("who fixes the boiler?").hits[0].text.startswith("The boiler is fixed")
    assert kb.store.ledger.short_term.count() == 0
    again = kb.tiers.promote()
    assert (again.promoted, again.removed) == ((), 0)
    job = kb.store.ledger.jobs.recent(2, "promotion")[1]
    assert (job.detail["promoted"], job.detail["removed"]) == (1, 1)


def test_a_promoted_memory_says_where_it_is_from(kb: KnowledgeBase, clock: Clock) -> None:
    router = kb.router(agent="planner", session="origin")
    written = clock.now
    value = {"host": "db1", "password": "hunter2-swordfish", "ports": [1, 2]}
    router.short_term.write("probe", value, type_="tool_result", ttl=60)
    for _ in range(5):
        router.short_term.read("probe")
    clock.forward(seconds=60)
    (made,) = kb.tiers.promote().promoted
    assert made.memory_id is not None
    memory = kb.memories.get(made.memory_id).memory
    assert memory.type == "tool_output"
    assert "host: db1" in memory.text
    assert "ports: 1, 2" in memory.text
    assert "hunter2" not in memory.text
    assert "hunter2" not in json.dumps(dict(memory.metadata))
    assert memory.source == "session:origin"
    assert memory.method == "promoted"
    assert memory.importance == pytest.approx(0.6)
    assert (memory.agent_id, memory.source_type, memory.kind) == ("planner", "tool", "experiential")
    assert (memory.metadata["key"], memory.metadata["reads"]) == ("probe", 5)
    assert memory.created_at == written
    found = router.read("probe")
    assert found is not None
    assert (found.tier, found.value["ports"]) == ("long_term", [1, 2])


@pytest.mark.parametrize(
    ("type_", "becomes"),
    [
        ("conversation", "conversation_summary"),
        ("reflection", "reflection"),
        ("observation", "observation"),
        ("task_context", "fact"),
    ],
)
def test_the_type_of_an_entry_decides_the_type_of_its_memory(
    kb: KnowledgeBase, clock: Clock, type_: Any, becomes: str
) -> None:
    short_term = kb.router(agent="a", session=f"type-{type_}").short_term
    short_term.write("k", f"The kettle of room {type_} holds two litres.", type_=type_, ttl=1)
    _read(kb, "k", 3, f"type-{type_}")
    clock.forward(seconds=1)
    (made,) = kb.tiers.promote().promoted
    assert made.memory_id is not None
    assert kb.memories.get(made.memory_id).memory.type == becomes


def test_importance_grows_with_reads_up_to_a_bound(kb: KnowledgeBase, clock: Clock) -> None:
    kb.router(agent="a", session="busy").short_term.write("k", "The gate code is changed monthly.")
    _read(kb, "k", 30, "busy")
    (made,) = kb.router(agent="a", session="busy").consolidate().promoted
    assert made.memory_id is not None
    assert kb.memories.get(made.memory_id).memory.importance == pytest.approx(0.8)


def test_consolidate_promotes_at_once_and_leaves_what_is_not_over(kb: KnowledgeBase) -> None:
    router = kb.router(agent="a", session="now")
    router.short_term.write("often", "The spare key hangs in the shed.")
    router.short_term.write("seldom", "The shed is green.")
    kb.router(agent="a", session="elsewhere").short_term.write("often", "The attic is dry.")
    _read(kb, "often", 3, "now")
    _read(kb, "often", 3, "elsewhere")
    report = router.consolidate()
    assert [each.key for each in report.promoted] == ["often"]
    found = router.read("often")
    assert found is not None
    assert found.tier == "long_term"
    assert router.short_term.find("seldom") is not None
    assert kb.router(agent="a", session="elsewhere").short_term.find("often") is not None


def test_nearly_the_same_of_one_session_becomes_one_memory_with_versions(
    kb: KnowledgeBase, clock: Clock
) -> None:
    short_term = kb.router(agent="a", session="twins").short_term
    short_term.write("one", "The invoice of the plumber is due on 3 June 2026 at noon.")
    clock.forward(seconds=1)
    short_term.write("two", "The invoice of the plumber is due on 4 June 2026 at noon.")
    short_term.write("far", "Marta plays the violin in an orchestra.")
    for key in ("one", "two", "far"):
        _read(kb, key, 3, "twins")
    report = kb.router(agent="a", session="twins").consolidate()
    assert (len(report.promoted), report.replaced) == (3, 1)
    now = [text for text in _texts(kb, session="twins") if "invoice" in text]
    assert now == ["The invoice of the plumber is due on 4 June 2026 at noon."]
    kept = next(each.memory_id for each in report.promoted if each.key == "two")
    assert kept is not None
    history = kb.memories.get(kept).history
    assert [(each.version, "3 June" in each.text) for each in history] == [(1, True), (2, False)]


def test_the_same_key_of_a_session_becomes_a_version_and_of_another_stands_beside_it(
    kb: KnowledgeBase,
) -> None:
    for session, text in (
        ("u", "Gwen keeps bees."), ("u", "Rust is a fungus."), ("v", "Rust is a fungus."),
    ):  # fmt: skip
        kb.router(agent="a", session=session).short_term.write("topic", text)
        _read(kb, "topic", 3, session)
        kb.tiers.promote(session, at_once=True)
    assert _texts(kb, session="u") == ["Rust is a fungus."]
    assert _texts(kb, session="v") == ["Rust is a fungus."]
    kb.router(agent="a", session="u").short_term.write("topic", "Gwen keeps bees.")
    _read(kb, "topic", 3, "u")
    kb.tiers.promote("u", at_once=True)
    assert _texts(kb, session="u") == ["Gwen keeps bees."]


def test_what_a_named_user_wrote_is_kept_however_seldom_it_was_read(
    kb: KnowledgeBase, clock: Clock
) -> None:
    kb.router(user="ann", session="mine").short_term.write("wish", "Buy a red bicycle.", ttl=1)
    clock.forward(seconds=1)
    assert len(kb.tiers.promote().promoted) == 1
    assert _texts(kb, namespaces=("user:ann:conversations",)) == ["Buy a red bicycle."]
    found = kb.router(user="ann", session="mine").read("wish")
    assert found is not None
    assert found.tier == "long_term"
    assert kb.router(session="mine").read("wish") is None, "it is Ann's"


def test_consolidate_and_a_named_user_promote_what_is_theirs_alone(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    for user in ("ann", "bo"):
        router = kb.router(agent="a", user=user, session="both")
        router.short_term.write("k", f"The hedge of {user} is tall.")
        for _ in range(3):
            router.short_term.read("k")
    trial = memctl(
        "tier", "promote", "--session", "both", "--dry-run", "--user", "bo", "-k", "notes"
    )
    assert "hedge of bo" in trial.out
    assert "ann" not in trial.out + trial.err
    report = kb.router(agent="a", user="ann", session="both").consolidate()
    assert [each.text for each in report.promoted] == ["The hedge of ann is tall."]


def test_private_sessions_are_not_promoted_to_an_open_knowledge_base(
    home: Home, clock: Clock
) -> None:
    home.create("half", private_namespaces=("user:ann:conversations",))
    with home.open("half") as base:
        for user in ("ann", "bo"):
            router = base.router(agent="a", user=user, session="s")
            router.short_term.write("k", f"The diary of {user} is blue.", ttl=1)
            for _ in range(3):
                router.short_term.read("k")
        clock.forward(seconds=1)
        report = base.tiers.promote()
        assert ([each.text for each in report.promoted], report.withheld) == (
            ["The diary of bo is blue."],
            1,
        )
        every = Filters(namespaces=("user:ann:conversations", "user:bo:conversations"))
        assert base.memories.list(every).num_rows == 1


def test_a_promotion_can_be_taken_back(kb: KnowledgeBase) -> None:
    short_term = kb.router(agent="a", session="undo").short_term
    short_term.write("k", "The cellar door squeaks.")
    _read(kb, "k", 3, "undo")
    kb.tiers.promote("undo", at_once=True)
    assert _texts(kb, session="undo") == ["The cellar door squeaks."]
    report = kb.jobs.undo()
    assert (report.kind, len(report.removed)) == ("promotion", 1)
    assert _texts(kb, session="undo") == []


def test_writing_a_key_again_keeps_its_count_and_refreshing_starts_its_time_anew(
    kb: KnowledgeBase, clock: Clock
) -> None:
    short_term = kb.router(agent="a", session="count").short_term
    short_term.write("k", 1, ttl=100)
    _read(kb, "k", 2, "count")
    clock.forward(seconds=90)
    entry = short_term.write("k", 2, ttl=100)
    assert (entry.memory_value, entry.access_count) == (2, 2)
    clock.forward(seconds=90)
    assert short_term.refresh_ttl("k").expires_at == clock.now + timedelta(seconds=100)
    read = short_term.read("k")
    assert read is not None
    assert (read.access_count, read.last_accessed_at) == (3, clock.now)
    clock.forward(seconds=100)
    with pytest.raises(NothingFound):
        short_term.refresh_ttl("k")


def test_an_entry_written_anew_during_a_promotion_stays(
    kb: KnowledgeBase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.memories.memory_editing import Editor

    short_term = kb.router(agent="a", session="race").short_term
    short_term.write("k", "The bridge is closed.")
    _read(kb, "k", 3, "race")
    prepare = Editor.prepare

    def slow(self: Editor, memory: Any) -> Any:
        clock.forward(seconds=1)
        short_term.write("k", "The bridge is open.")
        return prepare(self, memory)

    monkeypatch.setattr(Editor, "prepare", slow)
    assert kb.tiers.promote("race", at_once=True).promoted == ()
    assert _texts(kb, session="race") == []
    found = short_term.find("k")
    assert found is not None
    assert found.memory_value == "The bridge is open."


def test_killed_at_any_step_an_entry_is_promoted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(place))
    with Home(load_config({"home": str(place)}, {})).open_for_writing(None) as base:
        short_term = base.router(agent="a", session="s").short_term
        short_term.write("k", "The ferry leaves at nine.")
        for _ in range(3):
            short_term.read("k")
    images = images_of(place, tmp_path / "images", "tier", "promote", "--session", "s")
    states = set()
    for image in images[:: max(1, len(images) // 12)]:
        with Home(load_config({"home": str(image.home)}, {})).open("default") as base:
            before = base.store.ledger.short_term.count(), base.memories.list(ALL).num_rows
            assert sum(before) == 1, image.step
            states.add(before)
            base.tiers.promote("s", at_once=True)
            after = base.store.ledger.short_term.count(), base.memories.list(ALL).num_rows
            assert after == (0, 1), image.step
    assert (1, 0) in states


def test_the_watcher_promotes_once_a_day_and_makes_up_for_a_night_it_missed(
    kb: KnowledgeBase, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    ledger = kb.store.ledger
    clock = Clock(datetime(2027, 3, 1, 3, 59, tzinfo=UTC))
    upkeep = Upkeep(kb, home, clock)
    promotion = upkeep.find("promotion")
    began = clock.now - timedelta(hours=20)
    ledger.jobs.finish(ledger.jobs.start("promotion", began), "done", began)
    assert not upkeep.is_due(promotion)
    clock.forward(minutes=1)
    assert upkeep.is_due(promotion)
    failed = ledger.jobs.start("promotion", clock.now)
    ledger.jobs.finish(failed, "failed", clock.now)
    assert not upkeep.is_due(promotion)
    clock.forward(minutes=10)
    assert upkeep.is_due(promotion), "it is tried again"
    ledger.jobs.finish(ledger.jobs.start("promotion", clock.now), "done", clock.now)
    clock.forward(hours=23)
    assert not upkeep.is_due(promotion)
    clock.forward(days=7)
    assert upkeep.is_due(promotion)
    upkeep.set("promotion", OFF)
    assert not upkeep.is_due(promotion)
    upkeep.set("promotion", None)
    ledger.jobs.finish(ledger.jobs.start("promotion", clock.now), "done", clock.now)
    assert not upkeep.is_due(promotion)
    clock.forward(days=-400)
    assert upkeep.is_due(promotion), "a job of the future does not stop it for years"
    with ledger.transaction() as connection:
        connection.execute("DELETE FROM jobs WHERE kind = 'promotion'")


def test_forgetting_a_session_and_exports_cover_both_tiers(
    kb: KnowledgeBase, home: Home, tmp_path: Path, files_with: Callable[[Path, str], list[Path]]
) -> None:
    router = kb.router(agent="a", session="gone")
    router.working.store("w", "quicksilver marmalade at work")
    router.working.share_with_agent("b", "w", "quicksilver marmalade shared")
    router.working.save("copy")
    router.short_term.write("e", {"note": "quicksilver marmalade for hours"})
    kb.router(agent="a", session="stays").short_term.write("e", "plain bread")
    kb.transfer.export_to(tmp_path / "all.memctl")
    home.create("restored")
    with home.open("restored") as other:
        other.transfer.import_from(tmp_path / "all.memctl")
        copied = other.router(agent="a", session="gone")
        assert copied.working.retrieve("w") == "quicksilver marmalade at work"
        entry = copied.short_term.find("e")
        assert entry is not None
        assert entry.memory_value == {"note": "quicksilver marmalade for hours"}
    kb.forget(Selection(session="gone"))
    assert router.working.list() == []
    assert router.short_term.list() == []
    assert kb.router(agent="b").working.shared_with_me() == []
    assert router.working.saved() == []
    assert kb.router(agent="a", session="stays").short_term.find("e") is not None
    assert files_with(kb.layout.folder, "quicksilver marmalade") == []
