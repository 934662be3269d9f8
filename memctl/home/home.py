"""The folder that holds every knowledge base of one user, opened for the user or agent that acts.

Knows folders and settings; what is inside a knowledge base only ``KnowledgeBase`` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from memctl.accounts import Accounts
from memctl.config import Config
from memctl.errors import (
    AccessRefused,
    KnowledgeBaseNotFound,
    KnowledgeBaseUnavailable,
    MemctlError,
    NotFoundError,
    UsageError,
)
from memctl.home.kb_folders import (
    Clock,
    KnowledgeBaseEntry,
    KnowledgeBaseFolders,
    empty_folder,
    own_values,
)
from memctl.home.setting_changes import change_settings, with_inboxes
from memctl.identity import checked_name
from memctl.instants import utc_now
from memctl.kb_settings import (
    Grant,
    Inbox,
    KnowledgeBaseSettings,
    Layout,
    load_settings,
)
from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
from memctl.literals import (
    AccessLevel,
    After,
    ChunkStrategy,
    KnowledgeBaseKind,
    KnowledgeBaseScope,
    OwnTask,
    StoredStatus,
)

if TYPE_CHECKING:
    from memctl.forget import RemainingPlace
    from memctl.knowledge_base.warm_state import WarmState

T = TypeVar("T")
Change: TypeAlias = T | Callable[[KnowledgeBaseSettings], T] | None
"""A new value of a setting, or what makes it from the settings as they are; None for no change."""
_A_DAY = timedelta(days=1)


def _without_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


class ClearReport(Struct, frozen=True):
    """What was deleted of a knowledge base that goes on."""

    name: str
    deleted: Mapping[str, int]
    """How many rows, by table."""
    snapshot: str
    """What brings them back; empty where they were forgotten."""
    left: tuple[str, ...] = ()
    """Where some of it still is after forgetting."""
    why: str = ""
    """Why it is still there, and what to do, of all places."""
    hint: str = ""
    remaining: tuple[RemainingPlace, ...] = ()
    """The same of each place."""


class Home:
    """The folder that holds every knowledge base of one user.

    Args:
        config: All settings; ``config.home`` need not exist yet.
        clock: Returns the current time.
        warm: Keeps stores open from one command to the next.
    """

    def __init__(
        self, config: Config, clock: Clock = utc_now, warm: WarmState | None = None
    ) -> None:
        self._program_config = config
        self._clock = clock
        self._warm = warm
        self._folders = KnowledgeBaseFolders(config.home / "kb", clock)

    def acting_as(
        self, *, user: str | None = None, agent: str | None = None, session: str | None = None
    ) -> Home:
        """Return the same home for whatever a user asks and an agent does in a conversation.

        Raises:
            UsageError: A name cannot be one.
        """
        who, by = checked_name(user, "a user"), checked_name(agent, "an agent")
        config = replace(self._program_config, user=who, agent=by, session=session)
        return Home(config, self._clock, self._warm)

    @cached_property
    def config(self) -> Config:
        """All settings, as they are where the agent acts that is named.

        Raises:
            ConfigError: The file of the agent cannot be used.
        """
        config = self._program_config
        return self.accounts.with_agent(config, config.agent)

    def now(self) -> datetime:
        """Return the present instant."""
        return self._clock()

    # --- looking ---------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse a folder that is there and cannot be listed: it would look like an empty one.

        Raises:
            DiskRefused: Its permissions forbid it, or it is no folder.
        """
        self._folders.check()

    def check_creatable(self) -> None:
        """Refuse a folder that is not there and cannot be made.

        Raises:
            DiskRefused: It cannot be made.
        """
        self._folders.check_creatable()

    def names(self) -> list[str]:
        """Return the names of all knowledge bases, sorted.

        Those that cannot be entered are among them, and those of which only tables or a ledger
        are left.
        """
        return self._folders.names()

    def entries(self) -> list[KnowledgeBaseEntry]:
        """Return every knowledge base; one whose settings cannot be read is among them."""
        return self._folders.entries()

    def exists(self, name: str) -> bool:
        """Return whether there is a knowledge base of that name."""
        return self._folders.exists(name)

    def layout(self, name: str) -> Layout:
        """Return where a knowledge base stands on disk.

        Raises:
            UsageError: No knowledge base can have that name.
            KnowledgeBaseNotFound: There is none of that name.
        """
        return self._folders.layout(name)

    def settings(self, name: str) -> KnowledgeBaseSettings:
        """Return the settings of a knowledge base."""
        return load_settings(self.layout(name).settings)

    def described(self, name: str) -> dict[str, Any]:
        """Return the settings of a knowledge base, and its folder, as they are shown."""
        settings, layout = self.settings(name), self.layout(name)
        return asdict(settings) | own_values(settings) | {"folder": str(layout.folder)}

    # --- opening ---------------------------------------------------------------------------------

    def name_to_write(self, name: str | None) -> str:
        """Return which knowledge base to write to: named, else ``MEMCTL_KB``, else the default."""
        return self.config.kb or self.config.default_kb if name is None else name

    def name_to_change(self, name: str | None) -> str:
        """Return the knowledge base whose contents to change; none is created.

        It is the one to write to; if none is named and that does not exist, the only one.

        Raises:
            KnowledgeBaseNotFound: There is none, or none that need not be named.
            UsageError: There are several.
        """
        wanted = self.name_to_write(name)
        if name is None and self.config.kb is None and not self.exists(wanted):
            open_to_all = [e.name for e in self.entries() if e.settings and not e.settings.private]
            if not open_to_all:
                raise KnowledgeBaseNotFound("there is no knowledge base", self._no_base_hint())
            if len(open_to_all) > 1:
                raise UsageError(
                    f"which knowledge base: {', '.join(open_to_all)}?", "name one with -k"
                )
            return open_to_all[0]
        self.layout(wanted)
        return wanted

    def open(self, name: str) -> KnowledgeBase:
        """Open a knowledge base for reading and, unless it is archived, writing.

        Raises:
            UsageError: No knowledge base can have that name.
            KnowledgeBaseNotFound: There is none of that name.
            KnowledgeBaseUnavailable: A newer version made it.
            AccessRefused: The agent that is named may not read it.
            DamagedError: Its tables or its ledger cannot be read.
        """
        layout = self.layout(name)
        try:
            return KnowledgeBase.open(layout, self.config, self._clock, self._warm)
        except MemctlError:
            self.layout(name)  # it may have been renamed or deleted while its files were opened
            raise

    def open_for_writing(self, name: str | None = None) -> KnowledgeBase:
        """Open the knowledge base to write to: named, else ``MEMCTL_KB``, else the default one.

        The default one is made when it is first written to; any other must be there.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
        """
        wanted = self.name_to_write(name)
        if wanted == self.config.default_kb and not self.exists(wanted):
            try:
                self.create(wanted)
            except UsageError:
                if not self.exists(wanted):  # another process may have been a moment faster
                    raise
        if not self.exists(wanted):
            create, near = f"memctl kb create {wanted}", self._folders.suggestion(wanted)
            hint = near if create in near else f"{near} Or create it: {create}"
            raise KnowledgeBaseNotFound(f"no knowledge base {wanted!r}", hint)
        opened = self.open(wanted)
        if opened.settings.status == "archived":
            opened.close()
            raise KnowledgeBaseUnavailable(
                f"knowledge base {wanted!r} is archived, so it cannot be written to",
                f"memctl kb resume {wanted}",
            )
        opened.note_settings()
        self.sweep()
        return opened

    @contextmanager
    def open_for_dry_run(self, name: str | None = None) -> Iterator[KnowledgeBase]:
        """Open the knowledge base that would be written to, for a dry run.

        If writing would first create the default one, this is a temporary, empty one.
        """
        wanted = self.name_to_write(name)
        if wanted == self.config.default_kb and not self.exists(wanted):
            with self._temporary(wanted) as opened:
                yield opened
        else:
            with self.open(wanted) as opened:
                yield opened

    @contextmanager
    def _temporary(self, name: str) -> Iterator[KnowledgeBase]:
        """Open a new knowledge base that is deleted afterwards, without asking a model."""
        from tempfile import TemporaryDirectory

        from memctl.models import ENDPOINT

        embed = self.config.models.embed
        models = replace(self.config.models, embed="")
        with TemporaryDirectory(prefix="memctl-") as folder:
            config = replace(self.config, home=Path(folder))
            Home(replace(config, models=models)).create(name)
            with Home(config).open(name) as opened:
                if embed:  # as it would be set at creation
                    resources = opened.resources
                    settings = replace(resources.settings, embedder=f"{ENDPOINT}{embed}")
                    resources.settings = settings
                yield opened

    def open_for_reading(self, names: Sequence[str] = ()) -> KnowledgeBases:
        """Open the knowledge bases to ask: named, else ``MEMCTL_KB``, else every always-on one.

        Raises:
            KnowledgeBaseNotFound: One that is named is not there, or there is none at all.
        """
        chosen = self.names_to_read(names)
        with ExitStack() as stack:
            opened = [stack.enter_context(self.open(name)) for name in chosen]
            stack.pop_all()
        return KnowledgeBases(opened)

    def names_to_read(self, names: Sequence[str] = ()) -> list[str]:
        """Return which knowledge bases to ask; see ``open_for_reading``.

        Raises:
            KnowledgeBaseNotFound: None is named, and there is none at all.
        """
        chosen = list(dict.fromkeys(names)) or ([self.config.kb] if self.config.kb else [])
        if not chosen:
            settings = [entry.settings for entry in self.entries() if entry.settings]
            shared = [each for each in settings if each.always_on and not each.private]
            shared = [each for each in shared if each.status != "archived"]
            chosen = [each.name for each in shared if self._allows(each, "read")]
            if shared and not chosen:
                who = self.config.agent
                raise AccessRefused(
                    f"no knowledge base may be read by the agent {who!r}",
                    f"grant it one: memctl kb grant NAME --agent {who} read",
                )
        if not chosen:
            raise KnowledgeBaseNotFound("there is no knowledge base to read", self._no_base_hint())
        return chosen

    def _allows(self, settings: KnowledgeBaseSettings, level: AccessLevel) -> bool:
        agent = self.config.agent
        teams = self.accounts.teams_of(agent) if agent and settings.grants else frozenset()
        return settings.allows(agent, teams, level)

    def _require_owner(self, name: str) -> None:
        """Refuse an agent that may not write to a knowledge base to change it as a whole.

        Raises:
            AccessRefused: It may not.
        """
        if self.config.agent and not self._allows(self.settings(name), "write"):
            raise AccessRefused(
                f"agent {self.config.agent!r} may not change knowledge base {name!r}",
                f"grant it: memctl kb grant {name} --agent {self.config.agent} write",
            )

    @property
    def accounts(self) -> Accounts:
        """The users, teams and agents that are known here."""
        return Accounts(self._program_config)

    def _no_base_hint(self) -> str:
        entries = self.entries()
        if broken := [entry.name for entry in entries if entry.problem]:
            return f"{', '.join(broken)} cannot be opened: see memctl doctor"
        if private := [
            entry.name for entry in entries if entry.settings and entry.settings.private
        ]:
            return f"a private one is read only where it is named: -k {private[0]}"
        if entries:
            return f"none is always-on: name one with -k {entries[0].name}, or set one always-on"
        return "put something in first: memctl ingest FILE, or see memctl demo"

    def readable(self) -> Iterator[KnowledgeBase]:
        """Open each knowledge base in turn; those that cannot be opened are left out."""
        for entry in self.entries():
            if entry.settings is not None and self._allows(entry.settings, "read"):
                with self.open(entry.name) as base:
                    yield base

    def grants_of(self, agent: str) -> dict[str, AccessLevel]:
        """Return what is granted to an agent or one of its teams, by knowledge base."""
        teams = self.accounts.teams_of(agent)
        found: dict[str, AccessLevel] = {}
        for entry in self.entries():
            if entry.settings is None or not entry.settings.grants:
                continue
            if entry.settings.allows(agent, teams, "write"):
                found[entry.name] = "write"
            elif entry.settings.allows(agent, teams, "read"):
                found[entry.name] = "read"
        return found

    # --- changing --------------------------------------------------------------------------------

    def create(
        self,
        name: str,
        *,
        inboxes: Iterable[Inbox] = (),
        embedder: str = "",
        after: After | None = None,
        always_on: bool | None = None,
        private: bool | None = None,
        private_namespaces: tuple[str, ...] = (),
        may_send: bool | None = None,
        redact: bool | None = None,
        chunk_strategy: ChunkStrategy | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        consolidate_interval: int | None = None,
        half_life: int | None = None,
        kind: KnowledgeBaseKind | None = None,
        scope: KnowledgeBaseScope | None = None,
        description: str | None = None,
    ) -> KnowledgeBaseSettings:
        """Make a knowledge base; it is there whole or not at all.

        What is not given is as configured in ``[new_kb]``.

        Args:
            name: 1 to 64 of a-z, 0-9, - and _.
            inboxes: Folders to watch besides its own inbox.
            embedder: Where its vectors are from: ``builtin``, ``endpoint/MODEL``,
                ``onnx/FOLDER``; by default as configured.
            after: What happens to a file of its own inbox once it is ingested.
            always_on: Whether it is watched, and asked by queries that name no knowledge base.
            private: Whether it is read only if it is named, and nothing of it is sent to other
                machines or logged.
            private_namespaces: Namespaces that are private like a whole private knowledge base.
            may_send: Whether a private one may still be sent to an endpoint on another machine.
            redact: Whether keys, tokens and passwords are removed from texts before all else.
            chunk_strategy: Whether text is cut at paragraphs and sentences, or by topic.
            chunk_size: Longest passage, in characters.
            chunk_overlap: Characters that neighbouring passages share.
            consolidate_interval: Minutes between two consolidations while watching; 0 for never.
            half_life: Days after which a memory counts half as recent.
            kind: What it is for, as listings show it.
            scope: Whom it is for, as listings show it.
            description: What it holds, in the user's words.

        Raises:
            UsageError: The name cannot be used or is taken, or a setting cannot have that value.
            ModelError: The endpoint, which its vectors are to be from, did not give one.
        """
        if self.exists(name):
            raise UsageError(
                f"knowledge base {name!r} is there already", f"look at it: memctl kb show {name}"
            )
        changes = _without_none(
            after=after,
            always_on=always_on,
            private=private,
            private_namespaces=private_namespaces or None,
            may_send=may_send,
            redact=redact,
            chunk_strategy=chunk_strategy,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            consolidate_interval=consolidate_interval,
            half_life=half_life,
            kind=kind,
            scope=scope,
            description=description,
        )
        if embedder or self.config.models.embed:
            from memctl.models.providers import resolve_embedder

            resolved = resolve_embedder(self.config, embedder)
            changes |= {"embedder": resolved.id, "dimension": resolved.dimension}
        self._folders.make(name, lambda made: self._new_settings(name, made, inboxes, changes))
        with self.open(name) as opened:
            opened.note_settings()
        return self.settings(name)

    def _new_settings(
        self, name: str, layout: Layout, inboxes: Iterable[Inbox], changes: dict[str, Any]
    ) -> KnowledgeBaseSettings:
        defaults = asdict(self.config.new_kb) | changes
        own = Inbox(layout.inbox, defaults.pop("after"))
        return KnowledgeBaseSettings(
            name=name, created_at=self._clock(), inboxes=(own, *inboxes), **defaults
        )

    def change(
        self,
        name: str,
        *,
        status: Change[StoredStatus] = None,
        inboxes: Change[tuple[Inbox, ...]] = None,
        after: Change[After] = None,
        always_on: Change[bool] = None,
        private: Change[bool] = None,
        private_namespaces: Change[tuple[str, ...]] = None,
        may_send: Change[bool] = None,
        redact: Change[bool] = None,
        chunk_strategy: Change[ChunkStrategy] = None,
        chunk_size: Change[int] = None,
        chunk_overlap: Change[int] = None,
        consolidate_interval: Change[int] = None,
        half_life: Change[int] = None,
        kind: Change[KnowledgeBaseKind] = None,
        scope: Change[KnowledgeBaseScope] = None,
        description: Change[str] = None,
        grants: Change[tuple[Grant, ...]] = None,
        models: Change[tuple[tuple[OwnTask, str], ...]] = None,
        endpoint: Change[tuple[tuple[str, Any], ...]] = None,
        budget: Change[tuple[tuple[str, Any], ...]] = None,
    ) -> KnowledgeBaseSettings:
        """Change settings of a knowledge base; those that are not given stay as they are.

        Each is a value, or a function that makes it from the settings as they are by then.

        One of which more becomes private forgets the texts in its query log, and what models
        replied.

        Args:
            name: The knowledge base.
            status: Whether it takes part; see ``set_status``.
            inboxes: All folders to watch, its own among them.
            after: What happens to a file of its own inbox once it is ingested.
            always_on: Whether it is watched, and asked by queries that name no knowledge base.
            private: Whether it is read only if it is named, and nothing of it is sent to other
                machines or logged.
            private_namespaces: All namespaces that are private like a whole private knowledge base.
            may_send: Whether a private one may still be sent to an endpoint on another machine.
            redact: Whether keys, tokens and passwords are removed from texts before all else.
            chunk_strategy: Whether text is cut at paragraphs and sentences, or by topic.
            chunk_size: Longest passage, in characters.
            chunk_overlap: Characters that neighbouring passages share.
            consolidate_interval: Minutes between two consolidations while watching; 0 for never.
            half_life: Days after which a memory counts half as recent.
            kind: What it is for, as listings show it.
            scope: Whom it is for, as listings show it.
            description: What it holds, in the user's words.
            grants: Which agents may use it; none for all.
            models: Models of its own for some tasks.
            endpoint: An endpoint of its own, which the settings of the program know.
            budget: What its models may cost.

        Raises:
            AccessRefused: The agent that is named may not write to it.
            UsageError: A setting cannot have that value, or a namespace cannot be private while
                its vectors are from another machine; nothing is changed then.
            LockedError: Another process keeps changing them.
        """
        layout = self.layout(name)
        self._require_owner(name)
        changes = _without_none(
            status=status,
            inboxes=inboxes,
            after=after,
            always_on=always_on,
            private=private,
            private_namespaces=private_namespaces,
            may_send=may_send,
            redact=redact,
            chunk_strategy=chunk_strategy,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            consolidate_interval=consolidate_interval,
            half_life=half_life,
            kind=kind,
            scope=scope,
            description=description,
            grants=grants,
            models=models,
            endpoint=endpoint,
            budget=budget,
        )
        return change_settings(
            self.config, layout, changes, self._clock, lambda: self._forget_questions(name)
        )

    def _forget_questions(self, name: str) -> None:
        with self.open(name) as base:
            base.store.ledger.queries.forget_texts()
            base.store.ledger.replies.forget_all()

    def use(
        self, name: str, *, interval: int | None = None, inboxes: Sequence[Inbox] = ()
    ) -> tuple[str, ...]:
        """Have a knowledge base that is always on and active; return what had to be changed.

        Args:
            name: The knowledge base; it is created if it does not exist.
            interval: Minutes between two consolidations; None leaves it as it is.
            inboxes: Folders to watch besides those that are watched already.
        """
        if not self.exists(name):
            self.create(name, inboxes=inboxes, always_on=True, consolidate_interval=interval)
            return (f"created {name}, always on",)
        now, changes, done = self.settings(name), dict[str, Any](), list[str]()
        new = [inbox for inbox in inboxes if inbox not in now.inboxes]
        if not now.always_on:
            changes["always_on"] = True
            done.append(f"{name} is always on now")
        if now.status != "active":
            changes["status"] = "active"
            done.append(f"{name} was {now.status} and is active now")
        if interval is not None and interval != now.consolidate_interval:
            changes["consolidate_interval"] = interval
            done.append(f"{name} consolidates every {interval} minutes now")
        if new:
            changes["inboxes"] = lambda settings: with_inboxes(settings, new)
            done += [f"{name} watches {inbox.path} now" for inbox in new]
        if changes:
            self.change(name, **changes)
        return tuple(done)

    def count_rows(self, name: str) -> Mapping[str, int]:
        """Return how much a knowledge base has, by table."""
        from memctl.store.ledger.content_tables import ContentOwner

        with self.open(name) as base:
            return base.erasure.count_owned(ContentOwner())

    def clear(self, name: str, *, keep_files: bool = False, forget: bool = False) -> ClearReport:
        """Delete everything that a knowledge base has stored; settings, inboxes and prompts stay.

        Args:
            name: The knowledge base.
            keep_files: Whether what stands in ``processed/`` and ``failed/`` stays too.
            forget: Remove it from the disk, snapshots too, and search what is left for it.

        Raises:
            LockedError: Another process is writing and does not stop.
            AccessRefused: The agent that is named may not write to it, or another user than the
                one who is named has stored something in it.
        """
        from memctl.forget import Selection
        from memctl.store.ledger.content_tables import ContentOwner

        layout, now, snapshot = self.layout(name), self._clock(), ""
        left: Sequence[RemainingPlace] = ()
        with self.open(name) as base:
            base.resources.require_writable()
            base.resources.require_sole("a knowledge base")
            if forget:
                with suppress(NotFoundError):
                    tomorrow = Selection(before=now + _A_DAY)
                    done = base.forget(tomorrow, snapshots=True)
                    left = done.left
            else:
                snapshot = base.snapshots.create_before("clear").name
            deleted = base.erasure.clear(ContentOwner())
            if not keep_files:
                for folder in (layout.processed, layout.failed):
                    empty_folder(folder)
        places = tuple(dict.fromkeys(each.place for each in left))
        why = "; ".join(dict.fromkeys(each.why for each in left))
        hint = "; ".join(dict.fromkeys(each.hint for each in left if each.hint))
        return ClearReport(name, deleted, snapshot, places, why, hint, tuple(left))

    def set_status(self, name: str, status: StoredStatus) -> KnowledgeBaseSettings:
        """Pause, resume (``active``) or archive a knowledge base.

        A paused one is not watched and not consolidated on its interval; an archived one is, on
        top of that, read-only and asked only when it is named.
        """
        return self.change(name, status=status)

    def rename(self, old: str, new: str) -> KnowledgeBaseSettings:
        """Give a knowledge base another name.

        Raises:
            UsageError: The new name cannot be used or is taken.
            LockedError: Another process is writing to it or watching it.
        """
        self.layout(old)
        self._require_owner(old)
        if self.exists(new):
            raise UsageError(f"knowledge base {new!r} is there already", "choose another name")
        self._folders.rename(old, new)
        return self.settings(new)

    def delete(self, name: str) -> None:
        """Remove a knowledge base and everything in its folder, watched folders elsewhere excepted.

        It is gone in one step; what is left of its files is removed after that.

        Raises:
            LockedError: Another process is writing to it or watching it.
            AccessRefused: Another user than the one who is named has stored something in it, or
                another agent keeps something in it to itself.
        """
        self.layout(name)
        self._require_owner(name)
        if self.config.user is not None or self.config.agent is not None:
            with self.open(name) as base:
                base.resources.require_sole("a knowledge base")
        self._folders.remove(name)

    def sweep(self) -> None:
        """Remove what a crash in the middle of creating, deleting or a trial repair left behind."""
        self._folders.sweep()
