"""Columns in bins: conditions on a column are ranges of its bins."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.data.doubts import KINDS
from laconic.report.columns import TableColumn

# Equally full bins of a column of numbers, in the scan and when a rule is polished.
COARSE, FINE = 16, 64


class Binned(NamedTuple):
    """One column of some rows in bins."""

    codes: np.ndarray
    """Bin of every row, as bytes. The last bin holds the missing values."""
    ranges: np.ndarray
    """First and last bin of every condition on this column, (n_conditions, 2)."""
    cuts: np.ndarray
    """For numbers: bin k holds the numbers above ``cuts[k - 1]`` and up to ``cuts[k]``."""
    size: int
    """Number of bins."""


class Bins(NamedTuple):
    """Several columns of some rows in bins."""

    codes: np.ndarray
    """Bin of every row, (n_columns, n_rows)."""
    ranges: np.ndarray
    """Conditions on all columns, one column after the other."""
    starts: np.ndarray
    """Where the conditions of each column start, and their number."""
    sizes: np.ndarray
    """Number of bins of each column."""
    cuts: list[np.ndarray]
    """Cuts of each column."""

    @classmethod
    def of(cls, columns: list[Binned]) -> Bins:
        """Put columns side by side."""
        return cls(
            np.array([column.codes for column in columns], dtype=np.uint8),
            np.concatenate([np.empty((0, 2), np.int64), *(column.ranges for column in columns)]),
            np.cumsum([0, *(len(column.ranges) for column in columns)]),
            np.array([column.size for column in columns], dtype=np.int64),
            [column.cuts for column in columns],
        )

    def only(self, column: int) -> Bins:
        """Return one of the columns."""
        conditions = slice(self.starts[column], self.starts[column + 1])
        return Bins(
            self.codes[column : column + 1],
            self.ranges[conditions],
            np.array([0, conditions.stop - conditions.start]),
            self.sizes[column : column + 1],
            self.cuts[column : column + 1],
        )


def in_bins(column: TableColumn, rows: np.ndarray, most: int) -> Binned:
    """Cut a column into at most ``most`` bins of numbers, or into its categories.

    Categories that are too rare to have a column of their own are in no condition.
    """
    values = column.values[rows]
    if column.names is not None:
        codes, n = column.kinds()
        codes = codes[rows]
        cuts = np.empty(0)
    else:
        known = values[~np.isnan(values)]
        cuts = cut_points(known, most, column.whole)
        n = len(cuts) + 1
        codes = np.where(np.isnan(values), n, np.searchsorted(cuts, values))
    codes = np.where(codes < 0, n, codes).astype(np.uint8)
    gaps = bool((codes == n).any())
    if column.names is not None:
        named = n - 1 if len(column.names) > KINDS + 1 else n
        ranges = [(k, k) for k in range(named)]
    else:  # all numbers are a condition only if some are missing
        ranges = [(i, j) for i in range(n) for j in range(i, n) if gaps or (i, j) != (0, n - 1)]
    if gaps:
        ranges.append((n, n))
    return Binned(codes, np.array(ranges, dtype=np.int64).reshape(-1, 2), cuts, n + 1)


def cut_points(known: np.ndarray, most: int, whole: bool) -> np.ndarray:
    """Return the cuts between about ``most`` equally full bins of numbers.

    A number that would fill a bin alone gets a bin of its own. The other bins share the other rows.
    A cut is the shortest number between its two neighbours.

    Examples
    --------
    >>> cut_points(np.array([0.0] * 90 + list(range(1, 11))), 4, True)
    array([0., 5.])
    """
    values, counts = np.unique(known, return_counts=True)
    last = np.arange(len(values) - 1)
    if len(values) > most:
        heavy = counts >= counts.sum() / most
        # A heavy number may cut a bin in two, so that each takes the room of two bins.
        room = max(most - 2 * int(heavy.sum()), 1)
        light = np.where(heavy, 0, counts)
        share = (np.cumsum(light) - 0.5 * light) / max(light.sum(), 1)
        ends = np.diff((share * room).astype(np.int64)) != 0
        last = np.flatnonzero(ends | heavy[1:] | heavy[:-1])
    return np.array([_between(values[i], values[i + 1], whole) for i in last])


def _between(a: float, b: float, whole: bool) -> float:
    """Return the shortest number t with a ≤ t < b.

    Examples
    --------
    >>> _between(45.0, 46.0, True), _between(0.123, 0.131, False), _between(2.0, 7.5, False)
    (45.0, 0.13, 5.0)
    """
    if whole:
        return float(a)
    middle = a + 0.5 * (b - a)
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if a <= short < b:
            return short
    return float(a) if not math.isfinite(middle) or not a <= middle < b else float(middle)
