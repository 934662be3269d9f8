"""The reading model as ONNX graphs, and back to its weights.

Matrices are whole numbers of eight bits with a scale for each row.  What they are multiplied with
is rounded to eight bits with a scale for each token, so that what is made of an input does not
depend on its company in a batch.  The attention is an operator of onnxruntime's own.

Processors with VNNI or AMX multiply unsigned by signed numbers, eight times as fast as two unsigned
ones.  Others add two such products in 16 bits, which cuts off what is larger: for them there is a
second graph, which makes the same weights unsigned when it is loaded, and a small one that tells
which of the two a processor needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from memctl.models.onnx_models import PROBE_FILE, PROBE_SIZE
from memctl.models.task_encoder import MODEL_FILE, UNSIGNED_MODEL_FILE

Tensor = NDArray[np.generic]
OUTPUTS = ("answer", "label", "importance", "gist", "tags")
EMBEDDED = {"pos": "positions", "typ": "types", "case": "cases"}
"""What is added to a word's vector, by what it is of."""
INPUTS = ("ids", "cases", "types", "positions", "mask", "picked")
"""What the model takes, ``[inputs, tokens]`` each; of ``picked`` ``[inputs, picked, 1]``."""
HEADS = 12
NORM_EPSILON = 1e-12
ZERO = 128
"""What stands for 0 where numbers have no sign."""
OPSET, MICROSOFT = 20, "com.microsoft"
DATA_FILE = f"{MODEL_FILE}.data"
"""Has the larger tensors of both graphs, which are read from there as they are."""
MIN_DATA, DATA_STEP = 1024, 64
"""Least bytes of a tensor that stands there, and what its place is a multiple of."""


def write(weights: Mapping[str, NDArray[np.float32]], folder: Path) -> None:
    """Write the model of a network's weights, by their names in ``train.Network``."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, unsigned in ((MODEL_FILE, False), (UNSIGNED_MODEL_FILE, True)):
        graph = _Graph(weights, unsigned=unsigned)
        onnx.save(graph.model(), str(folder / file))
    (folder / DATA_FILE).write_bytes(graph.data)  # the same of both
    onnx.save(_probe(), str(folder / PROBE_FILE))


def read(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a model that was written, up to rounding."""
    stored = {
        each.name: numpy_helper.to_array(each)
        for each in onnx.load(str(folder / MODEL_FILE)).graph.initializer
    }
    found = {}
    for name, values in stored.items():
        if name.startswith("constant."):
            continue
        scale = stored.get(f"{name.removesuffix('.weight')}.scale")
        if scale is not None and values.dtype in (np.int8, np.uint8):
            middle = 128 if values.dtype == np.uint8 else 0
            found[name] = (values.astype(np.float32) - middle) * scale
            if name != "word.weight":
                found[name] = found[name].T
        elif not name.endswith(".scale"):
            found[name] = values.T if name.removesuffix(".weight") in OUTPUTS else values
    return found


class _Graph:
    """Collects the nodes of the model, and in ``data`` its larger tensors."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], *, unsigned: bool) -> None:
        self.data = bytearray()
        self._weights = weights
        self._unsigned = unsigned
        self._nodes: list[onnx.NodeProto] = []
        self._stored: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        """Return the whole."""
        states = self._embedding()
        layers = sum(name.endswith(".up.weight") for name in self._weights)
        for number in range(layers):
            states = self._layer(states, f"layers.{number}.", is_last=number == layers - 1)
        first = self._add("Gather", states, self._constant("first", np.int64(0)), axis=1)
        for name in OUTPUTS:
            source = states if name == "tags" else first
            weight = self._keep(f"{name}.weight", self._weights[f"{name}.weight"].T)
            scores = self._add("MatMul", source, weight)
            self._add("Add", scores, self._vector(f"{name}.bias"), output=name)
        inputs = [
            helper.make_tensor_value_info(
                name,
                TensorProto.INT32 if name == "mask" else TensorProto.INT64,
                ["inputs", "picked", 1] if name == "picked" else ["inputs", "tokens"],
            )
            for name in INPUTS
        ]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in OUTPUTS]
        graph = helper.make_graph(
            self._nodes, "reading", inputs, outputs, list(self._stored.values())
        )
        return _model(graph)

    def _embedding(self) -> str:
        rows, scale = _rounded(self._weights["word.weight"])
        words = self._add("Gather", self._keep("word.weight", rows), "ids")
        scales = self._add("Gather", self._keep("word.scale", scale), "ids")
        states = self._add("Mul", self._add("Cast", words, to=TensorProto.FLOAT), scales)
        for name, of in EMBEDDED.items():
            states = self._add(
                "Add", states, self._add("Gather", self._vector(f"{name}.weight"), of)
            )
        return self._norm(states, "ln")

    def _layer(self, states: str, layer: str, *, is_last: bool) -> str:
        """Add a layer of BERT; the last one goes on with the picked tokens alone."""
        tokens = self._quantized(states)
        key, value = (self._linear(tokens, f"{layer}{name}") for name in ("k", "v"))
        if is_last:
            states = self._add("GatherND", states, "picked", batch_dims=1)
            tokens = self._quantized(states)
        query = self._linear(tokens, f"{layer}q")
        attended = self._add(
            "MultiHeadAttention", query, key, value, "", "mask", domain=MICROSOFT, num_heads=HEADS
        )
        attended = self._linear(self._quantized(attended), f"{layer}o")
        states = self._norm(self._add("Add", states, attended), f"{layer}ln1")
        wide = self._linear(self._quantized(states), f"{layer}up")
        wide = self._add("Gelu", wide, approximate="tanh")
        narrow = self._linear(self._quantized(wide), f"{layer}down")
        return self._norm(self._add("Add", states, narrow), f"{layer}ln2")

    def _quantized(self, values: str) -> tuple[str, str]:
        """Add nodes that round values to 0 to 255 around ``ZERO``; return each token's scale."""
        last = self._constant("last", np.array([-1], dtype=np.int64))
        largest = self._add("ReduceMax", self._add("Abs", values), last, keepdims=1)
        largest = self._add("Max", largest, self._constant("least", np.float32(1e-8)))
        scale = self._add("Mul", largest, self._constant("step", np.float32(1 / 127)))
        steps = self._add("Div", values, scale)
        one, zero = self._constant("one", np.float32(1)), self._constant("zero", np.uint8(ZERO))
        return self._add("QuantizeLinear", steps, one, zero), scale

    def _linear(self, tokens: tuple[str, str], name: str) -> str:
        rows, scale = _rounded(self._weights[f"{name}.weight"])
        values, token_scale = tokens
        weight = self._keep(f"{name}.weight", rows.T)
        one, zero = self._constant("one", np.float32(1)), self._constant("zero", np.uint8(ZERO))
        scales = self._keep(f"{name}.scale", scale[:, 0])
        zeros = [zero]
        if self._unsigned:
            moved = self._add("Cast", weight, to=TensorProto.FLOAT)
            moved = self._add("Add", moved, self._constant("middle", np.float32(ZERO)))
            weight = self._add("Cast", moved, to=TensorProto.UINT8)
            zeros = [zero, zero]
        product = self._add(
            "MatMulIntegerToFloat", values, weight, one, scales, *zeros, domain=MICROSOFT
        )
        product = self._add("Mul", product, token_scale)
        return self._add("Add", product, self._vector(f"{name}.bias"))

    def _norm(self, values: str, name: str) -> str:
        weight, bias = self._vector(f"{name}.weight"), self._vector(f"{name}.bias")
        return self._add("LayerNormalization", values, weight, bias, axis=-1, epsilon=NORM_EPSILON)

    def _add(
        self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: object
    ) -> str:
        output = output or f"value.{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(operator, inputs, [output], domain=domain, **attributes)
        )
        return output

    def _vector(self, name: str) -> str:
        return self._keep(name, self._weights[name].astype(np.float32))

    def _constant(self, name: str, value: Tensor | np.generic) -> str:
        return self._keep(f"constant.{name}", value)

    def _keep(self, name: str, values: Tensor | np.generic) -> str:
        if name not in self._stored:
            values = np.array(values, order="C")
            stored = self._stored[name] = numpy_helper.from_array(values, name)
            if values.nbytes >= MIN_DATA:
                self.data += bytes(-len(self.data) % DATA_STEP)
                set_external_data(stored, DATA_FILE, len(self.data), values.nbytes)
                self.data += stored.raw_data
                stored.ClearField("raw_data")
        return name


def _probe() -> onnx.ModelProto:
    """Return a model that multiplies as the first graph does, with the largest weights there are.

    Its product of 255s is exact, unless products are cut off.
    """
    stored = [
        numpy_helper.from_array(np.full((PROBE_SIZE, PROBE_SIZE), 127, dtype=np.int8), "weight"),
        numpy_helper.from_array(np.float32(1), "one"),
        numpy_helper.from_array(np.uint8(ZERO), "zero"),
    ]
    product = helper.make_node(
        "MatMulIntegerToFloat",
        ["values", "weight", "one", "one", "zero"],
        ["product"],
        domain=MICROSOFT,
    )
    taken = helper.make_tensor_value_info("values", TensorProto.UINT8, ["rows", PROBE_SIZE])
    given = helper.make_tensor_value_info("product", TensorProto.FLOAT, None)
    return _model(helper.make_graph([product], "probe", [taken], [given], stored))


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _rounded(values: NDArray[np.float32]) -> tuple[Tensor, NDArray[np.float32]]:
    """Return a matrix as whole numbers of eight bits, with a scale for each row."""
    scale = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-8) / 127
    return np.round(values / scale).astype(np.int8), scale.astype(np.float32)
