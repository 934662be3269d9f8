"""memctl memory: single memories with evidence and history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memctl.ids import stated_memory_id

from .conftest import Run

NOTE = """# Launch

We decided to launch Aurora on 12 May 2026.

remember: the venue is Hall 3 in Berlin.
"""


@pytest.fixture
def note(memctl: Run, tmp_path: Path) -> Run:
    """A home with one ingested note."""
    (tmp_path / "note.md").write_text(NOTE)
    assert memctl("ingest", "note.md").code == 0
    return memctl


def decision(memctl: Run) -> dict[str, object]:
    """Return the decision that was distilled from the note."""
    (row,) = memctl("memory", "list", "--type", "decision").rows
    return dict(row)


def test_a_distilled_memory_shows_the_very_characters_it_rests_on(note: Run) -> None:
    view = note("memory", "show", str(decision(note)["id"]), "-o", "json").json
    text = note("document", "show", view["memory"]["document_id"], "--text").out
    for evidence in view["evidence"]:
        assert text[evidence["start"] : evidence["end"]] == evidence["text"]
    assert any("12 May 2026" in evidence["text"] for evidence in view["evidence"])


def test_an_edit_is_a_new_version_and_the_old_one_is_history(note: Run) -> None:
    old = str(decision(note)["id"])
    new = note("memory", "edit", old, "--text", "We launch on 19 May 2026.", "-o", "json").json
    assert (new["version"], new["text"]) == (2, "We launch on 19 May 2026.")
    assert decision(note)["id"] == new["id"]
    history = note("memory", "history", new["id"]).rows
    assert [row["version"] for row in history] == [1, 2]
    assert history[0]["superseded_by"] == new["id"]
    assert note("memory", "history", old).rows == history
    evidence = note("memory", "show", new["id"], "-o", "json").json["evidence"]
    assert any("12 May 2026" in item["text"] for item in evidence)


def test_what_was_known_then_can_be_listed(note: Run) -> None:
    old = decision(note)
    note("memory", "edit", str(old["id"]), "--text", "We launch on 19 May 2026.")
    then = note("memory", "list", "--type", "decision", "--as-of", str(old["valid_from"])).rows
    assert [row["id"] for row in then] == [old["id"]]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m", "%Y", "today"])
def test_what_was_known_on_a_day_is_what_was_known_when_it_ended(note: Run, form: str) -> None:
    today = datetime.now(UTC)
    known = note("memory", "list", "--type", "decision", "--as-of", today.strftime(form)).rows
    assert [row["id"] for row in known] == [decision(note)["id"]]
    earlier = (today - timedelta(days=366)).strftime(form.replace("today", "%Y-%m-%d"))
    assert note("memory", "list", "--as-of", earlier).rows == []
    assert note("memory", "list", "--as-of", "9999-12-31").code == 0


def test_an_old_version_cannot_be_edited(note: Run) -> None:
    old = str(decision(note)["id"])
    note("memory", "edit", old, "--text", "We launch on 19 May 2026.")
    result = note("memory", "edit", old, "--text", "We never launch.")
    assert result.code == 2
    assert "superseded" in result.err


def test_evidence_is_verbatim_and_cannot_be_edited(note: Run) -> None:
    passage = note("memory", "list", "--level", "evidence").rows[0]["id"]
    result = note("memory", "edit", passage, "--text", "something else")
    assert result.code == 2
    assert "memctl memory add" in result.err


def test_an_edit_that_changes_nothing_makes_no_version(note: Run) -> None:
    row = decision(note)
    note("memory", "edit", str(row["id"]), "--text", str(row["text"]))
    assert decision(note)["version"] == 1


def test_an_edit_tells_the_text_as_it_is_stored_and_knows_it_again(note: Run) -> None:
    row = decision(note)
    odd = ("--text", "caf\udce9", "--tag", "\udce9", "-o", "json")
    new = note("memory", "edit", str(row["id"]), *odd).json
    assert (new["version"], new["text"], new["tags"]) == (2, "caf?", ["?"])
    assert note("memory", "edit", new["id"], *odd).json == new
    assert decision(note)["text"] == new["text"]


def test_a_statement_said_twice_is_there_once(memctl: Run) -> None:
    first = memctl("memory", "add", "tea, not coffee", "--type", "preference", "-o", "json").json
    second = memctl(
        "memory", "add", "-", "--type", "preference", "-o", "json", stdin="tea, not coffee\n"
    )
    assert second.json["id"] == first["id"]
    assert len(memctl("memory", "list").rows) == 1


def test_a_statement_can_name_its_evidence(note: Run) -> None:
    source = str(decision(note)["id"])
    made = note(
        "memory", "add", "Aurora needs posters by May.", "--evidence", source[:10], "-o", "json"
    )
    view = note("memory", "show", made.json["id"], "-o", "json").json
    assert [item["memory_id"] for item in view["evidence"]] == [source]


def test_forgetting_takes_all_versions(note: Run) -> None:
    old = str(decision(note)["id"])
    new = note("memory", "edit", old, "--text", "We launch on 19 May 2026.", "-o", "json").json[
        "id"
    ]
    assert "2 versions" in note("memory", "delete", new, "--dry-run").out
    assert note("memory", "delete", new, "--yes").code == 0
    for id_ in (old, new):
        assert note("memory", "show", id_).code == 1


def test_an_unknown_id_is_one_line_with_a_next_step(note: Run) -> None:
    for id_ in ("m_000000", "x", "m_' OR '1'='1", "m_\x1b[31m"):
        for verb in ("show", "history", "delete"):
            result = note("memory", verb, id_)
            assert result.code == 1
            assert result.err.startswith("error: there is no memory ")
            assert "\x1b" not in result.err


def test_an_id_may_be_shortened_while_it_is_unique(memctl: Run) -> None:
    firsts: dict[str, str] = {}
    for number in range(10_000):  # until two have the same beginning
        text = f"The code of door {number} is written down."
        shortened = stated_memory_id("team", "fact", text)[:6]
        if shortened in firsts:
            break
        firsts[shortened] = text
    stated = ("--namespace", "team", "--type", "fact", "-k")
    for name, said in (("one", firsts[shortened]), ("two", text)):
        memctl("kb", "create", name)
        assert memctl("memory", "add", said, *stated, name).code == 0
    ids = [stated_memory_id("team", "fact", each) for each in (firsts[shortened], text)]
    result = memctl("memory", "show", shortened, "-k", "one", "-k", "two")
    assert result.code == 2
    assert f"several ids start with '{shortened}'" in result.err
    assert all(id_ in result.err for id_ in ids)
    assert memctl("memory", "show", shortened, "-k", "two").json["memory"]["id"] == ids[1]
    assert "give at least 6 characters" in memctl("memory", "show", shortened[:4], "-k", "one").err


def test_an_unknown_insight_is_called_one(note: Run) -> None:
    assert "there is no insight 'i_000000'" in note("insight", "show", "i_000000").err


def test_a_date_that_is_none_is_a_usage_error(note: Run) -> None:
    result = note("memory", "list", "--since", "soon")
    assert result.code == 2
    assert "7d" in result.err


def test_a_level_that_is_none_is_a_usage_error(note: Run) -> None:
    assert note("memory", "list", "--level", "gold").code == 2


def test_a_condition_is_checked(note: Run) -> None:
    assert len(note("memory", "list", "--where", "type = 'decision'").rows) == 1
    for condition in ("nonsense = 1", "1=1) or (1=1", "type = 'x"):
        result = note("memory", "list", "--where", condition)
        assert result.code == 2, condition


def test_importance_is_from_0_to_1(memctl: Run) -> None:
    assert memctl("memory", "add", "x", "--importance", "2").code == 2


def test_a_statement_says_where_it_comes_from_how_sure_it_is_and_what_else_is_known(
    memctl: Run,
) -> None:
    given = ("--source", "chat", "--confidence", "0.6")
    said = ("--metadata", "project=aurora", "--metadata", '{"year": 2024, "by": {"name": "Tom"}}')
    id_ = memctl("memory", "add", "The lift is out of order.", *given, *said).json["id"]
    memory = memctl("memory", "show", id_).json["memory"]
    assert memory["source"] == "chat"
    assert memory["confidence"] == pytest.approx(0.6)
    assert memory["metadata"] == {"project": "aurora", "year": 2024, "by": {"name": "Tom"}}
    for wrong in ("project", '{"year":'):
        refused = memctl("memory", "add", "The lift works.", "--metadata", wrong)
        assert refused.code == 2
        assert "--metadata" in refused.err


def test_a_type_of_ones_own_is_stored_and_said_to_be_one(memctl: Run) -> None:
    made = memctl("memory", "add", "The lift is out of order.", "--type", "desicion")
    assert made.code == 0
    assert "'desicion' is a type of your own" in made.err
    assert "did you mean --type decision?" in made.err
    assert memctl("memory", "list", "--type", "desicion").rows[0]["id"] == made.json["id"]
    assert "note:" not in memctl("memory", "add", "The lift works.", "--type", "decision").err
