"""Many files at once, files that grow, files far bigger than memory, and names of every kind.

How much is bounded; ``MEMCTL_LONG_TESTS=1`` makes it 20,000 files, 2 GB and 10,000 names.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Timer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_form import IS_LONG
from waiting import wait_for
from watched import Daemon, Place

from memctl.ingest.discovery.skip_rules import may_be_taken
from memctl.watch import inbox_scanner
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService

pytestmark = pytest.mark.usefixtures("quick_reading")

FILES, PATIENCE_SECONDS = (20_000, 7_200) if IS_LONG else (240, 600)
NAMES = 10_000 if IS_LONG else 200
SMALL_BYTES, LARGE_BYTES = (200 << 20, 2 << 30) if IS_LONG else (1 << 19, 2 << 20)
MAX_GROWTH = 1200 << 20 if IS_LONG else 48 << 20
"""The index of the words of some million memories is gathered in half a gigabyte at a time, and
made in one; that of a small file never needs as much."""

MEASURED = """
import resource, sys
from memctl.cli.main import run
code = run(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
sys.exit(code)
"""


def started(place: Place, *arguments: str) -> subprocess.Popen[str]:
    """Start a command that says at its end how much memory it had."""
    environment = os.environ | {
        "MEMCTL_HOME": str(place.home.config.home),
        "MEMCTL_WATCH_SETTLE_SECONDS": "0",
    }
    command = [sys.executable, "-c", MEASURED, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def peak(process: subprocess.Popen[str]) -> int:
    """Wait for a command that must succeed; return the most memory that it had, in bytes."""
    out, _ = process.communicate()
    assert process.returncode == 0
    return int(out.rsplit("peak ", 1)[1])


def watched(place: Place, names: range) -> int:
    """Drop files before a watcher, all at once; return its peak when it has taken them in."""
    with started(place, "watch") as process:
        assert process.stdout is not None
        process.stdout.readline()  # it serves the knowledge base from here on
        for number in names:
            place.drop(f"{number % 50}/{number}.txt", f"Letter {number} of the harbour.")
        patience = Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        left = len(names)
        while left and (line := process.stdout.readline()):
            left -= json.loads(line)["kind"] == "ingested"
        patience.cancel()
        assert not left
        process.send_signal(signal.SIGTERM)
        return peak(process)


def test_many_small_files_dropped_at_once_are_all_taken_in_little_memory(place: Place) -> None:
    tenth = FILES // 10
    few, many = watched(place, range(tenth)), watched(place, range(tenth, FILES))
    assert len(place.tree(place.layout.processed)) == FILES
    assert place.tree(place.layout.inbox) == place.tree(place.layout.processing) == []
    assert len(place.rows("documents", "id")) == FILES
    assert many < 1.5 * few, (few, many)


def test_a_text_far_bigger_than_another_is_taken_in_about_as_much_memory(
    place: Place, tmp_path: Path
) -> None:
    def written(size: int) -> Path:
        path = tmp_path / f"{size}.txt"
        with path.open("w") as file:
            number = 0
            while file.tell() < size:
                number += 1
                file.writelines(f"Line {number}.{n} tells of crane {n}.\n" for n in range(1000))
                file.write("\n")
        return path

    small, large = written(SMALL_BYTES), written(LARGE_BYTES)
    options = ("ingest", "-k", "notes", "-q")
    before, after = (peak(started(place, *options, str(path))) for path in (small, large))
    print(f"{SMALL_BYTES} bytes: {before}, {LARGE_BYTES} bytes: {after}")
    assert after - before < MAX_GROWTH
    sizes = [row["size"] for row in place.rows("documents", "size")]
    assert sum(sizes) >= small.stat().st_size + large.stat().st_size


class Stopwatch:
    """The clock by which files settle, which goes on only when told to."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Counted(WatchedBases):
    """Knowledge bases that count how often the watcher has come round."""

    rounds = 0

    def names(self) -> list[str]:
        self.rounds += 1
        return super().names()


def test_a_slowly_written_file_is_ingested_once_and_whole(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system does not tell who has a file open, too."""
    monkeypatch.setattr(inbox_scanner, "is_being_written", lambda path: False)
    clock = Stopwatch()
    options = WatchOptions(settle_seconds=2.0, rescan_seconds=0.05, poll=True)
    bases = Counted(place.home)
    service = WatchService(bases, options, place.events.append, monotonic=clock)
    lines = [f"Line {number} of a log that grows.\n" for number in range(10)]
    with Daemon(place, service):
        with place.drop("slow.txt").open("a") as file:
            for line in lines:
                file.write(line)
                file.flush()
                looked = bases.rounds + 2
                wait_for(lambda: bases.rounds >= looked)  # noqa: B023 - it is waited for
                clock.seconds += 1.5
                assert place.tree(place.layout.inbox) == ["slow.txt"]
        clock.seconds += 3600.0
        wait_for(lambda: place.tree(place.layout.processed) == ["slow.txt"])
    assert [row["text"].split() for row in place.rows("documents", "text")] == [
        "".join(lines).split()
    ]


def _is_name(name: bytes) -> bool:
    return name not in (b".", b"..") and 0 < len(name) <= 255


letters = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)
octets = st.binary(min_size=1, max_size=255).map(lambda raw: raw.translate(None, b"/\0"))
endings = st.sampled_from([b"", b".txt", b".md", b".json", b".srt", b".pdf", b".tmp"])
names = st.tuples(st.one_of(letters.map(os.fsencode), octets), endings).map(b"".join)


def test_files_of_any_name_meet_their_fate_exactly_once(place: Place) -> None:
    found: set[bytes] = set()

    @settings(max_examples=NAMES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(names.filter(_is_name))
    def gather(name: bytes) -> None:
        found.add(name)

    gather()
    assert len(found) > NAMES // 2
    left: list[bytes] = []
    sent: list[bytes] = []
    for number, name in enumerate(sorted(found)):
        content = f"Letter {number} of the harbour."
        place.drop(name, content)
        (sent if may_be_taken(os.fsdecode(name)) else left).append(content.encode())
    place.drain()
    ends = (place.layout.processed, place.layout.failed)
    files = [path for end in ends for path in end.iterdir()]
    done = Counter(path.read_bytes() for path in files)
    assert {content: done[content] for content in sent} == dict.fromkeys(sent, 1)
    assert Counter(path.read_bytes() for path in place.layout.inbox.iterdir()) == Counter(left)
    assert place.tree(place.layout.processing) == []
    reasons = [path for path in files if path.name.endswith(".reason.json")]
    assert len(files) == len(sent) + len(reasons)
