"""Find the scales of the input columns without copying the data matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.numeric.magnitudes import ENLARGE
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.parts import Place

# Numbers that are read together: 8 MB in float64, enough to hide the cost of a NumPy call.
ENTRIES = 1 << 20
# Stored entries of sparse rows from which a pass is compiled. With fewer, loading Numba takes
# longer than a fit gains.
COMPILED = 1 << 22

# Largest values whose squares can be summed over rows, by the bytes of a number.
LARGEST = {4: 1e18, 8: 1e140}
# Range of the sizes of columns, and of their products. A weight in the units of the input is the
# weight of the scaled column divided by this size, and must not overflow.
SMALLEST_UNIT, LARGEST_UNIT = 1e-301, 1e301
# Range of the sizes of columns whose sums in float32 neither overflow nor lose precision.
SINGLE = 2.0**-60, 2.0**60


class ColumnsSurvey(NamedTuple):
    """The survey of columns: their sizes in some rows."""

    peak: np.ndarray
    """Largest absolute values."""
    dtype: np.dtype[Any]
    weight: float = 1.0
    """Sum of the weights of the rows."""
    mean: np.ndarray | None = None
    """Weighted means divided by the peaks. Only ``scale="std"`` needs means and deviations."""
    deviation: np.ndarray | None = None
    """Weighted standard deviations divided by the peaks."""


def survey_columns(
    X: Any,
    scale: str | None,
    weight: np.ndarray,
    entries: int = ENTRIES,
    threads: Threads | None = None,
) -> ColumnsSurvey:
    """Return the sizes from which the scales of columns are found.

    Parameters
    ----------
    X : ndarray or sparse matrix (CSR or CSC) of shape (n_rows, d)
        Finite values. A bounded number of them is read at a time. Zeros that a sparse matrix does
        not store count like zeros that it stores.
    scale : {"max", "std"} or None
        See `column_scales`.
    weight : ndarray of shape (n_rows,)
        Row weights. Only ``"std"`` reads them.
    entries : int
        How many numbers are read together.
    threads : Threads, optional
        Threads that look for the largest values.
    """
    if not (scale is None or (isinstance(scale, str) and scale in ("max", "std"))):
        raise ValueError(f"scale must be 'max', 'std' or None, not {scale!r}")
    is_sparse = sparse.issparse(X)
    if is_sparse and X.format not in ("csr", "csc"):
        raise TypeError(f"X must be a dense array or a CSR or CSC matrix, not {X.format.upper()}")
    X = X if is_sparse else np.asarray(X)
    peak = column_peaks(X, entries, threads)
    if scale != "std":
        return ColumnsSurvey(peak, X.dtype)
    # Deviations are those of x / max|x|, whose squares neither overflow nor vanish.
    weight, unit = np.asarray(weight, dtype=np.float64), np.where(peak > 0.0, peak, 1.0)
    share = float(weight.sum())
    if abs(share - 1.0) > 1e-9:  # these rows are a part; the weights of all rows sum to one
        weight = weight / share
    deviate = _deviation_sparse if is_sparse else _deviation_dense
    mean, deviation = deviate(X, weight, unit, entries)
    return ColumnsSurvey(peak, X.dtype, share, mean, deviation)


def merge_columns(parts: Sequence[ColumnsSurvey]) -> ColumnsSurvey:
    """Return the sizes of all rows, from the sizes of the parts."""
    if len(parts) == 1:
        return parts[0]
    peak = np.max([part.peak for part in parts], axis=0)
    if parts[0].mean is None:
        return ColumnsSurvey(peak, parts[0].dtype)
    weight = np.array([part.weight for part in parts])
    share = (weight / weight.sum())[:, None]
    unit = np.where(peak > 0.0, peak, 1.0)
    ratio = np.array([np.where(part.peak > 0.0, part.peak, 1.0) / unit for part in parts])
    # If a column is zero in a part, its mean and deviation there are zero in any unit.
    means = np.array([part.mean for part in parts]) * ratio
    deviations = np.array([part.deviation for part in parts]) * ratio
    # Means are measured from the first part's mean. So the deviation of a constant column is
    # exactly zero.
    offset = means - means[0]
    mean = np.sum(share * offset, axis=0)
    variance = np.sum(share * (deviations**2 + (offset - mean) ** 2), axis=0)
    return ColumnsSurvey(
        peak, parts[0].dtype, float(weight.sum()), means[0] + mean, np.sqrt(variance)
    )


def column_scales(sizes: ColumnsSurvey, scale: str | None) -> np.ndarray:
    """Return the factor of every column: scaled column = factor times input column.

    A column that is all zero (for ``"max"``) or constant (for ``"std"``) has factor 1, because
    there is nothing to divide by. It stays as it is. An all-zero column then scores zero against
    any residual. Columns are never centred.

    Parameters
    ----------
    sizes : ColumnsSurvey
        The merged survey of all rows.
    scale : {"max", "std"} or None
        ``"max"``: 1 / max_i |x_ir|, so that scaled values are in [-1, 1]. ``"std"``: 1 / the
        weighted standard deviation. ``None``: 1.

    Returns
    -------
    ndarray of shape (d,), float64
        The factors, positive and finite. A column is refused if its factor would make weights
        overflow.
    """
    size = sizes.peak
    if scale is None:
        if (size > LARGEST[sizes.dtype.itemsize]).any():
            raise ValueError(
                f"column {int(size.argmax())} of X holds values up to {size.max():.2g}, too large "
                "for sums over rows; set scale='max'"
            )
        return np.ones(len(size))
    usable = size > 0.0
    if sizes.deviation is not None:
        unit = np.where(size > 0.0, size, 1.0)
        usable, size = sizes.deviation > 0.0, unit * sizes.deviation
    tiny = np.flatnonzero(usable & (size < SMALLEST_UNIT))
    if len(tiny):
        what = "values no larger than" if scale == "max" else "a standard deviation of"
        raise ValueError(
            f"column {tiny[0]} of X has {what} {size[tiny[0]]:.2g}, so its weights would overflow; "
            f"{ENLARGE}"
        )
    return np.divide(1.0, size, out=np.ones_like(size), where=usable)


class ScaledPool:
    """Base class of pools with scaled columns. It surveys the sizes of the columns."""

    scale: str | None

    def sizes(self, X: Any, weight: np.ndarray, threads: Threads | None = None) -> ColumnsSurvey:
        """Return the sizes of the columns of some rows."""
        return survey_columns(X, self.scale, weight, threads=threads)

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> ColumnsSurvey:
        """Return the sizes of the columns of a part."""
        return self.sizes(X, weight, threads)

    def merge(self, surveys: Sequence[ColumnsSurvey], threads: Threads) -> ColumnsSurvey:
        """Return the sizes of the columns over all parts."""
        return merge_columns(surveys)


def column_peaks(X: Any, entries: int = ENTRIES, threads: Threads | None = None) -> np.ndarray:
    """Return the largest absolute value of every column."""
    threads = threads or Threads(1)
    if sparse.issparse(X):
        return _peak_sparse(X, entries, threads)
    return _peak_dense(X, entries, threads)


def needs_double(X: Any, factors: np.ndarray) -> bool:
    """Return whether sums of unscaled single-precision columns need double precision."""
    sizes = 1.0 / factors
    outside = (sizes < SINGLE[0]) | (sizes > SINGLE[1])
    return X.dtype == np.float32 and bool(outside.any())


def _tiles(X: np.ndarray, entries: int) -> Iterator[tuple[slice, slice]]:
    """Cut a dense matrix into tiles along the axis that keeps each tile contiguous in memory."""
    n_rows, d = X.shape
    if abs(X.strides[0]) >= abs(X.strides[1]):
        step = max(1, entries // max(d, 1))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows)), slice(0, d)
    else:
        step = max(1, entries // max(n_rows, 1))
        for start in range(0, d, step):
            yield slice(0, n_rows), slice(start, min(start + step, d))


def _peak_dense(X: np.ndarray, entries: int, threads: Threads) -> np.ndarray:
    peak = np.zeros(X.shape[1])

    def one(tile: tuple[slice, slice]) -> np.ndarray:
        return np.maximum(X[tile].max(axis=0), -X[tile].min(axis=0))

    tiles = list(_tiles(X, entries))
    for (_, columns), largest in zip(tiles, threads.map(one, tiles), strict=True):
        np.maximum(peak[columns], largest, out=peak[columns])
    return peak


def _deviation_dense(
    X: np.ndarray, weight: np.ndarray, unit: np.ndarray, entries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and deviation of every column of X / unit, in two passes."""
    # Values are measured from the column's first value. So the deviation of a constant column is
    # exactly zero.
    origin = X[0] / unit
    mean = np.zeros(X.shape[1])
    for rows, columns in _tiles(X, entries):
        tile = X[rows, columns] / unit[columns]
        tile -= origin[columns]
        mean[columns] += weight[rows] @ tile
    origin = origin + mean
    slip, variance = np.zeros((2, X.shape[1]))
    for rows, columns in _tiles(X, entries):
        tile = X[rows, columns] / unit[columns]
        tile -= origin[columns]
        slip[columns] += weight[rows] @ tile
        np.square(tile, out=tile)
        variance[columns] += weight[rows] @ tile
    return origin + slip, np.sqrt(np.maximum(variance - slip**2, 0.0))


def _stored(X: Any, entries: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, columns and values of stored entries, in whole rows (CSR) or columns (CSC).

    Entries that are stored twice are added up. X itself does not change.
    """
    start, stop = 0, len(X.indptr) - 1
    while start < stop:
        within = np.searchsorted(X.indptr, int(X.indptr[start]) + entries, side="right")
        end = max(start + 1, int(within) - 1)
        part = X[start:end] if X.format == "csr" else X[:, start:end]
        if not part.has_canonical_format:
            part = part.copy()
            part.sum_duplicates()
        major = np.repeat(np.arange(start, end), np.diff(part.indptr))
        values = part.data.astype(np.float64)
        yield (major, part.indices, values) if X.format == "csr" else (part.indices, major, values)
        start = end


def _peak_sparse(X: Any, entries: int, threads: Threads) -> np.ndarray:
    peak = np.zeros(X.shape[1])
    if X.format == "csr" and X.nnz >= COMPILED and X.has_canonical_format:
        for of_some in threads.map(partial(_compiled_peaks, X), row_blocks(X.nnz, COMPILED // 4)):
            np.maximum(peak, of_some, out=peak)
        return peak
    for _, columns, values in _stored(X, entries):
        np.maximum.at(peak, columns, np.abs(values))
    return peak


def _compiled_peaks(X: Any, some: slice) -> np.ndarray:
    from laconic.pools.sparse_kernels import peaks_into  # here, because it imports Numba

    peaks = np.zeros(X.shape[1])
    peaks_into(X.indices[some], X.data[some], peaks)
    return peaks


def _deviation_sparse(
    X: Any, weight: np.ndarray, unit: np.ndarray, entries: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and deviation of every column of X / unit.

    Zeros that are not stored count too.
    """
    n_rows, d = X.shape

    def total(columns: np.ndarray, terms: np.ndarray) -> np.ndarray:
        return np.bincount(columns, terms, minlength=d)

    count, absent, origin = np.zeros(d), np.full(d, weight.sum()), np.zeros(d)
    for rows, columns, values in _stored(X, entries):
        count += np.bincount(columns, minlength=d)
        absent -= total(columns, weight[rows])
        origin[columns] = values / unit[columns]
    # Values are measured from a value of the column, which is zero if a zero is not stored. So the
    # deviation of a constant column is exactly zero.
    full = count == n_rows
    origin[~full] = 0.0
    absent = np.where(full, 0.0, np.maximum(absent, 0.0))
    mean = np.zeros(d)
    for rows, columns, values in _stored(X, entries):
        mean += total(columns, weight[rows] * (values / unit[columns] - origin[columns]))
    origin = origin + mean
    slip, variance = -absent * origin, absent * origin**2
    for rows, columns, values in _stored(X, entries):
        offset = values / unit[columns] - origin[columns]
        slip += total(columns, weight[rows] * offset)
        variance += total(columns, weight[rows] * offset**2)
    return origin + slip, np.sqrt(np.maximum(variance - slip**2, 0.0))
