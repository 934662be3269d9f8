"""When jobs are due: at local times, at intervals; what was missed once, whatever clocks do."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.errors import UsageError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.schedules import parse_schedule
from memctl.upkeep.job_registry import JOBS
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.reporter import WatchEvent
from memctl.watch.service import WatchedBases, WatchService

from .conftest import START, Clock, Run

EACH_DAY = ["accesses", "learnings", "promotion", "rot", "expiry", "shared", "prune"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["04:00", "sun 05:00", "1 03:00", "every 6h", "every 90m", "every 2w", "off"]
)
def test_a_schedule_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_schedule(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "25:00",
        "04:60",
        "four",
        "sun",
        "day 04:00",
        "29 04:00",
        "every 0h",
        "every",
        "4 am",
        "٤:00",
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_schedule(text)
    assert refused.value.hint


@pytest.mark.parametrize("day", ["29", "31"])
def test_a_day_that_not_every_month_has_is_refused_for_that(memctl: Run, day: str) -> None:
    done = memctl("upkeep", "set", "rot", "--at", f"{day} 03:00")
    assert done.code == 2
    assert done.err.splitlines() == [
        f"error: not every month has a day {day}",
        "hint: from 1 to 28, such as 1 03:00",
    ]


@pytest.mark.parametrize(
    ("schedule", "last", "now", "is_due"),
    [
        ("04:00", "2026-05-10T04:00", "2026-05-11T03:59", False),
        ("04:00", "2026-05-10T04:00", "2026-05-11T04:00", True),
        ("04:00", "2026-05-10T09:00", "2026-05-11T03:00", False),
        ("04:00", "2026-03-10T04:00", "2026-05-11T03:00", True),
        ("04:00", "2027-03-10T04:00", "2026-05-11T03:00", True),
        ("sun 05:00", "2026-05-10T05:00", "2026-05-16T23:59", False),
        ("sun 05:00", "2026-05-10T05:00", "2026-05-17T05:00", True),
        ("1 03:00", "2026-05-01T03:00", "2026-05-31T23:00", False),
        ("1 03:00", "2026-05-01T03:00", "2026-06-01T03:00", True),
        ("every 6h", "2026-05-10T04:00", "2026-05-10T09:59", False),
        ("every 6h", "2026-05-10T04:00", "2026-05-10T10:00", True),
        ("off", "2020-05-10T04:00", "2026-05-10T10:00", False),
    ],
)
def test_something_is_due_when_its_time_has_come_since_it_last_began(
    schedule: str, last: str, now: str, is_due: bool
) -> None:
    assert parse_schedule(schedule).is_due(at(last), at(now), START) is is_due


_INSTANTS = st.integers(0, 11 * 365 * 86_400).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
_SCHEDULES = st.sampled_from(["04:00", "02:30", "sun 05:00", "1 03:00", "every 6h", "every 1m"])


@given(_SCHEDULES, st.none() | _INSTANTS, _INSTANTS)
def test_what_has_just_run_is_never_due_whatever_the_clock_did_before(
    text: str, last: datetime | None, now: datetime
) -> None:
    schedule = parse_schedule(text)
    schedule.is_due(last, now, START)
    assert not schedule.is_due(now, now, START)
    following = schedule.following(now, now, START)
    assert following is not None
    assert following > now
    assert schedule.is_due(now, following, START)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_a_daily_job_runs_once_a_day_where_clocks_are_put_forward_and_back(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    schedule, now, runs = parse_schedule("02:30"), at("2026-01-01T00:00"), list[datetime]()
    last = now
    for _ in range(365 * 24 * 4):
        now += timedelta(minutes=15)
        if schedule.is_due(last, now, last):
            last = now
            runs.append(now)
    days = [each.astimezone().date() for each in runs]
    assert len(days) == len(set(days)) == 365


def counts(kb: KnowledgeBase) -> dict[str, int]:
    jobs = [job.kind for job in kb.jobs.list()]
    return {name: jobs.count(name) for name in EACH_DAY}


def watch(home: Home, clock: Clock) -> list[WatchEvent]:
    events: list[WatchEvent] = []
    options = WatchOptions(settle_seconds=0, rescan_seconds=0.1, once=True)
    WatchService(WatchedBases(home), options, events.append, clock).run()
    return events


def test_a_machine_that_slept_for_a_week_runs_each_job_once_and_in_order(
    home: Home, kb: KnowledgeBase, clock: Clock
) -> None:
    watch(home, clock)
    assert counts(kb) == dict.fromkeys(EACH_DAY, 0), "nothing was missed yet"
    clock.forward(days=7)
    watch(home, clock)
    watch(home, clock)
    assert counts(kb) == dict.fromkeys(EACH_DAY, 1)
    assert [job.kind for job in reversed(kb.jobs.list())] == EACH_DAY


@pytest.mark.parametrize("months", [5, -5])
def test_a_clock_that_jumps_by_months_makes_no_job_run_for_ever(
    home: Home, kb: KnowledgeBase, clock: Clock, months: int
) -> None:
    clock.forward(days=1)
    watch(home, clock)
    clock.forward(days=31 * months)
    for _ in range(3):
        watch(home, clock)
        clock.forward(minutes=1)
    assert counts(kb) == dict.fromkeys(EACH_DAY, 2)


def test_a_job_that_failed_is_tried_again_after_a_while(
    memctl: Run, kb: KnowledgeBase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.forward(days=1)
    folder = kb.layout.folder / "lance/memories.lance"
    folder.rename(folder.with_name("away"))
    failed = memctl("upkeep", "run", "--due")
    assert failed.code == 3
    assert [row["job"] for row in failed.rows if row["error"]]
    folder.with_name("away").rename(folder)
    assert memctl("upkeep", "run", "--due").rows == []
    clock.forward(minutes=11)
    again = memctl("upkeep", "run", "--due")
    assert again.code == 0, again.err
    assert {row["job"] for row in again.rows} >= {"rot", "expiry"}


def test_a_schedule_is_set_listed_and_put_back(memctl: Run, clock: Clock) -> None:
    def rot() -> dict[str, object]:
        row = next(row for row in memctl("upkeep", "list").rows if row["job"] == "rot")
        return {key: row[key] for key in ("schedule", "is_default", "next_run")}

    assert rot() == {"schedule": "04:00", "is_default": True, "next_run": "2026-05-02T04:00:00Z"}
    assert memctl("upkeep", "set", "rot", "--at", "sun 05:00").code == 0
    assert rot() == {
        "schedule": "sun 05:00", "is_default": False, "next_run": "2026-05-03T05:00:00Z",
    }  # fmt: skip
    assert memctl("upkeep", "set", "rot", "--off").code == 0
    assert rot() == {"schedule": "off", "is_default": False, "next_run": None}
    assert memctl("upkeep", "set", "rot", "--default").code == 0
    assert rot()["is_default"]


def test_the_interval_of_consolidation_is_the_one_that_kb_set_knows(
    memctl: Run, home: Home
) -> None:
    assert memctl("upkeep", "set", "consolidation", "--every", "30m").code == 0
    assert home.settings("default").consolidate_interval == 30
    refused = memctl("upkeep", "set", "consolidation", "--at", "04:00")
    assert (refused.code, "--every" in refused.err) == (2, True)
    assert memctl("upkeep", "set", "consolidation", "--off").code == 0
    assert home.settings("default").consolidate_interval == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run",), "which job?"),
        (("run", "rot", "--due"), "which job?"),
        (("run", "rto"), "there is no job 'rto'"),
        (("run", "rot", "--merge"), "--merge is for the job duplicates"),
        (("set", "rot"), "when?"),
        (("set", "rot", "--at", "04:00", "--off"), "when?"),
        (("set", "rot", "--at", "26:00"), "no time of day"),
        (("set", "sessions", "--at", "04:00"), "has no schedule"),
    ],
)
def test_what_cannot_be_run_or_set_is_refused(
    memctl: Run, words: tuple[str, ...], said: str
) -> None:
    refused = memctl("upkeep", *words)
    assert (refused.code, said in refused.err) == (2, True), refused.err


def test_names_of_jobs_are_their_own_and_each_says_what_it_does() -> None:
    names = [job.name for job in JOBS]
    assert len(set(names)) == len(names)
    assert all(job.about.endswith(".") for job in JOBS)


def test_a_job_on_skills_is_said_to_appear_with_the_first_one(memctl: Run) -> None:
    for words in (("set", "skill_gaps", "--off"), ("run", "skill_gaps")):
        refused = memctl("upkeep", *words)
        assert refused.code == 2
        assert "no job 'skill_gaps' in default: it appears with the first skill" in refused.err
        assert "hint: memctl skill add PATH" in refused.err
