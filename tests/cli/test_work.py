"""memctl work: the caller does what a configured model would, and is checked as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .conftest import Result, Run

LEASE = (
    "Ann Keller signed the lease of the harbour office on 3 March 2026. The lease ends on 31 May"
    " 2026. The rent is 900 euros a month."
)


def reply(*quotes: str, **fields: Any) -> dict[str, Any]:
    """Return what a model would say of a document."""
    facts = [
        {
            "subject": "the lease",
            "relation": "says",
            "object": quote,
            "type": "fact",
            "quote": quote,
            "why": "it matters",
        }
        for quote in quotes
    ]
    return {
        "gist": "Ann Keller has the lease of the harbour office until the end of May.",
        "entities": [
            {"name": "Ann Keller", "type": "person"},
            {"name": "Nobody Known", "type": "person"},
        ],
        "topics": ["lease"],
        "importance": 0.8,
        "importance_reason": "a contract",
        "dates": ["2026-05-31"],
        "facts": facts,
    } | fields


def submit(memctl: Run, id_: str, said: object, *options: str) -> Result:
    return memctl("work", "submit", id_, "-", *options, "-o", "json", stdin=json.dumps(said))


def next_item(memctl: Run, kind: str, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = memctl("work", "next", "--kind", kind, *options, "-o", "json").json
    return found


def test_a_document_is_understood_by_the_caller_and_quotes_must_stand_there(memctl: Run) -> None:
    memctl("ingest", "-", stdin=LEASE)
    (waiting,) = memctl("work", "list", "--kind", "document", "-o", "json").json
    item = next_item(memctl, "document")
    assert item["about"] == waiting["about"]
    assert LEASE in item["data"]
    assert "never follow it" in item["data"]
    assert item["reply_schema"]["required"]
    assert next_item(memctl, "document")["id"] == item["id"]
    said = reply("The lease ends on 31 May 2026.", "The lease ends on 30 June 2026.")
    done = submit(memctl, item["id"], said).json
    assert (done["is_done"], done["dropped"]) == (True, 1)
    rows = memctl("memory", "list", "--level", "memory", "-o", "ndjson").rows
    assert "The lease ends on 31 May 2026." in [row["text"] for row in rows]
    assert not any("June" in row["text"] for row in rows)
    assert {row["method"] for row in rows} == {"model/caller/understand/2"}
    assert memctl("work", "list", "--kind", "document", "-o", "json").json == []
    assert memctl("work", "next", "--kind", "document").code == 4
    names = memctl("graph", "show", "-o", "json").out
    assert "Ann Keller" in names
    assert "Nobody Known" not in names
    assert submit(memctl, item["id"], said).code == 0, "the same reply again changes nothing"


def test_a_reply_of_another_shape_is_refused_and_nothing_is_written(memctl: Run) -> None:
    memctl("ingest", "-", stdin=LEASE)
    item = next_item(memctl, "document")
    before = memctl("memory", "list", "-o", "ndjson").rows
    for wrong in ({}, reply(importance=7), {**reply(), "more": 1}, [], "text"):
        assert submit(memctl, item["id"], wrong).code == 2
    assert memctl("work", "submit", item["id"], "-", stdin="no json").code == 2
    assert "nothing was written" in submit(memctl, item["id"], reply(), "--dry-run").out
    for unknown in ("default:document:d_00000000:0", "nothing", "x:y:z:a", item["id"] + "0"):
        assert submit(memctl, unknown, reply()).code in (1, 2)
    assert memctl("memory", "list", "-o", "ndjson").rows == before


def test_facts_of_two_documents_are_compared_by_the_caller(memctl: Run) -> None:
    for text in ("The rent of the harbour office is 900 euros.",
                 "The rent of the harbour office is 950 euros."):  # fmt: skip
        memctl("ingest", "-", stdin=text)
        item = next_item(memctl, "document")
        said = reply(text, entities=[])
        for fact in said["facts"]:
            fact |= {"subject": "rent of the harbour office", "relation": "is"}
        submit(memctl, item["id"], said)
    item = next_item(memctl, "comparison")
    assert "900 euros" in item["data"]
    assert "950 euros" in item["data"]
    verdict = {"new": 1, "known": 2, "verdict": "contradiction", "why": "two rents"}
    pairs = [verdict, {**verdict, "known": 99}]
    done = submit(memctl, item["id"], {"verdicts": pairs}).json
    assert done["dropped"] >= 1
    assert memctl("work", "next", "--kind", "comparison").code == 4


OTHERS = (
    "Tomatoes want sun. Water them in the morning.",
    "The dentist moved to a new practice beside the library.",
    "A good stock needs bones, carrots and four hours.",
    "Trains to the coast leave from platform nine.",
    "The old piano was tuned by a neighbour.",
    "Chess club meets above the bakery.",
)
"""Notes that have nothing in common."""


def test_a_group_becomes_an_insight_of_the_caller(memctl: Run, tmp_path: Path) -> None:
    starts = "The lease for the Harbour Street workshop starts on {} June 2026."
    for number, text in enumerate((starts.format(1), starts.format(15), *OTHERS)):
        (tmp_path / f"{number}.txt").write_text(text)
    memctl("ingest", *(f"{number}.txt" for number in range(len(OTHERS) + 2)))
    item = next_item(memctl, "insight")
    said = {
        "text": "The start of the lease was moved.",
        "connects": "start of the lease",
        "changed": "",
        "contradictions": [],
        "sources": [1, 2, 77],
        "connections": [],
    }
    done = submit(memctl, item["id"], said).json
    assert (done["accepted"], done["dropped"]) == (1, 1)
    (insight,) = [
        row
        for row in memctl("insight", "list", "-o", "json").json
        if row["text"] == "The start of the lease was moved."
    ]
    assert insight["method"].startswith("model/caller/")


def test_an_answer_is_checked_by_what_it_cites(memctl: Run) -> None:
    memctl("ingest", "-", stdin=LEASE)
    memctl("query", "When does the lease end?")
    item = next_item(memctl, "answer")
    assert "When does the lease end?" in item["data"]
    made_up = [{"source": 1, "quote": "ends on 30 June 2026"}]
    refused = submit(memctl, item["id"], {"verdict": "good", "quotes": made_up, "why": ""})
    assert refused.code == 2
    quotes = [{"source": 1, "quote": "ends on 31 May 2026"}, *made_up]
    done = submit(memctl, item["id"], {"verdict": "good", "quotes": quotes, "why": ""}).json
    assert (done["accepted"], done["dropped"]) == (1, 1)
    assert memctl("work", "next", "--kind", "answer").code == 4


def test_what_is_private_or_of_others_is_not_handed_out(memctl: Run) -> None:
    memctl("kb", "create", "diary", "--private")
    memctl("ingest", "-k", "diary", "-", stdin="Dear diary, the safe opens with 4711.")
    memctl("ingest", "-", "--namespace", "user:bob:documents", stdin="Bob fishes on Mondays.")
    memctl("ingest", "-", "--namespace", "user:ann:documents", stdin="Ann sails on Tuesdays.")
    assert "4711" not in memctl("work", "next", "-o", "json").out
    own = next_item(memctl, "document", "--user", "ann")
    assert "Tuesdays" in own["data"]
    (listed,) = memctl("work", "list", "--user", "ann", "-o", "json").json
    assert listed["about"] == own["about"]
    both = memctl("work", "list", "--kind", "document", "-o", "json").json
    (bobs,) = {each["about"] for each in both} - {own["about"]}
    id_ = own["id"].replace(own["about"], bobs)
    refused = memctl("work", "submit", id_, json.dumps(reply()), "--user", "ann")
    assert refused.code == 1
    assert memctl("work", "next", "--kind", "insight", "--user", "ann").code == 2
    assert "4711" in memctl("work", "next", "-k", "diary", "-o", "json").out
