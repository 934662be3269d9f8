"""A migration that is killed, or for which the disk has no room, is done or has not begun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from faults.acts import require_sound, state_of
from faults.test_disk import small_disk
from grown import GROWN_VERSION, grown_package, run_all, sample_home
from killed import images_of
from long_form import IS_LONG
from waiting import PATIENCE

from memctl.schema.migrations import FIRST_VERSION, SCHEMA_VERSION
from memctl.store.store import Store

__all__ = ["small_disk"]

KB = ("-k", "notes")
ADD = ("memory", "add", "The spare key is with Ida.", *KB)
KILLS = 30 if IS_LONG else 3
MIGRATING = """
import json, sys, time
from multiprocessing import get_context
from pathlib import Path
import lance
from memctl.schema.migrations import SCHEMA_VERSION
from memctl.store.store import Store

assert SCHEMA_VERSION == int(sys.argv[2]), "it has to import the copy"

def migrate(home, ready):
    with Store.open(Path(home, "kb/notes")) as store:
        store.snapshot().scan("memories")
        ready.send_bytes(b"")
        with store.write():
            pass

forking = get_context("fork")  # nothing is imported twice; the engine has not been used yet
homes, seconds = json.loads(sys.argv[1]), 0.0
for number, home in enumerate(homes):
    ready, sender = forking.Pipe(duplex=False)
    migrating = forking.Process(target=migrate, args=(home, sender))
    migrating.start()
    ready.recv_bytes()
    began = time.monotonic()
    migrating.join(seconds * number / (len(homes) - 1) if number else None)
    migrating.kill()
    migrating.join()
    assert number or migrating.exitcode == 0
    seconds = seconds or time.monotonic() - began
"""
RACING = """
import json, os, sys
from multiprocessing import get_context
import lance
from memctl.cli.main import run

def act(gate, home, words):
    sys.stdout = open(os.devnull, "w")
    gate.wait()
    sys.exit(run(["--home", home, *words]))

forking = get_context("fork")  # nothing is imported twice; the engine has not been used yet
homes, commands = map(json.loads, sys.argv[1:])
for home in homes:
    gate = forking.Barrier(len(commands))
    all_ = [forking.Process(target=act, args=(gate, home, words)) for words in commands]
    for each in all_:
        each.start()
    for each in all_:
        each.join()
    print(json.dumps([each.exitcode for each in all_]))
"""
LOOK = """
import json
from memctl.store.ledger.ledger import Ledger

def look(folder):
    with Store.open(folder) as store:
        snapshot = store.snapshot()
        texts = snapshot.scan("memories", columns=["text", "mood", "vector"])
        moods = set(texts["mood"].to_pylist())
        assert moods == {"calm"} and snapshot.count("remarks") == 0, moods
        assert texts["vector"].null_count == 0
        return store.ledger.schema_version(), sorted(texts["text"].to_pylist())
"""
SWEEP = (
    "python",
    LOOK
    + """
for home in json.loads(Path("homes.json").read_text()):
    folder = Path(home) / "kb/notes"
    before = look(folder)
    with Store.open(folder) as store:
        store.upkeep()
    print(json.dumps([before, look(folder)]))
""",
)
CRAMPED = (
    "python",
    LOOK
    + """
from memctl.errors import DiskRefused
from memctl.schema.migrations import SCHEMA_VERSION

disk = Path(json.loads(Path("disk.json").read_text()))
error = "none yet"
for room in range(3 << 14, 1 << 22, 1 << 13):
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        with contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        ballast.truncate(max(ballast.tell() - room, 0))
    try:
        with Store.open(store.folder) as cramped:
            cramped.upkeep()
        error = ""
    except DiskRefused as refused:
        error = refused.message
    schema, texts = look(store.folder)
    print(json.dumps([schema, error, texts]))
    if schema == SCHEMA_VERSION:
        break
""",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grown_package(tmp_path_factory.mktemp("grown"))


@pytest.fixture
def grown(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have programs import the copy."""
    monkeypatch.setenv("PYTHONPATH", str(package))
    return package


@pytest.fixture
def home(grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = sample_home(1, tmp_path)
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    return home


def require_done_or_not_begun(grown: Path, homes: list[Path]) -> list[int]:
    """Read each home and write to it; return the schema versions that they had before."""
    (grown / "homes.json").write_text(json.dumps([str(home) for home in homes]))
    [done] = run_all(grown, homes[0], SWEEP, patience=PATIENCE + 30 * len(homes))
    assert done.code == 0, done.err
    states = [json.loads(line) for line in done.out.splitlines()]
    assert len(states) == len(homes)
    for (schema, before), (schema_after, after) in states:
        assert schema in (1, GROWN_VERSION)
        assert schema_after == GROWN_VERSION
        assert before == after, "nothing is lost, and nothing is there twice"
    return [schema for (schema, _), _ in states]


def test_killed_at_any_step_a_migration_is_done_or_has_not_begun(
    grown: Path, home: Path, tmp_path: Path
) -> None:
    images = images_of(home, tmp_path / "images", "compact", *KB)
    schemas = require_done_or_not_begun(grown, [image.home for image in images])
    assert schemas == sorted(schemas), "it is done from one step on"
    assert {*schemas} == {1, GROWN_VERSION}


def test_killed_at_any_instant_a_migration_is_done_or_has_not_begun(
    grown: Path, tmp_path: Path
) -> None:
    homes = [sample_home(1, tmp_path / str(number)) for number in range(KILLS + 1)]
    subprocess.run(
        [sys.executable, "-c", MIGRATING, json.dumps(list(map(str, homes))), str(GROWN_VERSION)],
        cwd=grown,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE + 30 * KILLS,
        check=True,
    )
    schemas = require_done_or_not_begun(grown, homes)
    assert schemas[0] == GROWN_VERSION
    print(f"{schemas.count(1)} of {KILLS} killed before it was done")


def test_processes_that_open_an_older_home_at_once_all_do_their_work(tmp_path: Path) -> None:
    schemas = range(FIRST_VERSION, SCHEMA_VERSION + 1)
    homes = [sample_home(schema, tmp_path / str(schema)) for schema in schemas]
    commands = [
        ADD,
        ("memory", "add", "The cellar key is with Cleo.", *KB),
        ("query", "Who keeps the keys?", *KB),
        ("session", "start", "--id", "talk", *KB),
    ]
    done = subprocess.run(
        [sys.executable, "-c", RACING, json.dumps(list(map(str, homes))), json.dumps(commands)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[0] * 4] * len(homes)
    for home in homes:
        require_sound(home)
        [state] = state_of(home).values()
        texts = [row[2] for row in state["memories"].elements()]
        assert texts.count("The spare key is with Ida.") == 1
        assert texts.count("The cellar key is with Cleo.") == 1
        with Store.open(home / "kb/notes") as store:
            assert store.ledger.schema_version() == SCHEMA_VERSION
            assert store.ledger.sessions.count() == 1


def test_a_disk_that_is_full_leaves_the_old_tables_readable(grown: Path, small_disk: Path) -> None:
    home = sample_home(1, small_disk)
    (grown / "disk.json").write_text(json.dumps(str(small_disk)))
    [done] = run_all(grown, home, CRAMPED)
    assert done.code == 0, done.err
    *refused, (schema, _, texts) = (json.loads(line) for line in done.out.splitlines())
    assert len(refused) >= 3, "there was room for all of it from the beginning"
    assert {each[0] for each in refused} == {1}
    assert all("space" in each[1] or "full" in each[1] for each in refused), refused
    assert schema == GROWN_VERSION
    assert all(each[2] == texts for each in refused)
