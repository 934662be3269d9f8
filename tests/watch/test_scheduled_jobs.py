"""What a watcher does between files is a list that can be read and added to in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memctl.watch import scheduled_jobs
from memctl.watch.scheduled_jobs import SCHEDULED_JOBS, JobContext, ScheduledJob

if TYPE_CHECKING:
    from watched import Place


def test_the_jobs_of_a_watcher_have_names_of_their_own() -> None:
    names = [job.name for job in SCHEDULED_JOBS]
    assert names == ["sessions", "consolidation", "comparison", "by the clock", "tables"]


def test_a_job_that_is_added_to_the_list_runs_when_it_is_due(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []

    def is_due(context: JobContext, busy: bool) -> bool:
        return len(runs) < 2

    def run(context: JobContext) -> bool:
        runs.append(context.base.name)
        return True

    added = (*SCHEDULED_JOBS, ScheduledJob("count", is_due, run))
    monkeypatch.setattr(scheduled_jobs, "SCHEDULED_JOBS", added)
    place.drop("a.txt", "The lease starts on 1 June 2026.")
    events = place.drain()
    assert [event.kind for event in events].count("ingested") == 1
    assert runs == ["notes", "notes"]


def test_a_job_that_ends_the_turn_lets_no_other_run_in_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []

    def job(name: str, *, ends_turn: bool = False) -> ScheduledJob:
        def is_due(context: JobContext, busy: bool) -> bool:
            return name not in runs

        def run(context: JobContext) -> bool:
            runs.append(name)
            return False

        return ScheduledJob(name, is_due, run, ends_turn)

    jobs = (job("first", ends_turn=True), job("second"))
    monkeypatch.setattr(scheduled_jobs, "SCHEDULED_JOBS", jobs)
    place.drain()
    assert runs == ["first"]
    place.drain()
    assert runs == ["first", "second"]
