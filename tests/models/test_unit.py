"""Vectors of length 1, and their products."""

from __future__ import annotations

import numpy as np

from memctl.models.vector_math import dot_products, normalize_rows


def test_products_are_those_of_each_row_with_a_vector_and_with_each_row_of_a_matrix() -> None:
    rng = np.random.default_rng(7)
    some, others = (normalize_rows(rng.normal(size=(n, 32))) for n in (5, 3))
    assert np.allclose(dot_products(some, others[0]), some @ others[0], atol=1e-6)
    assert np.allclose(dot_products(some, others), some @ others.T, atol=1e-6)
    assert dot_products(some[:0], others[0]).shape == (0,)
