"""Who an operation runs for, and what it may open, read and change.

Knowledge bases stay open between calls, and are reopened when their settings change. Knows whose a
namespace is, never what an operation does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from msgspec.structs import replace

from memctl.errors import KnowledgeBaseNotFound, MemctlError, NotFoundError, UsageError
from memctl.identity import Identity, conversations_of, documents_of, readable_by
from memctl.ids import private_agent
from memctl.instants import parse_instant
from memctl.literals import RESOURCES
from memctl.records import Filters

if TYPE_CHECKING:
    from pathlib import Path

    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
    from memctl.records import Document, ProgressListener
    from memctl.schema.table_names import TableName

SearchType = Literal["conversations", "documents", "all"]
NO_KNOWLEDGE_BASE = "This agent has no knowledge base available."
NOTHING_YET = "Nothing has been remembered yet."
NO_MEMORY = "The memory service is not available to this agent."
NO_USER = "No user id was found: name the user that this call is for."
NAME_USER = "name the user, or a conversation of theirs, with --user or --session"
_UNLIMITED = Filters()
_BY_SESSION = {
    "conversations": "session_id is not null",
    "documents": "session_id is null",
    "all": None,
}
"""What tells conversations and documents apart where no user has namespaces for them."""
_WITHOUT_DOCUMENTS = "session_id is not null or (document_id is null and level <> 'insight')"
"""What an agent without a knowledge base reads: what was said, and what was stated.

An insight quotes its sources, which may be documents, and its row does not tell which they are."""
_Stamp = tuple[int, int]


class Unavailable(MemctlError):
    """What an operation needs is not there for its caller; the answer to the call says so."""


class OperationContext:
    """For whom operations run; close it, or use it in a ``with`` statement.

    Args:
        home: All knowledge bases on this disk.
        kbs: The knowledge bases to read, the first of which is written to; by default those that
            a query reads that names none, and the default one.
        identity: The user, the agent and the conversation.
        allowed_tools: The operations that the agent may use; None for all.
        resources: What the agent has: ``memory``, ``knowledge_base``.
        read_only: Refuse everything that changes something.
        allow_paths: Folders whose files a caller may have read.
    """

    progress: ProgressListener | None = None
    """Called with how far the present call is, if that is wanted."""

    def __init__(
        self,
        home: Home,
        kbs: Sequence[str] = (),
        identity: Identity | None = None,
        *,
        allowed_tools: Collection[str] | None = None,
        resources: Collection[str] = RESOURCES,
        read_only: bool = False,
        allow_paths: Sequence[Path] = (),
    ) -> None:
        self.allow_paths = tuple(path.resolve() for path in allow_paths)
        self.identity = identity or Identity()
        self.home = home.acting_as(
            user=self.identity.user, agent=self.identity.agent, session=self.identity.session
        )
        self.allowed_tools = allowed_tools
        self.resources = resources
        self.read_only = read_only
        self._kbs = tuple(kbs)
        self._opened: dict[str, tuple[_Stamp, KnowledgeBase]] = {}
        self._reading: KnowledgeBases | None = None

    @classmethod
    def of(
        cls,
        home: Home,
        kbs: Sequence[str] = (),
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        read_only: bool = False,
        allow_paths: Sequence[Path] = (),
    ) -> Self:
        """Return for whom operations run, with the tools and resources that its agent has.

        Args:
            home: All knowledge bases on this disk.
            kbs: The knowledge bases to read, the first of which is written to.
            user: The user; what is not named is as configured.
            agent: The agent; one that has no file may use everything.
            session: The conversation.
            read_only: Refuse everything that changes something.
            allow_paths: Folders whose files a caller may have read.

        Raises:
            UsageError: A name cannot be one, or the agent's file cannot be used.
            KnowledgeBaseNotFound: A knowledge base that is named is not there.
        """
        for name in kbs:
            home.layout(name)
        identity = Identity.of(home.config, user=user, agent=agent, session=session)
        if identity.agent is None or home.accounts.agent_path(identity.agent) is None:
            return cls(home, kbs, identity, read_only=read_only, allow_paths=allow_paths)
        settings = home.accounts.agent(identity.agent)
        return cls(
            home,
            kbs,
            identity,
            allowed_tools=settings.allowed_regular_tools or None,
            resources=settings.resources,
            read_only=read_only,
            allow_paths=allow_paths,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every knowledge base that was opened."""
        self._reading = None
        with ExitStack() as stack:
            for _, base in self._opened.values():
                stack.callback(base.close)
        self._opened.clear()

    def flush(self) -> None:
        """Write what the query logs of open knowledge bases still hold back; between two calls.

        Until the next call no version of their tables is held: a forget in another process would
        have to leave on disk what it removed.
        """
        for _, base in self._opened.values():
            base.resources.query_log.flush()
            base.store.release_unused()

    # --- knowledge bases --------------------------------------------------------------------------

    def reading(self) -> KnowledgeBases:
        """Return the knowledge bases to read; they stay open.

        Raises:
            KnowledgeBaseNotFound: One that was named is not there, or there is none at all.
        """
        from memctl.knowledge_base import KnowledgeBases

        bases = [self._open(name) for name in self.home.names_to_read(self._kbs)]
        if self._reading is None or list(self._reading) != bases:
            self._reading = KnowledgeBases(bases)
        return self._reading

    @contextmanager
    def limited_to(self, names: Sequence[str]) -> Iterator[Self]:
        """Have only some of the knowledge bases that may be read meanwhile; none for all.

        Raises:
            KnowledgeBaseNotFound: One is not there, or not open to this caller.
        """
        if not names:
            yield self
            return
        for name in names:
            is_named = name in self._kbs if self._kbs else self.home.exists(name)
            if not is_named or (not self._kbs and self.home.settings(name).private):
                raise KnowledgeBaseNotFound(
                    f"no knowledge base {name!r}", "leave it out for all that may be read"
                )
        before, self._kbs = self._kbs, tuple(names)
        try:
            yield self
        finally:
            self._kbs = before

    def writing(self) -> KnowledgeBase:
        """Return the knowledge base to write to, which is made where it is the default one.

        Raises:
            KnowledgeBaseNotFound: There is none of that name.
            KnowledgeBaseUnavailable: It is archived.
        """
        name = self.kb_to_write
        if name not in self._opened:
            self.home.open_for_writing(name).close()
        base = self._open(name)
        base.resources.require_writable()
        return base

    def reading_existing(self) -> KnowledgeBase:
        """Return for reading the knowledge base that is written to.

        Raises:
            KnowledgeBaseNotFound: There is none.
            UsageError: Several could be meant.
        """
        return self._open(self.home.name_to_change(self._kbs[0] if self._kbs else None))

    @contextmanager
    def open_for_adding(self, *, dry_run: bool) -> Iterator[KnowledgeBase]:
        """Give the knowledge base to add to; a dry run does not make the default one.

        Raises:
            KnowledgeBaseUnavailable: It is archived.
            AccessRefused: The agent may only read it.
        """
        if dry_run:
            with self.home.open_for_dry_run(self.kb_to_write) as base:
                base.resources.require_writable()
                yield base
        else:
            yield self.writing()

    @property
    def kb_to_write(self) -> str:
        """The name of the knowledge base to write to."""
        return self.home.name_to_write(self._kbs[0] if self._kbs else None)

    def owner(self, table: TableName, id_: str) -> KnowledgeBase:
        """Return the knowledge base that has a row with that id, or the beginning of one.

        Raises:
            NotFoundError: None has.
        """
        try:
            return self.reading().owner(table, id_)
        except NotFoundError as error:  # whose hint is for the command line
            raise NotFoundError(error.message, "what a search finds has its whole id") from error

    def _open(self, name: str) -> KnowledgeBase:
        """Return a knowledge base as its settings are now."""
        found = self.home.layout(name).settings.stat()
        stamp = (found.st_mtime_ns, found.st_ino)
        known = self._opened.get(name)
        if known is not None and known[0] != stamp:
            self._opened.pop(name)[1].close()
            known = None
        if known is None:
            known = self._opened[name] = stamp, self.home.open(name)
        return known[1]

    @property
    def now(self) -> datetime:
        """The present instant."""
        return self.home.now()

    # --- whose things are -------------------------------------------------------------------------

    @contextmanager
    def for_user(self) -> Iterator[OperationContext]:
        """Give what is limited to the user that is named, else to whose the conversation is.

        Raises:
            Unavailable: Neither tells a user.
        """
        if self.identity.user is not None:
            yield self
            return
        user = self._user_of_session()
        if user is None:
            raise Unavailable(NO_USER, NAME_USER)
        with OperationContext(
            self.home,
            self._kbs,
            replace(self.identity, user=user),
            allowed_tools=self.allowed_tools,
            resources=self.resources,
            read_only=self.read_only,
            allow_paths=self.allow_paths,
        ) as limited:
            yield limited

    def _user_of_session(self) -> str | None:
        session = self.identity.session
        if session is None:
            return None
        with suppress(KnowledgeBaseNotFound):
            for base in self.reading():
                with suppress(NotFoundError):
                    found = base.sessions.get(session)
                    if self.reads(base, found.namespace):
                        return found.user_id
        return None

    def own_namespace(self) -> str:
        """Return where what this user says is kept; ``default`` where no user is named."""
        return conversations_of(self.home.config.namespaces, self.identity.user)

    def namespaces(self, search_type: SearchType = "all") -> tuple[str, ...]:
        """Return the namespaces that the user reads; none, which does not limit, without a user."""
        user, names = self.identity.user, self.home.config.namespaces
        if user is None:
            return ()
        if search_type == "conversations":
            return (conversations_of(names, user),)
        if search_type == "documents":
            return (documents_of(names, user), names.shared)
        return readable_by(names, user, self.identity.agent)

    def filters(
        self,
        search_type: SearchType = "all",
        *,
        namespace: str | None = None,
        tags: Sequence[str] = (),
        types: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
    ) -> Filters:
        """Return what a search or listing of this caller is limited to.

        For an agent without a knowledge base documents are left out.

        Raises:
            UsageError: A date cannot be read, or the namespace is not one that the user reads.
        """
        if namespace is not None:
            self._check_namespace(namespace)
        has_documents = "knowledge_base" in self.resources
        named = self.namespaces(search_type if has_documents else "conversations")
        where = None if named else _BY_SESSION[search_type]
        return replace(
            _UNLIMITED,
            namespaces=(namespace,) if namespace is not None else named,
            tags=tuple(tag.removeprefix("#") for tag in tags),
            types=tuple(types),
            since=None if since is None else parse_instant(since, self.now),
            until=None if until is None else parse_instant(until, self.now),
            where=where if has_documents else _WITHOUT_DOCUMENTS,
        )

    def _check_namespace(self, namespace: str) -> None:
        if not all(self.reads(base, namespace) for base in self.reading()):
            readable = self.namespaces()
            hint = f"there are {', '.join(readable)}" if readable else "leave it out for all others"
            raise UsageError(f"the namespace {namespace!r} is not open to this caller", hint)

    def reads(self, base: KnowledgeBase, namespace: str) -> bool:
        """Return whether a row of a namespace may be shown; a private one only to its user."""
        if self.identity.user is None:
            is_own = (
                self.identity.agent is not None and private_agent(namespace) == self.identity.agent
            )
            return is_own or namespace not in base.settings.private_namespaces
        return namespace in self.namespaces()

    def check_readable(self, base: KnowledgeBase, namespace: str, what: str) -> None:
        """Refuse to show a row of another user, as if it were not there.

        Raises:
            NotFoundError: Its namespace is not open to this caller.
        """
        if not self.reads(base, namespace):
            raise NotFoundError(f"there is no {what}")

    def changeable_document(self, reference: str) -> tuple[KnowledgeBase, Document]:
        """Return a document that this caller may change, and its knowledge base.

        Args:
            reference: Its id or the beginning of it, its title, its slug or an alias.

        Raises:
            NotFoundError: There is none that is open to this caller.
            UsageError: Several are called so.
            Unavailable: It is shared.
        """
        try:
            base, id_ = self.owner("documents", reference), reference
        except NotFoundError:
            id_ = self._document_called(reference)
            base = self.owner("documents", id_)
        document = base.documents.get(id_).document
        self.check_changeable(base, document.namespace, f"document {reference!r}")
        return base, document

    def _document_called(self, name: str) -> str:
        links = self.reading().links.view(self.filters()).map
        target = links.find(name)
        if target.others:
            ids = ", ".join(links.pages[at].id for at in (target.page, *target.others))
            raise UsageError(f"several documents are called {name!r}", f"give an id: {ids}")
        return links.pages[target.page].id

    def check_changeable(self, base: KnowledgeBase, namespace: str, what: str) -> None:
        """Refuse to change a row that is another user's, or that all users share.

        Raises:
            NotFoundError: Its namespace is not open to this caller.
            Unavailable: Its namespace is shared.
        """
        self.check_readable(base, namespace, what)
        user, names = self.identity.user, self.home.config.namespaces
        if user is not None and namespace == names.shared:
            raise Unavailable(f"{what} is shared: {user} may read and not change it")
