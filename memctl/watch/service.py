"""The daemon: serves knowledge bases in turn until it is stopped.

A loop that looks, takes and sleeps.  Events of the file system wake it, a rescan finds what they
missed.  Each knowledge base has at most one daemon: a kernel lock on its folder says so.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING

from msgspec import Struct

from memctl.errors import DiskRefused, KnowledgeBaseUnavailable, LockedError, MemctlError
from memctl.instants import utc_now
from memctl.kb_settings import load_settings
from memctl.locking import acquire_lock
from memctl.store.ledger.audit_repositories import WATCHER
from memctl.upkeep.runner import Upkeep
from memctl.watch.file_events import FileEvents, WakeSignal, share_type
from memctl.watch.kb_watcher import KnowledgeBaseWatcher, WatchOptions
from memctl.watch.reporter import DrainResult, EventKind, Leftover, Listener, WatchEvent
from memctl.watch.scheduled_jobs import abandon_cut_off_jobs
from memctl.watch.watch_status import waiting_files

if TYPE_CHECKING:
    from filelock import FileLock

    from memctl.home import Home, KnowledgeBaseEntry
    from memctl.knowledge_base import KnowledgeBase

Clock = Callable[[], datetime]

_LOCK_SECONDS = 1.0
_SHORTEST_SLEEP = 0.05
_BEAT_SECONDS = 5.0
_EXTRA_IDLE_SECONDS = 1.0
_GRACE_SECONDS = 8
"""How long what is in hand may take after a signal; containers are killed ten seconds after it."""


class Interrupted(BaseException):
    """A second signal, or no more patience: stop at once, without the files in hand."""


class _ServedBase(Struct):
    """A knowledge base that is being served, and the lock that says so."""

    watch: KnowledgeBaseWatcher
    lock: FileLock
    is_signed: bool = False
    """Whether the ledger says which process serves it."""


class _Refusal(Struct, frozen=True):
    """Why a knowledge base could not be taken up, and when (monotonic) that was last tried."""

    error: MemctlError
    at: float


class WatchService:
    """Serves knowledge bases.

    Args:
        bases: Where they come from; asked again at every rescan.
        options: How to watch.
        listener: Called with everything that happens.
        clock: What tells the time.
    """

    def __init__(
        self,
        bases: WatchedBases,
        options: WatchOptions,
        listener: Listener,
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bases = bases
        self._options = options
        self._listener = listener
        self._clock = clock
        self._monotonic = monotonic
        self._wake = WakeSignal()
        self._hints = FileEvents(self._wake, monotonic)
        self._held: dict[str, _ServedBase] = {}
        self._stopping = False
        self._interrupted = False
        self._refused: dict[str, _Refusal] = {}
        self._beaten = 0.0
        self._idle_since = monotonic()
        self._dealt_with = 0
        self._left: list[Leftover] = []

    def run(self) -> DrainResult:
        """Serve until stopped or, with ``once``, until everything is dealt with.

        Returns:
            How many files were dealt with and, with ``once``, what had to be left.

        Raises:
            LockedError: Another daemon serves one of the knowledge bases.
        """
        with suppress(Interrupted), self._signals(), self._serving():
            self._say("started", message=f"process {os.getpid()}")
            step = self._drain if self._options.once else self._round
            while not self._stopping and not step():
                pass
        refused = [(name, each.error) for name, each in self._refused.items()]
        left = [Leftover(name, (), error.message, error.hint) for name, error in refused]
        return DrainResult(self._dealt_with, (*self._left, *left))

    def stop(self) -> None:
        """Stop once the files in hand are dealt with; may be called from anywhere."""
        self._stopping = True
        self._wake.notify()

    # --- the loop ---

    def _round(self) -> bool:
        """Look at every knowledge base once, then sleep until there may be something to do."""
        self._tell_refused(self._refresh())
        worked, wait = self._turns()
        self._beat()
        if not worked and not self._stopping:
            for held in self._held.values():
                held.watch.release_unused()
            self._wake.sleep(min(max(wait, _SHORTEST_SLEEP), self._options.rescan_seconds))
        return False

    def _drain(self) -> bool:
        """Serve every knowledge base once; return whether nothing is left to do.

        A file that keeps changing for twice the settling time is left for the next run, and so is
        whatever a store has no room for.
        """
        worked, wait = self._turns()
        self._beat()
        now = self._monotonic()
        if worked:
            self._idle_since = now
            return False
        idle_limit = 2 * self._options.settle_seconds + _EXTRA_IDLE_SECONDS
        if wait == float("inf") or now - self._idle_since > idle_limit:
            return True
        self._wake.sleep(min(max(wait, _SHORTEST_SLEEP), self._options.rescan_seconds))
        return False

    def _turns(self) -> tuple[bool, float]:
        worked, wait = False, float("inf")
        for held in list(self._held.values()):
            if self._stopping:
                break
            turn = held.watch.turn()
            worked = worked or turn.worked
            if turn.look_again_in is not None:
                wait = min(wait, turn.look_again_in)
        return worked, wait

    # --- which knowledge bases ---

    @contextmanager
    def _serving(self) -> Iterator[None]:
        try:
            self._start()
            yield
        finally:
            _set_alarm(0)  # what is in hand is done or given up: putting it back takes its time
            self._hints.stop()
            for name in list(self._held):
                self._leave(name)
            self._say("stopped")

    def _start(self) -> None:
        """Take up what can be taken up now; the disk of the rest may be free or back later.

        Raises:
            LockedError: Another daemon serves one of them.
            MemctlError: None can be served, and waiting does not help.
        """
        refused = self._refresh()
        for error in refused.values():
            may_pass = isinstance(error, DiskRefused) and not self._options.once
            if isinstance(error, LockedError) or not (self._held or may_pass):
                raise error
        self._tell_refused(refused)

    def _refresh(self) -> dict[str, MemctlError]:
        """Take up knowledge bases that are new, leave those that are paused or gone.

        Returns:
            Why some cannot be served, where that is news.
        """
        wanted = list(self._bases.names())
        for name in set(self._held) - set(wanted):
            self._leave(name)
        for name in self._refused.keys() - set(wanted):
            del self._refused[name]
        before = {name: type(each.error) for name, each in self._refused.items()}
        for name in wanted:
            if name not in self._held and self._may_be_tried(name):
                self._take_up(name)
        self._reload()
        self._observe()
        now = {name: each.error for name, each in self._refused.items()}
        return {name: error for name, error in now.items() if before.get(name) is not type(error)}

    def _may_be_tried(self, name: str) -> bool:
        """What was refused is tried again at the pace of looking, however busy the others are."""
        refusal = self._refused.get(name)
        pause = self._options.rescan_seconds
        return refusal is None or self._monotonic() - refusal.at >= pause

    def _take_up(self, name: str) -> None:
        try:
            base = self._bases.open(name)
            try:
                lock = self._lock(base)
            except BaseException:
                base.close()
                raise
        except MemctlError as error:
            self._refused[name] = _Refusal(error, self._monotonic())
            return
        upkeep = Upkeep(base, self._bases.home, self._clock)
        base.store.ledger.audit.actor = WATCHER
        watch = KnowledgeBaseWatcher(
            base, upkeep, self._options, self._listener, self._clock, self._beat, self._monotonic
        )
        self._held[name] = _ServedBase(watch, lock)
        self._sign(self._held[name])
        if self._refused.pop(name, None):
            self._say("resumed", name)
        self._say("serving", name)

    def _sign(self, held: _ServedBase) -> None:
        """Have the ledger say who serves it; a full disk has room for that later."""
        ledger, now = held.watch.base.store.ledger, self._clock()
        with suppress(MemctlError), ledger.transaction():
            ledger.daemon.register(os.getpid(), socket.gethostname(), now)
            ledger.follow_folder()
            abandon_cut_off_jobs(held.watch.base, now)
            held.is_signed = True

    def _lock(self, base: KnowledgeBase) -> FileLock:
        def held() -> LockedError:
            """Name who has it."""
            entry = base.store.ledger.daemon.current()
            who = f"process {entry.pid} on {entry.host}" if entry else "another process"
            return LockedError(
                f"{who} is watching {base.name!r} already", "stop it first, or leave it to it"
            )

        return acquire_lock(base.layout.watch_lock, _LOCK_SECONDS, held)

    def _leave(self, name: str) -> None:
        held = self._held.pop(name)
        base = held.watch.base
        with suppress(MemctlError, OSError):  # it may be its disk that failed
            held.watch.put_back()
            base.store.ledger.daemon.clear(os.getpid())
        self._dealt_with += held.watch.dealt_with
        if self._options.once:
            self._left += _leftovers(held.watch)
        base.close()
        held.lock.release()
        self._say("left", name)

    def _reload(self) -> None:
        """Reopen knowledge bases of which the settings or the ledger are others now."""
        for name, held in list(self._held.items()):
            if self._bases.is_changed(held.watch.base):
                self._leave(name)
                self._take_up(name)

    def _observe(self) -> None:
        """Have events wake the loop, and tell of folders that send none."""
        if self._options.poll or self._options.once:
            return
        inboxes = {
            name: [inbox.path for inbox in held.watch.base.settings.inboxes]
            for name, held in self._held.items()
        }
        everything = [path for paths in inboxes.values() for path in paths]
        self._hints.follow(everything)
        silent = self._hints.silent
        for path in everything:
            if kind := share_type(path):
                silent[path] = f"of what others change on a network share, {kind}"
        for name, paths in inboxes.items():
            own = {
                folder: why
                for folder, why in silent.items()
                if not {folder, *folder.parents}.isdisjoint(paths)
            }
            self._held[name].watch.note_polled(own)

    # --- signs of life ---

    def _beat(self) -> None:
        now = self._monotonic()
        if now - self._beaten < _BEAT_SECONDS:
            return
        self._beaten = now
        for held in self._held.values():
            if not held.is_signed:
                self._sign(held)
            with suppress(MemctlError):
                held.watch.base.store.ledger.daemon.beat(os.getpid(), self._clock())

    def _tell_refused(self, refused: Mapping[str, MemctlError]) -> None:
        for name, error in refused.items():
            self._say("waiting", name, error.message, error.hint)

    def _say(self, kind: EventKind, kb: str = "", message: str = "", hint: str = "") -> None:
        self._listener(WatchEvent(self._clock(), kind, kb, message=message, hint=hint))

    # --- signals ---

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; the second one, or an alarm in its place, does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGTERM, signal.SIGINT]
        if sys.platform != "win32":
            numbers.append(signal.SIGALRM)
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            for number in before:
                signal.signal(number, self._on_signal)
            yield
        finally:
            _set_alarm(0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._stopping:
            self.stop()
            _set_alarm(_GRACE_SECONDS)
        elif not self._interrupted:
            self._interrupted = True
            raise Interrupted


def _set_alarm(seconds: int) -> None:
    """Send this process an alarm after some seconds, or none any more."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def _leftovers(watch: KnowledgeBaseWatcher) -> list[Leftover]:
    """What a knowledge base leaves to the next time: one for each thing that is wrong."""
    files: tuple[str, ...] = ()
    if watch.is_waiting:
        with suppress(MemctlError, OSError):  # what fails may be what knows of them
            files = tuple(name for name, _ in waiting_files(watch.base))
    return [
        Leftover(each.kb, files if each.kind == "waiting" else (), each.message, each.hint)
        for each in watch.complaints
    ]


class WatchedBases:
    """Those that are named, else every one that is always on; paused and archived ones are not.

    Args:
        home: All knowledge bases on this disk.
        names: Those to serve; none means every always-on one, also those made later.
    """

    def __init__(self, home: Home, names: Sequence[str] = ()) -> None:
        self.home = home
        self._names = tuple(dict.fromkeys(names))

    def check(self) -> None:
        """Refuse names that cannot be served.

        Raises:
            KnowledgeBaseNotFound: There is none of that name.
            KnowledgeBaseUnavailable: It is paused or archived.
        """
        for name in self._names:
            status = self.home.settings(name).status
            if status != "active":
                raise KnowledgeBaseUnavailable(
                    f"knowledge base {name!r} is {status}, so it is not watched",
                    f"memctl kb resume {name}",
                )

    def names(self) -> list[str]:
        """Return the names of the knowledge bases to serve now.

        One with unreadable settings is included: opening it says why.
        """
        return [entry.name for entry in self.home.entries() if self._is_wanted(entry)]

    def _is_wanted(self, entry: KnowledgeBaseEntry) -> bool:
        if self._names and entry.name not in self._names:
            return False
        settings = entry.settings
        if settings is None:
            return True
        return settings.status == "active" and (bool(self._names) or settings.always_on)

    def open(self, name: str) -> KnowledgeBase:
        """Open one of them, and make its own inbox again if it was removed.

        Raises:
            DiskRefused: It cannot be written to.
        """
        base = self.home.open(name)
        try:
            base.store.require_writable()
            base.note_settings()
            self.home.sweep()
        except BaseException:
            base.close()
            raise
        with suppress(OSError):  # an inbox out of reach is reported when it is scanned
            base.layout.inbox.mkdir(mode=0o700, exist_ok=True)
        return base

    def is_changed(self, base: KnowledgeBase) -> bool:
        """Return whether settings on disk differ from those it was opened with, or its ledger does.

        A repair makes a lost ledger anew; where none is there yet, there is nothing to go on with.
        """
        if base.store.ledger.is_replaced():
            return True
        try:
            return load_settings(base.layout.settings) != base.settings
        except MemctlError:
            return False
