"""Steps with the exact penalty: the minimum of the model, descent, and the same optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from correct.test_correct import TIGHT, all_in, second_solver, zeros
from laconic.correct import Newton
from laconic.correct.loss_model import ENOUGH, LossModel
from laconic.correct.objective import Objective
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.numeric.threads import Threads
from laconic.penalties import L2, PENALTIES, SmoothL1, SmoothLinfL1
from laconic.pools import Columns
from laconic.rows.rows import rows_in_memory
from problems import random_problem

NOT_QUADRATIC = [SmoothL1, SmoothLinfL1]


def hessian_of(rows):
    """The Hessian of the loss from its products with all unit vectors."""
    shape = rows.n_columns, rows.n_outputs
    units = np.eye(rows.n_columns * rows.n_outputs)
    return np.array([rows.curve(unit.reshape(shape)).ravel() for unit in units])


def with_hessian(rows, hessian=hessian_of):
    """Return the rows, changed so that they know their Hessian."""
    rows.cheap_hessian = lambda: lambda: hessian(rows)
    return rows


def binary_rows(X, y, loss, weight=None):
    weight = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    pool = Columns(None).bind(X, weight, Threads(1))
    rows = rows_in_memory([pool], BINARY_LOSSES[loss](), y, weight, 1, Threads(1))
    for atom in range(pool.n_atoms):
        rows.append(atom)
    return rows


def model_at(rows, penalty, W):
    objective = Objective(rows, penalty)
    objective.evaluate(W)
    hessian = hessian_of(rows)
    return LossModel(objective, W, hessian), hessian, objective.loss_gradient


def random_weights(rows, seed=3, size=0.5):
    return size * np.random.default_rng(seed).standard_normal(zeros(rows).shape)


@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("alpha", [1e-4, 0.02, 5.0])
@pytest.mark.parametrize("beta", [2.0, 20.0, 500.0])
def test_the_minimum_of_a_second_solver(made, alpha, beta):
    X, y = random_problem(m=150, d=4)
    rows, penalty = all_in(X, y), made(alpha, beta)
    W = random_weights(rows)
    model, H, G = model_at(rows, penalty, W)

    def naive(d):
        moved = W + d.reshape(W.shape)
        value = G.ravel() @ d + 0.5 * d @ H @ d + penalty.value(moved[1:]) - penalty.value(W[1:])
        slope = (H @ d).reshape(W.shape) + G
        slope[1:] += penalty.gradient(moved[1:])
        return value, slope.ravel()

    options = {"maxiter": 20_000, "gtol": 1e-9, "ftol": 1e-15, "maxfun": 50_000, "maxcor": 30}
    best = minimize(naive, np.zeros(W.size), jac=True, method="L-BFGS-B", options=options).fun
    d = model.least()
    change, first = model.change(d)
    assert change == pytest.approx(naive(d.ravel())[0], abs=1e-14)
    # The preconditioner is exact only if the curvature of the penalty is diagonal.
    assert change == pytest.approx(best, rel=ENOUGH if penalty.diagonal else 10 * ENOUGH)
    assert first <= change < 0


@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_steps_lead_down_at_most_as_steep_as_promised(made, loss):
    X, y = random_problem(m=100, d=4)
    rows, penalty = all_in(X, y, loss=loss), made(0.02, 20.0)
    for seed in range(5):
        W = random_weights(rows, seed, 2.0)
        model, _, _ = model_at(rows, penalty, W)
        d = model.least()
        _, first = model.change(d)
        slope = float(np.vdot(Objective(rows, penalty).evaluate(W)[1], d))
        assert slope <= first + 1e-14 < 0


def test_without_a_penalty_the_step_is_newtons():
    X, y = random_problem(m=150, d=4)
    rows = all_in(X, y)
    W = random_weights(rows)
    model, H, G = model_at(rows, SmoothL1(0.0, 20.0), W)
    d = model.least()
    newton = -np.linalg.pinv(H) @ G.ravel()
    assert model.change(d)[0] == pytest.approx(0.5 * G.ravel() @ newton, rel=1e-9)
    np.testing.assert_allclose(d.ravel(), newton, rtol=1e-5)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_optimum_of_a_second_solver(loss, made, intercept, weighted):
    X, y = random_problem(m=80, d=4)
    weight = np.random.default_rng(5).random(80) if weighted else None
    penalty = made(0.01, 5.0)
    rows = with_hessian(all_in(X, y, loss=loss, weight=weight, intercept=intercept))
    solution = TIGHT.solve(rows, penalty, zeros(rows))
    best = second_solver(X, y, loss, penalty, weight, intercept)
    assert solution.certificate.converged
    assert solution.certificate.products == 0
    assert solution.value == pytest.approx(best, rel=1e-8)
    assert solution.value >= best - 1e-10


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1e-5, 1e-3, 0.1, 1e3, 1e9])
@pytest.mark.parametrize("beta", [1.0, 20.0, 1e4])
@pytest.mark.parametrize("made", NOT_QUADRATIC)
def test_the_optimum_of_newton_without_a_hessian(made, alpha, beta):
    X, y = random_problem(m=200, d=6)
    plain, known = all_in(X, y), with_hessian(all_in(X, y))
    penalty = made(alpha, beta)
    ours = Newton(tol=1e-9).solve(known, penalty, zeros(known))
    other = Newton(tol=1e-11, max_iter=1000).solve(plain, penalty, zeros(plain))
    assert ours.certificate.converged
    assert ours.value <= other.value + 1e-8 * max(abs(other.value), 1e-3)
    assert ours.certificate.evaluations <= min(other.certificate.evaluations, 15) + 1


@pytest.mark.parametrize("loss", sorted(BINARY_LOSSES))
@pytest.mark.parametrize("made", NOT_QUADRATIC)
def test_losses_of_the_margin(loss, made):
    X, y = random_problem(m=200, d=5, k=2)
    weight = np.random.default_rng(5).random(200)
    plain, known = binary_rows(X, y, loss, weight), with_hessian(binary_rows(X, y, loss, weight))
    penalty = made(1e-2, 20.0)
    ours = TIGHT.solve(known, penalty, zeros(known))
    other = TIGHT.solve(plain, penalty, zeros(plain))
    assert ours.certificate.converged
    assert ours.value == pytest.approx(other.value, rel=1e-9)


@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("intercept", [True, False])
def test_gap_bounds_the_excess_wherever_a_solve_ends(made, intercept):
    X, y = random_problem(m=100, d=4, seed=2)
    rows, penalty = with_hessian(all_in(X, y, intercept=intercept)), made(0.02, 20.0)
    best = TIGHT.solve(rows, penalty, zeros(rows)).value
    start = random_weights(rows)
    for steps in range(1, 8):
        solution = Newton(tol=1e-15, max_iter=steps).solve(rows, penalty, start)
        assert solution.certificate.gap >= solution.value - best - 1e-13
    assert solution.certificate.gap < 1e-6


def test_gradient_tolerance_is_met():
    X, y = random_problem(m=500)
    rows = with_hessian(all_in(X, y))
    solution = Newton(gradient_tol=1e-9).solve(rows, SmoothL1(1e-3, 20.0), zeros(rows))
    assert solution.certificate.gradient <= 1e-9


@pytest.mark.parametrize("made", NOT_QUADRATIC)
def test_a_hessian_from_half_of_the_rows_leads_to_the_same_optimum(made):
    X, y = random_problem(m=400, d=4)
    half = all_in(X[::2], y[::2])
    rows, penalty = all_in(X, y), made(0.01, 20.0)
    best = TIGHT.solve(rows, penalty, zeros(rows)).value
    evaluate = rows.evaluate

    def both(W):
        half.evaluate(W)
        return evaluate(W)

    rows.evaluate = both
    with_hessian(rows, lambda _: hessian_of(half))
    solution = TIGHT.solve(rows, penalty, zeros(rows))
    assert solution.certificate.converged
    assert solution.value == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1e-6])
def test_separable_data_end_with_finite_weights(alpha):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    y = (X[:, 0] > 0).astype(int)
    rows = with_hessian(all_in(X, y))
    solution = Newton().solve(rows, SmoothL1(alpha, 20.0), zeros(rows))
    assert np.isfinite(solution.weights).all()
    assert solution.certificate.converged
    assert solution.loss < 1e-3


@pytest.mark.parametrize("made", NOT_QUADRATIC)
def test_columns_that_are_alike_or_in_other_units(made):
    X, y = random_problem(m=300, d=3)
    twice = np.column_stack([X, X[:, 0], np.zeros(300)])
    rows, other = with_hessian(all_in(twice, y)), all_in(twice, y)
    value = TIGHT.solve(rows, made(1e-2, 20.0), zeros(rows)).value
    assert value == pytest.approx(TIGHT.solve(other, made(1e-2, 20.0), zeros(other)).value)
    plain = with_hessian(all_in(X, y))
    units = with_hessian(all_in(X * 10.0 ** np.array([-8, 0, 8]), y))
    best = TIGHT.solve(plain, SmoothL1(0.0, 20.0), zeros(plain))
    found = Newton(tol=1e-9).solve(units, made(0.0, 20.0), zeros(units))
    assert found.value == pytest.approx(best.value, rel=1e-7)


@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("power", [20, 60, 200, 400])
def test_large_columns_beside_a_weak_penalty(made, power):
    X, y = random_problem(m=100, d=4)
    plain, large = all_in(X, y), with_hessian(all_in(np.ldexp(X, power), y))
    best = TIGHT.solve(plain, L2(0.0), zeros(plain))
    found = Newton(tol=1e-9).solve(large, made(1e-6, 20.0), zeros(large))
    assert found.certificate.converged
    assert found.loss == pytest.approx(best.loss, rel=1e-6)


@pytest.mark.parametrize("made", NOT_QUADRATIC)
@pytest.mark.parametrize("alpha", [1e-7, 1e-5, 1e-3, 1e-1])
def test_float32_reaches_its_own_precision(made, alpha):
    X, y = random_problem(m=5000, d=5, dtype=np.float32)
    single = with_hessian(all_in(X, y), lambda rows: hessian_of(rows).astype(np.float32))
    double = all_in(X.astype(np.float64), y)
    a = Newton().solve(single, made(alpha, 20.0), zeros(single))
    b = Newton(tol=1e-10, max_iter=1000).solve(double, made(alpha, 20.0), zeros(double))
    assert a.certificate.converged
    assert a.value == pytest.approx(b.value, rel=2e-5)


@pytest.mark.parametrize("alpha", [1e-5, 1e-3])
@pytest.mark.parametrize("made", NOT_QUADRATIC)
def test_a_new_column_takes_few_evaluations(made, alpha):
    X, y = random_problem(m=2000, d=12, k=5, noise=3.0)
    penalty, before, after = made(alpha, 20.0), 0, 0
    plain, known = all_in(X, y), with_hessian(all_in(X, y))
    start, n = None, plain.n_columns
    for atoms in range(6, 13):
        for rows in (plain, known):
            rows.reset(list(range(atoms)))
        start = plain.padded(start)
        before += Newton().solve(plain, penalty, start).certificate.evaluations
        solution = Newton().solve(known, penalty, start)
        start, after = solution.weights, after + solution.certificate.evaluations
    assert known.n_columns == n
    assert after <= 5 * 7
    assert after < before


@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 10.0])
def test_a_centred_penalty_keeps_weights_centred(alpha):
    penalty = L2(alpha)
    penalty.quadratic = False  # nobody told Newton
    X, y = random_problem(m=200, d=5)
    plain, known = all_in(X, y), with_hessian(all_in(X, y))
    ours = TIGHT.solve(known, penalty, zeros(known))
    assert ours.certificate.products == 0
    assert ours.value == pytest.approx(TIGHT.solve(plain, penalty, zeros(plain)).value, rel=1e-10)
    np.testing.assert_allclose(ours.weights.mean(axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_hessian_that_overflows_ends_the_solve_where_it_is(broken):
    X, y = random_problem()
    rows = with_hessian(all_in(X, y), lambda rows: broken * hessian_of(rows))
    with np.errstate(invalid="ignore"):
        solution = Newton().solve(rows, SmoothL1(1e-3, 20.0), zeros(rows))
    assert not solution.weights.any()
    assert not solution.certificate.converged


@pytest.mark.parametrize("name", sorted(PENALTIES))
def test_a_quadratic_penalty_takes_the_steps_that_it_always_took(name):
    X, y = random_problem()
    plain, known = all_in(X, y), with_hessian(all_in(X, y))
    penalty = PENALTIES[name](1e-3, 20.0)
    same = np.array_equal(
        Newton().solve(plain, penalty, zeros(plain)).weights,
        Newton().solve(known, penalty, zeros(known)).weights,
    )
    assert same == penalty.quadratic == (name == "l2")
