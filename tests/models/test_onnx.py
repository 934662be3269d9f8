"""An embedding model in a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_onnx import node, onnx_file, word_tokenizer

from memctl.errors import ConfigError, MemctlError
from memctl.models import load_embedder
from memctl.models.onnx_models import pooled

DIMENSION = 384
WORDS = ["[PAD]", "[UNK]", "[CLS]", "the", "red", "boat", "sails", "garden", "green"]
TABLE = np.random.default_rng(7).normal(size=(len(WORDS), DIMENSION)).astype(np.float32)


def model() -> bytes:
    """A model whose state of a token is that token's own row of the table."""
    gather = node("Gather", ["table", "input_ids"], "last_hidden_state", {})
    shape = ["texts", "tokens", DIMENSION]
    inputs = ["input_ids", "attention_mask"]
    return onnx_file([gather], {"table": TABLE}, inputs, ("last_hidden_state", shape))


def exported(folder: Path, *, pooling: dict[str, Any] | None = None, longest: int = 6) -> Path:
    tokenizer = word_tokenizer(WORDS, "[CLS] $A", None)
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx/model.onnx").write_bytes(model())
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10**30}))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    return folder


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


def rows(*words: str) -> Any:
    return TABLE[[WORDS.index(word) for word in words]]


def test_a_text_is_the_mean_of_its_tokens_whatever_stands_beside_it(tmp_path: Path) -> None:
    embedder = load_embedder(f"onnx/{exported(tmp_path / 'm')}")
    found = embedder.embed(["the red boat", "", "garden", "the red boat sails"])
    assert embedder.dimension == DIMENSION
    np.testing.assert_allclose(
        found[0], unit(rows("[CLS]", "the", "red", "boat").mean(0)), atol=1e-5
    )
    np.testing.assert_allclose(found[2], unit(rows("[CLS]", "garden").mean(0)), atol=1e-5)
    assert not found[1].any()


@pytest.mark.parametrize(
    "pooling", [{"pooling_mode_cls_token": True, "include_prompt": True}, {"pooling_mode": "cls"}]
)
def test_the_folder_says_how_tokens_are_pooled(tmp_path: Path, pooling: dict[str, Any]) -> None:
    embedder = load_embedder(f"onnx/{exported(tmp_path / 'm', pooling=pooling)}")
    np.testing.assert_allclose(embedder.embed(["red boat"])[0], unit(rows("[CLS]")[0]), atol=1e-5)


def test_a_text_longer_than_the_model_takes_is_cut(tmp_path: Path) -> None:
    embedder = load_embedder(f"onnx/{exported(tmp_path / 'm', longest=3)}")
    short, long, lone = embedder.embed(["red boat", "red boat garden " * 9, "red boat \ud800"])
    np.testing.assert_array_equal(short, long)
    np.testing.assert_array_equal(short, lone)


def test_padding_is_not_pooled() -> None:
    states = np.array([[[1.0, 3.0], [3.0, 1.0], [9.0, 9.0]]], dtype=np.float32)
    mask = np.array([[1, 1, 0]])
    assert pooled(states, mask, "mean").tolist() == [[2.0, 2.0]]
    assert pooled(states, mask, "cls").tolist() == [[1.0, 3.0]]


def test_another_pooling_is_refused(tmp_path: Path) -> None:
    folder = exported(tmp_path / "m", pooling={"pooling_mode_max_tokens": True})
    with pytest.raises(ConfigError, match="wants the pooling max_tokens"):
        load_embedder(f"onnx/{folder}")


def test_a_folder_without_a_model_or_with_a_damaged_one_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no model\.onnx or onnx/model\.onnx"):
        load_embedder(f"onnx/{tmp_path}")
    folder = exported(tmp_path / "m")
    (folder / "onnx/model.onnx").write_bytes(b"no model")
    with pytest.raises(MemctlError, match=r"cannot load .*model\.onnx"):
        load_embedder(f"onnx/{folder}")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"there is no tokenizer\.json"):
        load_embedder(f"onnx/{folder}")


def test_a_knowledge_base_can_have_it(tmp_path: Path) -> None:
    """With a home folder in which nothing is left behind: the runtime tells nobody of it."""
    folder = exported(tmp_path / "m")
    home = tmp_path / "user"
    home.mkdir()
    environment = {"HOME": str(home), "MEMCTL_HOME": str(tmp_path / "home"), "PATH": ""}

    def memctl(*arguments: str) -> str:
        command = [sys.executable, "-m", "memctl", *arguments]
        environment["PYTHONPATH"] = ":".join(sys.path)
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, cwd=tmp_path
        ).stdout

    memctl("kb", "create", "sea", "--embedder", "onnx/m")
    settings = json.loads(memctl("kb", "show", "sea", "-o", "json"))
    assert (settings["embedder"], settings["dimension"]) == (f"onnx/{folder}", DIMENSION)
    memctl("ingest", "-k", "sea", "--text", "the red boat sails")
    memctl("ingest", "-k", "sea", "--text", "the green garden")
    found = json.loads(memctl("query", "-k", "sea", "--mode", "vector", "red boat", "-o", "json"))
    assert found["hits"][0]["text"] == "the red boat sails"
    assert list(home.rglob("*")) == []
