"""Check the labels and weights of rows for estimators."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from laconic.data.doubts import warn_of_amounts
from laconic.data.elsewhere import ENDINGS
from laconic.data.frames import is_missing
from laconic.numeric.magnitudes import ENLARGE, check_squares, largest_value
from laconic.numeric.namespaces import to_host


def kept_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Return the rows of positive weight (None for all rows), their class codes and weights.

    Set ``classes_`` and ``class_prior_``, the share of each class in the total weight. Classes that
    occur only in rows of weight zero are left out.
    """
    whole = np.asarray(y).dtype.kind in "biu" and np.ndim(y) == 1
    if not whole:
        check_classification_targets(y)
    check_no_name(sample_weight, "sample_weight")
    sample_weight = to_host(sample_weight)
    check_mask(sample_weight, "sample_weight")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    keep = None
    if not np.all(weight > 0):
        keep = np.flatnonzero(weight > 0)
        y, weight = y[keep], weight[keep]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        only = "no class" if len(classes) == 0 else f"one class, {classes.tolist()[0]!r}"
        raise ValueError(f"y must hold at least two classes with positive weight; it has {only}")
    if whole and 2 * len(classes) > len(codes):  # it warns of many classes, and takes long
        check_classification_targets(y)
    warn_of_amounts(classes, len(codes))
    estimator.classes_ = classes
    # Scale first, because the sum of huge weights would overflow. A power of two changes no digit.
    shares = np.bincount(codes.ravel(), np.ldexp(weight, -np.frexp(weight.max())[1]))
    estimator.class_prior_ = shares / shares.sum()
    return keep, codes.ravel(), weight


def class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the factor of each class by which ``class_weight`` multiplies weights.

    Balanced factors keep the sum of the weights.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        return weight.sum() / (len(classes) * np.bincount(codes, weight))
    factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not np.all(factors > 0):
        raise ValueError("class_weight must be positive for every class in y")
    return factors


def class_prices(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the factor of each row by which ``class_weight`` multiplies its weight.

    See `class_factors`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        prices = class_factors(class_weight, classes, codes, weight)[codes]
        total = (weight * prices).sum()
    if not np.isfinite(total):
        raise ValueError("the sum of sample_weight overflows; divide the weights by their mean")
    return prices


class PricedRows(NamedTuple):
    """Rows of positive weight with what each counts, and what an error of it costs."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray
    price: np.ndarray
    """What ``class_weight`` multiplies the weight of each row by."""
    number: np.ndarray
    """Numbers of the rows among those given."""


def priced_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> PricedRows:
    """Rows of positive weight; see `kept_rows` for what it sets."""
    keep, codes, weight = kept_rows(estimator, X, y, sample_weight)
    price = class_prices(estimator.class_weight, estimator.classes_, codes, weight)
    if keep is None:
        return PricedRows(X, codes, weight, price, np.arange(X.shape[0]))
    return PricedRows(X[keep], codes, weight, price, keep)


def normalised_weights(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, np.ndarray, np.ndarray, float]:
    """Return rows, class codes, weights scaled to sum to one, and their sum before that.

    Set ``estimator.classes_``.

    Rows of weight zero are dropped, and the other rows are then copied. Classes that occur only in
    dropped rows are dropped too.
    """
    keep, codes, weight = kept_rows(estimator, X, y, sample_weight)
    # Scale first, because the sum of huge weights would overflow. A power of two changes no digit.
    power = np.frexp(weight.max())[1]
    weight = np.ldexp(weight, -power)
    factors = class_factors(estimator.class_weight, estimator.classes_, codes, weight)
    estimator._class_factors = factors / factors.max()
    weight = weight * factors[codes]
    total = weight.sum()
    with np.errstate(over="ignore"):
        whole = float(np.ldexp(total, power))
    return (X if keep is None else X[keep]), codes, weight / total, whole


def check_mask(values: Any, name: str) -> None:
    """Refuse masked values. scikit-learn would read what is behind the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        remedy = "use .filled(np.nan)" if name == "X" else "leave those rows out"
        raise ValueError(f"{name} holds masked values, which count as missing; {remedy}")


def with_plain_type(y: Any) -> Any:
    """Return labels of pandas' nullable numbers or Arrow's with the type of NumPy for them.

    scikit-learn would turn whole numbers and truth values of these types into floats. Labels with
    gaps stay as they are, and so do all others.
    """
    kinds = list(y.dtypes) if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc") else []
    own = kinds[0] if len(kinds) == 1 else getattr(y, "dtype", None)
    plain = getattr(own, "numpy_dtype", None)
    if not isinstance(plain, np.dtype) or plain.kind not in "biuf" or np.any(y.isna()):
        return y
    return y.astype(plain)


def refuse_absent(absent: int, n_rows: int) -> None:
    """Refuse labels of which some are missing."""
    if absent:
        raise ValueError(f"y has no label in {absent} of {n_rows} rows; leave those rows out")


def check_no_name(values: Any, name: str) -> None:
    """Refuse the name of a column or a file for labels or weights of rows in memory."""
    if not isinstance(values, str | PathLike):
        return
    if str(values).endswith(ENDINGS):
        do = "files serve only with rows in files or in a large memory map; give np.load(file)"
    else:
        do = (
            "names of columns serve only with Parquet files and Dask data frames; give the column "
            "itself, and leave it out of X"
        )
    raise ValueError(f"{name}={str(values)!r} does not hold a value for each row; {do}")


def check_labels(y: Any) -> None:
    """Refuse labels that are missing or cannot be sorted."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "Of" or labels.ndim != 1:
        return
    numbers = labels.dtype.kind == "f"
    absent = int(np.isnan(labels).sum()) if numbers else sum(map(is_missing, labels))
    refuse_absent(absent, len(labels))
    if numbers:
        return
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"y has labels of different types ({', '.join(kinds)}); make them all text, "
            "for example with [str(label) for label in y]"
        ) from None


def check_scale(X: Any) -> None:
    """Refuse rows whose squared distances would overflow or become zero."""
    check_squares(X, X.dtype)
    largest = largest_value(X)
    if 0 < largest < np.sqrt(float(np.finfo(X.dtype).tiny)):
        raise ValueError(
            f"X has no number above {largest:.2g}, and their squares underflow in {X.dtype}; "
            f"{ENLARGE}"
        )


def held_out_rows(
    estimator: Any, X: Any, codes: np.ndarray, weight: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray, tuple[Any, np.ndarray, np.ndarray]]:
    """Split the rows into a part to fit and a part to watch, with every class in both if possible.

    Return the rows, class codes and weights to fit, and a tuple of those to watch. The weights of
    each part sum to one.
    """
    counts = np.bincount(codes)
    watched = int(np.ceil(estimator.validation_fraction * len(codes)))
    watched = max(watched, len(counts))
    even = counts.min() >= 2 and len(codes) - watched >= len(counts)
    fit, watch = train_test_split(
        np.arange(len(codes)),
        test_size=watched if even else estimator.validation_fraction,
        random_state=estimator.random_state,
        stratify=codes if even else None,
    )
    if len(np.unique(codes[fit])) < len(counts):
        asked = [
            n for n in ("early_stopping", "tune", "guard", "prune") if getattr(estimator, n, False)
        ]
        raise ValueError(
            "the held-out part has every row of a class; lower validation_fraction or set "
            + " and ".join(f"{name}=False" for name in asked)
        )
    fit, watch = np.sort(fit), np.sort(watch)
    kept = (X[watch], codes[watch], weight[watch] / weight[watch].sum())
    return X[fit], codes[fit], weight[fit] / weight[fit].sum(), kept
