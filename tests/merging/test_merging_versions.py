"""Skills, prompts, confirmations and judgements of two homes, whichever takes in the other."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run, memctl
from command_line import Result

from memctl.config import load_config
from memctl.home import Home
from memctl.rows.row_changes import set_columns

__all__ = ["memctl"]

At = Callable[..., Result]
SKILL = "---\nname: deploy-app\ndescription: Deploy a service and watch it.\n---\n\n{}\n"


@pytest.fixture
def at(memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> At:
    """Run a command in a home of that name, which has to come to a good end."""

    def run(home: str, *words: str, stdin: str = "") -> Result:
        monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / home))
        result = memctl(*words, stdin=stdin)
        assert result.code == 0, result.err
        return result

    for home in ("a", "b"):
        run(home, "kb", "create", "default")
    return run


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str, str], None]:
    """Make one home a copy of another."""

    def copy(home: str, other: str) -> None:
        shutil.rmtree(tmp_path / other, ignore_errors=True)
        shutil.copytree(tmp_path / home, tmp_path / other)

    return copy


@pytest.fixture
def merged(at: At, copied: Callable[[str, str], None]) -> Callable[[], list[str]]:
    """Merge copies of both homes in both orders, twice, of which the second changes nothing."""

    def merge() -> list[str]:
        homes = []
        for ours, theirs in (("a", "b"), ("b", "a")):
            home = f"{ours}{theirs}"
            copied(ours, home)
            words = ("kb", "merge", "default", "default", "--from", theirs, "--yes")
            assert at(home, *words, "-o", "json").json["snapshot"]
            assert at(home, *words, "-o", "json").json["snapshot"] == "", "nothing is new"
            at(home, "doctor")
            homes.append(home)
        return homes

    return merge


def write_skill(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(SKILL.format(body))
    return str(path)


def versions_of(at: At, home: str) -> list[dict[str, Any]]:
    ask = "select number, content, share, successes, failures from skill_versions order by number"
    rows = at(home, "sql", ask).rows
    return [{**row, "content": row["content"].strip().splitlines()[-1]} for row in rows]


def test_both_texts_of_a_version_are_kept_with_their_outcomes(
    at: At, merged: Callable[[], list[str]], tmp_path: Path
) -> None:
    for home, text, outcome in (
        ("a", "Do it carefully.", "--ok"),
        ("b", "Do it with canaries.", "--failed"),
    ):
        at(home, "skill", "add", write_skill(tmp_path, f"{home}.md", text))
        at(home, "skill", "used", "deploy-app", outcome, "--note", f"from {home}")
    for home in merged():
        assert versions_of(at, home) == [
            {
                "number": 1, "content": "Do it carefully.", "share": 0,
                "successes": 1, "failures": 0,
            },
            {
                "number": 2, "content": "Do it with canaries.", "share": 100,
                "successes": 0, "failures": 1,
            },
        ]  # fmt: skip
        uses = at(home, "sql", "select version, note from skill_usage order by version").rows
        assert uses == [{"version": 1, "note": "from a"}, {"version": 2, "note": "from b"}]
        shown = at(home, "skill", "show", "deploy-app", "-o", "json").json
        assert shown["skill"]["uses"] == 2
        assert shown["skill"]["effectiveness"] == 0.5


def test_shares_are_those_of_the_skill_that_was_changed_last(
    at: At, merged: Callable[[], list[str]], copied: Callable[[str, str], None], tmp_path: Path
) -> None:
    at("a", "skill", "add", write_skill(tmp_path, "1.md", "Text 1."))
    copied("a", "b")
    for name in ("Text 2.", "Text 3."):
        at("a", "skill", "version", "add", "deploy-app", write_skill(tmp_path, "n.md", name))
    at("a", "skill", "version", "split", "deploy-app", "1=50", "3=50")
    path = write_skill(tmp_path, "n.md", "Another text 2.")
    at("b", "skill", "version", "add", "deploy-app", path)
    at("b", "skill", "used", "deploy-app", "--ok", "--version", "2")
    at("b", "skill", "version", "activate", "deploy-app", "2")
    needs = SKILL.replace("deploy-app", "ship").replace(
        "---\n\n", "requires: deploy-app@2\n---\n\n"
    )
    (tmp_path / "ship.md").write_text(needs.format("Ship it."))
    at("b", "skill", "add", str(tmp_path / "ship.md"))
    for home in merged():
        found = [(row["number"], row["content"], row["share"]) for row in versions_of(at, home)]
        assert [row for row in found if row[1] != "Ship it."] == [
            (1, "Text 1.", 0), (2, "Text 2.", 0), (3, "Text 3.", 0), (4, "Another text 2.", 100),
        ]  # fmt: skip
        skills = at(home, "sql", "select slug, active_version, requires from skills").rows
        assert {row["slug"]: (row["active_version"], row["requires"]) for row in skills} == {
            "deploy-app": (4, "[]"),
            "ship": (1, '["deploy-app@4"]'),
        }
        (use,) = at(home, "sql", "select version from skill_usage").rows
        assert use["version"] == 4
        at(home, "skill", "version", "activate", "deploy-app", "2")


def test_uses_before_a_home_was_copied_are_counted_once(
    at: At, merged: Callable[[], list[str]], copied: Callable[[str, str], None], tmp_path: Path
) -> None:
    at("a", "skill", "add", write_skill(tmp_path, "1.md", "Text 1."))
    at("a", "skill", "used", "deploy-app", "--ok")
    copied("a", "b")
    for home, outcomes in (("a", ("--ok", "--failed")), ("b", ("--ok", "--ok"))):
        for outcome in outcomes:
            at(home, "skill", "used", "deploy-app", outcome)
    for home in merged():
        (version,) = versions_of(at, home)
        assert (version["successes"], version["failures"]) == (4, 1)


def test_doctor_sees_shares_that_do_not_add_up(at: At, tmp_path: Path) -> None:
    at("a", "skill", "add", write_skill(tmp_path, "1.md", "Text 1."))
    at("a", "doctor")
    with closing(sqlite3.connect(tmp_path / "a/kb/default/ledger.sqlite")) as ledger, ledger:
        ledger.execute("UPDATE skill_versions SET share = 50")
    found = at("a", "doctor").rows
    (wrong,) = [each for each in found if each["check"] == "skills"]
    assert (wrong["subject"], wrong["verdict"]) == ("deploy-app", "warning")
    assert "add up to 50 %, not 100 %" in wrong["message"]
    assert "memctl skill version activate deploy-app 1" in wrong["hint"]


def prompts_of(at: At, home: str) -> dict[str, tuple[str, float, int]]:
    """The text, the share and the uses of each version."""
    rows = at(home, "prompt", "list", "support", "-o", "json").json
    return {
        row["version"]: (
            at(home, "prompt", "show", "support", row["version"]).out.strip(),
            row["share"],
            row["uses"],
        )
        for row in rows
    }


def test_versions_of_a_prompt_are_numbered_alike_and_what_is_in_use_stays(
    at: At, merged: Callable[[], list[str]]
) -> None:
    for home in ("a", "b"):
        for number in (1, 2):
            at(home, "prompt", "add", "support", "-", stdin=f"Be kind, {home}{number}.")
    at("b", "prompt", "activate", "support", "v2")
    at("b", "prompt", "show", "support", "--session", "talk")
    ab, ba = merged()
    texts = {"v1": "a1", "v2": "a2", "v3": "b1", "v4": "b2"}
    for home, in_use in ((ab, "v1"), (ba, "v4")):
        assert prompts_of(at, home) == {
            version: (f"Be kind, {text}.", float(version == in_use), int(version == "v4"))
            for version, text in texts.items()
        }


LESSON = "Retry uploads after a pause."


def learning_at(at: At, home: str) -> dict[str, Any]:
    (row,) = at(home, "memory", "show", at(home, "memory", "list").rows[0]["id"]).rows
    return row


def test_confirmations_of_both_count_after_a_merge(
    at: At, merged: Callable[[], list[str]], copied: Callable[[str, str], None]
) -> None:
    at("a", "memory", "add", LESSON, "--type", "learning")
    id_ = learning_at(at, "a")["memory"]["id"]
    copied("a", "b")
    for home, agents in (("a", ("scout",)), ("b", ("scout", "other"))):
        for agent in agents:
            at(home, "memory", "confirm", id_, "--agent", agent)
    for home in merged():
        found = learning_at(at, home)
        assert found["confirmations"] == 2
        assert found["current_importance"] == pytest.approx(0.757, abs=0.001)
        (first,) = at("a", "sql", "select * from confirmations").rows
        kept = at(home, "sql", "select * from confirmations").rows
        assert first in kept, "the earlier one counts"


def test_confirmations_are_exported_and_are_in_snapshots(at: At, tmp_path: Path) -> None:
    at("a", "memory", "add", LESSON, "--type", "learning")
    id_ = learning_at(at, "a")["memory"]["id"]
    at("a", "memory", "confirm", id_, "--agent", "scout")
    at("a", "snapshot", "create", "before")
    at("a", "memory", "confirm", id_, "--agent", "other")
    at("a", "export", "all", "--to", str(tmp_path / "all.memctl"))
    at("b", "import", str(tmp_path / "all.memctl"), "-k", "restored")
    at("b", "kb", "use", "restored")
    assert learning_at(at, "b")["confirmations"] == 2
    at("a", "snapshot", "restore", "before", "--yes")
    assert learning_at(at, "a")["confirmations"] == 1


def judge(at: At, home: str, verdict: str) -> str:
    at(home, "query", "Where is the key?", "-o", "json")
    return str(at(home, "feedback", "add", "last", verdict, "-o", "json").json["feedback_id"])


def importance_at(at: At, home: str) -> float:
    (row,) = at(home, "sql", "select importance from memories").rows
    return float(row["importance"])


@pytest.mark.parametrize(
    ("importance", "of_a", "of_b", "expected"),
    [
        ("0.7", ("good",), ("good",), 0.8),
        ("0.7", (), ("bad",), 0.65),
        ("0.98", ("good",), ("good", "good"), 1.0),
        ("0.98", ("good", "bad"), ("bad",), 0.9),
    ],
)
def test_judgements_of_both_count_and_can_be_taken_back(
    at: At,
    merged: Callable[[], list[str]],
    copied: Callable[[str, str], None],
    importance: str,
    of_a: tuple[str, ...],
    of_b: tuple[str, ...],
    expected: float,
) -> None:
    at("a", "memory", "add", "The key is in the attic.", "--importance", importance)
    copied("a", "b")
    made = [judge(at, "a", each) for each in of_a] + [judge(at, "b", each) for each in of_b]
    for home in merged():
        assert importance_at(at, home) == pytest.approx(expected, abs=1e-4)
        for judgement in reversed(made):
            at(home, "feedback", "undo", judgement, "--yes")
        assert importance_at(at, home) == pytest.approx(float(importance), abs=1e-4)


def test_a_comparison_and_a_trial_tell_what_a_merge_does(at: At, tmp_path: Path) -> None:
    for home in ("a", "b"):
        at(home, "skill", "add", write_skill(tmp_path, f"{home}.md", f"Text of {home}."))
        at(home, "pool", "create", "ops")
        at(home, "pool", "write", "ops", "mood", f'"{home}"')
        at(home, "memory", "add", f"The key of {home} is in the attic.")
    path = write_skill(tmp_path, "c.md", "Clean it.").replace("deploy-app", "clean-csv")
    Path(path).write_text(SKILL.format("Clean it.").replace("deploy-app", "clean-csv"))
    at("b", "skill", "add", path)
    both = ("default", "default", "--from", "b")
    found = at("a", "kb", "diff", *both, "-o", "json").json
    stored = {
        each["table"]: (each["ours"], each["theirs"], each["differing"]) for each in found["stored"]
    }
    assert stored["skills"] == (0, 1, 1)
    assert stored["skill_versions"] == (1, 2, 0)
    assert stored["pool_keys"] == (0, 0, 1)
    assert "skill versions: 1, 2, 0" in at("a", "kb", "diff", *both, "-o", "table").out
    tried = at("a", "kb", "merge", *both, "--dry-run", "-o", "json").json
    said = at("a", "kb", "merge", *both, "--dry-run").out
    assert at("a", "kb", "diff", *both, "-o", "json").json == found, "a trial changes nothing"
    assert at("a", "snapshot", "list").rows == []
    report = at("a", "kb", "merge", *both, "--yes", "-o", "json").json
    assert tried == {**report, "snapshot": ""}
    assert "1 skill, 2 skill versions" in said
    assert {name: each[1] for name, each in stored.items() if each[1]} == {
        name: number
        for name, number in report["added"].items()
        if number and name not in ("documents", "memories", "relations")
    }


def test_each_side_is_named_with_its_home_where_both_have_one_name(at: At, tmp_path: Path) -> None:
    for home in ("a", "b"):
        at(home, "pool", "create", "ops")
        at(home, "pool", "write", "ops", "mood", f'"{home}"')
    at("a", "kb", "merge", "default", "default", "--from", "b", "--yes")
    origins = {row["origin"] for row in at("a", "sql", "from merged_values").rows}
    assert origins == {f"default of {tmp_path / 'a'}"}


def test_a_merge_that_only_changes_what_was_known_says_so(
    at: At, copied: Callable[[str, str], None], tmp_path: Path
) -> None:
    at("a", "memory", "add", "The key is in the attic.")
    copied("a", "b")
    with (
        Home(load_config({"home": str(tmp_path / "a")}, {})).open_for_writing("default") as kb,
        kb.store.write() as transaction,
    ):
        ids = transaction.snapshot().scan("memories", None, ["id"])["id"].to_pylist()
        set_columns(transaction, "memories", ids, archived_at=kb.clock())
    words = ("kb", "merge", "default", "default", "--from", "b", "--yes", "-o", "table")
    said = at("a", *words).out
    assert "default has taken in default of" in said
    assert "changes of what was known" in said
    assert "snapshot restore" in said
    assert "nothing new" in at("a", *words).out
    (row,) = at("a", "sql", "select archived_at from memories").rows
    assert row["archived_at"] is None, "it is not archived in one of the two"


def test_a_count_of_one_is_singular(at: At) -> None:
    at("b", "session", "start", "--id", "talk")
    at("b", "session", "say", "talk", "When does the ferry leave?")
    at("b", "feedback", "add", "talk", "--score", "0.2", "--text", "wrong")
    said = at("a", "kb", "merge", "default", "default", "--from", "b", "--dry-run").out
    assert "1 session, 1 turn" in said
    assert "1 conversation summary" in said
