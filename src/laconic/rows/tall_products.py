"""Kernels for products of a block's columns with weights and with values.

They need no BLAS, which takes a lock for memory in every call. With up to a dozen outputs they are
about as fast. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled

# Rows that are multiplied at a time. Those of a few columns and of all outputs stay in level-1
# cache. Sums over them are in the dtype of the columns.
ROWS = 512


def multiply(lines: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``weights`` (k, n) times the first n of the columns ``lines`` (columns, rows)."""
    out = np.empty((len(weights), lines.shape[1]), dtype=lines.dtype)
    multiply_into(lines, np.ascontiguousarray(weights), out)
    return out


def add_up(lines: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return the sums over rows of the first n columns times ``values`` (k, rows), (k, n)."""
    total = np.zeros((len(values), n))
    add_up_into(lines, np.ascontiguousarray(values, dtype=lines.dtype), total)
    return total


# Places are unsigned, because a negative index counts from the end, and the check for it keeps the
# compiler from using vectors.


@compiled(fastmath={"contract"})
def multiply_into(lines: Any, weights: Any, out: Any) -> None:
    """Write ``weights`` (k, n) times the first n columns to ``out``, eight columns at a time."""
    m = lines.shape[1]
    k, n = weights.shape
    for low in range(0, m, ROWS):
        rows = min(ROWS, m - low)
        for c in range(k):
            for i in range(rows):
                out[c, np.uintp(low + i)] = 0
        for j in range(0, n - n % 8, 8):
            for c in range(k):
                p, q, r, s = weights[c, j], weights[c, j + 1], weights[c, j + 2], weights[c, j + 3]
                t, u = weights[c, j + 4], weights[c, j + 5]
                v, w = weights[c, j + 6], weights[c, j + 7]
                for i in range(rows):
                    at = np.uintp(low + i)
                    one = p * lines[j, at] + q * lines[j + 1, at]
                    one += r * lines[j + 2, at] + s * lines[j + 3, at]
                    two = t * lines[j + 4, at] + u * lines[j + 5, at]
                    two += v * lines[j + 6, at] + w * lines[j + 7, at]
                    out[c, at] += one + two
        for j in range(n - n % 8, n):
            for c in range(k):
                p = weights[c, j]
                for i in range(rows):
                    at = np.uintp(low + i)
                    out[c, at] += p * lines[j, at]


@compiled(fastmath={"contract", "reassoc"})
def add_up_into(lines: Any, values: Any, total: Any) -> None:
    """Add the sums of the first columns times ``values`` to ``total``, four outputs at a time.

    Values of more outputs than ``total`` has are not read.
    """
    m = lines.shape[1]
    k, n = total.shape
    for low in range(0, m, ROWS):
        rows = min(ROWS, m - low)
        for j in range(n):
            zero = lines[j, 0] * 0
            for c in range(0, k - k % 4, 4):
                p = q = r = s = zero
                for i in range(rows):
                    at = np.uintp(low + i)
                    x = lines[j, at]
                    p += x * values[c, at]
                    q += x * values[c + 1, at]
                    r += x * values[c + 2, at]
                    s += x * values[c + 3, at]
                total[c, j] += p
                total[c + 1, j] += q
                total[c + 2, j] += r
                total[c + 3, j] += s
            for c in range(k - k % 4, k):
                p = zero
                for i in range(rows):
                    at = np.uintp(low + i)
                    p += lines[j, at] * values[c, at]
                total[c, j] += p


@compiled
def weigh_into(lines: Any, shift: Any, weight: Any, y: Any, weighted: Any, by_class: Any) -> None:
    """Subtract a shift from every line, multiply by the weights, and add up every class."""
    for j in range(lines.shape[0]):
        for i in range(lines.shape[1]):
            at = np.uintp(i)
            value = (lines[j, at] - shift[j]) * weight[at]
            weighted[j, at] = value
            by_class[j, np.uintp(y[at])] += value
