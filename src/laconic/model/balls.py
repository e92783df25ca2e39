"""Balls on new rows.

`Balls` are linear functions that are zero outside a ball (ShareBoost section 3.2). `Heights` are
heights of soft balls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laconic.model.distances import TOGETHER, squared_distances
from laconic.model.feature_maps import check_finite
from laconic.model.lowering import Primitive
from laconic.numeric.magnitudes import power_of_two

# A row with such a number is in no ball whose centre and radius are near 1, or at most `NEAR_ONE`
# powers of two above 1.
FAR = 2.0**200
# Up to this many rows, scores are computed row by row, from the balls that contain the row. For
# more rows, they are computed ball by ball, for the rows in the ball.
FEW_ROWS = 8


class BallPrimitive(Primitive):
    """Centres and radii, and how high a ball is at a row. A base for primitives of balls.

    Attributes
    ----------
    distinct : ndarray of shape (n_distinct, n_features)
        The distinct centres, over 2^power.
    which : ndarray of shape (n_balls,)
        The centre of every ball.
    radii : ndarray of shape (n_balls,)
        The radii, over 2^power.
    power : int
    """

    def __init__(self, centre: Any, radius: Any, soft: Any) -> None:
        self.centre = np.asarray(centre, dtype=np.float64)
        self.radius = np.asarray(radius, dtype=np.float64)
        self.soft = bool(soft)
        if self.centre.ndim != 2 or self.centre.shape[:1] != self.radius.shape:
            raise ValueError("the arrays of the balls do not fit together")
        # Balls of several radii share a centre, and its distances are computed once. Without balls
        # this is skipped, because a stranger's file may then ask for rows of any length.
        self.distinct, self.which = self.centre, np.arange(0)
        if len(self):
            self.distinct, self.which = np.unique(self.centre, axis=0, return_inverse=True)
            self.which = self.which.reshape(-1)
        # Distances are computed in units of a power of two.
        reach = max(np.abs(self.centre).max(initial=0.0), self.radius.max(initial=0.0))
        self.power = power_of_two(float(reach))
        self.distinct = np.ldexp(self.distinct, -self.power)
        self.radii = np.ldexp(self.radius, -self.power)

    def __len__(self) -> int:
        return len(self.radius)

    def heights(self, X: np.ndarray) -> np.ndarray:
        """Return the height of every ball at every row, (n_balls, n_rows).

        The height is 0 outside a ball. Inside it is 1, or less if the ball is soft.
        """
        with np.errstate(over="ignore"):  # a row whose distance overflows is outside
            d2 = squared_distances(self._rows(X), self.distinct).T
            d2 = np.ascontiguousarray(d2)[self.which]
            # If the square of a radius underflows, the ball still contains its centre. A ball of
            # radius 0 contains nothing.
            d2 /= np.maximum(np.square(self.radii), np.finfo(np.float64).tiny)[:, None]
        d2[self.radius == 0.0] = 1.0
        if not self.soft:
            return (d2 < 1.0).astype(np.float64)
        np.subtract(1.0, d2, out=d2)
        return np.maximum(d2, 0.0, out=d2)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows in the units of the balls. Numbers far outside all balls are clipped."""
        X = np.asarray(X, dtype=np.float64)
        if self.power:
            X = np.ldexp(X, -self.power)
        far = max(X.max(initial=0.0), -X.min(initial=0.0)) > FAR
        return np.clip(X, -FAR, FAR) if far else X

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read: all, if there is a ball."""
        return np.arange(self.centre.shape[1] if len(self) else 0)

    def operations(self) -> int:
        """Count a multiplication per coordinate of a distinct centre and a comparison per ball."""
        return self.distinct.size + len(self)


class Heights(BallPrimitive):
    """Bumps: soft balls, each with the column max(0, 1 − ‖x − c‖²/r²).

    Parameters
    ----------
    centre : array of shape (n_bumps, n_features)
        Centre c of every bump.
    radius : array of shape (n_bumps,)

    Examples
    --------
    >>> Heights([[0.0, 0.0]], [2.0]).columns(np.array([[0.0, 1.0], [3.0, 0.0]])).tolist()
    [[0.75], [0.0]]
    """

    fields = ("centre", "radius")

    def __init__(self, centre: Any, radius: Any) -> None:
        super().__init__(centre, radius, True)

    @property
    def n_columns(self) -> int:
        """Number of bumps."""
        return len(self)

    def columns(self, X: Any) -> np.ndarray:
        """Return the heights of the bumps at new rows."""
        X = _dense(X)
        out = np.empty((len(X), len(self)), dtype=X.dtype)
        for start in range(0, len(X) if len(self) else 0, TOGETHER):
            out[start : start + TOGETHER] = self.heights(X[start : start + TOGETHER]).T
        return out


class Balls(BallPrimitive):
    """Balls, each with the columns 1[‖x − c‖ < r]·[x − o, 1].

    In a soft ball, these columns are multiplied by 1 − ‖x − c‖²/r², which is 0 at the edge.

    Parameters
    ----------
    centre : array of shape (n_balls, n_features)
        Centre c of every ball.
    radius : array of shape (n_balls,)
    origin : array of shape (n_balls, n_features) or (1, n_features)
        Origin o of every ball, or one origin for all balls.
    soft : bool
    share : array of shape (n_balls,), optional
        Share of the rows that are inside the ball, for `score_operations`. By default, all rows
        count as inside.
    """

    fields = ("centre", "radius", "origin", "soft")

    def __init__(self, centre: Any, radius: Any, origin: Any, soft: Any, share: Any = None) -> None:
        super().__init__(centre, radius, soft)
        self.origin = np.asarray(origin, dtype=np.float64)
        self.share = (
            np.ones(self.radius.shape) if share is None else np.asarray(share, dtype=np.float64)
        )
        origins = {self.centre.shape, (1, *self.centre.shape[1:])}
        if self.share.shape != self.radius.shape or self.origin.shape not in origins:
            raise ValueError("the arrays of the balls do not fit together")

    @property
    def n_columns(self) -> int:
        """Number of columns of all balls."""
        return len(self) * (self.centre.shape[1] + 1)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows."""
        return self.sparse_columns(X).toarray()

    def sparse_columns(self, X: Any) -> sparse.csr_matrix:
        """Return the values on new rows as a sparse matrix."""
        X = _dense(X)
        n, width = len(self), self.centre.shape[1] + 1
        heights = self.heights(X).T
        row, ball = np.nonzero(heights)
        values = np.ones((len(row), width), dtype=X.dtype)
        values[:, :-1] = X[row] - np.broadcast_to(self.origin, self.centre.shape)[ball]
        values *= heights[row, ball, None]
        place = ball[:, None] * width + np.arange(width)
        start = np.searchsorted(row, np.arange(len(X) + 1)) * width
        return sparse.csr_matrix(
            (values.reshape(-1), place.reshape(-1), start), shape=(len(X), n * width)
        )

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights (n_columns, n_outputs), without storing the columns."""
        if not len(self):
            return np.zeros((X.shape[0], weights.shape[1]))
        X = _dense(X)
        weights = weights.reshape(len(self), self.centre.shape[1] + 1, weights.shape[1])
        slopes, constants = weights[:, :-1], weights[:, -1]
        if len(self.origin) > 1:
            constants = constants - np.matmul(self.origin[:, None], slopes)[:, 0]
        slopes = np.ldexp(slopes, self.power)
        out = np.empty((len(X), weights.shape[2]))
        for start in range(0, len(X), TOGETHER):
            rows = X[start : start + TOGETHER]
            heights = self.heights(rows)
            # If all balls share one origin, rows are shifted by it.
            with np.errstate(over="ignore"):  # only in rows that are in no ball and not read
                shifted = rows - self.origin if len(self.origin) == 1 else rows
                shifted = np.ldexp(shifted, -self.power) if self.power else shifted
                rows = np.ascontiguousarray(shifted, dtype=X.dtype)
            part = out[start : start + TOGETHER]
            if len(rows) <= FEW_ROWS:
                part[:] = 0.0
                for i in np.flatnonzero(heights.any(axis=0)):
                    row, balls = rows[i], np.flatnonzero(heights[:, i])
                    high = heights[balls, i]
                    part[i] = row @ np.tensordot(high, slopes[balls], axes=1)
                    part[i] += high @ constants[balls]
            else:
                part[:] = heights.T @ constants
                for slope, height in zip(slopes.astype(X.dtype), heights, strict=True):
                    held = np.flatnonzero(height)
                    values = rows.take(held, axis=0, mode="clip") @ slope
                    part[held] += values * height.take(held, mode="clip")[:, None]
        return out

    def score_operations(self, n_outputs: int) -> int:
        """Return the expected operations of `scores`, if rows are in the balls as often as told."""
        inside = float(self.share.sum()) * self.centre.shape[1] * n_outputs
        return self.operations() + round(inside)


def _dense(X: Any) -> np.ndarray:
    X = np.asarray(X.toarray() if sparse.issparse(X) else X)
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    check_finite(X)
    return X
