"""Many messages at once, such as JSON lines with a session id, become turns of conversations.

What is there already is known by its id, by its number in the conversation, else by its words and
how often they were said, so that the same lines, or more of a file that has grown, can come again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import AccessRefused, MemctlError, UsageError
from memctl.identity import DEFAULT_USER, owner_of, require_seen
from memctl.ids import private_agent
from memctl.ingest.batches import known_outcome
from memctl.ingest.discovery.sources import Source, SourceOrFailure
from memctl.records import FileOutcome, IngestReport
from memctl.sessions.conversations import Conversations, with_turns
from memctl.sessions.folding import CONVERSATION, FoldedTurns, document_of
from memctl.store.ledger.session_repositories import Session, SessionKey, Turn
from memctl.understanding.text_outline import speaker_of

if TYPE_CHECKING:
    from memctl.config import Config

LINES_TOGETHER = 2_000
"""Lines that are written to the ledger in one step."""
_PASSAGE = "passage"
"""The type of a line that is a document, though it names a conversation."""


class _SessionTurns(Struct):
    """What a conversation has already."""

    session: Session
    number: int
    by_number: dict[int, bytes] = field(default_factory=dict)
    by_id: dict[str, int] = field(default_factory=dict)
    """The numbers of turns by the ids that they were given."""
    unclaimed: dict[bytes, list[tuple[int, datetime]]] = field(default_factory=dict)
    """Turns without an id by what they say: each is claimed by one line at most."""

    def add(self, turn: Turn, *, is_claimed: bool) -> None:
        """Record a turn."""
        digest = _digest(turn)
        self.number = max(self.number, turn.turn + 1)
        self.by_number[turn.turn] = digest
        if turn.external_id is not None:
            self.by_id[turn.external_id] = turn.turn
        elif not is_claimed:
            self.unclaimed.setdefault(digest, []).append((turn.turn, turn.at))

    def claim(self, turn: Turn, at: datetime | None) -> bool:
        """Return whether something says this already, and let nothing else be known by it."""
        found = self.unclaimed.get(_digest(turn), [])
        for place, (_, said_at) in enumerate(found):
            if at is None or at == said_at:
                del found[place]
                return True
        return False


class WritableLines(Struct):
    """A run of sources, of which lines fail that name a namespace of another user or agent.

    Args:
        sources: The sources.
        config: Says who adds them.
    """

    sources: Iterator[SourceOrFailure]
    config: Config
    next: Source | None = None
    """The line that the last part ended before: its namespace has to be made private first."""
    _failures: dict[str, MemctlError | None] = field(default_factory=dict)
    """Why lines of a namespace fail; None where they don't."""

    def all(self) -> Iterator[SourceOrFailure]:
        """Yield all sources that are left, and outcomes of lines that fail."""
        for source in self.sources:
            if isinstance(source, FileOutcome):
                yield source
            else:
                error = self._error(source)
                yield source if error is None else _refusal(source, error)

    def part(self, private: Collection[str]) -> Iterator[SourceOrFailure]:
        """Yield what comes before a line that an agent keeps to itself, but for these namespaces.

        The part after that begins with it.
        """
        before, self.next = self.next, None
        if before is not None:
            error = self._error(before)
            yield before if error is None else _refusal(before, error)
        for source in self.all():
            if isinstance(source, Source) and source.line is not None:
                is_kept = private_agent(source.namespace) is not None
                if is_kept and source.namespace not in private:
                    self.next = source
                    return
            yield source

    def refuse(self, namespace: str, error: MemctlError) -> None:
        """Let lines of a namespace fail."""
        self._failures[namespace] = error

    def _error(self, source: Source) -> MemctlError | None:
        if source.line is None:
            return None
        if source.namespace not in self._failures:
            self._failures[source.namespace] = None
            try:
                require_seen(self.config, source.namespace)
            except AccessRefused as error:
                self._failures[source.namespace] = error
        return self._failures[source.namespace]


class TurnLines(Struct):
    """Takes turns out of a run of sources, and adds them to their conversations.

    The work on the sources begins when this is made.

    Args:
        conversations: Where they go.
        dry_run: Whether nothing is written, and new turns go on with the other sources.
    """

    conversations: Conversations
    dry_run: bool = False
    added: int = 0
    changed: list[Turn] = field(default_factory=list)
    """Turns of the ledger that say something else now, as they are: see ``Folding.change``."""
    _sessions: dict[SessionKey, _SessionTurns] = field(default_factory=dict)
    _looked_at: set[SessionKey] = field(default_factory=set)
    """Conversations that nobody else can have added to since they were looked at."""
    _started: float = field(default_factory=time.monotonic)

    def divert(self, sources: Iterable[SourceOrFailure]) -> Iterator[SourceOrFailure]:
        """Yield the sources that are no turns, and outcomes of turns that are there already."""
        held: list[Source] = []
        for source in sources:
            if isinstance(source, FileOutcome) or not _is_turn(source):
                yield source
                continue
            held.append(source)
            if len(held) >= LINES_TOGETHER:
                yield from self._take(held)
                held = []
        yield from self._take(held)

    def extend_report(self, report: IngestReport, folded: FoldedTurns) -> IngestReport:
        """Return the report of the other sources with the turns in it."""
        return replace(
            report,
            ingested=report.ingested + self.added + len(self.changed),
            superseded=report.superseded + len(self.changed),
            memories=report.memories + folded.memories,
            seconds=time.monotonic() - self._started,
            sessions=self.sessions,
        )

    @property
    def sessions(self) -> tuple[str, ...]:
        """The names of the conversations that the turns belong to."""
        return tuple(dict.fromkeys(session for _, session in self._sessions))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of those conversations."""
        return tuple(dict.fromkeys(namespace for namespace, _ in self._sessions))

    # --- inside ---

    def _take(self, sources: Sequence[Source]) -> Iterator[SourceOrFailure]:
        if not sources:
            return
        ledger = self.conversations.ledger
        outcomes: list[SourceOrFailure] = []
        if self.dry_run:
            for source in sources:
                outcomes += self._judge(source, [])
            yield from outcomes
            return
        with ledger.transaction():
            self._looked_at.clear()
            new: list[Turn] = []
            for source in sources:
                outcomes += self._judge(source, new)
            ledger.turns.save(*new)
            self._continue(new)
        self.added += len(new)
        yield from outcomes

    def _continue(self, new: Sequence[Turn]) -> None:
        by_session: dict[SessionKey, list[Turn]] = {}
        for turn in new:
            by_session.setdefault((turn.namespace, turn.session_id), []).append(turn)
        for key, turns in by_session.items():
            known = self._sessions[key]
            known.session = with_turns(known.session, turns)
            title = known.session.title or next((t.title for t in turns if t.title), "")
            known.session = replace(known.session, title=title)
            self.conversations.ledger.sessions.save(known.session)

    def _judge(self, source: Source, new: list[Turn]) -> list[SourceOrFailure]:
        """Record a turn that is new; return the outcome of one that is known."""
        try:
            turn = self._turn(source)
        except UsageError as error:
            return [_refusal(source, error)]
        session_turns = self._of(turn)
        if turn.external_id is not None:
            number = session_turns.by_id.get(turn.external_id)
            if number is not None and session_turns.by_number[number] == _digest(turn):
                return [known_outcome(source, document_of(turn))]
            if number is not None:
                changed = replace(turn, turn=number)
                self.changed.append(changed)
                session_turns.add(changed, is_claimed=True)
                return [source] if self.dry_run else []
        elif source.turn is not None:
            if session_turns.by_number.get(source.turn) == _digest(turn):
                return [known_outcome(source, document_of(turn))]
        elif session_turns.claim(turn, source.created_at):
            return [known_outcome(source, document_of(turn))]
        is_free = source.turn is not None and source.turn not in session_turns.by_number
        place = source.turn if is_free and source.turn is not None else session_turns.number
        turn = replace(turn, turn=place)
        session_turns.add(turn, is_claimed=True)
        new.append(turn)
        return [source] if self.dry_run else []

    def _turn(self, source: Source) -> Turn:
        clean = self.conversations.clean
        text = clean(source.text).strip()
        return Turn(
            namespace=source.namespace,
            session_id=self.conversations.name_of(source.session_id or ""),
            turn=source.turn or 0,
            at=source.created_at or self.conversations.clock(),
            sender=clean(source.speaker or speaker_of(text) or ""),
            content=text,
            external_id=source.external_id,
            memory_type=source.type or "turn",
            title=clean(source.title),
            source=clean(source.source),
            tags=tuple(map(clean, source.tags)),
            metadata=self.conversations.clean_metadata(source.metadata),
            agent_id=source.agent_id,
        )

    def _of(self, turn: Turn) -> _SessionTurns:
        """Return what a conversation has; looks again where another process has added to it."""
        key = (turn.namespace, turn.session_id)
        ledger, cached = self.conversations.ledger, self._sessions.get(key)
        if cached is not None and key in self._looked_at:
            return cached
        self._looked_at.add(key)
        current = None if self.dry_run and cached else ledger.sessions.find(*key)
        if cached is not None and (
            current is None or current.message_count == cached.session.message_count
        ):
            return cached
        session = current or Session(
            namespace=turn.namespace,
            session_id=turn.session_id,
            user_id=owner_of(self.conversations.namespaces, turn.namespace) or DEFAULT_USER,
            started_at=turn.at,
            last_at=turn.at,
            agent_id=turn.agent_id,
        )
        fresh = _SessionTurns(session, 0)
        for stored in ledger.turns.of(key) if current is not None else ():
            fresh.add(stored, is_claimed=cached is not None and stored.turn in cached.by_number)
        self._sessions[key] = fresh
        return fresh


def _is_turn(source: Source) -> bool:
    """Return whether a source is a message of a conversation."""
    return (
        source.path is None
        and not source.texts
        and source.line is not None
        and bool(source.session_id)
        and source.type != _PASSAGE
        and source.doc_type in (None, CONVERSATION)
    )


def _digest(turn: Turn) -> bytes:
    """Return what tells what is said, and by whom."""
    said = f"{turn.sender}\0{turn.content}\0{turn.media_sha256}".encode("utf-8", "replace")
    return hashlib.blake2b(said, digest_size=16).digest()


def _refusal(source: Source, error: MemctlError) -> FileOutcome:
    return FileOutcome(
        source.source,
        "failed",
        reason=f"{source.source}, line {source.line}: {error.message}",
        hint=error.hint,
        line=source.line,
        error=type(error).__name__,
    )
