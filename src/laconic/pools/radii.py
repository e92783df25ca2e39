"""Balls around centres: their radii, and a code for the distance of every row to every centre.

Distances are found once. A code is the number of radii that do not reach the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laconic.model.pieces import squared_distances
from laconic.numeric.threads import Threads, row_blocks

# Centres that one task looks at together, at least: rows are read once for all of them.
TOGETHER = 8


class Held(NamedTuple):
    """A part of the rows, as balls see them."""

    table: np.ndarray
    """(n_rows, n_features + 1): rows less the mean of all rows, and ones."""
    codes: np.ndarray
    """(n_centres, n_rows), bytes."""
    depths: np.ndarray
    """(n_centres, n_rows): squared distances in units of the largest ball; only of soft balls."""


class Balls(NamedTuple):
    """The balls of all rows."""

    centres: np.ndarray
    """(n_centres, n_features), as all lengths in units of a power of two."""
    radii: np.ndarray
    """(n_centres, n_radii), ascending."""
    shares: np.ndarray
    """Part of the rows inside every ball."""
    nearest: np.ndarray
    """Number of the row nearest to every centre."""
    mean: np.ndarray
    """Weighted mean of the rows."""
    spread: float
    """Root of the mean squared distance from it."""
    power: int
    """Of two: the unit of the lengths."""
    parts: dict[int, Held]
    """Rows of every part, by the number of its first row."""


def find_balls(
    X: np.ndarray,
    weight: np.ndarray,
    centres: np.ndarray,
    shares: np.ndarray,
    soft: bool,
    power: int,
    parts: Sequence[slice],
    threads: Threads,
) -> Balls:
    """The balls around centres that hold given shares of all rows.

    ``X``, in units of that power of two, and ``weight`` are of all rows. ``parts`` cut them.
    """
    n_centres, n = centres.shape
    mean = np.average(X, axis=0, weights=weight)
    held = []
    for rows in parts:
        n_rows = rows.stop - rows.start
        # Rows far from zero would lose their differences to rounding.
        table = np.ones((n_rows, n + 1), dtype=X.dtype)
        table[:, :n] = X[rows] - mean
        depths = np.empty((n_centres, n_rows if soft else 0), dtype=X.dtype)
        held.append(Held(table, np.empty((n_centres, n_rows), dtype=np.uint8), depths))
    radii, inside = (np.empty((n_centres, len(shares))) for _ in range(2))
    nearest = np.empty(n_centres, dtype=np.int64)

    def some(s: slice) -> None:
        for j, d2 in enumerate(squared_distances(X, centres[s]).T, s.start):
            order = np.argsort(d2, kind="stable")
            nearest[j] = order[0]
            squares, inside[j] = _squared_radii(d2[order], weight[order], shares)
            radii[j] = np.sqrt(squares)
            squares = radii[j] ** 2
            for rows, (_, codes, depths) in zip(parts, held, strict=True):
                codes[j] = np.searchsorted(squares, d2[rows], side="right")
                if soft:
                    depths[j] = d2[rows] / squares[-1]

    list(threads.map(some, row_blocks(n_centres, TOGETHER)))
    squared = [np.square(part.table[:, :n], dtype=np.float64).sum(axis=1) for part in held]
    spread = float(np.sqrt(weight @ np.concatenate(squared)))
    firsts = [rows.start for rows in parts]
    by_first = dict(zip(firsts, held, strict=True))
    return Balls(centres, radii, inside, nearest, mean, spread, power, by_first)


def _squared_radii(
    d2: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared radii of balls that hold at least some shares of the rows, and what they hold.

    ``d2`` are sorted squared distances. A radius lies halfway to the next row outside; beyond the
    last row there is thought to be one at twice its distance, so that rows in other units get the
    same balls.
    """
    mass = np.cumsum(weight)
    # The tolerance makes a sum that should equal a share reach it whatever its rounding.
    inside = np.searchsorted(mass, shares * mass[-1] * (1.0 - 1e-9))
    inside = np.minimum(inside, len(d2) - 1)
    after = np.searchsorted(d2, d2[inside], side="right")  # rows at the same distance come too
    farther = np.append(d2, 4.0 * d2[-1] or 1.0)[after]
    squares = 0.5 * (d2[inside] + farther)
    return squares, mass[after - 1] / mass[-1]
