"""Local search against brute force and against its starts."""

import numpy as np
import pytest
from subset_problems import PRICES, brute_force, make

from laconic.subset.local import local_search


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
