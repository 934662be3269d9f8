"""Checks of a knowledge base's surroundings: folders, settings, disk, locks and the machine."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from shlex import quote

from msgspec.structs import asdict

from memctl.config import Config, relative_home, unknown_variables, without_password
from memctl.doctor.findings import Finding, damaged, ok, warning
from memctl.errors import ConfigError, DamagedError, MemctlError
from memctl.files import open_regular, quarantine, save_file
from memctl.formatting import format_count
from memctl.instants import utc_now
from memctl.kb_settings import Inbox, KnowledgeBaseSettings, Layout, load_settings, save_settings
from memctl.knowledge_base import SETTINGS
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.schema.table_names import TABLES
from memctl.store.ledger.ledger import Ledger
from memctl.store.locks import WriteLock, is_watched
from memctl.store.store import DIMENSION, EMBEDDER, LEASES_FOLDER, LEDGER_FILE
from memctl.store.store_repair import Step
from memctl.store.tables.storage import table_storage
from memctl.validation import nearest

MIN_FREE = 256 << 20
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
            yield warning("folders", "inbox", f"{display_path(inbox.path)} is not there", hint)


def check_folders(layout: Layout) -> Iterator[Finding]:
    """Look whether every folder is there, may be written to, and is closed to other people."""
    sound = 0
    for folder in _folders(layout):
        complaint = _folder_problem(folder)
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
            beside = quarantine(folder)
            yield Step("folders", f"{folder.name} was a file: kept as {beside.name}")
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700)
            yield Step("folders", f"made {folder.name}/ again")


def _folders(layout: Layout) -> tuple[Path, ...]:
    inside = (layout.inbox, layout.processing, layout.processed, layout.failed)
    tables = table_storage(layout.folder).local_folder
    return (layout.folder, *inside, *([] if tables is None else [tables]))


def _folder_problem(folder: Path) -> Finding | None:
    if folder.is_symlink() and not folder.exists():
        return warning("folders", folder.name, "is a link to what is not there", "mend the link")
    if not folder.is_dir():
        return warning(
            "folders", folder.name, "is not there", f"mkdir -m 700 {display_path(folder)}"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return warning("folders", folder.name, "cannot be written to", "check its permissions")
    return None


def check_disk(layout: Layout) -> Iterator[Finding]:
    """Look whether there is room for the next ingest, and for joining the largest table's files."""
    try:
        free = shutil.disk_usage(layout.folder).free
    except OSError as error:
        yield warning("disk", "space", os_error_reason(error), os_error_hint(error))
        return
    storage = table_storage(layout.folder)
    largest = 0 if storage.local_folder is None else max(map(storage.size, TABLES))
    free_space = f"{free / (1 << 30):,.1f} GB are free"
    if free < max(MIN_FREE, largest):
        message = f"{free_space}; upkeep needs up to {max(MIN_FREE, largest) / (1 << 30):,.1f}"
        yield warning("disk", "space", message, "free some space on the disk")
    else:
        yield ok("disk", "space", free_space)


_READ = stat.S_IRGRP | stat.S_IROTH | stat.S_IXGRP | stat.S_IXOTH
_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TRANSIENT_ERRNOS = {
    errno.EACCES,
    errno.EPERM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ESTALE,
    errno.ENOMEM,
}
"""What may keep a whole file from being opened, for a while or to this user."""


def check_entry(folder: Path) -> Finding | None:
    """Return a finding for a folder that this user may not enter; no other check can run there."""
    try:
        os.scandir(folder).close()
        (folder / "kb.toml").exists()
    except OSError as error:
        message = f"cannot be entered: {os_error_reason(error)}"
        hint = f"as its owner, run chmod 700 {display_path(folder)}"
        return damaged("folders", folder.name, message, hint)
    return None


def check_permissions(layout: Layout) -> Finding | None:
    """Report files that this user may not open; their content may well be whole.

    Repairing would take them for damaged, and what only they have for lost.
    """
    tables = table_storage(layout.folder).local_folder
    tops = (layout.processed,) if tables is None else (tables, layout.processed)
    closed = [each for top in tops for each in _find_unopened(top)]
    closed += [
        each
        for path in (layout.settings, layout.folder / LEDGER_FILE)
        if (each := _refusal(path)) is not None
    ]
    if not closed:
        return None
    error = closed[0]
    message = (
        f"{format_count(len(closed), 'file')} cannot be opened, such as {_access_finding(error)}"
    )
    hint = os_error_hint(error, "run this again when the system opens them")
    if isinstance(error, PermissionError):
        hint = "let this user read them (chown, chmod u+r): what stands in them is not lost"
    return damaged("folders", layout.name, message, hint)


def _find_unopened(top: Path) -> Iterator[OSError]:
    """Yield what the system says of each file and folder below one that it does not open."""
    refused: list[OSError] = []
    for folder, _, files in os.walk(top, onerror=refused.append):
        for name in files:
            if (error := _refusal(Path(folder, name))) is not None:
                yield error
    yield from (error for error in refused if error.errno in _TRANSIENT_ERRNOS)


def _refusal(path: Path) -> OSError | None:
    try:
        open_regular(path).close()
    except OSError as error:
        return error if error.errno in _TRANSIENT_ERRNOS else None
    return None


def _access_finding(error: OSError) -> str:
    path = Path(os.fsdecode(error.filename))
    message = f"{display_path(path)}: {os_error_reason(error)}"
    try:
        found = path.lstat()
    except OSError:
        return message
    return f"{message} (user {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o})"


def check_access(folder: Path, subject: str) -> Iterator[Finding]:
    """Look whether a folder is this user's, and closed to all others; Windows has other means."""
    if os.name == "nt" or not folder.is_dir():
        return
    found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        message = f"belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        hint = "use it as the user whose it is, or chown it: what either writes the other may not"
        yield warning("folders", subject, message, hint)
    if mode & (_READ | _WRITE):
        verb = "change it" if mode & _WRITE else "look into it"
        message = f"other people may {verb} (mode {mode:04o})"
        yield warning("folders", subject, message, f"chmod 700 {display_path(folder)}")
    else:
        yield ok("folders", subject, f"closed to other people (mode {mode:04o})")


def check_writer(layout: Layout) -> Iterator[Finding]:
    """Report who holds the write lock; the signature of a killed process does no harm."""
    lock = WriteLock(layout.folder, utc_now)
    holder = lock.holder()
    who = f"process {holder.pid} on {holder.host}, since {holder.since}" if holder else ""
    if lock.is_held():
        yield ok("locks", "write lock", f"held by {who or 'another process'}")
    elif holder:
        message = f"free; {who} was killed while it held it, which the kernel has undone"
        yield ok("locks", "write lock", message)
    else:
        yield ok("locks", "write lock", "free")


def check_watcher(layout: Layout, ledger: Ledger) -> Iterator[Finding]:
    """Return whether a daemon watches the inboxes, and how many readers are on record."""
    daemon = ledger.daemon.current()
    if not is_watched(layout):
        yield ok("locks", "watch lock", "free")
    elif daemon is not None:
        yield ok("locks", "watch lock", f"held by process {daemon.pid} on {daemon.host}")
    else:
        yield ok("locks", "watch lock", "held by another process")
    leases = len(list((layout.folder / LEASES_FOLDER).glob("*.json")))
    yield ok("locks", "readers", f"{format_count(leases, 'process', 'processes')} on record")


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
        beside = f"; the old one is kept as {quarantine(layout.settings).name}"
    with closing(Ledger.open(layout.folder / LEDGER_FILE)) as ledger:
        yield Step("settings", f"{_restore_settings(layout, config, ledger, now)}{beside}")


def _restore_settings(layout: Layout, config: Config, ledger: Ledger, now: datetime) -> str:
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
    save_settings(layout.settings, _default_settings(layout, config, ledger, now))
    return "kb.toml made anew with the defaults: look through it"


def _default_settings(
    layout: Layout, config: Config, ledger: Ledger, now: datetime
) -> KnowledgeBaseSettings:
    defaults = asdict(config.new_kb)
    own = Inbox(layout.inbox, defaults.pop("after"))
    stored: dict[str, object] = {"dimension": int(ledger.meta(DIMENSION) or 0)}
    if embedder := ledger.meta(EMBEDDER):
        stored["embedder"] = embedder
    return KnowledgeBaseSettings(
        name=layout.name, created_at=now, inboxes=(own,), **(defaults | stored)
    )


# --- the machine ---------------------------------------------------------------------------------

_INOTIFY = Path("/proc/sys/fs/inotify")
MIN_WATCHES = 8_192
"""One folder below an inbox takes one; this was the kernel's own default for long."""
MIN_INSTANCES = 16


def check_machine(config: Config, config_file: Path) -> Iterator[Finding]:
    """Look at the settings file, the home, and the kernel's limits on watching folders."""
    yield from _check_settings(config, config_file)
    if named := relative_home():
        message = f"MEMCTL_HOME is {named!r}: another home in each folder one is in"
        yield warning("folders", "home", message, f"export MEMCTL_HOME={quote(str(config.home))}")
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
        message = f"{url}: not asked whether it answers, for nothing is sent"
        yield ok("config", "endpoint", message)


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
    limits = (("max_user_watches", MIN_WATCHES), ("max_user_instances", MIN_INSTANCES))
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
