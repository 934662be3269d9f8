"""The command line in this process, on a home of its own."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memctl.cli.main import accept_any_text, run
from memctl.store.ledger.ledger_schema import _MIGRATIONS


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


@pytest.fixture
def memctl(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / "home"))
    for name in ("KB", "USER", "AGENT", "SESSION"):
        monkeypatch.delenv(f"MEMCTL_{name}", raising=False)
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, stdin: str | bytes = "") -> Result:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        for stream in (sys.stdout, sys.stderr):
            accept_any_text(stream)
        code = run(arguments)
        raw, err = capsysbinary.readouterr()
        return Result(code, raw.decode("utf-8", "replace"), err.decode("utf-8", "replace"), raw)

    return command


def ledger_before(table: str) -> tuple[int, list[str]]:
    """Return the version of ledgers without a table, and the tables that came with it or later."""
    made = [re.findall(r"CREATE TABLE (\w+)", "\n".join(each)) for each in _MIGRATIONS]
    version = next(number for number, tables in enumerate(made) if table in tables)
    return version, [name for tables in made[version:] for name in tables]
