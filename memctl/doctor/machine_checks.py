"""The machine and the program's own settings: what every knowledge base on it shares."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memctl.config import Config, unknown_variables, without_password
from memctl.doctor.findings import Finding, ok, warning
from memctl.doctor.folder_checks import check_access
from memctl.paths import display_path

_INOTIFY = Path("/proc/sys/fs/inotify")
FEWEST_WATCHES = 8_192
"""One folder below an inbox takes one; this was the kernel's own default for long."""
FEWEST_INSTANCES = 16


def check_machine(config: Config, config_file: Path) -> Iterator[Finding]:
    """Look at the settings file, the home, and the kernel's limits on watching folders."""
    yield from _check_settings(config, config_file)
    yield from _check_home(config.home)
    yield from _check_inotify(_INOTIFY)


def _check_settings(config: Config, path: Path) -> Iterator[Finding]:
    unknown = unknown_variables(config)
    for name, hint in unknown.items():
        yield warning("config", name, "no setting is called so, so it is ignored", hint)
    if not unknown:
        where = f"read from {path}" if path.is_file() else "all defaults"
        yield ok("config", "settings", f"every setting is known; {where}")
    if path.is_file() and os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
        message, hint = f"anybody may change {path}", f"chmod o-w {path}"
        yield warning("config", "settings", message, hint)
    if config.endpoint.base_url:
        url = without_password(config.endpoint.base_url)
        told = f"{url}: not asked whether it answers, for nothing is sent"
        yield ok("config", "endpoint", told)


def _check_home(home: Path) -> Iterator[Finding]:
    """Look where the home is, whose, and who may enter it."""
    if home.is_symlink():
        yield ok(
            "folders", "home", f"{display_path(home)} is a link to {display_path(home.resolve())}"
        )
    yield from check_access(home, "home")
    yield from check_access(home / "kb", "kb")


def _check_inotify(folder: Path) -> Iterator[Finding]:
    """Look at how much may be watched; where there is no inotify there is nothing to say."""
    limits = (("max_user_watches", FEWEST_WATCHES), ("max_user_instances", FEWEST_INSTANCES))
    for name, fewest in limits:
        try:
            found = int((folder / name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        if found >= fewest:
            yield ok("inotify", name, f"{found:,}")
        else:
            hint = f"sysctl fs.inotify.{name}={8 * fewest}, or watch with --poll"
            yield warning("inotify", name, f"{found:,} may be too few to watch with", hint)
