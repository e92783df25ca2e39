"""Numbers near the ends of what a float can hold: what there is room for, and what to do about it.

A number times a power of two keeps its digits. So what is measured in units of a power of two, and
squared there, is the same as ever, but neither overflows nor vanishes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Powers of two beyond which numbers are brought near 1 before they are squared.
NEAR_ONE = 50
# Differences of scores below this are finite.
LARGEST_SCORE = 2.0**1020
# What to do about numbers that are too large, or too small. StandardScaler squares them, too.
SHRINK = "scale X first, for example with sklearn.preprocessing.MaxAbsScaler"
ENLARGE = "multiply X by a power of ten first"


def power_of_two(size: float) -> int:
    """The power of two that numbers of this size are near; 0 where that is not far from 1."""
    power = int(np.frexp(size)[1])
    return power if abs(power) > NEAR_ONE else 0


def largest_value(X: Any) -> float:
    """The largest absolute value of dense or sparse rows."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def check_squares(X: Any, dtype: np.dtype[Any]) -> None:
    """Refuse rows between which squared distances would overflow in this precision."""
    largest = largest_value(X)
    if largest > np.sqrt(float(np.finfo(dtype).max) / (4 * max(X.shape[1], 1))):
        raise ValueError(
            f"X has numbers of size {largest:.2g}, whose squares overflow {dtype}; {SHRINK}"
        )


def checked_scores(scores: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """Scores plus intercept, in place; a `ValueError` where they or their differences overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores += intercept
    if not np.all(np.abs(scores) < LARGEST_SCORE):
        raise ValueError(
            "scores overflow: X holds values far larger than the model was trained on; give X in "
            "the units of the training rows"
        )
    return scores
