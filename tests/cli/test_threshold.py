"""An absolute score for every hit, --threshold, and words that refer back."""

from __future__ import annotations

import pytest

from .conftest import Run

MODES = ("hybrid", "keyword", "vector", "graph", "agentic")


@pytest.fixture
def notes(memctl: Run) -> Run:
    """A home with some notes."""
    for text in (
        "The lease of the studio on Mill Street starts in June and costs 900 euros a month.",
        "Tomatoes want sun. Water them in the morning.",
        "The ferry to Orkney leaves at 9:15 from pier two.",
    ):
        memctl("ingest", "--text", text)
    return memctl


def test_every_hit_has_a_relevance_and_a_similarity_in_every_mode(notes: Run) -> None:
    for mode in MODES:
        asked = "When does the lease of the studio start?"
        hits = notes("query", asked, "--mode", mode, "-o", "json").json["hits"]
        assert hits[0]["text"].startswith("The lease")
        assert hits[0]["relevance"] >= 0.7, mode
        assert 0 < hits[0]["similarity"] <= 1
        assert all(0 <= hit["relevance"] < 0.7 for hit in hits[1:]), mode


def test_what_has_nothing_of_a_question_is_not_relevant_beside_what_answers_it(notes: Run) -> None:
    for asked in (
        "When does the lease of the studio start?",
        "When does the ferry to Orkney leave?",
    ):
        for mode in MODES:
            hits = notes("query", asked, "--mode", mode, "-o", "json").json["hits"]
            (tomatoes,) = [hit for hit in hits if "Tomatoes" in hit["text"]] or [{"relevance": 0}]
            assert tomatoes["relevance"] < 0.3, (asked, mode)


def test_a_threshold_leaves_out_what_is_not_clearly_relevant(notes: Run) -> None:
    for asked, count in (("When does the ferry to Orkney leave?", 1), ("Who wrote Hamlet?", 0)):
        result = notes("query", asked, "--threshold", "0.7", "-o", "json").json
        assert len(result["hits"]) == count
        assert result["answer"]["found"] is bool(count)
        block = notes("context", asked, "--threshold", "0.7").out
        assert ("pier two" in block) is bool(count)
        assert "Tomatoes" not in block


def test_the_threshold_is_a_setting(notes: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCTL_QUERY_THRESHOLD", "0.7")
    assert notes("query", "Who wrote Hamlet?", "-o", "json").json["hits"] == []
    assert notes("query", "Who wrote Hamlet?", "--threshold", "0", "-o", "json").json["hits"]


def test_what_a_message_refers_back_by_is_not_searched_for(notes: Run) -> None:
    for asked in (
        "earlier you said the lease of the studio starts in June, right?",
        "In our previous conversation you named a rent for the studio on Mill Street",
        "in the past we talked about the lease of the studio",
        "remind me when the lease of the studio starts",
    ):
        assert "900 euros" in notes("context", "--auto", asked).out, asked


def test_how_relevant_a_message_must_be_is_a_setting(
    notes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "the ferry to Orkney, when does it leave?"
    assert "pier two" in notes("context", "--auto", asked).out
    monkeypatch.setenv("MEMCTL_CONTEXT_LEAST_RELEVANCE", "1")
    assert notes("context", "--auto", asked).out == ""


def test_one_conversation_is_left_out(memctl: Run) -> None:
    lines = [
        '{"text": "The ferry leaves from pier two.", "session_id": "one", "turn": 0}',
        '{"text": "The ferry leaves from pier nine.", "session_id": "two", "turn": 0}',
    ]
    memctl("ingest", "--jsonl", "-", stdin="\n".join(lines))
    memctl("ingest", "--text", "The ferry leaves at noon.")
    asked = ("context", "Where does the ferry leave?", "--session", "two")
    assert "pier two" not in memctl(*asked).out
    others = memctl(*asked, "--other-sessions").out
    assert "pier two" in others
    assert "noon" in others
    assert "pier nine" not in others
    assert memctl("context", "the ferry", "--other-sessions").code == 2
