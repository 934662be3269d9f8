"""The values that travel between rooms, all frozen; nothing here does any work.

Offsets are character offsets (Unicode code points) into the text of the document they belong
to, half open: ``document.text[start:end]``.  Times inside a recording are seconds from its start.
Instants are timezone-aware UTC datetimes.
"""

from memctl.records.answers import (
    Answer,
    AnswerSentence,
    Citation,
    Community,
    Context,
    QueryResult,
    Related,
)
from memctl.records.asking import Copy, Ended, Filters, Hit, Question
from memctl.records.consolidation import Connection, ConsolidationReport, Insight
from memctl.records.ingest import (
    TAKEN,
    Compared,
    Estimate,
    FileOutcome,
    IngestReport,
    LeftOut,
    LeftOutListener,
    LeftOutReason,
    OutcomeKind,
)
from memctl.records.rows import Document, DocumentStatus, Entity, Memory, Relation
from memctl.records.terms import LEVELS, Level, Metadata
from memctl.records.text import Segment, SegmentKind, SourceText
from memctl.records.understanding import Distilled, EntityMention, Understanding
from memctl.records.work import (
    JobView,
    Progress,
    ProgressListener,
    ReembedReport,
    UndoReport,
    Usage,
)

__all__ = [
    "LEVELS",
    "TAKEN",
    "Answer",
    "AnswerSentence",
    "Citation",
    "Community",
    "Compared",
    "Connection",
    "ConsolidationReport",
    "Context",
    "Copy",
    "Distilled",
    "Document",
    "DocumentStatus",
    "Ended",
    "Entity",
    "EntityMention",
    "Estimate",
    "FileOutcome",
    "Filters",
    "Hit",
    "IngestReport",
    "Insight",
    "JobView",
    "LeftOut",
    "LeftOutListener",
    "LeftOutReason",
    "Level",
    "Memory",
    "Metadata",
    "OutcomeKind",
    "Progress",
    "ProgressListener",
    "QueryResult",
    "Question",
    "ReembedReport",
    "Related",
    "Relation",
    "Segment",
    "SegmentKind",
    "SourceText",
    "Understanding",
    "UndoReport",
    "Usage",
]
