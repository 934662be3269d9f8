"""The ledger and the files of the tables: can they be read, and are they those that count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from memctl.doctor.findings import REPAIR, Examination, Finding, damaged, ok, warning
from memctl.errors import KnowledgeBaseUnavailable
from memctl.formatting import format_count
from memctl.schema.arrow_tables import VECTOR, schemas, vector_rows
from memctl.schema.migrations import SCHEMA_VERSION, require_known, tables_at
from memctl.schema.table_names import FORGET, TABLES, TableName
from memctl.skills.skill_registry import WHOLE
from memctl.store.ledger.content_tables import unreadable_content
from memctl.store.ledger.ledger import HEAD, Ledger
from memctl.store.ledger.ledger_schema import VERSION
from memctl.store.store import DIMENSION
from memctl.store.tables.durability import lost_manifests
from memctl.store.tables.engine import Datasets
from memctl.store.tables.indexes import max_unindexed
from memctl.store.tables.inspection import READ_BYTES, TableState, vector_length
from memctl.store.tables.snapshot_tags import (
    damaged_tags,
    snapshot_tags,
    wanted_versions,
    wrong_tags,
)

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

WRITING = "another process is writing"


def check_ledger(ledger: Ledger) -> Iterator[Finding]:
    """Read the whole ledger, and look whether it names a version of every table."""
    complaints = ledger.complaints()
    for complaint in complaints:
        yield damaged("ledger", "ledger", complaint)
    if complaints:
        return
    for complaint in unreadable_content(ledger):
        yield damaged("ledger", "ledger", f"a row cannot be read: {complaint}")
    yield ok("ledger", "ledger", f"whole, schema {VERSION}")
    version, head = ledger.schema_version(), ledger.head()
    try:
        require_known(version, "the knowledge base")
    except KnowledgeBaseUnavailable as error:
        yield damaged("ledger", "tables", error.message, error.hint)
        return
    for table in tables_at(version):
        if table not in head:
            yield damaged("ledger", table, "the ledger names no version of it")


def check_tables(examination: Examination) -> Iterator[Finding]:
    """Report what cannot be read of each table: its manifest, its rows, its indexes."""
    datasets = Datasets.of(examination.layout.folder)
    changed = {place for place, _ in lost_manifests(datasets, examination.ledger)}
    for table, state in examination.states.items():
        found = list(_check_files(state))
        if not state.problem and (table, state.version) in changed:
            found.append(damaged("tables", table, "its manifest is not the one that was committed"))
        yield from found
        if not found:
            size = f"{format_count(state.rows, 'row')} in {format_count(state.files, 'file')}"
            yield ok("tables", table, f"opens at version {state.version}; {size}")


def _check_files(state: TableState) -> Iterator[Finding]:
    if state.problem:
        yield damaged("tables", state.table, state.problem)
    if state.lost_files:
        part = f"{state.lost_files} of its {format_count(state.files, 'file')}"
        yield damaged("tables", state.table, f"{part} cannot be read")
    if state.changed_files:
        part = f"{state.changed_files} of its {format_count(state.files, 'file')}"
        yield damaged("tables", state.table, f"{part} not as written: bytes of it have changed")
    for name in state.broken_indexes:
        yield damaged("indexes", state.table, f"the index {name} is not as it was written")


def check_schema(examination: Examination) -> Iterator[Finding]:
    """Compare the columns of each table with those of its schema version."""
    version = examination.ledger.schema_version()
    expected = schemas(0, version)  # vectors have a check of their own
    for table, state in examination.states.items():
        if state.problem or table not in expected:
            continue
        found = {item.name: item.type for item in examination.snapshot.dataset(table).schema}
        wanted = {item.name: item.type for item in expected[table]}
        wanted |= {VECTOR: found[VECTOR]} if {VECTOR} <= found.keys() & wanted.keys() else {}
        if wrong := [name for name in found | wanted if found.get(name) != wanted.get(name)]:
            message = f"columns that are not those of schema version {version}: {', '.join(wrong)}"
            yield damaged("tables", table, message)
    if version < SCHEMA_VERSION:
        message = f"of schema version {version}; the next write brings them to {SCHEMA_VERSION}"
        yield ok("tables", "schema", message)


def check_indexes(examination: Examination) -> Iterator[Finding]:
    """Report how many rows no index knows: searches find them by reading each."""
    for table, state in examination.states.items():
        if not state.is_readable or state.broken_indexes:
            continue
        unindexed = f"{format_count(state.unindexed, 'row')} of {state.rows:,} not in every index"
        if state.unindexed > max_unindexed(state.rows):
            hint = "the next ingest, or memctl watch, brings them up to date"
            yield warning("indexes", table, f"{unindexed}, so that searches are slower", hint)
        elif state.unindexed:
            few = f"{format_count(state.unindexed, 'new row')} of {state.rows:,}"
            yield ok("indexes", table, f"up to date but for {few}, few enough to read each")
        else:
            yield ok("indexes", table, "up to date")


def check_shares(examination: Examination) -> Iterator[Finding]:
    """Look whether the active versions of each skill share out all of its tasks."""
    for slug, active in examination.ledger.skills.versions.shares().items():
        if (total := sum(active.values())) != WHOLE:
            greatest = max(active, key=lambda number: active[number])
            yield warning(
                "skills",
                slug,
                f"the shares of its versions add up to {total} %, not {WHOLE} %",
                f"memctl skill version activate {slug} {greatest} -k {examination.layout.name}",
            )


def check_versions(examination: Examination) -> Iterator[Finding]:
    """Report versions other than the current ones: earlier ones, snapshots, crash leftovers."""
    is_written_to = _is_written_to(examination)
    for table, state in examination.states.items():
        if state.later_versions:
            yield _later_versions(state, is_written_to)
        earlier = [number for number in state.lost_versions if number < state.version]
        if earlier and not is_written_to:
            message = f"{format_count(len(earlier), 'earlier version')} cannot be opened"
            yield warning(
                "versions", table, message, "nothing needs them; --repair clears them away"
            )
    yield from _check_named(examination)
    yield from _check_tags(examination)
    unfinished = examination.ledger.jobs.unfinished_jobs(FORGET)
    if unfinished and not is_written_to:
        message = (
            f"{format_count(len(unfinished), 'forget')} cut off: what went may still be in files"
        )
        name = examination.layout.name
        hint = f"whatever writes next completes it, or memctl forget -k {name}"
        yield warning("versions", "forget", message, hint)


def _is_written_to(examination: Examination) -> bool:
    from memctl.store.locks import WriteLock

    return WriteLock(examination.layout.folder, lambda: examination.now).is_held()


def _later_versions(state: TableState, is_written_to: bool) -> Finding:
    amount = format_count(len(state.later_versions), "version")
    if is_written_to:
        return ok("versions", state.table, f"{amount} beyond HEAD: {WRITING}")
    message = f"{amount} beyond HEAD: a change that was cut off"
    return warning("versions", state.table, message, "nothing to do: the next writer rolls it back")


def _check_named(examination: Examination) -> Iterator[Finding]:
    """Check that each snapshot can still be restored."""
    named = {name: head for name, head in examination.ledger.heads().items() if name != HEAD}
    for name, head in named.items():
        if lost := _lost_tables(examination, head):
            yield damaged("snapshots", name, f"its {', '.join(lost)} cannot be opened")
        elif files := examination.verifier.damaged_files(head):
            damage = f"{format_count(len(files), 'file')} of it damaged or gone"
            hint = f"let it go: memctl snapshot delete {name} -k {examination.layout.name}"
            yield damaged("snapshots", name, f"{damage}: it cannot be restored", hint)
        else:
            yield ok("snapshots", name, "all its files are as they were written")


def _check_tags(examination: Examination) -> Iterator[Finding]:
    """Look whether every snapshot has the tags by which other tools leave its versions alone."""
    datasets = Datasets.of(examination.layout.folder)
    for table in TABLES:
        wanted = wanted_versions(examination.ledger, table)
        tags = snapshot_tags(datasets, table)
        unreadable = [name for name, tag in tags.items() if tag is None]
        others = damaged_tags(datasets, table)
        for name in (*(f"snapshot {name}" for name in unreadable), *others):
            yield damaged("versions", table, f"the tag of {name} cannot be read")
        for name in wrong_tags(tags, wanted):
            if name not in unreadable:
                message = f"no tag says that the snapshot {name} needs version {wanted[name]}"
                yield warning("versions", table, message, REPAIR)


def _lost_tables(examination: Examination, head: Mapping[TableName, int]) -> list[TableName]:
    return [
        table
        for table, number in head.items()
        if table in examination.states and number not in examination.states[table].versions
    ]


LONGEST_ERROR = 0.01
"""How far the length of a vector may be from 1; float16 alone makes it differ by a thousandth."""
_VECTOR_PROBLEMS = (
    "without a vector",
    "with a vector that is not finite",
    "with one not of length 1",
)


def check_vectors(examination: Examination) -> Iterator[Finding]:
    """Look at the dimension of the vectors, and at each of them."""
    if not examination.can_read("memories"):
        return
    wide, expected = vector_length(examination.snapshot), examination.ledger.meta(DIMENSION)
    if str(wide) != expected:
        yield damaged("vectors", "memories", f"{wide} numbers each, where {expected} are expected")
        return
    found: Counter[str] = Counter()
    for _, complaint in bad_vectors(examination.snapshot):
        found[complaint] += 1
    for complaint, number in sorted(found.items()):
        yield damaged(
            "vectors", "memories", f"{format_count(number, 'memory', 'memories')} {complaint}"
        )
    if not found:
        yield ok("vectors", "memories", f"{wide} numbers each, finite, of length 1")


def bad_vectors(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the memories whose vector cannot be one, each with what is wrong with it.

    A zero vector is that of a text without any known word.
    """
    for batch in snapshot.batches("memories", None, ["id", VECTOR], batch_bytes=READ_BYTES):
        column = batch.column(VECTOR)
        missing = np.asarray(column.is_null(), dtype=bool)
        lengths = np.linalg.norm(vector_rows(column).astype(np.float32), axis=1)
        odd = (lengths > 0) & (np.abs(lengths - 1) > LONGEST_ERROR)
        flags = (missing, ~np.isfinite(lengths), odd & np.isfinite(lengths))
        for flag, complaint in zip(flags, _VECTOR_PROBLEMS, strict=True):
            for number in flag.nonzero()[0]:
                yield batch["id"][int(number)].as_py(), complaint


def check_audit(examination: Examination) -> Iterator[Finding]:
    """Yield whether the audit trail is as it was written; nothing can put back what is gone."""
    problems = list(examination.ledger.audit.problems())
    for problem in problems:
        yield warning("ledger", "audit", problem, "the ledger was changed by other means")
    if not problems:
        yield ok(
            "ledger",
            "audit",
            f"{format_count(examination.ledger.audit.count(), 'entry', 'entries')}",
        )
