"""Answers and conversations are judged; what follows from that can be seen and taken back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import Run

from memctl.config import FeedbackSettings
from memctl.feedback.conversation_records import reward_of
from memctl.store.ledger.feedback_repositories import Feedback
from memctl.store.ledger.log_repositories import QueryDetail

CODE = "The door code of the workshop is 4711."
NINE = {
    "conversation_id", "prompt", "feedback_text", "example", "improvement_suggestion",
    "prompt_version", "reward_score", "conversation_summary", "timestamp",
}  # fmt: skip


def importance(memctl: Any) -> dict[str, float]:
    """The importance of each memory."""
    rows = memctl("sql", "select id, importance from memories").rows
    return {row["id"]: row["importance"] for row in rows}


def ask(memctl: Any, question: str = "what is the door code?", *options: str) -> Any:
    memctl("ingest", "--text", CODE)
    return memctl("query", question, *options, "-o", "json").json


def hold_conversation(memctl: Any, session: str, *messages: str) -> None:
    assert memctl("session", "start", "--id", session).code == 0
    for number, message in enumerate(messages):
        by = ("user", "agent")[number % 2]
        assert memctl("session", "say", session, message, "--by", by).code == 0


def test_a_judged_conversation_leaves_a_record_is_looked_back_on_and_goes_when_forgotten(
    memctl: Any,
) -> None:
    hold_conversation(memctl, "ship", "When does Aurora ship?", "Aurora ships on Monday.")
    words = ("--text", "the marmalade date was wrong", "--example", "Aurora ships on 3 July.")
    given = memctl("feedback", "add", "ship", "--score", "0.2", *words, "-o", "json").json
    assert given["record"]["reward_score"] == pytest.approx(0.2)
    (record,) = memctl("feedback", "show", "ship").rows
    assert record.keys() >= NINE
    assert all(record[name] for name in NINE - {"prompt_version"})
    assert record["prompt"] == "When does Aurora ship?"
    (kept,) = memctl("sql", "select * from conversation_summaries").rows
    assert kept["summary_id"] == record["summary_id"]
    types = [row["type"] for row in memctl("memory", "list", "--session", "ship").rows]
    assert {"summary", "preference"} <= {*types}

    assert memctl("session", "end", "ship").code == 0  # nothing is new: no second record
    assert len(memctl("feedback", "show", "ship").rows) == 1
    memctl("feedback", "add", "ship", "--text", "still wrong")
    assert len(memctl("feedback", "show", "ship").rows) == 2

    (found,) = memctl("reflect", "--since", "7d", "--write").rows
    (finding,) = [each for each in found["findings"] if each["kind"] == "conversation"]
    assert "Aurora" in finding["topic"]
    assert finding["evidence"] == ["ship"]
    assert memctl("memory", "show", found["memory_id"]).rows[0]["memory"]["type"] == "reflection"

    assert memctl("session", "forget", "ship", "--yes").code == 0
    for table in ("conversation_summaries", "feedback", "feedback_effects"):
        assert memctl("sql", f"select * from {table} where session_id is null or true").rows == []
    texts = [row["text"] for row in memctl("sql", "select text from memories").rows]
    assert not any("Aurora" in text or "marmalade" in text for text in texts)


def test_a_statement_that_something_is_missing_is_no_answer(memctl: Run) -> None:
    question = "When does the ferry to Norway leave?"
    memctl("ingest", "--text", "Tomatoes want sun.")
    assert memctl("query", question).rows[0]["answer"]["text"] == "Not in memory."
    memctl("reflect", "--write")
    memctl("summary", "--write")
    found = memctl("query", question).rows[0]
    sources = " ".join(each["source"] for each in found["hits"])
    assert "looking back" in sources
    assert "daily summary" in sources
    assert found["answer"]["text"] == "Not in memory."


def test_a_judgement_changes_importance_within_bounds_and_is_taken_back(memctl: Any) -> None:
    asked = ask(memctl)
    cited = asked["answer"]["citations"][0]["memory_id"]
    before = importance(memctl)
    good = memctl("feedback", "add", asked["query_id"], "good", "-o", "json").json
    assert good["changed"] == 1
    assert importance(memctl)[cited] == pytest.approx(before[cited] + 0.05, abs=1e-3)
    bad = memctl("feedback", "add", "last", "bad", "-o", "json").json  # in place of the first
    assert importance(memctl)[cited] == pytest.approx(before[cited] - 0.05, abs=1e-3)
    explained = ask(memctl, "what is the door code?", "--explain")["explain"]
    assert explained["feedback"] == {cited: pytest.approx(-0.05)}
    assert memctl("feedback", "undo", bad["feedback_id"], "--dry-run").code == 0
    assert importance(memctl)[cited] == pytest.approx(before[cited] - 0.05, abs=1e-3)
    assert memctl("feedback", "undo", bad["feedback_id"], "--yes").code == 0
    assert importance(memctl)[cited] == pytest.approx(before[cited], abs=1e-3)
    where = f"query_id = '{asked['query_id']}'"
    (row,) = memctl("sql", f"select feedback, score from queries where {where}").rows
    assert row == {"feedback": None, "score": None}
    assert memctl("feedback", "show", bad["feedback_id"]).code == 1


def test_the_judgement_that_holds_is_counted_and_a_half_is_neither_good_nor_bad(
    memctl: Any,
) -> None:
    def numbers() -> tuple[int, ...]:
        (given,) = memctl("feedback", "summary", "-k", "counted", "-o", "json").json
        (asked,) = memctl("stats", "--queries", "-k", "counted", "-o", "json").json
        assert (given["good"], given["bad"]) == (asked["good"], asked["bad"])
        return given["judgements"], given["good"], given["bad"]

    def judge(*words: str) -> str:
        done = memctl("feedback", "add", "last", *words, "-k", "counted", "-o", "json")
        return str(done.json["feedback_id"])

    memctl("kb", "create", "counted")
    memctl("ingest", "--text", CODE, "-k", "counted")
    memctl("query", "what is the door code?", "-k", "counted")
    judge("good")
    assert numbers() == (1, 1, 0)
    judge("bad", "--text", "too short")
    assert numbers() == (1, 0, 1)
    last = judge("0.5")
    assert numbers() == (2, 0, 0)
    listed = memctl("feedback", "list", "-k", "counted").rows
    assert [(row["score"], row["text"]) for row in listed] == [(0.5, ""), (None, "too short")]
    judge("good", "--agent", "scout")
    assert numbers() == (3, 1, 0)
    assert memctl("feedback", "undo", listed[1]["feedback_id"], "--yes").code == 0
    assert numbers() == (2, 1, 0)
    assert memctl("feedback", "undo", last, "--yes", "-k", "counted").code == 0
    assert memctl("kb", "delete", "counted", "--yes").code == 0


def test_a_score_and_words_are_given_with_the_query_command_too(memctl: Any) -> None:
    asked = ask(memctl)
    assert memctl("query", "--feedback", "last", "0.7", "mostly", "right").code == 0
    row = memctl("feedback", "list", "-n", "1").rows[0]
    assert (row["query_id"], row["score"], row["text"]) == (asked["query_id"], 0.7, "mostly right")
    (noted,) = memctl(
        "sql", f"select feedback, score, quality from queries where query_id = '{row['query_id']}'"
    ).rows
    assert (noted["feedback"], noted["score"]) == ("good", 0.7)
    assert 0 < noted["quality"] < 1


def test_an_answer_that_cites_nothing_changes_no_memory(memctl: Any) -> None:
    asked = memctl("query", "When does the ferry to Norway leave?").rows[0]
    assert asked["hits"]
    assert not asked["answer"]["citations"]
    before = importance(memctl)
    assert memctl("feedback", "add", "last", "bad", "-o", "json").json["changed"] == 0
    assert importance(memctl) == before

    memctl("query", "door code", "--no-answer")  # its first hits are what it gave
    assert memctl("feedback", "add", "last", "bad", "-o", "json").json["changed"] == 3


def test_judgements_change_nothing_where_that_is_switched_off(
    memctl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_FEEDBACK_CHANGE_IMPORTANCE", "false")
    monkeypatch.setenv("MEMCTL_FEEDBACK_KEEP_EXAMPLES", "false")
    ask(memctl)
    before = importance(memctl)
    given = memctl("feedback", "add", "last", "bad", "--example", "It is 1.", "-o", "json").json
    assert (given["changed"], given["example_id"]) == (0, None)
    assert importance(memctl) == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("last", "1.1"), 2),
        (("last", "-0.1"), 2),
        (("last", "nan"), 2),
        (("last", "fine"), 2),
        (("last",), 2),
        (("last", "good", "--score", "0.3"), 2),
        (("last", "good", "--task-done", "--task-failed"), 2),
        (("q_0123456789ab", "good"), 1),
        (("nobody", "good"), 1),
    ],
)
def test_what_is_no_judgement_is_refused_with_a_hint(
    memctl: Any, words: tuple[str, ...], code: int
) -> None:
    ask(memctl)
    before = len(memctl("feedback", "list", "-n", "0").rows)
    done = memctl("feedback", "add", *words)
    assert done.code == code
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["error", "hint"]
    assert len(memctl("feedback", "list", "-n", "0").rows) == before


def test_a_score_below_zero_is_not_taken_for_an_unknown_option(memctl: Any) -> None:
    ask(memctl)
    done = memctl("feedback", "add", "last", "-0.1")
    assert done.err.splitlines() == [
        "error: '-0.1' is taken for an option",
        "hint: a value that begins with a hyphen stands after --: memctl feedback add ... -- -0.1",
    ]
    done = memctl("feedback", "add", "last", "--", "-0.1")
    assert (done.code, "'-0.1' is no judgement" in done.err) == (2, True)


def test_where_nothing_was_asked_there_is_no_last_question(memctl: Any) -> None:
    memctl("kb", "create", "fresh")
    for words in (("feedback", "add", "last", "good"), ("query", "--feedback", "last", "good")):
        done = memctl(*words, "-k", "fresh")
        assert done.code == 1
        assert done.err.startswith(
            "error: no question is in the query log yet\nhint: ask one first"
        )
    assert memctl("kb", "delete", "fresh", "--yes").code == 0


def test_what_was_forgotten_cannot_be_judged(memctl: Any) -> None:
    hold_conversation(memctl, "gone", "What is the tide?", "I do not know.")
    memctl("session", "forget", "gone", "--yes")
    assert memctl("feedback", "add", "gone", "bad").code == 1


def test_a_judgement_on_a_forgotten_memory_takes_its_effects_along(memctl: Any) -> None:
    memctl("ingest", "--text", "The spare key hangs behind the clock.")
    asked = memctl("query", "where is the spare key?", "-o", "json").json
    given = memctl("feedback", "add", asked["query_id"], "good", "-o", "json").json
    changed = memctl("feedback", "show", given["feedback_id"], "-o", "json").json["changed"]
    (memory,) = changed
    memctl("forget", "--memory", memory, "--yes")
    shown = memctl("feedback", "show", given["feedback_id"], "-o", "json").json
    assert shown["changed"] == {}
    assert memctl("feedback", "undo", given["feedback_id"], "--yes").code == 0


def test_rewards_by_day_prompt_and_agent_are_shown(memctl: Any) -> None:
    hold_conversation(memctl, "thanked", "What is the door code?", "4711.", "Thanks, that's right.")
    memctl("session", "end", "thanked")
    (record,) = memctl("feedback", "show", "thanked").rows
    assert (record["satisfaction"], record["reward_score"]) == (0.8, 0.8)
    (numbers,) = memctl("stats", "--feedback", "-o", "json").json
    assert numbers["conversations"] >= 1
    assert numbers["by_day"][0]["reward"] is not None
    assert memctl("stats", "--feedback", "-o", "csv").out.startswith("kb,by,label,conversations")
    assert memctl("stats", "--feedback", "--queries").code == 2


def test_a_corrected_answer_is_given_in_its_own_words(memctl: Any) -> None:
    ask(memctl, "when does Aurora ship?")
    memctl("feedback", "add", "last", "bad", "--example", "Aurora ships on 5 August, from Oslo.")
    answer = memctl("query", "when does Aurora ship?", "-o", "json").json["answer"]
    assert answer["text"].startswith("Aurora ships on 5 August, from Oslo. [1]")


def test_bad_and_unanswered_questions_become_questions_to_measure_with(
    memctl: Any, folder: Path
) -> None:
    ask(memctl, "what is the door code of the workshop?")
    memctl("feedback", "add", "last", "bad", "--example", "The door code is 4712.")
    memctl("query", "who won the chess tournament?")
    drafts = [json.loads(line) for line in memctl("eval", "--make", "-").out.splitlines()]
    by_question = {each["question"]: each for each in drafts}
    bad = by_question["what is the door code of the workshop?"]
    assert (bad["category"], len(bad["relevant"])) == ("judged bad", 1)
    assert by_question["who won the chess tournament?"]["category"] == "unanswered"
    questions = folder / "mine.jsonl"
    questions.write_text("".join(f"{json.dumps(each)}\n" for each in drafts))
    done = memctl("eval", str(questions), "-k", "default", "-o", "json")
    assert done.code == 0
    assert any(score["category"] == "judged bad" for score in done.json["scores"])


def test_the_reward_is_the_weighted_mean_of_what_is_known() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    settings = FeedbackSettings()
    answered = QueryDetail("q_1", "answered", grounding=0.5)
    assert reward_of(settings, [], [], ["hello"]).score is None
    found = reward_of(settings, [Feedback("f", "n", at, score=0.4)], [answered], [])
    assert found.score == pytest.approx(0.5 * 0.4 + 0.3 * 1 + 0.2 * 0.5)
    failed = reward_of(settings, [Feedback("f", "n", at, score=0.4, task="failed")], [], [])
    assert failed.score == pytest.approx(0.5 * 0.4 / 0.8)
    said = [reward_of(settings, [], [], [text]).satisfaction for text in (
        "Thanks a lot!", "No, it is not.", "nothing of it", "That’s wrong", "again please",
        "I know again",
    )]  # fmt: skip
    assert said == [0.8, 0.2, None, 0.2, 0.2, None]


def test_frequent_questions_are_shown_without_marks(memctl: Any, tmp_path: Path) -> None:
    note = tmp_path / "boat.md"
    note.write_text("# Boat\n\n## Log\n\nThe hull of the [[Selkie]] is painted dark blue.\n")
    memctl("ingest", str(note))
    for _ in range(3):
        memctl("query", "What is painted dark blue?")
    findings = memctl("reflect", "-o", "json").json[0]["findings"]
    often = [each["text"] for each in findings if each["kind"] == "asked_most"]
    assert "Answers relied 3 times on: The hull of the Selkie is painted dark blue." in often


def test_importance_that_judgements_change_stays_a_short_number(memctl: Any) -> None:
    memctl("memory", "add", "The ferry to Askholmen leaves at noon.", "--importance", "0.7")
    for expected in (0.65, 0.6, 0.55):
        asked = ask(memctl, "when does the ferry to Askholmen leave?")
        assert memctl("feedback", "add", asked["query_id"], "bad").code == 0
        shown = memctl("query", "when does the ferry to Askholmen leave?", "-n", "1", "-o", "json")
        assert shown.json["hits"][0]["importance"] == expected
