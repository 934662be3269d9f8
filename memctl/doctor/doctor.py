"""The doctor: examines the knowledge bases of a home, and repairs them on request.

A new check is a function that yields findings, and a named entry in ``CONTENT_CHECKS``.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.config import Config
from memctl.doctor.findings import Check, Examination, Finding, damaged, named
from memctl.doctor.folder_checks import (
    check_disk,
    check_entry,
    check_folders,
    check_machine,
    check_permissions,
    check_prompts,
    check_settings,
    check_watcher,
    check_writer,
    repair_folders,
    repair_settings,
)
from memctl.doctor.inbox_checks import check_inboxes, repair_file_entries
from memctl.doctor.row_checks import check_citations, check_rows
from memctl.doctor.table_checks import (
    check_audit,
    check_indexes,
    check_ledger,
    check_schema,
    check_shares,
    check_tables,
    check_vectors,
    check_versions,
)
from memctl.errors import DamagedError, DiskRefused, KnowledgeBaseUnavailable
from memctl.files import clear_temporaries
from memctl.home import Home
from memctl.instants import utc_now
from memctl.kb_settings import Layout
from memctl.knowledge_base import KnowledgeBase
from memctl.schema.table_names import TABLES
from memctl.store.ledger.ledger import Ledger
from memctl.store.locks import WriteLock
from memctl.store.store import DIMENSION, LEDGER_FILE
from memctl.store.tables.checksums import Verifier
from memctl.store.tables.engine import Datasets
from memctl.store.tables.snapshot import Snapshot
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.records import ProgressListener
    from memctl.store.store_repair import Step


class Doctor:
    """Examines and repairs the knowledge bases of a home, even those that cannot be opened.

    Args:
        home: Their folder.
        clock: Returns the current time.
    """

    def __init__(self, home: Home, clock: Callable[[], datetime] = utc_now) -> None:
        self._home = home
        self._clock = clock

    def names(self) -> list[str]:
        """Return the names of all knowledge bases, and of what is left of any."""
        return self._home.names()

    def machine(self, config_file: Path) -> Iterator[Finding]:
        """Yield findings about the machine and the program's settings."""
        return named("machine", check_machine(self._home.config, config_file))

    def examine(self, name: str, *, deep: bool = False) -> Iterator[Finding]:
        """Yield what every check reports about a knowledge base; change nothing.

        Args:
            name: The knowledge base.
            deep: Check every row, even of a table so large that a sample would do.

        Raises:
            KnowledgeBaseNotFound: There is none of that name.
        """
        return _examine(self._home.layout(name), self._home.config, self._clock(), deep)

    def repair(self, name: str, *, dry_run: bool = False) -> Iterator[Step]:
        """Repair what is damaged and keep all that can be read; yield each step when it is done.

        Args:
            name: The knowledge base.
            dry_run: Try it on a copy, and say what would be done.

        Raises:
            LockedError: Another process is writing.
            DamagedError: Nothing of a table can be read.
            DiskRefused: There is no permission to read it.
            KnowledgeBaseUnavailable: A newer version of memctl made it, or it cannot be entered.
        """
        layout = self._home.layout(name)
        if closed := check_entry(layout.folder) or check_permissions(layout):
            raise DiskRefused(f"{layout.folder}: {closed.message}", closed.hint)
        if not dry_run:
            self._home.sweep()
            clear_temporaries(layout.half_written())
            table_storage(layout.folder).clear_temporaries()
            yield from self._repair_one(layout, layout)
            return

        with hard_linked_copy(layout, self._clock) as copy:
            yield from self._repair_one(copy, layout, dry_run=True)

    def sends(self, name: str) -> str:
        """Return where rebuilding would send the text of every memory; empty if nowhere.

        Raises:
            ConfigError: Its settings cannot be read.
        """
        from memctl.models import ENDPOINT

        embedder = self._home.settings(name).embedder
        models = self._home.config.models
        url = models.embed_url or self._home.config.endpoint.base_url
        return f"{embedder} at {url}" if embedder.startswith(ENDPOINT) else ""

    def rebuild(self, name: str, progress: ProgressListener | None = None) -> Iterator[Step]:
        """Rebuild all derived data and prove that it is the same; yield what was rebuilt.

        Args:
            name: The knowledge base.
            progress: Receives how many memories have their new vector.

        Raises:
            DamagedError: It would not be the same, or cannot be read; nothing was changed.
            LockedError: Another process keeps writing.
            ModelError: The embedder cannot do it.
            KnowledgeBaseUnavailable: It is archived.
        """
        from memctl.doctor.rebuild import Rebuild

        with self._home.open_for_writing(name) as base:
            yield from Rebuild(base, progress).run()

    def _repair_one(
        self, layout: Layout, files: Layout, *, dry_run: bool = False
    ) -> Iterator[Step]:
        """Repair one knowledge base; its processed files are where ``files`` says."""
        from memctl.doctor.kb_repair import Losses, Repair
        from memctl.store.store_repair import repair

        config, clock = self._home.config, self._clock
        yield from repair_folders(layout)
        repaired = repair(layout.folder, clock)
        yield from repaired.steps
        yield from repair_settings(layout, config, clock())
        with KnowledgeBase.open(layout, config, clock) as base:
            is_whole = "documents" not in repaired.losses
            yield from repair_file_entries(base, files, clock(), is_whole=is_whole)
            subjects = {step.subject for step in repaired.steps}
            thorough = bool(subjects.intersection(("documents", "memories")))
            losses = Losses.found(repaired.losses, base.store.snapshot())
            verifier = repaired.verifier
            yield from Repair(base, files, verifier, dry_run, thorough, losses).run()


FOLDER_CHECKS: tuple[Check[Layout], ...] = (
    Check("settings", check_settings),
    Check("folders", check_folders),
    Check("prompts", check_prompts),
    Check("disk", check_disk),
    Check("writer", check_writer),
)
"""What is checked before the ledger is opened, in this order."""
LEDGER_CHECK = Check("ledger", check_ledger)
"""What is checked of the ledger before anything that it says is believed."""
CONTENT_CHECKS: tuple[Check[Examination], ...] = (
    Check("tables", check_tables),
    Check("schema", check_schema),
    Check("indexes", check_indexes),
    Check("versions", check_versions),
    Check("rows", check_rows),
    Check("vectors", check_vectors),
    Check("citations", check_citations),
    Check("inboxes", check_inboxes),
    Check("audit", check_audit),
    Check("skills", check_shares),
)
"""What is checked if the ledger can be read, in this order."""


def _examine(layout: Layout, config: Config, now: datetime, deep: bool) -> Iterator[Finding]:
    if closed := check_entry(layout.folder) or check_permissions(layout):
        yield from named("access", [closed])
        return
    for check in FOLDER_CHECKS:
        yield from check.findings(layout)
    try:
        ledger = Ledger.open(layout.folder / LEDGER_FILE)
    except (DamagedError, KnowledgeBaseUnavailable) as error:
        found = damaged("ledger", "ledger", error.message, error.hint)
        yield from named(LEDGER_CHECK.name, [found])
        return
    with closing(ledger):
        of_ledger = list(LEDGER_CHECK.findings(ledger))
        yield from of_ledger
        if all(finding.verdict == "ok" for finding in of_ledger):
            yield from named("watcher", check_watcher(layout, ledger))
            yield from _check_content(layout, config, ledger, now, deep)


def _check_content(
    layout: Layout, config: Config, ledger: Ledger, now: datetime, deep: bool
) -> Iterator[Finding]:
    head = ledger.head()
    datasets = Datasets.of(layout.folder)
    verifier = Verifier(datasets, ledger, reads_rows=deep)
    states = {
        table: verifier.inspect_table(table, head[table]) for table in TABLES if table in head
    }
    snapshot = Snapshot(datasets, head, int(ledger.meta(DIMENSION) or 0))
    examination = Examination(layout, config, ledger, states, snapshot, verifier, deep, now)
    for check in CONTENT_CHECKS:
        try:
            yield from check.findings(examination)
        except DamagedError as error:  # which reading each file and index did not find
            found = damaged("tables", "tables", error.message, error.hint)
            yield from named(check.name, [found])


_MUTABLE_FILES = ("latest_version_hint.json",)
WAIT_SECONDS = 5.0


@contextmanager
def hard_linked_copy(layout: Layout, clock: Callable[[], datetime]) -> Iterator[Layout]:
    """Give a temporary copy of tables, ledger and settings, without processed files.

    It takes no space, because files are linked; the ledger names processed files where they are.

    Raises:
        LockedError: Another process is writing.
    """
    top = layout.folder.parent / f".trial-{secrets.token_hex(6)}"
    copy = Layout(top / layout.name)
    try:
        copy.folder.mkdir(mode=0o700, parents=True)
        for folder in (copy.inbox, copy.processing, copy.processed, copy.failed):
            folder.mkdir()
        with WriteLock(layout.folder, clock).hold(WAIT_SECONDS):
            _link(layout.folder, copy.folder)
        yield copy
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    tables, copied = table_storage(source).local_folder, table_storage(target).local_folder
    if tables is not None and copied is not None and tables.is_dir():
        shutil.copytree(tables, copied, copy_function=_link_file)
    for name in ("kb.toml", LEDGER_FILE, f"{LEDGER_FILE}-wal"):
        if (source / name).is_file():
            shutil.copy2(source / name, target / name)


def _link_file(source: str, target: str) -> None:
    """Link a file: the engine never changes one that it has written, with few exceptions."""
    if Path(source).name in _MUTABLE_FILES:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
