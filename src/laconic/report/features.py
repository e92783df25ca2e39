"""Tables of any columns: their rows as points, and how much every feature counts in distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.data.dates import DATE
from laconic.report.columns import TableColumn, quoted, read_columns

# Most bars of a small plot of categories.
CATEGORIES = 6
# Quantiles at which numbers are cut to see whether errors depend on them, and the smallest weight
# of a feature.
EIGHTHS, FAINTEST = np.arange(1, 8) / 8, 0.1
# Smallest variance of the errors in a cell, so that one error in a cell without any expected does
# not make its feature count most.
LEAST_VARIANCE = 0.5


@dataclass(frozen=True)
class NamedTable:
    """A table as columns for sentences, and as points ``Z`` for distances."""

    columns: list[TableColumn]
    Z: np.ndarray
    owner: np.ndarray
    """For each column of ``Z``, the number of the feature that it comes from."""
    image_shape: tuple[int, int] | None = None
    """Height and width if rows are pictures, otherwise None."""

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that are left out because they name rows."""
        return [column.name for column in self.names_of_rows]

    @property
    def names_of_rows(self) -> list[TableColumn]:
        """Columns that neither distances nor sentences use because they name rows."""
        if self.image_shape is not None:
            return []
        return [column for column in self.columns if column.left_out]

    @property
    def numbered(self) -> list[str]:
        """Names of the other columns that have a different whole number in every row."""
        if self.image_shape is not None:
            return []
        return [c.name for c in self.columns if c.numbered and not c.left_out]

    def meaning(self, column: int) -> tuple[str, str]:
        """Say what a column of ``Z`` is, and what a large value in it means, both for sentences."""
        feature = int(self.owner[column])
        if self.image_shape is not None:
            row, across = divmod(feature, self.image_shape[1])
            return f"the pixel in row {row + 1}, column {across + 1}", "a large value"
        of, place = self.columns[feature], column - int(np.searchsorted(self.owner, feature))
        if of.names is None:
            high = "a late date" if of.unit == DATE else "a high value"
            return (of.name, high) if place == 0 else (f"{of.name} missing", "it")
        return (f"{of.name} {quoted(of.kind_name(place))}", "it")

    def __len__(self) -> int:
        return len(self.Z)


@dataclass(frozen=True)
class FeatureGap:
    """How much the distribution of a feature among some rows differs from that among the others."""

    name: str
    gap: float
    """Difference of the two distributions: 0 if they are the same, 1 if one value tells the rows
    apart. For categories it is the total variation. For numbers it is the largest difference of the
    distribution functions (Kolmogorov-Smirnov), or the difference of the shares of missing numbers
    if that is larger."""
    sentence: str
    bars: list[tuple[str, float, float]]
    """Bars of a small plot: the name, the share among these rows, the share among the others."""


def as_table(X: Any, image_shape: tuple[int, int] | None = None) -> NamedTable:
    """Turn a frame, array or sparse matrix into columns and points.

    Numbers and dates are scaled to unit variance. Missing numbers get the mean, and an extra column
    marks them. Each of the ``KINDS`` commonest categories gets a column, and all rarer ones share
    one. Text and numbers that name rows are left out. Pictures keep their units.
    """
    columns = read_columns(X)
    if not columns:
        raise ValueError("X has no columns.")
    if image_shape is not None:
        if image_shape[0] * image_shape[1] != len(columns):
            raise ValueError(
                f"pictures of {image_shape[0]} x {image_shape[1]} have "
                f"{image_shape[0] * image_shape[1]} pixels, but X has {len(columns)} columns."
            )
        Z = np.column_stack([c.values for c in columns])
        if not np.isfinite(Z).all():
            raise ValueError("pictures must not have missing or infinite pixels.")
        spread = Z.std() or 1.0
        return NamedTable(columns, Z / spread, np.arange(len(columns)), image_shape)
    if all(column.left_out for column in columns):
        raise ValueError("every column of X seems to name rows. Give columns to compare.")
    widths = [_width(column) for column in columns]
    owner = np.repeat(np.arange(len(columns)), widths)
    Z = np.empty((len(columns[0].values), len(owner)))
    for column, width, end in zip(columns, widths, np.cumsum(widths), strict=True):
        if width:
            Z[:, end - width : end] = _points(column)
    return NamedTable(columns, Z, owner)


def _width(column: TableColumn) -> int:
    """Return the number of columns of ``Z`` that a column becomes."""
    if column.left_out:
        return 0
    if column.names is not None:
        return column.kinds()[1]
    return 1 if len(column.known) in (0, len(column.values)) else 2


def _points(column: TableColumn) -> np.ndarray:
    if column.names is not None:
        codes, n = column.kinds()
        return (codes[:, None] == np.arange(n)).astype(np.float64)
    missing = np.isnan(column.values)
    if missing.all():
        return np.zeros((len(missing), 1))
    # Heavy tails are cut, as they would make one column outweigh the others.
    low, high = np.quantile(column.known, [0.005, 0.995])
    # Sums over sorted numbers do not depend on the order of the rows, not even in their last bit.
    known = np.sort(np.clip(column.known, low, high))
    values = np.where(missing, known.mean(), np.clip(column.values, low, high))
    spread = np.sqrt(np.square(known - known.mean()).sum() / len(values))
    scaled = (values - known.mean()) / spread if spread > 0 else np.zeros(len(values))
    return np.column_stack([scaled, missing]) if missing.any() else scaled[:, None]


def focus(
    table: NamedTable, error: np.ndarray, expected: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return how much every column of ``Z`` should count in distances when searching for errors.

    The weight of a feature is the square root of the excess of χ²/df over 1, divided by the largest
    such root. The test is of the errors of ``rows`` beyond those expected against the feature, cut
    into eighths or categories. The weight is about 0 for a feature that they do not depend on and 1
    for the one that they depend on most, but at least ``FAINTEST``. All pixels count the same.

    Parameters
    ----------
    table : NamedTable
    error, expected : ndarray of shape (len(rows),)
        Errors in [0, 1] and expected errors in (0, 1).
    rows : ndarray of int
    """
    if table.image_shape is not None:
        return np.ones(table.Z.shape[1])
    more, spread = error - expected, expected * (1.0 - expected)
    excess = np.array([_dependence(column, more, spread, rows) for column in table.columns])
    if not excess.max() > 0:
        return np.ones(table.Z.shape[1])
    return np.maximum(np.sqrt(excess / excess.max()), FAINTEST)[table.owner]


def _dependence(
    column: TableColumn, more: np.ndarray, spread: np.ndarray, rows: np.ndarray
) -> float:
    if column.left_out:
        return 0.0
    if column.names is None:
        values = column.values[rows]
        missing = np.isnan(values)
        some = bool(missing.any())
        known = values[~missing] if some else values
        cuts = np.unique(np.quantile(known, EIGHTHS)) if len(known) else np.empty(0)
        codes = np.searchsorted(cuts, values)
        if some:
            codes[missing] = len(cuts) + 1
    else:
        codes = column.kinds()[0][rows].astype(np.int64) + 1
    filled = np.flatnonzero(np.bincount(codes))
    beyond, variance = np.bincount(codes, more)[filled], np.bincount(codes, spread)[filled]
    if len(beyond) < 2:
        return 0.0
    chi2 = float((np.square(beyond) / np.maximum(variance, LEAST_VARIANCE)).sum())
    return max(chi2 / (len(beyond) - 1) - 1.0, 0.0)
