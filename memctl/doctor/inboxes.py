"""Files on their way: those in ``processing/`` and in ``failed/``, against the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from memctl.doctor.findings import Examined, Finding, counted, ok, warning
from memctl.ingest.sources import printable
from memctl.pinned import REASON_SUFFIX, reason_path
from memctl.store.lock import is_watched
from memctl.watch.claim import claim_name
from memctl.watch.polling import polled


def check_inboxes(examined: Examined) -> Iterator[Finding]:
    """Look for files that nobody works on, and for failed ones that do not say why."""
    yield from _check_processing(examined)
    yield from _check_failed(examined)
    yield from _check_events(examined)


def _check_processing(examined: Examined) -> Iterator[Finding]:
    folder = examined.layout.processing
    claimed = {
        claim_name(entry.path) for entry in examined.ledger.files.entries(["claimed", "indexed"])
    }
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    loose = [path for path in there if path.name.partition("-")[0] not in claimed]
    if is_watched(examined.layout):
        yield ok("inbox", "processing", f"{counted(len(there), 'file')} being taken in")
    elif loose:
        told = f"{counted(len(loose), 'file')} that nobody has claimed"
        hint = "memctl watch takes them in"
        yield warning("inbox", "processing", f"{told}: {printable(loose[0].name)}", hint)
    elif there:
        told = f"{counted(len(there), 'file')} claimed by a process that is gone"
        yield warning("inbox", "processing", told, "memctl watch takes them in")
    else:
        yield ok("inbox", "processing", "empty")


def _check_events(examined: Examined) -> Iterator[Finding]:
    """Tell of folders that the watcher only looks into from time to time."""
    told = polled(examined.ledger) if is_watched(examined.layout) else ()
    for each in told:
        hint = "sysctl fs.inotify shows the limits; what they forbid is tried again by itself"
        yield (
            warning("inbox", "events", each, hint)
            if "limit" in each
            else ok("inbox", "events", each)
        )


def _check_failed(examined: Examined) -> Iterator[Finding]:
    folder = examined.layout.failed
    files = [
        path
        for path in (sorted(folder.rglob("*")) if folder.is_dir() else [])
        if path.is_file() and not path.name.endswith(REASON_SUFFIX)
    ]
    silent = [path for path in files if not reason_path(path).exists()]
    if silent:
        told = f"{counted(len(silent), 'file')} without a reason: {printable(silent[0].name)}"
        yield warning("inbox", "failed", told, "move them back into the inbox to try again")
    else:
        yield ok("inbox", "failed", f"{counted(len(files), 'file')}, each with its reason")
