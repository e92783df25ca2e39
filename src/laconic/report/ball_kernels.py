"""The kernel of the search for balls: the radius with the most evidence around one centre."""

from __future__ import annotations

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def best_end(
    order: np.ndarray,
    tied: np.ndarray,
    alive: np.ndarray,
    gain: np.ndarray,
    limits: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """Find the place of the last row of the best ball, going outwards from its centre.

    Parameters
    ----------
    order : ndarray of int32 of shape (n_near,)
        Rows around the centre, nearest first.
    tied : ndarray of bool of shape (n_near,)
        Whether the next row is as far as this one. No ball ends there.
    alive : ndarray of bool of shape (n_rows,)
        Rows that count.
    gain : ndarray of float64 of shape (n_rows, n_shares)
    limits : ndarray of float64 of shape (3,)
        Smallest and largest number of rows, and how much evidence a larger ball may fall short.
    sums : ndarray of float64 of shape (n_shares,)
        Room for the sums of the gains.
    out : ndarray of float64 of shape (2,)
        The most evidence of a ball around this centre (0 if none has any), and the place of the
        last row of the largest ball that falls short of it by at most the slack, or by half.
    """
    shares = len(sums)
    best, end = 0.0, 0
    wanted = 0.0
    for second in range(2):
        held = 0
        for k in range(shares):
            sums[k] = 0.0
        for place in range(len(order)):
            row = order[place]
            if not alive[row]:
                continue
            held += 1
            if held > limits[1]:
                break
            most = 0.0
            for k in range(shares):
                sums[k] += gain[row, k]
                most = max(most, sums[k])
            if held < limits[0] or tied[place]:
                continue
            if second == 1:
                if most >= wanted:
                    end = place
            elif most > best:
                best, end = most, place
        if limits[2] <= 0.0 or best <= 0.0:
            break
        wanted = best - min(limits[2], 0.5 * best)
    out[0], out[1] = best, end
