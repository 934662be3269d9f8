"""The tags of snapshots on the tables' versions: damaged, missing, and all that is left of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from damaged import lose_copies_of_manifests, manifests
from fake_endpoint import FakeEndpoint

from memctl.schema.table_names import TABLES
from memctl.store.ledger.ledger import Ledger
from memctl.store.store_repair import FILES_UNKNOWN
from memctl.store.tables.durability import manifest_version

from .conftest import Result, Run

BOATS = "The harbour of Bergen has nine berths for boats."
CRANES = "Crane seven of the harbour was painted green in March."


@pytest.fixture
def kb(memctl: Run, tmp_path: Path) -> Path:
    """A knowledge base whose snapshot ``one`` has BOATS alone."""
    assert memctl("ingest", "--text", BOATS).code == 0
    assert memctl("snapshot", "create", "one").code == 0
    assert memctl("ingest", "--text", CRANES).code == 0
    return tmp_path / "home/kb/default"


def tag(kb: Path, table: str, name: str = "snapshot.one") -> Path:
    return kb / f"lance/{table}.lance/_refs/tags/{name}.json"


def version(path: Path) -> int:
    return int(json.loads(path.read_text())["version"])


def lose_ledger(kb: Path) -> None:
    for path in kb.glob("ledger.sqlite*"):
        path.unlink()


def go_back_to_before(kb: Path, table: str, name: str = "snapshot.one") -> None:
    """Damage the manifests of a table from that of the snapshot on, and lose the copies."""
    lose_copies_of_manifests(kb)
    for path in manifests(kb, table):
        if manifest_version(path) >= version(tag(kb, table, name)):
            empty(path)


def oldest_data(kb: Path, table: str) -> Path:
    files = (kb / f"lance/{table}.lance/data").iterdir()
    return min(files, key=lambda file: file.stat().st_mtime_ns)


def repaired(memctl: Run, *options: str) -> list[str]:
    done = memctl("doctor", "--repair", *options, "-o", "ndjson")
    assert done.code == 0, done.err
    return [row["message"] for row in done.rows]


def repaired_with_losses(memctl: Run) -> list[str]:
    done = memctl("doctor", "--repair", "-o", "ndjson")
    assert done.code in (0, 3), done.err
    return [row["message"] for row in done.rows]


def found(memctl: Run) -> list[str]:
    return [row["message"] for row in memctl("doctor").rows if row["verdict"] != "ok"]


def names(memctl: Run) -> list[str]:
    return [row["name"] for row in memctl("snapshot", "list").rows]


def texts(memctl: Run) -> set[str]:
    return {row["text"] for row in memctl("memory", "list").rows}


def garble(path: Path) -> None:
    path.write_text("garbage")


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("hurt", [garble, empty, Path.unlink])
def test_a_damaged_or_lost_tag_is_found_and_written_again(
    memctl: Run, kb: Path, hurt: Callable[[Path], None]
) -> None:
    before = version(tag(kb, "memories"))
    hurt(tag(kb, "memories"))
    assert any("tag" in message for message in found(memctl))
    assert repaired(memctl) == ["wrote the tag of the snapshot one anew"]
    assert version(tag(kb, "memories")) == before
    assert (found(memctl), repaired(memctl)) == ([], [])
    assert memctl("snapshot", "restore", "one", "--yes").code == 0
    assert texts(memctl) == {BOATS}


@pytest.mark.parametrize(
    "command",
    [
        ("snapshot", "create", "two"),
        ("snapshot", "create", "one"),
        ("snapshot", "list"),
        ("snapshot", "restore", "one", "--yes"),
        ("snapshot", "delete", "one", "--yes"),
        ("forget", "--entity", "Crane", "--snapshots", "--yes"),
    ],
)
def test_no_command_stumbles_over_a_damaged_tag(
    memctl: Run, kb: Path, command: tuple[str, ...]
) -> None:
    garble(tag(kb, "memories"))
    done: Result = memctl(*command)
    assert "unexpected" not in done.err
    assert (done.code == 0) or "'one' is there already" in done.err


def test_a_damaged_tag_of_somebody_elses_is_told_and_put_aside(memctl: Run, kb: Path) -> None:
    garble(tag(kb, "memories", "mine"))
    assert found(memctl) == ["the tag of mine cannot be read"]
    stopped = memctl("forget", "--entity", "Crane", "--yes")
    assert (stopped.code, "doctor --repair" in stopped.err) == (12, True)
    completed = "completed 1 forget that had been cut off"
    assert repaired(memctl) == ["put the unreadable tag mine aside", completed]
    assert (kb / "damaged/memories-mine.json").read_text() == "garbage"
    assert "Crane" not in memctl("export", "memories").out


def test_a_snapshot_whose_version_is_lost_goes_with_its_tags(memctl: Run, kb: Path) -> None:
    garble(tag(kb, "documents"))
    lose_copies_of_manifests(kb)
    for path in manifests(kb, "documents")[1:]:
        path.unlink()
    assert "the state called one is lost" in repaired(memctl)
    assert (names(memctl), found(memctl)) == ([], [])
    assert not any(tag(kb, table).exists() for table in TABLES)
    assert texts(memctl) == {BOATS, CRANES}


@pytest.mark.parametrize("hurt", [garble, empty, Path.unlink])
def test_a_snapshot_whose_manifests_alone_are_lost_is_whole_again(
    memctl: Run, kb: Path, hurt: Callable[[Path], None]
) -> None:
    for table in TABLES:
        for path in manifests(kb, table):
            hurt(path)
    assert memctl("doctor").code == 12
    steps = repaired(memctl)
    assert sum("manifest" in step and "from the ledger" in step for step in steps) >= len(TABLES)
    assert (names(memctl), found(memctl), repaired(memctl)) == (["one"], [], [])
    assert texts(memctl) == {BOATS, CRANES}
    assert memctl("snapshot", "restore", "one", "--yes").code == 0
    assert (texts(memctl), found(memctl)) == ({BOATS}, [])


@pytest.mark.parametrize("table", TABLES)
def test_a_snapshot_is_lost_where_a_table_goes_back_to_before_it(
    memctl: Run, kb: Path, table: str
) -> None:
    go_back_to_before(kb, table)
    assert "the state called one is lost" in repaired_with_losses(memctl)
    assert (names(memctl), found(memctl)) == ([], [])
    assert not any(tag(kb, table).exists() for table in TABLES)
    assert texts(memctl) == {BOATS, CRANES}


def test_with_the_ledger_lost_no_tag_stands_for_what_got_the_number_of_a_lost_version(
    memctl: Run, kb: Path
) -> None:
    assert memctl("snapshot", "create", "two").code == 0
    assert memctl("ingest", "--text", CRANES.replace("green", "blue")).code == 0
    go_back_to_before(kb, "memories", "snapshot.two")
    empty(oldest_data(kb, "memories"))
    lose_ledger(kb)
    steps = repaired_with_losses(memctl)
    for name in ("one", "two"):
        assert f"the snapshot {name} is lost: versions of it cannot be read" in steps
    assert (names(memctl), found(memctl)) == ([], [])
    assert not any(tag(kb, table).exists() for table in TABLES)


@pytest.mark.parametrize("table", ["documents", "memories"])
def test_with_the_ledger_lost_a_snapshot_whose_rows_cannot_be_read_is_told_and_dropped(
    memctl: Run, kb: Path, table: str
) -> None:
    lose_ledger(kb)
    empty(oldest_data(kb, table))
    lost = "the snapshot one is lost: versions of it cannot be read"
    assert lost in repaired_with_losses(memctl)
    assert (names(memctl), found(memctl), repaired(memctl)) == ([], [], [])
    assert not any(tag(kb, table).exists() for table in TABLES)
    assert any("Crane seven" in text for text in texts(memctl))


def test_a_repair_that_was_cut_off_after_the_ledger_goes_on_without_what_cannot_be_read(
    memctl: Run, kb: Path
) -> None:
    with closing(Ledger.open(kb / "ledger.sqlite")) as ledger:
        ledger.set_meta(FILES_UNKNOWN, "1")
    empty(oldest_data(kb, "documents"))
    assert "the state called one is lost" in repaired_with_losses(memctl)
    assert (names(memctl), found(memctl), repaired(memctl)) == ([], [], [])


def test_with_the_ledger_lost_snapshots_are_read_back_from_the_tags(memctl: Run, kb: Path) -> None:
    lose_ledger(kb)
    steps = repaired(memctl)
    assert "made anew from the tables" in steps
    assert "read the snapshot one back from the tables' tags" in steps
    assert (names(memctl), found(memctl)) == (["one"], [])
    assert memctl("snapshot", "restore", "one", "--yes").code == 0
    assert texts(memctl) == {BOATS}
    assert found(memctl) == []


def test_with_the_ledger_lost_a_snapshot_that_not_every_table_has_is_told_and_dropped(
    memctl: Run, kb: Path
) -> None:
    lose_ledger(kb)
    tag(kb, "entities").unlink()
    garble(tag(kb, "relations"))
    lost = "the snapshot one is lost: no tag says which version it is of entities, relations"
    assert lost in repaired(memctl)
    assert (names(memctl), found(memctl)) == ([], [])
    assert not any(tag(kb, table).exists() for table in TABLES)


def test_a_snapshot_that_is_read_back_knows_what_its_vectors_are_from(
    memctl: Run, kb: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    lose_ledger(kb)
    repaired(memctl)
    assert memctl("snapshot", "restore", "one", "--yes").code == 0
    assert texts(memctl) == {BOATS}
    assert memctl("query", "boats?", "--mode", "vector", "--no-answer").code == 0
    assert found(memctl) == []


def test_with_the_ledger_lost_a_snapshot_knows_the_files_that_it_had(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    memctl("kb", "create", "default")
    kb = tmp_path / "home/kb/default"
    (kb / "inbox/boats.txt").write_text(BOATS)
    memctl("watch", "--once")
    memctl("snapshot", "create", "one")
    (kb / "inbox/cranes.txt").write_text(CRANES)
    memctl("watch", "--once")
    lose_ledger(kb)
    wrote = "wrote down 2 files found in processed/"
    assert wrote in repaired(memctl, "--dry-run")
    assert wrote in repaired(memctl)
    assert memctl("snapshot", "restore", "one", "--yes").code == 0
    assert found(memctl) == []
    assert repaired(memctl) == []
    assert texts(memctl) == {BOATS}


def test_an_unreadable_ledger_is_kept_beside_the_new_one(memctl: Run, kb: Path) -> None:
    (kb / "ledger.sqlite").write_text("no database")
    assert "made anew from the tables; the old one is kept beside it" in repaired(memctl)
    assert list(kb.glob("ledger.sqlite.damaged-*"))
