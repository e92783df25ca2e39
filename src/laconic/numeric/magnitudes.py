"""Numbers near the limits of floats: checks, and scaling by powers of two.

A number times a power of two keeps its digits. So numbers can be scaled by a power of two before
they are squared. The results have the same digits, but neither overflow nor underflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Numbers whose power of two is larger than this, or below its negative, are scaled to be near 1
# before they are squared.
NEAR_ONE = 50
# Scores below this have finite differences.
LARGEST_SCORE = 2.0**1020
# Advice for numbers that are too large or too small. StandardScaler would square them, too.
SHRINK = "scale X first, for example with sklearn.preprocessing.MaxAbsScaler"
ENLARGE = "multiply X by a power of ten first"


def power_of_two(size: float) -> int:
    """Return the power of two near numbers of this size, or 0 if they need no scaling."""
    power = int(np.frexp(size)[1])
    return power if abs(power) > NEAR_ONE else 0


def largest_value(X: Any) -> float:
    """Return the largest absolute value of dense or sparse rows."""
    values = X.data if sparse.issparse(X) else X
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def check_squares(X: Any, dtype: np.dtype[Any]) -> None:
    """Refuse rows whose squared distances would overflow in this precision."""
    largest = largest_value(X)
    if largest > np.sqrt(float(np.finfo(dtype).max) / (4 * max(X.shape[1], 1))):
        raise ValueError(
            f"X has numbers of size {largest:.2g}, whose squares overflow {dtype}; {SHRINK}"
        )


def checked_scores(scores: np.ndarray, intercept: np.ndarray | float = 0.0) -> np.ndarray:
    """Add the intercept to the scores in place, and return them.

    Raise a `ValueError` if the scores or their differences overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores += intercept
    if not np.all(np.abs(scores) < LARGEST_SCORE):
        raise ValueError(
            "scores overflow: X holds values far larger than the model was trained on; give X in "
            "the units of the training rows"
        )
    return scores
