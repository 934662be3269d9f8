"""What tests of faults start from."""

from __future__ import annotations

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
