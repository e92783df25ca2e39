"""Branch and bound is brute force, and its bounds hold."""

from itertools import count

import numpy as np
import pytest
from subset_problems import PRICES, SETTINGS, brute_force, brute_force_within, few_groups, make

from laconic.subset import exact
from laconic.subset.at_every_size import local_search
from laconic.subset.exact import branch_and_bound
from laconic.subset.weight_bounds import LevelSet


@pytest.mark.parametrize(("loss", "nonnegative", "intercept"), SETTINGS)
@pytest.mark.parametrize("price", PRICES)
def test_exact_is_brute_force(loss, nonnegative, intercept, price):
    problem = make(11, loss, 1e-3, nonnegative, intercept)
    best = brute_force(problem, price)
    proof = branch_and_bound(problem, price)
    np.testing.assert_allclose(proof.objective, best, rtol=1e-9)
    assert proof.bound <= best * (1 + 1e-12)
    assert proof.bound >= best * (1 - 1e-7)


@pytest.mark.parametrize("cap", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("price", [0.0, 2e-3])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_exact_with_a_cap_is_brute_force(cap, price, nonnegative):
    problem = make(13, nonnegative=nonnegative, intercept=True)
    best = brute_force(problem, price, cap)
    proof = branch_and_bound(problem, price, cap)
    assert len(proof.fit.support) <= cap
    np.testing.assert_allclose(proof.objective, best, rtol=1e-9)
    assert best * (1 - 1e-7) <= proof.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize(("price", "cap"), [(0.0, 4), (2e-3, None), (2e-2, 9)])
@pytest.mark.parametrize("seed", range(3))
def test_exact_within_limits_is_brute_force(most, price, cap, seed):
    problem, limit = make(seed, nonnegative=False, intercept=True), few_groups(most, seed)

    def allows(support):
        return limit(support) and (cap is None or len(support) <= cap)

    best = brute_force_within(problem, price, allows)
    proof = branch_and_bound(problem, price, cap, allows=limit)
    assert allows(proof.fit.support)
    np.testing.assert_allclose(proof.objective, best, rtol=1e-9)
    assert best * (1 - 1e-7) <= proof.bound <= best * (1 + 1e-12)


def test_an_allowed_start_is_not_lost():
    """The local search before may know only better fits that are not allowed."""
    problem, allows = make(3, nonnegative=False), few_groups(1, 3)
    start = max((tuple(c for c in range(9) if allows((0, c))), (0,)), key=len)
    proof = branch_and_bound(problem, 0.0, None, [start], max_nodes=0, allows=allows)
    assert allows(proof.fit.support)
    assert proof.objective <= problem.fit(start).value


@pytest.mark.parametrize("max_nodes", [0, 1, 3, 10])
def test_an_unfinished_proof_is_still_one(max_nodes):
    """From a poor start and after a few nodes, the bound must hold and the answer be attained."""
    problem = make(17, n_columns=12, nonnegative=False, intercept=True)
    best = brute_force(problem, 2e-3)
    poor = [problem.fit(())]
    proof = branch_and_bound(problem, 2e-3, known=poor, max_nodes=max_nodes)
    assert proof.nodes <= max_nodes
    assert proof.bound <= best * (1 + 1e-12)
    assert proof.objective >= best * (1 - 1e-12)


def test_a_search_says_how_far_it_is():
    """From before the first node to the end, the bound rises to the best objective."""
    problem = make(17, n_columns=12, nonnegative=False, intercept=True)
    said = []
    proof = branch_and_bound(
        problem, 2e-3, known=[problem.fit(())], watch=lambda *told: said.append(told), told_every=0
    )
    nodes, objective, bound = np.transpose(said)
    assert proof.nodes > 2
    assert nodes.tolist() == [*range(proof.nodes + 1), proof.nodes]
    assert (np.diff(objective) <= 0).all()
    assert (np.diff(bound) >= 0).all()
    assert said[-1] == (proof.nodes, proof.objective, proof.bound)
    silent = branch_and_bound(problem, 2e-3, known=[problem.fit(())])
    assert silent.objective == proof.objective
    assert silent.nodes == proof.nodes


@pytest.mark.parametrize("l1", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("cap", [4, 12])
@pytest.mark.parametrize("seed", [7, 17])
def test_a_tree_at_its_end_leaves_no_gap(l1, cap, seed):
    """Nearly alike columns and hardly an l1: bounds on the weights are very large."""
    problem = make(seed, l1=l1, nonnegative=False, intercept=True, n_columns=12, n_rows=60)
    best = min(fit.value for fit in local_search(problem, cap))
    proof = branch_and_bound(problem, 0.0, cap, max_nodes=20_000)
    assert proof.nodes < 20_000
    assert proof.objective <= best * (1 + 1e-9)
    assert proof.objective * (1 - 1e-7) <= proof.bound <= proof.objective


@pytest.mark.parametrize("max_nodes", [0, 1, 2])
def test_no_bound_is_below_zero(max_nodes):
    """Not even where the loss can be all but 0, and bounds on the weights are very large."""
    problem = make(17, l1=1e-9, nonnegative=False, intercept=True, n_rows=8)
    proof = branch_and_bound(problem, 0.0, 3, max_nodes=max_nodes)
    assert 0.0 <= proof.bound <= proof.objective


@pytest.mark.parametrize("readings", [0, 1, 5, 40])
def test_seconds_count_from_the_start(monkeypatch, readings):
    """Also while weights are bounded, before the tree: there is a bound and an answer any time."""
    problem = make(17, n_columns=12, nonnegative=False, intercept=True)
    best, clock = brute_force(problem, 2e-3), count()
    monkeypatch.setattr(exact, "perf_counter", lambda: next(clock))
    proof = branch_and_bound(problem, 2e-3, known=[problem.fit(())], max_seconds=readings)
    # One reading a weight (of 13, on both sides) and a node, one at the start and one too late.
    assert next(clock) == readings + 2
    assert proof.nodes == max(readings - 26, 0)
    assert 0.0 < proof.bound <= best * (1 + 1e-12)
    assert proof.objective >= best * (1 - 1e-12)


@pytest.mark.parametrize("times", [1.05, 1.1, 1.2])
def test_weight_bounds_hold_on_the_level_set(times):
    problem = make(19, l1=0.01, nonnegative=False, intercept=True, n_columns=4)
    best = problem.fit(tuple(range(4)))
    level = best.value * times
    most = LevelSet.of(problem, best.value * 1.1).bounds(level)
    S = problem.matrix(range(4))
    rng = np.random.default_rng(0)
    reached = np.zeros(5)
    for _ in range(300):
        direction = rng.normal(size=5)
        low, high = 0.0, 50.0
        for _ in range(40):
            t = 0.5 * (low + high)
            w = best.weights + t * direction
            value = problem.derivatives(S, w)[0] + 0.01 * np.abs(w[:4]).sum()
            low, high = (t, high) if value <= level else (low, t)
        reached = np.maximum(reached, np.abs(best.weights + low * direction))
    assert np.all(reached <= most)
    assert np.all(most <= 3 * reached)
