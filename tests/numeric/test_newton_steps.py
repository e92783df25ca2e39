"""Lengths of Newton steps."""

import numpy as np
import pytest

from laconic.numeric.newton_steps import FAR, PATIENCE, backtrack, first_part


def test_the_limit_grows_after_several_steps_that_were_cut():
    step = np.array([3.0, -80.0])
    assert first_part(np.array([3.0, -FAR])) == 1.0
    assert first_part(np.zeros(2)) == 1.0
    parts = [first_part(step, cut) for cut in range(PATIENCE + 4)]
    assert parts == [0.25] * (PATIENCE + 1) + [0.5, 1.0, 1.0]


def along(f, slope):
    return lambda t: (f(t), t * slope, f"at {t}")


def test_a_step_is_halved_until_the_objective_falls_enough():
    # (t - 1/8)² falls for t < 1/4, with the slope -1/4 at 0.
    found = backtrack(along(lambda t: (t - 0.125) ** 2, -0.25), 1.0, 0.125**2)
    assert found == (0.125, 0.0, "at 0.125")
    # A fall of less than 1e-4 of the first-order change is not enough.
    assert backtrack(along(lambda t: -0.9e-4 * t, -1.0), 1.0, 0.0) is None
    assert backtrack(along(lambda t: -1.1e-4 * t, -1.0), 1.0, 0.0)[0] == 1.0


def test_a_rise_is_allowed_only_within_rounding():
    flat = along(lambda t: 5.0, -1e-30)
    assert backtrack(flat, 1.0, 5.0)[:2] == (1.0, 5.0)
    assert backtrack(flat, 1.0, 5.0, strictly=True) is None
    assert backtrack(flat, 1.0, 5.0, noise=1e-15, strictly=True)[:2] == (1.0, 5.0)
    assert backtrack(flat, 1.0, 5.0 - 2e-15) is None
    assert backtrack(flat, 1.0, 5.0 - 2e-15, noise=1e-14)[:2] == (1.0, 5.0)
    assert backtrack(along(lambda t: np.nan, -1.0), 1.0, 5.0) is None


@pytest.mark.parametrize("tries", [1, 7])
def test_parts_come_from_the_caller_and_end_with_the_tries(tries):
    seen = []

    def rising(t):
        seen.append(t)
        return 9.0, -t, None

    assert backtrack(rising, 1.0, 5.0, shorter=lambda t: t / 3, tries=tries) is None
    assert seen == pytest.approx([3.0**-k for k in range(tries)])
