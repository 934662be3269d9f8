"""memctl eval: question sets are measured, compared, and written from one's own memories."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, wait_for

RECORDS = [
    {"id": "code", "text": "The door code of the workshop is 4711."},
    {"id": "code", "text": "The door code of the cellar is 0815."},
    {"id": "tomato", "text": "Tomatoes want sun and water.", "namespace": "garden"},
    {"id": "lease", "text": "The lease for the workshop starts on 1 June 2026."},
]
QUESTIONS = [
    {"id": "1", "question": "when does the lease start?", "relevant": ["lease"], "category": "x"},
    {"id": "2", "question": "what do tomatoes want?", "relevant": ["tomato"],
     "namespace": "garden", "category": "y"},
    {"id": "3", "question": "what do tomatoes want?", "relevant": ["tomato"],
     "namespace": "default", "category": "y"},
]  # fmt: skip
METRICS = ("recall@5", "recall@10", "ndcg@10", "mrr")


def write(path: Path, lines: list[Any]) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A question set, and a folder of its own for what is temporary."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    made = tmp_path / "set"
    made.mkdir()
    write(made / "corpus.jsonl", [RECORDS[0], *RECORDS[2:]])
    write(made / "queries.jsonl", QUESTIONS)
    return made


def test_a_set_is_scored_by_mode_and_category_and_leaves_nothing(
    memctl, folder: Path, tmp_path: Path
) -> None:
    done = memctl("eval", str(folder), "--mode", "hybrid", "--mode", "keyword", "-o", "json")
    assert (done.code, done.err) == (0, "")
    rows = done.json["scores"]
    assert [(row["mode"], row["category"], row["questions"]) for row in rows] == [
        (mode, category, number)
        for mode in ("hybrid", "keyword")
        for category, number in (("all", 3), ("x", 1), ("y", 2))
    ]
    assert {metric: rows[0][metric] for metric in METRICS} == dict.fromkeys(METRICS, 66.7)
    assert {metric: rows[2][metric] for metric in METRICS} == dict.fromkeys(METRICS, 50.0)
    assert 0 < rows[0]["p50_ms"] <= rows[0]["p95_ms"]
    assert not (tmp_path / "home").exists()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_figures_are_those_of_the_hits_that_a_query_gives(memctl, folder: Path) -> None:
    """Worked out from ``query --batch`` as in the definitions, on a set of some size."""
    towns = ["Oslo", "Bergen", "Turku", "Malmo", "Lund", "Visby", "Aarhus", "Odense"]
    write(
        folder / "corpus.jsonl",
        [
            {"id": f"{town}-{trade}", "text": f"The {trade} of {town} opens at {n} in the morning."}
            for n, town in enumerate(towns)
            for trade in ("baker", "butcher", "library", "bank")
        ],
    )
    questions = [
        {"id": town, "question": f"when does something open in {town}?",
         "relevant": [f"{town}-baker", f"{town}-bank", "nowhere"]}
        for town in towns
    ]  # fmt: skip
    write(folder / "queries.jsonl", questions)
    memctl("ingest", "--jsonl", str(folder / "corpus.jsonl"))
    answers = memctl(
        "query", "--batch", str(folder / "queries.jsonl"), "--no-answer", "-n", "25"
    ).rows
    expected = dict.fromkeys(METRICS, 0.0)
    for asked, answer in zip(questions, answers, strict=True):
        ranked = list(dict.fromkeys(hit["external_id"] for hit in answer["hits"]))
        wanted = set(asked["relevant"])
        found = [place for place, id_ in enumerate(ranked, 1) if id_ in wanted]
        expected["recall@5"] += len([p for p in found if p <= 5]) / 3
        expected["recall@10"] += len([p for p in found if p <= 10]) / 3
        ideal = sum(1 / math.log2(p + 1) for p in (1, 2, 3))
        expected["ndcg@10"] += sum(1 / math.log2(p + 1) for p in found if p <= 10) / ideal
        expected["mrr"] += 1 / found[0] if found else 0
    done = memctl("eval", str(folder / "queries.jsonl"), "-k", "default", "-o", "json")
    [row] = done.json["scores"]
    assert {metric: row[metric] for metric in METRICS} == {
        metric: round(100 * total / len(towns), 1) for metric, total in expected.items()
    }
    assert 0 < row["recall@5"] < 100
    assert "1 id of evidence is not there" in done.err
    [asked] = memctl("sql", "select count(*) as n from queries").rows
    assert asked == {"n": len(towns)}, "the query log notes what was asked, not what was measured"


def test_a_run_is_compared_with_one_that_was_saved(memctl, folder: Path, tmp_path: Path) -> None:
    saved = str(tmp_path / "before.json")
    assert memctl("eval", str(folder), "--save", saved).code == 0
    assert b"tomatoes" not in Path(saved).read_bytes()
    write(folder / "corpus.jsonl", [RECORDS[0], {**RECORDS[2], "namespace": "default"}, RECORDS[3]])
    done = memctl("eval", str(folder), "--compare", saved, "-o", "json")
    first = done.json["comparison"][0]
    assert (first["metric"], first["questions"]) == ("recall@5", 3)
    assert (first["before"], first["after"], first["difference"]) == (66.7, 66.7, 0.0)
    assert (first["better"], first["worse"]) == (1, 1)
    assert first["low"] < 0 < first["high"]
    table = memctl("eval", str(folder), "--compare", saved, "-o", "table").out
    assert "BETTER" in table
    assert "3 questions in both runs" in table
    rows = memctl("eval", str(folder), "--compare", saved, "-o", "csv").out.splitlines()
    assert [line.split(",")[2] for line in rows[1:]] == list(METRICS)
    other = memctl("eval", str(folder), "--compare", saved, "--mode", "keyword", "-o", "json")
    assert other.json["comparison"][0]["before_mode"] == "hybrid"


def test_saved_runs_are_shown_over_time(memctl, folder: Path, tmp_path: Path) -> None:
    assert memctl("eval", "--history").rows == []
    for name in ("one.json", "two.json"):
        memctl("eval", str(folder), "--mode", "keyword", "--save", str(tmp_path / name))
    memctl("eval", str(folder), "--mode", "keyword")  # which nobody saves
    rows = memctl("eval", "--history").rows
    assert [(row["mode"], row["questions"]) for row in rows] == [("keyword", 3)] * 2
    assert {*METRICS, "at", "memctl", "set"} <= rows[0].keys()
    with (tmp_path / "home" / "evaluations.jsonl").open("a") as file:
        file.write("no JSON\n[]\n")
    assert memctl("eval", "--history", str(folder)).rows == rows
    assert memctl("eval", "--history", "--mode", "keyword").code == 2


def test_models_of_vectors_are_measured_beside_each_other(
    memctl, folder: Path, endpoint, monkeypatch
) -> None:
    for name, value in endpoint.settings().items():
        monkeypatch.setenv(name, value)
    models = ("--embedder", "builtin", "--embedder", "endpoint/e")
    done = memctl("eval", str(folder), "--mode", "vector", *models, "-o", "json")
    scores = [row for row in done.json["scores"] if row["category"] == "all"]
    assert [row["mode"] for row in scores] == ["vector builtin", "vector endpoint/e"]
    assert all(row["questions"] == 3 for row in scores)
    assert memctl("eval", str(folder), "--embedder", "sing").code == 2
    assert memctl("eval", str(folder), "-k", "x", "--embedder", "builtin").code == 2


def test_other_questions_than_the_saved_ones_are_reported(memctl, folder, tmp_path) -> None:
    saved = str(tmp_path / "before.json")
    memctl("eval", str(folder), "--save", saved)
    write(folder / "queries.jsonl", [{**QUESTIONS[0], "id": "new"}, QUESTIONS[1]])
    assert (
        "1 of 2 questions are in the saved run"
        in memctl("eval", str(folder), "--compare", saved).err
    )
    write(folder / "queries.jsonl", [{**QUESTIONS[0], "id": "new"}])
    done = memctl("eval", str(folder), "--compare", saved, "-o", "json")
    assert done.json["comparison"] == []
    assert "0 of 1 questions are in the saved run" in done.err


def test_bad_lines_and_questions_without_evidence_are_told_and_the_rest_measured(
    memctl, folder: Path
) -> None:
    write(folder / "corpus.jsonl", [*RECORDS, "{broken", {"id": "no text"}])
    write(
        folder / "queries.jsonl",
        [*QUESTIONS, QUESTIONS[0], "{broken", {"id": "9", "question": "who won?", "relevant": []}],
    )
    done = memctl("eval", str(folder), "-o", "json")
    assert done.code == 3
    assert done.json["scores"][0]["questions"] == 3
    assert "queries.jsonl, line 4: the id '1' is that of an earlier line" in done.err
    assert "queries.jsonl, line 5: no JSON" in done.err
    assert "corpus.jsonl, line 5: not JSON" in done.err
    assert "1 question left out, for no evidence is named" in done.err
    assert "2 bad lines and 2 records" in done.err


def test_what_cannot_be_measured_is_a_usage_error(memctl, folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    memctl("kb", "create", "notes")
    write(empty / "none.jsonl", [{"id": "1", "question": "who?"}])
    no_folder = str(tmp_path / "nowhere" / "x.json")
    for words, said in [
        ([], "which question set?"),
        ([str(empty)], "no corpus.jsonl"),
        ([str(tmp_path / "nowhere")], "no such folder"),
        ([str(folder / "queries.jsonl")], "not a folder"),
        ([str(empty), "-k", "notes"], "no such file"),
        ([str(empty / "none.jsonl"), "-k", "notes"], "no question with evidence"),
        ([str(folder), "--mode", "magic"], "no mode 'magic'"),
        ([str(folder), "--save", no_folder], "no such folder"),
        ([str(folder), "--compare", str(folder / "queries.jsonl")], "no saved run"),
        ([str(folder), "--make", "x.jsonl"], "--make goes with -k alone"),
        (["--make", "x.jsonl", "-k", "notes"], "nothing in notes to ask about"),
    ]:
        done = memctl("eval", *words)
        assert done.code == 2, words
        error, hint = [line for line in done.err.splitlines() if not line.startswith("note")]
        assert said in error
        assert hint.startswith("hint: ")
    assert not (tmp_path / "x.jsonl").exists()


def test_questions_made_from_memories_are_found_by_eval(memctl, tmp_path: Path) -> None:
    memctl("ingest", "--text", "The lease for the workshop starts on 1 June 2026.")
    memctl("ingest", "--text", "We decided to put the training bar at the window.")
    records = tmp_path / "corpus.jsonl"
    write(records, [{"id": "flue", "text": "The flue costs 6,200 euros.", "namespace": "work"}])
    memctl("ingest", "--jsonl", str(records))
    memctl("memory", "add", "Mara prefers the green coffee store on the cool side.")
    made = tmp_path / "mine.jsonl"
    done = memctl("eval", "--make", str(made), "-k", "default")
    assert (done.code, done.out) == (0, "")
    lines = {line["question"]: line for line in map(json.loads, made.read_text().splitlines())}
    assert lines.keys() >= {
        "The lease for the workshop starts on which date?",
        "What was decided about put training bar window?",
        "The flue costs how much money?",
    }
    assert lines["The flue costs how much money?"]["relevant"] == ["flue"]
    assert lines["The flue costs how much money?"]["namespace"] == "work"
    measured = memctl("eval", str(made), "-k", "default", "-o", "json")
    assert measured.code == 0
    assert measured.err == ""
    assert measured.json["scores"][0]["recall@5"] == 100.0


def test_corrected_questions_are_not_overwritten(memctl, tmp_path: Path) -> None:
    memctl("ingest", "--text", "The flue costs 6,200 euros.")
    made = tmp_path / "mine.jsonl"
    made.write_text("corrected")
    assert memctl("eval", "--make", str(made), "-k", "default").code == 2
    assert made.read_text() == "corrected"
    [line] = memctl("eval", "--make", "-", "-k", "default", "-n", "1").rows
    assert line["evidence"] == "The flue costs 6,200 euros."


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_nothing(folder: Path, tmp_path: Path, ending) -> None:
    write(
        folder / "corpus.jsonl",
        [{"id": str(n), "text": f"Record {n} is about {n * n} things."} for n in range(20_000)],
    )
    place = tmp_path / "temporary"
    environ = {**os.environ, "TMPDIR": str(place), "MEMCTL_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [sys.executable, "-m", "memctl", "eval", str(folder)],
        env=environ, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        wait_for(lambda: list(place.glob("*/kb/eval/ledger.sqlite")))
        running.send_signal(ending)
        _, said = running.communicate(timeout=PATIENCE)
    assert (running.returncode, said) == (130, "error: interrupted\n")
    assert list(place.iterdir()) == []
