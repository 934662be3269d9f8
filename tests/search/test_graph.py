"""The names of a knowledge base are worked out once for each commit, whoever asks first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from memctl.graph.name_index import NameIndex, build_index
from memctl.records import Filters, Hit, Memory
from tests.search.conftest import NOW, Shelf, memory

QUESTION = "In which town was the painter of The Grey Harbour born?"
NAMES = [
    memory("painting", "The painting The Grey Harbour was made by Odile Marchetti in 1911.",
           title="The Grey Harbour", entities=("The Grey Harbour", "Odile Marchetti")),
    memory("painter", "Odile Marchetti was born in Ravenna.", entities=("Odile Marchetti",)),
    *(memory(f"n{at}", f"Note number {at} is about harbours.") for at in range(30)),
]  # fmt: skip
Build = Callable[..., NameIndex]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """Grows by one whenever names are worked out."""
    times: list[datetime] = []

    def build(*args: object, **options: object) -> NameIndex:
        times.append(NOW)
        make: Build = build_index
        return make(*args, **options)

    monkeypatch.setattr("memctl.graph.name_index.build_index", build)
    monkeypatch.setattr("memctl.graph.name_index.build_index", build)
    return times


def asked(shelf: Shelf) -> Sequence[Hit]:
    """Ask as a process does that has asked nothing before."""
    return shelf.searcher().search(QUESTION, mode="graph").hits


def kept(shelf: Shelf) -> list[Path]:
    folder = shelf.folder / "kb" / "derived"
    return sorted(folder.glob("names-*"))


def test_the_next_process_reads_the_names_and_finds_the_same(
    shelf: Shelf, built: list[datetime]
) -> None:
    shelf.put(NAMES)
    first = asked(shelf)
    assert {hit.external_id for hit in first[:2]} == {"painting", "painter"}
    assert all(hit.legs["graph"] > 0 for hit in first[:2])
    assert asked(shelf) == first
    assert len(built) == 1
    assert [path.stat().st_mode & 0o777 for path in kept(shelf)] == [0o600]


def test_a_commit_leaves_nothing_of_the_names_before_it(
    shelf: Shelf, built: list[datetime]
) -> None:
    shelf.put(NAMES)
    before = shelf.searcher()
    asked(shelf)
    shelf.put([memory("brother", "Odile Marchetti had a brother, a mason.",
                      entities=("Odile Marchetti",))])  # fmt: skip
    assert kept(shelf) == []
    before.search(QUESTION, mode="graph")  # of the tables before: nothing of it is kept
    assert kept(shelf) == []
    assert "brother" in {hit.external_id for hit in asked(shelf)}
    assert len(built) == 3


@pytest.mark.parametrize("harm", ["cut", "changed", "emptied"])
def test_names_that_were_damaged_on_disk_are_worked_out_again(
    shelf: Shelf, built: list[datetime], harm: str
) -> None:
    shelf.put(NAMES)
    first = asked(shelf)
    (path,) = kept(shelf)
    whole = path.read_bytes()
    damaged = {"cut": whole[:-9], "changed": whole[:-9] + b"x" + whole[-8:], "emptied": b""}
    path.write_bytes(damaged[harm])
    assert asked(shelf) == first
    assert len(built) == 2
    assert path.read_bytes() == whole


def test_a_disk_that_takes_no_file_is_no_error(shelf: Shelf, built: list[datetime]) -> None:
    shelf.put(NAMES)
    (shelf.folder / "kb" / "derived").write_text("in the way")
    assert asked(shelf) == asked(shelf)
    assert len(built) == 2


def test_names_of_what_is_going_to_expire_are_not_kept(shelf: Shelf) -> None:
    brief: Memory = memory("brief", "Odile Marchetti waits.", expires_at=NOW + timedelta(hours=1))
    shelf.put([*NAMES, brief])
    asked(shelf)
    assert kept(shelf) == []


def test_only_the_latest_of_many_conditions_are_kept(shelf: Shelf) -> None:
    shelf.put(NAMES)
    for year in range(2000, 2006):
        since = datetime(year, 1, 1, tzinfo=NOW.tzinfo)
        shelf.searcher().search(QUESTION, mode="graph", filters=Filters(since=since))
    assert len(kept(shelf)) == 4


def test_names_push_nothing_else_out_of_what_is_kept(shelf: Shelf) -> None:
    shelf.put(NAMES)
    derived = shelf.stores["kb"].snapshot().derived
    assert derived
    derived.write("results", "asked", b"given")
    for number in range(6):
        derived.write("names", str(number), b"names")
    assert derived.read("results", "asked") == b"given"
    assert len(kept(shelf)) == 4
