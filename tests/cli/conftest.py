"""The command line in this process, on a home of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Result, Run, runner

from memctl.store.ledger.ledger_schema import _MIGRATIONS

__all__ = ["Result", "Run", "ledger_before", "memctl"]


@pytest.fixture
def memctl(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    monkeypatch.chdir(tmp_path)
    return runner(tmp_path / "home", monkeypatch, capsysbinary)


def ledger_before(table: str) -> str:
    """Return the statements that make a ledger of one as it was before a table came."""
    made = ["\n".join(each) for each in _MIGRATIONS]
    version = next(number for number, each in enumerate(made) if f"CREATE TABLE {table} " in each)
    later = re.findall(r"CREATE (TABLE|TRIGGER) (\w+)", "\n".join(made[version:]))
    drops = [f"DROP {kind} {name};" for kind, name in reversed(later)]
    return f"{''.join(drops)} PRAGMA user_version = {version};"
