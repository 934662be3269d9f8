"""The files of the inboxes that have what is to be forgotten, wherever they have got to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.files import clear_temporaries, open_regular
from memctl.forget.leftover_scan import file_contains
from memctl.ingest.discovery.sources import by_owner, path_of, printable
from memctl.ingest.source_reading import content_digest
from memctl.kb_settings import REASON_SUFFIX, reason_path
from memctl.readers.isolation import clear_scratch
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.forget.search_patterns import SearchPattern
    from memctl.kb_settings import Layout
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.ledger.work_repositories import FileEntry


class ErasedSources(Struct, frozen=True):
    """The sources of documents that go, or lose some of their text."""

    hashes: frozenset[str] = frozenset()
    sizes: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    """What they go by."""
    ids: frozenset[str] = frozenset()
    search_patterns: tuple[SearchPattern, ...] = ()
    """What is looked for; files that are called by a name, or failed with it, go too."""
    files: frozenset[str] = frozenset()
    """Files that go whatever they have, those of the knowledge base from its folder on."""
    by_name: bool = True
    """Whether files go by what they are called; not where they may be another user's."""

    def __or__(self, other: ErasedSources) -> ErasedSources:
        """Return both, with what this one looks for."""
        return ErasedSources(
            self.hashes | other.hashes,
            self.sizes | other.sizes,
            self.names | other.names,
            self.ids | other.ids,
            self.search_patterns,
            self.files | other.files,
            self.by_name and other.by_name,
        )

    @property
    def called(self) -> tuple[SearchPattern, ...]:
        """The names among what is looked for."""
        return tuple(each for each in self.search_patterns if each.is_name and self.by_name)

    def calls(self, path: str) -> bool:
        """Return whether a path has one of the names."""
        return any(name.is_in(path) for name in self.called)


class SourceCopies:
    """The files of one knowledge base.

    Args:
        layout: Where it stands.
        ledger: Knows which file is which document's.
    """

    def __init__(self, layout: Layout, ledger: Ledger) -> None:
        self._layout = layout
        self._ledger = ledger

    def of(self, sources: ErasedSources) -> list[Path]:
        """Return the files in processed/ and failed/ that have what goes, with what is beside them.

        That are those with the bytes of the documents, and those that are called by a name, or
        have it and are no document's.  One that another document was made from is not among them,
        unless another file of that document stays.
        """
        others = self._files_of_others(sources)
        found: list[Path] = []
        for folder in self._folders:
            for path in sorted(folder.rglob("*")):
                if self._is_removable(path, sources, others):
                    beside = [each for each in path.parent.iterdir() if each.is_file()]
                    reason = reason_path(path)
                    found += [path, *by_owner(beside).get(path, ())]
                    found += [reason] if reason in beside else []
        return list(dict.fromkeys(found))

    def remove(self, sources: ErasedSources) -> Iterator[Path]:
        """Remove those files, and yield each; folders that only they were in go too.

        What killed processes have left half written goes with them, whatever it is of.
        """
        clear_scratch()
        clear_temporaries(self._layout.half_written())
        table_storage(self._layout.folder).clear_temporaries()
        for path in self.of(sources):
            self._remove(str(path))  # first, or it would be unknown what is left
            self._ledger.provenance.remove_failed(printable(self._shown_path(path)))
            path.unlink(missing_ok=True)
            self._remove_empty(path.parent)
            yield path
        self._drop_missing_files(sources)
        for folder in sorted(self._layout.inbox.rglob("*"), reverse=True):
            if folder.is_dir() and self._calls(folder, sources):
                _remove_if_empty(folder)

    def _drop_missing_files(self, sources: ErasedSources) -> None:
        """Strike from the ledger files that are called by a name and are not there any more."""
        for entry in self._ledger.files.entries():
            path = Path(entry.path)
            is_ours = not set(self._folders).isdisjoint(path.parents)
            if is_ours and not path.exists() and self._calls(path, sources):
                self._remove(entry.path)

    def _remove(self, path: str) -> None:
        """Strike a file from the ledger, and from what it has of it for snapshots."""
        self._ledger.files.remove(path)
        self._ledger.snapshots.remove_file(path)

    def older(self, before: datetime) -> frozenset[str]:
        """Return files that are of before an instant, or came before it, and are no document's."""
        entries = {Path(e.path): e for e in self._ledger.files.entries(["done", "failed"])}
        failed = self._layout.failed.rglob("*")
        return frozenset(
            self._shown_path(path)
            for path in dict.fromkeys((*entries, *failed))
            if path.is_file() and _is_older(path, entries.get(path), before)
        )

    def content_of(self, places: Iterable[str]) -> dict[str, int]:
        """Return the hashes and sizes of files that no document needs, of those at some places."""
        paths = (self._layout.current_place(path_of(place)) for place in places)
        found: dict[str, int] = {}
        for path in paths:
            entry = self._ledger.files.find(str(path))
            is_needed = entry is not None and entry.document_id is not None
            if not is_needed and path.is_file() and not path.is_symlink():
                found[_hash(path)] = path.stat().st_size
        return found

    def files_of_user(self, sources: ErasedSources) -> list[str]:
        """Return files that the knowledge base does not own: given as paths, or kept in inboxes."""
        ours = {*self._folders, self._layout.processing}
        entries = self._ledger.files.entries(["done", "failed"])
        kept = [
            Path(entry.path)
            for entry in entries
            if entry.document_id in sources.ids
            or entry.path in sources.files
            or self._calls(Path(entry.path), sources)
        ]
        given = [Path(name) for name in sources.names if Path(name).is_absolute()]
        return sorted(
            {
                printable(path)
                for path in (*kept, *given)
                if path.is_file() and ours.isdisjoint(path.parents)
            }
        )

    # --- inside ---

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self._layout.processed, self._layout.failed

    def _files_of_others(self, sources: ErasedSources) -> set[Path]:
        """Return the files that documents need which stay as they are."""
        entries = self._ledger.files.entries(["done"])
        needed = {
            Path(e.path): e.document_id
            for e in entries
            if e.document_id and e.document_id not in sources.ids
        }
        uncalled = Counter(
            id_ for path, id_ in needed.items() if path.is_file() and not self._calls(path, sources)
        )
        return {
            path
            for path, id_ in needed.items()
            if not (uncalled[id_] and self._calls(path, sources))
        }

    def _shown_path(self, path: Path) -> str:
        """Return a path from the knowledge base's folder on, and whole where it is not in there."""
        inside = self._layout.folder in path.parents
        return str(path.relative_to(self._layout.folder) if inside else path)

    def _calls(self, path: Path, sources: ErasedSources) -> bool:
        """Return whether the path below the knowledge base's folder has one of the names."""
        return sources.calls(self._shown_path(path))

    def _is_removable(self, path: Path, sources: ErasedSources, others: set[Path]) -> bool:
        if path in others or path.is_symlink() or not path.is_file():
            return False
        if self._shown_path(path) in sources.files or _is_copy(path, sources):
            return True
        if not sources.called or self._is_reason(path):
            return False
        return self._calls(path, sources) or self._has_name(path, sources)

    def _is_reason(self, path: Path) -> bool:
        """Return whether it tells why another file failed, and goes with that."""
        if not path.name.endswith(REASON_SUFFIX):
            return False
        return any(reason_path(each) == path for each in path.parent.iterdir() if each != path)

    def _has_name(self, path: Path, sources: ErasedSources) -> bool:
        both = (path, reason_path(path))
        return any(file_contains(each, sources.called, self._layout.folder) for each in both)

    def _remove_empty(self, folder: Path) -> None:
        while folder not in self._folders and _remove_if_empty(folder):
            folder = folder.parent


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:  # there is something in it, or it is not ours to remove
        return False
    return True


def _is_older(path: Path, entry: FileEntry | None, before: datetime) -> bool:
    if entry is None:
        return path.stat().st_mtime < before.timestamp()
    own = min(entry.mtime_ns / 1e9, path.stat().st_mtime)
    return entry.document_id is None and (entry.first_seen < before or own < before.timestamp())


def _is_copy(path: Path, sources: ErasedSources) -> bool:
    if path.stat().st_size not in sources.sizes:
        return False
    return _hash(path) in sources.hashes


def _hash(path: Path) -> str:
    with open_regular(path) as file:
        return content_digest(path, file)
