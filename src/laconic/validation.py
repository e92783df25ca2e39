"""scikit-learn's check of input, as every estimator and pool asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, validate_data

from laconic.doubts import warn_of_columns
from laconic.model.cells import check_names, is_frame, is_single
from laconic.model.frames import encode_frame, frame_kinds


def validated(
    estimator: Any,
    X: Any,
    *y: Any,
    dtype: Any = (np.float64, np.float32),
    categories: bool = False,
    reset: bool = True,
    **settings: Any,
) -> Any:
    """`sklearn.utils.validation.validate_data` for float64 and float32, others as the first.

    Data frames come out as numbers. A fit (``reset``) remembers in ``_units`` which columns are
    dates or durations and, where it may have ``categories``, in ``_categories`` what those of text
    hold.
    """
    given = X
    if is_frame(X):
        check_names(X)
    if reset:
        estimator._categories, estimator._units = frame_kinds(X) if is_frame(X) else ({}, {})
        if not categories:
            estimator._categories = {}
    if is_frame(X):
        if not reset:  # before columns are taken for others
            _check_feature_names(estimator, X, reset=False)
        X = encode_frame(X, estimator._categories, estimator._units)
        if np.float32 in dtype and is_single(X):
            dtype = [np.float32]
    # scikit-learn sums all numbers to find infinities. The sum of huge finite numbers can overflow;
    # scikit-learn handles that, but NumPy warns.
    with np.errstate(over="ignore", invalid="ignore"):
        out = validate_data(estimator, X, *y, dtype=list(dtype), reset=reset, **settings)
    if reset:
        names = getattr(estimator, "feature_names_in_", None)
        kinds = estimator._categories, estimator._units
        warn_of_columns(given, out[0] if isinstance(out, tuple) else out, *kinds, names)
    return out
