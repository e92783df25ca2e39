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
def multiplied_some(gemm, X, first, n, Y, start, length, out):
    blas.times_some(gemm, X, first, n, Y, start, length, out)


@compiled
def tall_product(gemm, lines, first, rows, weights, out):
    blas.tall_product(gemm, lines, first, rows, weights, out)


@compiled
def tall_sums(gemm, lines, first, rows, values, out):
    blas.tall_sums(gemm, lines, first, rows, values, out)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_some_lines_and_places(dtype):
    rng = np.random.default_rng(0)
    close = {"rtol": 1e-4 if dtype == np.float32 else 1e-12, "atol": 1e-5}
    gemm = blas.address(np.dtype(dtype))
    X, Y = rng.normal(size=(9, 5)).astype(dtype), rng.normal(size=(5, 20)).astype(dtype)
    out = np.full(3 * 7, np.nan, dtype=dtype)
    multiplied_some(gemm, X, 2, 3, Y, 6, 7, out)
    np.testing.assert_allclose(out.reshape(3, 7), X[2:5] @ Y[:, 6:13], **close)
    lines, weights = rng.normal(size=(8, 30)).astype(dtype), rng.normal(size=(4, 6)).astype(dtype)
    out = np.zeros((4, 30), dtype=dtype)
    tall_product(gemm, lines, 10, 15, weights, out)
    np.testing.assert_allclose(out[:, 10:25], weights @ lines[:6, 10:25], **close)
    assert not out[:, :10].any()
    assert not out[:, 25:].any()
    values, sums = rng.normal(size=(4, 30)).astype(dtype), np.full((4, 6), np.nan, dtype=dtype)
    tall_sums(gemm, lines, 10, 15, values, sums)
    np.testing.assert_allclose(sums, values[:, 10:25] @ lines[:6, 10:25].T, **close)


def test_the_blas_of_scipy_is_used_if_numpy_has_another(monkeypatch):
    monkeypatch.setattr(blas.ctypes, "CDLL", lambda name: object())
    found = blas.address.__wrapped__(np.dtype(np.float64))
    X, Y, out = np.arange(6.0).reshape(3, 2), np.arange(3.0)[:, None], np.empty((2, 1))
    crossed(found, X, Y, 0, 3, out)
    np.testing.assert_array_equal(out, X.T @ Y)
