"""A transformer in a folder, as ``optimum-cli export onnx`` writes it: texts in, its output out.

Nothing is downloaded and nothing is sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from memctl.errors import ConfigError, MemctlError
from memctl.machine import processor_count
from memctl.models import ONNX
from memctl.models.vector_math import normalize_rows
from memctl.paths import display_path

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
MAX_TOKENS = 512
"""Where the folder does not say how long a text may be."""
MAX_CHARACTERS = 32_768
"""Only this much of a text's beginning counts."""
TEXTS_PER_RUN = 32
MAX_THREADS = 4
PROBE_FILE = "probe.onnx"
"""Multiplies unsigned ``[rows, PROBE_SIZE]``, less 128, by signed weights of 127."""
PROBE_SIZE = 64
_PROBE = Path(__file__).with_name("weights") / PROBE_FILE
_EXPORT_HINT = "export the model again"
REINSTALL = "install memctl anew from its checkout: python -m pip install --force-reinstall -e ."
"""What to do where a file of a built-in model is damaged."""

TextOrPair = str | tuple[str, str]
"""A text, or two that a model reads together."""


InferenceSession = Any
"""An ``onnxruntime.InferenceSession``; that package has no types."""


class TransformerModel:
    """A model with its tokenizer.

    Args:
        identifier: What it is called in messages.
        session: The model.
        tokenizer: Cuts texts to the length that the model takes.
        output: Which of its outputs is wanted; the first where it has none of that name.
        padding: The token that fills up short texts.
    """

    def __init__(
        self,
        identifier: str,
        session: InferenceSession,
        tokenizer: Tokenizer,
        output: str,
        padding: int,
    ) -> None:
        self._id = identifier
        self._session = session
        self._tokenizer = tokenizer
        self._padding = padding
        self._inputs = {item.name for item in session.get_inputs()}
        outputs = [item.name for item in session.get_outputs()]
        self._output = output if output in outputs else outputs[0]

    def run(self, texts: Sequence[TextOrPair]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the output for some texts, and which tokens are theirs (1) or padding (0).

        Raises:
            MemctlError: The model cannot be run on them.
        """
        read = [self._read(text) for text in texts]
        mask = _pad([tokens.attention_mask for tokens in read], 0)
        given = {
            "input_ids": _pad([tokens.ids for tokens in read], self._padding),
            "attention_mask": mask,
            "token_type_ids": _pad([tokens.type_ids for tokens in read], 0),
        }
        inputs = {name: value for name, value in given.items() if name in self._inputs}
        try:
            found = self._session.run([self._output], inputs)[0]
        except Exception as error:
            # onnxruntime 1.31 has a class for each way to fail, with no common base but Exception.
            raise MemctlError(f"{self._id}: {_first_line(error)}", _EXPORT_HINT) from error
        return np.asarray(found, dtype=np.float32), mask

    def _read(self, text: TextOrPair) -> Encoding:
        # One text at a time: batches start threads that do not outlive a fork (tokenizers 0.23).
        if isinstance(text, str):
            return self._tokenizer.encode(_whole(text))
        return self._tokenizer.encode(_whole(text[0]), _whole(text[1]))


def _whole(text: str) -> str:
    # A lone surrogate cannot cross into the tokenizer, which takes UTF-8.
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _pad(rows: Sequence[Sequence[int]], padding: int) -> NDArray[np.int64]:
    found = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for at, row in enumerate(rows):
        found[at, : len(row)] = row
    return found


def length_batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the places of the texts that are not empty, so many as one run takes at a time.

    Texts of about a length go together, so that little is padded.
    """
    order = sorted((n for n, text in enumerate(texts) if text.strip()), key=lambda n: len(texts[n]))
    for at in range(0, len(order), TEXTS_PER_RUN):
        yield order[at : at + TEXTS_PER_RUN]


# --- loading -------------------------------------------------------------------------------------


def model_file(what: str, folder: Path) -> Path:
    """Return the file with the model in a folder.

    Args:
        what: What needs it, for the message.
        folder: The folder.

    Raises:
        ConfigError: The folder holds no such model.
    """
    model = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if model is None or not (folder / "tokenizer.json").is_file():
        missing = "tokenizer.json" if model else " or ".join(MODEL_FILES)
        raise ConfigError(
            f"{what}: there is no {missing} in {display_path(folder)}",
            "export the model with: optimum-cli export onnx --model MODEL FOLDER",
        )
    return model


def load_transformer(what: str, folder: Path, output: str) -> TransformerModel:
    """Load the model in a folder.

    Args:
        what: What it is, for messages.
        folder: The folder.
        output: Which of its outputs is wanted.

    Raises:
        ConfigError: The folder holds no such model.
        MemctlError: A file is damaged.
    """
    session = open_session(what, model_file(what, folder))
    padding = int(read_settings(folder / "config.json").get("pad_token_id") or 0)
    return TransformerModel(what, session, _tokenizer(folder), output, padding)


def open_session(
    what: str,
    model: Path,
    *,
    hint: str = _EXPORT_HINT,
    fuse: bool = True,
    threads: int | None = None,
) -> InferenceSession:
    """Open a model on the processor, for any number of threads.

    Args:
        what: What it is, for messages.
        model: Its file.
        hint: What to do where it is damaged.
        fuse: Whether operators may be joined into larger ones.
        threads: That share the work of a run; unless given, as many as ``thread_count`` says.

    Raises:
        MemctlError: The file is damaged.
    """
    options = _session_options(threads or thread_count())
    if not fuse:
        options.graph_optimization_level = _runtime().GraphOptimizationLevel.ORT_ENABLE_BASIC
    if not products_are_exact():
        # Makes signed weights of eight bits unsigned where operators may be joined.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return _load(what, model, options, hint)


@cache
def products_are_exact() -> bool:
    """Whether this processor multiplies unsigned by signed numbers of eight bits without loss.

    Without VNNI, x86 adds two products in 16 bits, and cuts off what is larger.

    Raises:
        MemctlError: The model that tells is damaged.
    """
    values = np.full((1, PROBE_SIZE), 255, dtype=np.uint8)
    [products] = _load("built-in models", _PROBE, _session_options(1), REINSTALL).run(
        None, {"values": values}
    )
    return bool((products == PROBE_SIZE * 127 * 127).all())


def _load(what: str, model: Path, options: Any, hint: str) -> InferenceSession:
    try:
        return _runtime().InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # onnxruntime 1.31 has a class for each way to fail, with no common base but Exception.
        raise MemctlError(
            f"{what}: cannot load {display_path(model)}: {_first_line(error)}", hint
        ) from error


def _session_options(threads: int) -> Any:
    options = _runtime().SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors, which are raised anyway
    # Threads that wait take no time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _runtime() -> Any:
    # onnxruntime 1.31 writes an id of the device to the home folder when it is imported.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def thread_count() -> int:
    """Return how many threads may run models at once."""
    return min(MAX_THREADS, processor_count())


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:
        # tokenizers 0.23 raises bare Exception for a file that is not a tokenizer.
        raise MemctlError(f"{display_path(path)} is damaged: {error}", _EXPORT_HINT) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=_most_tokens(folder))
    return tokenizer


def _most_tokens(folder: Path) -> int:
    """The least of the lengths that the folder's files name."""
    named = (
        read_settings(folder / "sentence_bert_config.json").get("max_seq_length"),
        read_settings(folder / "tokenizer_config.json").get("model_max_length"),
        _positions(read_settings(folder / "config.json")),
    )
    return min((int(length) for length in named if length), default=MAX_TOKENS)


def _positions(config: Mapping[str, Any]) -> int:
    """How many tokens have a place; models like RoBERTa count from behind the padding's place."""
    positions = int(config.get("max_position_embeddings") or 0)
    if positions and "roberta" in str(config.get("model_type", "")):
        positions -= int(config.get("pad_token_id") or 0) + 1
    return positions


def read_settings(path: Path) -> Mapping[str, Any]:
    """Return the settings in a file, none where there is no file.

    Raises:
        MemctlError: It cannot be read.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise MemctlError(f"cannot read {display_path(path)}: {error}", _EXPORT_HINT) from error
    return found if isinstance(found, dict) else {}


Pooling = Literal["mean", "cls"]
_POOLINGS: Mapping[str, Pooling] = {
    "mean": "mean",
    "mean_tokens": "mean",
    "cls": "cls",
    "cls_token": "cls",
}
"""By what a folder calls them, in newer and older files."""
_POOLED = "sentence_embedding"


class OnnxEmbedder:
    """Embeds texts with a transformer on this machine.

    Args:
        identifier: Its id.
        model: The transformer.
        pooling: How one vector is made of those of the tokens.
    """

    def __init__(self, identifier: str, model: TransformerModel, pooling: Pooling) -> None:
        self.id = identifier
        self._model = model
        self._pooling = pooling
        self.dimension = int(self._run(["dimension"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of length 1 (0 for an empty text), shape ``(len(texts), dimension)``.

        A text counts up to the length that the model takes.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for places in length_batches(texts):
            vectors[places] = self._run([texts[n] for n in places])
        return vectors

    def _run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found, mask = self._model.run(texts)
        return normalize_rows(found if found.ndim == 2 else pooled(found, mask, self._pooling))


def pooled(
    states: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling
) -> NDArray[np.float32]:
    """Return one vector for each text from those of its tokens.

    Args:
        states: Of shape (texts, tokens, dimension).
        mask: 1 for a token of the text, 0 for padding.
        pooling: ``mean`` of the text's tokens, or that of the first, ``cls``.
    """
    if pooling == "cls":
        return states[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    sums: NDArray[np.float32] = (states * weights).sum(axis=1)
    means: NDArray[np.float32] = sums / np.maximum(weights.sum(axis=1), 1)
    return means


def load_onnx(identifier: str) -> OnnxEmbedder:
    """Load the model in the folder that an id names: ``onnx/FOLDER``.

    Raises:
        ConfigError: The folder holds no such model.
        MemctlError: A file is damaged.
    """
    folder = Path(identifier.removeprefix(ONNX))
    model = load_transformer(f"embedder {identifier}", folder, _POOLED)
    return OnnxEmbedder(identifier, model, _pooling(folder))


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    found = read_settings(path)
    older = [key.removeprefix("pooling_mode_") for key, is_so in found.items() if is_so is True]
    named = found.get("pooling_mode") or "+".join(key for key in older if key != "include_prompt")
    pooling = _POOLINGS.get(str(named or "mean"))
    if pooling is None:
        raise ConfigError(
            f"{display_path(path)} wants the pooling {named}",
            "use a model that pools by mean or cls",
        )
    return pooling


_SCORES = "logits"
_EXPORT = (
    "use a cross-encoder, exported with: optimum-cli export onnx --task text-classification"
    " --model MODEL FOLDER"
)


class CrossEncoder:
    """Scores how well texts answer a question, on this machine.

    Its model is loaded when it is first needed.

    Args:
        folder: Holds ``model.onnx`` and ``tokenizer.json``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._what = f"reranker {folder.name}"

    def check(self) -> None:
        """See that the folder has what a model needs, without loading it.

        Raises:
            ConfigError: It has not.
        """
        model_file(self._what, self.folder)

    def prepare(self) -> None:
        """Load the model, before a question is timed.

        Raises:
            ConfigError: The folder holds no such model.
            MemctlError: A file is damaged.
        """
        _ = self._model

    @cached_property
    def _model(self) -> TransformerModel:
        return load_transformer(self._what, self.folder, _SCORES)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return for each text, in their order, how likely it answers the question, 0 to 1.

        Question and text count together up to the length that the model takes; an empty text is 0.

        Raises:
            ConfigError: The folder holds no model, or none that scores pairs.
            MemctlError: A file is damaged.
        """
        scores = np.zeros(len(texts))
        for places in length_batches(texts):
            heads, _ = self._model.run([(question, texts[n]) for n in places])
            scores[places] = self._probabilities(heads.astype(np.float64), len(places))
        return [float(score) for score in scores]

    def _probabilities(self, heads: NDArray[np.float64], pairs: int) -> NDArray[np.float64]:
        """The sigmoid of one head; of two, the second's share in their softmax."""
        if heads.shape not in ((pairs,), (pairs, 1), (pairs, 2)):
            raise ConfigError(f"{self._what} does not give one or two numbers for a pair", _EXPORT)
        gap = heads[:, 1] - heads[:, 0] if heads.shape == (pairs, 2) else heads.reshape(pairs)
        if not np.isfinite(gap).all():
            raise MemctlError(f"{self._what} gives what is no number", _EXPORT)
        likely: NDArray[np.float64] = np.exp(-np.logaddexp(0, -gap))
        return likely
