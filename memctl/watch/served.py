"""What the watcher needs of a knowledge base, its store and what takes sources in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memctl.ingest.sources import Source
from memctl.ingest.write import Settled
from memctl.pinned import KnowledgeBaseSettings, Layout
from memctl.records import Compared, ConsolidationReport, IngestReport, ProgressListener

if TYPE_CHECKING:
    from memctl.forget import ForgetReport
    from memctl.store.ledger import Ledger
    from memctl.store.lock import Holder


class Taker(Protocol):
    """What takes sources in."""

    def ingest(
        self,
        sources: Sequence[Source],
        progress: ProgressListener | None = None,
        *,
        settled: Settled | None = None,
    ) -> IngestReport:
        """Take sources in; failures are outcomes, an exception means that the store failed.

        ``settled`` is called within each commit with what it makes of its sources.
        """
        ...

    def reprocess(self, document_ids: Sequence[str]) -> IngestReport:
        """Read documents again from where their files are."""
        ...

    def compare(self) -> Compared:
        """Compare facts that wait for it with what is known."""
        ...

    def rename(self, document_id: str, source: str) -> None:
        """Note another name of the same content."""
        ...

    def retire(self, document_ids: Sequence[str]) -> None:
        """Mark documents as gone."""
        ...


class Keeping(Protocol):
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


class Served(Protocol):
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
    def store(self) -> Keeping:
        """Its store."""
        ...

    @property
    def ingestor(self) -> Taker:
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
