"""Whether every memory has a vector that can be searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from memctl.doctor.findings import Examined, Finding, counted, damaged, ok
from memctl.store.inspection import READ_BYTES, vectors_wide
from memctl.store.schema import VECTOR, vector_rows
from memctl.store.store import DIMENSION

if TYPE_CHECKING:
    from memctl.store.snapshot import Snapshot

LONGEST_ERROR = 0.01
"""So far the length of a vector may be from 1; float16 alone makes it differ by a thousandth."""
_COMPLAINTS = ("without a vector", "with a vector that is not finite", "with one not of length 1")


def check_vectors(examined: Examined) -> Iterator[Finding]:
    """Look at the dimension of the vectors, and at each of them."""
    if not examined.can_read("memories"):
        return
    wide, pinned = vectors_wide(examined.snapshot), examined.ledger.meta(DIMENSION)
    if str(wide) != pinned:
        yield damaged("vectors", "memories", f"{wide} numbers each, where {pinned} are pinned")
        return
    found: Counter[str] = Counter()
    for _, complaint in bad_vectors(examined.snapshot):
        found[complaint] += 1
    for complaint, number in sorted(found.items()):
        yield damaged("vectors", "memories", f"{counted(number, 'memory', 'memories')} {complaint}")
    if not found:
        yield ok("vectors", "memories", f"{wide} numbers each, finite, of length 1")


def bad_vectors(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the memories whose vector cannot be one, each with what is wrong with it.

    A zero vector is that of a text without any known word.
    """
    for batch in snapshot.batches("memories", None, ["id", VECTOR], batch_bytes=READ_BYTES):
        column = batch.column(VECTOR)
        missing = np.asarray(column.is_null(), dtype=bool)
        lengths = np.linalg.norm(vector_rows(column).astype(np.float32), axis=1)
        odd = (lengths > 0) & (np.abs(lengths - 1) > LONGEST_ERROR)
        flags = (missing, ~np.isfinite(lengths), odd & np.isfinite(lengths))
        for flag, complaint in zip(flags, _COMPLAINTS, strict=True):
            for number in flag.nonzero()[0]:
                yield batch["id"][int(number)].as_py(), complaint
