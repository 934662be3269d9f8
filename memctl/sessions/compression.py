"""Long conversations are summarised, but for their latest messages, and archived as documents.

The turns stay in the tables as evidence.  The commit that has the archive document is the one that
moves the window: killed at any step, some turns are archived once, or not yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.ingest.discovery.sources import Source
from memctl.literals import ARCHIVED, SUMMARY_HEADINGS, SessionStatus
from memctl.models.protocols import Understander, estimate_tokens
from memctl.records import FileOutcome, Metadata, Understanding
from memctl.rows.row_changes import set_columns
from memctl.sessions.conversations import Conversations
from memctl.sessions.folding import CONVERSATION, Folding, session_document, source_of, text_of
from memctl.store.ledger.session_repositories import Session, Turn
from memctl.understanding.sentence_reading import bare_turn
from memctl.understanding.triggers import detect_trigger, plain_words, with_kept

if TYPE_CHECKING:
    from memctl.config import CompressionSettings
    from memctl.ingest.ingest_pipeline import Ingestor

_MAX_STATEMENTS = 12
_MAX_KEPT, _MAX_GIST_LINES = 24, 12
"""Of a summary that earlier ones go into: the latest statements of a type, lines of the gist."""
_MAX_NAMES = 20
_TRAILING_TOPICS = re.compile(r"\s\([^()]*\)\s*$")
"""What a gist names besides at the end of a line."""
_SHORTEST_LINE = 20
"""Characters of a line of a summary, with who says it; what is shorter says nothing alone."""


class Compression(Struct, frozen=True):
    """What came of compressing a conversation."""

    session_id: str
    namespace: str
    messages: int
    """How many messages are summarised now that were not before."""
    kept: int
    """How many stay as they are in the window of recent ones."""
    summary: str
    document_id: str | None = None
    """The archive document, where one was written."""
    dry_run: bool = False


class _Digest(Struct, frozen=True):
    """What some turns come to."""

    turns: Sequence[Turn]
    understood: Understanding
    former: str = ""
    """The summary of what came before them."""

    def statements(self, type_: str) -> list[str]:
        """Return what of a type was said, each once, in order, without what was withdrawn later."""
        valid = [each for each in self._said(type_) if not self._is_withdrawn(each, type_)]
        return valid[:_MAX_STATEMENTS]

    def _said(self, type_: str) -> list[str]:
        said = (each.text for each in self.understood.distilled if each.type == type_)
        return list(dict.fromkeys(map(bare_turn, said)))

    def _is_withdrawn(self, statement: str, type_: str) -> bool:
        """Return whether a decision or plan is withdrawn in a turn after the one that has it."""
        from memctl.search.answering.evidence_sentences import is_withdrawn

        if type_ not in ("decision", "plan"):
            return False
        said = [turn.content for turn in self.turns]
        at = next((at for at, each in enumerate(said) if statement in each), -1)
        return is_withdrawn(statement, said[at + 1 :])

    @property
    def gist(self) -> str:
        """Return the gist, what each says on a line, without what stands among the statements."""
        speakers = "|".join(sorted({re.escape(turn.sender) for turn in self.turns if turn.sender}))
        lines = re.split(rf"\s(?=(?:{speakers}): )", self.understood.gist.strip())
        stated = [plain_words(said) for type_ in SUMMARY_HEADINGS for said in self._said(type_)]
        return "\n".join(
            line
            for line in lines
            if not detect_trigger(line.partition(": ")[2]).reference_previous
            and len(words := plain_words(_TRAILING_TOPICS.sub("", line))) >= _SHORTEST_LINE
            and not any(said in words for said in stated)
        )

    @property
    def summary(self) -> str:
        """Return the summary as text: the gist, then what was decided, planned and stated.

        What the former summary says stands before it, as it is.
        """
        former = _sections(self.former)
        lists: list[str] = []
        for type_, heading in SUMMARY_HEADINGS.items():
            before = [
                each
                for each in former.pop(heading, ())
                if not self._is_withdrawn(each.removeprefix("- "), type_)
            ]
            said = [*before, *(f"- {each}" for each in self.statements(type_))]
            if kept := list(dict.fromkeys(said))[-_MAX_KEPT:]:
                lists.append("\n".join([f"{heading}:", *kept]))
        gist = [*former.get("", ()), *self.gist.splitlines()]
        gist = gist or ([] if lists else self.understood.gist.strip().splitlines())
        return "\n\n".join(filter(None, ("\n".join(gist[-_MAX_GIST_LINES:]), *lists)))

    def metadata(self, session: Session, now: datetime) -> Metadata:
        """Return what the archive document says of itself."""
        return {
            "type": CONVERSATION,
            "session_id": session.session_id,
            "agent_id": session.agent_id,
            "topics": list(self.understood.topics),
            "entities": [each.name for each in self.understood.entities[:_MAX_NAMES]],
            "decisions": self.statements("decision"),
            "message_count": len(self.turns),
            "compression_date": now.isoformat(),
            "date_range": {
                "start": self.turns[0].at.isoformat(),
                "end": self.turns[-1].at.isoformat(),
            },
        }

    def markdown(self, title: str, document: str) -> str:
        """Return the text of the archive document; the turns themselves stand where they are."""
        names = [each.name for each in self.understood.entities[:_MAX_NAMES]]
        statements: list[str] = []
        for type_, heading in SUMMARY_HEADINGS.items():
            if said := self.statements(type_):
                statements += [f"## {heading}", "\n".join(f"- {each}" for each in said)]
        gist = self.gist or ("" if statements else self.understood.gist.strip())
        parts = [f"# {title}", *(("## Summary", gist) if gist else ()), *statements]
        if self.understood.topics:
            parts += ["## Topics", ", ".join(self.understood.topics)]
        if names:
            parts += ["## People and things", ", ".join(names)]
        first, last = self.turns[0].turn, self.turns[-1].turn
        parts += ["## Turns", f"{first} to {last} of {document}"]
        return "\n\n".join(part for part in parts if part)


class Compressor(Struct, frozen=True):
    """Summarises and archives the conversations of one knowledge base.

    Args:
        conversations: Where they are.
        folding: Takes their turns over into the tables.
        ingestor: Gives what writes the archive documents.
        understander: Gives what understands texts of a namespace: built in, or a model.
        settings: How much stays.
        clock: What tells the time.
    """

    conversations: Conversations
    folding: Folding
    ingestor: Callable[[], Ingestor]
    understander: Callable[[str], Understander]
    settings: CompressionSettings
    clock: Callable[[], datetime]

    def compress(
        self, session: Session, *, keep: int | None = None, dry_run: bool = False
    ) -> Compression:
        """Summarise all but the latest messages, and archive the summary where that is wanted.

        Args:
            session: Which conversation.
            keep: How many messages stay; by default as configured.
            dry_run: Whether nothing is written.

        Raises:
            LockedError: Another process kept writing.
            ModelError: A model cannot be had that is to be waited for.
        """
        kept = self.settings.recent_messages_to_keep if keep is None else keep
        if not dry_run:
            self.folding.fold((session.namespace, session.session_id))
        session = self.conversations.find(session.session_id, namespace=session.namespace)
        window = self.conversations.window(session)
        old = window[: max(0, len(window) - kept)]
        if not old:
            return Compression(
                session.session_id, session.namespace, 0, len(window), session.summary,
                dry_run=dry_run,
            )  # fmt: skip
        digest = self._digest(session, old)
        made = Compression(
            session.session_id,
            session.namespace,
            len(old),
            len(window) - len(old),
            digest.summary,
            dry_run=dry_run,
        )
        return made if dry_run else self._write(session, digest, made)

    def close(self, session: Session, status: SessionStatus = "ended") -> Session:
        """Give a conversation that is over its title, and a summary where it has none.

        Returns:
            The conversation as it is then.
        """
        key = (session.namespace, session.session_id)
        self.folding.fold(key)
        turns = self.conversations.turns(session)
        if not turns:
            return session
        title = session.title or title_of(turns)
        through = -1 if session.summarized_through is None else session.summarized_through
        newer = [turn for turn in turns if turn.turn > through or not session.summary]
        summary = self._digest(session, newer).summary if newer else session.summary
        now = self.clock()
        document = session_document(*key)
        with self.folding.store.write() as transaction:
            there = transaction.snapshot().get("documents", [document], ["id"])["id"].to_pylist()
            set_columns(transaction, "documents", there, title=title)
            done: list[Session] = []

            def note(_: object) -> None:
                """Record it with the commit itself."""
                current = self.conversations.find(session.session_id, namespace=key[0])
                ended = current.ended_at or now
                done.append(
                    replace(current, title=title, summary=summary, status=status, ended_at=ended)
                )
                self.conversations.ledger.sessions.save(done[0])

            transaction.ledger(note)
        return done[0]

    # --- inside ---

    def _digest(self, session: Session, turns: Sequence[Turn]) -> _Digest:
        """Understand some turns, which come after what was summarised before."""
        text = text_of(turns, statements=[self.folding.kept_statement(turn) for turn in turns])
        understood = self.understander(session.namespace).understand([text])[0]
        former = session.summary if session.summarized_through is not None else ""
        return _Digest(turns, with_kept(text, understood), former)

    def _write(self, session: Session, digest: _Digest, compression: Compression) -> Compression:
        def note(outcomes: Iterable[FileOutcome]) -> None:
            """Move the window, in the very commit that has the archive document."""
            if any(each.outcome == "failed" for each in outcomes):
                return
            self._move_window(session, digest)

        if not self.settings.archive_to_knowledge_base:
            self._move_window(session, digest)
            return compression
        source = self._archive(session, digest)
        report = self.ingestor().ingest([source], on_commit=note)
        outcome = report.outcomes[0]
        if outcome.outcome == "known":  # it was archived, and its window put back
            self._move_window(session, digest)
        return replace(compression, document_id=outcome.document_id)

    def _archive(self, session: Session, digest: _Digest) -> Source:
        first, last = digest.turns[0], digest.turns[-1]
        title = title_of(digest.turns)
        name = source_of(session.session_id)
        document = session_document(session.namespace, session.session_id)
        return Source(
            source=name,
            text=digest.markdown(title, document),
            external_id=f"{name}:{first.turn}-{last.turn}",
            namespace=session.namespace,
            title=title,
            created_at=last.at,
            session_id=session.session_id,
            type=ARCHIVED,
            doc_type=CONVERSATION,
            agent_id=session.agent_id,
            metadata=digest.metadata(session, self.clock()),
        )

    def _move_window(self, session: Session, digest: _Digest) -> None:
        with self.conversations.ledger.transaction():
            current = self.conversations.find(session.session_id, namespace=session.namespace)
            through = digest.turns[-1].turn
            rest = self.conversations.turns(current, after=through)
            moved = replace(
                current,
                status="compressed" if current.status == "open" else current.status,
                summary=digest.summary,
                summarized_through=through,
                token_count=sum(estimate_tokens(turn.content) for turn in rest),
            )
            self.conversations.ledger.sessions.save(moved)


def title_of(turns: Sequence[Turn]) -> str:
    """Return what a conversation is called by its first and last day, or its only one."""
    start, end = min(turn.at for turn in turns), max(turn.at for turn in turns)
    days = dict.fromkeys((f"{start:%Y-%m-%d}", f"{end:%Y-%m-%d}"))
    return f"Session {' - '.join(days)}"


def _sections(summary: str) -> dict[str, list[str]]:
    """Return the lines of a summary by the heading above them; those of the gist by ""."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in filter(None, summary.splitlines()):
        if line.removesuffix(":") in SUMMARY_HEADINGS.values() and line.endswith(":"):
            heading = line.removesuffix(":")
        else:
            found.setdefault(heading, []).append(line)
    return found
