"""The contract of problems: a search needs nothing else."""

import inspect

import numpy as np
import pytest
from subset_problems import brute_force, make

from laconic.boost.master import RowsProblem
from laconic.subset.at_every_size import local_search
from laconic.subset.at_one_price import descend
from laconic.subset.contract import Searchable
from laconic.subset.plain_moves import PlainMoves
from laconic.subset.price import Price
from laconic.subset.problem import SubsetProblem

ASKED = {name for name in dir(Searchable) if not name.startswith("_")}


class Only:
    """Has the names of the contract and no others. They are those of a subset problem."""

    def __init__(self, problem, plain):
        for name in ASKED:
            setattr(self, name, getattr(problem, name))
        if plain:
            self.moves = lambda fit: PlainMoves(self, fit)
            self.openings = lambda empty, count: []


def test_both_kinds_of_problem_have_the_contract():
    assert "moves" in ASKED
    for kind in (SubsetProblem, RowsProblem):
        for name in ASKED - {"n_columns"}:
            asked = list(inspect.signature(getattr(Searchable, name)).parameters)
            has = list(inspect.signature(getattr(kind, name)).parameters)
            assert has[: len(asked)] == asked


@pytest.mark.parametrize("plain", [False, True])
def test_searches_ask_for_nothing_else(plain):
    problem = make(5, intercept=True)
    only = Only(problem, plain)
    at_one = descend(only, Price(3e-3, 9), only.fit(()))
    fits = local_search(only, 9)
    found = [fit.value + 3e-3 * len(fit.support) for fit in fits]
    best = brute_force(problem, 3e-3)
    np.testing.assert_allclose(min(found), best, rtol=1e-6)
    assert best * (1 - 1e-12) <= at_one.value + 3e-3 * len(at_one.support) <= 1.02 * best
