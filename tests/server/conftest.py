"""A small home, served to all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Serve, serving


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home with an open and a private knowledge base, and what serves it."""
    home: Path = tmp_path_factory.mktemp("served") / "home"
    with serving(home) as made:
        for name, text in (
            ("default", "The door code is 4711."),
            ("diary", "The key is under the flower pot."),
        ):
            made.home.create(name, private=name == "diary")
            with made.home.open(name) as base:
                base.ingest(text=text)
        yield made
