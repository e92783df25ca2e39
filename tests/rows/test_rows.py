"""Rows: every sum against its definition, for any blocks, threads and weights."""

import numpy as np
import pytest

from laconic.rows.limits import Limits
from problems import make_rows, random_problem

# Several blocks even for small problems, and threads at once.
SMALL = Limits(block_rows=32, serial=0)


def filled(loss="margin", **kwargs):
    X, y = random_problem(m=100, d=4)
    weight = np.random.default_rng(0).random(100)
    rows = make_rows(X, y, loss=loss, weight=weight, limits=SMALL, **kwargs)
    for atom in (2, 0):
        rows.append(atom)
    chosen = X[:, [2, 0]] - np.average(X[:, [2, 0]], axis=0, weights=weight)
    B = np.column_stack([np.ones(100), chosen])
    return rows, B, y, weight / weight.sum()


@pytest.mark.parametrize("loss", ["margin", "log"])
def test_sums_by_their_definitions(loss):
    rows, B, y, w = filled(loss)
    W = np.random.default_rng(1).standard_normal((3, 3))
    value, gradient = rows.evaluate(W)
    F = B @ W + rows.loss.margin
    F[np.arange(100), y] -= rows.loss.margin
    rho = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    losses = np.log(np.exp(F).sum(axis=1)) - (B @ W)[np.arange(100), y]
    assert value == pytest.approx(w @ losses, rel=1e-12)
    residual = w[:, None] * (np.eye(3)[y] - rho)
    np.testing.assert_allclose(rows.residual_of_all_rows(), residual, atol=1e-15)
    np.testing.assert_allclose(gradient, -B.T @ residual, atol=1e-14)
    V = np.random.default_rng(2).standard_normal((3, 3))
    Z = B @ V
    curved = w[:, None] * rho * (Z - (rho * Z).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(rows.curve(V), B.T @ curved, atol=1e-14)
    for c, block in enumerate(rows.hessian_blocks()[0]):
        exact = B.T @ (B * (w * rho[:, c] * (1 - rho[:, c]))[:, None])
        np.testing.assert_allclose(block, exact, atol=1e-14)
    hot = np.eye(3)[y]
    np.testing.assert_allclose(rows.class_sums, B.T @ (w[:, None] * hot), atol=1e-15)


def test_gradient_is_the_slope_of_the_loss():
    rows, *_ = filled()
    W = np.random.default_rng(1).standard_normal((3, 3))
    gradient = rows.evaluate(W)[1]
    for index in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[index] = 1e-6
        slope = (rows.evaluate(W + step)[0] - rows.evaluate(W - step)[0]) / 2e-6
        assert gradient[index] == pytest.approx(slope, abs=1e-9)


def test_threads_change_nothing():
    W = np.random.default_rng(1).standard_normal((3, 3))
    answers = []
    for n_jobs in (1, 2, 3):
        rows, *_ = filled(n_jobs=n_jobs)
        value, gradient = rows.evaluate(W)
        [hessians] = rows.hessian_blocks()
        answers.append((value, gradient, rows.curve(W), hessians, rows.residual_of_all_rows()))
    for other in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], other, strict=True))


def test_reset_keeps_the_shared_beginning_and_forgets_the_rest():
    rows, *_ = filled()
    fresh = filled()[0]
    rows.append(3)
    rows.reset([2, 1])
    fresh.reset([])
    fresh.append(2)
    fresh.append(1)
    W = np.random.default_rng(1).standard_normal((3, 3))
    assert rows.atoms == [2, 1]
    assert rows.evaluate(W)[0] == fresh.evaluate(W)[0]
    np.testing.assert_array_equal(rows.class_sums, fresh.class_sums)


@pytest.mark.parametrize("keep", [True, False])
def test_a_trial_leaves_the_rows_as_they_are(keep):
    rows, *_ = filled()
    W = np.random.default_rng(1).standard_normal((3, 3))
    value, gradient = rows.evaluate(W)
    trial = rows.trial(1, keep=keep)
    start = np.vstack([W, np.zeros((1, 3))]) if keep else np.zeros((1, 3))
    assert trial.evaluate(start)[0] == pytest.approx(value, rel=1e-14)
    trial.evaluate(start + 1.0)
    assert rows.atoms == [2, 0]
    again, gradient_again = rows.evaluate(W)
    assert again == value
    np.testing.assert_array_equal(gradient, gradient_again)


def test_estimated_class_hessians_come_close():
    X, y = random_problem(m=4000, d=3)
    W = np.random.default_rng(0).standard_normal((4, 3))
    found = []
    for few in (10**9, 12, 1):
        rows = make_rows(X, y, limits=SMALL._replace(preconditioner_rows=few))
        rows.reset(range(3))
        rows.evaluate(W)
        found += rows.hessian_blocks()
    exact, some, least = found
    assert np.isfinite(least).all()
    assert np.linalg.norm(some - exact) < 0.1 * np.linalg.norm(exact)
    assert not np.array_equal(some, exact)


def test_span_sums_project_onto_the_columns_in():
    """Σ of squares over the basis = squared length of the projection, by least squares."""
    rows, B, _, w = filled()
    rows.append(2)  # once more: adds nothing new
    X = random_problem(m=100, d=4)[0]
    root = np.sqrt(w)[:, None]
    explained = np.zeros(4)
    for done, products in enumerate(rows.span_sums(0)):
        explained += np.concatenate([s[:, 0] for _, s in products]) ** 2
        part = root * B[:, : min(done, 2) + 1]
        fitted = part @ np.linalg.lstsq(part, root * X, rcond=None)[0]
        np.testing.assert_allclose(explained, np.sum(fitted**2, axis=0), rtol=1e-10)
    assert done == 3
    assert list(rows.span_sums(4)) == []


@pytest.mark.parametrize("intercept", [True, False])
def test_chunks_of_single_precision_change_nothing_but_rounding(intercept):
    X, y = random_problem(m=1500, d=4, dtype=np.float32)
    W = np.random.default_rng(1).standard_normal((4 + intercept, 3))
    answers = []
    for limit in (1, 10**9):
        limits = Limits(block_rows=700, multiplied=limit)
        rows = make_rows(X, y, intercept=intercept, limits=limits)
        rows.reset(range(4))
        answers.append((*rows.evaluate(W), rows.curve(W)))
    for a, b in zip(*answers, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_no_curvature_at_all_is_no_error():
    X, y = random_problem(m=4000, d=2)
    rows = make_rows(X, y)
    rows.append(0)
    rows.evaluate(np.array([[1e6, 0.0, -1e6], [0.0, 0.0, 0.0]]))
    assert not rows.hessian_blocks()[0].any()


@pytest.mark.parametrize("repeated", [False, True])
def test_a_combination_of_columns_adds_nothing(repeated):
    """Whether those in are independent, or an included one is there twice."""
    X, y = random_problem(m=100, d=4)
    X = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1], X[:, 0], X[:, 0] + 1e-3 * X[:, 3]])
    rows = make_rows(X, y)
    for atom in (0, 1, 5) if repeated else (0, 1):
        rows.append(atom)
    found = {}
    for atom in (2, 4, 5, 6):
        rows.append(atom)
        found[atom] = rows.adds_nothing(atom)
        rows.reset((0, 1, 5) if repeated else (0, 1))
    assert found == {2: False, 4: True, 5: True, 6: False}
