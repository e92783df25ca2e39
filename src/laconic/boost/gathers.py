"""Products with local columns: the rows of each atom are gathered, and BLAS does the rest.

One call works through all atoms of a block of rows without Python, so that threads do not wait for
each other. This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.compiled import compiled


@compiled
def _gather(table: Any, rows: Any, out: Any) -> None:
    """``out[:len(rows)] = table[rows]``."""
    for p in range(rows.size):
        given, taken = table[rows[p]], out[p]
        for d in range(given.size):
            taken[d] = given[d]


@compiled
def multiply(table: Any, rows: Any, ends: Any, heights: Any, weights: Any, out: Any) -> None:
    """Add ``table[rows of j] @ weights[j]``, each row times its height, to those rows of ``out``.

    The rows of atom j are ``rows[ends[j]:ends[j + 1]]``; without heights they all count fully.
    """
    n_atoms, t, k = weights.shape
    most = 0
    for j in range(n_atoms):
        most = max(most, ends[j + 1] - ends[j])
    V, S = np.empty((most, t), dtype=table.dtype), np.empty((most, k), dtype=table.dtype)
    for j in range(n_atoms):
        own = rows[ends[j] : ends[j + 1]]
        n = own.size
        if n == 0:
            continue
        _gather(table, own, V)
        np.dot(V[:n], weights[j], S[:n])
        for p in range(n):
            to, values = out[own[p]], S[p]
            if heights.size > 0:
                height = heights[ends[j] + p]
                for c in range(k):
                    to[c] += height * values[c]
            else:
                for c in range(k):
                    to[c] += values[c]


@compiled
def add_up(table: Any, rows: Any, ends: Any, heights: Any, values: Any, out: Any) -> None:
    """``out[j]`` = table[rows of j]ᵀ values[rows of j], each row times its height; (j, t, k)."""
    n_atoms, t, k = out.shape
    most = 0
    for j in range(n_atoms):
        most = max(most, ends[j + 1] - ends[j])
    V, R = np.empty((most, t), dtype=table.dtype), np.empty((most, k), dtype=table.dtype)
    some = np.empty((t, k), dtype=table.dtype)
    for j in range(n_atoms):
        own = rows[ends[j] : ends[j + 1]]
        n = own.size
        if n == 0:
            out[j] = 0.0
            continue
        _gather(table, own, V)
        _gather(values, own, R)
        if heights.size > 0:
            for p in range(n):
                height, line = heights[ends[j] + p], R[p]
                for c in range(k):
                    line[c] *= height
        np.dot(V[:n].T, R[:n], some)
        out[j] = some
