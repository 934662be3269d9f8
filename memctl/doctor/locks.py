"""Who writes to a knowledge base and who watches it, and what killed processes left of that."""

from __future__ import annotations

from collections.abc import Iterator

from memctl.doctor.findings import Finding, counted, ok
from memctl.pinned import Layout
from memctl.store.ledger import Ledger
from memctl.store.lock import WriteLock, is_watched
from memctl.store.store import LEASES_FOLDER, utc_now


def check_writer(layout: Layout) -> Iterator[Finding]:
    """Tell who holds the write lock; a signature that a killed process left does no harm."""
    lock = WriteLock(layout.folder, utc_now)
    holder = lock.holder()
    who = f"process {holder.pid} on {holder.host}, since {holder.since}" if holder else ""
    if lock.is_held():
        yield ok("locks", "write lock", f"held by {who or 'another process'}")
    elif holder:
        told = f"free; {who} was killed while it held it, which the kernel has undone"
        yield ok("locks", "write lock", told)
    else:
        yield ok("locks", "write lock", "free")


def check_watcher(layout: Layout, ledger: Ledger) -> Iterator[Finding]:
    """Tell whether a daemon watches the inboxes, and how many readers are on record."""
    daemon = ledger.daemon.get()
    if not is_watched(layout):
        yield ok("locks", "watch lock", "free")
    elif daemon is not None:
        yield ok("locks", "watch lock", f"held by process {daemon.pid} on {daemon.host}")
    else:
        yield ok("locks", "watch lock", "held by another process")
    leases = len(list((layout.folder / LEASES_FOLDER).glob("*.json")))
    yield ok("locks", "readers", f"{counted(leases, 'process', 'processes')} on record")
