"""Snapshots: a state of a knowledge base under a name, and the way back to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import DIMENSION, FakeEndpoint
from long_form import IS_LONG
from waiting import PATIENCE, wait_for

from memctl.config import load_config
from memctl.home import Home
from memctl.instants import utc_now
from memctl.models import BUILTIN_EMBEDDER

from .conftest import Run

BOATS = "The harbour of Bergen has nine berths for boats."
CRANES = "Crane seven of the harbour was painted green in March."
QUESTION = "what of the harbour?"


def take_in(memctl: Run, *texts: str) -> None:
    for text in texts:
        assert memctl("ingest", "--text", text).code == 0


def texts(memctl: Run, mode: str = "hybrid") -> set[str]:
    found = memctl("query", QUESTION, "--mode", mode, "--no-answer", "-o", "json")
    assert found.code == 0, found.err
    return {hit["text"] for hit in found.json["hits"]}


def snapshots(memctl: Run) -> dict[str, Any]:
    return {row["name"]: row for row in memctl("snapshot", "list").rows}


def restore(memctl: Run, name: str) -> Any:
    done = memctl("snapshot", "restore", name, "--yes", "-o", "json")
    assert done.code == 0, done.err
    return done.json


def tidy(days: int = 0) -> None:
    """Have all upkeep done that can be, as of some days from now."""
    with Home(load_config({}), lambda: utc_now() + timedelta(days=days)).open("default") as base:
        base.store.upkeep(force=True)


def table(tmp_path: Path, name: str) -> Path:
    return tmp_path / f"home/kb/default/lance/{name}.lance"


def test_restoring_brings_back_what_was_known_and_can_be_undone(memctl: Run) -> None:
    take_in(memctl, BOATS)
    assert memctl("snapshot", "create", "one").code == 0
    take_in(memctl, CRANES)
    (boats,) = (row["id"] for row in memctl("document", "list").rows if row["size"] == len(BOATS))
    assert memctl("document", "delete", boats, "--yes").code == 0
    assert texts(memctl) == {CRANES}
    restored = restore(memctl, "one")
    assert restored["documents"] == 1
    assert texts(memctl) == texts(memctl, "keyword") == texts(memctl, "vector") == {BOATS}
    restore(memctl, restored["saved_as"])
    assert texts(memctl) == texts(memctl, "keyword") == texts(memctl, "vector") == {CRANES}
    take_in(memctl, BOATS)
    assert texts(memctl) == {BOATS, CRANES}


def test_a_list_tells_what_each_holds_and_what_it_alone_takes(memctl: Run) -> None:
    take_in(memctl, BOATS)
    made = memctl("snapshot", "create", "one", "-o", "json")
    assert (made.json["documents"], made.json["own_bytes"], made.json["problem"]) == (1, 0, "")
    assert "1 document" in made.err
    take_in(memctl, CRANES)
    memctl("snapshot", "create", "two")
    assert [row["documents"] for row in snapshots(memctl).values()] == [1, 2]
    (document, *_) = memctl("document", "list").rows
    memctl("document", "delete", document["id"], "--yes")
    tidy()
    own = {name: row["own_bytes"] for name, row in snapshots(memctl).items()}
    assert own["two"] > 0
    assert "ITS ALONE" in memctl("snapshot", "list", "-o", "table").out


def test_nothing_is_done_where_it_is_only_tried_or_nobody_agrees(memctl: Run) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    take_in(memctl, CRANES)
    assert "would set default to one" in memctl("snapshot", "restore", "one", "--dry-run").out
    assert "would delete snapshot one" in memctl("snapshot", "delete", "one", "--dry-run").out
    for command in ("restore", "delete"):
        refused = memctl("snapshot", command, "one")
        assert (refused.code, "--yes" in refused.err) == (2, True)
    assert list(snapshots(memctl)) == ["one"]
    assert texts(memctl) == {BOATS, CRANES}


def test_a_name_that_cannot_be_used_or_is_not_there_is_told(memctl: Run) -> None:
    take_in(memctl, BOATS)
    assert memctl("snapshot", "create", "one").code == 0
    for name in ("HEAD", "../one", "One", "con", "one"):
        assert memctl("snapshot", "create", name).code == 2
    for command in ("restore", "delete"):
        missing = memctl("snapshot", command, "two", "--yes")
        assert (missing.code, "there are one" in missing.err) == (1, True)
    assert memctl("snapshot", "create", "one", "-k", "nowhere").code == 10
    memctl("kb", "archive", "default")
    assert memctl("snapshot", "create", "two", "-k", "default").code == 1


def test_upkeep_keeps_what_a_snapshot_needs_until_it_is_deleted(
    memctl: Run, tmp_path: Path
) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    take_in(memctl, CRANES)
    tidy(days=2)
    assert restore(memctl, "one")["documents"] == 1
    assert texts(memctl) == {BOATS}
    for name in snapshots(memctl):
        assert memctl("snapshot", "delete", name, "--yes").code == 0
    tidy(days=4)
    tidy(days=6)  # what the one before replaced has been replaced for long by now
    for name in ("documents", "memories"):
        assert len(list((table(tmp_path, name) / "_versions").glob("*.manifest"))) == 1
    assert texts(memctl) == {BOATS}


def test_cleaning_up_with_lances_own_tools_leaves_snapshots_whole(
    memctl: Run, tmp_path: Path
) -> None:
    import lance

    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    take_in(memctl, CRANES)
    for name in ("documents", "memories", "entities", "relations"):
        dataset = lance.dataset(str(table(tmp_path, name)))
        dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    restore(memctl, "one")
    assert texts(memctl) == {BOATS}


def test_decisions_on_names_go_back_and_the_query_log_does_not(memctl: Run) -> None:
    take_in(memctl, "Anna Berg met Tom Lund in Bergen.", "A. Berg paid Tom Lund.")
    memctl("snapshot", "create", "one")
    with Home(load_config({})).open("default") as base:
        assert len(base.graph.name_decisions().same) == 0
        base.graph.merge_names("Anna Berg", "Tom Lund")
        assert len(base.graph.name_decisions().same) == 1
    texts(memctl)
    restored = restore(memctl, "one")
    with Home(load_config({})).open("default") as base:
        assert len(base.graph.name_decisions().same) == 0
        assert [entry.question for entry in base.store.ledger.queries.recent()] == [QUESTION]
    restore(memctl, restored["saved_as"])
    with Home(load_config({})).open("default") as base:
        assert len(base.graph.name_decisions().same) == 1


def test_a_file_in_a_kept_inbox_is_taken_in_again_and_one_in_processed_is_not(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    vault = tmp_path / "vault"
    vault.mkdir()
    memctl("kb", "create", "default", "--inbox", str(vault))
    (vault / "boats.txt").write_text(BOATS)
    memctl("watch", "--once")
    memctl("snapshot", "create", "one")
    (vault / "boats.txt").write_text(CRANES)
    moved = tmp_path / "home/kb/default/inbox/notes.txt"
    moved.write_text("The harbour master is called Ida.")
    memctl("watch", "--once")
    assert texts(memctl) == {CRANES, "The harbour master is called Ida."}
    restore(memctl, "one")
    assert texts(memctl) == {BOATS}
    memctl("watch", "--once")
    assert texts(memctl) == {CRANES}
    assert (tmp_path / "home/kb/default/processed/notes.txt").exists()


def test_restoring_goes_back_over_a_change_of_the_embedder_and_forth_again(
    memctl: Run, tmp_path: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    take_in(memctl, CRANES)
    restored = restore(memctl, "one")

    def embedder() -> tuple[str, int]:
        pinned = memctl("kb", "show", "default", "-o", "json").json
        return pinned["embedder"], pinned["dimension"]

    assert embedder() == (BUILTIN_EMBEDDER, 256)
    assert texts(memctl, "vector") == {BOATS}
    take_in(memctl, "A third harbour is planned.")
    assert memctl("doctor").code == 0
    restore(memctl, restored["saved_as"])
    assert embedder() == ("endpoint/e", DIMENSION)
    assert texts(memctl, "vector") == {BOATS, CRANES}


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("kind", ["data", "_deletions", "_indices"])
def test_a_snapshot_with_a_damaged_file_is_told_and_not_restored(
    memctl: Run, tmp_path: Path, kind: str
) -> None:
    take_in(memctl, BOATS, CRANES, "The old pier was torn down.")
    tidy()
    pier = memctl("document", "list").rows[-1]["id"]
    assert memctl("document", "delete", pier, "--yes").code == 0
    memctl("snapshot", "create", "one")
    of_one = {path for path in (table(tmp_path, "memories") / kind).rglob("*") if path.is_file()}
    take_in(memctl, "The harbour has a new pier.")
    tidy()  # writes all files anew
    left = {path: path.read_bytes() for path in of_one if path.exists()}
    assert left
    known = texts(memctl)
    for hurt in (cut, zero, Path.unlink):
        for path, whole in left.items():
            path.write_bytes(whole)
            hurt(path)
        assert "missing or damaged" in snapshots(memctl)["one"]["problem"]
        (finding,) = (row for row in memctl("doctor").rows if row["verdict"] == "damaged")
        assert (finding["layer"], finding["subject"]) == ("snapshots", "one")
        assert finding["hint"] == "let it go: memctl snapshot delete one -k default"
        failed = memctl("snapshot", "restore", "one", "--yes")
        assert (failed.code, "nothing has been changed" in failed.err) == (12, True)
    assert (list(snapshots(memctl)), texts(memctl)) == (["one"], known)

    repaired = memctl("doctor", "--repair", "-o", "ndjson")
    assert (repaired.code, len(repaired.rows)) == (3, 1)
    assert "the snapshot one cannot be restored" in repaired.err
    assert memctl("snapshot", "delete", "one", "--yes").code == 0
    assert (memctl("doctor", "--repair").code, memctl("doctor").code) == (0, 0)
    assert texts(memctl) == known


def test_a_snapshot_of_which_rows_cannot_be_read_is_not_restored(
    memctl: Run, tmp_path: Path
) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    of_one = set((table(tmp_path, "memories") / "data").iterdir())
    take_in(memctl, CRANES)
    tidy()
    for path in of_one:
        whole = path.read_bytes()
        at = whole.index(BOATS.encode())  # the rows come first, then what says where they stand
        path.write_bytes(b"\xff" * at + whole[at:])
    assert memctl("doctor").code == 12
    failed = memctl("snapshot", "restore", "one", "--yes")
    assert (failed.code, "nothing has been changed" in failed.err) == (12, True)
    assert (list(snapshots(memctl)), texts(memctl)) == (["one"], {BOATS, CRANES})


def test_killed_while_restoring_it_is_as_if_nothing_had_been_done(
    memctl: Run, tmp_path: Path
) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    take_in(memctl, CRANES)
    program = (
        "import os; from memctl.cli.main import main\n"
        "from memctl.store.ledger.ledger import Ledger\n"
        "Ledger.set_head = lambda *_: os._exit(9)\n"
        "main(['snapshot', 'restore', 'one', '--yes'])"
    )
    killed = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, check=False)
    assert killed.returncode == 9
    assert list(snapshots(memctl)) == ["one"]
    assert texts(memctl) == {BOATS, CRANES}
    take_in(memctl, "A third harbour is planned.")
    assert len(texts(memctl)) == 3
    restore(memctl, "one")
    assert texts(memctl) == {BOATS}


def test_a_copy_of_the_folder_has_its_snapshots(memctl: Run, tmp_path: Path) -> None:
    take_in(memctl, BOATS)
    memctl("snapshot", "create", "one")
    take_in(memctl, CRANES)
    shutil.move(tmp_path / "home/kb/default", tmp_path / "home/kb/copy")
    assert memctl("snapshot", "restore", "one", "-k", "copy", "--yes").code == 0
    (document,) = memctl("document", "list", "-k", "copy").rows
    assert document["size"] == len(BOATS)


# --- while others write and read -----------------------------------------------------------------

_WRITER = """
import sys, time
from memctl.config import load_config
from memctl.home import Home
with Home(load_config({})).open("default") as base:
    for number in range(1_000_000):
        began = time.monotonic()
        (outcome,) = base.ingest(text=f"Note {number} of writer {sys.argv[1]}.").outcomes
        print(outcome.document_id, began, time.monotonic(), flush=True)
"""
_READER = """
from memctl.config import load_config
from memctl.home import Home
with Home(load_config({})).open("default") as base:
    while True:
        snapshot = base.store.snapshot()
        documents = set(snapshot.scan("documents", columns=["id"])["id"].to_pylist())
        named = set(snapshot.scan("memories", columns=["document_id"])["document_id"].to_pylist())
        assert documents == named, documents ^ named
        assert len(documents) >= 3
        print(len(documents), flush=True)
"""


def test_restoring_under_load_loses_and_mixes_nothing(memctl: Run, tmp_path: Path) -> None:
    take_in(memctl, BOATS, CRANES, "A third harbour is planned.")
    memctl("snapshot", "create", "one")
    kept = {row["id"] for row in memctl("document", "list").rows}
    rounds = 50 if IS_LONG else 2
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    programs = [_WRITER, _WRITER, _READER, _READER]
    workers = []
    for number, (log, program) in enumerate(zip(logs, programs, strict=True)):
        with log.open("w") as out:
            command = [sys.executable, "-c", program, str(number)]
            workers.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
    windows = []
    try:
        for _ in range(rounds):
            _wait_for_more(logs, workers)
            began = time.monotonic()  # which all processes have in common
            restore(memctl, "one")
            windows.append((began, time.monotonic()))
        _wait_for_more(logs, workers)
        assert [worker.poll() for worker in workers] == [None] * 4
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    written = [line.split() for log in logs[:2] for line in log.read_text().splitlines()]
    whole = [(row[0], float(row[1]), float(row[2])) for row in written if len(row) == 3]
    began, ended = windows[-1]
    there = {row["id"] for row in memctl("document", "list", "-n", "0").rows}
    assert kept | {id_ for id_, start, _ in whole if start > ended} <= there
    assert not {id_ for id_, _, end in whole if end < began} & there
    assert memctl("doctor").code == 0


def _wait_for_more(logs: list[Path], workers: list[subprocess.Popen[bytes]]) -> None:
    """Wait until each process has got two steps further; one that has ended never does."""
    wanted = [len(log.read_text().splitlines()) + 2 for log in logs]

    def has_more() -> bool:
        ended = [log.read_text() for log, w in zip(logs, workers, strict=True) if w.poll()]
        assert not ended, ended
        now = [len(log.read_text().splitlines()) for log in logs]
        return all(n >= least for n, least in zip(now, wanted, strict=True))

    wait_for(has_more)
