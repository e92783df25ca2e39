"""The rows around a centre, and the best ball that they allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.holes.bad_balls import TIE
from laconic.model.distances import CLOSE

# Share of the rows that are sorted by distance: those that a ball may hold, and some that are gone.
SORTED = 0.4


class Left(NamedTuple):
    """The rows that a round of the search has left."""

    alive: np.ndarray
    """Whether each row is left."""
    gain: np.ndarray
    """Gains of the rows, (n_rows, n_shares)."""
    least: float
    """Smallest number of rows in a ball."""
    most: float
    """Largest number of rows in a ball."""


class Nearest(NamedTuple):
    """Rows around a centre, nearest first."""

    order: np.ndarray
    tied: np.ndarray
    """Whether the next row is as far as this one, up to rounding. No ball ends there."""

    @classmethod
    def at(cls, d2: np.ndarray, offset: float, share: float = SORTED) -> Nearest:
        """Sort the squared distances of all rows, up to one that holds a share of them.

        ``offset`` is the squared distance between the centre and the origin that the distances were
        computed from.
        """
        enough = int(share * len(d2))
        near = np.arange(len(d2))
        if enough + 1 < len(d2):
            near = np.flatnonzero(d2 <= np.partition(d2, enough)[enough])
        order = near[np.argsort(d2[near])]
        distance = d2[order]
        noise = distance + np.where(distance < CLOSE * offset, 0.0, offset)
        # Where the list ends before the rows do, the next row may be as far.
        tied = np.append(np.diff(distance) <= TIE * noise[1:], len(order) < len(d2))
        return cls(order.astype(np.int32), tied)

    def best(self, left: Left) -> tuple[float, int]:
        """Return the evidence of the best ball, and the place of its last row."""
        from laconic.report.ball_kernels import best_end

        out, limits = np.zeros(2), np.array([left.least, left.most], dtype=np.float64)
        best_end(*self, left.alive, left.gain, limits, np.empty(left.gain.shape[1]), out)
        return float(out[0]), int(out[1])


class Placed(NamedTuple):
    """The best ball around a centre."""

    centre: np.ndarray
    order: np.ndarray
    """Rows around the centre, nearest first."""
    evidence: float
    last: int
    """Place of its last row in the order."""

    @property
    def inside(self) -> np.ndarray:
        """Numbers of the rows inside, also of those that are gone."""
        return self.order[: self.last + 1]
