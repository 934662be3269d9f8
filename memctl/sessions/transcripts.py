"""Transcripts that coding agents keep: what their user and they said, without tools and settings.

Claude Code, Codex, Cursor and Gemini append JSON lines to a file for each conversation; older
Gemini writes one JSON document.  What they put in themselves (reminders, contexts, summaries) and
what memory gave them is left out.  Knows nothing of the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from memctl.errors import UnreadableSource
from memctl.paths import display_path, os_error_hint, os_error_reason

MEMORY_TAG = "memctl-memory"
"""What stands around a text from memory that is put into a prompt, so that it can be left out."""
_LARGEST = 512 << 20
_INJECTED = re.compile(
    rf"<({MEMORY_TAG}|system-reminder|environment_context|user_instructions|local-command-stdout|"
    r"local-command-caveat|command-name|command-message|command-args|user-prompt-submit-hook|"
    r"bash-input|bash-stdout|bash-stderr|"
    r"session-start-hook|additional_context|hook_context|timestamp)\b[^>]*>.*?</\1>",
    re.DOTALL,
)
_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_NOTES = ("[Request interrupted by user", "Caveat: The messages below", "# AGENTS.md instructions")
_TEXT_KINDS = frozenset(("text", "input_text", "output_text"))
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "gemini": "assistant",
          "model": "assistant", "agent": "assistant"}  # fmt: skip
Json = Mapping[str, Any]


class TranscriptTurn(Struct, frozen=True):
    """Something that the user or the agent said."""

    id: str
    """The same whenever the transcript is read."""
    sender: str
    """``user`` or ``assistant``."""
    content: str
    at: datetime | None


def read_transcript(path: Path, session_id: str = "") -> list[TranscriptTurn]:
    """Return what was said, in order; a line that is not whole yet is left for later.

    Args:
        path: The file.
        session_id: The conversation; what a line says is of another one is left out.

    Raises:
        UnreadableSource: It cannot be read.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableSource(f"{display_path(path)} is too long for a transcript")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableSource(
            f"cannot read {display_path(path)}: {os_error_reason(error)}", os_error_hint(error)
        ) from error
    found: dict[str, TranscriptTurn] = {}
    for key, entry in _entries(data):
        if _is_of_another(entry, session_id):
            continue
        turn = _turn(entry, key)
        if turn is not None:  # a later line of the same message has more of it
            found[turn.id] = turn
    return list(found.values())


def without_injected_text(text: str) -> str:
    """Return what the user wrote, without what their agent or memory put around it."""
    if query := _QUERY.search(text):
        text = query[1]
    text = _INJECTED.sub("", text).strip()
    return "" if text.startswith(_NOTES) else text


def _entries(data: bytes) -> Iterator[tuple[str, Json]]:
    """Yield the messages of a file with what tells them apart: JSON lines, or one document."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            if number == 0 and len(lines) > 1:
                yield from _of_document(data)
                return
            continue
        if isinstance(entry, dict):
            if isinstance(entry.get("messages"), list):
                yield from _number_messages(entry["messages"])
            else:
                yield f"line-{number}", entry


def _of_document(data: bytes) -> Iterator[tuple[str, Json]]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    messages = document.get("messages") if isinstance(document, dict) else document
    if isinstance(messages, list):
        yield from _number_messages(messages)


def _number_messages(messages: list[Any]) -> Iterator[tuple[str, Json]]:
    for number, entry in enumerate(messages):
        if isinstance(entry, dict):
            yield f"message-{number}", entry


def _is_of_another(entry: Json, session_id: str) -> bool:
    """Return whether a message was copied from another conversation, or is of a sub-agent."""
    own = entry.get("sessionId")
    return bool(session_id and isinstance(own, str) and own and own != session_id) or any(
        entry.get(flag) is True for flag in ("isSidechain", "isMeta", "isCompactSummary")
    )


def _turn(entry: Json, key: str) -> TranscriptTurn | None:
    message: Json = entry
    if isinstance(entry.get("payload"), dict):  # Codex
        if entry.get("type") != "response_item" or entry["payload"].get("type") != "message":
            return None
        message = entry["payload"]
    elif isinstance(entry.get("message"), dict):  # Claude Code and Cursor
        if entry.get("type", "message") not in (*_ROLES, "message"):
            return None  # such as a copy of what was sent to the model
        message = entry["message"]
    role = message.get("role", entry.get("role", entry.get("type")))
    sender = _ROLES.get(role) if isinstance(role, str) else None
    content = without_injected_text(_text(message.get("content")))
    if sender is None or not content:
        return None
    own = entry.get("uuid") or entry.get("id") or message.get("id")
    return TranscriptTurn(
        str(own) if isinstance(own, str) and own else key, sender, content, _instant(entry)
    )


def _text(content: object) -> str:
    """Return the text of a message: as it stands, or of its parts that are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    parts = (
        part.get("text")
        for part in content
        if isinstance(part, dict) and part.get("type", "text") in _TEXT_KINDS
    )
    return "\n".join(part for part in parts if isinstance(part, str))


def _instant(entry: Json) -> datetime | None:
    said = entry.get("timestamp")
    if not isinstance(said, str):
        return None
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
