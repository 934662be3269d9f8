"""What a reader could not make out, models may: speech is written down, pictures are described.

Readers know no models; this stands between them and the understander.  A model that cannot be had
is no failure: the document stays without, says so, and is taken up by the next reading.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError
from memctl.ingest.batches import WantedSource
from memctl.readers import Readers
from memctl.readers.isolation import ReaderCrash
from memctl.readers.media.clips import recording_seconds
from memctl.records import SourceText

if TYPE_CHECKING:
    from memctl.models.remote_models import ImageReader, RemoteTranscriber
    from memctl.readers.pieces import Piece

DESCRIPTION = "description"
"""What is missing of a picture or a video that a model should have described."""

_log = logging.getLogger(__name__)

Read = tuple[WantedSource, SourceText]


class _Step(Struct, frozen=True):
    """Something that a model can do for a document."""

    model: str
    adds: str
    """What is missing of the document where it fails."""
    settles: tuple[str, ...]
    """What is no longer missing of the document where it succeeds."""
    pieces: Callable[[Path, str, SourceText], Iterator[Piece]]


class MediaEnricher:
    """Adds to documents what models hear and see in their files.

    Args:
        transcriber: Writes down what is said.
        image_reader: Describes and reads pictures.
        at_once: So many documents are worked on at the same time.
        readers: What opens the files, in processes apart.
    """

    def __init__(
        self,
        transcriber: RemoteTranscriber | None,
        image_reader: ImageReader | None,
        at_once: int,
        readers: Readers,
    ) -> None:
        self._transcriber = transcriber
        self._image_reader = image_reader
        self._at_once = at_once
        self._readers = readers
        self._decoding = threading.Lock()  # one process is enough: it is models that take long

    def complete(self, read: Sequence[Read]) -> list[Read]:
        """Return the documents in order, those with sound or pictures with what was made out."""
        if not any(self._steps(source) for _, source in read):
            return list(read)
        problems: list[str] = []
        pool = ThreadPoolExecutor(self._at_once)
        try:
            done = list(pool.map(lambda each: self._complete(each, problems), read))
        finally:
            pool.shutdown(cancel_futures=True)
        if problems:
            more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
            _log.warning("%s%s", problems[0], more)
        return done

    # --- inside ---

    def _complete(self, each: Read, problems: list[str]) -> Read:
        wanted, source = each
        path = wanted.item.source.path
        if path is None:
            return each
        name = wanted.item.source.name or path.name
        source = replace(source, document_id=wanted.document_id)
        for step in self._steps(source):
            try:
                pieces = list(step.pieces(path, name, source))
            except (MemctlError, OSError, ReaderCrash) as error:
                problems.append(f"{name}: no {step.adds} yet: {_message(error)}")
                source = replace(source, missing=_with(source.missing, step.adds))
            else:
                source = _extend(source, pieces, step)
        return wanted, source

    def _steps(self, source: SourceText) -> list[_Step]:
        """What models can do for a document, as they are configured."""
        from memctl.readers.media.images import IMAGE_TEXT
        from memctl.readers.media.recordings import TRANSCRIPT

        kind = source.media_type.partition("/")[0]
        steps: list[_Step] = []
        if self._transcriber is not None and TRANSCRIPT in source.missing:
            steps.append(_Step(self._transcriber.name, TRANSCRIPT, (TRANSCRIPT,), self._transcribe))
        if self._image_reader is not None and kind == "image":
            both = (DESCRIPTION, IMAGE_TEXT)
            steps.append(_Step(self._image_reader.name, DESCRIPTION, both, self._describe_picture))
        if self._image_reader is not None and kind == "video":
            name = self._image_reader.name
            steps.append(_Step(name, DESCRIPTION, (DESCRIPTION,), self._describe_frames))
        return steps

    def _transcribe(self, path: Path, name: str, source: SourceText) -> Iterator[Piece]:
        """Yield what is said, each stretch with its times in the whole recording."""
        from memctl.readers.pieces import Piece

        assert self._transcriber is not None
        length = recording_seconds(source.metadata)
        for sound in self._readers.clips("sounds", path, name, source.media_type, length):
            for spoken in self._transcriber.transcribe(
                sound.content, sound.name, sound.seconds, source.document_id
            ):
                yield Piece(
                    f"{spoken.text}\n",
                    "caption",
                    time_start=sound.start + spoken.start,
                    time_end=sound.start + spoken.end,
                )

    def _describe_picture(self, path: Path, name: str, source: SourceText) -> Iterator[Piece]:
        """Yield what a picture shows, and its text if none has been read yet."""
        from memctl.readers.pieces import Piece

        assert self._image_reader is not None
        reader = self._image_reader.of(source.document_id)
        has_text = any(segment.kind == "prose" for segment in source.segments)
        with self._decoding:
            pages = list(self._readers.clips("pages", path, name, source.media_type))
        for page in pages:
            description, text = reader.read(page.content)
            yield Piece(f"{description}\n\n", heading="What it shows", page=page.page)
            if text and not has_text:
                yield Piece(f"{text}\n\n", heading="Text in it", page=page.page)

    def _describe_frames(self, path: Path, name: str, source: SourceText) -> Iterator[Piece]:
        """Yield what some frames of a video show, and their text if none has been read yet."""
        from memctl.readers.pieces import Piece

        assert self._image_reader is not None
        reader = self._image_reader.of(source.document_id)
        is_read = "\nOn screen: " in source.text
        with self._decoding:
            frames = list(self._readers.clips("frames", path, name, source.media_type))
        for frame in frames:
            description, text = reader.read(frame.content)
            shown = f"\nShown: {description}\n"
            if text and not is_read:
                shown += f"On screen: {text}\n"
            yield Piece(shown, "caption", time_start=frame.start, time_end=frame.start)


def _extend(source: SourceText, pieces: list[Piece], step: _Step) -> SourceText:
    """The document with more text behind its own, and with less that is missing."""
    from memctl.readers.pieces import assemble

    missing = tuple(what for what in source.missing if what not in step.settles)
    reader = f"{source.reader}+{step.model}"
    whole = replace(source, reader=reader, missing=missing)
    if not pieces:
        return whole
    gap = "" if not source.text or source.text.endswith("\n") else "\n"
    before = len(source.text) + len(gap)
    length = sum(len(piece.text) for piece in pieces)
    (added,) = assemble(source, pieces, limit=length + 1)
    segments = (
        replace(segment, start=segment.start + before, end=segment.end + before)
        for segment in added.segments
    )
    return replace(
        whole, text=f"{source.text}{gap}{added.text}", segments=(*source.segments, *segments)
    )


def _message(error: Exception) -> str:
    hint = error.hint if isinstance(error, MemctlError) else ""
    return f"{error}; {hint}" if hint else str(error)


def _with(missing: tuple[str, ...], what: str) -> tuple[str, ...]:
    return missing if what in missing else (*missing, what)
