"""Files and folders that are named on the command line, looked at before anything is done."""

from __future__ import annotations

import stat
from pathlib import Path

from memctl.errors import UsageError
from memctl.paths import expanded, next_step, reason, shown


def input_file(name: str, hint: str) -> Path:
    """Return the path of a file to read; a pipe will do.

    Args:
        name: What the user wrote.
        hint: What to write instead where it is no file.

    Raises:
        UsageError: It is not there, is a folder, or cannot be looked at.
    """
    path = expanded(name)
    mode = _mode(path)
    if mode is None:
        raise UsageError(f"no such file: {shown(name)}", hint)
    if stat.S_ISDIR(mode):
        raise UsageError(f"{shown(name)} is a folder", hint)
    return path


def input_folder(name: str, hint: str) -> Path:
    """Return the whole path of a folder.

    Args:
        name: What the user wrote.
        hint: What to do where it is none.

    Raises:
        UsageError: It is not there, is a file, or cannot be looked at.
    """
    path = expanded(name).absolute()
    mode = _mode(path)
    if mode is None or not stat.S_ISDIR(mode):
        problem = "no such folder" if mode is None else "not a folder"
        raise UsageError(f"{problem}: {shown(name)}", hint)
    return path


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{shown(path)}: {reason(error)}", next_step(error)) from error
