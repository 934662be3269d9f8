"""The reading model: what it says does not depend on its company, and odd input is no problem."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memctl.errors import MemctlError
from memctl.models import task_encoder
from memctl.models.onnx_models import products_are_exact
from memctl.models.task_encoder import (
    STATEMENT_LABELS,
    TaskEncoder,
    letter_case,
    load_task_encoder,
)

ROOF = ("Viewings", "The roof was redone in 2015, the agent says.")
OTHERS = [
    ("Viewings", "Margaret went quiet in the shed."),
    ("Minutes > Any other business", "Thanks to everyone who came, " * 20),
    ("", "ok"),
]


def test_a_sentence_that_answers_scores_higher_than_its_neighbours() -> None:
    scores = load_task_encoder().score_answers("When was the roof redone?", [ROOF, *OTHERS])
    assert scores.argmax() == 0
    assert scores[0] > 0 > scores[1:].max()


def test_a_score_does_not_depend_on_what_else_is_in_the_batch() -> None:
    question = "When was the roof redone?"
    [alone] = load_task_encoder().score_answers(question, [ROOF])
    many = [*OTHERS, *OTHERS, ROOF, *OTHERS, *OTHERS, *OTHERS]  # read in several batches
    together = load_task_encoder().score_answers(question, many)
    assert len(together) == len(many)
    assert together[6] == pytest.approx(alone, abs=1e-4)


def test_what_is_asked_again_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TaskEncoder()
    scores = encoder.score_answers("When was the roof redone?", [ROOF, *OTHERS])
    monkeypatch.setattr(encoder, "_session", None)
    again = encoder.score_answers("When was the roof redone?", [ROOF, *OTHERS])
    assert again.tolist() == scores.tolist()
    with pytest.raises(ValueError, match="read-only"):
        again[0] = 1


def test_names_are_found_in_place_with_their_type() -> None:
    text = "Tomasz Wrona from Kestrel Build is coming to Bristol on Monday."
    [reading] = load_task_encoder().read_sentences([("", text)])
    names = {text[span.start : span.end]: span.type for span in reading.names}
    assert names.get("Tomasz Wrona") == "person"
    assert "Bristol" in names
    assert "Monday" not in names


def test_small_talk_states_nothing_and_a_decision_does() -> None:
    chat, decision = load_task_encoder().read_sentences(
        [
            ("Chat", "Ann: haha yes see you later x"),
            ("11 March 2025 | Kitchen table", "Went with the oak in the end."),
        ]
    )
    nothing = STATEMENT_LABELS.index("none")
    assert chat.labels[nothing] > 0.5 > decision.labels[nothing]


@pytest.mark.parametrize(
    "odd",
    ["", " ", "\ud800", "🙂" * 500, "x" * 100_000, "日本語の文章です。", " " * 3_000 + "Ann Lee"],
)
def test_odd_text_is_read_like_any_other(odd: str) -> None:
    encoder = load_task_encoder()
    scores = encoder.score_answers(odd, [(odd, odd)])
    assert np.isfinite(scores).all()
    assert len(encoder.read_sentences([(odd, odd)])) == 1


def test_nothing_is_made_of_nothing() -> None:
    encoder = load_task_encoder()
    assert len(encoder.score_answers("What?", [])) == 0
    assert encoder.read_sentences([]) == []


@pytest.mark.parametrize(
    ("piece", "case"), [("word", 0), ("Word", 1), ("UK", 2), ("iPhone", 3), ("2015", 4), ("", 0)]
)
def test_how_a_piece_is_written(piece: str, case: int) -> None:
    assert letter_case(piece) == case


def test_a_damaged_model_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(MemctlError, match="reading model") as caught:
        TaskEncoder(tmp_path).score_answers("a", [("", "b")])
    assert "reinstall" in (caught.value.hint or "")


@pytest.mark.parametrize("exact", [True, False])
def test_it_reads_the_same_on_every_processor(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without VNNI add two products in 16 bits, which cuts off what is larger."""
    if exact and not products_are_exact():
        pytest.skip("this processor reads by unsigned numbers")
    monkeypatch.setattr(task_encoder, "products_are_exact", lambda: exact)
    sentences = (
        ("Lease", "The lease starts on 1 June 2026."),
        ("Lease", "The lease was signed by Eva Brandt."),
        ("Kitchen", "The flue costs 6,200 euros."),
    )
    odds = TaskEncoder().score_answers("When does the lease start?", sentences)
    assert odds == pytest.approx([2.666, -3.137, -4.047], abs=0.03)  # 0.2 off if cut off


_LATE = """
import os, threading
from memctl.models.task_encoder import TaskEncoder

encoder = TaskEncoder()
sentences = [("Minutes", f"The hall is let on {n} May, says Ann Lee.") for n in range(40)]

def judge():
    threading.main_thread().join()
    print(len(encoder.score_answers("When is the hall let?", sentences)), flush=True)

encoder.score_answers("Who lets the hall?", sentences)
if os.fork():
    assert os.wait()[1] == 0
    threading.Thread(target=judge).start()
else:
    encoder.score_answers("Where is the hall?", sentences)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_it_reads_on_after_a_fork_and_after_the_main_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LATE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("40\n", 0), done.stderr
