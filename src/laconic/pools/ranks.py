"""Ranks of values in sorted lists, by binary searches in step.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled

_RANKED = 1 << 12  # values that are ranked at a time, so that their ranks stay in cache


def is_new(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return which values are not in a sorted list. The list must not be empty."""
    ranks = np.empty(len(values), dtype=np.uint32)
    _rank(values, known, ranks)
    return np.asarray(known.take(ranks, mode="clip") != values)


def encode(values: np.ndarray, cuts: np.ndarray, missing: int, out: np.ndarray) -> None:
    """Write the codes of the values of one feature: the number of cuts below, or ``missing``."""
    _encode(values, cuts, missing, np.empty(_RANKED, dtype=np.uint32), out)


@compiled
def _rank(values: Any, listed: Any, ranks: Any) -> None:
    """Count the entries of an ascending list that are below each value. NaN gets any count.

    All values do their binary search in step. So there is no branch to mispredict, and the loop
    vectorises.
    """
    for i in range(values.size):
        ranks[i] = 0
    n = listed.size
    while n > 0:
        half = (n + 1) >> 1
        for i in range(values.size):
            at = ranks[i]
            above = at + half
            ranks[i] = above if listed[above - 1] < values[i] else at
        n -= half


@compiled
def _encode(values: Any, cuts: Any, missing: int, ranks: Any, out: Any) -> None:
    """Write the codes of all values in one call, a few of them at a time."""
    for low in range(0, values.size, _RANKED):
        high = min(low + _RANKED, values.size)
        _rank(values[low:high], cuts, ranks[: high - low])
        for i in range(low, high):
            at = np.uintp(i)
            out[at] = missing if values[at] != values[at] else ranks[at - np.uintp(low)]
