"""Streams of Arrow batches written as Arrow IPC, Parquet, JSON lines or CSV, in bounded memory.

Vectors are widened to float32, which every reader of these formats takes (float16 loses nothing
by it).  CSV has no vectors: a list of 256 numbers in a cell is of no use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from memctl.errors import UsageError
from memctl.literals import ExportFormat
from memctl.schema.declarations import JSON_COLUMNS

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetWriter

_ENDINGS: dict[str, ExportFormat] = {
    ".arrow": "arrow", ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".parquet": "parquet", ".pq": "parquet",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv",
}  # fmt: skip
_STREAM_ENDING = ".arrows"

Writer = Callable[[pa.RecordBatch], object]


def format_of(path: Path) -> ExportFormat | None:
    """Return the format that a file's name asks for; None when it has no ending.

    Raises:
        UsageError: The ending is of another format, such as ``.xlsx``.
    """
    if not path.suffix:
        return None
    try:
        return _ENDINGS[path.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"{path.name!r} has the ending of no format that tables are written in",
            "end it in .parquet, .arrow, .jsonl or .csv, or name the format with -f",
        ) from None


def is_streamed(path: Path) -> bool:
    """Return whether Arrow in a file of this name is the stream format rather than the file one."""
    return path.suffix.lower() == _STREAM_ENDING


def widen_vectors(schema: pa.Schema) -> pa.Schema:
    """Return the schema with float32 vectors in the place of float16 ones."""
    return pa.schema([field.with_type(_widen_type(field.type)) for field in schema])


def _widen_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(type_) and pa.types.is_float16(type_.value_type):
        return pa.list_(pa.float32(), type_.list_size)
    return type_


@contextmanager
def writer(
    sink: BinaryIO, schema: pa.Schema, format_: ExportFormat, *, streamed: bool = True
) -> Iterator[Writer]:
    """Give a function that writes a batch; what a format needs at the end is written on leaving.

    Args:
        sink: Written to and never closed; it need not be seekable.
        schema: Of the batches.
        format_: What to write.
        streamed: For Arrow, whether to write the stream format rather than the file format.
    """
    if format_ == "jsonl":
        yield lambda batch: sink.write(_json_lines(batch))
    elif format_ == "csv":
        yield from _csv(sink, schema)
    else:
        out = pa.PythonFile(_UnclosedSink(sink), mode="w")
        with _parquet(out, schema) if format_ == "parquet" else _ipc(out, schema, streamed) as file:
            yield file.write_batch


class _UnclosedSink:
    """A sink that outlives the writer on top of it and that need not know its position."""

    closed = False

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._position = 0

    def write(self, data: bytes) -> int:
        """Pass the bytes on."""
        self._sink.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how many bytes have gone through."""
        return self._position

    def flush(self) -> None:
        """Have the sink pass on what it holds."""
        self._sink.flush()

    def close(self) -> None:
        """Have the sink pass on what it holds, and leave it open."""
        self._sink.flush()


def _ipc(out: Any, schema: pa.Schema, streamed: bool) -> Any:
    return pa.ipc.new_stream(out, schema) if streamed else pa.ipc.new_file(out, schema)


def _parquet(out: Any, schema: pa.Schema) -> ParquetWriter:
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(out, schema, compression="zstd")


# --- JSON lines ----------------------------------------------------------------------------------


def _json_lines(batch: pa.RecordBatch) -> bytes:
    names = batch.schema.names
    columns = [_json_values(batch.schema.field(n), batch.column(n)) for n in names]
    lines = (
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
        for row in zip(*columns, strict=True)
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _json_values(field: pa.Field, column: pa.Array) -> list[Any]:
    if field.name in JSON_COLUMNS:
        return [json.loads(text) if text else {} for text in column.to_pylist()]
    if pa.types.is_timestamp(field.type):
        column = _iso(column)
    values: list[Any] = column.to_pylist()
    return values


def _iso(column: pa.Array) -> pa.Array:
    return pc.strftime(column, format="%Y-%m-%dT%H:%M:%SZ")


# --- CSV -----------------------------------------------------------------------------------------


def _csv(sink: BinaryIO, schema: pa.Schema) -> Iterator[Writer]:
    from pyarrow import csv

    kept = [field for field in schema if not pa.types.is_fixed_size_list(field.type)]
    flat = pa.schema([pa.field(field.name, _flat_type(field.type)) for field in kept])

    def write(batch: pa.RecordBatch) -> None:
        """Write a batch, lists and structures as JSON."""
        columns = [_flatten(batch.column(field.name)) for field in kept]
        file.write_batch(pa.record_batch(columns, schema=flat))

    with csv.CSVWriter(pa.PythonFile(_UnclosedSink(sink), mode="w"), flat) as file:
        yield write


def _flat_type(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_list(type_) or pa.types.is_timestamp(type_) else type_


def _flatten(column: pa.Array) -> pa.Array:
    """Lists as JSON, instants as ISO 8601; everything else as it is."""
    if pa.types.is_timestamp(column.type):
        return _iso(column)
    if pa.types.is_list(column.type):
        texts = (json.dumps(value, ensure_ascii=False) for value in column.to_pylist())
        return pa.array(texts, pa.string())
    return column
