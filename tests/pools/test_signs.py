"""Columns of -1 and 1 made of those of 0 and 1."""

import numpy as np
import pytest

from laconic.numeric.threads import Threads
from laconic.pools import Columns, Stumps
from laconic.pools.signs import Signs


@pytest.fixture
def bound():
    X = np.random.default_rng(0).normal(size=(50, 3))
    weight = np.full(50, 0.02)
    return Stumps(bins=8).bind(X, weight, Threads(1)), X, weight


def test_columns_are_two_of_the_other_less_one(bound):
    pool, X, _ = bound
    signs = Signs(pool)
    atoms = [0, 3, pool.n_atoms - 1]
    np.testing.assert_array_equal(signs.columns(atoms), 2 * pool.columns(atoms) - 1)
    assert set(np.unique(signs.columns(atoms))) == {-1.0, 1.0}
    made = signs.extract(atoms).columns(X) * signs.scales(atoms) - signs.shifts(atoms)
    np.testing.assert_array_equal(made, signs.columns(atoms))
    assert signs.atom(3) == pool.atom(3)
    assert signs.index(signs.atom(3)) == 3


def test_sums_are_those_of_the_columns(bound):
    pool, _, weight = bound
    signs = Signs(pool)
    residual = np.random.default_rng(1).normal(size=(50, 2))
    every = signs.columns(range(signs.n_atoms))
    sums = np.vstack([block for _, block in signs.gradients(residual)])
    np.testing.assert_allclose(sums, every.T @ residual, atol=1e-12)
    np.testing.assert_allclose(signs.squares(weight), weight @ every**2)
    best = signs.best(residual)
    assert best.index == np.argmax(np.abs(every.T @ residual).sum(axis=1))


def test_other_columns_are_refused():
    pool = Columns().bind(np.ones((3, 1)), np.ones(3) / 3, Threads(1))
    with pytest.raises(TypeError, match="zeros and ones"):
        Signs(pool)
