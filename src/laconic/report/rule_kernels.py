"""The kernel of the scan for rules: the best pair of conditions on two binned columns."""

from __future__ import annotations

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def best_ranges(
    a: np.ndarray,
    b: np.ndarray,
    gain: np.ndarray,
    ranges_a: np.ndarray,
    ranges_b: np.ndarray,
    sums: np.ndarray,
    line: np.ndarray,
    limits: np.ndarray,
    out: np.ndarray,
) -> None:
    """Find the two ranges of bins with the most evidence, among rows with codes ``a`` and ``b``.

    It sums the gains of every pair of bins, and takes sums over ranges from prefix sums. So all
    pairs of ranges are tried.

    Parameters
    ----------
    a, b : ndarray of uint8 of shape (n_rows,)
        Bins of two columns.
    gain : ndarray of float64 of shape (n_rows, n_shares)
    ranges_a, ranges_b : ndarray of int64 of shape (n_ranges, 2)
        First and last bin of every condition.
    sums : ndarray of float64 of shape (bins of a + 1, bins of b + 1, n_shares + 1)
        Room for the prefix sums of the gains, and of the number of rows.
    line : ndarray of float64 of shape (bins of b + 1, n_shares + 1)
        Room for the sums over one range of a.
    limits : ndarray of float64 of shape (2,)
        Smallest and largest number of rows of a rule.
    out : ndarray of float64 of shape (3,)
        The evidence and the numbers of the two ranges. It stays as it is if no evidence is larger
        than that in it.
    """
    na, nb, shares = sums.shape[0], sums.shape[1], sums.shape[2] - 1
    for i in range(na):
        for j in range(nb):
            for k in range(shares + 1):
                sums[i, j, k] = 0.0
    for row in range(len(a)):
        i, j = a[row] + 1, b[row] + 1
        for k in range(shares):
            sums[i, j, k] += gain[row, k]
        sums[i, j, shares] += 1.0
    for i in range(1, na):
        for j in range(1, nb):
            for k in range(shares + 1):
                sums[i, j, k] += sums[i - 1, j, k] + sums[i, j - 1, k] - sums[i - 1, j - 1, k]
    best = out[0]
    for ra in range(len(ranges_a)):
        low, high = ranges_a[ra, 0], ranges_a[ra, 1] + 1
        for j in range(nb):
            for k in range(shares + 1):
                line[j, k] = sums[high, j, k] - sums[low, j, k]
        if line[nb - 1, shares] < limits[0]:
            continue
        # No range of b is better than the best run of bins, which one pass finds.
        most = 0.0
        for k in range(shares):
            run = 0.0
            for j in range(1, nb):
                run = max(run, 0.0) + line[j, k] - line[j - 1, k]
                most = max(most, run)
        if most <= best:
            continue
        for rb in range(len(ranges_b)):
            first, last = ranges_b[rb, 0], ranges_b[rb, 1] + 1
            n = line[last, shares] - line[first, shares]
            if n < limits[0] or n > limits[1]:
                continue
            for k in range(shares):
                found = line[last, k] - line[first, k]
                if found > best:
                    best = found
                    out[0], out[1], out[2] = found, ra, rb
