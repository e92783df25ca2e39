"""ShareBoost's settling stage: all atoms stay, and their weights are the best."""

import numpy as np
import pytest
from loops import share_loop

from laconic.boost.correct_all import CorrectAll, Refinement
from laconic.boost.record import weights_of
from laconic.boost.stages import State


def grown(loop):
    state = loop.begin()
    loop.grow(state)
    return state


def test_every_entry_has_one_atom_more_and_the_best_weights():
    loop = share_loop(4)
    settle, state = loop.settle, grown(loop)
    assert state.status == "largest size reached"
    for size, entry in enumerate(state.entries):
        assert entry.numbers == state.entries[-1].numbers[:size]
        settle.rows.reset(entry.numbers)
        best = settle.solve(np.zeros((0, 3)))
        assert entry.objective == pytest.approx(best.value, rel=1e-4)  # the corrector's tolerance
        assert sum(entry.gains) == pytest.approx(state.entries[0].loss - entry.loss)


def test_atoms_always_in_come_first():
    loop = share_loop(3)
    old = loop.settle
    settle = CorrectAll(old.record, old.corrector, old.penalty, 3, include=[7, 2])
    entry = settle.first(State(settle.begin()))
    assert entry.numbers == (7, 2)
    settle.rows.reset([])
    empty = settle.solve(np.zeros((0, 3)))
    assert sum(entry.gains) == pytest.approx(empty.loss - entry.loss)
    assert min(entry.gains) > 0


def test_rows_are_put_back_to_where_an_entry_was_recorded():
    loop = share_loop(4)
    state, settle = grown(loop), loop.settle
    entry = state.entries[2]
    settle.restore(entry)
    assert settle.rows.atoms == list(entry.numbers)
    assert np.array_equal(settle.weights, weights_of(entry, True))
    assert settle.rows.evaluate(settle.weights)[0] == entry.loss
    gradient = settle.rows.evaluate(settle.weights)[1]
    assert settle.intercept_norm == np.abs(gradient[0]).sum()


@pytest.mark.parametrize("largest", [0, 2, 4, 9])
def test_a_state_of_another_size_is_cut_and_refined_anew(largest):
    state = grown(share_loop(4))
    state.own = Refinement(4, list(state.entries), 2)
    share_loop(largest).settle.trim(state)
    assert [entry.size for entry in state.entries] == list(range(min(largest, 4) + 1))
    same = largest == 4
    assert len(state.own.entries) == 5 * same
    assert (state.own.max_atoms, state.own.swept) == (largest, 2 * same)


def test_what_was_refined_is_forgotten_where_the_path_changes():
    loop = share_loop(3)
    state = grown(loop)
    for change in (
        lambda: loop.settle.cut(state, 2),
        lambda: loop.settle.add(state, loop.propose.add(state.entries)),
    ):
        loop.settle.take_up(state)
        state.own = Refinement(3, list(state.entries), 1)
        change()
        assert state.own == Refinement(3)


def test_a_copy_has_lists_of_its_own():
    state = grown(share_loop(2))
    state.own.entries.append(state.entries[0])
    copied = state.copy()
    copied.entries.pop()
    copied.own.entries.pop()
    assert len(state.entries) == 3
    assert len(state.own.entries) == 1
    assert isinstance(copied, State)
    assert state.last is state.entries[0]  # the one that is refined last
    assert copied.last is copied.entries[-1]
