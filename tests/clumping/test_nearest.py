"""The nearest rows, where rows have weights and may be equally far."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from laconic.clumping.graph import GraphLimits
from laconic.clumping.neighbours import nearest_graph


def by_the_definition(X, n, weight, metric="euclidean"):
    """Every row's neighbours are the rows within the distance of its n-th nearest copy."""
    distance = cdist(X, X, metric)
    near = np.zeros(distance.shape, dtype=bool)
    for i in range(len(X)):
        copies = np.repeat(distance[i], np.where(np.arange(len(X)) == i, weight - 1, weight))
        reach = np.sort(copies)[min(n, len(copies)) - 1]
        near[i] = distance[i] <= reach * (1 + 1e-9)
    near |= near.T
    np.fill_diagonal(near, False)
    return near


@pytest.mark.parametrize("together", [GraphLimits().listed, 100])
@pytest.mark.parametrize("kind", ["continuous", "lattice", "equal", "wide"])
@pytest.mark.parametrize("n", [1, 4, 30])
def test_they_are_those_of_the_definition(kind, n, together):
    limits = GraphLimits(listed=together)
    rng = np.random.default_rng(n)
    X = rng.standard_normal((40, 20 if kind == "wide" else 2))
    if kind == "lattice":
        X = 0.1 * rng.integers(0, 5, (40, 2))
    if kind == "equal":
        X = X[rng.integers(0, 5, 40)]
    for weight in (np.ones(40, dtype=int), rng.integers(1, 4, 40), np.full(40, 50)):
        expected = by_the_definition(X, n, weight)
        for rows in (X, sparse.csr_matrix(X)):
            found = nearest_graph(rows, n, weight.astype(float), limits=limits)
            assert np.array_equal(found.to_sparse().toarray(), expected)
    expected = by_the_definition(X, n, np.ones(40, dtype=int), "cityblock")
    found = nearest_graph(X, n, metric="cityblock", limits=limits)
    assert np.array_equal(found.to_sparse().toarray(), expected)


def test_rows_far_from_the_origin_keep_their_neighbours():
    """Of 20 columns: distances come from inner products, which lose all digits there."""
    X = np.round(np.random.default_rng(0).standard_normal((80, 20)), 3)
    near = nearest_graph(X, 3).to_sparse().toarray()
    assert np.array_equal(nearest_graph(X + 1e7, 3).to_sparse().toarray(), near)


def test_weights_below_one_count_as_one():
    X = np.random.default_rng(0).standard_normal((40, 3))
    part = nearest_graph(X, 4, np.full(40, 0.2)).to_sparse()
    assert (part != nearest_graph(X, 4).to_sparse()).nnz == 0


def test_rows_without_ties_are_listed_once(monkeypatch):
    asked, plain = [], NearestNeighbors.kneighbors

    def kneighbors(self, X, n_neighbors):
        asked.append(len(X))
        return plain(self, X, n_neighbors)

    monkeypatch.setattr(NearestNeighbors, "kneighbors", kneighbors)
    for n_features in (2, 20):
        nearest_graph(np.random.default_rng(0).standard_normal((80, n_features)), 30)
    assert asked == [80, 80]
