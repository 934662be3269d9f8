"""kb.toml brought back where it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime

from memctl.config import Config
from memctl.errors import ConfigError, DamagedError
from memctl.files import save_file, set_aside
from memctl.knowledge_base import SETTINGS
from memctl.pinned import Inbox, KnowledgeBaseSettings, Layout, load_settings, save_settings
from memctl.store.ledger import Ledger
from memctl.store.repair import Step
from memctl.store.store import DIMENSION, EMBEDDER, LEDGER_FILE


def repair_settings(layout: Layout, config: Config, now: datetime) -> Iterator[Step]:
    """Write kb.toml as the ledger last saw it, where it cannot be read as it is.

    Raises:
        KnowledgeBaseUnavailable: A newer version of memctl made it.
    """
    try:
        load_settings(layout.settings)
        return
    except (ConfigError, DamagedError):
        pass
    beside = ""
    if layout.settings.exists():
        beside = f"; the old one is kept as {set_aside(layout.settings).name}"
    with closing(Ledger.open(layout.folder / LEDGER_FILE)) as ledger:
        yield Step("settings", f"{_written(layout, config, ledger, now)}{beside}")


def _written(layout: Layout, config: Config, ledger: Ledger, now: datetime) -> str:
    """Write the file; return what it was made from."""
    copy = ledger.meta(SETTINGS)
    if copy is not None:
        save_file(layout.settings, copy.encode())
        try:
            load_settings(layout.settings)
        except (ConfigError, DamagedError):
            pass
        else:
            return "kb.toml brought back as it was last used"
    save_settings(layout.settings, _by_default(layout, config, ledger, now))
    return "kb.toml made anew with the defaults: look through it"


def _by_default(
    layout: Layout, config: Config, ledger: Ledger, now: datetime
) -> KnowledgeBaseSettings:
    defaults = asdict(config.new_kb)
    own = Inbox(layout.inbox, defaults.pop("after"))
    pinned: dict[str, object] = {"dimension": int(ledger.meta(DIMENSION) or 0)}
    if embedder := ledger.meta(EMBEDDER):
        pinned["embedder"] = embedder
    return KnowledgeBaseSettings(
        name=layout.name, created_at=now, inboxes=(own,), **(defaults | pinned)
    )
