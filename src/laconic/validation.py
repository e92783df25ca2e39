"""scikit-learn's check of input, as every estimator and pool asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data


def validated(
    estimator: Any, X: Any, *y: Any, dtype: Any = (np.float64, np.float32), **settings: Any
) -> Any:
    """`sklearn.utils.validation.validate_data` for float64 and float32, others as the first.

    scikit-learn sums all numbers to find infinities. The sum of huge finite numbers can overflow;
    scikit-learn handles that, but NumPy warns.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, X, *y, dtype=list(dtype), **settings)
