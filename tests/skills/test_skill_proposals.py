"""Skills proposed, reviewed and made; gaps and coverage; what uses teach."""

from __future__ import annotations

import re

import pytest

from memctl.errors import UsageError
from memctl.knowledge_base import KnowledgeBase

from .conftest import Clock, Run, Write, run_job

TOPIC = "Kubernetes deployment automation"


def test_approving_leaves_sub_proposals_for_what_nobody_has(memctl: Run, write: Write) -> None:
    memctl("skill", "add", str(write("build-images", "Build the images of containers.")))
    made = memctl(
        "skill", "propose", TOPIC, "--requires", "helm-charts", "--requires", "cluster-login",
        "--requires", "build-images", "--submit",
    ).rows[0]  # fmt: skip
    assert (made["status"], made["category"]) == ("submitted", "deployment")
    assert 0 < made["confidence"] < 1
    assert memctl("skill", "review", made["proposal_id"]).rows[0]["status"] == "under_review"
    assert memctl("skill", "approve", made["proposal_id"]).code == 0
    rows = memctl("skill", "proposals", "--status", "submitted").rows
    assert {(e["name"], e["parent_id"]) for e in rows} == {
        ("helm-charts", made["proposal_id"]),
        ("cluster-login", made["proposal_id"]),
    }
    done = memctl("skill", "create", made["proposal_id"]).rows[0]
    again = memctl("skill", "create", made["proposal_id"])
    assert (again.code, "is created" in again.err) == (2, True)
    assert done["version"] == 1
    assert done["missing"] == ["helm-charts", "cluster-login"]
    (version,) = memctl("skill", "version", "list", done["slug"]).rows
    assert (version["number"], version["share"]) == (1, 100)
    near = memctl("graph", "neighbors", TOPIC).rows
    assert {(e["name"], e["relation"], e["type"]) for e in near} == {
        ("build-images", "requires", "skill"),
        ("helm-charts", "requires", "missing_skill"),
        ("cluster-login", "requires", "missing_skill"),
    }
    assert memctl("skill", "proposals", "--status", "created").rows[0]["skill_id"]
    assert memctl("skill", "list", "--status", "active").rows[1]["slug"] == done["slug"]


def test_research_finds_documents_and_skills_on_the_topic(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    memctl("skill", "add", str(write("helm", "Release charts to a Kubernetes cluster.")))
    kb.ingest(text="Our Kubernetes deployment uses a canary for ten minutes.", title="Canary")
    kb.memories.add("The Kubernetes deployment freezes in August.")
    made = memctl("skill", "propose", TOPIC).rows[0]
    assert "document: Canary" in made["findings"]
    assert "memory: The Kubernetes deployment freezes in August." in made["findings"]
    assert any(each.startswith("skill: helm") for each in made["findings"])
    assert "canary" in made["content"]
    bare = memctl("skill", "propose", "medieval falconry").rows[0]
    assert bare["confidence"] < made["confidence"]
    assert not {"## What is known", "## Steps"} & set(bare["content"].splitlines())


def test_a_draft_says_what_is_known_as_steps_and_what_is_near(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    memctl("skill", "add", str(write("roast-beans", "Roast coffee beans in the drum.")))
    note = (
        "# Beans\n\n## Roasting\n\nThe beans come from [[Huila]]. Always roast them light."
        " Never roast wet beans. Listen for the crack.\n\n- [ ] Then weigh them\n"
    )
    kb.ingest(text=note, title="Beans")
    made = memctl("skill", "propose", "how do we roast the beans?").rows[0]
    assert made["name"] == "Roast the beans"
    assert made["description"] == "Roast the beans. Never roast wet beans."
    assert made["content"].split("# Roast the beans\n\n", 1)[1] == (
        "Roast the beans. Never roast wet beans.\n\n"
        "## Steps\n\n"
        "1. Always roast them light. (Beans)\n"
        "2. Never roast wet beans. (Beans)\n"
        "3. Then weigh them (Beans)\n\n"
        "## What is known\n\n"
        "- The beans come from Huila. (Beans)\n"
        "- Listen for the crack. (Beans)\n\n"
        "## Skills that are near\n\n"
        "- roast-beans: Roast coffee beans in the drum.\n"
    )
    given = memctl("skill", "context", "roast-beans", "--task", "roast beans", "-o", "json").json
    assert "Never roast wet beans." in given["text"]
    assert "Roasting" not in given["text"]
    bare = memctl("skill", "propose", "how to fly a falcon?").rows[0]
    assert bare["description"] == "Fly a falcon."
    assert "Nothing is known of this yet" in bare["content"]


def test_a_mark_of_a_list_inside_a_sentence_stays(memctl: Run, kb: KnowledgeBase) -> None:
    kb.ingest(text="- 2. Always roast beans at 180 - 190 degrees, then weigh them.", title="Beans")
    made = memctl("skill", "propose", "how do we roast the beans?").rows[0]
    assert "Always roast beans at 180 - 190 degrees, then weigh them." in made["content"]
    assert "- 2." not in made["content"]


def test_each_step_wants_the_one_before(memctl: Run) -> None:
    made = memctl("skill", "propose", TOPIC).rows[0]["proposal_id"]
    assert memctl("skill", "approve", made).code == 2
    assert memctl("skill", "create", made).code == 2
    assert memctl("skill", "submit", made).code == 0
    assert memctl("skill", "submit", made).code == 2
    assert memctl("skill", "reject", made).code == 2
    done = memctl("skill", "reject", made, "--because", "we have one")
    assert done.code == 0
    row = memctl("skill", "proposals").rows[0]
    assert (row["status"], row["reasons"], row["reviewer"]) == ("rejected", "we have one", "person")
    assert memctl("skill", "approve", made).code == 2
    assert memctl("skill", "submit", "pr_nothing").code == 1
    assert memctl("skill", "propose", "...").code == 2
    assert memctl("skill", "propose", "word " * 200).code == 2


def test_a_proposal_that_nobody_reviews_expires_after_two_weeks(
    memctl: Run, kb: KnowledgeBase, clock: Clock
) -> None:
    made = kb.skills.proposals().propose(TOPIC, submitted=True)
    assert run_job(kb, "skill_proposals").counts["changed"] == 0
    clock.forward(days=14)
    assert kb.skills.proposals().find(made.proposal_id).status == "expired"
    assert run_job(kb, "skill_proposals").counts["changed"] == 1
    assert run_job(kb, "skill_proposals").counts["changed"] == 0
    assert kb.skills.proposals().list("expired")[0].proposal_id == made.proposal_id
    clock.forward(days=-14)


def test_two_proposals_of_one_topic_are_two_and_a_name_that_is_taken_is_told(
    kb: KnowledgeBase,
) -> None:
    reviewing = kb.skills.proposals()
    one, two = (reviewing.propose("tidy up", submitted=True) for _ in range(2))
    assert one.proposal_id != two.proposal_id
    for each in (one, two):
        reviewing.approve(each.proposal_id)
    reviewing.create(one.proposal_id)
    with pytest.raises(UsageError, match="there is a skill called 'Tidy up'"):
        reviewing.create(two.proposal_id)


def test_a_text_of_ones_own_can_be_given_for_the_skill(memctl: Run) -> None:
    made = memctl("skill", "propose", TOPIC, "--submit").rows[0]["proposal_id"]
    text = "---\nname: roll-out\ndescription: Roll it out.\n---\nSlowly.\n"
    done = memctl("skill", "approve", made, "--create", "--file", "-", stdin=text)
    assert done.rows[0]["slug"] == "roll-out"
    assert memctl("skill", "show", "roll-out", "--text").out == f"{text}\n"
    assert memctl("skill", "approve", made, "--file", "-", stdin=text).code == 2


# --- learning, gaps and coverage -----------------------------------------------------------------


def test_notes_of_uses_propose_a_version_that_is_not_active(
    memctl: Run, kb: KnowledgeBase, write: Write, clock: Clock
) -> None:
    skills = kb.skills.acting_as()
    skills.add(write("ship", "Ship a release to all customers at once."))
    clock.forward(hours=1)
    for note in ("log in first", "tell the team", "log in first", "not on Fridays"):
        skills.record_use("ship", success=False, note=note)
    assert kb.skills.proposals().learn(dry_run=True)[0].version is None
    (learned,) = kb.skills.proposals().learn()
    assert learned.notes == ("log in first", "tell the team", "not on Fridays")
    first, second = memctl("skill", "version", "list", "ship").rows
    assert (second["change_type"], second["share"], first["share"]) == ("experimental", 0, 100)
    text = memctl("skill", "show", "ship", "--version", "2").out
    assert "- not on Fridays" in text
    clock.forward(hours=1)
    assert kb.skills.proposals().learn() == []
    clock.forward(hours=-2)


def test_gaps_are_topics_asked_in_vain_and_categories_without_a_skill(
    memctl: Run, kb: KnowledgeBase, write: Write
) -> None:
    kb.ingest(text="The office has a green door.")
    for question in ("How do I rotate the certificates?", "When were certificates rotated?"):
        kb.query(question)
    memctl("skill", "add", str(write("ship", "Ship a release.", category="deployment")))
    rows = memctl("skill", "gaps").rows
    topics = [each for each in rows if each["kind"] == "topic"]
    assert [each["name"].lower() for each in topics] == ["certificates"]
    assert topics[0]["weight"] == 2
    lacking = {each["name"] for each in rows if each["kind"] == "category"}
    assert len(lacking) == 20
    assert "deployment" not in lacking
    memctl("skill", "add", str(write("certs", "Rotate certificates before they end.")))
    assert not [each for each in memctl("skill", "gaps").rows if each["kind"] == "topic"]


def test_coverage_is_told_by_team(memctl: Run, write: Write) -> None:
    root = write("ship", "Ship a release.", category="deployment").parent
    write("look", "Look at changes.", category="code_review")
    memctl("skill", "add", str(root))
    (everybody,) = memctl("skill", "gaps", "--coverage").rows
    assert (everybody["team"], everybody["skills"]) == ("all agents", 2)
    assert memctl("team", "add", "web", "coder").code == 0
    memctl("skill", "assign", "ship", "--agent", "coder")
    memctl("skill", "propose", "code review of scripts", "--submit")
    (web,) = memctl("skill", "gaps", "--coverage").rows
    assert (web["team"], web["skills"]) == ("web", 1)
    assert "code_review" in web["lacking"]
    assert web["coverage"] == pytest.approx(1 / 21, abs=0.001)
    assert web["proposed"] == ["code review of scripts"]


def test_an_approval_is_shown_to_people_without_braces(memctl: Run) -> None:
    made = memctl("skill", "propose", TOPIC, "--requires", "helm-charts", "--submit").rows[0]
    done = memctl("skill", "approve", made["proposal_id"], "-o", "table")
    assert done.code == 0
    assert not set("{}[]") & set(done.out)
    assert re.search(r"^status +approved$", done.out, re.MULTILINE)
    assert re.search(r"^proposed +helm-charts$", done.out, re.MULTILINE)
