"""Which files a version of a table is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset


def parts_of(dataset: LanceDataset) -> Iterator[tuple[str, int]]:
    """Yield the files and folders of a version, below the table's, with their sizes."""
    for fragment in dataset.get_fragments():
        for part in fragment.metadata.files:
            yield f"data/{part.path}", part.file_size_bytes or 0
        if (deleted := fragment.deletion_file()) is not None:
            yield deleted, 0  # some bytes a row
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"_indices/{segment.uuid}", segment.size_bytes or 0
