"""Damage test: each file of each table is cut, zeroed, emptied or deleted, and comes back.

By default one file of each kind of each table, and some of those that have memories, each time hurt
in another way; with ``MEMCTL_LONG_TESTS=1`` every file in every way.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import lance
import pytest
from long_form import IS_LONG
from watched import SETTLE

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.errors import DamagedError
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.schema.table_names import TABLES, TableName
from memctl.store.ledger.ledger import HEAD, Ledger
from memctl.store.tables import indexes
from memctl.store.tables.durability import manifest_version
from memctl.store.tables.engine import Datasets
from memctl.store.tables.filter_expressions import col
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.service import WatchedBases, WatchService

FILES = {
    "lease.md": "# Lease\n\nThe lease with [[Harbour Street]] starts on 1 June 2026.\n\n"
    "The deposit is 4,350 euros, and Mara Lindqvist signed it.\n",
    "trips/oslo.md": "# Oslo\n\nWe decided to take the [[Night Train]] to Oslo on 3 March 2027. "
    "I prefer the window seat.\n",
    "plan.md": "# Plan\n\nWe decided to paint the hall. Remember that the paint must be green.\n",
    "long.txt": "\n\n".join(f"Paragraph {n} says that room {n} is blue. " * 25 for n in range(5)),
}

Texts = dict[str, str]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path) -> None:
    path.unlink()


def flip(path: Path, position: int) -> None:
    """Change a few bits of one byte, as a failing disk does."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0x15
    path.write_bytes(content)


MAX_FILES = 2
"""Of a table of which each file is damaged by itself, where time is short."""
HURTS = (cut, zero, empty, delete)
SUMMED = ("data", "_deletions", "_indices")
KINDS = ("data", "_deletions", "_versions", "_indices", "_transactions")
Hurt = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """A kind of file of one table, and what is done to it."""

    table: TableName
    kind: str
    hurt: Hurt

    def __str__(self) -> str:
        return f"{self.table}-{self.kind.strip('_')}-{self.hurt.__name__}"


def cases() -> Iterator[Case]:
    hurts = cycle(HURTS)
    for table in TABLES:
        for kind in KINDS:
            for hurt in HURTS if IS_LONG else (next(hurts),):
                yield Case(table, kind, hurt)
        next(hurts)  # so that not every table has the same done to the same kind


def home_in(folder: Path) -> Home:
    return Home(load_config({"home": str(folder)}, {}))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with every kind of file: deletions, indexes that know rows, earlier versions.

    What is known came in many commits, so that the rows of a document stand in several files.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexes, "MIN_UNINDEXED", 0)
        return fill(tmp_path_factory.mktemp("damage") / "home")


def fill(folder: Path) -> Path:
    home = home_in(folder)
    home.create("notes", consolidate_interval=0)
    first, second, *others = FILES
    take_in(home, first, second)
    with home.open("notes") as base:
        door = base.memories.add("The door code is 4711.")
        base.store.upkeep(force=True)
        base.documents.delete(
            base.ingest(text="Ada met [[Charles]].").outcomes[0].document_id or ""
        )
    for name in others:
        take_in(home, name)
    with home.open("notes") as base:
        base.consolidate()
        base.memories.edit(door.id, "The door code is 4712.")
        train = statement(base, "Night Train")
        base.memories.edit(train, "We decided to fly to Oslo.")
        base.memories.delete(statement(base, "paint the hall"))
        with base.store.write() as transaction:
            for table in ("documents", "entities", "relations"):
                rows = transaction.snapshot().scan(table)
                transaction.upsert(table, rows.slice(0, 1))
    return folder


def take_in(home: Home, *names: str) -> None:
    for name in names:
        path = home.layout("notes").inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(FILES[name])
    options = WatchOptions(settle_seconds=SETTLE, rescan_seconds=0.1, poll=True, once=True)
    WatchService(WatchedBases(home), options, lambda _: None).run()


def statement(base: KnowledgeBase, words: str) -> str:
    """The id of what was distilled with these words."""
    rows = base.store.snapshot().scan("memories", col("level") == "memory", ["id", "text"])
    return next(row["id"] for row in rows.to_pylist() if words in row["text"])


@pytest.fixture(scope="module")
def without_history(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same home with the versions that count alone, so that no other has a row."""
    folder = Path(shutil.copytree(filled, tmp_path_factory.mktemp("bare") / "home"))
    for path in (folder / "kb/notes/lance").glob("*.lance"):
        lance.dataset(str(path)).cleanup_old_versions(timedelta(0), delete_unverified=True)
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Home:
    return home_in(Path(shutil.copytree(filled, tmp_path / "home")))


def texts(home: Home) -> tuple[Texts, Texts]:
    """Documents that have a file and what was made of them, by id."""
    with home.open("notes") as base:
        snapshot = base.store.snapshot()
        rows = snapshot.scan("documents", None, ["id", "text"]).to_pylist()
        documents = {row["id"]: row["text"] for row in rows}
        rows = snapshot.scan("memories", None, ["id", "document_id", "text"]).to_pylist()
    return documents, {r["id"]: r["text"] for r in rows if r["document_id"] in documents}


def damage(home: Home) -> list[str]:
    found = Doctor(home).examine("notes", deep=True)
    return [f"{each.subject}: {each.message}" for each in found if each.verdict == "damaged"]


def files_of(
    home: Home, table: TableName, kind: str, name: str = HEAD
) -> tuple[list[Path], list[Path]]:
    """The files of a kind that the version that counts needs, or a snapshot, and the others."""
    folder = home.layout("notes").folder / "lance" / f"{table}.lance"
    with home.open("notes") as base:
        head = base.store.ledger.head(name)[table]
    dataset = lance.dataset(str(folder), version=head)
    needed = {file.path for part in dataset.get_fragments() for file in part.data_files()}
    needed |= {Path(p.deletion_file()).name for p in dataset.get_fragments() if p.deletion_file()}
    indexes = {str(part.uuid) for item in dataset.describe_indices() for part in item.segments}
    there = sorted(path for path in (folder / kind).rglob("*") if path.is_file())

    def counts(path: Path) -> bool:
        if path.suffix == ".manifest":
            return manifest_version(path) == head
        return path.name in needed or path.parent.name in indexes

    return [path for path in there if counts(path)], [path for path in there if not counts(path)]


def check_that_repair_brings_back(home: Home, before: tuple[Texts, Texts]) -> None:
    """Repair it, use it, and compare: what was edited by hand may be lost, and is named then."""
    lost = {row.id for step in Doctor(home).repair("notes") for row in step.lost}
    check_that_it_works(home)
    assert damage(home) == []
    documents, memories = texts(home)
    assert before[0].items() <= documents.items()
    assert before[1].keys() - memories.keys() <= lost
    assert memories.items() <= before[1].items()
    assert not lost & memories.keys()


def check_that_it_works(home: Home) -> None:
    with home.open("notes") as base:
        base.memories.add("The spare key hangs behind the boiler.")
        base.store.upkeep(force=True)
        assert "spare key" in base.query("Where is the spare key?").hits[0].text


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_damaged_file_is_found_and_what_stood_in_it_comes_back(
    home: Home, filled: Path, case: Case
) -> None:
    folder = home.layout("notes").folder
    before = texts(home)
    needed, others = files_of(home, case.table, case.kind)
    is_whole = (case.table, case.kind) == ("memories", "_deletions")
    assert needed or is_whole or (others and case.kind == "_transactions")
    most = 3 if (case.table, case.kind) == ("memories", "data") else 1
    files = [*needed, *others][: None if IS_LONG else most]
    for number, path in enumerate(files):
        if number:
            shutil.rmtree(folder)
            shutil.copytree(filled / "kb/notes", folder)
        case.hurt(path)
        assert damage(home) or path in others, path
        check_that_repair_brings_back(home, before)
        assert texts(home)[0] == before[0], path


@pytest.mark.parametrize("hurt", HURTS if IS_LONG else [delete])
@pytest.mark.parametrize("table", ["documents", "memories"])
def test_what_no_other_version_has_is_read_again_or_named_as_lost(
    without_history: Path, tmp_path: Path, table: TableName, hurt: Hurt
) -> None:
    whole = home_in(without_history)
    needed, _ = files_of(whole, table, "data")
    before = everything(whole)
    losses = 0
    # Names are by chance; what is stated and edited is written last.
    needed.sort(key=lambda path: path.stat().st_mtime_ns)
    for number, path in enumerate(needed if IS_LONG else needed[-MAX_FILES:]):
        home = home_in(Path(shutil.copytree(without_history, tmp_path / str(number))))
        hurt(home.config.home / path.relative_to(without_history))
        would = [step for step in Doctor(home).repair("notes", dry_run=True) if step.lost_rows]
        steps = [step for step in Doctor(home).repair("notes") if step.lost_rows]
        lost = {row.id for step in steps for row in step.lost}
        after = everything(home)
        assert before.keys() - after.keys() == lost
        ended = {id_: None if later in lost else later for id_, later in before.items()}
        assert after.items() <= ended.items()  # and what was deleted by hand stays so
        assert {row.id for step in would for row in step.lost} == lost
        assert sum(step.lost_rows for step in steps) == len(lost)
        assert damage(home) == []
        losses += len(lost)
    assert bool(losses) is (table == "memories")  # what was stated or edited stands nowhere else


def test_the_version_before_an_edit_is_named_where_no_index_knows_it_yet(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    home.create("notes", consolidate_interval=0)
    with home.open("notes") as base:
        door = base.memories.add("The door code is 4711.")
        base.store.upkeep(force=True)
        newer = base.memories.edit(door.id, "The door code is 4712.")
    tables = home.layout("notes").folder / "lance"
    for path in tables.glob("*.lance"):
        lance.dataset(str(path)).cleanup_old_versions(timedelta(0), delete_unverified=True)
    dataset = lance.dataset(str(tables / "memories.lance"))
    for part in dataset.get_fragments():
        if door.id in part.to_table(["id"])["id"].to_pylist():
            for file in part.data_files():
                (tables / "memories.lance/data" / file.path).unlink()
    steps = list(Doctor(home).repair("notes"))
    assert [row.id for step in steps for row in step.lost] == [door.id]
    assert list(everything(home)) == [newer.id]
    assert damage(home) == []
    assert list(Doctor(home).repair("notes")) == []


@pytest.mark.parametrize("table", TABLES)
def test_a_byte_that_has_changed_anywhere_is_found(
    home: Home, table: TableName, dice: random.Random
) -> None:
    with home.open("notes") as base:
        base.snapshots.create("one")
        base.documents.delete(next(iter(texts(home)[0])))
        base.store.upkeep(force=True)
    needed, others = (
        {path for kind in SUMMED for path in files_of(home, table, kind, name)[0]}
        for name in (HEAD, "one")
    )
    assert needed
    assert others - needed, "what the snapshot alone has"
    found = sorted(needed | others)
    for path in found if IS_LONG else dice.sample(found, min(MAX_FILES, len(found))):
        whole = path.read_bytes()
        size = len(whole)
        for position in range(size) if IS_LONG and size < 500 else [dice.randrange(size)]:
            flip(path, position)
            damaged_files = damage(home)
            assert any((table if path in needed else "one") in each for each in damaged_files), path
            path.write_bytes(whole)
    assert damage(home) == []


@pytest.mark.parametrize("table", TABLES)
def test_of_a_file_that_has_changed_nothing_is_lost_and_what_may_be_wrong_is_named(
    without_history: Path, tmp_path: Path, table: TableName
) -> None:
    before, rows = texts(home_in(without_history)), everything(home_in(without_history))
    needed, _ = files_of(home_in(without_history), table, "data")
    for number, path in enumerate(needed if IS_LONG else needed[:MAX_FILES]):
        home = home_in(Path(shutil.copytree(without_history, tmp_path / str(number))))
        here = home.config.home / path.relative_to(without_history)
        flip(here, here.stat().st_size // 3)
        would = [step.lost for step in Doctor(home).repair("notes", dry_run=True)]
        steps = list(Doctor(home).repair("notes"))
        assert steps
        assert [step.lost for step in steps if step.lost] == [each for each in would if each]
        doubtful = {row.id for step in steps for row in step.lost}
        assert damage(home) == []
        assert list(Doctor(home).repair("notes")) == []
        after = texts(home)
        assert everything(home) == rows
        assert after[0] == before[0]
        changed = dict(after[1].items() ^ before[1].items())
        assert changed.keys() <= doubtful, "what has a file is read again from it"


def test_a_damaged_json_value_does_not_block_repair(home: Home, tmp_path: Path) -> None:
    with home.open("notes") as base:
        given = tmp_path / "given.txt"  # which is in no inbox
        given.write_text("Ida Berg paints the quay.")
        id_ = base.ingest([given]).outcomes[0].document_id or ""
        signals = base.documents.get(id_).document.signals
    for path in files_of(home, "documents", "data")[0]:
        for place in (found.start() for found in re.finditer(b'{"', path.read_bytes())):
            flip(path, place + 1)
    steps = list(Doctor(home).repair("notes"))
    assert id_ in {row.id for step in steps for row in step.lost}
    assert damage(home) == []
    with home.open("notes") as base:
        assert signals
        assert base.documents.get(id_).document.signals == {}
        assert base.documents.get(id_).document.text == "Ida Berg paints the quay."


def flip_a_word(home: Home, table: TableName, word: bytes) -> None:
    """Change a word where it stands, so that all can be read as before."""
    files = files_of(home, table, "data")[0]
    path, content = next((p, c) for p in files if word in (c := p.read_bytes()))
    flip(path, content.index(word))


def test_upkeep_does_not_hide_bytes_that_have_changed(home: Home) -> None:
    with home.open("notes") as base:
        base.memories.add("The quay has seven cranes.")
        flip_a_word(home, "memories", b"seven cranes")
        base.store.upkeep(force=True)
    assert any("bytes of it have changed" in each for each in damage(home))


def test_upkeep_takes_the_sums_of_files_from_before_there_were_any(home: Home) -> None:
    ledger = home.layout("notes").folder / "ledger.sqlite"
    with home.open("notes") as base:
        base.memories.add("The quay has seven cranes.")
        base.store.upkeep(force=True)
    with closing(Ledger.open(ledger)) as opened, opened.transaction() as change:
        change.execute("DELETE FROM file_sums")
    shutil.copytree(home.config.home, unkept := home.config.home.with_name("unkept"))
    with home.open("notes") as base:
        base.store.upkeep(force=True)
    for each in (home, home_in(unkept)):
        flip_a_word(each, "memories", b"seven cranes")
    assert any("bytes of it have changed" in each for each in damage(home))
    assert not any("bytes of it have changed" in each for each in damage(home_in(unkept)))


def everything(home: Home) -> dict[str, str | None]:
    """The ids of all documents and memories, each with what took its place."""
    with home.open("notes") as base:
        snapshot = base.store.snapshot()
        columns = ["id", "superseded_by"]
        found = [snapshot.scan(table, None, columns) for table in ("documents", "memories")]
    return {row["id"]: row["superseded_by"] for rows in found for row in rows.to_pylist()}


def test_a_manifest_that_is_cut_anywhere_is_damage_and_no_crash(home: Home) -> None:
    needed, _ = files_of(home, "memories", "_versions")
    (path,) = needed
    version, whole = manifest_version(path), path.read_bytes()
    datasets = Datasets.of(home.layout("notes").folder)
    for size in range(0, len(whole), 1 if IS_LONG else 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DamagedError):
            datasets.fresh("memories", version)


@pytest.mark.parametrize("hurt", HURTS if IS_LONG else [cut, delete])
@pytest.mark.parametrize("name", ["ledger.sqlite", "kb.toml"])
def test_a_damaged_ledger_or_settings_file_is_found_and_made_anew(
    home: Home, name: str, hurt: Hurt
) -> None:
    before, settings = texts(home), home.settings("notes")
    for path in home.layout("notes").folder.glob(f"{name}*"):
        hurt(path)
    assert damage(home)
    check_that_repair_brings_back(home, before)
    assert home.settings("notes") == settings


@pytest.mark.parametrize("table", TABLES)
def test_a_table_all_of_whose_files_are_gone_comes_back_where_files_have_what_it_had(
    home: Home, table: TableName
) -> None:
    before = texts(home)
    with home.open("notes") as base:
        edited = base.store.snapshot().scan("memories", col("version") > 1, ["id"])
    shutil.rmtree(home.layout("notes").folder / "lance" / f"{table}.lance")
    assert damage(home)
    steps = list(Doctor(home).repair("notes"))
    assert any(step.lost_rows for step in steps) is (table == "memories")
    for id_ in edited["id"].to_pylist() if table == "memories" else ():
        before[1].pop(id_, None)
    check_that_repair_brings_back(home, before)
