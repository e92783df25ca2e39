"""Columns kept as numbers and eight to a byte are the same columns."""

from functools import partial

import numpy as np
import pytest

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.pools.stumps import BoundStumps
from laconic.rows.shard import Shard
from laconic.rows.stores import Packed, Written

N_ROWS = 300


signs = partial(Packed, signs=True)
compiled = partial(Written, multiplied=40_000, compiled=True)


def filled(store, n, seed=0, dtype=np.float64):
    """A store of random binary columns, and the centred matrix it stands for."""
    rng = np.random.default_rng(seed)
    X = (rng.random((N_ROWS, n)) < rng.uniform(0.05, 0.95, n)).astype(dtype)
    X = 2 * X - 1 if store is signs else X
    means = X.mean(axis=0, dtype=np.float64)
    held = store(N_ROWS, np.dtype(dtype))
    for at in range(n):
        held.put(at, X[:, at : at + 1], means[at : at + 1])
    return held, X - means


@pytest.mark.parametrize("store", [Written, compiled, Packed, signs])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 32, 33, 70])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_products_sums_and_parts(store, dtype, n, k):
    held, X = filled(store, n, dtype=dtype)
    rng = np.random.default_rng(1)
    weights, values = rng.normal(size=(k, n)).astype(dtype), rng.normal(size=(k, N_ROWS))
    close = {"rtol": 1e-10, "atol": 1e-10} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    product = held.product(weights)
    assert product.dtype == dtype
    np.testing.assert_allclose(product, weights @ X.T, **close)
    sums = held.sums(values.astype(dtype), n)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, (values @ X).T, **close)
    np.testing.assert_allclose(held.take(slice(None), slice(0, n)), X, **close)
    some = np.array([3, 3, 250, 17])
    np.testing.assert_allclose(held.take(some, slice(n // 2, n)), X[some, n // 2 :], **close)


@pytest.mark.parametrize("make", [ShareBoostClassifier, TotalQBoostClassifier])
def test_a_fit_of_binary_columns_starts_without_any(make):
    X = np.random.default_rng(0).random((200, 3))
    y = (X[:, 1] > 0.4).astype(int)
    model = make(2, pool="stumps", fit_intercept=False).fit(X, y)
    assert 1 in {atom.feature for atom in model.atoms_}


@pytest.mark.parametrize("store", [Written, Packed, signs])
def test_a_column_put_in_the_place_of_another(store):
    held, X = filled(store, 20)
    other, Y = filled(store, 12, seed=5)
    new = other.take(slice(None), slice(4, 6)) > 0
    copy = held.copy(10)
    new = np.where(new, 1.0, -1.0 if store is signs else 0.0)
    held.put(10, new, new.mean(axis=0))
    expected = np.hstack([X[:, :10], Y[:, 4:6]])
    np.testing.assert_allclose(held.take(slice(None), slice(0, 12)), expected, atol=1e-12)
    weights = np.random.default_rng(2).normal(size=(3, 12))
    np.testing.assert_allclose(held.product(weights), weights @ expected.T, atol=1e-12)
    np.testing.assert_allclose(copy.take(slice(None), slice(0, 10)), X[:, :10], atol=1e-12)


@pytest.mark.parametrize("store", [Written, Packed, signs])
@pytest.mark.parametrize("n", [1, 3, 8, 9, 17])
def test_columns_that_were_cut_change_no_bit(store, n):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((N_ROWS, 20)) < 0.4, 1.0, -1.0 if store is signs else 0.0)
    values, cut, fresh = rng.normal(size=(2, N_ROWS)), *(store(N_ROWS, X.dtype) for _ in "ab")
    for at in range(20):
        cut.put(at, X[:, at : at + 1], np.zeros(1))
    cut.cut(n)
    for at in range(n):
        fresh.put(at, X[:, at : at + 1], np.zeros(1))
    assert np.array_equal(cut.sums(values, n), fresh.sums(values, n))


@pytest.mark.parametrize("settings", [{}, {"rule": "projection"}, {"refine": True}], ids=str)
def test_stumps_are_the_same_either_way(monkeypatch, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
    packed = ShareBoostClassifier(12, pool="stumps", tol=1e-10, **settings).fit(X, y)
    monkeypatch.setattr(BoundStumps, "binary", False)
    written = ShareBoostClassifier(12, pool="stumps", tol=1e-10, **settings).fit(X, y)
    assert packed.atoms_ == written.atoms_
    np.testing.assert_allclose(packed.path_.losses, written.path_.losses, rtol=1e-10)
    np.testing.assert_allclose(packed.atom_coef_, written.atom_coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("loss", ["exponential", "log"])
def test_signs_are_the_same_either_way(monkeypatch, loss):
    """Stumps of TotalQBoost take one bit a row, and are the columns that they were as numbers."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    stores = []

    def numbers(self, n_rows):
        return Written(n_rows, self.dtype)

    def store(self, n_rows, make=Shard._store):
        stores.append(make(self, n_rows))
        return stores[-1]

    monkeypatch.setattr(Shard, "_store", store)
    packed = TotalQBoostClassifier(12, loss=loss).fit(X, y)
    assert all(isinstance(store, Packed) for store in stores)
    monkeypatch.setattr(Shard, "_store", numbers)
    written = TotalQBoostClassifier(12, loss=loss).fit(X, y)
    assert packed.atoms_ == written.atoms_
    assert packed.objective_ == pytest.approx(written.objective_, rel=1e-9)
    np.testing.assert_allclose(packed.atom_coef_, written.atom_coef_, rtol=1e-5, atol=1e-8)
