"""memctl export, import and sql: what is remembered leaves and comes back."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from .conftest import Run


@pytest.fixture
def notes(memctl: Run) -> Run:
    """A home with a document and a statement."""
    memctl("ingest", "--text", "We decided to launch Aurora on 12 May 2026. The venue is Hall 3.")
    memctl("memory", "add", "tea, not coffee", "--type", "preference")
    return memctl


def test_an_export_over_a_file_says_that_it_replaced_it(notes: Run, tmp_path: Path) -> None:
    archive = str(tmp_path / "all.memctl")
    assert "in place of" not in notes("export", "all", "--to", archive).err
    assert "in place of the file that was there" in notes("export", "all", "--to", archive).err


def forge(folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Write all.memctl again as other.memctl with one member changed, its sums included."""
    with (
        tarfile.open(folder / "all.memctl") as archive,
        tarfile.open(folder / "other.memctl", "w") as other,
    ):
        for member in archive:
            file = archive.extractfile(member)
            content = file.read() if file else b""
            if member.name == name:
                content = change(content)
                member.size = len(content)
                member.pax_headers = {"MEMCTL.sha256": hashlib.sha256(content).hexdigest()}
            other.addfile(member, io.BytesIO(content))


def test_a_table_goes_to_standard_output_as_json_lines(notes: Run) -> None:
    rows = notes("export", "memories").rows
    assert len(rows) == len(notes("memory", "list").rows)
    assert len(rows[0]["vector"]) == 256


def test_arrow_in_a_pipe_is_a_stream(notes: Run) -> None:
    table = pa.ipc.open_stream(notes("export", "memories", "-f", "arrow").raw).read_all()
    assert "tea, not coffee" in table["text"].to_pylist()
    assert table.schema.field("vector").type.list_size == 256


def test_a_file_s_name_says_its_format(notes: Run, tmp_path: Path) -> None:
    for name in ("m.parquet", "m.arrow", "m.jsonl", "m.csv"):
        result = notes("export", "memories", "--to", name)
        assert result.code == 0, result.err
        assert (result.out, "rows to " in result.err) == ("", True)
    assert pyarrow.parquet.read_table(tmp_path / "m.parquet").num_rows >= 2
    assert pa.ipc.open_file(tmp_path / "m.arrow").read_all().num_rows >= 2
    assert json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])["id"]
    assert (tmp_path / "m.csv").read_text().startswith('"id",')


def through_a_pipe(memctl: Run, folder: Path, *words: str) -> bytes:
    """Export to a named pipe and return what its reader got."""
    with (folder / "got").open("wb") as got:
        reader = subprocess.Popen(["cat", str(folder / "pipe")], stdout=got)
        result = memctl("export", *words, "--to", "pipe")
        assert (reader.wait(), result.code) == (0, 0), result.err
    assert (folder / "pipe").is_fifo()
    return (folder / "got").read_bytes()


def test_a_pipe_is_written_to_and_never_replaced(notes: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for words in (["memories"], ["memories", "-f", "arrow"], ["memories", "-f", "parquet"]):
        assert through_a_pipe(notes, tmp_path, *words) == notes("export", *words).raw
    whole = through_a_pipe(notes, tmp_path, "all")
    assert notes("import", "-", "-k", "restored", stdin=whole).code == 0


def test_a_place_that_cannot_be_written_to_is_called_as_the_user_does(
    notes: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("kept")
    for name, reason in (
        ("nowhere/m.csv", "No such file or directory"),
        ("folder", "Is a directory"),
        ("file/m.csv", "Not a directory"),
    ):
        result = notes("export", "memories", "--to", name)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"error: {name}: {reason}\nhint: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "home"]


def test_what_was_deleted_by_hand_stays_so_where_it_is_taken_over(memctl: Run) -> None:
    memctl("ingest", "--text", "The alarm code is 4711-Quince.")
    memctl("kb", "create", "merged")
    for row in memctl("memory", "list").rows:
        memctl("memory", "delete", row["id"], "--yes")
    (document,) = memctl("document", "list").rows
    memctl("export", "all", "--to", "all.memctl", "-k", document["kb"])
    memctl("import", "all.memctl", "-k", "restored")
    memctl("kb", "merge", "merged", document["kb"], "--yes")
    for name in ("restored", "merged"):
        assert memctl("document", "list", "-k", name).rows
        assert memctl("doctor", "--repair", "-k", name).code == 0
        assert memctl("memory", "list", "-k", name).rows == []


def test_everything_comes_back_as_it_was(notes: Run) -> None:
    before = {t: notes("export", t).out for t in ("documents", "memories", "entities", "relations")}
    archive = notes("export", "all").raw
    result = notes("import", "-", "-k", "restored", stdin=archive)
    assert result.code == 0, result.err
    after = {table: notes("export", table, "-k", "restored").out for table in before}
    assert after == before
    assert notes("query", "the venue", "-k", "restored").json["hits"]


def test_what_somebody_said_of_names_and_answers_comes_back(notes: Run) -> None:
    notes("ingest", "--text", "Ann Lee met Bob Ray in Hull. Zoe Kim wrote to Bob Ray.")
    assert notes("graph", "merge", "Ann Lee", "Zoe Kim").code == 0
    asked = notes("query", "where is the venue?", "-o", "json").json
    assert notes("query", "--feedback", asked["query_id"], "good").code == 0
    statement = "select question, query_id, hits, feedback from queries order by query_id"
    before = notes("sql", statement).rows
    archive = notes("export", "all").raw
    assert notes("import", "-", "-k", "restored", stdin=archive).code == 0
    assert notes("graph", "show", "-k", "restored", "-o", "json").json["merged"]
    assert notes("sql", statement, "-k", "restored").rows == before
    assert [row["feedback"] for row in before] == ["good"]


def test_settings_come_back_where_none_were_made(notes: Run) -> None:
    notes("kb", "set", "default", "--half-life", "10", "--on-demand", "--chunk-size", "700")
    archive = notes("export", "all", "-k", "default").raw
    notes("kb", "create", "own", "--half-life", "20")
    for name in ("new", "own"):
        assert notes("import", "-", "-k", name, stdin=archive).code == 0
    new, own = (notes("kb", "show", name, "-o", "json").json for name in ("new", "own"))
    assert (new["half_life"], new["always_on"], new["chunk_size"]) == (10, False, 700)
    assert (own["half_life"], own["always_on"], own["chunk_size"]) == (20, False, 700)


def test_a_forged_setting_is_refused_whole(notes: Run, tmp_path: Path) -> None:
    notes("export", "all", "--to", "all.memctl")
    forge(
        tmp_path, "manifest.json", lambda old: old.replace(b'"half_life": 90', b'"half_life": -1')
    )
    result = notes("import", "other.memctl", "-k", "new")
    assert result.code == 2
    assert "half_life" in result.err
    assert [row["name"] for row in notes("kb", "list").rows] == ["default"]


def test_a_private_base_takes_the_questions_without_their_texts(notes: Run) -> None:
    notes("query", "where is the venue?")
    archive = notes("export", "all").raw
    notes("kb", "create", "quiet", "--private")
    assert notes("import", "-", "-k", "quiet", stdin=archive).code == 0
    assert [row["question"] for row in notes("sql", "from queries", "-k", "quiet").rows] == [None]


@pytest.mark.parametrize("line", ["no json", "{}", '{"one": 1, "other": 2, "same": 3, "at": 4}'])
def test_what_the_ledger_would_not_say_is_not_imported(
    notes: Run, tmp_path: Path, line: str
) -> None:
    notes("export", "all", "--to", "all.memctl")
    forge(tmp_path, "ledger/names.jsonl", lambda _: f"{line}\n".encode())
    result = notes("import", "other.memctl", "-k", "restored")
    assert result.code == 12
    assert "ledger/names in the export cannot be read" in result.err
    assert [row["name"] for row in notes("kb", "list").rows] == ["default"]


def test_importing_into_one_that_is_not_empty_changes_nothing(notes: Run, tmp_path: Path) -> None:
    notes("export", "all", "--to", "all.memctl")
    before = notes("memory", "list").out
    result = notes("import", "all.memctl")
    assert result.code == 2
    assert "not empty" in result.err
    assert notes("memory", "list").out == before


def test_what_is_no_export_leaves_no_knowledge_base_behind(notes: Run, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not a tar" * 500)
    for file in ("x", "nothing"):
        result = notes("import", file, "-k", "restored")
        assert result.code == 2, result.err
    notes("export", "all", "--to", "all.memctl")
    content = (tmp_path / "all.memctl").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    assert notes("import", "cut", "-k", "restored").code == 12
    assert [row["name"] for row in notes("kb", "list").rows] == ["default"]


def test_a_format_is_for_one_table_alone(notes: Run) -> None:
    result = notes("export", "all", "-f", "csv")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "error: all tables go into one archive\nhint: leave -f out, or name one table\n"
    )


def test_of_several_the_usual_one_is_exported_and_else_one_must_be_named(
    notes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes("kb", "create", "second")
    assert notes("export", "memories").code == 0
    monkeypatch.setenv("MEMCTL_DEFAULT_KB", "third")
    result = notes("export", "memories")
    assert result.code == 2
    assert "default, second" in result.err


def test_an_ending_of_another_format_is_refused_and_one_that_is_missing_is_not(
    notes: Run, tmp_path: Path
) -> None:
    result = notes("export", "memories", "--to", "all.xlsx")
    assert result.code == 2
    assert "'all.xlsx' has the ending of no format" in result.err
    assert "hint: end it in .parquet" in result.err
    assert not (tmp_path / "all.xlsx").exists()
    assert notes("export", "memories", "-f", "csv", "--to", "all.xlsx").code == 0
    assert notes("export", "memories", "--to", "all").code == 0
    assert json.loads((tmp_path / "all").read_text().splitlines()[0])["id"].startswith("m_")


def test_a_closed_pipe_ends_quietly(notes: Run, tmp_path: Path) -> None:
    for _ in range(3):
        notes("ingest", "--text", "x" * 100_000 + str(_))
    script = f"{sys.executable} -m memctl export memories | head -c 10"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, text=True)
    assert len(done.stdout) == 10
    assert done.stderr == ""


def test_sql_asks_every_table(notes: Run) -> None:
    assert notes("sql", "select count(*) n from documents").rows == [{"n": 1}]
    rows = notes("sql", "-", stdin="select text from memories where type = 'preference'").rows
    assert rows == [{"text": "tea, not coffee"}]
    table = notes("sql", "select type from memories order by 1", "-o", "arrow").raw
    assert pa.ipc.open_stream(io.BytesIO(table)).read_all().num_rows >= 2


@pytest.mark.parametrize(
    "statement",
    [
        "delete from memories", "select * from 'x.csv'", "copy memories to 'x'", "", "select",
        "attach 'x.db'", "select 1; select 2", "install httpfs", "select * from nothing",
    ],
)  # fmt: skip
def test_sql_that_may_not_run_is_one_line_and_does_nothing(
    notes: Run, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    result = notes("sql", statement)
    assert result.code == 2, result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["ndjson", "json", "csv", "table"])
def test_every_value_that_sql_can_give_is_written(notes: Run, output: str) -> None:
    result = notes("sql", "select sum(is_consolidated::int) s from memories", "-o", output)
    assert (result.code, result.err) == (0, "")
    assert notes("sql", "summarize documents", "-o", output).code == 0


def test_values_of_sql_are_the_nearest_that_json_has(notes: Run) -> None:
    (row,) = notes(
        "sql",
        r"select sum(2) whole, 1.5::decimal(5, 2) broken, '\xAA'::blob bytes, uuid() id,"
        " date '2026-05-12' d, time '10:00' t, timestamp '2026-05-12 10:00' local,"
        " interval '1 month 2 days 30 seconds' i, {'x': 1::hugeint} nested",
        "-o",
        "ndjson",
    ).rows
    assert len(row.pop("id")) == 36
    assert row == {
        "whole": 2, "broken": 1.5, "bytes": "qg==", "d": "2026-05-12", "t": "10:00:00",
        "local": "2026-05-12T10:00:00", "i": "P1M2DT30S", "nested": {"x": 1},
    }  # fmt: skip
    assert type(row["whole"]) is int


def test_columns_of_one_name_are_all_kept(notes: Run) -> None:
    statement = "select 1 as a, 2 as a, 3 as a_2, 4 as a"
    (row,) = notes("sql", statement, "-o", "ndjson").rows
    assert row == {"a": 1, "a_3": 2, "a_2": 3, "a_4": 4}
