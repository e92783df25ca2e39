"""The master problem in its two forms, and both against naive versions."""

from itertools import combinations

import numpy as np
import pytest
from loops import total_loop

from laconic.boost.master import RowsMaster, RowsProblem, SignsMaster, make_master
from laconic.losses import BINARY_LOSSES
from laconic.numeric.threads import Threads
from laconic.pools import Columns
from laconic.rows.rows import rows_in_memory
from problems import make_rows, random_problem


def signs_rows(atoms=(3, 40, 70), intercept=True):
    """Rows over stumps as signs, and both masters of them."""
    loop = total_loop(1, intercept=intercept)
    rows, signs = loop.record.rows, loop.settle.master
    rows.reset(atoms)
    assert isinstance(signs, SignsMaster)
    return rows, signs, RowsMaster(rows, signs.l1)


@pytest.mark.parametrize("intercept", [False, True])
def test_both_forms_have_the_same_optimum_of_every_subset(intercept):
    rows, signs, plain = signs_rows(intercept=intercept)
    for size in range(4):
        for support in combinations(range(3), size):
            one, two = signs.problem().fit(support), plain.problem().fit(support)
            assert one.value == pytest.approx(two.value, rel=1e-9)
            np.testing.assert_allclose(signs.weights(one), plain.weights(two), atol=1e-4)
            # Weights of the rows' columns, which are centred, have the value of the fit.
            for master, fit in ((signs, one), (plain, two)):
                W = master.weights(fit)
                l1 = signs.l1 * np.abs(W[int(intercept) :]).sum()
                assert rows.evaluate(W)[0] + l1 == pytest.approx(fit.value, rel=1e-12)


@pytest.mark.parametrize("form", [0, 1])
def test_weights_go_to_a_fit_and_back(form):
    _, *masters = signs_rows()
    master = masters[form]
    fit = master.problem().fit((0, 2))
    W, intercept = master.weights(fit), master.intercept(fit)
    again = master.start(W, fit.support, fit.value, None)
    np.testing.assert_allclose(again.weights, fit.weights, rtol=1e-12, atol=1e-14)
    assert (again.support, again.value) == (fit.support, fit.value)
    exact = master.start(W, fit.support, fit.value, intercept)
    assert np.array_equal(exact.weights, fit.weights)


@pytest.mark.parametrize("form", [0, 1])
def test_a_fit_without_its_columns_of_weight_zero_is_the_same_model(form):
    _, *masters = signs_rows()
    master = masters[form]
    small = master.problem().fit((0, 2))
    fit = small._replace(support=(0, 1, 2), weights=master.grown(small))
    narrow = master.narrowed(fit, (0, 2))
    assert narrow.support == (0, 2)
    assert np.array_equal(master.weights(narrow), master.weights(fit))
    assert np.array_equal(narrow.weights, small.weights)


@pytest.mark.parametrize("form", [0, 1])
def test_a_fit_grows_with_the_columns(form):
    rows, *masters = signs_rows()
    master = masters[form]
    fit = master.problem().fit((0, 2))
    rows.append(20)
    start = master.grown(fit)
    assert master.problem().fit((0, 1, 2, 3), start).value <= fit.value
    assert master.problem().fit((0, 2)).value == pytest.approx(fit.value, rel=1e-9)
    assert np.count_nonzero(start) == np.count_nonzero(fit.weights)


def test_the_form_follows_pool_loss_and_atoms_always_in():
    rows, signs, _ = signs_rows()
    assert isinstance(make_master(rows, 1e-4, fixed=1), RowsMaster)
    X, labels = random_problem(m=40, d=3)
    assert isinstance(make_master(make_rows(X, labels, loss="log"), 0.1), RowsMaster)
    assert isinstance(signs, SignsMaster)


# -- through the rows ------------------------------------------------------------------------------


def problem_of(groups=None, fixed=0, loss="log", l1=0.01):
    X, y = random_problem(seed=6, m=80, d=6)
    rows = make_rows(X, y, loss=loss, groups=groups)
    rows.reset(range(rows.pool.n_atoms))
    return RowsProblem(rows, l1, fixed)


def test_gains_are_newton_steps_along_single_weights():
    """½ (|g| − l1)₊² / h of every weight of an atom, from the gradient and the curvature alone."""
    problem = problem_of(groups=[0, 0, 1, 1, 2, 2])
    fit = problem.fit((1,))
    rows, W = problem.rows, problem.rows.padded(fit.weights)
    gradient = rows.evaluate(W)[1]
    expected = np.zeros(3)
    for column in range(1, 7):
        for output in range(3):
            unit = np.zeros_like(W)
            unit[column, output] = 1.0
            bend = rows.curve(unit)[column, output]
            over = max(abs(gradient[column, output]) - 0.01, 0.0)
            expected[(column - 1) // 2] += 0.5 * over**2 / bend
    expected[1] = -np.inf
    np.testing.assert_allclose(problem.gains(fit), expected, rtol=1e-9)


def test_losses_of_dropping_rank_atoms_as_refits_do():
    problem = problem_of()
    fit = problem.fit((0, 1, 2, 3, 4, 5))
    true = [problem.without(fit, atom).value - fit.value for atom in fit.support]
    expected = problem.losses_of_dropping(fit)
    assert np.array_equal(np.argsort(true)[:2], np.argsort(expected)[:2])
    assert np.all(np.array(true) > 0)


def test_moves_are_refits_of_their_supports():
    problem = problem_of()
    fit = problem.fit((0, 3))
    assert problem.with_column(fit, 1).support == (0, 1, 3)
    assert problem.with_column(fit, 1).value == pytest.approx(problem.fit((0, 1, 3)).value)
    assert problem.without(fit, 0).support == (3,)
    assert problem.without(fit, 0).value == pytest.approx(problem.fit((3,)).value)


def test_atoms_always_in_are_not_for_the_search():
    free, fixed = problem_of(), problem_of(fixed=2)
    assert (free.n_columns, fixed.n_columns) == (6, 4)
    assert fixed.fit(()).value == pytest.approx(free.fit((0, 1)).value, rel=1e-9)
    assert fixed.fit((1,)).value == pytest.approx(free.fit((0, 1, 3)).value, rel=1e-9)
    assert len(fixed.gains(fixed.fit(()))) == 4


def test_a_loss_of_the_margin_goes_through_the_rows_too():
    X, y = random_problem(seed=2, m=70, d=4, k=2)
    weight, threads = np.full(70, 1 / 70), Threads(1)
    pool = Columns("max").bind(X, weight, threads)
    rows = rows_in_memory([pool], BINARY_LOSSES["logistic"](), y, weight, 1, threads, True)
    two = make_rows(X, y, loss="log", scale="max")
    for problem in (rows, two):
        problem.reset(range(4))
    one, other = RowsProblem(rows, 0.01), RowsProblem(two, 0.01)
    # Two scores are one: their difference, which has the same l1 norm at its least.
    for support in ((0,), (1, 2), (0, 1, 2, 3)):
        assert one.fit(support).value == pytest.approx(other.fit(support).value, rel=1e-9)
