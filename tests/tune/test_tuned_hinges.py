"""Hinges as functions of their directions and knots, and tuned fits of them."""

import numpy as np
import pytest
from scipy import sparse

from laconic import ShareBoostClassifier
from laconic.model.hinges import HingeAtom, HingesMap
from laconic.pools import Hinges
from laconic.tune import Tuning
from laconic.tune.batches import Batches
from laconic.tune.hinges import HingeKind, TunedHinges, moments


def some_hinges():
    return HingesMap.of(
        [
            HingeAtom((0, 2), (1.5, -0.2), 0.3),
            HingeAtom((1,), (-2.0,), -0.7),
            HingeAtom((0, 1, 4), (0.1, 0.4, 3.0), 1.0),
        ]
    )


def rows(n=200, seed=0):
    return np.random.default_rng(seed).normal([3, -1, 0, 5, 0.5], [2, 1, 9, 1, 0.3], (n, 5))


def test_values_are_those_of_the_map():
    given, X = some_hinges(), rows()
    own = TunedHinges(given, X)
    np.testing.assert_allclose(own.values(own.start, X)[0].T, given.columns(X), atol=1e-10)
    np.testing.assert_allclose(own.map(own.start).columns(X), given.columns(X), atol=1e-10)


def test_slopes_are_finite_differences():
    X = rows(60, 1)
    own = TunedHinges(some_hinges(), X)
    pull = np.random.default_rng(2).standard_normal((3, 60))
    found = own.slopes(own.values(own.start, X)[1], pull)
    step = 1e-7
    for number, array in enumerate(own.start):
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = [p.copy() for p in own.start]
                moved[number][at] += sign * step
                ends.append((pull * own.values(moved, X)[0]).sum())
            expected = (ends[0] - ends[1]) / (2 * step)
            if number == 0 and own.start[0][at] == 0:  # an input that the hinge does not read
                assert found[0][at] == 0
            else:
                assert found[number][at] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_settled_directions_have_unit_norm_and_the_same_place():
    X = rows()
    own = TunedHinges(some_hinges(), X)
    directions, knots = (3.0 * p for p in own.start)
    settled = own.settled([directions, knots])
    np.testing.assert_allclose((settled[0] ** 2).sum(1), 1.0)
    for one, other in zip(settled, own.start, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_tuned_hinges_are_inherited_by_larger_models():
    chosen = some_hinges()
    tuned = HingesMap.of([HingeAtom((1,), (5.0,), 1.0), HingeAtom((3,), (6.0,), 2.0)])
    made = HingeKind().start(chosen, tuned, [-1, 0, -1], True)
    assert made.atoms() == [chosen.atoms()[0], tuned.atoms()[0], chosen.atoms()[2]]


def test_moments_of_sparse_rows():
    X = rows()
    X[X < 0] = 0
    for one, other in zip(
        moments(X, np.array([1, 3])), moments(sparse.csr_matrix(X), np.array([1, 3])), strict=True
    ):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(moments(X, np.array([0]))[1], X[:, 0].std())
    assert moments(np.ones((5, 1)), np.array([0]))[1] == 1.0


def circle(n, seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, (np.hypot(*X.T) < 0.7).astype(int)


def booster(**settings):
    own = {"pool": Hinges(n_directions=20), "tune": True, "random_state": 0}
    return ShareBoostClassifier(5, **{**own, **settings})


def test_five_tuned_hinges_enclose_a_circle():
    X, y = circle(1500, 0)
    X_test, y_test = circle(3000, 1)
    tuned, plain = booster().fit(X, y), booster(tune=False).fit(X, y)
    assert tuned.path_[5].loss < 0.8 * plain.path_[5].loss
    assert tuned.score(X_test, y_test) > max(plain.score(X_test, y_test), 0.95)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_may_be_tiny_and_huge(unit):
    X, y = circle(1500, 0)
    one, other = booster().fit(X, y), booster().fit(X * unit, y)
    assert any(map(other.path_.is_tuned, other.path_.sizes))
    assert np.mean(one.predict(X) != other.predict(X * unit)) < 0.02


def test_sparse_rows_with_many_inputs_stay_sparse():
    """As dense rows, these would take 64 GB."""
    X, y = circle(400, 4)
    wide = sparse.csr_matrix(np.where(X < 0, 0.0, X))
    wide.resize(400, 20_000_000)
    pool = HingesMap.of([HingeAtom((0, 1), (1.0, -0.5), 0.1)])
    own, codes = TunedHinges(pool, wide), y.astype(np.int64)
    [batch] = Batches(wide, codes, np.full(400, 1 / 400), 400, 0).epoch(0)
    values, _ = own.values(own.start, batch.X)
    np.testing.assert_allclose(values.T, pool.columns(batch.X), atol=1e-12)


def test_units_do_not_matter():
    X, y = circle(1500, 0)
    there = X * [1000.0, 0.01] + [5.0, -3.0]
    one, other = booster().fit(X, y), booster().fit(there, y)
    assert any(map(one.path_.is_tuned, one.path_.sizes))
    assert any(map(other.path_.is_tuned, other.path_.sizes))
    assert np.mean(one.predict(X) != other.predict(there)) < 0.02


def test_hinges_keep_their_inputs():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 6))
    y = (X[:, 0] + X[:, 1] > 0.3).astype(int)
    model = booster(pool=Hinges(n_directions=30, n_inputs=2)).fit(X, y)
    pairs = zip(model.path_.chosen[5].atoms, model.path_[5].atoms, strict=True)
    assert all(a.features == b.features and len(b.features) <= 2 for a, b in pairs)
    assert model.path_[5].predictor_cost.operations == (
        model.path_.chosen[5].predictor_cost.operations
    )


def test_tensors_and_sparse_rows_give_the_same():
    torch = pytest.importorskip("torch")
    X = rows()
    own = TunedHinges(some_hinges(), X)
    there = TunedHinges(some_hinges(), torch.as_tensor(X))
    pull = np.random.default_rng(4).standard_normal((3, 200))
    values, kept = own.values(own.start, X)
    found, seen = there.values(there.start, torch.as_tensor(X))
    np.testing.assert_allclose(found.numpy(), values)
    for one, other in zip(
        own.slopes(kept, pull), there.slopes(seen, torch.as_tensor(pull)), strict=True
    ):
        np.testing.assert_allclose(other.numpy(), one)
    assert there.map(there.start).names() == own.map(own.start).names()
    X, y = circle(400, 4)
    X[X < 0] = 0
    dense, thin = booster().fit(X, y), booster().fit(sparse.csr_matrix(X), y)
    assert any(map(thin.path_.is_tuned, thin.path_.sizes))
    np.testing.assert_allclose(dense.atom_coef_, thin.atom_coef_, rtol=1e-3, atol=1e-6)


def test_every_size_can_be_tuned():
    X, y = circle(600, 6)
    model = booster(tune=Tuning(sizes="all")).fit(X, y)
    assert any(map(model.path_.is_tuned, model.path_.sizes))
    assert model.path_[5].loss <= model.path_[2].loss
