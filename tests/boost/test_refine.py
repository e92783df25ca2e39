"""Refinement: the local search over all atoms of the pool that follows a grown path."""

from itertools import combinations

import numpy as np
import pytest
from loops import share_loop, total_loop
from sklearn.base import clone

from laconic import ShareBoostClassifier
from laconic.boost.correct_all import Refinement
from laconic.boost.refine import refine
from laconic.model.atoms import Column
from problems import random_problem


def refined(loop):
    state = loop.begin()
    loop.grow(state)
    grown = list(state.entries)
    refine(loop, state)
    return grown, Refinement.of(state)


def test_the_refined_path_is_between_the_grown_one_and_the_best_of_all_subsets():
    loop = share_loop(3)
    grown, found = refined(loop)
    assert [entry.size for entry in found.entries] == [0, 1, 2, 3]
    settle, pool = loop.settle, loop.record.rows.pool
    for before, after in zip(grown, found.entries, strict=True):
        assert after.objective <= before.objective
        assert after.loss <= before.loss
        best = np.inf
        for subset in combinations(range(pool.n_atoms), after.size):
            settle.rows.reset(subset)
            best = min(best, settle.solve(np.zeros((0, 3))).value)
        # Beside what the corrector's tolerance leaves open.
        assert best * (1 - 1e-4) <= after.objective <= best * 1.05


def test_gains_of_refined_entries_add_up_to_the_fall_of_the_loss():
    """Up to the corrector's tolerance: a swap of the only atom solves the empty model again."""
    grown, found = refined(share_loop(4))
    for entry in found.entries:
        assert sum(entry.gains) == pytest.approx(grown[0].loss - entry.loss, rel=1e-6)
        assert len(entry.gains) == entry.size


def test_every_refined_entry_has_its_steepest_gradient():
    _, found = refined(share_loop(3))
    assert np.all(np.isfinite([entry.steepest for entry in found.entries]))


def test_steps_are_counted_and_told():
    loop, told = share_loop(3), []
    loop.hooks = [lambda state: told.append((len(state.own.entries), state.own.swept))]
    _, found = refined(loop)
    # Four rounds grow, three steps refine a size each, and five sweep back and forth.
    assert told == [(0, 0)] * 4 + [(2, 0), (3, 0), (4, 0)] + [(4, n) for n in range(1, 6)]
    assert found.swept == 5


def test_a_loop_that_drops_atoms_cannot_be_refined():
    loop = total_loop(2)
    with pytest.raises(TypeError, match="grown by a rule and keep all atoms"):
        refine(loop, loop.begin())


# -- as the estimator asks for it ------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"pool": "stumps"}, {"penalty": "l1", "alpha": 1e-3}])
@pytest.mark.parametrize("seed", [0, 1])
def test_refinement_never_raises_the_objective_of_any_size(settings, seed):
    X, y = random_problem(seed=seed, m=100, d=10, k=3)
    plain = ShareBoostClassifier(5, **settings).fit(X, y)
    refined = ShareBoostClassifier(5, refine=True, **settings).fit(X, y)
    assert refined.path_.sizes.tolist() == plain.path_.sizes.tolist()
    assert np.all(refined.path_.objectives <= plain.path_.objectives)
    assert np.all(refined.path_.losses <= plain.path_.losses)


def test_refinement_finds_the_pair_that_greed_misses():
    """x0 looks best alone, but the label is the sign of x1 + x2 and x0 only hints at it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 5))
    y = (X[:, 1] + X[:, 2] > 0).astype(int)
    X[:, 0] = np.clip(X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(400), -1, 1)
    plain = ShareBoostClassifier(2, alpha=1e-6).fit(X, y)
    refined = ShareBoostClassifier(2, alpha=1e-6, refine=True).fit(X, y)
    assert Column(0) in plain.atoms_
    assert set(refined.atoms_) == {Column(1), Column(2)}
    assert refined.path_.losses[-1] < 0.2 * plain.path_.losses[-1]


def test_refinement_keeps_what_must_stay_in_and_out(three_classes):
    X, y = three_classes
    worst = ShareBoostClassifier(8).fit(X, y).atoms_[-1]
    best = ShareBoostClassifier(1).fit(X, y).atoms_[0]
    model = ShareBoostClassifier(4, refine=True, include=[worst], exclude=[best]).fit(X, y)
    for entry in model.path_:
        assert worst in entry.atoms
        assert best not in entry.atoms
        assert len(set(entry.atoms)) == entry.size


def test_refinement_is_deterministic(three_classes, assert_identical):
    X, y = three_classes
    settings = ShareBoostClassifier(5, pool="stumps", refine=True)
    assert_identical(clone(settings).fit(X, y), clone(settings).fit(X, y))
