"""Sums over the balls of many centres and radii, for `laconic.pools.bound_balls`.

The code of a row for a centre is the number of radii that do not reach the row. One pass over the
codes sums the rows of every code. A running sum over the codes then gives the sum of every ball.
This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric import blas
from laconic.numeric.compiled import compiled

# Number of rows sorted together. It is small enough for a core's cache, and large enough that the
# rows of a code are worth a call of BLAS. Sums are formed in the dtype of the data, and added in
# float64.
STRETCH = 8192


def sums_within(
    codes: np.ndarray,
    depths: np.ndarray,
    table: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add Σ_i residual_ic table_id over the rows within every radius to ``sums``.

    ``codes`` is (centres, rows). ``sums`` is (centres, radii, k, t) in float64. Rows within radius
    b have codes up to b. ``sums`` may have a multiple of the outputs of the residual. The second,
    third, ... part then gets the same sums with every row times the first, second, ... power of its
    entry of ``depths``, (centres, rows).

    A stretch of rows is sorted by code. BLAS then sums the rows of each code.
    """
    _, n_codes, outputs, t = sums.shape
    most, dtype = min(STRETCH, codes.shape[1]), table.dtype
    order, ends = np.empty(most, dtype=np.uint32), np.empty(n_codes + 1, dtype=np.uint32)
    V, R = np.empty((most, t), dtype=dtype), np.empty((most, outputs), dtype=dtype)
    some, whole = np.empty(outputs * t, dtype=dtype), np.empty(outputs * t)
    flat = sums.reshape(*sums.shape[:2], -1)
    gemm = blas.address(dtype)
    _sum_within(gemm, codes, depths, table, residual, order, ends, V, R, some, whole, flat)


@compiled
def _sum_within(
    gemm: int,
    codes: Any,
    depths: Any,
    table: Any,
    residual: Any,
    order: Any,
    ends: Any,
    V: Any,
    R: Any,
    some: Any,
    whole: Any,
    sums: Any,
) -> None:
    n_rows, n_codes, k = codes.shape[1], sums.shape[1], residual.shape[1]
    for low in range(0, n_rows, STRETCH):
        count = STRETCH if n_rows - low > STRETCH else n_rows - low
        for j in range(codes.shape[0]):
            for b in range(n_codes + 1):  # sort the rows by code, and note where each code ends
                ends[b] = 0
            for i in range(count):
                ends[codes[j, low + i]] += 1
            start = 0
            for b in range(n_codes + 1):
                start += ends[b]
                ends[b] = start - ends[b]
            for i in range(count):
                b = codes[j, low + i]
                order[ends[b]] = low + i
                ends[b] += 1
            inside = ends[n_codes - 1]
            for p in range(inside):  # one loop for both arrays would take half as long again
                blas.copy(table, order[p], V, p)
            for p in range(inside):
                for c in range(R.shape[1]):
                    if c < k:
                        R[p, c] = residual[order[p], c]
                    else:
                        R[p, c] = R[p, c - k] * depths[j, order[p]]
            first = 0
            for b in range(n_codes):
                blas.cross(gemm, R, V, first, ends[b], some)
                for e in range(some.size):
                    whole[e] = some[e] if b == 0 else whole[e] + some[e]
                    sums[j, b, e] += whole[e]
                first = ends[b]


def sums_by_ball(sums: np.ndarray, k: int, origins: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Turn sums within every radius into sums of every ball's columns, in place, without factors.

    ``sums`` is (centres, radii, k or 2k, t), and the result is (centres, radii, k, t). Let n be the
    length of an origin. Entry d < n of the last axis becomes the sum of v_d − origin_d. Entry n
    becomes the sum of the constant. ``factors`` is (centres, radii, 3): the linear factor, the
    constant factor, and for soft balls the multiple of the second half of the outputs that is
    subtracted from the first half.
    """
    out = sums[:, :, :k]
    if sums.shape[2] > k:
        out -= factors[:, :, 2, None, None] * sums[:, :, k:]
    shift = np.zeros((len(origins), 1, 1, sums.shape[3]))
    shift[:, 0, 0, :-1] = origins
    out -= shift * out[..., -1:]
    return out
