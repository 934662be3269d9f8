"""What is to be ingested: paths, folders, a stream, a text or JSON lines become sources.

Nothing is read here beyond what is needed to tell one source from the next; a source that cannot
be one becomes a failed outcome and the others go on.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from memctl.errors import UnreadableSource
from memctl.files import clear_temporaries, is_temporary, new_temporary
from memctl.identity import DEFAULT_NAMESPACE
from memctl.ids import storable
from memctl.ingest.discovery.skip_rules import DEEPEST_FOLDER, TOO_DEEP, IgnoreRules, skip_reason
from memctl.literals import DocType
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.readers.file_kinds import by_database
from memctl.readers.media.subtitles import SIDECARS, by_recording
from memctl.records import FileOutcome, Metadata, SkipListener, SkippedSource, SourceText

_URL = re.compile(r"https?://", re.IGNORECASE)
_SIGN_IN = re.compile(r"^(https?://)[^/?#]*@", re.IGNORECASE)
_ESCAPED = re.compile(rb"\\x([89a-f][0-9a-f])")


class Labels(Struct, frozen=True):
    """What the caller says of all sources of one ingest; an empty field says nothing."""

    namespace: str = DEFAULT_NAMESPACE
    tags: tuple[str, ...] = ()
    session_id: str | None = None
    source: str = ""
    redacts: bool = False
    """Whether ids lose what looks like a secret; all else does when it is read."""
    title: str = ""
    doc_type: DocType | None = None
    agent_id: str | None = None
    metadata: Metadata = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """The fields of a source that are as given, whatever it is."""
        title = {"title": self.title} if self.title else {}
        return {
            "namespace": self.namespace,
            "tags": self.tags,
            "session_id": self.session_id,
            "title": self.title,
            "doc_type": self.doc_type,
            "agent_id": self.agent_id,
            "metadata": {**self.metadata, **title},
        }


class Source(Struct, frozen=True):
    """One thing to ingest: the file at ``path``, or ``text`` itself where there is no file."""

    source: str
    path: Path | None = None
    text: str = ""
    name: str | None = None
    """The file name to judge by when ``path`` has a made-up one."""
    external_id: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    title: str = ""
    created_at: datetime | None = None
    session_id: str | None = None
    turn: int | None = None
    speaker: str | None = None
    type: str = ""
    """The type of its passages; by default derived from the text."""
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    line: int | None = None
    supersedes: str | None = None
    """Id of the document that this one is a newer version of, where the caller knows it."""
    doc_type: DocType | None = None
    """What it is; by default as its format tells."""
    agent_id: str | None = None
    """The agent that adds it."""
    texts: tuple[SourceText, ...] = ()
    """What has been read of it already."""
    part_of: str = ""
    """The source of the file that it is a unit of; see :mod:`memctl.ingest.file_units`."""
    url: str = ""
    """Where it was fetched from; ``path`` is a copy."""
    ends_namesake: bool = False
    """Whether it is a newer version of the document that has the same source, if there is one."""

    @property
    def place(self) -> str | None:
        """Where its file is, or its page; None for a text, and for a stream, read from a copy."""
        if self.url:
            return self.url
        if self.path is None or is_stdin_buffer(self.path):
            return None
        return printable(absolute(self.path))


NO_LABELS = Labels()
SourceOrFailure = Source | FileOutcome


def printable(path: str | Path) -> str:
    """The path as text that can be stored and shown: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def path_of(text: str) -> Path:
    """Return the path that :func:`printable` printed; a file of that very name comes first.

    Where there is none, what looks like an escaped byte is taken for one.
    """
    if os.path.lexists(text):
        return Path(text)
    raw = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), os.fsencode(text))
    return Path(os.fsdecode(raw))


def absolute(path: Path) -> Path:
    """The path from the root, without ``..`` and without following links."""
    return Path(os.path.normpath(path.absolute()))


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a page of the web."""
    return _URL.match(text) is not None


def plain_url(url: str) -> str:
    """Return a URL without a password, and without what names a place within the page."""
    return _SIGN_IN.sub(r"\1", url.strip().partition("#")[0])


def from_text(text: str, labels: Labels = NO_LABELS) -> Source:
    """One text that was given as such."""
    return Source(
        source=labels.source or "text",
        text=storable(text),
        **labels.given,
    )


def from_paths(
    paths: Sequence[Path], labels: Labels = NO_LABELS, left_out: SkipListener | None = None
) -> Iterator[SourceOrFailure]:
    """The files among ``paths`` and in the folders among them, in a stable order.

    A path that is not there or is no regular file becomes a failed outcome.  In folders, hidden
    and ignored files are left out, and so are links, pipes and devices, and subtitles and logs of
    databases that are read with the file beside them; ``left_out`` is called with each.
    """
    for path in paths:
        failure = _refusal(path)
        if failure is not None:
            yield failure
        elif path.is_dir():
            for found in walk(path, left_out):
                yield found if isinstance(found, FileOutcome) else _file_source(found, labels)
        else:
            yield _file_source(path, labels)


def walk(folder: Path, left_out: SkipListener | None = None) -> Iterator[Path | FileOutcome]:
    """The regular files below a folder, sorted, without hidden and ignored ones and links.

    Files that are read with another one beside them are left out, too.  A folder that cannot
    be listed is a failed outcome.
    """
    top = absolute(folder)
    yield from _walk(top, IgnoreRules.above(top), left_out or (lambda _: None))


def by_owner(files: Sequence[Path]) -> dict[Path, tuple[Path, ...]]:
    """Which files go with others of their folder: subtitles of recordings, logs of databases."""
    return {**by_recording(files), **by_database(files)}


def sidecars_among(files: Sequence[Path]) -> frozenset[Path]:
    """The files that go with others, among the files of one folder."""
    return frozenset(chain.from_iterable(by_owner(files).values()))


def from_copy(path: Path, source: str, name: str, labels: Labels, *, url: str = "") -> Source:
    """What there is a copy of, a stream or a page of the web; its name says of which kind it is."""
    return Source(
        source=labels.source or source,
        path=path,
        name=name,
        url=url,
        **labels.given,
    )


def _file_source(path: Path, labels: Labels) -> Source:
    return Source(
        source=labels.source or printable(absolute(path)),
        path=path.resolve() if path.is_symlink() else path,  # one that was named, not found
        name=path.name,
        **labels.given,
    )


def _walk(
    folder: Path, inherited: IgnoreRules, left_out: SkipListener, depth: int = 0
) -> Iterator[Path | FileOutcome]:
    if depth > DEEPEST_FOLDER:
        problem = f"cannot list {display_path(printable(folder))}: {TOO_DEEP}"
        refusal = UnreadableSource(problem, "name the folder itself")
        yield _failure(printable(folder), refusal.message, refusal.hint, refusal)
        return
    rules = inherited.within(folder)
    try:
        with os.scandir(folder) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        name = printable(folder)
        yield _failure(
            name,
            f"cannot list {display_path(name)}: {os_error_reason(error)}",
            os_error_hint(error),
            error,
        )
        return
    wanted: list[os.DirEntry[str]] = []
    for entry in children:
        if why := skip_reason(entry, rules):
            left_out(SkippedSource(printable(entry.path), why))
        else:
            wanted.append(entry)
    files = [Path(entry.path) for entry in wanted if not entry.is_dir(follow_symlinks=False)]
    sidecars = sidecars_among(files)
    for entry in wanted:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, rules, left_out, depth + 1)
        elif path in sidecars:
            is_subtitles = path.suffix.lower() in SIDECARS
            left_out(SkippedSource(printable(path), "subtitles" if is_subtitles else "log"))
        else:
            yield path


def _refusal(path: Path) -> FileOutcome | None:
    name = printable(path)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        if path.is_symlink():
            where = printable(path.readlink())
            problem = f"{display_path(name)} is a link to {display_path(where)}, which is not there"
            return _failure(name, problem, "name the file itself, or put it there", error)
        return _failure(
            name, f"no such file or folder: {display_path(name)}", os_error_hint(error), error
        )
    except OSError as error:
        return _failure(
            name,
            f"cannot look at {display_path(name)}: {os_error_reason(error)}",
            _hint(error),
            error,
        )
    except ValueError as error:
        problem = f"cannot look at {display_path(name)}: {error}"
        return _failure(name, problem, "check the path for a typo", error)
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    hint = "give a regular file or a folder; use - to read from a pipe"
    refusal = UnreadableSource(f"not a regular file: {display_path(name)}", hint)
    return _failure(name, refusal.message, refusal.hint, refusal)


def _hint(error: OSError) -> str:
    """What to do; a name too long may be a text that was meant to be remembered."""
    if error.errno == errno.ENAMETOOLONG:
        return "give a shorter name; a text goes in with --text, or by standard input as -"
    return os_error_hint(error)


def _failure(source: str, why: str, hint: str, error: Exception) -> FileOutcome:
    return FileOutcome(source, "failed", reason=why, hint=hint, error=type(error).__name__)


STDIN_NAME = "stdin"


def is_stdin_buffer(path: Path) -> bool:
    """Return whether a file is a copy of standard input."""
    return is_temporary(path.name, STDIN_NAME)


def stdin_buffer_folder(folder: Path) -> Path:
    """The folder of a knowledge base; that for temporary files where nothing is written to it."""
    return folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())


@contextmanager
def buffer_stdin(stream: BinaryIO, folder: Path) -> Iterator[Path]:
    """A file in ``folder`` with all that ``stream`` gives, gone when the context is left."""
    path, descriptor = new_temporary(folder / STDIN_NAME)
    try:
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(stream, file)
            file.flush()
            yield path
    finally:
        path.unlink(missing_ok=True)


def clear_stdin_buffers(folder: Path) -> None:
    """Remove copies of standard input that no process reads any more."""
    clear_temporaries(filter(is_stdin_buffer, folder.glob(f".{STDIN_NAME}.*")))
