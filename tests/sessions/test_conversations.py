"""Conversations as objects: durable at once, found by the next query, in the tables once."""

from __future__ import annotations

import gc
import io
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

import memctl
from memctl.config import CompressionSettings
from memctl.errors import LockedError, NotFoundError, UsageError
from memctl.forget import Selection
from memctl.knowledge_base import KnowledgeBase
from memctl.models import load_embedder
from memctl.records import Filters
from memctl.schema.arrow_tables import vector_rows
from memctl.sessions.conversations import Message
from memctl.sessions.folding import FoldedTurns, Folding, session_document
from memctl.store.ledger.session_repositories import (
    InjectedRepository,
    Session,
    SessionRepository,
    Turn,
)
from memctl.store.tables.filter_expressions import col


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with memctl.open("talk", home=tmp_path_factory.mktemp("home"), create=True) as opened:
        yield opened


def said(base: KnowledgeBase, session: Session, *words: str) -> None:
    for number, text in enumerate(words):
        base.sessions.say(session, Message(sender=("user", "agent")[number % 2], content=text))


def turns_in_tables(base: KnowledgeBase, session: Session) -> list[tuple[int, str]]:
    rows = base.memories.list(Filters(session=session.session_id, types=("turn", "query")))
    found = [(row["turn"], row["text"]) for row in rows.to_pylist()]
    return sorted(found)


def test_what_is_said_is_found_by_the_very_next_query(base: KnowledgeBase) -> None:
    session = base.sessions.start(user="ann", agent="helper")
    said(base, session, "The harbour crane is serviced in October.", "Noted.")
    assert base.store.ledger.turns.count_pending() == 2
    hits = base.query("When is the harbour crane serviced?").hits
    assert hits[0].text == "The harbour crane is serviced in October."
    assert (hits[0].session_id, hits[0].turn) == (session.session_id, 0)
    assert hits[0].namespace == "user:ann:conversations"
    assert not base.store.ledger.turns.has_pending()


def test_the_vector_of_a_turn_has_the_name_of_who_says_it(base: KnowledgeBase) -> None:
    session = base.sessions.start("by-name", user="dora")
    base.sessions.say(session, Message(sender="Elena Vos", content="The dyke holds."))
    base.query("dyke")
    found = base.store.snapshot().scan("memories", col("text") == "The dyke holds.", ["vector"])
    (vector,) = vector_rows(found.column("vector").combine_chunks()).astype(np.float32)
    embed = load_embedder(base.settings.embedder).embed
    with_name, without = embed(["Elena Vos: The dyke holds.", "The dyke holds."])
    assert vector @ with_name > 0.999 > vector @ without


def test_one_conversation_is_one_document_however_often_it_is_asked(base: KnowledgeBase) -> None:
    session = base.sessions.start("parts")
    for number in range(3):
        said(base, session, f"The quay number {number} is closed.")
        base.query("Which quay is closed?")
    rows = [row for row in base.documents.list().to_pylist() if row["source"] == "session:parts"]
    assert [row["id"] for row in rows] == [session_document(session.namespace, "parts")]
    view = base.documents.get(rows[0]["id"])
    assert view.parts == 3
    assert view.document.text.split("\n\n")[:3] == [
        f"The quay number {n} is closed." for n in range(3)
    ]
    assert [m.turn for m in view.memories if m.type == "turn"] == [0, 1, 2]


def test_messages_are_numbered_whoever_adds_them_at_once(base: KnowledgeBase) -> None:
    session = base.sessions.start("crowd")
    home = base.layout.folder.parents[1]

    def speak(name: str) -> None:
        with memctl.open("talk", home=home) as other:
            for number in range(20):
                other.sessions.say(session, Message(sender="user", content=f"{name} {number}"))

    speakers = [threading.Thread(target=speak, args=(name,)) for name in ("one", "two")]
    for each in speakers:
        each.start()
    for each in speakers:
        each.join()
    turns = base.sessions.turns(session)
    assert [turn.turn for turn in turns] == list(range(40))
    assert Counter(turn.content.split()[0] for turn in turns) == {"one": 20, "two": 20}
    assert base.sessions.get("crowd").message_count == 40
    base.sessions.fold(session)


def test_the_same_message_under_its_number_or_id_is_known(base: KnowledgeBase) -> None:
    session = base.sessions.start("again")
    first = Message(sender="user", content="Tea, please.", turn=7)
    assert base.sessions.say(session, first) == base.sessions.say(session, first)
    named = Message(sender="user", content="With milk.", external_id="m-1")
    assert [base.sessions.say(session, named)[0].turn for _ in range(2)] == [8, 8]
    with pytest.raises(UsageError, match="says something else already"):
        base.sessions.say(session, replace(first, content="Coffee, please."))
    assert [turn for turn, _ in turns_in_tables(base, session)] == [7, 8]


def test_an_unknown_conversation_is_named_with_those_there_are(base: KnowledgeBase) -> None:
    base.sessions.start("known")
    with pytest.raises(NotFoundError) as caught:
        base.sessions.get("unknown")
    assert "'unknown'" in caught.value.message
    assert "known" in caught.value.hint
    with pytest.raises(UsageError, match="there is a session 'known'"):
        base.sessions.start("known")


def test_an_ended_conversation_has_a_title_and_goes_on_with_a_message(base: KnowledgeBase) -> None:
    session = base.sessions.start("over")
    said(base, session, "We decided to paint the crane red.", "Good.")
    ended = base.sessions.end(session)
    day = f"{ended.last_at:%Y-%m-%d}"
    assert (ended.status, ended.title) == ("ended", f"Session {day}")
    assert "paint the crane red" in ended.summary
    assert base.documents.get(session_document(session.namespace, "over")).document.title
    with pytest.raises(UsageError, match="has ended"):
        base.sessions.end(session)
    said(base, session, "Or blue.")
    assert base.sessions.get("over").status == "open"
    assert base.sessions.get("over").ended_at is None


def test_a_clock_that_was_moved_back_changes_no_order(tmp_path: Path) -> None:
    with memctl.open("talk", home=tmp_path, create=True) as base:
        session = base.sessions.start("clock")
        said(base, session, "First the mast.")
        early = datetime(2001, 1, 1, tzinfo=UTC)
        base.sessions.say(session, Message(sender="agent", content="Then the sail.", at=early))
        assert [turn.content for turn in base.sessions.turns(session)][-1] == "Then the sail."
        now = base.sessions.get("clock")
        assert (now.started_at, now.last_at > early) == (early, True)
        assert [turn for turn, _ in turns_in_tables(base, session)] == [0, 1]


def test_nothing_was_said_on_a_day_to_come(base: KnowledgeBase) -> None:
    session = base.sessions.start("ahead")
    now = datetime.now(UTC)
    for at in (now + timedelta(hours=30), datetime(2099, 1, 5)):  # noqa: DTZ001
        with pytest.raises(UsageError, match="yet to come"):
            base.sessions.say(session, Message(sender="user", content="The code is 8822.", at=at))
    early = Message(sender="user", content="The code is 1111.", at=now + timedelta(hours=12))
    assert [turn.content for turn in base.sessions.say(session, early)] == ["The code is 1111."]
    assert len(base.sessions.turns(base.sessions.get("ahead"))) == 1


def test_a_message_of_ten_megabytes_is_kept_whole(base: KnowledgeBase) -> None:
    session = base.sessions.start("long")
    text = "The anchor chain is long. " * 400_000
    turn = base.sessions.say(session, Message(sender="user", content=text))[0]
    assert len(turn.content) == len(text)
    with pytest.raises(UsageError, match="longer than 64 MiB"):
        base.sessions.say(session, Message(sender="user", content="a" * (65 << 20)))
    with pytest.raises(UsageError, match="empty"):
        base.sessions.say(session, Message(sender="user", content="  "))
    base.sessions.forget(session)


def test_the_text_of_a_file_is_found_with_its_turn(base: KnowledgeBase, tmp_path: Path) -> None:
    note, picture = tmp_path / "berths.txt", tmp_path / "cat.png"
    note.write_text("Berth 14 belongs to the ferry Heron.")
    Image.new("RGB", (4, 4)).save(picture)
    session = base.sessions.start("files")
    copied = base.sessions.say(session, Message(sender="user", content="See this.", media=note))[0]
    seen = base.sessions.say(session, Message(sender="user", media=picture, links=True))[0]
    assert (copied.message_type, seen.message_type) == ("file", "image")
    assert (base.layout.folder / copied.media).read_text() == note.read_text()
    assert copied.media == f"media/{copied.media_sha256}.txt"
    assert seen.media == str(picture)
    note.unlink()
    assert base.query("Whose is berth 14?").hits[0].turn == copied.turn


def test_somebody_who_writes_holds_up_no_query(
    base: KnowledgeBase, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.sessions.folding._WRITER_SECONDS", 0.1)
    session = base.sessions.start("busy")
    said(base, session, "The pilot boat is at the north pier.")
    with base.store.write(), caplog.at_level(logging.WARNING, "memctl"):
        base.query("Where is the pilot boat?")
    assert "not found yet" in caplog.text
    assert base.query("Where is the pilot boat?").hits[0].session_id == "busy"


def test_what_is_older_is_forgotten_by_whole_conversations(tmp_path: Path) -> None:
    with memctl.open("talk", home=tmp_path, create=True) as base:
        early = datetime(2001, 1, 1, tzinfo=UTC)
        for name, at in (("old", early), ("new", None)):
            session = base.sessions.start(name)
            text = f"The mast of the {name} boat is oak."
            base.sessions.say(session, Message(sender="user", content=text, at=at))
        base.memories.list()
        base.forget(Selection(before=datetime(2002, 1, 1, tzinfo=UTC)))
        assert [each.session_id for each in base.sessions.list()] == ["new"]
        assert turns_in_tables(base, session) == [(0, "The mast of the new boat is oak.")]


# --- JSON lines ----------------------------------------------------------------------------------


def lines(*records: dict[str, object]) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(each).encode() + b"\n" for each in records))


def record(number: int, text: str, **more: object) -> dict[str, object]:
    return {"id": f"r{number}", "session_id": "log", "turn": number, "text": text, **more}


def test_lines_of_a_session_are_its_turns(base: KnowledgeBase) -> None:
    records = [record(number, f"Buoy {number} is lit.", speaker="Ann") for number in range(30)]
    report = base.ingest(jsonl=lines(*records), namespace="log")
    assert (report.ingested, report.failed) == (30, 0)
    assert report.memories >= 30
    session = base.sessions.get("log")
    assert (session.message_count, session.namespace) == (30, "log")
    rows = base.documents.list(Filters(namespaces=("log",))).to_pylist()
    assert len(rows) == 1
    hit = base.query("Is buoy 17 lit?", filters=Filters(namespaces=("log",))).hits[0]
    assert (hit.external_id, hit.text) == ("r17", "Buoy 17 is lit.")

    again = base.ingest(jsonl=lines(*records, record(30, "Buoy 30 is dark.")), namespace="log")
    assert (again.ingested, again.skipped) == (1, 30)
    assert len(turns_in_tables(base, session)) == 31


def test_the_seconds_of_a_report_are_those_that_the_turns_took_too(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold, monotonic, later = Folding.fold, time.monotonic, 0.0

    def takes_long(self: Folding) -> FoldedTurns:
        nonlocal later
        later += 100
        return fold(self)

    monkeypatch.setattr(Folding, "fold", lambda self, progress: takes_long(self))
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + later)
    report = base.ingest(jsonl=lines(record(0, "The fog lifts.", session_id="fog")), namespace="f")
    assert report.ingested == 1
    assert report.seconds >= 100


def test_lines_of_a_session_are_looked_up_together(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    for kind, name in ((SessionRepository, "find"), (InjectedRepository, "times_of")):
        look = getattr(kind, name)

        def counted(self: object, *args: object, look: Any = look, name: str = name) -> object:
            looks[name] += 1
            return look(self, *args)

        monkeypatch.setattr(kind, name, counted)
    many = [record(number, f"Gull {number} cries.", session_id="gulls") for number in range(30)]
    assert base.ingest(jsonl=lines(*many), namespace="gulls").ingested == 30
    assert looks["times_of"] == 1
    assert looks["find"] < 10


def test_turns_that_are_in_the_ledger_are_not_held_in_memory_too(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold, held = Folding.fold, list[Turn]()

    def look(self: Folding, progress: None) -> FoldedTurns:
        turns = [each for each in gc.get_objects() if isinstance(each, Turn)]
        held.extend(turn for turn in turns if turn.session_id == "terns")
        return fold(self, progress=progress)

    monkeypatch.setattr(Folding, "fold", look)
    many = [record(number, f"Tern {number} dives.", session_id="terns") for number in range(5)]
    assert base.ingest(jsonl=lines(*many), namespace="terns").ingested == 5
    assert not held


def test_a_line_that_says_something_else_now_takes_the_place_of_the_former(
    base: KnowledgeBase,
) -> None:
    base.ingest(jsonl=lines(record(0, "The gate code is 11.", session_id="gate")), namespace="g")
    report = base.ingest(
        jsonl=lines(record(0, "The gate code is 12.", session_id="gate")), namespace="g"
    )
    assert (report.ingested, report.superseded) == (1, 1)
    hits = base.query("What is the gate code?", filters=Filters(namespaces=("g",))).hits
    assert [hit.text for hit in hits if hit.type == "turn"] == ["The gate code is 12."]


def test_lines_without_number_or_id_are_known_by_how_often_they_were_said(
    base: KnowledgeBase,
) -> None:
    ok = {"session_id": "oks", "text": "ok", "speaker": "Ann"}
    assert base.ingest(jsonl=lines(ok, ok)).ingested == 2
    again = base.ingest(jsonl=lines(ok, ok, ok))
    assert (again.ingested, again.skipped) == (1, 2)
    assert [turn.turn for turn in base.sessions.turns(base.sessions.get("oks"))] == [0, 1, 2]


def test_a_dry_run_of_lines_writes_nothing(base: KnowledgeBase) -> None:
    line = record(0, "Dry as a bone.", session_id="dry")
    assert base.ingest(jsonl=lines(line), dry_run=True).ingested == 1
    with pytest.raises(NotFoundError):
        base.sessions.get("dry")


def test_passages_that_name_a_session_stay_documents(base: KnowledgeBase) -> None:
    line = record(0, "A page of its own.", session_id="pages", type="passage")
    base.ingest(jsonl=lines(line), namespace="pages")
    assert base.documents.list(Filters(namespaces=("pages",)))["source"].to_pylist() == ["stdin"]


def test_an_import_is_found_as_the_same_turns_as_lines(tmp_path: Path) -> None:
    facts = [
        ("Ann", "The lease of the harbour office ends in June."),
        ("Bob", "Who keeps the keys of the boat house?"),
        ("Ann", "Ida keeps them, in the drawer."),
        ("Bob", "The regatta starts at nine on Sunday."),
        ("Ann", "I will bring the blue flags."),
        ("Bob", "We decided to rent a second tent."),
    ]
    began = datetime(2026, 3, 1, 10, tzinfo=UTC)
    when = [began + timedelta(minutes=number) for number in range(len(facts))]
    both = list(zip(when, facts, strict=True))
    chat = tmp_path / "regatta.txt"
    chat.write_text("".join(f"[{at:%Y-%m-%d %H:%M}] {who}: {text}\n" for at, (who, text) in both))
    questions = ["When does the lease end?", "Who keeps the keys?", "When is the regatta?", "flags"]
    ranked = []
    for name in ("lines", "imported"):
        with memctl.open(name, home=tmp_path / "home", create=True) as base:
            if name == "lines":
                base.ingest(
                    jsonl=lines(
                        *(
                            {"session_id": "regatta", "speaker": who, "text": text,
                             "created_at": at.isoformat(), "turn": number}
                            for number, (at, (who, text)) in enumerate(both)
                        )
                    ),
                    namespace="user:default_user:conversations",
                    source=str(chat),
                )  # fmt: skip
            else:
                assert base.sessions.import_files([chat]).ingested == len(facts)
                assert base.sessions.import_files([chat]).skipped == len(facts)
            ranked.append(
                [
                    [(hit.type, hit.text) for hit in base.query(q, answer=False).hits]
                    for q in questions
                ]
            )
    assert ranked[0] == ranked[1]
    assert ranked[0][1][0][1].startswith(("Who keeps", "Ida keeps"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", [{"role": "user", "content": "Where is the chart?"},
                       {"role": "assistant", "content": [{"type": "text", "text": "On deck."}]}]),
        ("whole.json", {"id": "w1", "messages": [{"role": "user", "content": "Where is the chart?"},
                                                 {"role": "assistant", "content": "On deck."}]}),
        ("claude.json", [{"uuid": "c1", "name": "Charts", "chat_messages": [
            {"sender": "human", "text": "Where is the chart?", "created_at": "2026-01-02T03:04Z"},
            {"sender": "assistant", "text": "On deck.", "created_at": "2026-01-02T03:04:09Z"}]}]),
        ("plain.txt", "user: Where is the chart?\nassistant: On deck.\n"),
        ("phone.txt", "[02/01/2026, 03:04:05] Ann: Where is the chart?\n"
                      "[02/01/2026, 03:04:09] Bob: On deck.\n"),
        ("turns.jsonl", '{"role": "user", "content": "Where is the chart?"}\n'
                        '{"role": "assistant", "content": "On deck."}\n'),
        ("tuning.jsonl", '{"messages": [{"role": "user", "content": "Where is the chart?"}, '
                         '{"role": "assistant", "content": "On deck."}]}\n'),
    ],
)  # fmt: skip
def test_chats_of_many_kinds_become_conversations(
    base: KnowledgeBase, tmp_path: Path, name: str, content: object
) -> None:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    place = f"of {name}"
    report = base.sessions.import_files([path], namespace=place)
    assert (report.ingested, report.failed) == (2, 0), report.outcomes
    (session,) = base.sessions.list(namespaces=(place,))
    assert [t.content for t in base.sessions.turns(session)] == ["Where is the chart?", "On deck."]


def test_a_turn_is_found_by_the_name_of_who_says_it(tmp_path: Path) -> None:
    said = (("Ottilie Brandt", "The rope is new."), ("Bob Moser", "The rope is old."))
    with memctl.open("talk", home=tmp_path / "home", create=True) as base:
        chat = tmp_path / "chat.jsonl"
        messages = [{"role": name, "content": text} for name, text in (*said, ("user", "Good."))]
        chat.write_text("\n".join(map(json.dumps, messages)))
        base.sessions.import_files([chat])
        hits = base.query("Ottilie", mode="keyword", answer=False).hits
        assert next(hit.text for hit in hits if hit.type == "turn") == "The rope is new."
        assert not [h for h in base.query("user", mode="keyword").hits if h.text == "Good."]
        base.forget(Selection(entities=("Ottilie Brandt",)))
        assert base.query("Bob Moser", mode="keyword", answer=False).hits[0].text == said[1][1]


# --- compression ---------------------------------------------------------------------------------


def test_all_but_the_latest_messages_are_archived_as_a_document(tmp_path: Path) -> None:
    with memctl.open("talk", home=tmp_path, create=True) as base:
        config = replace(
            base.resources.program_config, compression=CompressionSettings(threshold_tokens=50)
        )
        base.resources.program_config = config
        session = base.sessions.start("fifty", user="test_user", agent="helper")
        for number in range(50):
            base.sessions.say(session, Message(sender="user", content=f"Message {number}"))
        (made,) = base.sessions.compress_due(session)
        assert (made.messages, made.kept) == (40, 10)

        now = base.sessions.get("fifty")
        assert (now.status, now.summarized_through) == ("compressed", 39)
        assert base.sessions.window(now)[0].content == "Message 40"
        filters = Filters(namespaces=("user:test_user:conversations",), types=("conversation",))
        hits = base.query("Message", filters=filters).hits
        assert hits
        document = base.documents.get(hits[0].document_id or "").document
        metadata = document.metadata
        assert metadata["session_id"] == "fifty"
        assert (metadata["agent_id"], metadata["message_count"]) == ("helper", 40)
        assert metadata["date_range"].keys() == {"start", "end"}
        assert document.source == "session:fifty"
        day = f"{now.last_at:%Y-%m-%d}"
        assert document.title == f"Session {day}"

        again = base.sessions.compress(session)
        assert (again.messages, again.document_id) == (0, None)
        assert base.documents.list().num_rows == 2
        assert len(turns_in_tables(base, session)) == 50, "what was said stays as evidence"


def test_archiving_summarises_all_and_a_dry_run_nothing(base: KnowledgeBase) -> None:
    session = base.sessions.start("put-away")
    said(base, session, "We decided to sell the old ferry.", "Agreed.", "The price is 4,000.")
    assert base.sessions.archive(session, dry_run=True).messages == 3
    assert base.sessions.get("put-away").status == "open"
    made = base.sessions.archive(session)
    now = base.sessions.get("put-away")
    assert (made.messages, now.status, now.summarized_through) == (3, "archived", 2)
    assert "sell the old ferry" in base.documents.get(made.document_id or "").document.text
    assert base.documents.get(made.document_id or "").document.metadata["decisions"]


def test_an_agent_goes_on_with_its_conversation_and_keeps_what_it_is_asked_to(
    tmp_path: Path,
) -> None:
    with memctl.agent("helper", user="ann", session="monday", home=tmp_path) as agent:
        kept = agent.process_message("important: we ship on Friday #beto_launch")
        assert (kept["success"], kept["memory_type"]) == (True, "important_fact")
        assert (kept["text"], kept["tags"]) == ("we ship on Friday", ["launch"])
        assert agent.process_message("On Friday.", sender="agent")["success"] is False
    with memctl.agent("helper", user="ann", session="monday", home=tmp_path) as agent:
        said = [message["content"] for message in agent.prompt("And then?")]
        assert said[-2:] == ["On Friday.", "And then?"]
        assert (agent.session.user_id, agent.session.agent_id) == ("ann", "helper")
        agent.end()
        assert agent.session.status == "ended"


def test_a_message_that_is_stored_is_no_failure_where_its_conversation_cannot_be_compressed(
    tmp_path: Path,
) -> None:
    with memctl.agent("helper", user="ann", session="monday", home=tmp_path) as agent:
        base = agent.base
        base.resources.program_config = replace(
            base.resources.program_config, compression=CompressionSettings(threshold_tokens=50)
        )
        words = "The ferry to the island leaves from pier seven at noon."
        said(base, agent.session, *[f"{words} {number}" for number in range(20)])
        with memctl.open(base.name, home=tmp_path) as other, other.store.write():
            base.store.wait_seconds = 0.0
            with pytest.raises(LockedError):
                base.sessions.compress_due(agent.session)
            agent.process_message("Which pier was it?")
        assert base.sessions.turns(agent.session)[-1].content == "Which pier was it?"
        assert base.sessions.get("monday").status == "open"
        agent.process_message("And when?")
        assert base.sessions.get("monday").status == "compressed"
