"""Bumps over training rows: balls whose only column is their height."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic.model.bumps import Bump, BumpsMap
from laconic.numeric.threads import Threads
from laconic.pools.bound_balls import BoundBalls
from laconic.pools.radii import BallGrid, CodedRows


class BoundBumps(BoundBalls):
    """`Bumps` over training rows: soft balls without a linear part. See `BoundBalls`."""

    # A height is one column, so writing it down costs little, and corrections are faster.
    local_atoms = False
    record = Bump

    def __init__(self, balls: BallGrid, coded: CodedRows, threads: Threads) -> None:
        ones = np.ascontiguousarray(coded.table[:, -1:])
        no_shift, factor = np.empty((len(balls.centres), 0)), np.ones_like(balls.radii)
        coded = coded._replace(table=ones)
        super().__init__(balls, coded, threads, True, no_shift, factor, factor)

    def extract(self, atoms: Sequence[int]) -> BumpsMap:
        """Return the feature map of the bumps."""
        centre, radius = np.divmod(np.asarray(atoms, dtype=np.int64), self._n_radii)
        return BumpsMap(
            self._input(self._centres[centre]),
            self._input(self._radii[centre, radius]),
            self._shares[centre, radius],
            self._nearest[centre],
        )

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray:
        """Return the operations that each bump adds, as `BumpsMap` counts them."""
        return np.where(self.alike(chosen), 1.0, self._n_features + 1.0) + n_outputs
