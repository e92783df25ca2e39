"""Losses: eq. (2), (3), (6), derivatives by finite differences, stability at any finite score."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from laconic.losses import BINARY_LOSSES, LOSSES, LogLoss, MarginLoss, decide, find_loss
from laconic.losses.binary import LogisticLoss
from laconic.losses.bounds import most_curvature

RNG = np.random.default_rng(0)


def naive(margin, scores, y):
    """ln Σ_q exp(margin·1[q ≠ y] − f_y + f_q), row by row, as the paper writes it."""
    out = []
    for f, label in zip(scores, y, strict=True):
        shift = margin * (np.arange(len(f)) != label)
        out.append(np.log(np.sum(np.exp(shift - f[label] + f))))
    return np.array(out)


def evaluate(loss, scores, y, weight):
    block = np.ascontiguousarray(scores.T)
    state = np.empty_like(block)
    target = loss.targets(y, scores.shape[1])
    value = loss.evaluate(block, target, weight, state)
    return value, target, state


@pytest.fixture(params=[2, 3, 10])
def problem(request):
    k = request.param
    rng = np.random.default_rng(k)  # of its own, so that the order of the tests does not matter
    scores = 3 * rng.standard_normal((40, k))
    return scores, rng.integers(k, size=40), rng.random(40)


@pytest.mark.parametrize("loss", [MarginLoss(), LogLoss()], ids=lambda loss: loss.name)
class TestDerivatives:
    def test_value_is_the_papers_formula(self, loss, problem):
        scores, y, weight = problem
        value, _, _ = evaluate(loss, scores, y, weight)
        assert value == pytest.approx(weight @ naive(loss.margin, scores, y), rel=1e-13)

    def test_residual_is_the_negative_gradient(self, loss, problem):
        scores, y, weight = problem
        _, target, state = evaluate(loss, scores, y, weight)
        residual = loss.residual(target, weight, state)
        h = 1e-6
        for i, q in [(0, 0), (3, 1), (17, 0), (39, 1)]:
            up, down = scores.copy(), scores.copy()
            up[i, q] += h
            down[i, q] -= h
            slope = (evaluate(loss, up, y, weight)[0] - evaluate(loss, down, y, weight)[0]) / (
                2 * h
            )
            assert -residual[q, i] == pytest.approx(slope, abs=1e-8)

    def test_residuals_of_a_row_sum_to_zero(self, loss, problem):
        scores, y, weight = problem
        _, target, state = evaluate(loss, scores, y, weight)
        assert np.abs(loss.residual(target, weight, state).sum(axis=0)).max() < 1e-15

    def test_curve_is_the_derivative_of_the_gradient(self, loss, problem):
        scores, y, weight = problem
        _, target, state = evaluate(loss, scores, y, weight)
        direction = RNG.standard_normal(state.shape)
        h = 1e-6
        moved = [evaluate(loss, scores + s * h * direction.T, y, weight)[2] for s in (1, -1)]
        change = loss.residual(target, weight, moved[1]) - loss.residual(target, weight, moved[0])
        np.testing.assert_allclose(
            loss.curve(weight, state, direction), change / (2 * h), rtol=1e-5, atol=1e-8
        )

    def test_curvature_is_the_diagonal_of_curve(self, loss, problem):
        scores, y, weight = problem
        _, _, state = evaluate(loss, scores, y, weight)
        for q in range(len(state)):
            unit = np.zeros_like(state)
            unit[q] = 1.0
            curved = loss.curve(weight, state, unit)[q]
            np.testing.assert_allclose(loss.curvature(weight, state)[q], curved, atol=1e-15)

    def test_curvature_is_at_most_half_the_centring_matrix(self, loss, problem):
        scores, y, weight = problem
        k = scores.shape[1]
        _, _, state = evaluate(loss, scores, y, np.ones_like(weight))
        bound = 0.5 * (np.eye(k) - np.ones((k, k)) / k)
        for rho in state.T:
            assert np.linalg.eigvalsh(bound - np.diag(rho) + np.outer(rho, rho)).min() > -1e-14

    def test_a_shift_of_all_scores_changes_nothing(self, loss, problem):
        scores, y, weight = problem
        shifted = scores + RNG.standard_normal((len(scores), 1))
        assert loss.shift_invariant
        assert evaluate(loss, shifted, y, weight)[0] == pytest.approx(
            evaluate(loss, scores, y, weight)[0], rel=1e-13
        )

    @pytest.mark.parametrize("size", [1e2, 1e4, 1e100, 1e300])
    def test_any_finite_score_is_safe(self, loss, size):
        scores = size * np.array([[1.0, -1.0, 0.5], [0.0, 0.0, 1.0], [-1.0, -1.0, -1.0]])
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value, target, state = evaluate(loss, scores, np.array([1, 2, 0]), np.ones(3))
            residual = loss.residual(target, np.ones(3), state)
        exact = [
            logsumexp(f + loss.margin * (np.arange(3) != c)) - f[c]
            for f, c in zip(scores, [1, 2, 0], strict=True)
        ]
        assert value == pytest.approx(sum(exact), rel=1e-12)
        assert np.isfinite(residual).all()

    def test_float32_stays_float32(self, loss):
        scores = RNG.standard_normal((3, 50)).astype(np.float32)
        weight = np.full(50, 0.02, dtype=np.float32)
        target = loss.targets(RNG.integers(3, size=50), 3)
        state = np.empty_like(scores)
        loss.evaluate(scores, target, weight, state)
        assert state.dtype == np.float32
        assert loss.residual(target, weight, state).dtype == np.float32
        assert loss.curve(weight, state, scores).dtype == np.float32


def test_margin_loss_bounds_hinge_and_error():
    scores = 4 * RNG.standard_normal((500, 5))
    y = RNG.integers(5, size=500)
    true = scores[np.arange(500), y]
    off = np.arange(5) != y[:, None]
    hinge = (off - true[:, None] + scores).max(axis=1)
    error = scores.argmax(axis=1) != y
    loss = naive(1.0, scores, y)
    assert (error <= hinge + 1e-12).all()
    assert (hinge <= loss + 1e-12).all()


def test_lemma_1_smoothness():
    """ℓ(u + v) ≤ ℓ(u) + ⟨∇ℓ(u), v⟩ + ‖v‖²_∞."""
    loss = MarginLoss()
    for _ in range(200):
        k = int(RNG.integers(2, 8))
        u, v = 3 * RNG.standard_normal((2, 1, k))
        y = RNG.integers(k, size=1)
        value, target, state = evaluate(loss, u, y, np.ones(1))
        gradient = -loss.residual(target, np.ones(1), state)[:, 0]
        bound = value + gradient @ v[0] + np.abs(v).max() ** 2
        assert evaluate(loss, u + v, y, np.ones(1))[0] <= bound + 1e-12


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("k", [2, 3, 6])
def test_probabilities_invert_the_population_optimum(name, k):
    """Scores that minimise the expected loss under p are mapped back to p."""
    loss = LOSSES[name]()
    p = RNG.dirichlet(np.ones(k))

    def expected(f):
        return p @ naive(loss.margin, np.tile(f, (k, 1)), np.arange(k))

    best = minimize(expected, np.zeros(k), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(loss.probabilities(best[None])[0], p, atol=1e-6)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_probabilities_keep_the_ranking_and_sum_to_one(name):
    scores = 5 * RNG.standard_normal((300, 6))
    p = LOSSES[name]().probabilities(scores)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(scores, axis=1))


def test_probabilities_of_huge_scores_are_finite():
    for name in LOSSES:
        p = LOSSES[name]().probabilities(np.array([[1e300, 0.0, -1e300]]))
        np.testing.assert_allclose(p, [[1.0, 0.0, 0.0]])


MARGINS = {
    "exponential": lambda g: np.exp(-g),
    "logistic": lambda g: np.logaddexp(0.0, -g),
    "squared_hinge": lambda g: np.maximum(1.0 - g, 0.0) ** 2,
}


@pytest.mark.parametrize("loss", [L() for L in BINARY_LOSSES.values()], ids=lambda loss: loss.name)
class TestMarginsOfOneScore:
    def test_value_is_its_formula(self, loss):
        scores, y, weight = (
            2 * RNG.standard_normal((40, 1)),
            RNG.integers(2, size=40),
            RNG.random(40),
        )
        value, _, _ = evaluate(loss, scores, y, weight)
        margins = scores[:, 0] * (2 * y - 1)
        assert value == pytest.approx(weight @ MARGINS[loss.name](margins), rel=1e-12)
        assert loss.n_outputs(2) == 1

    def test_derivatives_by_finite_differences(self, loss):
        """Eq. (5): u = −l′; and l″ as a function of u."""
        g, h = np.linspace(-3, 3, 60), 1e-5
        f = MARGINS[loss.name]
        u = loss.at(g)[1]
        np.testing.assert_allclose(u, -(f(g + h) - f(g - h)) / (2 * h), atol=1e-7)
        slope = -(loss.at(g + h)[1] - loss.at(g - h)[1]) / (2 * h)
        np.testing.assert_allclose(loss.bend(u), slope, atol=1e-6)

    def test_residual_and_curvature_weigh_the_rows(self, loss):
        scores, y, weight = RNG.standard_normal((30, 1)), RNG.integers(2, size=30), RNG.random(30)
        _, target, state = evaluate(loss, scores, y, weight)
        sign = 2 * y - 1
        u = loss.at(scores[:, 0] * sign)[1]
        np.testing.assert_allclose(loss.residual(target, weight, state)[0], weight * sign * u)
        z = RNG.standard_normal((1, 30))
        np.testing.assert_allclose(loss.curve(weight, state, z)[0], weight * loss.bend(u) * z[0])

    def test_dual_is_the_conjugate(self, loss):
        """−l*(−u) = min_g {l(g) + u g}."""
        g = np.linspace(-8, 25, 200_001)
        for u in (0.1, 0.5, 0.9):
            least = (MARGINS[loss.name](g) + u * g).min()
            assert loss.dual(u) == pytest.approx(least, abs=1e-6)
        assert loss.dual(0.0) == 0.0

    def test_probabilities_invert_the_population_optimum(self, loss):
        f = np.linspace(-6, 6, 240_001)
        for p in (0.1, 0.5, 0.8):
            values = p * MARGINS[loss.name](f) + (1 - p) * MARGINS[loss.name](-f)
            best = f[np.argmin(values)]
            np.testing.assert_allclose(
                loss.probabilities(np.array([[best]])), [[1 - p, p]], atol=1e-4
            )

    @pytest.mark.parametrize("size", [1e3, 1e150])
    def test_any_finite_score_is_safe(self, loss, size):
        scores = size * np.array([[1.0], [-1.0]])
        with np.errstate(invalid="raise", divide="raise"):
            _, target, state = evaluate(loss, scores, np.array([1, 1]), np.ones(2))
        assert np.isfinite(loss.probabilities(scores)).all()
        if size < 1e100:
            assert np.isfinite(loss.residual(target, np.ones(2), state)).all()

    def test_float32_stays_float32(self, loss):
        scores, weight = np.ones((1, 5), dtype=np.float32), np.ones(5, dtype=np.float32)
        target, state = loss.targets(np.array([0, 1, 1, 0, 1]), 1), np.empty_like(scores)
        loss.evaluate(scores, target, weight, state)
        assert loss.residual(target, weight, state).dtype == np.float32
        assert loss.curve(weight, state, scores).dtype == np.float32

    def test_three_classes_are_refused(self, loss):
        with pytest.raises(ValueError, match="Only binary classification"):
            loss.n_outputs(3)


def test_losses_by_name_or_as_they_are():
    own = LogLoss()
    assert find_loss(own) is own
    assert find_loss("logistic").name == "logistic"
    with pytest.raises(ValueError, match="'hinge'"):
        find_loss("hinge")
    with pytest.raises(TypeError, match="pass an object"):
        find_loss(LogLoss)
    with pytest.raises(TypeError, match="has no 'name'"):
        find_loss(3)


def test_one_score_decides_by_its_sign():
    assert decide(np.array([[0.5], [-0.5], [0.0]])).tolist() == [1, 0, 0]
    assert decide(np.array([[0.5, 0.7], [2.0, 1.0]])).tolist() == [1, 0]


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_no_row_has_more_curvature_than_the_bound(loss):
    loss = find_loss(loss)
    k = loss.n_outputs(2)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 10.0):
        y, scores = rng.integers(0, 2, 5000), size * rng.standard_normal((k, 5000))
        weight, state = np.ones(5000), np.empty((k, 5000))
        loss.evaluate(scores, loss.targets(y, k), weight, state)
        most = loss.curvature(weight, state).sum(axis=0).max()
        assert 0 < most <= most_curvature(loss, state) < np.inf


def test_a_changed_loss_has_no_bound():
    class Mine(LogisticLoss):
        @staticmethod
        def bend(u):
            return 9.0 * u

    assert most_curvature(Mine(), np.zeros((1, 3))) == np.inf
