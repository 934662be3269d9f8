"""What keyword search sees of a text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.language.term_analysis import query_terms, terms
from memctl.language.word_lists import all_languages


def test_inflected_forms_of_a_word_give_the_same_term() -> None:
    assert terms("Running dogs") == terms("run dog")


def test_accents_and_case_do_not_matter() -> None:
    assert terms("RÉSUMÉ Beyoncé") == terms("resume beyonce")


def test_stop_words_are_dropped_but_names_that_look_like_them_stay() -> None:
    assert terms("Will Smith will go to the US with us") == ["will", "smith", "go", "us"]


def test_contractions_and_possessives_leave_nothing_behind() -> None:
    assert terms("I'm sure they don't know Ann's dog") == ["sure", "know", "ann", "dog"]
    assert terms("don’t") == []


@pytest.mark.parametrize(
    ("identifier", "part"),
    [
        ("parseHttpResponse", "respons"),
        ("max_open_files", "open"),
        ("os.path.join", "path"),
        ("GPT-4", "gpt"),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(identifier: str, part: str) -> None:
    found = terms(identifier)
    assert part in found
    assert len(found) > len(terms(identifier.replace("-", " ").replace(".", " "))) - 1
    assert set(terms(identifier.lower())) & set(found)


def test_a_hyphenated_word_is_found_when_written_together() -> None:
    assert set(terms("email")) <= set(terms("e-mail"))


def test_names_of_programming_languages_keep_their_signs() -> None:
    assert terms("C++ or C#") == ["c++", "c#"]


def test_numbers_and_dates_stay_as_written() -> None:
    assert terms("3.14 at 10:30 on 2026-05-12") == [
        "3.14", "10:30", "2026", "2026-05", "2026-05-12",
    ]  # fmt: skip
    assert terms("1,200") == terms("1200")
    assert terms("May 12th") == terms("May 12")


def test_chinese_and_japanese_and_korean_are_found_by_pairs_of_characters() -> None:
    assert set(terms("東京")) <= set(terms("東京タワーに行きました。"))
    assert set(terms("한국")) <= set(terms("한국어를 배웁니다"))


def test_each_language_is_stemmed_by_its_own_rules() -> None:
    assert terms("Häuser", "de") == terms("Haus", "de")
    assert terms("l'élève", "fr") == terms("élèves", "fr")
    assert terms("книги", "ru") == terms("книга", "ru")


def test_a_question_is_analysed_for_every_language_and_each_term_comes_once() -> None:
    found = query_terms("Häuser Häuser", ["en", "de"])
    assert found == list(dict.fromkeys(terms("Häuser") + terms("Häuser", "de")))


@given(st.text(), st.sampled_from(["", "xx", "ja", *(each.code for each in all_languages())]))
def test_any_text_gives_short_terms_without_white_space(text: str, language: str) -> None:
    found = terms(text, language)
    assert all(term and len(term) <= 100 and not term.split()[1:] for term in found)
    assert " ".join(found).split() == found
    assert found == terms(text, language)


def test_stems_are_the_same_with_and_without_the_compiled_stemmer() -> None:
    text = "running ponies generously Häuser größte naïve cafés книгами mangiavano corriendo"
    compiled = {language: terms(text, language) for language in ("en", "de", "ru", "it", "es")}
    script = (
        "import sys; sys.modules['Stemmer'] = None\n"
        "import snowballstemmer; assert type(snowballstemmer.stemmer('english')).__module__"
        ".startswith('snowballstemmer')\n"
        "from memctl.language.term_analysis import terms\n"
        f"assert {{code: terms({text!r}, code) for code in {list(compiled)}}} == {compiled!r}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
