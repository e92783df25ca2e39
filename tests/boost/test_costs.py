"""Costs of models and of atoms beside others, against the cost of every set."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from laconic.boost import measures
from laconic.boost.costs import Cap, Costs
from laconic.boost.measures import AtomCount, Operations, SensorPrices, TargetBytes
from laconic.export.footprint import Target
from laconic.model.cost import model_cost
from laconic.numeric.threads import Threads
from laconic.pools import Bumps, Columns, Hinges, Patches, Pieces, Products, Rules, Stumps
from laconic.pools.signs import Signs

D, K = 36, 3
TARGET = Target("c99", 8, "float")


def bound(pool, d=D):
    rng = np.random.default_rng(0)
    X = rng.random((40, d))
    if isinstance(pool, Stumps | Rules):
        X[:, 1] = rng.integers(0, 4, 40)
        X[rng.random(X.shape) < 0.1] = np.nan
    return pool.bind(X, np.full(40, 1 / 40), Threads(1))


POOLS = {
    "columns": lambda: bound(Columns()),
    "groups": lambda: bound(Columns(groups=np.arange(D) // 5)),
    "many columns": lambda: bound(Columns(), 300),
    "stumps": lambda: bound(Stumps(bins=5, categorical=[1])),
    "signs": lambda: Signs(bound(Stumps(bins=3))),
    "products": lambda: bound(Products(), 9),
    "rules": lambda: bound(Rules(cuts=2, categorical=[1]), 9),
    "pieces": lambda: bound(Pieces(n_centres=6, n_radii=4, random_state=0)),
    "bumps": lambda: bound(Bumps(n_centres=6, n_radii=4, random_state=0)),
    "hinges": lambda: bound(Hinges(4, 2, n_inputs=3), 9),
    "patches": lambda: bound(Patches((6, 6), 5, 3, 2, (1.0, 1.5), random_state=0)),
}


def n_features(pool):
    return int(pool.extract(range(pool.n_atoms)).features().max()) + 1


def in_sensors(pool, seed=0):
    """Random prices for sensors of one to four features."""
    d, rng = n_features(pool), np.random.default_rng(seed)
    sensor = np.unique(rng.integers(0, d // 2, d), return_inverse=True)[1]
    return SensorPrices(pool, rng.uniform(0.1, 3.0, sensor.max() + 1), sensor)


def features(pool):
    return SensorPrices(pool, np.ones(n_features(pool)), np.arange(n_features(pool)))


MEASURES = {
    "atoms": AtomCount,
    "features": features,
    "prices": in_sensors,
    "operations of columns": Operations,
    "operations": lambda pool: Operations(pool, K),
    "bytes": lambda pool: TargetBytes(pool, K, TARGET, n_features(pool), K),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("pool", POOLS)
def test_an_atom_adds_what_the_model_with_it_has_more(pool, measure):
    pool = POOLS[pool]()
    measure, rng = MEASURES[measure](pool), np.random.default_rng(1)
    for size in (0, 1, 3, 8):
        chosen = rng.choice(pool.n_atoms, min(size, pool.n_atoms - 1), replace=False).tolist()
        others = np.setdiff1d(np.arange(pool.n_atoms), chosen)
        before = measure.of(chosen)
        naive = [measure.of([*chosen, other]) - before for other in others]
        np.testing.assert_allclose(measure.added(chosen)[others], naive, rtol=1e-12, atol=1e-12)
        assert min(naive) >= 0
        assert all(add == 0 or add >= measure.least * (1 - 1e-12) for add in naive)
        assert measure.of(rng.permutation(chosen).tolist()) == before


@pytest.mark.parametrize("pool", POOLS)
def test_measures_count_as_predictors_do(pool):
    pool = POOLS[pool]()
    for numbers in ([], [0], [2, 0, 3]):
        columns = sum(pool.width(n) for n in numbers)
        cost = model_cost(pool.extract(numbers), len(numbers), np.ones((columns, K)), np.ones(K))
        found = [MEASURES[name](pool).of(numbers) for name in ("atoms", "features", "operations")]
        assert found == list(cost[:3])


def all_sets(n, largest):
    return [s for size in range(largest + 1) for s in combinations(range(n), size)]


def test_every_sensor_is_paid_once():
    """Products of four features: 0 and 1 are of one sensor, 2 and 3 of their own."""
    pool = bound(Products(), 4)
    prices, sensor = np.array([5.0, 1.0, 0.5]), np.array([0, 0, 1, 2])
    measure = SensorPrices(pool, prices, sensor)
    for chosen in all_sets(pool.n_atoms, 3):
        read = {int(sensor[f]) for n in chosen for f in pool.atom(n).reads}
        assert measure.of(chosen) == sum(prices[s] for s in read)


def test_an_exact_sum_does_not_depend_on_the_order_of_features():
    prices = np.array([0.1, 0.2, 0.3, 0.4, 1e-9, 1e9])
    pool, numbers = bound(Columns(), 6), [0, 1, 2, 3, 4, 5]
    for order in (np.arange(6), np.array([5, 0, 4, 2, 1, 3])):
        other = SensorPrices(pool, prices[order], np.arange(6))
        assert other.of(numbers) == SensorPrices(pool, prices, np.arange(6)).of(numbers)


# -- how often bytes are measured ------------------------------------------------------------------


@pytest.mark.parametrize(("name", "most"), [("products", 3), ("stumps", 6), ("pieces", 2)])
def test_one_atom_of_each_kind_is_measured(name, most, monkeypatch):
    pool, calls = POOLS[name](), Counter()

    def counted(map, *given):
        calls["all"] += 1
        return len(map.names())

    monkeypatch.setattr(measures, "footprint", counted)
    measure = TargetBytes(pool, K, TARGET, 9, K)
    measure.added([1, 4])
    assert calls["all"] <= 1 + most < pool.n_atoms
    before = calls["all"]
    measure.added([1, 4])
    assert calls["all"] == before


class Stranger(Signs):
    """A pool that does not say which atoms are alike."""

    def alike(self, chosen=()):
        return None


@pytest.mark.parametrize("few", [True, False])
def test_a_large_pool_without_kinds_checks_an_atom_when_it_is_taken(few, monkeypatch):
    pool = Stranger(bound(Stumps(bins=3)))
    monkeypatch.setattr(measures, "FEW_ATOMS", pool.n_atoms if few else pool.n_atoms - 1)
    cap = Cap("max_bytes", 100.0, TargetBytes(pool, K, TARGET, D, K))
    chosen = next([*range(n)] for n in range(9) if cap.excess([*range(n + 1)]))
    beyond = set(cap.beyond(chosen).tolist())
    too_large = {n for n in range(pool.n_atoms) if cap.excess([*chosen, n])} - set(chosen)
    assert too_large
    assert beyond == (too_large if few else set())
    assert not Costs(caps=[cap]).allows([*chosen, max(too_large)])


# -- caps and ranking ------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["stumps", "products", "groups", "patches"])
def test_beyond_are_the_atoms_with_which_a_model_is_not_allowed(pool):
    pool, rng = POOLS[pool](), np.random.default_rng(2)
    for _ in range(5):
        chosen = rng.choice(pool.n_atoms, 2, replace=False).tolist()
        caps = []
        for name in rng.choice(list(MEASURES), 2, replace=False):
            measure = MEASURES[name](pool)
            most = measure.of(chosen) + float(rng.choice(measure.added(chosen)))
            caps.append(Cap(name, most, measure))
        costs = Costs(caps=caps)
        others = set(range(pool.n_atoms)) - set(chosen)
        naive = {n for n in others if not costs.allows([*chosen, n])}
        assert set(costs.beyond(chosen).tolist()) - set(chosen) == naive
        assert costs.allows(chosen)


def test_costs_that_add_up_to_a_cap_are_within_it():
    pool = bound(Columns(), 3)
    cap = Cap("max_cost", 0.3, SensorPrices(pool, np.array([0.1, 0.2, 1e-6]), np.arange(3)))
    assert cap.excess([0, 1]) == 0
    assert cap.beyond([0]).tolist() == []
    assert cap.beyond([0, 1]).tolist() == [2]
    assert cap.excess([0, 1, 2]) == pytest.approx(1e-6)


def test_an_atom_that_adds_nothing_is_ranked_at_the_least_price():
    pool = bound(Products(), 4)
    paid = SensorPrices(pool, np.array([5.0, 1.0, 0.5]), np.array([0, 0, 1, 2]))
    costs = Costs(paid)
    chosen = [pool.index((0, 2))]
    added = paid.added(chosen)
    assert added[pool.index((0, 1))] == added[pool.index((1, 2))] == 0
    assert np.array_equal(costs.ranked(chosen), np.where(added == 0, 0.5, added))
    assert costs.ranked(())[pool.index((0, 1))] == 5.0
    assert costs.total(chosen) == 6.0
    assert costs.least(chosen) == 0
    assert costs.least(()) == 1.5  # of features 2 and 3


def test_plain_costs_count_atoms_and_rank_nothing():
    costs = Costs()
    assert costs.plain
    assert costs.ranked([1]) is None
    assert (costs.total([4, 7]), costs.least([4]), costs.footprint([4])) == (2.0, 1.0, None)
    assert costs.beyond([4]).size == 0
    assert costs.allows(range(1000))
