"""The Hessian in all weights of shards in memory, estimated from some of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic.rows.far_hessian import LEAST_MASS
from laconic.rows.limits import Limits
from laconic.rows.shard import Shard
from laconic.rows.sums import total


class SampledHessian:
    """Estimates the Hessian of the loss at the last evaluated weights of some shards.

    It knows nothing when it is made, so a solve that is taken up again has the same bits.

    Parameters
    ----------
    shards : list of Shard
        All their columns are written down.
    rows : int
        About how many rows an estimate takes.
    """

    def __init__(self, shards: Sequence[Shard], rows: int) -> None:
        self._shards, self._rows = shards, rows
        self._mass: float | None = None

    @classmethod
    def of(cls, shards: Sequence[Shard], limits: Limits) -> SampledHessian | None:
        """Return the estimate, or None if products with the Hessian are cheaper.

        They are, if there are many weights, or if the estimate takes a large part of the rows.
        """
        n_weights = shards[0].n_columns * shards[0].n_outputs
        rows = limits.rows_for_hessian(n_weights)
        n_rows = sum(shard.n_rows for shard in shards)
        few = n_weights <= limits.travelling and limits.sampled * rows <= n_rows
        return cls(shards, rows) if few and not shards[0].has_locals else None

    def __call__(self) -> np.ndarray:
        """Return the Hessian in the order of ``W.ravel()``."""
        if self._mass is None:  # the first step is so long that it takes hardly any row
            _, self._mass = self._sums(1.0)
        while True:
            known = self._mass
            hessian, self._mass = self._sums(known / self._rows)
            if self._mass > known / 2 or self._mass <= LEAST_MASS:
                return hessian  # otherwise it took less than half of the rows that it should take

    def _sums(self, step: float) -> tuple[np.ndarray, float]:
        """Return the estimate with a row for each ``step`` of curvature, and all curvature.

        If no row is taken, the curvature is hardly more than a step.
        """
        parts = [shard.whole_hessian(step) for shard in self._shards]
        mass = sum(mass for _, mass in parts)
        return total([matrix for matrix, _ in parts]), max(mass, step, LEAST_MASS)
