"""What a conversation keeps, and what it brings into another one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memctl
from memctl.config import AutoContextSettings, load_config
from memctl.errors import DiskRefused
from memctl.forget import Selection
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.records import Filters
from memctl.search.answering.memory_need import without_reference
from memctl.sessions.conversations import Conversations, Message
from memctl.store.ledger.session_repositories import Session


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    home = tmp_path_factory.mktemp("home")
    with memctl.open("talks", home=home, create=True) as base:
        yield base


def talk(kb: KnowledgeBase, name: str, user: str, *said: str) -> Session:
    """Say things, by turns the user's and the agent's, or by whom a prefix says."""
    session = kb.sessions.start(name, user=user)
    for text in said:
        sender, _, content = text.partition(": ")
        kb.sessions.say(session, Message(sender=sender, content=content))
    return kb.sessions.get(name, user=user)


def kept(kb: KnowledgeBase, user: str) -> list[dict[str, Any]]:
    """Return the memories of a user that were asked for."""
    filters = Filters(
        namespaces=(f"user:{user}:conversations",), types=("memories", "important_fact")
    )
    return kb.memories.list(filters).to_pylist()


def test_a_message_with_a_trigger_says_what_is_kept_of_it(kb: KnowledgeBase) -> None:
    session = kb.sessions.start("keeps", user="user123")
    said = "important: always use Python 3.10+ for this project #beto_coding"
    result = kb.sessions.process(session, Message(sender="user", content=said))
    text = "always use Python 3.10+ for this project"
    assert result == {
        "success": True,
        "memory_type": "important_fact",
        "text": text,
        "tags": ["coding"],
    }
    (memory,) = kept(kb, "user123")
    assert (memory["text"], memory["tags"], memory["type"]) == (text, ["coding"], "important_fact")
    for tag in ("coding", "beto_coding"):
        found = kb.memories.list(Filters(tags=(tag,)))
        assert [row["id"] for row in found.to_pylist()] == [memory["id"]]


def test_a_message_without_one_says_so_and_its_agent_keeps_nothing(kb: KnowledgeBase) -> None:
    session = kb.sessions.start("plain", user="plain")
    for sender, said in (
        ("user", "unimportant: the weather was fine"),
        ("agent", "remember: I am only an agent"),
        ("user", "Did we say our plan for Friday was the lake?"),
    ):
        result = kb.sessions.process(session, Message(sender=sender, content=said))
        assert result == {"success": False, "message": "No memory triggers detected"}
    assert kept(kb, "plain") == []


def test_the_message_before_is_kept_of_one_that_points_back(kb: KnowledgeBase) -> None:
    talk(
        kb,
        "back",
        "back",
        "user: The frame is of cedar and has twelve panes.",
        "user: Save this design #beto_garden",
    )
    (memory,) = kept(kb, "back")
    assert memory["text"] == "The frame is of cedar and has twelve panes."
    assert (memory["type"], memory["tags"]) == ("memories", ["garden"])


def test_another_conversation_comes_into_the_prompt_where_the_message_asks_for_it(
    kb: KnowledgeBase,
) -> None:
    talk(
        kb,
        "first",
        "ann",
        "user: I'm building an authentication system with JWT tokens",
        "agent: Rotate the signing keys every quarter.",
    )
    second = talk(kb, "second", "ann", "user: Hello, authentication keeps me busy again.")
    messages = kb.sessions.prompt(second, "What did we discuss about authentication?", "Be kind.")
    assert [each["role"] for each in messages] == ["system", "system", "user", "user"]
    block = messages[1]["content"]
    assert "JWT" in block
    assert "authentication" in block
    assert "busy again" not in block
    assert messages[0]["content"] == "Be kind."
    assert messages[-1]["content"] == "What did we discuss about authentication?"
    plain = kb.sessions.prompt(second, "Write a haiku about spring")
    assert [each["role"] for each in plain] == ["user", "user"]


def test_nobody_elses_conversation_comes_into_a_prompt(kb: KnowledgeBase) -> None:
    talk(kb, "bob-1", "bob", "user: The launch of Kestrel is on 4 May.")
    other = talk(kb, "eve-1", "eve", "user: Good morning")
    assert not kb.sessions.recall(other, "When did we say the launch of Kestrel was?").text


def test_what_is_not_relevant_stays_out(kb: KnowledgeBase) -> None:
    talk(kb, "cat-1", "cat", "user: The sourdough needs eighteen hours in the fridge.")
    other = talk(kb, "cat-2", "cat", "user: Good morning")
    found = kb.sessions.recall(other, "What did we discuss about the insurance of the boat?")
    assert not found.text
    assert "nothing relevant" in found.why


REFERENCES = (
    "In our previous conversation you named a pelican",
    "the pelican in our previous conversation",
    "the pelican from our previous conversation",
    "previous conversation: pelican",
    "the pelican was discussed in the previous conversation, right?",
    "What did we discuss about the pelican?",
    "The pelican, what did we discuss?",
    "last time you told me of the pelican",
    "I think last time it was the pelican",
    "where did the pelican nest last time",
    "remind me about the pelican",
    "The pelican: could you remind me where it nests?",
    "the pelican, remind me",
    "we mentioned the pelican",
    "where the pelican that we mentioned nests",
    "the pelican we mentioned",
    "earlier you said something of the pelican",
    "about the pelican earlier you said what?",
    "the pelican nests, earlier you said",
    "in the past we spoke of the pelican",
    "what have you in the past told me of the pelican",
    "the pelican in the past",
    "have we talked about the pelican?",
    "The pelican - have we talked about it?",
    "did I mention the pelican?",
    "where did I mention the pelican nests",
    "Which previous message was on the pelican?",
    "Earlier, was it the pelican?",
    "Was the pelican there earlier?",
    "Was the pelican discussed?",
    "Where is the pelican that was discussed nesting?",
    "Was the pelican mentioned?",
    "Can you remind us of the pelican?",
    "Which pelican was mentioned?",
    "What pelicans were discussed earlier?",
    "What was discussed about the pelican?",
    "What has been said about the pelican?",
    "Which pelican did we discuss?",
    "Which pelican have we mentioned before?",
)
"""Each phrase and word in front, within and at the end."""
UNRELATED = (
    "what did we discuss about the insurance of the boat?",
    "remind me what colour the car is",
    "remind me when the dentist appointment is",
    "last time I told you the name of my sister",
    "what did we discuss about the garden fence?",
    "have we talked about the holiday in Norway?",
    "did I mention the price of the piano?",
    "earlier you said the train leaves at nine, right?",
    "in the past we spoke of the tax return",
    "in our previous conversation you named a plumber",
    "remind me which doctor treats my knee",
    "what did we discuss about the database migration?",
    "last time we talked about the budget for marketing",
    "remind me how much the rent is",
    "did we mention who feeds the cat?",
    "Which plumber was mentioned?",
    "What was said about the insurance of the boat?",
    "Which doctor did we discuss?",
)


def test_a_reference_is_taken_off_wherever_it_stands(kb: KnowledgeBase) -> None:
    talk(kb, "lia-1", "lia", "user: The pelican nests on the old pier.")
    talk(kb, "lia-2", "lia", "user: The submarine is painted yellow.")
    other = talk(kb, "lia-3", "lia", "user: Good morning")
    for message in REFERENCES:
        assert "pelican" in kb.sessions.recall(other, message).text, message
    for message in UNRELATED:
        assert not kb.sessions.recall(other, message).text, message


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("Which .env file did we discuss in our previous conversation?", "Which .env file?"),
        ("As we discussed, the .NET version?", "the .NET version?"),
        ("As we discussed, $HOME/.ssh is where?", "$HOME/.ssh is where?"),
        ("as we discussed, ¿qué pasa?", "¿qué pasa?"),
        ('In our last conversation: "door code" please', '"door code" please'),
        ("What did the previous chat say about -5 degrees?", "What did the previous chat say"),
        ("Cancel my earlier talk with Bob in Hamburg", "Cancel my earlier talk with Bob"),
        ("The agenda for an earlier discussion with the bank", "The agenda for an earlier disc"),
        ("In my earlier discussion with the bank?", "In my earlier discussion with the bank?"),
        ("Which earlier talk with Bob was long?", "Which earlier talk with Bob was long?"),
        ("Which door was discussed in an earlier chat ?", "Which door?"),
        ("What was mentioned in the report?", "What was mentioned in the report?"),
        ("Which doctors were mentioned by Ann?", "Which doctors were mentioned by Ann?"),
    ],
)
def test_what_a_message_is_about_is_left_whole(message: str, about: str) -> None:
    assert without_reference(message, AutoContextSettings()).startswith(about)


def test_who_says_that_something_was_said_needs_less_proof(kb: KnowledgeBase) -> None:
    talk(kb, "mia-1", "mia", "user: The submarine is painted yellow.")
    other = talk(kb, "mia-2", "mia", "user: Good morning")
    for message in (
        "remind me what colour the submarine is",
        "what did we discuss about the colour of the submarine?",
        "last time I told you the colour of the submarine",
    ):
        assert "yellow" in kb.sessions.recall(other, message).text, message
    for message in UNRELATED:
        assert not kb.sessions.recall(other, message).text, message


def test_a_message_that_only_refers_back_gets_the_conversation_before(kb: KnowledgeBase) -> None:
    talk(kb, "dan-1", "dan", "user: The sourdough needs eighteen hours in the fridge.")
    other = talk(kb, "dan-2", "dan", "user: Good morning")
    assert "sourdough" in kb.sessions.recall(other, "What did we discuss last time?").text


def test_what_was_put_into_a_prompt_is_no_new_evidence(kb: KnowledgeBase) -> None:
    fact = "The lease of the studio on Mill Street ends on 30 June 2027."
    talk(kb, "fay-1", "fay", f"user: {fact}")
    second = talk(kb, "fay-2", "fay", "user: Good morning")
    assert fact in kb.sessions.recall(second, "remind me when the lease of the studio ends").text
    kb.sessions.say(
        second,
        Message(sender="agent", content=f"{fact} You may want to give notice in March."),
        Message(sender="user", content="That is early enough for me and for Lena, thank you."),
    )
    filters = Filters(namespaces=("user:fay:conversations",), levels=("evidence",))
    texts = [row["text"] for row in kb.memories.list(filters).to_pylist()]
    assert texts.count(fact) == 1
    assert "You may want to give notice in March." in texts
    assert kb.sessions.turns(second)[1].content.startswith(fact)


def test_a_profile_is_written_when_a_conversation_ends_and_keeps_its_versions(
    kb: KnowledgeBase,
) -> None:
    session = talk(
        kb,
        "gil-1",
        "gil",
        "user: Important: I am allergic to walnuts.",
        "user: Our plan for October is to move the archive.",
        "user: remember: the boiler code is 4711",
    )
    kb.sessions.end(session)
    first = kb.sessions.profile("gil")
    assert first is not None
    assert first.user_info == "I am allergic to walnuts."
    day = first.at.date()
    assert first.recent_goal_and_status == f"Our plan for October is to move the archive. ({day})"
    assert first.important_context == "the boiler code is 4711"
    assert "archive" in first.last_conversation_summary
    assert first.agent_beliefs == ""
    kb.sessions.set_profile({"user_info": "Lives in Turin."}, user="gil")
    kb.sessions.end(talk(kb, "gil-2", "gil", "user: remember: the alarm code is 1234"))
    latest, written, oldest = kb.sessions.profile_versions("gil")
    assert (latest.version, written.by, oldest) == (3, "user", first)
    assert latest.user_info.splitlines() == ["Lives in Turin.", "I am allergic to walnuts."]
    assert "1234" in latest.last_conversation_summary


def test_a_profile_says_who_its_user_is_as_they_said_last(kb: KnowledgeBase) -> None:
    one = talk(
        kb,
        "pia-1",
        "pia",
        "user: Hi! I'm Pia, I draw maps and I live in Hamburg. I work for a museum.",
        "agent: I live in the cloud.",
        "user: Do I live in Bremen?",
    )
    kb.sessions.end(one)
    first = kb.sessions.profile("pia")
    assert first is not None
    day = f"({one.last_at.date()})"
    hamburg = f"I'm Pia, I draw maps and I live in Hamburg. {day}"
    assert first.user_info.splitlines() == [hamburg, f"I work for a museum. {day}"]
    kb.sessions.end(talk(kb, "pia-2", "pia", "user: Ich wohne jetzt in Dresden."))
    latest = kb.sessions.profile("pia")
    assert latest is not None
    told = [f"Ich wohne jetzt in Dresden. {day}", f"I work for a museum. {day}"]
    assert latest.user_info.splitlines() == told
    kb.sessions.forget(kb.sessions.get("pia-2", user="pia"))
    left = kb.sessions.profile("pia")
    assert left is not None
    assert left.user_info == first.user_info


@pytest.mark.parametrize(
    "said",
    [
        "Please translate: good evening, my name is Eva Lind and I live in Oslo.",
        "Translate this:\n\nMy name is Eva Lind. I live in Oslo. I work as a spy.",
        "Proofread my letter.\n\nMy name is Eva Lind. I live in Oslo.",
        "He said, I live in Paris.",
        "I live in Paris, says Eva.",
        "I told her, I live in Paris.",
        "Er sagte, ich wohne in Rom.",
        "If I live in Rome next year, I work for nobody.",
        "Wenn ich umziehe, ich wohne in Rom.",
        'She wrote "Hello. I live in Oslo. Bye."',
        "She wrote “Hello.\nI work as a spy.\nBye.”",
        "> I live in Oslo",
        "```\nI live in Oslo\n```",
        "I live in Oslo, right?",
    ],
)
def test_a_profile_takes_nobody_elses_words_for_those_of_its_user(
    kb: KnowledgeBase, said: str
) -> None:
    user = f"lee-{sum(said.encode())}"
    own = "user: Hi Max, my name is Ann Lee, and I live in Bern. Actually, I work as a joiner."
    kb.sessions.end(talk(kb, f"{user}-1", user, own))
    first = kb.sessions.profile(user)
    assert first is not None
    assert ["Ann Lee" in line for line in first.user_info.splitlines()] == [True, False]
    session = kb.sessions.start(f"{user}-2", user=user)
    kb.sessions.say(session, Message(sender="user", content=said))
    kb.sessions.end(session)
    latest = kb.sessions.profile(user)
    assert latest is not None
    assert latest.user_info == first.user_info


def test_a_profile_leaves_out_plans_whose_day_has_passed(kb: KnowledgeBase) -> None:
    session = kb.sessions.start("kim-1", user="kim")
    for minute, said in enumerate(
        (
            "I have an appointment with Dr. Winkler on 3 February 2026 at 9:30.",
            "I will fly to Lisbon on 4 May 2090.",
            "We decided on 3 February 2026 to store the readings in SQLite.",
        )
    ):
        at = datetime(2026, 1, 22, 9, minute, tzinfo=UTC)
        kb.sessions.say(session, Message(sender="user", content=said, at=at))
    kb.sessions.end(session)
    plans = Filters(namespaces=("user:kim:conversations",), types=("plan",))
    assert kb.memories.list(plans).num_rows == 2
    profile = kb.sessions.profile("kim")
    assert profile is not None
    assert profile.recent_goal_and_status.splitlines() == [
        "We decided on 3 February 2026 to store the readings in SQLite. (2026-01-22)",
        "I will fly to Lisbon on 4 May 2090. (2026-01-22)",
    ]


def test_what_is_recalled_has_the_number_that_its_speaker_corrects_it_to(
    kb: KnowledgeBase,
) -> None:
    talk(
        kb,
        "lou-1",
        "lou",
        "user: My new phone number is 0151 2345678.",
        "agent: Saved.",
        "user: sorry, typo: it is 0151 2345679",
        "agent: Corrected.",
        "user: Thanks!",
    )
    session = kb.sessions.start("lou-2", user="lou")
    recalled = kb.sessions.recall(session, "What was my phone number again?").text
    first, _, second = recalled.partition("2345678.")
    assert first.endswith("user: My new phone number is 0151 ")
    assert second == "\nuser: sorry, typo: it is 0151 2345679"


def test_the_standing_context_is_the_same_until_something_changes(kb: KnowledgeBase) -> None:
    assert kb.queries.standing_context(user="nobody-yet").text == ""
    session = talk(kb, "hal-1", "hal", "user: remember: the pump is under the stairs")
    kb.sessions.end(session)
    first = kb.queries.standing_context(user="hal")
    assert first == kb.queries.standing_context(user="hal")
    assert first.text.startswith("Profile\n")
    assert "[1] session:hal-1" in first.text
    assert [each.number for each in first.citations] == [1]
    talk(kb, "hal-2", "hal", "user: remember: the fuse box is in the hall")
    assert "fuse box" in kb.queries.standing_context(user="hal").text
    small = kb.queries.standing_context(user="hal", budget=40)
    assert small.tokens <= 40
    asked = kb.queries.standing_context("Where is the pump?", user="hal")
    assert asked.text.startswith("Profile\n")
    numbers = [each.number for each in asked.citations]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_forgotten_conversation_takes_the_profile_that_it_made_along(tmp_path: Path) -> None:
    with memctl.open("gone", home=tmp_path, create=True) as kb:
        kb.sessions.end(talk(kb, "one", "ivo", "user: remember: quicksilver marmalade is mine"))
        assert "quicksilver" in kb.queries.standing_context(user="ivo").text
        kb.erasure.forget(Selection(session="one"))
        assert kb.sessions.profile("ivo") is None
        assert kb.queries.standing_context(user="ivo").text == ""
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if b"quicksilver" in path.read_bytes()]


def test_the_switches_of_auto_context_hold(tmp_path: Path) -> None:
    def opened(**settings: str) -> KnowledgeBase:
        home = Home(
            load_config({"home": str(tmp_path)}, {f"MEMCTL_{k}": v for k, v in settings.items()})
        )
        if not home.exists("auto"):
            home.create("auto")
        return home.open_for_writing("auto")

    with opened() as kb:
        talk(kb, "one", "jo", "user: The ferry to Orkney leaves at 9:15 from pier two.")
        talk(kb, "two", "jo", "user: Good morning")
    asked = "When does the ferry to Orkney leave?"
    for settings, is_there in (
        ({}, False),
        ({"AUTO_CONTEXT_MODE": "always"}, True),
        ({"AUTO_CONTEXT_MODE": "always", "AUTO_CONTEXT_ENABLED": "no"}, False),
        ({"AUTO_CONTEXT_SEARCH_TRIGGERS": "when does"}, True),
        ({"AUTO_CONTEXT_MODE": "always", "AUTO_CONTEXT_RELEVANCE_THRESHOLD": "1"}, False),
    ):
        with opened(**settings) as kb:
            found = kb.sessions.recall(kb.sessions.get("two"), asked)
            assert ("pier two" in found.text) is is_there, settings


def test_a_message_that_cannot_be_stored_says_so(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = kb.sessions.start("full", user="full")

    def refuse(*_: object) -> None:
        raise DiskRefused("no space left on the device")

    monkeypatch.setattr(Conversations, "say", refuse)
    result = kb.sessions.process(session, Message(sender="user", content="fact: it is full"))
    assert result == {"error": "Failed to store memory: no space left on the device"}
