"""Where the tables lie: the one place that names their files and reaches them.

A storage is a URI below which each table has a URI of its own.  The files of a table are named
below it, with slashes: ``data/1.lance``.  The engine gets URIs; everything else goes through the
operations here.  A folder on a local disk is one implementation; another place for tables is
another class, and an entry in :func:`table_storage`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import Protocol

from msgspec import Struct

from memctl.files import clear_temporaries, open_regular, save_file, sync_file, sync_folder
from memctl.schema.table_names import TABLES, TableName

TABLES_FOLDER = "lance"
"""The folder of the tables in that of a knowledge base on a local disk."""
DATA, DELETIONS, INDEXES = "data", "_deletions", "_indices"
"""Folders of a table: its rows, which of them are deleted, its indexes."""
VERSIONS, TAGS = "_versions", "_refs/tags"
"""Folders of a table: what each version is made of, and names of versions."""
_DAMAGED_FOLDER = "damaged"
"""The folder beside the tables that files are moved to which cannot be read."""


class TableFiles(Protocol):
    """The files of one table, each named below the table."""

    @property
    def uri(self) -> str:
        """Where the table is, as the engine opens it."""
        ...

    def file_uri(self, name: str) -> str:
        """Return where a file is, as the engine reads it."""
        ...

    def exists(self, name: str = "") -> bool:
        """Return whether a file is there; without a name, whether the table is."""
        ...

    def is_blocked(self) -> bool:
        """Return whether something else stands where the table should be."""
        ...

    def names(self, folder: str = "") -> set[str]:
        """Return the names of all files of a folder, or of the table, and of folders in it."""
        ...

    def size(self, name: str) -> int:
        """Return the length of a file in bytes.

        Raises:
            FileNotFoundError: It is not there.
        """
        ...

    def changed_at(self, name: str) -> int:
        """Return when a file was written, in nanoseconds since 1970."""
        ...

    def open(self, name: str) -> BufferedIOBase:
        """Open a file for reading.

        Raises:
            FileNotFoundError: It is not there.
            OSError: It cannot be read.
        """
        ...

    def save(self, name: str, content: bytes) -> None:
        """Write a file durably, in one step, in place of one of that name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""
        ...

    def sync(self, names: Collection[str]) -> None:
        """Make files durable, and that they are there; some may be gone by now."""
        ...

    def set_aside(self, name: str = "") -> None:
        """Keep a file that cannot be read where the engine does not find it; see ``is_blocked``."""
        ...


class TableStorage(Protocol):
    """The place of all tables of one knowledge base."""

    @property
    def uri(self) -> str:
        """Where the tables are, as the engine opens them."""
        ...

    @property
    def local_folder(self) -> Path | None:
        """The folder that they are in, where that is one of this machine."""
        ...

    def files(self, table: TableName) -> TableFiles:
        """Return the files of a table, which may not be there yet."""
        ...

    def sync(self) -> None:
        """Make durable that tables are there."""
        ...

    def size(self, table: TableName) -> int:
        """Return how many bytes the files of a table take."""
        ...

    def holds(self, table: TableName, path: Path) -> bool:
        """Return whether a path of this machine is one of a table's files."""
        ...

    def clear_temporaries(self) -> None:
        """Remove what processes that were killed have left half written."""
        ...


def read_whole(files: TableFiles, name: str) -> bytes:
    """Return what is in a file.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be read.
    """
    with files.open(name) as file:
        return file.read()


def table_storage(folder: Path) -> TableStorage:
    """Return the place of the tables of a knowledge base.

    Args:
        folder: The knowledge base's.
    """
    return LocalStorage(folder / TABLES_FOLDER)


class LocalStorage(Struct, frozen=True):
    """Tables in a folder of a local disk.

    The URI is the plain path: the engine takes that as it is, with any character in it.
    """

    folder: Path

    @property
    def uri(self) -> str:
        """Where the tables are, as the engine opens them."""
        return str(self.folder)

    @property
    def local_folder(self) -> Path:
        """The folder that they are in."""
        return self.folder

    def files(self, table: TableName) -> LocalTableFiles:
        """Return the files of a table, which may not be there yet."""
        return LocalTableFiles(self.folder / f"{table}.lance", self.folder.parent / _DAMAGED_FOLDER)

    def sync(self) -> None:
        """Make durable that tables are there."""
        sync_folder(self.folder)

    def size(self, table: TableName) -> int:
        """Return how many bytes the files of a table take."""
        found = self.files(table).folder.rglob("*")
        return sum(path.lstat().st_size for path in found if path.is_file())

    def holds(self, table: TableName, path: Path) -> bool:
        """Return whether a path of this machine is one of a table's files."""
        return self.files(table).folder in path.parents

    def clear_temporaries(self) -> None:
        """Remove what processes that were killed have left half written."""
        tables = (self.files(table).folder for table in TABLES)
        clear_temporaries(path for table in tables for path in (table / VERSIONS).glob(".*.tmp"))


class LocalTableFiles(Struct, frozen=True):
    """The files of one table, in a folder of a local disk."""

    folder: Path
    aside: Path
    """The folder that unreadable files are moved to."""

    @property
    def uri(self) -> str:
        """Where the table is, as the engine opens it."""
        return str(self.folder)

    def file_uri(self, name: str) -> str:
        """Return where a file is, as the engine reads it."""
        return str(self.folder / name)

    def exists(self, name: str = "") -> bool:
        """Return whether a file is there; without a name, whether the table is."""
        return (self.folder / name).is_file() if name else self.folder.is_dir()

    def is_blocked(self) -> bool:
        """Return whether a file stands where the table should be."""
        return self.folder.is_file()

    def names(self, folder: str = "") -> set[str]:
        """Return the names of all files of a folder, or of the table, and of folders in it."""
        own = len(str(self.folder)) + 1
        found = os.walk(self.folder / folder)
        paths = {f"{root}{os.sep}{name}"[own:] for root, _, names in found for name in names}
        return paths if os.sep == "/" else {path.replace(os.sep, "/") for path in paths}

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        return (self.folder / name).stat().st_size

    def changed_at(self, name: str) -> int:
        """Return when a file was written, in nanoseconds since 1970."""
        return (self.folder / name).stat().st_mtime_ns

    def open(self, name: str) -> BufferedIOBase:
        """Open a file for reading."""
        return open_regular(self.folder / name)

    def save(self, name: str, content: bytes) -> None:
        """Write a file durably, in one step, in place of one of that name."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        save_file(path, content)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""
        path = self.folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def sync(self, names: Collection[str]) -> None:
        """Make files durable, and that they are there; some may be gone by now."""
        for name in names:
            sync_file(self.folder / name)  # a temporary file of the engine may be gone by now
        for folder in self._folders_of(names):
            sync_folder(folder)

    def _folders_of(self, names: Iterable[str]) -> Iterator[Path]:
        """Yield the folders of files and those above them, up to that of the table."""
        parents = {parent for name in names for parent in PurePosixPath(name).parents}
        return (path for parent in parents if (path := self.folder / parent).is_dir())

    def set_aside(self, name: str = "") -> None:
        """Keep a file that cannot be read where the engine does not find it."""
        path = self.folder / name
        self.aside.mkdir(mode=0o700, exist_ok=True)
        path.replace(self.aside / f"{self.folder.stem}-{path.name}")
