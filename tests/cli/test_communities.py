"""What a question is part of: communities beside the hits of --mode graph, and in a context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

QUESTION = "What are the main topics around the harbour of Lisbon?"
HARBOUR = (
    "Ann Lee rents a berth in the harbour of Lisbon to Brightwater Ltd.",
    "Brightwater Ltd hired Peter Novak, who repairs the Kestrel in dry dock.",
    "The Kestrel leaves Lisbon on 3 July under Captain Rosa Duarte.",
    "Rosa Duarte and Peter Novak argue about the mast of the Kestrel.",
    "Ann Lee and Rosa Duarte want a second berth for Brightwater Ltd.",
)
GARDEN = (
    "Nora Feld grows Boskop apples with Emil Baum.",
    "Emil Baum sells the Boskop of Nora Feld in Graz.",
    "In Graz nobody but Emil Baum has Boskop in April.",
)


def put(memctl: Run, folder: Path, texts: tuple[str, ...], **more: str) -> None:
    lines = (json.dumps({"text": text, **more}) for text in texts)
    (folder / "records.jsonl").write_text("\n".join(lines))
    assert memctl("ingest", "--jsonl", "records.jsonl").code == 0


@pytest.fixture
def notes(memctl: Run, tmp_path: Path) -> Run:
    put(memctl, tmp_path, HARBOUR)
    put(memctl, tmp_path, GARDEN)
    return memctl


def communities(memctl: Run, *asked: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = memctl("query", *asked, "-o", "json").json["communities"]
    return found


def test_a_question_about_a_theme_sees_who_belongs_to_it_and_in_whose_words(notes: Run) -> None:
    found = communities(notes, QUESTION, "--mode", "graph")
    members = {name for each in found for name in each["members"]}
    assert {"Lisbon", "Kestrel", "Brightwater Ltd", "Rosa Duarte"} <= members
    assert not {"Graz", "Boskop", "Emil Baum"} & members
    best = found[0]
    assert best["size"] == len(best["members"])
    assert "Lisbon" in best["seeds"]
    assert {each["name"] for each in best["relations"]} <= set(best["members"])
    assert best["summary"] == " ".join(cited["quote"] for cited in best["citations"])


def test_every_sentence_and_relation_can_be_followed_down_to_memories(notes: Run) -> None:
    best = communities(notes, QUESTION, "--mode", "graph")[0]
    assert [cited["number"] for cited in best["citations"]] == [1, 2, 3][: len(best["citations"])]
    for cited in best["citations"]:
        document = notes("document", "show", cited["document_id"], "-o", "json").json["document"]
        assert document["text"][cited["start"] : cited["end"]] == cited["quote"]
        assert notes("memory", "show", cited["memory_id"]).code == 0
    for relation in best["relations"]:
        texts = [
            notes("memory", "show", id_, "-o", "json").json["memory"]["text"]
            for id_ in relation["memory_ids"]
        ]
        assert any(relation["name"] in text and relation["other"] in text for text in texts)


def test_people_see_communities_apart_from_the_hits_and_why_they_are_there(notes: Run) -> None:
    shown = notes("query", QUESTION, "--mode", "graph", "-o", "table").out
    assert shown.index("Communities") < shown.index("Nearest")
    assert " — named together — " not in shown
    explained = notes("query", QUESTION, "--mode", "graph", "--explain", "-o", "table").out
    assert " — named together — " in explained
    assert "Communities" not in notes("query", QUESTION, "-o", "table").out


def test_other_modes_and_questions_about_nothing_known_have_none(notes: Run) -> None:
    assert communities(notes, QUESTION) == []
    assert communities(notes, "Which parliament passed the tobacco levy?", "--mode", "graph") == []


def test_a_community_is_made_of_what_may_be_found_alone(memctl: Run, tmp_path: Path) -> None:
    put(memctl, tmp_path, (*HARBOUR[:3], *HARBOUR[4:]), namespace="ours")
    put(memctl, tmp_path, HARBOUR[3:4], namespace="theirs")
    found = communities(memctl, QUESTION, "--mode", "graph", "--namespace", "ours")
    assert found
    assert "argue" not in json.dumps(found)
    own = memctl("memory", "list", "--namespace", "ours").rows
    cited = {each["memory_id"] for one in found for each in one["citations"]}
    assert cited <= {row["id"] for row in own}


def test_names_that_were_said_to_mean_the_same_are_one_of_its_members(notes: Run) -> None:
    assert notes("graph", "merge", "Emil Baum", "Rosa Duarte").code == 0
    members = communities(notes, QUESTION, "--mode", "graph")[0]["members"]
    assert not {"Emil Baum", "Rosa Duarte"} <= set(members)


# --- in a context --------------------------------------------------------------------------------


@pytest.fixture
def log(memctl: Run, tmp_path: Path) -> Run:
    """So much about one harbour that no context holds all of it."""
    hands = ("Rosa Duarte", "Peter Novak", "Ann Lee", "Nora Feld")
    entries = tuple(
        f"Entry {n}: {hands[n % 4]} noted in the harbour of Lisbon, at berth {n}, that the lamps"
        f" {n * 7} and {n * 11} were lit, and that nothing else was to be seen by anybody."
        for n in range(60)
    )
    crew = "Rosa Duarte, Peter Novak, Ann Lee and Nora Feld have wintered in Lisbon twice."
    put(memctl, tmp_path, (*entries, crew))
    return memctl


def context(memctl: Run, budget: int, mode: str = "graph") -> dict[str, Any]:
    asked = ("context", "Which lamps were lit in the harbour of Lisbon?", "--mode", mode)
    found: dict[str, Any] = memctl(*asked, "--budget", str(budget), "-o", "json").json
    return found


@pytest.mark.parametrize("budget", [60, 100, 200, 400, 800])
def test_a_context_has_what_fits_of_them_below_the_evidence(log: Run, budget: int) -> None:
    found = context(log, budget)
    assert found["tokens"] <= budget == found["budget"]
    numbers = [cited["number"] for cited in found["citations"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(f"[{number}]" in found["text"] for number in numbers)
    evidence, _, part = found["text"].partition("What it is part of:")
    below = [cited for cited in found["citations"] if f"[{cited['number']}]" in part]
    assert bool(below) == (budget > 200)
    assert all(cited["quote"] not in evidence for cited in below)


def test_in_other_modes_a_context_is_of_evidence_alone(log: Run) -> None:
    assert "What it is part of" not in context(log, 400, "hybrid")["text"]


def test_an_option_says_how_many_communities_are_shown(notes: Run) -> None:
    about = ("Rosa Duarte, Emil Baum and Lisbon and Graz", "--mode", "graph")
    assert len(communities(notes, *about)) > 1
    assert len(communities(notes, *about, "--communities", "1")) == 1
    assert communities(notes, *about, "--communities", "0") == []
    assert communities(notes, *about, "--no-communities") == []
    assert notes("query", *about, "--communities", "1", "--no-communities").code == 2
    assert notes("query", "Lisbon", "--mode", "hybrid", "--communities", "1").code == 2


def test_a_context_goes_as_far_as_it_is_told(notes: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    about = ("context", "Brightwater Ltd and the Kestrel", "--mode", "graph")
    assert notes(*about, "--hops", "3").code == 0
    assert notes(*about, "--hops", "5").code == 2
    assert notes("context", "Lisbon", "--mode", "keyword", "--hops", "2").code == 2
    monkeypatch.setenv("MEMCTL_QUERY_COMMUNITIES", "0")
    assert communities(notes, QUESTION, "--mode", "graph") == []
    monkeypatch.setenv("MEMCTL_QUERY_GRAPH_SEEDS", "1")
    monkeypatch.setenv("MEMCTL_QUERY_SEED_DISTANCE", "0")
    assert notes(*about).code == 0
