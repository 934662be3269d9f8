"""Reading one source: find out what it is, and hand it to the reader of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from memctl.errors import EmptySource
from memctl.readers.detect import detect
from memctl.readers.limits import in_proportion
from memctl.readers.registry import READERS, Reader, reader_for
from memctl.records import SourceText

Run = Callable[[Reader, Path, str], Iterator[SourceText]]
"""Has a reader read the file at a path, which is called so."""


def here(reader: Reader, path: Path, name: str) -> Iterator[SourceText]:
    """Have a reader work in this process."""
    return reader.load()(path, name)


def read(path: Path, *, name: str | None = None, run: Run = here) -> Iterator[SourceText]:
    """Yield the text of the file at ``path``: one part, or several where it is too big for one.

    Args:
        path: Where the bytes are; sidecar files are looked for beside it.
        name: What the source is called, where the path is a claimed or temporary one.
        run: Where readers work.

    Raises:
        UnreadableSource: It is missing, damaged, empty, encrypted, of a kind nobody reads, or gives
            far more text than a file of its size holds.
    """
    shown = name or path.name
    reader = reader_for(detect(path, shown))
    anything = False
    for source in in_proportion(run(reader, path, shown), path, shown, lambda it: len(it.text)):
        anything = anything or bool(source.text.strip() or source.missing)
        yield replace(source, media_type=reader.media_type, reader=reader.name)
    if not anything:
        raise EmptySource(f"{shown} holds no text", "put something into it and try again")


def supported() -> tuple[Reader, ...]:
    """Every kind of file that can be read, with its extensions and what must be installed."""
    return tuple(READERS.values())
