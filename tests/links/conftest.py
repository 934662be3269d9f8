"""The command line in this process, and a vault of notes to write to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from cli.conftest import Run
from cli.conftest import memctl as memctl

Write = Callable[..., None]


@pytest.fixture
def write(memctl: Run, tmp_path: Path) -> Write:
    """Write notes into the vault, as ``name=text``, and have them read again."""
    vault = tmp_path / "vault"

    def notes(*, folder: str = "", options: tuple[str, ...] = (), **texts: str | None) -> None:
        place = vault / folder
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if text is None:
                (place / f"{name}.md").unlink()
            else:
                (place / f"{name}.md").write_text(dedent(text))
        result = memctl("ingest", str(vault), "--sync", *options)
        assert result.code == 0, result.err

    return notes
