"""What a knowledge base offers to take sources in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memctl.errors import UsageError
from memctl.knowledge_base.opened import Opened
from memctl.records import IngestReport, LeftOutListener, ProgressListener

if TYPE_CHECKING:
    from memctl.ingest.pipeline import Ingestor


class Ingesting(Opened):
    """Takes sources in, and reads them again."""

    def ingest(
        self,
        paths: Path | str | Iterable[Path | str] = (),
        *,
        text: str | None = None,
        stream: BinaryIO | None = None,
        jsonl: Path | str | BinaryIO | None = None,
        namespace: str = "default",
        tags: Iterable[str] = (),
        source: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
        progress: ProgressListener | None = None,
        left_out: LeftOutListener | None = None,
    ) -> IngestReport:
        """Remember files, folders, a text, a stream or JSON lines.

        What is already known is recognised by its content.  One input that fails never stops the
        others: the report says what became of each.

        Args:
            paths: Files and folders.
            text: One text.
            stream: Bytes of one document, of any kind that can be read.
            jsonl: One document a line, in a file or a stream: ``text``, and optionally ``id``,
                ``namespace``, ``title``, ``created_at``, ``session_id``, ``turn``, ``tags``,
                ``metadata``, ``source``.
            namespace: The partition that they go into.
            tags: Tags that they all get.
            source: Where they are from, instead of the path.
            session: The conversation that they are of.
            dry_run: Write nothing and ask no model; say what would become of them, and estimate
                what models would be asked.
            progress: Told how far it is.
            left_out: Told of everything in a folder that is not taken in, and why.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
            LockedError: Another process is writing and does not stop.
        """
        from memctl.ingest.given import Given, opened
        from memctl.ingest.preview import preview
        from memctl.ingest.sources import Labels

        labels = Labels(namespace, tuple(tags), session, source or "", self.settings.redact)
        paths = [paths] if isinstance(paths, (str, Path)) else paths
        given = Given(tuple(Path(path) for path in paths), text, stream, jsonl)
        with opened(given, labels, self.layout.folder, left_out) as (sources, total):
            if dry_run:
                estimators, readers = self._stages.estimators(), self._stages.readers
                return preview(self.store, sources, estimators, readers, progress, total=total)
            return self._ingestor.ingest(sources, progress, total=total)

    def reprocess(
        self,
        ids: Sequence[str] = (),
        *,
        incomplete: bool = False,
        upgrade: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Read sources again from where they are.

        Args:
            ids: Documents, by id.
            incomplete: All of which something is missing that another reading may find.
            upgrade: All that were not understood by the model that is configured now.
            progress: Told how far it is.

        Raises:
            NotFoundError: There is no such document.
            UsageError: They are to be upgraded, and no model is configured.
        """
        from memctl.memories.viewing import resolve

        if upgrade and not self.config.models.understand:
            if self._program.models.understand:
                self._refuse_distant("understand")
            raise UsageError(
                "no model is configured that understands documents",
                "set understand of [models] in the config file",
            )
        snapshot = self.store.snapshot()
        wanted = [resolve(snapshot, "documents", id_) for id_ in ids]
        self._begin_change()
        # What a model has made before must not become the built-in's because it is away now.
        ingestor = self._stages.ingestor_that("wait")
        return ingestor.reprocess(wanted, incomplete=incomplete, upgrade=upgrade, progress=progress)

    @property
    def _ingestor(self) -> Ingestor:
        self._begin_change()
        return self.ingestor
