"""Commands on a home of its own, and libraries that a file has taken over."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import memctl

__all__ = ["memctl"]

TakeOver = Callable[[str], Path]


@pytest.fixture
def taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TakeOver:
    """Return a Word file, and have the library that reads it run the code given instead.

    What a hostile file can do at worst is to make the library that reads it run code of its own.
    """

    def take_over(code: str) -> Path:
        library = tmp_path / "library" / "docx"
        library.mkdir(parents=True, exist_ok=True)
        (library / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(library.parent)
        path = tmp_path / "letter.docx"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("word/document.xml", "<document/>")
        return path

    return take_over
