"""Loading the Lance engine, and turning its failures into ours.

The engine (``import lance``) is what runs at query time, because ``import lancedb`` takes five
times as long for a client of remote services that is never used here; the files are the same.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from memctl.errors import DamagedError, DiskRefused
from memctl.schema.table_names import TABLES, TableName
from memctl.store.tables.storage import TableFiles, TableStorage, table_storage

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

INDEX_CACHE_BYTES = 256 << 20
"""The indexes of a million memories with vectors of 256 numbers are 130 MB that questions read; in
half the room their searches take four times as long."""
METADATA_CACHE_BYTES = 64 << 20
READ_AHEAD_BYTES = 16 << 20
"""How much a bounded scan reads ahead; a larger page is read all the same."""

_SOURCE_PLACE = re.compile(r",? /\S*\.rs:\d+:\d+")
# How lance 13 words these; the classes of its errors do not tell them apart.
_FILE_FAILURES = (
    "(IO)",
    "Io error",  # of a file with deleted rows that is empty
    "Not found",
    "not found: ",
    "LocalFileSystem",
    "orrupt",
    "Invalid range",
    "does not appear to be a Lance file",
)
_KEYWORD_INDEX_MB = "512"
"""At 2.3 million memories it is made in 1.1 GB so, and not in 1.9, in about the same time."""
_OPEN_REFUSALS = {
    "Permission denied": "`memctl doctor` names the files",
    "Operation not permitted": "`memctl doctor` names the files",
    "Too many open files": "allow more open files: ulimit -n",
}
"""Why the system may refuse to open a file that is whole, and what to do about it."""
_DISK_REFUSALS = (
    "No space left", "File too large", "Read-only file", "Permission denied", "quota",
    "Input/output error",
)  # fmt: skip


def lance() -> ModuleType:
    """Import the engine, quietly.

    lance 13 logs to standard error from Rust and reads its level from ``LANCE_LOG`` while it is
    being imported, so the variable has to be set here and nowhere else.  ``off`` crashes it.
    Bringing a keyword index up to date takes no limit as an argument; by itself it would gather
    2 GB before it writes.
    """
    os.environ.setdefault("LANCE_LOG", "error")
    os.environ.setdefault("LANCE_FTS_PARTITION_SIZE", _KEYWORD_INDEX_MB)
    import lance as module

    return module


def lancedb() -> ModuleType:
    """Import LanceDB, quietly: lancedb 0.40 does as lance does, with a variable of its own."""
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb as module

    return module


def bounded_scan(batch_bytes: int) -> dict[str, Any]:
    """Return how to scan within about this many bytes a batch and little more.

    By default lance 13 reads up to 2 GB ahead of what is asked for: 300,000 vectors take 190 MB
    while they are read, and 100 MB so.
    """
    return {
        "batch_size_bytes": batch_bytes,
        "batch_readahead": 1,
        "io_buffer_size": READ_AHEAD_BYTES,
    }


class EnginePanic(RuntimeError):
    """The engine panicked: it met bytes that it never wrote."""


@contextmanager
def without_panics() -> Iterator[None]:
    """Turn a panic of the engine into an error that can be caught.

    lance 13 panics on some files that are cut short.  What Python gets then is no ``Exception``,
    and its class is in no module.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise EnginePanic(f"the engine gave up: {error}") from error


@contextmanager
def translate_open_errors(what: str) -> Iterator[None]:
    """Turn the engine's failures while opening ``what`` into :class:`DamagedError`.

    lance 13 raises ``ValueError``, ``OSError``, ``RuntimeError`` or pyarrow's own (which derive
    from the first two) for files that are missing, cut short or overwritten.
    """
    try:
        with without_panics():
            yield
    except (OSError, ValueError, RuntimeError) as error:
        raise damaged_error(what, error) from error


@contextmanager
def translate_write_errors(what: str) -> Iterator[None]:
    """Turn failures of the disk while ``what`` is written into errors that name the reason."""
    try:
        with without_panics():
            yield
    except (OSError, ValueError, RuntimeError) as error:
        if any(mark in str(error) for mark in _DISK_REFUSALS):
            raise DiskRefused(
                f"cannot write {what}: {first_line(error)}",
                "check the disk's space and permissions",
            ) from error
        if is_about_files(error):
            raise damaged_error(what, error) from error
        raise


def is_about_files(error: Exception) -> bool:
    """Return whether an error is about a table's files rather than about the request."""
    is_panic = isinstance(error, EnginePanic)
    return is_panic or any(mark in str(error) for mark in _FILE_FAILURES)


def damaged_error(what: str, error: Exception) -> DamagedError:
    """Return the error that says that ``what`` cannot be read."""
    hints = (hint for mark, hint in _OPEN_REFUSALS.items() if mark in str(error))
    hint = next(hints, "run `memctl doctor --repair`")
    return DamagedError(f"cannot read {what}: {first_line(error)}", hint)


def first_line(error: BaseException) -> str:
    """Return an engine error as one line, without the places in the engine's own source."""
    text = _SOURCE_PLACE.sub("", str(error)).partition("\n")[0].strip()
    return shorten(text) or type(error).__name__


def reason(error: BaseException) -> str:
    """Return the engine's complaint about a condition, without its preamble."""
    text = " ".join(_SOURCE_PLACE.sub("", str(error)).split())
    _, parser, found = text.rpartition("sql parser error: ")
    if parser:
        return shorten(found.removesuffix(")"))
    for preamble in ("Invalid user input: ", "Schema error: ", "Error during planning: "):
        text = text.rpartition(preamble)[2]
    return shorten(text.partition(". Valid fields are")[0])


def shorten(text: str, max_length: int = 200) -> str:
    """Return the text, or its beginning with an ellipsis when it is long."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


MAX_OPEN_DATASETS = 2 * len(TABLES)
"""Handles kept open: those of HEAD and of the HEAD before it."""


class Datasets:
    """Opens tables at a version, with bounded caches."""

    def __init__(self, storage: TableStorage) -> None:
        self.storage = storage
        self._files = {table: storage.files(table) for table in TABLES}
        self._mutex = threading.Lock()
        self._open_datasets: OrderedDict[tuple[TableName, int], LanceDataset] = OrderedDict()
        self._session: object | None = None

    @classmethod
    def of(cls, folder: Path) -> Datasets:
        """Return the tables of the knowledge base in a folder."""
        return cls(table_storage(folder))

    def files(self, table: TableName) -> TableFiles:
        """Return the files of a table."""
        return self._files[table]

    def files_of(self, dataset: LanceDataset) -> TableFiles:
        """Return the files of the table that a handle is on."""
        return next(files for files in self._files.values() if files.uri == dataset.uri)

    def uri(self, table: TableName) -> str:
        """Return where a table is, as the engine opens it and messages name it."""
        return self._files[table].uri

    def at(self, table: TableName, version: int) -> LanceDataset:
        """Return a shared handle on a version, to read from."""
        key = (table, version)
        with self._mutex:
            if key not in self._open_datasets:
                self._open_datasets[key] = self.fresh(table, version)
            self._open_datasets.move_to_end(key)
            while len(self._open_datasets) > MAX_OPEN_DATASETS:
                self._open_datasets.popitem(last=False)
            return self._open_datasets[key]

    def fresh(self, table: TableName, version: int | None = None) -> LanceDataset:
        """Return a handle that is not shared, to write with; on the latest version by default."""
        with translate_open_errors(self.uri(table)):
            dataset: LanceDataset = lance().dataset(
                self.uri(table), version=version, session=self._shared_session()
            )
        return dataset

    def empty(self, table: TableName, schema: pa.Schema) -> LanceDataset:
        """Return a table without rows, in memory, to read in place of one that isn't there yet."""
        with translate_open_errors(self.uri(table)):
            dataset: LanceDataset = lance().write_dataset(
                schema.empty_table(), f"memory://{table}", mode="overwrite"
            )
        return dataset

    def renew(self) -> None:
        """Drop every handle and cache, and with them the memory and files that they hold."""
        with self._mutex:
            self._open_datasets.clear()
            self._session = None

    def _shared_session(self) -> object:
        if self._session is None:
            self._session = lance().Session(
                index_cache_size_bytes=INDEX_CACHE_BYTES,
                metadata_cache_size_bytes=METADATA_CACHE_BYTES,
            )
        return self._session
