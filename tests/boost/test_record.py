"""Path entries: what they say of the model that the rows stand at."""

import numpy as np
import pytest
from loops import Fixed

from laconic.boost.costs import Costs
from laconic.boost.record import Recorder, weights_of
from laconic.correct import Newton
from laconic.penalties import L2
from problems import make_rows, random_problem


def at_a_solution(atoms, intercept=True, costs=None, **settings):
    X, y = random_problem(seed=4, m=60, d=5)
    rows = make_rows(X, y, intercept=intercept, scale="max", **settings)
    rows.reset(atoms)
    start = np.zeros((rows.n_columns, rows.n_outputs))
    return X, y, Recorder(rows, costs), Newton(1e-10).solve(rows, L2(1e-2), start)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("atoms", [(), (3,), (4, 0, 2)])
def test_an_entry_predicts_what_the_rows_have(atoms, intercept):
    X, y, record, solution = at_a_solution(atoms, intercept)
    entry = record.entry(solution, (0.1,) * len(atoms))
    assert entry.numbers == atoms
    assert [atom.feature for atom in entry.atoms] == list(atoms)
    scores = entry.scores(X)
    shifted = scores + (np.arange(3) != y[:, None])  # the margin loss
    losses = np.log(np.exp(shifted - scores[np.arange(60), y][:, None]).sum(axis=1))
    assert losses.mean() == pytest.approx(entry.loss, rel=1e-12)
    assert np.array_equal(weights_of(entry, intercept), solution.weights)
    assert entry.inner == pytest.approx(np.sum(solution.loss_gradient * solution.weights))
    assert np.isnan(entry.steepest)


def test_only_the_atoms_kept_are_written_down():
    X, _, record, solution = at_a_solution((4, 0, 2))
    weights = solution.weights.copy()
    weights[2] = 0.0  # of atom 0; the intercept comes first
    record.rows.evaluate(weights)
    entry = record.entry(solution._replace(weights=weights), (0.2, 0.3), kept=(0, 2))
    assert entry.numbers == (4, 2)
    whole = record.entry(solution._replace(weights=weights), (0.2, 0.0, 0.3))
    np.testing.assert_allclose(entry.scores(X), whole.scores(X), rtol=1e-12)
    assert entry.cost == 2.0
    assert whole.cost == 3.0


def test_groups_of_columns_are_kept_whole():
    X, _, record, solution = at_a_solution((1, 0), groups=[0, 0, 1, 1, 1])
    entry = record.entry(solution, (0.1,), kept=(1,))
    assert entry.numbers == (0,)
    assert np.array_equal(entry.weights, solution.weights[4:])  # behind the group of three
    assert entry.scores(X).shape == (60, 3)


def test_costs_are_those_of_the_set():
    _, _, record, solution = at_a_solution((4, 1), costs=Costs(Fixed(np.arange(5.0))))
    assert record.entry(solution, (0.1, 0.1)).cost == 5.0


@pytest.mark.parametrize("atoms", [(), (3,), (4, 0, 2)])
def test_an_entry_knows_all_that_its_predictor_costs(atoms):
    _, _, record, solution = at_a_solution(atoms)
    entry = record.entry(solution, (0.1,) * len(atoms))
    n, k = len(atoms), 3
    assert entry.predictor_cost == (n, n, n * k, 8 * (n * k + k + n))
    assert entry.footprint is None


def test_the_clock_goes_on_from_where_it_was():
    _, _, record, solution = at_a_solution((1,))
    record.start(100.0)
    first, second = (record.entry(solution, (0.1,)).seconds for _ in range(2))
    assert 100.0 <= first <= second
