"""The command line in this process, as for the other commands, and homes that may be changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.conftest import Result, Run, memctl

__all__ = ["memctl"]


@pytest.fixture
def own(filled: Path, memctl: Run, tmp_path: Path) -> Run:
    """Run a command on a copy of the home that a module has filled."""
    shutil.copytree(filled, tmp_path / "home")
    return memctl


def done(result: Result) -> Result:
    assert result.code == 0, result.err
    return result
