"""Soft balls as functions of their centres and radii: what pieces and bumps share.

The height of a soft ball is h = max(0, 1 − ‖v − c‖²/r²). Inside the ball its derivatives are

    ∂h/∂c = 2 (v − c)/r²,   ∂h/∂(ln r) = 2 ‖v − c‖²/r² = 2 (1 − h),

and outside they are zero. On the sphere itself h has a kink, but no row lies there for long. With
the radius r⁰ at the start, the parameters are c/r⁰ and ln(r/r⁰). So a step means the same for
small and for large balls, in any unit.

*Scale.* Nothing a step does makes h larger than 1, and it is 1 at the centre of every ball. The
factors of the columns, and the origins of linear functions, stay as they are. So no column is ever
larger than without a ball, at h = 1. The radius is the softness of a ball: h falls by 2/r per unit
of length at most. It stays within a factor of `WIDEST` of r⁰. So no ball becomes so narrow that it
holds no rows, or so wide that its columns are those of a linear model.

*Hard balls* cannot be tuned. Their height is 1[‖v − c‖ < r]. Its derivative is zero at every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.model.distances import squared_distances
from laconic.numeric.threads import Threads, row_blocks
from laconic.tune.balls_of import BallsOf, dense, power_of_balls
from laconic.tune.contract import EDGE
from laconic.tune.kinds import TunableKind

# Radii stay within this factor of the radii at the start.
WIDEST = 2.0
# Least radius in the units of the balls. Its square does not vanish.
NARROWEST = 1e-150
# Rows of a batch that one thread computes together.
LANES = 256


class SeenRows(NamedTuple):
    """Some rows of a batch, and the heights of all balls there."""

    rows: np.ndarray
    """Rows minus the middle of the balls, in the units of the balls, (n_rows, n_features)."""
    heights: np.ndarray
    """(n_balls, n_rows), in the type of the rows."""


class TunedBalls:
    """Soft balls as functions of their parameters, without the columns that they make.

    The parameters are the centres over the radii at the start, (n_centres, n_features), and the
    logarithms of the radii over those at the start, (n_balls, 1).

    Parameters
    ----------
    given : PiecesMap or BumpsMap
    X : array of shape (n_rows, n_features)
        Rows that the balls are tuned on.
    threads : Threads
    free : bool
        Whether each ball has a centre of its own, and may become wider than it is. Otherwise balls
        around one centre keep sharing it, so that the model takes no more operations and bytes.
    """

    def __init__(self, given: Any, X: Any, threads: Threads, free: bool) -> None:
        self._given, self._threads = given, threads
        self.power = power_of_balls(given, X)
        centres, radii = (np.ldexp(a, -self.power) for a in (given.centre, given.radius))
        self._own = np.arange(len(radii))  # the centre of each ball
        if not free:
            centres, self._own = np.unique(centres, axis=0, return_inverse=True)
            self._own = self._own.ravel()
        self._radii = np.maximum(radii, NARROWEST)
        self._reach = np.full(len(centres), NARROWEST)
        np.maximum.at(self._reach, self._own, radii)
        self._middle = centres.mean(axis=0)
        self.start = [(centres - self._middle) / self._reach[:, None], np.zeros((len(radii), 1))]
        self.units = [centres.shape[1] ** -0.5, 1.0]
        self._bounds = -np.log(WIDEST), np.log(WIDEST) if free else 0.0

    def settled(self, parameters: list[np.ndarray]) -> list[np.ndarray]:
        """Return the parameters with radii that are neither too small nor too large."""
        return [parameters[0], np.clip(parameters[1], *self._bounds)]

    def _heights(self, parameters: list[np.ndarray], X: Any) -> list[SeenRows]:
        """Return the heights for some rows, block by block."""
        X = dense(X)
        centres, radii = self._balls(parameters)
        squares = np.square(radii)[:, None]

        def one(s: slice) -> SeenRows:
            rows = np.ldexp(X[s], -self.power) - self._middle
            heights = squared_distances(rows, centres).T[self._own]
            heights /= squares
            np.subtract(1.0, heights, out=heights)
            np.maximum(heights, 0.0, out=heights)
            return SeenRows(rows.astype(X.dtype), heights.astype(X.dtype))

        return list(self._threads.map(one, row_blocks(len(X), LANES)))

    def _slopes(
        self, parameters: list[np.ndarray], seen: SeenRows, pull: np.ndarray
    ) -> list[np.ndarray]:
        """Return Σ_i Σ_j pull_ji ∂h_ij/∂θ, where pull is (n_balls, n_rows)."""
        centres, radii = self._balls(parameters)
        force = np.where(seen.heights > EDGE, 2.0 * pull, 0.0).astype(seen.rows.dtype)
        wider = (force * (1.0 - seen.heights)).sum(axis=1, dtype=np.float64)
        moved = force.sum(axis=1, dtype=np.float64)[:, None] * -centres[self._own]
        moved += force @ seen.rows
        moved *= (self._reach[self._own] / np.square(radii))[:, None]
        out = np.zeros_like(centres)
        np.add.at(out, self._own, moved)
        return [out, wider[:, None]]

    def _balls(self, parameters: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the centres minus the middle, and the radii, in the units of the balls."""
        return parameters[0] * self._reach[:, None], self._radii * np.exp(parameters[1][:, 0])

    def _placed(self, parameters: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays of the map, with the balls of some parameters."""
        centres, radii = self._balls(parameters)
        centres = np.ldexp(centres + self._middle, self.power)[self._own]
        return {**self._given.arrays(), "centre": centres, "radius": np.ldexp(radii, self.power)}


class BallKind(TunableKind):
    """What the kinds of balls share; see `laconic.tune.kinds.TunableKind`."""

    def start(self, chosen: Any, tuned: Any, own: Sequence[int], free: bool) -> Any:
        """Return the map to start from. Balls around one chosen centre start around one centre."""
        if tuned is None:
            return chosen
        parts = {name: array.copy() for name, array in chosen.arrays().items()}
        for atom, other in enumerate(own):
            if other >= 0:
                if not free:
                    same = (chosen.centre == chosen.centre[atom]).all(axis=1)
                    parts["centre"][same] = tuned.centre[other]
                parts["centre"][atom] = tuned.centre[other]
                parts["radius"][atom] = tuned.radius[other]
        return type(chosen)(**parts)

    def records(self, made: Any, before: Sequence[Any]) -> list[Any]:
        """Return the records of the balls. Each keeps the number of the centre it started from."""
        radii = made.radius.tolist()
        return [atom._replace(radius=r) for atom, r in zip(before, radii, strict=True)]

    def pool(self, made: Any, scales: np.ndarray, remarks: bool = False) -> Any:
        """Return the balls of a map as a pool."""
        return BallsOf(made, scales, remarks)
