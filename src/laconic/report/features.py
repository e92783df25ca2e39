"""Tables of any columns: their rows as points, and features that set some rows apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.data.dates import DATE
from laconic.look.numbers import percent
from laconic.report.columns import TableColumn, quoted, read_columns

# Most bars of a small plot: for numbers and for categories.
BARS, CATEGORIES = 16, 6
# If at least this share of a clump's rows has one number, the report names it, as it may be a code.
MOSTLY = 0.9
# Most features of a clump that get a sentence, and the smallest difference that gets one.
GAPS, LEAST_GAP = 6, 0.15
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
    values = column.values[rows]
    if column.names is None:
        none = np.isnan(values).all()
        cuts = np.empty(0) if none else np.unique(np.nanquantile(values, EIGHTHS))
        codes = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
    else:
        codes = column.kinds()[0][rows]
    cells = np.unique(codes, return_inverse=True)[1]
    beyond, variance = np.bincount(cells, more), np.bincount(cells, spread)
    if len(beyond) < 2:
        return 0.0
    chi2 = float((np.square(beyond) / np.maximum(variance, LEAST_VARIANCE)).sum())
    return max(chi2 / (len(beyond) - 1) - 1.0, 0.0)


def feature_gaps(table: NamedTable, rows: np.ndarray, most: int = GAPS) -> list[FeatureGap]:
    """Return the features whose distribution among ``rows`` differs most from that of all others.

    The list is empty for pictures, as no pixel says much by itself.
    """
    inside = np.zeros(len(table), dtype=bool)
    inside[rows] = True
    if table.image_shape is not None or not inside.any() or inside.all():
        return []
    gaps = [(_gap(c, inside), i) for i, c in enumerate(table.columns) if not c.left_out]
    gaps.sort(key=lambda pair: (-pair[0], pair[1]))
    return [_described(table.columns[i], inside, gap) for gap, i in gaps[:most] if gap >= LEAST_GAP]


def _gap(column: TableColumn, inside: np.ndarray) -> float:
    if column.names is not None:
        here, there = _shares(column, inside)
        return float(0.5 * np.abs(here - there).sum())
    return max(_number_gap(column.values, inside), _missing_gap(column.values, inside))


def _number_gap(values: np.ndarray, inside: np.ndarray) -> float:
    """Return the largest difference of the distribution functions of the known numbers."""
    known = ~np.isnan(values)
    here, there = values[known & inside], values[known & ~inside]
    if len(here) == 0 or len(there) == 0:
        return 0.0
    fewer, more = sorted((here, there), key=len)
    # Between two of the fewer numbers, one function is flat and the other rises. So the difference
    # is largest at one of them, or just before it, and only the fewer numbers need sorting.
    at, counts = np.unique(fewer, return_counts=True)
    below = np.cumsum(counts) / len(fewer)
    gap = 0.0
    for places, own in (
        (np.searchsorted(at, more, side="left"), below),
        (np.searchsorted(at, more, side="right"), below - counts / len(fewer)),
    ):
        other = np.cumsum(np.bincount(places, minlength=len(at) + 1))[:-1] / len(more)
        gap = max(gap, float(np.abs(own - other).max()))
    return gap


def _missing_gap(values: np.ndarray, inside: np.ndarray) -> float:
    """Return the difference of the shares of missing numbers."""
    missing = np.isnan(values)
    return float(abs(missing[inside].mean() - missing[~inside].mean()))


def _shares(column: TableColumn, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of the categories (missing last) inside and outside."""
    codes, n = column.kinds()
    codes = np.where(codes < 0, n, codes).astype(np.int64)
    counts = [np.bincount(codes[part], minlength=n + 1) for part in (inside, ~inside)]
    return counts[0] / counts[0].sum(), counts[1] / counts[1].sum()


def _described(column: TableColumn, inside: np.ndarray, gap: float) -> FeatureGap:
    if column.names is not None:
        return _categories(column, inside, gap)
    return _numbers(column, inside, gap)


def _categories(column: TableColumn, inside: np.ndarray, gap: float) -> FeatureGap:
    names = [*(column.kind_name(code) for code in range(column.kinds()[1])), "missing"]
    here, there = _shares(column, inside)
    # Of the categories that differ most, those that are common here come first, and the sentence
    # names one that is more common here than elsewhere.
    order = np.lexsort((there - here, -np.abs(here - there)))[:CATEGORIES]
    order = order[np.argsort(-here[order], kind="stable")]
    top = int(np.argmax(here - there))
    what = names[top] if names[top] == "missing" else quoted(names[top])
    sentence = (
        f"{column.name} is {what} in {percent(here[top])} of the clump, "
        f"in {percent(there[top])} elsewhere."
    )
    bars = [(names[i], float(here[i]), float(there[i])) for i in order if here[i] + there[i] > 0]
    return FeatureGap(column.name, gap, sentence, bars)


def _numbers(column: TableColumn, inside: np.ndarray, gap: float) -> FeatureGap:
    known = ~np.isnan(column.values)
    here, there = column.values[known & inside], column.values[known & ~inside]
    if _missing_gap(column.values, inside) > _number_gap(column.values, inside):
        share = float(known[inside].mean()), float(known[~inside].mean())
        what = "known" if share[0] > share[1] else "missing"  # whichever is more common here
        if what == "missing":
            share = 1.0 - share[0], 1.0 - share[1]
        sentence = (
            f"{column.name} is {what} in {percent(share[0])} of the clump, "
            f"in {percent(share[1])} elsewhere."
        )
        return FeatureGap(column.name, gap, sentence, [(what, *share)])
    values = np.unique(column.values[known])
    if len(values) <= 2:
        often = [float((here == v).mean() - (there == v).mean()) for v in values]
        sentence = _so_often(column, float(values[int(np.argmax(often))]), here, there)
        bars = [
            (column.spelled(float(v)), float((here == v).mean()), float((there == v).mean()))
            for v in values
        ]
        return FeatureGap(column.name, gap, sentence, bars)
    sentence = _moved(column, here, there)
    low, high = np.quantile(column.values[known], [0.005, 0.995])
    if not low < high:
        low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, BARS + 1)
    counts = [np.histogram(np.clip(v, low, high), edges)[0] / len(v) for v in (here, there)]
    bars = [
        (f"{column.spelled(a)} to {column.spelled(b)}", float(x), float(z))
        for a, b, x, z in zip(edges[:-1], edges[1:], *counts, strict=True)
    ]
    return FeatureGap(column.name, gap, sentence, bars)


def _moved(column: TableColumn, here: np.ndarray, there: np.ndarray) -> str:
    """Compare the numbers in the clump with the others in a sentence."""
    quarters = [np.quantile(v, [0.25, 0.5, 0.75]) for v in (here, there)]
    middle, other = float(quarters[0][1]), float(quarters[1][1])
    if np.mean(here == middle) >= MOSTLY:
        return _so_often(column, middle, here, there)
    later, earlier = ("later", "earlier") if column.unit == DATE else ("higher", "lower")
    way = later if middle > other else earlier if middle < other else "spread differently"
    ends = [(column.spelled(q[0]), column.spelled(q[2])) for q in quarters]
    spans = [low if low == high else f"{low} to {high}" for low, high in ends]
    return (
        f"{column.name} is {way}: the middle half of the clump has {spans[0]}, "
        f"and that of the others has {spans[1]}."
    )


def _so_often(column: TableColumn, value: float, here: np.ndarray, there: np.ndarray) -> str:
    """Say how often a column has a value, in the clump and elsewhere."""
    inside, outside = (percent(float((v == value).mean())) for v in (here, there))
    return (
        f"{column.name} is {column.spelled(value)} in {inside} of the clump, "
        f"in {outside} elsewhere."
    )
