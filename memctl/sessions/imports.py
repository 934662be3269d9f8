"""Files of conversations become sources, one for each message, as JSON lines give them.

Exports of chat programs, transcripts of agents and chats written down as text are read by the
readers; lists of messages as model APIs take them (``role``, ``content``) are read here.  Knows
nothing of the ledger.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import MemctlError, UnreadableSource
from memctl.ids import storable
from memctl.ingest.discovery.ingest_inputs import from_jsonl, parse_instant
from memctl.ingest.discovery.sources import Labels, Source, SourceOrFailure, absolute, printable
from memctl.literals import MessageType
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.readers import Readers, detect_media_type
from memctl.readers.file_kinds import TRANSCRIPT
from memctl.readers.transcripts import Transcript, read_transcript, title_of_turns
from memctl.records import FileOutcome, SourceText
from memctl.sessions.conversations import SENDERS, Message

_LINES = frozenset((".jsonl", ".ndjson", ".jsonlines"))
_SENDER_KEYS = ("sender", "role", "speaker", "by")
_TOOLS = ("tool", "function")
"""Roles of what a tool returned to a model, which nobody said."""
_CONTENT_KEYS = ("content", "text", "message")
_TIME_KEYS = (
    "at", "created_at", "timestamp", "date", "time", "ts", "said_at", "datetime", "sent_at",
)  # fmt: skip
_HINT = 'a message is {"sender": "user", "content": "..."}'
_AFTER_NAME = re.compile(r"(?:\*\*|__)?(?:\s*\[[^\]\n]{4,30}\])?[>:]?(?:\*\*|__)?:?[^\S\n]*")
_OPENING = 120
"""Characters of a turn within which the name stands of who says it."""


class Imported(Struct, frozen=True):
    """How files are taken in.

    Args:
        readers: Read the exports of chat programs, and text.
        namespace: Where the conversations go.
        session_id: The conversation that all messages belong to; by default each file, or each
            conversation in it, is one.
        is_growing: Whether the last line may not be whole yet.
    """

    readers: Readers
    namespace: str
    session_id: str | None = None
    is_growing: bool = False

    def sources(self, paths: Iterable[Path]) -> Iterator[SourceOrFailure]:
        """Yield the messages of some files in order; a file that cannot be read is a failure."""
        for path in paths:
            name = printable(absolute(path))
            try:
                if not path.exists():
                    reason = f"there is no file {display_path(name)}"
                    raise UnreadableSource(reason, "check the path")
                yield from self._of_file(path, name)
            except MemctlError as error:
                yield _failed_outcome(name, error.message, error.hint, type(error).__name__)
            except OSError as error:
                reason = f"cannot read {display_path(name)}: {os_error_reason(error)}"
                yield _failed_outcome(name, reason, os_error_hint(error), type(error).__name__)

    # --- inside ---

    def _of_file(self, path: Path, name: str) -> Iterator[SourceOrFailure]:
        if _is_transcript(path) and (found := read_transcript(path)).turns:
            yield from self._of_transcript(found, path, name)
            return
        if path.suffix.lower() in _LINES:
            yield from self._of_lines(path, name)
            return
        if path.suffix.lower() == ".json" and (lists := _message_lists(path)):
            for number, (own, title, messages) in enumerate(lists):
                session = own or (path.stem if len(lists) == 1 else f"{path.stem}-{number + 1}")
                yield from self._of_messages(messages, name, session, title)
            return
        yield from self._of_texts(path, name)

    def _of_lines(self, path: Path, name: str) -> Iterator[SourceOrFailure]:
        """Read JSON lines: messages, lists of messages, or what ``ingest --jsonl`` takes."""
        labels = Labels(self.namespace, session_id=self.session_id or path.stem, source=name)
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    fields = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if not line.endswith(b"\n") and self.is_growing:
                        break  # it is being written
                    yield _bad(name, number, f"not JSON ({error})")
                    continue
                if isinstance(fields, dict) and isinstance(fields.get("messages"), list):
                    own = _session_name(fields) or f"{path.stem}-{number}"
                    yield from self._of_messages(fields["messages"], name, own, "", number)
                elif is_message(fields):
                    own = _session_name(fields) or path.stem
                    yield from self._of_messages([fields], name, own, "", number)
                else:
                    yield from from_jsonl_line(line, number, name, labels)

    def _of_messages(
        self, messages: Iterable[Any], name: str, session: str, title: str, line: int | None = None
    ) -> Iterator[SourceOrFailure]:
        for place, fields in enumerate(messages, start=1):
            number = line or place
            try:
                sender, content, at = message_fields(fields)
                turn = _turn_number(fields)
            except ValueError as error:
                yield _bad(name, number, str(error))
                continue
            is_said = fields.get("role") not in _TOOLS
            if content.strip() and is_said:
                yield self._message(name, session, title, sender, content, at, number, turn)

    def _of_transcript(
        self, transcript: Transcript, path: Path, name: str
    ) -> Iterator[SourceOrFailure]:
        """Read what a coding agent keeps; turns have the ids that its hook gives them.

        Every project's history may have the same name: the whole path tells conversations apart
        that have none.
        """
        title = transcript.title or title_of_turns(transcript.turns)
        session = f"{path.stem}-{sha256(name.encode()).hexdigest()[:8]}"
        for number, turn in enumerate(transcript.turns, start=1):
            yield replace(
                self._message(
                    name, turn.session_id or session, title, turn.sender, turn.content, turn.at,
                    number,
                ),
                external_id=turn.id,
            )  # fmt: skip

    def _of_texts(self, path: Path, name: str) -> Iterator[SourceOrFailure]:
        """Read what a reader makes turns of."""
        found = False
        for text in self.readers.read(path):
            session = text.unit.key if text.unit is not None else path.stem
            if text.unit is not None and text.unit.problem:
                yield _failed_outcome(
                    f"{name}!/{session}", text.unit.problem, text.unit.hint, "BadRecord"
                )
            for number, segment in enumerate(text.segments):
                if segment.kind == "turn":
                    found = True
                    said = words_of_turn(text, segment.start, segment.end, segment.speaker or "")
                    if said:
                        yield self._message(
                            name, session, text.title if text.unit else "",
                            segment.speaker or "", said, segment.said_at, number + 1,
                        )  # fmt: skip
        if not found:
            raise UnreadableSource(
                f"{display_path(name)} holds no conversation",
                "a line of one is `Ann: good morning`; other files: memctl ingest",
            )

    def _message(
        self,
        name: str,
        session: str,
        title: str,
        sender: str,
        content: str,
        at: datetime | None,
        line: int,
        turn: int | None = None,
    ) -> Source:
        return Source(
            source=name,
            text=storable(content),
            namespace=self.namespace,
            title=title,
            created_at=at,
            session_id=self.session_id or session,
            speaker=sender or None,
            turn=turn,
            line=line,
        )


def _is_transcript(path: Path) -> bool:
    """Return whether a file is the transcript of an agent rather than a list of messages."""
    if is_chat_log(path) or (path.suffix.lower() == ".json" and _message_lists(path)):
        return False
    fields = _first_value(path) if path.suffix.lower() in _LINES else None
    if isinstance(fields, dict) and _are_messages(fields.get("messages")):
        return False
    try:
        return detect_media_type(path) == TRANSCRIPT
    except MemctlError:
        return False  # what reads it says why


def is_chat_log(path: Path) -> bool:
    """Return whether a file has messages as JSON lines, and grows as a conversation does."""
    if path.suffix.lower() not in _LINES:
        return False
    fields = _first_value(path)
    is_turn = isinstance(fields, dict) and "text" in fields and bool(fields.get("session_id"))
    return is_turn or is_message(fields)


def _first_value(path: Path) -> Any:
    """Return what the first line of a file says that has anything; None where that is no JSON."""
    try:
        with path.open("rb") as file:
            lines = iter(file.readline, b"")
            return json.loads(next((line for line in lines if line.strip()), b""))
    except (OSError, ValueError, RecursionError):
        return None


def is_message(fields: Any) -> bool:
    """Return whether an object of JSON says who says what."""
    return (
        isinstance(fields, dict)
        and any(isinstance(fields.get(key), str) for key in _SENDER_KEYS[:2])
        and any(key in fields and not isinstance(fields[key], dict) for key in _CONTENT_KEYS)
    )


def message_fields(fields: Any) -> tuple[str, str, datetime | None]:
    """Return who says what, and when.

    Raises:
        ValueError: It is no message; says why.
    """
    if not isinstance(fields, Mapping):
        raise ValueError("not a JSON object")
    sender = next((fields[key] for key in _SENDER_KEYS if fields.get(key)), None)
    if not isinstance(sender, str):
        raise ValueError('no "sender"')
    content = next((fields[key] for key in _CONTENT_KEYS if key in fields), None)
    text = _plain_text(content)
    key = next((key for key in _TIME_KEYS if fields.get(key)), _TIME_KEYS[0])
    try:
        said_at = parse_instant(fields.get(key), key)
    except MemctlError as error:
        raise ValueError(error.message) from error
    return storable(sender), text, said_at


_KINDS: Mapping[str, MessageType] = {kind: kind for kind in get_args(MessageType)}


def recorded_message(line: bytes) -> Message:
    """Return the message of a line that is recorded as a conversation goes on.

    Raises:
        ValueError: It is none; says why.
    """
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at character {error.pos + 1}") from error
    sender, content, at = message_fields(fields)
    if sender not in SENDERS:
        raise ValueError(f'"sender" is {sender[:40]!r}, none of {", ".join(SENDERS)}')
    kind, own = fields.get("type"), fields.get("id")
    if kind is not None and kind not in _KINDS:
        raise ValueError(f'"type" is none of {", ".join(_KINDS)}')
    return Message(
        sender=sender,
        content=content,
        at=at,
        message_type=_KINDS.get(kind) if kind else None,
        turn=_turn_number(fields),
        external_id=None if own is None else str(own),
    )


def _turn_number(fields: Mapping[str, Any]) -> int | None:
    """Return which turn a message says it is.

    Raises:
        ValueError: It is no whole number.
    """
    turn = fields.get("turn")
    if turn is not None and (type(turn) is not int or not 0 <= turn < 2**31):
        raise ValueError('"turn" is not a whole number from 0')
    return turn


def _plain_text(content: Any) -> str:
    """Return the words of a message that comes whole or in blocks.

    Raises:
        ValueError: It has none.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [
            block if isinstance(block, str) else block.get("text") or ""
            for block in content
            if isinstance(block, str | dict)
        ]
        return "\n".join(each for each in blocks if isinstance(each, str) and each)
    raise ValueError('"content" is neither text nor a list of blocks')


def words_of_turn(text: SourceText, start: int, end: int, speaker: str) -> str:
    """Return what a turn says, without the time and the name before it."""
    said = text.text[start:end]
    place = said.find(speaker, 0, _OPENING) if speaker else -1
    if place < 0:
        return said.strip()
    found = _AFTER_NAME.match(said, place + len(speaker))
    return said[found.end() if found else 0 :].strip()


def from_jsonl_line(
    line: bytes, number: int, name: str, labels: Labels
) -> Iterator[SourceOrFailure]:
    """Yield a line as ``ingest --jsonl`` takes it."""
    for found in from_jsonl(io.BytesIO(line), name, labels):
        if isinstance(found, FileOutcome):
            reason = found.reason.replace(", line 1:", f", line {number}:", 1)
            yield replace(found, reason=reason, line=number)
        else:
            yield replace(found, line=number)


def _message_lists(path: Path) -> list[tuple[str, str, list[Any]]]:
    """Return the lists of messages in a JSON file, each with its name and title; none elsewhere."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return []
    wholes = found if isinstance(found, list) and not _are_messages(found) else [found]
    lists: list[tuple[str, str, list[Any]]] = []
    for whole in wholes:
        messages = whole.get("messages") if isinstance(whole, dict) else whole
        if not isinstance(messages, list) or not _are_messages(messages):
            return []
        title = whole.get("title") if isinstance(whole, dict) else ""
        own = _session_name(whole) if isinstance(whole, dict) else ""
        lists.append((own, title if isinstance(title, str) else "", messages))
    return lists


def _are_messages(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and is_message(values[0])


def _session_name(fields: Mapping[str, Any]) -> str:
    keys = ("session_id", "conversation_id", "id")
    return next((str(fields[key]) for key in keys if isinstance(fields.get(key), str | int)), "")


def _bad(name: str, number: int, reason: str) -> FileOutcome:
    return FileOutcome(
        name, "failed", reason=f"{name}, line {number}: {reason}", hint=_HINT, line=number,
        error="BadRecord",
    )  # fmt: skip


def _failed_outcome(name: str, reason: str, hint: str, error: str) -> FileOutcome:
    return FileOutcome(name, "failed", reason=reason, hint=hint, error=error)
