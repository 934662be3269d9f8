"""The settings of one knowledge base (kb.toml), its name, and where its files are.

Knows nothing of the program's own settings, which only say what a new one is made with.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import (
    ConfigError,
    DamagedError,
    DiskRefused,
    KnowledgeBaseUnavailable,
    LockedError,
    UsageError,
)
from memctl.files import is_temporary, save_file
from memctl.ids import private_agent, storable
from memctl.literals import (
    AccessLevel,
    After,
    ChunkStrategy,
    KnowledgeBaseKind,
    KnowledgeBaseScope,
    OwnTask,
    StoredStatus,
)
from memctl.locking import hold_lock
from memctl.paths import expand_path, is_device_name
from memctl.validation import (
    Rule,
    check_keys,
    check_value,
    parse_toml,
    read_settings_file,
    setting_keys,
)

if TYPE_CHECKING:
    from memctl.records import Filters

FORMAT_VERSION = 1
"""The newest layout of a knowledge base's folder that this version can read."""
_SETTINGS_LOCK_SECONDS = 30.0

PROCESSING = "processing"
"""The folder of files that are being ingested, each in one of its own."""
MAX_FILE_NAME_BYTES = 255
"""Bytes of a file's name; what Linux and macOS allow."""
REASON_SUFFIX = ".reason.json"

ENDPOINT_KEYS = ("base_url", "timeout_seconds", "retries", "concurrency")
"""What a knowledge base may say of an endpoint of its own: never where a key is."""
BUDGET_KEYS = (
    "daily_tokens", "daily_cost", "input_price", "output_price", "embed_price", "transcribe_price",
)  # fmt: skip
_EXPORTED_GROUPS = (
    ("chunk_strategy", "chunk_size", "chunk_overlap"),
    ("consolidate_interval",),
    ("half_life",),
    ("always_on",),
    ("kind",),
    ("scope",),
    ("description",),
)
"""Settings that an export takes along, in groups that only make sense together."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)


def is_kb_name(name: str) -> bool:
    """Return whether a knowledge base can have that name on every file system."""
    return _NAME.fullmatch(name) is not None and not is_device_name(name)


def check_name(name: str, what: str = "a knowledge base") -> str:
    """Return the name of something if it is one that every file system can hold.

    Raises:
        UsageError: It is not; nothing has been touched.
    """
    shown = name if len(name) <= 40 else f"{name[:40]}..."
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{shown!r} cannot be the name of {what}",
            "use 1 to 64 of a-z, 0-9, - and _, starting with a letter or digit",
        )
    if is_device_name(name):
        raise UsageError(f"{shown!r} is a name that Windows keeps for a device", "choose another")
    return name


class Layout(Struct, frozen=True):
    """The paths of one knowledge base on disk."""

    folder: Path

    @property
    def name(self) -> str:
        """The knowledge base's name, which is its folder's."""
        return self.folder.name

    @property
    def settings(self) -> Path:
        """The file of its settings."""
        return self.folder / "kb.toml"

    @property
    def inbox(self) -> Path:
        """The knowledge base's own inbox."""
        return self.folder / "inbox"

    @property
    def processing(self) -> Path:
        """Files that are being ingested."""
        return self.folder / PROCESSING

    @property
    def processed(self) -> Path:
        """Files that have been ingested."""
        return self.folder / "processed"

    @property
    def watch_lock(self) -> Path:
        """The lock that the process that watches it holds."""
        return self.folder / "watch.lock"

    @property
    def forget_lock(self) -> Path:
        """The lock that a process that forgets something in it holds to the end."""
        return self.folder / "forget.lock"

    @property
    def media(self) -> Path:
        """Copies of pictures, recordings and files that came with what was said."""
        return self.folder / "media"

    @property
    def prompts(self) -> Path:
        """Its own prompts, which replace those of the program."""
        return self.folder / "prompts"

    @property
    def failed(self) -> Path:
        """Files that could not be ingested, each with its ``.reason.json``."""
        return self.folder / "failed"

    def half_written(self, *, reasons: bool = True) -> Iterator[Path]:
        """Yield what may be left of files of its own that were being written at a kill.

        Args:
            reasons: Those too of why files failed, which means to look through all that have.
        """
        inner = ("readers", "vectors/*")
        for folder in (self.folder, *(each for name in inner for each in self.folder.glob(name))):
            yield from folder.glob(".*.tmp")
        if reasons:
            found = self.failed.rglob(f".*{REASON_SUFFIX}.*.tmp")
            yield from (path for path in found if is_temporary(path.name, REASON_SUFFIX))

    def current_place(self, path: Path) -> Path:
        """Return where a file that was processed, or failed, is by now.

        It was noted where the knowledge base stood then, which may have another name or home since.
        """
        ends = {folder.name: folder for folder in (self.processed, self.failed)}
        for number, name in enumerate(path.parts, start=1):
            if name in ends:
                here = ends[name].joinpath(*path.parts[number:])
                if here.is_file():
                    return here
        return path


class Inbox(Struct, frozen=True):
    """A watched folder (absolute) and what happens to a file in it once it is ingested."""

    path: Path
    after: Annotated[
        After, Rule("what happens to a file of its own inbox once it is ingested", option="--after")
    ] = "move"


class Grant(Struct, frozen=True):
    """What an agent, or a team of agents, may do with a knowledge base."""

    to: str
    level: AccessLevel
    is_team: bool = False


class KnowledgeBaseSettings(Struct, frozen=True):
    """The settings of one knowledge base; its name is that of its folder."""

    name: str
    created_at: datetime
    format_version: Annotated[int, Rule("layout of this folder", low=1, high=FORMAT_VERSION)] = (
        FORMAT_VERSION
    )
    status: Annotated[StoredStatus, Rule("whether it takes part")] = "active"
    always_on: Annotated[
        bool,
        Rule(
            "whether it is watched, and asked by queries that name no knowledge base",
            option="--always-on/--on-demand",
        ),
    ] = True
    private: Annotated[
        bool,
        Rule(
            "whether it is read only if it is named, and nothing of it is sent to other machines or"
            " logged",
            option="--private/--not-private",
        ),
    ] = False
    may_send: Annotated[
        bool,
        Rule(
            "whether a private one may still be sent to an endpoint on another machine",
            option="--may-send/--may-not-send",
        ),
    ] = False
    redact: Annotated[
        bool,
        Rule(
            "whether keys, tokens and passwords are removed from texts before all else",
            option="--redact/--not-redact",
        ),
    ] = False
    embedder: Annotated[str, Rule("the model that its vectors come from")] = "builtin/wordllama-256"
    dimension: Annotated[int, Rule("length of its vectors", low=1, high=65_536)] = 256
    chunk_strategy: Annotated[
        ChunkStrategy,
        Rule(
            "cut text into passages at paragraphs and sentences, or (semantic) where the topic"
            " changes",
            option="--chunk-strategy",
        ),
    ] = "recursive"
    chunk_size: Annotated[
        int,
        Rule(
            "longest passage, in characters",
            low=100,
            high=20_000,
            option="--chunk-size",
            metavar="N",
        ),
    ] = 1200
    chunk_overlap: Annotated[
        int,
        Rule(
            "characters that neighbouring passages share",
            low=0,
            high=10_000,
            option="--chunk-overlap",
            metavar="N",
        ),
    ] = 150
    consolidate_interval: Annotated[
        int,
        Rule(
            "minutes between two consolidations while watching; 0 for never",
            low=0,
            high=525_600,
            option="--consolidate-interval",
            metavar="MINUTES",
        ),
    ] = 60
    half_life: Annotated[
        int,
        Rule(
            "days after which a memory counts half as recent",
            low=1,
            high=36_500,
            option="--half-life",
            metavar="DAYS",
        ),
    ] = 90
    kind: Annotated[
        KnowledgeBaseKind, Rule("what it is for, as listings show it", option="--kind")
    ] = "knowledge_base"
    scope: Annotated[
        KnowledgeBaseScope, Rule("whom it is for, as listings show it", option="--scope")
    ] = "account"
    description: Annotated[
        str, Rule("what it holds, in your words", option="--description", metavar="TEXT")
    ] = ""
    inboxes: tuple[Inbox, ...] = ()
    private_namespaces: tuple[str, ...] = ()
    """Private like a whole private knowledge base: read only if they are named."""
    grants: tuple[Grant, ...] = ()
    """Which agents may use it; without any, every agent may."""
    models: tuple[tuple[OwnTask, str], ...] = ()
    """Models of its own for some tasks; an empty name is the built-in way."""
    endpoint: tuple[tuple[str, Any], ...] = ()
    """An endpoint of its own; it is used only where the program's settings know its address."""
    budget: tuple[tuple[str, Any], ...] = ()
    """What its models may cost, instead of what the program's settings say."""

    @property
    def has_private(self) -> bool:
        """Whether anything in it is private, or would be."""
        return self.private or bool(self.private_namespaces)

    def allows(self, agent: str | None, teams: Collection[str], level: AccessLevel) -> bool:
        """Return whether an agent may read or write; a person acting without an agent may do both.

        Args:
            agent: Who asks; None for a person.
            teams: The teams that the agent is in.
            level: What it wants to do.
        """
        if agent is None or not self.grants:
            return True
        given = {
            grant.level
            for grant in self.grants
            if (grant.to in teams if grant.is_team else grant.to == agent)
        }
        return "write" in given or (level == "read" and "read" in given)

    def allows_private(self, filters: Filters) -> bool:
        """Return whether what the filters let through is, or may be, private."""
        named = filters.namespaces or tuple(self._private_namespaces(filters.agent))
        return self.private or not set(named).isdisjoint(self.private_namespaces)

    def without_private(self, filters: Filters) -> Filters:
        """Return the filters with the private namespaces that they leave out unless named."""
        private = {*filters.private, *self.private_namespaces}.difference(
            self._private_namespaces(filters.agent)
        )
        return replace(filters, private=tuple(sorted(private)))

    def _private_namespaces(self, agent: str | None) -> Iterator[str]:
        """Yield the private namespaces of what an agent keeps to itself."""
        for namespace in self.private_namespaces:
            if agent is not None and private_agent(namespace) == agent:
                yield namespace


def check_overlap(size: int, overlap: int, place: str) -> None:
    """Refuse passages that would share all they have with their neighbours.

    Args:
        size: The longest passage, in characters.
        overlap: How many of them neighbours share.
        place: Where that was found.

    Raises:
        ConfigError: They would.
    """
    if overlap >= size:
        raise ConfigError(
            f"{place}: chunk_overlap ({overlap}) must be smaller than chunk_size ({size})"
        )


def load_settings(path: Path) -> KnowledgeBaseSettings:
    """Read a kb.toml; relative inboxes are taken from its folder.

    Raises:
        ConfigError: It cannot be read, or a setting in it cannot be used.
        DamagedError: It is missing, empty or not TOML.
        KnowledgeBaseUnavailable: A newer version of memctl made it.
    """
    name = path.parent.name
    whole = f"memctl doctor -k {name} --repair makes it anew and keeps what stands there beside it"
    try:
        found = _parse(read_settings_file(path), str(path))
    except ConfigError as error:
        if isinstance(error.__cause__, OSError):
            raise
        raise DamagedError(error.message, whole) from error
    if not found:
        raise DamagedError(f"{path}: missing or empty", whole)
    _refuse_newer(name, found.get("format_version", FORMAT_VERSION))
    place = str(path)
    listed = (
        *("created_at", "inboxes", "private_namespaces", "grants", "models", "endpoint", "budget"),
    )
    known = [*setting_keys(KnowledgeBaseSettings), *listed]
    check_keys(found, known, prefix="", place=place)
    values = {
        key: check_value(KnowledgeBaseSettings, key, found[key], name=key, place=place)
        for key in setting_keys(KnowledgeBaseSettings)
        if key in found
    }
    created_at = _instant(found.get("created_at"), place)
    inboxes = tuple(_inbox(item, path.parent, place) for item in _tables(found, "inboxes", place))
    values["private_namespaces"] = _texts(found, "private_namespaces", place)
    values["models"] = own_models(found.get("models", {}), place)
    values["endpoint"] = own_values(found.get("endpoint", {}), ENDPOINT_KEYS, "endpoint", place)
    values["budget"] = own_values(found.get("budget", {}), BUDGET_KEYS, "budget", place)
    values["grants"] = tuple(_grant(item, place) for item in _tables(found, "grants", place))
    loaded = KnowledgeBaseSettings(name=name, created_at=created_at, inboxes=inboxes, **values)
    check_overlap(loaded.chunk_size, loaded.chunk_overlap, place)
    return loaded


@lru_cache(maxsize=64)
def _parse(content: bytes, place: str) -> Mapping[str, Any]:
    """Return what a kb.toml says, which every command asks for several times."""
    return parse_toml(content, place)


def _refuse_newer(name: str, version: object) -> None:
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise KnowledgeBaseUnavailable(
            f"knowledge base {name!r} has format {version}, this version of memctl reads up to "
            f"{FORMAT_VERSION}",
            "upgrade memctl: update its checkout and run `pip install .` in it",
        )


def _instant(value: object, place: str) -> datetime:
    if not isinstance(value, datetime):
        raise ConfigError(f"{place}: created_at must be a date with time, not {value!r}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _tables(settings: Mapping[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    value = settings.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ConfigError(f"{place}: {key} must be tables", f"write [[{key}]] above each")
    return value


def _texts(settings: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    value = settings.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(f"{place}: {key} must be a list of texts, not {value!r}")
    return tuple(value)


def _inbox(item: Mapping[str, Any], folder: Path, place: str) -> Inbox:
    check_keys(item, ["path", "after"], prefix="inboxes.", place=place)
    path = item.get("path")
    if not isinstance(path, str) or not path:
        raise ConfigError(f"{place}: inboxes.path must be the path of a folder, not {path!r}")
    given = item.get("after", "move")
    after = check_value(Inbox, "after", given, name="inboxes.after", place=place)
    return Inbox((folder / expand_path(path)).absolute(), after)


def own_models(value: object, place: str) -> tuple[tuple[OwnTask, str], ...]:
    """Return the table ``[models]`` of a knowledge base or an agent.

    Raises:
        ConfigError: It is not a table, names an unknown task, or a model is not a string.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: models must be a table", 'write [models] and answer = "..."')
    tasks: tuple[OwnTask, ...] = get_args(OwnTask)
    check_keys(value, tasks, prefix="models.", place=place)
    for task, name in value.items():
        if not isinstance(name, str):
            raise ConfigError(f"{place}: models.{task} must be the name of a model, not {name!r}")
    return tuple((task, value[task]) for task in tasks if task in value)


def own_values(
    value: object, keys: Collection[str], name: str, place: str
) -> tuple[tuple[str, Any], ...]:
    """Return what a table of a kb.toml says instead of the program's settings.

    Args:
        value: The table.
        keys: What may stand in it.
        name: What it is called.
        place: Where it stands.

    Raises:
        ConfigError: It is not a table, or has other keys.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: {name} must be a table", f"write [{name}] above it")
    check_keys(value, keys, prefix=f"{name}.", place=place)
    return tuple((key, value[key]) for key in keys if key in value)


def _grant(item: Mapping[str, Any], place: str) -> Grant:
    check_keys(item, ["agent", "team", "level"], prefix="grants.", place=place)
    is_team = "team" in item
    to, level = item.get("team" if is_team else "agent"), item.get("level")
    if not isinstance(to, str) or not to or level not in ("read", "write"):
        raise ConfigError(
            f"{place}: a grant has an agent or a team, and the level read or write",
            f"take it away: memctl kb revoke {Path(place).parent.name} --agent NAME",
        )
    return Grant(to, level, is_team)


def portable_settings(settings: KnowledgeBaseSettings) -> dict[str, Any]:
    """Return the settings that make sense on another disk too, as JSON has them."""
    named = {key: getattr(settings, key) for group in _EXPORTED_GROUPS for key in group}
    guards = {"private": settings.private, "redact": settings.redact}
    return named | guards | {"private_namespaces": list(settings.private_namespaces)}


def merge_imported_settings(
    own: KnowledgeBaseSettings, imported: Mapping[str, Any]
) -> KnowledgeBaseSettings:
    """Return the settings of a knowledge base into which an export is brought.

    What is stricter holds, wherever it stands; of the rest, what was set by hand stays.

    Args:
        own: Those that it has.
        imported: What ``portable`` gave where the export was made; anything, if that was forged.

    Raises:
        ConfigError: One cannot have that value.
    """
    listed = imported.get("private_namespaces")
    names = listed if isinstance(listed, list) else []
    private = {name for name in names if isinstance(name, str) and name}
    plain = KnowledgeBaseSettings(own.name, own.created_at)
    carried = {
        key: check_value(KnowledgeBaseSettings, key, imported[key], name=key, place="the export")
        for group in _EXPORTED_GROUPS
        if all(getattr(own, key) == getattr(plain, key) for key in group)
        for key in group
        if key in imported
    }
    return replace(
        own,
        private=own.private or imported.get("private") is True,
        private_namespaces=tuple(sorted(private.union(own.private_namespaces))),
        redact=own.redact or imported.get("redact") is True,
        **carried,
    )


def save_settings(path: Path, settings: KnowledgeBaseSettings) -> None:
    """Write a kb.toml in one step; inboxes inside its folder are written relative to it.

    Raises:
        ConfigError: A setting cannot have that value; the file is then as it was.
    """
    import tomli_w

    values = {
        key: check_value(
            KnowledgeBaseSettings, key, getattr(settings, key), name=key, place=settings.name
        )
        for key in setting_keys(KnowledgeBaseSettings)
    }
    check_overlap(settings.chunk_size, settings.chunk_overlap, settings.name)
    inboxes = [
        {"path": _relative(inbox.path, path.parent), "after": inbox.after}
        for inbox in settings.inboxes
    ]
    values |= {"created_at": settings.created_at, "inboxes": inboxes}
    values["private_namespaces"] = list(settings.private_namespaces)
    if settings.grants:
        values["grants"] = [
            {"team" if grant.is_team else "agent": grant.to, "level": grant.level}
            for grant in settings.grants
        ]
    for name in ("models", "endpoint", "budget"):
        if own := getattr(settings, name):
            values[name] = dict(own)
    save_file(path, storable(tomli_w.dumps(values)).encode())


@contextmanager
def settings_lock(path: Path) -> Iterator[None]:
    """Keep every other process from changing a kb.toml, while what it says is read and changed.

    Raises:
        LockedError: Another process keeps changing it.
        DiskRefused: It cannot be locked.
    """
    held = LockedError(f"another process is changing {path}", "wait for it, and run this again")
    with hold_lock(path.with_name(f"{path.name}.lock"), _SETTINGS_LOCK_SECONDS, lambda: held):
        yield


def pin_embedder(path: Path, embedder: str, dimension: int) -> KnowledgeBaseSettings:
    """Write what the vectors are from into a kb.toml, and return the settings.

    Raises:
        ConfigError: As ``load_settings``.
        OSError: It cannot be written.
    """
    with settings_lock(path):
        settings = replace(load_settings(path), embedder=embedder, dimension=dimension)
        save_settings(path, settings)
    return settings


def follow_embedder(
    path: Path, settings: KnowledgeBaseSettings, embedder: str, dimension: int
) -> KnowledgeBaseSettings:
    """Return the settings with the embedder that the ledger names, and write them if possible.

    If kb.toml cannot be written, the next command that opens the knowledge base tries again.
    """
    try:
        return pin_embedder(path, embedder, dimension)
    except (OSError, DiskRefused):
        return replace(settings, embedder=embedder, dimension=dimension)


def _relative(path: Path, folder: Path) -> str:
    inside = path.relative_to(folder) if path.is_relative_to(folder) else path
    return inside.as_posix()


def reason_path(failed: Path) -> Path:
    """Where the reason of a failed file stands: beside it, under its name if that leaves room."""
    name = failed.name + REASON_SUFFIX
    encoded = os.fsencode(failed.name)
    if len(os.fsencode(name)) > MAX_FILE_NAME_BYTES:
        digest = hashlib.sha256(encoded).hexdigest()[:8]
        kept = encoded[:200].decode("utf-8", "ignore")
        name = f"{kept}-{digest}{REASON_SUFFIX}"
    return failed.with_name(name)
