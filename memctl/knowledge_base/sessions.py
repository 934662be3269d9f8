"""Conversations of a knowledge base: begun, carried on, summarised, archived, imported, ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memctl.accounts import Accounts
from memctl.errors import (
    ConfigError,
    DamagedError,
    KnowledgeBaseUnavailable,
    LockedError,
    ModelError,
    NotFoundError,
)
from memctl.identity import (
    DEFAULT_NAMESPACE,
    DEFAULT_USER,
    conversations_of,
    may_see,
    require_seen,
)
from memctl.knowledge_base.resources import Part, audit_as
from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.config import Config
    from memctl.forget import ForgetReport
    from memctl.literals import SessionStatus
    from memctl.records import IngestReport, ProgressListener
    from memctl.sessions.compression import Compression, Compressor
    from memctl.sessions.conversations import Message
    from memctl.sessions.folding import FoldedTurns
    from memctl.sessions.recall import ConversationRecall, Recall
    from memctl.store.ledger.session_repositories import Profile, Session, Turn

_log = logging.getLogger(__name__)
_LAST_TURNS = 20
"""How much of a conversation a model gets in ``replies``."""


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
            user: Whose it is; by default who is named by the settings.
            agent: With whom; by default who is named by the settings.
            namespace: Where it goes; by default where the conversations of the user do.
            title: What it is called.

        Raises:
            UsageError: There is one of that name, or a name cannot be one.
            AccessRefused: The namespace is another user's.
        """
        kb = self._kb
        config = kb.program_config
        kb.require_writable()
        user, agent = user or config.user, agent or config.agent
        place = namespace or conversations_of(config.namespaces, user or DEFAULT_USER)
        require_seen(config, place)
        kb.make_private(place)
        return kb.conversations.start(
            session_id, user=user, agent=agent, namespace=place, title=title
        )

    def get(
        self, session_id: str, *, namespace: str | None = None, user: str | None = None
    ) -> Session:
        """Return one conversation.

        Raises:
            NotFoundError: There is none of that name.
            UsageError: Several namespaces have one of that name.
            AccessRefused: The namespace is another user's.
        """
        config = self._kb.program_config
        if namespace is not None:
            require_seen(config, namespace)
        if namespace is None and user is None and config.user is not None:
            own = conversations_of(config.namespaces, config.user)
            if self._kb.store.ledger.sessions.find_by_name(session_id, own):
                namespace = own
        return self._kb.conversations.find(
            session_id, namespace=namespace, user=user, sees=lambda place: may_see(config, place)
        )

    def get_or_start(
        self, session_id: str | None = None, *, namespace: str | None = None
    ) -> Session:
        """Return a conversation, which is begun where it is not there, or none is named.

        Raises:
            UsageError: Several namespaces have one of that name, or a name cannot be one.
            AccessRefused: The namespace is another user's.
        """
        if session_id is not None:
            with suppress(NotFoundError):
                return self.get(session_id, namespace=namespace)
        return self.start(session_id, namespace=namespace)

    def list(
        self,
        *,
        user: str | None = None,
        namespaces: Sequence[str] = (),
        status: SessionStatus | None = None,
        limit: int | None = None,
    ) -> Sequence[Session]:
        """Return conversations, the latest first, without private ones unless they are named.

        Raises:
            AccessRefused: A namespace is another user's.
        """
        config = self._kb.program_config
        for namespace in namespaces:
            require_seen(config, namespace)
        hidden = self._kb.settings.without_private(Filters(agent=config.agent)).private
        hidden = () if namespaces else hidden
        found = self._kb.store.ledger.sessions.search(
            user=user or config.user,
            namespaces=namespaces,
            without=hidden,
            status=status,
            limit=-1 if limit is None else limit,
        )
        return [each for each in found if may_see(config, each.namespace)]

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
            UsageError: One has neither words nor a file, is too long, was said more than a day
                from now, or its number is taken.
            UnreadableSource: A file cannot be read.
            NotFoundError: The conversation has been forgotten meanwhile.
        """
        self._kb.require_writable()
        return self._kb.conversations.say(session, messages)

    def end(self, session: Session) -> Session:
        """Record that a conversation is over, summarise it, and have all of it in the tables.

        What working memory keeps for as long as a session is removed.  Of one whose ending was cut
        short, the rest is done.

        Raises:
            UsageError: It was before.
            ModelError: A model cannot be had that is to be waited for; it has not ended then.
        """
        self._kb.begin_change()
        closed = self._kb.conversations.find(session.session_id, namespace=session.namespace)
        if not self._kb.records.lacks_ending(closed):
            closed = self._compressor(session).close(self._kb.conversations.reload(session))
        if closed.ended_at is None:  # nothing was said
            closed = self._kb.conversations.end(closed)
        namespaces = [session.namespace]
        if session.user_id == DEFAULT_USER:  # as a program that names no user keeps values
            namespaces.append(DEFAULT_NAMESPACE)
        for namespace in namespaces:
            self._kb.store.ledger.working.end_session(namespace, session.session_id)
        self._over(closed)
        with suppress(LockedError):  # the next writer can index it as well
            self._kb.store.upkeep(wait=0)
        return closed

    def compress(
        self, session: Session, *, keep: int | None = None, dry_run: bool = False
    ) -> Compression:
        """Summarise all but the latest messages, and archive the summary as a document.

        Args:
            session: The conversation.
            keep: How many messages stay as they are; by default as configured.
            dry_run: Report what would be summarised, and write nothing.

        Raises:
            LockedError: Another process kept writing.
        """
        if not dry_run:
            self._kb.begin_change()
        return self._compressor(session).compress(session, keep=keep, dry_run=dry_run)

    def compress_due(self, session: Session | None = None) -> Sequence[Compression]:
        """Compress the conversations that have become too long, or one if it has."""
        due = self._due(session)
        if due:
            self._kb.begin_change()
        return [self._compressor(each).compress(each) for each in due]

    def compress_now_or_later(self, session: Session) -> Sequence[Compression]:
        """Compress a conversation if it has become too long; see ``compress_due``.

        Where another process keeps writing, or the model fails, that is left to the next message or
        to upkeep: what was said is stored, and need not be said again.
        """
        with suppress(LockedError, ModelError):
            return self.compress_due(session)
        return ()

    def is_any_due(self) -> bool:
        """Return whether a conversation has become too long."""
        return bool(self._due())

    def archive(self, session: Session, *, dry_run: bool = False) -> Compression:
        """Summarise all of a conversation, and put it away as archived.

        Raises:
            LockedError: Another process kept writing.
        """
        made = self.compress(session, keep=0, dry_run=dry_run)
        if not dry_run:
            closed = self._compressor(session).close(session, "archived")
            self._over(closed)
        return made

    @audit_as("session import")
    def import_files(
        self,
        paths: Iterable[Path],
        *,
        user: str | None = None,
        namespace: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        is_growing: bool = False,
        progress: ProgressListener | None = None,
    ) -> IngestReport:
        """Take in files of conversations.

        These are exports of chat programs, transcripts of agents, message lists, written chats.

        Messages that are there already are left alone, so that a file may come again with more.

        Args:
            paths: The files.
            user: Whose conversations they are.
            namespace: Where they go; by default where the conversations of the user do.
            session_id: The conversation that all of them belong to; by default as the files say.
            dry_run: Write nothing; report what would become of them.
            is_growing: The last line of a file may not be whole yet; it is then left for later.
            progress: Receives how far it is.

        Raises:
            LockedError: Another process kept writing.
        """
        from memctl.ingest.batches import IngestCounters
        from memctl.records import FileOutcome
        from memctl.sessions.imports import Imported
        from memctl.sessions.line_intake import TurnLines, WritableLines

        kb = self._kb
        if not dry_run:
            kb.begin_change()
        config = kb.program_config
        user = user or config.user or DEFAULT_USER
        place = namespace or conversations_of(config.namespaces, user)
        require_seen(config, place)
        imported = Imported(kb.services.readers, place, session_id, is_growing)
        counters, fresh = IngestCounters(), 0
        lines = TurnLines(kb.conversations, dry_run=dry_run)
        writable = WritableLines(imported.sources(paths), config)
        for left in lines.divert(writable.all()):
            if isinstance(left, FileOutcome):
                counters.add([left])
            else:
                fresh += 1
        report = counters.report()
        if dry_run:
            return replace(report, ingested=fresh, sessions=lines.sessions, dry_run=True)
        for namespace in lines.namespaces:
            kb.make_private(namespace)
        kb.folding.change(lines.changed, kb.clock())
        return lines.extend_report(report, kb.folding.fold(progress=progress))

    @audit_as("forget")
    def forget(self, session: Session, *, dry_run: bool = False) -> ForgetReport:
        """Remove a conversation for good; see ``Erasure.forget``.

        Raises:
            LockedError: Another process kept writing.
        """
        from memctl.forget import Selection
        from memctl.knowledge_base.maintenance import Erasure

        selection = Selection(session=session.session_id, namespace=session.namespace)
        return Erasure(self._kb).forget(selection, dry_run=dry_run)

    def profile(self, user: str | None = None, agent: str | None = None) -> Profile | None:
        """Return what is known of a user in short; None where nothing is."""
        return self._kb.profiles.profile_to_show(user, agent)

    def profile_versions(
        self, user: str | None = None, agent: str | None = None
    ) -> Sequence[Profile]:
        """Return the profile of a user with its former versions, the latest first."""
        shown = self.profile(user, agent)
        return () if shown is None else self._kb.profiles.versions(user, shown.agent_id)

    def set_profile(
        self, fields: Mapping[str, str], *, user: str | None = None, agent: str | None = None
    ) -> Profile:
        """Write fields of the profile of a user; the others stay as they are.

        Raises:
            UsageError: There is no such field.
        """
        self._kb.require_writable()
        return self._kb.profiles.set(fields, user, agent)

    def process(self, session: Session, message: Message) -> Mapping[str, Any]:
        """Add a message, and tell what of it is kept because its user asked for it.

        Returns:
            ``success``, ``memory_type``, ``text`` and ``tags`` where something is kept; an
            ``error`` where the message could not be stored; otherwise ``success`` and a
            ``message``.

        Raises:
            UsageError: See :meth:`say`; UnreadableSource and NotFoundError as well.
        """
        try:
            (turn,) = self.say(session, message)
        except (KnowledgeBaseUnavailable, LockedError, DamagedError) as error:
            return {"error": f"Failed to store memory: {error}"}
        return self.captured(turn)

    def captured(self, turn: Turn) -> Mapping[str, Any]:
        """Return what of a turn is kept because its user asked for it; see ``process``."""
        statement = self._kb.folding.kept_statement(turn)
        if statement is None:
            return {"success": False, "message": "No memory triggers detected"}
        return {
            "success": True,
            "memory_type": statement.type,
            "text": statement.text,
            "tags": list(statement.tags),
        }

    def recall(self, session: Session, message: str) -> Recall:
        """Return what other conversations of the same user say of a message."""
        found = self._recaller(session).recall(session, message)
        self.note_injected(found.text)
        return found

    def prompt(
        self, session: Session, message: str, system: str = ""
    ) -> Sequence[Mapping[str, str]]:
        """Return the messages that prepare a model for a new message of the user.

        They are the system prompt, the summary of what is no longer in the window, what other
        conversations say where the message refers to them, the messages that no summary stands for,
        and the new one.
        """
        from memctl.sessions.recall import HEADING

        messages = self._recaller(session).prompt(session, message, system)
        for each in messages[:-1]:
            if each["role"] == "system" and each["content"].startswith(HEADING):
                self.note_injected(each["content"])
        return messages

    def _recaller(self, session: Session) -> ConversationRecall:
        from memctl.sessions.recall import ConversationRecall

        kb, config = self._kb, self._config_with(session.agent_id)
        compression = config.compression
        return ConversationRecall(
            kb.conversations,
            lambda: kb.queries,
            config.auto_context,
            compression.recent_messages_to_keep,
            compression.threshold_tokens,
        )

    def replies(self, session: Session, message: str) -> Iterator[str]:
        """Yield the reply to a message, piece by piece: of the model that answers, else of memory.

        The message is not added to the conversation; see ``note_exchange``.

        Raises:
            ModelUnavailable: The model cannot be had now.
            ModelRefused, RequestRefused, BadReply: It gives no reply that is of use.
        """
        from memctl.prompts import fenced, load_prompt
        from memctl.records import Filters

        kb = self._kb
        filters = Filters(session=session.session_id, other_sessions=True)
        chat = kb.services.answering_model(session.namespace)
        if chat is None:
            yield self._reply_of_memory(message, filters)
            return
        known = kb.queries.context(message, filters=filters, auto=True).text
        self.note_injected(known)
        turns = [f"{turn.sender}: {turn.content}" for turn in self.turns(session, last=_LAST_TURNS)]
        data = [*filter(None, (known, "\n".join(turns))), message]
        yield from chat.stream(load_prompt("chat", kb.layout.prompts).text, fenced(data))

    def _reply_of_memory(self, message: str, filters: Filters) -> str:
        """Return what memory says to a message: an answer with its quotes, if it was asked."""
        from memctl.language.inline_tags import without_wikilinks
        from memctl.search.answering.memory_need import is_instruction
        from memctl.understanding.triggers import detect_trigger

        kb = self._kb
        if detect_trigger(message, kb.program_config.triggers).detected:
            return "Noted."
        if is_instruction(message):
            return "Without a model there is only memory to reply: ask it a question."
        found = kb.queries.query(message, filters=filters).answer
        assert found is not None  # which was asked for
        sources = (
            f"\n[{cited.number}] {cited.title or cited.source}: {without_wikilinks(cited.quote)}"
            for cited in found.citations
        )
        reply = "".join([found.text, *sources])
        self.note_injected(reply)
        return reply

    def note_exchange(self, session: Session, message: str, reply: str) -> None:
        """Add a message of the user and the reply to it, if there was one, to a conversation."""
        from memctl.sessions.conversations import Message

        messages = [Message(sender="user", content=message)]
        if reply.strip():
            messages.append(Message(sender="assistant", content=reply.strip()))
        self.say(session, *messages)

    def note_injected(self, text: str) -> None:
        """Record that a text from memory goes into a prompt: what repeats it is no new evidence."""
        from memctl.sessions.folding import note_injected

        note_injected(self._kb.store.ledger, text, self._kb.clock())

    @audit_as("session fold")
    def fold(
        self, session: Session | None = None, *, progress: ProgressListener | None = None
    ) -> FoldedTurns:
        """Take over into the tables what was said and is not there yet.

        Raises:
            LockedError: Another process kept writing.
        """
        self._kb.begin_change()
        key = None if session is None else (session.namespace, session.session_id)
        return self._kb.folding.fold(key, progress)

    # --- inside ---

    def _over(self, session: Session) -> None:
        """Renew the profile after a conversation, and note what became of it."""
        self._kb.profiles.renew(session)
        evidence = self._kb.folding.evidence_of(session, session.summary)
        self._kb.records.add(session, session.summary, evidence)

    def _due(self, session: Session | None = None) -> Sequence[Session]:
        """Return the conversations that have become too long, or one if it has."""
        sessions = self._kb.store.ledger.sessions
        due: list[Session] = []
        for agent in sessions.agents() if session is None else (session.agent_id,):
            try:
                settings = self._config_with(agent).compression
            except ConfigError as error:  # the conversations of others are summarised all the same
                _log.info("conversations with %s are left as they are: %s", agent, error.message)
                continue
            if not settings.enabled:
                continue
            tokens, messages = settings.threshold_tokens, settings.recent_messages_to_keep
            long = sessions.unsummarised_longer_than(agent, tokens, messages)
            if session is not None:
                key = (session.namespace, session.session_id)
                long = [each for each in long if (each.namespace, each.session_id) == key]
            due += (each for each in long if self._is_worth_archiving(each, tokens, messages))
        return due

    def _is_worth_archiving(self, session: Session, tokens: int, messages: int) -> bool:
        from memctl.sessions.conversations import is_worth_archiving

        turns = self._kb.conversations.window(session)
        return is_worth_archiving(turns[: len(turns) - messages], tokens, messages)

    def _config_with(self, agent: str | None) -> Config:
        """Return the settings of the agent that is named, else of that of a conversation."""
        config = self._kb.program_config
        if config.agent is not None:
            return config
        return Accounts(config).with_agent(config, agent)

    def _compressor(self, session: Session) -> Compressor:
        from memctl.sessions.compression import Compressor

        kb = self._kb
        services = kb.services
        return Compressor(
            kb.conversations,
            kb.folding,
            lambda: services.ingestor,
            services.prompt_understander,
            self._config_with(session.agent_id).compression,
            kb.clock,
        )
