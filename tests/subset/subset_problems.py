"""Small subset problems, and the best of all subsets of them."""

from itertools import pairwise

import numpy as np
import pytest

from laconic.subset import SubsetProblem

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
BEND = {
    "exponential": lambda g: np.exp(-g),
    "logistic": lambda g: 0.25 / np.cosh(0.5 * g) ** 2,
    "squared_hinge": lambda g: 2.0 * (g < 1.0),
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


def few_groups(most, seed=0, n_columns=9, n_groups=4):
    """A limit on supports: their columns are of at most ``most`` groups."""
    group = np.random.default_rng(seed).integers(0, n_groups, n_columns)
    return lambda support: len({int(group[column]) for column in support}) <= most


def brute_force_within(problem, price, allows):
    """Best objective over all supports that are allowed."""
    values, n = every_value(problem), problem.n_columns
    supports = [tuple(j for j in range(n) if s >> j & 1) for s in range(len(values))]
    pairs = zip(values, supports, strict=True)
    return min(float(value) + price * len(s) for value, s in pairs if allows(s))


def brute_force(problem, price, cap=None):
    """Best objective over all supports."""
    return best_of(every_value(problem), price, cap)


def best_of(values, price, cap=None):
    """Best objective over all supports, from the values of all of them."""
    sizes = np.array([support.bit_count() for support in range(len(values))])
    fits = sizes <= (sizes.max() if cap is None else cap)
    return float((values + price * sizes)[fits].min())


def every_value(problem):
    """Loss + l1 term of all 2^n supports; column j is in support number s if bit j of s is set.

    By a solver of its own, side by side for all supports of the same last column: each starts from
    the weights of the support without that column. Tests that share a problem share its values.
    """
    S = problem.matrix(range(problem.n_columns))
    settings = (problem.loss, problem.l1, problem.nonnegative)
    key = (S.shape, S.tobytes(), problem.weight.tobytes(), *settings)
    if key not in _FOUND:
        _FOUND[key] = _every_value(problem, S)
    return _FOUND[key]


_FOUND = {}


def _every_value(problem, S):
    n = problem.n_columns
    inside = np.ones((2**n, len(S)), dtype=bool)
    inside[:, :n] = np.arange(2**n)[:, None] >> np.arange(n) & 1
    price = np.append(np.full(n, problem.l1), np.zeros(len(S) - n))
    W, values = np.zeros(inside.shape), np.empty(2**n)
    for first, last in pairwise([0, *(2**j for j in range(n + 1))]):
        some = np.arange(first, last)
        W[some] = W[some - first]
        values[some] = _solved(problem, S, price, W, inside, some)
    return values


def _solved(problem, S, price, W, inside, some):
    """Values of some supports, whose weights W are brought to the best.

    Newton steps within the orthant of the present signs, until no slope is left.
    """
    n = problem.n_columns
    squares = np.einsum("ai,bi->iab", S, S).reshape(S.shape[1], -1)
    values, left = _values(problem, S, price, W[some]), np.arange(len(some))
    for _ in range(100):
        w, margins = W[some[left]], W[some[left]] @ S
        slope = problem.weight * SLOPE[problem.loss](margins) @ S.T
        out = np.where(slope < -price, 1.0, 0.0)
        out -= 0.0 if problem.nonnegative else np.where(slope > price, 1.0, 0.0)
        face = np.where(w == 0, out, np.sign(w)) * inside[some[left]]
        face[:, n:] = 2.0
        slope = np.where(face == 0, 0.0, slope + price * face)
        on = np.abs(slope).max(axis=1, initial=0.0) > 1e-8
        left, w, slope, face, margins = (a[on] for a in (left, w, slope, face, margins))
        if len(left) == 0:
            return values
        bends = problem.weight * BEND[problem.loss](margins)
        step = _step((bends @ squares).reshape(-1, len(S), len(S)), slope, face, w)
        W[some[left]], values[left] = _moved(problem, S, price, w, step, face, values[left])
    raise AssertionError("some supports were not brought to an end")


def _values(problem, S, price, W):
    return LOSS[problem.loss](W @ S) @ problem.weight + np.abs(W) @ price


def _step(H, slope, face, w):
    """Newton steps of many faces; weights at zero that would go the other way stay there."""
    moving = face != 0
    while True:
        both = moving[:, :, None] & moving[:, None, :]
        ridge = 1e-10 * np.einsum("bii->bi", H).mean(axis=1)[:, None, None]
        A = np.where(both, H, 0.0) + np.eye(H.shape[1]) * np.where(both, ridge, 1.0)
        step = -np.linalg.solve(A, np.where(moving, slope, 0.0)[:, :, None])[:, :, 0]
        back = moving & (w == 0) & (face != 2) & (step * face < 0)
        if not back.any():
            return step
        moving &= ~back


def _moved(problem, S, price, w, step, face, values):
    """Halve every step until its value falls; weights that pass zero stop there."""
    zero_at = np.full_like(w, np.inf)
    np.divide(-w, step, out=zero_at, where=(step * w < 0) & (face != 2))
    first = zero_at.min(axis=1)
    t = np.minimum(1.0, 20.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))
    new, todo = w.copy(), np.arange(len(w))
    for _ in range(60):
        trial = np.where(zero_at[todo] <= t[todo, None], 0.0, w[todo] + t[todo, None] * step[todo])
        value = _values(problem, S, price, trial)
        lower = value <= values[todo] * (1 + 1e-15)
        new[todo[lower]], values[todo[lower]] = trial[lower], value[lower]
        todo = todo[~lower]
        half = 0.5 * t[todo]
        t[todo] = np.where((half < first[todo]) & (first[todo] < t[todo]), first[todo], half)
    return new, values


SETTINGS = [
    pytest.param(loss, nonnegative, intercept, id=f"{loss}-{nonnegative}-{intercept}")
    for loss in LOSS
    for nonnegative in (True, False)
    for intercept in (True, False)
]
