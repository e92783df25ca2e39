"""Bumps over training rows: balls whose only column is their height."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic.model.bumps import Bump, BumpsMap
from laconic.numeric.threads import Threads
from laconic.pools.bound_pieces import BoundPieces
from laconic.pools.radii import BallGrid, CodedRows


class BoundBumps(BoundPieces):
    """`Bumps` over training rows.

    The bump with number ``radius`` of ``centre`` is atom centre · n_radii + radius. It is a soft
    ball without a linear part.

    Parameters
    ----------
    balls : BallGrid
    coded : CodedRows
        This part of the rows, with codes.
    threads : Threads
    """

    record = Bump

    def __init__(self, balls: BallGrid, coded: CodedRows, threads: Threads) -> None:
        self._soft = True
        ones = np.ascontiguousarray(coded.table[:, -1:])
        self._take(balls, coded._replace(table=ones), threads, 0)
        self._shift = np.empty((len(self._centres), 0))
        fall = (self._radii[:, -1:] / self._radii) ** 2
        self._factors = np.stack([np.ones_like(fall), np.ones_like(fall), fall], axis=-1)

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
