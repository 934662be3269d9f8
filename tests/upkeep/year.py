"""A year of a memory and its upkeep, with a clock that goes on by days.

    PYTHONPATH=tests python tests/upkeep/year.py [FOLDER...] [--memories 20000] [--nights 365]

What is learnt, read, confirmed and forgotten by its own end each day is drawn by chance, the same
for every machine; machines differ in the nights on which they are awake.  Prints what two machines
came to, one always on and one asleep half the time; how many nights were taken back, on a copy;
and of sets as ``bench/retrieval.py`` has them, recall after the year, also without any upkeep.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from set_clock import Clock

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.language.term_analysis import passage_terms
from memctl.memories.memory_editing import PreparedMemory, write_memories
from memctl.records import Filters, Memory
from memctl.store.tables.filter_expressions import Expr, col
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService

__all__ = ["Machine", "Night", "Year", "asleep_half_of_the_time"]

THINGS = ("crane", "pier", "ferry", "rope", "buoy", "quay", "lamp", "anchor", "crate", "winch")
VERBS = ("holds", "waits for", "is tied to", "was moved behind", "needs", "came with", "carries")
TYPES = ("gist", "fact", "observation", "plan", "learning", "decision", "important_fact")
READ_A_DAY = 10
AGENTS = ("scout", "clerk", "cook", "pilot")
SHARED = Filters(namespaces=("organization:shared",))
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class State:
    """All that a year leaves, by what tells memories apart on every machine."""

    archived: frozenset[str]
    there: frozenset[str]
    shared: frozenset[str]
    reads: dict[str, int]
    confirmed: dict[str, int]

    @classmethod
    def of(cls, base: KnowledgeBase) -> State:
        """Look at it."""
        columns = ["id", "text", "archived_at", "access_count", "namespace", "type"]
        rows = base.store.snapshot().scan("memories", _holding(base), columns).to_pylist()
        own = [row for row in rows if row["namespace"] not in SHARED.namespaces]
        learnings = [row for row in own if row["type"] == "learning"]
        confirmed = base.store.ledger.confirmations.of([row["id"] for row in learnings])
        return cls(
            frozenset(row["text"] for row in rows if row["archived_at"] is not None),
            frozenset(row["text"] for row in own),
            frozenset(row["text"] for row in rows if row["namespace"] in SHARED.namespaces),
            {row["text"]: row["access_count"] for row in own if row["access_count"]},
            {row["text"]: len(confirmed.get(row["id"], ())) for row in learnings},
        )

    def without(self, gone: frozenset[str]) -> tuple[Any, ...]:
        """All of it but memories that are gone for good, and how often others were read."""
        kept = {text: number for text, number in self.confirmed.items() if text not in gone}
        return self.archived - gone, self.there - gone, self.shared, kept


@dataclass(frozen=True)
class Night:
    """What the jobs of one night did."""

    began: datetime
    before: State
    after: State


@dataclass
class Year:
    """What happens to a memory.

    Args:
        memories: How many become known; a tenth of them on the first day.
        days: How long it goes on.
        seed: Of chance.
    """

    memories: int
    days: int = 365
    seed: int = 1

    def happen(self, base: KnowledgeBase, day: int, known: list[str]) -> None:
        """Have happen what happens on a day.

        Args:
            base: What learns of it.
            day: Which one.
            known: The ids of what has become known, which grows.
        """
        draw = random.Random(f"{self.seed}/{day}")
        rest = self.memories - self.memories // 10
        first, last = (rest * each // self.days for each in (day, day + 1))
        number = last - first + (self.memories // 10 if day == 0 else 0)
        made = [_memory(base, draw, f"{day}.{each}") for each in range(number)]
        if made:
            with base.store.write() as transaction:
                write_memories(transaction, _prepared(base, made), {}, base.clock())
        known += [each.id for each in made]
        read = draw.sample(known, min(READ_A_DAY, len(known)))
        there = base.store.snapshot().get("memories", read, ["id"])["id"].to_pylist()
        for id_ in there:
            base.memories.get(id_)
        lessons = _learnings(base)
        for id_ in draw.sample(lessons, min(2, len(lessons))):
            base.memories.confirm(id_, f"agent {draw.choice(AGENTS)}")
        base.resources.query_log.flush()


def _holding(base: KnowledgeBase) -> Expr:
    """Match what has no end, or has not come to it."""
    return col("expires_at").is_null() | (col("expires_at") > base.clock())


def _learnings(base: KnowledgeBase) -> list[str]:
    """Return the ids of those that hold, archived or not: which are may differ by machine."""
    own = (col("type") == "learning") & (col("namespace") == "default")
    return sorted(
        base.store.snapshot().scan("memories", own & _holding(base), ["id"])["id"].to_pylist()
    )


def _prepared(base: KnowledgeBase, made: Sequence[Memory]) -> list[PreparedMemory]:
    """Prepare memories without reading names out of them, which would take longest of all."""
    vectors = base.services.providers.embedder(
        base.settings.embedder, base.settings.dimension, base.name
    ).embed([each.text for each in made])
    terms = (" ".join(passage_terms("", "", each.text)) for each in made)
    rows = (replace(each, search_text=words) for each, words in zip(made, terms, strict=True))
    return [PreparedMemory(row, (), vector) for row, vector in zip(rows, vectors, strict=True)]


def _memory(base: KnowledgeBase, draw: random.Random, name: str) -> Memory:
    one, other = draw.sample(THINGS, 2)
    type_ = draw.choices(TYPES, (30, 30, 20, 5, 5, 5, 5))[0]
    ends = base.clock() + timedelta(days=draw.randrange(1, 20)) if draw.random() < 0.15 else None
    return Memory(
        id=f"m_{draw.getrandbits(96):024x}",
        document_id=None,
        level="memory",
        type=type_,
        text=f"The {one} {name} {draw.choice(VERBS)} the {other} of berth {draw.randrange(500)}.",
        namespace="default",
        created_at=base.clock(),
        valid_from=base.clock(),
        source="notes.md",
        importance=round(draw.betavariate(1, 4), 3),
        method="builtin",
        expires_at=ends,
        agent_id=draw.choice(AGENTS),
        metadata={"share": True} if type_ == "learning" and draw.random() < 0.2 else {},
    )


@dataclass
class Machine:
    """A home whose clock goes on by days, and that is awake on some of them.

    Args:
        folder: Where its home is made.
        is_awake: Says of a day whether it is; None where there is no upkeep at all.
        hours: When it looks for what is due, on days on which it is awake.
        half_life: Days in which importance fades by half.
    """

    folder: Path
    is_awake: Callable[[int], bool] | None
    hours: Sequence[float] = (6,)
    half_life: int = 90
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.home = self._home(self.folder)
        self.home.create("default", consolidate_interval=0, half_life=self.half_life)

    def _home(self, folder: Path) -> Home:
        return Home(load_config({"home": str(folder)}, {}), self.clock)

    def live(self, year: Year) -> Iterator[Night]:
        """Live through a year, and yield each night that changed something."""
        known: list[str] = []
        start = self.clock.now.replace(hour=0, minute=0)
        for day in range(year.days):
            with self.home.open("default") as base:
                year.happen(base, day, known)
            tomorrow = start + timedelta(days=day + 1)
            if self.is_awake and (self.is_awake(day) or day == year.days - 1):
                yield from self._night([tomorrow + timedelta(hours=h) for h in self.hours])
            self.clock.now = tomorrow + timedelta(hours=12)

    def _night(self, instants: Sequence[datetime]) -> Iterator[Night]:
        with self.home.open("default") as base:
            before = State.of(base)
        for self.clock.now in instants:
            options = WatchOptions(settle_seconds=0, rescan_seconds=0.1, once=True)
            WatchService(WatchedBases(self.home), options, lambda _: None, self.clock).run()
        with self.home.open("default") as base:
            after = State.of(base)
        if after.without(_NOTHING) != before.without(_NOTHING):
            yield Night(instants[0], before, after)

    def take_back(self, night: Night) -> bool:
        """Take back a night that has just been, on a copy; return whether all is as before."""
        with tempfile.TemporaryDirectory(dir=self.folder.parent) as place:
            copy = Path(place) / "home"
            shutil.copytree(self.folder, copy)
            with self._home(copy).open("default") as base:
                jobs = [each for each in base.jobs.list() if each.started_at >= night.began]
                numbers = [each.id for each in jobs if each.can_be_undone]
                if numbers:
                    base.jobs.undo_night(max(numbers))
                found = State.of(base)
        gone = night.before.there - night.after.there
        return found.without(gone) == night.before.without(gone)

    def state(self) -> State:
        """What has come of it."""
        with self.home.open("default") as base:
            return State.of(base)


def asleep_half_of_the_time(seed: int) -> Callable[[int], bool]:
    """Return which days a machine is awake that sleeps for days on end, half of the time."""
    draw, awake = random.Random(seed), list[bool]()
    while len(awake) < 10_000:
        for value in (True, False):
            awake += [value] * draw.randrange(1, 15)
    return lambda day: awake[day]


# --- with sets of questions ----------------------------------------------------------------------


def recall(home: Home, folder: Path) -> float:
    """Return which share of the evidence is among the first ten hits, in percent."""
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    found = []
    with home.open("default") as base:
        for each in queries:
            filters = Filters(namespaces=(_namespace(folder, each),))
            hits = base.query(each["question"], filters=filters, limit=10, answer=False, log=False)
            ids = {hit.external_id for hit in hits.hits}
            found.append(len(ids & {*each["relevant"]}) / len(each["relevant"]))
    return 100 * sum(found) / len(found)


def _namespace(folder: Path, row: dict[str, Any]) -> str:
    return f"{folder.name}-{row.get('namespace') or 'all'}"


def take_in(home: Home, folder: Path) -> int:
    """Take in the records of a set; return how many memories there are then."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "namespace": _namespace(folder, row)}) for row in rows]
    with home.open("default") as base:
        base.ingest(jsonl=io.BytesIO("\n".join(lines).encode()))
        return base.store.snapshot().count("memories")


def main() -> None:
    """Live through the year on three machines and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--memories", type=int, default=20_000, help="with those of the folders")
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--only", choices=MACHINES, help="one machine alone")
    options = parser.parse_args()
    states = []
    for name in [options.only] if options.only else MACHINES:
        with tempfile.TemporaryDirectory() as place:
            machine = Machine(Path(place) / "home", MACHINES[name])
            began = time.perf_counter()
            held = [take_in(machine.home, folder) for folder in options.folders]
            year = Year(options.memories - max(held, default=0), options.nights)
            taken_back = [
                name != ALWAYS_ON or machine.take_back(night) for night in machine.live(year)
            ]
            minutes = (time.perf_counter() - began) / 60
            show(name, machine.state(), taken_back, minutes)
            for folder in options.folders:
                print(f"  recall@10 of {folder.name}: {recall(machine.home, folder):.1f}")
            states.append(machine.state())
    if len(states) > 1:
        print("the same" if states[0] == states[1] else "NOT THE SAME")


def show(name: str, state: State, taken_back: Sequence[bool], minutes: float) -> None:
    print(f"{name}: {len(taken_back)} nights changed something, {minutes:.1f} min")
    print(
        f"  {len(state.there):,} memories, {len(state.archived):,} archived,"
        f" {len(state.shared):,} shared, {sum(state.reads.values()):,} reads"
    )
    if name == ALWAYS_ON:
        print(f"  {sum(taken_back)} of {len(taken_back)} nights taken back whole", flush=True)


ALWAYS_ON = "always on"
MACHINES: dict[str, Callable[[int], bool] | None] = {
    ALWAYS_ON: lambda _: True,
    "asleep half the time": asleep_half_of_the_time(3),
    "without upkeep": None,
}

if __name__ == "__main__":
    main()
