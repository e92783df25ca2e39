"""Sums over the balls of many centres and radii: what `laconic.pools.piecestore` stands on.

The code of a row for a centre is the number of radii that do not reach it. One pass over the codes
sums the rows of every code, and a running sum over the codes gives the rows of every ball. This
module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.compiled import compiled

# Rows put in order together: few enough to stay in a core's cache, and so many that the rows of a
# code are worth a call of BLAS. Sums are formed in the dtype of the data, and added in float64.
STRETCH = 8192


@compiled
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


@compiled
def sums_by_code(codes: Any, depths: Any, table: Any, residual: Any, sums: Any) -> None:
    """Add Σ_i residual_ic table_id over the rows of every code to ``sums``.

    ``codes`` is (centres, rows), ``sums`` (centres, radii, k, t) in float64. Rows of the last code,
    outside every ball, are left out. Where ``sums`` has several times the outputs of the residual,
    the further parts get the same sums with every row times the first, second, ... power of its
    entry of ``depths``, (centres, rows).

    A stretch of rows is put in the order of their codes; BLAS then sums the rows of each code.
    """
    n_centres, n_rows = codes.shape
    n_codes, outputs, t = sums.shape[1:]
    k = residual.shape[1]
    most = min(STRETCH, n_rows)
    order, ends = np.empty(most, dtype=np.int32), np.empty(n_codes + 1, dtype=np.int32)
    V = np.empty((most, t), dtype=table.dtype)
    R = np.empty((most, outputs), dtype=table.dtype)
    some = np.empty((outputs, t), dtype=table.dtype)
    for low in range(0, n_rows, STRETCH):
        high = min(low + STRETCH, n_rows)
        for j in range(n_centres):
            _sort_codes(codes[j, low:high], order, ends)
            inside = ends[n_codes - 1]
            for p in range(inside):  # a loop for each array: together they take half as long again
                given, taken = table[low + order[p]], V[p]
                for d in range(t):
                    taken[d] = given[d]
            for p in range(inside):
                i = low + order[p]
                for c in range(k):
                    R[p, c] = residual[i, c]
                if outputs > k:
                    depth = depths[j, i]
                    for c in range(k, outputs):
                        R[p, c] = R[p, c - k] * depth
            first = 0
            for b in range(n_codes):
                last = ends[b]
                if last > first:
                    np.dot(R[first:last].T, V[first:last], some)
                    for c in range(outputs):
                        for d in range(t):
                            sums[j, b, c, d] += some[c, d]
                    first = last


@compiled
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


@compiled
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
