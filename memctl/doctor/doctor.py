"""The doctor: examines the knowledge bases of a home, and puts them right when asked to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.doctor.findings import Finding
from memctl.errors import DiskRefused
from memctl.files import clear_temporaries
from memctl.home import Home, utc_now
from memctl.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from memctl.pinned import Layout
    from memctl.records import ProgressListener
    from memctl.store.repair import Step


class Doctor:
    """Looks after all knowledge bases of a home, those too that cannot be opened.

    Args:
        home: Their folder.
        clock: What tells the time.
    """

    def __init__(self, home: Home, clock: Callable[[], datetime] = utc_now) -> None:
        self._home = home
        self._clock = clock

    def names(self) -> list[str]:
        """Return the names of all knowledge bases, and of what is left of any."""
        return self._home.names()

    def machine(self, config_file: Path) -> Iterator[Finding]:
        """Yield what is to be said of the machine and of the program's settings."""
        from memctl.doctor.machine import check_machine

        return check_machine(self._home.config, config_file)

    def examine(self, name: str, *, deep: bool = False) -> Iterator[Finding]:
        """Yield what every check says of a knowledge base; changes nothing.

        Args:
            name: Which one.
            deep: Look at every row where by default a sample of a large table is.

        Raises:
            KnowledgeBaseNotFound: There is none of that name.
        """
        from memctl.doctor.examination import examine

        layout = self._home.layout(name)
        return examine(layout, self._home.config, self._clock(), deep=deep)

    def repair(self, name: str, *, dry_run: bool = False) -> Iterator[Step]:
        """Put right what is damaged, keeping all that can be read; yield each step when done.

        Args:
            name: Which one.
            dry_run: Try it on a copy, and say what would be done.

        Raises:
            LockedError: Somebody is writing.
            DamagedError: Nothing of a table can be read.
            DiskRefused: There is no permission to read it.
            KnowledgeBaseUnavailable: A newer version of memctl made it, or it cannot be entered.
        """
        from memctl.doctor.access import cannot_be_entered, cannot_be_read

        layout = self._home.layout(name)
        if closed := cannot_be_entered(layout.folder) or cannot_be_read(layout):
            raise DiskRefused(f"{layout.folder}: {closed.message}", closed.hint)
        if not dry_run:
            self._home.sweep()
            clear_temporaries(layout.half_written())
            yield from self._repaired(layout, layout)
            return
        from memctl.doctor.trial import trial

        with trial(layout, self._clock) as copy:
            yield from self._repaired(copy, layout, dry_run=True)

    def sends(self, name: str) -> str:
        """Return where rebuilding would send the text of every memory; empty where nowhere.

        Raises:
            ConfigError: Its settings cannot be read.
        """
        from memctl.models.remote_embedder import PREFIX

        embedder = self._home.settings(name).embedder
        models = self._home.config.models
        url = models.embed_url or self._home.config.endpoint.base_url
        return f"{embedder} at {url}" if embedder.startswith(PREFIX) else ""

    def rebuild(self, name: str, progress: ProgressListener | None = None) -> Iterator[Step]:
        """Make all that is derived anew, and prove it to be the same; yield what was made.

        Args:
            name: Which one.
            progress: Told how many memories have their new vector.

        Raises:
            DamagedError: It would not be the same, or cannot be read; nothing was changed.
            LockedError: Somebody is writing and does not stop.
            ModelError: The embedder cannot do it.
            KnowledgeBaseUnavailable: It is archived.
        """
        from memctl.doctor.rebuild import Rebuild

        with self._home.open_for_writing(name) as base:
            yield from Rebuild(base, progress).run()

    def _repaired(self, layout: Layout, files: Layout, *, dry_run: bool = False) -> Iterator[Step]:
        """Repair what stands in one place; its files are where ``files`` says."""
        from memctl.doctor.books import repair_books
        from memctl.doctor.folders import repair_folders
        from memctl.doctor.losses import Losses
        from memctl.doctor.repair import Repair
        from memctl.doctor.settings import repair_settings
        from memctl.store.repair import repair

        config, clock = self._home.config, self._clock
        yield from repair_folders(layout)
        repaired = repair(layout.folder, clock)
        yield from repaired.steps
        yield from repair_settings(layout, config, clock())
        with KnowledgeBase.open(layout, config, clock) as base:
            is_whole = "documents" not in repaired.losses
            yield from repair_books(base, files, clock(), is_whole=is_whole)
            subjects = {step.subject for step in repaired.steps}
            thorough = bool(subjects.intersection(("documents", "memories")))
            losses = Losses.found(repaired.losses, base.store.snapshot())
            verifier = repaired.verifier
            yield from Repair(base, files, verifier, dry_run, thorough, losses).run()
