"""Hessians from some of the rows in memory, and fits that take steps with them."""

import numpy as np
import pytest
from sklearn.base import clone

from laconic import ShareBoostClassifier
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.rows.chances import rows_below
from laconic.rows.limits import Limits
from laconic.rows.sampled_hessian import SampledHessian
from problems import random_problem, saving_always
from rows.test_far_hessian import problem, shards
from rows.test_shards import assert_same_paths

FEW = Limits(least_rows=300, travelling_rows=1)
NEVER = Limits(least_rows=10**9)


@pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])
@pytest.mark.parametrize("cuts", [(), (5000, 12_000)])
def test_an_estimate_is_near_the_whole_hessian(loss, cuts):
    X, y, weight = problem(loss, 20_000)
    own, k = shards(X, y, weight, loss, cuts)
    for shard in own:
        shard.evaluate(np.random.default_rng(1).standard_normal((4, k)))
    whole = sum(shard.whole_hessian()[0] for shard in own)
    estimate = SampledHessian(own, 4000)
    for _ in range(2):
        near = np.linalg.norm(estimate() - whole) / np.linalg.norm(whole)
        assert 0 < near < 4 * np.sqrt(2 / 4000)


@pytest.mark.parametrize("cuts", [(100,), (640, 1280, 1300)])
def test_other_cuts_give_the_same_estimate(cuts):
    X, y, weight = problem("log")
    W = np.random.default_rng(1).standard_normal((4, 3))
    found = []
    for of in ((), cuts):
        own, _ = shards(X, y, weight, "log", of)
        for shard in own:
            shard.evaluate(W)
        found.append(SampledHessian(own, 300)())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("margin", [0.5, 2.0])
def test_rows_without_curvature_are_no_obstacle(margin):
    """The rows that are looked at first are certain, so that they have no curvature."""
    n_rows = 5000
    y = np.arange(n_rows) % 2
    X = np.zeros((n_rows, 3))
    X[:, 0] = np.where(y, margin, -margin)
    X[rows_below(10 / n_rows, n_rows, 0)] *= 8.0
    own, _ = shards(X, y, np.full(n_rows, 1 / n_rows), "squared_hinge", (1000,))
    for shard in own:
        shard.evaluate(np.array([[0.1], [1.0], [0.0], [0.0]]))
    whole = sum(shard.whole_hessian()[0] for shard in own)
    assert whole.any() == (margin < 1)
    estimate = SampledHessian(own, 300)
    for _ in range(2):
        np.testing.assert_allclose(estimate(), whole, rtol=0.2, atol=0.1 * whole.max())


@pytest.mark.parametrize("certain", [0.0, 0.99])
def test_the_first_estimate_takes_as_many_rows_as_the_next_ones(certain):
    X, y, weight = problem("log", 20_000)
    X[: int(certain * 20_000)] *= 1e3
    own, k = shards(X, y, weight, "log", (5000,))
    W = np.random.default_rng(1).standard_normal((4, k))
    for shard in own:
        shard.evaluate(W)
    whole = sum(shard.whole_hessian()[0] for shard in own)
    near = np.linalg.norm(SampledHessian(own, 1000)() - whole) / np.linalg.norm(whole)
    assert near < 0.2


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({"travelling_rows": 10, "least_rows": 100}, True),
        ({"travelling_rows": 100, "least_rows": 100}, False),  # 1200 rows of 4000
        ({"travelling_rows": 10, "least_rows": 1000}, False),
        ({"travelling_rows": 10, "least_rows": 100, "travelling": 11}, False),
    ],
)
def test_it_is_made_if_it_takes_few_of_the_rows(limits, made):
    X, y, weight = problem("log")
    own, k = shards(X, y, weight, "log", (1000,))
    assert own[0].n_columns * k == 12
    assert (SampledHessian.of(own, Limits(**limits)) is not None) == made


def fit(model, X, y, limits):
    model = clone(model)
    model._limits = limits
    return model.fit(X, y)


@pytest.mark.parametrize("penalty", ["l1", "linf_l1"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("pool", ["columns", "stumps"])
def test_fits_have_the_optimum_of_fits_without_it(penalty, loss, pool):
    X, y = random_problem(m=5000, d=6)
    weight = np.random.default_rng(0).random(5000)
    settings = {"penalty": penalty, "alpha": 1e-3, "tol": 1e-10, "n_jobs": 2}
    models = []
    for limits in (NEVER, FEW, FEW._replace(cuts=(1000, 1100, 4000))):
        model = ShareBoostClassifier(4, pool=pool, loss=loss, **settings)
        model._limits = limits
        models.append(model.fit(X, y, sample_weight=weight))
    assert_same_paths(models)


def test_pieces_have_local_columns_and_no_estimate():
    X, y = random_problem(m=3000, d=2)
    model = ShareBoostClassifier(3, pool="pieces", penalty="l1", alpha=1e-3, n_jobs=1)
    assert_same_paths([fit(model, X, y, NEVER), fit(model, X, y, FEW)])


def test_a_fit_that_is_taken_up_again_has_the_same_bits(tmp_path):
    X, y = random_problem(m=5000, d=6)
    settings = {"penalty": "l1", "alpha": 1e-3, "n_jobs": 1}
    whole = fit(ShareBoostClassifier(5, **settings), X, y, FEW)
    file = tmp_path / "checkpoint"
    for size in (2, 5):
        model = saving_always(ShareBoostClassifier(size, checkpoint=file, **settings))
        model._limits = FEW
        model.fit(X, y)
    assert np.array_equal(model.path_[5].weights, whole.path_[5].weights)
