"""Sources get their hash, and their text with positions; what cannot be read says why."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from io import BufferedReader
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec.structs import replace

from memctl.errors import ChangedSource, MemctlError
from memctl.files import open_regular
from memctl.ids import document_id
from memctl.ingest.batches import IdentifiedSource, ReadFailure, WantedSource
from memctl.ingest.chunking import sentence_spans
from memctl.ingest.discovery.sources import Source
from memctl.links.vault_files import FIRST_BYTES, NOTE_ENDING, seal_of
from memctl.literals import RECORD_READER
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.readers.dated_entries import with_entry_days
from memctl.readers.file_kinds import DATABASE_START, database_logs
from memctl.records import FileOutcome, Segment, SourceText
from memctl.redaction import MARK, redact_name, redact_secrets, redact_with_offsets

if TYPE_CHECKING:
    from memctl.readers import Readers

CHANGED = ChangedSource.__name__
"""The class of the error when a file was written to while it was being read."""

_log = logging.getLogger(__name__)


class Unreadable(Exception):
    """A source that cannot be taken in, and why."""

    def __init__(self, why: ReadFailure) -> None:
        super().__init__(why.reason)
        self.why = why


def identify(source: Source) -> IdentifiedSource:
    """Hash the content of a source, a file in pieces.

    Raises:
        Unreadable: The file cannot be read.
    """
    if source.path is None:
        content = source.text.encode("utf-8", "replace")
        digest = hashlib.sha256(content).hexdigest()
        return IdentifiedSource(source, digest, len(content), _key(source, digest))
    try:
        with open_regular(source.path) as file:
            digest = content_digest(source.path, file)
            status = os.fstat(file.fileno())
            copy_of = _exported_from(source.path, file)
    except OSError as error:
        raise _unreadable(source, error) from error
    key = _key(source, digest)
    return IdentifiedSource(source, digest, status.st_size, key, status.st_mtime_ns, copy_of)


def content_digest(path: Path, file: BufferedReader) -> str:
    """Return the SHA-256 of an open file, of a database with the logs beside it that are read.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.file_digest(file, "sha256")
    file.seek(0)
    if file.read(len(DATABASE_START)) == DATABASE_START:
        for log in database_logs(path):
            with open_regular(log) as changes:
                digest.update(hashlib.file_digest(changes, "sha256").digest())
    return digest.hexdigest()


def _exported_from(path: Path, file: BinaryIO) -> str:
    """Return what a file was exported from; "" where it was not, or has been edited since."""
    if path.suffix.lower() != NOTE_ENDING:
        return ""
    file.seek(0)
    if not file.read(len(FIRST_BYTES)).startswith(FIRST_BYTES):
        return ""
    file.seek(0)
    seal = seal_of(file.read())
    return seal.id if seal is not None and seal.is_intact else ""


def _key(source: Source, sha256: str) -> str:
    return document_id(source.namespace, sha256, external_id=source.external_id)


def texts_of(wanted: WantedSource, readers: Readers) -> Generator[SourceText, None, None]:
    """The text of a source as :func:`read_parts`, or as it is remembered.

    Raises:
        Unreadable: As :func:`read_parts`.
    """
    if wanted.stored:
        yield from _with_shares((part.text for part in wanted.stored), wanted.item.size)
    else:
        yield from read_parts(wanted.item, readers)


def read_parts(item: IdentifiedSource, readers: Readers) -> Generator[SourceText, None, None]:
    """The text of a source: one part, or several of a source too big for memory.

    Raises:
        Unreadable: It cannot be turned into text, or it changed meanwhile.
    """
    source = item.source
    if source.texts:
        yield from source.texts
        return
    if source.path is None:
        yield SourceText(source.text, "text/plain", RECORD_READER, title=source.title)
        return
    try:
        for text in _with_shares(_read(readers, source.path, source.name), item.size):
            stated = source.created_at or text.created_at
            name = source.name or source.path.name
            yield with_entry_days(text, stated, item.modified_at, name)
        _check_unchanged(item, source.path)
    except MemctlError as error:
        why = ReadFailure(error.message, error.hint, type(error).__name__)
        raise Unreadable(why) from error
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
    from memctl.readers.isolation import ReaderCrash

    kind = type(error).__name__
    if isinstance(error, ReaderCrash):
        kind = error.kind
        _log.error("reading %s\n%s", path, error.trace)
    else:
        _log.error("reading %s", path, exc_info=error)
    problem = str(error) if isinstance(error, ReaderCrash) else f"{kind}: {error}"
    reason = f"{name}: reading it failed: {problem}"
    hint = "the file may be damaged; run with --verbose for the details"
    return Unreadable(ReadFailure(reason, hint, kind))


def _check_unchanged(item: IdentifiedSource, path: Path) -> None:
    status = path.lstat()
    if (status.st_size, status.st_mtime_ns) != (item.size, item.mtime_ns):
        raise ChangedSource(
            f"{display_path(item.source.source)} changed while it was being read",
            "try again when it is finished",
        )


def _unreadable(source: Source, error: OSError) -> Unreadable:
    message = f"cannot read {display_path(source.source)}: {os_error_reason(error)}"
    hint = os_error_hint(error, "check that it is there to be read")
    return Unreadable(ReadFailure(message, hint, type(error).__name__))


# --- newer versions ------------------------------------------------------------------------------

_SHARE_OF_REVISED = 0.7
"""Of the words of a file, how many one that was dropped under its name has if it is a revision: a
changed fact leaves most of them, the next file of the same form has fewer."""


_BELOW_HEADER = re.compile(r"[\s|:+-]+")
"""The line between the header of a table and its rows."""


def is_revision(earlier: str, later: str) -> bool:
    """Return whether a text has most of the words of another one."""
    before, now = (set(text.casefold().split()) for text in (earlier, later))
    return bool(before) and len(before & now) >= _SHARE_OF_REVISED * len(before)


def with_edit_time(wanted: WantedSource, text: SourceText, now: datetime) -> SourceText:
    """Return a text of which what its source did not say before is of when that was edited.

    The day that the text itself states is that of its first version, unless it was brought up to
    date.  What has a day of its own, such as an entry, keeps it.

    Args:
        wanted: The source, with what it said before.
        text: What it says now, or a part of it.
        now: No file was edited later.
    """
    earlier, item, written = wanted.earlier, wanted.item, text.created_at
    if earlier is None or written is None or item.source.created_at is not None:
        return text
    if not (earlier.is_certain or is_revision(earlier.text, text.text)):
        return text
    edited = None if wanted.redo else item.modified_at
    said: dict[str, datetime | None] = dict.fromkeys(_sentences(earlier.text))
    for passage, day in earlier.dated:
        said |= dict.fromkeys(_sentences(passage), day)

    def day_of(sentence: str) -> datetime | None:
        """Return from when a sentence is, if that is later than the day that the text states."""
        day = said.get(sentence, edited)
        return min(day, now) if day is not None and day > written else None

    segments = text.segments or (Segment(0, len(text.text)),)
    dated = tuple(piece for each in segments for piece in _by_day(text.text, each, day_of))
    return replace(text, segments=dated) if dated != segments else text


def _by_day(
    text: str, segment: Segment, day_of: Callable[[str], datetime | None]
) -> Iterator[Segment]:
    """Yield the sentences of a segment that are of the same day together; a table stays whole.

    It has the day of an edit only if that left none of its rows as it was.
    """
    if segment.said_at is not None or segment.kind in ("heading", "turn", "caption"):
        yield segment
        return
    spans = sentence_spans(text, segment.start, segment.end)
    days = [day_of(_normalise(text[start:end])) for start, end in spans]
    if segment.kind == "table":
        yield replace(segment, said_at=_day_of_table([text[slice(*span)] for span in spans], days))
        return
    if segment.kind != "prose":
        latest = max((day for day in days if day is not None), default=None)
        yield replace(segment, said_at=latest)
        return
    for day, same in groupby(zip(spans, days, strict=True), key=itemgetter(1)):
        together = [span for span, _ in same]
        yield replace(segment, start=together[0][0], end=together[-1][1], said_at=day)


def _day_of_table(sentences: Sequence[str], days: Sequence[datetime | None]) -> datetime | None:
    """Return since when a table has no row that is older, if that is the day of an edit."""
    rows: list[list[tuple[str, datetime | None]]] = [[]]
    for each in zip(sentences, days, strict=True):
        rows[-1].append(each)
        if each[0].endswith("\n"):
            rows.append([])
    rows = [row for row in rows if row]
    if len(rows) > 1 and _BELOW_HEADER.fullmatch(rows[1][0][0]):
        del rows[:2]
    latest = [max((day for _, day in row if day is not None), default=None) for row in rows]
    known = [day for day in latest if day is not None]
    return min(known) if known and len(known) == len(latest) else None


def _sentences(text: str) -> list[str]:
    return [_normalise(text[start:end]) for start, end in sentence_spans(text, 0, len(text))]


def _normalise(text: str) -> str:
    return " ".join(text.split())


SourceRead = tuple[WantedSource, SourceText]


def redacted_read(read: SourceRead) -> SourceRead:
    """Return a document, with what its caller says of it, without what looks like a secret."""
    wanted, text = read
    source = wanted.item.source
    clean = _redacted_source(source)
    if clean != source:
        wanted = replace(wanted, item=replace(wanted.item, source=clean))
    return wanted, redacted_text(text)


def _redacted_source(source: Source) -> Source:
    """Return a source with what is said of it; its namespace and where its file is stay."""
    return replace(
        source,
        source=redact_secrets(source.source),
        name=source.name and redact_secrets(source.name),
        title=redact_secrets(source.title),
        session_id=source.session_id and redact_name(source.session_id),
        speaker=source.speaker and redact_secrets(source.speaker),
        tags=_redacted_each(source.tags),
        metadata=redacted_metadata(source.metadata),
    )


def redacted_text(text: SourceText) -> SourceText:
    """Return what was read of a document without secrets, its segments where they are then."""
    spans = [*((each.start, each.end) for each in text.segments), *text.quotations]
    places = [place for span in spans for place in span]
    clean, moved = redact_with_offsets(text.text, places)
    segments, quotations = text.segments, text.quotations
    if clean != text.text:
        spans = list(zip(moved[::2], moved[1::2], strict=True))
        quotations = tuple(spans[len(segments) :])
        segments = tuple(
            replace(segment, start=start, end=end)
            for segment, (start, end) in zip(segments, spans, strict=False)
            if start < end
        )
    segments = tuple(map(_redacted_segment, segments))
    return replace(
        text,
        text=clean,
        redacted=clean.count(MARK) - text.text.count(MARK),
        segments=segments,
        quotations=quotations,
        asked=text.asked and replace(text.asked, text=redact_secrets(text.asked.text)),
        title=redact_secrets(text.title),
        authors=_redacted_each(text.authors),
        tags=_redacted_each(text.tags),
        links=_redacted_each(text.links),
        metadata=redacted_metadata(text.metadata),
    )


def redacted_outcome(outcome: FileOutcome) -> FileOutcome:
    """Return what became of a source; why it failed is without what looks like a secret."""
    if outcome.outcome != "failed":
        return outcome
    reason, hint = redact_secrets(outcome.reason), redact_secrets(outcome.hint)
    return replace(outcome, reason=reason, hint=hint)


def _redacted_segment(segment: Segment) -> Segment:
    """Return a segment without secrets in what is said of it besides its text."""
    heading = " > ".join(map(redact_secrets, segment.heading.split(" > ")))
    speaker = segment.speaker and redact_secrets(segment.speaker)
    kept = segment.kept and replace(segment.kept, text=redact_secrets(segment.kept.text))
    if (heading, speaker, kept) == (segment.heading, segment.speaker, segment.kept):
        return segment
    return replace(segment, heading=heading, speaker=speaker, kept=kept)


def _redacted_each(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(redact_secrets, texts))


def redacted_metadata(value: Any) -> Any:
    """Return metadata without secrets; a value is looked at together with its name."""
    return _redacted_below("", value)


def _redacted_below(key: str, value: Any) -> Any:
    """Return what stands below a key: the items of a list, and a ``value``, go by its name too."""
    if isinstance(value, Mapping):
        return {
            redact_name(own): _redacted_below(key if own == "value" else own, item)
            for own, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_redacted_below(key, item) for item in value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    prefix = f"{key}: " if key else ""
    clean = redact_secrets(f"{prefix}{value}").removeprefix(prefix)
    return value if clean == str(value) else clean
