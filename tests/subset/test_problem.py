"""Weights on a support, gains of adding and losses of dropping, against second opinions."""

import cvxpy
import numpy as np
import pytest
from scipy.optimize import minimize
from subset_problems import LOSS, SETTINGS, SLOPE, make

from laconic.subset.problem import SubsetProblem

CONVEX = {
    "exponential": lambda g: cvxpy.exp(-g),
    "logistic": lambda g: cvxpy.logistic(-g),
    "squared_hinge": lambda g: cvxpy.square(cvxpy.pos(1 - g)),
}


@pytest.mark.parametrize(("loss", "nonnegative", "intercept"), SETTINGS)
@pytest.mark.parametrize("binary", [True, False])
def test_fit_is_the_optimum_of_a_second_solver(loss, nonnegative, intercept, binary):
    problem = make(3, loss, 0.01, nonnegative, intercept, binary=binary)
    n = problem.n_columns

    parts = [problem.columns] if nonnegative else [problem.columns, -problem.columns]
    signed = problem.y[:, None] * np.hstack([*parts, np.ones((len(problem.y), int(intercept)))])
    price = np.append(np.full(n * len(parts), 0.01), np.zeros(int(intercept)))

    def value(v):
        """Weights in two halves, both at least 0, where they may be negative."""
        margins = signed @ v
        gradient = signed.T @ (problem.weight * SLOPE[loss](margins)) + price
        return problem.weight @ LOSS[loss](margins) + price @ v, gradient

    bounds = [(0, None)] * (n * len(parts)) + [(None, None)] * intercept
    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000, "maxfun": 10**6}
    peer = minimize(
        value, np.zeros(len(bounds)), method="L-BFGS-B", jac=True, bounds=bounds, options=options
    )
    fit = problem.fit(tuple(range(n)))
    np.testing.assert_allclose(fit.value, peer.fun, rtol=1e-8)
    w = fit.weights if intercept else np.append(fit.weights, 0.0)
    direct = problem.weight @ LOSS[loss](problem.y * (problem.columns @ w[:n] + w[n]))
    np.testing.assert_allclose(fit.value, direct + 0.01 * np.abs(w[:n]).sum(), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("l1", [1e-6, 1e-3])
def test_nearly_alike_columns_do_not_stop_a_solve(loss, nonnegative, l1):
    """Cold starts at a small l1: Newton steps take many weights against their own slopes."""
    problem = make(2, loss, l1, nonnegative, True, n_columns=30, n_rows=150, binary=True)
    rng = np.random.default_rng(0)
    for _ in range(2):
        support = tuple(sorted(rng.choice(30, 20, replace=False).tolist()))
        fit = problem.fit(support)
        w, b = cvxpy.Variable(20, nonneg=nonnegative), cvxpy.Variable()
        margins = cvxpy.multiply(problem.y, problem.columns[:, support] @ w + b)
        mean = cvxpy.sum(cvxpy.multiply(problem.weight, CONVEX[loss](margins)))
        peer = cvxpy.Problem(cvxpy.Minimize(mean + l1 * cvxpy.norm1(w)))
        peer.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
        np.testing.assert_allclose(fit.value, peer.value, rtol=2e-8)
        S = problem.matrix(support)
        slope = S @ problem.derivatives(S, fit.weights)[1]
        pull = (-slope if nonnegative else np.abs(slope))[:20]
        assert np.all(pull <= l1 + 1e-7)


def test_more_l1_never_has_a_lower_value():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(60, 2))
    columns = (features[:, [0] * 6 + [1] * 6] > rng.normal(size=12)).astype(int)
    y = np.where(features.sum(axis=1) + 0.6 * rng.normal(size=60) > 0, 1, -1)
    values = [
        SubsetProblem(columns, y, np.full(60, 1 / 60), l1=l1).fit(tuple(range(12))).value
        for l1 in (0.0, 1e-9, 1e-6, 1e-3, 1e-2)
    ]
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("nonnegative", [True, False])
def test_gains_of_adding(loss, nonnegative):
    """Exact for the exponential loss: the best step along the column alone, by a scalar search."""
    problem = make(5, loss, 0.004, nonnegative, True)
    fit = problem.fit((1, 4))
    gains = problem.gains(fit)
    S = problem.matrix((1, 4))
    margins = fit.weights @ S
    for j in set(range(problem.n_columns)) - {1, 4}:
        column = problem.y * problem.columns[:, j]

        def along(d, column=column):
            return problem.weight @ LOSS[loss](margins + d * column) + 0.004 * abs(d)

        grid = np.linspace(0.0 if nonnegative else -2.0, 2.0, 8001)
        decrease = along(0.0) - min(along(d) for d in grid)
        if loss == "exponential":
            np.testing.assert_allclose(gains[j], decrease, atol=2e-7)
        else:
            assert (gains[j] > 0) == (decrease > 1e-9)
    assert np.all(gains[[1, 4]] == -np.inf)


def hard_columns(n):
    """Columns of 0 and 1, and labels, that need weights which grow like Fibonacci's numbers."""
    offset = np.arange(n) - np.arange(n)[:, None]
    columns = ((offset == 0) | ((offset > 0) & (offset % 2 == 1))).astype(int)
    return columns, np.where(np.linalg.inv(columns)[0] < 0, -1, 1)


def least_by_scipy(problem, start):
    """The least objective over all columns, as a smooth problem of w = p − n with p, n ≥ 0."""
    n, S = problem.n_columns, problem.matrix(range(problem.n_columns))

    def objective(split):
        margins = (split[:n] - split[n:]) @ S
        slope = S @ (problem.weight * SLOPE[problem.loss](margins))
        value = problem.weight @ LOSS[problem.loss](margins) + problem.l1 * split.sum()
        return value, np.concatenate([slope, -slope]) + problem.l1

    split = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-14, "maxcor": 50}
    return minimize(
        objective, split, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * n, options=options
    ).fun


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # L-BFGS-B tries weights that overflow
@pytest.mark.parametrize("loss", list(LOSS))
@pytest.mark.parametrize("n", [14, 18])
def test_columns_that_are_nearly_dependent_get_their_large_weights(n, loss):
    """With a tiny l1. A limit on the length of steps must not end the solve before."""
    columns, y = hard_columns(n)
    problem = SubsetProblem(columns, y, np.full(n, 1 / n), loss, 1e-7, False, False)
    fit = problem.fit(tuple(range(n)))
    assert fit.converged
    assert np.abs(fit.weights).max() > {14: 600, 18: 4100}[n]
    starts = [fit.weights, np.zeros(n)] if n == 14 else [fit.weights]  # from 0 it ends far above
    for start in starts:
        assert fit.value <= least_by_scipy(problem, start) * (1 + 1e-6)
    margins = fit.weights @ problem.matrix(range(n))
    value = problem.weight @ LOSS[loss](margins) + problem.l1 * np.abs(fit.weights).sum()
    assert fit.value == pytest.approx(value, rel=1e-12)
