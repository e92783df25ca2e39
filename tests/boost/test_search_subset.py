"""TotalQBoost's settling stage: which atoms of H are in the model."""

import numpy as np
import pytest
from loops import total_loop

from laconic.boost.checkpoint import Checkpoint


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
