"""The values that travel through the pipeline, from a source to a commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memctl.ingest.sources import Source
from memctl.records import Document, EntityMention, FileOutcome, Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIPELINE_VERSION = 1
"""Raised when the same text would be turned into other rows; `reprocess` then redoes them."""


@dataclass(frozen=True, slots=True)
class Identified:
    """A source whose content is known by its hash."""

    source: Source
    sha256: str
    size: int
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source that is to be read, with the document it will be."""

    item: Identified
    document_id: str
    replaces: str | None = None
    """Root id of the live document that it is a newer version of."""
    redo: bool = False
    """Whether the rows of the document itself are there and are made anew."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document, or one part of one, with its rows; ``embed`` has the text of each vector."""

    wanted: Wanted
    document: Document
    memories: tuple[Memory, ...]
    embed: tuple[str, ...]
    mentions: tuple[EntityMention, ...] = ()


@dataclass(slots=True)
class Batch:
    """What is committed together: documents, and outcomes of sources that need no writing.

    A source in many parts comes as several batches of which only the final one is ``last``;
    they are one commit.  ``failure`` on such a batch means that all of them are to be dropped.
    """

    prepared: list[Prepared] = field(default_factory=list)
    outcomes: list[FileOutcome] = field(default_factory=list)
    last: bool = True
    failure: FileOutcome | None = None
    vectors: NDArray[np.float32] | None = None

    @property
    def memories(self) -> Sequence[Memory]:
        """The memories of all documents, in the order of ``vectors``."""
        return [memory for item in self.prepared for memory in item.memories]


def known_outcome(source: Source, document_id: str) -> FileOutcome:
    """The outcome of a source whose content is remembered already."""
    return FileOutcome(source.source, "known", document_id=document_id, line=source.line)


def failed_outcome(source: Source, reason: str, hint: str = "", error: str = "") -> FileOutcome:
    """The outcome of a source that could not be taken in."""
    return FileOutcome(
        source.source, "failed", reason=reason, hint=hint, line=source.line, error=error
    )
