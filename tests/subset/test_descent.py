"""Local search from where one stands, at one price."""

import numpy as np
import pytest
from subset_problems import LOSS, brute_force, make

from laconic.subset.descent import descend
from laconic.subset.price import Price


@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("price", [3e-4, 3e-3, 2e-2])
def test_never_worse_than_its_start_nor_better_than_brute_force(loss, price):
    for seed in range(4):
        problem = make(seed, loss, n_columns=8)
        best = brute_force(problem, price)
        for start in ((), (0, 3), tuple(range(8))):
            fit = problem.fit(start)
            found = descend(problem, Price(price, 8), fit)
            objective = found.value + price * len(found.support)
            assert objective <= fit.value + price * len(start) + 1e-12
            assert objective >= best - 1e-10


def test_hit_rate_is_high():
    hits = [
        np.isclose(
            (fit := descend(p, Price(3e-3, 9), p.fit(()))).value + 3e-3 * len(fit.support),
            brute_force(p, 3e-3),
            rtol=1e-6,
        )
        for p in map(make, range(20))
    ]
    print(f"descent from nothing finds the best support in {np.mean(hits):.0%} of 20 problems")
    assert np.mean(hits) >= 0.7


def test_a_cap_is_met_by_dropping():
    problem = make(0)
    fit = descend(problem, Price(0.0, 3), problem.fit(tuple(range(9))))
    assert len(fit.support) <= 3
    assert fit.value >= brute_force(problem, 0.0, 3) - 1e-10


def test_only_fresh_columns_are_tried_while_nothing_moves():
    problem = make(1)
    still = descend(problem, Price(3e-3, 9), problem.fit(()))
    assert descend(problem, Price(3e-3, 9), still, fresh=[]).support == still.support
    assert descend(problem, Price(3e-3, 9), problem.fit(()), fresh=[]).support == ()
