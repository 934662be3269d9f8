"""How two legs' scores become one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.errors import UsageError
from memctl.literals import Fusion
from memctl.search.ranking.scored_candidates import (
    NO_SPACE,
    fuse,
    normalize_within,
    reciprocal_rank,
    zscore,
)
from memctl.search.search_plan import FUSIONS, KEYWORD_WEIGHT, parse_choice

scores = st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_best_candidate_of_both_retrievers_is_the_best_after_fusion(fusion: Fusion) -> None:
    fused = fuse(np.array([1.0, 9.0, 3.0]), np.array([0.1, 0.8, 0.7]), fusion)
    assert int(np.argmax(fused)) == 1


@pytest.mark.parametrize("fusion", FUSIONS)
@given(scores)
def test_no_scores_become_infinite_or_undefined(fusion: Fusion, values: list[float]) -> None:
    array = np.array(values)
    assert np.isfinite(fuse(array, array[::-1], fusion)).all()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_leg_that_says_nothing_leaves_the_order_to_the_other(fusion: Fusion) -> None:
    vector = np.array([0.2, 0.9, 0.5])
    fused = fuse(np.zeros(3), vector, fusion)
    assert np.argsort(fused).tolist() == np.argsort(vector).tolist()


def test_distance_counts_in_score_fusion_and_not_in_ranks() -> None:
    far, near = np.array([100.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0])
    assert zscore(far)[0] > zscore(near)[0]
    assert reciprocal_rank(far).tolist() == reciprocal_rank(near).tolist()


def test_equal_scores_share_a_rank() -> None:
    ranks = reciprocal_rank(np.array([5.0, 7.0, 5.0]))
    assert ranks[0] == ranks[2] < ranks[1]


def test_the_legs_have_their_shares() -> None:
    keyword, vector = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    assert fuse(keyword, vector, "minmax").tolist() == [1 - KEYWORD_WEIGHT, KEYWORD_WEIGHT]
    assert fuse(keyword, vector, "simple").tolist() == [0.5, 0.5]


def test_a_weight_can_be_given_to_the_words_in_one_fusion_alone() -> None:
    keyword, vector = np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.2])
    by_words, by_meaning = (
        fuse(keyword, vector, "weighted", keyword_weight=share) for share in (1.0, 0.0)
    )
    assert np.allclose(by_words, zscore(keyword))
    assert np.allclose(by_meaning, zscore(vector))
    assert np.allclose(fuse(keyword, vector, "weighted"), fuse(keyword, vector, "zscore"))
    for fusion in ("zscore", "minmax", "rrf"):
        plain = fuse(keyword, vector, fusion)
        assert fuse(keyword, vector, fusion, keyword_weight=0.0).tolist() == plain.tolist()


def test_ranks_are_fused_as_published_with_60_and_equal_shares() -> None:
    fused = fuse(np.array([3.0, 2.0]), np.array([0.1, 0.9]), "rrf")
    assert np.allclose(2 * fused, 3 * (1 + 61 / 62)), "on the scale of the others"


def test_a_candidate_without_any_of_the_words_has_no_keyword_rank() -> None:
    fused = fuse(np.array([2.0, 0.0, 0.0]), np.array([0.1, 0.2, 0.3]), "rrf")
    assert fused.argmax() == 0
    assert fused[1] < fused[2] <= 1.5


def test_an_unknown_fusion_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(UsageError) as caught:
        parse_choice("fusion", "borda", FUSIONS)
    assert all(name in caught.value.hint for name in FUSIONS)


def test_cosines_of_several_embedders_are_compared_within_each() -> None:
    """One embedder gives all texts cosines from 0.8 up, the other one seldom more than 0.3."""
    vector = np.array([0.80, 0.81, 0.90, 0.01, 0.02, 0.30, 0.0])
    spaces = np.array([0, 0, 0, 1, 1, 1, NO_SPACE])
    scaled = normalize_within(spaces, zscore, vector)
    assert {int(row) for row in np.argsort(-scaled)[:2]} == {2, 5}
    assert scaled[6] == 0
    keyword = np.zeros(7)
    fused = fuse(keyword, vector, "zscore", spaces)
    assert np.argsort(fused).tolist() == np.argsort(scaled).tolist()


@pytest.mark.parametrize("fusion", FUSIONS)
@given(scores)
def test_one_embedder_for_all_changes_nothing(fusion: Fusion, values: list[float]) -> None:
    array = np.array(values)
    one = np.zeros(len(values), dtype=np.int64)
    plain = fuse(array, array[::-1], fusion)
    assert fuse(array, array[::-1], fusion, one).tolist() == plain.tolist()
