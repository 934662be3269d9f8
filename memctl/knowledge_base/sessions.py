"""Conversations of a knowledge base: begun, carried on, listed, ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memctl.knowledge_base.resources import Part

if TYPE_CHECKING:
    from memctl.records import ProgressListener
    from memctl.sessions.conversations import Message
    from memctl.sessions.folding import Folded
    from memctl.store.ledger.session_repositories import Session, SessionStatus, Turn


class Sessions(Part):
    """The conversations of one knowledge base."""

    def start(
        self,
        session_id: str | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        namespace: str | None = None,
        title: str = "",
    ) -> Session:
        """Begin a conversation.

        Args:
            session_id: Its name; by default one is made.
            user: Whose it is.
            agent: With whom.
            namespace: Where it goes; by default where the conversations of the user do.
            title: What it is called.

        Raises:
            UsageError: There is one of that name, or a name cannot be one.
        """
        self._kb.require_writable()
        return self._kb.conversations.start(
            session_id, user=user, agent=agent, namespace=namespace, title=title
        )

    def get(
        self, session_id: str, *, namespace: str | None = None, user: str | None = None
    ) -> Session:
        """Return one conversation.

        Raises:
            NotFoundError: There is none of that name.
            UsageError: Several namespaces have one of that name.
        """
        return self._kb.conversations.find(session_id, namespace=namespace, user=user)

    def list(
        self,
        *,
        user: str | None = None,
        namespaces: Sequence[str] = (),
        status: SessionStatus | None = None,
        limit: int | None = None,
    ) -> Sequence[Session]:
        """Return conversations, the latest first, without private ones unless they are named."""
        hidden = () if namespaces else self._kb.settings.private_namespaces
        return self._kb.conversations.list(
            user=user, namespaces=namespaces, without=hidden, status=status, limit=limit
        )

    def turns(
        self, session: Session, *, after: int = -1, last: int | None = None
    ) -> Sequence[Turn]:
        """Return the turns of a conversation in order: those after a number, or the last ones."""
        return self._kb.conversations.turns(session, after=after, last=last)

    def window(self, session: Session) -> Sequence[Turn]:
        """Return the turns that no summary stands for."""
        return self._kb.conversations.window(session)

    def say(self, session: Session, *messages: Message) -> Sequence[Turn]:
        """Add messages; they are on disk when this returns, and found by the next query.

        Raises:
            UsageError: One has neither words nor a file, is too long, or its number is taken.
            UnreadableSource: A file cannot be read.
            NotFoundError: The conversation has been forgotten meanwhile.
        """
        self._kb.require_writable()
        return self._kb.conversations.say_all(session, messages)

    def end(self, session: Session) -> Session:
        """Note that a conversation is over, and have all of it in the tables.

        Raises:
            UsageError: It was before.
        """
        self._kb.require_writable()
        ended = self._kb.conversations.end(session)
        self.fold(session)
        return ended

    def fold(
        self, session: Session | None = None, *, progress: ProgressListener | None = None
    ) -> Folded:
        """Take over into the tables what was said and is not there yet.

        Raises:
            LockedError: Another process kept writing.
        """
        self._kb.begin_change()
        key = None if session is None else (session.namespace, session.session_id)
        return self._kb.folding.fold(key, progress)
