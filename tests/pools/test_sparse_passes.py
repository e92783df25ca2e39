"""Compiled passes over sparse rows, and those by SciPy, against dense arithmetic."""

import numpy as np
import pytest
from scipy import sparse

from laconic.numeric.threads import Threads
from laconic.pools import scaling, sparse_passes
from laconic.pools.scaling import column_peaks
from laconic.pools.sparse_passes import SparsePasses

N, D, K = 300, 17, 3


@pytest.fixture(params=[0, 1 << 40], ids=["compiled", "scipy"])
def limit(request, monkeypatch):
    monkeypatch.setattr(sparse_passes, "COMPILED", request.param)
    monkeypatch.setattr(scaling, "COMPILED", max(request.param, 4))


def made(dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, (N, D)) * (rng.random((N, D)) < 0.3)
    X[40:90] = 0  # empty rows, and an empty column
    X[:, 6] = 0
    return X.astype(dtype), rng.integers(-8, 9, (N, K)).astype(np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("task", [1, 40])
def test_sums_and_columns_are_those_of_dense_rows(limit, monkeypatch, dtype, make, n_jobs, task):
    monkeypatch.setattr(sparse_passes, "ADDED", (100, 2))  # so that threads share adding up
    X, residual = made(dtype)
    features, factors = np.array([16, 6, 0]), np.array([0.5, 3.0, 0.25])
    with Threads(n_jobs) as threads:
        passes = SparsePasses(make(X), threads, task)
        for given in (residual, residual.astype(np.float32)):
            np.testing.assert_array_equal(passes.sums(given), X.T @ residual)  # integers: exact
        columns = passes.columns(features, factors, dtype)
        np.testing.assert_array_equal(columns, (X[:, features] * factors).astype(dtype))
        assert columns.flags.f_contiguous
        assert columns.dtype == dtype
        np.testing.assert_array_equal(column_peaks(make(X), threads=threads), np.abs(X).max(axis=0))


def test_sums_have_the_same_bits_on_any_number_of_threads(limit):
    rng = np.random.default_rng(5)
    X = sparse.random(2000, 40, 0.2, "csr", np.float32, random_state=5)
    residual = rng.standard_normal((2000, 7))
    found = []
    for n_jobs in (1, 2, 5):
        with Threads(n_jobs) as threads:
            found.append(SparsePasses(X, threads, 100).sums(residual))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0], X.astype(np.float64).T @ residual, rtol=1e-12)


def test_entries_that_are_stored_twice_or_in_disorder_are_added_up(limit):
    X = sparse.csr_matrix(
        (np.array([1.0, -4.0, 2.0, 7.0]), np.array([3, 0, 3, 1]), np.array([0, 3, 4])), (2, 5)
    )
    dense = np.array([[-4.0, 0.0, 0.0, 3.0, 0.0], [0.0, 7.0, 0.0, 0.0, 0.0]])
    passes = SparsePasses(X, Threads(1), 1)
    np.testing.assert_array_equal(passes.sums(np.eye(2)), dense.T)
    np.testing.assert_array_equal(passes.columns(np.arange(5), np.ones(5), float), dense)
    np.testing.assert_array_equal(column_peaks(X), np.abs(dense).max(axis=0))
