"""Whatever happens between consolidations, taking all of them back leaves what there would be.

By default two sequences of steps that once showed something; with ``MEMCTL_LONG_TESTS=1`` many.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_form import IS_LONG

from memctl.consolidation.job_undo import Jobs
from memctl.doctor.row_checks import CrossReferences
from memctl.errors import NotFoundError
from memctl.records import Memory
from memctl.rows.row_lifecycle import erase_rows
from memctl.schema.table_names import CONSOLIDATION
from memctl.store.ledger.ledger import job_context

Note = Callable[..., Memory]
SEEDS = range(60) if IS_LONG else (12, 56)
STEPS = 14
NAMES = ("Harbour Street", "Huila Supremo", "Lena Vogt", "Jonas Petersen", "Probat Works")
SAYINGS = (
    "The rent of {} is {} EUR a month.",
    "We met {} about the lease, which costs {} EUR.",
    "{} needs {} kg of beans by July.",
    "Ask {} for the keys to room {}.",
)


def a_note(note: Note, dice: random.Random, number: int) -> Memory:
    text = dice.choice(SAYINGS).format(dice.choice(NAMES), dice.randrange(100, 120))
    return note(text, f"2026-03-{number % 28 + 1:02}", f"{number}.txt")


def consolidate(base: Any) -> None:
    with job_context(base.store.ledger, CONSOLIDATION, base.clock) as job:
        base.consolidator(seconds_a_commit=0).run(batch_size=4, job=job.id)


def ended(base: Any, id_: str, now: Any) -> None:
    """Let a memory hold no longer, as an edit of it does."""
    until = pa.array([now], pa.timestamp("us", tz="UTC"))
    with base.store.write() as transaction:
        transaction.update("memories", pa.table({"id": [id_], "valid_to": until}))


def deleted(base: Any, id_: str) -> None:
    with base.store.write() as transaction:
        erase_rows(transaction, "memories", [id_])


def without_marks(base: Any) -> dict[str, Any]:
    """Every memory by its id, but for whether it has been looked at."""
    rows = base.store.snapshot().scan("memories").drop(["is_consolidated"])
    return {row["id"]: row for row in rows.to_pylist()}


def require_sound(base: Any) -> None:
    agreement = CrossReferences(base.store.snapshot())
    for column in ("source_ids", "superseded_by"):
        assert list(agreement.dangling(column)) == []
    assert list(agreement.dangling_relations()) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_is_as_if_nothing_had_been_consolidated(
    base: Any, note: Note, empty_folder: Path, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    jobs = Jobs(base.store, base.clock, "kb")
    never = type(base)(Path(shutil.copytree(empty_folder, tmp_path / "never")), base.embedder)
    first = [a_note(note, dice, number) for number in range(8)]
    for each in (base, never):
        each.add(*first)
    known, taken_back = [item.id for item in first], 0
    for number in range(8, 8 + STEPS):
        step = dice.choice(("add", "add", "end", "delete", "consolidate", "consolidate", "undo"))
        print(number, step)
        if step == "consolidate":
            consolidate(base)
        elif step == "undo":
            try:
                jobs.undo(again=dice.random() < 0.5)
                taken_back += 1
            except NotFoundError:
                consolidate(base)
        elif step == "add":
            new = a_note(note, dice, number)
            known.append(new.id)
            base.add(new)
            never.add(new)
        elif known:
            gone, now = known.pop(dice.randrange(len(known))), base.clock()
            for each in (base, never):
                deleted(each, gone) if step == "delete" else ended(each, gone, now)
        require_sound(base)
    for _ in range(len(base.store.ledger.changes.jobs())):
        jobs.undo()
        require_sound(base)
        taken_back += 1
    assert taken_back
    assert without_marks(base) == without_marks(never)
    assert base.store.snapshot().count("relations") == 0
    never.store.close()
