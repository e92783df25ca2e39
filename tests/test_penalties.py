"""Penalties of section 2.1: derivatives, the smooth norms' limits, conjugates."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

from laconic.penalties import L2, PENALTIES, SmoothL1, SmoothLinfL1

RNG = np.random.default_rng(1)
MADE = [L2(0.3, 1.0), SmoothL1(0.3, 2.0), SmoothLinfL1(0.3, 2.0)]


@pytest.fixture
def weights():
    return RNG.standard_normal((4, 3))


@pytest.mark.parametrize("penalty", MADE, ids=lambda p: type(p).__name__)
class TestDerivatives:
    def test_gradient(self, penalty, weights):
        h = 1e-6
        for index in np.ndindex(weights.shape):
            step = np.zeros_like(weights)
            step[index] = h
            slope = (penalty.value(weights + step) - penalty.value(weights - step)) / (2 * h)
            assert penalty.gradient(weights)[index] == pytest.approx(slope, abs=1e-9)

    def test_curve(self, penalty, weights):
        V, h = RNG.standard_normal(weights.shape), 1e-6
        change = penalty.gradient(weights + h * V) - penalty.gradient(weights - h * V)
        np.testing.assert_allclose(penalty.curve(weights, V), change / (2 * h), atol=1e-8)

    def test_curvature_is_the_diagonal(self, penalty, weights):
        for index in np.ndindex(weights.shape):
            unit = np.zeros_like(weights)
            unit[index] = 1.0
            expected = penalty.curve(weights, unit)[index]
            assert penalty.curvature(weights)[index] == pytest.approx(expected, abs=1e-14)

    def test_huge_weights_are_safe(self, penalty):
        W = np.array([[1e150, -1e150], [0.0, 1e100]])
        with np.errstate(
            invalid="raise", over="raise" if not isinstance(penalty, L2) else "ignore"
        ):
            assert not np.isnan(penalty.value(W))
            assert np.isfinite(penalty.gradient(W)).all()

    def test_conjugate_meets_fenchels_equality_at_the_gradient(self, penalty, weights):
        U = penalty.gradient(weights)
        total = penalty.value(weights) + penalty.conjugate(U)
        assert total == pytest.approx(float(np.vdot(U, weights)), abs=1e-10)

    def test_conjugate_is_the_supremum(self, penalty):
        U = 0.05 * RNG.standard_normal((3, 3))
        found = minimize(
            lambda w: penalty.value(w.reshape(3, 3)) - np.vdot(U, w.reshape(3, 3)),
            np.zeros(9),
            jac=lambda w: (penalty.gradient(w.reshape(3, 3)) - U).ravel(),
            method="BFGS",
            options={"gtol": 1e-10},
        )
        assert penalty.conjugate(U) == pytest.approx(-found.fun, abs=1e-9)

    def test_shrink_reaches_the_domain(self, penalty):
        U = 5.0 * RNG.standard_normal((4, 3))
        factor = penalty.shrink(U)
        assert 0 < factor <= 1
        assert np.isfinite(penalty.conjugate(factor * U))
        assert penalty.shrink(factor * U) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("made", "norm"),
    [
        (SmoothL1, lambda W: np.abs(W).sum()),
        (SmoothLinfL1, lambda W: np.abs(W).max(axis=1).sum()),
    ],
    ids=["l1", "linf_l1"],
)
def test_smooth_norms_tend_to_their_norms(made, norm, weights):
    excess = [made(1.0, beta).value(weights) - norm(weights) for beta in (1.0, 10.0, 100.0)]
    terms = weights.size if made is SmoothL1 else len(weights)
    inside = 2 if made is SmoothL1 else 2 * weights.shape[1]
    for beta, e in zip((1.0, 10.0, 100.0), excess, strict=True):
        assert 0 <= e <= terms * np.log(inside) / beta + 1e-12
    assert excess[0] > excess[1] > excess[2]


def test_smooth_linf_l1_is_the_papers_formula(weights):
    beta = 3.0
    W = weights.T  # the paper's W has one row per class
    formula = sum(
        np.log(sum(np.exp(beta * w) + np.exp(-beta * w) for w in W[:, j])) / beta
        for j in range(W.shape[1])
    )
    assert SmoothLinfL1(1.0, beta).value(weights) == pytest.approx(formula, rel=1e-13)


def test_smooth_values_agree_with_cvxpy(weights):
    W = cp.Constant(weights)
    both = cp.hstack([4.0 * W, -4.0 * W])
    value = cp.sum(cp.log_sum_exp(both, axis=1)) / 4.0
    assert SmoothLinfL1(0.7, 4.0).value(weights) == pytest.approx(0.7 * value.value, rel=1e-12)


@pytest.mark.parametrize("name", sorted(PENALTIES))
def test_no_strength_no_penalty(name, weights):
    penalty = PENALTIES[name](0.0, 2.0)
    assert penalty.value(weights) == 0.0
    assert not penalty.gradient(weights).any()
    assert penalty.shrink(weights) == 0.0
    assert penalty.conjugate(np.zeros_like(weights)) == 0.0
