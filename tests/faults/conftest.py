"""What tests of faults start from."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched import Place, new_place, second_file_system


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def stick() -> Iterator[Path]:
    """A folder on another file system than temporary folders are on."""
    with second_file_system() as folder:
        yield folder


@pytest.fixture
def dice() -> random.Random:
    """What chance chooses by; the seed is printed with a failure, and MEMCTL_SEED sets it."""
    seed = int(os.environ.get("MEMCTL_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"MEMCTL_SEED={seed}")
    return random.Random(seed)
