"""Tables leave for other programs, and a whole knowledge base leaves and comes back as it was.

The export of everything is an uncompressed tar: ``manifest.json`` first, then what of the ledger
goes along (``ledger/names.jsonl``, see :data:`LEDGER_PARTS`), then every table in parts, each an
Arrow IPC stream of its own (``memories/000000.arrow``), vectors as stored.  A part is small enough
to be built in memory, since a tar names the size of a member before its content; so it can go
through a pipe, and each carries its checksum.  Nothing is ever unpacked to disk: members are taken
by their exact names and read as what they are.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, convert, field
from msgspec.structs import asdict

from memctl.errors import DamagedError, MemctlError, UsageError
from memctl.files import atomic_write, make_folder, read_regular, save_file
from memctl.literals import ExportFormat
from memctl.records import Progress, ProgressListener
from memctl.schema.arrow_tables import VECTOR, schemas, vector_rows, with_all_columns
from memctl.schema.declarations import DECLARATIONS, Table
from memctl.schema.migrations import FIRST_VERSION, SCHEMA_VERSION, require_known
from memctl.schema.table_names import TABLES, TableName
from memctl.store.ledger.content_tables import export_content, import_content
from memctl.store.ledger.decision_repositories import DeletedRow, NameDecision
from memctl.store.ledger.log_repositories import QueryEntry
from memctl.store.ledger.repository import to_text
from memctl.store.transfer.export_formats import format_of, is_streamed, widen_vectors, writer

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.store import Store
    from memctl.store.tables.filter_expressions import Expr
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Statement, Transaction

__all__ = [
    "ExportFormat",
    "Manifest",
    "export_all",
    "export_batches",
    "export_rows",
    "export_table",
    "format_of",
    "import_all",
]

R = TypeVar("R", bound=Struct)

DELETIONS = "deletions"
LEDGER_PARTS = ("names", "queries", "comparisons", "content", DELETIONS)


class _PendingMemory(Struct):
    memory_id: str


class _ContentRow(Struct):
    table: str
    row: dict[str, Any]


def export_ledger(ledger: Ledger) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of the ledger that an export has, each as name and content."""
    names = ({**asdict(each), "at": to_text(each.at)} for each in ledger.names.all())
    yield "names", _lines(names)
    queries = ledger.queries.all()
    yield "queries", _lines({**asdict(each), "at": to_text(each.at)} for each in queries)
    yield "comparisons", _lines({"memory_id": id_} for id_ in ledger.comparisons.pending())
    yield "content", _lines(export_content(ledger))
    if deleted := _lines(map(asdict, ledger.deletions.all())):
        yield DELETIONS, deleted


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def ledger_restorer(ledger: Ledger, name: str, content: bytes, now: datetime) -> Statement:
    """Return the statement that restores a part of the ledger, after checking its content.

    Args:
        ledger: Where to.
        name: Which of the ledger's tables.
        content: As :func:`export_ledger` gives it.
        now: Since when facts wait here.

    Raises:
        DamagedError: The content is something else.
    """
    try:
        rows = [json.loads(line) for line in content.splitlines()]
        if name == "names":
            decisions = [_record(NameDecision, row) for row in rows]
            return lambda _: ledger.names.write(decisions)
        if name == "queries":
            entries = [_record(QueryEntry, row) for row in rows]
            return lambda _: ledger.queries.write(entries)
        if name == "content":
            return import_content(asdict(_record(_ContentRow, row)) for row in rows)
        if name == DELETIONS:
            deleted = [_record(DeletedRow, row) for row in rows]
            return lambda _: ledger.deletions.write(deleted)
        waiting = [_record(_PendingMemory, row).memory_id for row in rows]
        return lambda _: ledger.comparisons.add(waiting, now)
    except (ValueError, TypeError, RecursionError) as error:  # no JSON, no instant, other values
        raise DamagedError(
            f"ledger/{name} in the export cannot be read: {error}", "copy it again"
        ) from error


def _record(kind: type[R], row: Any) -> R:
    if not isinstance(row, dict) or row.keys() != set(kind.__struct_fields__):
        raise ValueError("a line has other keys")
    return convert(row, kind)


FORMAT = "memctl-export"
FORMAT_VERSION = 3
"""The newest that is read."""
_WITHOUT_DELETIONS = 2
"""What is written where nothing needs a newer one: earlier versions of memctl can read it."""
_BATCH_BYTES = 8 << 20
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 1 << 20
_LARGEST_PART = 1 << 30
_CHECKSUM = "MEMCTL.sha256"
_PART = re.compile(rf"({'|'.join(TABLES)})/\d{{6}}\.arrow")
_LEDGER_MEMBER = re.compile(rf"ledger/({'|'.join(LEDGER_PARTS)})\.jsonl")
_MEDIA_MEMBER = re.compile(r"media/([0-9a-f]{64}(?:\.[a-z0-9]{1,16})?)")
"""A picture, recording or file that came with what was said; called by its SHA-256."""
_HINT = "import takes what `memctl export all` wrote"


# --- one table -----------------------------------------------------------------------------------


def export_batches(
    snapshot: Snapshot, table: TableName, where: Expr | None = None
) -> pa.RecordBatchReader:
    """Return rows of a table as a stream of batches of bounded size, vectors as float32.

    Raises:
        DamagedError: The table cannot be read; reading the stream can raise this too.
    """
    reader = _batches(snapshot, table, where)
    schema = widen_vectors(reader.schema)
    return reader if schema == reader.schema else reader.cast(schema)


def export_table(
    snapshot: Snapshot,
    table: TableName,
    sink: Path | BinaryIO,
    format_: ExportFormat | None = None,
    where: Expr | None = None,
    *,
    progress: ProgressListener | None = None,
) -> int:
    """Write a table and return how many rows it had.

    Args:
        snapshot: What to write.
        table: Which table of it.
        sink: A path, written in one step where it is no pipe or device, or a binary file, which
            need not be seekable.
        format_: By default what the path's ending says, else ``jsonl``.  Arrow is the file format
            at a path (the stream format where it ends in ``.arrows``) and the stream format
            elsewhere.  CSV leaves vectors out and has lists as JSON.
        where: Only rows for which it holds; by default all.
        progress: Called after every batch, with rows.

    Raises:
        OSError: The sink cannot be written; a path is then as it was.
    """
    reader = export_batches(snapshot, table, where)
    return export_rows(reader, snapshot.count(table, where), sink, format_, progress=progress)


def export_rows(
    reader: pa.RecordBatchReader,
    total: int,
    sink: Path | BinaryIO,
    format_: ExportFormat | None = None,
    *,
    progress: ProgressListener | None = None,
) -> int:
    """Write a stream of rows as ``export_table`` does; return how many it had.

    Args:
        reader: The rows.
        total: How many are expected.
        sink: As there.
        format_: As there.
        progress: As there.
    """
    chosen = format_ or (format_of(sink) if isinstance(sink, Path) else None) or "jsonl"
    streamed = not isinstance(sink, Path) or is_streamed(sink) or _is_kept(sink)
    counter = _Counter(total, progress)
    with _open_sink(sink) as file, writer(file, reader.schema, chosen, streamed=streamed) as write:
        for batch in reader:
            write(batch)
            counter.add(batch.num_rows)
    return counter.done


def _batches(
    snapshot: Snapshot, table: TableName, where: Expr | None = None
) -> pa.RecordBatchReader:
    """Rows as stored, in batches by size."""
    return snapshot.batches(table, where, batch_bytes=_BATCH_BYTES)


def _is_kept(path: Path) -> bool:
    """Return whether a path is a pipe or a device, which is written to and never replaced."""
    return path.exists() and not path.is_file()


@contextmanager
def _open_sink(sink: Path | BinaryIO) -> Iterator[BinaryIO]:
    if isinstance(sink, Path):
        with sink.open("wb") if _is_kept(sink) else atomic_write(sink) as file:
            yield file
    else:
        yield sink
        sink.flush()


class _Counter:
    """Counts rows and reports progress."""

    def __init__(self, total: int, listener: ProgressListener | None) -> None:
        self.done = 0
        self._total = total
        self._listener = listener

    def add(self, rows: int) -> None:
        """Count rows that are done."""
        self.done += rows
        if self._listener is not None:
            self._listener(Progress(self.done, self._total, "rows"))


# --- everything, out -----------------------------------------------------------------------------


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest of an export of everything."""

    embedder: str
    """Id of the model that made the vectors."""
    dimension: int
    rows: Mapping[str, int]
    exported_at: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The knowledge base's settings, for a new one that imports the export."""
    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    tables_schema: int = FIRST_VERSION
    """The schema version of the tables."""


def export_all(
    snapshot: Snapshot,
    sink: Path | BinaryIO,
    *,
    embedder: str,
    now: datetime,
    ledger: Ledger | None = None,
    settings: Mapping[str, Any] | None = None,
    media: Path | None = None,
    progress: ProgressListener | None = None,
) -> int:
    """Write every table to one file or stream, in bounded memory; return the number of rows.

    Args:
        snapshot: What to write.
        sink: A path, written in one step, or a binary file, which need not be seekable.
        embedder: Id of the model that the vectors are from.
        now: Goes into the manifest.
        ledger: What goes along is of it.
        settings: Kept in the manifest; must be JSON.
        media: The folder of pictures, recordings and files that go along.
        progress: Called after every part, with rows.
    """
    rows: dict[str, int] = {table: snapshot.count(table) for table in TABLES}
    dimension = snapshot.schema("memories").field("vector").type.list_size
    parts = dict(export_ledger(ledger)) if ledger else {}
    manifest = Manifest(
        embedder,
        dimension,
        rows,
        now.isoformat(),
        settings or {},
        format_version=FORMAT_VERSION if DELETIONS in parts else _WITHOUT_DELETIONS,
        tables_schema=SCHEMA_VERSION,
    )
    counter = _Counter(sum(rows.values()), progress)
    with _open_sink(sink) as file, tarfile.open(fileobj=file, mode="w|") as archive:
        _add(archive, _MANIFEST, json.dumps(asdict(manifest), indent=2).encode(), now)
        for name, content in parts.items():
            _add(archive, f"ledger/{name}.jsonl", content, now)
        for table in TABLES:
            for number, batch in enumerate(_batches(snapshot, table)):
                _add(archive, f"{table}/{number:06}.arrow", _as_ipc(batch), now)
                counter.add(batch.num_rows)
        for path in sorted(media.iterdir()) if media is not None and media.is_dir() else ():
            name = f"media/{path.name}"
            if _MEDIA_MEMBER.fullmatch(name) and path.stat().st_size <= _LARGEST_PART:
                _add(archive, name, read_regular(path), now)
    return counter.done


def _add(archive: tarfile.TarFile, name: str, content: bytes, now: datetime) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mtime = int(now.timestamp())
    member.mode = 0o600
    member.pax_headers = {_CHECKSUM: hashlib.sha256(content).hexdigest()}
    archive.addfile(member, io.BytesIO(content))


def _as_ipc(batch: pa.RecordBatch) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, batch.schema) as file:
        file.write_batch(batch)
    return buffer.getvalue()


# --- everything, back in -------------------------------------------------------------------------


def import_all(
    store: Store,
    source: Path | BinaryIO,
    *,
    embedder: str,
    now: datetime,
    on_manifest: Callable[[Manifest], None] | None = None,
    media: Path | None = None,
    progress: ProgressListener | None = None,
) -> int:
    """Bring an export back into an empty store, all of it or nothing; return how many rows.

    Args:
        store: Where to; it must hold nothing yet.
        source: A path or a binary file, which need not be seekable.
        embedder: Id of the model that the store is for.
        now: When that is.
        on_manifest: Called with what the export says of itself, before anything is written.
        media: The folder for pictures, recordings and files that came along.
        progress: Called after every part, with rows.

    Raises:
        UsageError: The source is no export, is of another model, or the store is not empty.
        DamagedError: The export ends too early or cannot be read.
        LockedError: Another process kept writing.
    """
    opened = source.open("rb") if isinstance(source, Path) else nullcontext(source)
    with opened as file, _archive(file) as archive:
        manifest = _manifest(archive)
        _check_model(manifest, embedder, store.dimension)
        with store.write() as transaction:
            _check_empty(transaction.snapshot())
            if on_manifest is not None:
                on_manifest(manifest)
            counter = _Counter(sum(manifest.rows.values()), progress)
            restorer = partial(ledger_restorer, store.ledger, now=now)
            members = _without_media(_members(archive), media)
            found = _import_parts(members, transaction, manifest, restorer, counter)
            _check_complete(manifest, found)
    return counter.done


@contextmanager
def _archive(source: BinaryIO) -> Iterator[tarfile.TarFile]:
    """Open an export, translating errors of tar and Arrow."""
    is_opened = False
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            is_opened = True
            yield archive
    except tarfile.ReadError as error:
        if is_opened and ("unexpected end" in str(error) or "truncated" in str(error)):
            raise DamagedError(f"the export ends too early: {error}", "copy it again") from error
        raise UsageError(f"that is not an export: {error}", _HINT) from error
    except (tarfile.TarError, EOFError) as error:
        raise DamagedError(f"the export cannot be read: {error}", "copy it again") from error


def _manifest(archive: tarfile.TarFile) -> Manifest:
    member = archive.next()
    content = archive.extractfile(member) if member and member.name == _MANIFEST else None
    if member is None or content is None or member.size > _LARGEST_MANIFEST:
        raise UsageError(f"that is not an export: it does not begin with {_MANIFEST}", _HINT)
    try:
        said = json.loads(content.read())
        is_newer = said["format"] != FORMAT or said["format_version"] > FORMAT_VERSION
        manifest = convert(said, Manifest)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"that is not an export: bad {_MANIFEST}: {error}", _HINT) from error
    if is_newer:
        raise UsageError("the export is of a newer version of memctl", "update memctl")
    require_known(manifest.tables_schema, "the export")
    return manifest


def _check_model(manifest: Manifest, embedder: str, dimension: int) -> None:
    if manifest.embedder != embedder or manifest.dimension != dimension:
        raise UsageError(
            f"the export is of {manifest.embedder} with {manifest.dimension} dimensions, "
            f"the knowledge base of {embedder} with {dimension}",
            f"import into a knowledge base made for {manifest.embedder}",
        )


def _check_empty(snapshot: Snapshot) -> None:
    counts = {table: snapshot.count(table) for table in TABLES}
    filled = ", ".join(f"{count} {table}" for table, count in counts.items() if count)
    if filled:
        raise UsageError(
            f"the knowledge base is not empty: {filled}", "import into a new one: -k NAME"
        )


def _without_media(
    members: Iterable[tuple[str, bytes]], folder: Path | None
) -> Iterator[tuple[str, bytes]]:
    """Write the media of an export into a folder, and yield the other members.

    Raises:
        DamagedError: A file is not what its name says.
    """
    for name, content in members:
        found = _MEDIA_MEMBER.fullmatch(name)
        if found is None:
            yield name, content
            continue
        if not found[1].startswith(hashlib.sha256(content).hexdigest()):
            raise DamagedError(f"the export is damaged in {name}", "copy it again")
        if folder is not None:
            make_folder(folder)
            save_file(folder / found[1], content)


def _import_parts(
    members: Iterable[tuple[str, bytes]],
    transaction: Transaction,
    manifest: Manifest,
    restorer: Callable[[str, bytes], Statement],
    counter: _Counter,
) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys(TABLES, 0)
    foreign = {table: ImportedRows(table) for table in TABLES}
    expected = schemas(manifest.dimension, manifest.tables_schema)
    names = {table: schema.names for table, schema in schemas(manifest.dimension).items()}
    for name, content in members:
        if member := _LEDGER_MEMBER.fullmatch(name):
            transaction.ledger(restorer(member[1], content))
            continue
        table: TableName = name.partition("/")[0]  # type: ignore[assignment]
        if table not in expected:
            raise UsageError(f"that is not an export: it holds {name!r}", _HINT)
        for batch in _read_part(content, name, expected[table]):
            rows = with_all_columns(pa.Table.from_batches([batch]), table, names[table])
            for whole in rows.combine_chunks().to_batches():
                foreign[table].check(whole)
            transaction.append(table, rows)
            found[table] += rows.num_rows
            counter.add(rows.num_rows)
    for rows in foreign.values():
        rows.check_whole()
    return found


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Yield the members after the manifest; every name must be one that exports have."""
    for member in iter(archive.next, None):
        patterns = (_PART, _LEDGER_MEMBER, _MEDIA_MEMBER)
        is_known = any(pattern.fullmatch(member.name) for pattern in patterns)
        file = archive.extractfile(member) if is_known and member.isreg() else None
        if file is None:
            raise UsageError(f"that is not an export: it holds {member.name!r}", _HINT)
        yield member.name, _content(member, file)


def _content(member: tarfile.TarInfo, file: IO[bytes]) -> bytes:
    """Read a part and compare it with the checksum in its header."""
    if member.size > _LARGEST_PART:
        raise UsageError(f"that is not an export: {member.name} is too large", _HINT)
    content = file.read()
    if member.pax_headers.get(_CHECKSUM) != hashlib.sha256(content).hexdigest():
        raise DamagedError(f"the export is damaged in {member.name}", "copy it again")
    return content


def _read_part(content: bytes, name: str, expected: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the batches of a part and validate them before they are used."""
    try:
        with pa.ipc.open_stream(content) as reader:
            schema, batches, size = reader.schema, [], 0
            for batch in reader:
                batch.validate(full=True)
                batches.append(batch)
                size += batch.nbytes  # more than was read, where it was packed
                if size > _LARGEST_PART:
                    raise UsageError(f"that is not an export: {name} holds too much", _HINT)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DamagedError(
            f"{name} in the export cannot be read: {error}", "copy it again"
        ) from error
    if schema != expected:
        raise MemctlError(
            f"{name} has other columns than the tables here: {_difference(schema, expected)}",
            "use the version of memctl that made the export",
        )
    yield from batches


def _difference(schema: pa.Schema, expected: pa.Schema) -> str:
    theirs = {item.name: str(item.type) for item in schema}
    ours = {item.name: str(item.type) for item in expected}
    differing = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return ", ".join(differing) or "their order or nullability"


def _check_complete(manifest: Manifest, counts: Mapping[str, int]) -> None:
    missing = [
        f"{counts[table]} of {manifest.rows.get(table, 0)} {table}"
        for table in TABLES
        if counts[table] != manifest.rows.get(table, 0)
    ]
    if missing:
        raise DamagedError(f"the export is incomplete: {', '.join(missing)}", "copy it again")


_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATES = (
    (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
    (datetime(9999, 12, 30, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
)
"""The first and last that can be shown in any time zone."""
_LONGEST_ID = 200
"""Characters; those that are made here have some thirty."""
# --- checking imported rows before they become part of a knowledge base -------------------------

_BAD_ROWS_HINT = "it was damaged, or made to do harm: ask its sender for another one"


class ImportedRows:
    """The rows of one table of an export, part by part."""

    def __init__(self, table: TableName) -> None:
        self._declared = DECLARATIONS[table]
        self._ids: list[pa.Array] = []
        self._is_any_found = False
        """Whether a vector has a direction; that of any text with a word has one."""

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse rows that the tables could not hold.

        Raises:
            UsageError: Something is missing, or is not of its kind.
        """
        declared = self._declared
        for column in declared.required:
            if batch[column].null_count:
                raise self._bad_rows(f"rows without {column}")
        for column in declared.json_columns:
            if not all(map(_is_object, _distinct(batch[column]))):
                raise self._bad_rows(f"rows whose {column} is no JSON object")
        for column, choices in declared.choices.items():
            if not set(_distinct(batch[column])) <= set(choices):
                raise self._bad_rows(f"rows of a {column} that there is not")
        for name in batch.schema.names:
            if what := _column_problem(declared, name, batch[name]):
                raise self._bad_rows(f"rows with {what} as {name}")
        if VECTOR in batch.schema.names:
            self._check_vectors(batch[VECTOR])
        self._ids.append(batch["id"])

    def _check_vectors(self, column: pa.FixedSizeListArray) -> None:
        if column.null_count:
            raise self._bad_rows("rows without a vector")
        rows = vector_rows(column)
        if not np.isfinite(rows).all():
            raise self._bad_rows("vectors with something else than numbers")
        self._is_any_found = self._is_any_found or bool(rows.any())

    def check_whole(self) -> None:
        """Refuse rows of the same id, and vectors of nothing but zeros.

        Raises:
            UsageError: There are some.
        """
        if self._declared.has_vector and any(map(len, self._ids)) and not self._is_any_found:
            raise self._bad_rows("vectors of nothing but zeros")
        ids = pa.chunked_array(self._ids, pa.string())
        if pc.count_distinct(ids).as_py() != len(ids):
            raise self._bad_rows("several rows of one id")

    def _bad_rows(self, what: str) -> UsageError:
        return UsageError(
            f"the export cannot be imported: {self._declared.name} has {what}", _BAD_ROWS_HINT
        )


def _column_problem(table: Table, name: str, column: pa.Array) -> str:
    """Return what is wrong with a column; "" where nothing is."""
    kind = column.type
    if pa.types.is_list(kind):
        column = column.flatten()
        if column.null_count:
            return "nothing"
    if pa.types.is_string(column.type) and _is_any(pc.match_substring(column, "\0")):
        return "a text with a zero byte"
    if name in table.id_columns and _is_any(pc.greater(pc.utf8_length(column), _LONGEST_ID)):
        return "something far too long"
    if pa.types.is_floating(kind) and _is_any(pc.invert(pc.is_finite(column))):
        return "something else than a number"
    if pa.types.is_timestamp(kind) and not _is_within(column.cast(pa.int64()), _DATES):
        return "a date that there is not"
    if name in table.bounds and not _is_within(column, table.bounds[name]):
        return "a number that it cannot be"
    return ""


def _is_within(column: pa.Array, bounds: tuple[float, float]) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is None or bool(bounds[0] <= ends["min"] and ends["max"] <= bounds[1])


def _is_any(mask: pa.BooleanArray) -> bool:
    return bool(pc.any(mask).as_py())


def _distinct(column: pa.Array) -> list[str]:
    found: list[str] = column.unique().drop_null().to_pylist()
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
