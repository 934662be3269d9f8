"""What memctl query shows where many memories say the same: copies, diversity, hits a document."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_endpoint import FakeEndpoint

from memctl.literals import Mode

from .conftest import Run

LAUNCH = "The launch of Aurora is on 12 May 2026. Ann decided it together with the whole board."
ALIKE = [f"The harbour office opens at nine on {day}." for day in ("Monday", "Tuesday", "Friday")]
OTHER = "Ships pay a fee of forty euros to the harbour office, and fishers pay nothing."


def ingested(memctl: Run, records: list[dict[str, Any]], kb: str = "default") -> None:
    lines = "\n".join(map(json.dumps, records))
    assert memctl("ingest", "--jsonl", "-", "-k", kb, stdin=lines).code == 0


def hits(memctl: Run, *words: str) -> list[dict[str, Any]]:
    found = memctl("query", *words, "--no-answer", "-o", "json").json["hits"]
    return list(found)


def names(found: list[dict[str, Any]]) -> list[str]:
    return [hit["external_id"] for hit in found]


@pytest.fixture
def copies(memctl: Run, tmp_path: Path) -> Run:
    """Two files with the same text, and one that differs in a word."""
    (tmp_path / "a.txt").write_text(f"{LAUNCH}\n")
    (tmp_path / "b.txt").write_text(LAUNCH.replace(". ", ".\n") + "\n")
    (tmp_path / "c.txt").write_text(LAUNCH.replace("whole board", "whole board then") + "\n")
    memctl("ingest", "a.txt", "b.txt", "c.txt")
    return memctl


@pytest.fixture
def harbour(memctl: Run) -> Run:
    """Three notes that are nearly the same, and one that says something else."""
    records = [{"id": f"opens{n}", "text": text} for n, text in enumerate(ALIKE)]
    ingested(memctl, [*records, {"id": "fee", "text": OTHER}])
    return memctl


# --- the same text -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", get_args(Mode))
def test_the_same_text_from_two_files_is_one_hit_that_says_where_it_stands(
    copies: Run, mode: str
) -> None:
    found = hits(copies, "When is the launch of Aurora?", "--mode", mode)
    assert len(found) == 2
    (hit,) = (hit for hit in found if hit["also_in"])
    (copy,) = hit["also_in"]
    assert {Path(hit["source"]).name, Path(copy["source"]).name} == {"a.txt", "b.txt"}
    assert copy["likeness"] == 1
    text = copies("document", "show", copy["document_id"], "--text").out
    assert text[copy["start"] : copy["end"]].split() == LAUNCH.split()


def test_people_are_told_where_else_it_stands(copies: Run) -> None:
    out = copies("query", "When is the launch of Aurora?", "-o", "table").out
    assert "also in b.txt, characters 0-" in out or "also in a.txt, characters 0-" in out


def test_texts_that_differ_in_a_few_words_are_one_hit_if_that_is_asked_for(copies: Run) -> None:
    asked = ("query", "When is the launch of Aurora?", "--duplicates", "near")
    (hit,) = copies(*asked, "-o", "json").json["hits"]
    assert len(hit["also_in"]) == 2
    assert 0.8 <= hit["also_in"][-1]["likeness"] < 1
    assert "nearly the same in " in copies(*asked, "-o", "table").out
    assert len(hits(copies, "When is the launch of Aurora?", "--duplicates", "keep")) == 3


def test_texts_that_differ_in_a_number_are_never_the_same(memctl: Run) -> None:
    backup = "The backup of the archive of the harbour took {} minutes today, and was put away in"
    where = " the red box on the upper shelf of the room behind the office, as on any other day."
    ingested(memctl, [{"id": n, "text": backup.format(n) + where} for n in ("7", "9")])
    assert len(hits(memctl, "How long was the backup?", "--duplicates", "near")) == 2


def test_what_stands_under_different_headings_is_not_the_same(memctl: Run, tmp_path: Path) -> None:
    price = "Five euros are what we ask for every full basket, and four for one that is not."
    for name in ("Apples", "Pears"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n{'They are good. ' * 5}\n\n{price}\n")
    memctl("kb", "create", "shop", "--chunk-size", "100", "--chunk-overlap", "0")
    memctl("ingest", "Apples.md", "Pears.md", "-k", "shop")
    found = hits(memctl, "How much for a full basket?", "--level", "evidence", "-k", "shop")
    assert [hit["text"] for hit in found[:2]] == [price, price]
    assert {hit["title"] for hit in found[:2]} == {"Apples", "Pears"}


def test_what_was_said_twice_is_two_hits(memctl: Run) -> None:
    turn = {"text": "Ann: Let us meet at the harbour office tomorrow.", "turn": 1}
    days = ("2026-03-01T10:00:00Z", "2026-04-01T10:00:00Z")
    ingested(memctl, [turn | {"id": at, "session_id": at, "created_at": at} for at in days])
    assert set(names(hits(memctl, "meet at the harbour"))) == set(days)
    again = turn | {"id": "again", "session_id": "imported", "created_at": days[0]}
    ingested(memctl, [again])
    assert len(hits(memctl, "meet at the harbour")) == 2


def test_copies_in_other_knowledge_bases_are_named_with_them(memctl: Run) -> None:
    memctl("kb", "create", "second")
    for kb in ("default", "second"):
        memctl("ingest", "--text", LAUNCH, "-k", kb)
    (hit,) = hits(memctl, "When is the launch?")
    assert {hit["kb"], hit["also_in"][0]["kb"]} == {"default", "second"}


def test_a_file_counts_once_though_knowledge_bases_cut_it_differently(
    memctl: Run, tmp_path: Path
) -> None:
    rows = [f"{n},{'Pella' if n % 2 else 'Odo'},{n * 3},{'' if n % 9 else n}" for n in range(60)]
    (tmp_path / "moorings.csv").write_text("\n".join(["berth,skipper,metres,paid", *rows]))
    (tmp_path / "gear list.md").write_text("# Gear list\n\n- rope\n- fender\n- anchor\n")
    asked = ("query", "How many berths does Pella have?", "-o", "json")
    places = []
    for name, size in (("small", "200"), ("large", "1200")):
        memctl("kb", "create", name, "--chunk-size", size, "--chunk-overlap", "0")
        memctl("ingest", "moorings.csv", "gear list.md", "-k", name)
        places += ["-k", name]
    found = memctl(*asked, *places).json["hits"]
    of_file = [hit for hit in found if hit["source"].endswith(".csv") and hit["type"] == "passage"]
    spans = sorted((hit["start"], hit["end"]) for hit in of_file)
    assert {hit["kb"] for hit in of_file} == {"large"}
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert {copy["kb"] for hit in of_file for copy in hit["also_in"]} == {"small"}
    listed = memctl("query", "What is on the gear list?", "-o", "json", *places).json["answer"]
    assert listed["text"].count("fender") == 1
    assert "Older" not in listed["text"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_many_copies_leave_room_for_what_else_is_there(memctl: Run, mode: str) -> None:
    fee = "The harbour office takes a fee, says the harbour office."
    records = [{"id": f"copy{n}", "title": f"Copy {n}", "text": fee} for n in range(230)]
    others = [{"id": "boat", "text": "A boat may stay in the harbour for as long as it likes."}]
    ingested(memctl, [*records, *others])
    question = ("the fee of the harbour office", "--mode", mode, "-n", "2", "--no-answer")
    found = hits(memctl, *question, "--level", "evidence")
    assert names(found)[1:] == ["boat"]
    assert found[0]["also_in"]


def test_what_says_the_same_as_the_evidence_counts_for_it(memctl: Run, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    records = [{"id": f"r{n}", "title": f"Note {n}", "text": LAUNCH} for n in range(2)]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    asked = [
        {"id": f"q{n}", "question": "When is the launch of Aurora?", "relevant": [f"r{n}"]}
        for n in range(2)
    ]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)))
    rows = memctl("eval", "set", "--mode", "hybrid", "-o", "json").json["scores"]
    assert rows[0]["recall@5"] == 100


# --- diversity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", get_args(Mode))
def test_diversity_puts_what_says_something_else_before_the_same_again(
    harbour: Run, mode: str
) -> None:
    asked = ("When does the harbour office open?", "--mode", mode)
    assert names(hits(harbour, *asked)).index("fee") > 1
    spread = harbour("query", *asked, "--diversity", "0.7", "--explain", "-o", "json").json
    found = spread["hits"]
    assert names(found)[1] == "fee"
    assert [hit["rank"] for hit in found] == [1, 2, 3, 4]
    scores = [hit["score"] for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert "diversity" not in found[0]["legs"]
    assert all(hit["legs"]["diversity"] < 0 for hit in found[1:])
    likest = spread["explain"]["likest"]
    for hit in found[2:]:
        assert likest[hit["memory_id"]]["cosine"] > likest[found[1]["memory_id"]]["cosine"]
    assert hits(harbour, *asked, "--diversity", "0.7") == found


def test_people_see_what_a_hit_lost_and_to_which(harbour: Run) -> None:
    asked = ("query", "When does the harbour office open?", "--diversity", "0.7", "--explain")
    out = harbour(*asked, "-o", "table").out
    assert "diversity -" in out
    assert "like 1: cosine 0." in out


def test_no_diversity_is_what_is_without(harbour: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "When does the harbour office open?"
    plain = hits(harbour, asked)
    monkeypatch.setenv("MEMCTL_QUERY_DIVERSITY", "1")
    assert names(hits(harbour, asked))[1] == "fee"
    assert hits(harbour, asked, "--diversity", "0") == plain


def test_what_is_shown_does_not_change_the_answer(harbour: Run) -> None:
    asked = ("query", "When does the harbour office open?", "-o", "json")
    spread = harbour(*asked, "--diversity", "0.7", "--per-document", "1").json["answer"]
    assert spread == harbour(*asked).json["answer"]


def test_diversity_counts_against_what_the_reranking_model_says(
    harbour: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(rerank="r").items():
        monkeypatch.setenv(name, value)
    endpoint.rank = lambda _, text: 5.0 - (ALIKE.index(text) if text in ALIKE else 4.0)
    asked = "When does the harbour office open?"
    assert names(hits(harbour, asked)) == ["opens0", "opens1", "opens2", "fee"]
    found = hits(harbour, asked, "--diversity", "0.8")
    assert names(found)[:2] == ["opens0", "fee"]
    assert found[1]["legs"]["rerank"] == 1.0


def test_vectors_of_different_embedders_are_not_compared(
    harbour: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    assert harbour("kb", "create", "second").code == 0
    ingested(harbour, [{"id": "elsewhere", "text": ALIKE[0] + " Always."}], "second")
    asked = ("query", "When does the harbour office open?", "--diversity", "1", "--explain")
    result = harbour(*asked, "-o", "json").json
    of = {hit["memory_id"]: hit["kb"] for hit in result["hits"]}
    assert set(of.values()) == {"default", "second"}
    for memory, likest in result["explain"]["likest"].items():
        assert of[memory] == of[likest["memory_id"]]


# --- hits a document -----------------------------------------------------------------------------


@pytest.fixture
def guides(memctl: Run, tmp_path: Path) -> Run:
    """A long guide on tides, each of its parts a passage, and two short notes."""
    parts = [
        f"## Part {n}\n\nTides of the harbour, part {n}: the tide rises {n} times." + " Tides." * 30
        for n in range(150)
    ]
    (tmp_path / "guide.md").write_text("# Guide\n\n" + "\n\n".join(parts))
    (tmp_path / "walk.md").write_text("# Walk\n\nWe walked along the harbour at low tide.\n")
    (tmp_path / "fish.md").write_text("# Fish\n\nFish come in with the tide.\n")
    memctl("ingest", "guide.md", "walk.md", "fish.md")
    return memctl


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector", "agentic"])
def test_one_hit_a_document_shows_every_document(guides: Run, mode: str) -> None:
    asked = ("How often does the tide of the harbour rise?", "--mode", mode, "-n", "3")
    plain = hits(guides, *asked)
    found = hits(guides, *asked, "--per-document", "1")
    assert {Path(hit["source"]).name for hit in found} == {"guide.md", "walk.md", "fish.md"}
    assert found[0]["memory_id"] == plain[0]["memory_id"]
    assert guides("memory", "show", found[0]["more_in_document"][0]).code == 0
    assert not any(hit["more_in_document"] for hit in found[1:])


def test_people_are_told_how_much_more_there_is_of_a_document(memctl: Run, tmp_path: Path) -> None:
    parts = [f"## Part {n}\n\nThe tide rises {n} times." + " Tides." * 150 for n in range(3)]
    (tmp_path / "guide.md").write_text("# Guide\n\n" + "\n\n".join(parts))
    memctl("ingest", "guide.md")
    asked = ("query", "How often does the tide rise?", "-o", "table")
    assert "+2 more of this document" in memctl(*asked, "--per-document", "1").out
    assert "+1 more of this document" in memctl(*asked, "--per-document", "2").out
    assert "of this document" not in memctl(*asked).out


def test_memories_of_no_document_are_each_their_own(memctl: Run) -> None:
    for day in ("Monday", "Tuesday"):
        memctl("memory", "add", f"The tide table of {day} hangs at the pier.")
    assert len(hits(memctl, "Where is the tide table?", "--per-document", "1")) == 2


@pytest.mark.parametrize(
    "option",
    [("--diversity", "1.5"), ("--diversity", "x"), ("--per-document", "-1"), ("--duplicates", "x")],
)
def test_impossible_search_options_are_a_usage_error(memctl: Run, option: tuple[str, str]) -> None:
    result = memctl("query", "tides", *option)
    assert result.code == 2
    assert result.err.startswith("error: ")
