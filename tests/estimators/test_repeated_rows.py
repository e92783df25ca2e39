"""Weight 2 is the row twice, weight 0 the row gone, and the order of the rows does not matter."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

from laconic import ErrorClumpingClassifier, HolePunchingClassifier, ShareBoostClassifier
from problems import blobs

PRICES = {0: 0.3, 1: 2.5, 2: 0.8}


def repeated_and_shuffled(weight, seed=0):
    """Numbers of the rows, each as often as its weight says: in order, at the end, and shuffled."""
    rows = np.arange(len(weight))
    more = np.repeat(rows, np.maximum(weight - 1, 0))
    in_order = np.repeat(rows, weight)
    return (
        in_order,
        np.r_[rows[weight > 0], more],
        np.random.default_rng(seed).permutation(in_order),
    )


# -- error clumping --------------------------------------------------------------------------------


def noisy(seed, m=45, classes=3):
    """Rows of which some are equal, in three noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    X[::7] = np.round(X[::7])
    y = (X + rng.standard_normal((m, 3)))[:, :classes].argmax(axis=1)
    weight = rng.integers(0, 5, m)
    weight[[np.argmax(y == c) for c in range(classes)]] = 1
    return X, y, weight


def assert_same_clumping(one, other):
    assert np.array_equal(one.radius_, other.radius_, equal_nan=True) or (
        one.radius_ == pytest.approx(other.radius_, rel=1e-9)
    )
    assert one.neighbour_share_ == pytest.approx(other.neighbour_share_)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    assert one.coef_ == pytest.approx(other.coef_, rel=1e-5, abs=1e-6)
    assert one.intercept_ == pytest.approx(other.intercept_, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", PRICES], ids=["none", "balanced", "dict"]
)
@pytest.mark.parametrize("normalize", ["degree", "pairs"])
@pytest.mark.parametrize(
    "neighbours", [{}, {"radius": 1.0}, {"n_neighbors": 3}, {"metric": "chebyshev"}],
    ids=["auto", "radius", "nearest", "metric"],
)  # fmt: skip
def test_of_error_clumping(class_weight, normalize, neighbours):
    for seed in range(3):
        X, y, weight = noisy(seed, classes=2 + seed % 2)
        model = ErrorClumpingClassifier(
            1e-2,
            class_weight=class_weight,
            normalize=normalize,
            discount=0.8,
            tol=1e-12,
            **neighbours,
        )
        weighted = clone(model).fit(X, y, weight)
        for rows in repeated_and_shuffled(weight, seed):
            assert_same_clumping(clone(model).fit(X[rows], y[rows]), weighted)


def test_of_error_clumping_with_a_graph_of_its_own():
    X, y, weight = noisy(0)
    graph = np.random.default_rng(1).random((len(y), len(y))) < 0.1
    graph |= graph.T
    model = ErrorClumpingClassifier(1e-2, class_weight="balanced", tol=1e-12)
    weighted = clone(model).fit(X, y, weight, graph=graph)
    for rows in repeated_and_shuffled(weight):
        among = graph[np.ix_(rows, rows)] | (rows[:, None] == rows)  # copies are neighbours
        assert_same_clumping(clone(model).fit(X[rows], y[rows], graph=among), weighted)


# -- hole punching ---------------------------------------------------------------------------------


def assert_same_holes(one, other):
    assert one.radius_ == pytest.approx(other.radius_, rel=1e-9)
    assert one.errors_ == pytest.approx(other.errors_)
    for a, b in zip(one.holes_, other.holes_, strict=True):
        assert np.array_equal(a.centre, b.centre)
        assert a.radius == pytest.approx(b.radius, rel=1e-9)
        assert a.kind == b.kind
        assert (a.error_before, a.error_after) == pytest.approx((b.error_before, b.error_after))


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", PRICES], ids=["none", "balanced", "dict"]
)
@pytest.mark.parametrize("n_candidates", [1, 6])
@pytest.mark.parametrize("estimator", [None, RidgeClassifier()], ids=["clumping", "ridge"])
def test_of_hole_punching(class_weight, n_candidates, estimator):
    for seed in range(2):
        X, y = blobs(90, classes=2 + seed % 2, seed=seed, flipped=0.1)
        weight = np.random.default_rng(seed).integers(0, 4, 90)
        weight[:10] = 1
        model = HolePunchingClassifier(
            estimator, 5, min_rows=3, class_weight=class_weight, n_candidates=n_candidates,
            random_state=0,
        )  # fmt: skip
        weighted = clone(model).fit(X, y, weight)
        assert weighted.n_holes_ > 1
        for rows in repeated_and_shuffled(weight, seed):
            again = clone(model).fit(X[rows], y[rows])
            assert_same_holes(again, weighted)
            assert np.array_equal(again.predict(X), weighted.predict(X))
            assert again.predictor_.cost() == weighted.predictor_.cost()


def test_of_hole_punching_on_a_lattice():
    """Many rows lie at the very radius, and many are equal but for their labels."""
    rng = np.random.default_rng(0)
    X = 0.1 * rng.integers(0, 8, (150, 2))
    y = (np.floor(X / 0.35).sum(axis=1) + (rng.random(150) < 0.15)).astype(int) % 2
    weight = rng.integers(0, 4, 150)
    model = HolePunchingClassifier(RidgeClassifier(), 6, radius=0.3, min_rows=4)
    weighted = clone(model).fit(X, y, weight)
    assert weighted.n_holes_ > 2
    for rows in repeated_and_shuffled(weight):
        assert_same_holes(clone(model).fit(X[rows], y[rows]), weighted)


# -- boosting --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ShareBoostClassifier(),
        ShareBoostClassifier(5, loss="log", rule="projection", refine=True),
        ShareBoostClassifier(3, refine=True, pool="products"),
        ShareBoostClassifier(5, rule="projection", pool="stumps"),
        ShareBoostClassifier(2, pool="pieces"),
        ShareBoostClassifier(2, rule="step", refine=True),
    ],
)
def test_of_shareboost(model):
    check_sample_weight_equivalence_on_dense_data("ShareBoostClassifier", model)
