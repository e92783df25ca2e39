"""The corrector against second solvers, and its certificate against the truth."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from laconic import ShareBoostClassifier
from laconic.correct import Nesterov, Newton, Orthant, conjugate_gradients
from laconic.correct.objective import Objective
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.penalties import L1, L2, PENALTIES
from problems import make_rows, naive_objective, random_problem

TIGHT = Newton(tol=1e-12)


def all_in(X, y, **kwargs):
    rows = make_rows(X, y, **kwargs)
    for atom in range(rows.pool.n_atoms):
        rows.append(atom)
    return rows


def zeros(rows):
    return np.zeros((rows.n_columns, rows.n_outputs))


def second_solver(X, y, loss, penalty, weight=None, intercept=True):
    """The optimum by SciPy's BFGS on the naive objective."""
    margin = LOSSES[loss].margin
    rows = all_in(X, y, loss=loss, weight=weight, intercept=intercept)
    objective = Objective(rows, penalty)
    shape = zeros(rows).shape

    def both(w):
        value, gradient = objective.evaluate(w.reshape(shape))
        naive = naive_objective(X, y, w.reshape(shape), margin, penalty, weight, intercept)
        assert value == pytest.approx(naive, rel=1e-12)
        return value, gradient.ravel()

    options = {"gtol": 1e-10, "maxiter": 5000}
    return minimize(both, np.zeros(np.prod(shape)), jac=True, method="BFGS", options=options).fun


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("name", sorted(PENALTIES))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_optimum_of_a_second_solver(loss, name, intercept, weighted):
    X, y = random_problem(m=80, d=4)
    weight = np.random.default_rng(5).random(80) if weighted else None
    penalty = PENALTIES[name](0.01, 5.0)
    rows = all_in(X, y, loss=loss, weight=weight, intercept=intercept)
    solution = TIGHT.solve(rows, penalty, zeros(rows))
    best = second_solver(X, y, loss, penalty, weight, intercept)
    assert solution.certificate.converged
    assert solution.value == pytest.approx(best, rel=1e-8)
    assert solution.value >= best - 1e-10


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e-1])
def test_optimum_of_scikit_learn(alpha):
    X, y = random_problem(m=300, d=5, k=4)
    rows = all_in(X, y, loss="log")
    solution = TIGHT.solve(rows, L2(alpha), zeros(rows))
    peer = LogisticRegression(C=1 / (alpha * len(y)), solver="newton-cg", tol=1e-12, max_iter=1000)
    peer.fit(X, y)
    W = np.vstack([peer.intercept_, peer.coef_.T])
    best = naive_objective(X, y, W, 0.0, L2(alpha), centred=False)
    assert solution.value == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("name", ["l2", "linf_l1"])
def test_optimum_of_cvxpy(name):
    X, y = random_problem(m=60, d=3)
    B = np.column_stack([np.ones(60), X])
    W = cp.Variable((4, 3))
    F = B @ W
    hot = np.eye(3)[y]
    loss = cp.sum(cp.log_sum_exp(F + (1 - hot), axis=1) - cp.sum(cp.multiply(hot, F), axis=1)) / 60
    if name == "l2":
        penalty = 0.005 * cp.sum_squares(W[1:])
    else:
        penalty = 0.01 / 5 * cp.sum(cp.log_sum_exp(cp.hstack([5 * W[1:], -5 * W[1:]]), axis=1))
    best = cp.Problem(cp.Minimize(loss + penalty)).solve(solver="CLARABEL")
    rows = all_in(X, y)
    solution = TIGHT.solve(rows, PENALTIES[name](0.01, 5.0), zeros(rows))
    assert solution.value == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("name", sorted(PENALTIES))
def test_nesterovs_method_agrees(name):
    X, y = random_problem(m=80, d=3)
    penalty = PENALTIES[name](0.05, 3.0)
    rows = all_in(X, y)
    reference = Nesterov(gradient_tol=1e-8).solve(rows, penalty, zeros(rows))
    ours = TIGHT.solve(rows, penalty, zeros(rows))
    assert reference.certificate.converged
    assert ours.value == pytest.approx(reference.value, rel=1e-10)
    assert ours.certificate.evaluations < reference.certificate.evaluations


class TestCertificate:
    """gap ≥ Φ(W) − min Φ wherever the solve is broken off."""

    @pytest.mark.parametrize("name", sorted(PENALTIES))
    @pytest.mark.parametrize("loss", sorted(LOSSES))
    @pytest.mark.parametrize("intercept", [True, False])
    def test_gap_bounds_the_excess(self, name, loss, intercept):
        X, y = random_problem(m=100, d=4, seed=2)
        penalty = PENALTIES[name](0.02, 4.0)
        rows = all_in(X, y, loss=loss, intercept=intercept)
        best = TIGHT.solve(rows, penalty, zeros(rows)).value
        start = 0.5 * np.random.default_rng(3).standard_normal(zeros(rows).shape)
        for steps in range(1, 15):
            solution = Newton(tol=1e-15, max_iter=steps).solve(rows, penalty, start)
            assert solution.certificate.gap >= solution.value - best - 1e-13
        assert solution.certificate.gap < 1e-6

    def test_gap_closes_at_the_optimum(self):
        X, y = random_problem()
        rows = all_in(X, y)
        exact = Newton(gradient_tol=1e-11)
        gap = exact.solve(rows, L2(1e-3), zeros(rows)).certificate.gap
        assert 0 <= gap < 1e-12

    def test_without_penalty_it_holds_against_rivals_of_twice_the_norm(self):
        X, y = random_problem()
        rows = all_in(X, y)
        optimum = TIGHT.solve(rows, L2(0.0), zeros(rows))
        rough = Newton(max_iter=3).solve(rows, L2(0.0), zeros(rows))
        size = np.abs(rough.weights).max(axis=1).sum()
        assert np.abs(optimum.weights).max(axis=1).sum() <= 2 * size
        assert rough.certificate.gap >= rough.value - optimum.value
        assert optimum.certificate.gap < 1e-5

    def test_gradient_tolerance_is_met(self):
        X, y = random_problem(m=500)
        rows = all_in(X, y)
        solution = Newton(gradient_tol=1e-9).solve(rows, L2(1e-6), zeros(rows))
        assert solution.certificate.gradient <= 1e-9
        assert np.linalg.norm(Objective(rows, L2(1e-6)).evaluate(solution.weights)[1]) <= 1e-9


class TestSeparableData:
    """The infimum of the loss lies at infinity; the solve must still end."""

    def test_without_penalty_it_ends_with_finite_weights_and_no_loss(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (60, 2))
        y = (X[:, 0] > 0).astype(int)
        rows = all_in(X, y)
        solution = Newton().solve(rows, L2(0.0), zeros(rows))
        assert np.isfinite(solution.weights).all()
        assert solution.loss < 1e-6
        assert solution.certificate.converged

    def test_with_a_small_penalty_it_reaches_the_optimum(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (60, 2))
        y = (X[:, 0] > 0).astype(int)
        rows = all_in(X, y)
        rough = Newton().solve(rows, L2(1e-6), zeros(rows))
        tight = TIGHT.solve(rows, L2(1e-6), zeros(rows))
        assert rough.value == pytest.approx(tight.value, rel=1e-5)


def test_a_target_out_of_reach_ends_a_solve_early():
    X, y = random_problem(seed=6)
    rows = make_rows(X, y)
    rows.reset([0, 1, 2])
    whole = Newton().solve(rows, L2(1e-3), zeros(rows))
    start = Newton().solve(rows, L2(1.0), zeros(rows))
    hopeless = Newton().solve(rows, L2(1e-3), start.weights, 0.5 * whole.value)
    assert hopeless.value > 0.5 * whole.value
    assert hopeless.certificate.products < whole.certificate.products
    assert not hopeless.certificate.converged
    near = Newton().solve(rows, L2(1e-3), zeros(rows), whole.value * (1 + 1e-9))
    assert np.array_equal(near.weights, whole.weights)


def test_warm_start_at_the_optimum_costs_one_step():
    X, y = random_problem()
    rows = all_in(X, y)
    first = Newton().solve(rows, L2(1e-3), zeros(rows))
    again = Newton().solve(rows, L2(1e-3), first.weights)
    assert again.certificate.evaluations <= 2
    assert again.value <= first.value


def test_the_intercept_is_not_penalised():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (200, 2))
    y = (rng.random(200) < 0.9).astype(int)
    rows = all_in(X, y, loss="log")
    W = TIGHT.solve(rows, L2(1e6), zeros(rows)).weights
    share = y.mean()
    assert np.abs(W[1:]).max() < 1e-5
    assert W[0, 1] - W[0, 0] == pytest.approx(np.log(share / (1 - share)), rel=1e-5)


def test_duplicate_columns_share_the_weight():
    X, y = random_problem(d=2)
    twice = np.column_stack([X, X[:, 0]])
    rows = all_in(twice, y)
    W = TIGHT.solve(rows, L2(1e-3), zeros(rows)).weights
    np.testing.assert_allclose(W[1], W[3], atol=1e-7)


def test_float32_reaches_its_own_precision():
    X, y = random_problem(m=5000, d=5, dtype=np.float32)
    single, double = all_in(X, y), all_in(X.astype(np.float64), y)
    a = Newton().solve(single, L2(1e-4), zeros(single))
    b = TIGHT.solve(double, L2(1e-4), zeros(double))
    assert a.certificate.converged
    assert a.value == pytest.approx(b.value, rel=1e-5)


def test_columns_in_very_different_units():
    """The preconditioner must not lose the small columns beside the large ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 6))
    y = np.argmax(2 * X @ rng.standard_normal((6, 3)) + rng.gumbel(size=(200, 3)), axis=1)
    units = 10.0 ** np.array([-6, -3, 0, 3, 6, 0])
    settings = {"max_atoms": 6, "alpha": 0.0, "tol": 1e-9}
    plain = ShareBoostClassifier(scale=None, **settings).fit(X, y)
    mixed = ShareBoostClassifier(scale=None, **settings).fit(X * units, y)
    np.testing.assert_allclose(mixed.path_.losses[-1], plain.path_.losses[-1], rtol=1e-7)
    outlier = X.copy()
    outlier[0, 0] = 1e6
    far = ShareBoostClassifier(**settings).fit(outlier, y)
    near = ShareBoostClassifier(scale=None, **settings).fit(outlier, y)
    np.testing.assert_allclose(far.path_.losses[-1], near.path_.losses[-1], rtol=1e-6)


@pytest.mark.parametrize("name", sorted(PENALTIES))
@pytest.mark.parametrize("power", [20, 60, 200, 400])
@pytest.mark.parametrize("m", [100, 2000])
def test_large_columns_beside_a_weak_penalty(name, power, m):
    """What rounding leaves of sums of large columns is no pull of a penalty that hardly bends."""
    X, y = random_problem(m=m, d=4)
    plain, large = all_in(X, y), all_in(np.ldexp(X, power), y)
    best = TIGHT.solve(plain, L2(0.0), zeros(plain))
    found = Newton(tol=1e-9).solve(large, PENALTIES[name](1e-6, 20.0), zeros(large))
    assert found.certificate.converged
    assert found.loss == pytest.approx(best.loss, rel=1e-6)


def test_balanced_classes_in_float32():
    """Gradients of the intercept that are rounding only: the certificate has nothing to mend."""
    X, _ = random_problem(m=90, d=2, dtype=np.float32)
    rows = all_in(X, np.arange(90) % 3)
    assert Newton().solve(rows, L2(1e-4), zeros(rows)).certificate.gap < 1e-4


def signed_rows(X, y, loss, intercept, weight=None):
    """Rows of one score: the same columns, a loss of the margin."""
    from laconic.numeric.threads import Threads
    from laconic.pools import Columns
    from laconic.rows.rows import rows_in_memory

    weight = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    pool = Columns(None).bind(X, weight, Threads(1))
    rows = rows_in_memory([pool], BINARY_LOSSES[loss](), y, weight, 1, Threads(1), intercept)
    for atom in range(pool.n_atoms):
        rows.append(atom)
    return rows


CONVEX = {
    "exponential": lambda g: cp.exp(-g),
    "logistic": lambda g: cp.logistic(-g),
    "squared_hinge": lambda g: cp.square(cp.pos(1 - g)),
}


@pytest.mark.parametrize("loss", sorted(BINARY_LOSSES))
@pytest.mark.parametrize("intercept", [True, False])
class TestOneScore:
    def problem(self, loss, intercept):
        X, y = random_problem(3, m=90, d=3, k=2)
        X = np.hstack([X, np.random.default_rng(2).uniform(-1, 1, (90, 3))])
        weight = np.random.default_rng(1).random(90)
        return X, y, weight, signed_rows(X, y, loss, intercept, weight)

    def test_orthant_steps_find_the_l1_optimum(self, loss, intercept):
        X, y, weight, rows = self.problem(loss, intercept)
        w, b = cp.Variable(6), cp.Variable() if intercept else 0.0
        margins = cp.multiply(2.0 * y - 1.0, X @ w + b)
        value = cp.sum(cp.multiply(weight / weight.sum(), CONVEX[loss](margins)))
        peer = cp.Problem(cp.Minimize(value + 0.03 * cp.norm1(w)))
        peer.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
        solution = Orthant().solve(rows, L1(0.03), zeros(rows))
        assert solution.value == pytest.approx(peer.value, rel=1e-8)
        small = np.abs(w.value) < 1e-6
        held = solution.weights[int(intercept) :, 0]
        assert np.array_equal(held == 0, small)
        assert small.any()
        assert solution.certificate.converged
        assert solution.certificate.gap <= 1e-8

    @pytest.mark.parametrize("penalty", [L1(0.03), L2(0.1)], ids=["l1", "l2"])
    def test_gap_bounds_the_distance_anywhere(self, loss, intercept, penalty):
        *_, rows = self.problem(loss, intercept)
        solver = Orthant() if isinstance(penalty, L1) else TIGHT
        best = solver.solve(rows, penalty, zeros(rows)).value
        rng = np.random.default_rng(0)
        for size in (0.0, 0.1, 1.0):
            W = size * rng.standard_normal(zeros(rows).shape)
            objective = Objective(rows, penalty)
            value, gradient = objective.evaluate(W)
            certificate = objective.solution(W, value, gradient, 0.0, False).certificate
            assert certificate.gap >= value - best - 1e-12

    def test_only_some_columns_may_move(self, loss, intercept):
        X, y, weight, rows = self.problem(loss, intercept)
        inside = np.ones(rows.n_columns, dtype=bool)
        inside[-3:] = False
        some = Orthant().solve(rows, L1(0.01), zeros(rows), inside=inside)
        assert not some.weights[-3:].any()
        alone = signed_rows(X[:, :3], y, loss, intercept, weight)
        assert some.value == pytest.approx(
            Orthant().solve(alone, L1(0.01), zeros(alone)).value, rel=1e-9
        )
        assert some.certificate.gap < 1e-7


def test_orthant_steps_for_many_classes():
    X, y = random_problem(1, m=120, d=5)
    rows = all_in(X, y, loss="log")
    W, b = cp.Variable((5, 3)), cp.Variable((1, 3))
    scores = X @ W + np.ones((120, 1)) @ b
    value = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(np.eye(3)[y], scores))
    peer = cp.Problem(cp.Minimize(value / 120 + 0.02 * cp.sum(cp.abs(W))))
    peer.solve(solver=cp.CLARABEL)
    solution = Orthant().solve(rows, L1(0.02), zeros(rows))
    assert solution.value == pytest.approx(peer.value, rel=1e-7)
    assert abs(solution.weights[0].sum()) < 1e-9


@pytest.mark.parametrize("seed", [0, 3, 4, 5])
def test_orthant_steps_among_nearly_alike_columns(seed):
    """At a small l1, Newton steps take many weights against their own slopes.

    Two classes of the log loss are the logistic loss of the difference of their weights.
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(150, 3))
    X = (features[:, np.repeat(range(3), 10)] > rng.normal(size=30)).astype(float)
    score = features[:, 0] + features[:, 1] * features[:, 2] + 0.6 * rng.normal(size=150)
    y = (score > 0).astype(int)
    rows = all_in(X, y, loss="log")
    solution = Orthant().solve(rows, L1(1e-6), zeros(rows))
    w, b = cp.Variable(30), cp.Variable()
    value = cp.sum(cp.logistic(-cp.multiply(2.0 * y - 1.0, X @ w + b))) / 150
    peer = cp.Problem(cp.Minimize(value + 1e-6 * cp.norm1(w)))
    peer.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    assert solution.value == pytest.approx(peer.value, rel=1e-8)
    assert solution.certificate.converged
    assert solution.certificate.evaluations < 100


def separable(n_classes, m, d, seed):
    """Columns of questions about points in as many clusters as classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % n_classes
    features = 3.0 * rng.normal(size=(n_classes, 2))[y] + 0.3 * rng.normal(size=(m, 2))
    X = features[:, np.arange(d) % 2] > rng.permutation(features)[:d, np.arange(d) % 2].diagonal()
    return X.astype(float), y


@pytest.mark.parametrize(("n_classes", "d"), [(3, 14), (4, 12), (9, 8)])
def test_orthant_steps_where_classes_are_separable(n_classes, d):
    """A shift of a column's weights changes only their l1 norm, and tails of the loss are long."""
    X, y = separable(n_classes, 90, d, seed=n_classes)
    rows = all_in(X, y, loss="log")
    solution = Orthant().solve(rows, L1(1e-6), zeros(rows))
    assert solution.certificate.converged
    assert solution.certificate.gap <= 1e-9
    assert solution.certificate.evaluations < 150


def test_hessian_of_a_face_is_that_of_the_products():
    X, y = random_problem(2, m=60, d=4)
    rows = all_in(X, y, loss="margin")
    rng = np.random.default_rng(0)
    W = rng.normal(size=zeros(rows).shape)
    rows.evaluate(W)
    face = rng.random(W.shape) < 0.6
    units = np.eye(W.size).reshape(-1, *W.shape)[face.ravel()]
    products = [rows.curve(unit)[face] for unit in units]
    np.testing.assert_allclose(rows.hessian(face), products, atol=1e-14)


def test_a_solve_that_cannot_reach_its_target_is_given_up():
    X, y = random_problem(1, m=120, d=5)
    rows = all_in(X, y, loss="log")
    whole = Orthant().solve(rows, L1(0.02), zeros(rows))
    near = Orthant().solve(rows, L1(0.02), zeros(rows), target=1.01 * whole.value)
    assert near.value == whole.value
    short = Orthant().solve(rows, L1(0.02), zeros(rows), target=0.5 * whole.value)
    assert short.value > 0.5 * whole.value
    assert short.certificate.evaluations < whole.certificate.evaluations
    assert not short.certificate.converged


# -- rounding --------------------------------------------------------------------------------------


def test_conjugate_gradients_need_no_more_products_than_there_are_dimensions():
    """As in exact arithmetic: rounding does not bring back what was eliminated."""
    rng = np.random.default_rng(0)
    bends = np.geomspace(1.0, 1e6, 20)
    turned = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    A = turned * bends @ turned.T
    r = rng.standard_normal((5, 4))
    step, products = conjugate_gradients(
        lambda p: (A @ p.ravel()).reshape(5, 4), lambda r: r.copy(), r, forcing=1e-6
    )
    assert products <= 20
    assert (A @ step.ravel()).reshape(5, 4) == pytest.approx(r, abs=1e-5)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_weights_of_a_column_have_mean_zero_over_the_classes(loss):
    """Where the loss does not see a shift of all classes, and the penalty likes none."""
    X, y = random_problem(seed=1, m=60, d=4, noise=0.1)
    rows = all_in(X, y, loss=loss)
    start = np.random.default_rng(0).standard_normal(zeros(rows).shape)
    solution = Newton().solve(rows, L2(1e-6), start)
    size = np.abs(solution.weights).max()
    assert size > 10
    assert np.abs(solution.weights.mean(axis=1)).max() < 1e-14 * size


@pytest.mark.parametrize(("name", "alpha"), [("l2", 1e-6), ("l1", 1e-4), ("linf_l1", 1e-4)])
def test_a_rough_solve_does_not_depend_on_the_order_of_the_rows(name, alpha):
    """All but separable rows, where the loss is flat: rounding must not decide where it ends."""
    penalty = PENALTIES[name](alpha, 2.0)
    for seed in range(12):
        X, y = random_problem(seed=seed, m=40, d=6, noise=0.0)
        order = np.random.default_rng(0).permutation(40)
        found = []
        for rows in (all_in(X, y, loss="log"), all_in(X[order], y[order], loss="log")):
            found.append(Newton().solve(rows, penalty, zeros(rows)).weights)
        assert found[0] == pytest.approx(found[1], abs=1e-11 * np.abs(found[0]).max())
