"""Exports of chat programs by conversation: who said what, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memctl.readers import detect_media_type, kind_of_units, read
from memctl.readers.chat_exports import read_slack
from memctl.readers.transcripts import LEFT_OUT, _parse, without_injected_text
from memctl.records import SourceText

WHEN = 1_777_630_000.5


def _node(parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    message = {
        "author": {"role": role},
        "create_time": WHEN,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"message": message, "parent": parent, "children": [], **more}


def _chatgpt(id_: str, question: str) -> dict[str, Any]:
    return {
        "title": f"About {id_}",
        "create_time": WHEN,
        "mapping": {
            "root": {"message": None, "parent": None, "children": ["a"]},
            "a": _node("root", "system", "You are helpful."),
            "b": _node("a", "user", question),
            "wrong": _node("b", "assistant", "A first try."),
            "c": _node("b", "assistant", "Ninety euros."),
        },
        "current_node": "c",
        "conversation_id": id_,
    }


CLAUDE = [
    {
        "uuid": "u1",
        "name": "Crane prices",
        "created_at": "2026-05-01T10:00:00Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "", "created_at": "2026-05-01T10:00:00Z",
             "content": [{"type": "text", "text": "What does the crane cost?"}],
             "attachments": [{"file_name": "offer.pdf"}]},
            {"uuid": "m2", "sender": "assistant", "text": "Ninety euros.",
             "created_at": "2026-05-01T10:01:00Z", "content": []},
        ],
    }
]  # fmt: skip

TELEGRAM = {
    "name": "Bob Ray",
    "type": "personal_chat",
    "id": 4711,
    "messages": [
        {"id": 1, "type": "service", "date": "2026-05-01T10:00:00", "actor": "Bob", "text": ""},
        {"id": 2, "type": "message", "date": "2026-05-01T10:00:00", "date_unixtime": "1777629600",
         "from": "Ann Lee", "from_id": "user1", "text": ["Look at ", {"type": "link",
         "text": "https://x.org"}, " for the crane."], "text_entities": []},
        {"id": 3, "type": "message", "date": "2026-05-01T10:05:00", "from": "Bob Ray",
         "from_id": "user2", "text": "", "photo": "photos/1.jpg", "text_entities": []},
    ],
}  # fmt: skip


def _read(tmp_path: Path, export: Any, name: str) -> list[SourceText]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(export, indent=1))
    return list(read(path))


def _turns(text: SourceText) -> list[tuple[str | None, str]]:
    return [(s.speaker, text.text[s.start : s.end]) for s in text.segments]


def test_chatgpt_gives_the_branch_that_a_conversation_ended_with(tmp_path: Path) -> None:
    export = [_chatgpt("c1", "What does the crane cost?"), _chatgpt("c2", "And the truck?")]
    first, second = _read(tmp_path, export, "conversations.json")
    assert kind_of_units(tmp_path / "conversations.json", "conversations.json")
    assert first.unit
    assert (first.title, first.unit.key) == ("About c1", "c1")
    stamp = f"[{datetime.fromtimestamp(WHEN, UTC):%Y-%m-%d %H:%M}]"
    assert _turns(first) == [
        ("User", f"{stamp} User: What does the crane cost?"),
        ("Assistant", f"{stamp} Assistant: Ninety euros."),
    ]
    assert "And the truck?" in second.text
    assert first.created_at == datetime.fromtimestamp(WHEN, UTC)
    assert "first try" not in first.text


def test_claude_gives_text_and_the_names_of_files(tmp_path: Path) -> None:
    (found,) = _read(tmp_path, CLAUDE, "conversations.json")
    assert found.title == "Crane prices"
    assert [speaker for speaker, _ in _turns(found)] == ["User", "Assistant"]
    assert "What does the crane cost?\n[offer.pdf]" in found.text
    assert found.segments[1].said_at == datetime(2026, 5, 1, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "export",
    [TELEGRAM, {"about": "Here is the data you requested.", "chats": {"list": [TELEGRAM]}}],
)
def test_telegram_gives_real_names_and_times(tmp_path: Path, export: Any) -> None:
    (found,) = _read(tmp_path, export, "result.json")
    assert found.unit
    assert (found.title, found.unit.key, found.authors) == (
        "Bob Ray",
        "4711",
        ("Ann Lee", "Bob Ray"),
    )
    assert [text.partition("] ")[2] for _, text in _turns(found)] == [
        "Ann Lee: Look at https://x.org for the crane.",
        "Bob Ray: [photo]",
    ]
    assert found.segments[0].said_at == datetime(2026, 5, 1, 10, tzinfo=UTC)


def test_slack_takes_names_from_the_users_beside_it(tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee"}}]
    (tmp_path / "users.json").write_text(json.dumps(users))
    day = [
        {"type": "message", "user": "U1", "ts": "1777629600.000100", "text": "Hi <@U2> &amp; all"},
        {"type": "message", "user": "U2", "ts": "1777629660.000100",
         "user_profile": {"real_name": "Bob Ray"}, "text": "See <https://x.org|the offer>"},
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1777629660.0",
         "text": "joined"},
    ]  # fmt: skip
    (found,) = _read(tmp_path, day, "harbour/2026-05-01.json")
    assert found.title == "#harbour 2026-05-01"
    assert [text.partition("] ")[2] for _, text in _turns(found)] == [
        "Ann Lee: Hi @Bob Ray & all",
        "Bob Ray: See the offer (https://x.org)",
    ]


def test_a_day_of_slack_in_an_inbox_is_not_named_after_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "processing" / "268dd53e39a61c1b" / "2026-05-01.json"
    path.parent.mkdir(parents=True)
    day = [{"type": "message", "user": "U1", "ts": "1777629600.000100", "text": "Hi all"}]
    path.write_text(json.dumps(day))
    (found,) = read_slack(path, path.name)
    assert found.title == "2026-05-01"


def test_a_whole_slack_channel_has_the_names_that_its_users_have(tmp_path: Path) -> None:
    export = {
        "channel": "unit-7",
        "users": {"ann": "Ann Lee"},
        "messages": [
            {"type": "message", "user": "ann", "ts": "2026-05-01T10:00:00Z", "text": "All in."},
            {"type": "message", "user": "bob", "ts": "1777629660.000100", "text": "Good."},
        ],
    }
    (found,) = _read(tmp_path, export, "export.json")
    assert found.title == "#unit-7"
    assert [text.partition("] ")[2] for _, text in _turns(found)] == [
        "Ann Lee: All in.",
        "bob: Good.",
    ]
    assert found.segments[0].said_at == datetime(2026, 5, 1, 10, tzinfo=UTC)


ASKED = {"role": "user", "content": "Which pump?"}
TOLD = {"role": "assistant", "content": [{"type": "text", "text": "The red one."}]}
AIDER = """
# aider chat started at 2026-05-20 10:00:00

> Aider v0.80
> Git repo: .git

#### /add pump.py

> Added pump.py to the chat

#### Which
#### pump?

The red one.

> Tokens: 2k sent
"""
CURSOR = """# Pumps
_Exported on 5/20/2026 at 10:00:00 GMT+2 from Cursor (0.50.5)_

---

**User**

Which pump?

---

**Cursor**

The red one.

---
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("openai.json", json.dumps({"messages": [ASKED, TOLD]}, indent=2)),
        (
            "tools.jsonl",
            json.dumps(
                {
                    "messages": [
                        {"role": "system", "content": "You are helpful."},
                        ASKED,
                        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]},
                        {"role": "tool", "tool_call_id": "t1", "content": "red"},
                        TOLD,
                    ]
                }
            ),
        ),
        (
            "gemini.json",
            json.dumps(
                {
                    "sessionId": "g",
                    "projectHash": "h",
                    "messages": [
                        {"id": "1", "type": "user", "content": "Which pump?"},
                        {"id": "2", "type": "gemini", "content": "The red one."},
                    ],
                },
                indent=2,
            ),
        ),
        (
            "checkpoint.json",
            json.dumps(
                [
                    {"role": "user", "parts": [{"text": "Which pump?"}]},
                    {"role": "model", "parts": [{"text": "The red one."}]},
                ]
            ),
        ),
        (".aider.chat.history.md", AIDER),
        ("cursor_pumps.md", CURSOR),
    ],
)
def test_transcripts_of_agents_are_turns_without_tools(
    tmp_path: Path, name: str, content: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    (found,) = read(path)
    speakers = [segment.speaker for segment in found.segments if segment.kind == "turn"]
    assert speakers == ["user", "assistant"]
    first, second = (text.partition(": ")[2] for _, text in _turns(found)[-2:])
    assert (" ".join(first.split()), second) == ("Which pump?", "The red one.")
    assert " ".join(found.title.split()).removesuffix("?") in ("Which pump", "Pumps")
    assert found.metadata == {}, "nothing was left out but tool calls"


def test_transcripts_in_markdown_have_the_days_that_they_name(tmp_path: Path) -> None:
    code = "#### Show it\n\n```\n#### no turn\n```\n"
    for name, content, expected in (
        ("history.md", f"{AIDER}\n{code}", ["2026-05-20"] * 4),
        ("cursor.md", CURSOR, ["2026-05-20"] * 2),
    ):
        (tmp_path / name).write_text(content)
        (found,) = read(tmp_path / name)
        days = [each.said_at and f"{each.said_at:%Y-%m-%d}" for each in found.segments]
        assert days == expected
        assert name != "history.md" or "```\n#### no turn\n```" in found.text


def _lines(*values: object) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


CONVERSATION = {"messages": [ASKED, {"role": "assistant", "content": "The red one."}]}


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("roles.md", "# Roles\n\nKey 7.\n\n## User\n\nA.\n\n## Agent\n\nB.\n", "text/markdown"),
        ("how.md", f"How aider writes:\n\n{AIDER}", "text/markdown"),
        ("pages.md", CURSOR.replace("_Exported on", "_Printed on"), "text/markdown"),
        ("conf.json", json.dumps({**CONVERSATION, "owner": "Tessa"}), "application/json"),
        ("note.json", json.dumps({"messages": [{**ASKED, "note": "x"}]}), "application/json"),
        ("tune.jsonl", _lines(*2 * [{**CONVERSATION, "rating": 5}]), "application/x-ndjson"),
        (
            "end.jsonl",
            _lines(*1000 * [CONVERSATION], {**CONVERSATION, "note": "of Zelda"}),
            "application/x-ndjson",
        ),
        (
            "api.jsonl",
            _lines(*2 * [{"id": "r", "request": CONVERSATION, "answer": "Red"}]),
            "application/x-ndjson",
        ),
    ],
)  # fmt: skip
def test_what_has_more_than_an_exporter_writes_is_no_transcript(
    tmp_path: Path, name: str, content: str, kind: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert detect_media_type(path) == kind


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_transcripts_are_decoded_as_other_text_is(tmp_path: Path, encoding: str) -> None:
    asked = {"role": "user", "content": "Où est le café?"}
    for name, content in (
        ("a.md", AIDER.lstrip().replace("pump?", "café?")),
        ("a.json", json.dumps({"messages": [asked, TOLD]}, ensure_ascii=False)),
        ("a.jsonl", json.dumps({"messages": [asked]}, ensure_ascii=False) + "\n"),
    ):
        path = tmp_path / name
        path.write_bytes(content.encode(encoding))
        (found,) = read(path)
        assert found.segments[0].speaker == "user"
        assert "café?" in found.text


def test_a_fence_that_nothing_closes_ends_with_the_next_prompt(tmp_path: Path) -> None:
    path = tmp_path / "history.md"
    chat = "# aider chat started at 2026-05-2{} 10:00:00\n\n#### {}?\n\n"
    path.write_text(
        f"{chat.format(1, 'One')}Port 8123.\n\n> As the manual says.\n\n```\nport = 1\n\n"
        f"#### Two?\n\nDelta.\n\n```\nrest\n{chat.format(2, '/etc/hosts')}Room twelve."
    )
    (found,) = read(path)
    assert [(speaker, text.partition(": ")[2]) for speaker, text in _turns(found)] == [
        ("user", "One?"),
        ("assistant", "Port 8123.\n\n> As the manual says.\n\n```\nport = 1"),
        ("user", "Two?"),
        ("assistant", "Delta.\n\n```\nrest"),
        ("user", "/etc/hosts?"),
        ("assistant", "Room twelve."),
    ]


def test_what_stands_beside_the_turns_is_kept_or_said_to_be_left_out(tmp_path: Path) -> None:
    head, rule, turns = CURSOR.partition("---")
    path = tmp_path / "cursor.md"
    path.write_text(f"{head}Key 7719.\n\n{rule}{turns}")
    (found,) = read(path)
    assert found.segments[0].speaker is None
    assert "Key 7719." in found.text
    assert found.metadata == {}
    path = tmp_path / "claude.jsonl"
    said = {"sessionId": "s", "type": "user", "message": ASKED}
    path.write_text(_lines(said, {"type": "summary", "summary": "Pumps"}))
    (found,) = read(path)
    assert found.metadata == {LEFT_OUT: True}


def test_turns_with_the_same_id_in_two_conversations_of_a_file_are_all_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "two.jsonl"
    asked = ("Where is the ladder?", "Who rents the mill?")
    path.write_text(_lines(*({"messages": [{**ASKED, "id": "1", "content": q}]} for q in asked)))
    (found,) = read(path)
    assert [text.partition(": ")[2] for _, text in _turns(found)] == list(asked)


def test_tags_are_text_unless_an_agent_put_them_in() -> None:
    item = "<item><timestamp>2026-03-01 boiler inspected</timestamp></item>"
    assert without_injected_text(item) == item
    opened = "<system-reminder>12:00\n<user_query>" * 100_000
    assert without_injected_text(opened) == opened
    assert (
        without_injected_text("a <command-name>x</command-name><bash-input>b") == "a <bash-input>b"
    )
    turns = {"messages": [{**ASKED, "content": "what is <command-name>x</command-name>?"}]}
    assert "command-name" in str(_parse(json.dumps(turns)).turns)


def test_a_broken_conversation_says_why_and_the_others_are_read(tmp_path: Path) -> None:
    broken = {**_chatgpt("c2", "x"), "mapping": {"c": {"message": 7, "parent": None}}}
    export = [_chatgpt("c1", "One?"), broken, _chatgpt("c3", "Three?")]
    units = [each.unit for each in _read(tmp_path, export, "conversations.json") if each.unit]
    assert [(unit.key, bool(unit.problem)) for unit in units] == [
        ("c1", False), ("c2", True), ("c3", False),
    ]  # fmt: skip


def test_other_json_is_no_export(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"title": "x", "messages": ["a"], "mapping": {"text": 1}}))
    assert detect_media_type(path) == "application/json"


def test_lines_with_times_that_nobody_speaks_are_no_chat(tmp_path: Path) -> None:
    path = tmp_path / "readings.txt"
    path.write_text("2026-05-01 10:00 Tank 4 of the harbour is 40 percent full: fine\n" * 5)
    (found,) = read(path)
    assert {segment.speaker for segment in found.segments} == {None}


# --- text that phones export ----------------------------------------------------------------------


def test_a_placeholder_for_a_picture_in_a_phone_chat_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "WhatsApp Chat mit Ann.txt"
    path.write_text(
        "13.05.26, 14:03 - Ann: Wer hat den Schlüssel?\n"
        "13.05.26, 14:04 - Bob: <Medien ausgeschlossen>\n"
        "13.05.26, 14:05 - Ann: <3 danke\n"
    )
    (found,) = read(path)
    assert [segment.speaker for segment in found.segments] == ["Ann", "Ann"]
    assert "<Medien ausgeschlossen>" in found.text


@pytest.mark.parametrize(
    ("lines", "speakers"),
    [
        (
            "12/05/2026, 14:03 - Messages and calls are end-to-end encrypted.\n"
            "13/05/2026, 14:03 - Ann Lee: Shall we sell the crane?\n"
            "13/05/2026, 14:05 - Bob Ray 🚢: Yes.\nAnd the truck too.\n"
            "13/05/2026, 14:06 - Ann Lee added Cy Orr\n"
            "13/05/2026, 14:07 - +49 170 1234567: Who is this?\n",
            ["Ann Lee", "Bob Ray 🚢", None, "+49 170 1234567"],
        ),
        (
            "\u200e[13/05/2026, 14:03:11] Ann Lee: \u200eMessages are encrypted.\n"
            "[13/05/2026, 14:03:12] Ann Lee: Shall we sell the crane?\n"
            "[13/05/2026, 14:05:00] Bob Ray: Yes.\n"
            "\u200e[13/05/2026, 14:06:00] ~ Cy: hello, all\n",
            ["Ann Lee", "Ann Lee", "Bob Ray", "Cy"],
        ),
        (
            "5/13/26, 2:03\u202fPM - Ann: Shall we?\n5/13/26, 2:05\u202fPM - Bob: Yes.\n",
            ["Ann", "Bob"],
        ),
    ],
)
def test_a_chat_of_a_phone_has_its_speakers_and_times(
    tmp_path: Path, lines: str, speakers: list[str | None]
) -> None:
    path = tmp_path / "WhatsApp Chat with Ann.txt"
    path.write_text(lines)
    (found,) = read(path)
    assert [segment.speaker for segment in found.segments] == speakers
    assert found.text == lines
    times = [segment.said_at for segment in found.segments if segment.speaker]
    assert all(moment and (moment.month, moment.day) == (5, 13) for moment in times)
    assert times[0]
    assert times[0].hour == 14


def test_values_of_other_kinds_than_an_exporter_writes_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd: list[Any] = [
        {"sessionId": "s", "type": "user", "message": {"role": {}, "content": [{"type": []}]}},
        {"sessionId": "s", "type": "user", "message": {**ASKED}, "timestamp": 10**30},
        {"type": "response_item", "payload": {"type": ["message"]}},
    ]
    path.write_text(_lines(*odd))
    (found,) = read(path)
    assert [text for _, text in _turns(found)] == ["user: Which pump?"]


def test_a_heading_in_a_reply_is_no_command_that_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "history.md"
    path.write_text(f"{AIDER.lstrip()}\n#### /users\n\nLists all.\n\n> Added in 2.0\n")
    (found,) = read(path)
    assert "/users" in found.text
    assert "> Added in 2.0" in found.text
