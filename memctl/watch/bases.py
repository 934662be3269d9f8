"""The knowledge bases of a home as the daemon sees them: which are to be served."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memctl.errors import KnowledgeBaseUnavailable, MemctlError
from memctl.pinned import load_settings
from memctl.watch.served import Served

if TYPE_CHECKING:
    from memctl.home import Home, KnowledgeBaseEntry
    from memctl.knowledge_base import KnowledgeBase


class HomeBases:
    """Those that are named, else every one that is always on; paused and archived ones are not.

    Args:
        home: All knowledge bases on this disk.
        names: Those to serve; none means every always-on one, also those made later.
    """

    def __init__(self, home: Home, names: Sequence[str] = ()) -> None:
        self._home = home
        self._names = tuple(dict.fromkeys(names))

    def check(self) -> None:
        """Refuse names that cannot be served.

        Raises:
            KnowledgeBaseNotFound: There is none of that name.
            KnowledgeBaseUnavailable: It is paused or archived.
        """
        for name in self._names:
            status = self._home.settings(name).status
            if status != "active":
                raise KnowledgeBaseUnavailable(
                    f"knowledge base {name!r} is {status}, so it is not watched",
                    f"memctl kb resume {name}",
                )

    def names(self) -> list[str]:
        """Return the names of those that are to be served now.

        One of which the settings cannot be read is among them: opening it says why.
        """
        return [entry.name for entry in self._home.entries() if self._is_wanted(entry)]

    def _is_wanted(self, entry: KnowledgeBaseEntry) -> bool:
        if self._names and entry.name not in self._names:
            return False
        settings = entry.settings
        if settings is None:
            return True
        return settings.status == "active" and (bool(self._names) or settings.always_on)

    def open(self, name: str) -> KnowledgeBase:
        """Open one of them, and make its own inbox where somebody has removed that.

        Raises:
            DiskRefused: It cannot be written to.
        """
        base = self._home.open(name)
        try:
            base.store.require_writable()
            base.note_settings()
            self._home.sweep()
        except BaseException:
            base.close()
            raise
        with suppress(OSError):  # what keeps an inbox from being looked into is told when it is
            base.layout.inbox.mkdir(mode=0o700, exist_ok=True)
        return base

    def is_changed(self, base: Served) -> bool:
        """Say whether settings on disk differ from those it was opened with, or its ledger does.

        A repair makes a lost ledger anew; where none is there yet, there is nothing to go on with.
        """
        if base.store.ledger.is_replaced():
            return True
        try:
            return load_settings(base.layout.settings) != base.settings
        except MemctlError:
            return False
