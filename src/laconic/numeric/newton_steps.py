"""Lengths of Newton steps: how long a step may be, and which part of it is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

# Longest change of a weight in a step. Longer ones overflow the loss and teach nothing. After
# `PATIENCE` steps in a row that had to be cut to the limit, the limit doubles with every such step,
# because columns that are nearly dependent can need weights of many thousands.
FAR, PATIENCE = 20.0, 3
# A step must lower the objective by this part of its first-order change.
ENOUGH = 1e-4

T = TypeVar("T")


def first_part(step: np.ndarray, cut: int = 0) -> float:
    """Return the part of a step to try first, after ``cut`` steps that were cut to the limit."""
    longest = FAR * 2.0 ** max(cut - PATIENCE, 0)
    return min(1.0, longest / max(float(np.abs(step).max()), 1e-300))


def not_too_far(W: np.ndarray, step: np.ndarray) -> float:
    """Return the part of a step to try first, in proportion to the weights.

    Where the objective is almost flat, a Newton step can be far too long.
    """
    return min(1.0, 10.0 * (1.0 + float(np.abs(W).max())) / max(float(np.abs(step).max()), 1e-300))


def halved(t: float) -> float:
    """Return half of a part."""
    return 0.5 * t


def backtrack(
    trial: Callable[[float], tuple[float, float, T]],
    t: float,
    value: float,
    noise: float = 0.0,
    shorter: Callable[[float], float] = halved,
    tries: int = 50,
    strictly: bool = False,
) -> tuple[float, float, T] | None:
    """Shorten a step until the objective falls by enough (Armijo's rule).

    Parameters
    ----------
    trial : callable
        Takes a part ``t`` of the step. It returns the objective there, its first-order change, and
        anything else that is wanted of the place.
    t : float
        Part to try first.
    value : float
        The objective at the start of the step.
    noise : float
        Rounding error of the objective. Smaller differences say nothing about the step.
    shorter : callable
        Returns the part to try next.
    tries : int
        Largest number of trials.
    strictly : bool
        Whether the objective must be below ``value + noise``. Otherwise it may also be equal, which
        happens if the first-order change is lost in rounding.

    Returns
    -------
    (t, value, anything else) of the first trial that falls enough, or None if none does.
    """
    for _ in range(tries):
        new, change, found = trial(t)
        if new <= value + ENOUGH * change + noise and not (strictly and new == value + noise):
            return t, new, found
        t = shorter(t)
    return None
