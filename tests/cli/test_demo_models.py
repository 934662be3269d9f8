"""memctl demo with a model for every task: the whole tour, the endpoint doing all it can."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Asked, FakeEndpoint

TASKS = ("understand", "consolidate", "answer", "embed", "rerank", "transcribe", "image")
_SENTENCE = re.compile(r"[A-Z][^.!?\n]{20,200}[.!?]")


def understood(asked: Asked) -> dict[str, Any]:
    """A gist that is marked, the first sentence as a fact, and a quote that nobody wrote."""
    text = asked.data[-1]
    first = _SENTENCE.search(text)
    quotes = [first.group()] if first else []
    facts = [
        {
            "subject": "the roastery", "relation": "notes", "object": "something",
            "type": "fact", "quote": quote, "why": "it stands first",
        }
        for quote in [*quotes, "Nobody ever wrote this sentence."]
    ]  # fmt: skip
    return {
        "gist": f"By the model: {' '.join(text.split())[:60]}",
        "entities": [{"name": "Harbour Street", "type": "place"}],
        "topics": ["roastery"],
        "importance": 0.6,
        "importance_reason": "it is the sample",
        "dates": [],
        "facts": facts,
    }


def answered(asked: Asked) -> dict[str, Any]:
    """The first memory that was given, as the model's own words; nothing on chess."""
    question = asked.said.rpartition("The question: ")[2]
    if "chess" in question:
        return {"not_in_memory": True, "sentences": []}
    said = asked.data[0].partition("\n")[2].strip().splitlines()[0]
    return {"not_in_memory": False, "sentences": [{"text": said, "memories": [1, 99]}]}


def connected(asked: Asked) -> dict[str, Any]:
    return {
        "text": "Several notes are about the same thing.",
        "connects": "the roastery",
        "changed": "",
        "contradictions": [],
        "sources": [1, 2],
        "connections": [],
    }


@pytest.fixture
def tour(endpoint: FakeEndpoint, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The tour on the sample files, with models."""
    endpoint.on("DocumentReply", understood)
    endpoint.on("AnswerReply", answered)
    endpoint.on("InsightReply", connected)
    endpoint.on("Picture", {"description": "A poster for an open day.", "text": "OPEN DAY"})
    models = endpoint.settings(**dict.fromkeys(TASKS, "m"))
    places = {"TMPDIR": str(tmp_path), "MEMCTL_HOME": str(tmp_path / "own")}
    return subprocess.run(
        [sys.executable, "-m", "memctl", "demo"],
        capture_output=True, text=True, check=False, env={**os.environ, **models, **places},
    )  # fmt: skip


def test_the_tour_ends_well_with_a_model_for_every_task(
    tour: subprocess.CompletedProcess[str], endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    assert tour.returncode == 0, tour.stderr
    assert tour.stderr == ""
    asked = {asked.shape for asked in endpoint.asked if asked.path.endswith("/chat/completions")}
    shapes = {"DocumentReply", "ComparisonReply", "AnswerReply", "InsightReply", "Picture"}
    assert asked == shapes
    assert endpoint.count("/embeddings")
    assert endpoint.count("/rerank")
    assert "By the model: " in tour.stdout
    assert "Nobody ever wrote this sentence" not in tour.stdout
    assert "Several notes are about the same thing." in tour.stdout
    assert "A poster for an open day." in tour.stdout
    assert re.search(r'workshop start\?"\n.+ \[1\]\n +\[1\] .+, characters \d+-\d+', tour.stdout)
    assert re.search(r"chess championship\?\"\nNot in memory\.", tour.stdout)
    assert "[99]" not in tour.stdout
    assert not (tmp_path / "own").exists()
