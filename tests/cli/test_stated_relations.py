"""Relations that memories and documents state: they hold, end and go with what states them."""

from __future__ import annotations

import json
from typing import Any

from command_line import Run


def relations(memctl: Run) -> list[tuple[str, bool]]:
    """What is stated of two names, and whether it holds."""
    asked = "select text, valid_to from relations where relation_type <> 'links_to' order by text"
    return [(row["text"], row["valid_to"] is None) for row in memctl("sql", asked).rows]


def neighbours(memctl: Run, name: str) -> list[tuple[Any, ...]]:
    rows = memctl("graph", "neighbors", name).rows
    return [(row["name"], row["relation"], row["direction"]) for row in rows]


def test_a_relation_is_there_without_a_model_and_ends_when_its_memory_is_edited(
    memctl: Run,
) -> None:
    (memory,) = memctl("memory", "add", "Ann Lee works at Acme").rows
    assert relations(memctl) == [("Ann Lee works at Acme", True)]
    assert neighbours(memctl, "Ann Lee") == [("Acme", "works_at", "out")]
    (newer,) = memctl("memory", "edit", memory["id"], "--text", "Ann Lee works at Globex").rows
    assert relations(memctl) == [
        ("Ann Lee works at Acme", False),
        ("Ann Lee works at Globex", True),
    ]
    assert neighbours(memctl, "Ann Lee") == [("Globex", "works_at", "out")]
    assert memctl("forget", "--memory", newer["id"], "--yes").code == 0
    assert relations(memctl) == []


def test_what_a_name_costs_and_when_it_starts_is_a_relation_of_it(memctl: Run) -> None:
    (memory,) = memctl("memory", "add", "Project Atlas costs 900 euros.").rows
    memctl("ingest", "--text", "Project Atlas starts on 3 May 2026. Redis starts on 3 May 2026.")
    assert ("900 euros", "costs", "out") in neighbours(memctl, "Project Atlas")
    assert ("3 May 2026", "starts_on", "out") in neighbours(memctl, "Project Atlas")
    found = memctl("graph", "search", "cost").rows
    assert {row["name"] for row in found} == {"Project Atlas", "900 euros"}
    assert memctl("memory", "show", memory["id"], "-o", "json").json["relations"] == []
    memctl("memory", "edit", memory["id"], "--text", "Project Atlas costs 800 euros.")
    assert ("Project Atlas costs 900 euros", False) in relations(memctl)
    assert ("900 euros", "costs", "out") not in neighbours(memctl, "Project Atlas")
    assert memctl("doctor", "--rebuild").code == 0
    memctl("forget", "--entity", "Project Atlas", "--yes")
    assert [text for text, _ in relations(memctl)] == ["Redis starts on 3 May 2026"]


def test_what_two_sources_state_stays_until_both_are_forgotten(memctl: Run) -> None:
    (memory,) = memctl("memory", "add", "Ann Lee works at Acme.").rows
    memctl("ingest", "--text", "Ann Lee works at Acme. She likes the harbour.")
    assert relations(memctl) == [("Ann Lee works at Acme", True)] * 2
    (document,) = memctl("document", "list").rows
    memctl("forget", "--memory", memory["id"], "--yes")
    assert relations(memctl) == [("Ann Lee works at Acme", True)]
    memctl("document", "delete", document["id"], "--yes")
    assert relations(memctl) == []


def test_a_sentence_that_is_forgotten_takes_its_relation_and_leaves_the_others(
    memctl: Run,
) -> None:
    said = "important: Ann Lee works at Acme.\n\n# Others\n\nTom Baker lives in Lisbon.\n"
    memctl("ingest", "--text", said)
    held = [("Ann Lee works at Acme", True), ("Tom Baker lives in Lisbon", True)]
    assert relations(memctl) == held
    rows = memctl("memory", "list", "--type", "important_fact").rows
    memctl("forget", "--memory", rows[0]["id"], "--yes")
    assert relations(memctl) == held[1:]
    memctl("forget", "--entity", "Tom Baker", "--yes")
    assert relations(memctl) == []


def test_relations_of_a_document_end_with_it_and_come_back_with_a_rebuild(memctl: Run) -> None:
    for firm in ("Acme", "Globex"):
        line = {"id": "who", "text": f"Ann Lee works at {firm}."}
        assert memctl("ingest", "--jsonl", "-", stdin=json.dumps(line)).code == 0
    current = [("Ann Lee works at Acme", False), ("Ann Lee works at Globex", True)]
    assert relations(memctl) == current
    assert memctl("doctor", "--rebuild").code == 0
    assert relations(memctl) == current
    assert neighbours(memctl, "Ann Lee") == [("Globex", "works_at", "out")]


def test_who_is_responsible_for_a_thing_manages_it(memctl: Run) -> None:
    memctl("memory", "add", "Ann Lee is responsible for Project Atlas.")
    for relation in ("manages", "responsible_for"):
        rows = memctl("graph", "neighbors", "Ann Lee", "--relation", relation).rows
        assert [(row["name"], row["relation"]) for row in rows] == [("Project Atlas", "manages")]
