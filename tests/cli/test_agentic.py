"""memctl query --mode agentic: rounds, alone and with a model that words the queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Asked, FakeEndpoint

from .conftest import Run

QUESTION = "Where did the director of The Lantern grow up?"
NOTES = {
    "film.md": "The Lantern is a film that was directed by Mirela Anghel.\n",
    "director.md": "Mirela Anghel grew up in a village near Cluj.\n",
    "garden.md": "Tomatoes want sun. Water them in the morning.\n",
}


@pytest.fixture
def notes(memctl: Run, tmp_path: Path) -> Run:
    for name, text in NOTES.items():
        (tmp_path / name).write_text(text)
    memctl("kb", "create", "one", "--always-on")
    memctl("kb", "create", "two", "--always-on")
    memctl("ingest", "film.md", "garden.md", "-k", "one")
    memctl("ingest", "director.md", "-k", "two")
    return memctl


def rounds(run: Run, *options: str) -> list[dict[str, Any]]:
    result = run("query", QUESTION, "--mode", "agentic", "--explain", "-o", "json", *options)
    assert result.code == 0, result.err
    found_rounds: list[dict[str, Any]] = result.json["explain"]["rounds"]
    return found_rounds


def test_rounds_go_over_several_knowledge_bases_and_the_answer_is_cited(notes: Run) -> None:
    result = notes(
        "query", QUESTION, "--mode", "agentic", "-k", "one", "-k", "two", "-o", "json"
    ).json
    assert result["mode"] == "agentic"
    assert result["answer"]["found"] or result["answer"]["unsure"]
    assert "Cluj" in "".join(cited["quote"] for cited in result["answer"]["citations"])
    ids = [hit["memory_id"] for hit in result["hits"]]
    assert len(ids) == len(set(ids))
    assert {hit["kb"] for hit in result["hits"]} == {"one", "two"}
    assert result["rounds"][0]["query"] == QUESTION
    assert result["rounds"] == rounds(notes, "-k", "one", "-k", "two")
    assert result["total_results"] == len(ids)
    assert notes("query", QUESTION, "-o", "json").json["rounds"] == []


def test_explain_tells_of_every_round_on_a_terminal(notes: Run) -> None:
    shown = notes("query", QUESTION, "--mode", "agentic", "--explain", "-o", "table").out
    assert f"round 1, worded by question: {QUESTION}" in shown
    assert "round 2, worded by built-in:" in shown
    assert "went on: too few hits are relevant" in shown
    assert "stopped:" in shown


def test_a_batch_with_filters_and_a_context_can_be_asked_in_rounds(
    notes: Run, tmp_path: Path
) -> None:
    lines = [{"id": str(n), "question": QUESTION} for n in range(2)]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, lines)))
    batch = notes(
        "query", "--batch", "asked.jsonl", "--mode", "agentic", "--source", "*director.md",
        "--no-answer", "-o", "ndjson",
    ).rows  # fmt: skip
    assert [row["id"] for row in batch] == ["0", "1"]
    for row in batch:
        assert {Path(hit["source"]).name for hit in row["hits"]} == {"director.md"}
    assert "Cluj" in notes("context", QUESTION, "--mode", "agentic").out


def test_the_model_that_answers_words_the_next_query(
    notes: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    given: list[Asked] = []

    def worded(asked: Asked) -> dict[str, Any]:
        given.append(asked)
        return {"query": "Mirela Anghel village" if len(given) == 1 else ""}

    endpoint.on("QueryReply", worded)
    steps = rounds(notes, "--no-answer")
    assert [each["by"] for each in steps] == ["question", "model"]
    assert steps[1]["query"] == "Mirela Anghel village"
    assert any("Mirela" in text for text in given[0].data)
    assert QUESTION not in "".join(given[0].data)


def test_without_the_model_rounds_go_on_by_rules_and_say_so(
    notes: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_rules = rounds(notes, "--no-answer")
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    endpoint.fail(400)
    result = notes("query", QUESTION, "--mode", "agentic", "--explain", "--no-answer", "-o", "json")
    assert result.json["explain"]["rounds"] == by_rules
    assert result.err.count("searched again without the model") == 1


def test_no_model_is_asked_in_other_modes(
    notes: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    notes("query", QUESTION, "--no-answer")
    assert not endpoint.asked


def test_an_option_or_a_setting_says_how_many_rounds_there_are(notes: Run) -> None:
    both = ("-k", "one", "-k", "two")
    assert len(rounds(notes, *both)) > 1
    only = rounds(notes, *both, "--rounds", "1")
    assert [each["then"] for each in only] == ["stopped: 1 round"]
    assert notes("query", QUESTION, "--rounds", "6").code == 2
    for words in (("--mode", "graph", "--rounds", "2"), ("--rounds", "2")):
        refused = notes("query", QUESTION, *words)
        assert (refused.code, "--mode agentic" in refused.err) == (2, True)
    for words in (
        ("query", "--hops", "2"),
        ("query", "--communities", "2"),
        ("context", "--hops", "2"),
    ):
        refused = notes(*words, QUESTION)
        assert (refused.code, "means nothing to --mode hybrid" in refused.err) == (2, True)


def test_settings_say_how_far_a_search_goes(notes: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_ROUNDS", "1")
    assert [each["then"] for each in rounds(notes, "-k", "two")] == ["stopped: 1 round"]
