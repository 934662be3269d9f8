"""How much of a processor ``memctl watch`` takes while there is nothing to do.

    python tests/bench/watch_idle.py [--seconds 60] [--memories 2000] [--kbs 3]

Every job of upkeep is on, and each knowledge base has skills and memories.  Prints the share of
one processor, in percent, after the watcher has come to rest.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sessions import fill

import memctl

REST_SECONDS = 20.0
OFF_BY_DEFAULT = ("duplicates", "summary", "reflect")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--kbs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for number in range(options.kbs):
            made_ready(home, f"kb{number}", options.memories)
        command = [sys.executable, "-m", "memctl", "watch", "-q"]
        environment = {**os.environ, "MEMCTL_HOME": str(home)}
        watcher = subprocess.Popen(command, env=environment)
        try:
            time.sleep(REST_SECONDS)
            before, began = processor_seconds(watcher.pid), time.perf_counter()
            time.sleep(options.seconds)
            used = processor_seconds(watcher.pid) - before
            share = 100 * used / (time.perf_counter() - began)
        finally:
            watcher.send_signal(signal.SIGTERM)
            watcher.wait()
    print(f"{options.kbs} knowledge bases at rest: {share:.2f} % of one processor")


def made_ready(home: Path, name: str, memories: int) -> None:
    """Make a knowledge base that has something for every job to look at."""
    skill = home / "skill" / "SKILL.md"
    skill.parent.mkdir(exist_ok=True)
    skill.write_text("---\nname: row\ndescription: Row a boat.\n---\nRow.\n")
    with memctl.open(name, home=home, create=True) as base:
        fill(base, memories)
        base.skills.acting_as().add(skill)
    environment = {**os.environ, "MEMCTL_HOME": str(home)}
    for job in OFF_BY_DEFAULT:
        words = ("upkeep", "set", job, "--at", "04:50", "-k", name, "-q")
        subprocess.run([sys.executable, "-m", "memctl", *words], env=environment, check=True)


def processor_seconds(pid: int) -> float:
    """Return for how long a process has kept the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
