"""TotalQBoost's settling stage: which atoms of H are in the model."""

from itertools import combinations

import numpy as np
import pytest
from loops import Fixed, total_loop

from laconic import TotalQBoostClassifier
from laconic.boost.checkpoint import Checkpoint
from laconic.boost.costs import Cap, Costs
from laconic.boost.measures import SensorPrices
from laconic.boost.search_state import SearchState
from problems import random_problem


def same_path(one, two):
    assert [entry.numbers for entry in one] == [entry.numbers for entry in two]
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.weights, b.weights)
        assert np.array_equal(a.base, b.base)


@pytest.mark.parametrize("hot_start", [0, 3, 20])
@pytest.mark.parametrize("cap", [3, 5, 7, 20])
def test_more_rounds_go_on_to_what_a_fresh_fit_finds(cap, hot_start, tmp_path):
    """Also at no price with a cap that the first rounds cannot reach."""
    settings = {"price": 0.0, "max_atoms": cap, "hot_start": hot_start}
    for rounds in (5, 8):
        loop = total_loop(rounds, **settings)
        rows = loop.record.rows
        with Checkpoint(tmp_path / "fit", "few and more") as saver:
            state = saver.resume(rows.pool, rows.n_outputs, loop.settle)
            loop.hooks = [saver]
            loop.grow(state)
    fresh = total_loop(8, **settings)
    whole = fresh.begin()
    fresh.grow(whole)
    same_path(state.entries, whole.entries)
    assert whole.entries[-1].size <= cap


def grown(loop):
    state = loop.begin()
    loop.grow(state)
    return state


def test_an_entry_says_whether_its_fit_came_to_its_end():
    """And what is proven of it: no weights on its atoms are better by more than the gap."""
    loop = total_loop(6)
    state = grown(loop)
    rows, master = loop.record.rows, loop.settle.master
    for entry in state.entries:
        rows.reset(entry.numbers)
        best = master.problem().fit(tuple(range(entry.size)))
        certificate = entry.certificate
        assert certificate.converged
        assert 0 <= certificate.decrement <= 1e-10 * entry.objective
        assert entry.objective - best.value <= certificate.gap <= 1e-4 * entry.objective
    short = state.entries[-1]
    rows.reset(short.numbers)
    every = tuple(range(short.size))
    # A target out of reach: the solve is given up.
    fit = master.problem().fit(every, target=0.5 * short.objective)
    entry = loop.settle._entry(fit)
    assert not entry.certificate.converged
    assert entry.certificate.gap >= entry.objective - short.objective > 0


def best_subset(loop, state, price, cap=np.inf, costs=None):
    """The least objective over all allowed subsets of H, each solved alone."""
    rows, settle = loop.record.rows, loop.settle
    found = SearchState.of(state).generated
    rows.reset([*settle.include, *found])
    problem = settle.master.problem()
    best = np.inf
    for size in range(int(min(cap, len(found))) + 1):
        for support in combinations(range(len(found)), size):
            atoms = [found[k] for k in support]
            if costs is None or costs.allows(atoms):
                paid = size if costs is None else costs.total(atoms)
                best = min(best, problem.fit(support).value + price * paid)
    return best


@pytest.mark.parametrize("price", [0.003, 0.01, 0.05])
def test_a_search_is_near_the_best_of_all_subsets(price):
    loop = total_loop(7, price=price)
    state = grown(loop)
    objective = state.entries[-1].objective + price * state.entries[-1].size
    best = best_subset(loop, state, price)
    assert best * (1 - 1e-9) <= objective <= best * 1.02


def test_an_exact_search_finds_it_and_proves_it():
    loop = total_loop(6, search="exact")
    state = grown(loop)
    objective = state.entries[-1].objective + 0.01 * state.entries[-1].size
    assert objective == pytest.approx(best_subset(loop, state, 0.01), rel=1e-8)
    assert SearchState.of(state).bound == pytest.approx(objective, rel=1e-6)


def test_costs_are_paid_for():
    costs = Costs(Fixed(np.random.default_rng(0).choice([1.0, 2.0, 5.0], 90)))
    loop = total_loop(6, costs=costs)
    state = grown(loop)
    last = state.entries[-1]
    assert last.cost == costs.total(last.numbers)
    best = best_subset(loop, state, 0.01, costs=costs)
    assert best * (1 - 1e-9) <= last.objective + 0.01 * last.cost <= best * 1.05


@pytest.mark.parametrize("hot_start", [0, 7])
@pytest.mark.parametrize("most", [1, 2])
def test_an_exact_search_is_the_best_of_the_subsets_within_the_caps(most, hot_start):
    """A cap on distinct features, of which several stumps may read the same."""
    plain = total_loop(7)
    features = SensorPrices(plain.record.rows.pool, np.ones(6), np.arange(6))
    costs = Costs(caps=[Cap("max_features", most, features)])
    loop = total_loop(7, costs=costs, search="exact", price=1e-3, hot_start=hot_start)
    state = grown(loop)
    last = state.entries[-1]
    assert last.predictor_cost.features <= most
    objective = last.objective + 1e-3 * last.size
    assert objective == pytest.approx(best_subset(loop, state, 1e-3, costs=costs), rel=1e-8)
    assert SearchState.of(state).bound == pytest.approx(objective, rel=1e-6)
    local = grown(total_loop(7, costs=costs, price=1e-3, hot_start=hot_start)).entries[-1]
    assert local.predictor_cost.features <= most
    assert local.objective + 1e-3 * local.size <= 1.2 * objective


@pytest.mark.parametrize("cap", [1, 3])
def test_a_cap_on_the_model_is_kept_in_every_round(cap):
    loop = total_loop(6, price=0.0, max_atoms=cap)
    state = grown(loop)
    assert max(entry.size for entry in state.entries) == cap
    best = best_subset(loop, state, 0.0, cap)
    assert best * (1 - 1e-9) <= state.entries[-1].objective <= best * 1.02


def test_atoms_always_in_have_no_price():
    loop = total_loop(4, include=[50], price=0.02)
    state = grown(loop)
    assert all(entry.numbers[0] == 50 for entry in state.entries)
    assert 50 not in SearchState.of(state).generated
    last = state.entries[-1]
    best = best_subset(loop, state, 0.02)
    assert last.objective + 0.02 * (last.size - 1) <= best * 1.02


def test_the_search_after_a_hot_start_has_a_model_of_every_size():
    loop = total_loop(6, hot_start=6)
    state = grown(loop)
    found = SearchState.of(state)
    assert found.searched == 6
    assert [entry.size for entry in found.offered] == list(range(len(found.offered)))
    for entry, early in zip(found.offered, state.entries, strict=False):
        assert entry.objective <= early.objective * (1 + 1e-7)
    chosen = min(entry.objective + 0.01 * entry.size for entry in found.offered)
    last = state.entries[-1]
    assert last.objective + 0.01 * last.size == pytest.approx(chosen, rel=1e-9)


def test_the_search_of_every_size_is_done_once_for_many_prices():
    loop = total_loop(5, hot_start=5)
    grown(loop)
    fits = loop.settle.sizes
    other = total_loop(5, hot_start=5, price=0.03)
    other.settle.sizes = fits
    same_path(grown(other).entries, grown(total_loop(5, hot_start=5, price=0.03)).entries)
    assert other.settle.sizes is fits


@pytest.mark.parametrize("hot_start", [0, 3])
@pytest.mark.parametrize("length", [1, 2, 4, 5, 6])
def test_a_path_that_is_cut_goes_on_to_the_same_end(hot_start, length):
    """Also where the search after the hot start is among the entries that go."""
    whole, loop = grown(total_loop(6, hot_start=hot_start)), total_loop(6, hot_start=hot_start)
    state = grown(loop)
    loop.settle.cut(state, length)
    assert len(state.entries) == length
    generated = SearchState.of(state).generated
    assert all(set(entry.numbers) <= set(generated) for entry in state.entries)
    loop.grow(state)
    same_path(state.entries, whole.entries)


def test_a_state_with_more_rounds_than_allowed_is_refused():
    state = grown(total_loop(5))
    with pytest.raises(ValueError, match=r"already has 5 rounds\. Set max_rounds to at least that"):
        total_loop(4).settle.trim(state)


def test_the_fall_of_the_loss_is_shared_out_among_the_atoms():
    loop = total_loop(6)
    state = grown(loop)
    for entry in state.entries:
        assert sum(entry.gains) == pytest.approx(state.entries[0].loss - entry.loss, rel=1e-9)
        assert min(entry.gains, default=0.0) >= 0


# -- resumed fits ----------------------------------------------------------------------------------


def random_settings(rng):
    """Settings of a small fit, and the number of its classes."""
    classes = int(rng.choice([2, 2, 3]))
    loss = rng.choice(["auto", "log"] if classes == 3 else ["auto", "logistic", "log"])
    settings = {
        "max_rounds": 5,
        "price": float(rng.choice([0.0, 0.003, 0.03])),
        "l1": float(rng.choice([1e-6, 1e-4, 1e-2])),
        "loss": str(loss),
        "pool": str(rng.choice(["stumps", "stumps", "columns"])),
        "hot_start": int(rng.choice([0, 0, 3, 9])),
        "fit_intercept": bool(rng.random() < 0.8),
        "n_jobs": 1,
    }
    if rng.random() < 0.3:
        settings["max_atoms"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        settings |= {"costs": rng.choice([1.0, 2.0, 5.0], 4)}
        if rng.random() < 0.5:
            settings["max_cost"] = 8.0
    if settings["pool"] == "columns" and rng.random() < 0.5:
        settings["include"] = [2]
    return settings, classes


@pytest.mark.parametrize("include", [[], [50]], ids=["signs", "rows"])
@pytest.mark.parametrize("settings", [{}, {"hot_start": 4}, {"search": None}], ids=str)
def test_the_state_has_all_that_the_next_round_starts_from(settings, include):
    """Columns of weight zero are not part of it, because the model does not pay for them."""
    loop = total_loop(12, include=include, price=0.001, l1=0.01, **settings)
    settle, left_out = loop.settle, []

    def compare(state):
        entry, own = state.entries[-1], SearchState.of(state)
        fit = settle._fit_of(entry, own.intercepts[-1])
        assert settle._fit.support == fit.support
        assert np.array_equal(settle._fit.weights, fit.weights)
        assert settle._fit[2:] == fit[2:]
        left_out.append(len(own.generated) - len(fit.support))

    loop.hooks = [compare]
    loop.grow(loop.begin())
    assert max(left_out) > 0


def first_new_round(state):
    """Stop a fit after its first round, as a kill after that round would."""
    return True


@pytest.mark.filterwarnings("ignore:no atom is worth its price")
@pytest.mark.parametrize("tens", range(4))
def test_a_fit_that_is_killed_after_every_round_ends_to_the_bit(tens, tmp_path, assert_identical):
    for seed in range(10 * tens, 10 * tens + 10):
        settings, classes = random_settings(np.random.default_rng(seed))
        X, y = random_problem(seed=seed, m=50, d=4, k=classes)
        whole = TotalQBoostClassifier(**settings).fit(X, y)
        settings["checkpoint"] = tmp_path / str(seed)
        for _ in whole.rounds_:
            one_round = TotalQBoostClassifier(callbacks=[first_new_round], **settings)
            assert one_round.fit(X, y).status_ == "stopped by a callback"
        resumed = TotalQBoostClassifier(**settings).fit(X, y)
        assert_identical(resumed, whole)
        assert resumed.status_ == whole.status_
        assert resumed.generated_ == whole.generated_
        same_path(resumed.rounds_, whole.rounds_)
