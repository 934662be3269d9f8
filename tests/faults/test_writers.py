"""Several processes write to one knowledge base and others read it: nothing is lost or doubled.

``MEMCTL_LONG_TESTS=1`` has them go on for a minute.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from long_form import IS_LONG
from waiting import PATIENCE
from watched import Place, memctl

pytestmark = pytest.mark.usefixtures("quick_reading")

SECONDS = 60 if IS_LONG else 3

WRITER = """
import json, sys, time
from pathlib import Path
from memctl.config import load_config
from memctl.home import Home

home, task, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
base = Home(load_config({"home": home}, {})).open("notes")
number = 0
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
while time.monotonic() < end:
    if task == "ingest":
        parts = "\\n\\n".join(f"Part {n} of report {number} is on crane {n}." for n in range(20))
        base.ingest(text=parts)
    elif task == "memory":
        memory = base.memories.add(f"Statement {number} is about the harbour.")
        base.memories.edit(memory.id, text=f"Statement {number} is about the pier.")
    elif task == "consolidate":
        base.consolidate()
    elif task == "drop":
        path = base.layout.inbox / f".{number}.part"
        path.write_text(f"Letter {number} from the inbox is about the ferry.")
        path.rename(base.layout.inbox / f"{number}.txt")
        time.sleep(0.05)
    number += 1
print(json.dumps({"number": number}))
"""

READER = """
import json, sys, time
from memctl.config import load_config
from memctl.home import Home
from memctl.store.tables.filter_expressions import col

home, seconds = sys.argv[1], float(sys.argv[3])
base = Home(load_config({"home": home}, {})).open("notes")
reads, torn = 0, []
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
while time.monotonic() < end:
    snapshot = base.store.snapshot()
    documents = snapshot.scan("documents", columns=["id", "size"]).to_pylist()
    evidence = snapshot.scan("memories", col("level") == "evidence", ["document_id", "end"])
    ends = {}
    for row in evidence.to_pylist():
        ends[row["document_id"]] = max(ends.get(row["document_id"], 0), row["end"])
    torn += [row["id"] for row in documents if ends.pop(row["id"], 0) < row["size"] - 1]
    torn += list(ends)
    base.query("What is about the harbour?")
    reads += 1
print(json.dumps({"reads": reads, "torn": torn}))
"""


class Worker:
    """A process that begins when all are ready."""

    def __init__(self, place: Place, script: str, task: str = "") -> None:
        command = [sys.executable, "-c", script, str(place.home.config.home), task, str(SECONDS)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def report(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0
        return dict(json.loads(out))


def test_counts_match_exactly_and_nobody_sees_half_a_document(place: Place) -> None:
    watcher = memctl(place, "watch")
    tasks = ("ingest", "memory", "consolidate", "drop")
    writers = {task: Worker(place, WRITER, task) for task in tasks}
    readers = [Worker(place, READER) for _ in range(2)]
    for worker in (*writers.values(), *readers):
        worker.ready()
    for worker in (*writers.values(), *readers):
        worker.go()
    counts = {task: int(worker.report()["number"]) for task, worker in writers.items()}
    for reader in readers:
        report = reader.report()
        assert report["torn"] == []
        assert report["reads"]
    watcher.send_signal(signal.SIGTERM)
    _, err = watcher.communicate(timeout=PATIENCE)
    assert watcher.returncode == 0, err
    place.drain()
    assert min(counts.values()) > 0
    assert len(place.tree(place.layout.processed)) == counts["drop"]
    assert place.tree(place.layout.failed) == []
    documents = Counter(row["sha256"] for row in place.rows("documents", "sha256"))
    assert documents.total() == len(documents) == counts["ingest"] + counts["drop"]
    memories = place.rows("memories", "id", "text", "method", "document_id", "valid_to")
    assert len({row["id"] for row in memories}) == len(memories)
    stated = [row for row in memories if row["method"] == "stated"]
    assert Counter(row["text"] for row in stated if row["valid_to"] is None) == Counter(
        f"Statement {number} is about the pier." for number in range(counts["memory"])
    )
    assert Counter(row["text"] for row in stated if row["valid_to"] is not None) == Counter(
        f"Statement {number} is about the harbour." for number in range(counts["memory"])
    )
    parts = {row["text"] for row in memories if row["text"].startswith("Part 0 of report")}
    assert len(parts) == counts["ingest"]
    assert place.damage() == []


def test_a_command_that_does_not_wait_names_the_writer_and_exits_with_11(place: Place) -> None:
    with place.open() as base, base.store.write():
        with memctl(place, "ingest", "-k", "notes", "--text", "x y z", wait="0") as second:
            _, err = second.communicate(timeout=PATIENCE)
        with memctl(place, "status", "-o", "json") as status:
            (row,) = json.loads(status.communicate(timeout=PATIENCE)[0])
        with memctl(place, "query", "x y z") as reader:
            reader.communicate(timeout=PATIENCE)
    assert second.returncode == 11
    assert f"process {os.getpid()} on " in err
    assert row["writer"] == os.getpid()
    assert reader.returncode == 0
    with memctl(place, "status", "-o", "json") as status:
        (row,) = json.loads(status.communicate(timeout=PATIENCE)[0])
    assert row["writer"] is None
    with memctl(place, "ingest", "-k", "notes", "--text", "x y z", wait="0") as third:
        third.communicate(timeout=PATIENCE)
    assert third.returncode == 0


def test_a_lock_of_a_killed_process_is_nobodys(place: Place) -> None:
    script = "import sys, time\n" + WRITER.split("number = 0")[0].replace(
        'print("ready", flush=True)', ""
    )
    holds = "with base.store.write():\n    print('ready', flush=True)\n    time.sleep(600)\n"
    worker = Worker(place, script + holds)
    worker.ready()
    worker.process.kill()
    worker.process.communicate()
    with memctl(place, "ingest", "-k", "notes", "--text", "x y z", wait="0") as second:
        second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
