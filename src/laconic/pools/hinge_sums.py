"""Sums over the rows of every code of many directions, for `laconic.pools.bound_hinges`.

The code of a row for a direction is the number of knots that its projection reaches. One pass over
the codes sums the rows of every code. Running sums over the codes then give the sums of every
hinge. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

from laconic.numeric.compiled import compiled

# Rows that are added for one direction after the other. Their residuals fit a core's cache.
STRETCH = 2048


@compiled
def sum_by_code(codes: Any, heights: Any, residual: Any, sums: Any) -> None:
    """Add Σ_i r_ic and Σ_i r_ic h_i over the rows i of every code to ``sums``.

    ``codes`` and ``heights`` are (directions, rows). ``sums`` is (directions, codes, 2 k) in
    float64: first the k sums of r, then those of r h. Rows are added in their order.
    """
    n_rows, k = residual.shape
    for low in range(0, n_rows, STRETCH):
        high = min(low + STRETCH, n_rows)
        for j in range(codes.shape[0]):
            for i in range(low, high):
                b, h = codes[j, i], heights[j, i]
                for c in range(k):
                    r = residual[i, c]
                    sums[j, b, c] += r
                    sums[j, b, k + c] += r * h
