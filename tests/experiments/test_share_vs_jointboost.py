"""Error curves by number of stumps: where they are read, how they are steadied, when reached."""

import numpy as np
import pytest
from _common import Task
from jointboost import JointBoost
from share_vs_jointboost import RATES, SETTINGS, Curve, curve, first_time, steadied

from laconic import ShareBoostClassifier
from laconic.pools import Stumps
from problems import random_problem


@pytest.fixture(scope="module")
def task():
    """Few stumps to choose from, so that JointBoost meets some again."""
    X, y = random_problem(m=160, d=2, k=3)
    X = np.round(X).astype(np.float32)
    return Task(X[:100], y[:100], X[100:], y[100:])


def test_steadied_is_the_mean_of_up_to_five_neighbours():
    errors = np.random.default_rng(0).random(12)
    naive = [np.mean(errors[max(i - 2, 0) : i + 3]) for i in range(12)]
    np.testing.assert_allclose(steadied(errors), naive)
    np.testing.assert_allclose(steadied(np.full(9, 0.3)), 0.3)
    # One lucky size does not win over a stretch of good ones.
    lucky = np.r_[np.full(10, 0.5), 0.1, np.full(10, 0.5), np.full(9, 0.3)]
    assert lucky.argmin() == 10
    assert steadied(lucky).argmin() > 20


def test_first_time_is_that_of_the_first_size_at_the_goal():
    found = Curve(np.array([0.5, 0.3, 0.2, 0.3, 0.1]), np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert first_time(found, 0.3) == (2.0, 2)
    assert first_time(found, 0.25) == (4.0, 3)
    assert first_time(found, 0.1) == (16.0, 5)
    assert first_time(found, 0.05) is None


def test_jointboost_is_read_at_its_last_round_of_at_most_so_many_stumps(task):
    most = 10
    errors, seconds = curve("rate 1", task, most)
    assert len(errors) == len(seconds) == most
    assert np.all(np.diff(seconds) >= 0)
    model = JointBoost(int(1.3 * most), RATES["rate 1"]).fit(Stumps(), task.X, task.y)
    scores = list(model.staged_scores(task.X_new))
    different = [len({s.atom for s in model.rounds[: t + 1]}) for t in range(len(scores))]
    assert different[-1] < len(scores), "no stump was met again"
    for n in range(1, most + 1):
        last = max(t for t, size in enumerate(different) if size <= n)
        assert errors[n - 1] == np.mean(scores[last].argmax(axis=1) != task.y_new)


def test_shareboost_is_read_at_its_size_or_where_it_ended(task):
    most = 40
    setting = "gradient 0.001"
    errors, seconds = curve(setting, task, most)
    assert len(errors) == len(seconds) == most
    model = ShareBoostClassifier(most, pool="stumps", tol=1e-2, **SETTINGS[setting])
    model.fit(task.X, task.y)
    assert model.n_atoms_ < most, "the path did not end early"
    for n in range(1, most + 1):
        there = model.at(min(n, model.n_atoms_)).predict(task.X_new)
        assert errors[n - 1] == np.mean(there != task.y_new)
