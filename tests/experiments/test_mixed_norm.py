"""Mixed-norm regularisation against CVXPY, its optimality conditions, and brute force."""

import cvxpy as cp
import numpy as np
import pytest
from linear import make_rows, refit
from mixed_norm import NORMS, MixedNorm

from laconic import ShareBoostClassifier
from laconic.numeric.threads import Threads
from laconic.pools import Columns, Products
from problems import random_problem

CONVEX = {
    "linf_l1": lambda W: cp.sum(cp.max(cp.abs(W), axis=1)),
    "l2_l1": lambda W: cp.sum(cp.norm(W, 2, axis=1)),
    "l1": lambda W: cp.sum(cp.abs(W)),
}


def cvxpy_value(X, y, norm, alpha, margin, weight=None):
    """min L + α‖W‖ by a general solver."""
    hot = np.eye(y.max() + 1)[y]
    W, b = cp.Variable((X.shape[1], hot.shape[1])), cp.Variable((1, hot.shape[1]))
    F = X @ W + np.ones((len(y), 1)) @ b
    losses = cp.log_sum_exp(F + margin * (1 - hot), axis=1) - cp.sum(cp.multiply(hot, F), axis=1)
    weight = np.ones(len(y)) if weight is None else weight
    loss = losses @ (weight / weight.sum())
    return cp.Problem(cp.Minimize(loss + alpha * CONVEX[norm](W))).solve(solver="CLARABEL")


@pytest.fixture
def threads():
    with Threads(1) as held:
        yield held


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", ["margin", "log"])
def test_values_are_those_of_cvxpy(norm, loss, threads):
    X, y = random_problem(m=60, d=8, k=3)
    solver = MixedNorm(Columns(None), X, y, threads, norm=norm, loss=loss, tol=1e-8)
    largest = solver.largest_alpha
    for point in solver.path([0.5 * largest, 0.1 * largest, 0.01 * largest]):
        value = cvxpy_value(X, y, norm, point.alpha, float(loss == "margin"))
        assert point.value == pytest.approx(value, abs=1e-6)
        assert point.value - value <= point.gap + 1e-7


def test_weights_of_rows_count(threads):
    X, y = random_problem(m=50, d=6, k=3)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    solver = MixedNorm(Columns(None), X, y, threads, tol=1e-9, weight=weight)
    assert solver.solve(0.05).value == pytest.approx(
        cvxpy_value(X, y, "linf_l1", 0.05, 1.0, weight), abs=1e-6
    )
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    twice = MixedNorm(Columns(None), X[again], y[again], threads, tol=1e-9)
    assert twice.solve(0.05).value == pytest.approx(solver.solve(0.05).value, abs=1e-8)


@pytest.mark.parametrize("norm", NORMS)
def test_optimality_conditions_hold_over_the_whole_pool(norm, threads):
    """‖∇_r L‖_* ≤ α everywhere, with ⟨−∇_r L, W_r⟩ = α‖W_r‖ where W_r is not zero."""
    X, y = random_problem(m=150, d=12, k=4)
    solver = MixedNorm(Products(), X, y, threads, norm=norm, tol=1e-9)
    alpha = 0.2 * solver.largest_alpha
    point = solver.solve(alpha)
    [(first, gradients)] = list(solver.rows.gradients())
    assert first == 0
    assert NORMS[norm].dual(gradients).max() <= alpha + 1e-5
    numbers = point.model.numbers
    assert 0 < len(numbers) < solver.rows.pool.n_atoms
    scaled = point.model.weights / solver.rows.pool.scales(numbers)[:, None]
    inner = np.sum(gradients[numbers] * scaled, axis=1)
    assert inner == pytest.approx(alpha * NORMS[norm].each(scaled), abs=1e-5)


def test_above_the_largest_alpha_there_is_nothing(threads):
    X, y = random_problem(m=80, d=5)
    solver = MixedNorm(Columns(), X, y, threads)
    largest = solver.largest_alpha
    assert solver.solve(1.001 * largest).model.size == 0
    assert solver.solve(0.99 * largest).model.size >= 1
    with pytest.raises(ValueError, match="before the first solve"):
        _ = solver.largest_alpha


def test_a_warm_start_and_a_cold_one_meet(threads):
    X, y = random_problem(m=120, d=10, k=3)
    warm = MixedNorm(Products(), X, y, threads, tol=1e-9)
    *_, last = warm.path([0.1, 0.05, 0.02])
    cold = MixedNorm(Products(), X, y, threads, tol=1e-9).solve(0.02)
    assert last.value == pytest.approx(cold.value, abs=1e-8)
    assert last.model.scores(X) == pytest.approx(cold.model.scores(X), abs=1e-3)


def test_a_given_start_at_the_solution_is_recognised(threads):
    X, y = random_problem(m=80, d=6)
    solver = MixedNorm(Columns(), X, y, threads, tol=1e-6, fit_intercept=False)
    point = solver.solve(0.05)
    scaled = point.model.weights / solver.rows.pool.scales(point.model.numbers)[:, None]
    again = MixedNorm(Columns(), X, y, threads, tol=1e-5, fit_intercept=False, max_iter=1)
    again.start(point.model.numbers, scaled)
    assert again.solve(0.05).gap <= 1e-5


@pytest.mark.parametrize("norm", NORMS)
def test_prox_minimises_its_objective(norm):
    rng = np.random.default_rng(3)
    V, t = rng.standard_normal((40, 5)), rng.uniform(0.0, 3.0, (40, 1))
    V[0] = 0.0
    each, prox = NORMS[norm].each, NORMS[norm].prox

    def objective(U):
        return 0.5 * np.sum((U - V) ** 2, axis=1) + t[:, 0] * each(U)

    best = prox(V, t)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(50):
            other = best + size * rng.standard_normal(V.shape)
            assert np.all(objective(best) <= objective(other) + 1e-12)
    dual = NORMS[norm].dual(V - best)
    assert np.all(dual <= t[:, 0] + 1e-12)  # Moreau: the rest lies in the dual ball
    assert np.all(each(best)[NORMS[norm].dual(V) <= t[:, 0]] == 0)


def test_a_refit_is_what_shareboost_would_give_these_atoms(threads):
    X, y = random_problem(m=100, d=7, k=3)
    model = ShareBoostClassifier(3, alpha=1e-3, tol=1e-9).fit(X, y)
    rows = make_rows(Columns(), X, y, threads)
    again = refit(rows, model.path_[3].numbers, 1e-3, tol=1e-9)
    scores = model.predictor_.scores(X)
    assert again.scores(X) == pytest.approx(scores, abs=1e-4)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_the_group_lasso_is_that_of_adelie(threads):
    adelie = pytest.importorskip("adelie")
    X, y = random_problem(m=150, d=8, k=3)
    settings = {"lmda_path_size": 10, "min_ratio": 0.05, "early_exit": False, "tol": 1e-12}
    glm = adelie.glm.multinomial(np.eye(3)[y])
    state = adelie.grpnet(np.asfortranarray(X), glm, progress_bar=False, irls_tol=1e-10, **settings)
    solver = MixedNorm(Columns(None), X, y, threads, norm="l2_l1", loss="log", tol=1e-9)
    for at in (3, 6, 9):
        weights = state.betas[at].toarray().reshape(8, 3)
        F = X @ weights + state.intercepts[at]
        loss = np.mean(np.log(np.exp(F).sum(axis=1)) - F[np.arange(len(y)), y])
        # adelie divides the loss by the number of classes and weighs a group by its size's root
        alpha = 3 * np.sqrt(3) * state.lmdas[at]
        value = loss + alpha * np.linalg.norm(weights, axis=1).sum()
        assert solver.solve(alpha).value == pytest.approx(value, abs=1e-6)
