"""Vectors beside the tables: those that are being made for another embedder, and former ones.

A shelf only grows, and what counts of it is what its last durable step says: whoever writes to it
may be killed at any instant and go on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memctl.errors import LockedError
from memctl.files import replacing
from memctl.locking import locked

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHELVES = "vectors"
KEY_BYTES = 16
_LOCK_FILE = "lock"
_STATE_FILE = "shelf.json"


def key_of(memory_id: str, text: str) -> bytes:
    """Return what a vector is found by: the memory, and the text that the vector is of."""
    whole = f"{memory_id}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).digest()[:KEY_BYTES]


class Shelf:
    """The vectors of one embedder, by key; one process at a time writes to it.

    Args:
        folder: The knowledge base's.
        embedder: Id of what the vectors are from.
        dimension: Their length.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        self.embedder = embedder
        self.dimension = dimension
        name = hashlib.sha256(f"{embedder}\0{dimension}".encode()).hexdigest()[:KEY_BYTES]
        self._folder = folder / SHELVES / name
        self._places = {key: place for place, key in enumerate(self._keys())}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def add(self, keys: Sequence[bytes], vectors: NDArray[np.floating[Any]]) -> None:
        """Put vectors on it, durably; a key that is there already is passed over."""
        new = {key: row for row, key in enumerate(keys) if key not in self._places}
        if not new:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        had = len(self._places)
        rows = np.ascontiguousarray(vectors[list(new.values())], dtype="<f2")
        self._extend(self._keys_path, had * KEY_BYTES, b"".join(new))
        self._extend(self._vectors_path, had * self._vector_bytes, rows.tobytes())
        with replacing(self._state_path) as file:
            file.write(json.dumps({"embedder": self.embedder, "rows": had + len(new)}).encode())
        self._places.update(zip(new, range(had, had + len(new)), strict=True))

    def vectors(self, keys: Sequence[bytes]) -> NDArray[np.float16]:
        """Return the vectors under these keys, all of which are there."""
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float16)
        shape = (len(self._places), self.dimension)
        kept = np.memmap(self._vectors_path, dtype="<f2", mode="r", shape=shape)
        found: NDArray[np.float16] = np.asarray(kept[[self._places[key] for key in keys]])
        return found

    def drop(self) -> None:
        """Remove it."""
        _remove(self._folder)
        self._places.clear()

    # --- inside ---

    @property
    def _state_path(self) -> Path:
        return self._folder / _STATE_FILE

    @property
    def _keys_path(self) -> Path:
        return self._folder / "keys"

    @property
    def _vectors_path(self) -> Path:
        return self._folder / "vectors"

    @property
    def _vector_bytes(self) -> int:
        return 2 * self.dimension

    def _keys(self) -> Iterator[bytes]:
        try:
            rows = int(json.loads(self._state_path.read_text("utf-8"))["rows"])
        except FileNotFoundError:
            return
        whole = self._keys_path.read_bytes()[: rows * KEY_BYTES]
        for at in range(0, len(whole), KEY_BYTES):
            yield whole[at : at + KEY_BYTES]

    def _extend(self, path: Path, size: int, content: bytes) -> None:
        """Write what follows the bytes that count, over what a killed process may have left."""
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def shelving(folder: Path) -> Iterator[None]:
    """Keep every other process from writing to the shelves of a knowledge base.

    Raises:
        LockedError: Somebody does.
        DiskRefused: The lock cannot be had.
    """
    (folder / SHELVES).mkdir(exist_ok=True)
    held = LockedError(
        f"somebody is making new vectors in {folder} already", "wait for that to end"
    )
    with locked(folder / SHELVES / _LOCK_FILE, 0, lambda: held):
        yield


def drop_shelves(folder: Path) -> int:
    """Remove every shelf of a knowledge base and return how many bytes they had."""
    shelves = [path for path in (folder / SHELVES).glob("*") if path.is_dir()]
    size = sum(item.stat().st_size for path in shelves for item in path.iterdir())
    for path in shelves:
        _remove(path)
    return size


def _remove(shelf: Path) -> None:
    (shelf / _STATE_FILE).unlink(missing_ok=True)  # first: without it nothing counts
    shutil.rmtree(shelf, ignore_errors=True)
