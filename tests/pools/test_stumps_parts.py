"""Stumps over parts of the rows: the atoms, columns and sums of one part."""

import numpy as np
import pytest
from scipy import sparse

from laconic import ShareBoostClassifier
from laconic.numeric.threads import Threads
from laconic.pools import Stumps, bind_parts, quantiles
from laconic.pools.parts import Place
from laconic.pools.stump_limits import StumpLimits
from laconic.rows.limits import Limits


class SmallStumps(Stumps):
    """Cuts of a few rows, and few codes that are written down."""

    _limits = StumpLimits(sample=25, narrow=6)


def atoms(pool):
    return [pool.atom(i) for i in range(pool.n_atoms)]


def bound_parts(pool, X, weight, cuts):
    parts = Limits(cuts=tuple(cuts)).parts(X, weight)
    return bind_parts(pool, parts, Threads(1))


def random_table(rng):
    """A few features of few or many values, some missing, some constant or absent in places."""
    m, d = int(rng.integers(2, 90)), int(rng.integers(1, 5))
    X = rng.standard_normal((m, d))
    for f in range(d):
        if rng.random() < 0.5:
            X[:, f] = rng.integers(0, rng.integers(1, 12), m)
        if rng.random() < 0.5:
            X[rng.random(m) < rng.choice([0.1, 0.7, 1.0]), f] = np.nan
        low, high = np.sort(rng.integers(0, m + 1, 2))
        if rng.random() < 0.3:
            X[low:high, f] = rng.choice([np.nan, 1.0])
    weight = np.full(m, 1.0) if rng.random() < 0.3 else rng.random(m) + 0.1
    cuts = np.unique(rng.integers(1, m, rng.integers(1, 7))).tolist()
    return X, weight / weight.sum(), cuts


@pytest.mark.parametrize("seed", range(50))
def test_atoms_and_sums_are_those_of_one_part(seed):
    """Of samples too, which are drawn by the number of the row among all rows."""
    rng = np.random.default_rng(seed)
    X, weight, cuts = random_table(rng)
    categorical = np.flatnonzero(rng.random(X.shape[1]) < 0.3)
    residual = rng.standard_normal((len(X), 3))
    for bins in (None, 4, 9):
        pool = SmallStumps(bins, categorical)
        one = pool.bind(X, weight, Threads(1))
        parts = bound_parts(pool, X, weight, cuts)
        assert all(atoms(part) == atoms(one) for part in parts)
        columns = np.vstack([part.columns(range(one.n_atoms)) for part in parts])
        np.testing.assert_array_equal(columns, one.columns(range(one.n_atoms)))
        sums = np.zeros((one.n_atoms, 3))
        for rows, part in zip(np.split(residual, cuts), parts, strict=True):
            for first, block in part.gradients(rows):
                sums[first : first + len(block)] += block
        np.testing.assert_allclose(sums, columns.T @ residual, atol=1e-12)


def test_a_survey_is_short_in_a_log():
    X, weight, _ = random_table(np.random.default_rng(0))
    survey = Stumps().survey(X, weight, Place(0, len(X)), Threads(1))
    assert len(repr(survey)) < 60 * X.shape[1]


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_parts(form):
    X = np.random.default_rng(0).standard_normal((80, 4))
    X[np.abs(X) < 0.5] = 0.0
    X[30:, 2], X[::7, 1] = 0.0, np.nan
    weight = np.full(80, 1 / 80)
    one = SmallStumps(6).bind(X, weight, Threads(1))
    parts = bound_parts(SmallStumps(6), sparse.csr_matrix(X).asformat(form), weight, [1, 30])
    assert all(atoms(part) == atoms(one) for part in parts)


class ShortStumps(Stumps):
    """Summaries of more than 40 values, in about 16 points."""

    _limits = StumpLimits(listed=40, points=16)


@pytest.mark.parametrize("cuts", [(300,), (1, 30, 31, 400)])
def test_without_bins_a_long_feature_is_asked_about_at_the_points_of_a_summary(cuts):
    rng = np.random.default_rng(2)
    m = 500
    X = np.column_stack([
        rng.standard_normal(m),
        np.where(rng.random(m) < 0.3, 0.5, rng.random(m)),  # one value is heavy
        rng.integers(0, 40, m),
        np.where(rng.random(m) < 0.2, np.nan, np.sort(rng.random(m))),  # parts do not overlap
    ])  # fmt: skip
    X[:30, 1] = np.nan
    weight = rng.random(m) + 0.5
    weight /= weight.sum()
    pool = ShortStumps(None, [2])
    one, parts = pool.bind(X, weight, Threads(1)), bound_parts(pool, X, weight, cuts)
    assert all(atoms(part) == atoms(parts[0]) for part in parts)
    found = atoms(parts[0])
    assert [a for a in found if a.feature == 2] == [a for a in atoms(one) if a.feature == 2]
    for feature in (0, 1, 3):
        column = X[:, feature]
        at = np.array([a.value for a in found if a.feature == feature and a.kind == "le"])
        assert 10 < len(at) <= 40
        present = ~np.isnan(column)
        code = np.searchsorted(at, column[present])
        share = np.bincount(code, weight[present]) / weight[present].sum()
        alone = np.array([len(set(column[present][code == c])) == 1 for c in range(len(share))])
        assert np.all(alone | (share < 4 / 16))
    assert sum(a.kind == "missing" for a in found) == 2
    columns = np.vstack([part.columns(range(len(found))) for part in parts])
    np.testing.assert_array_equal(columns, parts[0].extract(range(len(found))).columns(X))


@pytest.mark.parametrize("bins", [32, None])
def test_a_feature_too_long_to_list(bins):
    """Two parts of more than 65,536 distinct values each: cuts from summaries."""
    m = 140_000
    assert m / 2 > quantiles.LISTED
    rng = np.random.default_rng(1)
    X = np.column_stack([np.exp(rng.standard_normal(m)), rng.random(m) ** 3])
    X = X.astype(np.float32).astype(np.float64)
    score = np.sin(3 * X[:, 0]) + 4 * np.abs(X[:, 1] - 0.4) + rng.logistic(size=m)
    y = (score > 1.3).astype(int)
    weight = np.full(m, 1 / m)
    pool = Stumps(bins)
    one = pool.bind(X, weight, Threads(1))
    parts = bound_parts(pool, X, weight, [70_000])
    assert atoms(parts[0]) == atoms(parts[1])
    assert atoms(parts[0]) != atoms(one)  # summaries were made
    shares = parts[0].squares(weight[:70_000]) + parts[1].squares(weight[70_000:])
    if bins is None:  # every rank has one nearby
        for feature in (0, 1):
            ranks = shares[parts[0].matching(feature)]
            assert np.diff(ranks, prepend=0.0, append=1.0).max() < 1e-3
    else:
        np.testing.assert_allclose(shares, one.squares(weight), atol=1e-3)
    fits = []
    for cuts in ((), (70_000,)):
        model = ShareBoostClassifier(4, pool=pool, n_jobs=1)
        model._limits = Limits(cuts=cuts)
        fits.append(model.fit(X, y).path_[4].loss)
    assert fits[1] == pytest.approx(fits[0], rel=0.01)
