"""A knowledge base that may only be read: its ledger is read whole, and writing is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from limited import LIMITED, needs_permissions
from waiting import PATIENCE

from memctl.errors import DiskRefused
from memctl.store.ledger.ledger import Ledger
from memctl.store.store import Store

pytestmark = needs_permissions

Python = Callable[[str], list[str]]


@pytest.fixture
def python(folder: Path) -> Iterator[Python]:
    """Run a program on the store's folder, in which nothing can be written meanwhile."""

    def run(program: str) -> list[str]:
        head = (
            "import sys\nfrom pathlib import Path\nfrom memctl.errors import MemctlError\n"
            "from memctl.store.ledger.ledger import Ledger\nfrom memctl.store.store import Store\n"
            "folder = Path(sys.argv[1])\n"
        )
        done = subprocess.run(
            [*LIMITED, sys.executable, "-c", head + program, str(folder)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert not done.stderr
        return done.stdout.splitlines()

    yield run
    _permit(folder, 0o700)


def _permit(folder: Path, mode: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(mode if path.is_dir() else mode & 0o666)


def test_a_store_without_permission_to_write_is_read_and_refuses_to_be_written(
    folder: Path, python: Python, rows_of
) -> None:
    with Store.open(folder) as store, store.write() as transaction:
        transaction.append("memories", rows_of(range(3)))
    _permit(folder, 0o500)
    before = sorted(folder.rglob("*"))
    said = python("""
with Store.open(folder) as store:
    print(store.snapshot().count('memories'))
    attempts = store.write().__enter__, store.upkeep, lambda: store.ledger.set_meta("a", "b")
    for attempt in attempts:
        try:
            attempt()
        except MemctlError as error:
            print(type(error).__name__, 'read-only' in error.message, bool(error.hint))
""")
    assert said == ["3", *["DiskRefused True True"] * 3]
    assert sorted(folder.rglob("*")) == before


def test_rows_only_in_the_ledgers_write_ahead_log_are_read(folder: Path, python: Python) -> None:
    """As after a crash, or on a disk that was copied while somebody was writing."""
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        ledger.set_meta("note", "in the log")
        files = {path: path.read_bytes() for path in folder.glob("ledger.sqlite*")}
    assert len(files) == 3
    for path, content in files.items():
        if not path.name.endswith("-shm"):
            path.write_bytes(content)
    _permit(folder, 0o500)
    assert python("print(Ledger.open(folder / 'ledger.sqlite').meta('note'))") == ["in the log"]


def test_the_commits_of_a_live_writer_are_seen(folder: Path, python: Python) -> None:
    with closing(Ledger.open(folder / "ledger.sqlite")) as ledger:
        ledger.set_meta("note", "not yet in the file")
        _permit(folder, 0o500)
        assert python("print(Ledger.open(folder / 'ledger.sqlite').meta('note'))") == [
            "not yet in the file"
        ]


def test_commits_of_others_are_seen_though_what_is_read_is_a_copy(
    folder: Path, python: Python
) -> None:
    _permit(folder, 0o500)
    privileged = f"""
import sqlite3
writer = sqlite3.connect({str(folder / "ledger.sqlite")!r}, isolation_level=None)
writer.execute("INSERT INTO meta VALUES ('note', 'written since')")
writer.close()
"""
    said = python(f"""
ledger = Ledger.open(folder / 'ledger.sqlite')
print(ledger.meta('note'))
folder.chmod(0o700), (folder / 'ledger.sqlite').chmod(0o600)
{privileged}
print(ledger.meta('note'))
""")
    assert said == ["None", "written since"]


def test_a_ledger_that_may_not_even_be_read_says_so(folder: Path, python: Python) -> None:
    (folder / "ledger.sqlite").chmod(0)
    said = python("""
try:
    Ledger.open(folder / 'ledger.sqlite')
except MemctlError as error:
    print(type(error).__name__)
""")
    assert said == [DiskRefused.__name__]
