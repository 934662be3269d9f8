"""All checks of one knowledge base, in the order of the layers; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

from memctl.config import Config
from memctl.doctor.access import cannot_be_entered, cannot_be_read
from memctl.doctor.citations import check_citations
from memctl.doctor.findings import Check, Examined, Finding, damaged
from memctl.doctor.folders import check_disk, check_folders, check_prompts, check_settings
from memctl.doctor.inboxes import check_inboxes
from memctl.doctor.locks import check_watcher, check_writer
from memctl.doctor.rows import check_rows
from memctl.doctor.tables import check_indexes, check_ledger, check_tables, check_versions
from memctl.doctor.vectors import check_vectors
from memctl.errors import DamagedError, KnowledgeBaseUnavailable
from memctl.pinned import Layout
from memctl.store.datasets import Datasets
from memctl.store.inspection import inspect_table
from memctl.store.ledger import Ledger
from memctl.store.names import TABLES
from memctl.store.snapshot import Snapshot
from memctl.store.store import DIMENSION, LEDGER_FILE, TABLES_FOLDER
from memctl.store.verifying import Verifier

CHECKS: tuple[Check, ...] = (
    check_tables,
    check_indexes,
    check_versions,
    check_rows,
    check_vectors,
    check_citations,
    check_inboxes,
)


def examine(layout: Layout, config: Config, now: datetime, *, deep: bool) -> Iterator[Finding]:
    """Yield what every check says of a knowledge base.

    Args:
        layout: Where it stands.
        config: Settings of the whole program.
        now: The time.
        deep: Look at every row where by default a sample of a large table is.
    """
    if closed := cannot_be_entered(layout.folder) or cannot_be_read(layout):
        yield closed
        return
    yield from check_settings(layout)
    yield from check_folders(layout)
    yield from check_prompts(layout)
    yield from check_disk(layout)
    yield from check_writer(layout)
    try:
        ledger = Ledger.open(layout.folder / LEDGER_FILE)
    except (DamagedError, KnowledgeBaseUnavailable) as error:
        yield damaged("ledger", "ledger", error.message, error.hint)
        return
    with closing(ledger):
        found = list(check_ledger(ledger))
        yield from found
        if all(finding.verdict == "ok" for finding in found):
            yield from check_watcher(layout, ledger)
            yield from _check_content(layout, config, ledger, now, deep)


def _check_content(
    layout: Layout, config: Config, ledger: Ledger, now: datetime, deep: bool
) -> Iterator[Finding]:
    head = ledger.head()
    datasets = Datasets(layout.folder / TABLES_FOLDER)
    verifier = Verifier(datasets, ledger, reads_rows=deep)
    states = {table: inspect_table(datasets, table, head[table], verifier) for table in TABLES}
    snapshot = Snapshot(datasets, head, int(ledger.meta(DIMENSION) or 0))
    examined = Examined(layout, config, ledger, states, snapshot, verifier, deep, now)
    for check in CHECKS:
        try:
            yield from check(examined)
        except DamagedError as error:  # what reading each file and index did not come upon
            yield damaged("tables", "tables", error.message, error.hint)
