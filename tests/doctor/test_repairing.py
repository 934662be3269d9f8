"""What damage has taken comes back: from other rows, from files, from what is left."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from damaged import lose_copies_of_manifests, manifests

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.errors import KnowledgeBaseUnavailable, LockedError
from memctl.home import Home
from memctl.instants import utc_now
from memctl.schema.arrow_tables import vector_array
from memctl.store.locks import WriteLock
from memctl.store.tables.filter_expressions import Expr, col

from .conftest import not_ok

Rows = dict[str, str]
DOOR = "The door code is 4711."


def texts(home: Home) -> tuple[Rows, Rows]:
    """Documents and memories, each id with its text."""
    with home.open("notes") as base:
        snapshot = base.store.snapshot()
        documents = snapshot.scan("documents", None, ["id", "text"]).to_pylist()
        memories = snapshot.scan("memories", None, ["id", "text"]).to_pylist()
    return {r["id"]: r["text"] for r in documents}, {r["id"]: r["text"] for r in memories}


def lose(home: Home, table: str, where: Expr) -> None:
    with home.open("notes") as base, base.store.write() as transaction:
        assert transaction.delete(table, where)


def lose_manifest(home: Home, *, copy: bool) -> None:
    """Lose that of what counts of the memories, and the ledger's copy of it if asked to."""
    folder = home.layout("notes").folder
    if copy:
        lose_copies_of_manifests(folder)
    manifests(folder, "memories")[0].write_bytes(b"")


def messages(doctor: Doctor, **options: bool) -> list[str]:
    return [step.message for step in doctor.repair("notes", **options)]


def damage(doctor: Doctor) -> list[str]:
    return [each.message for each in not_ok(doctor.examine("notes")) if each.verdict == "damaged"]


def tree(folder: Path) -> dict[str, str]:
    files = [
        path for path in folder.rglob("*") if path.is_file() and path.name != "ledger.sqlite-shm"
    ]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_repair_changes_nothing_where_nothing_is_damaged(home: Home, doctor: Doctor) -> None:
    before = texts(home)
    assert messages(doctor) == []
    assert texts(home) == before


def test_a_lost_document_is_read_again_from_its_file(home: Home, doctor: Doctor) -> None:
    before = texts(home)
    lose(home, "documents", col("source") == "trips/oslo.md")
    assert damage(doctor)
    assert messages(doctor) == ["read 1 document again"]
    assert damage(doctor) == []
    assert texts(home) == before
    assert messages(doctor) == []


def test_a_document_and_all_its_memories_come_back_from_the_file(
    home: Home, doctor: Doctor
) -> None:
    before = texts(home)
    lose(home, "memories", col("source") == "lease.md")
    lose(home, "documents", col("source") == "lease.md")
    assert messages(doctor)[0] == "read 1 document again"
    assert (damage(doctor), texts(home)) == ([], before)
    with home.open("notes") as base:
        assert "oslo" not in base.query("When does the lease start?").hits[0].source


def test_a_document_without_memories_is_understood_again_from_its_text(
    home: Home, doctor: Doctor
) -> None:
    before = texts(home)
    lose(home, "memories", col("source") == "text")
    assert messages(doctor) == ["read 1 document again"]
    assert (damage(doctor), texts(home)) == ([], before)


def test_a_document_that_was_deleted_by_hand_stays_deleted(home: Home, doctor: Doctor) -> None:
    with home.open("notes") as base:
        rows = base.documents.list().to_pylist()
        lease = next(row["id"] for row in rows if row["source"] == "lease.md")
        base.documents.delete(lease)
    assert damage(doctor) == []
    assert "read 1 document again" not in messages(doctor)
    assert lease not in texts(home)[0]


def test_a_document_that_was_deleted_by_hand_stays_so_when_its_memories_come_back(
    home: Home, doctor: Doctor
) -> None:
    with home.open("notes") as base:
        rows = base.documents.list().to_pylist()
        lease = next(row["id"] for row in rows if row["source"] == "lease.md")
        base.documents.delete(lease)
    documents, memories = texts(home)
    lose_manifest(home, copy=True)
    plan = messages(doctor, dry_run=True)
    done = messages(doctor)
    assert any("would delete again what had been deleted" in step for step in plan)
    assert any(step.startswith("deleted again what had been deleted") for step in done)
    assert not any("anew from the passages" in step for step in done)
    assert (damage(doctor), texts(home)) == ([], (documents, memories))


def test_the_last_change_survives_the_loss_of_its_manifest(home: Home, doctor: Doctor) -> None:
    do_one_thing_more(home)
    before = everything(home)
    lose_manifest(home, copy=False)
    assert damage(doctor)
    steps = list(doctor.repair("notes"))
    assert [step.message for step in steps if step.subject == "memories"] == [
        f"wrote the manifest of version {version(home)} again, from the ledger"
    ]
    assert not any(step.lost_rows for step in steps)
    assert (damage(doctor), everything(home), messages(doctor)) == ([], before, [])


def test_a_possible_rollback_is_reported_when_no_copy_of_the_manifest_is_left(
    home: Home, doctor: Doctor
) -> None:
    changed = do_one_thing_more(home)
    lose_manifest(home, copy=True)
    (step,) = (step for step in doctor.repair("notes") if step.lost_rows)
    assert "what was changed since may be undone" in step.message
    assert [row.id for row in step.lost] == [changed]
    assert (damage(doctor), messages(doctor)) == ([], [])


def put_another_manifest(home: Home) -> None:
    """Have the version that counts be one that lacks the door code, behind the ledger's back."""
    folder = home.layout("notes").folder
    other = Path(shutil.copytree(home.config.home, home.config.home.with_name("other")))
    lose(Home(load_config({"home": str(other)}, {})), "memories", col("text") == DOOR)
    do_one_thing_more(home)
    beside = other / "kb/notes/lance/memories.lance"
    for path in [path for path in beside.rglob("*") if path.is_file()]:
        place = folder / "lance/memories.lance" / path.relative_to(beside)
        if not place.exists() or path == manifests(other / "kb/notes", "memories")[0]:
            shutil.copy(path, place)


@pytest.mark.parametrize("are_files_left", [True, False])
def test_a_table_that_is_not_the_one_that_was_committed_is_damage(
    home: Home, doctor: Doctor, are_files_left: bool
) -> None:
    there = set((home.layout("notes").folder / "lance/memories.lance/data").iterdir())
    put_another_manifest(home)
    before = len(everything(home))
    for path in (home.layout("notes").folder / "lance/memories.lance/data").iterdir():
        if path not in there and not are_files_left:
            path.unlink()  # what was committed, and is not in the other version
    assert damage(doctor) == [
        "its manifest is not the one that was committed",
        f"{before} rows, where the ledger knows of {before + 1}",
    ]
    steps = list(doctor.repair("notes"))
    assert any(step.lost_rows for step in steps) is not are_files_left
    assert damage(doctor) == []
    assert len(everything(home)) == before + are_files_left
    assert messages(doctor) == []


def do_one_thing_more(home: Home) -> str:
    """Set how important a memory is; return which."""
    with home.open("notes") as base:
        snapshot = base.store.snapshot()
        row = snapshot.scan("memories", col("text") == DOOR).to_pylist()[0]
        change = pa.table({"id": [row["id"]], "importance": [0.125]})
        with base.store.write() as transaction:
            transaction.update("memories", change)
    return str(row["id"])


def everything(home: Home) -> list[dict[str, object]]:
    with home.open("notes") as base:
        found: list[dict[str, object]] = base.store.snapshot().scan("memories").to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def version(home: Home) -> int:
    with home.open("notes") as base:
        return base.store.snapshot().versions["memories"]


def test_a_file_is_found_after_the_knowledge_base_has_got_another_name(
    home: Home, doctor: Doctor
) -> None:
    before = texts(home)
    lose(home, "documents", col("source") == "trips/oslo.md")
    home.rename("notes", "diary")
    assert [step.message for step in doctor.repair("diary")] == ["read 1 document again"]
    home.rename("diary", "notes")
    assert texts(home) == before


def test_a_document_without_a_file_is_made_from_the_passages_that_are_left(
    home: Home, doctor: Doctor
) -> None:
    documents, memories = texts(home)
    lose(home, "documents", col("source") == "text")
    assert messages(doctor) == ["made 1 document anew from the passages that are left"]
    assert (damage(doctor), texts(home)) == ([], (documents, memories))


def test_a_file_that_has_changed_since_does_not_stand_in_for_the_document(
    home: Home, doctor: Doctor
) -> None:
    _, memories = texts(home)
    (home.layout("notes").processed / "lease.md").write_text("another lease")
    lose(home, "documents", col("source") == "lease.md")
    steps = messages(doctor)
    assert steps[0] == "not brought back: lease.md has changed since"
    assert memories.items() <= texts(home)[1].items()
    assert not any("another lease" in text for text in texts(home)[0].values())


def test_a_document_whose_file_has_changed_since_is_understood_again_from_its_text(
    home: Home, doctor: Doctor
) -> None:
    before = texts(home)
    (home.layout("notes").processed / "lease.md").write_text("another lease")
    lose(home, "memories", col("source") == "lease.md")
    assert messages(doctor) == ["read 1 document again"]
    assert damage(doctor) == []
    assert [set(each) for each in texts(home)] == [set(each) for each in before]


def test_references_to_what_is_lost_are_dropped_and_what_had_ended_holds_again(
    home: Home, doctor: Doctor
) -> None:
    with home.open("notes") as base:
        old = base.memories.add("The rent is 900 euros.")
        new = base.memories.edit(old.id, "The rent is 950 euros.")
    lose(home, "memories", col("id") == new.id)
    assert damage(doctor)
    messages(doctor)
    assert damage(doctor) == []
    with home.open("notes") as base:
        again = base.memories.get(old.id).memory
        assert (again.superseded_by, again.valid_to) == (None, None)


def test_rows_that_are_there_twice_are_there_once_again(home: Home, doctor: Doctor) -> None:
    before = texts(home)
    with home.open("notes") as base, base.store.write() as transaction:
        transaction.append("memories", transaction.snapshot().scan("memories"))
    assert messages(doctor) == [f"kept one row of each of {len(before[1])} ids"]
    assert (damage(doctor), texts(home)) == ([], before)


def test_vectors_that_cannot_be_searched_for_are_made_anew(home: Home, doctor: Doctor) -> None:
    with home.open("notes") as base:
        ids = base.store.snapshot().scan("memories", None, ["id"])["id"]
        right = base.store.snapshot().scan("memories", None, ["id", "vector"])
        with base.store.write() as transaction:
            wrong = vector_array(np.full((len(ids), 256), np.inf))
            transaction.update("memories", pa.table({"id": ids, "vector": wrong}))
    assert messages(doctor) == [f"made the vectors of {len(ids)} memories anew"]
    assert damage(doctor) == []
    with home.open("notes") as base:
        again = base.store.snapshot().scan("memories", None, ["id", "vector"])
    assert again.sort_by("id")["vector"].to_pylist() == right.sort_by("id")["vector"].to_pylist()


@pytest.mark.parametrize("content", [None, b"", b"chunk_size = \n", b"colour = 'red'\n"])
def test_settings_come_back_as_they_were_last_used(
    home: Home, doctor: Doctor, content: bytes | None
) -> None:
    home.change("notes", half_life=7)
    home.open_for_writing("notes").close()
    settings = home.settings("notes")
    path = home.layout("notes").settings
    path.unlink() if content is None else path.write_bytes(content)
    assert damage(doctor)
    assert messages(doctor)[0].startswith("kb.toml brought back as it was last used")
    assert home.settings("notes") == settings
    kept = [each.read_bytes() for each in path.parent.glob("kb.toml.damaged-*")]
    assert kept == ([] if content is None else [content])


def test_settings_of_a_newer_memctl_are_left_as_they_are(home: Home, doctor: Doctor) -> None:
    path = home.layout("notes").settings
    path.write_text("format_version = 99\n")
    with pytest.raises(KnowledgeBaseUnavailable, match="format 99"):
        messages(doctor)
    assert path.read_text() == "format_version = 99\n"


def test_with_the_ledger_lost_files_are_known_by_what_lies_in_processed(
    home: Home, doctor: Doctor
) -> None:
    before = texts(home)
    lose(home, "documents", col("source") == "trips/oslo.md")
    for path in home.layout("notes").folder.glob("ledger.sqlite*"):
        path.unlink()
    steps = messages(doctor)
    assert "wrote down 3 files found in processed/" in steps
    assert "read 1 document again" in steps
    assert (damage(doctor), texts(home)) == ([], before)
    with home.open("notes") as base:
        assert base.store.ledger.files.counts() == {"done": 3}


@pytest.mark.parametrize("is_whole", [True, False])
def test_with_the_ledger_lost_what_was_deleted_stays_so_unless_documents_are_lost_too(
    home: Home, doctor: Doctor, is_whole: bool
) -> None:
    with home.open("notes") as base:
        gone = {row["source"]: row["id"] for row in base.documents.list().to_pylist()}["note.txt"]
        base.documents.delete(gone)
    after = texts(home)
    folder = home.layout("notes").folder
    for path in folder.glob("ledger.sqlite*"):
        path.unlink()
    for path in () if is_whole else (folder / "lance/documents.lance/data").iterdir():
        os.truncate(path, path.stat().st_size // 2)
    steps = messages(doctor)
    left = "left 1 file in processed/ without a document as deleted"
    again = "nothing says any more which of them you had deleted"
    assert [any(left in step for step in steps), any(again in step for step in steps)] == [
        is_whole,
        not is_whole,
    ]
    assert damage(doctor) == []
    assert (texts(home) == after) is is_whole
    assert (gone in texts(home)[0]) is not is_whole


def test_nothing_is_repaired_while_somebody_writes(home: Home, doctor: Doctor) -> None:
    with (
        WriteLock(home.layout("notes").folder, utc_now).hold(1.0),
        pytest.raises(LockedError, match=f"process {os.getpid()} on .* is writing"),
    ):
        messages(doctor)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(home: Home, doctor: Doctor) -> None:
    layout = home.layout("notes")
    lose(home, "documents", col("source") == "lease.md")
    newest = max(
        (layout.folder / "lance" / "entities.lance" / "data").iterdir(),
        key=lambda path: path.stat().st_mtime_ns,
    )
    newest.write_bytes(b"")
    before = tree(layout.folder)
    steps = messages(doctor, dry_run=True)
    assert any("would read 1 document again" in step for step in steps)
    assert any("cannot be read" in step for step in steps)
    assert tree(layout.folder) == before
    assert [path.name for path in layout.folder.parent.iterdir()] == ["notes"]


def statement(home: Home, words: str) -> str:
    """The id of what was distilled with these words."""
    with home.open("notes") as base:
        rows = base.store.snapshot().scan("memories", col("level") == "memory", ["id", "text"])
    return next(row["id"] for row in rows.to_pylist() if words in row["text"])


def test_what_was_deleted_by_hand_stays_so_when_its_document_is_read_again(
    home: Home, doctor: Doctor
) -> None:
    id_ = statement(home, "night train")
    with home.open("notes") as base:
        document = base.memories.get(id_).memory.document_id
        base.memories.delete(id_)
        base.documents.reprocess([document])
    assert id_ not in texts(home)[1]
    lose(home, "documents", col("id") == document)
    assert messages(doctor) == ["read 1 document again"]
    assert id_ not in texts(home)[1]
    with home.open("notes") as base:
        base.documents.delete(document)
        base.ingest(home.layout("notes").processed / "trips" / "oslo.md")
    assert statement(home, "night train")


def test_a_document_all_of_whose_memories_were_deleted_by_hand_is_whole(
    home: Home, doctor: Doctor
) -> None:
    with home.open("notes") as base:
        rows = base.store.snapshot().scan("memories", col("source") == "lease.md", ["id"])
        for row in rows.to_pylist():
            base.memories.delete(row["id"])
    left = texts(home)
    assert damage(doctor) == messages(doctor) == []
    assert texts(home) == left


def test_a_document_comes_back_of_which_one_memory_was_deleted_by_hand(
    home: Home, doctor: Doctor
) -> None:
    id_ = statement(home, "night train")
    with home.open("notes") as base:
        base.memories.delete(id_)
    left = texts(home)
    lose(home, "memories", col("source") == "trips/oslo.md")
    assert any("without any memory" in message for message in damage(doctor))
    assert messages(doctor) == ["read 1 document again"]
    assert (damage(doctor), texts(home)) == ([], left)


def test_a_document_that_is_lost_with_its_file_is_named_once(home: Home, doctor: Doctor) -> None:
    lose(home, "memories", col("source") == "trips/oslo.md")
    lose(home, "documents", col("source") == "trips/oslo.md")
    (home.layout("notes").processed / "trips" / "oslo.md").write_text("another journey")
    assert damage(doctor)
    assert messages(doctor, dry_run=True)[0] == "not brought back: trips/oslo.md has changed since"
    (planned,) = (step for step in doctor.repair("notes", dry_run=True) if step.lost)
    (step,) = (step for step in doctor.repair("notes") if step.lost)
    assert step.lost == planned.lost
    assert [row.source for row in step.lost] == ["oslo.md"]
    assert step.message == f"1 document lost for good: {step.lost[0].id} (oslo.md)"
    assert damage(doctor) == messages(doctor) == []


def test_a_ledger_that_lacks_a_table_or_a_column_is_made_anew(home: Home, doctor: Doctor) -> None:
    before = texts(home)
    with closing(sqlite3.connect(home.layout("notes").folder / "ledger.sqlite")) as ledger:
        ledger.execute("DROP TABLE daemon")
        ledger.execute("ALTER TABLE jobs RENAME COLUMN detail TO words")
    assert sorted(damage(doctor)) == ["it has no table daemon", "its table jobs has no detail"]
    assert messages(doctor)[0] == "made anew from the tables; the old one is kept beside it"
    assert (damage(doctor), texts(home)) == ([], before)


@pytest.mark.parametrize("name", ["lance", "lance/memories.lance", "inbox", "ledger.sqlite"])
def test_a_file_in_place_of_a_folder_or_the_reverse_is_moved_aside(
    home: Home, doctor: Doctor, name: str
) -> None:
    folder = home.layout("notes").folder
    path = folder / name
    files = {row for row in texts(home)[0].values() if "spare key" not in row}
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("what is this")
    else:
        path.unlink()
        path.mkdir()
    assert not_ok(doctor.examine("notes"))
    messages(doctor)
    assert not_ok(doctor.examine("notes")) == []
    assert files <= set(texts(home)[0].values())
    kept = [each for each in folder.rglob("*") if "damaged" in str(each) and each != path]
    assert kept
