"""JointBoost against a search written out from its definition."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from jointboost import JointBoost, best_shared_stump

from laconic.numeric.threads import Threads
from laconic.pools import Stumps
from problems import random_problem


def squared_error(yes, z, w, subset):
    """Weighted squared error of a stump shared by ``subset``, all values fitted one by one."""
    total = 0.0
    for c in range(z.shape[1]):
        if c not in subset:
            mean = np.average(z[:, c], weights=w[:, c])
            total += np.sum(w[:, c] * (z[:, c] - mean) ** 2)
    for side in (yes, ~yes):
        zs, ws = z[side][:, subset].ravel(), w[side][:, subset].ravel()
        if ws.size:
            total += np.sum(ws * (zs - np.average(zs, weights=ws)) ** 2)
    return total


def naive_best_first(columns, z, w):
    """The search of section 3 of the paper, subset by subset and stump by stump."""
    k = z.shape[1]
    subset, found = [], []
    while len(subset) < k:
        tried = [
            (squared_error(columns[:, t], z, w, [*subset, c]), t, [*subset, c])
            for c in range(k)
            if c not in subset
            for t in range(columns.shape[1])
        ]
        best = min(tried, key=lambda item: item[0])
        found.append(best)
        subset = best[2]
    return min(found, key=lambda item: item[0])


def small_problem(seed, k=4):
    X, y = random_problem(seed=seed, m=40, d=3, k=k)
    X = np.round(X * 4) / 4
    z = np.where(y[:, None] == np.arange(k), 1.0, -1.0)
    w = np.random.default_rng(seed).uniform(0.1, 1.0, z.shape)
    return X, y, z, w / w.sum()


def one_round(X, y, z, w):
    """The stump of a round, the squared error it leaves, and every stump's column."""
    with Threads(1) as threads:
        bound = Stumps().bind(X, np.full(len(y), 1 / len(y)), threads)
        stump = best_shared_stump(bound, z, w, threads)
        columns = bound.columns(range(bound.n_atoms)) > 0
    h = np.where(columns[:, [stump.atom]], stump.yes, stump.no)
    return stump, np.sum(w * (z - h) ** 2), columns


def least_error(columns, z, w, sizes):
    """The least squared error of any stump shared by any subset of these sizes."""
    return min(
        squared_error(yes, z, w, list(subset))
        for yes in columns.T
        for n in sizes
        for subset in combinations(range(z.shape[1]), n)
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_round_is_that_of_the_naive_search(seed):
    X, y, z, w = small_problem(seed)
    stump, left, columns = one_round(X, y, z, w)
    value, _, subset = naive_best_first(columns, z, w)
    assert np.flatnonzero(stump.shared).tolist() == sorted(subset)
    assert left == pytest.approx(value, rel=1e-10)
    assert len(set(stump.yes[stump.shared])) == 1
    assert np.array_equal(stump.yes[~stump.shared], stump.no[~stump.shared])


@pytest.mark.parametrize("seed", range(3))
def test_best_first_lies_between_all_subsets_and_those_it_always_tries(seed):
    """It tries every class alone and all together, each with its best stump."""
    X, y, z, w = small_problem(seed, k=3)
    _, left, columns = one_round(X, y, z, w)
    assert left == pytest.approx(naive_best_first(columns, z, w)[0], rel=1e-10)
    assert left >= least_error(columns, z, w, (1, 2, 3)) - 1e-12
    assert left <= least_error(columns, z, w, (1, 3)) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_of_two_classes_best_first_tries_every_subset(seed):
    X, y, z, w = small_problem(seed, k=2)
    _, left, columns = one_round(X, y, z, w)
    assert left == pytest.approx(least_error(columns, z, w, (1, 2)), rel=1e-10)


def test_rounds_add_up_and_lower_the_exponential_loss():
    X, y = random_problem(m=200, d=5, k=4)
    model = JointBoost(15, n_jobs=1).fit(Stumps(), X, y)
    z = np.where(y[:, None] == np.arange(4), 1.0, -1.0)
    losses = [np.exp(-z * H).sum() for H in model.staged_scores(X)]
    assert len(losses) == 15
    assert all(b < a for a, b in pairwise(losses))
    *_, last = model.staged_scores(X)
    assert np.mean(last.argmax(axis=1) == y) > 0.5
    sizes = model.sizes()
    assert sizes[0] == 1
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[-1] == len({s.atom for s in model.rounds})


def test_threads_do_not_change_the_answer():
    X, y = random_problem(m=300, d=20, k=3)
    one, two = (JointBoost(5, n_jobs=n).fit(Stumps(), X, y) for n in (1, 2))
    for a, b in zip(one.rounds, two.rounds, strict=True):
        assert a.atom == b.atom
        assert np.array_equal(a.yes, b.yes)
        assert np.array_equal(a.no, b.no)
