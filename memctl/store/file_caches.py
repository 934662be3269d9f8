"""Results computed from the tables at HEAD, cached on disk for the next process.

They can always be computed again, so a torn or unreadable file counts as missing, and a disk that
cannot be written to is no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from msgspec import MsgspecError, msgpack

from memctl.errors import LockedError
from memctl.files import atomic_write, name_in_errors, save_file
from memctl.locking import hold_lock

if TYPE_CHECKING:
    from numpy.typing import NDArray

DERIVED_FOLDER = "derived"
MAX_DERIVED_FILES = 4
"""Of each kind; of more, the oldest go."""
DerivedKind = Literal["names", "aliases", "vectors", "results", "languages", "scopes", "statistics"]
"""The index of names, other names of documents, vectors of names, what questions were given; of
what is searched the languages, how much there is, and how common its terms are."""
_DIGEST_BYTES = hashlib.sha256().digest_size

T = TypeVar("T")


class DerivedCache:
    """What is kept of one commit.

    Args:
        folder: The knowledge base's.
        is_head: Tells whether that commit is the last one still.
    """

    def __init__(self, folder: Path, is_head: Callable[[], bool]) -> None:
        self._folder = folder / DERIVED_FOLDER
        self._is_head = is_head

    def read(self, kind: DerivedKind, name: str) -> bytes | None:
        """Return what was kept by that name; None where nothing was, or not all of it is there.

        Args:
            kind: What it is.
            name: Says all that decides its content, the state of the tables too.
        """
        try:
            kept = self._path(kind, name).read_bytes()
        except OSError:
            return None
        digest, content = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
        return content if hashlib.sha256(content).digest() == digest else None

    def write(self, kind: DerivedKind, name: str, content: bytes) -> None:
        """Keep something by a name, where the disk lets it, unless there is a later commit.

        That has removed what was kept before it; what is written after it has to be asked for.
        """
        path = self._path(kind, name)
        with suppress(OSError):  # read-only, full, or removed by a commit meanwhile
            self._folder.mkdir(mode=0o700, exist_ok=True)
            content = hashlib.sha256(content).digest() + content
            save_file(path, content, durable=False)  # its digest tells if it is torn
            if not self._is_head():
                path.unlink()
            _drop_oldest(self._folder, kind)

    def _path(self, kind: DerivedKind, name: str) -> Path:
        return self._folder / f"{kind}-{hashlib.sha256(name.encode()).hexdigest()}"


def kept_or_made(
    derived: DerivedCache | None,
    kind: DerivedKind,
    name: str,
    type_: type[T],
    make: Callable[[], T],
    holds: Callable[[T], bool] = lambda _: True,
) -> T:
    """Return what was kept by a name, or make it and keep it.

    Args:
        derived: Where it is kept; None keeps nothing.
        kind: What it is.
        name: Says all that decides its content, the state of the tables too.
        type_: Its type, which msgspec can read.
        make: Makes it.
        holds: Tells whether what was kept counts still.
    """
    if derived is None:
        return make()
    if content := derived.read(kind, name):
        with suppress(MsgspecError):  # other code wrote it
            kept = msgpack.decode(content, type=type_)
            if holds(kept):
                return kept
    made = make()
    derived.write(kind, name, msgpack.encode(made))
    return made


@cache
def code_digest(*names: str) -> str:
    """Return a digest of the code of packages and modules, which tells what other code has made."""
    digest = hashlib.sha256()
    for name in names:
        for file in _code_files(name):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _code_files(name: str) -> list[Path]:
    spec = find_spec(name)
    assert spec is not None
    if not spec.submodule_search_locations:
        return [Path(str(spec.origin))]
    folders = map(Path, spec.submodule_search_locations)
    files = (file for folder in folders for file in folder.rglob("*"))
    return sorted(file for file in files if file.suffix in (".py", ".json"))


def drop_derived_cache(folder: Path) -> None:
    """Remove all that is kept of a knowledge base, and what an interrupted write has left."""
    with suppress(OSError):
        for path in (folder / DERIVED_FOLDER).iterdir():
            path.unlink(missing_ok=True)


def _drop_oldest(folder: Path, kind: DerivedKind) -> None:
    files = folder.glob(f"{kind}-*")
    newest = sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest[MAX_DERIVED_FILES:]:
        path.unlink()


VECTOR_CACHE_FOLDER = "vectors"
KEY_BYTES = 16
_LOCK_FILE = "lock"
_STATE_FILE = "shelf.json"


def vector_key(memory_id: str, text: str) -> bytes:
    """Return what a vector is found by: the memory, and the text that the vector is of."""
    whole = f"{memory_id}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).digest()[:KEY_BYTES]


class VectorCache:
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
        self._folder = folder / VECTOR_CACHE_FOLDER / name
        self._state_path = self._folder / _STATE_FILE
        self._keys_path = self._folder / "keys"
        self._vectors_path = self._folder / "vectors"
        self._places = {key: place for place, key in enumerate(self._keys())}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def add(self, keys: Sequence[bytes], vectors: NDArray[np.floating[Any]]) -> None:
        """Add vectors, durably; keys that are there already are skipped."""
        new = {key: row for row, key in enumerate(keys) if key not in self._places}
        if not new:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        had = len(self._places)
        rows = np.ascontiguousarray(vectors[list(new.values())], dtype="<f2")
        self._extend(self._keys_path, had * KEY_BYTES, b"".join(new))
        self._extend(self._vectors_path, had * rows[0].nbytes, rows.tobytes())
        with atomic_write(self._state_path) as file:
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
        with name_in_errors(path), path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def lock_vector_caches(folder: Path) -> Iterator[None]:
    """Keep every other process from writing to a knowledge base's vector caches.

    Raises:
        LockedError: Another process does.
        DiskRefused: The lock cannot be had.
    """
    (folder / VECTOR_CACHE_FOLDER).mkdir(exist_ok=True)
    held = LockedError(
        f"another process is already making new vectors in {folder}", "wait for that to end"
    )
    with hold_lock(folder / VECTOR_CACHE_FOLDER / _LOCK_FILE, 0, lambda: held):
        yield


def drop_vector_caches(folder: Path) -> int:
    """Remove every vector cache of a knowledge base and return how many bytes they had."""
    caches = [path for path in (folder / VECTOR_CACHE_FOLDER).glob("*") if path.is_dir()]
    size = sum(item.stat().st_size for path in caches for item in path.iterdir())
    for path in caches:
        _remove(path)
    return size


def _remove(cache: Path) -> None:
    (cache / _STATE_FILE).unlink(missing_ok=True)  # first: without it nothing counts
    shutil.rmtree(cache, ignore_errors=True)
