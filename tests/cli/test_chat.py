"""memctl chat: what is said is answered from memory and remembered."""

from __future__ import annotations

import pytest
from fake_endpoint import FakeEndpoint

from .conftest import Run

KNOWN = "We decided on 3 May 2026 to paint the hull of the boat green."


def test_without_a_model_memory_replies_and_both_sides_are_kept(memctl: Run) -> None:
    memctl("ingest", "-", stdin=KNOWN)
    done = memctl("chat", "--session", "boat", stdin="What is painted green?\n\nnot read\n")
    assert done.code == 0
    assert "hull" in done.out
    assert "[1]" in done.out
    turns = memctl("session", "show", "boat", "-o", "json").json["turns"]
    assert [turn["sender"] for turn in turns] == ["user", "assistant"]
    assert turns[0]["content"] == "What is painted green?"


def test_a_model_gets_memory_and_what_was_said_before(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "-", stdin=KNOWN)
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    endpoint.on("", "Green [1].")
    lines = "What did we decide about the hull of the boat?\nthanks!\n"
    done = memctl("chat", "--session", "boat", stdin=lines)
    assert done.out == "Green [1].\nGreen [1].\n"
    first, second = endpoint.asked
    assert KNOWN in first.said
    assert KNOWN not in second.said
    assert "assistant: Green [1]." in second.said
    endpoint.fail(500, times=-1)
    failed = memctl("chat", "--session", "boat", stdin="And the mast?\n")
    assert failed.code == 0
    assert "error:" in failed.err
    turns = memctl("session", "show", "boat", "-o", "json").json["turns"]
    assert turns[-1]["content"] == "And the mast?"


def test_what_is_to_be_kept_is_noted_and_quotes_show_no_brackets(memctl: Run) -> None:
    memctl("ingest", "--text", "The hull of [[Marlin|the boat]] is painted green.")
    lines = "remember: the crane is booked for 10 June\nthanks!\nWhat is painted green?\n"
    noted, small_talk, *answer = memctl("chat", stdin=lines).out.splitlines()
    assert noted == "Noted."
    assert "ask it a question" in small_talk
    assert answer[-1].endswith("The hull of the boat is painted green.")
    asked = memctl("query", "When is the crane booked?", "-o", "json").json
    assert "10 June" in asked["answer"]["text"]


def test_what_memory_replies_is_no_new_evidence(memctl: Run) -> None:
    memctl("ingest", "--text", "The boat is called Marlin and lies at the north pier.")
    question = "What is the boat called?"
    assert "Marlin" in memctl("chat", stdin=f"{question}\n").out
    hits = memctl("query", question, "-o", "json").json["hits"]
    assert [hit["source"] for hit in hits if "Marlin" in hit["text"]] == ["text"]
    assert not memctl("chat", stdin="\n").out
    assert len(memctl("session", "list").rows) == 1, "nothing said leaves no session"
