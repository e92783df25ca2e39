"""One-vs-rest selection: each class on its own, and what that costs together."""

import numpy as np
from one_vs_rest import OneVsRest

from laconic import ShareBoostClassifier
from problems import random_problem


def test_every_class_is_a_binary_shareboost():
    X, y = random_problem(m=150, d=10, k=3)
    model = OneVsRest(4, alpha=1e-4).fit(X, y)
    stages = list(model.staged_scores(X))
    for c in range(3):
        binary = ShareBoostClassifier(4, alpha=1e-4, loss="log").fit(X, y == c)
        for t in range(1, 5):
            assert np.allclose(stages[t - 1][:, c], binary.at(t).decision_function(X))


def test_a_feature_of_two_classes_counts_once():
    X, y = random_problem(m=150, d=5, k=3)
    model = OneVsRest(3).fit(X, y)
    unions, sums = model.sizes()
    assert sums.tolist() == [3, 6, 9]
    assert np.all(unions <= 5)
    chosen = [set(path[2].numbers) for path in model.paths]
    assert unions[1] == len(chosen[0] | chosen[1] | chosen[2])


def test_two_classes_need_one_path():
    X, y = random_problem(m=100, d=6, k=2)
    model = OneVsRest(3).fit(X, y)
    binary = ShareBoostClassifier(3, loss="log").fit(X, y)
    *_, last = model.staged_scores(X)
    assert np.array_equal(last.argmax(axis=1), binary.predict(X))
    assert model.sizes()[0].tolist() == [1, 2, 3]


def test_a_path_that_ends_early_stays_as_it_is():
    X, y = random_problem(m=80, d=2, k=3)
    model = OneVsRest(4).fit(X, y)
    stages = list(model.staged_scores(X))
    assert len(stages) == 4
    assert np.array_equal(stages[1], stages[3])
    assert model.sizes()[1].tolist() == [3, 6, 6, 6]
