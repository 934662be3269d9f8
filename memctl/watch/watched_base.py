"""What the watcher needs of a knowledge base, its store and what takes sources in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memctl.ingest.batch_writing import OutcomeListener
from memctl.ingest.discovery.sources import Source
from memctl.kb_settings import KnowledgeBaseSettings, Layout
from memctl.records import ConsolidationReport, FactComparison, IngestReport, ProgressListener

if TYPE_CHECKING:
    from memctl.forget import ForgetReport
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.write_lock import Holder


class SourceIngestor(Protocol):
    """What takes sources in."""

    def ingest(
        self,
        sources: Sequence[Source],
        progress: ProgressListener | None = None,
        *,
        settled: OutcomeListener | None = None,
    ) -> IngestReport:
        """Take sources in; failures are outcomes, an exception means that the store failed.

        ``settled`` is called within each commit with what it makes of its sources.
        """
        ...

    def reprocess(self, document_ids: Sequence[str]) -> IngestReport:
        """Read documents again from where their files are."""
        ...

    def compare(self) -> FactComparison:
        """Compare facts that wait for it with what is known."""
        ...

    def rename(self, document_id: str, source: str) -> None:
        """Note another name of the same content."""
        ...

    def retire(self, document_ids: Sequence[str]) -> None:
        """Mark documents as gone."""
        ...


class WatchedStore(Protocol):
    """What the watcher needs of a store."""

    @property
    def ledger(self) -> Ledger:
        """What is going on."""
        ...

    def upkeep(self) -> object:
        """Tidy up where that pays."""
        ...

    def rest(self) -> None:
        """Keep no version that nobody looks at, before a pause."""
        ...

    def writer(self) -> Holder | None:
        """Return which process is writing now."""
        ...


class WatchedBase(Protocol):
    """What the watcher needs of a knowledge base."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def layout(self) -> Layout:
        """Where it stands."""
        ...

    @property
    def settings(self) -> KnowledgeBaseSettings:
        """What is pinned for it."""
        ...

    @property
    def store(self) -> WatchedStore:
        """Its store."""
        ...

    @property
    def ingestor(self) -> SourceIngestor:
        """What takes sources in."""
        ...

    def consolidate(self) -> ConsolidationReport:
        """Draw insights, and note in the ledger when and how that went."""
        ...

    def complete_forgetting(self) -> ForgetReport | None:
        """Complete what was to be forgotten and was cut off; None where there is no need."""
        ...

    def close(self) -> None:
        """Let go of its files."""
        ...
