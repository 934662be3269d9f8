"""Conversations in the ledger: begun, found, listed, added to and ended, in a few milliseconds.

Knows nothing of the tables: what is said waits there until ``folding`` takes it over.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import NotFoundError, UnreadableSource, UsageError
from memctl.files import atomic_write, make_folder, open_regular
from memctl.identity import DEFAULT_USER, checked_name, conversations_of
from memctl.ids import storable
from memctl.ingest.source_reading import redacted_metadata
from memctl.instants import require_said
from memctl.literals import MessageType, SessionStatus
from memctl.models.protocols import estimate_tokens
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.redaction import redact_name, redact_secrets
from memctl.store.ledger.session_repositories import Session, SessionKey, Turn

if TYPE_CHECKING:
    from memctl.config import NamespaceSettings
    from memctl.store.ledger.ledger import Ledger

SENDERS = ("user", "agent", "assistant", "system", "tool")
"""Who may speak in a conversation as it goes on; in one that is imported it may be anybody."""
LONGEST_MESSAGE = 64 << 20
"""Bytes of one message; the limit of a line of JSON too."""
_MAX_NAMED = 5
_MEDIA_TYPES: Mapping[str, MessageType] = {
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image",
    ".tif": "image", ".tiff": "image", ".mp3": "audio", ".wav": "audio", ".flac": "audio",
    ".ogg": "audio", ".opus": "audio", ".m4a": "audio", ".mp4": "video", ".mkv": "video",
    ".mov": "video", ".webm": "video",
}  # fmt: skip


class Message(Struct, frozen=True, kw_only=True):
    """What is to be added to a conversation."""

    sender: str
    content: str = ""
    at: datetime | None = None
    """When it was said; by default now."""
    message_type: MessageType | None = None
    """By default ``text``, or what the suffix of its file says."""
    turn: int | None = None
    """Its number, where the caller counts; a number that is taken by the same words is known."""
    media: Path | None = None
    """A picture, recording or file that it came with."""
    links: bool = False
    """Whether that file stays where it is, and is not copied."""
    external_id: str | None = None
    memory_type: str = "turn"
    title: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Conversations(Struct, frozen=True):
    """The conversations of one knowledge base.

    Args:
        ledger: Where they are.
        media: The folder for pictures, recordings and files.
        namespaces: Where the conversations of a user go.
        redacts: Whether what looks like a secret is taken out before anything is stored.
        clock: What tells the time.
    """

    ledger: Ledger
    media: Path
    namespaces: NamespaceSettings
    redacts: bool
    clock: Callable[[], datetime]

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
        now = self.clock()
        user = checked_name(user, "a user") or DEFAULT_USER
        agent = checked_name(agent, "an agent")
        place = storable(namespace or conversations_of(self.namespaces, user))
        with self.ledger.transaction():
            name = self._new_name(place, now) if session_id is None else self.name_of(session_id)
            if self.ledger.sessions.find(place, name) is not None:
                raise UsageError(f"there is a session {name!r}", f"memctl session say {name} TEXT")
            session = Session(
                namespace=place,
                session_id=name,
                user_id=user,
                agent_id=agent,
                started_at=now,
                last_at=now,
                title=self.clean(title),
            )
            self.ledger.sessions.save(session)
        return session

    def find(
        self,
        session_id: str,
        *,
        namespace: str | None = None,
        user: str | None = None,
        sees: Callable[[str], bool] = lambda _: True,
    ) -> Session:
        """Return one conversation.

        Args:
            session_id: Its name.
            namespace: Where it is.
            user: Whose it is.
            sees: Whether what is in a namespace may be known; others are as if not there.

        Raises:
            NotFoundError: There is none of that name; says which there are.
            UsageError: Several namespaces have one of that name.
        """
        if user is not None and namespace is None:
            namespace = conversations_of(self.namespaces, user)
        named = self.ledger.sessions.find_by_name(self.name_of(session_id), namespace)
        found = [each for each in named if sees(each.namespace)]
        if len(found) > 1:
            where = ", ".join(each.namespace for each in found[:_MAX_NAMED])
            raise UsageError(
                f"several namespaces have a session {session_id!r}", f"say --namespace: {where}"
            )
        if not found:
            latest = (e for e in self.ledger.sessions.search(limit=-1) if sees(e.namespace))
            there = [each.session_id for each in islice(latest, _MAX_NAMED)]
            hint = f"memctl session start --id {session_id} begins it"
            if there:
                hint += f"; the latest are {', '.join(there)}"
            raise NotFoundError(f"there is no session {session_id!r}", hint)
        return found[0]

    def turns(
        self, session: Session, *, after: int = -1, last: int | None = None
    ) -> Sequence[Turn]:
        """Return the turns of a conversation in order: those after a number, or the last ones."""
        key = (session.namespace, session.session_id)
        if last is not None:
            return self.ledger.turns.last(key, last)
        return self.ledger.turns.of(key, after=after)

    def window(self, session: Session) -> Sequence[Turn]:
        """Return the turns that no summary stands for."""
        through = session.summarized_through
        return self.turns(session, after=-1 if through is None else through)

    def say(self, session: Session, messages: Sequence[Message]) -> Sequence[Turn]:
        """Add messages; they are on disk when this returns, and found by the next query.

        Raises:
            UsageError: One has neither words nor a file, is too long, was said more than a day
                from now, or its number is taken by other words.
            UnreadableSource: A file cannot be read.
            NotFoundError: The conversation has been forgotten meanwhile.
        """
        made = [self._turn(session, message) for message in messages]
        key = (session.namespace, session.session_id)
        with self.ledger.transaction():
            current = self.ledger.sessions.find(*key)
            if current is None:
                raise NotFoundError(f"the session {session.session_id!r} has been forgotten")
            number = self.ledger.turns.next_number(key)
            known_turns, new = [], []
            for message, turn in zip(messages, made, strict=True):
                known = self._known_turn(key, message, turn)
                if known is None:
                    at = number if message.turn is None else message.turn
                    number = max(number, at + 1)
                    known = replace(turn, turn=at)
                    self.ledger.turns.save(known)
                    new.append(known)
                known_turns.append(known)
            if new:
                self.ledger.sessions.save(with_turns(current, new))
        return known_turns

    def drop_media(
        self,
        session: str | None,
        namespace: str | None,
        before: datetime | None,
        sees: Callable[[str], bool],
    ) -> None:
        """Remove the copies of files that came with what is about to be forgotten alone.

        Args:
            session: Of this conversation.
            namespace: Of this namespace.
            before: What was said before that.
            sees: Whether what was said in a namespace may go.
        """
        if (session, namespace, before) == (None, None, None):
            return
        turns = self.ledger.turns
        found = turns.with_media(session, namespace, before)
        going = [turn for turn in found if sees(turn.namespace)]
        kept = {turn.media for turn in turns.with_media() if turn not in going}
        for turn in going:
            path = self.media.parent / turn.media
            if turn.media not in kept and path.parent == self.media:
                path.unlink(missing_ok=True)

    def end(self, session: Session) -> Session:
        """Record that a conversation is over.

        Raises:
            UsageError: It was before.
        """
        with self.ledger.transaction():
            current = self.reload(session)
            ended = replace(current, status="ended", ended_at=self.clock())
            self.ledger.sessions.save(ended)
        return ended

    def reload(self, session: Session) -> Session:
        """Return a conversation as the ledger has it now.

        Raises:
            UsageError: It has ended.
        """
        current = self.find(session.session_id, namespace=session.namespace)
        if current.ended_at is not None:
            raise UsageError(
                f"the session {current.session_id!r} has ended, on {current.ended_at:%Y-%m-%d}",
                "a message makes it go on: memctl session say",
            )
        return current

    # --- inside ---

    def name_of(self, session_id: str) -> str:
        """Return the name of a conversation as it is stored.

        Raises:
            UsageError: It is empty, or has characters that cannot be shown.
        """
        name = storable(session_id).strip()
        if not name or not name.isprintable():
            raise UsageError(f"{session_id[:40]!r} cannot be the name of a session")
        return redact_name(name) if self.redacts else name

    def _new_name(self, namespace: str, now: datetime) -> str:
        number = self.ledger.sessions.count()
        while True:
            said = f"{namespace}\0{now.isoformat()}\0{number}"
            name = f"{now:%Y%m%d-%H%M%S}-{hashlib.sha256(said.encode()).hexdigest()[:6]}"
            if not self.ledger.sessions.find_by_name(name):
                return name
            number += 1

    def clean(self, text: str) -> str:
        """Return a text as it is stored."""
        text = storable(text).replace("\0", "\ufffd")
        return redact_secrets(text) if self.redacts else text

    def clean_metadata(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return metadata as they are stored."""
        return redacted_metadata(metadata) if self.redacts else metadata

    def _turn(self, session: Session, message: Message) -> Turn:
        if not message.content.strip() and message.media is None:
            raise UsageError("the message is empty", "say something, or add a file with --file")
        if len(message.content.encode("utf-8", "replace")) > LONGEST_MESSAGE:
            raise UsageError(f"the message is longer than {LONGEST_MESSAGE >> 20} MiB")
        now = self.clock()
        if message.at is not None:
            require_said(message.at, now)
        external_id = message.external_id
        if external_id is not None and self.redacts:
            external_id = redact_name(external_id)
        place, sha256 = ("", "") if message.media is None else self._keep_file(message)
        type_ = message.message_type or (
            "text"
            if message.media is None
            else _MEDIA_TYPES.get(message.media.suffix.lower(), "file")
        )
        return Turn(
            namespace=session.namespace,
            session_id=session.session_id,
            turn=message.turn or 0,
            at=message.at or now,
            sender=self.clean(message.sender),
            content=self.clean(message.content),
            message_type=type_,
            media=place,
            media_sha256=sha256,
            external_id=external_id,
            memory_type=message.memory_type,
            title=self.clean(message.title),
            source=self.clean(message.source),
            tags=tuple(map(self.clean, message.tags)),
            metadata=self.clean_metadata(message.metadata),
            agent_id=session.agent_id,
        )

    def _known_turn(self, key: SessionKey, message: Message, turn: Turn) -> Turn | None:
        """Return the turn that a message is already, if the caller says which one it is.

        Raises:
            UsageError: That one says something else.
        """
        if message.external_id is not None:
            where = "namespace = ? AND session_id = ? AND external_id = ?"
            found = self.ledger.turns.select(where, *key, message.external_id, limit=1)
            known = found[0] if found else None
        elif message.turn is not None:
            known = self.ledger.turns.find(*key, message.turn)
        else:
            return None
        if known is not None and not is_same(known, turn):
            raise UsageError(
                f"turn {known.turn} of the session {key[1]!r} says something else already",
                "what was said stays; give it another number",
            )
        return known

    def _keep_file(self, message: Message) -> tuple[str, str]:
        """Copy a file to the others of the knowledge base; return where it is, and its hash."""
        path = message.media
        assert path is not None
        try:
            with open_regular(path) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                if message.links:
                    return storable(str(path.absolute())), sha256
                name = f"{sha256}{path.suffix.lower()}"
                target = self.media / name
                if not target.exists():
                    file.seek(0)
                    make_folder(self.media)
                    with atomic_write(target) as copy:
                        shutil.copyfileobj(file, copy)
        except OSError as error:
            raise UnreadableSource(
                f"cannot read {display_path(path)}: {os_error_reason(error)}", os_error_hint(error)
            ) from error
        return storable(str(Path(self.media.name) / name)), sha256


def is_worth_archiving(turns: Sequence[Turn], tokens: int, messages: int) -> bool:
    """Return whether messages are enough for a summary and a document of their own.

    Args:
        turns: Those that are no longer among the latest.
        tokens: With so many they are.
        messages: They are half as many as these, else.
    """
    if len(turns) >= max(1, messages // 2):
        return True
    return sum(estimate_tokens(turn.content) for turn in turns) > tokens


def with_turns(session: Session, turns: Iterable[Turn]) -> Session:
    """Return a conversation with some further turns; one that had ended goes on."""
    new = list(turns)
    at = [turn.at for turn in new]
    is_over = session.status in ("ended", "archived")
    status: SessionStatus = "open" if session.summarized_through is None else "compressed"
    return replace(
        session,
        status=status if is_over else session.status,
        ended_at=None,
        started_at=min([session.started_at, *at]),
        last_at=max([session.last_at, *at]) if session.message_count else max(at),
        message_count=session.message_count + len(new),
        token_count=session.token_count + sum(estimate_tokens(turn.content) for turn in new),
    )


def is_same(one: Turn, other: Turn) -> bool:
    """Return whether two turns say the same."""
    return (one.sender, one.content, one.media_sha256) == (
        other.sender,
        other.content,
        other.media_sha256,
    )
