"""Sums over the balls of many centres and radii: what `laconic.pools.pieces` stands on.

The code of a row for a centre is the number of radii that do not reach it. One pass over the codes
sums the rows of every code, and a running sum over the codes gives the rows of every ball. This
module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows summed in the dtype of the data before they are added in float64. So many rows of the table
# stay in a core's cache from centre to centre.
STRETCH = 2048
# Columns of a table are padded to a multiple of this: loops over them run in whole registers.
LANES = 32


@njit(nogil=True, cache=True)
def _sort_codes(code: Any, order: Any, ends: Any) -> None:
    """Rows by code, and where each code's rows end; rows of the last code come last."""
    last = ends.size - 1
    ends[:] = 0
    for i in range(code.size):
        ends[code[i]] += 1
    start = 0
    for b in range(last + 1):
        count = ends[b]
        ends[b] = start
        start += count
    for i in range(code.size):
        b = code[i]
        order[ends[b]] = i
        ends[b] += 1


@njit(nogil=True, cache=True)
def sums_by_code(codes: Any, depths: Any, table: Any, residual: Any, sums: Any) -> None:
    """Add Σ_i residual_ic table_id over the rows of every code to ``sums``.

    ``codes`` is (centres, rows), ``sums`` (centres, radii, k, t) in float64. Rows of the last code,
    outside every ball, are left out. Where ``sums`` has twice the outputs of the residual, the
    second half gets the same sums with every row times its entry of ``depths``, (centres, rows).

    Rows of a code come four at a time, so that its sums are read and written once for four rows.
    """
    n_centres, n_rows = codes.shape
    n_codes, outputs, t = sums.shape[1:]
    k = residual.shape[1]
    some = np.empty((outputs, t), dtype=table.dtype)
    order = np.empty(STRETCH, dtype=np.int32)
    ends = np.empty(n_codes + 1, dtype=np.int32)
    R = np.empty((STRETCH, outputs), dtype=table.dtype)
    for low in range(0, n_rows, STRETCH):
        high = min(low + STRETCH, n_rows)
        V = table[low:high]
        for i in range(high - low):
            for c in range(k):
                R[i, c] = residual[low + i, c]
        for j in range(n_centres):
            if outputs > k:
                for i in range(high - low):
                    for c in range(k):
                        R[i, k + c] = R[i, c] * depths[j, low + i]
            _sort_codes(codes[j, low:high], order, ends)
            first = 0
            for b in range(n_codes):
                last = ends[b]
                if last == first:
                    continue
                some[:] = 0
                four = last - (last - first) % 4
                for p in range(first, four, 4):
                    i0, i1, i2, i3 = order[p], order[p + 1], order[p + 2], order[p + 3]
                    v0, v1, v2, v3 = V[i0], V[i1], V[i2], V[i3]
                    for c in range(outputs):
                        r0, r1, r2, r3 = R[i0, c], R[i1, c], R[i2, c], R[i3, c]
                        h = some[c]
                        for d in range(t):
                            h[d] += r0 * v0[d] + r1 * v1[d] + r2 * v2[d] + r3 * v3[d]
                for p in range(four, last):
                    v0 = V[order[p]]
                    for c in range(outputs):
                        r0 = R[order[p], c]
                        h = some[c]
                        for d in range(t):
                            h[d] += r0 * v0[d]
                first = last
                for c in range(outputs):
                    h, total = some[c], sums[j, b, c]
                    for d in range(t):
                        total[d] += h[d]


@njit(nogil=True, cache=True)
def sums_by_ball(sums: Any, k: int, origins: Any, factors: Any) -> None:
    """From sums of every code to those of every ball's columns, in place, in the first k outputs.

    ``sums`` is (centres, radii, k or 2k, t). Entry d < n of the last axis becomes the sum of
    linear (v_d − origin_d), entry n that of the constant, where n is the length of an origin;
    ``factors`` is (centres, radii, 3): linear, constant and, for soft balls, how much of the second
    half of the outputs is taken off the first.
    """
    n_centres, n_radii, outputs = sums.shape[:3]
    n = origins.shape[1]
    for j in range(n_centres):
        for b in range(1, n_radii):
            for c in range(outputs):
                before, here = sums[j, b - 1, c], sums[j, b, c]
                for d in range(n + 1):
                    here[d] += before[d]
        for b in range(n_radii):
            linear, constant, fall = factors[j, b]
            for c in range(k):
                here = sums[j, b, c]
                if outputs > k:
                    deep = sums[j, b, k + c]
                    for d in range(n + 1):
                        here[d] -= fall * deep[d]
                count = here[n]
                for d in range(n):
                    here[d] = linear * (here[d] - origins[j, d] * count)
                here[n] = constant * count


@njit(nogil=True, cache=True)
def column_norms(sums: Any, k: int, norms: Any) -> None:
    """l1 norms over the first k outputs of every ball's columns: (centres, radii, width)."""
    n_centres, n_radii = sums.shape[:2]
    width = norms.shape[2]
    norms[:] = 0.0
    for j in range(n_centres):
        for b in range(n_radii):
            for c in range(k):
                for d in range(width):
                    norms[j, b, d] += abs(sums[j, b, c, d])
