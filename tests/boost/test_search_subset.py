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
