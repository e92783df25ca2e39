"""The convex problem of eq. (1): its optimum, gradient, certificate, and the paper's algorithm."""

from copy import deepcopy

import cvxpy
import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from laconic.clumping.margins import Margins
from laconic.clumping.neighbours import nearest_graph, radius_graph
from laconic.clumping.problem import ClumpingProblem
from laconic.clumping.solver import solve
from laconic.clumping.theta import Theta
from laconic.numeric.threads import Threads
from problems import clumping_problem as make

NORMALIZE = ["degree", "pairs"]
SETTINGS = [(n, e, a) for n in NORMALIZE for e in (0.0, 0.5, 0.9) for a in (1e-3, 0.1)]


def optimum(problem):
    """Eq. (1) by CVXPY: w, ξ and the value; features to 1 and F over λ, which is easier on it."""
    rows = problem.rows
    X = np.hstack([rows.X, np.ones((rows.n_rows, int(rows.intercept)))])
    unit = np.abs(X).max()
    root = np.sqrt(problem.alpha) / unit
    w, slack = cvxpy.Variable(X.shape[1]), cvxpy.Variable(rows.n_rows, nonneg=True)
    form = cvxpy.quad_form(slack, cvxpy.psd_wrap(problem.theta.dense()))
    value = cvxpy.sum_squares(w) / 2 + form / (2 * problem.theta.total)
    hinge = 1 - cvxpy.multiply(problem.sign, (X / unit) @ w)
    task = cvxpy.Problem(cvxpy.Minimize(value), [root * slack >= hinge])
    task.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return w.value / unit, root * slack.value, root**2 * task.value


@pytest.mark.parametrize(("normalize", "discount", "alpha"), SETTINGS)
def test_the_optimum_is_that_of_another_solver(normalize, discount, alpha):
    problem = make(discount=discount, normalize=normalize, alpha=alpha)
    found = solve(problem, tol=1e-10)
    w, slack, value = optimum(problem)
    assert found.converged
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.weights == pytest.approx(w, abs=1e-6)
    assert found.slack == pytest.approx(slack, abs=1e-5)


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_weights_and_no_intercept_against_another_solver(normalize):
    weight = np.random.default_rng(5).choice([0.25, 1.0, 3.0], 60)
    problem = make(normalize=normalize, weight=weight, intercept=False)
    found = solve(problem, tol=1e-10)
    w, _, value = optimum(problem)
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.weights == pytest.approx(w, abs=1e-6)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_without_a_discount_it_is_the_squared_hinge_svm(alpha):
    problem = make(m=200, discount=0.0, alpha=alpha)
    found = solve(problem, tol=1e-11)
    svm = LinearSVC(C=1 / (2 * 200 * alpha), tol=1e-10, dual=False, max_iter=10_000)
    svm.fit(problem.rows.X, problem.sign)
    assert found.weights == pytest.approx(np.r_[svm.coef_[0], svm.intercept_], abs=1e-5)
    assert found.slack == pytest.approx(np.maximum(problem.shortfall(found.weights), 0))


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_the_gradient_is_that_of_finite_differences(normalize):
    problem = make(discount=0.7, normalize=normalize)
    rng = np.random.default_rng(3)

    def at(w):
        return problem.point(w, problem.shortfall(w), np.zeros(60), 1e-15)

    for _ in range(3):
        w, p = rng.standard_normal((2, 5))
        slope = (at(w + 1e-6 * p).value - at(w - 1e-6 * p).value) / 2e-6
        assert problem.gradient(at(w)) @ p == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_slack_is_above_the_hinge_exactly_where_neighbours_allow_more(normalize):
    """ξ_i > g_i⁺ where (Mξ)_i > g_i⁺, at no price (α_i = 0); elsewhere ξ_i = g_i⁺."""
    problem = make(m=150, discount=0.9, normalize=normalize, radius=2.0)
    found = solve(problem, tol=1e-12)
    hinge = np.maximum(problem.shortfall(found.weights), 0)
    allowed = problem.theta.spread(found.slack)
    above = found.slack > hinge + 1e-9
    assert 10 < above.sum() < 140
    assert np.array_equal(above, allowed > hinge + 1e-9)
    assert found.slack[above] == pytest.approx(allowed[above], abs=1e-9)
    assert found.slack[~above] == pytest.approx(hinge[~above], abs=1e-9)
    assert (found.price >= 0).all()
    assert found.price[above].max() == 0
    assert problem.alpha * found.weights == pytest.approx(
        problem.rows.sums(problem.sign * found.price), abs=1e-7
    )


@pytest.mark.parametrize("normalize", NORMALIZE)
def test_the_gap_bounds_the_distance_from_the_optimum_at_any_point(normalize):
    problem = make(discount=0.8, normalize=normalize)
    best = solve(problem, tol=1e-12).objective
    rng = np.random.default_rng(4)
    for size in (0.0, 0.1, 1.0, 10.0):
        for tol in (1e-12, 1e-3, 0.1):
            w = size * rng.standard_normal(5)
            at = problem.point(w, problem.shortfall(w), np.zeros(60), tol)
            bound = problem.bound(at, problem.gradient(at))
            assert bound <= best * (1 + 1e-12)
    for tol in (1e-1, 1e-3, 1e-6):
        found = solve(problem, tol=tol)
        assert found.objective - best <= found.gap + 1e-15
        assert found.gap <= tol * found.objective


def test_the_objective_falls_at_every_iteration():
    values = []
    solve(make(m=300, alpha=1e-5), 1e-10, hook=lambda *told: values.append(told[2]))
    assert len(values) > 2
    assert (np.diff(values) <= 1e-12).all()


def test_rows_in_any_storage_give_the_same_answer():
    problem = make(m=200)
    plain = solve(problem, 1e-10).weights
    X = problem.rows.X

    def again(rows, **how):
        posed = ClumpingProblem(rows, problem.sign, problem.theta, problem.alpha)
        return solve(posed, 1e-10, **how).weights

    with Threads(3) as threads:
        assert np.array_equal(again(Margins(X, True, threads)), plain)
    assert again(Margins(sparse.csr_matrix(X), True, Threads(1))) == pytest.approx(plain, abs=1e-6)
    single = Margins(X.astype(np.float32), True, Threads(1))
    assert again(single) == pytest.approx(plain, abs=1e-5)
    by_diagonal = again(Margins(X, True, Threads(1)), factored=1)
    assert by_diagonal == pytest.approx(plain, abs=1e-6)


def test_a_permutation_of_the_rows_changes_nothing():
    problem = make(m=100)
    order = np.random.default_rng(6).permutation(100)
    X = problem.rows.X[order]
    theta = Theta(problem.theta.graph.subset(order), 0.5)
    moved = ClumpingProblem(Margins(X, True, Threads(1)), problem.sign[order], theta, problem.alpha)
    assert solve(moved, 1e-12).weights == pytest.approx(solve(problem, 1e-12).weights, abs=1e-7)


# -- few rows, small λ -----------------------------------------------------------------------------


def pixels(discount, alpha=1e-3, m=25, d=60):
    """Fewer rows than features, all from 0 to 255: λ is 1e-9 of the mean ‖x‖²."""
    rng = np.random.default_rng(7)
    X = np.floor(256 * rng.random((m, d))) * (rng.random((m, d)) < 0.3)
    y = np.where(np.arange(m) % 2, 1, -1)
    theta = Theta(nearest_graph(X, 5), discount)
    return ClumpingProblem(Margins(X, True, Threads(1)), y, theta, alpha)


def gaussian(discount, alpha):
    """As many rows as features, labels at random."""
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((100, 110)), np.where(rng.random(100) < 0.5, 1, -1)
    theta = Theta(nearest_graph(X, 5), discount)
    return ClumpingProblem(Margins(X, True, Threads(1)), y, theta, alpha)


def separable(discount, alpha):
    """Many rows, few features, and a wide margin."""
    rng = np.random.default_rng(9)
    y = np.where(rng.random(200) < 0.5, 1, -1)
    X = rng.standard_normal((200, 8))
    X[:, 0] += 4 * y
    theta = Theta(radius_graph(X, 2.5), discount)
    return ClumpingProblem(Margins(X, True, Threads(1)), y, theta, alpha)


FEW = [(pixels, 1e-3), (gaussian, 1e-5), (separable, 1e-8)]


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("kind", "alpha"), FEW)
def test_few_or_separable_rows_and_a_small_penalty_take_a_path_to_the_gap(kind, alpha, discount):
    problem, penalties = kind(discount, alpha), []
    found = solve(problem, hook=lambda *told: penalties.append(told[1]))
    assert found.converged
    start = int(np.argmax(penalties))
    assert penalties[start] > 10 * alpha
    assert penalties[:start] == [alpha] * start
    assert (np.diff(penalties[start:]) <= 0).all()
    assert penalties[-1] == alpha
    assert penalties[start] < 2 * np.mean(np.sum(problem.rows.X**2, axis=1) + 1)


@pytest.mark.parametrize("discount", [0.0, 0.5])
@pytest.mark.parametrize(("kind", "alpha"), FEW)
def test_the_end_of_the_path_is_the_optimum_of_another_solver(kind, alpha, discount):
    problem = kind(discount, alpha)
    found = solve(problem)
    w, _, value = optimum(problem)
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.weights == pytest.approx(w, abs=1e-6 * np.abs(w).max())


def test_without_a_discount_the_end_of_the_path_is_the_svm():
    problem, penalties = gaussian(0.0, 1e-3), []
    found = solve(problem, hook=lambda *told: penalties.append(told[1]))
    assert max(penalties) > 1e-2
    X = np.hstack([problem.rows.X, np.ones((100, 1))])
    svm = LinearSVC(C=1 / (2 * 100 * 1e-3), tol=1e-11, max_iter=10**5, fit_intercept=False)
    assert found.weights == pytest.approx(svm.fit(X, problem.sign).coef_[0], abs=1e-6)


def test_a_solve_goes_on_from_any_state_on_the_path():
    problem, states = pixels(0.5), []
    straight = solve(problem, hook=lambda *told: states.append(deepcopy(told[0])))
    assert len({state.doublings for state in states}) > 3
    for state in states:
        resumed = solve(problem, state=state)
        assert np.array_equal(resumed.weights, straight.weights)
        assert resumed.iterations == straight.iterations


def test_iterations_on_the_path_count():
    found = solve(pixels(0.5), max_iter=6)
    assert found.iterations == 6
    assert not found.converged
    assert found.gap > 0.1 * found.objective
