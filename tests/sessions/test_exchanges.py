"""A message with its reply as one memory, and what is remembered of the message before."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import memctl
from memctl.forget import Selection
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Filters
from memctl.sessions.conversations import Message
from memctl.store.ledger.session_repositories import Session

QUESTION = "How do we store the refresh tokens?"
REPLY = "In an HttpOnly cookie, hashed on the server."
DECISION = "We decided that access tokens live for 15 minutes."


def say(kb: KnowledgeBase, session: Session, *said: str, apart: bool = False) -> None:
    """Say things, each with who says it; ``apart`` has somebody read after each."""
    for text in said:
        sender, _, content = text.partition(": ")
        kb.sessions.say(session, Message(sender=sender, content=content))
        if apart:
            kb.sessions.fold()
    kb.sessions.fold()


def of_type(kb: KnowledgeBase, *types: str) -> list[dict[str, Any]]:
    return kb.memories.list(Filters(types=types)).to_pylist()


@pytest.mark.parametrize("apart", [False, True])
def test_a_message_and_its_reply_are_one_memory_once_the_reply_is_there(
    tmp_path: Path, apart: bool
) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann")
        say(kb, session, "user: Good morning", f"user: {QUESTION}", apart=apart)
        assert of_type(kb, "conversation_turn") == []
        say(kb, session, "tool: looked it up", f"agent: {REPLY}", apart=apart)
        say(kb, session, "agent: Anything else?", f"user: {REPLY}", apart=apart)
        (exchange,) = of_type(kb, "conversation_turn")
        assert exchange["text"] == f"user: {QUESTION}\n\nagent: {REPLY}"
        assert (exchange["level"], exchange["session_id"]) == ("memory", "one")
        turns = {row["id"]: row["turn"] for row in of_type(kb, "turn")}
        assert [turns[id_] for id_ in exchange["source_ids"]] == [1, 3]
        kb.documents.reprocess([exchange["document_id"].partition(".")[0]])
        (again,) = of_type(kb, "conversation_turn")
        assert (again["text"], again["source_ids"]) == (exchange["text"], exchange["source_ids"])
        found = kb.query(QUESTION)
        assert found.answer is not None
        assert REPLY in found.answer.text
        assert "conversation_turn" not in {hit.type for hit in found.hits}
        kb.erasure.forget(Selection(session="one"))
        assert of_type(kb, "conversation_turn") == []


def test_a_long_reply_is_shortened_in_its_exchange_alone(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one")
        say(kb, session, f"user: {QUESTION}", f"agent: {'In a cookie. ' * 5_000}")
        (exchange,) = of_type(kb, "conversation_turn")
        assert len(exchange["text"]) < 3_000
        assert exchange["text"].endswith(" …")


def test_an_exchange_ends_when_its_question_says_something_else(tmp_path: Path) -> None:
    def lines(question: str) -> io.BytesIO:
        said = (("q", "user", question), ("r", "assistant", REPLY))
        lines = (
            json.dumps({"id": id_, "session_id": "s", "turn": turn, "speaker": by, "text": text})
            for turn, (id_, by, text) in enumerate(said)
        )
        return io.BytesIO("\n".join(lines).encode())

    with memctl.open("talks", home=tmp_path, create=True) as kb:
        kb.ingest(jsonl=lines(QUESTION))
        assert [row["text"] for row in of_type(kb, "conversation_turn")] == [
            f"user: {QUESTION}\n\nassistant: {REPLY}"
        ]
        kb.ingest(jsonl=lines("Where do the keys go?"))
        assert of_type(kb, "conversation_turn") == []


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_remembered_of_the_message_before_rests_on_that_message(
    tmp_path: Path, apart: bool
) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann")
        say(kb, session, f"user: {DECISION}", "user: remember this", apart=apart)
        (kept,) = of_type(kb, "important_fact")
        assert kept["text"] == DECISION
        turns = {row["id"]: row["turn"] for row in of_type(kb, "turn")}
        assert [turns[id_] for id_ in kept["source_ids"]] == [0, 1]
        standing = kb.queries.standing_context(user="ann").text
        assert standing.count(DECISION) == 1
        assert f"\n{DECISION}" in standing, "without the day, which stands above it"
        if not apart:
            assert of_type(kb, "decision") == [], "it is one memory, whatever it could be besides"


def test_remember_this_after_a_label_keeps_what_the_label_kept(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one")
        say(kb, session, "user: important: the door code is 4711 #home", "user: remember this")
        (kept,) = of_type(kb, "important_fact")
        assert (kept["text"], kept["tags"]) == ("the door code is 4711", ["home"])


def test_an_answer_leaves_out_what_only_asks_for_it_to_be_kept(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one")
        say(kb, session, "user: Please remember that the boat is called Kestrel", "agent: Noted.")
        answer = kb.query("What is the boat called?").answer
        assert answer is not None
        assert answer.text == "the boat is called Kestrel [1]"
        (cited,) = answer.citations
        assert cited.quote == "the boat is called Kestrel"
        assert cited.document_id is not None
        text = kb.documents.get(cited.document_id).document.text
        assert text[cited.start : cited.end] == cited.quote


def test_a_summary_says_each_thing_once_and_rests_on_turns(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann", agent="helper")
        say(
            kb,
            session,
            "user: I am moving the shop to Falkenstein.",
            f"user: {DECISION}",
            "user: important: always use Python 3.12 for the shop #coding",
            "agent: Noted.",
            "user: Save this design",
        )
        summary = kb.sessions.end(session).summary
        assert summary.count("15 minutes") == summary.count("Python 3.12") == 1
        assert not {"agent: Noted.", "user: Save this design"}.intersection(summary.splitlines())
        assert f"- {DECISION}" in summary
        assert "- always use Python 3.12 for the shop" in summary
        (memory,) = of_type(kb, "summary")
        assert (memory["source"], memory["method"]) == ("session:one", "summary")
        turns = {row["id"]: row["text"] for row in of_type(kb, "turn")}
        assert DECISION in [turns[id_] for id_ in memory["source_ids"]]


def test_a_statement_that_is_made_twice_is_one_memory_of_both_turns(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann")
        say(kb, session, f"user: {DECISION}", "agent: Noted.", f"user: {DECISION}")
        (decision,) = of_type(kb, "decision")
        turns = {row["id"]: row["turn"] for row in of_type(kb, "turn")}
        assert [turns[id_] for id_ in decision["source_ids"]] == [0, 2]


def test_recall_gives_a_question_with_its_reply_and_nothing_twice(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        first = kb.sessions.start("one", user="ann")
        say(kb, first, f"user: {QUESTION}", f"agent: {REPLY}", f"user: {DECISION}")
        kb.sessions.end(first)
        second = kb.sessions.start("two", user="ann")
        text = kb.sessions.recall(second, "Remind me how we store the refresh tokens").text
        assert f"user: {QUESTION}\nagent: {REPLY}" in text
        assert text.count(REPLY) == 1


def test_what_an_agent_says_of_itself_is_no_trait_of_the_user(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann", agent="helper")
        say(kb, session, "user: important: I am allergic to walnuts")
        say(kb, session, "agent: I use my own list of recipes.", "user: remember this")
        kb.sessions.end(session)
        profile = kb.sessions.profile("ann")
        assert profile is not None
        assert profile.user_info == "I am allergic to walnuts"
        assert "recipes" in profile.important_context


def test_a_shared_decision_is_no_trait_of_the_user(tmp_path: Path) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one", user="ann", agent="helper")
        say(kb, session, f"user: {DECISION}", "user: remember this")
        say(kb, session, "user: important: I am allergic to walnuts")
        kb.sessions.end(session)
        profile = kb.sessions.profile("ann")
        assert profile is not None
        assert profile.user_info == "I am allergic to walnuts"
        assert profile.important_context == DECISION
        standing = kb.queries.standing_context(user="ann").text
        assert standing.startswith("Profile\nAbout the user:\nI am allergic to walnuts")
        of_another = kb.queries.standing_context(user="ann", agent="clerk").text
        assert not of_another.startswith("Profile")


def test_a_secret_said_before_redaction_was_switched_on_reaches_no_memory(tmp_path: Path) -> None:
    secret = "sk-proj-4f9aK2mQ8xLw3Rt7Vb1Nc6Zd0Hs5Jp"
    every = memctl.open_home(tmp_path)
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        session = kb.sessions.start("one")
        for sender, text in (("user", f"remember: the key is {secret}"), ("agent", f"{secret}?")):
            kb.sessions.say(session, Message(sender=sender, content=text))
    every.change("talks", redact=True)
    with memctl.open("talks", home=tmp_path) as kb:
        rows = kb.memories.list().to_pylist()
        assert {"turn", "important_fact", "conversation_turn"} <= {row["type"] for row in rows}
        assert not [row for row in rows if secret in str(row)]


def test_a_message_that_another_pair_has_too_is_theirs_when_its_conversation_goes(
    tmp_path: Path,
) -> None:
    with memctl.open("talks", home=tmp_path, create=True) as kb:
        one, other = (kb.sessions.start(name, user="ann") for name in ("one", "other"))
        say(kb, one, f"user: {QUESTION}", "agent: Not yet.")
        weather = "It rains all day long in Lindau, take an umbrella with you."
        say(kb, other, "user: How is the weather in Lindau today?", f"agent: {weather}")
        say(kb, other, f"user: {QUESTION}", f"agent: {REPLY}")
        report = kb.erasure.forget(Selection(session="one"))
        assert (report.left, report.elsewhere) == ((), 1)
        assert {row["text"] for row in of_type(kb, "conversation_turn")} >= {
            f"user: {QUESTION}\n\nagent: {REPLY}"
        }
