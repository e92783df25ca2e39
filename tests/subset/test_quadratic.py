"""The least point of a quadratic model with prices, by trying every face."""

from itertools import product

import numpy as np
import pytest

from laconic.subset.quadratic import least_of_model, solve_positive


def value(H, g, price, w, x):
    d = x - w
    return g @ d + 0.5 * d @ H @ d + price @ (np.abs(x) - np.abs(w))


def least_over_faces(H, g, price, w, positive, free):
    """The least value over the minima of all faces that lie on their face."""
    n, best = len(w), np.inf
    ways = [(1,) if j == free else (0, 1) if positive else (-1, 0, 1) for j in range(n)]
    for signs in product(*ways):
        signs = np.array(signs)
        on = np.flatnonzero(signs)
        x = np.zeros(n)
        pull = (H @ w - g - price * signs)[on]
        x[on] = np.linalg.solve(H[np.ix_(on, on)], pull)
        bound = np.flatnonzero((signs != 0) & (np.arange(n) != free))
        if np.all(x[bound] * signs[bound] >= 0):
            best = min(best, value(H, g, price, w, x))
    return best


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("alike", [1.0, 1e-3])
@pytest.mark.parametrize("cold", [True, False])
def test_least_point_is_that_of_all_faces(positive, alike, cold):
    """Columns that are all but alike have Newton steps against their slopes."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(12, 1)) + alike * rng.normal(size=(12, 5))
        H = A.T @ A + 1e-9 * np.eye(5)
        w = np.zeros(5) if cold else rng.normal(size=5) * rng.integers(0, 2, 5)
        w[:4] = np.abs(w[:4]) if positive else w[:4]
        g = A.T @ rng.normal(size=12)
        price = np.append(np.full(4, 1e-3), 0.0)
        x = least_of_model(H, g, price, w, positive, 4)
        best = least_over_faces(H, g, price, w, positive, 4)
        np.testing.assert_allclose(value(H, g, price, w, x), best, rtol=1e-8)
        assert not positive or np.all(x[:4] >= 0)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_solving_with_a_positive_matrix(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(60, 2 * n))
    H, b = A.T @ A, rng.normal(size=2 * n)
    np.testing.assert_allclose(solve_positive(H, b), np.linalg.solve(H, b), rtol=1e-8)


def test_solving_with_a_matrix_that_rounding_made_indefinite():
    column = np.array([1.0, 1.0, 1.0 + 1e-9])
    H = np.outer(column, column) - 1e-16 * np.eye(3)
    found = solve_positive(H, column)
    np.testing.assert_allclose(H @ found, column, rtol=1e-6)
