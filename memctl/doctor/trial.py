"""A copy of a knowledge base to try a repair on, which costs no room: its files are linked."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from memctl.pinned import Layout
from memctl.store.lock import WriteLock
from memctl.store.store import LEDGER_FILE, TABLES_FOLDER

_WRITTEN_IN_PLACE = ("latest_version_hint.json",)
WAIT_SECONDS = 5.0


@contextmanager
def trial(layout: Layout, clock: Callable[[], datetime]) -> Iterator[Layout]:
    """Give a copy of the tables, the ledger and the settings that is gone afterwards.

    What was processed is not in it: the ledger names those files where they are.

    Raises:
        LockedError: Somebody is writing.
    """
    top = layout.folder.parent / f".trial-{secrets.token_hex(6)}"
    copy = Layout(top / layout.name)
    try:
        copy.folder.mkdir(mode=0o700, parents=True)
        for folder in (copy.inbox, copy.processing, copy.processed, copy.failed):
            folder.mkdir()
        with WriteLock(layout.folder, clock).held(WAIT_SECONDS):
            _link(layout.folder, copy.folder)
        yield copy
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    tables = source / TABLES_FOLDER
    if tables.is_dir():
        shutil.copytree(tables, target / TABLES_FOLDER, copy_function=_linked)
    for name in ("kb.toml", LEDGER_FILE, f"{LEDGER_FILE}-wal"):
        if (source / name).is_file():
            shutil.copy2(source / name, target / name)


def _linked(source: str, target: str) -> None:
    """Link a file of the engine, which never changes one that it has written, bar a few."""
    if Path(source).name in _WRITTEN_IN_PLACE:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
