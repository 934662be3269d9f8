"""A year of upkeep: the same on every machine, and each night can be taken back.

By default some days of importance that fades quickly; with ``MEMCTL_LONG_TESTS=1`` a year of 20,000
memories, which takes most of an hour.
"""

from __future__ import annotations

from pathlib import Path

from long_form import IS_LONG

from .year import Machine, State, Year, asleep_half_of_the_time

YEAR = Year(20_000) if IS_LONG else Year(80, days=10)
HALF_LIFE = 90 if IS_LONG else 2


def lived(folder: Path, *, sleeps: bool) -> State:
    """Live through it, take every night back on a copy, and return what is left."""
    is_awake = asleep_half_of_the_time(3) if sleeps else (lambda _: True)
    machine = Machine(folder / "home", is_awake, (6,) if sleeps else (3.9, 6), HALF_LIFE)
    nights = [machine.take_back(night) for night in machine.live(YEAR) if not sleeps]
    assert all(nights)
    assert bool(nights) is not sleeps
    return machine.state()


def test_it_is_the_same_whether_the_machine_was_on_or_asleep_half_the_time(tmp_path: Path) -> None:
    awake = lived(tmp_path / "awake", sleeps=False)
    assert lived(tmp_path / "asleep", sleeps=True) == awake
    assert 0 < len(awake.archived) < len(awake.there) < YEAR.memories
    assert awake.shared
    assert awake.confirmed
    assert len(awake.reads) > len(awake.archived & awake.reads.keys())
