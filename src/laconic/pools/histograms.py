"""Turn codes into sums. One pass over the codes of a feature gives the sums of all its stumps.

This is the trick of ShareBoost section 3.1. For the codes see `laconic.pools.codings`. This module
imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled

_SUM = 8_192  # rows summed at once, so that their residuals stay in cache for all features


def accumulate(codes: np.ndarray, base: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return residual sums of every code: ``sums[base[f] + codes[f, i]] += residual[i]``, from 0.

    The last entry of ``base`` is the number of sums. Rows are added in order for every feature, so
    a sum depends on its feature alone.
    """
    k, n = residual.shape[1], int(base[-1])
    # Features come in pairs. If the number is odd, the sums of the last one are formed twice, and
    # kept once.
    spare = n - int(base[-2]) if len(codes) % 2 else 0
    sums = np.zeros((n + spare, k))
    (_FEW[k - 1] if k <= len(_FEW) else accumulate_many)(codes, base, residual, sums)
    return sums[:n]


# There is a kernel for each small number of outputs, and only the kernel in use is compiled. Its
# outputs are written out one by one, with all loads before all stores, because otherwise the
# compiler could not vectorise them. It sums two features at a time, because otherwise rows of equal
# codes would wait for each other's sums. Places are unsigned, because a negative index counts from
# the end, and the check for it takes half of the time.


@compiled
def _accumulate_1(codes: Any, base: Any, residual: Any, sums: Any) -> None:
    n_features, n_rows = codes.shape
    for low in range(0, n_rows, _SUM):
        count = _SUM if n_rows - low > _SUM else n_rows - low
        for f in range(0, n_features, 2):
            g = f + 1 if f + 1 < n_features else f
            first, second = base[f], base[f + 1]
            for p in range(count):
                i = np.uintp(low + p)
                r0 = residual[i, 0]
                sums[np.uintp(first + codes[f, i]), 0] += r0
                sums[np.uintp(second + codes[g, i]), 0] += r0


@compiled
def _accumulate_2(codes: Any, base: Any, residual: Any, sums: Any) -> None:
    n_features, n_rows = codes.shape
    for low in range(0, n_rows, _SUM):
        count = _SUM if n_rows - low > _SUM else n_rows - low
        for f in range(0, n_features, 2):
            g = f + 1 if f + 1 < n_features else f
            first, second = base[f], base[f + 1]
            for p in range(count):
                i = np.uintp(low + p)
                r0, r1 = residual[i, 0], residual[i, 1]
                at = np.uintp(first + codes[f, i])
                a0, a1 = sums[at, 0] + r0, sums[at, 1] + r1
                sums[at, 0], sums[at, 1] = a0, a1
                at = np.uintp(second + codes[g, i])
                a0, a1 = sums[at, 0] + r0, sums[at, 1] + r1
                sums[at, 0], sums[at, 1] = a0, a1


@compiled
def _accumulate_3(codes: Any, base: Any, residual: Any, sums: Any) -> None:
    n_features, n_rows = codes.shape
    for low in range(0, n_rows, _SUM):
        count = _SUM if n_rows - low > _SUM else n_rows - low
        for f in range(0, n_features, 2):
            g = f + 1 if f + 1 < n_features else f
            first, second = base[f], base[f + 1]
            for p in range(count):
                i = np.uintp(low + p)
                r0, r1, r2 = residual[i, 0], residual[i, 1], residual[i, 2]
                at = np.uintp(first + codes[f, i])
                a0, a1, a2 = sums[at, 0] + r0, sums[at, 1] + r1, sums[at, 2] + r2
                sums[at, 0], sums[at, 1], sums[at, 2] = a0, a1, a2
                at = np.uintp(second + codes[g, i])
                a0, a1, a2 = sums[at, 0] + r0, sums[at, 1] + r1, sums[at, 2] + r2
                sums[at, 0], sums[at, 1], sums[at, 2] = a0, a1, a2


@compiled
def _accumulate_4(codes: Any, base: Any, residual: Any, sums: Any) -> None:
    n_features, n_rows = codes.shape
    for low in range(0, n_rows, _SUM):
        count = _SUM if n_rows - low > _SUM else n_rows - low
        for f in range(0, n_features, 2):
            g = f + 1 if f + 1 < n_features else f
            first, second = base[f], base[f + 1]
            for p in range(count):
                i = np.uintp(low + p)
                r0, r1 = residual[i, 0], residual[i, 1]
                r2, r3 = residual[i, 2], residual[i, 3]
                at = np.uintp(first + codes[f, i])
                a0, a1 = sums[at, 0] + r0, sums[at, 1] + r1
                a2, a3 = sums[at, 2] + r2, sums[at, 3] + r3
                sums[at, 0], sums[at, 1] = a0, a1
                sums[at, 2], sums[at, 3] = a2, a3
                at = np.uintp(second + codes[g, i])
                a0, a1 = sums[at, 0] + r0, sums[at, 1] + r1
                a2, a3 = sums[at, 2] + r2, sums[at, 3] + r3
                sums[at, 0], sums[at, 1] = a0, a1
                sums[at, 2], sums[at, 3] = a2, a3


_FEW = (_accumulate_1, _accumulate_2, _accumulate_3, _accumulate_4)


@compiled
def accumulate_many(codes: Any, base: Any, residual: Any, sums: Any) -> None:
    """Add residual sums of every code to ``sums``, for any number of outputs; see `accumulate`."""
    n_features, n_rows = codes.shape
    for low in range(0, n_rows, _SUM):
        count = _SUM if n_rows - low > _SUM else n_rows - low
        for f in range(n_features):
            first = base[f]
            for p in range(count):
                i = np.uintp(low + p)
                at = np.uintp(first + codes[f, i])
                for j in range(residual.shape[1]):
                    sums[at, j] += residual[i, j]


@compiled
def accumulate_sorted(order: Any, starts: Any, residual: Any, running: bool, sums: Any) -> None:
    """Write residual sums of consecutive codes of sorted rows; running sums if ``running``."""
    for code in range(starts.size - 1):
        for j in range(residual.shape[1]):
            sums[code, j] = sums[code - 1, j] if running and code > 0 else 0.0
        for p in range(starts[code], starts[code + 1]):
            row = order[p]
            for j in range(residual.shape[1]):
                sums[code, j] += residual[row, j]
