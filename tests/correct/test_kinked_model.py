"""The least point of a quadratic model with kinks."""

import cvxpy as cp
import numpy as np
import pytest

from laconic.correct.kinked_model import KinkedModel, least_shift


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
def test_no_shift_has_a_smaller_l1_norm(n):
    W = np.random.default_rng(n).normal(size=(20, n)) + 1.0
    shifted = least_shift(W)
    np.testing.assert_allclose(np.ptp(shifted - W, axis=1), 0.0, atol=1e-14)
    best = np.abs(W[:, :, None] - W[:, None, :]).sum(axis=1).min(axis=1)  # at one of the weights
    np.testing.assert_allclose(np.abs(shifted).sum(axis=1), best)
    assert least_shift(shifted) is shifted


@pytest.mark.parametrize("whole", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_steps_lead_to_the_least_point(seed, whole):
    """One model after another at the same H: the quadratic with kinks itself is minimised."""
    rng = np.random.default_rng(seed)
    n, kink, free = 15, 0.3, 3
    A = rng.normal(size=(30, n))
    if whole:  # nothing that shifts the three entries of a column is seen
        A = A.reshape(30, 5, 3)
        A = (A - A.mean(axis=2, keepdims=True)).reshape(30, n)
    H, g = A.T @ A / 30, A.T @ rng.normal(size=30) / 5
    x, columns, fallen = np.zeros(n), np.repeat(np.arange(5), 3), 0.0
    for _ in range(20):
        slope = g + H @ x
        moving = (x != 0) | (np.abs(slope) > kink) | (np.arange(n) < free)
        part = np.ix_(moving, moving)
        model = KinkedModel(H[part], slope[moving], x[moving], columns[moving], kink, free, whole)
        new = model.least()
        change, first_order = model.change(new)
        # Sums of 15 products of sums of 15: rounding is at most so much of the sizes of the terms.
        size = np.abs(x)
        size[moving] += np.abs(new)
        terms = size @ np.abs(H) @ size + np.abs(g) @ size + kink * size.sum()
        rounding = n * np.finfo(float).eps * terms
        assert first_order - rounding <= change <= rounding
        x[moving] = new
        fallen += change
    z = cp.Variable(n)
    objective = g @ z + 0.5 * cp.sum_squares(A @ z) / 30 + kink * cp.norm1(z[free:])
    peer = cp.Problem(cp.Minimize(objective))
    peer.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11)
    assert fallen == pytest.approx(peer.value, rel=1e-8)
