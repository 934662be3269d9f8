"""The command line in this process, on a home that a test chooses."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memctl.cli.main import accept_any_text, run


@dataclass(frozen=True)
class Result:
    """What one command gave."""

    code: int
    out: str
    err: str
    raw: bytes

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


def made_once(folder: Path, kept: Path, make: Callable[[], object]) -> None:
    """Make what a folder holds; the next time it is copied from where it was kept.

    Args:
        folder: Where it is to be; a home may lie in it.
        kept: Where it is kept.
        make: Makes it.
    """
    if kept.exists():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    else:
        make()
        shutil.copytree(folder, kept)


def runner(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Return what runs a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    for name in ("KB", "USER", "AGENT", "SESSION"):
        monkeypatch.delenv(f"MEMCTL_{name}", raising=False)

    def command(*arguments: str, stdin: str | bytes = "") -> Result:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        for stream in (sys.stdout, sys.stderr):
            accept_any_text(stream)
        code = run(arguments)
        raw, err = capsysbinary.readouterr()
        return Result(code, raw.decode("utf-8", "replace"), err.decode("utf-8", "replace"), raw)

    return command
