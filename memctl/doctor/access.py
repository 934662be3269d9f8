"""Who may look into a folder or change it, and whose it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memctl.doctor.findings import Finding, damaged, ok, warning
from memctl.paths import reason, shown

_READ = stat.S_IRGRP | stat.S_IROTH | stat.S_IXGRP | stat.S_IXOTH
_WRITE = stat.S_IWGRP | stat.S_IWOTH


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
