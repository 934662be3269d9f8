"""Every check of the doctor: silent on what is whole, and telling when something is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from damaged import manifests
from msgspec.structs import replace

from memctl.doctor import folder_checks, row_checks
from memctl.doctor.doctor import CONTENT_CHECKS, FOLDER_CHECKS, LEDGER_CHECK, Doctor
from memctl.doctor.findings import Finding
from memctl.doctor.folder_checks import MIN_FREE
from memctl.home import Home
from memctl.ids import entity_id
from memctl.instants import utc_now
from memctl.schema.arrow_tables import entities_table, entity_rows, memory_rows, vector_array
from memctl.store.locks import WriteLock
from memctl.store.tables import indexes
from memctl.store.tables.filter_expressions import col
from memctl.store.tables.transaction import Transaction

from .conftest import leave_names, not_ok


def examined(doctor: Doctor, **options: bool) -> list[Finding]:
    return not_ok(doctor.examine("notes", **options))


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


@contextmanager
def writing(home: Home) -> Iterator[Transaction]:
    with home.open("notes") as base, base.store.write() as transaction:
        yield transaction


def damage(home: Home, change: Callable[[pa.Table], pa.Table], where: object = None) -> None:
    """Write memories other than they should be, as nothing in the product does."""
    with writing(home) as transaction:
        rows = transaction.snapshot().scan("memories", where or col("level") == "evidence")
        transaction.upsert("memories", change(rows))


def with_column(name: str, values: object) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(name)
        one = pa.array([values], rows.schema.field(name).type)
        column = pa.concat_arrays([one, rows[name].combine_chunks()[1:]])
        return rows.set_column(place, rows.schema.field(name), column)

    return change


def test_all_is_well_after_everything_that_people_do(home: Home, doctor: Doctor) -> None:
    with home.open("notes") as base:
        stated = base.memories.add("The rent is 900 euros.")
        base.memories.edit(stated.id, "The rent is 950 euros.")
        base.memories.add("The rent was 900 euros before.")
        base.consolidate()
        base.documents.reprocess([row["id"] for row in base.documents.list().to_pylist()])
        report = base.ingest(text="The lease starts on 2 June 2026.", source="later")
        base.documents.delete(report.outcomes[0].document_id)
        base.memories.delete(stated.id)
        base.store.upkeep(force=True)
        (home.layout("notes").inbox / "again.txt").write_text("waits")
    found = list(doctor.examine("notes", deep=True))
    assert [each for each in found if each.verdict == "damaged"] == []
    layers = {"folders", "disk", "locks", "ledger", "tables", "indexes", "rows", "vectors"}
    assert layers | {"citations", "inbox"} <= {finding.layer for finding in found}


def test_every_finding_names_the_check_that_reports_it(
    home: Home, doctor: Doctor, tmp_path: Path
) -> None:
    (home.layout("notes").inbox / "again.txt").write_text("waits")
    declared = [check.name for check in (*FOLDER_CHECKS, LEDGER_CHECK, *CONTENT_CHECKS)]
    assert len(set(declared)) == len(declared)
    found = {finding.check for finding in doctor.examine("notes", deep=True)}
    assert {"settings", "folders", "disk", "ledger", "tables", "citations", "inboxes"} <= found
    assert found <= {*declared, "watcher"}
    machine = {finding.check for finding in doctor.machine(tmp_path / "config.toml")}
    assert machine == {"machine"}


def test_examining_changes_nothing(home: Home, doctor: Doctor) -> None:
    folder = home.layout("notes").folder

    def content() -> dict[str, bytes]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in files if "ledger" not in path.name}

    def ledger() -> list[str]:
        with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
            return list(connection.iterdump())

    before = content(), ledger()
    assert examined(doctor, deep=True) == []
    assert (content(), ledger()) == before


def test_a_folder_that_is_gone_or_open_to_others_is_told(home: Home, doctor: Doctor) -> None:
    layout = home.layout("notes")
    shutil.rmtree(layout.failed)
    layout.folder.chmod(0o755)
    found = examined(doctor)
    assert {(each.subject, each.verdict) for each in found} == {
        ("failed", "warning"),
        ("notes", "warning"),
    }
    assert any("chmod 700" in each.hint for each in found)


def test_settings_that_cannot_be_read_are_damage(home: Home, doctor: Doctor) -> None:
    home.layout("notes").settings.write_text("chunk_size = \n")
    finding = only(examined(doctor))
    assert (finding.subject, finding.verdict) == ("settings", "damaged")
    assert "kb.toml: not valid TOML" in finding.message


def test_a_knowledge_base_without_settings_is_still_found(home: Home, doctor: Doctor) -> None:
    home.layout("notes").settings.unlink()
    assert home.names() == doctor.names() == ["notes"]
    assert only(examined(doctor)).subject == "settings"


def test_who_writes_and_who_watches_is_told(home: Home, doctor: Doctor) -> None:
    layout = home.layout("notes")
    with WriteLock(layout.folder, utc_now).hold(1.0):
        messages = [each.message for each in doctor.examine("notes") if each.layer == "locks"]
        assert f"held by process {os.getpid()}" in messages[0]
    (layout.folder / "lock.holder").write_text('{"pid": 1, "host": "h", "since": "then"}')
    messages = [each.message for each in doctor.examine("notes") if each.layer == "locks"]
    assert "was killed while it held it" in messages[0]
    assert examined(doctor) == []


def test_memories_of_a_document_that_is_gone_are_damage(home: Home, doctor: Doctor) -> None:
    with writing(home) as transaction:
        transaction.delete("documents", col("source") == "lease.md")
    found = examined(doctor)
    damage_found = {(each.layer, each.subject): each for each in found if each.verdict == "damaged"}
    assert damage_found.keys() == {("rows", "memories"), ("rows", "ledger")}
    assert (
        "memories of 1 document that are not there: d_" in damage_found["rows", "memories"].message
    )
    assert "lease.md" in damage_found["rows", "ledger"].message


def test_a_live_document_without_memories_is_damage(home: Home, doctor: Doctor) -> None:
    with writing(home) as transaction:
        transaction.delete("memories", col("source") == "trips/oslo.md")
    found = [each for each in examined(doctor) if each.verdict == "damaged"]
    assert "1 live document without any memory" in only(found).message


@pytest.mark.parametrize("column", ["source_ids", "superseded_by"])
def test_a_memory_that_names_one_that_is_not_there_is_damage(
    home: Home, doctor: Doctor, column: str
) -> None:
    damage(home, with_column(column, ["m_no"] if column == "source_ids" else "m_no"))
    finding = only(examined(doctor))
    assert finding.verdict == "damaged"
    assert f"1 memory with {column} that are not there: m_" in finding.message


def test_rows_that_are_there_twice_are_damage(home: Home, doctor: Doctor) -> None:
    with writing(home) as transaction:
        row = transaction.snapshot().scan("memories", col("type") == "fact", limit=1)
        transaction.append("memories", row)
    finding = only(examined(doctor))
    assert (finding.verdict, finding.message) == ("damaged", "1 id there twice")


def test_a_graph_that_names_what_is_gone_is_a_warning(home: Home, doctor: Doctor) -> None:
    leave_names(home)
    found = examined(doctor)
    assert {each.verdict for each in found} == {"warning"}
    assert {each.subject for each in found} == {"entities", "relations"}
    assert all("--repair" in each.hint for each in found)
    assert {step.subject for step in doctor.repair("notes")} == {"entities", "relations"}
    assert examined(doctor) == []


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (None, "1 memory without a vector"),
        (np.full(256, np.nan), "1 memory with a vector that is not finite"),
        (np.full(256, 0.5), "1 memory with one not of length 1"),
    ],
)
def test_a_vector_that_cannot_be_one_is_damage(
    home: Home, doctor: Doctor, spoilt: np.ndarray | None, message: str
) -> None:
    one = None if spoilt is None else vector_array(spoilt.reshape(1, -1))[0].as_py()
    damage(home, with_column("vector", one))
    finding = only(examined(doctor))
    assert (finding.verdict, finding.message) == ("damaged", message)


def test_a_passage_that_is_not_where_it_says_is_damage(home: Home, doctor: Doctor) -> None:
    damage(home, with_column("text", "something else"))
    finding = only(examined(doctor))
    assert (finding.layer, finding.verdict) == ("citations", "damaged")
    assert finding.message.startswith("1 of ")


def test_a_document_that_misses_a_passage_is_told(home: Home, doctor: Doctor) -> None:
    text = "\n\n".join(f"Paragraph {n} tells of the {n}th day. " * 20 for n in range(6))
    with home.open("notes") as base:
        base.ingest(text=text, source="long")
        rows = base.store.snapshot().scan("memories", col("source") == "long")
    passages = [memory for memory in memory_rows(rows) if memory.level == "evidence"]
    with writing(home) as transaction:
        transaction.delete("memories", col("id") == passages[2].id)
    findings = [each for each in examined(doctor) if each.layer == "citations"]
    assert "1 document of which passages are missing" in only(findings).message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reply.eml", "From: Ann <a@x.org>\nTo: b@x.org\nSubject: Fee\n\nYes, that is fine with me."
         "\n\nOn Monday, 4 May 2026, Bob <b@x.org> wrote:\n> The fee goes up.\n\n-- \nAnn Lee\n"),
        ("4 May.md", "# Monday\n\n<< [[2026-05-03]] | [[2026-05-05]] >>\n\nThe fee went up.\n"),
        ("chat.txt", "12/05/2026, 14:03 - Messages are end-to-end encrypted.\n"
         "12/05/2026, 14:04 - Ann: The fee goes up.\n12/05/2026, 14:05 - Bob: Fine by me.\n"),
    ],
)  # fmt: skip
def test_text_that_a_reader_leaves_out_is_not_missing(
    home: Home, doctor: Doctor, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with home.open("notes") as base:
        base.ingest(tmp_path / name)
    assert not [each for each in examined(doctor) if each.layer == "citations"]


def test_citations_of_a_large_table_are_sampled_unless_all_are_asked_for(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_checks, "MANY_MEMORIES", 5)

    def message(**options: bool) -> str:
        return only(
            [x for x in doctor.examine("notes", **options) if x.layer == "citations"]
        ).message

    assert "a sample" in message()
    assert "a sample" not in message(deep=True)


def test_files_that_nobody_works_on_are_told(home: Home, doctor: Doctor) -> None:
    layout = home.layout("notes")
    (layout.processing / "loose.txt").write_text("lost on the way")
    (layout.failed / "bad.pdf").write_bytes(b"%PDF")
    found = examined(doctor)
    assert [(each.layer, each.verdict) for each in found] == [("inbox", "warning")] * 2
    assert "loose.txt" in found[0].message
    assert "bad.pdf" in found[1].message


def test_leftovers_of_a_crash_beyond_the_commit_point_are_no_damage(
    home: Home, doctor: Doctor
) -> None:
    import lance

    path = str(home.layout("notes").folder / "lance" / "entities.lance")
    lance.dataset(path).delete("true")
    finding = only(examined(doctor))
    assert (finding.layer, finding.verdict) == ("versions", "warning")
    assert "the next writer rolls it back" in finding.hint


def test_broken_indexes_are_damage_and_nothing_is_looked_up_by_them(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "MIN_UNINDEXED", 0)
    with home.open("notes") as base:
        base.store.upkeep(force=True)
    tables = home.layout("notes").folder / "lance"
    for path in [each for each in tables.rglob("_indices/*/*") if each.is_file()]:
        os.truncate(path, path.stat().st_size // 2)
    wrong = [each for each in examined(doctor) if each.verdict == "damaged"]
    assert {each.layer for each in wrong} == {"indexes"}
    assert {each.subject for each in wrong} == {"documents", "memories", "entities", "relations"}
    list(doctor.repair("notes"))
    assert examined(doctor) == []


@pytest.mark.parametrize("damages", [False, True])
def test_an_index_that_does_not_fit_into_the_cache_is_no_damage(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, damages: bool
) -> None:
    with home.open("notes") as base:
        base.store.upkeep(force=True)
    if damages:
        for path in home.layout("notes").folder.rglob("_indices/*/part_*_invert.lance"):
            os.truncate(path, path.stat().st_size // 2)
    monkeypatch.setattr("memctl.store.tables.engine.INDEX_CACHE_BYTES", 100)
    assert bool(examined(doctor)) is damages


def test_too_little_room_on_the_disk_is_told(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(home.config.home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=MIN_FREE - 1))
    finding = only(examined(doctor))
    assert (finding.layer, finding.verdict) == ("disk", "warning")
    assert "upkeep needs up to" in finding.message
    assert finding.hint == "free some space on the disk"


@pytest.mark.parametrize("name", ["max_user_watches", "max_user_instances"])
def test_a_limit_on_watching_that_is_too_low_is_told(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    limits = {"max_user_watches": 1_000_000, "max_user_instances": 1_000} | {name: 3}
    for each, value in limits.items():
        (tmp_path / each).write_text(f"{value}\n")
    monkeypatch.setattr(folder_checks, "_INOTIFY", tmp_path)
    found = [each for each in doctor.machine(tmp_path / "none.toml") if each.layer == "inotify"]
    assert [each.subject for each in found if each.verdict == "ok"] == [*limits.keys() - {name}]
    finding = only(not_ok(found))
    assert (finding.subject, finding.verdict) == (name, "warning")
    assert "3 may be too few" in finding.message
    assert f"sysctl fs.inotify.{name}=" in finding.hint


def test_a_setting_that_there_is_none_of_and_settings_open_to_all_are_told(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config.toml"
    settings.touch()
    settings.chmod(0o666)
    monkeypatch.setenv("MEMCTL_LOG_LEVLE", "debug")
    found = [each for each in doctor.machine(settings) if each.layer == "config"]
    assert {each.verdict for each in found} == {"warning"}
    unknown, loose = found
    assert unknown.subject == "MEMCTL_LOG_LEVLE"
    assert "MEMCTL_LOG" in unknown.hint
    assert loose.message == f"anybody may change {settings}"
    assert loose.hint == f"chmod o-w {settings}"


def test_too_many_rows_that_no_index_knows_are_told(
    home: Home, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with home.open("notes") as base:
        base.store.upkeep(force=True)
        base.ingest(text="The boiler is serviced in May.")
    assert examined(doctor) == []
    monkeypatch.setattr(indexes, "MIN_UNINDEXED", 0)
    monkeypatch.setattr(indexes, "UNINDEXED_SHARE", 0)
    findings = {each.subject: each for each in examined(doctor)}
    assert {each.layer for each in findings.values()} == {"indexes"}
    assert {each.verdict for each in findings.values()} == {"warning"}
    assert "so that searches are slower" in findings["memories"].message
    assert "memctl watch" in findings["memories"].hint


def test_vectors_of_another_length_than_is_pinned_are_damage(home: Home, doctor: Doctor) -> None:
    with home.open("notes") as base:
        base.store.ledger.set_meta("dimension", "8")
    finding = only([each for each in examined(doctor) if each.layer == "vectors"])
    assert finding.verdict == "damaged"
    assert finding.message == "256 numbers each, where 8 are expected"
    assert "doctor --repair" in finding.hint
    list(doctor.repair("notes"))
    assert examined(doctor) == []


def test_a_snapshot_whose_version_cannot_be_opened_is_damage(home: Home, doctor: Doctor) -> None:
    with home.open("notes") as base:
        base.snapshots.create("one")
        base.memories.add("The spare key is with Ida.")
    folder = home.layout("notes").folder
    newest, *others = manifests(folder, "memories")
    for path in others:
        path.unlink()
    finding = only(examined(doctor))
    assert (finding.layer, finding.subject, finding.verdict) == ("snapshots", "one", "damaged")
    assert finding.message == "its memories cannot be opened"
    assert "doctor --repair" in finding.hint
    list(doctor.repair("notes"))
    assert (examined(doctor), newest.exists()) == ([], True)


def test_a_name_without_a_type_beside_the_same_with_one_is_counted_once(home: Home) -> None:
    with home.open("notes") as base:
        before = base.statistics.content().entities
        names = base.store.snapshot().scan("entities")
        known = next(row for row in entity_rows(names) if row.type == "person")
        other = replace(known, id=entity_id(known.name, "other"), type="other")
        with base.store.write() as transaction:
            transaction.append("entities", entities_table([other]))
        assert base.store.snapshot().count("entities") == names.num_rows + 1
        assert base.statistics.content().entities == before
