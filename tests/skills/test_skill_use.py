"""Skills found, read, given to agents, used, versioned and judged."""

from __future__ import annotations

import pytest

from memctl.errors import AccessRefused, NotFoundError
from memctl.knowledge_base import KnowledgeBase
from memctl.skills.skill_views import chance_of_difference, effectiveness, health

from .conftest import Clock, Run, Write

DEPLOY = "Deploy a service to a Kubernetes cluster and watch its rollout."


@pytest.fixture
def deploy(memctl: Run, write: Write) -> str:
    """A skill that is there."""
    memctl("skill", "add", str(write("deploy-app", DEPLOY, category="deployment")))
    return "deploy-app"


def test_a_search_finds_the_one_on_deployment_first(memctl: Run, write: Write) -> None:
    root = write("ship-it", DEPLOY).parent
    write("write-docs", "Write the manual of a program.")
    write("kube-news", "Summarise the news of the week about container software.")
    write("review", "Review a pull request.")
    memctl("skill", "add", str(root))
    hits = memctl("skill", "search", "deploy to kubernetes").rows
    assert hits[0]["slug"] == "ship-it"
    assert memctl("skill", "search", "bake a cake with yeast", "-n", "1").rows == []


def test_the_healthier_of_two_equal_skills_comes_first(memctl: Run, write: Write) -> None:
    root = write("ship-a", DEPLOY).parent
    write("ship-b", DEPLOY)
    memctl("skill", "add", str(root))
    for _ in range(5):
        memctl("skill", "used", "ship-a", "--failed")
        memctl("skill", "used", "ship-b", "--ok")
    hits = memctl("skill", "search", "deploy to kubernetes").rows
    assert [each["slug"] for each in hits] == ["ship-b", "ship-a"]


def test_context_has_the_text_and_what_it_requires_in_order_within_the_budget(
    memctl: Run, write: Write, kb: KnowledgeBase
) -> None:
    root = write("ship", DEPLOY, "Run helm upgrade.\n" * 20, requires="build, check").parent
    write("build", "Build the image of a container.", requires="fetch")
    write("fetch", "Fetch the sources from the repository.")
    write("check", "Check the chart before it is used.", requires="fetch")
    memctl("skill", "add", str(root))
    kb.ingest(text="The cluster in Oslo needs a login through the bastion host.")
    memctl("skill", "used", "ship", "--failed", "--note", "the login had expired")
    found = memctl(
        "skill", "context", "ship", "--task", "roll out to the cluster in Oslo", "-o", "json"
    ).json
    assert found["requires"] == ["fetch", "build", "check"]
    assert "Run helm upgrade." in found["text"]
    assert "the login had expired" in found["text"]
    assert "bastion host" in found["text"]
    assert found["tokens"] <= found["budget"]
    small = memctl("skill", "context", "ship", "--budget", "50", "-o", "json").json
    assert small["is_cut"]
    assert small["tokens"] <= 50


def test_a_skill_that_is_switched_off_for_an_agent_is_not_found_by_it(
    memctl: Run, deploy: str
) -> None:
    memctl("skill", "assign", deploy, "--agent", "coder")
    memctl("skill", "assign", deploy, "--agent", "tester", "--off")
    assert [e["slug"] for e in memctl("skill", "list", "--of", "coder").rows] == [deploy]
    assert memctl("skill", "list", "--of", "tester").rows == []
    assert memctl("skill", "search", "deploy", "--agent", "coder").rows[0]["is_assigned"]
    assert memctl("skill", "search", "deploy", "--agent", "tester").rows == []
    memctl("skill", "assign", deploy, "--agent", "coder", "--remove")
    assert memctl("skill", "list", "--of", "coder").rows == []
    assert memctl("skill", "assign", deploy, "--agent", "coder", "--remove").code == 1


# --- versions ------------------------------------------------------------------------------------


@pytest.fixture
def two(memctl: Run, deploy: str) -> str:
    """A skill with two versions."""
    done = memctl("skill", "version", "add", deploy, "-", "--type", "patch", stdin="Other text.")
    assert done.code == 0, done.err
    return deploy


def test_a_split_of_90_10_holds_over_a_thousand_tasks_and_is_stable(
    memctl: Run, kb: KnowledgeBase, two: str
) -> None:
    done = memctl("skill", "version", "split", two, "1=90", "2=10")
    assert [each["share"] for each in done.rows] == [90, 10]
    skills = kb.skills.acting_as()
    skill = skills.find(two)
    picked = [skills.version_for(skill, f"task-{n}").number for n in range(1_000)]
    assert 870 <= picked.count(1) <= 930
    assert picked == [skills.version_for(skill, f"task-{n}").number for n in range(1_000)]
    task = f"task-{picked.index(2)}"
    assert memctl("skill", "context", two, "--task", task, "-o", "json").json["version"] == 2
    memctl("skill", "used", two, "--ok", "--task", task)
    assert [e["successes"] for e in memctl("skill", "version", "list", two).rows] == [0, 1]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (("1=100", "2=0"), "memctl skill version activate deploy-app 1"),
        (("1=60", "2=30"), "add up to 90"),
        (("1=100",), "at least two versions"),
        (("1=90", "7=10"), "has no version 7"),
        (("1=90", "1=10"), "named twice"),
        (("1=-1", "2=101"), "is no share"),
        (("one", "two"), "is no share"),
    ],
)
def test_a_split_that_cannot_be_is_told(
    memctl: Run, two: str, shares: tuple[str, ...], message: str
) -> None:
    done = memctl("skill", "version", "split", two, *shares)
    assert done.code in (1, 2)
    assert message in done.err
    assert [e["share"] for e in memctl("skill", "version", "list", two).rows] == [100, 0]


def test_activating_keeps_the_former_version(memctl: Run, two: str) -> None:
    assert memctl("skill", "version", "activate", two, "2").code == 0
    assert [e["share"] for e in memctl("skill", "version", "list", two).rows] == [0, 100]
    assert memctl("skill", "show", two, "--text").out == "Other text.\n"
    assert memctl("skill", "version", "activate", two, "3").code == 1
    same = memctl("skill", "version", "add", two, "-", stdin="Other text.")
    assert (same.code, "version 2" in same.err) == (2, True)


def test_the_better_of_two_versions_is_told_where_that_is_more_than_chance(
    memctl: Run, two: str
) -> None:
    for version, good, bad in (("1", 3, 12), ("2", 14, 1)):
        for kind, times in (("--ok", good), ("--failed", bad)):
            for _ in range(times):
                memctl("skill", "used", two, kind, "--version", version)
    (found,) = memctl("skill", "health", "--compare").rows
    assert found["is_clear"]
    assert found["better"] == 2
    assert found["chance"] < 0.01
    kinds = {e["kind"]: e["command"] for e in memctl("skill", "suggest").rows}
    assert kinds["activate"] == "memctl skill version activate deploy-app 2"
    assert chance_of_difference((5, 5), (6, 4)) > 0.5
    assert chance_of_difference((0, 0), (3, 1)) == 1


# --- health --------------------------------------------------------------------------------------


def test_health_and_effectiveness_follow_their_formulas(clock: Clock) -> None:
    now = clock.now
    assert health(0, 0, now, [], now) == 0.5 * 0.5 + 0.3 + 0.2
    clock.forward(days=30)
    assert health(6, 0, now, ["high"], clock.now) == pytest.approx(
        0.5 * 7.5 / 9 + 0.3 * 0.5 + 0.2 * 0.5
    )
    assert health(0, 0, clock.now, ["critical", "high"], clock.now) == pytest.approx(0.25 + 0.3)
    assert effectiveness(6, 0, now, clock.now) == pytest.approx(7.5 / 9 * 0.9)
    clock.forward(days=30_000)
    assert effectiveness(6, 0, now, clock.now) == 0.1
    assert effectiveness(6, 0, clock.now, now) == pytest.approx(7.5 / 9)
    clock.forward(days=-30_030)


def test_suggestions_say_what_is_unused_fails_or_says_too_little(
    memctl: Run, kb: KnowledgeBase, write: Write, clock: Clock
) -> None:
    root = write("old", "A skill that nobody has used for a very long time.").parent
    write("short", "Too short.")
    write("bad", "A skill that goes wrong nearly every time it is used.")
    kb.skills.acting_as().add(root)
    clock.forward(days=100)
    skills = kb.skills.acting_as()
    for _ in range(10):
        skills.record_use("bad", success=False)
        skills.record_use("short", success=True)
    found = {(each.slug, each.kind) for each in kb.skills.suggestions()}
    assert found == {("old", "deprecate"), ("short", "extend"), ("bad", "revise")}
    clock.forward(days=-100)


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
def test_a_duration_that_is_none_is_refused(memctl: Run, deploy: str, seconds: str) -> None:
    done = memctl("skill", "used", deploy, "--ok", "--seconds", seconds)
    assert done.code == 2
    assert memctl("skill", "used", deploy).code == 2


def test_a_use_went_well_or_failed_and_the_message_says_which(memctl: Run, deploy: str) -> None:
    both = memctl("skill", "used", deploy, "--ok", "--failed")
    assert (both.code, "do not go together" in both.err) == (2, True)
    assert memctl("skill", "used", deploy, "--ok").err.rstrip().endswith("went well")
    assert memctl("skill", "used", deploy, "--failed").err.rstrip().endswith("failed")
    assert [use["success"] for use in memctl("skill", "show", deploy, "--uses").rows] == [0, 1]


def test_an_empty_search_is_refused_with_a_hint_of_its_own(memctl: Run, deploy: str) -> None:
    done = memctl("skill", "search", "")
    assert (done.code, "memctl skill search" in done.err) == (2, True)


def test_a_use_of_what_was_forgotten_is_told(memctl: Run, kb: KnowledgeBase, deploy: str) -> None:
    skill = kb.skills.acting_as().find(deploy)
    assert memctl("skill", "delete", deploy, "--dry-run").code == 0
    assert memctl("skill", "delete", deploy, "--yes").code == 0
    done = memctl("skill", "used", skill.skill_id, "--ok")
    assert done.code == 1
    assert "there is no skill" in done.err
    with kb.store.ledger.reading() as connection:
        for table in ("skill_versions", "skill_files", "skill_usage"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_version_whose_text_was_forgotten_is_told(
    memctl: Run, kb: KnowledgeBase, deploy: str
) -> None:
    kb.store.ledger.skills.versions.delete("TRUE")
    for words in (("context", deploy), ("used", deploy, "--ok")):
        done = memctl("skill", *words)
        assert done.code == 1
        assert "its text is gone" in done.err
    assert memctl("skill", "list").rows[0]["slug"] == deploy


# --- who may do what -----------------------------------------------------------------------------


def test_what_an_agent_imports_has_no_effect_until_a_person_says_so(
    memctl: Run, write: Write
) -> None:
    path = write("sneaky", "A skill that an agent wants everybody to have.")
    memctl("skill", "add", str(path), "--agent", "coder")
    assert memctl("skill", "list").rows[0]["status"] == "draft"
    assert memctl("skill", "search", "skill that everybody has").rows == []
    assert memctl("skill", "activate", "sneaky", "--agent", "coder").code == 1
    assert memctl("skill", "activate", "sneaky").code == 0
    write("sneaky", "A skill that an agent has changed since then.")
    done = memctl("skill", "add", str(path), "--agent", "coder").rows[0]
    assert (done["outcome"], done["is_active"]) == ("version", False)


def test_an_agent_changes_nothing_that_has_an_effect_on_agents(
    kb: KnowledgeBase, memctl: Run, two: str
) -> None:
    skills = kb.skills.acting_as("coder")
    for refused in (
        lambda: skills.assign(two, "coder"),
        lambda: skills.unassign(two, "coder"),
        lambda: skills.activate(two, 2),
        lambda: skills.split(two, {1: 50, 2: 50}),
        lambda: skills.set_status(two, "archived"),
        lambda: skills.delete(two),
        lambda: kb.skills.conflicts("coder").repair(),
        lambda: kb.skills.conflicts("coder").settle("cf_", "dismissed"),
        lambda: kb.skills.proposals("coder").approve("pr_"),
        lambda: kb.skills.proposals("coder").reject("pr_", "no"),
        lambda: kb.skills.proposals("coder").review("pr_"),
        lambda: kb.skills.proposals("coder").create("pr_"),
    ):
        with pytest.raises(AccessRefused):
            refused()


def test_what_is_not_there_is_told_with_what_is_near(memctl: Run, deploy: str) -> None:
    done = memctl("skill", "show", "deploy-ap")
    assert (done.code, "did you mean deploy-app?" in done.err) == (1, True)
    assert memctl("skill", "show", "").code == 1


def test_a_knowledge_base_that_is_archived_refuses_changes(
    memctl: Run, kb: KnowledgeBase, deploy: str
) -> None:
    assert memctl("kb", "archive", "default").code == 0
    try:
        assert memctl("skill", "used", deploy, "--ok").code == 1
        assert memctl("skill", "conflicts", "--scan").code == 1
        assert memctl("skill", "list").code == 0
    finally:
        memctl("kb", "resume", "default")


def test_a_user_reads_no_notes_of_another_one(memctl: Run, deploy: str) -> None:
    memctl("skill", "used", deploy, "--ok", "--note", "Ann's secret note", "--user", "ann")
    assert "secret" in memctl("skill", "context", deploy, "--user", "ann").out
    assert "secret" not in memctl("skill", "context", deploy, "--user", "bob").out
    assert memctl("skill", "show", deploy, "--uses", "--user", "bob").rows == []
    memctl("skill", "propose", "garden of Ann", "--user", "ann")
    assert memctl("skill", "proposals", "--user", "bob").rows == []


def test_nothing_is_called_without_a_skill(kb: KnowledgeBase) -> None:
    assert kb.skills.acting_as().search("anything") == []
    with pytest.raises(NotFoundError):
        kb.skills.context("nothing")
