"""How long it takes to tell what links to a note, mentions it and is related to it.

    python tests/bench/links.py [--notes 5000] [--asked 20]

Notes are ingested first, as records, which are understood quickly.  The first call of each kind
reads the tables; the others are warm.  Prints milliseconds: the first, the median and the worst of
the others, and seconds for ``links check`` in a process that has read nothing yet.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import memctl
from memctl.knowledge_base import KnowledgeBase

TOPICS = ("harbour", "ferry", "garden", "lease", "budget", "crane", "bakery", "signal", "archive")
VERBS = ("opens", "closes", "waits for", "replaces", "costs more than", "comes before", "follows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--notes", type=int, default=5_000)
    parser.add_argument("--asked", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with memctl.open("bench", home=home, create=True) as base:
            began = time.perf_counter()
            base.ingest(jsonl=io.BytesIO("\n".join(notes(options.notes)).encode()))
            print(f"{options.notes:,} notes taken in, {time.perf_counter() - began:.0f} s")
        with memctl.open("bench", home=home) as base:
            began = time.perf_counter()
            found = base.links.view().check()
            print(f"links check, {found.links:,} links: {time.perf_counter() - began:.2f} s")
        with memctl.open("bench", home=home) as base:
            measure(base, options.notes, options.asked)


def notes(count: int) -> Iterator[str]:
    """Yield notes of some 1,000 characters that link to each other, mention each other, or err."""
    chance = random.Random(7)
    for number in range(count):
        lines = []
        for _ in range(12):
            one, other = chance.choice(TOPICS), chance.choice(TOPICS)
            lines.append(f"The {one} {chance.choice(VERBS)} the {other} of pier {number % 97}.")
        lines += [f"See [[{title(chance.randrange(count))}]]." for _ in range(8)]
        lines.append(f"As {title(chance.randrange(count))} says, not [[Lost {number % 50}]].")
        yield json.dumps({"title": title(number), "text": "\n".join(lines), "id": str(number)})


def title(number: int) -> str:
    return f"{TOPICS[number % len(TOPICS)].capitalize()} of pier {number}"


def measure(base: KnowledgeBase, count: int, asked: int) -> None:
    print(f"{'':12}{'first':>10}{'median':>10}{'worst':>10}   milliseconds")
    view = base.links.view
    calls: dict[str, Callable[[str], object]] = {
        "backlinks": lambda page: view().backlinks(page, 50),
        "mentions": lambda page: view().mentions(page),
        "related": lambda page: view().related(page, 10),
        "links": lambda page: view().outgoing(page, 50),
    }
    chance = random.Random(11)
    for name, call in calls.items():
        pages = [title(chance.randrange(count)) for _ in range(asked + 1)]
        first, *others = (milliseconds(call, page) for page in pages)
        print(f"{name:12}{first:10.1f}{statistics.median(others):10.1f}{max(others):10.1f}")


def milliseconds(call: Callable[[str], object], page: str) -> float:
    began = time.perf_counter()
    call(page)
    return 1_000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
