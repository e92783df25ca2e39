"""BLAS inside kernels is the product of NumPy."""

import numpy as np
import pytest

from laconic.numeric import blas
from laconic.numeric.compiled import compiled


@compiled
def crossed(gemm, X, Y, first, last, out):
    blas.cross(gemm, X, Y, first, last, out)


@compiled
def multiplied(gemm, X, n, Y, j, out):
    blas.times(gemm, X, n, Y, j, out)


@compiled
def copied(source, row, target, place):
    blas.copy(source, row, target, place)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_some_rows(dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)).astype(dtype), rng.normal(size=(30, 7)).astype(dtype)
    gemm, close = blas.address(np.dtype(dtype)), {"rtol": 1e-4 if dtype == np.float32 else 1e-12}
    for first, last in ((0, 30), (5, 6), (8, 8)):
        out = np.full((4, 7), np.nan, dtype=dtype)
        crossed(gemm, X, Y, first, last, out)
        np.testing.assert_allclose(out, X[first:last].T @ Y[first:last], **close)
        flat = np.full(28, np.nan, dtype=dtype)
        crossed(gemm, X, Y, first, last, flat)
        np.testing.assert_array_equal(flat, out.ravel())
    weights, out = rng.normal(size=(3, 4, 5)).astype(dtype), np.zeros((30, 5), dtype=dtype)
    multiplied(gemm, X, 20, weights, 2, out)
    np.testing.assert_allclose(out[:20], X[:20] @ weights[2], **close)
    np.testing.assert_array_equal(out[20:], 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_copied(dtype):
    source = np.arange(12).reshape(3, 4).astype(dtype)
    target = np.zeros((2, 4), dtype=dtype)
    copied(source, 2, target, 1)
    np.testing.assert_array_equal(target, [[0, 0, 0, 0], [8, 9, 10, 11]])


def test_the_blas_of_scipy_is_used_if_numpy_has_another(monkeypatch):
    monkeypatch.setattr(blas.ctypes, "CDLL", lambda name: object())
    found = blas.address.__wrapped__(np.dtype(np.float64))
    X, Y, out = np.arange(6.0).reshape(3, 2), np.arange(3.0)[:, None], np.empty((2, 1))
    crossed(found, X, Y, 0, 3, out)
    np.testing.assert_array_equal(out, X.T @ Y)
