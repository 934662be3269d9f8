"""How fast `memctl ingest --jsonl` takes in short records, against the bare sum of its parts.

    python tests/bench/ingest.py [--records 100000] [--check]

The command is the real one in a process of its own, with its upkeep; its memory is the largest
sum over all of its processes at any instant (Linux).  The ratio is of the seconds that it
reports, since Python and the model have started before the parts are timed, too; the one from
start to exit is shown beside it.  The parts are then
measured on what it has made: the embedder alone (all texts that have a vector, one call after
another, in one process) and Lance alone (appending all its rows, with their vectors, to empty
tables without indexes).  With ``--check`` the script fails where the rate is below half of the
parts' or the memory above 1.5 GB.

The records are made up from a seed.  Each has one to four sentences of 6 to 18 words, about 190
characters in all, as notes and chat turns have.  Words come from the vocabulary of the embedder's
tokenizer (nine thousand words and stems, most of them English) by Zipf's law, a fifth inflected,
mixed with function words as in running English.  One sentence in six names a person or a company,
one in seven has a number, one in twenty a date, one in fifty says "remember", "we decided" or "I
prefer"; a third of the records belong to a session.  Every record is different.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

BATCH = 10_000
MIN_RATIO = 0.5
MAX_BYTES = 1_500_000_000

FUNCTION_WORDS = ("the", "of", "and", "to", "a", "in", "that", "is", "was", "for", "it", "with")
SUFFIXES = ("s", "ed", "ing", "ly", "er")
FIRST = ("Ann", "Bob", "Carla", "Deniz", "Emeka", "Fatima", "George", "Hanna", "Ivan", "Jun")
LAST = ("Smith", "Okafor", "Tanaka", "Garcia", "Novak", "Larsen", "Khan", "Rossi", "Weber", "Silva")
COMPANIES = ("Acme Corp", "Northwind", "Blue Harbor", "Orion Labs", "Vertex Systems")
CLAIMS = ("Remember that", "We decided that", "I prefer when", "The plan is that")


# --- records -------------------------------------------------------------------------------------


class Writer:
    """Writes records, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = vocabulary()
        self._random.shuffle(self._words)
        self._weights = [0.0]
        for rank in range(1, len(self._words) + 1):
            self._weights.append(self._weights[-1] + 1 / rank)
        self._weights.pop(0)

    def records(self, count: int) -> Iterator[dict[str, object]]:
        """Yield that many records."""
        start = datetime(2024, 1, 1, tzinfo=UTC)
        for number in range(count):
            record: dict[str, object] = {"id": f"r{number}", "text": self._text()}
            record["created_at"] = (start + timedelta(minutes=7 * number)).isoformat()
            if number % 3 == 0:
                record |= {"session_id": f"s{number // 60}", "turn": number // 3 % 20}
            yield record

    def _text(self) -> str:
        return " ".join(self._sentence() for _ in range(self._random.randint(1, 4)))

    def _sentence(self) -> str:
        chance = self._random.random
        words = self._running(self._random.randint(6, 18))
        if chance() < 1 / 6:
            words.insert(self._random.randrange(len(words)), self._name())
        if chance() < 1 / 7:
            words.insert(self._random.randrange(len(words)), str(self._random.randrange(10_000)))
        if chance() < 1 / 20:
            words.append(f"on {self._random.randint(1, 28)} May {self._random.randint(2000, 2030)}")
        if chance() < 1 / 50:
            words.insert(0, self._random.choice(CLAIMS))
        sentence = " ".join(words)
        return sentence[0].upper() + sentence[1:] + "."

    def _running(self, length: int) -> list[str]:
        content = self._random.choices(self._words, cum_weights=self._weights, k=length)
        return [
            self._random.choice(FUNCTION_WORDS) if self._random.random() < 0.4 else self._form(word)
            for word in content
        ]

    def _form(self, word: str) -> str:
        return word + self._random.choice(SUFFIXES) if self._random.random() < 0.2 else word

    def _name(self) -> str:
        if self._random.random() < 0.3:
            return self._random.choice(COMPANIES)
        return f"{self._random.choice(FIRST)} {self._random.choice(LAST)}"


def vocabulary() -> list[str]:
    """The words of the embedder's tokenizer, in a fixed order."""
    from memctl.models.static_embedder import TOKENIZER_FILE, _package_folder

    tokenizer = json.loads((_package_folder() / TOKENIZER_FILE).read_bytes())
    words = (piece[1:] for piece in tokenizer["model"]["vocab"] if piece[0] == "▁")
    return sorted(word for word in words if len(word) > 2 and word.isascii() and word.islower())


# --- the parts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of the embedder alone and of Lance alone."""

    embedding: float
    appending: float


def measure_parts(home: Path, folder: Path) -> Parts:
    """Embed again all that was embedded, and append all rows again, to empty tables."""
    import lance
    import pyarrow as pa

    from memctl.models import BUILTIN_EMBEDDER, load_embedder

    tables = {
        path.stem: lance.dataset(str(path)).to_table()
        for path in sorted((home / "kb" / "default" / "lance").glob("*.lance"))
    }
    texts = tables["memories"]["text"].to_pylist()
    embedder = load_embedder(BUILTIN_EMBEDDER)
    embedder.embed(texts[:100])
    began = time.perf_counter()
    for at in range(0, len(texts), BATCH):
        embedder.embed(texts[at : at + BATCH])
    embedding = time.perf_counter() - began
    appending = 0.0
    for name, rows in tables.items():
        dataset = lance.write_dataset(rows.schema.empty_table(), str(folder / f"{name}.lance"))
        parts = [pa.table(rows.slice(at, BATCH)) for at in range(0, rows.num_rows, BATCH)]
        began = time.perf_counter()
        for part in parts:
            dataset = lance.write_dataset(part, dataset, mode="append")
        appending += time.perf_counter() - began
        assert dataset.count_rows() == rows.num_rows
    return Parts(embedding, appending)


# --- the command ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the command took."""

    seconds: float
    peak_bytes: int
    report: dict[str, object]
    reported: float
    """Seconds by its own account, without its start and end."""
    upkeep: float
    """Of the seconds, those spent on indexes and files after the last record."""


def measure_command(file: Path, home: Path) -> Run:
    """Run the command on a file of records in a home of its own."""
    environment = {**os.environ, "MEMCTL_HOME": str(home)}
    command = [sys.executable, "-m", "memctl", "ingest", "--jsonl", str(file), "-o", "json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    peak = Peak(process.pid)
    output, _ = process.communicate()
    seconds = time.perf_counter() - began
    peak.stop()
    if process.returncode:
        raise SystemExit(f"the command failed with {process.returncode}")
    report = json.loads(output)
    return Run(seconds, peak.bytes, report, report["seconds"], upkeep_seconds(home))


def upkeep_seconds(home: Path) -> float:
    """How long the upkeep at the end of the ingest took, by the ledger's account."""
    from memctl.schema.table_names import UPKEEP
    from memctl.store.store import Store

    with Store.open(home / "kb" / "default") as store:
        job = store.ledger.jobs.last(UPKEEP)
    return (job.finished_at - job.started_at).total_seconds() if job and job.finished_at else 0.0


class Peak(threading.Thread):
    """Watches the resident memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._pid = pid
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            self.bytes = max(self.bytes, sum(map(resident, tree(self._pid))))

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for parent in found:
        try:
            text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found += map(int, text.split())
    return found


def resident(pid: int) -> int:
    """Bytes of a process in memory; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- the whole -----------------------------------------------------------------------------------


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="fail when a bound is broken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = list(Writer(options.seed).records(options.records))
        file = folder / "records.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        run = measure_command(file, folder / "home")
        parts = measure_parts(folder / "home", folder)
    show(options.records, parts, run)
    ratio = (parts.embedding + parts.appending) / run.reported
    if options.check and (ratio < MIN_RATIO or run.peak_bytes > MAX_BYTES):
        raise SystemExit("a bound is broken")


def show(count: int, parts: Parts, run: Run) -> None:
    """Print a table."""
    bare = parts.embedding + parts.appending
    for label, seconds in (
        ("embedder alone", parts.embedding),
        ("lance alone, all tables", parts.appending),
        ("sum of the parts", bare),
        ("memctl ingest --jsonl", run.reported),
        ("  from start to exit", run.seconds),
        ("  of that upkeep", run.upkeep),
    ):
        rate = count / max(seconds, 1e-9)
        print(f"{label:24} {seconds:8.2f} s {rate:10,.0f} records/s")
    print(f"{'ratio':24} {bare / run.reported:8.2f}")
    print(f"{'  from start to exit':24} {bare / run.seconds:8.2f}")
    print(f"{'peak memory':24} {run.peak_bytes / 1e6:8.0f} MB")
    counts = {key: run.report[key] for key in ("ingested", "failed", "memories", "seconds")}
    print(f"{'report':24} {counts}")


if __name__ == "__main__":
    main()
