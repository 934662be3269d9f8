"""Transcripts that coding agents keep: what their user and they said, without tools and settings.

Claude Code, Codex, Cursor and Gemini append JSON lines to a file for each conversation; older
Gemini, and clients of model APIs, write one JSON document; aider and Cursor write Markdown.  What
they put in themselves (reminders, contexts, summaries) and what memory gave them is left out.
Knows nothing of the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from memctl.errors import UnreadableSource
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.readers.document_properties import parse_timestamp
from memctl.readers.file_names import shorten

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
_CONTENT_KEYS = ("content", "parts", "message")
_WHEN_KEYS = ("timestamp", "ts", "created_at", "time", "date", "at")
_MARKS: tuple[tuple[str, ...], ...] = (
    ('"sessionId": ', '"message": {', '"role": "'),  # Claude Code
    ('"type": "session_meta"', '"payload": {'),  # Codex
    ('"type": "response_item"', '"payload": {'),
    ('"type": "input_text"', '"role": "'),
    ('"sessionId": ', '"projectHash": ', '"messages": ['),  # Gemini
    ('"type": "gemini"', '"content": '),
    ('"sessionId": ', '"messageId": ', '"message": "'),
    ('"role": "user"', '"parts": [{"text": "'),
    ('"role": "user"', '"message": {"content": '),  # Cursor
    ('"messages": [{"role": "', '"content": '),  # clients of model APIs
    ('"role": "user"', '"content": [{"type": "text"'),
    ('"role": "assistant"', '"content": ', '"tool_calls": ['),
)
"""What the beginning of a transcript has, all of it, with one blank after each colon."""
_AIDER_CHAT = re.compile(
    r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE
)
_AIDER_COMMAND = re.compile(r"/(?!(?:ask|code|architect)\b)[a-z]")
_SPEAKER_LINE = re.compile(
    r"^(?:_?\*\*|#{1,4} )(?P<role>User|Human|Cursor|Assistant|Claude|Agent)(?:\s\([^)\n]*\))?"
    r"(?:\*\*_?)?:?\s*$",
    re.MULTILINE,
)
_EXPORTED = re.compile(r"^_Exported on (\d{1,2})/(\d{1,2})/(\d{4}) at ", re.MULTILINE)
"""As Cursor writes it, the month first."""
_RULE = re.compile(r"\s*-{3,}\s*")
Json = Mapping[str, Any]


class TranscriptTurn(Struct, frozen=True):
    """Something that the user or the agent said."""

    id: str
    """The same whenever the transcript is read."""
    sender: str
    """``user`` or ``assistant``."""
    content: str
    at: datetime | None
    session_id: str = ""
    """The conversation that it was said in, where the transcript names it."""


def is_transcript(sample: str) -> bool:
    """Return whether a text begins as a transcript of an agent does: JSON, JSON lines, Markdown."""
    if sample.lstrip().startswith(("{", "[")):
        spaced = re.sub(r'(":|[\[{])\s*', r"\1", sample).replace('":', '": ')
        return any(all(mark in spaced for mark in marks) for marks in _MARKS)
    if _AIDER_CHAT.search(sample) and "\n#### " in sample:
        return True
    roles = [found["role"] for found in _SPEAKER_LINE.finditer(sample)]
    return roles[:1] in (["User"], ["Human"]) and len(set(roles)) == 2


def title_of_turns(turns: Sequence[TranscriptTurn]) -> str:
    """Return what a conversation is called that has no name: what its user asked first."""
    first = next((turn.content for turn in turns if turn.sender == "user"), "")
    return shorten(" ".join(first.split()), 80)


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
    named = ""
    for key, entry in _entries(data):
        named = _session_named(entry) or named
        if _is_of_another(entry, session_id):
            continue
        turn = _turn(entry, key, named)
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
    """Yield the messages of a file with what tells them apart.

    These are JSON lines, one document, or Markdown.
    """
    if not data.lstrip().startswith((b"{", b"[")):
        yield from _of_markdown(data.decode("utf-8", "replace"))
        return
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
                yield "", {"sessionId": entry.get("sessionId")}
                yield from _number_messages(entry["messages"], f"line-{number}-" if number else "")
            else:
                yield f"line-{number}", entry
        elif isinstance(entry, list):
            yield from _number_messages(entry)


def _of_document(data: bytes) -> Iterator[tuple[str, Json]]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    messages = document
    if isinstance(document, dict):
        yield "", {"sessionId": document.get("sessionId")}
        messages = document.get("messages")
    if isinstance(messages, list):
        yield from _number_messages(messages)


def _of_markdown(text: str) -> Iterator[tuple[str, Json]]:
    read = _aider_messages if _AIDER_CHAT.search(text) else _markdown_messages
    yield from _number_messages(list(read(text)))


def _aider_messages(text: str) -> Iterator[Json]:
    """Yield the messages of aider's history: ``####`` the user's, ``>`` the program's own."""
    started, role, run, is_code = "", "assistant", list[str](), False
    for line in [*text.splitlines(), "# aider chat started at "]:
        is_code ^= line.startswith("```")
        chat = None if is_code else _AIDER_CHAT.match(line)
        is_end = not is_code and line.startswith("# aider chat started at ")
        says = "user" if not is_code and line.startswith("#### ") else "assistant"
        if run and (is_end or says != role) and (line.strip() or is_end):
            words = "\n".join(run).strip()
            if words and not (role == "user" and _AIDER_COMMAND.match(words)):
                yield {"role": role, "content": words, "timestamp": started}
            run = []
        if is_end:
            started = chat[1] if chat else started
        elif is_code or not line.startswith("> "):
            run.append((line if is_code else line.removeprefix("#### ")).rstrip())
            role = says if line.strip() else role


def _markdown_messages(text: str) -> Iterator[Json]:
    """Yield what stands under lines that name who speaks."""
    names = list(_SPEAKER_LINE.finditer(text))
    exported = _EXPORTED.search(text)
    day = "{2}-{0:0>2}-{1:0>2}".format(*exported.groups()) if exported else ""
    for name, following in zip(names, [*names[1:], None], strict=True):
        lines = text[name.end() : following.start() if following else None].strip().split("\n")
        while lines and (_RULE.fullmatch(lines[-1]) or not lines[-1].strip()):
            lines.pop()
        role = "user" if name["role"] in ("User", "Human") else "assistant"
        yield {"role": role, "content": "\n".join(lines).strip(), "timestamp": day}


def _number_messages(messages: list[Any], place: str = "") -> Iterator[tuple[str, Json]]:
    for number, entry in enumerate(messages):
        if isinstance(entry, dict):
            yield f"{place}message-{number}", entry


def _is_of_another(entry: Json, session_id: str) -> bool:
    """Return whether a message was copied from another conversation, or is of a sub-agent."""
    own = entry.get("sessionId")
    return bool(session_id and isinstance(own, str) and own and own != session_id) or any(
        entry.get(flag) is True for flag in ("isSidechain", "isMeta", "isCompactSummary")
    )


def _session_named(entry: Json) -> str:
    """Return the conversation that an entry names."""
    own = entry.get("sessionId")
    if entry.get("type") == "session_meta" and isinstance(entry.get("payload"), dict):  # Codex
        own = entry["payload"].get("id")
    return own if isinstance(own, str) else ""


def _turn(entry: Json, key: str, session_id: str) -> TranscriptTurn | None:
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
    said = next((message[key] for key in _CONTENT_KEYS if message.get(key)), "")
    content = without_injected_text(_text(said))
    if sender is None or not content:
        return None
    own = entry.get("uuid") or entry.get("id") or message.get("id")
    id_ = own if isinstance(own, str) and own else key
    return TranscriptTurn(id_, sender, content, _instant(entry), session_id)


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
    return next((parse_timestamp(entry[key]) for key in _WHEN_KEYS if entry.get(key)), None)
