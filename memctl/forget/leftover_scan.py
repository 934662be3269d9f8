"""Looking for text in everything that a knowledge base has on disk.

What is packed is unpacked first: tables at every version that is left, model replies, archives,
office files and streams of PDFs.  Besides, every file is searched byte by byte.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from memctl.errors import DamagedError
from memctl.files import NotRegular, open_regular
from memctl.forget.search_patterns import LIST_SEPARATOR, SearchPattern
from memctl.ids import storable
from memctl.literals import EXCHANGE
from memctl.readers.zip_directory import MAX_DIRECTORY_BYTES, directory_bytes
from memctl.schema.declarations import OF_NAMESPACES
from memctl.schema.table_names import TABLES, TableName
from memctl.store.store import LEDGER_FILE
from memctl.store.tables.engine import Datasets, translate_open_errors
from memctl.store.tables.filter_expressions import Expr, col, render
from memctl.store.tables.storage import TableStorage, table_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.session_repositories import Turn
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot


_CHUNK = 1 << 20
_STEMS = "search_text"
"""A column of stems, which are the same for different words."""
_IDS_NAMED = 5


class Leftover(Struct, frozen=True):
    """A place where some of a text still is."""

    place: str
    """A file below the knowledge base's folder, a table, or a table of the ledger."""
    snapshots: tuple[str, ...] = ()
    """The snapshots that a version of a table belongs to; empty for other places."""
    ids: tuple[str, ...] = ()
    """Some of the rows of the present state that have it."""
    is_present: bool = True
    """Whether it is in the present state, not in an earlier version."""
    path: Path | None = None
    """The file, where it is one."""


def find_leftovers(
    store: Store, patterns: Sequence[SearchPattern], hidden: Collection[str] = ()
) -> Iterator[Leftover]:
    """Yield every place that has something of what is looked for.

    Args:
        store: Where to look; its folder is that of the knowledge base.
        patterns: What to look for; what is too short, in tables and the ledger alone.
        hidden: Namespaces whose rows are passed over.
    """
    if patterns:
        places = list(_in_tables(store, patterns, hidden))
        yield from places
        in_ledger = list(_in_ledger(store.ledger, _ByteSearch(patterns, store.folder)))
        yield from in_ledger
        storage = table_storage(store.folder)
        tables = [table for table in TABLES if any(trace.place == table for trace in places)]
        for trace in _in_files(store.folder, storage, patterns):
            is_of_ledger = bool(in_ledger) and trace.place.startswith(LEDGER_FILE)
            if not (is_of_ledger or _is_table_file(storage, tables, trace.path)):
                yield trace  # leftovers in the others have been reported as rows


def _is_table_file(storage: TableStorage, tables: Sequence[TableName], path: Path | None) -> bool:
    return path is not None and any(storage.holds(table, path) for table in tables)


class _ByteSearch:
    """Searches bytes.

    Args:
        wanted: What to search for.
        folder: The knowledge base's folder; its path is in many places and counts in none.
    """

    def __init__(self, patterns: Sequence[SearchPattern], folder: Path) -> None:
        self._wanted = patterns
        is_named = any(text.is_in(str(folder)) for text in patterns)
        self._own = os.fsencode(folder) if is_named else b""
        self._reach = max((text.reach for text in patterns), default=0) + len(self._own)

    def finds(self, content: bytes, *, is_of_tables: bool = False) -> bool:
        """Return whether bytes have something of it."""
        if self._own:
            content = content.replace(self._own, b"")
        if is_of_tables:
            return any(text.is_written_in(content) for text in self._wanted)
        return any(text.is_in_bytes(content) for text in self._wanted)

    def finds_in(self, pieces: Iterable[bytes], *, is_of_tables: bool = False) -> bool:
        """Search pieces that follow on one another, each with the end of the one before it."""
        rest = b""
        for piece in pieces:
            content = rest + piece
            if self.finds(content, is_of_tables=is_of_tables):
                return True
            rest = content[-self._reach :]
        return False


def texts_in_other_sources(
    snapshot: Snapshot,
    turns: Iterable[Turn],
    patterns: Sequence[SearchPattern],
    gone: Collection[str] = (),
) -> list[SearchPattern]:
    """Return what of a text that has been erased stands in sources that stay, and is theirs.

    Sources are documents, turns of conversations with the pairs made of them, and memories that
    were stated and rest on nothing else; what is drawn from several may have it from the one that
    was erased.

    Args:
        snapshot: The tables without what has been erased.
        turns: Those that stay.
        patterns: The text, in pieces.
        gone: Ids of documents and memories that are still there and will have been erased.
    """
    found: set[int] = set()
    sentences = [text.unmarked for text in patterns]

    def note(*texts: str | None) -> None:
        """Record the pieces that texts have."""
        for place, text in enumerate(sentences):
            if place not in found and any(map(text.is_in, filter(None, texts))):
                found.add(place)

    for turn in turns:
        note(turn.content)
    for row in snapshot.each_row("documents", None, ["id", "text", "summary"]):
        if row["id"] not in gone:
            note(row["text"], row["summary"])
    stated = col("document_id").is_null() & (col("level") == "memory")
    theirs = stated | (col("type") == EXCHANGE)
    for row in snapshot.each_row("memories", theirs, ["id", "text", "type", "source_ids"]):
        if row["id"] not in gone and (row["type"] == EXCHANGE or not row["source_ids"]):
            note(row["text"])
    return [text for place, text in enumerate(patterns) if place in found]


def texts_in_closed_namespaces(
    snapshot: Snapshot,
    words: Iterable[str],
    hidden: Collection[str],
    patterns: Sequence[SearchPattern],
) -> list[SearchPattern]:
    """Return what of a text others have stored in any way, in namespaces that are not open.

    Args:
        snapshot: All of the tables.
        words: What others have said or stored in the ledger.
        hidden: The namespaces.
        patterns: The text, in pieces.
    """
    left = list(patterns)

    def note(text: str) -> None:
        """Drop the pieces that a text has."""
        left[:] = [each for each in left if not each.unmarked.is_in(text)]

    for text in words:
        note(text)
    where = col("namespace").is_in(sorted(hidden))
    for table in OF_NAMESPACES if hidden else ():
        for row in snapshot.each_row(table, where, _text_columns(snapshot.schema(table))):
            for value in row.values():
                note(LIST_SEPARATOR.join(value) if isinstance(value, list) else value or "")
    return [each for each in patterns if each not in left]


# --- tables --------------------------------------------------------------------------------------


def _in_tables(
    store: Store, texts: Sequence[SearchPattern], hidden: Collection[str]
) -> Iterator[Leftover]:
    datasets = Datasets.of(store.folder)
    heads = store.ledger.heads()
    present = store.ledger.head()
    for table in present:
        for item in datasets.fresh(table).version_refs():
            version = item["version"]
            ids = _rows_with(datasets, table, version, texts, hidden)
            if not ids:
                continue
            names = sorted(name for name, head in heads.items() if head.get(table) == version)
            is_present = present[table] == version
            snapshots = tuple(name for name in names if heads[name] != present)
            yield Leftover(table, snapshots, tuple(ids[:_IDS_NAMED]), is_present)


def _rows_with(
    datasets: Datasets,
    table: TableName,
    version: int,
    texts: Sequence[SearchPattern],
    hidden: Collection[str],
) -> list[str]:
    """Return the ids of rows that have one of the texts, in any column."""
    dataset = datasets.fresh(table, version)
    columns = _text_columns(dataset.schema)
    texts = [text for text in texts if storable(text.in_tables) == text.in_tables]
    found: list[str] = []
    seen = ~col("namespace").is_in(sorted(hidden)) if table in OF_NAMESPACES and hidden else None
    condition = None if seen is None else render(seen)
    for batch in dataset.scanner(columns=columns, filter=condition).to_batches():
        found += batch["id"].filter(_has_any(batch, texts)).to_pylist()
    return found


def _text_columns(schema: pa.Schema) -> list[str]:
    import pyarrow as pa

    kinds = (pa.string(), pa.list_(pa.string()))
    return [item.name for item in schema if item.name != _STEMS and item.type in kinds]


def _has_any(batch: pa.RecordBatch, texts: Sequence[SearchPattern]) -> pa.Array:
    """Return for each row whether any of its columns has one of the texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    has = pa.array([False] * batch.num_rows)
    for column in batch.columns:
        if column.null_count == len(column):  # a pattern takes longer to make than to look for
            continue
        if pa.types.is_list(column.type):
            column = pc.binary_join(column, LIST_SEPARATOR)
        for text in texts:
            said = pc.match_substring_regex(column, text.in_tables)
            has = pc.or_(has, pc.fill_null(said, False))
    return has


def rows_of_any_version(
    store: Store, table: TableName, where: Expr, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Return rows that any version of a table has, as the latest of those has each."""
    datasets = Datasets.of(store.folder)
    found: dict[str, dict[str, Any]] = {}
    for item in reversed(datasets.fresh(table).version_refs()):
        with (
            suppress(DamagedError),
            translate_open_errors(datasets.uri(table)),
        ):  # a repair may keep such
            dataset = datasets.fresh(table, item["version"])
            rows = dataset.to_table(columns=["id", *columns], filter=render(where)).to_pylist()
            found = {row["id"]: row for row in rows} | found
    return list(found.values())


# --- the ledger ----------------------------------------------------------------------------------


def _in_ledger(ledger: Ledger, search: _ByteSearch) -> Iterator[Leftover]:
    for table, rows in ledger.contents():
        if any(search.finds(_bytes(value)) for row in rows for value in row):
            yield Leftover(f"{LEDGER_FILE}: {table}")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        try:
            return zlib.decompress(value)
        except zlib.error:  # a path
            return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


# --- files ---------------------------------------------------------------------------------------


def _in_files(
    folder: Path, storage: TableStorage, texts: Sequence[SearchPattern]
) -> Iterator[Leftover]:
    patterns = _long_enough(texts)
    if not patterns:
        return
    search = _ByteSearch(patterns, folder)
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        is_of_tables = storage.local_folder in (path, *path.parents)
        if search.finds(os.fsencode(path.name)) or _file_has(
            path, search, is_of_tables=is_of_tables
        ):
            shown = os.fsencode(place).decode("utf-8", "backslashreplace")
            yield Leftover(shown, path=path)


def file_contains(path: Path, patterns: Sequence[SearchPattern], folder: Path) -> bool:
    """Return whether a regular file has something of what is looked for, packed or not.

    Args:
        path: The file; what is none has nothing.
        patterns: What to look for; what is too short is passed over.
        folder: The knowledge base's folder; its path does not count.
    """
    texts = _long_enough(patterns)
    return bool(texts) and _file_has(path, _ByteSearch(texts, folder))


def _long_enough(texts: Iterable[SearchPattern]) -> list[SearchPattern]:
    return [text for text in texts if not text.is_too_short]


def _file_has(path: Path, search: _ByteSearch, *, is_of_tables: bool = False) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    if is_of_tables:
        return search.finds_in(_pieces(path), is_of_tables=True)
    return search.finds_in(_pieces(path)) or any(map(search.finds_in, unpack(path)))


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with open_regular(path) as file:
            while piece := file.read(_CHUNK):
                yield piece
    except (FileNotFoundError, NotRegular):  # removed meanwhile, or another thing by now
        return


_LARGEST_FILE = 64 << 20
_MAX_BYTES = 256 << 20
"""Of what is unpacked from one file."""
_MAX_MEMBERS = 10_000
_STREAM = re.compile(rb"stream\r?\n")
_OPENERS: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_READ_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError,
    OSError, ValueError,
)  # fmt: skip
"""What the libraries raise for what is damaged, encrypted or packed in a way of its own."""


def unpack(path: Path) -> Iterator[Iterator[bytes]]:
    """Yield what is packed in a file, each part of it as pieces that follow on one another."""
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_FILE:
                return
            left = _UnpackingBudget()
            for part in _packed_parts(path, file):
                yield left.of(part)
    except (FileNotFoundError, NotRegular):  # removed meanwhile, or another thing by now
        return


class _UnpackingBudget:
    """How much of a file may still be unpacked."""

    def __init__(self) -> None:
        self._bytes = _MAX_BYTES

    def of(self, part: IO[bytes] | bytes) -> Iterator[bytes]:
        """Yield the pieces of a part, as far as it can be unpacked."""
        if isinstance(part, bytes):
            self._bytes -= len(part)
            yield part
            return
        try:
            while self._bytes > 0 and (piece := part.read(_CHUNK)):
                self._bytes -= len(piece)
                yield piece
        except _READ_ERRORS:
            return


def _packed_parts(path: Path, file: IO[bytes]) -> Iterator[IO[bytes] | bytes]:
    start = file.read(6)
    file.seek(0)
    if start.startswith(b"PK") and directory_bytes(path) <= MAX_DIRECTORY_BYTES:
        yield from _members(file)
    elif start.startswith(b"%PDF"):
        yield from _streams(file.read())
    for magic, opened in _OPENERS.items():
        if start.startswith(magic):
            with opened(file) as part:
                yield part


def _members(file: IO[bytes]) -> Iterator[IO[bytes] | bytes]:
    try:
        archive = zipfile.ZipFile(file)
    except _READ_ERRORS:
        return
    with archive:
        for info in itertools.islice(archive.infolist(), _MAX_MEMBERS):
            yield info.filename.encode("utf-8", "surrogatepass")
            try:
                with archive.open(info) as member:
                    yield member
            except _READ_ERRORS:
                continue


def _streams(content: bytes) -> Iterator[bytes]:
    whole = memoryview(content)
    for found in _STREAM.finditer(content):
        try:
            yield zlib.decompressobj().decompress(whole[found.end() :][:_CHUNK], _CHUNK)
        except zlib.error:  # not packed, or in another way
            continue
