"""Looking for text in everything that a knowledge base has on disk.

What is packed is unpacked first: tables at every version that is left, model replies.  Besides,
every file is searched byte by byte.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.store.datasets import Datasets
from memctl.store.names import TABLES, TableName
from memctl.store.store import LEDGER_FILE, TABLES_FOLDER

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.store.ledger import Ledger
    from memctl.store.store import Store

_CHUNK = 1 << 20
FEWEST_BYTES = 5
"""A shorter text is not looked for byte by byte: vectors and packed tables have it by chance."""
_STEMS = "search_text"
"""A column of stems, which are the same for different words."""
_IDS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Trace:
    """A place where some of a text still is."""

    place: str
    """A file below the knowledge base's folder, a table, or a book of the ledger."""
    snapshots: tuple[str, ...] = ()
    """The snapshots that a version of a table belongs to; empty for other places."""
    ids: tuple[str, ...] = ()
    """Some of the rows of the present state that have it."""
    is_present: bool = True
    """Whether it is in the present state, not in an earlier version."""


def traces(store: Store, texts: Sequence[str], *, whole_words: bool = False) -> Iterator[Trace]:
    """Yield every place that has one of the texts, letter by letter but for its case in tables.

    Args:
        store: Where to look; its folder is that of the knowledge base.
        texts: What to look for; one that :func:`is_too_short`, in tables and the ledger alone.
        whole_words: Whether what goes on with another letter or digit is something else.
    """
    wanted = [_Wanted(text, whole_words) for text in dict.fromkeys(texts) if text]
    if wanted:
        tables = list(_in_tables(store, wanted))
        yield from tables
        yield from _in_ledger(store.ledger, wanted)
        told = tuple(f"{TABLES_FOLDER}/{trace.place}.lance/" for trace in tables)
        for trace in _in_files(store.folder, wanted):
            if not trace.place.startswith(told):  # rows of it are told of already
                yield trace


def is_too_short(text: str) -> bool:
    """Say whether a text is not looked for in files byte by byte."""
    return len(text.encode()) < FEWEST_BYTES


class _Wanted:
    """A text that is looked for, in each of the ways that it is."""

    def __init__(self, text: str, whole_words: bool) -> None:
        plain = re.escape(text)
        raw = re.escape(text.encode())
        self.size = len(text.encode())
        self.in_tables = (
            rf"(?i)(^|[^\pL\pN_]){plain}($|[^\pL\pN_])" if whole_words else f"(?i){plain}"
        )
        self.in_bytes = re.compile(
            rb"(?<![A-Za-z0-9_])" + raw + rb"(?![A-Za-z0-9_])" if whole_words else raw
        )


# --- tables --------------------------------------------------------------------------------------


def _in_tables(store: Store, texts: Sequence[_Wanted]) -> Iterator[Trace]:
    datasets = Datasets(store.folder / TABLES_FOLDER)
    heads = store.ledger.heads()
    present = store.ledger.head()
    for table in TABLES:
        for item in datasets.fresh(table).version_refs():
            version = item["version"]
            ids = _rows_with(datasets, table, version, texts)
            if not ids:
                continue
            names = sorted(name for name, head in heads.items() if head[table] == version)
            is_present = present[table] == version
            snapshots = tuple(name for name in names if heads[name] != present)
            yield Trace(table, snapshots, tuple(ids[:_IDS_NAMED]), is_present)


def _rows_with(
    datasets: Datasets, table: TableName, version: int, texts: Sequence[_Wanted]
) -> list[str]:
    """Return the ids of rows that have one of the texts, in any column."""
    dataset = datasets.fresh(table, version)
    kinds = {field.name: field.type for field in dataset.schema}
    columns = [name for name, kind in kinds.items() if name != _STEMS and _is_text(kind)]
    found: list[str] = []
    for batch in dataset.scanner(columns=columns).to_batches():
        found += batch["id"].filter(_has_any(batch, texts)).to_pylist()
    return found


def _is_text(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or type_ == pa.list_(pa.string()))


def _has_any(batch: pa.RecordBatch, texts: Sequence[_Wanted]) -> pa.Array:
    """Tell of each row whether any of its columns has one of the texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    has = pa.array([False] * batch.num_rows)
    for column in batch.columns:
        if pa.types.is_list(column.type):
            column = pc.binary_join(column, "\n")
        for text in texts:
            said = pc.match_substring_regex(column, text.in_tables)
            has = pc.or_(has, pc.fill_null(said, False))
    return has


# --- the ledger ----------------------------------------------------------------------------------


def _in_ledger(ledger: Ledger, texts: Sequence[_Wanted]) -> Iterator[Trace]:
    with ledger.reading() as connection:
        for book in _books(connection):
            rows = connection.execute(f"SELECT * FROM {book}")
            if any(_holds(_bytes(value), texts) for row in rows for value in row):
                yield Trace(f"{LEDGER_FILE}: {book}")


def _books(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows.fetchall()]


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        try:
            return zlib.decompress(value)
        except zlib.error:  # a path
            return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def _holds(content: bytes, texts: Iterable[_Wanted]) -> bool:
    return any(text.in_bytes.search(content) for text in texts)


# --- files ---------------------------------------------------------------------------------------


def _in_files(folder: Path, texts: Sequence[_Wanted]) -> Iterator[Trace]:
    wanted = [text for text in texts if text.size >= FEWEST_BYTES]
    if not wanted:
        return
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        if _holds(os.fsencode(path.name), wanted) or _file_holds(path, wanted):
            yield Trace(path.relative_to(folder).as_posix())


def _file_holds(path: Path, wanted: Sequence[_Wanted]) -> bool:
    """Search a file piece by piece, each with the end of the one before it."""
    overlap = max(text.size for text in wanted) + 1
    rest = b""
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                content = rest + piece
                if _holds(content, wanted):
                    return True
                rest = content[-overlap:]
    except FileNotFoundError:  # removed by somebody meanwhile
        return False
    return False
