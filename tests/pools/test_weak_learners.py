"""A classifier as pool: atoms come into being as they are asked for."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from laconic.numeric.threads import Threads
from laconic.pools.weak_learners import Oracle


def bind(X):
    pool = Oracle(DecisionTreeClassifier(max_depth=1, random_state=0))
    return pool.bind(X, np.full(len(X), 1 / len(X)), Threads(1))


def test_an_atom_is_the_classifier_fitted_to_the_residuals():
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(80, 3)), rng.normal(size=(80, 1))
    pool = bind(X)
    offer = pool.fitted(r)
    assert pool.n_atoms == 0  # to ask changes nothing
    assert pool.join(offer) == 0
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    answer = tree.fit(X, np.sign(r[:, 0]), sample_weight=np.abs(r[:, 0])).predict(X)
    np.testing.assert_array_equal(pool.columns([0])[:, 0], answer)
    assert offer.score == pytest.approx(abs(r[:, 0] @ answer))
    np.testing.assert_array_equal(pool.extract([0]).columns(X)[:, 0], answer)
    assert pool.index(pool.atom(0)) == 0


def test_the_same_answer_or_its_opposite_is_nothing_new():
    rng = np.random.default_rng(1)
    X, r = rng.normal(size=(80, 2)), rng.normal(size=(80, 1))
    pool = bind(X)
    pool.join(pool.fitted(r))
    assert pool.fitted(r) is None
    assert pool.fitted(-r) is None
    assert pool.n_atoms == 1


def test_only_classifiers():
    with pytest.raises(TypeError, match="classifier object"):
        Oracle(LinearRegression())
    with pytest.raises(TypeError, match="classifier object"):
        Oracle(DecisionTreeClassifier)
