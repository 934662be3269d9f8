"""Where tables lie is a URI: a store does all it does on another implementation of that seam."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memctl.schema.table_names import TABLES, TableName
from memctl.store.store import Store
from memctl.store.store_repair import repair
from memctl.store.tables import engine
from memctl.store.tables.storage import LocalStorage, LocalTableFiles, TableStorage, table_storage


class UrlFiles(LocalTableFiles, frozen=True):
    """A table that is known by a URL; nothing can be made of that as of a path."""

    @property
    def uri(self) -> str:
        return self.folder.as_uri()

    def file_uri(self, name: str) -> str:
        return (self.folder / name).as_uri()


@dataclass(frozen=True)
class UrlStorage:
    """Tables below a URL, and in no folder that anybody is told of."""

    below: LocalStorage
    local_folder: None = None

    @property
    def uri(self) -> str:
        return self.below.folder.as_uri()

    def files(self, table: TableName) -> UrlFiles:
        local = self.below.files(table)
        return UrlFiles(local.folder, local.aside)

    def sync(self) -> None:
        self.below.sync()

    def size(self, table: TableName) -> int:
        return self.below.size(table)

    def holds(self, table: TableName, path: Path) -> bool:
        return False

    def clear_temporaries(self) -> None:
        self.below.clear_temporaries()


@pytest.fixture
def url_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def storage_at_url(folder: Path) -> TableStorage:
        local = table_storage(folder)
        assert isinstance(local, LocalStorage)
        return UrlStorage(local)

    monkeypatch.setattr(engine, "table_storage", storage_at_url)
    return tmp_path / "kb"


@pytest.fixture
def at_url(url_folder: Path) -> Iterator[Store]:
    with Store.create(url_folder, 8) as store:
        yield store


def test_rows_are_written_changed_and_tidied_up_at_a_url(at_url: Store, rows_of) -> None:
    for first in range(0, 40, 10):
        with at_url.write() as transaction:
            transaction.append("memories", rows_of(range(first, first + 10)))
    with at_url.write() as transaction:
        transaction.upsert("memories", rows_of([3, 41]))
    done = at_url.upkeep(force=True)
    assert "memories" in done.compacted
    assert at_url.snapshot().count("memories") == 41
    assert at_url.lancedb().open_table("memories").count_rows() == 41


def test_what_is_damaged_at_a_url_is_repaired(url_folder: Path, at_url: Store, rows_of) -> None:
    with at_url.write() as transaction:
        transaction.append("memories", rows_of(range(10)))
    at_url.close()
    for manifest in (url_folder / "lance/memories.lance/_versions").glob("*.manifest"):
        manifest.write_bytes(manifest.read_bytes()[:40])
    done = repair(url_folder, lambda: datetime.now(UTC))
    assert [step.subject for step in done.steps]
    with Store.open(url_folder) as store:
        assert store.snapshot().count("memories") == 10


def test_files_of_a_table_are_listed_by_names_below_it(store: Store) -> None:
    storage = table_storage(store.folder)
    for table in TABLES:
        files = storage.files(table)
        names = files.names()
        assert {name.partition("/")[0] for name in names} >= {"_versions", "_transactions"}
        assert all(files.exists(name) for name in names)
        assert sum(map(files.size, names)) <= storage.size(table)
        assert not files.exists("data/none.lance")
        assert files.names("none") == set()
