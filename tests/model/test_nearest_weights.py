"""The whole-numbered weights whose scores are nearest to those of a model."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laconic import ShareBoostClassifier
from laconic.model.nearest_weights import PULL, nearest_weights
from laconic.pools import Hinges


def problem(seed, n=40, t=3, k=2, most=4):
    """Return atoms that depend on each other, scores, weights of rows, and rounded weights."""
    rng = np.random.default_rng(seed)
    values = np.rint(rng.normal(size=(n, t)) @ rng.normal(size=(t, t)) * 20)
    real = rng.uniform(-most, most, (t, k))
    scores = values @ real + rng.normal(size=(n, k)) * 5 + 100
    return values, scores, rng.uniform(0.5, 2, n), real, np.rint(real), most


def error(given, weights):
    """Return (1), term by term."""
    values, scores, rows, real, *_ = given
    share, total = rows / rows.sum(), 0.0
    mean = sum(s * z for s, z in zip(share, values, strict=True))
    level = sum(s * x for s, x in zip(share, scores, strict=True))
    for s, z, x in zip(share, values, scores, strict=True):
        total += s * np.sum(((z - mean) @ weights - (x - level)) ** 2)
    sizes = np.array([sum(share * (v - m) ** 2) for v, m in zip(values.T, mean, strict=True)])
    return total + PULL * np.sum(sizes[:, None] * (weights - real) ** 2)


@pytest.mark.parametrize("seed", range(8))
def test_no_change_of_one_weight_is_better(seed):
    given = problem(seed)
    found = nearest_weights(*given).weights
    best, most = error(given, found), given[-1]
    assert np.array_equal(found, np.rint(found))
    assert np.abs(found).max() <= most
    for j, c in np.ndindex(found.shape):
        for value in range(-most, most + 1):
            other = found.copy()
            other[j, c] = value
            assert error(given, other) >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_never_worse_than_rounding_and_often_the_best_of_all(seed):
    given = problem(seed, t=3, k=1)
    found, most = nearest_weights(*given), given[-1]
    every = itertools.product(range(-most, most + 1), repeat=3)
    least = min(error(given, np.array(w, float)[:, None]) for w in every)
    assert error(given, found.weights) <= error(given, given[4]) * (1 + 1e-9)
    assert error(given, found.weights) <= 3 * least


def test_the_best_of_all_is_found_for_most_problems():
    right = 0
    for seed in range(20):
        given = problem(seed, t=2, k=1)
        every = itertools.product(range(-4, 5), repeat=2)
        least = min(error(given, np.array(w, float)[:, None]) for w in every)
        right += error(given, nearest_weights(*given).weights) <= least * (1 + 1e-9)
    assert right >= 16


def test_the_bias_takes_up_the_means():
    given = problem(0)
    found = nearest_weights(*given)
    gap = given[0] @ found.weights + found.bias - given[1]
    assert np.allclose(np.average(gap, axis=0, weights=given[2]), 0)


def test_a_weight_of_two_is_the_row_twice():
    values, scores, _, real, rounded, most = problem(3)
    twice = np.r_[np.arange(40), np.arange(10)]
    weight = np.where(np.arange(40) < 10, 2.0, 1.0)
    once = nearest_weights(values, scores, weight, real, rounded, most)
    same = nearest_weights(values[twice], scores[twice], np.ones(50), real, rounded, most)
    assert np.array_equal(once.weights, same.weights)
    assert np.allclose(once.bias, same.bias)


def test_atoms_without_values_keep_their_weights():
    values, scores, rows, real, rounded, most = problem(1)
    values[:, 1] = 0
    found = nearest_weights(values, scores, rows, real, rounded, most)
    assert np.array_equal(found.weights[1], rounded[1])


def test_fewer_labels_change_than_by_rounding(monkeypatch):
    X, y = load_digits(return_X_y=True)
    pools = "columns", "products", Hinges(40), ["stumps", "products"]
    models = [ShareBoostClassifier(12, pool=pool).fit(X[::2], y[::2]).predictor_ for pool in pools]

    def changed():
        made = [model.quantise(X[::2], inputs="uint8").predict(X[1::2]) for model in models]
        return [np.mean(a != b.predict(X[1::2])) for a, b in zip(made, models, strict=True)]

    nearest = changed()
    monkeypatch.setattr("laconic.model.quantise._Trial.nearer", lambda own, rounded, *rest: rounded)
    rounded = changed()
    assert sum(nearest) < 0.6 * sum(rounded)
    assert all(a <= b + 0.002 for a, b in zip(nearest, rounded, strict=True))
