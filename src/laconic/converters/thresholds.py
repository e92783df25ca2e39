"""Thresholds moved back through the steps in front of a model, exactly.

A scaler is a monotone function also in floating point. So the inputs whose scaled value is at most
a threshold are those up to some float64 number. Bisection over all float64 numbers finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[Any], Any]
"""A function of one number that never falls, computed as the model computes it."""

_LARGEST = float(np.finfo(np.float64).max)


def through(steps: tuple[Step, ...], value: Any) -> Any:
    """Return a number after all steps."""
    with np.errstate(all="ignore"):
        for step in steps:
            value = step(value)
    return value


def largest_below(steps: tuple[Step, ...], threshold: float) -> float:
    """Return the largest x whose value after all steps is at most ``threshold``.

    The result is infinity if all numbers are, and minus infinity if no finite number is.

    Examples
    --------
    >>> largest_below((np.float32,), 0.1), largest_below((lambda x: np.clip(x, 0.0, 1.0),), 1.0)
    (0.09999999776482582, inf)
    """

    def holds(place: int) -> bool:
        return float(through(steps, np.float64(_number(place)))) <= threshold

    if not steps:
        return threshold
    if float(through(steps, np.float64(np.inf))) <= threshold:
        return np.inf
    low, high = _place(-_LARGEST), _place(_LARGEST)
    if holds(high):
        return _LARGEST
    if not holds(low):
        return -np.inf
    while high - low > 1:  # the first holds and the second does not
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return _number(low)


def _place(number: float) -> int:
    """Return the place of a number in the order of all float64 numbers. It is 0 for zero."""
    bits = int(np.float64(abs(number)).view(np.int64))
    return -bits if number < 0 else bits


def _number(place: int) -> float:
    return float(np.copysign(np.int64(abs(place)).view(np.float64), place))
