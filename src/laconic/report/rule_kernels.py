"""The kernels of the scan for rules: the best conditions on one more column, or on two."""

from __future__ import annotations

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def best_joined(
    codes: np.ndarray,
    rows: np.ndarray,
    gain: np.ndarray,
    ranges: np.ndarray,
    starts: np.ndarray,
    sums: np.ndarray,
    limits: np.ndarray,
    out: np.ndarray,
) -> None:
    """Find, for every column, the range of bins with the most evidence among some rows.

    Parameters
    ----------
    codes : ndarray of uint8 of shape (n_columns, n_rows)
        Bins of the columns.
    rows : ndarray of int64
        Numbers of the rows.
    gain : ndarray of float64 of shape (n_rows, n_shares)
    ranges : ndarray of int64 of shape (n_ranges, 2)
        First and last bin of every condition, one column after the other.
    starts : ndarray of int64 of shape (n_columns + 1,)
        Where the conditions of each column start.
    sums : ndarray of float64 of shape (most bins + 1, n_shares + 1)
        Room for the prefix sums of the gains, and of the number of rows.
    limits : ndarray of float64 of shape (2,)
        Smallest and largest number of rows of a rule.
    out : ndarray of float64 of shape (n_columns, 2)
        For each column the evidence, 0 if no range has any, and the number of the range.
    """
    bins, shares = sums.shape[0], sums.shape[1] - 1
    for column in range(len(codes)):
        for i in range(bins):
            for k in range(shares + 1):
                sums[i, k] = 0.0
        for row in rows:
            i = codes[column, row] + 1
            for k in range(shares):
                sums[i, k] += gain[row, k]
            sums[i, shares] += 1.0
        for i in range(1, bins):
            for k in range(shares + 1):
                sums[i, k] += sums[i - 1, k]
        best, which = 0.0, 0
        for r in range(starts[column], starts[column + 1]):
            low, high = ranges[r, 0], ranges[r, 1] + 1
            n = sums[high, shares] - sums[low, shares]
            if n < limits[0] or n > limits[1]:
                continue
            for k in range(shares):
                found = sums[high, k] - sums[low, k]
                if found > best:
                    best, which = found, r
        out[column, 0], out[column, 1] = best, which


@compiled
def best_pairs(
    codes: np.ndarray,
    pairs: np.ndarray,
    gain: np.ndarray,
    ranges: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    alone: np.ndarray,
    sums: np.ndarray,
    line: np.ndarray,
    limits: np.ndarray,
    out: np.ndarray,
) -> None:
    """Find, for every pair of columns, the two ranges of bins with the most evidence.

    It sums the gains of every pair of bins, and takes sums over ranges from prefix sums. So all
    pairs of ranges are tried. Parameters that are not listed are those of `best_joined`.

    Parameters
    ----------
    pairs : ndarray of int64 of shape (n_pairs, 2)
        Numbers of the columns.
    sizes : ndarray of int64 of shape (n_columns,)
        Number of bins of every column.
    alone : ndarray of float64 of shape (n_columns,)
        The most evidence of a condition on each column alone.
    sums : ndarray of float64 of shape (most bins + 1, most bins + 1, n_shares + 1)
        Room for the prefix sums.
    line : ndarray of float64 of shape (most bins + 1, n_shares + 1)
        Room for the sums over one range of the first column.
    out : ndarray of float64 of shape (n_pairs, 3)
        The evidence and the numbers of the two ranges. The evidence is 0 if none has more than
        either column alone.
    """
    shares = sums.shape[2] - 1
    for pair in range(len(pairs)):
        one, two = pairs[pair]
        a, b = codes[one], codes[two]
        na, nb = sizes[one] + 1, sizes[two] + 1
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
        best = max(alone[one], alone[two])
        out[pair, 0] = 0.0
        for ra in range(starts[one], starts[one + 1]):
            low, high = ranges[ra, 0], ranges[ra, 1] + 1
            if sums[high, nb - 1, shares] - sums[low, nb - 1, shares] < limits[0]:
                continue
            for j in range(nb):
                for k in range(shares + 1):
                    line[j, k] = sums[high, j, k] - sums[low, j, k]
            # No range of b is better than the best run of bins, which one pass finds.
            most = 0.0
            for k in range(shares):
                run = 0.0
                for j in range(1, nb):
                    run = max(run, 0.0) + line[j, k] - line[j - 1, k]
                    most = max(most, run)
            if most <= best:
                continue
            for rb in range(starts[two], starts[two + 1]):
                first, last = ranges[rb, 0], ranges[rb, 1] + 1
                n = line[last, shares] - line[first, shares]
                if n < limits[0] or n > limits[1]:
                    continue
                for k in range(shares):
                    found = line[last, k] - line[first, k]
                    if found > best:
                        best = found
                        out[pair, 0], out[pair, 1], out[pair, 2] = found, ra, rb
