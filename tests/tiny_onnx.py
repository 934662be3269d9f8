"""Transformers in a folder, so small that the bytes of their ONNX files are written here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors

FLOAT, INT64 = 1, 7


# --- protocol buffers by hand: field and wire type, then the value --------------------------------


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


# --- the parts of an ONNX file --------------------------------------------------------------------


def value_info(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = (number(1, size) if isinstance(size, int) else block(2, size) for size in shape)
    dimensions = b"".join(block(1, size) for size in sizes)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, dimensions)))


def tensor(name: str, values: NDArray[np.float32]) -> bytes:
    sizes = b"".join(number(1, size) for size in values.shape)
    return sizes + number(2, FLOAT) + block(8, name) + block(9, values.tobytes())


def node(
    kind: str, inputs: Sequence[str], output: str, attributes: Mapping[str, int | list[int]]
) -> bytes:
    given = b"".join(block(1, name) for name in inputs)
    encoded = b"".join(block(5, _attribute(name, value)) for name, value in attributes.items())
    return given + block(2, output) + block(3, output) + block(4, kind) + encoded


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, 2)
    return block(1, name) + b"".join(number(8, each) for each in value) + number(20, 7)


def onnx_file(
    nodes: Sequence[bytes],
    tables: Mapping[str, NDArray[np.float32]],
    inputs: Sequence[str],
    output: tuple[str, Sequence[str | int]],
) -> bytes:
    """A model whose inputs are numbers of tokens, of shape (texts, tokens)."""
    graph = (
        b"".join(block(1, each) for each in nodes)
        + block(2, "tiny")
        + b"".join(block(5, tensor(*table)) for table in tables.items())
        + b"".join(block(11, value_info(name, INT64, ["texts", "tokens"])) for name in inputs)
        + block(12, value_info(output[0], FLOAT, output[1]))
    )
    return number(1, 7) + block(7, graph) + block(8, number(2, 12))


def word_tokenizer(words: Sequence[str], single: str, pair: str | None) -> Tokenizer:
    """A tokenizer by white space, with what it puts around one text and around two."""
    vocabulary = {word: at for at, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [(word, at) for word, at in vocabulary.items() if word in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single, pair, special)
    return tokenizer


# --- a cross-encoder whose scores can be worked out by hand ---------------------------------------

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def cross_encoder(
    folder: Path,
    weights: Mapping[str, float],
    *,
    heads: int = 1,
    types: bool = True,
    **config: Any,
) -> Path:
    """Write one that adds up the weights of a passage's words: its logit for "it answers".

    Args:
        folder: Where.
        weights: By word; every other word has none.
        heads: Two have the logit for "it does not" before, which is 1; more are of no use.
        types: Without, it cannot tell the question from the passage, and counts both.
        config: What stands in ``config.json``.
    """
    words = [*SPECIAL, *weights]
    tables = {
        "weights": np.array([0.0] * len(SPECIAL) + list(weights.values()), dtype=np.float32),
        "parts": np.array([0, 1], dtype=np.float32),
        "no": np.ones(1, dtype=np.float32),
    }
    nodes = [
        node("Gather", ["weights", "input_ids"], "each", {}),
        node("Cast", ["attention_mask"], "attended", {"to": FLOAT}),
        node("Mul", ["each", "attended"], "own", {}),
    ]
    counted, inputs = "own", ["input_ids", "attention_mask"]
    if types:
        inputs.append("token_type_ids")
        nodes.append(node("Gather", ["parts", "token_type_ids"], "is_passage", {}))
        nodes.append(node("Mul", ["own", "is_passage"], "counted", {}))
        counted = "counted"
    nodes.append(node("ReduceSum", [counted], "yes", {"axes": [1], "keepdims": 1}))
    nodes.append(node("Sub", ["yes", "yes"], "nothing", {}))
    nodes.append(node("Add", ["nothing", "no"], "against", {}))
    columns = [*["against"] * (heads - 1), "yes"]
    nodes.append(node("Concat", columns, "logits", {"axis": 1}))
    folder.mkdir(parents=True)
    model = onnx_file(nodes, tables, inputs, ("logits", ["texts", heads]))
    (folder / "model.onnx").write_bytes(model)
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer = word_tokenizer(words, "[CLS] $A [SEP]", pair)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "config.json").write_text(json.dumps(config))
    return folder
