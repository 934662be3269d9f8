"""What a caller gives to be remembered, in any of four ways, becomes one run of sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from memctl.ingest.jsonl import from_jsonl
from memctl.ingest.sources import (
    Labels,
    SourceOrFailure,
    from_paths,
    from_stream,
    from_text,
)
from memctl.ingest.spool import clear_spools, spool_folder, spooled
from memctl.ingest.total import count_lines
from memctl.records import LeftOutListener


@dataclass(frozen=True, slots=True)
class Given:
    """Files and folders, a text, a stream of one document, JSON lines: any of them."""

    paths: tuple[Path, ...] = ()
    text: str | None = None
    stream: BinaryIO | None = None
    jsonl: Path | str | BinaryIO | None = None


@contextmanager
def opened(
    given: Given, labels: Labels, folder: Path, left_out: LeftOutListener | None = None
) -> Iterator[tuple[Iterable[SourceOrFailure], int | None]]:
    """Give the sources, and how many there are if that can be told beforehand.

    Args:
        given: Where they are.
        labels: What is said of all of them.
        folder: Of the knowledge base that they are for, where a stream is kept meanwhile.
        left_out: Told of everything in a folder that is not taken in, and why.

    Raises:
        OSError: A file of JSON lines cannot be opened.
    """
    place = spool_folder(folder)
    clear_spools(place)
    with ExitStack() as stack:
        few = list(from_paths(given.paths, labels, left_out))
        if given.text is not None:
            few.append(from_text(given.text, labels))
        if given.stream is not None:
            few.append(from_stream(stack.enter_context(spooled(given.stream, place)), labels))
        lines, total = ((), 0) if given.jsonl is None else _lines(given.jsonl, labels, stack)
        yield chain(few, lines), None if total is None else len(few) + total


def _lines(
    given: Path | str | BinaryIO, labels: Labels, stack: ExitStack
) -> tuple[Iterable[SourceOrFailure], int | None]:
    """Return the sources of JSON lines, and how many there are if that can be told."""
    if isinstance(given, (str, Path)):
        total = count_lines(Path(given))
        return from_jsonl(stack.enter_context(Path(given).open("rb")), str(given), labels), total
    name = getattr(given, "name", None)
    is_file = isinstance(name, str) and not name.startswith("<")
    return from_jsonl(given, str(name) if is_file else "stdin", labels), count_lines(given)
