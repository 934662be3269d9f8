"""How much memory one big CSV needs, and how long it takes.

    python tests/bench/big_file.py [--megabytes 1000] [--check]

The table is made up from a seed: an order a row, with customer, date, amount and a remark of one
to four sentences, about 250 bytes.  The command is the real one in a process of its own; memory
is the sum over all of its processes (Linux), given as the largest of each quarter of the run, so
that growth with the size of the file would be seen.  With ``--check`` the script fails where more
than 1.5 GB was needed, or a row is missing.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from ingest import Writer, resident, tree

MAX_BYTES = 1_500_000_000
COLUMNS = ("order", "customer", "placed_on", "amount", "remark")


def write_table(path: Path, size: int) -> int:
    """Write rows until the file has so many bytes; return how many there are."""
    writer, rows = Writer(7), 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        while file.tell() < size:
            for record in writer.records(10_000):
                rows += 1
                day = str(record["created_at"])[:10]
                table.writerow((rows, f"c{rows % 5_003}", day, rows % 997 / 100, record["text"]))
    return rows


class Samples(threading.Thread):
    """The resident memory of a process and its children, four times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes: list[int] = []
        self._pid = pid
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(0.25):
            self.bytes.append(sum(map(resident, tree(self._pid))))

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def quarters(self) -> list[int]:
        """The largest value of each quarter of the time."""
        count = len(self.bytes)
        bounds = [count * n // 4 for n in range(5)]
        return [max(self.bytes[a:b], default=0) for a, b in itertools.pairwise(bounds)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--check", action="store_true", help="fail when a bound is broken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "orders.csv"
        rows = write_table(table, options.megabytes * 1_000_000)
        environment = {**os.environ, "MEMCTL_HOME": str(Path(name) / "home")}
        command = [sys.executable, "-m", "memctl"]
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, "ingest", str(table), "-o", "json"], env=environment, stdout=subprocess.PIPE
        )
        samples = Samples(process.pid)
        output, _ = process.communicate()
        seconds = time.perf_counter() - began
        samples.stop()
        if process.returncode:
            raise SystemExit(f"the command failed with {process.returncode}")
        memories = json.loads(output)["memories"]
        last = f"select count(*) as n from memories where text like '%order: {rows};%'"
        found = subprocess.run(
            [*command, "sql", last, "-o", "json"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        is_there = json.loads(found.stdout)[0]["n"] == 1
    print(f"{'file':12} {options.megabytes:10,} MB {rows:12,} rows")
    print(f"{'time':12} {seconds:10,.0f} s  {rows / seconds:12,.0f} rows/s")
    print(f"{'memories':12} {memories:10,}")
    quarters = samples.quarters()
    print(f"{'memory':12} {' / '.join(f'{size / 1e6:,.0f}' for size in quarters)} MB by quarter")
    print(f"{'last row':12} {'found' if is_there else 'MISSING'}")
    if options.check and (max(quarters) > MAX_BYTES or not is_there):
        raise SystemExit("a bound is broken")


if __name__ == "__main__":
    main()
