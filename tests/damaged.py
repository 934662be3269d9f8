"""Damage that tests of several rooms do to a knowledge base."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from memctl.store.ledger.ledger import Ledger
from memctl.store.tables.durability import manifest_version


def lose_copies_of_manifests(folder: Path) -> None:
    """Have the ledger know no manifest, as one of before it kept them."""
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger, ledger.transaction() as change:
        change.execute("DELETE FROM manifests")


def manifests(folder: Path, table: str) -> list[Path]:
    """Return the manifests of a table, the newest first."""
    found = (folder / f"lance/{table}.lance/_versions").glob("*.manifest")
    return sorted(found, key=manifest_version, reverse=True)
