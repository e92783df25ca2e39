"""Shares of the atoms in the fall of the loss, against Aumann and Shapley's integral."""

import numpy as np
import pytest
from scipy.optimize import minimize

from laconic.boost.shares import shares_of_fall

ATOMS = [np.array([1]), np.array([2, 3])]


class Points:
    """A problem that is evaluated at several points one by one."""

    def evaluate_all(self, points):
        return [self.evaluate(W) for W in points]


class Exponential(Points):
    """Mean of exp(-y f(x)), f without an intercept of its own: column 0 is constant."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.X = np.column_stack([np.ones(60), rng.normal(size=(60, 3))])
        self.y = rng.integers(0, 2, 60) * 2.0 - 1.0

    def evaluate(self, W):
        losses = np.exp(-self.y * (self.X @ W[:, 0]))
        return losses.mean(), -self.X.T @ (self.y * losses)[:, None] / len(self.y)


class Quadratic(Points):
    """½ wᵀ A w − b w: along a ray the gradient is a line."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        B = rng.normal(size=(4, 4))
        self.A, self.b = B @ B.T, rng.normal(size=(4, 1))

    def evaluate(self, W):
        slope = self.A @ W - self.b
        return float(np.sum(W * (0.5 * (self.A @ W) - self.b))), slope


def fine_sum(problem, start, W, n=4000):
    """-∫ ∇L(start + t (W - start)) (W - start) dt by the midpoint rule, column by column."""
    step = W - start
    slopes = [problem.evaluate(start + (t + 0.5) / n * step)[1] for t in range(n)]
    return -(np.mean(slopes, axis=0) * step).sum(axis=1)


def least(problem):
    """The weights of a fit."""

    def both(w):
        value, slope = problem.evaluate(w[:, None])
        return value, slope[:, 0]

    return minimize(both, np.zeros(4), jac=True, method="BFGS").x[:, None]


@pytest.mark.parametrize("kind", [Exponential, Quadratic])
@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_a_fine_sum(kind, seed):
    problem = kind(seed)
    start, W = 0.1 * np.random.default_rng(10 + seed).normal(size=(4, 1)), least(problem)
    fine = fine_sum(problem, start, W)
    expected = [abs(fine[J].sum()) for J in ATOMS]
    np.testing.assert_allclose(shares_of_fall(problem, start, W, ATOMS), expected, rtol=1e-3)


def test_all_columns_together_have_the_whole_fall():
    problem, rng = Quadratic(5), np.random.default_rng(5)
    start, W = rng.normal(size=(2, 4, 1))
    [whole] = shares_of_fall(problem, start, W, [np.arange(4)])
    fall = problem.evaluate(start)[0] - problem.evaluate(W)[0]
    assert whole == pytest.approx(abs(fall), rel=1e-12)


def test_an_atom_that_stays_where_it_is_has_no_share():
    problem, rng = Exponential(0), np.random.default_rng(0)
    start = 0.1 * rng.normal(size=(4, 1))
    W = start.copy()
    W[1] += 1.0
    shares = shares_of_fall(problem, start, W, ATOMS)
    assert shares[0] > 0
    assert shares[1] == 0
