"""A file is claimed by renaming it into ``processing/``, and leaves it when its result is known.

Each claim has a folder of its own there, named after the path that the file came from, so that
names stay as they are and sidecars stay beside their recording.  The ledger is written before
each step; ids are made from content, so a step that is done twice changes nothing.

A file's row goes from ``claimed`` to ``indexed`` in the commit that makes its document known.
Where the file goes then is written down before it moves, and ``done`` when a power cut cannot undo
the move any more.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.files import (
    clear_temporaries,
    make_folder,
    modified_ns,
    open_regular,
    save_file,
    sync_file,
    sync_folder,
)
from memctl.ingest.discovery.inbox_scan import InboxFile, folder_tags
from memctl.ingest.discovery.skip_rules import is_hidden
from memctl.ingest.discovery.sources import printable, sidecars_among
from memctl.kb_settings import MAX_FILE_NAME_BYTES, REASON_SUFFIX, Layout, reason_path
from memctl.literals import After
from memctl.records import FileOutcome
from memctl.store.ledger.work_repositories import FileEntry
from memctl.store.tables.storage import table_storage

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

STOPPED = "the watch was stopped before it was done"
CUT_OFF = "the watch was cut off before it was done"
"""Why a file was not dealt with, though nothing was wrong with it."""
Clock = Callable[[], datetime]


class ClaimedFile(Struct, frozen=True):
    """A file in ``processing/``, with the path in the inbox that it came from."""

    path: Path
    original: Path
    inbox: Path
    size: int
    mtime_ns: int
    sidecars: tuple[Path, ...] = ()
    seen_at: datetime | None = None
    claimed_at: datetime | None = None
    document_id: str | None = None
    """The document that it has become, of one that was left behind after its commit."""
    taken_as: tuple[int, int] | None = None
    """Its size and when it was changed by the time it was taken; None of one left behind."""

    @property
    def has_changed(self) -> bool:
        """Whether it has been written to since it was taken."""
        return self.taken_as is not None and _file_signature(self.path) not in (self.taken_as, None)

    @property
    def relative(self) -> Path:
        """The path it had within the inbox."""
        return self.original.relative_to(self.inbox)

    @property
    def source(self) -> str:
        """The name it is remembered by."""
        return printable(self.relative.as_posix())

    @property
    def tags(self) -> tuple[str, ...]:
        """The subfolders that it lay in."""
        return folder_tags(self.relative)


class ClaimResult(Struct, frozen=True):
    """What became of a claimed file, and where it is to go when all is well."""

    claimed: ClaimedFile
    outcome: FileOutcome
    after: After

    @property
    def is_deleted(self) -> bool:
        """Whether it goes for good."""
        return self.after == "delete" and self.outcome.outcome != "failed"


class _Move(Struct, frozen=True):
    """A result with the places of the file and of its sidecars; none where it is deleted."""

    result: ClaimResult
    target: Path | None = None
    sidecars: tuple[Path, ...] = ()


class Claims:
    """The files of one knowledge base on their way through ``processing/``."""

    def __init__(self, layout: Layout, ledger: Ledger, clock: Clock) -> None:
        self._layout = layout
        self._ledger = ledger
        self._clock = clock

    def claim(
        self, files: Sequence[InboxFile], refused: Callable[[InboxFile, OSError], None]
    ) -> list[ClaimedFile]:
        """Take files out of their inboxes, except those that are gone.

        Args:
            files: Which.
            refused: Called with those that cannot be moved and are still in their inboxes; when it
                raises, the others stay there too.
        """
        with self._ledger.transaction():
            for file in files:
                self._note(file)
        planned = [self._plan(file) for file in files]
        make_folder(self._layout.processing)
        for claimed in planned:
            claimed.path.parent.mkdir()
        sync_folder(self._layout.processing)  # a copy is durable only if the folder it is in is
        return [
            replace(claimed, taken_as=_file_signature(claimed.path))
            for file, claimed in zip(files, planned, strict=True)
            if self._take(file, claimed, refused)
        ]

    def note_settled(self, outcomes: Iterable[tuple[ClaimedFile, FileOutcome]]) -> None:
        """Record that files have become documents, within the commit that makes them known."""
        now = self._clock()
        for claimed, outcome in outcomes:
            if outcome.outcome != "failed":
                self._ledger.files.move(
                    str(claimed.original), "indexed", now, document_id=outcome.document_id
                )

    def leftovers(self) -> list[ClaimedFile]:
        """Files that a daemon which was killed, or a failure of the store, left in processing."""
        entries = {claim_name(entry.path): entry for entry in self._underway()}
        found: list[ClaimedFile] = []
        met: set[str] = set()
        for folder in _folders(self._layout.processing):
            token = folder.name.partition("-")[0]
            claimed = self._leftover(folder, entries.get(token) if token not in met else None)
            if claimed is not None:
                found.append(claimed)
                met.add(token)
        self._check_moved()
        for token in entries.keys() - met:  # claimed in the ledger alone, or moved on already
            self._ledger.files.remove(entries[token].path)
        return [*found, *self._unclaimed_files()]

    def sweep(self) -> None:
        """Remove what processes that were killed have left half written; nothing else."""
        clear_temporaries(self._layout.half_written())
        table_storage(self._layout.folder).clear_temporaries()

    def note_try(self, reason: str, claimed: Iterable[ClaimedFile] | None = None) -> None:
        """Record why files were not dealt with, which will be tried again.

        Args:
            reason: Why.
            claimed: Which; by default all that are in processing.
        """
        if claimed is None:
            paths = [Path(entry.path) for entry in self._ledger.files.entries(["claimed"])]
        else:
            paths = [each.original for each in claimed]
        self._ledger.provenance.note_attempt(map(printable, paths), reason, self._clock())

    def note_cut_off(self) -> None:
        """Record which files in processing were left by a process that ended without a word."""
        receipts = self._ledger.provenance
        silent = [
            path
            for entry in self._ledger.files.entries(["claimed"])
            if (path := printable(Path(entry.path)))
            and all(each.last_at < entry.updated_at for each in receipts.attempts(path))
        ]
        receipts.note_attempt(silent, CUT_OFF, self._clock())

    def put_back(self, claimed: ClaimedFile) -> None:
        """Return a file to the inbox that it came from, under another name if need be."""
        present = [path for path in (claimed.path, *claimed.sidecars) if os.path.lexists(path)]
        if present:
            first, *others = (Path(path.name) for path in present)
            relative = claimed.relative.parent / first
            places = free_place(claimed.inbox, relative, others)
            targets = [places[relative], *(places[other] for other in others)]
            make_folder(targets[0].parent)
            for path, target in reversed(list(zip(present, targets, strict=True))):
                move_file(path, target)
            sync_folder(targets[0].parent)
        self._ledger.files.remove(str(claimed.original))
        self._drop_folder(claimed)

    def send_on(
        self, results: Sequence[ClaimResult], moved: Callable[[ClaimResult, Path | None], None]
    ) -> None:
        """Move files to ``processed/`` or, with the reason beside it, ``failed/``; or delete them.

        A file that was removed meanwhile is moved nowhere.

        Args:
            results: Which, and what became of them.
            moved: Called with each and where it is now, once that is durable.

        Raises:
            OSError: One could not be moved; it is, as those after it are, still in processing.
        """
        gone = [result for result in results if not os.path.lexists(result.claimed.path)]
        for result in gone:
            self._complete_receipt(_Move(result))
            self.put_back(result.claimed)  # its sidecars, if they are still there
            moved(result, None)
        moves = self._moves(result for result in results if result not in gone)
        with self._ledger.transaction():
            for move in moves:
                if move.target is not None:
                    self._ledger.files.save(self._moved_entry(move.result, move.target))
                self._complete_receipt(move)
        done: list[_Move] = []
        try:
            for move in moves:
                self._carry_out(move)
                done.append(move)
        finally:
            self._confirm(done)
            for move in done:
                moved(move.result, move.target)

    # --- inside ---

    def _note(self, file: InboxFile) -> None:
        now = self._clock()
        self._ledger.files.save(
            FileEntry(
                path=str(file.path),
                inbox=str(file.inbox),
                size=file.size,
                mtime_ns=file.mtime_ns,
                state="claimed",
                first_seen=now,
                updated_at=now,
            )
        )

    def _plan(self, file: InboxFile) -> ClaimedFile:
        folder = self._free_folder(file.path)
        return ClaimedFile(
            folder / file.path.name,
            file.path,
            file.inbox,
            file.size,
            file.mtime_ns,
            tuple(folder / sidecar.name for sidecar in file.sidecars),
            file.seen_at,
            self._clock(),
        )

    def _take(
        self, file: InboxFile, claimed: ClaimedFile, refused: Callable[[InboxFile, OSError], None]
    ) -> bool:
        """Move a file into its folder in processing, if it lets itself be moved."""
        try:
            for sidecar, place in zip(file.sidecars, claimed.sidecars, strict=True):
                move_file(sidecar, place)
            move_file(file.path, claimed.path)
            if _is_folder(claimed.path):  # which has taken the place of the file since the scan
                raise FileNotFoundError(errno.ENOENT, "it is a folder by now", str(file.path))
        except OSError as error:
            self.put_back(claimed)
            if not isinstance(error, FileNotFoundError):
                refused(file, error)
            return False
        return True

    def _free_folder(self, original: Path) -> Path:
        token, number = claim_name(original), 1
        folder = self._layout.processing / token
        while folder.exists():
            number += 1
            folder = self._layout.processing / f"{token}-{number}"
        return folder

    def _underway(self) -> list[FileEntry]:
        """The ledger's files on their way, by the paths that they came from."""
        return [
            entry
            for entry in self._ledger.files.entries(["claimed", "indexed"])
            if not self._is_target(entry)
        ]

    def _is_target(self, entry: FileEntry) -> bool:
        """Return whether a row says where a file goes, not where it came from."""
        ends = (self._layout.processed, self._layout.failed)
        return not set(ends).isdisjoint(Path(entry.path).parents)

    def _leftover(self, folder: Path, entry: FileEntry | None) -> ClaimedFile | None:
        for path in folder.iterdir():
            if is_half_copy(path.name):  # the whole file is where it came from
                path.unlink()
        # What is no regular file either is read as one, which says so, and is no reason to stop.
        files = sorted(path for path in folder.iterdir() if not _is_folder(path))
        inbox = Path(entry.inbox) if entry else self._layout.inbox
        if not files:
            self._return_folders(folder, inbox)
            return None
        main = _main(files, Path(entry.path).name if entry else None)
        original = Path(entry.path) if entry else inbox / (main or files[0]).name
        status = (main or files[0]).lstat()
        claimed = ClaimedFile(
            main or folder / original.name,
            original,
            inbox,
            entry.size if entry else status.st_size,
            entry.mtime_ns if entry else modified_ns(status),
            tuple(path for path in files if path != main),
            claimed_at=entry.first_seen if entry else None,
            document_id=entry.document_id if entry and entry.state == "indexed" else None,
        )
        if main is None:  # killed between a sidecar and its recording
            self.put_back(claimed)
            return None
        return claimed

    def _return_folders(self, claim: Path, inbox: Path) -> None:
        """Return folders to the inbox, where the files in them are found, and drop the claim."""
        for path in sorted(claim.iterdir()):
            name = Path(path.name)
            move_file(path, free_place(inbox, name, [])[name])
        sync_folder(inbox)
        claim.rmdir()

    def _unclaimed_files(self) -> list[ClaimedFile]:
        """Return files that were put into processing by hand."""
        found: list[ClaimedFile] = []
        for path in _children(self._layout.processing):
            if path.is_file() and not path.is_symlink() and not is_hidden(path.name):
                status, inbox = path.stat(), self._layout.inbox
                original = inbox / path.name
                found.append(
                    ClaimedFile(path, original, inbox, status.st_size, modified_ns(status))
                )
        return found

    def _check_moved(self) -> None:
        """Correct what was written down just before files were moved out of processing."""
        for entry in self._ledger.files.entries(["indexed", "failed"]):
            if not self._is_target(entry):
                continue
            if not os.path.lexists(entry.path):
                self._ledger.files.remove(entry.path)
            elif entry.state == "indexed":
                self._ledger.files.move(entry.path, "done", self._clock())

    def _moves(self, results: Iterable[ClaimResult]) -> list[_Move]:
        """Choose a place for each that none of the others has."""
        used_paths: set[Path] = set()
        moves: list[_Move] = []
        for result in results:
            if result.is_deleted:
                moves.append(_Move(result))
                continue
            claimed, is_failure = result.claimed, result.outcome.outcome == "failed"
            folder = self._layout.failed if is_failure else self._layout.processed
            sidecars = [Path(path.name) for path in claimed.sidecars]
            places = free_place(
                folder, claimed.relative, sidecars, used_paths, with_reason=is_failure
            )
            target = places[claimed.relative]
            used_paths.update(places.values(), [reason_path(target)] if is_failure else [])
            moves.append(_Move(result, target, tuple(places[path] for path in sidecars)))
        return moves

    def _complete_receipt(self, move: _Move) -> None:
        claimed = move.result.claimed
        self._ledger.provenance.complete(
            printable(claimed.path),
            printable(claimed.original),
            printable(move.target) if move.target else "",
            seen_at=claimed.seen_at,
            claimed_at=claimed.claimed_at,
            now=self._clock(),
        )

    def _carry_out(self, move: _Move) -> None:
        claimed, outcome = move.result.claimed, move.result.outcome
        if move.target is None:
            for path in (*claimed.sidecars, claimed.path):
                path.unlink(missing_ok=True)
        else:
            make_folder(move.target.parent)
            if outcome.outcome == "failed":
                reason = reason_of(outcome, printable(claimed.original), self._clock())
                save_reason(move.target, reason)
            for path, place in zip(claimed.sidecars, move.sidecars, strict=True):
                move_file(path, place)
            move_file(claimed.path, move.target)
        self._drop_folder(claimed)

    def _confirm(self, moves: Sequence[_Move]) -> None:
        """Make moves durable; only then does the ledger say that they are done."""
        if not moves:
            return
        places = [path for move in moves if move.target for path in (move.target, *move.sidecars)]
        for path in places:
            sync_file(path)  # the program that put it into the inbox need not have done so
        for folder in (*dict.fromkeys(path.parent for path in places), self._layout.processing):
            sync_folder(folder)
        with self._ledger.transaction():
            for move in moves:
                self._ledger.files.remove(str(move.result.claimed.original))
                if move.target is not None and move.result.outcome.outcome != "failed":
                    self._ledger.files.move(str(move.target), "done", self._clock())

    def _moved_entry(self, result: ClaimResult, target: Path) -> FileEntry:
        now, claimed, outcome = self._clock(), result.claimed, result.outcome
        return FileEntry(
            path=str(target),
            inbox=str(claimed.inbox),
            size=claimed.size,
            mtime_ns=claimed.mtime_ns,
            state="failed" if outcome.outcome == "failed" else "indexed",
            first_seen=now,
            updated_at=now,
            document_id=outcome.document_id,
            reason=outcome.reason,
            hint=outcome.hint,
        )

    def _drop_folder(self, claimed: ClaimedFile) -> None:
        folder = claimed.path.parent
        if folder.parent == self._layout.processing and not any(folder.iterdir()):
            folder.rmdir()


def reason_of(outcome: FileOutcome, source: str, now: datetime) -> dict[str, str]:
    """Why a file failed, as it is written beside it."""
    return {
        "source": source,
        "message": outcome.reason,
        "hint": outcome.hint,
        "error": outcome.error,
        "at": now.isoformat(),
    }


def claim_name(original: str | Path) -> str:
    """Return how the names begin of folders in ``processing/`` for files from this path."""
    return hashlib.sha256(os.fsencode(original)).hexdigest()[:16]


def _file_signature(path: Path) -> tuple[int, int] | None:
    """The size of a file and when it was last changed; None where there is none."""
    try:
        return _signature(path.lstat())
    except FileNotFoundError:
        return None


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _folders(processing: Path) -> list[Path]:
    return [path for path in _children(processing) if _is_folder(path)]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _main(files: Sequence[Path], name: str | None) -> Path | None:
    """The file that was claimed, among its sidecars."""
    if name is not None:
        return next((path for path in files if path.name == name), None)
    sidecars = sidecars_among(files)
    return next(path for path in files if path not in sidecars)


_NUMBERS = range(1, 1_000_000)
_SUFFIX_ROOM = 64
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a system or a file system says that cannot refuse by itself to replace a file."""
_HALF_COPY = re.compile(r"\.[0-9a-f]{16}\.part")


def move_file(source: Path, target: Path) -> None:
    """Move a file to a path that is free, by copy, fsync and delete where renaming cannot do it.

    A copy is durable before the original goes.  That of a new name is the caller's to see to, who
    may have moved many.

    Raises:
        OSError: It could not be moved; it is then still at ``source``.
    """
    try:
        rename_to_free(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(source, target)


def rename_to_free(source: Path, target: Path) -> None:
    """Rename a file unless something has the new name, which the system sees to in the same step.

    Where it cannot, another process's file of that very moment may be replaced.

    Raises:
        FileExistsError: Something has that name.
        OSError: It could not be renamed.
    """
    code = _rename_unless_taken(source, target)
    if code == errno.EEXIST or (code in _UNKNOWN and os.path.lexists(target)):
        raise FileExistsError(errno.EEXIST, "there is another file by now", str(target))
    if code in _UNKNOWN:
        source.rename(target)
    elif code:
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def _rename_unless_taken(source: Path, target: Path) -> int:
    """Have the system do it; return 0, or the number of the error."""
    if sys.platform == "win32":
        return errno.ENOSYS  # Python's own never replaces anything there
    sys.audit("os.rename", source, target, -1, -1)  # as Python's own does
    libc = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(source), os.fsencode(target)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(old, new, 4)  # RENAME_EXCL
        else:
            failed = libc.renameat2(-100, old, -100, new, 1)  # AT_FDCWD, RENAME_NOREPLACE
    except AttributeError:  # a library of before 2018, or of another system
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


def _copy_over(source: Path, target: Path) -> None:
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open_regular(source) as reader, temporary.open("xb") as writer:
            before = os.fstat(reader.fileno())
            shutil.copyfileobj(reader, writer, 1 << 20)
            writer.flush()
            os.fsync(writer.fileno())
        shutil.copystat(source, temporary, follow_symlinks=False)
        if _signature(before) != _signature(source.lstat()):
            raise OSError(errno.EBUSY, "it changed while it was being copied", str(source))
        rename_to_free(temporary, target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    try:
        source.unlink()
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def is_half_copy(name: str) -> bool:
    """Return whether a killed process may have left this while moving a file from elsewhere."""
    return _HALF_COPY.fullmatch(name) is not None


def _signature(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def free_place(
    folder: Path,
    relative: Path,
    sidecars: Sequence[Path],
    used_paths: Collection[Path] = (),
    *,
    with_reason: bool = False,
) -> dict[Path, Path]:
    """Where a file and its sidecars can go below ``folder``, under names not in use there.

    Args:
        folder: Where to.
        relative: The path that the file would have below it.
        sidecars: Names of what goes with it.
        used_paths: Places that are spoken for.
        with_reason: Whether the reason of a failure is to stand beside it, and nothing else where
            that does; the file itself then gets no name as reasons have it.

    Returns:
        A target for each sidecar, and under ``relative`` that of the file itself.  All get the
        same suffix, so that they still belong together.
    """
    names = (relative, *sidecars)
    parent = _free_parent(folder, relative.parent, used_paths)
    if len(os.fsencode(parent)) + max(len(os.fsencode(path.name)) for path in names) > _longest():
        parent = folder
    for number in _NUMBERS:
        places = {path: parent / _number_name(path.name, relative.stem, number) for path in names}
        if with_reason and not _has_room_for_reason(places[relative], used_paths):
            continue
        if not any(place in used_paths or os.path.lexists(place) for place in places.values()):
            return places
    raise OSError(errno.EEXIST, "no free name is left", str(parent / relative.name))


def _has_room_for_reason(place: Path, used_paths: Collection[Path]) -> bool:
    """Return whether a reason beside a file replaces nothing but one that a kill has left alone."""
    reason = reason_path(place)
    if place.name.endswith(REASON_SUFFIX) or any(
        reason in (path, *path.parents) for path in used_paths
    ):
        return False
    is_own = reason.is_file() and not os.path.lexists(reason_path(reason))
    return is_own or not os.path.lexists(reason)


def _free_parent(folder: Path, relative: Path, used_paths: Collection[Path]) -> Path:
    """The folder of that path, numbered where a file has the name of one on the way."""
    parent = folder
    for name in relative.parts:
        places = (parent / _number_name(name, name, number) for number in _NUMBERS)
        parent = next(
            place
            for place in places
            if place not in used_paths and (os.path.isdir(place) or not os.path.lexists(place))  # noqa: PTH112 - may be too long
        )
    return parent


def _longest() -> int:
    """How many bytes a path may have, with room for a number or for what is written beside it."""
    most = os.pathconf("/", "PC_PATH_MAX") if hasattr(os, "pathconf") else 32_767
    return most - _SUFFIX_ROOM


def _number_name(name: str, stem: str, number: int) -> str:
    """``talk.en.srt`` as ``talk-2.en.srt``, if the stem that it shares is ``talk``."""
    if number == 1:
        return name
    rest = name.removeprefix(stem)
    suffix = f"-{number}{rest}"
    room = MAX_FILE_NAME_BYTES - len(os.fsencode(suffix))
    return os.fsdecode(os.fsencode(stem)[: max(room, 1)]) + suffix


def save_reason(failed: Path, reason: Mapping[str, Any]) -> None:
    """Write down beside a failed file why it is there."""
    text = json.dumps(dict(reason), ensure_ascii=False, indent=2) + "\n"
    save_file(reason_path(failed), text.encode("utf-8", "replace"))
