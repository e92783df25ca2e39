"""Small subset problems, and the best of all subsets of them."""

import numpy as np
import pytest
from numba import njit

from laconic.subset import SubsetProblem, kernels
from laconic.subset.problem import LOSSES, TOLERANCE

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
    return best_of(every_value(problem), price, cap)


def best_of(values, price, cap=None):
    """Best objective over all supports, from the values of all of them."""
    sizes = np.array([support.bit_count() for support in range(len(values))])
    fits = sizes <= (sizes.max() if cap is None else cap)
    return float((values + price * sizes)[fits].min())


def every_value(problem):
    """Loss + l1 term of all 2^n supports; column j is in support number s if bit j of s is set."""
    free = problem.n_columns if problem.intercept else -1
    S = problem.matrix(range(problem.n_columns))
    settings = LOSSES[problem.loss], problem.l1, problem.nonnegative, free, TOLERANCE
    return _every_value(S, problem.weight, problem.n_columns, *settings)


@njit(cache=True)
def _every_value(S, weight, n, code, l1, positive, free, tol):
    out = np.empty(2**n)
    for support in range(len(out)):
        rows = [j for j in range(n) if support >> j & 1]
        price = np.full(len(rows) + (free >= 0), l1)
        if free >= 0:
            price[-1] = 0.0
            rows.append(free)
        zero = np.zeros(len(rows))
        own = np.empty((len(rows), S.shape[1]))
        for at, row in enumerate(rows):
            own[at] = S[row]
        last = len(rows) - 1 if free >= 0 else -1
        solved = kernels.solve(own, weight, zero, code, price, zero, positive, last, tol, np.inf)
        out[support] = solved[1]
    return out


SETTINGS = [
    pytest.param(loss, nonnegative, intercept, id=f"{loss}-{nonnegative}-{intercept}")
    for loss in LOSSES
    for nonnegative in (True, False)
    for intercept in (True, False)
]
