"""The radii of balls around centres, and codes for the distance of every row to every centre.

Distances are computed once. A code is the number of radii that do not reach the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from laconic.model.distances import squared_distances
from laconic.numeric.threads import Threads, row_blocks

# Least number of centres that one task handles together. Rows are read once for all of them.
TOGETHER = 8


class BallGrid(NamedTuple):
    """The balls of all rows."""

    centres: np.ndarray
    """(n_centres, n_features). Like all lengths, they are in units of a power of two."""
    radii: np.ndarray
    """(n_centres, n_radii), ascending."""
    shares: np.ndarray
    """Fraction of the rows inside every ball."""
    nearest: np.ndarray
    """Number of the row nearest to every centre."""
    mean: np.ndarray
    """Weighted mean of the rows."""
    spread: float
    """Root of the mean squared distance of the rows from the mean."""
    power: int
    """The unit of lengths is two to this power."""


class CodedRows(NamedTuple):
    """A part of the rows, with codes of the distances to all centres."""

    table: np.ndarray
    """(n_rows, n_features + 1): the rows minus the mean of all rows, and a column of ones."""
    codes: np.ndarray
    """(n_centres, n_rows), bytes."""
    depths: np.ndarray
    """(n_centres, n_rows): squared distances divided by the largest squared radius of the centre.
    Only soft balls have them."""

    def code(self, centre: int, d2: np.ndarray, radii: np.ndarray) -> None:
        """Store the codes, and perhaps depths, of rows from their squared distances to a centre."""
        squares = radii**2
        self.codes[centre] = np.searchsorted(squares, d2, side="right")
        if self.depths.shape[1]:
            self.depths[centre] = d2 / squares[-1]


def find_balls(
    X: np.ndarray,
    weight: np.ndarray,
    centres: np.ndarray,
    shares: np.ndarray,
    power: int,
    soft: bool | None,
    threads: Threads,
) -> tuple[BallGrid, CodedRows | None]:
    """Return the balls around centres that hold given shares of the rows.

    ``X`` is in units of two to the ``power``. The weights may have any sum: the rows may be a
    sample, with the weights that they have among all rows. Unless ``soft`` is None, the rows are
    coded in the same pass over the distances. The codes are the same as those of `code_rows`.
    """
    mean = np.average(X, axis=0, weights=weight)
    table = _table(X, mean)
    coded = None if soft is None else _uncoded(table, len(centres), soft)
    radii, inside = (np.empty((len(centres), len(shares))) for _ in range(2))
    nearest = np.empty(len(centres), dtype=np.int64)

    def see(j: int, d2: np.ndarray) -> None:
        order = np.argsort(d2, kind="stable")
        nearest[j] = order[0]
        squares, inside[j] = _squared_radii(d2[order], weight[order], shares)
        radii[j] = np.sqrt(squares)
        if coded is not None:
            coded.code(j, d2, radii[j])

    _measure(X, centres, see, threads)
    squares = np.square(table[:, :-1], dtype=np.float64).sum(axis=1)
    spread = float(np.sqrt(weight @ squares / weight.sum()))
    return BallGrid(centres, radii, inside, nearest, mean, spread, power), coded


def code_rows(X: np.ndarray, balls: BallGrid, soft: bool, threads: Threads) -> CodedRows:
    """Return rows with their codes for the balls. ``X`` is in units of the balls' power of two."""
    coded = _uncoded(_table(X, balls.mean), len(balls.centres), soft)
    _measure(X, balls.centres, lambda j, d2: coded.code(j, d2, balls.radii[j]), threads)
    return coded


def _table(X: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the rows minus the mean, and ones. Far from zero, rounding would spoil differences."""
    table = np.ones((len(X), len(mean) + 1), dtype=X.dtype)
    table[:, :-1] = X - mean
    return table


def _uncoded(table: np.ndarray, n_centres: int, soft: bool) -> CodedRows:
    codes = np.empty((n_centres, len(table)), dtype=np.uint8)
    return CodedRows(
        table, codes, np.empty((n_centres, len(table) if soft else 0), dtype=table.dtype)
    )


def _measure(
    X: np.ndarray, centres: np.ndarray, see: Callable[[int, np.ndarray], None], threads: Threads
) -> None:
    """Call ``see`` with the number of every centre and the squared distances of all rows to it."""

    def some(s: slice) -> None:
        for j, d2 in enumerate(squared_distances(X, centres[s]).T, s.start):
            see(j, d2)

    list(threads.map(some, row_blocks(len(centres), TOGETHER)))


def _squared_radii(
    d2: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared radii of balls that hold at least given shares of rows, and what they hold.

    ``d2`` are sorted squared distances. A squared radius is halfway between that of the last row
    inside and that of the next row outside. Behind the last row of all, a row at twice its distance
    is assumed. So rows in other units get the same balls.
    """
    mass = np.cumsum(weight)
    # With the tolerance, a sum that should equal a share reaches it despite rounding.
    inside = np.searchsorted(mass, shares * mass[-1] * (1.0 - 1e-9))
    inside = np.minimum(inside, len(d2) - 1)
    after = np.searchsorted(d2, d2[inside], side="right")  # rows at the same distance are inside
    farther = np.append(d2, 4.0 * d2[-1] or 1.0)[after]
    squares = 0.5 * (d2[inside] + farther)
    return squares, mass[after - 1] / mass[-1]
