"""Exponentials and logarithms inside kernels are those of NumPy."""

import numpy as np
import pytest

from laconic.numeric.compiled import compiled
from laconic.numeric.exponentials import exponential, logarithm


@compiled
def exponentials(values, out):
    for i in range(values.size):
        out[i] = exponential(values[i])


@compiled
def logarithms(values, out):
    for i in range(values.size):
        out[i] = logarithm(values[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_are_right_to_the_last_digit(dtype):
    rng = np.random.default_rng(0)
    lowest = np.log(np.finfo(dtype).tiny)
    values = np.append(lowest * rng.random(10_000), -(10.0 ** -rng.uniform(0, 30, 1000)))
    values = values.astype(dtype)
    out = np.empty_like(values)
    exponentials(values, out)
    exact = np.exp(values.astype(np.longdouble))
    assert np.abs(out - exact).max() <= np.finfo(dtype).eps
    assert (np.abs(out - exact) <= np.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_at_the_ends_of_their_range(dtype):
    values = np.array([0.0, -0.0, -1e30, -np.inf, np.nan], dtype=dtype)
    out = np.empty_like(values)
    exponentials(values, out)
    np.testing.assert_array_equal(out, np.array([1.0, 1.0, 0.0, 0.0, np.nan], dtype=dtype))


def test_logarithms_are_right_to_the_last_digits():
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [1.0 + 10.0 ** -rng.uniform(0, 15, 5000), 2.0 ** rng.uniform(0, 1000, 5000)]
    )
    out = np.empty_like(values)
    logarithms(values, out)
    exact = np.log(values.astype(np.longdouble))
    assert (np.abs(out - exact) <= 3 * np.finfo(float).eps * exact).all()


def test_the_logarithm_of_one_is_zero_and_of_nothing_finite_is_not_finite():
    values, out = np.array([1.0, 2.0, np.nan, np.inf]), np.empty(4)
    logarithms(values, out)
    assert out[0] == 0.0
    assert out[1] == np.log(2.0)
    assert not np.isfinite(out[2:]).any()
