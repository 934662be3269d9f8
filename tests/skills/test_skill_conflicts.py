"""Conflicts among skills: found with their types, weighed, settled, repaired and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from memctl.knowledge_base import KnowledgeBase
from memctl.skills.skill_conflicts import opposite_instructions
from memctl.skills.skill_files import parse_skill
from memctl.skills.skill_views import conflict_priority
from memctl.upkeep.job_registry import ON_SKILLS

from .conftest import Clock, Run, Write, run_job

TOPICS = (
    ("mow-the-lawn", "Mow the lawn of the garden in stripes."),
    ("invoice-letters", "Write letters that remind customers of invoices."),
    ("parse-csv", "Parse tables in csv and clean their columns."),
    ("unit-tests", "Write unit tests for a Python module with fixtures."),
    ("trace-crash", "Find the cause of a crash from its stack trace."),
    ("helm-release", "Release a chart to a cluster and roll it back."),
    ("write-manual", "Write the manual of a command line program."),
    ("market-survey", "Survey a market and cite every source."),
    ("threat-model", "Model the threats to a service that is open to the world."),
    ("alert-rules", "Write rules for alerts on latency and errors."),
    ("query-speed", "Make slow queries of a database faster."),
    ("webhook-client", "Receive webhooks of a shop and answer them."),
    ("cron-reports", "Run reports every night and send them out."),
    ("logo-sketch", "Sketch a logo in three colours."),
    ("service-borders", "Draw the borders between services of a system."),
    ("sprint-board", "Keep the board of a sprint in order."),
    ("build-images", "Build images of containers in a pipeline."),
    ("restore-drill", "Practise to restore a backup of the files."),
    ("translate-mail", "Translate mails from Dutch into English."),
    ("roadmap", "Plan a roadmap for a year by quarter."),
    ("lint-sql", "Check SQL for style and mistakes."),
    ("résumé", "Shorten a curriculum vitae to one page."),
    ("photo-captions", "Describe photographs for people who cannot see them."),
    ("interview-notes", "Take notes in an interview and group them."),
)


def _thirty(write: Write) -> str:
    """A folder of 30 skills: two overlap, two require each other, one needs a deprecated one."""
    for name, description in TOPICS:
        path = write(name, description)
    write("review-code", "Review a pull request for bugs, style and tests.", category="code_review")
    write("check-changes", "Review a pull request for bugs, tests and style.",
          category="code_review")  # fmt: skip
    write("chicken", "Raise a chicken that lays one egg a day.", requires="egg")
    write("egg", "Hatch something small in the warmth of a lamp.", requires="chicken")
    write("fax-machine", "Send a fax over the telephone line.", status="deprecated")
    write("contracts", "Have a contract signed by both parties.", requires="fax-machine")
    return str(path.parent)


def test_a_scan_of_thirty_skills_finds_just_what_is_wrong(memctl: Run, write: Write) -> None:
    """The two that overlap, the circle, and the one that needs what is deprecated."""
    done = memctl("skill", "add", _thirty(write))
    assert (done.code, len(done.rows)) == (0, 30)
    names = {each["skill_id"]: each["slug"] for each in memctl("skill", "list").rows}
    found = memctl("skill", "conflicts", "--scan").rows
    pairs = {
        (each["type"], frozenset((names[each["skill_id"]], names[each["other_id"]])))
        for each in found
    }
    assert pairs == {
        ("overlap", frozenset(("review-code", "check-changes"))),
        ("dependency", frozenset(("chicken", "egg"))),
        ("dependency", frozenset(("contracts", "fax-machine"))),
    }
    assert len(found) == 3
    assert found[0]["severity"] == "critical"
    assert found[0]["explanation"].endswith("chicken -> egg -> chicken")
    again = memctl("skill", "conflicts", "--scan")
    assert [e["conflict_id"] for e in again.rows] == [e["conflict_id"] for e in found]
    assert "0 new, 0 gone" in again.err


def test_a_circle_is_told_wherever_it_matters_and_ends(memctl: Run, write: Write) -> None:
    root = write("alpha", "The first of three.", requires="beta").parent
    write("beta", "The second of three.", requires="gamma, nowhere")
    write("gamma", "The third of three.", requires="alpha")
    write("selfish", "Needs nothing but itself.", requires="selfish")
    memctl("skill", "add", str(root))
    done = memctl("skill", "context", "alpha", "-o", "json")
    assert done.json["requires"] == ["gamma", "beta"]
    assert done.json["cycles"] == [["alpha", "beta", "gamma", "alpha"]]
    assert done.json["missing"] == ["nowhere"]
    assert "nowhere is required and not there" in done.err
    explanations = [each["explanation"] for each in memctl("skill", "conflicts", "--scan").rows]
    assert sorted(explanations) == [
        "beta requires nowhere, which is not there",
        "they require each other in a circle: alpha -> beta -> gamma -> alpha",
        "they require each other in a circle: selfish -> selfish",
    ]


def test_names_that_differ_in_case_plural_or_hyphen_conflict(memctl: Run, write: Write) -> None:
    root = write("Write Report", "Put figures of a month into words.").parent
    write("write-reports", "Print a list of what was sold.")
    write("writereport", "Draw a diagram of all that there is.")
    write("write reporters", "Answer the press by mail.")
    memctl("skill", "add", str(root))
    found = memctl("skill", "conflicts", "--scan").rows
    assert [each["type"] for each in found] == ["naming"] * 3


def test_a_version_that_is_not_active_is_a_mismatch(memctl: Run, write: Write) -> None:
    root = write("uses-two", "Uses the second version of the other.", requires="other@2").parent
    write("other", "Is used by another skill in one version.")
    memctl("skill", "add", str(root))
    (found,) = memctl("skill", "conflicts", "--scan").rows
    assert found["type"] == "version_mismatch"
    memctl("skill", "version", "add", "other", "-", "--activate", stdin="A second text.")
    done = memctl("skill", "conflicts", "--scan")
    assert (done.rows, "1 gone" in done.err) == ([], True)


def test_opposite_instructions_for_the_same_contradict_each_other(
    memctl: Run, write: Write
) -> None:
    root = write("push-a", "Push a branch to the server and open a request.",
                 "Always squash the commits of a branch.").parent  # fmt: skip
    write("push-b", "Push a branch to the remote and open a request.",
          "Never squash the commits of a branch.")  # fmt: skip
    memctl("skill", "add", str(root), "--category", "devops")
    found = {each["type"] for each in memctl("skill", "conflicts", "--scan").rows}
    assert "contradiction" in found
    assert opposite_instructions("Always run tests.", "Never eat soup.") is None
    assert opposite_instructions("Write short texts.", "Write long texts.") is None


def test_triggers_of_the_front_matter_have_two_skills_compared(memctl: Run, tmp_path: Path) -> None:
    front = "---\nname: {}\ndescription: {}\ncategory: devops\ntriggers: [Merge, a release]\n---\n"
    for name, description, body in (
        ("tidy-up", "Keeps the history short.", "Always squash the commits of a branch."),
        ("archive", "Everything stays as it was.", "Never squash the commits of a branch."),
    ):
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(front.format(name, description) + body)
    memctl("skill", "add", str(tmp_path / "skills"))
    details = memctl("skill", "show", "archive", "-o", "json").json
    assert details["metadata"] == {"triggers": ["Merge", "a release"]}
    (found,) = memctl("skill", "conflicts", "--scan").rows
    assert found["type"] == "contradiction"
    assert "'Never squash the commits of a branch'" in found["explanation"]
    assert "'Always squash the commits of a branch'" in found["explanation"]


def test_a_skills_name_is_no_instruction(memctl: Run, write: Write) -> None:
    body = "# {}\n\nCall the team in an outage."
    root = write("never-panic", "Stay calm in an outage.", body.format("Never panic")).parent
    write("always-panic", "Stay calm in an outage.", body.format("always-panic"))
    memctl("skill", "add", str(root), "--category", "devops")
    found = {each["type"] for each in memctl("skill", "conflicts", "--scan").rows}
    assert found == {"overlap"}


def test_a_conflict_is_settled_by_a_person_and_checked_by_the_next_scan(
    memctl: Run, write: Write
) -> None:
    root = write("one", "The one of two that needs something.", requires="lost, gone").parent
    memctl("skill", "add", str(root))
    first, second = memctl("skill", "conflicts", "--scan").rows
    assert memctl("skill", "dismiss", first["conflict_id"]).code == 0
    assert memctl("skill", "resolve", second["conflict_id"][:12]).code == 0
    assert memctl("skill", "conflicts").rows == []
    (back,) = memctl("skill", "conflicts", "--scan").rows
    assert back["conflict_id"] == second["conflict_id"]
    assert memctl("skill", "acknowledge", back["conflict_id"]).code == 0
    assert memctl("skill", "conflicts", "--scan").rows[0]["status"] == "acknowledged"
    assert memctl("skill", "conflicts", "--status", "dismissed").rows[0]["type"] == "dependency"
    assert memctl("skill", "dismiss", first["conflict_id"]).code == 2
    assert memctl("skill", "resolve", "cf_none").code == 1


def test_conflicts_of_skills_in_use_have_a_higher_priority(
    memctl: Run, kb: KnowledgeBase, write: Write, clock: Clock
) -> None:
    root = write("busy", "A skill that is used a lot.", requires="lost").parent
    write("idle", "A thing that is hardly ever touched.", requires="lost-too")
    skills = kb.skills.acting_as()
    skills.add(root)
    for _ in range(3):
        skills.record_use("busy", success=True)
    found = kb.skills.conflicts().scan().found
    assert [each.priority for each in found] == [12.0, 4.0]
    assert conflict_priority("critical", 0) == 8
    clock.forward(days=31)
    assert {each.priority for each in kb.skills.conflicts().scan().found} == {4.0}
    clock.forward(days=-31)


# --- repair --------------------------------------------------------------------------------------


def _repairable(memctl: Run, write: Write) -> None:
    root = write("send-mail", "Send a mail to one person.").parent
    write("send-mails", "Ask the whole town for its opinion.")
    write("fax", "Send a fax over the telephone line.", status="deprecated", successor="send-mail")
    write("contracts", "Have a contract signed by both parties.", requires="fax, egg")
    write("egg", "Hatch something small in the warmth of a lamp.", requires="contracts")
    write("wants-old", "Knows the past better than the present.", requires="send-mail@4")
    memctl("skill", "add", str(root))
    memctl("skill", "conflicts", "--scan")


def test_simple_conflicts_are_repaired_and_undo_takes_that_back(memctl: Run, write: Write) -> None:
    _repairable(memctl, write)
    before = {each["skill_id"]: each for each in memctl("skill", "list").rows}
    planned = memctl("skill", "repair", "--dry-run", "-o", "json").json
    assert (planned["job"], len(planned["repaired"]), planned["left"]) == (None, 3, 1)
    assert {e["skill_id"]: e["slug"] for e in memctl("skill", "list").rows} == {
        id_: each["slug"] for id_, each in before.items()
    }
    done = memctl("skill", "repair", "--yes", "-o", "json").json
    after = {each["slug"]: each for each in memctl("skill", "list").rows}
    renamed = {each["slug"] for each in before.values()} - after.keys()
    assert len(renamed) == 1
    assert after["contracts"]["requires"] == ["send-mail", "egg"] or renamed == {"send-mail"}
    assert after["wants-old"]["requires"] != ["send-mail@4"]
    assert [e["type"] for e in memctl("skill", "conflicts").rows] == ["dependency"]
    jobs = memctl("job", "list").rows
    assert (jobs[0]["kind"], jobs[0]["can_be_undone"]) == ("skill_repair", True)
    assert memctl("job", "undo", str(done["job"]), "--yes").code == 0
    back = {each["skill_id"]: each for each in memctl("skill", "list").rows}
    for id_, each in before.items():
        for key in ("name", "slug", "requires"):
            assert back[id_][key] == each[key]
    assert len(memctl("skill", "conflicts").rows) == 4
    assert memctl("job", "undo", str(done["job"]), "--yes").code == 2


def test_a_repair_is_shown_to_people_without_brackets(memctl: Run, write: Write) -> None:
    _repairable(memctl, write)
    done = memctl("skill", "repair", "--dry-run", "-o", "table")
    assert "fax, egg" in done.out
    assert "[" not in done.out


def test_undoing_a_repair_leaves_what_was_changed_since(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    _repairable(memctl, write)
    done = memctl("skill", "repair", "--yes", "-o", "json").json
    path = write("wants-old", "Knows the past better than the present.", requires="egg")
    memctl("skill", "add", str(path))
    assert memctl("job", "undo", str(done["job"]), "--dry-run").code == 0
    assert memctl("job", "undo", "--yes").code == 0
    assert memctl("skill", "show", "wants-old", "-o", "json").json["skill"]["requires"] == ["egg"]


def test_nothing_is_repaired_without_consent(memctl: Run, kb: KnowledgeBase, write: Write) -> None:
    _repairable(memctl, write)
    assert memctl("skill", "repair").code == 2
    assert memctl("skill", "repair", "--yes", "--agent", "coder").code == 1
    assert run_job(kb, "skill_repair").counts["changed"] == 0


def test_a_renamed_skill_is_recognised_when_its_file_is_imported_again(
    memctl: Run, write: Write
) -> None:
    _repairable(memctl, write)
    memctl("skill", "repair", "--yes")
    again = memctl("skill", "add", str(write("send-mails", "Ask the whole town for its opinion.")))
    assert [each["outcome"] for each in again.rows] == ["unchanged"]


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: deploy-things\ndescription: Put a chart into the cluster.\n---\nHelm.\n",
        "---\ndescription: A chart.\nname: >\n  deploy-things\n---\nHelm.\n",
        "# deploy-things\n\nPut a chart into the cluster.\n",
    ],
)
def test_a_repaired_name_leads_to_one_skill_and_is_exported(
    memctl: Run, tmp_path: Path, text: str
) -> None:
    first, second = tmp_path / "x1.md", tmp_path / "x2.md"
    first.write_text("---\nname: Deploy Things\ndescription: Send the parcels.\n---\nParcels.\n")
    second.write_text(text)
    assert memctl("skill", "add", str(first)).code == 0
    assert memctl("skill", "add", str(second)).code == 0
    memctl("skill", "conflicts", "--scan")
    assert memctl("skill", "repair", "--yes").code == 0
    assert "Parcels." in memctl("skill", "context", "deploy-things").out
    assert memctl("skill", "used", "deploy-things", "--ok").code == 0
    renamed = memctl("skill", "context", "deploy-things-2")
    assert renamed.json["text"].count("name: deploy-things-2\n") == 1
    assert memctl("skill", "export", "--to", str(tmp_path / "all")).code == 0
    exported = tmp_path / "all" / "deploy-things-2"
    assert parse_skill((exported / "SKILL.md").read_text(), "").name == "deploy-things-2"
    for path in (exported, second):
        (again,) = memctl("skill", "add", str(path)).rows
        assert (again["outcome"], again["slug"]) == ("unchanged", "deploy-things-2")
    assert memctl("skill", "conflicts", "--scan").rows == []


def test_every_job_runs_on_an_empty_and_on_a_full_base(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    names = [job.name for job in ON_SKILLS]
    assert [run_job(kb, name).counts["changed"] for name in names] == [0] * len(names)
    _repairable(memctl, write)
    assert run_job(kb, "skill_conflicts").notices
    for name in names:
        run_job(kb, name)
    for name in names:
        assert run_job(kb, name).counts["changed"] == 0, f"{name} did the same twice"


@pytest.mark.parametrize("name", ["send-mail", "Send Mail"])
def test_the_graph_shows_what_a_skill_requires(memctl: Run, write: Write, name: str) -> None:
    _repairable(memctl, write)
    memctl("skill", "assign", "contracts", "--agent", "lawyer")
    near = memctl("graph", "neighbors", "contracts").rows
    assert {(e["name"], e["relation"], e["direction"]) for e in near} >= {
        ("fax", "requires", "out"),
        ("lawyer", "used_by", "out"),
    }
    assert {e["type"] for e in near} == {"skill", "agent"}
    around = {e["relation"] for e in memctl("graph", "neighbors", name).rows}
    assert around >= {"improves"}


def test_every_skill_is_in_the_graph_and_what_it_lacks_is_marked(memctl: Run, write: Write) -> None:
    root = write("invoice-match", "Match invoices with orders.", requires="ledger-read@2").parent
    write("Tea Break", "Make a pot of tea.", requires="kettle")
    write("kettle", "Boil some water.", status="archived")
    write("alone", "Stand by itself.")
    memctl("skill", "add", str(root))
    for name, wanted in {
        "invoice-match": [("ledger-read", "missing_skill", "requires")],
        "tea-break": [("kettle", "archived_skill", "requires")],
        "alone": [],
    }.items():
        near = memctl("graph", "neighbors", name)
        assert near.code == 0
        assert [(e["name"], e["type"], e["relation"]) for e in near.rows] == wanted
    (found,) = memctl("tool", "call", "search_knowledge_graph", '{"query": "alone"}').json["names"]
    assert (found["name"], found["type"]) == ("alone", "skill")
