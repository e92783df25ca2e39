"""Every search beside the best of all subsets: what must hold, and how often the best is found."""

from importlib.util import find_spec

import numpy as np
import pytest
from subset_problems import PRICES, SETTINGS, best_of, every_value, make

from laconic.subset import find_method
from laconic.subset.at_every_size import local_search
from laconic.subset.exact import branch_and_bound

SAMPLERS = ("tabu", "anneal") if find_spec("dwave") else ()
# A hit is an objective within this part of the best.
HIT = 1e-8


def reports(record_property, hits):
    """Record hit rates with the results (``pytest --junit-xml FILE -o junit_family=legacy``)."""
    for method, found in hits.items():
        record_property(f"hits of {method}", f"{sum(found)} of {len(found)}")


def test_brute_force_is_the_fit_of_every_subset():
    for loss, nonnegative, intercept in (setting.values for setting in SETTINGS):
        problem = make(3, loss, 2e-3, nonnegative, intercept, n_columns=4)
        values = every_value(problem)
        for number, value in enumerate(values):
            support = tuple(j for j in range(4) if number >> j & 1)
            np.testing.assert_allclose(value, problem.fit(support).value, rtol=1e-9)
        assert best_of(values, 0.0, 1) == min(values[[0, 1, 2, 4, 8]])


@pytest.mark.parametrize(
    ("loss", "nonnegative", "n"),
    [("exponential", True, 16), ("logistic", False, 14), ("squared_hinge", True, 16)],
)
def test_up_to_sixteen_columns(loss, nonnegative, n, record_property):
    """All 2^n supports, at two prices and under a cap."""
    problem = make(41, loss, 1e-3, nonnegative, True, n_rows=40, n_columns=n)
    values = every_value(problem)
    hits = {method: [] for method in ("local", *SAMPLERS[:1])}
    for price, cap in ((PRICES[1], n), (PRICES[2], n), (0.0, 4)):
        best = best_of(values, price, cap)
        proof = branch_and_bound(problem, price, cap)
        assert proof.objective == pytest.approx(best, rel=HIT)
        assert proof.bound <= best * (1 + 1e-12)
        for method, found in hits.items():
            value = objective(problem, method, price, cap)
            assert value >= best * (1 - 1e-9)
            found.append(value <= best * (1 + HIT))
    reports(record_property, hits)


def objective(problem, method, price, cap):
    fit, _ = find_method(method)(problem, price, cap, ())
    assert len(fit.support) <= cap
    return fit.value + price * len(fit.support)


@pytest.mark.long
def test_many_small_problems(record_property):
    """Seven columns, every loss, weights of one sign or both, with an intercept and without."""
    hits = {method: [] for method in ("local", *SAMPLERS)}
    for seed, setting in enumerate(SETTINGS):
        problem = make(seed, setting.values[0], 1e-3, *setting.values[1:], n_columns=7)
        values, known = every_value(problem), local_search(problem, 7)
        for price in PRICES:
            best = best_of(values, price)
            proof = branch_and_bound(problem, price, known=known)
            assert proof.objective == pytest.approx(best, rel=HIT)
            assert proof.bound <= best * (1 + 1e-12)
            for method, found in hits.items():
                if method == "local":  # one search for all prices
                    value = min(fit.value + price * len(fit.support) for fit in known)
                else:
                    value = objective(problem, method, price, 7)
                assert value >= best * (1 - 1e-9)
                found.append(value <= best * (1 + HIT))
    reports(record_property, hits)
    assert np.mean(hits["local"]) == 1.0
    assert all(np.mean(hits[method]) > 0.5 for method in SAMPLERS)
