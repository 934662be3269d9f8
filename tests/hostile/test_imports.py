"""Exports that somebody has changed, with checksums that fit: refused, and nothing is left."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from command_line import made_once

from memctl.store.transfer import exports

if TYPE_CHECKING:
    from cli.conftest import Run

Change = Callable[[str, bytes], bytes]
EARLY, LATE = -(2**63) + 1, 2**63 - 1
"""Microseconds since 1970 that no date has."""


def manifest(**changes: Any) -> Change:
    """Say something else about the whole."""

    def change(name: str, content: bytes) -> bytes:
        said = json.loads(content) | changes if name == "manifest.json" else None
        return content if said is None else json.dumps(said).encode()

    return change


def column(table: str, name: str, value: Any) -> Change:
    """Give every row of a table the same value."""

    def change(member: str, content: bytes) -> bytes:
        if not member.startswith(f"{table}/"):
            return content
        rows = pa.ipc.open_stream(content).read_all()
        field = rows.schema.field(name)
        plain = pa.int64() if pa.types.is_timestamp(field.type) and value else field.type
        values = pa.array([value] * rows.num_rows, plain).cast(field.type)
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
        out = io.BytesIO()
        with pa.ipc.new_stream(out, rows.schema) as stream:
            stream.write_table(rows)
        return out.getvalue()

    return change


CHANGES = {
    "a list of rows": manifest(rows=[1]),
    "no rows": manifest(rows=None),
    "rows in words": manifest(rows={"documents": "x"}),
    "a list of settings": manifest(settings=[1]),
    "a version in words": manifest(format_version="9"),
    "another key": manifest(more=1),
    "one id": column("memories", "id", "m_1"),
    "one document": column("documents", "id", "d_1"),
    "no text": column("memories", "text", None),
    "no namespace": column("documents", "namespace", None),
    "no date": column("memories", "created_at", None),
    "no kind": column("entities", "type", None),
    "another level": column("memories", "level", "evil\x1b[2J"),
    "no JSON": column("memories", "metadata", "{no"),
    "deep JSON": column("memories", "metadata", "[" * 100_000),
    "a list for an object": column("documents", "metadata", "[1]"),
    "a date after all": column("memories", "valid_to", LATE),
    "a date before all": column("documents", "created_at", EARLY),
    "a source that is none": column("memories", "source_ids", [None]),
    "a tag that is none": column("documents", "tags", [None]),
    "more than important": column("memories", "importance", 1e30),
    "nobody knows how important": column("documents", "importance", float("nan")),
    "endless time": column("memories", "time_start", float("inf")),
    "a start before the text": column("memories", "start", -5),
    "a size below nought": column("documents", "size", -1),
    "another status": column("documents", "status", "evil"),
    "an id of two words": column("entities", "id", "e_1\0e_2"),
    "an endless id": column("documents", "root_id", "d" * 200_000),
    "endless sources": column("memories", "source_ids", ["m" * 200_000]),
    "a zero byte": column("memories", "text", "ferry\0"),
    "a tag with a zero byte": column("documents", "tags", ["a\0"]),
    "no directions": column("memories", "vector", [0.0] * 256),
    "no vectors": column("memories", "vector", None),
    "endless vectors": column("memories", "vector", [float("inf")] * 256),
    "no numbers": column("memories", "vector", [float("nan")] * 256),
}


@pytest.fixture
def forged(
    memctl: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Change], str]:
    """Change an export of everything; return its path."""

    def make() -> None:
        memctl("ingest", "--text", "The ferry of Ann Lee leaves at nine.")
        memctl("ingest", "--text", "Ann Lee grows tomatoes.", "--namespace", "garden")
        memctl("export", "all", "--to", "all.memctl")

    made_once(tmp_path, tmp_path_factory.getbasetemp() / "forged", make)

    def forge(change: Change) -> str:
        with (
            tarfile.open(tmp_path / "all.memctl") as old,
            tarfile.open(tmp_path / "forged.memctl", "w") as new,
        ):
            for member in old:
                file = old.extractfile(member)
                content = change(member.name, file.read() if file else b"")
                member.size = len(content)
                member.pax_headers = {"MEMCTL.sha256": hashlib.sha256(content).hexdigest()}
                new.addfile(member, io.BytesIO(content))
        return str(tmp_path / "forged.memctl")

    return forge


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_export_that_was_tampered_with_is_refused_and_leaves_nothing(
    memctl: Run, forged: Callable[[Change], str], change: Change
) -> None:
    done = memctl("import", forged(change), "-k", "copy")
    assert done.code == 2, done.err
    assert "export" in done.err
    assert "error: unexpected" not in done.err
    assert "\x1b" not in done.err
    assert [row["name"] for row in memctl("kb", "list").rows] == ["default"]


def packed(member: str, content: bytes) -> bytes:
    """Make a part that holds far more than its size tells."""
    if not member.startswith("documents/"):
        return content
    rows = pa.ipc.open_stream(content).read_all()
    field = rows.schema.field("text")
    texts = pa.array(["A" * (8 << 20)] * rows.num_rows, field.type)
    rows = rows.set_column(rows.schema.get_field_index("text"), field, texts)
    out, options = io.BytesIO(), pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(out, rows.schema, options=options) as stream:
        stream.write_table(rows)
    return out.getvalue()


def test_a_part_is_measured_by_what_it_holds(
    memctl: Run, forged: Callable[[Change], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "_LARGEST_PART", 4 << 20)
    done = memctl("import", forged(packed), "-k", "copy")
    assert (done.code, "holds too much" in done.err) == (2, True), done.err


def test_decisions_that_are_nested_without_end_are_damage(
    memctl: Run, forged: Callable[[Change], str]
) -> None:
    done = memctl(
        "import",
        forged(lambda name, content: b"[" * 100_000 if name == "ledger/names.jsonl" else content),
        *("-k", "copy"),
    )
    assert done.code == 12, done.err
    assert "error: unexpected" not in done.err


HARMLESS = {
    "climbing ids": column("entities", "name", "../../etc"),
    "another's file": column("documents", "source", "/etc/passwd"),
    "sources of nobody": column("memories", "source_ids", ["nobody"]),
    "places beyond the text": column("memories", "end", 2**30),
    "names with escapes": column("memories", "entities", ["\x1b[2J", "' OR 1=1"]),
    "what is private": manifest(settings={"private_namespaces": [1, "", None], "private": "yes"}),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_is_odd_in_an_export_harms_nobody(
    memctl: Run, forged: Callable[[Change], str], change: Change
) -> None:
    assert memctl("import", forged(change), "-k", "copy").code == 0
    for words in (
        ["memory", "list"],
        ["document", "list"],
        ["query", "When does the ferry leave?"],
        ["query", "Who grows tomatoes?", "--mode", "graph"],
        ["graph", "show"],
        ["consolidate"],
        ["doctor"],
    ):
        done = memctl(*words, "-k", "copy", "-o", "table")
        assert done.code in (0, 12), (words, done.err)
        assert "\x1b[2J" not in f"{done.out}{done.err}"


@pytest.mark.parametrize("is_as_large", [True, False])
def test_a_file_that_an_export_names_is_not_read_unless_it_has_what_it_had(
    memctl: Run, forged: Callable[[Change], str], tmp_path: Path, is_as_large: bool
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("The code of the alarm is 4711-Quince.")
    page = tmp_path / "page.txt"
    page.write_text("x" * (secret.stat().st_size if is_as_large else 9))
    assert memctl("ingest", str(page)).code == 0
    assert (
        memctl("import", forged(column("documents", "source", str(secret))), "-k", "copy").code == 0
    )
    ids = [row["id"] for row in memctl("document", "list", "-k", "copy").rows]
    memctl("document", "reprocess", *ids, "-k", "copy")
    memctl("document", "reprocess", "--incomplete", "-k", "copy")
    memctl("doctor", "--repair", "-k", "copy")
    held = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert [path for path in held if b"Quince" in path.read_bytes()] == []


RINGS = {
    "a memory that follows itself": "superseded_by",
    "a memory that rests on itself": "source_ids",
}


@pytest.mark.parametrize("name", RINGS.values(), ids=RINGS)
def test_a_memory_that_refers_to_itself_causes_no_endless_loop(
    memctl: Run, forged: Callable[[Change], str], name: str
) -> None:
    id_ = memctl("memory", "list").rows[0]["id"]
    ring = column("memories", name, id_ if name == "superseded_by" else [id_])
    assert memctl("import", forged(ring), "-k", "copy").code == 0
    for words in (
        ["memory", "show", id_],
        ["memory", "history", id_],
        ["query", "When does the ferry leave?"],
        ["consolidate"],
        ["doctor"],
        ["forget", "--memory", id_, "--yes"],
    ):
        done = memctl(*words, "-k", "copy")
        assert done.code in (0, 3, 12), (words, done.err)
        assert "unexpected" not in done.err
