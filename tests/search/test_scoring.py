"""Scores, weights and statistics: what ranking rests on."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.search import term_statistics
from memctl.search.query.question import analyze_question
from memctl.search.retrieval.candidates import KeywordScorer, cosines, coverage, slot_weights
from memctl.search.retrieval.question_vectors import question_vector
from memctl.search.term_statistics import TermStatistics, sample_term_statistics
from memctl.store.tables.filter_expressions import EVERYTHING, col

from .conftest import MemoryOf, Shelf

STATISTICS = TermStatistics(100, 100, 1000, {"cat": 10, "dog": 60, "red": 20, "blue": 20})


def score(question: str, text: str) -> float:
    return KeywordScorer(analyze_question(question), STATISTICS).score(text)[0]


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    assert score("cat dog", "cat x y") > score("cat dog", "dog x y") > 0


def test_a_term_in_a_short_memory_counts_more_than_in_a_long_one() -> None:
    assert score("cat", "cat x") > score("cat", "cat" + " x" * 50)


def test_a_memory_is_long_by_the_measure_of_its_own_source() -> None:
    joint = replace(STATISTICS, lengths={"files": 40.0, "chat": 4.0})
    scorer = KeywordScorer(analyze_question("cat"), joint)
    file, turn = "cat " + "x " * 39 + "x", "cat x x x"
    assert scorer.score(file, "files")[0] == pytest.approx(scorer.score(turn, "chat")[0], rel=0.02)
    assert scorer.score(file, "chat")[0] < scorer.score(turn, "chat")[0]


def test_repetition_counts_less_and_less() -> None:
    one, two, three = (score("cat", " ".join(["cat"] * n + ["x"] * (9 - n))) for n in (1, 2, 3))
    assert two - one > three - two > 0


def test_neighbours_in_the_question_count_more_as_neighbours_in_a_memory() -> None:
    assert score("red blue", "red blue x y") > score("red blue", "blue x red y")


def test_every_repeated_neighbouring_pair_is_counted() -> None:
    scorer = KeywordScorer(analyze_question("red blue"), STATISTICS)
    once = scorer.score("red blue x x red x blue x")[0]
    twice = scorer.score("red blue red blue x x x x")[0]
    assert twice > once


def test_a_term_is_not_found_inside_another() -> None:
    assert KeywordScorer(analyze_question("cat"), STATISTICS).score("category concat") == (
        0,
        frozenset(),
    )


def test_scores_are_those_of_the_index(shelf: Shelf, memory_of: MemoryOf) -> None:
    texts = ["a red fox", "a red red wine and cheese", "blue cheese", "a long walk by the sea"]
    shelf.put([memory_of(str(n), text) for n, text in enumerate(texts)])
    store = shelf.stores["kb"]
    store.upkeep(force=True)
    snapshot = store.snapshot()
    question = analyze_question("red cheese")
    scorer = KeywordScorer(question, sample_term_statistics(snapshot, EVERYTHING))
    rows = snapshot.keyword(question.terms, columns=["search_text"]).to_pylist()
    assert len(rows) == 3
    for row in rows:
        assert scorer.score(row["search_text"])[0] == pytest.approx(row["_score"], rel=1e-4)


def test_coverage_is_the_share_of_what_is_rare() -> None:
    question = analyze_question("the cat and the dog")
    weights = slot_weights(question, STATISTICS)
    only_cat, only_dog = (coverage(weights, frozenset({word})) for word in ("cat", "dog"))
    assert only_cat > 0.5 > only_dog > 0
    assert only_cat + only_dog == pytest.approx(1)


def test_a_zero_vector_is_like_nothing() -> None:
    vectors = np.array([[0, 0], [3, 0]], dtype=np.float32)
    assert cosines(np.array([1, 0], dtype=np.float32), vectors).tolist() == [0, 1]


def test_asking_words_are_not_looked_for() -> None:
    assert analyze_question("How much is the rent, please?").terms == ("rent",)
    assert "much" in analyze_question("a much loved place").terms


def test_names_are_capitalised_words_after_the_first() -> None:
    assert list(analyze_question("Does Ines know “Anneke” well?").names) == [("ine",), ("annek",)]


def test_a_word_may_be_found_in_several_languages() -> None:
    slots = analyze_question("running", ["en", "de"]).slots
    assert slots == (("run", "running"),)


def test_a_form_that_few_records_have_weighs_no_more_than_the_word() -> None:
    common = TermStatistics(100, 100, 1000, {"run": 60, "running": 2})
    scorer = KeywordScorer(analyze_question("running", ["en", "de"]), common)
    assert scorer.score("running x")[0] == scorer.score("run x")[0] > 0


@pytest.mark.parametrize(
    ("question", "content", "language"),
    [
        ("¿Dónde está el contrato de la casa?", "contrato casa", "es"),
        ("Wo ist denn der Vertrag für das Haus?", "Vertrag Haus", "de"),
        ("Wann und an wen geht welcher Vertrag?", "geht Vertrag", "de"),
        ("Combien de scies achetons-nous ?", "scies achetons", "fr"),
        ("Where is the contract for the house?", "contract house", "en"),
    ],
)
def test_stop_words_do_not_pull_the_vector_in_any_language(
    question: str, content: str, language: str
) -> None:
    embedder = load_embedder(BUILTIN_EMBEDDER)
    asked, said = (
        question_vector(analyze_question(text, [language]), embedder, STATISTICS)
        for text in (question, content)
    )
    assert asked @ said > 0.9


def test_a_common_word_pulls_the_vector_less() -> None:
    embedder = load_embedder(BUILTIN_EMBEDDER)
    vector = question_vector(analyze_question("dog cat"), embedder, STATISTICS)
    dog, cat = embedder.embed(["dog", "cat"])
    assert vector @ cat > vector @ dog


def test_statistics_are_of_what_the_filter_leaves(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put(
        [memory_of(f"a{n}", "anna said hello", namespace="a") for n in range(3)]
        + [memory_of("b", "goodbye said bert", namespace="b")]
    )
    snapshot = shelf.stores["kb"].snapshot()
    found = sample_term_statistics(snapshot, col("namespace") == "a")
    assert (found.memories, found.sampled, found.frequencies.get("anna")) == (3, 3, 3)
    assert "bert" not in found.frequencies
    assert found.idf("bert") == found.highest_idf > found.idf("anna")


def test_a_large_table_is_sampled_evenly(
    shelf: Shelf, memory_of: MemoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_statistics, "SAMPLE", 16)
    shelf.put([memory_of(f"{n:03}", "early" if n < 50 else "late") for n in range(100)])
    found = sample_term_statistics(shelf.stores["kb"].snapshot(), EVERYTHING)
    assert (found.memories, found.sampled) == (100, 16)
    assert found.frequencies == {"earli": 8, "late": 8}


def test_nothing_has_statistics_too(shelf: Shelf, memory_of: MemoryOf) -> None:
    shelf.put([memory_of("x", "something")])
    found = sample_term_statistics(shelf.stores["kb"].snapshot(), col("namespace") == "none")
    assert (found.sampled, found.average_length, found.frequencies) == (0, 1.0, {})
