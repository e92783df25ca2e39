"""Local search against brute force and against its starts."""

from itertools import combinations

import numpy as np
import pytest
from subset_problems import PRICES, brute_force, make

from laconic.subset import solver
from laconic.subset.at_every_size import SizeTable, Tries, local_search
from laconic.subset.contract import Fit
from laconic.subset.plain_moves import PlainMoves
from laconic.subset.problem import SubsetProblem


@pytest.mark.parametrize("seed", range(6))
def test_local_search_finds_the_best_of_small_problems(seed):
    """Never below the true best; here it also finds it, at every price."""
    problem = make(seed, nonnegative=bool(seed % 2), intercept=True)
    fits = local_search(problem, problem.n_columns)
    for price in PRICES:
        best = brute_force(problem, price)
        found = min(fit.value + price * len(fit.support) for fit in fits)
        assert found >= best * (1 - 1e-12)
        np.testing.assert_allclose(found, best, rtol=1e-6)


def test_local_search_is_never_worse_than_its_starts():
    problem = make(23, n_rows=300, n_columns=40)
    order = np.random.default_rng(1).permutation(40)[:12]
    prefixes = [order[:n].tolist() for n in range(1, 13)]
    by_size = {len(fit.support): fit.value for fit in local_search(problem, 12, prefixes)}
    for prefix in prefixes:
        assert by_size[len(prefix)] <= problem.fit(tuple(sorted(prefix))).value * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_pair_is_found_without_the_best_column(seed):
    """Among stumps of few features swaps from the best column alone often miss it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    columns = (X[:, np.repeat(np.arange(4), 8)] > rng.normal(size=32)).astype(int)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0, 1.0, -1.0)
    problem = SubsetProblem(columns, y, np.full(120, 1 / 120), l1=1e-3)
    best = min(problem.fit(pair).value for pair in combinations(range(32), 2))
    found = local_search(problem, 2, sweeps=1, tries=3)[-1].value
    assert found == pytest.approx(best, rel=1e-7)


def test_openings_are_unlike_each_other():
    problem = make(3, n_rows=200, n_columns=30)
    kept = problem.unlike(list(range(30)), 6)
    table = np.abs(np.corrcoef(problem.columns[:, kept].T))
    assert kept[0] == 0
    assert 1 < len(kept) <= 6
    assert table[~np.eye(len(kept), dtype=bool)].max() <= 0.7 + 1e-9


def test_fewer_tries_are_less_work_and_keep_the_promise_of_the_starts(monkeypatch):
    solved = {}
    settle = solver.settle
    for tries in (1, 5):
        problem = make(23, n_rows=300, n_columns=40)
        prefixes = [list(range(n)) for n in range(1, 13)]
        solves = []

        def counted(*args, solves=solves):
            solves.append(1)
            return settle(*args)

        monkeypatch.setattr(solver, "settle", counted)
        fits = local_search(problem, 12, prefixes, sweeps=1, tries=tries)
        by_size = {len(fit.support): fit.value for fit in fits}
        for prefix in prefixes:
            assert by_size[len(prefix)] <= problem.fit(tuple(prefix)).value * (1 + 1e-12)
        solved[tries] = len(solves)
    assert 0 < solved[1] < solved[5]


def test_a_seed_is_an_answer_on_any_number_of_threads():
    problem = make(29, n_rows=200, n_columns=60, nonnegative=False, intercept=True)
    runs = [
        local_search(problem, 10, restarts=3, seed=4, n_jobs=n_jobs) for n_jobs in (1, 2, 3, None)
    ]
    for other in runs[1:]:
        assert [fit.support for fit in other] == [fit.support for fit in runs[0]]
        for a, b in zip(other, runs[0], strict=True):
            np.testing.assert_array_equal(a.weights, b.weights)


def test_restarts_never_make_it_worse():
    problem = make(31, n_rows=200, n_columns=60, nonnegative=False, intercept=True)
    once = local_search(problem, 12)
    more = local_search(problem, 12, restarts=4)
    for a, b in zip(more, once, strict=True):
        assert a.value <= b.value * (1 + 1e-7)


def test_any_problem_with_the_contract_can_be_searched():
    """Groups of columns, here pairs, through `PlainMoves`."""
    pairs = Pairs(make(37, n_columns=12, l1=0.0, nonnegative=False))
    fits = local_search(pairs, 3)
    for size, fit in enumerate(fits):
        best = min(pairs.fit(s).value for s in combinations(range(6), size))
        assert best * (1 - 1e-9) <= fit.value <= best * 1.02


def test_steps_that_were_tried_are_not_tried_again():
    """A second sweep over a table that nothing betters makes no fit at all."""
    pairs = Pairs(make(37, n_columns=12, l1=0.0, nonnegative=False))
    table = SizeTable(pairs.moves, 4)
    table.offer(pairs.fit(()))
    table.sweep(4)
    before = table.fits(), pairs.fits
    table.sweep(2)
    assert (table.fits(), pairs.fits) == before


def test_limits_say_what_counts():
    problem = make(23, n_rows=300, n_columns=20)
    fits = [problem.fit(()), problem.fit((3,)), problem.fit((7,))]
    low, high = sorted(fits[1:], key=lambda fit: fit.value)
    for worth, kept in ((0.0, low), (1.0, high)):
        table = SizeTable(problem.moves, 2, Tries(worth=worth))
        table.offer(high, low)
        assert table.fits() == [kept]


class Pairs:
    """Columns 2j and 2j + 1 of a problem are in or out together."""

    n_columns = 6

    def __init__(self, problem):
        self.problem = problem
        self.fits = 0

    def fit(self, support, start=None):
        self.fits += 1
        columns = tuple(c for j in support for c in (2 * j, 2 * j + 1))
        return Fit(support, *self.problem.fit(columns)[1:])

    def with_column(self, fit, column, target=np.inf):
        return self.fit(tuple(sorted((*fit.support, column))))

    def without(self, fit, column):
        return self.fit(tuple(c for c in fit.support if c != column))

    def moves(self, fit):
        return PlainMoves(self, fit)

    def openings(self, empty, count):
        return []

    def gains(self, fit):
        out = np.full(6, -np.inf)
        for j in set(range(6)) - set(fit.support):
            out[j] = fit.value - self.with_column(fit, j).value
        return out

    def losses_of_dropping(self, fit):
        return np.array([self.without(fit, j).value - fit.value for j in fit.support])
