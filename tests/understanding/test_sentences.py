"""Where sentences begin and end."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.language.sentence_splitting import split_sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "one",
    [
        "Dr. Ana Ruiz met Mr. J. R. Smith at 10 a.m. on Monday.",
        "It costs 3.50 at https://shop.example.com/a.html today.",
        "Acme Inc. is in the U.S. and makes e.g. anvils.",
        "Wait... what happened here",
        "Das ist z.B. am 3. Mai so.",
        '"Are you sure?" she asked.',
        "Ich bin vom 14. bis 25. Juli im Urlaub, d. h. z. B. im 3. Stock der Lindenstr. 8.",
        "Der Preis beträgt 3.744,15 € inkl. MwSt. und u. a. Lieferung.",
        "Voir p. 12, art. 3, tél. 02 99 40, p. ex. chez Mmes. Roux et env. 30 pers. présentes.",
        "El Sr. García y la Dra. Ruiz viven en EE. UU., núm. 5, p. ej. aquí, aprox. desde mayo.",
        "Dhr. Jansen en mevr. De Vries komen bijv. vrijdag.",
    ],
)
def test_a_dot_inside_a_sentence_does_not_end_it(one: str) -> None:
    assert split(one) == [one]


def test_sentences_end_at_their_punctuation() -> None:
    assert split("It works. Does it? Yes! see you… Bye") == [
        "It works.", "Does it?", "Yes!", "see you…", "Bye",
    ]  # fmt: skip


def test_a_number_and_a_short_word_end_a_sentence_before_a_capital() -> None:
    assert split("Wir haben 5. Das war's usw. Danach sah ich John Smith Sr. He went.") == [
        "Wir haben 5.", "Das war's usw.", "Danach sah ich John Smith Sr.", "He went.",
    ]  # fmt: skip


def test_chinese_and_japanese_sentences_end_without_a_space() -> None:
    assert split("今日は晴れです。明日は？雨！") == ["今日は晴れです。", "明日は？", "雨！"]


def test_arabic_questions_end_with_their_own_mark() -> None:
    assert split("من كتب الرواية؟ كتبها نجيب محفوظ.") == ["من كتب الرواية؟", "كتبها نجيب محفوظ."]


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


def test_lines_of_notes_without_capitals_are_one_sentence_each() -> None:
    notes = [
        "shed - Alder Mutual, policy AM-8812, cover 45,000, excess 500, renews 15 March",
        "third parties - Alder Mutual, 5 million, excess 250",
        "van - with the other firm since September, see there",
        "tools on the road - dropped, never claimed anything",
    ]
    assert split("\n".join(notes)) == notes


def test_notes_without_capitals_that_are_of_one_length_are_no_paragraph() -> None:
    notes = [
        "the plumber came on monday and looked at the boiler",
        "called the school about the class trip to the farm",
        "marek brings the two ladders back before the summer",
        "need to buy new paint for the fence and the old gate",
    ]
    assert split("\n".join(notes)) == notes


def test_full_lines_of_notes_without_capitals_are_one_sentence() -> None:
    full = (
        "the shed is insured with them for all that is in it, except\n"
        "for what belongs to others, which they have to insure on\n"
        "their own from now on, and not for frost"
    )
    assert split(full) == [full]
    plain = "the boiler heats both floors when all taps are shut\nwhile new ones need less gas."
    assert split(plain) == [plain]


@pytest.mark.parametrize(
    "wrapped",
    [
        "remember: the code of Ann\nLee is 9911.",
        "The meeting was short. Later Ann\nLee spoke of the harvest of the year.",
        "We paid 450 euros for the boiler\nin March. The guarantee runs for\nfive years.",
        "please note that the parcel for\nMr. Brown was left with the\nneighbour at number 14.",
        "After the storm the barn had to be\nmended by Harris and\nSons for 2,300 pounds.",
        "Remember that the password of the\nrouter is swordfish",
        "Remember that the code of my phone\nis 4471",
        "Wir haben heute beschlossen, den\nHonig im Juni zu schleudern und die\nGläser zu kaufen.",
        "Le vétérinaire a dit que le chat\ndoit prendre ses gouttes matin et\nsoir.",
        "- ask Tom about the lease of the\n  flat in Mill Lane.",
        "委员会今天上午开会讨论了蜂箱的位置\n并决定五月搬到下面的田里去。",
    ],
)
def test_narrow_lines_of_a_paragraph_are_one_sentence(wrapped: str) -> None:
    on_one_line = re.sub(r"\n *", " ", wrapped)
    assert [re.sub(r"\n *", " ", one) for one in split(wrapped)] == split(on_one_line)


@pytest.mark.parametrize(
    "apart",
    [
        "milk\neggs\nbread",
        "Things to do today\ncall the bank\nfix the door",
        "two loaves of bread\na bottle of olive oil\nsomething for the cat",
        "Ann Lee\n12 High Street\nOxford OX1 2AB\nUnited Kingdom",
        "Firma Huber GmbH\nFrau Meier\nHauptstraße 5\n80331 München",
        "Tyger Tyger, burning bright,\nIn the forests of the night;\nWhat immortal hand or eye,\n"
        "Could frame thy fearful symmetry?",
        "I saw the sea\nand the sea saw me\nand nobody spoke",
        "ann: hi there\nbob: hello, how are you?",
        "<tom> are you there\n<ann> yes, one moment",
        "09:00 breakfast with the team\n10:30 visit to the plant",
        "2024-05-01 paid the rent\n2024-05-03 sold the bike",
        "hello Bob\nare you coming tonight\nyes I am",
        "host: localhost\nport: 8080",
        "apples   3   4.50\npears    2   1.20",
        "for x in items:\n    print(x)",
        "import os\nimport sys",
        "Minutes of the board\nPresent: Ann, Bob",
        "Plan for May\nThe bees go to the lower field.",
        "Meeting with Ann\nWe decided to buy oak.",
        "Kind regards\nTom Baker",
        "白日依山尽\n黄河入海流\n欲穷千里目\n更上一层楼。",
    ],
)
def test_short_lines_that_belong_to_no_sentence_stand_alone(apart: str) -> None:
    assert split(apart) == [line.strip() for line in apart.split("\n")]


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
    spans = split_sentences(text)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())


def test_a_run_of_marks_in_the_middle_of_a_word_ends_no_sentence() -> None:
    text = "Wait...what? Use a.b...c!d. Done.?!"
    assert [text[start:end] for start, end in split_sentences(text)] == [
        "Wait...what?", "Use a.b...c!d.", "Done.?!",
    ]  # fmt: skip
