"""Messages of thousands of words, such as prompts with a log or a document pasted in."""

from __future__ import annotations

import pytest

from memctl.language.term_analysis import terms
from memctl.search.query.analyzers import MAX_WORDS
from memctl.search.searcher import Searcher
from memctl.search.term_statistics import TermStatistics

from .conftest import MemoryOf, Shelf
from .test_search import found

LOG = " ".join(f"request{n} failed after {n} ms" for n in range(3_000, 5_000))


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "graph", "agentic"])
def test_of_a_very_long_message_what_tells_most_is_looked_for(
    roastery: Searcher, mode: str
) -> None:
    outcome = roastery.search(f"{LOG} hazelnuts {LOG} flue {LOG}", mode=mode)
    assert set(found(outcome)[:2]) == {"people", "permit"}
    assert len(outcome.asked.slots) == MAX_WORDS
    assert len(outcome.explain["terms"]) <= MAX_WORDS
    assert outcome.notes == (
        f"of 4,005 different words the {MAX_WORDS} that tell most were looked for",
    )


@pytest.mark.parametrize("question", ["Who builds the flue? {}", "{} Who builds the flue?"])
def test_a_question_before_or_after_a_long_text_is_searched_for_unchanged(
    roastery: Searcher, question: str
) -> None:
    outcome = roastery.search(question.format(LOG), mode="keyword")
    assert "Who builds the flue?" in outcome.asked.text
    assert found(outcome)[0] == "permit"


def test_a_question_of_usual_length_is_looked_for_whole(roastery: Searcher) -> None:
    words = (f"q{chr(97 + n // 26)}x{chr(97 + n % 26)}z" for n in range(MAX_WORDS - 1))
    question = f"flue {' '.join(words)}"
    outcome = roastery.search(question, mode="keyword")
    assert outcome.asked.text == question
    assert len(outcome.asked.slots) == MAX_WORDS
    assert outcome.notes == ()


def test_pages_written_without_spaces_are_cut_short(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("ja", "焙煎機は六月に届きます。"), memory_of("en", "The roaster.")])
    pages = "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))
    outcome = shelf.searcher().search(f"{pages}焙煎機", mode="keyword")
    assert found(outcome) == ["ja"]
    assert len(outcome.asked.terms) == MAX_WORDS
    assert len(outcome.asked.text) <= 200


def test_no_more_is_weighed_for_a_longer_message(
    roastery: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what it takes to choose among the words."""
    idf, weighed = TermStatistics.idf, list[str]()
    monkeypatch.setattr(
        TermStatistics, "idf", lambda self, term: weighed.append(term) or idf(self, term)
    )
    words = terms(LOG)
    roastery.search(" ".join(words[: len(words) // 2]))
    half = len(weighed)
    roastery.search(" ".join(words))
    assert len(weighed) - half < 2 * half
