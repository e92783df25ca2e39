"""The mean of predictors has the mean of their scores, and writes equal atoms once."""

import numpy as np
import pandas as pd
import pytest

from laconic import Predictor, ShareBoostClassifier
from laconic.model.mean import mean_predictor


def table(rng, n=300):
    """Return rows with numbers, categories and missing values, and labels of three classes."""
    X = pd.DataFrame({
        "a": rng.normal(size=n).round(1),
        "b": rng.integers(0, 9, n).astype(float),
        "c": rng.choice(["red", "green", "blue"], n),
    })  # fmt: skip
    X.loc[rng.random(n) < 0.1, "a"] = np.nan
    return X, (X["c"] == "red").to_numpy() + 2 * (X["b"] > 4).to_numpy() % 3


def parts(pool, X, y, n=3, size=6):
    """Return predictors of the same rows with other weights."""
    found = []
    for seed in range(n):
        weight = np.random.default_rng(seed).exponential(size=len(y))
        model = ShareBoostClassifier(size, pool=pool).fit(X, y, sample_weight=weight)
        found.append(model.predictor_)
    return found


@pytest.mark.parametrize("pool", ["columns", "products", "stumps", "rules", ["columns", "stumps"]])
def test_scores_are_the_mean_of_the_scores(pool):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0) + (X[:, 1] * X[:, 2] > 0)
    found = parts(pool, X, y)
    mean = mean_predictor(found)
    expected = np.mean([part.scores(X) for part in found], axis=0)
    np.testing.assert_allclose(mean.scores(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pool", ["stumps", "rules", ["stumps", "rules"]])
def test_categories_and_missing_values(pool):
    X, y = table(np.random.default_rng(1))
    found = parts(pool, X, y)
    mean = mean_predictor(found)
    expected = np.mean([part.scores(X) for part in found], axis=0)
    np.testing.assert_allclose(mean.scores(X), expected, rtol=1e-9, atol=1e-12)


def test_equal_atoms_are_written_once():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 5, (300, 2)).astype(float)
    y = (X.sum(axis=1) > 4).astype(int)
    found = parts("stumps", X, y, n=5, size=8)
    mean = mean_predictor(found)
    conditions = {name for part in found for name in part.names()}
    assert sorted(mean.names()) == sorted(conditions)
    assert len(mean.widths) == len(conditions) < sum(len(part.widths) for part in found)


def test_the_mean_of_one_predictor_is_that_predictor():
    X, y = table(np.random.default_rng(3))
    (only,) = parts("stumps", X, y, n=1)
    mean = mean_predictor([only])
    assert mean.names() == only.names()
    np.testing.assert_array_equal(mean.weights, only.weights)
    np.testing.assert_array_equal(mean.scores(X), only.scores(X))


def test_a_mean_is_saved_and_quantised_as_any_predictor(tmp_path):
    X, y = table(np.random.default_rng(4))
    mean = mean_predictor(parts(["stumps", "rules"], X, y))
    mean.save(tmp_path / "mean.laconic")
    loaded = Predictor.load(tmp_path / "mean.laconic")
    np.testing.assert_array_equal(loaded.scores(X), mean.scores(X))
    assert np.mean(mean.quantise(X, bits=16).predict(X) == mean.predict(X)) > 0.99


def test_class_factors_have_a_geometric_mean():
    X, y = table(np.random.default_rng(5))
    models = [
        ShareBoostClassifier(3, pool="stumps", class_weight={0: 1.0, 1: 1.0, 2: 1.0, 3: factor})
        for factor in (0.25, 1.0)
    ]
    y = np.where(np.arange(len(y)) % 4 == 0, 3, y)
    found = [model.fit(X, y).predictor_ for model in models]
    known = set(np.unique(y).tolist())
    mean = mean_predictor(found)
    assert mean.class_factors[sorted(known).index(3)] == pytest.approx(0.5)


@pytest.mark.parametrize("pool", ["bumps", "hinges"])
def test_balls_and_hinges_have_no_mean(pool):
    X = np.random.default_rng(6).normal(size=(100, 2))
    found = parts(pool, X, (X[:, 0] > 0).astype(int), n=2, size=2)
    with pytest.raises(TypeError, match=f"{pool} have no mean"):
        mean_predictor(found)
