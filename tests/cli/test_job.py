"""memctl job: what was done by itself is listed, and taken back without what came after it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_endpoint import Asked, FakeEndpoint
from limited import LIMITED, needs_permissions

from memctl.config import load_config
from memctl.consolidation import consolidator
from memctl.errors import LockedError
from memctl.home import Home
from memctl.records import Progress

from .conftest import Run, ledger_before

NOTES = {
    "street": "Viewed a workshop on Harbour Street with Mara. The lease starts on 1 June 2026 and"
    " the rent is 1,200 EUR a month. There is room for the roaster and a small bar.",
    "mail": "Hi Mara,\nthank you for your visit to Harbour Street. The lease for the workshop"
    " starts on 15 June 2026. The deposit is two months rent.\nBest regards, Jonas",
    "beans": "Beans: Huila Supremo from Colombia scores 86 points. Roast it light.",
    "orders": "Ordered a Probat roaster for Harbour Street. It holds 12 kg and arrives in May.",
    "power": "The Probat roaster holds 15 kg and needs 3-phase power. The electrician Lena Vogt"
    " will install it at Harbour Street.",
    "bar": "We decided to open the bar at Harbour Street only on weekends. The electrician Lena"
    " Vogt does the wiring.",
    "bread": "Recipe: 500 g flour, 350 g water, 10 g salt. Fold every 30 minutes.",
    "stock": "The Huila Supremo sold out. Next delivery from Colombia comes in July.",
    "card": "Dentist appointment moved. Bring the insurance card.",
}
SIGNED = "The lease on Harbour Street was signed by Jonas Petersen."
LATER = "The lease for the workshop on Harbour Street starts on 1 July 2026."
RAISED = "The rent for the workshop on Harbour Street is now 1,250 EUR a month."
QUESTION = "who installs the roaster?"
NOTHING_LEFT = "has no job that can be taken back"
Rows = dict[str, dict[str, Any]]


@pytest.fixture
def with_notes(memctl: Run) -> Run:
    """A home with some notes about one place."""
    records = [
        {"id": name, "text": text, "created_at": f"2026-03-0{number}"}
        for number, (name, text) in enumerate(NOTES.items(), start=1)
    ]
    lines = "\n".join(map(json.dumps, records))
    assert memctl("ingest", "--jsonl", "-", stdin=lines).code == 0
    return memctl


def tell(memctl: Run, text: str, when: str, id_: str) -> None:
    record = {"id": id_, "text": text, "created_at": when}
    assert memctl("ingest", "--jsonl", "-", stdin=json.dumps(record)).code == 0


def rows(memctl: Run, table: str, *without: str) -> Rows:
    """The rows of a table by their ids."""
    found = memctl("export", table, "-f", "jsonl").rows
    return {row["id"]: {k: v for k, v in row.items() if k not in without} for row in found}


def known(memctl: Run, *without: str) -> dict[str, Rows]:
    tables = ("documents", "memories", "entities", "relations")
    return {table: rows(memctl, table, *without) for table in tables}


def undo(memctl: Run, *more: str) -> Any:
    done = memctl("job", "undo", "--yes", "-o", "json", *more)
    assert done.code == 0, done.err
    assert memctl("doctor", "-q").code == 0
    return done.json


def consolidate(memctl: Run, *more: str) -> list[str]:
    """The ids of the insights that it made."""
    done = memctl("consolidate", "-o", "json", *more)
    assert done.code == 0, done.err
    return [insight["id"] for insight in done.json[0]["insights"]]


def insights(memctl: Run) -> set[str]:
    """Those that hold."""
    return {row["id"] for row in memctl("insight", "list", "-n", "0").rows}


def refused(memctl: Run, *arguments: str) -> str:
    done = memctl("job", "undo", "--yes", *arguments)
    assert done.code in (1, 2)
    error, hint = done.err.splitlines()
    assert (error[:7], hint[:6]) == ("error: ", "hint: ")
    return error


def edit(memctl: Run, text: str, to: str) -> None:
    """State what a note says as a memory of its own, and then otherwise."""
    made = memctl("memory", "add", text, "-o", "json").json
    assert memctl("memory", "edit", made["id"], "--text", to).code == 0


def answer(memctl: Run) -> Any:
    found = memctl("query", QUESTION, "-o", "json").json
    return found["answer"]["text"], [hit["memory_id"] for hit in found["hits"]]


# --- consolidations ------------------------------------------------------------------------------


def test_a_consolidation_is_taken_back_and_every_row_is_as_before(with_notes: Run) -> None:
    before, said = known(with_notes), answer(with_notes)
    made = consolidate(with_notes)
    assert made
    assert known(with_notes) != before
    report = undo(with_notes, "--again")
    assert (set(report["removed"]), report["kept"]) == (set(made), [])
    assert known(with_notes) == before
    assert answer(with_notes) == said


def test_what_was_taken_in_stated_and_edited_since_stays(with_notes: Run) -> None:
    consolidate(with_notes)
    assert with_notes("ingest", "--text", SIGNED).code == 0
    edit(with_notes, "The boat is blue.", "The boat is red.")
    meanwhile = known(with_notes, "is_consolidated")
    report = undo(with_notes)
    after = known(with_notes, "is_consolidated")
    for table, found in after.items():
        gone = set(meanwhile[table]) - set(found)
        assert found == {id_: row for id_, row in meanwhile[table].items() if id_ not in gone}
        assert {id_[0] for id_ in gone} <= {"i", "r"}
    assert (report["kept"], insights(with_notes)) == ([], set())
    texts = [row["text"] for row in after["memories"].values()]
    assert {SIGNED, "The boat is blue.", "The boat is red."} <= set(texts)


def test_the_next_consolidation_does_not_say_the_same_unless_it_is_to(with_notes: Run) -> None:
    made = consolidate(with_notes)
    assert undo(with_notes)["waiting"] == 0
    assert consolidate(with_notes) == []
    assert insights(with_notes) == set()
    assert undo_of_nothing(with_notes)
    tell(with_notes, "The Huila Supremo now scores 84 points.", "2026-07-01", "stock")
    (again,) = consolidate(with_notes)  # one of them has changed
    assert again not in made


def test_an_insight_that_is_deleted_does_not_come_back_with_what_it_is_not_about(
    with_notes: Run,
) -> None:
    for made in consolidate(with_notes):
        assert with_notes("memory", "delete", made, "--yes").code == 0
    tell(with_notes, "The cat of the neighbours is called Minka.", "2026-07-01", "cat")
    assert consolidate(with_notes) == []


def undo_of_nothing(memctl: Run) -> bool:
    return NOTHING_LEFT in refused(memctl)


def test_with_again_the_next_one_says_what_was_taken_back(with_notes: Run) -> None:
    made = consolidate(with_notes)
    assert undo(with_notes, "--again")["waiting"] >= len(NOTES)
    assert consolidate(with_notes) == made
    assert sorted(undo(with_notes)["removed"]) == sorted(made)


def test_what_was_taken_back_can_be_said_again_later(with_notes: Run) -> None:
    made = consolidate(with_notes)
    undo(with_notes)
    assert consolidate(with_notes) == []
    assert consolidate(with_notes, "--again") == made
    assert consolidate(with_notes, "--again") == []
    assert insights(with_notes) == set(made)


def test_each_undo_takes_back_the_one_before_and_then_says_there_is_none(with_notes: Run) -> None:
    states = [known(with_notes, "is_consolidated")]
    for text, when in ((LATER, "2026-03-20"), (RAISED, "2026-04-02")):
        assert consolidate(with_notes)
        states.append(known(with_notes, "is_consolidated"))
        tell(with_notes, text, when, when)
    assert consolidate(with_notes)
    ended = [row for row in rows(with_notes, "memories").values() if row["superseded_by"]]
    assert ended, "the later ones are to bring insights up to date"
    for state in reversed(states):
        undo(with_notes)
        now = known(with_notes, "is_consolidated")
        for table in ("memories", "relations"):
            mine = {id_: row for id_, row in now[table].items() if id_ in state[table]}
            assert mine == state[table]
            assert not {id_ for id_ in set(now[table]) - set(mine) if id_[0] in "ir"}
    assert undo_of_nothing(with_notes)
    assert insights(with_notes) == set()


def test_a_job_is_not_undone_before_a_later_job_that_changed_its_results(with_notes: Run) -> None:
    first = consolidate(with_notes)
    tell(with_notes, LATER, "2026-03-20", "later")
    consolidate(with_notes)
    jobs = with_notes("job", "list").rows
    (one, two) = sorted(job["id"] for job in jobs if job["can_be_undone"])
    assert f"job {two} has changed" in refused(with_notes, str(one))
    undo(with_notes, str(two))
    assert insights(with_notes) == set(first)
    undo(with_notes, str(one))
    assert insights(with_notes) == set()
    assert "it has been already" in refused(with_notes, str(one))


def test_undo_does_not_revive_an_insight_whose_sources_have_ended(with_notes: Run) -> None:
    first = consolidate(with_notes)
    said = "Hi Mara, the lease for the workshop starts on 20 June 2026 after all."
    tell(with_notes, said, "2026-03-20", "mail")
    assert consolidate(with_notes)
    found = rows(with_notes, "memories")
    stale = {id_ for id_ in first if found[id_]["valid_to"] and not found[id_]["superseded_by"]}
    assert stale
    report = undo(with_notes)
    assert set(report["kept"]) == stale
    assert insights(with_notes).isdisjoint(stale)
    held = insights(with_notes)
    assert consolidate(with_notes) == []
    assert insights(with_notes) == held
    undo(with_notes)
    left = [row for row in rows(with_notes, "memories").values() if row["level"] == "insight"]
    assert left == []


def test_an_insight_that_something_rests_on_by_now_stays(with_notes: Run) -> None:
    (made, *_) = consolidate(with_notes)
    stated = with_notes("memory", "add", "Bo is trusted.", "--evidence", made, "-o", "json")
    assert stated.code == 0, stated.err
    report = undo(with_notes)
    assert made in report["kept"]
    assert made in insights(with_notes)


def test_undo_after_a_forget_leaves_nothing_of_what_is_forgotten(
    with_notes: Run, tmp_path: Path
) -> None:
    consolidate(with_notes)
    (doomed,) = [
        row for row in rows(with_notes, "memories").values() if row["text"] == NOTES["power"]
    ][:1]
    done = with_notes("forget", "--document", doomed["document_id"], "--yes")
    assert done.code in (0, 3), done.out  # another note names the electrician too
    with closing(sqlite3.connect(tmp_path / "home/kb/default/ledger.sqlite")) as ledger:
        noted = ledger.execute("SELECT DISTINCT row_id FROM job_changes").fetchall()
    assert noted
    assert doomed["id"] not in {row[0] for row in noted}
    before = rows(with_notes, "memories", "is_consolidated")
    undo(with_notes)
    after = rows(with_notes, "memories", "is_consolidated")
    assert after.items() <= before.items()
    assert not any(row["level"] == "insight" for row in after.values())


def test_a_dry_run_and_a_question_nobody_answers_change_nothing(with_notes: Run) -> None:
    made = consolidate(with_notes)
    before = known(with_notes)
    dry = with_notes("job", "undo", "--dry-run", "-o", "json")
    assert (dry.code, dry.json["dry_run"]) == (0, True)
    assert sorted(dry.json["removed"]) == sorted(made)
    assert "would take back consolidation" in with_notes("job", "undo", "--dry-run").out
    asked = with_notes("job", "undo")
    assert asked.code == 2
    assert "add --yes" in asked.err
    assert known(with_notes) == before


def test_a_repair_does_not_bring_back_what_was_taken_back(with_notes: Run, tmp_path: Path) -> None:
    made = consolidate(with_notes)
    undo(with_notes)
    manifests = (tmp_path / "home/kb/default/lance/memories.lance/_versions").glob("*.manifest")
    newest = max(manifests, key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    with closing(sqlite3.connect(tmp_path / "home/kb/default/ledger.sqlite")) as ledger:
        ledger.execute("DELETE FROM manifests")
        ledger.commit()
    assert with_notes("doctor", "-q").code != 0
    assert with_notes("doctor", "--repair", "--yes").code in (0, 3)
    assert with_notes("doctor", "-q").code == 0
    assert insights(with_notes).isdisjoint(made)


def test_after_a_rebuild_and_an_upkeep_it_is_taken_back_all_the_same(with_notes: Run) -> None:
    before = rows(with_notes, "memories")
    consolidate(with_notes)
    assert with_notes("doctor", "--rebuild", "--yes").code == 0
    with Home(load_config({})).open("default") as base:
        base.store.upkeep(force=True)
    undo(with_notes, "--again")
    assert rows(with_notes, "memories") == before
    assert with_notes("doctor", "--rebuild", "--yes").code == 0


def test_a_restored_snapshot_leaves_no_way_back_from_jobs_of_before(with_notes: Run) -> None:
    consolidate(with_notes)
    assert with_notes("snapshot", "create", "one").code == 0
    undo(with_notes)
    assert with_notes("snapshot", "restore", "one", "--yes").code == 0
    assert insights(with_notes)
    assert undo_of_nothing(with_notes)


def test_a_job_of_before_a_ledger_kept_what_jobs_change_is_told_and_left(
    with_notes: Run, tmp_path: Path
) -> None:
    made = consolidate(with_notes)
    with closing(sqlite3.connect(tmp_path / "home/kb/default/ledger.sqlite")) as ledger:
        ledger.executescript(ledger_before("job_changes"))
    (job,) = [job for job in with_notes("job", "list").rows if job["kind"] == "consolidation"]
    assert (job["can_be_undone"], job["detail"]["insights"]) == (False, len(made))
    assert "not known any more" in refused(with_notes, str(job["id"]))
    assert insights(with_notes) == set(made)


def test_one_that_is_taken_back_while_it_runs_ends_without_more(
    with_notes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(with_notes, NOTES["bread"].replace(". ", ".\n"), "2026-01-01", "copy")
    before = known(with_notes, "is_consolidated")
    times = SimpleNamespace(monotonic=count(step=60).__next__)
    monkeypatch.setattr(consolidator, "time", times)  # each batch is a commit
    monkeypatch.setenv("MEMCTL_CONSOLIDATE_BATCH_SIZE", "2")

    def then(progress: Progress) -> None:
        """Take the job back when it has written some batches."""
        if progress.done == 6:
            undo(with_notes)

    with (
        Home(load_config({})).open("default") as base,
        pytest.raises(LockedError, match="was taken back while it ran"),
    ):
        base.consolidate(progress=then)
    assert known(with_notes, "is_consolidated") == before
    assert with_notes("job", "list").rows[0]["state"] == "undone"


def test_only_the_latest_twenty_of_a_kind_can_be_taken_back(with_notes: Run) -> None:
    with Home(load_config({})).open("default") as base:
        ledger = base.store.ledger
        consolidate(with_notes)
        change = next(each for each in ledger.changes.of(1) if each.id[0] == "i")
        for _ in range(25):
            job = ledger.jobs.start("consolidation", base.clock())
            ledger.changes.add(job, [change])
            ledger.jobs.finish(job, "done", base.clock())
        assert len(ledger.changes.jobs()) in (20, 21)
        other = ledger.jobs.start("comparison", base.clock())
        ledger.changes.add(other, [change])
        assert other in ledger.changes.jobs()
        assert len(ledger.changes.jobs()) > 20


def test_undo_without_jobs_prints_one_line_and_creates_no_knowledge_base(
    memctl: Run, tmp_path: Path
) -> None:
    assert memctl("job", "undo", "--yes").code != 0
    assert not (tmp_path / "home/kb/default").exists()
    assert memctl("job", "list").out == ""


def test_an_archived_knowledge_base_is_left_alone(with_notes: Run) -> None:
    made = consolidate(with_notes)
    assert with_notes("kb", "archive", "default").code == 0
    assert "archived" in refused(with_notes, "-k", "default")
    assert with_notes("kb", "resume", "default").code == 0
    assert insights(with_notes) == set(made)


@needs_permissions
def test_where_nothing_can_be_written_it_stays(with_notes: Run, tmp_path: Path) -> None:
    made = consolidate(with_notes)
    everything = [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    command = [*LIMITED, sys.executable, "-m", "memctl", "job", "undo", "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    for path in everything:
        path.chmod(0o700)
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    assert insights(with_notes) == set(made)


# --- comparisons of facts ------------------------------------------------------------------------

ACME, BOLT = "Ann works at Acme.", "Ann works at Bolt."


def understood(asked: Asked) -> dict[str, Any]:
    text = asked.data[-1].strip()
    subject, *relation, place = text.rstrip(".").split()
    fact = {
        "subject": subject, "relation": " ".join(relation), "object": place, "type": "fact",
        "quote": text, "why": "told",
    }  # fmt: skip
    return {
        "gist": text,
        "entities": [{"name": subject, "type": "person"}],
        "topics": [],
        "importance": 0.5,
        "importance_reason": "",
        "dates": [],
        "facts": [fact],
    }


def updated(asked: Asked) -> dict[str, Any]:
    items = [json.loads(text) for text in asked.data]
    verdicts = [
        {"new": item["new"], "known": number, "verdict": "update", "why": "w"}
        for item in items
        if "new" in item
        for number in item["compare_with"]
    ]
    return {"verdicts": verdicts}


@pytest.fixture
def compared(memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A home in which a later letter has ended what an earlier one says."""
    endpoint.on("DocumentReply", understood)
    endpoint.on("ComparisonReply", updated)
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    tell(memctl, ACME, "2024-02-01", "first")
    tell(memctl, BOLT, "2026-02-01", "second")
    assert facts(memctl) == [BOLT]
    return memctl


def facts(memctl: Run) -> list[str]:
    """Those that hold."""
    found = memctl("memory", "list", "--type", "fact", "-n", "0").rows
    return sorted(row["text"] for row in found)


def test_a_fact_that_a_comparison_ended_holds_again_and_is_not_compared_anew(
    compared: Run, endpoint: FakeEndpoint
) -> None:
    report = undo(compared)
    assert (report["kind"], len(report["restored"])) == ("comparison", 1)
    assert facts(compared) == [ACME, BOLT]
    assert not any(
        row["relation_type"] == "updates" for row in rows(compared, "relations").values()
    )
    asked = endpoint.count("/v1/chat/completions")
    assert compared("consolidate").code == 0
    assert facts(compared) == [ACME, BOLT]
    assert endpoint.count("/v1/chat/completions") == asked


def test_a_fact_of_a_document_that_is_history_by_now_stays_ended(compared: Run) -> None:
    tell(compared, "Zoe lives in Rome.", "2026-03-01", "first")
    report = undo(compared)
    assert len(report["kept"]) == 1
    assert ACME not in facts(compared)


def test_a_comparison_is_taken_back_though_a_consolidation_came_after_it(compared: Run) -> None:
    (job,) = [job["id"] for job in compared("job", "list").rows if job["kind"] == "comparison"]
    assert compared("consolidate").code == 0
    undo(compared, str(job))
    assert facts(compared) == [ACME, BOLT]
