"""Hessians that travel: their definition, estimates from some rows, and other cuts."""

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES, find_loss
from laconic.numeric.threads import Threads
from laconic.pools import Columns
from laconic.rows.limits import Limits
from laconic.rows.shard import in_memory
from laconic.rows.tree import tree_sum
from problems import random_problem
from rows.test_far import assert_same_bits

LIMITS = Limits(block_rows=64)


def shards(X, y, weight, loss, cuts):
    """Return shards of the rows, each with the intercept and the first three columns."""
    loss = find_loss(loss)
    k = loss.n_outputs(len(np.unique(y)))
    out = []
    for first, last in zip([0, *cuts], [*cuts, len(y)], strict=True):
        s = slice(first, last)
        pool = Columns(scale=None).bind(X[s], weight[s], Threads(1))
        shard = in_memory(pool, loss, y[s], weight[s], k, Threads(1), LIMITS, first)
        shard.put_constant()
        shard.offer([0, 1, 2])
        shard.take(np.array([0.1, -0.2, 0.3]))
        out.append(shard)
    return out, k


def problem(loss, m=4000):
    X, y = random_problem(m=m, d=4, k=3)
    rng = np.random.default_rng(0)
    weight = rng.random(m)
    y = y if loss in LOSSES else (y > 0).astype(int)
    return X, y, weight / weight.sum()


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_a_whole_hessian_holds_the_products_with_all_unit_vectors(loss):
    X, y, weight = problem(loss, 500)
    [shard], k = shards(X, y, weight, loss, ())
    W = np.random.default_rng(1).standard_normal((4, k))
    shard.evaluate(W)
    products = [shard.curve(unit.reshape(4, k)).ravel() for unit in np.eye(4 * k)]
    found, mass = shard.whole_hessian()
    np.testing.assert_allclose(found, products, atol=1e-13)
    assert mass == pytest.approx(shard.whole_hessian(1.0)[1])
    assert shard.curvature() == shard.whole_hessian(1.0)[1]


@pytest.mark.parametrize("loss", ["margin", "log", "logistic"])
def test_an_estimate_is_near_the_whole_hessian(loss):
    X, y, weight = problem(loss, 20_000)
    [shard], k = shards(X, y, weight, loss, ())
    shard.evaluate(np.random.default_rng(1).standard_normal((4, k)))
    whole, _ = shard.whole_hessian()
    _, mass = shard.whole_hessian(1.0)
    found, _ = shard.whole_hessian(mass / 4000)
    near = np.linalg.norm(found - whole) / np.linalg.norm(whole)
    # Sums of n normal squares have a relative standard error of sqrt(2 / n).
    assert 0 < near < 2 * np.sqrt(2 / 4000)
    everything, _ = shard.whole_hessian(1e-12)  # every row has more curvature than a step
    np.testing.assert_allclose(everything, whole, atol=1e-12)


def test_an_estimate_takes_a_row_for_each_step_of_curvature():
    X, y, weight = problem("log", 20_000)
    [shard], k = shards(X, y, weight, "log", ())
    shard.evaluate(np.zeros((4, k)))
    taken = []
    curve = shard.loss.curve

    def counted(weight, state, direction):
        taken.append(len(weight))
        return curve(weight, state, direction)

    _, mass = shard.whole_hessian(1.0)
    shard.loss.curve = counted
    shard.whole_hessian(mass / 2000)
    assert sum(taken) / k == pytest.approx(2000, rel=0.02)


@pytest.mark.parametrize("cuts", [(100,), (1, 2, 1999), (640, 1280)])
def test_other_cuts_take_the_same_rows(cuts):
    X, y, weight = problem("log")
    W = np.random.default_rng(1).standard_normal((4, 3))
    found = []
    for of in ((), cuts):
        own, _ = shards(X, y, weight, "log", of)
        for shard in own:
            shard.evaluate(W)
        found.append(tree_sum([shard.whole_hessian(1e-3) for shard in own]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-10, atol=1e-15)
    assert found[1][1] == pytest.approx(found[0][1], rel=1e-12)


def test_a_fit_with_estimates_does_not_depend_on_the_cuts_or_on_losses(fit_far):
    X, y = random_problem(m=3000, d=6, k=3)
    model = ShareBoostClassifier(4, n_jobs=1)
    few = {"least_rows": 200, "travelling_rows": 1}
    one, carrier = fit_far(model, X, y, cuts=(1000, 2000), **few)
    assert any("whole_hessian" in methods for methods in carrier.asked)
    other, _ = fit_far(model, X, y, cuts=(7, 1500, 2999), **few)
    lossy, _ = fit_far(model, X, y, share=0.3, cuts=(1000, 2000), **few)
    assert_same_bits(one, lossy)
    assert [str(atom) for atom in one.atoms_] == [str(atom) for atom in other.atoms_]
    for a, b in zip(one.path_, other.path_, strict=True):
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-9, atol=1e-12)
    near, _ = fit_far(model, X, y, cuts=(1000, 2000), least_rows=10**9)
    assert abs(near.path_[4].loss - one.path_[4].loss) < 1e-5


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("settings", [
    {}, {"pool": "stumps"}, {"penalty": "l1"}, {"rule": "projection"}, {"rule": "column"},
    {"refine": True},
], ids=lambda settings: str(*settings.values()))  # fmt: skip
def test_a_fit_with_estimates_goes_on_with_the_same_bits(settings, size, fit_far, tmp_path):
    """One that is interrupted, and one that ends with fewer atoms, is not one that is disturbed."""
    X, y = random_problem(m=3000, d=6, k=3)
    few = {"least_rows": 200, "travelling_rows": 1}
    model = ShareBoostClassifier(5, n_jobs=1, **settings)
    whole, carrier = fit_far(model, X, y, **few)
    assert any("whole_hessian" in methods for methods in carrier.asked)
    for part in (
        {"max_atoms": size},
        {"callbacks": [lambda state: state.last.size == size]},
        {"callbacks": [lambda state: state.own.swept == size]},
    ):
        kept = clone(model).set_params(checkpoint=tmp_path / str(*part))
        fit_far(clone(kept).set_params(**part), X, y, **few)
        assert_same_bits(whole, fit_far(kept, X, y, **few)[0])
