"""Transcripts that coding agents keep: what their user and they said, without tools and settings.

Claude Code, Codex, Cursor and Gemini append JSON lines to a file for each conversation; older
Gemini, and clients of model APIs, write one JSON document; aider and Cursor write Markdown.  What
they put in themselves (reminders, contexts, summaries) and what memory gave them is left out.
A file without the marks of an exporter is no transcript: what is no turn in it would be lost.
Knows nothing of the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.errors import UnreadableSource
from memctl.files import read_regular
from memctl.paths import display_path, os_error_hint, os_error_reason
from memctl.readers.document_properties import parse_timestamp
from memctl.readers.file_names import shorten
from memctl.readers.text_files.decoding import decode

MEMORY_TAG = "memctl-memory"
"""What stands around a text from memory that is put into a prompt, so that it can be left out."""
LEFT_OUT = "left_out"
"""Property of a document: its file has more than was said and what tools did."""
LARGEST = 512 << 20
_INJECTED_TAGS = (
    "system-reminder|environment_context|user_instructions|local-command-stdout|"
    "local-command-caveat|command-name|command-message|command-args|user-prompt-submit-hook|"
    "bash-input|bash-stdout|bash-stderr|"
    "session-start-hook|additional_context|hook_context"
)
_INJECTED = re.compile(rf"<({MEMORY_TAG}|{_INJECTED_TAGS})\b[^<>]*>")
_FROM_MEMORY = re.compile(rf"<({MEMORY_TAG})>")
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_NOTES = ("[Request interrupted by user", "Caveat: The messages below", "# AGENTS.md instructions")
_TEXT_KINDS = frozenset(("text", "input_text", "output_text"))
_TOOL_KINDS = frozenset(("tool_use", "tool_result", "functionCall", "functionResponse"))
_TOOL_CALLS = frozenset(
    ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
     "local_shell_call")
)  # fmt: skip
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "gemini": "assistant",
          "model": "assistant", "agent": "assistant"}  # fmt: skip
_SETTING_ROLES = frozenset(("system", "developer"))
_TOOL_ROLES = frozenset(("tool", "function"))
_CONTENT_KEYS = ("content", "parts", "message")
_WHEN_KEYS = ("timestamp", "ts", "created_at", "time", "date", "at")
_CONVERSATION_FIELDS = frozenset(
    ("id", "object", "session_id", "conversation_id", "title", "model", "created", "created_at",
     "updated_at", "messages")
)  # fmt: skip
"""What clients of model APIs write with a list of messages."""
_HEAD_FIELDS = frozenset(
    ("id", "object", "title", "messages", "sessionId", "projectHash", "startTime", "lastUpdated",
     "kind")
)  # fmt: skip
"""Fields of a list of messages that say nothing but its name."""
_CALL_FIELDS = frozenset(("tool_calls", "tool_call_id", "function_call", "toolCalls"))
_MESSAGE_FIELDS = frozenset(("id", "type", "role", "content", *_WHEN_KEYS)) | _CALL_FIELDS
_ENVELOPE = _MESSAGE_FIELDS | frozenset(
    ("parts", "message", "uuid", "parentUuid", "isSidechain", "isMeta", "userType", "cwd",
     "sessionId", "version", "gitBranch", "requestId", "toolUseResult", "payload", "model",
     "stop_reason", "stop_sequence", "usage", "tokens", "messageId")
)  # fmt: skip
"""Fields of a message that say nothing which was said."""
_MARKS: tuple[tuple[str, ...], ...] = (
    ('"sessionId": ', '"message": {', '"role": "'),  # Claude Code
    ('"type": "session_meta"', '"payload": {'),  # Codex
    ('"type": "response_item"', '"payload": {'),
    ('"sessionId": ', '"projectHash": ', '"messages": ['),  # Gemini
    ('"sessionId": ', '"messageId": ', '"message": "'),
    ('"role": "user"', '"parts": [{"text": "'),
    ('"role": "user"', '"message": {"content": '),  # Cursor
    ('"messages": [{"role": "', '"content": '),  # clients of model APIs
)
"""What a transcript begins with whose beginning cannot be parsed; one blank after each colon."""
_AIDER_CHAT = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_AIDER_COMMAND = re.compile(
    r"/(?:add|drop|clear|reset|commit|diff|undo|run|test|lint|ls|git|tokens|models?|map|map-refresh|"
    r"voice|web|paste|exit|quit|help|settings|report|chat-mode|context|copy|copy-context|editor|"
    r"edit|load|save|multiline-mode|read-only|reasoning-effort|think-tokens|weak-model|"
    r"editor-model|ok)(?=\s|$)"
)
"""What a prompt has the program do; other commands have the model say something."""
_AIDER_OUTPUT = re.compile(
    r"> (?:Aider v\d|(?:Main model|Weak model|Editor model|Model|Git repo|Repo-map): |"
    r"Tokens: [\d.]|Cost: \$|Added .+ to the chat|Add .+ to the chat\?|Removed .+ from the chat|"
    r"Applied edit to |Commit [0-9a-f]{7}\b|Use /help|/\S*/aider\b)"
)
"""What the program says of itself; other quoted lines may be of a reply."""
_CURSOR_HEAD = re.compile(
    r"\s*(?:# (?P<title>[^\n]*)\n\s*)?"
    r"_Exported on (?P<first>\d{1,2})/(?P<second>\d{1,2})/(?P<year>\d{4}) at [^\n]* from Cursor"
    r"[^\n]*"
)
"""As Cursor writes it, the month first."""
_CURSOR_SPEAKER = re.compile(r"^-{3,}[ \t]*\n+\*\*(User|Cursor)\*\*[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"\s*-{3,}\s*")
Json = Mapping[str, Any]


class TranscriptTurn(Struct, frozen=True):
    """Something that the user or the agent said."""

    id: str
    """The same whenever the transcript is read."""
    sender: str
    """``user`` or ``assistant``; empty for what stands between turns."""
    content: str
    at: datetime | None
    session_id: str = ""
    """The conversation that it was said in, where the transcript names it."""


class Transcript(Struct, frozen=True):
    """What a transcript has, in order."""

    parts: Sequence[TranscriptTurn]
    """The turns, and what stands before and between them."""
    is_whole: bool
    """Whether nothing was left out but tool calls and their results."""
    title: str = ""

    @property
    def turns(self) -> list[TranscriptTurn]:
        """What was said."""
        return [part for part in self.parts if part.sender]


class _Entry(Struct, frozen=True):
    """A message as it stands in the file."""

    key: str
    """What tells it apart; empty for the head of a list of messages."""
    fields: Json
    place: str = ""
    """What stands before its own id, which only its list knows it by."""
    is_plain: bool = False
    """Whether it comes from a program that puts nothing into what its user says."""


def is_transcript(text: str, is_complete: bool = True) -> bool:
    """Return whether a text is a transcript of an agent by the marks of what wrote it.

    Of the beginning of a text it says whether the whole is worth a look.
    """
    text = text.lstrip()
    if text.startswith(("{", "[")):
        values = _json_values(text, is_complete)
        if values is None:
            spaced = re.sub(r'(":|[\[{])\s*', r"\1", text).replace('":', '": ')
            found = any(all(mark in spaced for mark in marks) for marks in _MARKS)
            return found and not is_complete
        if not _are_of_agent(values):
            return False
    elif not _AIDER_CHAT.match(text.partition("\n")[0]) and not _CURSOR_HEAD.match(text):
        return False
    return not is_complete or bool(_parse(text).turns)


def _json_values(text: str, is_complete: bool) -> list[Any] | None:
    """Return the document, or the lines of JSON; None if a line but the last is none."""
    with suppress(ValueError, RecursionError):
        return [json.loads(text)]
    lines = [line for line in text.split("\n") if line.strip()]
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            is_being_written = number == len(lines) and not (is_complete and text.endswith("\n"))
            return values if values and is_being_written else None
    return values


def _are_of_agent(values: Sequence[Any]) -> bool:
    if len(values) == 1 and isinstance(values[0], list):
        return _is_gemini_list(values[0])
    checks: tuple[Callable[[Sequence[Json]], bool], ...] = (
        _are_of_claude_code, _are_of_codex, _are_of_gemini, _are_of_cursor, _are_conversations,
    )  # fmt: skip
    are_objects = bool(values) and all(isinstance(value, dict) for value in values)
    return are_objects and any(check(values) for check in checks)


def _are_of_claude_code(values: Sequence[Json]) -> bool:
    return all("type" in each for each in values) and any(
        isinstance(each.get("sessionId"), str)
        and isinstance(each.get("message"), dict)
        and each["message"].get("role") == each["type"]
        for each in values
    )


def _are_of_codex(values: Sequence[Json]) -> bool:
    return all("type" in each or "record_type" in each for each in values) and any(
        each.get("type") in ("session_meta", "response_item")
        and isinstance(each.get("payload"), dict)
        for each in values
    )


def _are_of_gemini(values: Sequence[Json]) -> bool:
    head = values[0]
    if not isinstance(head.get("sessionId"), str):
        return False
    if all("projectHash" in each and isinstance(each.get("messages"), list) for each in values):
        return True
    is_head = "projectHash" in head or ("kind" in head and "startTime" in head)
    return is_head and any(each.get("type") == "gemini" and "id" in each for each in values)


def _is_gemini_list(values: Sequence[Any]) -> bool:
    """Return whether a list is a checkpoint of Gemini, or its log."""
    log = {"sessionId", "messageId", "type", "message", "timestamp"}
    are_objects = bool(values) and all(isinstance(each, dict) for each in values)
    return are_objects and (
        all(set(each) == {"role", "parts"} and _string(each["role"]) in _ROLES for each in values)
        or all(log == set(each) for each in values)
    )


def _are_of_cursor(values: Sequence[Json]) -> bool:
    return all(
        set(each) == {"role", "message"}
        and isinstance(each["message"], dict)
        and set(each["message"]) == {"content"}
        for each in values
    )


def _are_conversations(values: Sequence[Json]) -> bool:
    """Return whether objects have messages as model APIs take them, and nothing of their own."""
    return all(
        isinstance(value.get("messages"), list)
        and value["messages"]
        and set(value) <= _CONVERSATION_FIELDS
        and all(_is_plain_message(each) for each in value["messages"])
        for value in values
    )


def _is_plain_message(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    if message["role"] in _TOOL_ROLES:
        return True
    return (
        message["role"] in _ROLES.keys() | _SETTING_ROLES
        and set(message) <= _MESSAGE_FIELDS
        and _is_all_text(message.get("content"))
    )


def title_of_turns(turns: Sequence[TranscriptTurn]) -> str:
    """Return what a conversation is called that has no name: what its user asked first."""
    first = next((turn.content for turn in turns if turn.sender == "user"), "")
    return shorten(" ".join(first.split()), 80)


def read_transcript(path: Path, session_id: str = "") -> Transcript:
    """Return what was said, in order; a line that is not whole yet is left for later.

    Args:
        path: The file.
        session_id: The conversation; what a line says is of another one is left out.

    Raises:
        UnreadableSource: It cannot be read.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UnreadableSource(f"{display_path(path)} is too long for a transcript")
        data = read_regular(path)
    except OSError as error:
        raise UnreadableSource(
            f"cannot read {display_path(path)}: {os_error_reason(error)}", os_error_hint(error)
        ) from error
    return _parse(decode(_without_cut_character(data)), session_id)


def _without_cut_character(data: bytes) -> bytes:
    """Return the bytes without the first half of a character that is being written."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return data[: error.start]
    return data


def _parse(text: str, session_id: str = "") -> Transcript:
    found: dict[tuple[str, str], TranscriptTurn] = {}
    named, title, is_whole = "", "", True
    for entry in _entries(text):
        own = _session_named(entry.fields)
        named = own or (named if entry.key else "")
        if not entry.key:
            title = title or _string(entry.fields.get("title"))
            is_whole &= entry.fields.keys() <= _HEAD_FIELDS
            continue
        if _is_of_another(entry.fields, session_id):
            is_whole = False
            continue
        turn, is_all = _turn(entry, named)
        is_whole &= is_all
        if turn is None:
            continue
        before = found.get((named, turn.id))
        if before and not (
            before.sender == turn.sender and turn.content.startswith(before.content)
        ):
            turn = replace(turn, id=f"{turn.id}-{entry.key}")
        found[named, turn.id] = turn  # a later line of the same message has more of it
    return Transcript(list(found.values()), is_whole, title)


def without_injected_text(text: str) -> str:
    """Return what the user wrote, without what their agent or memory put around it."""
    text = text.strip()
    if text.startswith("<") and text.endswith(_QUERY_END) and _QUERY in text:
        text = text[text.index(_QUERY) + len(_QUERY) : -len(_QUERY_END)]
    text = _without_tags(text, _INJECTED)
    return "" if text.startswith(_NOTES) else text


def _without_tags(text: str, opening: re.Pattern[str]) -> str:
    """Return a text without what stands in some tags; one that nothing closes is text."""
    kept, place = list[str](), 0
    unclosed = set[str]()
    for tag in opening.finditer(text):
        if tag.start() < place or tag[1] in unclosed:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unclosed.add(tag[1])
            continue
        kept.append(text[place : tag.start()])
        place = end + len(tag[1]) + 3
    return "".join((*kept, text[place:])).strip()


def _entries(text: str) -> Iterator[_Entry]:
    """Yield the messages of JSON lines, of one document, or of Markdown."""
    if not text.lstrip().startswith(("{", "[")):
        yield from _of_markdown(text)
        return
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            if number == 0 and len(lines) > 1:
                with suppress(ValueError, RecursionError):
                    yield from _of_value(json.loads(text), 0)
                    return
            yield _Entry(f"line-{number}", {"type": "unreadable"})
            continue
        yield from _of_value(value, number)


def _of_value(value: Any, number: int) -> Iterator[_Entry]:
    """Yield the messages of a document, or of a line, counted from 0."""
    if isinstance(value, list):
        yield from _number_messages(value)
    elif isinstance(value, dict) and isinstance(value.get("messages"), list):
        yield _Entry("", value)
        if number and (title := _string(value.get("title"))):
            yield _Entry(f"line-{number}", {"role": "note", "content": title}, is_plain=True)
        place = f"line-{number}-" if number and not _session_named(value) else ""
        yield from _number_messages(value["messages"], place, is_plain="sessionId" not in value)
    elif isinstance(value, dict):
        yield _Entry(f"line-{number}", value)


def _of_markdown(text: str) -> Iterator[_Entry]:
    if head := _CURSOR_HEAD.match(text):
        yield _Entry("", {"title": head["title"]})
        messages = _cursor_messages(text, head)
    else:
        messages = _aider_messages(text)
    for place, role, content, at in messages:
        fields = {"role": role, "content": content, "timestamp": at}
        yield _Entry(f"at-{place}", fields, is_plain=True)


_MarkdownMessage = tuple[int, str, str, str]
"""Where it begins, who says it, what it says, and when."""


def _aider_messages(text: str) -> Iterator[_MarkdownMessage]:
    """Yield the messages of aider's history: ``####`` the user's, ``>`` the program's own.

    A fence that nothing closes ends with the next prompt.
    """
    started, role, run, first = "", "note", list[str](), 0
    is_code, previous = False, ""
    for number, line in enumerate([*text.split("\n"), "# aider chat started at "]):
        is_end = line == "# aider chat started at " or _AIDER_CHAT.match(line) is not None
        is_prompt = bool(re.match(r"####(?:\s|$)", line)) and not (is_code and previous.strip())
        if is_end or is_prompt:
            is_code = False
        elif line.startswith("```"):
            is_code = not is_code
        is_output = not is_code and _AIDER_OUTPUT.match(line) is not None
        is_new = is_prompt and (role != "user" or not previous.strip())
        is_reply = role == "user" and bool(line.strip()) and not is_prompt
        if is_end or is_new or is_reply:
            words = "\n".join(run).strip()
            if words and not (role == "user" and _AIDER_COMMAND.match(words)):
                yield first, role, words, started
            run = []
            role = "note" if is_end else "user" if is_new else "assistant"
        if is_end:
            started = chat[1] if (chat := _AIDER_CHAT.match(line)) else started
        elif not is_output:
            first = first if run else number
            run.append((line[5:] if is_prompt else line).rstrip())
        previous = line


def _cursor_messages(text: str, head: re.Match[str]) -> Iterator[_MarkdownMessage]:
    """Yield what stands under the lines of a Cursor export that name who speaks."""
    month, day = int(head["first"]), int(head["second"])
    month, day = (day, month) if month > 12 else (month, day)
    at = f"{head['year']}-{month:02}-{day:02}"
    role, place = "note", head.end()
    names = list(_CURSOR_SPEAKER.finditer(text, head.end()))
    for name in [*names, None]:
        lines = text[place : name.start() if name else None].strip().split("\n")
        while lines and (_RULE.fullmatch(lines[-1]) or not lines[-1].strip()):
            lines.pop()
        yield place, role, "\n".join(lines).strip(), at
        if name:
            role, place = "user" if name[1] == "User" else "assistant", name.end()


def _number_messages(
    messages: list[Any], place: str = "", *, is_plain: bool = False
) -> Iterator[_Entry]:
    for number, entry in enumerate(messages):
        if isinstance(entry, dict):
            yield _Entry(f"message-{number}", entry, place, is_plain)


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
    return _string(own)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _turn(entry: _Entry, session_id: str) -> tuple[TranscriptTurn | None, bool]:
    """Return what a message says, if anything, and whether that is all but tool calls."""
    fields = message = entry.fields
    if isinstance(fields.get("payload"), dict):  # Codex
        kind = _string(fields["payload"].get("type"))
        if fields.get("type") != "response_item" or kind != "message":
            return None, fields.get("type") == "response_item" and kind in _TOOL_CALLS
        message = fields["payload"]
    elif isinstance(fields.get("message"), dict):  # Claude Code and Cursor
        if fields.get("type", "message") not in (*_ROLES, "message"):
            return None, False  # such as a copy of what was sent to the model
        message = fields["message"]
    role = message.get("role", fields.get("role", fields.get("type")))
    if not isinstance(role, str) or role in _TOOL_ROLES:
        return None, _string(role) in _TOOL_ROLES
    said = next((message[key] for key in _CONTENT_KEYS if message.get(key)), "")
    raw = content = _text(said).strip()
    sender = _ROLES.get(role)
    if sender == "user":
        content = _without_tags(raw, _FROM_MEMORY) if entry.is_plain else without_injected_text(raw)
    elif entry.is_plain and (role in _SETTING_ROLES or role == "note"):
        sender = ""
        content = f"{role}: {raw}" if raw and role != "note" else raw
    is_all = (
        sender is not None
        and content.endswith(raw)
        and _is_all_text(said)
        and fields.keys() | message.keys() <= _ENVELOPE
    )
    if sender is None or not content:
        return None, is_all
    own = _string(fields.get("uuid") or fields.get("id") or message.get("id")) or entry.key
    turn = TranscriptTurn(entry.place + own, sender, content, _instant(fields), session_id)
    return turn, is_all


def _is_all_text(content: object) -> bool:
    """Return whether the parts of a message are text, tool calls and their results alone."""
    if not isinstance(content, list):
        return content is None or isinstance(content, str)
    return all(
        isinstance(part, dict)
        and (
            (_string(part.get("type", "text")) in _TEXT_KINDS and isinstance(part.get("text"), str))
            or _string(part.get("type")) in _TOOL_KINDS
            or set(part) <= _TOOL_KINDS
        )
        for part in content
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
        if isinstance(part, dict) and _string(part.get("type", "text")) in _TEXT_KINDS
    )
    return "\n".join(part for part in parts if isinstance(part, str))


def _instant(entry: Json) -> datetime | None:
    with suppress(ValueError, OverflowError, OSError):  # a number that is no time
        return next((parse_timestamp(entry[key]) for key in _WHEN_KEYS if entry.get(key)), None)
    return None
