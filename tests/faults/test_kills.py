"""Killed at any moment, and killed again, it loses nothing and has nothing twice.

How long it goes on is bounded; ``MEMCTL_LONG_TESTS=1`` has it go on as long as it should before a
release.  The seed is printed with a failure, and ``MEMCTL_SEED`` sets it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from long_form import IS_LONG
from watched import Place, memctl

from memctl.store.tables.filter_expressions import col

pytestmark = pytest.mark.usefixtures("quick_reading")

FILES, KILLS = (300, 60) if IS_LONG else (24, 3)
OTHER_KILLS = 20 if IS_LONG else 2
PATIENCE = 3_600 if IS_LONG else 300
CRANES, HELD = (5_000_000, 50_000) if IS_LONG else (30_000, 200)
"""Lines of a big file, and how many rows of it are held back before they are written."""
LETTERS = 600 if IS_LONG else 200
EMPTY, BROKEN = b"", b"%PDF-1.4 nothing more"
SAMPLES = Path(__file__).parents[2] / "sample_inbox"


def done(place: Place, *arguments: str, codes: Sequence[int] = (0,)) -> str:
    """Run a command to its end; return what it said."""
    with memctl(place, *arguments) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode in codes, err
    return out


def killed_after(process: subprocess.Popen[str], seconds: float) -> None:
    with process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def mixed(number: int) -> tuple[bytes, bytes]:
    """The name and content of one file out of many kinds."""
    text = f"Letter {number}: berth {number * 7 % 101} of the harbour has crane {number}."
    kinds: list[tuple[str | bytes, str | bytes]] = [
        (f"{number}.txt", text),
        (f"notes {number}.md", f"# Berth {number}\n\n{text}\n\n- one\n- two\n"),
        (f"table-{number}.csv", f"berth,crane\n{number},{number}\n"),
        (f"{number}.json", json.dumps({"berth": number, "text": text})),
        (f"sub/folder {number}/überfahrt-{number}.txt", text + " Ü."),
        (f"two\nlines {number}.txt", text + " On two lines."),
        (b"caf\xe9-%d.txt" % number, text + " Not UTF-8."),
        (f"empty-{number}.txt", EMPTY),
        (f"broken-{number}.pdf", BROKEN),
        (f"again-{number}.txt", "The same words in several files."),
        (f"offer-{number}.pdf", (SAMPLES / "fit-out budget.pdf").read_bytes()),
        (f"日本語-{number}.txt", text + " 日本語."),
    ]
    name, content = kinds[number % len(kinds)]
    return os.fsencode(name), content.encode() if isinstance(content, str) else content


def everything(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def require_sound(place: Place) -> None:
    """Nothing is damaged, half there, or hangs on something that is not there."""
    assert place.damage() == []
    done(place, "doctor", "-k", "notes")
    with place.open() as base:
        snapshot = base.store.snapshot()
        documents = snapshot.scan(
            "documents", columns=["id", "sha256", "part", "status"]
        ).to_pylist()
        memories = snapshot.scan("memories", columns=["id", "document_id"]).to_pylist()
        whole = [row for row in documents if row["status"] == "indexed"]
        evidence = snapshot.scan("memories", col("level") == "evidence", ["document_id"])
    ids = {row["id"] for row in documents}
    assert len(ids) == len(documents)
    live = {(row["sha256"], row["part"]) for row in whole}
    assert len(live) == len(whole), "a document is there twice"
    assert len({row["id"] for row in memories}) == len(memories)
    assert {row["document_id"] for row in memories if row["document_id"]} <= ids, "an orphan"
    assert ids <= set(evidence["document_id"].to_pylist()), "a document has no passage"


def test_the_watcher_killed_again_and_again_takes_every_file_exactly_once(
    place: Place, dice: random.Random
) -> None:
    files = dict(mixed(number) for number in range(FILES))
    waiting = list(files)
    dice.shuffle(waiting)
    for kill in range(KILLS):
        share = -(-len(waiting) // (KILLS - kill))
        for name in waiting[:share]:
            place.drop(name, files[name])
        waiting = waiting[share:]
        watcher = memctl(place, "watch")
        assert watcher.stdout is not None
        watcher.stdout.readline()  # it serves the knowledge base from here on
        killed_after(watcher, dice.uniform(0.0, 1.5))
    done(place, "watch", "--once", codes=(0, 3))
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    reasons = [json.loads(path.read_text()) for path in place.layout.failed.rglob("*.reason.json")]
    fails = [each for each in files.values() if each == BROKEN]
    assert len(reasons) == len(fails), reasons
    failed = [each for each in everything(place.layout.failed) if each == BROKEN]
    assert Counter(failed) == Counter(fails)
    taken = Counter(everything(place.layout.processed))
    assert taken == Counter(files.values()) - Counter(fails)
    kept = [content for content in taken if content]  # nothing is remembered of an empty file
    assert len(place.rows("documents", "id")) == len(kept), "each content is one document"
    with place.open() as base:
        entries = base.store.ledger.files.entries()
    assert Counter(entry.state for entry in entries) == Counter(
        {"done": taken.total(), "failed": len(fails)}
    )
    assert all(os.path.lexists(entry.path) for entry in entries)
    require_sound(place)


WATCH = """
import os, signal, sys
from memctl.cli.main import run
from memctl.store.tables import transaction

flush, written = transaction.Transaction._flush, []

def killed_by_the_second(self, table):
    flush(self, table)
    written.append(table)
    if written.count("memories") == 2:
        os.kill(os.getpid(), signal.SIGKILL)

transaction.ROWS_HELD = {held}
transaction.Transaction._flush = killed_by_the_second
os.environ["MEMCTL_WATCH_SETTLE_SECONDS"] = "0"
run(["--home", {home!r}, "watch"])
"""


def test_a_big_file_killed_halfway_is_taken_once_and_leaves_nothing_half_written(
    place: Place,
) -> None:
    def files_of_rows() -> set[Path]:
        return set((place.layout.folder / "lance" / "memories.lance" / "data").iterdir())

    done(place, "ingest", "-k", "notes", "--text", "The keys are with Ann.")
    before = files_of_rows()
    lines = (f"Crane {n} of berth {n % 101} lifts {n % 7} tons.\n\n" for n in range(CRANES))
    big = place.drop("big.txt", "".join(lines)).read_bytes()
    program = WATCH.format(held=HELD, home=str(place.home.config.home))
    for _ in range(2):
        command = [sys.executable, "-c", program]
        watcher = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        assert watcher.returncode == -signal.SIGKILL
        assert len(files_of_rows() - before) >= 2
        assert [row["source"] for row in place.rows("documents", "source")] == ["text"]
    done(place, "memory", "add", "-k", "notes", "The lamps are with Bo.")
    assert len(files_of_rows() - before) == 1, "what was cut off is still there"
    done(place, "watch", "--once")
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    assert everything(place.layout.processed) == [big]
    parts = place.rows("documents", "text")
    assert sum(row["text"].count("Crane ") for row in parts) == CRANES
    require_sound(place)


@pytest.fixture
def letters(place: Place, tmp_path: Path) -> Path:
    """A JSON lines file of letters, half of which are remembered already."""
    lines = [
        json.dumps({"id": f"l{n}", "text": f"Ann writes letter {n} about crane {n % 7} in May."})
        for n in range(LETTERS)
    ]
    (tmp_path / "half.jsonl").write_text("\n".join(lines[: LETTERS // 2]))
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    done(place, "ingest", "-k", "notes", "--jsonl", str(tmp_path / "half.jsonl"))
    return tmp_path / "all.jsonl"


def test_an_ingest_killed_at_any_moment_is_whole_when_it_is_run_again(
    place: Place, letters: Path, dice: random.Random
) -> None:
    ingest = ["ingest", "-k", "notes", "--jsonl", str(letters)]
    for _ in range(OTHER_KILLS):
        killed_after(memctl(place, *ingest), dice.uniform(0.3, 2.0))
    done(place, *ingest)
    rows = place.rows("documents", "external_id")
    assert sorted(row["external_id"] for row in rows) == sorted(f"l{n}" for n in range(LETTERS))
    require_sound(place)


def test_a_consolidation_killed_at_any_moment_is_as_if_it_had_not_been(
    place: Place, letters: Path, dice: random.Random
) -> None:
    before = {row["id"]: row["text"] for row in place.rows("memories", "id", "text")}
    for _ in range(OTHER_KILLS):
        killed_after(memctl(place, "consolidate", "-k", "notes"), dice.uniform(0.5, 3.0))
    done(place, "consolidate", "-k", "notes")
    after = {row["id"]: row["text"] for row in place.rows("memories", "id", "text")}
    assert before.items() <= after.items()
    require_sound(place)
    (report,) = json.loads(done(place, "consolidate", "-k", "notes", "-o", "json"))
    assert report["examined"] == 0


def test_an_edit_killed_at_any_moment_is_made_or_not(place: Place, dice: random.Random) -> None:
    done(place, "memory", "add", "-k", "notes", "The keys are with Ann.")
    said = "The keys are with Ann."
    for number in range(OTHER_KILLS):
        (row,) = _holding(place)
        wanted = f"The keys are with person {number}."
        edit = memctl(place, "memory", "edit", row["id"], "-k", "notes", "--text", wanted)
        killed_after(edit, dice.uniform(0.3, 1.5))
        (row,) = _holding(place)
        assert row["text"] in (said, wanted)
        said = row["text"]
    assert place.damage() == []


def _holding(place: Place) -> list[dict[str, object]]:
    rows = place.rows("memories", "id", "text", "valid_to", "level")
    return [row for row in rows if row["valid_to"] is None and row["level"] == "memory"]


UPKEEP = """
import sys
from pathlib import Path
from memctl.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    print("open", flush=True)
    store.upkeep(force=True)
"""


def test_an_upkeep_killed_at_any_moment_changes_nothing_that_is_read(
    place: Place, letters: Path, dice: random.Random
) -> None:
    def state() -> list[dict[str, object]]:
        return sorted(place.rows("memories", "id", "text", "vector"), key=lambda row: row["id"])

    for number in range(OTHER_KILLS):
        done(place, "ingest", "-k", "notes", "--text", f"One more letter, the {number}. of June.")
        before = state()
        command = [sys.executable, "-c", UPKEEP, str(place.layout.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            killed_after(process, dice.uniform(0.0, 0.6))
        assert state() == before
    done(place, "ingest", "-k", "notes", "--text", "The last letter.")
    require_sound(place)
