"""Where sentences begin and end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.understand.sentences import sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "one",
    [
        "Dr. Ana Ruiz met Mr. J. R. Smith at 10 a.m. on Monday.",
        "It costs 3.50 at https://shop.example.com/a.html today.",
        "Acme Inc. is in the U.S. and makes e.g. anvils.",
        "Wait... what happened here",
        "Das ist z.B. am 3. Mai so.",
        '"Are you sure?" she asked.',
    ],
)
def test_a_dot_inside_a_sentence_does_not_end_it(one: str) -> None:
    assert split(one) == [one]


def test_sentences_end_at_their_punctuation() -> None:
    assert split("It works. Does it? Yes! see you… Bye") == [
        "It works.", "Does it?", "Yes!", "see you…", "Bye",
    ]  # fmt: skip


def test_chinese_and_japanese_sentences_end_without_a_space() -> None:
    assert split("今日は晴れです。明日は？雨！") == ["今日は晴れです。", "明日は？", "雨！"]


def test_wrapped_lines_of_a_paragraph_are_one_sentence() -> None:
    wrapped = "The committee met again on Tuesday and looked at\nevery offer, then chose one."
    assert split(wrapped) == [wrapped]


def test_lines_of_a_chat_and_list_items_and_headings_stand_alone() -> None:
    assert split("Ann: hi there\nBob: hello") == ["Ann: hi there", "Bob: hello"]
    assert split("Buy:\n- milk\n- two eggs\n1. first") == [
        "Buy:",
        "- milk",
        "- two eggs",
        "1. first",
    ]
    assert split("# Plan\nWe start in June.") == ["# Plan", "We start in June."]


def test_a_tag_at_the_end_of_a_line_ends_the_sentence_unless_the_line_goes_on() -> None:
    text = "We decided to move the hives to [[Lower Field]] in May. #spring\nI prefer honey."
    assert split(text)[-1] == "I prefer honey."
    wrapped = "We all met on the first day of the week at the #spring\nfair and sold some honey."
    assert split(wrapped) == [wrapped]


@given(
    st.text(alphabet=st.sampled_from("ab A.!?…\n\r\t。-#1\"')\u2028\x85 "), max_size=200)
    | st.text()
)
def test_spans_cover_every_visible_character_once_and_in_order(text: str) -> None:
    spans = sentences(text)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())


def test_a_run_of_marks_in_the_middle_of_a_word_ends_no_sentence() -> None:
    text = "Wait...what? Use a.b...c!d. Done.?!"
    assert [text[start:end] for start, end in sentences(text)] == [
        "Wait...what?", "Use a.b...c!d.", "Done.?!",
    ]  # fmt: skip
