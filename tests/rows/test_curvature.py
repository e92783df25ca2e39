"""Rows at even steps of curvature, and the other calls of compiled blocks, against NumPy."""

import numpy as np
import pytest

from laconic.losses import LogLoss
from laconic.losses.quick import quick
from laconic.losses.softmax_kernels import residual_to_rows
from laconic.rows.curvature import Bend, column_grams, even_steps
from laconic.rows.even_steps import ROWS, even_steps_into
from laconic.rows.sums import weighted_by_class


@pytest.mark.parametrize("m", [1, ROWS, 5 * ROWS + 7])
@pytest.mark.parametrize("before", [0.0, 13.25])
@pytest.mark.parametrize("step", [0.5, 3.0, 1000.0])
def test_compiled_steps_are_those_of_numpy(m, before, step):
    rng = np.random.default_rng(m)
    mass = rng.integers(0, 9, (3, m)) / 8.0  # sums are exact
    mass[1] = 0.0
    outputs = np.array([2, 1, 0])
    known = [even_steps(mass[c], before, step) for c in outputs]
    ends = np.cumsum([len(places) for places in known])
    first = np.full(3, np.ceil(before / step - 0.5)).astype(np.int64)
    found = np.full(ends[-1], -1)
    even_steps_into(mass, outputs, np.full(3, before), np.full(3, step), first, ends, found)
    np.testing.assert_array_equal(found, np.concatenate(known))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_estimate_is_a_gram_matrix_of_rows_at_even_steps(dtype, compiled):
    rng = np.random.default_rng(4)
    blocks = [rng.standard_normal((n, 4)).astype(dtype) for n in (900, 1, 1100)]
    bends = [Bend.of(rng.random((3, len(X))).astype(dtype)) for X in blocks]
    takes = [lambda at, X=X: X[at] for X in blocks]
    X, h = np.concatenate(blocks), np.concatenate([bend.rows for bend in bends], axis=1)
    few = 500
    found = column_grams(takes, bends, few, map, compiled=compiled)
    for c in range(3):
        total = h[c].sum(dtype=np.float64)
        at = even_steps(h[c], 0.0, total / few)
        assert len(at) == few
        known = total / few * X[at].T.astype(float) @ X[at]
        np.testing.assert_allclose(found[c], known, rtol=0.02, atol=0.02 * total)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 5])
def test_calls_for_a_block_are_those_of_numpy(dtype, k):
    rng = np.random.default_rng(k)
    m, loss = 700, LogLoss()
    y, weight = rng.integers(0, k, m), rng.random(m).astype(dtype)
    state = rng.random((k, m)).astype(dtype)
    state /= state.sum(axis=0)
    close = {"rtol": 4 * np.finfo(dtype).eps, "atol": np.finfo(dtype).eps}
    np.testing.assert_allclose(
        quick(loss).curvature(weight, state), loss.curvature(weight, state), **close
    )
    rows = np.empty((m, k), dtype=dtype)
    residual_to_rows(y, weight, state, rows)
    np.testing.assert_allclose(rows, loss.residual(y, weight, state).T, **close)
    columns = np.asfortranarray(rng.standard_normal((m, 2)).astype(dtype))
    shift = np.array([0.5, -2.0], dtype=dtype)
    plain, compiled = (
        weighted_by_class(y, columns, shift, weight, k, compiled) for compiled in (False, True)
    )
    np.testing.assert_array_equal(compiled[0], plain[0])
    np.testing.assert_allclose(compiled[1], plain[1], rtol=1e-12)
