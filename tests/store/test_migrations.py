"""Tables of an earlier schema are read as they are, and brought up to date by the next write."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from damaged import manifests
from faults.acts import require_sound, state_of
from grown import GROWN_VERSION, Done, grown_package, run_all, sample_export, sample_home

from memctl.cli.main import run
from memctl.errors import KnowledgeBaseUnavailable
from memctl.schema.migrations import FIRST_VERSION, SCHEMA_VERSION
from memctl.store.store import Store
from memctl.store.tables.filter_expressions import where

KB = ("-k", "notes")
KEYS = "d_67936ee4f79722113d98e7f7"
"""The document that says who keeps the keys, in the sample home."""
JSON = ("-o", "ndjson")
SCHEMA = ("python", "print(store.ledger.schema_version())")
REMARK = (
    "python",
    """
import pyarrow as pa
with store.write() as transaction:
    found = transaction.snapshot().scan("memories", columns=["id", "text"]).to_pylist()
    of = {"keys": next(r["id"] for r in found if "4711" in r["text"]),
          "boat": next(r["id"] for r in found if "red" in r["text"])}
    transaction.append("remarks", pa.table({
        "id": [f"r_{name}" for name in of], "memory_id": list(of.values()),
        "text": [f"a remark on the {name}" for name in of],
        "weight": pa.array([0.25, 0.75], pa.float32())}))
    transaction.update("memories", pa.table({"id": [of["boat"]], "mood": ["merry"]}))
""",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grown_package(tmp_path_factory.mktemp("grown"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return sample_home(1, tmp_path)


def sql(statement: str) -> tuple[str, ...]:
    return ("sql", statement, *KB, *JSON)


def succeeded(*results: Done) -> list[Done]:
    for each in results:
        assert each.code == 0, each.err + each.out
    return list(results)


MOODS = sql("SELECT DISTINCT mood, place, colours FROM memories ORDER BY mood")
REMARKS = sql("SELECT id, weight FROM remarks ORDER BY id")
BY_COLUMN = (
    "python",
    """
from memctl.store.tables.filter_expressions import col, where
snapshot = store.snapshot()
count = lambda condition: snapshot.count("memories", condition)
all_ = snapshot.count("memories")
assert count(col("mood") == "calm") == count(where("mood = 'calm' AND `place` IS NULL")) == all_
assert count(col("place") == "x") == count(~(col("place") == "x")) == 0
assert count(col("place").is_null()) == count(~col("colours").has_any(["red"])) == all_
assert count(where("array_has(colours, 'red') OR text = 'mood'")) == 0
rows = snapshot.scan("memories", None, ["mood"], order_by=[("mood", "asc")], limit=3)
assert rows.to_pylist() == [{"mood": "calm"}] * 3
assert not snapshot.scan("remarks").num_rows
""",
)


def test_readers_cope_with_tables_of_an_earlier_schema(package: Path, home: Path) -> None:
    moods, remarks, _, _, listed, doctor, schema = succeeded(
        *run_all(
            package,
            home,
            MOODS,
            REMARKS,
            BY_COLUMN,
            ("query", "Who keeps the keys?", *KB, *JSON),
            ("memory", "list", *KB, *JSON),
            ("doctor", *KB, *JSON),
            SCHEMA,
        )
    )
    assert moods.rows == [{"mood": "calm", "place": None, "colours": []}]
    assert remarks.rows == []
    assert {(row["mood"], row["place"]) for row in listed.rows} == {("calm", None)}
    assert f"schema version 1; the next write brings them to {GROWN_VERSION}" in doctor.out
    assert schema.out == "1\n"


READ_ON = (
    "python",
    """
from memctl.schema.migrations import SCHEMA_VERSION
early = store.snapshot()
columns = ["id", "text", "mood", "vector"]
before = early.scan("memories", columns=columns).sort_by("id")
with Store.open(store.folder) as other:
    with other.write():
        pass
    other.upkeep(force=True)
    assert other.ledger.schema_version() == SCHEMA_VERSION
assert early.scan("memories", columns=columns).sort_by("id") == before
assert store.snapshot().scan("memories", columns=columns).sort_by("id") == before
""",
)


BOTH = [{"id": "r_boat", "weight": 0.75}, {"id": "r_keys", "weight": 0.25}]
CALM = {"mood": "calm", "place": None, "colours": []}
MERRY = {**CALM, "mood": "merry"}


def test_a_new_column_and_a_new_table_are_handled_with_no_other_change(
    package: Path, home: Path, tmp_path: Path
) -> None:
    old, new = str(tmp_path / "old.memctl"), str(tmp_path / "new.memctl")
    done = succeeded(
        *run_all(
            package,
            home,
            ("export", "all", "--to", old, *KB),
            ("ingest", "--text", "Dora Finch paints the harbour office.", *KB),
            SCHEMA,
            REMARK,
            ("snapshot", "create", "two", *KB),
            ("export", "all", "--to", new, *KB),
            ("job", "undo", "--yes", *KB),
            MOODS,
            REMARKS,
            ("snapshot", "restore", "one", "--yes", *KB),
            MOODS,
            REMARKS,
            ("snapshot", "restore", "two", "--yes", *KB),
            MOODS,
            REMARKS,
            ("import", old, "-k", "older"),
            ("import", new, "-k", "newer"),
            ("sql", MOODS[1], "-k", "newer", *JSON),
            ("sql", REMARKS[1], "-k", "newer", *JSON),
            ("sql", MOODS[1], "-k", "older", *JSON),
            ("forget", "--document", KEYS, "--yes", "-k", "newer"),
            ("sql", REMARKS[1], "-k", "newer", *JSON),
            ("forget", "--entity", "boat", "--yes", "-k", "newer"),
            ("sql", REMARKS[1], "-k", "newer", *JSON),
            ("doctor", *KB),
            ("doctor", "-k", "newer"),
        )
    )
    assert done[2].out == f"{GROWN_VERSION}\n", "the first write has brought the tables up to date"
    assert [done[7].rows, done[8].rows] == [[CALM, MERRY], BOTH]
    assert [done[10].rows, done[11].rows] == [[CALM], []], "the snapshot is of the earlier schema"
    assert [done[13].rows, done[14].rows] == [[CALM, MERRY], BOTH]
    assert [done[17].rows, done[18].rows] == [[CALM, MERRY], BOTH]
    assert done[19].rows == [CALM], "the export is of the earlier schema"
    assert done[21].rows == BOTH[:1], "a row goes with the memory that it refers to"
    assert done[23].rows == [], "its text has the word, too"


TEXTS = (
    "python",
    """
snapshot = store.snapshot()
rows = snapshot.scan("memories", columns=["text", "mood", "vector"])
assert set(rows["mood"].to_pylist()) == {"calm"} and not rows["vector"].null_count
print(sorted(rows["text"].to_pylist()))
print(sorted(snapshot.scan("documents", columns=["text"])["text"].to_pylist()))
""",
)


@pytest.fixture(scope="module")
def whole(package: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What TEXTS tells of the sample home."""
    [done] = succeeded(*run_all(package, sample_home(1, tmp_path_factory.mktemp("whole")), TEXTS))
    return done.out


def cut_relations(base: Path) -> str:
    cut = min((base / "lance/relations.lance/data").iterdir())
    cut.write_bytes(cut.read_bytes()[:-64])
    return cut.name


def cut_memories(base: Path) -> str:
    """Damage rows of the table that gets new columns; an earlier version has them too."""
    cut = max((base / "lance/memories.lance/data").iterdir(), key=lambda path: path.stat().st_size)
    cut.write_bytes(cut.read_bytes()[:-64])
    return cut.name


def empty_manifest(base: Path) -> str:
    newest = manifests(base, "memories")[0]
    newest.write_bytes(b"")
    return "memories.lance"


def cut_index(base: Path) -> str:
    indexes = base / "lance/memories.lance/_indices"
    files = [path for path in indexes.rglob("*") if path.is_file()]
    cut = max(files, key=lambda path: path.stat().st_size)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    return cut.relative_to(indexes).parts[0]


def lose_ledger(base: Path) -> str:
    for path in base.glob("ledger.sqlite*"):
        path.unlink()
    return "ledger.sqlite"


@pytest.mark.parametrize(
    "damage", [cut_relations, cut_memories, empty_manifest, cut_index, lose_ledger]
)
def test_a_damaged_table_is_repaired_before_it_is_migrated(
    package: Path, whole: str, home: Path, damage: Callable[[Path], str]
) -> None:
    named = damage(home / "kb/notes")
    add = ("memory", "add", "The spare key is with Ida.", *KB)
    refused, repaired, texts, added, doctor, schema = run_all(
        package, home, add, ("doctor", "--repair", *KB), TEXTS, add, ("doctor", *KB), SCHEMA
    )
    assert refused.code == 12, refused.err
    assert named in refused.err
    assert "doctor --repair" in refused.err
    assert repaired.code in (0, 3), repaired.err + repaired.out
    assert texts.out == whole, "nothing is lost"
    succeeded(added)
    damaged = [row for row in doctor.rows if row["verdict"] == "damaged"]
    assert all(row["subject"] == "one" for row in damaged), "but for a snapshot that shared it"
    assert schema.out == f"{GROWN_VERSION}\n"


def test_a_damaged_table_stays_as_it_is_until_it_is_repaired(package: Path, home: Path) -> None:
    cut_relations(home / "kb/notes")
    before = {
        path: path.read_bytes() for path in (home / "kb/notes/lance").rglob("*.*") if path.is_file()
    }
    refused, schema = run_all(package, home, ("memory", "add", "Ida.", *KB), SCHEMA)
    assert (refused.code, schema.out) == (12, "1\n")
    assert all(path.read_bytes() == content for path, content in before.items())


def test_whoever_reads_during_a_migration_goes_on_reading_what_there_was(
    package: Path, home: Path
) -> None:
    with Store.open(home / "kb/notes") as early:
        snapshot = early.snapshot()
        before = snapshot.scan("memories").sort_by("id")
        [read] = run_all(package, home, READ_ON)
        assert read.code == 0, read.err
        assert snapshot.scan("memories").sort_by("id") == before
        assert snapshot.count("memories", where("array_has(entities, 'Bo Lind')")) > 0
        with pytest.raises(KnowledgeBaseUnavailable, match=f"schema version {GROWN_VERSION}"):
            early.snapshot()
        with (
            pytest.raises(KnowledgeBaseUnavailable, match=f"schema version {GROWN_VERSION}"),
            early.write(),
        ):
            raise AssertionError


def test_tables_of_a_later_schema_are_refused_by_its_version(
    package: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = str(tmp_path / "new.memctl")
    succeeded(
        *run_all(
            package,
            home,
            ("memory", "add", "The spare key is with Ida.", *KB),
            ("export", "all", "--to", new, *KB),
        )
    )
    for words in (
        ("memory", "list", *KB),
        ("ingest", "--text", "Ida paints.", *KB),
        ("doctor", *KB),
        ("doctor", "--repair", *KB),
        ("import", new, "-k", "copy"),
    ):
        assert run(["--home", str(home), *words]) != 0
        output = "".join(capsys.readouterr())
        assert f"schema version {GROWN_VERSION}" in output, words
        assert "upgrade memctl" in output, words


NEWER = {
    "tables": ("INSERT OR REPLACE INTO meta VALUES ('tables_schema', '99')", "schema version 99"),
    "ledger": ("PRAGMA user_version = 99", "ledger 99"),
}


@pytest.mark.parametrize("part", NEWER)
def test_whatever_reads_or_writes_a_home_of_a_newer_schema_refuses_it_and_names_the_version(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    statement, message = NEWER[part]
    with closing(sqlite3.connect(home / "kb/notes/ledger.sqlite")) as ledger:
        ledger.execute(statement)
        ledger.commit()
    tables, export = home / "kb/notes/lance", str(tmp_path / "x.memctl")
    before = {path: path.read_bytes() for path in tables.rglob("*") if path.is_file()}
    for words in (
        ("query", "Who?"), ("query", "Who?", *KB), ("context", "keys", *KB),
        ("sql", "SELECT 1", *KB), ("memory", "list", *KB), ("document", "list", *KB),
        ("insight", "list", *KB), ("job", "list", *KB), ("graph", "communities", *KB),
        ("stats", *KB), ("snapshot", "list", *KB), ("export", "all", "--to", export, *KB),
        ("ingest", "--text", "Ida.", *KB), ("memory", "add", "Ida.", *KB), ("watch", "--once"),
        ("consolidate", *KB), ("job", "undo", "--yes", *KB), ("forget", *KB),
        ("forget", "--entity", "boat", "--yes", *KB), ("snapshot", "create", "two", *KB),
        ("snapshot", "restore", "one", "--yes", *KB), ("kb", "set", "notes", "--private"),
        ("kb", "reembed", "notes", "--embedder", "builtin"), ("doctor", *KB),
        ("doctor", "--repair", *KB), ("doctor", "--rebuild", "--yes", *KB),
    ):  # fmt: skip
        assert run(["--home", str(home), *words]) in (1, 12), words
        assert message in "".join(capsys.readouterr()), words
    assert run(["--home", str(home), "status"]) == 0
    assert message in capsys.readouterr().err
    after = {path: path.read_bytes() for path in tables.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("schema", range(1, SCHEMA_VERSION + 1))
def test_a_home_of_every_schema_can_be_used(
    schema: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = sample_home(schema, tmp_path)
    export = str(tmp_path / "all.memctl")

    def memctl(*words: str) -> list[dict[str, object]]:
        """Run a command, and return what it prints."""
        json_or_not = (*words, *JSON) if words[0] in ("query", "sql") else words
        code = run(["--home", str(home), *json_or_not])
        out, err = capsys.readouterr()
        assert code == 0, f"{words}: {err}{out}"
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def answer() -> object:
        return memctl("query", "Who keeps the keys?", *KB)[0]["answer"]

    def documents() -> object:
        return memctl("sql", "SELECT count(*) AS n FROM documents", *KB)[0]["n"]

    assert "Bo Lind keeps the keys" in str(answer())
    for words in (
        ("memory", "list"), ("document", "list"), ("insight", "list"), ("job", "list"),
        ("graph", "communities"), ("stats",), ("doctor",), ("context", "keys"), ("status",),
        ("snapshot", "list"), ("kb", "list"),
    ):  # fmt: skip
        memctl(*words, *(() if words[0] in ("kb", "status") else KB))
    memctl("export", "all", "--to", export, *KB)
    memctl("import", export, "-k", "early")
    before = documents()
    memctl("ingest", "--text", "Dora Finch paints the harbour office.", *KB)
    memctl("memory", "add", "The spare key is with Ida.", *KB)
    memctl("consolidate", *KB)
    memctl("snapshot", "create", "two", *KB)
    memctl("doctor", "--repair", *KB)
    memctl("job", "undo", "--yes", *KB)
    memctl("snapshot", "restore", "one", "--yes", *KB)
    memctl("doctor", *KB)
    memctl("snapshot", "restore", "two", "--yes", *KB)
    assert documents() == int(str(before)) + 1
    memctl("forget", "--document", KEYS, "--snapshots", "--yes", *KB)
    assert documents() == before
    memctl("doctor", "--rebuild", "--yes", *KB)
    memctl("doctor", *KB)
    assert "Bo Lind keeps the keys" not in str(answer())
    memctl("import", export, "-k", "late")
    memctl("doctor", "-k", "late")


@pytest.mark.parametrize("schema", range(FIRST_VERSION, SCHEMA_VERSION))
def test_what_a_memctl_of_an_earlier_schema_has_exported_comes_back_whole(
    schema: int, tmp_path: Path
) -> None:
    home = sample_home(schema, tmp_path)
    export = str(sample_export(schema, tmp_path))
    assert run(["--home", str(home), "import", export, "-k", "copy"]) == 0
    require_sound(home)
    state = state_of(home)
    for of_home in state.values():
        del of_home["snapshots"], of_home["replied"], of_home["settings"]  # stay where they are
    assert state["copy"] == state["notes"]
