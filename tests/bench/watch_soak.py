"""Whether `memctl watch` grows: its memory and open files while small files keep coming (Linux).

    python tests/bench/watch_soak.py [--minutes 5] [--files-per-second 5] [--check]

The command is the real one in a process of its own, with its default settings, on a knowledge base
that consolidates at the shortest interval, a minute.  Text, Markdown, CSV and JSON lines are
dropped into its inbox; one file in twenty has the content of an earlier one, one is broken.
Memory and descriptors of the command and all its processes are read every second.  What it needs
to start is over in the first quarter, so the medians of the second and the last are compared:
what grows with every commit shows in between.  Some growth is honest, for the tables grow too.

With ``--check`` the script fails where the last quarter takes 15 % and 30 MB more memory than the
second, or 20 descriptors more, or where a file is missing at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ingest import Writer, resident, tree

MAX_GROWTH = 1.15
MAX_EXTRA_BYTES = 30_000_000
MAX_EXTRA_FILES = 20
PATIENCE_SECONDS = 120.0
KB = "soak"


# --- files ---------------------------------------------------------------------------------------


class Dropper:
    """Makes up small files, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._records = Writer(seed).records(1 << 40)
        self._earlier: list[tuple[str, bytes]] = []

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents."""
        number = 0
        while True:
            number += 1
            suffix, content = self._next(number)
            yield f"{number:07}{suffix}", content

    def _next(self, number: int) -> tuple[str, bytes]:
        if number % 20 == 0:
            return self._random.choice([(".txt", b""), (".pdf", b"%PDF-1.4 nothing more")])
        if number % 20 == 10:
            return self._random.choice(self._earlier)
        suffix, make = self._random.choice(
            [
                (".txt", self._text),
                (".md", self._markdown),
                (".csv", self._csv),
                (".jsonl", self._lines),
            ]
        )
        made = suffix, make().encode()
        self._earlier = [*self._earlier[-200:], made]
        return made

    def _sentences(self) -> str:
        return str(next(self._records)["text"])

    def _text(self) -> str:
        return "\n\n".join(self._sentences() for _ in range(self._random.randint(1, 6)))

    def _markdown(self) -> str:
        return f"# {self._sentences()[:40]}\n\n{self._text()}\n"

    def _csv(self) -> str:
        rows = [self._sentences() for _ in range(self._random.randint(2, 12))]
        return "number,note\n" + "".join(f'{n},"{row}"\n' for n, row in enumerate(rows))

    def _lines(self) -> str:
        count = self._random.randint(2, 12)
        return "".join(json.dumps(next(self._records)) + "\n" for _ in range(count))


# --- the command ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """What the command and its processes took at one moment."""

    seconds: float
    bytes: int
    files: int


@dataclass
class Watch:
    """The command while it runs, and what it has said."""

    home: Path
    process: subprocess.Popen[str] = field(init=False)
    said: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.home / "kb" / KB

    def __post_init__(self) -> None:
        memctl = [sys.executable, "-m", "memctl"]
        environment = {**os.environ, "MEMCTL_HOME": str(self.home)}
        create = [*memctl, "kb", "create", KB, "--consolidate-interval", "1", "-q"]
        subprocess.run(create, env=environment, check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [*memctl, "watch"], env=environment, stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._wait_for(lambda: self.said["serving"] > 0, "it did not start")

    def sample(self, began: float) -> None:
        """Note what it takes now."""
        pids = tree(self.process.pid)
        taken = sum(map(resident, pids)), sum(map(descriptors, pids))
        self.samples.append(Sample(time.monotonic() - began, *taken))

    def stop(self) -> None:
        """Wait until the inbox is empty, then end it as a service would be."""
        inbox = self.folder / "inbox"
        try:
            self._wait_for(lambda: not any(inbox.iterdir()), "the inbox is not empty")
        finally:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(60)
        self._listener.join()
        if code:
            raise SystemExit(f"the command ended with {code}")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said[json.loads(line)["kind"]] += 1

    def _wait_for(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(otherwise)
            time.sleep(0.1)


def descriptors(pid: int) -> int:
    """How many files a process has open; 0 when it is gone."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def soak(watch: Watch, seconds: float, rate: float, seed: int) -> int:
    """Drop files at a rate while sampling every second; return how many there were."""
    inbox, files = watch.folder / "inbox", Dropper(seed).files()
    began, dropped = time.monotonic(), 0
    while (now := time.monotonic() - began) < seconds:
        if now >= len(watch.samples):
            watch.sample(began)
        while dropped < now * rate:
            name, content = next(files)
            (inbox / name).write_bytes(content)
            dropped += 1
        time.sleep(0.05)
    return dropped


# --- the whole -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """What the run came to."""

    dropped: int
    processed: int
    failed: int
    documents: int
    memories: int
    commits: int
    """Versions of the table of memories: one for each commit of files, some for each upkeep."""

    @property
    def lost(self) -> int:
        return self.dropped - self.processed - self.failed


def result_of(watch: Watch, dropped: int) -> Result:
    """Count what there is at the end."""
    from memctl.store.store import Store

    moved = [path.name for path in (watch.folder / "processed").iterdir()]
    failed = [path.name for path in (watch.folder / "failed").iterdir()]
    with Store.open(watch.folder) as store:
        snapshot = store.snapshot()
        return Result(
            dropped=dropped,
            processed=len(moved),
            failed=sum(not name.endswith(".reason.json") for name in failed),
            documents=snapshot.count("documents"),
            memories=snapshot.count("memories"),
            commits=store.ledger.head()["memories"],
        )


def quarters(samples: Sequence[Sample]) -> list[Sample]:
    """The medians of each quarter of a run."""
    size = len(samples) // 4
    parts = [samples[at * size : (at + 1) * size] for at in range(4)]
    return [
        Sample(
            part[-1].seconds,
            int(statistics.median(sample.bytes for sample in part)),
            int(statistics.median(sample.files for sample in part)),
        )
        for part in parts
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--files-per-second", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=Path, help="write every sample to this CSV file")
    parser.add_argument("--check", action="store_true", help="fail when a bound is broken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        watch = Watch(Path(name))
        try:
            dropped = soak(watch, 60 * options.minutes, options.files_per_second, options.seed)
        finally:
            watch.stop()
        result = result_of(watch, dropped)
    if options.samples:
        rows = (f"{s.seconds:.1f},{s.bytes},{s.files}\n" for s in watch.samples)
        options.samples.write_text("seconds,bytes,files\n" + "".join(rows))
    parts = quarters(watch.samples)
    show(parts, watch, result)
    if options.check and (grows(parts) or result.lost):
        raise SystemExit("a bound is broken")


def grows(parts: Sequence[Sample]) -> bool:
    """Whether the last quarter took more than the second by more than is honest."""
    second, last = parts[1], parts[3]
    return (
        last.bytes > MAX_GROWTH * second.bytes + MAX_EXTRA_BYTES
        or last.files > second.files + MAX_EXTRA_FILES
    )


def show(parts: Sequence[Sample], watch: Watch, result: Result) -> None:
    """Print a table."""
    second, last = parts[1], parts[3]
    ends = "".join(f"{f'to {part.seconds:.0f} s':>12}" for part in parts)
    print(f"{'median of the time':20}{ends}   4th/2nd")
    memory = "".join(f"{part.bytes / 1e6:9.0f} MB" for part in parts)
    print(f"{'resident memory':20}{memory}{last.bytes / second.bytes:10.2f}")
    files = "".join(f"{part.files:12}" for part in parts)
    print(f"{'open descriptors':20}{files}{last.files - second.files:+10}")
    print(f"{'largest memory':20}{max(s.bytes for s in watch.samples) / 1e6:9.0f} MB")
    for name in ("dropped", "processed", "failed", "lost", "documents", "memories", "commits"):
        print(f"{name:20}{getattr(result, name):12,}")
    print(f"{'consolidations':20}{watch.said['consolidated']:12,}")


if __name__ == "__main__":
    main()
