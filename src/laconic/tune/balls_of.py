"""The balls of a map as a pool, so that the corrector need not write their columns down.

As when balls are chosen, the columns of a piece are stored only for the rows inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.model.bumps import Bump
from laconic.model.distances import TOGETHER
from laconic.model.pieces import Piece
from laconic.numeric.magnitudes import largest_value, power_of_two
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.bound_balls import BoundBalls
from laconic.pools.parts import Place
from laconic.pools.radii import BallGrid, code_rows


class BallsSeen(NamedTuple):
    """What some rows say about the balls."""

    power: int
    """The unit of lengths is two to this power."""
    inside: np.ndarray
    """Weight of the rows inside each ball."""
    weight: float
    """Weight of all rows."""
    highest: np.ndarray
    """Largest height of each ball at a row."""
    nearest: np.ndarray
    """Number of that row."""


class BallsOf:
    """The soft balls of a map as a pool.

    Parameters
    ----------
    made : PiecesMap or BumpsMap
    scales : ndarray of shape (n_columns,)
        Factors of the columns. All linear columns of a piece have one factor.
    remarks : bool
        Whether shares of the rows and nearest rows are found again. Otherwise those of the map
        stay.
    """

    def __init__(self, made: Any, scales: np.ndarray, remarks: bool = False) -> None:
        self._made, self._remarks = made, remarks
        self._scales = scales.reshape(len(made), -1)

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> BallsSeen:
        """Look at a part of the rows."""
        made, n = self._made, len(self._made)
        inside, highest = np.zeros((2, n))
        nearest = made.nearest.copy()
        for s in row_blocks(X.shape[0] if self._remarks else 0, TOGETHER):
            heights = made.lower()[0].heights(dense(X[s]))
            inside += (heights > 0) @ weight[s]
            row = heights.argmax(axis=1)
            here = heights[np.arange(n), row]
            nearest = np.where(here > highest, place.first + s.start + row, nearest)
            highest = np.maximum(here, highest)
        return BallsSeen(power_of_balls(made, X), inside, float(weight.sum()), highest, nearest)

    def merge(self, surveys: Sequence[BallsSeen], threads: Threads) -> BallsSeen:
        """Put what was seen of all parts together. Of equally near rows, the first one counts."""
        balls = np.arange(len(self._made))
        first = np.argmax([part.highest for part in surveys], axis=0)
        return BallsSeen(
            max(part.power for part in surveys),
            np.sum([part.inside for part in surveys], axis=0),
            sum(part.weight for part in surveys),
            np.max([part.highest for part in surveys], axis=0),
            np.array([part.nearest for part in surveys])[first, balls],
        )

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: BallsSeen | None = None,
        place: Place | None = None,
    ) -> BoundBallsOf:
        """Code the distances of rows to the centres."""
        if survey is None:
            survey = self.survey(X, weight, Place(0, X.shape[0]), threads)
        parts = self._made.arrays()
        if self._remarks:
            share = np.minimum(survey.inside / survey.weight, 1.0)
            parts |= {"share": share, "nearest": survey.nearest}
        made, power = type(self._made)(**parts), survey.power
        centres, radii = (np.ldexp(a, -power) for a in (made.centre, made.radius[:, None]))
        origin = np.ldexp(parts.get("origin", made.centre.mean(axis=0)[None]), -power)
        grid = BallGrid(
            centres, radii, made.share[:, None], made.nearest, origin.mean(axis=0), 1.0, power
        )
        coded = code_rows(np.ldexp(dense(X), -power), grid, True, threads)
        shift = np.broadcast_to(origin - grid.mean, centres.shape)
        linear, constant = np.ldexp(self._scales[:, :1], power), self._scales[:, -1:]
        if "origin" in parts:
            return BoundPiecesOf(made, grid, coded, threads, True, shift, linear, constant)
        coded = coded._replace(table=np.ascontiguousarray(coded.table[:, -1:]))
        shift = shift[:, :0]
        return BoundBumpsOf(made, grid, coded, threads, True, shift, constant, constant)


class BoundBallsOf(BoundBalls):
    """`BallsOf` over rows. Every centre has one radius. `BoundBalls` has the other parameters.

    Parameters
    ----------
    made : PiecesMap or BumpsMap
    """

    def __init__(self, made: Any, *given: Any) -> None:
        super().__init__(*given)
        self._made = made

    def extract(self, atoms: Sequence[int]) -> Any:
        """Return the feature map of some balls."""
        own = np.asarray(atoms, dtype=np.int64)
        arrays = self._made.arrays()
        each = {name: arrays[name][own] for name in ("centre", "radius", "share", "nearest")}
        if len(arrays.get("origin", ())) > 1:
            each["origin"] = arrays["origin"][own]
        return type(self._made)(**{**arrays, **each})


class BoundPiecesOf(BoundBallsOf):
    """Pieces over rows."""

    record = Piece


class BoundBumpsOf(BoundBallsOf):
    """Bumps over rows. Their columns are written down."""

    local_atoms = False
    record = Bump


def power_of_balls(made: Any, X: Any) -> int:
    """Return the power of two in whose units distances neither overflow nor vanish."""
    X = X if sparse.issparse(X) else np.asarray(X)
    return power_of_two(max(map(largest_value, (X, made.centre, made.radius))))


def dense(X: Any) -> np.ndarray:
    """Return rows as an array of floats. Single precision stays."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X)
    return X if X.dtype.kind == "f" else X.astype(np.float64)
