"""What was said is taken over into the tables: many turns in one commit, as parts of a document.

One conversation is one document, and each time that turns are taken over it gets further parts.
The commit that has their rows is the one that notes in the ledger where they are: killed at any
step, a turn is in the tables once, or waits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError, UnreadableSource
from memctl.files import open_regular
from memctl.ids import document_id
from memctl.ingest.batches import IdentifiedSource, WantedSource
from memctl.ingest.discovery.sources import Source
from memctl.ingest.document_processing import MOST_READ_CLOSELY
from memctl.ingest.document_records import (
    BESIDE_THE_TALK,
    MOST_GIST_SOURCES,
    REPLYING,
    TRIGGERING,
)
from memctl.ingest.ingest_pipeline import UPKEEP_MEMORIES, IngestStopped
from memctl.language.inline_tags import without_inline_tags
from memctl.language.sentence_splitting import split_sentences
from memctl.literals import EXCHANGE, SESSION_READER, DocType
from memctl.readers.pieces import storable_text
from memctl.records import (
    AskedTurn,
    FileOutcome,
    KeptStatement,
    ProgressListener,
    Segment,
    SourceText,
)
from memctl.rows.references import in_portions
from memctl.rows.row_changes import set_columns
from memctl.store.ledger.session_repositories import Session, SessionKey, Turn
from memctl.store.tables.filter_expressions import col
from memctl.understanding.triggers import kept_statement, plain_words

if TYPE_CHECKING:
    from memctl.config import TriggerSettings
    from memctl.ingest.ingest_pipeline import Ingestor
    from memctl.readers import Readers
    from memctl.store.ledger.ledger import Ledger
    from memctl.store.store import Store
    from memctl.store.tables.snapshot import Snapshot

CONVERSATION: DocType = "conversation"
MAX_WHILE_READING = 2_000
"""A reader takes over at most this many turns; more are being imported."""
PART_TURNS = 64
PART_CHARS = 60_000
"""One part of a document has at most this many turns, or this much text."""
_TURNS_PER_BATCH = 20_000
"""Turns held in memory at a time."""
_ATTEMPTS = 5
_WRITER_SECONDS, _PAUSE = 3.0, 0.05
"""Seconds to wait for another writer, and between looks."""
_MEDIA_CHARS = 1_000_000
ECHO = "[…]"
"""In place of a turn that says nothing but what was put into its prompt; it has no word."""
_log = logging.getLogger(__name__)


class _AlreadyFolded(Exception):
    """Another process has taken these turns over, or they have been forgotten."""


class FoldedTurns(Struct, frozen=True):
    """What was taken over."""

    turns: int = 0
    memories: int = 0
    sessions: frozenset[SessionKey] = frozenset()
    waiting: int = 0
    """How many turns are still to be taken over."""

    def __add__(self, other: FoldedTurns) -> FoldedTurns:
        return FoldedTurns(
            self.turns + other.turns,
            self.memories + other.memories,
            self.sessions | other.sessions,
            other.waiting,
        )


class Folding(Struct, frozen=True):
    """Takes turns over into the tables of one knowledge base.

    Args:
        store: Its tables and ledger.
        ingestor: Gives what makes memories of texts.
        readers: Read pictures, recordings and files.
        folder: That of the knowledge base.
        triggers: Phrases by which a user has something kept.
    """

    store: Store
    ingestor: Callable[[], Ingestor]
    readers: Readers
    folder: Path
    triggers: TriggerSettings

    def before_reading(self) -> FoldedTurns:
        """Take over what was said last, so that it is found; goes on without where it cannot be."""
        turns = self.store.ledger.turns
        if not turns.has_pending() or not self.store.ledger.is_writable:
            return FoldedTurns()
        waiting = turns.count_pending()
        if waiting > MAX_WHILE_READING:
            _log.warning("%d turns are being taken in and not all found yet", waiting)
            return FoldedTurns(waiting=waiting)
        if not self._writer_is_gone():
            _log.warning("%d turns are not found yet: another process is writing", waiting)
            return FoldedTurns(waiting=waiting)
        try:
            return self.fold()
        except (MemctlError, OSError) as error:
            _log.warning("%d turns are not found yet: %s", waiting, error)
            return FoldedTurns(waiting=waiting)

    def fold(
        self, key: SessionKey | None = None, progress: ProgressListener | None = None
    ) -> FoldedTurns:
        """Take over all turns, or those of one conversation, that are not in the tables yet.

        Many are taken over in several runs, and indexed as those of one run would be.

        Raises:
            LockedError: Another process kept writing.
            ModelError: A model cannot be had that is to be waited for.
        """
        done, attempts, due = FoldedTurns(), 0, UPKEEP_MEMORIES

        def index_later() -> bool:
            """Return whether a later run indexes what this one brings, too."""
            return done.memories < due and bool(self.store.ledger.turns.pending(1, key))

        while pending := self.store.ledger.turns.pending(_TURNS_PER_BATCH, key):
            try:
                in_bulk = done.turns >= _TURNS_PER_BATCH
                folded = self._take_over(pending, progress, index_later, in_bulk=in_bulk)
                if done.memories >= due:
                    due = 2 * done.memories
                done += folded
                attempts = 0
            except IngestStopped as stopped:
                raise stopped.cause from stopped
            except _AlreadyFolded:
                attempts += 1
                if attempts >= _ATTEMPTS:
                    break
        if done.turns:
            self.ingestor().index_rest()
        return replace(done, waiting=self.store.ledger.turns.count_pending())

    def change(self, turns: Sequence[Turn], now: datetime) -> None:
        """Change what turns say: the former text becomes history, the new one waits.

        Args:
            turns: As they are now.
            now: Since when.
        """
        if not turns:
            return
        with self.store.write() as transaction:
            snapshot = transaction.snapshot()
            said: list[str] = []
            for turn in turns:
                where = (col("namespace") == turn.namespace) & (col("turn") == turn.turn)
                where &= (col("session_id") == turn.session_id) & col("valid_to").is_null()
                said += snapshot.scan("memories", where, ["id"])["id"].to_pylist()
            said += _exchanges_of(snapshot, said)
            set_columns(transaction, "memories", said, valid_to=now)
            transaction.ledger(lambda _: self.store.ledger.turns.save(*turns))

    def evidence_of(self, session: Session, summary: str) -> list[str]:
        """Return the ids of the turns that a summary of a conversation has sentences of."""
        where = (col("namespace") == session.namespace) & col("valid_to").is_null()
        where &= (col("session_id") == session.session_id) & (col("type") == "turn")
        rows = self.store.snapshot().scan("memories", where, ["id", "text", "turn"]).to_pylist()
        rows.sort(key=lambda row: (row["turn"] or 0, row["id"]))
        said = plain_words(summary)
        found = [row["id"] for row in rows if _has_sentence_of(said, row["text"])]
        return found[:MOST_GIST_SOURCES] or [row["id"] for row in rows[:1]]

    def recover_lost(self) -> None:
        """Let go of conversations of which nothing is left after older things were forgotten.

        Turns that stayed though their document went are taken over again.
        """
        self.store.ledger.sessions.drop_empty()
        turns = self.store.ledger.turns
        noted, there = turns.documents(), set[str]()
        snapshot = self.store.snapshot()
        for some in in_portions(sorted(noted)):
            there.update(snapshot.get("documents", some, ["id"])["id"].to_pylist())
        turns.detach_documents(sorted(noted - there))

    # --- inside ---

    def _writer_is_gone(self) -> bool:
        """Give another writer a moment to finish."""
        until = time.monotonic() + _WRITER_SECONDS
        while self.store.writer() is not None:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)
        return True

    def _take_over(
        self,
        pending: Sequence[Turn],
        progress: ProgressListener | None,
        index_later: Callable[[], bool],
        *,
        in_bulk: bool,
    ) -> FoldedTurns:
        groups = list(_group_turns(pending))
        sizes = Counter(map(document_of, pending))
        numbers = self._next_parts(set(sizes))
        parts = []
        for place, turns in enumerate(groups):
            root = document_of(turns[0])
            part = self._part(turns, root, numbers[root], place)
            parts.append(replace(part, in_bulk=in_bulk or sizes[root] > MOST_READ_CLOSELY))
            numbers[root] += 1

        def note(outcomes: Iterable[FileOutcome]) -> None:
            """Record with the commit itself which turns are in the tables."""
            taken = [
                replace(turn, document_id=outcome.document_id)
                for outcome in outcomes
                if outcome.line is not None
                for turn in groups[outcome.line]
            ]
            if self.store.ledger.turns.note_documents(taken) != len(taken):
                raise _AlreadyFolded

        report = self.ingestor().add_parts(parts, note, progress, turns_follow=index_later)
        keys = frozenset((turn.namespace, turn.session_id) for turn in pending)
        return FoldedTurns(len(pending), report.memories, keys)

    def _next_parts(self, roots: set[str]) -> dict[str, int]:
        """Return the number of the part that comes next, for each document."""
        numbers = dict.fromkeys(roots, 0)
        snapshot = self.store.snapshot()
        for some in in_portions(sorted(roots)):
            where = col("root_id").is_in(some)
            for row in snapshot.scan("documents", where, ["root_id", "part"]).to_pylist():
                numbers[row["root_id"]] = max(numbers[row["root_id"]], row["part"] + 1)
        return numbers

    def _part(self, turns: Sequence[Turn], root: str, number: int, place: int) -> WantedSource:
        first = turns[0]
        fresh = [
            replace(turn, content=new) for turn, new in zip(turns, self._new_in(turns), strict=True)
        ]
        text = text_of(fresh, self._read, self._kept_statements(turns))
        text = replace(text, part=number, asked=self._preceding_question(first))
        source = Source(
            source=first.source or source_of(first.session_id),
            namespace=first.namespace,
            title=first.title,
            created_at=first.at,
            session_id=first.session_id,
            tags=first.tags,
            metadata=first.metadata,
            doc_type=CONVERSATION,
            agent_id=first.agent_id,
            line=place,
            texts=(text,),
        )
        content = text.text.encode("utf-8", "replace")
        digest = hashlib.sha256(content).hexdigest()
        item = IdentifiedSource(source, digest, len(content), f"{root}.{number}")
        return WantedSource(item, root, adds=True)

    def kept_statement(self, turn: Turn) -> KeptStatement | None:
        """Return what is kept of a turn because its user asks for it; None for nothing."""
        if turn.sender not in TRIGGERING:
            return None
        earlier = (each.content for each in self._earlier_messages(turn))
        return kept_statement(turn.content, earlier, self.triggers)

    def _earlier_messages(self, turn: Turn) -> Iterator[Turn]:
        """Yield the turns before one, the latest first."""
        before = self._previous(turn)
        while before is not None:
            yield before
            before = self._previous(before)

    def _kept_statements(self, turns: Sequence[Turn]) -> list[KeptStatement | None]:
        """Return what each turn of a part keeps."""
        kept = [self.kept_statement(turn) for turn in turns]
        for place, statement in enumerate(kept):
            if statement is not None and statement.from_previous and statement.steps > place:
                before = next(
                    islice(self._earlier_messages(turns[0]), statement.steps - place - 1, None)
                )
                kept[place] = replace(statement, evidence=self._evidence(before))
        return kept

    def _preceding_question(self, turn: Turn) -> AskedTurn | None:
        """Return the message of a user that a part may begin with the reply to."""
        if turn.sender not in REPLYING | BESIDE_THE_TALK:
            return None
        asked = self._previous(turn, "AND sender NOT IN ('tool', 'system')")
        if asked is None or asked.sender not in TRIGGERING:
            return None
        [new] = self._new_in([asked])
        said = f"{asked.sender}: {new.strip()}"
        return AskedTurn(asked.turn, said, self._evidence(asked))

    def _previous(self, turn: Turn, condition: str = "") -> Turn | None:
        where = f"namespace = ? AND session_id = ? AND turn < ? {condition}"
        key = (turn.namespace, turn.session_id, turn.turn)
        found = self.store.ledger.turns.select(where, *key, order="turn DESC", limit=1)
        return found[0] if found else None

    def _evidence(self, turn: Turn) -> tuple[str, ...]:
        """Return the ids of the memories that a turn is in the tables."""
        where = (col("namespace") == turn.namespace) & (col("session_id") == turn.session_id)
        where &= (col("turn") == turn.turn) & (col("level") == "evidence")
        where &= col("valid_to").is_null()
        return tuple(self.store.snapshot().scan("memories", where, ["id"])["id"].to_pylist())

    def _new_in(self, turns: Sequence[Turn]) -> list[str]:
        """Return what each turn says without what was put into its prompt from memory."""
        return [
            new if new.strip() or not turn.content.strip() else ECHO
            for turn, new in zip(turns, without_echoes(self.store.ledger, turns), strict=True)
        ]

    def _read(self, turn: Turn) -> tuple[str, Sequence[str]]:
        """Return what is in the file of a turn, and what of it could not be read."""
        path = self.folder / turn.media
        name = Path(turn.media).name
        texts: list[str] = []
        missing: dict[str, None] = {}
        try:
            with open_regular(path) as file:  # an import may name any file
                if hashlib.file_digest(file, "sha256").hexdigest() != turn.media_sha256:
                    raise UnreadableSource("it is not the file any more that was added")
            for text in self.readers.read(path, name=name):
                texts.append(text.text)
                missing |= dict.fromkeys(text.missing)
                if sum(map(len, texts)) >= _MEDIA_CHARS:
                    break
        except (UnreadableSource, OSError) as error:
            _log.warning("%s of the session %s: %s", name, turn.session_id, error)
            missing["text"] = None
        return storable_text("\n".join(texts)[:_MEDIA_CHARS]).strip(), tuple(missing)


MediaReader = Callable[[Turn], tuple[str, Sequence[str]]]
"""Gives what is in the file of a turn, and what of it could not be read."""


def text_of(
    turns: Sequence[Turn],
    read: MediaReader | None = None,
    statements: Sequence[KeptStatement | None] = (),
) -> SourceText:
    """Lay turns one after the other; who says each, and what is kept, stands with its segment."""
    pieces: list[str] = []
    segments: list[Segment] = []
    missing: dict[str, None] = {}
    length = 0
    for turn, statement in zip_longest(turns, statements):
        text = storable_text(turn.content).strip()
        if turn.media and read is not None:
            media_text, lacks = read(turn)
            text = f"{text}\n{media_text}".strip()
            missing |= dict.fromkeys(lacks)
        segments.append(
            Segment(
                length,
                length + len(text),
                "turn",
                speaker=turn.sender or None,
                said_at=turn.at,
                turn=turn.turn,
                external_id=turn.external_id,
                type=turn.memory_type,
                kept=statement,
            )
        )
        pieces.append(f"{text}\n\n")
        length += len(pieces[-1])
    return SourceText(
        "".join(pieces),
        "text/plain",
        SESSION_READER,
        segments=tuple(segments),
        missing=tuple(missing),
    )


def _has_sentence_of(text: str, turn: str) -> bool:
    turn = without_inline_tags(turn)
    sentences = (plain_words(turn[start:end]) for start, end in split_sentences(turn))
    return any(words and words in text for words in sentences)


def _exchanges_of(snapshot: Snapshot, turns: Sequence[str]) -> list[str]:
    """Return the ids of exchanges that some turns take part in."""
    where = (col("type") == EXCHANGE) & col("valid_to").is_null()
    rows = snapshot.scan("memories", where, ["id", "source_ids"]).to_pylist()
    gone = frozenset(turns)
    return [row["id"] for row in rows if not gone.isdisjoint(row["source_ids"])]


def document_of(turn: Turn) -> str:
    """Return the id of the document that a conversation is."""
    return session_document(turn.namespace, turn.session_id)


def session_document(namespace: str, session_id: str) -> str:
    """Return the id of the document that a conversation is."""
    return document_id(namespace, "", external_id=source_of(session_id))


def source_of(session_id: str) -> str:
    """Return what a conversation is called as a source."""
    return f"session:{session_id}"


def _group_turns(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Put turns together that follow each other in one conversation and are labelled alike."""
    group: list[Turn] = []
    size = 0
    for turn in turns:
        is_full = len(group) >= PART_TURNS or size + len(turn.content) > PART_CHARS
        if group and (is_full or _labels(group[0]) != _labels(turn)):
            yield group
            group, size = [], 0
        group.append(turn)
        size += len(turn.content)
    if group:
        yield group


def _labels(turn: Turn) -> tuple[str, ...]:
    metadata: Mapping[str, object] = turn.metadata
    agent = turn.agent_id or ""
    stored = json.dumps(metadata, sort_keys=True, default=str) if metadata else ""
    return (turn.namespace, turn.session_id, turn.source, turn.title, agent, *turn.tags, stored)


# --- what comes back from a prompt ----------------------------------------------------------------

REMEMBERED = timedelta(days=30)
"""How long what was put into a prompt may come back."""
SHORTEST = 24
"""Characters; what is shorter is said by chance."""
_MARK = re.compile(r"\s*(?:[-*>•]\s+)*(?P<number>\[\d+\]\s*)?(?:\([^()\n]{4,40}\):?\s*)?")
_SPEAKER = re.compile(r"[^\W\d_][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}: ")
_WORD = re.compile(r"\w+")


def note_injected(ledger: Ledger, text: str, at: datetime) -> None:
    """Record that a text goes into a prompt; does nothing where this process may only read."""
    lines = text.splitlines(keepends=True)
    digests = {_digest(said) for line in lines for _, _, said in _sentences(line)}
    if digests and ledger.is_writable:
        ledger.injected.note(sorted(digests), at)


def without_echoes(ledger: Ledger, turns: Sequence[Turn]) -> list[str]:
    """Return what each turn says without what comes from memory, which is no new evidence.

    Each sentence of a text that goes into a prompt is noted as a hash, and a sentence with one of
    these hashes is left out; of what a user says, only where it is marked as cited.
    """
    said = [_digests(turn.content) for turn in turns]
    times = ledger.injected.times_of(set[str]().union(*said))
    return [
        _without_known(turn, {each for each in digests & times.keys() if times[each] >= since})
        for turn, digests in zip(turns, said, strict=True)
        for since in [turn.at - REMEMBERED]
    ]


def _digests(text: str) -> set[str]:
    lines = text.splitlines(keepends=True)
    return {_digest(said) for line in lines for _, _, said in _sentences(line)}


def _without_known(turn: Turn, known: Collection[str]) -> str:
    if not known:
        return turn.content
    by_user = turn.sender in TRIGGERING
    return "".join(
        _without_echoes(line, lambda said: _digest(said) in known, by_user)
        for line in turn.content.splitlines(keepends=True)
    )


def _without_echoes(line: str, is_known: Callable[[str], bool], by_user: bool) -> str:
    mark = _MARK.match(line)
    if by_user and not (mark and mark["number"]):
        return line
    sentences = list(_sentences(line))
    echoes = [(start, end) for start, end, said in sentences if is_known(said)]
    if not echoes:
        return line
    if len(echoes) == len(sentences):
        return ""
    kept, position = "", 0
    for start, end in echoes:
        kept += line[position:start]
        position = end
    return kept + line[position:]


def _sentences(line: str) -> Iterator[tuple[int, int, str]]:
    """Yield where the sentences of a line stand, without the mark before the first one."""
    mark = _MARK.match(line)
    begin = mark.end() if mark else 0
    if speaker := _SPEAKER.match(line, begin):
        begin = speaker.end()
    for start, end in split_sentences(line[begin:].rstrip()):
        said = line[begin + start : begin + end]
        if len(said) >= SHORTEST:
            yield begin + start, begin + end, said


def _digest(text: str) -> str:
    words = " ".join(_WORD.findall(text.casefold()))
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=12).hexdigest()
