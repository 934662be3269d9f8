"""Scores and comparisons have the values that can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from memctl.evaluation.evaluation_runs import (
    METRICS,
    QuestionResult,
    comparable_mode,
    compare_runs,
    measure,
    summarize,
)
from memctl.evaluation.question_sets import parse_questions
from memctl.feedback.feedback_statistics import bootstrap_interval


def test_scores_of_a_ranking_are_those_worked_out_by_hand() -> None:
    ranked = ["x", "a", "y", "z", "w", "v", "b"]
    scores = measure(["a", "b", "c"], ranked)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    gain = 1 / math.log2(3) + 1 / math.log2(8)
    assert scores == pytest.approx(
        {"recall@5": 1 / 3, "recall@10": 2 / 3, "ndcg@10": gain / ideal, "mrr": 1 / 2}
    )


def test_a_perfect_ranking_of_more_evidence_than_is_looked_at_gains_all() -> None:
    relevant = [str(number) for number in range(12)]
    scores = measure(relevant, relevant)
    assert scores["ndcg@10"] == 1.0
    assert scores["recall@10"] == 10 / 12


def test_no_hits_score_zero() -> None:
    assert set(measure(["a"], []).values()) == {0.0}


def outcome(id_: str, value: float, category: str = "", seconds: float = 0.01) -> QuestionResult:
    return QuestionResult(id_, category, dict.fromkeys(METRICS, value), seconds)


def test_means_are_in_percent_over_all_and_by_category() -> None:
    found = [outcome("1", 1.0, "x"), outcome("2", 0.0, "y", 0.03), outcome("3", 0.5, "x", 0.02)]
    everything, x, y = summarize("hybrid", found)
    assert (everything.category, everything.questions) == ("all", 3)
    assert everything.means == dict.fromkeys(METRICS, 50.0)
    assert everything.p50_ms == 20.0
    assert everything.p95_ms == pytest.approx(29.0)
    assert (x.means["mrr"], y.means["mrr"], y.p95_ms) == (75.0, 0.0, 30.0)


def test_a_comparison_counts_what_got_better_and_worse() -> None:
    before = [outcome("1", 0.5), outcome("2", 0.5), outcome("3", 1.0), outcome("gone", 0.0)]
    after = [outcome("3", 0.75), outcome("1", 1.0), outcome("2", 0.5), outcome("new", 0.0)]
    [first, *_] = compare_runs("hybrid", "keyword", before, after)
    assert (first.metric, first.questions, first.better, first.worse) == ("recall@5", 3, 1, 1)
    assert (first.before, first.after) == (66.7, 75.0)
    assert first.difference == pytest.approx(8.33)
    assert first.low is not None
    assert first.high is not None
    assert first.low < first.difference < first.high
    assert compare_runs("hybrid", "hybrid", before[-1:], after[-1:]) == []


def test_the_interval_is_near_that_of_a_normal_mean_and_always_the_same() -> None:
    differences = [float(number % 7 - 2) for number in range(400)]
    mean = sum(differences) / 400
    error = math.sqrt(sum((d - mean) ** 2 for d in differences) / 399 / 400)
    low, high = bootstrap_interval(differences)
    assert low == pytest.approx(mean - 1.96 * error, abs=0.02)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.02)
    assert bootstrap_interval(differences) == (low, high)
    assert bootstrap_interval([1.0]) == (None, None)
    assert bootstrap_interval([2.0, 2.0]) == (2.0, 2.0)


def test_a_mode_is_compared_with_itself_or_with_the_only_other_one() -> None:
    assert comparable_mode("hybrid", {"keyword": 0, "hybrid": 0}, 1) == "hybrid"
    assert comparable_mode("hybrid", {"keyword": 0}, 1) == "keyword"
    assert comparable_mode("hybrid", {"keyword": 0, "vector": 0}, 1) is None
    assert comparable_mode("hybrid", {"keyword": 0}, 2) is None


@pytest.mark.parametrize(
    "line",
    ["{oops", "[1]", '{"id": 1}', '{"question": "?", "relevant": ["a"]}',
     '{"question": "who?", "relevant": "a"}', '{"question": "who?", "relevant": [1.5]}',
     '{"question": "who?", "relevant": ["a"], "namespace": 3}'],
)  # fmt: skip
def test_a_line_that_is_no_question_is_reported_by_its_number(line: str) -> None:
    found = parse_questions(['{"id": 1, "question": "who?", "relevant": ["a"]}', "", line])
    assert [question.id for question in found.questions] == ["1"]
    assert [bad.line for bad in found.bad] == [3]
