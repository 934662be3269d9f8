"""How long it takes until a message is durable, and until the next query has found it.

    python tests/bench/sessions.py [--memories 100000] [--messages 300]

A knowledge base in a temporary home gets so many memories first; then messages are added in this
process, which is warm.  Prints milliseconds: median, 95th percentile and worst of ``say``, and of
a query right after one, and how many of these found the message first.  Then the seconds of 10,000
writes to working memory, and whether they have left the tables alone.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import tempfile
import time
from pathlib import Path

import memctl
from memctl.knowledge_base import KnowledgeBase
from memctl.sessions.conversations import Message

ASKED, WRITES = 20, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=300)
    options = parser.parse_args()
    print(f"{'':22}{'median':>10}{'p95':>10}{'worst':>10}   milliseconds")
    with (
        tempfile.TemporaryDirectory() as home,
        memctl.open("bench", home=Path(home), create=True) as base,
    ):
        fill(base, options.memories)
        said, found, first = measured(base, options.messages)
        show("say", said)
        show("query after a message", found)
        print(f"found first           {first:10}/{ASKED}")
        seconds, is_left_alone = written(base)
        print(f"{WRITES:,} working values {seconds:12.2f} s, tables left alone: {is_left_alone}")


def fill(base: KnowledgeBase, count: int) -> None:
    """Ingest short records, each one memory."""
    lines = (
        json.dumps({"id": f"r{n}", "text": f"Buoy {n} of harbour {n % 977} is lit at {n % 24}."})
        for n in range(count)
    )
    base.ingest(jsonl=io.BytesIO("\n".join(lines).encode()))


def measured(base: KnowledgeBase, messages: int) -> tuple[list[float], list[float], int]:
    """Return the milliseconds of each ``say``, and of a query after it; how many found it."""
    session = base.sessions.start()
    said: list[float] = []
    found: list[float] = []
    first = 0
    for number in range(messages + ASKED):
        message = Message(sender="user", content=f"The pilot boat {number} leaves at nine.")
        began = time.perf_counter()
        base.sessions.say(session, message)
        said.append(1000 * (time.perf_counter() - began))
        if number >= messages:
            began = time.perf_counter()
            asked = base.query(f"When does the pilot boat {number} leave?", answer=False)
            found.append(1000 * (time.perf_counter() - began))
            first += asked.hits[0].text == message.content
    return said, found[1:], first


def written(base: KnowledgeBase) -> tuple[float, bool]:
    """Return the seconds of many writes to working memory, and whether the tables are as before."""
    working = base.router(agent="a", session="s").working
    before = base.store.ledger.head()
    began = time.perf_counter()
    for number in range(WRITES):
        working.store(f"key {number}", {"step": number})
    return time.perf_counter() - began, base.store.ledger.head() == before


def show(what: str, milliseconds: list[float]) -> None:
    middle = statistics.median(milliseconds)
    p95 = statistics.quantiles(milliseconds, n=20)[-1]
    print(f"{what:22}{middle:10.2f}{p95:10.2f}{max(milliseconds):10.2f}")


if __name__ == "__main__":
    main()
