"""Bumps: soft balls whose only column is their height."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.model.bumps import Bump
from laconic.numeric.threads import Threads
from laconic.pools import Bumps, Pieces
from pools.test_pieces import rings


def bound(X, weight=None, kind=Bumps, n_jobs=1, **settings):
    settings = {"n_centres": 9, "n_radii": 5, "max_share": 0.8, **settings}
    weight = np.ones(len(X)) if weight is None else weight
    return kind(**settings).bind(X, weight / weight.sum(), Threads(n_jobs))


def explicit(pool, X):
    """The column of every bump from the definition, (n_rows, n_atoms)."""
    out = []
    for number in range(pool.n_atoms):
        centre, radius = pool.extract([number]).centre[0], pool.atom(number).radius
        squared = ((X - centre) ** 2).sum(axis=1)
        out.append(np.maximum(0.0, 1.0 - squared / radius**2))
    return np.column_stack(out)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums_and_squares_of_every_bump_are_those_of_its_column(n_jobs):
    X, _ = rings()
    rng = np.random.default_rng(1)
    weight, residual = rng.random(len(X)), rng.standard_normal((len(X), 3))
    pool = bound(X, weight, n_jobs=n_jobs)
    columns = explicit(pool, X)
    found = np.vstack([sums for _, sums in pool.gradients(residual)])
    np.testing.assert_allclose(found, columns.T @ residual, atol=1e-10)
    norms = np.concatenate([own for _, own in pool.norms(residual)])
    np.testing.assert_allclose(norms, np.abs(columns.T @ residual).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(pool.squares(weight), weight @ columns**2, atol=1e-10)
    np.testing.assert_allclose(pool.columns([4, 0, 31]), columns[:, [4, 0, 31]], atol=1e-12)


def test_float32_rows_have_float32_columns():
    X, _ = rings(dtype=np.float32)
    residual = np.random.default_rng(1).standard_normal((len(X), 3)).astype(np.float32)
    pool = bound(X)
    columns, atoms = explicit(pool, X.astype(np.float64)), range(pool.n_atoms)
    for found in (pool.columns(atoms), pool.extract(atoms).columns(X)):
        assert found.dtype == pool.dtype == np.float32
        np.testing.assert_allclose(found, columns, atol=1e-5)
    sums = np.vstack([own for _, own in pool.gradients(residual)])
    np.testing.assert_allclose(sums, columns.T @ residual, atol=1e-3)


def test_float32_chooses_as_float64():
    X, y = rings(m=400, dtype=np.float32)
    pool = Bumps(n_radii=5, centres=X[:12])
    single, double = (
        ShareBoostClassifier(5, pool=pool, alpha=1e-3).fit(rows, y)
        for rows in (X, X.astype(np.float64))
    )
    assert [a.centre for a in single.atoms_] == [a.centre for a in double.atoms_]
    np.testing.assert_allclose(single.path_.losses, double.path_.losses, rtol=1e-4)


def test_a_bump_is_the_constant_of_a_soft_ball():
    X, _ = rings()
    bumps, pieces = bound(X), bound(X, kind=Pieces, soft=True)
    width = X.shape[1] + 1
    for number in (0, 7, 44):
        constant = pieces.columns([number])[:, width - 1]
        np.testing.assert_allclose(bumps.columns([number])[:, 0], constant, atol=1e-12)


def test_new_rows_get_the_columns_of_training_rows():
    X, _ = rings()
    pool, atoms = bound(X), [7, 3, 8, 44]
    found = pool.extract(atoms).columns(X) * pool.scales(atoms)
    np.testing.assert_allclose(found, pool.columns(atoms), atol=1e-12)
    other = pool.extract(atoms).columns(sparse.csr_matrix(X))
    np.testing.assert_array_equal(other, pool.extract(atoms).columns(X))


def test_atoms_have_records_numbers_and_one_column():
    X, _ = rings()
    pool = bound(X)
    for number in (0, 13, 44):
        atom = pool.atom(number)
        assert isinstance(atom, Bump)
        assert atom.width == pool.width(number) == 1
        assert atom.reads == (0, 1, 2)
        assert pool.index(atom) == number
    with pytest.raises(ValueError, match="not an atom of this pool"):
        pool.index(bound(X, kind=Pieces).atom(3))


def test_moved_rows_have_moved_bumps():
    X, y = rings()
    shift = np.array([3.0, -1.0, 0.5])
    pools = [Bumps(n_radii=4, centres=X[:20] + move) for move in (0.0, shift)]
    here, there = (
        ShareBoostClassifier(6, pool=pool, alpha=1e-3).fit(X + move, y)
        for pool, move in zip(pools, (0.0, shift), strict=True)
    )
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(X + shift), atol=1e-6
    )


def test_a_row_of_weight_two_is_the_row_twice():
    X, y = rings(m=90)
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    settings = {"pool": Bumps(n_radii=4, centres=X[:15]), "alpha": 1e-3}
    heavy = ShareBoostClassifier(5, **settings).fit(X, y, sample_weight=weight)
    twice = ShareBoostClassifier(5, **settings).fit(X[again], y[again])
    np.testing.assert_allclose(heavy.decision_function(X), twice.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_bumps_tell_rings_apart_in_both_boosters(booster):
    X, y = rings(m=400)
    settings = {"price": 0.0} if booster is TotalQBoostClassifier else {"alpha": 1e-4}
    model = booster(30, pool=Bumps(60, 8), **settings).fit(X, y)
    linear = LogisticRegression().fit(X, y)
    assert model.score(X, y) > 0.85 > 0.5 > linear.score(X, y)
    assert model.predictor_.names()[0].startswith("bump of radius")


def test_a_saved_model_of_bumps_answers_alike(tmp_path):
    X, y = rings()
    model = ShareBoostClassifier(6, pool=["columns", Bumps(20, 4)]).fit(X, y)
    model.predictor_.save(tmp_path / "m.laconic")
    loaded = Predictor.load(tmp_path / "m.laconic")
    np.testing.assert_array_equal(loaded.scores(X), model.predictor_.scores(X))


def test_bumps_are_a_step_of_a_pipeline():
    X, y = rings()
    model = make_pipeline(Bumps(30, 4), LogisticRegression(C=100.0, max_iter=1000)).fit(X, y)
    assert model.score(X, y) > 0.85
    assert len(model[0].get_feature_names_out()) == model[0].transform(X).shape[1] == 120


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_centres": 0}, "n_centres must be a whole number"),
        ({"n_radii": 256}, "n_radii must be a whole number"),
        ({"min_share": 0.6, "max_share": 0.5}, "min_share and max_share"),
        ({"centres": [[1.0]]}, "centres must be one or more rows of 3 features"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    X, y = rings()
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(2, pool=Bumps(**settings)).fit(X, y)
