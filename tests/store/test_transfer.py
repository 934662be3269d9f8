"""Tables leaving in every format, and a whole knowledge base leaving and coming back."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import random
import tarfile
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memctl.errors import DamagedError, MemctlError, UsageError
from memctl.records import Entity, Relation
from memctl.schema.arrow_tables import (
    documents_table,
    entities_table,
    memories_table,
    relations_table,
)
from memctl.schema.table_names import TABLES
from memctl.store.store import Store
from memctl.store.transfer.exports import export_all, export_table, import_all

NOW = datetime(2026, 3, 1, 9, 30, 15, 123456, tzinfo=UTC)
MODEL = "test/8"


@pytest.fixture
def filled(store: Store, memory_of: Callable[..., Any], document_of: Callable[..., Any]) -> Store:
    """Rows that use every kind of value, over several commits."""
    memories = [
        memory_of(
            number,
            text=f'line {number}\n"quoted", ünïcode 漢字 🙂',
            tags=("a", 'b"c') if number % 2 else (),
            entities=("Harbour Street",),
            turn=number if number % 3 else None,
            time_start=number / 3,
            metadata={"nested": {"list": [1, None, "x"]}} if number % 2 else {},
            created_at=NOW + timedelta(microseconds=number),
            valid_to=NOW if number == 5 else None,
        )
        for number in range(50)
    ]
    vectors = np.random.default_rng(7).normal(size=(50, 8))
    vectors[3] = 0.0
    relation = Relation("r_1", "m_1", "m_2", "similar", "t", 0.25, 0.5, ("m_1", "m_2"), NOW)
    with store.write() as transaction:
        documents = [document_of(str(n), signals={"numbers": 0.1}) for n in range(3)]
        transaction.append("documents", documents_table(documents))
        transaction.append("memories", memories_table(memories[:30], vectors[:30]))
    with store.write() as transaction:
        transaction.upsert("memories", memories_table(memories[20:], vectors[20:]))
        transaction.append("relations", relations_table([relation]))
        entity = Entity("e_1", "Harbour Street", "place", ("the street",), 50, NOW, NOW)
        transaction.append("entities", entities_table([entity]))
    return store


@pytest.fixture
def archive(filled: Store, tmp_path: Path) -> Path:
    path = tmp_path / "backup.memctl"
    export_all(filled.snapshot(), path, embedder=MODEL, now=NOW, settings={"chunk_size": 1200})
    return path


@pytest.fixture
def fresh(tmp_path: Path) -> Any:
    with Store.create(tmp_path / "fresh", 8) as store:
        yield store


def rows(store: Store) -> Mapping[str, pa.Table]:
    snapshot = store.snapshot()
    return {table: snapshot.scan(table).sort_by("id").combine_chunks() for table in TABLES}


# --- one table -----------------------------------------------------------------------------------


def test_arrow_at_a_path_is_a_file_that_other_programs_read(filled: Store, tmp_path: Path) -> None:
    assert export_table(filled.snapshot(), "memories", tmp_path / "m.arrow") == 50
    with pa.memory_map(str(tmp_path / "m.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 8)
    stored = filled.snapshot().scan("memories")
    assert table.select(["id", "created_at"]).equals(stored.select(["id", "created_at"]))
    connection = duckdb.connect()
    connection.register("m", table)
    found = connection.execute("select count(*), max(vector[1]) is not null from m").fetchall()
    connection.close()
    assert found == [(50, True)]


def test_arrow_to_a_pipe_is_a_stream(filled: Store) -> None:
    readable, writable = os.pipe()

    def write() -> None:
        with os.fdopen(writable, "wb") as sink:
            export_table(filled.snapshot(), "memories", sink, "arrow")

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(readable, "rb") as source:
        table = pa.ipc.open_stream(source).read_all()
    thread.join()
    assert table.num_rows == 50


def test_parquet_keeps_types_also_through_a_pipe(filled: Store, tmp_path: Path) -> None:
    sink = io.BytesIO()
    export_table(filled.snapshot(), "memories", sink, "parquet")
    export_table(filled.snapshot(), "memories", tmp_path / "m.parquet")
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.equals(pq.read_table(io.BytesIO(sink.getvalue())))
    assert table["created_at"].type == pa.timestamp("us", tz="UTC")
    assert table["tags"].to_pylist() == filled.snapshot().scan("memories")["tags"].to_pylist()


def test_a_json_line_holds_lists_objects_and_the_vector(filled: Store) -> None:
    sink = io.BytesIO()
    assert export_table(filled.snapshot(), "memories", sink) == 50
    lines = [json.loads(line) for line in sink.getvalue().decode().splitlines()]
    one = next(line for line in lines if line["id"] == "m_1")
    assert one["metadata"] == {"nested": {"list": [1, None, "x"]}}
    assert one["tags"] == ["a", 'b"c']
    assert one["created_at"] == "2026-03-01T09:30:15.123457Z"
    assert one["valid_to"] is None
    assert len(one["vector"]) == 8
    assert "🙂" in one["text"]


def test_csv_has_lists_as_json_and_no_vectors(filled: Store, tmp_path: Path) -> None:
    export_table(filled.snapshot(), "memories", tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    one = next(line for line in lines if line["id"] == "m_1")
    assert "vector" not in one
    assert json.loads(one["tags"]) == ["a", 'b"c']
    assert one["text"] == 'line 1\n"quoted", ünïcode 漢字 🙂'
    assert one["created_at"] == "2026-03-01T09:30:15.123457Z"
    assert one["turn"] == "1"


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("format_", ["arrow", "parquet", "jsonl", "csv"])
def test_an_empty_table_leaves_too(fresh: Store, table: Any, format_: Any) -> None:
    sink = io.BytesIO()
    assert export_table(fresh.snapshot(), table, sink, format_) == 0
    assert (sink.getvalue() == b"") == (format_ == "jsonl")


def test_a_failed_export_leaves_the_old_file_as_it_was(filled: Store, tmp_path: Path) -> None:
    target = tmp_path / "m.jsonl"
    target.write_text("old")

    def give_up(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_table(filled.snapshot(), "memories", target, progress=give_up)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


# --- everything ----------------------------------------------------------------------------------


def test_what_comes_back_is_identical_in_every_table(
    filled: Store, fresh: Store, archive: Path
) -> None:
    assert import_all(fresh, archive, embedder=MODEL, now=NOW) == 55
    before, after = rows(filled), rows(fresh)
    for table in TABLES:
        assert after[table].schema == before[table].schema
        assert after[table].equals(before[table]), table
    assert after["memories"]["vector"].type.value_type == pa.float16()


def test_facts_that_wait_to_be_compared_wait_where_they_come_back(
    filled: Store, fresh: Store, tmp_path: Path
) -> None:
    filled.ledger.comparisons.add(["m_7", "m_3"], NOW)
    path = tmp_path / "all.memctl"
    export_all(filled.snapshot(), path, embedder=MODEL, now=NOW, ledger=filled.ledger)
    import_all(fresh, path, embedder=MODEL, now=NOW)
    assert fresh.ledger.comparisons.pending() == ["m_3", "m_7"]


def test_everything_goes_through_a_pipe(filled: Store, fresh: Store) -> None:
    readable, writable = os.pipe()

    def write() -> None:
        with os.fdopen(writable, "wb") as sink:
            export_all(filled.snapshot(), sink, embedder=MODEL, now=NOW)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(readable, "rb") as source:
        import_all(fresh, source, embedder=MODEL, now=NOW)
    thread.join()
    assert rows(fresh)["memories"].equals(rows(filled)["memories"])


def test_what_came_back_can_be_searched(filled: Store, fresh: Store, archive: Path) -> None:
    import_all(fresh, archive, embedder=MODEL, now=NOW)
    found = fresh.snapshot().keyword(["word7"], columns=["id"])
    assert found["id"].to_pylist() == ["m_7"]


def test_an_export_says_what_it_is(archive: Path) -> None:
    with tarfile.open(archive) as opened:
        manifest = json.loads(opened.extractfile("manifest.json").read())  # type: ignore[union-attr]
    assert (manifest["embedder"], manifest["dimension"]) == (MODEL, 8)
    assert manifest["rows"] == {"documents": 3, "memories": 50, "entities": 1, "relations": 1}
    assert manifest["settings"] == {"chunk_size": 1200}


def test_only_an_empty_knowledge_base_takes_an_import(filled: Store, archive: Path) -> None:
    before = rows(filled)
    with pytest.raises(UsageError, match="not empty: 3 documents, 50 memories"):
        import_all(filled, archive, embedder=MODEL, now=NOW)
    assert all(rows(filled)[table].equals(before[table]) for table in TABLES)


def test_vectors_of_another_model_are_refused(fresh: Store, archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="test/8 with 8 dimensions"):
        import_all(fresh, archive, embedder="other/8", now=NOW)
    with Store.create(tmp_path / "wide", 16) as wide, pytest.raises(UsageError):
        import_all(wide, archive, embedder=MODEL, now=NOW)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.97])
def test_an_export_cut_short_brings_nothing_in(fresh: Store, archive: Path, share: float) -> None:
    with tarfile.open(archive) as opened:
        last = opened.getmembers()[-1]
    end = last.offset_data + last.size
    archive.write_bytes(archive.read_bytes()[: int(end * share)])
    with pytest.raises(MemctlError) as refused:
        import_all(fresh, archive, embedder=MODEL, now=NOW)
    assert isinstance(refused.value, DamagedError | UsageError)
    assert all(table.num_rows == 0 for table in rows(fresh).values())


def test_an_export_cut_between_two_parts_brings_nothing_in(fresh: Store, archive: Path) -> None:
    with tarfile.open(archive) as opened:
        last = opened.getmembers()[-1]
    archive.write_bytes(archive.read_bytes()[: last.offset] + b"\0" * 10240)
    with pytest.raises(DamagedError, match="incomplete: 0 of 1 relations"):
        import_all(fresh, archive, embedder=MODEL, now=NOW)
    assert rows(fresh)["memories"].num_rows == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_part_with_any_byte_changed_brings_nothing_in(
    fresh: Store, archive: Path, seed: int
) -> None:
    with tarfile.open(archive) as opened:
        part = opened.getmember("memories/000000.arrow")
    content = bytearray(archive.read_bytes())
    at = part.offset_data + random.Random(seed).randrange(part.size)
    content[at] ^= 0xFF
    archive.write_bytes(bytes(content))
    with pytest.raises(DamagedError, match=r"damaged in memories/000000\.arrow"):
        import_all(fresh, archive, embedder=MODEL, now=NOW)
    assert rows(fresh)["documents"].num_rows == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_forged_part_with_a_right_checksum_brings_nothing_in(
    fresh: Store, archive: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    forged = tmp_path / "forged.memctl"
    with tarfile.open(archive) as old, tarfile.open(forged, "w") as new:
        for member in old:
            content = bytearray(old.extractfile(member).read())  # type: ignore[union-attr]
            if member.name == "memories/000000.arrow":
                for _ in range(40):
                    content[chance.randrange(len(content) // 3)] = chance.randrange(256)
                checksum = hashlib.sha256(content).hexdigest()
                member.pax_headers = {"MEMCTL.sha256": checksum}
            new.addfile(member, io.BytesIO(content))
    with contextlib.suppress(MemctlError):
        import_all(fresh, forged, embedder=MODEL, now=NOW)
        return
    assert rows(fresh)["memories"].num_rows == 0


def _with(archive: Path, name: str, kind: bytes = tarfile.REGTYPE) -> None:
    """Add a member at the end."""
    with tarfile.open(archive, "a") as opened:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/passwd", 0
        opened.addfile(member, io.BytesIO())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../../evil", tarfile.REGTYPE),
        ("/etc/evil", tarfile.REGTYPE),
        ("memories/../../evil.arrow", tarfile.REGTYPE),
        ("memories/000009.arrow", tarfile.SYMTYPE),
        ("memories/000009.arrow", tarfile.LNKTYPE),
        ("secrets/000000.arrow", tarfile.REGTYPE),
    ],
)
def test_members_of_other_names_or_kinds_are_refused(
    fresh: Store, archive: Path, name: str, kind: bytes
) -> None:
    _with(archive, name, kind)
    with pytest.raises(UsageError, match="that is not an export: it holds"):
        import_all(fresh, archive, embedder=MODEL, now=NOW)
    assert rows(fresh)["memories"].num_rows == 0


@pytest.mark.parametrize("content", [b"", b"hello", b"\0" * 2048, b"PK\3\4" * 400])
def test_a_file_that_is_no_export_is_said_to_be_none(
    fresh: Store, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="that is not an export") as refused:
        import_all(fresh, path, embedder=MODEL, now=NOW)
    assert refused.value.hint


@pytest.mark.parametrize(("deleted", "version"), [({}, 2), ({"m_1": "d_1"}, 3)])
def test_an_export_has_the_lowest_version_that_can_hold_it(
    filled: Store, fresh: Store, tmp_path: Path, deleted: dict[str, str], version: int
) -> None:
    with filled.write() as transaction:
        transaction.deletions.keep(deleted)
        transaction.ledger(lambda _: None)
    path = tmp_path / "all.memctl"
    export_all(filled.snapshot(), path, embedder=MODEL, now=NOW, ledger=filled.ledger)
    with tarfile.open(path) as opened:
        manifest = opened.extractfile("manifest.json")
        assert manifest is not None
        assert json.load(manifest)["format_version"] == version
        assert ("ledger/deletions.jsonl" in opened.getnames()) == bool(deleted)
    import_all(fresh, path, embedder=MODEL, now=NOW)
    assert fresh.ledger.deletions.ids() == set(deleted)


def test_an_export_of_a_newer_version_is_refused(fresh: Store, tmp_path: Path) -> None:
    path = tmp_path / "newer.memctl"
    content = json.dumps({
        "format": "memctl-export", "format_version": 99, "embedder": MODEL, "dimension": 8,
        "rows": {}, "exported_at": "", "settings": {},
    }).encode()  # fmt: skip
    with tarfile.open(path, "w") as opened:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        opened.addfile(member, io.BytesIO(content))
    with pytest.raises(UsageError, match="newer version"):
        import_all(fresh, path, embedder=MODEL, now=NOW)
