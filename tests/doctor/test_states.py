"""What can be wrong with a knowledge base, and what the doctor says of each: verdict and hint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from damaged import manifests
from limited import LIMITED, needs_permissions

from memctl.doctor.doctor import Doctor
from memctl.home import Home
from memctl.kb_settings import Inbox
from memctl.store.ledger.work_repositories import FileEntry
from memctl.watch.claims import claim_name

from .conftest import not_ok

Break = Callable[[Home], object]


def unnamed_version(home: Home) -> None:
    with home.open("notes") as base, base.store.ledger.transaction() as change:
        change.execute("DELETE FROM heads WHERE table_name = 'relations'")


def relation_to_nothing(home: Home) -> None:
    with home.open("notes") as base, base.store.write() as transaction:
        relations = transaction.snapshot().scan("relations")
        transaction.upsert("relations", with_all(relations, "target_id", "e_no"))


def relation_borne_by_nothing(home: Home) -> None:
    with home.open("notes") as base, base.store.write() as transaction:
        relations = transaction.snapshot().scan("relations")
        transaction.upsert("relations", with_all(relations, "memory_ids", ["m_no"]))


def with_all(rows: pa.Table, column: str, value: object) -> pa.Table:
    field = rows.schema.field(column)
    values = pa.array([value] * rows.num_rows, field.type)
    return rows.set_column(rows.schema.get_field_index(column), field, values)


def inbox_that_is_gone(home: Home) -> None:
    own = Inbox(home.layout("notes").inbox)
    gone = home.config.home / "gone"
    gone.mkdir()
    home.change("notes", inboxes=(own, Inbox(gone)))
    gone.rmdir()


def link_to_nothing(home: Home) -> None:
    failed = home.layout("notes").failed
    failed.rmdir()
    failed.symlink_to(home.config.home / "gone")


def file_of_a_process_that_is_gone(home: Home) -> None:
    layout, now = home.layout("notes"), datetime.now(UTC)
    original = layout.inbox / "a.txt"
    folder = layout.processing / claim_name(original)
    folder.mkdir()
    (folder / "a.txt").write_text("tea")
    entry = FileEntry(
        str(original), str(layout.inbox), 3, 0, "claimed", first_seen=now, updated_at=now
    )
    with home.open("notes") as base:
        base.store.ledger.files.save(entry)


def earlier_version_that_is_cut_short(home: Home) -> None:
    with home.open("notes") as base:
        base.memories.add("The rent is 900 euros.")
    os.truncate(manifests(home.layout("notes").folder, "memories")[1], 10)


STATES: dict[str, tuple[Break, tuple[str, str, str], str, str]] = {
    "a version that the ledger does not name": (
        unnamed_version,
        ("ledger", "relations", "damaged"),
        "the ledger names no version of it",
        "memctl doctor --repair",
    ),
    "relations of an entity that is gone": (
        relation_to_nothing,
        ("rows", "relations", "warning"),
        "of what is not there: ",
        "memctl doctor --re",
    ),
    "relations of a memory that is gone": (
        relation_borne_by_nothing,
        ("rows", "relations", "warning"),
        "of what is not there: ",
        "memctl doctor --re",
    ),
    "an inbox that is gone": (
        inbox_that_is_gone,
        ("folders", "inbox", "warning"),
        "gone is not there",
        "kb.toml",
    ),
    "a link to nothing for a folder": (
        link_to_nothing,
        ("folders", "failed", "warning"),
        "is a link to what is not there",
        "mend the link",
    ),
    "a file of a process that is gone": (
        file_of_a_process_that_is_gone,
        ("inbox", "processing", "warning"),
        "1 file claimed by a process that is gone",
        "memctl watch",
    ),
    "an earlier version that is cut short": (
        earlier_version_that_is_cut_short,
        ("versions", "memories", "warning"),
        "1 earlier version cannot be opened",
        "--repair clears",
    ),
}


@pytest.mark.parametrize(
    ("broken", "finding", "message", "hint"), STATES.values(), ids=STATES.keys()
)
def test_each_fault_is_the_only_finding_and_has_a_hint(
    home: Home,
    doctor: Doctor,
    broken: Break,
    finding: tuple[str, str, str],
    message: str,
    hint: str,
) -> None:
    broken(home)
    (only_finding,) = not_ok(doctor.examine("notes"))
    assert (only_finding.layer, only_finding.subject, only_finding.verdict) == finding
    assert message in only_finding.message
    assert hint in only_finding.hint


@needs_permissions
def test_a_folder_that_cannot_be_written_to_is_told(home: Home) -> None:
    folder = home.layout("notes").processed
    folder.chmod(0o500)
    command = [*LIMITED, sys.executable, "-m", "memctl", "doctor", "-o", "json"]
    environment = os.environ | {"MEMCTL_HOME": str(home.config.home)}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    findings = [each for each in json.loads(done.stdout) if each["subject"] == "processed"]
    assert [(each["layer"], each["verdict"]) for each in findings] == [("folders", "warning")]
    assert findings[0]["message"] == "cannot be written to"
    assert findings[0]["hint"] == "check its permissions"
