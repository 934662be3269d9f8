"""What tests of faults start from."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from long_form import IS_LONG
from watched import Place, new_place, second_file_system


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than temporary folders are on."""
    with second_file_system(tmp_path) as folder:
        yield folder


@pytest.fixture
def dice() -> random.Random:
    """What chance chooses by: the same each time, but in the long form, or as MEMCTL_SEED says.

    The seed is printed with a failure.
    """
    drawn = random.SystemRandom().randrange(1 << 32) if IS_LONG else 5
    seed = int(os.environ.get("MEMCTL_SEED") or drawn)
    print(f"MEMCTL_SEED={seed}")
    return random.Random(seed)
