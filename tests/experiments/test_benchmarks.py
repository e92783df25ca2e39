"""What benchmarks judge by."""

from _common import ROOT  # noqa: F401  (makes the benchmarks importable)
from benchmarks._common import short_of


def test_a_solver_far_above_the_lowest_value_is_short():
    assert short_of({"ours": 1e-9, "rival": 2e-6}, 1e-6) == ["rival"]
    assert short_of({"ours": 0.0, "rival": -3e-6}, 1e-6) == ["ours"]
    assert short_of({"ours": float("nan"), "rival": 0.0}, 1e-6) == ["ours"]


def test_a_run_that_was_cut_off_is_not_short():
    assert short_of({"ours": 1e-9, "rival": None}, 1e-6) == []
    assert short_of({}, 1e-6) == []
