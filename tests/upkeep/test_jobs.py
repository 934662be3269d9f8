"""The jobs of the night, each through the real commands, and the way back from them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from command_line import made_once
from killed import images_of

from memctl.config import load_config
from memctl.errors import ConfigError, UsageError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.memories.memory_editing import Editor, Statement
from memctl.records import Relation
from memctl.upkeep.runner import Upkeep

from .conftest import Clock, Run, distil

LESSON = "Retry an upload with a longer pause each time."


def texts(memctl: Run, *options: str) -> list[str]:
    return sorted(row["text"] for row in memctl("memory", "list", "-n", "0", *options).rows)


def ran(memctl: Run, job: str, *options: str) -> dict[str, Any]:
    done = memctl("upkeep", "run", job, *options)
    assert done.code == 0, done.err
    row: dict[str, Any] = done.rows[0]
    return row


# --- expiry --------------------------------------------------------------------------------------


def test_what_has_expired_is_hidden_at_once_and_deleted_after_a_grace(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    memctl("memory", "add", "The lift is out of order.", "--ttl", "2d")
    memctl("memory", "add", "The lift was built in 1970.")
    clock.forward(days=3)
    assert texts(memctl) == ["The lift was built in 1970."]
    assert ran(memctl, "expiry")["counts"] == {"removed": 0}
    assert kb.store.snapshot().count("memories") == 2
    clock.forward(days=7)
    assert ran(memctl, "expiry", "--dry-run")["counts"] == {"removed": 1}
    assert ran(memctl, "expiry")["counts"] == {"removed": 1}
    assert kb.store.snapshot().count("memories") == 1


# --- duplicates ----------------------------------------------------------------------------------


def tie(base: KnowledgeBase, one: str, other: str) -> None:
    from memctl.rows.row_changes import append_rows
    from memctl.schema.arrow_tables import relations_table

    now = base.clock()
    relation = Relation(
        id=f"r_{one[-8:]}{other[-8:]}",
        source_id=one,
        target_id=other,
        relation_type="near_duplicate",
        weight=0.95,
        text="",
        confidence=1.0,
        valid_from=now,
        memory_ids=(one, other),
    )
    with base.store.write() as transaction:
        append_rows(transaction, "relations", relations_table([relation]))


def test_of_duplicates_the_older_one_ends_on_request_and_comes_back(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    (old,) = distil(kb, "The ferry leaves at nine.")
    clock.forward(days=1)
    (new,) = distil(kb, "At nine the ferry leaves.")
    tie(kb, new, old)
    assert ran(memctl, "duplicates")["counts"] == {"pairs": 1, "merged": 0}
    assert len(texts(memctl)) == 2
    number = ran(memctl, "duplicates", "--merge")["number"]
    assert texts(memctl) == ["At nine the ferry leaves."]
    assert [row["id"] for row in memctl("memory", "history", new).rows] == [old, new]
    undone = memctl("job", "undo", str(number), "--yes")
    assert undone.code == 0, undone.err
    assert len(texts(memctl)) == 2


def test_duplicates_says_what_no_consolidation_has_compared(memctl: Run) -> None:
    for text in ("The ferry leaves at nine.", "At nine the ferry leaves."):
        memctl("memory", "add", text)
    found = memctl("upkeep", "run", "duplicates", "-o", "json")
    note = "2 memories of default have not been compared yet"
    assert f"note: {note}; to compare them: memctl consolidate -k default" in found.err
    assert found.json[0]["note"].startswith(note)
    assert memctl("consolidate").code == 0
    assert "note" not in memctl("upkeep", "run", "duplicates").err


# --- learnings -----------------------------------------------------------------------------------


def learn(memctl: Run, *options: str) -> str:
    added = memctl("memory", "add", LESSON, "--type", "learning", *options)
    assert added.code == 0, added.err
    return str(added.rows[0]["id"])


def test_a_learning_gains_by_being_confirmed_and_fades_while_it_is_idle(
    memctl: Run, clock: Clock
) -> None:
    id_ = learn(memctl, "--importance", "0.5", "--outcome", "success", "--context", "uploads")
    clock.forward(days=1)
    assert memctl("memory", "confirm", id_, "--agent", "scout").code == 0
    assert memctl("memory", "confirm", id_, "--agent", "scout").code == 0, "counts once"
    learn(memctl, "--agent", "clerk")
    (known,) = memctl("memory", "learnings").rows
    assert (known["confirmations"], known["outcome"]) == (2, "success")
    assert known["importance"] == pytest.approx(1 - 0.5 * 0.9**2, abs=1e-3)
    clock.forward(days=90)
    (faded,) = memctl("memory", "learnings").rows
    now = 0.05 + (1 - 0.5 * 0.9**2 - 0.05) / 2
    assert faded["importance"] == pytest.approx(now, abs=1e-3)


def test_a_good_answer_confirms_the_learning_that_it_used_and_undo_takes_it_back(
    memctl: Run, clock: Clock
) -> None:
    learn(memctl)
    asked = memctl("query", "how to retry an upload?", "-o", "json").json
    memctl("query", "--feedback", asked["query_id"], "good")
    clock.forward(days=1)
    done = ran(memctl, "learnings")
    assert done["counts"] == {"learnings": 1, "confirmations": 1, "from_skills": 0}
    assert ran(memctl, "learnings")["counts"]["confirmations"] == 0, "each question counts once"
    assert memctl("memory", "learnings").rows[0]["confirmations"] == 1
    assert memctl("job", "undo", str(done["number"]), "--yes").code == 0
    assert memctl("memory", "learnings").rows[0]["confirmations"] == 0


def test_a_lesson_in_a_document_is_a_learning(memctl: Run) -> None:
    note = (
        "Talked to Ida about the crane.\n\nLesson learned: always book the crane two weeks ahead."
    )
    memctl("ingest", "--text", f"{note}\n\nTIL: the crane lifts four tons.", "--title", "Crane")
    found = [row["text"] for row in memctl("memory", "learnings").rows]
    assert any("book the crane two weeks ahead" in text for text in found), found
    assert any("lifts four tons" in text for text in found), found


def test_notes_on_uses_of_skills_are_learnings(memctl: Run, clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "invoices.md").write_text("# invoice-match\n\nMatch invoices with orders.")
    memctl("skill", "add", str(tmp_path / "invoices.md"))
    used = ("skill", "used", "invoice-match", "--task", "May")
    memctl(*used, "--failed", "--note", "skip drafts", "--agent", "clerk")
    memctl(*used, "--ok", "--note", "Sort by date first")
    memctl(*used, "--ok")
    clock.forward(days=1)
    assert ran(memctl, "learnings", "--dry-run")["counts"]["from_skills"] == 2
    number = ran(memctl, "learnings")["number"]
    known = {row["text"]: row for row in memctl("memory", "learnings").rows}
    assert known.keys() == {"invoice-match: skip drafts", "invoice-match: Sort by date first"}
    since = "select distinct valid_from from memories where type = 'learning'"
    assert len(memctl("sql", since).rows) == 1, "they are one commit"
    failed = known["invoice-match: skip drafts"]
    assert (failed["outcome"], failed["context"], failed["agent"]) == ("failure", "May", "clerk")
    memory = memctl("memory", "show", failed["id"], "-o", "json").json["memory"]
    assert memory["source"] == "skill invoice-match"
    memctl(*used, "--failed", "--note", "skip drafts", "--agent", "scout")
    again = ran(memctl, "learnings")["counts"]
    assert (again["from_skills"], again["confirmations"]) == (0, 1)
    memctl("memory", "delete", failed["id"], "--yes")
    assert ran(memctl, "learnings")["counts"]["from_skills"] == 0, "what was deleted stays away"
    assert memctl("job", "undo", str(number), "--yes").code == 0
    assert memctl("memory", "learnings").rows == []


def test_a_note_that_is_refused_does_not_keep_others_from_being_learnt(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Editor._as_memory

    def read_unless_refused(self: Editor, statement: Statement, now: datetime) -> Any:
        """Refuse one of the notes."""
        if "skip" in statement.text:
            raise UsageError("a memory needs a text")
        return read(self, statement, now)

    monkeypatch.setattr(Editor, "_as_memory", read_unless_refused)
    (tmp_path / "invoices.md").write_text("# invoice-match\n\nMatch invoices with orders.")
    memctl("skill", "add", str(tmp_path / "invoices.md"))
    for note in ("skip drafts", "sort by date"):
        memctl("skill", "used", "invoice-match", "--ok", "--note", note)
    assert ran(memctl, "learnings")["counts"]["from_skills"] == 1
    texts = [row["text"] for row in memctl("memory", "learnings").rows]
    assert texts == ["invoice-match: sort by date"]


def test_only_learnings_are_confirmed_and_have_an_outcome(memctl: Run) -> None:
    id_ = memctl("memory", "add", "The lift was built in 1970.").rows[0]["id"]
    assert memctl("memory", "confirm", id_).code == 2
    assert memctl("memory", "add", "x y z", "--outcome", "success").code == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("outcome=banana", "the outcome of a learning cannot be 'banana'"),
        ("context=7", "the context of a learning is a text, not 7"),
        ("share=maybe", "the share of a learning is true or false, not 'maybe'"),
        ('{"a": NaN}', "--metadata is no JSON object: NaN is no number of JSON"),
    ],
)
def test_metadata_do_not_get_round_the_options_of_learnings(
    memctl: Run, given: str, message: str
) -> None:
    add = ("memory", "add", "x y z", "--type")
    refused = memctl(*add, "learning", "--metadata", given)
    assert refused.code == 2
    assert message in refused.err
    if "NaN" not in given:
        assert memctl(*add, "note", "--metadata", given).code == 0
    taken = ("outcome=failure", "context=deploys", "share=true", "size=NaN")
    options = (word for each in taken for word in ("--metadata", each))
    metadata = memctl(*add, "learning", *options).rows[0]["metadata"]
    assert metadata == {"outcome": "failure", "context": "deploys", "share": True, "size": "NaN"}


def test_a_marked_learning_of_another_base_is_shared_once_and_private_ones_stay(
    memctl: Run, clock: Clock
) -> None:
    for name, options in (("scouts", ()), ("diary", ("--private",))):
        assert memctl("kb", "create", name, *options).code == 0
    learn(memctl, "--share", "-k", "scouts")
    private = ("Never ask Ida before nine.", "--type", "learning", "--share", "-k", "diary")
    assert memctl("memory", "add", *private).code == 0
    clock.forward(days=1)
    done = next(row for row in memctl("upkeep", "run", "shared").rows if row["kb"] == "default")
    assert done["counts"] == {"shared": 1}
    shared = ("--namespace", "organization:shared", "-k", "default")
    assert texts(memctl, *shared) == [LESSON]
    again = next(row for row in memctl("upkeep", "run", "shared").rows if row["kb"] == "default")
    assert again["counts"] == {"shared": 0}
    undone = memctl("job", "undo", str(done["number"]), "--yes", "-k", "default")
    assert undone.code == 0, undone.err
    assert texts(memctl, *shared) == []


def test_a_copy_of_a_learning_ends_when_the_learning_does(memctl: Run, clock: Clock) -> None:
    learn(memctl, "--share", "--ttl", "3d")
    assert ran(memctl, "shared")["counts"] == {"shared": 1}
    assert texts(memctl, "--namespace", "organization:shared") == [LESSON]
    clock.forward(days=4)
    assert texts(memctl, "--namespace", "organization:shared") == []
    clock.forward(days=7)
    assert ran(memctl, "expiry")["counts"] == {"removed": 2}


def test_a_learning_shared_late_is_as_old_as_its_source(memctl: Run, clock: Clock) -> None:
    id_ = learn(memctl, "--share")
    learnt = memctl("memory", "show", id_, "-o", "json").json["memory"]["valid_from"]
    clock.forward(days=200)
    assert memctl("upkeep", "run", "shared").code == 0
    (copy,) = memctl("memory", "list", "--namespace", "organization:shared").rows
    assert copy["valid_from"] == learnt


def test_a_learning_of_three_agents_is_shared_automatically(memctl: Run, clock: Clock) -> None:
    for number, agent in enumerate(("scout", "clerk", "cook")):
        assert ran(memctl, "shared")["counts"] == {"shared": 0}, number
        learn(memctl, "--agent", agent)
        clock.forward(minutes=1)
    assert ran(memctl, "shared")["counts"] == {"shared": 1}


def test_the_report_lists_what_is_stale_or_was_judged_bad(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    (stale,) = distil(kb, "The harbour office orders green paint.")
    empty = memctl("upkeep", "report")
    assert (empty.out, empty.err[:26]) == ("", "note: nothing to look at: ")
    clock.forward(days=250)
    bad = learn(memctl)
    other = memctl("memory", "add", "An upload of the [[Boat]] list takes an hour.").rows[0]["id"]
    asked = memctl("query", "how to retry an upload?", "-o", "json").json
    assert other in [hit["memory_id"] for hit in asked["hits"]]
    assert [each["memory_id"] for each in asked["answer"]["citations"]] == [bad]
    memctl("query", "--feedback", asked["query_id"], "bad")
    kb.store.ledger.accesses.clear(kb.store.ledger.accesses.pending())
    found = {row["id"]: row["why"] for row in memctl("upkeep", "report").rows}
    assert found[stale] == "stale"
    assert found[bad] == "judged bad"
    assert other not in found, "the answer did not rely on it"
    assert {row["id"] for row in memctl("audit", "stale").rows} == set(found)


# --- old conversations ---------------------------------------------------------------------------


def test_messages_of_a_conversation_that_is_long_over_are_archived_behind_its_summary(
    memctl: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_UPKEEP_PRUNE_SESSIONS_DAYS", "30")
    assert memctl("session", "start", "--id", "lease").code == 0
    for text in ("The lease of the workshop ends in June.", "Mara asks Jonas for a new one."):
        assert memctl("session", "say", "lease", text).code == 0
    assert len(texts(memctl, "--level", "evidence")) >= 2
    clock.forward(days=20)
    assert ran(memctl, "prune")["counts"] == {"sessions": 0, "archived": 0}
    clock.forward(days=20)
    done = ran(memctl, "prune")
    assert done["counts"]["sessions"] == 1
    assert done["counts"]["archived"] >= 2
    assert memctl("session", "list").rows[0]["status"] == "archived"
    assert ran(memctl, "prune")["counts"] == {"sessions": 0, "archived": 0}
    before = len(texts(memctl))
    assert memctl("job", "undo", str(done["number"]), "--yes").code == 0
    assert len(texts(memctl)) > before


# --- a page of the day ---------------------------------------------------------------------------


def test_a_day_becomes_a_page_with_links_and_is_written_once_a_day(
    memctl: Run, clock: Clock
) -> None:
    memctl("ingest", "--text", "We decided to open the bar at Harbour Street on weekends.",
           "--title", "Bar")  # fmt: skip
    memctl("query", "who is the mayor of Atlantis?")
    page = memctl("summary", "-o", "json").json
    assert page["text"].startswith("# 2026-05-01\n")
    assert "- [[Bar]]: We decided" in page["text"]
    assert "## Decisions" in page["text"]
    assert page["document_id"] is None
    first = memctl("summary", "--write", "-o", "json").json["document_id"]
    assert first is not None
    listed = [row["title"] for row in memctl("document", "list").rows]
    assert listed.count("2026-05-01") == 1
    memctl("ingest", "--text", "The roaster comes in May.", "--title", "Roaster")
    assert memctl("summary", "2026-05-01", "--write", "-o", "json").json["documents"] == 2
    listed = [row["title"] for row in memctl("document", "list").rows]
    assert listed.count("2026-05-01") == 1
    assert memctl("summary", "2026-13-01").code == 2


def test_a_page_about_a_day_is_no_source_of_facts(memctl: Run, tmp_path: Path) -> None:
    lease = "The lease for the Harbour Street workshop starts on {} June 2026.\n"
    for name, day, date in (("signed", 1, "2026-03-24"), ("moved", 15, "2026-04-12")):
        (tmp_path / f"{name}.md").write_text(f"---\ndate: {date}\n---\n{lease.format(day)}")
    assert memctl("ingest", str(tmp_path / "signed.md"), str(tmp_path / "moved.md")).code == 0
    memctl("ingest", "--text", "We decided to sell the old roaster.", "--title", "Roaster")
    memctl("consolidate")
    known = {row["id"] for row in memctl("memory", "list", "--level", "memory").rows}
    standing = memctl("context", "--standing").out
    page = memctl("summary", "--write", "-o", "json").json
    assert "starts on 1 June 2026" in page["text"]
    assert {row["id"] for row in memctl("memory", "list", "--level", "memory").rows} == known
    assert memctl("context", "--standing").out == standing
    (report,) = memctl("consolidate", "-o", "json").json
    assert (report["examined"], report["insights"]) == (0, [])
    assert memctl("document", "backlinks", "Roaster").rows[0]["id"] == page["document_id"]


def test_every_link_of_a_page_leads_to_one_document(memctl: Run, tmp_path: Path) -> None:
    amounts = {"a/rent": "1,200", "b/rent": "1,350"}
    for name, amount in amounts.items():
        file = tmp_path / "vault" / f"{name}.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"# Rent\n\nThe rent of the Boat Shed is {amount} euros a month.\n")
    (tmp_path / "vault" / "odd.md").write_text(
        "# Plan #2 [draft]\n\nWe decided to sail to [[Nowhere|the sea]].\n"
    )
    memctl("ingest", str(tmp_path / "vault"))
    assert memctl("consolidate").code == 0
    page = memctl("summary", "--write", "-o", "json").json
    assert page["insights"] + page["contradictions"] > 0
    insights = page["text"].split("## Insights")[1]
    for name in amounts:
        assert f"- [[{name}|Rent]]: " in page["text"]
        assert f"[[{name}|Rent]]" in insights
    assert "[[plan-2-draft|Plan #2 (draft)]]" in page["text"]
    problems = memctl("links", "check", "-o", "json").json["problems"]
    assert [(each["title"], each["name"]) for each in problems] == [("Plan #2 [draft]", "Nowhere")]
    assert len(memctl("document", "links", "2026-05-01").rows) == 3


def test_the_page_is_written_by_itself_only_where_that_is_wanted(
    memctl: Run, home: Home, clock: Clock
) -> None:
    memctl("ingest", "--text", "The roaster comes in May.", "--title", "Roaster")
    clock.forward(hours=12)
    memctl("upkeep", "run", "--due")
    assert len(memctl("document", "list").rows) == 1
    memctl("upkeep", "set", "summary", "--at", "23:55")
    memctl("upkeep", "run", "--due")
    assert {row["title"] for row in memctl("document", "list").rows} == {"Roaster", "2026-05-01"}
    memctl("upkeep", "run", "--due")
    assert len(memctl("document", "list").rows) == 2


def test_pages_of_days_before_a_sleep_are_made_up(memctl: Run, home: Home, clock: Clock) -> None:
    memctl("upkeep", "set", "summary", "--at", "23:55")
    for day in range(1, 4):
        memctl("ingest", "--text", f"The roaster makes {day} sacks.", "--title", f"Roaster {day}")
        if day == 1:
            clock.forward(hours=12)
            memctl("upkeep", "run", "--due")
            clock.forward(hours=12)
        else:
            clock.forward(days=1)
    clock.forward(days=5)
    runs = {row["job"]: row["counts"] for row in memctl("upkeep", "run", "--due").rows}
    assert runs["summary"] == {"documents": 2, "written": 2}
    pages = [row["title"] for row in memctl("document", "list", "--source", "daily*").rows]
    assert sorted(pages) == ["2026-05-01", "2026-05-02", "2026-05-03"]


# --- a whole night -------------------------------------------------------------------------------


def test_a_whole_night_is_taken_back_at_once(memctl: Run, kb: KnowledgeBase, clock: Clock) -> None:
    distil(kb, "The harbour office orders green paint.")
    learn(memctl, "--share")
    clock.forward(days=400)
    before = texts(memctl)
    runs = {row["job"]: row["counts"] for row in memctl("upkeep", "run", "--due").rows}
    assert runs["rot"] == {"archived": 1, "withheld": 0}
    assert runs["shared"] == {"shared": 1}
    assert texts(memctl) != before
    tried = memctl("job", "undo", "--all-of-night", "--dry-run", "-o", "json").json
    assert {each["kind"] for each in tried} == {"rot", "shared"}
    done = memctl("job", "undo", "--all-of-night", "--yes")
    assert done.code == 0, done.err
    assert texts(memctl) == before
    assert memctl("job", "undo", "--all-of-night", "--yes").code == 1


# --- commands of the user's ----------------------------------------------------------------------


def configure(home: Home, text: str) -> None:
    home.config.path.parent.mkdir(parents=True, exist_ok=True)
    (home.config.home / "config.toml").write_text(text)


def test_a_command_of_the_users_runs_on_its_schedule_with_the_name_of_the_base(
    memctl: Run, home: Home, clock: Clock, tmp_path: Path
) -> None:
    configure(
        home,
        f"""
        [[upkeep.custom]]
        name = "note"
        command = "echo $MEMCTL_KB >> {tmp_path}/said"
        at = "05:00"
        """,
    )
    assert "note" in [row["job"] for row in memctl("upkeep", "list").rows]
    assert ran(memctl, "note", "--dry-run")["dry_run"]
    assert not (tmp_path / "said").exists()
    clock.forward(days=1)
    for _ in range(2):
        memctl("upkeep", "run", "--due")
    assert (tmp_path / "said").read_text() == "default\n"
    assert memctl("upkeep", "set", "note", "--off").code == 2


def test_a_command_that_fails_says_why_and_keeps_no_other_job_from_running(
    memctl: Run, home: Home, clock: Clock
) -> None:
    configure(
        home,
        """
        [[upkeep.custom]]
        name = "broken"
        command = "echo no such tape >&2; exit 7"
        every = "1h"
        """,
    )
    clock.forward(days=1)
    done = memctl("upkeep", "run", "--due")
    assert (done.code, "no such tape" in done.err) == (3, True)
    states = {row["job"]: row["state"] for row in memctl("upkeep", "list").rows}
    assert (states["broken"], states["rot"]) == ("failed", "done")


def test_a_dry_run_of_a_command_claims_nothing_and_a_failure_is_listed(
    memctl: Run, home: Home
) -> None:
    configure(
        home,
        """
        [[upkeep.custom]]
        name = "broken"
        command = "echo secret words >&2; exit 7"
        every = "1h"
        """,
    )
    assert ran(memctl, "broken", "--dry-run")["counts"] == {"would_run": 1}
    assert memctl("job", "list").rows == []
    assert memctl("upkeep", "run", "broken").code == 1
    (listed,) = memctl("job", "list").rows
    assert (listed["state"], listed["detail"]) == ("failed", {"exit_code": 7})
    assert listed["error"] == "the command of 'broken' ended with exit code 7"
    statuses = {row["job"]: row["came_to"] for row in memctl("upkeep", "list").rows}
    assert statuses["broken"] == {"exit_code": 7}


@pytest.mark.parametrize("name", ["rot", "skill_gaps"])
def test_a_command_called_like_a_job_of_memctl_is_refused(
    memctl: Run, home: Home, name: str
) -> None:
    configure(home, f'[[upkeep.custom]]\nname = "{name}"\ncommand = "true"\nat = "04:00"\n')
    for words in (("list",), ("run", name), ("run", "--due"), ("set", name, "--off")):
        done = memctl("upkeep", *words)
        assert (done.code, done.out) == (2, "")
        assert f"memctl has a job '{name}' itself" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "a"\ncommand = "true"', "needs either at or every"),
        ('name = "a"\ncommand = "true"\nat = "25:00"', "no time of day"),
        ('name = "a"\nat = "04:00"', "needs a name and a command"),
        ('name = "A b"\ncommand = "true"\nat = "04:00"', "cannot be the name of a job"),
        ('name = "a"\ncommand = "true"\nat = "04:00"\nwhen = "now"', "when"),
    ],
)
def test_a_command_that_is_declared_wrongly_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "config.toml").write_text(f"[[upkeep.custom]]\n{text}\n")
    with pytest.raises(ConfigError, match=said):
        load_config({"home": str(tmp_path)}, {})


def test_settings_of_a_knowledge_base_declare_no_commands(home: Home, memctl: Run) -> None:
    path = home.layout("default").settings
    path.write_text(
        path.read_text() + '\n[[upkeep.custom]]\nname = "x"\ncommand = "true"\nat = "04:00"\n'
    )
    assert memctl("upkeep", "list", "-k", "default").code != 0


# --- operations ----------------------------------------------------------------------------------


def test_agents_learn_restore_and_look_after_memory_through_tools(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    import json

    def call(name: str, **arguments: Any) -> Any:
        done = memctl("tool", "call", name, json.dumps(arguments))
        assert done.code == 0, (name, done.err, done.out)
        return done.json

    (gist,) = distil(kb, "The harbour office orders green paint.")
    made = call("add_learning", text=LESSON, outcome="failure", context="uploads")
    clock.forward(days=400)
    assert call("confirm_learning", id=made["id"])["confirmations"] == 1
    (known,) = call("query_learnings", outcome="failure")["learnings"]
    assert (known["id"], known["confirmations"]) == (made["id"], 1)
    assert "rot" in [job["job"] for job in call("list_upkeep_jobs")["jobs"]]
    assert call("run_upkeep_job", job="rot")["counts"]["archived"] == 1
    assert call("restore_memory", id=gist)["id"] == gist
    assert call("upkeep_report")["entries"] is not None
    assert call("daily_summary")["text"].startswith("# ")
    assert "job rot" in [change["action"] for change in call("audit_trail")["changes"]]


def test_jobs_on_skills_run_where_there_are_skills(memctl: Run, tmp_path: Path) -> None:
    memctl("memory", "add", "The boat is blue.")
    assert "skill_conflicts" not in [row["job"] for row in memctl("upkeep", "list").rows]
    skill = tmp_path / "deploy" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: deploy\ndescription: Deploy to Kubernetes.\n---\nRun kubectl.\n")
    assert memctl("skill", "add", str(skill.parent)).code == 0
    listed = {row["job"]: row for row in memctl("upkeep", "list").rows}
    assert "4:15" in listed["skill_conflicts"]["schedule"]
    for job in ("skill_conflicts", "skill_decay", "skill_gaps", "skill_proposals", "reflect"):
        assert memctl("upkeep", "run", job, "--dry-run").code == 0
        assert memctl("upkeep", "run", job).code == 0


# --- the way back from each -----------------------------------------------------------------------


@pytest.fixture
def worked(
    memctl: Run, home: Home, clock: Clock, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """A knowledge base in which every job that changes something has something to do."""
    began, kept = clock.now, tmp_path_factory.getbasetemp() / "worked"

    def make() -> None:
        with home.open("default") as base:
            work(memctl, base, clock, tmp_path / "skills")

    if kept.exists():
        shutil.rmtree(home.config.home)
    made_once(home.config.home, kept, make)
    clock.now = began + WORKED
    return memctl


WORKED = timedelta(days=3, hours=1)


def work(memctl: Run, kb: KnowledgeBase, clock: Clock, skills: Path) -> None:
    """Put in what each job is to find."""
    for name, more in (
        ("send-mail", ""), ("send-mails", ""), ("fax", "status: deprecated\nsuccessor: send-mail"),
        ("contracts", "requires: fax"),
    ):  # fmt: skip
        path = skills / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        words = f"description: What {name} is for is told in many words of its own.\n{more}"
        path.write_text(f"---\nname: {name}\n{words}\n---\nDo as {name} says.\n")
    assert memctl("skill", "add", str(skills)).code == 0
    memctl("skill", "conflicts", "--scan")
    clock.forward(hours=1)
    for note in ("log in first", "tell the team", "not on Fridays"):
        memctl("skill", "used", "contracts", "--failed", "--note", note)
    memctl("session", "start", "--id", "lease")
    memctl("session", "say", "lease", "The lease of Quirin Halloran ends in June.")
    memctl("ingest", "--text", "The office of [[Vega Pier]] has a green door.", "--title", "Door")
    memctl("query", "who is the mayor of Atlantis?")
    for words in (("Do ask Odalys Brandt at [[Harbour Desk]] first.", "--share"), (LESSON,)):
        memctl("memory", "add", *words, "--type", "learning")
    asked = memctl("query", "how to retry an upload?", "-o", "json").json
    memctl("query", "--feedback", asked["query_id"], "good")
    entry = ("key", "--session", "s", "--agent", "scout", "--tier", "short_term")
    memctl("tier", "set", "key", "Isaura Vance keeps the key of [[Mill Quay]].", *entry[1:])
    for _ in range(3):
        memctl("tier", "get", *entry)
    old, new = distil(kb, "The ferry leaves at nine."), distil(kb, "At nine the ferry leaves.")
    tie(kb, *new, *old)
    clock.forward(days=3)
    memctl("ingest", "--text", "The roaster comes in May.", "--title", "Roaster")


def everything(memctl: Run) -> dict[str, Any]:
    """All that people see of what is known."""
    return {
        "memories": sorted(
            (row["id"], row["text"]) for row in memctl("memory", "list", "-n", "0").rows
        ),
        "documents": sorted(row["title"] for row in memctl("document", "list").rows),
        "names": sorted(row["name"] for row in memctl("sql", "from entities").rows),
        "learnings": sorted(
            (row["id"], row["confirmations"]) for row in memctl("memory", "learnings").rows
        ),
        "skills": sorted(
            (row["skill_id"], row["slug"], row["requires"]) for row in memctl("skill", "list").rows
        ),
        "versions": memctl("sql", "select skill_id, number from skill_versions order by all").rows,
    }


@pytest.mark.parametrize(
    ("job", "days"),
    [
        ("learnings", 0), ("promotion", 0), ("rot", 400), ("duplicates", 0), ("shared", 0),
        ("prune", 40), ("summary", 0), ("reflect", 0), ("skill_repair", 0), ("skill_learning", 0),
    ],
)  # fmt: skip
def test_whatever_a_job_has_changed_is_taken_back(
    worked: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, job: str, days: int
) -> None:
    monkeypatch.setenv("MEMCTL_UPKEEP_PRUNE_SESSIONS_DAYS", "30")
    monkeypatch.setenv("MEMCTL_SKILLS_AUTO_REPAIR", "true")
    clock.forward(days=days)
    before = everything(worked)
    number = ran(worked, job, *(["--merge"] if job == "duplicates" else []))["number"]
    assert everything(worked) != before
    listed = {row["id"]: row for row in worked("job", "list").rows}
    assert listed[number]["can_be_undone"]
    tried = worked("job", "undo", str(number), "--dry-run")
    assert (tried.code, job in tried.out) == (0, True), tried.err
    undone = worked("job", "undo", str(number), "--yes")
    assert undone.code == 0, undone.err
    after = everything(worked)
    if job == "prune":  # what was said is back; the summary that it made stays, too
        assert set(after["memories"]) >= set(before["memories"])
    else:
        assert after == before
    assert worked("doctor", "-q").code == 0
    assert worked("job", "undo", str(number), "--yes").code == 2


def test_a_night_that_is_taken_back_takes_along_pages_and_repairs_of_skills(
    worked: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_SKILLS_AUTO_REPAIR", "true")
    for job in ("summary", "reflect"):
        worked("upkeep", "set", job, "--at", "23:55")
    clock.forward(hours=20)
    before = everything(worked)
    done = worked("upkeep", "run", "--due")
    assert done.code == 0, done.err
    assert everything(worked) != before
    undone = worked("job", "undo", "--all-of-night", "--yes", "-o", "ndjson")
    assert undone.code == 0, undone.err
    assert {row["kind"] for row in undone.rows} >= {
        "shared", "promotion", "learnings", "summary", "reflect", "skill_repair",
    }  # fmt: skip
    assert everything(worked) == before


def test_a_night_that_is_killed_and_run_again_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "home"
    monkeypatch.setenv("MEMCTL_HOME", str(place))
    then = Clock(datetime.now(UTC) - timedelta(days=400))
    home = Home(load_config({"home": str(place)}, {}), then)
    home.create("default", consolidate_interval=0)
    with home.open("default") as base:
        distil(base, "The harbour office orders green paint.")
        base.memories.add("The lift is out of order.", expires_at=then() + timedelta(days=2))
        lesson = base.memories.add(
            "Ask Odalys Brandt at [[Harbour Desk]].", type_="learning", metadata={"share": True}
        )
        base.memories.confirm(lesson.id, "agent scout")
        before = held(base)
    images = images_of(place, tmp_path / "images", "upkeep", "run", "--due")
    with home.open("default") as base:
        wanted = held(base)
    assert wanted != before
    then.now = datetime.now(UTC) + timedelta(hours=1)
    for image in images[:: max(1, len(images) // 10)]:
        again = Home(load_config({"home": str(image.home)}, {}), then)
        with again.open("default") as base:
            assert all(not run.error for run in Upkeep(base, again).run_due()), image.step
            assert held(base) == wanted, image.step
            while any(job.can_be_undone for job in base.jobs.list()):
                base.jobs.undo_night()
            assert held(base) == before - {"The lift is out of order."}, image.step


def held(base: KnowledgeBase) -> set[str]:
    """What holds and is not archived, each as often as it is said."""
    rows = base.store.snapshot().scan("memories", columns=["text", "namespace", "archived_at"])
    return {
        f"{row['text']}{' (shared)' * (row['namespace'] == 'organization:shared')}"
        for row in rows.to_pylist()
        if row["archived_at"] is None
    }


def test_what_was_taken_back_is_not_archived_or_written_again_the_next_night(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    distil(kb, "The harbour office orders green paint.")
    memctl("upkeep", "set", "summary", "--at", "23:55")
    clock.forward(days=400)
    memctl("ingest", "--text", "The roaster comes in May.", "--title", "Roaster")
    clock.forward(days=1)
    before = texts(memctl)
    memctl("upkeep", "run", "--due")
    assert texts(memctl) != before
    assert memctl("job", "undo", "--all-of-night", "--yes").code == 0
    clock.forward(days=1)
    memctl("upkeep", "run", "--due")
    assert texts(memctl) == before
