"""scikit-learn's check of input, as every estimator and pool asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data


def validated(
    estimator: Any, X: Any, *y: Any, dtype: Any = (np.float64, np.float32), **settings: Any
) -> Any:
    """`sklearn.utils.validation.validate_data` for float64 and float32, others as the first.

    scikit-learn adds up all numbers to see whether they are finite. Finite ones near the largest
    there is can then come to infinity less infinity, which it looks into, but NumPy warns of.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, X, *y, dtype=list(dtype), **settings)
