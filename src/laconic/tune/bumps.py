"""Bumps as functions of their centres and radii: heights of soft balls (`laconic.tune.balls`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.model.bumps import BumpsMap
from laconic.numeric.threads import Threads, row_blocks
from laconic.tune.balls import LANES, BallKind, SeenRows, TunedBalls
from laconic.tune.contract import Tunable


class BumpKind(BallKind):
    """See `laconic.tune.kinds.TunableKind`."""

    def tunable(
        self, given: BumpsMap, X: Any, threads: Threads, device: Any, free: bool
    ) -> Tunable:
        """Return the bumps as functions of their parameters."""
        return TunedBumps(given, X, threads, free)


class SeenBumps(NamedTuple):
    """What the derivatives of some values need."""

    parameters: list[np.ndarray]
    blocks: list[SeenRows]


class TunedBumps(TunedBalls):
    """Bumps as functions of their parameters; see `TunedBalls` and the contract."""

    def values(self, parameters: list[np.ndarray], X: Any) -> tuple[np.ndarray, SeenBumps]:
        """Return the columns for some rows, and what `slopes` needs."""
        blocks = self._heights(parameters, X)
        return np.hstack([seen.heights for seen in blocks]), SeenBumps(parameters, blocks)

    def slopes(self, kept: SeenBumps, pull: np.ndarray) -> list[np.ndarray]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ."""
        places = row_blocks(pull.shape[1], LANES)

        def one(number: int) -> list[np.ndarray]:
            return self._slopes(kept.parameters, kept.blocks[number], pull[:, places[number]])

        parts = self._threads.map(one, range(len(places)))
        return [np.sum(same, axis=0) for same in zip(*parts, strict=True)]

    def map(self, parameters: list[np.ndarray]) -> BumpsMap:
        """Return the map of the bumps that these parameters make."""
        return BumpsMap(**self._placed(parameters))
