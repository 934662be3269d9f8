"""The built-in reading model: one small transformer encoder with a head for each task.

It decides whether a sentence answers a question, whether a sentence states something worth
remembering and of which type, and which names it has.  It is MiniLM-L6 (Wang et al. 2020, Apache
2.0) fine-tuned on labelled text; ``docs/models.md`` has its card.  Inference is NumPy on eight-bit
weights, so it needs no package and no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from memctl.errors import MemctlError
from memctl.machine import processor_count

Matrix = NDArray[np.float32]
StatementLabel = Literal["none", "fact", "decision", "preference", "plan", "event", "observation"]
NameType = Literal["person", "organisation", "place", "product", "event", "work", "other"]

STATEMENT_LABELS: tuple[StatementLabel, ...] = get_args(StatementLabel)
NAME_TYPES: tuple[NameType, ...] = get_args(NameType)

FOLDER = Path(__file__).with_name("weights")
WEIGHTS_FILE = "weights.safetensors"
TOKENIZER_FILE = "tokenizer.json"
VERSION = "1"

HEADS = 12
NORM_EPSILON = 1e-12
ANSWER_LIMITS = (40, 72, 80)
"""Most tokens of the question, of what precedes a sentence, and of the sentence."""
STATEMENT_LIMITS = (48, 96)
"""Most tokens of what precedes a sentence, and of the sentence."""
_CLS, _SEP = 101, 102
_FIRST_WORD, _VOCABULARY = 1996, 28_526
"""The id of "the", which the vocabulary's words begin with, and how many words follow."""
_MIN_NAME = 0.35
"""Least probability that a token is part of a name."""
_BATCH_TOKENS = 512
"""Most tokens of a batch; its activations fit into a processor's cache."""
_HINT = "reinstall memctl-kb: python -m pip install --force-reinstall memctl-kb"


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name in a text: ``text[start:end]``."""

    start: int
    end: int
    type: NameType
    confidence: float


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """What the model makes of one sentence."""

    labels: Matrix
    """Probability of each of ``STATEMENT_LABELS``."""
    importance: float
    """0 to 1: how much it matters in its document."""
    gist_share: float
    """0 to 1: how much of its document's gist it says."""
    names: tuple[NameSpan, ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the model sees it; three arrays of equal length."""

    ids: NDArray[np.int64]
    cases: NDArray[np.int64]
    """How each token is written, see ``letter_case``; the vocabulary is in lower case."""
    spans: tuple[tuple[int, int], ...]
    """The characters of each."""


class TaskEncoder:
    """Runs the model; its files are read on first use, and any number of threads may share one.

    Args:
        folder: Has the weights and the tokenizer.

    Raises:
        MemctlError: On first use: a file is missing or damaged.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._tokens = lru_cache(maxsize=20_000)(self._tokenize)

    @cached_property
    def _weights(self) -> dict[str, Matrix]:
        return _load_weights(self._folder / WEIGHTS_FILE)

    @cached_property
    def _layers(self) -> list[dict[str, Matrix]]:
        count = sum(name.endswith(".up.weight") for name in self._weights)
        return [
            {name: self._weights[f"layers.{n}.{name}"] for name in _LAYER_PARTS}
            for n in range(count)
        ]

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return _load_tokenizer(self._folder / TOKENIZER_FILE)

    def score_answers(self, question: str, sentences: Sequence[tuple[str, str]]) -> Matrix:
        """Return for each sentence the log odds that it answers the question, shape ``[n]``.

        Args:
            question: In words.
            sentences: Each with what precedes it: its titles and the sentence before it.
        """
        packed = [self._pack((question, *each), ANSWER_LIMITS) for each in sentences]
        first = [states[0] for states in self._encode(packed, first_only=True)]
        if not first:
            return np.zeros(0, dtype=np.float32)
        return self._head("answer", np.stack(first))[:, 0]

    def read_sentences(self, sentences: Sequence[tuple[str, str]]) -> list[SentenceReading]:
        """Return what each sentence states, given with what precedes it, and its names.

        What is the same is read once: logs and forms repeat themselves.
        """
        distinct = list(dict.fromkeys(sentences))
        packed = [self._pack(each, STATEMENT_LIMITS) for each in distinct]
        readings = {
            sentence: self._reading(sentence[1], states, each.start)
            for sentence, each, states in zip(distinct, packed, self._encode(packed), strict=True)
        }
        return [readings[each] for each in sentences]

    def _reading(self, text: str, states: Matrix, start: int) -> SentenceReading:
        """Return what the states of an input say of its last text, whose tokens begin there."""
        spans = self._first_tokens(text, STATEMENT_LIMITS[1]).spans
        first = states[:1]
        importance, gist = (
            float(_sigmoid(self._head(name, first)[0, 0])) for name in ("importance", "gist")
        )
        tags = _softmax(self._head("tags", states[start : start + len(spans)]))
        labels = _softmax(self._head("label", first))[0]
        return SentenceReading(labels, importance, gist, tuple(_decode_names(text, spans, tags)))

    def frequency_rank(self, word: str) -> int:
        """Return how many words of usual English are about as frequent or more frequent.

        The vocabulary has its whole words in the order of their frequency (Devlin et al. 2019); a
        word of several pieces comes after all of them.
        """
        ids = self._tokens(word.lower()).ids
        return max(int(ids[0]) - _FIRST_WORD, 0) if len(ids) == 1 else _VOCABULARY

    # --- input -----------------------------------------------------------------------------------

    def _tokenize(self, text: str) -> Tokens:
        text = text.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(
            np.asarray(encoding.ids, dtype=np.int64),
            np.fromiter((letter_case(text[a:b]) for a, b in encoding.offsets), dtype=np.int64),
            tuple(encoding.offsets),
        )

    def _first_tokens(self, text: str, limit: int) -> Tokens:
        """Return the first tokens of a text, of which only the characters that matter are read."""
        tokens = self._tokens(text[: 12 * limit])
        return Tokens(tokens.ids[:limit], tokens.cases[:limit], tokens.spans[:limit])

    def _pack(self, parts: Sequence[str], limits: Sequence[int]) -> _Packed:
        """Join texts as the model was trained: ``[CLS] a [SEP] b [SEP]``, the last of type 1."""
        ids, cases = [np.array([_CLS])], [np.array([0])]
        length = start = 1
        for text, limit in zip(parts, limits, strict=True):
            tokens = self._first_tokens(text, limit)
            ids += [tokens.ids, np.array([_SEP])]
            cases += [tokens.cases, np.array([0])]
            start = length
            length += len(tokens.ids) + 1
        return _Packed(np.concatenate(ids), np.concatenate(cases), start)

    # --- the network -----------------------------------------------------------------------------

    def _head(self, name: str, states: Matrix) -> Matrix:
        return _linear(states, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _encode(self, packed: Sequence[_Packed], *, first_only: bool = False) -> Iterator[Matrix]:
        """Yield the states of each input's tokens, or of its first token alone.

        Each batch is one thread's, in which NumPy works without Python's lock.
        """
        run = partial(_states, weights=self._weights, layers=self._layers, first_only=first_only)
        batches = list(_batches(packed))
        if len(batches) < 2:
            return chain.from_iterable(map(run, batches))
        with ThreadPoolExecutor(min(processor_count(), len(batches))) as pool:
            return chain.from_iterable(list(pool.map(run, batches)))


@dataclass(frozen=True, slots=True)
class _Packed:
    ids: NDArray[np.int64]
    cases: NDArray[np.int64]
    start: int
    """Where the last text begins."""


def _batches(packed: Sequence[_Packed]) -> Iterator[list[_Packed]]:
    batch: list[_Packed] = []
    tokens = 0
    for each in packed:
        if batch and tokens + len(each.ids) > _BATCH_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(each)
        tokens += len(each.ids)
    if batch:
        yield batch


def letter_case(piece: str) -> int:
    """Return how a piece of a word is written.

    0 in lower case or without letters, 1 capitalised, 2 in capitals, 3 with capitals inside, 4 a
    number.
    """
    if piece.isdigit():
        return 4
    if not piece[:1].isupper():
        return 3 if any(map(str.isupper, piece)) else 0
    return 2 if len(piece) > 1 and piece.isupper() else 1


@cache
def load_task_encoder() -> TaskEncoder:
    """Return the built-in model, one for the whole process; its files are read on first use."""
    return TaskEncoder()


# --- the arithmetic ------------------------------------------------------------------------------

_LAYER_PARTS = tuple(
    f"{name}.{part}"
    for name in ("q", "k", "v", "o", "ln1", "up", "down", "ln2")
    for part in ("weight", "bias")
)


def _states(
    batch: Sequence[_Packed],
    *,
    weights: dict[str, Matrix],
    layers: Sequence[dict[str, Matrix]],
    first_only: bool,
) -> Sequence[Matrix]:
    """Run the network on inputs of any length, whose tokens follow each other unpadded."""
    ids = np.concatenate([each.ids for each in batch])
    cases = np.concatenate([each.cases for each in batch])
    lengths = [len(each.ids) for each in batch]
    ends = accumulate(lengths)
    spans = [slice(end - size, end) for size, end in zip(lengths, ends, strict=True)]
    positions = np.concatenate([np.arange(size) for size in lengths])
    is_last = positions >= np.repeat([each.start for each in batch], lengths)
    states: Matrix = weights["word.weight"][ids] * weights["word.scale"][ids]
    states += weights["pos.weight"][positions] + weights["typ.weight"][is_last.astype(int)]
    states += weights["case.weight"][cases]
    states = _normalize(states, weights["ln.weight"], weights["ln.bias"])
    for layer in layers[:-1]:
        states = _layer(states, spans, layer)
    states = _layer(states, spans, layers[-1], first_only=first_only)
    return list(states[:, None]) if first_only else [states[span] for span in spans]


def _layer(
    states: Matrix, spans: Sequence[slice], weights: dict[str, Matrix], *, first_only: bool = False
) -> Matrix:
    """One layer of BERT (Devlin et al. 2019): self-attention and a feed-forward network.

    Args:
        states: Those of all tokens, ``[tokens, width]``.
        spans: The tokens of each input, which attend to each other.
        weights: Of the layer.
        first_only: Whether only the first token of each input goes on, as in the last layer.
    """

    def linear(values: Matrix, name: str) -> Matrix:
        return _linear(values, weights[f"{name}.weight"], weights[f"{name}.bias"])

    key, value = linear(states, "k"), linear(states, "v")
    asking = spans
    if first_only:
        states = states[[span.start for span in spans]]
        asking = [slice(at, at + 1) for at in range(len(spans))]
    query = linear(states, "q")
    attended = np.empty_like(query)
    for own, span in zip(asking, spans, strict=True):
        attended[own] = _attend(query[own], key[span], value[span])
    states = states + linear(attended, "o")
    states = _normalize(states, weights["ln1.weight"], weights["ln1.bias"])
    states = states + linear(_gelu(linear(states, "up")), "down")
    return _normalize(states, weights["ln2.weight"], weights["ln2.bias"])


def _attend(query: Matrix, key: Matrix, value: Matrix) -> Matrix:
    """Scaled dot-product attention of several heads, within one input."""
    query, key, value = (
        each.reshape(len(each), HEADS, -1).transpose(1, 0, 2) for each in (query, key, value)
    )
    scores: Matrix = np.matmul(query, key.transpose(0, 2, 1))
    scores *= np.float32(query.shape[-1] ** -0.5)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    attended: Matrix = np.matmul(scores, value)
    attended /= scores.sum(axis=-1, keepdims=True)  # a softmax, of which only the result is divided
    return attended.swapaxes(0, 1).reshape(attended.shape[1], -1)


def _linear(values: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    result: Matrix = values @ weight.T
    result += bias
    return result


def _normalize(values: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    values = values - values.mean(axis=-1, keepdims=True)
    variance = np.einsum("...i,...i->...", values, values)[..., None] / values.shape[-1]
    values /= np.sqrt(variance + np.float32(NORM_EPSILON))
    values *= weight
    values += bias
    return values


def _gelu(values: Matrix) -> Matrix:
    """The tanh form of GELU (Hendrycks and Gimpel 2016)."""
    inner = values * values
    inner *= np.float32(0.7978845608 * 0.044715)
    inner += np.float32(0.7978845608)
    inner *= values
    np.tanh(inner, out=inner)
    inner += 1
    inner *= values
    inner *= np.float32(0.5)
    return inner


def _softmax(values: Matrix) -> Matrix:
    values = np.exp(values - values.max(axis=-1, keepdims=True))
    values /= values.sum(axis=-1, keepdims=True)
    return values


def _sigmoid(values: Matrix) -> Matrix:
    return np.asarray(1 / (1 + np.exp(-values)), dtype=np.float32)


def _decode_names(text: str, spans: Sequence[tuple[int, int]], tags: Matrix) -> Iterator[NameSpan]:
    """Yield the names that tags of tokens mark; tag 0 is outside, then B and I of each type.

    Pieces of one word belong together, and so do capitalised words of one type with a space
    between them.
    """
    inside = 1 - tags[:, 0]
    kinds = tags[:, 1:].reshape(len(tags), len(NAME_TYPES), 2).sum(axis=2)
    begun: tuple[int, int, int, float] | None = None
    for at, (first, last) in enumerate(spans):
        kind, confidence = int(kinds[at].argmax()), float(inside[at])
        is_name = confidence >= _MIN_NAME
        if begun is not None:
            start, end, before, highest = begun
            between = text[end:first]
            goes_on = not between and text[first : first + 1].isalnum()
            goes_on |= is_name and kind == before and (not between or between in " -'’.&")
            if goes_on:
                begun = start, last, before, max(highest, confidence)
                continue
            yield NameSpan(start, end, NAME_TYPES[before], highest)
            begun = None
        if is_name and not (
            first and text[first - 1].isalnum() and at and spans[at - 1][1] == first
        ):
            begun = first, last, kind, confidence
    if begun is not None:
        yield NameSpan(begun[0], begun[1], NAME_TYPES[begun[2]], begun[3])


# --- files ---------------------------------------------------------------------------------------


def _load_weights(path: Path) -> dict[str, Matrix]:
    """Return the weights by name, those of layers as floats.

    A matrix is stored as whole numbers with a scale for each row.  That of the vocabulary stays so,
    as few of its rows are ever used.
    """
    try:
        with safe_open(path, framework="numpy") as tensors:
            stored = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise MemctlError(f"built-in reading model: cannot read {path}: {error}", _HINT) from error
    weights: dict[str, Matrix] = {}
    for name, values in stored.items():
        scale = stored.get(f"{name.removesuffix('.weight')}.scale")
        if name == "word.weight":
            weights[name] = values
        else:
            weights[name] = values.astype(np.float32)
            if scale is not None and name.endswith(".weight"):
                weights[name] *= scale.astype(np.float32)
    return weights


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:
        raise MemctlError(f"built-in reading model: cannot read {path}: {error}", _HINT) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
