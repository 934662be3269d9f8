"""The built-in reading model: one small transformer encoder with a head for each task.

It decides whether a sentence answers a question, whether a sentence states something worth
remembering and of which type, and which names it has.  It is MiniLM-L6 (Wang et al. 2020, Apache
2.0) fine-tuned on labelled text; ``docs/models.md`` has its card.  Its weights have eight bits, and
onnxruntime does the arithmetic, on this machine alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memctl.errors import MemctlError
from memctl.models.onnx_models import (
    REINSTALL,
    InferenceSession,
    open_session,
    products_are_exact,
    thread_count,
)

Matrix = NDArray[np.float32]
StatementLabel = Literal["none", "fact", "decision", "preference", "plan", "event", "observation"]
NameType = Literal["person", "organisation", "place", "product", "event", "work", "other"]

STATEMENT_LABELS: tuple[StatementLabel, ...] = get_args(StatementLabel)
NAME_TYPES: tuple[NameType, ...] = get_args(NameType)

FOLDER = Path(__file__).with_name("weights")
MODEL_FILE = "model.onnx"
UNSIGNED_MODEL_FILE = "model_unsigned.onnx"
"""The same for processors that cut off the products of its signed weights."""
TOKENIZER_FILE = "tokenizer.json"

ANSWER_LIMITS = (40, 72, 80)
"""Most tokens of the question, of what precedes a sentence, and of the sentence."""
STATEMENT_LIMITS = (48, 96)
"""Most tokens of what precedes a sentence, and of the sentence."""
_CLS, _SEP = 101, 102
_FIRST_WORD, _VOCABULARY = 1996, 28_526
"""The id of "the", which the vocabulary's words begin with, and how many words follow."""
_MIN_NAME = 0.35
"""Least probability that a token is part of a name."""
_BATCH_TOKENS = 256
"""Most tokens of a batch, with those that fill up its shorter inputs.  Of four times as many the
values within a layer take 6 MB, which no core has a cache for: judging takes a seventh longer."""
_KEPT_SCORES = 128
"""Lists of scores, each with 30 sentences of some 500 characters."""


class NameSpan(Struct, frozen=True):
    """A name in a text: ``text[start:end]``."""

    start: int
    end: int
    type: NameType
    confidence: float


class SentenceReading(Struct, frozen=True):
    """What the model makes of one sentence."""

    labels: Matrix
    """Probability of each of ``STATEMENT_LABELS``."""
    importance: float
    """0 to 1: how much it matters in its document."""
    gist_share: float
    """0 to 1: how much of its document's gist it says."""
    names: tuple[NameSpan, ...]


class Tokens(Struct, frozen=True):
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
        self._answer_scores = lru_cache(maxsize=_KEPT_SCORES)(self._score_answers)

    @cached_property
    def _session(self) -> InferenceSession:
        # The joined operators of onnxruntime 1.32 take twice as long, and 50 ms to be made.  Each
        # batch is read by one thread: to share its small products costs a quarter more.
        path = self._folder / (MODEL_FILE if products_are_exact() else UNSIGNED_MODEL_FILE)
        return open_session("built-in reading model", path, hint=REINSTALL, fuse=False, threads=1)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return _load_tokenizer(self._folder / TOKENIZER_FILE)

    def score_answers(self, question: str, sentences: Sequence[tuple[str, str]]) -> Matrix:
        """Return for each sentence the log odds that it answers the question, shape ``[n]``.

        They are kept, and not worked out again where the same is asked of the same sentences.

        Args:
            question: In words.
            sentences: Each with what precedes it: its titles and the sentence before it.
        """
        return self._answer_scores(question, tuple(sentences))

    def _score_answers(self, question: str, sentences: tuple[tuple[str, str], ...]) -> Matrix:
        packed = [self._pack((question, *each), ANSWER_LIMITS) for each in sentences]
        odds = (found[0] for (found,) in self._run(packed, ("answer",), first_only=True))
        scores = np.fromiter(odds, dtype=np.float32, count=len(packed))
        scores.flags.writeable = False
        return scores

    def read_sentences(self, sentences: Sequence[tuple[str, str]]) -> list[SentenceReading]:
        """Return what each sentence states, given with what precedes it, and its names.

        What is the same is read once: logs and forms repeat themselves.
        """
        distinct = list(dict.fromkeys(sentences))
        packed = [self._pack(each, STATEMENT_LIMITS) for each in distinct]
        readings = {
            sentence: self._reading(sentence[1], each.start, *found)
            for sentence, each, found in zip(
                distinct, packed, self._run(packed, _READ, first_only=False), strict=True
            )
        }
        return [readings[each] for each in sentences]

    def _reading(
        self, text: str, start: int, label: Matrix, importance: Matrix, gist: Matrix, tags: Matrix
    ) -> SentenceReading:
        """Return what the outputs for an input say of its last text, whose tokens begin there."""
        spans = self._first_tokens(text, STATEMENT_LIMITS[1]).spans
        names = _decode_names(text, spans, _softmax(tags[start : start + len(spans)]))
        return SentenceReading(
            _softmax(label), float(_sigmoid(importance[0])), float(_sigmoid(gist[0])), tuple(names)
        )

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

    def _run(
        self, packed: Sequence[_Packed], outputs: Sequence[str], *, first_only: bool
    ) -> list[list[Matrix]]:
        """Return the outputs of each input, in order.

        Args:
            packed: The inputs.
            outputs: Names of those that are wanted.
            first_only: Whether an output of each token is wanted of the first alone.
        """
        run = self._session.run

        def read(places: Sequence[int]) -> list[Matrix]:
            """Return the outputs of a batch, each of all of its inputs."""
            inputs = _model_inputs([packed[n] for n in places], first_only=first_only)
            values: list[Matrix] = run(list(outputs), inputs)
            return values

        batches = list(_batches(packed))
        found: list[list[Matrix]] = [[] for _ in packed]
        for places, values in zip(batches, _in_threads(read, batches), strict=True):
            for row, place in enumerate(places):
                found[place] = [each[row] for each in values]
        return found


def _in_threads(
    read: Callable[[Sequence[int]], list[Matrix]], batches: Sequence[Sequence[int]]
) -> list[list[Matrix]]:
    """Return what is made of each batch.

    The threads end with the call, so that none is missed after a fork; none can be started when
    the main thread has ended.
    """
    threads = min(thread_count(), len(batches))
    if threads < 2 or not threading.main_thread().is_alive():
        return list(map(read, batches))
    with ThreadPoolExecutor(threads, "reading") as pool:
        return list(pool.map(read, batches))


class _Packed(Struct, frozen=True):
    ids: NDArray[np.int64]
    cases: NDArray[np.int64]
    start: int
    """Where the last text begins."""


def _batches(packed: Sequence[_Packed]) -> Iterator[list[int]]:
    """Yield the places of inputs that go together: of about a length, so little is filled up."""
    batch: list[int] = []
    for place in sorted(range(len(packed)), key=lambda n: len(packed[n].ids)):
        if batch and (len(batch) + 1) * len(packed[place].ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _model_inputs(batch: Sequence[_Packed], *, first_only: bool) -> dict[str, NDArray[np.integer]]:
    """Return what the model takes; ``picked`` are the tokens that its last layer is worked out for.

    They are of shape ``[inputs, picked, 1]``.
    """
    lengths = np.array([len(each.ids) for each in batch])
    positions = np.broadcast_to(np.arange(lengths.max()), (len(batch), lengths.max()))
    is_token = positions < lengths[:, None]
    ids, cases = np.zeros((2, *positions.shape), dtype=np.int64)
    ids[is_token] = np.concatenate([each.ids for each in batch])
    cases[is_token] = np.concatenate([each.cases for each in batch])
    is_last = positions >= np.array([each.start for each in batch])[:, None]
    picked = positions[:, : 1 if first_only else None, None]
    return {
        "ids": ids,
        "cases": cases,
        "types": is_last.astype(np.int64),
        "positions": positions,
        "mask": is_token.astype(np.int32),
        "picked": picked,
    }


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


# --- outputs -------------------------------------------------------------------------------------

_READ = ("label", "importance", "gist", "tags")


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


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:
        raise MemctlError(
            f"built-in reading model: cannot read {path}: {error}", REINSTALL
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
