"""Sources get their hash, and their text with positions; what cannot be read says why."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.errors import ChangedSource, MemctlError
from memctl.files import open_regular
from memctl.ids import document_id
from memctl.ingest.batch import Identified, Wanted
from memctl.ingest.sources import Source
from memctl.paths import next_step, reason, shown
from memctl.records import SourceText

if TYPE_CHECKING:
    from memctl.readers import Readers

RECORD_READER = "record/1"
"""The reader of texts that come as such, without a file."""

CHANGED = ChangedSource.__name__
"""The class of the error when a file was written to while it was being read."""

_log = logging.getLogger(__name__)


class Unreadable(Exception):
    """A source that cannot be taken in: the reason, a hint and the class of what went wrong."""

    def __init__(self, reason: str, hint: str = "", error: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.error = error


def identify(source: Source) -> Identified:
    """Hash the content of a source, a file in pieces.

    Raises:
        Unreadable: The file cannot be read.
    """
    if source.path is None:
        content = source.text.encode("utf-8", "replace")
        digest = hashlib.sha256(content).hexdigest()
        return Identified(source, digest, len(content), _key(source, digest))
    try:
        with open_regular(source.path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            status = os.fstat(file.fileno())
    except OSError as error:
        raise _unreadable(source, error) from error
    key = _key(source, digest)
    return Identified(source, digest, status.st_size, key, status.st_mtime_ns)


def _key(source: Source, sha256: str) -> str:
    return document_id(source.namespace, sha256, external_id=source.external_id)


def texts_of(wanted: Wanted, readers: Readers) -> Generator[SourceText, None, None]:
    """The text of a source as :func:`parts`, or as it is remembered.

    Raises:
        Unreadable: As :func:`parts`.
    """
    if wanted.stored:
        yield from _with_shares((part.text for part in wanted.stored), wanted.item.size)
    else:
        yield from parts(wanted.item, readers)


def parts(item: Identified, readers: Readers) -> Generator[SourceText, None, None]:
    """The text of a source: one part, or several of a source too big for memory.

    Raises:
        Unreadable: It cannot be turned into text, or it changed meanwhile.
    """
    source = item.source
    if source.path is None:
        yield SourceText(source.text, "text/plain", RECORD_READER, title=source.title)
        return
    try:
        yield from _with_shares(_read(readers, source.path, source.name), item.size)
        _check_unchanged(item, source.path)
    except MemctlError as error:
        raise Unreadable(error.message, error.hint, type(error).__name__) from error
    except OSError as error:
        raise _unreadable(source, error) from error


def _with_shares(texts: Iterable[SourceText], size: int) -> Iterator[SourceText]:
    """The parts of a source that has several, each with its share of all of it."""
    held: SourceText | None = None
    for text in texts:
        if held is not None:
            yield _with_share(held, size)
        held = text
    if held is not None:
        yield _with_share(held, size) if held.part else held


def _with_share(text: SourceText, size: int) -> SourceText:
    return replace(text, share=min(1.0, len(text.text.encode("utf-8", "replace")) / max(1, size)))


def _read(readers: Readers, path: Path, name: str | None) -> Iterator[SourceText]:
    try:
        yield from readers.read(path, name=name)
    except (MemctlError, OSError, GeneratorExit):
        raise
    except Exception as error:  # a reader's own bug must not stop the other files
        raise _fault(error, path, name or path.name) from error


def _fault(error: Exception, path: Path, name: str) -> Unreadable:
    from memctl.readers.apart import ReaderFault

    kind = type(error).__name__
    if isinstance(error, ReaderFault):
        kind = error.kind
        _log.error("reading %s\n%s", path, error.trace)
    else:
        _log.error("reading %s", path, exc_info=error)
    told = str(error) if isinstance(error, ReaderFault) else f"{kind}: {error}"
    return Unreadable(
        f"{name}: reading it failed: {told}",
        "the file may be damaged; run with --verbose for the details",
        kind,
    )


def _check_unchanged(item: Identified, path: Path) -> None:
    status = path.lstat()
    if (status.st_size, status.st_mtime_ns) != (item.size, item.mtime_ns):
        raise ChangedSource(
            f"{shown(item.source.source)} changed while it was being read",
            "try again when it is finished",
        )


def _unreadable(source: Source, error: OSError) -> Unreadable:
    message = f"cannot read {shown(source.source)}: {reason(error)}"
    hint = next_step(error, "check that it is there to be read")
    return Unreadable(message, hint, type(error).__name__)
