"""Passes over the stored entries of sparse rows, in one call without the interpreter's lock.

SciPy copies the entries if they are in single precision. This module imports Numba, so it is
imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def add_rows_into(indptr: Any, indices: Any, data: Any, residual: Any, sums: Any) -> None:
    """Add the column sums Xᵀ residual of some rows to ``sums`` (columns, k), in its type.

    ``indptr`` has the places of these rows among all ``indices`` and ``data``.
    """
    k = residual.shape[1]
    zero = sums[0, 0] * 0
    for i in range(len(residual)):
        row = np.uintp(i)
        for p in range(indptr[i], indptr[i + 1]):
            x, column = zero + data[np.uintp(p)], np.uintp(indices[np.uintp(p)])
            for c in range(k):
                sums[column, np.uintp(c)] += x * residual[row, np.uintp(c)]


@compiled
def peaks_into(indices: Any, data: Any, peaks: Any) -> None:
    """Raise ``peaks`` to the largest absolute value of every column. No entry is stored twice."""
    for p in range(len(data)):
        column = np.uintp(indices[np.uintp(p)])
        peaks[column] = max(peaks[column], np.float64(abs(data[np.uintp(p)])))


@compiled
def column_into(indptr: Any, indices: Any, data: Any, column: int, factor: float, out: Any) -> None:
    """Write a column of some rows times a factor to ``out``. The entries of a row are in order."""
    for i in range(len(out)):
        low, high = indptr[i], indptr[i + 1]
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < column:
                low = middle + 1
            else:
                high = middle
        found = low < indptr[i + 1] and indices[low] == column
        out[i] = data[low] * factor if found else 0.0
