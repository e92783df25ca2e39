"""Small subset problems, and the best of all subsets of them."""

from itertools import combinations

import numpy as np
import pytest

from laconic.subset import SubsetProblem
from laconic.subset.problem import LOSSES

LOSS = {
    "exponential": lambda g: np.exp(-g),
    "logistic": lambda g: np.logaddexp(0.0, -g),
    "squared_hinge": lambda g: np.maximum(1.0 - g, 0.0) ** 2,
}
SLOPE = {
    "exponential": lambda g: -np.exp(-g),
    "logistic": lambda g: -1.0 / (1.0 + np.exp(g)),
    "squared_hinge": lambda g: -2.0 * np.maximum(1.0 - g, 0.0),
}
PRICES = (3e-4, 3e-3, 2e-2)


def stump_data(seed, n_rows=120, n_columns=9, binary=False):
    """Correlated stump columns, and labels that need several of them."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rows, 4))
    which, at = rng.integers(0, 4, n_columns), rng.normal(size=n_columns) * 0.8
    columns = (features[:, which] > at).astype(int)
    score = features[:, 0] + features[:, 1] * features[:, 2] + 0.7 * rng.normal(size=n_rows)
    return (columns if binary else 2 * columns - 1), np.where(score > 0, 1, -1)


def make(seed, loss="exponential", l1=1e-3, nonnegative=True, intercept=False, **data):
    X, y = stump_data(seed, **data)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    return SubsetProblem(X, y, weight / weight.sum(), loss, l1, nonnegative, intercept)


def brute_force(problem, price, cap=None):
    """Best objective over all supports."""
    cap = problem.n_columns if cap is None else cap
    return min(
        problem.fit(support).value + price * size
        for size in range(cap + 1)
        for support in combinations(range(problem.n_columns), size)
    )


SETTINGS = [
    pytest.param(loss, nonnegative, intercept, id=f"{loss}-{nonnegative}-{intercept}")
    for loss in LOSSES
    for nonnegative in (True, False)
    for intercept in (True, False)
]
