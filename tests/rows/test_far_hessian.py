"""Hessians that travel: their definition, estimates from some rows, and other cuts."""

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES, MarginLoss, find_loss
from laconic.numeric.threads import Threads
from laconic.pools import Columns
from laconic.rows.chances import chances, rows_below
from laconic.rows.far_hessian import FarHessian
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
    y = (y > 0).astype(int) if loss in BINARY_LOSSES else y
    return X, y, weight / weight.sum()


def curvature(shard):
    """Return the curvature of all rows."""
    parts = [shard.loss.curvature(block.weight, block.state) for block in shard._blocks]
    return sum(float(part.sum()) for part in parts)


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
def test_a_whole_hessian_holds_the_products_with_all_unit_vectors(loss):
    X, y, weight = problem(loss, 500)
    [shard], k = shards(X, y, weight, loss, ())
    W = np.random.default_rng(1).standard_normal((4, k))
    shard.evaluate(W)
    products = [shard.curve(unit.reshape(4, k)).ravel() for unit in np.eye(4 * k)]
    found, mass = shard.whole_hessian()
    np.testing.assert_allclose(found, products, atol=1e-13)
    assert mass == 0.0
    assert shard.curvature() == pytest.approx(curvature(shard), rel=1e-12)


@pytest.mark.parametrize("loss", ["margin", "log", "logistic"])
def test_an_estimate_is_near_the_whole_hessian(loss):
    X, y, weight = problem(loss, 20_000)
    [shard], k = shards(X, y, weight, loss, ())
    shard.evaluate(np.random.default_rng(1).standard_normal((4, k)))
    whole, _ = shard.whole_hessian()
    found, mass = shard.whole_hessian(curvature(shard) / 4000)
    assert mass == pytest.approx(curvature(shard), rel=0.02)
    near = np.linalg.norm(found - whole) / np.linalg.norm(whole)
    # Sums of n normal squares have a relative standard error of sqrt(2 / n).
    assert 0 < near < 2 * np.sqrt(2 / 4000)
    everything, mass = shard.whole_hessian(1e-12)  # every row has more curvature than a step
    np.testing.assert_allclose(everything, whole, atol=1e-12)
    assert mass == pytest.approx(curvature(shard), rel=1e-6)


def test_an_estimate_takes_a_row_for_each_step_of_curvature():
    X, y, weight = problem("log", 20_000)
    [shard], k = shards(X, y, weight, "log", ())
    shard.evaluate(np.zeros((4, k)))
    taken = []
    curve = shard.loss.curve

    def counted(weight, state, direction):
        taken.append(len(weight))
        return curve(weight, state, direction)

    mass = curvature(shard)
    shard.loss.curve = counted
    shard.whole_hessian(mass / 2000)
    assert sum(taken) / k == pytest.approx(2000, rel=0.02)


class Unknown(MarginLoss):
    """A loss whose curvature has no known bound."""


@pytest.mark.parametrize("loss", ["margin", *BINARY_LOSSES, Unknown()])
@pytest.mark.parametrize("step", [1e-7, 1e-4, 1e-3, 1.0])
def test_the_rows_taken_are_those_whose_chance_is_below_their_curvature(loss, step):
    X, y, weight = problem(loss)
    first = 12_345
    [shard], k = shards(X, y, weight, loss, ())
    shard.rest = shard.rest._replace(first=first)
    shard.evaluate(np.random.default_rng(1).standard_normal((4, k)))
    mass = np.hstack(
        [shard.loss.curvature(block.weight, block.state).sum(axis=0) for block in shard._blocks]
    )
    chance = (first + np.arange(len(y))) * 2654435769 % 2**32 / 2**32
    taken = chance * step < mass
    _, found = shard.whole_hessian(step)
    assert found == pytest.approx(np.maximum(mass[taken], step).sum(), rel=1e-12)
    if step == 1e-3:
        assert 10 < taken.sum() < len(y)


@pytest.mark.parametrize("part", [0.0, 1e-9, 0.013, 0.5, 0.999, 1 - 1e-16])
@pytest.mark.parametrize(("n_rows", "first"), [(0, 5), (1, 0), (64, 1), (1000, 10**9), (4096, 77)])
def test_rows_below_a_chance_are_found_without_looking_at_all(part, n_rows, first):
    exact = [(first + at) * 2654435769 % 2**32 / 2**32 for at in range(n_rows)]
    expected = np.array([at for at, chance in enumerate(exact) if chance < part], dtype=int)
    found = rows_below(part, n_rows, first)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(chances(found, first), np.array(exact)[found])


def test_curvature_is_found_again_after_there_was_none():
    hessian = FarHessian(10**9, Limits())
    few = Limits().least_rows
    assert hessian.call(2, exact=False).arguments == (1.0 / few,)
    hessian.receive((np.eye(2), 0.0), exact=False)  # no row was taken
    assert hessian.call(2, exact=False).arguments == (1.0 / few**2,)
    hessian.receive((np.eye(2), 0.25), exact=False)
    assert hessian.call(2, exact=False).arguments == (0.25 / few,)
    assert hessian.call(2, exact=True).arguments == (None,)
    hessian.receive((np.eye(2), 0.0), exact=True)
    assert hessian.call(2, exact=False).arguments == (0.25 / few,)


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
