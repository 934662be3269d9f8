"""Loading the Lance engine, and turning its failures into ours.

The engine (``import lance``) is what runs at query time, because ``import lancedb`` takes five
times as long for a client of remote services that is never used here; the files are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from memctl.errors import DamagedError

if TYPE_CHECKING:
    from pathlib import Path

INDEX_CACHE_BYTES = 128 << 20
METADATA_CACHE_BYTES = 64 << 20

_HINT = "run `memctl doctor --repair`; the file names above say which table is hurt"


def lance() -> ModuleType:
    """Import the engine, quietly.

    lance 13 logs to standard error from Rust and reads its level from ``LANCE_LOG`` while it is
    being imported, so the variable has to be set here and nowhere else.  ``off`` crashes it.
    """
    os.environ.setdefault("LANCE_LOG", "error")
    import lance as module

    return module


def lancedb() -> ModuleType:
    """Import LanceDB, quietly: lancedb 0.40 does as lance does, with a variable of its own."""
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb as module

    return module


@contextmanager
def reading(what: str | Path) -> Iterator[None]:
    """Turn the engine's failures while reading ``what`` into :class:`DamagedError`.

    lance 13 raises ``ValueError``, ``OSError``, ``RuntimeError`` or pyarrow's own (which derive
    from the first two) for files that are missing, cut short or overwritten.
    """
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise DamagedError(f"cannot read {what}: {first_line(error)}", _HINT) from error


def first_line(error: BaseException) -> str:
    """Return an engine error as one line, without the engine's own source locations."""
    text = str(error).partition("\n")[0]
    return text.partition(", /home/")[0].partition(", /rustc/")[0].strip() or type(error).__name__
