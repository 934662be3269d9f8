"""Exports of chat programs: conversations as turns, each with who said it and when.

ChatGPT and Claude give many conversations in one ``conversations.json``, Telegram one or many in
``result.json``, Slack one channel a folder with a file for each day.  Transcripts of agents are
read here as documents.
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
from memctl.kb_settings import PROCESSING
from memctl.readers.data_files.structured_data import parse_json
from memctl.readers.document_properties import parse_timestamp
from memctl.readers.file_names import clean_title, display_name
from memctl.readers.pieces import Piece, assemble, named_document
from memctl.readers.text_files.decoding import read_whole
from memctl.readers.transcripts import LEFT_OUT, read_transcript, title_of_turns
from memctl.readers.units import UnitKeys, broken
from memctl.records import SourceText, Unit

MAX_BYTES = 200 << 20
Json = Mapping[str, Any]


class _Turn(Struct, frozen=True):
    speaker: str
    text: str
    said_at: datetime | None = None


class _Conversation(Struct, frozen=True):
    id: str
    title: str
    turns: Sequence[_Turn]


def read(path: Path, name: str) -> Iterator[SourceText]:
    """Yield the conversations of an export; one that cannot be read says why.

    Raises:
        UnreadableSource: It is no such export, or too big.
    """
    text = read_whole(path, name, MAX_BYTES)
    export = parse_json(text)
    keys = UnitKeys()
    for number, (raw, make) in enumerate(_raw(export, name), start=1):
        own = _id(raw)
        try:
            found = make(raw)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            key = keys.new(own, json.dumps(raw, default=str))
            why = (
                f"conversation {number}: it is not as it should be: {type(error).__name__}: {error}"
            )
            yield broken(key, why, "the others of the export are not affected")
            continue
        if found.turns:
            key = keys.new(found.id or own, json.dumps(raw, default=str))
            for part in _texts(found, name):
                yield replace(part, unit=Unit(key))


def read_slack(path: Path, name: str) -> Iterator[SourceText]:
    """Read a day of a Slack channel, or an object with all of its ``messages``.

    Names come from ``users.json``, where that is beside it, or from the object's ``users``.

    Raises:
        UnreadableSource: It is no such export, or too big.
    """
    try:
        export = parse_json(read_whole(path, name, MAX_BYTES))
        title, users = "", _slack_users(path)
        if isinstance(export, dict):  # a whole channel, as programs other than Slack write it
            title = str(export.get("name") or export.get("channel") or "")
            users |= _users_listed(export.get("users") or [])
            export = export["messages"]
        found = _slack(export, path, name, users)
        found = replace(found, title=f"#{title}") if title else found
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = "export it from Slack again"
        raise UnreadableSource(f"{display_name(name)} is no Slack export: {error}", hint) from error
    return _texts(found, name)


def read_agent(path: Path, name: str) -> Iterator[SourceText]:
    """Read the transcript of an agent: what its user and it said, without tools.

    Raises:
        UnreadableSource: Nobody says anything in it.
    """
    found = read_transcript(path)
    if not found.turns:
        raise UnreadableSource(
            f"nobody says anything in {display_name(name)}", "it has tool calls or settings alone"
        )
    said = [_Turn(part.sender, part.content, part.at) for part in found.parts]
    title = found.title or title_of_turns(found.turns)
    left_out = {} if found.is_whole else {LEFT_OUT: True}
    return _texts(_Conversation(name, title, said), name, **left_out)


def _texts(conversation: _Conversation, name: str, **metadata: object) -> Iterator[SourceText]:
    head = named_document(
        name,
        title=clean_title(conversation.title),
        authors=tuple(dict.fromkeys(turn.speaker for turn in conversation.turns if turn.speaker)),
        metadata=metadata,
        created_at=next((turn.said_at for turn in conversation.turns if turn.said_at), None),
    )
    return assemble(head, _pieces(conversation.turns))


def _pieces(turns: Sequence[_Turn]) -> Iterator[Piece]:
    for turn in turns:
        if not turn.speaker:
            yield Piece(f"{turn.text}\n\n")
            continue
        when = f"[{turn.said_at:%Y-%m-%d %H:%M}] " if turn.said_at else ""
        text = f"{when}{turn.speaker}: {turn.text}\n\n"
        yield Piece(text, "turn", speaker=turn.speaker, said_at=turn.said_at)


Make = Callable[[Any], _Conversation]


def _raw(export: Any, name: str) -> Iterator[tuple[Any, Make]]:
    """Yield the conversations as they stand in an export, each with what reads it."""
    if isinstance(export, dict) and isinstance(export.get("chats"), dict):
        export = export["chats"].get("list") or []
    if isinstance(export, dict):
        export = [export]
    if not isinstance(export, list) or not export:
        raise UnreadableSource(f"{display_name(name)} holds no conversation", "export it anew")
    kinds: dict[str, Make] = {
        "mapping": _chatgpt, "chat_messages": _claude, "messages": _telegram,
    }  # fmt: skip
    for item in export:
        key = next((key for key in kinds if isinstance(item, dict) and key in item), "mapping")
        yield item, kinds[key]


def _id(raw: Any) -> str:
    found = raw if isinstance(raw, dict) else {}
    keys = ("conversation_id", "uuid", "id")
    return next((str(found[key]) for key in keys if found.get(key)), "")


# --- ChatGPT and Claude ---------------------------------------------------------------------------

_ROLES = {"user": "User", "human": "User", "assistant": "Assistant"}


def _chatgpt(raw: Json) -> _Conversation:
    """The branch of a conversation that it ended with; edits and second tries are others."""
    nodes: dict[str, Any] = raw["mapping"]
    place = raw.get("current_node") or next(
        (key for key, node in nodes.items() if not node.get("children")), None
    )
    branch: list[Json] = []
    seen: set[str] = set()
    while place and place in nodes and place not in seen:
        seen.add(place)
        branch.append(nodes[place])
        place = nodes[place].get("parent")
    turns = [turn for node in reversed(branch) if (turn := _chatgpt_turn(node.get("message")))]
    return _Conversation(_id(raw), raw.get("title") or "", turns)


def _chatgpt_turn(message: Json | None) -> _Turn | None:
    role = _ROLES.get(((message or {}).get("author") or {}).get("role", ""))
    if message is None or role is None:
        return None
    content = message.get("content") or {}
    parts = content.get("parts") or [content.get("text") or ""]
    said = (part if isinstance(part, str) else part.get("text") or "" for part in parts if part)
    text = "\n".join(each for each in said if each).strip()
    return _Turn(role, text, parse_timestamp(message.get("create_time"))) if text else None


def _claude(raw: Json) -> _Conversation:
    turns = []
    for message in raw["chat_messages"]:
        blocks = message.get("content") or []
        said = [block.get("text") or "" for block in blocks if block.get("type") == "text"]
        text = "\n".join(filter(None, said)).strip() or (message.get("text") or "").strip()
        names = [each.get("file_name") or "" for each in message.get("attachments") or []]
        text = "\n".join(filter(None, (text, *(f"[{name}]" for name in names if name))))
        if text:
            speaker = _ROLES.get(message["sender"], message["sender"])
            turns.append(_Turn(speaker, text, parse_timestamp(message.get("created_at"))))
    return _Conversation(_id(raw), raw.get("name") or "", turns)


# --- Telegram and Slack ---------------------------------------------------------------------------


def _telegram(raw: Json) -> _Conversation:
    turns = []
    for message in raw["messages"]:
        text = _flat(message.get("text"))
        media = message.get("media_type") or ("photo" if message.get("photo") else "")
        text = text or (f"[{media.replace('_', ' ')}]" if media else "")
        if message.get("type") == "message" and text.strip():
            moment = message.get("date_unixtime") or message.get("date")
            speaker = message.get("from") or message.get("from_id") or "Unknown"
            turns.append(_Turn(str(speaker), text.strip(), parse_timestamp(moment)))
    return _Conversation(str(raw.get("id") or ""), raw.get("name") or "", turns)


def _flat(text: Any) -> str:
    """Text that comes whole, or in pieces some of which are marked."""
    pieces = text if isinstance(text, list) else [text]
    return "".join(
        each if isinstance(each, str) else (each or {}).get("text", "") for each in pieces
    )


def _slack(raw: Sequence[Json], path: Path, name: str, users: dict[str, str]) -> _Conversation:
    profiles = ((str(each.get("user")), each.get("user_profile") or {}) for each in raw)
    users = {user: str(of["real_name"]) for user, of in profiles if of.get("real_name")} | users
    turns = []
    for message in raw:
        user = message.get("user") or message.get("bot_id") or ""
        speaker = users.get(user) or message.get("username") or user or "Unknown"
        files = [f"[{each['name']}]" for each in message.get("files") or () if each.get("name")]
        text = "\n".join(filter(None, (_slack_text(message.get("text") or "", users), *files)))
        if text and message.get("subtype") not in ("channel_join", "channel_leave"):
            turns.append(_Turn(speaker, text, parse_timestamp(message["ts"].partition(".")[0])))
    is_claimed = path.parent.parent.name == PROCESSING  # in a folder made for it
    channel = Path(name).parent.name or ("" if is_claimed else path.parent.name)
    return _Conversation(name, f"#{channel} {path.stem}" if channel else path.stem, turns)


_SLACK_MENTION = re.compile(r"<@(\w+)(?:\|[^>]*)?>")
_SLACK_LINK = re.compile(r"<(?:#\w+\|)?([^<>|]+)(?:\|([^<>]*))?>")


def _slack_text(text: str, users: Mapping[str, str]) -> str:
    text = _SLACK_MENTION.sub(lambda found: f"@{users.get(found[1], found[1])}", text)
    text = _SLACK_LINK.sub(lambda found: f"{found[2]} ({found[1]})" if found[2] else found[1], text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


def _slack_users(path: Path) -> dict[str, str]:
    """Who is who, where ``users.json`` lies beside the file's folder, or beside the file."""
    for folder in (path.parent.parent, path.parent):
        with suppress(OSError, UnreadableSource, AttributeError, KeyError, TypeError):
            return _users_listed(
                parse_json(read_whole(folder / "users.json", "users.json", MAX_BYTES))
            )
    return {}


def _users_listed(users: Any) -> dict[str, str]:
    """Names by the ids of users, who are listed or stand by their ids."""
    if isinstance(users, dict):
        return {
            key: each if isinstance(each, str) else _slack_name(each) for key, each in users.items()
        }
    return {each["id"]: _slack_name(each) for each in users}


def _slack_name(user: Json) -> str:
    profile = user.get("profile") or {}
    names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"))
    return str(next((name for name in names if name), None) or user.get("name") or user["id"])
