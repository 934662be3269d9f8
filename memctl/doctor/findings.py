"""What a check is, what it gets to examine, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.kb_settings import Layout
    from memctl.schema.table_names import TableName
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.tables.checksums import Verifier
    from memctl.store.tables.inspection import TableState
    from memctl.store.tables.snapshot import Snapshot

Verdict = Literal["ok", "warning", "damaged"]

REPAIR = "put it right: memctl doctor --repair"


class Finding(Struct, frozen=True):
    """What one check reports about one thing; only ``damaged`` needs a repair."""

    layer: str
    """What kind of thing was checked: folders, locks, ledger, tables, ..."""
    subject: str
    """Which one: ``ledger``, ``settings``, the name of a table or of a folder."""
    verdict: Verdict
    message: str
    hint: str = ""
    check: str = ""
    """The name of the check that reports it."""


class Examination(Struct, frozen=True):
    """The tables and the ledger of one knowledge base, as far as they can be read."""

    layout: Layout
    config: Config
    ledger: Ledger
    states: Mapping[TableName, TableState]
    snapshot: Snapshot
    """To be used only for tables that are readable."""
    verifier: Verifier
    """Has read the files of those versions and can read others."""
    deep: bool
    """Whether every row is checked, even if a sample would do by default."""
    now: datetime

    def can_read(self, *tables: TableName) -> bool:
        """Return whether every row of these tables can be read, and be looked up by an index."""
        states = [self.states[table] for table in tables if table in self.states]
        return all(state.is_readable and not state.broken_indexes for state in states)


Subject = TypeVar("Subject")


class Check(Struct, Generic[Subject], frozen=True):
    """One check of the doctor."""

    name: str
    run: Callable[[Subject], Iterator[Finding]]
    """Yields what it reports about its subject; changes nothing."""

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """Return what the check reports, under its name."""
        return named(self.name, self.run(subject))


def named(check: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings under the name of the check that reports them."""
    return (replace(finding, check=check) for finding in findings)


def ok(layer: str, subject: str, message: str) -> Finding:
    """Return a finding that something is as it should be."""
    return Finding(layer, subject, "ok", message)


def warning(layer: str, subject: str, message: str, hint: str = "") -> Finding:
    """Return a finding that is worth knowing, though nothing is lost."""
    return Finding(layer, subject, "warning", message, hint)


def damaged(layer: str, subject: str, message: str, hint: str = REPAIR) -> Finding:
    """Return a finding that something is not as it was written."""
    return Finding(layer, subject, "damaged", message, hint)
