"""Costs of atoms, alone and beside others, against the cost of every set."""

from itertools import combinations

import numpy as np
import pytest

from laconic.boost.costs import FixedCosts, OperationCosts
from laconic.numeric.threads import Threads
from laconic.pools import Patches


@pytest.fixture(scope="module")
def patches():
    X = np.random.default_rng(0).random((12, 36))
    pool = Patches((6, 6), 3, 3, 2, 1.5)
    return pool.bind(X, np.full(12, 1 / 12), Threads(1))


def all_sets(n, largest):
    return [s for size in range(largest + 1) for s in combinations(range(n), size)]


def test_operations_of_an_atom_are_what_the_set_with_it_takes_more(patches):
    """Templates and masks that atoms share are computed, and cost, once."""
    costs = OperationCosts(patches)
    atoms = np.linspace(0, patches.n_atoms - 1, 7).astype(int).tolist()
    alone, shared = costs.given(()), 0
    for chosen in all_sets(len(atoms), 3):
        numbers = [atoms[k] for k in chosen]
        given = costs.given(numbers)
        for atom in set(atoms) - set(numbers):
            assert given[atom] == costs.total([*numbers, atom]) - costs.total(numbers)
            shared += given[atom] < alone[atom]
    assert shared > 0


def test_operations_do_not_depend_on_the_order(patches):
    costs = OperationCosts(patches)
    numbers = [0, patches.n_atoms // 2, patches.n_atoms - 1]
    assert costs.total(numbers) == costs.total(numbers[::-1])


def test_fixed_costs_add_up():
    values = np.array([1.0, 5.0, 0.5, 2.0])
    costs = FixedCosts(values)
    for chosen in all_sets(4, 4):
        assert costs.total(chosen) == sum(values[k] for k in chosen)
        assert np.array_equal(costs.given(chosen), values)
