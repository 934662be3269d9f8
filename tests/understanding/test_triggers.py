"""Triggers: what a user asks to be kept, and what only looks like it."""

from __future__ import annotations

import pytest

from memctl.config import TriggerSettings
from memctl.understanding.triggers import detect_trigger

MEMORIES = {
    "we designed": "Last night we designed the booking page around one big calendar.",
    "we built": "Yesterday we built the greenhouse frame out of cedar.",
    "our plan for": "Our plan for October is to move the archive to the new server.",
    "achieved together": "Look at what we achieved together on the parser this week.",
    "this setup for": "I like this setup for the recording corner, with two lamps.",
    "memory goal:": "Memory goal: run the half marathon in under two hours.",
    "let's save this": "OK, let\u2019s save this before we go on with the roof.",
    "memory:": "Memory: the spare key hangs behind the meter box.",
    "remember this conversation": "Please remember this conversation for the next trip.",
    "save this design": "Save this design, the one with the sliding door.",
    "save our work": "I'd like to save our work on the invoice template.",
    "store this idea": "Please store this idea about a rainwater tank under the deck.",
}
FACTS = {
    "important:": "Important: the lift is out of order until Monday.",
    "remember this fact:": "Remember this fact: the boiler was serviced in March.",
    "my preference is": "For reports my preference is short answers with one example.",
    "I always do": "I always do the backups on Friday evening.",
    "key detail:": "Key detail: the gate closes at eight.",
    "memorize this:": "Ok, memorize this: the alarm code changes on the first.",
    "fact:": "Fact: the hall holds ninety people.",
    "never forget:": "Never forget: Ida is allergic to walnuts.",
    "critical info:": "This is critical info: the main valve is behind the stairs.",
    "note this:": "Please note this: the courier comes on Tuesdays.",
    "remember:": "So please remember: we need two permits for the terrace.",
    "store this fact": "Store this fact about Lena, she moved to Turin in May.",
}
TRAPS = (
    "unimportant: just some chatter about the weather",
    "The artifact: a clay bowl from the dig",
    "In fact: nobody came",
    "short-term memory: fades within a minute",
    "in-memory: a store without a disk",
    "memory::pool is a namespace in C++",
    "Is this important: yes or no?",
    "What was our plan for Friday?",
    "Did we say that we built it in May?",
    "Should we save this design?",
    "Can you remember: which day was it?",
    "Do you remember this conversation?",
    "Why do I always do this",
    "Tell me what our plan for Sunday was.",
    "Remind me what my preference is",
    "How do I store this fact in the table?",
    "I don't think we designed that page.",
    "I do not remember this conversation at all.",
    "Never save our work on that drive.",
    "please don't store this idea anywhere",
    "I can't say what my preference is",
    "If we built a second floor, it would cost too much.",
    "She asked whether we built it alone.",
    "I wish we built it in stone",
    "Not important: the colour of the lid",
    "That is a well-known fact: nothing is free",
    "We rebuilt the engine over the winter.",
    'He said "we built the shed ourselves" and left.',
    '"Important: call home" was written on the wall.',
    'she wrote: "remember: milk and eggs"',
    "> fact: the moon is made of cheese",
    "`memory: 512Mi` is the limit of the pod",
    "```\nimportant: true\n```",
)


def test_the_default_phrases_are_those_that_are_tried_here() -> None:
    assert TriggerSettings().memory == tuple(MEMORIES)
    assert TriggerSettings().fact == tuple(FACTS)


@pytest.mark.parametrize("phrase", [*MEMORIES, *FACTS])
def test_a_phrase_in_a_natural_sentence_keeps_one_memory_of_its_type(phrase: str) -> None:
    message = {**MEMORIES, **FACTS}[phrase]
    found = detect_trigger(message)
    assert found.detected
    assert found.text
    assert found.phrase == phrase
    assert found.memory_type == ("memories" if phrase in MEMORIES else "important_fact")
    assert message[found.start : found.end].endswith(found.text[-10:])


@pytest.mark.parametrize("message", TRAPS)
def test_what_only_looks_like_a_phrase_keeps_nothing(message: str) -> None:
    assert not detect_trigger(message).detected


def test_a_label_keeps_what_follows_it_without_its_tags() -> None:
    found = detect_trigger("important: always use Python 3.10+ for this project #beto_coding")
    assert (found.memory_type, found.text, found.tags) == (
        "important_fact",
        "always use Python 3.10+ for this project",
        ("coding",),
    )


@pytest.mark.parametrize("written", ["#beto_coding", "@beto_coding", "#coding"])
def test_a_tag_is_found_however_it_is_written(written: str) -> None:
    found = detect_trigger(f"remember: {written} use tabs")
    assert (found.text, found.tags) == ("use tabs", ("coding",))


def test_a_tag_that_is_a_word_of_its_sentence_keeps_the_word() -> None:
    found = detect_trigger("remember: the tap in the #kitchen drips #home")
    assert (found.text, found.tags) == ("the tap in the kitchen drips", ("kitchen", "home"))


def test_the_phrase_that_stands_first_decides() -> None:
    assert detect_trigger("Remember: we built the shed in May").memory_type == "important_fact"
    assert detect_trigger("We built it. Remember: paint it").memory_type == "memories"


def test_of_two_phrases_at_one_place_the_longer_decides() -> None:
    settings = TriggerSettings(memory=("save this",), fact=("save this design",))
    assert detect_trigger("save this design", settings).memory_type == "important_fact"
    both = TriggerSettings(memory=("log it:",), fact=("log it:",))
    assert detect_trigger("log it: done", both).memory_type == "memories"


def test_own_phrases_take_the_place_of_the_defaults() -> None:
    settings = TriggerSettings(memory=("document this",), fact=("critical information",))
    assert detect_trigger("Please document this: two rooms", settings).text == "two rooms"
    assert not detect_trigger("important: two rooms", settings).detected


def test_a_message_that_points_back_means_the_one_before_it() -> None:
    for message in ("remember this", "Save that please #beto_x", "Let's save this", "keep that"):
        assert detect_trigger(message).reference_previous
    assert not detect_trigger("save this design: two rooms, one door").reference_previous


def test_what_is_asked_for_ends_before_a_question() -> None:
    found = detect_trigger("note this: the code is 4711. It changes in May. Who knows it?")
    assert found.text == "the code is 4711. It changes in May."
