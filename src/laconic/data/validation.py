"""Check the input of every estimator and pool with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    validate_data,
)

from laconic.data.cells import check_names, column_names, is_frame, is_single
from laconic.data.doubts import warn_of_columns
from laconic.data.frames import (
    encode_days,
    encode_frame,
    encode_times,
    holds_times,
)
from laconic.data.kinds import facts_of, frame_kinds, kinds_of
from laconic.data.labels import check_mask
from laconic.numeric.sparse_rows import canonical


def _weights(weight: Any, n_rows: int) -> np.ndarray | None:
    """Return the weights of rows, or None if they are invalid. A later check refuses those."""
    try:
        weights = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    sound = weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights >= 0).all()
    return weights if sound else None


class _Named(np.ndarray):
    """Numbers of a frame, with the names of its columns where older scikit-learn looks for them.

    Older versions of scikit-learn ask the frame for ``__dataframe__``. Newer versions of polars no
    longer have that method.
    """

    names: list[Any]

    def __dataframe__(self) -> _Named:
        return self

    def column_names(self) -> list[Any]:
        """Return the names of the columns."""
        return self.names


def _seen(X: Any, only_names: bool = False) -> Any:
    """Return a frame in a form whose column names scikit-learn can read.

    Scikit-learn does not know the frames of every library. With ``only_names``, the result may have
    no rows.
    """
    names = column_names(X)
    if hasattr(X, "iloc") or not names or _get_feature_names(X) is not None:
        return X
    out = np.asarray(np.empty((0, len(names))) if only_names else X).view(_Named)
    out.names = names
    return out


def learn_features(estimator: Any, X: Any) -> None:
    """Set the number of features and their names from some rows, as a check with ``reset`` does."""
    _check_feature_names(estimator, _seen(X, only_names=True) if is_frame(X) else X, reset=True)
    _check_n_features(estimator, X, reset=True)


def validated(
    estimator: Any,
    X: Any,
    *y: Any,
    dtype: Any = (np.float64, np.float32),
    categories: bool = False,
    reset: bool = True,
    weight: Any = None,
    **settings: Any,
) -> Any:
    """Call `sklearn.utils.validation.validate_data`, keeping float64 and float32 as they are.

    Other types become the first of ``dtype``. Data frames and arrays of times become numbers. A fit
    (``reset``) stores the units of date and duration columns in ``_units``. If ``categories`` is
    true, it stores the categories of text columns in ``_categories``. Units depend on the rows by
    their ``weight``. A sparse matrix is returned with every value stored once and in order; the
    given matrix does not change.
    """
    given = X
    check_mask(X, "X")
    if is_frame(X):
        check_names(X)
    if reset:
        estimator._categories = {}
        timed = is_frame(X) or holds_times(X)
        weights = _weights(weight, len(X)) if timed else None
        estimator._units = kinds_of([facts_of(X, weights)])[1] if holds_times(X) else {}
        if is_frame(X):
            found, estimator._units = frame_kinds(X, weights)
            estimator._categories = found if categories else {}
    if is_frame(X):
        if not reset:  # first, so that no column is read as another
            _check_feature_names(estimator, _seen(X, only_names=True), reset=False)
        X = _seen(encode_frame(X, estimator._categories, estimator._units))
        if np.float32 in dtype and is_single(given):
            dtype = [np.float32]
    elif holds_times(X):
        X = encode_times(X, estimator._units)
    # scikit-learn sums all numbers to find infinities. The sum of huge finite numbers can overflow;
    # scikit-learn handles that, but NumPy warns.
    with np.errstate(over="ignore", invalid="ignore"):
        out = validate_data(estimator, X, *y, dtype=list(dtype), reset=reset, **settings)
    out = (canonical(out[0]), *out[1:]) if isinstance(out, tuple) else canonical(out)
    names = getattr(estimator, "feature_names_in_", None)
    if not reset:
        if not is_frame(given) and not holds_times(given):
            out = encode_days(out, estimator._units, names)
    else:
        kinds = estimator._categories, estimator._units
        warn_of_columns(given, out[0] if isinstance(out, tuple) else out, *kinds, names)
    return out
