"""The command line in this process, on one home for each module of tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, runner


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("feedback")


@pytest.fixture
def memctl(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Run a command as in a pipe, with ``stdin`` as standard input."""
    command = runner(folder / "home", monkeypatch, capsysbinary)
    if not (folder / "home").exists():
        assert command("kb", "create", "default").code == 0
    return command
