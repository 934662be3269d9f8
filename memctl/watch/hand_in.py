"""The inbox of a knowledge base by hand: put a file in, see what failed, and have it tried again.

Has the effect of copying a file into the inbox and running ``memctl watch --once``; files
take the same way as those that a watcher finds.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from memctl.errors import NotFoundError, UsageError
from memctl.files import atomic_write, make_folder, read_regular
from memctl.ingest.discovery.skip_rules import may_be_taken
from memctl.ingest.discovery.sources import printable
from memctl.kb_settings import MAX_FILE_NAME_BYTES, REASON_SUFFIX, Layout, reason_path
from memctl.watch.claims import free_place, move_file
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.watch.reporter import DrainResult

_PIECE = 1 << 20
_SUFFIX_BYTES = 20
"""This much of the end of a name stays if it is too long."""


class FailedFile(Struct, frozen=True):
    """A file in ``failed/``, and why it is there."""

    name: str
    """Its path below ``failed/``."""
    size: int
    reason: str = ""
    hint: str = ""
    failed_at: str = ""
    """When, in ISO 8601."""


def failed_files(layout: Layout) -> Sequence[FailedFile]:
    """Return the files that could not be taken in, the latest first."""
    found = [_failed_file(layout, path) for path in _files(layout.failed)]
    return sorted(found, key=lambda failed: (failed.failed_at, failed.name), reverse=True)


def _files(folder: Path) -> Sequence[Path]:
    """Return the files in a folder and those below it, but for the reasons beside them."""
    if not folder.is_dir():
        return []
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.endswith(REASON_SUFFIX)
    ]


def _failed_file(layout: Layout, path: Path) -> FailedFile:
    stored: dict[str, str] = {}
    with suppress(OSError, ValueError):  # it may have been removed, or edited, by hand
        stored = json.loads(read_regular(reason_path(path)))
    name = printable(path.relative_to(layout.failed).as_posix())
    reason, hint, at = (str(stored.get(key, "")) for key in ("message", "hint", "at"))
    return FailedFile(name, path.stat().st_size, reason, hint, at)


def put_in(layout: Layout, name: str, file: BinaryIO) -> Path:
    """Put a file into the inbox, whole or not at all; return where it is.

    Args:
        layout: Of the knowledge base.
        name: What it was called where it comes from; only its last part counts.
        file: Its content.

    Raises:
        UsageError: A file of that name would never be taken in.
    """
    target_name = _file_name(name)
    if not may_be_taken(target_name) or target_name.startswith("."):
        raise UsageError(f"a file called {target_name!r} is never taken in", "give it another name")
    make_folder(layout.inbox, mode=0o700)
    path = free_place(layout.inbox, Path(target_name), [])[Path(target_name)]
    with atomic_write(path) as target:
        for piece in iter(lambda: file.read(_PIECE), b""):
            target.write(piece)
    return path


def _file_name(name: str) -> str:
    """Return a name that every file system can hold."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    plain = "".join("_" if unicodedata.category(c) in ("Cc", "Cs", "Cf") else c for c in last)
    plain = plain.strip() or "unnamed"
    encoded = plain.encode()
    most = MAX_FILE_NAME_BYTES - len(REASON_SUFFIX)
    if len(encoded) <= most:
        return plain
    end = encoded[-_SUFFIX_BYTES:].decode(errors="ignore")
    return encoded[: most - _SUFFIX_BYTES].decode(errors="ignore") + end


def retry(layout: Layout, name: str) -> Path:
    """Put a failed file back into the inbox; return where it is.

    Raises:
        NotFoundError: There is no such file in ``failed/``.
    """
    named = {
        printable(each.relative_to(layout.failed).as_posix()): each
        for each in _files(layout.failed)
    }
    path = named.get(name)
    if path is None:
        raise NotFoundError(f"no file {name!r} has failed", "it may have been tried again already")
    make_folder(layout.inbox, mode=0o700)
    relative = path.relative_to(layout.failed)
    target = free_place(layout.inbox, relative, [])[relative]
    make_folder(target.parent)
    move_file(path, target)
    reason_path(path).unlink(missing_ok=True)
    for folder in path.parents:
        if folder == layout.failed:
            break
        with suppress(OSError):  # others are in it
            folder.rmdir()
    return target


def take_in(home: Home, kb: str) -> DrainResult:
    """Take in what waits in the inboxes of a knowledge base, as ``memctl watch --once`` does.

    Raises:
        LockedError: A watcher serves it, which takes it in.
        KnowledgeBaseUnavailable: It is paused or archived.
    """
    bases = WatchedBases(home, [kb])
    bases.check()
    settings = home.config.watch
    options = WatchOptions(settings.settle_seconds, settings.rescan_seconds, once=True)
    return WatchService(bases, options, lambda _: None, home.now).run()
