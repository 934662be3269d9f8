"""What nobody uses fades, is archived and never deleted; and comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from killed import images_of

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.memories.importance_decay import decay_importance
from memctl.records import Filters
from memctl.rows.row_changes import archive_memories

from .conftest import Clock, Run, distil

GIST = "The harbour office orders green paint for the winter."
STATED = "The spare key of the boat is with Ida."
ALL = Filters(archived=True)


def listed(memctl: Run, *options: str) -> set[str]:
    return {row["id"] for row in memctl("memory", "list", "-n", "0", *options).rows}


def found(memctl: Run, *question: str) -> set[str]:
    return {hit["memory_id"] for hit in memctl("query", *question, "-o", "json").json["hits"]}


@pytest.mark.parametrize("days", [0, 1, 45, 90, 180, 900])
def test_importance_fades_by_the_formula_and_the_row_stays_as_it_is(
    kb: KnowledgeBase, memctl: Run, clock: Clock, days: int
) -> None:
    (gist,) = distil(kb, GIST, importance=0.6)
    stated = memctl("memory", "add", STATED, "--importance", "0.6").rows[0]["id"]
    clock.forward(days=days)
    shown = memctl("memory", "show", gist, "-o", "json").json
    assert shown["current_importance"] == pytest.approx(0.05 + 0.55 * 0.5 ** (days / 90), abs=1e-3)
    assert shown["memory"]["importance"] == pytest.approx(0.6)
    kept = memctl("memory", "show", stated, "-o", "json").json
    assert kept["current_importance"] == pytest.approx(0.6)


def test_decay_never_raises_an_importance_below_the_floor() -> None:
    assert decay_importance(0.01, 400, 90, 0.05) == 0.01
    assert decay_importance(0.5, -3, 90, 0.05) == 0.5


def test_listings_go_by_importance_as_it_is_now(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    old = distil(kb, GIST, importance=0.7)
    clock.forward(days=200)
    new = distil(kb, "The crane on the north pier is red.", importance=0.5)
    best_first = memctl("memory", "list", "--sort", "importance", "--desc").rows
    assert [row["id"] for row in best_first] == [*new, *old]


def test_after_299_idle_days_an_unimportant_gist_is_archived_and_a_stated_memory_is_not(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (gist,) = distil(kb, GIST)
    stated = memctl("memory", "add", STATED, "--importance", "0").rows[0]["id"]
    clock.forward(days=298)
    assert memctl("upkeep", "run", "rot").rows[0]["counts"] == {"archived": 0, "withheld": 0}
    assert gist in found(memctl, "green paint for the harbour office")
    clock.forward(days=300)  # what was shown a moment ago counts as used
    tried = memctl("upkeep", "run", "rot", "--dry-run").rows[0]
    assert tried["ids"] == [gist]
    assert gist in listed(memctl)
    done = memctl("upkeep", "run", "rot").rows[0]
    assert (done["counts"]["archived"], done["ids"]) == (1, [gist])
    assert listed(memctl) == {stated}
    assert listed(memctl, "--archived") == {gist, stated}
    shown = memctl("memory", "list", "--archived", "-o", "table").out.splitlines()
    assert "ARCHIVED" in shown[0]
    day = f"{clock():%Y-%m-%d}"
    assert [day in line for line in shown[1:] if GIST[:20] in line] == [True]
    assert [day in line for line in shown[1:] if STATED[:20] in line] == [False]
    assert "ARCHIVED" not in memctl("memory", "list", "-o", "table").out
    assert found(memctl, "green paint for the harbour office") <= {stated}
    assert gist in found(memctl, "green paint for the harbour office", "--archived")
    assert memctl("memory", "restore", gist).code == 0
    assert gist in listed(memctl)
    assert gist in found(memctl, "green paint for the harbour office")
    again = memctl("memory", "restore", gist)
    assert (again.code, "not archived" in again.err) == (2, True)


def test_an_archived_memory_that_is_read_by_its_id_is_back(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (gist,) = distil(kb, GIST)
    clock.forward(days=400)
    assert memctl("upkeep", "run", "rot").rows[0]["counts"]["archived"] == 1
    clock.forward(days=1)
    assert memctl("memory", "show", gist, "-o", "json").code == 0
    assert listed(memctl) == {gist}
    assert memctl("upkeep", "run", "rot").rows[0]["counts"]["archived"] == 0, "it was just used"


def test_an_archived_learning_that_is_confirmed_is_back(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    added = memctl("memory", "add", "Ropes rot.", "--type", "learning", "--importance", "0")
    id_ = str(added.rows[0]["id"])
    with kb.store.write() as transaction:
        archive_memories(transaction, [id_], clock())
    assert id_ not in listed(memctl)
    assert memctl("memory", "confirm", id_, "--agent", "scout").code == 0
    assert id_ in listed(memctl)


def test_what_was_archived_later_is_shown_as_of_before(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (gist,) = distil(kb, GIST)
    clock.forward(days=400)
    before = f"{clock.now:%Y-%m-%d}"
    clock.forward(days=2)
    memctl("upkeep", "run", "rot")
    clock.forward(days=2)
    assert listed(memctl) == set()
    assert listed(memctl, "--as-of", before) == {gist}


@pytest.mark.parametrize(
    "kept",
    [
        {"type": "important_fact"},
        {"type": "decision"},
        {"importance": 0.85},
        {"level": "evidence", "type": "passage"},
        {"level": "insight", "type": "change"},
        {"method": "stated"},
    ],
    ids=str,
)
def test_what_matters_is_never_archived_however_long_it_is_idle(
    kb: KnowledgeBase, memctl: Run, clock: Clock, kept: dict[str, Any]
) -> None:
    values = {"importance": 0.0, **kept}
    distil(kb, GIST, **values)
    clock.forward(days=5_000)
    assert memctl("upkeep", "run", "rot").rows[0]["counts"] == {"archived": 0, "withheld": 0}


def test_what_a_living_insight_rests_on_is_kept_until_the_insight_ends(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (gist,) = distil(kb, GIST)
    (insight,) = distil(
        kb, "Paint is ordered each winter.", level="insight", type="recurrence", source_ids=(gist,)
    )
    clock.forward(days=800)
    assert memctl("upkeep", "run", "rot").rows[0]["ids"] == []
    assert memctl("memory", "delete", insight, "--yes").code == 0
    assert memctl("upkeep", "run", "rot").rows[0]["ids"] == [gist]


def test_what_lost_its_source_is_archived_at_once(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (source,) = distil(kb, "The office ordered paint in May.", importance=0.6)
    (gist,) = distil(kb, GIST, importance=0.6, source_ids=(source,))
    clock.forward(days=1)
    assert memctl("upkeep", "run", "rot").rows[0]["ids"] == []
    assert memctl("memory", "edit", source, "--text", "The office ordered tar in May.").code == 0
    assert memctl("upkeep", "run", "rot").rows[0]["ids"] == [gist]


def test_too_much_at_once_waits_until_it_is_asked_for(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    ids = distil(kb, *(f"Crate {number} holds rope and tar." for number in range(25)))
    clock.forward(days=400)
    warned = memctl("upkeep", "run", "rot")
    assert warned.rows[0]["counts"] == {"archived": 0, "withheld": 25}
    assert "25 memories of default became stale at once, 100% of it" in warned.err
    assert "memctl upkeep run rot -k default --force" in warned.err
    assert listed(memctl) == set(ids)
    assert memctl("upkeep", "run", "rot", "--force").rows[0]["counts"]["archived"] == 25
    assert listed(memctl) == set()


def test_after_a_long_sleep_each_night_is_looked_at_by_itself(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    """A machine that was on would have archived 15 a night, and never the 30 of one night."""
    for night in range(4):
        distil(kb, *(f"Crate {night} {number} holds rope." for number in range(15)))
        clock.forward(days=1)
    at_once = distil(kb, *(f"Barrel {number} holds tar." for number in range(30)))
    clock.forward(days=400)
    slept = memctl("upkeep", "run", "rot")
    assert slept.rows[0]["counts"] == {"archived": 60, "withheld": 30}
    assert listed(memctl) == set(at_once)
    assert memctl("upkeep", "run", "rot").rows[0]["counts"] == {"archived": 0, "withheld": 30}
    undone = memctl("job", "undo", str(slept.rows[0]["number"]), "--yes")
    assert undone.code == 0, undone.err
    assert len(listed(memctl)) == 90


def test_a_job_is_taken_back_and_is_not_done_again_before_its_time(
    kb: KnowledgeBase, memctl: Run, clock: Clock
) -> None:
    (gist,) = distil(kb, GIST)
    clock.forward(days=400)
    number = memctl("upkeep", "run", "rot").rows[0]["number"]
    undone = memctl("job", "undo", str(number), "--yes", "-o", "json").json
    assert undone["restored"] == [gist]
    assert listed(memctl) == {gist}
    clock.forward(hours=1)
    assert "rot" not in [row["job"] for row in memctl("upkeep", "run", "--due").rows]


def test_killed_at_any_step_and_run_again_the_result_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import UTC, datetime, timedelta

    place = tmp_path / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(place))
    long_ago = Clock(datetime.now(UTC) - timedelta(days=400))
    home = Home(load_config({"home": str(place)}, {}), long_ago)
    home.create("default")
    with home.open("default") as base:
        (gist,) = distil(base, GIST)
        base.memories.add(STATED, importance=0)
    images = images_of(place, tmp_path / "images", "upkeep", "run", "rot")
    states = set()
    for image in images[:: max(1, len(images) // 10)]:
        now = Home(load_config({"home": str(image.home)}, {}))
        with now.open("default") as base:
            from memctl.upkeep.runner import Upkeep

            states.add(base.memories.list().num_rows)
            upkeep = Upkeep(base, now)
            upkeep.run(upkeep.find("rot"))
            assert base.memories.list()["text"].to_pylist() == [STATED], image.step
            assert base.memories.list(ALL).num_rows == 2, image.step
            for number in [job.id for job in base.jobs.list() if job.can_be_undone]:
                base.jobs.undo(number)
            assert gist in base.memories.list()["id"].to_pylist(), image.step
    assert 2 in states, json.dumps(sorted(states))
