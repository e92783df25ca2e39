"""Pieces as functions of their centres and radii: balls with a linear function inside.

A piece has the columns h·(v − o) and h, with the height h of a soft ball (`laconic.tune.balls`) and
an origin o that stays. With weights U_j (n_features, n_outputs) and u_j of the columns of ball j,
it adds h_ij f_ij to the scores of row i, where f_ij = U_j'(v_i − o_j) + u_j. So its columns are
never written down. With the residual R_i of a row, the sums over rows are

    Σ_i h_ij (v_i − o_j) R_i'  and  Σ_i h_ij R_i  for the weights,
    Σ_i ⟨f_ij, R_i⟩ ∂h_ij/∂θ                      for the parameters.

The f_ij of all balls are one product of matrices, and so are the sums for the weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.model.pieces import PiecesMap
from laconic.numeric.threads import Threads
from laconic.tune.balls import BallKind, SeenRows, TunedBalls
from laconic.tune.contract import Tunable


class PieceKind(BallKind):
    """See `laconic.tune.kinds.TunableKind`."""

    def tunable(
        self, given: PiecesMap, X: Any, threads: Threads, device: Any, free: bool
    ) -> Tunable:
        """Return the pieces as functions of their parameters."""
        return TunedPieces(given, X, threads, free)


class SeenBlock(NamedTuple):
    """A block of rows, and what every ball adds to their scores at height 1."""

    seen: SeenRows
    added: np.ndarray
    """(n_balls, n_outputs, n_rows)"""


class SeenPieces(NamedTuple):
    """What the derivatives of some scores need."""

    parameters: list[np.ndarray]
    blocks: list[SeenBlock]


class TunedPieces(TunedBalls):
    """Pieces as functions of their parameters; see `TunedBalls` and the contract."""

    def __init__(self, given: PiecesMap, X: Any, threads: Threads, free: bool) -> None:
        if not given.soft:
            raise TypeError("hard balls cannot be tuned, because their heights have no slope")
        super().__init__(given, X, threads, free)
        away = self._middle - np.ldexp(given.origin, -self.power)
        self._away = np.broadcast_to(away, given.centre.shape)

    def scores(
        self, parameters: list[np.ndarray], X: Any, weights: np.ndarray
    ) -> tuple[np.ndarray, SeenPieces]:
        """Return weights' · columns for some rows, (n_outputs, n_rows), and what `sums` needs."""
        n_balls, n_features = self._given.centre.shape
        weights = weights.reshape(n_balls, n_features + 1, -1).transpose(0, 2, 1)
        n_outputs = weights.shape[1]
        linear = np.ldexp(weights[:, :, :-1], self.power)
        constant = weights[:, :, -1] + (linear @ self._away[:, :, None])[:, :, 0]
        flat = linear.reshape(-1, n_features)

        def one(seen: SeenRows) -> tuple[np.ndarray, SeenBlock]:
            added = flat.astype(seen.rows.dtype) @ seen.rows.T
            added = added.reshape(n_balls, n_outputs, -1)
            added += constant[:, :, None].astype(added.dtype)
            scores = np.einsum("jki,ji->ki", added, seen.heights)
            return scores.astype(np.float64), SeenBlock(seen, added)

        found = list(self._threads.map(one, self._heights(parameters, X)))
        blocks = [block for _, block in found]
        return np.hstack([scores for scores, _ in found]), SeenPieces(parameters, blocks)

    def sums(self, kept: SeenPieces, residual: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return Σ_i ⟨R_i, ∂scores_i/∂θ⟩, and Σ_i z_i R_i' for the columns z."""
        n_balls, n_features = self._given.centre.shape
        ends = np.cumsum([0, *(len(block.seen.rows) for block in kept.blocks)])

        def one(number: int) -> list[np.ndarray]:
            seen, added = kept.blocks[number]
            R = residual[:, ends[number] : ends[number + 1]].astype(seen.rows.dtype)
            pull = np.einsum("jki,ki->ji", added, R)
            high = seen.heights[:, None] * R
            linear = high.reshape(-1, len(seen.rows)) @ seen.rows
            constant = high.sum(axis=2, dtype=np.float64)
            parts = self._slopes(kept.parameters, seen, pull)
            return [*parts, linear.astype(np.float64), constant]

        parts = self._threads.map(one, range(len(kept.blocks)))
        *slopes, linear, constant = (np.sum(same, axis=0) for same in zip(*parts, strict=True))
        linear = linear.reshape(n_balls, -1, n_features)
        linear += constant[:, :, None] * self._away[:, None]
        columns = np.concatenate([np.ldexp(linear, self.power), constant[:, :, None]], axis=2)
        return slopes, columns.transpose(0, 2, 1).reshape(n_balls * (n_features + 1), -1)

    def map(self, parameters: list[np.ndarray]) -> PiecesMap:
        """Return the map of the pieces that these parameters make."""
        return PiecesMap(**self._placed(parameters))
