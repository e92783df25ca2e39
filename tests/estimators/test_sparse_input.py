"""Sparse rows stay sparse from fit to predictor, and give the answers of dense ones."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
)
from laconic.clumping.neighbours import auto_radius, nearest_graph, radius_graph
from laconic.model.atoms import ColumnsMap
from laconic.model.feature_maps import map_scores


def wide_rows(n_rows=300, n_features=40_000, n_values=10, seed=0):
    """Rows of a few values each, and labels that a linear classifier gets wrong here and there."""
    rng = np.random.default_rng(seed)
    filled = rng.choice(n_features, min(n_features, 500), replace=False)
    at = rng.choice(filled, (n_rows, n_values))
    at[:, :3] = rng.choice(filled[:60], (n_rows, 3))  # some columns of many rows
    rows = np.repeat(np.arange(n_rows), n_values)
    X = sparse.csr_matrix(
        (rng.standard_normal(at.size), (rows, at.ravel())), shape=(n_rows, n_features)
    )
    y = np.where(rng.random(n_rows) < 0.2, rng.integers(0, 2, n_rows), at[:, 0] % 2)
    return X, y


def peak_bytes(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def fitted_and_asked(model, X, y, path):
    model.fit(X, y)
    model.predict(X)
    model.predictor_.save(path)
    Predictor.load(path).scores(X)


@pytest.mark.parametrize(
    "model",
    [
        ErrorClumpingClassifier(alpha=0.3, n_jobs=1),
        ErrorClumpingClassifier(alpha=0.3, n_neighbors=100, n_jobs=1),
        HolePunchingClassifier(
            ErrorClumpingClassifier(alpha=0.3), 3, min_rows=3, n_candidates=9, random_state=0
        ),
    ],
    ids=["radius", "nearest", "holes"],
)
def test_memory_is_that_of_the_values_not_of_the_zeros(model, tmp_path):
    X, y = wide_rows()
    fitted_and_asked(model, X[:50], y[:50], tmp_path / "warm")  # kernels and imports
    dense = 8 * X.shape[0] * X.shape[1]
    assert peak_bytes(lambda: fitted_and_asked(model, X, y, tmp_path / "model")) < dense / 4


def test_equal_rows_are_close_at_no_cost():
    """Distances from differences, which many equal rows need, are those of sparse rows, too."""
    X, y = wide_rows(2)
    X = sparse.vstack([X[:1]] * 200 + [X[1:]] * 100, format="csr")
    y = np.arange(300) % 7 == 0

    def fit():
        HolePunchingClassifier(LogisticRegression(), 2, min_rows=1, radius=1.0).fit(X, y)
        nearest_graph(X, 150)

    fit()
    assert peak_bytes(fit) < 2 * X.shape[0] * X.shape[1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_values", [4, 60])
def test_neighbours_are_those_of_dense_rows(dtype, n_values):
    """Of few values a row, which stay sparse, and of many, which are multiplied as dense ones."""
    X = wide_rows(200, 120, n_values)[0].astype(dtype)
    radius = auto_radius(X.toarray())
    assert auto_radius(X) == pytest.approx(radius, rel=1e-12)
    for found, expected in (
        (radius_graph(X, radius), radius_graph(X.toarray(), radius)),
        (radius_graph(X, 0.0), radius_graph(X.toarray(), 0.0)),
        (nearest_graph(X, 7), nearest_graph(X.toarray(), 7)),
    ):
        assert np.array_equal(found.to_sparse().toarray(), expected.to_sparse().toarray())


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_clumping_has_the_weights_of_dense_rows(shift):
    X, y = wide_rows(200, 120, 4)
    X.data += shift
    thin, full = (ErrorClumpingClassifier(alpha=0.1 + shift**2).fit(Z, y) for Z in (X, X.toarray()))
    assert thin.radius_ == pytest.approx(full.radius_, rel=1e-12)
    assert thin.coef_ == pytest.approx(full.coef_, abs=1e-10 * np.abs(full.coef_).max())
    assert np.array_equal(thin.predict(X), full.predict(X.toarray()))
    scores = full.predictor_.scores(X.toarray())
    for make in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        assert full.predictor_.scores(make(X)) == pytest.approx(scores, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_map_with_columns_of_its_own_has_their_scores(make):
    class Squares(ColumnsMap):
        def columns(self, X):
            return np.square(super().columns(X))

    X = np.arange(12.0).reshape(4, 3)
    weights = np.array([[1.0, 0.0], [0.5, -1.0]])
    found = map_scores(Squares(np.array([0, 2])), make(X), weights)
    assert np.array_equal(found, X[:, [0, 2]] ** 2 @ weights)


def test_holes_are_those_of_dense_rows():
    X, y = wide_rows(200, 120, 4)
    model = HolePunchingClassifier(
        ErrorClumpingClassifier(alpha=0.3), 4, min_rows=3, n_candidates=5, random_state=0
    )
    thin, full = (model.fit(Z, y).at(model.n_holes_) for Z in (X, X.toarray()))
    assert thin.n_holes_ == full.n_holes_ > 0
    for one, other in zip(thin.holes_, full.holes_, strict=True):
        assert one.row == other.row
        assert np.array_equal(one.centre, other.centre)
        assert one.radius == pytest.approx(other.radius, rel=1e-12)
    assert np.array_equal(thin.predict(X), full.predict(X.toarray()))
    scores = full.predictor_.scores(X.toarray())
    assert thin.predictor_.scores(X) == pytest.approx(scores, rel=1e-10, abs=1e-10)


def as_twice(X):
    """CSR rows in which every value is stored as two halves."""
    a = sparse.csr_matrix(X)
    halves = np.repeat(a.data / 2, 2), np.repeat(a.indices, 2), a.indptr * 2
    return sparse.csr_matrix(halves, shape=a.shape)


def as_backwards(X):
    """CSR rows whose columns are stored in falling order."""
    a = sparse.csr_matrix(X[:, ::-1])
    return sparse.csr_matrix((a.data, X.shape[1] - 1 - a.indices, a.indptr), shape=a.shape)


def as_long(X):
    """CSR rows with indices of 64 bits."""
    a = sparse.csr_matrix(X)
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    return a


def stored(X):
    return X.data.copy(), X.indices.copy(), X.indptr.copy()


FORMS = [as_twice, as_backwards, as_long]


def models_of_sparse_rows():
    for metric in ("euclidean", "manhattan", "cosine", "l2"):
        yield ErrorClumpingClassifier(metric=metric)
    yield ErrorClumpingClassifier(metric="manhattan", n_neighbors=5)
    yield ErrorClumpingClassifier(discount=0.0)
    yield HolePunchingClassifier(LogisticRegression(), 2, min_rows=3)
    for pool in ("columns", "stumps", "products"):
        yield ShareBoostClassifier(3, pool=pool)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", list(models_of_sparse_rows()), ids=repr)
def test_how_values_are_stored_changes_nothing(form, model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.6)
    y = X[:, 0] > 0
    given = form(X)
    before = stored(given)
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    thin, full = clone(model).fit(given, y), clone(model).fit(X, y)
    for name in ("radius_", "n_holes_"):
        assert getattr(thin, name, 0) == pytest.approx(
            getattr(full, name, 0), rel=1e-12, nan_ok=True
        )
    expected = full.decision_function(X)
    assert thin.decision_function(given) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    scores = full.predictor_.scores(X)
    assert thin.predictor_.scores(given) == pytest.approx(scores, rel=1e-7, abs=1e-7)
    assert all(np.array_equal(a, b) for a, b in zip(stored(given), before, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_graphs_are_those_of_the_values_however_they_are_stored(form, metric):
    X = wide_rows(60, 30, 4)[0].toarray()
    given = form(X)
    before = stored(given)
    radius = auto_radius(X, metric=metric)
    assert auto_radius(given, metric=metric) == pytest.approx(radius, rel=1e-12)
    for found, expected in (
        (radius_graph(given, radius, metric=metric), radius_graph(X, radius, metric=metric)),
        (nearest_graph(given, 5, metric=metric), nearest_graph(X, 5, metric=metric)),
    ):
        assert np.array_equal(found.to_sparse().toarray(), expected.to_sparse().toarray())
    assert all(np.array_equal(a, b) for a, b in zip(stored(given), before, strict=True))
