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
    limits : ndarray of float64 of shape (2,)
        Smallest and largest number of rows.
    sums : ndarray of float64 of shape (n_shares,)
        Room for the sums of the gains.
    out : ndarray of float64 of shape (2,)
        The most evidence of a ball around this centre (0 if none has any), and the place of its
        last row.
    """
    shares = len(sums)
    for k in range(shares):
        sums[k] = 0.0
    best, most, end, held = 0.0, 0.0, 0, 0
    for place in range(len(order)):
        row = order[place]
        if alive[row]:
            held += 1
            if held > limits[1]:
                break
            most = 0.0
            for k in range(shares):
                sums[k] += gain[row, k]
                most = max(most, sums[k])
        # A ball may also end at a row that does not count, if this is as far as one that does.
        if most > best and held >= limits[0] and not tied[place]:
            best, end = most, place
    out[0], out[1] = best, end
