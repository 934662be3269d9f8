"""Copies of manifests in the ledger, to write those again that are lost.

A version of a table is nothing without the one small file that says which others it has; when it
alone is lost, every row is still there.
"""

from __future__ import annotations

from collections.abc import Iterator

from memctl.errors import DamagedError
from memctl.store.datasets import Datasets
from memctl.store.durability import manifest_path
from memctl.store.ledger import Ledger
from memctl.store.manifest_book import Place


def keep_manifests(datasets: Datasets, ledger: Ledger) -> None:
    """Have the ledger keep a copy of the manifest of every version with a name, and no others.

    It belongs into the transaction that gives versions their names.
    """
    ledger.manifests.drop_nameless()
    for table, version in ledger.manifests.lacking():
        try:
            content = manifest_path(datasets.path(table), version).read_bytes()
            rows = int(datasets.at(table, version).count_rows())
        except (FileNotFoundError, DamagedError):  # of a snapshot that is damaged
            continue
        ledger.manifests.put((table, version), content, rows)


def lost_manifests(datasets: Datasets, ledger: Ledger) -> Iterator[tuple[Place, bytes]]:
    """Yield the versions with a name whose manifest is not the one that the ledger has."""
    for (table, version), content in ledger.manifests.all().items():
        path = manifest_path(datasets.path(table), version)
        if not path.is_file() or path.read_bytes() != content:
            yield (table, version), content
