"""Who may look into a folder or change it, and whose it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memctl.doctor.findings import Finding, counted, damaged, ok, warning
from memctl.files import open_regular
from memctl.paths import next_step, reason, shown
from memctl.pinned import Layout
from memctl.store.store import LEDGER_FILE, TABLES_FOLDER

_READ = stat.S_IRGRP | stat.S_IROTH | stat.S_IXGRP | stat.S_IXOTH
_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NOT_NOW = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOMEM}
"""What may keep a whole file from being opened, for a while or to this user."""


def cannot_be_entered(folder: Path) -> Finding | None:
    """Tell of a folder into which this user may not look, of which nothing else can be said."""
    try:
        os.scandir(folder).close()
        (folder / "kb.toml").exists()
    except OSError as error:
        message = f"cannot be entered: {reason(error)}"
        hint = f"whoever owns it: chmod 700 {shown(folder)}"
        return damaged("folders", folder.name, message, hint)
    return None


def cannot_be_read(layout: Layout) -> Finding | None:
    """Tell of files that this user may not open: what is in them may well be whole.

    Repairing would take them for damaged, and what only they have for lost.
    """
    closed = [
        each for top in (layout.folder / TABLES_FOLDER, layout.processed) for each in _unopened(top)
    ]
    closed += [
        each
        for path in (layout.settings, layout.folder / LEDGER_FILE)
        if (each := _refusal(path)) is not None
    ]
    if not closed:
        return None
    error = closed[0]
    message = f"{counted(len(closed), 'file')} cannot be opened, such as {_told(error)}"
    hint = next_step(error, "run this again when the system opens them")
    if isinstance(error, PermissionError):
        hint = "let this user read them (chown, chmod u+r): what stands in them is not lost"
    return damaged("folders", layout.name, message, hint)


def _unopened(top: Path) -> Iterator[OSError]:
    """Yield what the system says of each file and folder below one that it does not open."""
    refused: list[OSError] = []
    for folder, _, files in os.walk(top, onerror=refused.append):
        for name in files:
            if (error := _refusal(Path(folder, name))) is not None:
                yield error
    yield from (error for error in refused if error.errno in _NOT_NOW)


def _refusal(path: Path) -> OSError | None:
    try:
        open_regular(path).close()
    except OSError as error:
        return error if error.errno in _NOT_NOW else None
    return None


def _told(error: OSError) -> str:
    path = Path(os.fsdecode(error.filename))
    told = f"{shown(path)}: {reason(error)}"
    try:
        found = path.lstat()
    except OSError:
        return told
    return f"{told} (user {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o})"


def check_access(folder: Path, subject: str) -> Iterator[Finding]:
    """Look whether a folder is this user's, and closed to all others; Windows has other means."""
    if os.name == "nt" or not folder.is_dir():
        return
    found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        message = f"belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        hint = "use it as the user whose it is, or chown it: what either writes the other may not"
        yield warning("folders", subject, message, hint)
    if mode & (_READ | _WRITE):
        verb = "change it" if mode & _WRITE else "look into it"
        message = f"other people may {verb} (mode {mode:04o})"
        yield warning("folders", subject, message, f"chmod 700 {shown(folder)}")
    else:
        yield ok("folders", subject, f"closed to other people (mode {mode:04o})")
