"""The folders of a knowledge base, its settings file, and the disk that they are on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from memctl.doctor.access import check_access
from memctl.doctor.findings import Finding, damaged, ok, warning
from memctl.errors import MemctlError
from memctl.files import set_aside
from memctl.paths import next_step, reason, shown
from memctl.pinned import Layout, load_settings
from memctl.rules import nearest
from memctl.store.repair import Step

LEAST_FREE = 256 << 20
"""Bytes; below it the next ingest may not fit."""


def check_settings(layout: Layout) -> Iterator[Finding]:
    """Read kb.toml, and look whether the inboxes that it names are there."""
    try:
        settings = load_settings(layout.settings)
    except MemctlError as error:
        yield damaged("folders", "settings", error.message)
        return
    yield ok("folders", "settings", f"{settings.embedder}, {settings.dimension} dimensions")
    for inbox in settings.inboxes:
        if not inbox.path.is_dir():
            hint = f"make it, or leave it out of {layout.settings}"
            yield warning("folders", "inbox", f"{shown(inbox.path)} is not there", hint)


def check_folders(layout: Layout) -> Iterator[Finding]:
    """Look whether every folder is there, may be written to, and is closed to other people."""
    sound = 0
    for folder in _folders(layout):
        complaint = _complaint(folder)
        sound += complaint is None
        if complaint is not None:
            yield complaint
    if sound:
        yield ok("folders", "folders", f"{sound} are there and can be written to")
    yield from check_access(layout.folder, layout.name)


def check_prompts(layout: Layout) -> Iterator[Finding]:
    """Look whether every file among the prompts takes the place of one."""
    from memctl.prompts import prompt_names, unknown_prompts

    names = [f"{name}.md" for name in prompt_names()]
    for path in unknown_prompts(layout.prompts):
        hint = nearest(path.name, names) or f"prompts are called {', '.join(names)}"
        yield warning("folders", "prompts", f"no prompt is called {path.name}: ignored", hint)


def repair_folders(layout: Layout) -> Iterator[Step]:
    """Make folders that are gone, or in the place of which something else stands."""
    for folder in _folders(layout):
        if folder.is_file():
            beside = set_aside(folder)
            yield Step("folders", f"{folder.name} was a file: kept as {beside.name}")
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700)
            yield Step("folders", f"made {folder.name}/ again")


def _folders(layout: Layout) -> tuple[Path, ...]:
    inside = (layout.inbox, layout.processing, layout.processed, layout.failed)
    return (layout.folder, *inside, layout.folder / "lance")


def _complaint(folder: Path) -> Finding | None:
    if folder.is_symlink() and not folder.exists():
        return warning("folders", folder.name, "is a link to what is not there", "mend the link")
    if not folder.is_dir():
        return warning("folders", folder.name, "is not there", f"mkdir -m 700 {shown(folder)}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return warning("folders", folder.name, "cannot be written to", "check its permissions")
    return None


def check_disk(layout: Layout) -> Iterator[Finding]:
    """Look whether there is room for the next ingest, and for joining the largest table's files."""
    try:
        free = shutil.disk_usage(layout.folder).free
    except OSError as error:
        yield warning("disk", "space", reason(error), next_step(error))
        return
    largest = max((_size(path) for path in (layout.folder / "lance").glob("*.lance")), default=0)
    told = f"{free / (1 << 30):,.1f} GB are free"
    if free < max(LEAST_FREE, largest):
        message = f"{told}; upkeep needs up to {max(LEAST_FREE, largest) / (1 << 30):,.1f}"
        yield warning("disk", "space", message, "free some space on the disk")
    else:
        yield ok("disk", "space", told)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))
