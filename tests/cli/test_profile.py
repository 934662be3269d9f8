"""memctl profile and memctl context --standing."""

from __future__ import annotations

from .conftest import Run


def test_a_profile_is_written_and_shown_with_its_versions(memctl: Run) -> None:
    memctl("memory", "add", "The boat is called Kestrel.")
    assert memctl("profile", "show", "--user", "ann").code == 4
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


def test_the_profile_that_an_agent_keeps_is_shown_where_no_agent_is_named(memctl: Run) -> None:
    session = memctl("session", "start", "--user", "ann", "--agent", "helper").out.strip()
    said = "important: the deploy key rotates every Monday"
    assert memctl("session", "say", session, said, "--user", "ann").code == 0
    assert memctl("session", "end", session, "--user", "ann").code == 0
    shown = memctl("profile", "show", "--user", "ann", "-o", "json").json
    assert "every Monday" in shown["important_context"]
    assert memctl("profile", "show", "--user", "bob").code == 4
