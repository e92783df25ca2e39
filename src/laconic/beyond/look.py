"""A first look at parts of rows: what they must agree on before they can be checked.

A part is a tuple (X, y, weight) as it was given. The weight may be None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from laconic.beyond.same_columns import difference
from laconic.data.cells import check_names, column_names, is_frame, is_single
from laconic.data.frames import Categories, Units
from laconic.data.kinds import Facts, kinds_of, part_facts
from laconic.data.labels import check_labels, check_mask, with_plain_type
from laconic.numeric.threads import Threads

# What messages call labels of each kind of type.
_KINDS = dict.fromkeys("biuf", "numbers") | dict.fromkeys("UST", "text") | {"M": "dates"}


class Look(NamedTuple):
    """What one part of the rows says of itself."""

    name: str
    """What messages call it."""
    n_rows: int
    n_features: int
    names: list[Any] | None
    """Names of the columns of a frame."""
    single: bool
    """Whether the numbers are in single precision."""
    facts: Facts
    """Facts about the columns of a frame that are not plain numbers."""
    classes: np.ndarray
    """The classes of rows of positive weight."""
    class_weights: np.ndarray
    """The sum of the weights of each class, divided by two to the power below."""
    power: int
    """The power of two above the largest weight. Without it, sums of huge weights overflow."""
    n_kept: int
    """Number of rows of positive weight."""
    first: Any
    """The first row of X."""


class Agreed(NamedTuple):
    """What all parts together say."""

    classes: np.ndarray
    class_weights: np.ndarray
    """The sum of the weights of each class, divided by two to the power below."""
    power: int
    """The power of two above the largest weight."""
    n_rows: int
    """Number of rows of positive weight in all parts."""
    single: bool
    categories: Categories
    units: Units
    first: Any
    """The first row of X."""
    kept: list[int]
    """Numbers of the parts that have rows of positive weight."""
    lengths: list[int]
    """Their numbers of rows of positive weight."""


def look(part: Any, threads: Threads, name: str) -> Look:
    """Look at one part. Messages call it by its name."""
    X, y, weight = part
    n_rows = X.shape[0]
    y = labels_of(y)
    check_lengths(n_rows, y, weight, name)
    frame = is_frame(X)
    with named(name):
        check_labels(y)
        weight = weights_of(weight, n_rows)
        counted = weight > 0
        if counted.any():
            check_classification_targets(y[counted])
        if frame:
            check_names(X)
        facts = part_facts(X, weight)
    classes, codes = np.unique(y[counted], return_inverse=True)
    power = int(np.frexp(weight.max(initial=0.0))[1])
    return Look(
        name,
        n_rows,
        X.shape[1] if len(X.shape) > 1 else 0,
        column_names(X) if frame else None,
        is_single(X) if frame else getattr(X, "dtype", None) == np.float32,
        facts,
        classes,
        np.bincount(codes, np.ldexp(weight[counted], -power), minlength=len(classes)),
        power,
        int(counted.sum()),
        first_row(X),
    )


@contextmanager
def named(name: str) -> Iterator[None]:
    """Let errors say which part they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{error} (in {name})") from error


def first_row(X: Any) -> Any:
    """Return the first row, as an array, matrix or frame of at most one row.

    It is a copy, because a view would keep the whole part in memory.
    """
    if sparse.issparse(X):
        return X.tocsr()[:1]
    if hasattr(X, "combine_chunks"):  # an Arrow table
        return X.take(np.arange(min(1, len(X))))
    return X[:1].copy() if hasattr(X, "copy") else X[:1]


def labels_of(y: Any) -> np.ndarray:
    """Return the labels of a part as an array."""
    check_mask(y, "y")
    labels = np.asarray(with_plain_type(y))
    if labels.shape[1:] not in ((), (1,)):
        raise ValueError(f"y must be a single column; it has {labels.shape[1]}")
    return labels.reshape(-1)


def weights_of(weight: Any, n_rows: int) -> np.ndarray:
    """Return the weights of a part. Without weights, every row weighs 1, and takes no memory."""
    if weight is None:
        return np.broadcast_to(np.float64(1.0), n_rows)
    check_mask(weight, "sample_weight")
    try:
        weights = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("sample_weight must hold numbers") from error
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must have one dimension, not {weights.ndim}")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight holds NaN or infinity; give finite weights")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight holds negative numbers, such as {weights.min():g}; give weights of at "
            "least 0"
        )
    return weights


def check_lengths(n_rows: int, y: Any, weight: Any, name: str) -> None:
    """Refuse labels or weights of another length than their part."""
    for what, values in (("y", y), ("sample_weight", weight)):
        if values is not None and len(values) != n_rows:
            raise ValueError(
                f"{name} has {n_rows} rows, but the same part of {what} has "
                f"{len(values)}; give {what} the same chunks as X"
            )


def agree(looks: Sequence[Look], wants_categories: bool) -> Agreed:
    """Return what the parts agree on. Refuse parts that do not fit together."""
    kept = [number for number, own in enumerate(looks) if own.n_kept]
    if not kept:
        raise ValueError("X has no row of positive weight; give at least two rows and two classes")
    known = [looks[number] for number in kept]
    _check_same(known)
    power = max(own.power for own in known)
    classes, class_weights = _classes(known, power)
    n_rows = sum(own.n_kept for own in known)
    # Columns of rows that count nothing are read too, as for rows in one memory.
    filled = [own.facts for own in looks if own.n_rows]
    categories, units = kinds_of(filled, [own.name for own in looks if own.n_rows])
    if not wants_categories:
        categories = {}
    return Agreed(
        classes,
        class_weights,
        power,
        n_rows,
        all(own.single for own in known),
        categories,
        units,
        known[0].first,
        kept,
        [own.n_kept for own in known],
    )


def _check_same(known: Sequence[Look]) -> None:
    first = known[0]
    for other in known:
        if other.names != first.names:
            if other.names is None or first.names is None:
                frame, array = (other, first) if first.names is None else (first, other)
                raise ValueError(
                    f"{frame.name} is a data frame, but {array.name} is an array; give all parts "
                    "the same columns"
                )
            raise ValueError(difference(other.name, other.names, first.name, first.names))
        if other.n_features != first.n_features:
            raise ValueError(
                f"{other.name} has {other.n_features} features, but {first.name} has "
                f"{first.n_features}"
            )


def _classes(known: Sequence[Look], power: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of all parts, and the sums of their weights divided by a power of two."""
    labels = np.concatenate([own.classes for own in known])
    parts: dict[str, str] = {}  # the first part that has labels of each kind
    for own in known:
        parts.setdefault(_KINDS.get(own.classes.dtype.kind, "objects"), own.name)
    if len(parts) > 1:
        (one, first), (two, second), *_ = sorted(parts.items())
        raise ValueError(
            f"y holds {one} in {first} and {two} in {second}; make all labels text, or all numbers"
        )
    classes, codes = np.unique(labels, return_inverse=True)
    weights = np.concatenate([np.ldexp(own.class_weights, own.power - power) for own in known])
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes with positive weight; it has one class, "
            f"{classes.tolist()[0]!r}"
        )
    return classes, np.bincount(codes, weights)
