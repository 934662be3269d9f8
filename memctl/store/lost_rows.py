"""Which rows stood in files that cannot be read: indexes, which stand in files of their own, say.

An index knows the value of a row by its address: the number of its file, and its place in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memctl.store.engine import without_panics
from memctl.store.inspection import ENGINE_ERRORS, INDEXES, read_file
from memctl.store.names import TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment
    from numpy.typing import NDArray

PLACES = 1 << 32
"""So many addresses each file has."""
_PAGES = "page_data.lance"
"""In the folder of a B-tree: its values in order, each with the address of its row."""


@dataclass(frozen=True, slots=True)
class LostRow:
    """A row that cannot be read any more."""

    id: str
    document_id: str | None = None
    """The document that it was of, where that is known."""
    source: str = ""
    """The file that it was from, where that is known."""


def named_rows(
    table: TableName, dataset: LanceDataset, fragments: Sequence[LanceFragment]
) -> list[LostRow]:
    """Return the rows of unreadable files that indexes name; newer ones stand in no index yet.

    Args:
        table: Which table.
        dataset: It, at the version that counts.
        fragments: Its files of rows that cannot be read.
    """
    places = {fragment.fragment_id: live_places(dataset, fragment) for fragment in fragments}
    ids = _indexed(dataset, "id", places)
    documents = _indexed(dataset, "document_id", places) if table == "memories" else {}
    return [LostRow(id_, documents.get(address)) for address, id_ in ids.items()]


def live_places(dataset: LanceDataset, fragment: LanceFragment) -> NDArray[np.int64]:
    """Return the places of the rows of a file that are not deleted; all where nothing says so."""
    try:
        with without_panics():
            addresses = dataset.scanner(
                columns=[], with_row_address=True, fragments=[fragment]
            ).to_table()["_rowaddr"]
    except ENGINE_ERRORS:
        return np.arange(fragment.physical_rows)
    return np.asarray(addresses).astype(np.int64) % PLACES


def _indexed(
    dataset: LanceDataset, column: str, places: dict[int, NDArray[np.int64]]
) -> dict[int, str]:
    """Return the values of a column by address, as far as its index can be read."""
    found: dict[int, str] = {}
    for index in dataset.describe_indices():
        for part in index.segments if index.name == f"{column}_idx" else ():
            path = Path(dataset.uri) / INDEXES / str(part.uuid) / _PAGES
            try:
                for batch in read_file(path):
                    found |= _of_files(batch, places)
            except ENGINE_ERRORS:
                continue
    return found


def _of_files(batch: pa.RecordBatch, places: dict[int, NDArray[np.int64]]) -> dict[int, str]:
    import pyarrow as pa

    addresses = np.asarray(batch["ids"]).astype(np.int64)
    wanted = np.zeros(len(addresses), dtype=bool)
    for number, live in places.items():
        wanted |= (addresses // PLACES == number) & np.isin(addresses % PLACES, live)
    values = batch["values"].filter(pa.array(wanted)).to_pylist()
    pairs = zip(addresses[wanted].tolist(), values, strict=True)
    return {address: value for address, value in pairs if value is not None}
