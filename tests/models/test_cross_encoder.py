"""A cross-encoder in a folder: question and passage are read together."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_onnx import cross_encoder
from waiting import PATIENCE

from memctl.errors import ConfigError, MemctlError
from memctl.models.onnx_models import CrossEncoder

WEIGHTS = {"tide": 2.0, "boat": 0.5, "garden": -1.5}


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def scores(folder: Path, question: str, *texts: str) -> list[float]:
    return CrossEncoder(folder).score(question, texts)


def test_a_score_is_the_sigmoid_of_what_the_model_says_of_question_and_passage(
    tmp_path: Path,
) -> None:
    folder = cross_encoder(tmp_path / "m", WEIGHTS)
    found = scores(folder, "tide tide", "the tide and the boat", "", "a garden", "boat")
    assert found == pytest.approx([sigmoid(2.5), 0.0, sigmoid(-1.5), sigmoid(0.5)])


def test_a_model_that_gives_two_numbers_weighs_yes_against_no(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path / "m", WEIGHTS, heads=2)
    no, yes = math.exp(1), math.exp(2.0)
    assert scores(folder, "when", "tide") == pytest.approx([yes / (no + yes)])


def test_a_model_that_knows_no_types_of_tokens_gets_none(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path / "m", WEIGHTS, types=False)
    assert scores(folder, "boat", "tide") == pytest.approx([sigmoid(2.5)])


@pytest.mark.parametrize(
    "config",
    [
        {"max_position_embeddings": 7},
        # Of the 9 places of RoBERTa and its kin, those up to that of the padding are not for text.
        {"max_position_embeddings": 9, "model_type": "xlm-roberta", "pad_token_id": 1},
    ],
)
def test_a_pair_is_cut_to_what_the_model_takes(tmp_path: Path, config: dict[str, Any]) -> None:
    """Of 7 tokens three stand around the texts, one is the question."""
    folder = cross_encoder(tmp_path / "m", WEIGHTS, **config)
    assert scores(folder, "when", "boat " * 30) == pytest.approx([sigmoid(3 * 0.5)])


def test_texts_of_any_length_are_scored_in_their_order_whatever_stands_beside_them(
    tmp_path: Path,
) -> None:
    folder = cross_encoder(tmp_path / "m", {"boat": 0.1}, pad_token_id=4)
    counts = [(7 * n) % 41 for n in range(90)]
    found = scores(folder, "when", *("the " * (n % 5 + 1) + "boat " * n for n in counts))
    assert found == pytest.approx([sigmoid(0.1 * n) for n in counts])


def test_a_model_that_does_not_score_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not give one or two numbers") as refused:
        scores(cross_encoder(tmp_path / "m", WEIGHTS, heads=3), "when", "boat")
    assert "--task text-classification" in refused.value.hint


def test_a_reranker_that_returns_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemctlError, match="reranker m gives what is no number"):
        scores(cross_encoder(tmp_path / "m", {"boat": math.nan}), "when", "boat")


def test_a_model_that_wants_something_else_as_well_is_reported(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path / "m", WEIGHTS)
    model = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(model.replace(b"token_type_ids", b"token_kind_ids"))
    with pytest.raises(MemctlError, match=r"reranker m: .*token_kind_ids"):
        scores(folder, "when", "boat")


def test_a_folder_without_a_model_or_with_a_damaged_one_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reranker none: there is no model\.onnx or"):
        scores(tmp_path / "none", "when", "boat")
    folder = cross_encoder(tmp_path / "m", WEIGHTS)
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(MemctlError, match=r"cannot load .*model\.onnx"):
        scores(folder, "when", "boat")
    folder = cross_encoder(tmp_path / "n", WEIGHTS)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(MemctlError, match=r"tokenizer\.json is damaged"):
        scores(folder, "when", "boat")


COUNTS_THREADS = """
import sys
from pathlib import Path

from memctl.models import onnx_models
from memctl.models.onnx_models import CrossEncoder

threads = Path("/proc/self/task")
onnx_models.processor_count = lambda: 1
CrossEncoder(Path(sys.argv[1])).score("when", ["boat"])  # what the first model of all starts stays
before = set(threads.iterdir())
encoders = [CrossEncoder(Path(sys.argv[1])) for _ in range(3)]
for encoder in encoders:
    encoder.score("when", ["boat"])
print(len(set(threads.iterdir()) - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads as Linux tells them")
def test_where_one_processor_may_be_used_no_thread_is_started(tmp_path: Path) -> None:
    """In a process of its own: the tests before this one leave threads that end when they like."""
    folder = cross_encoder(tmp_path / "m", WEIGHTS)
    command = [sys.executable, "-c", COUNTS_THREADS, str(folder)]
    counted = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (counted.returncode, counted.stdout) == (0, "0\n"), counted.stderr
