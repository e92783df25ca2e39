"""Products of a block's columns with weights and with values, in one call without the lock.

BLAS gets a few rows at a time; see `laconic.rows.limits.Limits`. The loop over them is compiled, so
that threads do not wait for each other between two calls. This module imports Numba, so it is
imported at first use.
"""

from __future__ import annotations

import numpy as np

from laconic.numeric import blas
from laconic.numeric.compiled import compiled


def multiply(lines: np.ndarray, weights: np.ndarray, step: int) -> np.ndarray:
    """Return ``weights`` (k, n) times the first n of the columns ``lines`` (columns, rows)."""
    out = np.empty((len(weights), lines.shape[1]), dtype=lines.dtype)
    if weights.size:
        _multiply(blas.address(lines.dtype), lines, np.ascontiguousarray(weights), step, out)
    else:
        out[:] = 0
    return out


def add_up(lines: np.ndarray, values: np.ndarray, n: int, step: int) -> np.ndarray:
    """Return the sums over rows of the first n columns times ``values`` (k, rows), (k, n)."""
    total = np.zeros((len(values), n))
    if total.size:
        some = np.empty(total.shape, dtype=lines.dtype)
        values = np.ascontiguousarray(values, dtype=lines.dtype)
        _add_up(blas.address(lines.dtype), lines, values, step, some, total)
    return total


@compiled
def _multiply(gemm, lines, weights, step, out):  # type: ignore[no-untyped-def]
    m = lines.shape[1]
    for first in range(0, m, step):
        blas.tall_product(gemm, lines, first, min(step, m - first), weights, out)


@compiled
def _add_up(gemm, lines, values, step, some, total):  # type: ignore[no-untyped-def]
    m = lines.shape[1]
    for first in range(0, m, step):
        blas.tall_sums(gemm, lines, first, min(step, m - first), values, some)
        for c in range(total.shape[0]):
            for j in range(total.shape[1]):
                total[c, j] += some[c, j]
