"""Ties: what counts as equal, and in which order equal things are taken."""

import numpy as np
from scipy import sparse

from laconic.clumping.ties import Digests, first_lowest, ranks


def test_sums_that_differ_by_rounding_share_a_rank():
    weight = np.array([0.1, 0.2, 0.3, 0.7])
    sums = np.array([weight[:3].sum(), 0.6, weight[::-1][1:].sum(), 1.0, 0.0, 0.6 + 1e-9])
    assert len(set(sums[:3])) > 1
    assert ranks(sums).tolist() == [2, 2, 2, 0, 3, 1]
    assert ranks(np.zeros(3)).tolist() == [0, 0, 0]
    assert ranks(np.zeros(0)).tolist() == []


def test_the_first_of_the_lowest_errors_is_taken_whatever_rounding_made_of_them():
    assert first_lowest([0.4, 0.1 + 0.2, 0.3]) == 1
    assert first_lowest(np.array([0.3, 0.2])) == 1


def test_digests_are_of_the_values_alone():
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 3, (300, 4)).astype(float)
    X[X == 0] *= rng.choice([-1, 1], np.count_nonzero(X == 0))
    values = Digests(X).values
    _, same = np.unique(X + 0.0, axis=0, return_inverse=True)
    assert np.array_equal(values[:, None] == values, same.ravel()[:, None] == same.ravel())
    doubled = sparse.csr_matrix(  # every entry in two halves
        (
            np.repeat(X.ravel() / 2, 2),
            np.repeat(np.tile(np.arange(4), 300), 2),
            np.arange(0, 2401, 8),
        ),
        shape=(300, 4),
    )
    for stored in (sparse.csr_matrix(X), doubled, X.astype(np.float32), np.asfortranarray(X)):
        assert np.array_equal(Digests(stored).values, values)
    order = rng.permutation(300)
    assert np.array_equal(Digests(X[order]).values, values[order])


def test_different_rows_come_in_an_order_of_their_own():
    X = np.random.default_rng(0).standard_normal((400, 3))
    X[300:] = X[:100]
    digests = Digests(X)
    found = digests.different(np.arange(400))
    assert sorted(found) == list(range(300))
    assert [digests[row] for row in found] == sorted(digests[row] for row in found)
    assert digests.different(np.array([350, 50, 7])) in ([350, 7], [7, 350])
    assert Digests(X, 1).different(np.arange(400)) != found
    assert abs(np.corrcoef(np.arange(400), digests.order())[0, 1]) < 0.15
