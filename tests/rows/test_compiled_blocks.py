"""Blocks of many rows, which are compiled, answer as other blocks do."""

import numpy as np
import pytest

from laconic import ShareBoostClassifier
from laconic.losses import LogLoss, MarginLoss
from laconic.losses.quick import QuickSoftmax, quick
from laconic.losses.softmax_kernels import ROWS, residual_to_rows
from laconic.pools import Bumps
from laconic.rows.limits import Limits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [MarginLoss(), LogLoss()])
@pytest.mark.parametrize(("m", "k"), [(1, 2), (ROWS - 1, 3), (ROWS, 3), (2 * ROWS + 5, 11)])
def test_a_quick_loss_is_the_loss(dtype, loss, m, k):
    rng = np.random.default_rng(m)
    scores = (30.0 * rng.standard_normal((k, m))).astype(dtype)
    target, weight = rng.integers(0, k, m), rng.random(m).astype(dtype)
    direction = rng.standard_normal((k, m)).astype(dtype)
    states = np.empty((2, k, m), dtype=dtype)
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-13, "atol": 1e-14}
    found = []
    for one, state in zip((loss, quick(loss)), states, strict=True):
        value = one.evaluate(scores, target, weight, state)
        residual = one.residual(target, weight, state)
        found.append((value, state, residual, one.curve(weight, state, direction)))
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, plain, **close)
        assert np.asarray(compiled).dtype == np.asarray(plain).dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_residual_can_be_written_row_by_row(dtype):
    rng = np.random.default_rng(0)
    state, target = rng.random((3, 700)).astype(dtype), rng.integers(0, 3, 700)
    weight, rows = rng.random(700).astype(dtype), np.empty((700, 3), dtype=dtype)
    residual_to_rows(target, weight, state, rows)
    np.testing.assert_array_equal(rows, quick(LogLoss()).residual(target, weight, state).T)


def test_scores_beyond_the_range_of_exponentials_have_a_finite_loss():
    scores, state = np.array([[1e30], [-1e30], [0.0]], dtype=np.float32), np.empty((3, 1), "f4")
    value = quick(LogLoss()).evaluate(scores, np.array([0]), np.ones(1, np.float32), state)
    assert value == 0.0
    np.testing.assert_array_equal(state[:, 0], [1.0, 0.0, 0.0])


def test_the_loss_of_a_row_is_added_up_without_rounding_errors():
    m = 100_000
    scores, state = np.zeros((2, m)), np.empty((2, m))
    value = quick(LogLoss()).evaluate(scores, np.zeros(m, int), np.full(m, 1.0 / m), state)
    assert value == pytest.approx(np.log(2.0), rel=1e-15)


def test_a_loss_of_the_user_stays_as_it_is():
    class Mine(MarginLoss):
        def curve(self, weight, state, direction):
            return 2.0 * super().curve(weight, state, direction)

    mine = Mine()
    assert quick(mine) is mine
    assert isinstance(quick(MarginLoss()), QuickSoftmax)


def test_blocks_depend_on_rows_and_outputs_alone():
    limits = Limits()
    assert limits.rows_of_block(1_000_000, 3, compiled=False) == 4096
    rows = {n: limits.rows_of_block(n, 10, compiled=True) for n in (5_000, 60_000, 10**6, 10**9)}
    assert rows == {5_000: 1638, 60_000: 3776, 10**6: 31_296, 10**9: 65_536}
    assert limits.rows_of_block(5_000, 2, compiled=True) == 8192
    assert Limits(block_rows=7).rows_of_block(60_000, 10, compiled=True) == 7


@pytest.mark.parametrize("loss", ["margin", "log"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pool", ["columns", "stumps", "bumps", "hinges"])
@pytest.mark.parametrize("cuts", [[0.0], [-1.0, 0.0, 1.0]])
def test_compiled_and_other_blocks_give_the_same_path(loss, dtype, pool, cuts):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 12)).astype(dtype)
    y = np.digitize(X[:, 0] - X[:, 3] + 0.5 * rng.standard_normal(3000), cuts)
    fits = []
    for limit in (1, 1 << 40):
        for n_jobs in (1, 3):
            made = Bumps(centres=X[:20]) if pool == "bumps" else pool
            model = ShareBoostClassifier(6, pool=made, loss=loss, tol=1e-10, n_jobs=n_jobs)
            model._limits = Limits(compiled=limit, loaded=limit, serial=0)
            fits.append(model.fit(X, y))
    compiled, again, plain, _ = fits
    np.testing.assert_array_equal(compiled.atom_coef_, again.atom_coef_)
    assert compiled.atoms_ == plain.atoms_
    close = 1e-3 if dtype == np.float32 else 1e-6
    np.testing.assert_allclose(compiled.atom_coef_, plain.atom_coef_, rtol=close, atol=close)
