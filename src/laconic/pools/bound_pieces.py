"""Pieces over training rows: balls whose columns are linear functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from laconic.model.pieces import Piece, PiecesMap
from laconic.numeric.threads import Threads
from laconic.pools.bound_balls import BoundBalls
from laconic.pools.radii import BallGrid, CodedRows

if TYPE_CHECKING:
    from laconic.pools.pieces import Pieces


class BoundPieces(BoundBalls):
    """`Pieces` over training rows. `BoundBalls` has the other parameters.

    Parameters
    ----------
    settings : Pieces
    """

    record = Piece

    def __init__(
        self, settings: Pieces, balls: BallGrid, coded: CodedRows, threads: Threads
    ) -> None:
        self._relative = bool(settings.relative)
        centres, radii = balls.centres, balls.radii
        unit = radii if self._relative else np.full_like(radii, balls.spread or 1.0)
        shift = centres - balls.mean if self._relative else np.zeros_like(centres)
        slope = np.sqrt(len(balls.mean)) if settings.slope is None else float(settings.slope)
        height = balls.shares**-settings.balance
        linear = height * slope / unit
        super().__init__(balls, coded, threads, bool(settings.soft), shift, linear, height)

    def extract(self, atoms: Sequence[int]) -> PiecesMap:
        """Return the feature map of the balls."""
        centre, radius = np.divmod(np.asarray(atoms, dtype=np.int64), self._n_radii)
        return PiecesMap(
            self._input(self._centres[centre]),
            self._input(self._radii[centre, radius]),
            self._input(self._centres[centre] if self._relative else self._mean[None]),
            self._soft,
            self._shares[centre, radius],
            self._nearest[centre],
        )

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray:
        """Return the operations that each ball adds, as `PiecesMap` counts them.

        Rows are expected in a ball as often as training rows are.
        """
        n = self._n_features
        own = np.where(self.alike(chosen), 1.0, n + 1.0)
        shares = self._shares.reshape(-1)
        before = shares[list(chosen)].sum()
        inside = np.rint((before + shares) * n * n_outputs) - np.rint(before * n * n_outputs)
        return own + inside
