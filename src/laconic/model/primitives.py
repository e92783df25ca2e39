"""Primitives that read one feature or two for each column. See `laconic.model.lowering`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laconic.model.conditions import EQUAL, MISSING
from laconic.model.feature_maps import column_scores
from laconic.model.lowering import Primitive


def take(X: Any, features: np.ndarray) -> np.ndarray:
    """Return columns of a dense or sparse matrix as a dense array."""
    taken = X[:, features]
    return np.asarray(taken.toarray() if sparse.issparse(taken) else taken)


def whole(values: Any) -> np.ndarray:
    """Return numbers of features as an array."""
    return np.asarray(values, dtype=np.int64)


def check_lengths(primitive: Primitive, **arrays: np.ndarray) -> None:
    """Raise a `ValueError` unless the arrays hold one entry for each column."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"the arrays of a {type(primitive).__name__} must each be a list with one entry per "
            f"column, but their shapes are: {told}"
        )


class Gather(Primitive):
    """Input columns, unchanged: column j is x[feature[j]].

    Parameters
    ----------
    feature : array of shape (n_columns,), or range
        An ascending range is not written down before `feature` is asked for.
    """

    fields = ("feature",)

    def __init__(self, feature: Any) -> None:
        self._range = feature if isinstance(feature, range) and feature.step > 0 else None
        self._list = whole(()) if self._range is not None else whole(feature)
        check_lengths(self, feature=self._list)

    @property
    def feature(self) -> np.ndarray:
        """The feature of every column."""
        if self._range is None:
            return self._list
        return np.arange(self._range.start, self._range.stop, self._range.step)

    @property
    def n_columns(self) -> int:
        """Number of columns, one per feature."""
        return len(self._list if self._range is None else self._range)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows. If all features are asked for, dense rows come back."""
        taken = self._taken(X)
        return np.asarray(taken.toarray() if sparse.issparse(taken) else taken)

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights. Large blocks of sparse columns stay sparse."""
        return column_scores(self._taken(X), weights)

    def _taken(self, X: Any) -> Any:
        return X if self._range == range(X.shape[1]) else X[:, self.feature]

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return np.unique(self._list) if self._range is None else self.feature

    def operations(self) -> int:
        """Return 0, as reading a column needs no arithmetic."""
        return 0


class _PerFeature(Primitive):
    """A primitive with one feature for each column."""

    feature: np.ndarray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.feature)

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return np.unique(self.feature)


class Filled(_PerFeature):
    """Input columns without gaps: column j is x[feature[j]], or value[j] if that is missing.

    Parameters
    ----------
    feature, value : array of shape (n_columns,)
    """

    fields = ("feature", "value")

    def __init__(self, feature: Any, value: Any) -> None:
        self.feature = whole(feature)
        self.value = np.asarray(value, dtype=np.float64)
        check_lengths(self, feature=self.feature, value=self.value)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows in float64."""
        v = take(X, self.feature).astype(np.float64)
        return np.where(np.isnan(v), self.value, v)

    def operations(self) -> int:
        """Return the number of comparisons, one per column."""
        return len(self.feature)


class Compare(_PerFeature):
    """Yes/no questions about features, answered by 1 or 0.

    Parameters
    ----------
    feature, value, test : array of shape (n_columns,)
        Column j asks about x = x[feature[j]]. The question is x ≤ value[j] for test 0, x = value[j]
        for test 1, and "is x missing?" for test 2. A missing x is never ≤ or =.
    """

    fields = ("feature", "value", "test")

    def __init__(self, feature: Any, value: Any, test: Any) -> None:
        self.feature = whole(feature)
        self.value = np.asarray(value, dtype=np.float64)
        self.test = np.asarray(test, dtype=np.uint8)
        check_lengths(self, feature=self.feature, value=self.value, test=self.test)
        if self.test.max(initial=0) > MISSING:
            raise ValueError(f"test must hold 0, 1 or 2, not {int(self.test.max())}")
        self._equal = np.flatnonzero(self.test == EQUAL)
        self._missing = np.flatnonzero(self.test == MISSING)

    def columns(self, X: Any) -> np.ndarray:
        """Return the answers on new rows, 0 or 1, in the type of the rows if it is a float."""
        v = take(X, self.feature)
        dtype = v.dtype if v.dtype.kind == "f" else np.dtype(np.float64)
        out = np.empty(v.shape, dtype=dtype)
        with np.errstate(invalid="ignore"):
            np.less_equal(v, self.value, out=out)
            if len(self._equal):
                out[:, self._equal] = v[:, self._equal] == self.value[self._equal]
        if len(self._missing):
            out[:, self._missing] = np.isnan(v[:, self._missing])
        return out

    def operations(self) -> int:
        """Return the number of comparisons, one per question."""
        return len(self.feature)


class Multiply(Primitive):
    """Products of two features: column j is x[first[j]] · x[second[j]].

    Parameters
    ----------
    first, second : array of shape (n_columns,)
    """

    fields = ("first", "second")

    def __init__(self, first: Any, second: Any) -> None:
        self.first = whole(first)
        self.second = whole(second)
        check_lengths(self, first=self.first, second=self.second)

    @property
    def n_columns(self) -> int:
        """Number of columns, one per product."""
        return len(self.first)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows, in float64 if any is out of the range of float32."""
        first, second = take(X, self.first), take(X, self.second)
        if first.dtype not in (np.float32, np.float64):  # integers would overflow without an error
            first, second = first.astype(np.float64), second.astype(np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            product = first * second
            if product.dtype == np.float32:
                size, least = np.abs(product), np.finfo(np.float32).tiny
                lost = ~np.isfinite(product) | ((size < least) & (first != 0) & (second != 0))
                if lost.any():
                    product = product.astype(np.float64)
                    product[lost] = first[lost].astype(np.float64) * second[lost]
        if np.isfinite(product).all():
            return product
        over = np.argwhere(~np.isfinite(product) & np.isfinite(first) & np.isfinite(second))
        if len(over):
            row, column = over[0]
            raise ValueError(
                f"the product of columns {self.first[column]} and {self.second[column]} of X "
                f"overflows in row {row}; give X in the units of the training rows"
            )
        return product

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return np.unique(np.concatenate([self.first, self.second]))

    def operations(self) -> int:
        """Return the number of multiplications, one per product."""
        return len(self.first)


class LookUp(_PerFeature):
    """Tables of values: column j is table[j, x] for the whole number x = x[feature[j]].

    The column is 0 if x is missing, not whole, or not in 0, …, size − 1.

    Parameters
    ----------
    feature : array of shape (n_columns,)
    table : array of shape (n_columns, size)
    """

    fields = ("feature", "table")

    def __init__(self, feature: Any, table: Any) -> None:
        self.feature = whole(feature)
        self.table = np.asarray(table, dtype=np.float64)
        if self.feature.ndim != 1 or self.table.shape[:-1] != self.feature.shape:
            raise ValueError(
                "a LookUp needs a table with one line per feature, not a table of shape "
                f"{self.table.shape} for features of shape {self.feature.shape}"
            )

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows in float64."""
        v = take(X, self.feature)
        known = (v >= 0) & (v < self.table.shape[1]) & (v == np.floor(v))
        out = np.zeros(v.shape)
        out[known] = self.table[np.nonzero(known)[1], v[known].astype(np.int64)]
        return out

    def operations(self) -> int:
        """Return the number of look-ups, one per table."""
        return len(self.feature)
