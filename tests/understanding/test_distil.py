"""What is worth remembering, and what is not."""

from __future__ import annotations

import pytest

from memctl.records import Distilled, Segment, SourceText
from memctl.understanding.distillation import distil
from memctl.understanding.text_outline import text_outline


def distilled(text: str, *segments: Segment) -> tuple[Distilled, ...]:
    source = SourceText(text, "text/plain", "text/1", tuple(segments))
    return distil(source, text_outline(source))


@pytest.mark.parametrize(
    ("sentence", "type_"),
    [
        ("Remember: the spare key is under the blue pot.", "important_fact"),
        ("Note to self: the lease ends in August.", "fact"),
        ("Decision: oak worktops, not granite.", "decision"),
        ("- [ ] TODO: measure the window again", "plan"),
        ("The committee agreed to close the bar at ten.", "decision"),
        ("It was decided that plots go to the next person.", "decision"),
        ("I prefer cider to beer.", "preference"),
        ("My favourite city is Porto.", "preference"),
        ("I'm allergic to peanuts.", "important_fact"),
        ("My name is Benedikt.", "fact"),
        ("Karim is Mei's manager.", "fact"),
        ("My sister Clara works at the harbour.", "fact"),
        ("The deadline for the audit is 30 November.", "important_fact"),
        ("We will send the report on Monday.", "plan"),
        ("Lesson learned: photograph the cables first.", "observation"),
    ],
)
def test_a_clear_statement_is_distilled(sentence: str, type_: str) -> None:
    assert [one.type for one in distilled(sentence)] == [type_]


@pytest.mark.parametrize(
    "sentence",
    [
        "Do you remember that I prefer tea?",
        "Should we decide to move in May?",
        "If we decided to move, I would sell the car.",
        "Maybe we will visit Rome in June.",
        "I haven't decided to move yet.",
        '"I prefer tea," as my aunt would say.',
        "She prefers coffee to tea.",
        "I would love to hear more about it.",
        "I love that idea.",
        "We'll see on Monday.",
        "I'll let you know tomorrow.",
        "Remember when we went to Rome?",
        "You should decide to use the short form.",
        "This e-mail is confidential and will be deleted on Monday.",
        "Decision:",
        "TODO",
        "I agree with you on that.",
        "The function will return None on Monday builds of the `parser` module.",
        "",
    ],
)
def test_talk_advice_and_hypotheses_are_not(sentence: str) -> None:
    assert distilled(sentence) == ()


def test_the_label_is_left_out_and_the_offsets_are_exact() -> None:
    text = "Hello.\n\n* **Remember:** the bin goes out on Tuesday 🙂\n"
    [one] = distilled(text)
    assert one.text == "the bin goes out on Tuesday"
    assert text[one.start : one.end] == one.text
    assert one.reason == "trigger: remember"


def test_who_said_it_is_part_of_the_reason() -> None:
    text = "Ann: I prefer tea in the morning"
    [one] = distilled(text, Segment(0, len(text), "turn", speaker="Ann"))
    assert one.text == "I prefer tea in the morning"
    assert "said by Ann" in one.reason


def test_what_an_assistant_says_of_itself_is_not_remembered() -> None:
    text = "Assistant: I prefer tea in the morning"
    assert distilled(text, Segment(0, len(text), "turn", speaker="Assistant")) == ()


def test_what_is_said_twice_is_remembered_once() -> None:
    assert len(distilled("I prefer tea.\n\nOk.\n\nI prefer tea!")) == 1


def test_nothing_is_taken_from_code_and_tables() -> None:
    text = "# Remember: the cache is global state"
    assert distilled(text, Segment(0, len(text), "code")) == ()
    assert distilled(text, Segment(0, len(text), "table")) == ()


def test_we_will_under_a_decision_heading_is_a_decision() -> None:
    text = "We will use one queue."
    [one] = distilled(text, Segment(0, len(text), "prose", "7. Queue > Decision"))
    assert one.type == "decision"


def test_a_statement_that_goes_on_in_the_next_short_line_is_whole() -> None:
    found = distilled("# Keys\n\nremember: the code of Ann\nLee is 9911.\n")
    assert [(one.type, one.text) for one in found] == [
        ("important_fact", "the code of Ann\nLee is 9911.")
    ]
