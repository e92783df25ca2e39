"""Products with local columns. The rows of each atom are gathered, and BLAS multiplies them.

One call handles all atoms of a block of rows without Python, so that threads do not wait for each
other. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic.numeric import blas
from laconic.numeric.compiled import compiled

if TYPE_CHECKING:
    from laconic.rows.blocks import Flat


def multiply(flat: Flat, weights: np.ndarray, out: np.ndarray) -> None:
    """Add ``table[rows of j] @ weights[j]``, times their heights, to those rows of ``out``."""
    table, rows, ends, heights, most = flat
    _, t, k = weights.shape
    V, S = np.empty((most, t), dtype=table.dtype), np.empty((most, k), dtype=table.dtype)
    _multiply(blas.address(table.dtype), table, rows, ends, heights, weights, V, S, out)


def add_up(flat: Flat, values: np.ndarray, out: np.ndarray) -> None:
    """Write table[rows of j]ᵀ values[rows of j] to ``out[j]``, (t, k).

    Each row is multiplied by its height.
    """
    table, rows, ends, heights, most = flat
    _, t, k = out.shape
    V, R = np.empty((most, t), dtype=table.dtype), np.empty((most, k), dtype=table.dtype)
    some, sums = np.empty(t * k, dtype=table.dtype), out.reshape(len(out), -1)
    _add_up(blas.address(table.dtype), table, rows, ends, heights, values, V, R, some, sums)


@compiled
def _multiply(gemm, table, rows, ends, heights, weights, V, S, out):  # type: ignore[no-untyped-def]
    for j in range(ends.size - 1):
        first, n = ends[j], ends[j + 1] - ends[j]
        for p in range(n):
            blas.copy(table, rows[first + p], V, p)
        blas.times(gemm, V, n, weights, j, S)
        if heights.size > 0:
            for p in range(n):
                for c in range(S.shape[1]):
                    S[p, c] *= heights[first + p]
        for p in range(n):
            row = rows[first + p]
            for c in range(S.shape[1]):
                out[row, c] += S[p, c]


@compiled
def _add_up(gemm, table, rows, ends, heights, values, V, R, some, out):  # type: ignore[no-untyped-def]
    for j in range(ends.size - 1):
        first, n = ends[j], ends[j + 1] - ends[j]
        for p in range(n):
            blas.copy(table, rows[first + p], V, p)
        for p in range(n):
            blas.copy(values, rows[first + p], R, p)
        if heights.size > 0:
            for p in range(n):
                for c in range(R.shape[1]):
                    R[p, c] *= heights[first + p]
        blas.cross(gemm, V, R, 0, n, some)
        for e in range(some.size):
            out[j, e] = some[e]
