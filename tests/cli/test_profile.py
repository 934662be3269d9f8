"""memctl profile and memctl context --standing."""

from __future__ import annotations

import json

import pytest
from fake_endpoint import FakeEndpoint

from .conftest import Run


def test_a_profile_is_written_and_shown_with_its_versions(memctl: Run) -> None:
    memctl("memory", "add", "The boat is called Kestrel.")
    missing = memctl("profile", "show", "--user", "ann")
    assert (missing.code, "no profile of ann yet" in missing.err) == (4, True)
    assert "memctl profile set" in missing.err
    assert "--user says whose" in memctl("profile", "show").err
    memctl("profile", "set", "--user", "ann", "--user-info", "Lives in Turin.")
    memctl("profile", "set", "--user", "ann", "--goal", "Sell the boat by June.")
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert shown["user_info"] == "Lives in Turin."
    assert shown["recent_goal_and_status"] == "Sell the boat by June."
    assert [
        row["version"] for row in memctl("profile", "show", "--user", "ann", "--versions").rows
    ] == [2, 1]
    assert memctl("profile", "show", "--user", "bob").code == 4
    assert memctl("profile", "set", "--user", "ann").code == 2


def test_the_standing_context_needs_no_question_and_stays_the_same(memctl: Run) -> None:
    assert memctl("kb", "create", "default").code == 0
    assert memctl("context", "--standing").out == ""
    assert memctl("context").code == 2
    memctl("memory", "add", "Important: the lease ends on 30 June 2027.", "--importance", "0.9")
    memctl("memory", "add", "We decided to keep the boat.", "--type", "decision")
    memctl("profile", "set", "--user-info", "Lives in Turin.")
    first = memctl("context", "--standing")
    assert first.out.startswith("Profile\nAbout the user:\nLives in Turin.\n\nMemory Context\n[1] ")
    assert first.out.index("lease") < first.out.index("boat")
    assert memctl("context", "--standing").raw == first.raw
    small = memctl("context", "--standing", "--budget", "60", "-o", "json").json
    assert small["tokens"] <= 60
    asked = memctl("context", "when does the lease end?", "--standing").out
    assert asked.startswith(first.out[:40])


def test_the_standing_context_has_no_plan_for_a_day_that_has_passed(memctl: Run) -> None:
    assert memctl("kb", "create", "default").code == 0
    for plan in ("We fly to Lisbon on 4 May 2020.", "We sail to Malta on 4 May 2090."):
        memctl("memory", "add", plan, "--type", "plan")
    memctl("memory", "add", "We decided on 4 May 2020 to sail.", "--type", "decision")
    known = memctl("context", "--standing").out
    assert "Lisbon" not in known
    assert "Malta" in known
    assert "We decided on 4 May 2020 to sail." in known


def test_the_standing_context_has_statements_of_high_importance(memctl: Run) -> None:
    dam = "The dam must never exceed 80 metres of water."
    memctl("memory", "add", dam, "--type", "fact", "--importance", "1.0")
    memctl("memory", "add", "The water smelled of iron.", "--type", "observation")
    memctl("memory", "add", "We go by boat.", "--type", "decision", "--importance", "0.7")
    first = memctl("context", "--standing")
    assert first.out.index(dam) < first.out.index("We go by boat.")
    assert "iron" not in first.out
    assert memctl("context", "--standing").raw == first.raw


def test_the_standing_context_says_what_changed_in_the_last_days(memctl: Run) -> None:
    rent = memctl("memory", "add", "The rent is 900 euros.", "-o", "json").json["id"]
    memctl("memory", "add", "We keep the boat.", "--type", "decision")
    memctl("memory", "edit", rent, "--text", "The rent is 950 euros.")
    first = memctl("context", "--standing")
    known, changed = first.out.split("\n\nRecent Changes\n")
    assert "We keep the boat." in known
    assert changed.startswith("[2] ")
    assert "The rent is 950 euros. (until " in changed
    assert "The rent is 900 euros.)" in changed
    assert memctl("context", "--standing").raw == first.raw
    newest = memctl("memory", "list", "--type", "fact", "-o", "ndjson").rows[0]["id"]
    memctl("memory", "edit", newest, "--tag", "home")
    assert memctl("context", "--standing").raw == first.raw, "what it says is the same"


def test_what_changed_keeps_its_place_where_there_is_no_room_for_what_it_was(memctl: Run) -> None:
    rule = "The northern gate must stay locked after {} in the evening, whatever the driver of the"
    for number in range(3):
        text = f"Rule {number}: {rule} last lorry says."
        id_ = memctl("memory", "add", text.format("seven"), "--type", "important_fact").rows[0][
            "id"
        ]
        memctl("memory", "edit", id_, "--text", text.format("six"))
    for budget in ("200", "1000"):
        text = memctl("context", "--standing", "--budget", budget).out
        assert text.count("locked after six") == 3, text


def test_what_stands_in_the_standing_context_is_not_repeated_for_a_question(memctl: Run) -> None:
    memctl("memory", "add", "We decided to paint the boat green.", "--type", "decision")
    memctl("memory", "add", "The boat was built in 1974.", "--type", "fact")
    asked = memctl("context", "what about the boat?", "--standing", "-o", "json").json
    ids = [each["memory_id"] for each in asked["citations"]]
    assert len(ids) == len(set(ids)) == 2
    assert asked["text"].count("paint the boat green") == 1
    assert "built in 1974" in asked["text"]


def test_headings_of_the_standing_context_are_chosen(memctl: Run) -> None:
    assert memctl("kb", "create", "default").code == 0
    memctl("memory", "add", "Important: the lease ends on 30 June 2027.")
    memctl("profile", "set", "--user-info", "Lives in Turin.")
    plain, usual, seed = (
        memctl("context", "--standing", *words).out
        for words in (("--headings", "plain"), (), ("--headings", "seed"))
    )
    assert plain.startswith("Who is asking\nAbout the user:\nLives in Turin.\n\nWhat is known\n[1]")
    assert seed == usual
    assert plain.splitlines()[-1] == usual.splitlines()[-1]
    wrong = memctl("context", "--standing", "--headings", "loud")
    assert wrong.code == 2
    assert "plain" in wrong.err
    alone = memctl("context", "the lease", "--headings", "plain")
    assert (alone.code, alone.err.splitlines()[0]) == (2, "error: --headings goes with --standing")


def test_the_standing_context_has_insights_and_nothing_private(memctl: Run) -> None:
    for day, price in (("2026-01-05", 900), ("2026-03-05", 950)):
        line = {"text": f"The rent of the studio is {price} euros.", "created_at": day}
        memctl("ingest", "--jsonl", "-", stdin=json.dumps(line))
    for number in range(30):
        memctl("memory", "add", f"important: key {number} of the harbour office hangs at the door")
    memctl("consolidate")
    assert memctl("insight", "list", "-o", "ndjson").rows
    memctl("kb", "create", "diary", "--private")
    memctl("memory", "add", "important: the attic leaks", "-k", "diary")
    memctl("kb", "set", "default", "--private-namespace", "secret")
    memctl("memory", "add", "important: the cellar leaks", "--namespace", "secret")
    context = memctl("context", "--standing", "--budget", "400", "-o", "json").json
    assert context["tokens"] <= 400
    memories, insights = context["text"].split("\n\nInsights\n")
    assert memories.startswith("Memory Context\n[1] ")
    plain = memctl("context", "--standing", "--budget", "400", "--headings", "plain").out
    assert "\n\nWhat follows from it\n[" in plain
    numbers = [each["number"] for each in context["citations"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert f"[{len(numbers)}]" in insights
    assert "leaks" not in context["text"]
    private = memctl("context", "--standing", "-k", "diary")
    assert (private.code, private.out) == (0, "")
    assert "diary is private, and left out where nothing is asked" in private.err
    both = memctl("context", "--standing", "-k", "diary", "-k", "default", "-o", "json")
    assert "leaks" not in both.json["text"]
    assert len(both.json["notes"]) == 1


def test_the_profile_that_an_agent_keeps_is_shown_where_no_agent_is_named(memctl: Run) -> None:
    session = memctl("session", "start", "--user", "ann", "--agent", "helper").out.strip()
    said = "important: the deploy key rotates every Monday"
    assert memctl("session", "say", session, said, "--user", "ann").code == 0
    assert memctl("session", "end", session, "--user", "ann").code == 0
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert "every Monday" in shown["important_context"]
    assert memctl("profile", "show", "--user", "bob").code == 4
    assert len(memctl("profile", "show", "--user", "ann", "--versions").rows) == 1
    assert memctl("context", "--standing", "--user", "ann").out.startswith("Profile\n")


WRITTEN = {
    "user_info": "Ann repairs boats.",
    "last_conversation_summary": "Ann sells the Kestrel; the survey is booked.",
    "recent_goal_and_status": "Sell the Kestrel by June.",
    "important_context": "The surveyor comes on 4 May.",
    "agent_beliefs": "Ann would rather sell soon than for more.",
    "agent_info": "Keeps the list of what is left to do.",
}


def test_a_model_writes_the_profile_from_the_former_one_and_what_was_said(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    endpoint.on("ProfileReply", WRITTEN)
    memctl("kb", "create", "default")
    memctl("profile", "set", "--user", "ann", "--user-info", "Repairs boats.")
    first = talked_about_the_surveyor(memctl)
    assert memctl("session", "end", first).code == 0
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert {name: shown[name] for name in WRITTEN} == WRITTEN
    assert shown["by"].startswith("model/m/")
    (asked,) = [each for each in endpoint.asked if each.shape == "ProfileReply"]
    former, known = asked.data
    assert "user_info: Repairs boats." in former
    assert "the surveyor comes on 4 May" in known

    endpoint.on("ProfileReply", "no profile")
    assert memctl("session", "end", talked_about_the_surveyor(memctl)).code == 0
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert shown["by"] == "builtin"
    assert shown["agent_beliefs"] == WRITTEN["agent_beliefs"], "what the model had written stays"
    assert shown["important_context"] == "the surveyor comes on 4 May"


def test_what_a_model_made_of_a_forgotten_conversation_is_in_no_later_profile(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    memctl("kb", "create", "default")
    memctl("profile", "set", "--user", "ann", "--agent-info", "Keeps the list.")
    endpoint.on("ProfileReply", {**WRITTEN, "agent_info": "Keeps the list."})
    first = talked_about_the_surveyor(memctl)
    memctl("session", "end", first)
    endpoint.on("ProfileReply", "no profile")
    session = memctl("session", "start", "--user", "ann").out.strip()
    memctl("session", "say", session, "remember: the mooring is paid until March")
    memctl("session", "end", session)
    before = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert before["agent_beliefs"] == WRITTEN["agent_beliefs"], "it was taken over"
    memctl("session", "forget", first, "--yes")
    after = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert after["agent_beliefs"] == ""
    assert after["agent_info"] == "Keeps the list."
    assert after["important_context"] == "the mooring is paid until March"


def test_a_conversation_that_cannot_be_ended_while_the_model_is_down_ends_later(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    endpoint.on("ProfileReply", WRITTEN)
    memctl("kb", "create", "default")
    session = talked_about_the_surveyor(memctl)
    endpoint.fail(path="chat/completions", times=-1)
    refused = memctl("session", "end", session)
    assert (refused.code, "answered 500" in refused.err) == (1, True)
    assert memctl("session", "list", "-o", "json").json[0]["status"] == "open"
    endpoint.mend()
    assert memctl("session", "end", session).code == 0
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert shown["important_context"] == WRITTEN["important_context"]


def talked_about_the_surveyor(memctl: Run) -> str:
    session = memctl("session", "start", "--user", "ann").out.strip()
    said = "important: the surveyor comes on 4 May"
    assert memctl("session", "say", session, said).code == 0
    return session
