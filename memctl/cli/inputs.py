"""What is named on the command line, looked at before anything is done.

Nothing may be named by an empty word: that is what a variable of the shell becomes that is not set,
and taken for "none given" it would mean the whole folder, or everything that is known.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memctl.errors import UsageError
from memctl.paths import expanded, next_step, reason, shown

_ASK = 'ask something: memctl query "when is ...?"'
_UNSET = "give one, or leave the option out; a variable of the shell may not be set"


def refuse_empty(options: Mapping[str, str | Sequence[str] | None]) -> None:
    """Refuse options whose value, or one of whose values, is blank.

    Args:
        options: What was given for each option, by the option's name.

    Raises:
        UsageError: Names the first such option.
    """
    for option, given in options.items():
        values = [given] if isinstance(given, str) else given or ()
        if not all(value.strip() for value in values):
            raise UsageError(f"{option} is empty", _UNSET)


def path_of(name: str) -> Path:
    """Return the path that the user wrote.

    Raises:
        UsageError: It is empty, or has a NUL in it.
    """
    if not name:
        raise UsageError("a path is empty", "give one; a variable of the shell may not be set")
    if "\0" in name:
        raise UsageError(f"no path has a NUL in it: {shown(name)}")
    return expanded(name)


def input_file(name: str, hint: str) -> Path:
    """Return the path of a file to read; a pipe will do.

    Args:
        name: What the user wrote.
        hint: What to write instead where it is no file.

    Raises:
        UsageError: It is not there, is a folder, or cannot be looked at.
    """
    path = path_of(name)
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
    path = path_of(name).absolute()
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


def question_of(words: Sequence[str]) -> str:
    """Return a question from the words of the command line; ``-`` is standard input.

    Raises:
        UsageError: There are no words in it.
    """
    text = sys.stdin.read() if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        raise UsageError("the question is empty", _ASK)
    if not any(map(str.isalnum, text)):
        raise UsageError("the question has no words", _ASK)
    return text.strip()
