"""What is read off the frontiers of error against cardinality."""

import pytest
from totalq_frontier import averaged, chosen, frontier, gains, points, standard_error, worse


def result(**experiments):
    return {"set": "x", "split": 1, "rows": [10, 4, 6], "points": experiments}


def test_frontier_keeps_what_nothing_beats():
    assert frontier([(3, 0.2), (1, 0.5), (2, 0.5), (4, 0.3), (3, 0.1)]) == [(1, 0.5), (3, 0.1)]


def test_gains_are_those_of_table_1():
    """Image's first row: 28 atoms where the sparsest rival as good has 73."""
    found = gains([(28, 2.75), (5, 9.0), (80, 2.0)], [(73, 2.75), (4, 9.0), (90, 2.5)])
    assert found[0]["sparsity"] == pytest.approx(61.64, abs=0.01)
    assert found[1]["generalisation"] == pytest.approx(20.0)
    assert len(found) == 2


def test_models_are_chosen_on_one_half_and_judged_on_the_other():
    r = result(A=[[0.1, 7, 0.5, 0, 2, 0]], B=[[1, 9, 0.5, 0, 1, 3], [2, 5, 0.4, 0, 1, 6]])
    assert chosen(r, "AB") == (5, 1.0)
    assert points(r, "A") == [(7, 0.2)]


def test_worse_at_the_same_size_only():
    r = result(
        B=[[1, 1, 0.9, 3, 0, 0], [2, 2, 0.7, 2, 0, 0]],
        E=[[0.1, 2, 0.7, 3, 0, 0], [0.2, 1, 0.95, 3, 0, 0], [0.3, 4, 0.1, 0, 0, 0]],
    )
    found = worse(r, "E", "B")
    assert len(found["met"]) == 2
    assert found["risk"] == [[0.2, 1, 0.95]]
    assert found["wrong"] == [[0.1, 2, 0.7]]


def test_averages_over_splits():
    one, other = (
        result(B=[[1, 1, 0.9, 3, 1, 1]]),
        result(B=[[1, 1, 0.9, 3, 2, 2], [2, 3, 0, 0, 0, 0]]),
    )
    first, second = averaged([one, other], "B")
    assert first["error"] == pytest.approx(0.3)
    assert first["deviation"] == pytest.approx(standard_error([0.2, 0.4]))
    assert second["atoms"] == 2.0
