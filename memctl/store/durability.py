"""Making new files of a table survive a power cut.

Lance 13 never calls fsync: without this a cut can leave the newest manifest or data file empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memctl.files import sync_folder


def files_below(folder: Path) -> set[str]:
    """Return the paths of all files below a folder."""
    return {f"{root}{os.sep}{name}" for root, _, names in os.walk(folder) for name in names}


def sync_new(folder: Path, known: set[str]) -> int:
    """Make files below ``folder`` that are not ``known`` durable, and their names; count them."""
    new = files_below(folder) - known
    for path in new:
        _sync_file(path)
    for parent in _folders(new, folder):
        sync_folder(parent)
    return len(new)


def _sync_file(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except FileNotFoundError:  # a temporary file of the engine that is gone by now
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folders(paths: Iterable[str], top: Path) -> set[Path]:
    """Return the folders of the paths and those between them and ``top``, included."""
    result: set[Path] = set()
    for path in paths:
        folder = Path(path).parent
        while folder not in result and folder != top.parent:
            result.add(folder)
            folder = folder.parent
    return {folder for folder in result if folder.is_dir()}
